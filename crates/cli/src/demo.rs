//! `ebbtide demo`: full-waveform inversion with Ebbtide's own language and gradients.

use std::path::PathBuf;

use clap::ValueEnum;
use ebbtide::prelude::*;
use ebbtide_grid::Wire;

use crate::Failure;
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
mod lead;
mod physics;
mod progress;
mod ranks;
mod report;
mod schedule;

use earth::{Earth, Grid};
use inversion::{Data, Inversion};
use lead::Lead;

/// Fewer cells are not worth a thread of their own.
const CELLS_PER_THREAD: usize = 40_000;

/// Full-waveform inversion: computes the ground below the sea from its echoes
///
/// Shots are fired over a ground with layers, salt and gas, and recorded along the surface. From these records alone
/// L-BFGS then reconstructs the ground, with gradients through every time step of every shot, in far less memory than
/// all time steps would take. Pictures and a page that shows them are written to --out.
///
/// Examples:
///
///   ebbtide demo
///   ebbtide demo --memory 4MiB --iterations 5
///   ebbtide demo --durable run        (stop it at any time; the same command continues)
///   ebbtide demo --json > figures.json
///   mpirun -n 4 ebbtide demo          (the command of ebbtide-mpi: shots are spread over ranks)
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
pub struct Args {
    /// The memory that a gradient may take beyond the data, such as 16MiB
    #[arg(long, value_name = "SIZE", default_value = "16MiB")]
    memory: size::Bytes,

    /// Cells down and along
    #[arg(long, value_name = "ROWSxCOLUMNS", default_value = "160x240")]
    grid: Grid,

    /// Time steps of each shot; by default as many as the echoes take
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    steps: Option<u64>,

    /// The number of shots
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u64).range(1..=64))]
    sources: u64,

    /// Iterations of L-BFGS
    #[arg(long, value_name = "N", default_value_t = 20)]
    iterations: u64,

    /// Compute the data on this grid instead of the model's
    #[arg(long, value_name = "ROWSxCOLUMNS")]
    data_grid: Option<Grid>,

    /// Add Gaussian noise to the data, in per cent of their root mean square
    #[arg(long, value_name = "PERCENT", default_value_t = 0.0, value_parser = percentage)]
    noise: f64,

    /// The device that runs the program; by default EBBTIDE_DEVICE, or the CPU
    #[arg(long, value_enum)]
    device: Option<Which>,

    /// Save the state in this directory after every evaluation, and continue from it after an interruption
    #[arg(long, value_name = "DIR")]
    durable: Option<PathBuf>,

    /// The folder for the pictures and the page
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
    /// Slow, but always available
    Interpreter,
}

/// Inverts, shows, reports.
///
/// Shots are spread over the ranks, and added in their own order: the bits are those of one rank. Rank 0 leads and speaks.
pub fn run(args: &Args, ranks: &mut dyn Wire) -> Result<(), Failure> {
    let prepared = prepare(args, ranks.rank() == 0);
    let (mut survey, lead) = ranks::agree(ranks, prepared)?;
    let Some(mut lead) = lead else {
        while let Some(point) = ranks::receive(ranks)? {
            // Where it fails, it fails on all ranks: rank 0 sends the failure.
            let _ = survey.inversion.evaluate(&point, ranks, |_, _| {});
        }
        return Ok(());
    };
    let inverted = lead.invert(args, &mut survey, ranks);
    match &inverted {
        Ok(_) => ranks::send(ranks, None)?,
        Err(failure) => ranks::send_failure(ranks, failure)?,
    }
    lead.report(args, survey, inverted?)
}

/// What every rank has before the first evaluation.
struct Survey {
    device: Device,
    earth: Earth,
    inversion: Inversion,
    plan: Plan,
    start: Vec<f64>,
}

/// Puts the problem on the device; rank 0 also opens its folders.
fn prepare(args: &Args, leads: bool) -> Result<(Survey, Option<Lead>), Failure> {
    // Before anything is computed: what cannot be shown is not worth the time.
    if leads {
        report::prepare(&args.out)?;
    }
    let device = device(args)?;
    let (grid, budget) = (args.grid, args.memory.0);
    let steps = args.steps.map_or(grid.steps(), |steps| steps as usize);
    let earth = Earth::new(grid, steps);
    let start = vec![0.0; earth.start.len()];
    let lead = leads.then(|| Lead::open(args, &device, steps, &start)).transpose()?;
    let mut inversion = Inversion::prepare(&device, grid, &earth, args.sources as usize, budget)?;
    let plan = inversion
        .plan()
        .map_err(|error| Failure::Other(format!("--memory {}: {error}", size::Human(budget.into()))))?;
    inversion.fire(&earth, Data { grid: args.data_grid, noise: args.noise / 100.0 })?;
    Ok((Survey { device, earth, inversion, plan, start }, lead))
}

/// A part of a hundred.
fn percentage(text: &str) -> Result<f64, String> {
    let number = text.trim_end_matches('%').trim().parse::<f64>().ok();
    number
        .filter(|n| (0.0..=1000.0).contains(n))
        .ok_or_else(|| format!("`{text}` is not a percentage between 0 and 1000"))
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
