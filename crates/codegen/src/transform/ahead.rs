//! Values ahead. Input: a body in vectors; output: the same, in which a loop computes functions that are the same in all lanes, `exp(a[k])`
//! in a loop over `k`, for as many of its iterations at once as a vector has lanes.
//!
//! Legal for what is computed from the loop's variable, from elements beside each other that are proved to exist and that the loop does
//! not write, and from what does not change in the loop.

use std::collections::BTreeSet;

use ebbtide_ir::{ArrayId, Function};

use crate::kernel::expr::Expr;
use crate::kernel::name::{Fresh, Name, Ty};
use crate::kernel::stmt::{Ahead, Body, Loop, LoopKind, Part, Stmt, visit_mut};
use crate::kernel::tiles::names;
use crate::transform::lanes_of_sums::Passes;
use crate::transform::vectorise::Along;

/// The body whose loops compute functions ahead, in vectors of this type.
pub(crate) fn ahead(mut body: Body, ty: Ty, fresh: &mut Fresh) -> Body {
    visit_mut(&mut body, &mut |stmt| {
        if let Stmt::Loop(l) = stmt {
            l.ahead = of_loop(l, ty, fresh).map(Box::new);
        }
    });
    body
}

fn of_loop(l: &mut Loop, ty: Ty, fresh: &mut Fresh) -> Option<Ahead> {
    let LoopKind::Counted { variable, .. } = l.kind else { return None };
    let Ty::Vector(element, lanes) = ty else { return None };
    if l.until.is_some() || l.partly.is_some() {
        return None;
    }
    let changed = Changed::by(&mut l.body);
    let is_function = |stmt: &Stmt| match stmt {
        Stmt::Let { name, ty, value: Expr::Math(function, ..) } => {
            (*ty == Ty::One(element) && *function != Function::Powi).then_some(*name)
        }
        _ => None,
    };
    let noted = |values: &[Name]| {
        let (places, mut passes) = (changed.made_of(&l.body, values)?, Passes::of(variable, element));
        places.iter().try_for_each(|at| passes.statement(&l.body[*at]))?;
        let differ = values.iter().all(|name| passes.varies(*name));
        (differ && passes.gathers == 0).then_some((places, passes))
    };
    let functions = l.body.iter().filter_map(is_function);
    let values: Vec<Name> = functions.filter(|name| noted(&[*name]).is_some()).collect();
    let (places, passes) = noted(&values).filter(|_| !values.is_empty())?;
    let body = passes.in_vectors(places.iter().map(|at| &l.body[*at]), lanes, Part::Whole, fresh)?;
    Some(Ahead { ty, values, body })
}

/// What iterations of a loop change.
struct Changed {
    variables: BTreeSet<Name>,
    arrays: BTreeSet<ArrayId>,
}

impl Changed {
    fn by(body: &mut Body) -> Changed {
        let mut changed = Changed { variables: BTreeSet::new(), arrays: BTreeSet::new() };
        visit_mut(body, &mut |stmt| {
            if let Stmt::Assign { name, .. } | Stmt::Declare { name, .. } | Stmt::Pop { name, .. } = stmt {
                changed.variables.insert(*name);
            }
            if !matches!(stmt, Stmt::Load { .. }) {
                changed.arrays.extend(stmt.element_mut().map(|element| element.array));
            }
        });
        changed
    }

    /// The places of the statements that values are computed by; `None` where they are computed from what changes.
    fn made_of(&self, body: &Body, values: &[Name]) -> Option<Vec<usize>> {
        let (mut wanted, mut places) = (values.to_vec(), Vec::new());
        // What a value is computed from comes before it.
        for (at, stmt) in body.iter().enumerate().rev() {
            match stmt {
                Stmt::Let { name, value, .. } if wanted.contains(name) => names(value, &mut wanted),
                Stmt::Load { name, element, .. } if wanted.contains(name) => {
                    element.index().iter().for_each(|e| names(e, &mut wanted));
                    (!self.arrays.contains(&element.array)).then_some(())?;
                }
                _ => continue,
            }
            places.push(at);
        }
        places.reverse();
        wanted.iter().all(|name| !self.variables.contains(name)).then_some(places)
    }
}
