//! Replay under a limit: Revolve over the operations of a [`Plan`], taken in the order of recording.
//!
//! The states held form a stack, the lowest at the start (it is empty: everything there is retained). To
//! reverse the operation at position j the top state is advanced to the split that is optimal for the stretch
//! between it and j and for the slots that are left, again and again, until what j needs is there. States
//! above the sweep are dropped. For a chain this is Revolve action by action; for other graphs see
//! [`Sweep`](crate::Sweep). Everything is decided at the moment it is needed, so that an operation that receives
//! no cotangent costs nothing unless something that does receive one is computed from it. The exception: the
//! plan cannot know that a rule will keep back a cotangent that is wanted; values that would have been needed
//! with it may be held in vain until the plan is made again, which happens before the next advance.

use ebbtide_schedule::revolve;

use crate::execution::{Execution, Phase};
use crate::graph::NodeRef;
use crate::plan::{Measure, Plan, Role};
use crate::{Differentiable, Error, Limit, Result};

pub(crate) struct Schedule {
    measure: Measure,
    limit: u64,
    /// What the states may weigh together; known with the first plan.
    budget: u64,
    plan: Plan,
    /// The states held; none before the first plan.
    states: Vec<State>,
    /// How many hold each operation's outputs, by head.
    holders: Vec<u32>,
    /// What the operation being reversed needs and no state holds.
    fed: Vec<u32>,
    /// Scratch of an advance, by position: the use after which an output can go.
    until: Vec<u32>,
    /// A rule kept a cotangent back since the plan was made: less may be needed than planned.
    withheld: bool,
}

/// Values that are held until the sweep has come down to where they are.
struct State {
    /// The position that it stands before.
    position: usize,
    /// The node that it stands before.
    boundary: u32,
    /// The operations whose outputs it holds.
    heads: Vec<u32>,
}

/// Where an advance leads.
#[derive(Clone, Copy)]
enum Goal {
    /// To the state before a position, to be held.
    Hold(usize),
    /// To what the operation at a position needs, for this once.
    Feed(usize),
}

const NOT_NEEDED: u32 = 0;
const FOR_GOOD: u32 = u32::MAX;

impl Schedule {
    pub(crate) fn under(limit: Limit) -> Result<Option<Box<Schedule>>> {
        let (measure, limit) = match limit {
            Limit::None => return Ok(None),
            Limit::Slots(0) => return Err(Error::BudgetTooSmall { budget: 0, minimum: 1 }),
            Limit::Slots(slots) => (Measure::Values, slots),
            Limit::Bytes(bytes) => (Measure::Bytes, bytes),
        };
        Ok(Some(Box::new(Schedule {
            measure,
            limit,
            budget: 0,
            plan: Plan::default(),
            states: Vec::new(),
            holders: Vec::new(),
            fed: Vec::new(),
            until: Vec::new(),
            withheld: false,
        })))
    }

    /// Looks whether a rule gave every wanted input its cotangent.
    pub(crate) fn note_withheld<V: Differentiable>(
        &mut self,
        op: &NodeRef<'_, V>,
        cotangents: &[Option<V::Tangent>],
    ) {
        let without = |node: usize| cotangents[node].is_none() && self.plan.position(node).is_some();
        self.withheld |= op.edges.iter().any(|edge| edge.wanted() && without(edge.node()));
    }

    /// Brings about whatever an operation needs to be reversed.
    pub(crate) fn provide<V: Differentiable>(
        &mut self,
        sweep: &mut Execution<'_, V>,
        op: &NodeRef<'_, V>,
    ) -> Result<()> {
        if self.states.is_empty() {
            self.make_first_plan(sweep, op.index)?;
        }
        loop {
            let Some(target) = self.plan.position(op.index) else { return Ok(()) };
            if self.plan.needs(target, op).all(|needed| self.is_held(needed)) {
                return Ok(());
            }
            if self.withheld {
                self.make_plan_again(sweep, op.index);
                continue;
            }
            let held = self.states.last().map_or(0, |state| state.position);
            let from = held.max(self.plan.start(target));
            let left = self.budget.saturating_sub(self.measure.of(sweep.live));
            let slots = (left / self.plan.widest(from + 1, target).max(1)).saturating_add(1);
            let steps = target + 1 - from;
            match revolve::split(steps as u64, usize::try_from(slots).unwrap_or(usize::MAX)) {
                Some(split) if slots > 1 => self.advance(sweep, from, Goal::Hold(from + split as usize))?,
                _ => return self.advance(sweep, from, Goal::Feed(target)),
            }
        }
    }

    fn is_held(&self, position: usize) -> bool {
        self.holders[self.plan.heads[position] as usize] > 0
    }

    fn make_first_plan<V: Differentiable>(&mut self, sweep: &Execution<'_, V>, top: usize) -> Result<()> {
        self.plan = Plan::new(sweep, top, self.measure);
        self.budget = match self.measure {
            // The retained value that everything starts from takes one slot.
            Measure::Values => self.limit - 1,
            Measure::Bytes if self.limit < self.plan.working => {
                return Err(Error::BudgetTooSmall { budget: self.limit, minimum: self.plan.working });
            }
            Measure::Bytes => self.limit - self.plan.working,
        };
        self.holders = vec![0; sweep.graph.op(top).outputs().end];
        self.until = vec![NOT_NEEDED; self.plan.heads.len()];
        self.withheld = false;
        self.states.push(State { position: 0, boundary: 0, heads: Vec::new() });
        Ok(())
    }

    /// Plans what is left anew; the states keep what is still of use.
    fn make_plan_again<V: Differentiable>(&mut self, sweep: &mut Execution<'_, V>, top: usize) {
        self.plan = Plan::new(sweep, top, self.measure);
        self.withheld = false;
        for index in 0..self.states.len() {
            let state = &mut self.states[index];
            let position = self.plan.heads.partition_point(|&head| head < state.boundary);
            state.position = position;
            let plan = &self.plan;
            let useful = |head: u32| {
                plan.position(head as usize).is_some_and(|item| plan.last_use[item] as usize >= position)
            };
            let (kept, useless) =
                std::mem::take(&mut state.heads).into_iter().partition(|&head| useful(head));
            state.heads = kept;
            self.let_go(sweep, useless);
        }
    }

    /// Runs forward from the top state.
    fn advance<V: Differentiable>(
        &mut self,
        sweep: &mut Execution<'_, V>,
        from: usize,
        goal: Goal,
    ) -> Result<()> {
        let (run, mut reached) = match goal {
            Goal::Hold(position) => (self.mark_for_state(sweep, from, position), self.carried_over(position)),
            Goal::Feed(target) => (self.mark_for_one(sweep, from, target), Vec::new()),
        };
        for &position in &run {
            let op = sweep.graph.op(self.plan.heads[position] as usize);
            sweep.run_forward(&op, self.plan.role(position))?;
            self.holders[op.index] += 1;
            if self.until[position] == FOR_GOOD {
                reached.push(op.index as u32);
            }
            let spent = |&needed: &usize| needed >= from && self.until[needed] == position as u32;
            let spent: Vec<u32> =
                self.plan.needs(position, &op).filter(spent).map(|needed| self.plan.heads[needed]).collect();
            for head in spent {
                // An input may stand twice among the needs; it goes once.
                if self.holders[head as usize] > 0 {
                    self.let_go(sweep, vec![head]);
                }
            }
        }
        run.iter().for_each(|&position| self.until[position] = NOT_NEEDED);
        match goal {
            Goal::Hold(position) => {
                let boundary = self.plan.heads[position];
                self.states.push(State { position, boundary, heads: reached });
            }
            Goal::Feed(_) => self.fed = reached,
        }
        Ok(())
    }

    /// What has to run, in order, between the top state and the state before `to`. Marks until when the output
    /// of each is needed.
    fn mark_for_state<V: Differentiable>(
        &mut self,
        sweep: &Execution<'_, V>,
        from: usize,
        to: usize,
    ) -> Vec<usize> {
        let Schedule { plan, until, .. } = self;
        let mut run = Vec::new();
        for position in (from..to).rev() {
            if plan.last_use[position] as usize >= to {
                until[position] = FOR_GOOD;
            }
            if until[position] == NOT_NEEDED {
                continue;
            }
            run.push(position);
            let op = sweep.graph.op(plan.heads[position] as usize);
            for needed in plan.needs(position, &op).filter(|&needed| needed >= from) {
                until[needed] = until[needed].max(position as u32);
            }
        }
        run.reverse();
        run
    }

    /// The same for what the operation at `target` needs: its ancestors, not all that lies between.
    fn mark_for_one<V: Differentiable>(
        &mut self,
        sweep: &Execution<'_, V>,
        from: usize,
        target: usize,
    ) -> Vec<usize> {
        let Schedule { plan, until, .. } = self;
        let mut run = Vec::new();
        let mut visited = 0;
        let (mut user, mut last_use) = (target, FOR_GOOD);
        loop {
            let op = sweep.graph.op(plan.heads[user] as usize);
            for needed in plan.needs(user, &op).filter(|&needed| needed >= from) {
                if until[needed] == NOT_NEEDED {
                    run.push(needed);
                }
                until[needed] = until[needed].max(last_use);
            }
            let Some(&next) = run.get(visited) else { break };
            visited += 1;
            (user, last_use) = (next, next as u32);
        }
        run.sort_unstable();
        run
    }

    /// What the top state holds and the state before `position` holds as well.
    fn carried_over(&mut self, position: usize) -> Vec<u32> {
        let Schedule { states, plan, holders, .. } = self;
        let crosses = |&head: &u32| {
            plan.position(head as usize).is_some_and(|item| plan.last_use[item] as usize >= position)
        };
        let heads = states.last().map_or(&[][..], |state| &state.heads);
        let carried: Vec<u32> = heads.iter().copied().filter(crosses).collect();
        carried.iter().for_each(|&head| holders[head as usize] += 1);
        carried
    }

    fn let_go<V: Differentiable>(&mut self, sweep: &mut Execution<'_, V>, heads: Vec<u32>) {
        for head in heads {
            let holders = &mut self.holders[head as usize];
            *holders -= 1;
            if *holders == 0 {
                sweep.release(&sweep.graph.op(head as usize));
            }
        }
    }

    /// The sweep is past the operation: states that stand before it or later have done their work.
    pub(crate) fn retire<V: Differentiable>(&mut self, sweep: &mut Execution<'_, V>, op: &NodeRef<'_, V>) {
        let fed = std::mem::take(&mut self.fed);
        self.let_go(sweep, fed);
        let Some(position) = self.plan.position(op.index) else { return };
        while let Some(done) = self.states.pop_if(|state| state.position >= position && state.position > 0) {
            self.let_go(sweep, done.heads);
        }
    }
}

impl<'g, V: Differentiable> Execution<'g, V> {
    /// Brings about, under the limit, whatever an operation needs to be reversed.
    pub(crate) fn provide(&mut self, op: NodeRef<'g, V>) -> Result<()> {
        let Some(mut schedule) = self.schedule.take() else { return Ok(()) };
        let outcome = schedule.provide(self, &op);
        self.schedule = Some(schedule);
        outcome
    }

    /// Computes the outputs of an operation, tangents included where the plan asks for them, and holds them.
    fn run_forward(&mut self, op: &NodeRef<'_, V>, role: Role) -> Result<()> {
        let op = &self.graph.op(op.index);
        let load = self.load(op);
        self.occupy(load);
        if !role.replays {
            return op.retained_rule().map_or(Ok(()), |rule| self.pushforward(op, rule));
        }
        if role.gives_tangent {
            let replayed = self.replay(op, Phase::Tangent)?;
            self.hold_values(op, &replayed.outputs);
            self.pushforward(op, &*replayed.rule)
        } else {
            let outputs = self.advance(op)?;
            self.hold_values(op, &outputs);
            Ok(())
        }
    }

    fn release(&mut self, op: &NodeRef<'_, V>) {
        let load = self.load(&self.graph.op(op.index));
        self.vacate(load);
        if let Some(values) = self.values.get_mut(op.outputs()) {
            values.fill_with(|| None);
        }
        if let Some(second) = &mut self.second {
            second.tangents[op.outputs()].fill_with(|| None);
        }
    }
}
