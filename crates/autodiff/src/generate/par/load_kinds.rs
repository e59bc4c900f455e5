//! Which loads of a parallel loop are of an iteration's own elements, and which of elements that iterations share.

use std::collections::{BTreeMap, BTreeSet};

use ebbtide_ir::{ArrayId, Indices, Par, Stmt, ValueId, apart as apart_in, loads_own, walk};

use super::{ParAdjoint, Site};
use crate::analysis::index_inverse::varying;

impl ParAdjoint<'_> {
    /// The arrays of which iterations load several elements and share none, as the gates of a layer in one array. An iteration
    /// adds to the shadows of its own: turned round, each load would run the body once more. What inner loops load is left to
    /// sums in locals.
    pub(super) fn own_loads(
        &self,
        par: &Par,
        all: &[Site],
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

    /// Loads of arrays that the loop writes, at elements that it never writes and that several iterations read: those depend
    /// on some of its variables alone. It is the program that tells, not its adjoint, of which there may be two.
    pub(super) fn shared_loads(&self, par: &Par, all: &[Site]) -> BTreeSet<ValueId> {
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
}
