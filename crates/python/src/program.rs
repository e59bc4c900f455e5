//! Programs that are called from Python: one build for each signature, launches in place.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ebbtide_ir::{Param, Program};
use ebbtide_runtime::{Compiled, Status};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple};

use crate::arguments::{Launch, Leaf, Leaves, Use};
use crate::build::Ir;
use crate::interrupt::Watched;
use crate::yielded::{Yielded, label};
use crate::{device, errors};

/// A program for arguments of one signature.
pub struct Entry {
    key: Vec<u8>,
    pub ir: Ir,
    /// With the epoch in which it was compiled.
    compiled: Mutex<Option<(u64, Compiled)>>,
}

/// What a program is for the interpreter: `ebbtide.Program` derives from it, and gives it `_build(arguments)`, which
/// builds the program for a signature.
#[pyclass(subclass, frozen, module = "ebbtide._native")]
pub struct ProgramBase {
    name: String,
    names: Vec<Py<PyString>>,
    /// As `names`.
    texts: Vec<String>,
    defaults: Vec<Option<Py<PyAny>>>,
    device: Option<String>,
    entries: Mutex<Vec<Arc<Entry>>>,
}

pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl ProgramBase {
    pub fn program_name(&self) -> &str {
        &self.name
    }

    pub fn device_name(&self) -> Option<&str> {
        self.device.as_deref()
    }

    /// The arguments in the order of the parameters.
    fn bind<'py>(
        &self,
        py: Python<'py>,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyTuple>> {
        let (given, taken) = (args.len(), self.names.len());
        let kwargs = kwargs.filter(|kwargs| !kwargs.is_empty());
        if given == taken && kwargs.is_none() {
            return Ok(args.clone());
        }
        let fail = |text: String| Err(PyTypeError::new_err(format!("{}() {text}", self.name)));
        if given > taken {
            return fail(format!("takes {taken} arguments, {given} were given"));
        }
        let mut used = 0;
        let mut bound = Vec::with_capacity(taken);
        for (k, name) in self.names.iter().enumerate() {
            let named = match kwargs {
                Some(kwargs) => kwargs.get_item(name.bind(py))?,
                None => None,
            };
            used += usize::from(named.is_some());
            bound.push(match (args.get_item(k).ok(), named, &self.defaults[k]) {
                (Some(_), Some(_), _) => {
                    return fail(format!("got multiple values for argument '{}'", self.texts[k]));
                }
                (Some(value), None, _) | (None, Some(value), _) => value,
                (None, None, Some(default)) => default.bind(py).clone(),
                (None, None, None) => {
                    return fail(format!("misses the argument '{}'", self.texts[k]));
                }
            });
        }
        if let Some(kwargs) = kwargs.filter(|kwargs| kwargs.len() != used) {
            let unknown = kwargs.keys().iter().map(|key| key.to_string());
            let unknown = unknown.filter(|key| !self.texts.contains(key)).collect::<Vec<_>>().join("', '");
            return fail(format!("has no parameter '{unknown}'; it has '{}'", self.texts.join("', '")));
        }
        PyTuple::new(py, bound)
    }

    /// The arguments taken apart.
    pub fn leaves<'py>(&self, args: &Bound<'py, PyTuple>) -> PyResult<Leaves<'py>> {
        let mut leaves = Leaves::with_room(args.len(), self.device_name());
        for (name, object) in self.texts.iter().zip(args.iter()) {
            leaves.push(&self.name, name, &object)?;
        }
        Ok(leaves)
    }
}

/// The program for these arguments: found, or built.
pub fn entry<'py>(
    slf: &Bound<'py, ProgramBase>,
    args: &Bound<'py, PyTuple>,
    leaves: &Leaves<'py>,
) -> PyResult<Arc<Entry>> {
    let program = slf.get();
    let found = lock(&program.entries).iter().find(|entry| entry.key == leaves.key).cloned();
    if let Some(found) = found {
        check_items(slf.py(), &found.ir, leaves)?;
        return Ok(found);
    }
    // Building runs Python code, so no lock is held.
    let built = slf.call_method1("_build", (args,))?;
    let ir = built.cast::<Ir>()?.get().clone();
    let entry = Arc::new(Entry { key: leaves.key.clone(), ir, compiled: Mutex::new(None) });
    lock(&program.entries).push(entry.clone());
    check_items(slf.py(), &entry.ir, leaves)?;
    Ok(entry)
}

/// Elements that are small vectors or matrices have their extents.
fn check_items(py: Python<'_>, ir: &Ir, leaves: &Leaves<'_>) -> PyResult<()> {
    for (param, extents) in ir.items.iter() {
        let Some(Leaf::Array(elements)) = leaves.leaves.get(*param) else { continue };
        let shape = elements.shape();
        if !shape.ends_with(extents) {
            let name = ir.program.params.get(*param).map_or("?", |param| match param {
                Param::Array(id) => &ir.program.array(*id).name,
                Param::Scalar(id) => &ir.program.scalars[id.index()].name,
            });
            let message =
                format!("`{name}` has elements of shape {extents:?}, and this array has shape {shape:?}");
            return Err(errors::launch(py, &ir.program.name, &message));
        }
    }
    Ok(())
}

impl Entry {
    pub fn program(&self) -> &Arc<Program> {
        &self.ir.program
    }

    fn compiled(&self, py: Python<'_>, device: Option<&str>) -> PyResult<Compiled> {
        let now = device::epoch();
        if let Some((epoch, compiled)) = &*lock(&self.compiled)
            && *epoch == now
        {
            return Ok(compiled.clone());
        }
        let device = device::get(py, device)?;
        let program = self.program().clone();
        let compiled = errors::detached(py, || Compiled::new(&program, &device))?;
        let compiled = compiled.map_err(|error| errors::exception(py, &error))?;
        if let Some(old) = lock(&self.compiled).replace((now, compiled.clone())) {
            // In a child of `fork` what it belongs to does not exist.
            std::mem::forget(old);
        }
        Ok(compiled)
    }
}

/// Where a launch begins.
enum From<'a> {
    Beginning,
    Yield(&'a Yielded),
    Label(&'a str, &'a str),
}

fn launch<'py>(
    slf: &Bound<'py, ProgramBase>,
    args: &Bound<'py, PyTuple>,
    from: From<'_>,
) -> PyResult<Option<Yielded>> {
    let (py, program) = (slf.py(), slf.get());
    let leaves = program.leaves(args)?;
    let entry = entry(slf, args, &leaves)?;
    let mut compiled = entry.compiled(py, program.device_name())?;
    let mut launch = Launch::new(py, entry.program(), compiled.device(), &leaves.leaves, Use::Declared)?;
    let watched = Watched::begin();
    if let Some(cancel) = &watched.cancel {
        compiled = compiled.cancel_with(cancel);
    }
    let status = errors::detached(py, || {
        let status = match from {
            From::Beginning => compiled.launch(launch.args()),
            From::Yield(at) => compiled.resume(&at.at, launch.args()),
            From::Label(family, variant) => compiled.resume_at(label(family, variant), launch.args()),
        };
        let settled = launch.settle();
        // Dropped here, without the interpreter's lock: the device is waited for.
        drop(launch);
        status.and_then(|status| settled.map(|()| status))
    })?;
    match status {
        Ok(Status::Done) => Ok(None),
        Ok(Status::Yielded(at)) => Ok(Some(Yielded { at })),
        Err(error) => {
            watched.raised(py)?;
            Err(errors::exception(py, &error))
        }
    }
}

#[pymethods]
impl ProgramBase {
    #[new]
    #[pyo3(signature = (name, names, defaults, device=None))]
    fn new(
        py: Python<'_>,
        name: String,
        names: Vec<String>,
        defaults: Vec<(bool, Py<PyAny>)>,
        device: Option<String>,
    ) -> ProgramBase {
        let interned = names.iter().map(|name| PyString::intern(py, name).unbind()).collect();
        let defaults = defaults.into_iter().map(|(has, value)| has.then_some(value)).collect();
        ProgramBase { name, names: interned, texts: names, defaults, device, entries: Mutex::default() }
    }

    /// Runs the program in place; `None` when it reached its end, else where it yielded.
    #[pyo3(signature = (*args, **kwargs))]
    fn __call__<'py>(
        slf: &Bound<'py, Self>,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Option<Yielded>> {
        let args = slf.get().bind(slf.py(), args, kwargs)?;
        launch(slf, &args, From::Beginning)
    }

    /// Continues where the program yielded.
    #[pyo3(signature = (at, /, *args, **kwargs))]
    fn resume<'py>(
        slf: &Bound<'py, Self>,
        at: &Yielded,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Option<Yielded>> {
        let args = slf.get().bind(slf.py(), args, kwargs)?;
        launch(slf, &args, From::Yield(at))
    }

    /// Runs the program from a label on, without a yield before it.
    #[pyo3(signature = (member, /, *args, **kwargs))]
    fn resume_at<'py>(
        slf: &Bound<'py, Self>,
        member: &Bound<'py, PyAny>,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Option<Yielded>> {
        let variant: String = member.getattr("name")?.extract()?;
        let family = member.get_type().getattr("__name__")?.extract::<String>()?;
        let args = slf.get().bind(slf.py(), args, kwargs)?;
        launch(slf, &args, From::Label(&family, &variant))
    }

    /// Reads where the program yielded from a file that `Yielded.save` wrote.
    #[pyo3(signature = (path, /, *args, **kwargs))]
    fn load<'py>(
        slf: &Bound<'py, Self>,
        path: PathBuf,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Yielded> {
        let (py, program) = (slf.py(), slf.get());
        let args = program.bind(py, args, kwargs)?;
        let leaves = program.leaves(&args)?;
        let compiled = entry(slf, &args, &leaves)?.compiled(py, program.device_name())?;
        let at = compiled.load(path).map_err(|error| errors::exception(py, &error))?;
        Ok(Yielded { at })
    }

    /// The arguments in the order of the parameters, defaults filled in.
    #[pyo3(signature = (*args, **kwargs))]
    fn _bind<'py>(
        slf: &Bound<'py, Self>,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyTuple>> {
        slf.get().bind(slf.py(), args, kwargs)
    }

    /// The program for these arguments.
    fn _ir<'py>(slf: &Bound<'py, Self>, args: &Bound<'py, PyTuple>) -> PyResult<Ir> {
        let leaves = slf.get().leaves(args)?;
        Ok(entry(slf, args, &leaves)?.ir.clone())
    }

    /// The programs that were built so far.
    fn _built(&self) -> Vec<Ir> {
        lock(&self.entries).iter().map(|entry| entry.ir.clone()).collect()
    }

    /// The generated source, where the device generates any.
    fn _source<'py>(slf: &Bound<'py, Self>, args: &Bound<'py, PyTuple>) -> PyResult<Option<String>> {
        let program = slf.get();
        let leaves = program.leaves(args)?;
        let compiled = entry(slf, args, &leaves)?.compiled(slf.py(), program.device_name())?;
        Ok(compiled.source().map(str::to_string))
    }
}
