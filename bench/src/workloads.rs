//! The workloads, as a user writes them. The lines between the markers are what the report counts.

use ebbtide::prelude::*;

// lines: pointwise
#[program]
pub fn pointwise_steps(s: &mut Array1<f64>, p: &Array1<f64>, steps: usize) {
    for _t in 0..steps {
        for i in par(0..s.len()) {
            s[i] += 0.1 * s[i].tanh() * p[i];
        }
    }
}

#[program]
pub fn pointwise(s: &mut Array1<f64>, p: &Array1<f64>, steps: usize, loss: &mut Array0<f64>) {
    pointwise_steps(s, p, steps);
    for i in par(0..s.len()) {
        loss[[]] += s[i] * s[i];
    }
}
// end

// lines: burgers
#[program]
pub fn burgers_steps(u: &mut Array1<f64>, next: &mut Array1<f64>, steps: usize) {
    let n = u.len();
    for _t in 0..steps {
        for i in par(0..n) {
            let l = u[(i + n - 1) % n];
            let c = u[i];
            let r = u[(i + 1) % n];
            next[i] = c + 0.01 * (0.1 * (l - 2.0 * c + r) - 0.5 * c * (r - l));
        }
        swap(u, next);
    }
}

#[program]
pub fn burgers(u: &mut Array1<f64>, next: &mut Array1<f64>, steps: usize, loss: &mut Array0<f64>) {
    burgers_steps(u, next, steps);
    for i in par(0..u.len()) {
        loss[[]] += u[i] * u[i];
    }
}
// end

// lines: wave
#[program]
pub fn wave_steps(
    u: &mut Array2<f32>,
    prev: &mut Array2<f32>,
    c: &Array2<f32>,
    source: &Array1<f32>,
    seen: &mut Array2<f32>,
    steps: usize,
) {
    let n = u.dim(0);
    let m = u.dim(1);
    for t in 0..steps {
        for (i, j) in par(1..n - 1, 1..m - 1) {
            let x = u[[i, j]];
            let lap = u[[i - 1, j]] + u[[i + 1, j]] + u[[i, j - 1]] + u[[i, j + 1]] - 4.0 * x;
            prev[[i, j]] = 2.0 * x - prev[[i, j]] + c[[i, j]] * lap;
        }
        swap(u, prev);
        u[[8, m / 2]] += source[t];
        for j in par(0..m) {
            seen[[t, j]] = u[[2, j]];
        }
    }
}

#[program]
pub fn wave(
    u: &mut Array2<f32>,
    prev: &mut Array2<f32>,
    c: &Array2<f32>,
    source: &Array1<f32>,
    seen: &mut Array2<f32>,
    steps: usize,
    loss: &mut Array0<f32>,
) {
    wave_steps(u, prev, c, source, seen, steps);
    for (t, j) in par(0..seen.dim(0), 0..seen.dim(1)) {
        loss[[]] += seen[[t, j]] * seen[[t, j]];
    }
}
// end

// lines: rnn
#[program]
pub fn rnn_steps(h: &mut Array2<f64>, z: &mut Array2<f64>, w: &Array2<f64>, x: &Array1<f64>, steps: usize) {
    for _t in 0..steps {
        matmul(h, w, z);
        for i in par(0..x.len()) {
            h[[0, i]] = (x[i] + z[[0, i]]).tanh();
        }
    }
}

#[program]
pub fn rnn(
    h: &mut Array2<f64>,
    z: &mut Array2<f64>,
    w: &Array2<f64>,
    x: &Array1<f64>,
    steps: usize,
    loss: &mut Array0<f64>,
) {
    rnn_steps(h, z, w, x, steps);
    for i in par(0..x.len()) {
        loss[[]] += h[[0, i]] * h[[0, i]];
    }
}
// end

// lines: rnn-loops
#[program]
pub fn rnn_loops_steps(
    h: &mut Array1<f64>,
    next: &mut Array1<f64>,
    w: &Array2<f64>,
    x: &Array1<f64>,
    steps: usize,
) {
    let n = h.len();
    for _t in 0..steps {
        for i in par(0..n) {
            let mut sum = x[i];
            for k in 0..n {
                sum += w[[k, i]] * h[k];
            }
            next[i] = sum.tanh();
        }
        swap(h, next);
    }
}

#[program]
pub fn rnn_loops(
    h: &mut Array1<f64>,
    next: &mut Array1<f64>,
    w: &Array2<f64>,
    x: &Array1<f64>,
    steps: usize,
    loss: &mut Array0<f64>,
) {
    rnn_loops_steps(h, next, w, x, steps);
    for i in par(0..h.len()) {
        loss[[]] += h[i] * h[i];
    }
}
// end

// lines: seedloop
#[program]
pub fn seedloop_steps(s: &mut Array1<f64>, p: &Array1<f64>, steps: usize) {
    for _t in 0..steps {
        for i in par(0..s.len()) {
            let a = s[i].tanh();
            let b = a * p[i];
            let c = b + 0.5 * s[i];
            let d = c.sin();
            let e = d * b;
            s[i] += 0.1 * e;
        }
    }
}

#[program]
pub fn seedloop(s: &mut Array1<f64>, p: &Array1<f64>, steps: usize, loss: &mut Array0<f64>) {
    seedloop_steps(s, p, steps);
    for i in par(0..s.len()) {
        loss[[]] += s[i] * s[i];
    }
}
// end

/// The arrays that a pass of `seedloop` makes: the state and five variables of the body.
pub const SEEDLOOP_VARIABLES: usize = 6;

/// Small positive numbers, the same for everyone.
pub fn number(k: usize) -> f64 {
    ((k * 2_654_435_761) % 1000) as f64 / 100_000.0
}

/// A workload of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Workload {
    Pointwise,
    Burgers,
    /// Burgers on a line that fits in no cache.
    LongBurgers,
    Wave,
    Rnn,
    RnnLoops,
    Seedloop,
}

/// How large an instance is. Cells are the length of a line, the side of a square or the width of a layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    pub cells: usize,
    pub steps: usize,
}

impl Workload {
    pub const ALL: [Workload; 7] = [
        Workload::Pointwise,
        Workload::Burgers,
        Workload::LongBurgers,
        Workload::Wave,
        Workload::Rnn,
        Workload::RnnLoops,
        Workload::Seedloop,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Workload::Pointwise => "pointwise",
            Workload::Burgers => "burgers",
            Workload::LongBurgers => "burgers-1e6",
            Workload::Wave => "wave",
            Workload::Rnn => "rnn",
            Workload::RnnLoops => "rnn-loops",
            Workload::Seedloop => "seedloop",
        }
    }

    pub fn named(name: &str) -> Option<Workload> {
        Workload::ALL.into_iter().find(|workload| workload.name() == name)
    }

    /// The instance of the table.
    pub fn size(self) -> Size {
        let (cells, steps) = match self {
            Workload::Pointwise | Workload::Seedloop => (100, 1000),
            Workload::Burgers => (10_000, 1000),
            Workload::LongBurgers => (1_000_000, 20),
            Workload::Wave => (512, 200),
            Workload::Rnn | Workload::RnnLoops => (256, 1000),
        };
        Size { cells, steps }
    }

    /// The workload whose hand-written C and peers are the yardstick.
    pub fn yardstick(self) -> Workload {
        match self {
            Workload::RnnLoops => Workload::Rnn,
            Workload::LongBurgers => Workload::Burgers,
            other => other,
        }
    }

    /// Whether it is too large for a quick run.
    pub fn is_large(self) -> bool {
        self == Workload::LongBurgers
    }

    /// Whether more than one thread can help.
    pub fn is_parallel(self) -> bool {
        !matches!(self, Workload::Pointwise | Workload::Seedloop)
    }

    /// The lines that a user of Ebbtide writes.
    pub fn lines(self) -> Option<usize> {
        let name = if self == Workload::LongBurgers { "burgers" } else { self.name() };
        lines(include_str!("workloads.rs"), name)
    }

    /// The lines of the hand-written C, primal and adjoint.
    pub fn lines_of_c(self) -> Option<usize> {
        let name = self.yardstick().name();
        let primal = lines(include_str!("reference.c"), name)?;
        Some(primal + lines(include_str!("gradients.c"), name)?)
    }
}

/// The lines that are not empty between `lines: name` and `end`.
fn lines(text: &str, name: &str) -> Option<usize> {
    let marker = format!("lines: {name}");
    let is_marker = |line: &&str| line.trim_matches([' ', '/', '*']) == marker;
    let after = text.lines().skip_while(|line| !is_marker(line)).skip(1);
    let count = after
        .take_while(|line| line.trim_matches([' ', '/', '*']) != "end")
        .filter(|line| !line.trim().is_empty())
        .count();
    (count > 0).then_some(count)
}
