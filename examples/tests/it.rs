//! Every example runs to its end, its own checks included.

// In the examples `main` is the way in; here it is not for all.
#![allow(dead_code)]
// Each example brings the drawing of curves with it.
#![allow(clippy::duplicate_mod)]

#[path = "../control.rs"]
mod control;
#[path = "../heat.rs"]
mod heat;
#[path = "../lorenz.rs"]
mod lorenz;
#[path = "../particles.rs"]
mod particles;
#[path = "../predator.rs"]
mod predator;
#[path = "../rnn.rs"]
mod rnn;
#[path = "../tape.rs"]
mod tape;

/// Says in plain words why an example failed.
fn pass<E: std::fmt::Display>(result: Result<(), E>) {
    if let Err(why) = result {
        panic!("{why}");
    }
}

#[test]
fn control_finds_a_force() {
    pass(control::main());
}

#[test]
fn predator_finds_the_rates() {
    pass(predator::main());
}

#[test]
fn rnn_learns() {
    pass(rnn::main());
}

#[test]
fn particles_go_on_after_yields() {
    pass(particles::main());
}

#[test]
fn lorenz_is_reversed_under_every_schedule() {
    pass(lorenz::main());
}

#[test]
fn heat_is_reversed_in_memory_and_on_disk() {
    pass(heat::tour());
}

#[test]
fn tape_sweeps_a_chain_under_a_limit() {
    pass(tape::main());
}

/// The examples that the manifest declares, by name.
fn declared() -> Vec<&'static str> {
    let manifest = include_str!("../Cargo.toml");
    let mut names = manifest.split("[[example]]\nname = \"").skip(1);
    std::iter::from_fn(|| names.next()?.split('"').next()).collect()
}

#[test]
fn the_readme_lists_every_example() {
    let readme = include_str!("../README.md");
    assert!(declared().len() >= 7);
    for name in declared() {
        assert!(readme.contains(&format!("[`{name}`]({name}.rs)")), "README.md does not list `{name}`");
    }
}
