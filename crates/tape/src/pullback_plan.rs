//! A pullback that is planned once and executed many times.

use std::sync::{Mutex, PoisonError};

use crate::arena::Body;
use crate::execution::{Execution, empty_table};
use crate::{Differentiable, Error, Gradients, Limit, NodeId, Result, Tape, Var, WeakTape};

/// Which operations a pullback from one value runs, found once: an execution visits these and no others, in memory
/// that it keeps for the next one.
///
/// A plan does not keep the tape alive, nor the graph: after [`Tape::free`] it is [`Error::GraphFreed`]. What is
/// recorded after the plan was built has no part in it.
///
/// ```
/// let tape = ebbtide_tape::Tape::<f64>::new();
/// let (x, y) = (tape.leaf(2.0), tape.leaf(3.0));
/// let product = &x * &y;
/// let _unrelated = (0..1000).fold(y.clone(), |z, _| z.sin());
/// let plan = tape.plan(&product)?;
/// assert_eq!(plan.operations(), 1);
/// for seed in [1.0, -2.0] {
///     assert_eq!(plan.execute_seeded(seed)?.wrt(&x)?, 3.0 * seed);
/// }
/// # Ok::<(), ebbtide_tape::Error>(())
/// ```
pub struct PullbackPlan<V: Differentiable> {
    tape: WeakTape<V>,
    loss: Loss<V>,
    limit: Limit,
    /// The heads of the operations that the sweep visits, leaves included, last one first.
    heads: Vec<u32>,
    operations: usize,
    /// All leaves recorded before the loss, in the order of recording.
    leaves: Vec<u32>,
    /// The emptied table of cotangents of an earlier execution.
    spare: Mutex<Vec<Option<V::Tangent>>>,
}

/// The value that is pulled back, without a hold of its tape.
struct Loss<V: Differentiable> {
    value: V::Shared,
    node: NodeId,
}

impl<V: Differentiable> std::fmt::Debug for PullbackPlan<V> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PullbackPlan")
            .field("loss", &self.loss.node)
            .field("operations", &self.operations())
            .finish()
    }
}

impl<V: Differentiable> Tape<V> {
    /// Plans the pullback from `output`, to be executed many times.
    pub fn plan(&self, output: &Var<V>) -> Result<PullbackPlan<V>> {
        self.sweep().plan(output)
    }
}

impl<V: Differentiable> PullbackPlan<V> {
    pub(crate) fn new(tape: &Tape<V>, output: &Var<V>, limit: Limit) -> Result<Self> {
        let (graph, base, nodes) = tape.snapshot(&[output])?;
        let Some(&top) = nodes.first() else { return Err(Error::MissingNode) };
        let length = graph.op(top).outputs().end;
        // Which nodes may receive a cotangent, and the values of which a replay may need.
        let (mut receives, mut valued) = (vec![false; length], vec![false; length]);
        receives[top] = true;
        let (mut heads, mut leaves, mut operations) = (Vec::new(), Vec::new(), 0);
        for op in graph.ops_down_from(top) {
            let received = receives[op.outputs()].contains(&true);
            let replayed = op.is_checkpointed() && (received || valued[op.outputs()].contains(&true));
            if matches!(op.node.body, Body::Leaf) {
                leaves.push(op.index as u32);
            } else if received {
                operations += 1;
            }
            if !received && !replayed {
                continue;
            }
            if received && matches!(op.node.body, Body::Placeholder(_)) && op.retained_rule().is_none() {
                return Err(Error::Unattached { node: NodeId { index: op.index as u32, ..base } });
            }
            heads.push(op.index as u32);
            for edge in op.edges {
                receives[edge.node()] |= received && edge.wanted();
                valued[edge.node()] |= replayed;
            }
        }
        leaves.reverse();
        let loss = Loss { value: output.share(), node: NodeId { index: top as u32, ..base } };
        let (tape, spare) = (tape.downgrade(), Mutex::default());
        Ok(PullbackPlan { tape, loss, limit, heads, operations, leaves, spare })
    }

    /// The node of the value that is pulled back.
    pub fn loss_node(&self) -> NodeId {
        self.loss.node
    }

    /// The number of operations that an execution may run backwards.
    pub fn operations(&self) -> usize {
        self.operations
    }

    /// The gradient of the loss, which has one element.
    pub fn execute(&self) -> Result<Gradients<V>> {
        match self.loss.value.element_count() {
            1 => self.execute_seeded(self.loss.value.unit_cotangent()),
            elements => Err(Error::NonScalarLoss { elements }),
        }
    }

    /// The gradient with `seed` as the cotangent of the value that the plan was built for.
    pub fn execute_seeded(&self, seed: V::Tangent) -> Result<Gradients<V>> {
        if !self.loss.value.admits(&seed) {
            return Err(Error::NotATangent { node: self.loss.node });
        }
        let tape = self.tape.upgrade().ok_or(Error::GraphFreed)?;
        let graph = tape.graph_of(self.loss.node)?;
        let top = self.loss.node.index as usize;
        let mut execution = Execution::new(&graph, self.loss.node, &[], self.limit, None)?;
        let mut table = std::mem::take(&mut *self.spare.lock().unwrap_or_else(PoisonError::into_inner));
        if table.is_empty() {
            table = empty_table(graph.op(top).outputs().end);
        }
        execution.start_with(table, top);
        execution.seed(top, seed);
        // A failed execution leaves cotangents in its table, which is not used again.
        execution.run_over(self.heads.iter().map(|&head| graph.op(head as usize)))?;
        let (gradients, table) = execution.into_gradients_of(&self.leaves);
        *self.spare.lock().unwrap_or_else(PoisonError::into_inner) = table;
        Ok(gradients)
    }

    /// Adds the gradient of the loss to earlier results of the same graph.
    pub fn execute_into(&self, sum: &mut Gradients<V>) -> Result<()> {
        sum.accumulate(self.execute()?)
    }
}
