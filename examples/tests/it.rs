//! Every example runs to its end, its own checks included.

// In the examples `main` is the way in; here it is not for all.
#![allow(dead_code)]
// Each example brings the drawing of curves with it.
#![allow(clippy::duplicate_mod)]

#[path = "../bodies.rs"]
mod bodies;
#[path = "../cloth.rs"]
mod cloth;
#[path = "../control.rs"]
mod control;
#[path = "../elements.rs"]
mod elements;
#[path = "../heat.rs"]
mod heat;
#[path = "../lorenz.rs"]
mod lorenz;
#[path = "../mpm.rs"]
mod mpm;
#[path = "../particles.rs"]
mod particles;
#[path = "../predator.rs"]
mod predator;
#[path = "../rnn.rs"]
mod rnn;
#[path = "../smoke.rs"]
mod smoke;
#[path = "../survey.rs"]
mod survey;
mod taichi;
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
fn survey_is_the_same_for_every_cut() {
    pass(survey::main());
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
fn elements_hang_where_they_should() {
    pass(elements::main());
}

#[test]
fn mpm_lands_where_it_should() {
    pass(mpm::main());
}

#[test]
fn cloth_hangs_in_the_wind() {
    pass(cloth::main());
}

#[test]
fn bodies_roll_where_they_should() {
    pass(bodies::main());
}

#[test]
fn smoke_ends_as_it_should() {
    pass(smoke::main());
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

/// A process of its own runs the particles with a trace.
#[test]
fn a_trace_shows_where_a_program_yielded_and_went_on() {
    let file = std::env::temp_dir().join(format!("ebbtide-trace-{}.json", std::process::id()));
    let status = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "particles_go_on_after_yields"])
        .env("EBBTIDE_TRACE", &file)
        .stdout(std::process::Stdio::null())
        .status();
    let trace = std::fs::read_to_string(&file).unwrap_or_default();
    let _ = std::fs::remove_file(&file);
    assert!(status.unwrap().success());
    for part in ["\"name\":\"launch\"", "\"name\":\"yield\"", "\"name\":\"resume\"", "/Stage::Neighbours"] {
        assert!(trace.contains(part), "{part} is missing:\n{trace}");
    }
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

/// `main` prints an error in its debug form.
#[test]
fn an_error_that_leaves_main_reads_like_its_text() {
    let failed = heat::durable(std::path::Path::new("/dev/null/run")).unwrap_err();
    assert_eq!(format!("{failed:?}"), failed.to_string());
}
