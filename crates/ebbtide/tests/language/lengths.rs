//! Lengths of vectors where they are zero.

use ebbtide::prelude::*;

use crate::{array, close, differentiates, shaped, values, zero};
use ebbtide_conformance::judge::Question;

/// The sum of the distances between all points, each one to itself included.
#[program]
fn distances(x: &Array1<Vec3<f64>>, loss: &mut Array0<f64>) {
    for i in par(0..x.len()) {
        loss[[]] += sum(0..x.len(), |j| (x[i] - x[j]).norm());
    }
}

/// A smooth kernel of distances, in branches: flat where a point meets itself.
#[program]
fn density(x: &Array1<Vec2<f64>>, loss: &mut Array0<f64>) {
    let n = x.len();
    for i in par(0..n) {
        let mut rho = 0.0;
        for j in 0..n {
            let q = (x[i] - x[j]).norm();
            rho += if q < 1.0 {
                1.0 - 1.5 * q * q + 0.75 * q.powi(3)
            } else if q < 2.0 {
                0.25 * (2.0 - q).powi(3)
            } else {
                0.0
            };
        }
        loss[[]] += rho * rho;
    }
}

/// The norm of a whole array.
#[program]
fn size(u: &Array1<f64>, loss: &mut Array0<f64>) {
    loss[[]] = norm(u);
}

const POINTS: [f64; 12] = [0.1, 0.7, -0.3, 1.2, -0.4, 0.5, 0.1, 0.7, -0.3, -0.9, 0.2, 0.6];

#[test]
fn a_length_is_flat_where_it_is_zero() {
    // Two of the four points are the same one.
    differentiates(&distances(), &[shaped(&[4, 3], &POINTS), zero()], "loss", &["x"]);
    differentiates(&density(), &[shaped(&[6, 2], &POINTS), zero()], "loss", &["x"]);
    differentiates(&size(), &[array(&[0.0, -0.0, 0.0]), zero()], "loss", &["u"]);
    differentiates(&size(), &[array(&[3.0, -4.0, 0.0]), zero()], "loss", &["u"]);
}

#[test]
fn a_gradient_through_lengths_of_zero_has_numbers() {
    let inputs = [shaped(&[4, 3], &POINTS), zero()];
    let distances = distances();
    let question = Question::new(distances.ir().unwrap(), &inputs, "loss", &["x"]);
    let gradient = question.gradient(&Device::interpreter(), false).unwrap();
    let found = gradient.launch(&question, Budget::StoreAll).unwrap().derivatives;
    let at = |i: usize| Vec3::new(POINTS[3 * i], POINTS[3 * i + 1], POINTS[3 * i + 2]);
    let expected: Vec<f64> = (0..4)
        .flat_map(|i| {
            let apart = (0..4).map(|j| at(i) - at(j)).filter(|d| d.norm() > 0.0);
            apart.fold(Vec3::zero(), |sum, d| sum + 2.0 * d / d.norm()).to_array()
        })
        .collect();
    let found: Vec<f64> = found[0].iter().map(|x| x.to_f64()).collect();
    close(&found, &expected, 1e-15);
    assert!(question.jvp(&Device::interpreter()).unwrap()[0].to_f64().is_finite());
    let bend = question.hvp(&Device::interpreter(), Budget::StoreAll).unwrap();
    assert!(bend[0].iter().all(|x| x.to_f64().is_finite()));
}

#[test]
fn a_length_has_the_bits_of_a_square_root() {
    let inputs = [shaped(&[4, 3], &POINTS), zero()];
    let at = |i: usize| Vec3::new(POINTS[3 * i], POINTS[3 * i + 1], POINTS[3 * i + 2]);
    let one_by_one = |i: usize| sum(0..4, |j| (at(i) - at(j)).norm_squared().sqrt());
    let expected = sum(0..4, one_by_one);
    assert_eq!(values(&distances(), &inputs, "loss"), [expected]);
}
