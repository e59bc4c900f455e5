//! The reference interpreter of grids: what the loops around iterations mean. Tests run them on it, without a compiler.
//!
//! One thread at a time runs up to the next barrier, the first or the last one first: what is not behind a barrier must not depend
//! on which comes first. Windows, batches and tables are small, so that there are several.

mod iteration;

use std::collections::BTreeMap;

use ebbtide_ir::ValueId;
use ebbtide_ir::evaluate::{Bits, combine, neutral};
use ebbtide_ir::leaf::{LANES, Leaves};

use iteration::Together;

use super::{Added, For, Grid, Kind, Node, Over, When, visit};
use crate::kernel::expr::Expr;
use crate::kernel::interpret::{Ended, Iteration, Memory};
use crate::kernel::machine::LONG_CHAIN;
use crate::kernel::name::Variable;
use crate::kernel::nest::interpret::Outside;
use crate::kernel::stmt::Body;

/// So many iterations keep or note terms at a time.
const BATCH: i64 = 23;
/// A table has room for so many terms where they are counted.
const ROOM: i64 = 9;

/// The threads of a grid.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Threads {
    pub blocks: usize,
    /// A multiple of the lanes of a leaf.
    pub of_block: usize,
    /// Does the last thread come first?
    pub last_first: bool,
}

/// What became of a grid.
#[derive(Debug, Default)]
pub(crate) struct Ran {
    /// How often iterations ran without checks, several rows counted once, and how many iterations ran in other ways.
    pub unchecked: usize,
    pub careful: usize,
    /// By reduction: what the leaves came to, if any iteration had a term.
    pub totals: Vec<Option<Bits>>,
}

/// Runs a tree on memory. The elements of reductions exist; who runs it combines the totals into them.
pub(crate) fn run(
    grid: &Grid,
    memory: &mut Memory,
    outside: &Outside,
    threads: Threads,
) -> Result<Ran, Ended> {
    let extents: Vec<i64> = outside.ranges.iter().map(|(from, to)| to.saturating_sub(*from).max(0)).collect();
    let cut = Leaves::of(&extents);
    let mut machine = Machine {
        grid,
        outside,
        threads,
        cut,
        memory,
        lanes: BTreeMap::new(),
        seen: vec![false; grid.reductions.len()],
        kept: vec![BTreeMap::new(); grid.reductions.len()],
        notes: BTreeMap::new(),
        counts: BTreeMap::new(),
        skipped: false,
        ran: Ran::default(),
    };
    if cut.rows > 0 && cut.row > 0 {
        let all: Vec<usize> = (0..threads.blocks * threads.of_block).collect();
        machine.nodes(&grid.body, &all, Scope::default())?;
    }
    let Machine { lanes, seen, mut ran, .. } = machine;
    for (k, (how, ty)) in grid.reductions.iter().enumerate() {
        let mut total = neutral(*how, *ty);
        for leaf in 0..cut.count() {
            let mut lanes = lanes.get(&(leaf, k)).cloned().unwrap_or(vec![neutral(*how, *ty); LANES]);
            let mut width = LANES / 2;
            while width > 0 {
                (0..width)
                    .for_each(|lane| lanes[lane] = combine(*how, *ty, lanes[lane], lanes[lane + width]));
                width /= 2;
            }
            total = combine(*how, *ty, total, lanes[0]);
        }
        ran.totals.push(seen[k].then_some(total));
    }
    Ok(ran)
}

/// Where a node stands: in which leaf, row, tile and batch, and where iterations keep terms.
#[derive(Clone, Copy, Default)]
struct Scope<'a> {
    around: Option<&'a For>,
    leaf: i64,
    row: i64,
    tile: i64,
    /// The first iteration of a window or batch, and how many it has.
    batch: (i64, i64),
}

struct Machine<'a> {
    grid: &'a Grid,
    outside: &'a Outside<'a>,
    threads: Threads,
    cut: Leaves,
    memory: &'a mut Memory,
    /// By leaf and reduction: the sums of lanes.
    lanes: BTreeMap<(i64, usize), Vec<Bits>>,
    seen: Vec<bool>,
    /// By reduction: the terms that are kept, in their places.
    kept: Vec<BTreeMap<i64, Bits>>,
    /// The terms that are noted, by the place of the iteration in its batch.
    notes: BTreeMap<i64, Vec<(ebbtide_ir::ArrayId, usize, Bits)>>,
    /// How many terms were counted, by that place and by table.
    counts: BTreeMap<i64, Vec<i64>>,
    /// Does the next batch begin at the next iteration?
    skipped: bool,
    ran: Ran,
}

/// Is there something in a node that several threads do together?
fn meets(node: &Node) -> bool {
    let mut meets = false;
    visit(std::slice::from_ref(node), &mut |node| {
        meets |= matches!(
            node,
            Node::Barrier(_) | Node::EndLeaf | Node::CombineNoted | Node::SkipOne | Node::AddTerms(_)
        );
        meets |= matches!(node, Node::For(For { over: Over::Leaves | Over::LeavesInTiles(_), .. }));
    });
    meets && !matches!(node, Node::AddTerms(_))
}

impl<'a> Machine<'a> {
    /// Nodes that these threads run alike. The depth of recursion is that of the tree.
    fn nodes(&mut self, nodes: &'a [Node], who: &[usize], scope: Scope<'a>) -> Result<(), Ended> {
        let mut rest = nodes;
        while !rest.is_empty() && !self.skipped {
            let phase = rest.iter().position(meets).unwrap_or(rest.len());
            for thread in self.in_order(who) {
                for node in &rest[..phase] {
                    self.alone(node, thread, scope)?;
                }
            }
            if let Some(node) = rest.get(phase) {
                self.together(node, who, scope)?;
            }
            rest = rest.get(phase + 1..).unwrap_or_default();
        }
        Ok(())
    }

    fn in_order(&self, who: &[usize]) -> Vec<usize> {
        let mut order = who.to_vec();
        if self.threads.last_first {
            order.reverse();
        }
        order
    }

    fn together(&mut self, node: &'a Node, who: &[usize], scope: Scope<'a>) -> Result<(), Ended> {
        match node {
            Node::For(l) => self.loop_together(l, who, Scope { around: Some(l), ..scope }),
            Node::If { when, then, otherwise } => {
                let nodes = if self.holds(when, scope) { then } else { otherwise };
                self.nodes(nodes, who, scope)
            }
            Node::CombineNoted => {
                let found = if self.counts.is_empty() { i64::MAX } else { self.found(scope) };
                for (place, terms) in std::mem::take(&mut self.notes) {
                    assert!(place < found, "an iteration without room has noted terms");
                    for (array, at, term) in terms {
                        let how = self.grid.tables.iter().find(|t| t.0 == array).expect("it has a table").1;
                        let element = &mut self.memory.arrays[array.index()][at];
                        *element = combine(how, (self.outside.ty)(array), *element, term);
                    }
                }
                Ok(())
            }
            Node::SkipOne => {
                self.skipped = true;
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// A condition that is the same for all threads.
    fn holds(&self, when: &When, scope: Scope) -> bool {
        let few = self.cut.rows * self.cut.row < (self.threads.blocks * self.threads.of_block) as i64;
        match when {
            When::Proved => self.proved(),
            When::FewIterations => few,
            When::ShortRows(columns) => self.proved() && few && self.cut.row == *columns as i64,
            When::LongChains(ranges) => {
                let number = |e: &Expr| match e {
                    Expr::Literal(literal) => literal.to_i64().expect("an index is a number"),
                    Expr::Variable(name) => self.outside.names[name][0] as i64,
                    _ => unreachable!("a bound is a value"),
                };
                let long = |[from, to]: &[Expr; 2]| number(to) - number(from) >= LONG_CHAIN as i64;
                let few =
                    self.cut.rows * self.cut.row * 4 <= (self.threads.blocks * self.threads.of_block) as i64;
                self.proved() && few && ranges.iter().any(long)
            }
            When::NoRoom => self.found(scope) == 0,
            _ => unreachable!("iterations ask it"),
        }
    }

    fn loop_together(&mut self, l: &'a For, who: &[usize], scope: Scope<'a>) -> Result<(), Ended> {
        let all = self.cut.rows * self.cut.row;
        match &l.over {
            Over::Leaves | Over::LeavesInTiles(_) => {
                let size = match l.kind {
                    Kind::Teams => LANES,
                    Kind::Blocks => self.threads.of_block,
                    _ => 1,
                };
                let groups = if l.kind == Kind::One { vec![&who[..1]] } else { who.chunks(size).collect() };
                for (nth, group) in groups.iter().enumerate() {
                    for leaf in (nth as i64..self.cut.count()).step_by(groups.len()) {
                        for (k, (how, ty)) in self.grid.reductions.iter().enumerate() {
                            self.lanes.insert((leaf, k), vec![neutral(*how, *ty); LANES]);
                        }
                        self.nodes(&l.body, group, Scope { leaf, ..scope })?;
                    }
                }
            }
            Over::Tiles(size) => {
                let (rows, columns) = self.of_leaf(scope.leaf);
                let all = (rows.1 - rows.0) * (columns.1 - columns.0);
                for tile in (0..all).step_by(*size) {
                    self.nodes(&l.body, who, Scope { tile, ..scope })?;
                }
            }
            Over::Windows | Over::Batches(_) | Over::CountedBatches => {
                let mut first = 0;
                while first < all {
                    let batch = (first, BATCH.min(all - first));
                    self.counts.clear();
                    self.nodes(&l.body, who, Scope { batch, ..scope })?;
                    first += match l.over {
                        _ if std::mem::take(&mut self.skipped) => 1,
                        Over::CountedBatches => self.found(Scope { batch, ..scope }),
                        _ => batch.1,
                    };
                }
            }
            _ => unreachable!("threads take its iterations each for itself"),
        }
        Ok(())
    }

    /// How many iterations of a batch find room for the terms that they were counted to have.
    fn found(&self, scope: Scope) -> i64 {
        let mut sums = vec![0; self.grid.tables.len()];
        (0..scope.batch.1)
            .take_while(|place| {
                sums.iter_mut().zip(&self.counts[place]).for_each(|(sum, count)| *sum += count);
                sums.iter().all(|sum| *sum <= ROOM)
            })
            .count() as i64
    }

    /// The rows and columns of a leaf.
    fn of_leaf(&self, leaf: i64) -> ((i64, i64), (i64, i64)) {
        let cut = &self.cut;
        let (first, piece) = (leaf / cut.pieces * cut.rows_per_leaf, leaf % cut.pieces);
        let left = self.first_column() + piece * cut.size;
        let columns = (left, left + cut.size.min(cut.row - piece * cut.size));
        ((first, (first + cut.rows_per_leaf).min(cut.rows)), columns)
    }

    fn first_column(&self) -> i64 {
        self.outside.ranges[self.outside.ranges.len() - 1].0
    }

    /// What one thread does of a node in which it meets no other.
    fn alone(&mut self, node: &'a Node, thread: usize, scope: Scope<'a>) -> Result<(), Ended> {
        match node {
            Node::For(l) => self.loop_alone(l, thread, Scope { around: Some(l), ..scope }),
            Node::If { when, then, otherwise } => {
                let nodes = if self.holds(when, scope) { then } else { otherwise };
                nodes.iter().try_for_each(|node| self.alone(node, thread, scope))
            }
            Node::AddTerms(added) => {
                self.add_terms(*added, thread, scope);
                Ok(())
            }
            Node::Count(body, _) => {
                self.count(body, thread, scope);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn loop_alone(&mut self, l: &'a For, thread: usize, scope: Scope<'a>) -> Result<(), Ended> {
        let (threads, of_block) = (self.threads.blocks * self.threads.of_block, self.threads.of_block);
        let (thread, threads, lanes) = (thread as i64, threads as i64, LANES as i64);
        let (all, row, jf) = (self.cut.rows * self.cut.row, self.cut.row, self.first_column());
        let from = scope.batch.0;
        // Iterations by number: each in its row and column, with a place in the batch.
        let numbered = |machine: &mut Self, first: i64, end: i64, step: i64| -> Result<(), Ended> {
            for at in (first..end).step_by(step as usize) {
                let (r, j) = ((from + at) / row, jf + (from + at) % row);
                machine.iteration(&l.body, (r, j, Together::One), at, scope)?;
            }
            Ok(())
        };
        match (&l.over, l.kind) {
            (Over::Bands | Over::NarrowBands { .. }, _) => self.bands(l, thread, scope),
            (Over::Iterations | Over::IterationsWithChains, Kind::Teams) if thread % lanes > 0 => Ok(()),
            (Over::Iterations | Over::IterationsWithChains, Kind::Teams) => {
                numbered(self, thread / lanes, all, threads / lanes)
            }
            (Over::ShortRows(_), _) if thread % lanes > 0 => Ok(()),
            (Over::ShortRows(columns), _) => {
                let mut rows = (thread / lanes..self.cut.rows).step_by((threads / lanes) as usize);
                rows.try_for_each(|r| self.iteration(&l.body, (r, jf, Together::Columns(*columns)), 0, scope))
            }
            (Over::Iterations, _) => numbered(self, thread, all, threads),
            (Over::OfWindow | Over::OfBatch(_), _) => numbered(self, thread, scope.batch.1, threads),
            (Over::OfCountedBatch, _) => {
                let found = self.found(scope);
                numbered(self, thread, found, threads)
            }
            (Over::FirstOfBatch { .. }, _) => numbered(self, 0, if thread == 0 { 1 } else { 0 }, 1),
            (Over::Rows, _) => {
                let (rows, _) = self.of_leaf(scope.leaf);
                (rows.0..rows.1).try_for_each(|row| {
                    l.body
                        .iter()
                        .try_for_each(|node| self.alone(node, thread as usize, Scope { row, ..scope }))
                })
            }
            (Over::Columns { .. }, kind) => {
                let (_, (left, right)) = self.of_leaf(scope.leaf);
                let (first, step) = if kind == Kind::OfTeam { (thread % lanes, lanes) } else { (0, 1) };
                (left + first..right)
                    .step_by(step as usize)
                    .try_for_each(|j| self.iteration(&l.body, (scope.row, j, Together::One), 0, scope))
            }
            (Over::OfTile { .. }, _) => {
                let ((first, end), (left, right)) = self.of_leaf(scope.leaf);
                let (width, size) = (right - left, self.tile_size());
                let last = (scope.tile + size).min((end - first) * width);
                (scope.tile + thread % of_block as i64..last).step_by(of_block).try_for_each(|at| {
                    let (r, j) = (first + at / width, left + at % width);
                    self.iteration(&l.body, (r, j, Together::One), at - scope.tile, scope)
                })
            }
            _ => unreachable!("threads run it together"),
        }
    }

    /// How many iterations a tile has.
    fn tile_size(&self) -> i64 {
        let Some(Node::For(For { over: Over::LeavesInTiles(size), .. })) = self.grid.body.first() else {
            unreachable!("tiles are of leaves");
        };
        *size as i64
    }

    /// Bands of three rows, dealt out with their columns.
    fn bands(&mut self, l: &'a For, thread: i64, scope: Scope<'a>) -> Result<(), Ended> {
        const BAND: i64 = 3;
        let (rows, row, jf) = (self.cut.rows, self.cut.row, self.first_column());
        let threads = (self.threads.blocks * self.threads.of_block) as i64;
        for number in (thread..row * ((rows + BAND - 1) / BAND)).step_by(threads as usize) {
            let (j, mut r) = (jf + number % row, number / row * BAND);
            let end = rows.min(r + BAND);
            while r < end {
                let several = match &l.over {
                    Over::NarrowBands { together: Some((several, nodes)), .. } => Some((*several, nodes)),
                    _ => None,
                };
                match several.filter(|(several, _)| r + *several as i64 <= end) {
                    Some((several, nodes)) => {
                        self.iteration(nodes, (r, j, Together::Rows(several)), 0, scope)?;
                        r += several as i64;
                    }
                    None => {
                        self.iteration(&l.body, (r, j, Together::One), 0, scope)?;
                        r += 1;
                    }
                }
            }
        }
        Ok(())
    }

    /// Adds the kept terms of those lanes that are this thread's.
    fn add_terms(&mut self, added: Added, thread: usize, scope: Scope) {
        let grid = self.grid;
        let tile = matches!(scope.around, Some(For { over: Over::Tiles(_), .. }));
        let places: Vec<(i64, i64, i64)> = if tile {
            let ((first, end), (left, right)) = self.of_leaf(scope.leaf);
            let last = (scope.tile + self.tile_size()).min((end - first) * (right - left));
            let column = |at: i64| left - self.first_column() + at % (right - left);
            (scope.tile..last).map(|at| (at - scope.tile, scope.leaf, column(at))).collect()
        } else {
            let count = match added {
                Added::First => 1,
                Added::All if self.counts.is_empty() => scope.batch.1,
                Added::All => self.found(scope),
            };
            let cut = self.cut;
            let leaf = |r: i64, column: i64| {
                r / cut.rows_per_leaf * cut.pieces + column / cut.size.max(1) % cut.pieces
            };
            (0..count)
                .map(|place| {
                    let at = scope.batch.0 + place;
                    (place, leaf(at / cut.row, at % cut.row), at % cut.row)
                })
                .collect()
        };
        let threads = if tile { self.threads.of_block } else { self.threads.blocks * self.threads.of_block };
        for (place, leaf, column) in places {
            let lane = (column % LANES as i64) as usize;
            let group = if tile { 0 } else { leaf as usize };
            if (group * LANES + lane) % threads != thread % threads {
                continue;
            }
            for (k, (how, ty)) in grid.reductions.iter().enumerate() {
                let term = self.kept[k].get(&place).copied().unwrap_or(neutral(*how, *ty));
                let lanes = self.lanes.entry((leaf, k)).or_insert_with(|| vec![neutral(*how, *ty); LANES]);
                lanes[lane] = combine(*how, *ty, lanes[lane], term);
            }
        }
    }

    /// Counts the terms that this thread's iterations of a batch will note. One that meets a fault meets it again.
    fn count(&mut self, body: &'a Body, thread: usize, scope: Scope) {
        let threads = self.threads.blocks * self.threads.of_block;
        let none = |_: ValueId| -> i64 { unreachable!("nothing wraps outside the interior") };
        for place in (thread as i64..scope.batch.1).step_by(threads) {
            let at = scope.batch.0 + place;
            let (row, j) = (at / self.cut.row, self.first_column() + at % self.cut.row);
            let mut names = self.names_of(row);
            names.insert(self.innermost(), vec![j as Bits]);
            let tables = 0..self.grid.tables.len();
            names.extend(tables.clone().map(|n| (Variable::Terms(n).into(), vec![0])));
            let mut one = Iteration::new(self.memory, &none, []);
            one.names = names;
            let _ = one.run(body);
            let counted = tables.map(|n| one.names[&Variable::Terms(n).into()][0] as i64).collect();
            self.counts.insert(place, counted);
        }
    }
}
