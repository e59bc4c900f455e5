//! Reductions over parts, element by element, in the order of the parts' numbers.

use crate::interp::evaluate::combine;
use crate::syntax::Combine;
use crate::syntax::{Literal, Type};

/// Where the bytes of an element are in a word.
fn low(size: usize) -> std::ops::Range<usize> {
    if cfg!(target_endian = "little") { 0..size } else { 8 - size..8 }
}

fn element(size: usize, bytes: &[u8], at: usize) -> u64 {
    let mut word = [0; 8];
    word[low(size)].copy_from_slice(&bytes[at..at + size]);
    u64::from_ne_bytes(word)
}

fn set_element(size: usize, bits: u64, bytes: &mut [u8], at: usize) {
    bytes[at..at + size].copy_from_slice(&bits.to_ne_bytes()[low(size)]);
}

/// Every element becomes this value.
pub(super) fn fill(bytes: &mut [u8], value: Literal) {
    let size = value.ty().size();
    for at in (0..bytes.len()).step_by(size) {
        set_element(size, value.bits(), bytes, at);
    }
}

/// The sums over all parts.
pub(super) fn sum(ty: Type, all: &[&[u8]], into: &mut [u8]) {
    let size = ty.size();
    for at in (0..into.len()).step_by(size) {
        let elements = all.iter().map(|bytes| element(size, bytes, at));
        let total = elements.reduce(|sum, x| combine(Combine::Add, ty, sum, x));
        set_element(size, total.unwrap_or(0), into, at);
    }
}

/// The extremes over all parts, and the least part that attains each.
pub(super) fn extreme(how: Combine, ty: Type, all: &[&[u8]], into: &mut [u8], who: &mut [u8]) {
    let size = ty.size();
    for (k, at) in (0..into.len()).step_by(size).enumerate() {
        let elements = || all.iter().map(|bytes| element(size, bytes, at));
        let best = elements().reduce(|best, x| combine(how, ty, best, x)).unwrap_or(0);
        let winner = elements().position(|x| x == best).unwrap_or(0);
        set_element(size, best, into, at);
        set_element(4, winner as u64, who, 4 * k);
    }
}

/// The elements of the part that `who` names.
pub(super) fn choose(size: usize, all: &[&[u8]], who: &[u8], into: &mut [u8]) {
    for (k, at) in (0..into.len()).step_by(size).enumerate() {
        let part = element(4, who, 4 * k) as usize;
        let chosen = all.get(part).map_or(0, |bytes| element(size, bytes, at));
        set_element(size, chosen, into, at);
    }
}

/// Clears the elements that `who` gives to another part.
pub(super) fn keep_own(size: usize, part: usize, who: &[u8], into: &mut [u8]) {
    for (k, at) in (0..into.len()).step_by(size).enumerate() {
        if element(4, who, 4 * k) as usize != part {
            set_element(size, 0, into, at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn f64s(values: &[f64]) -> Vec<u8> {
        values.iter().flat_map(|x| x.to_ne_bytes()).collect()
    }

    #[test]
    fn a_sum_is_in_the_order_of_the_parts() {
        let parts = [f64s(&[1e16, 1.0]), f64s(&[1.0, 2.0]), f64s(&[-1e16, 3.0])];
        let parts: Vec<&[u8]> = parts.iter().map(Vec::as_slice).collect();
        let mut into = vec![0; 16];
        sum(Type::F64, &parts, &mut into);
        assert_eq!(into, f64s(&[(1e16 + 1.0) - 1e16, 6.0]));
    }

    #[test]
    fn the_least_part_attains_an_extreme() {
        let parts = [f64s(&[1.0, f64::NAN]), f64s(&[4.0, -2.0]), f64s(&[4.0, -1.0])];
        let parts: Vec<&[u8]> = parts.iter().map(Vec::as_slice).collect();
        let (mut into, mut who) = (vec![0; 16], vec![0; 8]);
        extreme(Combine::Max, Type::F64, &parts, &mut into, &mut who);
        assert_eq!(into, f64s(&[4.0, -1.0]));
        assert_eq!([element(4, &who, 0), element(4, &who, 4)], [1, 2]);
        choose(8, &parts, &who, &mut into);
        assert_eq!(into, f64s(&[4.0, -1.0]));
        keep_own(8, 2, &who, &mut into);
        assert_eq!(into, f64s(&[0.0, -1.0]));
    }
}
