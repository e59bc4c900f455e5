//! Index arithmetic that is exact or overflows (law 4), and what keeps loops from paying for it.
//!
//! What overflows is `INT64_MIN`, and so is everything that is computed from it. Where a value is proved to fit, on entry to
//! a loop, its operation is the machine's; elsewhere the functions `eb_index_…` of the preludes look.

use ebbtide_ir::{Binary, Type, Unary, ValueId};

use crate::analysis::exact::{self, Exact};
use crate::print::body::Body;
use crate::print::emitter::{Checks, Emitter, line};

impl Emitter<'_> {
    /// Can the value be no number?
    pub fn may_overflow(&self, v: ValueId) -> bool {
        exact::may_overflow(self.program, &self.exact, v)
    }

    /// An operation on two indices where it must be looked at; `None` where it needs no look.
    pub fn index_binary(
        &self,
        v: ValueId,
        op: Binary,
        [x, y]: [ValueId; 2],
        a: &str,
        b: &str,
    ) -> Option<String> {
        let name = match op {
            Binary::Add => "add",
            Binary::Sub => "sub",
            Binary::Mul => "mul",
            Binary::Shl => "shl",
            _ if !self.may_overflow(x) && !self.may_overflow(y) => return None,
            Binary::Div => "div",
            Binary::Rem => "rem",
            Binary::RemEuclid => "rem_euclid",
            Binary::Min => "min",
            Binary::Max => "max",
            Binary::And => "and",
            Binary::Or => "or",
            Binary::Xor => "xor",
            Binary::Shr => "shr",
        };
        (!self.exact.contains(&v)).then(|| format!("eb_index_{name}({a}, {b})"))
    }

    /// An operation on one index that `text` computes for numbers.
    pub fn index_unary(&self, op: Unary, x: ValueId, a: &str, text: String) -> String {
        // The negative of what overflowed is what overflowed, and so is its distance from zero.
        if op == Unary::Not && self.may_overflow(x) {
            format!("({a} == INT64_MIN ? {a} : {text})")
        } else {
            text
        }
    }

    /// An index as a number of another type.
    pub fn index_cast(&self, x: ValueId, to: Type, a: &str, text: String) -> String {
        let overflowed = match to {
            _ if !self.may_overflow(x) => return text,
            Type::F32 => "(f32)EB_NAN",
            Type::F64 => "EB_NAN",
            Type::I32 => "INT32_MIN",
            Type::U32 => "UINT32_MAX",
            Type::I64 | Type::Index | Type::Bool => return text,
        };
        format!("({a} == INT64_MIN ? {overflowed} : {text})")
    }

    /// Prints the values that a body is proved to compute exactly, in the form that it has now.
    pub fn know_exact(&mut self, body: &Body) {
        self.exact = match body.interior() {
            Some(interior) => interior.exact.clone(),
            None if self.checks == Checks::Proved => self.proved.clone(),
            None => Exact::default(),
        };
    }

    /// Prints a fault where a bound of a loop at program level is no number; all threads find the same.
    pub fn check_bounds(&mut self, bounds: &[ValueId]) {
        for v in bounds {
            if self.may_overflow(*v) {
                let site = self.program.value(*v).site.clone();
                let access = self.access(None, &site);
                line!(
                    self,
                    "if (__builtin_expect({} == INT64_MIN, 0)) {{ eb_fault(f, EB_OVERFLOW, {access}, 0, 0, 0); eb_barrier(f); goto leave; }}",
                    self.value(*v)
                );
            }
        }
    }
}
