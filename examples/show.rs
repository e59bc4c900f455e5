//! What the examples share: lines of text, a picture of curves in letters, and the comparison of a slope with
//! differences.

use std::fmt;
use std::io::{ErrorKind, Write as _};

/// Why an example stops, in plain words also where it leaves `main`.
pub struct Failure(Box<dyn std::error::Error>);

impl<E: Into<Box<dyn std::error::Error>>> From<E> for Failure {
    fn from(error: E) -> Failure {
        Failure(error.into())
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl fmt::Debug for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

/// Prints a line. Where whoever reads has read enough, as in `… | head -1`, the example ends.
macro_rules! say {
    () => { show::say("") };
    ($($text:tt)+) => { show::say(format_args!($($text)+)) };
}

/// What the macro of the same name does.
pub fn say(line: impl fmt::Display) {
    if let Err(error) = writeln!(std::io::stdout(), "{line}") {
        std::process::exit(if error.kind() == ErrorKind::BrokenPipe { 0 } else { 1 });
    }
}

/// Prints curves over a common range, `rows` lines high; later curves are drawn over earlier ones.
#[allow(dead_code, reason = "not every example has curves")]
pub fn curves(title: &str, rows: usize, curves: &[(char, &[f64])]) {
    let points = || curves.iter().flat_map(|(_, ys)| ys.iter().copied());
    let (low, high) = (points().fold(f64::INFINITY, f64::min), points().fold(f64::NEG_INFINITY, f64::max));
    let width = curves.iter().map(|(_, ys)| ys.len()).max().unwrap_or(0);
    let mut canvas = vec![vec![' '; width]; rows];
    for (letter, ys) in curves {
        for (column, y) in ys.iter().enumerate() {
            let height = (y - low) / (high - low).max(f64::MIN_POSITIVE);
            let row = ((1.0 - height) * (rows - 1) as f64).round() as usize;
            canvas[row.min(rows - 1)][column] = *letter;
        }
    }
    say(format_args!("\n{title}"));
    for (k, row) in canvas.iter().enumerate() {
        let label = match k {
            0 => format!("{high:.2}"),
            k if k == rows - 1 => format!("{low:.2}"),
            _ => String::new(),
        };
        say(format_args!("{label:>8} │{}", row.iter().collect::<String>().trim_end()));
    }
    say(format_args!("{:>8} └{}", "", "─".repeat(width)));
}

/// Compares a slope that a gradient gives with central differences of the function; fails if they differ.
pub fn check(what: &str, slope: f64, difference: f64, tolerance: f64) -> Result<(), Failure> {
    let error = (slope - difference).abs() / difference.abs().max(f64::MIN_POSITIVE);
    say(format_args!(
        "{what}: {slope:.10e} by the gradient, {difference:.10e} by differences, {error:.1e} apart"
    ));
    if error < tolerance { Ok(()) } else { Err(format!("{what} is off by {error:e}").into()) }
}
