//! Trigonometric functions of huge arguments, infinities and NaN: Payne and Hanek's reduction.
//!
//! `|x| = m 2^e` with an integer `m` of 53 bits. Of the product with 2/pi only the bits around the binary point
//! matter: 192 bits of 2/pi, starting where the product's integer part has two bits, give the quadrant and
//! 126 bits of the fraction, of which at least 60 are significant. Runs one number at a time, in `f64` only.

use crate::arith::*;
use crate::kernel::Trig;
use crate::ops::{Ops, Table};
use crate::trig::{Reduced, of_reduced};

/// 1216 bits of 2/pi: the last exponent needs 971 + 192 of them.
pub(crate) const TWO_OVER_PI: [u64; 19] = [
    0xa2f9836e4e441529,
    0xfc2757d1f534ddc0,
    0xdb6295993c439041,
    0xfe5163abdebbc561,
    0xb7246e3a424dd2e0,
    0x06492eea09d1921c,
    0xfe1deb1cb129a73e,
    0xe88235f52ebb4484,
    0xe99c7026b45f7e41,
    0x3991d639835339f4,
    0x9c845f8bbdf9283b,
    0x1ff897ffde05980f,
    0xef2f118b5a0a6d1f,
    0x6d367ecf27cb09b7,
    0x4f463f669e5fea2d,
    0x7527bac7ebe5f17b,
    0x3d0739f78a5292ea,
    0x6bfb5fb11f8d5d08,
    0x56033046fc7b6bab,
];

const PI_2_HIGH: f64 = std::f64::consts::FRAC_PI_2;
const PI_2_LOW: f64 = 6.123233995736766e-17;

/// Sine, cosine or tangent of a number of magnitude 2^20 and more, an infinity or a NaN.
pub(crate) fn trig<O: Ops>(o: &mut O, trig: Trig, x: O::F) -> O::F {
    let magnitude = o.abs(x);
    let reduced = reduce(o, magnitude);
    let y = of_reduced(o, trig, &reduced);
    let y = match trig {
        Trig::Cos => y,
        Trig::Sin | Trig::Tan => {
            let sign = sign_bit(o, x);
            flip_sign(o, y, sign)
        }
    };
    let finite = is_below(o, magnitude, f64::INFINITY);
    let nan = o.sub(x, x);
    o.select(finite, y, nan)
}

fn reduce<O: Ops>(o: &mut O, magnitude: O::F) -> Reduced<O> {
    let bits = o.bits(magnitude);
    let exponent = o.shr(bits, 52);
    // Where the window starts: the bits of 2/pi before it contribute multiples of four quadrants.
    let start = o.int(1023 + 52 + 2);
    let start = o.int_sub(exponent, start);
    let [w0, w1, w2] = window(o, start);
    let fraction_mask = o.int((1 << 52) - 1);
    let hidden = o.int(1 << 52);
    let m = o.int_and(bits, fraction_mask);
    let m = o.int_or(m, hidden);
    // The product's two words around and below the binary point.
    let low_high = o.mul_high(m, w2);
    let middle_low = o.int_mul(m, w1);
    let low = o.int_add(middle_low, low_high);
    let carried = o.int_below(low, middle_low);
    let carry = int_of(o, carried);
    let middle_high = o.mul_high(m, w1);
    let top = o.int_mul(m, w0);
    let high = o.int_add(top, middle_high);
    let high = o.int_add(high, carry);
    // The two highest bits are the quadrant, rounded to nearest; what follows is the fraction, signed.
    let half = o.int(1 << 61);
    let rounded = o.int_add(high, half);
    let quadrant = o.shr(rounded, 62);
    let (up, down) = (o.shl(high, 2), o.shr(low, 62));
    let high = o.int_or(up, down);
    let low = o.shl(low, 2);
    // To a sum of two floats, 32 bits at a time, each piece exact.
    let low_half = o.int(0xffff_ffff);
    let pieces = [o.sar(high, 32), o.int_and(high, low_half), o.shr(low, 32), o.int_and(low, low_half)];
    let units = [-32, -64, -96, -128].map(two_to);
    let mut floats = [o.float(0.0); 4];
    for ((to, piece), unit) in floats.iter_mut().zip(pieces).zip(units) {
        let float = small_to_float(o, piece);
        *to = scale(o, float, unit);
    }
    let (sum, off) = two_sum(o, floats[0], floats[1]);
    let off = o.add(off, floats[2]);
    let (sum, off) = two_sum(o, sum, off);
    let off = o.add(off, floats[3]);
    // Times pi/2.
    let (pi_2_high, pi_2_low) = (o.float(PI_2_HIGH), o.float(PI_2_LOW));
    let (r, r_low) = two_product(o, sum, pi_2_high);
    let r_low = o.fma(sum, pi_2_low, r_low);
    let r_low = o.fma(off, pi_2_high, r_low);
    Reduced { quadrant, r, r_low }
}

/// Three words of 2/pi from the bit `start` on, bits before the first being zero.
fn window<O: Ops>(o: &mut O, start: O::I) -> [O::I; 3] {
    // One word of zeros is put before the table.
    let shifted = o.int(64);
    let start = o.int_add(start, shifted);
    let word = o.shr(start, 6);
    let places_mask = o.int(63);
    let places = o.int_and(start, places_mask);
    let back = o.int_sub(places_mask, places);
    let words: [O::I; 4] = std::array::from_fn(|i| {
        let offset = o.int(i as i64 - 1);
        let index = o.int_add(word, offset);
        o.table(Table::TwoOverPi, index)
    });
    std::array::from_fn(|i| {
        let up = o.shl_by(words[i], places);
        // Two shifts, because one by the whole width is not defined.
        let down = o.shr(words[i + 1], 1);
        let down = o.shr_by(down, back);
        o.int_or(up, down)
    })
}

/// 1 where the condition holds, 0 elsewhere.
fn int_of<O: Ops>(o: &mut O, condition: O::B) -> O::I {
    let (one, zero) = (o.int(1), o.int(0));
    let (one, zero) = (o.of_bits(one), o.of_bits(zero));
    let chosen = o.select(condition, one, zero);
    o.bits(chosen)
}
