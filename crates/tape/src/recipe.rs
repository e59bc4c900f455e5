//! Recipes: how a checkpointed operation gets its value and its rule back.

use crate::{Differentiable, Error, ReverseRule, RuleResult};

/// The values of an operation's outputs.
pub enum Outputs<V: Differentiable> {
    /// The operation has one output.
    One(V::Shared),
    /// The operation has any number of outputs.
    Many(Vec<V::Shared>),
}

impl<V: Differentiable> Outputs<V> {
    /// The outputs, in order.
    pub fn as_slice(&self) -> &[V::Shared] {
        match self {
            Outputs::One(value) => std::slice::from_ref(value),
            Outputs::Many(values) => values,
        }
    }
}

/// What a replay gives: the values of the outputs and the rule at that point.
pub struct ReplayResult<V: Differentiable> {
    /// The values of the outputs.
    pub outputs: Outputs<V>,
    /// The rule of the operation at the inputs it was replayed with.
    pub rule: Box<dyn ReverseRule<V>>,
}

impl<V: Differentiable> ReplayResult<V> {
    /// The result of an operation with one output.
    pub fn new(output: impl Into<V::Shared>, rule: impl ReverseRule<V> + 'static) -> Self {
        ReplayResult { outputs: Outputs::One(output.into()), rule: Box::new(rule) }
    }

    /// The result of an operation with several outputs, auxiliary ones included.
    pub fn many(outputs: Vec<V::Shared>, rule: impl ReverseRule<V> + 'static) -> Self {
        ReplayResult { outputs: Outputs::Many(outputs), rule: Box::new(rule) }
    }
}

/// How to compute an operation again from the values of its inputs.
///
/// A recipe is a pure function of those values: it gives the same bits each time it is asked. It may use any
/// tape, even the one it is recorded on (through a [`WeakTape`](crate::WeakTape), lest it own its owner).
pub trait CheckpointRecipe<V: Differentiable>: Send + Sync {
    /// Computes the outputs and the rule at `inputs`.
    fn replay(&self, inputs: &[V::Shared]) -> RuleResult<ReplayResult<V>>;

    /// Computes the outputs alone, where a schedule only passes through; by default a replay without its rule.
    fn advance(&self, inputs: &[V::Shared]) -> RuleResult<Outputs<V>> {
        self.replay(inputs).map(|replayed| replayed.outputs)
    }
}

impl<V: Differentiable> CheckpointRecipe<V> for Box<dyn CheckpointRecipe<V>> {
    fn replay(&self, inputs: &[V::Shared]) -> RuleResult<ReplayResult<V>> {
        (**self).replay(inputs)
    }

    fn advance(&self, inputs: &[V::Shared]) -> RuleResult<Outputs<V>> {
        (**self).advance(inputs)
    }
}

/// A recipe from a closure.
///
/// ```
/// use ebbtide_tape::{Inline, ReplayResult, Tape, recipe_fn, rule_fn};
/// let tape = Tape::<f64>::new();
/// let x = tape.leaf(3.0);
/// let square = recipe_fn(|inputs: &[Inline<f64>]| {
///     let x = *inputs[0];
///     ReplayResult::new(x * x, rule_fn(move |c: &f64| [c * 2.0 * x]))
/// });
/// let y = tape.record_checkpointed_op(9.0, &[&x], square)?;
/// assert_eq!(tape.pullback(&y)?.get(&x), Some(&6.0));
/// # Ok::<(), ebbtide_tape::Error>(())
/// ```
pub fn recipe_fn<V, F>(replay: F) -> impl CheckpointRecipe<V> + 'static
where
    V: Differentiable,
    F: Fn(&[V::Shared]) -> ReplayResult<V> + Send + Sync + 'static,
{
    Closure(replay)
}

struct Closure<F>(F);

impl<V, F> CheckpointRecipe<V> for Closure<F>
where
    V: Differentiable,
    F: Fn(&[V::Shared]) -> ReplayResult<V> + Send + Sync,
{
    fn replay(&self, inputs: &[V::Shared]) -> RuleResult<ReplayResult<V>> {
        Ok((self.0)(inputs))
    }
}

/// A recipe that compares what it replays with what was recorded (checked mode).
pub(crate) struct Checked<R> {
    recipe: R,
    fingerprints: Box<[u64]>,
}

/// The replayed value is not the recorded one; the sweep turns it into an error that names the node.
#[derive(Debug, thiserror::Error)]
#[error("the replayed value differs from the recorded one")]
pub(crate) struct Mismatch;

impl<R> Checked<R> {
    pub(crate) fn new<'a, V: Differentiable>(
        recipe: R,
        outputs: impl Iterator<Item = &'a V>,
    ) -> Result<Self, Error> {
        let fingerprints = outputs.map(V::fingerprint).collect::<Option<_>>().ok_or(Error::NoFingerprint)?;
        Ok(Checked { recipe, fingerprints })
    }

    fn check<V: Differentiable>(&self, outputs: &Outputs<V>) -> RuleResult<()> {
        let replayed = outputs.as_slice().iter().map(|value| value.fingerprint());
        if replayed.eq(self.fingerprints.iter().map(|&recorded| Some(recorded))) {
            Ok(())
        } else {
            Err(Mismatch.into())
        }
    }
}

impl<V: Differentiable, R: CheckpointRecipe<V>> CheckpointRecipe<V> for Checked<R> {
    fn replay(&self, inputs: &[V::Shared]) -> RuleResult<ReplayResult<V>> {
        let replayed = self.recipe.replay(inputs)?;
        self.check(&replayed.outputs)?;
        Ok(replayed)
    }

    fn advance(&self, inputs: &[V::Shared]) -> RuleResult<Outputs<V>> {
        let outputs = self.recipe.advance(inputs)?;
        self.check(&outputs)?;
        Ok(outputs)
    }
}
