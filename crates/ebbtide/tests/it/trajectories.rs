//! Loops that write another row in each step and keep the earlier ones: the array is its own tape.

use ebbtide::prelude::*;

/// A logistic map for every column, all of its history kept.
#[program]
fn history(x: &mut Array2<f64>, r: &Array1<f64>, steps: usize, loss: &mut Array0<f64>) {
    for t in 0..steps {
        for i in par(0..r.len()) {
            x[[t + 1, i]] = r[i] * x[[t, i]] * (1.0 - x[[t, i]]);
        }
    }
    for i in par(0..r.len()) {
        loss[[]] += x[[steps, i]] * x[[steps, i]];
    }
}

/// The same without a history.
#[program]
fn in_place(x: &mut Array1<f64>, r: &Array1<f64>, steps: usize, loss: &mut Array0<f64>) {
    for _t in 0..steps {
        for i in par(0..r.len()) {
            x[i] = r[i] * x[i] * (1.0 - x[i]);
        }
    }
    for i in par(0..r.len()) {
        loss[[]] += x[i] * x[i];
    }
}

const N: usize = 50;

fn start() -> (Vec<f64>, Vec<f64>) {
    ((0..N).map(|i| 0.1 + 0.01 * i as f64).collect(), (0..N).map(|i| 2.0 + 0.02 * i as f64).collect())
}

fn devices() -> [Device; 2] {
    [Device::interpreter(), crate::cpu()]
}

#[test]
fn c55_a_trajectory_is_its_own_tape_and_nothing_is_run_again() {
    let device = Device::interpreter();
    let g = history().grad(history::loss).wrt(history::r).compile(&device).unwrap();
    let plan = |steps: usize| {
        let mut x = device.zeros([steps + 1, N]).unwrap();
        let (r, mut loss) = (device.zeros([N]).unwrap(), device.zeros([]).unwrap());
        g.plan((&mut x, &r, steps, &mut loss)).unwrap()
    };
    let [small, large] = [100, 400].map(plan);
    assert_eq!((small.recompute_factor(), large.recompute_factor()), (1.0, 1.0));
    // The run's copy of `x`, its cotangent, and little more.
    let rows = |plan: &Plan, steps: u64| plan.peak_bytes() as f64 / (8 * N as u64 * steps) as f64;
    assert!(rows(&small, 100) < 2.3, "{}", small.explain());
    assert!(rows(&large, 400) < 2.1, "{}", large.explain());
}

#[test]
fn c55_a_trajectory_has_the_derivatives_of_the_loop_in_place_under_every_budget() {
    let (first, rates) = start();
    for device in devices() {
        let steps = 7;
        let mut x = device.array(&first).unwrap();
        let (r, mut loss) = (device.array(&rates).unwrap(), device.zeros([]).unwrap());
        let g = in_place().grad(in_place::loss).wrt(in_place::x).wrt(in_place::r).compile(&device).unwrap();
        let out = g.launch((&mut x, &r, steps, &mut loss)).unwrap();
        let (dx, dr) = (out.get(in_place::x).unwrap().to_vec(), out.get(in_place::r).unwrap().to_vec());
        let mut all = first.clone();
        all.resize((steps + 1) * N, 0.25);
        for (k, budget) in [
            Budget::StoreAll,
            Budget::Periodic { period: 2 },
            Budget::Revolve { slots: 1, block: 1 },
            Budget::Revolve { slots: 2, block: 3 },
        ]
        .into_iter()
        .enumerate()
        {
            let g = history().grad(history::loss).wrt(history::x).wrt(history::r).budget(budget);
            let g = if k == 1 { g.without(ebbtide::Optimisation::KeepTrajectories) } else { g };
            let g = g.compile(&device).unwrap();
            let mut x = device.array_with_shape([steps + 1, N], &all).unwrap();
            let mut loss = device.zeros([]).unwrap();
            let out = g.launch((&mut x, &r, steps, &mut loss)).unwrap();
            assert_eq!(out.get(history::x).unwrap().to_vec()[..N], dx, "{budget:?}");
            assert!(out.get(history::x).unwrap().to_vec()[N..].iter().all(|d| *d == 0.0), "{budget:?}");
            assert_eq!(out.get(history::r).unwrap().to_vec(), dr, "{budget:?}");
            assert_eq!(x.to_vec(), all, "the caller's array is as it was");
        }
    }
}

/// What an earlier statement read is overwritten by the loop: it is recorded once, before the loop.
#[program]
fn read_before(x: &mut Array2<f64>, steps: usize, loss: &mut Array0<f64>) {
    for i in par(0..x.dim(1)) {
        loss[[]] += x[[1, i]] * x[[2, i]];
    }
    for t in 0..steps {
        for i in par(0..x.dim(1)) {
            x[[t + 1, i]] = x[[t, i]] * x[[t, i]];
        }
    }
    for i in par(0..x.dim(1)) {
        loss[[]] += x[[steps, i]];
    }
}

#[test]
fn c51_what_stands_before_a_trajectory_finds_what_it_read() {
    for device in devices() {
        let g = read_before().grad(read_before::loss).wrt(read_before::x).compile(&device).unwrap();
        let mut x = device.array_with_shape([3, 1], &[2.0, 3.0, 5.0]).unwrap();
        let mut loss = device.zeros([]).unwrap();
        let out = g.launch((&mut x, 2, &mut loss)).unwrap();
        // x₁ x₂ + x₀⁴.
        assert_eq!(out.get(read_before::x).unwrap().to_vec(), [32.0, 5.0, 3.0]);
    }
}

/// Rows that are read before they are written, and rows that are written twice, are recorded.
#[program]
fn not_one(x: &mut Array2<f64>, steps: usize, loss: &mut Array0<f64>) {
    for t in 0..steps {
        for i in par(0..x.dim(1)) {
            let ahead = x[[t + 2, i]];
            x[[t + 1, i]] = x[[t, i]] * ahead * ahead;
        }
    }
    for i in par(0..x.dim(1)) {
        loss[[]] += x[[steps, i]];
    }
}

#[test]
fn c51_rows_that_are_read_before_they_are_written_are_recorded() {
    for device in devices() {
        let g = not_one().grad(not_one::loss).wrt(not_one::x).memory(Bytes::mib(1)).compile(&device).unwrap();
        let mut x = device.array_with_shape([4, 1], &[2.0, 7.0, 3.0, 5.0]).unwrap();
        let mut loss = device.zeros([]).unwrap();
        let out = g.launch((&mut x, 2, &mut loss)).unwrap();
        // x₁ = x₀ x₂²; x₂ = x₁ x₃²; so the loss is x₀ x₂² x₃².
        assert_eq!(out.get(not_one::x).unwrap().to_vec(), [225.0, 0.0, 300.0, 180.0]);
    }
}

/// Its cotangent is summed in the result: one of another shape is refused before anything runs.
#[test]
fn c55_a_result_of_another_shape_is_refused() {
    use ebbtide::__lang::__autodiff::Request;
    use ebbtide_runtime::{AnyArray, Arg, CompiledGradient};
    let request = Request { of: "loss".to_string(), wrt: vec!["x".to_string()], ..Request::default() };
    for device in devices() {
        let program = history().ir().unwrap().clone();
        let gradient = CompiledGradient::new(&program, &request, &device, Budget::StoreAll).unwrap();
        let launch = |rows: usize| {
            let mut x = AnyArray::zeros(&device, ebbtide::ir::Type::F64, &[4, 5]).unwrap();
            let r = AnyArray::zeros(&device, ebbtide::ir::Type::F64, &[5]).unwrap();
            let mut loss = AnyArray::zeros(&device, ebbtide::ir::Type::F64, &[]).unwrap();
            let mut d_x = AnyArray::zeros(&device, ebbtide::ir::Type::F64, &[rows, 5]).unwrap();
            let steps = Arg::Scalar(ebbtide::ir::Literal::from(3_usize));
            let arrays = [Arg::Write(x.any_mut()), Arg::Read(&r), steps, Arg::Write(loss.any_mut())];
            let mut all: Vec<Arg> = arrays.into_iter().chain([Arg::Write(d_x.any_mut())]).collect();
            gradient.launch(&mut all).map(|_| ()).map_err(|error| error.to_string())
        };
        assert_eq!(launch(4), Ok(()));
        for rows in [3, 6] {
            let error = launch(rows).unwrap_err();
            assert!(error.contains("differ"), "{error}");
        }
    }
}

/// Row by row, each from the row before and from elements that data names.
#[program]
fn named(x: &mut Array2<f64>, from: &Array1<i32>, loss: &mut Array0<f64>) {
    let (steps, n) = (x.dim(0) - 1, x.dim(1));
    for t in 0..steps {
        for i in par(1..n - 1) {
            x[[t + 1, i]] = x[[t, i - 1]] * x[[t, i + 1]] + x[[t, from[t] as usize]];
        }
    }
    for i in par(0..n) {
        loss[[]] += x[[steps, i]] * x[[steps, i]];
    }
}

#[test]
fn c55_a_gradient_that_fails_leaves_its_arguments_as_they_were_and_its_results_can_be_used_again() {
    for device in devices() {
        let g = named().grad(named::loss).wrt(named::x).compile(&device).unwrap();
        let start: Vec<f64> = (0..40).map(|k| 0.1 + 0.02 * k as f64).collect();
        let mut x = device.array_with_shape([5, 8], &start).unwrap();
        let mut loss = device.zeros([]).unwrap();
        let [good, bad] = [[0, 3, 7, 1], [0, 3, 8, 1]].map(|from: [i32; 4]| device.array(&from).unwrap());
        let mut out = g.launch((&mut x, &good, &mut loss)).unwrap();
        let expected = out.get(named::x).unwrap().to_vec();
        assert!(g.launch_into(&mut out, (&mut x, &bad, &mut loss)).is_err());
        assert_eq!(x.to_vec(), start);
        assert_eq!(loss.value(), 0.0);
        g.launch_into(&mut out, (&mut x, &good, &mut loss)).unwrap();
        assert_eq!(out.get(named::x).unwrap().to_vec(), expected);
    }
}

/// Rows of a flat array, with a column at each side that is given.
#[program]
fn flat(x: &mut Array1<f64>, n: usize, steps: usize, loss: &mut Array0<f64>) {
    for t in 0..steps {
        for i in par(1..n - 1) {
            x[(t + 1) * n + i] = x[t * n + i] + 0.3 * x[t * n + i - 1] * x[t * n + i + 1];
        }
    }
    for i in par(0..n) {
        loss[[]] += x[steps * n + i] * x[steps * n + i];
    }
}

/// The same by rows.
#[program]
fn rows(x: &mut Array2<f64>, steps: usize, loss: &mut Array0<f64>) {
    let n = x.dim(1);
    for t in 0..steps {
        for i in par(1..n - 1) {
            x[[t + 1, i]] = x[[t, i]] + 0.3 * x[[t, i - 1]] * x[[t, i + 1]];
        }
    }
    for i in par(0..n) {
        loss[[]] += x[[steps, i]] * x[[steps, i]];
    }
}

/// Working copies hold what is read before it is written, and results what is added to before it is stored: elements before, between
/// and behind the rows of the loop included, and everything where it has none.
#[test]
fn c55_what_is_not_initialised_is_not_read() {
    use ebbtide::Optimisation::InitialiseWhatIsRead;
    for device in devices() {
        let flats = [flat().grad(flat::loss), flat().grad(flat::loss).without(InitialiseWhatIsRead)];
        let flats = flats.map(|g| g.wrt(flat::x).value(flat::x).compile(&device).unwrap());
        let by_rows = [rows().grad(rows::loss), rows().grad(rows::loss).without(InitialiseWhatIsRead)];
        let by_rows = by_rows.map(|g| g.wrt(rows::x).value(rows::x).compile(&device).unwrap());
        let mut loss = device.zeros([]).unwrap();
        for (n, steps, all) in [(5, 3, 4), (5, 2, 4), (5, 0, 3), (2, 3, 4), (1, 2, 3), (4, 1, 6)] {
            // The second launch finds what the first one left in the memory of both.
            let contents = |by: f64| (0..n * all).map(|k| by * (1.0 + k as f64).sin()).collect::<Vec<f64>>();
            let mut found = Vec::new();
            for g in &flats {
                let mut x = device.array(&contents(0.5)).unwrap();
                let mut out = g.launch((&mut x, n, steps, &mut loss)).unwrap();
                let mut x = device.array(&contents(0.9)).unwrap();
                g.launch_into(&mut out, (&mut x, n, steps, &mut loss)).unwrap();
                found.push((out.get(flat::x).unwrap().to_vec(), out.value(flat::x).unwrap().to_vec()));
            }
            for g in &by_rows {
                let mut x = device.array_with_shape([all, n], &contents(0.5)).unwrap();
                let mut out = g.launch((&mut x, steps, &mut loss)).unwrap();
                let mut x = device.array_with_shape([all, n], &contents(0.9)).unwrap();
                g.launch_into(&mut out, (&mut x, steps, &mut loss)).unwrap();
                found.push((out.get(rows::x).unwrap().to_vec(), out.value(rows::x).unwrap().to_vec()));
            }
            assert!(found.iter().all(|one| *one == found[0]), "{n} {steps} {all}: {found:?}");
        }
    }
}
