//! The same parts give the same bits on any number of ranks: values, gradients under two budgets, jvp and hvp.

use ebbtide::prelude::*;
use ebbtide::{CompiledProduct, Direction};
use ebbtide_grid::{Grid, Part, Result, Team};

use crate::problems::{Bits, ToBits, burgers, on_ranks, torus, wave};

/// Runs a problem in one process and on one to four ranks, and compares.
fn compare(grids: &[Grid], work: impl Fn(&Part) -> Result<Bits> + Sync) {
    for grid in grids {
        let alone = Team::new(grid).run(&work).expect("it runs").remove(0);
        assert!(alone.len() > 10 && alone.iter().filter(|bits| **bits != 0).count() > 10);
        for ranks in 1..=4 {
            assert_eq!(alone, on_ranks(grid, ranks, &work), "{ranks} ranks, {}", grid.identity());
        }
    }
}

struct Line {
    device: Device,
    run: Compiled<burgers>,
    gradient: CompiledGrad<burgers>,
    jvp: CompiledProduct<burgers>,
    hvp: CompiledProduct<burgers>,
}

impl Line {
    fn new(device: Device) -> Result<Line> {
        let gradient = burgers().value_and_grad(burgers::loss).wrt(burgers::u).wrt(burgers::nu);
        Ok(Line {
            run: burgers().compile(&device)?,
            gradient: gradient.compile(&device)?,
            jvp: burgers().jvp(burgers::loss).wrt(burgers::u).wrt(burgers::nu).compile(&device)?,
            hvp: burgers().hvp(burgers::loss).wrt(burgers::u).wrt(burgers::nu).compile(&device)?,
            device,
        })
    }

    fn all(&self, part: &Part) -> Result<Bits> {
        let (device, at) = (&self.device, part.place1()?);
        let start = |[x]: [usize; 1]| (0.37 * x as f64).sin() + 0.2;
        let mut u = part.fill(device, start)?;
        let mut next = part.zeros(device)?;
        let mut loss = device.zeros([])?;
        let mut bits = Bits::new();
        let _done = self.run.launch((&mut u, &mut next, &at, 0.3, 20, &mut loss))?;
        bits.extend(part.gather(&u)?.bits());
        bits.push(loss.value().to_bits());
        let mut u = part.fill(device, start)?;
        loss.fill(0.0)?;
        for memory in [Bytes::kib(18), Bytes::mib(1)] {
            let out =
                self.gradient.with_memory(memory).launch((&mut u, &mut next, &at, 0.3, 20, &mut loss))?;
            bits.extend(part.gather(out.get(burgers::u)?)?.bits());
            bits.push(out.get(burgers::nu)?.to_bits());
            bits.push(out.value(burgers::loss)?.value().to_bits());
        }
        let direction = part.fill(device, |[x]| 0.1 * x as f64 - 1.0)?;
        let along = Direction::new().array(burgers::u, &direction).scalar(burgers::nu, 0.5);
        let out = self.jvp.launch((&mut u, &mut next, &at, 0.3, 20, &mut loss), &along)?;
        bits.push(out.get(burgers::loss)?.value().to_bits());
        let out = self.hvp.launch((&mut u, &mut next, &at, 0.3, 20, &mut loss), &along)?;
        bits.extend(part.gather(out.get(burgers::u)?)?.bits());
        bits.push(out.get(burgers::nu)?.to_bits());
        Ok(bits)
    }
}

#[test]
fn c65_a_line_has_the_same_bits_on_one_to_four_ranks() {
    let line = Line::new(Device::cpu()).expect("it compiles");
    let ring =
        |grid: Result<Grid>| grid.and_then(|g| g.halo(1)).and_then(|g| g.periodic(&[true])).expect("a grid");
    let grids = [
        ring(Grid::new(&[48]).and_then(|g| g.even(&[12]))),
        ring(Grid::new(&[48]).and_then(|g| g.cut(0, &[5, 17, 1, 11, 14]))),
    ];
    compare(&grids, |part| line.all(part));
}

#[test]
fn the_interpreter_has_the_bits_of_the_device() {
    let grid = Grid::new(&[48]).and_then(|g| g.cut(0, &[5, 17, 1, 11, 14])).and_then(|g| g.halo(1));
    let grid = grid.and_then(|g| g.periodic(&[true])).expect("a grid");
    let run = |device: Device| {
        let line = Line::new(device).expect("it compiles");
        Team::new(&grid).run(|part| line.all(part)).expect("it runs").remove(0)
    };
    assert_eq!(run(Device::interpreter()), run(Device::cpu()));
}

/// Everything of the problem on a torus.
macro_rules! plane {
    ($name:ident, $t:ty) => {
        #[test]
        fn $name() {
            let device = Device::cpu();
            type P = torus<$t>;
            let program = torus::<$t>;
            let run = program().compile(&device).expect("it compiles");
            let gradient = program().value_and_grad(P::loss).wrt(P::u).wrt(P::v);
            let gradient = gradient.compile(&device).expect("it compiles");
            let jvp = program().jvp(P::loss).wrt(P::u).compile(&device).expect("it compiles");
            let hvp = program().hvp(P::loss).wrt(P::u).compile(&device).expect("it compiles");
            let work = |part: &Part| -> Result<Bits> {
                let at = part.place2()?;
                let first = |[x, y]: [usize; 2]| (0.3 * x as $t).sin() + 0.1 * y as $t;
                let second = |[x, y]: [usize; 2]| (0.2 * y as $t).cos() - 0.05 * x as $t;
                let (mut u, mut v) = (part.fill(&device, first)?, part.fill(&device, second)?);
                let (mut w, mut loss) = (part.zeros(&device)?, device.zeros([])?);
                let mut bits = Bits::new();
                for memory in [Bytes::kib(26), Bytes::mib(4)] {
                    let out =
                        gradient.with_memory(memory).launch((&mut u, &mut v, &mut w, &at, 6, &mut loss))?;
                    bits.extend(part.gather(out.get(P::u)?)?.bits());
                    bits.extend(part.gather(out.get(P::v)?)?.bits());
                }
                let direction = part.fill(&device, |[x, y]| 0.1 * x as $t - 0.2 * y as $t)?;
                let along = Direction::new().array(P::u, &direction);
                let out = jvp.launch((&mut u, &mut v, &mut w, &at, 6, &mut loss), &along)?;
                bits.extend(vec![out.get(P::loss)?.value()].bits());
                let out = hvp.launch((&mut u, &mut v, &mut w, &at, 6, &mut loss), &along)?;
                bits.extend(part.gather(out.get(P::u)?)?.bits());
                let _done = run.launch((&mut u, &mut v, &mut w, &at, 6, &mut loss))?;
                bits.extend(part.gather(&u)?.bits());
                bits.extend(vec![loss.value()].bits());
                Ok(bits)
            };
            let torus = |grid: Result<Grid>| {
                let grid = grid.and_then(|g| g.halo(1)).and_then(|g| g.periodic(&[true, true]));
                grid.expect("a grid").diagonal()
            };
            let grids = [
                torus(Grid::new(&[9, 12]).and_then(|g| g.even(&[3, 4]))),
                torus(Grid::new(&[9, 11]).and_then(|g| g.cut(1, &[2, 1, 3, 1, 4]))),
            ];
            compare(&grids, work);
        }
    };
}

plane!(c65_a_torus_of_f64_has_the_same_bits_on_one_to_four_ranks, f64);
plane!(c65_a_torus_of_f32_has_the_same_bits_on_one_to_four_ranks, f32);

macro_rules! volume {
    ($name:ident, $t:ty) => {
        #[test]
        fn $name() {
            let device = Device::cpu();
            type P = wave<$t>;
            let program = wave::<$t>;
            let run = program().compile(&device).expect("it compiles");
            let gradient = program().value_and_grad(P::loss).wrt(P::c).wrt(P::wavelet);
            let gradient = gradient.compile(&device).expect("it compiles");
            let work = |part: &Part| -> Result<Bits> {
                let at = part.place3()?;
                let c = part.fill(&device, |[x, y, z]| 0.3 + 0.01 * (x + 2 * y + 3 * z) as $t)?;
                let wavelet: Vec<$t> = (0..12).map(|t| (0.5 * t as $t).sin()).collect();
                let wavelet = device.array(&wavelet)?;
                let (mut p, mut q) = (part.zeros(&device)?, part.zeros(&device)?);
                let (mut loss, mut largest) = (device.zeros([])?, device.zeros([])?);
                let mut bits = Bits::new();
                for memory in [Bytes::kib(56), Bytes::mib(4)] {
                    let out = gradient.with_memory(memory).launch((
                        &mut p,
                        &mut q,
                        &c,
                        &wavelet,
                        &at,
                        &mut loss,
                        &mut largest,
                    ))?;
                    bits.extend(part.gather(out.get(P::c)?)?.bits());
                    bits.extend(out.get(P::wavelet)?.to_vec().bits());
                    bits.extend(vec![out.value(P::loss)?.value()].bits());
                }
                let _done = run.launch((&mut p, &mut q, &c, &wavelet, &at, &mut loss, &mut largest))?;
                bits.extend(part.gather(&p)?.bits());
                bits.extend(vec![largest.value()].bits());
                Ok(bits)
            };
            let room = |grid: Result<Grid>| grid.and_then(|g| g.halo(1)).expect("a grid");
            let grids = [
                room(Grid::new(&[6, 8, 5]).and_then(|g| g.even(&[3, 2, 2]))),
                room(Grid::new(&[6, 8, 5]).and_then(|g| g.cut(2, &[1, 1, 1, 1, 1]))),
            ];
            compare(&grids, work);
        }
    };
}

volume!(c65_waves_of_f64_have_the_same_bits_on_one_to_four_ranks, f64);
volume!(c65_waves_of_f32_have_the_same_bits_on_one_to_four_ranks, f32);
