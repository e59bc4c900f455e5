//! The split of Revolve (Griewank and Walther 2000).

/// The first advance of an optimal reversal of `steps` ≥ 2 steps with `slots` ≥ 2 slots, the occupied one
/// included: the upper end of the interval of optimal ones.
pub(crate) fn split(steps: u64, slots: u64) -> u64 {
    let (n, s) = (u128::from(steps), u128::from(slots.min(steps)));
    // β(s, r) = C(s + r, s), up to the first one that reaches n.
    let (mut r, mut below, mut reach) = (0u128, 1u128, 1u128);
    while reach < n {
        r += 1;
        below = reach;
        reach = reach * (s + r) / r;
    }
    let narrower = if r == 0 { 1 } else { below * s / (s + r - 1) };
    below.min(n - narrower).clamp(1, n - 1) as u64
}
