//! A cloth that hangs from two corners (XPBD): which wind holds its middle where it should be?
//!
//! Positions are predicted from velocities, then edges pull their ends together, a few times in each step, each with a
//! multiplier of its own. The gradient of where the middle ends up, by the wind, goes back through all constraints of all
//! steps, and is compared with differences.
//!
//! ```text
//! cargo run --release --example cloth
//! ```

#[path = "show.rs"]
#[macro_use]
mod show;

use ebbtide::prelude::*;
use show::Failure;

/// Nodes along each side.
const SIDE: usize = 9;
const NODES: usize = SIDE * SIDE;
const STEPS: usize = 60;
const ITERATIONS: usize = 8;
const DT: f64 = 1.0 / 60.0;
const COMPLIANCE: f64 = 1e-4;

/// Nodes and the edges between them.
#[derive(Arrays)]
pub struct Cloth {
    x: Array1<Vec3<f64>>,
    v: Array1<Vec3<f64>>,
    /// Where the nodes are predicted to go, and how the edges move them.
    next: Array1<Vec3<f64>>,
    moved: Array1<Vec3<f64>>,
    /// One over the mass of a node; zero for those that are held.
    w: Array1<f64>,
    edges: Array1<[i32; 2]>,
    rest: Array1<f64>,
    /// The multiplier of each edge.
    lambda: Array1<f64>,
}

/// All edges pull at once; a node moves by a part of what its edges want together.
#[program]
fn relax(c: &mut Cloth) {
    fill(c.moved, Vec3::zero());
    for e in par(0..c.edges.len()) {
        let (a, b) = (c.edges[e][0] as usize, c.edges[e][1] as usize);
        let d = c.next[a] - c.next[b];
        let soft = COMPLIANCE / (DT * DT);
        let gain = (c.rest[e] - d.norm() - soft * c.lambda[e]) / (c.w[a] + c.w[b] + soft);
        c.lambda[e] += gain;
        c.moved[a] += c.w[a] * gain * d.normalize();
        c.moved[b] -= c.w[b] * gain * d.normalize();
    }
    for i in par(0..c.x.len()) {
        c.next[i] += 0.3 * c.moved[i];
    }
}

#[program]
fn step(c: &mut Cloth, wind: &Array0<Vec3<f64>>) {
    for i in par(0..c.x.len()) {
        let push = if c.w[i] > 0.0 { wind[[]] + Vec3::new(0.0, -9.8, 0.0) } else { Vec3::zero() };
        c.next[i] = c.x[i] + DT * (c.v[i] + DT * push);
    }
    fill(c.lambda, 0.0);
    for _k in 0..ITERATIONS {
        relax(c);
    }
    for i in par(0..c.x.len()) {
        c.v[i] = 0.98 * (c.next[i] - c.x[i]) / DT;
        c.x[i] = c.next[i];
    }
}

/// How far the middle ends from where it should be, squared.
#[program]
pub fn hang(c: &mut Cloth, wind: &Array0<Vec3<f64>>, goal: Vec3<f64>, loss: &mut Array0<f64>) {
    for _t in 0..STEPS {
        step(c, wind);
    }
    loss[[]] = (c.x[NODES / 2] - goal).norm_squared();
}

/// A flat cloth at rest.
pub fn cloth(device: &Device) -> ebbtide::Result<Cloth> {
    let place = |k: usize| Vec3::new((k % SIDE) as f64, 0.0, (k / SIDE) as f64) / SIDE as f64;
    let mut edges = Vec::new();
    for (i, j) in (0..SIDE).flat_map(|i| (0..SIDE).map(move |j| (i, j))) {
        let node = |i: usize, j: usize| (i * SIDE + j) as i32;
        edges.extend((j + 1 < SIDE).then(|| [node(i, j), node(i, j + 1)]));
        edges.extend((i + 1 < SIDE).then(|| [node(i, j), node(i + 1, j)]));
        edges.extend((i + 1 < SIDE && j + 1 < SIDE).then(|| [node(i, j), node(i + 1, j + 1)]));
    }
    let rest: Vec<f64> =
        edges.iter().map(|[a, b]| (place(*a as usize) - place(*b as usize)).norm()).collect();
    Ok(Cloth {
        x: device.from_fn([NODES], |[k]| place(k))?,
        v: device.zeros([NODES])?,
        next: device.zeros([NODES])?,
        moved: device.zeros([NODES])?,
        w: device.from_fn([NODES], |[k]| if k == 0 || k == SIDE - 1 { 0.0 } else { 1.0 })?,
        lambda: device.zeros([edges.len()])?,
        edges: device.array(&edges)?,
        rest: device.array(&rest)?,
    })
}

/// Changes the wind until the middle hangs near the goal.
pub fn main() -> Result<(), Failure> {
    // On a GPU sums at shared elements need 17 MiB, which is more than the budget below.
    let device = Device::cpu();
    let g = hang().value_and_grad(hang::loss).wrt(hang::wind).memory(Bytes::mib(2)).compile(&device)?;
    let plain = hang().compile(&device)?;
    // The goal is where another wind holds it.
    let mut seen = cloth(&device)?;
    let _done = plain.launch((
        &mut seen,
        &device.scalar(Vec3::new(2.0, 3.0, 5.0))?,
        Vec3::zero(),
        &mut device.scalar(0.0)?,
    ))?;
    let goal = seen.x[NODES / 2];
    let mut wind = device.scalar(Vec3::new(0.0, 0.0, 1.0))?;
    let mut last = f64::INFINITY;
    for round in 0..10 {
        let out = g.launch((&cloth(&device)?, &wind, goal, &device.scalar(0.0)?))?;
        let (value, slope) = (out.value(hang::loss)?.value(), out.get(hang::wind)?.value());
        last = value.sqrt();
        say!("round {round}: wind {:.3?}, the middle is {last:.5} from the goal", wind[[]].to_array());
        if round == 0 {
            let along = Vec3::new(0.6, 0.64, -0.48);
            let at = |h: f64| -> Result<f64, Failure> {
                let (mut c, mut loss) = (cloth(&device)?, device.scalar(0.0)?);
                let _done = plain.launch((&mut c, &device.scalar(wind[[]] + h * along)?, goal, &mut loss))?;
                Ok(loss.value())
            };
            show::check("slope along a direction", slope.dot(along), (at(1e-4)? - at(-1e-4)?) / 2e-4, 1e-5)?;
        }
        // Newton's step for a square root, along the gradient.
        wind[[]] -= (value / slope.norm_squared()) * slope;
    }
    if last < 0.02 { Ok(()) } else { Err(format!("the middle is {last} from the goal").into()) }
}
