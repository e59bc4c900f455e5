//! Roots, and what is so simple that it needs no file of its own.

use crate::arith::*;
use crate::ops::Ops;

/// x^(-1/3) for 1 <= x <= 2; Chebyshev interpolation, degree 4, error 2^-14.51.
const INVERSE_CBRT: [f64; 5] =
    [1.666193815583104, -1.1621499952226304, 0.6843872724085929, -0.21623747052871894, 0.027761313073476408];

/// 2^(-1/3) and 2^(-2/3)
const INVERSE_CBRT_2: f64 = 0.7937005259840998;
const INVERSE_CBRT_4: f64 = 0.6299605249474366;

/// The cube root; `f64` only.
///
/// `|x| = m 2^j 8^q` with m in [1, 2) and j in 0, 1, 2. A polynomial estimate `t` of the inverse cube root of
/// `m 2^j` good to 2^-14 becomes good to the last bits by one step of fourth order, and a last Newton step on
/// the root itself, its residual exact, leaves little more than the final rounding.
pub(crate) fn cbrt<O: Ops>(o: &mut O, x: O::F) -> O::F {
    let magnitude = o.abs(x);
    let subnormal = is_below(o, magnitude, f64::MIN_POSITIVE);
    let up = scale(o, magnitude, 18014398509481984.0);
    let a = o.select(subnormal, up, magnitude);
    let bits = o.bits(a);
    let biased = o.shr(bits, 52);
    let mask = o.int((1 << 52) - 1);
    let exponent_of_one = o.int(1023 << 52);
    let fraction = o.int_and(bits, mask);
    let m = o.int_or(fraction, exponent_of_one);
    let m = o.of_bits(m);
    // 1023 is a multiple of 3, so the biased exponent may be divided as it is.
    let biased = small_to_float(o, biased);
    let less_one = shift(o, biased, -1.0);
    let (third, q) = nearest(o, less_one, 1.0 / 3.0);
    let minus_three = o.float(-3.0);
    let j = o.fma(third, minus_three, biased);
    let (one_left, two_left) = (is(o, j, 1.0), is(o, j, 2.0));
    let one = o.float(1.0);
    let factor = select_constant(o, one_left, 2.0, one);
    let factor = select_constant(o, two_left, 4.0, factor);
    let inverse_factor = select_constant(o, one_left, INVERSE_CBRT_2, one);
    let inverse_factor = select_constant(o, two_left, INVERSE_CBRT_4, inverse_factor);
    let estimate = poly(o, m, &INVERSE_CBRT);
    let t = o.mul(estimate, inverse_factor);
    let m = o.mul(m, factor);
    // t (1 - e)^(-1/3) with e = 1 - m t^3
    let square = o.mul(t, t);
    let cube = o.mul(square, t);
    let e = o.fnma(m, cube, one);
    let series = poly(o, e, &[1.0 / 3.0, 2.0 / 9.0, 14.0 / 81.0]);
    let te = o.mul(t, e);
    let t = o.fma(te, series, t);
    let square = o.mul(t, t);
    let root = o.mul(m, square);
    let (root_square, root_square_low) = two_product(o, root, root);
    let minus_m = o.neg(m);
    let residual = o.fma(root_square, root, minus_m);
    let residual = o.fma(root_square_low, root, residual);
    let slope = scale(o, square, -1.0 / 3.0);
    let root = o.fma(residual, slope, root);
    let bias = o.int(341);
    let q = o.int_sub(q, bias);
    let power = power_of_two(o, q);
    let y = o.mul(root, power);
    let down = scale(o, y, 1.0 / 262144.0);
    let y = o.select(subnormal, down, y);
    let positive = is_above(o, magnitude, 0.0);
    let finite = is_below(o, magnitude, f64::INFINITY);
    let regular = o.and(positive, finite);
    let y = o.select(regular, y, magnitude);
    copy_sign(o, y, x)
}

/// `sqrt(x^2 + y^2)` without undue overflow or underflow; infinite where one argument is. `f64` only.
pub(crate) fn hypot<O: Ops>(o: &mut O, x: O::F, y: O::F) -> O::F {
    let (x, y) = (o.abs(x), o.abs(y));
    let smaller = o.lt(x, y);
    let a = o.select(smaller, y, x);
    let b = o.select(smaller, x, y);
    let (up, down) = (two_to(600), two_to(-600));
    let (large, small) = (is_above(o, a, two_to(500)), is_below(o, a, two_to(-500)));
    let one = o.float(1.0);
    let factor = select_constant(o, large, down, one);
    let factor = select_constant(o, small, up, factor);
    let back = select_constant(o, large, up, one);
    let back = select_constant(o, small, down, back);
    let (a, b) = (o.mul(a, factor), o.mul(b, factor));
    let (square, square_low) = two_product(o, b, b);
    let sum = o.fma(a, a, square);
    let sum = o.add(sum, square_low);
    let root = o.sqrt(sum);
    let length = o.mul(root, back);
    let (x_infinite, y_infinite) = (is(o, x, f64::INFINITY), is(o, y, f64::INFINITY));
    let infinite = o.or(x_infinite, y_infinite);
    select_constant(o, infinite, f64::INFINITY, length)
}

/// The nearest integral number, ties away from zero.
pub(crate) fn round<O: Ops>(o: &mut O, x: O::F) -> O::F {
    // The largest number below 1/2: with 1/2 itself the sum of it and its neighbour below would round up to 1.
    let half = o.float(by_format::<O, _>(f64::from(0.5f32.next_down()), 0.5f64.next_down()));
    let half = copy_sign(o, half, x);
    let sum = o.add(x, half);
    let whole = o.trunc(sum);
    copy_sign(o, whole, x)
}

/// The smaller of two numbers, or the one that is not NaN; -0 is smaller than +0.
pub(crate) fn min<O: Ops>(o: &mut O, a: O::F, b: O::F) -> O::F {
    let below = o.lt(a, b);
    let smaller = choose(o, below, a, b);
    let (a_bits, b_bits) = (o.bits(a), o.bits(b));
    let either = o.int_or(a_bits, b_bits);
    same_or(o, a, b, either, smaller)
}

/// The larger of two numbers, or the one that is not NaN; +0 is larger than -0.
pub(crate) fn max<O: Ops>(o: &mut O, a: O::F, b: O::F) -> O::F {
    let above = o.lt(b, a);
    let larger = choose(o, above, a, b);
    let (a_bits, b_bits) = (o.bits(a), o.bits(b));
    let both = o.int_and(a_bits, b_bits);
    same_or(o, a, b, both, larger)
}

/// `a` where `first` holds or `b` is NaN, else `b`.
fn choose<O: Ops>(o: &mut O, first: O::B, a: O::F, b: O::F) -> O::F {
    let b_is_number = o.eq(b, b);
    let b_is_nan = o.not(b_is_number);
    let first = o.or(first, b_is_nan);
    o.select(first, a, b)
}

/// The number with `bits` where `a` equals `b` (they differ at most in the sign of zero), else `different`.
fn same_or<O: Ops>(o: &mut O, a: O::F, b: O::F, bits: O::I, different: O::F) -> O::F {
    let equal = o.eq(a, b);
    let same = o.of_bits(bits);
    o.select(equal, same, different)
}
