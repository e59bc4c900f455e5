//! Flat indices of several dimensions: numbers whose digits are loop variables.
//!
//! - Input: an index, and the conditions under which it is used.
//! - Output: whether equal indices have equal digits.
//!
//! Proof: let the index be `Σ sₖ·dₖ` and an invariant, with `lₖ ≤ dₖ ≤ uₖ` and `eₖ = uₖ - lₖ + 1`. Where `|s₁| ≥ 1` and
//! `|sₖ₊₁| ≥ |sₖ|·eₖ`, the digits below `k` change the sum by less than `|sₖ|`: of two equal indices the greatest digit in which
//! they differ has no partner. Both are used, so every range has an element, and no extent is below one.

use super::formula::Formula;
use super::poly::{Atom, Poly};
use super::terms::{Key, Terms};

/// A digit: its stride, and how many values it may have, as each pair of its bounds says.
struct Digit {
    stride: Poly,
    extents: Vec<Poly>,
}

/// At most this many digits, and this many bounds of each on either side, are looked at.
const MOST: usize = 4;

/// Do two equal values of the index have equal digits, where `known` holds for both?
pub fn tells_digits_apart(terms: &Terms<'_>, index: &Poly, known: &[&Formula]) -> bool {
    let mut atoms: Vec<Atom> = index.atoms().filter(|a| terms.varies(*a)).collect();
    atoms.sort_unstable();
    atoms.dedup();
    if atoms.len() < 2 || atoms.len() > MOST {
        return false;
    }
    let digit = |atom: &Atom| {
        let stride = stride(terms, index, *atom)?;
        Some(Digit { stride, extents: extents(terms, *atom, known) })
    };
    let Some(digits) = atoms.iter().map(digit).collect::<Option<Vec<Digit>>>() else { return false };
    reaches_all(terms, &Poly::constant(1), &digits.iter().collect::<Vec<_>>())
}

/// Can the digits be put in an order in which each stride is at least what all digits below it reach? The depth of recursion is
/// the number of digits.
fn reaches_all(terms: &Terms<'_>, reach: &Poly, digits: &[&Digit]) -> bool {
    digits.is_empty()
        || (0..digits.len()).any(|k| {
            let rest: Vec<&Digit> =
                digits.iter().enumerate().filter(|(other, _)| *other != k).map(|(_, d)| *d).collect();
            [1, -1].into_iter().any(|sign| {
                let Some(stride) = Poly::default().add_scaled(&digits[k].stride, sign) else { return false };
                let covers = stride.add_scaled(reach, -1).is_some_and(|more| is_natural(terms, &more));
                let next =
                    |extent: &Poly| stride.mul(extent).is_some_and(|reach| reaches_all(terms, &reach, &rest));
                covers && (rest.is_empty() || digits[k].extents.iter().any(next))
            })
        })
}

/// Is the sum certain not to be negative?
fn is_natural(terms: &Terms<'_>, sum: &Poly) -> bool {
    let extent = |atom: &Atom| matches!(terms.key(*atom), Key::Dim(..));
    sum.terms.iter().all(|(monomial, c)| *c > 0 && monomial.iter().all(extent))
}

/// What the digit is multiplied by, where that is the same in all iterations.
fn stride(terms: &Terms<'_>, index: &Poly, digit: Atom) -> Option<Poly> {
    let mut stride = Poly::default();
    for (monomial, c) in index.terms.iter().filter(|(monomial, _)| monomial.contains(&digit)) {
        let rest: Vec<Atom> = monomial.iter().copied().filter(|a| *a != digit).collect();
        if rest.len() + 1 != monomial.len() || rest.iter().any(|a| terms.varies(*a)) {
            return None;
        }
        stride.terms.insert(rest, *c);
    }
    Some(stride)
}

/// How many values the digit may have: one number for each pair of bounds.
fn extents(terms: &Terms<'_>, digit: Atom, known: &[&Formula]) -> Vec<Poly> {
    let (mut least, mut most) = (Vec::new(), Vec::new());
    for formula in known {
        let Formula::AtLeastZero(p) = formula else { continue };
        let c = p.coefficient(digit);
        let Some(rest) = p.add_scaled(&Poly::atom(digit), -c) else { continue };
        if rest.atoms().any(|a| a == digit || terms.varies(a)) {
            continue;
        }
        match c {
            1 => least.push(rest),
            -1 => most.push(rest),
            _ => {}
        }
    }
    let pairs =
        most.iter().take(MOST).flat_map(|most| least.iter().take(MOST).map(move |least| (most, least)));
    pairs.filter_map(|(most, minus_least)| most.add_scaled(minus_least, 1)?.plus(1)).collect()
}
