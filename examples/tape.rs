//! The eager tape: the gradient of plain Rust, and of a long chain in little memory.
//!
//! ```text
//! cargo run --release --example tape
//! ```

#[path = "show.rs"]
#[macro_use]
mod show;

use std::time::Instant;

use ebbtide_tape::{Mode, Tape, Var, with_mode};
use show::Failure;

/// Ten lines: a function of numbers, and its gradient.
fn ten_lines() -> Result<(), Failure> {
    let tape = Tape::<f64>::new();
    let (x, y) = (tape.leaf(1.5), tape.leaf(0.5));
    let loss = (&x * &y).sin() + x.exp() / &y;
    let gradients = loss.pullback()?;
    say!("f(x, y) = sin(x y) + exp(x) / y at (1.5, 0.5) is {:.6}", loss.value());
    let f = |x: f64, y: f64| (x * y).sin() + x.exp() / y;
    let h = 1e-6;
    show::check("df/dx", gradients.wrt(&x)?, (f(1.5 + h, 0.5) - f(1.5 - h, 0.5)) / (2.0 * h), 1e-8)?;
    show::check("df/dy", gradients.wrt(&y)?, (f(1.5, 0.5 + h) - f(1.5, 0.5 - h)) / (2.0 * h), 1e-8)
}

const LINKS: usize = 100_000;

/// One link: Newton's way to the cube root of `a`, held back so that it takes a while.
fn link(x: &Var<f64>, a: &Var<f64>) -> Var<f64> {
    x - (x - a / (x * x)) * 1e-4
}

/// A chain that keeps no value is swept in as many as it is given.
fn long_chain() -> Result<(), Failure> {
    let tape = Tape::<f64>::new();
    let a = tape.leaf(5.0);
    let root = with_mode(Mode::Aggressive, || (0..LINKS).fold(tape.leaf(1.0), |x, _| link(&x, &a)));
    let nodes = tape.len();
    say!(
        "\n{LINKS} links, {nodes} operations: x = {:.9}, the cube root of 5 is {:.9}",
        root.value(),
        5f64.cbrt()
    );
    say!("values held at most   replays per operation   seconds   dx/da");
    let mut first: Option<f64> = None;
    for slots in [None, Some(10_000), Some(300), Some(30)] {
        let begun = Instant::now();
        let gradients = match slots {
            None => tape.sweep().pullback(&root)?,
            Some(slots) => tape.sweep().slots(slots).pullback(&root)?,
        };
        let slope = gradients.wrt(&a)?;
        say!(
            "{:>19} {:>23.2} {:>9.3}   {slope:.15}",
            gradients.counts().peak_values,
            gradients.counts().replays.total() as f64 / nodes as f64,
            begun.elapsed().as_secs_f64(),
        );
        let first = *first.get_or_insert(slope);
        if first.to_bits() != slope.to_bits() {
            return Err("the limit changed a bit of the gradient".into());
        }
    }
    let run = |a: f64| (0..LINKS).fold(1.0, |x, _| x - (x - a / (x * x)) * 1e-4);
    say!();
    let difference = (run(5.0 + 1e-5) - run(5.0 - 1e-5)) / 2e-5;
    show::check("dx/da", first.unwrap_or(f64::NAN), difference, 1e-7)
}

/// Runs the example.
pub fn main() -> Result<(), Failure> {
    ten_lines()?;
    long_chain()
}
