//! Statements that are no blocks.

use std::sync::Arc;

use super::{Builder, Owner};
use crate::syntax::*;

impl Builder {
    pub(super) fn push(&mut self, stmt: Stmt) {
        if let Some(open) = self.open.last_mut() {
            open.block.push(stmt);
        }
    }

    /// `array[index] = value`.
    pub fn store(&mut self, array: ArrayId, index: &[ValueId], value: ValueId) {
        if let Some(index) = self.indices(array, index) {
            let (site, id) = (self.site.clone(), WriteId::UNNUMBERED);
            self.push(Stmt::Store(Store { array, index, value, site, id }));
        }
    }

    /// `array[index] += value` and its kin.
    pub fn update(&mut self, combine: Combine, array: ArrayId, index: &[ValueId], value: ValueId) {
        if let Some(index) = self.indices(array, index) {
            let (site, id) = (self.site.clone(), WriteId::UNNUMBERED);
            self.push(Stmt::Update(combine, Store { array, index, value, site, id }));
        }
    }

    /// `array[index] = value`, at an index that no other iteration of the parallel loop writes: checked at run time.
    pub fn store_unique(&mut self, array: ArrayId, index: &[ValueId], value: ValueId) {
        let inside = self.open.iter().any(|open| matches!(open.owner, Owner::Par(..)));
        if inside && let Some(index) = self.indices(array, index) {
            let taken = match self.taken.get(&array) {
                Some(taken) => *taken,
                None => {
                    let (name, rank) = (&self.program.array(array).name, self.program.array(array).rank);
                    let name = format!("{name}_taken");
                    let taken = self.new_array(&name, Type::Bool, rank, Role::Temp(Vec::new()));
                    self.taken.insert(array, taken);
                    taken
                }
            };
            self.push(Stmt::Claim(Claim { array, taken, index, site: self.site.clone() }));
        }
        self.store(array, index, value);
    }

    /// A mutable local variable with its first value.
    pub fn local(&mut self, name: &str, init: ValueId) -> LocalId {
        let ty = self.ty(init);
        self.program.locals.push(LocalDecl { name: name.to_string(), ty });
        let id = LocalId(self.program.locals.len() as u32 - 1);
        self.push(Stmt::Declare(id, init));
        id
    }

    /// Gives a local variable another value.
    pub fn set(&mut self, local: LocalId, value: ValueId) {
        self.push(Stmt::Set(local, value));
    }

    /// Exchanges the names of two arrays.
    pub fn swap(&mut self, a: ArrayId, b: ArrayId) {
        self.push(Stmt::Swap(a, b));
    }

    /// Gives every element of an array one value.
    pub fn fill(&mut self, array: ArrayId, value: ValueId) {
        self.push(Stmt::Fill(array, value, WriteId::UNNUMBERED));
    }

    /// Copies all elements.
    pub fn copy(&mut self, from: ArrayId, to: ArrayId) {
        self.push(Stmt::Copy { from, to, id: WriteId::UNNUMBERED });
    }

    /// A library operation.
    pub fn library(&mut self, op: LibraryOp, reads: &[ArrayId], writes: &[ArrayId]) {
        let (reads, writes, site) = (reads.to_vec(), writes.to_vec(), self.site.clone());
        self.push(Stmt::Library(LibraryCall { op, reads, writes, arguments: Vec::new(), site }));
    }

    /// A custom operation with these arguments, in order.
    pub fn operation(&mut self, operation: Operation, arguments: &[Bound]) {
        let arrays = |wanted: Access| {
            let of = |bound: &Bound| match *bound {
                Bound::Array(array, access) => (access == wanted).then_some(array),
                Bound::Scalar(_) => None,
            };
            arguments.iter().filter_map(of).collect()
        };
        let (reads, writes) = (arrays(Access::Read), arrays(Access::Write));
        self.program.operations.push(Arc::new(operation));
        let op = LibraryOp::Custom(OperationId(self.program.operations.len() as u32 - 1));
        let (arguments, site) = (arguments.to_vec(), self.site.clone());
        self.push(Stmt::Library(LibraryCall { op, reads, writes, arguments, site }));
    }

    /// `c = a · b`.
    pub fn matmul(&mut self, a: ArrayId, b: ArrayId, c: ArrayId) {
        let op = LibraryOp::Matmul { left: Layout::Plain, right: Layout::Plain, into: Assign::Replace };
        self.library(op, &[a, b], &[c]);
    }

    /// `out[i] = x[0] + … + x[i]`, added in that order.
    pub fn scan(&mut self, x: ArrayId, out: ArrayId) {
        self.library(LibraryOp::Scan { way: Way::Forth, into: Assign::Replace }, &[x], &[out]);
    }

    /// The indices of what is not zero in `flags`, in order, into `out` as far as it has room, and their number into
    /// `count`.
    pub fn compact(&mut self, flags: ArrayId, out: ArrayId, count: ArrayId) {
        self.library(LibraryOp::Compact, &[flags], &[out, count]);
    }
}
