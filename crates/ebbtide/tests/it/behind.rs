//! A device that is like a GPU and needs none: segments and copies run behind the host, its memory is not the host's, and its
//! own tables of a frame are the true ones.
//!
//! It computes with the CPU's code, and holds the runtime to its word: what the host changes of a frame, but for scalars and
//! new places on tapes, it changes when nothing is enqueued, and takes the tables away.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use ebbtide::ir;
use ebbtide::prelude::*;
use ebbtide_runtime::testing::{FakeMemory, Travel};
use ebbtide_runtime::{Backend, Buffer, Error, Executable, Frame, Memory, Result, Start, TapePlaces, View};
use ir::ArrayId;

/// Such a device, and how often it was waited for.
pub(crate) fn behind() -> (Device, Arc<AtomicU64>) {
    let waits = Arc::<AtomicU64>::default();
    let backend = Behind { cpu: crate::cpu(), memory: FakeMemory::new(Travel::AtOnce), waits: waits.clone() };
    (Device::new(Arc::new(backend)), waits)
}

struct Behind {
    cpu: Device,
    memory: Arc<FakeMemory>,
    waits: Arc<AtomicU64>,
}

// SAFETY (*Faithful code*): the CPU's, of what is given; (*One memory*): one for all calls, which the CPU can touch.
unsafe impl Backend for Behind {
    fn name(&self) -> &str {
        "behind"
    }

    fn memory(&self) -> Option<Arc<dyn Memory>> {
        Some(self.memory.clone())
    }

    fn compile(
        &self,
        program: &Arc<ir::Program>,
        facts: &Arc<ir::Facts>,
        segments: &[&ir::Block],
    ) -> Result<Arc<dyn Executable>> {
        let code = self.cpu.backend().compile(program, facts, segments)?;
        Ok(Arc::new(BehindCode { code, waits: self.waits.clone() }))
    }
}

struct BehindCode {
    code: Arc<dyn Executable>,
    waits: Arc<AtomicU64>,
}

/// Addresses, shapes and tapes of a frame.
#[derive(Clone)]
struct Places {
    arrays: Vec<View>,
    tapes: Vec<(Vec<*mut u8>, usize)>,
}

impl Places {
    fn of(frame: &Frame) -> Places {
        let tape = |tape: &TapePlaces| (tape.places.clone(), tape.depth);
        Places { arrays: frame.arrays.clone(), tapes: frame.tapes.iter().map(tape).collect() }
    }

    fn exchange(&mut self, frame: &mut Frame) {
        std::mem::swap(&mut self.arrays, &mut frame.arrays);
        for ((places, depth), tape) in self.tapes.iter_mut().zip(&mut frame.tapes) {
            std::mem::swap(places, &mut tape.places);
            std::mem::swap(depth, &mut tape.depth);
        }
    }
}

/// The tables of a frame on the side of the device.
struct Tables {
    own: Places,
    scalars: ir::Scalars,
    /// What the host was told last.
    told: Places,
    told_scalars: ir::Scalars,
    /// What was asked for and has not run.
    waiting: Vec<Step>,
}

// SAFETY (*Liveness*): the addresses are those of a frame, which may be sent too.
unsafe impl Send for Tables {}

enum Step {
    /// After these values and locals were changed.
    Segment(usize, [Vec<(usize, u64)>; 2]),
    Store(ArrayId, *mut u8),
    Load(ArrayId, *mut u8),
}

fn changes(known: &[u64], now: &[u64]) -> Vec<(usize, u64)> {
    let both = known.iter().zip(now).enumerate();
    both.filter(|(_, (known, now))| known != now).map(|(k, (_, now))| (k, *now)).collect()
}

fn broken(what: &str) -> Error {
    let reason = format!("the host changed {what} and left the device its old tables");
    Error::Device { device: "behind".to_string(), reason }
}

impl BehindCode {
    /// The tables of a frame: as it left them, or made from what the frame says.
    fn tables(&self, frame: &mut Frame) -> Result<Box<Tables>> {
        let Some(aside) = frame.aside.take() else {
            let (places, scalars) = (Places::of(frame), frame.scalars.clone());
            return Ok(Box::new(Tables {
                own: places.clone(),
                told: places,
                told_scalars: scalars.clone(),
                scalars,
                waiting: Vec::new(),
            }));
        };
        let mut tables = aside.downcast::<Tables>().unwrap();
        let alike = |(a, b): (&View, &View)| (a.address, a.shape, a.bytes) == (b.address, b.shape, b.bytes);
        if !frame.arrays.iter().zip(&tables.told.arrays).all(alike) {
            return Err(broken("addresses or shapes"));
        }
        let Tables { own, told, .. } = &mut *tables;
        for (tape, (own, told)) in frame.tapes.iter().zip(own.tapes.iter_mut().zip(&mut told.tapes)) {
            if tape.depth != told.1 || !tape.places.starts_with(&told.0) {
                return Err(broken("what tapes hold"));
            }
            own.0.extend_from_slice(&tape.places[told.0.len()..]);
            told.0.clone_from(&tape.places);
        }
        Ok(tables)
    }

    fn ask(&self, segment: usize, frame: &Frame, tables: &mut Tables) {
        let (known, now) = (&tables.told_scalars, &frame.scalars);
        let changed = [changes(&known.values, &now.values), changes(&known.locals, &now.locals)];
        tables.told_scalars = frame.scalars.clone();
        tables.waiting.push(Step::Segment(segment, changed));
    }

    /// Runs what waits; the last segment begins at `start`.
    fn catch_up(&self, frame: &mut Frame, tables: &mut Tables, start: Start<'_>) -> Result<ir::Outcome> {
        let mut outcome = ir::Outcome::Done;
        let steps = std::mem::take(&mut tables.waiting);
        let last = steps.len().saturating_sub(1);
        for (k, step) in steps.into_iter().enumerate() {
            match step {
                Step::Segment(segment, [values, locals]) => {
                    values.into_iter().for_each(|(v, bits)| tables.scalars.values[v] = bits);
                    locals.into_iter().for_each(|(l, bits)| tables.scalars.locals[l] = bits);
                    tables.own.exchange(frame);
                    std::mem::swap(&mut tables.scalars, &mut frame.scalars);
                    let start = if k == last { start } else { Start::Beginning };
                    let ran = self.code.run(segment, frame, start);
                    std::mem::swap(&mut tables.scalars, &mut frame.scalars);
                    tables.own.exchange(frame);
                    outcome = ran?;
                }
                Step::Store(array, slot) => {
                    let View { address, bytes, .. } = aligned(tables.own.arrays[array.index()])?;
                    // SAFETY (*Bounds*, *Liveness*): the slot has the size of the array, and lives until this has run.
                    unsafe { std::ptr::copy_nonoverlapping(address, slot, bytes) };
                }
                Step::Load(array, slot) => {
                    let View { address, bytes, .. } = aligned(tables.own.arrays[array.index()])?;
                    // SAFETY (*Bounds*, *Liveness*): as above.
                    unsafe { std::ptr::copy_nonoverlapping(slot, address, bytes) };
                }
            }
        }
        Ok(outcome)
    }

    /// Tells the host what the tables say, but for scalars that it has changed since.
    fn tell(&self, frame: &mut Frame, tables: &mut Tables) {
        self.waits.fetch_add(1, Ordering::Relaxed);
        tables.own.clone().exchange(frame);
        let changed = [
            changes(&tables.told_scalars.values, &frame.scalars.values),
            changes(&tables.told_scalars.locals, &frame.scalars.locals),
        ];
        frame.scalars = tables.scalars.clone();
        (tables.told, tables.told_scalars) = (tables.own.clone(), tables.scalars.clone());
        let [values, locals] = changed;
        values.into_iter().for_each(|(v, bits)| frame.scalars.values[v] = bits);
        locals.into_iter().for_each(|(l, bits)| frame.scalars.locals[l] = bits);
    }

    fn copies(&self, frame: &mut Frame, steps: impl Iterator<Item = Step>) -> Result<()> {
        let mut tables = self.tables(frame)?;
        tables.waiting.extend(steps);
        frame.aside = Some(tables);
        Ok(())
    }
}

/// An error where an array is not where it can be copied 16 bytes at a time, as GPUs do.
fn aligned(view: View) -> Result<View> {
    match view.bytes >= 16 && !view.address.addr().is_multiple_of(16) {
        true => Err(Error::Device { device: "behind".to_string(), reason: "misaligned address".to_string() }),
        false => Ok(view),
    }
}

/// An error where a slot has not the size of its array.
fn fits(frame: &Frame, arrays: &[ArrayId], slots: &[Buffer]) -> Result<()> {
    for (array, slot) in arrays.iter().zip(slots) {
        let (needed, found) = (frame.arrays[array.index()].bytes, slot.len());
        if needed != found {
            return Err(Error::WrongSize { needed, found });
        }
    }
    Ok(())
}

// SAFETY (*Bounds*, *Validity*, *Exchange*): by the CPU's code; (*Exclusive access*): nothing waits when `run` or `settle`
// has returned.
unsafe impl Executable for BehindCode {
    fn source(&self) -> Option<&str> {
        self.code.source()
    }

    fn packed_tapes(&self) -> &[ArrayId] {
        self.code.packed_tapes()
    }

    fn run(&self, segment: usize, frame: &mut Frame, start: Start<'_>) -> Result<ir::Outcome> {
        let mut tables = self.tables(frame)?;
        self.ask(segment, frame, &mut tables);
        let outcome = self.catch_up(frame, &mut tables, start)?;
        self.tell(frame, &mut tables);
        frame.aside = Some(tables);
        Ok(outcome)
    }

    fn enqueue(&self, segment: usize, frame: &mut Frame) -> Result<()> {
        let mut tables = self.tables(frame)?;
        self.ask(segment, frame, &mut tables);
        frame.aside = Some(tables);
        Ok(())
    }

    fn submit(&self, frame: &mut Frame) -> Result<()> {
        if frame.aside.is_none() {
            return Ok(());
        }
        let mut tables = self.tables(frame)?;
        let caught_up = self.catch_up(frame, &mut tables, Start::Beginning);
        frame.aside = Some(tables);
        caught_up.map(drop)
    }

    fn settle(&self, frame: &mut Frame) -> Result<()> {
        if frame.aside.is_none() {
            return Ok(());
        }
        let mut tables = self.tables(frame)?;
        let caught_up = self.catch_up(frame, &mut tables, Start::Beginning);
        self.tell(frame, &mut tables);
        frame.aside = Some(tables);
        caught_up.map(drop)
    }

    fn store(&self, frame: &mut Frame, arrays: &[ArrayId], to: &mut [Buffer]) -> Result<()> {
        fits(frame, arrays, to)?;
        let both = arrays.iter().zip(to.iter());
        self.copies(frame, both.map(|(array, slot)| Step::Store(*array, slot.address())))
    }

    fn load(&self, frame: &mut Frame, arrays: &[ArrayId], from: &[Buffer]) -> Result<()> {
        fits(frame, arrays, from)?;
        let both = arrays.iter().zip(from);
        self.copies(frame, both.map(|(array, slot)| Step::Load(*array, slot.address())))
    }
}

/// As many elements in as many iterations as the host likes: it asks for all, and waits for the end alone.
#[program]
fn damped(x: &mut Array1<f64>, steps: usize, loss: &mut Array0<f64>) {
    for _t in 0..steps {
        for i in par(0..x.len()) {
            x[i] = x[i] * 0.99 + 0.01 * x[i].sin();
        }
    }
    for i in par(0..x.len()) {
        loss[[]] += x[i] * x[i];
    }
}

#[test]
fn a_gradient_that_cannot_yield_is_waited_for_once() {
    let (device, waits) = behind();
    let gradient = |device: &Device, elements: usize, budget: Budget| {
        let (mut x, mut loss) = (device.array(&vec![0.4; elements]).unwrap(), device.scalar(0.0).unwrap());
        let g = damped().grad(damped::loss).wrt(damped::x).budget(budget).compile(device).unwrap();
        let before = waits.load(Ordering::Relaxed);
        let out = g.launch((&mut x, 50, &mut loss)).unwrap();
        let waited = waits.load(Ordering::Relaxed) - before;
        (out.get(damped::x).unwrap().to_vec(), waited)
    };
    // The places of small arrays share memory.
    for elements in [1, 2, 3, 5, 8, 30] {
        for budget in
            [Budget::StoreAll, Budget::Periodic { period: 10 }, Budget::Revolve { slots: 3, block: 2 }]
        {
            let (found, waited) = gradient(&device, elements, budget);
            assert_eq!(found, gradient(&crate::cpu(), elements, budget).0, "{elements}, {budget:?}");
            assert_eq!(waited, 1, "{elements}, {budget:?}");
        }
    }
}
