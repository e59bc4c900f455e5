//! One sweep: operations visited last to first, each with a cotangent runs its rule backwards. How the inputs
//! of a replay come to be there is the business of [`memo`](crate::memo) (no limit) and
//! [`schedule`](crate::schedule) (under a limit).

use crate::arena::Body;
use crate::gradients::{Collected, Counts, Gradients, Hvp};
use crate::graph::{Graph, NodeRef};
use crate::memo::Memo;
use crate::recipe::{Mismatch, Outputs, ReplayResult};
use crate::rule::{Cotangents, InputCotangents, OutputTangents, Tangents, arity};
use crate::schedule::Schedule;
use crate::{Differentiable, Error, Limit, NodeId, Result, ReverseRule, RuleError, SecondOrder};

pub(crate) struct Execution<'g, V: Differentiable> {
    pub(crate) graph: &'g Graph<V>,
    base: NodeId,
    /// The last node that the sweep may touch.
    top: usize,
    /// The cotangent of each node.
    pub(crate) cotangents: Vec<Option<V::Tangent>>,
    pub(crate) second: Option<Second<V>>,
    /// The values that the sweep holds beyond those that the tape retains. Empty until the first replay.
    pub(crate) values: Vec<Option<V::Shared>>,
    pub(crate) memo: Memo<V>,
    pub(crate) schedule: Option<Box<Schedule>>,
    pub(crate) counts: Counts,
    pub(crate) live: Load,
    leaves: Vec<Collected<V>>,
    /// The inputs of the replay in progress.
    inputs: Vec<V::Shared>,
}

/// What a Hessian-vector product adds to a gradient.
pub(crate) struct Second<V: Differentiable> {
    directions: Vec<(usize, V::Tangent)>,
    /// The tangent of each node, where one is known and not zero.
    pub(crate) tangents: Vec<Option<V::Tangent>>,
    /// The change of each node's cotangent along the direction.
    pub(crate) changes: Vec<Option<V::Tangent>>,
    leaves: Vec<Collected<V>>,
}

/// What is held: values and their bytes.
#[derive(Clone, Copy, Default)]
pub(crate) struct Load {
    pub(crate) values: u64,
    pub(crate) bytes: u64,
}

/// Who asks for a replay.
#[derive(Clone, Copy)]
pub(crate) enum Phase {
    Reverse,
    Value,
    Tangent,
}

impl<V: Differentiable> Second<V> {
    pub(crate) fn new(directions: Vec<(usize, V::Tangent)>) -> Self {
        Second { directions, tangents: Vec::new(), changes: Vec::new(), leaves: Vec::new() }
    }
}

pub(crate) fn empty_table<T>(length: usize) -> Vec<Option<T>> {
    std::iter::repeat_with(|| None).take(length).collect()
}

impl<'g, V: Differentiable> Execution<'g, V> {
    /// A sweep that may be seeded at `nodes`.
    pub(crate) fn new(
        graph: &'g Graph<V>,
        base: NodeId,
        nodes: &[usize],
        limit: Limit,
        second: Option<Second<V>>,
    ) -> Result<Self> {
        let length = nodes.iter().map(|&node| graph.op(node).outputs().end).max().unwrap_or(0);
        let mut execution = Execution {
            graph,
            base,
            top: length.saturating_sub(1),
            cotangents: empty_table(length),
            second,
            values: Vec::new(),
            memo: Memo::default(),
            schedule: Schedule::under(limit)?,
            counts: Counts::default(),
            live: Load::default(),
            leaves: Vec::new(),
            inputs: Vec::new(),
        };
        execution.set_directions(length)?;
        Ok(execution)
    }

    fn set_directions(&mut self, length: usize) -> Result<()> {
        let Some(second) = &mut self.second else { return Ok(()) };
        second.tangents = empty_table(length);
        second.changes = empty_table(length);
        for (node, tangent) in std::mem::take(&mut second.directions) {
            if !matches!(self.graph.node(node).body, Body::Leaf) {
                return Err(Error::NotALeaf { node: NodeId { index: node as u32, ..self.base } });
            }
            // A leaf recorded after the loss has no part in it.
            if let Some(slot) = second.tangents.get_mut(node) {
                accumulate::<V>(slot, tangent);
            }
        }
        Ok(())
    }

    /// Adds to the cotangent of a node from which the sweep starts.
    pub(crate) fn seed(&mut self, node: usize, cotangent: V::Tangent) {
        accumulate::<V>(&mut self.cotangents[node], cotangent);
    }

    pub(crate) fn run(&mut self) -> Result<()> {
        if self.cotangents.is_empty() {
            return Ok(());
        }
        self.run_over(self.graph.ops_down_from(self.top))
    }

    /// Starts from an empty table of cotangents that ends with the outputs of the operation of `top`.
    pub(crate) fn start_with(&mut self, table: Vec<Option<V::Tangent>>, top: usize) {
        self.cotangents = table;
        self.top = top;
    }

    /// Visits operations last to first; those that are left out have no part in the sweep.
    pub(crate) fn run_over(&mut self, ops: impl Iterator<Item = NodeRef<'g, V>>) -> Result<()> {
        for op in ops {
            match &op.node.body {
                Body::Leaf => self.collect(op),
                Body::Constant | Body::Output { .. } => {}
                Body::Retained(_) if self.second.is_none() => {
                    if let Some(rule) = op.retained_rule()
                        && self.received(&op)
                    {
                        self.pull(&op, rule)?;
                    }
                }
                _ => {
                    if self.received(&op) {
                        self.reverse(op)?;
                    }
                    self.retire(&op);
                }
            }
        }
        Ok(())
    }

    /// Whether a cotangent, or the change of one, has reached the operation.
    pub(crate) fn received(&self, op: &NodeRef<'g, V>) -> bool {
        self.cotangents[op.outputs()].iter().any(Option::is_some)
            || self
                .second
                .as_ref()
                .is_some_and(|second| second.changes[op.outputs()].iter().any(Option::is_some))
    }

    fn collect(&mut self, leaf: NodeRef<'g, V>) {
        let index = leaf.index as u32;
        let gradient = self.cotangents[leaf.index].take();
        if let Some(second) = &mut self.second {
            let zero = || leaf.node.primal.as_ref().map(|value| value.zero_tangent());
            let change = second.changes[leaf.index].take();
            // Both results speak of the same leaves: what is absent in one of them is zero.
            let received = gradient.is_some() || change.is_some();
            second.leaves.push((index, if received { change.or_else(zero) } else { None }));
            self.leaves.push((index, if received { gradient.or_else(zero) } else { None }));
        } else {
            self.leaves.push((index, gradient));
        }
    }

    /// Runs the rule of an operation backwards, replaying it first if the tape does not keep the rule.
    fn reverse(&mut self, op: NodeRef<'g, V>) -> Result<()> {
        let replayed;
        let rule = match op.retained_rule() {
            Some(rule) => rule,
            None if op.is_checkpointed() => {
                replayed = self.replayed_rule(op)?;
                &*replayed
            }
            None => return Err(Error::Unattached { node: self.id(&op) }),
        };
        if self.second.is_some() {
            match rule.second_order() {
                SecondOrder::Unsupported => return Err(Error::HvpNotSupported { node: self.id(&op) }),
                SecondOrder::Linear => {}
                SecondOrder::Smooth => self.provide_tangents(op)?,
            }
        }
        self.pull(&op, rule)
    }

    fn replayed_rule(&mut self, op: NodeRef<'g, V>) -> Result<Box<dyn ReverseRule<V>>> {
        if self.schedule.is_none() {
            return self.memo_rule(op);
        }
        self.provide(op)?;
        let replayed = self.replay(&op, Phase::Reverse)?;
        // Its output is alive with the rule for the moment, though nobody holds it for later.
        let load = self.load(&op);
        self.occupy(load);
        self.vacate(load);
        Ok(replayed.rule)
    }

    fn provide_tangents(&mut self, op: NodeRef<'g, V>) -> Result<()> {
        if self.schedule.is_none() { self.memo_tangents(op) } else { self.provide(op) }
    }

    #[inline]
    fn pull(&mut self, op: &NodeRef<'g, V>, rule: &dyn ReverseRule<V>) -> Result<()> {
        self.counts.pullbacks += 1;
        let count = op.node.outputs as usize;
        let (below, above) = self.cotangents.split_at_mut(op.index);
        let outputs = Cotangents { slots: &above[..count] };
        if outputs.any() {
            let mut inputs = InputCotangents { edges: op.edges, table: below };
            rule.pullback(&outputs, &mut inputs).map_err(|error| blame(self.base, op.index, error))?;
        }
        if let Some(second) = &mut self.second {
            let (below, above) = second.changes.split_at_mut(op.index);
            let changes = Cotangents { slots: &above[..count] };
            let tangents = Tangents::of_nodes(op.edges, &second.tangents);
            let mut inputs = InputCotangents { edges: op.edges, table: below };
            let outcome = match rule.second_order() {
                SecondOrder::Linear if changes.any() => rule.pullback(&changes, &mut inputs),
                SecondOrder::Smooth if changes.any() || tangents.any() => {
                    rule.pullback_tangent(&outputs, &changes, &tangents, &mut inputs)
                }
                _ => Ok(()),
            };
            outcome.map_err(|error| blame(self.base, op.index, error))?;
            above[..count].fill_with(|| None);
        }
        self.cotangents[op.outputs()].fill_with(|| None);
        if let Some(schedule) = &mut self.schedule {
            schedule.note_withheld(op, &self.cotangents);
        }
        Ok(())
    }

    /// The sweep is past the operation: what it held of it can go.
    fn retire(&mut self, op: &NodeRef<'g, V>) {
        if let Some(mut schedule) = self.schedule.take() {
            schedule.retire(self, op);
            self.schedule = Some(schedule);
            return;
        }
        self.memo_retire(op);
        if let Some(second) = &mut self.second {
            second.tangents[op.outputs()].fill_with(|| None);
        }
    }

    /// Computes an operation again, rule included; its inputs are at hand.
    pub(crate) fn replay(&mut self, op: &NodeRef<'g, V>, phase: Phase) -> Result<ReplayResult<V>> {
        let recipe = op.recipe().ok_or_else(|| Error::NotRetained { node: self.id(op) })?;
        self.gather_inputs(op, phase)?;
        let replayed = recipe.replay(&self.inputs);
        self.inputs.clear();
        let replayed = replayed.map_err(|error| blame(self.base, op.index, error))?;
        check_outputs(op, &replayed.outputs)?;
        Ok(replayed)
    }

    /// Computes the value of an operation again; its inputs are at hand.
    pub(crate) fn advance(&mut self, op: &NodeRef<'g, V>) -> Result<Outputs<V>> {
        let recipe = op.recipe().ok_or_else(|| Error::NotRetained { node: self.id(op) })?;
        self.gather_inputs(op, Phase::Value)?;
        let outputs = recipe.advance(&self.inputs);
        self.inputs.clear();
        let outputs = outputs.map_err(|error| blame(self.base, op.index, error))?;
        check_outputs(op, &outputs)?;
        Ok(outputs)
    }

    fn gather_inputs(&mut self, op: &NodeRef<'g, V>, phase: Phase) -> Result<()> {
        match phase {
            Phase::Reverse => self.counts.replays.reverse += 1,
            Phase::Value => self.counts.replays.value += 1,
            Phase::Tangent => self.counts.replays.tangent += 1,
        }
        for edge in op.edges {
            let index = edge.node();
            let held = self.values.get(index).and_then(Option::as_ref);
            let value = held.or_else(|| self.graph.node(index).primal.as_ref());
            let missing = Error::NotRetained { node: NodeId { index: index as u32, ..self.base } };
            self.inputs.push(value.ok_or(missing)?.clone());
        }
        Ok(())
    }

    pub(crate) fn pushforward(&mut self, op: &NodeRef<'g, V>, rule: &dyn ReverseRule<V>) -> Result<()> {
        let Some(second) = &mut self.second else { return Ok(()) };
        let (below, above) = second.tangents.split_at_mut(op.index);
        let inputs = Tangents::of_nodes(op.edges, below);
        if !inputs.any() {
            return Ok(());
        }
        if rule.second_order() == SecondOrder::Unsupported {
            return Err(Error::HvpNotSupported { node: self.id(op) });
        }
        self.counts.pushforwards += 1;
        let mut outputs = OutputTangents { slots: &mut above[..op.node.outputs as usize] };
        rule.pushforward(&inputs, &mut outputs).map_err(|error| blame(self.base, op.index, error))
    }

    pub(crate) fn hold_values(&mut self, op: &NodeRef<'g, V>, outputs: &Outputs<V>) {
        if self.values.is_empty() {
            self.values = empty_table(self.cotangents.len());
        }
        for (slot, value) in self.values[op.outputs()].iter_mut().zip(outputs.as_slice()) {
            *slot = Some(value.clone());
        }
    }

    /// What it takes to hold the outputs of an operation.
    pub(crate) fn load(&self, op: &NodeRef<'g, V>) -> Load {
        let values = u64::from(op.node.outputs);
        let (of_value, of_tangent) = match &op.node.body {
            Body::Checkpointed { bytes, .. } => (*bytes, *bytes),
            _ => {
                let primal =
                    |index| self.graph.node(index).primal.as_ref().map_or(0, |value| value.byte_count());
                (0, op.outputs().map(primal).sum())
            }
        };
        let bytes = if self.second.is_some() { of_value.saturating_add(of_tangent) } else { of_value };
        Load { values, bytes }
    }

    pub(crate) fn occupy(&mut self, load: Load) {
        self.live.values += load.values;
        self.live.bytes += load.bytes;
        self.counts.peak_values = self.counts.peak_values.max(self.live.values);
        self.counts.peak_bytes = self.counts.peak_bytes.max(self.live.bytes);
    }

    pub(crate) fn vacate(&mut self, load: Load) {
        self.live.values -= load.values;
        self.live.bytes -= load.bytes;
    }

    fn id(&self, op: &NodeRef<'g, V>) -> NodeId {
        NodeId { index: op.index as u32, ..self.base }
    }

    /// The value of a node, replayed if the tape does not keep it; for sweeps without a limit.
    pub(crate) fn value(&mut self, node: usize) -> Result<V::Shared> {
        if let Some(primal) = &self.graph.node(node).primal {
            return Ok(primal.clone());
        }
        if self.values.get(node).is_none_or(Option::is_none) {
            self.memo_replay(self.graph.op(node), Phase::Value)?;
        }
        let missing = Error::NotRetained { node: NodeId { index: node as u32, ..self.base } };
        self.values.get(node).and_then(Option::as_ref).cloned().ok_or(missing)
    }

    /// The results of a sweep over some of the operations, when all of these leaves were recorded before the loss;
    /// and the table of cotangents, empty.
    pub(crate) fn into_gradients_of(mut self, all: &[u32]) -> (Gradients<V>, Vec<Option<V::Tangent>>) {
        self.leaves.reverse();
        let mut visited = self.leaves.into_iter().peekable();
        let cotangent_of = |&leaf: &u32| {
            let visited = visited.next_if(|(index, _)| *index == leaf);
            (leaf, visited.and_then(|(_, cotangent)| cotangent))
        };
        let leaves = all.iter().map(cotangent_of).collect();
        (Gradients::new(self.base, leaves, self.cotangents.len() as u32, self.counts), self.cotangents)
    }

    pub(crate) fn into_gradients(mut self) -> Gradients<V> {
        self.leaves.reverse();
        Gradients::new(self.base, self.leaves, self.cotangents.len() as u32, self.counts)
    }

    pub(crate) fn into_hvp(mut self) -> Hvp<V> {
        let mut products = self.second.take().map(|second| second.leaves).unwrap_or_default();
        products.reverse();
        let product = Gradients::new(self.base, products, self.cotangents.len() as u32, self.counts);
        Hvp { gradients: self.into_gradients(), product }
    }
}

fn accumulate<V: Differentiable>(slot: &mut Option<V::Tangent>, tangent: V::Tangent) {
    match slot {
        Some(sum) => V::accumulate(sum, tangent),
        None => *slot = Some(tangent),
    }
}

fn check_outputs<V: Differentiable>(op: &NodeRef<'_, V>, outputs: &Outputs<V>) -> Result<()> {
    let (expected, found) = (op.node.outputs as usize, outputs.as_slice().len());
    if expected == found { Ok(()) } else { Err(arity("outputs of the replay", expected, found)) }
}

/// The error of a rule or recipe, with the node it belongs to.
pub(crate) fn blame(base: NodeId, index: usize, error: RuleError) -> Error {
    let node = NodeId { index: index as u32, ..base };
    if error.is::<Mismatch>() {
        return Error::ReplayMismatch { node };
    }
    match error.downcast::<Error>() {
        Ok(own) => *own,
        Err(other) => Error::Rule { node, message: other.to_string().into() },
    }
}
