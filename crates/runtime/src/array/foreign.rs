//! Arrays in memory that others own: NumPy's, a C library's, PyTorch's on a GPU.
//!
//! Input: an address, a shape, and an owner whose drop may free the memory. Output: an [`AnyArray`] that programs use in
//! place. Invariant: the array never frees the memory and never uses it after its owner is dropped.

use std::any::Any;
use std::ptr::NonNull;

use ebbtide_ir::Type;

use crate::array::any_array::AnyArray;
use crate::device::Device;
use crate::error::{Error, Result};
use crate::memory::buffer::Buffer;
use crate::memory::byte_count::byte_count;
use crate::memory::device_memory::{HostMemory, Owner};

impl AnyArray {
    /// An array in memory that exists already, elements in C order. `owner` is dropped with the array.
    ///
    /// A device with memory of its own cannot use it in place: that is an error, not a copy. So is an address that is not
    /// aligned to the element.
    ///
    /// A `swap` in a program exchanges the memory of arrays, also of these: [`return_contents`] moves the contents back.
    ///
    /// # Safety
    ///
    /// - *Bounds*: `start` heads as many initialised bytes as the shape takes.
    /// - *Liveness*: they exist until `owner` is dropped.
    /// - *Exclusive access*: while the array exists, nothing else writes them; nothing else reads them either while a
    ///   launch that takes the array as [`Arg::Write`](crate::Arg::Write), or a `&mut` of it, is alive. Of memory that is
    ///   shared for reading the array is used by `&` alone.
    /// - *Validity*: bytes of `bool` elements are 0 or 1.
    pub unsafe fn from_foreign(
        device: &Device,
        ty: Type,
        shape: &[usize],
        start: NonNull<u8>,
        owner: Box<dyn Any + Send + Sync>,
    ) -> Result<AnyArray> {
        let bytes = byte_count(shape, ty)?;
        if device.backend().memory().is_some() {
            let reason = "memory of the host cannot be used in place: copy it to an array of the device";
            return Err(refused(device, reason.to_string()));
        }
        aligned(device, ty, start)?;
        // SAFETY: the caller's promises are those of `HostMemory::foreign`.
        let memory = unsafe { HostMemory::foreign(start, bytes, Owner::new(owner)) };
        let buffer = Buffer::of_host(memory, bytes, device.meter());
        Ok(AnyArray::of_buffer(device, ty, shape, buffer))
    }

    /// As [`AnyArray::from_foreign`], of memory of a device that has memory of its own. When the array is dropped, all that was
    /// asked of the device has ended, and `owner` is dropped then.
    ///
    /// # Safety
    ///
    /// As for [`AnyArray::from_foreign`], with these differences. *Bounds*: the bytes are in the memory of this very device.
    /// *Liveness* and *Exclusive access*: what others asked of the device before, and what they ask of it while the array
    /// exists, is ordered with the device's stream ([`Memory::shared`](crate::Memory::shared)) or does not touch them.
    pub unsafe fn from_foreign_on_device(
        device: &Device,
        ty: Type,
        shape: &[usize],
        start: NonNull<u8>,
        owner: Box<dyn Any + Send + Sync>,
    ) -> Result<AnyArray> {
        let bytes = byte_count(shape, ty)?;
        let Some(memory) = device.backend().memory() else {
            let reason =
                "it computes in memory of the host: memory of another device cannot be used in place";
            return Err(refused(device, reason.to_string()));
        };
        aligned(device, ty, start)?;
        // SAFETY: the caller's promises are those of `Buffer::of_device`.
        let buffer = unsafe { Buffer::of_device(memory, start, bytes, Owner::new(owner), device.meter()) };
        Ok(AnyArray::of_buffer(device, ty, shape, buffer))
    }

    /// The address of the first element, in the memory of the device. Waits for a launch that writes the elements.
    pub fn address(&self) -> *mut u8 {
        self.buffer.address()
    }
}

fn refused(device: &Device, reason: String) -> Error {
    Error::Device { device: device.name().to_string(), reason }
}

fn aligned(device: &Device, ty: Type, start: NonNull<u8>) -> Result<()> {
    match start.as_ptr().addr().is_multiple_of(ty.size()) {
        true => Ok(()),
        false => {
            let reason = format!("memory of `{ty}` elements must be aligned to {} bytes: copy it", ty.size());
            Err(refused(device, reason))
        }
    }
}

/// Moves contents so that each array has its elements at the address that it had before a launch: what `swap` exchanged
/// by name is exchanged in memory. `homes` are those addresses, in the order of the arrays.
///
/// Arrays that did not move cost nothing; two that changed places cost one exchange of their bytes, for which a device with
/// memory of its own needs room for one of them.
pub fn return_contents(arrays: &mut [&mut AnyArray], homes: &[*const u8]) -> Result<()> {
    for k in 0..arrays.len() {
        // Each exchange brings at least array `k` home, so the loop ends.
        while let Some(home) = homes.get(k).copied().filter(|home| arrays[k].address().cast_const() != *home)
        {
            let Some(other) = arrays.iter().position(|array| array.address().cast_const() == home) else {
                break;
            };
            let Ok([mine, theirs]) = arrays.get_disjoint_mut([k, other]) else { break };
            mine.buffer.exchange(&mut theirs.buffer)?;
            std::mem::swap(&mut mine.buffer, &mut theirs.buffer);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use ebbtide_ir::{Access, Builder};

    use super::*;
    use crate::{Arg, Compiled, interpreter};

    fn over(device: &Device, elements: &mut [f64]) -> AnyArray {
        let start = NonNull::new(elements.as_mut_ptr().cast()).unwrap();
        // SAFETY: the test keeps the elements until the array is gone, and looks at them only then.
        unsafe { AnyArray::from_foreign(device, Type::F64, &[elements.len()], start, Box::new(())) }.unwrap()
    }

    #[test]
    fn swapped_foreign_arrays_have_their_contents_where_their_names_are() {
        let device = interpreter();
        let mut b = Builder::new("rotate");
        let arrays = ["a", "b", "c"].map(|name| b.array(name, Type::F64, 1, Access::Write));
        b.swap(arrays[0], arrays[1]);
        b.swap(arrays[1], arrays[2]);
        let rotate = Compiled::new(&b.finish().unwrap(), &device).unwrap();
        let (mut x, mut y, mut z) = ([1.0, 1.5], [2.0, 2.5], [3.0, 3.5]);
        let homes = [&x, &y, &z].map(|elements| elements.as_ptr().cast());
        let mut arrays = [over(&device, &mut x), over(&device, &mut y), over(&device, &mut z)];
        let _done =
            rotate.launch(arrays.iter_mut().map(|array| Arg::Write(array.any_mut())).collect()).unwrap();
        return_contents(&mut arrays.iter_mut().collect::<Vec<_>>(), &homes).unwrap();
        assert!(arrays.iter().zip(homes).all(|(array, home)| array.bytes().as_ptr() == home));
        drop(arrays);
        assert_eq!((x, y, z), ([2.0, 2.5], [3.0, 3.5], [1.0, 1.5]));
    }

    #[test]
    fn the_owner_is_dropped_with_the_array_and_the_memory_is_not_freed() {
        let device = interpreter();
        let mut elements = [1.0f64, 2.0];
        let owner = Arc::new(());
        let start = NonNull::new(elements.as_mut_ptr().cast()).unwrap();
        // SAFETY: as in `over`.
        let array =
            unsafe { AnyArray::from_foreign(&device, Type::F64, &[2], start, Box::new(owner.clone())) };
        assert_eq!((Arc::strong_count(&owner), device.meter().live()), (2, 16));
        drop(array);
        assert_eq!((Arc::strong_count(&owner), device.meter().live(), elements), (1, 0, [1.0, 2.0]));
    }

    #[test]
    fn an_unaligned_address_is_refused() {
        let device = interpreter();
        let bytes = [0u64; 2];
        let start = NonNull::new(bytes.as_ptr().cast::<u8>().cast_mut()).unwrap();
        // SAFETY: one element lies within the two words; nothing is read.
        let array = unsafe { AnyArray::from_foreign(&device, Type::F64, &[1], start.add(1), Box::new(())) };
        assert!(array.unwrap_err().to_string().contains("aligned to 8 bytes"));
    }
}
