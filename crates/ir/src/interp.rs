//! The interpreter: what a program means, in one small, obvious place. The oracle of all tests.

mod any_order;
mod checks;
mod elements;
pub mod evaluate;
mod library;
mod modes;
mod par;
mod poison;
mod position;
mod race_log;
mod runs;
mod sums;

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

use crate::analysis::leaf::LANES;
use crate::syntax::*;
use crate::verify::Facts;
use evaluate::Bits;

pub use checks::Checks;
pub use modes::{Dead, IterationOrder, Modes, Races, poison};

/// The elements of an array in host memory.
#[derive(Debug)]
pub enum Bytes<'a> {
    /// The caller's, to be read.
    Shared(&'a [u8]),
    /// The caller's, to be read and written.
    Exclusive(&'a mut [u8]),
    /// The program's own.
    Own(Vec<u8>),
}

impl Bytes<'_> {
    /// The bytes.
    pub fn read(&self) -> &[u8] {
        match self {
            Bytes::Shared(bytes) => bytes,
            Bytes::Exclusive(bytes) => bytes,
            Bytes::Own(bytes) => bytes,
        }
    }

    pub(crate) fn write(&mut self) -> &mut [u8] {
        match self {
            // The verifier lets no program write an array that it only borrows.
            Bytes::Shared(_) => &mut [],
            Bytes::Exclusive(bytes) => bytes,
            Bytes::Own(bytes) => bytes,
        }
    }
}

/// An array in host memory.
#[derive(Debug)]
pub struct HostArray<'a> {
    /// The extents.
    pub shape: Vec<i64>,
    /// The elements, last dimension fastest, in the byte order of the machine.
    pub bytes: Bytes<'a>,
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It reached the end.
    Done,
    /// It yielded at a region.
    Yielded {
        /// Where.
        place: Place,
        /// The value of the flag.
        reason: i64,
    },
}

/// What a program holds beside its arrays: it goes with a yielded run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scalars {
    /// All values; those that are not known at this place hold anything.
    pub values: Vec<Bits>,
    /// All local variables.
    pub locals: Vec<Bits>,
    /// The bounds of each `for`, as they were on entry.
    pub bounds: Vec<[i64; 2]>,
}

impl Scalars {
    /// Scalars for a run of this program, all zero.
    pub fn of(program: &Program) -> Scalars {
        Scalars {
            values: vec![0; program.values.len()],
            locals: vec![0; program.locals.len()],
            bounds: vec![[0; 2]; program.loops as usize],
        }
    }
}

/// Runs one program on one set of arrays.
#[derive(Debug)]
pub struct Machine<'p, 'a> {
    pub(crate) program: &'p Program,
    facts: &'p Facts,
    arguments: &'p [Literal],
    /// All arrays by identifier; temporaries too.
    pub arrays: Vec<HostArray<'a>>,
    /// All scalars.
    pub scalars: Scalars,
    /// The tape of each array: places that were taken before, and how many hold something now.
    pub tapes: Vec<Tape<'a>>,
    /// What the run does beyond the law.
    pub modes: Modes,
    /// Set by whoever wants the run to end.
    pub stop: Option<&'p AtomicBool>,
    /// Told how many iterations of the outermost loop are finished.
    pub done: Option<&'p AtomicI64>,
    /// The statements that the run is in, outermost first.
    pub(crate) trail: Vec<&'p Stmt>,
    iterations: Vec<u64>,
    /// The updates of the parallel loop that runs now which law 8 takes by leaves.
    reductions: HashMap<WriteId, Reduction>,
    /// Those that it takes run by run, and the elements to which they have added.
    by_runs: HashSet<WriteId>,
    runs: runs::Runs,
    /// The lane of the iteration that runs now.
    lane: usize,
    /// The parallel loop that runs now, where a mode wants to know of its iterations.
    underway: Option<Box<any_order::Underway<'p>>>,
    /// How many parallel loops have run under such a mode.
    executions: u64,
    /// Aliases of old contents that may still be read, where dead contents are poisoned.
    aliases: Vec<ArrayId>,
    /// Has the program a tape? Found out where dead contents are poisoned.
    records: Option<bool>,
}

/// The tape of one array.
#[derive(Debug, Default)]
pub struct Tape<'a> {
    /// Places for as many pushes.
    pub places: Vec<HostArray<'a>>,
    /// How many of them hold something.
    pub depth: usize,
}

/// The lanes of one update statement in the parallel loop that runs now.
#[derive(Debug)]
struct Reduction {
    how: Combine,
    ty: Type,
    lanes: [Bits; LANES],
    total: Bits,
    element: Option<(ArrayId, usize)>,
}

enum Flow {
    Next,
    Yield { region: RegionId, reason: i64 },
}

impl<'p, 'a> Machine<'p, 'a> {
    /// A machine for one run. `arrays` holds all arrays by identifier; temporaries are made by the machine and
    /// their places may hold anything.
    pub fn new(
        program: &'p Program,
        facts: &'p Facts,
        arguments: &'p [Literal],
        arrays: Vec<HostArray<'a>>,
    ) -> Self {
        let scalars = Scalars::of(program);
        Machine {
            program,
            facts,
            arguments,
            arrays,
            scalars,
            tapes: program.arrays.iter().map(|_| Tape::default()).collect(),
            modes: Modes::default(),
            stop: None,
            done: None,
            trail: Vec::new(),
            iterations: Vec::new(),
            reductions: HashMap::new(),
            by_runs: HashSet::new(),
            runs: runs::Runs::default(),
            lane: 0,
            underway: None,
            executions: 0,
            aliases: Vec::new(),
            records: None,
        }
    }

    /// Runs the program from its beginning.
    pub fn run(&mut self) -> Result<Outcome, Fault> {
        let program = self.program;
        if self.modes.dead == Dead::Poisoned {
            self.forget_temporaries();
        }
        self.go(|machine| machine.block(&program.body))
    }

    /// Continues at a region; scalars and temporaries must be what they were when it was left.
    pub fn resume(&mut self, place: &Place) -> Result<Outcome, Fault> {
        self.resume_block(&self.program.body, place)
    }

    /// Continues at a region of one block of the program; see [`Machine::resume`].
    pub fn resume_block(&mut self, block: &'p Block, place: &Place) -> Result<Outcome, Fault> {
        let Some(path) = path_in(block, place.region) else { return Ok(Outcome::Done) };
        let mut iterations = place.iterations.iter().copied();
        self.go(|machine| machine.enter(block, &path, &mut iterations))
    }

    /// Runs one block of the program, with what earlier blocks left.
    pub fn run_block(&mut self, block: &'p Block) -> Result<Outcome, Fault> {
        self.go(|machine| machine.block(block))
    }

    fn go(&mut self, run: impl FnOnce(&mut Self) -> Result<Flow, Fault>) -> Result<Outcome, Fault> {
        self.iterations.clear();
        self.trail.clear();
        self.underway = None;
        Ok(match run(self)? {
            Flow::Next => Outcome::Done,
            Flow::Yield { region, reason } => {
                let iterations = std::mem::take(&mut self.iterations);
                Outcome::Yielded { place: Place { region, iterations }, reason }
            }
        })
    }

    // ---- statements; the depth of recursion is the depth of nesting in the source

    fn block(&mut self, block: &'p Block) -> Result<Flow, Fault> {
        if self.stop.is_some_and(|stop| stop.load(Ordering::Relaxed)) {
            return Err(Fault::Stopped);
        }
        let flow = self.rest(block, 0)?;
        if let (Flow::Next, Dead::Poisoned) = (&flow, self.modes.dead) {
            self.forget_declared(block);
        }
        Ok(flow)
    }

    fn rest(&mut self, block: &'p Block, from: usize) -> Result<Flow, Fault> {
        for stmt in &block[from..] {
            if let yielded @ Flow::Yield { .. } = self.stmt(stmt)? {
                return Ok(yielded);
            }
        }
        Ok(Flow::Next)
    }

    /// Runs a block from the statement that `path` leads into.
    fn enter(
        &mut self,
        block: &'p Block,
        path: &[Turn],
        iterations: &mut dyn Iterator<Item = u64>,
    ) -> Result<Flow, Fault> {
        let Some((turn, path)) = path.split_first() else { return self.block(block) };
        let stmt = &block[turn.child];
        let flow = self.within(stmt, |machine| match stmt {
            Stmt::Loop(l) => {
                let first = iterations.next().unwrap_or(0);
                machine.run_iterations(l, first, |machine| machine.enter(&l.body, path, iterations))
            }
            Stmt::If(branch) if turn.block == 1 => machine.enter(&branch.otherwise, path, iterations),
            Stmt::If(branch) => machine.enter(&branch.then, path, iterations),
            Stmt::Call(call) => machine.enter(&call.body, path, iterations),
            Stmt::Region(region) => machine.region(region),
            other => machine.stmt(other),
        })?;
        match flow {
            Flow::Next => self.rest(block, turn.child + 1),
            yielded => Ok(yielded),
        }
    }

    fn stmt(&mut self, stmt: &'p Stmt) -> Result<Flow, Fault> {
        match stmt {
            Stmt::Let(v) => self.scalars.values[v.index()] = self.compute(*v)?,
            Stmt::Declare(local, v) | Stmt::Set(local, v) => {
                self.scalars.locals[local.index()] = self.bits(*v)
            }
            Stmt::Store(s) => {
                let at = self.element(s.array, s.index, &s.site)?;
                self.note(s.array, at, Touched::Written, &s.site);
                self.write(s.array, at, self.bits(s.value));
                self.check_element(s.array, at, &s.site)?;
            }
            Stmt::Update(how, s) => self.update(*how, s)?,
            Stmt::Claim(claim) => self.claim(claim)?,
            Stmt::If(branch) if self.program.print(branch).is_some() => {
                let flow = self.within(stmt, |machine| machine.block(&branch.then))?;
                self.print(branch);
                return Ok(flow);
            }
            Stmt::If(branch) if self.bits(branch.condition) != 0 => {
                return self.within(stmt, |machine| machine.block(&branch.then));
            }
            Stmt::If(branch) => return self.within(stmt, |machine| machine.block(&branch.otherwise)),
            Stmt::Loop(l) => return self.within(stmt, |machine| machine.sequential(l)),
            Stmt::Par(par) => {
                self.within(stmt, |machine| machine.par(par))?;
                self.forget_aliases();
            }
            Stmt::Region(region) => return self.within(stmt, |machine| machine.region(region)),
            Stmt::Call(call) => return self.within(stmt, |machine| machine.block(&call.body)),
            Stmt::Swap(a, b) => {
                self.equal_shapes(*a, *b)?;
                self.arrays.swap(a.index(), b.index());
            }
            Stmt::Fill(a, v, _) => {
                self.fill(*a, self.bits(*v));
                self.check_arrays(&[*a], &None)?;
            }
            Stmt::Copy { from, to, .. } => {
                self.equal_shapes(*from, *to)?;
                let copy = self.arrays[from.index()].bytes.read().to_vec();
                self.arrays[to.index()].bytes.write().copy_from_slice(&copy);
            }
            Stmt::Library(call) => {
                self.library(call)?;
                self.forget_aliases();
                self.check_arrays(&call.writes, &call.site)?;
            }
            Stmt::Temp(a) => {
                self.temp(*a);
                if self.program.undefined.contains(a) {
                    self.forget(*a);
                }
            }
            Stmt::Push(push) => self.push(*push)?,
            Stmt::Pop(a) => self.pop(*a)?,
            // The driver of a sweep runs its blocks one by one.
            Stmt::Forward(_) | Stmt::Backward(_) | Stmt::Host(..) => return Err(Fault::Sweep),
        }
        Ok(Flow::Next)
    }

    /// Prints the line of a branch.
    fn print(&self, branch: &Branch) {
        let Some(print) = self.program.print(branch) else { return };
        let line = print.line(|v| Literal::from_bits(self.program.ty(v), self.bits(v)));
        match print.stream {
            Stream::Out => println!("{line}"),
            Stream::Error => eprintln!("{line}"),
        }
    }

    fn sequential(&mut self, l: &'p Loop) -> Result<Flow, Fault> {
        match &l.kind {
            LoopKind::For { var, from, to } => {
                let bounds = [self.bound(*from)?, self.bound(*to)?];
                self.scalars.bounds[l.id.index()] = bounds;
                if bounds[0] >= bounds[1] {
                    return Ok(Flow::Next);
                }
                if !l.sums.is_empty() {
                    return self.summed(l, *var, bounds);
                }
            }
            LoopKind::While { .. } if !self.goes_on(l)? => return Ok(Flow::Next),
            _ => {}
        }
        self.run_iterations(l, 0, |machine| machine.block(&l.body))
    }

    /// Runs a loop from iteration `first` on, whose condition holds; `start` runs the body of that iteration.
    fn run_iterations(
        &mut self,
        l: &'p Loop,
        first: u64,
        start: impl FnOnce(&mut Self) -> Result<Flow, Fault>,
    ) -> Result<Flow, Fault> {
        let mut start = Some(start);
        self.iterations.push(first);
        let depth = self.iterations.len();
        loop {
            let iteration = self.iterations[depth - 1];
            self.tell(depth, iteration);
            if let LoopKind::For { var, .. } = l.kind {
                let [from, _] = self.scalars.bounds[l.id.index()];
                self.scalars.values[var.index()] = from.wrapping_add(iteration as i64) as Bits;
            }
            let flow = match start.take() {
                Some(start) => start(self)?,
                None => self.block(&l.body)?,
            };
            if let Flow::Yield { .. } = flow {
                return Ok(flow);
            }
            self.iterations[depth - 1] += 1;
            if l.until.is_some_and(|until| self.bits(until) != 0) {
                break;
            }
            if !self.goes_on(l)? {
                break;
            }
        }
        self.tell(depth, self.iterations[depth - 1]);
        self.iterations.pop();
        Ok(Flow::Next)
    }

    /// Tells how many iterations of a loop at this depth are finished, where that is wanted.
    fn tell(&self, depth: usize, finished: u64) {
        if let (1, Some(done)) = (depth, self.done) {
            done.store(finished as i64, Ordering::Relaxed);
        }
    }

    /// Does the loop begin another iteration?
    fn goes_on(&mut self, l: &'p Loop) -> Result<bool, Fault> {
        Ok(match &l.kind {
            LoopKind::For { .. } => {
                let done = self.iterations.last().map_or(0, |iteration| *iteration as i64);
                let [from, to] = self.scalars.bounds[l.id.index()];
                from.wrapping_add(done) < to
            }
            LoopKind::While { head, condition } => {
                self.block(head)?;
                self.bits(*condition) != 0
            }
            LoopKind::Forever => true,
        })
    }

    fn region(&mut self, region: &'p Region) -> Result<Flow, Fault> {
        let undone = Undone::by(region);
        let arrays: Vec<Vec<u8>> =
            undone.arrays.iter().map(|a| self.arrays[a.index()].bytes.read().to_vec()).collect();
        let locals: Vec<Bits> = undone.locals.iter().map(|l| self.scalars.locals[l.index()]).collect();
        self.block(&region.body)?;
        let Some(flag) = region.flag else { return Ok(Flow::Next) };
        let reason =
            Literal::from_bits(self.program.array(flag).ty, self.read(flag, 0)).to_i64().unwrap_or(0);
        if reason == 0 {
            return Ok(Flow::Next);
        }
        for (array, bytes) in undone.arrays.iter().zip(arrays) {
            self.arrays[array.index()].bytes.write().copy_from_slice(&bytes);
        }
        for (local, bits) in undone.locals.iter().zip(locals) {
            self.scalars.locals[local.index()] = bits;
        }
        Ok(Flow::Yield { region: region.id, reason })
    }

    /// Finished iterations of the sequential loops that the run is in.
    pub(crate) fn iterations_done(&self) -> &[u64] {
        &self.iterations
    }
}
