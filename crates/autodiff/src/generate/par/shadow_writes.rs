//! What becomes of the shadows of what a parallel loop overwrites.

use std::collections::{BTreeMap, BTreeSet};

use ebbtide_ir::{Affines, ArrayId, Indices, Par, Stmt, ValueId, apart as apart_in, walk};

use super::{ParAdjoint, Site};
use crate::analysis::effects::only_store;
use crate::analysis::index_inverse::is_replaced;
use crate::generate::task::ShadowWrite;

impl ParAdjoint<'_> {
    /// What happens to the shadows of what the loop overwrites.
    pub(super) fn shadow_writes(
        &self,
        par: &Par,
        all: &[Site],
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
                (Some(_), []) if self.boxes.killed_by(par.id, *array).is_some() => ShadowWrite::Forget,
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
pub(super) fn overwrites_itself(par: &Par, array: ArrayId) -> bool {
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
