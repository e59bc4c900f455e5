//! Running compiled code: one cooperative kernel per segment.

mod backend;
mod domains;
mod driven;
mod halos;
mod waiting;

use std::ffi::{CString, c_void};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use ebbtide_codegen::{FaultReport, TermRuns, Unit, Width, bytes_of_loop};
use ebbtide_ir::{ArrayId, LoopId, Outcome, Par, Place, Program, RegionId, leaf};
use ebbtide_runtime::cache::{Cache, Found};
use ebbtide_runtime::{Buffer, Counters, Error, Event, Executable, Frame, Result, Start, from_arguments};

use crate::batched_launch::{Waiting, Way};
use crate::compiler::{Architecture, Places, cubin};
use crate::gpu::{Gpu, Grid, Kernel, LARGEST_CLUSTER, Module};
use crate::hosted::Part;
use crate::parameters::Shared;
use crate::sys::Address;
use crate::tables::{Layout, Tables, Wanted};

pub(crate) use backend::Cuda;
use domains::{Domains, Size};

/// Loops of at most so many iterations are run by one block: its threads meet in nanoseconds, blocks in a microsecond.
const ONE_BLOCK: u64 = 2048;

/// The same where blocks hardly meet: then more of them are more multiprocessors.
const ONE_BLOCK_APART: u64 = 256;

/// An iteration whose loops run so often takes longer than blocks need to meet,
const LONG: u64 = 128;
/// unless so few threads are busy that they are no burden to one another.
const FEW_LONG: u64 = 64;

/// So many threads keep a multiprocessor from waiting for one of them alone.
const FEW_THREADS: u32 = 128;

/// Does somebody who looks for a fault want no clusters?
fn are_left_out() -> bool {
    static LEFT_OUT: OnceLock<bool> = OnceLock::new();
    *LEFT_OUT.get_or_init(|| {
        let names = std::env::var("EBBTIDE_WITHOUT").unwrap_or_default();
        names.split(',').any(|name| name.trim() == "clusters")
    })
}

/// How the threads of a segment share its work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Dealing {
    /// One block is enough.
    OneBlock,
    /// Several blocks meet often.
    Meeting,
    /// They hardly meet, or there are operations that deal out their work themselves.
    Apart,
    /// What an iteration does takes longer than blocks need to meet.
    Long,
}

struct Native {
    program: Arc<Program>,
    /// The program that the text was made from: the same values, simpler statements.
    simple: Arc<Program>,
    unit: Unit,
    /// Its code with narrow and with wide [`Places`], compiled when it is first wanted.
    loaded: [OnceLock<Loaded>; 2],
    /// The kernel that runs one segment after the other, compiled when it is first wanted, if it can be.
    batch: OnceLock<Option<(Module, Kernel)>>,
    target: Architecture,
    cache: Cache,
    domains: Vec<Domains>,
    /// The loops that count terms of sums at shared elements, without their bodies.
    counted: Vec<(Par, TermRuns)>,
    /// By segment: one kernel, or what the host drives.
    parts: Vec<Vec<Part>>,
    layout: Layout,
    /// By region: the loops around it, outermost first.
    loops: Vec<Vec<LoopId>>,
    /// Where leaves of reductions put their results and iterations note terms of ordered sums, and how many bytes that
    /// are. Launches take turns at it.
    partials: (Address, usize),
    /// Tables that earlier launches left.
    spare: Arc<Mutex<Vec<Tables>>>,
    /// Pinned memory that earlier exchanges left.
    staging: halos::Spare,
    gpu: Arc<Gpu>,
    counters: Arc<Counters>,
    blocks: Option<u32>,
}

/// How many words the results of reductions have: `EB_RESULTS` of the prelude, each.
fn leaves(unit: &Unit) -> usize {
    unit.reductions * 2 * (leaf::MOST as usize + 2)
}

/// Compiled code on the GPU.
struct Loaded {
    /// Of each part of the text: it stays loaded for the kernels.
    _modules: Vec<Module>,
    kernels: Vec<Kernel>,
    copier: Kernel,
}

impl Drop for Native {
    fn drop(&mut self) {
        self.gpu.release(self.partials.0);
    }
}

/// The tables of a frame, the size of each segment and the places that the code computes with: these do not change while the frame lives. The tables
/// go back to where they came from when the frame goes.
struct Aside {
    tables: Option<Tables>,
    home: Arc<Mutex<Vec<Tables>>>,
    sizes: Vec<Size>,
    grids: Vec<Option<Grid>>,
    places: Places,
    /// Where sums at shared elements are between batches of their terms.
    runs: Option<OpenRuns>,
    /// Steps that were asked for and not launched.
    waiting: Waiting,
    /// Did the last segment that was run yield, and is the host told?
    yielded: bool,
}

/// Memory that is given back behind all that was asked for.
struct OpenRuns {
    address: Address,
    gpu: Arc<Gpu>,
}

impl Drop for OpenRuns {
    fn drop(&mut self) {
        self.gpu.release(self.address);
    }
}

impl Drop for Aside {
    fn drop(&mut self) {
        if let Some(tables) = self.tables.take().filter(|tables| !tables.busy) {
            self.home.lock().unwrap_or_else(PoisonError::into_inner).push(tables.emptied());
        }
    }
}

impl Native {
    /// The code with these places.
    fn loaded(&self, places: Places) -> Result<&Loaded> {
        let cell = &self.loaded[places as usize];
        if let Some(loaded) = cell.get() {
            return Ok(loaded);
        }
        let target = Architecture { places, ..self.target.clone() };
        let modules = self.modules(&target)?;
        let kernels = (0..self.domains.len())
            .map(|k| {
                let (module, name) = (&modules[self.unit.parts[k]], format!("segment_{k}"));
                self.kernel(module, &name, self.threads(k), self.domains[k].whole_blocks)
            })
            .collect::<Result<Vec<Kernel>>>()?;
        let copier = self.kernel(&modules[0], "eb_copy_arrays", target.threads, false)?;
        Ok(cell.get_or_init(|| Loaded { _modules: modules, kernels, copier }))
    }

    /// The parts of the text, compiled at the same time and loaded.
    fn modules(&self, target: &Architecture) -> Result<Vec<Module>> {
        let parts = self.unit.part_count;
        if parts == 1 {
            return Ok(vec![self.module(target)?]);
        }
        let cores = std::thread::available_parallelism().map_or(1, |n| n.get());
        let next = AtomicUsize::new(0);
        let some = || {
            let mine = std::iter::repeat_with(|| next.fetch_add(1, Ordering::Relaxed));
            let compile = |part| (part, self.image(&Architecture { part: Some(part), ..target.clone() }));
            mine.take_while(|part| *part < parts).map(compile).collect::<Vec<_>>()
        };
        let mut images = std::thread::scope(|scope| {
            let others: Vec<_> = (1..cores.min(parts)).map(|_| scope.spawn(some)).collect();
            let first = some();
            let others = others.into_iter().flat_map(|other| other.join().unwrap_or_default());
            first.into_iter().chain(others).collect::<Vec<_>>()
        });
        images.sort_by_key(|(part, _)| *part);
        let images = images.into_iter().map(|(_, image)| image).collect::<Result<Vec<_>>>()?;
        if images.len() < parts {
            return Err(self.fail("a thread that compiled a part of the text ended early".to_string()));
        }
        let built = images.iter().any(|(_, found)| *found == Found::Built);
        self.note_build(if built { Found::Built } else { Found::Hit }, target);
        images.iter().map(|(image, _)| self.gpu.load(image)).collect()
    }

    fn fail(&self, reason: String) -> Error {
        Error::Compile { device: "cuda".to_string(), program: self.program.name.clone(), reason }
    }

    /// The text, compiled and loaded.
    fn module(&self, target: &Architecture) -> Result<Module> {
        let (image, found) = self.image(target)?;
        self.note_build(found, target);
        self.gpu.load(&image)
    }

    fn note_build(&self, found: Found, target: &Architecture) {
        match found {
            Found::Hit => self.counters.add(Event::CacheHit, 1),
            Found::Built => self.counters.add(Event::Build, 1),
        };
        tracing::debug!(program = self.program.name, ?found, places = ?target.places, kernels = ?target.kernels, "compiled");
    }

    /// The machine code of the text. Where somebody clears the cache before it is read, it is built again.
    fn image(&self, target: &Architecture) -> Result<(Vec<u8>, Found)> {
        /// How often that is done.
        const TRIES: usize = 3;
        let mut tries = 0;
        loop {
            let (path, found) = cubin(&self.unit.source, target, &self.cache).map_err(|e| self.fail(e))?;
            tries += 1;
            match std::fs::read(&path) {
                Ok(image) => return Ok((image, found)),
                Err(e) if e.kind() == std::io::ErrorKind::NotFound && tries < TRIES => {}
                Err(e) => return Err(self.fail(format!("{} could not be read: {e}", path.display()))),
            }
        }
    }

    fn kernel(&self, module: &Module, name: &str, threads: u32, room: bool) -> Result<Kernel> {
        let name = CString::new(name).map_err(|e| self.fail(e.to_string()))?;
        self.gpu.kernel(module, &name, threads, room)
    }

    /// Where leaves put their results, and where iterations note terms of ordered sums.
    fn scratch(&self, aside: &Aside) -> [Address; 3] {
        let partials = self.partials.0;
        [
            partials,
            partials + 8 * leaves(&self.unit) as u64,
            aside.runs.as_ref().map_or(0, |runs| runs.address),
        ]
    }

    /// Memory for the open runs of sums at shared elements, if a loop of this size may need it.
    fn open_runs(&self, frame: &Frame) -> Result<Option<OpenRuns>> {
        let value =
            |v| from_arguments(&self.simple, v, &frame.arrays, &frame.arguments).map(|bits| bits as i64);
        let shapes = frame.extents(&self.simple);
        let row = self.simple.extents_per_array();
        let extents = |array: ArrayId| shapes.iter().skip(row * array.index()).take(row);
        let elements = |array: ArrayId| extents(array).fold(1, |all: u64, n| all.saturating_mul(*n as u64));
        let of = |(par, runs): &(Par, TermRuns)| bytes_of_loop(&self.simple, (par, runs), &value, &elements);
        let bytes = self.counted.iter().map(of).max().unwrap_or(0);
        if bytes == 0 {
            return Ok(None);
        }
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        Ok(Some(OpenRuns { address: self.gpu.reserve(bytes)?, gpu: self.gpu.clone() }))
    }

    fn clear_partials(&self) -> Result<()> {
        // SAFETY (*Bounds*): as many bytes were reserved.
        unsafe { self.gpu.zero(self.partials.0, self.partials.1) }
    }

    /// The frame's tables, with what the frame says sent to them where they are new, or where a run is resumed after
    /// these passes: it takes all scalars from them.
    fn tables<'f>(
        &self,
        frame: &'f mut Frame,
        resumed: Option<&[i64]>,
    ) -> Result<(&'f mut Frame, Box<Aside>)> {
        if let Some(mut aside) = frame.aside.take().and_then(|aside| aside.downcast::<Aside>().ok()) {
            if let (Some(passes), Some(tables)) = (resumed, &mut aside.tables) {
                self.gpu.wait()?;
                tables.stage(&self.program, frame, passes)?;
            }
            return Ok((frame, aside));
        }
        let left = self.spare.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let mut tables = match left {
            Some(tables) => tables,
            None => Tables::new(&self.gpu, self.layout, self.program.arrays.len())?,
        };
        let beginning = vec![0; self.program.loops as usize];
        tables.stage(&self.program, frame, resumed.unwrap_or(&beginning))?;
        let grids = vec![None; self.domains.len()];
        let enormous = frame
            .arrays
            .iter()
            .zip(&self.program.arrays)
            .any(|(view, decl)| view.bytes / decl.ty.size() > i32::MAX as usize);
        let sizes: Vec<Size> = self.domains.iter().map(|domains| domains.size(&self.simple, frame)).collect();
        let places = if enormous { Places::Wide } else { Places::Narrow };
        let (tables, home, waiting) = (Some(tables), self.spare.clone(), Waiting::default());
        let runs = self.open_runs(frame)?;
        Ok((frame, Box::new(Aside { tables, home, sizes, grids, places, runs, waiting, yielded: false })))
    }

    /// How the threads of a segment of this size share its work.
    fn dealing(&self, segment: usize, size: &Size) -> Dealing {
        let apart = self.unit.widths.get(segment) == Some(&Width::Apart);
        let whole_blocks = self.domains[segment].whole_blocks;
        if size.passes >= LONG && size.threads > FEW_LONG && !whole_blocks {
            Dealing::Long
        } else if size.threads <= if apart { ONE_BLOCK_APART } else { ONE_BLOCK } {
            Dealing::OneBlock
        } else if apart || whole_blocks {
            Dealing::Apart
        } else {
            Dealing::Meeting
        }
    }

    /// The most threads that a block of a segment can have.
    fn threads(&self, segment: usize) -> u32 {
        match self.unit.widths.get(segment) {
            Some(Width::Half | Width::Apart) => self.target.threads / 2,
            _ => self.target.threads,
        }
    }

    /// How many blocks of how many threads a segment is worth.
    fn grid(&self, kernel: &Kernel, segment: usize, size: &Size) -> Grid {
        let most = kernel.most.min(self.target.blocks * self.gpu.multiprocessors).max(1);
        let threads = self.threads(segment);
        if let Some(blocks) = self.blocks {
            return Grid::of(blocks.clamp(1, most), threads);
        }
        // So few threads in a block as are needed to take all, if there are so many blocks.
        let narrowed = |blocks: u32, least: u32| {
            let each = size.threads.div_ceil(blocks.into()).min(threads.into()) as u32;
            each.next_power_of_two().clamp(least.min(threads), threads)
        };
        let wanted = |threads: u32| u32::try_from(size.threads.div_ceil(threads.into())).unwrap_or(u32::MAX);
        let whole_blocks = self.domains[segment].whole_blocks;
        let one_cluster = kernel.cluster > 1 && size.threads <= (LARGEST_CLUSTER * threads).into();
        match self.dealing(segment, size) {
            // Every multiprocessor helps.
            Dealing::Long => {
                let threads = narrowed(self.gpu.multiprocessors, 32);
                Grid::of(wanted(threads).min(most), threads)
            }
            Dealing::OneBlock => Grid::of(1, if whole_blocks { threads } else { narrowed(1, 32) }),
            // Small blocks on many multiprocessors are faster than large ones on few.
            Dealing::Meeting if one_cluster && !are_left_out() => {
                let threads = narrowed(kernel.cluster, FEW_THREADS);
                Grid::cluster(wanted(threads).next_power_of_two().min(kernel.cluster), threads)
            }
            Dealing::Apart if !whole_blocks => {
                let threads = narrowed(most, FEW_THREADS);
                Grid::of(wanted(threads).min(most), threads)
            }
            // The same, but more blocks take longer to meet.
            Dealing::Meeting if !whole_blocks => {
                let threads = narrowed(most, threads / 2);
                Grid::of(wanted(threads).min(most), threads)
            }
            Dealing::Meeting | Dealing::Apart => Grid::of(wanted(threads).min(most), threads),
        }
    }

    /// Asks for a kernel.
    fn start(&self, segment: usize, frame: &mut Frame, start: Start<'_>, wanted: Wanted) -> Result<()> {
        let mut resume = -1;
        let mut passes = None;
        if let Start::At(place) = start {
            let passes = passes.insert(vec![0i64; self.program.loops as usize]);
            let loops = self.loops.get(place.region.index()).map_or(&[][..], Vec::as_slice);
            loops.iter().zip(&place.iterations).for_each(|(l, pass)| passes[l.index()] = *pass as i64);
            resume = place.region.index() as i64;
        }
        let (frame, mut aside) = self.tables(frame, passes.as_deref())?;
        let launched = self.launch(segment, frame, &mut aside, resume, wanted);
        frame.aside = Some(aside);
        launched
    }

    /// Launches a kernel, after all that waits.
    fn launch(
        &self,
        segment: usize,
        frame: &Frame,
        aside: &mut Aside,
        resume: i64,
        wanted: Wanted,
    ) -> Result<()> {
        self.launch_waiting(frame, aside, Wanted::Nothing)?;
        aside.yielded = false;
        let kernel = &self.loaded(aside.places)?.kernels[segment];
        let size = &aside.sizes[segment];
        let grid = *aside.grids[segment].get_or_insert_with(|| self.grid(kernel, segment, size));
        let scratch = self.scratch(aside);
        let Some(tables) = &mut aside.tables else { return Err(lost()) };
        let launch = tables.launch(frame, scratch, resume, wanted, grid.blocks)?;
        let parameters: [*const c_void; 2] = [(&raw const launch).cast(), tables.extents.as_ptr().cast()];
        self.counters.add(Event::Launch, 1);
        // SAFETY (*Bounds*, *Exclusive access*): every table has an entry for each identifier of the program that the
        // kernel was made from; arrays are owned or exclusively borrowed by the launch; indices are checked or proved in
        // the code itself; kernels of one stream run one after the other.
        unsafe { self.gpu.launch(kernel, grid, &parameters) }
    }

    /// Waits for all that was asked for.
    fn finish(&self, frame: &mut Frame) -> Result<Outcome> {
        let (frame, mut aside) = self.tables(frame, None)?;
        self.counters.add(Event::Wait, 1);
        let fetched = self
            .launch_waiting(frame, &mut aside, Wanted::Report)
            .and_then(|()| aside.tables.as_mut().ok_or_else(lost)?.fetch(frame));
        aside.yielded = fetched.as_ref().is_ok_and(|(shared, _)| shared.outcome != 0);
        frame.aside = Some(aside);
        let (shared, passes) = fetched?;
        let Shared { fault: kind, access, dimension, index, extent, at, .. } = shared;
        match kind {
            0 if shared.outcome == 0 => Ok(Outcome::Done),
            0 => {
                let region = RegionId::from_index(shared.region as usize);
                let loops = self.loops.get(region.index()).map_or(&[][..], Vec::as_slice);
                let iterations = loops.iter().map(|l| passes[l.index()] as u64).collect();
                Ok(Outcome::Yielded { place: Place { region, iterations }, reason: shared.reason })
            }
            _ => {
                // A reduction may have been left half-way.
                self.clear_partials()?;
                let report = FaultReport { kind, access, dimension, index, extent, at };
                let fault = self.unit.fault(&self.program, report, |id| &frame.arrays[id.index()].shape);
                Err(Error::of_run(&self.program, fault))
            }
        }
    }
}

/// A frame keeps its tables as long as it lives: this is not met.
fn lost() -> Error {
    crate::gpu::failure("the tables of a launch were lost".to_string())
}

// SAFETY (*Bounds*): every index of the generated code is checked, or proved with arithmetic that cannot wrap;
// (*Exclusive access*): `run` and `settle` wait for the stream; (*Validity*): comparisons and conversions give 0 or 1;
// (*Exchange*): `swap` compares shapes, tapes have places of their array's size.
unsafe impl Executable for Native {
    fn source(&self) -> Option<&str> {
        Some(&self.unit.source)
    }

    fn run(&self, segment: usize, frame: &mut Frame, start: Start<'_>) -> Result<Outcome> {
        match (&self.parts[segment][..], start) {
            ([Part::Kernel(kernel)], start) => self.start(*kernel, frame, start, Wanted::Report)?,
            (parts, Start::Beginning) => self.drive(parts, frame)?,
            (_, Start::At(_)) => {
                return Err(crate::gpu::failure(
                    "a program that calls operations of the host starts at its beginning there: resume it on the CPU"
                        .to_string(),
                ));
            }
        }
        self.finish(frame)
    }

    fn enqueue(&self, segment: usize, frame: &mut Frame) -> Result<()> {
        match &self.parts[segment][..] {
            [Part::Kernel(kernel)] => self.ask(*kernel, frame),
            parts => self.drive(parts, frame),
        }
    }

    fn submit(&self, frame: &mut Frame) -> Result<()> {
        if frame.aside.is_none() {
            return Ok(());
        }
        let (frame, mut aside) = self.tables(frame, None)?;
        let launched = self.launch_waiting(frame, &mut aside, Wanted::Nothing);
        frame.aside = Some(aside);
        launched
    }

    fn settle(&self, frame: &mut Frame) -> Result<()> {
        if frame.aside.is_none() {
            return Ok(());
        }
        let aside = frame.aside.as_ref().and_then(|aside| aside.downcast_ref::<Aside>());
        let told = aside.is_some_and(|aside| aside.yielded);
        match self.finish(frame)? {
            Outcome::Yielded { .. } if !told => Err(Error::UnexpectedYield),
            _ => Ok(()),
        }
    }

    fn store(&self, frame: &mut Frame, arrays: &[ArrayId], to: &mut [Buffer]) -> Result<()> {
        let slots = slots(frame, arrays, to)?;
        self.copies(frame, arrays, &slots, Way::Store)
    }

    fn load(&self, frame: &mut Frame, arrays: &[ArrayId], from: &[Buffer]) -> Result<()> {
        let slots = slots(frame, arrays, from)?;
        self.copies(frame, arrays, &slots, Way::Load)
    }
}

/// The addresses of buffers that have the sizes of these arrays.
fn slots(frame: &Frame, arrays: &[ArrayId], buffers: &[Buffer]) -> Result<Vec<*mut u8>> {
    let address = |(array, buffer): (&ArrayId, &Buffer)| {
        let needed = frame.arrays[array.index()].bytes;
        match buffer.len() {
            found if found == needed => Ok(buffer.address()),
            found => Err(Error::WrongSize { needed, found }),
        }
    };
    arrays.iter().zip(buffers).map(address).collect()
}
