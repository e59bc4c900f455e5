//! What can be continued from in the directory of a run.
//!
//! Input: a [`Survey`]. Output: the snapshots that are sound, whatever the journal says of them. A snapshot proves by itself
//! which run, which question, which kind and which step it belongs to, so one that the journal does not name is adopted.
//! What does not prove itself is spoken of and left where it is. Nothing is changed here.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::adjoints::Reached;
use crate::disk::Held;
use crate::fs::FileSystem;
use crate::journal::FileNumber;
use crate::store::{Store, file_name, other_content};
use crate::survey::{Adjoint, Survey};
use crate::{Error, Kind, Label};

/// What was found in the directory of a run and can be gone on with.
#[derive(Default)]
#[non_exhaustive]
pub struct Recovered {
    /// The states that are sound, by step: the slot in `disk` that holds each, and its step.
    pub states: Vec<(usize, u64)>,
    /// The adjoint that is sound and has come farthest, if the turn has come.
    pub adjoint: Option<Adjoint>,
    /// Whether that adjoint is the complete gradient.
    pub finished: bool,
    /// One sentence for each thing that was found damaged or missing and is done without.
    pub damage: Vec<String>,
    /// One sentence for each sound snapshot that the journal does not name, and that is used all the same.
    pub adopted: Vec<String>,
    pub(crate) held: BTreeMap<usize, Held>,
    /// The adjoints that are sound, the best one last.
    pub(crate) adjoints: Vec<Adjoint>,
    /// The complete gradients that are sound, the latest one last.
    pub(crate) results: Vec<Adjoint>,
    /// The files that are sound.
    pub(crate) sound: Vec<FileNumber>,
}

impl Recovered {
    /// All frontiers that are sound, whichever has come farthest: adjoints, then complete gradients.
    pub fn frontiers(&self) -> impl Iterator<Item = (Adjoint, Reached)> + '_ {
        let adjoints = self.adjoints.iter().map(|adjoint| (*adjoint, Reached::Step(adjoint.step)));
        adjoints.chain(self.results.iter().map(|result| (*result, Reached::End)))
    }
}

/// Reads every snapshot of a run, without keeping any of it in memory.
pub(crate) fn examine(fs: &Arc<dyn FileSystem>, survey: &Survey) -> Recovered {
    let mut recovered = Recovered { damage: survey.history.damage.clone(), ..Recovered::default() };
    if survey.history.records.is_empty() && !survey.files.is_empty() {
        let what = "the journal says nothing, though the run has snapshots";
        recovered.damage.push(what.to_owned());
    }
    let store = survey.store(Arc::clone(fs));
    let named = survey.named();
    let mut states = Vec::new();
    for &file in &survey.files {
        let (label, bytes) = match look(&store, file) {
            Ok(found) => found,
            Err(error) => {
                recovered.damage.push(error.to_string());
                continue;
            }
        };
        match named.get(&file) {
            Some(&said) if said != (label.kind, label.step) => {
                let what = other_content((label.kind, label.step), said);
                recovered.damage.push(Error::damaged(&store.path(file), what).to_string());
            }
            Some(_) => {}
            None if survey.is_obsolete(file) => {}
            None => {
                let Label { kind, step, .. } = &label;
                let sentence =
                    format!("{}, which the journal does not name: {kind}, step {step}", file_name(file));
                recovered.adopted.push(sentence);
            }
        }
        recovered.sound.push(file);
        let adjoint = Adjoint { file, step: label.step, steps: label.steps.unwrap_or(label.step) };
        match label.kind {
            Kind::State => states.push((label.step, file, bytes)),
            Kind::Adjoint => recovered.adjoints.push(adjoint),
            Kind::Result => recovered.results.push(adjoint),
        }
    }
    for (file, _) in named.iter().filter(|(file, _)| !survey.files.contains(file)) {
        recovered.damage.push(format!("{} is missing", store.path(*file).display()));
    }
    states.sort_unstable();
    for (slot, (step, file, bytes)) in states.into_iter().enumerate() {
        recovered.states.push((slot, step));
        recovered.held.insert(slot, Held { file, step, bytes });
    }
    // Files are numbered in the order of their writing.
    recovered.adjoints.sort_by_key(|adjoint| (std::cmp::Reverse(adjoint.step), adjoint.file));
    recovered.finished = !recovered.results.is_empty();
    recovered.adjoint = recovered.results.last().or(recovered.adjoints.last()).copied();
    if !recovered.damage.is_empty() && recovered.sound.is_empty() && survey.has_kept_something() {
        recovered
            .damage
            .push("nothing that is sound is left: the run starts again from its beginning".to_owned());
    }
    recovered
}

fn look(store: &Store, file: FileNumber) -> Result<(Label, u64), Error> {
    let reader = store.open(file)?;
    let bytes = reader.bytes();
    Ok((reader.verify()?, bytes))
}
