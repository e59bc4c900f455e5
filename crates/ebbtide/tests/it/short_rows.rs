//! Rows that are shorter than vectors, as arrays `[n, 3]` have them: taken as one row where they lie one behind the other, by
//! columns or one iteration at a time. However they are taken, the bits are those of the interpreter.

use std::sync::LazyLock;

use ebbtide::ir::Literal;
use ebbtide::prelude::*;
use ebbtide_conformance::{Input, run};

/// The same bits, or the same words of the same fault, on the interpreter and with any number of threads.
fn alike<P: ebbtide::__lang::Source>(program: &Program<P>, inputs: &[Input]) -> bool {
    static DEVICES: LazyLock<[Device; 3]> = LazyLock::new(|| {
        let options = |threads| ebbtide_cpu::Options::new().threads(threads);
        [1, 2, 5].map(|n| options(n).optimize(ebbtide_cpu::Optimize::Never).build().unwrap().0)
    });
    let ir = program.ir().unwrap();
    let expected = run(ir, &Device::interpreter(), inputs);
    for device in DEVICES.iter() {
        match (&expected, run(ir, device, inputs)) {
            (Ok(expected), Ok(found)) => assert!(*expected == found, "{inputs:?}"),
            (Err(expected), Err(found)) => assert_eq!(expected.to_string(), found.to_string()),
            (expected, found) => panic!("{expected:?} and {found:?}"),
        }
    }
    expected.is_ok()
}

fn array(shape: &[usize], seed: u64) -> Input {
    Input::Array(shape.to_vec(), seed)
}

fn count(n: usize) -> Input {
    Input::Scalar(Literal::index(n as i64))
}

#[program]
fn elements(x: &mut Array2<f64>, v: &Array2<f64>, from: usize, to: usize, first: usize) {
    for (i, k) in par(first..x.dim(0), from..to) {
        x[[i, k]] += 0.001 * v[[i, k]];
    }
}

#[program]
fn elements_single(x: &mut Array2<f32>, v: &Array2<f32>, from: usize, to: usize, first: usize) {
    for (i, k) in par(first..x.dim(0), from..to) {
        if x[[i, k]] > 0.0 {
            x[[i, k]] = v[[i, k]].sqrt();
        }
    }
}

#[test]
fn elements_of_rows_of_any_length() {
    let compiled = elements().compile(&crate::cpu()).unwrap();
    assert!(compiled.source().unwrap_or_default().contains("if (as_one)"), "rows are taken as one");
    for n in [0, 1, 2, 7, 40, 1000] {
        for m in [0, 1, 2, 3, 4, 5, 8, 9, 17] {
            let inputs = |wide: usize, from, to, first| {
                [array(&[n, m], 1), array(&[n, wide], 2), count(from), count(to), count(first)]
            };
            assert!(alike(&elements(), &inputs(m, 0, m, 0)));
            assert!(alike(&elements_single(), &inputs(m, 0, m, 0)));
            // Rows that lie apart, parts of rows, and rows that are too short.
            assert!(alike(&elements(), &inputs(m + 2, 0, m, 0)));
            assert!(alike(&elements(), &inputs(m, m.min(1), m, n.min(3))));
            if n > 0 && m > 1 {
                assert!(!alike(&elements(), &inputs(m - 1, 0, m, n - 1)));
                assert!(!alike(&elements(), &inputs(m, m - 1, m + 1, n - 1)));
            }
        }
    }
}

#[program]
fn neighbours(x: &Array3<f64>, f: &mut Array3<f64>, apart: usize) {
    let (n, m) = (x.dim(0), x.dim(1));
    for (i, j, k) in par(1..n - 1, 0..m - apart, 0..x.dim(2)) {
        f[[i, j, k]] = x[[i + 1, j, k]] - 2.0 * x[[i, j + apart, k]] + x[[i - 1, j, k]];
    }
}

#[test]
fn rows_of_three_dimensions() {
    for shape in [[3, 1, 3], [6, 5, 2], [9, 4, 3], [5, 7, 11]] {
        for apart in 0..shape[1] {
            assert!(alike(&neighbours(), &[array(&shape, 1), array(&shape, 2), count(apart)]));
        }
        let narrow = [shape[0], shape[1], shape[2] + 1];
        assert!(alike(&neighbours(), &[array(&shape, 1), array(&narrow, 2), count(0)]));
        let more = [shape[0], shape[1] + 1, shape[2]];
        assert!(alike(&neighbours(), &[array(&shape, 1), array(&more, 2), count(0)]));
    }
}

/// What a row has in common, what a column has, and both variables as numbers.
#[program]
fn mixed(x: &mut Array2<f64>, m: &Array1<f64>, g: &Array1<f64>, at: &Array1<i32>) {
    for (i, k) in par(0..x.dim(0), 0..3) {
        x[[i, k]] = x[[i, k]] / (2.0 + m[i]) + g[k] * (i + k) as f64;
    }
    for (i, k) in par(0..x.dim(0), 0..3) {
        if k < 2 && i > 0 {
            x[[i, k]] += g[(at[i] as usize + k) % 3];
        }
    }
}

#[test]
fn rows_that_share_something() {
    for n in [0, 1, 2, 9, 40, 133] {
        let at = (0..n).map(|i| Literal::from((i % 5) as i32)).collect();
        let inputs = |rows: usize| {
            [array(&[n, 3], 1), array(&[rows], 2), array(&[3], 3), Input::Elements(vec![n], at)]
        };
        let inputs = inputs(n);
        assert!(alike(&mixed(), &inputs));
        if n > 1 {
            let [x, _, g, at] = inputs;
            assert!(!alike_kinds(&mixed(), &[x, array(&[n - 1], 2), g, at]));
        }
    }
}

/// One element alone is out of bounds in each row: which of them is met first is not promised.
fn alike_kinds<P: ebbtide::__lang::Source>(program: &Program<P>, inputs: &[Input]) -> bool {
    let ir = program.ir().unwrap();
    let words = |device: &Device| run(ir, device, inputs).map_err(|error| error.to_string());
    assert_eq!(words(&Device::interpreter()).is_ok(), words(&crate::cpu()).is_ok());
    words(&Device::interpreter()).is_ok()
}

/// Much is computed for each component: rows of three are taken by columns.
#[program]
fn forces(x: &Array2<f32>, v: &mut Array2<f32>, m: &Array1<f32>) {
    let n = m.len();
    for (i, k) in par(0..n, 0..3) {
        let f = sum(0..n, |j| {
            let (dx, dy, dz) = (x[[j, 0]] - x[[i, 0]], x[[j, 1]] - x[[i, 1]], x[[j, 2]] - x[[i, 2]]);
            let d = dx * dx + dy * dy + dz * dz + 0.01;
            m[j] / (d * d.sqrt()) * (x[[j, k]] - x[[i, k]])
        });
        v[[i, k]] += 0.001 * f;
    }
}

#[program]
fn matrices(a: &Array3<f64>, x: &Array2<f64>, y: &mut Array2<f64>, passes: usize) {
    for (i, k) in par(0..x.dim(0), 0..3) {
        let mut s = x[[i, k]];
        for p in 0..passes {
            for l in 0..3 {
                s += 0.1 * (a[[k, l, p]] * s).sin();
            }
        }
        y[[i, k]] = s;
    }
}

/// The components are the first dimension: columns of the loop are rows of the arrays.
#[program]
fn exchanged(x: &Array2<f64>, y: &mut Array2<f64>) {
    for (i, k) in par(0..x.dim(1), 0..3) {
        y[[k, i]] = x[[k, i]].sin() + (x[[k, i]] * 0.5).exp();
    }
}

#[test]
fn rows_in_which_much_is_computed() {
    for n in [0, 1, 2, 9, 40, 133, 3000] {
        assert!(alike(&exchanged(), &[array(&[3, n], 1), array(&[3, n], 2)]));
        assert!(alike(&exchanged(), &[array(&[3, n], 1), array(&[3, n + 1], 2)]));
        assert!(alike(&exchanged(), &[array(&[4, n], 1), array(&[3, n], 2)]));
    }
    for n in [0, 1, 2, 9, 40, 133] {
        assert!(alike(&forces(), &[array(&[n, 3], 1), array(&[n, 3], 2), array(&[n], 3)]));
        let inputs = [array(&[3, 3, 4], 1), array(&[n, 3], 2), array(&[n, 3], 3), count(4)];
        assert!(alike(&matrices(), &inputs));
    }
    for compiled in [
        forces().compile(&crate::cpu()).unwrap().source().map(str::to_string),
        exchanged().compile(&crate::cpu()).unwrap().source().map(str::to_string),
    ] {
        let text = compiled.unwrap_or_default();
        // Where vectors have two lanes, rows of three are no short rows.
        let narrow = text.contains("f64x2");
        assert!(narrow || text.contains("extent[2] = {e1, e0}"), "rows are taken by columns");
    }
}

#[program]
fn energy(x: &Array2<f64>, m: &Array1<f64>, e: &mut Array0<f64>) {
    for (i, k) in par(0..x.dim(0), 0..x.dim(1)) {
        e[[]] += 0.5 * m[i] * x[[i, k]] * x[[i, k]];
    }
}

#[test]
fn sums_over_short_rows() {
    for n in [0, 1, 2, 9, 700, 3000] {
        for m in [1, 2, 3, 5, 8] {
            assert!(alike(&energy(), &[array(&[n, m], 1), array(&[n], 2), array(&[], 3)]));
        }
    }
}
