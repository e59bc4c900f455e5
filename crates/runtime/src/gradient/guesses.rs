//! Room on tapes for what loops push whose iterations nobody can count before they have run.
//!
//! A launch makes room for some iterations of such a loop each time that it begins. Where that was too little, the run meets the
//! end of a tape, which changes nothing of the caller's, and is begun again with more room. What was learnt serves later launches.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use ebbtide_ir::ArrayId;

use crate::device::frame::tape::TapePlaces;

/// Iterations of a loop for which there is room at first, each time that it begins.
const FIRST: u64 = 4;

/// There is room for so many more beginnings than are known, since a loop that begins seldom may run long.
const MORE: u64 = 256;

/// By how much room grows: for elements that one iteration pushes, and for those of a whole parallel loop, which are more.
const GROWTH: u64 = 4;
const GROWTH_OF_STRIPS: u64 = 2;

/// No tape is expected to take more iterations of a loop each time that it begins.
const MOST: u64 = 1 << 32;

/// How many iterations loops are expected to have.
#[derive(Debug, Default)]
pub(crate) struct Guesses(Mutex<Guessed>);

#[derive(Debug, Default)]
struct Guessed {
    /// By array that is pushed: iterations each time that the loop begins, where that has been found too few.
    iterations: BTreeMap<ArrayId, u64>,
    /// Is there so much to take that nothing is guessed any more?
    given_up: bool,
}

impl Guesses {
    /// Pushes of an array in a loop that begins so often; `None` where they are not to be guessed any more.
    pub fn pushes(&self, array: ArrayId, beginnings: u64) -> Option<u64> {
        let guessed = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let each = guessed.iterations.get(&array).copied().unwrap_or(FIRST);
        (!guessed.given_up).then(|| beginnings.saturating_add(MORE).saturating_mul(each))
    }

    /// Expects more of a tape of elements that is full. `false` where that would be too many.
    pub fn lengthen(&self, tape: ArrayId) -> bool {
        self.expect(&[tape], GROWTH_OF_STRIPS)
    }

    /// Expects more of the arrays that left no room on their tapes, of these; of all where there was some on each. `false` where
    /// that would be too many.
    pub fn grow(&self, guessed: &[ArrayId], tapes: &[TapePlaces]) -> bool {
        let full = |array: &&ArrayId| {
            let tape = &tapes[array.index()];
            tape.depth.saturating_mul(2) >= tape.capacity()
        };
        let mut filled: Vec<ArrayId> = guessed.iter().filter(full).copied().collect();
        if filled.is_empty() {
            filled = guessed.to_vec();
        }
        self.expect(&filled, GROWTH)
    }

    fn expect(&self, arrays: &[ArrayId], growth: u64) -> bool {
        let mut guessed = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for array in arrays {
            let each = guessed.iterations.entry(*array).or_insert(FIRST);
            *each = each.saturating_mul(growth);
            if *each > MOST {
                return false;
            }
        }
        true
    }

    /// Is nothing guessed any more?
    pub fn are_given_up(&self) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).given_up
    }

    /// From now on nothing is guessed.
    pub fn give_up(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).given_up = true;
    }
}
