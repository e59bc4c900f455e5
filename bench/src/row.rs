//! What was measured, one row for each measurement.

use serde::{Deserialize, Serialize};

use crate::workloads::Size;

/// What is measured of a workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    Primal,
    Gradient,
}

impl Kind {
    pub fn name(self) -> &'static str {
        match self {
            Kind::Primal => "primal",
            Kind::Gradient => "gradient",
        }
    }
}

/// One measurement. What was not measured is absent.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Row {
    pub workload: String,
    pub kind: Kind,
    pub system: String,
    /// The schedule or mode: `store-all`, `sqrt`, `plain`, `checkpoint`.
    pub variant: String,
    pub threads: usize,
    pub cells: usize,
    pub steps: usize,
    pub seconds: Option<f64>,
    /// The rise of the resident set during the first run.
    pub resident_bytes: Option<u64>,
    /// What the engine says it allocated at most, beyond the caller's arrays.
    pub metered_bytes: Option<u64>,
    /// What the plan said before.
    pub planned_bytes: Option<u64>,
    pub compile_seconds: Option<f64>,
    pub lines: Option<usize>,
    pub loss: Option<f64>,
    pub norm: Option<f64>,
    /// What went wrong, if something did.
    pub note: Option<String>,
}

impl Row {
    pub fn new(workload: &str, kind: Kind, system: &str, variant: &str, threads: usize, size: Size) -> Row {
        Row {
            workload: workload.to_string(),
            kind,
            system: system.to_string(),
            variant: variant.to_string(),
            threads,
            cells: size.cells,
            steps: size.steps,
            seconds: None,
            resident_bytes: None,
            metered_bytes: None,
            planned_bytes: None,
            compile_seconds: None,
            lines: None,
            loss: None,
            norm: None,
            note: None,
        }
    }

    pub fn size(&self) -> Size {
        Size { cells: self.cells, steps: self.steps }
    }

    /// Marks the row if it found something else than `other`: they are to agree to 1e-5.
    pub fn compare(&mut self, other: &Row) {
        // What is not a number agrees with nothing.
        let agree = |a: Option<f64>, b: Option<f64>| match (a, b) {
            (Some(a), Some(b)) => (a - b).abs() <= 1e-5 * a.abs().max(b.abs()),
            _ => true,
        };
        if !agree(self.norm, other.norm) || !agree(self.loss, other.loss) {
            let show = |x: Option<f64>| x.map_or("–".to_string(), |x| format!("{x:.9e}"));
            self.note = Some(format!(
                "disagrees: loss {} and norm {}, {} has {} and {}",
                show(self.loss),
                show(self.norm),
                other.system,
                show(other.loss),
                show(other.norm)
            ));
        }
    }
}
