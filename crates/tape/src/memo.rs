//! Replay without a limit: whatever is asked for is computed once and held until the sweep is past it.
//! Demands are followed with explicit stacks; nothing here recurses.

use crate::arena::Body;
use crate::execution::{Execution, Phase};
use crate::graph::NodeRef;
use crate::{Differentiable, Result, ReverseRule};

pub(crate) struct Memo<V: Differentiable> {
    /// The rules of replayed operations, by head. Empty until the first replay.
    rules: Vec<Option<Box<dyn ReverseRule<V>>>>,
    /// Whether the tangent of an operation is settled, by head. Empty until the first demand.
    settled: Vec<bool>,
    demands: Vec<Demand>,
}

/// What is to be done for an operation: its inputs come first, then itself.
enum Demand {
    Inputs(usize),
    Itself(usize),
}

impl<V: Differentiable> Default for Memo<V> {
    fn default() -> Self {
        Memo { rules: Vec::new(), settled: Vec::new(), demands: Vec::new() }
    }
}

impl<'g, V: Differentiable> Execution<'g, V> {
    /// The rule of a checkpointed operation, taken out of the memo.
    pub(crate) fn memo_rule(&mut self, op: NodeRef<'g, V>) -> Result<Box<dyn ReverseRule<V>>> {
        self.memo_replay(op, Phase::Reverse)?;
        let rule = self.memo.rules[op.index].take();
        Ok(rule.expect("`memo_replay` has just put it there, and each operation is reversed once"))
    }

    /// Replays an operation, and before it whatever its inputs need.
    pub(crate) fn memo_replay(&mut self, op: NodeRef<'g, V>, phase: Phase) -> Result<()> {
        if self.memo.rules.is_empty() {
            self.memo.rules.resize_with(self.cotangents.len(), || None);
            self.values.resize_with(self.cotangents.len(), || None);
        }
        let mut demands = std::mem::take(&mut self.memo.demands);
        demands.push(Demand::Inputs(op.index));
        while let Some(demand) = demands.pop() {
            match demand {
                Demand::Inputs(index) if self.memo.rules[index].is_some() => {}
                Demand::Inputs(index) => {
                    demands.push(Demand::Itself(index));
                    for edge in self.graph.op(index).edges {
                        if self.values[edge.node()].is_none() {
                            let input = self.graph.op(edge.node());
                            if input.is_checkpointed() {
                                demands.push(Demand::Inputs(input.index));
                            }
                        }
                    }
                }
                // Another demand of the same operation may have come first.
                Demand::Itself(index) if self.memo.rules[index].is_some() => {}
                Demand::Itself(index) => {
                    let wanted = self.graph.op(index);
                    let phase = if index == op.index { phase } else { Phase::Value };
                    let replayed = self.replay(&wanted, phase)?;
                    self.hold_values(&wanted, &replayed.outputs);
                    self.memo.rules[index] = Some(replayed.rule);
                    let load = self.load(&wanted);
                    self.occupy(load);
                }
            }
        }
        self.memo.demands = demands;
        Ok(())
    }

    /// Computes the tangents of an operation's inputs, and before them whatever they need.
    pub(crate) fn memo_tangents(&mut self, op: NodeRef<'g, V>) -> Result<()> {
        if self.memo.settled.is_empty() {
            self.memo.settled.resize(self.cotangents.len(), false);
        }
        let mut demands = Vec::new();
        self.demand_tangents(&op, &mut demands);
        while let Some(&index) = demands.last() {
            let wanted = self.graph.op(index);
            let before = demands.len();
            if !self.memo.settled[index] {
                self.demand_tangents(&wanted, &mut demands);
            }
            if demands.len() == before {
                demands.pop();
                if !std::mem::replace(&mut self.memo.settled[index], true) {
                    self.settle_tangent(wanted)?;
                }
            }
        }
        Ok(())
    }

    /// Adds the inputs whose tangents are not settled yet. Leaves are settled from the start.
    fn demand_tangents(&self, op: &NodeRef<'g, V>, demands: &mut Vec<usize>) {
        for edge in op.edges.iter().filter(|edge| edge.wanted()) {
            let input = self.graph.op(edge.node());
            if !matches!(input.node.body, Body::Leaf) && !self.memo.settled[input.index] {
                demands.push(input.index);
            }
        }
    }

    /// Computes the tangent of an operation from those of its inputs; zero needs no rule and so no replay.
    fn settle_tangent(&mut self, op: NodeRef<'g, V>) -> Result<()> {
        let has_tangent = self.second.as_ref().is_some_and(|second| {
            op.edges.iter().any(|edge| edge.wanted() && second.tangents[edge.node()].is_some())
        });
        if !has_tangent {
            return Ok(());
        }
        if let Some(rule) = op.retained_rule() {
            return self.pushforward(&op, rule);
        }
        if !op.is_checkpointed() {
            // A placeholder without a rule: an error when, and if, its cotangent arrives.
            return Ok(());
        }
        self.memo_replay(op, Phase::Tangent)?;
        let rule = self.memo.rules[op.index].take();
        if let Some(rule) = rule {
            self.pushforward(&op, &*rule)?;
            self.memo.rules[op.index] = Some(rule);
        }
        Ok(())
    }

    pub(crate) fn memo_retire(&mut self, op: &NodeRef<'g, V>) {
        if self.values.get(op.index).is_some_and(Option::is_some) {
            let load = self.load(op);
            self.vacate(load);
            self.values[op.outputs()].fill_with(|| None);
            self.memo.rules[op.index] = None;
        }
    }
}
