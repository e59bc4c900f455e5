//! Everything about the sweep driver.

#[path = "../../examples/models/heat.rs"]
#[allow(dead_code, reason = "the examples use more of it")]
mod heat;
#[path = "../../examples/models/lorenz.rs"]
#[allow(dead_code, reason = "the examples use more of it")]
mod lorenz;

mod crashes;
mod durable;
mod failures;
mod faulty;
mod gradients;
mod legality;
mod support;
