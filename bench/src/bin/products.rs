//! Products of matrices on one core, next to the crate `gemm`, and dense layers in time with their gradient.
//!
//! `cargo run --release -p ebbtide-bench --bin products [-- --quick]`

use std::time::{Duration, Instant};

use ebbtide::ir::{Access, Assign, Builder, Layout, LibraryOp, Program, Type};
use ebbtide::prelude::*;
use ebbtide_cpu::{Optimize, Options};
use ebbtide_runtime::{AnyArray, Arg, Compiled};

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// `h = tanh(h w)` for a batch of rows, the loss at the end.
#[program]
fn layers<T: Float>(h: &mut Array2<T>, z: &mut Array2<T>, w: &Array2<T>, steps: usize, loss: &mut Array0<T>) {
    for _t in 0..steps {
        matmul(h, w, z);
        for (i, j) in par(0..h.dim(0), 0..h.dim(1)) {
            h[[i, j]] = z[[i, j]].tanh();
        }
    }
    for (i, j) in par(0..h.dim(0), 0..h.dim(1)) {
        loss[[]] += h[[i, j]] * h[[i, j]];
    }
}

/// The best time of many short runs that take turns.
fn best(mut runs: Vec<Box<dyn FnMut() + '_>>, at_least: Duration) -> Vec<f64> {
    let mut best = vec![f64::MAX; runs.len()];
    let begun = Instant::now();
    for round in 0.. {
        for (run, best) in runs.iter_mut().zip(&mut best) {
            let start = Instant::now();
            run();
            *best = best.min(start.elapsed().as_secs_f64());
        }
        if round > 2 && begun.elapsed() > at_least {
            break;
        }
    }
    best
}

fn number(k: usize) -> f64 {
    ((k.wrapping_mul(2_654_435_761) >> 7) % 2048) as f64 / 1024.0 - 1.0
}

fn product(ty: Type, left: Layout, right: Layout, into: Assign) -> Result<Program> {
    let mut b = Builder::new("product");
    let [x, y] = ["x", "y"].map(|name| b.array(name, ty, 2, Access::Read));
    let z = b.array("z", ty, 2, Access::Write);
    b.library(LibraryOp::Matmul { left, right, into }, &[x, y], &[z]);
    Ok(b.finish()?)
}

fn filled(device: &Device, ty: Type, shape: [usize; 2]) -> Result<AnyArray> {
    let mut array = AnyArray::zeros(device, ty, &shape)?;
    let bytes: Vec<u8> = (0..shape[0] * shape[1])
        .flat_map(|k| match ty {
            Type::F32 => (number(k) as f32).to_le_bytes().to_vec(),
            _ => number(k).to_le_bytes().to_vec(),
        })
        .collect();
    array.copy_from_bytes(&bytes)?;
    Ok(array)
}

/// `c = a b` by the crate `gemm`, with the strides that the layouts give.
fn peer<'a, T: Copy + 'static>(
    [m, k, n]: [usize; 3],
    (a, left): (&'a [T], Layout),
    (b, right): (&'a [T], Layout),
    c: &'a mut [T],
    add: bool,
    one: T,
) -> Box<dyn FnMut() + 'a> {
    let strides = |layout, rows: usize, columns: usize| match layout {
        Layout::Plain => (1, columns as isize),
        Layout::Transposed => (rows as isize, 1),
    };
    let ((ac, ar), (bc, br)) = (strides(left, m, k), strides(right, k, n));
    Box::new(move || {
        // SAFETY (*Bounds*): the slices hold m·k, k·n and m·n elements.
        unsafe {
            gemm::gemm(
                m,
                n,
                k,
                c.as_mut_ptr(),
                1,
                n as isize,
                add,
                a.as_ptr(),
                ac,
                ar,
                b.as_ptr(),
                bc,
                br,
                one,
                one,
                false,
                false,
                false,
                gemm::Parallelism::None,
            );
        }
    })
}

fn compare(
    device: &Device,
    ty: Type,
    shape: [usize; 3],
    layouts: [Layout; 2],
    into: Assign,
    time: Duration,
) -> Result<()> {
    let [m, k, n] = shape;
    let [left, right] = layouts;
    let lying = |layout, rows, columns| match layout {
        Layout::Plain => [rows, columns],
        Layout::Transposed => [columns, rows],
    };
    let compiled = Compiled::new(&product(ty, left, right, into)?, device)?;
    let a = filled(device, ty, lying(left, m, k))?;
    let b = filled(device, ty, lying(right, k, n))?;
    let mut c = filled(device, ty, [m, n])?;
    let launch = || {
        compiled
            .launch(vec![Arg::Read(&a), Arg::Read(&b), Arg::Write(c.any_mut())])
            .map(drop)
            .unwrap_or_default();
    };
    let add = into == Assign::Add;
    let times = if ty == Type::F32 {
        let of = |count: usize| (0..count).map(|k| number(k) as f32).collect::<Vec<_>>();
        let (x, y, mut z) = (of(m * k), of(k * n), of(m * n));
        best(vec![Box::new(launch), peer(shape, (&x, left), (&y, right), &mut z, add, 1.0)], time)
    } else {
        let of = |count: usize| (0..count).map(number).collect::<Vec<_>>();
        let (x, y, mut z) = (of(m * k), of(k * n), of(m * n));
        best(vec![Box::new(launch), peer(shape, (&x, left), (&y, right), &mut z, add, 1.0)], time)
    };
    let rate = |seconds: f64| 2.0 * (m * k * n) as f64 / seconds * 1e-9;
    let letter = |layout| if layout == Layout::Plain { 'n' } else { 't' };
    println!(
        "{ty} {}{}{} {m:>4} x {k:>4} x {n:>4}: {:>9.1} us {:>6.1} GF/s, gemm {:>9.1} us {:>6.1} GF/s: {:>4.0} %",
        letter(left),
        letter(right),
        if add { '+' } else { '=' },
        times[0] * 1e6,
        rate(times[0]),
        times[1] * 1e6,
        rate(times[1]),
        100.0 * times[1] / times[0]
    );
    Ok(())
}

macro_rules! dense {
    ($ty:ty, $device:expr, $batch:expr, $n:expr, $steps:expr, $scale:expr, $time:expr) => {{
        let (device, batch, n, steps) = ($device, $batch, $n, $steps);
        let scale = $scale / (n as f64).sqrt();
        let of = |count: usize, by: f64| (0..count).map(|k| (by * number(k)) as $ty).collect::<Vec<$ty>>();
        let mut h = device.array_with_shape([batch, n], &of(batch * n, 1.0))?;
        let mut z = device.zeros([batch, n])?;
        let w = device.array_with_shape([n, n], &of(n * n, scale))?;
        let mut loss = device.zeros([])?;
        let program = layers::<$ty>().compile(device)?;
        let asked =
            layers::<$ty>().value_and_grad(layers::<$ty>::loss).wrt(layers::<$ty>::h).wrt(layers::<$ty>::w);
        let gradient = asked.budget(Budget::StoreAll).compile(device)?;
        let mut out = gradient.launch((&mut h, &mut z, &w, steps, &mut loss))?;
        let start = h.to_vec();
        let mut state = device.array_with_shape([batch, n], &start)?;
        let mut scratch = device.zeros([batch, n])?;
        let mut value = device.zeros([])?;
        let times = best(
            vec![
                Box::new(|| {
                    state.copy_from_slice(&start).unwrap_or_default();
                    let _ = program.launch((&mut state, &mut scratch, &w, steps, &mut value));
                }),
                Box::new(|| {
                    let _ = gradient.launch_into(&mut out, (&mut h, &mut z, &w, steps, &mut loss));
                }),
            ],
            $time,
        );
        let per = |seconds: f64| seconds * 1e6 / steps as f64;
        println!(
            "{} {batch} x {n}: program {:.1} us a step, gradient {:.1}: {:.2} times",
            stringify!($program),
            per(times[0]),
            per(times[1]),
            times[1] / times[0]
        );
    }};
}

fn main() -> Result<()> {
    let quick = std::env::args().any(|word| word == "--quick");
    let only = std::env::args().skip_while(|word| word != "--only").nth(1);
    let time = Duration::from_millis(if quick { 60 } else { 400 });
    let (device, _) = Options::new().threads(1).optimize(Optimize::Always).build()?;
    if std::env::args().any(|word| word == "--source") {
        let gradient = layers::<f32>().grad(layers::<f32>::loss).wrt(layers::<f32>::w).compile(&device)?;
        println!("{}", gradient.source().unwrap_or_default());
        return Ok(());
    }
    let layouts = [Layout::Plain, Layout::Transposed];
    let shapes: &[[usize; 3]] = if quick {
        &[[1, 256, 256], [64, 512, 512], [512, 64, 512], [512, 512, 512]]
    } else {
        &[
            [1, 256, 256],
            [256, 1, 256],
            [1, 1024, 1024],
            [8, 256, 256],
            [32, 32, 32],
            [64, 512, 512],
            [512, 64, 512],
            [256, 1024, 1024],
            [1024, 256, 1024],
            [100, 300, 70],
            [512, 512, 512],
            [1024, 1024, 1024],
        ]
    };
    if only.as_deref() != Some("layers") {
        for ty in [Type::F32, Type::F64] {
            for shape in shapes {
                for left in layouts {
                    for right in layouts {
                        compare(&device, ty, *shape, [left, right], Assign::Replace, time)?;
                    }
                }
                compare(&device, ty, *shape, [Layout::Transposed, Layout::Plain], Assign::Add, time)?;
            }
        }
    }
    for (batch, n) in [(1, 256), (8, 256), (64, 512), (256, 1024)] {
        let steps = if n == 1024 { 4 } else { 20 };
        dense!(f32, &device, batch, n, steps, 1.5, 3 * time);
        dense!(f64, &device, batch, n, steps, 1.5, 3 * time);
    }
    println!("cotangents that become subnormal:");
    dense!(f32, &device, 64, 512, 20, 0.3, 3 * time);
    dense!(f32, &device, 64, 512, 100, 3.0, 3 * time);
    Ok(())
}
