//! Which thread runs which iteration of a parallel loop, and so which thread owns an element.
//!
//! Loops over the same domain are dealt out alike. Where every iteration of a loop touches an array at the iteration's own
//! index alone, the thread that runs an iteration owns that element, until all threads meet: another loop over the same
//! domain, or a single statement that its owner runs, needs no meeting before it.
//!
//! A domain is the same where its bounds are the same sums of what does not change while the segment runs. What follows
//! from such bounds is computed once, on entry to the segment.

use std::collections::BTreeSet;

use ebbtide_ir::{ArrayId, Binary, Facts, Op, Par, Program, Sharing, Type, ValueId};

use crate::kernel::index_expr::{Arithmetic, IndexExpr};
use crate::kernel::work::Work;

/// The domain of a loop, as expressions that are right on entry to the segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mapping {
    /// First value and end of each range.
    pub ranges: Vec<(IndexExpr, IndexExpr)>,
    /// How much an iteration computes, where that decides whether threads share the loop.
    pub work: Option<Work>,
    /// How many rows a thread takes at once.
    pub together: usize,
}

/// What is known on entry to a segment.
#[derive(Debug, Default)]
pub(crate) struct OnEntry {
    /// The values that it is given.
    pub given: BTreeSet<ValueId>,
    /// The arrays that it names.
    pub named: BTreeSet<ArrayId>,
}

impl OnEntry {
    /// A program-level index value as an expression that is right on entry to the segment, if it never changes. The depth
    /// of recursion is that of the expression in the source.
    pub fn value(&self, program: &Program, facts: &Facts, v: ValueId) -> Option<IndexExpr> {
        // An extent of a temporary is what it was declared with: loops over both are over one domain.
        let first = facts.affines.representative(v);
        if let (Op::Dim(..), true) = (program.op(v), first != v)
            && let Some(value) = self.value(program, facts, first)
        {
            return Some(value);
        }
        if self.given.contains(&v) || program.literal(v).is_some() {
            return Some(IndexExpr::value(program, v));
        }
        if program.ty(v) != Type::Index {
            return None;
        }
        match *program.op(v) {
            Op::Dim(array, k) if self.named.contains(&array) => Some(IndexExpr::Extent(array, k.into())),
            Op::Scalar(s) => Some(IndexExpr::Scalar(s)),
            Op::Binary(op @ (Binary::Add | Binary::Sub | Binary::Mul), a, b) => {
                let op = match op {
                    Binary::Add => Arithmetic::Add,
                    Binary::Sub => Arithmetic::Sub,
                    _ => Arithmetic::Mul,
                };
                Some(IndexExpr::marked(op, self.value(program, facts, a)?, self.value(program, facts, b)?))
            }
            Op::Binary(Binary::Div, a, b) => {
                let divisor = program.literal(b).and_then(|l| l.to_i64()).filter(|l| *l > 0)?;
                Some(IndexExpr::marked(
                    Arithmetic::Div,
                    self.value(program, facts, a)?,
                    IndexExpr::Number(divisor),
                ))
            }
            _ => None,
        }
    }

    /// The ranges of a loop, where they are known.
    pub fn ranges(&self, program: &Program, facts: &Facts, par: &Par) -> Option<Vec<(IndexExpr, IndexExpr)>> {
        let value = |v: ValueId| self.value(program, facts, v);
        par.ranges.iter().map(|r| Some((value(r.from)?, value(r.to)?))).collect()
    }
}

/// Does every iteration of a loop touch what it writes alone? Leaves of sums and ordered updates are dealt out in other ways.
pub(crate) fn has_owners(facts: &Facts, par: &Par) -> bool {
    let facts = facts.pars.get(&par.id);
    facts.is_some_and(|facts| facts.sharing.values().all(|sharing| *sharing == Sharing::Own))
}
