//! The derivative of every construct: against differences, forward against reverse.

use ebbtide::prelude::*;

/// Checks the gradient of a program `p(x, y, loss)` of two arrays of nine elements.
macro_rules! check {
    ($p:ident) => {{ check!($p, Device::interpreter()) }};
    ($p:ident, $device:expr) => {{
        let device = $device;
        let n = 9;
        let start: Vec<f64> = (0..n).map(|i| 0.15 + 0.1 * ((i * 7) % n) as f64).collect();
        let other: Vec<f64> = (0..n).map(|i| 0.9 - 0.08 * ((i * 5) % n) as f64).collect();
        let (v, w): (Vec<f64>, Vec<f64>) =
            (0..n).map(|i| ((i as f64 * 1.7).sin(), (i as f64 * 2.3).cos())).unzip();
        let g = $p().grad($p::loss).wrt($p::x).wrt($p::y).compile(&device).unwrap();
        let (mut x, y, mut loss) =
            (device.array(&start).unwrap(), device.array(&other).unwrap(), device.zeros([]).unwrap());
        let out = g.launch((&mut x, &y, &mut loss)).unwrap();
        let (dx, dy) = (out.get($p::x).unwrap().to_vec(), out.get($p::y).unwrap().to_vec());
        let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
        let slope = dot(&dx, &v) + dot(&dy, &w);
        let plain = $p().compile(&device).unwrap();
        let loss_at = |h: f64| {
            let moved = |a: &[f64], d: &[f64]| a.iter().zip(d).map(|(a, d)| a + h * d).collect::<Vec<f64>>();
            let (mut x, y) =
                (device.array(&moved(&start, &v)).unwrap(), device.array(&moved(&other, &w)).unwrap());
            let mut loss = device.zeros([]).unwrap();
            let _done = plain.launch((&mut x, &y, &mut loss)).unwrap();
            loss.value()
        };
        let h = 1e-6;
        let difference = (loss_at(h) - loss_at(-h)) / (2.0 * h);
        let size = slope.abs().max(difference.abs()).max(1e-3);
        assert!(
            (slope - difference).abs() < 2e-7 * size,
            "{}: {slope} is not {difference}\n{}",
            stringify!($p),
            g.ir()
        );
        // Forward and reverse take the same products in another order.
        let jvp = $p().jvp($p::loss).wrt($p::x).wrt($p::y).compile(&device).unwrap();
        let (along_x, along_y) = (device.array(&v).unwrap(), device.array(&w).unwrap());
        let direction = Direction::new().array($p::x, &along_x).array($p::y, &along_y);
        let forward = jvp.launch((&mut x, &y, &mut loss), &direction).unwrap().get($p::loss).unwrap().value();
        let scale = dot(&dx, &dx).sqrt() * dot(&v, &v).sqrt() + dot(&dy, &dy).sqrt() * dot(&w, &w).sqrt();
        assert!((forward - slope).abs() <= 1e-12 * scale, "{}: {forward} is not {slope}", stringify!($p));
    }};
}

/// The last statement of most programs here: a weighted sum that tells all elements apart.
#[program]
fn weigh(x: &Array1<f64>, y: &Array1<f64>, loss: &mut Array0<f64>) {
    for i in par(0..x.len()) {
        loss[[]] += x[i] * (0.3 + 0.1 * (i as f64)) * y[i];
    }
}

#[program]
fn functions(x: &mut Array1<f64>, y: &Array1<f64>, loss: &mut Array0<f64>) {
    for i in par(0..x.len()) {
        let a = x[i];
        let b = y[i];
        let first = a.sin() * b.cos() + a.tan() + (0.5 * a).asin() + (0.5 * b).acos() + a.atan() + a.atan2(b);
        let second = a.sinh() + b.cosh() * a.tanh() + a.exp() + b.exp2() + a.exp_m1() + a.ln() + b.ln_1p();
        let third = a.log2() + b.log10() + a.powf(b) + a.powi(3) + b.sqrt() + a.cbrt() + a.hypot(b) + a.erf();
        x[i] = first + 0.5 * second - 0.25 * third;
    }
    weigh(x, y, loss);
}

#[program]
fn kinks(x: &mut Array1<f64>, y: &Array1<f64>, loss: &mut Array0<f64>) {
    for i in par(0..x.len()) {
        let a = x[i] - 0.5;
        let b = y[i];
        let c = a.abs() + a.min(b) * a.max(0.1) + select(a > b, a * b, a / b) + a.clamp(-0.2, 0.3) * b;
        x[i] = c + a.mul_add(b, c) + a % 0.3 + (a as f32 as f64) * b.floor() + a.signum() + (3.0 * a).round();
    }
    weigh(x, y, loss);
}

#[program]
fn branches(x: &mut Array1<f64>, y: &Array1<f64>, loss: &mut Array0<f64>) {
    for i in par(0..x.len()) {
        let a = x[i];
        let mut r = y[i] * a;
        if a > 0.5 {
            let b = a * r;
            r = b * b + a;
            if r > 0.6 {
                r = r * a;
            }
        } else {
            r = r / (a + 1.0);
        }
        x[i] = r + if y[i] > 0.53 { a.exp() } else { a };
    }
    weigh(x, y, loss);
}

#[program]
fn inner_loops(x: &mut Array1<f64>, y: &Array1<f64>, loss: &mut Array0<f64>) {
    for i in par(0..x.len()) {
        let mut sum = 0.0;
        for k in 0..y.len() {
            sum += y[k] * x[i] * (0.1 * (k as f64));
        }
        let mut z = x[i];
        for k in 0..4 {
            z = z + 0.1 * z * z * y[k];
        }
        x[i] = sum + z;
    }
    weigh(x, y, loss);
}

#[program]
fn bounded_stencil(x: &mut Array1<f64>, y: &Array1<f64>, loss: &mut Array0<f64>) {
    let n = x.len();
    let mut t = Array1::<f64>::zeros([n]);
    for i in par(1..n - 1) {
        t[i] = x[i - 1] * x[i + 1] - 2.0 * x[i] * y[i + 1];
    }
    for i in par(0..n) {
        if i > 1 && i + 2 < n {
            x[i] = t[i - 1] * t[i + 1] + y[i];
        } else {
            x[i] = t[i] + y[i] * y[0];
        }
    }
    weigh(x, y, loss);
}

#[program]
fn shifts(x: &mut Array1<f64>, y: &Array1<f64>, loss: &mut Array0<f64>) {
    let n = x.len();
    let mut t = Array1::<f64>::zeros([n]);
    for i in par(0..n) {
        t[i] = x[(i + 3) % n] * y[(i + 2 * n - 1) % n] + x[n - 1 - i] * x[i];
    }
    for i in par(0..n) {
        x[i] = t[(i + 11) % n] + t[i.min(4)] * y[i.max(2)];
    }
    weigh(x, y, loss);
}

#[program]
fn gathers_and_scatters(x: &mut Array1<f64>, y: &Array1<f64>, loss: &mut Array0<f64>) {
    let n = x.len();
    let mut bins = Array1::<f64>::zeros([n]);
    for i in par(0..n) {
        let k = (i * i) % 5;
        bins[k] += x[i] * y[(i * 3) % 7];
    }
    for i in par(0..n) {
        x[i] = bins[(i * i + 1) % n] * x[i];
    }
    weigh(x, y, loss);
}

#[program]
fn planes(x: &mut Array1<f64>, y: &Array1<f64>, loss: &mut Array0<f64>) {
    let n = x.len();
    let mut a = Array2::<f64>::zeros([n, n]);
    let mut b = Array2::<f64>::zeros([n, n]);
    for (i, j) in par(0..n, 0..n) {
        a[[i, j]] = x[i] * y[j] + x[j];
    }
    for (i, j) in par(0..n, 0..n) {
        b[[i, j]] = a[[(i + 1) % n, j]] * a[[i, (j + n - 1) % n]] - a[[j, i]];
    }
    swap(a, b);
    for i in par(0..n) {
        let mut s = 0.0;
        for j in 0..n {
            s += a[[i, j]] * y[j];
        }
        x[i] = s;
    }
    copy(b, a);
    fill(b, 0.0);
    for i in par(0..n) {
        x[i] = x[i] + a[[i, 2]] * b[[i, i]] + a[[3, i]];
    }
    weigh(x, y, loss);
}

#[program]
fn program_level(x: &mut Array1<f64>, y: &Array1<f64>, loss: &mut Array0<f64>) {
    let n = x.len();
    let mut scale = y[0];
    x[2] = x[1] * scale + x[2];
    x[3] += y[4] * x[2];
    for t in 0..3 {
        scale = scale * 0.9 + x[t] * y[t];
        let shift = scale * scale;
        for i in par(0..n) {
            x[i] = x[i] * scale + shift;
        }
        if x[t] > 1.0 {
            x[t] = x[t].sqrt();
        }
        for s in 0..2 {
            for i in par(0..n) {
                x[i] = x[i] - 0.05 * x[i] * x[i] * y[s + t];
            }
        }
    }
    weigh(x, y, loss);
}

#[program]
fn unique_scatters(x: &mut Array1<f64>, y: &Array1<f64>, loss: &mut Array0<f64>) {
    let n = x.len();
    let mut t = Array1::<f64>::zeros([n]);
    for s in 0..3 {
        for i in par(0..n - 1) {
            let k = (4 * i + s) % n;
            if x[i] > 0.27 {
                scatter_unique(t, k, (x[i] + 0.5 * x[i + 1] * y[i]).sin() + t[k] * t[k]);
            }
        }
        for i in par(0..n) {
            x[i] = 0.9 * x[i] + 0.2 * t[i];
        }
    }
    weigh(x, y, loss);
}

#[program]
fn extremes(x: &mut Array1<f64>, y: &Array1<f64>, loss: &mut Array0<f64>) {
    let n = x.len();
    let mut most = Array0::<f64>::zeros([]);
    let mut least = Array1::<f64>::zeros([3]);
    let mut own = Array1::<f64>::zeros([n]);
    fill(least, y[0] * 2.0);
    for t in 0..3 {
        for i in par(0..n) {
            let a = (3.0 * x[i] + (t as f64)).sin() * y[i];
            if a > 0.1 {
                most[[]].max_assign(a);
            }
            least[(i + t) % 3].min_assign(a * a - 0.2 * x[i]);
            own[i].max_assign(a * x[i]);
        }
        for i in par(1..n) {
            x[i] = 0.9 * x[i] + 0.1 * most[[]] * least[t] + 0.05 * own[i - 1];
        }
        most[[]].min_assign(x[t] * 3.0);
        fill(own, most[[]] * 0.01);
    }
    weigh(x, y, loss);
    loss[[]] += most[[]] * least[1];
}

#[test]
fn every_construct_has_its_derivative() {
    check!(functions);
    check!(kinks);
    check!(branches);
    check!(inner_loops);
    check!(bounded_stencil);
    check!(shifts);
    check!(gathers_and_scatters);
    check!(planes);
    check!(program_level);
    check!(extremes);
    check!(extremes, crate::cpu());
    check!(unique_scatters);
    check!(unique_scatters, crate::cpu());
}

#[program]
fn roots(x: &mut Array1<f64>, y: &Array1<f64>, loss: &mut Array0<f64>) {
    for i in par(0..x.len()) {
        if x[i] > 0.0 {
            loss[[]] += x[i].sqrt() * y[i];
        }
        loss[[]] += select(x[i] > 0.0, x[i].ln(), 0.0);
    }
}

#[test]
fn an_untaken_branch_contributes_nothing_even_where_its_slope_is_infinite() {
    let device = crate::cpu();
    let (mut x, y, mut loss) = (
        device.array(&[0.0, 0.25, -1.0]).unwrap(),
        device.array(&[1.0, 2.0, 3.0]).unwrap(),
        device.zeros([]).unwrap(),
    );
    let g = roots().grad(roots::loss).wrt(roots::x).compile(&device).unwrap();
    let dx = g.launch((&mut x, &y, &mut loss)).unwrap().get(roots::x).unwrap().to_vec();
    assert_eq!(dx[0], 0.0, "sqrt has an infinite slope at 0, but is not taken there");
    assert_eq!(dx[1], 2.0 * 0.5 / 0.5 + 1.0 / 0.25);
    assert_eq!(dx[2], 0.0);
}

#[program]
fn largest(x: &mut Array1<f64>, y: &Array1<f64>, loss: &mut Array0<f64>) {
    for i in par(0..x.len()) {
        loss[[]].max_assign(x[i] * y[i]);
    }
}

#[test]
fn equal_maxima_share_the_derivative() {
    let device = crate::cpu();
    let (mut x, y) = (device.array(&[3.0, 2.0, 3.0, 1.0]).unwrap(), device.array(&[1.0; 4]).unwrap());
    let g = largest().grad(largest::loss).wrt(largest::x).wrt(largest::loss).compile(&device).unwrap();
    // The old value takes part.
    for (old, expected, kept) in [(0.0, [0.5, 0.0, 0.5, 0.0], 0.0), (4.0, [0.0; 4], 1.0)] {
        let mut loss = device.scalar(old).unwrap();
        let out = g.launch((&mut x, &y, &mut loss)).unwrap();
        assert_eq!(out.get(largest::x).unwrap().to_vec(), expected);
        assert_eq!(out.get(largest::loss).unwrap().value(), kept);
    }
    let mut loss = device.scalar(3.0).unwrap();
    let out = g.launch((&mut x, &y, &mut loss)).unwrap();
    let third = 1.0 / 3.0;
    assert_eq!(out.get(largest::x).unwrap().to_vec(), [third, 0.0, third, 0.0]);
    assert_eq!(out.get(largest::loss).unwrap().value(), third);
}

#[test]
fn maxima_have_second_derivatives() {
    let device = crate::cpu();
    let (mut x, y) = (device.array(&[0.3, 2.0, 0.7]).unwrap(), device.array(&[1.0, 2.0, 3.0]).unwrap());
    let mut loss = device.scalar(0.0).unwrap();
    let along = device.array(&[0.0, 1.0, 0.0]).unwrap();
    let hvp = largest().hvp(largest::loss).wrt(largest::y).wrt(largest::x).compile(&device).unwrap();
    let out = hvp.launch((&mut x, &y, &mut loss), &Direction::new().array(largest::y, &along)).unwrap();
    assert_eq!(out.get(largest::x).unwrap().to_vec(), [0.0, 1.0, 0.0]);
    assert_eq!(out.get(largest::y).unwrap().to_vec(), [0.0; 3]);
}

/// Gradients of a program `p(x, y, loss)` have the same bits under every schedule, on every device.
macro_rules! check_schedules {
    ($p:ident) => {{
        let n = 9;
        let start: Vec<f64> = (0..n).map(|i| 0.15 + 0.1 * ((i * 7) % n) as f64).collect();
        let other: Vec<f64> = (0..n).map(|i| 0.9 - 0.08 * ((i * 5) % n) as f64).collect();
        let mut bits: Option<Vec<u64>> = None;
        for device in [Device::interpreter(), crate::cpu()] {
            let g = $p().grad($p::loss).wrt($p::x).wrt($p::y).compile(&device).unwrap();
            for budget in [
                Budget::StoreAll,
                Budget::Periodic { period: 2 },
                Budget::Revolve { slots: 1, block: 1 },
                Budget::Revolve { slots: 2, block: 2 },
            ] {
                let (mut x, y, mut loss) =
                    (device.array(&start).unwrap(), device.array(&other).unwrap(), device.zeros([]).unwrap());
                let out = g.with_budget(budget).launch((&mut x, &y, &mut loss)).unwrap();
                let (dx, dy) = (out.get($p::x).unwrap().to_vec(), out.get($p::y).unwrap().to_vec());
                let these: Vec<u64> = dx.iter().chain(&dy).map(|d| d.to_bits()).collect();
                assert_eq!(*bits.get_or_insert(these.clone()), these, "{}", stringify!($p));
            }
        }
    }};
}

#[test]
fn new_statements_have_the_same_bits_under_every_schedule() {
    check_schedules!(extremes);
    check_schedules!(unique_scatters);
}

#[program]
fn scaled_square(x: &Array1<f64>, k: f64, y: &mut Array1<f64>) {
    for i in par(0..x.len()) {
        y[i] = k * x[i] * x[i];
    }
}

/// A direction that would be ignored is refused: its product would be wrong.
#[test]
fn a_direction_moves_what_was_asked_for_and_has_its_shape() {
    let device = Device::interpreter();
    let (x, mut y) = (device.array(&[1.0, 2.0]).unwrap(), device.zeros([2]).unwrap());
    let (dx, short) = (device.array(&[1.0, 0.0]).unwrap(), device.array(&[1.0]).unwrap());
    type F = scaled_square;
    let along_x = scaled_square().jvp(F::y).wrt(F::x).compile(&device).unwrap();
    let both = scaled_square().jvp(F::y).wrt(F::x).wrt(F::k).compile(&device).unwrap();
    let out = both.launch((&x, 1.0, &mut y), &Direction::new().array(F::x, &dx).scalar(F::k, 1.0)).unwrap();
    assert_eq!(out.get(F::y).unwrap().to_vec(), [3.0, 4.0]);
    let mut refused =
        |direction: &Direction<'_>| along_x.launch((&x, 1.0, &mut y), direction).unwrap_err().to_string();
    let text = refused(&Direction::new().array(F::x, &dx).scalar(F::k, 1.0));
    assert!(text.contains("names `k`") && text.contains(".wrt(scaled_square::k)"), "{text}");
    let text = refused(&Direction::new().array(F::x, &short));
    assert!(text.contains("has shape [1], `x` itself has [2]"), "{text}");
    let text = scaled_square().jvp(F::y).compile(&device).unwrap_err().to_string();
    assert!(text.contains("with respect to nothing") && text.contains("`x`, `k`, `y`"), "{text}");
}

/// Parameters may be called like derivatives of others.
#[program]
fn grid(
    x: &Array1<f64>,
    d_x: &Array1<f64>,
    dot_x: f64,
    seed_y: &Array1<f64>,
    y: &mut Array1<f64>,
    loss: &mut Array0<f64>,
) {
    for i in par(0..x.len()) {
        y[i] = x[i] * x[i] * d_x[i] * dot_x * seed_y[i];
    }
    for i in par(0..y.len()) {
        loss[[]] += y[i];
    }
}

#[test]
fn parameters_may_be_called_like_derivatives() {
    let device = Device::interpreter();
    let of = |numbers: &[f64]| device.array(numbers).unwrap();
    let (x, d_x, seed_y) = (of(&[1.0, 2.0]), of(&[3.0, 5.0]), of(&[7.0, 11.0]));
    let (mut y, mut loss) = (device.zeros([2]).unwrap(), device.zeros([]).unwrap());
    let g = grid().grad(grid::loss).wrt(grid::x).wrt(grid::d_x).compile(&device).unwrap();
    let out = g.launch((&x, &d_x, 0.5, &seed_y, &mut y, &mut loss)).unwrap();
    assert_eq!(out.get(grid::x).unwrap().to_vec(), [21.0, 110.0]);
    assert_eq!(out.get(grid::d_x).unwrap().to_vec(), [3.5, 22.0]);
    let direction = of(&[1.0, 0.0]);
    let along = Direction::new().array(grid::x, &direction);
    let jvp = grid().jvp(grid::y).wrt(grid::x).compile(&device).unwrap();
    let out = jvp.launch((&x, &d_x, 0.5, &seed_y, &mut y, &mut loss), &along).unwrap();
    assert_eq!(out.get(grid::y).unwrap().to_vec(), [21.0, 0.0]);
    let hvp = grid().hvp(grid::loss).wrt(grid::x).compile(&device).unwrap();
    let out = hvp.launch((&x, &d_x, 0.5, &seed_y, &mut y, &mut loss), &along).unwrap();
    assert_eq!(out.get(grid::x).unwrap().to_vec(), [21.0, 0.0]);
    let seed = of(&[1.0, 10.0]);
    let vjp = grid().vjp(grid::y).wrt(grid::x).compile(&device).unwrap();
    let out = vjp.launch_with(&seed, (&x, &d_x, 0.5, &seed_y, &mut y, &mut loss)).unwrap();
    assert_eq!(out.get(grid::x).unwrap().to_vec(), [21.0, 1100.0]);
    let text = grid().grad(grid::loss).wrt(grid::x).wrt(grid::x).compile(&device).unwrap_err().to_string();
    assert!(text.contains("with respect to `x` is asked for twice"), "{text}");
}

#[program]
fn flat_powers(u: &Array1<f64>, zero: f64, loss: &mut Array0<f64>) {
    for i in par(0..u.len()) {
        loss[[]] += u[i].powi(0) + u[i].powf(0.0) + u[i].powf(zero) + u[i].powi(1);
    }
}

#[test]
fn a_power_of_zero_is_flat_at_zero_too() {
    for device in [Device::interpreter(), crate::cpu()] {
        let g = flat_powers().grad(flat_powers::loss).wrt(flat_powers::u).compile(&device).unwrap();
        let (u, mut loss) = (device.array(&[0.0, 0.5, 1.0]).unwrap(), device.zeros([]).unwrap());
        let out = g.launch((&u, 0.0, &mut loss)).unwrap();
        assert_eq!(out.get(flat_powers::u).unwrap().to_vec(), [1.0; 3]);
    }
}

/// A counter of its own in a loop, used as an index by all iterations.
#[program]
fn counted(
    u: &mut Array1<f64>,
    w: &Array1<f64>,
    steps: usize,
    history: &mut Array1<f64>,
    shifted: &mut Array1<f64>,
    loss: &mut Array0<f64>,
) {
    let n = u.len();
    let mut t: usize = 0;
    while t < steps {
        for i in par(0..n) {
            u[i] += w[t] * u[i];
        }
        for i in par(0..n) {
            history[t] += u[i] * u[i];
        }
        t += 1;
    }
    for i in par(t..n) {
        shifted[i - t] = u[i] * w[0];
    }
    for k in 0..steps {
        loss[[]] += history[k];
    }
    for i in par(0..n) {
        loss[[]] += shifted[i] * u[(i + t) % n];
    }
}

#[test]
fn a_counter_that_iterations_use_is_the_same_in_a_gradient() {
    let steps = 4;
    for device in [Device::interpreter(), crate::cpu()] {
        for n in [5, 17, 5000] {
            let start: Vec<f64> = (0..n).map(|i| 0.3 + ((i * 7) % 11) as f64 / 13.0).collect();
            let weights = [0.1, 0.02, 0.3, 0.04];
            let plain = counted().compile(&device).unwrap();
            let run = |weights: &[f64]| {
                let (mut u, w) = (device.array(&start).unwrap(), device.array(weights).unwrap());
                let (mut history, mut shifted) = (device.zeros([steps]).unwrap(), device.zeros([n]).unwrap());
                let mut loss = device.zeros([]).unwrap();
                let _done = plain.launch((&mut u, &w, steps, &mut history, &mut shifted, &mut loss)).unwrap();
                loss.value()
            };
            let g = counted().value_and_grad(counted::loss).wrt(counted::w).compile(&device).unwrap();
            let (mut u, w) = (device.array(&start).unwrap(), device.array(&weights).unwrap());
            let (mut history, mut shifted) = (device.zeros([steps]).unwrap(), device.zeros([n]).unwrap());
            let mut loss = device.zeros([]).unwrap();
            let mut first: Option<Vec<u64>> = None;
            for budget in [Budget::StoreAll, Budget::Revolve { slots: 2, block: 1 }] {
                let g = g.with_budget(budget);
                let out = g.launch((&mut u, &w, steps, &mut history, &mut shifted, &mut loss)).unwrap();
                let value: f64 = out.value(counted::loss).unwrap().value();
                assert_eq!(value.to_bits(), run(&weights).to_bits(), "{n} on {device:?}");
                let found = out.get(counted::w).unwrap().to_vec();
                for (k, slope) in found.iter().enumerate() {
                    let moved = |h: f64| {
                        let mut moved = weights;
                        moved[k] += h;
                        run(&moved)
                    };
                    let expected = (moved(1e-5) - moved(-1e-5)) / 2e-5;
                    assert!(
                        (slope - expected).abs() < 1e-6 * (1.0 + expected.abs()),
                        "{k}: {slope} {expected}"
                    );
                }
                let bits: Vec<u64> = found.iter().map(|x| x.to_bits()).collect();
                assert_eq!(*first.get_or_insert_with(|| bits.clone()), bits);
            }
        }
    }
}

#[program]
fn lengths(u: &Array1<f64>, v: &Array1<f64>, loss: &mut Array0<f64>) {
    for i in par(0..u.len()) {
        loss[[]] += u[i].hypot(v[i]);
    }
}

#[test]
fn a_length_is_flat_at_zero() {
    for device in [Device::interpreter(), crate::cpu()] {
        let g = lengths().grad(lengths::loss).wrt(lengths::u).wrt(lengths::v).compile(&device).unwrap();
        let (u, v) = (device.array(&[0.0, 3.0]).unwrap(), device.array(&[0.0, 4.0]).unwrap());
        let mut loss = device.zeros([]).unwrap();
        let out = g.launch((&u, &v, &mut loss)).unwrap();
        assert_eq!(out.get(lengths::u).unwrap().to_vec(), [0.0, 0.6]);
        assert_eq!(out.get(lengths::v).unwrap().to_vec(), [0.0, 0.8]);
    }
}
