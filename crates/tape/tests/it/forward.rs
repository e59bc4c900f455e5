//! Forward mode: values with tangents against reverse mode and finite differences.

use ebbtide_tape::{
    Dual, Error, Inline, InputCotangents, Operation, Point, RuleResult, SecondOrder, Tangents, Tape, Var,
    jvp, op,
};
use ndarray::{ArrayD, IxDyn, arr1, arr2};

use crate::support::Random;

/// One function for both modes.
struct Pair {
    name: &'static str,
    forward: fn(&Dual<f64>, &Dual<f64>) -> Dual<f64>,
    reverse: fn(&Var<f64>, &Var<f64>) -> Var<f64>,
}

macro_rules! pairs {
    ($($name:literal: |$x:ident, $y:tt| $body:expr;)*) => {
        vec![$(Pair { name: $name, forward: |$x, $y| $body, reverse: |$x, $y| $body }),*]
    };
}

fn pairs() -> Vec<Pair> {
    pairs! {
        "arithmetic": |x, y| (x + y) * (x - y) / (x.clone() * y) - x / y;
        "constants": |x, _| 2.0 / (1.0 - x * 3.0) + 4.0 - (2.0 + x) / 3.0 - (x - 1.0) * 0.5;
        "negation": |x, _| -(-x * 2.0);
        "trigonometry": |x, y| x.sin() * y.cos() + (x * 0.5).tan() + y.atan();
        "exponentials": |x, y| x.exp() * y.ln() + x.tanh() * y.sinh() - x.cosh();
        "roots and powers": |x, y| x.sqrt() + y.recip() + x.powi(3) + y.powf(1.7) + x.pow(y);
        "kinks": |x, y| x.abs() + x.max(y) * 2.0 + x.min(y) * 3.0;
        "polar": |x, y| x.atan2(y) + x.hypot(y);
    }
}

#[test]
fn c70_forward_and_reverse_mode_agree() {
    let mut random = Random(7);
    for Pair { name, forward, reverse } in pairs() {
        for _ in 0..20 {
            let [x, y, dx, dy] = std::array::from_fn(|_| 0.2 + random.unit());
            let (value, tangent) = jvp(|[x, y]: &[Dual<f64>; 2]| forward(x, y), [x, y], [dx, dy]).unwrap();
            let tape = Tape::<f64>::new();
            let (u, v) = (tape.leaf(x), tape.leaf(y));
            let loss = reverse(&u, &v);
            let gradients = loss.pullback().unwrap();
            let (gu, gv) = (gradients.wrt(&u).unwrap(), gradients.wrt(&v).unwrap());
            assert_eq!(*value, *loss.value(), "{name}");
            let scale = (gu * dx).abs() + (gv * dy).abs();
            assert!((tangent - (gu * dx + gv * dy)).abs() <= 1e-13 * scale.max(1.0), "{name}: {tangent}");
        }
    }
}

#[test]
fn c70_no_tangent_is_a_tangent_of_zero_and_costs_nothing() {
    struct Square;
    impl Operation<f64> for Square {
        fn forward(&self, inputs: &[Inline<f64>]) -> RuleResult<f64> {
            Ok(*inputs[0] * *inputs[0])
        }
        fn pullback(&self, _: Point<'_, f64>, _: &f64, _: &mut InputCotangents<'_, f64>) -> RuleResult {
            Err("forward mode never asks for a pullback".into())
        }
        fn second_order(&self) -> SecondOrder {
            SecondOrder::Smooth
        }
        fn pushforward(&self, at: Point<'_, f64>, tangents: &Tangents<'_, f64>) -> RuleResult<f64> {
            Ok(2.0 * *at.inputs[0] * tangents.get(0).ok_or("asked without a tangent")?)
        }
    }
    let constant = Dual::apply(&Square, &[&Dual::new(3.0)]).unwrap();
    assert_eq!((*constant.value(), constant.has_tangent(), constant.tangent_or_zero()), (9.0, false, 0.0));
    let moving = Dual::apply(&Square, &[&Dual::with_tangent(3.0, 0.5).unwrap()]).unwrap();
    assert_eq!((*moving.value(), moving.tangent()), (9.0, Some(&3.0)));
}

#[test]
fn an_operation_without_a_pushforward_is_an_error() {
    let square =
        op(|x: &[Inline<f64>]| *x[0] * *x[0], |at: Point<'_, f64>, c: &f64| [2.0 * *at.inputs[0] * c]);
    assert_eq!(*Dual::apply(&square, &[&Dual::new(3.0)]).unwrap().value(), 9.0);
    let moving = Dual::with_tangent(3.0, 1.0).unwrap();
    assert!(matches!(Dual::apply(&square, &[&moving]), Err(Error::JvpNotSupported)));
}

#[test]
fn parts_of_a_dual() {
    let dual = Dual::with_tangent(5.0, 2.0).unwrap();
    assert_eq!(dual.clone().into_parts(), (Inline::from(5.0), Some(2.0)));
    assert_eq!(dual.without_tangent().into_parts(), (Inline::from(5.0), None));
    assert_eq!(format!("{:?}", Dual::new(1.0)), "Dual { value: 1.0, tangent: None }");
}

#[test]
fn c70_arrays_move_along_arrays() {
    let mut random = Random(3);
    let mut any = |shape: &[usize]| ArrayD::from_shape_simple_fn(IxDyn(shape), || 0.5 + random.unit());
    let (w, x, dw, dx) = (any(&[3, 4]), any(&[4]), any(&[3, 4]), any(&[4]));
    let bias = any(&[3]);
    let layer = |w: &Dual<ArrayD<f64>>, x: &Dual<ArrayD<f64>>| {
        let h = (w.dot(x).unwrap() + &bias).tanh();
        (&h * &h).mean()
            + w.t().reshape(&[12]).unwrap().sum() * 0.1
            + x.broadcast(&[2, 4]).unwrap().sum_to(&[4]).unwrap().sum()
    };
    let (value, tangent) =
        jvp(|[w, x]: &[Dual<ArrayD<f64>>; 2]| layer(w, x), [w.clone(), x.clone()], [dw.clone(), dx.clone()])
            .unwrap();
    let tape = Tape::<ArrayD<f64>>::new();
    let (u, v) = (tape.leaf(w), tape.leaf(x));
    let h = (u.dot(&v).unwrap() + &bias).tanh();
    let loss = (&h * &h).mean()
        + u.t().reshape(&[12]).unwrap().sum() * 0.1
        + v.broadcast(&[2, 4]).unwrap().sum_to(&[4]).unwrap().sum();
    let gradients = loss.pullback().unwrap();
    let expected = (gradients.wrt(&u).unwrap() * dw).sum() + (gradients.wrt(&v).unwrap() * dx).sum();
    assert_eq!(*value, *loss.value());
    assert!((tangent.sum() - expected).abs() < 1e-13 * expected.abs());
}

#[test]
fn shapes_that_do_not_go_together_are_errors_in_the_end() {
    let x = Dual::new(arr1(&[1.0f64, 2.0]).into_dyn());
    let y = Dual::new(arr1(&[1.0, 2.0, 3.0]).into_dyn());
    let sum = (&x + &y).sin() * 2.0;
    let error = sum.into_result().unwrap_err().to_string();
    assert!(error.contains("[2]") && error.contains("[3]"), "{error}");
    let tangent = arr2(&[[1.0]]).into_dyn();
    assert!(matches!(
        Dual::<ArrayD<f64>>::of_shared(x.share(), Some(tangent.clone())),
        Err(Error::TangentMisfit)
    ));
    let value = arr1(&[1.0, 2.0]).into_dyn();
    assert!(matches!(jvp(|[x]: &[Dual<_>; 1]| x.sin(), [value], [tangent]), Err(Error::TangentMisfit)));
}
