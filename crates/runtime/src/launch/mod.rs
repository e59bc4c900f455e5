//! Compiled programs: compile → launch → status.

pub(crate) mod label;
pub(crate) mod parts;
pub(crate) mod pending;
pub(crate) mod resident;
pub(crate) mod status;
pub(crate) mod stored;
pub(crate) mod yielded;

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use ebbtide_checkpoint::Position;
use ebbtide_ir::{
    self as ir, Access, Entered, Entry, Label, Made, Op, Outcome, Param, Place, Program, RegionId, Role,
    Stmt, SwappedShapes, Undone,
};
use ebbtide_sweep::Cancel;

use crate::array::arguments::{Arg, bind};
use crate::device::frame::extents::extents;
use crate::device::frame::{Frame, Temp};
use crate::device::{Device, Executable, Start};
use crate::error::{Error, Result};
use crate::launch::status::{Next, Status};
use crate::launch::yielded::{Yielded, entry};
use crate::memory::spare::Spare;

type Forms = Arc<Mutex<Vec<((SwappedShapes, Entered), Arc<dyn Executable>)>>>;

/// A program compiled for a device, without the types of its parameters.
#[derive(Clone)]
pub struct Compiled {
    program: Arc<Program>,
    device: Device,
    executable: Arc<dyn Executable>,
    /// The arrays that the program swaps.
    swaps: Arc<[(ir::ArrayId, ir::ArrayId)]>,
    /// Other forms of the program than the usual one, compiled when they are first wanted.
    forms: Forms,
    /// What entering at each region takes, found out when it is first done.
    entries: Arc<[OnceLock<Entry>]>,
    /// The arrays of which some region keeps a copy.
    undone: Arc<[ir::ArrayId]>,
    /// The temporaries: when a launch begins, they hold nothing.
    temps: Arc<[ir::ArrayId]>,
    /// What may ask launches to stop.
    cancel: Option<Cancel>,
    /// Where the last launch that yielded did so.
    last_yield: Arc<Mutex<Option<Position>>>,
    /// The memory of temporaries that the last launch left for the next one.
    spare: Arc<Spare>,
}

impl Compiled {
    /// Verifies and compiles a program.
    pub fn new(program: &Program, device: &Device) -> Result<Compiled> {
        let _span = tracing::debug_span!("compile", program = program.name).entered();
        let facts = Arc::new(ir::verify(program)?);
        let program = Arc::new(program.clone());
        let executable = device.backend().compile(&program, &facts, &[&program.body])?;
        let entries = (0..program.regions).map(|_| OnceLock::new()).collect();
        let undone = undone_arrays(&program);
        let temps = program.array_ids().filter(|a| matches!(program.array(*a).role, Role::Temp(_))).collect();
        Ok(Compiled {
            swaps: program.swaps().into(),
            program,
            device: device.clone(),
            executable,
            forms: Forms::default(),
            entries,
            undone: undone.into(),
            temps,
            cancel: None,
            last_yield: Arc::default(),
            spare: Arc::default(),
        })
    }

    /// The same program, with launches that stop when `cancel` says so: they return [`Error::Cancelled`] then. The arrays
    /// hold what an interrupted run left in them, and can be used again. Nothing is compiled again.
    pub fn cancel_with(&self, cancel: &Cancel) -> Compiled {
        Compiled { cancel: Some(cancel.clone()), ..self.clone() }
    }

    /// The program.
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// The device.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// The generated source, where the device generates any.
    pub fn source(&self) -> Option<&str> {
        self.executable.source()
    }

    /// The bytes that the last launch left for the next one: its temporaries.
    pub fn held_bytes(&self) -> u64 {
        self.spare.bytes()
    }

    /// Frees what the last launch left for the next one.
    pub fn release(&self) {
        self.spare.release();
    }

    /// Where a launch or a resume of this compiled program, or of a clone of it, last yielded; `None` if none has. It says
    /// where programs pause, to people who look at them; a launch's own yield is in its status.
    pub fn last_yield(&self) -> Option<Position> {
        self.last_yield.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Runs the program from its beginning, to its end or to a yield.
    pub fn launch(&self, mut args: Vec<Arg<'_>>) -> Result<Status> {
        self.start(&mut args)
    }

    /// Continues where the program yielded: runs that region again, and what comes after it.
    ///
    /// The arguments may be others than before: the program continues with their elements, shapes and scalars.
    pub fn resume(&self, at: &Yielded, mut args: Vec<Arg<'_>>) -> Result<Status> {
        self.enter(at.clone(), &mut args)
    }

    /// Runs the program from a label on, without a yield before it: every enclosing `for` starts at its first
    /// iteration, `while` and `loop` bodies are entered without asking their condition.
    pub fn resume_at(&self, label: impl Into<Label>, mut args: Vec<Arg<'_>>) -> Result<Status> {
        self.enter(Yielded::nowhere(&self.program).to(label)?, &mut args)
    }

    /// Runs the program; after each yield `callback` repairs what must be repaired and says how to continue.
    ///
    /// The status is [`Status::Yielded`] only if the callback asked for [`Next::Leave`].
    pub fn drive<'a, N: Into<Next>>(
        &self,
        mut args: Vec<Arg<'a>>,
        mut callback: impl FnMut(&Yielded, &mut [Arg<'a>]) -> Result<N>,
    ) -> Result<Status> {
        let mut status = self.start(&mut args)?;
        while let Status::Yielded(at) = status {
            status = match callback(&at, &mut args)?.into() {
                Next::Resume => self.enter(at, &mut args)?,
                Next::To(label) => self.enter(at.to(label)?, &mut args)?,
                Next::Leave => return Ok(Status::Yielded(at)),
            };
        }
        Ok(status)
    }

    /// Reads a [`Yielded`] of this program that [`Yielded::save`] wrote, in this process or another.
    pub fn load(&self, path: impl AsRef<Path>) -> Result<Yielded> {
        stored::load(&self.program, path.as_ref(), self.device.meter())
    }

    fn start(&self, args: &mut [Arg<'_>]) -> Result<Status> {
        let run = || self.prepare_start(args).and_then(|prepared| self.run(prepared, args));
        parts::around(&self.program, run, parts::status_text)
    }

    fn enter(&self, at: Yielded, args: &mut [Arg<'_>]) -> Result<Status> {
        let run = || self.prepare_entry(at, args).and_then(|prepared| self.run(prepared, args));
        parts::around(&self.program, run, parts::status_text)
    }

    fn run(&self, mut prepared: Prepared, args: &mut [Arg<'_>]) -> Result<Status> {
        let status = self.execute(&mut prepared);
        give_back(&self.program, &prepared.frame, args);
        status
    }

    pub(crate) fn program_handle(&self) -> Arc<Program> {
        self.program.clone()
    }

    pub(crate) fn prepare_start(&self, args: &[Arg<'_>]) -> Result<Prepared> {
        let made = || {
            let (views, scalars) = bind(&self.program, &self.device, args)?;
            Frame::new(&self.program, views, scalars, &self.spare, self.device.meter())
        };
        let mut frame = match made() {
            // What is left over has other sizes.
            Err(Error::OutOfMemory { .. }) if self.spare.bytes() > 0 => {
                self.spare.release();
                made()?
            }
            made => made?,
        };
        self.executable.forget(&mut frame, &self.temps);
        frame.cancel.clone_from(&self.cancel);
        frame.reserve_undo(&self.undone, self.device.meter())?;
        Ok(Prepared { frame, place: None, known: None })
    }

    pub(crate) fn prepare_entry(&self, mut at: Yielded, args: &[Arg<'_>]) -> Result<Prepared> {
        let program = &self.program;
        if !Arc::ptr_eq(program, &at.program) {
            if program.hash() != at.program.hash() {
                let message = format!(
                    "it was asked to resume at `{}`, where program `{}` yielded",
                    at.label_name(),
                    at.program.name
                );
                return Err(Error::launch(program, message));
            }
            at = at.in_values_of(program);
        }
        let entry = self.entry(at.place.region)?;
        let (views, arguments) = bind(program, &self.device, args)?;
        let Yielded { place, scalars, temps, known, kept, .. } = at;
        let temps = self.temps_that_stay(entry, known.as_deref(), temps)?;
        for temp in temps.iter().filter(|temp| entry.remade.contains(&temp.array)) {
            let decl = program.array(temp.array);
            let now = extents(program, temp.array, &views, &arguments)?;
            if now.iter().zip(temp.shape).any(|(now, then)| *now as i64 != then) {
                let message = format!(
                    "temporary `{}` has shape {:?} where the program yielded and would have shape {now:?} in the \
                     next iteration: the arguments that decide its shape cannot change here; declare it inside the region",
                    decl.name,
                    &temp.shape[..decl.rank]
                );
                return Err(Error::launch(program, message));
            }
        }
        // A temporary whose declaration is skipped holds zeros.
        let nothing_spare = Spare::default();
        let mut frame =
            Frame::with(program, views, arguments, scalars, temps, (&nothing_spare, self.device.meter()))?;
        frame.cancel.clone_from(&self.cancel);
        frame.reserve_undo(&self.undone, self.device.meter())?;
        let known = match known {
            None => {
                entry.computed.iter().for_each(|v| compute(program, &mut frame, *v));
                None
            }
            Some(known) => Some(derive(program, entry, Arc::unwrap_or_clone(known), kept, &mut frame)),
        };
        Ok(Prepared { frame, place: Some(place), known })
    }

    /// Temporaries that the region or what follows it makes have the shapes that the arguments give them now;
    /// the others are as they were left.
    fn temps_that_stay(
        &self,
        entry: &Entry,
        known: Option<&Made>,
        temps: Arc<Vec<Temp>>,
    ) -> Result<Vec<Temp>> {
        let made = known.unwrap_or(&entry.visible);
        let stays =
            |temp: &Temp| made.temps.contains(&temp.array) || entry.needed.temps.contains(&temp.array);
        match Arc::try_unwrap(temps) {
            Ok(temps) => {
                temps.into_iter().filter(stays).map(|temp| temp.moved_to(self.device.meter())).collect()
            }
            Err(shared) => {
                shared.iter().filter(|t| stays(t)).map(|t| t.try_clone(self.device.meter())).collect()
            }
        }
    }

    /// Runs what was prepared; the frame then says where the arrays are.
    pub(crate) fn execute(&self, prepared: &mut Prepared) -> Result<Status> {
        let Prepared { frame, place: entered, known } = prepared;
        let start = entered.as_ref().map_or(Start::Beginning, Start::At);
        let program = &self.program.name;
        let _span = match entered {
            None => tracing::debug_span!("launch", program),
            Some(_) => tracing::debug_span!("resume", program),
        }
        .entered();
        frame.go_on(&self.program)?;
        let executable = self.executable_for(frame, start)?;
        let ran = executable.run(0, frame, start);
        let home = frame.return_home(self.device.meter(), matches!(ran, Ok(Outcome::Yielded { .. })));
        let outcome = ran?;
        // Others may look at the caller's memory as soon as the launch is over.
        if home? && let Some(memory) = self.device.backend().memory() {
            memory.finish()?;
        }
        let Outcome::Yielded { place, reason } = outcome else {
            frame.leave_temps(&self.spare);
            return Ok(Status::Done);
        };
        // What was skipped on the way to the entry may be unknown still.
        let mut known_here = None;
        if let (Some(entered), Some(known)) = (entered, known) {
            let unknown = self.entry(entered.region)?.unknown(known, &entered.iterations, &place.iterations);
            let visible = &self.entry(place.region)?.visible;
            if unknown.intersection(visible) != Made::default() {
                known_here = Some(Arc::new(visible.difference(&unknown)));
            }
        }
        let at = Yielded {
            program: self.program.clone(),
            kept: place.iterations.len(),
            place,
            reason,
            temps: Arc::new(frame.take_temps(&self.program)),
            scalars: std::mem::take(&mut frame.scalars),
            known: known_here,
            shortage: None,
        };
        tracing::debug!(name: "yield", position = %at.position(), reason);
        *self.last_yield.lock().unwrap_or_else(PoisonError::into_inner) = Some(at.position());
        Ok(Status::Yielded(at))
    }

    /// The code for a run on these arrays that begins here. The usual code relies on swapped arrays being equal in shape,
    /// and has entries at labels only where the program yields.
    fn executable_for(&self, frame: &Frame, start: Start<'_>) -> Result<Arc<dyn Executable>> {
        let shape = |a: ir::ArrayId| &frame.arrays[a.index()].shape[..self.program.array(a).rank];
        let unequal = self.swaps.iter().copied().find(|(a, b)| shape(*a) != shape(*b));
        let swapped = unequal.map_or(SwappedShapes::Equal, |_| SwappedShapes::Unknown);
        let entered = match start {
            Start::At(_) if !self.program.yields() => Entered::AtAnyLabel,
            _ => Entered::IfItYields,
        };
        if (swapped, entered) == (SwappedShapes::Equal, Entered::IfItYields) {
            return Ok(self.executable.clone());
        }
        let mut forms = self.forms.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, compiled)) = forms.iter().find(|(form, _)| *form == (swapped, entered)) {
            return Ok(compiled.clone());
        }
        let _span = tracing::debug_span!("compile", program = self.program.name).entered();
        let form = Arc::new(Program { swapped, entered, ..(*self.program).clone() });
        let facts = ir::verify(&form).map_err(|error| match unequal {
            Some(pair) => unequal_shapes(&form, pair, &error),
            None => error.into(),
        })?;
        let compiled = self.device.backend().compile(&form, &Arc::new(facts), &[&form.body])?;
        forms.push(((swapped, entered), compiled.clone()));
        Ok(compiled)
    }

    fn entry(&self, region: RegionId) -> Result<&Entry> {
        let Some(cell) = self.entries.get(region.index()) else {
            return Err(Error::launch(&self.program, format!("there is no {region:?}")));
        };
        if let Some(entry) = cell.get() {
            return Ok(entry);
        }
        let found = entry(&self.program, region)?;
        Ok(cell.get_or_init(|| found))
    }
}

/// A program that is lawful only where two arrays that it swaps have one shape.
pub(crate) fn unequal_shapes(
    program: &Program,
    (a, b): (ir::ArrayId, ir::ArrayId),
    error: &ir::Error,
) -> Error {
    let [a, b] = [a, b].map(|id| &program.array(id).name);
    let message = format!(
        "`{a}` and `{b}`, which the program swaps, have different shapes, and then it is not lawful: {error}"
    );
    Error::launch(program, message)
}

/// The arrays of which some region keeps a copy.
pub(crate) fn undone_arrays(program: &Program) -> Vec<ir::ArrayId> {
    let mut undone = Vec::new();
    ir::walk(&program.body, &mut |stmt| {
        if let Stmt::Region(region) = stmt {
            undone.extend(Undone::by(region).arrays);
        }
    });
    undone.sort_unstable();
    undone.dedup();
    undone
}

/// A launch that is ready to run.
pub(crate) struct Prepared {
    pub frame: Frame,
    /// Where it begins, if not at the beginning.
    place: Option<Place>,
    /// What is known there, if that is not all that is visible.
    known: Option<Made>,
}

/// Computes what follows from what is known at an entry, and gives what is known then.
fn derive(program: &Program, entry: &Entry, mut known: Made, kept: usize, frame: &mut Frame) -> Made {
    let fresh = &entry.loops[kept..];
    let bounds = ir::loop_bounds(program, fresh);
    for v in entry.derive(program, &known, kept).compute {
        known.values.insert(v);
        match bounds.iter().find(|(var, ..)| *var == v) {
            Some((_, from, _)) => frame.scalars.values[v.index()] = frame.scalars.values[from.index()],
            None => compute(program, frame, v),
        }
    }
    for id in fresh {
        if let Some((_, from, to)) = ir::loop_bounds(program, &[*id]).pop() {
            let value = |v: ir::ValueId| frame.scalars.values[v.index()] as i64;
            frame.scalars.bounds[id.index()] = [value(from), value(to)];
        }
    }
    known
}

/// Computes a value that does not depend on data, from what is in the frame.
fn compute(program: &Program, frame: &mut Frame, v: ir::ValueId) {
    let bits = match *program.op(v) {
        Op::Scalar(s) => Some(frame.arguments[s.index()].bits()),
        Op::Dim(array, k) => Some(frame.arrays[array.index()].shape[k as usize] as u64),
        // A division by zero stopped the run when it was first made.
        _ => ir::evaluate::evaluate(program, v, |operand| frame.scalars.values[operand.index()])
            .and_then(|result| result.ok()),
    };
    if let Some(bits) = bits {
        frame.scalars.values[v.index()] = bits;
    }
}

/// After `swap`, the memory of one parameter is another's: the caller's handles follow the names.
fn give_back(program: &Program, frame: &Frame, args: &mut [Arg<'_>]) {
    let moved = |arg: &Arg<'_>, param: &Param| match (arg, param) {
        (Arg::Write(array), Param::Array(id)) => {
            program.array(*id).role == Role::Param(Access::Write)
                && array.buffer.address() != frame.arrays[id.index()].address
        }
        _ => false,
    };
    if !args.iter().zip(&program.params).any(|(arg, param)| moved(arg, param)) {
        return;
    }
    let mut owner: HashMap<*mut u8, usize> = HashMap::new();
    for (i, arg) in args.iter().enumerate() {
        if let Arg::Write(array) = arg {
            owner.insert(array.buffer.address(), i);
        }
    }
    for i in 0..args.len() {
        let Param::Array(id) = program.params[i] else { continue };
        if program.array(id).role != Role::Param(Access::Write) {
            continue;
        }
        let wanted = frame.arrays[id.index()].address;
        let Arg::Write(array) = &args[i] else { continue };
        let held = array.buffer.address();
        if held == wanted {
            continue;
        }
        let Some(&j) = owner.get(&wanted) else { continue };
        if let Ok([Arg::Write(a), Arg::Write(b)]) = args.get_disjoint_mut([i, j]) {
            // Both have the type and the shape of what `swap` exchanged.
            std::mem::swap(a.buffer_mut(), b.buffer_mut());
            owner.insert(wanted, i);
            owner.insert(held, j);
        }
    }
}
