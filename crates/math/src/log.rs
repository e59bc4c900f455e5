//! Logarithms: `ln ln_1p log2 log10`.
//!
//! `x = 2^k (1 + f)` with `1 + f` in [2/3, 4/3), so that `f` and `k` never cancel badly, and
//! `ln(1 + f) = f + f^2 L(f)` with a polynomial `L`: more terms than after a division, and faster than one.

use crate::arith::*;
use crate::ops::Ops;

/// (ln(1 + f) - f) / f^2 for |f| <= 1/3; Chebyshev interpolation, degree 19, error 2^-55.56.
const LN_F64: [f64; 20] = [
    -0.49999999999999994,
    0.3333333333333333,
    -0.2500000000000762,
    0.20000000000006854,
    -0.1666666666440897,
    0.14285714283628848,
    -0.12500000258764513,
    0.11111111352994263,
    -0.09999984981938535,
    0.09090894955064444,
    -0.08333832018654941,
    0.07692779284489064,
    -0.07132835034194532,
    0.06657156096697735,
    -0.06373435320740385,
    0.05999809080264301,
    -0.04654477434321618,
    0.04403804862682387,
    -0.0846781274423026,
    0.08075205365223176,
];
/// The same for `f32`; Chebyshev interpolation, degree 9, error 2^-28.45.
const LN_F32: [f64; 10] = [
    -0.5,
    0.3333333432674408,
    -0.24999840557575226,
    0.19999855756759644,
    -0.16677981615066528,
    0.14296099543571472,
    -0.12221230566501617,
    0.10854355990886688,
    -0.12726950645446777,
    0.11607439070940018,
];

/// The first 42 bits (`f32`: 16) of ln 2: a product with an exponent is exact.
const LN_2_HIGH: f64 = 0.6931471805598903;
const LN_2_LOW: f64 = 5.497923018708371e-14;
const LN_2_HIGH_F32: f64 = 0.693145751953125;
const LN_2_LOW_F32: f64 = 1.428606765330187e-06;
const LOG2_E_HIGH: f64 = std::f64::consts::LOG2_E;
const LOG2_E_LOW: f64 = 2.0355273740931033e-17;
const LOG10_E_HIGH: f64 = std::f64::consts::LOG10_E;
const LOG10_E_LOW: f64 = 1.098319650216765e-17;
/// The first 42 bits of log10(2): a product with an exponent is exact.
const LOG10_2_HIGH: f64 = 0.30102999566395283;
const LOG10_2_LOW: f64 = 2.8363394551044964e-14;

/// `x = 2^k (1 + f)`
pub(crate) struct Split<O: Ops> {
    /// The exponent, an integral number.
    pub k: O::F,
    /// `1 + f`
    pub m: O::F,
}

/// Splits a positive normal number so that `m` lies in `[low, 2 low)`, where `low_bits` are the bits of a
/// number between 1/2 and 1.
pub(crate) fn split_normal<O: Ops>(o: &mut O, x: O::F, low_bits: i64) -> Split<O> {
    let l = layout::<O>();
    // (x - low) + 2^62 is not negative, so that its exponent field is the exponent plus a known constant.
    let offset = (l.bias + 1) << l.fraction;
    let bits = o.bits(x);
    let offset_from_low = o.int(offset - low_bits);
    let moved = o.int_add(bits, offset_from_low);
    let exponent = o.shr(moved, l.fraction);
    let fraction_mask = o.int((1 << l.fraction) - 1);
    let fraction = o.int_and(moved, fraction_mask);
    let low_bits = o.int(low_bits);
    let m = o.int_add(fraction, low_bits);
    let m = o.of_bits(m);
    let magic_bits = o.int(l.magic_bits);
    let sum = o.int_add(exponent, magic_bits);
    let sum = o.of_bits(sum);
    let k = shift(o, sum, -(l.magic + (l.bias + 1) as f64));
    Split { k, m }
}

/// As [`split_normal`], for every positive number.
pub(crate) fn split<O: Ops>(o: &mut O, x: O::F, low_bits: i64) -> Split<O> {
    let l = layout::<O>();
    let up = i64::from(l.fraction) + 2;
    let subnormal = is_below(o, x, l.min_normal);
    let scaled = scale(o, x, two_to(up));
    let x = o.select(subnormal, scaled, x);
    let parts = split_normal(o, x, low_bits);
    let lower = shift(o, parts.k, -(up as f64));
    Split { k: o.select(subnormal, lower, parts.k), m: parts.m }
}

/// The bits of 2/3.
pub(crate) fn two_thirds<O: Ops>() -> i64 {
    by_format::<O, _>(0x3f2a_aaab, 0x3fe5_5555_5555_5555)
}

/// `ln(1 + f) - f`
fn ln_tail<O: Ops>(o: &mut O, f: O::F) -> O::F {
    let l = poly(o, f, by_format::<O, &[f64]>(&LN_F32, &LN_F64));
    let square = o.mul(f, f);
    o.mul(square, l)
}

/// `k ln 2 + ln(1 + f) + extra`
fn assemble<O: Ops>(o: &mut O, k: O::F, f: O::F, extra: Option<O::F>) -> O::F {
    let high = o.float(by_format::<O, _>(LN_2_HIGH_F32, LN_2_HIGH));
    let low = o.float(by_format::<O, _>(LN_2_LOW_F32, LN_2_LOW));
    let l = poly(o, f, by_format::<O, &[f64]>(&LN_F32, &LN_F64));
    let square = o.mul(f, f);
    let rest = match extra {
        Some(extra) => o.fma(k, low, extra),
        None => o.mul(k, low),
    };
    // Either k is 0 or its product is the larger.
    let whole = o.mul(k, high);
    let (leading, off) = fast_two_sum(o, whole, f);
    let rest = o.add(rest, off);
    let rest = o.fma(square, l, rest);
    o.add(leading, rest)
}

/// Gives `y`, a logarithm of `x` where `x` is positive and finite, its values elsewhere.
fn with_edges<O: Ops>(o: &mut O, x: O::F, y: O::F) -> O::F {
    let finite = is_below(o, x, f64::INFINITY);
    let y = o.select(finite, y, x);
    let negative = is_below(o, x, 0.0);
    let y = select_constant(o, negative, f64::NAN, y);
    let zero = is(o, x, 0.0);
    select_constant(o, zero, f64::NEG_INFINITY, y)
}

/// The natural logarithm.
pub(crate) fn ln<O: Ops>(o: &mut O, x: O::F) -> O::F {
    let Split { k, m } = split(o, x, two_thirds::<O>());
    let f = shift(o, m, -1.0);
    let y = assemble(o, k, f, None);
    with_edges(o, x, y)
}

/// `ln(1 + x)`; `f64` only.
pub(crate) fn ln_1p<O: Ops>(o: &mut O, x: O::F) -> O::F {
    let one = o.float(1.0);
    let (sum, low) = two_sum(o, x, one);
    let Split { k, m } = split(o, sum, two_thirds::<O>());
    // Where 1 + x needs no power of two, f is x itself; elsewhere what 1 + x lost is put back to first order:
    // ln(s + low) = ln s + low / s, and 1 / s = 2^-k / m with 1 / m = 2 - m up to a ninth.
    let unscaled = is(o, k, 0.0);
    let f = shift(o, m, -1.0);
    let f = o.select(unscaled, x, f);
    let scale_back = o.div(m, sum);
    let inverse = o.float(2.0);
    let inverse = o.sub(inverse, m);
    let low = o.mul(low, scale_back);
    let low = o.mul(low, inverse);
    let low = select_constant(o, unscaled, 0.0, low);
    let y = assemble(o, k, f, Some(low));
    let y = with_edges(o, sum, y);
    let zero = is(o, x, 0.0);
    o.select(zero, x, y)
}

/// `k * base + (f + tail) * factor` where `k * base.0` is exact, in double-double up to the last addition.
fn in_base<O: Ops>(o: &mut O, x: O::F, base: (f64, f64), factor: (f64, f64)) -> O::F {
    let Split { k, m } = split(o, x, two_thirds::<O>());
    let f = shift(o, m, -1.0);
    let tail = ln_tail(o, f);
    let (factor_high, factor_low) = (o.float(factor.0), o.float(factor.1));
    let (product, product_low) = two_product(o, f, factor_high);
    let whole = scale(o, k, base.0);
    let (high, high_low) = two_sum(o, whole, product);
    let base_low = o.float(base.1);
    let low = o.fma(k, base_low, product_low);
    let low = o.fma(f, factor_low, low);
    let low = o.add(low, high_low);
    let low = o.fma(tail, factor_high, low);
    let y = o.add(high, low);
    with_edges(o, x, y)
}

/// The logarithm to the base 2; `f64` only.
pub(crate) fn log2<O: Ops>(o: &mut O, x: O::F) -> O::F {
    in_base(o, x, (1.0, 0.0), (LOG2_E_HIGH, LOG2_E_LOW))
}

/// The logarithm to the base 10; `f64` only.
pub(crate) fn log10<O: Ops>(o: &mut O, x: O::F) -> O::F {
    in_base(o, x, (LOG10_2_HIGH, LOG10_2_LOW), (LOG10_E_HIGH, LOG10_E_LOW))
}
