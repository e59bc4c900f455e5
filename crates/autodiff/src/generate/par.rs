//! The adjoint of a parallel loop: loops that gather, then one over the loop's own iterations.

mod first_addition;
mod gather;
mod gathered_loads;
pub(crate) mod join_gather;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use ebbtide_ir::{
    Affines, ArrayId, Asked, Block, Combine, Indices, Literal, Par, Program, Range, Requirement, Safety,
    Stmt, ValueId, apart as apart_in, is_zero, loads_own, walk,
};

use crate::analysis::activity::{Activity, active_loads};
use crate::analysis::effects::{only_store, written_by};
use crate::analysis::extremes::{check, extreme_arrays};
use crate::analysis::first_rows::FirstRows;
use crate::analysis::index_inverse::{covers, varying};
use crate::analysis::store_forwarding::{StoreForwarding, store_forwarding};
use crate::error::Error;
use crate::generate::extremes::Extremes;
use crate::generate::task::{Followed, Purpose, ShadowWrite, Storage, Task};
use crate::optimize::local_sums::sum_in_locals;
use crate::optimize::scatter_to_sum::{Interchanged, Reads, Sum, Whole, partial_sums, split};
use crate::plan::events::{Events, events};
use crate::plan::scratch_arrays::{Domain, ScratchArrays, Tapes};
use crate::plan::shadow_state::{ShadowState, ShadowStates, Shadows, is_replaced};
use crate::request::Optimisation;
use crate::writer::Writer;
use crate::writer::prune::{prune, without_unread};
use first_addition::store_first;
use join_gather::ShadowDoubleBuffer;

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
    pub shadows: &'a Shadows,
    pub extremes: &'a Extremes,
    /// What each shadow holds now, by the array that it shadows.
    pub shadow_states: &'a mut ShadowStates,
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
        if written.iter().all(|a| self.shadow_states.get(a) != Some(&ShadowState::Numbers)) {
            return Ok(());
        }
        // Reading a shadow must find its zeros.
        for a in &written {
            self.make_real(w, *a);
        }
        let forwarding = store_forwarding(self.source, self.affines, par);
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
        for target in &targets {
            loops.extend(self.gather(w, (par, &forwarding), &all, target)?);
        }
        let gathered: BTreeSet<ValueId> = targets.into_iter().flat_map(|target| target.loads).collect();
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
                self.shadow_states.insert(*array, ShadowState::Nothing);
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
        if self.shadow_states.get(&array) == Some(&ShadowState::Nothing)
            && let Some(shadow) = self.shadows.arrays.get(&array)
        {
            let zero = w.real(self.source.array(array).ty, 0.0);
            w.fill(*shadow, zero);
            self.shadow_states.insert(array, ShadowState::Zeros);
        }
    }

    /// The arrays of which iterations load several elements and share none, as the gates of a layer in one array. An iteration
    /// adds to the shadows of its own: turned round, each load would run the body once more. What inner loops load is left to
    /// sums in locals.
    fn own_loads(
        &self,
        par: &Par,
        all: &[(ValueId, ArrayId, Indices)],
        written: &BTreeSet<ArrayId>,
    ) -> BTreeSet<ArrayId> {
        let mut in_loops = BTreeSet::new();
        walk(&par.body, &mut |stmt| {
            if let Stmt::Loop(l) = stmt {
                walk(&l.body, &mut |stmt| {
                    if let Stmt::Let(v) = stmt {
                        in_loops.insert(*v);
                    }
                });
            }
        });
        let mut indices: BTreeMap<ArrayId, BTreeSet<Indices>> = BTreeMap::new();
        for (_, array, index) in all.iter().filter(|site| !written.contains(&site.1)) {
            indices.entry(*array).or_default().insert(*index);
        }
        let looped: BTreeSet<ArrayId> = all.iter().filter(|s| in_loops.contains(&s.0)).map(|s| s.1).collect();
        let is_own = |array: &ArrayId| loads_own(self.source, self.affines, par, *array);
        indices.retain(|array, all| all.len() > 1 && !looped.contains(array) && is_own(array));
        indices.into_keys().collect()
    }

    /// What happens to the shadows of what the loop overwrites.
    fn shadow_writes(
        &self,
        par: &Par,
        all: &[(ValueId, ArrayId, Indices)],
        written: &BTreeSet<ArrayId>,
    ) -> BTreeMap<ArrayId, ShadowWrite> {
        let (mut writes, mut apart) = (BTreeMap::new(), None);
        for array in written {
            let overwritten = {
                let mut stores = false;
                walk(&par.body, &mut |stmt| stores |= matches!(stmt, Stmt::Store(s) if s.array == *array));
                stores
            };
            if !overwritten {
                continue;
            }
            let loads: Vec<Site> = all.iter().filter(|s| s.1 == *array).copied().collect();
            let top = |v: ValueId| par.body.iter().any(|s| matches!(s, Stmt::Let(w) if *w == v));
            let write = match (only_store(par, *array), loads.as_slice()) {
                (Some(_), []) if is_replaced(self.source, self.affines, par, *array) => ShadowWrite::Forget,
                (Some(store), loads) => {
                    let (own, others): (Vec<Site>, Vec<Site>) = loads
                        .iter()
                        .copied()
                        .partition(|load: &Site| same_index(self.affines, store.index, load.2));
                    let mut is_apart = |load: &Indices| {
                        let apart = apart.get_or_insert_with(|| apart_in(self.source, self.affines, par));
                        apart.contains(&(*array, *load, store.index))
                    };
                    match own.as_slice() {
                        [load]
                            if top(load.0)
                                && reads_before(par, load.0)
                                && others.iter().all(|other| is_apart(&other.2)) =>
                        {
                            ShadowWrite::Replace(load.0)
                        }
                        _ => ShadowWrite::Zero,
                    }
                }
                _ => ShadowWrite::Zero,
            };
            writes.insert(*array, write);
        }
        writes
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
            let covered = || {
                all.iter()
                    .any(|site| site.1 == *array && covers(self.source, self.affines, par, *array, site.2))
            };
            let stands_for_zeros = self.shadow_states.get(array) == Some(&ShadowState::Nothing);
            if !(stands_for_zeros
                && events.is_none()
                && !others.contains(&shadow)
                && covered()
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

    /// Loads of arrays that the loop writes, at elements that it never writes and that several iterations read: those depend
    /// on some of its variables alone. It is the program that tells, not its adjoint, of which there may be two.
    fn shared_loads(&self, par: &Par, all: &[(ValueId, ArrayId, Indices)]) -> BTreeSet<ValueId> {
        let is_plain = par.body.iter().all(|stmt| stmt.blocks().next().is_none());
        if par.ranges.len() < 2 || !is_plain {
            return BTreeSet::new();
        }
        let writes: Vec<(ArrayId, Indices)> = (par.body.iter())
            .filter_map(|stmt| match stmt {
                Stmt::Store(s) | Stmt::Update(_, s) => Some((s.array, s.index)),
                _ => None,
            })
            .collect();
        let varies = varying(self.source, par);
        let variables: Vec<ValueId> = par.ranges.iter().map(|r| r.var).collect();
        // For each dimension of an index the variable that it holds; `None` where it holds anything else that varies.
        let held = |index: &Indices| -> Option<Vec<Option<ValueId>>> {
            let dimension = |v: &ValueId| {
                let form = self.affines.form(*v);
                let mut moving = form.terms.iter().filter(|t| varies.contains(&t.0));
                match (moving.next(), moving.next()) {
                    (None, _) => Some(None),
                    (Some((var, 1 | -1)), None) if variables.contains(var) => Some(Some(*var)),
                    _ => None,
                }
            };
            index.as_slice().iter().map(dimension).collect()
        };
        let is_shared = |index: &Indices| {
            held(index).is_some_and(|held| {
                let occurring: BTreeSet<ValueId> = held.into_iter().flatten().collect();
                !occurring.is_empty() && occurring.len() < variables.len()
            })
        };
        let mut apart = None;
        let mut is_apart = |array: ArrayId, load: Indices| {
            let apart = apart.get_or_insert_with(|| apart_in(self.source, self.affines, par));
            writes.iter().filter(|w| w.0 == array).all(|w| apart.contains(&(array, load, w.1)))
        };
        let is_written = |array: ArrayId| writes.iter().any(|w| w.0 == array);
        let loads = all.iter().filter(|(_, array, index)| is_written(*array) && is_shared(index));
        loads.filter(|(_, array, index)| is_apart(*array, *index)).map(|load| load.0).collect()
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

/// A parallel loop, what it reads after it has written it, and the copies over which its body runs therefore.
pub(crate) type Run<'a> = (&'a Par, &'a StoreForwarding, BTreeMap<ArrayId, ArrayId>);
/// What iterations without a bound find, and the stamps of the copies.
type Found<'a> = (&'a Events, BTreeMap<ArrayId, ArrayId>);

/// A loop over the original iterations: own elements, reductions, scatters.
pub(crate) fn over_iterations(
    w: &mut Writer,
    program: (&Program, &Activity),
    beside: (&Shadows, &Extremes),
    env: &HashMap<ValueId, ValueId>,
    body: Run<'_>,
    purpose: Purpose<'_>,
) -> Result<(), Error> {
    let par = body.0;
    let (ranges, body) = iterations(w, program, beside, env, (body, purpose, None), (None, None))?;
    if let Some(own) = own_iterations(w, (par, env), ranges, body) {
        push_own(w, own);
    }
    Ok(())
}

/// The ranges and the body of a loop over the original iterations.
fn iterations(
    w: &mut Writer,
    (source, activity): (&Program, &Activity),
    beside: (&Shadows, &Extremes),
    env: &HashMap<ValueId, ValueId>,
    ((par, forwarding, copies), purpose, followed): (Run<'_>, Purpose<'_>, Option<Followed<'_>>),
    (storage, found): (Option<(&mut ScratchArrays, Domain<'_>, &mut Tapes)>, Option<Found<'_>>),
) -> Result<(Vec<Range>, Block), Error> {
    let mut map = env.clone();
    let ranges: Vec<Range> = par
        .ranges
        .iter()
        .map(|r| {
            let name = source.value(r.var).name.clone().unwrap_or_else(|| "i".to_string());
            let var = w.loop_var(&name);
            let range = Range { var, from: mapped(&map, r.from), to: mapped(&map, r.to) };
            map.insert(r.var, var);
            range
        })
        .collect();
    w.begin();
    let own: Vec<ValueId> = ranges
        .iter()
        .map(|r| if is_zero(&w.program, r.from) { r.var } else { w.sub(r.var, r.from) })
        .collect();
    let storage = storage.map(|(kept, domain, tapes)| Storage { kept, domain, own, tapes });
    let body = (&par.body, forwarding);
    let task = Task::new(source, activity, beside, purpose, map, body);
    let task = task.keeping(storage).over(copies).following(followed);
    task.with_events(w, found).write(w, &par.body)?;
    let body = w.end();
    let body = prune(&w.program, body);
    Ok((ranges, body))
}

/// A loop in place of another, if it does anything.
pub(crate) fn own_iterations(
    w: &mut Writer,
    (par, env): (&Par, &HashMap<ValueId, ValueId>),
    ranges: Vec<Range>,
    body: Block,
) -> Option<Par> {
    (!body.is_empty()).then(|| Par {
        id: w.new_par(),
        ranges,
        body,
        ordering: par.ordering,
        requires: requirements(par, env),
        safety: Safety::Proved,
        site: par.site.clone(),
    })
}

/// What was asked when a loop began, for one that reverses it: it holds there too.
fn requirements(par: &Par, env: &HashMap<ValueId, ValueId>) -> Vec<Requirement> {
    let asked = |r: &Requirement| Requirement {
        condition: mapped(env, r.condition),
        asked: Asked::Before,
        ..r.clone()
    };
    par.requires.iter().map(asked).collect()
}

pub(crate) fn push_own(w: &mut Writer, own: Par) {
    give_back(w, &own.body);
    w.push(Stmt::Par(own));
}

/// Nothing is taken when a loop begins that claims elements.
fn give_back(w: &mut Writer, body: &Block) {
    let mut taken = BTreeSet::new();
    walk(body, &mut |stmt| {
        if let Stmt::Claim(claim) = stmt {
            taken.insert(claim.taken);
        }
    });
    for array in taken {
        let no = w.literal(Literal::from(false));
        w.fill(array, no);
    }
}

fn mapped(map: &HashMap<ValueId, ValueId>, v: ValueId) -> ValueId {
    map.get(&v).copied().unwrap_or(v)
}

fn same_index(affines: &Affines, a: Indices, b: Indices) -> bool {
    a.as_slice().len() == b.as_slice().len()
        && a.as_slice().iter().zip(b.as_slice()).all(|(a, b)| affines.form(*a) == affines.form(*b))
}

/// Does the load stand before any write of the loop?
fn reads_before(par: &Par, load: ValueId) -> bool {
    for stmt in &par.body {
        match stmt {
            Stmt::Let(v) if *v == load => return true,
            Stmt::Store(_) | Stmt::Update(..) => return false,
            _ => {}
        }
    }
    false
}

/// May an iteration store to an element of the array that it has written before?
fn overwrites_itself(par: &Par, array: ArrayId) -> bool {
    let (mut writes, mut stores) = (0, 0);
    let mut count = |stmt: &Stmt, times: usize| match stmt {
        Stmt::Store(s) if s.array == array => (writes, stores) = (writes + times, stores + times),
        Stmt::Update(_, s) if s.array == array => writes += times,
        _ => {}
    };
    walk(&par.body, &mut |stmt| count(stmt, 1));
    // Each iteration of an inner loop writes again.
    walk(&par.body, &mut |stmt| {
        if let Stmt::Loop(l) = stmt {
            walk(&l.body, &mut |inner| count(inner, 1));
        }
    });
    stores > 0 && writes > 1
}
