//! The derivatives of each operation, from mathematics; at kinks and ties from law 13.
//!
//! Partial derivatives are duals of the operands, so that the table has the second derivatives too.

use std::f64::consts::{FRAC_2_SQRT_PI, LN_2, LN_10};

use ebbtide_ir::{Binary, Function, Unary};

use super::dual::{Dual, power_by_exponent};

fn one() -> Dual {
    Dual::constant(1.0)
}

/// A slope that does not move with the operand: zero at the kink, say.
fn zero() -> Dual {
    Dual::constant(0.0)
}

/// The slope of an operation on one float.
pub fn unary(op: Unary, x: Dual) -> Dual {
    match op {
        Unary::Neg => Dual::constant(-1.0),
        Unary::Abs | Unary::Norm if x.value == 0.0 => zero(),
        Unary::Abs => Dual::constant(x.value.signum()),
        Unary::Sqrt | Unary::Norm => Dual::constant(0.5) / x.sqrt(),
        Unary::Not | Unary::Floor | Unary::Ceil | Unary::Round | Unary::Trunc => zero(),
    }
}

/// The slopes of an operation on two floats, but for minima and maxima, which are one of their operands.
pub fn binary(op: Binary, x: Dual, y: Dual, result: f64) -> [Dual; 2] {
    match op {
        Binary::Add => [one(), one()],
        Binary::Sub => [one(), Dual::constant(-1.0)],
        Binary::Mul => [y, x],
        Binary::Div => [one() / y, -x / (y * y)],
        // x - q · y, where q is a whole number that does not move.
        Binary::Rem => [one(), Dual::constant(-((x.value - result) / y.value).round())],
        _ => [zero(), zero()],
    }
}

/// The slopes of `a * b + c`.
pub fn fma(a: Dual, b: Dual) -> [Dual; 3] {
    [b, a, one()]
}

/// The slopes of an elementary function; the second one is that of its second float argument.
pub fn function(f: Function, x: Dual, y: Dual) -> [Dual; 2] {
    let number = Dual::constant;
    let slope = match f {
        Function::Sin => x.cos(),
        Function::Cos => -x.sin(),
        Function::Tan => one() + x.tan() * x.tan(),
        Function::Asin => one() / (one() - x * x).sqrt(),
        Function::Acos => -(one() / (one() - x * x).sqrt()),
        Function::Atan => one() / (one() + x * x),
        Function::Sinh => x.cosh(),
        Function::Cosh => x.sinh(),
        Function::Tanh => one() - x.tanh() * x.tanh(),
        Function::Exp | Function::ExpM1 => x.exp(),
        Function::Exp2 => number(LN_2) * (number(LN_2) * x).exp(),
        Function::Ln => one() / x,
        Function::Ln1p => one() / (one() + x),
        Function::Log2 => one() / (number(LN_2) * x),
        Function::Log10 => one() / (number(LN_10) * x),
        Function::Cbrt => one() / (number(3.0) * x.cbrt() * x.cbrt()),
        Function::Erf => number(FRAC_2_SQRT_PI) * (-(x * x)).exp(),
        Function::Atan2 | Function::Hypot if x.value == 0.0 && y.value == 0.0 => return [zero(), zero()],
        Function::Atan2 => {
            // Of y.atan2(x): the first argument is the ordinate.
            let square = x * x + y * y;
            return [y / square, -x / square];
        }
        Function::Hypot => {
            let h = x.hypot(y);
            return [x / h, y / h];
        }
        Function::Powf => return [power_by_base(x, y), power_by_its_exponent(x, y)],
        Function::Powi => power_by_base(x, y),
    };
    [slope, zero()]
}

fn power_by_base(x: Dual, y: Dual) -> Dual {
    // An exponent of zero makes the slope zero, however steep the other factor: zero wins in products of duals.
    y * x.powf(y - one())
}

fn power_by_its_exponent(x: Dual, y: Dual) -> Dual {
    if x.value == 0.0 {
        return Dual::constant(power_by_exponent(x.value, y.value));
    }
    x.powf(y) * x.ln()
}
