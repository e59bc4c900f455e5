//! Tangents and adjoints of library operations.

use std::collections::HashMap;

use ebbtide_ir::{ArrayId, Assign, Layout, LibraryCall, LibraryOp, Stmt, Way};

use crate::plan::shadow_state::{ShadowState, ShadowStates, Shadows};
use crate::writer::Writer;

/// Writes the tangent of an operation; `dots` has the arrays that carry tangents.
pub(crate) fn tangent(w: &mut Writer, call: &LibraryCall, dots: &HashMap<ArrayId, ArrayId>) {
    // What an operation is linear in, one array at a time.
    let terms: Vec<Vec<ArrayId>> = (0..call.reads.len())
        .filter_map(|k| {
            let mut reads = call.reads.clone();
            reads[k] = *dots.get(&call.reads[k])?;
            Some(reads)
        })
        .collect();
    let Some(to) = call.writes.first().and_then(|a| dots.get(a)).copied() else { return };
    if terms.is_empty() && call.op.replaces_all() {
        let zero = w.real(w.program.array(to).ty, 0.0);
        w.fill(to, zero);
    }
    for (k, reads) in terms.into_iter().enumerate() {
        let op = match call.op {
            LibraryOp::Matmul { left, right, .. } if k > 0 => {
                LibraryOp::Matmul { left, right, into: Assign::Add }
            }
            op => op,
        };
        push(w, call, op, reads, to);
    }
}

/// Writes adjoints of library operations.
pub(crate) struct LibraryAdjoint<'a> {
    pub shadows: &'a Shadows,
    /// What each shadow holds now, by the array that it shadows.
    pub shadow_states: &'a mut ShadowStates,
}

impl LibraryAdjoint<'_> {
    /// Lets what the operation wrote flow back to what it read, and forgets it where it was replaced.
    pub fn write(&mut self, w: &mut Writer, call: &LibraryCall) {
        match (call.op, call.reads.as_slice(), call.writes.as_slice()) {
            // Of c = a · b: a̅ += c̅ · bᵀ and b̅ += aᵀ · c̅; of a factor that is read transposed, the transpose of that.
            (LibraryOp::Matmul { left, right, .. }, &[a, b], &[c]) => {
                if let Some(flow) = self.flow(c, a) {
                    match left {
                        Layout::Plain => {
                            flow.product(w, call, (flow.from, Layout::Plain), (b, flipped(right)))
                        }
                        Layout::Transposed => {
                            flow.product(w, call, (b, right), (flow.from, Layout::Transposed))
                        }
                    }
                }
                if let Some(flow) = self.flow(c, b) {
                    match right {
                        Layout::Plain => {
                            flow.product(w, call, (a, flipped(left)), (flow.from, Layout::Plain))
                        }
                        Layout::Transposed => {
                            flow.product(w, call, (flow.from, Layout::Transposed), (a, left))
                        }
                    }
                }
                self.forget(call, c);
            }
            (LibraryOp::Scan { way, .. }, &[x], &[out]) => {
                if let Some(flow) = self.flow(out, x) {
                    let way = if way == Way::Forth { Way::Back } else { Way::Forth };
                    let op = LibraryOp::Scan { way, into: flow.into };
                    push(w, call, op, vec![flow.from], flow.to);
                }
                self.forget(call, out);
            }
            // Integers carry no derivative.
            _ => {}
        }
    }

    /// The way back from one array's shadow to another's; `None` where nothing flows.
    fn flow(&mut self, from: ArrayId, to: ArrayId) -> Option<Flow> {
        let (source, target) = (*self.shadows.arrays.get(&from)?, *self.shadows.arrays.get(&to)?);
        if self.shadow_states.get(&from) != Some(&ShadowState::Numbers) {
            return None;
        }
        let into = match self.shadow_states.insert(to, ShadowState::Numbers) {
            Some(ShadowState::Numbers) => Assign::Add,
            _ => Assign::Replace,
        };
        Some(Flow { from: source, to: target, into })
    }

    fn forget(&mut self, call: &LibraryCall, written: ArrayId) {
        if call.op.replaces_all() && self.shadow_states.get(&written) == Some(&ShadowState::Numbers) {
            self.shadow_states.insert(written, ShadowState::Nothing);
        }
    }
}

/// Shadows between which something flows, and what becomes of it.
#[derive(Clone, Copy)]
struct Flow {
    from: ArrayId,
    to: ArrayId,
    into: Assign,
}

impl Flow {
    fn product(self, w: &mut Writer, call: &LibraryCall, a: (ArrayId, Layout), b: (ArrayId, Layout)) {
        let op = LibraryOp::Matmul { left: a.1, right: b.1, into: self.into };
        push(w, call, op, vec![a.0, b.0], self.to);
    }
}

fn flipped(layout: Layout) -> Layout {
    match layout {
        Layout::Plain => Layout::Transposed,
        Layout::Transposed => Layout::Plain,
    }
}

fn push(w: &mut Writer, call: &LibraryCall, op: LibraryOp, reads: Vec<ArrayId>, to: ArrayId) {
    w.push(Stmt::Library(LibraryCall {
        op,
        reads,
        writes: vec![to],
        arguments: Vec::new(),
        site: call.site.clone(),
    }));
}
