//! How much memory there is.

use std::path::Path;

use crate::Error;

/// Refuses a file whose arrays take more than the memory that is free.
pub(crate) fn check(path: &Path, bytes: u64) -> Result<(), Error> {
    match free_memory() {
        Some(free) if bytes > free => Err(Error::TooLarge { path: path.to_owned(), bytes, free }),
        _ => Ok(()),
    }
}

/// The bytes of memory that this process can still have: the least of [`memory_found`]. `None` where nothing says it.
pub fn free_memory() -> Option<u64> {
    memory_found().into_iter().map(|(_, bytes)| bytes).min()
}

/// What says how much memory this process can still have, and how many bytes: what the system says is available, and what
/// the limits of its control groups, of `ulimit -v` and of Slurm leave.
pub fn memory_found() -> Vec<(&'static str, u64)> {
    let slurm = slurm_bytes(|name| std::env::var(name).ok());
    let slurm = slurm.map(|given| given.saturating_sub(system::used().unwrap_or(0)));
    let said = [
        ("available in the system", system::available()),
        ("left by control groups", system::left_by_groups()),
        ("left by ulimit -v", system::left_of_address_space()),
        ("left by Slurm", slurm),
    ];
    said.into_iter().filter_map(|(source, bytes)| Some((source, bytes?))).collect()
}

/// The memory that Slurm gave a job on this node; it says it in MiB. 0 means all that the node has.
fn slurm_bytes(variable: impl Fn(&str) -> Option<String>) -> Option<u64> {
    let number = |name: &str| variable(name)?.trim().parse::<u64>().ok().filter(|n| *n > 0);
    let of_cores = || number("SLURM_MEM_PER_CPU")?.checked_mul(number("SLURM_CPUS_ON_NODE")?);
    number("SLURM_MEM_PER_NODE").or_else(of_cores)?.checked_mul(1 << 20)
}

#[cfg(target_os = "linux")]
mod system {
    use std::path::{Path, PathBuf};

    pub(super) fn available() -> Option<u64> {
        let info = std::fs::read_to_string("/proc/meminfo").ok()?;
        let available = info.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
        let kib: u64 = available.trim().trim_end_matches(" kB").parse().ok()?;
        kib.checked_mul(1024)
    }

    /// What the tightest of the control groups around this process leaves.
    pub(super) fn left_by_groups() -> Option<u64> {
        let groups = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        left_by(&groups, Path::new("/sys/fs/cgroup"))
    }

    /// The memory that this process has.
    pub(super) fn used() -> Option<u64> {
        status("VmRSS:")
    }

    /// A line of `/proc/self/status`, in bytes.
    fn status(name: &str) -> Option<u64> {
        let status = std::fs::read_to_string("/proc/self/status").ok()?;
        let line = status.lines().find_map(|line| line.strip_prefix(name))?;
        line.trim().trim_end_matches(" kB").parse::<u64>().ok()?.checked_mul(1024)
    }

    /// Version 2 has one line, `0::/path`, and files `memory.max`, `memory.current`; version 1 a line for the controller,
    /// `5:memory:/path`, and files below a folder of its own. A limit above binds what is below it. Where a container sees
    /// its own group as the root, the path does not exist there, and the root has the limit.
    fn left_by(groups: &str, root: &Path) -> Option<u64> {
        let mut least: Option<u64> = None;
        for line in groups.lines() {
            let mut words = line.splitn(3, ':');
            let (Some(_), Some(controllers), Some(path)) = (words.next(), words.next(), words.next()) else {
                continue;
            };
            let (root, limit, used) = if controllers.is_empty() {
                (root.to_owned(), "memory.max", "memory.current")
            } else if controllers.split(',').any(|controller| controller == "memory") {
                (root.join("memory"), "memory.limit_in_bytes", "memory.usage_in_bytes")
            } else {
                continue;
            };
            let mut folders: Vec<PathBuf> = vec![root.clone()];
            for part in path.split('/').filter(|part| !part.is_empty() && *part != "..") {
                folders.push(folders[folders.len() - 1].join(part));
            }
            for folder in folders {
                let number = |name: &str| -> Option<u64> {
                    std::fs::read_to_string(folder.join(name)).ok()?.trim().parse().ok()
                };
                // Version 1 writes the largest number of pages where there is no limit.
                if let Some(limit) = number(limit).filter(|limit| *limit < 1 << 62) {
                    // Pages of files count as used, and are given back when memory is wanted.
                    let files = cached(&folder).unwrap_or(0);
                    let left = limit.saturating_sub(number(used).unwrap_or(0).saturating_sub(files));
                    least = Some(least.map_or(left, |least| least.min(left)));
                }
            }
        }
        least
    }

    fn cached(folder: &Path) -> Option<u64> {
        let text = std::fs::read_to_string(folder.join("memory.stat")).ok()?;
        let number =
            |name: &str| text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse::<u64>().ok());
        number("inactive_file ").or_else(|| number("total_inactive_file "))
    }

    /// What `ulimit -v` leaves.
    pub(super) fn left_of_address_space() -> Option<u64> {
        let limits = std::fs::read_to_string("/proc/self/limits").ok()?;
        let line = limits.lines().find_map(|line| line.strip_prefix("Max address space"))?;
        let limit: u64 = line.split_whitespace().next()?.parse().ok()?;
        Some(limit.saturating_sub(status("VmSize:")?))
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        fn write(root: &Path, files: &[(&str, &str)]) {
            for (name, text) in files {
                let file = root.join(name);
                std::fs::create_dir_all(file.parent().unwrap()).unwrap();
                std::fs::write(file, text).unwrap();
            }
        }

        #[test]
        fn the_tightest_group_of_either_version_counts() {
            let root = tempfile::tempdir().unwrap();
            let root = root.path();
            write(root, &[("a/memory.max", "1000\n"), ("a/memory.current", "400\n")]);
            write(root, &[("a/b/memory.max", "max\n"), ("a/b/memory.current", "100\n")]);
            assert_eq!(left_by("0::/a/b\n", root), Some(600));
            assert_eq!(left_by("0::/elsewhere\n", root), None);
            write(root, &[("a/memory.stat", "anon 5\ninactive_file 50\n")]);
            assert_eq!(left_by("0::/a/b\n", root), Some(650));
            // A container sees its own group at the root.
            write(root, &[("memory.max", "300\n"), ("memory.current", "500\n")]);
            assert_eq!(left_by("0::/docker/1234\n", root), Some(0));
            write(root, &[("memory/x/memory.limit_in_bytes", "70\n")]);
            write(root, &[("memory/x/memory.usage_in_bytes", "20\n")]);
            assert_eq!(left_by("3:cpu:/x\n5:memory,misc:/x\n", root), Some(50));
            write(root, &[("memory/y/memory.limit_in_bytes", "9223372036854771712\n")]);
            assert_eq!(left_by("5:memory:/y\n", root), None);
            assert_eq!(left_by("nonsense\n", root), None);
        }
    }
}

/// What other systems say, asked of the tools that come with them: this crate has no unsafe code.
#[cfg(target_os = "macos")]
mod system {
    use std::process::Command;

    fn said(program: &str, arguments: &[&str]) -> Option<String> {
        let output = Command::new(program).args(arguments).output().ok()?;
        String::from_utf8(output.stdout).ok()
    }

    /// Free, inactive, speculative and purgeable pages.
    pub(super) fn available() -> Option<u64> {
        let page: u64 = said("/usr/sbin/sysctl", &["-n", "hw.pagesize"])?.trim().parse().ok()?;
        let statistics = said("/usr/bin/vm_stat", &[])?;
        let pages = |name: &str| -> u64 {
            let line = statistics.lines().find_map(|line| line.strip_prefix(name));
            line.and_then(|rest| rest.trim().trim_end_matches('.').parse().ok()).unwrap_or(0)
        };
        let names = ["Pages free:", "Pages inactive:", "Pages speculative:", "Pages purgeable:"];
        page.checked_mul(names.into_iter().map(pages).sum())
    }

    pub(super) use super::unlimited::{left_by_groups, left_of_address_space, used};
}

#[cfg(windows)]
mod system {
    use std::process::Command;

    pub(super) fn available() -> Option<u64> {
        let ask = "(Get-CimInstance Win32_OperatingSystem).FreePhysicalMemory";
        let output =
            Command::new("powershell").args(["-NoProfile", "-NonInteractive", "-Command", ask]).output();
        let kib: u64 = String::from_utf8(output.ok()?.stdout).ok()?.trim().parse().ok()?;
        kib.checked_mul(1024)
    }

    pub(super) use super::unlimited::{left_by_groups, left_of_address_space, used};
}

#[cfg(not(any(target_os = "linux", target_os = "macos", windows)))]
mod system {
    pub(super) fn available() -> Option<u64> {
        None
    }

    pub(super) use super::unlimited::{left_by_groups, left_of_address_space, used};
}

/// Systems without control groups, whose other limits nobody sets.
#[cfg(not(target_os = "linux"))]
mod unlimited {
    pub(super) fn left_by_groups() -> Option<u64> {
        None
    }

    pub(super) fn left_of_address_space() -> Option<u64> {
        None
    }

    pub(super) fn used() -> Option<u64> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slurm_says_the_memory_of_a_job_in_mebibytes() {
        let bytes = |variables: &[(&str, &str)]| {
            slurm_bytes(|name| variables.iter().find(|(n, _)| *n == name).map(|(_, value)| value.to_string()))
        };
        assert_eq!(bytes(&[]), None);
        assert_eq!(bytes(&[("SLURM_MEM_PER_NODE", "2048")]), Some(2 << 30));
        assert_eq!(bytes(&[("SLURM_MEM_PER_NODE", "0")]), None);
        assert_eq!(bytes(&[("SLURM_MEM_PER_CPU", "512"), ("SLURM_CPUS_ON_NODE", "4")]), Some(2 << 30));
        assert_eq!(bytes(&[("SLURM_MEM_PER_CPU", "512")]), None);
        assert_eq!(bytes(&[("SLURM_MEM_PER_NODE", "18446744073709551615")]), None);
    }

    #[test]
    fn free_memory_is_the_least_that_anything_says() {
        let found = memory_found();
        assert!(found.iter().any(|(source, _)| *source == "available in the system"), "{found:?}");
        // Other processes take and give back memory between two looks.
        assert!(free_memory().is_some());
    }
}
