//! Loops, branches, regions, temporaries.

use ebbtide::prelude::*;
use expect_test::expect;

use crate::check;

#[program]
fn sequential(x: &mut Array1<f64>, steps: usize) {
    for t in 1..=steps {
        x[0] += t as f64;
    }
    let mut k = 0;
    while x[k] > 1.0 && k + 1 < x.len() {
        x[k] *= 0.5;
        k += 1;
    }
    loop {
        let y = x[0] * 0.5;
        x[0] = y;
        if y < 1.0 {
            break;
        }
    }
    for _ in 0..steps {
        x[1] += 1.0;
        if x[1] > 10.0 {
            break;
        }
    }
}

#[test]
fn sequential_loops_have_four_forms() {
    check(
        sequential(),
        expect![[r#"
        program sequential(x: &mut Array1<f64>, steps: usize) {
            for t in 1..steps + 1 {
                x[0] += t as f64;
            }
            let mut k = 0;
            while (x[k] > 1.0) & (k + 1 < x.len()) {
                let v18 = k;
                x[v18] = x[v18] * 0.5;
                k = k + 1;
            }
            loop {
                let y = x[0] * 0.5;
                x[0] = y;
                if y < 1.0 { break; }
            }
            for _pass in 0..steps {
                x[1] += 1.0;
                if x[1] > 10.0 { break; }
            }
        }
    "#]],
    );
    let device = Device::interpreter();
    let mut x = device.array(&[8.0, 9.0, 0.0]).unwrap();
    let status = sequential().compile(&device).unwrap().launch((&mut x, 3)).unwrap();
    // 8 + (1 + 2 + 3) = 14, halved while above 1, then until below 1.
    assert_eq!((status, x.to_vec()), (Done, vec![0.875, 7.5, 0.0]));
}

#[program]
fn search(x: &Array1<f64>, found: &mut Array0<i32>) {
    let n = x.len();
    let mut k = 0;
    while k < n && x[k] > 0.0 {
        k += 1;
    }
    found[[]] = if k == n || x[k] == -1.0 { 100 + k as i32 } else { k as i32 };
}

#[test]
fn a_condition_asks_no_more_than_it_needs() {
    check(
        search(),
        expect![[r#"
            program search(x: &Array1<f64>, found: &mut Array0<i32>) {
                let n = x.len();
                let mut k = 0;
                while {
                    let v3 = k < n;
                    let mut and_1 = v3;
                    if v3 {
                        and_1 = x[k] > 0.0;
                    }
                    and_1
                } {
                    k = k + 1;
                }
                let v14 = k == n;
                let mut or_3 = v14;
                if !v14 {
                    or_3 = x[k] == -1.0;
                }
                found[[]] = select(or_3, 100i32 + k as i32, k as i32);
            }
        "#]],
    );
    let device = Device::interpreter();
    let search = search().compile(&device).unwrap();
    for (values, expected) in
        [(vec![], 100), (vec![1.0, 2.0], 102), (vec![1.0, -1.0, 2.0], 101), (vec![-2.0], 0)]
    {
        let x = device.array(&values).unwrap();
        let mut found = device.scalar(0).unwrap();
        let status = search.launch((&x, &mut found)).unwrap();
        assert_eq!((status, found[[]]), (Done, expected));
    }
}

#[program]
fn out_of_bounds(x: &mut Array1<f64>, k: usize) {
    x[k - 2] = 1.0;
}

#[test]
fn an_index_out_of_bounds_is_an_error_that_names_the_line() {
    let device = Device::interpreter();
    let program = out_of_bounds().compile(&device).unwrap();
    let mut x = device.zeros([3]).unwrap();
    assert_eq!(program.launch((&mut x, 4)).unwrap(), Status::Done);
    for (k, index) in [(5, 3), (1, -1)] {
        let error = program.launch((&mut x, k)).expect_err("out of bounds").to_string();
        assert!(
            error.contains(&format!("index {index} is out of bounds")) && error.contains("control.rs:"),
            "{error}"
        );
    }
}

#[program]
fn inside_parallel(x: &mut Array1<f64>) {
    for i in par(0..x.len()) {
        let mut y = x[i];
        while y > 1.0 {
            y *= 0.5;
        }
        loop {
            y += 1.0;
            if y > 3.0 {
                break;
            }
        }
        if i % 2 == 0 {
            x[i] = y;
        } else if i % 3 == 0 {
            x[i] = -y;
        } else {
            x[i] = 0.0;
        }
    }
}

#[test]
fn parallel_bodies_hold_sequential_loops_and_branches() {
    check(
        inside_parallel(),
        expect![[r#"
        program inside_parallel(x: &mut Array1<f64>) {
            for i in par(0..x.len()) {
                let mut y = x[i];
                while y > 1.0 {
                    y = y * 0.5;
                }
                loop {
                    y = y + 1.0;
                    if y > 3.0 { break; }
                }
                if i % 2 == 0 {
                    x[i] = y;
                } else {
                    if i % 3 == 0 {
                        x[i] = -y;
                    } else {
                        x[i] = 0.0;
                    }
                }
            }
        }
    "#]],
    );
}

#[program]
fn temporaries(x: &mut Array2<f64>, m: usize) {
    let n = x.dim(0);
    let mut row = Array1::<f64>::zeros([n]);
    let mut plane = Array2::zeros([n, m + 1]);
    let mut total: Array0<f64> = Array0::zeros([]);
    for (i, j) in par(0..n, 0..m) {
        plane[[i, j]] = x[[i, j]];
    }
    for i in par(0..n) {
        row[i] = plane[[i, 0]];
        total[[]] += plane[[i, 0]];
    }
    fill(row, 1.0);
    copy(plane, x);
    let mut other = Array1::zeros([n]);
    swap(row, other);
    x[[0, 0]] = total[[]] + row[0];
}

#[test]
fn temporaries_have_a_shape_of_shapes_and_scalars() {
    check(
        temporaries(),
        expect![[r#"
        program temporaries(x: &mut Array2<f64>, m: usize) {
            let n = x.dim(0);
            let mut row = Array1::<f64>::zeros([n]);
            let mut plane = Array2::<f64>::zeros([n, m + 1]);
            let mut total = Array0::<f64>::zeros([]);
            for (i, j) in par(0..n, 0..m) {
                plane[[i, j]] = x[[i, j]];
            }
            for i_2 in par(0..n) {
                row[i_2] = plane[[i_2, 0]];
                total[[]] += plane[[i_2, 0]];
            }
            fill(row, 1.0);
            copy(plane, x);
            let mut other = Array1::<f64>::zeros([n]);
            swap(row, other);
            x[[0, 0]] = total[[]] + row[0];
        }
    "#]],
    );
}

#[program]
fn hints(x: &mut Array1<f64>, steps: usize) {
    #[reverse(revolve = 10)]
    for _t in 0..steps {
        #[reverse(store_all)]
        loop {
            x[0] *= 0.5;
            if x[0] < 1.0 {
                break;
            }
        }
        #[reverse(periodic = 4)]
        while x[1] > 1.0 {
            x[1] *= 0.5;
        }
    }
    #[relaxed]
    for i in par(0..x.len()) {
        x[(i * i) % 3] += 1.0;
    }
}

#[test]
fn loops_carry_what_stands_before_them() {
    check(
        hints(),
        expect![[r#"
        program hints(x: &mut Array1<f64>, steps: usize) {
            #[reverse(revolve = 10)]
            for _t in 0..steps {
                #[reverse(store_all)]
                loop {
                    x[0] = x[0] * 0.5;
                    if x[0] < 1.0 { break; }
                }
                #[reverse(periodic = 4)]
                while x[1] > 1.0 {
                    x[1] = x[1] * 0.5;
                }
            }
            #[relaxed] for i in par(0..x.len()) {
                x[i * i % 3] += 1.0;
            }
        }
    "#]],
    );
}

#[derive(Label, Clone, Copy, Debug, PartialEq)]
enum Stage {
    Grow,
    Shrink,
    Last,
}

#[program]
fn regions(
    a: &mut Array1<f64>,
    b: &mut Array1<f64>,
    full: &mut Array0<u32>,
    late: &mut Array0<bool>,
    n: usize,
) {
    for _t in 0..n {
        #[checkpoint(Stage::Grow, yield_on = full, undo = [a, b])]
        {
            a[0] += 1.0;
        }
        if a[0] > 2.0 {
            #[checkpoint(Stage::Shrink, yield_on = late, undo)]
            {
                b[0] += 1.0;
            }
        }
    }
    #[checkpoint(Stage::Last)]
    {
        full[[]] = 0;
        late[[]] = false;
    }
}

#[test]
fn regions_say_when_to_yield_and_what_to_undo() {
    check(
        regions(),
        expect![[r#"
        program regions(a: &mut Array1<f64>, b: &mut Array1<f64>, full: &mut Array0<u32>, late: &mut Array0<bool>, n: usize) {
            for _t in 0..n {
                #[checkpoint(Stage::Grow, yield_on = full, undo = [a, b])] {
                    a[0] += 1.0;
                }
                if a[0] > 2.0 {
                    #[checkpoint(Stage::Shrink, yield_on = late, undo)] {
                        b[0] += 1.0;
                    }
                }
            }
            #[checkpoint(Stage::Last)] {
                full[[]] = 0u32;
                late[[]] = false;
            }
        }
    "#]],
    );
}

#[test]
fn c26_labels_are_known_by_name() {
    assert_eq!(Stage::FAMILY, "Stage");
    assert_eq!(Stage::VARIANTS, ["Grow", "Shrink", "Last"]);
    assert_eq!(Stage::from_variant(&Stage::Shrink.variant()), Some(Stage::Shrink));
    assert_eq!(Stage::from_variant("Detect"), None);
}

#[program]
fn nest(count: &mut Array0<i32>) {
    for _a in 0..2 {
        for _b in 0..3 {
            for _c in 0..2 {
                count[[]] += 1;
            }
        }
    }
}

#[test]
fn c20_a_nest_of_2_3_2_runs_its_body_12_times() {
    let device = Device::interpreter();
    let mut count = device.scalar(0).unwrap();
    let status = nest().compile(&device).unwrap().launch(&mut count).unwrap();
    assert_eq!((status, count.value()), (Done, 12));
}

#[program]
fn nothing() {}

/// Lints of the function are lints of the program.
#[program]
#[allow(unused_variables)]
fn ignores(unused: f64) {}

#[test]
fn a_program_may_do_nothing() {
    check(
        nothing(),
        expect![[r#"
        program nothing() {
        }
    "#]],
    );
    check(
        ignores(),
        expect![[r#"
        program ignores(unused: f64) {
        }
    "#]],
    );
    let device = Device::interpreter();
    assert_eq!(nothing().compile(&device).unwrap().launch(()).unwrap(), Status::Done);
    assert_eq!(ignores().compile(&device).unwrap().launch(1.0).unwrap(), Status::Done);
}

/// Iterations read a variable of the code around them in several places, the first of them in a branch.
#[program]
fn sliding(u: &Array1<f64>, v: &mut Array1<f64>, steps: usize) {
    let n = u.len();
    let mut lo = 0;
    for _ in 0..steps {
        for i in par(lo..n) {
            if u[i] > 0.5 {
                v[i - lo] += u[i];
            } else {
                v[i - lo] = u[i] * v[i - lo];
            }
            v[i - lo] = v[i - lo] + 1.0 / (lo as f64 + 1.0);
        }
        lo += 2;
    }
}

#[test]
fn a_variable_is_the_same_wherever_iterations_read_it() {
    let (n, steps) = (1000, 3);
    let start: Vec<f64> = (0..n).map(|i| ((i * 7) % 11) as f64 / 11.0).collect();
    let mut expected = vec![0.25; n];
    for lo in (0..2 * steps).step_by(2) {
        for i in lo..n {
            let v = &mut expected[i - lo];
            *v = if start[i] > 0.5 { *v + start[i] } else { start[i] * *v };
            *v += 1.0 / (lo as f64 + 1.0);
        }
    }
    for device in [Device::interpreter(), crate::cpu()] {
        let (u, mut v) = (device.array(&start).unwrap(), device.array(&vec![0.25; n]).unwrap());
        let _done = sliding().compile(&device).unwrap().launch((&u, &mut v, steps)).unwrap();
        assert_eq!(v.to_vec(), expected, "{device:?}");
    }
}
