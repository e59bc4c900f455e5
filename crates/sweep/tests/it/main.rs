//! Everything about the sweep driver.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[path = "../../../../examples/models/heat.rs"]
#[allow(dead_code, reason = "the examples use more of it")]
mod heat;
#[path = "../../../../examples/models/lorenz.rs"]
#[allow(dead_code, reason = "the examples use more of it")]
mod lorenz;

mod crashes;
mod durable;
mod failures;
#[allow(dead_code, reason = "the tests of `ebbtide` use more of it")]
mod faulty;
mod gradients;
mod legality;
mod support;

#[path = "../../../snapshot/tests/support/folder.rs"]
mod folder;
#[path = "../../../snapshot/tests/support/kill.rs"]
mod kill;
