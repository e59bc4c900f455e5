//! The exponential family: `exp exp2 exp_m1 sinh cosh tanh`.
//!
//! All but `exp2` write `x = k ln 2 + r` with `|r| <= ln 2 / 2`, subtracting `k ln 2` in two parts by fused
//! operations (the first difference is exact), and take `e^r - 1 = r + r^2 Q(r)` with a polynomial `Q`.

use crate::arith::*;
use crate::ops::Ops;

/// (e^r - 1 - r) / r^2 for |r| <= ln 2 / 2; Chebyshev interpolation, degree 10, error 2^-60.01.
const EXP_F64: [f64; 11] = [
    0.5,
    0.1666666666666667,
    0.04166666666666667,
    0.008333333333326103,
    0.001388888888888285,
    0.00019841269874932267,
    2.4801587327956952e-05,
    2.7557255258680854e-06,
    2.7557271051767415e-07,
    2.510527587239053e-08,
    2.0915649262714515e-09,
];
/// The same for `f32`; Chebyshev interpolation, degree 5, error 2^-29.12.
const EXP_F32: [f64; 6] = [
    0.5,
    0.1666666716337204,
    0.041666463017463684,
    0.008333309553563595,
    0.0013933699810877442,
    0.00019891822012141347,
];
/// (2^r - 1) / r for |r| <= 1/2; Chebyshev interpolation, degree 10, error 2^-55.48.
const EXP2: [f64; 11] = [
    std::f64::consts::LN_2,
    0.24022650695910097,
    0.0555041086648216,
    0.009618129107606758,
    0.0013333558146415043,
    0.00015403530441955316,
    1.5252733832282715e-05,
    1.3215442454374248e-06,
    1.0178061178319138e-07,
    7.072612638382579e-09,
    4.4551871879601387e-10,
];

const LN_2_HIGH: f64 = std::f64::consts::LN_2;
const LN_2_LOW: f64 = 2.3190468138462996e-17;
const LN_2_HIGH_F32: f64 = std::f32::consts::LN_2 as f64;
const LN_2_LOW_F32: f64 = -1.9046542121259336e-09;
const LOG2_E_F32: f64 = std::f32::consts::LOG2_E as f64;

/// `e^x = 2^k (1 + r + tail)`.
pub(crate) struct Reduced<O: Ops> {
    /// The power of two, as a float.
    pub n: O::F,
    /// The power of two.
    pub k: O::I,
    /// The leading part of `e^r - 1`.
    pub r: O::F,
    /// What is missing from `r`.
    pub tail: O::F,
}

/// Reduces `x + x_low`, where `x_low` is small beside the last place of 1 or of `x`.
pub(crate) fn reduce<O: Ops>(o: &mut O, x: O::F, x_low: Option<O::F>) -> Reduced<O> {
    let (n, k) = nearest(o, x, by_format::<O, _>(LOG2_E_F32, std::f64::consts::LOG2_E));
    let high = o.float(by_format::<O, _>(LN_2_HIGH_F32, LN_2_HIGH));
    let low = o.float(by_format::<O, _>(LN_2_LOW_F32, LN_2_LOW));
    let t = o.fnma(n, high, x);
    let (r, r_low) = match x_low {
        Some(x_low) => {
            let rest = o.fnma(n, low, x_low);
            fast_two_sum(o, t, rest)
        }
        None => {
            let r = o.fnma(n, low, t);
            let off = o.sub(t, r);
            (r, o.fnma(n, low, off))
        }
    };
    let q = poly(o, r, by_format::<O, &[f64]>(&EXP_F32, &EXP_F64));
    let square = o.mul(r, r);
    let tail = o.fma(square, q, r_low);
    Reduced { n, k, r, tail }
}

/// `r` and the polynomial at it, for `x` less `n ln 2`; what rounding takes from `r` is lost.
fn reduce_by<O: Ops>(o: &mut O, x: O::F, n: O::F) -> (O::F, O::F) {
    let high = o.float(by_format::<O, _>(LN_2_HIGH_F32, LN_2_HIGH));
    let low = o.float(by_format::<O, _>(LN_2_LOW_F32, LN_2_LOW));
    let t = o.fnma(n, high, x);
    let r = o.fnma(n, low, t);
    (r, poly(o, r, by_format::<O, &[f64]>(&EXP_F32, &EXP_F64)))
}

/// As [`reduce`], but with `r` rounded and what rounding took from it lost.
fn reduce_plainly<O: Ops>(o: &mut O, x: O::F) -> Reduced<O> {
    let (n, k) = nearest(o, x, by_format::<O, _>(LOG2_E_F32, std::f64::consts::LOG2_E));
    let (r, q) = reduce_by(o, x, n);
    let square = o.mul(r, r);
    let tail = o.mul(square, q);
    Reduced { n, k, r, tail }
}

/// `1 + r + tail`
fn near_one<O: Ops>(o: &mut O, reduced: &Reduced<O>) -> O::F {
    let q = o.add(reduced.r, reduced.tail);
    shift(o, q, 1.0)
}

/// `e^x` for arguments whose result is at most infinite and at least zero twice over: `|x| < 1400` (`f64`),
/// `|x| < 170` (`f32`).
pub(crate) fn exp_bounded<O: Ops>(o: &mut O, x: O::F) -> O::F {
    let reduced = reduce_plainly(o, x);
    let y = near_one(o, &reduced);
    o.scale(y, reduced.n)
}

/// As [`exp_bounded`], of a sum.
pub(crate) fn exp_sum<O: Ops>(o: &mut O, x: O::F, x_low: O::F) -> O::F {
    let reduced = reduce(o, x, Some(x_low));
    let y = near_one(o, &reduced);
    o.scale(y, reduced.n)
}

/// The exponential function.
pub(crate) fn exp<O: Ops>(o: &mut O, x: O::F) -> O::F {
    let x = at_most(o, x, by_format::<O, _>(89.0, 710.0));
    let x = at_least(o, x, by_format::<O, _>(-104.0, -746.0));
    exp_bounded(o, x)
}

/// Two to the power of `x`; `f64` only.
pub(crate) fn exp2<O: Ops>(o: &mut O, x: O::F) -> O::F {
    let x = at_most(o, x, 1025.0);
    let x = at_least(o, x, -1080.0);
    let (n, _) = nearest(o, x, 1.0);
    let r = o.sub(x, n);
    let p = poly(o, r, &EXP2);
    let one = o.float(1.0);
    let y = o.fma(r, p, one);
    o.scale(y, n)
}

/// `(e^x - 1) / 2`, for `|x| < 710`; `f64` only.
fn half_exp_m1<O: Ops>(o: &mut O, reduced: &Reduced<O>) -> O::F {
    let one = o.int(1);
    let k = o.int_sub(reduced.k, one);
    let half_power = power_of_two(o, k);
    let rest = shift(o, half_power, -0.5);
    let high = o.fma(half_power, reduced.r, rest);
    o.fma(half_power, reduced.tail, high)
}

/// `e^x - 1`; `f64` only.
pub(crate) fn exp_m1<O: Ops>(o: &mut O, x: O::F) -> O::F {
    let bounded = at_most(o, x, 710.0);
    let bounded = at_least(o, bounded, -50.0);
    let reduced = reduce(o, bounded, None);
    let half = half_exp_m1(o, &reduced);
    let y = o.add(half, half);
    // Halving would lose the last bit of a subnormal number, and the sign of zero.
    let magnitude = o.abs(x);
    let tiny = is_below(o, magnitude, 1e-17);
    o.select(tiny, x, y)
}

/// Half of `e^x` for `0 <= x`, which overflows only where `cosh x` does; `f64` only.
fn half_exp<O: Ops>(o: &mut O, reduced: &Reduced<O>) -> O::F {
    let y = near_one(o, reduced);
    let n = shift(o, reduced.n, -1.0);
    o.scale(y, n)
}

/// The hyperbolic sine; `f64` only.
pub(crate) fn sinh<O: Ops>(o: &mut O, x: O::F) -> O::F {
    let magnitude = o.abs(x);
    let bounded = at_most(o, magnitude, 711.0);
    let reduced = reduce(o, bounded, None);
    // e^-x is lost beyond 40, where this would overflow early; below it, with h = (e^x - 1) / 2,
    // sinh x = h + h / (2 h + 1).
    let half = half_exp_m1(o, &reduced);
    let exp = o.add(half, half);
    let exp = shift(o, exp, 1.0);
    let inverse = o.div(half, exp);
    let near = o.add(half, inverse);
    let far = half_exp(o, &reduced);
    let large = is_above(o, magnitude, 40.0);
    let y = o.select(large, far, near);
    let tiny = is_below(o, magnitude, 1e-17);
    let y = o.select(tiny, magnitude, y);
    copy_sign(o, y, x)
}

/// The hyperbolic cosine; `f64` only.
pub(crate) fn cosh<O: Ops>(o: &mut O, x: O::F) -> O::F {
    let magnitude = o.abs(x);
    let bounded = at_most(o, magnitude, 711.0);
    let reduced = reduce(o, bounded, None);
    let half = half_exp(o, &reduced);
    let quarter = o.float(0.25);
    let inverse = o.div(quarter, half);
    o.add(half, inverse)
}

/// The hyperbolic tangent: `(e^2x - 1) / (e^2x + 1)`.
///
/// Of the numerator and the denominator the last rounding's error is kept, so that what remains is the error of
/// the reduced argument (half a last place where 2x leaves the first interval) and less. Time loops wait for every
/// operation of the chain from `x` to the result, so that it is kept short.
pub(crate) fn tanh<O: Ops>(o: &mut O, x: O::F) -> O::F {
    let magnitude = o.abs(x);
    let bounded = at_most(o, magnitude, by_format::<O, _>(10.0, 22.0));
    let twice = o.add(bounded, bounded);
    // The factor is doubled instead of the argument: the same number, an operation earlier.
    let (n, k) = nearest(o, bounded, 2.0 * by_format::<O, _>(LOG2_E_F32, std::f64::consts::LOG2_E));
    let (r, q) = reduce_by(o, twice, n);
    let power = power_of_two(o, k);
    let rest = shift(o, power, -1.0);
    let high = o.fma(power, r, rest);
    let square = o.mul(r, r);
    let square = o.mul(power, square);
    let numerator = o.fma(square, q, high);
    let off = o.sub(high, numerator);
    let low = o.fma(square, q, off);
    let two = o.float(2.0);
    let (denominator, off) = fast_two_sum(o, two, numerator);
    let denominator_low = o.add(off, low);
    let y = quotient(o, [numerator, low], [denominator, denominator_low]);
    let sign = sign_bit(o, x);
    flip_sign(o, y, sign)
}
