//! Index arithmetic of loops without checks, in the narrow type of places.
//!
//! Where a loop is proved to need no checks and its domain is not enormous, parallel variables and sums of them with small
//! constants fit 32 bits, which halves what a GPU computes for each element. Comparisons with other values compare with the
//! nearest narrow one.

use std::collections::{BTreeMap, BTreeSet};

use ebbtide_ir::{Binary, Op, Par, Stmt, Type, ValueId, walk};

use crate::operation::sign;
use crate::unit::{Checks, Text, line};

/// Parallel variables of narrow loops are not further from zero; `EB_SMALL` of the prelude.
const SMALL: i64 = 1 << 30;

/// How far from zero the narrow values of a loop can be.
pub(crate) type Narrow = BTreeMap<ValueId, i64>;

impl Text<'_> {
    /// The values of a loop that are narrow where its variables are.
    pub fn narrow_values(&self, par: &Par) -> Narrow {
        let mut narrow: Narrow = par.ranges.iter().map(|r| (r.var, SMALL)).collect();
        walk(&par.body, &mut |stmt| {
            if let Stmt::Let(v) = stmt
                && let Op::Binary(Binary::Add | Binary::Sub, a, b) = *self.program.op(*v)
                && self.program.ty(*v) == Type::Index
                && let (Some(a), Some(b)) = (self.distance(&narrow, a), self.distance(&narrow, b))
                && a.saturating_add(b) < i32::MAX.into()
            {
                narrow.insert(*v, a + b);
            }
        });
        narrow
    }

    /// Prints the narrow values that those of a loop are compared with: on entry to the segment, where they are known there.
    pub fn narrow_bounds(&mut self, par: &Par) {
        let mut bounds = BTreeSet::new();
        walk(&par.body, &mut |stmt| {
            if let Stmt::Let(v) = stmt
                && let Op::Compare(_, a, b) = *self.program.op(*v)
                && (self.narrow.contains_key(&a) || self.narrow.contains_key(&b))
            {
                bounds.extend(
                    [a, b]
                        .into_iter()
                        .filter(|v| self.distance(&self.narrow, *v).is_none() && !self.inside.contains(v)),
                );
            }
        });
        for v in bounds {
            match self.on_entry(v) {
                Some(value) => {
                    let v = v.index();
                    let known = format!(
                        "__shared__ nx bound{v}; if (threadIdx.x == 0) bound{v} = eb_narrow({value});\n"
                    );
                    if !self.entry.contains(&known) {
                        self.entry.push_str(&known);
                    }
                    line!(self, "const nx n{v} = bound{v};");
                }
                None => line!(self, "const nx n{} = eb_narrow({});", v.index(), self.value(v)),
            }
        }
    }

    /// How far from zero a value of a narrow loop can be.
    fn distance(&self, narrow: &Narrow, v: ValueId) -> Option<i64> {
        let literal = || self.program.literal(v)?.to_i64()?.checked_abs().filter(|c| *c < SMALL);
        narrow.get(&v).copied().or_else(literal)
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
        match self.distance(&self.narrow, v) {
            Some(_) if self.program.literal(v).is_some() => format!("(nx){}", self.value(v)),
            Some(_) => self.value(v),
            None if self.program.literal(v).is_none() && !self.inside.contains(&v) => {
                format!("n{}", v.index())
            }
            None => format!("eb_narrow({})", self.value(v)),
        }
    }
}
