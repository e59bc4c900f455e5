//! Statements of the program as statements of the kernel. Input: the body of a parallel loop; output: the body of one iteration
//! in which every index is checked at once and every condition is asked. All other forms are made from it.

use std::collections::{BTreeMap, BTreeSet};

use ebbtide_ir::{
    ArrayId, Binary, Block, Claim, Combine, Indices, Literal, LocalId, LoopId, Op, ParFacts, Program,
    Sharing, Site, Store, Type, Unary, ValueId,
};

use crate::analysis::assertions::Around;
use crate::analysis::exact::may_overflow;
use crate::kernel::expr::{Expr, Overflow};
use crate::kernel::name::{Fresh, Name, Ty, Variable};
use crate::kernel::stmt::{Body, Check, Element, Fault, Loop, LoopKind, Manner, Place, Stmt};

/// What is known of a parallel loop when its iterations are lowered.
#[derive(Clone, Copy)]
pub(crate) struct Lowering<'a> {
    pub program: &'a Program,
    /// The index values that are proved to be numbers.
    pub exact: &'a BTreeSet<ValueId>,
    /// How iterations share what they write: sums over them are numbered in source order.
    pub sharing: &'a ParFacts,
    /// How updates at shared elements are made.
    pub shared: &'a Shared,
    pub team: Team,
    /// The loops around each assertion.
    pub assertions: &'a BTreeMap<ValueId, Around>,
}

/// How iterations combine into elements that they share.
#[derive(Default)]
pub(crate) struct Shared {
    /// The arrays into which they combine in any order: it gives the same result, or may give another.
    pub atomics: BTreeSet<ArrayId>,
    /// The loops whose sums are chains that a team takes, and their locals.
    pub chains: BTreeMap<LoopId, Vec<LocalId>>,
    /// The updates that are noted for later, each in a table.
    pub noted: BTreeMap<(ArrayId, Indices), usize>,
    /// Are they counted instead?
    pub counted: bool,
    /// The updates that threads note in buckets, each in a table.
    pub in_buckets: BTreeMap<(ArrayId, Indices), usize>,
    /// The updates that are made at once and whose terms are counted.
    pub counted_runs: BTreeSet<(ArrayId, Indices)>,
    /// Those of them that count for others, with the distances of their elements, and these others.
    pub counted_groups: BTreeMap<(ArrayId, Indices), Vec<i64>>,
    pub riders: BTreeSet<(ArrayId, Indices)>,
}

/// Who runs an iteration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Team {
    /// One thread.
    Alone,
    /// Sixteen threads of a grid, alike but for sums, of which each takes a lane; the first of them stores.
    Lanes,
}

/// The numbers that lowering has given so far.
struct Numbers<'f> {
    fresh: &'f mut Fresh,
    /// How many sums over all iterations stand before what is lowered next, in the order of `analysis::names::reductions`.
    reductions: usize,
}

impl Numbers<'_> {
    fn next_reduction(&mut self) -> usize {
        self.reductions += 1;
        self.reductions - 1
    }
}

/// A value as an operand: a variable, or the literal that it is.
pub(crate) fn operand(program: &Program, v: ValueId) -> Expr {
    match program.op(v) {
        Op::Literal(literal) => Expr::Literal(*literal),
        _ => Expr::variable(Name::value(v)),
    }
}

/// The operation that computes a value, where these are known to be numbers. Loads are statements.
pub(crate) fn operation(program: &Program, exact: &BTreeSet<ValueId>, v: ValueId) -> Expr {
    let ty = program.ty(v);
    let at = |v: ValueId| operand(program, v);
    let may = |v: ValueId| may_overflow(program, exact, v);
    let marked = |marked: bool| if marked { Overflow::Marked } else { Overflow::Wraps };
    match *program.op(v) {
        Op::Literal(_) | Op::LoopVar | Op::Load(..) => at(v),
        Op::Scalar(s) => Expr::Scalar(s, ty),
        Op::Dim(array, k) => Expr::Extent(array, k.into()),
        Op::Get(local) => Expr::variable(Name::local(local)),
        Op::Unary(op, x) => {
            // The negative of what overflowed is what overflowed, and so is its distance from zero.
            let marked = marked(ty == Type::Index && op == Unary::Not && may(x));
            Expr::Unary(op, Ty::One(ty), marked, Box::new(at(x)))
        }
        Op::Binary(op, x, y) => {
            let may_leave = matches!(op, Binary::Add | Binary::Sub | Binary::Mul | Binary::Shl);
            let may_overflow = may_leave || may(x) || may(y);
            let marked = marked(ty == Type::Index && may_overflow && !exact.contains(&v));
            Expr::Binary(op, Ty::One(ty), marked, Box::new([at(x), at(y)]))
        }
        Op::Compare(op, a, b) => Expr::compare(op, Ty::One(program.ty(a)), at(a), at(b)),
        Op::Select(c, a, b) => Expr::select(Ty::One(ty), at(c), at(a), at(b)),
        Op::Fma(a, b, c) => Expr::Fma(Ty::One(ty), Box::new([at(a), at(b), at(c)])),
        Op::Cast(x) => {
            let from = program.ty(x);
            let overflow = marked(from == Type::Index && may(x));
            Expr::Cast { from: Ty::One(from), to: Ty::One(ty), overflow, value: Box::new(at(x)) }
        }
        Op::Math(f, a, b) => {
            let arguments = if f.arity() == 2 { vec![at(a), at(b)] } else { vec![at(a)] };
            Expr::Math(f, Ty::One(ty), arguments)
        }
        Op::Rand(seed, counter) => Expr::Random(ty, Box::new([at(seed), at(counter)])),
    }
}

/// The element of an array, to be checked at once.
pub(crate) fn element(program: &Program, array: ArrayId, index: Indices, site: &Option<Site>) -> Element {
    let at = index.as_slice().iter().map(|v| operand(program, *v)).collect();
    Element { array, source: index, place: Place::At(at), check: Check::AtOnce, site: site.clone() }
}

impl Lowering<'_> {
    /// The statements of a block.
    pub fn body(&self, block: &Block, fresh: &mut Fresh) -> Body {
        let mut out = Body::new();
        self.block(block, 0, &mut Numbers { fresh, reductions: 0 }, &mut out);
        out
    }

    /// So many loops of the iteration are around the block. The depth of recursion is that of nesting in the source.
    fn block(&self, block: &Block, loops: usize, numbers: &mut Numbers, out: &mut Body) {
        use ebbtide_ir::Stmt as Source;
        for stmt in block {
            match stmt {
                Source::Let(v) => self.value(*v, out),
                Source::Declare(local, v) => {
                    let ty = Ty::One(self.program.locals[local.index()].ty);
                    out.push(Stmt::Declare { name: Name::local(*local), ty, value: self.operand(*v) });
                }
                Source::Set(local, v) => {
                    let ty = Ty::One(self.program.locals[local.index()].ty);
                    out.push(Stmt::Assign { name: Name::local(*local), ty, value: self.operand(*v) });
                }
                Source::Store(s) => out.push(self.store(None, s)),
                Source::Update(how, s) if self.sharing.of(s) == Sharing::Reduce => {
                    let (ty, value) = (Ty::One(self.program.array(s.array).ty), self.operand(s.value));
                    let number = numbers.next_reduction();
                    out.push(Stmt::Reduce { number, ty, how: *how, value, when: None, vector: 0 });
                }
                Source::Update(how, s) => out.push(self.store(Some(*how), s)),
                Source::Claim(Claim { array, taken, index, site }) => {
                    let element = element(self.program, *array, *index, site);
                    out.push(Stmt::Claim { element, taken: *taken });
                }
                Source::If(branch) => {
                    let [mut then, mut otherwise] = [Body::new(), Body::new()];
                    self.block(&branch.then, loops, numbers, &mut then);
                    self.block(&branch.otherwise, loops, numbers, &mut otherwise);
                    out.push(Stmt::If { condition: self.operand(branch.condition), then, otherwise });
                }
                Source::Loop(l) => self.inner_loop(l, loops, numbers, out),
                // All others stand at program level alone.
                _ => {}
            }
        }
    }

    fn operand(&self, v: ValueId) -> Expr {
        operand(self.program, v)
    }

    fn value(&self, v: ValueId, out: &mut Body) {
        let (name, ty) = (Name::value(v), self.program.ty(v));
        let site = &self.program.value(v).site;
        match *self.program.op(v) {
            Op::Literal(_) => {}
            Op::Load(array, index) => {
                let element = element(self.program, array, index, site);
                out.push(Stmt::Load { name, ty: Ty::One(ty), element, when: None });
            }
            op => {
                if let Op::Binary(Binary::Div | Binary::Rem | Binary::RemEuclid, _, divisor) = op
                    && !ty.is_float()
                    && self.program.literal(divisor).is_none_or(|l| l.to_i64() == Some(0))
                {
                    let (operand, kind) = (self.operand(divisor), Fault::Division(v));
                    let around = self.assertions.get(&v);
                    let counters = around
                        .map_or(Vec::new(), |a| a.counters.iter().copied().map(Expr::variable).collect());
                    out.push(Stmt::Fault { operand, kind, counters, site: site.clone() });
                }
                let value = operation(self.program, self.exact, v);
                out.push(Stmt::Let { name, ty: Ty::One(ty), value });
            }
        }
    }

    fn store(&self, how: Option<Combine>, s: &Store) -> Stmt {
        let (ty, value) = (Ty::One(self.program.array(s.array).ty), self.operand(s.value));
        let noted = self.shared.noted.get(&(s.array, s.index));
        if let Some(table) = noted
            && self.shared.counted
        {
            let (name, ty) = (Variable::Terms(*table).into(), Ty::One(Type::Index));
            let one = Expr::Literal(Literal::of(Type::Index, 1.0));
            return Stmt::Assign {
                name,
                ty,
                value: Expr::combine(Combine::Add, ty, Expr::Variable(name), one),
            };
        }
        let bucket = self.shared.in_buckets.get(&(s.array, s.index));
        let manner = match (self.team, noted, bucket) {
            (Team::Lanes, ..) => Manner::Leader,
            (_, Some(table), _) => Manner::Noted(*table),
            (.., Some(table)) => Manner::Bucket(*table),
            _ if how.is_some() && self.shared.counted_runs.contains(&(s.array, s.index)) => self.counted(s),
            _ if how.is_some() && self.shared.atomics.contains(&s.array) => Manner::Atomic,
            _ => Manner::Plain,
        };
        let element = element(self.program, s.array, s.index, &s.site);
        Stmt::Store { element, ty, how, value, more: Vec::new(), when: None, manner }
    }

    /// How an update is made whose terms are counted.
    fn counted(&self, s: &Store) -> Manner {
        let update = (s.array, s.index);
        match self.shared.counted_groups.get(&update) {
            Some(away) => Manner::CountedFor(away.clone()),
            None if self.shared.riders.contains(&update) => Manner::CountedElsewhere,
            None => Manner::Counted,
        }
    }

    fn inner_loop(&self, l: &ebbtide_ir::Loop, loops: usize, numbers: &mut Numbers, out: &mut Body) {
        use ebbtide_ir::LoopKind as Source;
        let (number, outermost) = (numbers.fresh.next(), loops == 0);
        let kind = match &l.kind {
            Source::For { var, from, to } => {
                if outermost && [from, to].iter().any(|v| self.program.literal(**v).is_none()) {
                    out.push(Stmt::Poll);
                }
                for v in [*from, *to] {
                    if may_overflow(self.program, self.exact, v) {
                        let site = self.program.value(v).site.clone();
                        let (operand, kind) = (self.operand(v), Fault::Overflow);
                        out.push(Stmt::Fault { operand, kind, counters: Vec::new(), site });
                    }
                }
                let [from, to] = [*from, *to].map(|v| self.operand(v));
                LoopKind::Counted { variable: Name::value(*var), from, to }
            }
            Source::While { head, condition } => {
                let mut lowered = Body::new();
                self.block(head, loops + 1, numbers, &mut lowered);
                LoopKind::While { head: lowered, condition: self.operand(*condition) }
            }
            Source::Forever => LoopKind::Forever,
        };
        let chains = self.shared.chains.get(&l.id).filter(|_| self.team == Team::Lanes);
        let sums: Vec<_> = l.sums.iter().chain(chains.into_iter().flatten()).map(|v| self.sum(*v)).collect();
        // Of a loop with sums each thread of a team takes iterations for itself.
        let team = if sums.is_empty() { self.team } else { Team::Alone };
        let mut body = Body::new();
        Lowering { team, ..*self }.block(&l.body, loops + 1, numbers, &mut body);
        let until = l.until.map(|until| self.operand(until));
        out.push(Stmt::Loop(Loop {
            id: l.id,
            number,
            kind,
            polls: outermost,
            until,
            sums,
            chained: chains.is_some(),
            body,
            partly: None,
            ends: None,
            ahead: None,
            wide: None,
        }));
    }

    fn sum(&self, local: LocalId) -> (Name, Ty) {
        (Name::local(local), Ty::One(self.program.locals[local.index()].ty))
    }
}
