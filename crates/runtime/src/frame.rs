//! What compiled code works on: addresses, shapes, scalars, tapes.

use std::sync::Arc;

use ebbtide_ir::{ArrayId, Literal, Program, Role, Scalars};

use crate::arguments::extents;
use crate::buffer::{Buffer, Meter};
use crate::error::{Error, Result};

/// One array as compiled code sees it.
#[derive(Clone, Copy, Debug)]
pub struct View {
    /// The address of the first element.
    pub address: *mut u8,
    /// The extents, padded with ones.
    pub shape: [i64; 4],
    /// The number of bytes.
    pub bytes: usize,
}

impl View {
    /// A view of nothing.
    pub const EMPTY: View = View { address: std::ptr::null_mut(), shape: [1; 4], bytes: 0 };

    /// A view of memory in this shape.
    pub fn new(address: *mut u8, shape: &[usize], bytes: usize) -> View {
        let mut padded = [1; 4];
        padded.iter_mut().zip(shape).for_each(|(p, s)| *p = *s as i64);
        View { address, shape: padded, bytes }
    }
}

/// The tape of one array: places of the array's size, and how many of them hold something.
#[derive(Debug, Default)]
pub struct TapePlaces {
    /// The memory. Pushing exchanges an array's memory with that of a place, so places own memory in turn.
    buffers: Vec<Buffer>,
    /// The addresses, in the order of pushes.
    pub places: Vec<*mut u8>,
    /// How many of them hold something.
    pub depth: usize,
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
    /// The memory of temporaries, held for as long as their addresses are used.
    _temps: Vec<Buffer>,
}

// SAFETY: a frame's addresses point into buffers that it owns or that its launch borrows for as long as it lives.
unsafe impl Send for Frame {}

impl Frame {
    /// A frame for one launch; `views` has the parameters, temporaries are allocated here.
    pub(crate) fn new(
        program: &Program,
        mut views: Vec<View>,
        arguments: Vec<Literal>,
        meter: &Arc<Meter>,
    ) -> Result<Frame> {
        let mut temps = Vec::new();
        for id in program.array_ids() {
            let decl = program.array(id);
            if let Role::Old(array) = decl.role {
                // Its address is set by each push; its shape is the array's.
                views[id.index()] = View { address: std::ptr::null_mut(), ..views[array.index()] };
            }
            if let Role::Temp(_) = decl.role {
                let shape = extents(program, id, &views, &arguments)?;
                let bytes = shape
                    .iter()
                    .try_fold(decl.ty.size(), |bytes, extent| bytes.checked_mul(*extent))
                    .filter(|bytes| *bytes < isize::MAX as usize / 2)
                    .ok_or_else(|| Error::TooLarge { shape: shape.clone() })?;
                let buffer = Buffer::zeroed(bytes, meter)?;
                views[id.index()] = View::new(buffer.address(), &shape, bytes);
                temps.push(buffer);
            }
        }
        let scalars =
            Scalars { values: vec![0; program.values.len()], locals: vec![0; program.locals.len()] };
        let tapes = program.arrays.iter().map(|_| TapePlaces::default()).collect();
        Ok(Frame { arrays: views, arguments, scalars, tapes, _temps: temps })
    }

    /// Makes room for `count` more pushes of an array.
    pub fn reserve_tape(&mut self, array: ArrayId, count: usize, meter: &Arc<Meter>) -> Result<()> {
        let bytes = self.arrays[array.index()].bytes;
        let tape = &mut self.tapes[array.index()];
        while tape.places.len() < tape.depth + count {
            let buffer = Buffer::zeroed(bytes, meter)?;
            tape.places.push(buffer.address());
            tape.buffers.push(buffer);
        }
        Ok(())
    }

    /// The bytes of an array.
    pub fn bytes(&self, array: ArrayId) -> &[u8] {
        let view = self.arrays[array.index()];
        // SAFETY (*Liveness*, *Bounds*): a view's memory is owned or borrowed by the launch and has `bytes` bytes.
        unsafe { std::slice::from_raw_parts(view.address, view.bytes) }
    }

    /// The bytes of an array, to be written.
    pub fn bytes_mut(&mut self, array: ArrayId) -> &mut [u8] {
        let view = self.arrays[array.index()];
        // SAFETY: as above; the launch holds written arrays exclusively, and temporaries are the frame's own.
        unsafe { std::slice::from_raw_parts_mut(view.address, view.bytes) }
    }
}
