//! The machine that the bench runs on.

use std::fs;
use std::time::Duration;

/// The processor and the number of its cores.
pub fn name() -> String {
    let text = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let field = |name: &str| {
        let line = text.lines().find(|line| line.starts_with(name))?;
        Some(line.split(':').nth(1)?.trim().to_string())
    };
    let model = field("model name").unwrap_or_else(|| "unknown processor".to_string());
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let wide = if text.contains("avx512f") { ", AVX-512" } else { "" };
    format!("{cores} cores of {model}{wide}")
}

/// The part of all processors' time that others take, from 0 to 1, while this process sleeps.
pub fn busy_share() -> f64 {
    let Some(before) = ticks() else { return 0.0 };
    std::thread::sleep(Duration::from_secs(2));
    let Some(after) = ticks() else { return 0.0 };
    let (all, idle) = (after.0 - before.0, after.1 - before.1);
    if all <= 0.0 { 0.0 } else { 1.0 - idle / all }
}

/// All ticks of all processors, and the idle ones.
fn ticks() -> Option<(f64, f64)> {
    let text = fs::read_to_string("/proc/stat").ok()?;
    let numbers: Vec<f64> =
        text.lines().next()?.split_whitespace().skip(1).filter_map(|word| word.parse().ok()).collect();
    Some((numbers.iter().sum(), numbers.get(3)? + numbers.get(4)?))
}
