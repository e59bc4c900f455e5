//! Contents that the program may not read any more, overwritten where the mode asks for it.
//!
//! Here: what an array holds after its memory went on its tape, what an alias of old contents names after the statement
//! that it was made for, what a place on a tape holds after it was popped, temporaries before their declaration and, in
//! programs without tapes, after their block. (The reverse half of a gradient reads temporaries of blocks that the
//! forward half has left.) The driver of gradients knows more: it says so with `Executable::forget` of the runtime.

use super::Machine;
use super::modes::{Dead, poison};
use crate::syntax::*;

impl Machine<'_, '_> {
    /// Overwrites what an array holds, where the mode asks for it.
    pub(super) fn forget(&mut self, array: ArrayId) {
        if self.modes.dead == Dead::Poisoned {
            poison(self.program.array(array).ty, self.arrays[array.index()].bytes.write());
        }
    }

    /// Overwrites what the place on a tape above the last one in use holds, where the mode asks for it.
    pub(super) fn forget_popped(&mut self, array: ArrayId) {
        if self.modes.dead == Dead::Poisoned {
            let tape = &mut self.tapes[array.index()];
            if let Some(place) = tape.places.get_mut(tape.depth) {
                poison(self.program.array(array).ty, place.bytes.write());
            }
        }
    }

    /// Aliases of old contents name them until the end of the statement that reads through them.
    #[inline]
    pub(super) fn forget_aliases(&mut self) {
        while let Some(old) = self.aliases.pop() {
            self.forget(old);
        }
    }

    /// Before a program begins, its temporaries hold anything.
    pub(super) fn forget_temporaries(&mut self) {
        for array in self.program.array_ids() {
            if let Role::Temp(_) = self.program.array(array).role {
                self.forget(array);
            }
        }
    }

    /// After a block, the temporaries that it declares hold anything, unless a reverse half reads them.
    pub(super) fn forget_declared(&mut self, block: &Block) {
        if self.records() {
            return;
        }
        for stmt in block {
            if let Stmt::Temp(array) = stmt {
                self.forget(*array);
            }
        }
    }

    /// Has the program a tape?
    fn records(&mut self) -> bool {
        *self.records.get_or_insert_with(|| {
            let mut records = false;
            walk(&self.program.body, &mut |stmt| {
                records |= matches!(stmt, Stmt::Push(_) | Stmt::Pop(_) | Stmt::Forward(_));
            });
            records
        })
    }
}
