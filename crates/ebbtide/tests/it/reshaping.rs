//! Gradients of programs whose arrays change their shapes where they yield: what is run again has the shapes that it had.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use ebbtide::ir::Literal;
use ebbtide::prelude::*;
use ebbtide::{Error, Host};
use ebbtide_conformance::{Input, oracle};

use crate::behind::behind;
use crate::durable::{Fragile, Then};

#[derive(Label, Clone, Copy, PartialEq, Debug)]
enum Stage {
    List,
    Grow,
}

/// Elements beyond a threshold are listed; the list pulls at all elements, each entry by how long the list is.
#[program]
fn listed(
    x: &mut Array1<f64>,
    list: &mut Array1<f64>,
    full: &mut Array0<i32>,
    steps: usize,
    loss: &mut Array0<f64>,
) {
    let n = x.len();
    let m = list.len();
    for t in 0..steps {
        #[checkpoint(Stage::List, yield_on = full)]
        {
            full[[]] = 0;
            let mut count: usize = 0;
            for i in 0..n {
                if x[i] > 1.0 {
                    if count < m {
                        list[count] = x[i] * x[i] * (1.0 + 0.01 * t as f64);
                    }
                    count += 1;
                }
            }
            if count > m {
                full[[]] = count as i32;
            }
        }
        for i in par(0..n) {
            x[i] = x[i] * 1.04 + 0.01 * list[i % m] / m as f64;
        }
    }
    for i in par(0..n) {
        loss[[]] += x[i] * x[i];
    }
    for k in par(0..list.len()) {
        loss[[]] += 0.1 * list[k];
    }
}

type P = listed;

const START: [f64; 6] = [0.6, 0.7, 0.75, 0.8, 0.9, 0.95];
const LIST: [f64; 1] = [0.3];
const STEPS: usize = 20;
/// What the host puts at place `k` behind the end of a list.
fn fresh(k: usize) -> f64 {
    if k.is_multiple_of(2) { 0.0 } else { 0.25 }
}

fn bits(a: &Array1<f64>) -> Vec<u64> {
    a.as_slice().iter().map(|x| x.to_bits()).collect()
}

/// Makes the list twice as long.
fn grow(device: &Device, host: &mut Host<'_>) -> ebbtide::Result<()> {
    host.with(P::list, |list| {
        let mut longer = list.to_vec();
        longer.extend((list.len()..2 * list.len()).map(fresh));
        *list = device.array(&longer)?;
        Ok::<(), Error>(())
    })??;
    host.fill(P::full, 0)
}

/// What the oracle computes, with the direction `along` of `x`.
fn judged(along: &[f64]) -> oracle::Trace {
    let numbers = |a: &[f64]| Input::Elements(vec![a.len()], a.iter().map(|x| Literal::from(*x)).collect());
    let inputs = [
        numbers(&START),
        numbers(&LIST),
        Input::Elements(vec![], vec![Literal::from(0i32)]),
        Input::Scalar(Literal::index(STEPS as i64)),
        Input::Elements(vec![], vec![Literal::from(0.0)]),
    ];
    let host = |_: &oracle::Yield, lent: &mut oracle::Lent| {
        let list = lent.get_mut("list").unwrap();
        list.extend((list.len()..2 * list.len()).map(|k| Literal::from(fresh(k))));
        lent.insert("full".to_string(), vec![Literal::from(0i32)]);
    };
    let along = oracle::Direction::from([("x".to_string(), along.to_vec())]);
    let program = listed();
    oracle::trace(program.ir().unwrap(), &inputs, &along, Some(&host), 1_000_000).unwrap()
}

fn close(found: &[f64], expected: impl Iterator<Item = f64>) {
    let expected: Vec<f64> = expected.collect();
    assert_eq!(found.len(), expected.len());
    for (found, expected) in found.iter().zip(&expected) {
        assert!((found - expected).abs() <= 1e-12 * expected.abs().max(1.0), "{found} {expected}");
    }
}

struct Asked {
    device: Device,
    times: Arc<AtomicU64>,
}

impl Asked {
    fn new(device: &Device) -> Asked {
        Asked { device: device.clone(), times: Arc::default() }
    }

    fn host(&self) -> impl Fn(&Yielded, &mut Host<'_>) -> ebbtide::Result<()> + Send + Sync + 'static {
        let (device, times) = (self.device.clone(), self.times.clone());
        move |at, host| {
            assert!(at.is(Stage::List), "{at:?}");
            times.fetch_add(1, Ordering::Relaxed);
            grow(&device, host)
        }
    }

    fn take(&self) -> u64 {
        self.times.swap(0, Ordering::Relaxed)
    }
}

/// The arguments of a launch.
struct Given {
    x: Array1<f64>,
    list: Array1<f64>,
    full: Array0<i32>,
    loss: Array0<f64>,
}

impl Given {
    fn new(device: &Device) -> Given {
        Given {
            x: device.array(&START).unwrap(),
            list: device.array(&LIST).unwrap(),
            full: device.scalar(0).unwrap(),
            loss: device.scalar(0.0).unwrap(),
        }
    }

    fn args(&self) -> (&Array1<f64>, &Array1<f64>, &Array0<i32>, usize, &Array0<f64>) {
        (&self.x, &self.list, &self.full, STEPS, &self.loss)
    }

    fn is_as_found(&self) {
        assert_eq!((self.x.to_vec(), self.list.to_vec()), (START.to_vec(), LIST.to_vec()));
        assert_eq!((self.full.value(), self.loss.value()), (0, 0.0));
    }
}

#[test]
fn c67_the_gradient_of_a_run_whose_list_grows_is_the_oracles_with_the_same_bits_under_every_schedule() {
    lists_that_grow([Device::interpreter(), Device::cpu(), behind().0]);
}

#[test]
#[ignore = "needs CUDA"]
fn c67_the_same_holds_on_cuda() {
    lists_that_grow([Device::cuda().unwrap()]);
}

fn lists_that_grow<const N: usize>(devices: [Device; N]) {
    let trace = judged(&[]);
    assert_eq!(trace.yields, 3);
    let expected = trace.cotangents("loss", &[1.0]).unwrap();
    for device in devices {
        let (asked, given) = (Asked::new(&device), Given::new(&device));
        let g = listed().value_and_grad(P::loss).value(P::list).wrt(P::x).wrt(P::list);
        let g = g.on_yield(asked.host()).checked().compile(&device).unwrap();
        let all = g.with_budget(Budget::StoreAll).launch(given.args()).unwrap();
        assert_eq!(asked.take(), 3);
        given.is_as_found();
        let (dx, dlist) = (all.get(P::x).unwrap(), all.get(P::list).unwrap());
        close(&dx.to_vec(), expected["x"].iter().map(|d| d.value));
        close(&dlist.to_vec(), expected["list"].iter().map(|d| d.value));
        // Values are those of the plain run, in the shapes that it ends with.
        let values = |out: &Gradients| {
            (out.value(P::loss).unwrap().value().to_bits(), bits(out.value(P::list).unwrap()))
        };
        let literals = |name: &str| trace.values(name).unwrap().iter().map(|l| l.bits()).collect::<Vec<_>>();
        assert_eq!(values(&all), (literals("loss")[0], literals("list")));
        assert_eq!(all.value(P::list).unwrap().len(), 8);
        let check = |budget: Budget| {
            let out = g.with_budget(budget).launch(given.args()).unwrap();
            assert_eq!(asked.take(), 3, "the host is asked once for each yield");
            assert_eq!(bits(out.get(P::x).unwrap()), bits(dx), "{budget:?}");
            assert_eq!(bits(out.get(P::list).unwrap()), bits(dlist), "{budget:?}");
            assert_eq!(values(&out), values(&all), "{budget:?}");
        };
        for slots in [1, 2, 3, 7] {
            for block in [1, 2, 5] {
                check(Budget::Revolve { slots, block });
            }
        }
        [1, 4, 7].into_iter().for_each(|period| check(Budget::Periodic { period }));
        // The same memory is used again for the next launch, whose results begin in the shapes of its arguments.
        let mut out = g.launch(given.args()).unwrap();
        g.launch_into(&mut out, given.args()).unwrap();
        assert_eq!((bits(out.get(P::x).unwrap()), values(&out)), (bits(dx), values(&all)));
        asked.take();
    }
}

#[test]
fn c67_grown_arrays_are_planned_anew_within_the_budget_or_the_error_states_the_minimum() {
    for device in [Device::interpreter(), Device::cpu()] {
        let (asked, given) = (Asked::new(&device), Given::new(&device));
        let g =
            listed().grad(P::loss).wrt(P::x).wrt(P::list).on_yield(asked.host()).compile(&device).unwrap();
        let all = g.with_budget(Budget::StoreAll).launch(given.args()).unwrap();
        let least_at_launch = match g.with_memory(Bytes(1)).launch(given.args()) {
            Err(Error::BudgetTooSmall { minimum, .. }) => minimum,
            other => panic!("{other:?}"),
        };
        asked.take();
        // Enough for the arrays as they are launched, and not for what they become.
        let minimum = match g.with_memory(Bytes(least_at_launch)).launch(given.args()) {
            Err(Error::BudgetTooSmall { minimum, budget, .. }) if budget == least_at_launch => minimum,
            other => panic!("{other:?}"),
        };
        assert!(minimum > least_at_launch);
        given.is_as_found();
        let mut least = minimum;
        // Each time the host is asked, the list is twice as long, and so the error states another minimum.
        while let Err(error) = g.with_memory(Bytes(least)).launch(given.args()) {
            let Error::BudgetTooSmall { minimum, .. } = error else { panic!("{error}") };
            assert!(minimum > least);
            least = minimum;
        }
        for budget in [least, least + 50, least + 300, least + 1000, 2 * least, 20 * least] {
            asked.take();
            let out = g.with_memory(Bytes(budget)).launch(given.args()).unwrap();
            assert_eq!(asked.take(), 3, "the host is not asked again when the run is begun again");
            assert_eq!(bits(out.get(P::x).unwrap()), bits(all.get(P::x).unwrap()), "{budget}");
            assert_eq!(bits(out.get(P::list).unwrap()), bits(all.get(P::list).unwrap()), "{budget}");
        }
    }
}

#[test]
fn c67_second_derivatives_and_tangents_of_a_run_whose_list_grows_are_the_oracles() {
    let along = [0.3, -0.2, 0.5, 0.1, -0.4, 0.25];
    let trace = judged(&along);
    let expected = trace.cotangents("loss", &[1.0]).unwrap();
    for device in [Device::interpreter(), Device::cpu()] {
        let (asked, given) = (Asked::new(&device), Given::new(&device));
        let direction = device.array(&along).unwrap();
        let direction = Direction::new().array(P::x, &direction);
        let jvp = listed().jvp(P::loss).wrt(P::x).on_yield(asked.host()).compile(&device).unwrap();
        let out = jvp.launch(given.args(), &direction).unwrap();
        let moved = trace.tangents("loss").unwrap()[0].value;
        close(&[out.get(P::loss).unwrap().value()], [moved].into_iter());
        assert_eq!(asked.take(), 3);
        let mut first = None;
        for budget in
            [Budget::StoreAll, Budget::Revolve { slots: 2, block: 1 }, Budget::Periodic { period: 3 }]
        {
            let hvp = listed().hvp(P::loss).wrt(P::x).on_yield(asked.host());
            let hvp = hvp.budget(budget).compile(&device).unwrap();
            let out = hvp.launch(given.args(), &direction).unwrap();
            let product = out.get(P::x).unwrap();
            close(&product.to_vec(), expected["x"].iter().map(|d| d.tangent));
            assert_eq!(*first.get_or_insert_with(|| bits(product)), bits(product), "{budget:?}");
            assert_eq!(asked.take(), 3);
        }
    }
}

#[test]
fn c67_a_durable_gradient_whose_list_grows_goes_on_to_the_same_bits() {
    durable_lists_that_grow(Device::cpu());
}

#[test]
fn c67_a_durable_gradient_whose_list_grows_goes_on_to_the_same_bits_behind_the_host() {
    durable_lists_that_grow(behind().0);
}

fn durable_lists_that_grow(device: Device) {
    let left = Arc::new(AtomicI64::new(i64::MAX));
    let device = Device::new(Arc::new(Fragile { device, left: left.clone(), then: Then::Fail }));
    let (asked, given) = (Asked::new(&device), Given::new(&device));
    let g = listed().value_and_grad(P::loss).value(P::list).wrt(P::x).wrt(P::list);
    let g = g.on_yield(asked.host()).compile(&device).unwrap();
    let least = match g.with_memory(Bytes(1)).launch(given.args()) {
        Err(Error::BudgetTooSmall { minimum, .. }) => minimum,
        other => panic!("{other:?}"),
    };
    let budgets = [Budget::StoreAll, Budget::Revolve { slots: 3, block: 2 }, Budget::Bytes(2 * least)];
    for budget in budgets {
        let g = g.with_budget(budget);
        left.store(1 << 40, Ordering::Relaxed);
        asked.take();
        let out = g.launch(given.args()).unwrap();
        let results = |out: &Gradients| {
            (bits(out.get(P::x).unwrap()), bits(out.get(P::list).unwrap()), bits(out.value(P::list).unwrap()))
        };
        let (expected, segments) = (results(&out), (1 << 40) - left.load(Ordering::Relaxed));
        assert_eq!(asked.take(), 3);
        let mut remembered = 0;
        for until in (1..segments).step_by(1 + segments as usize / 10) {
            let dir = crate::folder::folder();
            let launch = |segments: i64| {
                left.store(segments, Ordering::Relaxed);
                g.launch_durable_every(dir.path().join("run"), Duration::ZERO, given.args())
            };
            assert!(launch(until).is_err());
            asked.take();
            let out = launch(1 << 40).unwrap();
            assert_eq!(results(&out), expected, "{budget:?}: broken down after {until} of {segments}");
            remembered += u64::from(asked.take() < 3);
            // A run that has ended gives its results once more, in their shapes.
            let again = launch(1 << 40).unwrap();
            assert_eq!((results(&again), asked.take()), (expected.clone(), 0));
        }
        assert!(remembered > 0, "{budget:?}: the host was asked everything again every time");
    }
}

/// Columns are added where the sum of a row is too large; a temporary has a column for each.
#[program]
fn widened(a: &mut Array2<f64>, over: &mut Array0<i32>, steps: usize, loss: &mut Array0<f64>) {
    let rows = a.dim(0);
    for t in 0..steps {
        #[checkpoint(Stage::Grow, yield_on = over, undo)]
        {
            over[[]] = 0;
            let mut sums = Array2::<f64>::zeros([rows, a.dim(1)]);
            for (r, c) in par(0..rows, 0..a.dim(1)) {
                sums[[r, c]] = a[[r, c]] * a[[r, c]];
                a[[r, c]] = 1.1 * a[[r, c]] + 0.01 * sums[[r, c]] * (t as f64).cos();
            }
            for r in par(0..rows) {
                if a[[r, 0]] > 0.2 * a.dim(1) as f64 {
                    over[[]].max_assign(1);
                }
            }
        }
        for (r, c) in par(0..rows, 0..a.dim(1)) {
            a[[r, c]] -= 0.02 * a[[r, c]] * a[[r, c]] / a.dim(1) as f64;
        }
    }
    for (r, c) in par(0..rows, 0..a.dim(1)) {
        loss[[]] += a[[r, c]] * a[[r, c]] * (1.0 + c as f64);
    }
}

/// A column more, of a number.
fn widen(device: &Device, host: &mut Host<'_>) -> ebbtide::Result<()> {
    host.with(widened::a, |a| {
        let [rows, columns] = a.shape();
        let old = a.to_vec();
        let wider = |[r, c]: [usize; 2]| if c < columns { old[r * columns + c] } else { 0.125 };
        *a = device.from_fn([rows, columns + 1], wider)?;
        Ok::<(), Error>(())
    })??;
    host.fill(widened::over, 0)
}

#[test]
fn c67_elements_keep_their_indices_where_rows_become_longer() {
    type Q = widened;
    let start = |k: usize, d: f64| if k == 1 { 0.4 + d } else { 0.3 + 0.02 * k as f64 };
    for device in [Device::interpreter(), Device::cpu()] {
        let on = device.clone();
        let g = widened().value_and_grad(Q::loss).wrt(Q::a).on_yield(move |_, host| widen(&on, host));
        let g = g.checked().compile(&device).unwrap();
        let given = |d| device.from_fn([3, 2], |[r, c]| start(2 * r + c, d)).unwrap();
        let (over, loss) = (device.scalar(0).unwrap(), device.scalar(0.0).unwrap());
        let a = given(0.0);
        let all = g.with_budget(Budget::StoreAll).launch((&a, &over, 12, &loss)).unwrap();
        for slots in [1, 2, 4] {
            let out =
                g.with_budget(Budget::Revolve { slots, block: 1 }).launch((&a, &over, 12, &loss)).unwrap();
            let of = |out: &Gradients| out.get(Q::a).unwrap().to_vec();
            assert_eq!(
                of(&out).iter().map(|x| x.to_bits()).collect::<Vec<_>>(),
                of(&all).iter().map(|x| x.to_bits()).collect::<Vec<_>>()
            );
        }
        // The plain run, driven by the same host, has the same loss; its differences are the gradient.
        let plain = widened().compile(&device).unwrap();
        let value = |d: f64| {
            let (mut a, mut over, mut loss) =
                (given(d), device.scalar(0).unwrap(), device.scalar(0.0).unwrap());
            let mut yields = 0;
            let status = plain.drive((&mut a, &mut over, 12, &mut loss), |_, (a, over, _, _)| {
                yields += 1;
                let [rows, columns] = a.shape();
                let old = a.to_vec();
                let wider = |[r, c]: [usize; 2]| if c < columns { old[r * columns + c] } else { 0.125 };
                **a = device.from_fn([rows, columns + 1], wider)?;
                over.fill(0)
            });
            assert!(status.unwrap().is_done() && yields > 1, "{yields}");
            loss.value()
        };
        assert_eq!(value(0.0).to_bits(), all.value(Q::loss).unwrap().value().to_bits());
        let difference = (value(1e-6) - value(-1e-6)) / 2e-6;
        let found = all.get(Q::a).unwrap()[[0, 1]];
        assert!((found - difference).abs() < 1e-7 * difference.abs().max(1.0), "{found} {difference}");
    }
}

/// The number of iterations of a later loop is the length of the list; a temporary from before keeps its shape.
#[program]
fn by_length(list: &mut Array1<f64>, full: &mut Array0<bool>, loss: &mut Array0<f64>) {
    let before = list.len();
    let mut weights = Array1::<f64>::zeros([before]);
    for i in par(0..weights.len()) {
        weights[i] = 0.5 + list[i];
    }
    #[checkpoint(Stage::Grow, yield_on = full)]
    {
        full[[]] = list.len() < 7;
    }
    for t in 0..list.len() {
        for i in par(0..list.len()) {
            list[i] = list[i] * (1.0 + 0.01 * (t as f64) * weights[t % weights.len()]);
        }
    }
    for i in par(0..list.len()) {
        loss[[]] += list[i] * list[i];
    }
}

#[test]
fn c67_loops_that_come_after_a_change_have_the_new_lengths() {
    type Q = by_length;
    let start = [0.3, 0.5, 0.7];
    for device in [Device::interpreter(), Device::cpu()] {
        let on = device.clone();
        let host = move |_: &Yielded, host: &mut Host<'_>| {
            host.with(Q::list, |list| {
                let mut longer = list.to_vec();
                longer.extend([0.25; 3]);
                *list = on.array(&longer)?;
                Ok::<(), Error>(())
            })??;
            host.fill(Q::full, false)
        };
        let g = by_length().value_and_grad(Q::loss).wrt(Q::list).on_yield(host).compile(&device).unwrap();
        let (full, loss) = (device.scalar(false).unwrap(), device.scalar(0.0).unwrap());
        let given = |d| device.array(&[start[0], start[1] + d, start[2]]).unwrap();
        let list = given(0.0);
        let all = g.with_budget(Budget::StoreAll).launch((&list, &full, &loss)).unwrap();
        let least = |g: &CompiledGrad<Q>| match g.with_memory(Bytes(1)).launch((&list, &full, &loss)) {
            Err(Error::BudgetTooSmall { minimum, .. }) => minimum,
            other => panic!("{other:?}"),
        };
        let budgets = [Budget::Revolve { slots: 2, block: 1 }, Budget::Bytes(3 * least(&g))];
        for budget in budgets {
            let out = g.with_budget(budget).launch((&list, &full, &loss)).unwrap();
            assert_eq!(bits(out.get(Q::list).unwrap()), bits(all.get(Q::list).unwrap()), "{budget:?}");
            assert_eq!(out.ran().reversed, 9, "{budget:?}");
        }
        let value = |d: f64| {
            let out = g.launch((&given(d), &full, &loss)).unwrap();
            out.value(Q::loss).unwrap().value()
        };
        let difference = (value(1e-6) - value(-1e-6)) / 2e-6;
        let found = all.get(Q::list).unwrap()[1];
        assert!((found - difference).abs() < 1e-7 * difference.abs().max(1.0), "{found} {difference}");
    }
}

#[test]
fn c68_a_run_that_lacks_room_yields_for_it_and_goes_on_to_the_same_bits() {
    for device in [Device::interpreter(), Device::cpu()] {
        let (asked, given) = (Asked::new(&device), Given::new(&device));
        let usual = asked.host();
        let lacking = Arc::new(AtomicU64::new(0));
        let count = lacking.clone();
        let g = listed().grad(P::loss).wrt(P::x).on_yield(move |at, host| match at.shortage() {
            Some(shortage) => {
                assert!(shortage.needed > shortage.available, "{shortage:?}");
                assert!(at.label::<Stage>().is_none() || at.is(Stage::List));
                count.fetch_add(1, Ordering::Relaxed);
                host.set_memory(Bytes(shortage.needed));
                Ok(())
            }
            None => usual(at, host),
        });
        let g = g.compile(&device).unwrap();
        let all = g.with_budget(Budget::StoreAll).launch(given.args()).unwrap();
        let least = match g.with_memory(Bytes(1)).launch(given.args()) {
            Err(Error::BudgetTooSmall { minimum, .. }) => minimum,
            other => panic!("{other:?}"),
        };
        assert_eq!(lacking.swap(0, Ordering::Relaxed), 0, "a launch that cannot begin is an error");
        let out = g.with_memory(Bytes(least)).launch(given.args()).unwrap();
        assert_eq!(bits(out.get(P::x).unwrap()), bits(all.get(P::x).unwrap()));
        assert!(lacking.swap(0, Ordering::Relaxed) > 0);
        given.is_as_found();
    }
}

#[test]
fn c68_memory_that_cannot_be_had_is_a_yield_where_there_is_a_host_and_an_error_where_it_does_nothing() {
    for device in [Device::interpreter(), Device::cpu()] {
        let (asked, given) = (Asked::new(&device), Given::new(&device));
        let all = listed().grad(P::loss).wrt(P::x).on_yield(asked.host()).compile(&device).unwrap();
        let all = bits(all.launch(given.args()).unwrap().get(P::x).unwrap());
        let meter = device.meter().clone();
        let (usual, raised) = (asked.host(), Arc::new(AtomicU64::new(0)));
        let count = raised.clone();
        let g = listed().grad(P::loss).wrt(P::x).on_yield(move |at, host| match at.shortage() {
            Some(shortage) => {
                count.fetch_add(1, Ordering::Relaxed);
                meter.set_limit(meter.limit() + shortage.needed);
                Ok(())
            }
            None => {
                // For the list that the host makes.
                meter.set_limit(meter.limit() + 64);
                usual(at, host)
            }
        });
        let g = g.budget(Budget::StoreAll).compile(&device).unwrap();
        // Room for the arrays of the run, and for little of its tape.
        let fixed = g.plan(given.args()).unwrap().fixed_bytes;
        device.meter().set_limit(device.meter().live() + fixed + 400);
        let out = g.launch(given.args()).unwrap();
        assert_eq!(bits(out.get(P::x).unwrap()), all);
        assert!(raised.load(Ordering::Relaxed) > 0);
        drop(out);
        g.release();
        // A host that frees nothing, and none.
        let usual = asked.host();
        let meter = device.meter().clone();
        let idle = move |at: &Yielded, host: &mut Host<'_>| match at.shortage() {
            Some(_) => Ok(()),
            None => {
                meter.set_limit(meter.limit() + 64);
                usual(at, host)
            }
        };
        let with_host = listed().grad(P::loss).wrt(P::x).on_yield(idle).budget(Budget::StoreAll);
        let without = listed().grad(P::loss).wrt(P::x).budget(Budget::StoreAll);
        for g in [with_host.compile(&device).unwrap(), without.compile(&device).unwrap()] {
            device.meter().set_limit(device.meter().live() + fixed + 400);
            let error = g.launch(given.args()).unwrap_err();
            assert!(matches!(error, Error::OutOfMemory { .. }), "{error}");
            device.meter().set_limit(u64::MAX);
            given.is_as_found();
        }
    }
}
