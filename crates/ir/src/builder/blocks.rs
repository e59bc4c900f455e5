//! Blocks: branches, loops, regions, calls.

use super::{Builder, Open, Owner};
use crate::syntax::*;

impl Builder {
    fn begin(&mut self, owner: Owner) {
        self.open.push(Open { block: Block::new(), owner });
    }

    /// Ends the innermost block, if `expected` says that it is of the right kind.
    fn end(&mut self, what: &str, expected: impl Fn(&Owner) -> bool) -> Option<(Owner, Block)> {
        match self.open.pop_if(|open| expected(&open.owner)) {
            Some(open) => Some((open.owner, open.block)),
            None => {
                self.flaw("1", format!("the end of {what} does not match a beginning"));
                None
            }
        }
    }

    /// Begins `if condition {`.
    pub fn begin_if(&mut self, condition: ValueId) {
        self.begin(Owner::Then(condition));
    }

    /// `} else {`.
    pub fn begin_else(&mut self) {
        if let Some((Owner::Then(condition), then)) = self.end("an `if`", |o| matches!(o, Owner::Then(_))) {
            self.begin(Owner::Otherwise(condition, then));
        }
    }

    /// Ends an `if`, with or without `else`.
    pub fn end_if(&mut self) {
        let ended = self.end("an `if`", |o| matches!(o, Owner::Then(_) | Owner::Otherwise(..)));
        let branch = match ended {
            Some((Owner::Then(condition), then)) => Branch { condition, then, otherwise: Block::new() },
            Some((Owner::Otherwise(condition, then), otherwise)) => Branch { condition, then, otherwise },
            _ => return,
        };
        self.push(Stmt::If(branch));
    }

    /// Ends an `if` whose arms both set `local`; see [`Builder::end_values_if`].
    pub fn end_value_if(&mut self, local: LocalId) -> ValueId {
        match self.end_values_if(&[local])[..] {
            [value] => value,
            _ => self.get(local),
        }
    }

    /// Ends an `if` whose arms both end by setting `locals`, in order, which nothing else uses, and gives their values.
    /// Where both arms are cheap and cannot fail they become `select`s, which index arithmetic and vectors understand.
    pub fn end_values_if(&mut self, locals: &[LocalId]) -> Vec<ValueId> {
        let Some(Open { owner: Owner::Otherwise(condition, then), block: otherwise }) = self.open.last()
        else {
            self.end_if();
            return locals.iter().map(|local| self.get(*local)).collect();
        };
        let arms = (self.arm(then, locals), self.arm(otherwise, locals));
        let (Some(yes), Some(no)) = arms else {
            self.end_if();
            return locals.iter().map(|local| self.get(*local)).collect();
        };
        let (condition, mut values) = (*condition, then.clone());
        values.extend_from_slice(otherwise);
        self.open.pop();
        if let Some(open) = self.open.last_mut() {
            // Their first values were never read.
            let mut unread = Vec::new();
            open.block.retain(|stmt| match stmt {
                Stmt::Declare(declared, value) if locals.contains(declared) => {
                    unread.push(*value);
                    false
                }
                _ => true,
            });
            unread.retain(|v| self.program.literal(*v).is_some());
            open.block.retain(|stmt| !matches!(stmt, Stmt::Let(value) if unread.contains(value)));
            open.block.extend(values.into_iter().filter(|stmt| matches!(stmt, Stmt::Let(_))));
        }
        yes.into_iter().zip(no).map(|(yes, no)| self.select(condition, yes, no)).collect()
    }

    /// Ends the `if` of `left && right` or `left || right`, which ends by setting `local` to the right side, and gives the value.
    /// Where the right side is cheap and cannot fail nothing is asked before it is computed: conditions then stand together,
    /// as those that prove iterations apart must.
    pub fn end_asked(&mut self, local: LocalId, left: ValueId, op: Binary) -> ValueId {
        let cheap = match self.open.last() {
            Some(Open { owner: Owner::Then(asked), block }) => {
                self.arm(block, &[local]).map(|right| (*asked, block.clone(), right))
            }
            _ => None,
        };
        let Some((asked, block, right)) = cheap else {
            self.end_if();
            return self.get(local);
        };
        self.open.pop();
        if let Some(open) = self.open.last_mut() {
            open.block.retain(|stmt| match stmt {
                Stmt::Declare(declared, _) => *declared != local,
                // Of `||`: whether the left side does not hold.
                Stmt::Let(value) => *value == left || *value != asked,
                _ => true,
            });
            open.block.extend(block.into_iter().filter(|stmt| matches!(stmt, Stmt::Let(_))));
        }
        right.into_iter().fold(left, |left, right| self.binary(op, left, right))
    }

    /// What an arm sets `locals` to, where it does nothing else that costs or fails.
    fn arm(&self, block: &Block, locals: &[LocalId]) -> Option<Vec<ValueId>> {
        let (rest, last) = block.split_at_checked(block.len().checked_sub(locals.len())?)?;
        let cheap = |stmt: &Stmt| match stmt {
            Stmt::Let(v) => match self.program.op(*v) {
                Op::Get(_) => true,
                Op::Math(..) | Op::Rand(..) => false,
                op => op.is_pure() && !self.program.may_fail(*v),
            },
            _ => false,
        };
        if !rest.iter().all(cheap) {
            return None;
        }
        let sets = last.iter().zip(locals).map(|(stmt, local)| match stmt {
            Stmt::Set(set, value) if set == local => Some(*value),
            _ => None,
        });
        sets.collect()
    }

    fn new_loop(&mut self) -> LoopId {
        self.program.loops += 1;
        let id = LoopId(self.program.loops - 1);
        if let Some(hint) = self.next_schedule.take() {
            self.schedules.insert(id, hint);
        }
        id
    }

    /// Begins a line that is printed where the program is interpreted: what it needs is computed next.
    pub fn begin_print(&mut self) -> ValueId {
        let never = self.literal(Literal::from(false));
        self.begin_if(never);
        never
    }

    /// Ends the line that [`Builder::begin_print`] began, with what it says.
    pub fn end_print(&mut self, condition: ValueId, stream: Stream, pieces: Vec<Piece>) {
        self.end_if();
        self.program.prints.push(Print { condition, stream, pieces });
    }

    /// Begins `for name in from..to {` and gives the loop variable.
    pub fn begin_for(&mut self, name: &str, from: ValueId, to: ValueId) -> ValueId {
        let id = self.new_loop();
        let var = self.loop_var(name);
        self.begin(Owner::Loop(id, LoopKind::For { var, from, to }));
        var
    }

    /// Does what comes next stand in the body of a parallel loop?
    pub fn is_in_iteration(&self) -> bool {
        self.open.iter().any(|open| matches!(open.owner, Owner::Par(..)))
    }

    /// Begins `for name in from..to {`, whose terms are added to the locals `totals` in the order of law 8: an iteration finds
    /// each at -0.0 and leaves its term there.
    pub fn begin_sum(&mut self, name: &str, from: ValueId, to: ValueId, totals: Vec<LocalId>) -> ValueId {
        let id = self.new_loop();
        self.sums.insert(id, totals);
        let var = self.loop_var(name);
        self.begin(Owner::Loop(id, LoopKind::For { var, from, to }));
        var
    }

    /// Begins a `while`: the statements that compute its condition come next.
    pub fn begin_while(&mut self) {
        let id = self.new_loop();
        self.begin(Owner::Head(id));
    }

    /// The condition of the `while` is known: its body comes next.
    pub fn while_condition(&mut self, condition: ValueId) {
        if let Some((Owner::Head(id), head)) =
            self.end("a `while` condition", |o| matches!(o, Owner::Head(_)))
        {
            self.begin(Owner::Loop(id, LoopKind::While { head, condition }));
        }
    }

    /// Begins `loop {`.
    pub fn begin_loop(&mut self) {
        let id = self.new_loop();
        self.begin(Owner::Loop(id, LoopKind::Forever));
    }

    /// Ends a `for`, `while` or `loop`; `until` is the condition of a last `if … { break; }`.
    pub fn end_loop(&mut self, until: Option<ValueId>) {
        if let Some((Owner::Loop(id, kind), body)) = self.end("a loop", |o| matches!(o, Owner::Loop(..))) {
            if until.is_none() && matches!(kind, LoopKind::Forever) {
                self.flaw("5", "a `loop` needs `if … { break; }` as its last statement: it would never end");
            }
            let schedule = self.schedules.remove(&id);
            let sums = self.sums.remove(&id).unwrap_or_default();
            self.push(Stmt::Loop(Loop { id, kind, body, sums, until, schedule }));
        }
    }

    /// The next sequential loop is to be reversed in this way.
    pub fn reverse(&mut self, hint: ReverseHint) {
        if let ReverseHint::Periodic(0)
        | ReverseHint::Revolve(0)
        | ReverseHint::Online(0)
        | ReverseHint::Mixed(0) = hint
        {
            self.flaw("5", format!("`{hint}`: a loop is reversed from at least one stored state"));
        }
        self.next_schedule = Some(hint);
    }

    /// The next parallel loop is `#[relaxed]`.
    pub fn relaxed(&mut self) {
        self.ordering = Ordering::Relaxed;
    }

    /// Begins a parallel loop and gives its variables, one per `(name, from, to)`.
    pub fn begin_par(&mut self, ranges: &[(&str, ValueId, ValueId)]) -> Vec<ValueId> {
        self.program.pars += 1;
        let id = ParId(self.program.pars - 1);
        let ranges: Vec<Range> =
            ranges.iter().map(|&(name, from, to)| Range { var: self.loop_var(name), from, to }).collect();
        let vars = ranges.iter().map(|r| r.var).collect();
        let ordering = std::mem::replace(&mut self.ordering, Ordering::Ordered);
        self.begin(Owner::Par(id, ranges, ordering, self.site.clone()));
        vars
    }

    /// Ends a parallel loop.
    pub fn end_par(&mut self) {
        let ended = self.end("a parallel loop", |o| matches!(o, Owner::Par(..)));
        if let Some((Owner::Par(id, ranges, ordering, site), body)) = ended {
            // Nothing is taken when the loop begins.
            for (array, taken) in std::mem::take(&mut self.taken) {
                let shape = (0..self.program.array(array).rank).map(|k| self.dim(array, k)).collect();
                self.program.arrays[taken.index()].role = Role::Temp(shape);
                self.push(Stmt::Temp(taken));
            }
            let (requires, safety) = (Vec::new(), Safety::Unknown);
            self.push(Stmt::Par(Par { id, ranges, body, ordering, requires, safety, site }));
        }
    }

    /// Begins a labelled region.
    pub fn begin_region(&mut self, label: Label, flag: Option<ArrayId>, undo: Undo) {
        let id = match self.program.labels.iter().position(|l| *l == label) {
            Some(known) => LabelId(known as u32),
            None => {
                self.program.labels.push(label);
                LabelId(self.program.labels.len() as u32 - 1)
            }
        };
        self.begin(Owner::Region(id, flag, undo, self.site.clone()));
    }

    /// Ends a labelled region.
    pub fn end_region(&mut self) {
        let ended = self.end("a region", |o| matches!(o, Owner::Region(..)));
        if let Some((Owner::Region(label, flag, undo, site), body)) = ended {
            let id = RegionId(self.program.regions);
            self.program.regions += 1;
            self.push(Stmt::Region(Region { id, label, flag, undo, body, site }));
        }
    }

    /// Begins the body of a called program; an error if it is being called already.
    pub fn begin_call(&mut self, name: &str) {
        self.begin(Owner::Call(name.to_string(), None));
    }

    /// Begins the body of a called program that brings its own derivatives.
    pub fn begin_ruled_call(&mut self, name: &str, arguments: Vec<Bound>, rules: Rules) {
        self.begin(Owner::Call(name.to_string(), Some(Ruled { arguments, rules })));
    }

    /// The names of the programs being called now, outermost first, this one included.
    pub fn call_stack(&self) -> Vec<&str> {
        let calls = self.open.iter().filter_map(|open| match &open.owner {
            Owner::Call(name, _) => Some(name.as_str()),
            _ => None,
        });
        std::iter::once(self.program.name.as_str()).chain(calls).collect()
    }

    /// Ends the body of a called program.
    pub fn end_call(&mut self) {
        if let Some((Owner::Call(name, ruled), body)) = self.end("a call", |o| matches!(o, Owner::Call(..))) {
            self.push(Stmt::Call(Call { name, body, ruled }));
        }
    }
}
