//! Programs that `python/tests/test_same_programs.py` writes in Python: the golden file has their hashes and the bits
//! of their results, and both languages are held against it (CONFORMANCE 63).

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fmt::Write as _;

use ebbtide::prelude::*;
use expect_test::expect_file;

#[program]
fn burgers(u: &mut Array1<f64>, next: &mut Array1<f64>, nu: f64, dt: f64, steps: usize) {
    let n = u.len();
    for _t in 0..steps {
        for i in par(0..n) {
            let l = u[(i + n - 1) % n];
            let r = u[(i + 1) % n];
            next[i] = u[i] + dt * (nu * (l - 2.0 * u[i] + r) - 0.5 * u[i] * (r - l));
        }
        swap(u, next);
    }
}

#[program]
fn objective(
    u: &mut Array1<f64>,
    next: &mut Array1<f64>,
    nu: f64,
    dt: f64,
    steps: usize,
    target: &Array1<f64>,
    loss: &mut Array0<f64>,
) {
    burgers(u, next, nu, dt, steps);
    for i in par(0..u.len()) {
        let d = u[i] - target[i];
        loss[[]] += 0.5 * d * d;
    }
}

#[func]
fn laplacian(u: &Array2<f32>, i: usize, j: usize) -> f32 {
    u[[i - 1, j]] + u[[i + 1, j]] + u[[i, j - 1]] + u[[i, j + 1]] - 4.0 * u[[i, j]]
}

#[program]
fn heat(u: &mut Array2<f32>, next: &mut Array2<f32>, steps: usize) {
    copy(u, next);
    for _t in 0..steps {
        for (i, j) in par(1..u.dim(0) - 1, 1..u.dim(1) - 1) {
            next[[i, j]] = u[[i, j]] + 0.1 * laplacian(u, i, j);
        }
        swap(u, next);
    }
}

#[program]
fn histogram(x: &Array1<f64>, bins: &mut Array1<i32>, sum: &mut Array0<f64>) {
    let most = bins.len() - 1;
    for i in par(0..x.len()) {
        sum[[]] += x[i];
        let k = (x[i].floor() as usize).min(most);
        bins[k] += 1;
    }
}

#[program]
fn walk(x: &mut Array1<f64>, seed: i64, steps: usize) {
    let n = x.len();
    for i in par(0..n) {
        let mut here = x[i];
        for t in 0..steps {
            let up = rand::<f64>(seed, t * n + i) < 0.5;
            here += select(up, 1.0, -1.0);
            here = if here.abs() > 3.0 { 0.5 * here } else { here };
        }
        x[i] = here;
    }
}

#[program]
fn rnn(h: &mut Array2<f64>, w: &Array2<f64>, x: &Array2<f64>, steps: usize) {
    let mut z = Array2::<f64>::zeros([h.dim(0), h.dim(1)]);
    for t in 0..steps {
        matmul(h, w, z);
        for (i, j) in par(0..h.dim(0), 0..h.dim(1)) {
            h[[i, j]] = (z[[i, j]] + x[[t, j]]).tanh();
        }
    }
}

#[program]
fn positive(x: &Array1<f64>, list: &mut Array1<i32>, count: &mut Array0<i32>, overflow: &mut Array0<i32>) {
    let mut flags = Array1::<bool>::zeros([x.len()]);
    for i in par(0..x.len()) {
        flags[i] = x[i] > 0.0;
    }
    compact(flags, list, count);
    overflow[[]] = select(count[[]] as usize > list.len(), 1, 0);
}

#[program]
fn solve(x: &mut Array1<f64>, p: &Array1<f64>, tolerance: f64) {
    let n = x.len();
    let mut next = Array1::<f64>::zeros([n]);
    let mut change = Array0::<f64>::zeros([]);
    loop {
        for i in par(0..n) {
            next[i] = p[i] + 0.3 * (x[(i + n - 1) % n] + x[(i + 1) % n]).sin();
        }
        fill(change, 0.0);
        for i in par(0..n) {
            change[[]].max_assign((next[i] - x[i]).abs());
        }
        copy(next, x);
        if change[[]] < tolerance {
            break;
        }
    }
}

#[derive(Label)]
enum Stage {
    Detect,
    Solve,
}

#[program]
fn step(pairs: &mut Array1<i32>, overflow: &mut Array0<i32>, residual: &mut Array0<f32>) {
    #[checkpoint(Stage::Detect, yield_on = overflow, undo = [pairs])]
    {
        fill(pairs, 1);
        overflow[[]] = 0;
    }
    loop {
        #[checkpoint(Stage::Solve)]
        {
            residual[[]] *= 0.5;
        }
        if residual[[]] < 1e-6 {
            break;
        }
    }
}

#[derive(Arrays)]
struct Grid {
    u: Array1<f64>,
    dx: f64,
}

#[program]
fn measure(grid: &Grid, energy: &mut Array0<f64>) {
    energy[[]] = 0.0;
    for i in par(0..grid.u.len()) {
        energy[[]] += grid.u[i] * grid.u[i] * grid.dx;
    }
}

#[program]
fn collatz(start: &Array1<i64>, place: &Array1<i32>, length: &mut Array1<i32>, total: &mut Array1<i32>) {
    for i in par(0..start.len()) {
        let mut n = start[i];
        let mut count = 0;
        while n > 1 && count < 1000 {
            if n & 1 == 0 {
                n = n >> 1;
            } else {
                n = 3 * n + 1;
            }
            count += 1;
        }
        scatter_unique(length, place[i] as usize, count);
    }
    scan(length, total);
}

#[func]
fn root(x: f64, most: usize) -> f64 {
    if x <= 0.0 {
        return 0.0;
    }
    let mut r = x;
    for _k in 0..most {
        let next = 0.5 * (r + x / r);
        if (next - r).abs() < 1e-12 {
            break;
        }
        r = next;
    }
    r
}

#[program]
fn roots(x: &mut Array1<f64>) {
    for i in par(0..x.len()) {
        if x[i] > 4.0 {
            continue;
        }
        x[i] = root(x[i], 50);
    }
    for i in (1..x.len()).rev() {
        x[i] -= x[i - 1];
    }
    for i in (0..x.len()).step_by(3) {
        if x[i] > 3.0 {
            break;
        }
        x[i] += 1.0;
    }
}

#[func]
fn orbit(pos: Vec2<f64>, vel: Vec2<f64>, dt: f64) -> (Vec2<f64>, Vec2<f64>, f64) {
    let r = pos.norm();
    let new = vel - pos * (dt / (r * r * r));
    (pos + new * dt, new, r)
}

#[program]
fn orbits(
    x: &mut Array1<Vec2<f64>>,
    v: &mut Array1<Vec2<f64>>,
    nearest: &mut Array1<f64>,
    dt: f64,
    steps: usize,
) {
    for i in par(0..x.len()) {
        for _t in 0..steps {
            let (pos, vel, r) = orbit(x[i], v[i], dt);
            nearest[i].min_assign(r);
            x[i] = pos;
            v[i] = vel;
        }
    }
}

fn line<P: ebbtide::__lang::Source>(text: &mut String, program: Program<P>, bits: &[Vec<u64>]) {
    let _ = writeln!(text, "{} {}", program.name(), program.ir().unwrap().hash());
    for array in bits {
        let hex: Vec<String> = array.iter().map(|b| format!("{b:x}")).collect();
        let _ = writeln!(text, "  {}", hex.join(" "));
    }
}

fn f64s(x: &[f64]) -> Vec<u64> {
    x.iter().map(|x| x.to_bits()).collect()
}

fn i32s(x: &[i32]) -> Vec<u64> {
    x.iter().map(|x| *x as u32 as u64).collect()
}

/// Numbers that both languages make alike: multiples of 1/8.
fn ramp(n: usize) -> Vec<f64> {
    (0..n).map(|i| ((i * 37 + 11) % 64) as f64 / 8.0 - 3.0).collect()
}

#[test]
fn programs_have_the_hashes_and_bits_that_python_gives_them() {
    let d = Device::cpu();
    let mut text = String::new();

    let (mut u, mut next) = (d.array(&ramp(40)).unwrap(), d.zeros([40]).unwrap());
    let _ = burgers().compile(&d).unwrap().launch((&mut u, &mut next, 0.1, 0.01, 25)).unwrap();
    line(&mut text, burgers(), &[f64s(&u.to_vec()), f64s(&next.to_vec())]);

    let (mut u, target, mut loss) =
        (d.array(&ramp(40)).unwrap(), d.zeros([40]).unwrap(), d.scalar(0.0).unwrap());
    let g = objective().value_and_grad(objective::loss).wrt(objective::u).wrt(objective::nu);
    let g = g.memory(Bytes::kib(24)).compile(&d).unwrap();
    let out = g.launch((&mut u, &mut next, 0.1, 0.01, 100, &target, &mut loss)).unwrap();
    let (value, du, dnu) = (
        out.value(objective::loss).unwrap().value(),
        out.get(objective::u).unwrap().to_vec(),
        out.get(objective::nu).unwrap(),
    );
    line(&mut text, objective(), &[f64s(&[value, dnu]), f64s(&du)]);

    let start: Vec<f32> = ramp(9 * 7).iter().map(|x| *x as f32).collect();
    let mut u = d.array_with_shape([9, 7], &start).unwrap();
    let mut next = d.zeros([9, 7]).unwrap();
    let _ = heat().compile(&d).unwrap().launch((&mut u, &mut next, 7)).unwrap();
    line(&mut text, heat(), &[u.to_vec().iter().map(|x| x.to_bits() as u64).collect()]);

    let x: Vec<f64> = ramp(100).iter().map(|x| x + 3.0).collect();
    let (x, mut bins, mut sum) = (d.array(&x).unwrap(), d.zeros([5]).unwrap(), d.scalar(0.0).unwrap());
    let _ = histogram().compile(&d).unwrap().launch((&x, &mut bins, &mut sum)).unwrap();
    line(&mut text, histogram(), &[i32s(&bins.to_vec()), f64s(&[sum.value()])]);

    let mut x = d.array(&ramp(6)).unwrap();
    let _ = walk().compile(&d).unwrap().launch((&mut x, 7, 20)).unwrap();
    line(&mut text, walk(), &[f64s(&x.to_vec())]);

    let mut h = d.array_with_shape([3, 4], &ramp(12)).unwrap();
    let w = d.array_with_shape([4, 4], &ramp(16)).unwrap();
    let x = d.array_with_shape([5, 4], &ramp(20)).unwrap();
    let _ = rnn().compile(&d).unwrap().launch((&mut h, &w, &x, 5)).unwrap();
    line(&mut text, rnn(), &[f64s(&h.to_vec())]);

    let (x, mut list) = (d.array(&ramp(30)).unwrap(), d.zeros([10]).unwrap());
    let (mut count, mut overflow) = (d.scalar(0).unwrap(), d.scalar(0).unwrap());
    let _ = positive().compile(&d).unwrap().launch((&x, &mut list, &mut count, &mut overflow)).unwrap();
    line(&mut text, positive(), &[i32s(&list.to_vec()), i32s(&[count.value(), overflow.value()])]);

    let (mut x, p) = (d.zeros([12]).unwrap(), d.array(&ramp(12)).unwrap());
    let _ = solve().compile(&d).unwrap().launch((&mut x, &p, 1e-12)).unwrap();
    line(&mut text, solve(), &[f64s(&x.to_vec())]);

    let (mut pairs, mut overflow, mut residual) =
        (d.zeros([3]).unwrap(), d.scalar(0).unwrap(), d.scalar(1.0f32).unwrap());
    let _ = step().compile(&d).unwrap().launch((&mut pairs, &mut overflow, &mut residual)).unwrap();
    line(&mut text, step(), &[i32s(&pairs.to_vec()), vec![residual.value().to_bits() as u64]]);

    let (grid, mut energy) = (Grid { u: d.array(&ramp(33)).unwrap(), dx: 0.1 }, d.scalar(1.0).unwrap());
    let _ = measure().compile(&d).unwrap().launch((&grid, &mut energy)).unwrap();
    line(&mut text, measure(), &[f64s(&[energy.value()])]);

    let start = d.array(&[27i64, 1, 97, 6, 1 << 40]).unwrap();
    let place = d.array(&[4, 2, 0, 1, 3]).unwrap();
    let (mut length, mut total) = (d.zeros([5]).unwrap(), d.zeros([5]).unwrap());
    let _ = collatz().compile(&d).unwrap().launch((&start, &place, &mut length, &mut total)).unwrap();
    line(&mut text, collatz(), &[i32s(&length.to_vec()), i32s(&total.to_vec())]);

    let mut x = d.array(&ramp(20)).unwrap();
    let _ = roots().compile(&d).unwrap().launch(&mut x).unwrap();
    line(&mut text, roots(), &[f64s(&x.to_vec())]);

    let vectors = |shift: f64| -> Vec<Vec2<f64>> {
        ramp(6).chunks(2).map(|pair| Vec2::new(pair[0] + shift, pair[1] + shift)).collect()
    };
    let flat = |a: &Array1<Vec2<f64>>| f64s(&a.iter().flat_map(|v| [v.x, v.y]).collect::<Vec<_>>());
    let (mut x, mut v) = (d.array(&vectors(4.0)).unwrap(), d.array(&vectors(0.0)).unwrap());
    let mut nearest = d.array(&[9.0; 3]).unwrap();
    let _ = orbits().compile(&d).unwrap().launch((&mut x, &mut v, &mut nearest, 0.125, 20)).unwrap();
    line(&mut text, orbits(), &[flat(&x), flat(&v), f64s(&nearest.to_vec())]);

    expect_file!["../../../python/tests/golden/same_programs.txt"].assert_eq(&text);
}
