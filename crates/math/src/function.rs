//! The functions by name.

use std::fmt;

use crate::kernel::Trig;
use crate::native::{Native32, Native64};
use crate::ops::{Format, Ops};
use crate::{Kernel, MathError, basic, erf, exp, inverse, log, pow, trig};

/// A function from one or two floats to a float of the same format.
///
/// Each means what the method of that name on `f64` and `f32` means in Rust's standard library, special values
/// and signed zeros included; NaN gives NaN unless said otherwise. [`Function::Erf`] is the error function.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Function {
    /// The sine of an angle in radians.
    Sin,
    /// The cosine of an angle in radians.
    Cos,
    /// The tangent of an angle in radians.
    Tan,
    /// The arc sine.
    Asin,
    /// The arc cosine.
    Acos,
    /// The arc tangent.
    Atan,
    /// `atan2(y, x)`: the angle of the point (x, y).
    Atan2,
    /// The hyperbolic sine.
    Sinh,
    /// The hyperbolic cosine.
    Cosh,
    /// The hyperbolic tangent.
    Tanh,
    /// `e^x`
    Exp,
    /// `2^x`
    Exp2,
    /// `e^x - 1`, accurate near zero.
    ExpM1,
    /// The natural logarithm.
    Ln,
    /// `ln(1 + x)`, accurate near zero.
    Ln1p,
    /// The logarithm to the base 2.
    Log2,
    /// The logarithm to the base 10.
    Log10,
    /// `x^y`, special values as IEEE 754's `pow`: `x^0` and `1^y` are 1 even where the other is NaN.
    Powf,
    /// The square root.
    Sqrt,
    /// The cube root.
    Cbrt,
    /// `sqrt(x^2 + y^2)`; infinite where an argument is, even if the other is NaN.
    Hypot,
    /// The error function, 2 / sqrt(pi) times the integral of e^(-t^2) from 0 to x.
    Erf,
    /// The magnitude.
    Abs,
    /// The smaller of two numbers. If one is NaN, the other; `min(-0, +0)` is -0 in either order.
    Min,
    /// The larger of two numbers. If one is NaN, the other; `max(-0, +0)` is +0 in either order.
    Max,
    /// The largest integral number not above x.
    Floor,
    /// The smallest integral number not below x.
    Ceil,
    /// The nearest integral number, ties away from zero.
    Round,
    /// The integral part.
    Trunc,
}

impl Function {
    /// Every function.
    pub const ALL: [Function; 29] = [
        Function::Sin,
        Function::Cos,
        Function::Tan,
        Function::Asin,
        Function::Acos,
        Function::Atan,
        Function::Atan2,
        Function::Sinh,
        Function::Cosh,
        Function::Tanh,
        Function::Exp,
        Function::Exp2,
        Function::ExpM1,
        Function::Ln,
        Function::Ln1p,
        Function::Log2,
        Function::Log10,
        Function::Powf,
        Function::Sqrt,
        Function::Cbrt,
        Function::Hypot,
        Function::Erf,
        Function::Abs,
        Function::Min,
        Function::Max,
        Function::Floor,
        Function::Ceil,
        Function::Round,
        Function::Trunc,
    ];

    /// The name of the method in Rust's standard library.
    pub fn name(self) -> &'static str {
        match self {
            Function::Sin => "sin",
            Function::Cos => "cos",
            Function::Tan => "tan",
            Function::Asin => "asin",
            Function::Acos => "acos",
            Function::Atan => "atan",
            Function::Atan2 => "atan2",
            Function::Sinh => "sinh",
            Function::Cosh => "cosh",
            Function::Tanh => "tanh",
            Function::Exp => "exp",
            Function::Exp2 => "exp2",
            Function::ExpM1 => "exp_m1",
            Function::Ln => "ln",
            Function::Ln1p => "ln_1p",
            Function::Log2 => "log2",
            Function::Log10 => "log10",
            Function::Powf => "powf",
            Function::Sqrt => "sqrt",
            Function::Cbrt => "cbrt",
            Function::Hypot => "hypot",
            Function::Erf => "erf",
            Function::Abs => "abs",
            Function::Min => "min",
            Function::Max => "max",
            Function::Floor => "floor",
            Function::Ceil => "ceil",
            Function::Round => "round",
            Function::Trunc => "trunc",
        }
    }

    /// The function of this name.
    pub fn from_name(name: &str) -> Option<Function> {
        Function::ALL.into_iter().find(|function| function.name() == name)
    }

    /// How many arguments it takes: one or two.
    pub fn arity(self) -> usize {
        match self {
            Function::Atan2 | Function::Powf | Function::Hypot | Function::Min | Function::Max => 2,
            _ => 1,
        }
    }

    /// Computes, or prints, the function of these arguments.
    ///
    /// # Errors
    ///
    /// [`MathError::WrongArguments`] if their number is not [`Function::arity`].
    pub fn emit<O: Ops>(self, o: &mut O, args: &[O::F]) -> Result<O::F, MathError> {
        if O::FORMAT == Format::F32 && self.is_widened() && args.len() == self.arity() {
            return Ok(o.widened(Kernel::Function(self), args));
        }
        Ok(match (self, args) {
            (Function::Sin, &[x]) => trig::trig(o, Trig::Sin, x),
            (Function::Cos, &[x]) => trig::trig(o, Trig::Cos, x),
            (Function::Tan, &[x]) => trig::trig(o, Trig::Tan, x),
            (Function::Asin, &[x]) => inverse::asin(o, x),
            (Function::Acos, &[x]) => inverse::acos(o, x),
            (Function::Atan, &[x]) => inverse::atan(o, x),
            (Function::Atan2, &[y, x]) => inverse::atan2(o, y, x),
            (Function::Sinh, &[x]) => exp::sinh(o, x),
            (Function::Cosh, &[x]) => exp::cosh(o, x),
            (Function::Tanh, &[x]) => exp::tanh(o, x),
            (Function::Exp, &[x]) => exp::exp(o, x),
            (Function::Exp2, &[x]) => exp::exp2(o, x),
            (Function::ExpM1, &[x]) => exp::exp_m1(o, x),
            (Function::Ln, &[x]) => log::ln(o, x),
            (Function::Ln1p, &[x]) => log::ln_1p(o, x),
            (Function::Log2, &[x]) => log::log2(o, x),
            (Function::Log10, &[x]) => log::log10(o, x),
            (Function::Powf, &[x, y]) => pow::powf(o, x, y),
            (Function::Sqrt, &[x]) => o.sqrt(x),
            (Function::Cbrt, &[x]) => basic::cbrt(o, x),
            (Function::Hypot, &[x, y]) => basic::hypot(o, x, y),
            (Function::Erf, &[x]) => erf::erf(o, x),
            (Function::Abs, &[x]) => o.abs(x),
            (Function::Min, &[x, y]) => basic::min(o, x, y),
            (Function::Max, &[x, y]) => basic::max(o, x, y),
            (Function::Floor, &[x]) => o.floor(x),
            (Function::Ceil, &[x]) => o.ceil(x),
            (Function::Round, &[x]) => basic::round(o, x),
            (Function::Trunc, &[x]) => o.trunc(x),
            _ => {
                let kernel = Kernel::Function(self);
                return Err(MathError::WrongArguments { kernel, floats: args.len(), ints: 0 });
            }
        })
    }

    /// The value in `f64`.
    ///
    /// # Errors
    ///
    /// [`MathError::WrongArguments`] if the number of arguments is not [`Function::arity`].
    ///
    /// ```
    /// use ebbtide_math::Function;
    /// assert_eq!(Function::Powf.eval_f64(&[2.0, 10.0])?, 1024.0);
    /// # Ok::<(), ebbtide_math::MathError>(())
    /// ```
    pub fn eval_f64(self, args: &[f64]) -> Result<f64, MathError> {
        self.emit(&mut Native64, args)
    }

    /// The value in `f32`.
    ///
    /// # Errors
    ///
    /// [`MathError::WrongArguments`] if the number of arguments is not [`Function::arity`].
    pub fn eval_f32(self, args: &[f32]) -> Result<f32, MathError> {
        self.emit(&mut Native32, args)
    }

    /// Whether the `f32` function is the `f64` one, its arguments widened and its result rounded. The others
    /// have an `f32` form of their own, which is faster.
    fn is_widened(self) -> bool {
        match self {
            Function::Tan
            | Function::Asin
            | Function::Acos
            | Function::Atan
            | Function::Atan2
            | Function::Sinh
            | Function::Cosh
            | Function::Exp2
            | Function::ExpM1
            | Function::Ln1p
            | Function::Log2
            | Function::Log10
            | Function::Cbrt
            | Function::Hypot
            | Function::Erf => true,
            Function::Sin
            | Function::Cos
            | Function::Tanh
            | Function::Exp
            | Function::Ln
            | Function::Powf
            | Function::Sqrt
            | Function::Abs
            | Function::Min
            | Function::Max
            | Function::Floor
            | Function::Ceil
            | Function::Round
            | Function::Trunc => false,
        }
    }
}

impl fmt::Display for Function {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
