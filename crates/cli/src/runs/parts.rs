//! Durable runs on the parts of a grid: one folder for each part, and an index.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ebbtide_snapshot::Reached;
use ebbtide_snapshot::fs::{Entry, FileSystem};
use serde::Deserialize;

use super::{Found, Verdict};

const INDEX: &str = "parts.json";
/// No run has more parts.
const MOST: usize = 1 << 20;

#[derive(Deserialize)]
struct Index {
    parts: usize,
}

/// The parts of the run in a directory, if it is one: those that are missing too.
pub fn find(dir: &Path, entries: &[Entry]) -> Option<Vec<Found>> {
    if !entries.iter().any(|entry| entry.name == INDEX) {
        return None;
    }
    let path = dir.join(INDEX);
    let index = std::fs::read_to_string(&path).map_err(|error| error.to_string());
    let index =
        index.and_then(|text| serde_json::from_str::<Index>(&text).map_err(|error| error.to_string()));
    let parts = match index {
        Ok(index) if index.parts <= MOST => index.parts,
        Ok(index) => return Some(vec![Found::lost(path, format!("it speaks of {} parts", index.parts))]),
        Err(error) => return Some(vec![Found::lost(path, error)]),
    };
    let mut found: Vec<Found> = Vec::with_capacity(parts);
    for part in 0..parts {
        let folder = dir.join(format!("part-{part}"));
        let mut one = match entries.iter().any(|entry| folder.file_name() == Some(&entry.name)) {
            true => Found::at(folder),
            false => Found::lost(folder, format!("part {part} of {parts} is missing")),
        };
        one.part = Some(part);
        found.push(one);
    }
    // A part that has finished keeps its last frontier until all have: the others may have to go back to it.
    let finished = |found: &Found| found.survey.as_ref().is_ok_and(|survey| survey.finished);
    if !found.iter().all(finished) {
        found.iter_mut().for_each(|found| found.needed_by_others = true);
    }
    Some(found)
}

/// Says of the parts of each run which frontier all of them have, and of one that has none of those which others have so.
pub fn compare(verdicts: &mut [Verdict<'_>], fs: &Arc<dyn FileSystem>) {
    let mut runs: BTreeMap<PathBuf, Vec<usize>> = BTreeMap::new();
    for (at, verdict) in verdicts.iter().enumerate() {
        if let (Some(_), Some(run)) = (verdict.run.part, verdict.run.dir.parent()) {
            runs.entry(run.to_path_buf()).or_default().push(at);
        }
    }
    for parts in runs.into_values() {
        let numbers: Vec<Vec<(u64, bool)>> =
            parts.iter().map(|at| frontiers(verdicts[*at].run, fs)).collect();
        let everywhere = |found: &&(u64, bool)| numbers.iter().all(|part| part.contains(found));
        let common = numbers[0].iter().filter(everywhere).max().copied();
        let newest = numbers.iter().flatten().map(|(number, _)| *number).max().unwrap_or(0);
        for (at, numbers) in parts.into_iter().zip(&numbers) {
            let verdict = &mut verdicts[at];
            match common {
                Some((_, true)) => verdict.next = Some("the results of all parts are sound".to_owned()),
                Some((number, false)) => {
                    verdict.next = Some(format!("continues from frontier {number} of all parts"));
                }
                None if newest > 1 && numbers.iter().all(|(number, _)| number + 1 < newest) => {
                    verdict
                        .findings
                        .push(format!("it has no frontier that other parts have; the newest is {newest}"));
                }
                None => {}
            }
        }
    }
}

/// The numbers of the frontiers of a part that are sound, and whether each is the end.
fn frontiers(run: &Found, fs: &Arc<dyn FileSystem>) -> Vec<(u64, bool)> {
    let Ok(survey) = &run.survey else { return Vec::new() };
    let number = |(adjoint, reached)| {
        let mut reader = survey.open(fs, &adjoint).ok()?;
        reader.next_array().filter(|array| array.name == "frontier" && array.bytes == 8)?;
        let bytes = reader.read_vec(8).ok()?;
        Some((u64::from_le_bytes(bytes.try_into().ok()?), reached == Reached::End))
    };
    survey.examine(fs).frontiers().filter_map(number).collect()
}
