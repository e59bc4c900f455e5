//! Structs and vectors taken apart and made of others, tuples that are matched, several places assigned at once, ranges that begin below zero.

use ebbtide::ir::Literal;
use ebbtide::prelude::*;
use ebbtide_conformance::Input;

use crate::{array, count, differentiates, shaped, values, zero};

#[derive(Clone, Copy, Value)]
struct Arm {
    angle: f64,
    speed: f64,
    at: Vec2<f64>,
}

#[derive(Clone, Copy, Value)]
struct Pair {
    left: Arm,
    right: (f64, f64),
}

const REST: Arm = Arm { angle: 0.5, speed: 0.25, at: Vec2 { x: 1.0, y: 2.0 } };

/// Also as plain Rust.
#[func]
fn swing(arm: Arm, dt: f64) -> Arm {
    let Arm { angle, speed: mut s, .. } = arm;
    s -= dt * angle.sin();
    Arm { angle: angle + dt * s, speed: s, ..arm }
}

#[program]
fn arms(x: &Array2<f64>, steps: usize, loss: &mut Array0<f64>) {
    for i in par(0..x.dim(0)) {
        let mut pair = Pair { left: Arm { angle: x[[i, 0]], ..REST }, right: (x[[i, 1]], 1.0) };
        for _t in 0..steps {
            pair = Pair { left: swing(pair.left, 0.1), ..pair };
            pair.right = (pair.right.1, pair.right.0 * pair.left.angle);
        }
        let Pair { left: Arm { angle, at: Vec2 { x: across, y: _ }, speed: _ }, right: (a, _) } = pair;
        loss[[]] += angle * across + a * pair.left.at.y;
    }
}

#[test]
fn structs_are_taken_apart_and_updated() {
    let inputs = [shaped(&[2, 2], &[0.3, 0.7, -0.4, 1.2]), count(3), zero()];
    let expected = [[0.3, 0.7], [-0.4, 1.2]].iter().fold(0.0, |loss, &[angle, first]| {
        let (mut arm, mut right) = (Arm { angle, ..REST }, (first, 1.0));
        for _t in 0..3 {
            arm = swing(arm, 0.1);
            right = (right.1, right.0 * arm.angle);
        }
        loss + (arm.angle * arm.at.x + right.0 * arm.at.y)
    });
    assert_eq!(values(&arms(), &inputs, "loss"), [expected]);
    differentiates(&arms(), &inputs, "loss", &["x"]);
}

#[program]
fn places(u: &mut Array1<f64>, v: &mut Array1<Vec2<f64>>, steps: usize) {
    let n = u.len();
    for i in par(0..n) {
        let (mut a, mut b) = (0.0, u[i]);
        let mut p = Vec2::zero();
        for k in 0..steps {
            (a, b) = (b, a + b);
            (p.x, (_, p.y)) = (p.y + a, (b, p.x * (k as f64)));
        }
        (u[i], v[i].x) = (v[i].x, u[i] * b);
        v[i].y = p.x + p.y;
    }
    for t in 1..n {
        (u[t - 1], u[t]) = if u[t] > u[t - 1] { (u[t], u[t - 1]) } else { continue };
    }
}

#[test]
fn several_places_are_assigned_values_that_were_computed_before() {
    let inputs = [array(&[1.0, 3.0, 2.0]), shaped(&[3, 2], &[0.5, 1.0, 0.75, 2.0, 0.25, 3.0]), count(4)];
    assert_eq!(values(&places(), &inputs, "u"), [0.75, 0.5, 0.25]);
    let v = values(&places(), &inputs, "v");
    assert_eq!([v[0], v[2], v[4]], [5.0, 45.0, 20.0]);
    for of in ["u", "v"] {
        differentiates(&places(), &inputs, of, &["u", "v"]);
    }
}

#[program]
fn blurred(u: &Array2<f64>, w: &Array1<f64>, out: &mut Array2<f64>, rows: &mut Array1<f64>) {
    let (n, m) = (u.dim(0), u.dim(1));
    for (i, j) in par(0..n, 0..m) {
        let mut s = 0.0;
        for a in -1..=1 {
            for b in (-2..3).rev() {
                let (y, x) = (i + a, j + b);
                if y < 0 || x < 0 || y >= n || x >= m {
                    continue;
                }
                s += w[a + 1] * w[2 - b] * u[[y, x]];
            }
        }
        out[[i, j]] = s + sum(-1..2, |d| w[d + 2] * u[[(i + d + n) % n, j]]);
    }
    for k in par(-3..rows.len() - 3) {
        rows[k + 3] = k as f64 * out[[(k + 3) % n, 0]];
    }
}

#[test]
fn ranges_begin_below_zero() {
    let u = |i: usize, j: usize| (1 + 3 * i + j * j) as f64;
    let w = [0.5, 1.0, 2.0, 0.25, 0.125];
    let elements: Vec<f64> = (0..3).flat_map(|i| (0..4).map(move |j| u(i, j))).collect();
    let inputs = [shaped(&[3, 4], &elements), array(&w), shaped(&[3, 4], &[0.0; 12]), array(&[0.0; 5])];
    let mut expected = Vec::new();
    for i in 0..3_i64 {
        for j in 0..4_i64 {
            let mut s = 0.0;
            for a in -1..=1 {
                for b in (-2..3).rev() {
                    if (0..3).contains(&(i + a)) && (0..4).contains(&(j + b)) {
                        s +=
                            w[(a + 1) as usize] * w[(2 - b) as usize] * u((i + a) as usize, (j + b) as usize);
                    }
                }
            }
            let wrapped = |d: i64| w[(d + 2) as usize] * u(((i + d + 3) % 3) as usize, j as usize);
            expected.push(s + (wrapped(-1) + wrapped(0) + wrapped(1)));
        }
    }
    assert_eq!(values(&blurred(), &inputs, "out"), expected);
    let rows: Vec<f64> = (0..5).map(|k| (k as f64 - 3.0) * expected[k % 3 * 4]).collect();
    assert_eq!(values(&blurred(), &inputs, "rows"), rows);
    for of in ["out", "rows"] {
        differentiates(&blurred(), &inputs, of, &["u", "w"]);
    }
}

#[derive(Clone, Copy, PartialEq, Value)]
enum Side {
    Left,
    Right,
}

/// Also as plain Rust.
#[func]
fn weight(kind: i32, side: Side, x: f64) -> f64 {
    match (kind, side) {
        (0, _) => x,
        (1 | 2, Side::Left) => 2.0 * x,
        (k, Side::Right) if k > 5 => x.sin(),
        (k, Side::Right) => (k as f64) * x * x,
        _ => 0.5,
    }
}

#[program]
fn weighted(kinds: &Array1<i32>, x: &Array1<f64>, loss: &mut Array0<f64>) {
    for i in par(0..x.len()) {
        let side = if x[i] < 0.0 { Side::Left } else { Side::Right };
        let v = Vec3 { x: weight(kinds[i], side, x[i]), z: x[i], y: 1.0 };
        let Vec3 { x: a, z, .. } = Vec3 { y: x[i] * x[i], ..v };
        loss[[]] += a + z * Vec2 { x: z, ..Vec2::splat(3.0) }.norm_squared();
    }
}

#[test]
fn tuples_are_matched_and_vectors_are_literals() {
    let (kinds, x) = ([0, 1, 2, 7, 3, 4], [-0.5, -1.5, 2.0, 0.25, 0.75, -2.0]);
    let inputs =
        [Input::Elements(vec![6], kinds.iter().map(|k| Literal::from(*k)).collect()), array(&x), zero()];
    let expected = kinds.iter().zip(x).fold(0.0, |loss, (kind, x)| {
        let side = if x < 0.0 { Side::Left } else { Side::Right };
        loss + (weight(*kind, side, x) + x * (x * x + 9.0))
    });
    // The sine of the language is not std's.
    assert!((values(&weighted(), &inputs, "loss")[0] - expected).abs() < 1e-12);
    differentiates(&weighted(), &inputs, "loss", &["x"]);
}

/// Also as plain Rust.
#[func]
fn turned([x, y]: [f64; 2], Vec2 { x: c, y: s }: Vec2<f64>) -> [f64; 2] {
    [c * x - s * y, s * x + c * y]
}

#[program]
fn lists(x: &Array1<[f64; 3]>, kind: &Array1<[i32; 2]>, loss: &mut Array0<f64>) {
    let [mut most, mut least] = [Array1::<f64>::zeros([x.len()]), Array1::<f64>::zeros([x.len()])];
    for i in par(0..x.len()) {
        let [a, mut b, _] = x[i];
        let [.., c] = x[i];
        b *= c;
        let ([p, q], (r, ..)) = (turned([a, b], Vec2::new(0.6, 0.8)), (a * c, b, [c, a]));
        [most[i], least[i]] = if p > q { [p, q * r] } else { [q, p] };
    }
    for i in 0..x.len() {
        loss[[]] += match kind[i] {
            [0, 0] => most[i],
            [1, k] if k > 2 => least[i] * k as f64,
            [_, k] => most[i] * least[i] - k as f64,
        };
    }
}

#[test]
fn arrays_of_a_fixed_length_are_taken_apart_assigned_and_matched() {
    let (x, kind) = ([[0.5, 2.0, -1.0], [1.5, 0.25, 2.0], [-0.5, 3.0, 0.75]], [[0, 0], [1, 4], [1, 2]]);
    let mut expected = 0.0;
    for ([a, b, c], kind) in x.into_iter().zip(kind) {
        let [p, q] = turned([a, b * c], Vec2::new(0.6, 0.8));
        let [most, least] = if p > q { [p, q * (a * c)] } else { [q, p] };
        expected += match kind {
            [0, 0] => most,
            [1, k] if k > 2 => least * k as f64,
            [_, k] => most * least - k as f64,
        };
    }
    let kinds = kind.iter().flatten().map(|&k| Literal::from(k)).collect();
    let inputs = [shaped(&[3, 3], x.as_flattened()), Input::Elements(vec![3, 2], kinds), zero()];
    assert_eq!(values(&lists(), &inputs, "loss"), [expected]);
    differentiates(&lists(), &inputs, "loss", &["x"]);
}
