//! The survey of `examples/survey.rs` on the ranks of a job, held against the same survey on one machine.
//!
//! `mpirun -n 4 target/release/examples/survey [DIR]`, with one to twelve ranks. With a directory the run is durable there:
//! `SIGTERM` or `SIGUSR1` on any rank stops it, with exit status 75, and the same command continues it, on any number of ranks.

#[allow(dead_code)]
#[path = "../../../examples/survey.rs"]
mod one_machine;

use std::path::PathBuf;
use std::process::ExitCode;

use ebbtide::ir::parts::Cause;
use ebbtide_grid::Error;
use ebbtide_mpi::{Mpi, cancel_on_signals};
use one_machine::{Survey, grid};

/// Parts along each dimension: the same for any number of ranks.
const CUT: [usize; 3] = [3, 2, 2];
/// `EX_TEMPFAIL`: run the command again.
const TRY_AGAIN: u8 = 75;

fn main() -> Result<ExitCode, Box<dyn std::error::Error>> {
    let mpi = Mpi::start()?;
    let survey = Survey::new()?.cancel_with(&cancel_on_signals()?);
    let dir = std::env::args_os().nth(1).map(PathBuf::from);
    let ran = mpi.team(&grid(CUT)?).run(|part| survey.run(part, |_| 0.0, dir.as_deref()));
    let found = match ran {
        Err(Error::Engine(ebbtide::Error::Part(stop))) if stop.cause == Cause::Cancelled => {
            eprintln!("rank {}: {stop}; the same command continues the run", mpi.rank());
            return Ok(ExitCode::from(TRY_AGAIN));
        }
        ran => ran?.swap_remove(0),
    };
    if mpi.rank() == 0 {
        let here = survey.run_here(CUT, |_| 0.0)?;
        let whole = survey.run_here([1, 1, 1], |_| 0.0)?;
        println!(
            "misfit {:.6}; on one machine {:.6}, gradient within {:.1e} of its largest component",
            found.misfit,
            whole.misfit,
            found.apart(&whole)
        );
        if (found.misfit, &found.gradient) != (here.misfit, &here.gradient) {
            return Err("ranks give other bits than one process for the same parts".into());
        }
        if !found.agrees_with(&whole) {
            return Err("parts give something else than one machine".into());
        }
    }
    Ok(ExitCode::SUCCESS)
}
