//! Iterations far from boundaries. Input: a body and what its conditions are there; output: the body without these branches.
//!
//! Legal where the conditions are what they are taken to be: the iterations of a warp ask them before they take the body.

use ebbtide_ir::ValueId;

use crate::analysis::boundary_conditions::FarFromBoundaries;
use crate::kernel::expr::Expr;
use crate::kernel::name::{Name, Variable};
use crate::kernel::stmt::{Body, Stmt};

/// The body with the arms that are taken in place of branches.
pub(crate) fn specialise(body: Body, decided: &FarFromBoundaries) -> Body {
    take_arms(body, &|v| decided.get(&v).copied())
}

/// Replaces branches whose conditions are known by the arms that are taken. The depth of recursion is that of nesting in the
/// source.
pub(crate) fn take_arms(body: Body, known: &dyn Fn(ValueId) -> Option<bool>) -> Body {
    let mut out = Body::new();
    for mut stmt in body {
        if let Stmt::If { condition: Expr::Variable(Name { variable: Variable::Value(v), .. }), .. } = stmt
            && let Some(holds) = known(v)
            && let Stmt::If { then, otherwise, .. } = stmt
        {
            out.extend(take_arms(if holds { then } else { otherwise }, known));
            continue;
        }
        for block in stmt.blocks_mut() {
            *block = take_arms(std::mem::take(block), known);
        }
        out.push(stmt);
    }
    out
}
