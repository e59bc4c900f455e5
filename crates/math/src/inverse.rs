//! Inverse trigonometric functions; `f64` only.

use crate::arith::*;
use crate::ops::Ops;

/// (atan t - t) / t^3 in z = t^2, |t| <= 1; Chebyshev interpolation, degree 19, error 2^-54.72.
const ATAN: [f64; 20] = [
    -0.3333333333333333,
    0.19999999999997523,
    -0.14285714285382906,
    0.111111110934306,
    -0.09090908589330939,
    0.07692298946373194,
    -0.06666564440752062,
    0.05881504977420151,
    -0.05257963171246674,
    0.047377090252191355,
    -0.04260233851969483,
    0.03749201978929012,
    -0.03127210658077281,
    0.023689771860609703,
    -0.015527906389960306,
    0.008363300371421113,
    -0.003492724586043691,
    0.0010483925236281244,
    -0.00019967878270451823,
    1.8031487728494474e-05,
];
/// (asin t - t) / t^3 in z = t^2, |t| <= 1/2; Chebyshev interpolation, degree 12, error 2^-57.45.
const ASIN: [f64; 13] = [
    0.16666666666666669,
    0.07499999999998418,
    0.044642857146386904,
    0.030381944135996035,
    0.022372173047074013,
    0.01735239017078243,
    0.013971252100832573,
    0.011478783662123236,
    0.010325449088180307,
    0.005445895993382267,
    0.017433242092473784,
    -0.014903583692420135,
    0.02879390334626621,
];

const PI_HIGH: f64 = std::f64::consts::PI;
const PI_LOW: f64 = 1.2246467991473532e-16;
const PI_2_HIGH: f64 = std::f64::consts::FRAC_PI_2;
const PI_2_LOW: f64 = 6.123233995736766e-17;

/// `high + low - a`
fn constant_minus<O: Ops>(o: &mut O, high: f64, low: f64, a: O::F) -> O::F {
    let a = shift(o, a, -low);
    let high = o.float(high);
    o.sub(high, a)
}

/// The arc tangent of `t`, `0 <= t <= 1`.
fn atan_near<O: Ops>(o: &mut O, t: O::F) -> O::F {
    let z = o.mul(t, t);
    let p = horner(o, z, ATAN.iter());
    let cube = o.mul(z, t);
    o.fma(cube, p, t)
}

/// The arc tangent.
pub(crate) fn atan<O: Ops>(o: &mut O, x: O::F) -> O::F {
    let magnitude = o.abs(x);
    let one = o.float(1.0);
    let steep = o.lt(one, magnitude);
    let inverse = o.div(one, magnitude);
    let t = o.select(steep, inverse, magnitude);
    let near = atan_near(o, t);
    let far = constant_minus(o, PI_2_HIGH, PI_2_LOW, near);
    let y = o.select(steep, far, near);
    copy_sign(o, y, x)
}

/// The angle of the point `(x, y)`.
pub(crate) fn atan2<O: Ops>(o: &mut O, y: O::F, x: O::F) -> O::F {
    let (width, height) = (o.abs(x), o.abs(y));
    let steep = o.lt(width, height);
    let numerator = o.select(steep, width, height);
    let denominator = o.select(steep, height, width);
    let t = o.div(numerator, denominator);
    let (no_width, no_height) = (is(o, width, 0.0), is(o, height, 0.0));
    let origin = o.and(no_width, no_height);
    let t = select_constant(o, origin, 0.0, t);
    let (no_end, no_top) = (is(o, width, f64::INFINITY), is(o, height, f64::INFINITY));
    let corner = o.and(no_end, no_top);
    let t = select_constant(o, corner, 1.0, t);
    let near = atan_near(o, t);
    let far = constant_minus(o, PI_2_HIGH, PI_2_LOW, near);
    let right = o.select(steep, far, near);
    let left = constant_minus(o, PI_HIGH, PI_LOW, right);
    // The sign bit of x counts, that of -0 included.
    let one = o.float(1.0);
    let side = copy_sign(o, one, x);
    let is_left = is_below(o, side, 0.0);
    let angle = o.select(is_left, left, right);
    // A NaN in x may have met a number in y.
    let x_is_number = o.eq(x, x);
    let angle = o.select(x_is_number, angle, x);
    copy_sign(o, angle, y)
}

/// What both inverse functions need: whether `|x| > 1/2`, and then asin(sqrt((1 - |x|) / 2)), else asin |x|,
/// as a leading part and the rest.
fn asin_parts<O: Ops>(o: &mut O, x: O::F) -> (O::B, O::F, O::F) {
    let magnitude = o.abs(x);
    let large = is_above(o, magnitude, 0.5);
    let halved = affine(o, magnitude, -0.5, 0.5);
    let square = o.mul(magnitude, magnitude);
    let z = o.select(large, halved, square);
    let root = o.sqrt(z);
    let t = o.select(large, root, magnitude);
    let p = poly(o, z, &ASIN);
    let rest = o.mul(z, t);
    (large, t, o.mul(rest, p))
}

/// The arc sine.
pub(crate) fn asin<O: Ops>(o: &mut O, x: O::F) -> O::F {
    let (large, t, rest) = asin_parts(o, x);
    let near = o.add(t, rest);
    // pi/2 - 2 (t + rest), the leading parts first.
    let two = o.float(2.0);
    let half_pi = o.float(PI_2_HIGH);
    let rest = affine(o, rest, -2.0, PI_2_LOW);
    let (high, low) = {
        let twice = o.mul(t, two);
        let minus_twice = o.neg(twice);
        fast_two_sum(o, half_pi, minus_twice)
    };
    let rest = o.add(rest, low);
    let far = o.add(high, rest);
    let y = o.select(large, far, near);
    copy_sign(o, y, x)
}

/// The arc cosine.
pub(crate) fn acos<O: Ops>(o: &mut O, x: O::F) -> O::F {
    let (large, t, rest) = asin_parts(o, x);
    let sum = o.add(t, rest);
    let right = o.add(sum, sum);
    let left = constant_minus(o, PI_HIGH, PI_LOW, right);
    let negative = is_below(o, x, 0.0);
    let far = o.select(negative, left, right);
    let signed = copy_sign(o, sum, x);
    let near = constant_minus(o, PI_2_HIGH, PI_2_LOW, signed);
    o.select(large, far, near)
}
