//! Arrays to and from `ndarray`.

use crate::array::Array;
use crate::device::Device;
use crate::error::Result;
use crate::memory::element::Element;
use ndarray::{ArrayBase, ArrayView, ArrayViewMut, Data, Dimension, Ix0, Ix1, Ix2, Ix3, Ix4};

/// A dimension of `ndarray` of rank 0 to 4, and the arrays of that rank.
pub trait Ranked: Dimension {
    /// The array of a device.
    type Array<T: Element>;

    /// An array with these elements, last dimension fastest.
    fn array<T: Element>(device: &Device, shape: &[usize], elements: &[T]) -> Result<Self::Array<T>>;
}

impl Device {
    /// An array with the shape and the elements of one of `ndarray`, whatever its strides.
    pub fn from_ndarray<T: Element, S: Data<Elem = T>, D: Ranked>(
        &self,
        array: &ArrayBase<S, D>,
    ) -> Result<D::Array<T>> {
        match array.as_slice() {
            Some(elements) => D::array(self, array.shape(), elements),
            None => D::array(self, array.shape(), &array.iter().copied().collect::<Vec<T>>()),
        }
    }
}

macro_rules! ranks {
    ($($rank:literal $dimension:ident;)*) => {$(
        impl Ranked for $dimension {
            type Array<T: Element> = Array<T, $rank>;

            fn array<T: Element>(device: &Device, shape: &[usize], elements: &[T]) -> Result<Array<T, $rank>> {
                let mut extents = [0; $rank];
                extents.copy_from_slice(shape);
                device.array_with_shape(extents, elements)
            }
        }

        impl<T: Element> Array<T, $rank> {
            /// The elements as an array of `ndarray`, in place.
            pub fn as_ndarray(&self) -> ArrayView<'_, T, $dimension> {
                let view = ArrayView::from_shape(self.shape(), self.as_slice());
                view.expect("an array has as many elements as its shape says")
            }

            /// The elements as an array of `ndarray`, in place, to be written.
            pub fn as_ndarray_mut(&mut self) -> ArrayViewMut<'_, T, $dimension> {
                let view = ArrayViewMut::from_shape(self.shape(), self.as_mut_slice());
                view.expect("an array has as many elements as its shape says")
            }

            /// The elements as an array of `ndarray` of its own.
            pub fn to_ndarray(&self) -> ndarray::Array<T, $dimension> {
                self.as_ndarray().to_owned()
            }
        }
    )*};
}

ranks! {
    0 Ix0;
    1 Ix1;
    2 Ix2;
    3 Ix3;
    4 Ix4;
}
