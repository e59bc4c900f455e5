//! Rigid discs that roll, spin and hit each other (contacts with friction): how is the first one struck so that the last one
//! stops where it should?
//!
//! Discs that overlap push each other apart and rub; so does the floor. The gradient of where the last disc ends, by the
//! velocity and spin of the first, goes back through all contacts, and is compared with differences.
//!
//! ```text
//! cargo run --release --example bodies
//! ```

#[path = "show.rs"]
#[macro_use]
mod show;

use ebbtide::prelude::*;
use show::Failure;

const DISCS: usize = 3;
const STEPS: usize = 1500;
const DT: f64 = 1e-3;
const RADIUS: f64 = 0.1;
const MASS: f64 = 1.0;
const INERTIA: f64 = 0.5 * MASS * RADIUS * RADIUS;
const STIFFNESS: f64 = 4e3;
const FRICTION: f64 = 0.4;

/// Discs on a floor.
#[derive(Arrays)]
pub struct Table {
    x: Array1<Vec2<f64>>,
    v: Array1<Vec2<f64>>,
    spin: Array1<f64>,
    force: Array1<Vec2<f64>>,
    torque: Array1<f64>,
}

/// The force and torque that a disc feels where it sinks in by `depth`; `normal` points to it, `slip` is its surface's velocity
/// there.
#[func]
fn contact(depth: f64, normal: Vec2<f64>, slip: Vec2<f64>) -> (Vec2<f64>, f64) {
    let tangent = Vec2::new(-normal.y, normal.x);
    let press = STIFFNESS * depth.max(0.0) * (1.0 - 0.05 * slip.dot(normal));
    // Coulomb's friction, smooth where the slip changes its sign.
    let rub = -FRICTION * press * (10.0 * slip.dot(tangent)).tanh();
    (press * normal + rub * tangent, -RADIUS * rub)
}

/// The velocity of the surface of a disc in the direction `normal` from where it is touched.
#[func]
fn surface(v: Vec2<f64>, spin: f64, normal: Vec2<f64>) -> Vec2<f64> {
    v + spin * RADIUS * Vec2::new(normal.y, -normal.x)
}

#[program]
fn step(t: &mut Table) {
    for i in par(0..t.x.len()) {
        let (pushes, turns) = sum(0..t.x.len(), |j| {
            // A disc does not touch itself.
            let d = if j == i { Vec2::new(0.0, 9.0 * RADIUS) } else { t.x[i] - t.x[j] };
            let normal = d.normalize();
            let slip = surface(t.v[i], t.spin[i], normal) - surface(t.v[j], t.spin[j], -normal);
            contact(2.0 * RADIUS - d.norm(), normal, slip)
        });
        let up = Vec2::new(0.0, 1.0);
        let (push, turn) = contact(RADIUS - t.x[i].y, up, surface(t.v[i], t.spin[i], up));
        t.force[i] = pushes + push - 9.8 * MASS * up;
        t.torque[i] = turns + turn;
    }
    for i in par(0..t.x.len()) {
        t.v[i] += (DT / MASS) * t.force[i];
        t.spin[i] += DT / INERTIA * t.torque[i];
        t.x[i] += DT * t.v[i];
    }
}

/// Strikes the first disc: `strike` is its velocity along the floor and its spin.
#[program]
pub fn shot(t: &mut Table, strike: &Array0<Vec2<f64>>, goal: f64, loss: &mut Array0<f64>) {
    t.v[0] = Vec2::new(strike[[]].x, 0.0);
    t.spin[0] = strike[[]].y;
    for _k in 0..STEPS {
        step(t);
    }
    let miss = t.x[DISCS - 1].x - goal;
    loss[[]] = miss * miss;
}

/// Three discs at rest in a row.
pub fn table(device: &Device) -> ebbtide::Result<Table> {
    Ok(Table {
        x: device.from_fn([DISCS], |[i]| Vec2::new(0.3 * i as f64, RADIUS - MASS * 9.8 / STIFFNESS))?,
        v: device.zeros([DISCS])?,
        spin: device.zeros([DISCS])?,
        force: device.zeros([DISCS])?,
        torque: device.zeros([DISCS])?,
    })
}

/// Strikes until the last disc ends near the goal.
pub fn main() -> Result<(), Failure> {
    let device = Device::best()?;
    let g = shot().value_and_grad(shot::loss).wrt(shot::strike).memory(Bytes::mib(1)).compile(&device)?;
    let plain = shot().compile(&device)?;
    // The goal is where another strike sends it.
    let mut seen = table(&device)?;
    let _done =
        plain.launch((&mut seen, &device.scalar(Vec2::new(2.6, 8.0))?, 0.0, &mut device.scalar(0.0)?))?;
    let goal = seen.x[DISCS - 1].x;
    let mut strike = device.scalar(Vec2::new(2.0, 0.0))?;
    let mut last = f64::INFINITY;
    for round in 0..8 {
        let out = g.launch((&table(&device)?, &strike, goal, &device.scalar(0.0)?))?;
        let (value, slope) = (out.value(shot::loss)?.value(), out.get(shot::strike)?.value());
        last = value.sqrt();
        say!(
            "round {round}: struck with {:.4?}, the last disc is {last:.5} from the goal",
            strike[[]].to_array()
        );
        if round == 0 {
            let along = Vec2::new(0.8, -0.6);
            let at = |h: f64| -> Result<f64, Failure> {
                let (mut t, mut loss) = (table(&device)?, device.scalar(0.0)?);
                let _done =
                    plain.launch((&mut t, &device.scalar(strike[[]] + h * along)?, goal, &mut loss))?;
                Ok(loss.value())
            };
            show::check("slope along a direction", slope.dot(along), (at(1e-6)? - at(-1e-6)?) / 2e-6, 1e-4)?;
        }
        // Newton's step for a square root, along the gradient, and not too far.
        strike[[]] -= (value / slope.norm_squared()).min(0.3 / slope.norm()) * slope;
    }
    if last < 0.05 { Ok(()) } else { Err(format!("the last disc is {last} from the goal").into()) }
}
