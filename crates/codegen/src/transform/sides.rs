//! Iterations side by side. Input: the body of one iteration; output: bodies in which what belongs to an iteration has its
//! number in its name.

use std::collections::BTreeSet;

use ebbtide_ir::{LocalId, ValueId};

use crate::kernel::expr::Expr;
use crate::kernel::name::{Name, Variable};
use crate::kernel::stmt::{Body, Loop, LoopKind, Place, Stmt, visit_mut};

/// What differs between iterations side by side.
#[derive(Clone, Debug, Default)]
pub(crate) struct PerSide {
    pub values: BTreeSet<ValueId>,
    pub locals: BTreeSet<LocalId>,
}

impl PerSide {
    fn contains(&self, name: Name) -> bool {
        match name.variable {
            Variable::Value(v) => self.values.contains(&v),
            Variable::Local(local) => self.locals.contains(&local),
            // What differs between lanes alone is loaded under such a name, and so do the lanes that have an iteration of a loop.
            Variable::Loaded(_) | Variable::Mask(_) => true,
            _ => false,
        }
    }

    /// The name in the iteration with this number.
    pub fn name(&self, name: Name, side: usize) -> Name {
        Name { side: self.contains(name).then_some(side).or(name.side), ..name }
    }
}

impl From<(BTreeSet<ValueId>, BTreeSet<LocalId>)> for PerSide {
    fn from((values, locals): (BTreeSet<ValueId>, BTreeSet<LocalId>)) -> PerSide {
        PerSide { values, locals }
    }
}

/// The body of the iteration with this number.
pub(crate) fn of_side(mut body: Body, own: &PerSide, side: usize) -> Body {
    rename(&mut body, own, side);
    body
}

/// The names in an expression are those of a side.
fn rename_in(e: &mut Expr, own: &PerSide, side: usize) {
    e.visit_mut(&mut |e| match e {
        Expr::Variable(name) => *name = own.name(*name, side),
        Expr::Linear { variable, .. } | Expr::Ramp { variable, .. } => *variable = own.name(*variable, side),
        _ => {}
    });
}

fn rename(body: &mut [Stmt], own: &PerSide, side: usize) {
    let change = |name: &mut Name| *name = own.name(*name, side);
    visit_mut(body, &mut |stmt| stmt.exprs_mut().into_iter().for_each(|e| rename_in(e, own, side)));
    visit_mut(body, &mut |stmt| {
        match stmt {
            Stmt::Let { name, .. } | Stmt::Declare { name, .. } | Stmt::Assign { name, .. } => change(name),
            Stmt::Load { name, .. } => change(name),
            Stmt::Loop(Loop { kind: LoopKind::Counted { variable, .. }, sums, .. }) => {
                change(variable);
                sums.iter_mut().for_each(|(name, _)| change(name));
            }
            _ => {}
        }
        if let Some(element) = stmt.element_mut()
            && let Place::From(name, _) = &mut element.place
        {
            change(name);
        }
    });
}

/// The body of so many iterations, statement by statement: what is the same for all of them once. Branches are taken by all
/// alike. The depth of recursion is that of nesting in the source.
pub(crate) fn jam(body: Body, own: &PerSide, sides: usize) -> Body {
    let mut out = Body::new();
    for mut stmt in body {
        let once = match &stmt {
            Stmt::Let { name, .. }
            | Stmt::Declare { name, .. }
            | Stmt::Assign { name, .. }
            | Stmt::Load { name, .. } => !own.contains(*name),
            Stmt::Store { .. } | Stmt::Reduce { .. } => false,
            _ => true,
        };
        if !once {
            for side in 0..sides {
                let mut copy = [stmt.clone()];
                rename(&mut copy, own, side);
                out.extend(copy);
            }
            continue;
        }
        if let Stmt::Loop(l) = &mut stmt {
            let each = |(name, ty): &(Name, _)| {
                let copies = if own.contains(*name) { sides } else { 1 };
                (0..copies).map(|side| (own.name(*name, side), *ty)).collect::<Vec<_>>()
            };
            l.sums = l.sums.iter().flat_map(each).collect();
        }
        if let Stmt::Loop(Loop { kind: LoopKind::Counted { from, to, .. }, partly, .. }) = &mut stmt {
            // Bounds are those of lanes counted from the first.
            let partly = partly.as_mut().map(|partly| [&mut partly.from, &mut partly.to]);
            for e in [from, to].into_iter().chain(partly.into_iter().flatten()) {
                rename_in(e, own, 0);
            }
        }
        if let Stmt::Fault { .. } = stmt {
            // It is one for all of them: the first tells where.
            rename(std::slice::from_mut(&mut stmt), own, 0);
        }
        for block in stmt.blocks_mut() {
            *block = jam(std::mem::take(block), own, sides);
        }
        out.push(stmt);
    }
    out
}
