//! The corpus: times of program, gradient, jvp and hvp, memory and compile time, as one table. Where a file of
//! JAX's times is given, its ratios too.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{self, AtomicUsize};
use std::thread;
use std::time::{Duration, Instant};

use ebbtide::ir::{Access, Block, Literal, Ordering, Param, Program, Role, Stmt, Type};
use ebbtide::prelude::Budget;
use ebbtide_autodiff::{Request, Tangent, tangent};
use ebbtide_conformance::Input;
use ebbtide_cpu::{Cache, Optimize, Options};
use ebbtide_runtime::{AnyArray, Arg, Compiled, CompiledGradient, Device};
use rustix::time::{ClockId, clock_gettime};

use super::{NAMES, Problem, Size, problem};
use crate::Result;

/// A gradient that takes longer than so many runs of its program has fallen off a cliff.
const CLIFF: f64 = 6.0;

/// The arguments of a launch, and what they were at the start.
pub(super) struct Arguments<'p> {
    program: &'p Program,
    inputs: Vec<Input>,
    arrays: Vec<Option<(AnyArray, AnyArray)>>,
}

/// The elements as they are in memory.
pub(super) fn bytes(ty: Type, elements: &[Literal]) -> Vec<u8> {
    elements.iter().flat_map(|e| e.bits().to_le_bytes()[..ty.size()].to_vec()).collect()
}

impl<'p> Arguments<'p> {
    pub fn new(program: &'p Program, inputs: Vec<Input>, device: &Device) -> Result<Arguments<'p>> {
        let mut arrays = Vec::new();
        for (param, input) in program.params.iter().zip(&inputs) {
            arrays.push(match param {
                Param::Array(a) => {
                    let ty = program.array(*a).ty;
                    let mut start = AnyArray::zeros(device, ty, input.shape())?;
                    start.copy_from_bytes(&bytes(ty, &input.elements(ty)))?;
                    Some((start.try_clone()?, start))
                }
                Param::Scalar(_) => None,
            });
        }
        Ok(Arguments { program, inputs, arrays })
    }

    /// Copies of what the arrays were at the start, where the device computes.
    fn reset(&mut self) -> Result<()> {
        for (array, start) in self.arrays.iter_mut().flatten() {
            *array = start.try_clone()?;
        }
        Ok(())
    }

    /// What an argument of rank 0 holds.
    pub fn scalar(&self, name: &str) -> Option<f64> {
        let named = |param: &Param| matches!(param, Param::Array(a) if self.program.array(*a).name == name);
        let at = self.program.params.iter().position(named)?;
        let (array, _) = self.arrays[at].as_ref()?;
        numbers(array).first().copied()
    }

    fn list(&mut self) -> Vec<Arg<'_>> {
        let mut list = Vec::new();
        for ((param, input), array) in self.program.params.iter().zip(&self.inputs).zip(&mut self.arrays) {
            match (param, array, input) {
                (Param::Array(a), Some((array, _)), _) => {
                    list.push(match self.program.array(*a).role {
                        Role::Param(Access::Write) => Arg::Write(array.any_mut()),
                        _ => Arg::Read(array),
                    });
                }
                (_, _, Input::Scalar(literal)) => list.push(Arg::Scalar(*literal)),
                _ => {}
            }
        }
        list
    }
}

/// The elements of an array of floats.
pub(super) fn numbers(array: &AnyArray) -> Vec<f64> {
    match (array.as_slice::<f32>(), array.as_slice::<f64>()) {
        (Some(single), _) => single.iter().map(|x| f64::from(*x)).collect(),
        (_, Some(double)) => double.to_vec(),
        _ => Vec::new(),
    }
}

/// The median of many runs of several things, one after the other in turns: what disturbs one disturbs all.
fn medians<const N: usize>(
    at_least: Duration,
    mut run: impl FnMut(usize) -> Result<f64>,
) -> Result<[f64; N]> {
    let begun = Instant::now();
    let mut times: [Vec<f64>; N] = std::array::from_fn(|_| Vec::new());
    for round in 0.. {
        for (k, times) in times.iter_mut().enumerate() {
            let seconds = run(k)?;
            // The first one warms up.
            if round > 0 {
                times.push(seconds);
            }
        }
        if round > 4 && begun.elapsed() > at_least {
            break;
        }
    }
    Ok(times.map(|mut times| {
        times.sort_by(f64::total_cmp);
        times[times.len() / 2]
    }))
}

/// Seconds since some moment: those that this thread ran where it is the only one, so that other work of the machine does not
/// count, and those of the clock where there are several.
fn seconds(on: On) -> f64 {
    let clock = if on == On::Cpu(1) { ClockId::ThreadCPUTime } else { ClockId::Monotonic };
    let now = clock_gettime(clock);
    now.tv_sec as f64 + now.tv_nsec as f64 * 1e-9
}

/// The time of one run of a program.
pub(super) fn run_program(compiled: &Compiled, arguments: &mut Arguments<'_>, on: On) -> Result<f64> {
    arguments.reset()?;
    let list = arguments.list();
    let begun = seconds(on);
    let _done = compiled.launch(list)?;
    Ok(seconds(on) - begun)
}

/// A gradient with room for its results.
pub(super) struct Run {
    compiled: CompiledGradient,
    pub results: Vec<AnyArray>,
}

impl Run {
    pub fn new(compiled: CompiledGradient, arguments: &Arguments<'_>, wrt: &[String]) -> Result<Run> {
        let mut results = Vec::new();
        for name in wrt {
            let at = arguments.program.params.iter().position(|param| match param {
                Param::Array(a) => arguments.program.array(*a).name == *name,
                Param::Scalar(s) => arguments.program.scalars[s.index()].name == *name,
            });
            let input = &arguments.inputs[at.ok_or("no such parameter")?];
            let ty = match arguments.program.find_array(name) {
                Some(a) => arguments.program.array(a).ty,
                None => input.elements(Type::F64)[0].ty(),
            };
            results.push(AnyArray::zeros(compiled.device(), ty, input.shape())?);
        }
        Ok(Run { compiled, results })
    }

    /// The time of one run.
    pub fn time(&mut self, arguments: &mut Arguments<'_>, on: On) -> Result<f64> {
        arguments.reset()?;
        let mut list = arguments.list();
        list.extend(self.results.iter_mut().map(|array| Arg::Write(array.any_mut())));
        let begun = seconds(on);
        self.compiled.launch(&mut list)?;
        Ok(seconds(on) - begun)
    }

    /// The bytes that it plans.
    fn bytes(&mut self, arguments: &mut Arguments<'_>) -> Result<u64> {
        let mut list = arguments.list();
        list.extend(self.results.iter_mut().map(|array| Arg::Write(array.any_mut())));
        Ok(self.compiled.plan(&list)?.peak_bytes())
    }
}

/// The CPU seconds of compilers that have ended.
fn of_compilers() -> f64 {
    /// `CLK_TCK` of every Linux.
    const TICKS: f64 = 100.0;
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let after_name = stat.rsplit(')').next().unwrap_or_default();
    let ticks = after_name.split_whitespace().skip(13).take(2);
    ticks.filter_map(|ticks| ticks.parse::<f64>().ok()).sum::<f64>() / TICKS
}

/// One line of the table.
pub struct Line {
    pub extents: String,
    pub program: f64,
    pub gradient: f64,
    pub jvp: Option<f64>,
    pub hvp: Option<f64>,
    pub bytes: u64,
    /// Until quick code of program and gradient can run, where there is such.
    pub quick: Option<Compilation>,
    /// Until their optimised code can, where it was compiled by itself.
    pub optimized: Option<Compilation>,
}

/// What a compilation took.
pub struct Compilation {
    pub seconds: f64,
    /// Of the C compiler alone, on all cores.
    pub cpu_seconds: f64,
}

impl Line {
    pub fn gradient_over_program(&self) -> f64 {
        self.gradient / self.program
    }
}

/// The arguments of the tangent program: those of the program, and ones as directions.
fn along(tangent: &Tangent, problem: &Problem) -> Vec<Input> {
    let source = &problem.program;
    let input = |name: &str| {
        let named = |param: &Param| match param {
            Param::Array(a) => source.array(*a).name == name,
            Param::Scalar(s) => source.scalars[s.index()].name == name,
        };
        source.params.iter().position(named).map(|k| &problem.inputs[k])
    };
    let of = |param: &Param| {
        let (name, ty) = match param {
            Param::Array(a) => (&tangent.program.array(*a).name, tangent.program.array(*a).ty),
            Param::Scalar(s) => {
                let scalar = &tangent.program.scalars[s.index()];
                (&scalar.name, scalar.ty)
            }
        };
        let moved = tangent.dots.iter().find(|(_, dot)| *dot == name).map(|(source, _)| source);
        let known = moved.map_or_else(|| input(name), |source| input(source));
        let shape = known.map_or(Vec::new(), |input| input.shape().to_vec());
        match (moved, known) {
            (None, Some(input)) => input.clone(),
            (Some(source), Some(Input::Scalar(_))) => {
                Input::Scalar(Literal::of(ty, f64::from(u8::from(problem.wrt.contains(&source.as_str())))))
            }
            (Some(source), _) => {
                let one = f64::from(u8::from(problem.wrt.contains(&source.as_str())));
                let n = shape.iter().product();
                Input::Elements(shape, vec![Literal::of(ty, one); n])
            }
            (None, None) => Input::Scalar(Literal::zero(ty)),
        }
    };
    tangent.program.params.iter().map(of).collect()
}

/// Where programs run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum On {
    /// On so many threads of the processor.
    Cpu(usize),
    Cuda,
}

impl On {
    fn device(self, optimize: Optimize, cache: Cache) -> Result<Device> {
        Ok(match self {
            On::Cpu(threads) => Options::new().threads(threads).optimize(optimize).cache(cache).build()?.0,
            On::Cuda => ebbtide_cuda::Options::new().cache(cache).build()?.0,
        })
    }
}

/// What is measured, and how.
#[derive(Clone, Debug)]
pub struct Wish {
    /// `program`, `program/type` or `program/type/size`; what is empty matches all.
    pub only: Option<String>,
    pub at_least: Duration,
    pub on: On,
    /// Are tangents and second derivatives measured too?
    pub second: bool,
    /// In which order sums at shared elements are taken.
    pub ordering: Ordering,
    /// How many programs are compiled at the same time before any is measured; of one each, compile times are in the table.
    pub together: usize,
}

impl Wish {
    fn wants(&self, name: &str, ty: Type, size: Size) -> bool {
        let all = [name.to_string(), ty.to_string(), format!("{size:?}").to_lowercase()];
        self.only.as_ref().is_none_or(|only| {
            only.split('/').zip(&all).all(|(wanted, is)| wanted.is_empty() || wanted == is)
        })
    }

    /// The programs, types and sizes that are wanted.
    pub(super) fn all(&self) -> impl Iterator<Item = (&'static str, Type, Size)> {
        let all = NAMES.iter().copied().flat_map(|name| {
            [Type::F32, Type::F64]
                .into_iter()
                .flat_map(move |ty| [Size::Small, Size::Large].map(|size| (name, ty, size)))
        });
        all.filter(|(name, ty, size)| self.wants(name, *ty, *size))
    }
}

/// Writes `#[relaxed]` before all parallel loops.
fn relax(block: &mut Block) {
    for stmt in block.iter_mut() {
        if let Stmt::Par(par) = stmt {
            par.ordering = Ordering::Relaxed;
        }
        stmt.blocks_mut().for_each(relax);
    }
}

/// A device, and the program and its gradient compiled for it, with an empty cache.
type Built = (Device, Compiled, CompiledGradient);

pub(super) fn compile(problem: &Problem, on: On, optimize: Optimize) -> Result<(Built, Compilation)> {
    let folder = tempfile::tempdir()?;
    compile_into(folder.path(), problem, on, optimize)
}

/// Compiles into a cache, or finds the code there.
fn compile_into(cache: &Path, problem: &Problem, on: On, optimize: Optimize) -> Result<(Built, Compilation)> {
    let request = Request { of: "loss".to_string(), wrt: problem.wrt(), ..Request::default() };
    let device = on.device(optimize, Cache::at(cache))?;
    let (begun, before) = (Instant::now(), of_compilers());
    let program = Compiled::new(&problem.program, &device)?;
    let gradient = CompiledGradient::new(&problem.program, &request, &device, Budget::StoreAll)?;
    let took = Compilation { seconds: begun.elapsed().as_secs_f64(), cpu_seconds: of_compilers() - before };
    Ok(((device, program, gradient), took))
}

/// The problem, in the order of sums that is wished.
pub(super) fn wished(name: &str, ty: Type, size: Size, wish: &Wish) -> Result<Problem> {
    let mut problem = problem(name, ty, size)?;
    if wish.ordering == Ordering::Relaxed {
        relax(&mut Arc::make_mut(&mut problem.program).body);
    }
    Ok(problem)
}

/// Compiles all that will be measured, several programs at a time.
fn compile_ahead(wish: &Wish, cache: &Path) {
    let all: Vec<_> = wish.all().collect();
    let next = AtomicUsize::new(0);
    thread::scope(|scope| {
        for _ in 0..wish.together {
            scope.spawn(|| {
                while let Some((name, ty, size)) = all.get(next.fetch_add(1, atomic::Ordering::Relaxed)) {
                    // What is refused is said where it is measured.
                    let _refused = compile_one_ahead(name, *ty, *size, wish, cache);
                }
            });
        }
    });
}

fn compile_one_ahead(name: &str, ty: Type, size: Size, wish: &Wish, cache: &Path) -> Result<()> {
    let problem = wished(name, ty, size, wish)?;
    let ((device, ..), _) = compile_into(cache, &problem, wish.on, Optimize::Always)?;
    if wish.second {
        let tangent = tangent(&problem.program, &problem.wrt())?;
        Compiled::new(&tangent.program, &device)?;
        hessian_vector(&tangent, &problem.wrt(), &device)?;
    }
    Ok(())
}

/// Measures one program.
pub fn line(name: &str, ty: Type, size: Size, wish: &Wish, cache: &Path) -> Result<Line> {
    let problem = wished(name, ty, size, wish)?;
    let wrt = problem.wrt();
    let quick = match wish.on {
        On::Cpu(_) if wish.together == 1 => Some(compile(&problem, wish.on, Optimize::Never)?.1),
        _ => None,
    };
    let own = tempfile::tempdir()?;
    let cache = if wish.together == 1 { own.path() } else { cache };
    let ((device, program, gradient), optimized) = compile_into(cache, &problem, wish.on, Optimize::Always)?;
    let optimized = (wish.together == 1).then_some(optimized);
    let mut arguments = Arguments::new(&problem.program, problem.inputs.clone(), &device)?;
    let mut gradient = Run::new(gradient, &arguments, &wrt)?;
    let bytes = gradient.bytes(&mut arguments)?;
    let [program, gradient] = medians(wish.at_least, |k| match k {
        0 => run_program(&program, &mut arguments, wish.on),
        _ => gradient.time(&mut arguments, wish.on),
    })?;
    let extents = problem.extents.clone();
    let mut line = Line { extents, program, gradient, jvp: None, hvp: None, bytes, quick, optimized };
    if wish.second
        && let Err(error) = second(&problem, &wrt, &device, wish, &mut line)
    {
        eprintln!("{name} {ty} {size:?}: {error}");
    }
    Ok(line)
}

/// Measures the tangent along ones, and the product with the Hessian.
fn second(problem: &Problem, wrt: &[String], device: &Device, wish: &Wish, line: &mut Line) -> Result<()> {
    let tangent = tangent(&problem.program, wrt)?;
    let mut moving = Arguments::new(&tangent.program, along(&tangent, problem), device)?;
    let jvp = Compiled::new(&tangent.program, device)?;
    let [time] = medians(wish.at_least, |_| run_program(&jvp, &mut moving, wish.on))?;
    line.jvp = Some(time);
    let Some(hvp) = hessian_vector(&tangent, wrt, device)? else { return Ok(()) };
    let mut hvp = Run::new(hvp, &moving, wrt)?;
    let [time] = medians(wish.at_least, |_| hvp.time(&mut moving, wish.on))?;
    line.hvp = Some(time);
    Ok(())
}

/// The gradient of the tangent of the loss; none where the loss has no tangent.
fn hessian_vector(tangent: &Tangent, wrt: &[String], device: &Device) -> Result<Option<CompiledGradient>> {
    let Some(dot) = tangent.dots.get("loss") else { return Ok(None) };
    let request = Request {
        of: dot.clone(),
        wrt: wrt.to_vec(),
        may_be_zero: true,
        tangents: tangent.dots.clone(),
        ..Request::default()
    };
    Ok(Some(CompiledGradient::new(&tangent.program, &request, device, Budget::StoreAll)?))
}

/// Times of JAX by program, type and size: program and gradient.
type Jax = BTreeMap<String, (f64, f64)>;

fn of_jax() -> Jax {
    let home = Path::new(env!("CARGO_MANIFEST_DIR"));
    let found = std::fs::read_to_string(home.join("out/corpus-jax.json")).ok();
    found.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default()
}

fn microseconds(seconds: Option<f64>) -> String {
    seconds.map_or("–".to_string(), |seconds| match seconds * 1e6 {
        us if us < 10.0 => format!("{us:.2}"),
        us if us < 1000.0 => format!("{us:.0}"),
        us => format!("{:.1} ms", us / 1000.0),
    })
}

/// Prints the table, and at its end what fell off a cliff.
pub fn table(wish: &Wish) -> Result<()> {
    let jax = of_jax();
    let cache = tempfile::tempdir()?;
    if wish.together > 1 {
        compile_ahead(wish, cache.path());
    }
    println!(
        "| program | size | µs: program | gradient | gradient / program | jvp / program | hvp / gradient | memory | s: quick compile, CPU | optimised, CPU | / JAX |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|---|");
    let mut cliffs = Vec::new();
    for (name, ty, size) in wish.all() {
        let line = match line(name, ty, size, wish, cache.path()) {
            Ok(line) => line,
            Err(error) => {
                println!("| {name} {ty} | {size:?} | {error} | | | | | | | |");
                continue;
            }
        };
        let peer = jax.get(&format!("{name} {ty} {size:?}"));
        let peer = peer.map_or("–".to_string(), |(program, gradient)| {
            format!("{:.2} / {:.2}", line.program / program, line.gradient / gradient)
        });
        let took = |c: &Option<Compilation>| {
            c.as_ref().map_or("–".to_string(), |c| format!("{:.1}, {:.1}", c.seconds, c.cpu_seconds))
        };
        let ratio = |a: Option<f64>, b: f64| a.map_or("–".to_string(), |a| format!("{:.2}", a / b));
        println!(
            "| {name} {ty} | {} | {} | {} | {:.2} | {} | {} | {:.1} KiB | {} | {} | {peer} |",
            line.extents,
            microseconds(Some(line.program)),
            microseconds(Some(line.gradient)),
            line.gradient_over_program(),
            ratio(line.jvp, line.program),
            ratio(line.hvp, line.gradient),
            line.bytes as f64 / 1024.0,
            took(&line.quick),
            took(&line.optimized),
        );
        if line.gradient_over_program() > CLIFF {
            cliffs.push(format!("{name} {ty} {size:?}: {:.1}", line.gradient_over_program()));
        }
    }
    println!(
        "\ngradients that take over {CLIFF} times their program: {}",
        if cliffs.is_empty() { "none".to_string() } else { cliffs.join(", ") }
    );
    Ok(())
}
