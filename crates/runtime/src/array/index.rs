//! Elements of arrays on the host: `u[i]`, `u[[i, j]]`, `loss[[]]`, as in programs.

use std::ops::Index;

use crate::array::Array;
use crate::memory::element::Element;

impl<T: Element> Index<usize> for Array<T, 1> {
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

impl<T: Element, const R: usize> Index<[usize; R]> for Array<T, R> {
    type Output = T;

    /// The element at `index`.
    ///
    /// # Panics
    ///
    /// Out of bounds in any dimension, as for a slice.
    fn index(&self, index: [usize; R]) -> &T {
        let shape = self.shape();
        let place = index.iter().zip(shape).fold(0, |place, (i, extent)| {
            assert!(*i < extent, "index {index:?} is out of bounds for shape {shape:?}");
            place * extent + i
        });
        &self.as_slice()[place]
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
    #[should_panic(expected = "out of bounds for shape [2, 3]")]
    fn an_index_past_its_own_dimension_is_out_of_bounds() {
        let u = interpreter().zeros::<f32, 2>([2, 3]).unwrap();
        let _ = u[[0, 3]];
    }
}
