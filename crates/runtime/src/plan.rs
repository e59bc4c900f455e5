//! Memory plans: which schedule each reversed loop gets, what it will cost, what more memory would buy.

use std::fmt::Write as _;

use ebbtide_ir::ReverseHint;
use ebbtide_schedule::{
    AnySchedule, BestPlan, Costs, Holds, Online, Options, Periodic, Problem, Revolve, Shape, Sizes, StoreAll,
    Totals, best_plan,
};

use crate::error::{Error, Result};

/// How the memory of a gradient run is to be used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Budget {
    /// Keep every tape while that takes less than half of the memory that is free; else plan for that half and
    /// say so.
    #[default]
    Auto,
    /// Keep every tape.
    StoreAll,
    /// At most so many bytes beyond the caller's arrays and the returned derivatives.
    Bytes(u64),
    /// Revolve with so many states, so many passes recorded at once, in every loop.
    Revolve {
        /// The number of states, the initial one included.
        slots: usize,
        /// Passes recorded at once.
        block: u64,
    },
    /// A state every so many passes, in every loop.
    Periodic {
        /// The number of passes between two states.
        period: u64,
    },
}

/// One reversed loop of a plan.
#[derive(Clone, Debug)]
pub struct LoopPlan {
    /// The number of passes, where it is known before the loop ends.
    pub steps: Option<u64>,
    /// The bytes of one state.
    pub state_bytes: u64,
    /// The bytes of the tape of one pass.
    pub tape_bytes: u64,
    /// The name of the schedule.
    pub schedule: &'static str,
    /// What the schedule does; zero where the number of passes is not known.
    pub totals: Totals,
    /// The most bytes of states and tape.
    pub peak_bytes: u64,
    /// What half and double the memory would give, where the plan was made from a budget.
    pub neighbours: Option<(Option<f64>, f64)>,
}

/// What a gradient run will do. Making it runs nothing.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Bytes that every plan needs: working copies, shadows, temporaries.
    pub fixed_bytes: u64,
    /// The loops, in program order.
    pub loops: Vec<LoopPlan>,
    /// The budget, where there is one.
    pub budget: Option<u64>,
    /// What keeping every tape would take.
    pub store_all_bytes: u64,
}

impl Plan {
    /// The most bytes that the run will hold beyond the caller's arrays.
    pub fn peak_bytes(&self) -> u64 {
        self.fixed_bytes + self.loops.iter().map(|l| l.peak_bytes).sum::<u64>()
    }

    /// Forward executions of loop bodies per pass: 1 means that nothing is recomputed.
    pub fn recompute_factor(&self) -> f64 {
        let runs: u128 = self.loops.iter().map(|l| l.totals.executions()).sum();
        let passes: u128 = self.loops.iter().map(|l| u128::from(l.steps.unwrap_or(0))).sum();
        if passes == 0 { 1.0 } else { runs as f64 / passes as f64 }
    }

    /// The plan in words.
    pub fn explain(&self) -> String {
        let mut text = String::new();
        let budget = self.budget.map_or("none: every tape is kept".to_string(), bytes);
        let _ = writeln!(text, "budget           {budget}");
        let _ = writeln!(text, "peak             {}", bytes(self.peak_bytes()));
        let _ = writeln!(
            text,
            "  fixed          {} (working copies, shadows, temporaries)",
            bytes(self.fixed_bytes)
        );
        let _ = writeln!(text, "store-all        {}", bytes(self.store_all_bytes));
        let _ = writeln!(text, "recompute factor {:.3}", self.recompute_factor());
        for (k, l) in self.loops.iter().enumerate() {
            let _ = writeln!(
                text,
                "loop {k}: {} passes, {} with {} states of {} and the tape of {} passes of {}; body runs {} times",
                l.steps.map_or("unknown".to_string(), |n| n.to_string()),
                l.schedule,
                l.totals.memory.peak_slots,
                bytes(l.state_bytes),
                l.totals.peak_tape,
                bytes(l.tape_bytes),
                l.totals.executions(),
            );
            if let Some((half, double)) = l.neighbours {
                let half = half.map_or("does not fit".to_string(), |f| format!("{f:.3}"));
                let _ = writeln!(
                    text,
                    "        with half its memory {half}, with double {double:.3} runs per pass"
                );
            }
        }
        text
    }
}

/// A number of bytes for people.
fn bytes(n: u64) -> String {
    let units = ["B", "KiB", "MiB", "GiB", "TiB"];
    let mut value = n as f64;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < units.len() {
        value /= 1024.0;
        unit += 1;
    }
    if unit == 0 { format!("{n} B") } else { format!("{value:.2} {}", units[unit]) }
}

/// What has to be planned for one loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Need {
    /// `None` where it is known only at the end of the loop.
    pub steps: Option<u64>,
    pub state: u64,
    pub tape: u64,
    pub hint: Option<ReverseHint>,
}

/// A schedule for each loop.
pub(crate) fn plan(
    program: &str,
    needs: &[Need],
    fixed: u64,
    budget: Budget,
) -> Result<(Plan, Vec<AnySchedule>)> {
    let store_all = fixed + needs.iter().map(|n| n.steps.unwrap_or(0).saturating_mul(n.tape)).sum::<u64>();
    let mut plan = Plan { fixed_bytes: fixed, loops: Vec::new(), budget: None, store_all_bytes: store_all };
    let mut schedules = Vec::new();
    let budget = match budget {
        Budget::Auto => automatic(program, store_all),
        other => other,
    };
    let shares = match budget {
        Budget::Bytes(total) => {
            plan.budget = Some(total);
            Some(shares(program, needs, fixed, total)?)
        }
        _ => None,
    };
    for (k, need) in needs.iter().enumerate() {
        let fail =
            |e: ebbtide_schedule::Error| Error::Plan { program: program.to_string(), message: e.to_string() };
        if let Some(ReverseHint::Mixed(_)) = need.hint {
            let message =
                "`#[reverse(mixed = …)]` is not to be had for compiled loops yet: use `revolve`".to_string();
            return Err(Error::Plan { program: program.to_string(), message });
        }
        // What the source says of a loop goes before what is said of all of them.
        let budget = need.hint.map_or(budget, hinted);
        let Some(steps) = need.steps else {
            let (slots, block) = online_room(need, budget, shares.as_ref().map(|s| s[k]), fixed, program)?;
            plan.loops.push(LoopPlan {
                steps: None,
                state_bytes: need.state,
                tape_bytes: need.tape,
                schedule: "online",
                totals: Totals::default(),
                peak_bytes: slots as u64 * need.state + block * need.tape,
                neighbours: None,
            });
            schedules.push(Online::with(slots, Options::new().block(block)).map_err(fail)?.into());
            continue;
        };
        let (schedule, totals, neighbours): (AnySchedule, Totals, _) = match (budget, &shares) {
            (Budget::Bytes(_), Some(shares)) => {
                let best = best(need, steps, shares[k]).map_err(fail)?;
                let factor = |p: &ebbtide_schedule::Plan| p.totals.recompute_factor();
                let neighbours = (best.with_half.as_ref().map(factor), factor(&best.with_double));
                (best.plan.schedule().map_err(fail)?, best.plan.totals, Some(neighbours))
            }
            (Budget::Revolve { slots, block }, _) => {
                let schedule = Revolve::with(steps, slots, Options::new().block(block)).map_err(fail)?;
                let totals = schedule.totals();
                (schedule.into(), totals, None)
            }
            (Budget::Periodic { period }, _) => {
                let schedule = Periodic::new(steps, period).map_err(fail)?;
                let totals = schedule.totals();
                (schedule.into(), totals, None)
            }
            _ => {
                let schedule = StoreAll::new(steps).map_err(fail)?;
                let totals = schedule.totals();
                (schedule.into(), totals, None)
            }
        };
        plan.loops.push(LoopPlan {
            steps: Some(steps),
            state_bytes: need.state,
            tape_bytes: need.tape,
            schedule: schedule.kind(),
            totals,
            peak_bytes: totals.memory.peak_slots * need.state + totals.peak_tape * need.tape,
            neighbours,
        });
        schedules.push(schedule);
    }
    Ok((plan, schedules))
}

/// States and block for a loop of unknown length.
fn online_room(
    need: &Need,
    budget: Budget,
    share: Option<u64>,
    fixed: u64,
    program: &str,
) -> Result<(usize, u64)> {
    /// Finding the state to give up takes time in proportion to the number of states.
    const MOST_SLOTS: u64 = 1 << 10;
    let room = match (budget, share) {
        (Budget::Revolve { slots, block }, _) => return Ok((slots.max(1), block.max(1))),
        (Budget::Periodic { period }, _) => return Ok((64, period.max(1))),
        (Budget::Bytes(_), Some(share)) => share,
        _ => free_memory() / 2,
    };
    // A quarter for the tape of a block, the rest for states.
    let block = (room / 4).checked_div(need.tape).map_or(16, |b| b.clamp(1, 16));
    let left = room.checked_sub(block * need.tape).filter(|left| *left >= need.state);
    let Some(left) = left else {
        let minimum = fixed + need.state + need.tape;
        return Err(Error::BudgetTooSmall { program: program.to_string(), budget: room, minimum });
    };
    let slots = left.checked_div(need.state).unwrap_or(MOST_SLOTS).clamp(1, MOST_SLOTS);
    Ok((slots as usize, block))
}

/// What `#[reverse(…)]` asks for.
fn hinted(hint: ReverseHint) -> Budget {
    let slots = |n: u64| usize::try_from(n).unwrap_or(usize::MAX);
    match hint {
        ReverseHint::Periodic(period) => Budget::Periodic { period },
        // Where the length is known, Revolve is what an online schedule strives for.
        ReverseHint::Revolve(n) | ReverseHint::Online(n) => Budget::Revolve { slots: slots(n), block: 1 },
        _ => Budget::StoreAll,
    }
}

/// Store-all while it fits in half of what is free.
fn automatic(program: &str, store_all: u64) -> Budget {
    let half = free_memory() / 2;
    if store_all <= half {
        return Budget::StoreAll;
    }
    crate::warn(&format!(
        "gradient `{program}`: keeping every tape would take {}, more than half of what is free: planning for {}; \
         say `.memory(..)` to choose yourself",
        bytes(store_all),
        bytes(half)
    ));
    Budget::Bytes(half)
}

/// The bytes that the system says are available; a cautious guess where it says nothing.
fn free_memory() -> u64 {
    let info = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let available = info.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    let kib = available.and_then(|rest| rest.trim().trim_end_matches(" kB").parse::<u64>().ok());
    kib.map_or(2 << 30, |kib| kib << 10)
}

fn best(need: &Need, steps: u64, bytes: u64) -> std::result::Result<BestPlan, ebbtide_schedule::Error> {
    // Recording a pass writes as much as running it; copying a state costs a fraction of a pass.
    let costs = Costs { advance: 1.0, record: 1.1, reverse: 2.0, store: 0.5, load: 0.5, ..Costs::default() };
    best_plan(
        &Problem {
            steps,
            sizes: Sizes { state: need.state, tape: need.tape },
            costs,
            shape: Shape::RecordLast,
            holds: Holds::States,
        },
        bytes,
    )
}

/// Splits what the budget leaves between sibling loops: each gets its minimum, the rest goes, piece by piece, to
/// the loop that gains most from it.
fn shares(program: &str, needs: &[Need], fixed: u64, total: u64) -> Result<Vec<u64>> {
    let least: Vec<u64> = needs
        .iter()
        .map(|n| {
            n.steps.map_or(n.state + n.tape, |steps| (n.state + n.tape).min(steps.saturating_mul(n.tape)))
        })
        .collect();
    let minimum = fixed + least.iter().sum::<u64>();
    if total < minimum {
        return Err(Error::BudgetTooSmall { program: program.to_string(), budget: total, minimum });
    }
    let mut shares = least.clone();
    let mut rest = total - minimum;
    if let [_] = needs {
        return Ok(vec![shares[0] + rest]);
    }
    let cost = |k: usize, bytes: u64| match needs[k].steps {
        Some(steps) => best(&needs[k], steps, bytes).map_or(f64::INFINITY, |b| b.plan.cost),
        // Of a loop of unknown length it is known only that more states are better.
        None => 1e3 * (needs[k].state + needs[k].tape) as f64 / bytes.max(1) as f64,
    };
    while rest > 0 {
        let piece = (rest / 8).max(rest.min(1 << 12));
        let gain = |k: &usize| cost(*k, shares[*k]) - cost(*k, shares[*k] + piece);
        let winner = (0..needs.len()).max_by(|a, b| gain(a).total_cmp(&gain(b))).unwrap_or(0);
        shares[winner] += piece;
        rest -= piece;
    }
    Ok(shares)
}
