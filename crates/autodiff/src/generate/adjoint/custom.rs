//! Programs and custom operations that bring their own derivatives.
//!
//! A call of such a program is made one operation before anything else happens, and put back in the end: between the
//! two nothing looks inside.

use ebbtide_ir::{ArrayId, LibraryCall, LibraryOp};

use crate::analysis::operation_arguments::{float_arrays, saved_arrays};
use crate::analysis::operation_rules::Wanted;
use crate::generate::adjoint::AdjointBuilder;
use crate::generate::custom_call::call_rule;
use crate::plan::shadow_state::ShadowState;
use crate::writer::Writer;

impl AdjointBuilder<'_> {
    /// Lets what a custom operation left flow back through its own adjoint.
    pub(crate) fn reverse_custom(&mut self, w: &mut Writer, call: &LibraryCall) {
        let LibraryOp::Custom(id) = call.op else { return };
        let Some(rule) = self.derivatives.get(&id).cloned() else { return };
        // Nothing flows back from results that nothing used.
        if call.writes.iter().all(|a| self.shadow_states.get(a) != Some(&ShadowState::Numbers)) {
            return;
        }
        for a in float_arrays(self.source, call) {
            match self.scratch.get(&a).copied() {
                Some(scratch) => {
                    let zero = w.real(self.source.array(a).ty, 0.0);
                    w.fill(scratch, zero);
                }
                None => {
                    self.make_real(w, a);
                    self.shadow_states.insert(a, ShadowState::Numbers);
                }
            }
        }
        let beside = |a: ArrayId| self.shadows.arrays.get(&a).or_else(|| self.scratch.get(&a)).copied();
        call_rule(w, self.source, call, (&rule, Wanted::Adjoint), |v| self.known(v), beside);
        // What it saved overwrote what was there, and depends on nothing.
        for a in saved_arrays(self.source, call) {
            if self.shadows.arrays.contains_key(&a) {
                self.shadow_states.insert(a, ShadowState::Nothing);
            }
        }
    }
}
