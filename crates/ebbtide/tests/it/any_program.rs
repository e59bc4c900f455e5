//! CONFORMANCE G: gradients, whatever the program. Each program here had a wrong number or a refusal once.

use ebbtide::prelude::*;

const BUDGETS: [Budget; 5] = [
    Budget::StoreAll,
    Budget::Periodic { period: 1 },
    Budget::Periodic { period: 3 },
    Budget::Revolve { slots: 1, block: 1 },
    Budget::Revolve { slots: 3, block: 2 },
];

fn devices() -> [Device; 2] {
    [Device::interpreter(), crate::cpu()]
}

/// The loop overwrites the inside of `u` alone and sums over it: more iterations than one leaf of a reduction has.
#[program]
fn grown(u: &mut Array2<f64>, e: &mut Array0<f64>, steps: usize) {
    let n = u.dim(0);
    let m = u.dim(1);
    for _t in 0..steps {
        for (i, j) in par(1..n - 1, 1..m - 1) {
            u[[i, j]] = u[[i, j]] * (1.1 - 0.1 * u[[i, j]]);
            e[[]] += u[[i, j]];
        }
        if e[[]] > 1000.0 {
            for (i, j) in par(1..n - 1, 1..m - 1) {
                u[[i, j]] = 0.5 * u[[i, j]];
            }
        }
    }
}

fn field(n: usize, m: usize) -> Vec<f64> {
    (0..n * m).map(|k| 0.3 + 0.2 * (k as f64 * 0.37).sin()).collect()
}

#[test]
fn c51_the_value_has_the_bits_of_a_plain_run_for_sums_of_many_leaves() {
    let (n, m, steps) = (70, 90, 5);
    for device in devices() {
        let start = || device.array_with_shape([n, m], &field(n, m)).unwrap();
        let (mut u, mut e) = (start(), device.zeros([]).unwrap());
        let _done = grown().compile(&device).unwrap().launch((&mut u, &mut e, steps)).unwrap();
        let mut first: Option<Vec<u64>> = None;
        for budget in BUDGETS {
            let g = grown().value_and_grad(grown::e).value(grown::u).wrt(grown::u).budget(budget);
            let g = g.compile(&device).unwrap();
            let (mut start, mut zero) = (start(), device.zeros([]).unwrap());
            let out = g.launch((&mut start, &mut zero, steps)).unwrap();
            assert_eq!(out.value(grown::e).unwrap().value().to_bits(), e.value().to_bits(), "{budget:?}");
            assert_eq!(out.value(grown::u).unwrap().to_vec(), u.to_vec(), "{budget:?}");
            let bits: Vec<u64> = out.get(grown::u).unwrap().to_vec().into_iter().map(f64::to_bits).collect();
            assert!(first.get_or_insert_with(|| bits.clone()) == &bits, "{budget:?} {device:?}");
        }
    }
}

#[program]
fn wrapped(x: &Array1<f64>, y: &mut Array1<f64>, z: &mut Array1<f64>, loss: &mut Array0<f64>) {
    let n = x.len();
    for _t in 0..3 {
        for i in par(0..n) {
            y[(i + 1) % n] = y[(i + 1) % n] * x[i];
            z[i] = z[i] * z[i] + x[i];
        }
    }
    for i in par(0..n) {
        loss[[]] += y[i] * z[i];
    }
}

#[test]
fn c54_a_loop_with_wrapped_writes_beside_a_longer_array_has_a_gradient() {
    for device in devices() {
        let value = |x: &[f64]| {
            let x = device.array(x).unwrap();
            let mut y = device.array(&[0.5, 0.7, 1.1]).unwrap();
            let mut z = device.array(&[0.2, 0.3, 0.4, 0.5, 0.6]).unwrap();
            let mut loss = device.zeros([]).unwrap();
            let _done = wrapped().compile(&device).unwrap().launch((&x, &mut y, &mut z, &mut loss)).unwrap();
            loss.value()
        };
        let at = [0.9, 1.2, 0.8];
        for budget in BUDGETS {
            let g = wrapped().grad(wrapped::loss).wrt(wrapped::x).budget(budget).compile(&device).unwrap();
            let x = device.array(&at).unwrap();
            let mut y = device.array(&[0.5, 0.7, 1.1]).unwrap();
            let mut z = device.array(&[0.2, 0.3, 0.4, 0.5, 0.6]).unwrap();
            let mut loss = device.zeros([]).unwrap();
            let out = g.launch((&x, &mut y, &mut z, &mut loss)).unwrap();
            let found = out.get(wrapped::x).unwrap().to_vec();
            for k in 0..3 {
                let (mut up, mut down) = (at, at);
                up[k] += 1e-6;
                down[k] -= 1e-6;
                let expected = (value(&up) - value(&down)) / 2e-6;
                assert!((found[k] - expected).abs() < 1e-6, "{k}: {} {expected}", found[k]);
            }
        }
    }
}

/// `a` is longer than `b`; they are swapped never.
#[program]
fn swapped_never(a: &mut Array1<f64>, b: &mut Array1<f64>, times: usize, on: bool, loss: &mut Array0<f64>) {
    for _t in 0..times {
        swap(a, b);
    }
    if on {
        swap(a, b);
    }
    for i in par(0..b.len()) {
        a[i] = 3.0 * b[i] * b[i] + a[i] * a[i];
    }
    for i in par(0..a.len()) {
        loss[[]] += a[i];
    }
}

/// A loop over the extent of `h` goes through `u`, which may be longer all the same.
#[program]
fn looks_alike(h: &mut Array1<f64>, u: &mut Array1<f64>, steps: usize, loss: &mut Array0<f64>) {
    let n = h.len();
    for _t in 0..steps {
        for i in par(0..n) {
            h[i] += 0.5 * u[(i + 1) % n] * u[i];
        }
        for i in par(0..n) {
            u[i] = 0.5 * u[i] + 0.25 * h[(i + n - 1) % n];
        }
    }
    for i in par(0..u.len()) {
        loss[[]] += u[i] * u[i];
    }
}

#[test]
fn c52_arrays_that_look_alike_may_differ_in_shape() {
    let numbers = |n: usize, from: f64| -> Vec<f64> { (0..n).map(|i| from + 0.125 * i as f64).collect() };
    for device in devices() {
        let plain = looks_alike().compile(&device).unwrap();
        let loss_of = |h: &[f64], u: &[f64]| {
            let (mut h, mut u) = (device.array(h).unwrap(), device.array(u).unwrap());
            let mut loss = device.zeros([]).unwrap();
            let _done = plain.launch((&mut h, &mut u, 3, &mut loss)).unwrap();
            loss.value()
        };
        for budget in BUDGETS {
            let g = looks_alike().grad(looks_alike::loss).wrt(looks_alike::h).wrt(looks_alike::u);
            let g = g.budget(budget).compile(&device).unwrap();
            // The same gradient for arrays that are alike, that are not, and that are again.
            for (n, m) in [(5, 5), (5, 8), (4, 4), (4, 7)] {
                let (h, u) = (numbers(n, -0.25), numbers(m, 0.5));
                let (mut given, mut beside) = (device.array(&h).unwrap(), device.array(&u).unwrap());
                let mut loss = device.zeros([]).unwrap();
                let out = g.launch((&mut given, &mut beside, 3, &mut loss)).unwrap();
                let difference = |of_h: bool, k: usize| {
                    let moved = |by: f64| {
                        let (mut h, mut u) = (h.clone(), u.clone());
                        if of_h {
                            h[k] += by
                        } else {
                            u[k] += by
                        };
                        loss_of(&h, &u)
                    };
                    (moved(1e-5) - moved(-1e-5)) / 2e-5
                };
                for (of_h, found) in [(true, out.get(looks_alike::h)), (false, out.get(looks_alike::u))] {
                    for (k, slope) in found.unwrap().to_vec().into_iter().enumerate() {
                        let expected = difference(of_h, k);
                        assert!((slope - expected).abs() < 1e-8, "{n} {m}, {k}: {slope} is not {expected}");
                    }
                }
            }
        }
    }
}

/// The rows of `u` and `v` are named alike, and `v` may be larger in either direction all the same.
#[program]
fn trajectories_look_alike(u: &mut Array2<f64>, v: &mut Array2<f64>, loss: &mut Array0<f64>) {
    let (steps, n) = (u.dim(0) - 1, u.dim(1));
    for t in 0..steps {
        for i in par(0..n) {
            u[[t + 1, i]] = 0.5 * u[[t, (i + 1) % n]] + v[[t, i]] * u[[t, i]];
            v[[t + 1, i]] = 0.25 * v[[t, (i + n - 1) % n]] * u[[t, i]];
        }
    }
    for (k, i) in par(0..v.dim(0), 0..v.dim(1)) {
        loss[[]] += v[[k, i]] * v[[k, i]];
    }
}

#[test]
fn c52_trajectories_that_look_alike_may_differ_in_shape() {
    let numbers = |n: usize, from: f64| -> Vec<f64> { (0..n).map(|i| from + 0.0625 * i as f64).collect() };
    for device in devices() {
        let plain = trajectories_look_alike().compile(&device).unwrap();
        let loss_of = |u: &[f64], v: &[f64], shapes: [[usize; 2]; 2]| {
            let mut u = device.array_with_shape(shapes[0], u).unwrap();
            let mut v = device.array_with_shape(shapes[1], v).unwrap();
            let mut loss = device.zeros([]).unwrap();
            let _done = plain.launch((&mut u, &mut v, &mut loss)).unwrap();
            loss.value()
        };
        let g = trajectories_look_alike().grad(trajectories_look_alike::loss);
        let g = g.wrt(trajectories_look_alike::u).wrt(trajectories_look_alike::v).compile(&device).unwrap();
        for shapes in [[[3, 4], [3, 4]], [[3, 4], [5, 6]], [[3, 4], [3, 5]], [[4, 3], [4, 3]]] {
            let values = shapes.map(|[rows, columns]| numbers(rows * columns, 0.25));
            let mut u = device.array_with_shape(shapes[0], &values[0]).unwrap();
            let mut v = device.array_with_shape(shapes[1], &values[1]).unwrap();
            let mut loss = device.zeros([]).unwrap();
            let out = g.launch((&mut u, &mut v, &mut loss)).unwrap();
            let found = [out.get(trajectories_look_alike::u), out.get(trajectories_look_alike::v)];
            for (array, slopes) in found.into_iter().enumerate() {
                for (k, slope) in slopes.unwrap().to_vec().into_iter().enumerate() {
                    let moved = |by: f64| {
                        let mut values = values.clone();
                        values[array][k] += by;
                        loss_of(&values[0], &values[1], shapes)
                    };
                    let expected = (moved(1e-5) - moved(-1e-5)) / 2e-5;
                    assert!((slope - expected).abs() < 1e-8, "{shapes:?}, {k}: {slope} is not {expected}");
                }
            }
        }
    }
}

#[test]
fn c52_a_swap_that_does_not_run_proves_nothing_about_shapes() {
    for device in devices() {
        let arrays = || {
            let a = device.array(&[1.0, 2.0, 3.0, 4.0, 5.0]).unwrap();
            (a, device.array(&[0.5, 0.25]).unwrap(), device.zeros([]).unwrap())
        };
        let (mut a, mut b, mut loss) = arrays();
        let plain = swapped_never().compile(&device).unwrap();
        let _done = plain.launch((&mut a, &mut b, 0, false, &mut loss)).unwrap();
        assert_eq!(a.to_vec(), [1.75, 4.1875, 3.0, 4.0, 5.0]);
        assert_eq!(loss.value(), 17.9375);
        for budget in BUDGETS {
            let g = swapped_never().value_and_grad(swapped_never::loss);
            let g = g.wrt(swapped_never::a).wrt(swapped_never::b).budget(budget).compile(&device).unwrap();
            let (mut a, mut b, mut loss) = arrays();
            let out = g.launch((&mut a, &mut b, 0, false, &mut loss)).unwrap();
            assert_eq!(out.value(swapped_never::loss).unwrap().value(), 17.9375);
            assert_eq!(out.get(swapped_never::a).unwrap().to_vec(), [2.0, 4.0, 1.0, 1.0, 1.0]);
            assert_eq!(out.get(swapped_never::b).unwrap().to_vec(), [3.0, 1.5]);
        }
        // Where they are swapped, unequal shapes are an error, and so is the missing element.
        let (mut a, mut b, mut loss) = arrays();
        let error = plain.launch((&mut a, &mut b, 1, false, &mut loss)).unwrap_err().to_string();
        assert!(error.contains("shape"), "{error}");
    }
}

/// The first parallel index is subtracted from the second.
#[program]
fn antidiagonal(x: &Array1<f64>, y: &mut Array2<f64>) {
    for (i, j) in par(0..3, 0..4) {
        y[[i, j]] = x[j + 2 - i] * x[11 - i - j];
    }
}

#[test]
fn c54_indices_that_subtract_the_first_parallel_variable_have_gradients() {
    for device in devices() {
        let g = antidiagonal().vjp(antidiagonal::y).wrt(antidiagonal::x).compile(&device).unwrap();
        let at: Vec<f64> = (0..12).map(|k| 0.5 + 0.1 * f64::from(k)).collect();
        let seeds: Vec<f64> = (0..12).map(|k| 1.0 - 0.2 * f64::from(k)).collect();
        let (x, mut y) = (device.array(&at).unwrap(), device.zeros([3, 4]).unwrap());
        let seed = device.array_with_shape([3, 4], &seeds).unwrap();
        let found = g.launch_with(&seed, (&x, &mut y)).unwrap().get(antidiagonal::x).unwrap().to_vec();
        let mut expected = vec![0.0; 12];
        for i in 0..3 {
            for j in 0..4 {
                let (p, q, s) = (j + 2 - i, 11 - i - j, seeds[i * 4 + j]);
                expected[p] += s * at[q];
                expected[q] += s * at[p];
            }
        }
        for (f, e) in found.iter().zip(&expected) {
            assert!((f - e).abs() < 1e-12, "{found:?} {expected:?}");
        }
    }
}

/// The bounds of the loop, and the extent of the temporary, cannot be computed where the guard does not hold.
#[program]
fn guarded(x: &mut Array1<f64>, w: usize, loss: &mut Array0<f64>) {
    if w > 0 {
        for _k in 0..12 / w {
            for i in par(0..x.len()) {
                x[i] = x[i] * x[i];
            }
        }
    }
    for i in par(0..x.len()) {
        loss[[]] += x[i];
    }
}

#[test]
fn c54_bounds_behind_a_guard_are_not_computed_early() {
    for device in devices() {
        for budget in BUDGETS {
            let g = guarded().grad(guarded::loss).wrt(guarded::x).budget(budget).compile(&device).unwrap();
            for (w, expected) in [(0, [1.0, 1.0]), (6, [4.0 * 0.125, 4.0 * 0.729]), (12, [1.0, 1.8])] {
                let (mut x, mut loss) = (device.array(&[0.5, 0.9]).unwrap(), device.zeros([]).unwrap());
                let out = g.launch((&mut x, w, &mut loss)).unwrap();
                for (f, e) in out.get(guarded::x).unwrap().to_vec().iter().zip(expected) {
                    assert!((f - e).abs() < 1e-12, "{w}: {f} {e}");
                }
            }
        }
    }
}

/// The loss is linear in what is scattered: of the second derivative only the tangent of `b` has a part.
#[program]
fn dealt(a: &Array1<f64>, b: &mut Array1<f64>, perm: &Array1<i32>, loss: &mut Array0<f64>) {
    for i in par(0..a.len()) {
        scatter_unique(b, perm[i] as usize, a[i] * a[i] * a[i]);
    }
    for i in par(0..b.len()) {
        loss[[]] += 8.0 * b[i];
    }
}

#[test]
fn c54_a_linear_scatter_has_second_derivatives() {
    for device in devices() {
        let h = dealt().hvp(dealt::loss).wrt(dealt::a).compile(&device).unwrap();
        let (a, mut b) = (device.array(&[1.0, 2.0, 3.0]).unwrap(), device.zeros([3]).unwrap());
        let (perm, mut loss) = (device.array(&[2, 0, 1]).unwrap(), device.zeros([]).unwrap());
        let along = device.array(&[1.0, 0.5, -1.0]).unwrap();
        let out =
            h.launch((&a, &mut b, &perm, &mut loss), &Direction::new().array(dealt::a, &along)).unwrap();
        // loss = Σ 8 a³, so its second derivative is 48 a.
        assert_eq!(out.get(dealt::a).unwrap().to_vec(), [48.0, 48.0, -144.0]);
    }
}

/// A complex product: a compiler that sees its pattern may make fused multiply-adds of it.
#[program]
fn rotated(w: &mut Array1<f64>, c: f64, s: f64) {
    for i in par(0..w.len() / 2) {
        let re = w[2 * i] * c - w[2 * i + 1] * s;
        w[2 * i + 1] = w[2 * i] * s + w[2 * i + 1] * c;
        w[2 * i] = re;
    }
}

#[test]
fn c48_a_complex_product_has_the_bits_of_the_interpreter() {
    let start: Vec<f64> = (0..46).map(|k| f64::from(k * 7 % 11) / 11.0 - 0.3).collect();
    let results = devices().map(|device| {
        let mut w = device.array(&start).unwrap();
        let _done = rotated().compile(&device).unwrap().launch((&mut w, 0.4f64.cos(), 0.4f64.sin())).unwrap();
        w.to_vec().into_iter().map(f64::to_bits).collect::<Vec<_>>()
    });
    assert_eq!(results[0], results[1]);
}

/// The tangent of the chosen arm is zero at zero, and still moves.
#[program]
fn chosen(x: &Array1<f64>, loss: &mut Array0<f64>) {
    for i in par(0..x.len()) {
        loss[[]] += select(x[i] < 10.0, x[i] * x[i], 0.5).atan();
    }
}

#[test]
fn c54_a_tangent_that_is_zero_has_a_derivative() {
    for device in devices() {
        let hvp = chosen().hvp(chosen::loss).wrt(chosen::x).compile(&device).unwrap();
        let (x, along) = (device.array(&[0.0, 11.0]).unwrap(), device.array(&[1.0, 1.0]).unwrap());
        let mut loss = device.zeros([]).unwrap();
        let out = hvp.launch((&x, &mut loss), &Direction::new().array(chosen::x, &along)).unwrap();
        assert_eq!(out.get(chosen::x).unwrap().to_vec(), [2.0, 0.0]);
    }
}

/// The inner loop takes what its hint says, whatever the budget.
#[program]
fn hinted(z: &mut Array1<f64>, steps: usize, loss: &mut Array0<f64>) {
    for _t in 0..steps {
        #[reverse(revolve = 3)]
        for _k in 0..5 {
            for i in par(0..z.len()) {
                z[i] += 0.1 * z[i] * z[i];
            }
        }
    }
    for i in par(0..z.len()) {
        loss[[]] += z[i];
    }
}

#[test]
fn the_minimum_that_an_error_names_is_enough_and_one_byte_less_is_not() {
    let device = Device::interpreter();
    let g = hinted().grad(hinted::loss).wrt(hinted::z).compile(&device).unwrap();
    let launch = |bytes: u64| {
        let (mut z, mut loss) = (device.array(&[0.1, 0.2, 0.3]).unwrap(), device.zeros([]).unwrap());
        g.with_memory(Bytes(bytes))
            .launch((&mut z, 4, &mut loss))
            .map(|out| out.get(hinted::z).unwrap().to_vec())
    };
    let Err(ebbtide::Error::BudgetTooSmall { minimum, .. }) = launch(0) else { panic!("0 bytes are enough") };
    launch(minimum).unwrap();
    let Err(ebbtide::Error::BudgetTooSmall { minimum: again, .. }) = launch(minimum - 1) else {
        panic!("less than the minimum is enough")
    };
    assert_eq!(again, minimum);
}

/// The index cannot be computed where the loop has no iterations.
#[program]
fn looked_up(x: &Array1<f64>, perm: &Array1<i32>, n: usize, loss: &mut Array0<f64>) {
    for _i in par(0..n) {
        loss[[]] += x[perm[3 % n] as usize] * x[0];
    }
}

#[test]
fn c54_a_gradient_computes_no_index_that_the_program_does_not() {
    for device in devices() {
        let g = looked_up().grad(looked_up::loss).wrt(looked_up::x).compile(&device).unwrap();
        let (x, mut loss) = (device.array(&[1.0, 2.0]).unwrap(), device.zeros([]).unwrap());
        let none = device.array::<i32>(&[]).unwrap();
        let out = g.launch((&x, &none, 0, &mut loss)).unwrap();
        assert_eq!(out.get(looked_up::x).unwrap().to_vec(), [0.0, 0.0]);
        let perm = device.array(&[0, 1]).unwrap();
        let out = g.launch((&x, &perm, 2, &mut loss)).unwrap();
        assert_eq!(out.get(looked_up::x).unwrap().to_vec(), [4.0, 2.0]);
    }
}

mod names {
    use super::*;

    #[program]
    fn str(x: &mut Array1<f64>) {
        for i in par(0..x.len()) {
            x[i] = 2.0 * x[i];
        }
    }

    #[test]
    fn a_program_may_have_the_name_of_a_primitive_type() {
        let device = Device::interpreter();
        let mut x = device.array(&[1.0]).unwrap();
        let _done = str().compile(&device).unwrap().launch(&mut x).unwrap();
        assert_eq!(x.to_vec(), [2.0]);
    }
}
