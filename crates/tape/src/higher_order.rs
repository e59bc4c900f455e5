//! Gradients that are themselves on the tape, and so have gradients, to any order.
//!
//! Input: a value, and the values it is differentiated with respect to. Output: tracked cotangents of these. Each rule
//! on the way writes its pullback in operations of the tape (`pullback_on_tape`); what is checkpointed is replayed once.

use crate::execution::{Execution, blame};
use crate::graph::{Graph, NodeRef};
use crate::rule::NoHigherOrder;
use crate::{Differentiable, Error, Limit, NodeId, Result, ReverseRule, Tape, Var};

/// A value whose gradients can be on its tape: cotangents are values, and two of them have a tracked sum.
pub trait HigherOrder: Differentiable<Tangent = Self> {
    /// The sum of two values on a tape. If it cannot be recorded, a value whose use returns that error.
    fn tracked_sum(x: &Var<Self>, y: &Var<Self>) -> Var<Self>;
}

/// Where an operation was computed, as values on the tape.
pub struct TrackedPoint<'a, V: Differentiable> {
    /// The inputs.
    pub inputs: &'a [Var<V>],
    /// The outputs.
    pub outputs: &'a [Var<V>],
    wanted: &'a [bool],
}

impl<V: Differentiable> Clone for TrackedPoint<'_, V> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<V: Differentiable> Copy for TrackedPoint<'_, V> {}

impl<V: Differentiable> TrackedPoint<'_, V> {
    /// Whether the cotangent of input `index` is needed; one that is not need not be computed.
    pub fn wants(&self, index: usize) -> bool {
        self.wanted.get(index).copied().unwrap_or(false)
    }
}

impl<V: HigherOrder> Tape<V> {
    /// The gradient of `loss`, a value with one element, as values on this tape, which have gradients in turn.
    ///
    /// `wrt` may be leaves or intermediate values. A value that the loss does not depend on has a gradient of zero, a
    /// constant of the tape. The operations of a gradient are recorded like any others: the
    /// [mode](crate::with_mode) in force retains or checkpoints them.
    ///
    /// ```
    /// let tape = ebbtide_tape::Tape::<f64>::new();
    /// let x = tape.leaf(2.0);
    /// let mut y = x.powi(5);
    /// for expected in [80.0, 160.0, 240.0, 240.0, 120.0, 0.0] {
    ///     y = tape.grad(&y, &[&x])?.remove(0);
    ///     assert_eq!(*y.value(), expected);
    /// }
    /// # Ok::<(), ebbtide_tape::Error>(())
    /// ```
    pub fn grad(&self, loss: &Var<V>, wrt: &[&Var<V>]) -> Result<Vec<Var<V>>> {
        let seed = crate::sweep::unit_seed(loss)?;
        self.grad_seeded(loss, &self.constant(seed), wrt)
    }

    /// The same with `seed`, which may be on the tape too, as the cotangent of `output`, of any shape.
    pub fn grad_seeded(&self, output: &Var<V>, seed: &Var<V>, wrt: &[&Var<V>]) -> Result<Vec<Var<V>>> {
        if !output.value().admits(seed.value()) {
            return Err(Error::TangentMisfit);
        }
        let mut vars = wrt.to_vec();
        vars.push(output);
        let (graph, base, mut nodes) = self.snapshot(&vars)?;
        let Some(top) = nodes.pop() else { return Err(Error::MissingNode) };
        let mut sweep = RecordedSweep::new(self, &graph, base, top, &nodes)?;
        sweep.cotangents[top] = Some(seed.clone());
        sweep.run()?;
        let found = |(&node, var): (&usize, &&Var<V>)| match sweep.found.get(node).and_then(Option::as_ref) {
            Some(cotangent) => cotangent.clone(),
            None => self.constant(var.value().zero_tangent()),
        };
        Ok(nodes.iter().zip(wrt).map(found).collect())
    }
}

struct RecordedSweep<'g, V: Differentiable> {
    tape: &'g Tape<V>,
    graph: &'g Graph<V>,
    base: NodeId,
    top: usize,
    /// Whether the value of a node depends on one of those that the gradient is taken with respect to.
    depends: Vec<bool>,
    asked: Vec<bool>,
    cotangents: Vec<Option<Var<V>>>,
    /// The complete cotangents of the nodes that were asked for.
    found: Vec<Option<Var<V>>>,
    /// Replays what the tape does not keep.
    replays: Execution<'g, V>,
}

impl<'g, V: HigherOrder> RecordedSweep<'g, V> {
    fn new(tape: &'g Tape<V>, graph: &'g Graph<V>, base: NodeId, top: usize, wrt: &[usize]) -> Result<Self> {
        let replays = Execution::new(graph, base, &[top], Limit::None, None)?;
        let length = graph.op(top).outputs().end;
        let mut asked = vec![false; length];
        wrt.iter().filter(|&&node| node < length).for_each(|&node| asked[node] = true);
        let mut depends = asked.clone();
        for op in graph.ops_up_to(top) {
            if op.edges.iter().any(|edge| edge.wanted() && depends[edge.node()]) {
                depends[op.outputs()].fill(true);
            }
        }
        let none = || std::iter::repeat_with(|| None).take(length).collect();
        Ok(RecordedSweep {
            tape,
            graph,
            base,
            top,
            depends,
            asked,
            cotangents: none(),
            found: none(),
            replays,
        })
    }

    fn run(&mut self) -> Result<()> {
        for op in self.graph.ops_down_from(self.top) {
            for node in op.outputs() {
                if self.asked[node] {
                    self.found[node] = self.cotangents[node].clone();
                }
            }
            let needed = op.edges.iter().any(|edge| edge.wanted() && self.depends[edge.node()]);
            if needed && self.cotangents[op.outputs()].iter().any(Option::is_some) {
                self.pull(op)?;
            }
            self.replays.memo_retire(&op);
            self.cotangents[op.outputs()].fill_with(|| None);
        }
        Ok(())
    }

    fn pull(&mut self, op: NodeRef<'g, V>) -> Result<()> {
        let node = NodeId { index: op.index as u32, ..self.base };
        // The handle of an unwanted input keeps it so: for this operation it is a constant, in its derivatives too.
        let inputs = op.edges.iter().map(|edge| {
            let value = self.replays.value(edge.node())?;
            Ok(self.tape.at(value, self.base, *edge))
        });
        let inputs: Vec<Var<V>> = inputs.collect::<Result<_>>()?;
        let outputs = op.outputs().map(|output| {
            let value = self.replays.value(output)?;
            Ok(self.tape.at(value, self.base, self.graph.edge_to(output)))
        });
        let outputs: Vec<Var<V>> = outputs.collect::<Result<_>>()?;
        let replayed;
        let rule: &dyn ReverseRule<V> = match op.retained_rule() {
            Some(rule) => rule,
            None if op.is_checkpointed() => {
                replayed = self.replays.memo_rule(op)?;
                &*replayed
            }
            None => return Err(Error::Unattached { node }),
        };
        let wanted: Vec<bool> =
            op.edges.iter().map(|edge| edge.wanted() && self.depends[edge.node()]).collect();
        let at = TrackedPoint { inputs: &inputs, outputs: &outputs, wanted: &wanted };
        let pulled = rule.pullback_on_tape(at, &self.cotangents[op.outputs()]);
        let pulled = pulled.map_err(|error| match error.is::<NoHigherOrder>() {
            true => Error::HigherOrderNotSupported { node },
            false => blame(self.base, op.index, error),
        })?;
        if pulled.len() != op.edges.len() {
            return Err(crate::rule::arity("cotangents from the rule", op.edges.len(), pulled.len()));
        }
        for ((edge, cotangent), wanted) in op.edges.iter().zip(pulled).zip(wanted) {
            let (Some(cotangent), true) = (cotangent, wanted) else { continue };
            // A cotangent that could not be recorded stops here, with its reason.
            if let Err(error) = cotangent.try_tape()
                && !matches!(error, Error::MissingNode)
            {
                return Err(error);
            }
            let slot = &mut self.cotangents[edge.node()];
            *slot = Some(match slot.take() {
                Some(sum) => V::tracked_sum(&sum, &cotangent),
                None => cotangent,
            });
        }
        Ok(())
    }
}

impl<V: HigherOrder> Var<V> {
    /// The gradient of this value, which has one element, as values on its tape; see [`Tape::grad`].
    pub fn grad(&self, wrt: &[&Var<V>]) -> Result<Vec<Var<V>>> {
        self.try_tape()?.grad(self, wrt)
    }
}
