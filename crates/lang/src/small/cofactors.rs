//! Determinant and inverse of matrices of four rows, by the minors of two rows (Laplace).
//!
//! Input: the elements of a matrix, as numbers or as values of a program. Output: those of the result. Invariant: one algorithm
//! for both, so that a `#[func]` has the same bits as plain Rust. Of a singular matrix the inverse is what IEEE arithmetic makes
//! of it.

use super::{Mat4, Vec4, constant};
use crate::cx::Cx;
use crate::emit::{self, Invertible};
use crate::scalar::Float;
use crate::value::Expr;

/// What the algorithms compute with.
trait Ring<N: Copy> {
    fn sum(&self, a: N, b: N) -> N;
    fn difference(&self, a: N, b: N) -> N;
    fn product(&self, a: N, b: N) -> N;
    fn negated(&self, a: N) -> N;
}

/// The pairs of columns, in the order of their minors.
const PAIRS: [(usize, usize); 6] = [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)];

/// The columns other than each one.
const OTHERS: [[usize; 3]; 4] = [[1, 2, 3], [0, 2, 3], [0, 1, 3], [0, 1, 2]];

/// The minors of two rows, one for each pair of columns.
#[track_caller]
fn minors<N: Copy, R: Ring<N>>(ring: &R, upper: [N; 4], lower: [N; 4]) -> [N; 6] {
    PAIRS.map(|(p, q)| ring.difference(ring.product(upper[p], lower[q]), ring.product(lower[p], upper[q])))
}

/// The minor of a pair of columns.
fn of_pair<N: Copy>(minors: &[N; 6], p: usize, q: usize) -> N {
    let at = PAIRS.iter().position(|pair| *pair == (p, q)).unwrap_or(0);
    minors[at]
}

#[track_caller]
fn determinant<N: Copy, R: Ring<N>>(ring: &R, m: [[N; 4]; 4]) -> N {
    let (upper, lower) = (minors(ring, m[0], m[1]), minors(ring, m[2], m[3]));
    let term = |k: usize| ring.product(upper[k], lower[5 - k]);
    let mut sum = ring.difference(term(0), term(1));
    sum = ring.sum(ring.sum(sum, term(2)), term(3));
    ring.sum(ring.difference(sum, term(4)), term(5))
}

/// The matrix whose product with `m` is the determinant times the identity.
#[track_caller]
fn adjugate<N: Copy, R: Ring<N>>(ring: &R, m: [[N; 4]; 4]) -> [[N; 4]; 4] {
    let (upper, lower) = (minors(ring, m[0], m[1]), minors(ring, m[2], m[3]));
    std::array::from_fn(|i| {
        std::array::from_fn(|j| {
            // The cofactor without row j and column i: by the row beside row j, and the minors of the other two rows.
            let (row, minors) = if j < 2 { (m[1 - j], &lower) } else { (m[5 - j], &upper) };
            let [p, q, r] = OTHERS[i];
            let first = ring.product(row[p], of_pair(minors, q, r));
            let second = ring.product(row[q], of_pair(minors, p, r));
            let third = ring.product(row[r], of_pair(minors, p, q));
            let cofactor = ring.sum(ring.difference(first, second), third);
            if (i + j) % 2 == 0 { cofactor } else { ring.negated(cofactor) }
        })
    })
}

/// Plain numbers.
struct Numbers;

impl<T: Float> Ring<T> for Numbers {
    fn sum(&self, a: T, b: T) -> T {
        a + b
    }

    fn difference(&self, a: T, b: T) -> T {
        a - b
    }

    fn product(&self, a: T, b: T) -> T {
        a * b
    }

    fn negated(&self, a: T) -> T {
        -a
    }
}

/// Values of a program.
impl<T: Float> Ring<Expr<T>> for Cx {
    #[track_caller]
    fn sum(&self, a: Expr<T>, b: Expr<T>) -> Expr<T> {
        emit::add(self, a, b)
    }

    #[track_caller]
    fn difference(&self, a: Expr<T>, b: Expr<T>) -> Expr<T> {
        emit::sub(self, a, b)
    }

    #[track_caller]
    fn product(&self, a: Expr<T>, b: Expr<T>) -> Expr<T> {
        emit::mul(self, a, b)
    }

    #[track_caller]
    fn negated(&self, a: Expr<T>) -> Expr<T> {
        emit::neg(self, a)
    }
}

impl<T: Float> Mat4<T> {
    /// The determinant.
    pub fn determinant(self) -> T {
        determinant(&Numbers, self.rows.map(Vec4::to_array))
    }

    /// The inverse, by the adjugate; of a singular matrix what IEEE arithmetic makes of it.
    pub fn inverse(self) -> Mat4<T> {
        let scale = T::of(1.0) / self.determinant();
        Mat4 { rows: adjugate(&Numbers, self.rows.map(Vec4::to_array)).map(Vec4::from_array) } * scale
    }
}

impl<T: Float> Invertible for Mat4<T> {
    #[track_caller]
    fn determinant(cx: &Cx, m: Expr<Mat4<T>>) -> Expr<T> {
        determinant(cx, m.id.rows.map(Vec4::to_array))
    }

    #[track_caller]
    fn inverse(cx: &Cx, m: Expr<Mat4<T>>) -> Expr<Mat4<T>> {
        let scale = emit::div(cx, constant(cx, T::of(1.0)), <Self as Invertible>::determinant(cx, m));
        let adjugate = adjugate(cx, m.id.rows.map(Vec4::to_array));
        emit::mul(cx, Expr::<Mat4<T>>::new(Mat4 { rows: adjugate.map(Vec4::from_array) }), scale)
    }
}
