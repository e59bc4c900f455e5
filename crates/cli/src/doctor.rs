//! `ebbtide doctor`: what Ebbtide finds on this machine, and what is wrong with it, in words.

use std::time::Instant;

use ebbtide::Devices as _;
use ebbtide_cpu::{Cache, Compiler, Contents, Optimize, Options, default_threads, threads_found};
use ebbtide_ir::{Access, Binary, Builder, Function, Literal, Type};
use ebbtide_runtime::{Arg, Compiled, Device};
use serde::Serialize;

use crate::Failure;
use crate::output::{plain, plain_lines, say};
use crate::size::Human;

/// Shows what Ebbtide finds on this machine: devices, compiler, vectors, cache, and what is wrong.
///
/// The exit code is 1 if something is wrong.
#[derive(clap::Args)]
pub struct Args {
    /// Print one JSON object and nothing else
    #[arg(long)]
    json: bool,
}

/// All that is to be said.
#[derive(Serialize)]
struct Report {
    version: &'static str,
    processor: Processor,
    memory: Memory,
    compiler: Option<CCompiler>,
    cache: CacheState,
    devices: Vec<DeviceState>,
    /// The variables of the environment that Ebbtide looks at, where they are set.
    settings: Vec<(String, String)>,
    problems: Vec<String>,
}

#[derive(Serialize)]
struct Processor {
    architecture: &'static str,
    threads: usize,
    /// What says how many threads there should be, where EBBTIDE_THREADS does not.
    threads_found: Vec<(&'static str, usize)>,
    vector_bits: Option<usize>,
}

#[derive(Serialize)]
struct Memory {
    /// What a gradient without a budget plans with.
    free_bytes: Option<u64>,
    /// What says how much there is.
    found: Vec<(&'static str, u64)>,
}

#[derive(Serialize)]
struct CCompiler {
    command: String,
    version: String,
}

#[derive(Serialize)]
struct CacheState {
    folder: String,
    entries: u64,
    bytes: u64,
    /// Folders of compilations that were stopped.
    abandoned: u64,
}

#[derive(Serialize)]
struct DeviceState {
    name: &'static str,
    /// What it is, or why it cannot be had.
    about: Option<String>,
    /// What a small program took to compile and run, where it did.
    milliseconds: Option<f64>,
}

const SETTINGS: [&str; 11] = [
    "EBBTIDE_CACHE",
    "EBBTIDE_CC",
    "EBBTIDE_CC_SECONDS",
    "EBBTIDE_CFLAGS",
    "EBBTIDE_CHECK",
    "EBBTIDE_DEVICE",
    "EBBTIDE_NVRTC",
    "EBBTIDE_OPTIMIZE",
    "EBBTIDE_THREADS",
    "EBBTIDE_TRACE",
    "EBBTIDE_VECTOR_BYTES",
];

pub fn run(args: &Args) -> Result<(), Failure> {
    let report = examine();
    if args.json {
        say!("{}", serde_json::to_string_pretty(&report)?)?;
    } else {
        print(&report)?;
    }
    match report.problems.len() {
        0 => Ok(()),
        1 => Err(Failure::Told("one thing is wrong".to_string())),
        n => Err(Failure::Told(format!("{n} things are wrong"))),
    }
}

fn examine() -> Report {
    let mut problems = Vec::new();
    let compiler = Compiler::find();
    let vector_bits = compiler.as_ref().ok().map(|c| 8 * c.target.vector_bytes);
    let described = compiler
        .and_then(|c| Ok(CCompiler { command: c.command.display().to_string(), version: c.version()? }));
    let compiler = described.map_err(|reason| problems.push(format!("no C compiler: {reason}"))).ok();
    let cache = Cache::of_user();
    let unusable = cache.problem();
    let Contents { entries, bytes, abandoned, .. } = cache.contents();
    let interpreter = DeviceState {
        name: "interpreter",
        about: None,
        milliseconds: trial(&ebbtide_runtime::interpreter()).ok(),
    };
    let mut cpu = DeviceState { name: "cpu", about: None, milliseconds: None };
    // What keeps the cache from being used keeps the device from working: that is said once.
    if compiler.is_some() && unusable.is_none() {
        match try_cpu(&cache) {
            Ok(milliseconds) => cpu.milliseconds = Some(milliseconds),
            Err(reason) => problems.push(format!("the cpu device does not work: {reason}")),
        }
    }
    let cuda = match ebbtide_cuda::describe() {
        // Most machines have no GPU: that is nothing wrong.
        Err(reason) => DeviceState { name: "cuda", about: Some(reason), milliseconds: None },
        Ok(about) => {
            let milliseconds = try_cuda(&cache).map_err(|reason| {
                problems.push(format!("the cuda device does not work: {reason}"));
            });
            DeviceState { name: "cuda", about: Some(about), milliseconds: milliseconds.ok() }
        }
    };
    problems.extend(unusable);
    let settings: Vec<(String, String)> = SETTINGS.iter().filter_map(|name| setting(name)).collect();
    if settings.iter().any(|(name, _)| name == "EBBTIDE_DEVICE") {
        problems.extend(Device::best().err().map(|error| error.to_string()));
    }
    Report {
        version: env!("CARGO_PKG_VERSION"),
        processor: Processor {
            architecture: std::env::consts::ARCH,
            threads: default_threads(),
            threads_found: threads_found(),
            vector_bits,
        },
        memory: Memory {
            free_bytes: ebbtide_snapshot::free_memory(),
            found: ebbtide_snapshot::memory_found(),
        },
        compiler,
        cache: CacheState { folder: cache.folder().display().to_string(), entries, bytes, abandoned },
        devices: vec![cpu, interpreter, cuda],
        settings,
        problems,
    }
}

/// A variable and its value, where it is set; an empty one counts as not set.
fn setting(name: &str) -> Option<(String, String)> {
    let value = std::env::var_os(name).filter(|value| !value.is_empty())?;
    Some((name.to_string(), value.to_string_lossy().to_string()))
}

/// Compiles and runs a program on the CPU, in an empty cache where the user's is: so it goes the way that programs go.
fn try_cpu(cache: &Cache) -> Result<f64, String> {
    let probe = cache.probe()?;
    let (device, _) = Options::new().cache(probe.cache().clone()).optimize(Optimize::Always).build()?;
    trial(&device)
}

/// The same on the GPU.
fn try_cuda(cache: &Cache) -> Result<f64, String> {
    let probe = cache.probe()?;
    let (device, _) = ebbtide_cuda::Options::new().cache(probe.cache().clone()).build()?;
    trial(&device)
}

/// Milliseconds that a small program takes on a device, from its making to its right result.
fn trial(device: &Device) -> Result<f64, String> {
    let start = Instant::now();
    let mut b = Builder::new("trial");
    let x = b.array("x", Type::F64, 1, Access::Write);
    let (zero, n) = (b.literal(Literal::index(0)), b.dim(x, 0));
    let i = b.begin_par(&[("i", zero, n)])[0];
    let v = b.load(x, &[i]);
    let (sine, cosine) = (b.math(Function::Sin, &[v]), b.math(Function::Cos, &[v]));
    let (s, c) = (b.binary(Binary::Mul, sine, sine), b.binary(Binary::Mul, cosine, cosine));
    let one = b.binary(Binary::Add, s, c);
    b.store(x, &[i], one);
    b.end_par();
    let program = b.finish().map_err(|e| e.to_string())?;
    let compiled = Compiled::new(&program, device).map_err(|e| e.to_string())?;
    let mut array = device.zeros::<f64, 1>([100]).map_err(|e| e.to_string())?;
    array.as_mut_slice().iter_mut().enumerate().for_each(|(k, x)| *x = k as f64);
    let _done = compiled.launch(vec![Arg::Write(array.any_mut())]).map_err(|e| e.to_string())?;
    match array.as_slice().iter().find(|x| (**x - 1.0).abs() > 1e-15) {
        Some(wrong) => Err(format!("sin(x)^2 + cos(x)^2 came out as {wrong}")),
        None => Ok(start.elapsed().as_secs_f64() * 1e3),
    }
}

fn print(report: &Report) -> Result<(), Failure> {
    say!("ebbtide    {}", report.version)?;
    let p = &report.processor;
    let vectors = p.vector_bits.map_or(String::new(), |bits| format!(", {bits}-bit vectors"));
    say!("processor  {}, {} threads{vectors}", p.architecture, p.threads)?;
    for (source, threads) in &p.threads_found {
        say!("           {threads}: {source}")?;
    }
    match report.memory.free_bytes {
        Some(bytes) => say!("memory     {} free", Human(bytes.into()))?,
        None => say!("memory     the system does not say how much is free: 2 GiB are assumed")?,
    }
    for (source, bytes) in &report.memory.found {
        say!("           {}: {source}", Human((*bytes).into()))?;
    }
    match &report.compiler {
        Some(c) => say!("compiler   {} ({})", plain(&c.command), plain(&c.version))?,
        None => say!("compiler   none")?,
    }
    say!(
        "cache      {}: {} programs, {}",
        plain(&report.cache.folder),
        report.cache.entries,
        Human(report.cache.bytes.into())
    )?;
    for device in &report.devices {
        let name = device.name;
        match (device.milliseconds, &device.about) {
            (Some(ms), about) => {
                let about = about.as_ref().map_or(String::new(), |about| format!(" ({about})"));
                say!("device     {name}: works, a small program compiled and ran in {ms:.0} ms{about}")?
            }
            (None, Some(about)) => say!("device     {name}: none, {}", plain(about))?,
            (None, None) => say!("device     {name}: does not work")?,
        }
    }
    for (name, value) in &report.settings {
        say!("setting    {name}={}", plain(value))?;
    }
    for problem in &report.problems {
        say!("problem    {}", plain_lines(problem))?;
    }
    if report.problems.is_empty() {
        say!("all is well")?;
    }
    Ok(())
}
