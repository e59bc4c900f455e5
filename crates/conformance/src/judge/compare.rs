//! When two derivatives agree.

use ebbtide_ir::Literal;

use crate::oracle::Dual;

/// Which part of the oracle's number is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The number itself.
    Value,
    /// How it moves.
    Tangent,
}

impl Part {
    fn of(self, dual: &Dual) -> (f64, f64) {
        match self {
            Part::Value => (dual.value, dual.value_size),
            Part::Tangent => (dual.tangent, dual.tangent_size),
        }
    }
}

/// Does each component agree to this share of the largest one? Where terms cancel, rounding errors are as large as
/// the terms make them: these count with their last digits.
pub fn agree(found: &[Literal], expected: &[Dual], part: Part, tolerance: f64) -> Result<(), String> {
    if found.len() != expected.len() {
        return Err(format!("{} components, not {}", found.len(), expected.len()));
    }
    let largest = |pick: fn((f64, f64)) -> f64| {
        expected.iter().map(|e| pick(part.of(e)).abs()).filter(|x| x.is_finite()).fold(0.0, f64::max)
    };
    // The last digits: 3 of the 7 that `f32` has, 3 of the 13 beyond the tolerance of `f64`.
    let digits = if tolerance > 1e-6 { 0.1 } else { 1e-3 };
    let allowed = tolerance * largest(|(value, _)| value).max(digits * largest(|(_, size)| size));
    // What is below the least number of its type becomes zero.
    let allowed =
        allowed.max(if tolerance > 1e-6 { f64::from(f32::MIN_POSITIVE) } else { f64::MIN_POSITIVE });
    for (k, (found, expected)) in found.iter().zip(expected).enumerate() {
        let (found, (value, _)) = (found.to_f64(), part.of(expected));
        let close = (found - value).abs() <= allowed || found == value || (found.is_nan() && value.is_nan());
        if !close {
            return Err(format!(
                "component {k} is {found:e}, the oracle's is {value:e}, allowed {allowed:.1e}"
            ));
        }
    }
    Ok(())
}
