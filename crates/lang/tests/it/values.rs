//! Small values: what `ir` sees of them are their components, in arrays as last dimensions.

use ebbtide_lang::emit::*;
use ebbtide_lang::{Arg, ArrayHandle, ByMut, ByRef, Expr, Field, Vec3};
use ebbtide_runtime::{Array1, Array2, interpreter};
use expect_test::expect;

use crate::{at, launch, source, text};

source!(Turn, "turn", |cx| {
    let axis: ArrayHandle<Vec3<f64>, 1, ByRef> = <Array1<Vec3<f64>> as Field>::declare(cx, "axis");
    let out: ArrayHandle<Vec3<f64>, 1, ByMut> = <Array1<Vec3<f64>> as Field>::declare(cx, "out");
    let lengths: ArrayHandle<f64, 1, ByMut> = <Array1<f64> as Field>::declare(cx, "lengths");
    let about: Expr<Vec3<f64>> = scalar(cx, "about");
    let (zero, n) = (at(cx, 0), len(cx, axis));
    let [i] = begin_par(cx, ["i"], [(zero, n)]);
    let v = load(cx, [i], axis);
    let turned = cross(cx, about, v);
    store(cx, [i], writable(out), turned);
    let length = dot(cx, turned, v);
    store(cx, [i], writable(lengths), length);
    end_par(cx);
});

#[test]
fn vectors_are_their_components() {
    expect![[r#"
        program turn(axis: &Array2<f64>, out: &mut Array2<f64>, lengths: &mut Array1<f64>, about.x: f64, about.y: f64, about.z: f64) {
            for i in par(0..axis.dim(0)) {
                let v9 = axis[[i, 0]];
                let v10 = axis[[i, 1]];
                let v11 = axis[[i, 2]];
                let v14 = about.y * v11 - about.z * v10;
                let v17 = about.z * v9 - about.x * v11;
                let v20 = about.x * v10 - about.y * v9;
                out[[i, 0]] = v14;
                out[[i, 1]] = v17;
                out[[i, 2]] = v20;
                lengths[i] = v14 * v9 + v17 * v10 + v20 * v11;
            }
        }
    "#]].assert_eq(&text::<Turn>());
    let device = interpreter();
    let axis = device.array_with_shape([2, 3], &[1.0, 0.0, 0.0, 0.0, 2.0, 1.0]).unwrap();
    let mut out = device.zeros::<f64, 2>([2, 3]).unwrap();
    let mut lengths = device.array(&[7.0, 7.0]).unwrap();
    let about = [0.0, 0.0, 1.0].map(|x: f64| Arg::Scalar(x.into()));
    let arrays = vec![Arg::Read(axis.any()), Arg::Write(out.any_mut()), Arg::Write(lengths.any_mut())];
    launch::<Turn>(&device, arrays.into_iter().chain(about).collect()).unwrap();
    assert_eq!(out.to_vec(), [0.0, 1.0, 0.0, -2.0, 0.0, 0.0]);
    assert_eq!(lengths.to_vec(), [0.0, 0.0]);
}

source!(Mixed, "mixed", |cx| {
    let counts: ArrayHandle<i32, 1, ByRef> = <Array1<i32> as Field>::declare(cx, "counts");
    let shares: ArrayHandle<f32, 2, ByMut> = <Array2<f32> as Field>::declare(cx, "shares");
    let (zero, rows, columns) = (at(cx, 0), dim(cx, shares, 0), dim(cx, shares, 1));
    let [i, j] = begin_par(cx, ["i", "j"], [(zero, rows), (zero, columns)]);
    let count = load(cx, [i], counts);
    let share: Expr<f32> = cast(cx, count);
    let place: Expr<f32> = cast(cx, j);
    let value = mul_add(cx, share, lit(cx, 0.5f32), place);
    store(cx, [i, j], writable(shares), value);
    end_par(cx);
});

#[test]
fn types_are_those_of_rust() {
    expect![[r#"
        program mixed(counts: &Array1<i32>, shares: &mut Array2<f32>) {
            for (i, j) in par(0..shares.dim(0), 0..shares.dim(1)) {
                shares[[i, j]] = (counts[i] as f32).mul_add(0.5f32, j as f32);
            }
        }
    "#]]
    .assert_eq(&text::<Mixed>());
    let device = interpreter();
    let counts = device.array(&[2i32, -4]).unwrap();
    let mut shares = device.zeros::<f32, 2>([2, 3]).unwrap();
    launch::<Mixed>(&device, vec![Arg::Read(counts.any()), Arg::Write(shares.any_mut())]).unwrap();
    assert_eq!(shares.to_vec(), [1.0, 2.0, 3.0, -2.0, -1.0, 0.0]);
}
