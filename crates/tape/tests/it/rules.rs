//! Every rule of tracked `f64` against finite differences and the dot-product identity.

use ebbtide_tape::{Mode, Tape, Var, with_mode};

type Function = fn(&Var<f64>, &Var<f64>) -> Var<f64>;

/// Each function at a point where it is smooth.
fn functions() -> Vec<(&'static str, Function, [f64; 2])> {
    vec![
        ("add", |x, y| x + y, [0.7, 1.3]),
        ("sub", |x, y| x - y, [0.7, 1.3]),
        ("mul", |x, y| x * y, [0.7, 1.3]),
        ("div", |x, y| x / y, [0.7, 1.3]),
        ("pow", |x, y| x.pow(y), [0.7, 1.3]),
        ("max", |x, y| x.max(y), [0.7, 1.3]),
        ("min", |x, y| x.min(y), [0.7, 1.3]),
        ("atan2", |x, y| x.atan2(y), [0.7, 1.3]),
        ("hypot", |x, y| x.hypot(y), [0.7, 1.3]),
        ("neg", |x, _| -x, [0.7, 0.0]),
        ("plus", |x, _| x + 2.5, [0.7, 0.0]),
        ("plus of a constant", |x, _| 2.5 + x, [0.7, 0.0]),
        ("less", |x, _| x - 2.5, [0.7, 0.0]),
        ("subtract from", |x, _| 2.5 - x, [0.7, 0.0]),
        ("times", |x, _| x * 2.5, [0.7, 0.0]),
        ("over", |x, _| x / 2.5, [0.7, 0.0]),
        ("divide into", |x, _| 2.5 / x, [0.7, 0.0]),
        ("sin", |x, _| x.sin(), [0.7, 0.0]),
        ("cos", |x, _| x.cos(), [0.7, 0.0]),
        ("tan", |x, _| x.tan(), [0.7, 0.0]),
        ("exp", |x, _| x.exp(), [0.7, 0.0]),
        ("ln", |x, _| x.ln(), [0.7, 0.0]),
        ("sqrt", |x, _| x.sqrt(), [0.7, 0.0]),
        ("tanh", |x, _| x.tanh(), [0.7, 0.0]),
        ("sinh", |x, _| x.sinh(), [0.7, 0.0]),
        ("cosh", |x, _| x.cosh(), [0.7, 0.0]),
        ("atan", |x, _| x.atan(), [0.7, 0.0]),
        ("recip", |x, _| x.recip(), [0.7, 0.0]),
        ("abs", |x, _| x.abs(), [-0.7, 0.0]),
        ("powi", |x, _| x.powi(3), [0.7, 0.0]),
        ("powi, negative", |x, _| x.powi(-2), [0.7, 0.0]),
        ("powf", |x, _| x.powf(1.7), [0.7, 0.0]),
        ("a mix of owned operands", |x, y| (x + y) * (x - y) / (x.clone() * y.clone()) - 1.0, [0.7, 1.3]),
    ]
}

/// Value, gradient and Hessian times direction, of a function followed by a cube, so that the rule sees
/// cotangents and tangents that are not one.
fn derivatives(
    function: Function,
    at: [f64; 2],
    direction: [f64; 2],
    mode: Mode,
) -> (f64, [f64; 2], [f64; 2]) {
    let tape = Tape::new();
    let (x, y) = (tape.leaf(at[0]), tape.leaf(at[1]));
    let loss = with_mode(mode, || {
        let z = function(&(&x * 1.5), &y);
        &z * &z * &z
    });
    let hvp = tape.hvp(&loss, [(&x, direction[0]), (&y, direction[1])]).unwrap();
    let both = |g: &ebbtide_tape::Gradients<f64>| [g.wrt(&x).unwrap(), g.wrt(&y).unwrap()];
    (*loss.value(), both(&hvp.gradients), both(&hvp.product))
}

#[test]
fn first_and_second_derivatives_agree_with_finite_differences() {
    let direction = [0.6, -0.8];
    for (name, function, at) in functions() {
        let moved = |t: f64| [at[0] + t * direction[0], at[1] + t * direction[1]];
        let step = 1e-5;
        let (_, gradient, product) = derivatives(function, at, direction, Mode::Off);
        let after = derivatives(function, moved(step), direction, Mode::Off);
        let before = derivatives(function, moved(-step), direction, Mode::Off);
        let slope = (after.0 - before.0) / (2.0 * step);
        let exact = gradient[0] * direction[0] + gradient[1] * direction[1];
        assert!((slope - exact).abs() < 1e-8 * exact.abs().max(1.0), "{name}: {slope} instead of {exact}");
        for i in 0..2 {
            let change = (after.1[i] - before.1[i]) / (2.0 * step);
            assert!(
                (change - product[i]).abs() < 1e-7 * product[i].abs().max(1.0),
                "{name}, second order: {change} instead of {}",
                product[i]
            );
        }
    }
}

#[test]
fn checkpointed_rules_give_the_same_bits() {
    for (name, function, at) in functions() {
        let [retained, checkpointed] =
            [Mode::Off, Mode::Aggressive].map(|mode| derivatives(function, at, [0.6, -0.8], mode));
        assert_eq!(retained, checkpointed, "{name}");
    }
}

/// The Hessian is symmetric: ⟨H u, v⟩ = ⟨u, H v⟩, where the left side's forward and the right side's reverse
/// halves of each rule trade places.
#[test]
fn forward_and_reverse_halves_satisfy_the_dot_product_identity() {
    let (u, v) = ([0.3, 0.9], [-0.5, 0.4]);
    for (name, function, at) in functions() {
        let hu = derivatives(function, at, u, Mode::Off).2;
        let hv = derivatives(function, at, v, Mode::Off).2;
        let (left, right) = (hu[0] * v[0] + hu[1] * v[1], u[0] * hv[0] + u[1] * hv[1]);
        let scale = hu[0].hypot(hu[1]).max(hv[0].hypot(hv[1])).max(1e-300);
        assert!((left - right).abs() <= 1e-12 * scale, "{name}: {left} and {right}");
    }
}

#[test]
fn kinks_have_the_documented_derivative() {
    let tape = Tape::<f64>::new();
    let (x, y) = (tape.leaf(0.0), tape.leaf(0.0));
    assert_eq!(x.abs().pullback().unwrap().wrt(&x).unwrap(), 0.0);
    let gradients = x.max(&y).pullback().unwrap();
    assert_eq!((gradients.wrt(&x).unwrap(), gradients.wrt(&y).unwrap()), (1.0, 0.0));
    assert_eq!(x.powi(0).pullback().unwrap().wrt(&x).unwrap(), 0.0);
    assert_eq!(x.powi(1).pullback().unwrap().wrt(&x).unwrap(), 1.0);
    let gradients = x.hypot(&y).pullback().unwrap();
    assert_eq!((gradients.wrt(&x).unwrap(), gradients.wrt(&y).unwrap()), (0.0, 0.0));
    // 0^0 is flat along its base, 0^2 along both.
    assert_eq!(x.pow(&y).pullback().unwrap().wrt(&x).unwrap(), 0.0);
    let two = tape.leaf(2.0);
    let gradients = x.pow(&two).pullback().unwrap();
    assert_eq!((gradients.wrt(&x).unwrap(), gradients.wrt(&two).unwrap()), (0.0, 0.0));
}

/// A function, where, its derivatives along x and y, and its second ones along xx, xy and yy.
type Extreme = (&'static str, Function, [f64; 2], [f64; 2], [f64; 3]);

#[test]
fn derivatives_are_right_where_squares_overflow_or_vanish() {
    let big = [3e200, 4e200];
    let small = [3e-200, 4e-200];
    let cases: [Extreme; 9] = [
        ("atan2, big", |x, y| x.atan2(y), big, [1.6e-201, -1.2e-201], [0.0; 3]),
        (
            "atan2, small",
            |x, y| x.atan2(y),
            small,
            [1.6e199, -1.2e199],
            [f64::NEG_INFINITY, f64::NEG_INFINITY, f64::INFINITY],
        ),
        (
            "atan2, its squares big",
            |x, y| x.atan2(y),
            [3e100, 4e100],
            [1.6e-101, -1.2e-101],
            [-3.84e-202, -1.12e-202, 3.84e-202],
        ),
        (
            "atan2, its squares small",
            |x, y| x.atan2(y),
            [3e-100, 4e-100],
            [1.6e99, -1.2e99],
            [-3.84e198, -1.12e198, 3.84e198],
        ),
        ("hypot, big", |x, y| x.hypot(y), big, [0.6, 0.8], [1.28e-201, -9.6e-202, 7.2e-202]),
        ("hypot, small", |x, y| x.hypot(y), small, [0.6, 0.8], [1.28e199, -9.6e198, 7.2e198]),
        ("a quotient", |x, y| x / y, [1e-300, 1e-200], [1e200, -1e100], [0.0, f64::NEG_INFINITY, 2e300]),
        ("a quotient, its cubes small", |x, y| x / y, [1e-300, 1e-120], [1e120, -1e-60], [0.0, -1e240, 2e60]),
        ("atan", |x, _| x.atan(), [1e100, 0.0], [1e-200, 0.0], [-2e-300, 0.0, 0.0]),
    ];
    for (name, function, at, first, [xx, xy, yy]) in cases {
        let tape = Tape::new();
        let (x, y) = (tape.leaf(at[0]), tape.leaf(at[1]));
        let z = function(&x, &y);
        let both = |g: &ebbtide_tape::Gradients<f64>| [g.wrt(&x).unwrap(), g.wrt(&y).unwrap()];
        let near = |found: [f64; 2], expected: [f64; 2]| {
            let close = |k: usize| {
                found[k] == expected[k] || (found[k] - expected[k]).abs() <= 1e-14 * expected[k].abs()
            };
            assert!(close(0) && close(1), "{name}: {found:?} instead of {expected:?}");
        };
        near(both(&z.pullback().unwrap()), first);
        near(both(&tape.hvp(&z, [(&x, 1.0)]).unwrap().product), [xx, xy]);
        near(both(&tape.hvp(&z, [(&y, 1.0)]).unwrap().product), [xy, yy]);
    }
}
