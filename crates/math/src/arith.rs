//! Small arithmetic that the functions share.

use crate::ops::{Format, Ops};

/// Where the bits of a format lie.
pub(crate) struct Layout {
    /// Bits of the stored fraction.
    pub fraction: u32,
    /// What is added to a number's exponent to store it.
    pub bias: i64,
    /// The sign bit alone, as the integer of the same width.
    pub sign: i64,
    /// 1.5 times two to the power of `fraction`: added to a small number, it leaves that number rounded to an
    /// integer (ties to even) in the low bits of the sum.
    pub magic: f64,
    /// The bits of `magic`.
    pub magic_bits: i64,
    /// The smallest normal number.
    pub min_normal: f64,
}

/// The layout of the format that `O` computes in.
pub(crate) fn layout<O: Ops>() -> &'static Layout {
    match O::FORMAT {
        Format::F64 => &Layout {
            fraction: 52,
            bias: 1023,
            sign: i64::MIN,
            magic: 6755399441055744.0,
            magic_bits: 0x4338_0000_0000_0000,
            min_normal: f64::MIN_POSITIVE,
        },
        Format::F32 => &Layout {
            fraction: 23,
            bias: 127,
            sign: i32::MIN as i64,
            magic: 12582912.0,
            magic_bits: 0x4b40_0000,
            min_normal: f32::MIN_POSITIVE as f64,
        },
    }
}

/// Two to the power of `k`, a normal `f64`.
pub(crate) fn two_to(k: i64) -> f64 {
    f64::from_bits(((k + 1023) << 52) as u64)
}

/// One of two values, by the format that `O` computes in.
pub(crate) fn by_format<O: Ops, T>(single: T, double: T) -> T {
    match O::FORMAT {
        Format::F32 => single,
        Format::F64 => double,
    }
}

/// The polynomial with these coefficients, lowest power first.
///
/// Even and odd powers are summed side by side (Horner in x^2): half the latency for one more product.
pub(crate) fn poly<O: Ops>(o: &mut O, x: O::F, coefficients: &[f64]) -> O::F {
    let square = o.mul(x, x);
    let even = horner(o, square, coefficients.iter().step_by(2));
    let odd = horner(o, square, coefficients.iter().skip(1).step_by(2));
    o.fma(odd, x, even)
}

/// The polynomial with these coefficients, lowest power first, by Horner's rule: the most accurate where they
/// alternate and x is near 1.
pub(crate) fn horner<'a, O: Ops>(
    o: &mut O,
    x: O::F,
    coefficients: impl DoubleEndedIterator<Item = &'a f64>,
) -> O::F {
    let mut sum = None;
    for &coefficient in coefficients.rev() {
        let coefficient = o.float(coefficient);
        sum = Some(match sum {
            None => coefficient,
            Some(sum) => o.fma(sum, x, coefficient),
        });
    }
    sum.unwrap_or_else(|| o.float(0.0))
}

/// `a * b + c` with constants `b` and `c`.
pub(crate) fn affine<O: Ops>(o: &mut O, a: O::F, b: f64, c: f64) -> O::F {
    let (b, c) = (o.float(b), o.float(c));
    o.fma(a, b, c)
}

/// `a * b` with a constant `b`.
pub(crate) fn scale<O: Ops>(o: &mut O, a: O::F, b: f64) -> O::F {
    let b = o.float(b);
    o.mul(a, b)
}

/// `a + b` with a constant `b`.
pub(crate) fn shift<O: Ops>(o: &mut O, a: O::F, b: f64) -> O::F {
    let b = o.float(b);
    o.add(a, b)
}

/// `a + b` rounded, and its rounding error exactly (Knuth).
pub(crate) fn two_sum<O: Ops>(o: &mut O, a: O::F, b: O::F) -> (O::F, O::F) {
    let sum = o.add(a, b);
    let b_in = o.sub(sum, a);
    let a_in = o.sub(sum, b_in);
    let b_off = o.sub(b, b_in);
    let a_off = o.sub(a, a_in);
    (sum, o.add(a_off, b_off))
}

/// `a + b` rounded, and its rounding error exactly where `a` is zero or a multiple of the last place of `b`, as it
/// is where its exponent is not below that of `b` (Dekker).
pub(crate) fn fast_two_sum<O: Ops>(o: &mut O, a: O::F, b: O::F) -> (O::F, O::F) {
    let sum = o.add(a, b);
    let off = o.sub(a, sum);
    (sum, o.add(off, b))
}

/// `a * b` rounded, and its rounding error exactly.
pub(crate) fn two_product<O: Ops>(o: &mut O, a: O::F, b: O::F) -> (O::F, O::F) {
    let product = o.mul(a, b);
    let negative = o.neg(product);
    (product, o.fma(a, b, negative))
}

/// The nearest integer to `a * factor`, as a float and as an integer; exact below 2^50 (`f64`) or 2^21
/// (`f32`) in magnitude.
pub(crate) fn nearest<O: Ops>(o: &mut O, a: O::F, factor: f64) -> (O::F, O::I) {
    let l = layout::<O>();
    let sum = affine(o, a, factor, l.magic);
    let rounded = shift(o, sum, -l.magic);
    let bits = o.bits(sum);
    let magic_bits = o.int(l.magic_bits);
    (rounded, o.int_sub(bits, magic_bits))
}

/// A small integer as a float, exactly: below 2^50 (`f64`) or 2^21 (`f32`) in magnitude.
pub(crate) fn small_to_float<O: Ops>(o: &mut O, a: O::I) -> O::F {
    let l = layout::<O>();
    let magic_bits = o.int(l.magic_bits);
    let sum = o.int_add(a, magic_bits);
    let sum = o.of_bits(sum);
    shift(o, sum, -l.magic)
}

/// Two to the power of `k`, which must be a normal number.
pub(crate) fn power_of_two<O: Ops>(o: &mut O, k: O::I) -> O::F {
    let l = layout::<O>();
    let bias = o.int(l.bias);
    let biased = o.int_add(k, bias);
    let bits = o.shl(biased, l.fraction);
    o.of_bits(bits)
}

/// [`Ops::scale`] by other operations: two factors, because one may not be a normal number. The first product is
/// exact.
pub(crate) fn load_exponent<O: Ops>(o: &mut O, a: O::F, n: O::F) -> O::F {
    let l = layout::<O>();
    let sum = shift(o, n, l.magic);
    let bits = o.bits(sum);
    let magic_bits = o.int(l.magic_bits);
    let k = o.int_sub(bits, magic_bits);
    let first = o.sar(k, 1);
    let second = o.int_sub(k, first);
    let (first, second) = (power_of_two(o, first), power_of_two(o, second));
    let scaled = o.mul(a, first);
    o.mul(scaled, second)
}

/// `(numerator + numerator_low) / (denominator + denominator_low)` for a normal positive denominator below 2^100,
/// good to the last place; faster than a division where that has no pipeline.
///
/// An estimate of the inverse from the exponent and fraction bits (error 2^-4.3), improved by a step of fourth order
/// (2^-17.2) and for `f64` by one of second order (2^-34.4); the quotient's residual, taken exactly, squares the error
/// once more. The orders are those that make the shortest chain.
pub(crate) fn quotient<O: Ops>(o: &mut O, numerator: [O::F; 2], denominator: [O::F; 2]) -> O::F {
    let [n, n_low] = numerator;
    let [d, d_low] = denominator;
    let one = o.float(1.0);
    let bits = o.bits(d);
    let seed = o.int(by_format::<O, _>(0x7ef3_11c2, 0x7fde_6238_5962_c7ca));
    let estimate = o.int_sub(seed, bits);
    let estimate = o.of_bits(estimate);
    let error = o.fnma(d, estimate, one);
    let square = o.mul(error, error);
    let estimate = o.fma(estimate, error, estimate);
    let inverse = o.fma(estimate, square, estimate);
    let inverse = match O::FORMAT {
        Format::F32 => inverse,
        Format::F64 => {
            let error = o.fnma(d, inverse, one);
            o.fma(inverse, error, inverse)
        }
    };
    let q = o.mul(n, inverse);
    let low = o.fnma(q, d_low, n_low);
    let residual = o.fnma(q, d, n);
    let residual = o.add(residual, low);
    o.fma(residual, inverse, q)
}

/// The sign bit of `a`, the others cleared.
pub(crate) fn sign_bit<O: Ops>(o: &mut O, a: O::F) -> O::I {
    let bits = o.bits(a);
    let sign = o.int(layout::<O>().sign);
    o.int_and(bits, sign)
}

/// `a` with its bits combined with `sign` by exclusive or.
pub(crate) fn flip_sign<O: Ops>(o: &mut O, a: O::F, sign: O::I) -> O::F {
    let bits = o.bits(a);
    let bits = o.int_xor(bits, sign);
    o.of_bits(bits)
}

/// The magnitude of `a` with the sign of `sign`.
pub(crate) fn copy_sign<O: Ops>(o: &mut O, a: O::F, sign: O::F) -> O::F {
    let magnitude = o.abs(a);
    let sign = sign_bit(o, sign);
    flip_sign(o, magnitude, sign)
}

/// `a`, at most `high`; NaN stays.
pub(crate) fn at_most<O: Ops>(o: &mut O, a: O::F, high: f64) -> O::F {
    let high = o.float(high);
    o.lesser(high, a)
}

/// `a`, at least `low`; NaN stays.
pub(crate) fn at_least<O: Ops>(o: &mut O, a: O::F, low: f64) -> O::F {
    let low = o.float(low);
    o.greater(low, a)
}

/// `a < b` with a constant `b`.
pub(crate) fn is_below<O: Ops>(o: &mut O, a: O::F, b: f64) -> O::B {
    let b = o.float(b);
    o.lt(a, b)
}

/// `a > b` with a constant `b`.
pub(crate) fn is_above<O: Ops>(o: &mut O, a: O::F, b: f64) -> O::B {
    let b = o.float(b);
    o.lt(b, a)
}

/// `a == b` with a constant `b`.
pub(crate) fn is<O: Ops>(o: &mut O, a: O::F, b: f64) -> O::B {
    let b = o.float(b);
    o.eq(a, b)
}

/// `yes`, a constant, where the condition holds, `no` elsewhere.
pub(crate) fn select_constant<O: Ops>(o: &mut O, condition: O::B, yes: f64, no: O::F) -> O::F {
    let yes = o.float(yes);
    o.select(condition, yes, no)
}
