//! Gradients of programs that yield: the host steps in once, and what it did is done again on the way back.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ebbtide::prelude::*;
use ebbtide::{Host, Rate, Rates, Tiers};

use crate::durable::{Fragile, Then};

#[derive(Label, Clone, Copy, PartialEq, Debug)]
enum Stage {
    Step,
    Smooth,
}

/// A walk that asks the host for another limit whenever an element grows beyond the one it has.
#[program]
fn limited(
    u: &mut Array1<f64>,
    limit: &mut Array0<f64>,
    over: &mut Array0<i32>,
    steps: usize,
    loss: &mut Array0<f64>,
) {
    let n = u.len();
    for t in 0..steps {
        #[checkpoint(Stage::Step, yield_on = over, undo)]
        {
            for i in par(0..n) {
                u[i] = u[i] * 1.1 + 0.01 * u[i] * u[i] * (t as f64).cos();
            }
            over[[]] = 0;
            for i in par(0..n) {
                if u[i] > limit[[]] {
                    over[[]].max_assign(1);
                }
            }
        }
        #[checkpoint(Stage::Smooth)]
        {
            for i in par(0..n) {
                u[i] = u[i] * (1.0 - 0.01 * u[i] / limit[[]]);
            }
        }
    }
    for i in par(0..n) {
        loss[[]] += u[i] * u[i] + 0.1 * limit[[]];
    }
}

fn bits(a: &Array1<f64>) -> Vec<u64> {
    a.as_slice().iter().map(|x| x.to_bits()).collect()
}

const FIRST_LIMIT: f64 = 1.6;

/// What the host does when it is asked.
fn raise_the_limit(host: &mut Host<'_>) -> ebbtide::Result<()> {
    host.with(limited::limit, |limit| {
        let raised = limit.value() * 1.5;
        limit.fill(raised)
    })??;
    host.fill(limited::over, 0)
}

#[test]
fn c45_the_gradient_of_an_interrupted_run_is_that_of_one_that_had_the_hosts_values_from_the_start() {
    interrupted_runs_have_their_gradient([Device::cpu(), Device::interpreter()]);
}

#[test]
#[ignore = "needs CUDA"]
fn c45_the_same_holds_on_cuda() {
    interrupted_runs_have_their_gradient([Device::cuda().unwrap()]);
}

fn interrupted_runs_have_their_gradient<const N: usize>(devices: [Device; N]) {
    let start = [0.5, 0.8, 1.1];
    for device in devices {
        // Without the host, from a limit that is never reached: a different program run, for the loss of the last.
        let asked = Arc::new(AtomicU64::new(0));
        let seen: Arc<Mutex<Vec<String>>> = Arc::default();
        let repair = {
            let (asked, seen) = (asked.clone(), seen.clone());
            move |at: &Yielded, host: &mut Host<'_>| {
                assert!(at.is(Stage::Step));
                asked.fetch_add(1, Ordering::Relaxed);
                seen.lock().unwrap().push(at.position().to_string());
                raise_the_limit(host)
            }
        };
        let g = limited()
            .value_and_grad(limited::loss)
            .wrt(limited::u)
            .wrt(limited::limit)
            .on_yield(repair)
            .checked()
            .compile(&device)
            .unwrap();
        let mut u = device.array(&start).unwrap();
        let mut limit = device.scalar(FIRST_LIMIT).unwrap();
        let mut over = device.scalar(0).unwrap();
        let mut loss = device.scalar(0.0).unwrap();
        let steps = 20;
        let all = g
            .with_budget(Budget::StoreAll)
            .launch((&mut u, &mut limit, &mut over, steps, &mut loss))
            .unwrap();
        let yields = asked.swap(0, Ordering::Relaxed);
        assert!(yields > 2, "{yields}");
        assert_eq!((u.to_vec(), limit.value(), over.value()), (start.to_vec(), FIRST_LIMIT, 0));
        let positions = std::mem::take(&mut *seen.lock().unwrap());
        let expected = bits(all.get(limited::u).unwrap());
        // What the host wrote is constant: the loss depends on no limit that was given at the start after that.
        for slots in [1, 2, 3, 7] {
            for block in [1, 2, 5] {
                let g = g.with_budget(Budget::Revolve { slots, block });
                let out = g.launch((&mut u, &mut limit, &mut over, steps, &mut loss)).unwrap();
                assert_eq!(asked.swap(0, Ordering::Relaxed), yields, "the host is asked once for each yield");
                assert_eq!(std::mem::take(&mut *seen.lock().unwrap()), positions);
                assert_eq!(bits(out.get(limited::u).unwrap()), expected, "{slots} {block}");
                assert_eq!(
                    out.value(limited::loss).unwrap().value().to_bits(),
                    all.value(limited::loss).unwrap().value().to_bits()
                );
            }
        }
        // The plain run, driven by the same host, has the same loss.
        let plain = limited().compile(&device).unwrap();
        let (mut u2, mut limit2) = (device.array(&start).unwrap(), device.scalar(FIRST_LIMIT).unwrap());
        let status = plain
            .drive((&mut u2, &mut limit2, &mut over, steps, &mut loss), |_, (_, limit, over, _, _)| {
                let raised = limit.value() * 1.5;
                limit.fill(raised)?;
                over.fill(0)
            })
            .unwrap();
        assert_eq!(status, Status::Done);
        assert_eq!(loss.value().to_bits(), all.value(limited::loss).unwrap().value().to_bits());
        // An uninterrupted run that has the host's values from the start has the same gradient.
        let raised: Vec<usize> = positions
            .iter()
            .map(|p| p.split("t=").nth(1).unwrap().split('/').next().unwrap().parse().unwrap())
            .collect();
        let value_at =
            |t: usize| raised.iter().filter(|r| **r <= t).fold(FIRST_LIMIT, |limit, _| limit * 1.5);
        let limits = device.array(&(0..=steps).map(value_at).collect::<Vec<f64>>()).unwrap();
        type Q = limited_by_a_table;
        let table = limited_by_a_table().grad(Q::loss).wrt(Q::u).wrt(Q::limits).compile(&device).unwrap();
        loss.fill(0.0).unwrap();
        let other = table.launch((&mut u, &limits, steps, &mut loss)).unwrap();
        assert_eq!(bits(other.get(Q::u).unwrap()), expected);
        // Of the limit that was given, only what was computed before the host replaced it depends.
        let before: f64 = other.get(Q::limits).unwrap().as_slice()[..raised[0]].iter().sum();
        let found = all.get(limited::limit).unwrap().value();
        assert!(before != 0.0 && (found - before).abs() < 1e-14, "{found} {before}");
    }
}

/// The same walk with the limit of each step given from the start.
#[program]
fn limited_by_a_table(u: &mut Array1<f64>, limits: &Array1<f64>, steps: usize, loss: &mut Array0<f64>) {
    let n = u.len();
    for t in 0..steps {
        for i in par(0..n) {
            u[i] = u[i] * 1.1 + 0.01 * u[i] * u[i] * (t as f64).cos();
        }
        for i in par(0..n) {
            u[i] = u[i] * (1.0 - 0.01 * u[i] / limits[t]);
        }
    }
    for i in par(0..n) {
        loss[[]] += u[i] * u[i] + 0.1 * limits[steps];
    }
}

#[test]
fn states_of_a_gradient_that_yields_may_be_kept_anywhere() {
    yielding_with_states_elsewhere([Device::cpu(), Device::interpreter()]);
}

#[test]
#[ignore = "needs CUDA"]
fn the_same_of_states_kept_anywhere_holds_on_cuda() {
    yielding_with_states_elsewhere([Device::cuda().unwrap()]);
}

fn yielding_with_states_elsewhere<const N: usize>(devices: [Device; N]) {
    let start: Vec<f64> = (0..3000).map(|k| 0.5 + 0.6 * (k % 17) as f64 / 17.0).collect();
    for device in devices {
        let asked = Arc::new(AtomicU64::new(0));
        let repair = {
            let asked = asked.clone();
            move |_: &Yielded, host: &mut Host<'_>| {
                asked.fetch_add(1, Ordering::Relaxed);
                raise_the_limit(host)
            }
        };
        let g = limited().grad(limited::loss).wrt(limited::u).on_yield(repair).compile(&device).unwrap();
        let mut u = device.array(&start).unwrap();
        let mut limit = device.scalar(FIRST_LIMIT).unwrap();
        let mut over = device.scalar(0).unwrap();
        let mut loss = device.scalar(0.0).unwrap();
        let steps = 40;
        let all = g.launch((&mut u, &mut limit, &mut over, steps, &mut loss)).unwrap();
        let yields = asked.swap(0, Ordering::Relaxed);
        assert!(yields > 2, "{yields}");
        let plan = g.plan((&mut u, &mut limit, &mut over, steps, &mut loss)).unwrap();
        let each = plan.loops[0].state_bytes + plan.loops[0].tape_bytes;
        let g = g.with_memory(Bytes(plan.fixed_bytes + 4 * each));
        let (slow, fast) = (Rate { latency: 1e-7, bandwidth: 1e10 }, Rate { latency: 1e-9, bandwidth: 1e13 });
        let rates = Rates { memory: slow, host: fast, disk_write: fast, disk_read: fast };
        let dir = crate::folder::folder();
        let tiers = [
            Tiers::new(),
            Tiers::new().disk(dir.path(), 1 << 24).rates(rates),
            Tiers::new().host_memory(1 << 24).rates(rates),
        ];
        let mut elsewhere = Vec::new();
        for tiers in tiers {
            let g = g.with_tiers(tiers);
            let plan = g.plan((&mut u, &mut limit, &mut over, steps, &mut loss)).unwrap();
            elsewhere.push((plan.loops[0].away.host_slots, plan.loops[0].away.disk_slots));
            let out = g.launch((&mut u, &mut limit, &mut over, steps, &mut loss)).unwrap();
            assert_eq!(
                bits(out.get(limited::u).unwrap()),
                bits(all.get(limited::u).unwrap()),
                "{}",
                plan.explain()
            );
            assert_eq!(asked.swap(0, Ordering::Relaxed), yields, "the host is asked once for each yield");
        }
        // Host memory is a place of its own where the device has another.
        let apart = device.name() == "cuda";
        assert!(elsewhere[0] == (0, 0) && elsewhere[1].1 > 3, "{elsewhere:?}");
        assert_eq!(elsewhere[2].0 > 3, apart, "{elsewhere:?}");
    }
}

#[test]
fn a_callback_that_leaves_the_flag_as_it_is_does_not_run_for_ever() {
    for device in [Device::cpu(), Device::interpreter()] {
        let g =
            limited().grad(limited::loss).wrt(limited::u).on_yield(|_, _| Ok(())).compile(&device).unwrap();
        let mut u = device.array(&[0.5, 0.8, 1.1]).unwrap();
        let mut limit = device.scalar(FIRST_LIMIT).unwrap();
        let (mut over, mut loss) = (device.scalar(0).unwrap(), device.scalar(0.0).unwrap());
        let error = g.launch((&mut u, &mut limit, &mut over, 20, &mut loss)).unwrap_err().to_string();
        assert!(error.contains("clear the flag, as `host.fill(step::flag, 0)` does"), "{error}");
    }
}

#[test]
fn a_gradient_that_yields_without_a_callback_says_what_to_do() {
    let device = Device::cpu();
    let g = limited().grad(limited::loss).wrt(limited::u).compile(&device).unwrap();
    let mut u = device.array(&[2.0]).unwrap();
    let (mut limit, mut over) = (device.scalar(1.2).unwrap(), device.scalar(0).unwrap());
    let mut loss = device.scalar(0.0).unwrap();
    let error = g.launch((&mut u, &mut limit, &mut over, 3, &mut loss)).unwrap_err().to_string();
    assert!(error.contains("Stage::Step") && error.contains("on_yield"), "{error}");
    // Where it does not yield, nobody is missing.
    limit.fill(1e9).unwrap();
    g.launch((&mut u, &mut limit, &mut over, 3, &mut loss)).unwrap();
}

#[test]
fn a_durable_gradient_remembers_what_the_host_did() {
    let left = Arc::new(AtomicI64::new(i64::MAX));
    let device =
        Device::new(Arc::new(Fragile { device: Device::cpu(), left: left.clone(), then: Then::Fail }));
    let asked = Arc::new(AtomicU64::new(0));
    let count = asked.clone();
    let g = limited()
        .grad(limited::loss)
        .wrt(limited::u)
        .on_yield(move |_, host| {
            count.fetch_add(1, Ordering::Relaxed);
            host.with(limited::limit, |limit| {
                let raised = limit.value() * 1.5;
                limit.fill(raised)
            })??;
            host.fill(limited::over, 0)
        })
        .compile(&device)
        .unwrap();
    let mut u = device.array(&[0.5, 0.8, 1.1]).unwrap();
    let mut limit = device.scalar(FIRST_LIMIT).unwrap();
    let mut over = device.scalar(0).unwrap();
    let mut loss = device.scalar(0.0).unwrap();
    for budget in [Budget::StoreAll, Budget::Revolve { slots: 3, block: 2 }] {
        let g = g.with_budget(budget);
        left.store(1 << 40, Ordering::Relaxed);
        let out = g.launch((&mut u, &mut limit, &mut over, 20, &mut loss)).unwrap();
        let (expected, segments) =
            (bits(out.get(limited::u).unwrap()), (1 << 40) - left.load(Ordering::Relaxed));
        let yields = asked.swap(0, Ordering::Relaxed);
        assert!(yields > 2, "{yields}");
        let mut remembered = 0;
        for until in 1..segments {
            let dir = crate::folder::folder();
            let mut launch = |segments: i64| {
                left.store(segments, Ordering::Relaxed);
                let args = (&mut u, &mut limit, &mut over, 20, &mut loss);
                g.launch_durable_every(dir.path().join("run"), Duration::ZERO, g.shared(args))
            };
            assert!(launch(until).is_err());
            asked.store(0, Ordering::Relaxed);
            let out = launch(1 << 40).unwrap();
            assert_eq!(bits(out.get(limited::u).unwrap()), expected, "{budget:?}: broken down after {until}");
            remembered += u64::from(asked.load(Ordering::Relaxed) < yields);
        }
        asked.store(0, Ordering::Relaxed);
        assert!(remembered > 0, "{budget:?}: the host was asked everything again every time");
    }
}

/// Clears the flag and leaves the cause: the program yields at the same place for ever.
#[test]
fn c45_a_gradient_whose_host_does_not_help_can_be_cancelled() {
    for device in [Device::cpu(), Device::interpreter()] {
        let (cancel, asked) = (Cancel::new(), Arc::new(AtomicU64::new(0)));
        let (switch, count) = (cancel.clone(), asked.clone());
        let useless = move |_: &Yielded, host: &mut Host<'_>| {
            // The limit makes a test that fails end.
            match count.fetch_add(1, Ordering::Relaxed) {
                3 => switch.cancel(),
                100 => raise_the_limit(host)?,
                _ => {}
            }
            host.fill(limited::over, 0)
        };
        let g = limited().grad(limited::loss).wrt(limited::u).on_yield(useless).compile(&device).unwrap();
        let g = g.cancel_with(&cancel);
        let mut u = device.array(&[0.5, 0.8, 1.1]).unwrap();
        let (mut limit, mut over) = (device.scalar(FIRST_LIMIT).unwrap(), device.scalar(0).unwrap());
        let mut loss = device.scalar(0.0).unwrap();
        let dir = crate::folder::folder();
        for durable in [false, true] {
            asked.store(0, Ordering::Relaxed);
            cancel.reset();
            let args = (&mut u, &mut limit, &mut over, 20, &mut loss);
            let stopped = match durable {
                false => g.launch(g.shared(args)),
                true => g.launch_durable(dir.path().join("run"), g.shared(args)),
            };
            assert!(matches!(stopped, Err(ebbtide::Error::Cancelled { .. })), "{stopped:?}");
            assert_eq!(asked.load(Ordering::Relaxed), 4, "durable: {durable}, on {device:?}");
        }
    }
}
