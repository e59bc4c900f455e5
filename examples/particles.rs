//! Particles with a neighbour list that overflows.
//!
//! A loose cloud of soft discs falls into a trap. The denser it gets, the more neighbours there are, and nobody knows
//! beforehand how many. The program begins with a short list; where the list overflows, in the middle of the run, the
//! program yields, the host doubles the list, and the program goes on as if it had been long enough from the start:
//! the trajectories are equal, bit for bit. With a list that is long enough, the gradient then goes back through all of
//! it, neighbours found anew every four steps included.
//!
//! ```text
//! cargo run --release --example particles
//! ```

#[path = "show.rs"]
#[macro_use]
mod show;

use ebbtide::prelude::*;
use show::Failure;

const PARTICLES: usize = 200;
const BLOCKS: usize = 60;
/// Discs have diameter 1; the rest is room to move until the list is made again.
const REACH: f64 = 1.8;

#[derive(Label)]
enum Stage {
    Neighbours,
    Move,
}

#[derive(Arrays)]
struct Cloud {
    pos: Array2<f64>,
    vel: Array2<f64>,
    /// The neighbours of particle 0, then those of particle 1, and so on, each as `i * n + j`.
    list: Array1<i32>,
    /// How many of them each particle has.
    degree: Array1<i32>,
    /// Where in the list those of each particle end.
    end: Array1<i32>,
    /// How many there are in all.
    count: Array0<i32>,
    /// That number, if the list is too short for it.
    overflow: Array0<i32>,
    /// All positions, after each block of steps.
    track: Array3<f64>,
    reach: f64,
}

#[program]
fn find_neighbours(c: &mut Cloud) {
    let n = c.pos.dim(0);
    let mut close = Array1::<bool>::zeros([n * n]);
    for k in par(0..n * n) {
        let i = k / n;
        let j = k % n;
        let dx = c.pos[[i, 0]] - c.pos[[j, 0]];
        let dy = c.pos[[i, 1]] - c.pos[[j, 1]];
        close[k] = i != j && dx * dx + dy * dy < c.reach * c.reach;
    }
    for i in par(0..n) {
        let mut found = 0;
        for j in 0..n {
            if close[i * n + j] {
                found += 1;
            }
        }
        c.degree[i] = found;
    }
    scan(c.degree, c.end);
    compact(close, c.list, c.count);
    if c.count[[]] as usize > c.list.len() {
        c.overflow[[]] = c.count[[]];
    }
}

#[program]
fn advance(c: &mut Cloud) {
    let n = c.pos.dim(0);
    let dt = 0.02;
    for i in par(0..n) {
        let mut fx = -c.pos[[i, 0]];
        let mut fy = -c.pos[[i, 1]];
        for k in (c.end[i] - c.degree[i]) as usize..c.end[i] as usize {
            let j = c.list[k] as usize % n;
            let dx = c.pos[[i, 0]] - c.pos[[j, 0]];
            let dy = c.pos[[i, 1]] - c.pos[[j, 1]];
            let gap = (dx * dx + dy * dy).sqrt();
            if gap < 1.0 {
                let push = 60.0 * (1.0 - gap) / gap;
                fx += push * dx;
                fy += push * dy;
            }
        }
        let vx = 0.98 * c.vel[[i, 0]] + dt * fx;
        let vy = 0.98 * c.vel[[i, 1]] + dt * fy;
        c.vel[[i, 0]] = vx;
        c.vel[[i, 1]] = vy;
    }
    for (i, k) in par(0..n, 0..2) {
        c.pos[[i, k]] += dt * c.vel[[i, k]];
    }
}

#[program]
fn simulate(c: &mut Cloud, blocks: usize) {
    for block in 0..blocks {
        #[checkpoint(Stage::Neighbours, yield_on = c.overflow)]
        {
            find_neighbours(c);
        }
        for _t in 0..4 {
            #[checkpoint(Stage::Move)]
            {
                advance(c);
            }
        }
        for (i, k) in par(0..c.pos.dim(0), 0..2) {
            c.track[[block, i, k]] = c.pos[[i, k]];
        }
    }
}

/// How far the particles are from the middle in the end: the mean of the squares.
#[program]
fn spread(c: &mut Cloud, blocks: usize, loss: &mut Array0<f64>) {
    simulate(c, blocks);
    for i in par(0..c.pos.dim(0)) {
        let x = c.pos[[i, 0]];
        let y = c.pos[[i, 1]];
        loss[[]] += (x * x + y * y) / (c.pos.dim(0) as f64);
    }
}

/// A sunflower of particles, further apart than they reach, and room for `room` neighbours.
fn cloud(device: &Device, room: usize) -> ebbtide::Result<Cloud> {
    let seed = |i: usize| {
        let (radius, angle) = (1.3 * (i as f64 + 0.5).sqrt(), 2.399_963 * i as f64);
        [radius * angle.cos(), radius * angle.sin()]
    };
    let pos: Vec<f64> = (0..PARTICLES).flat_map(seed).collect();
    Ok(Cloud {
        pos: device.array_with_shape([PARTICLES, 2], &pos)?,
        vel: device.zeros([PARTICLES, 2])?,
        list: device.zeros([room])?,
        degree: device.zeros([PARTICLES])?,
        end: device.zeros([PARTICLES])?,
        count: device.scalar(0)?,
        overflow: device.scalar(0)?,
        track: device.zeros([BLOCKS, PARTICLES, 2])?,
        reach: REACH,
    })
}

/// The distance from the middle that half of the particles are within.
fn half_radius(cloud: &Cloud) -> f64 {
    let mut radii: Vec<f64> = cloud.pos.as_slice().chunks(2).map(|p| p[0].hypot(p[1])).collect();
    radii.sort_by(f64::total_cmp);
    radii[radii.len() / 2]
}

/// Runs the example.
pub fn main() -> Result<(), Failure> {
    let device = Device::best()?;
    let simulate = simulate().compile(&device)?;

    say!("{PARTICLES} particles, {BLOCKS} blocks of 4 steps, on {}\n", device.name());
    say!("{:<40} {:>7} {:>11} {:>6}    new", "the program yields at", "radius", "neighbours", "room");
    let mut grown = cloud(&device, 256)?;
    let mut yields = 0;
    let status = simulate.drive((&mut grown, BLOCKS), |at, (cloud, _)| {
        let room = cloud.list.len();
        let (position, radius) = (at.position().to_string(), half_radius(cloud));
        say!("{position:<40} {radius:>7.2} {:>11} {room:>6} → {:>6}", at.reason(), 2 * room);
        yields += 1;
        cloud.list = device.zeros([2 * room])?;
        cloud.overflow.fill(0)
    })?;
    say!("{:<40} {:>7.2} {:>11} {:>6}", "end", half_radius(&grown), grown.count.value(), grown.list.len());
    assert_eq!(status, Status::Done);
    assert!(yields > 0, "the list was meant to overflow");

    let mut ample = cloud(&device, PARTICLES * PARTICLES)?;
    let status = simulate.launch((&mut ample, BLOCKS))?;
    assert_eq!(status, Status::Done);

    let bits = |cloud: &Cloud| cloud.track.as_slice().iter().map(|x| x.to_bits()).collect::<Vec<_>>();
    assert_eq!(bits(&grown), bits(&ample), "an interrupted run differs from one that was not");
    say!(
        "\nAll {} coordinates along the way are, bit for bit, those of a run with room for {}.",
        grown.track.len(),
        ample.list.len()
    );
    check(&device, grown.list.len())
}

/// The gradient of the spread after some blocks with respect to the velocities at the start, against differences.
fn check(device: &Device, room: usize) -> Result<(), Failure> {
    let blocks = 30;
    let g = spread()
        .grad(spread::loss)
        .wrt_named::<Array2<f64>>("c.vel")
        .memory(Bytes::mib(1))
        .on_yield(|_, host| host.with_named::<i32, 0, _>("c.overflow", |overflow| overflow.fill(0))?)
        .compile(device)?;
    let mut start = cloud(device, room)?;
    let mut loss = device.scalar(0.0)?;
    say!("\n{}", g.plan((&mut start, blocks, &mut loss))?.explain());
    let out = g.launch((&mut start, blocks, &mut loss))?;
    let gradient = out.get_named::<Array2<f64>>("c.vel")?.to_vec();

    let plain = spread().compile(device)?;
    let along: Vec<f64> = (0..2 * PARTICLES).map(|k| (0.7 * k as f64).sin()).collect();
    let beside = |distance: f64| -> Result<f64, Failure> {
        let mut moved = cloud(device, room)?;
        moved.vel.as_mut_slice().iter_mut().zip(&along).for_each(|(v, a)| *v += distance * a);
        let mut loss = device.scalar(0.0)?;
        let _done = plain.launch((&mut moved, blocks, &mut loss))?;
        Ok(loss.value())
    };
    let slope: f64 = gradient.iter().zip(&along).map(|(g, a)| g * a).sum();
    let difference = (beside(1e-6)? - beside(-1e-6)?) / 2e-6;
    show::check("slope along a direction", slope, difference, 1e-6)
}
