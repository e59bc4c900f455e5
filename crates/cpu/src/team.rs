//! How many threads of a pool work together. Input: how long launches took and how long their threads slept at barriers;
//! output: the number of threads of the next launch. On a machine with other work, threads that wait for one that has no
//! core are slower than fewer threads. The number changes no bit of a result.

/// Decisions are made after so much time in launches, in nanoseconds.
const WINDOW: i64 = 5_000_000;
/// How long a smaller team works before all threads are tried again; twice as long each time that fails, up to the second.
const PAUSES: [i64; 2] = [100_000_000, 2_000_000_000];

/// The team of a pool. Times are nanoseconds since some moment.
#[derive(Debug)]
pub(crate) struct Team {
    most: usize,
    size: usize,
    /// Time in launches since the last decision, and what its threads could sleep and did.
    elapsed: i64,
    possible: i64,
    slept: i64,
    /// When all threads are tried again, and how long that pause was.
    again: i64,
    pause: i64,
}

impl Team {
    pub fn new(most: usize) -> Team {
        Team { most, size: most, elapsed: 0, possible: 0, slept: 0, again: 0, pause: PAUSES[0] }
    }

    /// The threads of a launch that begins now.
    pub fn size(&mut self, now: i64) -> usize {
        if self.size < self.most && now >= self.again {
            self.size = self.most;
            (self.elapsed, self.possible, self.slept) = (0, 0, 0);
        }
        self.size
    }

    /// A launch of so many threads has ended.
    pub fn ended(&mut self, now: i64, threads: usize, elapsed: i64, slept: i64) {
        self.elapsed += elapsed;
        self.possible += elapsed * (threads as i64 - 1);
        self.slept += slept;
        if self.elapsed < WINDOW {
            return;
        }
        // All but one could have slept all the time: where they slept more than half of it, fewer do as much.
        if 2 * self.slept > self.possible && threads > 1 {
            let first = self.size == self.most;
            self.size = (threads / 2).max(1);
            self.pause = if first && self.again > 0 { (2 * self.pause).min(PAUSES[1]) } else { self.pause };
            self.again = now + self.pause;
        } else if self.size == self.most {
            (self.again, self.pause) = (0, PAUSES[0]);
        }
        (self.elapsed, self.possible, self.slept) = (0, 0, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = 1_000_000;

    #[test]
    fn a_team_that_waits_becomes_smaller_and_is_tried_again() {
        let mut team = Team::new(8);
        assert_eq!(team.size(0), 8);
        team.ended(MS, 8, MS, 7 * MS);
        assert_eq!(team.size(MS), 8, "one millisecond decides nothing");
        team.ended(6 * MS, 8, 5 * MS, 30 * MS);
        assert_eq!(team.size(6 * MS), 4);
        team.ended(12 * MS, 4, 6 * MS, 15 * MS);
        assert_eq!(team.size(12 * MS), 2);
        // Two threads that wait little stay two, until the pause is over.
        team.ended(20 * MS, 2, 8 * MS, MS);
        assert_eq!(team.size(20 * MS), 2);
        assert_eq!(team.size(112 * MS), 8);
        // The next pause is longer.
        team.ended(120 * MS, 8, 8 * MS, 50 * MS);
        assert_eq!(team.size(300 * MS), 4);
        assert_eq!(team.size(320 * MS), 8);
    }

    #[test]
    fn a_team_that_works_stays_together() {
        let mut team = Team::new(4);
        for k in 1..100 {
            team.ended(k * 10 * MS, 4, 10 * MS, 10 * MS);
            assert_eq!(team.size(k * 10 * MS), 4);
        }
    }

    #[test]
    fn one_thread_waits_for_nobody() {
        let mut team = Team::new(1);
        team.ended(50 * MS, 1, 50 * MS, 0);
        assert_eq!(team.size(50 * MS), 1);
    }
}
