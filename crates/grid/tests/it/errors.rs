//! What stops one part stops all, with the same status.

use ebbtide::ir::parts::{Cause, Stop};
use ebbtide::prelude::*;
use ebbtide_grid::{Channels, Error, Grid, Part, Place1, Result, Team};

use crate::problems::{burgers, on_ranks};

fn line(parts: usize) -> Grid {
    Grid::new(&[4 * parts]).and_then(|g| g.even(&[parts])).and_then(|g| g.halo(1)).expect("a grid")
}

/// Runs on two ranks; all ranks must fail with the same status.
fn fails<R: Send>(grid: &Grid, work: impl Fn(&Part) -> Result<R> + Sync) -> Stop {
    let stops: Vec<Stop> = std::thread::scope(|scope| {
        let work = &work;
        let run = |wire: Channels| scope.spawn(move || Team::over(grid, Box::new(wire)).run(work));
        let running: Vec<_> = Channels::ranks(2).into_iter().map(run).collect();
        let stop = |outcome: Result<Vec<R>>| match outcome {
            Err(Error::Engine(ebbtide::Error::Part(stop))) => stop,
            Err(other) => panic!("another error: {other}"),
            Ok(_) => panic!("it ran"),
        };
        running.into_iter().map(|rank| stop(rank.join().expect("no panic"))).collect()
    });
    assert!(stops.iter().all(|stop| *stop == stops[0]), "{stops:?}");
    stops[0].clone()
}

/// Every part's own launches must fail with the same status too.
fn stop_of(outcome: ebbtide::Result<impl Sized>) -> Result<Stop> {
    match outcome {
        Err(ebbtide::Error::Part(stop)) => Ok(stop),
        Err(other) => Err(Error::Engine(other)),
        Ok(_) => Err(Error::Part("it ran".to_string())),
    }
}

#[program]
fn steps(u: &mut Array1<f64>, at: &Place1, count: usize, extra: usize) {
    for _t in 0..count {
        exchange(u);
    }
    if extra == 1 {
        exchange(u);
    }
    all_sum(u);
}

#[test]
fn parts_that_do_not_do_the_same_are_an_error_on_all() {
    let device = Device::cpu();
    let run = steps().compile(&device).expect("it compiles");
    for (count, extra) in [(4, 0), (3, 1)] {
        let stop = fails(&line(3), |part| {
            let odd = part.number() == 2;
            let mut u = part.zeros(&device)?;
            let args = if odd { (count, extra) } else { (3, 0) };
            Ok(run.launch((&mut u, &part.place1()?, args.0, args.1))?)
        });
        assert_eq!((stop.part, stop.cause), (2, Cause::Disagreed), "{stop}");
        assert!(stop.message.contains("all_sum") && stop.message.contains("exchange"), "{stop}");
    }
}

#[test]
fn a_team_goes_on_after_a_status_that_all_have_seen() {
    let device = Device::cpu();
    let run = steps().compile(&device).expect("it compiles");
    let ran = Team::new(&line(3)).run(|part| {
        let mut u = part.zeros(&device)?;
        let count = if part.number() == 1 { 5 } else { 3 };
        let stop = stop_of(run.launch((&mut u, &part.place1()?, count, 0)))?;
        assert_eq!(stop.cause, Cause::Disagreed);
        let _done = run.launch((&mut u, &part.place1()?, 3, 0))?;
        Ok(u.to_vec())
    });
    assert_eq!(ran.expect("it runs").len(), 3);
}

#[operation]
fn refuse(x: &mut Array1<f64>, number: usize) -> Result<(), String> {
    if number == 2 { Err(format!("element 0 is {}", x[[0]])) } else { Ok(()) }
}

#[program]
fn refusing(u: &mut Array1<f64>, at: &Place1, number: usize) {
    for _t in 0..3 {
        exchange(u);
        refuse(u, number);
    }
}

#[test]
fn a_fault_of_one_part_reaches_all() {
    let device = Device::cpu();
    let run = refusing().compile(&device).expect("it compiles");
    let stop = fails(&line(4), |part| {
        let mut u = part.zeros(&device)?;
        let status = run.launch((&mut u, &part.place1()?, part.number()));
        let stop = stop_of(status)?;
        assert_eq!((stop.part, stop.cause), (2, Cause::Failed));
        Err::<(), Error>(Error::Engine(ebbtide::Error::Part(stop)))
    });
    assert_eq!((stop.part, stop.cause), (2, Cause::Failed));
    assert!(stop.message.contains("element 0 is 0"), "{stop}");
}

#[test]
fn a_part_that_returns_or_panics_stops_the_others() {
    let device = Device::cpu();
    let run = steps().compile(&device).expect("it compiles");
    let stop = fails(&line(3), |part| {
        if part.number() == 1 {
            return Err(Error::Part("no data".to_string()));
        }
        let mut u = part.zeros(&device)?;
        Ok(run.launch((&mut u, &part.place1()?, 3, 0))?)
    });
    assert_eq!(stop.part, 1, "{stop}");
    assert!(stop.message.contains("no data"), "{stop}");
    let stop = fails(&line(3), |part| {
        assert_ne!(part.number(), 2, "on purpose");
        let mut u = part.zeros(&device)?;
        Ok(run.launch((&mut u, &part.place1()?, 3, 0))?)
    });
    assert_eq!(stop.part, 2, "{stop}");
}

#[test]
fn a_cancellation_of_one_part_reaches_all() {
    let device = Device::cpu();
    let run = steps().compile(&device).expect("it compiles");
    let stop = fails(&line(3), |part| {
        let mut u = part.zeros(&device)?;
        let cancel = Cancel::new();
        if part.number() == 1 {
            cancel.cancel();
        }
        Ok(run.cancel_with(&cancel).launch((&mut u, &part.place1()?, 1_000_000_000, 0))?)
    });
    assert_eq!((stop.part, stop.cause), (1, Cause::Cancelled), "{stop}");
}

#[derive(Label)]
enum At {
    Middle,
}

#[program]
fn yielding(u: &mut Array1<f64>, flag: &mut Array0<i32>, together: usize) {
    for _t in 0..2 {
        exchange(u);
        #[checkpoint(At::Middle, yield_on = flag)]
        {
            for i in par(0..u.len()) {
                u[i] += 1.0;
            }
            if together == 1 {
                all_max(flag);
            }
        }
    }
    exchange(u);
}

#[test]
fn a_yield_of_one_part_is_a_status_of_all_and_a_yield_of_all_is_resumed() {
    let device = Device::cpu();
    let run = yielding().compile(&device).expect("it compiles");
    let stop = fails(&line(3), |part| {
        let mut u = part.zeros(&device)?;
        let mut flag = device.scalar(i32::from(part.number() == 1))?;
        Ok(run.launch((&mut u, &mut flag, 0))?)
    });
    assert_eq!((stop.part, stop.cause), (1, Cause::Yielded), "{stop}");
    assert!(stop.to_string().contains("all_max"), "{stop}");
    let ran = Team::new(&line(3)).run(|part| {
        let mut u = part.zeros(&device)?;
        let mut flag = device.scalar(i32::from(part.number() == 1))?;
        let Status::Yielded(at) = run.launch((&mut u, &mut flag, 1))? else {
            return Err(Error::Part("it did not yield".to_string()));
        };
        flag.fill(0)?;
        assert_eq!(run.resume(&at, (&mut u, &mut flag, 1))?, Status::Done);
        Ok(u.to_vec())
    });
    assert_eq!(ran.expect("it runs").len(), 3);
}

#[test]
fn the_value_of_a_gradient_is_one_that_all_parts_share() {
    #[program]
    fn lonely(u: &mut Array1<f64>, loss: &mut Array0<f64>) {
        exchange(u);
        for i in par(0..u.len()) {
            loss[[]] += u[i] * u[i];
        }
    }
    let device = Device::cpu();
    let gradient = lonely().grad(lonely::loss).wrt(lonely::u).compile(&device).expect("it compiles");
    let stop = fails(&line(3), |part| {
        let mut u = part.fill(&device, |[x]| x as f64)?;
        let mut loss = device.zeros([])?;
        Ok(gradient.launch((&mut u, &mut loss))?.get(lonely::u)?.to_vec())
    });
    assert!(stop.message.contains("all_sum"), "{stop}");
}

#[test]
fn a_scatter_into_halos_without_exchange_add_is_a_build_error() {
    #[program]
    fn lost(u: &mut Array1<f64>, to: &Array1<i32>) {
        for _t in 0..3 {
            exchange(u);
            for i in par(0..to.len()) {
                u[to[i] as usize] += 1.0;
            }
        }
    }
    #[program]
    fn found(u: &mut Array1<f64>, to: &Array1<i32>) {
        for _t in 0..3 {
            exchange(u);
            for i in par(0..to.len()) {
                u[to[i] as usize] += 1.0;
            }
            exchange_add(u);
        }
    }
    let text = lost().ir().expect_err("it is not lawful").to_string();
    assert!(text.contains("exchange_add(u)") && text.contains("law 15"), "{text}");
    assert!(found().ir().is_ok());
}

#[test]
fn arrays_of_other_shapes_and_launches_outside_of_a_team_are_errors() {
    let device = Device::cpu();
    let run = steps().compile(&device).expect("it compiles");
    let at = Place1 { begin: 0, count: 1, first: 1, extent: 1 };
    let mut u = device.zeros([3]).expect("an array");
    let text = run.launch((&mut u, &at, 1, 0)).expect_err("there is no grid").to_string();
    assert!(text.contains("Team::run"), "{text}");
    let stop = fails(&line(3), |part| {
        let mut u = if part.number() == 1 { device.zeros([5])? } else { part.zeros(&device)? };
        Ok(run.launch((&mut u, &part.place1()?, 1, 0))?)
    });
    assert!(stop.part == 1 && stop.message.contains("[6]"), "{stop}");
    let many = Channels::ranks(4).remove(0);
    let text = Team::over(&line(3), Box::new(many)).run(|_| Ok(())).expect_err("too many").to_string();
    assert!(text.contains("4 processes cannot share 3 parts"), "{text}");
}

#[test]
fn grids_that_cannot_be_are_refused() {
    for (grid, says) in [
        (Grid::new(&[]), "one to three dimensions"),
        (Grid::new(&[4, 0]), "one to three dimensions"),
        (Grid::new(&[4]).and_then(|g| g.even(&[5])), "cannot be cut into 5"),
        (Grid::new(&[4]).and_then(|g| g.cut(0, &[2, 3])), "no cut of 4"),
        (Grid::new(&[4]).and_then(|g| g.halo(5)), "wider than the grid"),
        (Grid::new(&[4]).and_then(|g| g.periodic(&[true, true])), "2 directions"),
    ] {
        let text = grid.expect_err("it cannot be").to_string();
        assert!(text.contains(says), "{text}");
    }
}

#[test]
fn the_least_memory_of_all_parts_decides() {
    let device = Device::cpu();
    let gradient = burgers().grad(burgers::loss).wrt(burgers::u).compile(&device).expect("it compiles");
    let run = |memory: Box<dyn Fn(usize) -> Bytes + Sync>| {
        let grid = Grid::new(&[48]).and_then(|g| g.cut(0, &[5, 17, 1, 11, 14])).and_then(|g| g.halo(1));
        let grid = grid.and_then(|g| g.periodic(&[true])).expect("a grid");
        let ran = Team::new(&grid).run(|part| {
            let compiled = gradient.with_memory(memory(part.number()));
            let mut u = part.fill(&device, |[x]| x as f64 * 0.01)?;
            let (mut next, mut loss) = (part.zeros(&device)?, device.zeros([])?);
            let out = compiled.launch((&mut u, &mut next, &part.place1()?, 0.3, 200, &mut loss))?;
            Ok(out.ran())
        });
        let ran = ran.expect("it runs");
        assert!(ran.iter().all(|own| *own == ran[0]), "{ran:?}");
        ran[0]
    };
    let poor = run(Box::new(|_| Bytes::kib(24)));
    let rich = run(Box::new(|_| Bytes::mib(64)));
    let mixed = run(Box::new(|part| if part == 3 { Bytes::kib(24) } else { Bytes::mib(64) }));
    assert!(poor.advanced > rich.advanced);
    assert_eq!(mixed, poor);
}

#[test]
fn parts_are_saved_and_loaded_and_a_missing_one_is_named() {
    let device = Device::cpu();
    let dir = tempfile::tempdir().expect("a directory");
    let (grid, other) = (line(3), line(4));
    Team::new(&grid)
        .run(|part| part.save(dir.path(), &[("u", &part.fill(&device, |[x]| x as f64)?)]))
        .expect("it saves");
    let load = |part: &Part| {
        let mut u = part.zeros::<f64, 1>(&device)?;
        part.load(dir.path(), &mut [("u", &mut u)])?;
        part.gather(&u)
    };
    let loaded = Team::new(&grid).run(load).expect("it loads");
    assert_eq!(loaded[0], (0..12).map(|x| x as f64).collect::<Vec<_>>());
    assert_eq!([2, 3].map(|ranks| on_ranks(&grid, ranks, load)), [loaded[0].clone(), loaded[0].clone()]);
    let text = Team::new(&other).run(load).expect_err("another grid").to_string();
    assert!(text.contains("another grid"), "{text}");
    std::fs::remove_file(dir.path().join("part-1.safetensors")).expect("it is there");
    let text = Team::new(&grid).run(load).expect_err("a part is missing").to_string();
    assert!(text.contains("part-1.safetensors"), "{text}");
}
