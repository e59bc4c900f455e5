//! The pages of the guide and the README: their code is compiled and run by `cargo test`.
//!
//! They lie outside the crates that they describe, so that these can be packaged without them. `build.rs` adds the lines that the code
//! needs and readers do not see.
#![forbid(unsafe_code)]

#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;

/// One line per page.
macro_rules! pages {
    ($($name:ident = $path:literal),* $(,)?) => {
        $(
            #[cfg(doctest)]
            #[doc = include_str!(concat!(env!("OUT_DIR"), "/", $path))]
            struct $name;
        )*
    };
}

pages! {
    Why = "why.md",
    FirstHour = "first.md",
    Cookbook = "cookbook.md",
    Language = "language.md",
    Gradients = "gradients.md",
    Yield = "yield.md",
    Devices = "devices.md",
    DurableRuns = "durable.md",
    ManyMachines = "machines.md",
    Errors = "errors.md",
    ComingFrom = "coming-from.md",
    FromTidu = "from-tidu.md",
    FromTangent = "from-tangent.md",
    FromDiffTaichi = "from-difftaichi.md",
    FromWarp = "from-warp.md",
    OwnStep = "own-step.md",
    Tape = "tape.md",
    ProgramsOnATape = "programs-on-a-tape.md",
}
