//! `ebbtide demo`: full-waveform inversion with Ebbtide's own language and gradients.

use std::path::PathBuf;
use std::time::Instant;

use clap::ValueEnum;
use ebbtide::prelude::*;
use ebbtide_grid::Wire;

use crate::Failure;
use crate::output;
use crate::size;

mod canvas;
mod curve;
mod data;
mod durable;
mod earth;
mod field;
mod gather;
mod inversion;
mod lbfgs;
mod physics;
mod progress;
mod report;
mod schedule;

use durable::{Durable, Options};
use earth::{Earth, Grid};
use gather::Gathers;
use inversion::{Data, Inversion};
use lbfgs::Lbfgs;
use progress::{History, Progress};
use report::{Figures, Findings};

/// The largest change of an unknown in the first step: about 0.1 km/s.
const FIRST_CHANGE: f64 = 0.15;
/// Fewer cells are not worth a thread of their own.
const CELLS_PER_THREAD: usize = 40_000;

/// Full-waveform inversion: finds the ground under the sea from its echoes.
///
/// Shots are fired over a ground with layers, salt and gas, and heard along the surface. L-BFGS then looks for the
/// ground from what was heard alone, with gradients through every time step of every shot, in a memory far smaller
/// than all that happened. Pictures and a page that shows them together are written to --out.
///
/// Examples:
///
///   ebbtide demo
///   ebbtide demo --memory 4MiB --iterations 5
///   ebbtide demo --durable run        (stop it in any way; the same command goes on)
///   ebbtide demo --json > figures.json
///   mpirun -n 4 ebbtide demo          (the command of ebbtide-mpi: shots are spread over ranks)
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
pub struct Args {
    /// Memory that a gradient may take beyond the data, such as 16MiB
    #[arg(long, value_name = "SIZE", default_value = "16MiB")]
    memory: size::Bytes,

    /// Cells down and along
    #[arg(long, value_name = "ROWSxCOLUMNS", default_value = "160x240")]
    grid: Grid,

    /// Time steps of each shot; as many as the echoes take if not given
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    steps: Option<u64>,

    /// Places where it is fired
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u64).range(1..=64))]
    sources: u64,

    /// Iterations of L-BFGS
    #[arg(long, value_name = "N", default_value_t = 20)]
    iterations: u64,

    /// Compute the data on this grid instead: another one than the model's, as the earth does
    #[arg(long, value_name = "ROWSxCOLUMNS")]
    data_grid: Option<Grid>,

    /// Add Gaussian noise to the data, in per cent of their root mean square
    #[arg(long, value_name = "PERCENT", default_value_t = 0.0, value_parser = percentage)]
    noise: f64,

    /// What runs the program; EBBTIDE_DEVICE or the best there is if not given
    #[arg(long, value_enum)]
    device: Option<Which>,

    /// Keep everything in this directory after every evaluation, and go on from there if it was interrupted
    #[arg(long, value_name = "DIR")]
    durable: Option<PathBuf>,

    /// Where pictures and page go
    #[arg(long, value_name = "DIR", default_value = "demo-out")]
    out: PathBuf,

    /// Print one JSON object and nothing else on standard output
    #[arg(long)]
    json: bool,
}

/// The devices that can be asked for.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Which {
    /// The first NVIDIA GPU
    Cuda,
    /// C through the system's compiler
    Cpu,
    /// Slow, obvious, always there
    Interpreter,
}

/// Inverts, shows, reports.
///
/// Shots are spread over the ranks, and added in their own order: the bits are those of one rank. The first rank speaks.
pub fn run(args: &Args, ranks: &mut dyn Wire) -> Result<(), Failure> {
    let speaks = ranks.rank() == 0;
    if ranks.ranks() > 1 && args.durable.is_some() {
        let message = "--durable keeps the run of one process: leave it out on several ranks, or start one";
        return Err(Failure::Usage(message.to_owned()));
    }
    // Before anything is computed: what cannot be shown is not worth the time.
    if speaks {
        report::prepare(&args.out)?;
    }
    let device = device(args)?;
    let (grid, budget) = (args.grid, args.memory.0);
    let steps = args.steps.map_or(grid.steps(), |steps| steps as usize);
    let sources = args.sources as usize;
    let earth = Earth::new(grid, steps);
    let start = vec![0.0; earth.start.len()];

    let durable = match &args.durable {
        None => None,
        Some(dir) => Some(Durable::open(
            dir,
            Options {
                grid: grid.to_string(),
                steps,
                sources,
                iterations: args.iterations,
                memory: budget,
                device: device.name().to_owned(),
                data: describe_data(args),
                program: fingerprint(),
            },
        )?),
    };
    let earlier = durable.as_ref().map(|durable| durable.load(start.len())).transpose()?.flatten();
    let resumed_after = earlier.as_ref().map_or(0, |(optimiser, _)| optimiser.evaluations());
    let (mut optimiser, mut history) =
        earlier.unwrap_or_else(|| (Lbfgs::new(start.clone(), FIRST_CHANGE), History::default()));

    let mut inversion = Inversion::prepare(&device, grid, &earth, sources, budget)?;
    let plan = inversion
        .plan()
        .map_err(|error| Failure::Other(format!("--memory {}: {error}", size::Human(budget.into()))))?;
    inversion.fire(&earth, Data { grid: args.data_grid, noise: args.noise / 100.0 })?;
    let progress = Progress::new(args.iterations, sources, budget, speaks);
    progress.say(&format!(
        "{} of {} on {grid} cells: {} a gradient to store all, {} allowed",
        size::counted(sources, "shot"),
        size::counted(steps, "step"),
        size::Human(plan.store_all_bytes.into()),
        size::Human(budget.into()),
    ));
    if device.name() == "interpreter" && args.device.is_none() {
        progress
            .say("the program is interpreted, which is slow: is there a C compiler? --grid 32x44 is quick");
    }
    if resumed_after > 0 {
        progress.say(&format!("going on after {}", size::counted(resumed_after as usize, "evaluation")));
    }
    let gradient_check = inversion.check_gradient(&start)?;
    while optimiser.evaluations() == 0 || optimiser.iterations() < args.iterations {
        let Some(point) = optimiser.ask() else { break };
        let begun = Instant::now();
        let found = inversion.evaluate(&point, ranks, |k, used| progress.shot(k, &history, used))?;
        let verdict = optimiser.tell(found.value, &found.gradient);
        history.note(found.value, &found.gradient, verdict, inversion.used(), begun.elapsed());
        if verdict == lbfgs::Verdict::Accepted {
            history.model_errors.push(earth.model_error(grid, &inversion.unknowns(&point)));
        }
        if let Some(durable) = &durable {
            durable.save(&optimiser, &history)?;
        }
        progress.evaluated(optimiser.iterations(), verdict, &history, inversion.used());
    }
    progress.finish();
    if !speaks {
        return Ok(());
    }

    let figures = Figures {
        grid: grid.to_string(),
        steps_per_shot: steps,
        shots: sources,
        device: device.name().to_owned(),
        iterations: optimiser.iterations(),
        evaluations: optimiser.evaluations(),
        gradients: optimiser.evaluations() * args.sources,
        store_all_bytes: plan.store_all_bytes,
        budget_bytes: budget,
        peak_bytes: history.peak_bytes.max(inversion.used().peak_bytes),
        recompute_factor: inversion.used().recompute_factor,
        misfit_first: history.misfits.first().copied().unwrap_or(f64::NAN),
        misfit_last: optimiser.value(),
        model_error_first: history.model_errors.first().copied().unwrap_or(f64::NAN),
        model_error_last: earth.model_error(grid, &inversion.unknowns(optimiser.best())),
        data_grid: args.data_grid.map(|grid| grid.to_string()),
        noise_percent: args.noise,
        gradient_check,
        seconds: history.seconds,
        resumed_after,
    };
    let result = inversion.unknowns(optimiser.best());
    let middle = sources / 2;
    let (column, heard, at_start) = inversion.gather(middle, &start)?;
    let (_, _, at_end) = inversion.gather(middle, optimiser.best())?;
    report::write(
        &Findings {
            figures: &figures,
            grid,
            earth: &earth,
            result: &result,
            first_gradient: &history.first_gradient,
            misfits: &history.misfits,
            model_errors: &history.model_errors,
            gathers: Gathers { heard: &heard, start: &at_start, result: &at_end, column },
            plan: &plan,
        },
        &args.out,
    )?;
    let text = match args.json {
        true => serde_json::to_string_pretty(&figures)? + "\n",
        false => format!("{}\nsee {}\n", figures.table(), args.out.join("report.html").display()),
    };
    output::write(format_args!("{text}"))
}

/// A part of a hundred.
fn percentage(text: &str) -> Result<f64, String> {
    let number = text.trim_end_matches('%').trim().parse::<f64>().ok();
    number
        .filter(|n| (0.0..=1000.0).contains(n))
        .ok_or_else(|| format!("`{text}` is not a percentage between 0 and 1000"))
}

/// Where the data come from: part of what makes two inversions the same one.
fn describe_data(args: &Args) -> String {
    let grid = args.data_grid.map_or("the same grid".to_owned(), |grid| grid.to_string());
    format!("{grid}, {} % noise", args.noise)
}

/// The device that was asked for.
///
/// On a small grid a time step is over before threads have met: there the CPU gets fewer of them, unless
/// EBBTIDE_THREADS says how many.
fn device(args: &Args) -> Result<Device, Failure> {
    let said = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    match args.device {
        None if said("EBBTIDE_DEVICE") => Ok(Device::best()?),
        Some(Which::Cuda) => Ok(Device::cuda()?),
        Some(Which::Interpreter) => Ok(Device::interpreter()),
        _ if said("EBBTIDE_THREADS") => Ok(Device::cpu()),
        _ => {
            let enough = args.grid.rows * args.grid.columns / CELLS_PER_THREAD;
            let threads = enough.clamp(1, ebbtide_cpu::default_threads());
            Ok(match ebbtide_cpu::Options::new().threads(threads).build() {
                Ok((device, _)) => device,
                // It knows what to do without a C compiler.
                Err(_) => Device::cpu(),
            })
        }
    }
}

/// Tells programs apart: FNV-1a of the text of the program and of the version.
fn fingerprint() -> String {
    let text = format!("{} {}", env!("CARGO_PKG_VERSION"), physics::misfit());
    let hash = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    format!("{hash:016x}")
}
