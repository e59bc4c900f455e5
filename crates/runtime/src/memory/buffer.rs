//! Memory that arrays live in: aligned, zeroed, counted.

use std::ptr::NonNull;
use std::sync::Arc;

use crate::error::Error;
use crate::memory::device_memory::{Handed, HostMemory, Memory, Mirror, Owner};
use crate::memory::meter::Meter;

/// A zeroed piece of memory of a device, aligned to [`ALIGNMENT`](crate::ALIGNMENT).
///
/// Where the host cannot touch that memory, the host sees a copy: it is brought up to date when the host looks after
/// the device wrote, and sent when the device is handed the buffer after the host wrote.
#[derive(Debug)]
pub struct Buffer {
    place: Place,
    bytes: usize,
    meter: Arc<Meter>,
}

#[derive(Debug)]
enum Place {
    Host(HostMemory),
    Device {
        memory: Arc<dyn Memory>,
        start: NonNull<u8>,
        /// Apart, so that buffers of the host are small.
        mirror: Box<Mirror>,
        /// Keeps memory alive that was not allocated here, and frees it by its own drop.
        owner: Option<Owner>,
    },
}

// SAFETY (*Exclusive access*): a buffer owns its memory alone; shared access to the bytes goes through `&self`, exclusive access
// through `&mut self`, as for a `Vec<u8>`.
unsafe impl Send for Buffer {}
// SAFETY (*Exclusive access*): as above.
unsafe impl Sync for Buffer {}

impl Buffer {
    /// A zeroed buffer, counted by `meter`, in the memory of its device.
    pub fn zeroed(bytes: usize, meter: &Arc<Meter>) -> Result<Buffer, Error> {
        if !meter.allows(bytes as u64) {
            return Err(Error::OutOfMemory { bytes });
        }
        let place = match &meter.memory {
            None => Place::Host(HostMemory::zeroed(bytes)?),
            Some(memory) => {
                let start = memory.allocate(bytes)?;
                Place::Device { memory: memory.clone(), start, mirror: Box::default(), owner: None }
            }
        };
        meter.add(bytes as u64);
        Ok(Buffer { place, bytes, meter: meter.clone() })
    }

    /// A buffer in memory of the host that exists already.
    pub(crate) fn of_host(memory: HostMemory, bytes: usize, meter: &Arc<Meter>) -> Buffer {
        meter.add(bytes as u64);
        Buffer { place: Place::Host(memory), bytes, meter: meter.clone() }
    }

    /// A buffer in memory of a device that exists already and that `owner` keeps alive.
    ///
    /// # Safety
    ///
    /// As for [`AnyArray::from_foreign_on_device`](crate::AnyArray::from_foreign_on_device).
    pub(crate) unsafe fn of_device(
        memory: Arc<dyn Memory>,
        start: NonNull<u8>,
        bytes: usize,
        owner: Owner,
        meter: &Arc<Meter>,
    ) -> Buffer {
        meter.add(bytes as u64);
        let place =
            Place::Device { memory, start, mirror: Box::new(Mirror::of_contents()), owner: Some(owner) };
        Buffer { place, bytes, meter: meter.clone() }
    }

    /// Is it in the memory that this meter counts?
    pub(crate) fn is_of(&self, meter: &Arc<Meter>) -> bool {
        Arc::ptr_eq(&self.meter, meter)
    }

    /// The number of bytes.
    pub fn len(&self) -> usize {
        self.bytes
    }

    /// Is it empty?
    pub fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// The address at which the host sees the bytes.
    fn seen(&self) -> *mut u8 {
        match &self.place {
            Place::Host(memory) => memory.address(),
            Place::Device { memory, start, mirror, .. } => {
                match mirror.up_to_date(memory.as_ref(), *start, self.bytes) {
                    Ok(address) => address,
                    // A slice cannot say that there is nothing to see; a wrong one would be worse.
                    Err(error) => panic!("what the device wrote cannot be read: {error}"),
                }
            }
        }
    }

    /// The bytes, as the host sees them.
    ///
    /// # Panics
    ///
    /// If the device that holds them was lost.
    pub fn bytes(&self) -> &[u8] {
        // SAFETY (*Bounds*, *Liveness*): `seen` heads an allocation of at least `bytes` initialised bytes that
        // lives as long as `self`; *Exclusive access*: writers need `&mut self`, and a device that writes is handed
        // the buffer by who holds it exclusively.
        unsafe { std::slice::from_raw_parts(self.seen(), self.bytes) }
    }

    /// The bytes, to be written.
    ///
    /// # Panics
    ///
    /// If the device that holds them was lost.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        let seen = self.seen();
        if let Place::Device { mirror, .. } = &self.place {
            mirror.host_writes();
        }
        // SAFETY (*Bounds*, *Liveness*, *Exclusive access*): as for `bytes`, and `&mut self` is exclusive.
        unsafe { std::slice::from_raw_parts_mut(seen, self.bytes) }
    }

    /// The bytes, all of which will be written: they hold anything.
    pub(crate) fn bytes_to_overwrite(&mut self) -> &mut [u8] {
        if let Place::Device { mirror, .. } = &self.place {
            mirror.host_overwrites();
        }
        self.bytes_mut()
    }

    /// The address of the first byte, for compiled code.
    pub fn address(&self) -> *mut u8 {
        match &self.place {
            Place::Host(memory) => memory.address(),
            Place::Device { start, .. } => start.as_ptr(),
        }
    }

    /// Makes what the host wrote known to the device, before a launch that uses the buffer. Who hands it over for
    /// writing holds it exclusively until the launch has ended.
    pub(crate) fn hand_over(&self, access: Handed) -> Result<(), Error> {
        match &self.place {
            Place::Host(_) => Ok(()),
            Place::Device { memory, start, mirror, .. } => mirror.hand_over(memory.as_ref(), *start, access),
        }
    }

    /// Replaces the bytes by those of another buffer of the same device and length, which were handed over.
    pub(crate) fn copy_from(&mut self, other: &Buffer) -> Result<(), Error> {
        self.of_size(other.bytes)?;
        other.hand_over(Handed::ForReading)?;
        // SAFETY (*Bounds*): the other has as many bytes (checked above); two buffers do not overlap.
        unsafe { self.copy_in(other.address()) }
    }

    /// Exchanges the bytes with those of another buffer of the same device and length: each stays where it is.
    pub(crate) fn exchange(&mut self, other: &mut Buffer) -> Result<(), Error> {
        self.of_size(other.bytes)?;
        match (&self.place, &other.place) {
            (Place::Device { .. }, Place::Device { .. }) => {
                let mut between = Buffer::zeroed(self.bytes, &self.meter)?;
                between.copy_from(self)?;
                self.copy_from(other)?;
                other.copy_from(&between)
            }
            _ => {
                self.bytes_mut().swap_with_slice(other.bytes_mut());
                Ok(())
            }
        }
    }

    /// An error where the buffer does not have this many bytes.
    pub(crate) fn of_size(&self, bytes: usize) -> Result<(), Error> {
        match self.bytes == bytes {
            true => Ok(()),
            false => Err(Error::WrongSize { needed: bytes, found: self.bytes }),
        }
    }

    /// Replaces the bytes by those at an address of the same device.
    ///
    /// # Safety
    ///
    /// *Bounds*: there are as many bytes as the buffer has, outside of it.
    pub(crate) unsafe fn copy_in(&mut self, from: *const u8) -> Result<(), Error> {
        match &self.place {
            Place::Host(memory) => {
                // SAFETY (*Bounds*): by the caller's promise; `&mut self` is exclusive.
                unsafe { std::ptr::copy_nonoverlapping(from, memory.address(), self.bytes) };
                Ok(())
            }
            Place::Device { memory, start, mirror, .. } => {
                mirror.hand_over(memory.as_ref(), *start, Handed::ForWriting)?;
                // SAFETY (*Bounds*): by the caller's promise.
                unsafe { memory.copy(from, start.as_ptr(), self.bytes) }
            }
        }
    }

    /// Replaces the first bytes by those at an address of the same device.
    ///
    /// # Safety
    ///
    /// *Bounds*: there are this many bytes, outside of the buffer, which has at least as many.
    pub(crate) unsafe fn copy_start_in(&mut self, from: *const u8, bytes: usize) -> Result<(), Error> {
        match &self.place {
            Place::Host(memory) => {
                // SAFETY (*Bounds*): by the caller's promise; `&mut self` is exclusive.
                unsafe { std::ptr::copy_nonoverlapping(from, memory.address(), bytes) };
                Ok(())
            }
            Place::Device { memory, start, mirror, .. } => {
                mirror.hand_over(memory.as_ref(), *start, Handed::ForWriting)?;
                // SAFETY (*Bounds*): by the caller's promise.
                unsafe { memory.copy(from, start.as_ptr(), bytes) }
            }
        }
    }

    /// Copies the bytes to an address of the same device.
    ///
    /// # Safety
    ///
    /// *Bounds*: there is room for as many bytes as the buffer has, outside of it.
    pub(crate) unsafe fn copy_out(&self, to: *mut u8) -> Result<(), Error> {
        match &self.place {
            Place::Host(memory) => {
                // SAFETY (*Bounds*): by the caller's promise.
                unsafe { std::ptr::copy_nonoverlapping(memory.address(), to, self.bytes) };
                Ok(())
            }
            Place::Device { memory, start, mirror, .. } => {
                mirror.hand_over(memory.as_ref(), *start, Handed::ForReading)?;
                // SAFETY (*Bounds*): by the caller's promise.
                unsafe { memory.copy(start.as_ptr(), to, self.bytes) }
            }
        }
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        self.meter.subtract(self.bytes as u64);
        match &self.place {
            Place::Host(_) => {}
            Place::Device { memory, start, owner: None, .. } => {
                // SAFETY (*Liveness*): it came from `allocate` with as many bytes and is freed once, here.
                unsafe { memory.free(*start, self.bytes) }
            }
            // Its owner may free it by means of its own, which know nothing of what was asked for here.
            Place::Device { memory, owner: Some(_), .. } => {
                if let Err(error) = memory.finish() {
                    tracing::warn!("{error}");
                }
            }
        }
    }
}
