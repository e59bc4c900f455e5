//! Updates that one loop over elements can take together: in one nest of loops, at elements that tell the same variables
//! of the nest apart.

use std::collections::{BTreeMap, BTreeSet};

use ebbtide_ir::{Affine, ArrayId, Block, Indices, Loop, LoopId, Stmt, Store, ValueId};

use super::Splitter;
use super::lanes::wants_lanes;
use super::slice::{Wanted, only, updates};
use crate::analysis::index_preimage::{Variable, preimage};
use crate::writer::Writer;
use crate::writer::prune::prune;

/// An update and where it stands.
#[derive(Clone)]
pub(super) struct Nested<'b> {
    /// Which of all updates of the body it is.
    pub number: usize,
    /// The statement of the body that holds it.
    pub at: usize,
    pub store: &'b Store,
    /// The loops around it, the outermost first.
    pub loops: Vec<&'b Loop>,
}

/// Updates that are taken together.
pub(crate) struct Group<'b> {
    /// The statement of the body that holds them.
    pub at: usize,
    /// How many updates the body has before that statement.
    pub before: usize,
    pub members: Vec<Nested<'b>>,
    /// The loops whose variables the elements tell apart.
    pub followed: BTreeSet<LoopId>,
    /// By shadow and variable: the index that tells its values apart.
    tells: BTreeMap<(ArrayId, ValueId), Affine>,
    /// Does one loop for each shadow serve it as well?
    pub plain: bool,
}

impl Group<'_> {
    pub fn numbers(&self) -> impl Iterator<Item = usize> {
        self.members.iter().map(|m| m.number)
    }

    /// The updates, where they stand in the body.
    pub fn wanted<'b>(&self, body: &'b Block) -> Wanted<'b> {
        let numbers = self.members.iter().map(|m| m.number - self.before).collect();
        Wanted { stmt: &body[self.at], at: self.at, numbers }
    }
}

/// Finds the updates of a block. The depth of recursion is that of nesting.
fn find<'b>(block: &'b Block, at: Option<usize>, loops: &mut Vec<&'b Loop>, found: &mut Vec<Nested<'b>>) {
    for (k, stmt) in block.iter().enumerate() {
        let at = at.unwrap_or(k);
        if let Stmt::Update(_, store) = stmt {
            found.push(Nested { number: found.len(), at, store, loops: loops.clone() });
        }
        if let Stmt::Loop(l) = stmt {
            loops.push(l);
        }
        stmt.blocks().for_each(|inner| find(inner, Some(at), loops, found));
        if let Stmt::Loop(_) = stmt {
            loops.pop();
        }
    }
}

impl Splitter<'_> {
    /// The updates among these numbers, in groups.
    pub(super) fn groups<'b>(&self, w: &Writer, body: &'b Block, numbers: &[usize]) -> Vec<Group<'b>> {
        let mut all = Vec::new();
        find(body, None, &mut Vec::new(), &mut all);
        let mut groups: Vec<Group<'b>> = Vec::new();
        for nested in all.into_iter().filter(|n| numbers.contains(&n.number)) {
            let Some(tells) = self.tells(w, &nested) else { continue };
            let followed: BTreeSet<LoopId> = nested
                .loops
                .iter()
                .filter(|l| variable(l).is_some_and(|v| tells.contains_key(&v)))
                .map(|l| l.id)
                .collect();
            let ids = |nested: &Nested<'_>| nested.loops.iter().map(|l| l.id).collect::<Vec<_>>();
            let array = nested.store.array;
            let joins = |group: &&mut Group<'b>| {
                group.at == nested.at
                    && group.followed == followed
                    && ids(&group.members[0]) == ids(&nested)
                    && tells.iter().all(|(v, form)| group.tells.get(&(array, *v)).is_none_or(|f| f == form))
            };
            // An index that does not change leaves most elements of a shadow without a sum.
            let fixed = |v: &ValueId| {
                let form = self.affines.form(*v);
                nested.loops.iter().filter_map(|l| variable(l)).all(|var| form.coefficient(var) == 0)
            };
            let plain = !nested.store.index.as_slice().iter().any(fixed);
            let own: Vec<_> = tells.iter().map(|(v, form)| ((array, *v), form.clone())).collect();
            match groups.iter_mut().find(joins) {
                Some(group) => {
                    group.members.push(nested);
                    group.tells.extend(own);
                    group.plain = false;
                }
                None => {
                    let before = body[..nested.at].iter().map(updates).sum();
                    let (at, tells) = (nested.at, own.into_iter().collect());
                    groups.push(Group { at, before, members: vec![nested], followed, tells, plain });
                }
            }
        }
        groups.retain(|group| !group.members.iter().any(|m| self.goes_in_lanes(w, body, group, m)));
        groups
    }

    /// Is the sum at this update taken in lanes?
    fn goes_in_lanes(&self, w: &Writer, body: &Block, group: &Group<'_>, member: &Nested<'_>) -> bool {
        let Some(variables) = self.variables(&member.loops) else { return false };
        let vars: BTreeSet<ValueId> = variables.iter().map(|v| v.var).collect();
        let depends = |v: ValueId| self.depends(w, v, &vars);
        let steps = preimage(&w.program, self.affines, &variables, member.store.index, &depends);
        let slice = prune(&w.program, vec![only(&body[member.at], &[member.number - group.before].into())]);
        // Where inner iterations hand on what loops beside the update computed, nothing far apart is read.
        let by_iterations = self.hands_on_sums(w, &group.wanted(body), &slice);
        !by_iterations && steps.is_some_and(|steps| wants_lanes(&w.program, self.affines, &steps, &slice))
    }

    /// The variables of the parallel loop and of these loops inside it, where their inner iterations are counted.
    pub(super) fn variables(&self, loops: &[&Loop]) -> Option<Vec<Variable>> {
        let mut variables: Vec<Variable> = self.ranges.iter().map(Variable::parallel).collect();
        for l in loops {
            variables.push(Variable::sequential(l)?);
        }
        Some(variables)
    }

    /// For each variable of inner loops that the element tells apart the index that does; `None` where the element depends
    /// on anything else that differs between iterations.
    fn tells(&self, w: &Writer, nested: &Nested<'_>) -> Option<BTreeMap<ValueId, Affine>> {
        let variables = self.variables(&nested.loops)?;
        let vars: BTreeSet<ValueId> = variables.iter().map(|v| v.var).collect();
        let depends = |v: ValueId| self.depends(w, v, &vars);
        let invariant = |v: ValueId| depends(v).is_some_and(|on| on.is_empty());
        let index: Indices = nested.store.index;
        if index.as_slice().iter().any(|v| self.may_fault(&w.program, *v, &invariant)) {
            return None;
        }
        let mut tells = BTreeMap::new();
        let mut occurring = BTreeSet::new();
        for v in index.as_slice() {
            depends(*v)?;
            let form = self.affines.form(*v);
            let inner: Vec<&(ValueId, i64)> = form.terms.iter().filter(|t| vars.contains(&t.0)).collect();
            let known = form.terms.iter().all(|t| vars.contains(&t.0) || invariant(t.0));
            if !known || inner.iter().any(|t| self.ranges.iter().any(|r| r.var == t.0)) {
                return None;
            }
            occurring.extend(inner.iter().map(|t| t.0));
            if let [(var, 1 | -1)] = inner.as_slice() {
                tells.entry(*var).or_insert_with(|| form.clone());
            }
        }
        // The range of a variable that is told apart is the same in all iterations.
        let fixed = |l: &&&Loop| {
            let bounds = Variable::sequential(l);
            bounds.is_some_and(|v| invariant(v.from) && invariant(v.to))
        };
        let followed = nested.loops.iter().filter(|l| variable(l).is_some_and(|v| occurring.contains(&v)));
        let all = occurring.iter().all(|v| tells.contains_key(v))
            && followed.clone().count() == followed.filter(fixed).count();
        (all && !tells.is_empty()).then_some(tells)
    }
}

/// The variable of a loop whose inner iterations are counted.
pub(super) fn variable(l: &Loop) -> Option<ValueId> {
    Variable::sequential(l).map(|v| v.var)
}
