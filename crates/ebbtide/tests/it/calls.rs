//! Programs that call programs and functions.

use ebbtide::prelude::*;
use expect_test::expect;

use crate::check;

mod stencils {
    use ebbtide::prelude::*;

    /// The five-point Laplacian.
    #[func]
    pub fn laplacian(u: &Array2<f64>, i: usize, j: usize) -> f64 {
        let around = u[[i - 1, j]] + u[[i + 1, j]] + u[[i, j - 1]] + u[[i, j + 1]];
        around - 4.0 * u[[i, j]]
    }

    #[program]
    pub(crate) fn scale(u: &mut Array2<f64>, by: f64) {
        for (i, j) in par(0..u.dim(0), 0..u.dim(1)) {
            u[[i, j]] *= by;
        }
    }
}

#[func]
fn limit(x: f64, most: f64) -> f64 {
    let mut y = x;
    for _k in 0..3 {
        if y.abs() > most {
            y *= 0.5;
        }
    }
    y.min_assign(100.0);
    if y > 0.0 { y } else { 0.0 }
}

#[func]
fn limited_laplacian(u: &Array2<f64>, i: usize, j: usize) -> f64 {
    limit(stencils::laplacian(u, i, j), 1.0)
}

#[program]
fn heat(u: &mut Array2<f64>, next: &mut Array2<f64>, dt: f64) {
    for (i, j) in par(1..u.dim(0) - 1, 1..u.dim(1) - 1) {
        next[[i, j]] = u[[i, j]] + dt * limited_laplacian(u, i, j);
    }
    let at_corner = stencils::laplacian(next, 1, 1);
    stencils::scale(next, at_corner);
    let mut half = dt;
    half *= 0.5;
    stencils::scale(u, half);
    stencils::scale(u, 2.0);
}

#[test]
fn calls_cross_modules() {
    check(
        heat(),
        expect![[r#"
            program heat(u: &mut Array2<f64>, next: &mut Array2<f64>, dt: f64) {
                for (i, j) in par(1..u.dim(0) - 1, 1..u.dim(1) - 1) {
                    let v11 = u[[i, j]];
                    let around = u[[i - 1, j]] + u[[i + 1, j]] + u[[i, j - 1]] + u[[i, j + 1]];
                    let mut y = around - 4.0 * u[[i, j]];
                    for _k in 0..3 {
                        if y.abs() > 1.0 {
                            y = y * 0.5;
                        }
                    }
                    y = y.min(100.0);
                    next[[i, j]] = v11 + dt * select(y > 0.0, y, 0.0);
                }
                let around_2 = next[[1 - 1, 1]] + next[[1 + 1, 1]] + next[[1, 1 - 1]] + next[[1, 1 + 1]];
                let at_corner = around_2 - 4.0 * next[[1, 1]];
                /* scale */ {
                    for (i_2, j_2) in par(0..next.dim(0), 0..next.dim(1)) {
                        next[[i_2, j_2]] = next[[i_2, j_2]] * at_corner;
                    }
                }
                let mut half = dt;
                half = half * 0.5;
                let v85 = half;
                /* scale */ {
                    for (i_3, j_3) in par(0..u.dim(0), 0..u.dim(1)) {
                        u[[i_3, j_3]] = u[[i_3, j_3]] * v85;
                    }
                }
                /* scale */ {
                    for (i_4, j_4) in par(0..u.dim(0), 0..u.dim(1)) {
                        u[[i_4, j_4]] = u[[i_4, j_4]] * 2.0;
                    }
                }
            }
        "#]],
    );
}

#[test]
fn functions_stay_plain_rust() {
    let device = Device::interpreter();
    let u = device.array_with_shape([3, 3], &[0.0, 1.0, 0.0, 2.0, 3.0, 4.0, 0.0, 5.0, 0.0]).unwrap();
    assert_eq!(stencils::laplacian(&u, 1, 1), 0.0);
    assert_eq!(limit(16.0, 1.0), 2.0);
}

#[program]
fn limits(x: &mut Array1<f64>) {
    for i in par(0..x.len()) {
        x[i] = limit(x[i], 1.5);
    }
}

#[test]
fn a_function_computes_the_same_inside_and_outside_a_program() {
    let values = [-4.0, 0.0, 0.3, 1.5, 1.6, 100.0];
    let device = Device::interpreter();
    let mut x = device.array(&values).unwrap();
    let status = limits().compile(&device).unwrap().launch(&mut x).unwrap();
    assert_eq!(status, Status::Done);
    assert_eq!(x.to_vec(), values.map(|x| limit(x, 1.5)));
}

#[test]
fn programs_live_in_functions_and_locals_may_shadow_them() {
    #[program]
    fn local(x: &mut Array0<i32>) {
        x[[]] += 1;
    }
    let device = Device::interpreter();
    let local = local().compile(&device).unwrap();
    let mut x = device.scalar(41).unwrap();
    let status = local.launch(&mut x).unwrap();
    assert_eq!((status, x[[]]), (Done, 42));
}

#[test]
fn a_launch_may_swap_arrays_any_number_of_times() {
    #[program]
    fn turn(a: &mut Array0<i32>, b: &mut Array0<i32>, times: usize) {
        for _t in 0..times {
            a[[]] += 1;
            swap(a, b);
        }
    }
    let device = Device::interpreter();
    let turn = turn().compile(&device).unwrap();
    for times in 0..4usize {
        let (mut a, mut b) = (device.scalar(0).unwrap(), device.scalar(100).unwrap());
        let status = turn.launch((&mut a, &mut b, times)).unwrap();
        let mut expected = (0, 100);
        for _ in 0..times {
            expected = (expected.1, expected.0 + 1);
        }
        assert_eq!((status, a[[]], b[[]]), (Done, expected.0, expected.1));
    }
}
