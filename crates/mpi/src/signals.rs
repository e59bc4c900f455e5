//! Signals by which batch systems say that the time of a job is nearly over.

use ebbtide::prelude::Cancel;
use ebbtide_grid::{Error, Result};
use signal_hook::consts::{SIGTERM, SIGUSR1};
use signal_hook::iterator::Signals;

/// A switch that `SIGTERM` and `SIGUSR1` turn on, in place of ending the process. Launches with it
/// ([`cancel_with`](ebbtide::CompiledGrad::cancel_with)) stop on all ranks where one rank receives a signal; durable ones keep their
/// state, and the same command continues them.
pub fn cancel_on_signals() -> Result<Cancel> {
    let cancel = Cancel::new();
    let failed = |error: std::io::Error| Error::Wire(format!("signals cannot be received: {error}"));
    let mut signals = Signals::new([SIGTERM, SIGUSR1]).map_err(failed)?;
    let switch = cancel.clone();
    let receive = move || signals.forever().for_each(|_| switch.cancel());
    std::thread::Builder::new().name("ebbtide-signals".to_string()).spawn(receive).map_err(failed)?;
    Ok(cancel)
}
