//! How large the loops of a segment are.

use std::collections::BTreeMap;

use ebbtide_ir::leaf::LANES;
use ebbtide_ir::{ArrayId, Block, LoopKind, Par, ParId, Program, Stmt, ValueId, walk, walk_program_level};
use ebbtide_runtime::{Frame, from_arguments};

/// What decides how many threads a segment is worth.
pub(super) struct Domains {
    pars: Vec<Domain>,
    /// The arrays that are filled or copied whole.
    arrays: Vec<ArrayId>,
    /// Are there operations that count on blocks of full size?
    pub whole_blocks: bool,
}

/// A parallel loop.
struct Domain {
    ranges: Vec<Bounds>,
    /// How many threads can share an iteration: the lanes of its sums, or the terms that it notes for ordered sums.
    lanes: u64,
    /// The loops in its body.
    inside: Vec<Inside>,
}

type Bounds = (ValueId, ValueId);

/// A loop inside an iteration, and the loops in it.
struct Inside {
    /// `None` where data decides when it ends.
    bounds: Option<Bounds>,
    inside: Vec<Inside>,
}

impl Inside {
    /// The loops of a block. The depth of recursion is that of nesting in the source.
    fn of(block: &Block) -> Vec<Inside> {
        let mut loops = Vec::new();
        for stmt in block {
            let inside = stmt.blocks().flat_map(Inside::of);
            match stmt {
                Stmt::Loop(l) => {
                    let bounds = match l.kind {
                        LoopKind::For { from, to, .. } => Some((from, to)),
                        _ => None,
                    };
                    loops.push(Inside { bounds, inside: inside.collect() });
                }
                _ => loops.extend(inside),
            }
        }
        loops
    }
}

impl Domain {
    fn of(par: &Par, noted: &BTreeMap<ParId, usize>) -> Domain {
        // Terms that are noted are sorted by all threads.
        let mut lanes = noted.get(&par.id).map_or(1, |terms| *terms as u64).max(1);
        walk(&par.body, &mut |stmt| {
            if let Stmt::Loop(l) = stmt
                && !l.sums.is_empty()
            {
                lanes = lanes.max(LANES as u64);
            }
        });
        let ranges = par.ranges.iter().map(|r| (r.from, r.to)).collect();
        Domain { ranges, lanes, inside: Inside::of(&par.body) }
    }
}

/// How often the innermost loops of a body run; where data decides, a guess.
fn passes(loops: &[Inside], extent: &dyn Fn(&Bounds) -> Option<u64>) -> u64 {
    const GUESS: u64 = 32;
    let of = |l: &Inside| {
        let own = l.bounds.as_ref().and_then(extent).unwrap_or(GUESS);
        own.saturating_mul(passes(&l.inside, extent).max(1))
    };
    loops.iter().map(of).fold(0, u64::saturating_add)
}

/// What a segment comes to in one launch.
pub(super) struct Size {
    /// The most threads that a loop can use; where a bound is data, as many as the largest array has elements.
    pub threads: u64,
    /// The most often that loops inside an iteration run.
    pub passes: u64,
}

impl Domains {
    pub fn of(segment: &Block, noted: &BTreeMap<ParId, usize>) -> Domains {
        let mut domains = Domains { pars: Vec::new(), arrays: Vec::new(), whole_blocks: false };
        walk_program_level(segment, &mut |stmt| match stmt {
            Stmt::Par(par) => domains.pars.push(Domain::of(par, noted)),
            Stmt::Fill(array, ..) | Stmt::Temp(array) | Stmt::Copy { to: array, .. } => {
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

    /// How large the loops are with these arguments.
    pub fn size(&self, program: &Program, frame: &Frame) -> Size {
        let elements = |array: &ArrayId| {
            let view = &frame.arrays[array.index()];
            view.bytes as u64 / program.array(*array).ty.size() as u64
        };
        let value =
            |v: ValueId| from_arguments(program, v, &frame.arrays, &frame.arguments).map(|v| v as i64);
        let extent = |(from, to): &Bounds| Some(value(*to)?.saturating_sub(value(*from)?).max(0) as u64);
        let largest_array = || program.array_ids().map(|array| elements(&array)).max().unwrap_or(0);
        let threads = |domain: &Domain| {
            let times = |n: u64, range| Some(n.saturating_mul(extent(range)?));
            let iterations = domain.ranges.iter().try_fold(1, times);
            iterations.unwrap_or_else(largest_array).saturating_mul(domain.lanes)
        };
        let loops = self.pars.iter().map(threads).max();
        Size {
            threads: loops.max(self.arrays.iter().map(elements).max()).unwrap_or(0),
            passes: self.pars.iter().map(|domain| passes(&domain.inside, &extent)).max().unwrap_or(0),
        }
    }
}
