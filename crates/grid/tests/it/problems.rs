//! Programs on one to three dimensions, each with everything that is compared.

use ebbtide::prelude::*;
use ebbtide_grid::{Channels, Grid, Part, Place1, Place2, Place3, Result, Team};

/// Viscous Burgers on a ring.
#[program]
pub fn burgers(
    u: &mut Array1<f64>,
    next: &mut Array1<f64>,
    at: &Place1,
    nu: f64,
    steps: usize,
    loss: &mut Array0<f64>,
) {
    for _t in 0..steps {
        exchange(u);
        for i in par(at.first..at.first + at.count) {
            let l = u[i - 1];
            let r = u[i + 1];
            next[i] = u[i] + 0.1 * (nu * (l - 2.0 * u[i] + r) - 0.5 * u[i] * (r - l));
        }
        swap(u, next);
    }
    for i in par(at.first..at.first + at.count) {
        let x = (at.begin + i - at.first) as f64;
        loss[[]] += u[i] * u[i] * (1.0 + 0.1 * x);
    }
    all_sum(loss);
}

/// A nonlinear nine-point stencil on a torus, and a scatter into halos.
#[program]
pub fn torus<T: Float>(
    u: &mut Array2<T>,
    v: &mut Array2<T>,
    w: &mut Array2<T>,
    at: &Place2,
    steps: usize,
    loss: &mut Array0<T>,
) {
    for _t in 0..steps {
        exchange((u, v));
        fill(w, T::of(0.0));
        for (i, j) in par(at.x.first..at.x.first + at.x.count, at.y.first..at.y.first + at.y.count) {
            let corners = u[[i - 1, j - 1]] + u[[i + 1, j + 1]] + u[[i - 1, j + 1]] + u[[i + 1, j - 1]];
            let sides = v[[i - 1, j]] * u[[i + 1, j]] + v[[i, j - 1]] * u[[i, j + 1]];
            let x = T::of(0.2) * corners.sin() + T::of(0.3) * sides;
            w[[i + 1, j + 1]] += T::of(0.5) * x;
            w[[i - 1, j]] += T::of(0.25) * x * u[[i, j]];
        }
        exchange_add(w);
        for (i, j) in par(at.x.first..at.x.first + at.x.count, at.y.first..at.y.first + at.y.count) {
            u[[i, j]] = T::of(0.5) * u[[i, j]] + w[[i, j]];
            v[[i, j]] = v[[i, j]] - T::of(0.1) * u[[i, j]];
        }
    }
    for (i, j) in par(at.x.first..at.x.first + at.x.count, at.y.first..at.y.first + at.y.count) {
        loss[[]] += u[[i, j]] * v[[i, j]] + u[[i, j]] * u[[i, j]];
    }
    all_sum(loss);
}

/// Waves in a box with fixed walls: second order in time and space, a source by its global index, the largest amplitude.
#[program]
pub fn wave<T: Float>(
    p: &mut Array3<T>,
    q: &mut Array3<T>,
    c: &Array3<T>,
    wavelet: &Array1<T>,
    at: &Place3,
    loss: &mut Array0<T>,
    largest: &mut Array0<T>,
) {
    shared(wavelet);
    for t in 0..wavelet.len() {
        exchange(p);
        for (i, j, k) in par(
            at.x.first..at.x.first + at.x.count,
            at.y.first..at.y.first + at.y.count,
            at.z.first..at.z.first + at.z.count,
        ) {
            let lap = p[[i - 1, j, k]]
                + p[[i + 1, j, k]]
                + p[[i, j - 1, k]]
                + p[[i, j + 1, k]]
                + p[[i, j, k - 1]]
                + p[[i, j, k + 1]]
                - T::of(6.0) * p[[i, j, k]];
            let mut next = T::of(2.0) * p[[i, j, k]] - q[[i, j, k]] + c[[i, j, k]] * c[[i, j, k]] * lap;
            let x = at.x.begin + i - at.x.first;
            let y = at.y.begin + j - at.y.first;
            let z = at.z.begin + k - at.z.first;
            if x == 2 && y == 3 && z == 1 {
                next += wavelet[t];
            }
            q[[i, j, k]] = next;
        }
        swap(p, q);
    }
    for (i, j, k) in par(
        at.x.first..at.x.first + at.x.count,
        at.y.first..at.y.first + at.y.count,
        at.z.first..at.z.first + at.z.count,
    ) {
        let x = p[[i, j, k]];
        loss[[]] += x * x;
        largest[[]].max_assign(x.abs());
    }
    all_max(largest);
    if at.x.begin + at.y.begin + at.z.begin == 0 {
        loss[[]] += T::of(0.1) * largest[[]];
    }
    all_sum(loss);
}

/// Everything that a run gives, in bits.
pub type Bits = Vec<u64>;

pub trait ToBits {
    fn bits(&self) -> Vec<u64>;
}

impl ToBits for Vec<f64> {
    fn bits(&self) -> Vec<u64> {
        self.iter().map(|x| x.to_bits()).collect()
    }
}

impl ToBits for Vec<f32> {
    fn bits(&self) -> Vec<u64> {
        self.iter().map(|x| u64::from(x.to_bits())).collect()
    }
}

/// Runs `work` for all parts on so many ranks; gives what part 0 gave.
pub fn on_ranks<R: Send>(grid: &Grid, ranks: usize, work: impl Fn(&Part) -> Result<R> + Sync) -> R {
    let wires = Channels::ranks(ranks);
    let mut results: Vec<Vec<R>> = std::thread::scope(|scope| {
        let work = &work;
        let run = |wire: Channels| scope.spawn(move || Team::over(grid, Box::new(wire)).run(work));
        let running: Vec<_> = wires.into_iter().map(run).collect();
        running.into_iter().map(|rank| rank.join().expect("no panic").expect("it runs")).collect()
    });
    results.remove(0).remove(0)
}
