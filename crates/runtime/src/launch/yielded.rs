//! Where a program yielded, with all that a resume needs beside the caller's arrays.

use std::fmt;
use std::sync::Arc;

use ebbtide_checkpoint::Position;
use ebbtide_ir::{
    self as ir, Entry, Label, Made, Numbering, Place, Program, Region, RegionId, Scalars, Stmt, ValueId,
};

use crate::device::Device;
use crate::device::frame::Temp;
use crate::error::{Error, Result};

/// Where a program yielded: position and reason, with the bounds of the loops around it, the live scalars and the
/// temporaries. Together with the caller's arrays it is a checkpoint: it can be resumed, more than once, moved to
/// another label, and stored and resumed in another process.
#[derive(Clone)]
pub struct Yielded {
    pub(crate) program: Arc<Program>,
    pub(crate) place: Place,
    pub(crate) reason: i64,
    pub(crate) scalars: Scalars,
    pub(crate) temps: Arc<Vec<Temp>>,
    /// What of scalars and temporaries is known, where that is not all that is visible at the place.
    pub(crate) known: Option<Arc<Made>>,
    /// How many of the loops around the place, from the outermost, are in the middle of an iteration.
    pub(crate) kept: usize,
    /// What the run lacks, where it yielded for want of room.
    pub(crate) shortage: Option<Shortage>,
}

/// What a run lacks that yielded for want of room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Shortage {
    /// The bytes that would do.
    pub needed: u64,
    /// The bytes that it may have: its budget, or the memory that is free.
    pub available: u64,
}

impl Shortage {
    /// What this error says that a run lacks on a device.
    pub(crate) fn of(error: &Error, device: &Device) -> Option<Shortage> {
        match *error {
            Error::BudgetTooSmall { budget, minimum, .. } => {
                Some(Shortage { needed: minimum, available: budget })
            }
            Error::DoesNotFit { needed, free, .. } => Some(Shortage { needed, available: free }),
            Error::OutOfMemory { bytes } => {
                let available = device.free_bytes();
                Some(Shortage { needed: bytes as u64, available })
            }
            _ => None,
        }
    }
}

impl Yielded {
    /// Before the first statement: nothing is known.
    pub(crate) fn nowhere(program: &Arc<Program>) -> Yielded {
        Yielded {
            program: program.clone(),
            place: Place { region: RegionId::from_index(usize::MAX), iterations: Vec::new() },
            reason: 0,
            scalars: Scalars::of(program),
            temps: Arc::default(),
            known: Some(Arc::default()),
            kept: 0,
            shortage: None,
        }
    }

    /// The position: a path in the program as written.
    ///
    /// It prints like `simulate/for t=41/Stage::Solve`.
    pub fn position(&self) -> Position {
        self.place.position(&self.program, &self.scalars)
    }

    /// The value of the flag: why the program yielded.
    pub fn reason(&self) -> i64 {
        self.reason
    }

    /// What the run lacks, if it yielded for want of room: memory could not be had, or arrays have grown beyond its budget.
    /// Then no region yielded, and there is no label. The run continues where it stands when it has the room: free memory, or
    /// give it a larger budget; return an error to give up.
    pub fn shortage(&self) -> Option<Shortage> {
        self.shortage
    }

    /// Did the region with this label yield?
    pub fn is(&self, label: impl Into<Label>) -> bool {
        *self.label_name() == label.into()
    }

    /// The label of the region; `None` if it is not one of this enum.
    pub fn label<L: crate::Label>(&self) -> Option<L> {
        let Label { family, variant } = self.label_name();
        if family == L::FAMILY { L::from_variant(variant) } else { None }
    }

    /// The label of the region, by its names.
    pub fn label_name(&self) -> &Label {
        let region = ir::enclosing(&self.program, self.place.region).pop();
        match region {
            Some(Stmt::Region(region)) => &self.program.labels[region.label.index()],
            // A place is that of a region, or it would not have been made.
            _ => &NO_LABEL,
        }
    }

    /// The same yield, moved to another label: loops that enclose both regions keep their iteration, loops
    /// entered anew start at their first.
    ///
    /// An error if the label is unknown, stands at several positions, or if something that was skipped on the way
    /// there is needed.
    pub fn to(&self, label: impl Into<Label>) -> Result<Yielded> {
        let label = label.into();
        let target = find_region(&self.program, &label)?;
        let entry = entry(&self.program, target)?;
        let here = Entry::of(&self.program, self.place.region);
        let (loops, visible) = match &here {
            Some(here) => (here.loops.as_slice(), Some(&here.visible)),
            None => (&[][..], None),
        };
        let shared = loops.iter().zip(&entry.loops).take_while(|(a, b)| a == b).count();
        let kept = shared.min(self.kept);
        let known =
            self.known.as_deref().or(visible).map_or_else(Made::default, |k| k.intersection(&entry.visible));
        let missing = entry.derive(&self.program, &known, kept).missing;
        if !missing.is_empty() {
            return Err(self.fail(format!(
                "the program cannot resume at `{label}`: it needs {}, which only the code before that label makes",
                missing.join(", ")
            )));
        }
        let mut scalars = self.scalars.clone();
        for (id, (var, from, _)) in entry.loops[kept..]
            .iter()
            .filter_map(|id| ir::loop_bounds(&self.program, &[*id]).pop().map(|bounds| (*id, bounds)))
        {
            // For the eyes of who prints the position: a resume evaluates the bounds.
            let first = self.program.literal(from).and_then(|l| l.to_i64()).unwrap_or(0);
            scalars.bounds[id.index()] = [first, first];
            scalars.values[var.index()] = first as u64;
        }
        let mut iterations: Vec<u64> = self.place.iterations.iter().copied().take(kept).collect();
        iterations.resize(entry.loops.len(), 0);
        Ok(Yielded {
            program: self.program.clone(),
            place: Place { region: target, iterations },
            reason: self.reason,
            scalars,
            temps: self.temps.clone(),
            known: Some(Arc::new(known)),
            kept,
            shortage: None,
        })
    }

    /// The same yield in the values of another program of the same hash. What nothing depends on is known there, whatever it is.
    pub(crate) fn in_values_of(mut self, program: &Arc<Program>) -> Yielded {
        let (here, there) = (self.program.numbering(), program.numbering());
        let mut values = vec![0; program.values.len()];
        for (from, to) in here.values().iter().zip(there.values()) {
            values[to.index()] = self.scalars.values[from.index()];
        }
        self.known = self.known.map(|known| {
            let known = Arc::unwrap_or_clone(known);
            let number = |v: &ValueId| here.number(*v).and_then(|n| there.values().get(n));
            let values = known.values.iter().filter_map(number).copied().chain(unused(program, &there));
            Arc::new(Made { values: values.collect(), ..known })
        });
        self.scalars.values = values;
        self.program = program.clone();
        self
    }

    fn fail(&self, message: String) -> Error {
        Error::launch(&self.program, message)
    }
}

/// The values on which nothing depends. Code that computes them is run all the same, and may ask for them.
pub(crate) fn unused(program: &Program, numbering: &Numbering) -> impl Iterator<Item = ValueId> {
    let all = (0..program.values.len()).map(ValueId::from_index);
    all.filter(|v| numbering.number(*v).is_none())
}

static NO_LABEL: Label = Label { family: String::new(), variant: String::new() };

/// The entry at a region of the program.
pub(crate) fn entry(program: &Program, region: RegionId) -> Result<Entry> {
    Entry::of(program, region).ok_or_else(|| Error::launch(program, format!("there is no {region:?}")))
}

/// The one region with this label.
pub(crate) fn find_region(program: &Program, label: &Label) -> Result<RegionId> {
    let mut regions: Vec<&Region> = Vec::new();
    ir::walk(&program.body, &mut |stmt| {
        if let Stmt::Region(region) = stmt {
            regions.push(region);
        }
    });
    if regions.is_empty() {
        let message = format!(
            "it has no labelled region, so it cannot be resumed at `{label}`: write `#[checkpoint({label})]` before a block"
        );
        return Err(Error::launch(program, message));
    }
    let found: Vec<RegionId> = regions
        .iter()
        .filter(|region| program.labels[region.label.index()] == *label)
        .map(|region| region.id)
        .collect();
    match found[..] {
        [] => {
            let labels: Vec<String> = program.labels.iter().map(|l| format!("`{l}`")).collect();
            let message = format!("there is no label `{label}`; its labels are {}", labels.join(", "));
            Err(Error::launch(program, message))
        }
        [region] => Ok(region),
        _ => {
            let scalars = Scalars::of(program);
            let position = |region: &RegionId| {
                let loops = Entry::of(program, *region).map_or(0, |entry| entry.loops.len());
                Place { region: *region, iterations: vec![0; loops] }.position(program, &scalars).to_string()
            };
            let positions: Vec<String> = found.iter().map(position).collect();
            let message = format!("label `{label}` stands at several positions: {}", positions.join(", "));
            Err(Error::launch(program, message))
        }
    }
}

impl PartialEq for Yielded {
    /// The same place of the same program, for the same reason.
    fn eq(&self, other: &Yielded) -> bool {
        (&self.place, self.reason) == (&other.place, other.reason)
            && (Arc::ptr_eq(&self.program, &other.program) || self.program.hash() == other.program.hash())
    }
}

impl Eq for Yielded {}

impl fmt::Debug for Yielded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Yielded({} at {})", self.reason, self.position())
    }
}
