//! Rules: how the cotangents of an operation's outputs become cotangents of its inputs.

use crate::arena::Edge;
use crate::{Differentiable, Error, HigherOrder, RuleError, RuleResult, TrackedPoint, Var};

/// What a rule can do for a Hessian-vector product.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SecondOrder {
    /// Nothing: a product through this rule is an error.
    Unsupported,
    /// The operation is linear: its pullback does not depend on where it was taken, so only `pushforward` is
    /// asked for, and tangents of the inputs only if something after it needs them.
    Linear,
    /// Both `pushforward` and `pullback_tangent` are there.
    Smooth,
}

/// The derivative of one operation at the point where it was recorded or replayed.
///
/// A rule owns what it needs to know of that point; it shares values with the tape through `Arc`s, so no value
/// is ever cloned. It must not own a handle of the tape it is recorded on (that is a cycle, freed only by
/// [`Tape::free`](crate::Tape::free)). A closure can be a rule: see [`rule_fn`].
pub trait ReverseRule<V: Differentiable>: Send + Sync {
    /// Adds to the cotangent of each input its share of the outputs' cotangents.
    fn pullback(&self, outputs: &Cotangents<'_, V>, inputs: &mut InputCotangents<'_, V>) -> RuleResult;

    /// What the rule can do beyond the first order.
    fn second_order(&self) -> SecondOrder {
        SecondOrder::Unsupported
    }

    /// Sets the tangent of each output that follows from the tangents of the inputs.
    fn pushforward(&self, inputs: &Tangents<'_, V>, outputs: &mut OutputTangents<'_, V>) -> RuleResult {
        let _ = (inputs, outputs);
        Err("this rule has no pushforward".into())
    }

    /// Adds to each input the change of what `pullback` gives when the inputs move along `tangents` and the
    /// cotangents of the outputs along `changes`. Absent entries are zero.
    fn pullback_tangent(
        &self,
        outputs: &Cotangents<'_, V>,
        changes: &Cotangents<'_, V>,
        tangents: &Tangents<'_, V>,
        inputs: &mut InputCotangents<'_, V>,
    ) -> RuleResult {
        let _ = (outputs, changes, tangents, inputs);
        Err("this rule has no second order".into())
    }

    /// The pullback in operations of the tape, so that it has derivatives in turn ([`Tape::grad`](crate::Tape::grad)):
    /// one cotangent per input, in terms of the inputs and outputs in `at` and the outputs' `cotangents`. `None` is
    /// zero, or [not wanted](TrackedPoint::wants).
    fn pullback_on_tape(
        &self,
        at: TrackedPoint<'_, V>,
        cotangents: &[Option<Var<V>>],
    ) -> RuleResult<Vec<Option<Var<V>>>>
    where
        V: HigherOrder,
    {
        let _ = (at, cotangents);
        Err(NoHigherOrder.into())
    }
}

/// A rule does not say how its pullback is recorded; the sweep turns it into an error that names the node.
#[derive(Debug, thiserror::Error)]
#[error("the rule has no `pullback_on_tape`")]
pub(crate) struct NoHigherOrder;

impl<V: Differentiable> ReverseRule<V> for Box<dyn ReverseRule<V>> {
    fn pullback(&self, outputs: &Cotangents<'_, V>, inputs: &mut InputCotangents<'_, V>) -> RuleResult {
        (**self).pullback(outputs, inputs)
    }

    fn second_order(&self) -> SecondOrder {
        (**self).second_order()
    }

    fn pushforward(&self, inputs: &Tangents<'_, V>, outputs: &mut OutputTangents<'_, V>) -> RuleResult {
        (**self).pushforward(inputs, outputs)
    }

    fn pullback_tangent(
        &self,
        outputs: &Cotangents<'_, V>,
        changes: &Cotangents<'_, V>,
        tangents: &Tangents<'_, V>,
        inputs: &mut InputCotangents<'_, V>,
    ) -> RuleResult {
        (**self).pullback_tangent(outputs, changes, tangents, inputs)
    }

    fn pullback_on_tape(
        &self,
        at: TrackedPoint<'_, V>,
        cotangents: &[Option<Var<V>>],
    ) -> RuleResult<Vec<Option<Var<V>>>>
    where
        V: HigherOrder,
    {
        (**self).pullback_on_tape(at, cotangents)
    }
}

/// The cotangents of an operation's outputs. Outputs that nothing depends on have none.
pub struct Cotangents<'a, V: Differentiable> {
    pub(crate) slots: &'a [Option<V::Tangent>],
}

impl<'a, V: Differentiable> Cotangents<'a, V> {
    /// The cotangent of output `index`, if it has one.
    pub fn get(&self, index: usize) -> Option<&'a V::Tangent> {
        self.slots.get(index)?.as_ref()
    }

    /// The cotangent of the only output.
    pub fn only(&self) -> RuleResult<&'a V::Tangent> {
        match self.slots {
            [Some(cotangent)] => Ok(cotangent),
            _ => Err(RuleError::from(arity("outputs of the operation", 1, self.slots.len()))),
        }
    }

    /// The number of outputs.
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// Whether there is no output at all.
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    pub(crate) fn any(&self) -> bool {
        self.slots.iter().any(Option::is_some)
    }
}

/// The tangents of an operation's inputs. An absent one is zero.
pub struct Tangents<'a, V: Differentiable> {
    source: TangentSource<'a, V>,
}

enum TangentSource<'a, V: Differentiable> {
    /// Those of nodes of a tape.
    Nodes { edges: &'a [Edge], table: &'a [Option<V::Tangent>] },
    /// Those of the inputs, in order.
    Inputs(&'a [Option<&'a V::Tangent>]),
}

impl<'a, V: Differentiable> Tangents<'a, V> {
    pub(crate) fn of_nodes(edges: &'a [Edge], table: &'a [Option<V::Tangent>]) -> Self {
        Tangents { source: TangentSource::Nodes { edges, table } }
    }

    pub(crate) fn of_inputs(tangents: &'a [Option<&'a V::Tangent>]) -> Self {
        Tangents { source: TangentSource::Inputs(tangents) }
    }

    /// The tangent of input `index`; `None` is zero.
    pub fn get(&self, index: usize) -> Option<&'a V::Tangent> {
        match self.source {
            TangentSource::Nodes { edges, table } => {
                let edge = edges.get(index)?;
                if edge.wanted() { table.get(edge.node())?.as_ref() } else { None }
            }
            TangentSource::Inputs(tangents) => tangents.get(index).copied().flatten(),
        }
    }

    /// The number of inputs.
    pub fn len(&self) -> usize {
        match self.source {
            TangentSource::Nodes { edges, .. } => edges.len(),
            TangentSource::Inputs(tangents) => tangents.len(),
        }
    }

    /// Whether there is no input at all.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub(crate) fn any(&self) -> bool {
        (0..self.len()).any(|index| self.get(index).is_some())
    }
}

/// Where a rule puts the tangents of an operation's outputs.
pub struct OutputTangents<'a, V: Differentiable> {
    pub(crate) slots: &'a mut [Option<V::Tangent>],
}

impl<V: Differentiable> OutputTangents<'_, V> {
    /// Sets the tangent of output `index`.
    pub fn set(&mut self, index: usize, tangent: V::Tangent) -> RuleResult {
        let count = self.slots.len();
        let slot =
            self.slots.get_mut(index).ok_or_else(|| arity("outputs of the operation", count, index + 1))?;
        *slot = Some(tangent);
        Ok(())
    }
}

/// Where a rule puts the cotangents of an operation's inputs.
pub struct InputCotangents<'a, V: Differentiable> {
    pub(crate) edges: &'a [Edge],
    pub(crate) table: &'a mut [Option<V::Tangent>],
}

impl<V: Differentiable> InputCotangents<'_, V> {
    /// Whether the cotangent of input `index` is needed; one that is not need not be computed.
    pub fn wants(&self, index: usize) -> bool {
        self.edges.get(index).is_some_and(|edge| edge.wanted())
    }

    /// Adds `cotangent` to that of input `index`; it is dropped if it is not needed.
    #[inline]
    pub fn add(&mut self, index: usize, cotangent: V::Tangent) -> RuleResult {
        let Some(edge) = self.edges.get(index) else {
            return Err(arity("inputs of the operation", self.edges.len(), index + 1).into());
        };
        if edge.wanted()
            && let Some(slot) = self.table.get_mut(edge.node())
        {
            match slot {
                Some(sum) => V::accumulate(sum, cotangent),
                None => *slot = Some(cotangent),
            }
        }
        Ok(())
    }

    /// The number of inputs.
    pub fn len(&self) -> usize {
        self.edges.len()
    }

    /// Whether there is no input at all.
    pub fn is_empty(&self) -> bool {
        self.edges.is_empty()
    }

    /// Adds one cotangent per input; any other count is an arity error.
    pub fn add_all(&mut self, cotangents: impl IntoIterator<Item = V::Tangent>) -> RuleResult {
        let mut found = 0;
        let expected = self.edges.len();
        for cotangent in cotangents {
            if found < expected {
                self.add(found, cotangent)?;
            }
            found += 1;
        }
        if found == expected {
            Ok(())
        } else {
            Err(arity("cotangents from the rule", expected, found).into())
        }
    }
}

pub(crate) fn arity(what: &'static str, expected: usize, found: usize) -> Error {
    Error::Arity { what, expected, found }
}

/// A rule for an operation with one output from a closure that gives one cotangent per input.
///
/// ```
/// use ebbtide_tape::{Tape, rule_fn};
/// let tape = Tape::<f64>::new();
/// let (x, y) = (tape.leaf(3.0), tape.leaf(5.0));
/// let product = tape.record_op(15.0, &[&x, &y], rule_fn(|c: &f64| [c * 5.0, c * 3.0]))?;
/// assert_eq!(tape.pullback(&product)?.get(&y), Some(&3.0));
/// # Ok::<(), ebbtide_tape::Error>(())
/// ```
pub fn rule_fn<V, F, I>(pullback: F) -> impl ReverseRule<V> + 'static
where
    V: Differentiable,
    F: Fn(&V::Tangent) -> I + Send + Sync + 'static,
    I: IntoIterator<Item = V::Tangent>,
{
    Closure(pullback)
}

struct Closure<F>(F);

impl<V, F, I> ReverseRule<V> for Closure<F>
where
    V: Differentiable,
    F: Fn(&V::Tangent) -> I + Send + Sync,
    I: IntoIterator<Item = V::Tangent>,
{
    fn pullback(&self, outputs: &Cotangents<'_, V>, inputs: &mut InputCotangents<'_, V>) -> RuleResult {
        inputs.add_all((self.0)(outputs.only()?))
    }
}
