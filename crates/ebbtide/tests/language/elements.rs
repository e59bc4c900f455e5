//! Arrays whose elements are vectors, matrices and arrays of a fixed length.

use ebbtide::prelude::*;
use ebbtide_conformance::{Input, element};
use expect_test::expect;

use crate::{differentiates, shaped, values, zero};

fn numbers(n: usize, seed: u64) -> Vec<f64> {
    (0..n).map(|k| element(ebbtide::ir::Type::F64, seed, k as u64).to_f64()).collect()
}

#[program]
fn turned(x: &Array1<Vec2<f64>>, m: &Array2<Mat2<f64>>, y: &mut Array1<Vec2<f64>>) {
    for i in par(0..x.len()) {
        y[i] = m[[i, 1]] * x[i];
        y[i].x += x[i].y;
        y[i].y *= 2.0;
        y[i] += x[(i + 1) % x.len()];
    }
}

#[test]
fn an_element_is_its_components_in_the_last_dimensions() {
    let program = turned();
    program.ir().unwrap();
    expect![[r#"
        program turned(x: &Array2<f64>, m: &Array4<f64>, y: &mut Array2<f64>) {
            for i in par(0..x.dim(0)) {
                let v16 = x[[i, 0]];
                let v17 = x[[i, 1]];
                let v23 = m[[i, 1, 1, 0]] * v16 + m[[i, 1, 1, 1]] * v17;
                y[[i, 0]] = m[[i, 1, 0, 0]] * v16 + m[[i, 1, 0, 1]] * v17;
                y[[i, 1]] = v23;
                let v28 = x[[i, 0]];
                y[[i, 0]] += x[[i, 1]];
                let v35 = y[[i, 0]];
                y[[i, 1]] = y[[i, 1]] * 2.0;
                let v43 = (i + 1) % x.dim(0);
                let v47 = x[[v43, 1]];
                y[[i, 0]] += x[[v43, 0]];
                y[[i, 1]] += v47;
            }
        }
    "#]]
    .assert_eq(&program.to_string());
    let inputs =
        [Input::Array(vec![3, 2], 1), Input::Array(vec![3, 2, 2, 2], 2), Input::Array(vec![3, 2], 3)];
    differentiates(&turned(), &inputs, "y", &["x", "m"]);
}

/// Elements of all kinds: items with constant and computed indices, whole elements, temporaries.
#[program]
fn kinds(
    x: &Array1<Vec3<f64>>,
    m: &mut Array1<Mat3<f64>>,
    a: &mut Array1<[f64; 4]>,
    which: &Array1<i32>,
    out: &mut Array0<Vec2<f64>>,
) {
    let n = x.len();
    let mut t = Array1::<Mat2<f64>>::zeros([n]);
    let mut w = Array1::<Vec3<f64>>::zeros([n]);
    fill(w, Vec3::new(1.0, 2.0, 3.0));
    for i in par(0..n) {
        let k = which[i] as usize;
        m[i][[1, 2]] = x[i].dot(w[i]);
        m[i][2] = m[i][0] + x[i].cross(w[i]);
        m[i][[0, k]] -= x[i][k] * x[i].z;
        a[i][k] = x[i].norm();
        a[i][3] += a[i][k] * m[i].trace();
        for c in 0..3 {
            a[i][c] += x[i][c] * m[i][[c, 1]];
        }
        t[i] = x[i].outer(w[i])[0].outer(w[i])[[0, 0]] * Mat2::identity();
        t[i][[0, 1]] = x[i].y;
        t[i][1] *= 2.0;
    }
    for i in par(0..n) {
        out[[]] += t[i] * Vec2::new(x[i].x, a[i][1]);
    }
}

#[test]
fn elements_of_all_kinds_are_assigned_whole_and_by_components() {
    let which = Input::Elements(vec![3], [0i32, 2, 1].map(ebbtide::ir::Literal::from).to_vec());
    let inputs = [
        Input::Array(vec![3, 3], 1),
        Input::Array(vec![3, 3, 3], 2),
        Input::Array(vec![3, 4], 3),
        which,
        shaped(&[2], &[0.0, 0.0]),
    ];
    for of in ["out", "a", "m"] {
        differentiates(&kinds(), &inputs, of, &["x", "m", "a"]);
    }
}

#[test]
fn elements_are_those_of_plain_rust() -> ebbtide::Result<()> {
    let (xs, ms) = (numbers(6, 1), numbers(24, 2));
    for device in [Device::interpreter(), crate::cpu()] {
        let x = device.from_fn([3], |[i]| Vec2::new(xs[2 * i], xs[2 * i + 1]))?;
        let m = device.from_fn([3, 2], |[i, j]| {
            let at = 8 * i + 4 * j;
            Mat2::new(ms[at], ms[at + 1], ms[at + 2], ms[at + 3])
        })?;
        let mut y = device.zeros([3])?;
        turned().compile(&device)?.launch((&x, &m, &mut y))?;
        for i in 0..3 {
            let mut expected = m[[i, 1]] * x[i];
            expected.x += x[i].y;
            expected.y *= 2.0;
            expected += x[(i + 1) % 3];
            assert_eq!(y[i], expected);
        }
        // Others see one more dimension for each of an element.
        assert_eq!((x.shape(), x.any().shape(), m.any().shape()), ([3], &[3, 2][..], &[3, 2, 2, 2][..]));
        assert_eq!((x.len(), x.dim(0), x.dim(1), m.len()), (3, 3, 0, 6));
        assert_eq!(x.any().as_slice::<f64>(), Some(&xs[..]));
        assert!(Array1::<Vec3<f64>>::from_any(x.into_any()).is_err());
    }
    Ok(())
}

/// Springs between neighbours, explicit steps.
#[program]
fn springs(
    x: &mut Array1<Vec3<f64>>,
    v: &mut Array1<Vec3<f64>>,
    k: f64,
    steps: usize,
    loss: &mut Array0<f64>,
) {
    let n = x.len();
    let mut f = Array1::<Vec3<f64>>::zeros([n]);
    for _t in 0..steps {
        fill(f, Vec3::splat(0.0));
        for i in par(0..n - 1) {
            let d = x[i + 1] - x[i];
            let pull = k * (d.norm() - 1.0) * d.normalize();
            f[i] += pull;
            f[i + 1] += -pull;
        }
        for i in par(0..n) {
            v[i] += 0.1 * f[i];
            x[i] += 0.1 * v[i];
        }
    }
    for i in par(0..n) {
        loss[[]] += x[i].norm_squared();
    }
}

#[test]
fn gradients_of_arrays_of_vectors_are_arrays_of_vectors() -> ebbtide::Result<()> {
    let device = crate::cpu();
    let x = device.from_fn([4], |[i]| Vec3::new(1.2 * i as f64, 0.1 * (i * i) as f64, 0.3))?;
    let (v, loss) = (device.zeros([4])?, device.scalar(0.0)?);
    let g = springs().grad(springs::loss).wrt(springs::x).wrt(springs::v).wrt(springs::k);
    let out = g.compile(&device)?.launch((&x, &v, 3.0, 5, &loss))?;
    let dx: &Array1<Vec3<f64>> = out.get(springs::x)?;
    let value = |i: usize, h: f64| -> ebbtide::Result<f64> {
        let (mut x, mut v, mut loss) = (x.try_clone()?, v.try_clone()?, device.scalar(0.0)?);
        x[i].y += h;
        springs().compile(&device)?.launch((&mut x, &mut v, 3.0, 5, &mut loss))?;
        Ok(loss[[]])
    };
    for i in 0..4 {
        let slope = (value(i, 1e-6)? - value(i, -1e-6)?) / 2e-6;
        assert!((dx[i].y - slope).abs() < 1e-6 * (1.0 + slope.abs()), "{} {slope}", dx[i].y);
    }
    // The tangent along the gradient is the square of its length.
    let along = springs().jvp(springs::loss).wrt(springs::x).compile(&device)?;
    let moved = along.launch((&x, &v, 3.0, 5, &loss), &Direction::new().array(springs::x, dx))?;
    let moved = moved.get(springs::loss)?.value();
    let expected: f64 = dx.iter().map(|d| d.norm_squared()).sum();
    assert!((moved - expected).abs() < 1e-9 * expected, "{moved} {expected}");
    Ok(())
}

#[test]
fn springs_are_differentiated_as_the_oracle_says() {
    let x: Vec<f64> = (0..4).flat_map(|i| [1.2 * f64::from(i), 0.1 * f64::from(i * i), 0.3]).collect();
    let inputs = [
        shaped(&[4, 3], &x),
        shaped(&[4, 3], &[0.0; 12]),
        Input::Scalar(3.0.into()),
        crate::count(3),
        zero(),
    ];
    differentiates(&springs(), &inputs, "loss", &["x", "v", "k"]);
    assert_eq!(values(&springs(), &inputs, "loss").len(), 1);
}

#[operation]
fn centre(x: &Array1<Vec3<f64>>, c: &mut Array0<Vec3<f64>>) {
    let sum = x.as_slice().iter().fold(Vec3::zero(), |sum, x| sum + *x);
    c[[]] = sum / x.len() as f64;
}

#[derive(Arrays)]
struct Cloud {
    x: Array1<Vec3<f64>>,
    middle: Array0<Vec3<f64>>,
}

#[program]
fn measured(w: &mut Cloud) {
    centre(w.x, w.middle);
    for i in par(0..w.x.len()) {
        w.x[i] -= w.middle[[]];
    }
}

#[test]
fn operations_and_structs_hold_arrays_of_vectors() -> ebbtide::Result<()> {
    let device = crate::cpu();
    let x = device.array(&[Vec3::new(1.0, 0.0, 2.0), Vec3::new(3.0, 4.0, 0.0)])?;
    let mut cloud = Cloud { x, middle: device.zeros([])? };
    let _ = measured().compile(&device)?.launch(&mut cloud)?;
    assert_eq!(cloud.middle[[]], Vec3::new(2.0, 2.0, 1.0));
    assert_eq!(cloud.x.to_vec(), [Vec3::new(-1.0, -2.0, 1.0), Vec3::new(1.0, 2.0, -1.0)]);
    assert_eq!(format!("{:?}", cloud.middle), "Array0<f64 [3]> [] [Vec3 { x: 2.0, y: 2.0, z: 1.0 }]");
    let path = std::env::temp_dir().join(format!("ebbtide-elements-{}.safetensors", std::process::id()));
    cloud.save(&path)?;
    cloud.x.fill(Vec3::zero())?;
    cloud.load(&path)?;
    std::fs::remove_file(&path).unwrap();
    assert_eq!(cloud.x[1], Vec3::new(1.0, 2.0, -1.0));
    Ok(())
}
