//! Running compiled code.

use std::collections::BTreeMap;
use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicI64, AtomicU32, Ordering};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::time::Instant;

use ebbtide_codegen::{
    COUNTERS, FaultReport, RoomForRuns, Target, Threads, Unit, c_unit, room_for_notes, room_for_runs,
    room_for_terms, sums_of_kept_terms,
};
use ebbtide_ir::passes::simplify_segments;
use ebbtide_ir::{
    ArrayId, Block, Facts, Fault, LoopId, Outcome, Place, Program, RegionId, Stmt, ValueId, enclosing, parts,
    walk,
};
use ebbtide_runtime::cache::{Cache, Found};
use ebbtide_runtime::{
    Backend, Counters, Error, Event, Executable, Frame, Result, Start, partial_sums, yielding_regions,
};

use crate::abi::{Count, GROUPS, Met, Packed, Shared, ThreadFrame, group};
use crate::code::{Code, Optimize, Recipe};
use crate::compiler::Compiler;
use crate::leave_vectors::leave_vectors;
use crate::operation::{Context, call};
use crate::pool::Pool;
use crate::staging::Staging;
use crate::term_counts::{Part, TermCounts};
use crate::work::{Given, is_countable};

/// Sleeps until the generation is no longer the one that the caller has seen.
unsafe extern "C" fn sleep(shared: *const Shared, seen: u32) {
    // SAFETY (*Liveness*): the words belong to the launch that the calling thread is part of; all that other threads write
    // meanwhile is atomic.
    let (generation, sleepers, slept) =
        unsafe { (&(*shared).met_at.generation, &(*shared).met_at.sleepers, &(*shared).slept) };
    let begun = now();
    sleepers.fetch_add(1, Ordering::SeqCst);
    while generation.load(Ordering::SeqCst) == seen {
        atomic_wait::wait(generation, seen);
    }
    sleepers.fetch_sub(1, Ordering::SeqCst);
    slept.fetch_add(now() - begun, Ordering::Relaxed);
}

/// Wakes all threads of the launch that sleep.
unsafe extern "C" fn wake(shared: *const Shared) {
    // SAFETY (*Liveness*): as above.
    atomic_wait::wake_all(unsafe { &raw const (*shared).met_at.generation });
}

/// The CPU with a compiler.
pub(crate) struct Cpu {
    pub compiler: Compiler,
    pub cache: Cache,
    pub optimize: Optimize,
    pub pool: Arc<Pool>,
    pub counters: Arc<Counters>,
}

// SAFETY (*Faithful code*): the code is made from the text of what is given, and found again by the hash of that text;
// (*One memory*): the host's.
unsafe impl Backend for Cpu {
    fn name(&self) -> &str {
        "cpu"
    }

    fn counters(&self) -> Option<&Counters> {
        Some(&self.counters)
    }

    fn scratch_bytes(
        &self,
        program: &Program,
        facts: &Facts,
        value: &dyn Fn(ValueId) -> Option<i64>,
        elements: &dyn Fn(ArrayId) -> u64,
    ) -> u64 {
        let threads = self.pool.threads();
        let sums = if threads > 1 { sums_of_kept_terms(program, facts) } else { 0 };
        let notes = room_for_notes(program, facts, [&program.body], threads, value);
        let none = BTreeMap::new();
        let runs = room_for_runs((program, facts), [&program.body], value, elements, &none).bytes();
        runs + partial_sums(program, facts, value) + notes.max(room_for_terms(sums, [&program.body], value))
    }

    fn compile(
        &self,
        program: &Arc<Program>,
        facts: &Arc<Facts>,
        segments: &[&Block],
    ) -> Result<Arc<dyn Executable>> {
        let fail = |reason: String| Error::Compile {
            device: "cpu".to_string(),
            program: program.name.clone(),
            reason,
        };
        let threads = if self.pool.threads() > 1 { Threads::Several } else { Threads::One };
        let target = Target { threads, ..self.compiler.target };
        let unit = match simplify_segments(program, segments) {
            Ok(simple) => {
                let blocks: Vec<&Block> = simple.segments.iter().collect();
                c_unit(&simple.program, &simple.facts, &blocks, target)
            }
            Err(flaw) => {
                tracing::warn!(
                    program = program.name,
                    reason = flaw.message,
                    "compiled without simplifying it"
                );
                self.counters.add(Event::Unsimplified, 1);
                c_unit(program, facts, segments, target)
            }
        };
        let unit = Arc::new(unit.map_err(|e| fail(e.to_string()))?);
        let recipe = Recipe {
            compiler: self.compiler.clone(),
            cache: self.cache.clone(),
            unit: unit.clone(),
            segments: segments.len(),
        };
        let countable = segments.iter().all(|segment| is_countable(program, segment));
        let (code, found) = tracing::debug_span!("cc", bytes = unit.source.len())
            .in_scope(|| Code::new(recipe, self.optimize, countable))
            .map_err(fail)?;
        self.counters.add(Event::Region, yielding_regions(segments));
        match found {
            Found::Hit => self.counters.add(Event::CacheHit, 1),
            Found::Built => self.counters.add(Event::Build, 1),
        };
        tracing::debug!(program = program.name, ?found, "compiled");
        let mut taped = false;
        for block in segments {
            walk(block, &mut |stmt| taped |= matches!(stmt, Stmt::Push(_) | Stmt::Pop(_)));
        }
        Ok(Arc::new(Native {
            program: program.clone(),
            unit,
            code,
            pool: self.pool.clone(),
            counters: self.counters.clone(),
            loops: (0..program.regions as usize)
                .map(|region| enclosing_loops(program, RegionId::from_index(region)))
                .collect(),
            taped,
            facts: facts.clone(),
            segments: segments.iter().map(|block| (*block).clone()).collect(),
            decided: Mutex::default(),
            staging: Mutex::default(),
            term_counts: Mutex::default(),
        }))
    }
}

struct Native {
    program: Arc<Program>,
    unit: Arc<Unit>,
    code: Arc<Code>,
    pool: Arc<Pool>,
    counters: Arc<Counters>,
    /// By region: the loops around it, outermost first.
    loops: Vec<Vec<LoopId>>,
    /// Does the program use tapes?
    taped: bool,
    facts: Arc<Facts>,
    segments: Vec<Block>,
    /// What was decided for the arguments of the last launch.
    decided: Mutex<Option<Arc<Decided>>>,
    /// Memory in which threads noted terms, for the next launch.
    staging: Mutex<Vec<Staging>>,
    /// Where threads counted terms in earlier launches.
    term_counts: Mutex<Vec<TermCounts>>,
}

/// What a launch that nobody can stop looks at.
static NEVER: AtomicBool = AtomicBool::new(false);

/// After so many passes threads that nothing else makes meet do so for the first time; then one of them knows how long a
/// pass takes.
const PASSES_APART: i64 = 16;

/// Nanoseconds since some moment.
extern "C" fn now() -> i64 {
    static START: LazyLock<Instant> = LazyLock::new(Instant::now);
    START.elapsed().as_nanos() as i64
}

/// What follows from the shapes and scalars of a launch.
struct Decided {
    shape: Vec<i64>,
    scalars: Vec<u64>,
    /// By segment: how many threads it is worth.
    threads: Vec<usize>,
    /// The most leaves of a reduction.
    leaves: usize,
    /// The bytes in which all threads together note or keep terms of sums.
    room: u64,
    /// Where they count terms.
    runs: RoomForRuns,
}

// SAFETY (*Bounds*): every index of the generated code is checked, or proved with arithmetic that cannot wrap;
// (*Exclusive access*): all threads have returned when `run` returns; (*Validity*): comparisons and conversions give 0 or 1;
// (*Exchange*): `swap` compares shapes, tapes have places of their array's size.
unsafe impl Executable for Native {
    fn source(&self) -> Option<&str> {
        Some(&self.unit.source)
    }

    fn packed_tapes(&self) -> &[ArrayId] {
        &self.unit.packed_tapes
    }

    fn run(&self, segment: usize, frame: &mut Frame, start: Start<'_>) -> Result<Outcome> {
        self.run_segment(segment, frame, start)
    }
}

/// The private tables of one thread.
struct Private {
    data: Vec<*mut u8>,
    tapes: Vec<Vec<*mut u8>>,
    tape_heads: Vec<*mut *mut u8>,
    depth: Vec<i64>,
    counts: Part,
}

impl Private {
    fn of(frame: &Frame, taped: bool, packed: &[(ArrayId, Packed)], counts: Part) -> Private {
        // A program without tapes looks at none of their tables.
        let kept = if taped { &frame.tapes[..] } else { &[] };
        let mut tapes: Vec<Vec<*mut u8>> = kept.iter().map(|t| t.places.clone()).collect();
        let mut tape_heads: Vec<*mut *mut u8> = tapes.iter_mut().map(|places| places.as_mut_ptr()).collect();
        for (array, packed) in packed {
            tape_heads[array.index()] = (&raw const *packed).cast_mut().cast();
        }
        Private {
            data: frame.arrays.iter().map(|view| view.address).collect(),
            tape_heads,
            tapes,
            depth: kept.iter().map(|t| t.depth as i64).collect(),
            counts,
        }
    }
}

/// A raw address that threads of one launch may share.
struct Shareable<T>(*mut T);

impl<T> Clone for Shareable<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Shareable<T> {}

// SAFETY (*Exclusive access*): what is shared through it is either read only or written by one thread at a time, as the generated
// code's barriers see to.
unsafe impl<T> Send for Shareable<T> {}
// SAFETY (*Exclusive access*): as above.
unsafe impl<T> Sync for Shareable<T> {}

impl<T> Shareable<T> {
    fn get(self) -> *mut T {
        self.0
    }
}

impl Native {
    /// What the shapes and scalars of a launch decide; those of the last launch are remembered.
    fn decide(&self, shape: Vec<i64>, scalars: Vec<u64>, frame: &Frame) -> Arc<Decided> {
        let mut last = self.decided.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = last.as_ref()
            && known.shape == shape
            && known.scalars == scalars
        {
            return known.clone();
        }
        let given = Given { program: &self.program, views: &frame.arrays, scalars: &frame.arguments };
        let most = self.pool.threads();
        let threads = self.segments.iter().map(|s| given.threads(&self.facts, s, most)).collect();
        let leaves = if self.unit.reductions == 0 { 0 } else { given.leaves(&self.facts, &self.segments) };
        let notes = given.room_for_notes(&self.facts, &self.segments, self.pool.threads());
        let room = notes.max(given.room_for_terms(self.unit.kept_terms, &self.segments));
        let runs = given.room_for_runs(&self.facts, &self.segments, &self.unit.counted, &shape);
        let decided = Arc::new(Decided { shape, scalars, threads, leaves: leaves as usize, room, runs });
        *last = Some(decided.clone());
        decided
    }

    /// Memory for the notes of all threads: what the last launch left, if it is enough.
    fn staging(&self, bytes: u64) -> Staging {
        let left = self.staging.lock().unwrap_or_else(PoisonError::into_inner).pop();
        left.filter(|left| left.bytes() >= bytes).unwrap_or_else(|| Staging::of(bytes))
    }

    /// Memory for counts: what the last launch left, if it is enough.
    fn term_counts(&self, room: RoomForRuns) -> TermCounts {
        let left = self.term_counts.lock().unwrap_or_else(PoisonError::into_inner).pop();
        left.filter(|left| left.holds(room)).unwrap_or_else(|| TermCounts::of(room))
    }

    fn run_segment(&self, segment: usize, frame: &mut Frame, start: Start<'_>) -> Result<Outcome> {
        self.counters.add(Event::Launch, 1);
        // Its threads are the host's: whoever runs a piece waits for its end.
        self.counters.add(Event::Wait, 1);
        let shape: Vec<i64> = frame.extents(&self.program);
        let scalars: Vec<u64> = frame.arguments.iter().map(|l| l.bits()).collect();
        let decided = self.decide(shape, scalars, frame);
        let (shape, scalars) = (&decided.shape, &decided.scalars);
        let most = parts::current().and_then(|part| part.threads()).unwrap_or(usize::MAX);
        let worth = decided.threads.get(segment).copied().unwrap_or(1);
        let wanted = if worth > 1 { self.pool.team(now()).min(worth).min(most).max(1) } else { 1 };
        let context = Context { program: &self.program, unit: &self.unit, message: Mutex::default() };
        let mut shared = Shared {
            fault: 0,
            access: 0,
            dimension: 0,
            index: 0,
            extent: 0,
            at: [0; COUNTERS],
            stop: frame.cancel.as_ref().map_or(&raw const NEVER, |cancel| cancel.word()),
            done: &raw const *frame.done,
            apart: [0; 2],
            met: if wanted > 1 { now() } else { 0 },
            now,
            spins: self.pool.spins(),
            group: group(wanted),
            slept: AtomicI64::new(0),
            sleep,
            wake,
            outcome: 0,
            region: 0,
            reason: 0,
            // Custom operations are called while `context` lives.
            context: (&raw const context).cast(),
            call,
            met_at: Met { generation: AtomicU32::new(0), verdict: 0, sleepers: AtomicI32::new(0) },
            arrived: [Count::default(); GROUPS],
            groups: Count::default(),
        };
        let tapes = if self.taped { &frame.tapes[..] } else { &[] };
        let capacity: Vec<i64> = tapes.iter().map(|t| t.capacity() as i64).collect();
        // Threads only read these tables: no memory is exchanged with places on such tapes.
        let packed: Vec<(ArrayId, Packed)> = self.packed(frame)?;
        let mut passes = vec![0i64; self.program.loops as usize];
        let mut partials: Vec<u64> = Vec::new();
        if self.unit.reductions > 0 {
            partials.resize(self.unit.reductions * (decided.leaves + 1), 0);
        }
        // One thread notes nothing, but keeps terms.
        let alone = wanted == 1 && self.unit.kept_terms == 0;
        let mut staging = if alone { Staging::default() } else { self.staging(decided.room) };
        let staging_at = Shareable(staging.address());
        let mut counts = self.term_counts(decided.runs);
        let part = counts.part();
        let resume = match start {
            Start::Beginning => -1,
            Start::At(place) => {
                let loops = self.loops.get(place.region.index()).map_or(&[][..], Vec::as_slice);
                for (l, pass) in loops.iter().zip(&place.iterations) {
                    passes[l.index()] = *pass as i64;
                }
                place.region.index() as i64
            }
        };
        let entry = self.code.entry(segment, || {
            let given = Given { program: &self.program, views: &frame.arrays, scalars: &frame.arguments };
            given.work(&self.segments[segment])
        });
        let measured = self.code.can_improve().then(|| now());
        let bounds = Shareable(frame.scalars.bounds.as_mut_ptr());
        let kept = &frame.kept;
        let mut privates: Vec<Private> =
            (0..wanted).map(|_| Private::of(frame, self.taped, &packed, part)).collect();
        let enter = |thread: usize,
                     threads: usize,
                     private: &mut Private,
                     shared: *mut Shared,
                     tables: [*mut u64; 3],
                     passes: *mut i64| {
            let mut own = ThreadFrame {
                data: private.data.as_mut_ptr(),
                shape: shape.as_ptr(),
                tape: private.tape_heads.as_mut_ptr(),
                depth: private.depth.as_mut_ptr(),
                capacity: capacity.as_ptr(),
                values: tables[0],
                locals: tables[1],
                passes,
                bounds: bounds.get(),
                kept: kept.as_ptr(),
                scalars: scalars.as_ptr(),
                partials: tables[2],
                places: decided.leaves as i64,
                staging: staging_at.get(),
                room: staging.part(threads),
                staged: staging.bytes() as i64,
                shared,
                thread: thread as i64,
                threads: threads as i64,
                resume,
                passed: 0,
                apart: PASSES_APART,
                looks: 0,
                runs: std::ptr::null_mut(),
                counts: private.counts.counts,
                later: private.counts.later,
                finished: private.counts.sums,
                countable: private.counts.elements,
                summable: private.counts.bytes,
                counted: 0,
                summed: 0,
                epoch: private.counts.epoch,
                fills: 0,
            };
            // SAFETY (*Bounds*, *Exclusive access*): every table has an entry for each identifier of the program
            // that the code was made from; arrays are owned or exclusively borrowed by the launch; indices are
            // checked or proved in the code itself.
            unsafe { entry(&mut own) };
            leave_vectors();
            private.counts.epoch = own.epoch;
        };
        let tables = [
            Shareable(frame.scalars.values.as_mut_ptr()),
            Shareable(frame.scalars.locals.as_mut_ptr()),
            Shareable(partials.as_mut_ptr()),
        ];
        let (shared_at, passes_at) = (Shareable(&raw mut shared), Shareable(passes.as_mut_ptr()));
        let together = wanted > 1 && {
            let all = Shareable(privates.as_mut_ptr());
            let job = |thread: usize| {
                // A thread that does not arrive keeps the others waiting: what a subscriber throws ends here.
                let span = catch_unwind(|| tracing::trace_span!("thread", thread).entered());
                // SAFETY (*Exclusive access*): each thread has a number of its own, below `wanted`.
                let private = unsafe { &mut *all.get().add(thread) };
                enter(thread, wanted, private, shared_at.get(), tables.map(Shareable::get), passes_at.get());
                drop(catch_unwind(AssertUnwindSafe(|| drop(span))));
            };
            let begun = now();
            // *Exclusive access*: the closure's captures are `Shareable` or read only.
            let ran = self.pool.run(wanted, AssertShared(job).into_fn()).is_some();
            if ran {
                self.counters.add(Event::Shared, 1);
                let end = now();
                // SAFETY (*Exclusive access*): all threads have ended.
                let slept = unsafe { (*shared_at.get()).slept.load(Ordering::Relaxed) };
                self.pool.ended(end, wanted, end - begun, slept);
            }
            ran
        };
        if !together {
            enter(0, 1, &mut privates[0], shared_at.get(), tables.map(Shareable::get), passes_at.get());
        }
        // Behind a fault threads may have counted different loops: such counts are given back.
        if shared.fault == 0 && decided.runs.elements > 0 {
            counts.ended(&privates[0].counts);
            self.term_counts.lock().unwrap_or_else(PoisonError::into_inner).push(counts);
        }
        if staging.bytes() > 0 {
            self.staging.lock().unwrap_or_else(PoisonError::into_inner).push(staging);
        }
        if let Some(begun) = measured {
            self.code.ran(now() - begun);
        }
        let first = &privates[0];
        for (view, address) in frame.arrays.iter_mut().zip(&first.data) {
            view.address = *address;
        }
        for ((tape, places), depth) in frame.tapes.iter_mut().zip(&first.tapes).zip(&first.depth) {
            tape.places.clone_from(places);
            tape.depth = *depth as usize;
        }
        let message = context.message.into_inner().unwrap_or_else(PoisonError::into_inner);
        self.outcome(&shared, frame, &passes, message)
    }

    /// The packed tapes of a frame.
    fn packed(&self, frame: &Frame) -> Result<Vec<(ArrayId, Packed)>> {
        let tape = |array: &ArrayId| {
            let tape = &frame.tapes[array.index()];
            if !tape.places.is_empty() {
                let reason = "a tape that should be packed is a table: a flaw of Ebbtide".to_string();
                return Err(Error::Device { device: "cpu".to_string(), reason });
            }
            Ok((*array, Packed { pieces: tape.pieces.as_ptr(), count: tape.pieces.len() as i64 }))
        };
        self.unit.packed_tapes.iter().map(tape).collect()
    }

    fn outcome(&self, shared: &Shared, frame: &Frame, passes: &[i64], message: String) -> Result<Outcome> {
        let fault = match shared.fault {
            0 if shared.outcome == 0 => return Ok(Outcome::Done),
            0 => {
                let region = RegionId::from_index(shared.region as usize);
                let loops = self.loops.get(region.index()).map_or(&[][..], Vec::as_slice);
                let place =
                    Place { region, iterations: loops.iter().map(|l| passes[l.index()] as u64).collect() };
                return Ok(Outcome::Yielded { place, reason: shared.reason });
            }
            8 => {
                let call = self.unit.calls.get(shared.access as usize);
                Fault::Operation {
                    operation: call.map_or(String::new(), |call| call.name(&self.program).to_string()),
                    message,
                    site: call.and_then(|call| call.site.clone()),
                }
            }
            kind => {
                let Shared { access, dimension, index, extent, at, .. } = *shared;
                let report = FaultReport { kind, access, dimension, index, extent, at };
                self.unit.fault(&self.program, report, |id| &frame.arrays[id.index()].shape)
            }
        };
        Err(Error::of_run(&self.program, fault))
    }
}

/// The loops around a region, outermost first.
fn enclosing_loops(program: &Program, region: RegionId) -> Vec<LoopId> {
    let loops = enclosing(program, region).into_iter().filter_map(|stmt| match stmt {
        Stmt::Loop(l) => Some(l.id),
        _ => None,
    });
    loops.collect()
}

/// A job whose captures are shared between the threads of one launch under the launch's own rules.
struct AssertShared<F>(F);
// SAFETY (*Exclusive access*): see `Native::run_segment`: captures are read only, or partitioned by thread number.
unsafe impl<F> Send for AssertShared<F> {}
// SAFETY (*Exclusive access*): as above.
unsafe impl<F> Sync for AssertShared<F> {}

impl<F: Fn(usize)> AssertShared<F> {
    fn into_fn(self) -> impl Fn(usize) + Send + Sync {
        move |thread| self.call(thread)
    }

    fn call(&self, thread: usize) {
        (self.0)(thread);
    }
}

const _: () = assert!(size_of::<*const c_void>() == 8, "compiled code and its tables are 64-bit");
