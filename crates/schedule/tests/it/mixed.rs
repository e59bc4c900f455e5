use ebbtide_schedule::*;

use crate::support::options;

/// A machine on which a state and the tape of a block take one unit of room, `slots + 1` of which exist: the
/// tape to be reversed at once is the one more.
fn counted(n: u64, slots: usize, options: Options, block: u64) -> Totals {
    let schedule = Mixed::with(n, slots, options).unwrap();
    let formula = schedule.totals();
    let limits = Limits { bytes: u128::from(block) * (slots as u128 + 1), ..Limits::default() };
    let machine = Machine::new(n).sizes(Sizes { state: block, tape: 1 }).limits(limits);
    let counted = machine.run(schedule).unwrap();
    assert_eq!(counted.advances, formula.advances, "n={n} s={slots} {options:?}");
    assert_eq!(counted.memory, formula.memory, "n={n} s={slots} {options:?}");
    assert_eq!(counted, formula, "n={n} s={slots} {options:?}");
    counted
}

/// M(n, s) straight from the recurrence.
fn by_dynamic_programming(most_steps: usize, most_slots: usize) -> Vec<Vec<u128>> {
    let mut m = vec![vec![0; most_steps + 1]; most_slots + 1];
    for s in 1..=most_slots {
        for n in 0..=most_steps {
            m[s][n] = if n <= s + 1 {
                n as u128
            } else if s == 1 {
                (n * (n + 1) / 2 - 1) as u128
            } else {
                (2..n).map(|i| i as u128 + m[s][i] + m[s - 1][n - i]).min().unwrap().min(1 + m[s - 1][n - 1])
            };
        }
    }
    m
}

#[test]
fn executions_are_minimal_on_the_whole_small_grid() {
    let m = by_dynamic_programming(61, 8);
    for n in 0..=60 {
        for s in 1..=8 {
            let recorded = counted(n, s, Options::new(), 1);
            assert_eq!(recorded.executions(), m[s][n as usize], "n={n} s={s}");
            // The empty unit at the end of a plain sweep is not executed.
            let plain = counted(n, s, Options::new().primal_first(), 1);
            let expected = if n == 0 { 0 } else { m[s][n as usize + 1] - 1 };
            assert_eq!(plain.executions(), expected, "n={n} s={s}");
        }
    }
}

/// The fewest executions by search over all states of the machine: where the state at hand is, which
/// states and which tapes are kept, how far the reversal has come.
fn by_search(n: usize, slots: u32) -> usize {
    let mut seen = std::collections::HashSet::new();
    let mut queue = vec![vec![(0, 0_u32, 0_u32, n)]];
    let mut price = 0;
    while price < queue.len() {
        while let Some((at, states, tapes, end)) = queue[price].pop() {
            if end == 0 {
                return price;
            }
            if !seen.insert((at, states, tapes, end)) {
                continue;
            }
            if queue.len() < price + 2 {
                queue.push(Vec::new());
            }
            let free = states.count_ones() + tapes.count_ones() < slots;
            if at < end {
                queue[price + 1].push((at + 1, states, tapes, end));
                if free {
                    queue[price + 1].push((at + 1, states, tapes | 1 << at, end));
                    queue[price].push((at, states | 1 << at, tapes, end));
                }
                if at + 1 == end {
                    queue[price + 1].push((n, states, tapes, at));
                }
            }
            if tapes >> (end - 1) & 1 == 1 {
                queue[price].push((n, states, tapes & !(1 << (end - 1)), end - 1));
            }
            for step in 0..n {
                if states >> step & 1 == 1 {
                    queue[price].push((step, states, tapes, end));
                    queue[price].push((at, states & !(1 << step), tapes, end));
                }
            }
        }
        price += 1;
    }
    usize::MAX
}

#[test]
fn no_plan_at_all_executes_less() {
    for n in 1..=6 {
        for s in 1..=3 {
            let totals = counted(n, s, Options::new(), 1);
            assert_eq!(totals.executions(), by_search(n as usize, s as u32) as u128, "n={n} s={s}");
        }
    }
}

#[test]
fn blocks_and_shapes_are_legal_and_their_totals_exact() {
    for n in 0..=40 {
        for block in [2, 3, 7] {
            for options in options(block) {
                for s in [1, 2, 3, 6] {
                    let block = block.min(n.max(1));
                    counted(n, s, options, block);
                }
            }
        }
    }
}

#[test]
fn reference_totals_of_the_field() {
    for (s, factor) in [(5, 6.828), (10, 3.921), (30, 2.522), (100, 1.909)] {
        let schedule = Mixed::new(1000, s).unwrap();
        assert_eq!(schedule.method(), Method::Exact);
        let found = schedule.totals().recompute_factor();
        assert!((found - factor).abs() < 6e-4, "s={s}: {found} instead of {factor}");
    }
}

#[test]
fn long_loops_are_minimal_too() {
    let m = by_dynamic_programming(1500, 5);
    for s in 1..=5 {
        for n in [200, 777, 1500] {
            assert_eq!(Mixed::new(n as u64, s).unwrap().totals().executions(), m[s][n], "n={n} s={s}");
        }
    }
}

#[test]
fn ten_thousand_steps_are_planned_exactly() {
    let schedule = Mixed::new(10_000, 4).unwrap();
    assert_eq!(schedule.method(), Method::Exact);
    let formula = schedule.totals();
    assert_eq!(Machine::new(10_000).run(schedule).unwrap(), formula);
}

#[test]
fn beyond_the_table_it_is_within_two_per_cent_of_a_longer_table() {
    for s in [2, 5, 12] {
        let exact = Mixed::new(8192, s).unwrap();
        let split = Mixed::approximate(8192, s, Options::new()).unwrap();
        assert_eq!((exact.method(), split.method()), (Method::Exact, Method::Approximate));
        let loss = split.totals().executions() as f64 / exact.totals().executions() as f64;
        println!("LOSS {s} {loss}");
        assert!((1.0..=1.02).contains(&loss), "s={s}: {loss}");
    }
}

#[test]
fn a_billion_steps_start_at_once() {
    let schedule = Mixed::new(1_000_000_000, 100).unwrap();
    assert_eq!(schedule.method(), Method::Approximate);
    let revolve = Revolve::new(1_000_000_000, 100).unwrap().totals();
    assert!(schedule.totals().executions() < revolve.executions());
    let mut machine = Machine::new(1_000_000_000);
    for action in schedule.take(1000) {
        machine.step(action).unwrap();
    }
}
