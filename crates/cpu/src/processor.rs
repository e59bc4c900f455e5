//! Which processor this is: what `-march=native` means here.
//!
//! Compiled code is bound to it. Where the system names the model, as on x86, that and the flags tell; most ARM machines
//! have no name but an implementer, a part and features, which may differ between cores; macOS has neither in a file.

use std::collections::BTreeSet;
use std::process::{Command, Stdio};
use std::sync::OnceLock;

/// The lines of `/proc/cpuinfo` that tell processors apart.
const TELLING: [&str; 17] = [
    // x86
    "vendor_id",
    "cpu family",
    "model",
    "model name",
    "stepping",
    "flags",
    // ARM
    "CPU implementer",
    "CPU architecture",
    "CPU variant",
    "CPU part",
    "CPU revision",
    "Features",
    // RISC-V, POWER
    "isa",
    "uarch",
    "mvendorid",
    "marchid",
    "cpu",
];

/// What macOS is asked for.
const ASKED: [&str; 4] = ["machdep.cpu.brand_string", "hw.cputype", "hw.cpusubtype", "hw.cpufamily"];

/// The processor of this machine, in words that other processors do not have.
pub(crate) fn processor() -> &'static str {
    static FOUND: OnceLock<String> = OnceLock::new();
    FOUND.get_or_init(|| {
        let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let known = described(&info);
        let known = if known.is_empty() { asked() } else { known };
        format!("{} {known}", std::env::consts::ARCH)
    })
}

/// What `/proc/cpuinfo` says, each line that tells something once: cores may differ.
fn described(info: &str) -> String {
    let lines: BTreeSet<(usize, &str)> = info
        .lines()
        .filter_map(|line| {
            let (name, value) = line.split_once(':')?;
            Some((TELLING.iter().position(|telling| *telling == name.trim())?, value.trim()))
        })
        .collect();
    let lines = lines.into_iter().map(|(name, value)| format!("{}: {value}", TELLING[name]));
    lines.collect::<Vec<_>>().join("; ")
}

/// What the system says where it has no such file.
fn asked() -> String {
    let output = Command::new("sysctl").args(ASKED).stdin(Stdio::null()).stderr(Stdio::null()).output();
    let said = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
    said.lines().collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    const BIG_AND_LITTLE: &str = "processor\t: 0\nBogoMIPS\t: 48.00\nFeatures\t: fp asimd sve\nCPU implementer\t: 0x41\n\
        CPU architecture: 8\nCPU variant\t: 0x1\nCPU part\t: 0xd05\nCPU revision\t: 0\n\nprocessor\t: 1\n\
        BogoMIPS\t: 48.00\nFeatures\t: fp asimd sve\nCPU implementer\t: 0x41\nCPU architecture: 8\n\
        CPU variant\t: 0x1\nCPU part\t: 0xd0a\nCPU revision\t: 0\n";

    #[test]
    fn a_processor_without_a_name_is_told_by_its_parts_and_features() {
        let found = described(BIG_AND_LITTLE);
        assert!(found.contains("CPU part: 0xd05; CPU part: 0xd0a"), "{found}");
        assert!(
            found.contains("CPU implementer: 0x41") && found.contains("Features: fp asimd sve"),
            "{found}"
        );
        for (from, to) in [
            ("0xd0a", "0xd0b"),
            ("asimd sve", "asimd"),
            ("0x41", "0x61"),
            ("variant\t: 0x1", "variant\t: 0x2"),
        ] {
            assert_ne!(described(&BIG_AND_LITTLE.replace(from, to)), found, "{from} is {to}");
        }
        // What changes from moment to moment tells nothing.
        assert_eq!(described(&BIG_AND_LITTLE.replace("48.00", "50.00")), found);
    }

    #[test]
    fn this_processor_is_known() {
        assert!(processor().len() > std::env::consts::ARCH.len() + 8, "{}", processor());
    }
}
