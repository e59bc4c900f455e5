//! Gradients that survive their process.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use ebbtide::ir;
use ebbtide::prelude::*;
use ebbtide_runtime::{Backend, Buffer, Executable, Frame, Memory, Start};

/// Statements that record before the loop, loops in loops, and a sibling.
#[program]
pub fn simulation(
    u: &mut Array1<f64>,
    c: &mut Array1<f64>,
    outer: usize,
    inner: usize,
    loss: &mut Array0<f64>,
) {
    let n = u.len();
    for i in par(0..n) {
        u[i] = u[i] * u[i] + 0.1;
    }
    for t in 0..outer {
        for i in par(0..n) {
            c[i] = u[i].sin() * (1.0 + 0.1 * (t as f64));
        }
        for k in 0..inner {
            for i in par(0..n) {
                u[i] = u[i] * 0.9 + 0.05 * u[i] * u[i] + 0.1 * c[i] * ((k + t) as f64).cos();
            }
        }
    }
    for i in par(0..n) {
        u[i] = u[i].tanh() * c[i];
    }
    for _t in 0..outer {
        for i in par(0..n) {
            u[i] += 0.01 * u[i] * c[i];
        }
    }
    for i in par(0..n) {
        loss[[]] += u[i] * u[i];
    }
}

type P = simulation;

/// What a child process runs: the gradient in a directory.
fn gradient(dir: Option<&Path>, budget: Budget) -> Result<(Vec<u64>, u64), ebbtide::Error> {
    let device = crate::cpu();
    let mut u = device.array(&(0..500).map(|i| 0.3 + 0.001 * i as f64).collect::<Vec<_>>()).unwrap();
    let mut c = device.zeros([500]).unwrap();
    let mut loss = device.scalar(0.0).unwrap();
    let g = simulation().value_and_grad(P::loss).wrt(P::u).budget(budget).compile(&device)?;
    let out = match dir {
        Some(dir) => {
            g.launch_durable_every(dir, Duration::from_millis(1), (&mut u, &mut c, 30, 20, &mut loss))?
        }
        None => g.launch((&mut u, &mut c, 30, 20, &mut loss))?,
    };
    let gradient = out.get(P::u)?.as_slice().iter().map(|x| x.to_bits()).collect();
    Ok((gradient, out.value(P::loss)?.value().to_bits()))
}

const BUDGETS: [Budget; 3] =
    [Budget::StoreAll, Budget::Bytes(76_400), Budget::Revolve { slots: 2, block: 1 }];

#[test]
fn a_durable_run_of_other_arguments_is_refused() {
    let dir = crate::folder::folder();
    let run = dir.path().join("run");
    let device = crate::cpu();
    let mut u = device.array(&[0.1, 0.2]).unwrap();
    let mut c = device.zeros([2]).unwrap();
    let mut loss = device.scalar(0.0).unwrap();
    let g = simulation().grad(P::loss).wrt(P::u).compile(&device).unwrap();
    g.launch_durable(&run, (&mut u, &mut c, 3, 2, &mut loss)).unwrap();
    u.fill(0.5).unwrap();
    let error = g.launch_durable(&run, (&mut u, &mut c, 3, 2, &mut loss)).unwrap_err().to_string();
    assert!(error.contains("`u`"), "{error}");
    let error = g.launch_durable(&run, (&mut u, &mut c, 4, 2, &mut loss)).unwrap_err().to_string();
    assert!(error.contains("`outer`"), "{error}");
}

#[test]
fn a_damaged_durable_run_gives_the_same_bits_or_says_what_is_damaged() {
    let expected = gradient(None, Budget::StoreAll).unwrap();
    let dir = crate::folder::folder();
    let run = dir.path().join("run");
    assert_eq!(gradient(Some(&run), BUDGETS[1]).unwrap(), expected);
    let files: Vec<_> = std::fs::read_dir(&run).unwrap().map(|e| e.unwrap().path()).collect();
    for file in files.iter().filter(|f| f.is_file()) {
        let bytes = std::fs::read(file).unwrap();
        if bytes.is_empty() {
            continue;
        }
        let mut damaged = bytes.clone();
        let at = bytes.len() * 2 / 3;
        damaged[at] ^= 0x10;
        std::fs::write(file, &damaged).unwrap();
        match gradient(Some(&run), BUDGETS[1]) {
            Ok(found) => assert_eq!(found, expected, "{}", file.display()),
            Err(error) => {
                let name = file.file_name().unwrap().to_string_lossy();
                let text = error.to_string();
                assert!(text.contains(&*name) || text.contains(&*run.to_string_lossy()), "{name}: {text}");
            }
        }
        std::fs::remove_dir_all(&run).unwrap();
        assert_eq!(gradient(Some(&run), BUDGETS[1]).unwrap(), expected);
    }
}

/// A device that does something unusual after so many segments.
pub(crate) struct Fragile {
    pub device: Device,
    pub left: Arc<AtomicI64>,
    pub then: Then,
}

/// What it does.
#[derive(Clone)]
pub(crate) enum Then {
    /// It breaks down.
    Fail,
    /// It wants the run to stop.
    Cancel(Cancel),
}

struct FragileCode {
    code: Arc<dyn Executable>,
    left: Arc<AtomicI64>,
    then: Then,
}

// SAFETY (*Faithful code*, *One memory*): those of the device that it is made of.
unsafe impl Backend for Fragile {
    fn name(&self) -> &str {
        "fragile"
    }

    fn memory(&self) -> Option<Arc<dyn Memory>> {
        self.device.backend().memory()
    }

    fn compile(
        &self,
        program: &Arc<ir::Program>,
        facts: &Arc<ir::Facts>,
        segments: &[&ir::Block],
    ) -> ebbtide_runtime::Result<Arc<dyn Executable>> {
        let code = self.device.backend().compile(program, facts, segments)?;
        Ok(Arc::new(FragileCode { code, left: self.left.clone(), then: self.then.clone() }))
    }
}

impl FragileCode {
    fn count(&self) -> ebbtide_runtime::Result<()> {
        if self.left.fetch_sub(1, Ordering::Relaxed) <= 0 {
            match &self.then {
                Then::Fail => return Err(ebbtide_runtime::Error::OutOfMemory { bytes: 1 }),
                Then::Cancel(cancel) => cancel.cancel(),
            }
        }
        Ok(())
    }
}

// SAFETY: all clauses by the code of the device.
unsafe impl Executable for FragileCode {
    fn source(&self) -> Option<&str> {
        self.code.source()
    }

    fn packed_tapes(&self) -> &[ir::ArrayId] {
        self.code.packed_tapes()
    }

    fn run(
        &self,
        segment: usize,
        frame: &mut Frame,
        start: Start<'_>,
    ) -> ebbtide_runtime::Result<ir::Outcome> {
        self.count()?;
        self.code.run(segment, frame, start)
    }

    fn enqueue(&self, segment: usize, frame: &mut Frame) -> ebbtide_runtime::Result<()> {
        self.count()?;
        self.code.enqueue(segment, frame)
    }

    fn submit(&self, frame: &mut Frame) -> ebbtide_runtime::Result<()> {
        self.code.submit(frame)
    }

    fn settle(&self, frame: &mut Frame) -> ebbtide_runtime::Result<()> {
        self.code.settle(frame)
    }

    fn store(
        &self,
        frame: &mut Frame,
        arrays: &[ir::ArrayId],
        to: &mut [Buffer],
    ) -> ebbtide_runtime::Result<()> {
        self.code.store(frame, arrays, to)
    }

    fn load(
        &self,
        frame: &mut Frame,
        arrays: &[ir::ArrayId],
        from: &[Buffer],
    ) -> ebbtide_runtime::Result<()> {
        self.code.load(frame, arrays, from)
    }
}

#[test]
fn a_run_that_is_taken_up_goes_on_where_it_was() {
    let left = Arc::new(AtomicI64::new(i64::MAX));
    let device =
        Device::new(Arc::new(Fragile { device: crate::cpu(), left: left.clone(), then: Then::Fail }));
    let mut u = device.array(&(0..50).map(|i| 0.3 + 0.01 * i as f64).collect::<Vec<_>>()).unwrap();
    let mut c = device.zeros([50]).unwrap();
    let mut loss = device.scalar(0.0).unwrap();
    let g = simulation().grad(P::loss).wrt(P::u).compile(&device).unwrap();
    for budget in BUDGETS {
        let g = g.with_budget(budget);
        left.store(1 << 40, Ordering::Relaxed);
        let out = g.launch((&mut u, &mut c, 9, 4, &mut loss)).unwrap();
        let bits = |out: &Gradients| {
            out.get(P::u).unwrap().as_slice().iter().map(|x| x.to_bits()).collect::<Vec<_>>()
        };
        let (expected, segments) = (bits(&out), (1 << 40) - left.load(Ordering::Relaxed));
        // It breaks down early and late, and the next one takes it up.
        for until in (1..segments).step_by((segments / 5).max(1) as usize) {
            let dir = crate::folder::folder();
            let mut launch = |segments: i64| {
                left.store(segments, Ordering::Relaxed);
                let args = (&mut u, &mut c, 9, 4, &mut loss);
                g.launch_durable_every(dir.path().join("run"), Duration::ZERO, g.shared(args))
            };
            assert!(launch(until).is_err());
            let out = launch(1 << 40).unwrap();
            assert_eq!(bits(&out), expected, "{budget:?}: broken down after {until} of {segments} segments");
            let again = (1 << 40) - left.load(Ordering::Relaxed);
            // What was done is not done again, but for the action that was under way and the one being written.
            assert!(
                again <= segments - until + segments / 5,
                "{again} of {segments} again, broken after {until}"
            );
        }
    }
}

#[test]
fn a_run_goes_on_with_the_gradient_program_that_it_began_with() {
    let left = Arc::new(AtomicI64::new(i64::MAX));
    let device =
        Device::new(Arc::new(Fragile { device: crate::cpu(), left: left.clone(), then: Then::Fail }));
    let mut u = device.array(&[0.3; 500]).unwrap();
    let mut c = device.zeros([500]).unwrap();
    let mut loss = device.scalar(0.0).unwrap();
    let g = simulation().grad(P::loss).wrt(P::u).compile(&device).unwrap();
    let bits =
        |out: &Gradients| out.get(P::u).unwrap().as_slice().iter().map(|x| x.to_bits()).collect::<Vec<_>>();
    let expected = bits(&g.launch((&mut u, &mut c, 30, 20, &mut loss)).unwrap());
    // With all memory the tapes of inner loops are kept; with little, these loops are swept. Each begins a run that the
    // other goes on with.
    for [first, then] in [[BUDGETS[0], BUDGETS[2]], [BUDGETS[2], BUDGETS[0]]] {
        let dir = crate::folder::folder();
        let mut launch = |budget: Budget, segments: i64| {
            left.store(segments, Ordering::Relaxed);
            let args = (&mut u, &mut c, 30, 20, &mut loss);
            g.with_budget(budget).launch_durable_every(dir.path().join("run"), Duration::ZERO, g.shared(args))
        };
        assert!(launch(first, 3).is_err());
        assert_eq!(bits(&launch(then, i64::MAX).unwrap()), expected, "{first:?}, then {then:?}");
    }
}
