//! The race detector: which iterations of one execution of a parallel loop touch each element, and how.
//!
//! Two reads never conflict, nor do two combinations by the same operation, nor two claims (the second of which is a
//! fault of its own). Everything else by two different iterations does. So it is enough to keep, for each element and
//! each way of touching it, the first two iterations that did: an access by a third one conflicts with them as it would
//! with all others.

use std::collections::HashMap;

use crate::syntax::{ArrayId, Site};
use crate::syntax::{Race, Touch, Touched};

/// The accesses of one execution of a parallel loop.
#[derive(Debug, Default)]
pub(super) struct RaceLog<'p> {
    elements: HashMap<(ArrayId, usize), Vec<Seen<'p>>>,
}

#[derive(Clone, Copy, Debug)]
struct Seen<'p> {
    how: Touched,
    iteration: u64,
    site: &'p Option<Site>,
}

/// Do these accesses of two iterations conflict?
fn conflict(a: Touched, b: Touched) -> bool {
    match (a, b) {
        (Touched::Read, Touched::Read) | (Touched::Claimed, Touched::Claimed) => false,
        (Touched::Combined(a), Touched::Combined(b)) => a != b,
        _ => true,
    }
}

impl<'p> RaceLog<'p> {
    /// Notes an access; the earlier one that it conflicts with, and this one, where there is a conflict.
    pub fn note(
        &mut self,
        (array, element): (ArrayId, usize),
        iteration: u64,
        how: Touched,
        site: &'p Option<Site>,
    ) -> Option<[Noted; 2]> {
        let seen = self.elements.entry((array, element)).or_default();
        let now = Seen { how, iteration, site };
        let other = seen.iter().find(|s| s.iteration != iteration && conflict(s.how, how));
        if let Some(other) = other {
            return Some([*other, now].map(|s| Noted {
                how: s.how,
                iteration: s.iteration,
                site: s.site.clone(),
            }));
        }
        let mut alike = seen.iter().filter(|s| s.how == how);
        let known = alike.clone().any(|s| s.iteration == iteration) || alike.nth(1).is_some();
        if !known {
            seen.push(now);
        }
        None
    }
}

/// An access, with the number of its iteration.
pub(super) struct Noted {
    how: Touched,
    iteration: u64,
    site: Option<Site>,
}

impl Noted {
    /// The access as errors show it; `index` gives the index of an iteration by its number.
    fn shown(self, index: &impl Fn(u64) -> Vec<i64>) -> Touch {
        Touch { how: self.how, iteration: index(self.iteration), site: self.site }
    }
}

/// The race of two accesses to an element of an array.
pub(super) fn race(
    array: String,
    element: Vec<i64>,
    [first, second]: [Noted; 2],
    index: impl Fn(u64) -> Vec<i64>,
) -> Race {
    Race { array, element, first: first.shown(&index), second: second.shown(&index) }
}
