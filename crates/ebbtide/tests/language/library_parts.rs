//! Library operations on rows, slabs and ranges of arrays.

use ebbtide::library::{cholesky, fft, ifft, solve, solve_tridiagonal};
use ebbtide::prelude::*;
use ebbtide_conformance::Input;

use crate::{close, count, differences_agree, differentiates, shaped, values, zero};

/// The state of each step is a slab of one array.
#[program]
fn steps(x: &mut Array3<f64>, w: &Array3<f64>, h: usize) {
    for t in 0..x.dim(0) - 1 {
        matmul(x[[t, .., ..]], w[[1, .., ..]], x[[t + 1, .., ..]]);
    }
    matmul(transposed(x[[0, .., ..]]), x[[0, h.., ..]], x[[1, .., ..]]);
}

/// The same with copies, where `h` is 0.
#[program]
fn copied(x: &mut Array3<f64>, w: &Array3<f64>, _h: usize) {
    let n = x.dim(1);
    let mut a = Array2::<f64>::zeros([n, n]);
    let mut b = Array2::<f64>::zeros([n, n]);
    let mut c = Array2::<f64>::zeros([n, n]);
    copy(w[[1, .., ..]], b);
    for t in 0..x.dim(0) - 1 {
        copy(x[[t, .., ..]], a);
        matmul(a, b, c);
        copy(c, x[[t + 1, .., ..]]);
    }
    copy(x[[0, .., ..]], a);
    matmul(transposed(a), a, c);
    copy(c, x[[1, .., ..]]);
}

#[test]
fn products_of_slabs_have_the_bits_of_products_of_copies_and_copy_nothing() {
    assert!(!steps().to_string().contains("zeros"), "{}", steps());
    // More terms than a chunk has.
    for n in [3, 131] {
        let inputs = [Input::Array(vec![3, n, n], 1), Input::Array(vec![2, n, n], 2), count(0)];
        assert_eq!(values(&steps(), &inputs, "x"), values(&copied(), &inputs, "x"), "{n}");
    }
    let inputs = [Input::Array(vec![3, 2, 2], 1), Input::Array(vec![2, 2, 2], 2), count(0)];
    differentiates(&steps(), &inputs, "x", &["x", "w"]);
}

#[test]
fn shapes_of_parts_are_checked() {
    let inputs = [Input::Array(vec![3, 2, 2], 1), Input::Array(vec![2, 2, 2], 2), count(1)];
    for device in [Device::interpreter(), crate::cpu()] {
        let error =
            ebbtide_conformance::run(steps().ir().unwrap(), &device, &inputs).unwrap_err().to_string();
        let expected = "the shapes of a part of `x`, a part of `x`, a part of `x` do not fit `matmul`: they must be [m, k] transposed, [k, n] and [m, n]";
        // The check of parts that overlap stands in the same place.
        assert!(error.contains(expected) && error.contains(", or "), "{error}");
    }
}

/// Vectors of rows and ranges of them, and batches that are a slab.
#[program]
fn vectors(a: &Array3<f64>, x: &mut Array2<f64>, y: &mut Array2<f64>, h: usize, loss: &mut Array0<f64>) {
    matmul(a[[1, .., ..]], x[[0, ..]], y[[1, ..]]);
    matmul(x[[1, ..]], a[[0, .., ..]], y[[2, ..]]);
    matmul(a[0..2], y[[h..3, ..]], x);
    loss[[]] += sum(x) + dot(y[[1, ..]], y[[2, ..]]);
}

#[test]
fn products_of_rows_and_batches() {
    let inputs = [
        Input::Array(vec![3, 3, 3], 1),
        Input::Array(vec![2, 3], 2),
        Input::Array(vec![3, 3], 3),
        count(1),
        zero(),
    ];
    differentiates(&vectors(), &inputs, "loss", &["a", "x", "y"]);
    differentiates(&vectors(), &inputs, "x", &["a", "y"]);
}

/// Running sums of rows and ranges, and indices of what is chosen in them.
#[program]
fn scans(
    x: &mut Array2<f64>,
    flags: &Array2<bool>,
    list: &mut Array2<i32>,
    found: &mut Array0<i32>,
    h: usize,
) {
    scan(x[[0, ..]], x[[1, ..]]);
    scan(x[[1, h..]], x[[2, h..]]);
    compact(flags[[1, ..]], list[[0, ..]], found);
    compact(flags[[0, h..]], list[[1, 1..]], found);
}

#[test]
fn running_sums_and_lists_of_parts() {
    let bools = [true, false, true, true, false, false, true, true].map(ebbtide::ir::Literal::from);
    let integers = |n: usize, all: &[i32]| {
        Input::Elements(vec![n, all.len() / n], all.iter().map(|k| ebbtide::ir::Literal::from(*k)).collect())
    };
    let one = Input::Elements(vec![], vec![ebbtide::ir::Literal::from(0i32)]);
    let inputs = [
        shaped(&[3, 4], &[1.0, 2.0, 3.0, 4.0, 0.0, 0.0, 0.0, 0.0, 9.0, 9.0, 9.0, 9.0]),
        Input::Elements(vec![2, 4], bools.to_vec()),
        integers(2, &[-1; 6]),
        one,
        count(1),
    ];
    let expected = [1.0, 2.0, 3.0, 4.0, 1.0, 3.0, 6.0, 10.0, 9.0, 3.0, 9.0, 19.0];
    assert_eq!(values(&scans(), &inputs, "x"), expected);
    // Two are found in three, of which the room has two; three in four would need one more place.
    assert_eq!(values(&scans(), &inputs, "list"), [2.0, 3.0, -1.0, -1.0, 1.0, 2.0]);
    assert_eq!(values(&scans(), &inputs, "found"), [2.0]);
    differentiates(&scans(), &inputs, "x", &["x"]);
}

/// Operations with derivatives of their own, of a slab and rows of it.
#[program]
fn solved(a: &Array3<f64>, b: &Array2<f64>, x: &mut Array2<f64>, loss: &mut Array0<f64>) {
    solve(a[[0, .., ..]], b[[1, ..]], x[[0, ..]]);
    loss[[]] = x[[0, 0]] * x[[0, 0]] + x[[0, 1]];
}

#[program]
fn turned(im: &mut Array3<f64>, re: &mut Array3<f64>, loss: &mut Array0<f64>) {
    fft(re[[1, .., ..]], im[[0, .., ..]]);
    ifft(re[[0, 1, ..]], im[[0, 0, ..]]);
    loss[[]] = dot(re[[1, 0, ..]], im[[0, 1, ..]]) + re[[0, 1, 1]];
}

#[test]
fn solvers_and_transforms_of_parts() {
    let inputs = [
        shaped(&[2, 2, 2], &[4.0, 1.0, 1.0, 3.0, 5.0, 1.0, 1.0, 4.0]),
        shaped(&[2, 2], &[0.5, 0.25, 3.0, 4.0]),
        shaped(&[2, 2], &[0.0; 4]),
        zero(),
    ];
    close(&values(&solved(), &inputs, "x"), &[5.0 / 11.0, 13.0 / 11.0, 0.0, 0.0], 1e-15);
    differences_agree(&solved(), &inputs, "loss", &["a", "b"]);
    let re = [0.5, 0.25, -1.0, 2.0, 1.0, 3.0, 4.0, 6.0];
    let inputs = [shaped(&[1, 2, 2], &[1.0, 2.0, 0.5, 0.25]), shaped(&[2, 2, 2], &re), zero()];
    close(&values(&turned(), &inputs, "re"), &[0.5, 0.25, 0.5, -1.5, 4.0, -2.0, 10.0, -2.0], 1e-15);
    differences_agree(&turned(), &inputs, "loss", &["im", "re"]);
}

/// Programs of the library that are expanded where they are called.
#[program]
fn factorised(a: &Array3<f64>, b: &mut Array2<f64>, l: &mut Array3<f64>) {
    cholesky(a[[1, .., ..]], l[[0, .., ..]]);
    solve_tridiagonal(b[[0, ..]], b[[1, ..]], b[[2, ..]], b[[3, ..]]);
}

#[test]
fn factors_of_parts() {
    let inputs = [
        shaped(&[2, 2, 2], &[0.0, 0.0, 0.0, 0.0, 4.0, 2.0, 2.0, 10.0]),
        shaped(&[4, 2], &[0.5, 0.25, 3.0, 4.0, 0.5, 0.75, 7.0, 4.25]),
        shaped(&[1, 2, 2], &[0.0; 4]),
    ];
    assert_eq!(values(&factorised(), &inputs, "l"), [2.0, 0.0, 1.0, 3.0]);
    let x = values(&factorised(), &inputs, "b");
    assert!((3.0 * x[6] + 0.5 * x[7] - 7.0).abs() < 1e-14, "{x:?}");
    assert!((0.25 * x[6] + 4.0 * x[7] - 4.25).abs() < 1e-14, "{x:?}");
    differentiates(&factorised(), &inputs, "l", &["a"]);
    differentiates(&factorised(), &inputs, "b", &["b"]);
}

#[program]
fn onto_itself(x: &mut Array3<f64>, w: &Array2<f64>) {
    matmul(x[[0, .., ..]], w, x[[0, .., ..]]);
}

#[program]
fn perhaps_onto_itself(x: &mut Array3<f64>, w: &Array2<f64>, i: usize, j: usize) {
    matmul(x[[i, .., ..]], w, x[[j, .., ..]]);
    scan(x[[i, 0, ..]], x[[j, 1, ..]]);
}

#[test]
fn what_is_written_is_read_in_no_other_place() {
    let error = onto_itself().ir().unwrap_err().to_string();
    assert!(
        error.contains(
            "`matmul` writes a part of `x`, which it uses in another place too: give it an array of its own"
        ),
        "{error}"
    );
    let inputs = |j| [Input::Array(vec![2, 2, 2], 1), Input::Array(vec![2, 2], 2), count(0), count(j)];
    let program = perhaps_onto_itself();
    values(&program, &inputs(1), "x");
    for device in [Device::interpreter(), crate::cpu()] {
        let error =
            ebbtide_conformance::run(program.ir().unwrap(), &device, &inputs(0)).unwrap_err().to_string();
        assert!(
            error.contains("`matmul` writes a part of `x`, which it uses in another place too"),
            "{error}"
        );
    }
}
