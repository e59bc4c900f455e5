//! Arrays whose element type and rank are known at run time only.
//!
//! Invariant: the buffer of an array has exactly as many bytes as its type and shape take, and every element in it is a
//! value of that type: a `bool` is 0 or 1. Nothing public changes type or shape, or writes bytes that were not checked.

use std::ops::Deref;

use ebbtide_ir::Type;

use crate::array::lent_memory::LentMemory;
use crate::device::Device;
use crate::error::{Error, Result};
use crate::memory::buffer::Buffer;
use crate::memory::byte_count::byte_count;
use crate::memory::element::{Element, Item};

/// An array whose element type and rank are known at run time only.
#[derive(Debug)]
pub struct AnyArray {
    device: Device,
    ty: Type,
    shape: Vec<usize>,
    pub(crate) buffer: LentMemory,
}

impl AnyArray {
    /// An array of zeros.
    pub fn zeros(device: &Device, ty: Type, shape: &[usize]) -> Result<AnyArray> {
        let bytes = byte_count(shape, ty)?;
        Ok(AnyArray::of_buffer(device, ty, shape, Buffer::zeroed(bytes, device.meter())?))
    }

    /// An array in this memory, which has as many bytes as the shape takes, and valid elements.
    pub(crate) fn of_buffer(device: &Device, ty: Type, shape: &[usize], buffer: Buffer) -> AnyArray {
        AnyArray { device: device.clone(), ty, shape: shape.to_vec(), buffer: LentMemory::new(buffer) }
    }

    /// The device that holds it.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// The type of its elements.
    pub fn ty(&self) -> Type {
        self.ty
    }

    /// The extents.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// The number of elements.
    pub fn len(&self) -> usize {
        self.shape.iter().product()
    }

    /// Has it no elements?
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The elements as bytes, last dimension fastest. Waits for a launch that writes them.
    pub fn bytes(&self) -> &[u8] {
        self.buffer.bytes()
    }

    /// Replaces all elements by those that these bytes are, last dimension fastest, in the byte order of the machine.
    ///
    /// # Errors
    ///
    /// If there are not as many bytes as the elements take, or if one of them is no element: a `bool` is 0 or 1.
    pub fn copy_from_bytes(&mut self, bytes: &[u8]) -> Result<()> {
        let size = self.ty.size();
        if bytes.len() != self.len() * size {
            let (shape, needed) = (self.shape.clone(), self.len());
            return Err(Error::WrongLength { shape, needed, found: bytes.len() / size });
        }
        if let Some(at) = invalid_element(self.ty, bytes) {
            return Err(Error::NoElement { ty: self.ty, at, byte: bytes[at] });
        }
        self.buffer.bytes_to_overwrite().copy_from_slice(bytes);
        Ok(())
    }

    /// The elements, last dimension fastest; `None` if they are of another type.
    pub fn as_slice<T: Element>(&self) -> Option<&[T]> {
        (self.ty == T::TYPE).then(|| self.elements())
    }

    /// The elements, to be written; `None` if they are of another type.
    pub fn as_mut_slice<T: Element>(&mut self) -> Option<&mut [T]> {
        (self.ty == T::TYPE).then(|| self.elements_mut())
    }

    /// The same array for a launch that writes it.
    pub fn any_mut(&mut self) -> AnyMut<'_> {
        AnyMut { array: self }
    }

    /// A copy in memory of its own.
    pub fn try_clone(&self) -> Result<AnyArray> {
        let mut copy = AnyArray::zeros(&self.device, self.ty, &self.shape)?;
        copy.buffer.copy_from(&self.buffer)?;
        Ok(copy)
    }

    /// The elements as values of a type that they have.
    pub(crate) fn elements<T: Item>(&self) -> &[T] {
        let len = self.count_of::<T>();
        let bytes = self.bytes();
        assert!(bytes.len() == len * size_of::<T>(), "a buffer has the size of its array");
        // SAFETY (*Bounds*): the buffer holds `len` elements (checked above) and starts at a multiple of 64 bytes.
        // (*Validity*): their scalars are those of `T` in its extents (checked above), every scalar is a value of its type
        // (the module's invariant), and `Item` says that they make a `T`.
        unsafe { std::slice::from_raw_parts(bytes.as_ptr().cast(), len) }
    }

    /// The elements as values of a type that they have, to be written.
    pub(crate) fn elements_mut<T: Item>(&mut self) -> &mut [T] {
        let len = self.count_of::<T>();
        let bytes = self.buffer.bytes_mut();
        assert!(bytes.len() == len * size_of::<T>(), "a buffer has the size of its array");
        // SAFETY (*Bounds*, *Validity*): as for `elements`; (*Exclusive access*): by `&mut self`.
        unsafe { std::slice::from_raw_parts_mut(bytes.as_mut_ptr().cast(), len) }
    }

    /// The elements, all of which will be written.
    pub(crate) fn elements_to_overwrite<T: Item>(&mut self) -> &mut [T] {
        let len = self.count_of::<T>();
        let bytes = self.buffer.bytes_to_overwrite();
        assert!(bytes.len() == len * size_of::<T>(), "a buffer has the size of its array");
        // SAFETY (*Bounds*, *Validity*, *Exclusive access*): as for `elements_mut`; what they hold before are elements too, of an earlier time.
        unsafe { std::slice::from_raw_parts_mut(bytes.as_mut_ptr().cast(), len) }
    }

    /// Are these elements, in arrays of rank `rank`?
    pub(crate) fn holds<T: Item>(&self, rank: usize) -> bool {
        let of_rank = self.shape.len() == rank + T::EXTENTS.len();
        self.ty == <T::Scalar as Element>::TYPE && of_rank && self.shape.ends_with(T::EXTENTS)
    }

    /// How many elements of this type there are.
    fn count_of<T: Item>(&self) -> usize {
        let rank = self.shape.len().saturating_sub(T::EXTENTS.len());
        assert!(self.holds::<T>(rank), "elements are seen as what they are");
        self.shape[..rank].iter().product()
    }
}

/// An array that a launch writes, borrowed from an [`AnyArray`] or an [`Array`](crate::Array).
///
/// Its elements can change. Its type, its shape and the array that it belongs to cannot: exchanging two of these
/// exchanges borrows, not arrays.
#[derive(Debug)]
pub struct AnyMut<'a> {
    array: &'a mut AnyArray,
}

impl<'a> AnyMut<'a> {
    /// As [`AnyArray::copy_from_bytes`].
    pub fn copy_from_bytes(&mut self, bytes: &[u8]) -> Result<()> {
        self.array.copy_from_bytes(bytes)
    }

    /// As [`AnyArray::as_mut_slice`].
    pub fn as_mut_slice<T: Element>(&mut self) -> Option<&mut [T]> {
        self.array.as_mut_slice()
    }

    /// As [`AnyArray::as_mut_slice`], for as long as the array is lent.
    pub fn into_mut_slice<T: Element>(self) -> Option<&'a mut [T]> {
        self.array.as_mut_slice()
    }

    /// The same loan, for a shorter time.
    pub fn reborrow(&mut self) -> AnyMut<'_> {
        AnyMut { array: self.array }
    }

    /// Makes it an array of another shape, in this memory, which has as many bytes as that takes, and elements of its type.
    /// Its rank stays what it is.
    pub(crate) fn replace(&mut self, shape: &[usize], buffer: Buffer) {
        let fits = byte_count(shape, self.array.ty).is_ok_and(|bytes| bytes == buffer.len());
        debug_assert!(fits && shape.len() == self.array.shape.len(), "a result keeps its type and rank");
        if fits && shape.len() == self.array.shape.len() {
            *self.array = AnyArray::of_buffer(&self.array.device.clone(), self.array.ty, shape, buffer);
        }
    }

    /// The memory of the array. Whoever exchanges it against another array's keeps the module's invariant.
    pub(crate) fn buffer_mut(&mut self) -> &mut LentMemory {
        &mut self.array.buffer
    }
}

impl Deref for AnyMut<'_> {
    type Target = AnyArray;

    fn deref(&self) -> &AnyArray {
        self.array
    }
}

impl<'a> From<&'a mut AnyArray> for AnyMut<'a> {
    fn from(array: &'a mut AnyArray) -> AnyMut<'a> {
        array.any_mut()
    }
}

/// The place of the first byte that is not part of an element of this type.
pub(crate) fn invalid_element(ty: Type, bytes: &[u8]) -> Option<usize> {
    match ty {
        Type::Bool => bytes.iter().position(|byte| *byte > 1),
        _ => None,
    }
}
