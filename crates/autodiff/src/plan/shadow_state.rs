//! Shadows, and what they hold where a statement is reversed.
//!
//! - Input: the program as it is differentiated, and the facts about it.
//! - Output: for each loop, what each shadow holds where the reversal of one of its iterations begins.
//! - Invariant: the reversal of an iteration leaves no shadow with more than that, so that the next one can begin with it. It is found
//!   by dataflow against the order of the program, before anything is written. What the generator finds to hold while it writes is the
//!   same, or stronger: it may see that nothing flows to an array after all.

use std::collections::{BTreeMap, BTreeSet};

use ebbtide_ir::dataflow::{self, Analysis, Edge, backward};
use ebbtide_ir::{
    Affines, ArrayId, LibraryCall, LibraryOp, Loop, LoopId, Op, Par, ParId, Program, Stmt, ValueId,
    walk_program_level,
};

use crate::analysis::activity::{Activity, active_loads};
use crate::analysis::block_values::block_values;
use crate::analysis::effects::{only_store, written_by};
use crate::analysis::index_inverse::covers;
use crate::analysis::operation_arguments::{float_arrays, saved_arrays};
use crate::analysis::operation_rules::Derivatives;
use crate::request::Optimisation;
use crate::rules::is_smooth;

/// The shadows of active things.
#[derive(Clone, Debug, Default)]
pub(crate) struct Shadows {
    pub arrays: BTreeMap<ArrayId, ArrayId>,
    /// Of program-level values: an array of rank 0.
    pub values: BTreeMap<ValueId, ArrayId>,
}

/// What a shadow holds, as far as the text knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ShadowState {
    /// Zeros.
    Zeros,
    /// Zeros in the meaning of the program, anything in memory.
    Nothing,
    /// Numbers.
    Numbers,
}

/// What each shadow holds, by the array that it shadows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ShadowStates(BTreeMap<ArrayId, ShadowState>);

impl ShadowStates {
    pub fn get(&self, array: &ArrayId) -> Option<&ShadowState> {
        self.0.get(array)
    }

    /// Says what a shadow holds from now on; gives what it held before.
    pub fn insert(&mut self, array: ArrayId, state: ShadowState) -> Option<ShadowState> {
        self.0.insert(array, state)
    }

    /// The arrays that have a shadow, and what it holds.
    pub fn iter(&self) -> impl Iterator<Item = (ArrayId, ShadowState)> {
        self.0.iter().map(|(array, state)| (*array, *state))
    }

    /// Does the shadow of the array hold numbers?
    pub fn has_numbers(&self, array: &ArrayId) -> bool {
        self.get(array) == Some(&ShadowState::Numbers)
    }

    /// What holds after either of two.
    pub fn joined(mut self, other: &ShadowStates) -> ShadowStates {
        dataflow::Facts::join(&mut self, other);
        self
    }

    /// A shadow that only stands for zeros is filled with them.
    fn make_real(&mut self, array: ArrayId) {
        if self.get(&array) == Some(&ShadowState::Nothing) {
            self.insert(array, ShadowState::Zeros);
        }
    }

    fn make_all_real(&mut self) {
        self.0.values_mut().filter(|s| **s == ShadowState::Nothing).for_each(|s| *s = ShadowState::Zeros);
    }

    /// Says what the shadow of an array holds, where it has one.
    fn set(&mut self, array: ArrayId, state: ShadowState) {
        if let Some(held) = self.0.get_mut(&array) {
            *held = state;
        }
    }
}

impl dataflow::Facts for ShadowStates {
    fn join(&mut self, other: &Self) {
        for (array, held) in &mut self.0 {
            *held = match (*held, other.0.get(array).copied().unwrap_or(*held)) {
                (a, b) if a == b => a,
                (ShadowState::Numbers, _) | (_, ShadowState::Numbers) => ShadowState::Numbers,
                _ => ShadowState::Nothing,
            };
        }
    }

    fn swap(&mut self, a: ArrayId, b: ArrayId) {
        if let (Some(p), Some(q)) = (self.0.get(&a).copied(), self.0.get(&b).copied()) {
            self.0.extend([(a, q), (b, p)]);
        }
    }
}

/// Does a parallel loop overwrite all of an array with its one write?
pub(crate) fn is_replaced(source: &Program, affines: &Affines, par: &Par, array: ArrayId) -> bool {
    let only = only_store(par, array);
    only.is_some_and(|store| covers(source, affines, par, array, store.index))
}

/// For each loop of the program: what shadows hold where the reversal of an iteration begins, if that of `of` holds the cotangent of
/// the output in the end, and all others zeros.
pub(crate) fn states_in_loops(
    (source, affines): (&Program, &Affines),
    (activity, derivatives): (&Activity, &Derivatives),
    without: &BTreeSet<Optimisation>,
    of: ArrayId,
) -> BTreeMap<LoopId, ShadowStates> {
    let mut pars = BTreeMap::new();
    walk_program_level(&source.body, &mut |stmt| {
        if let Stmt::Par(par) = stmt {
            pars.insert(par.id, ParFlow::of((source, affines), activity, par));
        }
    });
    let lazy = !without.contains(&Optimisation::LazyShadows);
    let taken = taken_back(source, activity);
    let mut flow = Flow { source, activity, derivatives, lazy, taken, pars, loops: BTreeMap::new() };
    let mut end = ShadowStates(activity.arrays.iter().map(|a| (*a, ShadowState::Zeros)).collect());
    end.set(of, ShadowState::Numbers);
    backward(&mut flow, &source.body, end);
    flow.loops
}

/// The program-level values to which something flows when their block is reversed.
fn taken_back(source: &Program, activity: &Activity) -> BTreeSet<ValueId> {
    let near = block_values(source, activity);
    let mut statements = Vec::new();
    walk_program_level(&source.body, &mut |stmt| statements.push(stmt));
    let mut taken = BTreeSet::new();
    for stmt in statements.into_iter().rev() {
        match stmt {
            Stmt::Store(s) | Stmt::Update(_, s) if activity.arrays.contains(&s.array) => {
                taken.insert(s.value);
            }
            Stmt::Let(v) if activity.values.contains(v) => {
                // Those that other blocks use have an array, which is read whether something was added to it or not.
                if !near.contains(v) {
                    taken.insert(*v);
                }
                if taken.contains(v) && is_smooth(source.op(*v)) {
                    taken.extend(source.op(*v).operands());
                }
            }
            _ => {}
        }
    }
    taken
}

/// What the reversal of a parallel loop does to shadows.
struct ParFlow {
    /// The active arrays that it writes.
    written: BTreeSet<ArrayId>,
    /// Those of them all of whose elements it replaces, and reads none.
    replaced: BTreeSet<ArrayId>,
    /// The active arrays that it reads.
    read: BTreeSet<ArrayId>,
}

impl ParFlow {
    fn of((source, affines): (&Program, &Affines), activity: &Activity, par: &Par) -> ParFlow {
        let active = |a: &ArrayId| activity.arrays.contains(a);
        let written: BTreeSet<ArrayId> = written_by(par).into_iter().filter(active).collect();
        let read: BTreeSet<ArrayId> = active_loads(source, activity, &par.body).iter().map(|l| l.1).collect();
        let mut stored = BTreeSet::new();
        ebbtide_ir::walk(&par.body, &mut |stmt| {
            if let Stmt::Store(s) = stmt {
                stored.insert(s.array);
            }
        });
        let whole = |a: &&ArrayId| {
            stored.contains(*a) && !read.contains(*a) && is_replaced(source, affines, par, **a)
        };
        let replaced = written.iter().filter(whole).copied().collect();
        ParFlow { written, replaced, read }
    }
}

/// Follows what shadows hold, against the order of the program.
struct Flow<'a> {
    source: &'a Program,
    activity: &'a Activity,
    derivatives: &'a Derivatives,
    /// May a shadow stand for zeros that are not there?
    lazy: bool,
    /// The program-level values to which something flows.
    taken: BTreeSet<ValueId>,
    pars: BTreeMap<ParId, ParFlow>,
    loops: BTreeMap<LoopId, ShadowStates>,
}

impl Flow<'_> {
    fn par(&self, par: &Par, states: &mut ShadowStates) {
        let Some(flow) = self.pars.get(&par.id) else { return };
        // Nothing flows back through a loop whose results nothing used.
        if !flow.written.iter().any(|a| states.has_numbers(a)) {
            return;
        }
        flow.written.iter().for_each(|a| states.make_real(*a));
        flow.read.iter().for_each(|a| states.set(*a, ShadowState::Numbers));
        flow.replaced.iter().for_each(|a| states.set(*a, ShadowState::Nothing));
    }

    fn library(&self, call: &LibraryCall, states: &mut ShadowStates) {
        let to_reads = |states: &mut ShadowStates| {
            for written in &call.writes {
                if states.has_numbers(written) {
                    call.reads.iter().for_each(|a| states.set(*a, ShadowState::Numbers));
                    if call.op.replaces_all() {
                        states.set(*written, ShadowState::Nothing);
                    }
                }
            }
        };
        match call.op {
            LibraryOp::Custom(id) => {
                let flows = call.writes.iter().any(|a| states.has_numbers(a));
                if flows && self.derivatives.contains_key(&id) {
                    float_arrays(self.source, call)
                        .into_iter()
                        .for_each(|a| states.set(a, ShadowState::Numbers));
                    saved_arrays(self.source, call)
                        .into_iter()
                        .for_each(|a| states.set(a, ShadowState::Nothing));
                }
            }
            LibraryOp::Matmul { .. } | LibraryOp::Scan { .. } => to_reads(states),
            // Integers carry no derivative.
            _ => {}
        }
    }
}

impl Analysis for Flow<'_> {
    type Facts = ShadowStates;

    fn statement(&mut self, stmt: &Stmt, states: &mut ShadowStates) {
        match stmt {
            Stmt::Let(v) if self.activity.values.contains(v) && self.taken.contains(v) => {
                if let Op::Load(array, _) = self.source.op(*v) {
                    states.set(*array, ShadowState::Numbers);
                }
            }
            Stmt::Store(s) | Stmt::Update(_, s) => states.make_real(s.array),
            Stmt::Par(par) => self.par(par, states),
            Stmt::Fill(array, ..) | Stmt::Temp(array) => states.set(*array, ShadowState::Nothing),
            Stmt::Copy { from, to, .. } => {
                if states.has_numbers(to) {
                    states.set(*from, ShadowState::Numbers);
                }
                states.set(*to, ShadowState::Nothing);
            }
            Stmt::Library(call) => self.library(call, states),
            _ => {}
        }
        if !self.lazy {
            states.make_all_real();
        }
    }

    fn edge(&mut self, stmt: &Stmt, edge: Edge, states: &mut ShadowStates) {
        if edge != Edge::Entry {
            return;
        }
        // The reversal of a loop may have no iteration, whatever the loop is.
        if let Stmt::Loop(l) = stmt
            && let Some(end) = self.loops.get(&l.id)
        {
            dataflow::Facts::join(states, end);
        }
        if !self.lazy {
            states.make_all_real();
        }
    }

    fn goes_into(&self, stmt: &Stmt) -> bool {
        !matches!(stmt, Stmt::Par(_))
    }

    fn iterations_end(&mut self, l: &Loop, states: &ShadowStates) {
        self.loops.insert(l.id, states.clone());
    }
}
