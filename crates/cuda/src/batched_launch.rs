//! Steps that one launch takes one after the other: segments for which a single block is enough, and the copies of small
//! arrays between them.
//!
//! A kernel starts some microseconds after it was asked for, and ends as long before the host knows; a small segment runs
//! for less. So such steps wait until somebody must see what they do, or until there are enough of them.

use crate::parameters::Launch;
use crate::sys::Address;

/// As many steps go with one launch; `EB_STEPS` of the prelude.
pub const STEPS: usize = 64;

/// Arrays of at most so many bytes are copied by the block that runs the segments, others by many.
pub const SMALL_COPY: usize = 16 << 10;

/// The most extents that the arrays of a program have in all: the parameters of a launch have room for so many.
pub const EXTENTS: usize = 192;

/// As many values can change with a step; `EB_CHANGES` of the prelude.
const CHANGES: usize = 2;

/// `EB_STORE`, `EB_LOAD` and `EB_CHANGE` of the prelude: what is no segment.
const STORE: i32 = -1;
const LOAD: i32 = -2;
const CHANGE: i32 = -3;

/// One step; `eb_step` of the prelude.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Step {
    what: i32,
    changes: i32,
    changed: [i32; CHANGES],
    change: [u64; CHANGES],
}

/// Which way a copy goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// From an array to a slot.
    Store,
    /// From a slot to an array.
    Load,
}

impl Step {
    /// A segment, after these values were changed: several steps, where they are many.
    pub fn segment(segment: usize, values: &[(usize, u64)]) -> impl Iterator<Item = Step> {
        let last = values.len().saturating_sub(1) / CHANGES;
        (0..=last).map(move |k| {
            let some = values.chunks(CHANGES).nth(k).unwrap_or(&[]);
            let what = if k == last { segment as i32 } else { CHANGE };
            let mut step = Step { what, changes: some.len() as i32, ..Step::default() };
            for (k, (v, bits)) in some.iter().enumerate() {
                (step.changed[k], step.change[k]) = (*v as i32, *bits);
            }
            step
        })
    }

    /// A copy between an array and a slot of so many bytes.
    pub fn copy(way: Way, array: usize, slot: Address, bytes: usize) -> Step {
        let what = match way {
            Way::Store => STORE,
            Way::Load => LOAD,
        };
        Step { what, changes: array as i32, change: [slot, bytes as u64], ..Step::default() }
    }
}

/// What a launch of the kernel that takes steps is given; `eb_batch` of the prelude.
#[repr(C)]
pub struct BatchedLaunch {
    launch: Launch,
    steps: i64,
    step: [Step; STEPS],
}

impl BatchedLaunch {
    /// A launch that takes these steps, at most [`STEPS`].
    pub fn new(launch: Launch, steps: &[Step]) -> BatchedLaunch {
        let mut batch = BatchedLaunch { launch, steps: 0, step: [Step::default(); STEPS] };
        batch.steps = steps.len().min(STEPS) as i64;
        batch.step.iter_mut().zip(steps).for_each(|(place, step)| *place = *step);
        batch
    }
}

/// Steps that wait to be launched together.
#[derive(Debug, Default)]
pub struct Waiting {
    steps: Vec<Step>,
    threads: u32,
    /// How often steps were launched: the first ones go soon, so that the GPU has something to do.
    rounds: u32,
}

impl Waiting {
    /// The first launch takes so many steps, each later one twice as many, up to [`STEPS`].
    const FIRST: usize = 8;

    /// Adds a step that so many threads take.
    pub fn push(&mut self, step: Step, threads: u32) {
        self.steps.push(step);
        self.threads = self.threads.max(threads);
    }

    /// Are there as many as should go?
    pub fn is_full(&self) -> bool {
        self.steps.len() >= (Waiting::FIRST << self.rounds.min(8)).min(STEPS)
    }

    /// The steps, and how many threads they want; none wait then.
    pub fn take(&mut self) -> Option<(Vec<Step>, u32)> {
        if self.steps.is_empty() {
            return None;
        }
        self.rounds += 1;
        Some((std::mem::take(&mut self.steps), std::mem::take(&mut self.threads).max(32)))
    }
}

const _: () = assert!(size_of::<Step>() == 32, "the prelude declares as many bytes");
const _: () = assert!(
    size_of::<BatchedLaunch>() + 8 * EXTENTS <= 4096,
    "the parameters of a kernel have at most so many bytes on every architecture"
);

#[cfg(test)]
mod tests {
    use super::{CHANGE, STEPS, Step, Waiting, Way};

    #[test]
    fn values_that_change_go_with_their_segment_or_before_it() {
        let steps = |values: &[(usize, u64)]| {
            Step::segment(7, values).map(|step| (step.what, step.changes)).collect::<Vec<_>>()
        };
        assert_eq!(steps(&[]), [(7, 0)]);
        assert_eq!(steps(&[(1, 2), (3, 4)]), [(7, 2)]);
        assert_eq!(steps(&[(1, 2), (3, 4), (5, 6)]), [(CHANGE, 2), (7, 1)]);
    }

    #[test]
    fn the_first_steps_go_soon_and_later_ones_together() {
        let mut waiting = Waiting::default();
        let mut launched = Vec::new();
        for _ in 0..300 {
            waiting.push(Step::copy(Way::Load, 0, 0, 16), 64);
            if waiting.is_full() {
                launched.push(waiting.take().unwrap().0.len());
            }
        }
        assert_eq!(launched, [8, 16, 32, STEPS, STEPS, STEPS]);
        assert_eq!(waiting.take().map(|(steps, threads)| (steps.len(), threads)), Some((52, 64)));
        assert!(waiting.take().is_none());
    }
}
