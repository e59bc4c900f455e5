//! Errors as Python exceptions: the text that users of Rust get, and the places in the user's source.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use ebbtide_ir::{Error as IrError, Fault, Site};
use ebbtide_runtime::Error;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyString;

/// A place in the source that an error speaks of.
type Spot = (String, u32, u32, String);

static MAKE: PyOnceLock<Py<PyAny>> = PyOnceLock::new();

/// An exception of the class `kind` of `ebbtide.errors`.
pub fn raise(py: Python<'_>, kind: &str, text: &str, spots: Vec<Spot>) -> PyErr {
    let make = MAKE.get_or_try_init(py, || -> PyResult<Py<PyAny>> {
        Ok(py.import("ebbtide.errors")?.getattr("_make")?.unbind())
    });
    let made = make.and_then(|make| make.bind(py).call1((kind, PyString::new(py, text), spots)));
    match made {
        Ok(exception) => PyErr::from_value(exception),
        Err(error) => error,
    }
}

/// A launch error in words.
pub fn launch(py: Python<'_>, program: &str, message: &str) -> PyErr {
    raise(py, "LaunchError", &format!("launch error: program `{program}`: {message}"), Vec::new())
}

/// The exception for an error of the engine.
pub fn exception(py: Python<'_>, error: &Error) -> PyErr {
    let (kind, spots) = match error {
        Error::Program(error) => of_program(error),
        Error::Differentiation(ebbtide_autodiff::Error::Program(error)) => {
            ("BuildError", of_program(error).1)
        }
        Error::Differentiation(_) => ("BuildError", Vec::new()),
        Error::BudgetTooSmall { .. } | Error::Plan { .. } | Error::NotAskedFor { .. } => {
            ("LaunchError", Vec::new())
        }
        Error::WrongLength { .. } | Error::TooLarge { .. } | Error::ShapesDiffer { .. } => {
            ("LaunchError", Vec::new())
        }
        Error::Cancelled { .. } => ("Cancelled", Vec::new()),
        Error::NotReproduced { .. } | Error::UnexpectedYield => ("RunError", Vec::new()),
        Error::NoDevice { .. }
        | Error::UnknownDevice { .. }
        | Error::Compile { .. }
        | Error::Device { .. }
        | Error::OutOfMemory { .. } => ("DeviceError", Vec::new()),
        Error::Snapshot(_) | Error::WrongFile { .. } | Error::Disk { .. } | Error::Io { .. } => {
            ("StorageError", Vec::new())
        }
        _ => ("Error", Vec::new()),
    };
    raise(py, kind, &error.to_string(), spots)
}

/// The exception for a program that is not valid.
pub fn of_ir(py: Python<'_>, error: &IrError) -> PyErr {
    let (kind, spots) = of_program(error);
    raise(py, kind, &error.to_string(), spots)
}

fn of_program(error: &IrError) -> (&'static str, Vec<Spot>) {
    match error {
        IrError::Invalid { flaws, .. } => {
            let spots = flaws.iter().filter_map(|flaw| Some(spot(flaw.site.as_ref()?, &flaw.message)));
            ("BuildError", spots.collect())
        }
        IrError::Launch { .. } => ("LaunchError", Vec::new()),
        IrError::Run { fault, .. } => ("RunError", site(fault).map(|s| spot(s, "")).into_iter().collect()),
        _ => ("Error", Vec::new()),
    }
}

fn spot(site: &Site, message: &str) -> Spot {
    (site.file.to_string(), site.line, site.column, message.to_string())
}

fn site(fault: &Fault) -> Option<&Site> {
    match fault {
        Fault::OutOfBounds { site, .. }
        | Fault::DivisionByZero { site }
        | Fault::IndexOverflow { site }
        | Fault::Assertion { site, .. }
        | Fault::WrittenTwice { site, .. }
        | Fault::NotANumber { site, .. }
        | Fault::Misfit { site, .. }
        | Fault::Operation { site, .. } => site.as_ref(),
        _ => None,
    }
}

/// Does something without the interpreter's lock. A panic is an error of this package, never the interpreter's end.
pub fn detached<T: Send>(py: Python<'_>, work: impl FnOnce() -> T + Send) -> PyResult<T> {
    let done = py.detach(|| catch_unwind(AssertUnwindSafe(work)).map_err(|panic| words(panic.as_ref())));
    done.map_err(|words| {
        let text = format!("internal error: {words}: this is a flaw of Ebbtide, please report it");
        raise(py, "Error", &text, Vec::new())
    })
}

fn words(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_string());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "a panic".to_string())
}
