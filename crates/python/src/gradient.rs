//! Derivatives that are called from Python: gradients and vector-Jacobian products, compiled once for each signature.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ebbtide_autodiff as autodiff;
use ebbtide_ir::{Access, Param, Program, Role};
use ebbtide_runtime::{
    AnyArray, Arg, Budget, Cancel, CompiledGradient, Device, Error, Host, Observer, Ran, Replay, Tiers,
};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::arguments::{Launch, Leaf, Leaves, Use, Where, lend, reachable};
use crate::interrupt::Watched;
use crate::outputs::{Output, copied};
use crate::plan::Plan;
use crate::product::Product;
use crate::program::{Entry, ProgramBase, entry, lock};
use crate::yielded::Yielded;
use crate::{device, errors};

/// Which derivative.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Grad,
    Vjp,
    Jvp,
    Hvp,
}

/// An exception that a callback raised: it goes on when the run has ended.
pub type Raised = Arc<Mutex<Option<PyErr>>>;

/// What a derivative is for the interpreter: `ebbtide.Derivative` derives from it.
#[pyclass(subclass, frozen, module = "ebbtide._native")]
pub struct DerivativeBase {
    program: Py<ProgramBase>,
    kind: Kind,
    pub of: String,
    pub wrt: Vec<String>,
    values: Vec<String>,
    budget: Budget,
    tiers: Tiers,
    replay: Replay,
    on_yield: Option<Py<PyAny>>,
    raised: Raised,
    compiled: Mutex<Vec<(usize, u64, Runs)>>,
}

/// A derivative compiled for one signature.
#[derive(Clone)]
pub enum Runs {
    Gradient(Arc<Gradient>),
    Product(Arc<Product>),
}

/// A gradient, once for the main thread, whose runs Ctrl-C cancels, and once for the others: runs leave memory for the
/// next one of their kind.
pub struct Gradient {
    main: CompiledGradient,
    other: CompiledGradient,
    cancel: Cancel,
}

impl Gradient {
    pub fn new(compiled: CompiledGradient) -> Gradient {
        let cancel = Cancel::new();
        Gradient { main: compiled.cancel_with(&cancel), other: compiled, cancel }
    }

    pub fn any(&self) -> &CompiledGradient {
        &self.other
    }

    /// The one for this thread, and its watch.
    pub fn watched(&self) -> (&CompiledGradient, Watched) {
        let watched = Watched::begin_with(&self.cancel);
        (if watched.cancel.is_some() { &self.main } else { &self.other }, watched)
    }
}

fn budget(memory: Option<u64>, schedule: Option<(String, u64, u64)>) -> PyResult<Budget> {
    let Some((name, number, block)) = schedule else {
        return Ok(memory.map_or(Budget::Auto, Budget::Bytes));
    };
    match name.as_str() {
        "store_all" => Ok(Budget::StoreAll),
        "revolve" => Ok(Budget::Revolve { slots: usize::try_from(number)?, block }),
        "periodic" => Ok(Budget::Periodic { period: number }),
        _ => Err(PyValueError::new_err(format!(
            "there is no schedule `{name}`: `store_all`, `revolve` or `periodic`"
        ))),
    }
}

#[pymethods]
impl DerivativeBase {
    #[new]
    #[pyo3(signature = (program, kind, of, wrt, values, memory=None, schedule=None, host_memory=None, disk=None, checked=false, on_yield=None))]
    #[allow(clippy::too_many_arguments, reason = "called by one place of the Python half, by name")]
    fn new(
        program: Py<ProgramBase>,
        kind: &str,
        of: String,
        wrt: Vec<String>,
        values: Vec<String>,
        memory: Option<u64>,
        schedule: Option<(String, u64, u64)>,
        host_memory: Option<u64>,
        disk: Option<(PathBuf, u64)>,
        checked: bool,
        on_yield: Option<Py<PyAny>>,
    ) -> PyResult<DerivativeBase> {
        let kind = match kind {
            "grad" => Kind::Grad,
            "vjp" => Kind::Vjp,
            "jvp" => Kind::Jvp,
            _ => Kind::Hvp,
        };
        let mut tiers = Tiers::new();
        if let Some(bytes) = host_memory {
            tiers = tiers.host_memory(bytes);
        }
        if let Some((dir, bytes)) = disk {
            tiers = tiers.disk(dir, bytes);
        }
        Ok(DerivativeBase {
            program,
            kind,
            of,
            wrt,
            values,
            budget: budget(memory, schedule)?,
            tiers,
            replay: if checked { Replay::Checked } else { Replay::Trusted },
            on_yield,
            raised: Raised::default(),
            compiled: Mutex::default(),
        })
    }

    /// Runs the derivative; the caller's arrays stay as they are. Gives the values, the derivatives and what was run.
    #[pyo3(signature = (args, seed=None, direction=None, durable=None, progress=None))]
    fn _run<'py>(
        slf: &Bound<'py, Self>,
        args: &Bound<'py, PyTuple>,
        seed: Option<&Bound<'py, PyAny>>,
        direction: Option<&Bound<'py, PyDict>>,
        durable: Option<(PathBuf, f64)>,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<Results<'py>> {
        let (py, this) = (slf.py(), slf.get());
        let program = this.program.bind(py);
        let leaves = program.get().leaves(args)?;
        let entry = entry(program, args, &leaves)?;
        match this.runs(py, &entry)? {
            Runs::Gradient(gradient) => {
                this.run_gradient(py, &gradient, &entry, &leaves, seed, durable, progress)
            }
            Runs::Product(product) => {
                let empty = PyDict::new(py);
                let given = (&**entry.program(), &leaves.leaves[..]);
                product.run(py, this, given, direction.unwrap_or(&empty), durable, progress)
            }
        }
    }

    /// What a run with these arguments would do.
    fn _plan<'py>(slf: &Bound<'py, Self>, args: &Bound<'py, PyTuple>) -> PyResult<Plan> {
        let (py, this) = (slf.py(), slf.get());
        let program = this.program.bind(py);
        let leaves = program.get().leaves(args)?;
        let entry = entry(program, args, &leaves)?;
        let gradient = match this.runs(py, &entry)? {
            Runs::Gradient(gradient) => gradient,
            Runs::Product(product) => return product.plan(py, entry.program(), &leaves.leaves),
        };
        let gradient = gradient.any();
        let mut launch = Launch::new(py, entry.program(), gradient.device(), &leaves.leaves, Use::Reading)?;
        let plan = gradient.plan(&launch.args()).map_err(|error| errors::exception(py, &error))?;
        Ok(Plan { plan })
    }

    /// The generated source, where the device generates any.
    fn _source<'py>(slf: &Bound<'py, Self>, args: &Bound<'py, PyTuple>) -> PyResult<Option<String>> {
        let (py, this) = (slf.py(), slf.get());
        let program = this.program.bind(py);
        let leaves = program.get().leaves(args)?;
        let entry = entry(program, args, &leaves)?;
        Ok(match this.runs(py, &entry)? {
            Runs::Gradient(gradient) => gradient.any().source().map(str::to_string),
            Runs::Product(product) => product.source(),
        })
    }

    /// Frees the memory that runs left for the next one.
    fn release(&self) {
        for (_, _, runs) in &*lock(&self.compiled) {
            if let Runs::Gradient(gradient) = runs {
                gradient.main.release();
                gradient.other.release();
            }
        }
    }
}

/// Where a durable run lives, and how many seconds lie between its states.
pub type Directory = (PathBuf, f64);

/// Launches a derivative, in a directory where one is given.
pub fn launched(
    compiled: &CompiledGradient,
    args: &mut [Arg<'_>],
    durable: Option<Directory>,
) -> Result<Ran, Error> {
    match durable {
        None => compiled.launch(args),
        Some((dir, every)) => {
            let every = Duration::try_from_secs_f64(every).unwrap_or(Duration::ZERO);
            compiled.launch_durable(&dir, every, args)
        }
    }
}

/// Values, derivatives, what was run.
pub type Results<'py> = (Vec<Bound<'py, PyAny>>, Vec<Bound<'py, PyAny>>, Bound<'py, PyDict>);

/// The type and shape of a parameter among these arguments.
pub fn shape_of(program: &Program, leaves: &[Leaf], name: &str) -> Option<(ebbtide_ir::Type, Vec<usize>)> {
    program.params.iter().zip(leaves).find_map(|(param, leaf)| match (param, leaf) {
        (Param::Array(a), Leaf::Array(elements)) if program.array(*a).name == name => {
            Some((elements.ty, elements.shape[..elements.rank].to_vec()))
        }
        (Param::Scalar(s), _) if program.scalars[s.index()].name == name => {
            Some((program.scalars[s.index()].ty, Vec::new()))
        }
        _ => None,
    })
}

impl DerivativeBase {
    pub fn kind(&self) -> Kind {
        self.kind
    }

    pub fn device_name(&self) -> Option<&str> {
        self.program.get().device_name()
    }

    pub fn with_tiers(&self, gradient: CompiledGradient) -> CompiledGradient {
        gradient.with_tiers(self.tiers.clone())
    }

    pub fn budget(&self) -> Budget {
        self.budget
    }

    fn runs(&self, py: Python<'_>, entry: &Arc<Entry>) -> PyResult<Runs> {
        let (now, key) = (device::epoch(), Arc::as_ptr(entry).addr());
        let mut known = lock(&self.compiled);
        if let Some((_, _, runs)) = known.iter().find(|(of, epoch, _)| *of == key && *epoch == now) {
            return Ok(runs.clone());
        }
        // Of an earlier epoch: in a child of `fork` what it belongs to does not exist.
        known.extract_if(.., |(_, epoch, _)| *epoch != now).for_each(std::mem::forget);
        drop(known);
        let device = device::get(py, self.program.get().device_name())?;
        let program = entry.program().clone();
        let runs = match self.kind {
            Kind::Grad | Kind::Vjp => Runs::Gradient(Arc::new(self.compile(py, &program, &device)?)),
            Kind::Jvp | Kind::Hvp => Runs::Product(Arc::new(Product::new(py, self, &program, &device)?)),
        };
        lock(&self.compiled).push((key, now, runs.clone()));
        Ok(runs)
    }

    fn compile(&self, py: Python<'_>, program: &Arc<Program>, device: &Device) -> PyResult<Gradient> {
        let request = autodiff::Request {
            of: self.of.clone(),
            wrt: self.wrt.clone(),
            values: self.values.clone(),
            seeded: self.kind == Kind::Vjp,
            ..Default::default()
        };
        let budget = self.budget;
        let made = errors::detached(py, || CompiledGradient::new(program, &request, device, budget))?;
        let made = made.map_err(|error| errors::exception(py, &error))?.with_replay(self.replay);
        Ok(Gradient::new(self.with_host(py, program, self.with_tiers(made))))
    }

    /// The same derivative, asking the function that was given where the program yields.
    pub fn with_host(
        &self,
        py: Python<'_>,
        program: &Arc<Program>,
        made: CompiledGradient,
    ) -> CompiledGradient {
        match &self.on_yield {
            Some(callback) => {
                made.with_host(host(callback.clone_ref(py), program.clone(), self.raised.clone()))
            }
            None => made,
        }
    }

    pub fn forget_raised(&self) {
        *lock(&self.raised) = None;
    }

    /// The same derivative, telling a function of Python how far it is.
    pub fn observed(
        &self,
        chosen: &CompiledGradient,
        watched: &Watched,
        progress: Option<Py<PyAny>>,
    ) -> Option<CompiledGradient> {
        let (observer, cancel) = observer(progress?, watched, self.raised.clone());
        Some(chosen.cancel_with(&cancel).observe(observer))
    }

    /// What the function raised, if it did.
    pub fn raised(&self) -> Option<PyErr> {
        lock(&self.raised).take()
    }

    #[allow(clippy::too_many_arguments, reason = "the parts of one call")]
    fn run_gradient<'py>(
        &self,
        py: Python<'py>,
        gradient: &Gradient,
        entry: &Entry,
        leaves: &Leaves<'py>,
        seed: Option<&Bound<'py, PyAny>>,
        durable: Option<(PathBuf, f64)>,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<Results<'py>> {
        let program = entry.program();
        let device = gradient.any().device().clone();
        let mut launch = Launch::new(py, program, &device, &leaves.leaves, Use::Reading)?;
        let seed = self.seed(py, program, leaves, &device, seed)?;
        let output = |name: &String| match shape_of(program, &leaves.leaves, name) {
            Some((ty, shape)) => Output::zeros(py, &device, ty, &shape),
            None => Err(errors::launch(py, &program.name, &format!("there is no parameter `{name}`"))),
        };
        let mut outputs = self.values.iter().chain(&self.wrt).map(output).collect::<PyResult<Vec<_>>>()?;
        self.forget_raised();
        let (chosen, watched) = gradient.watched();
        let observed = self.observed(chosen, &watched, progress);
        let compiled = observed.as_ref().unwrap_or(chosen);
        let ran = {
            let mut args = launch.args();
            args.extend(seed.as_ref().map(Arg::Read));
            args.extend(outputs.iter_mut().map(|output| Arg::Write(output.array.any_mut())));
            errors::detached(py, || launched(compiled, &mut args, durable))?
        };
        if let Some(raised) = lock(&self.raised).take() {
            return Err(raised);
        }
        let ran = match ran {
            Ok(ran) => ran,
            Err(error) => {
                watched.raised(py)?;
                return Err(errors::exception(py, &error));
            }
        };
        let mut results = Vec::with_capacity(outputs.len());
        for output in outputs {
            results.push(output.finish()?);
        }
        let derivatives = results.split_off(self.values.len());
        Ok((results, derivatives, told(py, &ran)?))
    }

    /// The cotangent of a vjp.
    fn seed<'py>(
        &self,
        py: Python<'py>,
        program: &Program,
        leaves: &Leaves<'py>,
        device: &Device,
        seed: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Option<AnyArray>> {
        let fail = |message: &str| errors::launch(py, &program.name, message);
        let Some(seed) = seed else {
            return match self.kind {
                Kind::Vjp => Err(fail("a vjp takes a cotangent of its output: `v(cotangent, ...)`")),
                _ => Ok(None),
            };
        };
        let mut given = Leaves::with_room(1, self.program.get().device_name());
        given.push(&program.name, "cotangent", seed)?;
        let [Leaf::Array(elements)] = given.leaves[..] else {
            return Err(fail("the cotangent is an array of the shape of the output"));
        };
        let found = (elements.ty, elements.shape[..elements.rank].to_vec());
        match shape_of(program, &leaves.leaves, &self.of) {
            Some(needed) if needed == found && elements.contiguous => {}
            Some((ty, shape)) => {
                return Err(fail(&format!(
                    "the cotangent is an array of `{}` of shape {:?}; `{}`, whose cotangent it is, has `{ty}` and {shape:?} \
                     (both contiguous)",
                    found.0, found.1, self.of
                )));
            }
            None => return Err(fail(&format!("there is no parameter `{}`", self.of))),
        }
        // A number has no place of its own.
        if elements.rank == 0 && elements.place == Where::Host && device.backend().memory().is_some() {
            let number = lend(&ebbtide_runtime::interpreter(), &elements).and_then(|host| {
                let mut number = AnyArray::zeros(device, elements.ty, &[])?;
                number.copy_from_bytes(host.bytes())?;
                Ok(number)
            });
            return Ok(Some(number.map_err(|error| errors::exception(py, &error))?));
        }
        reachable(device, "cotangent", &elements).map_err(|why| fail(&why))?;
        // The object is an argument of the call and outlives it; a capsule of DLPack must too.
        let array = lend(device, &elements).and_then(|array| array.try_clone());
        Ok(Some(array.map_err(|error| errors::exception(py, &error))?))
    }
}

/// What was run, by name.
pub fn told<'py>(py: Python<'py>, ran: &Ran) -> PyResult<Bound<'py, PyDict>> {
    let told = PyDict::new(py);
    for (name, count) in [
        ("advanced", ran.advanced),
        ("recorded", ran.recorded),
        ("reversed", ran.reversed),
        ("stored", ran.stored),
        ("loaded", ran.loaded),
    ] {
        told.set_item(name, count)?;
    }
    Ok(told)
}

/// Calls a function of Python with how far a run is. An exception ends the run.
fn observer(callback: Py<PyAny>, watched: &Watched, raised: Raised) -> (Arc<Observer>, Cancel) {
    let cancel = watched.cancel.clone().unwrap_or_default();
    let stop = cancel.clone();
    let observer = move |progress: &ebbtide_runtime::Progress| {
        let ran = progress.ran;
        let done = ran.advanced + ran.recorded + ran.reversed;
        let told = Python::attach(|py| callback.call1(py, (done, progress.passes)));
        if let Err(error) = told {
            *lock(&raised) = Some(error);
            stop.cancel();
        }
    };
    (Arc::new(observer), cancel)
}

/// Calls a function of Python where the program yields: with the place, and a dictionary of copies of the arrays that the
/// program writes. What it changes in them goes back.
fn host(callback: Py<PyAny>, program: Arc<Program>, raised: Raised) -> Arc<ebbtide_runtime::OnYield> {
    Arc::new(move |at: &ebbtide_runtime::Yielded, host: &mut Host| {
        if at.shortage().is_some() {
            // There are no arrays to change: the launch ends with the error that says how much it lacks.
            return Err(Error::Plan { program: program.name.clone(), message: "no room".to_string() });
        }
        let asked = Python::attach(|py| -> PyResult<()> {
            let cpu = ebbtide_runtime::interpreter();
            let arrays = PyDict::new(py);
            let written = program.params.iter().filter_map(|param| match param {
                Param::Array(a) if program.array(*a).role == Role::Param(Access::Write) => Some(*a),
                _ => None,
            });
            let names: Vec<String> = written.map(|a| program.array(a).name.clone()).collect();
            for name in &names {
                let array = host.any(name).map_err(|error| errors::exception(py, &error))?;
                arrays.set_item(name, copied(py, array)?)?;
            }
            callback.call1(py, (Yielded { at: at.clone() }, &arrays))?;
            for name in &names {
                let Some(object) = arrays.get_item(name)? else { continue };
                let mut given = Leaves::with_room(1, Some("cpu"));
                given.push(&program.name, name, &object)?;
                let array = host.any(name).map_err(|error| errors::exception(py, &error))?;
                let [Leaf::Array(elements)] = given.leaves[..] else { continue };
                let fits = elements.ty == array.ty()
                    && elements.shape[..elements.rank] == *array.shape()
                    && elements.contiguous;
                if !fits {
                    let message = format!("`{name}` must keep its type and shape where the program yielded");
                    return Err(errors::launch(py, &program.name, &message));
                }
                let view = lend(&cpu, &elements);
                let view = view.map_err(|error| errors::exception(py, &error))?;
                if view.bytes() != array.bytes() {
                    array.copy_from_bytes(view.bytes()).map_err(|error| errors::exception(py, &error))?;
                }
            }
            Ok(())
        });
        asked.map_err(|error| {
            *lock(&raised) = Some(error);
            Error::Plan { program: program.name.clone(), message: "`on_yield` raised".to_string() }
        })
    })
}
