//! Which parallel loops have a vector form. Input: a loop, its interior and the one float type of its data; output: why it has
//! none, if so. The printer of vectors relies on it: what is not refused here has a text.

use std::collections::BTreeSet;
use std::fmt;

use ebbtide_ir::{
    ArrayId, Binary, Block, Branch, Facts, Function, Indices, Literal, Loop, LoopKind, Op, Par, ParFacts,
    Program, Sharing, Stmt, Store, Type, Unary, ValueId, walk,
};

use crate::analysis::exact::may_overflow;
use crate::analysis::gathers::Gathers;
use crate::analysis::interior::{Interior, taken};
use crate::analysis::names::sharing;

/// Vectors of iterations that run side by side where the body has loops.
const SIDE_BY_SIDE: usize = 4;
/// So many do where elementary functions are computed in these loops: each is a long text of its own.
const SIDE_BY_SIDE_WITH_FUNCTIONS: usize = 2;
/// So many do where the sums of one fit into half of 32 registers, which processors with the widest vectors have: each time that
/// these loops run they read longer pieces of rows.
const SIDE_BY_SIDE_IN_REGISTERS: usize = 8;

/// Why the iterations of a loop do not run in vectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// An index that the interior does not prove: a vector of lanes has no single one to check.
    Unproved,
    /// An operation without a vector form.
    Operation,
    /// Data of another type than the float type of the loop that does not become data of that type at once.
    Load,
    /// Lanes store into one element, or where data tells them.
    Store,
    /// Lanes that take no part may divide by zero.
    Division,
    /// Lanes that take no part may have no number as the bound of a loop.
    Bound,
    /// Elements are claimed one by one.
    Claim,
    /// Lanes have different iterations of a loop, and touch in it what may not exist for others, or combine out of order.
    Range,
    /// Some lanes alone take a branch, where several vectors stand side by side.
    Branch,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Refusal::Unproved => "an index must be checked",
            Refusal::Operation => "an operation has no vector form",
            Refusal::Load => "data of another type is loaded",
            Refusal::Store => "lanes store into one element, or where data tells them",
            Refusal::Division => "lanes that take no part may divide by zero",
            Refusal::Bound => "lanes that take no part may have no number as the bound of a loop",
            Refusal::Claim => "elements are claimed one by one",
            Refusal::Range => "lanes have different iterations of a loop, and what they touch is their own",
            Refusal::Branch => "some lanes alone take a branch",
        })
    }
}

/// How the elements of neighbouring lanes lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stride {
    /// All lanes touch one.
    Same,
    /// Each is right behind the one before.
    Next,
    /// Each is so many elements behind the one before.
    Apart(i64),
    /// More than the last dimension varies, or data tells.
    Unknown,
}

/// How neighbouring lanes of an access lie.
pub(crate) fn stride(program: &Program, interior: &Interior, index: Indices) -> Stride {
    let coefficient = |v: &ValueId| interior.linear_here(program, *v).map(|sum| sum.coefficient);
    let sums: Vec<Option<i64>> = index.as_slice().iter().map(coefficient).collect();
    match sums.split_last() {
        None => Stride::Same,
        Some((last, rest)) if rest.iter().all(|c| *c == Some(0)) => match last {
            Some(0) => Stride::Same,
            Some(1) => Stride::Next,
            Some(c) => Stride::Apart(*c),
            None => Stride::Unknown,
        },
        Some(_) => Stride::Unknown,
    }
}

/// Is every dimension of the index a sum that the interior has as a number?
pub(crate) fn is_sum(program: &Program, interior: &Interior, index: Indices) -> bool {
    index.as_slice().iter().all(|v| interior.linear_here(program, *v).is_some())
}

/// How many vectors of iterations stand side by side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Vectors {
    One,
    Several,
}

/// Why the interior of a loop has no vector form. Sums over its iterations are combined lane by lane, and lanes combine one after
/// the other with the elements of some arrays that they share.
pub(crate) fn refusal(
    (program, facts): (&Program, &Facts),
    par: &Par,
    interior: &Interior,
    (element, vectors): (Type, Vectors),
    by_lanes: &BTreeSet<ArrayId>,
) -> Option<Refusal> {
    refusal_beside_gathers((program, facts), par, interior, (element, vectors), by_lanes, &Gathers::default())
}

/// The same, but for loads at these indices from data.
pub(crate) fn refusal_beside_gathers(
    (program, facts): (&Program, &Facts),
    par: &Par,
    interior: &Interior,
    (element, vectors): (Type, Vectors),
    by_lanes: &BTreeSet<ArrayId>,
    gathers: &Gathers,
) -> Option<Refusal> {
    let sharing = sharing(facts, par);
    Legality { program, interior, element, vectors, sharing, by_lanes, gathers }
        .block(&par.body, Lanes::All)
        .err()
}

/// How many vectors of iterations stand side by side: loops inside the body wait for each of their sums, and several vectors
/// at a time keep the processor busy.
pub(crate) fn side_by_side(
    (program, facts): (&Program, &Facts),
    par: &Par,
    interior: &Interior,
    element: Type,
    by_lanes: &BTreeSet<ArrayId>,
) -> Option<usize> {
    // A branch that all lanes take alike may stand around them.
    let mut loops = Vec::new();
    outermost_loops(&par.body, &mut loops);
    let several = (element, Vectors::Several);
    if loops.is_empty() || refusal((program, facts), par, interior, several, by_lanes).is_some() {
        return None;
    }
    let mut functions = false;
    for l in loops {
        walk(&l.body, &mut |stmt| {
            functions |= matches!(stmt, Stmt::Let(v)
                if matches!(program.op(*v), Op::Math(..)) && !interior.varying.uniform(*v));
        });
    }
    Some(if functions { SIDE_BY_SIDE_WITH_FUNCTIONS } else { SIDE_BY_SIDE })
}

/// How many vectors stand side by side, where that is more, in front of what [`side_by_side`] says: bodies with few sums and
/// statements, in the widest vectors.
pub(crate) fn more_side_by_side(par: &Par, vector_bytes: usize) -> Option<usize> {
    /// Sums of one iteration, and all statements of one.
    const FEW: (usize, usize) = (2, 32);
    let mut statements = 0;
    walk(&par.body, &mut |_| statements += 1);
    let few = (1..=FEW.0).contains(&changed_in_loops(&par.body)) && statements <= FEW.1;
    (vector_bytes == 64 && few).then_some(SIDE_BY_SIDE_IN_REGISTERS)
}

/// How many variables of an iteration a loop in it changes at most.
pub(crate) fn changed_in_loops(body: &Block) -> usize {
    let mut loops = Vec::new();
    outermost_loops(body, &mut loops);
    let changed = loops.into_iter().map(|l| {
        let mut changed = BTreeSet::new();
        walk(&l.body, &mut |stmt| {
            if let Stmt::Set(local, _) = stmt {
                changed.insert(*local);
            }
        });
        changed.len()
    });
    changed.max().unwrap_or_default()
}

/// The loops of a body that are in no other one. The depth of recursion is that of nesting in the source.
fn outermost_loops<'a>(body: &'a Block, loops: &mut Vec<&'a Loop>) {
    for stmt in body {
        match stmt {
            Stmt::Loop(l) => loops.push(l),
            Stmt::If(branch) => {
                outermost_loops(&branch.then, loops);
                outermost_loops(&branch.otherwise, loops);
            }
            _ => {}
        }
    }
}

/// Which lanes are here?
#[derive(Clone, Copy, PartialEq, Eq)]
enum Lanes {
    All,
    Some,
}

struct Legality<'a> {
    program: &'a Program,
    interior: &'a Interior,
    element: Type,
    vectors: Vectors,
    sharing: ParFacts,
    by_lanes: &'a BTreeSet<ArrayId>,
    gathers: &'a Gathers,
}

impl Legality<'_> {
    /// The depth of recursion is that of nesting in the source.
    fn block(&self, block: &Block, lanes: Lanes) -> Result<(), Refusal> {
        for stmt in block {
            match stmt {
                Stmt::Let(v) => self.value(*v, lanes)?,
                Stmt::Update(_, s) if self.sharing.of(s) == Sharing::Reduce => {}
                Stmt::Update(_, s) if self.by_lanes.contains(&s.array) => self.index(s.index)?,
                Stmt::Store(s) | Stmt::Update(_, s) => self.store(s)?,
                Stmt::Claim(_) => return Err(Refusal::Claim),
                Stmt::If(branch) => self.branch(branch, lanes)?,
                Stmt::Loop(l) => self.inner_loop(l, lanes)?,
                _ => {}
            }
        }
        Ok(())
    }

    fn varies(&self, v: ValueId) -> bool {
        !self.interior.varying.uniform(v)
    }

    fn value(&self, v: ValueId, lanes: Lanes) -> Result<(), Refusal> {
        let (op, ty) = (*self.program.op(v), self.program.ty(v));
        let sum = |v: ValueId| self.interior.linear_here(self.program, v).is_some();
        if matches!(op, Op::Literal(_)) || self.interior.decided.contains_key(&v) {
            return Ok(());
        }
        if self.gathers.indices.contains(&v) {
            return Ok(());
        }
        // Sums of the innermost variable are computed where they are used.
        if ty == Type::Index && (self.interior.early.contains(&v) || self.varies(v) && sum(v)) {
            return Ok(());
        }
        if let Op::Load(_, index) = op {
            return if self.gathers.accesses.contains(index.as_slice()) { Ok(()) } else { self.index(index) };
        }
        if op.operands().any(|o| self.is_other(o)) && !self.is_made_own(v) {
            return Err(Refusal::Load);
        }
        if lanes == Lanes::Some && may_divide_by_zero(self.program, v) {
            return Err(Refusal::Division);
        }
        let counted = matches!(op, Op::Cast(a) if ty == self.element && sum(a));
        if self.varies(v)
            && !counted
            && !self.is_made_own(v)
            && !has_vector_form(self.program, v, self.element)
        {
            return Err(Refusal::Operation);
        }
        Ok(())
    }

    /// Is the value loaded, and of another type than the loop's own? Truth values become masks.
    fn is_other(&self, v: ValueId) -> bool {
        let ty = self.program.ty(v);
        self.varies(v) && matches!(self.program.op(v), Op::Load(..)) && ty != self.element && ty != Type::Bool
    }

    /// Is the value what a loaded number of another type is in the loop's own, or how it compares with others? Numbers are
    /// compared in the loop's own type, so they must be the same there.
    fn is_made_own(&self, v: ValueId) -> bool {
        match *self.program.op(v) {
            Op::Cast(a) => self.is_other(a) && self.program.ty(v) == self.element,
            Op::Compare(_, a, b) => {
                let ty = self.program.ty(a);
                let exact = self.element == Type::F64 && matches!(ty, Type::I32 | Type::U32 | Type::F32);
                let fits = |v| !self.varies(v) && (exact || self.is_small(v));
                match (self.is_other(a), self.is_other(b)) {
                    (true, true) => exact,
                    (true, false) => fits(b),
                    (false, true) => fits(a),
                    (false, false) => false,
                }
            }
            _ => false,
        }
    }

    /// Is it a whole number that no other one is rounded to, in the loop's own type?
    fn is_small(&self, v: ValueId) -> bool {
        let bound = if self.element == Type::F64 { 1 << 53 } else { 1 << 24 };
        let number = self.program.literal(v).and_then(Literal::to_i64);
        number.is_some_and(|n| n.unsigned_abs() < bound)
    }

    fn index(&self, index: Indices) -> Result<(), Refusal> {
        if self.interior.unproved.contains(index.as_slice()) { Err(Refusal::Unproved) } else { Ok(()) }
    }

    fn store(&self, s: &Store) -> Result<(), Refusal> {
        self.index(s.index)?;
        match stride(self.program, self.interior, s.index) {
            Stride::Next | Stride::Apart(_) => Ok(()),
            Stride::Unknown if is_sum(self.program, self.interior, s.index) => Ok(()),
            Stride::Same | Stride::Unknown => Err(Refusal::Store),
        }
    }

    fn branch(&self, branch: &Branch, lanes: Lanes) -> Result<(), Refusal> {
        if let Some(block) = taken(self.interior, branch) {
            return self.block(block, lanes);
        }
        let varies = self.varies(branch.condition);
        if varies && self.vectors == Vectors::Several {
            return Err(Refusal::Branch);
        }
        let lanes = if varies { Lanes::Some } else { lanes };
        self.block(&branch.then, lanes)?;
        self.block(&branch.otherwise, lanes)
    }

    fn inner_loop(&self, l: &Loop, lanes: Lanes) -> Result<(), Refusal> {
        let differs = self.interior.loop_differs(l);
        if differs && (lanes == Lanes::Some || !self.touches_for_all(&l.body)) {
            return Err(Refusal::Range);
        }
        if let LoopKind::For { from, to, .. } = l.kind {
            let no_number = |v| may_overflow(self.program, &self.interior.exact, v);
            if lanes == Lanes::Some && (no_number(from) || no_number(to)) {
                return Err(Refusal::Bound);
            }
        }
        if let LoopKind::While { head, .. } = &l.kind {
            self.block(head, lanes)?;
        }
        self.block(&l.body, if differs { Lanes::Some } else { lanes })
    }

    /// Do all elements that a loop touches in some lanes exist for others too, and does none wait for its turn?
    fn touches_for_all(&self, body: &Block) -> bool {
        let mut fine = true;
        walk(body, &mut |stmt| {
            let index = match stmt {
                Stmt::Let(v) => match self.program.op(*v) {
                    Op::Load(_, index) => Some(*index),
                    _ => None,
                },
                Stmt::Update(_, s) if self.sharing.of(s) == Sharing::Reduce => None,
                Stmt::Store(s) | Stmt::Update(_, s) => {
                    fine &= !self.by_lanes.contains(&s.array);
                    Some(s.index)
                }
                _ => None,
            };
            fine &= index.is_none_or(|index| !self.interior.own.contains(index.as_slice()));
        });
        fine
    }
}

/// Is this a division of integers whose divisor may be zero?
fn may_divide_by_zero(program: &Program, v: ValueId) -> bool {
    match *program.op(v) {
        Op::Binary(Binary::Div | Binary::Rem | Binary::RemEuclid, _, b) if !program.ty(v).is_float() => {
            program.literal(b).is_none_or(|divisor| divisor.to_i64() == Some(0))
        }
        _ => false,
    }
}

/// Has the operation a form on vectors of this float type, or on the masks that go with them?
fn has_vector_form(program: &Program, v: ValueId, element: Type) -> bool {
    let result = program.ty(v);
    let (float, mask) = (result == element, result == Type::Bool);
    match *program.op(v) {
        Op::Unary(Unary::Not, _) => mask,
        Op::Unary(..) => float,
        Op::Binary(op, ..) if float => {
            matches!(op, Binary::Add | Binary::Sub | Binary::Mul | Binary::Div | Binary::Min | Binary::Max)
        }
        Op::Binary(op, ..) => mask && matches!(op, Binary::And | Binary::Or | Binary::Xor),
        Op::Compare(_, a, _) => program.ty(a) == element,
        Op::Select(..) | Op::Get(_) => float || mask,
        Op::Cast(a) => float && program.ty(a) == Type::Bool,
        Op::Math(Function::Powi, ..) => false,
        Op::Fma(..) | Op::Math(..) => true,
        _ => false,
    }
}
