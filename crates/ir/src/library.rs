//! Library operations: what a program does with whole arrays in one statement.
//!
//! Their form, what fits them, and what they mean. A device may compute them in another way, not with other bits.

use crate::error::Fault;
use crate::evaluate::{combine, fma, neutral};
use crate::interpret::{Bytes, HostArray, Machine};
use crate::operation::{Bound, HostArg};
use crate::program::{Access, ArrayId, Combine, OperationId, Program, Site, ValueId};
use crate::types::{Literal, Type};

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
    /// `w0 = r0 · r1`, floats of rank 2. An element begins as zero, or as itself where the product is added to it,
    /// and becomes `fma(r0[i, k], r1[k, j], element)` for each `k` in ascending order.
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
struct Extents {
    rows: i64,
    columns: i64,
    terms: i64,
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

    /// The text form: `matmul(a, b, c)`, `add_matmul(d, transposed(b), e)`.
    pub(crate) fn text(&self, program: &Program, scalar: impl Fn(ValueId) -> String) -> String {
        if let LibraryOp::Custom(_) = self.op {
            let arguments = self.arguments.iter().map(|bound| match bound {
                Bound::Array(a, _) => program.array(*a).name.clone(),
                Bound::Scalar(v) => scalar(*v),
            });
            return format!("{}({})", self.name(program), arguments.collect::<Vec<_>>().join(", "));
        }
        let mut names: Vec<String> = self.arrays().map(|a| program.array(a).name.clone()).collect();
        let (into, suffix) = match self.op {
            LibraryOp::Matmul { left, right, into } => {
                for (name, layout) in names.iter_mut().zip([left, right]) {
                    if layout == Layout::Transposed {
                        *name = format!("transposed({name})");
                    }
                }
                (into, "")
            }
            LibraryOp::Scan { way: Way::Forth, into } => (into, ""),
            LibraryOp::Scan { way: Way::Back, into } => (into, "_back"),
            LibraryOp::Compact | LibraryOp::Custom(_) => (Assign::Replace, ""),
        };
        let prefix = if into == Assign::Add { "add_" } else { "" };
        format!("{prefix}{}{suffix}({})", self.op.name(), names.join(", "))
    }
}

fn extents(left: Layout, right: Layout, a: &[i64], b: &[i64], c: &[i64]) -> Option<Extents> {
    let oriented = |layout: Layout, shape: &[i64]| match layout {
        Layout::Plain => (shape[0], shape[1]),
        Layout::Transposed => (shape[1], shape[0]),
    };
    let ((rows, terms), (height, columns)) = (oriented(left, a), oriented(right, b));
    (terms == height && c == [rows, columns]).then_some(Extents { rows, columns, terms })
}

impl Machine<'_, '_> {
    /// What each operation means.
    pub(crate) fn library(&mut self, call: &LibraryCall) -> Result<(), Fault> {
        let misfit = call.misfit(self.program, |a| &self.arrays[a.index()].shape);
        if let Some(fault) = misfit {
            return Err(fault);
        }
        match (call.op, call.reads.as_slice(), call.writes.as_slice()) {
            (LibraryOp::Matmul { left, right, into }, &[a, b], &[c]) => {
                self.matmul((a, left), (b, right), c, into)
            }
            (LibraryOp::Scan { way, into }, &[x], &[out]) => self.scan(x, out, way, into),
            (LibraryOp::Compact, &[flags], &[out, count]) => self.compact(flags, out, count),
            (LibraryOp::Custom(_), ..) => self.custom(call)?,
            // The verifier counts the arrays.
            _ => {}
        }
        Ok(())
    }

    fn custom(&mut self, call: &LibraryCall) -> Result<(), Fault> {
        let Some(operation) = self.program.operation(call) else { return Ok(()) };
        // What is written is taken out meanwhile; it stands in no other place.
        let mut written: Vec<HostArray<'_>> = Vec::new();
        for a in &call.writes {
            let empty = HostArray { shape: Vec::new(), bytes: Bytes::Own(Vec::new()) };
            written.push(std::mem::replace(&mut self.arrays[a.index()], empty));
        }
        let mut at = written.iter_mut();
        let mut args: Vec<HostArg<'_>> = Vec::new();
        for bound in &call.arguments {
            args.push(match bound {
                Bound::Array(a, Access::Read) => {
                    let HostArray { shape, bytes } = &self.arrays[a.index()];
                    HostArg::Read { ty: self.program.array(*a).ty, shape, bytes: bytes.read() }
                }
                Bound::Array(a, Access::Write) => {
                    let Some(HostArray { shape, bytes }) = at.next() else { continue };
                    HostArg::Write { ty: self.program.array(*a).ty, shape, bytes: bytes.write() }
                }
                Bound::Scalar(v) => HostArg::Scalar(Literal::from_bits(self.program.ty(*v), self.bits(*v))),
            });
        }
        let result = crate::parts::call_operation(self.program, call, &mut args);
        drop(args);
        for (a, array) in call.writes.iter().zip(written) {
            self.arrays[a.index()] = array;
        }
        result.map_err(|message| Fault::Operation {
            operation: operation.name.clone(),
            message,
            site: call.site.clone(),
        })
    }

    fn matmul(
        &mut self,
        (a, left): (ArrayId, Layout),
        (b, right): (ArrayId, Layout),
        c: ArrayId,
        into: Assign,
    ) {
        let shape = |id: ArrayId| self.arrays[id.index()].shape.as_slice();
        let Some(Extents { rows, columns, terms }) = extents(left, right, shape(a), shape(b), shape(c))
        else {
            return;
        };
        let ty = self.program.array(c).ty;
        let at = |layout: Layout, shape: &[i64], row: i64, column: i64| match layout {
            Layout::Plain => (row * shape[1] + column) as usize,
            Layout::Transposed => (column * shape[1] + row) as usize,
        };
        for i in 0..rows {
            for j in 0..columns {
                let place = (i * columns + j) as usize;
                let mut element = match into {
                    Assign::Replace => Literal::zero(ty).bits(),
                    Assign::Add => self.read(c, place),
                };
                for k in 0..terms {
                    let x = self.read(a, at(left, &self.arrays[a.index()].shape, i, k));
                    let y = self.read(b, at(right, &self.arrays[b.index()].shape, k, j));
                    element = fma(ty, x, y, element);
                }
                self.write(c, place, element);
            }
        }
    }

    fn scan(&mut self, x: ArrayId, out: ArrayId, way: Way, into: Assign) {
        let ty = self.program.array(x).ty;
        let n = self.arrays[x.index()].shape[0] as usize;
        let mut sum = neutral(Combine::Add, ty);
        for step in 0..n {
            let i = if way == Way::Forth { step } else { n - 1 - step };
            sum = combine(Combine::Add, ty, sum, self.read(x, i));
            let result = match into {
                Assign::Replace => sum,
                Assign::Add => combine(Combine::Add, ty, self.read(out, i), sum),
            };
            self.write(out, i, result);
        }
    }

    fn compact(&mut self, flags: ArrayId, out: ArrayId, count: ArrayId) {
        let (n, room) = (self.arrays[flags.index()].shape[0], self.arrays[out.index()].shape[0]);
        let mut found = 0;
        for i in 0..n {
            if self.read(flags, i as usize) != 0 {
                if found < room {
                    self.write(out, found as usize, Literal::from(i as i32).bits());
                }
                found += 1;
            }
        }
        self.write(count, 0, Literal::from(found as i32).bits());
    }
}
