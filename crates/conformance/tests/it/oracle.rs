//! The oracle against differences, and the engine's derivatives of single operations against the oracle: smooth points,
//! kinks and ties (law 13).

use ebbtide_conformance::Input;
use ebbtide_conformance::judge::{Question, Wrong, check_gradient};
use ebbtide_ir::*;
use ebbtide_runtime::{Budget, interpreter};

use crate::programs;

/// `z[i] = f(x[i], y[i])`, and the sum of all `z` in `loss`.
fn pointwise(ty: Type, f: impl FnOnce(&mut Builder, ValueId, ValueId) -> ValueId) -> Program {
    let mut b = Builder::new("operation");
    let [x, y] = ["x", "y"].map(|name| b.array(name, ty, 1, Access::Read));
    let z = b.array("z", ty, 1, Access::Write);
    let loss = b.array("loss", ty, 0, Access::Write);
    let (zero, n) = (b.literal(Literal::index(0)), b.dim(x, 0));
    let i = b.begin_par(&[("i", zero, n)])[0];
    let (u, v) = (b.load(x, &[i]), b.load(y, &[i]));
    let w = f(&mut b, u, v);
    b.store(z, &[i], w);
    b.update(Combine::Add, loss, &[], w);
    b.end_par();
    b.finish().unwrap()
}

fn elements(ty: Type, numbers: &[f64]) -> Input {
    Input::Elements(vec![numbers.len()], numbers.iter().map(|x| Literal::of(ty, *x)).collect())
}

fn number(ty: Type, x: f64) -> Input {
    Input::Elements(vec![], vec![Literal::of(ty, x)])
}

fn arguments(ty: Type, points: &[(f64, f64)]) -> [Input; 4] {
    let [x, y] = [0, 1].map(|k| points.iter().map(|p| [p.0, p.1][k]).collect::<Vec<f64>>());
    [elements(ty, &x), elements(ty, &y), elements(ty, &vec![0.0; x.len()]), number(ty, 0.0)]
}

/// Points at which every function with this domain is smooth.
fn smooth(f: Function) -> [(f64, f64); 4] {
    match f {
        Function::Asin | Function::Acos => [(0.3, 0.0), (-0.6, 0.0), (0.1, 0.0), (0.9, 0.0)],
        Function::Ln | Function::Ln1p | Function::Log2 | Function::Log10 | Function::Powf => {
            [(0.3, 1.5), (2.5, -0.7), (1.2, 0.4), (0.8, 2.0)]
        }
        _ => [(0.3, 0.8), (-0.6, 1.3), (1.4, -0.9), (-2.1, -0.4)],
    }
}

fn operation(b: &mut Builder, f: Function, u: ValueId, v: ValueId) -> ValueId {
    match f {
        Function::Powi => {
            let three = b.literal(Literal::from(3i32));
            b.math(f, &[u, three])
        }
        _ if f.arity() == 2 => b.math(f, &[u, v]),
        _ => b.math(f, &[u]),
    }
}

#[test]
fn the_oracles_table_has_the_slopes_that_differences_show() {
    for f in Function::ALL {
        let program = pointwise(Type::F64, |b, u, v| operation(b, *f, u, v));
        for (x, y) in smooth(*f) {
            let at = |x: f64, y: f64| {
                let inputs = arguments(Type::F64, &[(x, y)]);
                let question = Question::new(&program, &inputs, "loss", &["x", "y"]);
                let trace = question.trace().unwrap();
                let slopes = trace.cotangents("loss", &[1.0]).unwrap();
                let [by_x, by_y] = ["x", "y"].map(|name| slopes[name][0]);
                let direction = ["x", "y"].map(|name| question.direction()[name][0]);
                let tangent = trace.tangents("loss").unwrap()[0].value;
                (trace.values("loss").unwrap()[0].to_f64(), [by_x, by_y], direction, tangent)
            };
            let close = |found: f64, expected: f64| (found - expected).abs() < 1e-6 * expected.abs().max(1.0);
            let (_, slopes, direction, tangent) = at(x, y);
            let h = 1e-5;
            let by_x = (at(x + h, y).0 - at(x - h, y).0) / (2.0 * h);
            let by_y = (at(x, y + h).0 - at(x, y - h).0) / (2.0 * h);
            let name = f.name();
            assert!(close(slopes[0].value, by_x), "{name} at {x}, {y}: {} is not {by_x}", slopes[0].value);
            assert!(close(slopes[1].value, by_y), "{name} at {x}, {y}: {} is not {by_y}", slopes[1].value);
            let along = by_x * direction[0] + by_y * direction[1];
            assert!(close(tangent, along), "{name} at {x}, {y}: {tangent} is not {along}");
            let (dx, dy) = (h * direction[0], h * direction[1]);
            let (after, before) = (at(x + dx, y + dy).1, at(x - dx, y - dy).1);
            for k in 0..2 {
                let second = (after[k].value - before[k].value) / (2.0 * h);
                let found = slopes[k].tangent;
                assert!(close(found, second), "{name} at {x}, {y}: second {found} is not {second}");
            }
        }
    }
}

#[test]
fn every_function_has_the_oracles_derivatives() {
    for f in Function::ALL {
        for ty in [Type::F64, Type::F32] {
            let program = pointwise(ty, |b, u, v| operation(b, *f, u, v));
            check_gradient(&program, &arguments(ty, &smooth(*f)), "loss", &["x", "y"]);
            check_gradient(&program, &arguments(ty, &smooth(*f)), "z", &["x", "y"]);
        }
    }
}

#[test]
fn every_operator_has_the_oracles_derivatives() {
    let points = [(0.3, 0.8), (-0.6, 1.3), (1.4, -0.9), (-2.1, -0.4), (7.5, 2.0), (-5.5, 2.0)];
    for ty in [Type::F64, Type::F32] {
        let check = |f: &dyn Fn(&mut Builder, ValueId, ValueId) -> ValueId| {
            let program = pointwise(ty, f);
            check_gradient(&program, &arguments(ty, &points), "loss", &["x", "y"]);
            check_gradient(&program, &arguments(ty, &points), "z", &["x", "y"]);
        };
        for op in [Unary::Neg, Unary::Abs, Unary::Floor, Unary::Ceil, Unary::Round, Unary::Trunc] {
            check(&|b, u, _| b.unary(op, u));
        }
        check(&|b, u, v| {
            let square = b.fma(u, u, v);
            let positive = b.fma(square, square, square);
            let positive = b.unary(Unary::Abs, positive);
            b.unary(Unary::Sqrt, positive)
        });
        for op in [Binary::Add, Binary::Sub, Binary::Mul, Binary::Div, Binary::Rem, Binary::Min, Binary::Max]
        {
            check(&|b, u, v| b.binary(op, u, v));
        }
        check(&|b, u, v| {
            let less = b.compare(Compare::Lt, u, v);
            let product = b.binary(Binary::Mul, u, v);
            b.select(less, product, u)
        });
        let other = if ty == Type::F64 { Type::F32 } else { Type::F64 };
        check(&|b, u, v| {
            let [narrow, wide] = [u, v].map(|x| b.cast(x, other));
            let product = b.binary(Binary::Mul, narrow, wide);
            let whole = b.cast(u, Type::I32);
            let (back, product) = (b.cast(whole, ty), b.cast(product, ty));
            b.fma(back, v, product)
        });
    }
}

/// What law 13 says of a point where an operation has no derivative: the slopes in both operands.
struct Kink {
    name: &'static str,
    at: (f64, f64),
    slopes: (f64, f64),
    f: fn(&mut Builder, ValueId, ValueId) -> ValueId,
}

const KINKS: [Kink; 28] = [
    Kink { name: "abs", at: (0.0, 1.0), slopes: (0.0, 0.0), f: |b, u, _| b.unary(Unary::Abs, u) },
    Kink { name: "abs", at: (-0.0, 1.0), slopes: (0.0, 0.0), f: |b, u, _| b.unary(Unary::Abs, u) },
    Kink { name: "floor", at: (2.0, 1.0), slopes: (0.0, 0.0), f: |b, u, _| b.unary(Unary::Floor, u) },
    Kink { name: "ceil", at: (2.0, 1.0), slopes: (0.0, 0.0), f: |b, u, _| b.unary(Unary::Ceil, u) },
    Kink { name: "round", at: (2.5, 1.0), slopes: (0.0, 0.0), f: |b, u, _| b.unary(Unary::Round, u) },
    Kink { name: "trunc", at: (-1.0, 1.0), slopes: (0.0, 0.0), f: |b, u, _| b.unary(Unary::Trunc, u) },
    Kink { name: "min", at: (1.0, 1.0), slopes: (1.0, 0.0), f: |b, u, v| b.binary(Binary::Min, u, v) },
    Kink { name: "max", at: (1.0, 1.0), slopes: (1.0, 0.0), f: |b, u, v| b.binary(Binary::Max, u, v) },
    Kink { name: "min", at: (0.0, -0.0), slopes: (1.0, 0.0), f: |b, u, v| b.binary(Binary::Min, u, v) },
    Kink { name: "max", at: (-0.0, 0.0), slopes: (1.0, 0.0), f: |b, u, v| b.binary(Binary::Max, u, v) },
    Kink { name: "min", at: (f64::NAN, 1.0), slopes: (0.0, 1.0), f: |b, u, v| b.binary(Binary::Min, u, v) },
    Kink { name: "max", at: (1.0, f64::NAN), slopes: (1.0, 0.0), f: |b, u, v| b.binary(Binary::Max, u, v) },
    Kink { name: "rem", at: (4.0, 2.0), slopes: (1.0, -2.0), f: |b, u, v| b.binary(Binary::Rem, u, v) },
    Kink { name: "hypot", at: (0.0, 0.0), slopes: (0.0, 0.0), f: |b, u, v| b.math(Function::Hypot, &[u, v]) },
    Kink { name: "atan2", at: (0.0, 0.0), slopes: (0.0, 0.0), f: |b, u, v| b.math(Function::Atan2, &[u, v]) },
    Kink { name: "powf", at: (1.0, 0.0), slopes: (0.0, 0.0), f: |b, u, v| b.math(Function::Powf, &[u, v]) },
    Kink { name: "powf", at: (0.0, 1.0), slopes: (1.0, 0.0), f: |b, u, v| b.math(Function::Powf, &[u, v]) },
    Kink { name: "powf", at: (0.0, 2.0), slopes: (0.0, 0.0), f: |b, u, v| b.math(Function::Powf, &[u, v]) },
    Kink { name: "powi", at: (0.0, 1.0), slopes: (0.0, 0.0), f: |b, u, _| power(b, u, 0) },
    Kink { name: "powi", at: (0.0, 1.0), slopes: (1.0, 0.0), f: |b, u, _| power(b, u, 1) },
    Kink { name: "sqrt", at: (0.0, 1.0), slopes: (f64::INFINITY, 0.0), f: |b, u, _| b.unary(Unary::Sqrt, u) },
    Kink { name: "norm", at: (0.0, 1.0), slopes: (0.0, 0.0), f: |b, u, _| b.unary(Unary::Norm, u) },
    Kink { name: "length", at: (0.0, -0.0), slopes: (0.0, 0.0), f: length },
    Kink {
        name: "ln",
        at: (0.0, 1.0),
        slopes: (f64::INFINITY, 0.0),
        f: |b, u, _| b.math(Function::Ln, &[u]),
    },
    Kink {
        name: "cbrt",
        at: (0.0, 1.0),
        slopes: (f64::INFINITY, 0.0),
        f: |b, u, _| b.math(Function::Cbrt, &[u]),
    },
    // An arm that is not chosen, and a branch that is not taken, have slopes that nobody sees.
    Kink { name: "select", at: (0.0, 3.0), slopes: (0.0, 1.0), f: chosen },
    Kink { name: "branch", at: (0.0, 3.0), slopes: (0.0, 1.0), f: taken },
    Kink { name: "whole", at: (2.0, 3.0), slopes: (0.0, 2.0), f: whole },
];

fn power(b: &mut Builder, u: ValueId, n: i32) -> ValueId {
    let n = b.literal(Literal::from(n));
    b.math(Function::Powi, &[u, n])
}

fn length(b: &mut Builder, u: ValueId, v: ValueId) -> ValueId {
    let (u, v) = (b.binary(Binary::Mul, u, u), b.binary(Binary::Mul, v, v));
    let squared = b.binary(Binary::Add, u, v);
    b.unary(Unary::Norm, squared)
}

fn chosen(b: &mut Builder, u: ValueId, v: ValueId) -> ValueId {
    let zero = b.literal(Literal::from(0.0));
    let (positive, root) = (b.compare(Compare::Gt, u, zero), b.unary(Unary::Sqrt, u));
    b.select(positive, root, v)
}

fn taken(b: &mut Builder, u: ValueId, v: ValueId) -> ValueId {
    let zero = b.literal(Literal::from(0.0));
    let result = b.local("result", v);
    let positive = b.compare(Compare::Gt, u, zero);
    b.begin_if(positive);
    let root = b.unary(Unary::Sqrt, u);
    b.set(result, root);
    b.end_if();
    b.get(result)
}

fn whole(b: &mut Builder, u: ValueId, v: ValueId) -> ValueId {
    let whole = b.cast(u, Type::I64);
    let back = b.cast(whole, Type::F64);
    b.binary(Binary::Mul, back, v)
}

#[test]
fn derivatives_at_kinks_are_the_law() {
    for Kink { name, at, slopes, f } in KINKS {
        let program = pointwise(Type::F64, f);
        let inputs = arguments(Type::F64, &[at]);
        let question = Question::new(&program, &inputs, "loss", &["x", "y"]);
        let trace = question.trace().unwrap();
        let found = trace.cotangents("loss", &[1.0]).unwrap();
        assert_eq!((found["x"][0].value, found["y"][0].value), slopes, "the oracle: {name} at {at:?}");
        let gradient = question.gradient(&interpreter(), false).unwrap();
        let answer = gradient.launch(&question, Budget::StoreAll).unwrap();
        let engine = (answer.derivatives[0][0].to_f64(), answer.derivatives[1][0].to_f64());
        assert_eq!(engine, slopes, "the engine: {name} at {at:?}");
        let pushed = question.jvp(&interpreter()).unwrap();
        question.judge_jvp(&trace, &pushed).unwrap_or_else(|wrong| panic!("{name} at {at:?}: {wrong}"));
    }
}

#[test]
fn a_power_has_its_mixed_second_derivative_at_exponent_zero() {
    let program = pointwise(Type::F64, |b, u, v| b.math(Function::Powf, &[u, v]));
    let inputs = arguments(Type::F64, &[(1.5, 0.0)]);
    let question = Question::new(&program, &inputs, "loss", &["x", "y"]);
    question.check().unwrap();
}

/// Takes minima or maxima of `x` in one of several ways, and the sum of `z` and `e` in `loss`.
fn extremes(how: Combine, way: usize) -> Program {
    let mut b = Builder::new("extremes");
    let x = b.array("x", Type::F64, 1, Access::Read);
    let z = b.array("z", Type::F64, 1, Access::Write);
    let e = b.array("e", Type::F64, 0, Access::Write);
    let loss = b.array("loss", Type::F64, 0, Access::Write);
    let k = b.array("k", Type::I32, 1, Access::Read);
    let (zero, three, n) = (b.literal(Literal::index(0)), b.literal(Literal::index(3)), b.dim(x, 0));
    if way == 0 {
        let c = b.begin_for("c", zero, n);
        let u = b.load(x, &[c]);
        b.update(how, e, &[], u);
        b.end_loop(None);
    } else {
        let i = b.begin_par(&[("i", zero, n)])[0];
        let u = b.load(x, &[i]);
        match way {
            1 => b.update(how, e, &[], u),
            2 => (0..2).for_each(|_| b.update(how, e, &[], u)),
            3 => b.update(how, z, &[i], u),
            4 => {
                let at = b.load(k, &[i]);
                let at = b.cast(at, Type::Index);
                b.update(how, z, &[at], u);
            }
            _ => {
                b.begin_for("c", zero, three);
                b.update(how, z, &[i], u);
                b.end_loop(None);
            }
        }
        b.end_par();
    }
    let i = b.begin_par(&[("i", zero, n)])[0];
    let u = b.load(z, &[i]);
    b.update(Combine::Add, loss, &[], u);
    b.end_par();
    let v = b.load(e, &[]);
    b.update(Combine::Add, loss, &[], v);
    b.finish().unwrap()
}

#[test]
fn ties_of_minima_and_maxima_share_alike() {
    let n = 40;
    for how in [Combine::Min, Combine::Max] {
        let far = if how == Combine::Min { 5.0 } else { 1.0 };
        let x: Vec<f64> = (0..n).map(|k| if [3, 8, 16, 35].contains(&k) { 2.0 } else { far }).collect();
        let k = Input::Elements(vec![n], (0..n).map(|k| Literal::from((k % 4) as i32)).collect());
        for way in 0..6 {
            let program = extremes(how, way);
            for start in [2.0, -9.0, 9.0] {
                let f64s = Type::F64;
                let inputs = [
                    elements(f64s, &x),
                    elements(f64s, &vec![start; n]),
                    number(f64s, start),
                    number(f64s, 0.0),
                    k.clone(),
                ];
                check_gradient(&program, &inputs, "loss", &["x", "z", "e"]);
            }
        }
    }
}

#[test]
fn ties_make_the_oracles_tape_grow_in_proportion_to_their_number() {
    let (n, f64s) = (2000, Type::F64);
    let inputs = [
        elements(f64s, &vec![2.0; n]),
        elements(f64s, &vec![9.0; n]),
        number(f64s, 0.0),
        number(f64s, 0.0),
        Input::Elements(vec![n], vec![Literal::from(0i32); n]),
    ];
    let program = extremes(Combine::Min, 4);
    let question = Question::new(&program, &inputs, "loss", &["x"]);
    let trace = question.trace().unwrap();
    assert!(trace.edges() < 8 * n, "{} edges for {n} equal candidates", trace.edges());
    let shares = &trace.cotangents("loss", &[1.0]).unwrap()["x"];
    assert!(shares.iter().all(|share| share.value == 1.0 / n as f64));
}

#[test]
fn the_judge_sees_a_wrong_component() {
    let program = pointwise(Type::F64, |b, u, v| b.binary(Binary::Mul, u, v));
    let inputs = arguments(Type::F64, &[(0.5, 2.0), (1.5, -3.0)]);
    let question = Question::new(&program, &inputs, "loss", &["x", "y"]);
    let trace = question.trace().unwrap();
    let answer = question.gradient(&interpreter(), false).unwrap().launch(&question, Budget::StoreAll);
    let mut derivatives = answer.unwrap().derivatives;
    assert_eq!(question.judge_gradient(&trace, false, &derivatives), Ok(()));
    derivatives[1][1] = Literal::from(derivatives[1][1].to_f64() * (1.0 + 1e-9));
    assert!(matches!(question.judge_gradient(&trace, false, &derivatives), Err(Wrong::Number(_))));
}

#[test]
fn programs_of_this_suite_have_the_oracles_derivatives() {
    let vector = |seed| Input::Array(vec![9], seed);
    let steps = Input::Scalar(Literal::index(6));
    check_gradient(&programs::pointwise(), &[vector(1), vector(2), steps.clone()], "s", &["s", "p"]);
    let (nu, dt) = (Input::Scalar(Literal::from(0.1)), Input::Scalar(Literal::from(0.02)));
    check_gradient(&programs::burgers(), &[vector(1), vector(2), nu, dt, steps], "u", &["u", "nu", "dt"]);
}
