//! `powf` and `powi`.

use crate::arith::*;
use crate::exp::exp_sum;
use crate::kernel::Kernel;
use crate::log::{Split, split, split_normal, two_thirds};
use crate::ops::{Format, Ops};

/// log2(1 + f) / f for |f| <= 1/3; Chebyshev interpolation, degree 13, error 2^-38.33.
const LOG2_SINGLE: [f64; 14] = [
    1.4426950408924788,
    -0.7213475204474761,
    0.4808983438661924,
    -0.360673757400592,
    0.2885394517272128,
    -0.24044958316292328,
    0.20607558985224883,
    -0.1803148513051731,
    0.1608978936913899,
    -0.1448278078925805,
    0.12350937337365908,
    -0.11307415054036167,
    0.1577025401862336,
    -0.14683329137747886,
];
/// (2^r - 1) / r for |r| <= 1/2; Chebyshev interpolation, degree 6, error 2^-33.26.
const EXP2_SINGLE: [f64; 7] = [
    0.6931471805597746,
    0.2402265092331806,
    0.05550410885624661,
    0.009618056459082503,
    0.0013333500039487255,
    0.00015461532413808056,
    1.5298087106390556e-05,
];
/// (2 atanh(s) - 2 s - 2/3 s^3) / s^5 in z = s^2, |s| <= 0.1716; Chebyshev interpolation, degree 7, error 2^-66.35.
const LN_TAIL: [f64; 8] = [
    0.4,
    0.2857142857142937,
    0.22222222221654905,
    0.18181818335614963,
    0.1538459493878595,
    0.13334805984350834,
    0.11706201787634496,
    0.11723539872227069,
];

/// The first 42 bits of ln 2: a product with an exponent is exact.
const LN_2_HIGH: f64 = 0.6931471805598903;
const LN_2_LOW: f64 = 5.497923018708371e-14;
const TWO_THIRDS_HIGH: f64 = 2.0 / 3.0;
const TWO_THIRDS_LOW: f64 = 3.700743415417188e-17;
/// The bits of the square root of 1/2.
const SQRT_HALF_BITS: i64 = 0x3fe6_a09e_667f_3bcd;

/// `x` to the power of `y`.
pub(crate) fn powf<O: Ops>(o: &mut O, x: O::F, y: O::F) -> O::F {
    match O::FORMAT {
        Format::F64 => {
            let magnitude = o.abs(x);
            let power = finite_power(o, magnitude, y);
            with_edges(o, x, y, power)
        }
        Format::F32 => o.widened(Kernel::PowfSingle, &[x, y]),
    }
}

/// `x` to the power of `y` for numbers that come from `f32`, in `f64` and good to 2^-30; subnormal results and
/// overflow are left to the rounding to `f32`.
pub(crate) fn powf_single<O: Ops>(o: &mut O, x: O::F, y: O::F) -> O::F {
    let magnitude = o.abs(x);
    let Split { k, m } = split_normal(o, magnitude, two_thirds::<O>());
    let f = shift(o, m, -1.0);
    let p = poly(o, f, &LOG2_SINGLE);
    let log = o.fma(f, p, k);
    let exponent = o.mul(y, log);
    let exponent = at_most(o, exponent, 200.0);
    let exponent = at_least(o, exponent, -200.0);
    let (n, k) = nearest(o, exponent, 1.0);
    let r = o.sub(exponent, n);
    let p = poly(o, r, &EXP2_SINGLE);
    let one = o.float(1.0);
    let near_one = o.fma(r, p, one);
    let power = power_of_two(o, k);
    let power = o.mul(near_one, power);
    with_edges(o, x, y, power)
}

/// `x^n` for an `x` from `f32` and `n = 4096 high + low`.
pub(crate) fn powi_single<O: Ops>(o: &mut O, x: O::F, high: O::F, low: O::F) -> O::F {
    let unit = o.float(4096.0);
    let n = o.fma(high, unit, low);
    powf_single(o, x, n)
}

/// `x^n` for an integer `n` of 32 bits.
///
/// For n from -2 to 4 products of `x` or of `1 / x`, else as [`powf`].
pub(crate) fn powi<O: Ops>(o: &mut O, x: O::F, n: O::I) -> O::F {
    let general = match O::FORMAT {
        Format::F64 => {
            let n = small_to_float(o, n);
            powf(o, x, n)
        }
        Format::F32 => {
            let mask = o.int(4095);
            let (high, low) = (o.sar(n, 12), o.int_and(n, mask));
            let (high, low) = (small_to_float(o, high), small_to_float(o, low));
            o.widened(Kernel::PowiSingle, &[x, high, low])
        }
    };
    let mut y = general;
    for small in SMALL_POWERS {
        let candidate = small_power(o, x, small);
        let small = o.int(small);
        let equal = o.int_eq(n, small);
        y = o.select(equal, candidate, y);
    }
    y
}

/// The exponents that [`powi`] takes by products.
const SMALL_POWERS: std::ops::RangeInclusive<i64> = -2..=4;

/// `x^n` for a constant `n`: the bits of [`powi`], and only the operations that this `n` needs.
pub(crate) fn powi_constant<O: Ops>(o: &mut O, x: O::F, n: i32) -> O::F {
    if SMALL_POWERS.contains(&i64::from(n)) {
        return small_power(o, x, i64::from(n));
    }
    match O::FORMAT {
        Format::F64 => {
            let n = o.float(f64::from(n));
            powf(o, x, n)
        }
        Format::F32 => {
            let (high, low) = (o.float(f64::from(n >> 12)), o.float(f64::from(n & 4095)));
            o.widened(Kernel::PowiSingle, &[x, high, low])
        }
    }
}

fn small_power<O: Ops>(o: &mut O, x: O::F, n: i64) -> O::F {
    let one = o.float(1.0);
    let base = if n < 0 { o.div(one, x) } else { x };
    match n.unsigned_abs() {
        0 => one,
        1 => base,
        2 => o.mul(base, base),
        3 => {
            let square = o.mul(base, base);
            o.mul(square, base)
        }
        _ => {
            let square = o.mul(base, base);
            o.mul(square, square)
        }
    }
}

/// `x^y` for positive finite `x` and finite `y`, in `f64`: `e^(y ln x)` with the logarithm in double-double.
///
/// `ln m = 2 s + 2/3 s^3 + s^5 W(s^2)` with `s = (m - 1) / (m + 1)`; the first two terms carry a low part, so
/// the relative error of the logarithm is about 2^-64, and `y ln x`, at most 745, is good to 2^-54.
fn finite_power<O: Ops>(o: &mut O, x: O::F, y: O::F) -> O::F {
    let (log, log_low) = ln_double(o, x);
    let (product, product_low) = two_product(o, y, log);
    let product_low = o.fma(y, log_low, product_low);
    let size = o.abs(product);
    let in_range = is_below(o, size, 800.0);
    let zero = o.float(0.0);
    let product_low = o.select(in_range, product_low, zero);
    let product = at_most(o, product, 800.0);
    let product = at_least(o, product, -800.0);
    exp_sum(o, product, product_low)
}

/// The natural logarithm of a positive finite number as an unevaluated sum.
fn ln_double<O: Ops>(o: &mut O, x: O::F) -> (O::F, O::F) {
    let Split { k, m } = split(o, x, SQRT_HALF_BITS);
    let one = o.float(1.0);
    let f = o.sub(m, one);
    let (g, g_low) = two_sum(o, m, one);
    let inverse = o.div(one, g);
    let s = o.mul(f, inverse);
    let rest = o.fnma(s, g, f);
    let rest = o.fnma(s, g_low, rest);
    let s_low = o.mul(rest, inverse);
    // z = s^2, c = s^3, d = 2/3 s^3
    let (z, z_low) = two_product(o, s, s);
    let twice = o.add(s, s);
    let twice_low = o.add(s_low, s_low);
    let z_low = o.fma(twice, s_low, z_low);
    let (c, c_low) = two_product(o, z, s);
    let c_low = o.fma(z, s_low, c_low);
    let c_low = o.fma(z_low, s, c_low);
    let (two_thirds, two_thirds_low) = (o.float(TWO_THIRDS_HIGH), o.float(TWO_THIRDS_LOW));
    let (d, d_low) = two_product(o, c, two_thirds);
    let d_low = o.fma(c, two_thirds_low, d_low);
    let d_low = o.fma(c_low, two_thirds, d_low);
    let w = poly(o, z, &LN_TAIL);
    let fifth = o.mul(c, z);
    let tail = o.fma(fifth, w, d_low);
    let tail = o.add(tail, twice_low);
    let (high, off) = fast_two_sum(o, twice, d);
    let tail = o.add(tail, off);
    let whole = scale(o, k, LN_2_HIGH);
    let (high, off) = two_sum(o, whole, high);
    let ln_2_low = o.float(LN_2_LOW);
    let low = o.fma(k, ln_2_low, off);
    let low = o.add(low, tail);
    fast_two_sum(o, high, low)
}

/// Gives `power`, which is `|x|^y` where `x` is not zero and both are finite, its sign, and its values
/// elsewhere, as IEEE 754's `pow`.
fn with_edges<O: Ops>(o: &mut O, x: O::F, y: O::F, power: O::F) -> O::F {
    let (magnitude, y_magnitude) = (o.abs(x), o.abs(y));
    // Zero and infinite bases, and infinite exponents: infinite or zero.
    let (zero, infinite) = (is(o, magnitude, 0.0), is(o, magnitude, f64::INFINITY));
    let y_infinite = is(o, y_magnitude, f64::INFINITY);
    let edge = o.or(zero, infinite);
    let edge = o.or(edge, y_infinite);
    let (above_one, y_negative) = (is_above(o, magnitude, 1.0), is_below(o, y, 0.0));
    let (no_growth, no_decay) = (o.not(above_one), o.not(y_negative));
    let grows = o.and(above_one, no_decay);
    let shrinks_back = o.and(no_growth, y_negative);
    let grows = o.or(grows, shrinks_back);
    let nothing = o.float(0.0);
    let limit = select_constant(o, grows, f64::INFINITY, nothing);
    let power = o.select(edge, limit, power);
    let one = is(o, magnitude, 1.0);
    let stays = o.and(one, y_infinite);
    let power = select_constant(o, stays, 1.0, power);
    // Negative bases.
    let whole = o.trunc(y);
    let integral = o.eq(whole, y);
    let half = scale(o, y, 0.5);
    let whole_half = o.trunc(half);
    let even = o.eq(whole_half, half);
    let odd = o.not(even);
    let odd = o.and(integral, odd);
    let negative = flip_sign_of(o, x, power);
    let power = o.select(odd, negative, power);
    let below_zero = is_below(o, x, 0.0);
    let finite = o.not(infinite);
    let fractional = o.not(integral);
    let undefined = o.and(below_zero, finite);
    let undefined = o.and(undefined, fractional);
    let power = select_constant(o, undefined, f64::NAN, power);
    // NaN, but not with an exponent 0 or a base 1.
    let (x_is_number, y_is_number) = (o.eq(x, x), o.eq(y, y));
    let numbers = o.and(x_is_number, y_is_number);
    let sum = o.add(x, y);
    let power = o.select(numbers, power, sum);
    let (zeroth, of_one) = (is(o, y, 0.0), is(o, x, 1.0));
    let unit = o.or(zeroth, of_one);
    select_constant(o, unit, 1.0, power)
}

/// `a` with the sign of `x` put onto it.
fn flip_sign_of<O: Ops>(o: &mut O, x: O::F, a: O::F) -> O::F {
    let sign = sign_bit(o, x);
    flip_sign(o, a, sign)
}
