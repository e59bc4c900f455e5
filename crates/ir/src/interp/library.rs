//! What each library operation means. A device may compute it in another way, not with other bits.

use super::evaluate::{combine, fma, neutral};
use super::{Bytes, HostArray, Machine};
use crate::syntax::*;

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
                let zero = Literal::zero(ty).bits();
                let mut element = match into {
                    Assign::Replace => zero,
                    Assign::Add => self.read(c, place),
                };
                for first in (0..terms).step_by(MATMUL_CHUNK as usize) {
                    let mut chunk = if first == 0 { element } else { zero };
                    for k in first..terms.min(first + MATMUL_CHUNK) {
                        let x = self.read(a, at(left, &self.arrays[a.index()].shape, i, k));
                        let y = self.read(b, at(right, &self.arrays[b.index()].shape, k, j));
                        chunk = fma(ty, x, y, chunk);
                    }
                    element = if first == 0 { chunk } else { combine(Combine::Add, ty, element, chunk) };
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
