//! Durable gradients of all parts together, each part on a disk of its own that forgets what was not synced.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use ebbtide::ir::parts::Cause;
use ebbtide::prelude::*;
use ebbtide_grid::{Channels, Error, Grid, Part, Result, Team};

use crate::faulty::{Fault, Faulty, Unsynced};
use crate::problems::{Bits, ToBits, burgers};

const STEPS: usize = 9;

struct Problem {
    device: Device,
    gradient: CompiledGrad<burgers>,
    grid: Grid,
    /// What an uninterrupted run gives.
    expected: Bits,
}

impl Problem {
    fn new(counts: &[usize], budget: Budget) -> Problem {
        let device = Device::cpu();
        let gradient = burgers().value_and_grad(burgers::loss).wrt(burgers::u).wrt(burgers::nu);
        let gradient = gradient.budget(budget).compile(&device).expect("it compiles");
        let grid = Grid::new(&[48]).and_then(|g| g.cut(0, counts)).and_then(|g| g.halo(1));
        let grid = grid.and_then(|g| g.periodic(&[true])).expect("a grid");
        let mut problem = Problem { device, gradient, grid, expected: Bits::new() };
        let plain = Team::new(&problem.grid).run(|part| problem.part(part, None));
        problem.expected = plain.expect("it runs").remove(0);
        problem
    }

    fn part(&self, part: &Part, disks: Option<&[Faulty]>) -> Result<Bits> {
        let (device, at) = (&self.device, part.place1()?);
        let u = part.fill(device, |[x]| (0.37 * x as f64).sin() + 0.2)?;
        let (next, loss) = (part.zeros(device)?, device.zeros([])?);
        let args = (&u, &next, &at, 0.3, STEPS, &loss);
        let out = match disks {
            None => self.gradient.launch(args)?,
            Some(disks) => {
                let disk = Arc::new(disks[part.number()].clone());
                self.gradient.launch_durable_on(disk, Path::new("/run"), Duration::ZERO, args)?
            }
        };
        let mut bits = part.gather(out.get(burgers::u)?)?.bits();
        bits.push(out.get(burgers::nu)?.to_bits());
        Ok(bits)
    }

    fn disks(&self) -> Vec<Faulty> {
        (0..self.grid.parts()).map(|_| Faulty::new()).collect()
    }

    /// Runs on so many ranks; all must end alike.
    fn run(&self, ranks: usize, disks: &[Faulty]) -> Result<Bits> {
        let mut ended: Vec<Result<Vec<Bits>>> = std::thread::scope(|scope| {
            let run = |wire: Channels| {
                scope.spawn(move || {
                    Team::over(&self.grid, Box::new(wire)).run(|part| self.part(part, Some(disks)))
                })
            };
            let running: Vec<_> = Channels::ranks(ranks).into_iter().map(run).collect();
            running.into_iter().map(|rank| rank.join().expect("no panic")).collect()
        });
        let texts: Vec<Option<String>> =
            ended.iter().map(|ended| ended.as_ref().err().map(|error| error.to_string())).collect();
        assert!(texts.iter().all(|text| *text == texts[0]), "{texts:?}");
        ended.remove(0).map(|mut bits| bits.remove(0))
    }
}

/// Pseudo-random numbers with a fixed seed (xorshift).
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) % limit
    }
}

const UNEVEN: [usize; 5] = [5, 17, 1, 11, 14];

#[test]
fn c65_a_durable_gradient_of_all_parts_has_the_bits_of_a_plain_one() {
    let problem = Problem::new(&[4; 12], Budget::Revolve { slots: 2, block: 1 });
    for ranks in [1, 3, 4] {
        let disks = problem.disks();
        assert_eq!(problem.run(ranks, &disks).expect("it runs"), problem.expected);
        // It has ended: the results are read, on another number of ranks too.
        assert_eq!(problem.run(2, &disks).expect("it reads"), problem.expected);
        assert!(disks[0].exists(Path::new("/run/parts.json")));
        for (part, disk) in disks.iter().enumerate() {
            // What the results supersede is gone.
            let snapshots =
                disk.files().into_iter().filter(|(name, _)| name.to_string_lossy().ends_with("safetensors"));
            assert_eq!(snapshots.count(), 1, "part {part}");
        }
    }
}

#[test]
fn c66_a_part_that_dies_at_any_moment_loses_nothing_that_was_committed() {
    let problem = Problem::new(&UNEVEN, Budget::Revolve { slots: 2, block: 1 });
    let usual: u64 = std::env::var("EBBTIDE_CASES").ok().and_then(|text| text.parse().ok()).unwrap_or(200);
    let mut random = Random(26);
    let (mut died, mut runs) = (0, 0);
    while died < usual {
        let disks = problem.disks();
        let mut lives = 0;
        loop {
            let (part, ranks) = (random.below(5) as usize, 1 + random.below(4) as usize);
            disks[part].fail_at(1 + random.below(120), Fault::PowerCut);
            let ended = problem.run(ranks, &disks);
            runs += 1;
            match ended {
                Ok(bits) => {
                    assert_eq!(bits, problem.expected, "after {lives} lives");
                    break;
                }
                Err(error) => {
                    assert!(disks[part].fired(), "{error}");
                    let text = error.to_string();
                    assert!(text.contains(&format!("part {part} ")), "part {part}: {text}");
                    (died, lives) = (died + 1, lives + 1);
                }
            }
            // The machine of that part comes up again; so do all others, in any state.
            for disk in &disks {
                disk.reboot([Unsynced::Lost, Unsynced::Torn, Unsynced::Kept][random.below(3) as usize]);
            }
        }
    }
    println!("{died} deaths in {runs} runs");
}

#[test]
fn a_part_that_is_missing_is_named_and_a_damaged_one_costs_one_frontier() {
    let problem = Problem::new(&UNEVEN, Budget::Revolve { slots: 2, block: 1 });
    let interrupted = || {
        let disks = problem.disks();
        disks[1].fail_at(200, Fault::PowerCut);
        problem.run(2, &disks).expect_err("it was cut off");
        disks.iter().for_each(|disk| disk.reboot(Unsynced::Kept));
        disks
    };
    let mut disks = interrupted();
    disks[3] = Faulty::new();
    let text = problem.run(3, &disks).expect_err("a part is missing").to_string();
    assert!(text.contains("part 3 has none of the frontiers") && text.contains("/run/part-3"), "{text}");
    // The newest frontier of one part is damaged: the one before will do, and there is always one that all have.
    let disks = interrupted();
    let newest =
        disks[2].files().into_iter().rfind(|(name, _)| name.to_string_lossy().ends_with("safetensors"));
    let (name, bytes) = newest.expect("it has frontiers");
    disks[2].flip(&name, bytes - 1, 1);
    match problem.run(4, &disks) {
        Ok(bits) => assert_eq!(bits, problem.expected),
        // Part 2 was ahead of the others, who had only the one that was damaged: then it is named.
        Err(error) => assert!(error.to_string().contains("part 2"), "{error}"),
    }
    let disks = interrupted();
    for (name, bytes) in disks[2].files() {
        if name.to_string_lossy().ends_with("safetensors") {
            disks[2].flip(&name, bytes - 1, 1);
        }
    }
    let text = problem.run(4, &disks).expect_err("a part is damaged").to_string();
    assert!(text.contains("part 2 has none") && text.contains("/run/part-2"), "{text}");
}

#[test]
fn a_run_of_another_cut_is_refused_untouched() {
    let problem = Problem::new(&UNEVEN, Budget::StoreAll);
    let other = Problem::new(&[5, 16, 2, 11, 14], Budget::StoreAll);
    let disks = problem.disks();
    problem.run(1, &disks).expect("it runs");
    let before: Vec<_> = disks.iter().map(Faulty::files).collect();
    let text = other.run(1, &disks).expect_err("another cut").to_string();
    assert!(text.contains("part"), "{text}");
    assert_eq!(before, disks.iter().map(Faulty::files).collect::<Vec<_>>());
    assert_eq!(problem.run(2, &disks).expect("it reads"), problem.expected);
}

#[test]
fn a_cancelled_run_of_all_parts_continues_on_another_number_of_ranks() {
    let problem = Problem::new(&UNEVEN, Budget::Revolve { slots: 2, block: 1 });
    let disks = problem.disks();
    let ended = Team::new(&problem.grid).run(|part| {
        let cancel = Cancel::new();
        if part.number() == 4 {
            cancel.cancel();
        }
        let (device, at) = (&problem.device, part.place1()?);
        let u = part.fill(device, |[x]| (0.37 * x as f64).sin() + 0.2)?;
        let (next, loss) = (part.zeros(device)?, device.zeros([])?);
        let disk = Arc::new(disks[part.number()].clone());
        let args = (&u, &next, &at, 0.3, STEPS, &loss);
        let gradient = problem.gradient.cancel_with(&cancel);
        gradient.launch_durable_on(disk, Path::new("/run"), Duration::from_secs(3600), args)?;
        Ok(())
    });
    match ended {
        Err(Error::Engine(ebbtide::Error::Part(stop))) => {
            assert_eq!((stop.part, stop.cause), (4, Cause::Cancelled), "{stop}");
        }
        other => panic!("{other:?}"),
    }
    assert!(disks.iter().all(|disk| {
        disk.files().iter().any(|(name, _)| name.to_string_lossy().ends_with("safetensors"))
    }));
    assert_eq!(problem.run(3, &disks).expect("it continues"), problem.expected);
}
