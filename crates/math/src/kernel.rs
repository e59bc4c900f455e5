//! What a printer has to be able to define: the public functions and the parts they call out of line.

use std::fmt;

use crate::function::Function;
use crate::ops::{Format, Ops};
use crate::{MathError, huge, pow, random};

/// A trigonometric function.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Trig {
    /// The sine.
    Sin,
    /// The cosine.
    Cos,
    /// The tangent.
    Tan,
}

impl Trig {
    /// The function for all arguments.
    pub fn function(self) -> Function {
        match self {
            Trig::Sin => Function::Sin,
            Trig::Cos => Function::Cos,
            Trig::Tan => Function::Tan,
        }
    }
}

/// A function that stands on its own in printed text: floats first, then integers of the same width.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Kernel {
    /// One of the public functions.
    Function(Function),
    /// `powi(x; n)`: `x^n` for an integer `n` in the range of `i32`.
    Powi,
    /// `rand(; seed, index)`: see [`rand_f64`](crate::rand_f64). Only in the format `F64`.
    Random,
    /// `rand(; seed, index)` for `f32`: a number with 24 bits, in the format `F64` (rounding it to `f32` is
    /// exact). See [`rand_f32`](crate::rand_f32).
    RandomSingle,
    /// The function of a huge number, an infinity or NaN. Only in the format `F64`, one number at a time.
    Huge(Trig),
    /// `powf(x, y)` as `f32` needs it, computed in the format `F64`.
    PowfSingle,
    /// `powi(x, h, l)`: `x^(4096 h + l)` as `f32` needs it, computed in the format `F64`.
    PowiSingle,
}

impl Kernel {
    /// The most floats that any kernel takes.
    pub const MAX_FLOATS: usize = 3;

    /// A name that is an identifier, unique among kernels.
    pub fn name(self) -> String {
        match self {
            Kernel::Function(function) => function.name().to_owned(),
            Kernel::Powi => "powi".to_owned(),
            Kernel::Random => "rand".to_owned(),
            Kernel::RandomSingle => "rand_single".to_owned(),
            Kernel::Huge(trig) => format!("{}_huge", trig.function().name()),
            Kernel::PowfSingle => "powf_single".to_owned(),
            Kernel::PowiSingle => "powi_single".to_owned(),
        }
    }

    /// How many floats it takes.
    pub fn floats(self) -> usize {
        match self {
            Kernel::Function(function) => function.arity(),
            Kernel::Powi | Kernel::Huge(_) => 1,
            Kernel::Random | Kernel::RandomSingle => 0,
            Kernel::PowfSingle => 2,
            Kernel::PowiSingle => 3,
        }
    }

    /// How many integers it takes, after the floats.
    pub fn ints(self) -> usize {
        match self {
            Kernel::Powi => 1,
            Kernel::Random | Kernel::RandomSingle => 2,
            _ => 0,
        }
    }

    /// Whether it exists in this format.
    pub fn exists_in(self, format: Format) -> bool {
        match self {
            Kernel::Function(_) | Kernel::Powi => true,
            _ => format == Format::F64,
        }
    }

    /// Computes, or prints, the kernel.
    ///
    /// # Errors
    ///
    /// [`MathError::WrongArguments`] if the numbers of arguments are not [`Kernel::floats`] and
    /// [`Kernel::ints`]; [`MathError::WrongFormat`] if the kernel does not exist in the format.
    pub fn emit<O: Ops>(self, o: &mut O, floats: &[O::F], ints: &[O::I]) -> Result<O::F, MathError> {
        if !self.exists_in(O::FORMAT) {
            return Err(MathError::WrongFormat { kernel: self });
        }
        Ok(match (self, floats, ints) {
            (Kernel::Function(function), args, []) => function.emit(o, args)?,
            (Kernel::Powi, &[x], &[n]) => pow::powi(o, x, n),
            (Kernel::Random, [], &[seed, index]) => random::rand(o, seed, index),
            (Kernel::RandomSingle, [], &[seed, index]) => random::rand_single(o, seed, index),
            (Kernel::Huge(trig), &[x], []) => huge::trig(o, trig, x),
            (Kernel::PowfSingle, &[x, y], []) => pow::powf_single(o, x, y),
            (Kernel::PowiSingle, &[x, high, low], []) => pow::powi_single(o, x, high, low),
            _ => {
                return Err(MathError::WrongArguments {
                    kernel: self,
                    floats: floats.len(),
                    ints: ints.len(),
                });
            }
        })
    }
}

impl fmt::Display for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name())
    }
}
