//! Discrete Fourier transforms of power-of-two lengths.
//!
//! The algorithm (Stockham's autosort form of radix 2, decimation in frequency): with n = 2·l·m, a stage has l halved and
//! m doubled, from l = n/2, m = 1 to l = 1. Element q of its result, with k = q mod m and j = q div 2m, is the sum of the elements k + jm and
//! k + jm + n/2 of its argument where q div m is even; where it is odd, their difference times the twiddle exp(∓πi·j/l). Twiddles are
//! `cos` and `sin` of the angle in f64, rounded to the type; a product of complex numbers is (a·c − b·d, a·d + b·c), each
//! operation rounded by itself.

use ebbtide_lang::library::run_alone;
use ebbtide_lang::shapes::{self, Fit};
use ebbtide_lang::{Argument, ArrayHandle, ArrayId, ByMut, Cx, Part};

use crate::prelude::*;
use crate::{Array, Result};

/// One transform per row, with `sign` −1 forth and 1 back; not normalised.
#[program]
pub fn transform_rows<T: Float>(re: &mut Array2<T>, im: &mut Array2<T>, sign: f64) {
    let rows = re.dim(0);
    let n = re.dim(1);
    let half = n / 2;
    let mut cos = Array1::<T>::zeros([half]);
    let mut sin = Array1::<T>::zeros([half]);
    let mut from_re = Array2::<T>::zeros([rows, n]);
    let mut from_im = Array2::<T>::zeros([rows, n]);
    let mut to_re = Array2::<T>::zeros([rows, n]);
    let mut to_im = Array2::<T>::zeros([rows, n]);
    copy(re, from_re);
    copy(im, from_im);
    for k in par(0..half) {
        let angle = std::f64::consts::PI * (k as f64) / (half as f64);
        cos[k] = T::of(angle.cos());
        sin[k] = T::of(sign * angle.sin());
    }
    let mut m = 1;
    while m < n {
        for (r, q) in par(0..rows, 0..n) {
            let k = q & (m - 1);
            // The first of the pair, and the number of its twiddle among those of the whole circle: j·m.
            let turn = (q - k - (q & m)) / 2;
            let first = turn + k;
            let a = from_re[[r, first]];
            let b = from_im[[r, first]];
            let c = from_re[[r, first + half]];
            let d = from_im[[r, first + half]];
            if q & m == 0 {
                to_re[[r, q]] = a + c;
                to_im[[r, q]] = b + d;
            } else {
                let x = a - c;
                let y = b - d;
                to_re[[r, q]] = x * cos[turn] - y * sin[turn];
                to_im[[r, q]] = x * sin[turn] + y * cos[turn];
            }
        }
        swap(from_re, to_re);
        swap(from_im, to_im);
        m *= 2;
    }
    copy(from_re, re);
    copy(from_im, im);
}

/// One transform per row; its derivative is a transform in the other direction.
#[program(adjoint = fft_rows_adjoint::<T>, tangent = fft_rows_tangent::<T>)]
pub fn fft_rows<T: Float>(re: &mut Array2<T>, im: &mut Array2<T>, sign: f64) {
    transform_rows(re, im, sign);
}

/// The adjoint of a transform is the transform with the opposite sign.
#[program]
fn fft_rows_adjoint<T: Float>(
    _re: &Array2<T>,
    _im: &Array2<T>,
    sign: f64,
    to_re: &mut Array2<T>,
    to_im: &mut Array2<T>,
) {
    fft_rows(to_re, to_im, -sign);
}

#[program]
fn fft_rows_tangent<T: Float>(
    _re: &Array2<T>,
    _im: &Array2<T>,
    sign: f64,
    dot_re: &mut Array2<T>,
    dot_im: &mut Array2<T>,
) {
    fft_rows(dot_re, dot_im, sign);
}

/// A program with derivatives of its own takes whole arrays. The stages work on copies in any case.
#[program]
fn fft_rows_of_parts<T: Float>(re: &mut Array2<T>, im: &mut Array2<T>, sign: f64) {
    let mut whole_re = Array2::<T>::zeros([re.dim(0), re.dim(1)]);
    let mut whole_im = Array2::<T>::zeros([re.dim(0), re.dim(1)]);
    copy(re, whole_re);
    copy(im, whole_im);
    fft_rows(whole_re, whole_im, sign);
    copy(whole_re, re);
    copy(whole_im, im);
}

#[program]
fn normalise_rows<T: Float>(re: &mut Array2<T>, im: &mut Array2<T>) {
    let scale = T::of(1.0 / (re.dim(1) as f64));
    for (r, q) in par(0..re.dim(0), 0..re.dim(1)) {
        re[[r, q]] *= scale;
        im[[r, q]] *= scale;
    }
}

#[program]
fn fft_row<T: Float>(re: &mut Array1<T>, im: &mut Array1<T>, sign: f64) {
    let n = re.len();
    let mut row_re = Array2::<T>::zeros([1, n]);
    let mut row_im = Array2::<T>::zeros([1, n]);
    for q in par(0..n) {
        row_re[[0, q]] = re[q];
        row_im[[0, q]] = im[q];
    }
    fft_rows(row_re, row_im, sign);
    for q in par(0..n) {
        re[q] = row_re[[0, q]];
        im[q] = row_im[[0, q]];
    }
}

#[program]
fn normalise_row<T: Float>(re: &mut Array1<T>, im: &mut Array1<T>) {
    let scale = T::of(1.0 / (re.len() as f64));
    for q in par(0..re.len()) {
        re[q] *= scale;
        im[q] *= scale;
    }
}

/// The discrete Fourier transform of complex numbers, real and imaginary parts in two arrays, in place:
/// `X[q] = Σ x[k] exp(−2πi·qk/n)`.
///
/// Arrays are of rank 1, or of rank 2 with one transform for each row. Their last extent is a power of two; other
/// shapes are a run error that names the arrays.
///
/// The algorithm is Stockham's of radix 2, decimation in frequency, with twiddles from `cos` and `sin` in `f64` rounded to
/// the type of the arrays; its order is part of its meaning, so the bits are the same on every device.
///
/// ```
/// use ebbtide::library::{fft, ifft};
/// use ebbtide::prelude::*;
///
/// /// Multiplies by 1/(1 + k²) in the space of wave numbers.
/// #[program]
/// fn smooth(u: &mut Array1<f64>) {
///     let n = u.len();
///     let mut im = Array1::<f64>::zeros([n]);
///     fft(u, im);
///     for q in par(0..n) {
///         let k = q.min(n - q) as f64;
///         u[q] /= 1.0 + k * k;
///         im[q] /= 1.0 + k * k;
///     }
///     ifft(u, im);
/// }
///
/// let device = Device::best()?;
/// let mut u = device.array(&[1.0, 1.0, 1.0, 1.0 + 4.0])?;
/// let _ = smooth().compile(&device)?.launch(&mut u)?;
/// assert!((u.to_vec().iter().sum::<f64>() - 8.0).abs() < 1e-14 && u[3] < 4.0);
/// # Ok::<(), ebbtide::Error>(())
/// ```
pub fn fft<T: Float, const R: usize>(re: &mut Array<T, R>, im: &mut Array<T, R>) -> Result<()>
where
    Rank<R>: Transform<R>,
{
    run_alone("fft", &[], &mut [re.any_mut(), im.any_mut()], |_, ids| {
        fft::__expand::<T, R>(handle(ids[0]), handle(ids[1]));
    })
}

/// The inverse of [`fft`](fn@fft), in place: `x[k] = 1/n Σ X[q] exp(2πi·qk/n)`. The factor 1/n is a product after the transform.
pub fn ifft<T: Float, const R: usize>(re: &mut Array<T, R>, im: &mut Array<T, R>) -> Result<()>
where
    Rank<R>: Transform<R>,
{
    run_alone("ifft", &[], &mut [re.any_mut(), im.any_mut()], |_, ids| {
        ifft::__expand::<T, R>(handle(ids[0]), handle(ids[1]));
    })
}

fn handle<T, const R: usize>(id: ArrayId) -> ArrayHandle<T, R, ByMut> {
    ArrayHandle::new(id)
}

/// Inside programs: [`fft`](fn@fft).
#[doc(hidden)]
#[allow(non_camel_case_types)]
#[derive(Debug)]
pub enum fft {}

/// Inside programs: [`ifft`](fn@ifft).
#[doc(hidden)]
#[allow(non_camel_case_types)]
#[derive(Debug)]
pub enum ifft {}

macro_rules! expansion {
    ($name:ident, $sign:literal, $end:ident) => {
        impl $name {
            #[doc(hidden)]
            #[track_caller]
            pub fn __expand<T: Float, const R: usize>(
                re: impl Argument<ArrayHandle<T, R, ByMut>>,
                im: impl Argument<ArrayHandle<T, R, ByMut>>,
            ) where
                Rank<R>: Transform<R>,
            {
                let cx = &Cx::current();
                let (re, im) = (re.pass(cx), im.pass(cx));
                check(cx, stringify!($name), R, [re.part(), im.part()]);
                Rank::<R>::transform::<T>(re, im, $sign);
                expansion!(@ $end, re, im);
            }
        }
    };
    (@ raw, $re:ident, $im:ident) => {};
    (@ normalised, $re:ident, $im:ident) => {
        Rank::<R>::normalise::<T>($re, $im);
    };
}

expansion!(fft, -1.0, raw);
expansion!(ifft, 1.0, normalised);

#[track_caller]
fn check(cx: &Cx, operation: &str, rank: usize, parts: [Part; 2]) {
    shapes::written_once(cx, operation, parts[0], &parts[1..]);
    let rule = match rank {
        1 => "[n] and [n] with n a power of two",
        _ => "[rows, n] and [rows, n] with n a power of two",
    };
    let mut fits: Vec<Fit> = (0..rank).map(|k| Fit::Equal((0, k), (1, k))).collect();
    fits.push(Fit::PowerOfTwo((0, rank - 1)));
    shapes::check(cx, operation, rule, &parts, &fits);
}

/// A number of dimensions.
#[derive(Debug)]
pub struct Rank<const R: usize>(());

/// The ranks of arrays that [`fft`](fn@fft) transforms: 1, and 2 for one transform per row.
#[diagnostic::on_unimplemented(
    message = "`fft` transforms arrays of rank 1 and the rows of arrays of rank 2",
    note = "copy what is to be transformed to an array of rank 2, one transform in each row"
)]
pub trait Transform<const R: usize> {
    #[doc(hidden)]
    #[track_caller]
    fn transform<T: Float>(re: ArrayHandle<T, R, ByMut>, im: ArrayHandle<T, R, ByMut>, sign: f64);
    #[doc(hidden)]
    #[track_caller]
    fn normalise<T: Float>(re: ArrayHandle<T, R, ByMut>, im: ArrayHandle<T, R, ByMut>);
}

macro_rules! ranks {
    ($($rank:literal $transform:ident $of_parts:ident $normalise:ident;)*) => {$(
        impl Transform<$rank> for Rank<$rank> {
            #[track_caller]
            fn transform<T: Float>(
                re: ArrayHandle<T, $rank, ByMut>,
                im: ArrayHandle<T, $rank, ByMut>,
                sign: f64,
            ) {
                let whole = re.part().1.is_whole() && im.part().1.is_whole();
                match whole {
                    true => $transform::<T>::__expand(re, im, sign),
                    false => $of_parts::<T>::__expand(re, im, sign),
                }
            }

            #[track_caller]
            fn normalise<T: Float>(re: ArrayHandle<T, $rank, ByMut>, im: ArrayHandle<T, $rank, ByMut>) {
                $normalise::<T>::__expand(re, im);
            }
        }
    )*};
}

ranks! {
    1 fft_row fft_row normalise_row;
    2 fft_rows fft_rows_of_parts normalise_rows;
}
