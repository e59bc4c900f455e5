//! The adjoint of a parallel loop: loops that gather, then one over the loop's own iterations.

mod alone;
mod first_addition;
mod gather;
mod gather_rows;
mod gathered_loads;
pub(crate) mod iterations;
pub(crate) mod join_gather;
mod load_kinds;
mod shadow_writes;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use ebbtide_ir::{Affines, ArrayId, Binary, Combine, Indices, Literal, Par, Program, Range, Stmt, ValueId};

use crate::analysis::activity::{Activity, active_loads};
use crate::analysis::effects::written_by;
use crate::analysis::extremes::{check, extreme_arrays};
use crate::analysis::first_rows::FirstRows;
use crate::analysis::index_inverse::{covers, identity};
use crate::analysis::store_forwarding::{StoreForwarding, store_forwarding};
use crate::error::Error;
use crate::generate::extremes::Extremes;
use crate::generate::task::{Followed, Purpose, ShadowWrite};
use crate::optimize::local_sums::sum_in_locals;
use crate::optimize::scatter_to_sum::{Interchanged, Reads, Sum, Whole, partial_sums, split};
use crate::plan::events::events;
use crate::plan::killed_boxes::{BoxId, KilledBoxes};
use crate::plan::scratch_arrays::{Domain, ScratchArrays, Tapes};
use crate::plan::shadow_state::{ShadowState, ShadowStates, Shadows};
use crate::plan::tape_plan::TapePlan;
use crate::request::Optimisation;
use crate::writer::prune::without_unread;
use crate::writer::{Writer, both, within};
use first_addition::store_first;
use iterations::{iterations, mapped, over_iterations, own_iterations};
use join_gather::ShadowDoubleBuffer;
use shadow_writes::overwrites_itself;

/// A load of an active array.
type Site = (ValueId, ArrayId, Indices);

/// A loop over all elements of the shadow of `array`, each collecting what flows to it.
pub(crate) struct Gather {
    pub array: ArrayId,
    pub par: Par,
}

/// Writes adjoints of parallel loops.
pub(crate) struct ParAdjoint<'a> {
    pub source: &'a Program,
    pub affines: &'a Affines,
    pub activity: &'a Activity,
    pub plan: &'a TapePlan,
    pub shadows: &'a Shadows,
    pub extremes: &'a Extremes,
    /// What each shadow holds now, by the array that it shadows.
    pub shadow_states: &'a mut ShadowStates,
    pub boxes: &'a KilledBoxes,
    /// Rows of shadows that a gathering loop is the first to add to, and the shadows of which it stores them.
    pub first_rows: &'a BTreeMap<ArrayId, FirstRows>,
    pub stored_rows: &'a mut BTreeSet<ArrayId>,
    /// Program-level values as they are known where the adjoint is written.
    pub env: &'a HashMap<ValueId, ValueId>,
    /// Where shadows are written anew while others still read them; `None` where the host may change shapes.
    pub double_buffer: Option<&'a mut ShadowDoubleBuffer>,
    pub without: &'a BTreeSet<Optimisation>,
    /// What iterations keep for the loops that gather.
    pub scratch_arrays: &'a mut ScratchArrays,
    /// Copies of arrays that parallel loops read after they have written them.
    pub copies: &'a BTreeMap<ArrayId, ArrayId>,
    /// Where iterations without a bound write such a copy: in which run of the iteration each element was written last.
    pub stamps: &'a BTreeMap<ArrayId, ArrayId>,
}

impl ParAdjoint<'_> {
    pub fn write(&mut self, w: &mut Writer, par: &Par) -> Result<(), Error> {
        let written: BTreeSet<ArrayId> =
            written_by(par).into_iter().filter(|a| self.shadows.arrays.contains_key(a)).collect();
        // Nothing flows back through a loop whose results nothing used.
        if !written.iter().any(|a| self.shadow_states.has_numbers(a)) {
            return Ok(());
        }
        // Reading a shadow must find its zeros.
        for a in &written {
            self.make_real(w, *a);
        }
        let mut forwarding = store_forwarding(self.source, self.affines, par);
        forwarding.left = self.plan.left(par).cloned().unwrap_or_default();
        let extreme = self.count_ties(w, par, &forwarding)?;
        let all = active_loads(self.source, self.activity, &par.body);
        let turns = !self.without.contains(&Optimisation::GatherStencils);
        let own = self.own_loads(par, &all, &written);
        let targets = match turns && !forwarding.is_undecided() {
            true => self.targets(par, &all, (&written, &own)),
            // The copies are of the iterations: another loop cannot run bodies over them.
            false => Vec::new(),
        };
        let mut loops = Vec::new();
        let groups = self.side_by_side(par, &all, targets);
        for group in &groups {
            match group.as_slice() {
                [target] => loops.extend(self.gather(w, (par, &forwarding), &all, target)?),
                rows => self.gather_rows(w, (par, &forwarding), &all, rows)?,
            }
        }
        let gathered: BTreeSet<ValueId> =
            groups.into_iter().flatten().flat_map(|target| target.loads).collect();
        let writes = self.shadow_writes(par, &all, &written);
        let scattered: BTreeSet<ArrayId> =
            all.iter().filter(|s| !gathered.contains(&s.0) && !written.contains(&s.1)).map(|s| s.1).collect();
        let purpose = Purpose::All { gathered: &gathered, writes: &writes };
        self.over_iterations(w, (par, &forwarding), purpose, (&scattered, &own), (loops, &all))?;
        for array in extreme {
            if let (Some(beside), Some(shadow)) = (self.extremes.get(&array), self.shadows.arrays.get(&array))
            {
                beside.keep_olds_part(w, array, *shadow);
            }
        }
        for (array, write) in &writes {
            if *write == ShadowWrite::Forget {
                let held = match self.boxes.killed_by(par.id, *array) {
                    None => ShadowState::Nothing,
                    Some(_) if !self.shadow_states.has_numbers(array) => continue,
                    Some(id) => ShadowState::NumbersOutside(id),
                };
                self.shadow_states.insert(*array, held);
            }
        }
        // What was read before it was written has its part of what flows, also where nothing used what was written.
        for array in &written {
            if writes.get(array) != Some(&ShadowWrite::Forget) && all.iter().any(|site| site.1 == *array) {
                self.shadow_states.insert(*array, ShadowState::Numbers);
            }
        }
        Ok(())
    }

    /// Fills a shadow with zeros where it only stands for them.
    pub fn make_real(&mut self, w: &mut Writer, array: ArrayId) {
        let Some(shadow) = self.shadows.arrays.get(&array).copied() else { return };
        let ty = self.source.array(array).ty;
        match self.shadow_states.get(&array).copied() {
            Some(ShadowState::Nothing) => {
                let zero = w.real(ty, 0.0);
                w.fill(shadow, zero);
                self.shadow_states.insert(array, ShadowState::Zeros);
            }
            Some(ShadowState::NumbersOutside(id)) => {
                let zero = w.real(ty, 0.0);
                self.fill_box(w, (array, id), zero);
                self.shadow_states.insert(array, ShadowState::Numbers);
            }
            Some(ShadowState::Zeros | ShadowState::Numbers) | None => {}
        }
    }

    /// Stores a value to the elements of a box of an array's shadow, as far as they exist.
    pub fn fill_box(&self, w: &mut Writer, (array, id): (ArrayId, BoxId), value: ValueId) {
        let Some(shadow) = self.shadows.arrays.get(&array).copied() else { return };
        let first = w.index(0);
        let mut ranges = Vec::new();
        for (d, (from, to)) in self.boxes.bounds(id).iter().enumerate() {
            let (from, to) = (self.sum(w, self.env, from), self.sum(w, self.env, to));
            let extent = w.dim(shadow, d);
            let (from, to) = (w.binary(Binary::Max, from, first), w.binary(Binary::Min, to, extent));
            ranges.push(Range { var: w.loop_var(&format!("k{d}")), from, to });
        }
        let element: Vec<ValueId> = ranges.iter().map(|range| range.var).collect();
        let Some(index) = Indices::new(&element) else { return };
        let body = w.block(|w| w.store(shadow, index, value, None));
        let id = w.new_par();
        w.push(Stmt::Par(Par::over(id, ranges, body)));
    }

    /// Is an element in a box? Asked where the adjoint of a loop is written: that may run over the box, and has asked then.
    fn is_in_box(&self, w: &mut Writer, par: &Par, id: BoxId, element: &[ValueId]) -> Option<ValueId> {
        let mut inside = None;
        for (d, (k, (from, to))) in element.iter().zip(self.boxes.bounds(id)).enumerate() {
            let (from, to) = match par.ranges.get(d) {
                Some(range) if self.boxes.runs_over(par.id, id) => {
                    (mapped(self.env, range.from), mapped(self.env, range.to))
                }
                _ => (self.sum(w, self.env, from), self.sum(w, self.env, to)),
            };
            let within = within(w, *k, from, to);
            inside = Some(both(w, inside, within));
        }
        inside
    }

    /// Finds out how many values the minima and maxima of the loop are equal to; gives their arrays.
    fn count_ties(
        &mut self,
        w: &mut Writer,
        par: &Par,
        forwarding: &StoreForwarding,
    ) -> Result<BTreeSet<ArrayId>, Error> {
        let arrays = extreme_arrays(self.activity, &par.body);
        for array in &arrays {
            check(self.source, par, *array)?;
            if let Some(extreme) = self.extremes.get(array) {
                extreme.begin_ties(w, *array);
            }
        }
        if !arrays.is_empty() {
            let beside = (self.shadows, self.extremes);
            let purpose = Purpose::Count(self.extremes);
            let copies = self.copy(w, forwarding);
            let program = (self.source, self.activity);
            over_iterations(w, program, beside, self.env, (par, forwarding, copies), purpose)?;
        }
        Ok(arrays)
    }

    /// Takes the iterations of the loop backwards. What they would scatter into the shadows of these arrays is summed up
    /// element by element where it can be, but for what they add to elements of their own.
    fn over_iterations(
        &mut self,
        w: &mut Writer,
        (par, forwarding): (&Par, &StoreForwarding),
        purpose: Purpose<'_>,
        (scattered, own): (&BTreeSet<ArrayId>, &BTreeSet<ArrayId>),
        (mut gathers, all): (Vec<Gather>, &[(ValueId, ArrayId, Indices)]),
    ) -> Result<(), Error> {
        let beside = (self.shadows, self.extremes);
        let domain = Domain::of_ended(self.source, self.affines, par);
        let mut tapes = Tapes::default();
        let events = domain.as_ref().and_then(|domain| events(domain, par, &forwarding.arrays));
        let (copies, stamps) = match &events {
            Some(_) => self.begin_runs(w, forwarding),
            None => (self.copy(w, forwarding), BTreeMap::new()),
        };
        tapes.passing.extend(copies.values().chain(stamps.values()));
        let found = events.as_ref().map(|events| (events, stamps));
        let (source, counted) = events.as_ref().map_or((self.source, par), |e| (&e.source, &e.par));
        let program = (source, self.activity);
        let body = (counted, forwarding, copies);
        let sums = !self.without.contains(&Optimisation::SumOverPreimages);
        let again = written_by(par).iter().any(|a| overwrites_itself(par, *a)) || forwarding.is_undecided();
        let loads = if sums && !again { self.shared_loads(par, all) } else { BTreeSet::new() };
        let storage = domain.clone().map(|domain| (&mut *self.scratch_arrays, domain, &mut tapes));
        let mut elements = Vec::new();
        let followed = Followed { loads: &loads, elements: &mut elements };
        let body = (body, purpose, Some(followed));
        let (ranges, body) = iterations(w, program, beside, self.env, body, (storage, found))?;
        let shadow = |array: &ArrayId| self.shadows.arrays.get(array).copied();
        let shared = scattered.difference(own).filter(|_| sums);
        let shadows: BTreeSet<ArrayId> = shared.filter_map(shadow).collect();
        let reads = if again { Reads::Anytime } else { Reads::First };
        let body = if sums { sum_in_locals(w, body, &shadows) } else { body };
        let written = written_by(par).iter().filter_map(shadow).collect();
        let (body, partial) = partial_sums(w, &ranges, body, (&elements, &written));
        partial.into_iter().for_each(|par| w.push(Stmt::Par(par)));
        let whole = Whole { ranges: &ranges, body, shadows, domain, reads, tapes: &tapes };
        let mut split = split(w, self.scratch_arrays, whole);
        let own = tapes.lasting.difference(&split.read).chain(&tapes.passing).copied().collect();
        split.body = without_unread(&w.program, split.body, &own);
        let left: BTreeSet<ArrayId> = ebbtide_ir::written(&split.body).into_iter().collect();
        let mut others: BTreeSet<ArrayId> =
            gathers.iter().flat_map(|gather| ebbtide_ir::written(&gather.par.body)).collect();
        others.extend(split.before.iter().map(|sum| sum.shadow));
        others.extend(split.interchanged[0].iter().flat_map(|loops| loops.shadows.iter().copied()));
        for array in scattered {
            let Some(shadow) = shadow(array).filter(|s| left.contains(s)) else { continue };
            let mut sites = all.iter().filter(|site| site.1 == *array);
            let is_first = match self.shadow_states.get(array) {
                Some(ShadowState::Nothing) => {
                    sites.any(|site| covers(self.source, self.affines, par, *array, site.2))
                }
                Some(ShadowState::NumbersOutside(id)) => {
                    self.boxes.runs_over(par.id, *id) && sites.any(|site| identity(self.affines, par, site.2))
                }
                _ => false,
            };
            if !(is_first
                && events.is_none()
                && !others.contains(&shadow)
                && store_first(&w.program, &ranges, &mut split.body, shadow))
            {
                self.make_real(w, *array);
            }
            self.shadow_states.insert(*array, ShadowState::Numbers);
        }
        if !split.before.is_empty() || !split.interchanged[0].is_empty() {
            gathers.drain(..).for_each(|gather| w.push(Stmt::Par(gather.par)));
        }
        let [before, after] = split.interchanged;
        self.interchanged(w, before, scattered);
        self.sums(w, split.before, scattered);
        let own = own_iterations(w, (par, self.env), ranges, split.body);
        self.write_loops(w, par, gathers, own, all);
        self.interchanged(w, after, scattered);
        self.sums(w, split.after, scattered);
        Ok(())
    }

    /// Copies what a loop reads after it has written it, as it was before.
    fn copy(&self, w: &mut Writer, forwarding: &StoreForwarding) -> BTreeMap<ArrayId, ArrayId> {
        copy_read_again(w, self.copies, forwarding)
    }

    /// The copies of what a loop reads after it has written it, and their stamps: no element is written yet in any run.
    fn begin_runs(
        &self,
        w: &mut Writer,
        forwarding: &StoreForwarding,
    ) -> (BTreeMap<ArrayId, ArrayId>, BTreeMap<ArrayId, ArrayId>) {
        let stamps = of_read_again(self.stamps, forwarding);
        let zero = w.literal(Literal::from(0i64));
        stamps.values().for_each(|stamp| w.fill(*stamp, zero));
        (of_read_again(self.copies, forwarding), stamps)
    }

    /// Writes loops that add to the shadows of these arrays.
    fn interchanged(&mut self, w: &mut Writer, loops: Vec<Interchanged>, arrays: &BTreeSet<ArrayId>) {
        for Interchanged { shadows, par } in loops {
            for array in
                arrays.iter().filter(|a| self.shadows.arrays.get(a).is_some_and(|s| shadows.contains(s)))
            {
                self.make_real(w, *array);
                self.shadow_states.insert(*array, ShadowState::Numbers);
            }
            w.push(Stmt::Par(par));
        }
    }

    /// Adds sums over preimages to the shadows of these arrays.
    fn sums(&mut self, w: &mut Writer, sums: Vec<Sum>, arrays: &BTreeSet<ArrayId>) {
        for sum in sums {
            let shadow = sum.shadow;
            let Some(array) = arrays.iter().find(|a| self.shadows.arrays.get(a) == Some(&shadow)) else {
                continue;
            };
            // A shadow that stands for zeros holds nothing but the sum.
            if matches!(self.shadow_states.get(array), Some(ShadowState::NumbersOutside(_))) {
                self.make_real(w, *array);
            }
            let adds = self.shadow_states.get(array) == Some(&ShadowState::Numbers);
            sum.write(w, adds.then_some(Combine::Add));
            self.shadow_states.insert(*array, ShadowState::Numbers);
        }
    }
}

/// Of these arrays those that belong to arrays which a loop reads after it has written them.
fn of_read_again(
    all: &BTreeMap<ArrayId, ArrayId>,
    forwarding: &StoreForwarding,
) -> BTreeMap<ArrayId, ArrayId> {
    all.iter().filter(|(array, _)| forwarding.arrays.contains(array)).map(|(a, b)| (*a, *b)).collect()
}

/// Copies what a loop reads after it has written it, as it was before.
pub(crate) fn copy_read_again(
    w: &mut Writer,
    copies: &BTreeMap<ArrayId, ArrayId>,
    forwarding: &StoreForwarding,
) -> BTreeMap<ArrayId, ArrayId> {
    let copies = of_read_again(copies, forwarding);
    for (array, copy) in &copies {
        w.copy(*array, *copy);
    }
    copies
}
