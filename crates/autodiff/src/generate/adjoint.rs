//! The adjoint of a whole program.

mod block_values;
mod custom;
mod forward;
mod region;
mod reverse;
mod section_places;
mod sections;
mod strips;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use ebbtide_ir::{
    Access, Affines, ArrayId, Block, Facts, LoopId, Op, ParFacts, ParId, Param, Program, Role, Stmt, Type,
    ValueId, walk_program_level,
};

use crate::analysis::activity::Activity;
use crate::analysis::block_values::block_values;
use crate::analysis::extremes::extreme_arrays;
use crate::analysis::first_rows::{FirstRows, first_rows};
use crate::analysis::names::Names;
use crate::analysis::operation_rules::{Derivatives, without_derivative};
use crate::analysis::store_forwarding::store_forwarding;
use crate::analysis::subarray::Subarray;
use crate::analysis::top_level::TopLevel;
use crate::analysis::written_first::written_first;
use crate::error::Error;
use crate::generate::custom_call::declare_scratch;
use crate::generate::extremes::{Extremes, declare};
use crate::generate::outside::outside;
use crate::generate::par::join_gather::ShadowDoubleBuffer;
use crate::generate::parts;
use crate::generate::working_copies::working_copies;
use crate::gradient::{Gradient, Pushes};
use crate::normalize::early::early;
use crate::optimize::outer_products::defer_outer_products;
use crate::optimize::sum_in_lanes::sum_in_lanes;
use crate::plan::events::has_events;
use crate::plan::killed_boxes::KilledBoxes;
use crate::plan::scratch_arrays::{Domain, ScratchArrays};
use crate::plan::shadow_state::{ShadowState, ShadowStates, Shadows, states_in_loops};
use crate::plan::tape_plan::{Aside, TapePlan};
use crate::request::{DeadShadows, Optimisation, Request};
use crate::writer::Writer;

/// Writes the adjoint of a program, statement by statement.
pub(crate) struct AdjointBuilder<'a> {
    pub source: &'a Program,
    pub affines: &'a Affines,
    /// How parallel loops share what they write.
    pub pars: &'a BTreeMap<ParId, ParFacts>,
    pub activity: &'a Activity,
    pub plan: &'a TapePlan,
    /// The top-level statement that is being written.
    pub position: TopLevel,
    pub shadows: Shadows,
    /// Beside arrays that take minima or maxima.
    pub extremes: Extremes,
    /// Of custom operations, by what they bring themselves.
    pub derivatives: &'a Derivatives,
    /// Beside arrays of custom operations that have no shadow.
    pub scratch: BTreeMap<ArrayId, ArrayId>,
    /// Program-level values whose cotangents need no memory, and these cotangents where the adjoint is written now.
    pub block_values: BTreeSet<ValueId>,
    pub block_cotangents: HashMap<ValueId, ValueId>,
    pub shadow_states: ShadowStates,
    pub boxes: KilledBoxes,
    /// Rows of shadows that a gathering loop is the first to add to, and the shadows of which it stores them.
    pub first_rows: BTreeMap<ArrayId, FirstRows>,
    pub stored_rows: BTreeSet<ArrayId>,
    /// What shadows hold where the reversal of an iteration of each loop begins.
    pub loop_states: BTreeMap<LoopId, ShadowStates>,
    /// Program-level values as they are known where the adjoint is written now.
    pub env: HashMap<ValueId, ValueId>,
    /// For values and elements that are put aside in the forward half: the array of rank 0 that takes them.
    pub aside_arrays: HashMap<Aside, ArrayId>,
    /// By type: the tape of elements, and the array that says how many it holds.
    pub tapes_of_elements: BTreeMap<Type, (ArrayId, ArrayId)>,
    /// Memory beside shadows; `None` where shapes may differ.
    pub double_buffer: Option<ShadowDoubleBuffer>,
    pub without: &'a BTreeSet<Optimisation>,
    /// What iterations of parallel loops keep for the loops that gather it.
    pub scratch_arrays: ScratchArrays,
    /// Copies of arrays that parallel loops read after they have written them.
    pub copies: BTreeMap<ArrayId, ArrayId>,
    pub stamps: BTreeMap<ArrayId, ArrayId>,
    /// Are we inside a loop or a branch, so that values must be computed again, or put aside, for the reverse half?
    pub nested: bool,
    /// The bounds of the piece of a loop that a schedule runs.
    pub pieces: BTreeMap<LoopId, (ValueId, ValueId)>,
    pub pushes: BTreeMap<LoopId, Vec<Pushes>>,
    pub dead_shadows: DeadShadows,
}

impl<'a> AdjointBuilder<'a> {
    /// A builder for this program and plan.
    pub(crate) fn new(
        (source, facts): (&'a Program, &'a Facts),
        (activity, derivatives): (&'a Activity, &'a Derivatives),
        plan: &'a TapePlan,
        request: &'a Request,
        (buffers, boxes): (Option<ShadowDoubleBuffer>, KilledBoxes),
    ) -> AdjointBuilder<'a> {
        AdjointBuilder {
            source,
            affines: &facts.affines,
            pars: &facts.pars,
            activity,
            plan,
            position: TopLevel::default(),
            shadows: Shadows::default(),
            extremes: Extremes::new(),
            derivatives,
            scratch: BTreeMap::new(),
            block_values: block_values(source, activity),
            block_cotangents: HashMap::new(),
            shadow_states: ShadowStates::default(),
            boxes,
            first_rows: BTreeMap::new(),
            stored_rows: BTreeSet::new(),
            loop_states: BTreeMap::new(),
            env: HashMap::new(),
            aside_arrays: HashMap::new(),
            tapes_of_elements: BTreeMap::new(),
            double_buffer: buffers,
            without: &request.without,
            scratch_arrays: ScratchArrays::default(),
            copies: BTreeMap::new(),
            stamps: BTreeMap::new(),
            nested: false,
            pieces: BTreeMap::new(),
            pushes: BTreeMap::new(),
            dead_shadows: request.dead_shadows,
        }
    }

    pub(crate) fn uses(&self, optimisation: Optimisation) -> bool {
        !self.without.contains(&optimisation)
    }

    pub(crate) fn unsupported(&self, what: impl Into<String>) -> Error {
        Error::Unsupported { program: self.source.name.clone(), what: what.into() }
    }

    pub(crate) fn gradient(&mut self, request: &Request, names: &Names) -> Result<Gradient, Error> {
        let mut program = self.source.clone();
        program.name = format!("{}_gradient", self.source.name);
        program.driven = true;
        program.body.clear();
        program.params.clear();
        let mut w = Writer::new(program);
        working_copies(self.source, &mut w, &self.written_first());
        let seed = request.seeded.then(|| {
            let decl = self.source.array(names.of);
            let name = w.free_name(format!("seed_{}", decl.name));
            let id = w.array(name, decl.ty, decl.rank, Role::Param(Access::Read));
            w.program.params.push(Param::Array(id));
            id
        });
        let output = |w: &mut Writer, prefix: &str, name: &str, ty: Type, rank: usize| {
            let name = w.free_name(format!("{prefix}{name}"));
            let id = w.array(name, ty, rank, Role::Param(Access::Write));
            w.program.params.push(Param::Array(id));
            id
        };
        let values: Vec<ArrayId> = names
            .values
            .iter()
            .map(|a| {
                output(
                    &mut w,
                    "value_",
                    &self.source.array(*a).name,
                    self.source.array(*a).ty,
                    self.source.array(*a).rank,
                )
            })
            .collect();
        let mut derivatives = Vec::new();
        for name in &request.wrt {
            let (ty, rank) = match self.source.find_scalar(name) {
                Some(s) => (self.source.scalars[s.index()].ty, 0),
                None => self
                    .source
                    .find_array(name)
                    .map_or((Type::F64, 0), |a| (self.source.array(a).ty, self.source.array(a).rank)),
            };
            derivatives.push(output(&mut w, "d_", name, ty, rank));
        }
        self.first_rows = self.first_rows(names.of);
        let known = (self.activity, self.derivatives);
        let how = (self.without, &mut self.boxes);
        self.loop_states = states_in_loops((self.source, self.affines), known, how, names.of);
        self.make_shadows(&mut w, &self.results_in_place(request, &derivatives));
        let mut start = w.end();
        w.begin();
        let source = self.source;
        for (position, stmt) in TopLevel::all(source) {
            self.position = position;
            self.forward(&mut w, std::slice::from_ref(stmt))?;
        }
        for (a, value) in names.values.iter().zip(&values) {
            w.copy(*a, *value);
        }
        self.seed(&mut w, names.of, seed);
        for (position, stmt) in TopLevel::all(source).rev() {
            self.position = position;
            self.reverse(&mut w, std::slice::from_ref(stmt))?;
        }
        self.results(&mut w, request, &derivatives);
        let mut body = w.end();
        let waiting = self.defer_outer_products(&mut w, &mut body);
        self.fill_other_rows(&mut w, &mut start);
        let mut asides: Vec<ArrayId> = self.aside_arrays.values().copied().collect();
        asides.sort_unstable();
        // Nothing reads them before they are written.
        w.program.undefined.extend(&asides);
        let asides = asides.into_iter().map(Stmt::Temp).chain(self.declared_tapes()).collect::<Block>();
        let handed = std::mem::take(&mut self.scratch_arrays.declared);
        w.program.body = asides.into_iter().chain(start).chain(handed).chain(waiting).chain(body).collect();
        for (shadow, spare) in self.double_buffer.iter().flat_map(ShadowDoubleBuffer::declarations) {
            let at = w.program.body.iter().position(|s| matches!(s, Stmt::Temp(a) if *a == shadow));
            w.program.body.insert(at.map_or(0, |at| at + 1), Stmt::Temp(spare));
        }
        if !request.without.contains(&Optimisation::SumInLanes) {
            sum_in_lanes(&mut w.program, &w.sums);
        }
        Ok(Gradient {
            program: w.program,
            seed,
            values,
            derivatives,
            pushes: std::mem::take(&mut self.pushes),
            pushes_outside: Vec::new(),
            hosted: BTreeMap::new(),
            copies: w.copies,
            shadows: self.shadows.arrays.clone(),
        })
    }

    /// Lets outer products wait; gives the declarations of what keeps their factors.
    fn defer_outer_products(&self, w: &mut Writer, body: &mut Block) -> Block {
        // The host may look at shadows, and change shapes.
        if self.yields() || !self.uses(Optimisation::DeferOuterProducts) {
            return Block::new();
        }
        defer_outer_products(w, body, &self.shadows.arrays.values().copied().collect())
    }

    /// May the host step in?
    fn yields(&self) -> bool {
        let mut yields = false;
        walk_program_level(&self.source.body, &mut |stmt| yields |= matches!(stmt, Stmt::Region(_)));
        yields
    }

    /// Of arrays that are their own tape, and are not exchanged for others: the results that can be their shadows. Such an array
    /// is as large as the tape of another program; a copy of it would cost as much as a step over all of its rows.
    fn results_in_place(&self, request: &Request, derivatives: &[ArrayId]) -> BTreeMap<ArrayId, ArrayId> {
        // Where the host may change shapes, those of results are known at the end.
        if self.yields() || !self.uses(Optimisation::ResultsInPlace) {
            return BTreeMap::new();
        }
        let wanted = request.wrt.iter().zip(derivatives);
        let arrays = wanted.filter_map(|(name, result)| Some((self.source.find_array(name)?, *result)));
        // What a loop takes for a trajectory is swapped with nothing.
        arrays.filter(|(array, _)| self.plan.is_trajectory(*array)).collect()
    }

    /// Of arrays that are their own tape: the elements that the program writes before it reads them.
    fn written_first(&self) -> BTreeMap<ArrayId, Subarray> {
        self.initialised_in_part()
            .filter_map(|(position, a)| Some((a, written_first(self.source, self.affines, position, a)?)))
            .collect()
    }

    /// Rows of shadows that a gathering loop is the first to add to. The cotangent of the output is there before.
    fn first_rows(&self, of: ArrayId) -> BTreeMap<ArrayId, FirstRows> {
        self.initialised_in_part()
            .filter(|(_, a)| *a != of && self.activity.arrays.contains(a))
            .filter_map(|at| Some((at.1, first_rows(self.source, self.affines, self.activity, at)?)))
            .collect()
    }

    /// Shadows of which a gathering loop stores rows are filled with zeros in their other rows alone.
    fn fill_other_rows(&self, w: &mut Writer, start: &mut Block) {
        for array in &self.stored_rows {
            let (Some(first), Some(shadow)) = (self.first_rows.get(array), self.shadows.arrays.get(array))
            else {
                continue;
            };
            let fills = |stmt: &Stmt| matches!(stmt, Stmt::Fill(a, ..) | Stmt::Temp(a) if a == shadow);
            let Some(at) = start.iter().position(fills) else { continue };
            let ty = self.source.array(*array).ty;
            let others = w.block(|w| {
                outside(self.source, w, (*shadow, *array), &first.rows, |w, index| {
                    let zero = w.real(ty, 0.0);
                    w.store(*shadow, index, zero, None);
                });
            });
            match start[at] {
                Stmt::Temp(_) => {
                    w.program.undefined.insert(*shadow);
                    start.splice(at + 1..at + 1, others);
                }
                _ => drop(start.splice(at..=at, others)),
            }
        }
    }

    /// The arrays that are their own tape in one loop, and that loop, where it may be that not all of them, or of their shadows, is
    /// given contents at the start.
    fn initialised_in_part(&self) -> impl Iterator<Item = (TopLevel, ArrayId)> {
        // The host may look at all of an array, and change its shape.
        let wanted = !self.yields() && self.uses(Optimisation::InitialiseWhatIsRead);
        self.plan.replaced_in_one_loop().filter(move |_| wanted)
    }

    /// The caller's array, of which a parameter may be a copy.
    fn given(&self, w: &Writer, a: ArrayId) -> ArrayId {
        let named = |param: &ArrayId| w.program.array(*param).name == self.source.array(a).name;
        let mut params = w.program.params.iter().filter_map(|param| match param {
            Param::Array(param) => Some(*param),
            Param::Scalar(_) => None,
        });
        params.find(named).unwrap_or(a)
    }

    fn make_shadows(&mut self, w: &mut Writer, results: &BTreeMap<ArrayId, ArrayId>) {
        for a in self.source.array_ids() {
            // The shape of a temporary is known before everything else.
            if let Role::Temp(shape) = &self.source.array(a).role {
                let shape = shape.iter().map(|v| early(self.source, w, *v)).collect();
                w.program.arrays[a.index()].role = Role::Temp(shape);
            }
        }
        for a in &self.activity.arrays {
            let decl = self.source.array(*a).clone();
            let shadow = match results.get(a) {
                Some(result) => {
                    let zero = w.real(decl.ty, 0.0);
                    w.fill(*result, zero);
                    // The launch has compared it with the caller's array.
                    let given = self.given(w, *a);
                    w.program.alike.push((given, *result));
                    *result
                }
                None => {
                    let shape: Vec<ValueId> = match &w.program.array(*a).role {
                        Role::Temp(shape) => shape.clone(),
                        _ => (0..decl.rank).map(|k| w.dim(*a, k)).collect(),
                    };
                    let name = format!("d_{}'", decl.name);
                    let shadow = w.array(name, decl.ty, decl.rank, Role::Temp(shape));
                    w.push(Stmt::Temp(shadow));
                    shadow
                }
            };
            self.shadows.arrays.insert(*a, shadow);
            self.shadow_states.insert(*a, ShadowState::Zeros);
        }
        for a in extreme_arrays(self.activity, &self.source.body) {
            let shape = match &w.program.array(a).role {
                Role::Temp(shape) => shape.clone(),
                _ => (0..self.source.array(a).rank).map(|k| w.dim(a, k)).collect(),
            };
            let beside = declare(w, self.source, a, shape);
            self.extremes.insert(a, beside);
        }
        for a in without_derivative(self.source, self.activity) {
            let shape = match &w.program.array(a).role {
                Role::Temp(shape) => shape.clone(),
                _ => (0..self.source.array(a).rank).map(|k| w.dim(a, k)).collect(),
            };
            let scratch = declare_scratch(w, self.source, a, shape);
            self.scratch.insert(a, scratch);
        }
        let (mut read_again, mut without_bound) = (BTreeSet::new(), BTreeSet::new());
        walk_program_level(&self.source.body, &mut |stmt| {
            if let Stmt::Par(par) = stmt {
                let arrays = store_forwarding(self.source, self.affines, par).arrays;
                let domain = Domain::of_ended(self.source, self.affines, par);
                if domain.is_some_and(|domain| has_events(&domain, par, &arrays)) {
                    without_bound.extend(arrays.iter().copied());
                }
                read_again.extend(arrays);
            }
        });
        for a in read_again {
            let decl = self.source.array(a);
            let shape = match &w.program.array(a).role {
                Role::Temp(shape) => shape.clone(),
                _ => (0..decl.rank).map(|k| w.dim(a, k)).collect(),
            };
            let copy = w.array(format!("again_{}", decl.name), decl.ty, decl.rank, Role::Temp(shape.clone()));
            w.program.undefined.insert(copy);
            w.push(Stmt::Temp(copy));
            self.copies.insert(a, copy);
            if without_bound.contains(&a) {
                let stamp = w.array(format!("run_{}", decl.name), Type::I64, decl.rank, Role::Temp(shape));
                w.push(Stmt::Temp(stamp));
                self.stamps.insert(a, stamp);
            }
        }
        let mut program_level = BTreeSet::new();
        walk_program_level(&self.source.body, &mut |stmt| {
            if let Stmt::Let(v) = stmt
                && self.activity.values.contains(v)
                && !self.block_values.contains(v)
            {
                program_level.insert(*v);
            }
        });
        for v in program_level {
            let decl = self.source.value(v);
            let name = decl.name.clone().unwrap_or_else(|| format!("v{}", v.index()));
            let shadow = w.array(format!("d_{name}'"), decl.ty, 0, Role::Temp(Vec::new()));
            w.push(Stmt::Temp(shadow));
            self.shadows.values.insert(v, shadow);
        }
    }

    fn seed(&mut self, w: &mut Writer, of: ArrayId, seed: Option<ArrayId>) {
        let Some(shadow) = self.shadows.arrays.get(&of).copied() else { return };
        match seed {
            Some(seed) => w.copy(seed, shadow),
            None if parts::seed(w, self.source, of, shadow) => {}
            None => {
                let one = w.real(self.source.array(of).ty, 1.0);
                w.store(shadow, Writer::no_index(), one, None);
            }
        }
        self.shadow_states.insert(of, ShadowState::Numbers);
    }

    fn results(&mut self, w: &mut Writer, request: &Request, derivatives: &[ArrayId]) {
        for (name, to) in request.wrt.iter().zip(derivatives) {
            if let Some(scalar) = self.source.find_scalar(name) {
                let zero = w.real(self.source.scalars[scalar.index()].ty, 0.0);
                w.fill(*to, zero);
                let reads: Vec<ArrayId> = self
                    .shadows
                    .values
                    .iter()
                    .filter(|(v, _)| *self.source.op(**v) == Op::Scalar(scalar))
                    .map(|(_, shadow)| *shadow)
                    .collect();
                for shadow in reads {
                    let part = w.load(shadow, Writer::no_index(), None);
                    w.accumulate(*to, Writer::no_index(), part, None);
                }
                parts::sum_scalar(w, self.source, scalar, *to);
            } else if let Some(array) = self.source.find_array(name) {
                let Some(shadow) = self.shadows.arrays.get(&array).copied() else {
                    // Nothing flows to it.
                    let zero = w.real(self.source.array(array).ty, 0.0);
                    w.fill(*to, zero);
                    continue;
                };
                self.make_real(w, array);
                if shadow != *to {
                    w.copy(shadow, *to);
                }
                parts::sum_array(w, self.source, array, *to);
            }
        }
    }
}
