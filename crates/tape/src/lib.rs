//! The eager tape: reverse mode over any value type, with recipes in place of stored values.
//!
//! A [`Tape`] records operations as they happen and runs them backwards. The values are yours: numbers, tensors
//! of another library, meshes, anything that is [`Differentiable`]. An operation is recorded either *retained*,
//! with its value and its [rule](ReverseRule), or *checkpointed*, with nothing but a [recipe](CheckpointRecipe)
//! to compute both again. A [sweep](Sweep) replays what it needs within the memory that it is given.
//!
//! ```
//! use ebbtide_tape::{Mode, Tape, with_mode};
//!
//! let tape = Tape::<f64>::new();
//! let (x, y) = (tape.leaf(1.5), tape.leaf(0.5));
//! let loss = (&x * &y).sin() + x.exp() / &y;
//! let gradients = loss.pullback()?;
//! assert_eq!(gradients.wrt(&y)?, 1.5 * 0.75f64.cos() - 1.5f64.exp() / 0.25);
//!
//! // A long chain keeps no value at all, and its gradient needs room for ten.
//! let end = with_mode(Mode::Aggressive, || (0..1000).fold(x.clone(), |state, _| (state * &y).sin() + 1.0));
//! let gradients = tape.sweep().slots(10).pullback(&end)?;
//! assert!(gradients.counts().peak_values <= 11);
//!
//! // The Hessian times a direction.
//! let product = tape.hvp(&loss, [(&x, 1.0)])?.product.wrt(&x)?;
//! assert!((product - (1.5f64.exp() / 0.5 - 0.25 * 0.75f64.sin())).abs() < 1e-12);
//! # Ok::<(), ebbtide_tape::Error>(())
//! ```
//!
//! # What is where
//!
//! * Values: [`Differentiable`] is all that the tape asks of them. [`Var`] is a value with its place on a tape.
//! * Operations: [`Tape::record_op`] and [`Tape::record_checkpointed_op`] with rules and recipes (or closures:
//!   [`rule_fn`], [`recipe_fn`]); [`Tape::on`] for unwanted inputs and several outputs; [`Tape::apply`] for an
//!   [`Operation`] (or two closures: [`op`]) that the [policy](with_mode) in force retains or checkpoints.
//! * Tracked numbers and, with the feature `ndarray`, arrays: [`Elementwise`].
//! * Sweeps: [`Tape::pullback`], [`Tape::hvp`], and [`Tape::sweep`] with a limit in values or bytes. What a
//!   limit guarantees stands at [`Sweep`]. [`Tape::plan`] finds once what many pullbacks visit.
//! * Gradients of gradients: [`Tape::grad`] gives gradients that are on the tape themselves.
//! * Forward mode: [`Dual`] is a value with its tangent, [`jvp`] the Jacobian times a direction without a tape.
//!
//! # What holds always
//!
//! * Gradients through checkpointed operations equal those through retained ones bit for bit, under every
//!   limit: cotangents are added in the reverse order of recording, whatever is replayed.
//! * Without a limit an operation is replayed at most once in a sweep. An operation that receives no cotangent
//!   is not replayed, unless the value of one that does is computed from it.
//! * The time of a sweep grows with the number of nodes recorded before the loss, needed or not: use
//!   [`Tape::free`], or a tape for each gradient, rather than one tape for everything.
//! * Nothing recurses over the graph, and no lock is held while rules, recipes or destructors of values run.
//!
//! This crate knows values, rules and recipes. It does not know arrays (but for the feature), programs or
//! devices, and the schedule of a limited sweep comes from `ebbtide-schedule`.
#![forbid(unsafe_code)]

mod arena;
#[cfg(feature = "ndarray")]
mod array;
#[cfg(feature = "ndarray")]
mod array_linear;
#[cfg(feature = "ndarray")]
mod array_mixed;
mod dual;
mod elementary;
mod error;
mod execution;
mod gradients;
mod graph;
mod higher_order;
mod memo;
mod number;
mod operation;
mod operators;
mod plan;
mod policy;
mod pool;
mod pullback_plan;
mod recipe;
mod recording;
mod rule;
mod scalar;
mod schedule;
mod sweep;
mod tape;
mod value;
mod var;

#[cfg(feature = "ndarray")]
pub use array::ArrayElement;
pub use dual::{Dual, jvp};
pub use error::{Error, Result, RuleError, RuleResult};
pub use gradients::{Counts, Gradients, Hvp, Replays};
pub use higher_order::{HigherOrder, TrackedPoint};
pub use operation::{Op, Operation, Point, op};
pub use operators::Elementwise;
pub use policy::{Decision, Hint, Mode, current_mode, with_mode};
pub use pullback_plan::PullbackPlan;
pub use recipe::{CheckpointRecipe, Outputs, ReplayResult, recipe_fn};
pub use recording::{Output, Recording};
pub use rule::{Cotangents, InputCotangents, OutputTangents, ReverseRule, SecondOrder, Tangents, rule_fn};
pub use sweep::{Limit, Sweep};
pub use tape::{NodeId, Tape, WeakTape};
pub use value::{Differentiable, Inline, Share, mix_words};
pub use var::Var;
