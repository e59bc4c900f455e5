//! `ebbtide runs`: durable runs on disk, for people to see, check and clear away.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use ebbtide_snapshot::fs::{Disks, Entry, EntryKind, FileSystem};
use ebbtide_snapshot::{Survey, prune};
use serde::Serialize;
use serde_json::json;

mod parts;

use crate::Failure;
use crate::output::{self, plain, shown};
use crate::size::{Human, counted};

/// Durable runs on disk: which there are, how far they are, whether they are sound.
///
/// DIR is the directory of one run, or a directory whose subdirectories are runs.
#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    /// One line for each run
    List(Where),
    /// Everything about each run: what it computes, how far it is, and which command continues it
    Show(Where),
    /// Reads every snapshot and checks it; the exit code is 1 if anything is damaged
    Verify(Where),
    /// Removes what interruptions left behind, and with --finished the runs that are complete
    Prune {
        #[command(flatten)]
        place: Where,
        /// Remove complete runs as well, with their gradients
        #[arg(long)]
        finished: bool,
        /// Only list what would be removed
        #[arg(long)]
        dry_run: bool,
    },
}

#[derive(clap::Args)]
struct Where {
    /// The directory of a run, or of several
    dir: PathBuf,
    /// Print one JSON object and nothing else
    #[arg(long)]
    json: bool,
}

pub fn run(args: &Args) -> Result<(), Failure> {
    match &args.command {
        Command::List(place) => {
            let runs = find(&place.dir)?;
            print(place, || json!({ "runs": summaries(&runs) }), || list(&runs))
        }
        Command::Show(place) => {
            let runs = find(&place.dir)?;
            print(place, || json!({ "runs": details(&runs) }), || show(&runs))
        }
        Command::Verify(place) => verify(place),
        Command::Prune { place, finished, dry_run } => {
            let scope = if *finished { Scope::FinishedRunsToo } else { Scope::Leftovers };
            let mode = if *dry_run { Mode::Tell } else { Mode::Remove };
            clear_away(place, scope, mode)
        }
    }
}

/// A run, or a directory that should be one and cannot be read.
struct Found {
    dir: PathBuf,
    survey: Result<Survey, String>,
    in_use: bool,
    /// The number of the part, where it is one of a run on the parts of a grid.
    part: Option<usize>,
    /// May another part of the same run still need what this one has superseded?
    needed_by_others: bool,
}

/// Whether a run is being worked on, done, or interrupted.
#[derive(Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Condition {
    Running,
    Finished,
    Interrupted,
    Damaged,
}

fn find(dir: &Path) -> Result<Vec<Found>, Failure> {
    // One that has lost its manifest is a run still, and must be told of; a journal alone may be anybody's.
    let is_run = |entries: &[Entry]| {
        let has = |name: &str| entries.iter().any(|entry| entry.name == name);
        has("manifest.json") || (has("journal.txt") && has("lock"))
    };
    let list =
        |dir: &Path| Disks.list(dir).map_err(|error| format!("could not list {}: {error}", dir.display()));
    let entries = list(dir).map_err(Failure::Other)?;
    if is_run(&entries) {
        return Ok(vec![Found::at(dir.to_owned())]);
    }
    if let Some(parts) = parts::find(dir, &entries) {
        return Ok(parts);
    }
    let mut found = Vec::new();
    for entry in entries.iter().filter(|entry| entry.kind == EntryKind::Directory) {
        let dir = dir.join(&entry.name);
        match list(&dir) {
            Ok(entries) if is_run(&entries) => found.push(Found::at(dir)),
            Ok(entries) => found.extend(parts::find(&dir, &entries).into_iter().flatten()),
            // Nobody can tell what it is; the others are shown all the same.
            Err(error) => found.push(Found::lost(dir, error)),
        }
    }
    found.sort_by(|a, b| (a.dir.parent(), a.part, &a.dir).cmp(&(b.dir.parent(), b.part, &b.dir)));
    Ok(found)
}

impl Found {
    fn at(dir: PathBuf) -> Found {
        let survey = Survey::read(&Disks, &dir).map_err(|error| error.to_string());
        let in_use = survey.as_ref().is_ok_and(|survey| survey.in_use(&Disks).unwrap_or(false));
        Found { dir, survey, in_use, part: None, needed_by_others: false }
    }

    /// What should be a run and cannot be read.
    fn lost(dir: PathBuf, error: String) -> Found {
        Found { dir, survey: Err(error), in_use: false, part: None, needed_by_others: false }
    }

    /// The name in a list: of a part with that of its run.
    fn short_name(&self) -> String {
        let name = |dir: &Path| dir.file_name().unwrap_or(dir.as_os_str()).to_string_lossy().into_owned();
        match (self.part, self.dir.parent()) {
            (Some(_), Some(run)) => format!("{}/{}", name(run), name(&self.dir)),
            _ => name(&self.dir),
        }
    }

    /// The directory as programs read it: a name that is not UTF-8 has marks where it is not.
    fn name(&self) -> String {
        self.dir.to_string_lossy().into_owned()
    }

    fn condition(&self) -> Condition {
        match &self.survey {
            Err(_) => Condition::Damaged,
            Ok(_) if self.in_use => Condition::Running,
            Ok(survey) if survey.finished => Condition::Finished,
            Ok(_) => Condition::Interrupted,
        }
    }
}

/// How far a run is, as its journal tells.
#[derive(Serialize)]
#[serde(tag = "phase", rename_all = "lowercase")]
enum Progress {
    Begun { steps: Option<u64> },
    Forward { step: u64, steps: Option<u64> },
    Backward { step: u64, steps: u64 },
    Finished { steps: u64 },
}

fn progress(survey: &Survey) -> Progress {
    let steps = survey.manifest.steps;
    match (survey.adjoints.last(), survey.states.last()) {
        (Some(adjoint), _) if survey.finished => Progress::Finished { steps: adjoint.steps },
        (Some(adjoint), _) => Progress::Backward { step: adjoint.step, steps: adjoint.steps },
        (None, Some(&(_, step))) => Progress::Forward { step, steps },
        (None, None) => Progress::Begun { steps },
    }
}

impl std::fmt::Display for Progress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match *self {
            Progress::Begun { steps: Some(steps) } => write!(f, "0 of {steps} steps forward"),
            Progress::Begun { steps: None } => f.write_str("just begun"),
            Progress::Forward { step, steps: Some(steps) } => write!(f, "{step} of {steps} steps forward"),
            Progress::Forward { step, steps: None } => write!(f, "{step} steps forward"),
            // How many there are may not be known before all are reversed.
            Progress::Backward { step: 0, steps } => write!(f, "{steps} steps reversed so far"),
            Progress::Backward { step, steps } => {
                write!(f, "{} of {steps} steps reversed", steps - step.min(steps))
            }
            Progress::Finished { steps } => write!(f, "all {steps} steps reversed"),
        }
    }
}

fn summaries(runs: &[Found]) -> Vec<serde_json::Value> {
    runs.iter()
        .map(|run| match &run.survey {
            Ok(survey) => json!({
                "dir": run.name(),
                "condition": run.condition(),
                "program": survey.manifest.identity.program(),
                "progress": progress(survey),
                "bytes": survey.bytes,
                "last_sign_of_life_ms": survey.last_sign_of_life(),
            }),
            Err(error) => {
                json!({ "dir": run.name(), "condition": run.condition(), "error": error })
            }
        })
        .collect()
}

fn details(runs: &[Found]) -> Vec<serde_json::Value> {
    let mut summaries = summaries(runs);
    for (summary, run) in summaries.iter_mut().zip(runs) {
        if let (Ok(survey), Some(fields)) = (&run.survey, summary.as_object_mut()) {
            let manifest = &survey.manifest;
            fields.insert("run".to_owned(), json!(manifest.run));
            fields.insert("engine".to_owned(), json!(manifest.engine));
            fields.insert("created_ms".to_owned(), json!(manifest.created));
            fields.insert("identity".to_owned(), json!(manifest.identity));
            fields.insert("schedule".to_owned(), json!(manifest.schedule));
            fields.insert("budget".to_owned(), json!(manifest.budget));
            fields.insert("command".to_owned(), json!(survey.command()));
            let states: Vec<u64> = survey.states.iter().map(|state| state.1).collect();
            fields.insert("states".to_owned(), json!(states));
            fields.insert("journal_damage".to_owned(), json!(survey.history.damage));
            fields.insert("leftovers".to_owned(), json!(survey.leftovers));
        }
    }
    summaries
}

fn list(runs: &[Found]) -> String {
    if runs.is_empty() {
        return "no runs here\n".to_owned();
    }
    let header = ["run", "program", "condition", "progress", "on disk", "last sign of life"];
    let mut table = vec![header.map(str::to_owned)];
    for run in runs {
        let name = run.short_name();
        let row = match &run.survey {
            Ok(survey) => [
                name,
                survey.manifest.identity.program().to_owned(),
                word(run.condition()).to_owned(),
                progress(survey).to_string(),
                Human(survey.bytes.into()).to_string(),
                ago(survey.last_sign_of_life()),
            ],
            Err(error) => {
                [name, String::new(), "damaged".to_owned(), error.clone(), String::new(), String::new()]
            }
        };
        table.push(row.map(|cell| plain(&cell)));
    }
    let widths: Vec<usize> = (0..header.len())
        .map(|column| table.iter().map(|row| row[column].chars().count()).max().unwrap_or(0))
        .collect();
    let mut text = String::new();
    for row in &table {
        let cells = row.iter().zip(&widths).map(|(cell, &width)| format!("{cell:<width$}"));
        text.push_str(cells.collect::<Vec<_>>().join("   ").trim_end());
        text.push('\n');
    }
    text
}

fn show(runs: &[Found]) -> String {
    if runs.is_empty() {
        return "no runs here\n".to_owned();
    }
    runs.iter().map(show_one).collect::<Vec<_>>().join("\n")
}

fn show_one(run: &Found) -> String {
    let survey = match &run.survey {
        Ok(survey) => survey,
        Err(error) => return format!("{}: damaged\n  {}\n", shown(&run.dir), plain(error)),
    };
    let manifest = &survey.manifest;
    let identity = &manifest.identity;
    let mut text = format!("{}: {}, {}\n", shown(&run.dir), word(run.condition()), progress(survey));
    let mut line = |name: &str, value: String| text.push_str(&format!("  {name:<18} {}\n", plain(&value)));
    line("program", format!("{} ({})", identity.program(), identity.hash()));
    for (name, value) in identity.inputs() {
        line("input", format!("{name} = {value}"));
    }
    line("schedule", shortened(&manifest.schedule));
    let budget = &manifest.budget;
    // A gradient of a program goes on with the schedule that it has.
    if budget.slots > 0 || budget.disk_slots > 0 {
        let slots = format!(
            "{} slots in memory, {} on disk, blocks of {}",
            budget.slots, budget.disk_slots, budget.block
        );
        line("planning anew", slots);
    }
    line("made by", format!("Ebbtide {}, {}", manifest.engine, ago(manifest.created)));
    line("last sign of life", ago(survey.last_sign_of_life()));
    line(
        "on disk",
        format!(
            "{} in {} states and {}",
            Human(survey.bytes.into()),
            survey.states.len(),
            counted(survey.adjoints.len(), "adjoint")
        ),
    );
    if !survey.states.is_empty() {
        let steps: Vec<String> = survey.states.iter().map(|state| state.1.to_string()).collect();
        line("states before step", shortened(&steps.join(", ")));
    }
    for damage in &survey.history.damage {
        line("damage", damage.clone());
    }
    for name in &survey.leftovers {
        line("left over", name.clone());
    }
    let hint = if survey.finished { "read the gradient with" } else { "continue with" };
    line(hint, survey.command().to_owned());
    text
}

/// What was found when every byte of a run was read.
struct Verdict<'a> {
    run: &'a Found,
    findings: Vec<String>,
    /// Sound snapshots that the journal does not name.
    unnamed: Vec<String>,
    /// What the next launch would do.
    next: Option<String>,
}

fn verdict<'a>(run: &'a Found, fs: &Arc<dyn FileSystem>) -> Verdict<'a> {
    match &run.survey {
        Err(error) => Verdict { run, findings: vec![error.to_string()], unnamed: Vec::new(), next: None },
        Ok(survey) => {
            let found = survey.examine(fs);
            let next = match (&found.adjoint, found.states.last()) {
                (Some(_), _) if found.finished => "the result is sound".to_owned(),
                (Some(adjoint), _) => {
                    let reversed = adjoint.steps - adjoint.step.min(adjoint.steps);
                    format!("continues with {reversed} of {} steps reversed", adjoint.steps)
                }
                (None, Some((_, step))) => format!("continues from step {step}"),
                (None, None) => "starts from its beginning".to_owned(),
            };
            Verdict { run, findings: found.damage, unnamed: found.adopted, next: Some(next) }
        }
    }
}

fn verify(place: &Where) -> Result<(), Failure> {
    let runs = find(&place.dir)?;
    let fs: Arc<dyn FileSystem> = Arc::new(Disks);
    let mut verdicts: Vec<Verdict<'_>> = runs.iter().map(|run| verdict(run, &fs)).collect();
    parts::compare(&mut verdicts, &fs);
    let as_json = || {
        let runs = verdicts.iter().map(|Verdict { run, findings, unnamed, next }| {
            json!({
                "dir": run.name(),
                "sound": findings.is_empty(),
                "findings": findings,
                "not_in_the_journal": unnamed,
                "next": next,
            })
        });
        json!({ "runs": runs.collect::<Vec<_>>() })
    };
    let as_text = || {
        let mut text = String::new();
        for Verdict { run, findings, unnamed, next } in &verdicts {
            let verdict = match findings.len() {
                0 => "sound".to_owned(),
                count => counted(count, "finding"),
            };
            let next = next.as_ref().map_or(String::new(), |next| format!("; {next}"));
            text.push_str(&format!("{}: {verdict}{next}\n", shown(&run.dir)));
            for finding in findings {
                text.push_str(&format!("  {}\n", plain(finding)));
            }
            for snapshot in unnamed {
                text.push_str(&format!("  sound: {}\n", plain(snapshot)));
            }
        }
        if text.is_empty() { "no runs here\n".to_owned() } else { text }
    };
    print(place, as_json, as_text)?;
    let damaged = verdicts.iter().filter(|verdict| !verdict.findings.is_empty()).count();
    match damaged {
        0 => Ok(()),
        count => {
            let many = if count == 1 { "1 run is".to_owned() } else { format!("{count} runs are") };
            let advice = match runs.iter().any(|run| run.survey.is_err()) {
                true => "a run whose manifest or journal cannot be read cannot continue",
                false => "a run continues from what is sound, and computes the rest again",
            };
            Err(Failure::Told(format!("{many} damaged; {advice}")))
        }
    }
}

/// What may be cleared away.
#[derive(Clone, Copy, PartialEq)]
enum Scope {
    Leftovers,
    FinishedRunsToo,
}

/// Whether to do it.
#[derive(Clone, Copy, PartialEq)]
enum Mode {
    Tell,
    Remove,
}

fn clear_away(place: &Where, scope: Scope, mode: Mode) -> Result<(), Failure> {
    let (mut removed, mut kept, mut failed) = (Vec::new(), Vec::new(), 0usize);
    let fs: Arc<dyn FileSystem> = Arc::new(Disks);
    for run in find(&place.dir)? {
        let survey = match &run.survey {
            Ok(_) if run.needed_by_others => {
                kept.push((run.dir, "not all parts of its run have finished".to_owned()));
                continue;
            }
            Ok(survey) if !run.in_use => survey,
            Ok(_) => {
                kept.push((run.dir, "in use".to_owned()));
                continue;
            }
            Err(error) => {
                let error = error.clone();
                kept.push((run.dir, error));
                continue;
            }
        };
        // One that cannot be removed does not keep the others.
        let gone = match (survey.finished && scope == Scope::FinishedRunsToo, mode) {
            (true, Mode::Tell) => Ok(vec![run.dir.clone()]),
            (true, Mode::Remove) => prune::remove_run(&Disks, &run.dir).map(|()| vec![run.dir.clone()]),
            (false, Mode::Tell) => {
                Ok(prune::leftovers(&fs, survey).iter().map(|name| run.dir.join(name)).collect())
            }
            (false, Mode::Remove) => prune::remove_leftovers(&fs, &run.dir)
                .map(|names| names.iter().map(|name| run.dir.join(name)).collect()),
        };
        match gone {
            Ok(gone) => removed.extend(gone),
            Err(error) => {
                failed += 1;
                kept.push((run.dir, error.to_string()));
            }
        }
    }
    let removed: Vec<PathBuf> = removed;
    let as_json = || {
        let kept = kept.iter().map(|(dir, why)| json!({ "dir": dir.to_string_lossy(), "why": why }));
        let removed: Vec<_> = removed.iter().map(|path| path.to_string_lossy()).collect();
        json!({ "removed": removed, "dry_run": mode == Mode::Tell, "not_touched": kept.collect::<Vec<_>>() })
    };
    let as_text = || {
        let verb = if mode == Mode::Tell { "would remove" } else { "removed" };
        let mut text: String = removed.iter().map(|path| format!("{verb} {}\n", shown(path))).collect();
        text.extend(kept.iter().map(|(dir, why)| format!("did not touch {}: {}\n", shown(dir), plain(why))));
        if text.is_empty() { "nothing to remove\n".to_owned() } else { text }
    };
    print(place, as_json, as_text)?;
    match failed {
        0 => Ok(()),
        failed => Err(Failure::Told(format!("{} could not be cleared", counted(failed, "run")))),
    }
}

/// Prints for people or for programs. A reader that has gone away is not an error.
fn print(
    place: &Where,
    as_json: impl FnOnce() -> serde_json::Value,
    as_text: impl FnOnce() -> String,
) -> Result<(), Failure> {
    let text = if place.json { format!("{}\n", as_json()) } else { as_text() };
    output::write(format_args!("{text}"))
}

fn word(condition: Condition) -> &'static str {
    match condition {
        Condition::Running => "running",
        Condition::Finished => "finished",
        Condition::Interrupted => "interrupted",
        Condition::Damaged => "damaged",
    }
}

fn shortened(text: &str) -> String {
    match text.char_indices().nth(100) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// A moment in milliseconds since 1970, as people say it.
fn ago(moment: u64) -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_millis() as u64);
    let seconds = now.saturating_sub(moment) / 1000;
    let (count, unit) = match seconds {
        0..=119 => (seconds, "second"),
        120..=7199 => (seconds / 60, "minute"),
        7200..=172_799 => (seconds / 3600, "hour"),
        _ => (seconds / 86_400, "day"),
    };
    format!("{} ago", counted(count as usize, unit))
}
