//! The report: tables as Markdown, everything as JSON, charts as SVG.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;

use serde::Serialize;

use crate::chart::{self, Group, Series, short};
use crate::compare::{C, OURS};
use crate::row::{Kind, Row};
use crate::seedloop::Curve;
use crate::tape::PerOperation;
use crate::yields::Costs;
use crate::{Result, machine};

/// Everything that was measured.
#[derive(Default, Serialize)]
pub struct Report {
    pub date: String,
    pub machine: String,
    /// The part of the processors' time that others took before the bench began.
    pub busy_share: f64,
    /// The workloads at the size of the table.
    pub rows: Vec<Row>,
    /// The same under a budget in bytes.
    pub budgets: Vec<Row>,
    /// Growing numbers of steps, and of cells.
    pub by_steps: Vec<Row>,
    pub by_cells: Vec<Row>,
    pub seedloop: Option<Curve>,
    /// What launches and yields cost.
    pub costs: Vec<(String, Costs)>,
    /// What an operation on an eager tape costs.
    pub tapes: Vec<(String, PerOperation)>,
    /// What was skipped, and why.
    pub skipped: Vec<String>,
}

impl Report {
    pub fn new() -> Report {
        let date = Command::new("date").args(["-u", "+%Y-%m-%d"]).output();
        let date = date.map(|d| String::from_utf8_lossy(&d.stdout).trim().to_string()).unwrap_or_default();
        Report { date, machine: machine::name(), busy_share: machine::busy_share(), ..Report::default() }
    }

    /// Writes `report.md`, `report.json` and the charts.
    pub fn write(&self, folder: &Path) -> Result<()> {
        fs::create_dir_all(folder)?;
        fs::write(folder.join("report.json"), serde_json::to_string_pretty(self)?)?;
        fs::write(folder.join("report.md"), self.markdown())?;
        for (name, svg) in self.charts() {
            fs::write(folder.join(name), svg)?;
        }
        Ok(())
    }

    fn workloads(&self) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::new();
        for row in &self.rows {
            if !names.contains(&row.workload.as_str()) {
                names.push(&row.workload);
            }
        }
        names
    }

    /// The time of a row over that of hand-written C with comparable memory on as many threads.
    fn ratio(&self, row: &Row) -> Option<f64> {
        let variant = match (row.kind, row.variant.as_str()) {
            (Kind::Primal, _) => "",
            (Kind::Gradient, "plain" | "store-all") => "store-all",
            (Kind::Gradient, _) => "sqrt",
        };
        let mut all = self.rows.iter().chain(&self.by_steps).chain(&self.by_cells);
        let same = |c: &&Row| {
            c.system == C
                && c.workload == row.workload
                && c.kind == row.kind
                && c.threads == row.threads
                && c.size() == row.size()
                && c.variant == variant
        };
        Some(row.seconds? / all.find(same)?.seconds?)
    }

    /// The table in short: one line per workload, the ratios of everyone.
    fn summary(&self, kind: Kind) -> String {
        let mut columns: Vec<(String, String)> = Vec::new();
        for row in self.rows.iter().filter(|row| row.kind == kind && row.threads == 1 && row.system != C) {
            let column = (row.system.clone(), row.variant.clone());
            if !columns.contains(&column) {
                columns.push(column);
            }
        }
        let heading = |(system, variant): &(String, String)| match variant.as_str() {
            "" => system.clone(),
            variant => format!("{system}, {variant}"),
        };
        let headings: Vec<String> = columns.iter().map(heading).collect();
        let mut text =
            format!("| workload | {} |\n|---|{}\n", headings.join(" | "), "---|".repeat(columns.len()));
        for workload in self.workloads() {
            let cells = columns.iter().map(|(system, variant)| {
                let cell = |threads: usize| {
                    let row = self.rows.iter().find(|row| {
                        row.workload == workload
                            && row.kind == kind
                            && row.threads == threads
                            && row.system == *system
                            && row.variant == *variant
                    })?;
                    Some(match self.ratio(row) {
                        Some(ratio) if row.note.is_none() => short(ratio),
                        Some(ratio) => format!("{} (disagrees)", short(ratio)),
                        None => "failed".to_string(),
                    })
                };
                match (cell(1), cell(2)) {
                    (Some(one), Some(two)) => format!("{one}; {two}"),
                    (Some(one), None) => one,
                    (None, _) => "–".to_string(),
                }
            });
            let cells: Vec<String> = cells.collect();
            let _ = writeln!(text, "| {workload} | {} |", cells.join(" | "));
        }
        text
    }

    fn details(&self, kind: Kind) -> String {
        let mut text = "| workload | size × steps | system | schedule | threads | time | × C | peak memory \
                        (metered) | compile | lines |\n|---|---|---|---|---|---|---|---|---|---|\n"
            .to_string();
        let of = |workload| {
            self.rows.iter().filter(move |row: &&Row| row.workload == workload && row.kind == kind)
        };
        for row in self.workloads().into_iter().flat_map(of) {
            let or_dash = |text: Option<String>| text.unwrap_or_else(|| "–".to_string());
            let memory = row.resident_bytes.map(|resident| match row.metered_bytes {
                Some(metered) => format!("{} ({})", bytes(resident), bytes(metered)),
                None => bytes(resident),
            });
            let _ = writeln!(
                text,
                "| {} | {} × {} | {} | {} | {} | {} | {} | {} | {} | {} |",
                row.workload,
                row.cells,
                row.steps,
                row.system,
                row.variant,
                row.threads,
                or_dash(row.seconds.map(time)),
                or_dash(self.ratio(row).map(short)),
                or_dash(memory),
                or_dash(row.compile_seconds.map(time)),
                or_dash(row.lines.map(|n| n.to_string())),
            );
        }
        text
    }

    fn markdown(&self) -> String {
        let mut text =
            format!("# Ebbtide against hand-written C and its peers\n\n{}, {}.\n", self.date, self.machine);
        text += "\nTime over that of hand-written, hand-vectorised C with a hand-derived adjoint and comparable \
                 memory (store-all, or a state every √n steps); smaller is better; one thread, and after the \
                 semicolon two. Each is the best of several runs; Ebbtide and C take turns in one process, each \
                 peer runs in its own, jitted and warm. Gradients and losses agree to 1e-5 unless marked.\n";
        let _ = write!(text, "\n## Gradients\n\n{}\n", self.summary(Kind::Gradient));
        let _ = write!(text, "\n## Programs themselves\n\n{}\n", self.summary(Kind::Primal));
        text += &self.budget_text();
        text += &self.seedloop_text();
        text += &self.cost_text();
        text += "\n## Growth\n\n![memory against steps](steps-memory.svg)\n![time against steps](steps-time.svg)\n\
                 ![time against cells](cells-time.svg)\n";
        text += "\n## Everything\n\nPeak memory is the rise of the resident set in the first run after compiling, in \
                 a process of its own; in brackets what Ebbtide's own meter counted.\n";
        let _ = write!(text, "\n### Gradients\n\n{}", self.details(Kind::Gradient));
        let _ = write!(text, "\n### Programs themselves\n\n{}", self.details(Kind::Primal));
        let all = self.rows.iter().chain(&self.by_steps).chain(&self.by_cells);
        let notes: Vec<String> = all
            .filter_map(|row| {
                let note = row.note.as_ref()?;
                Some(format!(
                    "{}, {} of {} ({}): {note}",
                    row.system,
                    row.kind.name(),
                    row.workload,
                    row.variant
                ))
            })
            .chain(self.skipped.iter().cloned())
            .collect();
        if !notes.is_empty() {
            let _ = write!(text, "\n## Skipped, failed, in disagreement\n\n- {}\n", notes.join("\n- "));
        }
        text
    }

    fn budget_text(&self) -> String {
        if self.budgets.is_empty() {
            return String::new();
        }
        let mut text =
            "\n## The budget holds\n\n| workload | budget | planned peak | metered peak | rise of the \
                        resident set, results included |\n|---|---|---|---|---|\n"
                .to_string();
        for row in &self.budgets {
            let show = |n: Option<u64>| n.map_or("–".to_string(), bytes);
            let budget = row.variant.strip_prefix("budget=").and_then(|n| n.parse().ok());
            let _ = writeln!(
                text,
                "| {} {}, {} steps | {} | {} | {} | {} |",
                row.workload,
                row.cells,
                row.steps,
                show(budget),
                show(row.planned_bytes),
                show(row.metered_bytes),
                show(row.resident_bytes)
            );
        }
        text
    }

    fn seedloop_text(&self) -> String {
        let Some(curve) = &self.seedloop else { return String::new() };
        let mut text = format!(
            "\n## Memory against time: seedloop\n\nStoring every variable of the body would take {}; Ebbtide's \
             store-all takes {} and {}. A pass of the program takes {}. Predicted is store-all and the passes run \
             again.\n\n![seedloop](seedloop.svg)\n\n| memory, of the baseline | budget | planned | metered | runs per \
             pass | time | × predicted | × store-all |\n|---|---|---|---|---|---|---|---|\n",
            bytes(curve.baseline_bytes),
            bytes(curve.store_all_bytes),
            time(curve.store_all_seconds),
            time(curve.pass_seconds)
        );
        for p in &curve.points {
            let _ = writeln!(
                text,
                "| {:.1} % | {} | {} | {} | {:.2} | {} | {:.2} | {:.2} |",
                100.0 * p.part,
                bytes(p.budget_bytes),
                bytes(p.planned_bytes),
                bytes(p.metered_bytes),
                p.recompute_factor,
                time(p.seconds),
                p.seconds / p.predicted_seconds,
                p.seconds / curve.store_all_seconds
            );
        }
        let at = |part: f64| curve.points.iter().find(|p| p.part == part);
        if let (Some(hundredth), Some(tenth)) = (at(0.01), at(0.1)) {
            let _ = writeln!(
                text,
                "\nWith 99 % less memory {:.2} × the predicted time (to be at most 1.1), with 90 % less {:.2} × that of \
                 store-all (to be at most 1.5).",
                hundredth.seconds / hundredth.predicted_seconds,
                tenth.seconds / curve.store_all_seconds
            );
        }
        text
    }

    fn cost_text(&self) -> String {
        let mut text = "\n## Launches, gated loops, yields\n\nMicroseconds on one thread.\n\n| | launch | pass of a \
                        gated loop with two small parallel tasks | launch, yield, clear, resume |\n|---|---|---|---|\n"
            .to_string();
        for (system, costs) in &self.costs {
            let _ = writeln!(
                text,
                "| {system} | {:.2} | {:.3} | {:.2} |",
                costs.launch, costs.gated_pass, costs.yield_round
            );
        }
        text += "\n## The eager tape\n\nNanoseconds per multiplication of two numbers, in a chain of 10 000.\n\n| | record | \
                 pull back | pull back, checkpointed |\n|---|---|---|---|\n";
        for (system, of) in &self.tapes {
            let numbers = [of.record, of.pull_back, of.pull_back_checkpointed];
            let _ = writeln!(text, "| {system} | {} |", numbers.map(|n| format!("{n:.0}")).join(" | "));
        }
        text
    }

    fn charts(&self) -> Vec<(&'static str, String)> {
        let mut charts = Vec::new();
        let group = |value: &dyn Fn(&Row) -> Option<f64>| -> Vec<Group> {
            let of = |workload: &&str| {
                let rows = self.rows.iter().filter(|row| {
                    row.workload == **workload && row.kind == Kind::Gradient && row.threads == 1
                });
                let bars =
                    rows.filter_map(|row| Some((format!("{}, {}", row.system, row.variant), value(row)?)));
                Group { name: workload.to_string(), bars: bars.collect() }
            };
            self.workloads().iter().map(of).collect()
        };
        let ratios = group(&|row| self.ratio(row).filter(|_| row.system != C));
        charts.push((
            "ratio.svg",
            chart::bars("Gradient: time over hand-written C", "one thread, log scale", &ratios),
        ));
        let memory = group(&|row| row.resident_bytes.map(|n| (n as f64 / 1e6).max(0.01)));
        charts.push(("memory.svg", chart::bars("Gradient: peak memory", "MB, log scale", &memory)));
        let per_step = |row: &Row| Some(row.seconds? * 1e6 / row.steps as f64);
        let megabytes = |row: &Row| Some(row.resident_bytes? as f64 / 1e6);
        let by_steps =
            |value: &dyn Fn(&Row) -> Option<f64>| series(&self.by_steps, |row| row.steps as f64, value);
        charts.push((
            "steps-memory.svg",
            chart::lines("pointwise: memory against steps", "steps", "MB", &by_steps(&megabytes)),
        ));
        charts.push((
            "steps-time.svg",
            chart::lines("pointwise: time against steps", "steps", "µs per step", &by_steps(&per_step)),
        ));
        let by_cells = series(&self.by_cells, |row| row.cells as f64, &per_step);
        charts.push((
            "cells-time.svg",
            chart::lines("Burgers: time against cells", "cells", "µs per step", &by_cells),
        ));
        if let Some(curve) = &self.seedloop {
            let measured = |p: &crate::seedloop::Point| (p.planned_bytes as f64 / 1e3, p.seconds * 1e3);
            let predicted =
                |p: &crate::seedloop::Point| (p.planned_bytes as f64 / 1e3, p.predicted_seconds * 1e3);
            let all = (curve.store_all_bytes as f64 / 1e3, curve.store_all_seconds * 1e3);
            let with_all = |points: Vec<(f64, f64)>| points.into_iter().chain([all]).collect();
            let lines = [
                Series {
                    name: "measured".to_string(),
                    points: with_all(curve.points.iter().map(measured).collect()),
                },
                Series {
                    name: "predicted from the cost of a pass".to_string(),
                    points: with_all(curve.points.iter().map(predicted).collect()),
                },
            ];
            charts.push(("seedloop.svg", chart::lines("seedloop: time against memory", "kB", "ms", &lines)));
        }
        charts
    }
}

/// Rows as lines, one for each system and variant.
fn series(rows: &[Row], x: impl Fn(&Row) -> f64, y: &dyn Fn(&Row) -> Option<f64>) -> Vec<Series> {
    let mut all: Vec<Series> = Vec::new();
    for row in rows {
        let Some(value) = y(row).filter(|value| *value > 0.0) else { continue };
        let name = format!("{}, {}", row.system, row.variant);
        match all.iter_mut().find(|series| series.name == name) {
            Some(series) => series.points.push((x(row), value)),
            None => all.push(Series { name, points: vec![(x(row), value)] }),
        }
    }
    all
}

fn bytes(n: u64) -> String {
    match n as f64 {
        n if n >= 1e9 => format!("{:.2} GB", n / 1e9),
        n if n >= 1e6 => format!("{:.1} MB", n / 1e6),
        n if n >= 1e3 => format!("{:.1} kB", n / 1e3),
        n => format!("{n} B"),
    }
}

fn time(seconds: f64) -> String {
    match seconds {
        s if s >= 1.0 => format!("{s:.2} s"),
        s if s >= 1e-3 => format!("{:.2} ms", s * 1e3),
        s => format!("{:.2} µs", s * 1e6),
    }
}

/// The line that is printed while the bench runs.
pub fn line(row: &Row, report: &Report) -> String {
    let ratio = report.ratio(row).map(short).unwrap_or_else(|| "–".to_string());
    let note = row.note.as_ref().map(|note| format!("  {note}")).unwrap_or_default();
    let system = if row.system == OURS { "Ebbtide" } else { &row.system };
    format!(
        "{:<10} {:<9} {:<11} {:<11} {} threads {:>12}  × C {:>6}{note}",
        row.workload,
        row.kind.name(),
        system,
        row.variant,
        row.threads,
        row.seconds.map(time).unwrap_or_else(|| "–".to_string()),
        ratio
    )
}
