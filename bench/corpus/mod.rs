//! Programs of others in their natural form, each for f32 and f64: input a size, output a program of the language with its
//! arguments, what is differentiated, and by what. No program is written for the engine.

mod arguments;
mod code;
pub mod export;
pub mod measure;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use arguments::Arguments;
use ebbtide::ir::{Ordering, Program, Type};
use ebbtide_conformance::Input;
use measure::{On, Wish};

use crate::Result;

/// `[--arguments | --code] [--quick] [--only PROGRAM[/TYPE[/SIZE]]] [--threads N | --cuda] [--first-order] [--relaxed] [--together N]`:
/// the table, the arguments for peers, or the code for a GPU.
pub fn run(words: &[String]) -> Result<()> {
    let mut wish = Wish {
        only: None,
        at_least: Duration::from_secs(1),
        on: On::Cpu(1),
        second: true,
        ordering: Ordering::Ordered,
        together: 1,
    };
    let mut act: fn(&Wish) -> Result<()> = measure::table;
    let mut words = words.iter();
    while let Some(word) = words.next() {
        match word.as_str() {
            "--quick" => wish.at_least = Duration::from_millis(100),
            "--first-order" => wish.second = false,
            "--only" => wish.only = Some(words.next().ok_or("--only: which program?")?.clone()),
            "--threads" => wish.on = On::Cpu(words.next().ok_or("--threads: how many?")?.parse()?),
            "--cuda" => wish.on = On::Cuda,
            "--relaxed" => wish.ordering = Ordering::Relaxed,
            "--together" => wish.together = words.next().ok_or("--together: how many?")?.parse()?,
            "--arguments" => act = export::write,
            "--code" => act = code::write,
            other => return Err(format!("{other}: not known; see bench/README.md").into()),
        }
    }
    act(&wish)
}

/// All programs, over `Real`.
macro_rules! programs {
    ($module:ident, $real:ty) => {
        /// The programs over one type.
        #[allow(missing_docs, reason = "the files say it once for both")]
        pub mod $module {
            use ebbtide::library::{fft, ifft};
            use ebbtide::prelude::*;

            type Real = $real;
            include!("learning.rs");
            include!("physics.rs");
            include!("fluids.rs");
            include!("solids.rs");
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

impl Problem {
    /// The parameters by which it is differentiated.
    fn wrt(&self) -> Vec<String> {
        self.wrt.iter().map(|name| name.to_string()).collect()
    }
}

impl Size {
    fn pick<T>(self, tiny: T, small: T, large: T) -> T {
        match self {
            Size::Tiny => tiny,
            Size::Small => small,
            Size::Large => large,
        }
    }
}

/// A program with its arguments.
pub struct Problem {
    pub program: Arc<Program>,
    pub inputs: Vec<Input>,
    pub wrt: &'static [&'static str],
    /// Its extents, in words.
    pub extents: String,
}

macro_rules! corpus {
    ($($program:ident)+) => {
        /// The names of all programs.
        pub const NAMES: &[&str] = &[$(stringify!($program)),+];

        /// The program of this name over `ty`.
        pub fn problem(name: &str, ty: Type, size: Size) -> Result<Problem> {
            let (program, (inputs, wrt, extents)) = match name {
                $(stringify!($program) => {
                    let program = match ty {
                        Type::F32 => single::$program().ir()?.clone(),
                        _ => double::$program().ir()?.clone(),
                    };
                    (program, arguments::$program(&Arguments(ty), size))
                })+
                _ => return Err(format!("{name}: no such program").into()),
            };
            Ok(Problem { program, inputs, wrt, extents })
        }
    };
}
corpus! {
    dense gru lstm neural_ode mixture bundle
    all_pairs neighbours particles mpm elements cloth
    boltzmann shallow_water heat gray_scott lorenz96 elastic smoke
    sparse adi gauss_seidel lu split_step
}
