//! L-BFGS that asks and is told.
//!
//! Nocedal (1980), with the line search of Lewis and Overton (2013): bisection until the weak Wolfe conditions hold,
//! so that every step keeps the approximate Hessian positive. Both need one value and gradient per point.
//!
//! The optimiser does not call the objective: it says at which point it wants to know it ([`Lbfgs::ask`]) and takes
//! the answer ([`Lbfgs::tell`]). Between the two it is plain data, so that a run can be stopped at any point, kept in
//! a file, and gone on with to the same bits. That is why it is our own, and no dependency.

use std::collections::VecDeque;

use ebbtide_snapshot::{Error, State};

/// Steps remembered.
const MEMORY: usize = 8;
/// What a step must gain of what the slope promises.
const SUFFICIENT_DECREASE: f64 = 1e-4;
/// How much of the slope may be left after a step.
const SLOPE_LEFT: f64 = 0.9;
/// More points along one direction only measure rounding.
const MOST_TRIALS: u64 = 12;

/// The optimiser, between two evaluations.
#[derive(Clone, Debug, PartialEq)]
pub struct Lbfgs {
    /// The best point, with its value and gradient once it was evaluated.
    point: Vec<f64>,
    value: f64,
    gradient: Vec<f64>,
    /// Where the search goes, and how far the next trial goes along it.
    direction: Vec<f64>,
    slope: f64,
    step: f64,
    /// The search knows that a step of `low` is too short, and one of `high` too long.
    low: f64,
    high: f64,
    trials: u64,
    pairs: VecDeque<Pair>,
    /// The largest change of an unknown in the very first step.
    first_change: f64,
    iterations: u64,
    evaluations: u64,
    stalled: u64,
}

/// A step, and how the gradient changed along it.
#[derive(Clone, Debug, PartialEq)]
struct Pair {
    step: Vec<f64>,
    change: Vec<f64>,
}

/// What became of a point that was told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is the new best point.
    Accepted,
    /// The search along the same direction continues.
    Searching,
}

impl Lbfgs {
    /// Starts at a point; the first step changes no unknown by more than `first_change`.
    pub fn new(point: Vec<f64>, first_change: f64) -> Lbfgs {
        let n = point.len();
        Lbfgs {
            point,
            value: f64::NAN,
            gradient: vec![0.0; n],
            direction: vec![0.0; n],
            slope: 0.0,
            step: 0.0,
            low: 0.0,
            high: f64::INFINITY,
            trials: 0,
            pairs: VecDeque::new(),
            first_change,
            iterations: 0,
            evaluations: 0,
            stalled: 0,
        }
    }

    /// The point whose value and gradient are wanted next; none if no direction leads down any more.
    pub fn ask(&self) -> Option<Vec<f64>> {
        (self.stalled < 2)
            .then(|| self.point.iter().zip(&self.direction).map(|(x, d)| x + self.step * d).collect())
    }

    /// Takes the value and the gradient at the point that was asked for.
    pub fn tell(&mut self, value: f64, gradient: &[f64]) -> Verdict {
        self.evaluations += 1;
        if self.evaluations == 1 {
            self.value = value;
            self.gradient.copy_from_slice(gradient);
            self.turn();
            return Verdict::Accepted;
        }
        self.trials += 1;
        // A value that is no number is a step too far.
        let enough = value <= self.value + SUFFICIENT_DECREASE * self.step * self.slope;
        if !enough {
            self.high = self.step;
        } else if dot(gradient, &self.direction) < SLOPE_LEFT * self.slope && self.trials < MOST_TRIALS {
            self.low = self.step;
        } else {
            self.accept(value, gradient);
            return Verdict::Accepted;
        }
        if self.trials >= MOST_TRIALS {
            // Once more down the gradient itself, and if that does not help either, here is the end.
            self.stalled += 1;
            self.pairs.clear();
            self.turn();
        } else {
            self.step = if self.high.is_finite() { 0.5 * (self.low + self.high) } else { 2.0 * self.step };
        }
        Verdict::Searching
    }

    fn accept(&mut self, value: f64, gradient: &[f64]) {
        let step: Vec<f64> = self.direction.iter().map(|d| self.step * d).collect();
        let change: Vec<f64> = gradient.iter().zip(&self.gradient).map(|(new, old)| new - old).collect();
        self.point.iter_mut().zip(&step).for_each(|(x, s)| *x += s);
        self.value = value;
        self.gradient.copy_from_slice(gradient);
        self.iterations += 1;
        self.stalled = 0;
        // A pair without curvature would make the Hessian indefinite.
        if dot(&step, &change) > 1e-12 * norm(&step) * norm(&change) {
            if self.pairs.len() == MEMORY {
                self.pairs.pop_front();
            }
            self.pairs.push_back(Pair { step, change });
        }
        self.turn();
    }

    /// Chooses a new direction at the best point.
    fn turn(&mut self) {
        self.direction = self.downhill();
        self.slope = dot(&self.direction, &self.gradient);
        let most = self.direction.iter().fold(0.0_f64, |most, d| most.max(d.abs()));
        self.step = if self.pairs.is_empty() { self.first_change / most.max(f64::MIN_POSITIVE) } else { 1.0 };
        (self.low, self.high, self.trials) = (0.0, f64::INFINITY, 0);
        if self.slope >= 0.0 {
            self.stalled = 2;
        }
    }

    /// The two-loop recursion: minus the approximate inverse Hessian times the gradient.
    fn downhill(&self) -> Vec<f64> {
        let mut direction: Vec<f64> = self.gradient.iter().map(|g| -g).collect();
        let mut shares = Vec::with_capacity(self.pairs.len());
        for pair in self.pairs.iter().rev() {
            let share = dot(&pair.step, &direction) / dot(&pair.step, &pair.change);
            add(&mut direction, -share, &pair.change);
            shares.push(share);
        }
        if let Some(last) = self.pairs.back() {
            let scale = dot(&last.step, &last.change) / dot(&last.change, &last.change);
            direction.iter_mut().for_each(|d| *d *= scale);
        }
        for (pair, share) in self.pairs.iter().zip(shares.into_iter().rev()) {
            let other = dot(&pair.change, &direction) / dot(&pair.step, &pair.change);
            add(&mut direction, share - other, &pair.step);
        }
        direction
    }

    /// The best point so far.
    pub fn best(&self) -> &[f64] {
        &self.point
    }

    /// The value there.
    pub fn value(&self) -> f64 {
        self.value
    }

    /// The steps taken.
    pub fn iterations(&self) -> u64 {
        self.iterations
    }

    /// The points evaluated.
    pub fn evaluations(&self) -> u64 {
        self.evaluations
    }

    /// Writes everything into a state.
    pub fn save(&self, state: &mut State) -> Result<(), Error> {
        state.put("point", &self.point)?;
        state.put("gradient", &self.gradient)?;
        state.put("direction", &self.direction)?;
        state.put("search", &[self.value, self.slope, self.step, self.low, self.high, self.first_change])?;
        let pairs = self.pairs.len() as u64;
        state.put("counts", &[self.trials, self.iterations, self.evaluations, self.stalled, pairs])?;
        for (k, pair) in self.pairs.iter().enumerate() {
            state.put(&format!("step {k}"), &pair.step)?;
            state.put(&format!("change {k}"), &pair.change)?;
        }
        Ok(())
    }

    /// Reads everything for `unknowns` unknowns from a state.
    pub fn load(state: &State, unknowns: usize) -> Result<Lbfgs, Error> {
        let vector = |name: &str| {
            let mut values = vec![0.0; unknowns];
            state.get(name, &mut values)?;
            Ok::<_, Error>(values)
        };
        let (mut search, mut counts) = ([0.0; 6], [0_u64; 5]);
        state.get("search", &mut search)?;
        state.get("counts", &mut counts)?;
        let [value, slope, step, low, high, first_change] = search;
        let [trials, iterations, evaluations, stalled, pairs] = counts;
        let pairs = (0..pairs.min(MEMORY as u64))
            .map(|k| {
                Ok(Pair { step: vector(&format!("step {k}"))?, change: vector(&format!("change {k}"))? })
            })
            .collect::<Result<_, Error>>()?;
        Ok(Lbfgs {
            point: vector("point")?,
            value,
            gradient: vector("gradient")?,
            direction: vector("direction")?,
            slope,
            step,
            low,
            high,
            trials,
            pairs,
            first_change,
            iterations,
            evaluations,
            stalled,
        })
    }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

fn norm(a: &[f64]) -> f64 {
    dot(a, a).sqrt()
}

fn add(to: &mut [f64], factor: f64, from: &[f64]) {
    to.iter_mut().zip(from).for_each(|(to, from)| *to += factor * from);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rosenbrock's valley in `n` dimensions: the minimum, 0, is at (1, …, 1).
    fn valley(x: &[f64]) -> (f64, Vec<f64>) {
        let (mut value, mut gradient) = (0.0, vec![0.0; x.len()]);
        for i in 0..x.len() - 1 {
            let (a, b) = (1.0 - x[i], x[i + 1] - x[i] * x[i]);
            value += a * a + 100.0 * b * b;
            gradient[i] += -2.0 * a - 400.0 * x[i] * b;
            gradient[i + 1] += 200.0 * b;
        }
        (value, gradient)
    }

    fn run(optimiser: &mut Lbfgs, evaluations: usize) {
        for _ in 0..evaluations {
            let Some(point) = optimiser.ask() else { break };
            let (value, gradient) = valley(&point);
            optimiser.tell(value, &gradient);
        }
    }

    #[test]
    fn it_finds_the_end_of_a_bent_valley() {
        for n in [2, 5, 20] {
            let mut optimiser = Lbfgs::new(vec![-1.2; n], 0.1);
            run(&mut optimiser, 400);
            assert!(optimiser.value() < 1e-12, "{n}: {}", optimiser.value());
            assert!(optimiser.best().iter().all(|x| (x - 1.0).abs() < 1e-5), "{n}: {:?}", optimiser.best());
        }
    }

    #[test]
    fn no_accepted_value_is_above_the_one_before() {
        let mut optimiser = Lbfgs::new(vec![-1.2, 1.0, 0.3], 0.1);
        let mut last = f64::INFINITY;
        for _ in 0..60 {
            let Some(point) = optimiser.ask() else { break };
            let (value, gradient) = valley(&point);
            if optimiser.tell(value, &gradient) == Verdict::Accepted {
                assert!(value <= last, "{value} after {last}");
                last = value;
            }
        }
        assert!(optimiser.evaluations() > optimiser.iterations() + 1, "the search was never needed");
    }

    #[test]
    fn kept_in_a_state_after_any_evaluation_it_goes_on_to_the_same_bits() {
        let mut whole = Lbfgs::new(vec![-1.2; 6], 0.1);
        run(&mut whole, 40);
        for stop in [0, 1, 2, 3, 11, 39] {
            let mut first = Lbfgs::new(vec![-1.2; 6], 0.1);
            run(&mut first, stop);
            let mut state = State::new();
            first.save(&mut state).unwrap();
            let mut second = Lbfgs::load(&state, 6).unwrap();
            run(&mut second, 40 - stop);
            assert_eq!(second, whole, "stopped after {stop}");
        }
    }

    #[test]
    fn a_value_that_is_no_number_is_a_step_too_far() {
        let mut optimiser = Lbfgs::new(vec![0.0], 100.0);
        for _ in 0..60 {
            let Some(point) = optimiser.ask() else { break };
            // ln(x + 2) − … has no value left of −2.
            let x = point[0] + 2.0;
            optimiser.tell(x * x / 2.0 - x.ln(), &[x - 1.0 / x]);
        }
        assert!((optimiser.best()[0] + 1.0).abs() < 1e-8, "{:?}", optimiser.best());
    }

    #[test]
    fn at_the_bottom_it_stops_asking() {
        let mut optimiser = Lbfgs::new(vec![1.0, 1.0], 0.1);
        run(&mut optimiser, 1);
        assert_eq!(optimiser.ask(), None);
    }
}
