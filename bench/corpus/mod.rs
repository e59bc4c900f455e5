//! Programs of others in their natural form, each for f32 and f64: input a size, output a program of the language with its
//! arguments, what is differentiated, and by what. No program is written for the engine.

pub mod measure;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use ebbtide::ir::{Literal, Program, Type};
use ebbtide_conformance::Input;

use crate::Result;

/// All programs, over `Real`.
macro_rules! programs {
    ($module:ident, $real:ty) => {
        /// The programs over one type.
        #[allow(missing_docs, reason = "the files say it once for both")]
        pub mod $module {
            use ebbtide::prelude::*;

            type Real = $real;
            include!("learning.rs");
            include!("physics.rs");
            include!("linear.rs");
        }
    };
}
programs!(single, f32);
programs!(double, f64);

/// How large a program's arguments are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Size {
    /// The oracle judges its derivatives in a moment.
    #[cfg_attr(not(test), allow(dead_code, reason = "nothing of this size is timed"))]
    Tiny,
    /// Everything is in a core's caches.
    Small,
    /// What a user runs.
    Large,
}

/// A program with its arguments.
pub struct Problem {
    pub program: Arc<Program>,
    pub inputs: Vec<Input>,
    pub wrt: &'static [&'static str],
    /// Its extents, in words.
    pub extents: String,
}

/// A number between -1 and 1 with many digits.
fn number(k: usize, salt: usize) -> f64 {
    let mixed = (k as u64 ^ (salt as u64) << 40).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    ((mixed ^ mixed >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 11) as f64 / (1u64 << 52) as f64 - 1.0
}

/// Arguments of one type.
struct Arguments(Type);

impl Arguments {
    /// An array of `middle ± spread`.
    fn array(&self, shape: &[usize], salt: usize, middle: f64, spread: f64) -> Input {
        let of = |k| Literal::of(self.0, middle + spread * number(k, salt));
        Input::Elements(shape.to_vec(), (0..shape.iter().product()).map(of).collect())
    }

    fn zeros(&self, shape: &[usize]) -> Input {
        self.array(shape, 0, 0.0, 0.0)
    }

    fn scalar(&self, value: f64) -> Input {
        Input::Scalar(Literal::of(self.0, value))
    }
}

fn indices(shape: &[usize], of: impl Fn(usize) -> usize) -> Input {
    Input::Elements(
        shape.to_vec(),
        (0..shape.iter().product()).map(|k| Literal::from(of(k) as i32)).collect(),
    )
}

fn count(n: usize) -> Input {
    Input::Scalar(Literal::from(n))
}

/// The names of all programs.
pub const NAMES: [&str; 14] = [
    "dense",
    "gru",
    "neural_ode",
    "mixture",
    "bundle",
    "all_pairs",
    "boltzmann",
    "shallow_water",
    "heat",
    "gray_scott",
    "lorenz96",
    "particles",
    "sparse",
    "adi",
];

/// The program of this name over `ty`.
pub fn problem(name: &'static str, ty: Type, size: Size) -> Result<Problem> {
    let a = Arguments(ty);
    let pick = |tiny, small, large| match size {
        Size::Tiny => tiny,
        Size::Small => small,
        Size::Large => large,
    };
    let loss = || a.zeros(&[]);
    let (inputs, wrt, extents): (Vec<Input>, &'static [&'static str], String) = match name {
        "dense" => {
            let (b, n, steps) = (pick(2, 1, 64), pick(5, 256, 512), pick(3, 100, 20));
            let w = a.array(&[n, n], 2, 0.0, 2.0 / (n as f64).sqrt());
            let inputs =
                vec![a.array(&[b, n], 1, 0.0, 1.0), w, a.array(&[n], 3, 0.0, 0.5), count(steps), loss()];
            (inputs, &["h", "w"], format!("{b} x {n}, {steps} steps"))
        }
        "gru" => {
            let (b, n, steps) = (pick(2, 4, 64), pick(3, 64, 256), pick(3, 50, 20));
            let w = |salt| a.array(&[n, n], salt, 0.0, 1.5 / (n as f64).sqrt());
            let x = a.array(&[steps, b, n], 2, 0.0, 0.5);
            let inputs = vec![a.array(&[b, n], 1, 0.0, 1.0), x, w(3), w(4), w(5), loss()];
            (inputs, &["h", "wz", "wr", "wh"], format!("{b} x {n}, {steps} steps"))
        }
        "neural_ode" => {
            let (b, n, hidden, steps) =
                (pick(2, 16, 128), pick(3, 16, 64), pick(4, 32, 256), pick(3, 100, 50));
            let w = |m: usize, n: usize, salt| a.array(&[m, n], salt, 0.0, 1.0 / (m as f64).sqrt());
            let x = a.array(&[b, n], 1, 0.0, 1.0);
            let inputs = vec![x, w(n, hidden, 2), w(hidden, n, 3), a.scalar(0.05), count(steps), loss()];
            (inputs, &["x", "a", "b"], format!("{b} x {n} x {hidden}, {steps} steps"))
        }
        "mixture" => {
            let (n, d, k) = (pick(6, 1000, 10_000), pick(2, 4, 16), pick(3, 5, 25));
            let inputs = vec![
                a.array(&[n, d], 1, 0.0, 1.0),
                a.array(&[k, d], 2, 0.0, 1.0),
                a.array(&[k, d], 3, 0.0, 0.3),
                a.array(&[k], 4, 0.0, 0.5),
                loss(),
            ];
            (inputs, &["means", "scales", "weights"], format!("{n} points, {d} x {k}"))
        }
        "bundle" => {
            let (c, p, n) = (pick(2, 10, 50), pick(4, 500, 20_000), pick(7, 3000, 100_000));
            let inputs = vec![
                a.array(&[c, 5], 1, 1.0, 0.3),
                a.array(&[p, 3], 2, 2.0, 0.5),
                indices(&[n], |k| k * 7919 % c),
                indices(&[n], |k| k * 104_729 % p),
                a.array(&[n, 2], 3, 0.0, 1.0),
                loss(),
            ];
            (inputs, &["cameras", "points"], format!("{n} observations"))
        }
        "all_pairs" => {
            let (n, steps) = (pick(4, 128, 1024), pick(2, 20, 5));
            let inputs = vec![
                a.array(&[n, 3], 1, 0.0, 1.0),
                a.array(&[n, 3], 2, 0.0, 0.1),
                a.array(&[n], 3, 1.0, 0.5),
                count(steps),
                loss(),
            ];
            (inputs, &["x", "v", "m"], format!("{n} bodies, {steps} steps"))
        }
        "boltzmann" => {
            let (n, steps) = (pick(4, 32, 256), pick(2, 50, 20));
            let f = a.array(&[9, n, n], 1, 0.5, 0.05);
            (
                vec![f, a.zeros(&[9, n, n]), a.scalar(0.8), count(steps), loss()],
                &["f"],
                format!("{n}², {steps} steps"),
            )
        }
        "shallow_water" => {
            let (n, steps) = (pick(5, 48, 384), pick(3, 50, 20));
            let field = |salt, middle| a.array(&[n, n], salt, middle, 0.1);
            let mut inputs = vec![field(1, 1.0), field(2, 0.0), field(3, 0.0)];
            inputs.extend((0..3).map(|_| a.zeros(&[n, n])));
            inputs.extend([a.scalar(0.05), count(steps), loss()]);
            (inputs, &["h", "u", "v"], format!("{n}², {steps} steps"))
        }
        "heat" => {
            let (n, steps) = (pick(5, 16, 96), pick(3, 50, 10));
            let u = a.array(&[n, n, n], 1, 0.0, 0.5);
            let inputs = vec![u, a.zeros(&[n, n, n]), a.array(&[n, n, n], 2, 0.5, 0.2), count(steps), loss()];
            (inputs, &["u", "kappa"], format!("{n}³, {steps} steps"))
        }
        "gray_scott" => {
            let (n, steps) = (pick(5, 32, 256), pick(3, 50, 20));
            let inputs = vec![
                a.array(&[steps + 1, n, n], 1, 0.7, 0.2),
                a.array(&[steps + 1, n, n], 2, 0.3, 0.1),
                a.scalar(0.04),
                a.scalar(0.06),
                loss(),
            ];
            (inputs, &["u", "v", "feed", "kill"], format!("{n}², {steps} steps"))
        }
        "lorenz96" => {
            let (n, steps) = (pick(6, 40, 4000), pick(3, 200, 100));
            let seen = a.array(&[steps, n / 2], 2, 2.0, 3.0);
            (
                vec![a.array(&[n], 1, 2.0, 3.0), seen, count(steps), loss()],
                &["x"],
                format!("{n}, {steps} steps"),
            )
        }
        "particles" => {
            let (n, cells, steps) = (pick(6, 1000, 100_000), pick(8, 64, 10_000), pick(2, 20, 5));
            let spread = cells as f64 * 0.45;
            let inputs = vec![
                a.array(&[n], 1, cells as f64 / 2.0, spread),
                a.array(&[n], 2, 0.0, 0.1),
                a.zeros(&[cells]),
                count(steps),
                loss(),
            ];
            (inputs, &["x", "v"], format!("{n} in {cells} cells, {steps} steps"))
        }
        "sparse" => {
            let (n, row, steps) = (pick(6, 1000, 100_000), pick(3, 5, 7), pick(3, 50, 10));
            let inputs = vec![
                a.array(&[n], 1, 0.0, 1.0),
                a.zeros(&[n]),
                indices(&[n + 1], |k| k * row),
                indices(&[n * row], |k| (k / row + (k % row) * (k % row) * 3) % n),
                a.array(&[n * row], 2, 0.0, 0.5),
                count(steps),
                loss(),
            ];
            (inputs, &["x", "value"], format!("{n} rows of {row}, {steps} steps"))
        }
        _ => {
            let (n, steps) = (pick(5, 32, 256), pick(2, 20, 10));
            let u = a.array(&[n, n], 1, 0.5, 0.3);
            (vec![u, a.scalar(0.3), count(steps), loss()], &["u", "r"], format!("{n}², {steps} steps"))
        }
    };
    let program = if ty == Type::F32 { single_program(name)? } else { double_program(name)? };
    Ok(Problem { program, inputs, wrt, extents })
}

macro_rules! by_name {
    ($function:ident, $module:ident, $($program:ident)+) => {
        fn $function(name: &str) -> Result<Arc<Program>> {
            match name {
                $(stringify!($program) => Ok($module::$program().ir()?.clone()),)+
                _ => Err(format!("{name}: no such program").into()),
            }
        }
    };
}
by_name!(single_program, single, dense gru neural_ode mixture bundle all_pairs boltzmann shallow_water heat gray_scott lorenz96 particles sparse adi);
by_name!(double_program, double, dense gru neural_ode mixture bundle all_pairs boltzmann shallow_water heat gray_scott lorenz96 particles sparse adi);
