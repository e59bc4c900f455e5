//! Linear equations and Cholesky factors of small matrices, in registers.
//!
//! Input: the elements of a matrix, as numbers or as values of a program. Output: those of the result. Invariant: one algorithm
//! for both, so that a `#[func]` has the same bits as plain Rust.
//!
//! Equations are solved by elimination with partial pivoting: in column k, each row below in turn changes places with row k if
//! its element is larger in absolute value. A product is subtracted by one `mul_add`. Nothing is checked: of a singular matrix
//! the result is what IEEE arithmetic makes of it.

use ebbtide_ir::{Compare, ValueId};

use super::{Mat2, Mat3, Mat4, Vec2, Vec3, Vec4};
use crate::cx::Cx;
use crate::emit;
use crate::scalar::Float;
use crate::value::Expr;

/// What the algorithms compute with.
trait Ops<N: Copy> {
    /// Whether something is the case.
    type Truth: Copy;

    fn negated(&self, a: N) -> N;
    fn quotient(&self, a: N, b: N) -> N;
    /// a · b + c, rounded once.
    fn fused(&self, a: N, b: N, c: N) -> N;
    fn root(&self, a: N) -> N;
    /// |a| > |b|.
    fn larger(&self, a: N, b: N) -> Self::Truth;
    fn chosen(&self, first: Self::Truth, a: N, b: N) -> N;
}

/// The solution of m · x = b.
#[allow(clippy::needless_range_loop, reason = "indices are mathematics here")]
#[track_caller]
fn solution<N: Copy, O: Ops<N>, const K: usize>(ops: &O, mut m: [[N; K]; K], mut b: [N; K]) -> [N; K] {
    for k in 0..K {
        for i in k + 1..K {
            let exchange = ops.larger(m[i][k], m[k][k]);
            let pair =
                |upper: N, lower: N| (ops.chosen(exchange, lower, upper), ops.chosen(exchange, upper, lower));
            for j in k..K {
                (m[k][j], m[i][j]) = pair(m[k][j], m[i][j]);
            }
            (b[k], b[i]) = pair(b[k], b[i]);
        }
        for i in k + 1..K {
            let factor = ops.negated(ops.quotient(m[i][k], m[k][k]));
            for j in k + 1..K {
                m[i][j] = ops.fused(factor, m[k][j], m[i][j]);
            }
            b[i] = ops.fused(factor, b[k], b[i]);
        }
    }
    for k in (0..K).rev() {
        b[k] = ops.quotient(b[k], m[k][k]);
        for i in 0..k {
            b[i] = ops.fused(ops.negated(m[i][k]), b[k], b[i]);
        }
    }
    b
}

/// The lower triangle l with l · lᵀ = m, column after column.
#[allow(clippy::needless_range_loop, reason = "indices are mathematics here")]
#[track_caller]
fn factor<N: Copy, O: Ops<N>, const K: usize>(ops: &O, m: [[N; K]; K], zero: N) -> [[N; K]; K] {
    let mut l = [[zero; K]; K];
    for k in 0..K {
        for i in k..K {
            let mut rest = m[i][k];
            for j in 0..k {
                rest = ops.fused(ops.negated(l[i][j]), l[k][j], rest);
            }
            l[i][k] = if i == k { ops.root(rest) } else { ops.quotient(rest, l[k][k]) };
        }
    }
    l
}

/// Plain numbers.
struct Numbers;

impl<T: Float> Ops<T> for Numbers {
    type Truth = bool;

    fn negated(&self, a: T) -> T {
        -a
    }

    fn quotient(&self, a: T, b: T) -> T {
        a / b
    }

    fn fused(&self, a: T, b: T, c: T) -> T {
        a.mul_add(b, c)
    }

    fn root(&self, a: T) -> T {
        a.sqrt()
    }

    fn larger(&self, a: T, b: T) -> bool {
        a.abs() > b.abs()
    }

    fn chosen(&self, first: bool, a: T, b: T) -> T {
        if first { a } else { b }
    }
}

/// Values of a program.
impl<T: Float> Ops<Expr<T>> for Cx {
    type Truth = ValueId;

    #[track_caller]
    fn negated(&self, a: Expr<T>) -> Expr<T> {
        emit::neg(self, a)
    }

    #[track_caller]
    fn quotient(&self, a: Expr<T>, b: Expr<T>) -> Expr<T> {
        emit::div(self, a, b)
    }

    #[track_caller]
    fn fused(&self, a: Expr<T>, b: Expr<T>, c: Expr<T>) -> Expr<T> {
        Expr::new(self.emit(|builder| builder.fma(a.id, b.id, c.id)))
    }

    #[track_caller]
    fn root(&self, a: Expr<T>) -> Expr<T> {
        emit::sqrt(self, a)
    }

    #[track_caller]
    fn larger(&self, a: Expr<T>, b: Expr<T>) -> ValueId {
        let (a, b) = (emit::abs(self, a).id, emit::abs(self, b).id);
        self.emit(|builder| builder.compare(Compare::Gt, a, b))
    }

    #[track_caller]
    fn chosen(&self, first: ValueId, a: Expr<T>, b: Expr<T>) -> Expr<T> {
        Expr::new(self.emit(|builder| builder.select(first, a.id, b.id)))
    }
}

/// A matrix of which equations can be solved in registers.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no `solve` and `cholesky`",
    label = "this is `{Self}`",
    note = "`Mat2`, `Mat3` and `Mat4` have them; of arrays, `ebbtide::library::solve` and `cholesky`"
)]
pub trait Solvable: emit::Matrix {
    /// A row.
    type Row: crate::small::Value;

    /// `m.solve(b)`.
    #[track_caller]
    fn solve(cx: &Cx, m: Expr<Self>, b: Expr<Self::Row>) -> Expr<Self::Row>;

    /// `m.cholesky()`.
    #[track_caller]
    fn cholesky(cx: &Cx, m: Expr<Self>) -> Expr<Self>;
}

macro_rules! solvable {
    ($($matrix:ident $row:ident;)*) => {$(
        impl<T: Float> $matrix<T> {
            /// The solution of `self · x = b`, by elimination with partial pivoting; of a singular matrix what IEEE
            /// arithmetic makes of it.
            pub fn solve(self, b: $row<T>) -> $row<T> {
                $row::from_array(solution(&Numbers, self.rows.map(|row| row.to_array()), b.to_array()))
            }

            /// The Cholesky factor: the lower triangle `l` with `l · lᵀ = self`, of which the lower triangle alone is
            /// read. Of a matrix that is not positive definite it has NaNs.
            pub fn cholesky(self) -> $matrix<T> {
                let l = factor(&Numbers, self.rows.map(|row| row.to_array()), T::of(0.0));
                $matrix { rows: l.map($row::from_array) }
            }
        }

        impl<T: Float> Solvable for $matrix<T> {
            type Row = $row<T>;

            #[track_caller]
            fn solve(cx: &Cx, m: Expr<$matrix<T>>, b: Expr<$row<T>>) -> Expr<$row<T>> {
                let rows = m.id.rows.map(|row| row.to_array());
                Expr::new($row::from_array(solution(cx, rows, b.id.to_array())))
            }

            #[track_caller]
            fn cholesky(cx: &Cx, m: Expr<$matrix<T>>) -> Expr<$matrix<T>> {
                let l = factor(cx, m.id.rows.map(|row| row.to_array()), emit::zero(cx));
                Expr::new($matrix { rows: l.map($row::from_array) })
            }
        }
    )*};
}

solvable! {
    Mat2 Vec2;
    Mat3 Vec3;
    Mat4 Vec4;
}
