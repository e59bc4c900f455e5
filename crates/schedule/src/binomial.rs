//! Binomial numbers for Revolve, exact, with no tables and no overflow.

/// β(s, r) = C(s + r, s): the number of units that `s` slots reverse when none is advanced over more than
/// `r` times. Saturates at `u128::MAX`; exact below 2⁶⁴.
pub(crate) fn beta(slots: u64, repetitions: u64) -> u128 {
    let (few, many) = (slots.min(repetitions), slots.max(repetitions));
    let mut value: u128 = 1;
    for i in 1..=u128::from(few) {
        match value.checked_mul(u128::from(many) + i) {
            Some(product) => value = product / i,
            None => return u128::MAX,
        }
    }
    value
}

/// How `steps` steps relate to the binomial numbers of `slots` slots.
pub(crate) struct Rank {
    /// r: the least number with block · β(s, r) ≥ steps; at least 1.
    pub repetitions: u64,
    /// β(s, r − 1), which is less than steps / block.
    pub below: u128,
}

/// The rank of `steps` steps, more than one block of them, with at least one slot.
pub(crate) fn rank(steps: u64, slots: u64, block: u64) -> Rank {
    debug_assert!(steps > block && slots > 0 && block > 0);
    let units = u128::from(steps.div_ceil(block));
    if slots == 1 {
        return Rank { repetitions: units as u64 - 1, below: units - 1 };
    }
    let (mut r, mut below, mut value) = (0_u64, 1_u128, 1_u128);
    while value < units {
        if r == 64 {
            return rank_of_many(units, slots, r);
        }
        r += 1;
        below = value;
        value = value * (u128::from(slots) + u128::from(r)) / u128::from(r);
    }
    Rank { repetitions: r, below }
}

/// The search for large ranks, which only few slots have: doubling, then halving.
fn rank_of_many(units: u128, slots: u64, too_low: u64) -> Rank {
    let (mut low, mut high) = (too_low, too_low * 2);
    while beta(slots, high) < units {
        (low, high) = (high, high * 2);
    }
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if beta(slots, middle) < units {
            low = middle;
        } else {
            high = middle;
        }
    }
    Rank { repetitions: high, below: beta(slots, low) }
}
