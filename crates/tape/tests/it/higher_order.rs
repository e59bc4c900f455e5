//! Gradients of gradients, to any order.

use ebbtide_tape::{
    Error, HigherOrder, Inline, Mode, Point, Result, ReverseRule, RuleResult, Tape, TrackedPoint, Var, op,
    rule_fn, with_mode,
};
use ndarray::{ArrayD, IxDyn, arr1};

use crate::support::Random;

type Function = fn(&Var<f64>, &Var<f64>) -> Var<f64>;

fn functions() -> Vec<(&'static str, Function)> {
    vec![
        ("add", |x, y| x + y),
        ("sub", |x, y| x - y),
        ("mul", |x, y| x * y),
        ("div", |x, y| x / y),
        ("pow", |x, y| x.pow(y)),
        ("max", |x, y| x.max(y)),
        ("min", |x, y| x.min(y)),
        ("atan2", |x, y| x.atan2(y)),
        ("hypot", |x, y| x.hypot(y)),
        ("neg", |x, _| -x),
        ("constants", |x, _| 2.0 / (1.0 - x * 3.0) + 4.0 - (2.0 + x) / 3.0),
        ("sin", |x, _| x.sin()),
        ("cos", |x, _| x.cos()),
        ("tan", |x, _| x.tan()),
        ("exp", |x, _| x.exp()),
        ("ln", |x, _| x.ln()),
        ("sqrt", |x, _| x.sqrt()),
        ("tanh", |x, _| x.tanh()),
        ("sinh", |x, _| x.sinh()),
        ("cosh", |x, _| x.cosh()),
        ("atan", |x, _| x.atan()),
        ("recip", |x, _| x.recip()),
        ("abs", |x, _| x.abs()),
        ("powi", |x, _| x.powi(3)),
        ("powf", |x, _| x.powf(1.7)),
    ]
}

/// A function followed by a cube, so that its rule sees cotangents that are not one.
fn cubed(function: Function, x: &Var<f64>, y: &Var<f64>) -> Var<f64> {
    let z = function(&(x * 1.5), y);
    &z * &z * &z
}

/// The derivative along a direction, on the tape.
fn along(loss: &Var<f64>, [x, y]: [&Var<f64>; 2], direction: [f64; 2]) -> Var<f64> {
    let gradient = loss.grad(&[x, y]).unwrap();
    &gradient[0] * direction[0] + &gradient[1] * direction[1]
}

#[test]
fn c71_the_gradient_of_a_gradient_is_the_product_with_the_hessian() {
    let direction = [0.6, -0.8];
    for mode in [Mode::Off, Mode::Aggressive] {
        for (name, function) in functions() {
            let tape = Tape::<f64>::new();
            let (x, y) = (tape.leaf(0.7), tape.leaf(1.3));
            let (loss, second) = with_mode(mode, || {
                let loss = cubed(function, &x, &y);
                let second = along(&loss, [&x, &y], direction);
                (loss, second)
            });
            let hvp = tape.hvp(&loss, [(&x, direction[0]), (&y, direction[1])]).unwrap();
            let gradients = second.pullback().unwrap();
            let first = loss.grad(&[&x, &y]).unwrap();
            for (k, leaf) in [&x, &y].into_iter().enumerate() {
                let (found, expected) = (gradients.wrt(leaf).unwrap(), hvp.product.wrt(leaf).unwrap());
                assert!(
                    (found - expected).abs() <= 1e-12 * expected.abs().max(1.0),
                    "{name}: {found}, {expected}"
                );
                let (found, expected) = (*first[k].value(), hvp.gradients.wrt(leaf).unwrap());
                assert!(
                    (found - expected).abs() <= 1e-14 * expected.abs().max(1.0),
                    "{name}: {found}, {expected}"
                );
            }
        }
    }
}

#[test]
fn third_derivatives_agree_with_differences_of_second_ones() {
    let direction = [0.6, -0.8];
    for (name, function) in functions() {
        let third = {
            let tape = Tape::<f64>::new();
            let (x, y) = (tape.leaf(0.7), tape.leaf(1.3));
            let second = along(&along(&cubed(function, &x, &y), [&x, &y], direction), [&x, &y], direction);
            let gradients = second.grad(&[&x, &y]).unwrap();
            [*gradients[0].value(), *gradients[1].value()]
        };
        let second = |t: f64| {
            let tape = Tape::<f64>::new();
            let (x, y) = (tape.leaf(0.7 + t * direction[0]), tape.leaf(1.3 + t * direction[1]));
            let hvp =
                tape.hvp(&cubed(function, &x, &y), [(&x, direction[0]), (&y, direction[1])]).unwrap().product;
            [hvp.wrt(&x).unwrap(), hvp.wrt(&y).unwrap()]
        };
        let step = 1e-5;
        let (ahead, behind) = (second(step), second(-step));
        for k in 0..2 {
            let expected = (ahead[k] - behind[k]) / (2.0 * step);
            let scale = ahead[k].abs().max(expected.abs()).max(1.0);
            assert!((third[k] - expected).abs() < 1e-5 * scale, "{name}: {} instead of {expected}", third[k]);
        }
    }
}

/// The n-th derivatives of exp(a x) and of a polynomial are known.
#[test]
fn c71_seven_derivatives_of_an_exponential() {
    for mode in [Mode::Off, Mode::Aggressive] {
        let tape = Tape::<f64>::new();
        let x = tape.leaf(0.3);
        with_mode(mode, || {
            let mut y = (&x * 1.5).exp();
            for n in 1..=7 {
                y = y.grad(&[&x]).unwrap().remove(0);
                let expected = 1.5f64.powi(n) * 0.45f64.exp();
                assert!((y.value() - expected).abs() < 1e-13 * expected, "derivative {n}");
            }
        });
    }
}

#[test]
fn c71_checkpointed_and_retained_gradients_of_gradients_are_equal_bit_for_bit() {
    let bits = |mode| {
        let tape = Tape::<f64>::new();
        let (x, y) = (tape.leaf(0.7), tape.leaf(1.3));
        with_mode(mode, || {
            let chain = (0..20).fold(x.clone(), |z, _| (z * &y).sin() + &x / &y);
            let first = chain.grad(&[&x, &y]).unwrap();
            let second = (&first[0] * &first[1]).grad(&[&x, &y]).unwrap();
            second.iter().map(|g| g.value().to_bits()).collect::<Vec<_>>()
        })
    };
    assert_eq!(bits(Mode::Off), bits(Mode::Aggressive));
}

#[test]
fn intermediate_values_have_gradients_too_and_unrelated_ones_zero() {
    let tape = Tape::<f64>::new();
    let (x, unused) = (tape.leaf(0.5), tape.leaf(2.0));
    let middle = &x * &x;
    let loss = middle.sin() * 3.0;
    let gradients = loss.grad(&[&middle, &unused, &loss]).unwrap();
    assert_eq!(*gradients[0].value(), 3.0 * 0.25f64.cos());
    assert_eq!((*gradients[1].value(), gradients[1].requires_grad()), (0.0, false));
    assert_eq!(*gradients[2].value(), 1.0);
    // The gradient at the middle depends on x: d/dx 3 cos(x²) = -6 x sin(x²).
    let second = gradients[0].grad(&[&x]).unwrap();
    assert!((second[0].value() + 6.0 * 0.5 * 0.25f64.sin()).abs() < 1e-15);
}

#[test]
fn only_what_lies_between_is_recorded() {
    let tape = Tape::<f64>::new();
    let (x, y) = (tape.leaf(0.5), tape.leaf(2.0));
    let long = (0..1000).fold(y.clone(), |z, _| z.sin());
    let loss = &x * &long;
    let before = tape.len();
    let gradient = loss.grad(&[&x]).unwrap();
    assert_eq!(gradient[0].value(), long.value());
    assert!(tape.len() - before <= 3, "{} nodes for one product", tape.len() - before);
}

#[test]
fn an_unwanted_input_is_a_constant_in_second_derivatives_too() {
    let tape = Tape::<f64>::new();
    let x = tape.leaf(3.0);
    struct Product;
    impl ReverseRule<f64> for Product {
        fn pullback(
            &self,
            _: &ebbtide_tape::Cotangents<'_, f64>,
            _: &mut ebbtide_tape::InputCotangents<'_, f64>,
        ) -> RuleResult {
            Ok(())
        }
        fn pullback_on_tape(
            &self,
            at: TrackedPoint<'_, f64>,
            c: &[Option<Var<f64>>],
        ) -> RuleResult<Vec<Option<Var<f64>>>> {
            let c = c[0].as_ref().ok_or("no cotangent")?;
            assert_eq!([at.wants(0), at.wants(1)], [true, false]);
            Ok(vec![Some(c * &at.inputs[1]), None])
        }
    }
    // x · stop(x): its derivative is stop(x), a constant.
    let y = tape.on(&[&x, &x]).unwanted(1).retain(9.0, Product).unwrap();
    let first = y.grad(&[&x]).unwrap().remove(0);
    assert_eq!(*first.value(), 3.0);
    assert_eq!(*first.grad(&[&x]).unwrap()[0].value(), 0.0);
}

#[test]
fn the_seed_can_be_on_the_tape() {
    let tape = Tape::<ArrayD<f64>>::new();
    let x = tape.leaf(arr1(&[1.0, 2.0, 3.0]).into_dyn());
    let seed = tape.leaf(arr1(&[1.0, 0.0, -1.0]).into_dyn());
    let y = &x * &x;
    let pulled = tape.grad_seeded(&y, &seed, &[&x]).unwrap().remove(0);
    assert_eq!(*pulled.value(), arr1(&[2.0, 0.0, -6.0]).into_dyn());
    // The pullback is linear in its seed: two pullbacks make the Jacobian-vector product of reverse mode.
    let direction = tape.constant(arr1(&[1.0, 1.0, 1.0]).into_dyn());
    let product = (&pulled * &direction).sum().grad(&[&seed]).unwrap().remove(0);
    assert_eq!(*product.value(), arr1(&[2.0, 4.0, 6.0]).into_dyn());
    let wrong = tape.constant(arr1(&[1.0]).into_dyn());
    assert!(matches!(tape.grad_seeded(&y, &wrong, &[&x]), Err(Error::TangentMisfit)));
}

#[test]
fn arrays_have_gradients_of_gradients() {
    type Function = fn(&Var<ArrayD<f64>>, &Var<ArrayD<f64>>) -> Result<Var<ArrayD<f64>>>;
    let functions: Vec<(&str, Function, &[usize], &[usize])> = vec![
        ("sub, broadcast row", |x, y| Ok(x - y), &[2, 3], &[3]),
        ("mul, broadcast column", |x, y| Ok(x * y), &[2, 3], &[2, 1]),
        ("div, both broadcast", |x, y| Ok(x / y), &[1, 3], &[2, 1]),
        ("scalar over array", |x, y| Ok(x / y), &[], &[4]),
        ("pow", |x, y| Ok(x.pow(y)), &[3], &[3]),
        ("max and hypot", |x, y| Ok(x.max(y) * x.hypot(y)), &[2, 2], &[2]),
        ("functions", |x, _| Ok((x.exp() + 1.0).ln().tanh().sqrt()), &[4], &[]),
        ("sum", |x, _| Ok(x.sum()), &[2, 3], &[]),
        ("mean", |x, _| Ok(x.mean()), &[2, 3], &[]),
        ("transpose", |x, y| Ok(x.t() * y), &[2, 3], &[3, 2]),
        ("reshape", |x, y| Ok(x.reshape(&[3, 2])? * y), &[2, 3], &[3, 2]),
        ("broadcast", |x, y| Ok(x.broadcast(&[4, 2, 3])? * y), &[2, 1], &[3]),
        ("sum to", |x, y| Ok(x.sum_to(&[3, 1])? * y), &[2, 3, 4], &[3, 1]),
        ("matrix by matrix", |x, y| x.dot(y), &[2, 3], &[3, 4]),
        ("matrix by vector", |x, y| x.dot(y), &[2, 3], &[3]),
        ("vector by matrix", |x, y| x.dot(y), &[3], &[3, 2]),
        ("vector by vector", |x, y| x.dot(y), &[3], &[3]),
    ];
    let mut random = Random(11);
    let mut any = |shape: &[usize]| ArrayD::from_shape_simple_fn(IxDyn(shape), || 0.5 + random.unit());
    for (name, function, x_shape, y_shape) in functions {
        let tape = Tape::<ArrayD<f64>>::new();
        let (x, y) = (tape.leaf(any(x_shape)), tape.leaf(any(y_shape)));
        let z = function(&(&x * 1.25), &y).unwrap();
        let loss = (&z * &z * &z).sum();
        let (dx, dy) = (any(x_shape), any(y_shape));
        let gradient = loss.grad(&[&x, &y]).unwrap();
        let directed = (&gradient[0] * &dx).sum() + (&gradient[1] * &dy).sum();
        let second = directed.pullback().unwrap();
        let hvp = tape.hvp(&loss, [(&x, dx), (&y, dy)]).unwrap();
        for leaf in [&x, &y] {
            let (found, expected) = (second.wrt(leaf).unwrap(), hvp.product.wrt(leaf).unwrap());
            assert_eq!(found.shape(), expected.shape(), "{name}");
            for (found, expected) in found.iter().zip(&expected) {
                assert!(
                    (found - expected).abs() <= 1e-11 * expected.abs().max(1.0),
                    "{name}: {found}, {expected}"
                );
            }
        }
    }
}

#[test]
fn a_rule_that_cannot_be_recorded_is_an_error_that_names_its_node() {
    let tape = Tape::<f64>::new();
    let x = tape.leaf(2.0);
    let square = tape.record_op(4.0, &[&x], rule_fn(|c: &f64| [4.0 * c])).unwrap();
    let error = square.grad(&[&x]).unwrap_err();
    assert!(matches!(error, Error::HigherOrderNotSupported { node } if Some(node) == square.node()));
    let of_closures =
        op(|x: &[Inline<f64>]| *x[0] * *x[0], |at: Point<'_, f64>, c: &f64| [2.0 * *at.inputs[0] * c]);
    let square = tape.apply(of_closures, &[&x]).unwrap();
    assert!(matches!(square.grad(&[&x]), Err(Error::HigherOrderNotSupported { .. })));
    // A first derivative needs no more than the rule.
    assert_eq!(square.pullback().unwrap().wrt(&x).unwrap(), 4.0);
}

#[test]
fn only_a_scalar_has_a_plain_gradient() {
    fn check<V: HigherOrder>() {}
    check::<f32>();
    check::<ArrayD<f32>>();
    let tape = Tape::<ArrayD<f64>>::new();
    let x = tape.leaf(arr1(&[1.0, 2.0]).into_dyn());
    assert!(matches!(x.sin().grad(&[&x]), Err(Error::NonScalarLoss { elements: 2 })));
    let detached = Var::<f64>::detached(1.0);
    assert!(matches!(detached.grad(&[]), Err(Error::MissingNode)));
}

#[test]
fn c71_a_long_chain_has_a_second_derivative_without_recursion() {
    let tape = Tape::<f64>::new();
    let x = tape.leaf(1e-3);
    let end = (0..100_000).fold(x.clone(), |z, _| z + 1e-9);
    let second = (&end * &end).grad(&[&x]).unwrap()[0].grad(&[&x]).unwrap();
    assert_eq!(*second[0].value(), 2.0);
}
