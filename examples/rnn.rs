//! A recurrent network learns to see a signal coming.
//!
//! Sixteen units of tanh read a beat of two sines, one number at a time, and say what it will be eight steps later.
//! The gradient goes back through all 300 steps; training takes a fifth of the memory that keeping every step
//! would take, and gives the same bits.
//!
//! ```text
//! cargo run --release --example rnn
//! ```

#[path = "show.rs"]
#[macro_use]
mod show;

use ebbtide::prelude::*;
use show::Failure;

const UNITS: usize = 16;
const SIGNALS: usize = 4;
const STEPS: usize = 300;
const AHEAD: usize = 8;
const ROUNDS: usize = 300;

/// Reads `x` row by row; `said` is what the network says at each step, and `loss` how wrong it is on average.
#[program]
fn network(
    w: &Array2<f64>,
    input: &Array1<f64>,
    output: &Array2<f64>,
    x: &Array2<f64>,
    wanted: &Array2<f64>,
    said: &mut Array2<f64>,
    loss: &mut Array0<f64>,
) {
    let signals = x.dim(1);
    let units = w.dim(0);
    let mut h = Array2::<f64>::zeros([signals, units]);
    let mut z = Array2::<f64>::zeros([signals, units]);
    let mut y = Array2::<f64>::zeros([signals, 1]);
    for t in 0..x.dim(0) {
        matmul(h, w, z);
        for (s, j) in par(0..signals, 0..units) {
            h[[s, j]] = (z[[s, j]] + x[[t, s]] * input[j]).tanh();
        }
        matmul(h, output, y);
        for s in par(0..signals) {
            said[[t, s]] = y[[s, 0]];
            let d = y[[s, 0]] - wanted[[t, s]];
            loss[[]] += d * d / (x.len() as f64);
        }
    }
}

/// The parameters of the network, all that is trained.
struct Weights {
    w: Array2<f64>,
    input: Array1<f64>,
    output: Array2<f64>,
}

impl Weights {
    fn new(device: &Device, at: &[f64]) -> Result<Weights, Failure> {
        let (w, rest) = at.split_at(UNITS * UNITS);
        let (input, output) = rest.split_at(UNITS);
        Ok(Weights {
            w: device.array_with_shape([UNITS, UNITS], w)?,
            input: device.array(input)?,
            output: device.array_with_shape([UNITS, 1], output)?,
        })
    }
}

/// Adam: a step along the mean of the gradients, scaled by their size.
struct Adam {
    mean: Vec<f64>,
    square: Vec<f64>,
    round: i32,
}

impl Adam {
    fn step(&mut self, at: &mut [f64], gradient: &[f64]) {
        self.round += 1;
        let (keep, keep_square, rate) = (0.9f64, 0.99f64, 0.01);
        for (k, g) in gradient.iter().enumerate() {
            self.mean[k] = keep * self.mean[k] + (1.0 - keep) * g;
            self.square[k] = keep_square * self.square[k] + (1.0 - keep_square) * g * g;
            let mean = self.mean[k] / (1.0 - keep.powi(self.round));
            let square = self.square[k] / (1.0 - keep_square.powi(self.round));
            at[k] -= rate * mean / (square.sqrt() + 1e-8);
        }
    }
}

/// Runs the example.
pub fn main() -> Result<(), Failure> {
    let device = Device::best()?;
    let signal = |t: usize, s: usize| {
        let t = t as f64 + 37.0 * s as f64;
        0.6 * (0.31 * t).sin() + 0.4 * (0.127 * t).sin()
    };
    let sample = |ahead: usize| -> Vec<f64> {
        (0..STEPS).flat_map(|t| (0..SIGNALS).map(move |s| signal(t + ahead, s))).collect()
    };
    let x = device.array_with_shape([STEPS, SIGNALS], &sample(0))?;
    let wanted = device.array_with_shape([STEPS, SIGNALS], &sample(AHEAD))?;
    let mut said = device.zeros([STEPS, SIGNALS])?;
    let mut loss = device.zeros([])?;

    let count = UNITS * UNITS + 2 * UNITS;
    let mut at: Vec<f64> = (0..count).map(|k| 0.4 * (1.7 * (k * k) as f64).sin()).collect();
    let asked = network().value_and_grad(network::loss).value(network::said);
    let asked = asked.wrt(network::w).wrt(network::input).wrt(network::output);
    let all = asked.compile(&device)?;
    let g = all.with_memory(Bytes::kib(64));
    let start = Weights::new(&device, &at)?;
    let plan = g.plan((&start.w, &start.input, &start.output, &x, &wanted, &mut said, &mut loss))?;
    say!("{}", plan.explain());

    let mut evaluate =
        |g: &CompiledGrad<network>, at: &[f64]| -> Result<(f64, Vec<f64>, Vec<f64>), Failure> {
            let p = Weights::new(&device, at)?;
            let out = g.launch((&p.w, &p.input, &p.output, &x, &wanted, &mut said, &mut loss))?;
            let parts = [
                out.get(network::w)?.to_vec(),
                out.get(network::input)?.to_vec(),
                out.get(network::output)?.to_vec(),
            ];
            Ok((out.value(network::loss)?.value(), parts.concat(), out.value(network::said)?.to_vec()))
        };
    let mut adam = Adam { mean: vec![0.0; count], square: vec![0.0; count], round: 0 };
    say!("round   mean square error");
    let untrained = evaluate(&g, &at)?;
    for round in 0..=ROUNDS {
        let (error, gradient, _) = evaluate(&g, &at)?;
        if round % 50 == 0 {
            say!("{round:>5} {error:>19.6}");
        }
        adam.step(&mut at, &gradient);
    }
    let trained = evaluate(&g, &at)?;
    let last = |all: &[f64]| all.chunks(SIGNALS).skip(STEPS - 72).map(|row| row[0]).collect::<Vec<f64>>();
    let (truth, before, after) = (last(&sample(AHEAD)), last(&untrained.2), last(&trained.2));
    show::curves(
        "eight steps ahead: the signal (o), the network before (.) and after training (#)",
        13,
        &[('.', &before), ('o', &truth), ('#', &after)],
    );

    say!();
    let along: Vec<f64> = (0..count).map(|k| (0.9 * k as f64).cos()).collect();
    let slope: f64 = trained.1.iter().zip(&along).map(|(g, a)| g * a).sum();
    let mut beside = |distance: f64| -> Result<f64, Failure> {
        let moved: Vec<f64> = at.iter().zip(&along).map(|(x, a)| x + distance * a).collect();
        Ok(evaluate(&g, &moved)?.0)
    };
    let difference = (beside(1e-6)? - beside(-1e-6)?) / 2e-6;
    show::check("slope along a direction", slope, difference, 1e-6)?;
    let (_, stored, _) = evaluate(&all, &at)?;
    if stored.iter().zip(&trained.1).any(|(a, b)| a.to_bits() != b.to_bits()) {
        return Err("the budget changed a bit of the gradient".into());
    }
    say!("all {count} derivatives are, bit for bit, those of a run that keeps every step");
    if trained.0 < 0.01 { Ok(()) } else { Err(format!("the network is wrong by {}", trained.0).into()) }
}
