//! The eager tape.
#![forbid(unsafe_code)]

mod arena;
#[cfg(feature = "ndarray")]
mod array;
#[cfg(feature = "ndarray")]
mod array_linear;
mod elementary;
mod error;
mod execution;
mod gradients;
mod memo;
mod operation;
mod operators;
mod plan;
mod policy;
mod recipe;
mod recording;
mod rule;
mod scalar;
mod schedule;
mod sweep;
mod tape;
mod value;
mod var;

pub use error::{Error, Result, RuleError, RuleResult};
pub use gradients::{Counts, Gradients, Hvp, Replays};
pub use operation::{Op, Operation, Point, op};
pub use operators::Elementwise;
pub use policy::{Decision, Hint, Mode, current_mode, with_mode};
pub use recipe::{CheckpointRecipe, Outputs, ReplayResult, recipe_fn};
pub use recording::{Output, Recording};
pub use rule::{Cotangents, InputCotangents, OutputTangents, ReverseRule, SecondOrder, Tangents, rule_fn};
pub use sweep::{Limit, Sweep};
pub use tape::{NodeId, Tape, WeakTape};
pub use value::{Differentiable, Inline, Share, mix_words};
pub use var::Var;
