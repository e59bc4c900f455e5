//! Iterations side by side. Input: the body of one iteration; output: bodies in which what belongs to an iteration has its
//! number in its name. Iterations of several rows stand side by side where several columns of each do (`jam_rows`), and those of the
//! columns of a short row by themselves (`jam_columns`).

use std::collections::BTreeSet;

use ebbtide_ir::{LocalId, ValueId};

use crate::kernel::expr::Expr;
use crate::kernel::index_expr::IndexExpr;
use crate::kernel::name::{Name, Variable};
use crate::kernel::stmt::{Body, Loop, LoopKind, Place, Stmt, visit_exprs_mut, visit_mut};

/// What differs between iterations side by side.
#[derive(Clone, Debug, Default)]
pub(crate) struct PerSide {
    pub values: BTreeSet<ValueId>,
    pub locals: BTreeSet<LocalId>,
    /// So many stand side by side inside of each, and have their numbers already.
    pub within: usize,
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
        match self.contains(name) {
            true => {
                let side = name.side.map_or(side, |inner| side * self.within + inner);
                Name { side: Some(side), ..name }
            }
            false => name,
        }
    }

    /// The same, and all names that are defined inside a statement.
    fn with_names_in(&self, stmt: &mut Stmt) -> PerSide {
        let mut own = self.clone();
        visit_mut(std::slice::from_mut(stmt), &mut |stmt| {
            let name = match stmt {
                Stmt::Let { name, .. } | Stmt::Declare { name, .. } | Stmt::Load { name, .. } => *name,
                Stmt::Loop(Loop { kind: LoopKind::Counted { variable, .. }, .. }) => *variable,
                _ => return,
            };
            match name.variable {
                Variable::Value(v) => drop(own.values.insert(v)),
                Variable::Local(local) => drop(own.locals.insert(local)),
                _ => {}
            }
        });
        own
    }
}

impl From<(BTreeSet<ValueId>, BTreeSet<LocalId>)> for PerSide {
    fn from((values, locals): (BTreeSet<ValueId>, BTreeSet<LocalId>)) -> PerSide {
        PerSide { values, locals, within: 1 }
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
    jam_but(body, own, sides, &|_| false)
}

/// The same, but statements that stand apart are those of one side after the other, with all that is in them.
fn jam_but(body: Body, own: &PerSide, sides: usize, apart: &dyn Fn(&Stmt) -> bool) -> Body {
    let mut out = Body::new();
    for mut stmt in body {
        let once = match &stmt {
            stmt if apart(stmt) => false,
            Stmt::Let { name, .. }
            | Stmt::Declare { name, .. }
            | Stmt::Assign { name, .. }
            | Stmt::Load { name, .. } => !own.contains(*name),
            Stmt::Store { .. } | Stmt::Reduce { .. } => false,
            _ => true,
        };
        if !once {
            // What is defined inside is one side's.
            let inside = apart(&stmt).then(|| own.with_names_in(&mut stmt));
            let own = inside.as_ref().unwrap_or(own);
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
            *block = jam_but(std::mem::take(block), own, sides, apart);
        }
        out.push(stmt);
    }
    out
}

/// The bodies of iterations in so many rows, statement by statement, as [`jam`] puts columns side by side: what is the same for all
/// rows is loaded and computed once. `None` where the place of a column depends on its row, since an index has no number of a row in
/// it, and where rows take other branches, run other iterations of a loop or meet faults by themselves.
pub(crate) fn jam_rows(mut body: Body, own: &PerSide, rows: usize) -> Option<Body> {
    let mut fine = true;
    let of_row = |e: &IndexExpr| {
        e.any(&|part| matches!(part, IndexExpr::Value(v) | IndexExpr::Wrapped(v) if own.values.contains(v)))
    };
    visit_exprs_mut(&mut body, &mut |e| match e {
        Expr::Index(IndexExpr::Value(v)) if own.values.contains(v) => {
            *e = Expr::variable(Name::value(*v));
        }
        Expr::Index(base) | Expr::Linear { base, .. } | Expr::Ramp { base, .. } => fine &= !of_row(base),
        _ => {}
    });
    let of_row = |e: &mut Expr| depends_on(e, own);
    visit_mut(&mut body, &mut |stmt| {
        let alike = match stmt {
            Stmt::If { .. } | Stmt::Loop(_) => true,
            Stmt::Fault { operand, .. } => {
                fine &= !of_row(operand);
                false
            }
            _ => false,
        };
        fine &= !alike || !stmt.exprs_mut().into_iter().any(of_row);
    });
    fine.then(|| jam(body, own, rows))
}

/// The bodies of the iterations of so many columns, statement by statement: what is the same for all columns is computed once. A branch
/// or loop that columns take in different ways is that of one column after the other.
pub(crate) fn jam_columns(body: Body, own: &PerSide, columns: usize) -> Body {
    let apart = |stmt: &Stmt| {
        let mut stmt = stmt.clone();
        matches!(stmt, Stmt::If { .. } | Stmt::Loop(_))
            && stmt.exprs_mut().into_iter().any(|e| depends_on(e, own))
    };
    jam_but(body, own, columns, &apart)
}

/// Is there a name in an expression that differs between sides?
fn depends_on(e: &mut Expr, own: &PerSide) -> bool {
    let mut found = false;
    e.visit_mut(&mut |e| found |= matches!(e, Expr::Variable(name) if own.contains(*name)));
    found
}
