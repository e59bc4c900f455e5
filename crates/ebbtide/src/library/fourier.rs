//! Discrete Fourier transforms of power-of-two lengths.
//!
//! The algorithm (Stockham's autosort form of radix 8, decimation in time): n = 8·l·m, and a stage multiplies l by 8, from
//! the first one to l = n/8, m = 1. The elements k + jm + n/8·s of its result, for s < 8, k < m and j < l, are the
//! transform of the elements k + m(8j + t) of its argument, t < 8, each multiplied by the twiddle exp(−2πi·jt/8l) before. Where
//! n is 2 or 4 times a power of 8, a stage of this radix precedes them, with l = 1 and without twiddles.
//!
//! The twiddle of t = 1 is `cos` and `sin` of the angle in f64, rounded to the type; those of t > 1 are its powers. A product of
//! complex numbers is (a·c − b·d, a·d + b·c), each operation rounded by itself; `fourier/butterflies.rs` has the order of all others.
//! The transform back is the transform forth of the numbers with real and imaginary parts exchanged.

mod butterflies;
mod stages;

use ebbtide_lang::library::run_alone;
use ebbtide_lang::shapes::{self, Fit};
use ebbtide_lang::{Argument, ArrayHandle, ArrayId, ByMut, Cx, Part};

use crate::prelude::*;
use crate::{Array, Result};

pub use stages::{transform_row, transform_rows};

macro_rules! operations {
    ($name:ident, $transform:ident, $adjoint:ident, $tangent:ident, $of_parts:ident, $array:ident, [$($dim:tt)*]) => {
        /// Transforms forth; `(im, re)` in the place of `(re, im)` transforms back. Its derivative is a transform.
        #[program(adjoint = $adjoint::<T>, tangent = $tangent::<T>)]
        pub fn $name<T: Float>(re: &mut $array<T>, im: &mut $array<T>) {
            $transform(re, im);
        }

        /// The adjoint of a transform is the transform in the other direction.
        #[program]
        fn $adjoint<T: Float>(
            _re: &$array<T>,
            _im: &$array<T>,
            to_re: &mut $array<T>,
            to_im: &mut $array<T>,
        ) {
            $name(to_im, to_re);
        }

        #[program]
        fn $tangent<T: Float>(
            _re: &$array<T>,
            _im: &$array<T>,
            dot_re: &mut $array<T>,
            dot_im: &mut $array<T>,
        ) {
            $name(dot_re, dot_im);
        }

        /// A program with derivatives of its own takes whole arrays.
        #[program]
        fn $of_parts<T: Float>(re: &mut $array<T>, im: &mut $array<T>) {
            let mut whole_re = $array::<T>::zeros([$(re.dim($dim)),*]);
            copy(re, whole_re);
            let mut whole_im = $array::<T>::zeros([$(re.dim($dim)),*]);
            copy(im, whole_im);
            $name(whole_re, whole_im);
            copy(whole_re, re);
            copy(whole_im, im);
        }
    };
}

operations!(fft_row, transform_row, fft_row_adjoint, fft_row_tangent, fft_row_of_parts, Array1, [0]);
operations!(fft_rows, transform_rows, fft_rows_adjoint, fft_rows_tangent, fft_rows_of_parts, Array2, [0 1]);

#[program]
fn normalise_rows<T: Float>(re: &mut Array2<T>, im: &mut Array2<T>) {
    let scale = T::of(1.0 / (re.dim(1) as f64));
    for (r, q) in par(0..re.dim(0), 0..re.dim(1)) {
        re[[r, q]] *= scale;
        im[[r, q]] *= scale;
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
/// The algorithm is Stockham's of radix 8, decimation in time, after a stage of radix 2 or 4 where the length is no power of 8.
/// Twiddles are powers of `cos` and `sin` in `f64`, rounded to the type of the arrays. Its order is part of its meaning, so
/// the bits are the same on every device.
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
    ($name:ident, $direction:ident, $end:ident) => {
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
                expansion!(@ $direction, re, im);
                expansion!(@ $end, re, im);
            }
        }
    };
    (@ forth, $re:ident, $im:ident) => {
        Rank::<R>::transform::<T>($re, $im);
    };
    (@ back, $re:ident, $im:ident) => {
        Rank::<R>::transform::<T>($im, $re);
    };
    (@ raw, $re:ident, $im:ident) => {};
    (@ normalised, $re:ident, $im:ident) => {
        Rank::<R>::normalise::<T>($re, $im);
    };
}

expansion!(fft, forth, raw);
expansion!(ifft, back, normalised);

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
    fn transform<T: Float>(re: ArrayHandle<T, R, ByMut>, im: ArrayHandle<T, R, ByMut>);
    #[doc(hidden)]
    #[track_caller]
    fn normalise<T: Float>(re: ArrayHandle<T, R, ByMut>, im: ArrayHandle<T, R, ByMut>);
}

macro_rules! ranks {
    ($($rank:literal $transform:ident $of_parts:ident $normalise:ident;)*) => {$(
        impl Transform<$rank> for Rank<$rank> {
            #[track_caller]
            fn transform<T: Float>(re: ArrayHandle<T, $rank, ByMut>, im: ArrayHandle<T, $rank, ByMut>) {
                let whole = re.part().1.is_whole() && im.part().1.is_whole();
                match whole {
                    true => $transform::<T>::__expand(re, im),
                    false => $of_parts::<T>::__expand(re, im),
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
    1 fft_row fft_row_of_parts normalise_row;
    2 fft_rows fft_rows_of_parts normalise_rows;
}

ebbtide_lang::never_yields! { fft ifft }
