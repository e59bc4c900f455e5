//! Which values the adjoint needs, and so which arrays must be put back before a step is reversed.

use std::collections::{BTreeMap, BTreeSet};

use ebbtide_ir::{
    Affines, ArrayId, Binary, Combine, LibraryCall, LibraryOp, LocalId, LoopId, LoopKind, Op, Program,
    RegionId, Stmt, Store, ValueId, walk, walk_program_level,
};

use crate::analysis::activity::Activity;
use crate::analysis::effects::{changes, reads, swap_classes};
use crate::analysis::loop_length::counts;
use crate::analysis::operation_rules::{Derivatives, flows_through, read_by};
use crate::analysis::overwritten::{Overwritten, overwritten};
use crate::analysis::regions::Hosted;
use crate::analysis::store_forwarding::store_forwarding;
use crate::analysis::top_level::TopLevel;
use crate::rules::is_linear;

/// For each array the top-level statements whose reversal reads what it holds: what later statements overwrite
/// must be recorded, so that it can be put back.
///
/// Arrays that are swapped with one another share memory in turn, so they are in together or not at all. What is
/// read at program level is a scalar: it stays at hand, or is put aside.
#[derive(Clone, Debug, Default)]
pub(crate) struct Needed {
    /// Read by the adjoints of parallel loops and library operations in these statements.
    adjoints: Readers,
    /// Read by these loops, whose iterations may be run again on the way back.
    reruns: Readers,
    /// The statements that are loops.
    loops: BTreeSet<TopLevel>,
    /// The values that the reversal of anything reads.
    values: BTreeSet<ValueId>,
    /// By top-level statement: what it leaves as it was.
    overwritten: BTreeMap<TopLevel, Overwritten>,
    /// Is everything recorded, whether something reads it or not?
    pub everything: bool,
}

impl Needed {
    /// Must what `array` holds be recorded when a part of the top-level statement `position` overwrites it?
    pub fn before(&self, array: ArrayId, position: TopLevel) -> bool {
        self.everything
            || self.within(array, position)
            || (!self.loops.contains(&position) && self.earlier(array, position))
    }

    /// Must what `array` holds be recorded once, before the whole loop `position`, for what stands before it?
    pub fn around(&self, array: ArrayId, position: TopLevel) -> bool {
        !self.everything
            && self.loops.contains(&position)
            && self.earlier(array, position)
            && !self.within(array, position)
    }

    /// Does the reversal of anything read the value?
    pub fn value(&self, v: ValueId) -> bool {
        self.everything || self.values.contains(&v)
    }

    /// Lets loads whose elements stay as they are be made again, and writes that overwrite nothing that is read go unrecorded.
    pub fn read_again(&mut self, program: &Program, affines: &Affines) {
        for (position, top) in TopLevel::all(program) {
            let Stmt::Loop(l) = top else { continue };
            let found = overwritten((program, affines), l, &self.values);
            for v in &found.reloaded {
                if let Op::Load(array, _) = program.op(*v) {
                    self.adjoints.entry(*array).or_default().insert(position);
                }
            }
            self.overwritten.insert(position, found);
        }
    }

    /// Does the load find the same when its iteration is reversed?
    pub fn is_reloaded(&self, v: ValueId) -> bool {
        !self.everything && self.overwritten.values().any(|found| found.reloaded.contains(&v))
    }

    /// Need what the write overwrites not be recorded?
    pub fn is_harmless(&self, s: &Store, position: TopLevel) -> bool {
        let Some(found) = self.overwritten.get(&position).filter(|_| !self.everything) else { return false };
        let intact = found.intact.contains(&s.array) || !self.earlier(s.array, position);
        intact && found.harmless.contains(&s.id)
    }

    /// Does the loop `position` overwrite nothing of the array that its reversal reads?
    pub fn is_intact(&self, array: ArrayId, position: TopLevel) -> bool {
        let intact = |found: &Overwritten| found.intact.contains(&array);
        !self.everything && self.overwritten.get(&position).is_some_and(intact)
    }

    /// Is everything that parts of the top-level statement `position` overwrite in the array put back before what stands before them
    /// is reversed?
    pub fn puts_all_back(&self, array: ArrayId, position: TopLevel) -> bool {
        let found = self.overwritten.get(&position);
        self.everything || (self.within(array, position) && !found.is_some_and(|found| found.spares(array)))
    }

    /// The reverse half runs these loops again, as they are.
    pub fn run_again(&mut self, program: &Program, loops: &BTreeSet<LoopId>) {
        walk_program_level(&program.body, &mut |stmt| {
            if let Stmt::Loop(l) = stmt
                && loops.contains(&l.id)
            {
                self.uses_of(program, std::slice::from_ref(stmt));
            }
        });
    }

    /// The reverse half runs a block again, as it is.
    fn uses_of(&mut self, program: &Program, block: &[Stmt]) {
        let mut work = Vec::new();
        walk(block, &mut |stmt| {
            work.extend(stmt.uses());
            if let Stmt::Let(v) = stmt {
                work.push(*v);
            }
        });
        while let Some(v) = work.pop() {
            if self.values.insert(v) {
                work.extend(program.op(v).operands());
            }
        }
    }

    /// Does the adjoint of the statement itself read it?
    fn within(&self, array: ArrayId, position: TopLevel) -> bool {
        self.adjoints.get(&array).is_some_and(|at| at.contains(&position))
    }

    /// Does the reversal of an earlier statement read it?
    pub fn earlier(&self, array: ArrayId, position: TopLevel) -> bool {
        let any = |at: &BTreeSet<TopLevel>| at.first().is_some_and(|first| *first < position);
        self.adjoints.get(&array).is_some_and(any) || self.reruns.get(&array).is_some_and(any)
    }
}

/// By class of arrays that are swapped with one another: the top-level statements that read them.
type Readers = BTreeMap<ArrayId, BTreeSet<TopLevel>>;

/// Finds the arrays that the adjoint reads.
///
/// What is needed is needed wherever it is read, so values are followed from their uses to what they are made of, whatever the
/// order of statements: no dataflow problem. Order counts between top-level statements alone ([`Needed::earlier`]).
pub(crate) fn needed_arrays(
    (program, affines): (&Program, &Affines),
    activity: &Activity,
    rules: &Derivatives,
    hosted: &BTreeMap<RegionId, Hosted>,
) -> Needed {
    let classes = swap_classes(program);
    let (mut adjoints, reruns) = readers(program, &classes, (activity, rules), hosted);
    let parallel = in_parallel_loops(program);
    let into = put_into_locals(program);
    let stored = stored_before_loads(program, affines);
    let is_loop = |stmt: &Stmt| matches!(stmt, Stmt::Loop(_));
    let loops: BTreeSet<TopLevel> =
        TopLevel::all(program).filter(|(_, s)| is_loop(s)).map(|(k, _)| k).collect();
    let writes = program_level_writes(program);
    let mut work = used_by_adjoints(program, activity);
    let mut values: BTreeSet<ValueId> = BTreeSet::new();
    loop {
        while let Some(v) = work.pop() {
            if !values.insert(v) {
                continue;
            }
            match program.op(v) {
                Op::Load(array, index) => {
                    if let Some(at) = parallel.get(&v) {
                        adjoints.entry(classes[array]).or_default().insert(*at);
                    }
                    work.extend(index.as_slice());
                    work.extend(stored.get(&v).into_iter().flatten());
                }
                // At program level it is at hand, or is put aside.
                Op::Get(local) if parallel.contains_key(&v) => {
                    work.extend(into.get(local).into_iter().flatten());
                }
                Op::Get(_) => {}
                op => work.extend(op.operands()),
            }
        }
        // What a write replaces is put back where it was: the reversal reads the index too, be the array active or not.
        for (k, s) in &writes {
            let read_in = |readers: &Readers, at: &dyn Fn(&TopLevel) -> bool| {
                readers.get(&classes[&s.array]).is_some_and(|positions| positions.iter().any(at))
            };
            let within = read_in(&adjoints, &|at| at == k);
            let earlier = || read_in(&adjoints, &|at| at < k) || read_in(&reruns, &|at| at < k);
            if within || (!loops.contains(k) && earlier()) {
                work.extend(s.index.as_slice().iter().filter(|v| !values.contains(v)));
            }
        }
        if work.is_empty() {
            break;
        }
    }
    let by_array = |by_class: Readers| {
        classes.iter().filter_map(|(array, class)| Some((*array, by_class.get(class)?.clone()))).collect()
    };
    let (adjoints, reruns) = (by_array(adjoints), by_array(reruns));
    let mut needed = Needed { adjoints, reruns, loops, values, ..Needed::default() };
    walk_program_level(&program.body, &mut |stmt| {
        if let Stmt::Region(region) = stmt {
            needed.uses_of(program, &region.body);
        }
    });
    needed
}

/// The top-level statements whose adjoints read arrays, but for the loads of parallel loops; and those whose iterations read arrays
/// when they run again.
fn readers(
    program: &Program,
    classes: &BTreeMap<ArrayId, ArrayId>,
    (activity, rules): (&Activity, &Derivatives),
    hosted: &BTreeMap<RegionId, Hosted>,
) -> (Readers, Readers) {
    let (mut adjoints, mut reruns) = (Readers::new(), Readers::new());
    for (k, top) in TopLevel::all(program) {
        walk(std::slice::from_ref(top), &mut |stmt| match stmt {
            // Which update won is found from what was there before and what is there after.
            Stmt::Update(Combine::Min | Combine::Max, s) if activity.arrays.contains(&s.array) => {
                adjoints.entry(classes[&s.array]).or_default().insert(k);
            }
            Stmt::Library(call) => {
                for array in needed_by(call, activity, rules) {
                    adjoints.entry(classes[&array]).or_default().insert(k);
                }
            }
            Stmt::Region(region) => {
                // The driver reads it.
                if let Some(Hosted { visits, .. }) = hosted.get(&region.id) {
                    adjoints.entry(*visits).or_default().insert(k);
                }
                // What stands behind a loop of it is put back before iterations of the loop run again.
                for (at, stmt) in region.body.iter().enumerate() {
                    let Stmt::Loop(l) = stmt else { continue };
                    let behind = region.body[at + 1..].to_vec();
                    let changed: BTreeSet<ArrayId> =
                        changes(program, &behind).iter().map(|a| classes[a]).collect();
                    for class in reads(program, l).iter().map(|a| classes[a]) {
                        if changed.contains(&class) {
                            adjoints.entry(class).or_default().insert(k);
                        }
                    }
                }
            }
            Stmt::Loop(l) => {
                for array in reads(program, l) {
                    reruns.entry(classes[&array]).or_default().insert(k);
                }
            }
            _ => {}
        });
    }
    (adjoints, reruns)
}

/// The writes that stand in no parallel loop, and the top-level statement that each stands in.
fn program_level_writes(program: &Program) -> Vec<(TopLevel, Store)> {
    let mut writes = Vec::new();
    for (k, top) in TopLevel::all(program) {
        walk_program_level(std::slice::from_ref(top), &mut |stmt| {
            if let Stmt::Store(s) | Stmt::Update(_, s) = stmt {
                writes.push((k, s.clone()));
            }
        });
    }
    writes
}

/// The values of parallel loops, and the top-level statement that each stands in.
fn in_parallel_loops(program: &Program) -> BTreeMap<ValueId, TopLevel> {
    let mut values = BTreeMap::new();
    for (k, top) in TopLevel::all(program) {
        walk(std::slice::from_ref(top), &mut |stmt| {
            let Stmt::Par(par) = stmt else { return };
            walk(&par.body, &mut |inner| {
                if let Stmt::Let(v) = inner {
                    values.insert(*v, k);
                }
            });
        });
    }
    values
}

/// The values that adjoints use themselves: factors, conditions, indices, bounds.
fn used_by_adjoints(program: &Program, activity: &Activity) -> Vec<ValueId> {
    let mut values: Vec<ValueId> = Vec::new();
    let mut program_level: BTreeSet<LoopId> = BTreeSet::new();
    walk_program_level(&program.body, &mut |stmt| {
        program_level.extend(if let Stmt::Loop(l) = stmt { Some(l.id) } else { None });
    });
    walk(&program.body, &mut |stmt| {
        match stmt {
            Stmt::Let(v) if activity.values.contains(v) => {
                used_by_partials(program, activity, *v, &mut values)
            }
            Stmt::Store(s) | Stmt::Update(_, s) if activity.arrays.contains(&s.array) => {
                values.extend(s.index.as_slice());
                values
                    .extend(matches!(stmt, Stmt::Update(Combine::Min | Combine::Max, _)).then_some(s.value));
            }
            // Rules get the scalars that the operation got.
            Stmt::Library(call) => {
                values.extend(stmt.uses().into_iter().filter(|_| flows_through(call, activity)))
            }
            // How many iterations it had is counted.
            Stmt::Loop(l) if program_level.contains(&l.id) && !counts(l) => {
                values.extend(if let LoopKind::For { from, .. } = l.kind { Some(from) } else { None });
            }
            // The loop that reverses a parallel one is safe under the same condition.
            Stmt::If(_) | Stmt::Loop(_) | Stmt::Par(_) => values.extend(stmt.uses()),
            _ => {}
        };
        for block in stmt.blocks().filter(|block| claims_for(block, activity)) {
            let claims = block.iter().filter_map(|s| if let Stmt::Claim(c) = s { Some(c) } else { None });
            values.extend(claims.flat_map(|claim| claim.index.as_slice()));
        }
    });
    values
}

/// The values that the partial derivatives of an active value are made of.
fn used_by_partials(program: &Program, activity: &Activity, v: ValueId, values: &mut Vec<ValueId>) {
    let active = |v: &ValueId| activity.values.contains(v);
    match *program.op(v) {
        Op::Load(_, index) => values.extend(index.as_slice()),
        // Each factor is needed where the other one is active.
        Op::Binary(Binary::Mul, a, b) | Op::Fma(a, b, _) => {
            values.extend(active(&b).then_some(a));
            values.extend(active(&a).then_some(b));
        }
        Op::Select(c, ..) => values.push(c),
        op if is_linear(&op) => {}
        op => values.extend(op.operands()),
    }
}

/// What a local holds is made of everything that was ever put into it.
fn put_into_locals(program: &Program) -> BTreeMap<LocalId, Vec<ValueId>> {
    let mut into: BTreeMap<LocalId, Vec<ValueId>> = BTreeMap::new();
    walk(&program.body, &mut |stmt| {
        if let Stmt::Declare(local, v) | Stmt::Set(local, v) = stmt {
            into.entry(*local).or_default().push(*v);
        }
    });
    into
}

/// What a parallel loop reads may be what it has written itself: for such loads, what that is made of.
fn stored_before_loads(program: &Program, affines: &Affines) -> BTreeMap<ValueId, Vec<ValueId>> {
    let mut stored: BTreeMap<ValueId, Vec<ValueId>> = BTreeMap::new();
    walk(&program.body, &mut |stmt| {
        let Stmt::Par(par) = stmt else { return };
        let forwarding = store_forwarding(program, affines, par);
        stored.extend(forwarding.forwarded.iter().map(|(load, value)| (*load, vec![*value])));
        let undecided = forwarding.undecided(program);
        let mut into: BTreeMap<ArrayId, Vec<ValueId>> = BTreeMap::new();
        walk(&par.body, &mut |inner| {
            if let Stmt::Store(s) | Stmt::Update(_, s) = inner
                && undecided.contains(&s.array)
            {
                into.entry(s.array).or_default().extend([&s.value].into_iter().chain(s.index.as_slice()));
            }
        });
        walk(&par.body, &mut |inner| {
            if let Stmt::Let(v) = inner
                && let Op::Load(array, _) = program.op(*v)
                && let Some(values) = into.get(array)
                && !forwarding.forwarded.contains_key(v)
            {
                stored.insert(*v, values.clone());
            }
        });
    });
    stored
}

/// The arrays whose contents the adjoint of an operation reads: each factor of a product where the other one is
/// active.
pub(crate) fn needed_by(call: &LibraryCall, activity: &Activity, rules: &Derivatives) -> Vec<ArrayId> {
    let active = |a: &ArrayId| activity.arrays.contains(a);
    match (call.op, call.reads.as_slice(), call.writes.as_slice()) {
        (LibraryOp::Matmul { .. }, [a, b], [c]) if active(c) => {
            let left = active(b).then_some(*a);
            left.into_iter().chain(active(a).then_some(*b)).collect()
        }
        (LibraryOp::Custom(id), ..) => {
            rules.get(&id).map_or(Vec::new(), |rule| read_by(rule, call).into_iter().collect())
        }
        _ => Vec::new(),
    }
}

/// Is there something in this block that flows through elements which the block claims? They may be those of another
/// array than the one that is claimed.
pub(crate) fn claims_for(block: &[Stmt], activity: &Activity) -> bool {
    let active = |stmt: &Stmt| matches!(stmt, Stmt::Store(s) | Stmt::Update(_, s) if activity.arrays.contains(&s.array));
    block.iter().any(|stmt| matches!(stmt, Stmt::Claim(_))) && block.iter().any(active)
}
