//! Durable reversals of steps that are written in Python.

use std::ops::Range;
use std::path::PathBuf;
use std::time::Duration;

use ebbtide_snapshot::{Dtype, Identity, State};
use ebbtide_sweep::{Durable, Error, Run, Stepper};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::errors;
use crate::schedule::Schedule;

/// A stepper of the Python half: an object with `advance(from, to)`, `record(from, to)`, `turn()`, `reverse(from, to)`,
/// `save()` and `save_adjoint()`, which give lists of names and bytes, and `restore(list)` and `restore_adjoint(list)`.
struct Steps<'py> {
    object: Bound<'py, PyAny>,
    name: String,
    hash: String,
}

type Pieces = Vec<(String, Vec<u8>)>;

impl Steps<'_> {
    fn over(&self, method: &str, steps: Range<u64>) -> PyResult<()> {
        // Ctrl-C is seen between actions.
        self.object.py().check_signals()?;
        self.object.call_method1(method, (steps.start, steps.end)).map(|_| ())
    }

    fn write(&self, method: &str, state: &mut State) -> PyResult<()> {
        let pieces = self.object.call_method0(method)?;
        state.clear();
        for piece in pieces.try_iter()? {
            let (name, bytes): (String, Bound<'_, PyBytes>) = piece?.extract()?;
            let bytes = bytes.as_bytes();
            let written =
                state.put_with(&name, Dtype::U8, &[bytes.len()], |room| room.copy_from_slice(bytes));
            written.map_err(|error| storage(self.object.py(), &error))?;
        }
        Ok(())
    }

    fn read(&self, method: &str, state: &State) -> PyResult<()> {
        let py = self.object.py();
        let pieces: Pieces =
            state.arrays().map(|array| (array.name.to_string(), array.bytes.to_vec())).collect();
        let pieces: Vec<(String, Bound<'_, PyBytes>)> =
            pieces.into_iter().map(|(name, bytes)| (name, PyBytes::new(py, &bytes))).collect();
        self.object.call_method1(method, (pieces,)).map(|_| ())
    }
}

fn storage(py: Python<'_>, error: &impl std::fmt::Display) -> PyErr {
    errors::raise(py, "StorageError", &error.to_string(), Vec::new())
}

impl Stepper for Steps<'_> {
    type State = State;
    type Error = PyErr;

    fn advance(&mut self, steps: Range<u64>) -> PyResult<()> {
        self.over("advance", steps)
    }

    fn record(&mut self, steps: Range<u64>) -> PyResult<()> {
        self.over("record", steps)
    }

    fn turn(&mut self) -> PyResult<()> {
        self.object.call_method0("turn").map(|_| ())
    }

    fn reverse(&mut self, steps: Range<u64>) -> PyResult<()> {
        self.over("reverse", steps)
    }

    fn save(&self, state: &mut State) -> PyResult<()> {
        self.write("save", state)
    }

    fn restore(&mut self, state: &State) -> PyResult<()> {
        self.read("restore", state)
    }
}

impl Durable for Steps<'_> {
    fn identity(&self) -> Identity {
        Identity::new(self.name.clone(), self.hash.clone())
    }

    fn save_adjoint(&self, adjoint: &mut State) -> PyResult<()> {
        self.write("save_adjoint", adjoint)
    }

    fn restore_adjoint(&mut self, adjoint: &State) -> PyResult<()> {
        self.read("restore_adjoint", adjoint)
    }
}

/// Runs a reversal in a directory, or continues the one that is there.
#[pyfunction]
pub fn run_durable(
    py: Python<'_>,
    object: Bound<'_, PyAny>,
    name: String,
    hash: String,
    schedule: &Schedule,
    dir: PathBuf,
    every: f64,
) -> PyResult<()> {
    let mut steps = Steps { object, name, hash };
    let failed = |error: Error<PyErr>| match error {
        Error::Stepper { source, .. } | Error::Frontier(source) => source,
        other => storage(py, &other),
    };
    let mut run = match dir.join("manifest.json").exists() {
        true => Run::open(&dir).map_err(|error| storage(py, &error))?,
        false => Run::create(&dir, &steps, schedule.inner.clone()).map_err(failed)?,
    };
    run = run.frontier_every(Duration::try_from_secs_f64(every).unwrap_or(Duration::ZERO));
    run.resume(&mut steps).map_err(failed)?;
    Ok(())
}
