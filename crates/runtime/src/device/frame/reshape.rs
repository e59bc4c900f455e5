//! Arrays of a frame that get other shapes while their launch continues.
//!
//! Invariant: the memory of an array, the copy of it for undoing and every free place on its tape have room for the shape
//! that the array has. Memory moves between arrays and places of equal shapes, so how much there is belongs to an address
//! and not to an array; it never gets less. What an executable keeps of the frame on its side has the old addresses and
//! shapes, so it goes: nothing that was enqueued is still to run.

use std::collections::HashMap;
use std::sync::Arc;

use ebbtide_ir::ArrayId;

use super::{Extents, Frame, View};
use crate::error::Result;
use crate::memory::buffer::Buffer;
use crate::memory::device_memory::Handed;
use crate::memory::meter::Meter;

/// The bytes of memory at each address, where they may differ from those of the array that has it.
#[derive(Debug, Default)]
pub(super) struct Rooms(HashMap<*mut u8, usize>);

impl Rooms {
    /// Remembers memory that was added, where anything is remembered.
    pub fn add(&mut self, buffers: &[Buffer]) {
        if !self.0.is_empty() {
            self.0.extend(buffers.iter().map(|buffer| (buffer.address(), buffer.len())));
        }
    }
}

impl Frame {
    /// The bytes of memory at an address that belongs to an array with this view, or to a place on its tape.
    pub(crate) fn room(&self, address: *mut u8, view: &View) -> usize {
        self.rooms.0.get(&address).copied().unwrap_or(view.bytes)
    }

    /// From now on arrays may have memory of other sizes than their own.
    fn measure(&mut self) {
        if !self.rooms.0.is_empty() {
            return;
        }
        let lent = self.arrays.iter().map(|view| (view.address, view.bytes));
        let taped = self.tapes.iter().flat_map(|tape| &tape.buffers);
        let own = self.temps.iter().chain(taped).chain(&self.undo);
        let own = own.map(|buffer| (buffer.address(), buffer.len()));
        self.rooms.0 = lent.chain(own).collect();
    }

    /// Gives an array another shape, with more memory where it takes more. What it holds stays as it is, byte by byte; there
    /// are zeros in memory that is new.
    pub(crate) fn reshape(
        &mut self,
        array: ArrayId,
        shape: Extents,
        bytes: usize,
        meter: &Arc<Meter>,
    ) -> Result<()> {
        self.measure();
        self.aside = None;
        let k = array.index();
        let view = self.arrays[k];
        if self.room(view.address, &view) < bytes {
            let mut buffer = Buffer::zeroed(bytes, meter)?;
            // SAFETY (*Liveness*, *Bounds*): a view's memory is owned or borrowed by the launch and has `bytes` bytes, fewer
            // than the new buffer, which nothing else has.
            unsafe { buffer.copy_start_in(view.address, view.bytes)? };
            buffer.hand_over(Handed::ForWriting)?;
            self.rooms.add(std::slice::from_ref(&buffer));
            self.arrays[k].address = buffer.address();
            self.temps.push(buffer);
            self.free(view.address);
        }
        self.arrays[k].shape = shape;
        self.arrays[k].bytes = bytes;
        if let Some(kept) = self.kept.get(k).copied().filter(|kept| !kept.is_null())
            && self.room(kept, &view) < bytes
        {
            let buffer = Buffer::zeroed(bytes, meter)?;
            self.rooms.add(std::slice::from_ref(&buffer));
            self.kept[k] = buffer.address();
            self.rooms.0.remove(&kept);
            self.undo.retain(|old| old.address() != kept);
            self.undo.push(buffer);
        }
        // Places that hold something are read in the shape in which they were written.
        let depth = self.tapes[k].depth;
        for place in (depth..self.tapes[k].places.len()).rev() {
            let address = self.tapes[k].places[place];
            if self.room(address, &view) < bytes {
                self.tapes[k].places.remove(place);
                self.free(address);
            }
        }
        Ok(())
    }

    /// Gives an array that nothing reads or writes any more another shape.
    pub(crate) fn set_shape_alone(&mut self, array: ArrayId, shape: Extents) {
        self.aside = None;
        self.arrays[array.index()].shape = shape;
    }

    /// Makes an alias the array again that it is an alias of.
    pub(crate) fn alias(&mut self, alias: ArrayId, array: ArrayId) {
        self.aside = None;
        self.arrays[alias.index()] = self.arrays[array.index()];
    }

    /// Frees memory of the frame's own that nothing has any more.
    fn free(&mut self, address: *mut u8) {
        let is_it = |buffer: &Buffer| !buffer.is_empty() && buffer.address() == address;
        if let Some(at) = self.temps.iter().position(is_it) {
            self.temps.swap_remove(at);
            self.rooms.0.remove(&address);
            return;
        }
        for tape in &mut self.tapes {
            if let Some(at) = tape.buffers.iter().position(is_it) {
                tape.buffers.swap_remove(at);
                self.rooms.0.remove(&address);
                return;
            }
        }
    }
}
