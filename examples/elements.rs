//! A beam of neo-Hookean triangles that bends under its weight: which stiffness lets its end hang as it should?
//!
//! Each element computes its deformation as a matrix, its stress, and the forces at its corners, which it adds to those of
//! its nodes. The gradient of where the end hangs, by the stiffness of every element, goes back through all steps and is
//! compared with differences.
//!
//! ```text
//! cargo run --release --example elements
//! ```

#[path = "show.rs"]
#[macro_use]
mod show;

use ebbtide::prelude::*;
use show::Failure;

/// Cells along and across the beam, two triangles each.
const LONG: usize = 16;
const WIDE: usize = 3;
const NODES: usize = (LONG + 1) * (WIDE + 1);
const ELEMENTS: usize = 2 * LONG * WIDE;
const STEPS: usize = 600;
const DT: f64 = 2e-3;
const SIZE: f64 = 0.1;
/// The mass of a node.
const MASS: f64 = 0.01;

/// Nodes and triangles.
#[derive(Arrays)]
pub struct Beam {
    x: Array1<Vec2<f64>>,
    v: Array1<Vec2<f64>>,
    force: Array1<Vec2<f64>>,
    /// The nodes of each element.
    corners: Array1<[i32; 3]>,
    /// The inverse of its two sides at rest.
    pub rest: Array1<Mat2<f64>>,
}

/// The first Piola-Kirchhoff stress of a neo-Hookean solid.
#[func]
fn stress(f: Mat2<f64>, mu: f64, lambda: f64) -> Mat2<f64> {
    let back = f.inverse().transpose();
    mu * (f - back) + lambda * f.determinant().ln() * back
}

#[program]
fn step(b: &mut Beam, stiffness: &Array1<f64>) {
    fill(b.force, Vec2::zero());
    for e in par(0..stiffness.len()) {
        let corners = b.corners[e];
        let (i, j, k) = (corners[0] as usize, corners[1] as usize, corners[2] as usize);
        let sides = Mat2::from_rows([b.x[j] - b.x[i], b.x[k] - b.x[i]]).transpose();
        let f = sides * b.rest[e];
        assert!(f.determinant() > 0.0, "an element is turned inside out");
        let area = 0.5 / b.rest[e].determinant().abs();
        let pulls = (-area * stress(f, stiffness[e], 2.0 * stiffness[e]) * b.rest[e].transpose()).transpose();
        b.force[j] += pulls[0];
        b.force[k] += pulls[1];
        b.force[i] -= pulls[0] + pulls[1];
    }
    for i in par(0..b.x.len()) {
        if i <= WIDE {
            continue; // the wall holds these
        }
        b.v[i] = (b.v[i] + DT * (b.force[i] / MASS + Vec2::new(0.0, -1.0))) * 0.995;
        b.x[i] += DT * b.v[i];
    }
}

/// How far the end of the beam hangs from where it should, squared.
#[program]
pub fn hang(b: &mut Beam, stiffness: &Array1<f64>, goal: f64, loss: &mut Array0<f64>) {
    for _t in 0..STEPS {
        step(b, stiffness);
    }
    let n = b.x.len();
    let end = sum(0..WIDE + 1, |k| b.x[n - 1 - k].y) / (WIDE + 1) as f64;
    loss[[]] = (end - goal) * (end - goal);
}

/// A straight beam at rest.
pub fn beam(device: &Device) -> ebbtide::Result<Beam> {
    let node = |i: usize, j: usize| (i * (WIDE + 1) + j) as i32;
    let (mut corners, mut rest) = (Vec::new(), Vec::new());
    for (i, j) in (0..LONG).flat_map(|i| (0..WIDE).map(move |j| (i, j))) {
        corners.push([node(i, j), node(i + 1, j), node(i, j + 1)]);
        corners.push([node(i + 1, j + 1), node(i, j + 1), node(i + 1, j)]);
        let sides = Mat2::new(SIZE, 0.0, 0.0, SIZE).inverse();
        rest.extend([sides, -sides]);
    }
    let place = |k: usize| Vec2::new((k / (WIDE + 1)) as f64, (k % (WIDE + 1)) as f64);
    Ok(Beam {
        x: device.from_fn([NODES], |[k]| SIZE * place(k))?,
        v: device.zeros([NODES])?,
        force: device.zeros([NODES])?,
        corners: device.array(&corners)?,
        rest: device.array(&rest)?,
    })
}

/// Changes the stiffness until the end hangs near the goal.
pub fn main() -> Result<(), Failure> {
    // On a GPU sums at shared elements need 17 MiB, which is more than the budget below.
    let device = Device::cpu();
    let goal = 0.1;
    let g = hang().value_and_grad(hang::loss).wrt(hang::stiffness).memory(Bytes::mib(4)).compile(&device)?;
    let plain = hang().compile(&device)?;
    let mut stiffness = vec![40.0; ELEMENTS];
    let mut last = f64::INFINITY;
    for round in 0..6 {
        let (mut b, mut loss, s) = (beam(&device)?, device.scalar(0.0)?, device.array(&stiffness)?);
        let out = g.launch((&mut b, &s, goal, &mut loss))?;
        let (value, slope) = (out.value(hang::loss)?.value(), out.get(hang::stiffness)?.to_vec());
        last = value.sqrt();
        say!("round {round}: the end hangs {last:.5} from the goal");
        if round == 0 {
            let along: Vec<f64> = (0..ELEMENTS).map(|e| (0.7 * e as f64).sin() + 0.3).collect();
            let at = |moved: f64| -> Result<f64, Failure> {
                let (mut b, mut loss) = (beam(&device)?, device.scalar(0.0)?);
                let s: Vec<f64> = stiffness.iter().zip(&along).map(|(s, a)| s + moved * a).collect();
                let _done = plain.launch((&mut b, &device.array(&s)?, goal, &mut loss))?;
                Ok(loss.value())
            };
            let difference = (at(1e-3)? - at(-1e-3)?) / 2e-3;
            let slope: f64 = slope.iter().zip(&along).map(|(s, a)| s * a).sum();
            show::check("slope along a direction", slope, difference, 1e-6)?;
        }
        // Newton's step for a square root, along the gradient.
        let square: f64 = slope.iter().map(|s| s * s).sum();
        stiffness.iter_mut().zip(&slope).for_each(|(s, d)| *s = (*s - value * d / square).max(5.0));
    }
    if last < 0.05 { Ok(()) } else { Err(format!("the end hangs {last} from the goal").into()) }
}
