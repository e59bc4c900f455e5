//! The eager tape.
#![forbid(unsafe_code)]

mod arena;
mod error;
mod execution;
mod gradients;
mod memo;
mod plan;
mod policy;
mod recipe;
mod recording;
mod revolve;
mod rule;
mod schedule;
mod sweep;
mod tape;
mod value;
mod var;

pub use error::{Error, Result, RuleError};
pub use gradients::{Counts, Gradients, Hvp, Replays};
pub use policy::{Decision, Hint, Mode, current_mode, with_mode};
pub use recipe::{CheckpointRecipe, Outputs, ReplayResult, recipe_fn};
pub use recording::{Output, Recording};
pub use rule::{Cotangents, InputCotangents, OutputTangents, ReverseRule, RuleResult, SecondOrder, Tangents, rule_fn};
pub use sweep::{Limit, Sweep};
pub use tape::{NodeId, Tape, WeakTape};
pub use value::{Differentiable, mix_words};
pub use var::Var;
