//! The `ebbtide` command.
#![forbid(unsafe_code)]

use std::process::ExitCode;

use clap::{Parser, Subcommand};

mod cache;
mod demo;
mod doctor;
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
}

impl<E: std::error::Error> From<E> for Failure {
    fn from(error: E) -> Failure {
        Failure::Other(error.to_string())
    }
}

fn main() -> ExitCode {
    let result = match Cli::parse().command {
        Command::Cache(args) => cache::run(&args),
        Command::Doctor(args) => doctor::run(&args),
        Command::Demo(args) => demo::run(&args),
        Command::Plan(args) => plan::run(&args),
        Command::Runs(args) => runs::run(&args),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure::Usage(why)) => {
            eprintln!("error: {why}\n\nFor more information, try '--help'.");
            ExitCode::from(2)
        }
        Err(Failure::Other(why)) => {
            eprintln!("error: {why}");
            ExitCode::FAILURE
        }
    }
}
