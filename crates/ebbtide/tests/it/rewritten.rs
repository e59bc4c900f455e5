//! Parallel bodies that read what they have written: at other indices, after a branch, after `+=`, in inner loops.

use ebbtide::Budget;
use ebbtide::prelude::*;

/// Checks the gradient of a program `p(x, a, loss)` of a row and a table: the same bits on the interpreter and in native
/// code, under every schedule, and the slope that differences show.
macro_rules! right {
    ($p:ident) => {{
        type P = $p;
        let native = ebbtide_cpu::Options::new().threads(3).build().unwrap().0;
        let gradients = [Device::interpreter(), native].map(|device| {
            let g = $p().grad(P::loss).wrt(P::x).wrt(P::a).compile(&device).unwrap();
            (device, g)
        });
        let plain = $p().compile(&gradients[0].0).unwrap();
        for (n, m) in [(1, 4), (3, 5), (11, 6)] {
            let x0: Vec<f64> = (0..n).map(|i| 0.15 + 0.7 * ((i * 7) % 10) as f64 / 10.0).collect();
            let a0: Vec<f64> = (0..n * m).map(|i| 0.3 + 0.25 * (1.3 * i as f64).sin()).collect();
            let v: Vec<f64> = (0..n).map(|i| (i as f64 * 1.7 + 0.5).sin()).collect();
            let w: Vec<f64> = (0..n * m).map(|i| (i as f64 * 2.3).cos()).collect();
            let mut expected: Option<(Vec<f64>, Vec<f64>)> = None;
            for (device, g) in &gradients {
                for budget in [Budget::StoreAll, Budget::Revolve { slots: 1, block: 1 }] {
                    let mut x = device.array(&x0).unwrap();
                    let mut a = device.array_with_shape([n, m], &a0).unwrap();
                    let mut loss = device.zeros([]).unwrap();
                    let out = g.with_budget(budget).launch((&mut x, &mut a, &mut loss)).unwrap();
                    let found = (out.get(P::x).unwrap().to_vec(), out.get(P::a).unwrap().to_vec());
                    let bits = |a: &[f64]| a.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
                    let (dx, da) = expected.get_or_insert(found.clone());
                    assert_eq!((bits(dx), bits(da)), (bits(&found.0), bits(&found.1)), "{n}, {budget:?}");
                }
            }
            let (dx, da) = expected.unwrap();
            let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
            let device = &gradients[0].0;
            let loss_at = |h: f64| {
                let moved =
                    |a: &[f64], d: &[f64]| a.iter().zip(d).map(|(a, d)| a + h * d).collect::<Vec<_>>();
                let mut x = device.array(&moved(&x0, &v)).unwrap();
                let mut a = device.array_with_shape([n, m], &moved(&a0, &w)).unwrap();
                let mut loss = device.zeros([]).unwrap();
                let _done = plain.launch((&mut x, &mut a, &mut loss)).unwrap();
                loss.value()
            };
            let slope = dot(&dx, &v) + dot(&da, &w);
            let difference = (loss_at(1e-6) - loss_at(-1e-6)) / 2e-6;
            let size = dot(&dx, &dx).sqrt() * dot(&v, &v).sqrt() + dot(&da, &da).sqrt() * dot(&w, &w).sqrt();
            assert!((slope - difference).abs() < 1e-7 * size.max(1e-3), "{n}: {slope} is not {difference}");
        }
    }};
}

#[program]
fn weigh(x: &Array1<f64>, a: &Array2<f64>, loss: &mut Array0<f64>) {
    for (i, j) in par(0..a.dim(0), 0..a.dim(1)) {
        loss[[]] += a[[i, j]] * a[[i, j]] * x[i] * (1.0 + 0.1 * ((i + 2 * j) as f64));
    }
}

/// Along each row, each element from the one before it.
#[program]
fn along(x: &mut Array1<f64>, a: &mut Array2<f64>, loss: &mut Array0<f64>) {
    for _t in 0..2 {
        for i in par(0..x.len()) {
            for k in 1..a.dim(1) {
                a[[i, k]] = 0.5 * a[[i, k]] * a[[i, k]] + x[i] * a[[i, k - 1]].sin();
            }
            x[i] = x[i] * a[[i, 0]] + 0.1;
        }
    }
    weigh(x, a, loss);
}

/// A tridiagonal system in each row: forward elimination, then back.
#[program]
fn solve(x: &mut Array1<f64>, a: &mut Array2<f64>, loss: &mut Array0<f64>) {
    let m = a.dim(1);
    let mut c = Array2::<f64>::zeros([x.len(), m]);
    for i in par(0..x.len()) {
        c[[i, 0]] = x[i] / 4.0;
        a[[i, 0]] = a[[i, 0]] / 4.0;
        for k in 1..m {
            let pivot = 4.0 - x[i] * c[[i, k - 1]];
            c[[i, k]] = x[i] / pivot;
            a[[i, k]] = (a[[i, k]] - x[i] * a[[i, k - 1]]) / pivot;
        }
        for k in 1..m {
            a[[i, m - 1 - k]] = a[[i, m - 1 - k]] - c[[i, m - 1 - k]] * a[[i, m - k]];
        }
    }
    weigh(x, a, loss);
}

/// After `+=`, and after a write in a branch.
#[program]
fn added(x: &mut Array1<f64>, a: &mut Array2<f64>, loss: &mut Array0<f64>) {
    for _t in 0..2 {
        for i in par(0..x.len()) {
            x[i] += 0.3 * a[[i, 1]] * x[i];
            let now = x[i] * x[i];
            if now > 0.2 {
                x[i] = now.sin();
                a[[i, 2]] += x[i];
                a[[i, 3]] = a[[i, 2]] * x[i];
            }
            a[[i, 1]] = x[i] * a[[i, 2]] * a[[i, 3]];
        }
    }
    weigh(x, a, loss);
}

/// At indices that are data, which may or may not be the same.
#[program]
fn mixed(x: &mut Array1<f64>, a: &mut Array2<f64>, loss: &mut Array0<f64>) {
    let m = a.dim(1);
    for i in par(0..x.len()) {
        let p = (x[i] * 97.0 + 0.3) as usize % m;
        a[[i, p]] = a[[i, 0]] * x[i];
        a[[i, i % m]] = a[[i, p]] * a[[i, m - 1]];
        for k in 0..m {
            for q in 0..k {
                a[[i, k]] = 0.9 * a[[i, k]] + 0.1 * a[[i, q]] * x[i];
            }
        }
    }
    weigh(x, a, loss);
}

/// A table within a pass: each pass has an element of its own.
#[program]
fn apart(x: &mut Array1<f64>, a: &mut Array2<f64>, loss: &mut Array0<f64>) {
    for i in par(0..x.len()) {
        for k in 0..a.dim(1) {
            let old = a[[i, k]];
            a[[i, k]] = old * x[i];
            x[i] = 0.5 * x[i] + 0.1 * a[[i, k]] * old;
        }
    }
    weigh(x, a, loss);
}

/// One array after the other, each from what has just become of the other.
#[program]
fn leapfrog(x: &mut Array1<f64>, a: &mut Array2<f64>, loss: &mut Array0<f64>) {
    for _t in 0..3 {
        for i in par(0..x.len()) {
            a[[i, 0]] += -0.1 * x[i].sin();
            x[i] += 0.1 * a[[i, 0]];
        }
    }
    weigh(x, a, loss);
}

#[test]
fn what_was_added_is_known_without_a_copy() {
    let text = leapfrog().grad(leapfrog::loss).wrt(leapfrog::x).to_string();
    assert!(!text.contains("again_"), "{text}");
    right!(leapfrog);
}

#[test]
fn elements_along_a_row_that_are_made_of_those_before_them_are_differentiated() {
    right!(along);
}

#[test]
fn a_solver_in_each_row_is_differentiated() {
    right!(solve);
}

#[test]
fn what_was_added_to_or_written_in_a_branch_can_be_read() {
    right!(added);
}

#[test]
fn passes_that_have_elements_of_their_own_are_differentiated() {
    right!(apart);
}

/// What a value was stored from is needed as well, where the value is read back.
#[program]
fn stored(x: &mut Array1<f64>, a: &mut Array2<f64>, loss: &mut Array0<f64>) {
    let n = x.len();
    let mut c = Array1::<f64>::zeros([n]);
    let mut q = Array1::<f64>::zeros([n]);
    for i in par(0..n) {
        c[i] = 1.0 + (i as f64);
    }
    for i in par(0..n) {
        q[i] = c[i] * 2.0;
        x[i] = x[i] * q[i] * a[[i, 0]];
    }
    for i in par(0..n) {
        c[i] = 77.0;
    }
    weigh(x, a, loss);
}

#[test]
fn what_was_overwritten_since_is_put_back_for_a_value_that_was_stored_and_read() {
    right!(stored);
}

#[test]
fn elements_at_any_index_are_differentiated_in_triangles_too() {
    right!(mixed);
}

/// An elimination in each row, with loops that begin and end where those around them are.
#[program]
fn eliminate(x: &mut Array1<f64>, a: &mut Array2<f64>, loss: &mut Array0<f64>) {
    let m = a.dim(1);
    for i in par(0..x.len()) {
        for k in 1..m {
            for q in k + 1..m {
                a[[i, q]] = a[[i, q]] - 0.3 * a[[i, k]] * a[[i, q - 1]];
            }
            for q in 0..k + 1 {
                for r in q..k {
                    a[[i, r]] = a[[i, r]] * (1.0 + 0.1 * a[[i, q]] * x[i]);
                }
            }
        }
    }
    weigh(x, a, loss);
}

#[test]
fn loops_whose_bounds_follow_from_those_around_them_may_read_what_they_wrote() {
    right!(eliminate);
}

/// A loop that ends when what it writes says so. No element is so near to the limit that a difference of values jumps.
#[program]
fn falling(x: &mut Array1<f64>, a: &mut Array2<f64>, loss: &mut Array0<f64>) {
    for i in par(0..x.len()) {
        while x[i] > 0.53 {
            x[i] = 0.9 * x[i] * x[i];
        }
    }
    weigh(x, a, loss);
}

#[test]
fn a_loop_of_unknown_length_may_read_what_it_wrote() {
    right!(falling);
}

/// A sum that something else reads as well.
#[program]
fn partial_sums(x: &mut Array1<f64>, a: &mut Array2<f64>, loss: &mut Array0<f64>) {
    for i in par(0..x.len()) {
        let mut sum = x[i];
        let mut squares = 0.0;
        for k in 0..a.dim(1) {
            let next = sum + a[[i, k]];
            sum = next;
            squares += next * next;
        }
        x[i] = squares;
    }
    weigh(x, a, loss);
}

#[test]
fn partial_sums_that_are_read_are_carried() {
    right!(partial_sums);
}
