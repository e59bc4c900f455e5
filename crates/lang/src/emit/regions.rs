//! Labelled regions.

use ebbtide_ir::{ArrayId, Undo};
use ebbtide_runtime::Label;

use crate::cx::Cx;
use crate::handle::{Flag, Handle};

/// The array behind `yield_on = …`.
pub fn flag<F: Flag>(array: F) -> Option<ArrayId> {
    Some(array.array())
}

/// The arrays behind `undo = […]`.
#[derive(Debug, Default)]
pub struct Undone(Vec<ArrayId>);

impl Undone {
    /// None yet.
    pub fn new() -> Undone {
        Undone::default()
    }

    /// These too: an array, or all arrays of a struct.
    pub fn and<H: Handle>(mut self, handle: H) -> Undone {
        handle.bound(&mut |behind| self.0.extend(behind.bound.array()));
        self
    }

    /// No more.
    pub fn done(self) -> Undo {
        Undo::Arrays(self.0)
    }
}

/// `#[checkpoint(label, …)] {`
#[track_caller]
pub fn begin_region<L: Label>(cx: &Cx, label: L, flag: Option<ArrayId>, undo: Undo) {
    cx.emit(|b| b.begin_region(label.into(), flag, undo));
}

/// The end of a region.
#[track_caller]
pub fn end_region(cx: &Cx) {
    cx.emit(|b| b.end_region());
}
