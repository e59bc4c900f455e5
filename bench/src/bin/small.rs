//! What small values cost: programs over arrays of vectors and matrices beside the same programs by components, in the same
//! layout (`Array2` of shape `[n, 3]`). Both take turns in one process on one thread; a ratio is that of the shortest runs, in time
//! on the processor.
//!
//! `cargo run --release -p ebbtide-bench --bin small`

use ebbtide::prelude::*;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

const DT: f64 = 1e-3;

/// Bodies in a field that pulls to the origin: little arithmetic on each.
#[program]
fn orbits(x: &mut Array1<Vec3<f64>>, v: &mut Array1<Vec3<f64>>, steps: usize, loss: &mut Array0<f64>) {
    for _t in 0..steps {
        for i in par(0..x.len()) {
            let r = x[i].norm();
            v[i] -= (DT / (r * r * r)) * x[i];
            x[i] += DT * v[i];
        }
    }
    for i in par(0..x.len()) {
        loss[[]] += x[i].norm_squared();
    }
}

#[program]
fn orbits_by_components(x: &mut Array2<f64>, v: &mut Array2<f64>, steps: usize, loss: &mut Array0<f64>) {
    for _t in 0..steps {
        for i in par(0..x.dim(0)) {
            let r = (x[[i, 0]] * x[[i, 0]] + x[[i, 1]] * x[[i, 1]] + x[[i, 2]] * x[[i, 2]]).sqrt();
            let pull = DT / (r * r * r);
            v[[i, 0]] -= pull * x[[i, 0]];
            v[[i, 1]] -= pull * x[[i, 1]];
            v[[i, 2]] -= pull * x[[i, 2]];
            x[[i, 0]] += DT * v[[i, 0]];
            x[[i, 1]] += DT * v[[i, 1]];
            x[[i, 2]] += DT * v[[i, 2]];
        }
    }
    for i in par(0..x.dim(0)) {
        loss[[]] += x[[i, 0]] * x[[i, 0]] + x[[i, 1]] * x[[i, 1]] + x[[i, 2]] * x[[i, 2]];
    }
}

/// A chain of springs: vectors of neighbours, and a swap.
#[program]
fn chain(x: &mut Array1<Vec3<f64>>, v: &mut Array1<Vec3<f64>>, steps: usize, loss: &mut Array0<f64>) {
    let n = x.len();
    let mut force = Array1::<Vec3<f64>>::zeros([n]);
    for _t in 0..steps {
        for i in par(1..n - 1) {
            let (left, right) = (x[i - 1] - x[i], x[i + 1] - x[i]);
            force[i] = left * (1.0 - 0.1 / left.norm()) + right * (1.0 - 0.1 / right.norm());
        }
        for i in par(0..n) {
            v[i] += DT * force[i];
            x[i] += DT * v[i];
        }
    }
    for i in par(0..n) {
        loss[[]] += x[i].norm_squared();
    }
}

#[program]
fn chain_by_components(x: &mut Array2<f64>, v: &mut Array2<f64>, steps: usize, loss: &mut Array0<f64>) {
    let n = x.dim(0);
    let mut force = Array2::<f64>::zeros([n, 3]);
    for _t in 0..steps {
        for i in par(1..n - 1) {
            let (lx, ly, lz) =
                (x[[i - 1, 0]] - x[[i, 0]], x[[i - 1, 1]] - x[[i, 1]], x[[i - 1, 2]] - x[[i, 2]]);
            let (rx, ry, rz) =
                (x[[i + 1, 0]] - x[[i, 0]], x[[i + 1, 1]] - x[[i, 1]], x[[i + 1, 2]] - x[[i, 2]]);
            let l = 1.0 - 0.1 / (lx * lx + ly * ly + lz * lz).sqrt();
            let r = 1.0 - 0.1 / (rx * rx + ry * ry + rz * rz).sqrt();
            force[[i, 0]] = lx * l + rx * r;
            force[[i, 1]] = ly * l + ry * r;
            force[[i, 2]] = lz * l + rz * r;
        }
        for i in par(0..n) {
            v[[i, 0]] += DT * force[[i, 0]];
            v[[i, 1]] += DT * force[[i, 1]];
            v[[i, 2]] += DT * force[[i, 2]];
            x[[i, 0]] += DT * v[[i, 0]];
            x[[i, 1]] += DT * v[[i, 1]];
            x[[i, 2]] += DT * v[[i, 2]];
        }
    }
    for i in par(0..n) {
        loss[[]] += x[[i, 0]] * x[[i, 0]] + x[[i, 1]] * x[[i, 1]] + x[[i, 2]] * x[[i, 2]];
    }
}

/// Deformations that flow: matrices times matrices, and a vector that they turn.
#[program]
fn flow(f: &mut Array1<Mat2<f64>>, x: &mut Array1<Vec2<f64>>, steps: usize, loss: &mut Array0<f64>) {
    for _t in 0..steps {
        for i in par(0..f.len()) {
            let c = Mat2::new(0.0, x[i].x, -x[i].y, 0.1);
            f[i] = (Mat2::identity() + DT * c) * f[i];
            x[i] += DT * (f[i] * x[i]) / f[i].determinant();
        }
    }
    for i in par(0..f.len()) {
        loss[[]] += f[i].trace() + x[i].norm_squared();
    }
}

#[program]
fn flow_by_components(f: &mut Array3<f64>, x: &mut Array2<f64>, steps: usize, loss: &mut Array0<f64>) {
    for _t in 0..steps {
        for i in par(0..f.dim(0)) {
            let (a, b, c, d) = (1.0, DT * x[[i, 0]], DT * -x[[i, 1]], 1.0 + DT * 0.1);
            let (p, q, r, s) = (f[[i, 0, 0]], f[[i, 0, 1]], f[[i, 1, 0]], f[[i, 1, 1]]);
            f[[i, 0, 0]] = a * p + b * r;
            f[[i, 0, 1]] = a * q + b * s;
            f[[i, 1, 0]] = c * p + d * r;
            f[[i, 1, 1]] = c * q + d * s;
            let volume = f[[i, 0, 0]] * f[[i, 1, 1]] - f[[i, 0, 1]] * f[[i, 1, 0]];
            let (y, z) = (x[[i, 0]], x[[i, 1]]);
            x[[i, 0]] += DT * (f[[i, 0, 0]] * y + f[[i, 0, 1]] * z) / volume;
            x[[i, 1]] += DT * (f[[i, 1, 0]] * y + f[[i, 1, 1]] * z) / volume;
        }
    }
    for i in par(0..f.dim(0)) {
        loss[[]] += f[[i, 0, 0]] + f[[i, 1, 1]] + x[[i, 0]] * x[[i, 0]] + x[[i, 1]] * x[[i, 1]];
    }
}

/// Seconds of this thread on the processor.
fn processor() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}

fn timed(work: &mut dyn FnMut() -> Result<()>) -> Result<f64> {
    let begun = processor();
    work()?;
    Ok(processor() - begun)
}

/// The ratio of the shortest runs, and the shortest of the first.
fn compare(
    mut small: impl FnMut() -> Result<()>,
    mut plain: impl FnMut() -> Result<()>,
) -> Result<(f64, f64)> {
    small()?;
    plain()?;
    let mut least = [f64::INFINITY; 2];
    let (mut rounds, begun) = (0, processor());
    while rounds < 21 || processor() - begun < 1.0 {
        least = [least[0].min(timed(&mut small)?), least[1].min(timed(&mut plain)?)];
        rounds += 1;
    }
    Ok((least[0] / least[1], least[0]))
}

fn number(k: usize) -> f64 {
    let mixed = (k as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    1.0 + (mixed >> 11) as f64 / (1u64 << 53) as f64
}

/// One row: a program of small values and its twin, whose arrays have these shapes.
macro_rules! row {
    ($device:expr, $small:ident, $plain:ident, $n:expr, [$($extent:expr),*], [$($other:expr),*]) => {{
        let (n, steps) = ($n, 2_000_000 / $n);
        let elements = |count: usize| (0..count * n).map(number).collect::<Vec<f64>>();
        let (first, second) = (elements([$($extent),*].iter().product()), elements([$($other),*].iter().product()));
        let (mut a, mut b) =
            ($device.array_with_shape([n, $($extent),*], &first)?, $device.array_with_shape([n, $($other),*], &second)?);
        let other_elements = |_| "the elements have another shape";
        let mut c = Array1::from_any(a.try_clone()?.into_any()).map_err(other_elements)?;
        let mut d = Array1::from_any(b.try_clone()?.into_any()).map_err(other_elements)?;
        let mut loss = $device.scalar(0.0)?;
        let mut other_loss = $device.scalar(0.0)?;
        let (small, plain) = ($small().compile($device)?, $plain().compile($device)?);
        let (program, seconds) = compare(
            || Ok(small.launch((&mut c, &mut d, steps, &mut loss)).map(drop)?),
            || Ok(plain.launch((&mut a, &mut b, steps, &mut other_loss)).map(drop)?),
        )?;
        let few = steps.min(50);
        let of_small = $small().grad($small::loss).wrt($small::x).budget(Budget::StoreAll).compile($device)?;
        let of_plain = $plain().grad($plain::loss).wrt($plain::x).budget(Budget::StoreAll).compile($device)?;
        let (gradient, _) = compare(
            || Ok(of_small.launch((&c, &d, few, &loss)).map(drop)?),
            || Ok(of_plain.launch((&a, &b, few, &other_loss)).map(drop)?),
        )?;
        let step = seconds / steps as f64 * 1e6;
        println!("{:<8} {n:>8} {step:>12.2} {program:>9.3} {gradient:>9.3}", stringify!($small));
    }};
}

fn main() -> Result<()> {
    let (device, _) =
        ebbtide_cpu::Options::new().threads(1).optimize(ebbtide_cpu::Optimize::Always).build()?;
    println!("small values over components, one thread, f64");
    println!("{:<8} {:>8} {:>12} {:>9} {:>9}", "", "elements", "µs per step", "program", "gradient");
    for n in [1_000, 20_000] {
        row!(&device, orbits, orbits_by_components, n, [3], [3]);
        row!(&device, chain, chain_by_components, n, [3], [3]);
        row!(&device, flow, flow_by_components, n, [2, 2], [2]);
    }
    Ok(())
}
