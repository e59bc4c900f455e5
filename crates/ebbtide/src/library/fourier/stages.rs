//! The stages of a transform of one row, and of each of several rows: see the head of [`super`].

use super::butterflies::{powers, product, transform2, transform4, transform8};
use crate::prelude::*;

/// The most iterations in a line. Those of a line run in vectors; lines are shared out among threads.
const LINE: usize = 256;

macro_rules! transforms {
    (
        $transform:ident, $halves:ident, $quarters:ident, $middle:ident, $last:ident,
        $array:ident, $columns:tt, [$($r:ident)?], [$($rows:ident)?]
    ) => {
        /// `X[q] = Σ x[k] exp(−2πi·qk/n)`, in place.
        #[program]
        pub fn $transform<T: Float>(re: &mut $array<T>, im: &mut $array<T>) {
            $(let $rows = re.dim(0);)?
            let n = re.dim($columns);
            let eighth = n / 8;
            let mut cos = Array1::<T>::zeros([eighth]);
            let mut sin = Array1::<T>::zeros([eighth]);
            for i in par(0..eighth) {
                let angle = 2.0 * std::f64::consts::PI * ((i as f64) / (n as f64));
                cos[i] = T::of(angle.cos());
                sin[i] = T::of(-angle.sin());
            }
            // The length is `first` times a power of 8. Of the stages of radix 8, the last one reads the copies.
            let mut first = n;
            let mut forth = true;
            let mut back = false;
            while first >= 8 {
                first /= 8;
                forth = !forth;
                back = !back;
            }
            if first == 2 {
                $halves(re, im);
            }
            if first == 4 {
                $quarters(re, im);
            }
            // Stages go forth from the arguments to these and back. Both have the same contents, so that the stages can begin
            // with either; and what is copied to need not be cleared.
            let mut other_re = $array::<T>::zeros([$($rows,)? n]);
            copy(re, other_re);
            let mut other_im = $array::<T>::zeros([$($rows,)? n]);
            copy(im, other_im);
            let mut l = first;
            while l < eighth {
                if forth {
                    $middle(re, im, other_re, other_im, cos, sin, l);
                }
                if back {
                    $middle(other_re, other_im, re, im, cos, sin, l);
                }
                forth = !forth;
                back = !back;
                l *= 8;
            }
            $last(other_re, other_im, re, im, cos, sin);
        }

        /// The first stage of radix 2, in place.
        #[program]
        #[allow(unused_parens, reason = "a list of one variable")]
        fn $halves<T: Float>(re: &mut $array<T>, im: &mut $array<T>) {
            $(let $rows = re.dim(0);)?
            let m = re.dim($columns) / 2;
            for ($($r,)? k) in par($(0..$rows,)? 0..m) {
                let mut x = [Vec2::zero(); 2];
                for t in 0..2 {
                    x[t] = Vec2::new(re[[$($r,)? k + m * t]], im[[$($r,)? k + m * t]]);
                }
                let y = transform2(x);
                for s in 0..2 {
                    re[[$($r,)? k + m * s]] = y[s].x;
                    im[[$($r,)? k + m * s]] = y[s].y;
                }
            }
        }

        /// The first stage of radix 4, in place.
        #[program]
        #[allow(unused_parens, reason = "a list of one variable")]
        fn $quarters<T: Float>(re: &mut $array<T>, im: &mut $array<T>) {
            $(let $rows = re.dim(0);)?
            let m = re.dim($columns) / 4;
            for ($($r,)? k) in par($(0..$rows,)? 0..m) {
                let mut x = [Vec2::zero(); 4];
                for t in 0..4 {
                    x[t] = Vec2::new(re[[$($r,)? k + m * t]], im[[$($r,)? k + m * t]]);
                }
                let y = transform4(x);
                for s in 0..4 {
                    re[[$($r,)? k + m * s]] = y[s].x;
                    im[[$($r,)? k + m * s]] = y[s].y;
                }
            }
        }

        /// A stage of radix 8 with m > 1: `k` is innermost, its neighbours lie side by side, and twiddles are the same for all
        /// of a line. The iterations of one j are `m / side` lines of `side` iterations; `line · side + k` is `j · m + k`.
        #[program]
        fn $middle<T: Float>(
            re: &$array<T>,
            im: &$array<T>,
            to_re: &mut $array<T>,
            to_im: &mut $array<T>,
            cos: &Array1<T>,
            sin: &Array1<T>,
            l: usize,
        ) {
            $(let $rows = re.dim(0);)?
            let m = re.dim($columns) / 8 / l;
            let mut side = m;
            let mut lines = l;
            while side > LINE {
                side /= 2;
                lines *= 2;
            }
            // Variables are read here, once: in the iterations these are constants.
            let (side, lines) = (side, lines);
            let sides = lines / l;
            let apart = side * lines;
            for ($($r,)? line, k) in par($(0..$rows,)? 0..lines, 0..side) {
                let j = line / sides;
                let to = side * line;
                let from = to + 7 * (m * j);
                let w = powers(Vec2::new(cos[m * j], sin[m * j]));
                let mut x = [Vec2::zero(); 8];
                x[0] = Vec2::new(re[[$($r,)? k + from]], im[[$($r,)? k + from]]);
                for t in 1..8 {
                    let i = k + from + m * t;
                    x[t] = product(Vec2::new(re[[$($r,)? i]], im[[$($r,)? i]]), w[t]);
                }
                let y = transform8(x);
                for s in 0..8 {
                    to_re[[$($r,)? k + to + apart * s]] = y[s].x;
                    to_im[[$($r,)? k + to + apart * s]] = y[s].y;
                }
            }
        }

        /// The stage of radix 8 with m = 1: `j` is innermost.
        #[program]
        #[allow(unused_parens, reason = "a list of one variable")]
        fn $last<T: Float>(
            re: &$array<T>,
            im: &$array<T>,
            to_re: &mut $array<T>,
            to_im: &mut $array<T>,
            cos: &Array1<T>,
            sin: &Array1<T>,
        ) {
            $(let $rows = re.dim(0);)?
            let l = re.dim($columns) / 8;
            for ($($r,)? j) in par($(0..$rows,)? 0..l) {
                let w = powers(Vec2::new(cos[j], sin[j]));
                let mut x = [Vec2::zero(); 8];
                x[0] = Vec2::new(re[[$($r,)? 8 * j]], im[[$($r,)? 8 * j]]);
                for t in 1..8 {
                    let i = 8 * j + t;
                    x[t] = product(Vec2::new(re[[$($r,)? i]], im[[$($r,)? i]]), w[t]);
                }
                let y = transform8(x);
                for s in 0..8 {
                    to_re[[$($r,)? j + l * s]] = y[s].x;
                    to_im[[$($r,)? j + l * s]] = y[s].y;
                }
            }
        }
    };
}

transforms!(transform_row, halves_of_row, quarters_of_row, middle_of_row, last_of_row, Array1, 0, [], []);
transforms!(
    transform_rows,
    halves_of_rows,
    quarters_of_rows,
    middle_of_rows,
    last_of_rows,
    Array2,
    1,
    [r],
    [rows]
);
