//! What iterations hand on to sums over preimages.
//!
//! A sum runs the statement of an update once more for each iteration of a preimage. What that statement needs of the rest of its
//! iteration is made again where that is cheap; else the iteration keeps it, in an array of the loop's shape.
//!
//! Where the update stands in loops, their inner iterations may keep what they computed, each in a place of its own. Then the
//! sum runs less than the whole statement: of `for j { let s = sum(..); for k { d_w[[j, k]] += f(s) * x[k]; } }` nothing but
//! the inner loop, and no inner iteration of it computes `s` again. How many loops keep something is decided by what would be
//! computed again: see [`Repeats`].

use std::collections::{BTreeMap, BTreeSet};

use ebbtide_ir::{
    ArrayId, Block, Indices, LocalId, Loop, LoopId, LoopKind, Op, Program, Stmt, Type, ValueId, is_zero,
};

use super::Splitter;
use super::arms::{Arm, Path, path};
use super::copy::Copier;
use super::slice::{Wanted, changes, defined, needs, only, read_by, updates};
use crate::analysis::iteration_number::{Level, Step, has_few_iterations};
use crate::normalize::early::early;
use crate::plan::scratch_arrays::{Places, ScratchArrays, write};
use crate::writer::Writer;
use crate::writer::prune::prune;

/// Something that an iteration hands on.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Handed {
    Value(ValueId),
    /// What a local holds before the statement of this number.
    Local(LocalId, usize),
    /// A value of each inner iteration of a loop.
    InIteration(ValueId, LoopId),
    /// What a local holds in each inner iteration of a loop before the statement of this number of its body.
    LocalInIteration(LocalId, LoopId, usize),
    /// What a local holds before the statement of this number of the innermost arm, in the statement of that number.
    LocalInArm(LocalId, usize, usize),
}

impl Handed {
    /// The loop whose inner iterations hand it on.
    fn in_iteration_of(self) -> Option<LoopId> {
        match self {
            Handed::InIteration(_, l) | Handed::LocalInIteration(_, l, _) => Some(l),
            Handed::Value(_) | Handed::Local(..) | Handed::LocalInArm(..) => None,
        }
    }

    pub(super) fn ty(self, w: &Writer) -> Type {
        match self {
            Handed::Value(v) | Handed::InIteration(v, _) => w.ty(v),
            Handed::Local(local, _) | Handed::LocalInIteration(local, ..) | Handed::LocalInArm(local, ..) => {
                w.program.locals[local.index()].ty
            }
        }
    }

    /// It, where it is handed on.
    pub(super) fn value(self, w: &mut Writer) -> ValueId {
        match self {
            Handed::Value(v) | Handed::InIteration(v, _) => v,
            Handed::Local(local, _) | Handed::LocalInIteration(local, ..) | Handed::LocalInArm(local, ..) => {
                w.get(local)
            }
        }
    }
}

/// What iterations do so that the sums find what they need.
#[derive(Default)]
pub(super) struct Stores {
    /// Before the statement that holds the updates.
    pub before: Block,
    /// Before statements of loops around them, by their number in the loop's body.
    pub in_loops: BTreeMap<(LoopId, usize), Block>,
    /// Before statements of arms around them.
    pub in_arms: BTreeMap<Path, Block>,
}

/// A statement to be copied.
pub(super) struct Copied {
    pub block: Block,
    /// What its iteration hands on to it.
    pub handed: BTreeSet<Handed>,
    /// Which statement of the innermost loop or arm that hands something on it is.
    pub place: usize,
}

/// A loop around updates whose inner iterations can hand something on.
#[derive(Clone, Copy)]
pub(super) struct Link<'b> {
    inner: &'b Loop,
    /// That loop in the source: this one takes its inner iterations backwards.
    level: Level,
    /// How many updates the statement has before this loop.
    before: usize,
    /// Which statement of its body is the next loop.
    next: usize,
}

/// How sums come to what they need.
pub(super) struct Way<'b> {
    pub copied: Vec<Copied>,
    /// The arrays that are read.
    pub read: BTreeSet<ArrayId>,
    /// The loops whose inner iterations hand something on, outermost first.
    pub chain: Vec<Link<'b>>,
    /// The arms that hand something on, outermost first.
    pub arms: Vec<Arm<'b>>,
}

impl Way<'_> {
    /// Do inner iterations of loops hand something on?
    pub fn is_by_iterations(&self) -> bool {
        self.copied.iter().flat_map(|copied| &copied.handed).any(|h| h.in_iteration_of().is_some())
    }

    pub fn repeats(&self, program: &Program) -> Repeats {
        let each = self.copied.iter().map(|copied| repeats(program, &copied.block));
        each.max().unwrap_or(Repeats::Nothing)
    }

    /// The innermost arm in which something that is handed on comes to life.
    fn arm(&self, h: Handed) -> Option<usize> {
        match h {
            Handed::Value(v) => self.arms.iter().rposition(|arm| arm.defines(v)),
            Handed::LocalInArm(..) => self.arms.len().checked_sub(1),
            _ => None,
        }
    }

    /// Which link stands for a loop.
    fn link(&self, l: LoopId) -> Option<usize> {
        self.chain.iter().position(|link| link.inner.id == l)
    }

    /// Which statement of a loop of the chain holds the copied statement.
    fn place(&self, link: usize, copied: &Copied) -> usize {
        if link + 1 == self.chain.len() { copied.place } else { self.chain[link].next }
    }
}

/// How often statements that are run again run loops which are not around their updates.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Repeats {
    /// There are no such loops, or they are short.
    Nothing,
    /// As often as the iterations did.
    Once,
    /// Once for each inner iteration of a loop beside them: the work grows with its length.
    Often,
}

/// How often a block that is run again runs loops which are not around its updates. The depth of recursion is that of
/// nesting.
pub(super) fn repeats(program: &Program, block: &Block) -> Repeats {
    let (mut around, mut again, mut inner) = (false, false, Repeats::Nothing);
    let mut blocks = vec![block];
    while let Some(block) = blocks.pop() {
        for stmt in block {
            match stmt {
                Stmt::Loop(l) if updates(stmt) > 0 => {
                    around = true;
                    inner = inner.max(repeats(program, &l.body));
                }
                Stmt::Loop(l) => again |= !has_few_iterations(program, l),
                _ => blocks.extend(stmt.blocks()),
            }
        }
    }
    let here = match (again, around) {
        (false, _) => Repeats::Nothing,
        (true, false) => Repeats::Once,
        (true, true) => Repeats::Often,
    };
    here.max(inner)
}

/// When do the inner iterations of the outermost loop around updates hand on what they computed?
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Outermost {
    /// Wherever there are other loops inside of it.
    Always,
    /// Where loops would be repeated otherwise.
    IfRepeated,
}

/// Do the inner iterations of the outermost loop keep something anyway, for updates in loops inside of it?
fn keeps_anyway(chain: &[Link<'_>]) -> bool {
    let sums = |stmt: &Stmt| matches!(stmt, Stmt::Loop(_)) && updates(stmt) > 0;
    chain.first().is_some_and(|link| link.inner.body.iter().any(sums))
}

impl Splitter<'_> {
    /// What is copied, and what iterations hand on to it. With as few places as will do: each loop that hands something on
    /// multiplies them by its length.
    pub(super) fn way<'b>(
        &self,
        w: &Writer,
        wanted: &Wanted<'b>,
        vars: &BTreeSet<ValueId>,
        outermost: Outermost,
    ) -> Option<Way<'b>> {
        let chain = self.chain(wanted);
        let at_depth = |depth: usize| self.way_at(w, wanted, &chain[..depth], vars);
        let whole = at_depth(0);
        let deep = vars.len() > self.ranges.len() + 1;
        let first = match outermost {
            Outermost::Always if (deep || whole.is_none()) && !chain.is_empty() => {
                at_depth(1).filter(Way::is_by_iterations)
            }
            _ => None,
        };
        let way = first.or(whole)?;
        if let Some(in_arms) = self.way_in_arms(w, wanted, vars, &way) {
            return Some(in_arms);
        }
        let depth = way.chain.len();
        let repeated = way.repeats(&w.program);
        let deeper = match repeated {
            Repeats::Often => depth + 1..chain.len() + 1,
            Repeats::Once if !deep && keeps_anyway(&chain) => 1..2,
            _ => return Some(way),
        };
        let better = |way: &Way<'_>| way.repeats(&w.program) < repeated;
        deeper.filter_map(at_depth).find(better).or(Some(way))
    }

    /// Will inner iterations of loops hand on what loops beside the updates computed?
    pub(super) fn hands_on_sums(&self, w: &Writer, wanted: &Wanted<'_>, slice: &Block) -> bool {
        let chain = self.chain(wanted);
        match repeats(&w.program, slice) {
            Repeats::Nothing => false,
            Repeats::Once => keeps_anyway(&chain),
            Repeats::Often => !chain.is_empty(),
        }
    }

    /// The loops around the updates, one inside the other, with nothing but other statements beside them.
    fn chain<'b>(&self, wanted: &Wanted<'b>) -> Vec<Link<'b>> {
        let mut chain: Vec<Link<'b>> = Vec::new();
        let (mut stmt, mut before) = (wanted.stmt, 0);
        while let Stmt::Loop(inner) = stmt
            && let Some(level) = self.tapes.loops.get(&inner.id).copied()
        {
            let mut holding = Vec::new();
            let mut count = before;
            for (place, stmt) in inner.body.iter().enumerate() {
                if wanted.is_in(count, stmt) {
                    holding.push((place, stmt, count));
                }
                count += updates(stmt);
            }
            let Some(&(next, first, count)) = holding.first() else { break };
            chain.push(Link { inner, level, before, next });
            if holding.len() > 1 {
                break;
            }
            (stmt, before) = (first, count);
        }
        chain
    }

    /// Lets the inner iterations of these loops hand on what they computed.
    fn way_at<'b>(
        &self,
        w: &Writer,
        wanted: &Wanted<'b>,
        chain: &[Link<'b>],
        vars: &BTreeSet<ValueId>,
    ) -> Option<Way<'b>> {
        let (body, mut count) = match chain.last() {
            Some(link) => (link.inner.body.as_slice(), link.before),
            None => (std::slice::from_ref(wanted.stmt), 0),
        };
        let mut way =
            Way { copied: Vec::new(), read: BTreeSet::new(), chain: chain.to_vec(), arms: Vec::new() };
        for (place, stmt) in body.iter().enumerate() {
            let first = count;
            count += updates(stmt);
            if !wanted.is_in(first, stmt) {
                continue;
            }
            let here = wanted.numbers.range(first..count).map(|n| n - first).collect();
            let block = prune(&w.program, vec![only(stmt, &here)]);
            way.read.extend(read_by(&w.program, &block));
            let mut copied = Copied { block, handed: BTreeSet::new(), place };
            copied.handed = self.handed(w, (&mut way, &copied), vars, wanted.at)?;
            way.copied.push(copied);
        }
        Some(way)
    }

    /// What a statement uses of the rest of its iteration and is not made again; `None` where that cannot be handed on.
    pub(super) fn handed(
        &self,
        w: &Writer,
        (way, copied): (&mut Way<'_>, &Copied),
        vars: &BTreeSet<ValueId>,
        at: usize,
    ) -> Option<BTreeSet<Handed>> {
        let needs = needs(&w.program, &copied.block)?;
        let defined: Vec<BTreeSet<ValueId>> =
            way.chain.iter().map(|link| defined(&[], &link.inner.body)).collect();
        let mut handed = BTreeSet::new();
        for v in needs.values.into_iter().filter(|v| self.inside.contains(v) && !vars.contains(v)) {
            let again = self.depends(w, v, vars).is_some();
            match w.ty(v) {
                Type::Index if !again => return None,
                Type::Index => self.read_again(w, v, &mut way.read),
                _ if again && self.is_cheap(w, v) => self.read_again(w, v, &mut way.read),
                _ => match defined.iter().rposition(|defined| defined.contains(&v)) {
                    Some(link) => drop(handed.insert(Handed::InIteration(v, way.chain[link].inner.id))),
                    None => drop(handed.insert(Handed::Value(v))),
                },
            }
        }
        for local in needs.locals {
            if w.program.locals[local.index()].ty == Type::Index {
                return None;
            }
            handed.insert(match way.chain.iter().rposition(|link| changes(&link.inner.body, local)) {
                Some(link) => {
                    let place = way.place(link, copied);
                    Handed::LocalInIteration(local, way.chain[link].inner.id, place)
                }
                None if way.arms.iter().any(|arm| arm.changes(local)) => {
                    Handed::LocalInArm(local, at, copied.place)
                }
                None => Handed::Local(local, at),
            });
        }
        Some(handed)
    }

    /// The arrays that are read when a value of the loop is made again.
    fn read_again(&self, w: &Writer, v: ValueId, read: &mut BTreeSet<ArrayId>) {
        let (mut work, mut seen) = (vec![v], BTreeSet::new());
        while let Some(v) = work.pop() {
            if !self.inside.contains(&v) || !seen.insert(v) {
                continue;
            }
            let op = w.program.op(v);
            read.extend(if let Op::Load(array, _) = op { Some(*array) } else { None });
            work.extend(op.operands());
        }
    }

    /// Lets iterations, and the iterations of their loops, keep what is handed on.
    pub(super) fn keep_for(
        &mut self,
        w: &mut Writer,
        kept: &mut ScratchArrays,
        way: &Way<'_>,
    ) -> Option<Stores> {
        let before = self.holders.clone();
        let stores = self.try_keep_for(w, kept, way);
        if stores.is_none() {
            self.holders = before;
        }
        stores
    }

    fn try_keep_for(&mut self, w: &mut Writer, kept: &mut ScratchArrays, way: &Way<'_>) -> Option<Stores> {
        let mut stores = Stores::default();
        for copied in &way.copied {
            let (in_iteration, before): (BTreeSet<Handed>, BTreeSet<Handed>) =
                copied.handed.iter().copied().partition(|h| h.in_iteration_of().is_some());
            let (in_arms, before): (BTreeSet<Handed>, BTreeSet<Handed>) =
                before.into_iter().partition(|h| way.arm(*h).is_some());
            stores.before.extend(self.keep(w, kept, &before)?);
            for h in in_arms {
                let arms = way.arms.get(..=way.arm(h)?)?;
                self.keep_in_arm(w, kept, h, path(arms), &mut stores)?;
            }
            for h in in_iteration {
                if self.holders.contains_key(&h) {
                    continue;
                }
                let link = way.link(h.in_iteration_of()?)?;
                let chain = &way.chain[..=link];
                let places = self.places(chain)?;
                let array = self.array_of_iterations(w, kept, h.ty(w), &places)?;
                w.begin();
                let at = self.place_of_iteration(w, (chain, &places), &mut |_, v| v);
                let value = h.value(w);
                if let Some(at) = at {
                    w.store(array, at, value, None);
                }
                let store = w.end();
                at?;
                let place = way.place(link, copied);
                stores.in_loops.entry((way.chain[link].inner.id, place)).or_default().extend(store);
                self.holders.insert(h, array);
            }
        }
        Some(stores)
    }

    fn places(&self, chain: &[Link<'_>]) -> Option<Places> {
        let domain = self.domain.as_ref()?;
        let steps: Vec<Step> = chain.iter().map(|link| Step::Numbered(link.level)).collect();
        let places = domain.places(&steps)?;
        let has_room = matches!(places, Places::Packed(_)) || self.ranges.len() < Indices::MAX_RANK;
        has_room.then_some(places)
    }

    /// An array with these places that holds nothing else.
    fn array_of_iterations(
        &self,
        w: &mut Writer,
        kept: &mut ScratchArrays,
        ty: Type,
        places: &Places,
    ) -> Option<ArrayId> {
        let domain = self.domain.as_ref()?;
        let mut number = 0;
        loop {
            let array = kept.array(w, ty, domain, places, number);
            let used = self.tapes.lasting.contains(&array)
                || self.tapes.passing.contains(&array)
                || self.holders.values().any(|a| *a == array);
            if !used {
                return Some(array);
            }
            number += 1;
        }
    }

    /// The place of an inner iteration in the arrays of its iterations; `known` has values of the loop.
    fn place_of_iteration(
        &self,
        w: &mut Writer,
        (chain, places): (&[Link<'_>], &Places),
        known: &mut dyn FnMut(&mut Writer, ValueId) -> ValueId,
    ) -> Option<Indices> {
        let domain = self.domain.as_ref()?;
        let number = write(w, places.number()?, &mut |w, v| {
            if let Some(link) = chain.iter().find(|link| link.level.var == v) {
                return iteration(w, link.inner, known);
            }
            match domain.ranges.iter().position(|r| r.var == v) {
                Some(k) => known(w, self.ranges[k].var),
                None => early(domain.source, w, v),
            }
        });
        let mut index = vec![number];
        if !matches!(places, Places::Packed(_)) {
            for r in self.ranges {
                let var = known(w, r.var);
                index.push(if is_zero(&w.program, r.from) { var } else { w.sub(var, r.from) });
            }
        }
        Indices::new(&index)
    }

    /// Reads what an iteration kept.
    pub(super) fn hand_on(
        &self,
        w: &mut Writer,
        copier: &mut Copier<'_>,
        way: &Way<'_>,
        handed: &BTreeSet<Handed>,
    ) {
        for h in handed {
            let Some(array) = self.holders.get(h).copied() else { continue };
            let place = match h.in_iteration_of().and_then(|l| way.link(l)) {
                Some(link) => {
                    let chain = &way.chain[..=link];
                    self.places(chain).and_then(|places| {
                        self.place_of_iteration(w, (chain, &places), &mut |w, v| copier.again(w, v))
                    })
                }
                None => self.own_index(w, |v| copier.known(v)),
            };
            let Some(place) = place else { continue };
            match h {
                Handed::Value(v) | Handed::InIteration(v, _) => copier.hand(w, *v, array, place),
                Handed::Local(local, _)
                | Handed::LocalInIteration(local, ..)
                | Handed::LocalInArm(local, ..) => copier.hand_local(w, *local, array, place),
            }
        }
    }
}

/// The inner iteration of the source's loop that an inner iteration of a loop takes back: the last one first.
fn iteration(w: &mut Writer, l: &Loop, known: &mut dyn FnMut(&mut Writer, ValueId) -> ValueId) -> ValueId {
    let LoopKind::For { var, from, to } = l.kind else { return w.index(0) };
    let [var, from, to] = [var, from, to].map(|v| known(w, v));
    let (ends, one) = (w.add(from, to), w.index(1));
    let last = w.sub(ends, one);
    w.sub(last, var)
}
