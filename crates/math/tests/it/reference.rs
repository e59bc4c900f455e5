//! Correctly rounded values, and how far a value is from one.

use ebbtide_math::Function;

/// The most units in the last place that a function may be away from the correctly rounded value.
pub fn allowed_ulps(function: Function) -> u64 {
    match function {
        Function::Exp | Function::Ln | Function::Sin | Function::Cos | Function::Tanh | Function::Powf => 2,
        Function::Sqrt
        | Function::Abs
        | Function::Min
        | Function::Max
        | Function::Floor
        | Function::Ceil
        | Function::Round
        | Function::Trunc => 0,
        _ => 4,
    }
}

/// The correctly rounded value in `f64`.
pub fn f64(function: Function, x: f64, y: f64) -> f64 {
    match function {
        Function::Sin => core_math::sin(x),
        Function::Cos => core_math::cos(x),
        Function::Tan => core_math::tan(x),
        Function::Asin => core_math::asin(x),
        Function::Acos => core_math::acos(x),
        Function::Atan => core_math::atan(x),
        Function::Atan2 => core_math::atan2(x, y),
        Function::Sinh => core_math::sinh(x),
        Function::Cosh => core_math::cosh(x),
        Function::Tanh => core_math::tanh(x),
        Function::Exp => core_math::exp(x),
        Function::Exp2 => core_math::exp2(x),
        Function::ExpM1 => core_math::expm1(x),
        Function::Ln => core_math::log(x),
        Function::Ln1p => core_math::log1p(x),
        Function::Log2 => core_math::log2(x),
        Function::Log10 => core_math::log10(x),
        Function::Powf => core_math::pow(x, y),
        Function::Sqrt => x.sqrt(),
        Function::Cbrt => core_math::cbrt(x),
        Function::Hypot => core_math::hypot(x, y),
        Function::Erf => core_math::erf(x),
        Function::Abs => x.abs(),
        Function::Min if x == 0.0 && y == 0.0 => f64::from_bits(x.to_bits() | y.to_bits()),
        Function::Min => x.min(y),
        Function::Max if x == 0.0 && y == 0.0 => f64::from_bits(x.to_bits() & y.to_bits()),
        Function::Max => x.max(y),
        Function::Floor => x.floor(),
        Function::Ceil => x.ceil(),
        Function::Round => x.round(),
        Function::Trunc => x.trunc(),
        _ => panic!("no reference for {function}"),
    }
}

/// The correctly rounded value in `f32`.
pub fn f32(function: Function, x: f32, y: f32) -> f32 {
    match function {
        Function::Sin => core_math::sinf(x),
        Function::Cos => core_math::cosf(x),
        Function::Tan => core_math::tanf(x),
        Function::Asin => core_math::asinf(x),
        Function::Acos => core_math::acosf(x),
        Function::Atan => core_math::atanf(x),
        Function::Atan2 => core_math::atan2f(x, y),
        Function::Sinh => core_math::sinhf(x),
        Function::Cosh => core_math::coshf(x),
        Function::Tanh => core_math::tanhf(x),
        Function::Exp => core_math::expf(x),
        Function::Exp2 => core_math::exp2f(x),
        Function::ExpM1 => core_math::expm1f(x),
        Function::Ln => core_math::logf(x),
        Function::Ln1p => core_math::log1pf(x),
        Function::Log2 => core_math::log2f(x),
        Function::Log10 => core_math::log10f(x),
        Function::Powf => core_math::powf(x, y),
        Function::Cbrt => core_math::cbrtf(x),
        Function::Hypot => core_math::hypotf(x, y),
        Function::Erf => core_math::erff(x),
        // Exact, or a square root, which rounds twice without harm.
        _ => f64(function, f64::from(x), f64::from(y)) as f32,
    }
}

/// The correctly rounded `x^n`.
pub fn powi_f64(x: f64, n: i32) -> f64 {
    core_math::pow(x, f64::from(n))
}

/// `x^n` rounded twice, the second time to `f32`.
pub fn powi_f32(x: f32, n: i32) -> f32 {
    core_math::pow(f64::from(x), f64::from(n)) as f32
}

/// How many numbers lie between two of them, one end included; `u64::MAX` if only one is NaN, or if they are
/// zeros of different sign.
pub fn distance_f64(a: f64, b: f64) -> u64 {
    if a.is_nan() || b.is_nan() {
        return if a.is_nan() && b.is_nan() { 0 } else { u64::MAX };
    }
    if a == 0.0 && b == 0.0 && a.is_sign_negative() != b.is_sign_negative() {
        return u64::MAX;
    }
    let place = |x: f64| {
        let magnitude = (x.to_bits() & i64::MAX as u64) as i64;
        if x.is_sign_negative() { -magnitude } else { magnitude }
    };
    place(a).abs_diff(place(b))
}

/// As [`distance_f64`].
pub fn distance_f32(a: f32, b: f32) -> u64 {
    if a.is_nan() || b.is_nan() {
        return if a.is_nan() && b.is_nan() { 0 } else { u64::MAX };
    }
    if a == 0.0 && b == 0.0 && a.is_sign_negative() != b.is_sign_negative() {
        return u64::MAX;
    }
    let place = |x: f32| {
        let magnitude = i64::from(x.to_bits() & i32::MAX as u32);
        if x.is_sign_negative() { -magnitude } else { magnitude }
    };
    place(a).abs_diff(place(b))
}
