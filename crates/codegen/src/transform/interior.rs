//! The interior form of a body. Input: a body and what holds in the interior (see [`crate::analysis::interior`]); output: the
//! body without checks of what is proved there, without conditions that are decided there, and with indices as sums of the
//! innermost variable.
//!
//! Legal for the iterations of the interior alone: the loop computes its interval before it takes them.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};

use ebbtide_ir::{Block, Loop as SourceLoop, LoopId, Program, Type, ValueId, walk};

use crate::analysis::interior::{Interior, Unproved};
use crate::analysis::loop_invariants::loop_invariants;
use crate::kernel::expr::Expr;
use crate::kernel::name::{Name, Ty, Variable};
use crate::kernel::stmt::{Body, Check, Fault, Loop, LoopKind, Place, Stmt, visit_exprs_mut, visit_mut};
use crate::transform::specialise::take_arms;

/// The body of an iteration of the interior, whose innermost variable has this name.
pub(crate) fn in_interior(body: Body, program: &Program, interior: &Interior, innermost: Name) -> Body {
    let form = InInterior { program, interior, innermost };
    let mut body = form.values(take_arms(body, &|v| interior.decided.get(&v).copied()));
    visit_mut(&mut body, &mut |stmt| form.sums(stmt));
    visit_exprs_mut(&mut body, &mut |e| {
        if let Expr::Variable(Name { variable: Variable::Value(v), .. }) = *e {
            if let Some(decided) = interior.decided.get(&v) {
                *e = Expr::truth(*decided);
            } else if interior.is_shifted(v) {
                form.sum(e, v);
            }
        }
    });
    body
}

struct InInterior<'a> {
    program: &'a Program,
    interior: &'a Interior,
    innermost: Name,
}

/// What becomes of a value in the interior.
enum Becomes {
    /// It is decided, or computed before the row.
    Nothing,
    Sum(Expr),
    /// It is computed as ever.
    Itself,
}

impl InInterior<'_> {
    fn becomes(&self, v: ValueId) -> Becomes {
        if self.interior.decided.contains_key(&v) {
            return Becomes::Nothing;
        }
        if self.program.ty(v) != Type::Index {
            return Becomes::Itself;
        }
        if self.interior.early.contains(&v) {
            return Becomes::Nothing;
        }
        match self.interior.linear_here(self.program, v) {
            Some(sum) if !self.interior.varying.uniform(v) => Becomes::Sum(Expr::Linear {
                coefficient: sum.coefficient,
                variable: self.innermost,
                base: sum.base,
            }),
            _ => Becomes::Itself,
        }
    }

    /// The statements whose values are still computed, sums as such. The depth of recursion is that of nesting in the source.
    fn values(&self, body: Body) -> Body {
        let mut out = Body::new();
        for mut stmt in body {
            for block in stmt.blocks_mut() {
                *block = self.values(std::mem::take(block));
            }
            let becomes = match &stmt {
                Stmt::Let { name: Name { variable: Variable::Value(v), .. }, .. }
                | Stmt::Load { name: Name { variable: Variable::Value(v), .. }, .. }
                | Stmt::Fault { kind: Fault::Division(v), .. } => self.becomes(*v),
                _ => Becomes::Itself,
            };
            match (becomes, &stmt) {
                (Becomes::Itself, _) => out.push(stmt),
                (Becomes::Sum(value), Stmt::Let { name, .. } | Stmt::Load { name, .. }) => {
                    out.push(Stmt::Let { name: *name, ty: Ty::One(Type::Index), value });
                }
                _ => {}
            }
        }
        out
    }

    /// Indices and bounds of loops as sums, where the interior has them as numbers; checks where it proves nothing.
    fn sums(&self, stmt: &mut Stmt) {
        if let Some(element) = stmt.element_mut() {
            let unproved = self.interior.unproved.contains(element.source.as_slice());
            element.check = if unproved { Check::AtOnce } else { Check::Proved };
            if let Place::At(index) = &mut element.place {
                index.iter_mut().zip(element.source.as_slice()).for_each(|(e, v)| self.sum(e, *v));
            }
        }
        match stmt {
            Stmt::Fault { operand: e, kind: Fault::Overflow, .. } => self.bound(e),
            Stmt::Loop(Loop { kind: LoopKind::Counted { variable, from, to }, .. }) => {
                let shifted = matches!(variable.variable, Variable::Value(v) if self.interior.is_shifted(v));
                for bound in [from, to] {
                    self.bound(bound);
                    if let Expr::Linear { base, .. } = bound
                        && shifted
                    {
                        *bound = Expr::Index(base.clone());
                    }
                }
            }
            _ => {}
        }
    }

    fn bound(&self, e: &mut Expr) {
        if let Expr::Variable(Name { variable: Variable::Value(v), .. }) = *e {
            self.sum(e, v);
        }
    }

    /// Makes the expression of a value a sum, where it is one.
    fn sum(&self, e: &mut Expr, v: ValueId) {
        if let Some(sum) = self.interior.linear_here(self.program, v) {
            *e = match sum.coefficient {
                0 => Expr::Index(sum.base),
                coefficient => Expr::Linear { coefficient, variable: self.innermost, base: sum.base },
            };
        }
    }
}

/// The body in its interior form with what is the same in all iterations of a loop before that loop. `source` is the body of the
/// parallel loop that it was lowered from.
pub(crate) fn hoist_invariants(body: Body, program: &Program, unproved: &Unproved, source: &Block) -> Body {
    let mut loops = BTreeMap::new();
    walk(source, &mut |stmt| {
        if let ebbtide_ir::Stmt::Loop(l) = stmt {
            loops.insert(l.id, l.clone());
        }
    });
    hoist(body, program, unproved, &loops)
}

/// The depth of recursion is that of nesting in the source.
fn hoist(body: Body, program: &Program, unproved: &Unproved, loops: &BTreeMap<LoopId, SourceLoop>) -> Body {
    let mut out = Body::new();
    for mut stmt in body {
        if let Stmt::Loop(l) = &mut stmt
            && let Some(source) = loops.get(&l.id)
        {
            let invariant = loop_invariants(program, unproved, source);
            let taken = invariant.iter().filter_map(|stmt| match stmt {
                ebbtide_ir::Stmt::Let(v) => take(&mut l.body, Name::value(*v)),
                _ => None,
            });
            let taken = taken.collect();
            out.extend(computed_once(taken, l));
        }
        for block in stmt.blocks_mut() {
            *block = hoist(std::mem::take(block), program, unproved, loops);
        }
        out.push(stmt);
    }
    out
}

/// What was taken out of a loop, numbers that are computed twice once: a gradient runs statements again at every level of a nest,
/// and what is the same for all levels meets before the outermost.
fn computed_once(taken: Body, l: &mut Loop) -> Body {
    let (mut first, mut same) = (HashMap::new(), BTreeMap::new());
    let mut once = Body::new();
    for mut stmt in taken {
        stmt.exprs_mut().into_iter().for_each(|e| e.visit_mut(&mut |e| rename(e, &same)));
        if let Stmt::Let { name, ty: Ty::One(ty), value } = &stmt
            && ty.is_float()
        {
            match first.entry(format!("{ty:?} {value:?}")) {
                Entry::Occupied(known) => {
                    same.insert(*name, *known.get());
                    continue;
                }
                Entry::Vacant(new) => drop(new.insert(*name)),
            }
        }
        once.push(stmt);
    }
    if !same.is_empty() {
        visit_exprs_mut(&mut l.body, &mut |e| rename(e, &same));
        l.until.iter_mut().for_each(|e| e.visit_mut(&mut |e| rename(e, &same)));
    }
    once
}

fn rename(e: &mut Expr, names: &BTreeMap<Name, Name>) {
    if let Expr::Variable(name) = e
        && let Some(same) = names.get(name)
    {
        *name = *same;
    }
}

/// Takes the definition of a name out of a body or of the loops inside.
fn take(body: &mut Body, wanted: Name) -> Option<Stmt> {
    let defines =
        |stmt: &Stmt| matches!(stmt, Stmt::Let { name, .. } | Stmt::Load { name, .. } if *name == wanted);
    if let Some(at) = body.iter().position(defines) {
        return Some(body.remove(at));
    }
    body.iter_mut().find_map(|stmt| match stmt {
        Stmt::Loop(l) => take(&mut l.body, wanted),
        _ => None,
    })
}
