//! Arrays that stay in the memory of their device while an operation of the host works on boxes of them.
//!
//! An exchange of halos touches the borders of its arrays alone. A device whose memory the host cannot touch lends the arrays of
//! such an operation ([`lend`]) instead of copying them whole; what does the operation takes them ([`take_lent`]). Nothing is lent
//! where the host has the arrays anyway.

use std::cell::RefCell;

/// A box of an array: rows of equal length at equal distances.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StridedBox {
    /// The array, by its place among those of the operation.
    pub array: usize,
    /// The first byte.
    pub start: usize,
    /// The bytes of a row.
    pub row: usize,
    /// Rows of a plane, planes.
    pub counts: [usize; 2],
    /// Bytes from row to row, rows from plane to plane.
    pub strides: [usize; 2],
}

impl StridedBox {
    /// The number of its bytes.
    pub fn bytes(&self) -> usize {
        self.row * self.counts[0] * self.counts[1]
    }

    /// Where its rows begin, first to last.
    pub fn rows(self) -> impl Iterator<Item = usize> {
        let [rows, planes] = self.counts;
        let [row, plane] = self.strides;
        (0..planes).flat_map(move |p| (0..rows).map(move |r| self.start + (p * plane + r) * row))
    }
}

/// Arrays that can be read and written box by box, wherever they are. Boxes lie within their arrays.
pub trait Resident {
    /// The bytes of boxes, one box after another, each row by row.
    fn read(&mut self, boxes: &[StridedBox]) -> Result<Vec<u8>, String>;

    /// Writes boxes in their order: `bytes` are those of one box after another.
    fn write(&mut self, boxes: &[StridedBox], bytes: &[u8]) -> Result<(), String>;
}

thread_local! {
    static LENT: RefCell<Option<Box<dyn Resident>>> = const { RefCell::new(None) };
}

/// Runs an operation of the host on arrays that stay where they are.
pub fn lend<R>(arrays: Box<dyn Resident>, operation: impl FnOnce() -> R) -> R {
    /// Nothing stays lent, whatever the operation does.
    struct TakeBack;
    impl Drop for TakeBack {
        fn drop(&mut self) {
            LENT.set(None);
        }
    }
    LENT.set(Some(arrays));
    let _back = TakeBack;
    operation()
}

/// The arrays that the device lends to the operation that this thread runs, once.
pub fn take_lent() -> Option<Box<dyn Resident>> {
    LENT.take()
}
