//! Arrays: elements of one type in a shape of rank 0 to 4, in the memory of a device.

use std::fmt;
use std::marker::PhantomData;

use ebbtide_ir::{Literal, Type};

use crate::buffer::Buffer;
use crate::device::Device;
use crate::error::{Error, Result};
use crate::pending::Held;

/// A type that arrays can hold.
pub trait Element: Copy + PartialEq + fmt::Debug + Send + Sync + sealed::Sealed + 'static {
    /// Its name in the program.
    const TYPE: Type;

    /// The value as a literal.
    fn to_literal(self) -> Literal;

    /// The value of a literal of this type.
    fn from_literal(literal: Literal) -> Self;
}

mod sealed {
    pub trait Sealed {}
}

macro_rules! elements {
    ($($t:ty => $ty:ident, $bits:ident => $from:expr;)*) => {$(
        impl sealed::Sealed for $t {}
        impl Element for $t {
            const TYPE: Type = Type::$ty;

            fn to_literal(self) -> Literal {
                Literal::from(self)
            }

            fn from_literal(literal: Literal) -> $t {
                let $bits = literal.bits();
                $from
            }
        }
    )*};
}

elements! {
    f32 => F32, b => f32::from_bits(b as u32);
    f64 => F64, b => f64::from_bits(b);
    i32 => I32, b => b as i32;
    i64 => I64, b => b as i64;
    u32 => U32, b => b as u32;
    bool => Bool, b => b != 0;
}

/// An array whose element type and rank are known at run time only.
#[derive(Debug)]
pub struct AnyArray {
    pub(crate) device: Device,
    pub(crate) ty: Type,
    pub(crate) shape: Vec<usize>,
    pub(crate) buffer: Held,
}

impl AnyArray {
    /// An array of zeros.
    pub fn zeros(device: &Device, ty: Type, shape: &[usize]) -> Result<AnyArray> {
        let bytes = byte_count(shape, ty)?;
        let buffer = Buffer::zeroed(bytes, device.meter())?;
        Ok(AnyArray { device: device.clone(), ty, shape: shape.to_vec(), buffer: Held::new(buffer) })
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

    /// The elements as bytes, to be written. Bytes of `bool` elements must be 0 or 1.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        self.buffer.bytes_mut()
    }

    /// A copy in memory of its own.
    pub fn try_clone(&self) -> Result<AnyArray> {
        let mut copy = AnyArray::zeros(&self.device, self.ty, &self.shape)?;
        copy.buffer.copy_from(&self.buffer)?;
        Ok(copy)
    }
}

pub(crate) fn byte_count(shape: &[usize], ty: Type) -> Result<usize> {
    shape
        .iter()
        .try_fold(ty.size(), |bytes, extent| bytes.checked_mul(*extent))
        .filter(|bytes| *bytes <= isize::MAX as usize / 2)
        .ok_or_else(|| Error::TooLarge { shape: shape.to_vec() })
}

/// An array of rank `R` with elements of type `T`, in the memory of a device.
///
/// It is not `Clone`, so that safe Rust cannot hand one array to a program twice: [`Array::try_clone`] copies.
pub struct Array<T: Element, const R: usize> {
    any: AnyArray,
    element: PhantomData<T>,
}

/// A single element.
pub type Array0<T> = Array<T, 0>;
/// A line of elements.
pub type Array1<T> = Array<T, 1>;
/// A plane of elements.
pub type Array2<T> = Array<T, 2>;
/// A space of elements.
pub type Array3<T> = Array<T, 3>;
/// An array of four dimensions.
pub type Array4<T> = Array<T, 4>;

impl<T: Element, const R: usize> Array<T, R> {
    /// An array of zeros.
    pub fn zeros_on(device: &Device, shape: [usize; R]) -> Result<Array<T, R>> {
        Ok(Array { any: AnyArray::zeros(device, T::TYPE, &shape)?, element: PhantomData })
    }

    /// An array with these elements, last dimension fastest.
    pub fn from_slice_on(device: &Device, shape: [usize; R], elements: &[T]) -> Result<Array<T, R>> {
        let mut array = Array::zeros_on(device, shape)?;
        array.copy_from_slice(elements)?;
        Ok(array)
    }

    /// The extents.
    pub fn shape(&self) -> [usize; R] {
        let mut shape = [0; R];
        shape.copy_from_slice(&self.any.shape);
        shape
    }

    /// The number of elements.
    pub fn len(&self) -> usize {
        self.any.len()
    }

    /// Has it no elements?
    pub fn is_empty(&self) -> bool {
        self.any.is_empty()
    }

    /// The extent in dimension `k`; 0 for a dimension that it does not have.
    pub fn dim(&self, k: usize) -> usize {
        self.any.shape.get(k).copied().unwrap_or(0)
    }

    /// The elements, last dimension fastest.
    pub fn as_slice(&self) -> &[T] {
        // SAFETY: the buffer holds `len` elements of `T` (checked at construction), starts at a multiple of 64
        // bytes, and every bit pattern in it is a `T`: `bool` bytes are 0 or 1 by the contract of `bytes_mut`.
        unsafe { std::slice::from_raw_parts(self.any.bytes().as_ptr().cast(), self.len()) }
    }

    /// The elements, to be written.
    pub fn as_mut_slice(&mut self) -> &mut [T] {
        let len = self.len();
        // SAFETY: as for `as_slice`, and `&mut self` is exclusive.
        unsafe { std::slice::from_raw_parts_mut(self.any.bytes_mut().as_mut_ptr().cast(), len) }
    }

    /// The elements, all of which will be written.
    fn elements_to_overwrite(&mut self) -> &mut [T] {
        let len = self.len();
        // SAFETY: as for `as_mut_slice`; what they hold before are elements too, of an earlier time.
        unsafe {
            std::slice::from_raw_parts_mut(self.any.buffer.bytes_to_overwrite().as_mut_ptr().cast(), len)
        }
    }

    /// The elements as a vector.
    pub fn to_vec(&self) -> Vec<T> {
        self.as_slice().to_vec()
    }

    /// Gives every element one value.
    pub fn fill(&mut self, value: T) -> Result<()> {
        self.elements_to_overwrite().fill(value);
        Ok(())
    }

    /// Replaces all elements.
    pub fn copy_from_slice(&mut self, elements: &[T]) -> Result<()> {
        if elements.len() != self.len() {
            let shape = self.any.shape.clone();
            return Err(Error::WrongLength { shape, needed: self.len(), found: elements.len() });
        }
        self.elements_to_overwrite().copy_from_slice(elements);
        Ok(())
    }

    /// Replaces all elements by those of an array of the same shape.
    pub fn copy_from(&mut self, other: &Array<T, R>) -> Result<()> {
        if self.any.shape != other.any.shape {
            return Err(Error::ShapesDiffer { left: self.any.shape.clone(), right: other.any.shape.clone() });
        }
        if !self.any.device.same(&other.any.device) {
            return self.copy_from_slice(other.as_slice());
        }
        self.any.buffer.copy_from(&other.any.buffer)
    }

    /// A copy in memory of its own.
    pub fn try_clone(&self) -> Result<Array<T, R>> {
        Ok(Array { any: self.any.try_clone()?, element: PhantomData })
    }

    /// The same array without its types.
    pub fn any(&self) -> &AnyArray {
        &self.any
    }

    /// The same array without its types, to be written.
    pub fn any_mut(&mut self) -> &mut AnyArray {
        &mut self.any
    }

    /// The array itself without its types.
    pub fn into_any(self) -> AnyArray {
        self.any
    }

    /// An array of known type and rank again; the array comes back if they do not fit.
    pub fn from_any(any: AnyArray) -> Result<Array<T, R>, AnyArray> {
        if any.ty == T::TYPE && any.shape.len() == R {
            Ok(Array { any, element: PhantomData })
        } else {
            Err(any)
        }
    }
}

impl<T: Element> Array<T, 0> {
    /// The one element.
    pub fn value(&self) -> T {
        self.as_slice()[0]
    }
}

impl<T: Element, const R: usize> fmt::Debug for Array<T, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Array{R}<{}> {:?} {:?}", T::TYPE, self.any.shape, self.as_slice())
    }
}
