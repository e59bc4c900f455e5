//! Sine, cosine and tangent.
//!
//! `x = n pi/2 + r` with pi/2 in three parts of full precision (Cody and Waite, with fused operations). The
//! first difference `x - n P1` is exact, because it is a multiple of the last place of `P1` and below 1; the
//! second part is subtracted with its errors kept; so `r` is good to its last place and more even where it is
//! as small as the format allows. Beyond the limits below `huge` takes over.

use crate::arith::*;
use crate::kernel::{Kernel, Trig};
use crate::ops::{Format, Ops};

/// (sin r - r) / r^3 in z = r^2, |r| <= pi / 4; Chebyshev interpolation, degree 5, error 2^-55.44.
const SIN_F64: [f64; 6] = [
    -0.16666666666666666,
    0.008333333333330932,
    -0.00019841269836735098,
    2.7557316090383383e-06,
    -2.505112931043102e-08,
    1.5917946807578214e-10,
];
/// (cos r - 1 + z / 2) / z^2 in z = r^2, |r| <= pi / 4; Chebyshev interpolation, degree 5, error 2^-59.83.
const COS_F64: [f64; 6] = [
    0.041666666666666664,
    -0.0013888888888887387,
    2.4801587298751e-05,
    -2.7557317264117053e-07,
    2.087614468280689e-09,
    -1.1382518262999098e-11,
];
/// The sine for `f32`; Chebyshev interpolation, degree 2, error 2^-26.22.
const SIN_F32: [f64; 3] = [-0.166666641831398, 0.008332747034728527, -0.00019587563292589039];
/// The cosine for `f32`; Chebyshev interpolation, degree 2, error 2^-30.31.
const COS_F32: [f64; 3] = [0.0416666641831398, -0.0013888301327824593, 2.4547613065806217e-05];

/// Above, the three parts of pi/2 are too short: the error n * 2^-160 has to stay below the smallest `|r|` of
/// any `f64`, about 2^-61, by 60 bits.
const LIMIT_F64: f64 = 68719476736.0;
/// Above, the three parts of pi/2 in `f32` are too short.
const LIMIT_F32: f64 = 65536.0;

const PI_2_F64: [f64; 3] = [std::f64::consts::FRAC_PI_2, 6.123233995736766e-17, -1.4973849048591698e-33];
const PI_2_F32: [f64; 3] = [1.5707963705062866, -4.371138828673793e-08, -1.7151245100058819e-15];

/// An angle less a multiple of pi/2.
pub(crate) struct Reduced<O: Ops> {
    /// The multiple; its two lowest bits count.
    pub quadrant: O::I,
    /// The rest, in magnitude at most pi/4.
    pub r: O::F,
    /// What rounding took from `r`.
    pub r_low: O::F,
}

fn reduce<O: Ops>(o: &mut O, x: O::F) -> Reduced<O> {
    let two_over_pi = by_format::<O, _>(std::f32::consts::FRAC_2_PI as f64, std::f64::consts::FRAC_2_PI);
    let parts = by_format::<O, _>(PI_2_F32, PI_2_F64).map(|part| o.float(-part));
    let (n, quadrant) = nearest(o, x, two_over_pi);
    let t = o.fma(n, parts[0], x);
    let product = o.mul(n, parts[1]);
    let product_off = o.fnma(n, parts[1], product);
    // However small t is, it is a multiple of the last place of the product.
    let (r, r_low) = fast_two_sum(o, t, product);
    let r_low = o.sub(r_low, product_off);
    Reduced { quadrant, r, r_low: o.fma(n, parts[2], r_low) }
}

/// The sine of `r + r_low`.
fn sin_near<O: Ops>(o: &mut O, a: &Reduced<O>) -> O::F {
    let z = o.mul(a.r, a.r);
    let s = poly(o, z, by_format::<O, &[f64]>(&SIN_F32, &SIN_F64));
    let cube = o.mul(z, a.r);
    let rest = o.fma(cube, s, a.r_low);
    o.add(a.r, rest)
}

/// The cosine of `r + r_low`.
fn cos_near<O: Ops>(o: &mut O, a: &Reduced<O>) -> O::F {
    let z = o.mul(a.r, a.r);
    let c = poly(o, z, by_format::<O, &[f64]>(&COS_F32, &COS_F64));
    let (minus_half, one) = (o.float(-0.5), o.float(1.0));
    let high = o.fma(z, minus_half, one);
    let off = o.sub(one, high);
    let off = o.fma(z, minus_half, off);
    let low = o.fnma(a.r, a.r_low, off);
    let square = o.mul(z, z);
    let rest = o.fma(square, c, low);
    o.add(high, rest)
}

/// Whether the quadrant is odd.
fn is_odd<O: Ops>(o: &mut O, quadrant: O::I) -> O::B {
    let one = o.int(1);
    let low = o.int_and(quadrant, one);
    o.int_eq(low, one)
}

/// The sign bit where the second bit of the quadrant is set.
fn quadrant_sign<O: Ops>(o: &mut O, quadrant: O::I) -> O::I {
    let moved = o.shl(quadrant, by_format::<O, _>(30, 62));
    let sign = o.int(layout::<O>().sign);
    o.int_and(moved, sign)
}

/// The function of the whole angle from its reduction.
pub(crate) fn of_reduced<O: Ops>(o: &mut O, trig: Trig, a: &Reduced<O>) -> O::F {
    let (sin, cos) = (sin_near(o, a), cos_near(o, a));
    let odd = is_odd(o, a.quadrant);
    match trig {
        Trig::Sin => {
            let y = o.select(odd, cos, sin);
            let sign = quadrant_sign(o, a.quadrant);
            flip_sign(o, y, sign)
        }
        Trig::Cos => {
            let y = o.select(odd, sin, cos);
            let one = o.int(1);
            let next = o.int_add(a.quadrant, one);
            let sign = quadrant_sign(o, next);
            flip_sign(o, y, sign)
        }
        Trig::Tan => {
            let minus_cos = o.neg(cos);
            let numerator = o.select(odd, minus_cos, sin);
            let denominator = o.select(odd, sin, cos);
            o.div(numerator, denominator)
        }
    }
}

/// Sine, cosine or tangent (the tangent in `f64` only).
pub(crate) fn trig<O: Ops>(o: &mut O, trig: Trig, x: O::F) -> O::F {
    let reduced = reduce(o, x);
    let y = of_reduced(o, trig, &reduced);
    let y = match trig {
        Trig::Cos => y,
        Trig::Sin | Trig::Tan => {
            let zero = is(o, x, 0.0);
            o.select(zero, x, y)
        }
    };
    let magnitude = o.abs(x);
    let limit = o.float(by_format::<O, _>(LIMIT_F32, LIMIT_F64));
    let usual = o.le(magnitude, limit);
    let mask = o.not(usual);
    let kernel = match O::FORMAT {
        Format::F64 => Kernel::Huge(trig),
        Format::F32 => Kernel::Function(trig.function()),
    };
    o.rare(mask, y, x, kernel)
}
