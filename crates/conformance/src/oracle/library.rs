//! Library operations (law 11).

use ebbtide_ir::evaluate::{combine, fma, neutral};
use ebbtide_ir::{ArrayId, Assign, Combine, Layout, LibraryCall, LibraryOp, Literal, MATMUL_CHUNK, Way};

use super::Stop;
use super::dual::Dual;
use super::machine::{Machine, Taped, TapedArray};
use super::tape::Node;

impl<'p> Machine<'p> {
    pub(super) fn library(&mut self, call: &'p LibraryCall) -> Result<(), Stop> {
        if let Some(fault) = call.misfit(self.program, |a| &self.arrays[a.index()].shape) {
            return Err(Stop::Fault(fault.to_string()));
        }
        match (call.op, call.reads.as_slice(), call.writes.as_slice()) {
            (LibraryOp::Matmul { left, right, into }, &[a, b], &[c]) => {
                self.matmul((a, left), (b, right), c, into);
                Ok(())
            }
            (LibraryOp::Scan { way, into }, &[x], &[out]) => {
                self.scan(x, out, way, into);
                Ok(())
            }
            (LibraryOp::Compact, &[flags], &[out, count]) => {
                self.compact(flags, out, count);
                Ok(())
            }
            _ => Err(Stop::Unsupported(format!("the operation `{}`", call.name(self.program)))),
        }
    }

    fn matmul(
        &mut self,
        (a, left): (ArrayId, Layout),
        (b, right): (ArrayId, Layout),
        c: ArrayId,
        into: Assign,
    ) {
        let ty = self.program.array(c).ty;
        let at = |array: &TapedArray, layout: Layout, row: i64, column: i64| {
            let place = match layout {
                Layout::Plain => row * array.shape[1] + column,
                Layout::Transposed => column * array.shape[1] + row,
            };
            array.elements[place as usize]
        };
        let a = self.arrays[a.index()].clone();
        let b = self.arrays[b.index()].clone();
        let terms = a.shape[if left == Layout::Plain { 1 } else { 0 }];
        let [rows, columns] = [0, 1].map(|d| self.arrays[c.index()].shape[d]);
        for i in 0..rows {
            for j in 0..columns {
                let place = (i * columns + j) as usize;
                let before = match into {
                    Assign::Replace => Taped::constant(Literal::zero(ty).bits()),
                    Assign::Add => self.arrays[c.index()].elements[place],
                };
                // The chunks that are finished, and the chain of the one that is not.
                let (mut finished, mut chain) = (None, before.bits);
                let mut edges = vec![(before.node, Dual::constant(1.0))];
                for k in 0..terms {
                    let (x, y) = (at(&a, left, i, k), at(&b, right, k, j));
                    if k > 0 && k % MATMUL_CHUNK == 0 {
                        finished = Some(finished.map_or(chain, |sum| combine(Combine::Add, ty, sum, chain)));
                        chain = Literal::zero(ty).bits();
                    }
                    chain = fma(ty, x.bits, y.bits, chain);
                    edges.push((x.node, self.taped_dual(ty, y)));
                    edges.push((y.node, self.taped_dual(ty, x)));
                }
                let bits = finished.map_or(chain, |sum| combine(Combine::Add, ty, sum, chain));
                let node = self.tape.push(&edges);
                self.arrays[c.index()].elements[place] = Taped { bits, node };
            }
        }
    }

    fn scan(&mut self, x: ArrayId, out: ArrayId, way: Way, into: Assign) {
        let ty = self.program.array(x).ty;
        let n = self.arrays[x.index()].elements.len();
        let mut sum = Taped::constant(neutral(Combine::Add, ty));
        for step in 0..n {
            let i = if way == Way::Forth { step } else { n - 1 - step };
            sum = self.sum_or_bits(Combine::Add, ty, sum, self.arrays[x.index()].elements[i]);
            let result = match into {
                Assign::Replace => sum,
                Assign::Add => {
                    let old = self.arrays[out.index()].elements[i];
                    self.sum_or_bits(Combine::Add, ty, old, sum)
                }
            };
            self.arrays[out.index()].elements[i] = result;
        }
    }

    fn compact(&mut self, flags: ArrayId, out: ArrayId, count: ArrayId) {
        let set: Vec<usize> = (0..self.arrays[flags.index()].elements.len())
            .filter(|i| self.arrays[flags.index()].elements[*i].bits != 0)
            .collect();
        let number = |n: usize| Taped { bits: Literal::from(n as i32).bits(), node: Node::CONSTANT };
        for (place, i) in self.arrays[out.index()].elements.iter_mut().zip(&set) {
            *place = number(*i);
        }
        self.arrays[count.index()].elements[0] = number(set.len());
    }
}
