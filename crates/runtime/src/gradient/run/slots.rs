//! States of loops in slots: in memory of the device, and away from it.

use ebbtide_schedule::Slot;

use super::shapes::Follow;
use super::{Driven, Run, StoredState};
use crate::error::Result;
use crate::memory::buffer::Buffer;
use crate::memory::device_memory::Handed;

impl<'a> Run<'a> {
    /// Stores a state in host memory or on disk.
    pub(super) fn store_away(&mut self, driven: &mut Driven<'a>, index: usize, step: u64) -> Result<()> {
        driven.offloaded_shapes.insert(index, self.shapes.now());
        let (offload, mut hands) = self.offload(driven);
        offload.store(&mut hands, index, step)?;
        let (bytes, to_disk) = (offload.bytes(), index < offload.on_disk);
        self.ran.stored += 1;
        *(if to_disk { &mut self.ran.to_disk } else { &mut self.ran.to_host }) += bytes;
        Ok(())
    }

    /// Takes a state back from host memory or disk.
    pub(super) fn load_away(&mut self, driven: &mut Driven<'a>, index: usize, step: u64) -> Result<()> {
        let sweep = driven.sweep;
        let shapes = driven.offloaded_shapes.get(&index).copied().unwrap_or(0);
        self.enter_shapes(shapes, Follow::RunAgain)?;
        let (offload, mut hands) = self.offload(driven);
        offload.load(&mut hands, index, step)?;
        let (bytes, from_disk) = (offload.bytes(), index < offload.on_disk);
        self.executable.forget(self.frame, &sweep.lost);
        self.ran.loaded += 1;
        *(if from_disk { &mut self.ran.from_disk } else { &mut self.ran.from_host }) += bytes;
        Ok(())
    }

    /// Stores a state in a slot of the device.
    pub(super) fn store(&mut self, driven: &mut Driven<'a>, slot: Slot) -> Result<()> {
        let sweep = driven.sweep;
        self.ran.stored += 1;
        let mut buffers = driven.spare.pop().unwrap_or_default();
        let sizes = sweep.carried.iter().map(|array| self.frame.arrays[array.index()].bytes);
        let sizes: Vec<usize> = sizes.collect();
        // Memory of states in other shapes is of no use.
        if !buffers.iter().map(Buffer::len).eq(sizes.iter().copied().take(buffers.len())) {
            buffers.clear();
        }
        for bytes in sizes.into_iter().skip(buffers.len()) {
            buffers.push(self.with_room(|run| run.spare.take(bytes, run.device.meter()))?);
        }
        // The host looks into slots where a run is made durable, and fills them where one is taken up.
        buffers.iter().try_for_each(|buffer| buffer.hand_over(Handed::ForWriting))?;
        self.executable.store(self.frame, &sweep.carried, &mut buffers)?;
        driven.slots.insert(slot, StoredState { buffers, shapes: self.shapes.now() });
        Ok(())
    }

    /// Takes a state back from a slot of the device.
    pub(super) fn load(&mut self, driven: &mut Driven<'a>, slot: Slot) -> Result<()> {
        let sweep = driven.sweep;
        self.ran.loaded += 1;
        let Some(StoredState { buffers, shapes }) = driven.slots.get(&slot) else {
            return Err(self.variant.internal("a slot is empty"));
        };
        self.enter_shapes(*shapes, Follow::RunAgain)?;
        buffers.iter().try_for_each(|buffer| buffer.hand_over(Handed::ForReading))?;
        self.executable.load(self.frame, &sweep.carried, buffers)?;
        self.executable.forget(self.frame, &sweep.lost);
        Ok(())
    }
}
