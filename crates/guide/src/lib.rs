//! The pages of the guide and the README: their code is compiled and run by `cargo test`.
//!
//! They lie outside of the crates that they speak of, so these can be packaged without them.
#![forbid(unsafe_code)]

/// One line per page.
macro_rules! pages {
    ($($name:ident = $path:literal),* $(,)?) => {
        $(
            #[cfg(doctest)]
            #[doc = include_str!($path)]
            struct $name;
        )*
    };
}

pages! {
    Readme = "../../../README.md",
    Why = "../../../docs/src/why.md",
    FirstHour = "../../../docs/src/first.md",
    Cookbook = "../../../docs/src/cookbook.md",
    Language = "../../../docs/src/language.md",
    Gradients = "../../../docs/src/gradients.md",
    Yield = "../../../docs/src/yield.md",
    Devices = "../../../docs/src/devices.md",
    DurableRuns = "../../../docs/src/durable.md",
    ManyMachines = "../../../docs/src/machines.md",
    Errors = "../../../docs/src/errors.md",
    ComingFrom = "../../../docs/src/coming-from.md",
    FromTidu = "../../../docs/src/from-tidu.md",
    FromTangent = "../../../docs/src/from-tangent.md",
    FromDiffTaichi = "../../../docs/src/from-difftaichi.md",
    FromWarp = "../../../docs/src/from-warp.md",
    OwnStep = "../../../docs/src/own-step.md",
    Tape = "../../../docs/src/tape.md",
    ProgramsOnATape = "../../../docs/src/programs-on-a-tape.md",
}
