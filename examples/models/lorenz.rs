//! A Lorenz trajectory, integrated by Runge and Kutta's fourth-order method, with a hand-written adjoint.

use std::convert::Infallible;
use std::ops::Range;

use ebbtide_sweep::Stepper;

pub type Point = [f64; 3];

/// The right-hand side of the Lorenz equations.
fn slope([x, y, z]: Point, [sigma, rho, beta]: Point) -> Point {
    [sigma * (y - x), x * (rho - z) - y, x * y - beta * z]
}

/// The transposed Jacobian of `slope` at a point, applied to `w`: for the point and for the parameters.
fn slope_adjoint([x, y, z]: Point, [sigma, rho, beta]: Point, w: Point) -> (Point, Point) {
    let point = [
        -sigma * w[0] + (rho - z) * w[1] + y * w[2],
        sigma * w[0] - w[1] + x * w[2],
        -x * w[1] - beta * w[2],
    ];
    (point, [(y - x) * w[0], x * w[1], -z * w[2]])
}

fn plus(a: Point, factor: f64, b: Point) -> Point {
    [a[0] + factor * b[0], a[1] + factor * b[1], a[2] + factor * b[2]]
}

/// J = |x(T)|² / 2 as a function of the start and of the three parameters.
pub struct Lorenz {
    pub x: Point,
    pub parameters: Point,
    pub dt: f64,
    /// Where the trajectory ends by itself, for schedules that do not know it.
    pub ends_at: u64,
    tape: Vec<Point>,
    /// The value of J, known at the turn.
    pub objective: f64,
    /// dJ/dx, complete when everything is reversed.
    pub dx: Point,
    /// dJ/d(sigma, rho, beta).
    pub dparameters: Point,
}

impl Lorenz {
    pub fn new(x: Point) -> Self {
        Self {
            x,
            parameters: [10.0, 28.0, 8.0 / 3.0],
            dt: 0.005,
            ends_at: u64::MAX,
            tape: Vec::new(),
            objective: f64::NAN,
            dx: [0.0; 3],
            dparameters: [0.0; 3],
        }
    }

    /// The four points at which one step evaluates the slope.
    fn stages(&self, x: Point) -> [Point; 4] {
        let k1 = slope(x, self.parameters);
        let x2 = plus(x, self.dt / 2.0, k1);
        let x3 = plus(x, self.dt / 2.0, slope(x2, self.parameters));
        let x4 = plus(x, self.dt, slope(x3, self.parameters));
        [x, x2, x3, x4]
    }

    fn step(&mut self) {
        let weights = [1.0, 2.0, 2.0, 1.0];
        let stages = self.stages(self.x);
        for (weight, stage) in weights.into_iter().zip(stages) {
            self.x = plus(self.x, self.dt / 6.0 * weight, slope(stage, self.parameters));
        }
    }

    fn step_adjoint(&mut self, before: Point) {
        let weights = [1.0, 2.0, 2.0, 1.0];
        // How far the slope of each stage carries the next one.
        let reach = [self.dt / 2.0, self.dt / 2.0, self.dt, 0.0];
        let stages = self.stages(before);
        let after = self.dx;
        let mut next_stage = [0.0; 3];
        for i in (0..4).rev() {
            let dk = plus([0.0; 3], self.dt / 6.0 * weights[i], after);
            let (dstage, dparameters) =
                slope_adjoint(stages[i], self.parameters, plus(dk, reach[i], next_stage));
            self.dx = plus(self.dx, 1.0, dstage);
            self.dparameters = plus(self.dparameters, 1.0, dparameters);
            next_stage = dstage;
        }
    }
}

impl Stepper for Lorenz {
    type State = Point;
    type Error = Infallible;

    fn advance(&mut self, steps: Range<u64>) -> Result<(), Infallible> {
        for _ in steps {
            self.step();
        }
        Ok(())
    }

    fn advance_online(&mut self, steps: Range<u64>) -> Result<u64, Infallible> {
        let end = steps.end.min(self.ends_at);
        self.advance(steps.start..end)?;
        Ok(end)
    }

    fn record(&mut self, steps: Range<u64>) -> Result<(), Infallible> {
        for _ in steps {
            self.tape.push(self.x);
            self.step();
        }
        Ok(())
    }

    fn turn(&mut self) -> Result<(), Infallible> {
        self.objective = self.x.iter().map(|x| x * x / 2.0).sum();
        self.dx = self.x;
        Ok(())
    }

    fn reverse(&mut self, steps: Range<u64>) -> Result<(), Infallible> {
        for _ in steps {
            let before = self.tape.pop().expect("a step is reversed after it was recorded");
            self.step_adjoint(before);
        }
        Ok(())
    }

    fn save(&self, state: &mut Point) -> Result<(), Infallible> {
        *state = self.x;
        Ok(())
    }

    fn restore(&mut self, state: &Point) -> Result<(), Infallible> {
        self.x = *state;
        Ok(())
    }

    fn tape_bytes(&self) -> u64 {
        size_of_val(self.tape.as_slice()) as u64
    }
}
