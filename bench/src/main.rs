//! Ebbtide against hand-written C and its peers: the same workloads in one run, as ratios.
//!
//! `bench/run [--quick] [--no-peers] [--only WORKLOAD]` measures everything and writes `bench/out/report.md`,
//! `report.json` and charts. `bench/run --corpus [--quick] [--only PROGRAM]` prints the table of the corpus, programs of others
//! in their natural form. `bench/run source WORKLOAD` prints the generated code of a gradient.

mod by_hand;
mod case;
mod chart;
mod compare;
#[path = "../corpus/mod.rs"]
mod corpus;
mod machine;
mod ours;
mod peers;
mod reference;
mod report;
mod resident;
mod row;
mod seedloop;
mod tape;
#[cfg(test)]
mod tests;
mod workloads;
mod yields;

use std::path::Path;
use std::rc::Rc;
use std::time::{Duration, Instant};

use ebbtide::prelude::*;
use ebbtide_cpu::{Cache, Optimize, Options};

use compare::{Bench, Keep, OURS};
use peers::{Offer, Peer};
use reference::Reference;
use report::Report;
use row::{Kind, Row};
use workloads::{Size, Workload};

type Error = Box<dyn std::error::Error>;
type Result<T> = std::result::Result<T, Error>;

/// From here on the wall clock says nothing about two threads.
const TOO_BUSY: f64 = 0.1;

/// How much is measured.
struct Wish {
    quick: bool,
    peers: bool,
    only: Option<Workload>,
}

impl Wish {
    fn read(words: &[String]) -> Result<Wish> {
        let mut wish = Wish { quick: false, peers: true, only: None };
        let mut words = words.iter();
        while let Some(word) = words.next() {
            match word.as_str() {
                "--quick" => wish.quick = true,
                "--no-peers" => wish.peers = false,
                "--only" => {
                    let name = words.next().ok_or("--only: which workload?")?;
                    wish.only = Some(Workload::named(name).ok_or_else(|| format!("no workload {name}"))?);
                }
                other => return Err(format!("{other}: not known; see bench/README.md").into()),
            }
        }
        Ok(wish)
    }

    fn workloads(&self) -> impl Iterator<Item = Workload> {
        let only = self.only;
        let small = self.quick;
        Workload::ALL
            .into_iter()
            .filter(move |workload| only.is_none_or(|only| only == *workload))
            .filter(move |workload| !(small && workload.is_large()))
    }

    /// How long each peer may take, and runs at least.
    fn limits(&self) -> (Duration, f64) {
        if self.quick { (Duration::from_secs(20), 0.2) } else { (Duration::from_secs(300), 3.0) }
    }
}

/// Adds rows to the table and prints them.
fn add(report: &mut Report, rows: Vec<Row>) {
    let known = report.rows.len();
    report.rows.extend(rows);
    for row in &report.rows[known..] {
        println!("{}", report::line(row, report));
    }
}

/// Everything about one workload that needs no peer.
fn measure(bench: &Bench, workload: Workload, wish: &Wish, report: &mut Report) -> Result<()> {
    let size = workload.size();
    let two = workload.is_parallel() && report.busy_share < TOO_BUSY;
    let threads = if two { &[1, 2][..] } else { &[1] };
    let compile = bench.compile_seconds(workload)?;
    for &threads in threads {
        let rows = bench.primal(workload, size, threads)?;
        add(report, rows);
        for keep in [Keep::StoreAll, Keep::Sqrt] {
            let mut rows = bench.gradient(workload, size, keep, threads)?;
            if threads == 1 {
                rows[0].compile_seconds = Some(compile);
                for row in &mut rows {
                    let memory = bench.memory(&row.system, workload, size, keep)?;
                    row.resident_bytes = memory.resident_bytes;
                    row.metered_bytes = memory.metered_bytes;
                }
            }
            add(report, rows);
        }
    }
    if workload == Workload::Wave {
        let budgets: &[u64] = if wish.quick { &[32] } else { &[16, 32, 64, 128] };
        for mebibytes in budgets {
            let row = bench.memory(OURS, workload, size, Keep::Bytes(mebibytes << 20))?;
            report.budgets.push(row);
        }
    }
    if workload == Workload::Seedloop {
        report.seedloop = Some(seedloop::curve(bench)?);
    }
    Ok(())
}

/// How time and memory grow with the number of steps and of cells.
fn grow(bench: &Bench, wish: &Wish, peers: &[Peer], report: &mut Report) -> Result<()> {
    let steps: &[usize] =
        if wish.quick { &[100, 1000, 10_000] } else { &[100, 1000, 10_000, 100_000, 1_000_000] };
    let cells: &[usize] = if wish.quick { &[1000, 100_000] } else { &[1000, 10_000, 100_000, 1_000_000] };
    let by_steps = steps.iter().map(|&steps| (Workload::Pointwise, Size { cells: 100, steps }));
    let by_cells = cells.iter().map(|&cells| (Workload::Burgers, Size { cells, steps: 100 }));
    for (workload, size) in by_steps.chain(by_cells) {
        if wish.only.is_some_and(|only| only != workload) {
            continue;
        }
        let mut rows = Vec::new();
        for keep in [Keep::StoreAll, Keep::Sqrt] {
            rows.extend(bench.gradient(workload, size, keep, 1)?);
        }
        for row in &mut rows {
            let keep = if row.variant == "sqrt" { Keep::Sqrt } else { Keep::StoreAll };
            row.resident_bytes = bench.memory(&row.system, workload, size, keep)?.resident_bytes;
        }
        let (limit, seconds) = wish.limits();
        for peer in peers.iter().filter(|peer| peer.name == "JAX" && !wish.quick) {
            for offer in of(peer, workload, Kind::Gradient) {
                rows.push(peer.measure(offer, size, seconds, limit));
            }
        }
        println!("growth: {} {} × {}", workload.name(), size.cells, size.steps);
        match workload {
            Workload::Burgers => report.by_cells.extend(rows),
            _ => report.by_steps.extend(rows),
        }
    }
    Ok(())
}

fn of(peer: &Peer, workload: Workload, kind: Kind) -> impl Iterator<Item = &Offer> {
    peer.offers.iter().filter(move |offer| offer.workload == workload.name() && offer.kind == kind)
}

/// Measures Ebbtide and C once more, next to the peers, and keeps the better time of each: what a machine gives
/// changes within minutes.
fn measure_again(
    bench: &Bench,
    workload: Workload,
    kind: Kind,
    variant: &str,
    report: &mut Report,
) -> Result<()> {
    let size = workload.size();
    let again = match (kind, variant) {
        (Kind::Primal, _) => bench.primal(workload, size, 1)?,
        (Kind::Gradient, "plain") => bench.gradient(workload, size, Keep::StoreAll, 1)?,
        (Kind::Gradient, _) => bench.gradient(workload, size, Keep::Sqrt, 1)?,
    };
    for new in again {
        let same = |row: &&mut Row| {
            (&row.system, &row.workload, row.kind, &row.variant, row.threads)
                == (&new.system, &new.workload, new.kind, &new.variant, new.threads)
        };
        if let Some(row) = report.rows.iter_mut().find(same) {
            row.seconds = [row.seconds, new.seconds].into_iter().flatten().reduce(f64::min);
        }
    }
    Ok(())
}

/// The peers on the workloads of the table. A quick run ends in time, whoever is left.
fn ask_peers(
    bench: &Bench,
    peers: &[Peer],
    wish: &Wish,
    deadline: Option<Instant>,
    report: &mut Report,
) -> Result<()> {
    let (limit, seconds) = wish.limits();
    // What matters most comes first.
    let turns = [(Kind::Gradient, "plain"), (Kind::Gradient, "checkpoint"), (Kind::Primal, "")];
    for (kind, variant) in turns {
        for workload in wish.workloads().filter(|workload| workload.yardstick() == *workload) {
            if !peers.is_empty() && deadline.is_none_or(|deadline| Instant::now() < deadline) {
                measure_again(bench, workload, kind, variant, report)?;
            }
            for peer in peers {
                let Some(offer) = of(peer, workload, kind).find(|offer| offer.variant == variant) else {
                    continue;
                };
                if deadline.is_some_and(|deadline| Instant::now() > deadline) {
                    let what = format!("{}, {} of {}", peer.name, kind.name(), workload.name());
                    report.skipped.push(format!("{what} ({variant}): no time left in a quick run"));
                    continue;
                }
                let mut row = peer.measure(offer, workload.size(), seconds, limit);
                let ours = |ours: &&Row| {
                    ours.system == OURS && ours.workload == workload.name() && ours.kind == kind
                };
                if let (Some(ours), None) = (report.rows.iter().find(ours), &row.note) {
                    row.compare(ours);
                }
                add(report, vec![row]);
            }
        }
    }
    Ok(())
}

fn source(name: Option<&String>) -> Result<()> {
    let workload = name.and_then(|name| Workload::named(name)).ok_or("source: which workload?")?;
    let (device, _) = Options::new().threads(1).optimize(Optimize::Always).build()?;
    println!("{}", ours::gradient(workload, workload.size(), &device, Budget::StoreAll)?.source);
    Ok(())
}

fn main() -> Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match words.first().map(String::as_str) {
        Some("memory") => return compare::in_this_process(&words[1..]),
        Some("source") => return source(words.get(1)),
        Some("--corpus") => return corpus::run(&words[1..]),
        _ => {}
    }
    let wish = Wish::read(&words)?;
    let begun = Instant::now();
    let folder = tempfile::tempdir()?;
    let at_least = Duration::from_millis(if wish.quick { 500 } else { 2000 });
    let bench = Bench { reference: Rc::new(Reference::build()?), cache: Cache::at(folder.path()), at_least };
    let home = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut report = Report::new();
    println!("{}, {}", report.date, report.machine);
    if report.busy_share >= TOO_BUSY {
        let percent = 100.0 * report.busy_share;
        let note = format!("two threads: others kept the machine {percent:.0} % busy, it needs a quiet one");
        println!("{note}");
        report.skipped.push(note);
    }
    for workload in wish.workloads() {
        measure(&bench, workload, &wish, &mut report)?;
    }
    report.costs.push((OURS.to_string(), yields::costs(&bench)?));
    report.tapes.push((OURS.to_string(), tape::per_operation(&bench)?));
    let peers = if wish.peers { peers::installed(home) } else { Vec::new() };
    for peer in &peers {
        match peer.costs() {
            Some(Ok(costs)) => report.costs.push((peer.name.to_string(), costs)),
            Some(Err(error)) => report.skipped.push(format!("{}: costs of yields: {error}", peer.name)),
            None => {}
        }
        match peer.tape() {
            Some(Ok(of)) => report.tapes.push((peer.name.to_string(), of)),
            Some(Err(error)) => report.skipped.push(format!("{}: its tape: {error}", peer.name)),
            None => {}
        }
    }
    grow(&bench, &wish, &peers, &mut report)?;
    let deadline = wish.quick.then(|| begun + Duration::from_secs(270));
    ask_peers(&bench, &peers, &wish, deadline, &mut report)?;
    let out = home.join("out");
    report.write(&out)?;
    println!(
        "{:.0} s; written to bench/out: report.md, report.json and charts",
        begun.elapsed().as_secs_f64()
    );
    Ok(())
}
