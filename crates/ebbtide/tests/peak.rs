//! The planned peak is what the process really allocates: measured by an allocator that counts.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

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

#[test]
fn the_planned_peak_is_the_measured_peak_of_the_process() {
    let device = Device::cpu();
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
