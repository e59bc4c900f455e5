use ebbtide_schedule::revolve::{advances, advances_in_blocks, split, split_in_blocks};
use ebbtide_schedule::*;

use crate::support::options;

/// t\[s\]\[n\] by dynamic programming straight from the definition, with blocks.
fn by_dynamic_programming(most_steps: usize, most_slots: usize, block: usize) -> Vec<Vec<u128>> {
    let mut t = vec![vec![0; most_steps + 1]; most_slots + 1];
    for s in 1..=most_slots {
        for n in block + 1..=most_steps {
            t[s][n] = if s == 1 {
                (n - block) as u128 + t[1][n - block]
            } else {
                (1..n).map(|m| m as u128 + t[s - 1][n - m] + t[s][m]).min().unwrap()
            };
        }
    }
    t
}

#[test]
fn advances_are_minimal_on_the_whole_small_grid_for_every_block_and_shape() {
    for block in [1, 2, 3, 5, 8] {
        let t = by_dynamic_programming(60 + block, 8, block);
        for n in 0..=60 {
            for s in 1..=8 {
                for (options, more) in options(block as u64).into_iter().zip([0, block]) {
                    let more = more.min(n);
                    let totals = Machine::new(n as u64)
                        .limits(Limits { memory_slots: s, tape_steps: block as u64, ..Limits::default() })
                        .run(Revolve::with(n as u64, s, options).unwrap())
                        .unwrap();
                    // A block longer than the loop means the loop.
                    let expected = if n < block && more > 0 { n as u128 } else { t[s][n + more] };
                    assert_eq!(totals.advances, expected, "n={n} s={s} b={block} {options:?}");
                }
            }
        }
    }
}

#[test]
fn a_plain_forward_sweep_costs_what_its_own_recurrence_says() {
    for block in [1, 2, 3, 7] {
        let t = by_dynamic_programming(40, 6, block);
        let mut plain = vec![vec![u128::MAX / 2; 41]; 7];
        for (s, row) in t.iter().enumerate() {
            plain[s][0] = 0;
            for n in 1..=40 {
                if s > 0 {
                    plain[s][n] = (1..=n).map(|m| m as u128 + plain[s - 1][n - m] + row[m]).min().unwrap();
                    let options = Options::new().block(block as u64).primal_first();
                    let totals = Revolve::with(n as u64, s, options).unwrap().totals();
                    assert_eq!(totals.advances, plain[s][n], "n={n} s={s} b={block}");
                }
            }
        }
    }
}

#[test]
fn totals_by_formula_are_what_the_machine_counts() {
    for block in [1, 2, 3, 5, 8] {
        for n in 0..=60 {
            for s in 1..=8 {
                for options in options(block) {
                    let schedule = Revolve::with(n, s, options).unwrap();
                    let formula = schedule.totals();
                    let mut machine = Machine::new(n).sizes(Sizes { state: 1000, tape: 3 });
                    for action in schedule {
                        machine.step(action).unwrap();
                    }
                    assert_eq!(machine.finish().unwrap(), formula, "n={n} s={s} b={block} {options:?}");
                    let bytes =
                        Sizes { state: 1000, tape: 3 }.bytes(formula.memory.peak_slots, formula.peak_tape);
                    assert!(machine.peak_bytes() <= bytes, "n={n} s={s} b={block} {options:?}");
                }
            }
        }
    }
}

#[test]
fn streamed_totals_equal_the_closed_form_up_to_a_million_steps() {
    for (n, s, b) in [
        (1000, 3, 1),
        (9_999, 7, 1),
        (30_000, 100, 7),
        (100_000, 20, 1),
        (1_000_000, 50, 64),
        (1_000_000, 1000, 1),
    ] {
        for options in options(b) {
            let schedule = Revolve::with(n, s, options).unwrap();
            let formula = schedule.totals();
            assert_eq!(Machine::new(n).run(schedule).unwrap(), formula, "n={n} s={s} b={b}");
        }
    }
}

#[test]
fn reference_totals_of_the_field() {
    for (n, s, factor) in [
        (10, 3, 2.5),
        (1000, 3, 13.155),
        (1000, 5, 7.284),
        (1000, 10, 4.636),
        (1000, 31, 3.439),
        (10_000, 10, 6.762),
        (10_000, 100, 3.475),
        (100_000, 10, 9.320),
        (1_000_000, 10, 12.648),
        (1_000_000, 100, 4.818),
        (1_000_000, 1000, 3.497),
        (1_000_000_000, 50, 8.699),
    ] {
        let found = Revolve::new(n, s).unwrap().totals().recompute_factor();
        assert!((found - factor).abs() < 6e-4, "n={n} s={s}: {found} instead of {factor}");
    }
    assert_eq!(advances(10, 3), Some(15));
}

/// The fewest stores after that of the first state among schedules with the fewest advances, straight from the
/// definition.
fn fewest_stores(t: &[Vec<u128>], block: usize) -> Vec<Vec<u128>> {
    let (slots, steps) = (t.len() - 1, t[0].len() - 1);
    let mut stores = vec![vec![0; steps + 1]; slots + 1];
    for s in 2..=slots {
        for n in block + 1..=steps {
            let optimal = (1..n).filter(|&m| m as u128 + t[s - 1][n - m] + t[s][m] == t[s][n]);
            let count = |m: usize| u128::from(n - m > block) + stores[s - 1][n - m] + stores[s][m];
            stores[s][n] = optimal.map(count).min().unwrap();
        }
    }
    stores
}

#[test]
fn stores_are_the_fewest_at_the_optimal_number_of_advances() {
    for block in [1, 2, 3, 5] {
        let most = if block == 1 { 120 } else { 60 };
        let t = by_dynamic_programming(most + block, 12, block);
        let stores = fewest_stores(&t, block);
        for n in block + 1..=most {
            for s in 1..=12 {
                for (options, more) in options(block as u64).into_iter().zip([0, block]) {
                    let totals = Machine::new(n as u64)
                        .limits(Limits { memory_slots: s, ..Limits::default() })
                        .run(Revolve::with(n as u64, s, options).unwrap())
                        .unwrap();
                    assert_eq!(
                        totals.memory.stores,
                        1 + stores[s][n + more],
                        "n={n} s={s} b={block} {options:?}"
                    );
                    assert_eq!(totals.advances, t[s][n + more], "n={n} s={s} b={block} {options:?}");
                }
            }
        }
    }
}

#[test]
fn reference_stores_of_the_field() {
    for (n, s, stores) in [(50, 7, 28), (100, 10, 55), (100, 20, 79), (100, 3, 28), (250, 25, 224)] {
        let totals = Machine::new(n).run(Revolve::new(n, s).unwrap()).unwrap();
        assert_eq!(totals.memory.stores, stores, "n={n} s={s}");
        assert_eq!(Some(totals.advances), advances(n, s), "n={n} s={s}");
    }
}

#[test]
fn the_split_is_the_largest_optimal_one() {
    for block in [1, 2, 3] {
        let t = by_dynamic_programming(80, 8, block);
        for n in block + 1..=80 {
            for s in 2..=8 {
                let cost = |m: usize| m as u128 + t[s - 1][n - m] + t[s][m];
                let largest = (1..n).rev().find(|&m| cost(m) == t[s][n]).unwrap();
                assert_eq!(split_in_blocks(n as u64, s, block as u64), Some(largest as u64), "n={n} s={s}");
            }
        }
    }
}

#[test]
fn extreme_sizes_neither_overflow_nor_hang() {
    for n in [1_500_000, 100_000_000, MAX_STEPS] {
        for s in [1, 2, 3, 10, 100, usize::MAX] {
            let t = advances(n, s).unwrap();
            assert!(t >= u128::from(n) - 1);
            let m = split(n, s).unwrap();
            assert!(0 < m && m < n);
            // The split is consistent with the closed form: Bellman's equation holds.
            if s > 1 {
                assert_eq!(t, u128::from(m) + advances(n - m, s - 1).unwrap() + advances(m, s).unwrap());
            }
            assert!(advances_in_blocks(n, s, 1 << 40).unwrap() <= t);
        }
    }
    assert_eq!(advances(MAX_STEPS, 1), Some(u128::from(MAX_STEPS) * u128::from(MAX_STEPS - 1) / 2));
}

#[test]
fn a_billion_steps_start_at_once() {
    let mut schedule = Revolve::new(1_000_000_000, 100).unwrap();
    let first: Vec<Action> = schedule.by_ref().take(100_000).collect();
    assert!(matches!(first[0], Action::Store { step: 0, .. }));
    let text = AnySchedule::from(schedule).to_string();
    assert!(text.len() < 100 * 24, "the state of the schedule grows with its slots alone: {}", text.len());
}

#[test]
fn no_slots_suffice_for_one_block() {
    assert!(Revolve::with(5, 0, Options::new().block(5)).is_ok());
    assert_eq!(Revolve::new(5, 0), Err(Error::TooFewSlots { slots: 0, minimum: 1 }));
    assert!(Revolve::new(0, 0).is_ok() && Revolve::new(1, 0).is_ok());
}
