//! The derivative of every operation, in one table.
//!
//! At ties and kinks: `abs` has slope 0 at 0, and so have `norm` and `hypot`; `min` and `max` of equal values pass the derivative to
//! their first argument (`min_assign` and `max_assign` share it equally, see `extremes`); of a number and NaN to the
//! number. Roundings, comparisons, integers and casts from or to integers have derivative zero.

use ebbtide_ir::{Binary, Compare, Function, Op, Type, Unary, ValueId};

use crate::writer::Writer;

/// How a result depends on one operand.
pub(crate) enum Partial {
    /// The derivative is one.
    One,
    /// The derivative is minus one.
    MinusOne,
    /// The derivative is this value.
    Factor(ValueId),
    /// One where the condition holds, zero elsewhere.
    Where(ValueId),
    /// Zero where the condition holds, one elsewhere.
    Unless(ValueId),
    /// One, between float types.
    Cast,
}

/// The operands of `op` that its result depends on smoothly, and how. `a`, `b`, `c` are its operands and `y` its
/// result, as values of the program being written.
pub(crate) fn partials(w: &mut Writer, op: Op, y: ValueId) -> Vec<(usize, Partial)> {
    let ty = w.ty(y);
    match op {
        Op::Unary(Unary::Neg, _) => vec![(0, Partial::MinusOne)],
        Op::Unary(Unary::Sqrt, _) => {
            let half = w.real(ty, 0.5);
            vec![(0, Partial::Factor(w.div(half, y)))]
        }
        Op::Unary(Unary::Norm, _) => {
            // Flat at the tip of the cone, as `hypot` is.
            let (zero, half) = (w.real(ty, 0.0), w.real(ty, 0.5));
            let tip = w.compare(Compare::Eq, y, zero);
            let slope = w.div(half, y);
            vec![(0, Partial::Factor(w.select(tip, zero, slope)))]
        }
        Op::Unary(Unary::Abs, a) => {
            let (zero, one, minus) = (w.real(ty, 0.0), w.real(ty, 1.0), w.real(ty, -1.0));
            let (above, below) = (w.compare(Compare::Gt, a, zero), w.compare(Compare::Lt, a, zero));
            let sign = w.select(below, minus, zero);
            vec![(0, Partial::Factor(w.select(above, one, sign)))]
        }
        Op::Binary(op, a, b) => binary(w, op, a, b, y),
        Op::Select(c, ..) => vec![(1, Partial::Where(c)), (2, Partial::Unless(c))],
        Op::Fma(a, b, _) => vec![(0, Partial::Factor(b)), (1, Partial::Factor(a)), (2, Partial::One)],
        Op::Cast(a) if w.ty(a).is_float() => {
            vec![(0, if w.ty(a) == ty { Partial::One } else { Partial::Cast })]
        }
        Op::Math(f, a, b) => math(w, f, a, b, y),
        _ => Vec::new(),
    }
}

/// Does something flow through the operation to its operands? [`partials`] says how.
pub(crate) fn is_smooth(op: &Op) -> bool {
    match op {
        Op::Unary(op, _) => matches!(op, Unary::Neg | Unary::Sqrt | Unary::Norm | Unary::Abs),
        Op::Binary(..) | Op::Select(..) | Op::Fma(..) | Op::Cast(_) | Op::Math(..) => true,
        _ => false,
    }
}

fn binary(w: &mut Writer, op: Binary, a: ValueId, b: ValueId, y: ValueId) -> Vec<(usize, Partial)> {
    match op {
        Binary::Add => vec![(0, Partial::One), (1, Partial::One)],
        Binary::Sub => vec![(0, Partial::One), (1, Partial::MinusOne)],
        Binary::Mul => vec![(0, Partial::Factor(b)), (1, Partial::Factor(a))],
        Binary::Div => {
            let one = w.real(w.ty(y), 1.0);
            let inverse = w.div(one, b);
            let quotient = w.mul(y, inverse);
            vec![(0, Partial::Factor(inverse)), (1, Partial::Factor(w.neg(quotient)))]
        }
        Binary::Rem => {
            let quotient = w.div(a, b);
            let whole = w.unary(Unary::Trunc, quotient);
            vec![(0, Partial::One), (1, Partial::Factor(w.neg(whole)))]
        }
        Binary::Min | Binary::Max => {
            let wins = if op == Binary::Min { Compare::Le } else { Compare::Ge };
            let (first, missing) = (w.compare(wins, a, b), w.compare(Compare::Ne, b, b));
            let first = w.value(Op::Binary(Binary::Or, first, missing), Type::Bool);
            vec![(0, Partial::Where(first)), (1, Partial::Unless(first))]
        }
        _ => Vec::new(),
    }
}

/// Partial derivatives of each elementary function, in terms of its arguments `a` and `b` and its result `y`.
///
/// It is a table with a row for each function, and so it is as long as there are functions: a reader looks one up, and the compiler
/// names the row that is missing for a new one.
fn math(w: &mut Writer, f: Function, a: ValueId, b: ValueId, y: ValueId) -> Vec<(usize, Partial)> {
    use Function::*;
    let ty = w.ty(y);
    let one = w.real(ty, 1.0);
    // 1 - x²
    let beside_square = |w: &mut Writer, x| {
        let square = w.mul(x, x);
        w.sub(one, square)
    };
    let scaled = |w: &mut Writer, scale: f64, x| {
        let scale = w.real(ty, scale);
        w.mul(scale, x)
    };
    let factor = match f {
        Sin => w.math(Cos, a),
        Cos => {
            let sin = w.math(Sin, a);
            w.neg(sin)
        }
        Tan => {
            let square = w.mul(y, y);
            w.add(one, square)
        }
        Asin | Acos => {
            let rest = beside_square(w, a);
            let root = w.unary(Unary::Sqrt, rest);
            let numerator = if f == Asin { one } else { w.real(ty, -1.0) };
            w.div(numerator, root)
        }
        Atan => {
            let square = w.mul(a, a);
            let sum = w.add(one, square);
            w.div(one, sum)
        }
        Sinh => w.math(Cosh, a),
        Cosh => w.math(Sinh, a),
        // From the result: nothing more to compute.
        Tanh => beside_square(w, y),
        Exp => y,
        Exp2 => scaled(w, std::f64::consts::LN_2, y),
        ExpM1 => w.add(y, one),
        Ln => w.div(one, a),
        Ln1p => {
            let sum = w.add(one, a);
            w.div(one, sum)
        }
        Log2 | Log10 => {
            let scale = if f == Log2 { std::f64::consts::LN_2 } else { std::f64::consts::LN_10 };
            let scaled = scaled(w, scale, a);
            w.div(one, scaled)
        }
        Cbrt => {
            let square = w.mul(y, y);
            let three = scaled(w, 3.0, square);
            w.div(one, three)
        }
        Erf => {
            let square = w.mul(a, a);
            let negative = w.neg(square);
            let bell = w.math(Exp, negative);
            scaled(w, std::f64::consts::FRAC_2_SQRT_PI, bell)
        }
        Hypot => {
            // Flat at the tip of the cone, as `abs` is at 0.
            let zero = w.real(ty, 0.0);
            let tip = w.compare(Compare::Eq, y, zero);
            let (x, z) = (w.div(a, y), w.div(b, y));
            let (x, z) = (w.select(tip, zero, x), w.select(tip, zero, z));
            return vec![(0, Partial::Factor(x)), (1, Partial::Factor(z))];
        }
        Atan2 => {
            // Flat at the origin, where it has no slope (law 13). The square of the length would leave the range of floats
            // before the slopes do.
            let length = w.math2(Hypot, a, b);
            let zero = w.real(ty, 0.0);
            let tip = w.compare(Compare::Eq, length, zero);
            let minus = w.neg(a);
            let [x, z] = [b, minus].map(|side| {
                let cosine = w.div(side, length);
                let slope = w.div(cosine, length);
                w.select(tip, zero, slope)
            });
            return vec![(0, Partial::Factor(x)), (1, Partial::Factor(z))];
        }
        Powf => {
            let less = w.sub(b, one);
            let lower = w.math2(Powf, a, less);
            let lower = finite_at_zero(w, b, lower);
            let x = w.mul(b, lower);
            let zero = w.real(ty, 0.0);
            // 0^b does not depend on b where it is zero, although ln 0 is infinite.
            let flat = w.compare(Compare::Eq, y, zero);
            let ln = w.math(Ln, a);
            let z = w.mul(y, ln);
            let z = w.select(flat, zero, z);
            return vec![(0, Partial::Factor(x)), (1, Partial::Factor(z))];
        }
        Powi => {
            let one_less = w.value(Op::Literal(ebbtide_ir::Literal::from(1i32)), Type::I32);
            let less = w.sub(b, one_less);
            let lower = w.math2(Powi, a, less);
            let n = w.cast(b, ty);
            let x = w.mul(n, lower);
            flat_at_zero(w, b, x)
        }
    };
    vec![(0, Partial::Factor(factor))]
}

/// `a^(b - 1)` in the slope `b · a^(b - 1)` of a power: at `b = 0` that slope is zero whatever `a` is, so what is not
/// finite becomes zero there. The slope still depends on `b`: its own derivative at `b = 0` is `1 / a`.
fn finite_at_zero(w: &mut Writer, exponent: ValueId, lower: ValueId) -> ValueId {
    if w.program.literal(exponent).is_some_and(|literal| literal.to_f64() != 0.0) {
        return lower;
    }
    let zero = w.real(w.ty(lower), 0.0);
    let nothing = w.compare(Compare::Eq, exponent, zero);
    let difference = w.sub(lower, lower);
    let infinite = w.compare(Compare::Ne, difference, zero);
    let broken = w.value(Op::Binary(Binary::And, nothing, infinite), Type::Bool);
    w.select(broken, zero, lower)
}

/// The slope of a power: a^0 is 1 everywhere, although 0 · 0^-1 is no number. An exponent that is seen not to be zero needs
/// no test.
fn flat_at_zero(w: &mut Writer, exponent: ValueId, slope: ValueId) -> ValueId {
    if w.program.literal(exponent).is_some_and(|literal| literal.to_f64() != 0.0) {
        return slope;
    }
    let ty = w.ty(exponent);
    let nothing = w.value(Op::Literal(ebbtide_ir::Literal::of(ty, 0.0)), ty);
    let flat = w.compare(Compare::Eq, exponent, nothing);
    let zero = w.real(w.ty(slope), 0.0);
    w.select(flat, zero, slope)
}

/// What flows back to an operand whose result has cotangent `bar`.
pub(crate) fn pull(w: &mut Writer, partial: &Partial, bar: ValueId, operand_type: Type) -> ValueId {
    let ty = w.ty(bar);
    let flowing = match *partial {
        Partial::One => return bar,
        Partial::MinusOne => w.neg(bar),
        Partial::Factor(factor) => return w.scaled(bar, factor),
        // An arm that is not taken contributes nothing, whatever it holds.
        Partial::Where(c) => {
            let zero = w.real(ty, 0.0);
            let part = w.select(c, bar, zero);
            return w.mask_arm(part, bar, |_| c);
        }
        Partial::Unless(c) => {
            let zero = w.real(ty, 0.0);
            let part = w.select(c, zero, bar);
            return w.mask_arm(part, bar, |w| w.unary(Unary::Not, c));
        }
        Partial::Cast => w.cast(bar, operand_type),
    };
    w.mask_like(flowing, bar)
}

/// Does the derivative of this operation need the values of its operands or of its result?
pub(crate) fn is_linear(op: &Op) -> bool {
    matches!(
        op,
        Op::Unary(Unary::Neg, _)
            | Op::Binary(Binary::Add | Binary::Sub, ..)
            | Op::Cast(_)
            | Op::Load(..)
            | Op::Get(_)
    )
}
