//! Gradients whose durable runs are interrupted, damaged and forged.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use ebbtide::Host;
use ebbtide::prelude::*;
use ebbtide_snapshot::fs::FileSystem;

use crate::faulty::Faulty;

/// Statements that record before the loop, loops in loops, and a sibling.
#[program]
pub fn nested(u: &mut Array1<f64>, c: &mut Array1<f64>, outer: usize, inner: usize, loss: &mut Array0<f64>) {
    let n = u.len();
    for i in par(0..n) {
        u[i] = u[i] * u[i] + 0.1;
    }
    for t in 0..outer {
        for i in par(0..n) {
            c[i] = u[i].sin() * (1.0 + 0.1 * (t as f64));
        }
        for k in 0..inner {
            for i in par(0..n) {
                u[i] = u[i] * 0.9 + 0.05 * u[i] * u[i] + 0.1 * c[i] * ((k + t) as f64).cos();
            }
        }
    }
    for i in par(0..n) {
        u[i] = u[i].tanh() * c[i];
    }
    for _t in 0..outer {
        for i in par(0..n) {
            u[i] += 0.01 * u[i] * c[i];
        }
    }
    for i in par(0..n) {
        loss[[]] += u[i] * u[i];
    }
}

/// As many passes as it takes, with an array of `bool` and one of integers on the way.
#[program]
pub fn cooling(
    u: &mut Array1<f64>,
    hot: &mut Array1<bool>,
    seen: &mut Array1<i32>,
    most: &mut Array0<f64>,
    loss: &mut Array0<f64>,
) {
    let n = u.len();
    loop {
        for i in par(0..n) {
            hot[i] = u[i] > 0.5;
        }
        fill(most, 0.0);
        for i in par(0..n) {
            if hot[i] {
                u[i] = u[i] * 0.8 - 0.01 * u[i] * u[i];
                seen[i] += 1;
            } else {
                u[i] = u[i] * 0.99;
            }
            most[[]].max_assign(u[i]);
        }
        if most[[]] < 0.4 {
            break;
        }
    }
    for i in par(0..n) {
        loss[[]] += u[i] * u[i];
    }
}

/// Yields where a limit is reached; the host raises it.
#[program]
pub fn limited(
    u: &mut Array1<f64>,
    limit: &mut Array0<f64>,
    over: &mut Array0<i32>,
    steps: usize,
    loss: &mut Array0<f64>,
) {
    let n = u.len();
    for _t in 0..steps {
        #[checkpoint(Stage::Grow, yield_on = over, undo)]
        {
            for i in par(0..n) {
                if u[i] > limit[[]] {
                    over[[]] += 1;
                }
                u[i] = u[i] * 1.1 + 0.01 * u[i] * limit[[]];
            }
        }
    }
    for i in par(0..n) {
        loss[[]] += u[i] * u[i];
    }
}

/// Every step is a row, from the row before: the array is its own tape, its cotangent the result itself.
#[program]
pub fn history(x: &mut Array2<f64>, r: &Array1<f64>, loss: &mut Array0<f64>) {
    let (steps, n) = (x.dim(0) - 1, x.dim(1));
    for t in 0..steps {
        for i in par(1..n - 1) {
            x[[t + 1, i]] = x[[t, i]] + r[i] * (x[[t, i - 1]] - x[[t, i]] * x[[t, i + 1]]);
        }
    }
    for i in par(0..n) {
        loss[[]] += x[[steps, i]] * x[[steps, i]];
    }
}

#[derive(Label)]
enum Stage {
    Grow,
}

type Launch = dyn FnMut(Option<(Arc<dyn FileSystem>, &Path)>) -> ebbtide::Result<Vec<u64>>;

/// One gradient, launched as it is or in a directory.
pub struct Problem {
    pub name: String,
    launch: Box<Launch>,
    pub expected: Vec<u64>,
}

fn bits(x: &Array1<f64>) -> Vec<u64> {
    x.to_vec().iter().map(|x| x.to_bits()).collect()
}

/// Where runs are in a file system in memory.
pub fn dir() -> &'static Path {
    Path::new("run")
}

impl Problem {
    fn new(name: String, mut launch: Box<Launch>) -> Problem {
        let expected = launch(None).unwrap();
        Problem { name, launch, expected }
    }

    /// Begins or continues the run; every action is made durable.
    pub fn launch(&mut self, fs: &Faulty) -> ebbtide::Result<Vec<u64>> {
        (self.launch)(Some((Arc::new(fs.clone()), dir())))
    }

    /// The same on real disks.
    pub fn launch_in(&mut self, dir: &Path) -> ebbtide::Result<Vec<u64>> {
        (self.launch)(Some((Arc::new(ebbtide_snapshot::fs::Disks), dir)))
    }
}

/// Loops in loops and siblings, of `n` elements.
pub fn of_nested(n: usize, budget: Budget) -> Problem {
    let device = crate::cpu();
    let mut u = device.array(&(0..n).map(|i| 0.3 + 0.5 * (i as f64) / n as f64).collect::<Vec<_>>()).unwrap();
    let (mut c, mut loss) = (device.zeros([n]).unwrap(), device.scalar(0.0).unwrap());
    let g = nested().grad(nested::loss).wrt(nested::u).budget(budget).compile(&device).unwrap();
    let launch = move |place: Option<(Arc<dyn FileSystem>, &Path)>| {
        let args = (&mut u, &mut c, 4, 3, &mut loss);
        let out = match place {
            None => g.launch(g.shared(args))?,
            Some((fs, dir)) => g.launch_durable_on(fs, dir, Duration::ZERO, g.shared(args))?,
        };
        Ok(bits(out.get(nested::u)?))
    };
    Problem::new(format!("nested, {budget:?}"), Box::new(launch))
}

/// A loop of unknown length.
pub fn of_cooling(budget: Budget) -> Problem {
    let device = crate::cpu();
    let mut u = device.array(&[0.9, 0.7, 0.45, 0.2, 0.8]).unwrap();
    let (mut hot, mut seen) = (device.array(&[false; 5]).unwrap(), device.array(&[0i32; 5]).unwrap());
    let (mut most, mut loss) = (device.scalar(0.0).unwrap(), device.scalar(0.0).unwrap());
    let g = cooling().grad(cooling::loss).wrt(cooling::u).budget(budget).compile(&device).unwrap();
    let launch = move |place: Option<(Arc<dyn FileSystem>, &Path)>| {
        let args = (&mut u, &mut hot, &mut seen, &mut most, &mut loss);
        let out = match place {
            None => g.launch(g.shared(args))?,
            Some((fs, dir)) => g.launch_durable_on(fs, dir, Duration::ZERO, g.shared(args))?,
        };
        Ok(bits(out.get(cooling::u)?))
    };
    Problem::new(format!("cooling, {budget:?}"), Box::new(launch))
}

/// A program that yields.
pub fn of_limited(budget: Budget) -> Problem {
    let device = crate::cpu();
    let mut u = device.array(&[0.5, 0.8, 1.1]).unwrap();
    let (mut limit, mut over) = (device.scalar(1.3).unwrap(), device.scalar(0).unwrap());
    let mut loss = device.scalar(0.0).unwrap();
    let raise = |_: &Yielded, host: &mut Host<'_>| {
        host.with(limited::limit, |limit| {
            let raised = limit.value() * 1.5;
            limit.fill(raised)
        })??;
        host.fill(limited::over, 0)
    };
    let g = limited().grad(limited::loss).wrt(limited::u).budget(budget).on_yield(raise);
    let g = g.compile(&device).unwrap();
    let launch = move |place: Option<(Arc<dyn FileSystem>, &Path)>| {
        let args = (&mut u, &mut limit, &mut over, 9, &mut loss);
        let out = match place {
            None => g.launch(g.shared(args))?,
            Some((fs, dir)) => g.launch_durable_on(fs, dir, Duration::ZERO, g.shared(args))?,
        };
        Ok(bits(out.get(limited::u)?))
    };
    Problem::new(format!("limited, {budget:?}"), Box::new(launch))
}

/// A trajectory of rows of `n` elements: its derivatives, and the trajectory itself.
pub fn of_history(n: usize, budget: Budget) -> Problem {
    let device = crate::cpu();
    let numbers = |count: usize| (0..count).map(|k| 0.2 + 0.6 * (k as f64 * 0.7).sin().abs());
    let start: Vec<f64> = numbers(8 * n).collect();
    let mut x = device.array_with_shape([8, n], &start).unwrap();
    let r = device.array(&numbers(n).map(|r| 0.3 * r).collect::<Vec<_>>()).unwrap();
    let mut loss = device.scalar(0.0).unwrap();
    let g = history().value_and_grad(history::loss).wrt(history::x).wrt(history::r).value(history::x);
    let g = g.budget(budget).compile(&device).unwrap();
    let launch = move |place: Option<(Arc<dyn FileSystem>, &Path)>| {
        let args = (&mut x, &r, &mut loss);
        let out = match place {
            None => g.launch(g.shared(args))?,
            Some((fs, dir)) => g.launch_durable_on(fs, dir, Duration::ZERO, g.shared(args))?,
        };
        let all =
            [out.get(history::x)?.to_vec(), out.value(history::x)?.to_vec(), out.get(history::r)?.to_vec()];
        assert_eq!(x.to_vec(), start, "the caller's array is as it was");
        Ok(all.concat().into_iter().chain([out.value(history::loss)?.value()]).map(f64::to_bits).collect())
    };
    Problem::new(format!("history, {budget:?}"), Box::new(launch))
}

/// Small ones of every kind.
pub fn all() -> Vec<Problem> {
    vec![
        of_nested(5, Budget::StoreAll),
        of_nested(5, Budget::Revolve { slots: 2, block: 1 }),
        of_cooling(Budget::StoreAll),
        of_cooling(Budget::Revolve { slots: 3, block: 2 }),
        of_limited(Budget::Revolve { slots: 2, block: 2 }),
        of_history(5, Budget::StoreAll),
        of_history(5, Budget::Revolve { slots: 2, block: 2 }),
    ]
}
