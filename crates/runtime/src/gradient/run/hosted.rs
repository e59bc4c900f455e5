//! What the host does when a differentiated program yields, and doing it again.

mod ask;
mod log;

use std::collections::BTreeMap;

use ebbtide_autodiff::Pushes;
use ebbtide_ir::{Again, ArrayId, Outcome, Place, RegionId};

use crate::array::Array;
use crate::array::any_array::AnyArray;
use crate::device::Start;
use crate::error::{Error, Result};
use crate::gradient::run::Run;
use crate::gradient::run::shapes::Follow;
use crate::launch::yielded::Yielded;
use crate::memory::codec::{ByteOrder, elements};
use crate::memory::device_memory::Handed;
use crate::memory::element::Item;
pub(crate) use log::{Change, Log, Patch, Reshape, Visit};

/// What the host does when a differentiated program yields: repairs arrays, so that the region can be run again.
pub type OnYield = dyn Fn(&Yielded, &mut Host) -> Result<()> + Send + Sync;

/// The arrays that the caller lent for writing, as they are where the program yielded. What is changed here, the
/// program continues with; for the derivative it is constant.
pub struct Host {
    pub(super) program: String,
    pub(super) arrays: BTreeMap<String, AnyArray>,
    /// The budget that it gives the run.
    pub(super) memory: Option<u64>,
}

impl Host {
    /// An array by the name of its parameter.
    pub fn any(&mut self, name: &str) -> Result<&mut AnyArray> {
        if !self.arrays.contains_key(name) {
            let known: Vec<String> = self.arrays.keys().map(|name| format!("`{name}`")).collect();
            let message = format!(
                "there is no array `{name}` that the host may change where the program yielded; there are {}",
                known.join(", ")
            );
            return Err(Error::Plan { program: self.program.clone(), message });
        }
        let program = &self.program;
        let lost = || Error::Plan { program: program.clone(), message: format!("`{name}` is gone") };
        self.arrays.get_mut(name).ok_or_else(lost)
    }

    /// Gives the run this number of bytes from here on, if it was launched with a budget that is too small: for arrays that
    /// have grown, or because [`Yielded::shortage`] says so.
    pub fn set_memory(&mut self, bytes: u64) {
        self.memory = Some(bytes);
    }

    /// Works on an array of known type and rank.
    pub fn with<T: Item, const R: usize, A>(
        &mut self,
        name: &str,
        work: impl FnOnce(&mut Array<T, R>) -> A,
    ) -> Result<A> {
        let program = self.program.clone();
        let slot = self.any(name)?;
        let empty = AnyArray::zeros(slot.device(), slot.ty(), &[0])?;
        match Array::<T, R>::from_any(std::mem::replace(slot, empty)) {
            Ok(mut array) => {
                let answer = work(&mut array);
                *slot = array.into_any();
                Ok(answer)
            }
            Err(any) => {
                let message = format!("`{name}` has rank {} and elements `{}`", any.shape().len(), any.ty());
                *slot = any;
                Err(Error::Plan { program, message })
            }
        }
    }
}

/// Iterations of a loop that a segment runs.
#[derive(Clone, Copy)]
pub(crate) struct Piece<'p> {
    /// The first of them.
    pub first: u64,
    /// What one of them pushes.
    pub pushes: &'p [Pushes],
    /// The values that the loop's variable has in them.
    pub counted: (i64, i64),
}

/// A host that was asked so often at one place and changed nothing will not change anything.
const PATIENCE: u32 = 1000;

impl<'a> Run<'a> {
    /// Runs a segment to its end; wherever it yields, the host does what it did before, or is asked.
    pub(crate) fn yielding_segment(&mut self, segment: usize, piece: Option<Piece<'_>>) -> Result<()> {
        let held: Vec<usize> = self.frame.tapes.iter().map(|tape| tape.depth).collect();
        let mut outcome = self.executable.run(segment, self.frame, Start::Beginning)?;
        let mut last: Option<(RegionId, i64)> = None;
        let (mut replayed, mut in_vain) = (None, 0);
        while let Outcome::Yielded { place, reason } = outcome {
            let source = self.variant.copies.get(&place.region).copied().unwrap_or(place.region);
            self.may_run_again(source)?;
            let shapes = self.shapes.now();
            let key = (source, self.visit(source)?);
            if self.log.done.contains_key(&key) && last != Some(key) {
                self.change(key, Again::Change)?;
                replayed = Some(key);
            } else if replayed == Some(key) {
                let place = format!("region {}, execution {}", key.0.index(), key.1);
                return Err(Error::NotReproduced { program: self.variant.source.name.clone(), place });
            } else {
                self.may_ask(last == Some(key))?;
                let changed = self.ask(key, &place, reason, piece.map(|piece| piece.first))?;
                in_vain = if changed || last != Some(key) { 0 } else { in_vain + 1 };
                if in_vain == PATIENCE {
                    return Err(self.variant.lost(&format!(
                        "it yielded {PATIENCE} times at one place, and `on_yield` changed nothing there: let it clear the \
                         flag, as `host.fill(step::flag, 0)` does"
                    )));
                }
            }
            last = Some(key);
            if self.shapes.now() != shapes {
                // What is pushed from here on is larger, and may be more.
                match piece {
                    Some(Piece { pushes, counted, .. }) => self.reserve_beside(&held, pushes, counted)?,
                    None => self.reserve_beside(&held, &self.variant.steps.pushes[segment], (0, 1))?,
                }
            }
            outcome = self.executable.run(segment, self.frame, Start::At(&place))?;
        }
        Ok(())
    }

    /// An error where a plain run would continue from something else than what the region found.
    fn may_run_again(&self, region: RegionId) -> Result<()> {
        let variant = self.variant;
        let Some(array) = variant.hosted.get(&region).and_then(|hosted| hosted.reread) else { return Ok(()) };
        // A variable of the program is an array of the gradient program alone.
        let name = variant.program.array(array).name.trim_end_matches('\'').to_string();
        let at =
            Yielded { place: Place { region, iterations: Vec::new() }, ..Yielded::nowhere(&variant.source) };
        Err(Error::NotIdempotent {
            program: variant.source.name.clone(),
            label: at.label_name().to_string(),
            array: name,
        })
    }

    /// An error where the run was asked to stop. A durable one first ends the iterations that are under way, so that what they
    /// lead to is kept, unless they do not end.
    fn may_ask(&self, again: bool) -> Result<()> {
        self.frame.go_on(&self.variant.source)?;
        match &self.watch {
            Some(watch) if again && watch.is_cancelled() => {
                Err(Error::Cancelled { program: self.variant.source.name.clone() })
            }
            _ => Ok(()),
        }
    }

    /// Does what the host did at the execution of a region that is being run again, or undoes it.
    pub(crate) fn host_again(&mut self, region: RegionId, again: Again) -> Result<()> {
        if again == Again::Shapes && self.shapes.count() == 1 {
            return Ok(());
        }
        self.settle()?;
        let key = (region, self.visit(region)?);
        self.change(key, again)
    }

    /// The number of the execution of a region that runs now.
    fn visit(&mut self, region: RegionId) -> Result<i64> {
        let Some(hosted) = self.variant.hosted.get(&region) else {
            return Err(self.variant.internal("a region without a flag yielded"));
        };
        let bytes = self.contents(hosted.visits)?;
        Ok(elements(&bytes, ByteOrder::MEMORY).first().copied().unwrap_or(0))
    }

    /// What an array holds.
    pub(crate) fn contents(&mut self, array: ArrayId) -> Result<Vec<u8>> {
        let bytes = self.frame.arrays[array.index()].bytes;
        let mut buffer = [self.with_room(|run| run.spare.take(bytes, run.device.meter()))?];
        buffer[0].hand_over(Handed::ForWriting)?;
        self.executable.store(self.frame, &[array], &mut buffer)?;
        self.executable.submit(self.frame)?;
        let bytes = buffer[0].bytes().to_vec();
        self.spare.give(buffer);
        Ok(bytes)
    }

    pub(crate) fn set_contents(&mut self, array: ArrayId, bytes: &[u8]) -> Result<()> {
        let mut buffer = [self.with_room(|run| run.spare.take(bytes.len(), run.device.meter()))?];
        buffer[0].bytes_mut().copy_from_slice(bytes);
        buffer[0].hand_over(Handed::ForReading)?;
        self.executable.load(self.frame, &[array], &buffer)?;
        self.settle()?;
        self.spare.give(buffer);
        Ok(())
    }

    /// Does what the host did at the execution of a region, or undoes it, or takes back the shapes alone.
    fn change(&mut self, key: Visit, again: Again) -> Result<()> {
        let Some(changes) = self.log.done.remove(&key) else { return Ok(()) };
        let changed = self.apply(key, &changes, again);
        self.log.done.insert(key, changes);
        changed
    }

    fn apply(&mut self, key: Visit, changes: &[Change], again: Again) -> Result<()> {
        let flag = self.variant.hosted.get(&key.0).map(|h| h.flag);
        let in_order: Vec<&Change> = match again {
            Again::Change => changes.iter().collect(),
            Again::Undo => changes.iter().rev().collect(),
            Again::Shapes => {
                let before = changes.first().map_or(self.shapes.now(), |change| change.shapes.0);
                return self.enter_shapes(before, Follow::RunAgain).map(drop);
            }
        };
        for change in in_order {
            let (array, size) = (change.array, self.variant.source.array(change.array).ty.size());
            let patch = match again {
                Again::Change => {
                    self.enter_shapes(change.shapes.1, Follow::RunAgain)?;
                    &change.after
                }
                _ => {
                    self.enter_shapes(change.shapes.0, Follow::Reversed)?;
                    &change.before
                }
            };
            if again == Again::Undo && Some(array) == flag {
                // What the abandoned execution left in its flag was never there.
                continue;
            }
            let mut bytes = self.contents(array)?;
            for (at, element) in patch.elements.iter().zip(patch.bytes.chunks_exact(size)) {
                bytes[*at..at + size].copy_from_slice(element);
            }
            self.set_contents(array, &bytes)?;
            if again == Again::Undo
                && let Some(shadow) = self.variant.shadows.get(&array).copied()
            {
                let mut bytes = self.contents(shadow)?;
                patch.elements.iter().for_each(|at| bytes[*at..at + size].fill(0));
                self.set_contents(shadow, &bytes)?;
            }
        }
        Ok(())
    }
}
