//! `ebbtide plan`: what a schedule costs, before anything runs.

use std::path::PathBuf;

use clap::ValueEnum;

use crate::Failure;
use crate::output;
use crate::size::Bytes;

pub mod outcome;
pub mod picture;
pub mod report;

use outcome::Request;

/// Shows what reversing a loop costs in a given memory, before anything runs
///
/// A loop of N steps runs forward and is then reversed, last step first. To reverse a step, the state before it is
/// needed. A schedule decides which states are kept in slots and which are computed again.
///
/// Examples:
///
///   ebbtide plan --steps 1000 --slots 10
///   ebbtide plan --steps 1000 --memory 64MiB --state-bytes 1MiB --tape-bytes 3MiB
///   ebbtide plan --steps 100000 --slots 5 --disk-slots 100 --write-cost 20 --read-cost 10
///   ebbtide plan --steps 60 --slots 4 --picture plan.svg
#[derive(clap::Args)]
#[command(verbatim_doc_comment, group = clap::ArgGroup::new("room").required(true))]
pub struct Args {
    /// The number of steps of the loop
    #[arg(long, value_name = "N")]
    steps: u64,

    /// The largest number of states kept at one time, including the initial one
    #[arg(long, value_name = "S", group = "room")]
    slots: Option<usize>,

    /// Memory for states and tape, such as 64MiB, 1.5GB or 1000
    #[arg(long, value_name = "SIZE", group = "room", requires = "state_bytes")]
    memory: Option<Bytes>,

    /// The size of one state: everything that the loop carries from step to step
    #[arg(long, value_name = "SIZE")]
    state_bytes: Option<Bytes>,

    /// The size of the tape of one step: what its reversal needs; by default the size of a state
    #[arg(long, value_name = "SIZE", requires = "state_bytes")]
    tape_bytes: Option<Bytes>,

    /// The kind of schedule
    #[arg(long, value_enum, default_value_t = Kind::Auto)]
    schedule: Kind,

    /// Steps that are recorded and reversed together, from one state; by default 1, and `auto` with
    /// `--memory` chooses
    #[arg(long, value_name = "B")]
    block: Option<u64>,

    /// The result must be known before reversal starts, so the last block cannot be recorded during
    /// the forward run
    #[arg(long)]
    primal_first: bool,

    /// The largest number of states kept on disk at one time (multistage)
    #[arg(long, value_name = "D")]
    disk_slots: Option<usize>,

    /// The cost of writing a state to disk, in steps
    #[arg(long, value_name = "W", requires = "disk_slots", default_value_t = 0.0)]
    write_cost: f64,

    /// The cost of reading a state from disk, in steps
    #[arg(long, value_name = "R", requires = "disk_slots", default_value_t = 0.0)]
    read_cost: f64,

    /// Print one JSON object and nothing else
    #[arg(long)]
    json: bool,

    /// Draw the schedule, and the curve of recomputation against memory, as SVG
    #[arg(long, value_name = "FILE")]
    picture: Option<PathBuf>,
}

/// The kinds of schedule that can be asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Kind {
    /// With `--memory` the cheapest that fits: everything stored, revolve or mixed (revolve with `--block`); with
    /// `--slots`, which hold states only, revolve; multistage if there are disk slots
    Auto,
    /// The least recomputation for a known number of steps
    Revolve,
    /// For a number of steps that is known only when the loop ends
    Online,
    /// States in memory and on disk
    Multistage,
    /// A slot holds a state or the tape of a block: fewer advances, where a tape is no larger than a state
    Mixed,
    /// A state at a fixed distance of steps; no step runs more than twice
    Periodic,
}

/// Plans, reports and draws.
pub fn run(args: &Args) -> Result<(), Failure> {
    let request = Request::new(args)?;
    let outcome = request.plan(outcome::Share::Whole)?;
    let neighbours = [outcome::Share::Half, outcome::Share::Double].map(|share| request.plan(share).ok());
    let note = match &args.picture {
        None => None,
        Some(path) => {
            let drawing = picture::draw(&request, &outcome, &neighbours);
            std::fs::write(path, drawing.svg)
                .map_err(|error| Failure::Other(format!("cannot write {}: {error}", path.display())))?;
            Some(drawing.note)
        }
    };
    let mut text = if args.json {
        report::json(&request, &outcome, &neighbours)? + "\n"
    } else {
        report::table(&request, &outcome, &neighbours)
    };
    if let Some(note) = note.filter(|_| !args.json) {
        text += &format!("\n{note}\n");
    }
    output::write(format_args!("{text}"))
}
