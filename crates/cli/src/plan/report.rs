//! The plan as a table for people and as JSON.

use ebbtide_schedule::Method;
use serde::Serialize;

use super::outcome::{Outcome, Request};
use crate::size::Human;

/// The plan as JSON. `advances` are plain forward steps, the first sweep included; `records` are steps
/// executed with their tape kept.
#[derive(Serialize)]
struct Json {
    schedule: &'static str,
    steps: u64,
    slots: usize,
    block: u64,
    advances: u128,
    records: u128,
    reversals: u128,
    stores: u128,
    loads: u128,
    peak_slots: u64,
    peak_tape: u64,
    peak_bytes: Option<u128>,
    recompute_factor: f64,
    optimal: bool,
    loss: Option<f64>,
    disk_stores: u128,
    disk_loads: u128,
    disk_peak_slots: u64,
    with_half: Option<Box<Json>>,
    with_double: Option<Box<Json>>,
}

impl Json {
    fn new(steps: u64, outcome: &Outcome) -> Json {
        let totals = &outcome.totals;
        Json {
            schedule: outcome.schedule.kind(),
            steps,
            slots: outcome.slots,
            block: outcome.block,
            advances: totals.advances,
            records: totals.records,
            reversals: totals.reversals,
            stores: totals.memory.stores,
            loads: totals.memory.loads,
            peak_slots: totals.memory.peak_slots,
            peak_tape: totals.peak_tape,
            peak_bytes: outcome.peak_bytes,
            recompute_factor: totals.recompute_factor(),
            optimal: outcome.is_optimal(),
            loss: outcome.loss,
            disk_stores: totals.disk.stores,
            disk_loads: totals.disk.loads,
            disk_peak_slots: totals.disk.peak_slots,
            with_half: None,
            with_double: None,
        }
    }
}

impl Outcome {
    /// Whether no schedule of its kind does better. A periodic one is what it is.
    fn is_optimal(&self) -> bool {
        self.method == Method::Exact && self.schedule.kind() != "periodic"
    }

    /// How good the schedule is, in a few words.
    fn quality(&self) -> String {
        match (self.schedule.kind(), self.loss) {
            ("store-all", _) => "every step is recorded once and nothing is computed again".into(),
            ("multistage", _) if self.is_optimal() => "optimal in steps, writes and reads".into(),
            _ if self.is_optimal() => "the least recomputation".into(),
            ("periodic", _) => "no step is run more than twice".into(),
            ("online", _) => "as if the length were known only at the end".into(),
            ("multistage", Some(loss)) => {
                // Rounded up, but for the last bits of the division.
                let percent = ((loss - 1.0 - 1e-9) * 100.0).ceil().max(2.0);
                format!("periodic, within {percent} % of the optimum")
            }
            ("multistage", None) => "periodic; how close that is to the optimum is not known".into(),
            _ => "by a rule that stays within 2 % of the optimum".into(),
        }
    }
}

/// One JSON object.
pub fn json(
    request: &Request,
    outcome: &Outcome,
    neighbours: &[Option<Outcome>; 2],
) -> Result<String, serde_json::Error> {
    let [half, double] =
        neighbours.each_ref().map(|n| n.as_ref().map(|n| Box::new(Json::new(request.steps, n))));
    let json = Json { with_half: half, with_double: double, ..Json::new(request.steps, outcome) };
    serde_json::to_string_pretty(&json)
}

/// A table with one column for the plan and one for each neighbour.
pub fn table(request: &Request, outcome: &Outcome, neighbours: &[Option<Outcome>; 2]) -> String {
    let [half, double] = neighbours;
    let columns = [("half", half.as_ref()), ("this plan", Some(outcome)), ("double", double.as_ref())];
    let mut text = format!("{} steps, {}", grouped(request.steps.into()), outcome.schedule.kind());
    text += &format!(": {}\n", outcome.quality());
    let mut rows = vec![("", columns.map(|(title, _)| title.to_string()))];
    let mut row = |name: &'static str, value: &dyn Fn(&Outcome) -> String| {
        rows.push((name, columns.map(|(_, n)| n.map_or("-".into(), value))));
    };
    row("schedule", &|n| n.schedule.kind().to_string());
    row("slots", &|n| grouped(n.slots as u128));
    row("block", &|n| grouped(n.block.into()));
    if outcome.peak_bytes.is_some() {
        row("peak memory", &|n| n.peak_bytes.map_or("-".into(), |bytes| Human(bytes).to_string()));
    }
    row("peak states", &|n| grouped(n.totals.memory.peak_slots.into()));
    row("peak tape, steps", &|n| grouped(n.totals.peak_tape.into()));
    row("advances", &|n| grouped(n.totals.advances));
    row("runs of each step", &|n| format!("{:.3}", n.totals.recompute_factor()));
    row("stores", &|n| grouped(n.totals.memory.stores));
    row("loads", &|n| grouped(n.totals.memory.loads));
    if outcome.totals.disk.stores > 0 {
        row("states on disk", &|n| grouped(n.totals.disk.peak_slots.into()));
        row("disk writes", &|n| grouped(n.totals.disk.stores));
        row("disk reads", &|n| grouped(n.totals.disk.loads));
    }
    let widest = rows.iter().flat_map(|(_, cells)| cells.iter().map(String::len)).max().unwrap_or(0);
    let width = (widest + 2).max(16);
    for (name, [half, this, double]) in rows {
        text += &format!("\n{name:18}{half:>width$}{this:>width$}{double:>width$}");
    }
    text + "\n"
}

/// Digits in groups of three.
pub fn grouped(number: u128) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(' ');
        }
        text.push(digit);
    }
    text
}
