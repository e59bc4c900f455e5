//! The cheapest plan within a number of bytes.
//!
//! The candidates for a larger budget contain those for a smaller one, and of them the cheapest is taken, so
//! more memory never gives a costlier plan. They are: store-all; Revolve with every block of a fixed
//! series and the most slots that fit beside it (every count of a fixed series where storing costs time, since
//! more slots need not be cheaper then), a coarse series first, then a fine one where it may be cheaper; Mixed where its
//! table is quickly made; and, where there is room beyond memory, Multistage with a state out there every period of a
//! fixed series, whose periods are reversed with every number of slots of a fixed series.
//!
//! Two levels, spaced evenly, each state beyond memory written once and read once: with plenty of room out there that
//! is what Aupy, Herrmann, Hovland & Robert (2016) prove to be optimal for costs that nothing hides, and what we take
//! for costs that computing hides as long as it takes longer.

use crate::{
    AnySchedule, Costs, Error, MAX_STEPS, Mixed, Multistage, Options, Revolve, Shape, Sizes, StoreAll,
    Totals, revolve,
};

/// What is to be reversed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Problem {
    /// The number of steps.
    pub steps: u64,
    /// The bytes of a state and of the tape of a step.
    pub sizes: Sizes,
    /// What the actions cost.
    pub costs: Costs,
    /// When the result of the run is known.
    pub shape: Shape,
    /// What a slot can hold.
    pub holds: Holds,
    /// Room beyond memory, the nearest first.
    pub beyond: [Beyond; 2],
    /// The bytes of memory through which states travel to what is beyond it and back.
    pub passage: u64,
}

/// Slots beyond memory, whose states are moved while the steps continue.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Beyond {
    /// States at one time.
    pub slots: u64,
    /// The time that writing one takes; it costs what computing does not hide.
    pub write: f64,
    /// The time that reading one takes; it costs what computing does not hide.
    pub read: f64,
}

/// What the slots of a driver can hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Holds {
    /// States alone: one run of consecutive tapes is live at a time.
    States,
    /// States, or the tapes of steps that are reversed later: [`Mixed`] plans are offered too.
    #[default]
    StatesOrTapes,
}

impl Problem {
    /// With the default costs, the last block recorded on the way.
    pub fn new(steps: u64, sizes: Sizes) -> Problem {
        Problem {
            steps,
            sizes,
            costs: Costs::default(),
            shape: Shape::RecordLast,
            holds: Holds::default(),
            beyond: [Beyond::default(); 2],
            passage: 0,
        }
    }
}

/// The kind of schedule that a plan uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Family {
    /// [`StoreAll`].
    StoreAll,
    /// [`Revolve`].
    Revolve,
    /// [`Mixed`].
    Mixed,
    /// [`Multistage`], its states beyond memory so many steps apart.
    Multistage {
        /// The number of steps.
        period: u64,
    },
}

/// A schedule, and what it takes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Plan {
    /// The kind of schedule.
    pub family: Family,
    /// The number of steps.
    pub steps: u64,
    /// The slots, the initial state included.
    pub slots: usize,
    /// The steps that are recorded at once, and when the result is known.
    pub options: Options,
    /// What it does.
    pub totals: Totals,
    /// The most bytes of states and tape that are live at one time.
    pub peak_bytes: u128,
    /// The predicted time.
    pub cost: f64,
}

impl Plan {
    /// The steps that are recorded at once.
    pub fn block(&self) -> u64 {
        self.options.block
    }

    /// The schedule itself.
    pub fn schedule(&self) -> Result<AnySchedule, Error> {
        Ok(match self.family {
            Family::StoreAll => StoreAll::new(self.steps)?.into(),
            Family::Revolve => Revolve::with(self.steps, self.slots, self.options)?.into(),
            Family::Mixed => Mixed::with(self.steps, self.slots, self.options)?.into(),
            Family::Multistage { period } => {
                let beyond = usize::try_from(self.totals.disk.peak_slots).unwrap_or(usize::MAX);
                Multistage::spaced(self.steps, period, self.slots, beyond, self.options)?.into()
            }
        })
    }
}

/// The cheapest plan within a budget, and its neighbours.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BestPlan {
    /// The cheapest plan.
    pub plan: Plan,
    /// The cheapest plan with half the budget; `None` if that is below the minimum.
    pub with_half: Option<Plan>,
    /// The cheapest plan with double the budget.
    pub with_double: Plan,
    /// The least number of bytes that works.
    pub minimum: u128,
}

/// The kind of schedule, the slots and the block that fit `budget` bytes with the least predicted cost.
///
/// The budget counts stored states and live tape; the state at hand is the caller's own.
///
/// ```
/// use ebbtide_schedule::{best_plan, Problem, Sizes};
///
/// let problem = Problem::new(1000, Sizes { state: 1 << 20, tape: 1 << 20 });
/// let best = best_plan(&problem, 64 << 20)?;
/// assert!(best.plan.peak_bytes <= 64 << 20);
/// assert!(best.with_double.cost <= best.plan.cost);
/// let error = best_plan(&problem, 1 << 20).unwrap_err();
/// assert!(error.to_string().contains("the least that works is 2.00 MiB (2097152 bytes)"));
/// # Ok::<(), ebbtide_schedule::Error>(())
/// ```
pub fn best_plan(problem: &Problem, budget: u64) -> Result<BestPlan, Error> {
    check(problem)?;
    let minimum = minimum(problem);
    let plan = cheapest(problem, budget).ok_or(Error::BudgetTooSmall { budget, minimum })?;
    Ok(BestPlan {
        plan,
        with_half: cheapest(problem, budget / 2),
        with_double: cheapest(problem, budget.saturating_mul(2)).unwrap_or(plan),
        minimum,
    })
}

/// The plan of [`best_plan`], without its neighbours.
pub fn cheapest_plan(problem: &Problem, budget: u64) -> Result<Plan, Error> {
    check(problem)?;
    cheapest(problem, budget).ok_or_else(|| Error::BudgetTooSmall { budget, minimum: minimum(problem) })
}

fn check(problem: &Problem) -> Result<(), Error> {
    if problem.steps > MAX_STEPS {
        return Err(Error::TooManySteps { steps: problem.steps });
    }
    let costs = &problem.costs;
    for (what, cost) in [
        ("advance", costs.advance),
        ("record", costs.record),
        ("reverse", costs.reverse),
        ("store", costs.store),
        ("load", costs.load),
        ("write", problem.beyond[0].write + problem.beyond[1].write),
        ("read", problem.beyond[0].read + problem.beyond[1].read),
    ] {
        if !(0.0..1e18).contains(&cost) {
            return Err(Error::BadCost { what });
        }
    }
    Ok(())
}

/// The bytes of the leanest plan: one state and the tape of one step, or the whole tape.
fn minimum(problem: &Problem) -> u128 {
    let Problem { steps, sizes, shape, .. } = *problem;
    let all = sizes.bytes(0, steps);
    match (steps, shape) {
        (0, _) => 0,
        (1, Shape::RecordLast) => all,
        (_, Shape::RecordLast) => all.min(sizes.bytes(1, 1)),
        (_, Shape::PrimalFirst) => sizes.bytes(1, 1),
    }
}

fn cheapest(problem: &Problem, budget: u64) -> Option<Plan> {
    let all = store_all(problem).filter(|plan| plan.peak_bytes <= u128::from(budget));
    if all.is_some() {
        // Every plan records and reverses each step once; this one does nothing else.
        return all;
    }
    let mut best: Option<Plan> = None;
    let offer = |best: &mut Option<Plan>, plan: Option<Plan>| {
        if let Some(plan) = plan.filter(|plan| plan.peak_bytes <= u128::from(budget)) {
            let better = |old: &Plan| (plan.cost, plan.peak_bytes) < (old.cost, old.peak_bytes);
            if best.as_ref().is_none_or(better) {
                *best = Some(plan);
            }
        }
    };
    for block in series(problem.steps.max(1)) {
        for slots in slot_counts(problem, budget, problem.sizes.state.into(), block, u64::MAX) {
            offer(&mut best, revolve_plan(problem, slots, block));
        }
        let mixed = mixed_slots(problem, block).filter(|_| problem.holds == Holds::StatesOrTapes);
        if let Some(most) = mixed {
            let room = u128::from(problem.sizes.state).max(problem.sizes.bytes(0, block));
            for slots in slot_counts(problem, budget, room, block, most) {
                offer(&mut best, mixed_plan(problem, slots, block));
            }
        }
    }
    for block in fine_series(problem.steps.max(1)) {
        let Some(most) = fitting(problem, budget, problem.sizes.state.into(), block) else { break };
        // Most are not worth a closer look.
        let least = least_revolve(problem, most, block);
        if best.as_ref().is_some_and(|best| least >= best.cost) {
            continue;
        }
        for slots in counts(problem, fine_series(problem.steps.max(1)), most) {
            offer(&mut best, revolve_plan(problem, slots, block));
        }
    }
    if problem.beyond.iter().any(|beyond| beyond.slots > 0) {
        for block in series(problem.steps.max(1)) {
            for slots in few_slots(problem, budget, block) {
                for blocks in series(problem.steps.div_ceil(block)) {
                    let period = blocks.saturating_mul(block);
                    // Most are not worth a closer look.
                    let least = least_beyond(problem, slots, block, period);
                    if best.as_ref().is_none_or(|best| least < best.cost) {
                        offer(&mut best, multistage_plan(problem, slots, block, period));
                    }
                }
            }
        }
    }
    best
}

/// None, and powers of two, as many as fit beside a block and the passage to what is beyond memory.
fn few_slots(problem: &Problem, budget: u64, block: u64) -> impl Iterator<Item = usize> {
    let taken = problem.sizes.bytes(0, block.min(problem.steps)) + u128::from(problem.passage);
    let left = u128::from(budget).checked_sub(taken);
    let state = u128::from(problem.sizes.state);
    let most = usize::try_from(problem.steps).unwrap_or(usize::MAX);
    let fits = move |slots: &usize| *slots <= most && left.is_some_and(|left| *slots as u128 * state <= left);
    std::iter::once(0).chain((0..40).map(|power| 1 << power)).take_while(fits)
}

/// 1 to 16, then 25 % apart, up to `most` and with it.
fn series(most: u64) -> impl Iterator<Item = u64> {
    let next = move |&n: &u64| {
        (n < most).then(|| (n + (n / 4).max(1).min(if n < 16 { 1 } else { u64::MAX })).min(most))
    };
    std::iter::successors(Some(1), next)
}

/// 1 to 64, then 3 % apart, up to `most` and with it.
fn fine_series(most: u64) -> impl Iterator<Item = u64> {
    let next = move |&n: &u64| (n < most).then(|| (n + (n / 32).max(1)).min(most));
    std::iter::successors(Some(1), next)
}

/// The numbers of slots to try, each slot taking `room` bytes.
fn slot_counts(problem: &Problem, budget: u64, room: u128, block: u64, most: u64) -> Vec<usize> {
    let Some(fitting) = fitting(problem, budget, room, block) else { return Vec::new() };
    let most = most.min(problem.steps.max(1));
    counts(problem, series(most), fitting.min(usize::try_from(most).unwrap_or(usize::MAX)))
}

/// The most slots of `room` bytes that fit beside a block; `None` where it does not fit itself.
fn fitting(problem: &Problem, budget: u64, room: u128, block: u64) -> Option<usize> {
    let left = u128::from(budget).checked_sub(problem.sizes.bytes(0, block.min(problem.steps)))?;
    let fitting = left.checked_div(room).unwrap_or(u128::MAX).min(problem.steps.max(1).into());
    Some(usize::try_from(fitting).unwrap_or(usize::MAX))
}

/// The numbers of slots to try out of a series: up to as many as fit.
fn counts(problem: &Problem, series: impl Iterator<Item = u64>, fitting: usize) -> Vec<usize> {
    if problem.costs.store == 0.0 && problem.costs.load == 0.0 {
        // More slots are never costlier.
        return vec![fitting];
    }
    let counts = series.map(|count| usize::try_from(count).unwrap_or(usize::MAX));
    std::iter::once(0).chain(counts).take_while(|&count| count <= fitting).collect()
}

/// The most slots for which a Mixed plan with this block is quickly made: few units, whole blocks only.
fn mixed_slots(problem: &Problem, block: u64) -> Option<u64> {
    let units = problem.steps.div_ceil(block) + 1;
    let fits = units <= 1000 && problem.steps > block && (block == 1 || block.is_power_of_two());
    fits.then(|| (50_000_000 / (units * units)).min(units))
}

fn store_all(problem: &Problem) -> Option<Plan> {
    let steps = problem.steps;
    (problem.shape == Shape::RecordLast || steps == 0).then_some(())?;
    let totals = StoreAll::new(steps).ok()?.totals();
    Some(finish(
        problem,
        Family::StoreAll,
        0,
        Options::new().block(steps.max(1)),
        totals,
        problem.sizes.bytes(0, steps),
    ))
}

fn revolve_plan(problem: &Problem, slots: usize, block: u64) -> Option<Plan> {
    let options = Options::new().block(block).shape(problem.shape).check(problem.steps).ok()?;
    let totals = revolve::totals(problem.steps, slots, options)?;
    let bytes = problem.sizes.bytes(totals.memory.peak_slots, totals.peak_tape);
    Some(finish(problem, Family::Revolve, slots, options, totals, bytes))
}

/// What a Revolve plan with at most so many slots costs at least: its steps, and each state loaded once.
fn least_revolve(problem: &Problem, slots: usize, block: u64) -> f64 {
    let Costs { advance, record, reverse, load, .. } = problem.costs;
    let steps = Options::new().block(block).shape(problem.shape).virtual_steps(problem.steps);
    let advances = revolve::advances_in_blocks(steps, slots, block).map_or(f64::INFINITY, |n| n as f64);
    let loads = steps.div_ceil(block).saturating_sub(1) as f64;
    advance * advances + problem.steps as f64 * (record + reverse) + loads * load
}

/// What a Multistage plan costs at least: its steps, and the copies of states on their way, if nothing waits for them.
fn least_beyond(problem: &Problem, slots: usize, block: u64, period: u64) -> f64 {
    let Costs { advance, record, reverse, store, load, .. } = problem.costs;
    let away = problem.steps.saturating_sub(1) / period;
    let within = revolve::advances_in_blocks(period, slots, block).map_or(f64::INFINITY, |n| n as f64);
    let advances = away as f64 * (period as f64 + within);
    advance * advances + problem.steps as f64 * (record + reverse) + away as f64 * (store + load)
}

fn multistage_plan(problem: &Problem, slots: usize, block: u64, period: u64) -> Option<Plan> {
    let options = Options::new().block(block).shape(problem.shape).check(problem.steps).ok()?;
    let blocks = period.div_ceil(block);
    // More slots than a period has use for are the plan of fewer.
    if period >= problem.steps || (slots as u64 >= blocks && slots > 0) {
        return None;
    }
    let schedule = Multistage::spaced(problem.steps, period, slots, usize::MAX, options).ok()?;
    let totals = schedule.totals();
    let [near, far] = problem.beyond;
    let away = totals.disk.peak_slots;
    if away == 0 || away > near.slots.saturating_add(far.slots) {
        return None;
    }
    let peak = problem.sizes.bytes(totals.memory.peak_slots, totals.peak_tape) + u128::from(problem.passage);
    let mut plan = finish(problem, Family::Multistage { period }, slots, options, totals, peak);
    // To and from the passage a state is copied like any other; then it travels while steps go on, a period of them
    // after each write, the reversal of a period beside each read.
    let Costs { advance, store, load, .. } = problem.costs;
    let gap = schedule.between(period).cost(&problem.costs);
    let waits = |beyond: Beyond| {
        (beyond.write - period as f64 * advance).max(0.0) + (beyond.read - gap).max(0.0) + store + load
    };
    let in_near = away.min(near.slots);
    let mut cost = plan.cost;
    for (count, beyond) in [(in_near, near), (away - in_near, far)] {
        if count > 0 {
            cost += count as f64 * waits(beyond);
        }
    }
    plan.cost = cost;
    Some(plan)
}

fn mixed_plan(problem: &Problem, slots: usize, block: u64) -> Option<Plan> {
    let options = Options::new().block(block).shape(problem.shape).check(problem.steps).ok()?;
    let totals = Mixed::with(problem.steps, slots, options).ok()?.totals();
    // A slot has room for either, whichever it holds.
    let room = u128::from(problem.sizes.state).max(problem.sizes.bytes(0, block));
    let bytes = room * slots as u128 + problem.sizes.bytes(0, block);
    Some(finish(problem, Family::Mixed, slots, options, totals, bytes))
}

fn finish(
    problem: &Problem,
    family: Family,
    slots: usize,
    options: Options,
    totals: Totals,
    peak_bytes: u128,
) -> Plan {
    let cost = totals.cost(&problem.costs);
    Plan { family, steps: problem.steps, slots, options, totals, peak_bytes, cost }
}
