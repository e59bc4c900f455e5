//! Operations that know how to compute themselves: the tape decides by the policy in force whether to retain
//! them or to keep a recipe.

use std::sync::Arc;

use crate::{
    CheckpointRecipe, Cotangents, Decision, Differentiable, Error, HigherOrder, Hint, InputCotangents,
    OutputTangents, ReplayResult, Result, ReverseRule, RuleResult, SecondOrder, Tangents, Tape, TrackedPoint,
    Var, current_mode,
};

/// Where an operation was computed: its inputs and its output.
pub struct Point<'a, V: Differentiable> {
    /// The values of the inputs.
    pub inputs: &'a [V::Shared],
    /// The value of the output.
    pub output: &'a V,
}

/// An operation with one output: a function and its derivatives, in terms of inputs and output.
///
/// [`Tape::apply`] runs and records it. [`op`] makes one of two closures.
pub trait Operation<V: Differentiable>: Send + Sync + 'static {
    /// Computes the output.
    fn forward(&self, inputs: &[V::Shared]) -> RuleResult<V>;

    /// Adds to the cotangent of each input its share of the output's.
    fn pullback(
        &self,
        at: Point<'_, V>,
        cotangent: &V::Tangent,
        inputs: &mut InputCotangents<'_, V>,
    ) -> RuleResult;

    /// What the policy knows about the operation.
    fn hint(&self) -> Hint {
        Hint::Cheap
    }

    /// What the operation can do beyond the first order.
    fn second_order(&self) -> SecondOrder {
        SecondOrder::Unsupported
    }

    /// The tangent of the output that follows from the tangents of the inputs (absent ones are zero).
    fn pushforward(&self, at: Point<'_, V>, tangents: &Tangents<'_, V>) -> RuleResult<V::Tangent> {
        let _ = (at, tangents);
        Err("this operation has no pushforward".into())
    }

    /// Adds to each input the change of what `pullback` gives when the inputs move along `tangents` and the
    /// cotangent along `change`. Either of `cotangent` and `change` may be absent, which is zero.
    fn pullback_tangent(
        &self,
        at: Point<'_, V>,
        cotangent: Option<&V::Tangent>,
        change: Option<&V::Tangent>,
        tangents: &Tangents<'_, V>,
        inputs: &mut InputCotangents<'_, V>,
    ) -> RuleResult {
        let _ = (at, cotangent, change, tangents, inputs);
        Err("this operation has no second order".into())
    }

    /// The pullback in operations of the tape, so that it has derivatives in turn ([`Tape::grad`]): one cotangent per
    /// input. `None` is zero, or [not wanted](TrackedPoint::wants).
    ///
    /// ```
    /// # use ebbtide_tape::{Inline, InputCotangents, Operation, Point, RuleResult, Tape, TrackedPoint, Var};
    /// struct Cube;
    ///
    /// impl Operation<f64> for Cube {
    ///     fn forward(&self, inputs: &[Inline<f64>]) -> RuleResult<f64> {
    ///         Ok(inputs[0].powi(3))
    ///     }
    ///
    ///     fn pullback(&self, at: Point<'_, f64>, c: &f64, inputs: &mut InputCotangents<'_, f64>) -> RuleResult {
    ///         inputs.add(0, 3.0 * at.inputs[0].powi(2) * c)
    ///     }
    ///
    ///     fn pullback_on_tape(&self, at: TrackedPoint<'_, f64>, c: &Var<f64>) -> RuleResult<Vec<Option<Var<f64>>>> {
    ///         let x = &at.inputs[0];
    ///         Ok(vec![Some(3.0 * x * x * c)])
    ///     }
    /// }
    ///
    /// let tape = Tape::<f64>::new();
    /// let x = tape.leaf(2.0);
    /// let first = tape.apply(Cube, &[&x])?.grad(&[&x])?.remove(0);
    /// let second = first.grad(&[&x])?.remove(0);
    /// assert_eq!((*first.value(), *second.value()), (12.0, 12.0));
    /// # Ok::<(), ebbtide_tape::Error>(())
    /// ```
    fn pullback_on_tape(&self, at: TrackedPoint<'_, V>, cotangent: &Var<V>) -> RuleResult<Vec<Option<Var<V>>>>
    where
        V: HigherOrder,
    {
        let _ = (at, cotangent);
        Err(crate::rule::NoHigherOrder.into())
    }
}

/// An operation made of closures; see [`op`].
pub struct Op<F, P> {
    forward: F,
    pullback: P,
    hint: Hint,
}

/// An operation from a function and its pullback, which gives one cotangent per input.
///
/// ```
/// use ebbtide_tape::{Inline, Point, Tape, op};
/// let tape = Tape::<f64>::new();
/// let (x, y) = (tape.leaf(3.0), tape.leaf(4.0));
/// let hypot = op(
///     |inputs: &[Inline<f64>]| inputs[0].hypot(*inputs[1]),
///     |at: Point<'_, f64>, c: &f64| [c * *at.inputs[0] / at.output, c * *at.inputs[1] / at.output],
/// );
/// let r = tape.apply(hypot, &[&x, &y])?;
/// assert_eq!(r.pullback()?.get(&x), Some(&0.6));
/// # Ok::<(), ebbtide_tape::Error>(())
/// ```
pub fn op<V, F, P, I>(forward: F, pullback: P) -> Op<F, P>
where
    V: Differentiable,
    F: Fn(&[V::Shared]) -> V + Send + Sync + 'static,
    P: Fn(Point<'_, V>, &V::Tangent) -> I + Send + Sync + 'static,
    I: IntoIterator<Item = V::Tangent>,
{
    Op { forward, pullback, hint: Hint::Cheap }
}

impl<F, P> Op<F, P> {
    /// The same operation with another hint to the policy.
    pub fn with_hint(self, hint: Hint) -> Self {
        Op { hint, ..self }
    }
}

impl<V, F, P, I> Operation<V> for Op<F, P>
where
    V: Differentiable,
    F: Fn(&[V::Shared]) -> V + Send + Sync + 'static,
    P: Fn(Point<'_, V>, &V::Tangent) -> I + Send + Sync + 'static,
    I: IntoIterator<Item = V::Tangent>,
{
    fn forward(&self, inputs: &[V::Shared]) -> RuleResult<V> {
        Ok((self.forward)(inputs))
    }

    fn pullback(
        &self,
        at: Point<'_, V>,
        cotangent: &V::Tangent,
        inputs: &mut InputCotangents<'_, V>,
    ) -> RuleResult {
        inputs.add_all((self.pullback)(at, cotangent))
    }

    fn hint(&self) -> Hint {
        self.hint
    }
}

/// The rule of an operation: the operation itself and the point where it was computed.
struct Saved<V: Differentiable, O> {
    operation: Arc<O>,
    inputs: Box<[V::Shared]>,
    output: V::Shared,
}

impl<V: Differentiable, O> Saved<V, O> {
    fn at(&self) -> Point<'_, V> {
        Point { inputs: &self.inputs, output: &self.output }
    }
}

impl<V: Differentiable, O: Operation<V>> ReverseRule<V> for Saved<V, O> {
    fn pullback(&self, outputs: &Cotangents<'_, V>, inputs: &mut InputCotangents<'_, V>) -> RuleResult {
        self.operation.pullback(self.at(), outputs.only()?, inputs)
    }

    fn second_order(&self) -> SecondOrder {
        self.operation.second_order()
    }

    fn pushforward(&self, inputs: &Tangents<'_, V>, outputs: &mut OutputTangents<'_, V>) -> RuleResult {
        outputs.set(0, self.operation.pushforward(self.at(), inputs)?)
    }

    fn pullback_tangent(
        &self,
        outputs: &Cotangents<'_, V>,
        changes: &Cotangents<'_, V>,
        tangents: &Tangents<'_, V>,
        inputs: &mut InputCotangents<'_, V>,
    ) -> RuleResult {
        self.operation.pullback_tangent(self.at(), outputs.get(0), changes.get(0), tangents, inputs)
    }

    fn pullback_on_tape(
        &self,
        at: TrackedPoint<'_, V>,
        cotangents: &[Option<Var<V>>],
    ) -> RuleResult<Vec<Option<Var<V>>>>
    where
        V: HigherOrder,
    {
        match cotangents {
            [Some(cotangent)] => self.operation.pullback_on_tape(at, cotangent),
            _ => Ok(at.inputs.iter().map(|_| None).collect()),
        }
    }
}

struct Recipe<O>(Arc<O>);

impl<V: Differentiable, O: Operation<V>> CheckpointRecipe<V> for Recipe<O> {
    fn replay(&self, inputs: &[V::Shared]) -> RuleResult<ReplayResult<V>> {
        let output = V::Shared::from(self.0.forward(inputs)?);
        let operation = Arc::clone(&self.0);
        let rule = Saved { operation, inputs: inputs.into(), output: output.clone() };
        Ok(ReplayResult::new(output, rule))
    }

    fn advance(&self, inputs: &[V::Shared]) -> RuleResult<crate::Outputs<V>> {
        Ok(crate::Outputs::One(self.0.forward(inputs)?.into()))
    }
}

impl<V: Differentiable> Tape<V> {
    /// Computes an operation and records it: retained or checkpointed, as the mode in force on this thread
    /// ([`with_mode`](crate::with_mode)) decides for its hint.
    pub fn apply(&self, operation: impl Operation<V>, inputs: &[&Var<V>]) -> Result<Var<V>> {
        let decision = current_mode().decide(operation.hint());
        let values: Box<[V::Shared]> = inputs.iter().map(|input| input.share()).collect();
        let output = operation.forward(&values).map_err(|error| Error::Forward(error.to_string().into()))?;
        let (output, operation) = (V::Shared::from(output), Arc::new(operation));
        match decision {
            Decision::Retain => {
                let rule = Saved { operation, inputs: values, output: output.clone() };
                self.record_op(output, inputs, rule)
            }
            Decision::Checkpoint => self.record_checkpointed_op(output, inputs, Recipe(operation)),
        }
    }
}
