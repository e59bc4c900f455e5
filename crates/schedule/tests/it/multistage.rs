use std::collections::HashSet;

use ebbtide_schedule::*;

use crate::support::options;

fn cost(totals: &Totals, disk: &Disk) -> f64 {
    totals.advances as f64
        + totals.disk.stores as f64 * disk.write_cost
        + totals.disk.loads as f64 * disk.read_cost
}

fn counted(n: u64, slots: usize, disk: Disk, options: Options) -> Totals {
    let schedule = Multistage::with(n, slots, disk, options).unwrap();
    assert_eq!(schedule.method(), Method::Exact);
    let formula = schedule.totals();
    let limits = Limits { memory_slots: slots, disk_slots: disk.slots, ..Limits::default() };
    let counted = Machine::new(n).limits(limits).run(schedule).unwrap();
    assert_eq!(counted, formula, "n={n} s={slots} {disk:?} {options:?}");
    counted
}

/// The recurrences of H-Revolve for two tiers, straight from the paper; with as many slots on disk as steps they are
/// those of Disk-Revolve.
fn by_dynamic_programming(n: usize, slots: usize, disk: &Disk) -> f64 {
    let memory = |l: usize| revolve::advances(l as u64, slots).map_or(f64::INFINITY, |t| t as f64);
    let alone: Vec<f64> = (0..=n).map(memory).collect();
    let mut first = alone.clone();
    for _ in 0..disk.slots.min(n) {
        let mut reread = alone.clone();
        for l in 2..=n {
            reread[l] = (1..l)
                .map(|m| m as f64 + first[l - m] + disk.read_cost + reread[m])
                .fold(reread[l], f64::min);
        }
        first = (0..=n).map(|l| alone[l].min(disk.write_cost + reread[l])).collect();
    }
    first[n]
}

#[test]
fn multistage_equals_its_recurrence_on_the_whole_small_grid() {
    for n in 0..=60 {
        for slots in 0..=8 {
            for (disk_slots, write_cost, read_cost) in
                [(usize::MAX, 0.0, 0.0), (usize::MAX, 2.0, 1.0), (3, 5.0, 3.5), (1, 0.5, 0.5), (2, 20.0, 1.0)]
            {
                let disk = Disk { slots: disk_slots, write_cost, read_cost };
                let totals = counted(n, slots, disk, Options::new());
                let expected = by_dynamic_programming(n as usize, slots, &disk);
                assert!((cost(&totals, &disk) - expected).abs() < 1e-9, "n={n} s={slots} {disk:?}");
            }
        }
    }
}

/// The cheapest way to reverse everything, by search over all states of the machine: where the state at
/// hand is, what is in memory, what is on disk, how far the reversal has come.
fn by_search(n: usize, slots: usize, disk: &Disk) -> f64 {
    // Costs are multiples of 1/2, so that they can be counted in integers.
    let (write, read) = ((disk.write_cost * 2.0) as usize, (disk.read_cost * 2.0) as usize);
    let key =
        |at: usize, memory: usize, disk: usize, end: usize| ((at * 128 + memory) * 128 + disk) * 8 + end;
    let mut best = vec![usize::MAX; 8 * 128 * 128 * 8];
    let mut queue: Vec<Vec<(usize, usize, usize, usize)>> = vec![vec![(0, 0, 0, n)]];
    let mut price = 0;
    while price < queue.len() {
        while let Some((at, memory, on_disk, end)) = queue[price].pop() {
            if end == 0 {
                return price as f64 / 2.0;
            }
            let seen = &mut best[key(at, memory, on_disk, end)];
            if *seen <= price {
                continue;
            }
            *seen = price;
            let mut go = |more: usize, next: (usize, usize, usize, usize)| {
                if queue.len() <= price + more {
                    queue.resize(price + more + 1, Vec::new());
                }
                queue[price + more].push(next);
            };
            if at + 1 == end {
                // Recorded and reversed; there is no state at hand, which we write as `n`.
                go(0, (n, memory, on_disk, at));
            }
            if at < end {
                go(2, (at + 1, memory, on_disk, end));
                if memory.count_ones() < slots as u32 {
                    go(0, (at, memory | 1 << at, on_disk, end));
                }
                if on_disk.count_ones() < disk.slots.min(64) as u32 {
                    go(write, (at, memory, on_disk | 1 << at, end));
                }
            }
            for step in 0..n {
                if memory >> step & 1 == 1 {
                    go(0, (step, memory, on_disk, end));
                    go(0, (at, memory & !(1 << step), on_disk, end));
                }
                if on_disk >> step & 1 == 1 {
                    go(read, (step, memory, on_disk, end));
                    go(0, (at, memory, on_disk & !(1 << step), end));
                }
            }
        }
        price += 1;
    }
    f64::INFINITY
}

#[test]
fn no_plan_at_all_is_cheaper_when_the_disk_is_large() {
    for n in 1..=5 {
        for slots in 0..=2 {
            for (write_cost, read_cost) in [(0.0, 0.0), (0.5, 0.5), (1.0, 2.0), (3.0, 0.5)] {
                let disk = Disk { slots: usize::MAX, write_cost, read_cost };
                let totals = counted(n, slots, disk, Options::new());
                assert_eq!(
                    cost(&totals, &disk),
                    by_search(n as usize, slots, &disk),
                    "n={n} s={slots} {disk:?}"
                );
            }
        }
    }
}

#[test]
fn no_plan_at_all_is_cheaper_when_the_disk_is_small() {
    for n in 1..=9 {
        for slots in 0..=2 {
            for disk_slots in 1..=3 {
                if n > 7 && slots + disk_slots > 3 {
                    continue;
                }
                for (write_cost, read_cost) in [
                    (0.0, 0.0),
                    (0.0, 1.0),
                    (1.0, 0.0),
                    (0.5, 0.5),
                    (1.0, 2.0),
                    (3.0, 0.5),
                    (0.5, 3.0),
                    (6.0, 0.0),
                ] {
                    let disk = Disk { slots: disk_slots, write_cost, read_cost };
                    let totals = counted(n, slots, disk, Options::new());
                    let least = by_wide_search(n as u8, slots, &disk);
                    assert_eq!(cost(&totals, &disk), least, "n={n} s={slots} {disk:?}");
                }
            }
        }
    }
}

/// All that a machine knows: the state at hand (or none, which is n), what is in memory and on disk (by bits), and the
/// steps that are not reversed yet.
type Place = (u8, u16, u16, u8);

/// [`by_search`] for more steps: only places that can be reached are remembered, and a state that stands at or beyond
/// the reversed steps is forgotten at once.
fn by_wide_search(n: u8, slots: usize, disk: &Disk) -> f64 {
    let (write, read) = ((disk.write_cost * 2.0) as usize, (disk.read_cost * 2.0) as usize);
    let mut seen: HashSet<Place> = HashSet::new();
    let mut queue: Vec<Vec<Place>> = vec![vec![(0, 0, 0, n)]];
    let mut price = 0;
    while price < queue.len() {
        while let Some(place) = queue[price].pop() {
            let (at, memory, on_disk, end) = place;
            if end == 0 {
                return price as f64 / 2.0;
            }
            if !seen.insert(place) {
                continue;
            }
            let mut go = |more: usize, next: Place| {
                if queue.len() <= price + more {
                    queue.resize(price + more + 1, Vec::new());
                }
                queue[price + more].push(next);
            };
            if at + 1 == end {
                let below = (1 << at) - 1;
                go(0, (n, memory & below, on_disk & below, at));
            } else if at < end {
                go(2, (at + 1, memory, on_disk, end));
            }
            if at < end {
                // Into a free slot, or instead of a state that is there.
                for victim in (0..n).map(|step| 1 << step).chain([0]) {
                    if (memory & !victim).count_ones() < slots as u32 {
                        go(0, (at, memory & !victim | 1 << at, on_disk, end));
                    }
                    if (on_disk & !victim).count_ones() < disk.slots as u32 {
                        go(write, (at, memory, on_disk & !victim | 1 << at, end));
                    }
                }
            }
            for step in 0..n {
                if memory >> step & 1 == 1 {
                    go(0, (step, memory, on_disk, end));
                }
                if on_disk >> step & 1 == 1 {
                    go(read, (step, memory, on_disk, end));
                }
            }
        }
        price += 1;
    }
    f64::INFINITY
}

#[test]
fn totals_of_h_revolve_are_met() {
    for (n, slots, disk_slots, price, total) in [
        (50, 2, 3, 0.0, 172.0),
        (100, 3, 5, 0.0, 345.0),
        (200, 2, 3, 1.0, 1034.0),
        (300, 2, 4, 2.0, 1613.0),
        (1000, 3, 5, 0.0, 5285.0),
    ] {
        let disk = Disk { slots: disk_slots, write_cost: price, read_cost: price };
        let totals = counted(n, slots, disk, Options::new());
        assert_eq!(cost(&totals, &disk) + n as f64, total, "n={n} s={slots} {disk:?}");
    }
}

#[test]
fn a_disk_that_costs_nothing_is_as_good_as_memory_at_any_length() {
    for (n, slots, disk_slots) in [(60, 2, 3), (5000, 3, 40), (1_000_000, 5, 100), (1_000_000_000, 10, 30)] {
        for options in options(3) {
            let disk = Disk { slots: disk_slots, write_cost: 0.0, read_cost: 0.0 };
            let schedule = Multistage::with(n, slots, disk, options).unwrap();
            assert_eq!(schedule.method(), Method::Exact);
            let memory = Revolve::with(n, slots + disk_slots, options).unwrap();
            assert_eq!(schedule.totals().advances, memory.totals().advances, "n={n} s={slots} {disk:?}");
        }
    }
}

#[test]
fn multistage_is_legal_and_its_totals_are_exact_for_every_block_and_shape() {
    for n in [0, 1, 2, 7, 30, 61] {
        for block in [1, 2, 5] {
            for options in options(block) {
                for slots in [1, 2, 5] {
                    for disk_slots in [0, 1, 3, 100] {
                        let disk = Disk { slots: disk_slots, write_cost: 3.0, read_cost: 1.0 };
                        counted(n, slots, disk, options);
                    }
                }
            }
        }
    }
}

#[test]
fn without_a_disk_it_is_revolve() {
    let disk = Disk { slots: 0, write_cost: 1.0, read_cost: 1.0 };
    for (n, s) in [(10, 3), (60, 4), (1000, 10)] {
        let totals = Multistage::new(n, s, disk).unwrap().totals();
        assert_eq!(totals, Revolve::new(n, s).unwrap().totals());
    }
}

#[test]
fn ten_thousand_steps_are_planned_exactly_even_with_a_small_disk() {
    for disk_slots in [10, usize::MAX] {
        let disk = Disk { slots: disk_slots, write_cost: 5.0, read_cost: 3.0 };
        let totals = counted(10_000, 5, disk, Options::new());
        assert!(totals.disk.peak_slots as usize <= disk_slots);
    }
}

#[test]
fn costs_must_be_numbers() {
    for write_cost in [f64::NAN, -1.0, f64::INFINITY] {
        let disk = Disk { slots: 1, write_cost, read_cost: 1.0 };
        assert_eq!(Multistage::new(10, 1, disk), Err(Error::BadCost { what: "write" }));
    }
}

/// How much more the periodic plan costs, all executions counted.
fn loss(n: u64, slots: usize, disk: Disk) -> f64 {
    let exact = Multistage::new(n, slots, disk).unwrap();
    let periodic = Multistage::periodic(n, slots, disk, Options::new()).unwrap();
    assert_eq!((exact.method(), periodic.method()), (Method::Exact, Method::Approximate));
    let whole = |totals: Totals| cost(&totals, &disk) + n as f64;
    whole(periodic.totals()) / whole(exact.totals())
}

#[test]
fn the_periodic_plan_is_within_two_per_cent_of_the_exact_one() {
    for n in [10_000] {
        for slots in [1, 3, 10, 30] {
            for (write_cost, read_cost) in [(0.0, 0.0), (5.0, 3.0), (100.0, 50.0)] {
                let disk = Disk { slots: usize::MAX, write_cost, read_cost };
                let loss = loss(n, slots, disk);
                assert!((1.0..=1.02).contains(&loss), "n={n} s={slots} {disk:?}: {loss}");
            }
        }
    }
}

#[test]
fn with_few_slots_on_disk_the_periodic_plan_is_within_two_per_cent_of_the_exact_one() {
    let mut worst: f64 = 1.0;
    for n in [300, 1000] {
        for slots in [1, 2, 3, 10] {
            for disk_slots in [1, 2, 5, 20] {
                for (write_cost, read_cost) in [(1.0, 1.0), (5.0, 5.0), (0.0, 30.0), (50.0, 50.0), (7.5, 0.0)]
                {
                    let disk = Disk { slots: disk_slots, write_cost, read_cost };
                    let loss = loss(n, slots, disk);
                    worst = worst.max(loss);
                    assert!((1.0..=1.02).contains(&loss), "n={n} s={slots} {disk:?}: {loss}");
                }
            }
        }
    }
    assert!(worst > 1.0, "the periodic plan is another one");
}

#[test]
fn beyond_the_exact_plans_two_per_cent_are_proven_for_each_plan() {
    for n in [20_000, 1_000_000_000] {
        for (slots, write_cost, read_cost) in [(1, 5.0, 5.0), (3, 1.0, 1.0), (10, 200.0, 100.0)] {
            for disk_slots in [1, 10, 200, usize::MAX] {
                let disk = Disk { slots: disk_slots, write_cost, read_cost };
                let schedule = Multistage::new(n, slots, disk).unwrap();
                assert_eq!(schedule.method(), Method::Approximate);
                let loss = schedule.loss();
                let close = loss.is_some_and(|loss| (1.0..=1.02).contains(&loss));
                assert!(close, "n={n} s={slots} {disk:?}: {loss:?}");
            }
        }
    }
}

#[test]
fn a_proven_bound_is_below_the_optimum() {
    for (n, slots) in [(700, 1), (900, 2), (1000, 3), (1000, 8)] {
        for disk_slots in [1, 4, 20, usize::MAX] {
            for (write_cost, read_cost) in [(1.0, 1.0), (5.0, 2.5), (40.0, 40.0)] {
                let disk = Disk { slots: disk_slots, write_cost, read_cost };
                let periodic = Multistage::periodic(n, slots, disk, Options::new()).unwrap();
                let proven = periodic.loss().unwrap();
                assert!(loss(n, slots, disk) <= proven + 1e-9, "n={n} s={slots} {disk:?}: {proven}");
            }
        }
    }
}

#[test]
fn periodic_plans_with_few_slots_on_disk_are_legal_and_their_totals_are_exact() {
    for (n, slots, disk_slots) in
        [(700, 1, 3), (2000, 2, 10), (2000, 3, 1), (30_000, 3, 60), (30_000, 10, 1000)]
    {
        for block in [1, 4] {
            for options in options(block) {
                let disk = Disk { slots: disk_slots, write_cost: 4.0, read_cost: 2.0 };
                let schedule = Multistage::periodic(n, slots, disk, options).unwrap();
                let formula = schedule.totals();
                let limits = Limits { memory_slots: slots, disk_slots, ..Limits::default() };
                let counted = Machine::new(n).limits(limits).run(schedule).unwrap();
                assert_eq!(counted, formula, "n={n} s={slots} {disk:?} {options:?}");
            }
        }
    }
}

#[test]
fn a_periodic_plan_for_a_billion_steps_is_legal_as_far_as_we_look() {
    let disk = Disk { slots: usize::MAX, write_cost: 5.0, read_cost: 3.0 };
    let schedule = Multistage::new(1_000_000_000, 10, disk).unwrap();
    assert_eq!(schedule.method(), Method::Approximate);
    let factor = schedule.totals().recompute_factor();
    assert!((2.0..4.0).contains(&factor), "{factor}");
    let mut machine = Machine::new(1_000_000_000);
    for action in schedule.take(10_000) {
        machine.step(action).unwrap();
    }
    for options in options(3) {
        let schedule = Multistage::with(100_000, 4, disk, options).unwrap();
        let formula = schedule.totals();
        assert_eq!(Machine::new(100_000).run(schedule).unwrap(), formula);
    }
}

#[test]
fn spaced_states_are_legal_and_their_totals_are_exact_for_every_block_and_shape() {
    for n in 0..=40 {
        for block in [1, 2, 3, 7] {
            for period in [1, 2, 5, 7, 12, 40] {
                for (slots, disk_slots) in [(0, usize::MAX), (1, usize::MAX), (3, usize::MAX), (2, 3), (1, 0)]
                {
                    for options in options(block) {
                        let Ok(schedule) = Multistage::spaced(n, period, slots, disk_slots, options) else {
                            assert_eq!(slots, 0);
                            continue;
                        };
                        let formula = schedule.totals();
                        let limits = Limits { memory_slots: slots, disk_slots, ..Limits::default() };
                        let counted = Machine::new(n).limits(limits).run(schedule).unwrap();
                        assert_eq!(
                            counted, formula,
                            "n={n} p={period} b={block} s={slots} d={disk_slots} {options:?}"
                        );
                        assert_eq!(
                            counted.disk.stores, counted.disk.loads,
                            "each state on disk is read once"
                        );
                    }
                }
            }
        }
    }
}

#[test]
fn with_no_slot_in_memory_a_period_is_a_block() {
    let spaced = |period, disk| Multistage::spaced(100, period, 0, disk, Options::new().block(5));
    assert_eq!(spaced(5, usize::MAX).unwrap().totals().executions(), 195);
    assert_eq!(spaced(5, 18), Err(Error::TooFewSlots { slots: 0, minimum: 1 }));
    assert_eq!(spaced(6, usize::MAX), Err(Error::TooFewSlots { slots: 0, minimum: 1 }));
    assert_eq!(spaced(0, 5), Err(Error::ZeroLength { what: "period" }));
}
