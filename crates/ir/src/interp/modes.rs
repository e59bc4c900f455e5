//! Modes of the interpreter: the judges of programs and of what is generated from them.
//!
//! A mode never changes the bits of a lawful program. It changes what an unlawful one does: the run stops with a
//! [`Fault`](crate::Fault), or other bits come out. All modes are off unless they are asked for.

use std::str::FromStr;

use super::checks::Checks;
use crate::syntax::Type;

/// How the interpreter runs a program beyond the law.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Modes {
    /// What is checked of the numbers that a program writes.
    pub checks: Checks,
    /// The order in which iterations of parallel loops run.
    pub order: IterationOrder,
    /// Are accesses of iterations compared with each other?
    pub races: Races,
    /// What happens to contents that the program may not read any more.
    pub dead: Dead,
}

/// The order in which the iterations of a parallel loop run. What they combine into shared elements is combined in the
/// order of law 8, whatever this order is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IterationOrder {
    /// The first iteration first.
    #[default]
    Ascending,
    /// The last iteration first.
    Descending,
    /// A permutation that this seed, the loop and the number of its executions decide.
    Shuffled(u64),
}

/// Are accesses of iterations compared with each other?
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Races {
    /// No.
    #[default]
    Ignored,
    /// Every access of every iteration is noted; the first conflict is [`Fault::Race`](crate::Fault::Race).
    Reported,
}

/// What happens to contents that a program may not read any more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Dead {
    /// They stay in memory.
    #[default]
    Kept,
    /// They are overwritten by [`poison`].
    Poisoned,
}

/// Modes as text, separated by commas: `numbers`, `races`, `poison`, and one of `descending` and `shuffled=SEED`. The
/// error says what was not understood.
///
/// ```
/// use ebbtide_ir::{IterationOrder, Modes, Races};
///
/// let modes: Modes = "races,shuffled=7".parse()?;
/// assert_eq!(modes.order, IterationOrder::Shuffled(7));
/// assert_eq!(modes.races, Races::Reported);
/// assert!("race".parse::<Modes>().is_err());
/// # Ok::<(), String>(())
/// ```
impl FromStr for Modes {
    type Err = String;

    fn from_str(text: &str) -> Result<Modes, String> {
        let mut modes = Modes::default();
        for word in text.split(',').map(str::trim).filter(|word| !word.is_empty()) {
            let seed = word.strip_prefix("shuffled=").and_then(|seed| seed.parse().ok());
            match (word, seed) {
                ("numbers", _) => modes.checks = Checks::Numbers,
                ("races", _) => modes.races = Races::Reported,
                ("poison", _) => modes.dead = Dead::Poisoned,
                ("descending", _) => modes.order = IterationOrder::Descending,
                (_, Some(seed)) => modes.order = IterationOrder::Shuffled(seed),
                _ => {
                    return Err(format!(
                        "there is no mode `{word}`: there are `numbers`, `races`, `poison`, `descending` and \
                         `shuffled=SEED`"
                    ));
                }
            }
        }
        Ok(modes)
    }
}

/// Overwrites elements so that a read of one shows: floats become NaN, `bool` becomes `true`, integers the bits
/// `0xdead_beef` (twice in `i64`). As an index these are negative (`i32`, `i64`) or beyond every array of less than
/// 3.7 billion elements (`u32`).
pub fn poison(ty: Type, bytes: &mut [u8]) {
    let size = ty.size();
    let pattern: [u8; 8] = match ty {
        Type::F64 => f64::NAN.to_ne_bytes(),
        Type::F32 => {
            let [a, b, c, d] = f32::NAN.to_ne_bytes();
            [a, b, c, d, a, b, c, d]
        }
        Type::Bool => [1; 8],
        Type::I32 | Type::U32 | Type::I64 | Type::Index => {
            let [a, b, c, d] = 0xdead_beef_u32.to_ne_bytes();
            [a, b, c, d, a, b, c, d]
        }
    };
    bytes.chunks_exact_mut(size).for_each(|element| element.copy_from_slice(&pattern[..size]));
}

impl IterationOrder {
    /// The numbers of `count` iterations in the order in which they run; `draw` tells executions of one seed apart.
    pub(crate) fn of(self, count: u64, draw: u64) -> Vec<u64> {
        let mut numbers: Vec<u64> = (0..count).collect();
        match self {
            IterationOrder::Ascending => {}
            IterationOrder::Descending => numbers.reverse(),
            IterationOrder::Shuffled(seed) => {
                // Fisher and Yates, with the hash of Steele, Lea and Flood (splitmix64).
                let mut state = seed ^ draw.wrapping_mul(0xd134_2543_de82_ef95);
                for k in (1..numbers.len()).rev() {
                    state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
                    let mut x = state;
                    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
                    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
                    numbers.swap(k, ((x ^ (x >> 31)) % (k as u64 + 1)) as usize);
                }
            }
        }
        numbers
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::syntax::Literal;

    #[test]
    fn poison_is_no_number_and_no_index() {
        let bits = |ty: Type| {
            let mut bytes = [0; 8];
            poison(ty, &mut bytes[..ty.size()]);
            let word = match ty.size() {
                1 => u64::from(bytes[0]),
                4 => u64::from(u32::from_ne_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])),
                _ => u64::from_ne_bytes(bytes),
            };
            Literal::from_bits(ty, word)
        };
        assert!(bits(Type::F64).to_f64().is_nan() && bits(Type::F32).to_f64().is_nan());
        assert_eq!(bits(Type::Bool), Literal::from(true));
        assert_eq!(bits(Type::I32), Literal::from(-559_038_737i32));
        assert_eq!(bits(Type::U32), Literal::from(0xdead_beef_u32));
        assert!(bits(Type::I64).to_i64().is_some_and(|index| index < 0));
    }

    #[test]
    fn every_order_has_every_iteration_once() {
        for order in [IterationOrder::Ascending, IterationOrder::Descending, IterationOrder::Shuffled(3)] {
            for count in [0, 1, 2, 100] {
                let mut numbers = order.of(count, 7);
                numbers.sort_unstable();
                assert_eq!(numbers, (0..count).collect::<Vec<_>>(), "{order:?}");
            }
        }
        assert_ne!(IterationOrder::Shuffled(3).of(100, 0), IterationOrder::Shuffled(3).of(100, 1));
        assert_ne!(IterationOrder::Shuffled(3).of(100, 0), IterationOrder::Shuffled(4).of(100, 0));
    }
}
