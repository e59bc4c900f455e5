//! Index arithmetic of loops without checks, in the narrow type of places.
//!
//! Where a loop is proved to need no checks and its domain is not enormous, parallel variables and sums of them with small
//! constants fit 32 bits, which halves what a GPU computes for each element. Comparisons with other values compare with the
//! nearest narrow one.

use ebbtide_ir::{Binary, Op, Par, ValueId};

use crate::analysis::narrow_index::{compared_with, distance};
use crate::print::emitter::{Checks, Emitter, line};
use crate::print::entry::Known;
use crate::print::operation::sign;

impl Emitter<'_> {
    /// Prints the narrow values that those of a loop are compared with: on entry to the segment, where they are known there.
    pub fn narrow_bounds(&mut self, par: &Par) {
        for v in compared_with(self.program, &self.narrow, &self.inside, par) {
            match self.on_entry(v) {
                Some(value) => {
                    let known = Known::Bound(v);
                    let v = v.index();
                    let text = format!(
                        "__shared__ nx bound{v}; if (threadIdx.x == 0) bound{v} = eb_narrow({value});\n"
                    );
                    self.entry.add(known, text);
                    line!(self, "const nx n{v} = bound{v};");
                }
                None => line!(self, "const nx n{} = eb_narrow({});", v.index(), self.value(v)),
            }
        }
    }

    /// The C type and text of a value, where it is narrow or compares something that is.
    pub fn narrow_value(&self, v: ValueId) -> Option<(&'static str, String)> {
        if self.checks != Checks::Proved || self.narrow.is_empty() {
            return None;
        }
        match *self.program.op(v) {
            Op::Binary(op, a, b) if self.narrow.contains_key(&v) => {
                let sign = if op == Binary::Add { '+' } else { '-' };
                Some(("nx", format!("{} {sign} {}", self.narrowed(a), self.narrowed(b))))
            }
            Op::Compare(op, a, b) if self.narrow.contains_key(&a) || self.narrow.contains_key(&b) => {
                Some(("b8", format!("({} {} {})", self.narrowed(a), sign(op), self.narrowed(b))))
            }
            _ => None,
        }
    }

    fn narrowed(&self, v: ValueId) -> String {
        match distance(self.program, &self.narrow, v) {
            Some(_) if self.program.literal(v).is_some() => format!("(nx){}", self.value(v)),
            Some(_) => self.value(v),
            None if self.program.literal(v).is_none() && !self.inside.contains(&v) => {
                format!("n{}", v.index())
            }
            None => format!("eb_narrow({})", self.value(v)),
        }
    }
}
