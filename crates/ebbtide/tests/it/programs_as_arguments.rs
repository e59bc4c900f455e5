//! Programs that are given programs to call.

use ebbtide::prelude::*;
use expect_test::expect;

use crate::check;

/// One step of the midpoint rule, for any right side.
#[program]
fn midpoint<F: Fn(&Array1<f64>, f64, &mut Array1<f64>)>(rhs: F, y: &mut Array1<f64>, t: f64, dt: f64) {
    let mut k = Array1::<f64>::zeros([y.len()]);
    let mut half = Array1::<f64>::zeros([y.len()]);
    rhs(y, t, k);
    for i in par(0..y.len()) {
        half[i] = y[i] + 0.5 * dt * k[i];
    }
    rhs(half, t + 0.5 * dt, k);
    for i in par(0..y.len()) {
        y[i] += dt * k[i];
    }
}

#[program]
fn decay(y: &Array1<f64>, _t: f64, dy: &mut Array1<f64>) {
    for i in par(0..y.len()) {
        dy[i] = -y[i];
    }
}

#[program]
fn forced(y: &Array1<f64>, t: f64, dy: &mut Array1<f64>) {
    for i in par(0..y.len()) {
        dy[i] = t.cos() - 0.5 * y[i] * y[i];
    }
}

#[program]
fn integrate<F: Fn(&Array1<f64>, f64, &mut Array1<f64>)>(
    rhs: F,
    y: &mut Array1<f64>,
    dt: f64,
    steps: usize,
    loss: &mut Array0<f64>,
) {
    for n in 0..steps {
        midpoint(rhs, y, n as f64 * dt, dt);
    }
    for i in par(0..y.len()) {
        loss[[]] += y[i] * y[i];
    }
}

#[program]
fn both(y: &mut Array1<f64>, z: &mut Array1<f64>) {
    midpoint(decay, y, 0.0, 0.5);
    midpoint(forced, z, 0.0, 0.5);
}

#[test]
fn c77_a_program_is_expanded_where_its_parameter_is_called() {
    check(
        midpoint::<decay>(),
        expect![[r#"
        program midpoint(y: &mut Array1<f64>, t: f64, dt: f64) {
            let mut k = Array1::<f64>::zeros([y.len()]);
            let mut half = Array1::<f64>::zeros([y.len()]);
            /* decay */ {
                for i in par(0..y.len()) {
                    k[i] = -y[i];
                }
            }
            for i_2 in par(0..y.len()) {
                half[i_2] = y[i_2] + 0.5 * dt * k[i_2];
            }
            let v20 = t + 0.5 * dt;
            /* decay */ {
                for i_3 in par(0..half.len()) {
                    k[i_3] = -half[i_3];
                }
            }
            for i_4 in par(0..y.len()) {
                y[i_4] += dt * k[i_4];
            }
        }
    "#]],
    );
}

#[test]
fn each_call_has_its_own_right_side() {
    for device in [Device::interpreter(), crate::cpu()] {
        let (mut y, mut z) = (device.array(&[1.0]).unwrap(), device.array(&[1.0]).unwrap());
        assert_eq!(both().compile(&device).unwrap().launch((&mut y, &mut z)).unwrap(), Status::Done);
        assert_eq!(y[0], 1.0 - 0.5 * 0.75);
        let half = 1.0 + 0.25 * 0.5;
        assert_eq!(z[0], 1.0 + 0.5 * (0.25f64.cos() - 0.5 * half * half));
    }
}

#[test]
fn c77_a_gradient_goes_through_a_program_that_was_given() {
    let device = crate::cpu();
    let value = |y: f64| {
        let (mut y, mut loss) = (device.array(&[y]).unwrap(), device.scalar(0.0).unwrap());
        let compiled = integrate::<forced>().compile(&device).unwrap();
        assert_eq!(compiled.launch((&mut y, 0.1, 20, &mut loss)).unwrap(), Status::Done);
        loss.value()
    };
    let g = integrate::<forced>().grad(integrate::<forced>::loss).wrt(integrate::<forced>::y);
    let g = g.memory(Bytes::kib(64)).compile(&device).unwrap();
    let out = g.launch((&device.array(&[0.7]).unwrap(), 0.1, 20, &device.scalar(0.0).unwrap())).unwrap();
    let found = out.get(integrate::<forced>::y).unwrap()[0];
    let expected = (value(0.7 + 1e-5) - value(0.7 - 1e-5)) / 2e-5;
    assert!((found - expected).abs() < 1e-9 * expected.abs().max(1.0), "{found} instead of {expected}");
}

#[program]
fn rows(y: &mut Array2<f64>, dt: f64) {
    for r in 0..y.dim(0) {
        midpoint(decay, y[[r, ..]], 0.0, dt);
    }
}

#[test]
fn a_row_is_passed_on_to_the_program_that_was_given() {
    for device in [Device::interpreter(), crate::cpu()] {
        let mut y = device.array_with_shape([2, 2], &[1.0, 2.0, 4.0, 8.0]).unwrap();
        assert_eq!(rows().compile(&device).unwrap().launch((&mut y, 0.5)).unwrap(), Status::Done);
        assert_eq!(y.to_vec(), [0.625, 1.25, 2.5, 5.0]);
    }
}
