//! Writes conditions under which parallel loops are safe into the program, where they are checked when the loop begins.

use std::collections::{BTreeMap, BTreeSet};

use super::context::{Access, Kind};
use super::formula::Formula;
use super::poly::{Atom, Poly};
use super::terms::Key;
use super::{Analysis, Findings, ParFacts, Trust, Unless};
use crate::analysis::affine::Affines;
use crate::syntax::*;

/// The program with a requirement for each loop that is safe unless a condition holds that is known when it begins, and how
/// its loops share what they write; the flaws of loops that are not safe, or whose conditions cannot be computed there.
pub(crate) fn with_requirements(
    program: &Program,
) -> Result<(Program, BTreeMap<ParId, ParFacts>), Vec<Flaw>> {
    let affines = Affines::of(program);
    let mut analysis = Analysis::new(program, &affines, &program.body);
    let mut findings = Findings::default();
    walk(&program.body, &mut |stmt| {
        if let Stmt::Par(par) = stmt {
            analysis.par(par, Trust::Nothing, &mut findings);
        }
    });
    if findings.unless.is_empty() {
        return if findings.flaws.is_empty() {
            Ok((program.clone(), findings.pars))
        } else {
            Err(findings.flaws)
        };
    }
    let mut flaws = findings.flaws;
    let mut wanted: BTreeMap<ParId, Vec<(Unless, Plan)>> = BTreeMap::new();
    for unless in findings.unless {
        let planner = Planner { analysis: &analysis, par: unless.par };
        match planner.formula(&unless.safe) {
            Some(plan) => wanted.entry(unless.par).or_default().push((unless, plan)),
            None => flaws.push(unchecked(program, &unless)),
        }
    }
    drop(analysis);
    if !flaws.is_empty() {
        return Err(flaws);
    }
    let mut after = program.clone();
    let mut body = std::mem::take(&mut after.body);
    let mut writer = Writer { program: &mut after, wanted, scope: BTreeSet::new(), flaws: Vec::new() };
    writer.block(&mut body);
    let flaws = writer.flaws;
    after.body = body;
    if flaws.is_empty() { Ok((after, findings.pars)) } else { Err(flaws) }
}

fn touched(kind: Kind) -> Touched {
    match kind {
        Kind::Read => Touched::Read,
        Kind::Write => Touched::Written,
        Kind::Combine(how) => Touched::Combined(how),
    }
}

/// The flaw of a loop whose condition is not checked where it begins.
pub(crate) fn unchecked(program: &Program, unless: &Unless) -> Flaw {
    let [(first, _), (second, _)] = &unless.accesses;
    let name = &program.array(first.array).name;
    let at = |access: &Access| access.site.as_ref().map_or(String::new(), |site| format!(" at {site}"));
    let message = format!(
        "a race: two iterations of the parallel loop may touch the same element of `{name}`{} and{}, and whether they do \
         is not known when the loop begins: compute what their indices depend on before the loop, or `copy` `{name}` \
         and read the copy",
        at(first),
        at(second)
    );
    Flaw { law: "7", message, site: first.site.clone() }
}

/// A formula whose atoms can be computed when the loop begins.
enum Plan {
    Compare(Expression, Compare),
    All(Vec<Plan>),
    Any(Vec<Plan>),
}

/// A sum of products.
type Expression = Vec<(i64, Vec<Factor>)>;

#[derive(Clone)]
enum Factor {
    Value(ValueId),
    /// Values that are equal: one of them is known where the loop begins.
    Either(Vec<ValueId>),
    Local(LocalId),
    Op(Op),
    Binary(Binary, Expression, Expression),
}

struct Planner<'a, 'p> {
    analysis: &'a Analysis<'p>,
    par: ParId,
}

impl Planner<'_, '_> {
    fn formula(&self, formula: &Formula) -> Option<Plan> {
        match formula {
            Formula::AtLeastZero(p) => Some(Plan::Compare(self.poly(p)?, Compare::Ge)),
            Formula::Zero(p) => Some(Plan::Compare(self.poly(p)?, Compare::Eq)),
            Formula::All(parts) => {
                parts.iter().map(|p| self.formula(p)).collect::<Option<_>>().map(Plan::All)
            }
            // An alternative that cannot be computed is left out: the condition is then stronger than it must be.
            Formula::Any(parts) => {
                let parts: Vec<Plan> = parts.iter().filter_map(|p| self.formula(p)).collect();
                (!parts.is_empty()).then_some(Plan::Any(parts))
            }
            Formula::Unknown => None,
        }
    }

    fn poly(&self, poly: &Poly) -> Option<Expression> {
        let term = |(monomial, c): (&Vec<Atom>, &i128)| {
            let factors = monomial.iter().map(|atom| self.factor(*atom)).collect::<Option<_>>()?;
            Some((i64::try_from(*c).ok()?, factors))
        };
        poly.terms.iter().map(term).collect()
    }

    fn factor(&self, atom: Atom) -> Option<Factor> {
        let terms = &self.analysis.terms;
        if terms.varies(atom) {
            return None;
        }
        let divisor = |b: &Poly| b.as_constant().filter(|c| *c != 0).map(|_| ());
        match terms.key(atom) {
            Key::Value(v) => Some(Factor::Value(*v)),
            Key::Scalar(s) => Some(Factor::Op(Op::Scalar(*s))),
            Key::Dim(array, k) => Some(Factor::Op(Op::Dim(*array, *k))),
            Key::Local(local, _) => {
                let now = self.analysis.contexts.get(&self.par)?.locals.get(local)?;
                (now.as_atom() == Some(atom)).then_some(Factor::Local(*local))
            }
            Key::Quotient(a, b) => {
                divisor(b)?;
                Some(Factor::Binary(Binary::Div, self.poly(a)?, self.poly(b)?))
            }
            Key::Remainder(a, b) => {
                divisor(b)?;
                Some(Factor::Binary(Binary::Rem, self.poly(a)?, self.poly(b)?))
            }
            Key::Least(a, b) => Some(Factor::Binary(Binary::Min, self.poly(a)?, self.poly(b)?)),
            Key::Greatest(a, b) => Some(Factor::Binary(Binary::Max, self.poly(a)?, self.poly(b)?)),
            // It may have been overwritten since: what was read of it stays.
            Key::Element(..) => Some(Factor::Either(terms.values_that_are(atom))),
            Key::Copy(..) => None,
        }
    }
}

struct Writer<'w> {
    program: &'w mut Program,
    wanted: BTreeMap<ParId, Vec<(Unless, Plan)>>,
    /// Values that are known at this place.
    scope: BTreeSet<ValueId>,
    flaws: Vec<Flaw>,
}

impl Writer<'_> {
    /// The depth of recursion is that of nesting in the source.
    fn block(&mut self, block: &mut Block) {
        let outer = self.scope.clone();
        let mut written = Block::with_capacity(block.len());
        for mut stmt in std::mem::take(block) {
            match &mut stmt {
                Stmt::Let(v) => drop(self.scope.insert(*v)),
                Stmt::Par(par) => {
                    for (unless, plan) in self.wanted.remove(&par.id).unwrap_or_default() {
                        let mut lets = Block::new();
                        match self.plan(&plan, &mut lets) {
                            Some(condition) => {
                                written.extend(lets);
                                par.requires.push(requirement(condition, &unless));
                                // All that is not proved of it is asked.
                                par.safety = Safety::Proved;
                            }
                            None => self.flaws.push(unchecked(self.program, &unless)),
                        }
                    }
                }
                Stmt::Loop(l) => {
                    let before = self.scope.clone();
                    match &mut l.kind {
                        LoopKind::For { var, .. } => drop(self.scope.insert(*var)),
                        LoopKind::While { head, .. } => self.block(head),
                        LoopKind::Forever => {}
                    }
                    self.block(&mut l.body);
                    self.scope = before;
                }
                other => other.blocks_mut().for_each(|inner| self.block(inner)),
            }
            written.push(stmt);
        }
        *block = written;
        self.scope = outer;
    }

    fn value(&mut self, op: Op, ty: Type, lets: &mut Block) -> ValueId {
        let v = self.program.add_value(op, ty, None);
        lets.push(Stmt::Let(v));
        v
    }

    fn plan(&mut self, plan: &Plan, lets: &mut Block) -> Option<ValueId> {
        let (parts, op) = match plan {
            Plan::Compare(sum, compare) => {
                let sum = self.sum(sum, lets)?;
                let zero = self.value(Op::Literal(Literal::index(0)), Type::Index, lets);
                return Some(self.value(Op::Compare(*compare, sum, zero), Type::Bool, lets));
            }
            Plan::All(parts) => (parts, Binary::And),
            Plan::Any(parts) => (parts, Binary::Or),
        };
        // An alternative that reads what is not known here is left out, as one that cannot be computed.
        let some = op == Binary::Or && parts.iter().any(|part| self.is_known(part));
        let mut all: Option<ValueId> = None;
        for part in parts.iter().filter(|part| !some || self.is_known(part)).collect::<Vec<_>>() {
            let here = self.plan(part, lets)?;
            all = Some(match all {
                Some(before) => self.value(Op::Binary(op, before, here), Type::Bool, lets),
                None => here,
            });
        }
        match all {
            Some(all) => Some(all),
            None => Some(self.value(Op::Literal(Literal::from(op == Binary::And)), Type::Bool, lets)),
        }
    }

    /// Are all values of a plan known at this place?
    fn is_known(&self, plan: &Plan) -> bool {
        match plan {
            Plan::Compare(sum, _) => self.is_sum_known(sum),
            Plan::All(parts) => parts.iter().all(|part| self.is_known(part)),
            Plan::Any(parts) => parts.is_empty() || parts.iter().any(|part| self.is_known(part)),
        }
    }

    fn is_sum_known(&self, sum: &Expression) -> bool {
        sum.iter().flat_map(|(_, factors)| factors).all(|factor| match factor {
            Factor::Value(v) => self.scope.contains(v),
            Factor::Either(values) => values.iter().any(|v| self.scope.contains(v)),
            Factor::Local(_) | Factor::Op(_) => true,
            Factor::Binary(_, a, b) => self.is_sum_known(a) && self.is_sum_known(b),
        })
    }

    fn sum(&mut self, sum: &Expression, lets: &mut Block) -> Option<ValueId> {
        let mut all: Option<ValueId> = None;
        for (c, factors) in sum {
            let mut product = match factors.is_empty() || *c != 1 {
                true => Some(self.value(Op::Literal(Literal::index(*c)), Type::Index, lets)),
                false => None,
            };
            for factor in factors {
                let here = self.factor(factor, lets)?;
                product = Some(match product {
                    Some(before) => self.value(Op::Binary(Binary::Mul, before, here), Type::Index, lets),
                    None => here,
                });
            }
            let product = product?;
            all = Some(match all {
                Some(before) => self.value(Op::Binary(Binary::Add, before, product), Type::Index, lets),
                None => product,
            });
        }
        all.or_else(|| Some(self.value(Op::Literal(Literal::index(0)), Type::Index, lets)))
    }

    fn factor(&mut self, factor: &Factor, lets: &mut Block) -> Option<ValueId> {
        let v = match factor {
            Factor::Value(v) => (self.scope.contains(v)).then_some(*v)?,
            Factor::Either(values) => *values.iter().find(|v| self.scope.contains(v))?,
            Factor::Local(local) => {
                let ty = self.program.locals[local.index()].ty;
                self.value(Op::Get(*local), ty, lets)
            }
            Factor::Op(op) => {
                let ty = match op {
                    Op::Scalar(s) => self.program.scalars[s.index()].ty,
                    _ => Type::Index,
                };
                self.value(*op, ty, lets)
            }
            Factor::Binary(op, a, b) => {
                let (a, b) = (self.sum(a, lets)?, self.sum(b, lets)?);
                self.value(Op::Binary(*op, a, b), Type::Index, lets)
            }
        };
        match self.program.ty(v) {
            Type::Index => Some(v),
            ty if ty.is_integer() => Some(self.value(Op::Cast(v), Type::Index, lets)),
            _ => None,
        }
    }
}

fn requirement(condition: ValueId, unless: &Unless) -> Requirement {
    let [(first, how), (second, other)] = &unless.accesses;
    Requirement {
        condition,
        asked: Asked::OnEntry,
        array: first.array,
        accesses: [(touched(*how), first.site.clone()), (touched(*other), second.site.clone())],
    }
}
