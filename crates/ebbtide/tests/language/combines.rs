//! `-=` combines into an element, as `+=` does.

use ebbtide::prelude::*;
use ebbtide_conformance::Input;
use expect_test::expect;

use crate::{differentiates, shaped, values, zero};

/// Forces of springs: each end is pulled the other way, at elements that data names.
#[program]
fn springs(
    x: &Array1<Vec2<f64>>,
    ends: &Array1<[i32; 2]>,
    f: &mut Array1<Vec2<f64>>,
    energy: &mut Array0<f64>,
) {
    for s in par(0..ends.len()) {
        let a = ends[s][0] as usize;
        let b = ends[s][1] as usize;
        let p = x[b] - x[a];
        f[a] += p;
        f[b] -= p;
        energy[[]] -= 0.5 * p.dot(p);
    }
}

#[test]
fn subtracting_is_adding_the_negative_also_as_a_scatter() {
    let program = springs();
    program.ir().unwrap();
    let text = program.to_string();
    let combines: Vec<&str> = text.lines().map(str::trim).filter(|line| line.contains("+=")).collect();
    expect![[r#"
        f[[a, 0]] += p.x;
        f[[a, 1]] += p.y;
        f[[b, 0]] += -p.x;
        f[[b, 1]] += -p.y;
        energy[[]] += -(0.5 * (p.x * p.x + p.y * p.y));"#]]
    .assert_eq(&combines.join("\n"));
    let ends =
        Input::Elements(vec![4, 2], [0i32, 1, 1, 2, 2, 0, 1, 0].map(ebbtide::ir::Literal::from).to_vec());
    let inputs = [Input::Array(vec![3, 2], 1), ends, Input::Array(vec![3, 2], 2), zero()];
    for of in ["f", "energy"] {
        differentiates(&springs(), &inputs, of, &["x", "f"]);
    }
    let moved = values(&springs(), &inputs, "f");
    let before = values(&nothing(), &inputs[2..3], "f");
    for k in 0..2 {
        let sum = |v: &[f64]| v[k] + v[2 + k] + v[4 + k];
        assert!((sum(&moved) - sum(&before)).abs() < 1e-14, "forces cancel");
    }
}

#[program]
fn nothing(f: &mut Array1<Vec2<f64>>) {
    for i in par(0..f.len()) {
        f[i] -= Vec2::new(0.0, 0.0);
    }
}

/// Every kind of element, whole and by components, in a loop of its own and one after the other.
#[program]
fn kinds(
    m: &mut Array1<Mat2<f64>>,
    a: &mut Array1<[f64; 3]>,
    k: &mut Array1<i32>,
    u: &mut Array0<u32>,
    x: &Array1<f64>,
) {
    for i in par(0..m.len()) {
        let c = k[i] as usize % 3;
        m[i] -= x[i] * Mat2::identity();
        m[i][[0, 1]] -= x[i];
        m[i][1] -= Vec2::new(x[i], 2.0);
        a[i][c] -= x[i] * m[i][[0, 1]];
        k[i] -= 7;
        u[[]] -= 3;
    }
    m[0] -= m[1];
}

#[test]
fn all_kinds_of_elements_are_subtracted_from() {
    let integers = |elements: &[i32]| {
        Input::Elements(
            vec![elements.len()],
            elements.iter().map(|k| ebbtide::ir::Literal::from(*k)).collect(),
        )
    };
    let one = Input::Elements(vec![], vec![ebbtide::ir::Literal::from(1u32)]);
    let inputs = [
        shaped(&[2, 2, 2], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]),
        shaped(&[2, 3], &[0.0; 6]),
        integers(&[4, 2]),
        one,
        shaped(&[2], &[1.0, 0.5]),
    ];
    let expected = [0.0 - 4.5, 1.0 - 5.5, 2.0 - 6.5, 1.0 - 5.5, 4.5, 5.5, 6.5, 5.5];
    assert_eq!(values(&kinds(), &inputs, "m"), expected);
    assert_eq!(values(&kinds(), &inputs, "k"), [-3.0, -5.0]);
    assert_eq!(values(&kinds(), &inputs, "u"), [f64::from(1u32.wrapping_sub(6))]);
    differentiates(&kinds(), &inputs, "a", &["m", "x"]);
    differentiates(&kinds(), &inputs, "m", &["m", "x"]);
}

#[program]
fn product_of_all(x: &Array1<f64>, p: &mut Array0<f64>) {
    for i in par(0..x.len()) {
        p[[]] *= x[i];
    }
}

#[test]
fn products_are_not_combined() {
    let error = product_of_all().ir().unwrap_err().to_string();
    assert!(error.contains("law 7") && error.contains("`p`"), "{error}");
}
