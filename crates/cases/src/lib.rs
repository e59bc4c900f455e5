//! Case files: what one step of the compiler makes of one small program.
//!
//! ```text
//! // A division by zero stays an error of the run.
//! // step: fold constants
//! program p(y: &mut Array1<f64>) {
//!     …
//! }
//! =>
//! program p(y: &mut Array1<f64>) {
//!     …
//! }
//! run: y = [1, 2] => y = [3.0, 4.0]
//! ```
//!
//! Input: the text of such a file, and a function that makes the step it names. Output: the text as it is now, with what the
//! step gives and what the runs leave; an error where the interpreter finds other bits after the step than before. [`check_all`]
//! compares the texts, or writes the new one. An expected part that begins with `error: ` says why the step refuses
//! the program.

mod values;

use std::path::{Path, PathBuf};

use ebbtide_ir::*;
use values::{arguments, shown};

/// Makes the steps of all cases of a folder: their number, or what is not as the files say. `UPDATE_EXPECT=1` writes it there.
pub fn check_all(
    folder: &Path,
    step: impl Fn(&str, &Program) -> Result<Program, String>,
) -> Result<usize, String> {
    let failed = |path: &Path, why: std::io::Error| format!("{}: {why}", path.display());
    let entries = std::fs::read_dir(folder).map_err(|why| failed(folder, why))?;
    let mut files: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    files.sort();
    let mut wrong = Vec::new();
    for file in &files {
        let text = std::fs::read_to_string(file).map_err(|why| failed(file, why))?;
        match Case::read(&text).and_then(|case| case.now(&step)) {
            Ok(now) if now == text => {}
            Ok(now) if std::env::var_os("UPDATE_EXPECT").is_some() => {
                std::fs::write(file, now).map_err(|why| failed(file, why))?;
            }
            Ok(now) => wrong.push(format!("{} is now\n{now}", file.display())),
            Err(why) => wrong.push(format!("{}: {why}", file.display())),
        }
    }
    match wrong.is_empty() {
        true => Ok(files.len()),
        false => {
            Err(format!("{}\n`UPDATE_EXPECT=1 cargo test` writes what cases should have", wrong.join("\n")))
        }
    }
}

/// A case.
#[derive(Clone, Debug)]
pub struct Case<'t> {
    /// What the file says of itself, up to the program.
    head: &'t str,
    /// What is done with the program.
    step: &'t str,
    /// The text of the program.
    program: &'t str,
    /// The arguments of each run.
    runs: Vec<&'t str>,
}

impl<'t> Case<'t> {
    /// Reads a case.
    pub fn read(text: &'t str) -> Result<Case<'t>, String> {
        let begin = "expected a program: a line that begins with `program`, `driven program` or `#[`";
        let is_program =
            |line: &str| ["program ", "driven program ", "#["].iter().any(|p| line.starts_with(p));
        let mut at = 0;
        let start = text.split_inclusive('\n').find_map(|line| {
            at += line.len();
            is_program(line).then_some(at - line.len())
        });
        let (head, rest) = text.split_at(start.ok_or(begin)?);
        let step = head.lines().find_map(|line| line.strip_prefix("// step: "));
        let step = step.ok_or("expected a line `// step: …` before the program: what is done with it")?;
        let (program, expected) = rest.split_once("\n=>\n").unwrap_or((rest, ""));
        let runs = expected.lines().filter_map(|line| line.strip_prefix("run: "));
        let runs =
            runs.map(|run| run.split_once("=>").map_or(run, |(arguments, _)| arguments).trim()).collect();
        Ok(Case { head, step, program, runs })
    }

    /// The text that the file should have: `step` gets what the case says is done, and the program.
    pub fn now(&self, step: impl Fn(&str, &Program) -> Result<Program, String>) -> Result<String, String> {
        let source = parse(self.program).map_err(|why| format!("the program cannot be read: {why}"))?;
        let mut text = format!("{}{}\n=>\n", self.head, self.program.trim_end());
        let after = match step(self.step, &source) {
            Ok(after) => {
                text += &after.to_string();
                after
            }
            Err(why) => {
                text += &format!("error: {}\n", why.trim_end());
                source.clone()
            }
        };
        for run in &self.runs {
            let (before, now) = (left(&source, run)?, left(&after, run)?);
            if before != now {
                return Err(format!("`run: {run}` leaves {before}\nbefore the step, and {now}\nafter it"));
            }
            text += &format!("run: {run} => {now}\n");
        }
        Ok(text)
    }
}

/// What a run of a program leaves in the arrays that it writes, on the interpreter; or its error.
fn left(program: &Program, run: &str) -> Result<String, String> {
    let program = &verify_source(program).map_err(|why| why.to_string())?;
    let facts = verify(program).map_err(|why| why.to_string())?;
    let (scalars, given) = arguments(program, run)?;
    let arrays = program.array_ids().map(|id| match given.get(&id) {
        Some((shape, bytes)) => HostArray { shape: shape.clone(), bytes: Bytes::Own(bytes.clone()) },
        None => HostArray { shape: Vec::new(), bytes: Bytes::Own(Vec::new()) },
    });
    let mut machine = Machine::new(program, &facts, &scalars, arrays.collect());
    match machine.run() {
        Ok(Outcome::Done) => {}
        Ok(Outcome::Yielded { place, reason }) => return Ok(format!("yields at {place:?} with {reason}")),
        // Where it stands in the text is another place after the step.
        Err(fault) => return Ok(format!("error: {}", without_sites(&fault.to_string()))),
    }
    let mut all = Vec::new();
    for param in &program.params {
        if let Param::Array(id) = *param
            && program.array(id).role == Role::Param(Access::Write)
        {
            let held = &machine.arrays[id.index()];
            let shown = shown(program.array(id).ty, &held.shape, held.bytes.read());
            all.push(format!("{} = {shown}", program.array(id).name));
        }
    }
    Ok(all.join(", "))
}

/// A message without the places in the text that it names.
fn without_sites(message: &str) -> String {
    let mut parts = message.split(", at text:");
    let first = parts.next().unwrap_or_default().to_string();
    parts.fold(first, |all, part| all + part.trim_start_matches(|c: char| c.is_ascii_digit() || c == ':'))
}
