//! Memory of devices: the seam between arrays and what a device stores them in.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::fmt;
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::error::{Error, Result};
use crate::memory::shared::Shared;

/// Every buffer starts at a multiple of this many bytes.
pub const ALIGNMENT: usize = 64;

/// Memory that the host cannot touch. All that is asked of it happens in the order in which it was asked, also
/// relative to the launches of its device; only [`Memory::download`] waits.
///
/// # Safety
///
/// Whoever implements this promises
/// - *Allocation*: [`Memory::allocate`] and [`Memory::pin`] give memory of at least as many bytes as were asked for, zeroed,
///   aligned to [`ALIGNMENT`], that nothing else has until it is freed; what `pin` gives, the host can read and write;
/// - *Copies*: as many bytes are copied as were asked for, none elsewhere, and a copy has ended where its method, or
///   [`Carried`], says so;
/// - *Ends*: when [`Memory::finish`] has returned without an error, nothing that was asked for before touches memory.
pub unsafe trait Memory: fmt::Debug + Send + Sync {
    /// The bytes that could still be had, where the device says.
    fn free_bytes(&self) -> Option<u64> {
        None
    }

    /// How other libraries name it, where they can use it in place.
    fn shared(&self) -> Option<Shared> {
        None
    }

    /// Waits for all that was asked for.
    fn finish(&self) -> Result<()> {
        Ok(())
    }

    /// Waits for all that anybody asked of the device, other libraries included.
    fn finish_of_all(&self) -> Result<()> {
        self.finish()
    }

    /// Zeroed memory, aligned to [`ALIGNMENT`].
    fn allocate(&self, bytes: usize) -> Result<NonNull<u8>>;

    /// Gives memory back that [`Memory::allocate`] gave.
    ///
    /// # Safety
    ///
    /// *Liveness*: the address came from `allocate` with as many bytes and is not used after this, except by what
    /// was asked for before.
    unsafe fn free(&self, address: NonNull<u8>, bytes: usize);

    /// Copies between two places of this memory.
    ///
    /// # Safety
    ///
    /// *Bounds*: both places have this many bytes; they do not overlap.
    unsafe fn copy(&self, from: *const u8, to: *mut u8, bytes: usize) -> Result<()>;

    /// Copies from the host; the bytes may be changed as soon as it returns.
    ///
    /// # Safety
    ///
    /// *Bounds*: there is room for all of them.
    unsafe fn upload(&self, from: &[u8], to: *mut u8) -> Result<()>;

    /// Copies to the host, and waits for it.
    ///
    /// # Safety
    ///
    /// *Bounds*: there are as many.
    unsafe fn download(&self, from: *const u8, to: &mut [u8]) -> Result<()>;

    /// Memory of the host that [`Memory::carry_out`] and [`Memory::carry_in`] know best.
    fn pin(&self, bytes: usize) -> Result<NonNull<u8>> {
        Ok(HostMemory::zeroed(bytes)?.into_raw())
    }

    /// Gives memory back that [`Memory::pin`] gave.
    ///
    /// # Safety
    ///
    /// *Liveness*: the address came from `pin` with as many bytes, and every copy that uses it has ended.
    unsafe fn unpin(&self, address: NonNull<u8>, bytes: usize) {
        // SAFETY (*Liveness*): by the caller's promise.
        drop(unsafe { HostMemory::from_raw(address, bytes) });
    }

    /// Copies pieces to memory that [`Memory::pin`] gave, after all that was asked for before. What is asked for later
    /// need not wait for it; but this and [`Memory::carry_in`] happen in the order in which they were asked for.
    ///
    /// # Safety
    ///
    /// *Bounds*, and *Liveness*: both sides stay as they are until the copy has ended, except by what was asked for before.
    unsafe fn carry_out(&self, pieces: &[Piece]) -> Result<Arc<dyn Carried>> {
        for (from, to, bytes) in pieces {
            // SAFETY (*Bounds*, *Liveness*): by the caller's promise; pinned memory has as many bytes.
            unsafe { self.download(*from, std::slice::from_raw_parts_mut(*to, *bytes))? };
        }
        Ok(Arc::new(Over))
    }

    /// Copies pieces from memory that [`Memory::pin`] gave; else as [`Memory::carry_out`].
    ///
    /// # Safety
    ///
    /// As for [`Memory::carry_out`].
    unsafe fn carry_in(&self, pieces: &[Piece]) -> Result<Arc<dyn Carried>> {
        for (from, to, bytes) in pieces {
            // SAFETY (*Bounds*, *Liveness*): by the caller's promise; pinned memory has as many bytes.
            unsafe { self.upload(std::slice::from_raw_parts(*from, *bytes), *to)? };
        }
        Ok(Arc::new(Over))
    }
}

/// What is copied: from where, to where, how many bytes.
pub type Piece = (*const u8, *mut u8, usize);

/// A copy between a device and the host that continues beside other work.
///
/// # Safety
///
/// *Liveness*: the memory of a copy is used by others when [`Carried::is_over`] said `true` or [`Carried::wait`] returned
/// without an error: nothing touches it for this copy then.
pub unsafe trait Carried: Send + Sync {
    /// Has it ended?
    fn is_over(&self) -> Result<bool>;

    /// Waits for its end.
    fn wait(&self) -> Result<()>;

    /// What is asked of the device from now on happens after it; the host continues.
    fn hold(&self) -> Result<()>;
}

/// A copy that ended before anybody could ask.
struct Over;

// SAFETY (*Liveness*): the copy had ended before this was made.
unsafe impl Carried for Over {
    fn is_over(&self) -> Result<bool> {
        Ok(true)
    }

    fn wait(&self) -> Result<()> {
        Ok(())
    }

    fn hold(&self) -> Result<()> {
        Ok(())
    }
}

/// Memory of the host: zeroed and its own, or another owner's.
#[derive(Debug)]
pub(crate) struct HostMemory {
    start: NonNull<u8>,
    bytes: usize,
    /// Keeps memory alive that was not allocated here, and frees it by its own drop.
    owner: Option<Owner>,
}

/// What keeps foreign memory alive.
pub(crate) struct Owner {
    _kept: Box<dyn std::any::Any + Send + Sync>,
}

impl Owner {
    pub fn new(kept: Box<dyn std::any::Any + Send + Sync>) -> Owner {
        Owner { _kept: kept }
    }
}

impl fmt::Debug for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Owner")
    }
}

// SAFETY (*Exclusive access*): it owns its memory alone; access goes through its owner's borrows.
unsafe impl Send for HostMemory {}
// SAFETY (*Exclusive access*): as above.
unsafe impl Sync for HostMemory {}

impl HostMemory {
    pub fn zeroed(bytes: usize) -> Result<HostMemory> {
        let too_large = || Error::OutOfMemory { bytes };
        let layout = Layout::from_size_align(bytes.max(1), ALIGNMENT).map_err(|_| too_large())?;
        // SAFETY (*Allocation*): the layout has a size of at least one byte.
        let start = NonNull::new(unsafe { alloc_zeroed(layout) }).ok_or_else(too_large)?;
        Ok(HostMemory { start, bytes, owner: None })
    }

    /// Memory that `owner` keeps alive.
    ///
    /// # Safety
    ///
    /// As for [`AnyArray::from_foreign`](crate::AnyArray::from_foreign).
    pub unsafe fn foreign(start: NonNull<u8>, bytes: usize, owner: Owner) -> HostMemory {
        HostMemory { start, bytes, owner: Some(owner) }
    }

    pub fn address(&self) -> *mut u8 {
        self.start.as_ptr()
    }

    /// The address, for whoever makes it a `HostMemory` again.
    pub fn into_raw(self) -> NonNull<u8> {
        std::mem::ManuallyDrop::new(self).start
    }

    /// What [`HostMemory::into_raw`] gave away.
    ///
    /// # Safety
    ///
    /// *Liveness*: the address came from `into_raw` of memory with as many bytes, which nothing else owns.
    pub unsafe fn from_raw(start: NonNull<u8>, bytes: usize) -> HostMemory {
        HostMemory { start, bytes, owner: None }
    }

    /// The bytes, to be written.
    fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY (*Bounds*, *Liveness*): `start` heads an allocation of at least `bytes` initialised bytes that
        // lives as long as `self`, which is exclusive here.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.bytes) }
    }
}

impl Drop for HostMemory {
    fn drop(&mut self) {
        if self.owner.is_some() {
            return;
        }
        if let Ok(layout) = Layout::from_size_align(self.bytes.max(1), ALIGNMENT) {
            // SAFETY (*Liveness*): `start` came from `alloc_zeroed` with this very layout and is freed once, here.
            unsafe { dealloc(self.start.as_ptr(), layout) }
        }
    }
}

/// What the host sees of a piece of device memory: a copy, brought up to date when it is looked at.
#[derive(Debug, Default)]
pub(crate) struct Mirror {
    state: Mutex<Reflection>,
}

#[derive(Debug, Default)]
struct Reflection {
    /// Made when the host first looks.
    copy: Option<HostMemory>,
    newest: Newest,
}

/// Which side was written last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Newest {
    /// Neither: all is zero.
    #[default]
    Zero,
    Same,
    Host,
    Device,
}

impl Mirror {
    /// Of memory that something was written to already.
    pub fn of_contents() -> Mirror {
        Mirror { state: Mutex::new(Reflection { copy: None, newest: Newest::Device }) }
    }

    fn lock(&self) -> MutexGuard<'_, Reflection> {
        // A failed copy leaves the state as it was.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The address of a copy that is up to date, of `bytes` bytes like the device's.
    ///
    /// The copy is changed only where the device was written since, for which it takes exclusive access: what was
    /// borrowed from it before is no longer borrowed then.
    pub fn up_to_date(&self, memory: &dyn Memory, device: NonNull<u8>, bytes: usize) -> Result<*mut u8> {
        let mut state = self.lock();
        let newest = state.newest;
        let copy = match &mut state.copy {
            Some(copy) => copy,
            none => none.insert(HostMemory::zeroed(bytes)?),
        };
        let address = copy.address();
        if newest == Newest::Device {
            // SAFETY (*Bounds*): the device's memory has `bytes` bytes, as the copy has.
            unsafe { memory.download(device.as_ptr(), copy.bytes_mut())? };
            state.newest = Newest::Same;
        }
        Ok(address)
    }

    /// The host will write the copy.
    pub fn host_writes(&self) {
        self.lock().newest = Newest::Host;
    }

    /// The host will write all of the copy: what the device has need not be seen.
    pub fn host_overwrites(&self) {
        self.lock().newest = Newest::Same;
    }

    /// The device will read its memory, and write it if `writes`.
    pub fn hand_over(&self, memory: &dyn Memory, device: NonNull<u8>, access: Handed) -> Result<()> {
        let mut state = self.lock();
        if let (Newest::Host, Some(copy)) = (state.newest, &mut state.copy) {
            // SAFETY (*Bounds*): the device's memory has as many bytes as the copy.
            unsafe { memory.upload(copy.bytes_mut(), device.as_ptr())? };
            state.newest = Newest::Same;
        }
        if access == Handed::ForWriting {
            state.newest = Newest::Device;
        }
        Ok(())
    }
}

/// What a device will do with memory that is handed to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Handed {
    /// Read it.
    ForReading,
    /// Write it, or read and write it.
    ForWriting,
}

#[cfg(test)]
mod tests {
    use ebbtide_ir::{Access, Builder, Literal, Type};

    use super::*;
    use crate::testing::{FakeMemory, Travel, device_with_memory};
    use crate::{Arg, Compiled, interpreter};

    #[test]
    fn arrays_travel_only_when_the_other_side_wrote_and_this_side_looks() {
        let far = FakeMemory::new(Travel::AtOnce);
        let device = device_with_memory("far", far.clone(), &interpreter());
        let counts = || (far.uploads(), far.downloads());
        let mut b = Builder::new("p");
        let x = b.array("x", Type::F64, 1, Access::Write);
        let y = b.array("y", Type::F64, 1, Access::Write);
        let three = b.literal(Literal::from(3.0));
        b.fill(x, three);
        b.swap(x, y);
        let compiled = Compiled::new(&b.finish().unwrap(), &device).unwrap();
        let mut x = device.array(&[1.0, 2.0]).unwrap();
        let mut y = device.zeros::<f64, 1>([2]).unwrap();
        assert_eq!(counts(), (0, 0), "nobody needed them elsewhere yet");
        for _ in 0..2 {
            let _done = compiled.launch(vec![Arg::Write(x.any_mut()), Arg::Write(y.any_mut())]).unwrap();
        }
        assert_eq!(counts(), (1, 0), "`x` was written by the host once, `y` never");
        assert_eq!((x.to_vec(), y.to_vec(), y.to_vec()), (vec![3.0; 2], vec![3.0; 2], vec![3.0; 2]));
        assert_eq!(counts(), (1, 2));
        let copy = y.try_clone().unwrap();
        assert_eq!((copy.to_vec(), counts()), (vec![3.0; 2], (1, 3)), "copies are made where the array is");
        x.fill(7.0).unwrap();
        y.copy_from(&x).unwrap();
        assert_eq!((y.to_vec(), counts()), (vec![7.0; 2], (2, 4)));
        assert_eq!(device.meter().live(), 3 * 16);
    }

    #[test]
    fn memory_of_the_device_that_others_own_is_used_in_place() {
        let far = FakeMemory::new(Travel::AtOnce);
        let device = device_with_memory("far", far.clone(), &interpreter());
        let mut b = Builder::new("p");
        let [x, y] = ["x", "y"].map(|name| b.array(name, Type::F64, 1, Access::Write));
        let three = b.literal(Literal::from(3.0));
        b.fill(x, three);
        b.swap(x, y);
        let compiled = Compiled::new(&b.finish().unwrap(), &device).unwrap();
        let (mut theirs, owner) = ([[1.0, 2.0], [5.0, 6.0]], Arc::new(()));
        let starts =
            theirs.each_mut().map(|elements| NonNull::new(elements.as_mut_ptr()).unwrap().cast::<u8>());
        // SAFETY: the elements exist until the arrays are gone, and nothing else looks at them.
        let mut arrays = starts.map(|start| unsafe {
            let owner = Box::new(owner.clone());
            crate::AnyArray::from_foreign_on_device(&device, Type::F64, &[2], start, owner).unwrap()
        });
        let _done =
            compiled.launch(arrays.iter_mut().map(|array| Arg::Write(array.any_mut())).collect()).unwrap();
        let [first, second] = &mut arrays;
        let homes = starts.map(|start| start.as_ptr().cast_const());
        crate::return_contents(&mut [first, second], &homes).unwrap();
        assert_eq!((far.uploads(), far.downloads(), far.waits()), (0, 0, 0), "nothing travels");
        assert_eq!(arrays[0].as_slice::<f64>(), Some(&[5.0, 6.0][..]), "the host sees what the device has");
        drop(arrays);
        let left = (Arc::strong_count(&owner), far.waits(), device.meter().live());
        assert_eq!(left, (1, 2, 0), "the device is waited for before an owner goes");
        assert_eq!(theirs, [[5.0, 6.0], [3.0, 3.0]]);
    }
}
