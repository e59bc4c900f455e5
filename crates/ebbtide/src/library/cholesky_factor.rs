//! The Cholesky factor of a symmetric positive definite matrix.
//!
//! The algorithm: column after column. With j ascending, s = a[i, k] − Σ l[i, j]·l[k, j], each product subtracted by one `mul_add`;
//! l[k, k] = √s for i = k, and l[i, k] = s / l[k, k] below.

use ebbtide_lang::library::run_alone;
use ebbtide_lang::shapes::{self, Fit};
use ebbtide_lang::{Argument, ArrayHandle, ByMut, ByRef, Cx};

use crate::prelude::*;
use crate::{Array, Result};

/// The factor of one matrix.
#[program]
pub fn cholesky_matrix<T: Float>(a: &Array2<T>, l: &mut Array2<T>) {
    let n = a.dim(0);
    let mut row = Array1::<T>::zeros([n]);
    fill(l, T::of(0.0));
    for k in 0..n {
        // The row of the pivot, so that rows below read it while they are written.
        for j in par(0..k) {
            row[j] = l[[k, j]];
        }
        for i in par(k..n) {
            let mut rest = a[[i, k]];
            for j in 0..k {
                rest = (-l[[i, j]]).mul_add(row[j], rest);
            }
            l[[i, k]] = rest;
        }
        let pivot = l[[k, k]];
        assert!(!(pivot <= T::of(0.0)), "the matrix of `cholesky` is not positive definite");
        let root = pivot.sqrt();
        for i in par(k..n) {
            l[[i, k]] = if i == k { root } else { l[[i, k]] / root };
        }
    }
}

/// One factor for each of a batch, each computed by one iteration of a parallel loop.
#[program]
pub fn cholesky_batch<T: Float>(a: &Array3<T>, l: &mut Array3<T>) {
    let n = a.dim(1);
    fill(l, T::of(0.0));
    for b in par(0..a.dim(0)) {
        for k in 0..n {
            let mut pivot = a[[b, k, k]];
            for j in 0..k {
                pivot = (-l[[b, k, j]]).mul_add(l[[b, k, j]], pivot);
            }
            assert!(!(pivot <= T::of(0.0)), "a matrix of `cholesky` is not positive definite");
            let root = pivot.sqrt();
            l[[b, k, k]] = root;
            for i in (k + 1)..n {
                let mut rest = a[[b, i, k]];
                for j in 0..k {
                    rest = (-l[[b, i, j]]).mul_add(l[[b, k, j]], rest);
                }
                l[[b, i, k]] = rest / root;
            }
        }
    }
}

/// The Cholesky factor: the lower triangle `l` with `l · lᵀ = a`, zeros above its diagonal.
///
/// `a` is symmetric and positive definite, `[n, n]`, or `[batch, n, n]` for a factor of each. Its lower triangle alone is
/// read; so the derivative is one with respect to the lower triangle. A matrix that is not positive definite is a run error.
///
/// Column after column, each product subtracted by one `mul_add` in ascending order.
///
/// ```
/// use ebbtide::library::cholesky;
/// use ebbtide::prelude::*;
///
/// let device = Device::best()?;
/// let a = device.array_with_shape([2, 2], &[4.0, 2.0, 2.0, 10.0])?;
/// let mut l = device.zeros([2, 2])?;
/// cholesky(&a, &mut l)?;
/// assert_eq!(l.to_vec(), [2.0, 0.0, 1.0, 3.0]);
/// # Ok::<(), ebbtide::Error>(())
/// ```
pub fn cholesky<T: Float, const R: usize>(a: &Array<T, R>, l: &mut Array<T, R>) -> Result<()>
where
    Rank<R>: Factorise<R>,
{
    run_alone("cholesky", &[a.any()], &mut [l.any_mut()], |reads, writes| {
        let a = ArrayHandle::<T, R, ByRef>::new(reads[0]);
        cholesky::__expand(a, ArrayHandle::<T, R, ByMut>::new(writes[0]));
    })
}

/// Inside programs: [`cholesky`](fn@cholesky).
#[doc(hidden)]
#[allow(non_camel_case_types)]
#[derive(Debug)]
pub enum cholesky {}

impl cholesky {
    #[doc(hidden)]
    #[track_caller]
    pub fn __expand<T: Float, const R: usize>(
        a: impl Argument<ArrayHandle<T, R, ByRef>>,
        l: impl Argument<ArrayHandle<T, R, ByMut>>,
    ) where
        Rank<R>: Factorise<R>,
    {
        let cx = &Cx::current();
        let (a, l) = (a.pass(cx), l.pass(cx));
        let parts = [a.part(), l.part()];
        shapes::written_once(cx, "cholesky", parts[1], &parts[..1]);
        let mut fits = vec![Fit::Equal((0, R - 2), (0, R - 1))];
        fits.extend((0..R).map(|k| Fit::Equal((0, k), (1, k))));
        shapes::check(cx, "cholesky", Rank::<R>::RULE, &parts, &fits);
        Rank::<R>::expand::<T>(a, l);
    }
}

/// A number of dimensions.
#[derive(Debug)]
pub struct Rank<const R: usize>(());

/// The ranks that [`cholesky`](fn@cholesky) knows: 2, and 3 for batches.
#[diagnostic::on_unimplemented(
    message = "`cholesky` takes a matrix, of rank 2, or a batch of them, of rank 3"
)]
pub trait Factorise<const R: usize> {
    #[doc(hidden)]
    const RULE: &'static str;
    #[doc(hidden)]
    #[track_caller]
    fn expand<T: Float>(a: ArrayHandle<T, R, ByRef>, l: ArrayHandle<T, R, ByMut>);
}

macro_rules! ranks {
    ($($rank:literal $program:ident $rule:literal;)*) => {$(
        impl Factorise<$rank> for Rank<$rank> {
            const RULE: &'static str = $rule;

            #[track_caller]
            fn expand<T: Float>(a: ArrayHandle<T, $rank, ByRef>, l: ArrayHandle<T, $rank, ByMut>) {
                $program::<T>::__expand(a, l);
            }
        }
    )*};
}

ranks! {
    2 cholesky_matrix "[n, n] and [n, n]";
    3 cholesky_batch "[batch, n, n] and [batch, n, n]";
}

ebbtide_lang::never_yields! { cholesky }
