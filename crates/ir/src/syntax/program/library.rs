//! Library operations: what a program does with whole arrays in one statement.
//!
//! Their form, what fits them, and what they mean. A device may compute them in another way, not with other bits.

use super::{Bound, Program};
use crate::syntax::error::Fault;
use crate::syntax::ids::{ArrayId, OperationId, Site};
use crate::syntax::types::Type;

/// A library operation and the arrays that it works on; none of those that it writes stands twice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LibraryCall {
    /// What is done.
    pub op: LibraryOp,
    /// The arrays that it reads.
    pub reads: Vec<ArrayId>,
    /// The arrays that it writes.
    pub writes: Vec<ArrayId>,
    /// Of a custom operation, all arguments in order; else empty.
    pub arguments: Vec<Bound>,
    /// Where it stands in the source.
    pub site: Option<Site>,
}

/// What a library operation does with the arrays that it reads, `r0 r1 …`, and those that it writes, `w0 w1 …`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum LibraryOp {
    /// `w0 = r0 · r1`, floats of rank 2. The values of `k` are cut into chunks of [`MATMUL_CHUNK`]. A chunk begins as zero,
    /// the first one as the element where the product is added to it, and becomes `fma(r0[i, k], r1[k, j], chunk)` for each
    /// of its `k` in ascending order. The element is the first chunk, to which the others are added in order.
    Matmul {
        /// How the left factor is read.
        left: Layout,
        /// How the right factor is read.
        right: Layout,
        /// What happens to the product.
        into: Assign,
    },
    /// `w0[i] = r0[0] + … + r0[i]`, numbers of rank 1, added in that order; from the last element to `i` where the
    /// way is back.
    Scan {
        /// Where the sum begins.
        way: Way,
        /// What happens to the sums.
        into: Assign,
    },
    /// `w0` gets the indices of the elements of `r0` that are not zero, in order, as far as it has room, and `w1`
    /// their number, also where there is no room.
    Compact,
    /// A custom operation of the program, which reads what it writes too.
    Custom(OperationId),
}

/// The terms of a product that one chain of fused steps adds up. Chunks do not depend on each other, so that a small
/// product can be split between many threads.
pub const MATMUL_CHUNK: i64 = 128;

/// How a factor of a product is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Layout {
    /// Row by row, as it stands.
    Plain,
    /// With rows and columns exchanged.
    Transposed,
}

/// What happens to a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Assign {
    /// It replaces what was there.
    Replace,
    /// It is added to what is there.
    Add,
}

/// The way through the elements of an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Way {
    /// From the first to the last.
    Forth,
    /// From the last to the first.
    Back,
}

/// The extents of a product: rows, columns, and the length of the sums.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Extents {
    pub rows: i64,
    pub columns: i64,
    pub terms: i64,
}

impl LibraryOp {
    /// The name that programs call it by.
    pub fn name(&self) -> &'static str {
        match self {
            LibraryOp::Matmul { .. } => "matmul",
            LibraryOp::Scan { .. } => "scan",
            LibraryOp::Compact => "compact",
            LibraryOp::Custom(_) => "operation",
        }
    }

    /// The name in the text form, which has what [`LibraryOp::name`] leaves out: `add_matmul`, `scan_back`.
    pub(crate) fn spelled(&self) -> &'static str {
        match self {
            LibraryOp::Matmul { into: Assign::Add, .. } => "add_matmul",
            LibraryOp::Scan { way: Way::Forth, into: Assign::Add } => "add_scan",
            LibraryOp::Scan { way: Way::Back, into: Assign::Replace } => "scan_back",
            LibraryOp::Scan { way: Way::Back, into: Assign::Add } => "add_scan_back",
            other => other.name(),
        }
    }

    /// Does it write every element of the arrays that it writes, and read none of them?
    pub fn replaces_all(&self) -> bool {
        match self {
            LibraryOp::Matmul { into, .. } | LibraryOp::Scan { into, .. } => *into == Assign::Replace,
            LibraryOp::Compact | LibraryOp::Custom(_) => false,
        }
    }

    /// What the shapes of its arrays must be to one another.
    fn rule(&self) -> &'static str {
        match self {
            LibraryOp::Matmul { left, right, .. } => match (left, right) {
                (Layout::Plain, Layout::Plain) => "[m, k], [k, n] and [m, n]",
                (Layout::Plain, Layout::Transposed) => "[m, k], [n, k] and [m, n]",
                (Layout::Transposed, Layout::Plain) => "[k, m], [k, n] and [m, n]",
                (Layout::Transposed, Layout::Transposed) => "[k, m], [n, k] and [m, n]",
            },
            LibraryOp::Scan { .. } => "[n] and [n]",
            LibraryOp::Compact => "[n] with n below 2^31, [m] and []",
            // It says itself what does not fit.
            LibraryOp::Custom(_) => "of its own",
        }
    }

    /// What its arrays must be, where they are not: the number, ranks and types of those read and written.
    fn mismatch(&self, reads: &[(usize, Type)], writes: &[(usize, Type)]) -> Option<&'static str> {
        let fits = match (self, reads, writes) {
            (LibraryOp::Matmul { .. }, [a, b], [c]) => a.0 == 2 && a.1.is_float() && a == b && a == c,
            (LibraryOp::Scan { .. }, [x], [out]) => x.0 == 1 && x.1 != Type::Bool && x == out,
            (LibraryOp::Compact, [flags], [out, count]) => {
                flags.0 == 1
                    && matches!(flags.1, Type::Bool | Type::I32 | Type::U32)
                    && *out == (1, Type::I32)
                    && *count == (0, Type::I32)
            }
            (LibraryOp::Custom(_), ..) => true,
            _ => false,
        };
        let rule = match self {
            LibraryOp::Matmul { .. } => "three arrays of rank 2 of one float type",
            LibraryOp::Scan { .. } => "two arrays of rank 1 of one type of numbers",
            LibraryOp::Compact => {
                "an Array1 of bool, i32 or u32, an Array1<i32> for the indices and an Array0<i32> for their number"
            }
            LibraryOp::Custom(_) => "arrays",
        };
        (!fits).then_some(rule)
    }
}

impl LibraryCall {
    /// All arrays that it works on, those that it reads first.
    pub fn arrays(&self) -> impl Iterator<Item = ArrayId> {
        self.reads.iter().chain(&self.writes).copied()
    }

    /// The name that programs call it by.
    pub fn name<'p>(&self, program: &'p Program) -> &'p str {
        program.operation(self).map_or(self.op.name(), |operation| &operation.name)
    }

    /// What is wrong with the types and ranks of its arrays, and what to write instead.
    pub(crate) fn flaw(&self, program: &Program) -> Option<String> {
        let of = |arrays: &[ArrayId]| -> Vec<(usize, Type)> {
            arrays.iter().map(|a| (program.array(*a).rank, program.array(*a).ty)).collect()
        };
        if let Some(rule) = self.op.mismatch(&of(&self.reads), &of(&self.writes)) {
            let given: Vec<String> = self
                .arrays()
                .map(|a| {
                    format!(
                        "`{}`: Array{}<{}>",
                        program.array(a).name,
                        program.array(a).rank,
                        program.array(a).ty
                    )
                })
                .collect();
            return Some(format!("`{}` takes {rule}, not {}", self.name(program), given.join(", ")));
        }
        let all: Vec<ArrayId> = self.arrays().collect();
        let twice = self.writes.iter().find(|w| all.iter().filter(|a| a == w).count() > 1);
        twice.map(|w| {
            let name = &program.array(*w).name;
            format!(
                "`{}` writes `{name}`, which it uses in another place too: give it an array of its own",
                self.name(program)
            )
        })
    }

    /// The fault of arrays whose shapes do not fit together, where they do not.
    pub fn misfit<'s>(&self, program: &Program, shape: impl Fn(ArrayId) -> &'s [i64]) -> Option<Fault> {
        let shapes: Vec<&[i64]> = self.arrays().map(shape).collect();
        let fits = match (self.op, shapes.as_slice()) {
            (LibraryOp::Matmul { left, right, .. }, [a, b, c]) => extents(left, right, a, b, c).is_some(),
            (LibraryOp::Scan { .. }, [x, out]) => x == out,
            (LibraryOp::Compact, [flags, ..]) => flags[0] <= i64::from(i32::MAX),
            (LibraryOp::Custom(_), _) => true,
            _ => false,
        };
        if fits {
            return None;
        }
        let describe =
            |(a, shape): (ArrayId, &&[i64])| format!("`{}` has shape {shape:?}", program.array(a).name);
        let given: Vec<String> = self.arrays().zip(&shapes).map(describe).collect();
        Some(Fault::Misfit {
            operation: self.name(program).to_string(),
            arrays: given.join(", "),
            rule: self.op.rule(),
            site: self.site.clone(),
        })
    }
}

pub(crate) fn extents(left: Layout, right: Layout, a: &[i64], b: &[i64], c: &[i64]) -> Option<Extents> {
    let oriented = |layout: Layout, shape: &[i64]| match layout {
        Layout::Plain => (shape[0], shape[1]),
        Layout::Transposed => (shape[1], shape[0]),
    };
    let ((rows, terms), (height, columns)) = (oriented(left, a), oriented(right, b));
    (terms == height && c == [rows, columns]).then_some(Extents { rows, columns, terms })
}
