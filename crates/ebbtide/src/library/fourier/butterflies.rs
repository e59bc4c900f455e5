//! Transforms of 2, 4 and 8 complex numbers in registers: `y[s] = Σ x[t] exp(−2πi·st/R)`.
//!
//! A complex number is a `Vec2`, its real part first. Every operation is rounded by itself, in the order in which it stands here:
//! this order is part of the meaning of `fft`.

use crate::prelude::*;

/// cos π/4.
const H: f64 = std::f64::consts::FRAC_1_SQRT_2;

/// A product of complex numbers.
#[func]
pub(super) fn product<T: Float>(a: Vec2<T>, b: Vec2<T>) -> Vec2<T> {
    Vec2::new(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x)
}

/// `a` times exp(−πi/4).
#[func]
fn eighth<T: Float>(a: Vec2<T>) -> Vec2<T> {
    Vec2::new((a.x + a.y) * T::of(H), (a.y - a.x) * T::of(H))
}

/// `a` times exp(−πi/2).
#[func]
fn quarter<T: Float>(a: Vec2<T>) -> Vec2<T> {
    Vec2::new(a.y, -a.x)
}

/// `a` times exp(−3πi/4).
#[func]
fn three_eighths<T: Float>(a: Vec2<T>) -> Vec2<T> {
    Vec2::new((a.y - a.x) * T::of(H), (a.x + a.y) * T::of(-H))
}

/// The powers 0 to 7 of `w`, each the product of the two powers of half its exponent, rounded down and up.
#[func]
pub(super) fn powers<T: Float>(w: Vec2<T>) -> [Vec2<T>; 8] {
    let w2 = product(w, w);
    let w3 = product(w, w2);
    let w4 = product(w2, w2);
    [Vec2::new(T::of(1.0), T::of(0.0)), w, w2, w3, w4, product(w2, w3), product(w3, w3), product(w3, w4)]
}

#[func]
pub(super) fn transform2<T: Float>(x: [Vec2<T>; 2]) -> [Vec2<T>; 2] {
    [x[0] + x[1], x[0] - x[1]]
}

#[func]
pub(super) fn transform4<T: Float>(x: [Vec2<T>; 4]) -> [Vec2<T>; 4] {
    let (a, b) = (x[0] + x[2], x[0] - x[2]);
    let (c, d) = (x[1] + x[3], x[1] - x[3]);
    [a + c, Vec2::new(b.x + d.y, b.y - d.x), a - c, Vec2::new(b.x - d.y, b.y + d.x)]
}

/// From the transforms of the even and the odd elements.
#[func]
pub(super) fn transform8<T: Float>(x: [Vec2<T>; 8]) -> [Vec2<T>; 8] {
    let a = transform4([x[0], x[2], x[4], x[6]]);
    let b = transform4([x[1], x[3], x[5], x[7]]);
    let (b1, b2, b3) = (eighth(b[1]), quarter(b[2]), three_eighths(b[3]));
    [a[0] + b[0], a[1] + b1, a[2] + b2, a[3] + b3, a[0] - b[0], a[1] - b1, a[2] - b2, a[3] - b3]
}
