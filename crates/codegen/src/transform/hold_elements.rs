//! Elements in variables. Input: a body of a parallel loop inside which a time loop runs; output: the body that finds the
//! elements of its own iteration in variables.
//!
//! Legal where `analysis::interchange` says that no other iteration touches these elements.

use std::collections::BTreeSet;

use ebbtide_ir::{ArrayId, Facts, ValueId};

use crate::analysis::interchange::is_at;
use crate::kernel::expr::Expr;
use crate::kernel::name::{Name, Variable};
use crate::kernel::stmt::{Body, Element, Stmt, visit_mut};

/// The body with elements of these arrays, at the very index that these variables are, in variables.
pub(crate) fn hold_elements(
    mut body: Body,
    facts: &Facts,
    arrays: &BTreeSet<ArrayId>,
    variables: &[ValueId],
) -> Body {
    let held = |element: &Element| -> Option<Name> {
        let own = arrays.contains(&element.array) && is_at(facts, variables, element.source);
        own.then(|| Variable::Held(element.array).into())
    };
    visit_mut(&mut body, &mut |stmt| match stmt {
        Stmt::Load { name, ty, element, .. } => {
            if let Some(held) = held(element) {
                *stmt = Stmt::Let { name: *name, ty: *ty, value: Expr::Variable(held) };
            }
        }
        Stmt::Store { element, ty, how, value, more, .. } => {
            if let Some(held) = held(element) {
                let value = match how {
                    Some(how) => [&*value]
                        .into_iter()
                        .chain(&*more)
                        .fold(Expr::Variable(held), |sum, term| Expr::combine(*how, *ty, sum, term.clone())),
                    None => value.clone(),
                };
                *stmt = Stmt::Assign { name: held, ty: *ty, value };
            }
        }
        _ => {}
    });
    body
}
