//! The `ebbtide` command on the ranks of an MPI job: `mpirun -n 4 ebbtide demo` spreads shots over them.

use std::process::ExitCode;

use ebbtide_mpi::Mpi;

fn main() -> ExitCode {
    let mpi = match Mpi::start() {
        Ok(mpi) => mpi,
        Err(error) => {
            eprintln!("error: {error}");
            return ExitCode::FAILURE;
        }
    };
    // The job ends MPI when all ranks have returned.
    ebbtide_cli::main(Box::new(mpi.wire()))
}
