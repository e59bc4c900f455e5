//! How large the loops of a segment are.

use ebbtide_ir::{ArrayId, Block, Program, Stmt, ValueId, walk_program_level};
use ebbtide_runtime::{Frame, from_arguments};

/// What decides how many threads a segment is worth.
pub(super) struct Domains {
    /// The ranges of its parallel loops.
    pars: Vec<Vec<(ValueId, ValueId)>>,
    /// The arrays that are filled or copied whole.
    arrays: Vec<ArrayId>,
    /// Are there operations that count on blocks of full size?
    pub whole_blocks: bool,
}

impl Domains {
    pub fn of(segment: &Block) -> Domains {
        let mut domains = Domains { pars: Vec::new(), arrays: Vec::new(), whole_blocks: false };
        walk_program_level(segment, &mut |stmt| match stmt {
            Stmt::Par(par) => domains.pars.push(par.ranges.iter().map(|r| (r.from, r.to)).collect()),
            Stmt::Fill(array, _) | Stmt::Temp(array) | Stmt::Copy { to: array, .. } => {
                domains.arrays.push(*array)
            }
            Stmt::Push(push) => domains.arrays.push(push.array),
            Stmt::Library(call) => {
                domains.arrays.extend(call.arrays());
                domains.whole_blocks = true;
            }
            _ => {}
        });
        domains
    }

    /// The iterations of the largest loop; where a bound is data, as many as the largest array has elements.
    pub fn largest(&self, program: &Program, frame: &Frame) -> u64 {
        let elements = |array: &ArrayId| {
            let view = &frame.arrays[array.index()];
            view.bytes as u64 / program.array(*array).ty.size() as u64
        };
        let value =
            |v: ValueId| from_arguments(program, v, &frame.arrays, &frame.arguments).map(|v| v as i64);
        let extent =
            |(from, to): &(ValueId, ValueId)| Some(value(*to)?.saturating_sub(value(*from)?).max(0) as u64);
        let iterations = |ranges: &Vec<(ValueId, ValueId)>| {
            ranges.iter().map(extent).try_fold(1u64, |n, extent| Some(n.saturating_mul(extent?)))
        };
        let largest_array = || program.array_ids().map(|array| elements(&array)).max().unwrap_or(0);
        let loops = self.pars.iter().map(|ranges| iterations(ranges).unwrap_or_else(largest_array)).max();
        loops.max(self.arrays.iter().map(elements).max()).unwrap_or(0)
    }
}
