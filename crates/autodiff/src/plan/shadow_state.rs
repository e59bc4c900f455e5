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
    Affines, ArrayId, Indices, LibraryCall, LibraryOp, Loop, LoopId, Op, Par, ParId, Program, Stmt, ValueId,
    walk_program_level,
};

use crate::analysis::activity::{Activity, active_loads};
use crate::analysis::block_values::block_values;
use crate::analysis::effects::written_by;
use crate::analysis::index_inverse::{Variable, identity, invert, is_replaced, varying};
use crate::analysis::operation_arguments::{float_arrays, saved_arrays};
use crate::analysis::operation_rules::Derivatives;
use crate::plan::killed_boxes::{BoxId, KilledBoxes};
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
    /// Numbers, but for a box: zeros in the meaning of the program, anything in memory.
    NumbersOutside(BoxId),
    /// Numbers.
    Numbers,
}

/// What each shadow holds, by the array that it shadows.
#[derive(Clone, Debug, Default)]
pub(crate) struct ShadowStates {
    held: BTreeMap<ArrayId, ShadowState>,
    /// The boxes that had to be filled with zeros on the way here.
    filled: BTreeSet<BoxId>,
}

/// What was filled is of no account for what shadows hold.
impl PartialEq for ShadowStates {
    fn eq(&self, other: &ShadowStates) -> bool {
        self.held == other.held
    }
}

impl ShadowStates {
    pub fn get(&self, array: &ArrayId) -> Option<&ShadowState> {
        self.held.get(array)
    }

    /// Says what a shadow holds from now on; gives what it held before.
    pub fn insert(&mut self, array: ArrayId, state: ShadowState) -> Option<ShadowState> {
        self.held.insert(array, state)
    }

    /// The arrays that have a shadow, and what it holds.
    pub fn iter(&self) -> impl Iterator<Item = (ArrayId, ShadowState)> {
        self.held.iter().map(|(array, state)| (*array, *state))
    }

    /// Does the shadow of the array hold numbers?
    pub fn has_numbers(&self, array: &ArrayId) -> bool {
        matches!(self.get(array), Some(ShadowState::Numbers | ShadowState::NumbersOutside(_)))
    }

    /// What holds after either of two.
    pub fn joined(mut self, other: &ShadowStates) -> ShadowStates {
        dataflow::Facts::join(&mut self, other);
        self
    }

    /// What a shadow only stands for is filled with zeros.
    fn make_real(&mut self, array: ArrayId) {
        if self.get(&array) == Some(&ShadowState::Nothing) {
            self.insert(array, ShadowState::Zeros);
        }
        self.fill_box(array);
    }

    fn make_all_real(&mut self) {
        let all: Vec<ArrayId> = self.held.keys().copied().collect();
        all.into_iter().for_each(|array| self.make_real(array));
    }

    /// A box that only stands for zeros is filled with them.
    fn fill_box(&mut self, array: ArrayId) {
        if let Some(ShadowState::NumbersOutside(id)) = self.get(&array).copied() {
            self.filled.insert(id);
            self.insert(array, ShadowState::Numbers);
        }
    }

    /// Says what the shadow of an array holds, where it has one.
    fn set(&mut self, array: ArrayId, state: ShadowState) {
        if let Some(held) = self.held.get_mut(&array) {
            *held = state;
        }
    }
}

/// What holds after either of two states. Zeros in memory will do for anything; a shadow that only stands for them is filled where
/// the other holds numbers somewhere, and so is a box where the other has numbers in it.
fn joined(a: ShadowState, b: ShadowState) -> ShadowState {
    use ShadowState::{Nothing, Numbers, NumbersOutside, Zeros};
    match (a, b) {
        (a, b) if a == b => a,
        (NumbersOutside(_), Zeros | Nothing) => a,
        (Zeros | Nothing, NumbersOutside(_)) => b,
        (Numbers | NumbersOutside(_), _) | (_, Numbers) => Numbers,
        (Zeros | Nothing, Zeros | Nothing) => Nothing,
    }
}

impl dataflow::Facts for ShadowStates {
    fn join(&mut self, other: &Self) {
        for (array, held) in &mut self.held {
            let (a, b) = (*held, other.held.get(array).copied().unwrap_or(*held));
            *held = joined(a, b);
            let lost = |state| matches!(state, ShadowState::NumbersOutside(_)) && state != *held;
            for state in [a, b].into_iter().filter(|state| lost(*state)) {
                if let ShadowState::NumbersOutside(id) = state {
                    self.filled.insert(id);
                }
            }
        }
        self.filled.extend(&other.filled);
    }

    fn swap(&mut self, a: ArrayId, b: ArrayId) {
        if let (Some(p), Some(q)) = (self.held.get(&a).copied(), self.held.get(&b).copied()) {
            self.held.extend([(a, q), (b, p)]);
        }
    }
}

/// The arrays whose shadows must hold numbers everywhere where a statement other than a parallel loop is reversed, if they hold any.
pub(crate) fn of_filled_boxes(source: &Program, stmt: &Stmt) -> Vec<ArrayId> {
    match stmt {
        Stmt::Let(v) => match source.op(*v) {
            Op::Load(array, _) => vec![*array],
            _ => Vec::new(),
        },
        Stmt::Store(s) | Stmt::Update(_, s) => vec![s.array],
        Stmt::Fill(array, ..) => vec![*array],
        Stmt::Copy { from, to, .. } => vec![*from, *to],
        Stmt::Library(call) => call.reads.iter().chain(&call.writes).copied().collect(),
        _ => Vec::new(),
    }
}

/// For each loop of the program: what shadows hold where the reversal of an iteration begins, if that of `of` holds the cotangent of
/// the output in the end, and all others zeros. Of the boxes those are left that nobody has to fill: that costs a loop of its own.
pub(crate) fn states_in_loops(
    (source, affines): (&Program, &Affines),
    (activity, derivatives): (&Activity, &Derivatives),
    (without, boxes): (&BTreeSet<Optimisation>, &mut KilledBoxes),
    of: ArrayId,
) -> BTreeMap<LoopId, ShadowStates> {
    let gathers = !without.contains(&Optimisation::GatherStencils);
    let mut pars = BTreeMap::new();
    walk_program_level(&source.body, &mut |stmt| {
        if let Stmt::Par(par) = stmt {
            pars.insert(par.id, ParFlow::of((source, affines), (activity, gathers), par));
        }
    });
    let lazy = !without.contains(&Optimisation::LazyShadows);
    let taken = taken_back(source, activity);
    let mut flow = Flow { source, activity, derivatives, lazy, taken, pars, boxes, loops: BTreeMap::new() };
    loop {
        let zeros = activity.arrays.iter().map(|a| (*a, ShadowState::Zeros)).collect();
        let mut end = ShadowStates { held: zeros, filled: BTreeSet::new() };
        end.set(of, ShadowState::Numbers);
        let begin = backward(&mut flow, &source.body, end);
        if begin.filled.is_empty() {
            return flow.loops;
        }
        flow.boxes.forget(&begin.filled);
        flow.loops.clear();
    }
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
    /// Those of them whose shadows collect, element by element, what flows to them.
    gathered: BTreeSet<ArrayId>,
    /// Those of which each iteration reads its own element alone.
    own: BTreeSet<ArrayId>,
}

impl ParFlow {
    fn of(
        (source, affines): (&Program, &Affines),
        (activity, gathers): (&Activity, bool),
        par: &Par,
    ) -> ParFlow {
        let active = |a: &ArrayId| activity.arrays.contains(a);
        let written: BTreeSet<ArrayId> = written_by(par).into_iter().filter(active).collect();
        let loads = active_loads(source, activity, &par.body);
        let read: BTreeSet<ArrayId> = loads.iter().map(|l| l.1).collect();
        let varies = varying(source, par);
        let is_turned = |index| {
            let inverse = invert(source, affines, par, &varies, index);
            inverse.is_some_and(|i| {
                i.fixed.is_empty() && i.variables.iter().all(|v| !matches!(v, Variable::Free))
            })
        };
        let plain = gathers && !par.body.iter().any(|stmt| matches!(stmt, Stmt::Loop(_)));
        let all = |a: &ArrayId, holds: &dyn Fn(Indices) -> bool| {
            !written.contains(a) && loads.iter().filter(|l| l.1 == *a).all(|l| holds(l.2))
        };
        let own = read.iter().copied().filter(|a| all(a, &|index| identity(affines, par, index))).collect();
        let gathered = read.iter().copied().filter(|a| plain && all(a, &is_turned)).collect();
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
        ParFlow { written, replaced, read, gathered, own }
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
    boxes: &'a mut KilledBoxes,
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
        for array in &flow.read {
            if let Some(ShadowState::NumbersOutside(id)) = states.get(array).copied() {
                let is_own = flow.own.contains(array);
                if is_own && !self.boxes.runs_over(par.id, id) || !is_own && !flow.gathered.contains(array) {
                    states.fill_box(*array);
                }
            }
            states.set(*array, ShadowState::Numbers);
        }
        flow.replaced.iter().for_each(|a| states.set(*a, ShadowState::Nothing));
        for (array, id) in self.boxes.of_loop(par.id) {
            if states.get(&array) == Some(&ShadowState::Numbers) {
                states.set(array, ShadowState::NumbersOutside(id));
            }
        }
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
        of_filled_boxes(self.source, stmt).into_iter().for_each(|array| states.fill_box(array));
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
