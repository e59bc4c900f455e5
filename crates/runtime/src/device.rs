//! Devices: cheap handles on what runs programs.

use std::fmt;
use std::sync::Arc;

use ebbtide_ir::{Block, Facts, Outcome, Place, Program};

use crate::array::{Array, Element};
use crate::buffer::Meter;
use crate::error::Result;
use crate::frame::Frame;

/// What a device must be able to do.
pub trait Backend: Send + Sync {
    /// Its name, as `EBBTIDE_DEVICE` takes it.
    fn name(&self) -> &str;

    /// Compiles a verified program: `segments` are the blocks that will be run in one go each.
    fn compile(
        &self,
        program: &Arc<Program>,
        facts: &Arc<Facts>,
        segments: &[&Block],
    ) -> Result<Arc<dyn Executable>>;
}

/// Where a segment begins to run.
#[derive(Clone, Copy, Debug)]
pub enum Start<'a> {
    /// At its beginning.
    Beginning,
    /// At a region that yielded before.
    At(&'a Place),
}

/// A program compiled for a device.
pub trait Executable: Send + Sync {
    /// The generated source, where there is one.
    fn source(&self) -> Option<&str>;

    /// Runs one segment on a frame.
    fn run(&self, segment: usize, frame: &mut Frame, start: Start<'_>) -> Result<Outcome>;
}

/// A handle on a device; clones are handles on the same one.
#[derive(Clone)]
pub struct Device {
    backend: Arc<dyn Backend>,
    meter: Arc<Meter>,
}

impl Device {
    /// A device on this back end.
    pub fn new(backend: Arc<dyn Backend>) -> Device {
        crate::trace::begin();
        Device { backend, meter: Arc::default() }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        self.backend.name()
    }

    /// The back end.
    pub fn backend(&self) -> &Arc<dyn Backend> {
        &self.backend
    }

    /// Counts the memory that the arrays of this device hold.
    pub fn meter(&self) -> &Arc<Meter> {
        &self.meter
    }

    /// An array of zeros.
    pub fn zeros<T: Element, const R: usize>(&self, shape: [usize; R]) -> Result<Array<T, R>> {
        Array::zeros_on(self, shape)
    }

    /// An array of rank 1 with these elements.
    pub fn array<T: Element>(&self, elements: &[T]) -> Result<Array<T, 1>> {
        Array::from_slice_on(self, [elements.len()], elements)
    }

    /// An array of this shape with these elements, last dimension fastest.
    pub fn array_with_shape<T: Element, const R: usize>(
        &self,
        shape: [usize; R],
        elements: &[T],
    ) -> Result<Array<T, R>> {
        Array::from_slice_on(self, shape, elements)
    }

    /// An array of rank 0 with this element.
    pub fn scalar<T: Element>(&self, value: T) -> Result<Array<T, 0>> {
        Array::from_slice_on(self, [], &[value])
    }

    /// Is it the same device?
    pub fn same(&self, other: &Device) -> bool {
        Arc::ptr_eq(&self.backend, &other.backend)
    }
}

impl fmt::Debug for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Device({})", self.name())
    }
}
