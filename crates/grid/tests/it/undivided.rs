//! Parts against the same computation on undivided arrays.

use ebbtide::Direction;
use ebbtide::prelude::*;
use ebbtide_grid::{Grid, Team};

use crate::problems::{ToBits, burgers, on_ranks, torus, wave};

/// The problem on a line as one writes it for one machine.
#[program]
fn plain(u: &mut Array1<f64>, next: &mut Array1<f64>, nu: f64, steps: usize, loss: &mut Array0<f64>) {
    let n = u.len();
    for _t in 0..steps {
        for i in par(0..n) {
            let l = u[(i + n - 1) % n];
            let r = u[(i + 1) % n];
            next[i] = u[i] + 0.1 * (nu * (l - 2.0 * u[i] + r) - 0.5 * u[i] * (r - l));
        }
        swap(u, next);
    }
    for i in par(0..n) {
        loss[[]] += u[i] * u[i] * (1.0 + 0.1 * i as f64);
    }
}

/// Equal to so much of the largest component.
fn close(found: &[f64], expected: &[f64], tolerance: f64) {
    assert_eq!(found.len(), expected.len());
    let largest = expected.iter().fold(0.0f64, |most, x| most.max(x.abs()));
    assert!(largest > 0.0);
    for (k, (a, b)) in found.iter().zip(expected).enumerate() {
        assert!((a - b).abs() <= tolerance * largest, "{k}: {a} and {b}, of {largest}");
    }
}

#[test]
fn a_line_in_parts_is_the_line() {
    let device = Device::cpu();
    let start: Vec<f64> = (0..48).map(|x| (0.37 * x as f64).sin() + 0.2).collect();
    let along: Vec<f64> = (0..48).map(|x| 0.1 * x as f64 - 1.0).collect();
    let mut u = device.array(&start).expect("an array");
    let mut next = device.zeros([48]).expect("an array");
    let mut loss = device.zeros([]).expect("an array");
    let g = plain()
        .value_and_grad(plain::loss)
        .wrt(plain::u)
        .wrt(plain::nu)
        .compile(&device)
        .expect("it compiles");
    let h = plain().hvp(plain::loss).wrt(plain::u).wrt(plain::nu).compile(&device).expect("it compiles");
    let out = g.launch((&mut u, &mut next, 0.3, 20, &mut loss)).expect("it runs");
    let (du, dnu) = (out.get(plain::u).expect("asked for").to_vec(), out.get(plain::nu).expect("asked for"));
    let direction = device.array(&along).expect("an array");
    let along_all = Direction::new().array(plain::u, &direction).scalar(plain::nu, 0.5);
    let out = h.launch((&mut u, &mut next, 0.3, 20, &mut loss), &along_all).expect("it runs");
    let (hu, hnu) = (out.get(plain::u).expect("asked for").to_vec(), out.get(plain::nu).expect("asked for"));
    let run = plain().compile(&device).expect("it compiles");
    let _done = run.launch((&mut u, &mut next, 0.3, 20, &mut loss)).expect("it runs");

    let gradient =
        burgers().grad(burgers::loss).wrt(burgers::u).wrt(burgers::nu).compile(&device).expect("it compiles");
    let product =
        burgers().hvp(burgers::loss).wrt(burgers::u).wrt(burgers::nu).compile(&device).expect("it compiles");
    let parts = burgers().compile(&device).expect("it compiles");
    for cuts in [vec![48], vec![4; 12], vec![5, 17, 1, 11, 14]] {
        let grid = Grid::new(&[48]).and_then(|g| g.cut(0, &cuts)).and_then(|g| g.halo(1));
        let grid = grid.and_then(|g| g.periodic(&[true])).expect("a grid");
        let ran = Team::new(&grid).run(|part| {
            let at = part.place1()?;
            let mut u = part.scatter(&device, &start)?;
            let (mut next, mut loss) = (part.zeros(&device)?, device.zeros([])?);
            let out = gradient.launch((&mut u, &mut next, &at, 0.3, 20, &mut loss))?;
            close(&part.gather(out.get(burgers::u)?)?, &du, 1e-12);
            close(&[out.get(burgers::nu)?], &[dnu], 1e-12);
            let direction = part.scatter(&device, &along)?;
            let along = Direction::new().array(burgers::u, &direction).scalar(burgers::nu, 0.5);
            let out = product.launch((&mut u, &mut next, &at, 0.3, 20, &mut loss), &along)?;
            close(&part.gather(out.get(burgers::u)?)?, &hu, 1e-12);
            close(&[out.get(burgers::nu)?], &[hnu], 1e-12);
            let _done = parts.launch((&mut u, &mut next, &at, 0.3, 20, &mut loss))?;
            Ok((part.gather(&u)?, loss.value()))
        });
        for (values, value) in ran.expect("it runs") {
            // Nothing is summed across a border.
            assert_eq!(values.bits(), u.to_vec().bits());
            close(&[value], &[loss.value()], 1e-12);
        }
    }
}

/// A stencil of fourth order: it reads two elements on either side.
#[program]
fn wide(u: &mut Array1<f64>, next: &mut Array1<f64>, at: &ebbtide_grid::Place1, loss: &mut Array0<f64>) {
    for _t in 0..6 {
        exchange(u);
        for i in par(at.first..at.first + at.count) {
            next[i] = 0.5 * u[i] + 0.3 * (u[i - 1] * u[i + 1]) - 0.1 * (u[i - 2] + u[i + 2]).sin();
        }
        swap(u, next);
    }
    for i in par(at.first..at.first + at.count) {
        loss[[]] += u[i] * u[i];
    }
    all_sum(loss);
}

/// Halos are wider than some parts: they come from neighbours of neighbours.
#[test]
fn halos_that_reach_beyond_neighbours_are_exchanged() {
    let device = Device::cpu();
    let run = wide().compile(&device).expect("it compiles");
    let gradient = wide().grad(wide::loss).wrt(wide::u).compile(&device).expect("it compiles");
    for ring in [true, false] {
        let found = |counts: &[usize], ranks: usize| {
            let grid = Grid::new(&[12]).and_then(|g| g.cut(0, counts)).and_then(|g| g.halo(2));
            let grid = grid.and_then(|g| g.periodic(&[ring])).expect("a grid");
            on_ranks(&grid, ranks, |part| {
                let mut u = part.fill(&device, |[x]| (0.7 * x as f64).sin() + 0.3)?;
                let (mut next, mut loss) = (part.zeros(&device)?, device.zeros([])?);
                let at = part.place1()?;
                let out = gradient.launch((&u, &next, &at, &loss))?;
                let _done = run.launch((&mut u, &mut next, &at, &mut loss))?;
                Ok((part.gather(&u)?, part.gather(out.get(wide::u)?)?))
            })
        };
        let (u, du) = found(&[12], 1);
        for counts in [&[1, 1, 1, 4, 1, 3, 1][..], &[5, 7], &[1; 12]] {
            let bits = |(u, du): (Vec<f64>, Vec<f64>)| [u.bits(), du.bits()].concat();
            let (values, derivatives) = found(counts, 2);
            assert_eq!(values.bits(), u.bits(), "{counts:?}");
            close(&derivatives, &du, 1e-12);
            assert_eq!(bits(found(counts, 1)), bits((values, derivatives)));
        }
    }
}

#[test]
fn a_torus_in_parts_is_the_torus() {
    let device = Device::cpu();
    type P = torus<f64>;
    let gradient =
        torus::<f64>().value_and_grad(P::loss).wrt(P::u).wrt(P::v).compile(&device).expect("it compiles");
    let run = |grid: Grid| {
        let ran = Team::new(&grid).run(|part| {
            let at = part.place2()?;
            let mut u = part.fill(&device, |[x, y]| (0.3 * x as f64).sin() + 0.1 * y as f64)?;
            let mut v = part.fill(&device, |[x, y]| (0.2 * y as f64).cos() - 0.05 * x as f64)?;
            let (mut w, mut loss) = (part.zeros(&device)?, device.zeros([])?);
            let out = gradient.launch((&mut u, &mut v, &mut w, &at, 6, &mut loss))?;
            let mut all = part.gather(out.get(P::u)?)?;
            all.extend(part.gather(out.get(P::v)?)?);
            all.push(out.value(P::loss)?.value());
            Ok(all)
        });
        ran.expect("it runs").remove(0)
    };
    let torus = |grid: ebbtide_grid::Result<Grid>| {
        grid.and_then(|g| g.halo(1)).and_then(|g| g.periodic(&[true, true])).expect("a grid").diagonal()
    };
    let whole = run(torus(Grid::new(&[9, 12])));
    for cut in [[3, 4], [1, 5], [9, 12], [2, 1]] {
        close(&run(torus(Grid::new(&[9, 12]).and_then(|g| g.even(&cut)))), &whole, 1e-12);
    }
}

#[test]
fn waves_in_parts_are_the_waves() {
    let device = Device::cpu();
    type P = wave<f32>;
    let program = wave::<f32>();
    let gradient =
        program.value_and_grad(P::loss).wrt(P::c).wrt(P::wavelet).compile(&device).expect("it compiles");
    let plain = program.compile(&device).expect("it compiles");
    let run = |grid: Grid| {
        let ran = Team::new(&grid).run(|part| {
            let at = part.place3()?;
            let c = part.fill(&device, |[x, y, z]| 0.3 + 0.01 * (x + 2 * y + 3 * z) as f32)?;
            let wavelet: Vec<f32> = (0..12).map(|t| (0.5 * t as f32).sin()).collect();
            let wavelet = device.array(&wavelet)?;
            let (mut p, mut q) = (part.zeros(&device)?, part.zeros(&device)?);
            let (mut loss, mut largest) = (device.zeros([])?, device.zeros([])?);
            let out = gradient.launch((&mut p, &mut q, &c, &wavelet, &at, &mut loss, &mut largest))?;
            let dc = part.gather(out.get(P::c)?)?;
            let dw = out.get(P::wavelet)?.to_vec();
            let _done = plain.launch((&mut p, &mut q, &c, &wavelet, &at, &mut loss, &mut largest))?;
            Ok((part.gather(&p)?, largest.value(), dc, dw))
        });
        ran.expect("it runs").remove(0)
    };
    let room = |cut: &[usize]| {
        Grid::new(&[6, 8, 5]).and_then(|g| g.even(cut)).and_then(|g| g.halo(1)).expect("a grid")
    };
    let whole = run(room(&[1, 1, 1]));
    let wide = |x: &[f32]| x.iter().map(|x| f64::from(*x)).collect::<Vec<f64>>();
    for cut in [[3, 2, 2], [1, 1, 5], [2, 8, 1]] {
        let (p, largest, dc, dw) = run(room(&cut));
        assert_eq!((p.bits(), largest.to_bits()), (whole.0.bits(), whole.1.to_bits()));
        close(&wide(&dc), &wide(&whole.2), 1e-5);
        close(&wide(&dw), &wide(&whole.3), 1e-5);
    }
}

#[test]
fn derivatives_of_collectives_are_differences() {
    #[program]
    fn mixed(
        x: &mut Array1<f64>,
        most: &mut Array0<f64>,
        at: &ebbtide_grid::Place1,
        k: f64,
        y: &mut Array0<f64>,
    ) {
        exchange(x);
        for i in par(at.first..at.first + at.count) {
            y[[]] += k * x[i - 1] * x[i + 1] * x[i + 1];
            most[[]].max_assign(x[i]);
        }
        all_max(most);
        all_sum(y);
        // A value that all parts share is used by each in its own way.
        let scaled = y[[]] * most[[]] * (1.0 + at.begin as f64);
        y[[]] = scaled;
        all_sum(y);
    }
    let device = Device::cpu();
    let grid = Grid::new(&[7]).and_then(|g| g.cut(0, &[2, 4, 1])).and_then(|g| g.halo(1)).expect("a grid");
    let start: Vec<f64> = (0..7).map(|x| 0.3 + 0.2 * (1.7 * x as f64).sin()).collect();
    let value = |x: &[f64], k: f64| {
        let run = mixed().compile(&device).expect("it compiles");
        let ran = Team::new(&grid).run(|part| {
            let mut x = part.scatter(&device, x)?;
            let (mut most, mut y) = (device.zeros([])?, device.zeros([])?);
            let _done = run.launch((&mut x, &mut most, &part.place1()?, k, &mut y))?;
            Ok(y.value())
        });
        ran.expect("it runs").remove(0)
    };
    let gradient = mixed().grad(mixed::y).wrt(mixed::x).wrt(mixed::k).compile(&device).expect("it compiles");
    let jvp = mixed().jvp(mixed::y).wrt(mixed::x).compile(&device).expect("it compiles");
    let (dx, dk, forward) = Team::new(&grid)
        .run(|part| {
            let mut x = part.scatter(&device, &start)?;
            let (mut most, mut y) = (device.zeros([])?, device.zeros([])?);
            let out = gradient.launch((&mut x, &mut most, &part.place1()?, 1.5, &mut y))?;
            let (dx, dk) = (part.gather(out.get(mixed::x)?)?, out.get(mixed::k)?);
            let direction = part.fill(&device, |[x]| 1.0 + x as f64)?;
            let along = Direction::new().array(mixed::x, &direction);
            let out = jvp.launch((&mut x, &mut most, &part.place1()?, 1.5, &mut y), &along)?;
            Ok((dx, dk, out.get(mixed::y)?.value()))
        })
        .expect("it runs")
        .remove(0);
    let h = 1e-6;
    for (i, dx) in dx.iter().enumerate() {
        let moved = |by: f64| {
            start.iter().enumerate().map(|(k, x)| if k == i { x + by } else { *x }).collect::<Vec<_>>()
        };
        let difference = (value(&moved(h), 1.5) - value(&moved(-h), 1.5)) / (2.0 * h);
        assert!((dx - difference).abs() < 1e-7, "{i}: {dx} and {difference}");
    }
    let difference = (value(&start, 1.5 + h) - value(&start, 1.5 - h)) / (2.0 * h);
    assert!((dk - difference).abs() < 1e-7, "{dk} and {difference}");
    let product: f64 = dx.iter().enumerate().map(|(x, d)| d * (1.0 + x as f64)).sum();
    assert!((forward - product).abs() < 1e-12 * product.abs().max(1.0), "{forward} and {product}");
}
