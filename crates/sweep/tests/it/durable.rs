//! Faults of the disk, one at a time, at every operation of a durable run.

use std::io::ErrorKind;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ebbtide_schedule::{Action, AnySchedule, Disk, Mixed, Multistage, Online, Options, Revolve, StoreAll};
use ebbtide_snapshot::fs::FileSystem;
use ebbtide_snapshot::{Budget, Error as SnapshotError, Survey};
use ebbtide_sweep::{Cancel, Durable, Error, Event, Run, Sweep};

use crate::faulty::{Fault, Faulty, Unsynced};
use crate::heat::Heat;

const CELLS: usize = 9;
const STEPS: u64 = 14;
const BUDGET: Budget = Budget { slots: 3, block: 1, disk_slots: 4, disk_cost: 1 };

/// Everything that a gradient consists of, bit by bit.
#[derive(Clone, Debug, PartialEq)]
pub struct Bits(Vec<u64>);

pub fn bits(heat: &Heat) -> Bits {
    let scalars = [heat.dnu, heat.objective];
    Bits(heat.du.iter().chain(&scalars).map(|x| x.to_bits()).collect())
}

pub fn uninterrupted(cells: usize, steps: u64) -> Bits {
    let mut heat = Heat::new(cells);
    Sweep::new(Revolve::new(steps, 4).unwrap()).run(&mut heat).unwrap();
    bits(&heat)
}

/// Two slots in memory and four on disk.
fn schedule() -> AnySchedule {
    let disk = Disk { slots: 4, write_cost: 0.5, read_cost: 0.5 };
    Multistage::new(STEPS, 2, disk).unwrap().into()
}

fn dir() -> &'static Path {
    Path::new("run")
}

fn create_and_run(fs: &Faulty) -> Result<Bits, Error<SnapshotError>> {
    let mut heat = Heat::new(CELLS);
    let fs = Arc::new(fs.clone());
    let mut run = Run::create_on(fs, dir(), &heat, schedule(), BUDGET)?.frontier_every(Duration::ZERO);
    run.resume(&mut heat)?;
    Ok(bits(&heat))
}

fn open_and_run(fs: &Faulty) -> Result<Bits, Error<SnapshotError>> {
    let mut heat = Heat::new(CELLS);
    let mut run = Run::open_on(Arc::new(fs.clone()), dir())?.frontier_every(Duration::ZERO);
    run.resume(&mut heat)?;
    Ok(bits(&heat))
}

/// What a person does with a run that was interrupted: go on, or begin if it had not begun.
fn go_on(fs: &Faulty) -> Result<Bits, Error<SnapshotError>> {
    match open_and_run(fs) {
        Err(Error::Durable(SnapshotError::NotARun { .. })) => create_and_run(fs),
        other => other,
    }
}

#[test]
fn an_uninterrupted_run_gives_the_plain_gradient_and_can_be_asked_again() {
    let fs = Faulty::new();
    let expected = uninterrupted(CELLS, STEPS);
    assert_eq!(create_and_run(&fs).unwrap(), expected);
    assert_eq!(open_and_run(&fs).unwrap(), expected);
    let left: Vec<_> = fs.files().into_iter().filter(|(path, _)| path.ends_with("safetensors")).collect();
    assert!(left.len() <= 1, "more than the gradient is left: {left:?}");
}

/// After a power cut every line of the journal is whole, and every file that it speaks of is there and complete.
fn check_commit_protocol(fs: &Faulty, operation: u64) {
    let fs: Arc<dyn FileSystem> = Arc::new(fs.fork());
    match Survey::read(&*fs, dir()) {
        Ok(survey) => assert_eq!(survey.verify(&fs), Vec::<String>::new(), "power cut at {operation}"),
        Err(error) => assert!(matches!(error, SnapshotError::NotARun { .. }), "{error}"),
    }
}

#[test]
fn every_fault_at_every_operation_ends_in_the_right_gradient_or_an_error() {
    let expected = uninterrupted(CELLS, STEPS);
    let faults = [
        (Fault::Error(ErrorKind::StorageFull), Unsynced::Kept),
        (Fault::Error(ErrorKind::Other), Unsynced::Kept),
        (Fault::Short, Unsynced::Kept),
        (Fault::PowerCut, Unsynced::Lost),
        (Fault::PowerCut, Unsynced::Torn),
        (Fault::PowerCut, Unsynced::Kept),
    ];
    for (fault, unsynced) in faults {
        let (mut operation, mut errors) = (0, 0);
        loop {
            let fs = Faulty::new();
            fs.fail_at(operation, fault);
            match create_and_run(&fs) {
                Ok(gradient) => assert_eq!(gradient, expected, "{fault:?} at {operation}"),
                Err(error) => {
                    errors += 1;
                    assert!(fs.fired(), "{fault:?} at {operation}: {error}");
                }
            }
            let fired = fs.fired();
            fs.reboot(unsynced);
            if unsynced == Unsynced::Lost {
                check_commit_protocol(&fs, operation);
            }
            let gradient = go_on(&fs).unwrap_or_else(|error| panic!("{fault:?} at {operation}: {error}"));
            assert_eq!(gradient, expected, "{fault:?} at {operation}, after the reboot");
            if !fired {
                let kinds = fs.kinds();
                for kind in
                    ["create", "write", "sync", "rename", "sync_dir", "remove", "append", "open", "read"]
                {
                    assert!(kinds.contains(kind), "no {kind} was tried");
                }
                break;
            }
            operation += 1;
        }
        assert!(operation > 60 && errors > 30, "only {operation} operations, {errors} errors");
    }
}

/// A run that was stopped in the middle, forward or backward.
fn stopped(after_actions: usize) -> Faulty {
    let fs = Faulty::new();
    let cancel = Cancel::new();
    let stop = cancel.clone();
    let mut heat = Heat::new(CELLS);
    let mut actions = 0;
    let mut run = Run::create_on(Arc::new(fs.clone()), dir(), &heat, schedule(), BUDGET)
        .unwrap()
        .frontier_every(Duration::ZERO)
        .cancel_with(cancel)
        .observe(move |_| {
            actions += 1;
            if actions == after_actions {
                stop.cancel();
            }
        });
    let error = run.resume(&mut heat).unwrap_err();
    assert!(matches!(error, Error::Cancelled { .. }), "{error}");
    drop(run);
    fs
}

#[test]
fn faults_while_a_run_is_taken_up_leave_it_as_it_was() {
    let expected = uninterrupted(CELLS, STEPS);
    for after in [6, 40] {
        let before = stopped(after);
        for fault in [Fault::Error(ErrorKind::Other), Fault::Short, Fault::PowerCut] {
            for operation in 0.. {
                let fs = before.fork();
                fs.fail_at(operation, fault);
                if let Ok(gradient) = open_and_run(&fs) {
                    assert_eq!(gradient, expected, "{fault:?} at {operation}");
                }
                let fired = fs.fired();
                fs.reboot(Unsynced::Lost);
                assert_eq!(
                    open_and_run(&fs).unwrap(),
                    expected,
                    "{fault:?} at {operation}, after the reboot"
                );
                if !fired {
                    assert!(operation > 30);
                    break;
                }
            }
        }
    }
}

#[test]
fn every_flipped_byte_ends_in_the_right_gradient_or_a_precise_error() {
    let expected = uninterrupted(CELLS, STEPS);
    let mut refused = 0;
    for after in [6, 40] {
        let before = stopped(after);
        for (file, size) in before.files() {
            let name = file.file_name().unwrap().to_string_lossy().into_owned();
            // Snapshots are long and mostly padding: a sample will do. The manifest is the same in both runs.
            let stride = match name.as_str() {
                "manifest.json" if after > 6 => continue,
                name if name.ends_with("safetensors") => 23,
                _ => 1,
            };
            for byte in (0..size).step_by(stride) {
                let fs = before.fork();
                fs.flip(&file, byte, 1 << (byte % 8));
                match open_and_run(&fs) {
                    Ok(gradient) => assert_eq!(gradient, expected, "byte {byte} of {name}"),
                    Err(Error::Durable(error @ SnapshotError::Damaged { .. })) => {
                        refused += 1;
                        assert_eq!(name, "manifest.json", "byte {byte}: {error}");
                        assert!(error.to_string().contains("manifest.json is damaged"), "{error}");
                    }
                    Err(error) => panic!("byte {byte} of {name}: {error}"),
                }
            }
        }
    }
    assert!(refused > 300, "damage of the manifest went unnoticed");
}

#[test]
fn a_finished_run_with_a_damaged_gradient_computes_it_again() {
    let expected = uninterrupted(CELLS, STEPS);
    let fs = Faulty::new();
    create_and_run(&fs).unwrap();
    let (gradient, size) = fs
        .files()
        .into_iter()
        .find(|(path, _)| path.extension().is_some_and(|e| e == "safetensors"))
        .unwrap();
    fs.flip(&gradient, size - 3, 0x10);
    let mut heat = Heat::new(CELLS);
    let mut run = Run::open_on(Arc::new(fs.clone()), dir()).unwrap();
    let counters = run.resume(&mut heat).unwrap();
    assert_eq!(bits(&heat), expected);
    assert_eq!(counters.reversed, STEPS);
    assert_eq!(run.damage().len(), 2);
    assert!(run.damage()[0].contains("checksum of array"), "{:?}", run.damage());
    assert!(run.damage()[1].contains("starts again from its beginning"), "{:?}", run.damage());
}

#[test]
fn another_program_or_other_inputs_are_refused_by_name() {
    let fs = stopped(20);
    let refuse = |heat: &mut Heat| {
        let mut run = Run::open_on(Arc::new(fs.clone()), dir()).unwrap();
        match run.resume(heat) {
            Err(Error::Durable(error @ SnapshotError::Differs { .. })) => error.to_string(),
            other => panic!("{other:?}"),
        }
    };
    let mut heat = Heat::new(CELLS);
    heat.nu = 0.2;
    assert_eq!(refuse(&mut heat), "run belongs to another run: input `nu` was `0.1` and is now `0.2`");
    let mut heat = Heat::new(CELLS);
    heat.target[2] += 1.0;
    assert!(refuse(&mut heat).contains("input `target` was `f64[9], hash"));
    let mut heat = Heat::new(CELLS);
    heat.u[0] += 1e-14;
    assert!(refuse(&mut heat).contains("input `initial u` was"));
    assert!(refuse(&mut Heat::new(CELLS + 1)).contains("`f64[10], hash"));
    assert_eq!(open_and_run(&fs).unwrap(), uninterrupted(CELLS, STEPS), "the refusals spoiled the run");
}

#[test]
fn two_owners_of_one_run_are_refused() {
    let fs = stopped(20);
    let _first = Run::open_on(Arc::new(fs.clone()), dir()).unwrap();
    let second = Run::open_on(Arc::new(fs.clone()), dir());
    assert!(matches!(second, Err(SnapshotError::Busy { .. })));
}

#[test]
fn a_new_run_does_not_go_over_an_old_one() {
    let fs = stopped(20);
    let heat = Heat::new(CELLS);
    let result = Run::create_on(Arc::new(fs.clone()), dir(), &heat, schedule(), BUDGET);
    assert!(matches!(result, Err(Error::Durable(SnapshotError::NotEmpty { .. }))));
    assert_eq!(open_and_run(&fs).unwrap(), uninterrupted(CELLS, STEPS));
}

#[test]
fn an_error_in_the_background_stops_the_run_and_the_same_run_goes_on() {
    let expected = uninterrupted(CELLS, STEPS);
    let mut failures = 0;
    for operation in 20..60 {
        let fs = Faulty::new();
        let mut heat = Heat::new(CELLS);
        let mut run = Run::create_on(Arc::new(fs.clone()), dir(), &heat, schedule(), BUDGET)
            .unwrap()
            .frontier_every(Duration::ZERO);
        fs.fail_at(operation, Fault::Error(ErrorKind::StorageFull));
        if run.resume(&mut heat).is_err() {
            failures += 1;
            run.resume(&mut heat).unwrap();
        }
        assert_eq!(bits(&heat), expected, "operation {operation}");
    }
    assert!(failures > 10);
}

/// Heat that stops by itself.
struct Cooling(Heat, u64);

mod cooling {
    use std::ops::Range;

    use ebbtide_snapshot::{Error, State};
    use ebbtide_sweep::{Durable, Stepper};

    use super::Cooling;
    use crate::support::in_the_model_within;

    impl Stepper for Cooling {
        type State = State;
        type Error = Error;

        fn advance(&mut self, steps: Range<u64>) -> Result<(), Error> {
            self.0.advance(steps)
        }
        fn advance_online(&mut self, steps: Range<u64>) -> Result<u64, Error> {
            let end = steps.end.min(self.1);
            self.0.advance(steps.start..end)?;
            Ok(end)
        }
        in_the_model_within!(run);
    }

    impl Durable for Cooling {
        in_the_model_within!(keep);
    }
}

/// Runs until it is stopped after a number of actions, again and again, each time as a new process would.
fn with_stops<T: Durable<Error = SnapshotError>>(
    fs: &Faulty,
    every: usize,
    schedule: AnySchedule,
    new: impl Fn() -> T,
) -> (T, usize) {
    let mut stops = 0;
    let budget = match schedule.kind() {
        "multistage" => BUDGET,
        _ => Budget { disk_slots: 0, ..BUDGET },
    };
    loop {
        let mut stepper = new();
        let run = match stops {
            0 => Run::create_on(Arc::new(fs.clone()), dir(), &stepper, schedule.clone(), budget).unwrap(),
            _ => Run::open_on(Arc::new(fs.clone()), dir()).unwrap(),
        };
        let (cancel, mut actions) = (Cancel::new(), 0);
        let stop = cancel.clone();
        let mut run = run.frontier_every(Duration::ZERO).cancel_with(cancel).observe(move |_| {
            actions += 1;
            if actions == every {
                stop.cancel();
            }
        });
        match run.resume(&mut stepper) {
            Ok(_) => return (stepper, stops),
            Err(Error::Cancelled { .. }) => stops += 1,
            Err(error) => panic!("{error}"),
        }
        assert!(stops < 500, "no progress");
    }
}

#[test]
fn a_run_that_is_stopped_over_and_over_gives_the_same_bits() {
    let expected = uninterrupted(CELLS, STEPS);
    let mut total = 0;
    for every in 4..30 {
        let memory_alone = Revolve::new(STEPS, 3).unwrap();
        for schedule in [schedule(), memory_alone.into(), StoreAll::new(STEPS).unwrap().into()] {
            let name = format!("{}, stopped every {every} actions", schedule.kind());
            let (heat, stops) = with_stops(&Faulty::new(), every, schedule, || Heat::new(CELLS));
            assert_eq!(bits(&heat), expected, "{name}");
            total += stops;
        }
    }
    assert!(total > 100, "only {total} stops");
}

#[test]
fn a_run_of_unknown_length_survives_stops_too() {
    let expected = uninterrupted(CELLS, STEPS);
    for every in 4..30 {
        let online = Online::new(3).unwrap();
        let (cooling, _) =
            with_stops(&Faulty::new(), every, online.into(), || Cooling(Heat::new(CELLS), STEPS));
        assert_eq!(bits(&cooling.0), expected, "stopped every {every} actions");
    }
}

#[test]
fn a_run_that_could_not_be_taken_up_is_not_begun_anew_with_a_spoilt_stepper() {
    let fs = Faulty::new();
    let online = Online::new(3).unwrap();
    let budget = Budget { disk_slots: 0, ..BUDGET };
    let cancel = Cancel::new();
    let mut cooling = Cooling(Heat::new(CELLS), STEPS);
    let run = Run::create_on(Arc::new(fs.clone()), dir(), &cooling, online, budget).unwrap();
    let (stop, mut actions) = (cancel.clone(), 0);
    let mut run = run.frontier_every(Duration::ZERO).cancel_with(cancel.clone()).observe(move |_| {
        actions += 1;
        if actions == 9 {
            stop.cancel();
        }
    });
    assert!(matches!(run.resume(&mut cooling), Err(Error::Cancelled { .. })));
    drop(run);

    // Taking it up means to look for the end of the loop first; that is stopped too.
    let mut run = Run::open_on(Arc::new(fs.clone()), dir()).unwrap().cancel_with(cancel.clone());
    let mut cooling = Cooling(Heat::new(CELLS), STEPS);
    assert!(matches!(run.resume(&mut cooling), Err(Error::Cancelled { .. })));
    cancel.reset();
    let mut fresh = Cooling(Heat::new(CELLS), STEPS);
    assert!(matches!(run.resume(&mut fresh), Err(Error::TakenUp)));
    drop(run);
    let mut run = Run::open_on(Arc::new(fs.clone()), dir()).unwrap();
    run.resume(&mut fresh).unwrap();
    assert_eq!(bits(&fresh.0), uninterrupted(CELLS, STEPS));
}

/// States in memory and steps on the tape: the most of each at any time.
fn peaks(run: Run, stop_after: Option<usize>) -> (usize, u64) {
    let cancel = Cancel::new();
    let (stop, most) = (cancel.clone(), Arc::new(Mutex::new((0, 0))));
    let (seen, mut tape, mut actions) = (Arc::clone(&most), 0, 0);
    let mut run = run.cancel_with(cancel).observe(move |progress| {
        match progress.event {
            Event::Did(Action::Record { from, to }) => tape += to - from,
            Event::Did(Action::Reverse { from, to }) => tape -= to - from,
            _ => {}
        }
        let mut most = seen.lock().unwrap();
        *most = (progress.counters.memory.peak_slots, most.1.max(tape));
        actions += 1;
        if Some(actions) == stop_after {
            stop.cancel();
        }
    });
    let mut cooling = Cooling(Heat::new(CELLS), 200);
    match (run.resume(&mut cooling), stop_after) {
        (Ok(_), None) => assert_eq!(bits(&cooling.0), uninterrupted(CELLS, 200)),
        (Err(Error::Cancelled { .. }), Some(_)) => {}
        (other, _) => panic!("{other:?}"),
    }
    *most.lock().unwrap()
}

#[test]
fn a_run_that_is_taken_up_keeps_within_what_it_began_with() {
    let blocks = |block| Options::new().block(block);
    let schedules: [(AnySchedule, usize, u64); 5] = [
        (Online::new(2).unwrap().into(), 2, 1),
        (Online::with(3, blocks(4)).unwrap().into(), 3, 4),
        (Mixed::new(200, 5).unwrap().into(), 5, 1),
        (Mixed::with(200, 5, blocks(4)).unwrap().into(), 5, 4),
        (Revolve::with(200, 3, blocks(2)).unwrap().into(), 3, 2),
    ];
    for (schedule, slots, block) in schedules {
        for stop_after in [12, 60, 120] {
            let folder = tempfile::tempdir().unwrap();
            let dir = folder.path().join("run");
            let begun = Run::create(&dir, &Cooling(Heat::new(CELLS), 200), schedule.clone()).unwrap();
            let name = format!("{}, stopped after {stop_after}", schedule.kind());
            peaks(begun, Some(stop_after));
            let (states, tape) = peaks(Run::open(&dir).unwrap(), None);
            assert!(states <= slots, "{name}: {states} states");
            assert_eq!(tape, block, "{name}: the tape");
        }
    }
}
