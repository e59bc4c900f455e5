//! Rows and slabs of arrays as arguments: `step(x[[t, ..]])`.

use ebbtide::prelude::*;
use ebbtide_conformance::Input;
use expect_test::expect;

use crate::{count, differentiates, shaped, values, zero};

#[program]
fn advance(from: &Array1<f64>, to: &mut Array1<f64>, k: f64) {
    let n = from.len();
    for i in par(0..n) {
        to[i] = from[i] + k * from[i].sin();
    }
}

#[program]
fn history(x: &mut Array2<f64>, k: f64, loss: &mut Array0<f64>) {
    for t in 0..x.dim(0) - 1 {
        advance(x[[t, ..]], x[[t + 1, ..]], k);
    }
    loss[[]] += sum(x[[x.dim(0) - 1, ..]]) + dot(x[[0, ..]], x[[1, ..]]);
}

#[test]
fn a_program_works_on_rows_without_a_copy() {
    let program = history();
    program.ir().unwrap();
    expect![[r#"
        program history(x: &mut Array2<f64>, k: f64, loss: &mut Array0<f64>) {
            for t in 0..x.dim(0) - 1 {
                /* advance */ {
                    let n = x.dim(1);
                    for i in par(0..n) {
                        x[[t + 1, i]] = x[[t, i]] + k * x[[t, i]].sin();
                    }
                }
            }
            let mut reduced_2 = Array0::<f64>::zeros([]);
            for i_2 in par(0..x.dim(1)) {
                reduced_2[[]] += x[[x.dim(0) - 1, i_2]];
            }
            let v23 = reduced_2[[]];
            let v26 = x.dim(1);
            assert!(v26 == x.dim(1), "arrays of a dot product have one shape");
            let mut reduced_3 = Array0::<f64>::zeros([]);
            for i_3 in par(0..v26) {
                reduced_3[[]] += x[[0, i_3]] * x[[1, i_3]];
            }
            loss[[]] += v23 + reduced_3[[]];
        }
    "#]]
    .assert_eq(&program.to_string());
    let inputs = [Input::Array(vec![4, 5], 1), Input::Scalar(0.3.into()), zero()];
    differentiates(&history(), &inputs, "loss", &["x", "k"]);
    differentiates(&history(), &inputs, "x", &["x", "k"]);
}

/// Writes the plane and gives the sum of its rows.
#[program]
fn plane(p: &mut Array2<Vec2<f64>>, rows: &mut Array1<f64>) {
    for i in par(0..p.dim(0)) {
        rows[i] = 0.0;
        for j in 0..p.dim(1) {
            p[[i, j]] *= 2.0;
            rows[i] += p[[i, j]].x * p[[i, j]].y;
        }
    }
}

#[program]
fn slabs(x: &mut Array3<Vec2<f64>>, rows: &mut Array2<f64>, steps: usize) {
    for t in 0..steps {
        plane(x[[t, .., ..]], rows[[t, ..]]);
        fill(x[[t, 0, ..]], Vec2::new(1.0, rows[[t, 1]]));
        copy(rows[[t, ..]], rows[[t + 1, ..]]);
    }
}

#[test]
fn slabs_have_the_rank_that_is_left_and_elements_of_any_kind() {
    let inputs = [Input::Array(vec![2, 3, 2, 2], 1), shaped(&[3, 3], &[0.0; 9]), count(2)];
    let rows = values(&slabs(), &inputs, "rows");
    assert_eq!(rows[3..6], rows[6..9]);
    differentiates(&slabs(), &inputs, "rows", &["x"]);
    differentiates(&slabs(), &inputs, "x", &["x"]);
}

#[program]
fn same_row(x: &mut Array2<f64>, k: f64) {
    advance(x[[0, ..]], x[[0, ..]], k);
}

#[program]
fn whole_arrays_alone(x: &mut Array2<f64>, y: &mut Array1<f64>) {
    swap(x[[0, ..]], y);
}

#[test]
fn one_part_bound_twice_and_parts_of_what_takes_whole_arrays_are_build_errors() {
    let error = same_row().ir().unwrap_err().to_string();
    assert!(error.contains("`x` is bound to the parameters `from` and `to` of `advance`"), "{error}");
    let error = whole_arrays_alone().ir().unwrap_err().to_string();
    assert!(error.contains("`swap` takes whole arrays, here is a part of one: copy the part"), "{error}");
}

#[test]
fn an_index_of_a_part_is_checked() {
    let inputs = [shaped(&[2, 2, 1, 2], &[0.0; 8]), shaped(&[2, 2], &[0.0; 4]), count(2)];
    for device in [Device::interpreter(), crate::cpu()] {
        let error =
            ebbtide_conformance::run(slabs().ir().unwrap(), &device, &inputs).unwrap_err().to_string();
        assert!(error.contains("`rows`"), "{error}");
    }
}

#[program]
fn smooth(u: &mut Array1<f64>, k: f64) {
    for i in par(0..u.len()) {
        u[i] = u[i] + k * u[i] * u[i];
    }
    if u.len() > 2 {
        u[1] += u[u.len() - 1];
    }
}

#[program]
fn ranges(x: &mut Array1<f64>, y: &mut Array2<f64>, h: usize, k: f64, loss: &mut Array0<f64>) {
    smooth(x[..h], k);
    smooth(x[h..x.len()], 2.0 * k);
    smooth(y[[1, 1..3]], k);
    copy(y[[0, 0..2]], x[2..4]);
    loss[[]] += dot(x[1..3], x[2..4]) + sum(y[[1..3, ..]]);
}

#[test]
fn a_range_of_an_array_has_its_own_length_and_bounds() {
    let inputs = |h: usize| {
        let x = Input::Array(vec![5], 1);
        [x, Input::Array(vec![4, 4], 2), count(h), Input::Scalar(0.3.into()), zero()]
    };
    differentiates(&ranges(), &inputs(2), "loss", &["x", "y", "k"]);
    differentiates(&ranges(), &inputs(3), "x", &["x", "k"]);
    differentiates(&ranges(), &inputs(0), "y", &["y", "k"]);
    for device in [Device::interpreter(), crate::cpu()] {
        let error = ebbtide_conformance::run(ranges().ir().unwrap(), &device, &inputs(6)).unwrap_err();
        assert!(
            error.to_string().contains("a range of an array that is passed is outside the array"),
            "{error}"
        );
    }
}

#[program]
fn beyond(u: &mut Array1<f64>) {
    u[2] = 1.0;
}

#[program]
fn beyond_a_range(x: &mut Array1<f64>) {
    beyond(x[0..2]);
}

#[test]
fn an_index_outside_a_range_is_an_error_inside_the_array_too() {
    for device in [Device::interpreter(), crate::cpu()] {
        let inputs = [shaped(&[4], &[0.0; 4])];
        let error = ebbtide_conformance::run(beyond_a_range().ir().unwrap(), &device, &inputs).unwrap_err();
        assert!(error.to_string().contains("outside the range of an array"), "{error}");
    }
}

#[program]
fn tint(u: &mut Array1<Vec2<f64>>, k: f64) {
    for i in par(0..u.len()) {
        u[i] = u[i] * k + Vec2::new(u[i].y, 1.0);
    }
}

#[program]
fn planes(p: &mut Array2<Vec2<f64>>, k: f64) {
    for r in 0..p.dim(0) {
        tint(p[[r, ..]], k);
        tint(p[[r, 1..3]], k * 2.0);
    }
}

#[program]
fn volumes(x: &mut Array3<Vec2<f64>>, h: usize, k: f64, loss: &mut Array0<f64>) {
    planes(x[[0, .., ..]], k);
    planes(x[[1, 0..h, ..]], k);
    let mut t = Array2::<Vec2<f64>>::zeros([x.dim(1), x.dim(2)]);
    copy(x[[1, .., ..]], t);
    planes(t[[1..2, ..]], k);
    loss[[]] += dot(t, x[[0, .., ..]]) + sum(x[[0, 0, ..]]).x;
}

#[test]
fn parts_of_parts() {
    let inputs = [Input::Array(vec![2, 2, 4, 2], 1), count(1), Input::Scalar(0.3.into()), zero()];
    differentiates(&volumes(), &inputs, "loss", &["x", "k"]);
    differentiates(&volumes(), &inputs, "x", &["x", "k"]);
}
