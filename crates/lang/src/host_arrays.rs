//! What the host may change where a differentiated program yields.

use ebbtide_runtime::{self as runtime, Array, Result};

use crate::program::Name;
use crate::scalar::Item;

/// The arrays that the caller lent for writing, as they are where the program yielded. What is changed here, the
/// program goes on with; for the derivative it is constant.
pub struct Host<'a> {
    pub(crate) lent: &'a mut runtime::Host,
}

impl Host<'_> {
    /// Works on the array of a parameter. Its shape must stay as it is.
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

    /// Gives every element of an array one value: `host.fill(step::overflow, 0)`.
    pub fn fill<T: Item, const R: usize>(&mut self, name: Name<Array<T, R>>, value: T) -> Result<()> {
        self.with(name, |array| array.fill(value))?
    }
}
