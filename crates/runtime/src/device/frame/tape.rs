//! What one array left on its tape.

use std::sync::Arc;

use ebbtide_ir::ArrayId;

use crate::device::frame::{Frame, View};
use crate::error::{Error, Result};
use crate::memory::buffer::Buffer;
use crate::memory::device_memory::Handed;
use crate::memory::meter::Meter;
use crate::memory::spare::Spare;

/// The tape of one array: places of the array's size, and how many of them hold something.
#[derive(Debug, Default)]
pub struct TapePlaces {
    /// The memory. Pushing exchanges an array's memory with that of a place, so places own memory in turn.
    pub(super) buffers: Vec<Buffer>,
    /// The addresses, in the order of pushes; none where the tape is packed.
    pub places: Vec<*mut u8>,
    /// The memory of a packed tape, in the order of pushes.
    pub pieces: Vec<TapePiece>,
    /// How many places hold something.
    pub depth: usize,
    /// How many may hold something when all that was enqueued has run.
    pub(super) claimed: usize,
    /// Do places lie side by side, without a table of their addresses?
    packed: bool,
}

/// Memory in which places of a packed tape lie side by side.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct TapePiece {
    /// Where its first place is.
    pub address: *mut u8,
    /// How many places there are up to its end, with those of the pieces before it.
    pub until: i64,
}

/// The places of an array of at most this many bytes share memory: a piece for each would take more than it holds.
const SMALL: usize = 64;

/// Devices copy arrays this many bytes at a time, each from such a multiple.
const AT_ONCE: usize = 16;

impl TapePlaces {
    /// How many places there are.
    pub fn capacity(&self) -> usize {
        if self.packed {
            self.pieces.last().map_or(0, |piece| piece.until as usize)
        } else {
            self.places.len()
        }
    }

    /// The address of a place of an array of this many bytes.
    pub(crate) fn address(&self, place: usize, bytes: usize) -> Option<*mut u8> {
        if !self.packed {
            return self.places.get(place).copied();
        }
        let at = self.pieces.partition_point(|piece| piece.until as usize <= place);
        let before = at.checked_sub(1).map_or(0, |before| self.pieces[before].until as usize);
        self.pieces.get(at).map(|piece| piece.address.wrapping_add((place - before) * bytes))
    }
}

impl Frame {
    /// From now on places on the tapes of these arrays, which have none yet, lie side by side.
    pub(crate) fn pack_tapes(&mut self, arrays: &[ArrayId]) {
        arrays.iter().for_each(|array| self.tapes[array.index()].packed = true);
    }

    /// Makes room for `count` more pushes of an array, until [`Frame::release_tape`].
    pub(crate) fn reserve_tape(
        &mut self,
        array: ArrayId,
        count: usize,
        spare: &Spare,
        meter: &Arc<Meter>,
    ) -> Result<()> {
        let bytes = self.arrays[array.index()].bytes;
        self.reserve_tape_of(array, count, bytes, spare, meter)
    }

    /// As [`Frame::reserve_tape`], with this many bytes in each place.
    pub(crate) fn reserve_tape_of(
        &mut self,
        array: ArrayId,
        count: usize,
        bytes: usize,
        spare: &Spare,
        meter: &Arc<Meter>,
    ) -> Result<()> {
        let tape = &mut self.tapes[array.index()];
        let claimed = tape.claimed + count;
        let missing = claimed.saturating_sub(tape.capacity());
        let side_by_side = meter.memory.is_none() || bytes < AT_ONCE || bytes.is_multiple_of(AT_ONCE);
        let shared = self.alike && missing > 1 && (1..=SMALL).contains(&bytes) && side_by_side;
        if (tape.packed && missing > 0) || shared {
            let piece = missing.checked_mul(bytes).ok_or(Error::TooLarge { shape: vec![missing, bytes] })?;
            let piece = spare.take(piece, meter)?;
            let address = piece.address();
            match tape.packed {
                true => {
                    tape.pieces.push(TapePiece { address, until: (tape.capacity() + missing) as i64 });
                }
                false => tape.places.extend((0..missing).map(|k| address.wrapping_add(k * bytes))),
            }
            tape.claimed = claimed;
            tape.buffers.push(piece);
            return Ok(());
        }
        let buffers = spare.take_many(missing, bytes, meter)?;
        tape.claimed = claimed;
        self.rooms.add(&buffers);
        tape.places.extend(buffers.iter().map(Buffer::address));
        if tape.buffers.is_empty() {
            tape.buffers = buffers;
        } else {
            tape.buffers.extend(buffers);
        }
        Ok(())
    }

    /// Gives a tape of elements, of which it holds `held`, this length, when nothing is enqueued.
    pub(crate) fn lengthen_tape(
        &mut self,
        tape: ArrayId,
        (held, length): (usize, usize),
        size: usize,
        spare: &Spare,
        meter: &Arc<Meter>,
    ) -> Result<()> {
        let too_large = || Error::TooLarge { shape: vec![length] };
        let bytes = length.checked_mul(size).filter(|bytes| *bytes < isize::MAX as usize / 2);
        let mut buffer = spare.take(bytes.ok_or_else(too_large)?, meter)?;
        let old = self.arrays[tape.index()];
        if held > 0 {
            // SAFETY (*Liveness*, *Bounds*): the old memory is the frame's and has room for what it holds; the new one has more, and
            // nothing else has it.
            unsafe { buffer.copy_start_in(old.address, (held * size).min(old.bytes))? };
        }
        buffer.hand_over(Handed::ForWriting)?;
        self.arrays[tape.index()] = View::new(buffer.address(), &[length], buffer.len());
        self.temps.retain(|temp| old.address.is_null() || temp.address() != old.address);
        self.temps.push(buffer);
        self.aside = None;
        Ok(())
    }

    /// The last `count` places that were reserved for an array will be free again.
    pub(crate) fn release_tape(&mut self, array: ArrayId, count: usize) {
        let tape = &mut self.tapes[array.index()];
        tape.claimed = tape.claimed.saturating_sub(count);
    }

    /// When nothing is enqueued, places that hold nothing are free.
    pub(crate) fn settle_tapes(&mut self) {
        self.tapes.iter_mut().for_each(|tape| tape.claimed = tape.depth);
    }

    /// The address of a place on the tape of an array, which has the size of the array.
    pub(crate) fn tape_place(&self, array: ArrayId, place: usize) -> Option<*mut u8> {
        self.tapes[array.index()].address(place, self.arrays[array.index()].bytes)
    }

    /// Copies what a place on the tape of an array holds to a buffer, which has no more bytes.
    ///
    /// # Safety
    /// The place is one that [`Frame::tape_place`] gave.
    pub(crate) unsafe fn copy_tape_to(
        &self,
        array: ArrayId,
        from: *mut u8,
        buffer: &mut Buffer,
    ) -> Result<()> {
        self.has_room(from, array, buffer)?;
        // SAFETY (*Liveness*, *Bounds*): places own as much memory as the buffer has (checked above) for as long as the frame
        // lives.
        unsafe { buffer.copy_in(from) }
    }

    /// Puts a buffer into the next place on the tape of an array.
    ///
    /// # Safety
    /// The place is that of the tape's depth, as [`Frame::tape_place`] gave it.
    pub(crate) unsafe fn push_from(&mut self, array: ArrayId, to: *mut u8, buffer: &Buffer) -> Result<()> {
        self.has_room(to, array, buffer)?;
        // SAFETY (*Liveness*, *Bounds*): as above.
        unsafe { buffer.copy_out(to)? };
        self.tapes[array.index()].depth += 1;
        self.aside = None;
        Ok(())
    }
}
