//! The flags of a compilation, by system: input a system and an architecture as `std::env::consts` names them,
//! output what gcc and clang understand there.

use std::env::consts::{ARCH, DLL_SUFFIX, OS};

/// Rounding is the program's business: nothing is contracted, reassociated or assumed about NaN. Errno and traps
/// are nobody's, and if-conversion needs to know that. Integers wrap.
const EVERYWHERE: [&str; 9] = [
    "-std=gnu11",
    "-ffp-contract=off",
    // GCC's vectoriser makes fused multiply-adds of a complex product whatever it is told. Our vectors are explicit.
    "-fno-tree-vectorize",
    "-fno-tree-slp-vectorize",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-fwrapv",
    "-w",
    "-Werror=implicit-function-declaration",
];

/// The level of optimised code.
pub(crate) const OPTIMIZED: &str = "-O2";

/// That of quick code: half the time of compilation, and loops that run at about half the speed.
pub(crate) const QUICK: &str = "-Og";

/// That of long code that must run well from its start: a third of the time of compilation, and loops that run at nearly full speed.
pub(crate) const MODERATE: &str = "-O1";

/// That of code that is never to be optimised: it is there sooner than quick code, by a third and more, for programs that hardly compute.
pub(crate) const UNOPTIMIZED: &str = "-O0";

/// The flags that every compilation gets on this system, but for its level.
pub(crate) fn compile_flags_here() -> Vec<&'static str> {
    compile_flags(OS, ARCH)
}

/// What stands behind the source on this system.
pub(crate) fn libraries_here() -> &'static [&'static str] {
    libraries(OS)
}

/// The name of a shared library on this system.
pub(crate) fn library_name(stem: &str) -> String {
    format!("{stem}{DLL_SUFFIX}")
}

fn compile_flags(system: &str, architecture: &str) -> Vec<&'static str> {
    let mut flags = EVERYWHERE.to_vec();
    // Apple's clang takes the processor of its ARM machines by this name.
    let native =
        if (system, architecture) == ("macos", "aarch64") { "-mcpu=native" } else { "-march=native" };
    flags.push(native);
    // All code for Windows can be moved; clang refuses the flag there.
    if system != "windows" {
        flags.push("-fPIC");
    }
    // A missing function is then found when the library is opened. Apple's linker and those of Windows do not know it.
    if !matches!(system, "macos" | "ios" | "windows") {
        flags.push("-Wl,-z,now");
    }
    flags
}

fn libraries(system: &str) -> &'static [&'static str] {
    // On Windows the C library has the functions of mathematics.
    if system == "windows" { &[] } else { &["-lm"] }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_of_elf_linkers_are_for_elf_systems_alone() {
        for (system, architecture) in [
            ("linux", "x86_64"),
            ("linux", "aarch64"),
            ("macos", "x86_64"),
            ("macos", "aarch64"),
            ("windows", "x86_64"),
        ] {
            let flags = compile_flags(system, architecture);
            let elf = system == "linux";
            assert_eq!(flags.contains(&"-Wl,-z,now"), elf, "{system}");
            assert_eq!(flags.contains(&"-fPIC"), system != "windows", "{system}");
            assert_eq!(libraries(system).contains(&"-lm"), system != "windows", "{system}");
            // What rounding depends on is the same everywhere.
            for flag in ["-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math", "-fwrapv"] {
                assert!(flags.contains(&flag), "{system} {flag}");
            }
            let native = flags.iter().filter(|flag| flag.ends_with("=native")).count();
            assert_eq!(native, 1, "{system} {architecture}");
        }
    }
}
