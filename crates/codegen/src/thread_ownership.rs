//! Which thread runs which iteration of a parallel loop, and so which thread owns an element.
//!
//! Loops over the same domain are dealt out alike. Where every iteration of a loop touches an array at the iteration's own
//! index alone, the thread that runs an iteration owns that element, until all threads meet: another loop over the same
//! domain, or a single statement that its owner runs, needs no meeting before it.
//!
//! A domain is the same where its bounds are the same sums of what does not change while the segment runs. What follows
//! from such bounds is computed once, on entry to the segment.

use ebbtide_ir::{Binary, Indices, Op, Par, Sharing, Stmt, Type, ValueId, walk};

use crate::unit::{Family, Text, line};

/// A way of dealing out iterations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct MappingId(usize);

/// The domain of a loop, as C expressions that are right on entry to the segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mapping {
    /// First value and end of each range.
    ranges: Vec<(String, String)>,
    /// How much an iteration computes: it decides whether threads of a CPU share the loop.
    work: String,
    /// How many rows a thread of a GPU takes at once.
    together: usize,
}

impl Mapping {
    /// The extent along a dimension.
    fn extent(&self, d: usize) -> String {
        let (from, to) = &self.ranges[d];
        format!("eb_extent({from}, {to})")
    }

    /// The number of rows, and the length of one.
    fn shape(&self) -> (String, String) {
        let last = self.ranges.len() - 1;
        let rows = (0..last).map(|d| self.extent(d)).reduce(|rows, e| format!("eb_times({rows}, {e})"));
        (rows.unwrap_or_else(|| "1".to_string()), self.extent(last))
    }
}

impl Text<'_> {
    /// How a loop is dealt out, if that is known on entry to the segment.
    pub fn mapping(&self, par: &Par) -> Option<MappingId> {
        let mapping = self.dealing(par)?;
        self.mappings.iter().position(|known| *known == mapping).map(MappingId)
    }

    /// Finds the ways in which the loops of a segment are dealt out.
    pub fn find_mappings(&mut self, block: &[Stmt]) {
        self.mappings.clear();
        walk(block, &mut |stmt| {
            if let Stmt::Par(par) = stmt
                && let Some(mapping) = self.dealing(par)
                && !self.mappings.contains(&mapping)
            {
                self.mappings.push(mapping);
            }
        });
    }

    fn dealing(&self, par: &Par) -> Option<Mapping> {
        // Leaves of sums and ordered updates are dealt out in other ways.
        let sharing = &self.facts.pars.get(&par.id)?.sharing;
        if sharing.values().any(|sharing| *sharing != Sharing::Own) {
            return None;
        }
        let ranges = par.ranges.iter().map(|r| Some((self.on_entry(r.from)?, self.on_entry(r.to)?)));
        let (work, together) = match self.family {
            Family::C => (self.work_on_entry(par)?, 1),
            Family::Cuda => (String::new(), self.rows_together(par)),
        };
        Some(Mapping { ranges: ranges.collect::<Option<_>>()?, work, together })
    }

    /// A program-level index value as an expression that is right on entry to the segment, if it never changes. The depth
    /// of recursion is that of the expression in the source.
    pub fn on_entry(&self, v: ValueId) -> Option<String> {
        if self.given.contains(&v) || self.program.literal(v).is_some() {
            return Some(self.value(v));
        }
        if self.program.ty(v) != Type::Index {
            return None;
        }
        match *self.program.op(v) {
            Op::Dim(array, k) if self.named.contains(&array) => Some(format!("d{}_{k}", array.index())),
            Op::Scalar(s) => Some(format!("(i64)f->scalars[{}]", s.index())),
            Op::Binary(op @ (Binary::Add | Binary::Sub | Binary::Mul), a, b) => {
                let name = match op {
                    Binary::Add => "add",
                    Binary::Sub => "sub",
                    _ => "mul",
                };
                Some(format!("eb_index_{name}({}, {})", self.on_entry(a)?, self.on_entry(b)?))
            }
            Op::Binary(Binary::Div, a, b) => {
                let divisor = self.program.literal(b).and_then(|l| l.to_i64()).filter(|l| *l > 0)?;
                Some(format!("eb_index_div({}, {divisor})", self.on_entry(a)?))
            }
            _ => None,
        }
    }

    /// Does a C expression speak of nothing but values that are known on entry to the segment?
    pub fn is_known_on_entry(&self, text: &str) -> bool {
        let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        let values = words.filter_map(|word| word.strip_prefix('v')?.parse::<usize>().ok());
        values.map(ValueId::from_index).all(|v| self.on_entry(v).is_some())
    }

    /// Prints the name of a condition: is this thread the owner of an element?
    pub fn owns(&mut self, mapping: MappingId, index: Indices) -> String {
        let n = self.fresh();
        let known: Option<Vec<String>> = index.as_slice().iter().map(|v| self.on_entry(*v)).collect();
        let on_entry = known.is_some();
        let index = known.unwrap_or_else(|| index.as_slice().iter().map(|v| self.value(*v)).collect());
        let mapping = &self.mappings[mapping.0];
        let last = index.len() - 1;
        // Elements outside the domain are given to the owner of the nearest one inside.
        let nearest =
            |d: usize| format!("eb_nearest({}, {}, {})", index[d], mapping.ranges[d].0, mapping.extent(d));
        let row = (0..last).map(|d| (d, nearest(d))).fold("0".to_string(), |row, (d, at)| match d {
            0 => at,
            _ => format!("({row} * {} + {at})", mapping.extent(d)),
        });
        let (rows, columns) = mapping.shape();
        let column = nearest(last);
        let owns = match self.family {
            Family::Cuda => {
                let (from, together) = (&mapping.ranges[last].0, mapping.together);
                format!("eb_owns(f, {rows}, {columns}, {from}, {together}, {row}, {column})")
            }
            Family::C => {
                let of = if last == 0 { "columns" } else { "rows" };
                format!(
                    "eb_owns_{of}(f, {rows}, {columns}, {}, {})",
                    mapping.work,
                    if last == 0 { column } else { row }
                )
            }
        };
        if on_entry && self.family == Family::Cuda {
            self.entry.push_str(&format!("const b8 owns{n} = {owns};\n"));
        } else {
            line!(self, "const b8 owns{n} = {owns};");
        }
        format!("owns{n}")
    }
}
