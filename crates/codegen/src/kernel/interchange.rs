//! A loop that runs inside the parallel loops of its iterations, as a tree.
//!
//! A thread takes an iteration of the parallel loops, which have one domain, through all iterations of the loop and meets nobody.
//! Elements at its own index are in variables meanwhile: they are loaded before the first iteration of the loop and stored behind the
//! last. What is put on tapes and brought back is an element of each place. `transform::interchange` makes the tree;
//! [`verify`] says what is right, [`show`] prints it for people, and `interpret` is what it means, for tests.

#[cfg(test)]
pub(crate) mod interpret;
pub(crate) mod show;
pub(crate) mod verify;

use std::collections::{BTreeMap, BTreeSet};

use ebbtide_ir::{ArrayId, Loop, Par, ValueId};

use super::bounds_test::Test;
use super::stmt::Body;

/// A loop inside its parallel loops.
#[derive(Clone, Debug)]
pub(crate) struct Interchanged<'p> {
    pub source: &'p Loop,
    /// What the loop computes its domain from, operands first: it is the same in all iterations, and computed before them.
    pub early: BTreeSet<ValueId>,
    /// A parallel loop with the domain that all of them have.
    pub domain: &'p Par,
    /// The variables of the others, and which one of the domain each of them is.
    pub same: Vec<(ValueId, ValueId)>,
    /// The loop runs so where it has iterations and all of these hold, which are asked before it.
    pub guards: BTreeSet<Guard>,
    /// The arrays in whose memory it finds elements, or puts them.
    pub arrays: BTreeSet<ArrayId>,
    /// The arrays whose elements are held in variables.
    pub held: BTreeMap<ArrayId, Held>,
    /// The tapes that every iteration of the loop uses.
    pub tapes: BTreeMap<ArrayId, Tape>,
    /// So many iterations of the loop are taken as one.
    pub together: usize,
    /// An iteration of the loop, for one iteration of its parallel loops.
    pub body: Body,
}

/// A condition under which a loop runs inside its parallel loops.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Guard {
    /// With others it proves that no index needs a check.
    Proof(Test),
    /// A bound is a number.
    Number(ValueId),
    /// The domain is the whole of an array along this dimension.
    Whole(ArrayId, usize),
    /// The domain lies within an array along this dimension.
    Within(ArrayId, usize),
    /// The tape of an array has the places that all iterations of the loop use.
    Places(ArrayId, Tape),
}

/// An array whose elements are held in variables while a loop runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Held {
    /// Is it another array before its last push, with nothing in it before the loop?
    pub old: bool,
    /// Does the loop write it?
    pub written: bool,
    /// Must the domain be the whole array?
    pub whole: bool,
}

/// How many places of a tape an iteration of a loop uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Tape {
    Pushes(u32),
    Pops(u32),
}

impl Tape {
    /// How many.
    pub fn places(&self) -> u32 {
        match self {
            Tape::Pushes(count) | Tape::Pops(count) => *count,
        }
    }
}
