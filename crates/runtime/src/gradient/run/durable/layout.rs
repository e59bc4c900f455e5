//! What the checkpoint of a run consists of beside its position: names and numbers that `commit` writes and `restore` expects.
//!
//! In this order: `frontier` (where all parts of a grid write one together), `ran`, `values`, `locals`, `host` (where the program yields), `shapes` (where the host changed
//! any); for each loop that is being driven `loop N`, `schedule N`, `taped N`, `slots N`, `far N` and, where shapes changed, `slot shapes N`; for each array `array N` and, where its tape holds something,
//! `tape N`; for each of these loops `slot data N` and `far data N`. A result consists of `frontier`, `ran`, `shapes` and the arrays alone. What
//! has no bytes is left out, since the order of such arrays in a file is not defined.
//!
//! `values` are in the order of their canonical numbers (`Program::numbering`), which programs of one hash share.

use ebbtide_schedule::{Action, Slot, Tier};

use crate::gradient::ran::Ran;

/// The numbers of a loop: how many of its states are on disk, what is left of an action that was done in part, and where the
/// loop stands but for its tape: the iteration that its state is before, and down to which it is reversed.
pub(super) const LOOP_WORDS: usize = 6;

/// A number that may be missing.
pub(super) fn word(number: Option<u64>) -> u64 {
    number.map_or(u64::MAX, |number| number)
}

pub(super) fn number(word: u64) -> Option<u64> {
    (word != u64::MAX).then_some(word)
}

pub(super) fn ran_words(ran: &Ran) -> [u64; 9] {
    let Ran { advanced, recorded, reversed, stored, loaded, to_host, from_host, to_disk, from_disk } = *ran;
    [advanced, recorded, reversed, stored, loaded, to_host, from_host, to_disk, from_disk]
}

pub(super) fn ran(words: [u64; 9]) -> Ran {
    let [advanced, recorded, reversed, stored, loaded, to_host, from_host, to_disk, from_disk] = words;
    Ran { advanced, recorded, reversed, stored, loaded, to_host, from_host, to_disk, from_disk }
}

/// What is left of an action, as numbers.
pub(super) fn action_words(action: Option<Action>) -> [u64; 3] {
    match action {
        Some(Action::Advance { from, to }) => [0, from, to],
        Some(Action::Record { from, to }) => [1, from, to],
        Some(Action::Reverse { from, to }) => [2, from, to],
        // The others are done in one go.
        _ => [3, 0, 0],
    }
}

pub(super) fn action(words: [u64; 3]) -> Option<Action> {
    match words {
        [0, from, to] => Some(Action::Advance { from, to }),
        [1, from, to] => Some(Action::Record { from, to }),
        [2, from, to] => Some(Action::Reverse { from, to }),
        _ => None,
    }
}

pub(super) fn slot_words(slot: Slot) -> [u64; 2] {
    [u64::from(slot.tier == Tier::Disk), slot.index as u64]
}

pub(super) fn slot(words: [u64; 2]) -> Option<Slot> {
    let tier = match words[0] {
        0 => Tier::Memory,
        1 => Tier::Disk,
        _ => return None,
    };
    Some(Slot { tier, index: usize::try_from(words[1]).ok()? })
}

pub(super) fn bytes_of(words: impl IntoIterator<Item = u64>) -> Vec<u8> {
    words.into_iter().flat_map(u64::to_le_bytes).collect()
}

pub(super) fn words_of(bytes: &[u8]) -> Vec<u64> {
    bytes.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word)).collect()
}
