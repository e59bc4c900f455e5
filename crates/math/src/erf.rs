//! The error function; `f64` only.

use crate::arith::*;
use crate::exp::exp_bounded;
use crate::ops::Ops;

/// erf(x) / x - 1 in z = x^2, |x| <= 1; Chebyshev interpolation, degree 11, error 2^-55.0.
const ERF_NEAR: [f64; 12] = [
    0.12837916709551256,
    -0.3761263890318354,
    0.11283791670944977,
    -0.02686617064323289,
    0.005223977607074656,
    -0.0008548325973314349,
    0.0001205529484079502,
    -1.4924735642416103e-05,
    1.6447408700705146e-06,
    -1.620835843933559e-07,
    1.3719510911761917e-08,
    -7.794845334515378e-10,
];
/// ln(erfc(1 + u)) for 0 <= u <= 5; least squares at Chebyshev points weighted by erfc,
/// degree 16, error of erf 2^-54.48.
const ERFC_LOG: [f64; 17] = [
    -1.8496055099332485,
    -2.638967514234718,
    -0.8431072563625377,
    -0.04156109796008068,
    0.010033824487107042,
    -0.0019778968635629046,
    0.00023729884094682676,
    2.634456914433879e-05,
    -2.7291927314046846e-05,
    9.800141309518887e-06,
    -2.2618741791438e-06,
    3.007780743878398e-07,
    6.333585448265773e-09,
    -1.3387188381774448e-08,
    3.1117951121027372e-09,
    -3.526630375672159e-10,
    1.6896358130118308e-11,
];

/// The error function: `x + x P(x^2)` within 1, else `1 - e^G` where `G` is the logarithm of `1 - erf`.
pub(crate) fn erf<O: Ops>(o: &mut O, x: O::F) -> O::F {
    let z = o.mul(x, x);
    let p = poly(o, z, &ERF_NEAR);
    let near = o.fma(x, p, x);
    let magnitude = o.abs(x);
    let bounded = at_most(o, magnitude, 6.0);
    let u = shift(o, bounded, -1.0);
    let log = poly(o, u, &ERFC_LOG);
    let rest = exp_bounded(o, log);
    let one = o.float(1.0);
    let far = o.sub(one, rest);
    let far = copy_sign(o, far, x);
    let within = is_below(o, magnitude, 1.0);
    o.select(within, near, far)
}
