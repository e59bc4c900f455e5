//! What the host does when a differentiated program yields, and doing it again.

mod log;

use std::collections::BTreeMap;

use ebbtide_ir::{
    Access, Again, ArrayId, Loop, LoopKind, Outcome, Param, Place, RegionId, Role, Stmt, enclosing,
};

use crate::array::Array;
use crate::array::any_array::AnyArray;
use crate::device::Start;
use crate::device::frame::extents::from_arguments;
use crate::error::{Error, Result};
use crate::gradient::run::Run;
use crate::launch::yielded::Yielded;
use crate::memory::codec::{ByteOrder, elements};
use crate::memory::device_memory::Handed;
use crate::memory::element::Item;
pub(crate) use log::{Change, Log};

/// What the host does when a differentiated program yields: repairs arrays, so that the region can be run again.
pub type OnYield = dyn Fn(&Yielded, &mut Host) -> Result<()> + Send + Sync;

/// The arrays that the caller lent for writing, as they are where the program yielded. What is changed here, the
/// program goes on with; for the derivative it is constant.
pub struct Host {
    program: String,
    arrays: BTreeMap<String, AnyArray>,
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

/// A host that was asked so often at one place and changed nothing will not change anything.
const PATIENCE: u32 = 1000;

impl<'a> Run<'a> {
    /// Runs a segment to its end; wherever it yields, the host does what it did before, or is asked.
    pub(crate) fn yielding_segment(&mut self, segment: usize, piece: Option<u64>) -> Result<()> {
        let mut outcome = self.executable.run(segment, self.frame, Start::Beginning)?;
        let mut last: Option<(RegionId, i64)> = None;
        let (mut replayed, mut in_vain) = (None, 0);
        while let Outcome::Yielded { place, reason } = outcome {
            let source = self.variant.copies.get(&place.region).copied().unwrap_or(place.region);
            self.may_run_again(source)?;
            let key = (source, self.visit(source)?);
            if self.log.done.contains_key(&key) && last != Some(key) {
                self.change(key, Again::Change)?;
                replayed = Some(key);
            } else if replayed == Some(key) {
                let place = format!("region {}, execution {}", key.0.index(), key.1);
                return Err(Error::NotReproduced { program: self.variant.source.name.clone(), place });
            } else {
                self.may_ask(last == Some(key))?;
                let changed = self.ask(key, &place, reason, piece)?;
                in_vain = if changed || last != Some(key) { 0 } else { in_vain + 1 };
                if in_vain == PATIENCE {
                    return Err(self.variant.lost(&format!(
                        "it yielded {PATIENCE} times at one place, and `on_yield` changed nothing there: let it clear the \
                         flag, as `host.fill(step::flag, 0)` does"
                    )));
                }
            }
            last = Some(key);
            outcome = self.executable.run(segment, self.frame, Start::At(&place))?;
        }
        Ok(())
    }

    /// An error where a plain run would go on from something else than what the region found.
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

    /// An error where the run was asked to stop. A durable one first ends the passes that are under way, so that what they
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
        self.settle()?;
        let key = (region, self.visit(region)?);
        self.change(key, again)
    }

    /// The number of the execution of a region that runs now.
    fn visit(&mut self, region: RegionId) -> Result<i64> {
        let Some(hosted) = self.variant.hosted.get(&region) else {
            return Err(self.variant.lost("a region yielded that has no flag"));
        };
        let bytes = self.contents(hosted.visits)?;
        Ok(elements(&bytes, ByteOrder::MEMORY).first().copied().unwrap_or(0))
    }

    /// What an array holds.
    pub(crate) fn contents(&mut self, array: ArrayId) -> Result<Vec<u8>> {
        let mut buffer = [self.spare.take(self.frame.arrays[array.index()].bytes, self.device.meter())?];
        buffer[0].hand_over(Handed::ForWriting)?;
        self.executable.store(self.frame, &[array], &mut buffer)?;
        self.executable.submit(self.frame)?;
        let bytes = buffer[0].bytes().to_vec();
        self.spare.give(buffer);
        Ok(bytes)
    }

    pub(crate) fn set_contents(&mut self, array: ArrayId, bytes: &[u8]) -> Result<()> {
        let mut buffer = [self.spare.take(bytes.len(), self.device.meter())?];
        buffer[0].bytes_mut().copy_from_slice(bytes);
        buffer[0].hand_over(Handed::ForReading)?;
        self.executable.load(self.frame, &[array], &buffer)?;
        self.settle()?;
        self.spare.give(buffer);
        Ok(())
    }

    /// Asks the host, and remembers what it did; says whether it did anything.
    fn ask(&mut self, key: (RegionId, i64), place: &Place, reason: i64, piece: Option<u64>) -> Result<bool> {
        let variant = self.variant;
        // Regions of the source go by the loops of the source, of which a driven one is somewhere in its middle.
        let mut place = Place { region: key.0, iterations: place.iterations.clone() };
        if let (Some(first), Some(passes)) = (piece, place.iterations.first_mut()) {
            *passes += first;
        }
        let mut at = Yielded { place, reason, known: None, ..Yielded::nowhere(&variant.source) };
        for stmt in enclosing(&variant.source, key.0) {
            if let Stmt::Loop(Loop { id, kind: LoopKind::For { from, to, .. }, .. }) = stmt {
                let value = |v| from_arguments(&variant.source, v, &self.frame.arrays, &self.frame.arguments);
                let bounds = [*from, *to].map(|v| value(v).unwrap_or(0) as i64);
                at.scalars.bounds[id.index()] = bounds;
            }
        }
        let Some(on_yield) = self.host else {
            let message = format!(
                "it yielded at `{}`, and no callback was given that could repair it: write `.on_yield(..)`",
                at.label_name()
            );
            return Err(variant.lost(&message));
        };
        let mut host = Host { program: variant.source.name.clone(), arrays: BTreeMap::new() };
        let mut lent: Vec<(ArrayId, String, Vec<u8>)> = Vec::new();
        for param in &variant.source.params {
            let Param::Array(id) = *param else { continue };
            let decl = variant.source.array(id);
            if decl.role != Role::Param(Access::Write) || variant.tangents.values().any(|dot| *dot == id) {
                continue;
            }
            let shape: Vec<usize> =
                self.frame.arrays[id.index()].shape[..decl.rank].iter().map(|n| *n as usize).collect();
            let bytes = self.contents(id)?;
            let mut array = AnyArray::zeros(self.device, decl.ty, &shape)?;
            array.copy_from_bytes(&bytes)?;
            host.arrays.insert(decl.name.clone(), array);
            lent.push((id, decl.name.clone(), bytes));
        }
        on_yield(&at, &mut host)?;
        let mut did = false;
        for (array, name, old) in lent {
            let decl = variant.source.array(array);
            let Some(now) = host.arrays.get(&name) else { continue };
            let shape = &self.frame.arrays[array.index()].shape[..decl.rank];
            let alike = |now: &AnyArray| now.shape().iter().map(|n| *n as i64).eq(shape.iter().copied());
            if now.ty() != decl.ty || !alike(now) {
                let message = format!(
                    "the host gave `{name}` another type or shape where the program yielded: a differentiated run keeps \
                     those that it was launched with; make the array large enough before"
                );
                return Err(variant.lost(&message));
            }
            let size = decl.ty.size();
            let changed = |at: &usize| old[*at..at + size] != now.bytes()[*at..at + size];
            let elements: Vec<usize> = (0..old.len()).step_by(size).filter(changed).collect();
            if elements.is_empty() {
                continue;
            }
            let pick = |from: &[u8]| {
                elements.iter().flat_map(|at| from[*at..at + size].to_vec()).collect::<Vec<u8>>()
            };
            let (before, after) = (pick(&old), pick(now.bytes()));
            did = true;
            self.set_contents(array, now.bytes())?;
            let done = self.log.done.entry(key).or_default();
            done.push(Change { array, elements: elements.clone(), old: before, new: after });
            // What the host wrote does not move with the inputs.
            if let Some(dot) = variant.tangents.get(&array).copied() {
                let mut bytes = self.contents(dot)?;
                let old = elements.iter().flat_map(|at| bytes[*at..at + size].to_vec()).collect::<Vec<u8>>();
                elements.iter().for_each(|at| bytes[*at..at + size].fill(0));
                self.set_contents(dot, &bytes)?;
                let new = vec![0; old.len()];
                self.log.done.entry(key).or_default().push(Change { array: dot, elements, old, new });
            }
        }
        // That nothing was changed is remembered too: then the host is not asked again on replay.
        self.log.done.entry(key).or_default();
        Ok(did)
    }

    fn change(&mut self, key: (RegionId, i64), again: Again) -> Result<()> {
        let Some(changes) = self.log.done.remove(&key) else { return Ok(()) };
        let flag = self.variant.hosted.get(&key.0).map(|h| h.flag);
        let in_order: Vec<&Change> = match again {
            Again::Change => changes.iter().collect(),
            Again::Undo => changes.iter().rev().collect(),
        };
        for change in in_order {
            let (array, size) = (change.array, self.variant.source.array(change.array).ty.size());
            if again == Again::Undo && Some(array) == flag {
                // What the abandoned execution left in its flag was never there.
                continue;
            }
            let from = if again == Again::Change { &change.new } else { &change.old };
            let mut bytes = self.contents(array)?;
            for (at, element) in change.elements.iter().zip(from.chunks_exact(size)) {
                bytes[*at..at + size].copy_from_slice(element);
            }
            self.set_contents(array, &bytes)?;
            if again == Again::Undo
                && let Some(shadow) = self.variant.shadows.get(&array).copied()
            {
                let mut bytes = self.contents(shadow)?;
                change.elements.iter().for_each(|at| bytes[*at..at + size].fill(0));
                self.set_contents(shadow, &bytes)?;
            }
        }
        self.log.done.insert(key, changes);
        Ok(())
    }
}
