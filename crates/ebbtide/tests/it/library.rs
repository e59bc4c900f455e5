//! Library operations.

use ebbtide::prelude::*;
use expect_test::expect;

use crate::check;

#[derive(Arrays)]
struct Layer {
    weights: Array2<f64>,
    out: Array2<f64>,
}

#[program]
fn network(h: &mut Array2<f64>, layer: &mut Layer, norms: &mut Array1<f64>, sums: &mut Array1<f64>) {
    matmul(h, layer.weights, layer.out);
    for i in par(0..h.dim(0)) {
        norms[i] = layer.out[[i, 0]] * layer.out[[i, 0]];
    }
    scan(norms, sums);
}

#[program]
fn chosen<T: Float>(x: &Array1<T>, list: &mut Array1<i32>, count: &mut Array0<i32>) {
    let mut flags = Array1::<bool>::zeros([x.len()]);
    for i in par(0..x.len()) {
        flags[i] = x[i] > T::of(0.0);
    }
    compact(flags, list, count);
}

#[test]
fn library_operations_are_written_as_calls() {
    check(
        network(),
        expect![[r#"
        program network(h: &mut Array2<f64>, layer.weights: &mut Array2<f64>, layer.out: &mut Array2<f64>, norms: &mut Array1<f64>, sums: &mut Array1<f64>) {
            matmul(h, layer.weights, layer.out);
            for i in par(0..h.dim(0)) {
                norms[i] = layer.out[[i, 0]] * layer.out[[i, 0]];
            }
            scan(norms, sums);
        }
    "#]],
    );
    check(
        chosen::<f32>(),
        expect![[r#"
        program chosen(x: &Array1<f32>, list: &mut Array1<i32>, count: &mut Array0<i32>) {
            let mut flags = Array1::<bool>::zeros([x.len()]);
            for i in par(0..x.len()) {
                flags[i] = x[i] > 0.0f32;
            }
            compact(flags, list, count);
        }
    "#]],
    );
}

#[test]
fn library_operations_compute() {
    for device in [Device::interpreter(), Device::best().unwrap()] {
        let mut h = device.array_with_shape([2, 2], &[1.0, 2.0, 3.0, 4.0]).unwrap();
        let weights = device.array_with_shape([2, 1], &[1.0, -1.0]).unwrap();
        let mut layer = Layer { weights, out: device.zeros([2, 1]).unwrap() };
        let (mut norms, mut sums) = (device.zeros([2]).unwrap(), device.zeros([2]).unwrap());
        let compiled = network().compile(&device).unwrap();
        let _done = compiled.launch((&mut h, &mut layer, &mut norms, &mut sums)).unwrap();
        assert_eq!((layer.out.to_vec(), sums.to_vec()), (vec![-1.0, -1.0], vec![1.0, 2.0]));

        let x = device.array(&[1.0f32, -1.0, 2.0]).unwrap();
        let (mut list, mut count) = (device.array(&[7; 3]).unwrap(), device.scalar(0).unwrap());
        let _done = chosen::<f32>().compile(&device).unwrap().launch((&x, &mut list, &mut count)).unwrap();
        assert_eq!((list.to_vec(), count[[]]), (vec![0, 2, 7], 2));
    }
}

#[test]
fn outside_programs_they_are_functions_of_arrays() {
    let device = Device::interpreter();
    let a = device.array_with_shape([1, 2], &[2.0f32, 3.0]).unwrap();
    let b = device.array_with_shape([2, 1], &[5.0f32, 7.0]).unwrap();
    let mut c = device.zeros([1, 1]).unwrap();
    matmul(&a, &b, &mut c).unwrap();
    assert_eq!(c.to_vec(), [31.0]);
    let mut sums = device.zeros([3]).unwrap();
    scan(&device.array(&[1, 2, 3]).unwrap(), &mut sums).unwrap();
    assert_eq!(sums.to_vec(), [1, 3, 6]);
    let (mut list, mut count) = (device.zeros([1]).unwrap(), device.scalar(0).unwrap());
    compact(&device.array(&[false, true, true]).unwrap(), &mut list, &mut count).unwrap();
    assert_eq!((list.to_vec(), count[[]]), (vec![1], 2));
    let error = matmul(&a, &a, &mut c).unwrap_err().to_string();
    assert!(error.contains("needs shapes [m, k], [k, n] and [m, n]"), "{error}");
}

#[program]
fn in_place(x: &mut Array1<f64>, a: &mut Array2<f64>) {
    scan(x, x);
    matmul(a, a, a);
}

#[program]
fn inside(x: &Array1<i32>, y: &mut Array1<i32>) {
    for _i in par(0..x.len()) {
        scan(x, y);
    }
}

#[test]
fn what_an_operation_writes_it_uses_in_no_other_place() {
    let error = in_place().ir().unwrap_err().to_string();
    for message in [
        "`scan` writes `x`, which it uses in another place too: give it an array of its own (law 11)",
        "`matmul` writes `a`, which it uses in another place too: give it an array of its own (law 11)",
    ] {
        assert!(error.contains(message), "{error}");
    }
    assert!(error.contains("library.rs:"), "the error names the place: {error}");
    let error = inside().ir().unwrap_err().to_string();
    assert!(error.contains("`scan` cannot stand inside a parallel loop (law 6)"), "{error}");
}

#[program]
fn energy(h: &mut Array2<f64>, w: &Array2<f64>, loss: &mut Array0<f64>, steps: usize) {
    let mut z = Array2::<f64>::zeros([h.dim(0), h.dim(1)]);
    for _t in 0..steps {
        matmul(h, w, z);
        for (i, j) in par(0..h.dim(0), 0..h.dim(1)) {
            h[[i, j]] = z[[i, j]].sin();
        }
    }
    for (i, j) in par(0..h.dim(0), 0..h.dim(1)) {
        loss[[]] += h[[i, j]];
    }
}

#[test]
fn a_gradient_flows_through_a_product() {
    let device = Device::best().unwrap();
    let mut h = device.array_with_shape([1, 1], &[0.5]).unwrap();
    let w = device.array_with_shape([1, 1], &[0.8]).unwrap();
    let mut loss = device.scalar(0.0).unwrap();
    let g = energy().grad(energy::loss).wrt(energy::w).wrt(energy::h).compile(&device).unwrap();
    let out = g.launch((&mut h, &w, &mut loss, 2)).unwrap();
    let (inner, first) = (0.8 * 0.5, (0.8f64 * 0.5).sin());
    let outer = 0.8 * first;
    let dw = outer.cos() * (first + 0.8 * inner.cos() * 0.5);
    let dh = outer.cos() * 0.8 * inner.cos() * 0.8;
    assert!((out.get(energy::w).unwrap()[[0, 0]] - dw).abs() < 1e-14);
    assert!((out.get(energy::h).unwrap()[[0, 0]] - dh).abs() < 1e-14);
}

#[test]
fn tangents_and_second_derivatives_flow_through_products() {
    let device = Device::interpreter();
    let weight = |x: f64| device.array_with_shape([1, 1], &[x]).unwrap();
    let mut h = weight(0.5);
    let mut loss = device.scalar(0.0).unwrap();
    let along = weight(1.0);
    let direction = Direction::new().array(energy::w, &along);
    let mut gradient_at = |x: f64| {
        let g = energy().grad(energy::loss).wrt(energy::w).compile(&device).unwrap();
        let out = g.launch((&mut h, &weight(x), &mut loss, 3)).unwrap();
        out.get(energy::w).unwrap()[[0, 0]]
    };
    let (first, second) = (gradient_at(0.8), (gradient_at(0.8 + 1e-5) - gradient_at(0.8 - 1e-5)) / 2e-5);
    let w = weight(0.8);
    let jvp = energy().jvp(energy::loss).wrt(energy::w).compile(&device).unwrap();
    let slope = jvp.launch((&mut h, &w, &mut loss, 3), &direction).unwrap();
    assert!((slope.get(energy::loss).unwrap()[[]] - first).abs() < 1e-14);
    let hvp = energy().hvp(energy::loss).wrt(energy::w).compile(&device).unwrap();
    let curvature = hvp.launch((&mut h, &w, &mut loss, 3), &direction).unwrap();
    assert!((curvature.get(energy::w).unwrap()[[0, 0]] - second).abs() < 1e-8);
}
