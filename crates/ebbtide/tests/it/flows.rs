//! Derivatives that were lost on their way back once.

use ebbtide::prelude::*;

const BUDGETS: [Budget; 5] = [
    Budget::StoreAll,
    Budget::Periodic { period: 1 },
    Budget::Periodic { period: 2 },
    Budget::Revolve { slots: 1, block: 1 },
    Budget::Revolve { slots: 3, block: 2 },
];

fn devices() -> [Device; 2] {
    [Device::interpreter(), crate::cpu()]
}

#[program]
fn emptied(x: &Array1<f64>, v: &mut Array1<f64>, y: &mut Array1<f64>) {
    for i in par(0..x.len()) {
        v[i] = x[i];
    }
    for i in par(0..x.len()) {
        y[i] = v[i];
        v[i] = 0.0;
    }
}

#[test]
fn what_is_read_and_then_overwritten_has_a_derivative() {
    for device in devices() {
        let g = emptied().vjp(emptied::y).wrt(emptied::x).compile(&device).unwrap();
        let (x, seed) = (device.array(&[1.0, 2.0]).unwrap(), device.array(&[3.0, 5.0]).unwrap());
        let (mut v, mut y) = (device.zeros([2]).unwrap(), device.zeros([2]).unwrap());
        let out = g.launch_with(&seed, (&x, &mut v, &mut y)).unwrap();
        assert_eq!(out.get(emptied::x).unwrap().to_vec(), [3.0, 5.0]);
    }
}

/// Particles that a spring sets off, and that bounce from a wall.
#[program]
fn bouncing(x: &mut Array1<f64>, v: &mut Array1<f64>, k: f64, loss: &mut Array0<f64>) {
    for i in par(0..x.len()) {
        v[i] -= k * x[i];
    }
    for i in par(0..x.len()) {
        x[i] += 0.5 * v[i];
        if x[i] > 0.8 {
            x[i] = 1.6 - x[i];
            v[i] = -v[i];
        }
    }
    for i in par(0..x.len()) {
        loss[[]] += x[i] * x[i];
    }
}

#[test]
fn a_bounce_hands_on_what_flows_through_it() {
    let (start, speed) = ([0.1, 0.4, 0.7], [1.0, 0.9, 1.5]);
    for device in devices() {
        let value = |k: f64| {
            let (mut x, mut v) = (device.array(&start).unwrap(), device.array(&speed).unwrap());
            let mut loss = device.zeros([]).unwrap();
            let plain = bouncing().compile(&device).unwrap();
            let _done = plain.launch((&mut x, &mut v, k, &mut loss)).unwrap();
            loss.value()
        };
        let expected = (value(0.7 + 1e-6) - value(0.7 - 1e-6)) / 2e-6;
        let g = bouncing().grad(bouncing::loss).wrt(bouncing::k).compile(&device).unwrap();
        let (mut x, mut v) = (device.array(&start).unwrap(), device.array(&speed).unwrap());
        let mut loss = device.zeros([]).unwrap();
        let found: f64 = g.launch((&mut x, &mut v, 0.7, &mut loss)).unwrap().get(bouncing::k).unwrap();
        assert!((found - expected).abs() < 1e-7 * expected.abs(), "{found} {expected}");
    }
}

/// A solver inside a time step, its number of passes being data.
#[program]
fn solved(x: &Array1<f64>, z: &mut Array1<f64>, w: &Array1<f64>, loss: &mut Array0<f64>) {
    for t in 0..w.len() {
        let mut c: usize = 0;
        while c < 1 {
            fill(z, x[t]);
            c += 1;
        }
        for i in par(0..1) {
            loss[[]] += z[i] * w[t];
        }
    }
}

#[test]
fn what_an_inner_loop_overwrites_is_there_again_before_it() {
    for device in devices() {
        let g = solved().grad(solved::loss).wrt(solved::w).compile(&device).unwrap();
        let (x, w) = (device.array(&[1.0, 2.0, 3.0]).unwrap(), device.array(&[0.5; 3]).unwrap());
        for budget in BUDGETS {
            let (mut z, mut loss) = (device.zeros([1]).unwrap(), device.zeros([]).unwrap());
            let out = g.with_budget(budget).launch((&x, &mut z, &w, &mut loss)).unwrap();
            assert_eq!(out.get(solved::w).unwrap().to_vec(), [1.0, 2.0, 3.0], "{budget:?}");
        }
    }
}

#[program]
fn wrapped(a: &Array1<f64>, n: usize, y: &mut Array1<f64>) {
    for i in par(0..n) {
        y[i] = a[(i + 1) % n];
    }
}

#[program]
fn folded(a: &Array1<f64>, w: &Array1<f64>, n: usize, y: &mut Array1<f64>) {
    for i in par(0..n) {
        for p in 0..2 {
            y[i] += w[p] * a[(i + p) % n];
        }
    }
}

#[test]
fn elements_beyond_a_period_have_no_part_in_it() {
    for device in devices() {
        let seed = device.array(&[1.0, 2.0, 3.0]).unwrap();
        let (a, mut y) = (device.array(&[1.0; 5]).unwrap(), device.zeros([3]).unwrap());
        let g = wrapped().vjp(wrapped::y).wrt(wrapped::a).compile(&device).unwrap();
        for (n, expected) in [(3, [3.0, 1.0, 2.0, 0.0, 0.0]), (1, [1.0, 0.0, 0.0, 0.0, 0.0]), (0, [0.0; 5])] {
            let out = g.launch_with(&seed, (&a, n, &mut y)).unwrap();
            assert_eq!(out.get(wrapped::a).unwrap().to_vec(), expected, "{n}");
        }
        let w = device.array(&[10.0, 100.0]).unwrap();
        let g = folded().vjp(folded::y).wrt(folded::a).compile(&device).unwrap();
        for (n, expected) in [(3, [310.0, 120.0, 230.0, 0.0, 0.0]), (0, [0.0; 5])] {
            let out = g.launch_with(&seed, (&a, &w, n, &mut y)).unwrap();
            assert_eq!(out.get(folded::a).unwrap().to_vec(), expected, "{n}");
        }
    }
}

#[program]
fn through_a_map(q: &Array1<f64>, map: &Array1<i32>, y: &mut Array1<f64>) {
    for i in par(0..y.len()) {
        y[i] = q[map[0] as usize] * q[i];
    }
}

#[test]
fn an_index_that_all_iterations_read_is_no_hindrance() {
    for device in devices() {
        let g = through_a_map().vjp(through_a_map::y).wrt(through_a_map::q).compile(&device).unwrap();
        let (q, map) = (device.array(&[2.0, 3.0, 5.0]).unwrap(), device.array(&[1]).unwrap());
        let (mut y, seed) = (device.zeros([3]).unwrap(), device.array(&[1.0; 3]).unwrap());
        let out = g.launch_with(&seed, (&q, &map, &mut y)).unwrap();
        assert_eq!(out.get(through_a_map::q).unwrap().to_vec(), [3.0, 13.0, 3.0]);
    }
}

#[program]
fn window(a: &Array2<f64>, y: &mut Array2<f64>) {
    let n = y.dim(0);
    let m = y.dim(1);
    for (i, j) in par(0..n, 0..m) {
        for p in 0..2 {
            for q in 0..2 {
                y[[i, j]] += a[[(i + p) % n, (j + q) % m]];
            }
        }
    }
}

#[test]
fn a_periodic_window_in_two_dimensions_is_turned_round() {
    let (n, m) = (3, 4);
    let weights: Vec<f64> = (0..n * m).map(|k| (k * k % 7) as f64).collect();
    let mut expected = vec![0.0; n * m];
    for (k, weight) in weights.iter().enumerate() {
        for (p, q) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
            expected[(k / m + p) % n * m + (k % m + q) % m] += weight;
        }
    }
    for device in devices() {
        let g = window().vjp(window::y).wrt(window::a).compile(&device).unwrap();
        let seed = device.array_with_shape([n, m], &weights).unwrap();
        let (a, mut y) = (device.zeros([n, m]).unwrap(), device.zeros([n, m]).unwrap());
        let out = g.launch_with(&seed, (&a, &mut y)).unwrap();
        assert_eq!(out.get(window::a).unwrap().to_vec(), expected);
    }
}

#[program]
fn shaken(x: &Array1<f64>, z: &mut Array1<f64>, loss: &mut Array0<f64>) {
    for t in 0..2 {
        for _s in 0..2 {
            for i in par(0..z.len()) {
                z[i] = (z[i] + x[t.max(1) - 1]).sin();
            }
        }
    }
    for i in par(0..z.len()) {
        loss[[]] += z[i];
    }
}

#[test]
fn the_order_of_a_sum_is_that_of_the_program_under_every_budget() {
    for device in devices() {
        let g = shaken().grad(shaken::loss).wrt(shaken::x).compile(&device).unwrap();
        let x = device.array(&[0.3, 0.4]).unwrap();
        for scale in [0.0, 0.1, 0.23, 0.37, 0.71] {
            let start: Vec<f64> = (0..67).map(|k| scale * f64::from(k)).collect();
            let mut first: Option<Vec<f64>> = None;
            for budget in BUDGETS {
                let (mut z, mut loss) = (device.array(&start).unwrap(), device.zeros([]).unwrap());
                let out = g.with_budget(budget).launch((&x, &mut z, &mut loss)).unwrap();
                let found: Vec<f64> = out.get(shaken::x).unwrap().to_vec();
                assert_eq!(*first.get_or_insert_with(|| found.clone()), found, "{scale}, {budget:?}");
            }
        }
    }
}

/// Complex numbers side by side, turned by an angle that depends on them, in place.
#[program]
fn turned(w: &mut Array1<f64>, angle: f64, steps: usize, loss: &mut Array0<f64>) {
    let n = w.len() / 2;
    for _t in 0..steps {
        for i in par(0..n) {
            let a = angle + 0.1 * w[2 * i] * w[2 * i + 1];
            let re = w[2 * i] * a.cos() - w[2 * i + 1] * a.sin();
            w[2 * i + 1] = w[2 * i] * a.sin() + w[2 * i + 1] * a.cos();
            w[2 * i] = re;
            w[2 * i + 1] += 0.1 * w[2 * i];
        }
    }
    for i in par(0..n) {
        loss[[]] += w[2 * i] * w[2 * i] * w[2 * i + 1];
    }
}

#[test]
fn elements_side_by_side_belong_to_one_iteration() {
    let start: Vec<f64> = (0..46).map(|k| f64::from(k * 7 % 11) / 11.0 - 0.3).collect();
    let mut bits: Option<Vec<u64>> = None;
    for device in devices() {
        let plain = turned().compile(&device).unwrap();
        let value = |start: &[f64], angle: f64| {
            let (mut w, mut loss) = (device.array(start).unwrap(), device.zeros([]).unwrap());
            let _done = plain.launch((&mut w, angle, 5, &mut loss)).unwrap();
            loss.value()
        };
        let g = turned().grad(turned::loss).wrt(turned::w).wrt(turned::angle).compile(&device).unwrap();
        for budget in BUDGETS {
            let (mut w, mut loss) = (device.array(&start).unwrap(), device.zeros([]).unwrap());
            let out = g.with_budget(budget).launch((&mut w, 0.4, 5, &mut loss)).unwrap();
            let angle: f64 = out.get(turned::angle).unwrap();
            let expected = (value(&start, 0.4 + 1e-6) - value(&start, 0.4 - 1e-6)) / 2e-6;
            assert!((angle - expected).abs() < 1e-7, "{angle} {expected}");
            let found = out.get(turned::w).unwrap().to_vec();
            for (k, slope) in found.iter().enumerate() {
                let moved = |h: f64| {
                    let mut moved = start.clone();
                    moved[k] += h;
                    value(&moved, 0.4)
                };
                let expected = (moved(1e-6) - moved(-1e-6)) / 2e-6;
                assert!((slope - expected).abs() < 1e-7, "{k}: {slope} {expected}");
            }
            let found: Vec<u64> = found.iter().chain([&angle]).map(|x| x.to_bits()).collect();
            assert_eq!(*bits.get_or_insert_with(|| found.clone()), found, "{budget:?} on {device:?}");
        }
    }
}

#[program]
fn half_linear(x: &Array1<f64>, s: &Array1<f64>, k: f64, loss: &mut Array0<f64>) {
    for i in par(0..x.len()) {
        loss[[]] += k * (s[i] + x[i] * x[i]);
    }
}

#[test]
fn second_derivatives_may_be_zero() {
    for device in devices() {
        let hvp = half_linear().hvp(half_linear::loss).wrt(half_linear::x).wrt(half_linear::s);
        let hvp = hvp.compile(&device).unwrap();
        let (x, s) = (device.array(&[1.0, 2.0]).unwrap(), device.array(&[5.0, 6.0]).unwrap());
        let (along, mut loss) = (device.array(&[1.0, 10.0]).unwrap(), device.zeros([]).unwrap());
        let direction = Direction::new().array(half_linear::x, &along).array(half_linear::s, &along);
        let out = hvp.launch((&x, &s, 3.0, &mut loss), &direction).unwrap();
        assert_eq!(out.get(half_linear::x).unwrap().to_vec(), [6.0, 60.0]);
        assert_eq!(out.get(half_linear::s).unwrap().to_vec(), [0.0, 0.0]);
        // Nothing at all is curved along `s` alone.
        let hvp = half_linear().hvp(half_linear::loss).wrt(half_linear::s).compile(&device).unwrap();
        let direction = Direction::new().array(half_linear::s, &along);
        let out = hvp.launch((&x, &s, 3.0, &mut loss), &direction).unwrap();
        assert_eq!(out.get(half_linear::s).unwrap().to_vec(), [0.0, 0.0]);
    }
}

#[program]
fn clamped(x: &mut Array1<f64>, z: &Array1<f64>, y: &mut Array1<f64>, loss: &mut Array0<f64>) {
    let n = z.len();
    for i in par(0..n) {
        if x[i] > 0.0 {
            y[i] += z[(i + 1).min(n - 1).max(2)] * x[i];
        } else {
            y[i] += z[(i + 1).min(n - 1).max(2)];
        }
        x[i] = 2.0 * x[i];
    }
    for i in par(0..n) {
        loss[[]] += y[i] + x[i];
    }
}

#[test]
fn a_clamped_index_in_a_branch_is_turned_round() {
    for device in devices() {
        let g = clamped().grad(clamped::loss).wrt(clamped::z).wrt(clamped::x).compile(&device).unwrap();
        let z = device.array(&[1.0; 5]).unwrap();
        let (mut x, mut y) =
            (device.array(&[3.0, -1.0, 5.0, -2.0, 7.0]).unwrap(), device.zeros([5]).unwrap());
        let out = g.launch((&mut x, &z, &mut y, &mut device.zeros([]).unwrap())).unwrap();
        assert_eq!(out.get(clamped::z).unwrap().to_vec(), [0.0, 0.0, 4.0, 5.0, 8.0]);
        assert_eq!(out.get(clamped::x).unwrap().to_vec(), [3.0, 2.0, 3.0, 2.0, 3.0]);
    }
}
