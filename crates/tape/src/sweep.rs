//! The options of a sweep, and its start.

use crate::execution::{Execution, Second};
use crate::{Differentiable, Error, Gradients, Hvp, PullbackPlan, Result, Tape, Var};

/// How much a sweep may hold beyond what the tape retains.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Limit {
    /// Whatever saves a replay: each operation is replayed at most once.
    #[default]
    None,
    /// A number of values, the retained one that a chain starts from counted among them.
    Slots(u64),
    /// A number of bytes of replayed values.
    Bytes(u64),
}

/// A sweep about to happen: `tape.sweep().slots(10).pullback(&loss)`.
///
/// # What a limit guarantees
///
/// Let W be the most values that are alive at one time when the checkpointed operations that the sweep needs
/// are run forward once, in the order of recording, each value dropped after its last use by such an
/// operation (W = 2 for a chain: an input and an output).
///
/// * With [`slots(s)`](Sweep::slots) the sweep holds at most s − 1 + W replayed values at any time; for a
///   chain s + 1, and with the retained value at its start s + 2.
/// * A chain of n checkpointed operations is replayed exactly n + t(n, s) times, where t is the least number
///   of advances that s states allow (Griewank and Walther 2000). The operations of a chain may read any
///   number of retained values, and any number of retained operations may read theirs.
/// * In any other graph the same schedule runs over the order of recording: the state between two operations
///   is the set of values that cross it, and the number of slots is what is left of the limit divided by the
///   largest such set in the stretch to be reversed. An advance replays only what the state it leads to is
///   computed from. Results are equal bit for bit to those without a limit.
/// * With [`bytes(b)`](Sweep::bytes) the same holds with the bytes of the values in place of their number, and
///   the whole, working set included, stays within b; a limit that is too small for a single forward run is
///   [`Error::BudgetTooSmall`], which states the least that works.
/// * In a Hessian-vector product a slot holds a value with its tangent (in bytes: a tangent counts as much as
///   its value), and tangents of retained operations follow the same schedule.
///
/// What a rule owns is its own affair: at most one replayed rule is alive at a time under a limit.
#[must_use = "a sweep happens in `pullback`, `pullback_seeded`, `pullback_seeds` or `hvp`"]
pub struct Sweep<'t, V: Differentiable> {
    tape: &'t Tape<V>,
    limit: Limit,
}

impl<'t, V: Differentiable> Sweep<'t, V> {
    pub(crate) fn new(tape: &'t Tape<V>) -> Self {
        Sweep { tape, limit: Limit::None }
    }

    /// Holds at most this much.
    pub fn limit(mut self, limit: Limit) -> Self {
        self.limit = limit;
        self
    }

    /// Holds at most `slots` values, the retained one that a chain starts from counted among them.
    pub fn slots(self, slots: u64) -> Self {
        self.limit(Limit::Slots(slots))
    }

    /// Holds at most `bytes` bytes of replayed values.
    pub fn bytes(self, bytes: u64) -> Self {
        self.limit(Limit::Bytes(bytes))
    }

    /// The gradient of `loss`, a value with one element, with respect to all leaves.
    pub fn pullback(self, loss: &Var<V>) -> Result<Gradients<V>> {
        let seed = unit_seed(loss)?;
        self.pullback_seeded(loss, seed)
    }

    /// The gradient with `seed` as the cotangent of `output`, of any shape.
    pub fn pullback_seeded(self, output: &Var<V>, seed: V::Tangent) -> Result<Gradients<V>> {
        self.pullback_seeds([(output, seed)])
    }

    /// The gradient with a cotangent for each of several outputs; those of one output add up.
    pub fn pullback_seeds<'a>(
        self,
        seeds: impl IntoIterator<Item = (&'a Var<V>, V::Tangent)>,
    ) -> Result<Gradients<V>> {
        let (vars, cotangents): (Vec<&Var<V>>, Vec<_>) = seeds.into_iter().unzip();
        let (graph, base, nodes) = self.tape.snapshot(&vars)?;
        check_tangents(&vars, &cotangents)?;
        let mut execution = Execution::new(&graph, base, &nodes, self.limit, None)?;
        nodes.into_iter().zip(cotangents).for_each(|(node, cotangent)| execution.seed(node, cotangent));
        execution.run()?;
        Ok(execution.into_gradients())
    }

    /// Plans the pullback from `output`, to be executed many times under this limit.
    pub fn plan(self, output: &Var<V>) -> Result<PullbackPlan<V>> {
        PullbackPlan::new(self.tape, output, self.limit)
    }

    /// The gradient of `loss` and its change along `directions` (tangents of leaves; the others are zero).
    pub fn hvp<'a>(
        self,
        loss: &Var<V>,
        directions: impl IntoIterator<Item = (&'a Var<V>, V::Tangent)>,
    ) -> Result<Hvp<V>> {
        let seed = unit_seed(loss)?;
        let (mut vars, tangents): (Vec<&Var<V>>, Vec<_>) = directions.into_iter().unzip();
        vars.push(loss);
        let (graph, base, mut nodes) = self.tape.snapshot(&vars)?;
        check_tangents(&vars, &tangents)?;
        let Some(top) = nodes.pop() else { return Err(Error::MissingNode) };
        let second = Second::new(nodes.into_iter().zip(tangents).collect());
        let mut execution = Execution::new(&graph, base, &[top], self.limit, Some(second))?;
        execution.seed(top, seed);
        execution.run()?;
        Ok(execution.into_hvp())
    }
}

/// Is each of them a tangent of its value?
fn check_tangents<V: Differentiable>(vars: &[&Var<V>], tangents: &[V::Tangent]) -> Result<()> {
    match vars.iter().zip(tangents).find(|(var, tangent)| !var.value().admits(tangent)) {
        Some((var, _)) => Err(Error::NotATangent { node: var.node().ok_or(Error::MissingNode)? }),
        None => Ok(()),
    }
}

pub(crate) fn unit_seed<V: Differentiable>(loss: &Var<V>) -> Result<V::Tangent> {
    loss.try_tape()?;
    match loss.value().element_count() {
        1 => Ok(loss.value().unit_cotangent()),
        elements => Err(Error::NonScalarLoss { elements }),
    }
}
