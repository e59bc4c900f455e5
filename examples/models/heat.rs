//! Heat in a rod with a conductivity that grows with temperature, explicit in time, with a hand-written
//! adjoint: u_t = (k(u) u_x)_x with k(u) = nu (1 + u²), ends held at their temperature.

use std::ops::Range;

use ebbtide_snapshot::{Error, Identity, State};
use ebbtide_sweep::{Durable, Stepper};

/// J = Σ (u(T) − target)² / 2 as a function of the first temperatures and of nu.
pub struct Heat {
    pub u: Vec<f64>,
    next: Vec<f64>,
    /// nu · dt / dx²
    pub nu: f64,
    pub target: Vec<f64>,
    tape: Vec<Vec<f64>>,
    spare: Vec<Vec<f64>>,
    /// The value of J, known at the turn.
    pub objective: f64,
    /// dJ/du, complete when everything is reversed.
    pub du: Vec<f64>,
    dnext: Vec<f64>,
    /// dJ/dnu.
    pub dnu: f64,
}

impl Heat {
    pub fn new(cells: usize) -> Self {
        let place = |i: usize| i as f64 / cells as f64 * std::f64::consts::TAU;
        Self {
            u: (0..cells).map(|i| place(i).sin() + 0.3 * (3.0 * place(i)).cos()).collect(),
            next: vec![0.0; cells],
            nu: 0.1,
            target: (0..cells).map(|i| 0.1 * place(i).cos()).collect(),
            tape: Vec::new(),
            spare: Vec::new(),
            objective: f64::NAN,
            du: vec![0.0; cells],
            dnext: vec![0.0; cells],
            dnu: 0.0,
        }
    }

    fn step(&mut self) {
        let (u, next) = (&self.u, &mut self.next);
        next.copy_from_slice(u);
        for i in 1..u.len().saturating_sub(1) {
            next[i] = u[i] + self.nu * (flux(u[i], u[i + 1]) - flux(u[i - 1], u[i]));
        }
        std::mem::swap(&mut self.u, &mut self.next);
    }

    fn step_adjoint(&mut self, u: &[f64]) {
        let (after, before) = (&self.du, &mut self.dnext);
        before.copy_from_slice(after);
        for i in 1..u.len().saturating_sub(1) {
            let w = self.nu * after[i];
            let (right, left) = (flux_adjoint(u[i], u[i + 1]), flux_adjoint(u[i - 1], u[i]));
            before[i] += w * (right[0] - left[1]);
            before[i + 1] += w * right[1];
            before[i - 1] -= w * left[0];
            self.dnu += after[i] * (flux(u[i], u[i + 1]) - flux(u[i - 1], u[i]));
        }
        std::mem::swap(&mut self.du, &mut self.dnext);
    }
}

/// The heat that flows from `b` to `a`, for nu = 1.
fn flux(a: f64, b: f64) -> f64 {
    (1.0 + 0.5 * (a * a + b * b)) * (b - a)
}

/// Its derivatives with respect to `a` and `b`.
fn flux_adjoint(a: f64, b: f64) -> [f64; 2] {
    let k = 1.0 + 0.5 * (a * a + b * b);
    [a * (b - a) - k, b * (b - a) + k]
}

impl Stepper for Heat {
    type State = State;
    type Error = Error;

    fn advance(&mut self, steps: Range<u64>) -> Result<(), Error> {
        for _ in steps {
            self.step();
        }
        Ok(())
    }

    fn record(&mut self, steps: Range<u64>) -> Result<(), Error> {
        for _ in steps {
            let mut before = self.spare.pop().unwrap_or_default();
            before.clone_from(&self.u);
            self.tape.push(before);
            self.step();
        }
        Ok(())
    }

    fn turn(&mut self) -> Result<(), Error> {
        for (du, (u, target)) in self.du.iter_mut().zip(self.u.iter().zip(&self.target)) {
            *du = u - target;
        }
        self.objective = self.du.iter().map(|d| d * d / 2.0).sum();
        Ok(())
    }

    fn reverse(&mut self, steps: Range<u64>) -> Result<(), Error> {
        for _ in steps {
            let before = self.tape.pop().expect("a step is reversed after it was recorded");
            self.step_adjoint(&before);
            self.spare.push(before);
        }
        Ok(())
    }

    fn save(&self, state: &mut State) -> Result<(), Error> {
        Ok(state.put("u", &self.u)?)
    }

    fn restore(&mut self, state: &State) -> Result<(), Error> {
        Ok(state.get("u", &mut self.u)?)
    }

    fn tape_bytes(&self) -> u64 {
        self.tape.iter().map(|u| size_of_val(u.as_slice()) as u64).sum()
    }
}

impl Durable for Heat {
    fn identity(&self) -> Identity {
        Identity::new("heat", "1").input("nu", self.nu).input_array("target", &self.target)
    }

    fn save_adjoint(&self, adjoint: &mut State) -> Result<(), Error> {
        adjoint.put("du", &self.du)?;
        adjoint.put_scalar("dnu", self.dnu)?;
        Ok(adjoint.put_scalar("objective", self.objective)?)
    }

    fn restore_adjoint(&mut self, adjoint: &State) -> Result<(), Error> {
        adjoint.get("du", &mut self.du)?;
        self.dnu = adjoint.scalar("dnu")?;
        self.objective = adjoint.scalar("objective")?;
        Ok(())
    }
}
