//! Elements of arrays on the host: `u[i]`, `u[[i, j]]`, `loss[[]]`, as in programs, and iteration over all of them.

use std::ops::{Index, IndexMut};
use std::slice::{Iter, IterMut};

use crate::array::Array;
use crate::memory::element::Item;

impl<T: Item> Index<usize> for Array<T, 1> {
    type Output = T;

    /// The element at `index`.
    ///
    /// # Panics
    ///
    /// Out of bounds, as for a slice.
    fn index(&self, index: usize) -> &T {
        &self.as_slice()[index]
    }
}

impl<T: Item, const R: usize> Index<[usize; R]> for Array<T, R> {
    type Output = T;

    /// The element at `index`.
    ///
    /// # Panics
    ///
    /// Out of bounds in any dimension, as for a slice.
    fn index(&self, index: [usize; R]) -> &T {
        &self.as_slice()[offset(self.shape(), index)]
    }
}

/// Writes one element: `u[i] = 1.0`.
///
/// On a GPU the first access copies the array to the host, once, and marks it as changed there; later accesses cost a
/// look at that mark. The next launch copies the array back. To write many elements take
/// [`as_mut_slice`](Array::as_mut_slice) once.
impl<T: Item> IndexMut<usize> for Array<T, 1> {
    fn index_mut(&mut self, index: usize) -> &mut T {
        &mut self.as_mut_slice()[index]
    }
}

/// Writes one element: `u[[i, j]] = 1.0`, `loss[[]] = 0.0`.
///
/// On a GPU the first access copies the array to the host, once, and marks it as changed there; later accesses cost a
/// look at that mark. The next launch copies the array back. To write many elements take
/// [`as_mut_slice`](Array::as_mut_slice) once.
impl<T: Item, const R: usize> IndexMut<[usize; R]> for Array<T, R> {
    fn index_mut(&mut self, index: [usize; R]) -> &mut T {
        let place = offset(self.shape(), index);
        &mut self.as_mut_slice()[place]
    }
}

/// The number of the element at `index`, last dimension fastest.
fn offset<const R: usize>(shape: [usize; R], index: [usize; R]) -> usize {
    index.iter().zip(shape).fold(0, |place, (i, extent)| {
        assert!(*i < extent, "index {index:?} is out of bounds for shape {shape:?}");
        place * extent + i
    })
}

impl<T: Item, const R: usize> Array<T, R> {
    /// The elements one by one, last dimension fastest.
    pub fn iter(&self) -> Iter<'_, T> {
        self.as_slice().iter()
    }

    /// The elements one by one, last dimension fastest, to be written.
    pub fn iter_mut(&mut self) -> IterMut<'_, T> {
        self.as_mut_slice().iter_mut()
    }
}

impl<'a, T: Item, const R: usize> IntoIterator for &'a Array<T, R> {
    type Item = &'a T;
    type IntoIter = Iter<'a, T>;

    fn into_iter(self) -> Iter<'a, T> {
        self.iter()
    }
}

impl<'a, T: Item, const R: usize> IntoIterator for &'a mut Array<T, R> {
    type Item = &'a mut T;
    type IntoIter = IterMut<'a, T>;

    fn into_iter(self) -> IterMut<'a, T> {
        self.iter_mut()
    }
}

#[cfg(test)]
mod tests {
    use crate::interpreter;

    #[test]
    fn elements_are_found_by_their_indices() {
        let device = interpreter();
        let u = device.array_with_shape([2, 3], &[0, 1, 2, 10, 11, 12]).unwrap();
        assert_eq!((u[[0, 2]], u[[1, 0]]), (2, 10));
        assert_eq!(device.array(&[5.0, 6.0]).unwrap()[1], 6.0);
        assert!(device.scalar(true).unwrap()[[]]);
    }

    #[test]
    fn elements_are_written_by_their_indices() {
        let device = interpreter();
        let mut u = device.from_fn([2, 3], |[i, j]| (10 * i + j) as i32).unwrap();
        u[[1, 2]] = -1;
        assert_eq!(u.to_vec(), [0, 1, 2, 10, 11, -1]);
        let mut line = device.zeros::<f64, 1>([2]).unwrap();
        line[1] += 0.5;
        assert_eq!(line.to_vec(), [0.0, 0.5]);
        let mut loss = device.scalar(3.0).unwrap();
        loss[[]] = 0.0;
        assert_eq!(loss.value(), 0.0);
    }

    #[test]
    fn references_to_arrays_are_iterated() {
        let mut u = interpreter().array(&[1.0, 2.0, 3.0]).unwrap();
        for x in &mut u {
            *x *= 2.0;
        }
        assert_eq!((&u).into_iter().sum::<f64>(), 12.0);
        assert_eq!(u.iter().rev().copied().collect::<Vec<f64>>(), [6.0, 4.0, 2.0]);
    }

    #[test]
    fn a_rank_0_array_from_a_function_has_one_element() {
        assert_eq!(interpreter().from_fn([], |[]| 7).unwrap().value(), 7);
        assert!(interpreter().from_fn([3, 0], |_| 1.0).unwrap().is_empty());
    }

    #[test]
    #[should_panic(expected = "out of bounds for shape [2, 3]")]
    fn a_write_past_its_own_dimension_is_out_of_bounds() {
        let mut u = interpreter().zeros::<f32, 2>([2, 3]).unwrap();
        u[[0, 3]] = 1.0;
    }

    #[test]
    #[should_panic(expected = "out of bounds for shape [2, 3]")]
    fn an_index_past_its_own_dimension_is_out_of_bounds() {
        let u = interpreter().zeros::<f32, 2>([2, 3]).unwrap();
        let _ = u[[0, 3]];
    }
}
