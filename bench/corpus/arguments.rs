//! What the programs of the corpus are given: input a type and a size, output arguments, what is differentiated, and the extents
//! in words.

use ebbtide::ir::{Literal, Type};
use ebbtide_conformance::Input;

use super::Size;

/// The arguments of a program, the names of those that it is differentiated by, and its extents in words.
pub(super) type Made = (Vec<Input>, &'static [&'static str], String);

/// A number between -1 and 1 with many digits.
fn number(k: usize, salt: usize) -> f64 {
    let mixed = (k as u64 ^ (salt as u64) << 40).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    ((mixed ^ mixed >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 11) as f64 / (1u64 << 52) as f64 - 1.0
}

/// Arguments of one type.
pub(super) struct Arguments(pub Type);

impl Arguments {
    fn computed(&self, shape: &[usize], of: impl Fn(usize) -> f64) -> Input {
        let all = (0..shape.iter().product()).map(|k| Literal::of(self.0, of(k)));
        Input::Elements(shape.to_vec(), all.collect())
    }

    /// An array of `middle ± spread`.
    fn array(&self, shape: &[usize], salt: usize, middle: f64, spread: f64) -> Input {
        self.computed(shape, |k| middle + spread * number(k, salt))
    }

    fn zeros(&self, shape: &[usize]) -> Input {
        self.computed(shape, |_| 0.0)
    }

    fn scalar(&self, value: f64) -> Input {
        Input::Scalar(Literal::of(self.0, value))
    }
}

fn indices(shape: &[usize], of: impl Fn(usize) -> usize) -> Input {
    Input::Elements(
        shape.to_vec(),
        (0..shape.iter().product()).map(|k| Literal::from(of(k) as i32)).collect(),
    )
}

fn count(n: usize) -> Input {
    Input::Scalar(Literal::from(n))
}

pub(super) fn dense(a: &Arguments, size: Size) -> Made {
    let (b, n, steps) = (size.pick(2, 1, 64), size.pick(5, 256, 512), size.pick(3, 100, 20));
    let w = a.array(&[n, n], 2, 0.0, 2.0 / (n as f64).sqrt());
    let inputs =
        vec![a.array(&[b, n], 1, 0.0, 1.0), w, a.array(&[n], 3, 0.0, 0.5), count(steps), a.zeros(&[])];
    (inputs, &["h", "w"], format!("{b} x {n}, {steps} steps"))
}

pub(super) fn gru(a: &Arguments, size: Size) -> Made {
    let (b, n, steps) = (size.pick(2, 4, 64), size.pick(3, 64, 256), size.pick(3, 50, 20));
    let w = |salt| a.array(&[n, n], salt, 0.0, 1.5 / (n as f64).sqrt());
    let x = a.array(&[steps, b, n], 2, 0.0, 0.5);
    let inputs = vec![a.array(&[b, n], 1, 0.0, 1.0), x, w(3), w(4), w(5), a.zeros(&[])];
    (inputs, &["h", "wz", "wr", "wh"], format!("{b} x {n}, {steps} steps"))
}

pub(super) fn neural_ode(a: &Arguments, size: Size) -> Made {
    let (b, n, hidden, steps) =
        (size.pick(2, 16, 128), size.pick(3, 16, 64), size.pick(4, 32, 256), size.pick(3, 100, 50));
    let w = |m: usize, n: usize, salt| a.array(&[m, n], salt, 0.0, 1.0 / (m as f64).sqrt());
    let x = a.array(&[b, n], 1, 0.0, 1.0);
    let inputs = vec![x, w(n, hidden, 2), w(hidden, n, 3), a.scalar(0.05), count(steps), a.zeros(&[])];
    (inputs, &["x", "a", "b"], format!("{b} x {n} x {hidden}, {steps} steps"))
}

pub(super) fn mixture(a: &Arguments, size: Size) -> Made {
    let (n, d, k) = (size.pick(6, 1000, 10_000), size.pick(2, 4, 16), size.pick(3, 5, 25));
    let inputs = vec![
        a.array(&[n, d], 1, 0.0, 1.0),
        a.array(&[k, d], 2, 0.0, 1.0),
        a.array(&[k, d], 3, 0.0, 0.3),
        a.array(&[k], 4, 0.0, 0.5),
        a.zeros(&[]),
    ];
    (inputs, &["means", "scales", "weights"], format!("{n} points, {d} x {k}"))
}

pub(super) fn bundle(a: &Arguments, size: Size) -> Made {
    let (c, p, n) = (size.pick(2, 10, 50), size.pick(4, 500, 20_000), size.pick(7, 3000, 100_000));
    let inputs = vec![
        a.array(&[c, 5], 1, 1.0, 0.3),
        a.array(&[p, 3], 2, 2.0, 0.5),
        indices(&[n], |k| k * 7919 % c),
        indices(&[n], |k| k * 104_729 % p),
        a.array(&[n, 2], 3, 0.0, 1.0),
        a.zeros(&[]),
    ];
    (inputs, &["cameras", "points"], format!("{n} observations"))
}

pub(super) fn all_pairs(a: &Arguments, size: Size) -> Made {
    let (n, steps) = (size.pick(4, 128, 1024), size.pick(2, 20, 5));
    let inputs = vec![
        a.array(&[n, 3], 1, 0.0, 1.0),
        a.array(&[n, 3], 2, 0.0, 0.1),
        a.array(&[n], 3, 1.0, 0.5),
        count(steps),
        a.zeros(&[]),
    ];
    (inputs, &["x", "v", "m"], format!("{n} bodies, {steps} steps"))
}

pub(super) fn boltzmann(a: &Arguments, size: Size) -> Made {
    let (n, steps) = (size.pick(4, 32, 256), size.pick(2, 50, 20));
    let f = a.array(&[9, n, n], 1, 0.5, 0.05);
    (
        vec![f, a.zeros(&[9, n, n]), a.scalar(0.8), count(steps), a.zeros(&[])],
        &["f"],
        format!("{n}², {steps} steps"),
    )
}

pub(super) fn shallow_water(a: &Arguments, size: Size) -> Made {
    let (n, steps) = (size.pick(5, 48, 384), size.pick(3, 50, 20));
    let field = |salt, middle| a.array(&[n, n], salt, middle, 0.1);
    let mut inputs = vec![field(1, 1.0), field(2, 0.0), field(3, 0.0)];
    inputs.extend((0..3).map(|_| a.zeros(&[n, n])));
    inputs.extend([a.scalar(0.05), count(steps), a.zeros(&[])]);
    (inputs, &["h", "u", "v"], format!("{n}², {steps} steps"))
}

pub(super) fn heat(a: &Arguments, size: Size) -> Made {
    let (n, steps) = (size.pick(5, 16, 96), size.pick(3, 50, 10));
    let u = a.array(&[n, n, n], 1, 0.0, 0.5);
    let inputs = vec![u, a.zeros(&[n, n, n]), a.array(&[n, n, n], 2, 0.5, 0.2), count(steps), a.zeros(&[])];
    (inputs, &["u", "kappa"], format!("{n}³, {steps} steps"))
}

pub(super) fn gray_scott(a: &Arguments, size: Size) -> Made {
    let (n, steps) = (size.pick(5, 32, 256), size.pick(3, 50, 20));
    let inputs = vec![
        a.array(&[steps + 1, n, n], 1, 0.7, 0.2),
        a.array(&[steps + 1, n, n], 2, 0.3, 0.1),
        a.scalar(0.04),
        a.scalar(0.06),
        a.zeros(&[]),
    ];
    (inputs, &["u", "v", "feed", "kill"], format!("{n}², {steps} steps"))
}

pub(super) fn lorenz96(a: &Arguments, size: Size) -> Made {
    let (n, steps) = (size.pick(6, 40, 4000), size.pick(3, 200, 100));
    let seen = a.array(&[steps, n / 2], 2, 2.0, 3.0);
    (
        vec![a.array(&[n], 1, 2.0, 3.0), seen, count(steps), a.zeros(&[])],
        &["x"],
        format!("{n}, {steps} steps"),
    )
}

pub(super) fn particles(a: &Arguments, size: Size) -> Made {
    let (n, cells, steps) = (size.pick(6, 1000, 100_000), size.pick(8, 64, 10_000), size.pick(2, 20, 5));
    let spread = cells as f64 * 0.45;
    let inputs = vec![
        a.array(&[n], 1, cells as f64 / 2.0, spread),
        a.array(&[n], 2, 0.0, 0.1),
        a.zeros(&[cells]),
        count(steps),
        a.zeros(&[]),
    ];
    (inputs, &["x", "v"], format!("{n} in {cells} cells, {steps} steps"))
}

pub(super) fn sparse(a: &Arguments, size: Size) -> Made {
    let (n, row, steps) = (size.pick(6, 1000, 100_000), size.pick(3, 5, 7), size.pick(3, 50, 10));
    let inputs = vec![
        a.array(&[n], 1, 0.0, 1.0),
        a.zeros(&[n]),
        indices(&[n + 1], |k| k * row),
        indices(&[n * row], |k| (k / row + (k % row) * (k % row) * 3) % n),
        a.array(&[n * row], 2, 0.0, 0.5),
        count(steps),
        a.zeros(&[]),
    ];
    (inputs, &["x", "value"], format!("{n} rows of {row}, {steps} steps"))
}

pub(super) fn adi(a: &Arguments, size: Size) -> Made {
    let (n, steps) = (size.pick(5, 32, 256), size.pick(2, 20, 10));
    let u = a.array(&[n, n], 1, 0.5, 0.3);
    (vec![u, a.scalar(0.3), count(steps), a.zeros(&[])], &["u", "r"], format!("{n}², {steps} steps"))
}

pub(super) fn lstm(a: &Arguments, size: Size) -> Made {
    let (b, n, steps) = (size.pick(2, 4, 64), size.pick(3, 64, 256), size.pick(3, 50, 20));
    let inputs = vec![
        a.array(&[b, n], 1, 0.0, 1.0),
        a.array(&[b, n], 2, 0.0, 1.0),
        a.array(&[steps, b, 4 * n], 3, 0.0, 0.5),
        a.array(&[n, 4 * n], 4, 0.0, 1.5 / (n as f64).sqrt()),
        a.zeros(&[]),
    ];
    (inputs, &["h", "c", "w"], format!("{b} x {n}, {steps} steps"))
}

pub(super) fn lu(a: &Arguments, size: Size) -> Made {
    let n = size.pick(4, 32, 256);
    let heavy = a.computed(&[n, n], |k| if k % (n + 1) == 0 { n as f64 } else { number(k, 1) });
    (vec![heavy, a.zeros(&[])], &["a"], format!("{n}²"))
}

pub(super) fn gauss_seidel(a: &Arguments, size: Size) -> Made {
    let (n, sweeps) = (size.pick(5, 32, 256), size.pick(2, 20, 10));
    let inputs =
        vec![a.array(&[n, n], 1, 0.0, 1.0), a.array(&[n, n], 2, 0.0, 1.0), count(sweeps), a.zeros(&[])];
    (inputs, &["u", "f"], format!("{n}², {sweeps} sweeps"))
}

pub(super) fn split_step(a: &Arguments, size: Size) -> Made {
    let (n, steps) = (size.pick(8, 256, 65_536), size.pick(2, 50, 10));
    let energy = a.computed(&[n], |k| (k.min(n - k) as f64 / n as f64).powi(2) * 50.0);
    let inputs = vec![
        a.array(&[n], 1, 0.0, 1.0),
        a.array(&[n], 2, 0.0, 1.0),
        energy,
        a.scalar(0.01),
        count(steps),
        a.zeros(&[]),
    ];
    (inputs, &["re", "im"], format!("{n}, {steps} steps"))
}

pub(super) fn elastic(a: &Arguments, size: Size) -> Made {
    let (n, steps) = (size.pick(8, 64, 512), size.pick(3, 50, 20));
    let edge = |k: usize| (k / n).min(k % n).min(n - 1 - k / n).min(n - 1 - k % n) as f64;
    let mut inputs: Vec<Input> = (0..5).map(|_| a.zeros(&[n, n])).collect();
    inputs.extend([
        a.array(&[n, n], 1, 1.0, 0.2),
        a.array(&[n, n], 2, 0.5, 0.1),
        a.computed(&[n, n], |k| 1.0 - 0.002 * (8.0 - edge(k)).max(0.0)),
        a.computed(&[steps], |t| (0.3 * t as f64).sin()),
        a.zeros(&[]),
    ]);
    (inputs, &["lambda", "mu"], format!("{n}², {steps} steps"))
}

pub(super) fn smoke(a: &Arguments, size: Size) -> Made {
    let (n, steps, iterations) = (size.pick(4, 32, 256), size.pick(2, 10, 5), size.pick(2, 10, 20));
    let field = |salt| a.array(&[n, n], salt, 0.2, 1.0);
    let inputs = vec![field(1), field(2), field(3), count(steps), count(iterations), a.zeros(&[])];
    (inputs, &["u", "v", "d"], format!("{n}², {steps} steps of {iterations}"))
}

pub(super) fn neighbours(a: &Arguments, size: Size) -> Made {
    let (side, steps) = (size.pick(2, 10, 40), size.pick(2, 20, 5));
    let n = side * side * side;
    let place = |k: usize| [k / 3 / side / side, k / 3 / side % side, k / 3 % side][k % 3] as f64;
    // Those beside a particle and across its edges in two planes.
    let steps_to = [1, side, side * side, side + 1, side * side + side];
    let near = |k: usize| match (k / 10, k % 10) {
        (i, at) if at < 5 => (i + steps_to[at]) % n,
        (i, at) => (i + n - steps_to[at - 5] % n) % n,
    };
    let inputs = vec![
        a.computed(&[n, 3], |k| place(k) + 0.1 * number(k, 1)),
        a.array(&[n, 3], 2, 0.0, 0.1),
        indices(&[n, 10], near),
        count(steps),
        a.zeros(&[]),
    ];
    (inputs, &["x", "v"], format!("{n} with 10 each, {steps} steps"))
}

pub(super) fn mpm(a: &Arguments, size: Size) -> Made {
    let (n, cells, steps) = (size.pick(5, 1000, 50_000), size.pick(12, 32, 128), size.pick(2, 20, 5));
    let inputs = vec![
        a.array(&[n, 2], 1, cells as f64 / 2.0, cells as f64 * 0.3),
        a.array(&[n, 2], 2, 0.0, 1.0),
        a.array(&[n, 2, 2], 3, 0.0, 0.1),
        a.computed(&[n, 2, 2], |k| f64::from(u8::from(matches!(k % 4, 0 | 3))) + 0.05 * number(k, 4)),
        a.zeros(&[cells, cells, 2]),
        a.zeros(&[cells, cells]),
        count(steps),
        a.zeros(&[]),
    ];
    (inputs, &["x", "v", "c", "f"], format!("{n} in {cells}², {steps} steps"))
}

pub(super) fn elements(a: &Arguments, size: Size) -> Made {
    let (side, steps) = (size.pick(3, 16, 200), size.pick(2, 50, 10));
    let (n, triangles) = (side * side, 2 * (side - 1) * (side - 1));
    // Two triangles in each square of a mesh, right angles at opposite corners.
    let corner = |k: usize| {
        let (square, at) = (k / 6, k % 6);
        let first = square / (side - 1) * side + square % (side - 1);
        first + [0, side, 1, side + 1, 1, side][at]
    };
    let rest = |k: usize| match (k % 4, k / 4 % 2) {
        (0 | 3, 0) => 1.0,
        (0 | 3, _) => -1.0,
        _ => 0.0,
    };
    let place = |k: usize| [k / 2 / side, k / 2 % side][k % 2] as f64;
    let inputs = vec![
        a.computed(&[n, 2], |k| place(k) + 0.05 * number(k, 1)),
        a.array(&[n, 2], 2, 0.0, 0.1),
        indices(&[triangles, 3], corner),
        a.computed(&[triangles, 2, 2], rest),
        a.array(&[triangles], 3, 1.0, 0.3),
        count(steps),
        a.zeros(&[]),
    ];
    (inputs, &["x", "stiffness"], format!("{triangles} triangles, {steps} steps"))
}

pub(super) fn cloth(a: &Arguments, size: Size) -> Made {
    let (side, steps) = (size.pick(3, 16, 150), size.pick(2, 20, 5));
    let (n, half) = (side * side, side * (side - 1));
    // Edges along rows, then along columns.
    let end = |k: usize| match (k / 2, k % 2) {
        (e, at) if e < half => e / (side - 1) * side + e % (side - 1) + at,
        (e, at) => (e - half) + at * side,
    };
    let place = |k: usize| [k / 3 % side, 0, k / 3 / side][k % 3] as f64;
    let inputs = vec![
        a.computed(&[n, 3], |k| place(k) + 0.1 * number(k, 1)),
        a.array(&[n, 3], 2, 0.0, 0.1),
        a.computed(&[n], |k| if k == 0 || k == side - 1 { 0.0 } else { 1.0 }),
        indices(&[2 * half, 2], end),
        a.computed(&[2 * half], |_| 1.0),
        count(steps),
        a.zeros(&[]),
    ];
    (inputs, &["x", "v"], format!("{} edges, {steps} steps", 2 * half))
}
