//! Numbers with a tangent, in `f64`, each with the size of the terms that it was summed from.

use std::ops::{Add, Div, Mul, Neg, Sub};

/// A value and its tangent along one direction.
///
/// Each comes with a size: the sum of the magnitudes of the terms that it is made of. Rounding errors of a formula are
/// small compared with that size, not compared with a value in which large terms cancel.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Dual {
    /// The value.
    pub value: f64,
    /// The size of the value's terms.
    pub value_size: f64,
    /// The tangent.
    pub tangent: f64,
    /// The size of the tangent's terms.
    pub tangent_size: f64,
}

impl Dual {
    /// A number that does not move.
    pub fn constant(value: f64) -> Dual {
        Dual { value, value_size: value.abs(), tangent: 0.0, tangent_size: 0.0 }
    }

    /// A function with this value and slope at this number.
    fn chain(self, value: f64, slope: f64) -> Dual {
        // What cancelled in the argument is missing in the value.
        let cancelled = self.value_size - self.value.abs();
        Dual {
            value,
            value_size: value.abs() + times(slope.abs(), cancelled),
            tangent: times(slope, self.tangent),
            tangent_size: times(slope.abs(), self.tangent_size),
        }
    }

    /// Sine.
    pub fn sin(self) -> Dual {
        self.chain(self.value.sin(), self.value.cos())
    }

    /// Cosine.
    pub fn cos(self) -> Dual {
        self.chain(self.value.cos(), -self.value.sin())
    }

    /// Tangent.
    pub fn tan(self) -> Dual {
        let t = self.value.tan();
        self.chain(t, 1.0 + t * t)
    }

    /// Hyperbolic sine.
    pub fn sinh(self) -> Dual {
        self.chain(self.value.sinh(), self.value.cosh())
    }

    /// Hyperbolic cosine.
    pub fn cosh(self) -> Dual {
        self.chain(self.value.cosh(), self.value.sinh())
    }

    /// Hyperbolic tangent. Its slope is as exact as one minus its square is.
    pub fn tanh(self) -> Dual {
        let c = self.value.cosh();
        Dual { tangent_size: 2.0 * self.tangent_size, ..self.chain(self.value.tanh(), 1.0 / (c * c)) }
    }

    /// Exponential function.
    pub fn exp(self) -> Dual {
        self.chain(self.value.exp(), self.value.exp())
    }

    /// Natural logarithm.
    pub fn ln(self) -> Dual {
        self.chain(self.value.ln(), 1.0 / self.value)
    }

    /// Square root.
    pub fn sqrt(self) -> Dual {
        let root = self.value.sqrt();
        self.chain(root, 0.5 / root)
    }

    /// Cube root.
    pub fn cbrt(self) -> Dual {
        let root = self.value.cbrt();
        self.chain(root, 1.0 / (3.0 * root * root))
    }

    /// A power with a fixed exponent; the slope of a constant power is zero.
    pub fn power(self, exponent: f64) -> Dual {
        let slope = if exponent == 0.0 { 0.0 } else { exponent * self.value.powf(exponent - 1.0) };
        self.chain(self.value.powf(exponent), slope)
    }

    /// A power with an exponent that moves too.
    pub fn powf(self, exponent: Dual) -> Dual {
        let by_base = self.power(exponent.value);
        if exponent.tangent == 0.0 && exponent.tangent_size == 0.0 {
            return by_base;
        }
        let slope = power_by_exponent(self.value, exponent.value);
        Dual {
            tangent: by_base.tangent + times(slope, exponent.tangent),
            tangent_size: by_base.tangent_size + times(slope.abs(), exponent.tangent_size),
            ..by_base
        }
    }

    /// `sqrt(x² + y²)`, away from the origin.
    pub fn hypot(self, other: Dual) -> Dual {
        let h = self.value.hypot(other.value);
        let (p, q) = (self.value / h, other.value / h);
        Dual {
            value: h,
            value_size: h,
            tangent: p * self.tangent + q * other.tangent,
            tangent_size: p.abs() * self.tangent_size + q.abs() * other.tangent_size,
        }
    }

    /// Is all of it a number?
    pub fn is_finite(self) -> bool {
        self.value.is_finite() && self.tangent.is_finite()
    }
}

/// The slope of `base^exponent` in the exponent: zero where the power is zero, and stays so.
pub fn power_by_exponent(base: f64, exponent: f64) -> f64 {
    times(base.powf(exponent), base.ln())
}

/// A product in which a factor of zero wins: what does not move moves nothing, however steep.
pub fn times(a: f64, b: f64) -> f64 {
    if a == 0.0 || b == 0.0 { 0.0 } else { a * b }
}

impl Add for Dual {
    type Output = Dual;

    fn add(self, other: Dual) -> Dual {
        Dual {
            value: self.value + other.value,
            value_size: self.value_size + other.value_size,
            tangent: self.tangent + other.tangent,
            tangent_size: self.tangent_size + other.tangent_size,
        }
    }
}

impl Neg for Dual {
    type Output = Dual;

    fn neg(self) -> Dual {
        Dual { value: -self.value, tangent: -self.tangent, ..self }
    }
}

impl Sub for Dual {
    type Output = Dual;

    fn sub(self, other: Dual) -> Dual {
        self + -other
    }
}

impl Mul for Dual {
    type Output = Dual;

    fn mul(self, other: Dual) -> Dual {
        Dual {
            value: times(self.value, other.value),
            value_size: times(self.value_size, other.value_size),
            tangent: times(self.value, other.tangent) + times(self.tangent, other.value),
            tangent_size: times(self.value_size, other.tangent_size)
                + times(self.tangent_size, other.value_size),
        }
    }
}

impl Div for Dual {
    type Output = Dual;

    fn div(self, other: Dual) -> Dual {
        let inverse = 1.0 / other.value;
        let slope = -inverse * inverse;
        // How well the divisor is known decides how well the quotient is.
        let lost = (other.value_size * inverse).abs();
        let inverse = Dual {
            value: inverse,
            value_size: lost * inverse.abs(),
            tangent: times(slope, other.tangent),
            tangent_size: times(lost * slope.abs(), other.tangent_size),
        };
        self * inverse
    }
}
