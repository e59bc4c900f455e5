//! Asks the host what to do where a differentiated program yielded, and notes what it did.

use std::collections::BTreeMap;

use ebbtide_ir::{Access, ArrayId, Loop, LoopKind, Param, Place, Role, Stmt, enclosing};

use super::{Change, Host, Patch, Reshape, Visit};
use crate::array::any_array::AnyArray;
use crate::device::frame::extents::from_arguments;
use crate::error::Result;
use crate::gradient::plan::Budget;
use crate::gradient::run::Run;
use crate::gradient::run::shapes::{Follow, moved, together_error};
use crate::launch::parts::together;
use crate::launch::yielded::Yielded;

/// An array that the host may change.
struct Given {
    array: ArrayId,
    name: String,
    /// What it held, and what its tangent did, if it has one.
    held: Vec<u8>,
    tangent: Option<(ArrayId, Vec<u8>)>,
}

impl<'a> Run<'a> {
    /// Asks the host, and remembers what it did; says whether it did anything.
    pub(super) fn ask(&mut self, key: Visit, place: &Place, reason: i64, first: Option<u64>) -> Result<bool> {
        let variant = self.variant;
        let at = self.place_in_source(key, place, reason, first);
        let Some(on_yield) = self.host else {
            let message = format!(
                "it yielded at `{}`, and no callback was given that could repair it: write `.on_yield(..)`",
                at.label_name()
            );
            return Err(variant.lost(&message));
        };
        let mut host = Host { program: variant.source.name.clone(), arrays: BTreeMap::new(), memory: None };
        let mut given: Vec<Given> = Vec::new();
        for param in &variant.source.params {
            let Param::Array(array) = *param else { continue };
            let decl = variant.source.array(array);
            if decl.role != Role::Param(Access::Write) || variant.tangents.values().any(|dot| *dot == array) {
                continue;
            }
            let shape = self.frame.arrays[array.index()].shape[..decl.rank].iter().map(|n| *n as usize);
            let (shape, held) = (shape.collect::<Vec<usize>>(), self.contents(array)?);
            let mut lent = self.with_room(|run| AnyArray::zeros(run.device, decl.ty, &shape))?;
            lent.copy_from_bytes(&held)?;
            host.arrays.insert(decl.name.clone(), lent);
            let tangent = match variant.tangents.get(&array).copied() {
                Some(dot) => Some((dot, self.contents(dot)?)),
                None => None,
            };
            given.push(Given { array, name: decl.name.clone(), held, tangent });
        }
        on_yield(&at, &mut host)?;
        if let Some(bytes) = host.memory {
            self.budget = Some(Budget::Bytes(bytes));
        }
        let shapes = self.note_shapes(key, &host, &given)?;
        let mut changed = Vec::new();
        for given in &given {
            let Some(now) = host.arrays.get(&given.name) else { continue };
            if let Some(after) = self.note_elements(key, shapes, given, now.bytes()) {
                changed.push((given, now, after));
            }
        }
        let did = !changed.is_empty() || shapes.0 != shapes.1;
        // What the host did is remembered when the run has to be begun again for it.
        if shapes.0 != shapes.1 {
            self.plan_for_shapes(&at)?;
            self.enter_shapes(shapes.1, Follow::Changed)?;
        }
        for (Given { array, tangent, .. }, now, after) in changed {
            let size = variant.source.array(*array).ty.size();
            self.set_contents(*array, now.bytes())?;
            // What the host wrote does not move with the inputs.
            if let Some((dot, _)) = tangent {
                let mut bytes = self.contents(*dot)?;
                after.iter().for_each(|at| bytes[*at..at + size].fill(0));
                self.set_contents(*dot, &bytes)?;
            }
        }
        // That nothing was changed is remembered too: then the host is not asked again on replay.
        self.log.done.entry(key).or_default();
        Ok(did)
    }

    /// Notes what the host changed of an array that now holds this; the elements that it wrote, if there are any.
    fn note_elements(
        &mut self,
        key: Visit,
        shapes: (usize, usize),
        given: &Given,
        now: &[u8],
    ) -> Option<Vec<usize>> {
        let Given { array, held, tangent, .. } = given;
        let decl = self.variant.source.array(*array);
        let size = decl.ty.size();
        let extents = |number: usize| self.shapes.of(*array, number, decl.rank).unwrap_or_default();
        let (had, has) = (extents(shapes.0), extents(shapes.1));
        let (before, after) = match had == has {
            true => {
                let changed = differing(held, now, size);
                (changed.clone(), changed)
            }
            false => differing_in_shape((held, &had), (now, &has), size),
        };
        if before.is_empty() && after.is_empty() && had == has {
            return None;
        }
        let done = self.log.done.entry(key).or_default();
        let patches = (patch(held, &before, size), patch(now, &after, size));
        done.push(Change { array: *array, shapes, before: patches.0, after: patches.1 });
        if let Some((dot, held)) = tangent {
            let zeros = Patch { elements: after.clone(), bytes: vec![0; after.len() * size] };
            done.push(Change { array: *dot, shapes, before: patch(held, &before, size), after: zeros });
        }
        Some(after)
    }

    /// The place of a yield in the source. Regions of the source go by the loops of the source, of which a driven one is
    /// somewhere in its middle.
    fn place_in_source(&self, key: Visit, place: &Place, reason: i64, first: Option<u64>) -> Yielded {
        let source = &self.variant.source;
        let mut place = Place { region: key.0, iterations: place.iterations.clone() };
        if let (Some(first), Some(finished)) = (first, place.iterations.first_mut()) {
            *finished += first;
        }
        let mut at = Yielded { place, reason, known: None, ..Yielded::nowhere(source) };
        for stmt in enclosing(source, key.0) {
            if let Stmt::Loop(Loop { id, kind: LoopKind::For { from, to, .. }, .. }) = stmt {
                let value = |v| from_arguments(source, v, &self.frame.arrays, &self.frame.arguments);
                at.scalars.bounds[id.index()] = [*from, *to].map(|v| value(v).unwrap_or(0) as i64);
            }
        }
        at
    }

    /// Notes the shapes that the host gave to arrays, if it gave any, and gives the numbers of those before and after.
    fn note_shapes(&mut self, key: Visit, host: &Host, given: &[Given]) -> Result<(usize, usize)> {
        let variant = self.variant;
        let before = self.shapes.now();
        let mut shapes = BTreeMap::new();
        for Given { array, name, tangent, .. } in given {
            let decl = variant.source.array(*array);
            let Some(now) = host.arrays.get(name) else { continue };
            if now.ty() != decl.ty || now.shape().len() != decl.rank {
                let message = format!(
                    "the host gave `{name}` another type or rank where the program yielded: it is an Array{}<{}>, not an \
                     Array{}<{}>",
                    decl.rank,
                    decl.ty,
                    now.shape().len(),
                    now.ty()
                );
                return Err(variant.lost(&message));
            }
            let had = &self.frame.arrays[array.index()].shape[..decl.rank];
            if now.shape().iter().map(|n| *n as i64).eq(had.iter().copied()) {
                continue;
            }
            if together(&variant.program).is_some() {
                return Err(together_error(&variant.program.name, name));
            }
            if self.device.backend().memory().is_some() && !self.tiers.is_empty() {
                return Err(variant.lost(&format!(
                    "the host gave `{name}` another shape where the program yielded: states beyond the memory of this \
                     device keep theirs; launch it without `.host_memory(..)` and `.disk(..)`"
                )));
            }
            shapes.insert(*array, now.shape().to_vec());
            if let Some((dot, _)) = tangent {
                shapes.insert(*dot, now.shape().to_vec());
            }
        }
        if shapes.is_empty() {
            return Ok((before, before));
        }
        let reshape = Reshape { at: key, shapes };
        let after = self.add_shapes(&reshape)?;
        self.log.reshapes.push(reshape);
        Ok((before, after))
    }
}

fn differing(a: &[u8], b: &[u8], size: usize) -> Vec<usize> {
    let differs = |at: &usize| a[*at..at + size] != b[*at..at + size];
    (0..a.len().min(b.len())).step_by(size).filter(differs).collect()
}

/// The elements of the first that are not in the second, at their index and with their value; and those of the second that
/// are neither in the first nor zero.
fn differing_in_shape(
    (a, of_a): (&[u8], &[i64]),
    (b, of_b): (&[u8], &[i64]),
    size: usize,
) -> (Vec<usize>, Vec<usize>) {
    let after = differing(&moved(a, of_a, of_b, size), b, size);
    let has_a_place = moved(&moved(&vec![1; a.len()], of_a, of_b, size), of_b, of_a, size);
    let seen = moved(b, of_b, of_a, size);
    let differs = |at: &usize| has_a_place[*at] == 0 || a[*at..at + size] != seen[*at..at + size];
    ((0..a.len()).step_by(size).filter(differs).collect(), after)
}

fn patch(from: &[u8], elements: &[usize], size: usize) -> Patch {
    let bytes = elements.iter().flat_map(|at| from[*at..at + size].iter().copied()).collect();
    Patch { elements: elements.to_vec(), bytes }
}

#[cfg(test)]
mod tests {
    use super::differing_in_shape;

    #[test]
    fn what_keeps_its_index_and_value_is_not_changed() {
        // 1 and 3 stay, 2 becomes 7, 4 becomes 0; 5 is new, and so is a zero.
        let found = differing_in_shape((&[1, 2, 3, 4], &[2, 2]), (&[1, 7, 5, 3, 0, 0], &[2, 3]), 1);
        assert_eq!(found, (vec![1, 3], vec![1, 2, 4]));
        let found = differing_in_shape((&[1, 2, 3, 4], &[4]), (&[1, 2], &[2]), 1);
        assert_eq!(found, (vec![2, 3], vec![]));
    }
}
