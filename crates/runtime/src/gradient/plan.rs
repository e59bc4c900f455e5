//! Memory plans: which schedule each reversed loop gets, what it will cost, what more memory would buy.

use ebbtide_schedule::Totals;

use crate::gradient::tiers::Way;
use crate::size::bytes;
use std::fmt::Write as _;

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
    /// The greatest number of bytes beyond the caller's arrays and the returned derivatives.
    Bytes(u64),
    /// Revolve with this number of states and of iterations recorded at once, in every loop.
    Revolve {
        /// The number of states, the initial one included.
        slots: usize,
        /// Iterations recorded at once.
        block: u64,
    },
    /// A state every this many iterations, in every loop.
    Periodic {
        /// The number of iterations between two states.
        period: u64,
    },
}

/// One reversed loop of a plan.
#[derive(Clone, Debug)]
pub struct LoopPlan {
    /// How many reversed loops stand around it. It is then swept anew for each of their iterations.
    pub depth: usize,
    /// How often it is entered, where the numbers of iterations around it are known.
    pub entries: u64,
    /// The work of one iteration, inner loops included; the iteration of an innermost loop is 1.
    pub work: f64,
    /// The number of iterations, where it is known before the loop ends.
    pub steps: Option<u64>,
    /// The bytes of one state.
    pub state_bytes: u64,
    /// The bytes of the tape of one iteration.
    pub tape_bytes: u64,
    /// The name of the schedule.
    pub schedule: &'static str,
    /// What the schedule does on one entry; only its room where the number of iterations is not known.
    pub totals: Totals,
    /// The most bytes of states and tape, those of the loops inside it included.
    pub peak_bytes: u64,
    /// What half and double the memory would give, where the plan was made from a budget.
    pub neighbours: Option<(Option<f64>, f64)>,
    /// What it keeps beyond memory.
    pub away: Away,
}

/// States beyond the memory of the device: each goes there once and comes back once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Away {
    /// States in host memory.
    pub host_slots: u64,
    /// States on disk.
    pub disk_slots: u64,
    /// The bytes of those in host memory, and of what those on disk pass through.
    pub host_bytes: u64,
    /// The bytes of those on disk.
    pub disk_bytes: u64,
    /// The bytes of the device's memory that they pass through; its peak has them too.
    pub passage_bytes: u64,
}

impl Away {
    /// The states beyond memory of a schedule: in host memory first.
    pub(crate) fn of(totals: &Totals, way: &Way, state: u64) -> Away {
        let slots = totals.disk.peak_slots;
        let host_slots = slots.min(way.beyond[0].slots);
        let disk_slots = slots - host_slots;
        let through_host = if disk_slots > 0 { way.host_passage } else { 0 };
        Away {
            host_slots,
            disk_slots,
            host_bytes: host_slots * state + through_host,
            disk_bytes: disk_slots * state,
            passage_bytes: way.passage,
        }
    }
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
    /// What may be used of host memory beside that of the device, and of the disk.
    pub beyond: (Option<u64>, Option<u64>),
    /// What keeping every tape would take.
    pub store_all_bytes: u64,
    /// Outputs whose value is asked for, which the program only adds to, and which are not zero now.
    pub added_to: Vec<String>,
}

impl Plan {
    /// The most bytes that the run will hold beyond the caller's arrays.
    pub fn peak_bytes(&self) -> u64 {
        self.fixed_bytes + self.loops.iter().filter(|l| l.depth == 0).map(|l| l.peak_bytes).sum::<u64>()
    }

    /// The most bytes of host memory that the run will hold beside the memory of its device.
    pub fn host_bytes(&self) -> u64 {
        self.loops.iter().map(|l| l.away.host_bytes).sum()
    }

    /// The most bytes that the run will have on disk.
    pub fn disk_bytes(&self) -> u64 {
        self.loops.iter().map(|l| l.away.disk_bytes).sum()
    }

    /// How many iterations the run will run and reverse, those that are run again included, if all branches with loops are
    /// taken; `None` where the number of iterations of a loop is not known before it ends.
    pub fn passes(&self) -> Option<u64> {
        let of_loop =
            |l: &LoopPlan| Some(u128::from(l.entries) * (l.totals.executions() + u128::from(l.steps?)));
        let passes: Option<u128> = self.loops.iter().map(of_loop).sum();
        passes.and_then(|passes| passes.try_into().ok())
    }

    /// How many iterations there are to reverse, as [`Plan::passes`] counts them.
    pub(crate) fn to_reverse(&self) -> Option<u64> {
        let passes: Option<u128> =
            self.loops.iter().map(|l| Some(u128::from(l.entries) * u128::from(l.steps?))).sum();
        passes.and_then(|passes| passes.try_into().ok())
    }

    /// Forward work per work of the program itself: 1 means that nothing is recomputed.
    pub fn recompute_factor(&self) -> f64 {
        let done: f64 =
            self.loops.iter().map(|l| l.work * l.entries as f64 * l.totals.executions() as f64).sum();
        let outermost = self.loops.iter().filter(|l| l.depth == 0);
        let needed: f64 = outermost.map(|l| l.work * l.steps.unwrap_or(0) as f64).sum();
        if needed == 0.0 { 1.0 } else { done / needed }
    }

    /// The plan in words.
    pub fn explain(&self) -> String {
        let mut text = String::new();
        let kept = self.loops.iter().all(|l| l.steps == Some(l.totals.peak_tape));
        let without = if kept { "none: every tape is kept" } else { "none: schedules were chosen by hand" };
        let budget = self.budget.map_or(without.to_string(), bytes);
        let _ = writeln!(text, "budget           {budget}");
        let _ = writeln!(text, "peak             {}", bytes(self.peak_bytes()));
        let _ = writeln!(
            text,
            "  fixed          {} (working copies, shadows, temporaries)",
            bytes(self.fixed_bytes)
        );
        for name in &self.added_to {
            let _ = writeln!(text, "note             {}", crate::gradient::accumulated::note(name));
        }
        let (host, disk) = self.beyond;
        for (name, used, room) in
            [("host memory", self.host_bytes(), host), ("disk", self.disk_bytes(), disk)]
        {
            if used > 0 || room.is_some() {
                let room = room.map_or(String::new(), |room| format!(" of {}", bytes(room)));
                let _ = writeln!(text, "{name:<16} {}{room}", bytes(used));
            }
        }
        // Where a loop ends is not known before it does, nor is what depends on it.
        let open = self.loops.iter().any(|l| l.steps.is_none());
        let known = |text: String| if open { "known when the loops have ended".to_string() } else { text };
        let _ = writeln!(text, "store-all        {}", known(bytes(self.store_all_bytes)));
        let _ = writeln!(text, "recompute factor {}", known(format!("{:.3}", self.recompute_factor())));
        for (k, l) in self.loops.iter().enumerate() {
            let indent = "  ".repeat(l.depth);
            let _ = writeln!(
                text,
                "{indent}loop {k}: {}, {} with {} states of {} and the tape of {} iterations of {}{}",
                l.steps.map_or("a number of iterations that data decide".to_string(), |n| format!(
                    "{n} iterations"
                )),
                l.schedule,
                l.totals.memory.peak_slots,
                bytes(l.state_bytes),
                l.totals.peak_tape,
                bytes(l.tape_bytes),
                l.steps.map_or(String::new(), |_| format!("; body runs {} times", l.totals.executions())),
            );
            let Away { host_slots, disk_slots, passage_bytes, .. } = l.away;
            for (slots, place) in [(host_slots, "in host memory"), (disk_slots, "on disk")] {
                if slots > 0 {
                    let moved = bytes(slots * l.state_bytes);
                    let _ = writeln!(
                        text,
                        "{indent}        {slots} states {place}: {moved} go there and come back, through {} of memory",
                        bytes(passage_bytes)
                    );
                }
            }
            if let Some((half, double)) = l.neighbours {
                let half = half.map_or("does not fit".to_string(), |f| format!("{f:.3}"));
                let _ = writeln!(
                    text,
                    "{indent}        with half its memory {half}, with double {double:.3} runs per iteration"
                );
            }
        }
        text
    }
}
