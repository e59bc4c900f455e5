//! What a gradient program puts on its tape, and what its loops carry.
//!
//! - Input: the program as it is differentiated, and the facts about it.
//! - Output: for each statement that overwrites something, what is recorded before it; for each loop and region, what it
//!   needs to be run again.
//! - Invariant: the forward half pushes what the plan says, the reverse half pops it, and neither decides anything.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use ebbtide_ir::{
    Affines, ArrayId, Block, Combine, LibraryCall, Loop, LoopId, LoopKind, Op, Par, ParId, Program, Region,
    RegionId, Stmt, ValueId, depends_on_arguments_alone,
};

use crate::analysis::activity::Activity;
use crate::analysis::dead_on_entry::dead_on_entry;
use crate::analysis::effects::{changes, reads, reads_of, swap_classes, written_by};
use crate::analysis::extremes::extreme_arrays;
use crate::analysis::needed::Needed;
use crate::analysis::trajectory::{Trajectory, trajectories, written_in};
use crate::request::Optimisation;

/// What is recorded, and what loops carry.
pub(crate) struct TapePlan {
    needed: Needed,
    /// By top-level statement: arrays that are their own tape there.
    trajectories: BTreeMap<usize, BTreeMap<ArrayId, Trajectory>>,
    pars: BTreeMap<ParId, Vec<ArrayId>>,
    loops: BTreeMap<LoopId, LoopPlan>,
    regions: BTreeMap<RegionId, Vec<ArrayId>>,
    asides: HashSet<Aside>,
}

/// What is recorded of a loop, and what it carries.
#[derive(Clone, Debug, Default)]
pub(crate) struct LoopPlan {
    /// Is the number of iterations known before the program starts?
    pub known_length: bool,
    /// Arrays that are recorded once before the loop, for what stands before it.
    pub around: Vec<ArrayId>,
    /// What the loop needs to be run again, where it stands in an iteration that is recorded.
    pub entry: Vec<ArrayId>,
    /// What a slot of its schedule holds.
    pub slots: Vec<ArrayId>,
    /// What iterations write and no slot need hold, since nothing overwrites what was read.
    pub kept: Vec<ArrayId>,
}

/// Something of an iteration that the reverse half cannot compute again: it goes on the tape through an array of rank 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Aside {
    Value(ValueId),
    /// The element that a program-level write replaces, by the value that it writes and the array.
    Element(ArrayId, ValueId),
}

impl TapePlan {
    /// The plan for a program.
    pub fn new(
        (source, affines): (&Program, &Affines),
        activity: &Activity,
        needed: Needed,
        without: &BTreeSet<Optimisation>,
    ) -> TapePlan {
        let uses = |optimisation| !without.contains(&optimisation);
        let keeps = uses(Optimisation::KeepTrajectories) && !needed.everything;
        let own_tape = |(position, top): (usize, &Stmt)| match top {
            Stmt::Loop(l) if keeps => Some((position, trajectories(source, affines, l))),
            _ => None,
        };
        let plan = TapePlan {
            needed,
            trajectories: source.body.iter().enumerate().filter_map(own_tape).collect(),
            pars: BTreeMap::new(),
            loops: BTreeMap::new(),
            regions: BTreeMap::new(),
            asides: HashSet::new(),
        };
        let classes = swap_classes(source);
        let changed: BTreeSet<ArrayId> = changes(source, &source.body).iter().map(|a| classes[a]).collect();
        let mut planner =
            Planner { source, affines, activity, without, classes, changed, whole: &[], position: 0, plan };
        for (position, top) in source.body.iter().enumerate() {
            planner.position = position;
            planner.whole = std::slice::from_ref(top);
            planner.block(std::slice::from_ref(top), Nested::No);
        }
        planner.plan
    }

    /// Is what the array holds recorded when a part of the top-level statement `position` overwrites it?
    pub fn records(&self, array: ArrayId, position: usize) -> bool {
        self.needed.before(array, position) && self.trajectory(array, position).is_none()
    }

    fn trajectory(&self, array: ArrayId, position: usize) -> Option<Trajectory> {
        self.trajectories.get(&position)?.get(&array).copied()
    }

    /// The arrays that reversing this parallel loop takes back from the tape, in the order of their pushes.
    pub fn par(&self, par: &Par) -> &[ArrayId] {
        self.pars.get(&par.id).map_or(&[], Vec::as_slice)
    }

    /// The arrays that reversing this operation takes back from the tape, in the order of their pushes.
    pub fn call(&self, call: &LibraryCall, position: usize) -> Vec<ArrayId> {
        call.writes.iter().copied().filter(|a| self.records(*a, position)).collect()
    }

    /// The plan of a loop.
    pub fn loop_plan(&self, l: &Loop) -> LoopPlan {
        self.loops.get(&l.id).cloned().unwrap_or_default()
    }

    /// What a region needs to be run again.
    pub fn region(&self, region: &Region) -> &[ArrayId] {
        self.regions.get(&region.id).map_or(&[], Vec::as_slice)
    }

    /// Does it go on the tape by itself?
    pub fn puts_aside(&self, what: Aside) -> bool {
        self.asides.contains(&what)
    }
}

/// Does a statement stand in a loop or a branch, so that the reverse half must compute its value again?
#[derive(Clone, Copy, PartialEq, Eq)]
enum Nested {
    Yes,
    No,
}

/// Fills a plan, statement by statement.
struct Planner<'a> {
    source: &'a Program,
    affines: &'a Affines,
    activity: &'a Activity,
    without: &'a BTreeSet<Optimisation>,
    classes: BTreeMap<ArrayId, ArrayId>,
    /// The classes of arrays that the program changes.
    changed: BTreeSet<ArrayId>,
    /// The top-level statement around what is looked at, and its number.
    whole: &'a [Stmt],
    position: usize,
    plan: TapePlan,
}

impl Planner<'_> {
    /// The depth of recursion is that of nesting in the source.
    fn block(&mut self, block: &[Stmt], nested: Nested) {
        for (at, stmt) in block.iter().enumerate() {
            match stmt {
                Stmt::Let(v) if nested == Nested::Yes && self.cannot_repeat(*v) => {
                    self.plan.asides.insert(Aside::Value(*v));
                }
                Stmt::Par(par) => {
                    let recorded = written_by(par).into_iter().filter(|a| self.records(*a)).collect();
                    self.plan.pars.insert(par.id, recorded);
                }
                Stmt::If(branch) => {
                    self.block(&branch.then, Nested::Yes);
                    self.block(&branch.otherwise, Nested::Yes);
                }
                Stmt::Loop(l) => {
                    let plan = LoopPlan {
                        known_length: self.has_known_length(l),
                        around: self.around(l),
                        entry: self.loop_entry(l),
                        slots: self.slots(l),
                        kept: written_in(l).into_iter().filter(|a| self.is_kept(a)).collect(),
                    };
                    self.plan.loops.insert(l.id, plan);
                    self.block(&l.body, Nested::Yes);
                }
                Stmt::Region(region) => {
                    let read = reads_of(self.source, std::slice::from_ref(stmt));
                    let entry = self.entry(read, &vec![stmt.clone()]);
                    self.plan.regions.insert(region.id, entry);
                    // It is run and reversed in one go, like a whole program.
                    self.block(&region.body, Nested::No);
                }
                _ => {}
            }
            if let Stmt::Store(s) | Stmt::Update(_, s) = stmt
                && self.replaced_element_is_needed(block, at)
            {
                self.plan.asides.insert(Aside::Element(s.array, s.value));
            }
        }
    }

    fn records(&self, array: ArrayId) -> bool {
        self.plan.records(array, self.position)
    }

    fn has_known_length(&self, l: &Loop) -> bool {
        let known = |v| depends_on_arguments_alone(self.source, v);
        matches!(l.kind, LoopKind::For { from, to, .. } if l.until.is_none() && known(from) && known(to))
    }

    /// What a slot holds: what is carried, but for what an iteration replaces before anything reads it.
    fn slots(&self, l: &Loop) -> Vec<ArrayId> {
        let mut carried = self.carried(l);
        // What stands before the loop may need what the loop replaced; of a loop inside another that is not known.
        if matches!(self.whole, [Stmt::Loop(top)] if top.id == l.id) {
            let dead = match self.without.contains(&Optimisation::TrimSlots) {
                true => BTreeSet::new(),
                false => dead_on_entry(self.source, self.affines, l),
            };
            carried.retain(|a| !dead.contains(a) || self.plan.needed.earlier(*a, self.position));
        } else {
            // Iterations that run again record what they overwrite: they must find what the loop found.
            let wanted: Vec<ArrayId> = self.recorded_in(&l.body).filter(|a| !carried.contains(a)).collect();
            carried.extend(wanted);
        }
        carried.retain(|a| !self.is_kept(a));
        carried
    }

    /// Does an iteration that is run again find the array as it was, whatever ran since?
    fn is_kept(&self, array: &ArrayId) -> bool {
        self.plan.trajectory(*array, self.position) == Some(Trajectory::Replaced)
    }

    /// What iterations hand on: arrays that the loop writes and that a later iteration, or the adjoint, reads.
    fn carried(&self, l: &Loop) -> Vec<ArrayId> {
        let read: BTreeSet<ArrayId> = reads(self.source, l).iter().map(|a| self.classes[a]).collect();
        // Where everything is recorded, an iteration that runs again must find everything as it was.
        let carried = |a: &ArrayId| self.plan.needed.everything || read.contains(&self.classes[a]);
        changes(self.source, &l.body).into_iter().filter(carried).collect()
    }

    fn around(&self, l: &Loop) -> Vec<ArrayId> {
        let (needed, position) = (&self.plan.needed, self.position);
        let kept = |a: ArrayId| self.plan.trajectory(a, position).is_some() && needed.earlier(a, position);
        let around = |a: &ArrayId| needed.around(*a, position) || kept(*a);
        changes(self.source, &l.body).into_iter().filter(around).collect()
    }

    fn loop_entry(&self, l: &Loop) -> Vec<ArrayId> {
        let mut read = reads(self.source, l);
        read.extend(self.carried(l));
        self.entry(read, &l.body)
    }

    /// What a block that reads these arrays needs to be run again.
    fn entry(&self, read: BTreeSet<ArrayId>, block: &Block) -> Vec<ArrayId> {
        let whole = changes(self.source, &self.whole.to_vec());
        let changing: BTreeSet<ArrayId> = whole.iter().map(|a| self.classes[a]).collect();
        let mut touched = read;
        touched.extend(self.recorded_in(block));
        touched.into_iter().filter(|a| changing.contains(&self.classes[a]) && !self.is_kept(a)).collect()
    }

    /// What a block overwrites and the reversal reads.
    fn recorded_in(&self, block: &Block) -> impl Iterator<Item = ArrayId> {
        changes(self.source, block).into_iter().filter(|a| self.records(*a))
    }

    /// Is the value made of data that a later iteration overwrites?
    fn cannot_repeat(&self, v: ValueId) -> bool {
        match self.source.op(v) {
            Op::Get(_) => true,
            Op::Load(a, _) => self.changed.contains(&self.classes[a]),
            _ => false,
        }
    }

    /// Must the element that the program-level write `block[at]` replaces be recorded by itself? Not where its array
    /// comes back from the tape whole, in the reverse half, before anything reads it.
    fn replaced_element_is_needed(&self, block: &[Stmt], at: usize) -> bool {
        let Some(Stmt::Store(s) | Stmt::Update(_, s)) = block.get(at) else { return false };
        if !self.records(s.array) {
            return false;
        }
        // Who won is told from what was there.
        let extreme = |stmt: &Stmt| matches!(stmt, Stmt::Update(Combine::Min | Combine::Max, _));
        if extreme(&block[at]) {
            return true;
        }
        let mut array = s.array;
        for stmt in block[..at].iter().rev() {
            match stmt {
                Stmt::Swap(a, b) if *a == array => array = *b,
                Stmt::Swap(a, b) if *b == array => array = *a,
                Stmt::Par(par) if self.plan.par(par).contains(&array) => {
                    return extreme_arrays(self.activity, &par.body).contains(&array);
                }
                Stmt::Par(par) if !reads_of(self.source, &par.body).contains(&array) => {}
                Stmt::Fill(a, _) if *a == array => return false,
                // Their reversal reads no elements of the program's own arrays.
                Stmt::Let(_) | Stmt::Swap(..) | Stmt::Fill(..) | Stmt::Store(_) => {}
                Stmt::Update(..) if !extreme(stmt) => {}
                _ => return true,
            }
        }
        true
    }
}
