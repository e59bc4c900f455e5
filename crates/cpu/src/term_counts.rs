//! Memory in which the threads of a launch count the terms of sums at shared elements (law 8), and keep the sums of finished runs.
//!
//! It begins as zeros, which take no memory until they are written. Counts begin at the epoch of the loop that counts, or are set before, so what earlier
//! launches left is less than all that the next one counts: it need not be cleared.

use ebbtide_codegen::RoomForRuns;

/// Such memory.
#[derive(Default)]
pub(crate) struct TermCounts {
    words: Vec<u64>,
    room: RoomForRuns,
    /// The number of the last loop that counted by numbers.
    epoch: i64,
}

/// What a thread finds there.
#[derive(Clone, Copy)]
pub(crate) struct Part {
    pub counts: *mut u16,
    pub later: *mut u64,
    pub sums: *mut u8,
    pub elements: i64,
    pub bytes: i64,
    /// The number of the last loop that counted by numbers.
    pub epoch: i64,
}

impl TermCounts {
    pub fn of(room: RoomForRuns) -> TermCounts {
        let words = vec![0; (room.bytes() as usize).div_ceil(8)];
        TermCounts { words, room, epoch: 0 }
    }

    /// Is it memory for as much?
    pub fn holds(&self, room: RoomForRuns) -> bool {
        self.room.max(room) == self.room
    }

    /// What threads find; the same for all.
    pub fn part(&mut self) -> Part {
        let [counts, bits] = self.room.counts();
        let base: *mut u8 = self.words.as_mut_ptr().cast();
        Part {
            counts: base.cast(),
            later: base.wrapping_add(counts as usize).cast(),
            sums: base.wrapping_add((counts + bits) as usize),
            elements: self.room.elements as i64,
            bytes: self.room.sums as i64,
            epoch: self.epoch,
        }
    }

    /// Notes where a thread ended, as all did.
    pub fn ended(&mut self, part: &Part) {
        self.epoch = part.epoch;
    }
}
