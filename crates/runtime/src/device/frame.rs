//! What compiled code works on: addresses, shapes, scalars, tapes.

pub(crate) mod extents;
mod reshape;
pub(crate) mod tape;

use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::AtomicI64;

use ebbtide_ir::{Access, ArrayId, Indices, Literal, Program, Role, Scalars};
use ebbtide_sweep::Cancel;

use crate::device::frame::extents::extents;
use crate::error::{Error, Result};
use crate::memory::buffer::Buffer;
use crate::memory::byte_count::byte_count;
use crate::memory::device_memory::Handed;
use crate::memory::meter::Meter;
use crate::memory::spare::Spare;
use reshape::Rooms;
use tape::TapePlaces;

/// The extents of an array, padded with ones.
pub type Extents = [i64; Indices::MAX_RANK];

/// One array as compiled code sees it.
#[derive(Clone, Copy, Debug)]
pub struct View {
    /// The address of the first element.
    pub address: *mut u8,
    /// The extents, padded with ones.
    pub shape: Extents,
    /// The number of bytes.
    pub bytes: usize,
}

impl View {
    /// A view of nothing.
    pub const EMPTY: View = View { address: std::ptr::null_mut(), shape: [1; Indices::MAX_RANK], bytes: 0 };

    /// A view of memory in this shape.
    pub fn new(address: *mut u8, shape: &[usize], bytes: usize) -> View {
        let mut padded = [1; Indices::MAX_RANK];
        padded.iter_mut().zip(shape).for_each(|(p, s)| *p = *s as i64);
        View { address, shape: padded, bytes }
    }
}

/// A temporary array and what it holds.
#[derive(Debug)]
pub(crate) struct Temp {
    pub array: ArrayId,
    /// The extents, padded with ones.
    pub shape: Extents,
    pub buffer: Buffer,
}

impl Temp {
    /// A temporary of zeros.
    pub fn zeroed(program: &Program, array: ArrayId, shape: &[usize], meter: &Arc<Meter>) -> Result<Temp> {
        let bytes = byte_count(shape, program.array(array).ty)?;
        let buffer = Buffer::zeroed(bytes, meter)?;
        let shape = View::new(buffer.address(), shape, bytes).shape;
        Ok(Temp { array, shape, buffer })
    }

    /// A temporary in memory that was used before: it holds anything until it is declared.
    pub fn reused(
        program: &Program,
        array: ArrayId,
        shape: &[usize],
        spare: &Spare,
        meter: &Arc<Meter>,
    ) -> Result<Temp> {
        let bytes = byte_count(shape, program.array(array).ty)?;
        let buffer = spare.take(bytes, meter)?;
        let shape = View::new(buffer.address(), shape, bytes).shape;
        Ok(Temp { array, shape, buffer })
    }

    /// The same, in the memory of this meter's device.
    pub fn moved_to(self, meter: &Arc<Meter>) -> Result<Temp> {
        if self.buffer.is_of(meter) { Ok(self) } else { self.try_clone(meter) }
    }

    /// A copy in memory of its own, on this meter's device.
    pub fn try_clone(&self, meter: &Arc<Meter>) -> Result<Temp> {
        let mut buffer = Buffer::zeroed(self.buffer.len(), meter)?;
        if self.buffer.is_of(meter) {
            buffer.copy_from(&self.buffer)?;
        } else {
            buffer.bytes_mut().copy_from_slice(self.buffer.bytes());
        }
        Ok(Temp { array: self.array, shape: self.shape, buffer })
    }
}

/// What one launch works on.
#[derive(Debug)]
pub struct Frame {
    /// All arrays by identifier.
    pub arrays: Vec<View>,
    /// The scalar arguments.
    pub arguments: Vec<Literal>,
    /// Values and locals that are known outside the piece of program that runs.
    pub scalars: Scalars,
    /// The tape of each array.
    pub tapes: Vec<TapePlaces>,
    /// By array: room for a copy of what a region may undo, null where there is none. Empty if no region undoes.
    pub kept: Vec<*mut u8>,
    /// What may ask the launch to stop.
    pub cancel: Option<Cancel>,
    /// Finished iterations of the outermost loop that runs, for who wants to know how far the launch is.
    pub done: Arc<AtomicI64>,
    /// What an executable that runs apart from the host keeps of the frame on its side. Who changes addresses, shapes or how
    /// much tapes hold, when nothing that was enqueued is still to run, takes it away; the executable makes it anew.
    pub aside: Option<Box<dyn Any + Send>>,
    /// The memory of temporaries, held for as long as their addresses are used.
    temps: Vec<Buffer>,
    /// Where the parameters that the program writes had their elements when the frame was made.
    homes: Vec<(ArrayId, *mut u8)>,
    /// The memory of `kept`.
    undo: Vec<Buffer>,
    /// How much memory there is, once arrays have changed their shapes.
    rooms: Rooms,
    /// All places on a tape have the same size: no host can change a shape.
    alike: bool,
}

/// Copies a buffer to a place of the launch with as many bytes; with a meter, what is there goes to the buffer.
fn move_home(own: &mut Buffer, home: *mut u8, exchanged: Option<&Arc<Meter>>) -> Result<()> {
    let Some(meter) = exchanged else {
        // SAFETY (*Bounds*, *Exclusive access*): `swap` exchanges arrays of one shape, and the launch holds written arrays
        // exclusively.
        return unsafe { own.copy_out(home) };
    };
    let mut there = Buffer::zeroed(own.len(), meter)?;
    // SAFETY (*Bounds*, *Exclusive access*): as above.
    unsafe { there.copy_in(home)? };
    // SAFETY (*Bounds*, *Exclusive access*): as above.
    unsafe { own.copy_out(home)? };
    own.copy_from(&there)
}

// SAFETY (*Liveness*, *Exclusive access*): a frame's addresses point into buffers that it owns or that its launch borrows for
// as long as it lives.
unsafe impl Send for Frame {}

impl Frame {
    /// A frame for one launch; `views` has the parameters, temporaries have memory that another launch left, or new one.
    pub(crate) fn new(
        program: &Program,
        views: Vec<View>,
        arguments: Vec<Literal>,
        spare: &Spare,
        meter: &Arc<Meter>,
    ) -> Result<Frame> {
        Frame::with(program, views, arguments, Scalars::of(program), Vec::new(), (spare, meter))
    }

    /// The extents of all arrays, [`Program::extents_per_array`] of each: the table that compiled code reads.
    pub fn extents(&self, program: &Program) -> Vec<i64> {
        let row = program.extents_per_array();
        self.arrays.iter().flat_map(|view| &view.shape[..row]).copied().collect()
    }

    /// A frame that continues with these scalars and temporaries; temporaries that are not among them are made.
    pub(crate) fn with(
        program: &Program,
        mut views: Vec<View>,
        arguments: Vec<Literal>,
        scalars: Scalars,
        held: Vec<Temp>,
        (spare, meter): (&Spare, &Arc<Meter>),
    ) -> Result<Frame> {
        let written = |a: &ArrayId| program.array(*a).role == Role::Param(Access::Write);
        let homes = program.array_ids().filter(written).map(|a| (a, views[a.index()].address)).collect();
        let mut temps = Vec::new();
        let mut place = |views: &mut Vec<View>, temp: Temp| {
            temp.buffer.hand_over(Handed::ForWriting)?;
            let (address, bytes) = (temp.buffer.address(), temp.buffer.len());
            views[temp.array.index()] = View { address, shape: temp.shape, bytes };
            temps.push(temp.buffer);
            Ok::<(), Error>(())
        };
        for temp in held {
            place(&mut views, temp)?;
        }
        for id in program.array_ids() {
            let decl = program.array(id);
            if let Role::Old(array) = decl.role {
                // Its address is set by each push; until then it is the array itself, of the same shape.
                views[id.index()] = views[array.index()];
            }
            if let Role::Tape(_) = decl.role {
                // Whoever pushes makes room before.
                views[id.index()] = View::new(std::ptr::null_mut(), &[0], 0);
            }
            if let Role::Temp(_) = decl.role
                && views[id.index()].address.is_null()
            {
                let shape = extents(program, id, &views, &arguments)?;
                place(&mut views, Temp::reused(program, id, &shape, spare, meter)?)?;
            }
        }
        let tapes = program.arrays.iter().map(|_| TapePlaces::default()).collect();
        Ok(Frame {
            arrays: views,
            arguments,
            scalars,
            tapes,
            kept: Vec::new(),
            cancel: None,
            done: Arc::default(),
            aside: None,
            temps,
            homes,
            undo: Vec::new(),
            rooms: Rooms::default(),
            alike: program.regions == 0,
        })
    }

    /// An error where the launch was asked to stop.
    pub fn go_on(&self, program: &Program) -> Result<()> {
        match &self.cancel {
            Some(cancel) if cancel.is_cancelled() => Err(Error::Cancelled { program: program.name.clone() }),
            _ => Ok(()),
        }
    }

    /// Makes room for copies of these arrays.
    pub(crate) fn reserve_undo(&mut self, arrays: &[ArrayId], meter: &Arc<Meter>) -> Result<()> {
        if !arrays.is_empty() {
            self.kept = vec![std::ptr::null_mut(); self.arrays.len()];
        }
        for array in arrays {
            let buffer = Buffer::zeroed(self.arrays[array.index()].bytes, meter)?;
            self.kept[array.index()] = buffer.address();
            self.undo.push(buffer);
        }
        Ok(())
    }

    /// The temporaries, each under the name that it has now.
    pub(crate) fn take_temps(&mut self, program: &Program) -> Vec<Temp> {
        let mut temps = Vec::with_capacity(self.temps.len());
        let count = if self.temps.is_empty() { 0 } else { program.arrays.len() };
        for array in program.array_ids().take(count) {
            let view = self.arrays[array.index()];
            if let Role::Temp(_) = program.array(array).role
                && let Some(at) = self.temps.iter().position(|buffer| buffer.address() == view.address)
            {
                temps.push(Temp { array, shape: view.shape, buffer: self.temps.swap_remove(at) });
            }
        }
        temps
    }

    /// After a `swap` with a temporary, a parameter has its elements in memory of the frame: brings them back to that of the
    /// caller. What the temporary has goes the other way, if it is `wanted` still. Nothing runs. Says whether anything moved.
    pub(crate) fn return_home(&mut self, meter: &Arc<Meter>, wanted: bool) -> Result<bool> {
        let address = |frame: &Frame, a: &ArrayId| frame.arrays[a.index()].address;
        let is_home = |frame: &Frame, place: *mut u8| frame.homes.iter().any(|(_, home)| *home == place);
        let away: Vec<ArrayId> =
            self.homes.iter().map(|(a, _)| *a).filter(|a| !is_home(self, address(self, a))).collect();
        let mut moved = Ok(!away.is_empty());
        for a in away {
            // As many homes are free as parameters are away, and temporaries have their elements there.
            let free = |home: &*mut u8| !self.homes.iter().any(|(b, _)| address(self, b) == *home);
            let Some(home) = self.homes.iter().map(|(_, home)| *home).find(free) else { break };
            let away = address(self, &a);
            if let Some(guest) = self.arrays.iter_mut().find(|view| view.address == home) {
                guest.address = away;
            }
            self.arrays[a.index()].address = home;
            self.aside = None;
            if let Some(own) = self.temps.iter_mut().find(|buffer| buffer.address() == away) {
                let copied = move_home(own, home, wanted.then_some(meter));
                moved = moved.and_then(|moved| copied.map(|()| moved));
            }
        }
        moved
    }

    /// Leaves the memory of temporaries for the next launch, in place of what is there.
    pub(crate) fn leave_temps(&mut self, spare: &Spare) {
        spare.release();
        spare.give(std::mem::take(&mut self.temps));
    }

    /// Leaves all memory that the frame owns for another launch.
    pub(crate) fn leave(self, spare: &Spare) {
        spare.give(self.temps);
        for tape in self.tapes {
            let alike = tape.buffers.windows(2).all(|pair| pair[0].len() == pair[1].len());
            if alike { spare.give_alike(tape.buffers) } else { spare.give(tape.buffers) }
        }
    }

    /// What an array holds, where the device computes in host memory and nothing runs.
    pub(crate) fn bytes(&self, array: ArrayId) -> &[u8] {
        let view = self.arrays[array.index()];
        if view.bytes == 0 {
            return &[];
        }
        // SAFETY (*Liveness*, *Bounds*): a view's memory is owned or borrowed by the launch and has `bytes` bytes.
        unsafe { std::slice::from_raw_parts(view.address, view.bytes) }
    }

    /// What an array holds, to be written: as for [`Frame::bytes`].
    pub(crate) fn bytes_mut(&mut self, array: ArrayId) -> &mut [u8] {
        let view = self.arrays[array.index()];
        if view.bytes == 0 {
            return &mut [];
        }
        // SAFETY (*Bounds*, *Exclusive access*): as above; the launch holds written arrays exclusively, and temporaries are the
        // frame's own.
        unsafe { std::slice::from_raw_parts_mut(view.address, view.bytes) }
    }

    /// Copies an array to a buffer of its size.
    pub(crate) fn copy_to(&self, array: ArrayId, buffer: &mut Buffer) -> Result<()> {
        let view = self.arrays[array.index()];
        buffer.of_size(view.bytes)?;
        // SAFETY (*Liveness*, *Bounds*): a view's memory is owned or borrowed by the launch and has `bytes` bytes, as the
        // buffer has (checked above); buffers of slots are neither.
        unsafe { buffer.copy_in(view.address) }
    }

    /// An error where the memory at an address of this array, or of a place on its tape, is not as much as a buffer has.
    fn has_room(&self, address: *mut u8, array: ArrayId, buffer: &Buffer) -> Result<()> {
        match self.room(address, &self.arrays[array.index()]) {
            room if room >= buffer.len() => Ok(()),
            room => buffer.of_size(room),
        }
    }

    /// Copies a buffer of its size to an array.
    pub(crate) fn copy_from(&mut self, array: ArrayId, buffer: &Buffer) -> Result<()> {
        let view = self.arrays[array.index()];
        buffer.of_size(view.bytes)?;
        // SAFETY (*Liveness*, *Bounds*): as for `copy_to`; (*Exclusive access*): the launch holds written arrays exclusively,
        // and temporaries are the frame's own.
        unsafe { buffer.copy_out(view.address) }
    }
}
