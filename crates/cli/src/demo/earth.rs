//! The ground under the sea: what is there, what is assumed at first, where it is fired and heard.

use super::physics::{FASTEST, SLOWEST, WATER, speed};

/// The depth of the ground that is looked at, in km. The grid divides it, so that every grid sees the same ground.
const DEPTH: f64 = 2.0;
/// The depth of the sea, in km.
const SEA: f64 = 0.16;
/// The frequency at which the shots are loudest, in Hz.
const FREQUENCY: f64 = 4.0;
/// What the shots and their echoes take to cross the ground, in s.
const LISTEN: f64 = 2.7;

/// A grid of cells: rows go down, columns go along.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grid {
    /// Cells down, the damped edges included.
    pub rows: usize,
    /// Cells along, the damped edges included.
    pub columns: usize,
}

impl std::str::FromStr for Grid {
    type Err = String;

    fn from_str(text: &str) -> Result<Grid, String> {
        let parts: Vec<_> = text.split(['x', '×']).map(|part| part.trim().parse::<usize>()).collect();
        match parts[..] {
            [Ok(rows), Ok(columns)] if (24..=4096).contains(&rows) && (24..=4096).contains(&columns) => {
                Ok(Grid { rows, columns })
            }
            [Ok(_), Ok(_)] => Err(format!("`{text}`: a grid has between 24 and 4096 cells each way")),
            _ => Err(format!("`{text}` is not a grid: write rows and columns, such as 160x240")),
        }
    }
}

impl std::fmt::Display for Grid {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}x{}", self.rows, self.columns)
    }
}

impl Grid {
    /// The cells of the damped edge, on each side.
    pub fn edge(self) -> usize {
        (self.rows / 10).clamp(3, 40)
    }

    /// The size of a cell, in km.
    pub fn cell(self) -> f64 {
        DEPTH / (self.rows - 2 * self.edge()) as f64
    }

    /// The length of a time step, in s: what the fastest rock allows, and a little less.
    pub fn time_step(self) -> f64 {
        0.65 * self.cell() / f64::from(FASTEST)
    }

    /// The steps in which every echo comes back.
    pub fn steps(self) -> usize {
        (LISTEN / self.time_step()).ceil() as usize
    }

    /// The row where it is fired and heard.
    pub fn row(self) -> usize {
        self.edge() + self.rows / 64
    }

    /// The columns where it is fired, evenly spread.
    pub fn sources(self, count: usize) -> Vec<usize> {
        let width = self.columns - 2 * self.edge();
        (0..count).map(|k| self.edge() + width * (2 * k + 1) / (2 * count)).collect()
    }

    fn cells(self) -> impl Iterator<Item = (usize, usize)> {
        (0..self.rows).flat_map(move |i| (0..self.columns).map(move |j| (i, j)))
    }

    /// The depth of a row below the surface and the place of a column along it, in km; negative in the edges.
    fn place(self, (i, j): (usize, usize)) -> (f64, f64) {
        let at = |k: usize| (k as f64 + 0.5 - self.edge() as f64) * self.cell();
        (at(i), at(j))
    }

    fn width(self) -> f64 {
        (self.columns - 2 * self.edge()) as f64 * self.cell()
    }
}

/// Everything about the ground that the programs need, by cell.
pub struct Earth {
    /// The unknown of the true ground.
    pub truth: Vec<f32>,
    /// The unknown that the inversion starts from.
    pub start: Vec<f32>,
    /// How far the unknown moves for one unit of the optimiser: echoes from below are faint, so further down.
    pub reach: Vec<f32>,
    /// One in rock, zero in water.
    pub rock: Vec<f32>,
    /// What the field keeps of itself in a step: one, and less in the edges.
    pub keep: Vec<f32>,
    /// The shot, by time step.
    pub wavelet: Vec<f32>,
    /// Time step over cell size, in s/km.
    pub ratio: f32,
}

impl Earth {
    pub fn new(grid: Grid, steps: usize) -> Earth {
        let fill = |f: &dyn Fn(f64, f64) -> f64| -> Vec<f32> {
            grid.cells().map(|cell| grid.place(cell)).map(|(z, x)| f(z, x) as f32).collect()
        };
        let width = grid.width();
        Earth {
            truth: fill(&|z, x| unknown(true_speed(z, x / width))),
            start: fill(&|z, _| unknown(assumed_speed(z))),
            reach: fill(&|z, _| (0.25 + z).clamp(0.25, 1.4)),
            rock: fill(&|z, _| ((z - SEA) / (1.5 * grid.cell())).clamp(0.0, 1.0)),
            keep: grid.cells().map(|cell| kept(grid, cell)).collect(),
            wavelet: (0..steps).map(|t| ricker(t as f64 * grid.time_step())).collect(),
            ratio: (grid.time_step() / grid.cell()) as f32,
        }
    }

    /// How far the speeds of an unknown are from the true ones, in km/s: the root mean square over the rock that is shown.
    pub fn model_error(&self, grid: Grid, unknown: &[f32]) -> f64 {
        let (found, truth) = (self.speeds(unknown), self.speeds(&self.truth));
        let edge = grid.edge();
        let inside = |(i, j): &(usize, usize)| {
            (edge..grid.rows - edge).contains(i) && (edge..grid.columns - edge).contains(j)
        };
        let (mut sum, mut count) = (0.0, 0.0);
        for (k, _) in grid.cells().enumerate().filter(|(_, cell)| inside(cell)) {
            let weight = f64::from(self.rock[k]);
            sum += weight * f64::from(found[k] - truth[k]).powi(2);
            count += weight;
        }
        if count > 0.0 { (sum / count).sqrt() } else { 0.0 }
    }

    /// The speeds, in km/s, that an unknown stands for.
    pub fn speeds(&self, unknown: &[f32]) -> Vec<f32> {
        unknown.iter().zip(&self.rock).map(|(&x, &rock)| speed(x, rock)).collect()
    }
}

/// Layers with gentle folds, a lens of salt, and a pocket of gas. `x` goes from 0 to 1.
fn true_speed(z: f64, x: f64) -> f64 {
    let wave = |n: f64, phase: f64| (std::f64::consts::TAU * (n * x + phase)).sin();
    let inside = |cx: f64, cz: f64, rx: f64, rz: f64| {
        let bend = 0.10 * wave(1.0, 0.1);
        ((x - cx) / rx).powi(2) + ((z - cz - bend) / rz).powi(2) < 1.0
    };
    if inside(0.47, 0.98, 0.21, 0.24) {
        return 3.6;
    }
    if inside(0.82, 0.66, 0.07, 0.10) {
        return 1.65;
    }
    let layers = [
        (0.42 + 0.04 * wave(1.3, 0.0), 1.75),
        (0.78 + 0.06 * wave(0.9, 0.35), 2.05),
        (1.18 + 0.08 * wave(1.1, 0.6), 2.40),
        (1.58 + 0.06 * wave(0.8, 0.2), 2.85),
    ];
    layers.iter().find(|(bottom, _)| z < *bottom).map_or(3.30, |(_, speed)| *speed)
}

/// Faster with depth, and nothing else.
fn assumed_speed(z: f64) -> f64 {
    1.6 + 0.85 * (z - SEA).clamp(0.0, DEPTH)
}

/// The unknown that gives a speed.
fn unknown(speed: f64) -> f64 {
    let (low, high) = (f64::from(SLOWEST), f64::from(FASTEST));
    let part = ((speed.max(f64::from(WATER)) - low) / (high - low)).clamp(0.01, 0.99);
    (part / (1.0 - part)).ln()
}

/// Cerjan's sponge: the field fades towards the edges.
fn kept(grid: Grid, (i, j): (usize, usize)) -> f32 {
    let inside = i.min(j).min(grid.rows - 1 - i).min(grid.columns - 1 - j);
    let depth = grid.edge().saturating_sub(inside) as f64 / grid.edge() as f64;
    // The same fading for every grid: over the whole edge, not per cell.
    let strength = 2.8 / grid.edge() as f64;
    (-strength * depth * depth).exp() as f32
}

/// Ricker's wavelet.
fn ricker(time: f64) -> f32 {
    let a = (std::f64::consts::PI * FREQUENCY * (time - 1.2 / FREQUENCY)).powi(2);
    ((1.0 - 2.0 * a) * (-a).exp()) as f32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grids_are_read_and_refused() {
        assert_eq!("160x240".parse(), Ok(Grid { rows: 160, columns: 240 }));
        assert_eq!("40 × 50".parse(), Ok(Grid { rows: 40, columns: 50 }));
        for bad in ["", "160", "160x", "axb", "3x240", "160x-2", "160x240x3", "9999x100"] {
            assert!(bad.parse::<Grid>().is_err(), "{bad}");
        }
    }

    #[test]
    fn the_unknown_gives_the_speed_it_was_made_from() {
        for kms in [1.5, 1.65, 2.4, 3.9] {
            assert!((f64::from(speed(unknown(kms) as f32, 1.0)) - kms).abs() < 1e-5, "{kms}");
        }
        assert_eq!(speed(unknown(3.9) as f32, 0.0), WATER);
    }

    #[test]
    fn the_truth_has_no_model_error_and_the_start_has_some() {
        let grid = Grid { rows: 48, columns: 64 };
        let earth = Earth::new(grid, 1);
        assert_eq!(earth.model_error(grid, &earth.truth), 0.0);
        let start = earth.model_error(grid, &earth.start);
        assert!(start > 0.1 && start < 1.0, "{start}");
    }

    #[test]
    fn every_grid_can_be_stepped_and_hears_its_own_sources() {
        for grid in [Grid { rows: 24, columns: 24 }, Grid { rows: 160, columns: 240 }] {
            let earth = Earth::new(grid, grid.steps());
            assert!(earth.ratio * FASTEST < std::f32::consts::FRAC_1_SQRT_2);
            assert!(grid.sources(6).iter().all(|&j| j >= grid.edge() && j < grid.columns - grid.edge()));
            assert_eq!(earth.rock[grid.row() * grid.columns + grid.columns / 2], 0.0, "it is fired in water");
        }
    }
}
