//! What the host may change where a differentiated program yields.

use ebbtide_runtime::{self as runtime, Array, Result};

use crate::gradient::Bytes;
use crate::program::Name;
use crate::scalar::Item;

/// The arrays that the caller lent for writing, as they are where the program yielded. What is changed here, the
/// program continues with; for the derivative it is constant.
pub struct Host<'a> {
    pub(crate) lent: &'a mut runtime::Host,
}

impl Host<'_> {
    /// Works on the array of a parameter. It may get another shape, as in `*list = device.zeros([2 * list.len()])?`: what
    /// keeps its index and its value is the same element, all others are new.
    pub fn with<T: Item, const R: usize, A>(
        &mut self,
        name: Name<Array<T, R>>,
        work: impl FnOnce(&mut Array<T, R>) -> A,
    ) -> Result<A> {
        self.lent.with(name.as_str(), work)
    }

    /// Works on a member of a struct, by its path: `"w.pos"`.
    pub fn with_named<T: Item, const R: usize, A>(
        &mut self,
        name: &str,
        work: impl FnOnce(&mut Array<T, R>) -> A,
    ) -> Result<A> {
        self.lent.with(name, work)
    }

    /// Gives the run this budget from here on: for arrays that have grown, or because
    /// [`Yielded::shortage`](runtime::Yielded::shortage) says that the one it has is too small.
    pub fn set_memory(&mut self, bytes: Bytes) {
        self.lent.set_memory(bytes.0);
    }

    /// Gives every element of an array one value: `host.fill(step::overflow, 0)`.
    pub fn fill<T: Item, const R: usize>(&mut self, name: Name<Array<T, R>>, value: T) -> Result<()> {
        self.with(name, |array| array.fill(value))?
    }
}
