//! The `ebbtide` command, as a function: `ebbtide-mpi` runs it on the ranks of a job.
#![forbid(unsafe_code)]

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use ebbtide_grid::Wire;

mod cache;
mod demo;
mod doctor;
mod output;
mod plan;
mod runs;
mod size;

/// Differentiable programs with first-class checkpoints.
#[derive(Parser)]
#[command(name = "ebbtide", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Cache(cache::Args),
    Doctor(doctor::Args),
    Demo(demo::Args),
    Plan(plan::Args),
    Runs(runs::Args),
}

/// Why a command did not do its work.
#[derive(Debug)]
enum Failure {
    /// The command line contradicts itself: exit code 2, with a hint at `--help`.
    Usage(String),
    /// Anything else: exit code 1.
    Other(String),
    /// The output has told, or cannot be written: exit code 1.
    Told(String),
}

impl<E: std::error::Error> From<E> for Failure {
    fn from(error: E) -> Failure {
        Failure::Other(error.to_string())
    }
}

/// Runs the command line of this process, as one of the ranks of a wire. All ranks of a job have the same command line, and fail
/// alike: rank 0 speaks for all. The demo computes on all of them, other commands run on rank 0 alone.
pub fn main(mut ranks: Box<dyn Wire>) -> ExitCode {
    let silent = ranks.rank() != 0;
    // Whoever asked for an object gets one, whatever happens.
    let json = std::env::args_os().skip(1).take_while(|arg| arg != "--").any(|arg| arg == "--json");
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) if silent => return ExitCode::from(u8::from(error.use_stderr()) * 2),
        Err(error) if json && error.use_stderr() => return fail(true, "usage", &error.to_string(), 2),
        Err(error) => {
            // Help goes to standard output, whose reader may have gone away.
            let _ = error.print();
            return ExitCode::from(u8::from(error.use_stderr()) * 2);
        }
    };
    let result = match cli.command {
        Command::Demo(args) => demo::run(&args, &mut *ranks),
        _ if silent => Ok(()),
        Command::Cache(args) => cache::run(&args),
        Command::Doctor(args) => doctor::run(&args),
        Command::Plan(args) => plan::run(&args),
        Command::Runs(args) => runs::run(&args),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure::Usage(_)) if silent => ExitCode::from(2),
        Err(_) if silent => ExitCode::FAILURE,
        Err(Failure::Usage(why)) if json => fail(true, "usage", &why, 2),
        Err(Failure::Usage(why)) => {
            fail(false, "usage", &format!("{why}\n\nFor more information, try '--help'."), 2)
        }
        Err(Failure::Other(why)) => fail(json, "failure", &why, 1),
        Err(Failure::Told(why)) => fail(false, "failure", &why, 1),
    }
}

/// Says why a command did not do its work: on standard error, and as an object where one was asked for.
fn fail(json: bool, kind: &str, why: &str, code: u8) -> ExitCode {
    if json {
        // Nobody is left to be told where this fails.
        let _ = output::write(format_args!(
            "{}\n",
            output::as_object(kind, why.trim_start_matches("error: ").trim_end())
        ));
    }
    let why = output::plain_lines(why);
    output::complain(&if why.starts_with("error: ") { why } else { format!("error: {why}\n") });
    ExitCode::from(code)
}
