//! The budget of one loop: what its hint says, what is free, and how much of it a loop of unknown length takes.

use ebbtide_ir::ReverseHint;

use super::need::{MOST_BLOCK, MOST_SLOTS, Need};
use crate::gradient::plan::Budget;
use crate::size::bytes;

/// States and block for a loop of unknown length.
pub(super) fn online_room(need: &Need, budget: Budget, share: u64, free: u64) -> Option<(usize, u64)> {
    let room = match budget {
        Budget::Revolve { slots, block } => return Some((slots.max(1), block.max(1))),
        Budget::Periodic { period } => return Some((64, period.max(1))),
        Budget::Bytes(_) => share,
        _ => share.min(free / 2),
    };
    // A quarter for the tape of a block, the rest for states; of one there must be room.
    let beside_a_state = room.checked_sub(need.state)?;
    let iterations = |bytes: u64| bytes.checked_div(need.tape).map_or(MOST_BLOCK, |b| b.clamp(1, MOST_BLOCK));
    let block = iterations(room / 4).min(iterations(beside_a_state));
    let left = room.checked_sub(block.saturating_mul(need.tape)).filter(|left| *left >= need.state)?;
    let slots = left.checked_div(need.state).unwrap_or(MOST_SLOTS).clamp(1, MOST_SLOTS);
    Some((slots as usize, block))
}

/// What `#[reverse(…)]` asks for.
pub(super) fn hinted(hint: ReverseHint) -> Budget {
    let slots = |n: u64| usize::try_from(n).unwrap_or(usize::MAX);
    match hint {
        ReverseHint::Periodic(period) => Budget::Periodic { period },
        // Where the length is known, Revolve is what an online schedule strives for.
        ReverseHint::Revolve(n) | ReverseHint::Online(n) | ReverseHint::Mixed(n) => {
            Budget::Revolve { slots: slots(n), block: 1 }
        }
        _ => Budget::StoreAll,
    }
}

/// Store-all while it fits in half of what is free.
pub(super) fn automatic(program: &str, store_all: u64, free: u64) -> Budget {
    let half = free / 2;
    if store_all <= half {
        return Budget::StoreAll;
    }
    crate::warn(&format!(
        "gradient `{program}`: keeping every tape would take {}, more than half of what is free: planning for {}; \
         say `.memory(..)` to choose yourself",
        bytes(store_all),
        bytes(half)
    ));
    Budget::Bytes(half)
}
