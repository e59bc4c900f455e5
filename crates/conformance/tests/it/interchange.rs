//! Loops whose passes touch only the elements of their own iterations: a device may run them inside their parallel loops.

use ebbtide_conformance::Input;
use ebbtide_ir::*;

use crate::devices::{all, check, results};
use crate::gradients::{Case, Given, with_misfit};
use crate::programs::{self, B};

/// Two fields that take turns, a source, a branch per pass and one per element, and a row of outputs per pass.
pub fn relay() -> Program {
    let mut b = B::new("relay");
    let [u, v] = ["u", "v"].map(|name| b.0.array(name, Type::F64, 1, Access::Write));
    let p = b.0.array("p", Type::F64, 1, Access::Read);
    let source = b.0.array("source", Type::F64, 1, Access::Read);
    let rows = b.0.array("rows", Type::F64, 2, Access::Write);
    let steps = b.0.scalar("steps", Type::Index);
    let (zero, two, n) = (b.index(0), b.index(2), b.0.dim(u, 0));
    let t = b.0.begin_for("t", zero, steps);
    let x = b.0.load(source, &[t]);
    let i = b.0.begin_par(&[("i", zero, n)])[0];
    let (a, q) = (b.0.load(u, &[i]), b.0.load(p, &[i]));
    let a = b.0.math(Function::Tanh, &[a]);
    let a = b.mul(a, q);
    let a = b.add(a, x);
    b.0.store(v, &[i], a);
    b.0.end_par();
    b.0.swap(u, v);
    let parity = b.rem(t, two);
    let even = b.0.compare(Compare::Eq, parity, zero);
    b.0.begin_if(even);
    let quarter = b.real(0.25);
    b.0.fill(v, quarter);
    b.0.begin_else();
    let i = b.0.begin_par(&[("i", zero, n)])[0];
    let a = b.0.load(v, &[i]);
    b.0.update(Combine::Add, u, &[i], a);
    b.0.end_par();
    b.0.copy(u, v);
    b.0.end_if();
    let i = b.0.begin_par(&[("i", zero, n)])[0];
    let (a, c, q) = (b.0.load(u, &[i]), b.0.load(v, &[i]), b.0.load(p, &[i]));
    let d = b.sub(a, c);
    b.0.store(rows, &[t, i], d);
    let nothing = b.real(0.0);
    let positive = b.0.compare(Compare::Gt, q, nothing);
    b.0.begin_if(positive);
    let half = b.real(-0.5);
    let d = b.mul(a, half);
    b.0.store(u, &[i], d);
    b.0.end_if();
    b.0.end_par();
    b.0.end_loop(None);
    b.0.finish().unwrap()
}

/// A plane without its first and last row, and counters of other types.
pub fn plane() -> Program {
    let mut b = B::new("plane");
    let a = b.0.array("a", Type::F32, 2, Access::Write);
    let count = b.0.array("count", Type::I32, 2, Access::Write);
    let flags = b.0.array("flags", Type::Bool, 2, Access::Write);
    let steps = b.0.scalar("steps", Type::Index);
    let (zero, one) = (b.index(0), b.index(1));
    let (n, m) = (b.0.dim(a, 0), b.0.dim(a, 1));
    b.0.begin_for("t", one, steps);
    let last = b.sub(n, one);
    let ij = b.0.begin_par(&[("i", one, last), ("j", zero, m)]);
    let x = b.0.load(a, &ij);
    let y = b.0.math(Function::Sin, &[x]);
    b.0.update(Combine::Max, a, &ij, y);
    let nothing = b.0.literal(Literal::from(0.0f32));
    let negative = b.0.compare(Compare::Lt, x, nothing);
    let flag = b.0.load(flags, &ij);
    let differs = b.0.binary(Binary::Xor, flag, negative);
    b.0.store(flags, &ij, differs);
    b.0.begin_if(differs);
    let step = b.0.cast(ij[1], Type::I32);
    b.0.update(Combine::Add, count, &ij, step);
    b.0.end_if();
    b.0.end_par();
    b.0.end_loop(None);
    b.0.finish().unwrap()
}

/// An element found through data, added to each element in every pass.
pub fn gathered() -> Program {
    let mut b = B::new("gathered");
    let u = b.0.array("u", Type::F64, 1, Access::Write);
    let p = b.0.array("p", Type::F64, 1, Access::Read);
    let at = b.0.array("at", Type::I32, 1, Access::Read);
    let steps = b.0.scalar("steps", Type::Index);
    let (zero, n) = (b.index(0), b.0.dim(u, 0));
    b.0.begin_for("t", zero, steps);
    let i = b.0.begin_par(&[("i", zero, n)])[0];
    let k = b.0.load(at, &[i]);
    let k = b.0.cast(k, Type::Index);
    let x = b.0.load(p, &[k]);
    b.0.update(Combine::Add, u, &[i], x);
    b.0.end_par();
    b.0.end_loop(None);
    b.0.finish().unwrap()
}

/// Inner passes of one element each, and a sum over all of them in every outer pass.
pub fn nested() -> Program {
    let mut b = B::new("nested");
    let u = b.0.array("u", Type::F64, 1, Access::Write);
    let p = b.0.array("p", Type::F64, 1, Access::Read);
    let sum = b.0.array("loss", Type::F64, 0, Access::Write);
    let steps = b.0.scalar("steps", Type::Index);
    let (zero, three, n) = (b.index(0), b.index(3), b.0.dim(u, 0));
    b.0.begin_for("t", zero, steps);
    b.0.begin_for("k", zero, three);
    let i = b.0.begin_par(&[("i", zero, n)])[0];
    let (x, y) = (b.0.load(u, &[i]), b.0.load(p, &[i]));
    let x = b.mul(x, y);
    let x = b.0.math(Function::Sin, &[x]);
    b.0.update(Combine::Add, u, &[i], x);
    b.0.end_par();
    b.0.end_loop(None);
    let i = b.0.begin_par(&[("i", zero, n)])[0];
    let x = b.0.load(u, &[i]);
    let x = b.mul(x, x);
    b.0.update(Combine::Add, sum, &[], x);
    b.0.end_par();
    b.0.end_loop(None);
    b.0.finish().unwrap()
}

fn relay_of(n: usize, steps: usize, sources: usize, parameters: usize) -> Vec<Input> {
    vec![
        Input::Array(vec![n], 1),
        Input::Array(vec![n], 2),
        Input::Array(vec![parameters], 3),
        Input::Array(vec![sources], 4),
        Input::Array(vec![steps, n], 5),
        Input::Scalar(Literal::from(steps)),
    ]
}

#[test]
pub fn own_elements_are_the_same_everywhere() {
    for (n, steps) in
        [(0, 3), (1, 1), (1, 2), (100, 0), (100, 1), (100, 2), (100, 9), (5000, 6), (140_000, 2)]
    {
        check(&relay(), &relay_of(n, steps, steps, n)).unwrap();
    }
}

#[test]
pub fn own_elements_of_a_plane_are_the_same_everywhere() {
    for (n, m, steps) in [(2, 5, 3usize), (3, 1, 4), (40, 33, 8), (7, 3000, 3)] {
        let shape = vec![n, m];
        let mut inputs: Vec<Input> = (1..4).map(|seed| Input::Array(shape.clone(), seed)).collect();
        inputs.push(Input::Scalar(Literal::from(steps)));
        check(&plane(), &inputs).unwrap();
    }
}

/// On every device the run ends with an error that says this.
fn fails(program: &Program, inputs: &[Input], message: &str) {
    for device in all() {
        let error = results(program, &device, inputs).unwrap_err();
        assert!(error.contains(message), "{}: {error}", device.name());
    }
}

#[test]
pub fn own_elements_are_checked_in_every_pass() {
    // Nine passes, but a source of five.
    fails(&relay(), &relay_of(100, 9, 5, 100), "index 5 is out of bounds for dimension 0 of `source`");
    // A hundred iterations, but 64 parameters.
    fails(&relay(), &relay_of(100, 9, 9, 64), "is out of bounds for dimension 0 of `p`");
    let n = 300;
    let gather = |bad: i32| {
        let at = (0..n).map(|i| Literal::from(if i == 200 { bad } else { (i as i32 * 7) % 50 }));
        vec![
            Input::Array(vec![n], 1),
            Input::Array(vec![50], 2),
            Input::Elements(vec![n], at.collect()),
            Input::Scalar(Literal::from(4usize)),
        ]
    };
    check(&gathered(), &gather(49)).unwrap();
    fails(&gathered(), &gather(50), "index 50 is out of bounds for dimension 0 of `p`, whose extent is 50");
    fails(&gathered(), &gather(-1), "index -1 is out of bounds for dimension 0 of `p`, whose extent is 50");
}

#[test]
pub fn gradients_of_own_elements_have_the_same_bits_under_every_budget_on_every_device() {
    for (steps, array) in [(0, "u"), (1, "u"), (2, "rows"), (5, "u"), (6, "rows")] {
        let mut given: Vec<Given> = relay_of(70, steps, steps, 70)
            .into_iter()
            .map(|input| match input {
                Input::Array(shape, _) | Input::Elements(shape, _) => Given::Shape(shape),
                Input::Scalar(value) => Given::Scalar(value),
            })
            .collect();
        given.push(Given::Shape(vec![]));
        let case = Case { program: with_misfit(relay(), array), wrt: vec!["u", "p"], given };
        case.check_bits(steps as u64);
    }
    for (n, steps) in [(5000usize, 9usize), (0, 2)] {
        let case = Case {
            program: with_misfit(programs::pointwise(), "s"),
            wrt: vec!["s", "p"],
            given: vec![
                Given::Shape(vec![n]),
                Given::Shape(vec![n]),
                Given::Scalar(Literal::from(steps)),
                Given::Shape(vec![]),
            ],
        };
        case.check_bits(steps as u64);
    }
    let case = Case {
        program: nested(),
        wrt: vec!["u", "p"],
        given: vec![
            Given::Shape(vec![90]),
            Given::Shape(vec![90]),
            Given::Shape(vec![]),
            Given::Scalar(Literal::from(4usize)),
        ],
    };
    case.check_bits_of_nest(4, |ran| assert!(ran.reversed >= 4, "{ran:?}"));
}
