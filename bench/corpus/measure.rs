//! The corpus on one thread: times of program, gradient, jvp and hvp, memory and compile time, as one table. Where a file of
//! JAX's times is given, its ratios too.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use ebbtide::ir::{Access, Literal, Param, Program, Role, Type};
use ebbtide::prelude::Budget;
use ebbtide_autodiff::{Request, Tangent, tangent};
use ebbtide_conformance::Input;
use ebbtide_cpu::{Cache, Options};
use ebbtide_runtime::{AnyArray, Arg, Compiled, CompiledGradient, Device};

use super::{NAMES, Problem, Size, problem};
use crate::Result;

/// A gradient that takes longer than so many runs of its program has fallen off a cliff.
const CLIFF: f64 = 6.0;

/// The arguments of a launch, and what they were at the start.
struct Arguments<'p> {
    program: &'p Program,
    inputs: Vec<Input>,
    arrays: Vec<Option<(AnyArray, Vec<u8>)>>,
}

fn bytes(ty: Type, elements: &[Literal]) -> Vec<u8> {
    elements.iter().flat_map(|e| e.bits().to_le_bytes()[..ty.size()].to_vec()).collect()
}

fn filled(device: &Device, ty: Type, shape: &[usize], image: &[u8]) -> Result<AnyArray> {
    let mut array = AnyArray::zeros(device, ty, shape)?;
    array.copy_from_bytes(image)?;
    Ok(array)
}

impl<'p> Arguments<'p> {
    fn new(program: &'p Program, inputs: Vec<Input>, device: &Device) -> Result<Arguments<'p>> {
        let mut arrays = Vec::new();
        for (param, input) in program.params.iter().zip(&inputs) {
            arrays.push(match param {
                Param::Array(a) => {
                    let ty = program.array(*a).ty;
                    let image = bytes(ty, &input.elements(ty));
                    Some((filled(device, ty, input.shape(), &image)?, image))
                }
                Param::Scalar(_) => None,
            });
        }
        Ok(Arguments { program, inputs, arrays })
    }

    fn reset(&mut self) -> Result<()> {
        for (array, image) in self.arrays.iter_mut().flatten() {
            array.copy_from_bytes(image)?;
        }
        Ok(())
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

/// The shortest of many runs.
fn best(at_least: Duration, mut run: impl FnMut() -> Result<Duration>) -> Result<f64> {
    let begun = Instant::now();
    let mut best = run()?;
    for round in 0.. {
        best = best.min(run()?);
        if round > 2 && begun.elapsed() > at_least {
            break;
        }
    }
    Ok(best.as_secs_f64())
}

/// The time of a program.
fn time_program(compiled: &Compiled, arguments: &mut Arguments<'_>, at_least: Duration) -> Result<f64> {
    best(at_least, || {
        arguments.reset()?;
        let list = arguments.list();
        let begun = Instant::now();
        let _done = compiled.launch(list)?;
        Ok(begun.elapsed())
    })
}

/// The time of a gradient, and the bytes that it plans.
fn time_gradient(
    compiled: &CompiledGradient,
    arguments: &mut Arguments<'_>,
    wrt: &[String],
    at_least: Duration,
) -> Result<(f64, u64)> {
    let device = compiled.device().clone();
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
        results.push(AnyArray::zeros(&device, ty, input.shape())?);
    }
    let mut list = arguments.list();
    list.extend(results.iter_mut().map(|array| Arg::Write(array.any_mut())));
    let peak = compiled.plan(&list)?.peak_bytes();
    let seconds = best(at_least, || {
        let begun = Instant::now();
        compiled.launch(&list)?;
        Ok(begun.elapsed())
    })?;
    Ok((seconds, peak))
}

/// One line of the table.
pub struct Line {
    pub extents: String,
    pub program: f64,
    pub gradient: f64,
    pub jvp: Option<f64>,
    pub hvp: Option<f64>,
    pub bytes: u64,
    pub compile: f64,
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

/// Measures one program on one thread.
pub fn line(name: &'static str, ty: Type, size: Size, at_least: Duration) -> Result<Line> {
    let problem = problem(name, ty, size)?;
    let folder = tempfile::tempdir()?;
    let (device, _) = Options::new().threads(1).cache(Cache::at(folder.path())).build()?;
    let wrt: Vec<String> = problem.wrt.iter().map(|name| name.to_string()).collect();
    let request = Request { of: "loss".to_string(), wrt: wrt.clone(), ..Request::default() };
    let begun = Instant::now();
    let program = Compiled::new(&problem.program, &device)?;
    let gradient = CompiledGradient::new(&problem.program, &request, &device, Budget::StoreAll)?;
    let compile = begun.elapsed().as_secs_f64();
    let mut arguments = Arguments::new(&problem.program, problem.inputs.clone(), &device)?;
    let program = time_program(&program, &mut arguments, at_least)?;
    arguments.reset()?;
    let (gradient, bytes) = time_gradient(&gradient, &mut arguments, &wrt, at_least)?;
    let tangent = tangent(&problem.program, &wrt)?;
    let mut moving = Arguments::new(&tangent.program, along(&tangent, &problem), &device)?;
    let jvp = time_program(&Compiled::new(&tangent.program, &device)?, &mut moving, at_least).ok();
    let hvp = tangent.dots.get("loss").and_then(|dot| {
        let request = Request {
            of: dot.clone(),
            wrt: wrt.clone(),
            may_be_zero: true,
            tangents: tangent.dots.clone(),
            ..Request::default()
        };
        let compiled = CompiledGradient::new(&tangent.program, &request, &device, Budget::StoreAll).ok()?;
        moving.reset().ok()?;
        time_gradient(&compiled, &mut moving, &wrt, at_least).ok().map(|(seconds, _)| seconds)
    });
    Ok(Line { extents: problem.extents, program, gradient, jvp, hvp, bytes, compile })
}

/// Times of JAX by program, type and size: program and gradient.
type Jax = BTreeMap<String, (f64, f64)>;

fn of_jax() -> Jax {
    let home = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
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
pub fn table(only: Option<&str>, quick: bool) -> Result<()> {
    let jax = of_jax();
    let at_least = Duration::from_millis(if quick { 100 } else { 1000 });
    println!(
        "| program | size | µs: program | gradient | gradient / program | jvp / program | hvp / gradient | memory | compile | / JAX |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|");
    let mut cliffs = Vec::new();
    for name in NAMES.into_iter().filter(|name| only.is_none_or(|only| only == *name)) {
        for ty in [Type::F32, Type::F64] {
            for size in [Size::Small, Size::Large] {
                let line = match line(name, ty, size, at_least) {
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
                let ratio = |a: Option<f64>, b: f64| a.map_or("–".to_string(), |a| format!("{:.2}", a / b));
                println!(
                    "| {name} {ty} | {} | {} | {} | {:.2} | {} | {} | {:.1} KiB | {:.1} s | {peer} |",
                    line.extents,
                    microseconds(Some(line.program)),
                    microseconds(Some(line.gradient)),
                    line.gradient_over_program(),
                    ratio(line.jvp, line.program),
                    ratio(line.hvp, line.gradient),
                    line.bytes as f64 / 1024.0,
                    line.compile,
                );
                if line.gradient_over_program() > CLIFF {
                    cliffs.push(format!("{name} {ty} {size:?}: {:.1}", line.gradient_over_program()));
                }
            }
        }
    }
    println!(
        "\ngradients that take over {CLIFF} times their program: {}",
        if cliffs.is_empty() { "none".to_string() } else { cliffs.join(", ") }
    );
    Ok(())
}
