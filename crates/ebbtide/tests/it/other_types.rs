//! Loops in vectors that read numbers of other types than their own: masks, counts, data in half the precision. Their bits are
//! those of the interpreter.

use ebbtide::ir::Literal;
use ebbtide::prelude::*;
use ebbtide_conformance::{Input, run};

/// Has each loop of the program vectors, and do they have the bits of the interpreter?
fn agrees<P: ebbtide::__lang::Source>(program: &Program<P>, inputs: &[Input]) {
    let (ir, cpu) = (program.ir().unwrap(), crate::cpu());
    let compiled = program.compile(&cpu).unwrap();
    let source = compiled.source().unwrap_or_default();
    let (loops, vectors) =
        (ir.to_string().matches("in par(").count(), source.matches("tail = hi - j,").count());
    assert_eq!(loops, vectors, "{ir}");
    let [expected, found] = [&Device::interpreter(), &cpu].map(|device| run(ir, device, inputs).unwrap());
    assert!(expected == found, "{ir}\n{inputs:?}");
}

fn whole_numbers(n: usize) -> impl Iterator<Item = i64> {
    const ODD: [i64; 9] =
        [0, 1, -1, 1 << 24, (1 << 24) + 1, -(1 << 24) - 1, i32::MAX as i64, i32::MIN as i64, 3];
    (0..n).map(|k| ODD[k % ODD.len()])
}

fn array(n: usize, seed: u64) -> Input {
    Input::Array(vec![n], seed)
}

fn elements(n: usize, each: impl Fn(i64) -> Literal) -> Input {
    Input::Elements(vec![n], whole_numbers(n).map(each).collect())
}

#[program]
fn masked(
    x: &mut Array1<f64>,
    y: &mut Array1<f32>,
    solid: &Array1<bool>,
    cell: &Array1<i32>,
    owner: &Array1<u32>,
    far: &Array1<i64>,
    wall: i32,
) {
    let n = x.len();
    for i in par(1..n - 1) {
        if !solid[i] && cell[i] != wall {
            x[i] = 0.5 * x[i] + 0.1 * cell[i] as f64;
        }
    }
    for i in par(0..n) {
        let kind = if cell[i] > 0 || solid[i] && owner[i] <= 7 { 1.0 } else { -2.0 };
        x[i] += kind * far[i] as f64 + if far[i] == 3 { 0.25 } else { owner[i] as f64 };
    }
    for i in par(1..n - 1) {
        // In single precision a large number is not itself.
        if cell[i + 1] >= 16777215 && !solid[i - 1] {
            y[i] = y[i].sqrt() + cell[i] as f32;
        }
        if cell[i] < -3 {
            y[i] += 1.0;
        }
    }
}

#[test]
fn masks_and_counts() {
    for n in [2, 3, 9, 16, 17, 40, 133] {
        let truth = |k: i64| Literal::from(k % 3 == 0);
        agrees(
            &masked(),
            &[
                array(n, 1),
                array(n, 2),
                elements(n, truth),
                elements(n, |k| Literal::from(k as i32)),
                elements(n, |k| Literal::from(k as u32)),
                elements(n, |k| Literal::from(k * 3)),
                Input::Scalar(Literal::from(i32::MIN)),
            ],
        );
    }
}

#[program]
fn precisions(x: &mut Array1<f64>, a: &Array1<f32>, y: &mut Array1<f32>, b: &Array1<f64>, limit: f32) {
    for i in par(0..x.len()) {
        if a[i] < limit {
            x[i] += a[i] as f64 * x[i];
        }
    }
    for i in par(0..y.len()) {
        y[i] += b[i] as f32;
    }
}

#[test]
fn numbers_of_another_precision() {
    for n in [1, 8, 21, 133] {
        let limit = Input::Scalar(Literal::from(0.1f32));
        agrees(&precisions(), &[array(n, 1), array(n, 2), array(n, 3), array(n, 4), limit]);
    }
}

/// Rows and strides: what is read beside is put together element by element.
#[program]
fn apart(x: &mut Array2<f64>, mask: &Array1<bool>, count: &Array2<i32>) {
    for (i, j) in par(0..x.dim(0), 0..x.dim(1)) {
        let far = (x[[i, j]] * count[[i, 2 * j]] as f64).sin() + (x[[i, j]] * 0.1).exp();
        if mask[3 * j] && count[[i, j]] > 0 {
            x[[i, j]] = far;
        }
    }
}

#[test]
fn numbers_that_lie_apart() {
    for (n, m) in [(1, 1), (3, 9), (2, 40)] {
        let mask = (0..3 * m).map(|k| Literal::from(k % 4 != 1)).collect();
        let count = (0..n * 2 * m).map(|k| Literal::from((k % 7) as i32 - 2)).collect();
        let count = Input::Elements(vec![n, 2 * m], count);
        agrees(&apart(), &[Input::Array(vec![n, m], 1), Input::Elements(vec![3 * m], mask), count]);
    }
}

/// Several vectors stand side by side where iterations have loops: each has its own mask.
#[program]
fn in_loops(x: &mut Array1<f64>, mask: &Array1<bool>, cell: &Array1<i32>, w: &Array1<f64>) {
    for i in par(0..x.len()) {
        let mut s = x[i];
        for k in 0..w.len() {
            s += w[k] * select(mask[i], 1.0, s);
        }
        x[i] = s * cell[i] as f64;
    }
}

#[test]
fn masks_of_iterations_with_loops() {
    for n in [1, 9, 40, 133] {
        let mask = elements(n, |k| Literal::from(k % 3 == 0));
        agrees(&in_loops(), &[array(n, 1), mask, elements(n, |k| Literal::from(k as i32)), array(5, 2)]);
    }
}

/// Whole numbers that are computed with, not only looked at, are another matter.
#[program]
fn computed(x: &mut Array1<f64>, cell: &Array1<i32>) {
    for i in par(0..x.len()) {
        x[i] += (cell[i] * 3 + 1) as f64;
        if cell[i].min(2) == 2 {
            x[i] *= 2.0;
        }
    }
}

#[test]
fn whole_numbers_that_are_computed_with() {
    let inputs = [array(40, 1), elements(40, |k| Literal::from(k as i32))];
    let [expected, found] =
        [Device::interpreter(), crate::cpu()].map(|device| run(computed().ir().unwrap(), &device, &inputs));
    assert_eq!(expected.unwrap(), found.unwrap());
}
