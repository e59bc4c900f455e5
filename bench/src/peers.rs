//! The peers: scripts beside this crate, each measurement in a process of its own.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde::Deserialize;

use crate::Result;
use crate::row::{Kind, Row};
use crate::tape::PerOperation;
use crate::workloads::Size;
use crate::yields::Costs;

/// What a peer can measure.
#[derive(Clone, Debug, Deserialize)]
pub struct Offer {
    pub workload: String,
    pub kind: Kind,
    pub variant: String,
}

/// A peer that is installed.
pub struct Peer {
    pub name: &'static str,
    script: PathBuf,
    python: PathBuf,
    pub offers: Vec<Offer>,
}

/// The peers by name and script.
const PEERS: [(&str, &str); 6] = [
    ("JAX", "with_jax.py"),
    ("Enzyme-JAX", "with_enzyme.py"),
    ("equinox", "with_equinox.py"),
    ("PyTorch", "with_torch.py"),
    ("Warp", "with_warp.py"),
    ("Quadrants", "with_quadrants.py"),
];

/// The peers that are installed in the environment under `bench`. Each missing one gets a line.
pub fn installed(bench: &Path) -> Vec<Peer> {
    let python = bench.join(".venv/bin/python");
    let mut found = Vec::new();
    for (name, script) in PEERS {
        let script = bench.join("peers").join(script);
        let offers = output(Command::new(&python).arg(&script).arg("list"), Duration::from_secs(120))
            .and_then(|text| Ok(serde_json::from_str::<Vec<Offer>>(last_line(&text))?));
        match offers {
            Ok(offers) => found.push(Peer { name, script, python: python.clone(), offers }),
            Err(error) => println!("{name}: skipped, it is not there ({})", first_line(&error.to_string())),
        }
    }
    found
}

impl Peer {
    /// Measures one offer.
    pub fn measure(&self, offer: &Offer, size: Size, seconds: f64, limit: Duration) -> Row {
        let mut row = Row::new(&offer.workload, offer.kind, self.name, &offer.variant, 1, size);
        let mut command = Command::new(&self.python);
        command.arg(&self.script).args(["run", &offer.workload, offer.kind.name(), &offer.variant]);
        command.args([size.cells.to_string(), size.steps.to_string(), seconds.to_string()]);
        let found =
            output(&mut command, limit).and_then(|text| Ok(serde_json::from_str::<Found>(last_line(&text))?));
        match found {
            Ok(found) => {
                row.seconds = Some(found.seconds);
                row.resident_bytes = Some(found.resident_bytes);
                row.compile_seconds = found.compile_seconds;
                row.lines = found.lines;
                row.loss = found.loss;
                row.norm = found.norm;
            }
            Err(error) => row.note = Some(first_line(&error.to_string()).to_string()),
        }
        row
    }

    /// What launches and yields cost, where the peer has them.
    pub fn costs(&self) -> Option<Result<Costs>> {
        if self.name != "Quadrants" {
            return None;
        }
        let mut command = Command::new(&self.python);
        command.arg(&self.script).arg("costs");
        let text = output(&mut command, Duration::from_secs(120));
        Some(text.and_then(|text| Ok(serde_json::from_str(last_line(&text))?)))
    }

    /// What an operation on its tape costs, where it has one for single numbers.
    pub fn tape(&self) -> Option<Result<PerOperation>> {
        if self.name != "PyTorch" {
            return None;
        }
        let mut command = Command::new(&self.python);
        command.arg(self.script.with_file_name("tape_torch.py"));
        let text = output(&mut command, Duration::from_secs(120));
        Some(text.and_then(|text| Ok(serde_json::from_str(last_line(&text))?)))
    }
}

/// What a script prints.
#[derive(Deserialize)]
struct Found {
    seconds: f64,
    resident_bytes: u64,
    compile_seconds: Option<f64>,
    lines: Option<usize>,
    loss: Option<f64>,
    norm: Option<f64>,
}

/// What a command prints, if it ends well and in time.
fn output(command: &mut Command, limit: Duration) -> Result<String> {
    let folder = tempfile::tempdir()?;
    let (printed, said) = (folder.path().join("out"), folder.path().join("err"));
    command.stdin(Stdio::null());
    command.stdout(std::fs::File::create(&printed)?).stderr(std::fs::File::create(&said)?);
    let mut child = command.spawn()?;
    let begun = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        if begun.elapsed() > limit {
            child.kill()?;
            child.wait()?;
            return Err(format!("took more than {} s", limit.as_secs()).into());
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    if !status.success() {
        let said = std::fs::read_to_string(&said).unwrap_or_default();
        return Err(last_line(&said).to_string().into());
    }
    Ok(std::fs::read_to_string(&printed)?)
}

fn last_line(text: &str) -> &str {
    text.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("it said nothing")
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or("")
}
