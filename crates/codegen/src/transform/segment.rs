//! The steps of a segment. Input: a block of the program, and how a machine deals out work between threads; output: a tree with
//! barriers where threads must meet.
//!
//! What every statement touches, and by which threads, is followed through the block ([`Pending`]), around the back edges of loops
//! until nothing new may be pending when an iteration begins. A loop that may meet a fault is followed by a barrier all the same,
//! so that the first fault is the one that comes first in the program. Where thread 0 would store an element that all threads may
//! still read, it stores it at the next meeting, with others.

mod parallel;

use std::collections::{BTreeMap, BTreeSet};

use ebbtide_ir::{
    After, ArrayId, Block, Combine, Facts, LibraryCall, LibraryOp, LocalId, Loop, LoopId, LoopKind, Op, Par,
    Program, Push, Region, Stmt, Store, Undone, ValueId, walk,
};

use crate::analysis::alone::loops_for_one;
use crate::analysis::barriers::{Pending, Touch, exchanged_with};
use crate::analysis::packed_tapes::{OnTape, PackedTapes, on_tape};
use crate::kernel::segment::{
    Barrier, By, Manner, MappingId, Product, ProductId, Step, Steps, TimeLoop, Whole,
};

/// How a machine runs what it shares between threads.
pub(crate) struct Sharing<'a> {
    pub program: &'a Program,
    pub facts: &'a Facts,
    /// By loop: the matrices that products wait for meanwhile.
    pub waiting: &'a BTreeMap<LoopId, BTreeSet<ArrayId>>,
    /// The arrays whose tapes are packed.
    pub packed: &'a PackedTapes,
    /// What they do after thread 0 has combined the sums of leaves.
    pub leaves: Afterwards,
    /// How the iterations of a parallel loop are dealt out, if that is known on entry to the segment.
    pub mapping: &'a dyn Fn(&Par) -> Option<MappingId>,
    /// The domain that a mapping has in common with sums, if it has.
    pub beside_sums: &'a dyn Fn(MappingId) -> Option<MappingId>,
    /// That of a loop whose leaves blocks take.
    pub leaves_beside: &'a dyn Fn(&Par) -> Option<MappingId>,
    pub manner: &'a dyn Fn(&Par) -> Manner,
    /// Do blocks of threads take tiles of products?
    pub tiles: bool,
    /// Does a loop run inside the parallel loops of its iterations, where that can be?
    pub interchanged: &'a dyn Fn(&Loop) -> bool,
}

/// What statements at the start of a block do with a packed tape.
fn on_tape_of<'p>(sharing: &Sharing, block: &'p [Stmt]) -> Option<OnTape<'p>> {
    on_tape(sharing.program, block).filter(|found| sharing.packed.find(found.array()).is_some())
}

/// What threads do after a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Afterwards {
    /// They continue, and meet before somebody touches what others have touched.
    Continue,
    /// They meet at once.
    Meet,
}

impl<'p> Sharing<'_> {
    /// The steps of a segment.
    pub fn segment(&self, block: &'p Block) -> Steps<'p> {
        let (pending, waiting) = (Pending::default(), BTreeSet::new());
        let for_one = loops_for_one(self.program, self.packed, block);
        let (alone, sums_are_read, late, steps) = (false, false, Vec::new(), Steps::new());
        let mut calls = Vec::new();
        walk(block, &mut |stmt| {
            if let Stmt::Library(call) = stmt {
                calls.push(std::ptr::from_ref(call));
            }
        });
        let mut placing = Placing {
            sharing: self,
            pending,
            waiting,
            for_one,
            alone,
            sums_are_read,
            late,
            calls,
            beside: None,
            known: BTreeMap::new(),
            steps,
        };
        placing.block(block);
        placing.steps
    }
}

/// Steps being written, and what happened since all threads met.
struct Placing<'s, 'a, 'p> {
    sharing: &'s Sharing<'a>,
    pending: Pending,
    /// The matrices that products wait for here.
    waiting: BTreeSet<ArrayId>,
    /// The loops that one thread can run alone, with the locals that others want to know; does it, in these steps?
    for_one: BTreeMap<LoopId, Vec<LocalId>>,
    alone: bool,
    /// Are the sums of the parallel loop that is written read right behind it?
    sums_are_read: bool,
    /// What thread 0 stores where all threads have met again, in order: they may still read what was there.
    late: Vec<(Option<Combine>, &'p Store)>,
    /// The library operations of the segment: the number of a product is its place here.
    calls: Vec<*const LibraryCall>,
    /// The last product since all threads met, of those in a row.
    beside: Option<ProductId>,
    /// The elements that all threads know, since nothing but computing happened behind the loop whose sums they are.
    known: BTreeMap<ArrayId, (&'p Par, usize)>,
    steps: Steps<'p>,
}

impl<'p> Placing<'_, '_, 'p> {
    /// Steps that stand inside another one.
    fn inside(&mut self, write: impl FnOnce(&mut Self)) -> Steps<'p> {
        let before = std::mem::take(&mut self.steps);
        write(self);
        std::mem::replace(&mut self.steps, before)
    }

    /// Steps that may be left out, or run again: products inside and outside are not in a row.
    fn apart(&mut self, write: impl FnOnce(&mut Self)) -> Steps<'p> {
        self.beside = None;
        let steps = self.inside(write);
        self.beside = None;
        steps
    }

    /// All threads meet here.
    fn meet(&mut self) {
        self.pending = Pending::default();
        self.beside = None;
        self.steps.push(Step::Barrier(Barrier::Always));
        for (how, store) in std::mem::take(&mut self.late) {
            self.steps.push(Step::Store { store, how, by: By::First });
            self.wrote(store.array, By::First);
        }
    }

    /// What was put off is stored here.
    fn store_late(&mut self) {
        if !self.late.is_empty() {
            self.meet();
        }
    }

    /// All threads meet here, if any of them may still be about something.
    fn meet_if_pending(&mut self) {
        if !self.pending.is_empty() {
            self.meet();
        }
    }

    /// The statements of a block. The depth of recursion is that of nesting in the source.
    fn block(&mut self, block: &'p Block) {
        let (mut on_tape, mut met) = (0, BTreeMap::new());
        for (k, stmt) in block.iter().enumerate() {
            if on_tape > 0 {
                on_tape -= 1;
                continue;
            }
            if let Some(found) = on_tape_of(self.sharing, &block[k..]) {
                self.store_late();
                on_tape = found.statements() - 1;
                self.value_on_tape(found, &mut met);
                continue;
            }
            // What is overwritten at once need not be cleared.
            let next = block.get(k + 1);
            let replaced = matches!((stmt, next), (Stmt::Temp(a), Some(Stmt::Copy { to, .. } | Stmt::Fill(to, ..))) if a == to);
            let undefined = matches!(stmt, Stmt::Temp(a) if self.sharing.program.undefined.contains(a));
            self.sums_are_read = matches!(stmt, Stmt::Par(par) if self.reads_sums(par, &block[k + 1..]));
            if !replaced && !undefined {
                self.statement(stmt);
            }
        }
        self.store_late();
    }

    fn statement(&mut self, stmt: &'p Stmt) {
        let computes = matches!(
            stmt,
            Stmt::Let(_) | Stmt::Declare(..) | Stmt::Set(..) | Stmt::Store(_) | Stmt::Update(..)
        );
        if !computes {
            self.store_late();
            self.known.clear();
        }
        match stmt {
            Stmt::Let(v) => self.value(*v),
            Stmt::Declare(local, v) | Stmt::Set(local, v) => self.steps.push(Step::Set(*local, *v)),
            Stmt::Store(store) | Stmt::Update(_, store) => {
                let how = if let Stmt::Update(how, _) = stmt { Some(*how) } else { None };
                if self.can_wait(store.array) {
                    return self.late.push((how, store));
                }
                let by = self.writer(store.array);
                self.steps.push(Step::Store { store, how, by });
                self.wrote(store.array, by);
            }
            Stmt::If(branch) => {
                let before = self.pending.clone();
                let then = self.apart(|inner| inner.block(&branch.then));
                let after = std::mem::replace(&mut self.pending, before);
                let otherwise = self.apart(|inner| inner.block(&branch.otherwise));
                self.pending = after.or(&self.pending);
                self.steps.push(Step::If { condition: branch.condition, then, otherwise });
            }
            Stmt::Loop(l) => self.time_loop(l),
            Stmt::Par(par) => self.par(par),
            Stmt::Region(region) => self.region(region),
            Stmt::Call(call) => self.block(&call.body),
            Stmt::Swap(a, b) => {
                self.steps.extend([Step::SameShape(*a, *b), Step::Swap(*a, *b)]);
                self.pending.swap(*a, *b);
            }
            Stmt::Fill(a, v, _) => self.whole(Whole::Fill(*a, *v)),
            Stmt::Copy { from, to, .. } => {
                self.steps.push(Step::SameShape(*from, *to));
                self.whole(Whole::Copy { from: *from, to: *to });
            }
            Stmt::Library(call) => self.library(call),
            Stmt::Temp(a) => self.whole(Whole::Clear(*a)),
            Stmt::Push(push) => self.push(push),
            Stmt::Pop(array) => {
                self.exchange(*array);
                self.steps.push(Step::Pop(*array));
            }
            // Sweeps are driven by the host, between segments; only iterations claim elements.
            Stmt::Forward(_) | Stmt::Backward(_) | Stmt::Host(..) | Stmt::Claim(_) => {}
        }
        if !matches!(stmt, Stmt::Par(_) | Stmt::Call(_)) && !computes {
            self.known.clear();
        }
    }

    /// Thread 0 writes values to packed tapes; all threads read them there. `met` counts the tapes of each group that the block has
    /// come to: all of them use the same place.
    fn value_on_tape(&mut self, found: OnTape, met: &mut BTreeMap<usize, usize>) {
        let array = found.array();
        let Some((group, _)) = self.sharing.packed.find(array) else { return };
        let (touch, by) = match found {
            OnTape::Push(_) => (Touch::Write, By::First),
            OnTape::Pop(..) => (Touch::Read, self.reader()),
        };
        if self.pending.conflicts_on_tape(array, touch, by) {
            self.meet();
        }
        self.pending.note_on_tape(array, touch, by);
        let count = met.entry(group).or_insert(0);
        *count += 1;
        let first = *count == 1;
        let last = *count == self.sharing.packed.groups[group].len();
        if last {
            *count = 0;
        }
        match found {
            OnTape::Push(store) => {
                self.steps.extend(first.then_some(Step::NextPlace(group)));
                self.steps.push(Step::PushValue(array, store.value));
                self.steps.extend(last.then_some(Step::TakePlace(group)));
            }
            OnTape::Pop(_, v) => {
                self.steps.extend(first.then_some(Step::LastPlace(group)));
                self.steps.extend(v.map(|v| Step::PopValue(array, v)));
            }
        }
    }

    fn value(&mut self, v: ValueId) {
        let array = match *self.sharing.program.op(v) {
            Op::Load(array, _) => array,
            // It is written where it is used.
            Op::Literal(_) => return,
            _ => return self.steps.push(Step::Let(v)),
        };
        if let Some((par, number)) = self.known.get(&array) {
            return self.steps.push(Step::Sum(v, par, *number));
        }
        self.before_read(array);
        self.steps.push(Step::Let(v));
        self.pending.note(array, Touch::Read, self.reader());
    }

    /// The threads that read what a value is made of.
    fn reader(&self) -> By {
        if self.alone { By::First } else { By::Anyone }
    }

    /// Before all threads read an element.
    fn before_read(&mut self, array: ArrayId) {
        if self.late.iter().any(|(_, store)| store.array == array) {
            self.store_late();
        }
        if self.pending.conflicts(array, Touch::Read, self.reader()) {
            self.meet();
        }
    }

    /// Do all threads read the one element of an array, so that they would have to meet before it is stored? Where several such
    /// elements are stored one after the other, they meet once.
    fn can_wait(&self, array: ArrayId) -> bool {
        let late = self.late.iter().any(|(_, store)| store.array == array);
        let read = || self.pending.of(array).any(|(touch, by)| touch == Touch::Read && by == By::Anyone);
        late || self.is_of_first(array) && read()
    }

    /// The thread that writes an element: one that need not wait for others, if there is such a one.
    fn writer(&mut self, array: ArrayId) -> By {
        let who: BTreeSet<By> = self.pending.of(array).map(|(_, by)| by).collect();
        match who.into_iter().collect::<Vec<By>>().as_slice() {
            [] => By::First,
            [by @ (By::First | By::Owner(_))] => *by,
            _ => {
                self.meet();
                By::First
            }
        }
    }

    fn wrote(&mut self, array: ArrayId, by: By) {
        self.known.remove(&array);
        self.pending.note(array, Touch::Read, by);
        self.pending.note(array, Touch::Write, by);
    }

    /// The memory of an array is exchanged with some on its tape.
    fn exchange(&mut self, array: ArrayId) {
        let names = exchanged_with(self.sharing.program, array);
        self.pending.mix(&names);
    }

    /// Each thread touches a part of these arrays, in a step; what is written, by these threads.
    fn parts(
        &mut self,
        reads: &[ArrayId],
        (writes, by): (&[ArrayId], By),
        step: impl FnOnce(&Self) -> Step<'p>,
    ) {
        let conflicts = |arrays: &[ArrayId], touch, by| {
            arrays.iter().any(|array| self.pending.conflicts(*array, touch, by))
        };
        let conflict = conflicts(reads, Touch::Read, By::Anyone) || conflicts(writes, Touch::Write, by);
        if self.pending.leaves || conflict {
            self.meet();
        }
        self.steps.push(step(self));
        reads.iter().for_each(|array| self.pending.note(*array, Touch::Read, By::Anyone));
        writes.iter().for_each(|array| self.wrote(*array, by));
    }

    /// Has the array one element, of which thread 0 takes care? The threads of a CPU may deal out a single one in another way.
    fn is_of_first(&self, array: ArrayId) -> bool {
        self.sharing.leaves == Afterwards::Continue && self.sharing.program.array(array).rank == 0
    }

    fn whole(&mut self, whole: Whole) {
        let (read, written) = match whole {
            Whole::Fill(a, _) | Whole::Clear(a) | Whole::Restore(a) => (None, Some(a)),
            Whole::Copy { from, to } => (Some(from), Some(to)),
            Whole::Keep(a) => (Some(a), None),
        };
        if !read.into_iter().chain(written).all(|a| self.is_of_first(a)) {
            return self.parts(read.as_slice(), (written.as_slice(), By::Anyone), |_| Step::Whole(whole));
        }
        let conflicts =
            |a: Option<ArrayId>, touch| a.is_some_and(|a| self.pending.conflicts(a, touch, By::First));
        if conflicts(read, Touch::Read) || conflicts(written, Touch::Write) {
            self.meet();
        }
        self.steps.push(Step::Whole(whole));
        read.into_iter().for_each(|a| self.pending.note(a, Touch::Read, By::First));
        written.into_iter().for_each(|a| self.wrote(a, By::First));
    }

    fn library(&mut self, call: &'p LibraryCall) {
        let steps = self.inside(|inner| {
            let waits = call.writes.iter().any(|matrix| inner.waiting.contains(matrix));
            match inner.tiled(call).filter(|_| !waits) {
                Some(id) => {
                    let product = |placing: &Self| Product::Tiled { id, behind: placing.beside };
                    let step = |placing: &Self| Step::Operation(call, product(placing));
                    inner.parts(&call.reads, (&call.writes, By::Block(id)), step);
                    inner.beside = Some(id);
                }
                None => {
                    let product = if waits { Product::Waits } else { Product::AtOnce };
                    let step = |_: &Self| Step::Operation(call, product);
                    inner.parts(&call.reads, (&call.writes, By::Anyone), step);
                }
            }
            if let LibraryOp::Custom(_) = call.op {
                // The host may have failed.
                inner.meet();
            }
        });
        self.steps.push(Step::Library(call, steps));
    }

    /// The number of a product of which blocks take tiles.
    fn tiled(&self, call: &LibraryCall) -> Option<ProductId> {
        let tiled = self.sharing.tiles && matches!(call.op, LibraryOp::Matmul { .. });
        let number = || self.calls.iter().position(|known| std::ptr::eq(*known, call));
        tiled.then(number).flatten().map(ProductId)
    }

    fn push(&mut self, push: &'p Push) {
        if push.after != After::Same {
            self.exchange(push.array);
            return self.steps.push(Step::PushExchanged(push));
        }
        // Others may still be about the memory that takes the copy.
        let names = exchanged_with(self.sharing.program, push.array);
        let by = if self.is_of_first(push.array) { By::First } else { By::Anyone };
        match by {
            By::First if !self.pending.has_others(&names, by) => {}
            _ => self.meet_if_pending(),
        }
        self.exchange(push.array);
        let steps = self.inside(|inner| inner.whole(Whole::Keep(push.array)));
        self.pending.note_on_tape(push.array, Touch::Write, by);
        self.steps.push(Step::Push(push, steps));
    }

    fn region(&mut self, region: &'p Region) {
        self.steps.push(Step::Label(region));
        let undone = Undone::by(region);
        for a in &undone.arrays {
            let steps = self.inside(|inner| inner.whole(Whole::Keep(*a)));
            self.steps.push(Step::Keep(*a, steps));
        }
        self.steps.extend(undone.locals.iter().map(|l| Step::KeepLocal(*l)));
        self.block(&region.body);
        let Some(flag) = region.flag else { return };
        self.before_read(flag);
        let before = self.pending.clone();
        let undo = self.inside(|inner| {
            for a in &undone.arrays {
                let steps = inner.inside(|inner| inner.whole(Whole::Restore(*a)));
                inner.steps.push(Step::Restore(*a, steps));
            }
            inner.steps.extend(undone.locals.iter().map(|l| Step::RestoreLocal(*l)));
        });
        // Who comes out of it has not been in it.
        self.pending = before;
        self.steps.push(Step::Yield { region, flag, undo });
        self.pending.note(flag, Touch::Read, By::Anyone);
    }

    fn time_loop(&mut self, l: &'p Loop) {
        if !(self.sharing.interchanged)(l) {
            let before = self.pending.clone();
            let steps = self.iterations_of(l);
            let locals = self.for_one.get(&l.id).filter(|_| !self.alone).cloned();
            if let Some(locals) = locals.filter(|_| uses_tapes(&steps) || has_barriers(&steps)) {
                self.pending = before;
                return self.for_one_alone(l, locals);
            }
            return self.steps.extend(steps);
        }
        self.meet_if_pending();
        let steps = self.inside(|inner| {
            let steps = inner.iterations_of(l);
            inner.steps.extend(steps);
        });
        self.steps.push(Step::Interchanged(l, steps));
    }

    /// A loop that thread 0 runs alone, with the locals that others want to know behind it.
    fn for_one_alone(&mut self, l: &'p Loop, locals: Vec<LocalId>) {
        self.meet_if_pending();
        self.alone = true;
        let steps = self.iterations_of(l);
        self.alone = false;
        self.steps.push(Step::Alone(steps, locals.clone()));
        // A fault of the one is the end of all.
        self.meet();
        if !locals.is_empty() {
            self.steps.push(Step::Take(locals));
            // All have them before there are others.
            self.meet();
        }
    }

    /// A loop whose iterations all threads run one after the other. What may be pending when one begins is known when they are all
    /// looked at, so they are until nothing new is.
    fn iterations_of(&mut self, l: &'p Loop) -> Steps<'p> {
        let waiting = self.sharing.waiting.get(&l.id);
        let outside = self.waiting.clone();
        self.waiting.extend(waiting.into_iter().flatten());
        let mut begun = self.pending.clone();
        let step = loop {
            self.pending.clone_from(&begun);
            let (step, left) = self.once(l, &begun);
            let again = begun.clone().or(&self.pending);
            if again == begun {
                self.pending = left;
                break Step::Loop(step);
            }
            begun = again;
        };
        self.waiting = outside;
        let settled = waiting.into_iter().flatten().map(|c| {
            self.wrote(*c, By::Anyone);
            Step::Settle(*c)
        });
        [step].into_iter().chain(settled).collect()
    }

    /// A loop whose iterations begin with this pending, and what is pending where it is left.
    fn once(&mut self, l: &'p Loop, begun: &Pending) -> (TimeLoop<'p>, Pending) {
        let (mut head, mut left) = (Steps::new(), begun.clone());
        if let LoopKind::While { head: block, .. } = &l.kind {
            head = self.apart(|inner| inner.block(block));
            left.clone_from(&self.pending);
        }
        let body = self.apart(|inner| inner.block(&l.body));
        if l.until.is_some() {
            left = left.or(&self.pending);
        }
        (TimeLoop { source: l, head, body }, left)
    }
}

/// Do threads meet in these steps? The depth of recursion is that of nesting in the source.
fn has_barriers(steps: &[Step]) -> bool {
    steps.iter().any(|step| matches!(step, Step::Barrier(_)) || step.inner().any(|steps| has_barriers(steps)))
}

/// Do these steps use packed tapes?
fn uses_tapes(steps: &[Step]) -> bool {
    let uses = |step: &Step| matches!(step, Step::NextPlace(_) | Step::LastPlace(_));
    steps.iter().any(|step| uses(step) || step.inner().any(|steps| uses_tapes(steps)))
}
