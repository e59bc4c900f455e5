//! The planned peak is what the process really allocates: measured by an allocator that counts.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use ebbtide::prelude::*;
use ebbtide::{Rate, Rates, Tiers};

/// Counts the bytes that the whole process holds.
struct Counting;

static LIVE: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every request goes to the system's allocator as it is.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let live = LIVE.fetch_add(layout.size(), Ordering::Relaxed) + layout.size();
        PEAK.fetch_max(live, Ordering::Relaxed);
        // SAFETY: the caller's promise is passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, address: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller's promise is passed on.
        unsafe { System.dealloc(address, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// A nonlinear wave with a seismogram, a reduction and a loop inside the time loop.
#[program]
fn wave(
    u: &mut Array2<f64>,
    v: &mut Array2<f64>,
    c: &Array2<f64>,
    traces: &mut Array2<f64>,
    steps: usize,
    inner: usize,
    loss: &mut Array0<f64>,
) {
    let n = u.dim(0);
    let m = u.dim(1);
    for t in 0..steps {
        for _k in 0..inner {
            for (i, j) in par(1..n - 1, 1..m - 1) {
                let lap = u[[i - 1, j]] + u[[i + 1, j]] + u[[i, j - 1]] + u[[i, j + 1]] - 4.0 * u[[i, j]];
                v[[i, j]] = 2.0 * u[[i, j]] - v[[i, j]] + c[[i, j]] * lap - 1e-3 * u[[i, j]] * u[[i, j]];
            }
            swap(u, v);
        }
        for j in par(0..m) {
            traces[[t, j]] = u[[1, j]];
        }
        for (i, j) in par(0..n, 0..m) {
            loss[[]] += u[[i, j]] * u[[i, j]];
        }
    }
}

/// Threads have tables of their own, which no plan counts, and so have compilations: a number of threads that no machine
/// changes, and nothing that is compiled while a gradient runs.
fn cpu() -> Device {
    let options = ebbtide_cpu::Options::new().threads(2).optimize(ebbtide_cpu::Optimize::Always);
    options.build().expect("tests need a C compiler").0
}

/// What is measured is that of the whole process.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// The bytes that `work` held at most beyond what was held before.
fn peak_of<R>(work: impl FnOnce() -> R) -> (u64, R) {
    let before = LIVE.load(Ordering::Relaxed);
    PEAK.store(before, Ordering::Relaxed);
    let result = work();
    ((PEAK.load(Ordering::Relaxed) - before) as u64, result)
}

/// Temporaries, a reduction that is read in the next pass, and a sibling loop.
#[program]
fn relaxed_sum(u: &mut Array1<f64>, mean: &mut Array0<f64>, steps: usize, loss: &mut Array0<f64>) {
    let n = u.len();
    let mut next = Array1::<f64>::zeros([n]);
    for _t in 0..steps {
        fill(mean, 0.0);
        for i in par(0..n) {
            mean[[]] += u[i] * u[i];
        }
        for i in par(0..n) {
            next[i] = u[i] * 0.99 + 0.001 * u[i] * u[i] - 1e-9 * mean[[]] * u[(i + 1) % n];
        }
        copy(next, u);
    }
    for _t in 0..steps {
        for i in par(0..n) {
            u[i] = u[i].sin();
        }
    }
    for i in par(0..n) {
        loss[[]] += u[i];
    }
}

/// As many passes as it takes.
#[program]
fn until(u: &mut Array1<f64>, most: &mut Array0<f64>, loss: &mut Array0<f64>) {
    let n = u.len();
    loop {
        fill(most, 0.0);
        for i in par(0..n) {
            u[i] = u[i] * 0.97 - 0.01 * u[i] * u[i];
            most[[]].max_assign(u[i]);
        }
        if most[[]] < 0.1 {
            break;
        }
    }
    for i in par(0..n) {
        loss[[]] += u[i];
    }
}

/// Measures a gradient as it is, durable from its beginning, and durable from its middle; `results` bytes are the caller's.
macro_rules! held_to_its_budget {
    ($g:expr, $kib:expr, $results:expr, $args:expr) => {{
        let g = $g.with_memory(Bytes::kib($kib));
        let expected = g.launch($args).unwrap();
        let plan = g.plan($args).unwrap();
        let most = ($kib as u64) << 10;
        let slack = (most / 50).max(64 << 10);
        let check = |kind: &str, peak: u64| {
            let used = peak.saturating_sub($results as u64);
            println!("{kind}: {used} of {most} bytes, planned {}", plan.peak_bytes());
            assert!(used <= most + slack, "{kind}: {used} bytes of {most}:\n{}", plan.explain());
            // The plan counts arrays, and the allocator also what the host keeps of manifest and journal.
            let planned = plan.peak_bytes() + (16 << 10);
            assert!(used <= planned + slack, "{kind}: {used} bytes:\n{}", plan.explain());
        };
        g.release();
        let (peak, out) = peak_of(|| g.launch($args).unwrap());
        check("plain", peak);
        assert_eq!(out.ran(), expected.ran());
        let folder = tempfile::tempdir().unwrap();
        g.release();
        let run = folder.path().join("whole");
        let (peak, out) = peak_of(|| g.launch_durable_every(&run, Duration::ZERO, $args).unwrap());
        check("durable", peak);
        assert_eq!(out.ran(), expected.ran());
        // Stopped after its first actions, and continued from there.
        let cancel = Cancel::new();
        let stoppable = g.cancel_with(&cancel);
        let run = folder.path().join("stopped");
        cancel.cancel();
        for _ in 0..3 {
            let _ = stoppable.launch_durable_every(&run, Duration::ZERO, $args);
        }
        g.release();
        stoppable.release();
        let (peak, out) = peak_of(|| g.launch_durable_every(&run, Duration::ZERO, $args).unwrap());
        check("continued", peak);
        assert_eq!(out.ran(), expected.ran());
    }};
}

#[test]
fn c58_a_budget_holds_for_durable_gradients_too() {
    let _alone = ONE_AT_A_TIME.lock().unwrap();
    let device = cpu();
    let (n, m, steps, inner) = (128, 96, 12, 4);
    let start: Vec<f64> = (0..n * m).map(|k| ((k % 97) as f64 * 0.1).sin()).collect();
    let mut u = device.array_with_shape([n, m], &start).unwrap();
    let mut v = device.zeros([n, m]).unwrap();
    let c = device.array_with_shape([n, m], &vec![0.1; n * m]).unwrap();
    let mut traces = device.zeros([steps, m]).unwrap();
    let mut loss = device.scalar(0.0).unwrap();
    let g = wave().grad(wave::loss).wrt(wave::u).wrt(wave::c).compile(&device).unwrap();
    for kib in [1500, 3000, 20000] {
        held_to_its_budget!(
            g,
            kib,
            2 * 8 * n * m,
            (&mut u, &mut v, &c, &mut traces, steps, inner, &mut loss)
        );
    }

    let n = 20_000;
    let mut u = device.array(&vec![0.5; n]).unwrap();
    let mut mean = device.scalar(0.0).unwrap();
    let g = relaxed_sum().grad(relaxed_sum::loss).wrt(relaxed_sum::u).compile(&device).unwrap();
    for kib in [2200, 5000, 20000] {
        held_to_its_budget!(g, kib, 8 * n, (&mut u, &mut mean, 20, &mut loss));
    }

    let mut u = device.array(&vec![0.9; n]).unwrap();
    let mut most = device.scalar(0.0).unwrap();
    let g = until().grad(until::loss).wrt(until::u).compile(&device).unwrap();
    for kib in [2000, 8000] {
        held_to_its_budget!(g, kib, 8 * n, (&mut u, &mut most, &mut loss));
    }
}

#[test]
fn the_planned_peak_is_the_measured_peak_of_the_process() {
    let _alone = ONE_AT_A_TIME.lock().unwrap();
    let device = cpu();
    let (n, m, steps, inner) = (96, 80, 40, 5);
    let start: Vec<f64> = (0..n * m).map(|k| ((k % 97) as f64 * 0.1).sin()).collect();
    let mut u = device.array_with_shape([n, m], &start).unwrap();
    let mut v = device.zeros([n, m]).unwrap();
    let c = device.array_with_shape([n, m], &vec![0.1; n * m]).unwrap();
    let mut traces = device.zeros([steps, m]).unwrap();
    let mut loss = device.scalar(0.0).unwrap();
    let g = wave().grad(wave::loss).wrt(wave::u).wrt(wave::c).compile(&device).unwrap();
    // Everything that is made once is made now: both gradient programs, the threads, the plan.
    let all = g.launch((&mut u, &mut v, &c, &mut traces, steps, inner, &mut loss)).unwrap();
    let bits = |out: &Gradients| {
        out.get(wave::c).unwrap().as_slice().iter().map(|x| x.to_bits()).collect::<Vec<_>>()
    };
    let expected = bits(&all);
    let dir = tempfile::tempdir().unwrap();
    let rate = Rate { latency: 1e-7, bandwidth: 1e10 };
    let rates = Rates { memory: rate, host: rate, disk_write: rate, disk_read: rate };
    let disk = Tiers::new().disk(dir.path(), 1 << 30).rates(rates);
    let mut on_disk = 0;
    // States on disk take no memory; what they pass through does.
    let budgets = [900, 1200, 2000, 4000, 16000, 64000].map(|kib| (kib, Tiers::new()));
    let budgets = budgets.into_iter().chain([1300, 2000, 3000].map(|kib| (kib, disk.clone())));
    for (kib, tiers) in budgets {
        let g = g.with_memory(Bytes::kib(kib)).with_tiers(tiers);
        let warm = g.launch((&mut u, &mut v, &c, &mut traces, steps, inner, &mut loss)).unwrap();
        g.release();
        let plan = g.plan((&mut u, &mut v, &c, &mut traces, steps, inner, &mut loss)).unwrap();
        let before = LIVE.load(Ordering::Relaxed);
        PEAK.store(before, Ordering::Relaxed);
        let out = g.launch((&mut u, &mut v, &c, &mut traces, steps, inner, &mut loss)).unwrap();
        // The returned derivatives are the caller's.
        let used = (PEAK.load(Ordering::Relaxed) - before - 2 * 8 * n * m) as u64;
        let planned = plan.peak_bytes();
        let slack = (planned / 50).max(64 << 10);
        assert!(used <= (kib << 10) + (64 << 10), "{used} bytes of {kib} KiB:\n{}", plan.explain());
        assert!(used.abs_diff(planned) <= slack, "{used} measured, {planned} planned:\n{}", plan.explain());
        on_disk += plan.disk_bytes();
        assert_eq!(bits(&out), expected, "{kib} KiB");
        assert_eq!(bits(&warm), expected, "{kib} KiB");
    }
    assert!(on_disk > 0, "no state was on disk");
}
