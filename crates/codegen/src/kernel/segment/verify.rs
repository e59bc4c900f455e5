//! What is a lawful segment. Input: steps; output: the first rule that they break.
//!
//! 1. Iterations stand in their parallel loop, once, and all threads meet behind them, or a proof says that they need not.
//! 2. Leaves are combined behind a barrier that follows their iterations.
//! 3. A library operation stands behind the question whether its arrays fit.
//! 4. What is kept or restored has a place.
//! 5. A product waits in a loop, behind which its matrix is settled.
//! 6. What one thread runs alone has nothing in it that is for all, and all threads meet behind it.
//! 7. A sum is known behind the loop that it is over, and nothing but computing stands between.

use std::collections::BTreeSet;
use std::fmt;

use ebbtide_ir::{ArrayId, ParId};

use super::{Barrier, By, Product, Step, Steps, Whole};

/// Why a segment is not lawful: the number of the rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Broken(pub usize);

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rule {} of segments", self.0)
    }
}

/// The step that steps stand in.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Around {
    Nothing,
    Par(ParId),
    Library,
    /// A place in which this array is kept.
    Place(ArrayId),
}

/// Are the steps lawful?
pub(crate) fn verify(steps: &Steps) -> Result<(), Broken> {
    inside(steps, Around::Nothing)?;
    holds(waiting(steps).is_empty(), 5)
}

/// The matrices that products of these steps wait for, and that are not settled behind the loop. The depth of recursion is that of
/// nesting in the source.
fn waiting(steps: &Steps) -> BTreeSet<ArrayId> {
    let mut left = BTreeSet::new();
    let mut steps = steps.iter().peekable();
    while let Some(step) = steps.next() {
        let mut here = match step {
            Step::Operation(call, Product::Waits) => call.writes.iter().copied().collect(),
            Step::If { then, otherwise, .. } => &waiting(then) | &waiting(otherwise),
            Step::Loop(l) => &waiting(&l.head) | &waiting(&l.body),
            Step::Interchanged(_, steps) | Step::Library(_, steps) => waiting(steps),
            _ => BTreeSet::new(),
        };
        if let Step::Loop(_) = step {
            while let Some(Step::Settle(matrix)) = steps.peek() {
                here.remove(matrix);
                steps.next();
            }
        }
        left.extend(here);
    }
    left
}

fn holds(condition: bool, rule: usize) -> Result<(), Broken> {
    if condition { Ok(()) } else { Err(Broken(rule)) }
}

/// The depth of recursion is that of nesting in the source.
fn inside(steps: &Steps, around: Around) -> Result<(), Broken> {
    for (k, step) in steps.iter().enumerate() {
        match step {
            Step::Iterations(par, _) => {
                holds(around == Around::Par(par.id), 1)?;
                holds(matches!(steps.get(k + 1), Some(Step::Barrier(_))), 1)?;
            }
            Step::Barrier(Barrier::UnlessProved) => {
                holds(k > 0 && matches!(steps[k - 1], Step::Iterations(..)), 1)?;
            }
            Step::Sum(_, par, _) => {
                let computes = |step: &&Step| {
                    matches!(step, Step::Let(_) | Step::Set(..) | Step::Store { .. } | Step::Sum(..))
                };
                let known = match steps[..k].iter().rev().find(|step| !computes(step)) {
                    Some(Step::Par(of, steps)) => {
                        of.id == par.id && matches!(steps.last(), Some(Step::CombineForAll(_)))
                    }
                    _ => false,
                };
                holds(known, 7)?;
            }
            Step::CombineLeaves(par) | Step::CombineForAll(par) => {
                let before = &steps[..k];
                let met = matches!(before, [.., Step::Iterations(..), Step::Barrier(Barrier::Always)]);
                holds(around == Around::Par(par.id) && met, 2)?;
            }
            Step::Operation(..) => holds(around == Around::Library, 3)?,
            Step::Whole(Whole::Keep(a) | Whole::Restore(a)) => holds(around == Around::Place(*a), 4)?,
            Step::If { then, otherwise, .. } => {
                inside(then, Around::Nothing)?;
                inside(otherwise, Around::Nothing)?;
            }
            Step::Loop(l) => {
                inside(&l.head, Around::Nothing)?;
                inside(&l.body, Around::Nothing)?;
            }
            Step::Interchanged(_, steps) | Step::Yield { undo: steps, .. } => inside(steps, Around::Nothing)?,
            Step::Par(par, steps) => {
                let iterations = steps.iter().filter(|step| matches!(step, Step::Iterations(..))).count();
                holds(iterations == 1, 1)?;
                inside(steps, Around::Par(par.id))?;
            }
            Step::Alone(inner, _) => {
                holds(inner.iter().all(is_for_one), 6)?;
                holds(matches!(steps.get(k + 1), Some(Step::Barrier(Barrier::Always))), 6)?;
            }
            Step::Library(_, steps) => inside(steps, Around::Library)?,
            Step::Push(push, steps) => inside(steps, Around::Place(push.array))?,
            Step::Keep(a, steps) | Step::Restore(a, steps) => inside(steps, Around::Place(*a))?,
            _ => {}
        }
    }
    Ok(())
}

/// Can one thread run a step alone? The depth of recursion is that of nesting in the source.
fn is_for_one(step: &Step) -> bool {
    let own = match step {
        Step::Let(_) | Step::Set(..) | Step::If { .. } | Step::Loop(_) => true,
        Step::Store { by, .. } => *by == By::First,
        Step::NextPlace(_)
        | Step::PushValue(..)
        | Step::TakePlace(_)
        | Step::LastPlace(_)
        | Step::PopValue(..) => true,
        _ => false,
    };
    own && step.inner().flatten().all(is_for_one)
}
