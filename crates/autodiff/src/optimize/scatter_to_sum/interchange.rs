//! Loops over the elements of several shadows at once.
//!
//! In `for i in par(..) { for j in .. { let f = ..; d_x[[j, 0]] += a * f; d_x[[j, 1]] += b * f; d_m[j] += c * f; } }` all sums
//! are over `i`, and what they add is made of the same values. The two loops are interchanged: each `j` adds up all its sums
//! side by side and adds them to the shadows in the end.
//!
//! Where the elements are reached through several loops, what an iteration computed in each pass of the outermost of them is
//! kept rather than computed again for each pass of the inner ones.

use std::collections::{BTreeMap, BTreeSet};

use ebbtide_ir::{
    ArrayId, Binary, Block, Branch, Indices, LocalId, Loop, LoopId, LoopKind, Op, Par, Range, Stmt, Type,
    ValueId, depends_on_arguments_alone, is_zero, walk,
};

use super::copy::Copier;
use super::nest::{Group, variable};
use super::slice::{defined, needs, only, read_by, updates};
use super::{Handed, Reads, Split, Splitter};
use crate::analysis::index_preimage::{Part, Step, Variable};
use crate::analysis::iteration_number::{self, Level, Ranges};
use crate::plan::scratch_arrays::{Places, ScratchArrays};
use crate::writer::prune::prune;
use crate::writer::{Writer, both, within};

/// A loop that adds to elements of these shadows.
pub(crate) struct Interchanged {
    pub shadows: BTreeSet<ArrayId>,
    pub par: Par,
}

/// What iterations do so that the sums find what they need.
#[derive(Default)]
pub(super) struct Stores {
    /// Before the statement that holds the updates.
    pub before: Block,
    /// Before statements of the outermost loop around them.
    pub in_loop: BTreeMap<(LoopId, usize), Block>,
}

/// A statement to be copied.
struct Copied {
    block: Block,
    /// What its iteration hands on to it.
    handed: BTreeSet<Handed>,
    /// Which statement of the outermost loop it is.
    place: usize,
}

/// How the sums of a group come to what they need.
struct Way<'b> {
    copied: Vec<Copied>,
    /// The loop whose passes hand something on, and that loop in the source.
    outer: Option<(&'b Loop, Level)>,
}

impl Splitter<'_> {
    /// Writes the loop over the elements of a group; gives what iterations must keep for it.
    pub(super) fn interchange(
        &mut self,
        w: &mut Writer,
        kept: &mut ScratchArrays,
        (body, group): (&Block, &Group<'_>),
        out: &mut Split,
    ) -> Option<Stores> {
        let variables = self.variables(&group.members[0].loops)?;
        let vars: BTreeSet<ValueId> = variables.iter().map(|v| v.var).collect();
        let way = self.way(w, (body, group), &vars)?;
        if group.plain && way.outer.is_none() {
            return None;
        }
        let read: BTreeSet<ArrayId> =
            way.copied.iter().flat_map(|copied| read_by(&w.program, &copied.block)).collect();
        if !read.is_disjoint(&self.tapes.passing) {
            return None;
        }
        let tapes: BTreeSet<ArrayId> = read.intersection(&self.tapes.lasting).copied().collect();
        let reads_written = !read.is_disjoint(&self.written);
        let nothing = way.copied.iter().all(|copied| copied.handed.is_empty());
        if reads_written && !(nothing && tapes.is_empty() && self.reads == Reads::First) {
            return None;
        }
        let stores = self.keep_for(w, kept, &way)?;
        let par = self.over_elements(w, group, &variables, &way)?;
        let shadows = group.members.iter().map(|m| m.store.array).collect();
        out.interchanged[usize::from(!reads_written)].push(Interchanged { shadows, par });
        out.read.extend(tapes);
        Some(stores)
    }

    /// What is copied, and what iterations hand on to it.
    fn way<'b>(
        &self,
        w: &Writer,
        (body, group): (&'b Block, &Group<'_>),
        vars: &BTreeSet<ValueId>,
    ) -> Option<Way<'b>> {
        let stmt = &body[group.at];
        let slice = prune(&w.program, vec![only(stmt, &group.in_statement())]);
        let whole = self.handed(w, &slice, vars, group.at);
        let deep = group.members[0].loops.len() > 1;
        if (deep || whole.is_none())
            && let Some(way) = self.way_by_passes(w, stmt, group, vars)
        {
            return Some(way);
        }
        Some(Way { copied: vec![Copied { block: slice, handed: whole?, place: 0 }], outer: None })
    }

    /// Lets the passes of the outermost loop hand on what they computed, where there is something.
    fn way_by_passes<'b>(
        &self,
        w: &Writer,
        stmt: &'b Stmt,
        group: &Group<'_>,
        vars: &BTreeSet<ValueId>,
    ) -> Option<Way<'b>> {
        let Stmt::Loop(outer) = stmt else { return None };
        let source = self.domain.as_ref()?.source;
        let level = *self.tapes.loops.get(&outer.id)?;
        let known = [level.from, level.to].iter().all(|v| depends_on_arguments_alone(source, *v));
        if !known || self.ranges.len() >= Indices::MAX_RANK {
            return None;
        }
        let (mut copied, mut count): (Vec<Copied>, usize) = (Vec::new(), 0);
        let wanted = group.in_statement();
        for (place, inner) in outer.body.iter().enumerate() {
            let here: BTreeSet<usize> =
                (count..count + updates(inner)).filter(|n| wanted.contains(n)).collect();
            let first = count;
            count += updates(inner);
            if here.is_empty() {
                continue;
            }
            let numbers = here.iter().map(|n| n - first).collect();
            let block = prune(&w.program, vec![only(inner, &numbers)]);
            let handed = self.handed_by_passes(w, &block, vars, (outer, group.at, place))?;
            copied.push(Copied { block, handed, place });
        }
        let any = copied.iter().any(|copied| copied.handed.iter().any(|h| h.is_in_pass()));
        any.then_some(Way { copied, outer: Some((outer, level)) })
    }

    /// What a statement of the outermost loop uses of the rest of its iteration and is not made again.
    fn handed_by_passes(
        &self,
        w: &Writer,
        slice: &Block,
        vars: &BTreeSet<ValueId>,
        (outer, at, place): (&Loop, usize, usize),
    ) -> Option<BTreeSet<Handed>> {
        let needs = needs(&w.program, slice)?;
        let in_pass = defined(&[], &outer.body);
        let (mut changed, mut handed) = (BTreeSet::new(), BTreeSet::new());
        walk(&outer.body, &mut |stmt| {
            if let Stmt::Declare(local, _) | Stmt::Set(local, _) = stmt {
                changed.insert(*local);
            }
        });
        for v in needs.values.into_iter().filter(|v| self.inside.contains(v) && !vars.contains(v)) {
            let again = self.depends(w, v, vars).is_some();
            match w.ty(v) {
                Type::Index if !again => return None,
                Type::Index => {}
                _ if again && self.is_cheap(w, v) => {}
                _ if in_pass.contains(&v) => drop(handed.insert(Handed::InPass(v))),
                _ => drop(handed.insert(Handed::Value(v))),
            }
        }
        for local in needs.locals {
            if w.program.locals[local.index()].ty == Type::Index {
                return None;
            }
            handed.insert(match changed.contains(&local) {
                true => Handed::LocalInPass(local, outer.id, place),
                false => Handed::Local(local, at),
            });
        }
        Some(handed)
    }

    /// Lets iterations, and the passes of their outermost loop, keep what is handed on.
    fn keep_for(&mut self, w: &mut Writer, kept: &mut ScratchArrays, way: &Way<'_>) -> Option<Stores> {
        let mut stores = Stores::default();
        for copied in &way.copied {
            let (in_pass, before): (BTreeSet<Handed>, BTreeSet<Handed>) =
                copied.handed.iter().copied().partition(|h| h.is_in_pass());
            stores.before.extend(self.keep(w, kept, &before)?);
            let Some((outer, level)) = way.outer else { continue };
            for h in in_pass.into_iter().filter(|h| !self.holders.contains_key(h)).collect::<Vec<_>>() {
                let array = self.array_of_passes(w, kept, h.ty(w), level)?;
                w.begin();
                let at = self.place_in_passes(w, outer, |_, v| v)?;
                let value = h.value(w);
                w.store(array, at, value, None);
                stores.in_loop.entry((outer.id, copied.place)).or_default().extend(w.end());
                self.holders.insert(h, array);
            }
        }
        Some(stores)
    }

    /// An array with a place for each pass of a loop in each iteration that holds nothing else.
    fn array_of_passes(
        &self,
        w: &mut Writer,
        kept: &mut ScratchArrays,
        ty: Type,
        level: Level,
    ) -> Option<ArrayId> {
        let domain = self.domain.as_ref()?;
        let ranges = Ranges::new(domain.source, domain.affines);
        let places = Places::Each(ranges.number(&[iteration_number::Step::Numbered(level)])?);
        let mut number = 0;
        loop {
            let array = kept.array(w, ty, domain, &places, number);
            let used = self.tapes.lasting.contains(&array)
                || self.tapes.passing.contains(&array)
                || self.holders.values().any(|a| *a == array);
            if !used {
                return Some(array);
            }
            number += 1;
        }
    }

    /// The place of a pass in the arrays of its iterations.
    fn place_in_passes(
        &self,
        w: &mut Writer,
        outer: &Loop,
        mut known: impl FnMut(&mut Writer, ValueId) -> ValueId,
    ) -> Option<Indices> {
        let LoopKind::For { var, from, .. } = outer.kind else { return None };
        let mut places = Vec::new();
        for (var, from) in [(var, from)].into_iter().chain(self.ranges.iter().map(|r| (r.var, r.from))) {
            let (zero, var) = (is_zero(&w.program, from), known(w, var));
            let from = if zero { from } else { known(w, from) };
            places.push(if zero { var } else { w.sub(var, from) });
        }
        Indices::new(&places)
    }

    /// The loop over the values of the variables that elements tell apart.
    fn over_elements(
        &mut self,
        w: &mut Writer,
        group: &Group<'_>,
        variables: &[Variable],
        way: &Way<'_>,
    ) -> Option<Par> {
        let loops = &group.members[0].loops;
        let followed: Vec<&&Loop> = loops.iter().filter(|l| group.followed.contains(&l.id)).collect();
        let mut bounds = Copier::new(&self.inside, Vec::new());
        let mut ranges = Vec::new();
        for l in &followed {
            let LoopKind::For { var, from, to } = l.kind else { return None };
            let (from, to) = (bounds.again(w, from), bounds.again(w, to));
            let name = w.program.value(var).name.clone().unwrap_or_else(|| "k".to_string());
            ranges.push(Range { var: w.loop_var(&name), from, to });
        }
        w.begin();
        let sums: Vec<LocalId> = (group.members.iter())
            .map(|member| {
                let zero = w.real(w.program.array(member.store.array).ty, 0.0);
                w.local("sum", zero)
            })
            .collect();
        let mut copier = Copier::new(&self.inside, sums.clone());
        let mut told: BTreeSet<ValueId> = BTreeSet::new();
        for (l, range) in followed.iter().zip(&ranges) {
            let Some(var) = variable(l) else { continue };
            told.insert(var);
            match self.taken_backwards(w, l) {
                // The elements ascend, not the passes.
                Some(pass) => {
                    let (ends, one) = (w.add(range.from, range.to), w.index(1));
                    let last = w.sub(ends, one);
                    let back = w.sub(last, range.var);
                    copier.give(var, back);
                    copier.give(pass, range.var);
                }
                None => copier.give(var, range.var),
            }
        }
        let each = |variable: &Variable| Step::Each { variable: *variable, within: None, part: Part::All };
        let steps: Vec<Step> = variables.iter().filter(|v| !told.contains(&v.var)).map(each).collect();
        copier.each(w, &steps, &[], &|copier, w| {
            for copied in &way.copied {
                self.hand_on(w, copier, &copied.handed, way.outer.map(|(outer, _)| outer));
                copier.block(w, &copied.block);
            }
        });
        for (member, sum) in group.members.iter().zip(sums) {
            let index = member.store.index.map(|v| copier.again(w, v));
            let zero = w.index(0);
            let mut there = None;
            for (d, v) in index.as_slice().iter().enumerate() {
                let extent = w.dim(member.store.array, d);
                let inside = within(w, *v, zero, extent);
                there = Some(both(w, there, inside));
            }
            w.begin();
            let total = w.get(sum);
            w.accumulate(member.store.array, index, total, member.store.site.clone());
            let then = w.end();
            match there {
                Some(condition) => w.push(Stmt::If(Branch { condition, then, otherwise: Block::new() })),
                None => then.into_iter().for_each(|stmt| w.push(stmt)),
            }
        }
        let body = w.end();
        let (id, body) = (w.new_par(), prune(&w.program, body));
        Some(Par::over(id, ranges, body))
    }

    /// Reads what an iteration kept.
    fn hand_on(
        &self,
        w: &mut Writer,
        copier: &mut Copier<'_>,
        handed: &BTreeSet<Handed>,
        outer: Option<&Loop>,
    ) {
        for h in handed {
            let Some(array) = self.holders.get(h).copied() else { continue };
            let place = match (h, outer) {
                (h, Some(outer)) if h.is_in_pass() => {
                    self.place_in_passes(w, outer, |w, v| copier.again(w, v))
                }
                _ => self.own_index(w, |v| copier.known(v)),
            };
            let Some(place) = place else { continue };
            match h {
                Handed::Value(v) | Handed::InPass(v) => copier.hand(w, *v, array, place),
                Handed::Local(local, _) | Handed::LocalInPass(local, ..) => {
                    copier.hand_local(w, *local, array, place)
                }
            }
        }
    }

    /// The value `from + to - 1 - variable` of a loop that takes the passes of another one backwards.
    fn taken_backwards(&self, w: &Writer, l: &Loop) -> Option<ValueId> {
        let LoopKind::For { var, from, to } = l.kind else { return None };
        let mut terms: BTreeMap<ValueId, i64> = BTreeMap::new();
        let (from, to) = (self.affines.form(from), self.affines.form(to));
        from.terms.iter().chain(&to.terms).for_each(|t| *terms.entry(t.0).or_default() += t.1);
        *terms.entry(var).or_default() -= 1;
        let constant = from.constant.checked_add(to.constant)?.checked_sub(1)?;
        let same = |v: ValueId| {
            let form = self.affines.form(v);
            form.constant == constant
                && form.terms.iter().copied().eq(terms.iter().map(|t| (*t.0, *t.1)).filter(|t| t.1 != 0))
        };
        l.body.iter().find_map(|stmt| match stmt {
            Stmt::Let(v)
                if matches!(w.program.op(*v), Op::Binary(Binary::Sub, _, b) if *b == var) && same(*v) =>
            {
                Some(*v)
            }
            _ => None,
        })
    }
}
