//! Programs and functions over any float type.

use ebbtide::prelude::*;
use expect_test::expect;

use crate::check;

#[func]
fn logistic<T: Float>(x: T) -> T {
    let one = T::of(1.0);
    one / (one + (-x).exp())
}

#[program]
fn advance<T: Float>(x: &mut Array1<T>, rate: T, steps: usize) {
    let half = T::of(0.5);
    for t in 0..steps {
        for i in par(0..x.len()) {
            x[i] += rate * logistic(x[i]) * half + T::of(t as f64 * 0.25);
        }
    }
}

#[program]
fn twice(x: &mut Array1<f32>, y: &mut Array1<f64>) {
    advance(x, 0.5, 2);
    advance::<f64>(y, 0.25, 1);
}

#[test]
fn a_generic_program_is_built_for_each_type() {
    check(
        advance::<f32>(),
        expect![[r#"
        program advance(x: &mut Array1<f32>, rate: f32, steps: usize) {
            for t in 0..steps {
                for i in par(0..x.len()) {
                    x[i] += rate * (1.0f32 / (1.0f32 + (-x[i]).exp())) * 0.5f32 + (t as f64 * 0.25) as f32;
                }
            }
        }
    "#]],
    );
    check(
        advance::<f64>(),
        expect![[r#"
        program advance(x: &mut Array1<f64>, rate: f64, steps: usize) {
            for t in 0..steps {
                for i in par(0..x.len()) {
                    x[i] += rate * (1.0 / (1.0 + (-x[i]).exp())) * 0.5 + t as f64 * 0.25;
                }
            }
        }
    "#]],
    );
    let name: Name<Array1<f32>> = advance::<f32>::x;
    assert_eq!(name.as_str(), "x");
}

#[test]
fn a_program_calls_a_generic_one_with_several_types() {
    check(
        twice(),
        expect![[r#"
        program twice(x: &mut Array1<f32>, y: &mut Array1<f64>) {
            /* advance */ {
                for t in 0..2 {
                    for i in par(0..x.len()) {
                        x[i] += 0.5f32 * (1.0f32 / (1.0f32 + (-x[i]).exp())) * 0.5f32 + (t as f64 * 0.25) as f32;
                    }
                }
            }
            /* advance */ {
                for t_2 in 0..1 {
                    for i_2 in par(0..y.len()) {
                        y[i_2] += 0.25 * (1.0 / (1.0 + (-y[i_2]).exp())) * 0.5 + t_2 as f64 * 0.25;
                    }
                }
            }
        }
    "#]],
    );
}

#[program]
fn with_constant<const N: usize>(x: &mut Array1<f64>) {
    for k in 0..N {
        x[k] = N as f64;
    }
}

#[test]
fn constants_may_be_parameters_of_types() {
    check(
        with_constant::<3>(),
        expect![[r#"
        program with_constant(x: &mut Array1<f64>) {
            for k in 0..3 {
                x[k] = 3 as f64;
            }
        }
    "#]],
    );
}

#[test]
fn generic_functions_stay_plain_rust() {
    assert_eq!(logistic(0.0f32), 0.5);
    assert_eq!(logistic(0.0f64), 0.5);
}

fn names_of<T: Float>() -> (String, &'static str) {
    let program = advance::<T>();
    (program.to_string(), program.name())
}

#[test]
fn generic_code_uses_generic_programs() {
    let (text, name) = names_of::<f32>();
    assert!(text.contains("Array1<f32>"), "{text}");
    assert_eq!(name, "advance");
}
