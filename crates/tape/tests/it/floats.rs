//! Single precision, and operators between tracked values, plain numbers and plain arrays.

use ebbtide_tape::{Mode, Tape, Var, with_mode};
use ndarray::{ArrayD, arr1};

type Function<T> = fn(&Var<T>, &Var<T>) -> Var<T>;

macro_rules! functions {
    ($($body:expr;)*) => {
        vec![$(($body as Function<f32>, $body as Function<f64>, stringify!($body))),*]
    };
}

#[test]
fn single_precision_agrees_with_double() {
    let functions = functions! {
        |x, y| x + y * x / (x - y * 0.25);
        |x, y| x.pow(y) + x.max(y) + x.min(y) + x.atan2(y) + x.hypot(y);
        |x, _| 2.0 / (1.0 - x * 3.0) + 4.0 - (2.0 + x) / 3.0;
        |x, y| x.sin() + y.cos() + x.tan() + y.exp() + x.ln();
        |x, y| x.sqrt() + y.tanh() + x.sinh() + y.cosh() + x.atan();
        |x, y| x.recip() + y.abs() + x.powi(3) + y.powf(1.7) - x;
    };
    for (single, double, text) in functions {
        for mode in [Mode::Off, Mode::Aggressive] {
            let (tape, wide) = (Tape::<f32>::new(), Tape::<f64>::new());
            let (x, y) = (tape.leaf(0.75), tape.leaf(1.25));
            let (u, v) = (wide.leaf(0.75), wide.leaf(1.25));
            let (loss, expected) = with_mode(mode, || (single(&x, &y), double(&u, &v)));
            let hvp = tape.hvp(&loss, [(&x, 0.5), (&y, -1.0)]).unwrap();
            let reference = wide.hvp(&expected, [(&u, 0.5), (&v, -1.0)]).unwrap();
            let near = |found: f32, expected: f64| {
                let error = (f64::from(found) - expected).abs();
                assert!(error <= 3e-5 * expected.abs().max(1.0), "{text}: {found} instead of {expected}");
            };
            near(*loss.value(), *expected.value());
            for (leaf, wide) in [(&x, &u), (&y, &v)] {
                near(hvp.gradients.wrt(leaf).unwrap(), reference.gradients.wrt(wide).unwrap());
                near(hvp.product.wrt(leaf).unwrap(), reference.product.wrt(wide).unwrap());
            }
            let gradient = loss.grad(&[&x]).unwrap().remove(0);
            near(*gradient.value(), reference.gradients.wrt(&u).unwrap());
        }
    }
}

#[test]
fn c73_single_precision_rounds_as_single_precision() {
    let tape = Tape::<f32>::new();
    let x = tape.leaf(0.1);
    assert_eq!(*(&x * 3.0).value(), 0.1f32 * 3.0);
    assert_eq!(*x.sin().value(), 0.1f32.sin());
    assert_eq!((x.sin().pullback().unwrap()).wrt(&x).unwrap(), 0.1f32.cos());
}

#[test]
fn c73_plain_numbers_on_either_side_need_no_annotation() {
    let tape = Tape::<f32>::new();
    let x = tape.leaf(2.0);
    let y = (1.0 + (2.0 * &x).sin() * 3.0 - 1.0).exp();
    let constant: f32 = 0.5;
    assert_eq!(*(&y * constant).value(), y.value() * 0.5);
    assert_eq!(*(constant / y.clone()).value(), 0.5 / y.value());
}

#[test]
fn plain_arrays_are_constants() {
    let tape = Tape::<ArrayD<f64>>::new();
    let x = tape.leaf(arr1(&[1.0, 2.0]).into_dyn());
    let c = arr1(&[3.0, 4.0]).into_dyn();
    let nodes = tape.len();
    let loss = (&x * &c + &c / &x - &c * (&x - &c)).sum();
    assert!(tape.len() > nodes);
    let gradient = loss.pullback().unwrap().wrt(&x).unwrap();
    assert_eq!(gradient, arr1(&[3.0 - 3.0 - 3.0, 4.0 - 1.0 - 4.0]).into_dyn());
    let odd = arr1(&[1.0, 2.0, 3.0]).into_dyn();
    assert!((&x + &odd).sum().pullback().unwrap_err().to_string().contains("[3]"));
}

#[test]
fn arrays_of_single_precision_have_all_derivatives() {
    let tape = Tape::<ArrayD<f32>>::new();
    let w = tape.leaf(ArrayD::from_shape_fn(vec![2, 3], |k| 0.1 + 0.2 * (k[0] + 2 * k[1]) as f32));
    let x = tape.leaf(arr1(&[0.5, -1.0, 2.0]).into_dyn());
    let h = w.dot(&x).unwrap().tanh() * 2.0 + 1.0;
    let loss = (&h * &h).mean();
    let gradients = loss.pullback().unwrap();
    let step = 1e-2f32;
    let value = |dx: f32| {
        let mut moved = x.value().clone();
        moved[1] += dx;
        let tape = Tape::<ArrayD<f32>>::new();
        let h = tape.constant(w.share()).dot(&tape.leaf(moved)).unwrap().tanh() * 2.0 + 1.0;
        (&h * &h).mean().value().sum()
    };
    let expected = (value(step) - value(-step)) / (2.0 * step);
    let found = gradients.wrt(&x).unwrap()[1];
    assert!((found - expected).abs() < 1e-3 * expected.abs(), "{found} instead of {expected}");
    let second = (loss.grad(&[&x]).unwrap().remove(0) * 1.0).sum().pullback().unwrap().wrt(&x).unwrap();
    let hvp = tape.hvp(&loss, [(&x, ArrayD::ones(vec![3]))]).unwrap().product.wrt(&x).unwrap();
    for (a, b) in second.iter().zip(&hvp) {
        assert!((a - b).abs() < 1e-5 * b.abs().max(1.0), "{a} and {b}");
    }
}
