//! Loops over the elements of several shadows at once.
//!
//! In `for i in par(..) { for j in .. { let f = ..; d_x[[j, 0]] += a * f; d_x[[j, 1]] += b * f; d_m[j] += c * f; } }` all sums
//! are over `i`, and what they add is made of the same values. The two loops are interchanged: each `j` adds up all its sums
//! side by side and adds them to the shadows in the end.

use std::collections::{BTreeMap, BTreeSet};

use ebbtide_ir::{ArrayId, Binary, Block, Branch, LocalId, Loop, LoopKind, Op, Par, Range, Stmt, ValueId};

use super::copy::Copier;
use super::handed::{Outermost, Stores, Way};
use super::nest::{Group, variable};
use super::{Reads, Split, Splitter};
use crate::analysis::index_preimage::{Part, Step, Variable};
use crate::plan::scratch_arrays::ScratchArrays;
use crate::writer::prune::prune;
use crate::writer::{Writer, both, within};

/// A loop that adds to elements of these shadows.
pub(crate) struct Interchanged {
    pub shadows: BTreeSet<ArrayId>,
    pub par: Par,
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
        let way = self.way(w, &group.wanted(body), &vars, Outermost::Always)?;
        if group.plain && !way.is_by_iterations() {
            return None;
        }
        if !way.read.is_disjoint(&self.tapes.passing) {
            return None;
        }
        let tapes: BTreeSet<ArrayId> = way.read.intersection(&self.tapes.lasting).copied().collect();
        let reads_written = !way.read.is_disjoint(&self.written);
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
                w.sum(zero)
            })
            .collect();
        let mut copier = Copier::new(&self.inside, sums.clone());
        let mut told: BTreeSet<ValueId> = BTreeSet::new();
        for (l, range) in followed.iter().zip(&ranges) {
            let Some(var) = variable(l) else { continue };
            told.insert(var);
            match self.taken_backwards(w, l) {
                // The elements ascend, not the inner iterations.
                Some(iteration) => {
                    let (ends, one) = (w.add(range.from, range.to), w.index(1));
                    let last = w.sub(ends, one);
                    let back = w.sub(last, range.var);
                    copier.give(var, back);
                    copier.give(iteration, range.var);
                }
                None => copier.give(var, range.var),
            }
        }
        let each = |variable: &Variable| Step::Each { variable: *variable, within: None, part: Part::All };
        let steps: Vec<Step> = variables.iter().filter(|v| !told.contains(&v.var)).map(each).collect();
        copier.each(w, &steps, &[], &|copier, w| {
            for copied in &way.copied {
                self.hand_on(w, copier, way, &copied.handed);
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

    /// The value `from + to - 1 - variable` of a loop that takes the inner iterations of another one backwards.
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
