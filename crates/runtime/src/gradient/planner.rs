//! Finds the plan of a gradient run: a schedule for each reversed loop, the loops inside it included.

mod budgets;
mod need;

use std::collections::BTreeMap;

use ebbtide_ir::{LoopId, ReverseHint};
use ebbtide_schedule::{
    AnySchedule, Costs, Family, Holds, Mixed, Online, Options, Periodic, Problem, Revolve, Shape, Sizes,
    StoreAll, Totals, Traffic, best_plan, cheapest_plan,
};

use crate::error::{Error, Result};
use crate::gradient::plan::{Away, Budget, LoopPlan, Plan};
use crate::gradient::tiers::{Reach, Way};
use budgets::{automatic, hinted, online_room};

pub(crate) use need::Need;

/// A schedule for each loop, and how many of its states beyond memory are on disk.
pub(crate) type Schedules = BTreeMap<LoopId, (AnySchedule, usize)>;

/// A plan, its schedules and what it is predicted to cost, in iterations of an innermost loop.
pub(crate) struct Found {
    pub plan: Plan,
    pub schedules: Schedules,
    pub cost: f64,
}

/// Plans a program whose outermost reversed loops are these, where so much memory is free, with what is beyond memory if
/// anything is.
pub(crate) fn plan(
    program: &str,
    needs: &[Need],
    fixed: u64,
    budget: Budget,
    free: u64,
    reach: Option<&Reach>,
) -> Result<Found> {
    plan_within(program, needs, fixed, budget, free, reach).map_err(|error| match error {
        Error::BudgetTooSmall { program, budget, minimum } => {
            let fits = |bytes| plan_within(&program, needs, fixed, Budget::Bytes(bytes), free, reach).is_ok();
            Error::BudgetTooSmall { minimum: least_that_fits(budget.max(minimum), fits), program, budget }
        }
        other => other,
    })
}

/// The least number of bytes that fits, where every larger one does: hinted loops take what they take, and only planning
/// tells how much that is. `from` where none does.
fn least_that_fits(from: u64, fits: impl Fn(u64) -> bool) -> u64 {
    if fits(from) {
        return from;
    }
    let (mut low, mut high) = (from, from.max(1));
    while !fits(high) {
        if high > u64::MAX / 2 {
            return from;
        }
        (low, high) = (high, 2 * high);
    }
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if fits(middle) { high = middle } else { low = middle }
    }
    high
}

fn plan_within(
    program: &str,
    needs: &[Need],
    fixed: u64,
    budget: Budget,
    free: u64,
    reach: Option<&Reach>,
) -> Result<Found> {
    let store_all = sum(fixed, needs.iter().map(Need::store_all));
    let budget = match budget {
        Budget::Auto => automatic(program, store_all, free),
        other => other,
    };
    let total = match budget {
        Budget::Bytes(total) => Some(total),
        _ => None,
    };
    let planner = Planner { program, budget, free };
    let mut trees = needs.iter().map(|need| planner.tree(need)).collect::<Result<Vec<_>>>()?;
    if let Some(reach) = reach {
        // Each loop gets room beyond memory in proportion to what it would keep, if it could.
        let all: f64 = needs.iter().map(|need| need.store_all() as f64).sum();
        for tree in &mut trees {
            tree.ways = reach.ways(tree.need.state, tree.need.store_all() as f64 / all.max(1.0));
        }
    }
    let shares = match total {
        Some(total) => planner.shares(&trees, fixed, total)?,
        None => vec![u64::MAX; needs.len()],
    };
    let mut found = Found {
        plan: Plan {
            fixed_bytes: fixed,
            loops: Vec::new(),
            budget: total,
            beyond: (None, None),
            store_all_bytes: store_all,
            added_to: Vec::new(),
        },
        schedules: Schedules::new(),
        cost: 0.0,
    };
    for (tree, share) in trees.iter().zip(shares) {
        let minimum = sum(fixed, needs.iter().map(Need::least));
        let too_small =
            || Error::BudgetTooSmall { program: program.to_string(), budget: total.unwrap_or(0), minimum };
        let node = planner.node(tree, share, Effort::Whole)?.ok_or_else(too_small)?;
        found.cost += node.cost;
        node.list(0, 1, &mut found);
    }
    Ok(found)
}

/// How much is looked at.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Effort {
    /// Plans in memory alone: to see what a share of it is worth.
    Sketch,
    /// Plans beyond memory too, and those for half and double the memory.
    Whole,
}

/// A loop that has been planned.
#[derive(Clone)]
struct Node {
    id: LoopId,
    plan: LoopPlan,
    schedule: AnySchedule,
    /// What sweeping it once is predicted to cost.
    cost: f64,
    inner: Vec<Node>,
}

impl Node {
    fn list(self, depth: usize, entries: u64, found: &mut Found) {
        let iterations = self.plan.steps.unwrap_or(1);
        found.plan.loops.push(LoopPlan { depth, entries, ..self.plan });
        let on_disk = usize::try_from(self.plan.away.disk_slots).unwrap_or(usize::MAX);
        found.schedules.insert(self.id, (self.schedule, on_disk));
        for node in self.inner {
            node.list(depth + 1, entries.saturating_mul(iterations), found);
        }
    }
}

/// What only some plans have.
#[derive(Default)]
struct Extras {
    away: Away,
    neighbours: Option<(Option<f64>, f64)>,
}

/// What the loops inside a loop can be given, and what they make of it.
struct Rung {
    bytes: u64,
    nodes: Vec<Node>,
}

/// A loop and, for the loops inside it, plans for a fixed series of bytes: whatever the budget is, they are the
/// same, so a larger budget has all the choices of a smaller one.
struct Tree<'a> {
    need: &'a Need,
    rungs: Vec<Rung>,
    /// How it may use what is beyond memory: only loops that are entered once do.
    ways: Vec<Way>,
}

struct Planner<'a> {
    program: &'a str,
    budget: Budget,
    /// Bytes of memory that are free.
    free: u64,
}

impl Planner<'_> {
    fn tree<'n>(&self, need: &'n Need) -> Result<Tree<'n>> {
        let inner = need.inner.iter().map(|n| self.tree(n)).collect::<Result<Vec<_>>>()?;
        let most = need.inner.iter().map(Need::most).max().unwrap_or(0);
        let mut bytes = need.inner.iter().map(Need::least).max().unwrap_or(0);
        let mut rungs: Vec<Rung> = Vec::new();
        loop {
            let nodes: Option<Vec<Node>> = match self.budget {
                Budget::Bytes(_) => {
                    inner.iter().map(|t| self.node(t, bytes, Effort::Sketch)).collect::<Result<_>>()?
                }
                // Schedules that do not look at bytes.
                _ => inner.iter().map(|t| self.node(t, u64::MAX, Effort::Sketch)).collect::<Result<_>>()?,
            };
            if let Some(nodes) = nodes {
                // Hinted loops take what they take.
                let beyond = |(node, need): (&Node, &Need)| node.plan.peak_bytes.saturating_sub(need.reused);
                let bytes = nodes.iter().zip(&need.inner).map(beyond).max().unwrap_or(0);
                rungs.push(Rung { bytes, nodes });
            }
            // Hinted loops may take more than any plan of ours would, and than the budget.
            let beyond_budget = matches!(self.budget, Budget::Bytes(total) if bytes > total);
            let known = !rungs.is_empty() || (beyond_budget && !need.has_inner_hint());
            let enough = known && (bytes >= most || bytes == 0 || beyond_budget);
            if enough || bytes == u64::MAX || !matches!(self.budget, Budget::Bytes(_)) {
                return Ok(Tree { need, rungs, ways: Vec::new() });
            }
            bytes = bytes.saturating_mul(2).max(1);
        }
    }

    /// The cheapest plan of a loop within a number of bytes.
    fn node(&self, tree: &Tree<'_>, share: u64, effort: Effort) -> Result<Option<Node>> {
        let mut best: Option<Node> = None;
        // The cheapest inner loops first: then what the others cost at least tells that they are not worth a look.
        for rung in tree.rungs.iter().rev() {
            let Some(own) = share.checked_sub(rung.bytes) else { continue };
            let least = least_cost(tree.need, &rung.nodes);
            if best.as_ref().is_some_and(|best| least > best.cost) {
                continue;
            }
            let Some(node) = self.own(tree, own, rung, effort)? else { continue };
            let better = |old: &Node| (node.cost, node.plan.peak_bytes) < (old.cost, old.plan.peak_bytes);
            if best.as_ref().is_none_or(better) {
                best = Some(node);
            }
        }
        Ok(best)
    }

    /// The cheapest plan of a loop itself, its inner loops being planned.
    fn own(&self, tree: &Tree<'_>, share: u64, rung: &Rung, effort: Effort) -> Result<Option<Node>> {
        let need = tree.need;
        let fail = |e: ebbtide_schedule::Error| Error::Plan {
            program: self.program.to_string(),
            message: e.to_string(),
        };
        // What the source says of a loop goes before what is said of all of them.
        let budget = need.hint.map_or(self.budget, hinted);
        let (costs, unit) = costs(need, &rung.nodes);
        let Some(steps) = need.steps else {
            let Some((slots, block)) = online_room(need, budget, share, self.free) else { return Ok(None) };
            let schedule = Online::with(slots, Options::new().block(block)).map_err(fail)?.into();
            let own =
                (slots as u64).saturating_mul(need.state).saturating_add(block.saturating_mul(need.tape));
            // Of a loop of unknown length it is known only that more states are better.
            let cost = 1e3 * need.work * (1.0 + (need.state + need.tape) as f64 / own.max(1) as f64);
            let memory = Traffic { peak_slots: slots as u64, ..Traffic::default() };
            let room = Totals { memory, peak_tape: block, ..Totals::default() };
            return Ok(self.finish(need, rung, schedule, room, own, share, cost, Extras::default()));
        };
        let mut extras = Extras::default();
        // Schedules count in tapes of one length. Where lengths differ, all of them may fit though as many of the longest do not.
        let budget = match budget {
            Budget::Bytes(_) if need.tapes <= share && need.tapes < steps.saturating_mul(need.tape) => {
                Budget::StoreAll
            }
            budget => budget,
        };
        let (schedule, totals, cost): (AnySchedule, Totals, f64) = match budget {
            Budget::Revolve { slots, .. } if matches!(need.hint, Some(ReverseHint::Mixed(_))) => {
                let schedule = Mixed::new(steps, slots).map_err(fail)?;
                let totals = schedule.totals();
                (schedule.into(), totals, totals.cost(&costs) * unit)
            }
            Budget::Bytes(_) => {
                let problem = Problem {
                    costs,
                    holds: Holds::States,
                    shape: Shape::RecordLast,
                    ..Problem::new(steps, Sizes { state: need.state, tape: need.tape })
                };
                let ways = if effort == Effort::Whole { &tree.ways[..] } else { &[] };
                let away = |way: &Way| Problem { beyond: way.beyond, passage: way.passage, ..problem };
                let mut best = cheapest_plan(&problem, share).ok().map(|plan| (plan, problem, None));
                for way in ways {
                    let problem = away(way);
                    if let Ok(plan) = cheapest_plan(&problem, share)
                        && best.as_ref().is_none_or(|(old, ..)| plan.cost < old.cost)
                    {
                        best = Some((plan, problem, Some(way)));
                    }
                }
                let Some((plan, problem, way)) = best else { return Ok(None) };
                if let (Family::Multistage { .. }, Some(way)) = (plan.family, way) {
                    extras.away = Away::of(&plan.totals, way, need.state);
                }
                if effort == Effort::Whole && rung.nodes.is_empty() {
                    extras.neighbours = best_plan(&problem, share).ok().map(|best| {
                        let factor = |p: &ebbtide_schedule::Plan| p.totals.recompute_factor();
                        (best.with_half.as_ref().map(factor), factor(&best.with_double))
                    });
                }
                (plan.schedule().map_err(fail)?, plan.totals, plan.cost * unit)
            }
            Budget::Revolve { slots, block } => {
                let schedule = Revolve::with(steps, slots, Options::new().block(block)).map_err(fail)?;
                let totals = schedule.totals();
                (schedule.into(), totals, totals.cost(&costs) * unit)
            }
            Budget::Periodic { period } => {
                let schedule = Periodic::new(steps, period).map_err(fail)?;
                let totals = schedule.totals();
                (schedule.into(), totals, totals.cost(&costs) * unit)
            }
            _ => {
                let schedule = StoreAll::new(steps).map_err(fail)?;
                let totals = schedule.totals();
                (schedule.into(), totals, totals.cost(&costs) * unit)
            }
        };
        let states = totals.memory.peak_slots.saturating_mul(need.state);
        let tapes = totals.peak_tape.saturating_mul(need.tape).min(need.tapes);
        let own = sum(states, [tapes, extras.away.passage_bytes]);
        Ok(self.finish(need, rung, schedule, totals, own, share, cost, extras))
    }

    #[expect(clippy::too_many_arguments, reason = "the parts of a node, put together in one place")]
    fn finish(
        &self,
        need: &Need,
        rung: &Rung,
        schedule: AnySchedule,
        totals: Totals,
        own: u64,
        share: u64,
        cost: f64,
        extras: Extras,
    ) -> Option<Node> {
        // A hint may ask for more than there is.
        (own <= share).then(|| Node {
            id: need.id,
            plan: LoopPlan {
                depth: 0,
                entries: 1,
                work: need.work,
                steps: need.steps,
                state_bytes: need.state,
                tape_bytes: need.tape,
                schedule: schedule.kind(),
                totals,
                peak_bytes: own.saturating_add(rung.bytes),
                neighbours: extras.neighbours,
                away: extras.away,
            },
            schedule,
            cost,
            inner: rung.nodes.clone(),
        })
    }

    /// Splits what the budget leaves between sibling loops: each gets its minimum, the rest goes, piece by piece,
    /// to the loop that gains most from it.
    fn shares(&self, trees: &[Tree<'_>], fixed: u64, total: u64) -> Result<Vec<u64>> {
        let mut least = Vec::with_capacity(trees.len());
        for tree in trees {
            // A hinted loop takes what it takes, budget or not, beside the least that the loops inside it take: with what
            // they would rather have, a larger budget would not fit where a smaller one does.
            let mut hinted: Option<u64> = None;
            for rung in tree.rungs.iter().filter(|_| tree.need.hint.is_some()) {
                let node = self.own(tree, u64::MAX, rung, Effort::Sketch)?;
                hinted =
                    node.map(|n| hinted.map_or(n.plan.peak_bytes, |h| h.min(n.plan.peak_bytes))).or(hinted);
            }
            let rung = tree.rungs.iter().map(|r| r.bytes).min().unwrap_or(0);
            least.push(hinted.unwrap_or(tree.need.own_least().saturating_add(rung)));
        }
        let minimum = sum(fixed, least.iter().copied());
        if total < minimum {
            return Err(Error::BudgetTooSmall { program: self.program.to_string(), budget: total, minimum });
        }
        let mut shares = least;
        let mut rest = total - minimum;
        if let [_] = trees {
            return Ok(vec![shares[0] + rest]);
        }
        let cost = |k: usize, bytes: u64| -> Result<f64> {
            Ok(self.node(&trees[k], bytes, Effort::Sketch)?.map_or(f64::INFINITY, |n| n.cost))
        };
        let mut now = Vec::with_capacity(trees.len());
        for (k, share) in shares.iter().enumerate() {
            now.push(cost(k, *share)?);
        }
        while rest > 0 {
            let piece = (rest / 8).max(rest.min(1 << 12));
            let mut winner: Option<(usize, f64)> = None;
            for k in 0..trees.len() {
                let with = cost(k, shares[k] + piece)?;
                if winner.is_none_or(|(w, best)| now[k] - with > now[w] - best) {
                    winner = Some((k, with));
                }
            }
            let Some((k, with)) = winner else { break };
            shares[k] += piece;
            now[k] = with;
            rest -= piece;
        }
        Ok(shares)
    }
}

/// Bytes, and more bytes; amounts that cannot be had are one number.
fn sum(bytes: u64, more: impl IntoIterator<Item = u64>) -> u64 {
    more.into_iter().fold(bytes, u64::saturating_add)
}

/// What an iteration of a loop and its reversal cost.
fn reversal(need: &Need, inner: &[Node]) -> f64 {
    if inner.is_empty() { 2.0 * need.work } else { 2.0 + inner.iter().map(|node| node.cost).sum::<f64>() }
}

/// What reversing a loop costs at least: every iteration is recorded and reversed.
fn least_cost(need: &Need, inner: &[Node]) -> f64 {
    need.steps.map_or(0.0, |steps| steps as f64 * (need.work + reversal(need, inner)))
}

/// Recording an iteration writes as much as running it; copying a state costs a fraction of an iteration. Planners take numbers of
/// ordinary size: the costs are in units of the number that comes with them.
fn costs(need: &Need, inner: &[Node]) -> (Costs, f64) {
    /// Larger costs have a larger unit.
    const ORDINARY: f64 = 1e15;
    let reverse = reversal(need, inner);
    let unit = (need.work.max(reverse) / ORDINARY).max(1.0);
    let costs = Costs {
        advance: need.work / unit,
        record: 1.1 * need.work / unit,
        reverse: reverse / unit,
        store: 0.5 / unit,
        load: 0.5 / unit,
        ..Costs::default()
    };
    (costs, unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn need(number: usize, steps: Option<u64>, inner: Vec<Need>) -> Need {
        let id = LoopId::from_index(number);
        let work = inner.iter().fold(1.0, |work, n| work + n.steps.unwrap_or(100) as f64 * n.work);
        let tapes = steps.unwrap_or(0).saturating_mul(1600);
        Need { id, steps, state: 800, tape: 1600, tapes, work, hint: None, reused: 0, inner }
    }

    /// Planning ends soon, whatever the numbers of iterations are, and has a plan wherever there is room for one.
    #[test]
    fn nests_with_very_many_iterations_are_planned() {
        for budget in [7199, 7200, 1 << 16, 1 << 40] {
            for innermost in [100, 1 << 36] {
                let middle = need(1, Some(1 << 36), vec![need(2, Some(innermost), Vec::new())]);
                let nest = need(0, Some(1 << 40), vec![middle]);
                let found = plan("nest", &[nest], 0, Budget::Bytes(budget), 1 << 40, None);
                match found {
                    Ok(found) => {
                        assert!(budget >= 7200 && found.cost.is_finite() && found.plan.loops.len() == 3)
                    }
                    Err(Error::BudgetTooSmall { minimum, .. }) => assert_eq!((budget, minimum), (7199, 7200)),
                    Err(error) => panic!("{error}"),
                }
            }
        }
    }
}
