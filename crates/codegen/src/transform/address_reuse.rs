//! Addresses of elements that others are near to (see [`crate::analysis::address_reuse`]). Input: the bodies of iterations side
//! by side, without checks; output: the addresses that they need, and the bodies that find elements from them.
//!
//! Legal where the element whose address is computed exists: it is touched under no condition, or the loop runs over all elements.

use ebbtide_ir::{ArrayId, Facts, Indices, Par, Program};

use crate::analysis::address_reuse::{Known, KnownAddresses, Place as Sum, is_own, places};
use crate::kernel::expr::{Expr, Overflow};
use crate::kernel::index_expr::IndexExpr;
use crate::kernel::name::{Fresh, Name, Ty, Variable};
use crate::kernel::stmt::{Body, Check, Element, Manner, Place, Stmt, visit_mut};
use crate::transform::sides::PerSide;

/// The statements that compute addresses for so many iterations side by side, of elements that all of them touch, and what is
/// known then.
pub(crate) fn addresses(
    (program, facts): (&Program, &Facts),
    par: &Par,
    touched: &[(ArrayId, Indices)],
    (own, sides): (&PerSide, usize),
    fresh: &mut Fresh,
) -> (Body, KnownAddresses) {
    let (mut out, mut near) = (Body::new(), KnownAddresses::of(par));
    for side in 0..sides {
        for (array, source) in touched {
            let Some(index) = places(&facts.affines, *source) else { continue };
            if !is_own(par, &index) || near.find(*array, &index, side).is_some() {
                continue;
            }
            if index.len() > 1 && !near.known.iter().any(|known| known.array == *array) {
                out.push(Stmt::Strides(*array));
            }
            let number = fresh.next();
            let at = index.iter().map(|sum| of_sum(sum, own, side)).collect();
            let element = Element {
                array: *array,
                source: *source,
                place: Place::At(at),
                check: Check::Proved,
                site: None,
            };
            let ty = program.array(*array).ty;
            out.push(Stmt::Address { name: Variable::Address(number).into(), ty, element });
            near.known.push(Known { array: *array, index, number, side });
        }
    }
    (out, near)
}

/// A variable and a constant, in the narrow type.
fn of_sum(sum: &Sum, own: &PerSide, side: usize) -> Expr {
    let constant = Expr::Index(IndexExpr::Number(sum.constant));
    match sum.variable.map(|v| Expr::Variable(own.name(Name::value(v), side))) {
        Some(variable) if sum.constant == 0 => variable,
        Some(variable) => {
            Expr::Binary(ebbtide_ir::Binary::Add, Ty::Narrow, Overflow::Wraps, Box::new([variable, constant]))
        }
        None => constant,
    }
}

/// The body of the iteration with this number, with elements found from known addresses.
pub(crate) fn reuse_addresses(mut body: Body, facts: &Facts, near: &KnownAddresses, side: usize) -> Body {
    visit_mut(&mut body, &mut |stmt| {
        if let Stmt::Load { element, .. } | Stmt::Store { element, manner: Manner::Plain, .. } = stmt
            && let Some(index) = places(&facts.affines, element.source)
            && let Some((number, away)) = near.away(element.array, &index, side)
        {
            element.place = Place::From(Variable::Address(number).into(), away);
        }
    });
    body
}
