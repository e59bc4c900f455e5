//! What iterations find that have no bound, in order.
//!
//! An iteration of a parallel loop may read what it wrote, in an inner loop whose number of iterations is data. There is no place
//! for each iteration then. But what such loads find, and how many iterations loops have, are *events* of the iteration, one after the
//! other: with their number at hand, a part of the iteration that is run again can ask for what it found the first time.
//!
//! - Input: a parallel loop, and the arrays that it reads after it has written them.
//! - Output: which of its loads and loops are events, and the loop with a local that counts them.
//! - Invariant: the loop does what it did; the local holds the number of the next event before a load, and one more than the
//!   loop's own before a loop.

use std::collections::BTreeSet;

use ebbtide_ir::{
    ArrayId, Binary, Block, Branch, Literal, LocalDecl, LocalId, Loop, LoopId, LoopKind, Op, Par, Program,
    Stmt, Type, ValueId, walk,
};

use crate::plan::scratch_arrays::Domain;

/// The events of the iterations of a parallel loop.
pub(crate) struct Events {
    /// The program with the values and the local of the loop below.
    pub source: Program,
    /// The loop; it counts its events.
    pub par: Par,
    /// The number of the next event.
    pub next: LocalId,
    pub loads: BTreeSet<ValueId>,
    pub loops: BTreeSet<LoopId>,
}

/// The events of a parallel loop that reads these arrays after it has written them; `None` where all that it finds has places
/// that are known before it runs.
pub(crate) fn events(domain: &Domain<'_>, par: &Par, arrays: &BTreeSet<ArrayId>) -> Option<Events> {
    let Finder { loads, loops, .. } = find(domain, par, arrays);
    if loads.is_empty() && loops.is_empty() {
        return None;
    }
    let mut source = domain.source.clone();
    source.locals.push(LocalDecl { name: "event".to_string(), ty: Type::Index });
    let next = LocalId::from_index(source.locals.len() - 1);
    let mut counter = Counter { source, next, loads: &loads, loops: &loops };
    let zero = counter.value(Op::Literal(Literal::index(0)));
    let start = [Stmt::Let(zero), Stmt::Declare(next, zero)];
    let body = start.into_iter().chain(counter.block(&par.body)).collect();
    let source = counter.source;
    Some(Events { source, par: Par { body, ..par.clone() }, next, loads, loops })
}

/// Has a parallel loop that reads these arrays after it has written them any events?
pub(crate) fn has_events(domain: &Domain<'_>, par: &Par, arrays: &BTreeSet<ArrayId>) -> bool {
    let found = find(domain, par, arrays);
    !found.loads.is_empty() || !found.loops.is_empty()
}

fn find<'a>(domain: &'a Domain<'a>, par: &Par, arrays: &'a BTreeSet<ArrayId>) -> Finder<'a> {
    let mut finder = Finder { domain, arrays, loads: BTreeSet::new(), loops: BTreeSet::new() };
    finder.block(&par.body, &[]);
    finder
}

/// Finds events.
struct Finder<'a> {
    domain: &'a Domain<'a>,
    arrays: &'a BTreeSet<ArrayId>,
    loads: BTreeSet<ValueId>,
    loops: BTreeSet<LoopId>,
}

impl Finder<'_> {
    /// The depth of recursion is that of nesting in the source.
    fn block(&mut self, block: &Block, around: &[&Loop]) {
        for stmt in block {
            match stmt {
                Stmt::Let(v)
                    if self.is_read_again(*v)
                        && !around.is_empty()
                        && self.domain.places_in(around).is_none() =>
                {
                    self.loads.insert(*v);
                }
                Stmt::Loop(l) => {
                    let before = self.loads.len();
                    let around: Vec<&Loop> = around.iter().copied().chain([l]).collect();
                    self.block(&l.body, &around);
                    // How often it ran is found out by its head, or by what it found: both are gone when it runs again.
                    let asks = matches!(&l.kind, LoopKind::While { head, .. } if self.reads_again(head));
                    let is_counted = matches!(l.kind, LoopKind::For { .. }) && l.until.is_none();
                    if asks || (self.loads.len() > before && !is_counted) {
                        self.loops.insert(l.id);
                    }
                }
                _ => stmt.blocks().for_each(|block| self.block(block, around)),
            }
        }
    }

    fn is_read_again(&self, v: ValueId) -> bool {
        matches!(self.domain.source.op(v), Op::Load(array, _) if self.arrays.contains(array))
    }

    fn reads_again(&self, block: &Block) -> bool {
        let mut reads = false;
        walk(block, &mut |stmt| reads |= matches!(stmt, Stmt::Let(v) if self.is_read_again(*v)));
        reads
    }
}

/// Writes a loop that counts its events.
struct Counter<'a> {
    source: Program,
    next: LocalId,
    loads: &'a BTreeSet<ValueId>,
    loops: &'a BTreeSet<LoopId>,
}

impl Counter<'_> {
    fn value(&mut self, op: Op) -> ValueId {
        self.source.add_value(op, Type::Index, None)
    }

    fn block(&mut self, block: &Block) -> Block {
        let mut counted = Block::new();
        for stmt in block {
            match stmt {
                Stmt::Let(v) if self.loads.contains(v) => {
                    counted.push(stmt.clone());
                    counted.extend(self.count());
                }
                Stmt::Loop(l) => {
                    if self.loops.contains(&l.id) {
                        counted.extend(self.count());
                    }
                    let body = self.block(&l.body);
                    counted.push(Stmt::Loop(Loop { body, ..l.clone() }));
                }
                Stmt::If(branch) => {
                    let (then, otherwise) = (self.block(&branch.then), self.block(&branch.otherwise));
                    counted.push(Stmt::If(Branch { condition: branch.condition, then, otherwise }));
                }
                _ => counted.push(stmt.clone()),
            }
        }
        counted
    }

    fn count(&mut self) -> [Stmt; 4] {
        let number = self.value(Op::Get(self.next));
        let one = self.value(Op::Literal(Literal::index(1)));
        let after = self.value(Op::Binary(Binary::Add, number, one));
        [Stmt::Let(number), Stmt::Let(one), Stmt::Let(after), Stmt::Set(self.next, after)]
    }
}
