//! Gradients that somebody watches, or stops.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ebbtide::prelude::*;
use ebbtide::{Error, Progress};
use ebbtide_snapshot::Survey;
use ebbtide_snapshot::fs::Disks;

use crate::durable::{Fragile, Then};

#[program]
pub fn cooling(x: &mut Array1<f64>, steps: usize, loss: &mut Array0<f64>) {
    let n = x.len();
    for t in 0..steps {
        for i in par(0..n) {
            x[i] = x[i] * 0.999 + 0.001 * (x[i] + (t as f64)).sin();
        }
    }
    for i in par(0..n) {
        loss[[]] += x[i] * x[i];
    }
}

#[program]
pub fn cooling_until(x: &mut Array1<f64>, steps: usize, loss: &mut Array0<f64>) {
    let n = x.len();
    let mut t = 0;
    while t < steps {
        for i in par(0..n) {
            x[i] = x[i] * 0.999 + 0.001 * x[i].sin();
        }
        t += 1;
    }
    for i in par(0..n) {
        loss[[]] += x[i] * x[i];
    }
}

/// Loops that run only where data says so, one of them inside a second branch.
#[program]
pub fn chosen(x: &mut Array1<f64>, y: &mut Array1<f64>, steps: usize, loss: &mut Array0<f64>) {
    let n = x.len();
    if x[0] > 0.0 {
        for i in par(0..n) {
            y[i] = x[i] * x[i];
        }
        for t in 0..steps {
            for i in par(0..n) {
                x[i] = x[i] * 0.999 + 0.001 * (x[i] + y[i] + (t as f64)).sin();
            }
        }
        if x[1] < 100.0 {
            for t in 0..steps {
                for i in par(0..n) {
                    y[i] = y[i] * 0.998 + 0.002 * (x[i] * y[i] - (t as f64)).sin();
                }
            }
        }
        for i in par(0..n) {
            x[i] = x[i] * y[i];
        }
    }
    for i in par(0..n) {
        loss[[]] += x[i] * x[i];
    }
}

const BUDGETS: [Budget; 4] = [
    Budget::StoreAll,
    Budget::Bytes(20_000),
    Budget::Revolve { slots: 3, block: 2 },
    Budget::Periodic { period: 70 },
];

fn bits(gradients: &Gradients) -> Vec<u64> {
    gradients.get(cooling::x).unwrap().as_slice().iter().map(|x| x.to_bits()).collect()
}

fn is_cancelled(result: Result<Gradients, Error>) -> bool {
    matches!(result, Err(Error::Cancelled { .. }))
}

#[test]
fn an_observer_sees_the_work_grow_to_all_of_it_and_changes_no_bit() {
    let device = Device::cpu();
    let (mut x, mut loss) = (device.array(&[0.3; 40]).unwrap(), device.scalar(0.0).unwrap());
    let plain = cooling().grad(cooling::loss).wrt(cooling::x).compile(&device).unwrap();
    let expected = bits(&plain.launch((&mut x, 20_000, &mut loss)).unwrap());
    for budget in BUDGETS {
        let seen = Arc::new(Mutex::new(Vec::<Progress>::new()));
        let told = seen.clone();
        let watched = plain.with_budget(budget).observe(move |progress| told.lock().unwrap().push(*progress));
        let steps = if matches!(budget, Budget::Revolve { .. }) { 300 } else { 20_000 };
        let planned = watched.plan((&mut x, steps, &mut loss)).unwrap().passes();
        let out = watched.launch((&mut x, steps, &mut loss)).unwrap();
        if steps == 20_000 {
            assert_eq!(bits(&out), expected, "{budget:?}");
        }
        let seen = seen.lock().unwrap();
        let fractions: Vec<f64> = seen.iter().map(|progress| progress.fraction().unwrap()).collect();
        assert!(fractions.is_sorted(), "{budget:?}: {fractions:?}");
        assert_eq!(fractions.last(), Some(&1.0), "{budget:?}");
        assert_eq!(seen.last().unwrap().ran, out.ran(), "{budget:?}");
        let done = out.ran().advanced + out.ran().recorded + out.ran().reversed;
        assert_eq!(planned, Some(done), "{budget:?}: the plan says how much there is");
        assert!(seen.iter().all(|progress| progress.passes == planned), "{budget:?}");
    }
}

#[test]
fn a_loop_of_unknown_length_can_be_watched() {
    let device = Device::cpu();
    let (mut x, mut loss) = (device.array(&[0.3; 40]).unwrap(), device.scalar(0.0).unwrap());
    let plain = cooling_until().grad(cooling_until::loss).wrt(cooling_until::x).compile(&device).unwrap();
    for budget in [Budget::StoreAll, Budget::Bytes(20_000)] {
        let plain = plain.with_budget(budget);
        let expected = plain.launch((&mut x, 3000, &mut loss)).unwrap();
        let seen = Arc::new(Mutex::new(Vec::<Progress>::new()));
        let told = seen.clone();
        let watched = plain.observe(move |progress| told.lock().unwrap().push(*progress));
        let out = watched.launch((&mut x, 3000, &mut loss)).unwrap();
        assert_eq!(
            out.get(cooling_until::x).unwrap().to_vec(),
            expected.get(cooling_until::x).unwrap().to_vec()
        );
        assert_eq!(out.ran(), expected.ran(), "{budget:?}");
        assert_eq!(seen.lock().unwrap().last().unwrap().fraction(), None);
    }
}

#[test]
fn a_gradient_that_takes_for_ever_is_stopped_and_can_be_launched_again() {
    for cpu in [Device::cpu(), Device::interpreter()] {
        // The device asks for the end when it begins with a segment: the launch is stopped in its middle.
        let (cancel, left) = (Cancel::new(), Arc::new(AtomicI64::new(i64::MAX)));
        let then = Then::Cancel(cancel.clone());
        let device = Device::new(Arc::new(Fragile { device: cpu, left: left.clone(), then }));
        let (mut x, mut loss) = (device.array(&[0.3; 40]).unwrap(), device.scalar(0.0).unwrap());
        let plain = cooling().grad(cooling::loss).wrt(cooling::x).compile(&device).unwrap();
        let expected = bits(&plain.launch((&mut x, 30, &mut loss)).unwrap());
        // One action of very many passes, and very many actions.
        for budget in [Budget::Periodic { period: 1 << 40 }, Budget::Revolve { slots: 2, block: 1 }] {
            let stoppable = plain.with_budget(budget).cancel_with(&cancel);
            left.store(1, Ordering::Relaxed);
            assert!(is_cancelled(stoppable.launch((&mut x, 1 << 41, &mut loss))), "{budget:?}");
            left.store(i64::MAX, Ordering::Relaxed);
            assert_eq!(x.to_vec(), [0.3; 40], "the caller's arrays stay as they are");
            cancel.reset();
            assert_eq!(bits(&stoppable.launch((&mut x, 30, &mut loss)).unwrap()), expected, "{budget:?}");
        }
    }
}

#[test]
fn a_durable_gradient_that_is_stopped_goes_on_to_the_same_bits() {
    let (cancel, left) = (Cancel::new(), Arc::new(AtomicI64::new(i64::MAX)));
    let then = Then::Cancel(cancel.clone());
    let device = Device::new(Arc::new(Fragile { device: Device::cpu(), left: left.clone(), then }));
    let (mut x, mut loss) = (device.array(&[0.3; 40]).unwrap(), device.scalar(0.0).unwrap());
    let plain = cooling().grad(cooling::loss).wrt(cooling::x).compile(&device).unwrap();
    const STEPS: usize = 4000;
    let expected = bits(&plain.launch((&mut x, STEPS, &mut loss)).unwrap());
    for budget in [Budget::StoreAll, Budget::Bytes(500_000)] {
        let whole = plain.with_budget(budget).launch((&mut x, STEPS, &mut loss)).unwrap().ran();
        let durable = plain.with_budget(budget).cancel_with(&cancel);
        let dir = crate::folder::folder();
        let (mut stops, mut to_reverse) = (0, STEPS as u64);
        let out = loop {
            left.store(8, Ordering::Relaxed);
            // Nothing but the stop makes the run durable.
            let every = Duration::from_secs(1000);
            match durable.launch_durable_every(dir.path().join("run"), every, (&mut x, STEPS, &mut loss)) {
                Ok(out) => break out,
                Err(error) => assert!(is_cancelled(Err(error))),
            }
            cancel.reset();
            stops += 1;
            // What is told of the run: how many passes are still to be reversed, of how many.
            let survey = Survey::read(&Disks, &dir.path().join("run")).unwrap();
            let told = survey.adjoints.last().unwrap();
            assert_eq!(told.steps, STEPS as u64);
            assert!(told.step <= to_reverse, "{} after {to_reverse}", told.step);
            to_reverse = told.step;
        };
        left.store(i64::MAX, Ordering::Relaxed);
        cancel.reset();
        assert!(to_reverse < STEPS as u64);
        assert_eq!(bits(&out), expected, "{budget:?}");
        assert!(stops > 2, "{budget:?}: {stops}");
        assert_eq!(out.ran(), whole, "{budget:?}: nothing was done twice");
    }
}

#[test]
fn a_durable_gradient_that_is_stopped_after_every_action_ends_with_the_same_bits() {
    stopped_after_every_action(&Device::cpu());
}

#[test]
fn a_durable_gradient_that_is_stopped_after_every_action_ends_with_the_same_bits_behind_the_host() {
    stopped_after_every_action(&crate::behind::behind().0);
}

#[test]
#[ignore = "needs CUDA"]
fn a_durable_gradient_that_is_stopped_after_every_action_ends_with_the_same_bits_on_cuda() {
    stopped_after_every_action(&Device::cuda().unwrap());
}

fn stopped_after_every_action(device: &Device) {
    // The places of small arrays share memory.
    [40, 3].into_iter().for_each(|elements| stopped_with_elements(device, elements));
}

fn stopped_with_elements(device: &Device, elements: usize) {
    const STEPS: usize = 60;
    let (mut x, mut loss) = (device.array(&vec![0.3; elements]).unwrap(), device.scalar(0.0).unwrap());
    let plain = cooling().grad(cooling::loss).wrt(cooling::x).compile(device).unwrap();
    let expected = bits(&plain.launch((&mut x, STEPS, &mut loss)).unwrap());
    let cancel = Cancel::new();
    let durable = plain.with_budget(Budget::Revolve { slots: 3, block: 4 }).cancel_with(&cancel);
    let dir = crate::folder::folder();
    cancel.cancel();
    let mut stops = 0;
    let out = loop {
        // Nothing but the stop makes the run durable.
        let every = Duration::from_secs(1000);
        match durable.launch_durable_every(dir.path().join("run"), every, (&mut x, STEPS, &mut loss)) {
            Ok(out) => break out,
            Err(error) => {
                let text = error.to_string();
                assert!(is_cancelled(Err(error)), "{text}");
            }
        }
        stops += 1;
    };
    assert_eq!(bits(&out), expected);
    assert!(stops > 20, "{stops}");
}

#[test]
fn gradients_of_loops_in_branches_are_watched_stopped_and_taken_up() {
    let (cancel, left) = (Cancel::new(), Arc::new(AtomicI64::new(i64::MAX)));
    let then = Then::Cancel(cancel.clone());
    let device = Device::new(Arc::new(Fragile { device: Device::cpu(), left: left.clone(), then }));
    let mut y = device.zeros([40]).unwrap();
    let mut loss = device.scalar(0.0).unwrap();
    let plain = chosen().grad(chosen::loss).wrt(chosen::x).compile(&device).unwrap();
    let bits = |out: &Gradients| -> Vec<u64> {
        out.get(chosen::x).unwrap().as_slice().iter().map(|x| x.to_bits()).collect()
    };
    const STEPS: usize = 500;
    for (first, taken) in [(0.3, true), (-0.3, false)] {
        let mut x = device.array(&[first; 40]).unwrap();
        let expected = bits(&plain.launch((&mut x, &mut y, STEPS, &mut loss)).unwrap());
        for budget in [Budget::Periodic { period: 100 }, Budget::Revolve { slots: 3, block: 2 }] {
            let plain = plain.with_budget(budget);
            let whole = plain.launch((&mut x, &mut y, STEPS, &mut loss)).unwrap();
            assert_eq!(bits(&whole), expected, "{budget:?}");
            assert_eq!(whole.ran().reversed, if taken { 2 * STEPS as u64 } else { 0 }, "{budget:?}");
            let seen = Arc::new(Mutex::new(Vec::new()));
            let told = seen.clone();
            let durable = plain
                .cancel_with(&cancel)
                .observe(move |progress| told.lock().unwrap().push(progress.fraction().unwrap()));
            let dir = crate::folder::folder();
            let mut stops = 0;
            let out = loop {
                left.store(12, Ordering::Relaxed);
                let every = Duration::from_secs(1000);
                let args = (&mut x, &mut y, STEPS, &mut loss);
                match durable.launch_durable_every(dir.path().join("run"), every, durable.shared(args)) {
                    Ok(out) => break out,
                    Err(error) => assert!(is_cancelled(Err(error))),
                }
                cancel.reset();
                stops += 1;
            };
            left.store(i64::MAX, Ordering::Relaxed);
            cancel.reset();
            assert_eq!((bits(&out), out.ran()), (expected.clone(), whole.ran()), "{budget:?}");
            assert!(stops > 2 || !taken, "{budget:?}: {stops}");
            // What has ended is read, and there is no more to do.
            durable.launch_durable(dir.path().join("run"), (&mut x, &mut y, STEPS, &mut loss)).unwrap();
            let seen = seen.lock().unwrap();
            assert!(seen.is_sorted() && seen.ends_with(&[1.0, 1.0]), "{budget:?}: {seen:?}");
        }
    }
}
