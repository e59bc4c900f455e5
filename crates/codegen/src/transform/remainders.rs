//! Remainders as choices. Input: a body without checks, and its remainders; output: the body in which each that takes one step at
//! most is the sum, or the sum and the divisor, or the sum without it, and in which no divisor is looked at.
//!
//! Legal where divisors are tested to be positive, and these sums to be less than a period away (`analysis::bounds_proof`).

use ebbtide_ir::{Binary, Compare, Literal, Program, Type};

use crate::analysis::narrow_index::Narrow;
use crate::analysis::remainders::{Remainder, Remainders};
use crate::kernel::expr::{Expr, Overflow};
use crate::kernel::name::{Name, Ty, Variable};
use crate::kernel::stmt::{Body, Fault, Stmt, visit_mut};
use crate::transform::lower::operand;

/// The body with its remainders as choices, where they can be; those of narrow variables in the narrow type.
pub(crate) fn choose_remainders(
    mut body: Body,
    program: &Program,
    remainders: &Remainders,
    narrow: &Narrow,
) -> Body {
    without_faults(&mut body, remainders);
    visit_mut(&mut body, &mut |stmt| {
        if let Stmt::Let { name: Name { variable: Variable::Value(v), .. }, ty, value } = stmt
            && let Some(Some(remainder)) = remainders.get(v)
        {
            *ty = if narrow.contains_key(v) { Ty::Narrow } else { Ty::One(Type::Index) };
            *value = chosen(program, remainder, *ty);
        }
    });
    body
}

/// Their divisors are not zero. The depth of recursion is that of nesting in the source.
fn without_faults(body: &mut Body, remainders: &Remainders) {
    body.retain(
        |stmt| !matches!(stmt, Stmt::Fault { kind: Fault::Division(v), .. } if remainders.contains_key(v)),
    );
    body.iter_mut().flat_map(Stmt::blocks_mut).for_each(|block| without_faults(block, remainders));
}

fn chosen(program: &Program, remainder: &Remainder, ty: Ty) -> Expr {
    let Remainder { variable, falls, offset, divisor, .. } = *remainder;
    let number = |n: i64| match ty {
        Ty::Narrow => Expr::Nearest(Box::new(Expr::Literal(Literal::index(n)))),
        _ => Expr::Literal(Literal::index(n)),
    };
    let period = match (program.literal(divisor), ty) {
        (Some(literal), _) => number(literal.to_i64().unwrap_or(1)),
        (None, Ty::Narrow) => Expr::variable(Variable::Bound(divisor)),
        (None, _) => operand(program, divisor),
    };
    let binary = |op, a, b| Expr::Binary(op, ty, Overflow::Wraps, Box::new([a, b]));
    let (variable, offset) = (Expr::variable(Name::value(variable)), number(offset));
    let sum = match falls {
        false => binary(Binary::Add, variable, offset),
        true => binary(Binary::Sub, offset, variable),
    };
    let before = Expr::compare(Compare::Lt, ty, sum.clone(), number(0));
    let behind = Expr::compare(Compare::Ge, ty, sum.clone(), period.clone());
    let down = binary(Binary::Sub, sum.clone(), period.clone());
    let up = binary(Binary::Add, sum.clone(), period);
    Expr::select(ty, before, up, Expr::select(ty, behind, down, sum))
}
