//! CONFORMANCE 53: `grad`, `vjp`, `jvp` and `hvp` take the same options, and none returns a number for a run that did not
//! reach its end. CONFORMANCE 51: a yield that would make the value another one is an error.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use ebbtide::prelude::*;
use ebbtide::{Cancel, Host};

#[derive(Label, Clone, Copy, PartialEq, Debug)]
enum At {
    Step,
    Count,
}

/// Asks the host for a larger limit when an element grows beyond it.
#[program]
fn limited(
    u: &mut Array1<f64>,
    limit: &mut Array0<f64>,
    over: &mut Array0<i32>,
    steps: usize,
    loss: &mut Array0<f64>,
) {
    for _t in 0..steps {
        #[checkpoint(At::Step, yield_on = over, undo)]
        {
            for i in par(0..u.len()) {
                u[i] = u[i] * 1.1 + 0.01 * u[i] * u[i].cos() * limit[[]];
            }
            over[[]] = 0;
            for i in par(0..u.len()) {
                if u[i] > limit[[]] {
                    over[[]].max_assign(1);
                }
            }
        }
    }
    for i in par(0..u.len()) {
        loss[[]] += u[i] * u[i] + 0.1 * limit[[]] * u[i];
    }
}

const STEPS: usize = 12;

struct World {
    u: Array1<f64>,
    limit: Array0<f64>,
    over: Array0<i32>,
    loss: Array0<f64>,
}

fn world(device: &Device, start: [f64; 3]) -> World {
    World {
        u: device.array(&start).unwrap(),
        limit: device.scalar(1.6).unwrap(),
        over: device.scalar(0).unwrap(),
        loss: device.zeros([]).unwrap(),
    }
}

fn repair(host: &mut Host<'_>) -> ebbtide::Result<()> {
    host.with(limited::limit, |limit| {
        let raised = limit.value() * 1.5;
        limit.fill(raised)
    })??;
    host.fill(limited::over, 0)
}

const START: [f64; 3] = [0.5, 0.8, 1.1];
const ALONG: [f64; 3] = [0.3, -0.2, 0.5];

fn devices() -> [Device; 2] {
    [Device::interpreter(), crate::cpu()]
}

/// The loss of a plain run whose yields are answered.
fn plain(device: &Device, start: [f64; 3]) -> f64 {
    let compiled = limited().compile(device).unwrap();
    let mut w = world(device, start);
    let mut status = compiled.launch((&mut w.u, &mut w.limit, &mut w.over, STEPS, &mut w.loss)).unwrap();
    let mut yields = 0;
    while let Status::Yielded(at) = status {
        yields += 1;
        let raised = w.limit.value() * 1.5;
        w.limit.fill(raised).unwrap();
        w.over.fill(0).unwrap();
        status = compiled.resume(&at, (&mut w.u, &mut w.limit, &mut w.over, STEPS, &mut w.loss)).unwrap();
    }
    assert!(yields > 1, "{yields}");
    w.loss.value()
}

fn moved(by: f64) -> [f64; 3] {
    [0, 1, 2].map(|k| START[k] + by * ALONG[k])
}

fn gradient(device: &Device, start: [f64; 3]) -> Vec<f64> {
    let g = limited().grad(limited::loss).wrt(limited::u).on_yield(|_, host| repair(host));
    let mut w = world(device, start);
    let out = g.compile(device).unwrap();
    let out = out.launch((&mut w.u, &mut w.limit, &mut w.over, STEPS, &mut w.loss)).unwrap();
    out.get(limited::u).unwrap().to_vec()
}

#[test]
fn c53_a_jvp_asks_the_host_where_the_program_yields() {
    for device in devices() {
        let mut w = world(&device, START);
        let along = device.array(&ALONG).unwrap();
        let direction = Direction::new().array(limited::u, &along);
        let unanswered = limited().jvp(limited::loss).wrt(limited::u).compile(&device).unwrap();
        let error = unanswered
            .launch((&mut w.u, &mut w.limit, &mut w.over, STEPS, &mut w.loss), &direction)
            .unwrap_err()
            .to_string();
        assert!(error.contains("it yielded at `At::Step`") && error.contains(".on_yield(..)"), "{error}");
        let asked = Arc::new(AtomicU64::new(0));
        let count = asked.clone();
        let jvp =
            limited().jvp(limited::loss).wrt(limited::u).wrt(limited::limit).on_yield(move |at, host| {
                assert!(at.is(At::Step));
                count.fetch_add(1, Ordering::Relaxed);
                repair(host)
            });
        let jvp = jvp.compile(&device).unwrap();
        let launched = |w: &mut World| {
            jvp.launch((&mut w.u, &mut w.limit, &mut w.over, STEPS, &mut w.loss), &direction).unwrap()
        };
        let out = launched(&mut w);
        let found = out.get(limited::loss).unwrap().value();
        assert!(asked.load(Ordering::Relaxed) > 1);
        assert_eq!((w.u.to_vec(), w.limit.value(), w.over.value()), (START.to_vec(), 1.6, 0));
        let expected = (plain(&device, moved(1e-6)) - plain(&device, moved(-1e-6))) / 2e-6;
        assert!((found - expected).abs() < 1e-6 * expected.abs(), "{found} {expected}");
        let product: f64 = gradient(&device, START).iter().zip(ALONG).map(|(g, a)| g * a).sum();
        assert!((found - product).abs() < 1e-12 * product.abs(), "{found} {product}");
    }
}

#[test]
fn c53_what_the_host_wrote_does_not_move_with_the_inputs() {
    for device in devices() {
        let jvp = limited().jvp(limited::loss).wrt(limited::limit).on_yield(|_, host| repair(host));
        let jvp = jvp.compile(&device).unwrap();
        let mut w = world(&device, START);
        let along = device.scalar(1.0).unwrap();
        let direction = Direction::new().array(limited::limit, &along);
        let out = jvp.launch((&mut w.u, &mut w.limit, &mut w.over, STEPS, &mut w.loss), &direction).unwrap();
        let g = limited().grad(limited::loss).wrt(limited::limit).on_yield(|_, host| repair(host));
        let g = g.compile(&device).unwrap();
        let g = g.launch((&mut w.u, &mut w.limit, &mut w.over, STEPS, &mut w.loss)).unwrap();
        let (found, expected) =
            (out.get(limited::loss).unwrap().value(), g.get(limited::limit).unwrap().value());
        assert!(expected != 0.0 && (found - expected).abs() < 1e-12 * expected.abs(), "{found} {expected}");
    }
}

#[test]
fn c53_an_hvp_asks_the_host_and_has_the_same_bits_under_all_budgets() {
    for device in devices() {
        let along = device.array(&ALONG).unwrap();
        let direction = Direction::new().array(limited::u, &along);
        let step = 1e-6;
        let (up, down) = (gradient(&device, moved(step)), gradient(&device, moved(-step)));
        let expected: Vec<f64> = up.iter().zip(&down).map(|(u, d)| (u - d) / (2.0 * step)).collect();
        let mut first: Option<Vec<f64>> = None;
        for budget in
            [Budget::StoreAll, Budget::Periodic { period: 5 }, Budget::Revolve { slots: 2, block: 1 }]
        {
            let hvp = limited().hvp(limited::loss).wrt(limited::u).budget(budget);
            let hvp = hvp.on_yield(|_, host| repair(host)).compile(&device).unwrap();
            let mut w = world(&device, START);
            let out =
                hvp.launch((&mut w.u, &mut w.limit, &mut w.over, STEPS, &mut w.loss), &direction).unwrap();
            let found = out.get(limited::u).unwrap().to_vec();
            for (f, e) in found.iter().zip(&expected) {
                assert!((f - e).abs() < 1e-5 * e.abs().max(1.0), "{found:?} {expected:?}");
            }
            assert_eq!(first.get_or_insert_with(|| found.clone()), &found);
        }
    }
}

#[program]
fn decay(u: &mut Array1<f64>, v: &Array1<f64>, steps: usize, loss: &mut Array0<f64>) {
    for _t in 0..steps {
        for i in par(0..u.len()) {
            u[i] = u[i] - 0.1 * u[i] * u[i] * v[i];
        }
    }
    for i in par(0..u.len()) {
        loss[[]] += u[i];
    }
}

#[test]
fn c53_memory_bounds_a_jvp_and_its_plan_says_what_it_takes() {
    for device in devices() {
        let (mut u, v) = (device.zeros([1000]).unwrap(), device.zeros([1000]).unwrap());
        let (along, mut loss) = (device.zeros([1000]).unwrap(), device.zeros([]).unwrap());
        let direction = Direction::new().array(decay::u, &along);
        let jvp = decay().jvp(decay::loss).wrt(decay::u).wrt(decay::v);
        let compiled = jvp.compile(&device).unwrap();
        let plan = compiled.plan((&mut u, &v, 3, &mut loss), &direction).unwrap();
        // Copies of `u` and of its tangent, the zeros of the direction that was not named.
        let needed = plan.peak_bytes();
        assert!((24_000..60_000).contains(&needed), "{needed}");
        assert_eq!((plan.loops.len(), plan.recompute_factor()), (0, 1.0));
        let before = device.meter().peak();
        drop(compiled.launch((&mut u, &v, 3, &mut loss), &direction).unwrap());
        assert!(device.meter().peak() - before <= needed + 8);
        let enough = decay().jvp(decay::loss).wrt(decay::u).wrt(decay::v).memory(Bytes(needed));
        let enough = enough.compile(&device).unwrap();
        drop(enough.launch((&mut u, &v, 3, &mut loss), &direction).unwrap());
        let little = decay().jvp(decay::loss).wrt(decay::u).wrt(decay::v).memory(Bytes(needed - 1));
        let error = little
            .compile(&device)
            .unwrap()
            .launch((&mut u, &v, 3, &mut loss), &direction)
            .unwrap_err()
            .to_string();
        let least = if needed < 1024 { format!("is {needed} B") } else { format!("({needed} bytes)") };
        assert!(error.contains("the least that works here is") && error.ends_with(&least), "{error}");
    }
}

#[test]
fn c53_products_can_be_observed_and_cancelled() {
    for device in devices() {
        let (mut u, v) = (device.zeros([10]).unwrap(), device.zeros([10]).unwrap());
        let (along, mut loss) = (device.zeros([10]).unwrap(), device.zeros([]).unwrap());
        let direction = Direction::new().array(decay::u, &along);
        let products = [decay().jvp(decay::loss).wrt(decay::u), decay().hvp(decay::loss).wrt(decay::u)];
        for product in products {
            let told = Arc::new(AtomicU64::new(0));
            let count = told.clone();
            let compiled = product.compile(&device).unwrap();
            let observed = compiled.observe(move |_| {
                count.fetch_add(1, Ordering::Relaxed);
            });
            drop(observed.launch((&mut u, &v, 3, &mut loss), &direction).unwrap());
            assert!(told.load(Ordering::Relaxed) > 0);
            let cancel = Cancel::new();
            cancel.cancel();
            let error =
                compiled.cancel_with(&cancel).launch((&mut u, &v, 3, &mut loss), &direction).unwrap_err();
            assert!(matches!(error, ebbtide::Error::Cancelled { .. }), "{error}");
        }
    }
}

#[test]
fn c53_grad_vjp_and_hvp_are_durable_and_a_jvp_says_that_it_is_not() {
    let device = crate::cpu();
    let dir = crate::folder::folder();
    let start = [0.5, 0.25, 0.125];
    let (mut u, v) = (device.array(&start).unwrap(), device.array(&[1.0, 2.0, 3.0]).unwrap());
    let (along, mut loss) = (device.array(&ALONG).unwrap(), device.zeros([]).unwrap());
    let direction = Direction::new().array(decay::u, &along);

    let vjp = decay().vjp(decay::u).wrt(decay::u).compile(&device).unwrap();
    let expected = vjp.launch_with(&along, (&mut u, &v, 9, &mut loss)).unwrap();
    for _again in 0..2 {
        let out =
            vjp.launch_durable_with(dir.path().join("vjp"), &along, (&mut u, &v, 9, &mut loss)).unwrap();
        assert_eq!(out.get(decay::u).unwrap().to_vec(), expected.get(decay::u).unwrap().to_vec());
    }
    let error =
        vjp.launch_durable(dir.path().join("none"), (&mut u, &v, 9, &mut loss)).unwrap_err().to_string();
    assert!(error.contains("`launch_durable_with`"), "{error}");

    let hvp = decay().hvp(decay::loss).wrt(decay::u).compile(&device).unwrap();
    let expected = hvp.launch((&mut u, &v, 9, &mut loss), &direction).unwrap();
    for _again in 0..2 {
        let out = hvp.launch_durable(dir.path().join("hvp"), (&mut u, &v, 9, &mut loss), &direction).unwrap();
        assert_eq!(out.get(decay::u).unwrap().to_vec(), expected.get(decay::u).unwrap().to_vec());
    }
    // Another direction is another run.
    let other = device.array(&[1.0, 0.0, 0.0]).unwrap();
    let other = Direction::new().array(decay::u, &other);
    assert!(hvp.launch_durable(dir.path().join("hvp"), (&mut u, &v, 9, &mut loss), &other).is_err());

    let jvp = decay().jvp(decay::loss).wrt(decay::u).compile(&device).unwrap();
    let error = jvp
        .launch_durable(dir.path().join("jvp"), (&mut u, &v, 9, &mut loss), &direction)
        .unwrap_err()
        .to_string();
    assert!(error.contains("a `jvp` runs forward once"), "{error}");
    assert!(!dir.path().join("jvp").exists());
}

/// Counts in a region that does not undo what it counts.
#[program]
fn counting(x: &Array0<f64>, sum: &mut Array0<f64>, stop: &mut Array0<i32>, out: &mut Array0<f64>) {
    for _t in 0..3 {
        #[checkpoint(At::Count, yield_on = stop)]
        {
            sum[[]] += x[[]];
        }
    }
    out[[]] = sum[[]] * sum[[]];
}

/// Writes before it reads: run again, the region does the same.
#[program]
fn idempotent(x: &Array0<f64>, sum: &mut Array0<f64>, stop: &mut Array0<i32>, out: &mut Array0<f64>) {
    for _t in 0..3 {
        #[checkpoint(At::Count, yield_on = stop)]
        {
            sum[[]] = x[[]];
            sum[[]] = sum[[]] + x[[]];
        }
    }
    out[[]] = sum[[]] * sum[[]];
}

#[test]
fn c51_a_yield_that_would_change_the_value_is_an_error_that_says_to_write_undo() {
    for device in devices() {
        let (x, mut sum) = (device.scalar(2.0).unwrap(), device.zeros([]).unwrap());
        let mut out = device.zeros([]).unwrap();
        let g = counting().value_and_grad(counting::out).wrt(counting::x);
        let g = g.on_yield(|_, host| host.fill(counting::stop, 0)).compile(&device).unwrap();
        let mut stop = device.scalar(1).unwrap();
        let error = g.launch((&x, &mut sum, &mut stop, &mut out)).unwrap_err().to_string();
        assert!(error.starts_with("run error"), "{error}");
        assert!(error.contains("region `At::Count` yielded") && error.contains("`sum`"), "{error}");
        assert!(error.contains("write `undo`"), "{error}");
        // Where it does not yield, it has its gradient.
        stop.fill(0).unwrap();
        let done = g.launch((&x, &mut sum, &mut stop, &mut out)).unwrap();
        assert_eq!(done.value(counting::out).unwrap().value(), 36.0);
        assert_eq!(done.get(counting::x).unwrap().value(), 36.0);
        let jvp = counting().jvp(counting::out).wrt(counting::x);
        let jvp = jvp.on_yield(|_, host| host.fill(counting::stop, 0)).compile(&device).unwrap();
        let one = device.scalar(1.0).unwrap();
        stop.fill(1).unwrap();
        let direction = Direction::new().array(counting::x, &one);
        let error = jvp.launch((&x, &mut sum, &mut stop, &mut out), &direction).unwrap_err().to_string();
        assert!(error.contains("write `undo`"), "{error}");
    }
}

#[test]
fn c51_a_region_that_writes_before_it_reads_may_yield() {
    for device in devices() {
        let (x, mut sum) = (device.scalar(2.0).unwrap(), device.zeros([]).unwrap());
        let (mut out, mut stop) = (device.zeros([]).unwrap(), device.scalar(1).unwrap());
        let g = idempotent().value_and_grad(idempotent::out).wrt(idempotent::x);
        let g = g.on_yield(|_, host| host.fill(idempotent::stop, 0)).compile(&device).unwrap();
        let done = g.launch((&x, &mut sum, &mut stop, &mut out)).unwrap();
        assert_eq!(done.value(idempotent::out).unwrap().value(), 16.0);
        assert_eq!(done.get(idempotent::x).unwrap().value(), 16.0);
    }
}

/// A loop records what a minimum replaced; behind it stands a region that may yield, and never does.
#[program]
fn behind(f: &mut Array0<f64>, x: &Array1<f64>, stop: &mut Array0<i32>, loss: &mut Array0<f64>) {
    for t in 0..2 {
        for i in par(0..x.len()) {
            f[[]].min_assign(x[i] * (t as f64 + 1.0));
        }
    }
    #[checkpoint(At::Step, yield_on = stop, undo)]
    {
        f[[]] = f[[]] * f[[]];
    }
    loss[[]] += f[[]];
}

#[test]
fn c54_tapes_have_room_behind_a_loop_of_a_program_that_yields() {
    for device in devices() {
        for budget in
            [Budget::StoreAll, Budget::Periodic { period: 1 }, Budget::Revolve { slots: 1, block: 1 }]
        {
            let g = behind().grad(behind::loss).wrt(behind::x).budget(budget).compile(&device).unwrap();
            let (mut f, x) = (device.scalar(9.0).unwrap(), device.array(&[3.0, 2.0]).unwrap());
            let (mut stop, mut loss) = (device.scalar(0).unwrap(), device.zeros([]).unwrap());
            let out = g.launch((&mut f, &x, &mut stop, &mut loss)).unwrap();
            assert_eq!(out.get(behind::x).unwrap().to_vec(), [0.0, 4.0]);
        }
    }
}

#[test]
fn a_plan_says_that_every_tape_is_kept_only_where_it_is() {
    let device = Device::interpreter();
    let (mut u, v) = (device.zeros([10]).unwrap(), device.zeros([10]).unwrap());
    let mut loss = device.zeros([]).unwrap();
    let mut explained = |budget: Budget| {
        let g = decay().grad(decay::loss).wrt(decay::u).budget(budget).compile(&device).unwrap();
        g.plan((&mut u, &v, 30, &mut loss)).unwrap().explain()
    };
    let kept = "none: every tape is kept";
    assert!(explained(Budget::StoreAll).contains(kept));
    for by_hand in [Budget::Periodic { period: 5 }, Budget::Revolve { slots: 3, block: 1 }] {
        let text = explained(by_hand);
        assert!(!text.contains(kept) && text.contains("none: schedules were chosen by hand"), "{text}");
    }
}
