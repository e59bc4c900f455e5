//! Threads meet only where they must: what a step's tasks leave to one another, with all that may be odd about them.

use ebbtide_conformance::Input;
use ebbtide_ir::*;

use ebbtide_runtime::interpreter;

use crate::devices::{check, cpu, results};
use crate::gradients::{Case, Given, bits};
use crate::programs::B;

/// What stands between a step's stencil and its receivers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Between {
    /// One element is changed.
    Point,
    /// One element several times, and the same one of the array that neighbours read.
    Points,
    /// One element that the data names.
    Data,
    /// One element, which is then read.
    Probe,
    /// One element, in a region that may yield.
    Region,
}

/// A leapfrog step, a point source, a row of receivers.
pub fn survey(between: Between) -> Program {
    let mut b = B::new("survey");
    let u = b.0.array("u", Type::F32, 2, Access::Write);
    let prev = b.0.array("prev", Type::F32, 2, Access::Write);
    let seen = b.0.array("seen", Type::F32, 2, Access::Write);
    let probe = b.0.array("probe", Type::F32, 1, Access::Write);
    let places = b.0.array("places", Type::I32, 1, Access::Read);
    let flag = b.0.array("flag", Type::I32, 0, Access::Write);
    let [steps, row, column, receiver] =
        ["steps", "row", "column", "receiver"].map(|name| b.0.scalar(name, Type::Index));
    let (zero, one) = (b.index(0), b.index(1));
    let (n, m) = (b.0.dim(u, 0), b.0.dim(u, 1));
    let (n1, m1) = (b.sub(n, one), b.sub(m, one));
    let third = b.0.literal(Literal::from(0.3f32));
    let t = b.0.begin_for("t", zero, steps);
    let ij = b.0.begin_par(&[("i", one, n1), ("j", one, m1)]);
    let (i, j) = (ij[0], ij[1]);
    let (up, right) = (b.sub(i, one), b.add(j, one));
    let (above, beside) = (b.0.load(u, &[up, j]), b.0.load(u, &[i, right]));
    let sum = b.add(above, beside);
    let sum = b.mul(sum, third);
    let old = b.0.load(prev, &[i, j]);
    let new = b.sub(sum, old);
    b.0.store(prev, &[i, j], new);
    b.0.end_par();
    b.0.swap(u, prev);
    let pulse = b.0.literal(Literal::from(0.25f32));
    match between {
        Between::Point => b.0.update(Combine::Add, u, &[row, column], pulse),
        Between::Points => {
            b.0.update(Combine::Add, u, &[row, column], pulse);
            b.0.update(Combine::Max, u, &[row, column], third);
            b.0.store(prev, &[row, column], pulse);
            b.0.update(Combine::Add, u, &[column, row], pulse);
        }
        Between::Data => {
            let place = b.0.load(places, &[zero]);
            let place = b.0.cast(place, Type::Index);
            b.0.update(Combine::Add, u, &[place, column], pulse);
        }
        Between::Probe => {
            b.0.update(Combine::Add, u, &[row, column], pulse);
            let there = b.0.load(u, &[row, column]);
            b.0.store(probe, &[t], there);
        }
        Between::Region => {
            b.0.begin_region(
                Label { family: "Stage".into(), variant: "Source".into() },
                Some(flag),
                Undo::Nothing,
            );
            b.0.update(Combine::Add, u, &[row, column], pulse);
            b.0.end_region();
        }
    }
    let j = b.0.begin_par(&[("j", zero, m)])[0];
    let there = b.0.load(u, &[receiver, j]);
    b.0.store(seen, &[t, j], there);
    b.0.end_par();
    b.0.end_loop(None);
    b.0.finish().unwrap()
}

fn inputs([n, m]: [usize; 2], steps: usize, at: [i64; 2], receiver: i64) -> Vec<Input> {
    let index = |i: i64| Input::Scalar(Literal::index(i));
    vec![
        Input::Array(vec![n, m], 1),
        Input::Array(vec![n, m], 2),
        Input::Array(vec![steps, m], 3),
        Input::Array(vec![steps], 4),
        Input::Elements(vec![1], vec![Literal::from(at[0] as i32)]),
        Input::Elements(vec![], vec![Literal::from(0i32)]),
        index(steps as i64),
        index(at[0]),
        index(at[1]),
        index(receiver),
    ]
}

const ALL: [Between; 5] = [Between::Point, Between::Points, Between::Data, Between::Probe, Between::Region];

#[test]
pub fn a_source_and_receivers_are_the_same_wherever_they_are() {
    for between in ALL {
        let program = survey(between);
        // Inside, on the boundary that the stencil does not touch, in the receivers' row; odd and even numbers of swaps.
        for (at, receiver) in [([2, 1], 2), ([0, 0], 0), ([1, 2], 1), ([2, 2], 0)] {
            for (shape, steps) in [([3, 3], 4), ([70, 90], 5), ([3, 20_000], 3), ([300, 33], 2)] {
                check(&program, &inputs(shape, steps, at, receiver)).unwrap();
            }
        }
    }
}

#[test]
pub fn a_domain_without_elements_leaves_the_source_to_somebody() {
    for between in [Between::Point, Between::Data, Between::Probe] {
        for shape in [[2, 2], [1, 7], [2, 9000]] {
            check(&survey(between), &inputs(shape, 3, [0, 0], 0)).unwrap();
        }
    }
}

#[test]
pub fn a_source_or_receivers_out_of_bounds_are_errors_that_say_so() {
    for between in ALL {
        for (at, receiver, array, index) in
            [([70, 1], 2, "u", 70), ([-1, 1], 2, "u", -1), ([2, 1], 70, "u", 70), ([2, 1], -3, "u", -3)]
        {
            let error = check(&survey(between), &inputs([70, 90], 3, at, receiver)).unwrap_err();
            assert!(error.contains(&format!("index {index} is out of bounds")), "{between:?}: {error}");
            assert!(error.contains(&format!("of `{array}`")), "{between:?}: {error}");
        }
    }
    let nothing_to_receive = check(&survey(Between::Point), &inputs([70, 0], 3, [0, 0], 0));
    assert!(nothing_to_receive.is_err());
}

/// Loops over one domain, each after the other, with single elements between them; then one that reads neighbours.
fn chain() -> Program {
    let mut b = B::new("chain");
    let [a, c, d] = ["a", "c", "d"].map(|name| b.0.array(name, Type::F64, 1, Access::Write));
    let steps = b.0.scalar("steps", Type::Index);
    let k = b.0.scalar("k", Type::Index);
    let (zero, one, n) = (b.index(0), b.index(1), b.0.dim(a, 0));
    let half = b.real(0.5);
    b.0.begin_for("t", zero, steps);
    let i = b.0.begin_par(&[("i", zero, n)])[0];
    let x = b.0.load(c, &[i]);
    let x = b.mul(x, half);
    b.0.store(a, &[i], x);
    b.0.end_par();
    b.0.update(Combine::Add, a, &[k], half);
    let i = b.0.begin_par(&[("i", zero, n)])[0];
    let (x, y) = (b.0.load(a, &[i]), b.0.load(c, &[i]));
    let z = b.sub(x, y);
    b.0.store(c, &[i], z);
    b.0.end_par();
    b.0.store(c, &[k], half);
    let n1 = b.sub(n, one);
    let i = b.0.begin_par(&[("i", zero, n1)])[0];
    let next = b.add(i, one);
    let (x, y) = (b.0.load(a, &[next]), b.0.load(c, &[i]));
    let z = b.add(x, y);
    b.0.store(d, &[i], z);
    b.0.end_par();
    b.0.swap(c, d);
    b.0.end_loop(None);
    b.0.finish().unwrap()
}

#[test]
pub fn loops_over_one_domain_and_single_elements_follow_each_other() {
    // One thread, one block of a GPU, one cluster of blocks, many of them.
    for n in [1, 2, 7, 1000, 5000, 40_000] {
        for (steps, k) in [(1usize, 0), (2, n / 2), (5, n - 1)] {
            let line = || Input::Array(vec![n], 1);
            let scalars = [Input::Scalar(Literal::from(steps)), Input::Scalar(Literal::from(k))];
            let inputs: Vec<Input> = [line(), line(), line()].into_iter().chain(scalars).collect();
            check(&chain(), &inputs).unwrap();
        }
    }
}

/// Sweeps from element to element, which one thread runs alone, between loops that are worth several: over a grid, and along a line,
/// with a local that all read behind it.
fn sweeps(beyond: &str) -> Program {
    let text = format!(
        "program sweeps(u: &mut Array2<f64>, f: &Array2<f64>, line: &mut Array1<f64>, sweeps: usize, loss: &mut Array0<f64>) {{
    let n = u.dim(0);
    let m = u.dim(1);
    for t in 0..sweeps {{
        for i in 1..n - 1 {{
            for j in 1..m - 1{beyond} {{
                u[[i, j]] = 0.25 * (u[[i - 1, j]] + u[[i + 1, j]] + u[[i, j - 1]] + u[[i, j + 1]] - f[[i, j]]);
            }}
        }}
        for (i, j) in par(0..n, 0..m) {{
            u[[i, j]] = u[[i, j]].cos();
        }}
    }}
    let mut last = 0.5;
    for k in 1..line.len() {{
        line[k] = line[k] - line[k - 1] * last;
        last = line[k] * 0.125;
    }}
    for (i, j) in par(0..n, 0..m) {{
        loss[[]] += u[[i, j]] * last;
    }}
}}
"
    );
    verify_source(&parse(&text).unwrap()).unwrap()
}

fn sweeps_of([n, m]: [usize; 2], line: usize, sweeps: usize) -> Vec<Input> {
    let array = |shape: Vec<usize>| Input::Array(shape, 1);
    let scalar = Input::Scalar(Literal::from(sweeps));
    vec![array(vec![n, m]), array(vec![n, m]), array(vec![line]), scalar, array(Vec::new())]
}

#[test]
pub fn loops_from_element_to_element_are_the_same_everywhere() {
    for (shape, line, count) in [([3, 3], 2, 1), ([40, 50], 0, 3), ([200, 210], 500, 2), ([5, 2], 1, 2)] {
        check(&sweeps(""), &sweeps_of(shape, line, count)).unwrap();
    }
}

#[test]
pub fn a_fault_of_one_thread_alone_is_the_fault_of_all() {
    let program = sweeps(" + 2");
    for shape in [[4, 5], [200, 210]] {
        let inputs = sweeps_of(shape, 3, 2);
        let expected = results(&program, &interpreter(), &inputs).unwrap_err();
        assert!(expected.contains(&format!("index {} is out of bounds", shape[1])), "{expected}");
        for threads in [1, 2, 5] {
            assert_eq!(results(&program, &cpu(threads), &inputs).unwrap_err(), expected);
        }
    }
}

#[test]
pub fn gradients_of_loops_from_element_to_element_are_the_same_everywhere() {
    for shape in [[4, 5], [120, 130]] {
        let given = vec![
            Given::Shape(shape.to_vec()),
            Given::Shape(shape.to_vec()),
            Given::Shape(vec![40]),
            Given::Scalar(Literal::from(2usize)),
            Given::Shape(Vec::new()),
        ];
        let case = Case { program: sweeps(""), wrt: vec!["u", "f", "line"], given };
        let expected = bits(&case.run(&case.compile(&interpreter())).0);
        for threads in [1, 2, 5] {
            let found = bits(&case.run(&case.compile(&cpu(threads))).0);
            assert!(found == expected, "{threads} threads, {shape:?}");
        }
    }
}
