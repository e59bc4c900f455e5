//! Loops whose number of iterations is data: all parts agree on their end.

use ebbtide::prelude::*;
use ebbtide_grid::{Grid, Part, Place1, Result, Team};

use crate::problems::{Bits, ToBits, on_ranks};

/// Heat spreads until no element of any part changes by more than `tolerance`.
#[program]
fn relax(
    u: &mut Array1<f64>,
    next: &mut Array1<f64>,
    at: &Place1,
    tolerance: f64,
    change: &mut Array0<f64>,
    iterations: &mut Array0<i32>,
    loss: &mut Array0<f64>,
) {
    change[[]] = 1.0;
    while change[[]] > tolerance {
        exchange(u);
        change[[]] = 0.0;
        for i in par(at.first..at.first + at.count) {
            next[i] = u[i] + 0.25 * (u[i - 1] - 2.0 * u[i] + u[i + 1]);
        }
        for i in par(at.first..at.first + at.count) {
            change[[]].max_assign((next[i] - u[i]).abs());
        }
        all_max(change);
        iterations[[]] += 1;
        swap(u, next);
    }
    for i in par(at.first..at.first + at.count) {
        loss[[]] += u[i] * u[i];
    }
    all_sum(loss);
}

#[test]
fn c65_a_loop_that_converges_has_the_same_iterations_and_gradient_on_all_ranks() {
    let device = Device::cpu();
    let run = relax().compile(&device).expect("it compiles");
    let gradient = relax().grad(relax::loss).wrt(relax::u).compile(&device).expect("it compiles");
    let work = |part: &Part| -> Result<(Bits, i32)> {
        // One part has almost all the heat: alone, the others would end at once.
        let mut u = part.fill(&device, |[x]| if x == 3 { 5.0 } else { 0.01 * x as f64 })?;
        let (mut next, at) = (part.zeros(&device)?, part.place1()?);
        let (mut change, mut iterations, mut loss) =
            (device.zeros([])?, device.zeros([])?, device.zeros([])?);
        let out = gradient.launch((&u, &next, &at, 0.02, &change, &iterations, &loss))?;
        let mut bits = part.gather(out.get(relax::u)?)?.bits();
        let _done = run.launch((&mut u, &mut next, &at, 0.02, &mut change, &mut iterations, &mut loss))?;
        bits.extend(part.gather(&u)?.bits());
        bits.push(loss.value().to_bits());
        Ok((bits, iterations.value()))
    };
    for grid in [
        Grid::new(&[40]).and_then(|g| g.even(&[5])),
        Grid::new(&[40]).and_then(|g| g.cut(0, &[7, 1, 20, 12])),
    ] {
        let grid = grid.and_then(|g| g.halo(1)).expect("a grid");
        let alone = Team::new(&grid).run(work).expect("it runs").remove(0);
        assert!(alone.1 > 5, "{} iterations", alone.1);
        for ranks in 1..=4 {
            assert_eq!(on_ranks(&grid, ranks, work), alone, "{ranks} ranks");
        }
    }
}
