//! The `ebbtide` command.
#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    ebbtide_cli::main(Box::new(ebbtide_grid::Alone))
}
