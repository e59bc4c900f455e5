//! Branches without jumps. Input: a body without checks; output: one in which both arms of a branch stand one after the other,
//! each statement under its condition, so that all loads of an iteration are on their way at once.
//!
//! Legal where nothing in an arm can fail: elements are touched under the condition alone, and values are computed for nothing
//! where it does not hold.

use ebbtide_ir::Type;

use crate::kernel::expr::Expr;
use crate::kernel::name::{Fresh, Ty, Variable};
use crate::kernel::stmt::{Body, Check, Stmt};

/// Branches of more statements keep their jump.
const FEW: usize = 200;

const TRUTH: Ty = Ty::One(Type::Bool);

/// The body with straight branches as predicates.
pub(crate) fn predicate(body: Body, fresh: &mut Fresh) -> Body {
    let mut out = Body::new();
    for mut stmt in body {
        match stmt {
            Stmt::If { condition, then, otherwise } if is_straight(&[&then, &otherwise]) => {
                arms(condition, then, otherwise, None, fresh, &mut out);
            }
            _ => {
                for block in stmt.blocks_mut() {
                    *block = predicate(std::mem::take(block), fresh);
                }
                out.push(stmt);
            }
        }
    }
    out
}

/// Can both arms of a branch be run one after the other, for the cost of a little arithmetic?
fn is_straight(blocks: &[&Body]) -> bool {
    let (mut work, mut statements): (Vec<&Body>, usize) = (blocks.to_vec(), 0);
    while let Some(block) = work.pop() {
        statements += block.len();
        for stmt in block {
            let costly = match stmt {
                Stmt::Let { value, .. } => matches!(value, Expr::Math(..) | Expr::Random(..)),
                Stmt::Load { element, .. } | Stmt::Store { element, .. } => element.check != Check::Proved,
                Stmt::Loop(_) | Stmt::Fault { .. } | Stmt::Claim { .. } => true,
                _ => false,
            };
            if costly {
                return false;
            }
            work.extend(stmt.blocks());
        }
    }
    statements < FEW
}

/// Both arms, under their conditions and that around them. The depth of recursion is that of nesting in the source.
fn arms(
    condition: Expr,
    then: Body,
    otherwise: Body,
    around: Option<&Expr>,
    fresh: &mut Fresh,
    out: &mut Body,
) {
    let opposite = condition.clone().not(TRUTH);
    for (condition, arm) in [(condition, then), (opposite, otherwise)] {
        if arm.is_empty() {
            continue;
        }
        let value = match around {
            Some(around) => Expr::All(vec![around.clone(), condition]),
            None => condition,
        };
        let name = Variable::Mask(fresh.next()).into();
        out.push(Stmt::Let { name, ty: TRUTH, value });
        under(arm, &Expr::Variable(name), fresh, out);
    }
}

/// Statements that take effect where a condition holds.
fn under(arm: Body, mask: &Expr, fresh: &mut Fresh, out: &mut Body) {
    for mut stmt in arm {
        match &mut stmt {
            Stmt::Load { when, .. } | Stmt::Store { when, .. } | Stmt::Reduce { when, .. } => {
                *when = Some(mask.clone());
            }
            Stmt::Assign { name, ty, value } => {
                let chosen = std::mem::replace(value, Expr::truth(false));
                *value = Expr::select(*ty, mask.clone(), chosen, Expr::Variable(*name));
            }
            Stmt::If { condition, then, otherwise } => {
                let (then, otherwise) = (std::mem::take(then), std::mem::take(otherwise));
                arms(condition.clone(), then, otherwise, Some(mask), fresh, out);
                continue;
            }
            _ => {}
        }
        out.push(stmt);
    }
}
