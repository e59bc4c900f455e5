//! What a gradient program puts on its tape, and what its loops carry.
//!
//! - Input: the program as it is differentiated, and the facts about it.
//! - Output: for each statement that overwrites something, what is recorded before it; for each loop and region, what it
//!   needs to be run again.
//! - Invariant: the forward half pushes what the plan says, the reverse half pops it, and neither decides anything.

mod old_contents;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use ebbtide_ir::{
    ArrayId, Block, Facts, LibraryCall, Loop, LoopId, Op, Par, ParId, Program, Region, RegionId, Stmt, Store,
    ValueId, WriteId, walk, walk_program_level,
};

use crate::analysis::activity::Activity;
use crate::analysis::dead_on_entry::dead_on_entry;
use crate::analysis::effects::{changes, reads, reads_of, swap_classes, written_by};
use crate::analysis::left_in_arrays::left_in_arrays;
use crate::analysis::loop_length::{counts, has_known_length};
use crate::analysis::needed::Needed;
use crate::analysis::sections::{Extent, sections};
use crate::analysis::store_forwarding::Left;
use crate::analysis::top_level::TopLevel;
use crate::analysis::trajectory::{Trajectory, trajectories, written_in};
use crate::plan::scratch_arrays::Domain;
use crate::request::Optimisation;

/// What is recorded, and what loops carry.
pub(crate) struct TapePlan {
    tapes: Tapes,
    needed: Needed,
    /// By top-level statement: arrays that are their own tape there.
    trajectories: BTreeMap<TopLevel, BTreeMap<ArrayId, Trajectory>>,
    pars: BTreeMap<ParId, Vec<ArrayId>>,
    /// By parallel loop: the results that its reversal reads in the arrays in which it left them.
    left: BTreeMap<ParId, Left>,
    /// By parallel loop: for each array of which it overwrites a part, the writes.
    sections: BTreeMap<ParId, Vec<Vec<Store>>>,
    /// By parallel loop: the writes whose old elements go on a tape of elements, since the run alone knows how many they are.
    strips: BTreeMap<ParId, Vec<Store>>,
    /// Fills and copies before which the array is recorded.
    replaced: HashSet<WriteId>,
    loops: BTreeMap<LoopId, LoopPlan>,
    regions: BTreeMap<RegionId, Vec<ArrayId>>,
    asides: HashSet<Aside>,
    /// Loads that find what an earlier load of their block put aside.
    same: HashMap<ValueId, ValueId>,
}

/// May a launch guess how long the tape of a loop becomes whose iterations nobody can count?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tapes {
    Guessed,
    Counted,
}

/// What is recorded of a loop, and what it carries.
#[derive(Clone, Debug, Default)]
pub(crate) struct LoopPlan {
    /// Is the number of iterations known before the program starts?
    pub known_length: bool,
    /// Where it stands in another loop or in a branch: is it swept under a schedule of its own, and not recorded?
    pub swept: bool,
    /// Where it stands in none: is its whole tape part of that of the program, and no schedule its own?
    pub recorded_whole: bool,
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
    /// The element that a program-level write replaces.
    Element(WriteId),
    /// How many iterations a loop had.
    Iterations(LoopId),
}

impl TapePlan {
    /// The plan for a program.
    pub fn new(
        (source, facts): (&Program, &Facts),
        activity: &Activity,
        needed: Needed,
        without: &BTreeSet<Optimisation>,
        (swept, tapes): (&BTreeSet<LoopId>, Tapes),
    ) -> TapePlan {
        let affines = &facts.affines;
        let uses = |optimisation| !without.contains(&optimisation);
        let keeps = uses(Optimisation::KeepTrajectories) && !needed.everything;
        let own_tape = |(position, top): (TopLevel, &Stmt)| match top {
            Stmt::Loop(l) if keeps => Some((position, trajectories(source, affines, l))),
            _ => None,
        };
        let mut plan = TapePlan {
            tapes,
            needed,
            trajectories: TopLevel::all(source).filter_map(own_tape).collect(),
            pars: BTreeMap::new(),
            left: BTreeMap::new(),
            sections: BTreeMap::new(),
            strips: BTreeMap::new(),
            replaced: HashSet::new(),
            loops: BTreeMap::new(),
            regions: BTreeMap::new(),
            asides: HashSet::new(),
            same: HashMap::new(),
        };
        if uses(Optimisation::ReadResults) {
            let own_tape = |a, position| plan.trajectory(a, position).is_some();
            plan.left = left_in_arrays(source, activity, &plan.needed, &own_tape);
        }
        let classes = swap_classes(source);
        let changed: BTreeSet<ArrayId> = changes(source, &source.body).iter().map(|a| classes[a]).collect();
        let mut planner = Planner {
            source,
            facts,
            activity,
            without,
            classes,
            changed,
            swept,
            whole: &[],
            position: TopLevel::default(),
            unrecorded: BTreeSet::new(),
            plan,
        };
        for (position, top) in TopLevel::all(source) {
            planner.position = position;
            planner.whole = std::slice::from_ref(top);
            planner.block(std::slice::from_ref(top), Nested::No);
            planner.keep_left(top);
        }
        planner.plan
    }

    /// Is what the array holds recorded when a part of the top-level statement `position` overwrites it?
    pub fn records(&self, array: ArrayId, position: TopLevel) -> bool {
        self.needed.before(array, position) && self.trajectory(array, position).is_none()
    }

    fn trajectory(&self, array: ArrayId, position: TopLevel) -> Option<Trajectory> {
        self.trajectories.get(&position)?.get(&array).copied()
    }

    /// Is the array its own tape in some loop?
    pub fn is_trajectory(&self, array: ArrayId) -> bool {
        self.trajectories.values().any(|arrays| arrays.contains_key(&array))
    }

    /// The arrays that are their own tape in one loop alone, whose iterations replace what rows held; and that loop.
    pub fn replaced_in_one_loop(&self) -> impl Iterator<Item = (TopLevel, ArrayId)> {
        let all =
            self.trajectories.iter().flat_map(|(at, arrays)| arrays.iter().map(|(a, how)| (*at, *a, *how)));
        let alone =
            |a: ArrayId| self.trajectories.values().filter(|arrays| arrays.contains_key(&a)).count() == 1;
        all.filter(move |(_, a, how)| *how == Trajectory::Replaced && alone(*a)).map(|(at, a, _)| (at, a))
    }

    /// The arrays that reversing this parallel loop takes back from the tape, in the order of their pushes.
    pub fn par(&self, par: &Par) -> &[ArrayId] {
        self.pars.get(&par.id).map_or(&[], Vec::as_slice)
    }

    /// The results that the reversal of this parallel loop reads in the arrays in which it left them.
    pub fn left(&self, par: &Par) -> Option<&Left> {
        self.left.get(&par.id)
    }

    /// Does the reversal of this parallel loop read what it left in the array?
    pub fn reads_left(&self, par: &Par, array: ArrayId) -> bool {
        self.left(par).is_some_and(|left| left.values().any(|(a, _)| *a == array))
    }

    /// For each array of which this parallel loop records a part, the writes of that part.
    pub fn sections(&self, par: &Par) -> Vec<&[Store]> {
        self.sections.get(&par.id).into_iter().flatten().map(Vec::as_slice).collect()
    }

    /// The writes of this parallel loop whose old elements go on a tape of elements.
    pub fn strips(&self, par: &Par) -> &[Store] {
        self.strips.get(&par.id).map_or(&[], Vec::as_slice)
    }

    /// Is the array recorded before this fill or copy?
    pub fn records_whole(&self, stmt: &Stmt) -> bool {
        stmt.write().is_some_and(|id| self.replaced.contains(&id))
    }

    /// The arrays that reversing this operation takes back from the tape, in the order of their pushes.
    pub fn call(&self, call: &LibraryCall, position: TopLevel) -> Vec<ArrayId> {
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

    /// The load whose value this one has too, where that is on the tape already.
    pub fn same_load(&self, v: ValueId) -> Option<ValueId> {
        self.same.get(&v).copied()
    }

    /// Is all that a loop in the top-level statement `position` puts on its tape single elements, so that the tape is small, however
    /// long the loop is?
    fn records_elements_alone(&self, l: &Loop, position: TopLevel) -> bool {
        let mut alone = l.schedule.is_none();
        walk_program_level(&l.body, &mut |stmt| {
            alone &= match stmt {
                Stmt::Par(par) => self.par(par).is_empty() && self.sections(par).is_empty(),
                Stmt::Fill(..) | Stmt::Copy { .. } => !self.records_whole(stmt),
                Stmt::Library(call) => self.call(call, position).is_empty(),
                Stmt::Loop(inner) => inner.schedule.is_none() && !self.loop_plan(inner).swept,
                Stmt::Region(_) => false,
                _ => true,
            };
        });
        alone
    }

    /// The loops inside others, or inside branches, that put on the tape of what is around them nobody knows how much: whole arrays as
    /// often as data say, or, where nothing may be guessed, anything.
    pub fn unbounded(&self, source: &Program) -> Vec<LoopId> {
        let mut found = Vec::new();
        for (position, top) in TopLevel::all(source) {
            let mut work: Vec<(&Stmt, Nested)> = vec![(top, Nested::No)];
            while let Some((stmt, nested)) = work.pop() {
                if let Stmt::Loop(l) = stmt
                    && nested == Nested::Yes
                    && !counts(l)
                    && !self.loop_plan(l).swept
                    && !(self.tapes == Tapes::Guessed && self.records_elements_alone(l, position))
                {
                    found.push(l.id);
                }
                let inside = match stmt {
                    Stmt::Par(_) => continue,
                    Stmt::Region(_) => Nested::No,
                    _ => Nested::Yes,
                };
                work.extend(stmt.blocks().flatten().map(|stmt| (stmt, inside)));
            }
        }
        found
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
    facts: &'a Facts,
    activity: &'a Activity,
    without: &'a BTreeSet<Optimisation>,
    classes: BTreeMap<ArrayId, ArrayId>,
    /// The classes of arrays that the program changes.
    changed: BTreeSet<ArrayId>,
    swept: &'a BTreeSet<LoopId>,
    /// The top-level statement around what is looked at.
    whole: &'a [Stmt],
    position: TopLevel,
    /// The classes of arrays of which the top-level statement overwrites something that it does not record.
    unrecorded: BTreeSet<ArrayId>,
    plan: TapePlan,
}

impl Planner<'_> {
    /// The depth of recursion is that of nesting in the source.
    fn block(&mut self, block: &[Stmt], nested: Nested) {
        // Elements that were put aside and that nothing has written since.
        let mut aside: HashMap<(ArrayId, Vec<ValueId>), ValueId> = HashMap::new();
        for (at, stmt) in block.iter().enumerate() {
            match stmt {
                Stmt::Let(_) => {}
                Stmt::Store(s) | Stmt::Update(_, s) => aside.retain(|(array, _), _| *array != s.array),
                _ => aside.clear(),
            }
            match stmt {
                Stmt::Let(v) if nested == Nested::Yes && self.cannot_repeat(*v) => {
                    let first = self.element(*v).map(|element| *aside.entry(element).or_insert(*v));
                    match first.filter(|first| first != v) {
                        Some(first) => drop(self.plan.same.insert(*v, first)),
                        None => drop(self.plan.asides.insert(Aside::Value(*v))),
                    }
                }
                Stmt::Par(par) => {
                    let (mut recorded, unrecorded): (Vec<ArrayId>, Vec<ArrayId>) =
                        written_by(par).into_iter().partition(|a| {
                            self.records(*a) && self.old_is_needed(block, at, *a) && self.overwrites(par, *a)
                        });
                    self.unrecorded.extend(unrecorded.iter().map(|a| self.classes[a]));
                    let (mut sections, mut strips) = (Vec::new(), Vec::new());
                    recorded.retain(|a| match self.sections(par, *a) {
                        Some((Extent::Known, stores)) => {
                            sections.push(stores);
                            false
                        }
                        Some((Extent::Data, stores)) => {
                            strips.extend(stores);
                            false
                        }
                        None => true,
                    });
                    // Parts are put back before the loop is reversed.
                    let parts = sections.iter().flatten().chain(&strips);
                    let parts = parts.map(|s: &Store| self.classes[&s.array]);
                    self.unrecorded.extend(parts);
                    self.plan.pars.insert(par.id, recorded);
                    self.plan.sections.insert(par.id, sections);
                    self.plan.strips.insert(par.id, strips);
                }
                Stmt::Fill(array, ..) | Stmt::Copy { to: array, .. } => {
                    match self.records(*array) && self.old_is_needed(block, at, *array) {
                        true => self.plan.replaced.extend(stmt.write()),
                        false => drop(self.unrecorded.insert(self.classes[array])),
                    }
                }
                Stmt::If(branch) => {
                    self.block(&branch.then, Nested::Yes);
                    self.block(&branch.otherwise, Nested::Yes);
                }
                Stmt::Loop(l) => {
                    let known_length = has_known_length(self.source, l);
                    let plan = LoopPlan {
                        known_length,
                        swept: self.swept.contains(&l.id),
                        recorded_whole: false,
                        around: self.around(l),
                        entry: self.loop_entry(l),
                        slots: self.slots(l),
                        kept: written_in(l).into_iter().filter(|a| self.is_kept(a)).collect(),
                    };
                    self.plan.loops.insert(l.id, plan);
                    self.block(&l.body, Nested::Yes);
                    let recorded_whole = !known_length
                        && nested == Nested::No
                        && self.plan.tapes == Tapes::Guessed
                        && self.plan.records_elements_alone(l, self.position);
                    if let Some(plan) = self.plan.loops.get_mut(&l.id) {
                        plan.recorded_whole = recorded_whole;
                    }
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
            if let Stmt::Store(s) | Stmt::Update(_, s) = stmt {
                match self.replaced_element_is_needed(block, at) {
                    true => drop(self.plan.asides.insert(Aside::Element(s.id))),
                    false => drop(self.unrecorded.insert(self.classes[&s.array])),
                }
            }
        }
    }

    /// Lets reversals read what loops of a top-level statement left where all that it overwrites is put back, as it is.
    fn keep_left(&mut self, top: &Stmt) {
        let unrecorded = std::mem::take(&mut self.unrecorded);
        walk_program_level(std::slice::from_ref(top), &mut |stmt| {
            if let Stmt::Par(par) = stmt
                && let Some(left) = self.plan.left.get_mut(&par.id)
            {
                left.retain(|_, (array, _)| !unrecorded.contains(&self.classes[array]));
            }
        });
    }

    fn records(&self, array: ArrayId) -> bool {
        self.plan.records(array, self.position)
    }

    /// The element that a load reads.
    fn element(&self, v: ValueId) -> Option<(ArrayId, Vec<ValueId>)> {
        let Op::Load(array, index) = self.source.op(v) else { return None };
        let affines = &self.facts.affines;
        Some((*array, index.as_slice().iter().map(|k| affines.representative(*k)).collect()))
    }

    /// What a slot holds: what is carried, but for what an iteration replaces before anything reads it.
    fn slots(&self, l: &Loop) -> Vec<ArrayId> {
        let mut carried = self.carried(l);
        // What stands before the loop may need what the loop replaced; of a loop inside another that is not known.
        if matches!(self.whole, [Stmt::Loop(top)] if top.id == l.id) {
            let dead = match self.without.contains(&Optimisation::TrimSlots) {
                true => BTreeSet::new(),
                false => dead_on_entry(self.source, &self.facts.affines, l),
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
        let stays = |a: ArrayId| {
            self.plan.trajectory(a, position).is_some()
                || (needed.is_intact(a, position) && needed.before(a, position))
        };
        let kept = |a: ArrayId| stays(a) && needed.earlier(a, position);
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

    /// Does the reversal read the value, and is it made of data that a later iteration overwrites?
    fn cannot_repeat(&self, v: ValueId) -> bool {
        match self.source.op(v) {
            _ if !self.plan.needed.value(v) => false,
            Op::Get(_) => true,
            Op::Load(..) if self.plan.needed.is_reloaded(v) => false,
            Op::Load(a, _) => self.changed.contains(&self.classes[a]),
            _ => false,
        }
    }

    /// The writes of the part of an array that a parallel loop overwrites, where a part is all that need be recorded.
    fn sections(&self, par: &Par, array: ArrayId) -> Option<(Extent, Vec<Store>)> {
        let facts = self.facts.pars.get(&par.id)?;
        if self.without.contains(&Optimisation::RecordSections) {
            return None;
        }
        let extent = match Domain::of(self.source, &self.facts.affines, &par.ranges) {
            Some(_) => Extent::Known,
            // How many elements there are is guessed, where that is allowed.
            None if self.plan.tapes == Tapes::Guessed => Extent::Data,
            None => return None,
        };
        let recorded = |s: &Store| !self.plan.needed.is_harmless(s, self.position);
        let known = (self.source, &self.facts.affines);
        Some((extent, sections(known, (par, extent), facts, array, &recorded)?))
    }

    /// Does a parallel loop overwrite something of the array that the reversal reads?
    fn overwrites(&self, par: &Par, array: ArrayId) -> bool {
        let mut overwrites = false;
        walk(&par.body, &mut |stmt| {
            overwrites |= matches!(stmt, Stmt::Store(s) | Stmt::Update(_, s)
                if s.array == array && !self.plan.needed.is_harmless(s, self.position));
        });
        overwrites
    }
}
