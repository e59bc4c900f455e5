//! Writes what an update needs once more, for an element.

use std::collections::{BTreeSet, HashMap};

use ebbtide_ir::{
    Affine, ArrayId, Binary, Block, Branch, Compare, Indices, LocalId, Loop, LoopKind, Op, Stmt, Type,
    ValueId,
};

use super::lanes::LANES;
use super::slice::updates;
use crate::analysis::index_preimage::{Bound, Clamp, Part, Step, Variable, Within};
use crate::writer::Writer;

/// Copies statements of one loop into another.
pub(super) struct Copier<'a> {
    /// What came to life in the first loop.
    inside: &'a BTreeSet<ValueId>,
    /// What takes the sums: one for each update that is copied, in the order in which they stand.
    sums: Vec<LocalId>,
    /// How many updates have been copied.
    copied: usize,
    /// Values that are known from the start, although the statements that are copied compute them.
    given: BTreeSet<ValueId>,
    values: HashMap<ValueId, ValueId>,
    /// Locals that hold what was handed on.
    handed: HashMap<LocalId, ValueId>,
    locals: HashMap<LocalId, LocalId>,
}

/// How a variable comes to an element through an index that is clamped: the fields of [`Step::Clamp`].
#[derive(Clone, Copy)]
struct Clamped<'s> {
    variable: &'s Variable,
    dimension: usize,
    sign: i64,
    rest: &'s Affine,
    clamp: &'s Clamp,
}

impl<'a> Copier<'a> {
    pub fn new(inside: &'a BTreeSet<ValueId>, sums: Vec<LocalId>) -> Copier<'a> {
        Copier {
            inside,
            sums,
            copied: 0,
            given: BTreeSet::new(),
            values: HashMap::new(),
            handed: HashMap::new(),
            locals: HashMap::new(),
        }
    }

    /// Lets a value of the first loop be this one, wherever it is computed.
    pub fn give(&mut self, v: ValueId, value: ValueId) {
        self.values.insert(v, value);
        self.given.insert(v);
    }

    /// A value as it is known here.
    pub fn known(&self, v: ValueId) -> ValueId {
        self.values.get(&v).copied().unwrap_or(v)
    }

    /// Reads a value that an iteration kept.
    pub fn hand(&mut self, w: &mut Writer, v: ValueId, array: ArrayId, index: Indices) {
        let value = w.load(array, index, None);
        self.values.insert(v, value);
    }

    /// Reads what an iteration kept of a local.
    pub fn hand_local(&mut self, w: &mut Writer, local: LocalId, array: ArrayId, index: Indices) {
        let value = w.load(array, index, None);
        self.handed.insert(local, value);
    }

    // ---- the iterations of a preimage

    /// Writes something for each iteration that comes to an element.
    ///
    /// The depth of recursion is the number of loops.
    pub fn each(
        &mut self,
        w: &mut Writer,
        steps: &[Step],
        element: &[ValueId],
        write: &dyn Fn(&mut Self, &mut Writer),
    ) {
        let Some((step, steps)) = steps.split_first() else {
            self.copied = 0;
            return write(self, w);
        };
        match step {
            Step::Check { dimension, sum } => {
                let at = self.sum(w, sum);
                let condition = w.compare(Compare::Eq, element[*dimension], at);
                let then = self.inner(w, |this, w| this.each(w, steps, element, write));
                w.push(Stmt::If(Branch { condition, then, otherwise: Block::new() }));
            }
            Step::Follow { variable, dimension, sign, rest } => {
                let rest = self.sum(w, rest);
                let at = difference(w, *sign, element[*dimension], rest);
                let condition = self.in_range(w, at, variable);
                let then = self.inner(w, |this, w| {
                    this.values.insert(variable.var, at);
                    this.each(w, steps, element, write);
                });
                w.push(Stmt::If(Branch { condition, then, otherwise: Block::new() }));
            }
            Step::Wrap { variable, dimension, sign, rest, modulus } => {
                let rest = self.sum(w, rest);
                let at = difference(w, *sign, element[*dimension], rest);
                let modulus = self.atom(w, *modulus);
                // Elements beyond the modulus belong to no iteration.
                let condition = w.compare(Compare::Lt, element[*dimension], modulus);
                let then = self.inner(w, |this, w| {
                    let at = w.binary(Binary::RemEuclid, at, modulus);
                    this.values.insert(variable.var, at);
                    this.each(w, steps, element, write);
                });
                w.push(Stmt::If(Branch { condition, then, otherwise: Block::new() }));
            }
            Step::Clamp { variable, dimension, sign, rest, clamp } => {
                let clamped = Clamped { variable, dimension: *dimension, sign: *sign, rest, clamp };
                self.each_clamped(w, &clamped, steps, element, write);
            }
            Step::Each { variable, within, part } => {
                self.each_value(w, (variable, within.as_ref(), *part), steps, element, write);
            }
        }
    }

    /// Writes it for the iterations that come to an element through an index that is clamped: at a bound all that the bound holds
    /// back, elsewhere the one that would come there without it.
    fn each_clamped(
        &mut self,
        w: &mut Writer,
        clamped: &Clamped,
        steps: &[Step],
        element: &[ValueId],
        write: &dyn Fn(&mut Self, &mut Writer),
    ) {
        let Clamped { variable, dimension, sign, rest, clamp: Clamp { bounds, offset, index } } = *clamped;
        let offset = self.sum(w, offset);
        let k = difference(w, 1, element[dimension], offset);
        let (mut at_bound, mut between) = (None, None);
        for bound in bounds {
            let (Bound::Least(v) | Bound::Most(v)) = *bound;
            let v = self.atom(w, v);
            let inner = if let Bound::Least(_) = bound { Compare::Gt } else { Compare::Lt };
            let (here, off) = (w.compare(Compare::Eq, k, v), w.compare(inner, k, v));
            at_bound = Some(either(w, Binary::Or, at_bound, here));
            between = Some(either(w, Binary::And, between, off));
        }
        let then = self.inner(w, |this, w| {
            let steps = |this: &mut Self, w: &mut Writer| {
                let at = this.atom(w, *index);
                let condition = w.compare(Compare::Eq, at, element[dimension]);
                let then = this.inner(w, |this, w| this.each(w, steps, element, write));
                w.push(Stmt::If(Branch { condition, then, otherwise: Block::new() }));
            };
            let all = Step::Each { variable: *variable, within: None, part: Part::All };
            this.each(w, &[all], element, &steps);
        });
        let otherwise = self.inner(w, |this, w| {
            let rest = this.sum(w, rest);
            let at = difference(w, sign, k, rest);
            let in_range = this.in_range(w, at, variable);
            let condition = either(w, Binary::And, between, in_range);
            let then = this.inner(w, |this, w| {
                this.values.insert(variable.var, at);
                this.each(w, steps, element, write);
            });
            w.push(Stmt::If(Branch { condition, then, otherwise: Block::new() }));
        });
        if let Some(condition) = at_bound {
            w.push(Stmt::If(Branch { condition, then, otherwise }));
        }
    }

    /// Writes it for every value of a variable, or for those that a lane takes.
    fn each_value(
        &mut self,
        w: &mut Writer,
        (variable, within, part): (&Variable, Option<&Within>, Part),
        steps: &[Step],
        element: &[ValueId],
        write: &dyn Fn(&mut Self, &mut Writer),
    ) {
        let (mut from, mut to) = self.bounds(w, variable, within, element);
        let name = w.program.value(variable.var).name.clone().unwrap_or_else(|| "i".to_string());
        let (first, lanes) = (from, w.index(LANES));
        if part != Part::All {
            let all = w.sub(to, from);
            let rounds = w.div(all, lanes);
            (from, to) = match part {
                Part::Lane(_) => (w.index(0), rounds),
                _ => {
                    let done = w.mul(rounds, lanes);
                    (w.add(from, done), to)
                }
            };
        }
        let var = w.loop_var(&name);
        let body = self.inner(w, |this, w| {
            let mut at = var;
            if let Part::Lane(lane) = part {
                let done = w.mul(var, lanes);
                let start = w.add(first, done);
                at = w.add(start, lane);
            }
            this.values.insert(variable.var, at);
            this.each(w, steps, element, write);
        });
        let (id, kind) = (w.new_loop(), LoopKind::For { var, from, to });
        w.push(Stmt::Loop(Loop { id, kind, body, sums: Vec::new(), until: None, schedule: None }));
    }

    /// Is the value one that the variable takes?
    fn in_range(&mut self, w: &mut Writer, at: ValueId, variable: &Variable) -> ValueId {
        let (from, to) = (self.again(w, variable.from), self.again(w, variable.to));
        let (low, high) = (w.compare(Compare::Ge, at, from), w.compare(Compare::Lt, at, to));
        either(w, Binary::And, Some(low), high)
    }

    /// The range of a variable that takes each value.
    fn bounds(
        &mut self,
        w: &mut Writer,
        variable: &Variable,
        within: Option<&Within>,
        element: &[ValueId],
    ) -> (ValueId, ValueId) {
        let (from, to) = (self.again(w, variable.from), self.again(w, variable.to));
        let Some(Within { next, dimension, sign, coefficient, rest }) = within else { return (from, to) };
        // coefficient · variable = k - rest - sign · next, with next in its range.
        let rest = self.sum(w, rest);
        let whole = w.sub(element[*dimension], rest);
        let (first, end) = (self.again(w, next.from), self.again(w, next.to));
        let one = w.index(1);
        let last = w.sub(end, one);
        let (mut low, mut high) = match sign {
            1 => (w.sub(whole, last), w.sub(whole, first)),
            _ => (w.add(whole, first), w.add(whole, last)),
        };
        if *coefficient < 0 {
            let zero = w.index(0);
            (low, high) = (w.sub(zero, high), w.sub(zero, low));
        }
        if coefficient.abs() != 1 {
            let step = w.index(coefficient.abs());
            let more = w.sub(step, one);
            let above = w.add(low, more);
            (low, high) = (floor(w, above, step), floor(w, high, step));
        }
        let beyond = w.add(high, one);
        (w.binary(Binary::Max, from, low), w.binary(Binary::Min, to, beyond))
    }

    // ---- values

    /// Writes a sum.
    fn sum(&mut self, w: &mut Writer, form: &Affine) -> ValueId {
        let mut total: Option<ValueId> =
            (form.constant != 0 || form.terms.is_empty()).then(|| w.index(form.constant));
        for (atom, coefficient) in &form.terms {
            let term = self.atom(w, *atom);
            total = Some(match (total, coefficient) {
                (None, 1) => term,
                (Some(total), 1) => w.add(total, term),
                (Some(total), -1) => w.sub(total, term),
                (total, _) => {
                    let factor = w.index(*coefficient);
                    let term = w.mul(factor, term);
                    total.map_or(term, |total| w.add(total, term))
                }
            });
        }
        total.unwrap_or_else(|| w.index(0))
    }

    /// An atom stands for all values that are equal to it: where it is pure, it may be out of sight here. The depth of
    /// recursion is that of one index expression.
    fn atom(&mut self, w: &mut Writer, v: ValueId) -> ValueId {
        if let Some(known) = self.values.get(&v) {
            return *known;
        }
        match *w.program.op(v) {
            Op::Load(..) if self.inside.contains(&v) => self.again(w, v),
            Op::LoopVar | Op::Get(_) | Op::Load(..) => v,
            op => {
                let op = op.map(|o| self.atom(w, o));
                let ty = w.ty(v);
                w.value(op, ty)
            }
        }
    }

    /// A value of the first loop, made again from its variables. The depth of recursion is that of an expression that
    /// is cheap, or of an index.
    pub fn again(&mut self, w: &mut Writer, v: ValueId) -> ValueId {
        if let Some(known) = self.values.get(&v) {
            return *known;
        }
        if !self.inside.contains(&v) {
            return v;
        }
        let op = w.program.op(v).map(|o| self.again(w, o));
        self.make(w, v, op)
    }

    fn make(&mut self, w: &mut Writer, v: ValueId, op: Op) -> ValueId {
        let decl = w.program.value(v).clone();
        let new = w.program.add_value(op, decl.ty, decl.site);
        w.program.values[new.index()].name = decl.name;
        w.push(Stmt::Let(new));
        self.values.insert(v, new);
        new
    }

    // ---- statements

    /// Copies a block; its updates add to the sums. The loops around the updates have been entered.
    pub fn block(&mut self, w: &mut Writer, block: &Block) {
        for stmt in block {
            self.statement(w, stmt);
        }
    }

    fn statement(&mut self, w: &mut Writer, stmt: &Stmt) {
        match stmt {
            Stmt::Let(v) if self.given.contains(v) => {}
            Stmt::Let(v) => match *w.program.op(*v) {
                Op::Get(local) => match self.handed.get(&local).copied() {
                    Some(value) => drop(self.values.insert(*v, value)),
                    None => {
                        let read = w.get(self.locals.get(&local).copied().unwrap_or(local));
                        self.values.insert(*v, read);
                    }
                },
                op => {
                    let op = op.map(|o| self.again(w, o));
                    self.make(w, *v, op);
                }
            },
            Stmt::Declare(local, v) => {
                let (name, value) = (w.program.locals[local.index()].name.clone(), self.again(w, *v));
                let new = w.local(&name, value);
                self.locals.insert(*local, new);
            }
            Stmt::Set(local, v) => {
                let value = self.again(w, *v);
                w.push(Stmt::Set(self.locals.get(local).copied().unwrap_or(*local), value));
            }
            Stmt::Update(_, s) => {
                let Some(total) = self.sums.get(self.copied).copied() else { return };
                self.copied += 1;
                let (old, value) = (w.get(total), self.again(w, s.value));
                let sum = w.add(old, value);
                w.push(Stmt::Set(total, sum));
            }
            Stmt::If(branch) => {
                let condition = self.again(w, branch.condition);
                let [then, otherwise] = [&branch.then, &branch.otherwise].map(|arm| self.arm(w, arm));
                w.push(Stmt::If(Branch { condition, then, otherwise }));
            }
            Stmt::Loop(l) if updates(stmt) > 0 => self.block(w, &l.body),
            Stmt::Loop(l) => self.inner_loop(w, l),
            _ => {}
        }
    }

    fn arm(&mut self, w: &mut Writer, block: &Block) -> Block {
        self.inner(w, |this, w| this.block(w, block))
    }

    /// Writes a block; what is made in it is not known outside.
    fn inner(&mut self, w: &mut Writer, write: impl FnOnce(&mut Self, &mut Writer)) -> Block {
        let outside = self.values.clone();
        w.begin();
        write(self, w);
        self.values = outside;
        w.end()
    }

    fn inner_loop(&mut self, w: &mut Writer, l: &Loop) {
        let outside = self.values.clone();
        let kind = match &l.kind {
            LoopKind::For { var, from, to } => {
                let (from, to) = (self.again(w, *from), self.again(w, *to));
                let new = w.loop_var(&w.program.value(*var).name.clone().unwrap_or_else(|| "k".to_string()));
                self.values.insert(*var, new);
                LoopKind::For { var: new, from, to }
            }
            LoopKind::While { head, condition } => {
                w.begin();
                self.block(w, head);
                let condition = self.again(w, *condition);
                // What the head computes is known in the condition alone.
                self.values.clone_from(&outside);
                LoopKind::While { head: w.end(), condition }
            }
            LoopKind::Forever => LoopKind::Forever,
        };
        w.begin();
        self.block(w, &l.body);
        let until = l.until.map(|v| self.again(w, v));
        let body = w.end();
        self.values = outside;
        let id = w.new_loop();
        let sums = l.sums.iter().map(|local| self.locals.get(local).copied().unwrap_or(*local)).collect();
        w.push(Stmt::Loop(Loop { id, kind, body, sums, until, schedule: None }));
    }
}

/// `sign · (a - b)`.
fn difference(w: &mut Writer, sign: i64, a: ValueId, b: ValueId) -> ValueId {
    let zero = |v| matches!(w.program.literal(v).and_then(ebbtide_ir::Literal::to_i64), Some(0));
    match sign {
        1 if zero(b) => a,
        1 => w.sub(a, b),
        _ => w.sub(b, a),
    }
}

/// `⌊a / b⌋` for positive `b`.
fn floor(w: &mut Writer, a: ValueId, b: ValueId) -> ValueId {
    let rest = w.binary(Binary::RemEuclid, a, b);
    let whole = w.sub(a, rest);
    w.div(whole, b)
}

/// A condition joined to others.
fn either(w: &mut Writer, op: Binary, others: Option<ValueId>, condition: ValueId) -> ValueId {
    others.map_or(condition, |others| w.value(Op::Binary(op, others, condition), Type::Bool))
}
