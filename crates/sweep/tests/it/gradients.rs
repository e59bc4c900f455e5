use ebbtide_schedule::{
    AnySchedule, Disk as DiskSlots, Mixed, Multistage, Online, Options, Periodic, Revolve, StoreAll, Tier,
    revolve,
};
use ebbtide_snapshot::Disk;
use ebbtide_sweep::{Stepper, Sweep};

use crate::heat::Heat;
use crate::lorenz::Lorenz;
use crate::support::Chain;

#[test]
fn revolve_gives_the_plain_gradient_with_the_least_work_on_the_whole_grid() {
    for steps in 0..40 {
        let plain = Chain::plain_gradient(steps);
        for slots in 1..steps as usize + 2 {
            let mut chain = Chain::new();
            let counters = Sweep::new(Revolve::new(steps, slots).unwrap()).run(&mut chain).unwrap();
            assert_eq!(chain.dx.to_bits(), plain.to_bits(), "{steps} steps, {slots} slots");
            assert_eq!(Some(counters.advanced.into()), revolve::advances(steps, slots));
            assert_eq!((counters.recorded, counters.reversed), (steps, steps));
            assert_eq!(chain.executed, counters.advanced + counters.recorded);
            assert!(counters.memory.peak_slots <= slots);
            assert!(chain.tape.is_empty());
        }
    }
}

const SOME_DISK: DiskSlots = DiskSlots { slots: 5, write_cost: 1.0, read_cost: 0.5 };

#[test]
fn every_schedule_gives_the_same_bits() {
    for steps in [0, 1, 2, 7, 40, 131] {
        let plain = Chain::plain_gradient(steps);
        let block = |block| Options::new().block(block);
        let mut schedules: Vec<AnySchedule> = vec![
            StoreAll::new(steps).unwrap().into(),
            Periodic::sqrt(steps).unwrap().into(),
            Periodic::new(steps, 7).unwrap().into(),
            Revolve::with(steps, 4, block(3)).unwrap().into(),
            Revolve::with(steps, 4, block(5).primal_first()).unwrap().into(),
            Mixed::with(steps, 5, block(2).primal_first()).unwrap().into(),
        ];
        for slots in 1..8 {
            schedules.push(Revolve::with(steps, slots, Options::new().primal_first()).unwrap().into());
            schedules.push(Mixed::new(steps, slots).unwrap().into());
            schedules.push(Multistage::new(steps, slots, SOME_DISK).unwrap().into());
            schedules.push(Online::new(slots).unwrap().into());
            schedules.push(Online::with(slots, block(4)).unwrap().into());
        }
        for schedule in schedules {
            let name = schedule.to_string();
            let mut chain = Chain { ends_at: steps, ..Chain::new() };
            Sweep::new(schedule).run(&mut chain).unwrap();
            assert_eq!(chain.dx.to_bits(), plain.to_bits(), "{name}, {steps} steps");
        }
    }
}

#[test]
fn a_loop_of_unknown_length_stops_where_it_says() {
    for ends_at in 0..50 {
        let mut chain = Chain { ends_at, ..Chain::new() };
        let counters = Sweep::new(Online::new(5).unwrap()).run(&mut chain).unwrap();
        assert_eq!(counters.reversed, ends_at);
        assert_eq!(chain.dx.to_bits(), Chain::plain_gradient(ends_at).to_bits());
    }
}

#[test]
fn counters_tell_bytes_and_slots() {
    let mut chain = Chain::new();
    let counters =
        Sweep::new(Revolve::with(100, 6, Options::new().block(4)).unwrap()).run(&mut chain).unwrap();
    assert_eq!(counters.memory.peak_slots, 6);
    assert_eq!(counters.memory.peak_bytes, 6 * 8);
    assert_eq!(counters.peak_tape_bytes, 4 * 16);
    assert!(counters.memory.stores > 6 && counters.memory.loads > 6);
    assert_eq!(counters.disk, Default::default());
    assert_eq!(counters.repairs, 0);
}

#[test]
fn without_slots_only_what_is_recorded_at_once_can_be_reversed() {
    assert!(Revolve::new(2, 0).is_err());
    for (steps, block) in [(0, 1), (1, 1), (4, 4)] {
        let mut chain = Chain::new();
        let schedule = Revolve::with(steps, 0, Options::new().block(block)).unwrap();
        let counters = Sweep::new(schedule).run(&mut chain).unwrap();
        assert_eq!((counters.advanced, counters.memory.stores), (0, 0));
        assert_eq!(chain.dx.to_bits(), Chain::plain_gradient(steps).to_bits());
    }
}

#[test]
fn a_billion_steps_start_at_once_and_can_be_stopped() {
    let mut sweep = Sweep::new(Revolve::new(1_000_000_000, 100).unwrap());
    let mut chain = Chain::new();
    for _ in 0..12 {
        assert!(sweep.step(&mut chain).unwrap());
    }
    // A store, then 11 portions of the first advance, each at least one step and at most twice as long as the last.
    assert!(sweep.live().is_some_and(|step| (11..1 << 11).contains(&step)), "{:?}", sweep.live());
}

#[test]
fn long_runs_are_nothing_special() {
    let mut chain = Chain::new();
    let counters = Sweep::new(Revolve::new(300_000, 1000).unwrap()).run(&mut chain).unwrap();
    assert_eq!(counters.reversed, 300_000);
}

#[test]
fn the_heat_gradient_agrees_with_differences_and_with_its_disk_twin() {
    let (cells, steps) = (24, 60);
    let gradient = |sweep: Sweep<Revolve, _>| {
        let (mut sweep, mut heat) = (sweep, Heat::new(cells));
        let counters = sweep.run(&mut heat).unwrap();
        (heat.du, heat.dnu, heat.objective, counters)
    };
    let (du, dnu, _, _) = gradient(Sweep::new(Revolve::new(steps, 5).unwrap()));
    let objective = |cell: usize, shift: f64, nu_shift: f64| {
        let mut heat = Heat::new(cells);
        heat.u[cell] += shift;
        heat.nu += nu_shift;
        heat.advance(0..steps).unwrap();
        heat.turn().unwrap();
        heat.objective
    };
    for (cell, du) in du.iter().enumerate() {
        let difference = (objective(cell, 1e-6, 0.0) - objective(cell, -1e-6, 0.0)) / 2e-6;
        assert!((du - difference).abs() < 1e-8, "cell {cell}: {du} against {difference}");
    }
    let difference = (objective(0, 0.0, 1e-6) - objective(0, 0.0, -1e-6)) / 2e-6;
    assert!((dnu - difference).abs() < 1e-6 * difference.abs(), "{dnu} against {difference}");

    // The same schedule with its slots on disk.
    let dir = tempfile::tempdir().unwrap();
    let disk = Disk::scratch(dir.path()).unwrap();
    let twin = gradient(Sweep::new(Revolve::new(steps, 5).unwrap()).with_place(Tier::Memory, disk));
    assert_eq!((&twin.0, twin.1.to_bits()), (&du, dnu.to_bits()));
    // And in both tiers, with prefetching.
    let disk = Disk::scratch(dir.path()).unwrap();
    let mut heat = Heat::new(cells);
    let schedule = Multistage::new(steps, 2, SOME_DISK).unwrap();
    let counters = Sweep::new(schedule).with_place(Tier::Disk, disk).run(&mut heat).unwrap();
    assert_eq!((heat.du, heat.dnu.to_bits()), (du, dnu.to_bits()));
    assert!(counters.disk.stores >= 3 && counters.disk.loads >= 3, "{counters:?}");
    assert!(counters.memory.peak_slots <= 2 && counters.disk.peak_slots <= 5);
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0, "the scratch directory stays");
}

#[test]
fn the_lorenz_gradient_agrees_with_differences() {
    let steps = 100;
    let objective = |axis: usize, shift: f64, parameter: f64| {
        let mut lorenz = Lorenz::new([1.0, 2.0, 15.0]);
        lorenz.x[axis] += shift;
        lorenz.parameters[axis] += parameter;
        let Ok(()) = lorenz.advance(0..steps);
        let Ok(()) = lorenz.turn();
        lorenz.objective
    };
    let mut lorenz = Lorenz::new([1.0, 2.0, 15.0]);
    Sweep::new(Revolve::new(steps, 4).unwrap()).run(&mut lorenz).unwrap();
    for axis in 0..3 {
        let dx = (objective(axis, 1e-6, 0.0) - objective(axis, -1e-6, 0.0)) / 2e-6;
        assert!((lorenz.dx[axis] - dx).abs() < 1e-6 * dx.abs(), "{} against {dx}", lorenz.dx[axis]);
        let dp = (objective(axis, 0.0, 1e-6) - objective(axis, 0.0, -1e-6)) / 2e-6;
        assert!((lorenz.dparameters[axis] - dp).abs() < 1e-6 * dp.abs());
    }
}
