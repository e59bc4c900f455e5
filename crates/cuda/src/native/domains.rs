//! How large the loops of a segment are.

use ebbtide_codegen::{LONG_CHAIN, Unit};
use ebbtide_ir::leaf::{LANES, Leaves};
use ebbtide_ir::{ArrayId, Block, Loop, LoopKind, Par, Program, Stmt, ValueId, walk, walk_program_level};
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
    /// The terms that an iteration notes for ordered sums: as many threads can share it.
    noted: u64,
    /// The ranges of its sums; `None` where data decides.
    sums: Vec<Option<Bounds>>,
    /// The ranges of the chains whose terms a team computes.
    chains: Vec<Bounds>,
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

/// The bounds of a loop, if it has some.
fn bounds(l: &Loop) -> Option<Bounds> {
    match l.kind {
        LoopKind::For { from, to, .. } => Some((from, to)),
        _ => None,
    }
}

impl Inside {
    /// The loops of a block. The depth of recursion is that of nesting in the source.
    fn of(block: &Block) -> Vec<Inside> {
        let mut loops = Vec::new();
        for stmt in block {
            let inside = stmt.blocks().flat_map(Inside::of);
            match stmt {
                Stmt::Loop(l) => {
                    loops.push(Inside { bounds: bounds(l), inside: inside.collect() });
                }
                _ => loops.extend(inside),
            }
        }
        loops
    }
}

impl Domain {
    fn of(par: &Par, unit: &Unit) -> Domain {
        // Terms that are noted are sorted by all threads.
        let noted = unit.noted.get(&par.id).map_or(1, |terms| *terms as u64).max(1);
        let mut sums = Vec::new();
        walk(&par.body, &mut |stmt| {
            if let Stmt::Loop(l) = stmt
                && !l.sums.is_empty()
            {
                sums.push(bounds(l));
            }
        });
        let ranges = par.ranges.iter().map(|r| (r.from, r.to)).collect();
        let chains = unit.chained.get(&par.id).cloned().unwrap_or_default();
        Domain { ranges, noted, sums, chains, inside: Inside::of(&par.body) }
    }

    /// How many threads can share an iteration: those that sort its terms, the lanes of the leaves of its sums, or a warp for its chains.
    fn shared_by(&self, extent: &dyn Fn(&Bounds) -> Option<u64>) -> u64 {
        // So many leaves are worth threads of their own.
        const MOST_LEAVES: u64 = 32;
        const WARP: u64 = 32;
        let lanes = |bounds: &Option<Bounds>| {
            let length = bounds.as_ref().and_then(extent).and_then(|n| i64::try_from(n).ok());
            let leaves = length.map_or(1, |n| Leaves::of(&[n]).count() as u64);
            LANES as u64 * leaves.clamp(1, MOST_LEAVES)
        };
        let warp = |bounds: &Bounds| if extent(bounds).is_none_or(|n| n >= LONG_CHAIN) { WARP } else { 1 };
        let chains = self.chains.iter().map(warp);
        self.sums.iter().map(lanes).chain(chains).fold(self.noted, u64::max)
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
    pub fn of(segment: &Block, unit: &Unit) -> Domains {
        let mut domains = Domains { pars: Vec::new(), arrays: Vec::new(), whole_blocks: false };
        walk_program_level(segment, &mut |stmt| match stmt {
            Stmt::Par(par) => domains.pars.push(Domain::of(par, unit)),
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
            iterations.unwrap_or_else(largest_array).saturating_mul(domain.shared_by(&extent))
        };
        let loops = self.pars.iter().map(threads).max();
        Size {
            threads: loops.max(self.arrays.iter().map(elements).max()).unwrap_or(0),
            passes: self.pars.iter().map(|domain| passes(&domain.inside, &extent)).max().unwrap_or(0),
        }
    }
}
