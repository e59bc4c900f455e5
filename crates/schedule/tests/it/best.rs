use ebbtide_schedule::*;

use crate::support::{Random, cases};

fn problem(steps: u64, state: u64, tape: u64) -> Problem {
    Problem::new(steps, Sizes { state, tape })
}

/// Runs the plan: it is legal, fits, and costs what it says.
fn run(plan: &Plan, problem: &Problem, budget: u64) {
    let mut machine = Machine::new(plan.steps)
        .sizes(problem.sizes)
        .limits(Limits { bytes: budget.into(), ..Limits::default() });
    for action in plan.schedule().unwrap() {
        machine.step(action).unwrap();
    }
    let totals = machine.finish().unwrap();
    assert_eq!(totals, plan.totals);
    assert_eq!(totals.cost(&problem.costs), plan.cost);
    assert!(machine.peak_bytes() <= plan.peak_bytes && plan.peak_bytes <= budget.into());
}

#[test]
fn more_memory_never_gives_a_costlier_plan() {
    let mut random = Random(3);
    for _ in 0..cases(20) {
        let mut problem = problem(random.below(120), random.below(50), random.below(50));
        if random.below(2) == 0 {
            problem.costs.store = random.below(5) as f64 / 2.0;
            problem.costs.load = random.below(3) as f64 / 2.0;
        }
        if random.below(3) == 0 {
            problem.shape = Shape::PrimalFirst;
        }
        let mut last = f64::INFINITY;
        let mut budget = 0;
        for _ in 0..25 {
            match best_plan(&problem, budget) {
                Ok(best) => {
                    run(&best.plan, &problem, budget);
                    assert!(best.plan.cost <= last, "{problem:?} {budget}: {} after {last}", best.plan.cost);
                    assert!(best.with_double.cost <= best.plan.cost);
                    assert!(best.with_half.is_none_or(|half| half.cost >= best.plan.cost));
                    last = best.plan.cost;
                }
                Err(error) => {
                    assert_eq!(last, f64::INFINITY, "a larger budget was refused");
                    assert!(matches!(error, Error::BudgetTooSmall { .. }), "{error}");
                }
            }
            budget += 1 + random.below(80);
        }
    }
}

#[test]
fn a_budget_below_the_minimum_names_the_minimum() {
    for (steps, state, tape, shape) in [
        (300, 100, 30, Shape::RecordLast),
        (300, 100, 30, Shape::PrimalFirst),
        (2, 100, 30, Shape::RecordLast),
        (1, 100, 30, Shape::RecordLast),
        (1, 100, 30, Shape::PrimalFirst),
        (0, 100, 30, Shape::RecordLast),
    ] {
        let problem = Problem { shape, ..problem(steps, state, tape) };
        let minimum = best_plan(&problem, 1 << 40).unwrap().minimum as u64;
        run(&best_plan(&problem, minimum).unwrap().plan, &problem, minimum);
        if minimum > 0 {
            let error = best_plan(&problem, minimum - 1).unwrap_err();
            assert_eq!(error, Error::BudgetTooSmall { budget: minimum - 1, minimum: minimum.into() });
        }
    }
}

#[test]
fn everything_is_stored_when_it_fits() {
    let best = best_plan(&problem(1000, 8, 24), 24_000).unwrap();
    assert_eq!((best.plan.family, best.plan.totals.advances), (Family::StoreAll, 0));
}

/// The cost of the cheapest Revolve with these blocks, by trying every number of slots.
fn cheapest_revolve(problem: &Problem, budget: u64, blocks: impl Iterator<Item = u64>) -> f64 {
    let mut least = f64::INFINITY;
    for block in blocks {
        for slots in 0..=problem.steps.div_ceil(block) as usize {
            let options = Options::new().block(block);
            let Ok(schedule) = Revolve::with(problem.steps, slots, options) else { continue };
            let totals = schedule.totals();
            if problem.sizes.bytes(totals.memory.peak_slots, totals.peak_tape) <= budget.into() {
                least = least.min(totals.cost(&problem.costs));
            }
        }
    }
    least
}

#[test]
fn no_revolve_of_any_slots_and_block_is_cheaper() {
    let mut random = Random(11);
    for _ in 0..cases(60) {
        let mut problem = problem(2 + random.below(63), 1 + random.below(20), 1 + random.below(20));
        problem.costs.store = random.below(3) as f64 / 4.0;
        problem.costs.load = random.below(3) as f64 / 4.0;
        let budget = 40 + random.below(300);
        let least = cheapest_revolve(&problem, budget, 1..=problem.steps);
        let plan = best_plan(&problem, budget).unwrap().plan;
        assert!(plan.cost <= least, "{problem:?} in {budget}: {} instead of {least}", plan.cost);
    }
}

#[test]
fn of_long_runs_hardly_any_is() {
    for (steps, state, tape, budget) in [(1000, 2, 1, 96), (3000, 1, 3, 400), (5000, 5, 1, 700)] {
        let mut problem = Problem { holds: Holds::States, ..problem(steps, state, tape) };
        (problem.costs.store, problem.costs.load) = (0.5, 0.5);
        let least = cheapest_revolve(&problem, budget, 1..=steps);
        let plan = best_plan(&problem, budget).unwrap().plan;
        assert!(plan.cost <= 1.002 * least, "{problem:?}: {} instead of {least}", plan.cost);
    }
}

#[test]
fn a_billion_steps_are_planned_at_once() {
    let problem = problem(1_000_000_000, 1000, 3000);
    let best = best_plan(&problem, 1_000_000).unwrap();
    assert!(best.plan.totals.recompute_factor() < 4.0 * best.with_double.totals.recompute_factor());
    // Few slots mean many repetitions, which no formula may count one by one.
    assert_eq!(Revolve::new(1 << 62, 2).unwrap().totals().memory.stores, 3_037_000_499);
}

/// Two places beyond memory, which are written and read in these times.
fn with_beyond(problem: Problem, slots: [u64; 2], times: [f64; 2]) -> Problem {
    let at = |k: usize| Beyond { slots: slots[k], write: times[k], read: times[k] };
    Problem { beyond: [at(0), at(1)], passage: problem.sizes.state, holds: Holds::States, ..problem }
}

#[test]
fn room_beyond_memory_saves_recomputation_and_never_costs() {
    let mut random = Random(7);
    for _ in 0..cases(20) {
        let mut problem = problem(2 + random.below(200), 1 + random.below(50), 1 + random.below(50));
        problem.holds = Holds::States;
        problem.costs.store = 0.5;
        problem.costs.load = 0.5;
        let budget = best_plan(&problem, u64::MAX).unwrap().minimum as u64 + random.below(400);
        let mut last = best_plan(&problem, budget).unwrap().plan.cost;
        let times = [random.below(20) as f64, 20.0 + random.below(200) as f64];
        for slots in [[1, 0], [5, 0], [5, 10], [50, 10], [50, 500]] {
            let problem = with_beyond(problem, slots, times);
            let plan = best_plan(&problem, budget).unwrap().plan;
            assert!(plan.cost <= last, "{problem:?} {budget}: {} after {last}", plan.cost);
            assert!(plan.totals.disk.peak_slots <= slots[0] + slots[1] && plan.peak_bytes <= budget.into());
            let mut machine = Machine::new(plan.steps);
            for action in plan.schedule().unwrap() {
                machine.step(action).unwrap();
            }
            assert_eq!(machine.finish().unwrap(), plan.totals);
            last = plan.cost;
        }
    }
}

#[test]
fn a_place_that_is_slower_than_computing_is_not_used() {
    let problem = problem(1000, 10, 10);
    let memory = best_plan(&Problem { holds: Holds::States, ..problem }, 300).unwrap().plan;
    let fast = best_plan(&with_beyond(problem, [0, 1000], [0.0, 2.0]), 300).unwrap().plan;
    let slow = best_plan(&with_beyond(problem, [0, 1000], [0.0, 1e6]), 300).unwrap().plan;
    assert!(fast.totals.executions() < memory.totals.executions() && fast.totals.disk.stores > 0);
    assert_eq!(slow, memory);
    // Between the two it is used with longer periods.
    let middling = best_plan(&with_beyond(problem, [0, 1000], [0.0, 60.0]), 300).unwrap().plan;
    assert!((1..fast.totals.disk.stores).contains(&middling.totals.disk.stores), "{middling:?}");
}
