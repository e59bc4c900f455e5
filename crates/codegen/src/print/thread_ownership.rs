//! Which thread owns an element (see [`crate::analysis::thread_ownership`]), as text.

use std::collections::BTreeSet;

use ebbtide_ir::{Indices, Par, Stmt, ValueId, walk};

use crate::analysis::grid_form::{GridForm, grid_form, grid_manner};
use crate::analysis::thread_ownership::{Mapping, has_owners};
use crate::analysis::work::work_on_entry;
use crate::kernel::bounds_test::Test;
use crate::kernel::index_expr::IndexExpr;
use crate::kernel::machine::Family;
use crate::kernel::segment::{Manner, MappingId};
use crate::print::emitter::{Emitter, line};
use crate::print::entry::Known;

/// The extent along a dimension.
fn extent(mapping: &Mapping, d: usize) -> String {
    let (from, to) = &mapping.ranges[d];
    format!("eb_extent({from}, {to})")
}

/// The number of rows, and the length of one.
fn shape(mapping: &Mapping) -> (String, String) {
    let last = mapping.ranges.len() - 1;
    let rows = (0..last).map(|d| extent(mapping, d)).reduce(|rows, e| format!("eb_times({rows}, {e})"));
    (rows.unwrap_or_else(|| "1".to_string()), extent(mapping, last))
}

impl Emitter<'_> {
    /// How a loop is dealt out, if that is known on entry to the segment.
    pub fn mapping(&self, par: &Par) -> Option<MappingId> {
        let mapping = self.dealing(par)?;
        self.mappings.iter().position(|known| *known == mapping).map(MappingId)
    }

    /// Finds the ways in which the loops of a segment are dealt out.
    pub fn find_mappings(&mut self, block: &[Stmt]) {
        self.mappings.clear();
        self.beside_sums.clear();
        walk(block, &mut |stmt| {
            if let Stmt::Par(par) = stmt
                && let Some(mapping) = self.dealing(par)
                && !self.mappings.contains(&mapping)
            {
                self.mappings.push(mapping);
            }
        });
        walk(block, &mut |stmt| {
            if let Stmt::Loop(l) = stmt {
                walk(&l.body, &mut |stmt| {
                    if let Stmt::Par(par) = stmt
                        && let Some(domain) = self.domain_of_leaves(par)
                    {
                        self.beside_sums.insert(domain);
                    }
                });
            }
        });
    }

    /// The first mapping with the domain of a loop whose leaves blocks take.
    fn domain_of_leaves(&self, par: &Par) -> Option<MappingId> {
        let (program, facts) = (self.program, self.facts);
        if self.family == Family::C || grid_manner(program, facts, par) != Manner::Leaves {
            return None;
        }
        match grid_form((program, facts), par, Manner::Leaves, self.forms.terms()) {
            GridForm::LeafByBlock { .. } => {
                let ranges = self.known_on_entry.ranges(program, facts, par)?;
                self.mappings.iter().position(|known| known.ranges == ranges).map(MappingId)
            }
            _ => None,
        }
    }

    /// The first mapping with the same domain, where some sum of a time loop has this domain too: if its leaves are few, each block
    /// takes the iterations of its leaf.
    pub fn beside_sums(&self, mapping: MappingId) -> Option<MappingId> {
        let ranges = &self.mappings[mapping.0].ranges;
        let first = self.mappings.iter().position(|known| known.ranges == *ranges).map(MappingId);
        first.filter(|domain| self.beside_sums.contains(domain))
    }

    /// The same for a loop over leaves.
    pub fn leaves_beside(&self, par: &Par) -> Option<MappingId> {
        self.domain_of_leaves(par).filter(|domain| self.beside_sums.contains(domain))
    }

    /// The name of a condition: do blocks keep to their leaves in loops over the domain of this mapping?
    pub fn is_by_leaves(&mut self, domain: MappingId) -> String {
        let (rows, row) = shape(&self.mappings[domain.0]);
        let name = format!("by_leaves{}", domain.0);
        let text =
            format!("__shared__ b8 {name}; if (threadIdx.x == 0) {name} = eb_is_by_leaves({rows}, {row});\n");
        self.entry.add(Known::ByLeaves(domain), text);
        name
    }

    /// What a thread of a grid takes of a domain, computed now.
    pub fn share(&self, mapping: Option<MappingId>, [rows, row, from]: [&str; 3], together: usize) -> String {
        let name = match mapping.and_then(|mapping| self.beside_sums(mapping)) {
            Some(_) => "eb_share_beside_sums",
            None => "eb_share",
        };
        format!("{name}({rows}, {row}, {from}, {together})")
    }

    fn dealing(&self, par: &Par) -> Option<Mapping> {
        if !has_owners(self.facts, par) {
            return None;
        }
        let ranges = self.known_on_entry.ranges(self.program, self.facts, par)?;
        let (work, together) = match self.family {
            Family::C => (Some(work_on_entry(self.program, par)?), 1),
            Family::Cuda => (None, self.rows_together(par)),
        };
        Some(Mapping { ranges, work, together })
    }

    /// A program-level index value as an expression that is right on entry to the segment, if it never changes.
    pub fn on_entry(&self, v: ValueId) -> Option<IndexExpr> {
        self.known_on_entry.value(self.program, self.facts, v)
    }

    /// Do tests speak of nothing but values that are known on entry to the segment?
    pub fn is_known_on_entry(&self, tests: &BTreeSet<Test>) -> bool {
        tests.iter().all(|test| test.is_about(&|v| self.on_entry(v).is_some()))
    }

    /// Prints the name of a condition: is this thread the owner of an element?
    pub fn owns(&mut self, mapping: MappingId, index: Indices) -> String {
        let n = self.fresh();
        let known: Option<Vec<String>> =
            index.as_slice().iter().map(|v| Some(self.on_entry(*v)?.to_string())).collect();
        let on_entry = known.is_some();
        let index = known.unwrap_or_else(|| index.as_slice().iter().map(|v| self.value(*v)).collect());
        let (id, mapping) = (mapping, &self.mappings[mapping.0]);
        let last = index.len() - 1;
        // Elements outside the domain are given to the owner of the nearest one inside.
        let nearest =
            |d: usize| format!("eb_nearest({}, {}, {})", index[d], mapping.ranges[d].0, extent(mapping, d));
        let row = (0..last).map(|d| (d, nearest(d))).fold("0".to_string(), |row, (d, at)| match d {
            0 => at,
            _ => format!("({row} * {} + {at})", extent(mapping, d)),
        });
        let (rows, columns) = shape(mapping);
        let column = nearest(last);
        let owns = match self.family {
            Family::Cuda => {
                let (from, together) = (&mapping.ranges[last].0, mapping.together);
                let share = self.share(Some(id), [&rows, &columns, &from.to_string()], together);
                format!("eb_owns(f, {share}, {rows}, {columns}, {row}, {column})")
            }
            Family::C => {
                let of = if last == 0 { "columns" } else { "rows" };
                format!(
                    "eb_owns_{of}(f, {rows}, {columns}, {}, {})",
                    mapping.work.as_ref().map_or(String::new(), |work| self.work_text(work)),
                    if last == 0 { column } else { row }
                )
            }
        };
        if on_entry && self.family == Family::Cuda {
            self.entry.add(Known::Owner(n), format!("const b8 owns{n} = {owns};\n"));
        } else {
            line!(self, "const b8 owns{n} = {owns};");
        }
        format!("owns{n}")
    }
}
