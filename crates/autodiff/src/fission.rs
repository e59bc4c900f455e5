//! Sums over fibres: what iterations of a parallel loop scatter into elements that they share is taken out of the loop
//! and gathered, element by element.
//!
//! In `for i in par(..) { .. for k in .. { d_h[k] += w[[k, i]] * delta; } }` the iterations meet in every element of
//! `d_h`. Taken out, it is a loop over the elements, each of which adds up what its *fibre* holds, the iterations
//! `(i, k)` that come to it: `for k in par(..) { for i in .. { d_h[k] += w[[k, i]] * delta[i]; } }`. What an iteration
//! computed outside its inner loops and is not simply read again, here `delta`, is kept for the second loop in an array
//! of the shape of the first one.
//!
//! The order of the sum is part of the adjoint's meaning and is chosen here once: the variables that do not follow from
//! the element ascend, those of the parallel loop before those of its inner loops, the later ones faster.

use std::collections::{BTreeMap, BTreeSet};

use ebbtide_ir::{
    Affine, Affines, ArrayId, Block, Combine, Indices, LocalId, Loop, LoopKind, Op, Ordering, Par, Range,
    Stmt, Store, Type, ValueId, is_zero, walk, written,
};

mod copy;
mod lanes;
mod slice;

use crate::fibre::{Part, Step, Variable, fibre};
use crate::kept::{Domain, Kept, Places};
use crate::prune::prune;
use crate::task::Tapes;
use crate::writer::Writer;
use copy::Copier;
use lanes::{LANES, wants_lanes, with_part};
use slice::{defined, only, updates, without};

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
    /// The tapes that are read after the loop.
    pub read: BTreeSet<ArrayId>,
}

/// The sums over the fibres of a shadow's elements.
pub(crate) struct Sum {
    pub shadow: ArrayId,
    ranges: Vec<Range>,
    index: Indices,
    /// The loops in which lanes add up their shares.
    lanes: Vec<(Vec<Range>, Block)>,
    /// What computes the sums, one for each load of the loop.
    body: Block,
    totals: Vec<ValueId>,
}

impl Sum {
    fn new(w: &mut Writer, shadow: ArrayId) -> Option<Sum> {
        let zero = w.index(0);
        let ranges: Vec<Range> = (0..w.program.array(shadow).rank)
            .map(|d| {
                let to = w.dim(shadow, d);
                Range { var: w.loop_var(&format!("k{d}")), from: zero, to }
            })
            .collect();
        let index = Indices::new(&ranges.iter().map(|r| r.var).collect::<Vec<_>>())?;
        Some(Sum { shadow, ranges, index, lanes: Vec::new(), body: Block::new(), totals: Vec::new() })
    }

    /// Writes the loop that adds the sums to the shadow's elements, or puts them there.
    pub fn write(self, w: &mut Writer, how: Option<Combine>) {
        for (ranges, body) in self.lanes {
            let (id, body) = (w.new_par(), prune(&w.program, body));
            w.push(Stmt::Par(Par { id, ranges, body, ordering: Ordering::Ordered, site: None }));
        }
        w.begin();
        self.body.into_iter().for_each(|stmt| w.push(stmt));
        let mut totals = self.totals.into_iter();
        let Some(mut value) = totals.next() else { return drop(w.end()) };
        for total in totals {
            value = w.add(value, total);
        }
        let store = Store { array: self.shadow, index: self.index, value, site: None };
        w.push(match how {
            Some(how) => Stmt::Update(how, store),
            None => Stmt::Store(store),
        });
        let body = w.end();
        let (id, body) = (w.new_par(), prune(&w.program, body));
        let ranges = self.ranges;
        w.push(Stmt::Par(Par { id, ranges, body, ordering: Ordering::Ordered, site: None }));
    }
}

/// Takes out of a loop what its iterations would scatter.
pub(crate) fn split(w: &mut Writer, kept: &mut Kept, whole: Whole<'_>) -> Split {
    let mut out = Split { body: Block::new(), before: Vec::new(), after: Vec::new(), read: BTreeSet::new() };
    let affines = Affines::of(&w.program);
    let mut splitter = Splitter {
        ranges: whole.ranges,
        affines: &affines,
        inside: defined(whole.ranges, &whole.body),
        written: written(&whole.body).into_iter().filter(|a| !whole.tapes.lasting.contains(a)).collect(),
        tapes: whole.tapes,
        domain: whole.domain,
        reads: whole.reads,
        holders: BTreeMap::new(),
    };
    let mut taken = BTreeSet::new();
    let mut keeps: BTreeMap<usize, Block> = BTreeMap::new();
    for number in splitter.shared(&whole) {
        let mut count = 0;
        for (at, stmt) in whole.body.iter().enumerate() {
            let here = updates(stmt);
            if (count..count + here).contains(&number) {
                let slice = prune(&w.program, vec![only(stmt, number - count)]);
                if let Some(stores) = splitter.take(w, kept, (&slice, at), &mut out) {
                    taken.insert(number);
                    keeps.entry(at).or_default().extend(stores);
                }
            }
            count += here;
        }
    }
    let mut count = 0;
    for (at, stmt) in whole.body.into_iter().enumerate() {
        out.body.extend(keeps.remove(&at).into_iter().flatten());
        out.body.extend(without(stmt, &taken, &mut count));
    }
    if !taken.is_empty() {
        out.body = prune(&w.program, out.body);
    }
    out
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

/// Something that an iteration hands on.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Handed {
    Value(ValueId),
    /// What a local holds before the statement of this number.
    Local(LocalId, usize),
}

impl Splitter<'_> {
    /// The updates, by number, at elements that other iterations come to as well.
    fn shared(&self, whole: &Whole<'_>) -> Vec<usize> {
        let mut all: BTreeMap<ArrayId, Vec<(usize, Option<Owner>)>> = BTreeMap::new();
        let mut number = 0;
        walk(&whole.body, &mut |stmt| {
            if let Stmt::Update(how, s) = stmt {
                if *how == Combine::Add && whole.shadows.contains(&s.array) {
                    all.entry(s.array).or_default().push((number, self.owner(s.index)));
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
    fn owner(&self, index: Indices) -> Option<Owner> {
        let forms: Vec<&Affine> = index.as_slice().iter().map(|v| self.affines.form(*v)).collect();
        let varies = |form: &Affine| form.terms.iter().any(|t| self.inside.contains(&t.0));
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

    /// Writes the sum over fibres for the one update in the slice of the statement `at`.
    fn take(
        &mut self,
        w: &mut Writer,
        kept: &mut Kept,
        (slice, at): (&Block, usize),
        out: &mut Split,
    ) -> Option<Block> {
        let (mut update, mut loops): (Option<&Store>, Vec<&Loop>) = (None, Vec::new());
        walk(slice, &mut |stmt| match stmt {
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
        let steps = fibre(&w.program, self.affines, &variables, update.index, &depends)?;
        let read = slice::read_by(&w.program, slice);
        if !read.is_disjoint(&self.tapes.passing) {
            return None;
        }
        let tapes: BTreeSet<ArrayId> = read.intersection(&self.tapes.lasting).copied().collect();
        let reads_written = !read.is_disjoint(&self.written);
        let handed = self.handed(w, slice, &vars, at)?;
        let early = handed.is_empty() && tapes.is_empty() && self.reads == Reads::First;
        if reads_written && !early {
            return None;
        }
        let keeps = self.keep(w, kept, &handed)?;
        let sums = if reads_written { &mut out.before } else { &mut out.after };
        if !sums.iter().any(|s| s.shadow == update.array) {
            sums.push(Sum::new(w, update.array)?);
        }
        let sum = sums.iter_mut().find(|s| s.shadow == update.array)?;
        let ty = w.ty(update.value);
        let write = |w: &mut Writer, total: LocalId, steps: &[Step], element: &[ValueId]| {
            Copier::new(&self.inside, total).each(w, steps, element, &|copier, w| {
                let own = self.own_index(w, |v| copier.known(v));
                for h in &handed {
                    let (Some(own), Some(array)) = (own, self.holders.get(h)) else { continue };
                    match h {
                        Handed::Value(v) => copier.hand(w, *v, *array, own),
                        Handed::Local(local, _) => copier.hand_local(w, *local, *array, own),
                    }
                }
                copier.block(w, slice);
            });
        };
        let mut part = Part::All;
        let mut shares = None;
        if wants_lanes(&w.program, self.affines, &steps, slice)
            && let Some(array) = kept.lanes(w, update.array, LANES, sum.lanes.len())
        {
            // Each lane of each element adds up its share.
            let mut elements = Sum::new(w, update.array)?;
            let (from, to) = (w.index(0), w.index(LANES));
            let lane = w.loop_var("lane");
            elements.ranges.push(Range { var: lane, from, to });
            let at: Vec<ValueId> = elements.ranges.iter().map(|r| r.var).collect();
            w.begin();
            let zero = w.real(ty, 0.0);
            let total = w.local("sum", zero);
            write(w, total, &with_part(&steps, Part::Lane(lane)), elements.index.as_slice());
            let share = w.get(total);
            w.store(array, Indices::new(&at)?, share, None);
            let body = w.end();
            sum.lanes.push((elements.ranges, body));
            (part, shares) = (Part::Rest, Some(array));
        }
        w.begin();
        let start = w.real(ty, 0.0);
        let total = w.local("sum", start);
        if let Some(array) = shares {
            let (lane, from, to) = (w.loop_var("lane"), w.index(0), w.index(LANES));
            let at: Vec<ValueId> = sum.index.as_slice().iter().copied().chain([lane]).collect();
            w.begin();
            let (old, share) = (w.get(total), w.load(array, Indices::new(&at)?, None));
            let next = w.add(old, share);
            w.push(Stmt::Set(total, next));
            let (body, id) = (w.end(), w.new_loop());
            let kind = LoopKind::For { var: lane, from, to };
            w.push(Stmt::Loop(Loop { id, kind, body, until: None, schedule: None }));
        }
        write(w, total, &with_part(&steps, part), sum.index.as_slice());
        let total = w.get(total);
        sum.body.extend(w.end());
        sum.totals.push(total);
        out.read.extend(tapes);
        Some(keeps)
    }

    /// The variables that a value is made of, where it can be made of them again.
    fn depends(&self, w: &Writer, v: ValueId, vars: &BTreeSet<ValueId>) -> Option<BTreeSet<ValueId>> {
        let (mut on, mut work) = (BTreeSet::new(), vec![v]);
        while let Some(v) = work.pop() {
            if vars.contains(&v) {
                on.insert(v);
            } else if self.inside.contains(&v) {
                match w.program.op(v) {
                    Op::Get(_) | Op::LoopVar => return None,
                    Op::Load(array, _) if self.written.contains(array) => return None,
                    op => work.extend(op.operands()),
                }
            }
        }
        Some(on)
    }

    /// What the slice uses of the rest of its iteration and is not made again; `None` where that cannot be handed on.
    fn handed(
        &self,
        w: &Writer,
        slice: &Block,
        vars: &BTreeSet<ValueId>,
        at: usize,
    ) -> Option<BTreeSet<Handed>> {
        let needs = slice::needs(&w.program, slice)?;
        let mut handed = BTreeSet::new();
        for v in needs.values {
            if !self.inside.contains(&v) || vars.contains(&v) {
                continue;
            }
            let again = self.depends(w, v, vars).is_some();
            match w.ty(v) {
                Type::Index if !again => return None,
                Type::Index => {}
                _ if again && self.is_cheap(w, v) => {}
                _ => drop(handed.insert(Handed::Value(v))),
            }
        }
        for local in needs.locals {
            if w.program.locals[local.index()].ty == Type::Index {
                return None;
            }
            handed.insert(Handed::Local(local, at));
        }
        Some(handed)
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
    fn keep(&mut self, w: &mut Writer, kept: &mut Kept, handed: &BTreeSet<Handed>) -> Option<Block> {
        w.begin();
        let own = self.own_index(w, |v| v);
        let mut stores = false;
        for h in handed {
            if self.holders.contains_key(h) {
                continue;
            }
            let ty = match h {
                Handed::Value(v) => w.ty(*v),
                Handed::Local(local, _) => w.program.locals[local.index()].ty,
            };
            let (Some(own), Some(domain)) = (own, self.domain) else {
                w.end();
                return None;
            };
            let number = self.holders.values().filter(|a| w.program.array(**a).ty == ty).count();
            let array = kept.array(w, ty, &domain, &Places::One, number);
            let value = match h {
                Handed::Value(v) => *v,
                Handed::Local(local, _) => w.get(*local),
            };
            w.store(array, own, value, None);
            self.holders.insert(*h, array);
            stores = true;
        }
        let block = w.end();
        Some(if stores { block } else { Block::new() })
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
