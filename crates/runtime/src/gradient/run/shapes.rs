//! Shapes that the host changed where a differentiated program yielded: iterations that are run again, and their reversal,
//! have the shapes that they had.
//!
//! Input: the reshapes of the log, in the order of the program. Output: arrays, tapes and values of the frame as they are
//! in the shapes of a number. Invariant: when a segment runs, all that it touches has the shapes of its iteration; cotangents
//! have the shapes of the iteration that is reversed next, also while earlier ones are run again.

use std::collections::BTreeSet;

use ebbtide_ir::{ArrayId, Entry, Op, RegionId, Role, evaluate};

use crate::device::frame::extents::extents;
use crate::device::frame::{Extents, View};
use crate::error::{Error, Result};
use crate::gradient::run::Run;
use crate::gradient::run::hosted::Reshape;
use crate::memory::byte_count::byte_count;

/// The shape of one array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Extent {
    shape: Extents,
    bytes: usize,
}

/// The shapes of all arrays, by number, and which of them the frame has.
#[derive(Debug, Default)]
pub(crate) struct Shapes {
    /// Empty before the first change.
    known: Vec<Vec<Extent>>,
    now: usize,
    of_cotangents: usize,
}

/// Which arrays take other shapes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Follow {
    /// All: the host has just changed them, for the first time.
    Changed,
    /// Those of the program: iterations are run again.
    RunAgain,
    /// Those of the program and cotangents: iterations are reversed.
    Reversed,
}

impl Shapes {
    /// The number of the shapes that the program's arrays have.
    pub fn now(&self) -> usize {
        self.now
    }

    /// The number of the shapes that cotangents have.
    pub fn of_cotangents(&self) -> usize {
        self.of_cotangents
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.known.len().max(1)
    }

    /// The extents of an array of this rank in the shapes of a number; `None` before the first change.
    pub fn of(&self, array: ArrayId, number: usize, rank: usize) -> Option<Vec<i64>> {
        Some(self.known.get(number)?.get(array.index())?.shape[..rank].to_vec())
    }

    /// Views of all arrays in the shapes of a number, of their memory as it is.
    pub fn views(&self, views: &[View], number: usize) -> Vec<View> {
        let mut views = views.to_vec();
        for (view, extent) in views.iter_mut().zip(self.known.get(number).into_iter().flatten()) {
            (view.shape, view.bytes) = (extent.shape, extent.bytes);
        }
        views
    }

    /// The bytes of an array in the shapes of a number; `None` before the first change.
    pub fn bytes(&self, array: ArrayId, number: usize) -> Option<usize> {
        Some(self.known.get(number)?.get(array.index())?.bytes)
    }

    /// The most bytes that an array has, or will have when it is run again.
    pub fn most_bytes(&self, array: ArrayId) -> Option<usize> {
        self.known.iter().filter_map(|shapes| shapes.get(array.index())).map(|extent| extent.bytes).max()
    }
}

impl<'a> Run<'a> {
    /// Computes the shapes that a reshape leads to, and gives their number.
    pub(crate) fn add_shapes(&mut self, reshape: &Reshape) -> Result<usize> {
        let (variant, program) = (self.variant, &self.variant.program);
        if self.shapes.known.is_empty() {
            let launch =
                self.frame.arrays.iter().map(|v| Extent { shape: v.shape, bytes: v.bytes }).collect();
            self.shapes.known.push(launch);
        }
        let mut next = self.shapes.known.last().cloned().unwrap_or_default();
        let mut views = self.shapes.views(&self.frame.arrays, self.shapes.known.len() - 1);
        for (array, shape) in &reshape.shapes {
            let Some(lent) = variant.lent.arrays.get(array) else {
                let name = &variant.source.array(*array).name;
                return Err(variant.lost(&format!("the shape of `{name}` cannot change here")));
            };
            let bytes = byte_count(shape, variant.source.array(*array).ty)?;
            let padded = View::new(std::ptr::null_mut(), shape, bytes).shape;
            views[lent.given.index()].shape = padded;
            next[lent.given.index()].shape = padded;
            if let Some(value) = lent.value {
                next[value.index()] = Extent { shape: padded, bytes };
            }
        }
        let stay = self.temporaries_that_stay(reshape.at.0, &views)?;
        for id in program.array_ids() {
            if let Role::Temp(_) = program.array(id).role
                && !stay.contains(&id)
            {
                let shape = extents(program, id, &views, &self.frame.arguments)?;
                let bytes = byte_count(&shape, program.array(id).ty)?;
                next[id.index()] =
                    Extent { shape: View::new(std::ptr::null_mut(), &shape, bytes).shape, bytes };
            }
        }
        for id in program.array_ids() {
            if let Role::Old(array) = program.array(id).role {
                next[id.index()] = next[array.index()];
            }
        }
        if let Some((a, b)) = variant.swaps.iter().copied().find(|(a, b)| {
            variant.source.swapped == ebbtide_ir::SwappedShapes::Equal && next[a.index()] != next[b.index()]
        }) {
            let [a, b] = [a, b].map(|id| &variant.source.array(id).name);
            return Err(variant.lost(&format!(
                "the host gave one of `{a}` and `{b}`, which the program swaps, another shape: give it to both"
            )));
        }
        self.may_reshape(&next)?;
        self.shapes.known.push(next);
        Ok(self.shapes.known.len() - 1)
    }

    /// An error where an array is its own tape and would not keep what it holds when its shape changes back and forth.
    fn may_reshape(&self, next: &[Extent]) -> Result<()> {
        let Some(last) = self.shapes.known.last() else { return Ok(()) };
        let program = &self.variant.program;
        for array in self.variant.steps.kept_arrays() {
            let inner = |extent: &Extent| extent.shape[1..].to_vec();
            if inner(&last[array.index()]) != inner(&next[array.index()]) {
                let name = program.array(array).name.trim_end_matches('\'');
                return Err(self.variant.lost(&format!(
                    "the host changed other extents of `{name}` than the first where the program yielded: the gradient \
                     keeps what its rows hold; give it more rows alone"
                )));
            }
        }
        Ok(())
    }

    /// Temporaries that were made before a region, and what lies beside them, keep their shapes. As in a plain run it is an
    /// error if one is made anew by an iteration that would give it another.
    fn temporaries_that_stay(&self, region: RegionId, views: &[View]) -> Result<BTreeSet<ArrayId>> {
        let (source, program) = (&self.variant.source, &self.variant.program);
        let Some(entry) = Entry::of(source, region) else { return Ok(BTreeSet::new()) };
        let mut stay: BTreeSet<ArrayId> = entry.visible.temps.iter().copied().collect();
        for array in &entry.remade {
            let now = extents(program, *array, views, &self.frame.arguments)?;
            let had = &views[array.index()].shape;
            if now.iter().zip(had).any(|(now, had)| *now as i64 != *had) {
                let decl = source.array(*array);
                return Err(self.variant.lost(&format!(
                    "temporary `{}` has shape {:?} where the program yielded and would have shape {now:?} in the next \
                     iteration: the arrays that decide its shape cannot change here; declare it inside the region",
                    decl.name,
                    &had[..decl.rank]
                )));
            }
        }
        let shape_of = |id: ArrayId| match &program.array(id).role {
            Role::Temp(shape) if !shape.is_empty() => Some(shape.clone()),
            _ => None,
        };
        // What lies beside an array is declared with its extents; beside several of one shape it cannot be told apart.
        let lent: Vec<_> = self.variant.lent.arrays.keys().filter_map(|id| shape_of(*id)).collect();
        let kept: Vec<_> = stay.iter().filter_map(|id| shape_of(*id)).filter(|s| !lent.contains(s)).collect();
        let beside = |id: &ArrayId| {
            id.index() >= source.arrays.len() && shape_of(*id).is_some_and(|shape| kept.contains(&shape))
        };
        stay.extend(program.array_ids().filter(beside));
        let cotangents = |id: &ArrayId| self.variant.shadows.get(id).copied();
        let cotangents: Vec<ArrayId> = stay.iter().filter_map(cotangents).collect();
        stay.extend(cotangents);
        Ok(stay)
    }

    /// Gives arrays the shapes of a number, computes anew what is computed from shapes, and says whether any changed.
    pub(crate) fn enter_shapes(&mut self, number: usize, follow: Follow) -> Result<bool> {
        // A run that is begun again comes to these for the first time.
        let follow = if number > self.shapes.of_cotangents { Follow::Changed } else { follow };
        let Some(shapes) = self.shapes.known.get(number).cloned() else { return Ok(false) };
        let program = &self.variant.program;
        let cotangents: BTreeSet<ArrayId> = self.variant.shadows.values().copied().collect();
        let mut changed = false;
        for id in program.array_ids() {
            let (extent, view) = (shapes[id.index()], self.frame.arrays[id.index()]);
            let moves = match (program.array(id).role.clone(), follow) {
                (Role::Param(_), _) if self.variant.lent.arrays.values().any(|lent| lent.given == id) => {
                    if view.shape != extent.shape {
                        changed = true;
                        self.settle()?;
                        self.frame.set_shape_alone(id, extent.shape);
                    }
                    false
                }
                // Values are copied at the end, in the last shapes.
                (Role::Param(_), _) => number + 1 == self.shapes.known.len(),
                (Role::Temp(_), Follow::RunAgain) => !cotangents.contains(&id),
                (Role::Temp(_), _) => true,
                (Role::Old(_) | Role::Tape(_), _) => false,
            };
            if moves && (view.shape, view.bytes) != (extent.shape, extent.bytes) {
                changed = true;
                self.settle()?;
                self.reshape_array(id, extent, follow)?;
            }
        }
        self.shapes.now = number;
        if follow != Follow::RunAgain {
            self.shapes.of_cotangents = number;
        }
        if changed {
            for id in program.array_ids() {
                if let Role::Old(array) = program.array(id).role {
                    self.frame.alias(id, array);
                }
            }
            self.frame.settle_tapes();
            self.compute_from_shapes();
        }
        Ok(changed)
    }

    /// What is at an index stays there; what had no place before is zero.
    fn reshape_array(&mut self, id: ArrayId, to: Extent, follow: Follow) -> Result<()> {
        let decl = self.variant.program.array(id);
        let from = self.frame.arrays[id.index()];
        let (old, new) = (&from.shape[..decl.rank], &to.shape[..decl.rank]);
        // What the host adds are zeros, where it does not say otherwise. The rows of an array that is its own tape stay.
        let zeros = follow == Follow::Changed || self.variant.lent.arrays.contains_key(&id);
        let is_tape = self.variant.steps.kept_arrays().contains(&id);
        if old.get(1..) == new.get(1..) && (!zeros || (is_tape && follow != Follow::Changed)) {
            return self.reshape_frame(id, to);
        }
        let held = self.contents(id)?;
        let moved = moved(&held, old, new, decl.ty.size());
        self.reshape_frame(id, to)?;
        self.set_contents(id, &moved)
    }

    fn reshape_frame(&mut self, id: ArrayId, to: Extent) -> Result<()> {
        self.settle()?;
        self.with_room(|run| run.frame.reshape(id, to.shape, to.bytes, run.device.meter()))
    }

    /// Computes the values that hang on shapes anew, from what the frame has.
    fn compute_from_shapes(&mut self) {
        let program = &self.variant.program;
        for v in &self.variant.lent.values {
            let bits = match *program.op(*v) {
                Op::Dim(array, k) => Some(self.frame.arrays[array.index()].shape[k as usize] as u64),
                _ => evaluate::evaluate(program, *v, |o| self.frame.scalars.values[o.index()])
                    .and_then(|result| result.ok()),
            };
            if let Some(bits) = bits {
                self.frame.scalars.values[v.index()] = bits;
            }
        }
    }

    /// Before anything runs: what values are copied into has the shapes that arrays have in the end.
    fn shape_values(&mut self) -> Result<()> {
        let Some(last) = self.shapes.known.last().cloned() else { return Ok(()) };
        for value in self.variant.lent.arrays.values().filter_map(|lent| lent.value) {
            self.reshape_frame(value, last[value.index()])?;
        }
        Ok(())
    }

    /// Takes the log of a run that is begun again, or of another process.
    pub(crate) fn take_log(&mut self, log: super::hosted::Log) -> Result<()> {
        self.log = log;
        let reshapes = std::mem::take(&mut self.log.reshapes);
        let added = reshapes.iter().try_for_each(|reshape| self.add_shapes(reshape).map(drop));
        self.log.reshapes = reshapes;
        added?;
        self.shape_values()
    }
}

/// The elements of an array in another shape, each at the index that it had; the others are zero.
pub(crate) fn moved(held: &[u8], old: &[i64], new: &[i64], size: usize) -> Vec<u8> {
    let count = |shape: &[i64]| shape.iter().map(|n| *n as usize).product::<usize>();
    let mut out = vec![0; count(new) * size];
    if old.is_empty() || out.is_empty() || held.is_empty() {
        out.iter_mut().zip(held).for_each(|(to, from)| *to = *from);
        return out;
    }
    // Rows of the last dimension that both have.
    let last = old.len() - 1;
    let row = old[last].min(new[last]) as usize * size;
    let common: Vec<usize> = old.iter().zip(new).map(|(a, b)| *a.min(b) as usize).collect();
    let mut index = vec![0usize; last];
    loop {
        let at = |shape: &[i64]| {
            index.iter().zip(shape).fold(0, |at, (i, n)| at * *n as usize + i) * shape[last] as usize * size
        };
        let (from, to) = (at(old), at(new));
        out[to..to + row].copy_from_slice(&held[from..from + row]);
        let mut k = last;
        loop {
            if k == 0 {
                return out;
            }
            k -= 1;
            index[k] += 1;
            if index[k] < common[k] {
                break;
            }
            index[k] = 0;
        }
    }
}

/// An error that says that shapes cannot change where all parts of a grid run one program.
pub(crate) fn together_error(program: &str, name: &str) -> Error {
    let message = format!(
        "the host gave `{name}` another shape where the program yielded: on the parts of a grid a differentiated run keeps \
         the shapes that it was launched with; make the array large enough before"
    );
    Error::Plan { program: program.to_string(), message }
}

#[cfg(test)]
mod tests {
    use super::moved;

    #[test]
    fn elements_stay_at_their_indices() {
        let held: Vec<u8> = (1..=6).collect();
        assert_eq!(moved(&held, &[2, 3], &[3, 4], 1), [1, 2, 3, 0, 4, 5, 6, 0, 0, 0, 0, 0]);
        assert_eq!(moved(&held, &[2, 3], &[1, 2], 1), [1, 2]);
        assert_eq!(moved(&held, &[3], &[4], 2), [1, 2, 3, 4, 5, 6, 0, 0]);
        assert_eq!(moved(&held, &[1, 3, 2], &[2, 2, 2], 1), [1, 2, 3, 4, 0, 0, 0, 0]);
        assert_eq!(moved(&[], &[0, 3], &[1, 2], 1), [0, 0]);
        assert_eq!(moved(&held, &[2, 3], &[0, 3], 1), [0u8; 0]);
        assert_eq!(moved(&[7, 8], &[], &[], 2), [7, 8]);
    }
}
