//! Every schedule × block × shape runs on the abstract machine.

use ebbtide_schedule::*;

use crate::support::{Random, cases, online_actions, options};

fn slot(tier: Tier, index: usize) -> Slot {
    Slot { tier, index }
}

#[test]
fn periodic_is_legal_and_its_totals_are_exact() {
    for n in 0..=40 {
        for period in 1..=n + 2 {
            for block in [1, 2, 3, period] {
                for options in options(block) {
                    let schedule = Periodic::with(n, period, options).unwrap();
                    let (slots, formula) = (schedule.slots(), schedule.totals());
                    let limits = Limits { memory_slots: slots, tape_steps: block, ..Limits::default() };
                    let counted = Machine::new(n).limits(limits).run(schedule).unwrap();
                    assert_eq!(counted, formula, "n={n} k={period} b={block} {options:?}");
                    if block >= period {
                        assert!(counted.advances <= u128::from(n));
                    }
                }
            }
        }
    }
}

#[test]
fn the_square_root_schedule_keeps_as_many_states_as_steps_in_a_period() {
    let totals = Machine::new(10_000).run(Periodic::sqrt(10_000).unwrap()).unwrap();
    assert_eq!((totals.memory.peak_slots, totals.peak_tape, totals.advances), (99, 100, 9900));
}

#[test]
fn store_all_runs_every_step_once_and_needs_no_slot() {
    for n in [0, 1, 2, 50] {
        let schedule = StoreAll::new(n).unwrap();
        let formula = schedule.totals();
        let limits = Limits { memory_slots: 0, ..Limits::default() };
        assert_eq!(Machine::new(n).limits(limits).run(schedule).unwrap(), formula);
        assert_eq!(formula.executions(), u128::from(n));
    }
}

#[test]
fn online_is_legal_whatever_the_length() {
    for n in 0..=60 {
        for s in 1..=8 {
            for block in [1, 2, 3, 7] {
                let mut schedule = Online::with(s, Options::new().block(block)).unwrap();
                let actions = online_actions(&mut schedule, n);
                assert_eq!(schedule.steps(), Some(n));
                let limits = Limits { memory_slots: s, tape_steps: block, ..Limits::default() };
                Machine::new(n).limits(limits).run(actions).unwrap();
            }
        }
    }
}

#[test]
fn online_executes_a_few_per_cent_more_than_the_optimum() {
    for (s, bound) in
        [(1, 1.0), (2, 1.12), (3, 1.07), (5, 1.05), (8, 1.05), (10, 1.05), (20, 1.05), (50, 1.05)]
    {
        for n in (1..400).chain([1000, 3000, 5000]) {
            let actions = online_actions(&mut Online::new(s).unwrap(), n);
            let online = Machine::new(n).run(actions).unwrap().executions();
            let best = Revolve::with(n, s, Options::new().primal_first()).unwrap().totals().executions();
            let loss = online as f64 / best as f64;
            assert!((1.0..=bound).contains(&loss), "n={n} s={s}: {loss}");
        }
    }
}

#[test]
fn online_refuses_an_end_that_it_has_passed() {
    let mut schedule = Online::new(3).unwrap();
    assert_eq!(schedule.by_ref().take(9).count(), 9);
    assert_eq!(schedule.steps(), None);
    assert!(matches!(schedule.end(1000), Err(Error::WrongEnd { announced: 1000, .. })));
    assert!(matches!(schedule.end(0), Err(Error::WrongEnd { announced: 0, .. })));
    assert_eq!(schedule.steps(), None);
}

#[test]
fn schedules_of_known_length_accept_only_that_end() {
    let mut schedule = Revolve::new(10, 3).unwrap();
    assert_eq!(schedule.end(10), Ok(()));
    assert_eq!(schedule.end(9), Err(Error::WrongEnd { announced: 9, first: 10, last: 10 }));
}

#[test]
fn replanning_over_any_survivors_is_legal_and_complete() {
    let mut random = Random(1);
    for _ in 0..cases(2000) {
        let n = random.below(50);
        let slots = 1 + random.below(6) as usize;
        let mut survivors = vec![(0, slot(Tier::Disk, 0))];
        for step in 1..=n {
            match random.below(8) {
                0 => survivors.push((step, slot(Tier::Disk, survivors.len()))),
                1 => {
                    let index = random.below(slots as u64) as usize;
                    if !survivors.iter().any(|&(_, used)| used == slot(Tier::Memory, index)) {
                        survivors.push((step, slot(Tier::Memory, index)));
                    }
                }
                _ => {}
            }
        }
        let block = 1 + random.below(4);
        for options in options(block) {
            for progress in [Progress::Forward, Progress::Reversed(random.below(n + 1))] {
                let (end, machine) = match progress {
                    Progress::Forward => (n, Machine::interrupted(n, n, &survivors).before_turn()),
                    Progress::Reversed(end) => (end, Machine::interrupted(n, end, &survivors)),
                };
                let limits = Limits { memory_slots: slots, tape_steps: block, ..Limits::default() };
                let rest = replan(n, &survivors, progress, slots, options).unwrap();
                let totals = machine.limits(limits).run(rest).unwrap();
                assert_eq!(totals.reversals, u128::from(end));
            }
        }
    }
}

#[test]
fn replanning_with_the_states_of_an_optimal_run_stays_optimal() {
    // Interrupt Revolve whenever it has just reversed something; what it holds survives.
    let (n, s) = (60, 4);
    let schedule = Revolve::new(n, s).unwrap();
    let mut machine = Machine::new(n);
    let mut held: Vec<(u64, Slot)> = Vec::new();
    let whole = schedule.totals().advances;
    for action in schedule {
        machine.step(action).unwrap();
        match action {
            Action::Store { step, slot } => held.push((step, slot)),
            Action::Drop { slot } => held.retain(|&(_, other)| other != slot),
            Action::Reverse { from, .. } => {
                let rest = replan(n, &held, Progress::Reversed(from), s, Options::new()).unwrap();
                let more = Machine::interrupted(n, from, &held).run(rest).unwrap().advances;
                assert_eq!(machine.totals().advances + more, whole, "reversed down to {from}");
            }
            _ => {}
        }
    }
}

#[test]
fn replanning_says_what_is_missing() {
    let refused = |survivors: &[(u64, Slot)], progress| {
        replan(10, survivors, progress, 2, Options::new()).unwrap_err().to_string()
    };
    assert!(refused(&[], Progress::Forward).contains("step 0"));
    assert!(refused(&[(3, slot(Tier::Disk, 0))], Progress::Reversed(5)).contains("step 0"));
    let zero = (0, slot(Tier::Memory, 0));
    assert!(refused(&[zero, (3, slot(Tier::Memory, 2))], Progress::Forward).contains("not among"));
    assert!(refused(&[zero, (3, slot(Tier::Memory, 0))], Progress::Forward).contains("share"));
    assert!(refused(&[zero, (0, slot(Tier::Disk, 0))], Progress::Forward).contains("same step"));
    assert!(refused(&[zero], Progress::Reversed(11)).contains("beyond"));
}

#[test]
fn the_machine_catches_every_kind_of_mistake() {
    use Action::*;
    let a = slot(Tier::Memory, 0);
    let cases: [(&[Action], &str); 12] = [
        (&[Load { step: 0, slot: a }], "the slot is empty"),
        (&[Store { step: 1, slot: a }], "the state at hand is another one"),
        (&[Store { step: 0, slot: a }, Store { step: 0, slot: a }], "the slot is full"),
        (&[Store { step: 0, slot: a }, Load { step: 1, slot: a }], "the slot holds another state"),
        (&[Drop { slot: a }], "the slot is empty"),
        (&[Advance { from: 1, to: 2 }], "the state at hand is another one"),
        (&[Advance { from: 0, to: 3 }], "it runs over steps that are reversed already, or past the end"),
        (&[Record { from: 0, to: 2 }, Reverse { from: 0, to: 2 }], "the turn has not come yet"),
        (&[Advance { from: 0, to: 1 }, Turn], "the forward sweep has not reached its end"),
        (&[Advance { from: 0, to: 2 }, Turn, Reverse { from: 0, to: 2 }], "these steps are not on the tape"),
        (
            &[Record { from: 0, to: 2 }, Turn, Reverse { from: 0, to: 1 }],
            "it does not continue the reversed steps downwards",
        ),
        (&[Record { from: 0, to: 2 }, Turn, Turn], "there was a turn already"),
    ];
    for (actions, why) in cases {
        let illegal = Machine::new(2).run(actions.iter().copied()).unwrap_err();
        assert_eq!((illegal.why, illegal.position), (why, actions.len() as u64 - 1), "{actions:?}");
    }
    let incomplete = Machine::new(2).run([Record { from: 0, to: 2 }, Turn]).unwrap_err();
    assert_eq!((incomplete.why, incomplete.action), ("some steps are not reversed", None));
    let limits = Limits { memory_slots: 0, ..Limits::default() };
    let over = Machine::new(2).limits(limits).run([Store { step: 0, slot: a }]).unwrap_err();
    assert_eq!(over.why, "there are not so many slots in memory");
    let limits = Limits { bytes: 9, ..Limits::default() };
    let machine = Machine::new(2).sizes(Sizes { state: 4, tape: 3 }).limits(limits);
    let over = machine.run([Store { step: 0, slot: a }, Record { from: 0, to: 2 }]).unwrap_err();
    assert_eq!(over.why, "there are not so many bytes");
}
