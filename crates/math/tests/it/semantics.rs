//! Special values, and what the interface promises.

use ebbtide_math::c::{Dialect, Item, Shape, library};
use ebbtide_math::{
    Format, Function, Kernel, MathError, Native32, Native64, powi_constant, powi_f32, powi_f64,
};

use crate::samples;

fn same_f64(a: f64, b: f64) -> bool {
    a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan())
}

#[test]
fn powf_follows_the_table_of_special_cases() {
    let (inf, nan) = (f64::INFINITY, f64::NAN);
    let table = [
        (nan, 0.0, 1.0),
        (nan, -0.0, 1.0),
        (1.0, nan, 1.0),
        (1.0, inf, 1.0),
        (-1.0, inf, 1.0),
        (-1.0, -inf, 1.0),
        (-1.0, nan, nan),
        (nan, 1.0, nan),
        (0.0, 3.0, 0.0),
        (-0.0, 3.0, -0.0),
        (-0.0, 2.0, 0.0),
        (-0.0, 2.5, 0.0),
        (0.0, -3.0, inf),
        (-0.0, -3.0, -inf),
        (-0.0, -2.0, inf),
        (0.0, -inf, inf),
        (0.5, -inf, inf),
        (2.0, -inf, 0.0),
        (0.5, inf, 0.0),
        (2.0, inf, inf),
        (-2.0, inf, inf),
        (-inf, 3.0, -inf),
        (-inf, 2.0, inf),
        (-inf, 0.5, inf),
        (-inf, -3.0, -0.0),
        (-inf, -0.5, 0.0),
        (inf, 0.5, inf),
        (inf, -0.5, 0.0),
        (-2.0, 0.5, nan),
        (-2.0, 3.0, -8.0),
        (-2.0, -1.0, -0.5),
        (-2.0, 9007199254740993.0, inf),
        (-0.5, 9007199254740991.0, -0.0),
    ];
    for (x, y, expected) in table {
        let double = Function::Powf.eval_f64(&[x, y]).unwrap();
        assert!(same_f64(double, expected), "{x}^{y} = {double}, not {expected}");
        // The last row's exponent is even as an f32.
        if y != 9007199254740991.0 {
            let single = Function::Powf.eval_f32(&[x as f32, y as f32]).unwrap();
            assert!(same_f64(single.into(), expected), "{x}^{y} = {single}, not {expected}, in f32");
        }
    }
}

#[test]
fn nan_gives_nan_except_where_documented() {
    for function in Function::ALL {
        if matches!(function, Function::Min | Function::Max) {
            continue;
        }
        let args = [f64::NAN; 2];
        assert!(function.eval_f64(&args[..function.arity()]).unwrap().is_nan(), "{function} of NaN in f64");
        let args = [f32::NAN; 2];
        assert!(function.eval_f32(&args[..function.arity()]).unwrap().is_nan(), "{function} of NaN in f32");
    }
    for (x, y) in [(f64::NAN, 2.0), (2.0, f64::NAN)] {
        assert!(Function::Atan2.eval_f64(&[x, y]).unwrap().is_nan());
        assert!(Function::Hypot.eval_f64(&[x, y]).unwrap().is_nan());
        assert_eq!(Function::Min.eval_f64(&[x, y]).unwrap(), 2.0);
        assert_eq!(Function::Max.eval_f64(&[x, y]).unwrap(), 2.0);
    }
    assert_eq!(Function::Hypot.eval_f64(&[f64::NAN, f64::NEG_INFINITY]).unwrap(), f64::INFINITY);
}

#[test]
fn min_and_max_order_the_zeros() {
    for (a, b) in [(0.0, -0.0), (-0.0, 0.0)] {
        assert!(Function::Min.eval_f64(&[a, b]).unwrap().is_sign_negative());
        assert!(Function::Max.eval_f64(&[a, b]).unwrap().is_sign_positive());
    }
}

#[test]
fn exact_results_are_exact() {
    for k in -1074..1024 {
        let power = f64::from_bits(if k < -1022 { 1 << (k + 1074) } else { ((k + 1023) as u64) << 52 });
        assert_eq!(Function::Exp2.eval_f64(&[f64::from(k)]).unwrap(), power, "2^{k}");
        assert_eq!(Function::Log2.eval_f64(&[power]).unwrap(), f64::from(k), "log2(2^{k})");
    }
    for n in 0..20_000 {
        let n = f64::from(n);
        assert_eq!(Function::Cbrt.eval_f64(&[n * n * n]).unwrap(), n);
        assert_eq!(Function::Hypot.eval_f64(&[3.0 * n, -4.0 * n]).unwrap(), 5.0 * n);
    }
    for (function, at, value) in [
        (Function::Exp, 0.0, 1.0),
        (Function::Ln, 1.0, 0.0),
        (Function::Cos, 0.0, 1.0),
        (Function::Cosh, 0.0, 1.0),
        (Function::Acos, 1.0, 0.0),
        (Function::Tanh, 30.0, 1.0),
        (Function::Erf, 7.0, 1.0),
    ] {
        assert!(same_f64(function.eval_f64(&[at]).unwrap(), value), "{function}({at})");
    }
}

#[test]
fn odd_functions_are_odd_to_the_bit() {
    let odd = [
        Function::Sin,
        Function::Tan,
        Function::Asin,
        Function::Atan,
        Function::Sinh,
        Function::Tanh,
        Function::Cbrt,
        Function::Erf,
        Function::Round,
    ];
    for function in odd {
        for x in samples::special_f64().into_iter().chain(samples::any_f64(&mut samples::Random(5), 500)) {
            let (plus, minus) = (function.eval_f64(&[x]).unwrap(), function.eval_f64(&[-x]).unwrap());
            assert!(same_f64(plus, -minus), "{function}({x:e})");
        }
    }
}

#[test]
fn a_constant_integer_power_has_the_bits_of_a_variable_one() {
    let mut random = samples::Random(6);
    for x in samples::special_f64().into_iter().chain(samples::any_f64(&mut random, 300)) {
        for n in (-6..=6).chain([100, -1000, i32::MAX, i32::MIN, random.bits() as i32]) {
            assert!(same_f64(powi_constant(&mut Native64, x, n), powi_f64(x, n)), "{x:e}^{n}");
            let x = x as f32;
            let (constant, variable) = (powi_constant(&mut Native32, x, n), powi_f32(x, n));
            assert!(same_f64(constant.into(), variable.into()), "{x:e}^{n} in f32");
        }
    }
}

#[test]
fn names_are_unique_and_found_again() {
    for function in Function::ALL {
        assert_eq!(Function::from_name(function.name()), Some(function));
        assert_eq!(function.to_string(), function.name());
    }
    assert_eq!(Function::from_name("gamma"), None);
}

#[test]
fn wrong_requests_are_errors_that_say_what_is_right() {
    let error = Function::Powf.eval_f64(&[1.0]).unwrap_err();
    assert_eq!(error.to_string(), "powf takes 2 float and 0 integer arguments, but 1 and 0 were given");
    assert!(matches!(Function::Sin.eval_f32(&[]), Err(MathError::WrongArguments { floats: 0, .. })));
    assert!(matches!(Function::Tan.eval_f32(&[1.0, 2.0]), Err(MathError::WrongArguments { floats: 2, .. })));
    assert!(matches!(Kernel::Random.emit(&mut Native32, &[], &[1, 2]), Err(MathError::WrongFormat { .. })));
    assert!(matches!(Kernel::Powi.emit(&mut Native64, &[1.0], &[]), Err(MathError::WrongArguments { .. })));
    for lanes in [0, 3, 16, 1 << 40, usize::MAX] {
        assert_eq!(Shape::new(Format::F64, lanes), Err(MathError::WrongShape { lanes }));
    }
    let shape = Shape::new(Format::F64, 8).unwrap();
    let item = Item { kernel: Kernel::Function(Function::Exp), shape };
    assert_eq!(library(Dialect::Cuda, &[item]), Err(MathError::WrongShape { lanes: 8 }));
}
