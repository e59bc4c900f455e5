//! What a gradient keeps: sections and not arrays, as many places as there are iterations, nothing that a linear program does
//! not need.

use ebbtide::prelude::*;

/// The bytes of so many elements.
fn f64s(n: usize) -> u64 {
    8 * n as u64
}

#[program]
fn rows(x: &mut Array2<f64>, steps: usize, loss: &mut Array0<f64>) {
    let (n, m) = (x.dim(0), x.dim(1));
    for _t in 0..steps {
        for k in 1..n {
            for j in par(0..m) {
                x[[k, j]] = x[[k, j]] * x[[k - 1, j]] * 0.5 + 0.1;
            }
        }
    }
    for (i, j) in par(0..n, 0..m) {
        loss[[]] += x[[i, j]] * x[[i, j]];
    }
}

#[test]
fn c55_a_loop_that_overwrites_rows_records_rows() {
    let device = Device::interpreter();
    let g = rows().grad(rows::loss).wrt(rows::x).compile(&device).unwrap().with_budget(Budget::StoreAll);
    let (n, m, steps) = (20, 50, 10);
    let (mut x, mut loss) = (device.zeros([n, m]).unwrap(), device.zeros([]).unwrap());
    let plan = g.plan((&mut x, steps, &mut loss)).unwrap();
    let tape = f64s(steps * (n - 1) * m);
    // Beside the tape: the working copy, its cotangent, and little more.
    assert!(plan.peak_bytes() < tape + 4 * f64s(n * m), "{}", plan.explain());
}

#[program]
fn triangle(x: &Array1<f64>, y: &mut Array1<f64>, loss: &mut Array0<f64>) {
    for i in par(0..x.len()) {
        for j in 0..i {
            for k in 0..j {
                y[i] = y[i] * (0.5 + 0.3 * x[k]) + 0.1 * x[j];
            }
        }
    }
    for i in par(0..x.len()) {
        loss[[]] += y[i] * y[i];
    }
}

#[test]
fn c56_a_triangle_in_a_body_keeps_as_many_places_as_it_has_iterations() {
    let device = Device::interpreter();
    let g = triangle().grad(triangle::loss).wrt(triangle::x).compile(&device).unwrap();
    let n = 60;
    let (x, mut y) = (device.zeros([n]).unwrap(), device.zeros([n]).unwrap());
    let plan = g.plan((&x, &mut y, &mut device.zeros([]).unwrap())).unwrap();
    let iterations = n * (n - 1) * (n - 2) / 6;
    assert!(plan.peak_bytes() < f64s(iterations + 20 * n), "{}", plan.explain());
}

#[program]
fn lu(a: &mut Array2<f64>, loss: &mut Array0<f64>) {
    let n = a.dim(0);
    for k in 0..n {
        for i in k + 1..n {
            a[[i, k]] = a[[i, k]] / a[[k, k]];
            for j in k + 1..n {
                a[[i, j]] = a[[i, j]] - a[[i, k]] * a[[k, j]];
            }
        }
    }
    for i in par(0..n) {
        loss[[]] += a[[i, i]] * a[[i, i]];
    }
}

#[test]
fn c56_lu_in_three_loops_keeps_what_it_divides_and_no_products() {
    let device = Device::interpreter();
    let g = lu().grad(lu::loss).wrt(lu::a).compile(&device).unwrap().with_budget(Budget::StoreAll);
    let n = 40;
    let (mut a, mut loss) = (device.zeros([n, n]).unwrap(), device.zeros([]).unwrap());
    let plan = g.plan((&mut a, &mut loss)).unwrap();
    assert_eq!(plan.recompute_factor(), 1.0);
    assert!(plan.peak_bytes() < f64s(5 * n * n), "{}", plan.explain());
}

#[program]
fn relax(f: &Array1<f64>, x: &mut Array1<f64>, steps: usize, loss: &mut Array0<f64>) {
    let n = x.len();
    for _t in 0..steps {
        for i in 1..n - 1 {
            x[i] = 0.5 * (x[i - 1] + x[i + 1] + f[i]);
        }
    }
    for i in par(0..n) {
        loss[[]] += x[i] * x[i];
    }
}

#[test]
fn c55_a_linear_relaxation_records_nothing() {
    let device = Device::interpreter();
    let g = relax().grad(relax::loss).wrt(relax::f).compile(&device).unwrap().with_budget(Budget::StoreAll);
    let peak = |steps: usize| {
        let (f, mut x) = (device.zeros([100]).unwrap(), device.zeros([100]).unwrap());
        g.plan((&f, &mut x, steps, &mut device.zeros([]).unwrap())).unwrap().peak_bytes()
    };
    assert_eq!(peak(10), peak(1000));
}

#[program]
fn cleared(u: &mut Array1<f64>, steps: usize, loss: &mut Array0<f64>) {
    let n = u.len();
    for _t in 0..steps {
        let mut sum = Array1::zeros([n]);
        for i in par(0..n) {
            sum[i] += u[i] * u[i];
        }
        for i in par(1..n) {
            u[i] = 0.5 * u[i] + 0.1 * sum[i] * sum[i - 1];
        }
    }
    for i in par(0..n) {
        loss[[]] += u[i] * u[i];
    }
}

#[test]
fn c55_the_zeros_of_a_cleared_temporary_are_not_recorded() {
    let device = Device::interpreter();
    let g = cleared().grad(cleared::loss).wrt(cleared::u).compile(&device).unwrap();
    let g = g.with_budget(Budget::StoreAll);
    let (n, steps) = (100, 50);
    let mut u = device.zeros([n]).unwrap();
    let plan = g.plan((&mut u, steps, &mut device.zeros([]).unwrap())).unwrap();
    // In each step `u` and what the temporary held before it was cleared.
    assert!(plan.peak_bytes() < f64s(n * (2 * steps + 10)), "{}", plan.explain());
}

/// Two rows that are overwritten from others: which rows these are, the shape tells.
#[program]
fn halo(x: &mut Array2<f64>, steps: usize, loss: &mut Array0<f64>) {
    let (n, m) = (x.dim(0), x.dim(1));
    for _t in 0..steps {
        for j in par(0..m) {
            x[[0, j]] = 0.5 * x[[n - 2, j]] * x[[0, j]];
            x[[n - 1, j]] = x[[1, j]] * x[[n - 1, j]];
        }
    }
    for (i, j) in par(0..n, 0..m) {
        loss[[]] += x[[i, j]] * x[[i, j]];
    }
}

#[test]
fn c55_rows_that_may_be_one_are_compared_and_the_array_is_not_copied() {
    let device = Device::interpreter();
    let g = halo().grad(halo::loss).wrt(halo::x).compile(&device).unwrap().with_budget(Budget::StoreAll);
    let (n, m, steps) = (40, 10, 6);
    let (mut x, mut loss) = (device.zeros([n, m]).unwrap(), device.zeros([]).unwrap());
    let plan = g.plan((&mut x, steps, &mut loss)).unwrap();
    // The tape, the working copy and its cotangent, and a few rows.
    let most = f64s(2 * steps * m) + 2 * f64s(n * m) + f64s(8 * m);
    assert!(plan.peak_bytes() < most, "{}", plan.explain());
    let text = halo().grad(halo::loss).wrt(halo::x).to_string();
    let back = text.split("backward loop").nth(1).unwrap();
    let copies = back.lines().filter(|line| line.starts_with("            copy(")).count();
    assert_eq!(copies, 0, "{text}");
}

/// Sums within sums: the innermost ones are as many as iterations of three loops.
#[program]
fn three_sums(x: &Array1<f64>, w: &Array2<f64>, y: &mut Array1<f64>, loss: &mut Array0<f64>) {
    let n = x.len();
    for i in par(0..n) {
        let mut outer = 0.0;
        for j in 0..n {
            let mut middle = 0.0;
            for k in 0..n {
                let mut inner = 0.0;
                for l in 0..n {
                    inner += w[[k, l]] * x[l] * x[i];
                }
                middle += inner * inner * w[[j, k]];
            }
            outer += middle * middle * x[j];
        }
        y[i] = outer;
    }
    for i in par(0..n) {
        loss[[]] += y[i] * y[i];
    }
}

/// The same in triangles.
#[program]
fn triangle_sums(x: &Array1<f64>, w: &Array2<f64>, y: &mut Array1<f64>, loss: &mut Array0<f64>) {
    let n = x.len();
    for i in par(0..n) {
        let mut outer = 0.0;
        for j in 0..i {
            let mut inner = 0.0;
            for k in 0..j {
                inner += w[[j, k]] * x[k] * x[i];
            }
            outer += inner * inner * x[j];
        }
        y[i] = outer;
    }
    for i in par(0..n) {
        loss[[]] += y[i] * y[i];
    }
}

/// The most variables of loops, one inside the other, that a program has.
fn depth(text: &str) -> usize {
    let (mut open, mut most): (Vec<usize>, usize) = (Vec::new(), 0);
    for line in text.lines().map(str::trim) {
        if line.starts_with('}') {
            open.pop();
        }
        if line.ends_with('{') {
            let variables = line.strip_prefix("for ").and_then(|rest| rest.split(" in ").next());
            open.push(variables.map_or(0, |variables| variables.split(", ").count()));
            most = most.max(open.iter().sum());
        }
    }
    most
}

#[test]
fn c56_gradients_of_sums_within_sums_have_loops_no_deeper_than_the_sums() {
    let program = three_sums();
    let text = program.grad(three_sums::loss).wrt(three_sums::x).wrt(three_sums::w).to_string();
    assert_eq!(depth(&text), 4, "{text}");
    let program = triangle_sums();
    let text = program.grad(triangle_sums::loss).wrt(triangle_sums::x).wrt(triangle_sums::w).to_string();
    assert_eq!(depth(&text), 3, "{text}");
}

/// Each plane is overwritten with products of a row and a column of the matrix itself.
#[program]
fn lu_planes(a: &mut Array2<f64>, loss: &mut Array0<f64>) {
    let n = a.dim(0);
    for k in 0..n {
        for i in par(k + 1..n) {
            a[[i, k]] = a[[i, k]] / a[[k, k]];
        }
        for (i, j) in par(k + 1..n, k + 1..n) {
            a[[i, j]] = a[[i, j]] - a[[i, k]] * a[[k, j]];
        }
    }
    for (i, j) in par(0..n, 0..n) {
        loss[[]] += a[[i, j]] * a[[i, j]];
    }
}

#[test]
fn c56_rows_and_columns_of_a_plane_get_sums_and_no_scatters() {
    let text = lu_planes().grad(lu_planes::loss).wrt(lu_planes::a).to_string();
    let back = text.split("backward loop").nth(1).unwrap();
    // Each iteration of a loop over the plane would add to elements that others add to as well.
    let planes = back.lines().filter(|line| line.trim().starts_with("for (i")).count();
    assert_eq!(planes, 0, "{text}");
}

#[program]
fn by_rows(first: &Array1<i32>, w: &Array1<f64>, x: &mut Array1<f64>, steps: usize, loss: &mut Array0<f64>) {
    let n = x.len();
    for _t in 0..steps {
        for i in 0..n {
            for k in first[i] as usize..first[i + 1] as usize {
                x[i] = x[i] * (0.5 + w[k] * x[(i + k) % n]);
            }
        }
    }
    for i in par(0..n) {
        loss[[]] += x[i] * x[i];
    }
}

#[test]
fn c56_a_loop_over_the_rows_of_a_sparse_matrix_keeps_as_many_places_as_there_are_elements() {
    for device in [Device::interpreter(), crate::cpu()] {
        let g = by_rows().grad(by_rows::loss).wrt(by_rows::x).wrt(by_rows::w).compile(&device).unwrap();
        let g = g.with_budget(Budget::StoreAll);
        let start = [0.7, 1.1, 0.9, 1.3, 0.8];
        let weights: Vec<f64> = (0..40).map(|k| 0.1 + 0.005 * k as f64).collect();
        let (steps, h) = (3, 1e-6);
        // The second and the third launch have the shapes of the first: what rows hold must be looked at again.
        for first in [[0, 3, 3, 4, 9, 12], [0, 8, 16, 24, 32, 40], [5, 4, 2, 2, 3, 3], [0; 6]] {
            let (first, w) = (device.array(&first).unwrap(), device.array(&weights).unwrap());
            let elements: i32 = first.to_vec().windows(2).map(|row| (row[1] - row[0]).max(0)).sum();
            let (mut x, mut loss) = (device.array(&start).unwrap(), device.zeros([]).unwrap());
            let plan = g.plan((&first, &w, &mut x, steps, &mut loss)).unwrap();
            // Each inner iteration keeps two elements; beside them are copies, cotangents and little more.
            let tape = f64s(2 * steps * elements as usize);
            assert!(plan.peak_bytes() >= tape && plan.peak_bytes() < tape + 600, "{}", plan.explain());
            let run = |g: &CompiledGrad<by_rows>| {
                let (mut x, mut loss) = (device.array(&start).unwrap(), device.zeros([]).unwrap());
                let out = g.launch((&first, &w, &mut x, steps, &mut loss)).unwrap();
                (out.get(by_rows::x).unwrap().to_vec(), out.get(by_rows::w).unwrap().to_vec())
            };
            let found = run(&g);
            for slots in 1..4 {
                assert_eq!(run(&g.with_budget(Budget::Revolve { slots, block: 2 })), found, "{slots} slots");
            }
            let plain = by_rows().compile(&device).unwrap();
            let loss_at = |bump: f64| {
                let mut moved = start;
                moved[3] += bump;
                let (mut x, mut loss) = (device.array(&moved).unwrap(), device.zeros([]).unwrap());
                let _done = plain.launch((&first, &w, &mut x, steps, &mut loss)).unwrap();
                loss.value()
            };
            let difference = (loss_at(h) - loss_at(-h)) / (2.0 * h);
            assert!((found.0[3] - difference).abs() < 1e-6 * (1.0 + difference.abs()), "{difference}");
        }
    }
}

/// A row that ends beyond the array is a fault of the program, and not of its plan.
#[test]
fn c56_rows_that_do_not_exist_are_faults_where_they_are_read() {
    let device = Device::interpreter();
    let g = by_rows().grad(by_rows::loss).wrt(by_rows::x).compile(&device).unwrap();
    let (first, w) = (device.array(&[0, 1]).unwrap(), device.array(&[0.5]).unwrap());
    let (mut x, mut loss) = (device.array(&[1.0, 2.0]).unwrap(), device.zeros([]).unwrap());
    let error = g.launch((&first, &w, &mut x, 2, &mut loss)).unwrap_err().to_string();
    assert!(error.contains("first"), "{error}");
}

/// A zone at one end of a line, and its first half.
#[program]
fn inflow(u: &mut Array1<f64>, steps: usize, loss: &mut Array0<f64>) {
    for _t in 0..steps {
        for i in par(0..10) {
            u[i] = 0.5 * u[i] + 0.1 * u[i] * u[i + 10];
        }
    }
    for i in par(0..u.len() / 2) {
        u[i] = u[i] * u[i];
    }
    for i in par(0..u.len()) {
        loss[[]] += u[i] * u[i];
    }
}

#[test]
fn c55_a_loop_over_a_part_of_a_line_records_that_part() {
    let device = Device::interpreter();
    let g = inflow().grad(inflow::loss).wrt(inflow::u).compile(&device).unwrap();
    let g = g.with_budget(Budget::StoreAll);
    let (n, steps) = (5000, 100);
    let (mut u, mut loss) = (device.zeros([n]).unwrap(), device.zeros([]).unwrap());
    let plan = g.plan((&mut u, steps, &mut loss)).unwrap();
    assert!(plan.peak_bytes() < f64s(steps * 10 + 4 * n), "{}", plan.explain());
}
