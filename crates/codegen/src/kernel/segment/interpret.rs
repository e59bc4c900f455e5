//! The reference interpreter of segments: what steps mean to several threads. Tests run on it.
//!
//! One thread runs at a time, up to the next barrier, in an order that tests choose: all that a thread does before a barrier comes
//! before or after all that another one does. A barrier that is missing shows in what is left in memory for one order or the
//! other. No test meets a fault, so that threads never meet where a proof says that they need not.

use std::collections::BTreeMap;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use ebbtide_ir::evaluate::{Bits, combine, fma, neutral};
use ebbtide_ir::leaf::LANES;
use ebbtide_ir::{
    ArrayId, Assign, Combine, Layout, LibraryCall, LibraryOp, LocalId, LoopKind, Par, Program, Type, ValueId,
};

use super::{Barrier, By, Manner, MappingId, Product, ProductId, Step, Steps, TimeLoop, Whole};
use crate::kernel::interpret::{Iteration, Memory};
use crate::kernel::name::Name;
use crate::kernel::stmt::Body;

/// The values of names.
type Names = BTreeMap<Name, Vec<Bits>>;

/// A factor of a product: its elements and its shape.
type Factor = (Vec<Bits>, Vec<i64>);

/// A segment, and what its steps are made of.
pub(crate) struct Segment<'a> {
    pub program: &'a Program,
    pub steps: &'a Steps<'a>,
    /// The statements that compute a value at program level.
    pub value: &'a (dyn Fn(ValueId) -> Body + Sync),
    /// An iteration of a parallel loop.
    pub iteration: &'a (dyn Fn(&Par) -> Body + Sync),
    /// The reductions of a parallel loop, all into arrays of no dimensions.
    pub reductions: &'a (dyn Fn(&Par) -> Vec<(Combine, ArrayId)> + Sync),
    /// The first range of the loops that are dealt out in this way.
    pub domain: &'a (dyn Fn(MappingId) -> (ValueId, ValueId) + Sync),
    /// Is a loop, or are loops of a mapping, over a domain that sums have too?
    pub is_beside_sums: &'a (dyn Fn(Dealt) -> bool + Sync),
    /// Does a thread, which is a block of its own here, keep to its leaves there? All of the one leaf are the last thread's.
    pub by_leaves: bool,
}

/// What is dealt out.
#[derive(Clone, Copy)]
pub(crate) enum Dealt<'p> {
    Loop(&'p Par),
    Elements(MappingId),
}

/// What is known of the reductions of a loop.
#[derive(Clone, Default)]
struct Results {
    totals: Vec<Option<Bits>>,
    before: Vec<Bits>,
}

/// What threads share.
struct Shared {
    /// The arrays, by place; a thread knows which place each name has for it.
    memory: Memory,
    /// What the leaves of the last two parallel loops with reductions came to, and what the elements held that they are for.
    results: [Results; 2],
    /// The local variables that thread 0 put where others find them.
    handed: BTreeMap<LocalId, Vec<Bits>>,
    /// The position in the order of the thread that runs.
    turn: usize,
}

impl Segment<'_> {
    /// What is left in memory after threads have run the segment, in this order between barriers.
    pub fn run(&self, memory: Memory, order: &[usize]) -> Memory {
        let places: Vec<usize> = (0..memory.arrays.len()).collect();
        let shared =
            Mutex::new(Shared { memory, results: Default::default(), handed: BTreeMap::new(), turn: 0 });
        let turns = Condvar::new();
        let ended = std::thread::scope(|scope| {
            let each = order.iter().enumerate().map(|(position, thread)| {
                let (shared, turns, places) = (&shared, &turns, places.clone());
                scope.spawn(move || {
                    let guard = wait(turns, lock(shared), position);
                    let mut one = Thread {
                        segment: self,
                        number: *thread,
                        threads: order.len(),
                        position,
                        turns,
                        shared: Some(guard),
                        names: Names::new(),
                        places,
                        waiting: BTreeMap::new(),
                        sums: Vec::new(),
                        turn: 0,
                    };
                    one.steps(self.steps);
                    assert!(one.waiting.is_empty(), "a product waits for ever");
                    one.pass_the_turn();
                    one.places
                })
            });
            let each: Vec<_> = each.collect();
            each.into_iter().map(|thread| thread.join().expect("a thread ends")).next_back()
        });
        // Every thread has the same names for the same places.
        let places = ended.expect("there are threads");
        let memory = shared.into_inner().unwrap_or_else(PoisonError::into_inner).memory;
        Memory { arrays: places.iter().map(|place| memory.arrays[*place].clone()).collect(), ..memory }
    }
}

fn lock(shared: &Mutex<Shared>) -> MutexGuard<'_, Shared> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

fn wait<'g>(turns: &Condvar, guard: MutexGuard<'g, Shared>, position: usize) -> MutexGuard<'g, Shared> {
    turns.wait_while(guard, |shared| shared.turn != position).unwrap_or_else(PoisonError::into_inner)
}

/// One thread. It has what all share while it is its turn.
struct Thread<'a> {
    segment: &'a Segment<'a>,
    number: usize,
    threads: usize,
    position: usize,
    turns: &'a Condvar,
    shared: Option<MutexGuard<'a, Shared>>,
    names: Names,
    /// By array: its place in memory.
    places: Vec<usize>,
    /// By matrix: the factors of products that wait for it.
    waiting: BTreeMap<ArrayId, Vec<Vec<Factor>>>,
    /// The sums of the last loop that all threads know.
    sums: Vec<Bits>,
    /// Which of the two places of results the last loop with reductions used.
    turn: usize,
}

impl Thread<'_> {
    fn shared(&mut self) -> &mut Shared {
        self.shared.as_mut().expect("it is its turn")
    }

    fn pass_the_turn(&mut self) {
        let threads = self.threads;
        let mut guard = self.shared.take().expect("it is its turn");
        guard.turn = (guard.turn + 1) % threads;
        drop(guard);
        self.turns.notify_all();
    }

    fn barrier(&mut self) {
        let (threads, position) = (self.threads, self.position);
        let mut guard = self.shared.take().expect("it is its turn");
        guard.turn = (guard.turn + 1) % threads;
        self.turns.notify_all();
        self.shared = Some(wait(self.turns, guard, position));
    }

    /// Runs a body with these names on the arrays as this thread knows them; what names it leaves.
    fn body(&mut self, body: &Body, names: Names, lane: usize) -> Names {
        let places = self.places.clone();
        let memory = &mut self.shared().memory;
        let arrays = places.iter().map(|place| std::mem::take(&mut memory.arrays[*place])).collect();
        let slots = std::mem::replace(&mut memory.arrays, arrays);
        let none = |_: ValueId| -> i64 { unreachable!("nothing wraps at program level") };
        let mut one = Iteration::new(memory, &none, []);
        (one.names, one.lane) = (names, lane);
        one.run(body).expect("no test meets a fault");
        let names = one.names;
        let arrays = std::mem::replace(&mut memory.arrays, slots);
        places.iter().zip(arrays).for_each(|(place, array)| memory.arrays[*place] = array);
        names
    }

    fn value(&self, v: ValueId) -> Bits {
        self.segment
            .program
            .literal(v)
            .map_or_else(|| self.names[&Name::value(v)][0], |literal| literal.bits())
    }

    /// The part of a range that this thread has.
    fn share(&self, (from, to): (i64, i64)) -> (i64, i64) {
        let (extent, threads) = ((to - from).max(0), self.threads as i64);
        let begin = |part: usize| from + extent * part as i64 / threads;
        (begin(self.number), begin(self.number + 1))
    }

    /// Runs steps in order. The depth of recursion is that of nesting in the source.
    fn steps(&mut self, steps: &Steps) {
        steps.iter().for_each(|step| self.step(step));
    }

    fn step(&mut self, step: &Step) {
        match step {
            Step::Barrier(Barrier::Always) => self.barrier(),
            Step::Barrier(Barrier::UnlessByLeaves(_)) if !self.segment.by_leaves => self.barrier(),
            Step::Barrier(_) | Step::SameShape(..) => {}
            Step::Let(v) => {
                let body = (self.segment.value)(*v);
                let names = std::mem::take(&mut self.names);
                self.names = self.body(&body, names, 0);
            }
            Step::Set(local, v) => {
                let value = self.value(*v);
                self.names.insert(Name::local(*local), vec![value]);
            }
            Step::Store { store, how, by } => {
                let index: Vec<i64> = store.index.as_slice().iter().map(|v| self.value(*v) as i64).collect();
                let mine = match by {
                    By::First | By::Anyone | By::Block(_) | By::Leaf(_) => self.number == 0,
                    By::Owner(mapping) if self.has_all(Dealt::Elements(*mapping)) => {
                        self.number + 1 == self.threads
                    }
                    By::Owner(mapping) => {
                        let (from, to) = (self.segment.domain)(*mapping);
                        let (from, to) = (self.value(from) as i64, self.value(to) as i64);
                        let (first, end) = self.share((from, to));
                        (first..end).contains(&index[0].clamp(from, to - 1))
                    }
                };
                let (value, ty) = (self.value(store.value), self.segment.program.array(store.array).ty);
                if mine {
                    self.change(store.array, &index, |old| {
                        how.map_or(value, |how| combine(how, ty, old, value))
                    });
                }
            }
            Step::Swap(a, b) => self.places.swap(a.index(), b.index()),
            Step::Whole(whole) => self.whole(*whole),
            Step::If { condition, then, otherwise } => {
                let holds = self.value(*condition) != 0;
                self.steps(if holds { then } else { otherwise });
            }
            Step::Loop(l) => self.time_loop(l),
            Step::Alone(steps, locals) => {
                if self.number == 0 {
                    self.steps(steps);
                    let handed = locals.iter().map(|l| (*l, self.names[&Name::local(*l)].clone()));
                    let handed: Vec<(LocalId, Vec<Bits>)> = handed.collect();
                    self.shared().handed.extend(handed);
                }
            }
            Step::Take(locals) => {
                // Without a barrier before it there may be none yet.
                let handed = &self.shared().handed;
                let taken: Vec<_> =
                    locals.iter().filter_map(|l| Some((*l, handed.get(l)?.clone()))).collect();
                self.names.extend(taken.into_iter().map(|(l, value)| (Name::local(l), value)));
            }
            Step::Interchanged(_, steps) | Step::Par(_, steps) => self.steps(steps),
            Step::Iterations(par, manner) => self.iterations(par, *manner),
            Step::CombineLeaves(par) => self.combine_leaves(par),
            Step::CombineForAll(par) => self.combine_for_all(par),
            Step::Sum(v, _, number) => {
                // Without a barrier before it there may be none yet.
                let sum = self.sums.get(*number).copied().unwrap_or_default();
                self.names.insert(Name::value(*v), vec![sum]);
            }
            Step::Library(_, steps) => self.steps(steps),
            Step::Operation(call, when) => self.product(call, *when),
            Step::Settle(matrix) => {
                let waiting = self.waiting.remove(matrix).unwrap_or_default();
                waiting.iter().for_each(|factors| self.add_product(*matrix, factors));
            }
            other => unreachable!("no test has {other:?}"),
        }
    }

    /// Has one thread all of it?
    fn has_all(&self, dealt: Dealt) -> bool {
        self.segment.by_leaves && (self.segment.is_beside_sums)(dealt)
    }

    fn time_loop(&mut self, l: &TimeLoop) {
        let until = |thread: &Self| l.source.until.is_some_and(|until| thread.value(until) != 0);
        match &l.source.kind {
            LoopKind::For { var, from, to } => {
                let (from, to) = (self.value(*from) as i64, self.value(*to) as i64);
                for at in from..to {
                    self.names.insert(Name::value(*var), vec![at as Bits]);
                    self.steps(&l.body);
                    if until(self) {
                        return;
                    }
                }
            }
            LoopKind::While { condition, .. } => loop {
                self.steps(&l.head);
                if self.value(*condition) == 0 {
                    return;
                }
                self.steps(&l.body);
                if until(self) {
                    return;
                }
            },
            LoopKind::Forever => unreachable!("no test runs for ever"),
        }
    }

    fn change(&mut self, array: ArrayId, index: &[i64], to: impl FnOnce(Bits) -> Bits) {
        let place = self.places[array.index()];
        let memory = &mut self.shared().memory;
        let at = index.iter().zip(&memory.shapes[array.index()]).fold(0, |at, (i, extent)| at * extent + i);
        let element = &mut memory.arrays[place][at as usize];
        *element = to(*element);
    }

    fn whole(&mut self, whole: Whole) {
        let (to, value) = match whole {
            Whole::Fill(a, v) => (a, Some(self.value(v))),
            Whole::Clear(a) => (a, Some(0)),
            Whole::Copy { to, .. } => (to, None),
            Whole::Keep(_) | Whole::Restore(_) => unreachable!("no test has regions"),
        };
        let place = self.places[to.index()];
        let from = if let Whole::Copy { from, .. } = whole { self.places[from.index()] } else { place };
        let length = self.shared().memory.arrays[place].len() as i64;
        // Of the one element of an array thread 0 takes care.
        let own = (0, i64::from(self.number == 0));
        let (first, end) = if length == 1 { own } else { self.share((0, length)) };
        let memory = &mut self.shared().memory;
        for k in first as usize..end as usize {
            memory.arrays[place][k] = value.unwrap_or(memory.arrays[from][k]);
        }
    }

    /// The iterations of a parallel loop that this thread runs: a share of the first range, or, since they are few, the one leaf,
    /// which the last thread takes.
    fn iterations(&mut self, par: &Par, manner: Manner) {
        let body = (self.segment.iteration)(par);
        let sums = (self.segment.reductions)(par);
        let bounds: Vec<(i64, i64)> =
            par.ranges.iter().map(|r| (self.value(r.from) as i64, self.value(r.to) as i64)).collect();
        let mut mine = bounds.clone();
        if !sums.is_empty() {
            self.turn ^= 1;
        }
        let turn = self.turn;
        if self.number == 0 && !sums.is_empty() {
            // Nobody else touches them before all meet.
            let places: Vec<usize> = sums.iter().map(|(_, array)| self.places[array.index()]).collect();
            let shared = self.shared();
            shared.results[turn].before =
                places.iter().map(|place| shared.memory.arrays[*place][0]).collect();
        }
        match manner {
            Manner::Shares if !self.has_all(Dealt::Loop(par)) => mine[0] = self.share(bounds[0]),
            Manner::Tiles(product) => mine[0] = self.rows_of_product(product, bounds[0]),
            _ if self.number + 1 == self.threads => {}
            _ => return,
        }
        let ty = |array: ArrayId| self.segment.program.array(array).ty;
        let typed: Vec<(Combine, Type)> = sums.iter().map(|(how, array)| (*how, ty(*array))).collect();
        let lanes = |(how, ty): &(Combine, Type)| (vec![neutral(*how, *ty); LANES], false);
        self.shared().memory.reductions = typed.iter().map(lanes).collect();
        let mut all = vec![Vec::new()];
        for (from, to) in &mine {
            let longer = |at: &Vec<i64>| (*from..*to).map(|k| [&at[..], &[k]].concat()).collect::<Vec<_>>();
            all = all.iter().flat_map(longer).collect();
        }
        for at in all {
            let mut names = self.names.clone();
            let variables = par.ranges.iter().zip(&at);
            names.extend(variables.map(|(range, at)| (Name::value(range.var), vec![*at as Bits])));
            let column = at[at.len() - 1] - bounds[bounds.len() - 1].0;
            self.body(&body, names, column as usize % LANES);
        }
        let lanes = std::mem::take(&mut self.shared().memory.reductions);
        let total = |((mut lanes, any), (how, ty)): ((Vec<Bits>, bool), &(Combine, Type))| {
            let mut width = LANES / 2;
            while width > 0 {
                (0..width)
                    .for_each(|lane| lanes[lane] = combine(*how, *ty, lanes[lane], lanes[lane + width]));
                width /= 2;
            }
            any.then(|| combine(*how, *ty, neutral(*how, *ty), lanes[0]))
        };
        let totals = lanes.into_iter().zip(&typed).map(total).collect();
        if !sums.is_empty() {
            self.shared().results[turn].totals = totals;
        }
    }

    /// Those of some rows that this thread has of a product, and those outside of it that are nearest to them.
    fn rows_of_product(&mut self, product: ProductId, (from, to): (i64, i64)) -> (i64, i64) {
        let call = product_of(self.segment.steps, product).expect("a loop keeps to a product of its segment");
        let rows = self.shared().memory.shapes[call.writes[0].index()][0];
        let (first, end) = self.share((0, rows));
        let first = if self.number == 0 { from } else { first.clamp(from, to) };
        (first, if self.number + 1 == self.threads { to } else { end.clamp(from, to) })
    }

    /// `c += aᵀ · b`: at once into this thread's part of the matrix, or later.
    fn product(&mut self, call: &LibraryCall, when: Product) {
        let (left, right, into) = (Layout::Transposed, Layout::Plain, Assign::Add);
        assert_eq!(call.op, LibraryOp::Matmul { left, right, into }, "no test has another operation");
        let (matrix, places) = (call.writes[0], self.places.clone());
        let factors = call.reads.iter().map(|array| {
            let memory = &self.shared().memory;
            (memory.arrays[places[array.index()]].clone(), memory.shapes[array.index()].clone())
        });
        let factors: Vec<Factor> = factors.collect();
        match when {
            Product::AtOnce | Product::Tiled { .. } => self.add_product(matrix, &factors),
            Product::Waits => self.waiting.entry(matrix).or_default().push(factors),
        }
    }

    /// Adds the product of two factors to this thread's rows of a matrix, term by term.
    fn add_product(&mut self, matrix: ArrayId, factors: &[Factor]) {
        let [(a, of_a), (b, of_b)] = factors else { unreachable!("a product has two factors") };
        let (ty, (first, end)) = (self.segment.program.array(matrix).ty, self.share((0, of_a[1])));
        for (i, j) in (first..end).flat_map(|i| (0..of_b[1]).map(move |j| (i, j))) {
            self.change(matrix, &[i, j], |old| {
                let factor = |k: i64| (a[(k * of_a[1] + i) as usize], b[(k * of_b[1] + j) as usize]);
                (0..of_a[0]).map(factor).fold(old, |sum, (x, y)| fma(ty, x, y, sum))
            });
        }
    }

    fn combine_leaves(&mut self, par: &Par) {
        if self.number != 0 {
            return;
        }
        let turn = self.turn;
        let totals = self.shared().results[turn].totals.clone();
        for ((how, array), total) in (self.segment.reductions)(par).into_iter().zip(totals) {
            let ty = self.segment.program.array(array).ty;
            self.change(array, &[], |old| total.map_or(old, |total| combine(how, ty, old, total)));
        }
    }

    /// Each thread looks at what there was, and not at the elements: thread 0 may have changed them.
    fn combine_for_all(&mut self, par: &Par) {
        let turn = self.turn;
        let Results { totals, before } = self.shared().results[turn].clone();
        self.sums.clear();
        for (((how, array), total), old) in (self.segment.reductions)(par).into_iter().zip(totals).zip(before)
        {
            let ty = self.segment.program.array(array).ty;
            let sum = total.map_or(old, |total| combine(how, ty, old, total));
            self.sums.push(sum);
            if self.number == 0 {
                self.change(array, &[], |_| sum);
            }
        }
    }
}

/// The operation that has this number as a product. The depth of recursion is that of nesting in the source.
fn product_of<'p>(steps: &Steps<'p>, product: ProductId) -> Option<&'p LibraryCall> {
    steps.iter().find_map(|step| match step {
        Step::Operation(call, Product::Tiled { id, .. }) if *id == product => Some(*call),
        _ => step.inner().find_map(|steps| product_of(steps, product)),
    })
}
