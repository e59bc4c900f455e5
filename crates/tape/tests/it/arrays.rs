//! Every rule of tracked arrays against finite differences and the dot-product identity.

use ebbtide_tape::{Error, Gradients, Mode, Result, Tape, Var, with_mode};
use ndarray::{ArrayD, Dimension, IxDyn};

use crate::support::Random;

type Array = ArrayD<f64>;
type Function = fn(&Var<Array>, &Var<Array>) -> Result<Var<Array>>;

fn random_array(random: &mut Random, shape: &[usize]) -> Array {
    ArrayD::from_shape_simple_fn(IxDyn(shape), || 0.5 + random.unit())
}

/// Each operation with the shapes of its inputs.
fn functions() -> Vec<(&'static str, Function, &'static [usize], &'static [usize])> {
    vec![
        ("add", |x, y| Ok(x + y), &[2, 3], &[2, 3]),
        ("sub, broadcast row", |x, y| Ok(x - y), &[2, 3], &[3]),
        ("mul, broadcast column", |x, y| Ok(x * y), &[2, 3], &[2, 1]),
        ("div, both broadcast", |x, y| Ok(x / y), &[1, 3], &[2, 1]),
        ("mul by a scalar", |x, y| Ok(x * y), &[2, 3], &[]),
        ("scalar over array", |x, y| Ok(x / y), &[], &[4]),
        ("pow", |x, y| Ok(x.pow(y)), &[3], &[3]),
        ("max", |x, y| Ok(x.max(y)), &[5], &[5]),
        ("atan2", |x, y| Ok(x.atan2(y)), &[2, 2], &[2]),
        ("constants", |x, _| Ok(2.0 / (1.0 - x * 3.0) + 4.0), &[2, 3], &[]),
        ("sin", |x, _| Ok(x.sin()), &[2, 3], &[]),
        ("exp ln tanh sqrt", |x, _| Ok((x.exp() + 1.0).ln().tanh().sqrt()), &[4], &[]),
        ("powi", |x, _| Ok(-x.powi(3)), &[4], &[]),
        ("sum", |x, _| Ok(x.sum()), &[2, 3], &[]),
        ("mean", |x, _| Ok(x.mean()), &[2, 3], &[]),
        ("transpose", |x, y| Ok(x.t() * y), &[2, 3], &[3, 2]),
        ("reshape", |x, y| Ok(x.reshape(&[3, 2])? * y), &[2, 3], &[3, 2]),
        ("broadcast", |x, y| Ok(x.broadcast(&[4, 2, 3])? * y), &[2, 1], &[3]),
        ("matrix by matrix", |x, y| x.dot(y), &[2, 3], &[3, 4]),
        ("matrix by vector", |x, y| x.dot(y), &[2, 3], &[3]),
        ("vector by matrix", |x, y| x.dot(y), &[3], &[3, 2]),
        ("vector by vector", |x, y| x.dot(y), &[3], &[3]),
    ]
}

struct Derivatives {
    loss: f64,
    gradient: [Array; 2],
    product: [Array; 2],
}

/// A function of two arrays, followed by a sum of weighted squares.
fn derivatives(function: Function, at: &[Array; 2], direction: &[Array; 2], mode: Mode) -> Derivatives {
    let tape = Tape::new();
    let [x, y] = at.clone().map(|value| tape.leaf(value));
    let loss = with_mode(mode, || {
        let z = function(&(&x * 1.25), &y).unwrap();
        let weights = ArrayD::from_shape_fn(z.value().raw_dim(), |i| {
            1.0 + (0..i.ndim()).map(|k| i[k]).sum::<usize>() as f64
        });
        (&z * &z * &tape.constant(weights)).sum()
    });
    let hvp = tape.hvp(&loss, [(&x, direction[0].clone()), (&y, direction[1].clone())]).unwrap();
    let both = |g: &Gradients<Array>| [g.wrt(&x).unwrap(), g.wrt(&y).unwrap()];
    Derivatives { loss: loss.value().sum(), gradient: both(&hvp.gradients), product: both(&hvp.product) }
}

fn inner(x: &[Array; 2], y: &[Array; 2]) -> f64 {
    (0..2).map(|i| (&x[i] * &y[i]).sum()).sum()
}

fn moved(at: &[Array; 2], direction: &[Array; 2], step: f64) -> [Array; 2] {
    [0, 1].map(|i| &at[i] + &(&direction[i] * step))
}

#[test]
fn first_and_second_derivatives_agree_with_finite_differences() {
    let mut random = Random(0x5eed_0004);
    for (name, function, first, second) in functions() {
        let [at, direction, test] =
            [(); 3].map(|()| [first, second].map(|shape| random_array(&mut random, shape)));
        let exact = derivatives(function, &at, &direction, Mode::Off);
        let step = 1e-5;
        let after = derivatives(function, &moved(&at, &direction, step), &direction, Mode::Off);
        let before = derivatives(function, &moved(&at, &direction, -step), &direction, Mode::Off);
        let slope = (after.loss - before.loss) / (2.0 * step);
        let expected = inner(&exact.gradient, &direction);
        assert!((slope - expected).abs() < 1e-7 * expected.abs().max(1.0), "{name}: {slope}, {expected}");
        let change = (inner(&after.gradient, &test) - inner(&before.gradient, &test)) / (2.0 * step);
        let expected = inner(&exact.product, &test);
        assert!((change - expected).abs() < 1e-7 * expected.abs().max(1.0), "{name}: {change}, {expected}");
        for i in 0..2 {
            assert_eq!(exact.gradient[i].shape(), at[i].shape(), "{name}");
            assert_eq!(exact.product[i].shape(), at[i].shape(), "{name}");
        }
    }
}

#[test]
fn checkpointed_rules_give_the_same_bits() {
    let mut random = Random(0x5eed_0005);
    for (name, function, first, second) in functions() {
        let [at, direction] = [(); 2].map(|()| [first, second].map(|shape| random_array(&mut random, shape)));
        let [retained, checkpointed] =
            [Mode::Off, Mode::Aggressive].map(|mode| derivatives(function, &at, &direction, mode));
        assert_eq!(retained.gradient, checkpointed.gradient, "{name}");
        assert_eq!(retained.product, checkpointed.product, "{name}");
    }
}

/// The Hessian is symmetric, to rounding.
#[test]
fn forward_and_reverse_halves_satisfy_the_dot_product_identity() {
    let mut random = Random(0x5eed_0006);
    for (name, function, first, second) in functions() {
        let [at, u, v] = [(); 3].map(|()| [first, second].map(|shape| random_array(&mut random, shape)));
        let hu = derivatives(function, &at, &u, Mode::Off).product;
        let hv = derivatives(function, &at, &v, Mode::Off).product;
        let (left, right) = (inner(&hu, &v), inner(&u, &hv));
        let scale = (inner(&hu, &hu) * inner(&v, &v)).sqrt();
        assert!((left - right).abs() <= 1e-12 * scale.max(1e-3), "{name}: {left} and {right}");
    }
}

#[test]
fn shapes_that_do_not_go_together_are_errors() {
    let tape = Tape::<Array>::new();
    let x = tape.leaf(ArrayD::zeros(IxDyn(&[2, 3])));
    let y = tape.leaf(ArrayD::zeros(IxDyn(&[2, 4])));
    assert!(matches!(x.dot(&y), Err(Error::Forward(_))));
    assert!(matches!(x.reshape(&[5]), Err(Error::Forward(_))));
    assert!(matches!(x.broadcast(&[2]), Err(Error::Forward(_))));
    let sum = (&x + &y).sum();
    let error = sum.pullback().unwrap_err();
    assert!(error.to_string().contains("[2, 3] and [2, 4]"), "{error}");
    assert!(matches!(x.pullback(), Err(Error::NonScalarLoss { elements: 6 })));
    assert!(tape.pullback_seeded(&x.sin(), ArrayD::zeros(IxDyn(&[7]))).is_err());
}

#[test]
fn a_byte_budget_counts_the_elements_of_arrays() {
    let tape = Tape::<Array>::checked();
    let x = tape.leaf(ArrayD::from_elem(IxDyn(&[1000]), 0.5));
    let loss = with_mode(Mode::Aggressive, || {
        let mut y = &x * 1.0;
        for _ in 0..50 {
            y = y.sin() * 1.01;
        }
        y.sum()
    });
    let free = loss.pullback().unwrap();
    let limited = tape.sweep().bytes(40_000).pullback(&loss).unwrap();
    assert_eq!(free.get(&x), limited.get(&x));
    assert!(limited.counts().peak_bytes <= 40_000);
}

type Shaped = fn(&Var<Array>) -> Var<Array>;

#[test]
fn a_seed_or_direction_of_another_shape_is_an_error() {
    let tape = Tape::<Array>::new();
    let x = tape.leaf(ArrayD::zeros(vec![2, 3]));
    let functions: [Shaped; 4] =
        [|x| x.clone(), |x| x.t(), |x| x.broadcast(&[4, 2, 3]).unwrap(), |x| x.sin()];
    for (k, function) in functions.into_iter().enumerate() {
        let y = function(&x);
        let fitting = ArrayD::zeros(y.value().raw_dim());
        assert!(tape.pullback_seeded(&y, fitting).is_ok(), "function {k}");
        for shape in [vec![6], vec![], vec![7, 7]] {
            let seeded = tape.pullback_seeded(&y, ArrayD::zeros(shape.clone()));
            assert!(
                matches!(&seeded, Err(Error::NotATangent { node }) if Some(*node) == y.node()),
                "function {k}, {shape:?}: {seeded:?}"
            );
            let product = tape.hvp(&y.sum(), [(&x, ArrayD::zeros(shape.clone()))]);
            assert!(matches!(product, Err(Error::NotATangent { .. })), "function {k}, {shape:?}");
        }
    }
}
