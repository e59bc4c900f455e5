//! Sums over preimages: what iterations of a parallel loop scatter into elements that they share is taken out of the loop
//! and gathered, element by element.
//!
//! In `for i in par(..) { .. for k in .. { d_h[k] += w[[k, i]] * delta; } }` the iterations meet in every element of
//! `d_h`. Taken out, it is a loop over the elements, each of which adds up what its *preimage* holds, the iterations
//! `(i, k)` that come to it: `for k in par(..) { for i in .. { d_h[k] += w[[k, i]] * delta[i]; } }`. What an iteration
//! computed outside its inner loops and is not simply read again, here `delta`, is kept for the second loop in an array
//! of the shape of the first one.
//!
//! The order of the sum is part of the adjoint's meaning and is chosen here once: the variables that do not follow from
//! the element ascend, those of the parallel loop before those of its inner loops, the later ones faster.

use std::collections::{BTreeMap, BTreeSet};

use ebbtide_ir::{
    Affine, Affines, ArrayId, Binary, Block, Combine, Indices, Literal, LocalId, Loop, LoopId, Op, Program,
    Range, Stmt, Store, ValueId, is_zero, walk, written,
};

use crate::analysis::index_preimage::{Step, Variable, preimage};
use crate::plan::scratch_arrays::{Domain, Places, ScratchArrays, Tapes};
use crate::writer::Writer;
use crate::writer::prune::prune;

mod arms;
mod copy;
mod handed;
mod interchange;
mod kept_in_arms;
mod lanes;
mod nest;
mod partial;
mod slice;
mod sum;

use arms::Path;
use copy::Copier;
use handed::{Handed, Outermost, Stores};
use lanes::{LANES, wants_lanes};
use slice::{Wanted, defined, only, updates, without};

pub(crate) use interchange::Interchanged;
pub(crate) use partial::partial_sums;
pub(crate) use sum::Sum;

/// The most operations that are repeated for an element rather than kept by the iteration.
const CHEAP: usize = 8;

/// The adjoint of a parallel loop, to be split.
pub(crate) struct Whole<'a> {
    pub ranges: &'a [Range],
    pub body: Block,
    /// The shadows whose sums may be taken out.
    pub shadows: BTreeSet<ArrayId>,
    pub domain: Option<Domain<'a>>,
    /// Is a shadow that the loop reads and writes read before it is written?
    pub reads: Reads,
    /// Where iterations keep what they find on their way forward.
    pub tapes: &'a Tapes,
}

/// When the iterations of a loop read the shadows that they write.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reads {
    /// Before they write them: the same could be read before the loop.
    First,
    /// At any time.
    Anytime,
}

/// What became of it.
pub(crate) struct Split {
    /// What is left of the body.
    pub body: Block,
    /// What reads shadows as they were: before the loop.
    pub before: Vec<Sum>,
    /// What reads what the iterations kept: after the loop.
    pub after: Vec<Sum>,
    /// Loops over the elements of several shadows: before the loop, and after it.
    pub interchanged: [Vec<Interchanged>; 2],
    /// The tapes that are read after the loop.
    pub read: BTreeSet<ArrayId>,
}

/// Takes out of a loop what its iterations would scatter.
pub(crate) fn split(w: &mut Writer, kept: &mut ScratchArrays, whole: Whole<'_>) -> Split {
    let mut out = Split {
        body: Block::new(),
        before: Vec::new(),
        after: Vec::new(),
        interchanged: [Vec::new(), Vec::new()],
        read: BTreeSet::new(),
    };
    let affines = Affines::of(&w.program);
    let mut splitter = Splitter {
        ranges: whole.ranges,
        affines: &affines,
        inside: defined(whole.ranges, &whole.body),
        written: written(&whole.body).into_iter().filter(|a| !whole.tapes.lasting.contains(a)).collect(),
        tapes: whole.tapes,
        domain: whole.domain.clone(),
        reads: whole.reads,
        holders: BTreeMap::new(),
    };
    let mut taken = BTreeSet::new();
    let mut keeps = Keeps::default();
    let shared = splitter.shared(&w.program, &whole);
    for group in splitter.groups(w, &whole.body, &shared) {
        if let Some(stores) = splitter.interchange(w, kept, (&whole.body, &group), &mut out) {
            taken.extend(group.numbers());
            keeps.add(group.at, stores);
        }
    }
    for number in shared.into_iter().filter(|number| !taken.contains(number)).collect::<Vec<_>>() {
        let mut count = 0;
        for (at, stmt) in whole.body.iter().enumerate() {
            let here = updates(stmt);
            if (count..count + here).contains(&number) {
                let wanted = Wanted { stmt, at, numbers: [number - count].into() };
                if let Some(stores) = splitter.take(w, kept, &wanted, &mut out) {
                    taken.insert(number);
                    keeps.add(at, stores);
                }
            }
            count += here;
        }
    }
    let mut count = 0;
    for (at, mut stmt) in whole.body.into_iter().enumerate() {
        out.body.extend(keeps.before.remove(&at).into_iter().flatten());
        arms::insert(&mut stmt, &keeps.in_arms.remove(&at).unwrap_or_default());
        keeps.insert_in_loops(std::slice::from_mut(&mut stmt));
        out.body.extend(without(stmt, &taken, &mut count));
    }
    if !taken.is_empty() {
        out.body = prune(&w.program, out.body);
    }
    out
}

/// What iterations keep.
#[derive(Default)]
struct Keeps {
    /// Before statements of the body, by their number.
    before: BTreeMap<usize, Block>,
    /// Before statements of loops, by their number in the loop's body.
    in_loops: BTreeMap<(LoopId, usize), Block>,
    /// Before statements of arms, by the number of the statement of the body that they are in.
    in_arms: BTreeMap<usize, BTreeMap<Path, Block>>,
}

impl Keeps {
    fn add(&mut self, at: usize, stores: Stores) {
        self.before.entry(at).or_default().extend(stores.before);
        for (place, block) in stores.in_loops {
            self.in_loops.entry(place).or_default().extend(block);
        }
        let in_arms = self.in_arms.entry(at).or_default();
        for (path, block) in stores.in_arms {
            in_arms.entry(path).or_default().extend(block);
        }
    }

    /// Puts stores into the loops of a block. The depth of recursion is that of nesting.
    fn insert_in_loops(&self, block: &mut [Stmt]) {
        for stmt in block {
            stmt.blocks_mut().for_each(|inner| self.insert_in_loops(inner));
            if let Stmt::Loop(l) = stmt {
                // The last place first: the others stay where they are.
                for ((_, place), stores) in self.in_loops.range((l.id, 0)..=(l.id, usize::MAX)).rev() {
                    l.body.splice(place..place, stores.iter().cloned());
                }
            }
        }
    }
}

/// Takes sums out of one loop.
struct Splitter<'a> {
    ranges: &'a [Range],
    affines: &'a Affines,
    /// What comes to life in the loop.
    inside: BTreeSet<ValueId>,
    written: BTreeSet<ArrayId>,
    domain: Option<Domain<'a>>,
    reads: Reads,
    tapes: &'a Tapes,
    /// The arrays that hold what the iterations keep.
    holders: BTreeMap<Handed, ArrayId>,
}

/// For each variable of a parallel loop the index that tells its values apart.
type Owner = Vec<Affine>;

impl Splitter<'_> {
    /// The updates, by number, at elements that other iterations come to as well.
    fn shared(&self, program: &Program, whole: &Whole<'_>) -> Vec<usize> {
        let mut all: BTreeMap<ArrayId, Vec<(usize, Option<Owner>)>> = BTreeMap::new();
        let mut number = 0;
        walk(&whole.body, &mut |stmt| {
            if let Stmt::Update(how, s) = stmt {
                if *how == Combine::Add && whole.shadows.contains(&s.array) {
                    all.entry(s.array).or_default().push((number, self.owner(program, s.index)));
                }
                number += 1;
            }
        });
        let mut shared = Vec::new();
        for updates in all.values() {
            // One way to own elements can stay.
            let own = updates.iter().find_map(|u| u.1.clone());
            shared.extend(updates.iter().filter(|u| u.1.is_none() || u.1 != own).map(|u| u.0));
        }
        shared.sort_unstable();
        shared
    }

    /// How the index tells the iterations of the loop apart. An element that is the same for all is left to an ordered
    /// reduction.
    fn owner(&self, program: &Program, index: Indices) -> Option<Owner> {
        let forms: Vec<&Affine> = index.as_slice().iter().map(|v| self.affines.form(*v)).collect();
        let varies = |form: &Affine| form.terms.iter().any(|t| self.varies(program, t.0));
        if !forms.iter().any(|form| varies(form)) {
            return Some(Vec::new());
        }
        let mut owner = Owner::new();
        for range in self.ranges {
            let tells =
                |form: &&&Affine| form.coefficient(range.var) != 0 && !varies(&form.without(range.var));
            owner.push((*forms.iter().find(tells)?).clone());
        }
        Some(owner)
    }

    /// May the value differ between iterations? What it is made of tells: where it stands says nothing, since of equal
    /// values one speaks for all, and that may be any of them.
    fn varies(&self, program: &Program, v: ValueId) -> bool {
        let (mut work, mut seen) = (vec![v], BTreeSet::new());
        while let Some(v) = work.pop() {
            let op = program.op(v);
            if op.is_pure() && *op != Op::LoopVar {
                work.extend(op.operands().filter(|o| seen.insert(*o)));
            } else if self.inside.contains(&v) {
                return true;
            }
        }
        false
    }

    /// Writes the sum over preimages for one update.
    fn take(
        &mut self,
        w: &mut Writer,
        kept: &mut ScratchArrays,
        wanted: &Wanted<'_>,
        out: &mut Split,
    ) -> Option<Stores> {
        let slice = prune(&w.program, vec![only(wanted.stmt, &wanted.numbers)]);
        let (mut update, mut loops): (Option<&Store>, Vec<&Loop>) = (None, Vec::new());
        walk(&slice, &mut |stmt| match stmt {
            Stmt::Update(_, s) => update = Some(s),
            Stmt::Loop(l) if updates(stmt) > 0 => loops.push(l),
            _ => {}
        });
        let update = update?;
        let mut variables: Vec<Variable> = self.ranges.iter().map(Variable::parallel).collect();
        for l in &loops {
            variables.push(Variable::sequential(l)?);
        }
        let vars: BTreeSet<ValueId> = variables.iter().map(|v| v.var).collect();
        let depends = |v: ValueId| self.depends(w, v, &vars);
        let invariant = |v: ValueId| depends(v).is_some_and(|on| on.is_empty());
        if update.index.as_slice().iter().any(|v| self.may_fault(&w.program, *v, &invariant)) {
            return None;
        }
        let steps = preimage(&w.program, self.affines, &variables, update.index, &depends)?;
        let way = self.way(w, wanted, &vars, Outermost::IfRepeated)?;
        if !way.read.is_disjoint(&self.tapes.passing) {
            return None;
        }
        let tapes: BTreeSet<ArrayId> = way.read.intersection(&self.tapes.lasting).copied().collect();
        let reads_written = !way.read.is_disjoint(&self.written);
        let nothing = way.copied.iter().all(|copied| copied.handed.is_empty());
        let early = nothing && tapes.is_empty() && self.reads == Reads::First;
        if reads_written && !early {
            return None;
        }
        let stores = self.keep_for(w, kept, &way)?;
        let sums = if reads_written { &mut out.before } else { &mut out.after };
        if !sums.iter().any(|s| s.shadow == update.array) {
            sums.push(Sum::new(w, update.array)?);
        }
        let sum = sums.iter_mut().find(|s| s.shadow == update.array)?;
        let write = |w: &mut Writer, total: LocalId, steps: &[Step], element: &[ValueId]| {
            Copier::new(&self.inside, vec![total]).each(w, steps, element, &|copier, w| {
                for copied in &way.copied {
                    self.hand_on(w, copier, &way, &copied.handed);
                    copier.block(w, &copied.block);
                }
            });
        };
        let copied = way.copied.iter().flat_map(|copied| copied.block.clone()).collect();
        let lanes = wants_lanes(&w.program, self.affines, &steps, &copied);
        let lanes = if lanes { kept.lanes(w, update.array, LANES, sum.dealt()) } else { None };
        sum.add(w, &steps, lanes, &write)?;
        out.read.extend(tapes);
        Some(stores)
    }

    /// Does an index hold something that is the same in all iterations and can fail? The sum computes it for each element,
    /// also where the loop has no iterations and never computed it. The index's own operands tell, not the values that
    /// stand for them in sums: where those are computed depends on the rest of the program.
    fn may_fault(&self, program: &Program, index: ValueId, invariant: &dyn Fn(ValueId) -> bool) -> bool {
        let mut work = vec![index];
        while let Some(v) = work.pop() {
            if !self.inside.contains(&v) {
                continue;
            }
            let fails = match *program.op(v) {
                Op::Load(array, _) => program.array(array).rank > 0,
                Op::Binary(Binary::Div | Binary::Rem | Binary::RemEuclid, _, divisor) => {
                    program.literal(divisor).and_then(Literal::to_i64).is_none_or(|d| d == 0)
                }
                _ => false,
            };
            if fails && invariant(v) {
                return true;
            }
            work.extend(program.op(v).operands());
        }
        false
    }

    /// The variables that a value is made of, where it can be made of them again.
    fn depends(&self, w: &Writer, v: ValueId, vars: &BTreeSet<ValueId>) -> Option<BTreeSet<ValueId>> {
        let (mut on, mut work, mut seen) = (BTreeSet::new(), vec![v], BTreeSet::new());
        while let Some(v) = work.pop() {
            if !seen.insert(v) {
                continue;
            }
            if vars.contains(&v) {
                on.insert(v);
                continue;
            }
            // A value that speaks for equal ones inside need not be there itself.
            let inside = self.inside.contains(&v);
            match w.program.op(v) {
                Op::Get(_) | Op::LoopVar if inside => return None,
                Op::Load(array, _) if inside && self.written.contains(array) => return None,
                op => work.extend(op.operands()),
            }
        }
        Some(on)
    }

    fn is_cheap(&self, w: &Writer, v: ValueId) -> bool {
        let (mut work, mut operations) = (vec![v], 0);
        while let Some(v) = work.pop() {
            if !self.inside.contains(&v) || operations > CHEAP {
                continue;
            }
            let op = w.program.op(v);
            operations += if let Op::Math(..) | Op::Rand(..) = op { CHEAP + 1 } else { 1 };
            work.extend(op.operands());
        }
        operations <= CHEAP
    }

    /// Lets iterations keep what is handed on.
    fn keep(&mut self, w: &mut Writer, kept: &mut ScratchArrays, handed: &BTreeSet<Handed>) -> Option<Block> {
        w.begin();
        let own = self.own_index(w, |v| v);
        let mut stores = false;
        for h in handed {
            if self.holders.contains_key(h) {
                continue;
            }
            let (Some(own), Some(array)) = (own, self.new_holder(w, kept, *h)) else {
                w.end();
                return None;
            };
            let value = h.value(w);
            w.store(array, own, value, None);
            stores = true;
        }
        let block = w.end();
        Some(if stores { block } else { Block::new() })
    }

    /// An array of the loop's shape for something that is handed on.
    fn new_holder(&mut self, w: &mut Writer, kept: &mut ScratchArrays, h: Handed) -> Option<ArrayId> {
        let (ty, domain) = (h.ty(w), self.domain.as_ref()?);
        let number = self.holders.values().filter(|a| w.program.array(**a).ty == ty).count();
        let array = kept.array(w, ty, domain, &Places::One, number);
        self.holders.insert(h, array);
        Some(array)
    }

    /// The place of an iteration in the arrays of the loop's shape.
    fn own_index(&self, w: &mut Writer, known: impl Fn(ValueId) -> ValueId) -> Option<Indices> {
        let place = |r: &Range| match is_zero(&w.program, r.from) {
            true => known(r.var),
            false => w.sub(known(r.var), r.from),
        };
        let places: Vec<ValueId> = self.ranges.iter().map(place).collect();
        Indices::new(&places)
    }
}
