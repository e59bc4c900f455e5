//! States of a loop that are not in the memory of its device: on their way out, kept in host memory or on disk, and on
//! their way back.
//!
//! Each is stored once, on the way forward, and loaded once, the last one first; so the one that will be wanted next is
//! known and is fetched while the loop computes. Where the device has memory of its own, a state goes out through one
//! *staging* place there: a copy within the device, behind which the loop continues while the state travels, and the other
//! way round. Those that go to disk pass through pinned memory besides.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::path::PathBuf;
use std::sync::Arc;

use ebbtide_checkpoint::{Dtype, State};
use ebbtide_ir::ArrayId;
use ebbtide_snapshot::fs::FileSystem;
use ebbtide_snapshot::{Disk, Place as _};

use crate::device::frame::Frame;
use crate::device::{Device, Executable};
use crate::error::{Error, Result};
use crate::gradient::tiers::{BOUNCES, STAGING, Tiers, scratch};
use crate::memory::buffer::Buffer;
use crate::memory::device_memory::{Carried, Memory, Piece};
use crate::memory::meter::Meter;
use crate::memory::pinned::Pinned;
use crate::memory::spare::Spare;

/// What moves states.
pub(crate) struct Hands<'h> {
    pub executable: &'h dyn Executable,
    pub frame: &'h mut Frame,
    pub arrays: &'h [ArrayId],
    pub device: &'h Device,
    pub spare: &'h Spare,
}

/// The states of one loop beyond memory, by slot.
pub(crate) struct Offload {
    /// Slots below this number are on disk, the others in host memory.
    pub on_disk: usize,
    dir: PathBuf,
    /// Made when it is first wanted.
    disk: Option<Disk>,
    /// The bytes of each array of a state.
    sizes: Vec<usize>,
    /// Which slot holds the state before an iteration.
    held: BTreeMap<u64, usize>,
    /// Where the device has memory of its own.
    apart: Option<Apart>,
}

/// What it takes to move states out of a device and back.
struct Apart {
    memory: Arc<dyn Memory>,
    meter: Arc<Meter>,
    staging: Vec<Buffer>,
    /// The last copy between staging and the host; they happen in order.
    last: Option<Arc<dyn Carried>>,
    in_host: HashMap<usize, Pinned>,
    /// Pinned memory whose state is not needed any more, but may still be on its way.
    left: Vec<Pinned>,
    /// States on their way to disk.
    leaving: VecDeque<Leaving>,
    /// Pinned memory for states that pass through, with the copy that used it last.
    bounces: VecDeque<(Pinned, Option<Arc<dyn Carried>>)>,
    made_bounces: usize,
    /// The slot whose state is being brought to staging.
    ahead: Option<(usize, Arc<dyn Carried>)>,
}

struct Leaving {
    index: usize,
    step: u64,
    place: Pinned,
    carried: Arc<dyn Carried>,
}

/// The place of one array in a state in pinned memory.
fn ranges(sizes: &[usize]) -> impl Iterator<Item = std::ops::Range<usize>> {
    sizes.iter().scan(0, |end, size| {
        let start = *end;
        *end += size;
        Some(start..*end)
    })
}

fn put<'b>(state: &mut State, arrays: impl Iterator<Item = &'b [u8]>) -> Result<(), ebbtide_snapshot::Error> {
    for (k, bytes) in arrays.enumerate() {
        state.put(&k.to_string(), bytes)?;
    }
    Ok(())
}

/// The bytes of the arrays of a state on disk.
fn arrays(state: &State, count: usize) -> Result<Vec<&[u8]>, ebbtide_snapshot::Error> {
    let found = (0..count).map(|k| {
        let name = k.to_string();
        let known = || state.arrays().map(|a| a.name).collect::<Vec<_>>().join(", ");
        state
            .array(&name)
            .map(|array| array.bytes)
            .ok_or_else(|| ebbtide_checkpoint::Error::NoArray { name: name.clone(), known: known() }.into())
    });
    found.collect()
}

impl Offload {
    /// No states yet, for arrays of these sizes.
    pub fn new(tiers: &Tiers, on_disk: usize, sizes: Vec<usize>, device: &Device) -> Offload {
        let apart = device.backend().memory().map(|memory| Apart {
            memory,
            meter: device.host_meter().clone(),
            staging: Vec::new(),
            last: None,
            in_host: HashMap::new(),
            left: Vec::new(),
            leaving: VecDeque::new(),
            bounces: VecDeque::new(),
            made_bounces: 0,
            ahead: None,
        });
        let dir = tiers.disk.as_ref().map(|(dir, _)| dir.clone()).unwrap_or_default();
        Offload { on_disk, dir, disk: None, sizes, held: BTreeMap::new(), apart }
    }

    /// The bytes of a state.
    pub fn bytes(&self) -> u64 {
        self.sizes.iter().sum::<usize>() as u64
    }

    /// The slots that hold a state, with the iteration that it stands before.
    pub fn held(&self) -> Vec<(usize, u64)> {
        self.held.iter().map(|(step, index)| (*index, *step)).collect()
    }

    fn fail(&self) -> impl Fn(ebbtide_snapshot::Error) -> Error + use<> {
        let dir = self.dir.clone();
        move |source| Error::disk(&dir, source)
    }

    fn disk(&mut self) -> Result<&mut Disk> {
        if self.dir.as_os_str().is_empty() {
            let why = "its schedule keeps states on disk, and the launch was given no directory for them"
                .to_string();
            return Err(ebbtide_snapshot::Error::NotARun { path: self.dir.clone(), why }.into());
        }
        match &mut self.disk {
            Some(disk) => Ok(disk),
            none => Ok(none.insert(scratch(file_system(), &self.dir)?.staging_buffers(STAGING))),
        }
    }

    /// Keeps the arrays as the state before an iteration.
    pub fn store(&mut self, hands: &mut Hands<'_>, index: usize, step: u64) -> Result<()> {
        if self.apart.is_some() {
            self.carry_out(hands, index, step)?;
        } else {
            let (fail, bytes) = (self.fail(), self.bytes() as usize);
            let disk = self.disk()?;
            let state = disk.begin(index).map_err(&fail)?;
            state.reserve(bytes).map_err(|error| fail(error.into()))?;
            put(state, hands.arrays.iter().map(|array| hands.frame.bytes(*array))).map_err(&fail)?;
            disk.commit(index, step).map_err(&fail)?;
        }
        self.held.insert(step, index);
        Ok(())
    }

    /// Makes the arrays what they were before an iteration, and begins to fetch the state that will be wanted next.
    pub fn load(&mut self, hands: &mut Hands<'_>, index: usize, step: u64) -> Result<()> {
        if let Some(apart) = &mut self.apart {
            if apart.ahead.as_ref().is_none_or(|(ahead, _)| *ahead != index) {
                self.bring(hands, index)?;
            }
            if let Some(apart) = &mut self.apart
                && let Some((_, carried)) = apart.ahead.take()
            {
                carried.hold()?;
                hands.executable.load(hands.frame, hands.arrays, &apart.staging)?;
                hands.executable.submit(hands.frame)?;
            }
        } else {
            let (fail, count) = (self.fail(), self.sizes.len());
            let state = self.disk()?.load(index).map_err(&fail)?;
            for (array, bytes) in hands.arrays.iter().zip(arrays(state, count).map_err(&fail)?) {
                let place = hands.frame.bytes_mut(*array);
                if place.len() != bytes.len() {
                    return Err(fail(wrong_size(place.len(), bytes.len())));
                }
                place.copy_from_slice(bytes);
            }
        }
        self.look_ahead(hands, step)
    }

    /// Begins to fetch the last state before this iteration.
    pub fn look_ahead(&mut self, hands: &mut Hands<'_>, step: u64) -> Result<()> {
        let mut below = self.held.range(..step).rev().map(|(_, index)| *index);
        let (next, then) = (below.next(), below.next());
        let Some(next) = next else { return Ok(()) };
        let to_read = if self.apart.is_some() {
            self.bring(hands, next)?;
            then
        } else {
            Some(next)
        };
        if let (Some(disk), Some(index)) = (&mut self.disk, to_read.filter(|index| *index < self.on_disk)) {
            disk.prefetch(index);
        }
        Ok(())
    }

    /// Empties a slot.
    pub fn discard(&mut self, index: usize) -> Result<()> {
        self.held.retain(|_, held| *held != index);
        if let Some(apart) = &mut self.apart {
            apart.left.extend(apart.in_host.remove(&index));
        }
        let fail = self.fail();
        match &mut self.disk {
            Some(disk) if index < self.on_disk => disk.discard(index).map_err(fail),
            _ => Ok(()),
        }
    }

    /// Shows what a slot holds, array by array, when nothing is being computed.
    pub fn visit(&mut self, index: usize, visit: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
        if let Some(apart) = &mut self.apart
            && let Some(place) = apart.in_host.get_mut(&index)
        {
            apart.last.as_ref().map_or(Ok(()), |last| last.wait())?;
            // SAFETY (*Exclusive access*): the last of all copies has been waited for.
            let bytes = unsafe { place.bytes() };
            return ranges(&self.sizes).map(|range| &bytes[range]).try_for_each(visit);
        }
        self.write_behind(0)?;
        let (fail, count) = (self.fail(), self.sizes.len());
        let state = self.disk()?.load(index).map_err(&fail)?;
        arrays(state, count).map_err(&fail)?.into_iter().try_for_each(visit)
    }

    /// Fills a slot with what [`Offload::visit`] showed: `fill` writes one array after the other, of these sizes.
    pub fn restore(
        &mut self,
        index: usize,
        step: u64,
        sizes: &[usize],
        spare: &Spare,
        fill: &mut dyn FnMut(&mut [u8]) -> Result<()>,
    ) -> Result<()> {
        self.held.insert(step, index);
        let bytes = sizes.iter().sum();
        if let Some(apart) = self.apart.as_mut().filter(|_| index >= self.on_disk) {
            let mut place = apart.pinned(bytes, spare)?;
            // SAFETY (*Exclusive access*): nothing copies to or from new memory.
            let room = unsafe { place.bytes() };
            ranges(sizes).try_for_each(|range| fill(&mut room[range]))?;
            apart.in_host.insert(index, place);
            return Ok(());
        }
        let fail = self.fail();
        let disk = self.disk()?;
        let state = disk.begin(index).map_err(&fail)?;
        state.reserve(bytes).map_err(|error| fail(error.into()))?;
        for (k, size) in sizes.iter().enumerate() {
            state
                .put_with(&k.to_string(), Dtype::U8, &[*size], &mut *fill)
                .map_err(|error| fail(error.into()))??;
        }
        disk.commit(index, step).map_err(fail)
    }

    /// Leaves its memory to the next launch, when the loop has been reversed.
    pub fn finish(mut self, spare: &Spare) -> Result<()> {
        if let Some(apart) = &mut self.apart {
            apart.last.take().map_or(Ok(()), |last| last.wait())?;
            spare.give(apart.staging.drain(..));
            let held = apart.in_host.drain().map(|(_, place)| place);
            let bounces = apart.bounces.drain(..).map(|(place, _)| place);
            spare.give_pinned(held.chain(apart.left.drain(..)).chain(bounces));
        }
        Ok(())
    }

    /// Copies the arrays to staging, and lets them travel on from there.
    fn carry_out(&mut self, hands: &mut Hands<'_>, index: usize, step: u64) -> Result<()> {
        let to_disk = index < self.on_disk;
        if to_disk {
            self.write_behind(BOUNCES - 1)?;
        }
        let bytes = self.bytes() as usize;
        let Some(apart) = &mut self.apart else { return Ok(()) };
        apart.stage(&self.sizes, hands)?;
        apart.last.as_ref().map_or(Ok(()), |last| last.hold())?;
        hands.executable.store(hands.frame, hands.arrays, &mut apart.staging)?;
        hands.executable.submit(hands.frame)?;
        let place = match to_disk {
            true => apart.bounce(bytes, hands.spare)?,
            false => apart.pinned(bytes, hands.spare)?,
        };
        let staged = apart.staging.iter().zip(ranges(&self.sizes));
        let pieces: Vec<Piece> = staged
            .map(|(buffer, range)| {
                // SAFETY (*Bounds*): the place has room for all arrays, one after the other.
                let to = unsafe { place.address().add(range.start) };
                (buffer.address().cast_const(), to, range.len())
            })
            .collect();
        // SAFETY (*Bounds*, *Liveness*): as above; staging is not written before the copy was held for, the place is
        // not touched before it was waited for, and both live until then: see `Drop`.
        let carried = unsafe { apart.memory.carry_out(&pieces)? };
        apart.last = Some(carried.clone());
        match to_disk {
            true => apart.leaving.push_back(Leaving { index, step, place, carried }),
            false => drop(apart.in_host.insert(index, place)),
        }
        Ok(())
    }

    /// Begins to bring the state of a slot to staging.
    fn bring(&mut self, hands: &mut Hands<'_>, index: usize) -> Result<()> {
        let bytes = self.bytes() as usize;
        let read = if index < self.on_disk {
            self.write_behind(0)?;
            let (fail, sizes) = (self.fail(), self.sizes.clone());
            let Some(apart) = &mut self.apart else { return Ok(()) };
            let mut place = apart.bounce(bytes, hands.spare)?;
            let state = self.disk()?.load(index).map_err(&fail)?;
            // SAFETY (*Exclusive access*): the copy that used a bounce was waited for.
            let room = unsafe { place.bytes() };
            for (range, bytes) in ranges(&sizes).zip(arrays(state, sizes.len()).map_err(&fail)?) {
                if range.len() != bytes.len() {
                    return Err(fail(wrong_size(range.len(), bytes.len())));
                }
                room[range].copy_from_slice(bytes);
            }
            Some(place)
        } else {
            None
        };
        let Some(apart) = &mut self.apart else { return Ok(()) };
        apart.stage(&self.sizes, hands)?;
        let from = match (&read, apart.in_host.get(&index)) {
            (Some(place), _) | (None, Some(place)) => place.address(),
            (None, None) => {
                return Err(Error::disk(&self.dir, ebbtide_snapshot::Error::EmptySlot { slot: index }));
            }
        };
        let staged = apart.staging.iter().zip(ranges(&self.sizes));
        let pieces: Vec<Piece> = staged
            // SAFETY (*Bounds*): the place has room for all arrays, one after the other.
            .map(|(buffer, range)| {
                (unsafe { from.add(range.start) }.cast_const(), buffer.address(), range.len())
            })
            .collect();
        // SAFETY (*Bounds*, *Liveness*): as for `carry_out`.
        let carried = unsafe { apart.memory.carry_in(&pieces)? };
        apart.last = Some(carried.clone());
        if let Some(place) = read {
            apart.bounces.push_back((place, Some(carried.clone())));
        }
        apart.ahead = Some((index, carried));
        Ok(())
    }

    /// Writes the states that have left the device to disk; at most this many may still be leaving.
    fn write_behind(&mut self, leaving: usize) -> Result<()> {
        loop {
            let Some(apart) = &mut self.apart else { return Ok(()) };
            let wanted = match apart.leaving.front() {
                Some(first) => apart.leaving.len() > leaving || first.carried.is_over()?,
                None => false,
            };
            let Some(mut first) = wanted.then(|| apart.leaving.pop_front()).flatten() else { return Ok(()) };
            first.carried.wait()?;
            let (fail, sizes, bytes) = (self.fail(), self.sizes.clone(), self.bytes() as usize);
            let disk = self.disk()?;
            let state = disk.begin(first.index).map_err(&fail)?;
            state.reserve(bytes).map_err(|error| fail(error.into()))?;
            // SAFETY (*Exclusive access*): the one copy to this place was waited for.
            let place = unsafe { first.place.bytes() };
            put(state, ranges(&sizes).map(|range| &place[range])).map_err(&fail)?;
            disk.commit(first.index, first.step).map_err(&fail)?;
            if let Some(apart) = &mut self.apart {
                apart.bounces.push_back((first.place, None));
            }
        }
    }
}

impl Apart {
    /// Makes the staging place.
    fn stage(&mut self, sizes: &[usize], hands: &Hands<'_>) -> Result<()> {
        for bytes in sizes.iter().skip(self.staging.len()) {
            self.staging.push(hands.spare.take(*bytes, hands.device.meter())?);
        }
        Ok(())
    }

    fn pinned(&mut self, bytes: usize, spare: &Spare) -> Result<Pinned> {
        // Copies happen in order: what another state left may still be on its way when this one is asked for.
        let found = self.left.pop().or_else(|| spare.take_pinned(bytes));
        found.map_or_else(|| Pinned::new(&self.memory, bytes, &self.meter), Ok)
    }

    /// Pinned memory that nothing is copied to or from.
    fn bounce(&mut self, bytes: usize, spare: &Spare) -> Result<Pinned> {
        if self.made_bounces < BOUNCES {
            self.made_bounces += 1;
            let found = spare.take_pinned(bytes);
            return found.map_or_else(|| Pinned::new(&self.memory, bytes, &self.meter), Ok);
        }
        match self.bounces.pop_front() {
            Some((place, used)) => {
                used.map_or(Ok(()), |used| used.wait())?;
                Ok(place)
            }
            None => Pinned::new(&self.memory, bytes, &self.meter),
        }
    }
}

impl Drop for Apart {
    fn drop(&mut self) {
        // Whatever ended the run: memory may go only when nothing is copied to it any more.
        if let Some(error) = self.last.take().and_then(|last| last.wait().err()) {
            tracing::warn!("{error}");
        }
    }
}

fn wrong_size(expected: usize, found: usize) -> ebbtide_snapshot::Error {
    ebbtide_checkpoint::Error::WrongArray {
        name: "of a state".to_string(),
        found: format!("{found} bytes"),
        expected: format!("{expected}"),
    }
    .into()
}

#[cfg(not(test))]
fn file_system() -> Arc<dyn FileSystem> {
    Arc::new(ebbtide_snapshot::fs::Disks)
}

#[cfg(test)]
use tests::file_system;

#[cfg(test)]
mod tests;
