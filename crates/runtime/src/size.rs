//! Numbers of bytes, for people.

/// A number of bytes for people.
pub(crate) fn bytes(n: u64) -> String {
    let units = ["B", "KiB", "MiB", "GiB", "TiB"];
    let mut value = n as f64;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < units.len() {
        value /= 1024.0;
        unit += 1;
    }
    if unit == 0 { format!("{n} B") } else { format!("{value:.2} {}", units[unit]) }
}

/// A number of bytes for people who will write it into a program: also the very number, where it is rounded.
pub(crate) fn exact_bytes(n: u64) -> String {
    if n < 1024 { bytes(n) } else { format!("{} ({n} bytes)", bytes(n)) }
}
