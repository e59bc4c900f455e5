//! Linear equations with a tridiagonal matrix.
//!
//! The algorithm (Thomas's): from the first row to the last, w = lower / (diagonal before), diagonal −= w · upper, right −= w · right
//! before, each by one `mul_add`; then from the last row to the first, x = (right − upper · x after) / diagonal. There is no
//! pivoting: it is meant for matrices that dominate on their diagonal, or are symmetric and positive definite.

use ebbtide_lang::library::run_alone;
use ebbtide_lang::shapes::{self, Fit};
use ebbtide_lang::{Argument, ArrayHandle, ByMut, ByRef, Cx};

use crate::prelude::*;
use crate::{Array, Result};

/// One system for each row.
#[program]
pub fn tridiagonal_rows<T: Float>(
    lower: &Array2<T>,
    diagonal: &Array2<T>,
    upper: &Array2<T>,
    x: &mut Array2<T>,
) {
    let n = x.dim(1);
    let mut pivots = Array2::<T>::zeros([x.dim(0), n]);
    for r in par(0..x.dim(0)) {
        let mut pivot = diagonal[[r, 0]];
        let mut right = x[[r, 0]];
        pivots[[r, 0]] = pivot;
        for i in 1..n {
            let factor = -(lower[[r, i]] / pivot);
            pivot = factor.mul_add(upper[[r, i - 1]], diagonal[[r, i]]);
            right = factor.mul_add(right, x[[r, i]]);
            pivots[[r, i]] = pivot;
            x[[r, i]] = right;
        }
        let mut after = T::of(0.0);
        for i in (0..n).rev() {
            let rest = if i + 1 < n { (-upper[[r, i]]).mul_add(after, x[[r, i]]) } else { x[[r, i]] };
            after = rest / pivots[[r, i]];
            x[[r, i]] = after;
        }
    }
}

/// A single system: one iteration of a parallel loop.
#[program]
pub fn tridiagonal_row<T: Float>(
    lower: &Array1<T>,
    diagonal: &Array1<T>,
    upper: &Array1<T>,
    x: &mut Array1<T>,
) {
    let n = x.len();
    let mut rows = Array2::<T>::zeros([1, n]);
    let mut of_lower = Array2::<T>::zeros([1, n]);
    let mut of_diagonal = Array2::<T>::zeros([1, n]);
    let mut of_upper = Array2::<T>::zeros([1, n]);
    for i in par(0..n) {
        of_lower[[0, i]] = lower[i];
        of_diagonal[[0, i]] = diagonal[i];
        of_upper[[0, i]] = upper[i];
        rows[[0, i]] = x[i];
    }
    tridiagonal_rows(of_lower, of_diagonal, of_upper, rows);
    for i in par(0..n) {
        x[i] = rows[[0, i]];
    }
}

/// Solves tridiagonal equations in place: `x` holds the right side, and then the solution of
/// `lower[i]·x[i − 1] + diagonal[i]·x[i] + upper[i]·x[i + 1] = right[i]`.
///
/// All four arrays have one shape: `[n]`, or `[rows, n]` for one system per row, solved side by side. The first of `lower` and
/// the last of `upper` are not used. n is at least one.
///
/// Elimination from the first row to the last and substitution back (Thomas's algorithm), without pivoting, each product
/// subtracted by one `mul_add`.
///
/// ```
/// use ebbtide::library::solve_tridiagonal;
/// use ebbtide::prelude::*;
///
/// let device = Device::best()?;
/// let (lower, upper) = (device.array(&[0.0, -1.0, -1.0])?, device.array(&[-1.0, -1.0, 0.0])?);
/// let diagonal = device.array(&[2.0, 2.0, 2.0])?;
/// let mut x = device.array(&[1.0, 0.0, 1.0])?;
/// solve_tridiagonal(&lower, &diagonal, &upper, &mut x)?;
/// assert!(x.to_vec().iter().all(|x| (x - 1.0f64).abs() < 1e-15));
/// # Ok::<(), ebbtide::Error>(())
/// ```
pub fn solve_tridiagonal<T: Float, const R: usize>(
    lower: &Array<T, R>,
    diagonal: &Array<T, R>,
    upper: &Array<T, R>,
    x: &mut Array<T, R>,
) -> Result<()>
where
    Rank<R>: Tridiagonal<R>,
{
    let reads = [lower.any(), diagonal.any(), upper.any()];
    run_alone("solve_tridiagonal", &reads, &mut [x.any_mut()], |reads, writes| {
        let [lower, diagonal, upper] = [0, 1, 2].map(|k| ArrayHandle::<T, R, ByRef>::new(reads[k]));
        let x = ArrayHandle::<T, R, ByMut>::new(writes[0]);
        solve_tridiagonal::__expand(lower, diagonal, upper, x);
    })
}

/// Inside programs: [`solve_tridiagonal`](fn@solve_tridiagonal).
#[doc(hidden)]
#[allow(non_camel_case_types)]
#[derive(Debug)]
pub enum solve_tridiagonal {}

impl solve_tridiagonal {
    #[doc(hidden)]
    #[track_caller]
    pub fn __expand<T: Float, const R: usize>(
        lower: impl Argument<ArrayHandle<T, R, ByRef>>,
        diagonal: impl Argument<ArrayHandle<T, R, ByRef>>,
        upper: impl Argument<ArrayHandle<T, R, ByRef>>,
        x: impl Argument<ArrayHandle<T, R, ByMut>>,
    ) where
        Rank<R>: Tridiagonal<R>,
    {
        let cx = &Cx::current();
        let (reads, x) = ([lower.pass(cx), diagonal.pass(cx), upper.pass(cx)], x.pass(cx));
        let parts = [reads[0].part(), reads[1].part(), reads[2].part(), x.part()];
        shapes::written_once(cx, "solve_tridiagonal", parts[3], &parts[..3]);
        let fits: Vec<Fit> = (0..3).flat_map(|a| (0..R).map(move |k| Fit::Equal((a, k), (3, k)))).collect();
        shapes::check(cx, "solve_tridiagonal", Rank::<R>::RULE, &parts, &fits);
        Rank::<R>::expand::<T>(reads, x);
    }
}

/// A number of dimensions.
#[derive(Debug)]
pub struct Rank<const R: usize>(());

/// The ranks that [`solve_tridiagonal`](fn@solve_tridiagonal) knows: 1, and 2 for one system per row.
#[diagnostic::on_unimplemented(
    message = "`solve_tridiagonal` takes arrays of rank 1, or of rank 2 with one system in each row",
    note = "copy what is to be solved to arrays of rank 2, one system in each row"
)]
pub trait Tridiagonal<const R: usize> {
    #[doc(hidden)]
    const RULE: &'static str;
    #[doc(hidden)]
    #[track_caller]
    fn expand<T: Float>(reads: [ArrayHandle<T, R, ByRef>; 3], x: ArrayHandle<T, R, ByMut>);
}

macro_rules! ranks {
    ($($rank:literal $program:ident $rule:literal;)*) => {$(
        impl Tridiagonal<$rank> for Rank<$rank> {
            const RULE: &'static str = $rule;

            #[track_caller]
            fn expand<T: Float>(
                [lower, diagonal, upper]: [ArrayHandle<T, $rank, ByRef>; 3],
                x: ArrayHandle<T, $rank, ByMut>,
            ) {
                $program::<T>::__expand(lower, diagonal, upper, x);
            }
        }
    )*};
}

ranks! {
    1 tridiagonal_row "all of one length";
    2 tridiagonal_rows "all [rows, n]";
}

ebbtide_lang::never_yields! { solve_tridiagonal }
