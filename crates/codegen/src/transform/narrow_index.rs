//! Index arithmetic in 32 bits. Input: a body without checks and which of its values are narrow; output: the body that computes
//! them, and compares them, in the narrow type, which halves what a GPU computes for each element.
//!
//! Legal where the variables of the loop are tested to be narrow. Comparisons with other values compare with the nearest narrow
//! one.

use std::collections::BTreeSet;

use ebbtide_ir::{Binary, Op, Program, ValueId};

use crate::analysis::narrow_index::{Narrow, distance};
use crate::kernel::expr::{Expr, Overflow};
use crate::kernel::name::{Name, Ty, Variable};
use crate::kernel::stmt::{Body, Stmt, visit_mut};
use crate::transform::lower::operand;

/// The body of a loop whose values are `inside`, with these values narrow.
pub(crate) fn narrow_index(
    mut body: Body,
    program: &Program,
    narrow: &Narrow,
    inside: &BTreeSet<ValueId>,
) -> Body {
    let at = |v: ValueId| match distance(program, narrow, v) {
        Some(_) if program.literal(v).is_none() => operand(program, v),
        None if program.literal(v).is_none() && !inside.contains(&v) => Expr::variable(Variable::Bound(v)),
        _ => Expr::Nearest(Box::new(operand(program, v))),
    };
    visit_mut(&mut body, &mut |stmt| {
        let Stmt::Let { name: Name { variable: Variable::Value(v), .. }, ty, value } = stmt else { return };
        match *program.op(*v) {
            Op::Binary(op @ (Binary::Add | Binary::Sub), a, b) if narrow.contains_key(v) => {
                *ty = Ty::Narrow;
                *value = Expr::Binary(op, Ty::Narrow, Overflow::Wraps, Box::new([at(a), at(b)]));
            }
            Op::Compare(op, a, b) if narrow.contains_key(&a) || narrow.contains_key(&b) => {
                *value = Expr::compare(op, Ty::Narrow, at(a), at(b));
            }
            _ => {}
        }
    });
    body
}
