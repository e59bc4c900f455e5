//! Runs the problems of the tests on the ranks of a job, or in this process alone, and prints the bits of everything.
//!
//! `ebbtide-mpi-check alone|ranks line|torus|wave even|uneven`, `… shots`, `… groups`, `… fail`, `… durable DIR [RANK POINT]`, which ends
//! rank `RANK` at a named file operation, or `… signal DIR RANK`, in which rank `RANK` receives a signal. `tests/ranks.rs` compares what it prints.

#[allow(dead_code)]
#[path = "../../../grid/tests/it/problems.rs"]
mod problems;

use ebbtide::Direction;
use ebbtide::prelude::*;
use ebbtide_grid::{Alone, Grid, Part, Result, Shots, Team, Wire};
use ebbtide_mpi::{Mpi, cancel_on_signals};
use problems::{Bits, ToBits, burgers, torus, wave};

fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let mut next = || args.next().unwrap_or_default();
    let (place, problem, cut) = (next(), next(), next());
    let mpi = if place == "ranks" { Some(Mpi::start()?) } else { None };
    let first = mpi.as_ref().is_none_or(|mpi| mpi.rank() == 0);
    let team = |grid: &Grid| mpi.as_ref().map_or_else(|| Team::new(grid), |mpi| mpi.team(grid));
    let uneven = cut == "uneven";
    let bits = match problem.as_str() {
        "line" => {
            let grid = Grid::new(&[48])?;
            let grid = if uneven { grid.cut(0, &[5, 17, 1, 11, 14])? } else { grid.even(&[12])? };
            team(&grid.halo(1)?.periodic(&[true])?).run(line)?
        }
        "torus" => {
            let grid = Grid::new(&[9, 12])?;
            let grid = if uneven { grid.cut(1, &[2, 1, 3, 2, 4])? } else { grid.even(&[3, 4])? };
            team(&grid.halo(1)?.periodic(&[true, true])?.diagonal()).run(plane)?
        }
        "wave" => {
            let grid = Grid::new(&[6, 8, 5])?;
            let grid = if uneven { grid.cut(2, &[1, 1, 1, 1, 1])? } else { grid.even(&[3, 2, 2])? };
            team(&grid.halo(1)?).run(volume)?
        }
        "durable" => {
            let (rank, point) = (next(), next());
            if mpi.as_ref().is_some_and(|mpi| mpi.rank().to_string() == rank) {
                // SAFETY (*No threads*): this process has started none of its own, and MPI's read no such variable.
                unsafe { std::env::set_var("EBBTIDE_KILL_AT", point) };
            }
            let grid = Grid::new(&[48])?.cut(0, &[5, 17, 1, 11, 14])?.halo(1)?.periodic(&[true])?;
            team(&grid).run(|part| durable(part, &cut, &Cancel::new()))?
        }
        "signal" => {
            let cancel = cancel_on_signals()?;
            if mpi.as_ref().is_some_and(|mpi| mpi.rank().to_string() == next()) {
                signal_hook::low_level::raise(signal_hook::consts::SIGTERM)?;
                // A thread passes the signal on.
                while !cancel.is_cancelled() {
                    std::thread::yield_now();
                }
            }
            let grid = Grid::new(&[48])?.cut(0, &[5, 17, 1, 11, 14])?.halo(1)?.periodic(&[true])?;
            told_by_all(mpi.as_ref(), team(&grid).run(|part| durable(part, &cut, &cancel)))?
        }
        "fail" => {
            let grid = Grid::new(&[12])?.even(&[4])?.halo(1)?;
            team(&grid).run(failing)?
        }
        "groups" => vec![groups(mpi.as_ref())?],
        "shots" => {
            let mut wire: Box<dyn Wire> =
                mpi.as_ref().map_or_else(|| Box::new(Alone) as Box<dyn Wire>, |mpi| Box::new(mpi.wire()));
            gather_nothing(&mut *wire)?;
            let shot = |shot: usize| Ok((0..5).map(|k| ((shot * 7 + k) as f64 * 0.3).sin() / 3.0).collect());
            vec![Shots::over(&mut *wire).sum(7, 5, shot)?.bits()]
        }
        other => return Err(format!("there is no problem `{other}`").into()),
    };
    if first {
        let text: Vec<String> = bits[0].iter().map(|word| format!("{word:x}")).collect();
        println!("{}", text.join(" "));
    }
    Ok(())
}

fn line(part: &Part) -> Result<Bits> {
    let device = &Device::cpu();
    let at = part.place1()?;
    let mut u = part.fill(device, |[x]| (0.37 * x as f64).sin() + 0.2)?;
    let (mut next, mut loss) = (part.zeros(device)?, device.zeros([])?);
    let mut bits = Bits::new();
    let gradient = burgers().value_and_grad(burgers::loss).wrt(burgers::u).wrt(burgers::nu);
    let gradient = gradient.memory(Bytes::kib(18)).compile(device)?;
    let out = gradient.launch((&mut u, &mut next, &at, 0.3, 20, &mut loss))?;
    bits.extend(part.gather(out.get(burgers::u)?)?.bits());
    bits.push(out.get(burgers::nu)?.to_bits());
    let hvp = burgers().hvp(burgers::loss).wrt(burgers::u).wrt(burgers::nu).compile(device)?;
    let direction = part.fill(device, |[x]| 0.1 * x as f64 - 1.0)?;
    let along = Direction::new().array(burgers::u, &direction).scalar(burgers::nu, 0.5);
    let jvp = burgers().jvp(burgers::loss).wrt(burgers::u).wrt(burgers::nu).compile(device)?;
    let out = jvp.launch((&mut u, &mut next, &at, 0.3, 20, &mut loss), &along)?;
    bits.push(out.get(burgers::loss)?.value().to_bits());
    let out = hvp.launch((&mut u, &mut next, &at, 0.3, 20, &mut loss), &along)?;
    bits.extend(part.gather(out.get(burgers::u)?)?.bits());
    bits.push(out.get(burgers::nu)?.to_bits());
    let _done = burgers().compile(device)?.launch((&mut u, &mut next, &at, 0.3, 20, &mut loss))?;
    bits.extend(part.gather(&u)?.bits());
    bits.push(loss.value().to_bits());
    Ok(bits)
}

/// Shots that groups of ranks run together, each on three parts: at most two groups.
fn groups(mpi: Option<&Mpi>) -> Result<Bits> {
    let grid = Grid::new(&[24])?.even(&[3])?.halo(1)?.periodic(&[true])?;
    let count = mpi.map_or(1, |mpi| mpi.ranks().min(2));
    let group = mpi.map(|mpi| mpi.split(count)).transpose()?;
    let team = || match &group {
        Some((_, wire)) => Team::over(&grid, Box::new(wire.duplicate())),
        None => Team::new(&grid),
    };
    let shot = |shot: usize| {
        let work = |part: &Part| {
            let device = &Device::cpu();
            let u = part.fill(device, |[x]| (0.3 * (x + shot) as f64).sin() + 0.2)?;
            let (next, loss) = (part.zeros(device)?, device.zeros([])?);
            let gradient = burgers().grad(burgers::loss).wrt(burgers::u).compile(device)?;
            let out = gradient.launch((&u, &next, &part.place1()?, 0.3, 5, &loss))?;
            part.gather(out.get(burgers::u)?)
        };
        Ok(team().run(work)?.swap_remove(0))
    };
    let (number, leads) = group.as_ref().map_or((0, true), |(number, wire)| (*number, wire.rank() == 0));
    let mut world: Box<dyn Wire> =
        mpi.map_or_else(|| Box::new(Alone) as Box<dyn Wire>, |mpi| Box::new(mpi.wire()));
    let sum = Shots::over(&mut *world).in_groups(number, count, leads).sum(5, 24, shot)?;
    Ok(sum.bits())
}

/// Every action is made durable in `dir`, or none.
fn durable(part: &Part, dir: &str, cancel: &Cancel) -> Result<Bits> {
    let device = &Device::cpu();
    let at = part.place1()?;
    let u = part.fill(device, |[x]| (0.37 * x as f64).sin() + 0.2)?;
    let (next, loss) = (part.zeros(device)?, device.zeros([])?);
    let gradient = burgers().value_and_grad(burgers::loss).wrt(burgers::u).wrt(burgers::nu);
    let gradient =
        gradient.budget(Budget::Revolve { slots: 2, block: 1 }).compile(device)?.cancel_with(cancel);
    let args = (&u, &next, &at, 0.3, 9, &loss);
    let out = match dir {
        "-" => gradient.launch(args)?,
        dir => gradient.launch_durable_every(dir, std::time::Duration::ZERO, args)?,
    };
    let mut bits = part.gather(out.get(burgers::u)?)?.bits();
    bits.push(out.get(burgers::nu)?.to_bits());
    Ok(bits)
}

fn plane(part: &Part) -> Result<Bits> {
    let device = &Device::cpu();
    type P = torus<f32>;
    let at = part.place2()?;
    let mut u = part.fill(device, |[x, y]| (0.3 * x as f32).sin() + 0.1 * y as f32)?;
    let mut v = part.fill(device, |[x, y]| (0.2 * y as f32).cos() - 0.05 * x as f32)?;
    let (mut w, mut loss) = (part.zeros(device)?, device.zeros([])?);
    let gradient = torus::<f32>().value_and_grad(P::loss).wrt(P::u).wrt(P::v).compile(device)?;
    let out = gradient.launch((&mut u, &mut v, &mut w, &at, 6, &mut loss))?;
    let mut bits = part.gather(out.get(P::u)?)?.bits();
    bits.extend(part.gather(out.get(P::v)?)?.bits());
    bits.extend(vec![out.value(P::loss)?.value()].bits());
    Ok(bits)
}

fn volume(part: &Part) -> Result<Bits> {
    let device = &Device::cpu();
    type P = wave<f64>;
    let at = part.place3()?;
    let c = part.fill(device, |[x, y, z]| 0.3 + 0.01 * (x + 2 * y + 3 * z) as f64)?;
    let wavelet: Vec<f64> = (0..12).map(|t| (0.5 * t as f64).sin()).collect();
    let wavelet = device.array(&wavelet)?;
    let (mut p, mut q) = (part.zeros(device)?, part.zeros(device)?);
    let (mut loss, mut largest) = (device.zeros([])?, device.zeros([])?);
    let gradient = wave::<f64>().value_and_grad(P::loss).wrt(P::c).wrt(P::wavelet).compile(device)?;
    let out = gradient.launch((&mut p, &mut q, &c, &wavelet, &at, &mut loss, &mut largest))?;
    let mut bits = part.gather(out.get(P::c)?)?.bits();
    bits.extend(out.get(P::wavelet)?.to_vec().bits());
    bits.extend(vec![out.value(P::loss)?.value()].bits());
    Ok(bits)
}

/// No rank, all but the first, or the first alone gather something.
fn gather_nothing(wire: &mut dyn Wire) -> Result<()> {
    for (first, others) in [(0, 0), (0, 3), (2, 0)] {
        let expected: Vec<Vec<u8>> =
            (0..wire.ranks()).map(|rank| vec![7; if rank == 0 { first } else { others }]).collect();
        let found = wire.all_gather(&expected[wire.rank()]).map_err(ebbtide_grid::Error::Wire)?;
        if found != expected {
            return Err(ebbtide_grid::Error::Wire(format!("{found:?} was gathered, not {expected:?}")));
        }
    }
    Ok(())
}

/// What every rank says of a job that was stopped, said by the first one: `mpirun` ends all ranks as soon as one of them has
/// failed, perhaps before the others have said anything.
fn told_by_all(mpi: Option<&Mpi>, ran: Result<Vec<Bits>>) -> Result<Vec<Bits>> {
    let (Some(mpi), Err(error)) = (mpi, &ran) else { return ran };
    let mut wire = mpi.wire();
    let said = wire.all_gather(error.to_string().as_bytes()).map_err(ebbtide_grid::Error::Wire)?;
    if mpi.rank() == 0 {
        said.iter().for_each(|said| eprintln!("{}", String::from_utf8_lossy(said)));
    }
    // Nobody ends before it is said.
    wire.all_max(&mut [0]).map_err(ebbtide_grid::Error::Wire)?;
    Err(ebbtide_grid::Error::Part("the job was stopped".to_string()))
}

/// Part 2 fails before its first exchange.
fn failing(part: &Part) -> Result<Bits> {
    if part.number() == 2 {
        return Err(ebbtide_grid::Error::Part("no data for this part".to_string()));
    }
    let device = &Device::cpu();
    let mut u = part.zeros::<f64, 1>(device)?;
    ebbtide::exchange(&mut u)?;
    Ok(Bits::new())
}
