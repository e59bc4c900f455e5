//! Arrays as custom operations see them: views of host memory.

use std::ops::{Index, IndexMut};

use ebbtide_ir::HostArg;

use crate::array::any_array::invalid_element;
use crate::memory::element::{Element, Item, components};

/// An array that a custom operation reads.
#[derive(Clone, Copy, Debug)]
pub struct HostView<'a, T: Item, const R: usize> {
    shape: [usize; R],
    elements: &'a [T],
}

/// An array that a custom operation reads and writes.
#[derive(Debug)]
pub struct HostViewMut<'a, T: Item, const R: usize> {
    shape: [usize; R],
    elements: &'a mut [T],
}

impl<'a, T: Item, const R: usize> HostView<'a, T, R> {
    /// The view that an argument is; `None` if it is not an array of this type and rank, or if what it holds are no
    /// elements of this type.
    pub fn of(arg: &'a HostArg<'_>) -> Option<HostView<'a, T, R>> {
        let HostArg::Read { ty, shape, bytes } = *arg else { return None };
        let shape = extents::<T, R>(shape).filter(|_| ty == <T::Scalar as Element>::TYPE)?;
        let len = element_count::<T>(&shape, bytes)?;
        if len == 0 {
            return Some(HostView { shape, elements: &[] });
        }
        // SAFETY (*Bounds*, *Validity*): the bytes are aligned, as many as `len` elements take, and elements of this type:
        // `element_count` has checked all three.
        let elements = unsafe { std::slice::from_raw_parts(bytes.as_ptr().cast(), len) };
        Some(HostView { shape, elements })
    }

    /// The elements, last dimension fastest.
    pub fn as_slice(&self) -> &'a [T] {
        self.elements
    }
}

impl<'a, T: Item, const R: usize> HostViewMut<'a, T, R> {
    /// The view that an argument is; `None` if it is not a written array of this type and rank, or if what it holds are no
    /// elements of this type.
    pub fn of(arg: &'a mut HostArg<'_>) -> Option<HostViewMut<'a, T, R>> {
        let HostArg::Write { ty, shape, bytes } = arg else { return None };
        let shape = extents::<T, R>(shape).filter(|_| *ty == <T::Scalar as Element>::TYPE)?;
        let len = element_count::<T>(&shape, bytes)?;
        if len == 0 {
            return Some(HostViewMut { shape, elements: &mut [] });
        }
        // SAFETY (*Bounds*, *Validity*): as for `HostView`; (*Exclusive access*): by the borrow; what is written is a `T`.
        let elements = unsafe { std::slice::from_raw_parts_mut(bytes.as_mut_ptr().cast(), len) };
        Some(HostViewMut { shape, elements })
    }

    /// The elements, last dimension fastest.
    pub fn as_slice(&self) -> &[T] {
        self.elements
    }

    /// The elements, to be written.
    pub fn as_mut_slice(&mut self) -> &mut [T] {
        self.elements
    }

    /// Gives every element one value.
    pub fn fill(&mut self, value: T) {
        self.elements.fill(value);
    }
}

/// The extents, where they end with those of an element.
fn extents<T: Item, const R: usize>(shape: &[i64]) -> Option<[usize; R]> {
    let all = shape.iter().map(|extent| usize::try_from(*extent).ok()).collect::<Option<Vec<usize>>>()?;
    let fits = all.len() == R + T::EXTENTS.len() && all.ends_with(T::EXTENTS);
    all.get(..R).filter(|_| fits)?.try_into().ok()
}

/// The number of elements, where the bytes are memory for them and hold values of their type.
fn element_count<T: Item>(shape: &[usize], bytes: &[u8]) -> Option<usize> {
    let len = shape.iter().try_fold(1usize, |n, extent| n.checked_mul(*extent))?;
    let fits = len.checked_mul(size_of::<T>()) == Some(bytes.len());
    let aligned = bytes.is_empty() || bytes.as_ptr().cast::<T>().is_aligned();
    let packed = size_of::<T>() == components::<T>() * size_of::<T::Scalar>();
    (fits && aligned && packed && invalid_element(<T::Scalar as Element>::TYPE, bytes).is_none())
        .then_some(len)
}

fn place<const R: usize>(shape: [usize; R], index: [usize; R]) -> usize {
    index.iter().zip(shape).fold(0, |place, (i, extent)| {
        assert!(*i < extent, "index {index:?} is out of bounds for shape {shape:?}");
        place * extent + i
    })
}

macro_rules! views {
    ($($view:ident)*) => {$(
        impl<T: Item, const R: usize> $view<'_, T, R> {
            /// The extents.
            pub fn shape(&self) -> [usize; R] {
                self.shape
            }

            /// The number of elements.
            pub fn len(&self) -> usize {
                self.elements.len()
            }

            /// Has it no elements?
            pub fn is_empty(&self) -> bool {
                self.elements.is_empty()
            }

            /// The extent in dimension `k`; 0 for a dimension that it does not have.
            pub fn dim(&self, k: usize) -> usize {
                self.shape.get(k).copied().unwrap_or(0)
            }
        }

        impl<T: Item> Index<usize> for $view<'_, T, 1> {
            type Output = T;

            /// The element at `index`.
            ///
            /// # Panics
            ///
            /// Out of bounds, as for a slice; inside an operation that is a run error.
            fn index(&self, index: usize) -> &T {
                &self.elements[index]
            }
        }

        impl<T: Item, const R: usize> Index<[usize; R]> for $view<'_, T, R> {
            type Output = T;

            /// The element at `index`.
            ///
            /// # Panics
            ///
            /// Out of bounds in any dimension; inside an operation that is a run error.
            fn index(&self, index: [usize; R]) -> &T {
                &self.elements[place(self.shape, index)]
            }
        }
    )*};
}

views! { HostView HostViewMut }

impl<T: Item> IndexMut<usize> for HostViewMut<'_, T, 1> {
    fn index_mut(&mut self, index: usize) -> &mut T {
        &mut self.elements[index]
    }
}

impl<T: Item, const R: usize> IndexMut<[usize; R]> for HostViewMut<'_, T, R> {
    fn index_mut(&mut self, index: [usize; R]) -> &mut T {
        &mut self.elements[place(self.shape, index)]
    }
}
