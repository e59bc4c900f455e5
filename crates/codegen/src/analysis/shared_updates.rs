//! Which updates of a parallel loop are made at elements that iterations share. Input: the loop; output: the tables in which their
//! terms can be noted, one for each array and way of combining.

use std::collections::BTreeMap;

use ebbtide_ir::{ArrayId, Combine, Indices, Par, ParFacts, Sharing, Stmt, walk};

/// Tables of terms.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tables {
    /// The arrays, and how terms are combined with their elements.
    pub tables: Vec<(ArrayId, Combine)>,
    /// The table of each update.
    pub updates: BTreeMap<(ArrayId, Indices), usize>,
}

impl Tables {
    /// How many tables an array has.
    pub fn of(&self, array: ArrayId) -> usize {
        self.tables.iter().filter(|(a, _)| *a == array).count()
    }

    /// Has each array one table? Terms of two could not be combined in the order of iterations.
    pub fn are_apart(&self) -> bool {
        self.tables.iter().all(|(array, _)| self.of(*array) == 1)
    }
}

/// The tables of the updates at shared elements, in source order.
pub(crate) fn tables(sharing: &ParFacts, par: &Par) -> Tables {
    let Tables { mut tables, mut updates } = Tables::default();
    walk(&par.body, &mut |stmt| {
        if let Stmt::Update(how, s) = stmt
            && sharing.of(s) == Sharing::Scatter
        {
            let table = (s.array, *how);
            let known = tables.iter().position(|t| *t == table);
            updates.insert((s.array, s.index), known.unwrap_or(tables.len()));
            tables.extend(known.is_none().then_some(table));
        }
    });
    Tables { tables, updates }
}
