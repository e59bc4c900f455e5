//! Arrays: elements of one type in a shape of rank 0 to 4, in the memory of a device. An element is a scalar or a small value;
//! without its types an array of small values is one of scalars, with the extents of an element as its last dimensions.

pub(crate) mod any_array;
pub(crate) mod arguments;
pub(crate) mod foreign;
pub(crate) mod host_view;
mod index;
pub(crate) mod lent_memory;
#[cfg(feature = "ndarray")]
pub(crate) mod nd;
mod without_device;

use std::fmt;
use std::marker::PhantomData;

use crate::array::any_array::{AnyArray, AnyMut};
use crate::device::Device;
use crate::error::{Error, Result};
use crate::memory::element::{Element, Item};

/// An array of rank `R` with elements of type `T`, in the memory of a device: scalars, or small values such as `Vec3<f64>`.
///
/// The host reads elements with `u[i]`, `u[[i, j]]`, [`iter`](Array::iter) and [`as_slice`](Array::as_slice), and writes
/// them with `u[i] = x`, [`iter_mut`](Array::iter_mut) and [`as_mut_slice`](Array::as_mut_slice). On a GPU the first of
/// these after a launch copies the whole array to the host.
///
/// It is not `Clone`, so that safe Rust cannot hand one array to a program twice: [`Array::try_clone`] copies.
// `T` has no bound here: a type that is no element is one error where it is used, and not one at each mention.
pub struct Array<T, const R: usize> {
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

impl<T: Item, const R: usize> Array<T, R> {
    /// An array of zeros.
    pub fn zeros_on(device: &Device, shape: [usize; R]) -> Result<Array<T, R>> {
        let shape = [&shape[..], T::EXTENTS].concat();
        Ok(Array {
            any: AnyArray::zeros(device, <T::Scalar as Element>::TYPE, &shape)?,
            element: PhantomData,
        })
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
        shape.copy_from_slice(&self.any.shape()[..R]);
        shape
    }

    /// The number of elements.
    pub fn len(&self) -> usize {
        self.any.shape()[..R].iter().product()
    }

    /// Has it no elements?
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The extent in dimension `k`; 0 for a dimension that it does not have.
    pub fn dim(&self, k: usize) -> usize {
        self.any.shape()[..R].get(k).copied().unwrap_or(0)
    }

    /// The elements, last dimension fastest.
    pub fn as_slice(&self) -> &[T] {
        self.any.elements()
    }

    /// The elements, to be written.
    pub fn as_mut_slice(&mut self) -> &mut [T] {
        self.any.elements_mut()
    }

    /// The elements as a vector.
    pub fn to_vec(&self) -> Vec<T> {
        self.as_slice().to_vec()
    }

    /// Gives every element one value.
    pub fn fill(&mut self, value: T) -> Result<()> {
        self.any.elements_to_overwrite::<T>().fill(value);
        Ok(())
    }

    /// Replaces all elements.
    pub fn copy_from_slice(&mut self, elements: &[T]) -> Result<()> {
        if elements.len() != self.len() {
            let shape = self.shape().to_vec();
            return Err(Error::WrongLength { shape, needed: self.len(), found: elements.len() });
        }
        self.any.elements_to_overwrite::<T>().copy_from_slice(elements);
        Ok(())
    }

    /// Replaces all elements by those of an array of the same shape.
    pub fn copy_from(&mut self, other: &Array<T, R>) -> Result<()> {
        if self.any.shape() != other.any.shape() {
            return Err(Error::ShapesDiffer {
                left: self.any.shape().to_vec(),
                right: other.any.shape().to_vec(),
            });
        }
        if !self.any.device().same(other.any.device()) {
            return self.copy_from_slice(other.as_slice());
        }
        self.any.buffer.copy_from(&other.any.buffer)
    }

    /// A copy in memory of its own, on the same device. It is an error, and not a panic, where there is no memory for it:
    /// that is why arrays are not `Clone`.
    pub fn try_clone(&self) -> Result<Array<T, R>> {
        Ok(Array { any: self.any.try_clone()?, element: PhantomData })
    }

    /// The same array without its types.
    pub fn any(&self) -> &AnyArray {
        &self.any
    }

    /// The same array without its types, to be written: its elements can change, its type and shape cannot.
    pub fn any_mut(&mut self) -> AnyMut<'_> {
        self.any.any_mut()
    }

    /// The array itself without its types.
    pub fn into_any(self) -> AnyArray {
        self.any
    }

    /// An array of known type and rank again; the array comes back if they do not fit.
    pub fn from_any(any: AnyArray) -> Result<Array<T, R>, AnyArray> {
        if any.holds::<T>(R) { Ok(Array { any, element: PhantomData }) } else { Err(any) }
    }
}

impl<T: Item> Array<T, 0> {
    /// The one element.
    pub fn value(&self) -> T {
        self.as_slice()[0]
    }
}

/// As many elements are shown from each end of a long array.
const SHOWN: usize = 4;

/// Its type and shape, and the elements; of more than nine the first and the last four.
impl<T: Item, const R: usize> fmt::Debug for Array<T, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scalar = <T::Scalar as Element>::TYPE;
        match T::EXTENTS {
            [] => write!(f, "Array{R}<{scalar}> {:?} ", self.shape())?,
            extents => write!(f, "Array{R}<{scalar} {extents:?}> {:?} ", self.shape())?,
        }
        let elements = self.as_slice();
        if elements.len() <= 2 * SHOWN + 1 {
            return f.debug_list().entries(elements).finish();
        }
        let (first, last) = (&elements[..SHOWN], &elements[elements.len() - SHOWN..]);
        f.debug_list().entries(first).entry(&format_args!("…")).entries(last).finish()
    }
}

impl Device {
    /// An array of zeros.
    pub fn zeros<T: Item, const R: usize>(&self, shape: [usize; R]) -> Result<Array<T, R>> {
        Array::zeros_on(self, shape)
    }

    /// An array of rank 1 with these elements.
    pub fn array<T: Item>(&self, elements: &[T]) -> Result<Array<T, 1>> {
        Array::from_slice_on(self, [elements.len()], elements)
    }

    /// An array of this shape with these elements, last dimension fastest.
    pub fn array_with_shape<T: Item, const R: usize>(
        &self,
        shape: [usize; R],
        elements: &[T],
    ) -> Result<Array<T, R>> {
        Array::from_slice_on(self, shape, elements)
    }

    /// An array of this shape whose element at each index is what `f` gives: `device.from_fn([n, m], |[i, j]| …)`.
    pub fn from_fn<T: Item, const R: usize>(
        &self,
        shape: [usize; R],
        mut f: impl FnMut([usize; R]) -> T,
    ) -> Result<Array<T, R>> {
        let mut array = Array::zeros_on(self, shape)?;
        let mut index = [0; R];
        for element in array.as_mut_slice() {
            *element = f(index);
            // The next index, last dimension fastest.
            for k in (0..R).rev() {
                index[k] += 1;
                if index[k] < shape[k] {
                    break;
                }
                index[k] = 0;
            }
        }
        Ok(array)
    }

    /// An array of rank 0 with this element.
    pub fn scalar<T: Item>(&self, value: T) -> Result<Array<T, 0>> {
        Array::from_slice_on(self, [], &[value])
    }
}

#[cfg(test)]
mod tests {
    use crate::interpreter;

    #[test]
    fn debug_shows_the_ends_of_long_arrays() {
        let device = interpreter();
        let short = device.array(&[1.5, 2.0]).unwrap();
        assert_eq!(format!("{short:?}"), "Array1<f64> [2] [1.5, 2.0]");
        let long = device.from_fn([10, 100], |[i, j]| (100 * i + j) as i32).unwrap();
        assert_eq!(format!("{long:?}"), "Array2<i32> [10, 100] [0, 1, 2, 3, …, 996, 997, 998, 999]");
    }
}
