//! Linear equations with a dense matrix.
//!
//! The algorithm: elimination with partial pivoting. In step k the pivot is the element of column k, rows k to n − 1, with the
//! largest absolute value, the first of several; its row is exchanged with row k. Each row i below loses f = a[i, k] / pivot times
//! the pivot row, element by element one `mul_add(−f, p, a)`, the right sides likewise. Then rows from the last to the first: a
//! right side is divided by its pivot, and each right side above loses its product with the element of the column, by one
//! `mul_add`.

use ebbtide_lang::library::run_alone;
use ebbtide_lang::shapes::{self, Fit};
use ebbtide_lang::{Argument, ArrayHandle, ByMut, ByRef, Cx};

use crate::prelude::*;
use crate::{Array, Result};

/// Solves `a · x = b` for each column of `b`.
#[program]
pub fn eliminate<T: Float>(a: &Array2<T>, b: &Array2<T>, x: &mut Array2<T>) {
    let n = a.dim(0);
    let columns = b.dim(1);
    let mut lu = Array2::<T>::zeros([n, n]);
    let mut row = Array1::<T>::zeros([n]);
    let mut right = Array1::<T>::zeros([columns]);
    copy(a, lu);
    copy(b, x);
    for k in 0..n {
        let mut at = k;
        let mut best = lu[[k, k]].abs();
        for i in (k + 1)..n {
            let here = lu[[i, k]].abs();
            if here > best {
                best = here;
                at = i;
            }
        }
        assert!(best != T::of(0.0), "the matrix of `solve` is singular");
        for j in par(0..n) {
            row[j] = lu[[at, j]];
            lu[[at, j]] = lu[[k, j]];
            lu[[k, j]] = row[j];
        }
        for c in par(0..columns) {
            right[c] = x[[at, c]];
            x[[at, c]] = x[[k, c]];
            x[[k, c]] = right[c];
        }
        for i in par((k + 1)..n) {
            let factor = -(lu[[i, k]] / row[k]);
            for j in (k + 1)..n {
                lu[[i, j]] = factor.mul_add(row[j], lu[[i, j]]);
            }
            for c in 0..columns {
                x[[i, c]] = factor.mul_add(right[c], x[[i, c]]);
            }
        }
    }
    for k in (0..n).rev() {
        for c in par(0..columns) {
            right[c] = x[[k, c]] / lu[[k, k]];
            x[[k, c]] = right[c];
        }
        for (i, c) in par(0..k, 0..columns) {
            x[[i, c]] = (-lu[[i, k]]).mul_add(right[c], x[[i, c]]);
        }
    }
}

/// The same, with derivatives by solving again: no step of the elimination is recorded.
#[program(adjoint = solve_columns_adjoint::<T>, tangent = solve_columns_tangent::<T>)]
pub fn solve_columns<T: Float>(a: &Array2<T>, b: &Array2<T>, x: &mut Array2<T>) {
    eliminate(a, b, x);
}

/// With t = a⁻ᵀ · x̄: b̄ += t, ā −= t · xᵀ.
#[program]
fn solve_columns_adjoint<T: Float>(
    a: &Array2<T>,
    b: &Array2<T>,
    x: &Array2<T>,
    to_a: &mut Array2<T>,
    to_b: &mut Array2<T>,
    to_x: &mut Array2<T>,
) {
    let n = a.dim(0);
    let columns = b.dim(1);
    let mut turned = Array2::<T>::zeros([n, n]);
    let mut t = Array2::<T>::zeros([n, columns]);
    let mut outer = Array2::<T>::zeros([n, n]);
    for (i, j) in par(0..n, 0..n) {
        turned[[i, j]] = a[[j, i]];
    }
    solve_columns(turned, to_x, t);
    matmul(t, transposed(x), outer);
    for (i, j) in par(0..n, 0..n) {
        to_a[[i, j]] -= outer[[i, j]];
    }
    for (i, c) in par(0..n, 0..columns) {
        to_b[[i, c]] += t[[i, c]];
    }
    fill(to_x, T::of(0.0));
}

/// ẋ = a⁻¹ · (ḃ − ȧ · x).
#[program]
fn solve_columns_tangent<T: Float>(
    a: &Array2<T>,
    b: &Array2<T>,
    x: &Array2<T>,
    dot_a: &Array2<T>,
    dot_b: &Array2<T>,
    dot_x: &mut Array2<T>,
) {
    let n = a.dim(0);
    let mut right = Array2::<T>::zeros([n, b.dim(1)]);
    matmul(dot_a, x, right);
    for (i, c) in par(0..n, 0..b.dim(1)) {
        right[[i, c]] = dot_b[[i, c]] - right[[i, c]];
    }
    solve_columns(a, right, dot_x);
}

#[program]
fn solve_vector<T: Float>(a: &Array2<T>, b: &Array1<T>, x: &mut Array1<T>) {
    let n = b.len();
    let mut right = Array2::<T>::zeros([n, 1]);
    let mut column = Array2::<T>::zeros([n, 1]);
    for i in par(0..n) {
        right[[i, 0]] = b[i];
    }
    solve_columns(a, right, column);
    for i in par(0..n) {
        x[i] = column[[i, 0]];
    }
}

/// One system for each of a batch, each solved by one iteration of a parallel loop.
#[program]
pub fn eliminate_each<T: Float>(a: &Array3<T>, b: &Array2<T>, x: &mut Array2<T>) {
    let n = a.dim(1);
    let mut lu = Array3::<T>::zeros([a.dim(0), n, n]);
    copy(a, lu);
    copy(b, x);
    for l in par(0..a.dim(0)) {
        for k in 0..n {
            let mut at = k;
            let mut best = lu[[l, k, k]].abs();
            for i in (k + 1)..n {
                let here = lu[[l, i, k]].abs();
                if here > best {
                    best = here;
                    at = i;
                }
            }
            assert!(best != T::of(0.0), "a matrix of `solve` is singular");
            for j in 0..n {
                let pivot = lu[[l, at, j]];
                lu[[l, at, j]] = lu[[l, k, j]];
                lu[[l, k, j]] = pivot;
            }
            let right = x[[l, at]];
            x[[l, at]] = x[[l, k]];
            x[[l, k]] = right;
            for i in (k + 1)..n {
                let factor = -(lu[[l, i, k]] / lu[[l, k, k]]);
                for j in (k + 1)..n {
                    lu[[l, i, j]] = factor.mul_add(lu[[l, k, j]], lu[[l, i, j]]);
                }
                x[[l, i]] = factor.mul_add(right, x[[l, i]]);
            }
        }
        for k in (0..n).rev() {
            let solution = x[[l, k]] / lu[[l, k, k]];
            x[[l, k]] = solution;
            for i in 0..k {
                x[[l, i]] = (-lu[[l, i, k]]).mul_add(solution, x[[l, i]]);
            }
        }
    }
}

/// The same, with derivatives by solving again.
#[program(adjoint = solve_batch_adjoint::<T>, tangent = solve_batch_tangent::<T>)]
pub fn solve_batch<T: Float>(a: &Array3<T>, b: &Array2<T>, x: &mut Array2<T>) {
    eliminate_each(a, b, x);
}

#[program]
fn solve_batch_adjoint<T: Float>(
    a: &Array3<T>,
    b: &Array2<T>,
    x: &Array2<T>,
    to_a: &mut Array3<T>,
    to_b: &mut Array2<T>,
    to_x: &mut Array2<T>,
) {
    let n = a.dim(1);
    let mut turned = Array3::<T>::zeros([a.dim(0), n, n]);
    let mut t = Array2::<T>::zeros([b.dim(0), n]);
    for (l, i, j) in par(0..a.dim(0), 0..n, 0..n) {
        turned[[l, i, j]] = a[[l, j, i]];
    }
    solve_batch(turned, to_x, t);
    for (l, i, j) in par(0..a.dim(0), 0..n, 0..n) {
        to_a[[l, i, j]] -= t[[l, i]] * x[[l, j]];
    }
    for (l, i) in par(0..a.dim(0), 0..n) {
        to_b[[l, i]] += t[[l, i]];
    }
    fill(to_x, T::of(0.0));
}

#[program]
fn solve_batch_tangent<T: Float>(
    a: &Array3<T>,
    b: &Array2<T>,
    x: &Array2<T>,
    dot_a: &Array3<T>,
    dot_b: &Array2<T>,
    dot_x: &mut Array2<T>,
) {
    let n = a.dim(1);
    let mut right = Array2::<T>::zeros([b.dim(0), n]);
    matmul(dot_a, x, right);
    for (l, i) in par(0..b.dim(0), 0..n) {
        right[[l, i]] = dot_b[[l, i]] - right[[l, i]];
    }
    solve_batch(a, right, dot_x);
}

// A program with derivatives of its own takes whole arrays. Elimination works on a copy of the matrix in any case.

#[program]
fn solve_vector_of_parts<T: Float>(a: &Array2<T>, b: &Array1<T>, x: &mut Array1<T>) {
    let mut matrix = Array2::<T>::zeros([a.dim(0), a.dim(1)]);
    copy(a, matrix);
    solve_vector(matrix, b, x);
}

#[program]
fn solve_columns_of_parts<T: Float>(a: &Array2<T>, b: &Array2<T>, x: &mut Array2<T>) {
    let mut matrix = Array2::<T>::zeros([a.dim(0), a.dim(1)]);
    let mut right = Array2::<T>::zeros([b.dim(0), b.dim(1)]);
    let mut solution = Array2::<T>::zeros([b.dim(0), b.dim(1)]);
    copy(a, matrix);
    copy(b, right);
    solve_columns(matrix, right, solution);
    copy(solution, x);
}

#[program]
fn solve_batch_of_parts<T: Float>(a: &Array3<T>, b: &Array2<T>, x: &mut Array2<T>) {
    let mut matrices = Array3::<T>::zeros([a.dim(0), a.dim(1), a.dim(2)]);
    let mut right = Array2::<T>::zeros([b.dim(0), b.dim(1)]);
    let mut solution = Array2::<T>::zeros([b.dim(0), b.dim(1)]);
    copy(a, matrices);
    copy(b, right);
    solve_batch(matrices, right, solution);
    copy(solution, x);
}

/// Solves linear equations: `a · x = b`.
///
/// | `a` | `b` and `x` |
/// |---|---|
/// | `[n, n]` | `[n]` |
/// | `[n, n]` | `[n, m]`: for each column |
/// | `[l, n, n]` | `[l, n]`: a system for each of `l`, solved side by side |
///
/// By elimination with partial pivoting: the pivot of a column is its largest absolute value, the first of several; an
/// element loses a product by one `mul_add`. A singular matrix is a run error, and so are other shapes. `a` and `b` are left
/// as they are; `x` is neither of them.
///
/// Its derivatives are solutions too: the adjoint solves with the transpose, and no step of the elimination is recorded. Small systems in registers: `m.solve(v)` of [`Mat2`](crate::Mat2) to [`Mat4`](crate::Mat4).
pub fn solve<T: Float, const A: usize, const B: usize>(
    a: &Array<T, A>,
    b: &Array<T, B>,
    x: &mut Array<T, B>,
) -> Result<()>
where
    Ranks<A, B>: Solve<A, B>,
{
    run_alone("solve", &[a.any(), b.any()], &mut [x.any_mut()], |reads, writes| {
        let (a, b) = (ArrayHandle::<T, A, ByRef>::new(reads[0]), ArrayHandle::<T, B, ByRef>::new(reads[1]));
        solve::__expand(a, b, ArrayHandle::<T, B, ByMut>::new(writes[0]));
    })
}

/// Inside programs: [`solve`](fn@solve).
#[doc(hidden)]
#[allow(non_camel_case_types)]
#[derive(Debug)]
pub enum solve {}

impl solve {
    #[doc(hidden)]
    #[track_caller]
    pub fn __expand<T: Float, const A: usize, const B: usize>(
        a: impl Argument<ArrayHandle<T, A, ByRef>>,
        b: impl Argument<ArrayHandle<T, B, ByRef>>,
        x: impl Argument<ArrayHandle<T, B, ByMut>>,
    ) where
        Ranks<A, B>: Solve<A, B>,
    {
        let cx = &Cx::current();
        let (a, b, x) = (a.pass(cx), b.pass(cx), x.pass(cx));
        let parts = [a.part(), b.part(), x.part()];
        shapes::written_once(cx, "solve", parts[2], &parts[..2]);
        let mut fits = vec![Fit::Equal((0, A - 2), (0, A - 1)), Fit::Equal((0, A - 1), (1, A - 2))];
        fits.extend((0..B).map(|k| Fit::Equal((1, k), (2, k))));
        fits.extend((A == 3).then_some(Fit::Equal((0, 0), (1, 0))));
        shapes::check(cx, "solve", Ranks::<A, B>::RULE, &parts, &fits);
        let whole = parts.iter().all(|(_, view)| view.is_whole());
        Ranks::<A, B>::expand::<T>(a, b, x, if whole { Given::Whole } else { Given::Parts });
    }
}

/// What is given: whole arrays, or a part of one among them.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub enum Given {
    Whole,
    Parts,
}

/// The ranks of a matrix and its right side.
#[derive(Debug)]
pub struct Ranks<const A: usize, const B: usize>(());

/// The ranks that [`solve`](fn@solve) knows.
#[diagnostic::on_unimplemented(
    message = "`solve` does not know these ranks",
    note = "a matrix of rank 2 with right sides of rank 1 or 2 (columns), or a batch of rank 3 with right sides of rank 2"
)]
pub trait Solve<const A: usize, const B: usize> {
    #[doc(hidden)]
    const RULE: &'static str;
    #[doc(hidden)]
    #[track_caller]
    fn expand<T: Float>(
        a: ArrayHandle<T, A, ByRef>,
        b: ArrayHandle<T, B, ByRef>,
        x: ArrayHandle<T, B, ByMut>,
        given: Given,
    );
}

macro_rules! ranks {
    ($($a:literal $b:literal $program:ident $of_parts:ident $rule:literal;)*) => {$(
        impl Solve<$a, $b> for Ranks<$a, $b> {
            const RULE: &'static str = $rule;

            #[track_caller]
            fn expand<T: Float>(
                a: ArrayHandle<T, $a, ByRef>,
                b: ArrayHandle<T, $b, ByRef>,
                x: ArrayHandle<T, $b, ByMut>,
                given: Given,
            ) {
                match given {
                    Given::Whole => $program::<T>::__expand(a, b, x),
                    Given::Parts => $of_parts::<T>::__expand(a, b, x),
                }
            }
        }
    )*};
}

ranks! {
    2 1 solve_vector solve_vector_of_parts "[n, n], [n] and [n]";
    2 2 solve_columns solve_columns_of_parts "[n, n], [n, m] and [n, m]";
    3 2 solve_batch solve_batch_of_parts "[l, n, n], [l, n] and [l, n]";
}

ebbtide_lang::never_yields! { solve }
