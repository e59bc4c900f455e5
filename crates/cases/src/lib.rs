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
//!
//! - `run after: …` runs what the step gives alone: a derivative takes other arguments than its program.
//! - `run: s = 1 | s = 2` runs the program on two parts (law 15), which stand in a line: see [`Line`].
//! - Programs before the last one are derivatives that it brings (law 12), known by their names. Collectives know
//!   theirs by theirs: `all_sum_adjoint` is the adjoint of `parts::all_sum`.

mod parts;
mod renumber;
mod rules;
mod values;

use std::path::{Path, PathBuf};

use ebbtide_ir::*;
pub use parts::Line;
pub use renumber::renumbered;
pub use values::{Arrays, Given};
use values::{arguments, shown};

/// The cases of a folder, by file.
pub fn texts(folder: &Path) -> Result<Vec<(PathBuf, String)>, String> {
    let failed = |path: &Path, why: std::io::Error| format!("{}: {why}", path.display());
    let entries = std::fs::read_dir(folder).map_err(|why| failed(folder, why))?;
    let mut files: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    files.sort();
    let read = |file: PathBuf| match std::fs::read_to_string(&file) {
        Ok(text) => Ok((file, text)),
        Err(why) => Err(failed(&file, why)),
    };
    files.into_iter().map(read).collect()
}

/// Makes the steps of all cases of a folder: their number, or what is not as the files say. `UPDATE_EXPECT=1` writes it there.
pub fn check_all(
    folder: &Path,
    step: impl Fn(&str, &Program) -> Result<Program, String>,
) -> Result<usize, String> {
    let texts = texts(folder)?;
    let mut wrong = Vec::new();
    for (file, text) in &texts {
        match Case::read(text).and_then(|case| case.now(&step)) {
            Ok(now) if now == *text => {}
            Ok(now) if std::env::var_os("UPDATE_EXPECT").is_some() => {
                std::fs::write(file, now).map_err(|why| format!("{}: {why}", file.display()))?;
            }
            Ok(now) => wrong.push(format!("{} is now\n{now}", file.display())),
            Err(why) => wrong.push(format!("{}: {why}", file.display())),
        }
    }
    match wrong.is_empty() {
        true => Ok(texts.len()),
        false => {
            Err(format!("{}\n`UPDATE_EXPECT=1 cargo test` writes what cases should have", wrong.join("\n")))
        }
    }
}

/// A case.
#[derive(Clone, Debug)]
pub struct Case<'t> {
    /// What the file says of itself, and the derivatives that the program brings, up to the program.
    head: &'t str,
    /// What is done with the program.
    step: &'t str,
    /// The texts of the derivatives that the program brings.
    rules: Vec<&'t str>,
    /// The text of the program.
    program: &'t str,
    runs: Vec<Run<'t>>,
    /// What the step gives, as the file says it.
    expected: &'t str,
}

/// A run of a program.
#[derive(Clone, Copy, Debug)]
struct Run<'t> {
    /// `run` or `run after`.
    kind: &'t str,
    /// The arguments of each part.
    arguments: &'t str,
    /// What it leaves, as the file says it.
    left: &'t str,
}

const AFTER: &str = "run after";

impl<'t> Case<'t> {
    /// Reads a case.
    pub fn read(text: &'t str) -> Result<Case<'t>, String> {
        let begin = "expected a program: a line that begins with `program`, `driven program` or `#[`";
        let (written, expected) = text.split_once("\n=>\n").unwrap_or((text, ""));
        let is_program =
            |line: &str| ["program ", "driven program ", "#["].iter().any(|p| line.starts_with(p));
        let (mut at, mut attribute) = (0, false);
        let mut starts = Vec::new();
        for line in written.split_inclusive('\n') {
            if is_program(line) && !attribute {
                starts.push(at);
            }
            attribute = line.starts_with("#[");
            at += line.len();
        }
        let last = *starts.last().ok_or(begin)?;
        let (head, program) = written.split_at(last);
        let rules = starts.windows(2).map(|pair| &written[pair[0]..pair[1]]).collect();
        let step = head.lines().find_map(|line| line.strip_prefix("// step: "));
        let step = step.ok_or("expected a line `// step: …` before the program: what is done with it")?;
        let runs = expected.lines().filter_map(|line| {
            let (kind, rest) = line.split_once(": ").filter(|(kind, _)| ["run", AFTER].contains(kind))?;
            let (arguments, left) = rest.split_once("=>").unwrap_or((rest, ""));
            Some(Run { kind, arguments: arguments.trim(), left: left.trim() })
        });
        Ok(Case { head, step, rules, program, runs: runs.collect(), expected })
    }

    /// The text that the file should have: `step` gets what the case says is done, and the program.
    pub fn now(&self, step: impl Fn(&str, &Program) -> Result<Program, String>) -> Result<String, String> {
        let source = self.source()?;
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
        for Run { kind, arguments, .. } in &self.runs {
            let now = left(&after, arguments, &interpreted)?;
            if *kind != AFTER {
                let before = left(&source, arguments, &interpreted)?;
                if before != now {
                    return Err(format!(
                        "`run: {arguments}` leaves {before}\nbefore the step, and {now}\nafter it"
                    ));
                }
            }
            text += &format!("{kind}: {arguments} => {now}\n");
        }
        Ok(text)
    }

    /// Runs the program, and what the file says that the step gives, on a device: the number of runs, or the first one that leaves
    /// something else than the file says.
    pub fn run_on(&self, device: &Device<'_>) -> Result<usize, String> {
        let source = self.source()?;
        let is_run = |line: &str| line.starts_with("run");
        let length: usize =
            self.expected.split_inclusive('\n').take_while(|l| !is_run(l)).map(str::len).sum();
        let after = match self.expected[..length].starts_with("error: ") {
            true => source.clone(),
            false => self.parse(&self.expected[..length])?,
        };
        let mut count = 0;
        for run in &self.runs {
            let alone = run.kind == AFTER || source.hash() == after.hash();
            let programs = if alone { vec![&after] } else { vec![&source, &after] };
            for program in programs {
                let found = left(program, run.arguments, device)?;
                if found != run.left {
                    return Err(format!("`{}: {}` leaves {found}", run.kind, run.arguments));
                }
                count += 1;
            }
        }
        Ok(count)
    }

    fn source(&self) -> Result<Program, String> {
        self.parse(self.program)
    }

    fn parse(&self, program: &str) -> Result<Program, String> {
        let outside = rules::outside(&self.rules)?;
        parse_with(program, &outside).map_err(|why| format!("the program cannot be read: {why}"))
    }
}

/// Runs a verified program: what its arrays hold in the end, or the text of its error.
pub type Device<'a> = dyn Fn(&Program, &Given) -> Result<Arrays, String> + Sync + 'a;

/// What a run of a program leaves in the arrays that it writes, on each of its parts; or its error.
fn left(program: &Program, run: &str, device: &Device<'_>) -> Result<String, String> {
    let program = &verify_source(program).map_err(|why| why.to_string())?;
    let given: Result<Vec<Given>, String> = run.split(" | ").map(|part| arguments(program, part)).collect();
    let given = given?;
    let shown = |result: Result<Arrays, String>| match result {
        Ok(arrays) => written(program, &arrays),
        // Where it stands in the text is another place after the step.
        Err(why) => format!("error: {}", without_sites(&why)),
    };
    let results = match given.as_slice() {
        [alone] => vec![device(program, alone)],
        parts => parts::together(parts, &|given| device(program, given)),
    };
    Ok(results.into_iter().map(shown).collect::<Vec<_>>().join(" | "))
}

/// The arrays that a program writes, as text.
fn written(program: &Program, arrays: &Arrays) -> String {
    let mut all = Vec::new();
    for param in &program.params {
        if let Param::Array(id) = *param
            && program.array(id).role == Role::Param(Access::Write)
            && let Some((shape, bytes)) = arrays.get(&id)
        {
            all.push(format!("{} = {}", program.array(id).name, shown(program.array(id).ty, shape, bytes)));
        }
    }
    all.join(", ")
}

/// Runs a program on the interpreter.
pub fn interpreted(program: &Program, given: &Given) -> Result<Arrays, String> {
    let facts = verify(program).map_err(|why| why.to_string())?;
    let arrays = program.array_ids().map(|id| match given.arrays.get(&id) {
        Some((shape, bytes)) => HostArray { shape: shape.clone(), bytes: Bytes::Own(bytes.clone()) },
        None => HostArray { shape: Vec::new(), bytes: Bytes::Own(Vec::new()) },
    });
    let mut machine = Machine::new(program, &facts, &given.scalars, arrays.collect());
    match machine.run() {
        Ok(Outcome::Done) => {}
        Ok(Outcome::Yielded { place, reason }) => {
            return Err(format!("it yields at {place:?} with {reason}"));
        }
        Err(fault) => return Err(fault.to_string()),
    }
    let held = |id: &ArrayId| {
        let array = &machine.arrays[id.index()];
        (*id, (array.shape.clone(), array.bytes.read().to_vec()))
    };
    Ok(given.arrays.keys().map(held).collect())
}

/// A message without the places in the text that it names: `, at text:3:5` and `read at text:3:5`.
fn without_sites(message: &str) -> String {
    let mut parts = message.split(" at text:");
    let first = parts.next().unwrap_or_default().trim_end_matches(',').to_string();
    parts.fold(first, |all, part| {
        let behind = part.trim_start_matches(|c: char| c.is_ascii_digit() || c == ':');
        all + behind.trim_end_matches(',')
    })
}
