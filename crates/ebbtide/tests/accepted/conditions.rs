//! What the build cannot know is asked when the loop begins.

use ebbtide::prelude::*;

use crate::{array, check, cpu, loss, size};

#[program]
fn shifted(x: &mut Array1<f64>, h: usize, n: usize, loss: &mut Array0<f64>) {
    for i in par(0..n) {
        x[i] = x[i] * x[i + h] + x[i];
    }
    for i in par(0..x.len()) {
        loss[[]] += x[i] * x[i];
    }
}

#[test]
fn c57_a_condition_is_part_of_the_program() {
    let text = shifted().to_string();
    assert!(text.contains("#[requires("), "{text}");
}

#[test]
fn c57_a_loop_is_accepted_where_the_condition_holds() {
    for (h, n) in [(4, 4), (5, 3), (0, 8), (3, 1), (2, 0)] {
        check(shifted().ir().unwrap(), &[array(&[8], 1), size(h), size(n), loss()], "loss", &["x"]);
    }
}

#[test]
fn c57_where_it_does_not_hold_a_run_error_names_both_accesses() {
    let source = include_str!("conditions.rs");
    let line = source.lines().position(|l| l.contains("x[i] = x[i] * x[i + h]")).unwrap() + 1;
    for device in [Device::interpreter(), cpu(1), cpu(2)] {
        let mut x = device.array(&[1.0; 8]).unwrap();
        let mut l = device.zeros([]).unwrap();
        let compiled = shifted().compile(&device).unwrap();
        let error = compiled.launch((&mut x, 1, 4, &mut l)).unwrap_err().to_string();
        for part in [
            "two iterations of a parallel loop may touch one element of `x`",
            &format!("written at crates/ebbtide/tests/accepted/conditions.rs:{line}:9"),
            &format!("read at crates/ebbtide/tests/accepted/conditions.rs:{line}:"),
        ] {
            assert!(error.contains(part), "{device:?}: {error}");
        }
        assert_eq!(x.to_vec(), [1.0; 8], "nothing was written");
    }
}

#[test]
fn c57_a_gradient_reports_the_same_error() {
    for device in [Device::interpreter(), cpu(2)] {
        let g = shifted().grad(shifted::loss).wrt(shifted::x).compile(&device).unwrap();
        let mut x = device.array(&[1.0; 8]).unwrap();
        let mut l = device.zeros([]).unwrap();
        let error = g.launch((&mut x, 1, 4, &mut l)).unwrap_err().to_string();
        assert!(error.contains("may touch one element of `x"), "{error}");
    }
}

#[program]
fn rows(x: &mut Array2<f64>, to: usize, from: usize, loss: &mut Array0<f64>) {
    for i in par(1..x.dim(1)) {
        x[[to, i]] = 2.0 * x[[from, i - 1]] * x[[from, i]];
    }
    for i in par(0..x.dim(1)) {
        loss[[]] += x[[to, i]];
    }
}

#[test]
fn c57_two_rows_are_told_apart_when_the_loop_begins() {
    let inputs = |to: i64| [array(&[3, 5], 1), size(to), size(1), loss()];
    check(rows().ir().unwrap(), &inputs(0), "loss", &["x"]);
    check(rows().ir().unwrap(), &inputs(2), "loss", &["x"]);
    let device = Device::interpreter();
    let mut x = device.zeros([3, 5]).unwrap();
    let mut l = device.zeros([]).unwrap();
    let error = rows().compile(&device).unwrap().launch((&mut x, 1, 1, &mut l)).unwrap_err().to_string();
    assert!(error.contains("may touch one element of `x`"), "{error}");
}
