//! Everything about the sweep driver.

#[path = "../../examples/models/heat.rs"]
#[allow(dead_code, reason = "the examples use more of it")]
mod heat;
#[path = "../../examples/models/lorenz.rs"]
#[allow(dead_code, reason = "the examples use more of it")]
mod lorenz;

mod failures;
mod gradients;
mod legality;
mod support;
