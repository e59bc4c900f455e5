//! The text of a program, and what its faults mean in the words of the program.

use std::collections::BTreeMap;

use ebbtide_ir::{ArrayId, Fault, LibraryCall, ParId, Program, Requirement, Site, ValueId};

use crate::kernel::machine::Width;
use crate::kernel::term_runs::TermRuns;

/// The text of a program and what is needed to understand its faults.
#[derive(Clone, Debug)]
pub struct Unit {
    /// The C source.
    pub source: String,
    /// What faults refer to, by number.
    pub accesses: Vec<Access>,
    /// Where the assertions stand, by number.
    pub positions: Vec<Position>,
    /// The conditions that are asked when parallel loops begin, by number, and where the loops stand in the source.
    pub requirements: Vec<(Requirement, Option<Site>)>,
    /// The most reductions that one parallel loop has.
    pub reductions: usize,
    /// By parallel loop: how many terms of ordered sums at shared elements an iteration notes, or a guess.
    pub noted: BTreeMap<ParId, usize>,
    /// By parallel loop: the bounds of the chains of additions in it, whose terms a team of threads computes; on a grid.
    pub chained: BTreeMap<ParId, Vec<(ValueId, ValueId)>>,
    /// By parallel loop: the sums at shared elements whose terms are counted (law 8).
    pub counted: BTreeMap<ParId, TermRuns>,
    /// The most reductions of one parallel loop whose terms are kept before they are added.
    pub kept_terms: usize,
    /// The library operations, by number.
    pub calls: Vec<LibraryCall>,
    /// By segment: how many threads its blocks may have, on CUDA.
    pub widths: Vec<Width>,
    /// The arrays whose tapes are packed: `f->tape` has an `eb_packed` for each, no table of addresses.
    pub packed_tapes: Vec<ArrayId>,
    /// By segment: the part of the text that it is in. Each part can be compiled by itself, with its number as `EB_PART`.
    pub parts: Vec<usize>,
    /// How many parts there are; some may have no segment.
    pub part_count: usize,
}

/// So many counters of loops come with an assertion that does not hold; `EB_COUNTERS` of the prelude.
pub const COUNTERS: usize = 8;

/// Where an assertion stands: a position in words, without its numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Position {
    /// By counter of a loop: what stands before it.
    pub before: Vec<String>,
    /// What stands behind the last one.
    pub rest: String,
}

impl Position {
    /// The position with its numbers: `simulate/for t=41/par i=3`.
    fn with(&self, counters: &[i64]) -> String {
        let counted: String =
            self.before.iter().zip(counters).map(|(text, counter)| format!("{text}{counter}")).collect();
        counted + &self.rest
    }
}

/// What a fault of compiled code refers to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Access {
    /// The array, where an element was out of bounds.
    pub array: Option<ArrayId>,
    /// Where it stands in the source.
    pub site: Option<Site>,
}

/// What compiled code says of the first fault it met.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FaultReport {
    /// Which kind: a constant `EB_…` of the prelude.
    pub kind: i32,
    /// Which access of the table, or which array.
    pub access: i32,
    /// In which dimension, or which other array.
    pub dimension: i64,
    /// The index that was out of bounds.
    pub index: i64,
    /// The bound.
    pub extent: i64,
    /// The counters of the loops around an assertion.
    pub at: [i64; COUNTERS],
}

impl Unit {
    /// A fault in words; `shape` gives the extents of an array, padded or not.
    pub fn fault<'s>(
        &self,
        program: &Program,
        report: FaultReport,
        shape: impl Fn(ArrayId) -> &'s [i64],
    ) -> Fault {
        let shape = |id: ArrayId| &shape(id)[..program.array(id).rank];
        let site = |access: Option<&Access>| access.and_then(|a| a.site.clone());
        let access = self.accesses.get(report.access as usize);
        match report.kind {
            1 => Fault::OutOfBounds {
                array: access.and_then(|a| a.array).map_or(String::new(), |a| program.array(a).name.clone()),
                dimension: report.dimension as usize,
                index: report.index,
                extent: report.extent,
                site: site(access),
            },
            2 => {
                let position = self.positions.get(report.dimension as usize);
                program.division_fault(site(access), position.map_or(String::new(), |p| p.with(&report.at)))
            }
            9 => Fault::IndexOverflow { site: site(access) },
            3 => {
                let describe = |id: i64| {
                    let id = ArrayId::from_index(id as usize);
                    format!("`{}` of shape {:?}", program.array(id).name, shape(id))
                };
                Fault::ShapesDiffer {
                    left: describe(report.access.into()),
                    right: describe(report.dimension),
                }
            }
            7 => {
                let array = access.and_then(|a| a.array);
                Fault::WrittenTwice {
                    array: array.map_or(String::new(), |a| program.array(a).name.clone()),
                    index: unflatten(report.index, array.map_or(&[][..], shape)),
                    site: site(access),
                }
            }
            10 => {
                let (requirement, site) = match self.requirements.get(report.access as usize) {
                    Some(found) => found,
                    None => return Fault::Tape,
                };
                Fault::MayMeet {
                    array: program.array(requirement.array).name.clone(),
                    accesses: Box::new(requirement.accesses.clone()),
                    site: site.clone(),
                }
            }
            6 => {
                let call = self.calls.get(report.access as usize);
                call.and_then(|call| call.misfit(program, shape)).unwrap_or(Fault::Tape)
            }
            5 => Fault::Stopped,
            _ => Fault::Tape,
        }
    }
}

/// The index of the element at this place of an array.
fn unflatten(mut at: i64, shape: &[i64]) -> Vec<i64> {
    let mut index: Vec<i64> = Vec::with_capacity(shape.len());
    for extent in shape.iter().rev() {
        index.push(at % extent);
        at /= extent;
    }
    index.reverse();
    index
}
