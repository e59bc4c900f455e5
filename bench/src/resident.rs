//! The resident set of this process, from `/proc`.

use std::fs;

/// Forgets the highest resident set; from now on it is counted anew.
pub fn reset_peak() {
    // Where this is not to be had, the peak is that of the whole process: an overestimate.
    let _ = fs::write("/proc/self/clear_refs", "5");
}

pub fn now() -> u64 {
    field("VmRSS:")
}

pub fn peak() -> u64 {
    field("VmHWM:")
}

fn field(name: &str) -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    let kilobytes = line.and_then(|rest| rest.split_whitespace().next()).and_then(|n| n.parse::<u64>().ok());
    kilobytes.unwrap_or(0) * 1024
}
