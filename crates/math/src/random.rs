//! Counter-based random numbers: Philox4x32-10.
//!
//! J. K. Salmon, M. A. Moraes, R. O. Dror, D. E. Shaw, *Parallel random numbers: as easy as 1, 2, 3*, SC 2011.
//!
//! The mapping, for good: `seed` and `index` are 64-bit patterns. The key is (low half of seed, high half of
//! seed), the counter (low half of index, high half of index, 0, 0). With `w0 w1 w2 w3` the output,
//! - `f64`: (w0 * 2^21 + floor(w1 / 2^11)) / 2^53, a multiple of 2^-53 in [0, 1);
//! - `f32`: floor(w0 / 2^8) / 2^24, a multiple of 2^-24 in [0, 1).

use crate::arith::{scale, small_to_float};
use crate::ops::Ops;

const MULTIPLIERS: [i64; 2] = [0xd251_1f53, 0xcd9e_8d57];
const WEYL: [i64; 2] = [0x9e37_79b9, 0xbb67_ae85];
const ROUNDS: usize = 10;

/// The block function Philox4x32-10, in 64-bit integers (an [`Ops`] of the format `F64`) whose low halves count;
/// the high halves of the results are zero.
pub fn philox4x32_10<O: Ops>(o: &mut O, counter: [O::I; 4], key: [O::I; 2]) -> [O::I; 4] {
    let multipliers = MULTIPLIERS.map(|m| o.int(m));
    let weyl = WEYL.map(|w| o.int(w));
    let mut key = key;
    let mut words = counter;
    for round in 0..ROUNDS {
        if round > 0 {
            key = [o.int_add(key[0], weyl[0]), o.int_add(key[1], weyl[1])];
        }
        let product_0 = o.mul_halves(multipliers[0], words[0]);
        let product_1 = o.mul_halves(multipliers[1], words[2]);
        let (high_0, high_1) = (o.shr(product_0, 32), o.shr(product_1, 32));
        let mixed_0 = o.int_xor(high_1, words[1]);
        let mixed_1 = o.int_xor(high_0, words[3]);
        words = [o.int_xor(mixed_0, key[0]), product_1, o.int_xor(mixed_1, key[1]), product_0];
    }
    let mask = o.int(0xffff_ffff);
    words.map(|word| o.int_and(word, mask))
}

fn block<O: Ops>(o: &mut O, seed: O::I, index: O::I) -> [O::I; 4] {
    let zero = o.int(0);
    let (seed_high, index_high) = (o.shr(seed, 32), o.shr(index, 32));
    philox4x32_10(o, [index, index_high, zero, zero], [seed, seed_high])
}

/// 53 random bits as a number in [0, 1).
pub(crate) fn rand<O: Ops>(o: &mut O, seed: O::I, index: O::I) -> O::F {
    let [w0, w1, _, _] = block(o, seed, index);
    let w1 = o.shr(w1, 11);
    let (high, low) = (small_to_float(o, w0), small_to_float(o, w1));
    let low = scale(o, low, 1.0 / 9007199254740992.0);
    let unit = o.float(1.0 / 4294967296.0);
    o.fma(high, unit, low)
}

/// 24 random bits as a number in [0, 1).
pub(crate) fn rand_single<O: Ops>(o: &mut O, seed: O::I, index: O::I) -> O::F {
    let [w0, ..] = block(o, seed, index);
    let w0 = o.shr(w0, 8);
    let high = small_to_float(o, w0);
    scale(o, high, 1.0 / 16777216.0)
}
