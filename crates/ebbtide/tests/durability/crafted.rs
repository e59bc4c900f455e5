//! Snapshots of durable runs that were made to mislead, with right checksums: never a crash, an access out of bounds or a
//! state that is taken for another one. Forged numbers of the right shape are outside the promise.

use std::path::{Path, PathBuf};

use ebbtide_snapshot::{Checkpoint, Dtype, Kind, Label, Position, Step, read_snapshot, write_snapshot};

use crate::accidents::moments;
use crate::faulty::Faulty;
use crate::problems::{Problem, all};
use crate::{Random, cases};

/// A snapshot, taken apart.
#[derive(Clone)]
pub struct Parts {
    pub label: Label,
    pub position: Position,
    pub arrays: Vec<Part>,
}

#[derive(Clone)]
pub struct Part {
    pub name: String,
    pub dtype: Dtype,
    pub shape: Vec<usize>,
    pub bytes: Vec<u8>,
}

impl Parts {
    pub fn of(fs: &dyn ebbtide_snapshot::fs::FileSystem, path: &Path) -> Parts {
        let mut checkpoint = Checkpoint::default();
        let label = read_snapshot(fs, path, &mut checkpoint).unwrap();
        let part = |a: ebbtide_snapshot::ArrayView<'_>| Part {
            name: a.name.to_string(),
            dtype: a.dtype,
            shape: a.shape.to_vec(),
            bytes: a.bytes.to_vec(),
        };
        Parts { label, position: checkpoint.position, arrays: checkpoint.state.arrays().map(part).collect() }
    }

    /// Writes it with right checksums; says whether a file can be so at all.
    pub fn write(&self, fs: &dyn ebbtide_snapshot::fs::FileSystem, path: &Path) -> bool {
        let mut checkpoint = Checkpoint::at(self.position.clone());
        for part in &self.arrays {
            let count: usize = part.shape.iter().product();
            if count * part.dtype.size() != part.bytes.len() {
                return false;
            }
            let put = checkpoint
                .state
                .put_with(&part.name, part.dtype, &part.shape, |place| place.copy_from_slice(&part.bytes));
            if put.is_err() {
                return false;
            }
        }
        write_snapshot(fs, path, &self.label, &checkpoint).is_ok()
    }

    /// Changes what it consists of.
    pub fn change_structure(&mut self, random: &mut Random) -> String {
        let (at, with) = (random.below(self.arrays.len()), random.below(self.arrays.len()));
        let name = self.arrays[at].name.clone();
        let part = &mut self.arrays[at];
        let row = part.shape.iter().skip(1).product::<usize>() * part.dtype.size();
        match random.below(9) {
            0 => {
                self.arrays.remove(at);
                format!("no {name}")
            }
            1 => {
                part.name.push('x');
                format!("{name} renamed")
            }
            2 => {
                part.bytes.extend(vec![1; row.max(1)]);
                match part.shape.first_mut() {
                    Some(first) => *first += 1,
                    None => part.shape = vec![2],
                }
                format!("{name} grown")
            }
            3 if part.bytes.len() >= row && row > 0 && !part.shape.is_empty() => {
                part.bytes.truncate(part.bytes.len() - row);
                part.shape[0] -= 1;
                format!("{name} shrunk")
            }
            4 => {
                part.dtype = if part.dtype == Dtype::U8 { Dtype::Bool } else { Dtype::I64 };
                format!("{name} of another type")
            }
            5 => {
                part.shape.insert(0, 1);
                format!("{name} of another rank")
            }
            6 => {
                (part.bytes, part.shape) = (Vec::new(), vec![0]);
                format!("{name} emptied")
            }
            7 => {
                self.arrays.swap(at, with);
                format!("{name} at the place of another")
            }
            _ => {
                let other = self.arrays[with].clone();
                let part = &mut self.arrays[at];
                (part.bytes, part.shape, part.dtype) = (other.bytes, other.shape, other.dtype);
                format!("{name} with what {} has", other.name)
            }
        }
    }

    /// Changes what it says it is.
    fn change_label(&mut self, random: &mut Random) -> String {
        let label = &mut self.label;
        match random.below(5) {
            0 => label.kind = [Kind::State, Kind::Adjoint, Kind::Result][random.below(3)],
            1 => label.step = label.step.wrapping_add(1 + random.below(3) as u64),
            2 => label.steps = [None, Some(0), Some(u64::MAX), Some(3)][random.below(4)],
            3 => label.run.push('0'),
            _ => label.program.push('0'),
        }
        format!("{label:?}")
    }

    /// Changes numbers that say where the run is.
    fn change_numbers(&mut self, random: &mut Random) -> String {
        let control = |part: &&mut Part| {
            let first = part.name.split(' ').next().unwrap_or_default();
            ["ran", "loop", "schedule", "slots", "far", "host"].contains(&first)
                && !part.name.contains("data")
                && !part.bytes.is_empty()
        };
        let mut parts: Vec<&mut Part> = self.arrays.iter_mut().filter(control).collect();
        let at = random.below(parts.len());
        let part = &mut parts[at];
        if part.dtype == Dtype::U64 {
            let word = random.below(part.bytes.len() / 8) * 8;
            let values = [0, 1, 2, 3, 7, 1 << 20, 1 << 40, i64::MAX as u64, 1 << 63, u64::MAX];
            part.bytes[word..word + 8].copy_from_slice(&values[random.below(values.len())].to_le_bytes());
        } else {
            let byte = random.below(part.bytes.len());
            part.bytes[byte] = b"0123456789,-= x"[random.below(15)];
        }
        part.name.clone()
    }
}

/// The newest snapshot of a run.
fn newest(fs: &Faulty) -> Option<PathBuf> {
    let files = fs.files().into_iter().map(|(path, _)| path);
    files.filter(|path| path.extension().is_some_and(|end| end == "safetensors")).max()
}

fn runs(problem: &mut Problem) -> Vec<Faulty> {
    moments(problem, 23).into_iter().filter(|moment| newest(moment).is_some()).collect()
}

#[test]
fn c60_a_crafted_snapshot_of_another_structure_is_never_accepted() {
    let mut random = Random::new(60);
    let (mut count, mut refused) = (0, 0);
    for mut problem in all() {
        let moments = runs(&mut problem);
        for _ in 0..cases(400) / 5 {
            let moment = &moments[random.below(moments.len())];
            let fs = moment.fork();
            let Some(file) = newest(&fs) else { continue };
            let mut parts = Parts::of(&fs, &file);
            let before = parts.clone();
            let what = match random.below(4) {
                0 => parts.change_label(&mut random),
                _ => parts.change_structure(&mut random),
            };
            let same = parts.label == before.label
                && parts.arrays.len() == before.arrays.len()
                && parts.arrays.iter().zip(&before.arrays).all(|(a, b)| {
                    (&a.name, a.dtype, &a.shape, &a.bytes) == (&b.name, b.dtype, &b.shape, &b.bytes)
                });
            // One array in the place of another of the same shape is a forged number.
            let alike = parts.label == before.label
                && parts.arrays.len() == before.arrays.len()
                && parts
                    .arrays
                    .iter()
                    .zip(&before.arrays)
                    .all(|(a, b)| (&a.name, a.dtype, &a.shape) == (&b.name, b.dtype, &b.shape));
            if same || alike || !parts.write(&fs, &file) {
                continue;
            }
            count += 1;
            match problem.launch(&fs) {
                Ok(gradient) => assert_eq!(gradient, problem.expected, "{}: {what}", problem.name),
                Err(error) => {
                    refused += 1;
                    let text = error.to_string();
                    let told = ["safetensors is damaged", "its tape is not empty at the end"];
                    assert!(told.iter().any(|t| text.contains(t)), "{}: {what}: {text}", problem.name);
                }
            }
        }
    }
    println!("{count} crafted structures, {refused} refused");
    assert!(refused * 2 > count && count > 100, "{refused} of {count}");
}

/// Positions at which the run does not stand.
fn forged(position: &Position) -> Vec<Position> {
    let mut forged = vec![Position::root(), position.clone().then(0, "x")];
    let mut change = |change: &dyn Fn(&mut Step)| {
        let mut steps = position.steps().to_vec();
        steps.last_mut().into_iter().for_each(change);
        forged.push(steps.into_iter().collect());
    };
    for child in [1, 2, 77, u32::MAX] {
        change(&|step| step.child = step.child.wrapping_add(child));
    }
    change(&|step| step.iteration = Some(step.iteration.map_or(3, |iteration| iteration + 1)));
    change(&|step| step.name.push('x'));
    forged
}

#[test]
fn c60_a_forged_position_is_refused() {
    let mut count = 0;
    for mut problem in all() {
        let moments = runs(&mut problem);
        for moment in moments.iter().step_by(moments.len().div_ceil(3)) {
            let Some(file) = newest(moment) else { continue };
            let sound = Parts::of(moment, &file);
            assert!(!sound.position.steps().is_empty(), "{}", problem.name);
            for position in forged(&sound.position) {
                let (fs, parts) = (moment.fork(), Parts { position, ..sound.clone() });
                assert!(parts.write(&fs, &file));
                let error = problem.launch(&fs).expect_err("it is at no such place").to_string();
                let told = format!("cannot be at its position, `{}`", parts.position);
                assert!(error.contains(&told), "{}: {error}", problem.name);
                count += 1;
            }
        }
    }
    assert!(count > 50, "{count}");
}

#[test]
fn c60_crafted_numbers_end_in_a_gradient_or_an_error() {
    let mut random = Random::new(61);
    let (mut count, mut errors) = (0, 0);
    for mut problem in all() {
        let moments = runs(&mut problem);
        for _ in 0..cases(400) / 5 {
            let fs = moments[random.below(moments.len() - 1)].fork();
            let Some(file) = newest(&fs) else { continue };
            let mut parts = Parts::of(&fs, &file);
            for _ in 0..1 + random.below(2) {
                parts.change_numbers(&mut random);
            }
            if parts.write(&fs, &file) {
                count += 1;
                if let Err(error) = problem.launch(&fs) {
                    errors += 1;
                    assert!(!error.to_string().contains("flaw of Ebbtide"), "{}: {error}", problem.name);
                }
            }
        }
    }
    println!("{count} crafted numbers, {errors} errors");
    assert!(errors > 0 && count > 100, "{errors} of {count}");
}

#[test]
fn c60_a_tape_that_is_too_short_is_damage_of_its_file() {
    let mut short = 0;
    for mut problem in all() {
        for moment in runs(&mut problem) {
            let Some(file) = newest(&moment) else { continue };
            let whole = Parts::of(&moment, &file);
            for at in (0..whole.arrays.len()).filter(|at| whole.arrays[*at].name.starts_with("tape ")) {
                let (fs, mut parts) = (moment.fork(), whole.clone());
                let tape = &mut parts.arrays[at];
                let row = tape.bytes.len() / tape.shape[0].max(1);
                if tape.shape[0] == 0 || row == 0 {
                    continue;
                }
                tape.bytes.truncate(tape.bytes.len() - row);
                tape.shape[0] -= 1;
                assert!(parts.write(&fs, &file));
                let error =
                    problem.launch(&fs).expect_err("what is missing is taken at some time").to_string();
                assert!(error.contains("safetensors is damaged"), "{}: {error}", problem.name);
                short += u64::from(error.contains("its tapes do not hold what the rest of the run takes"));
            }
        }
    }
    assert!(short > 0);
}

/// A `bool` that is neither true nor false would be undefined behaviour in compiled code.
#[test]
fn c60_a_crafted_bool_is_refused() {
    let mut problem = crate::problems::of_cooling(ebbtide::Budget::Revolve { slots: 3, block: 2 });
    let mut refused = 0;
    for moment in runs(&mut problem) {
        let Some(file) = newest(&moment) else { continue };
        let parts = Parts::of(&moment, &file);
        // Of the arrays with one byte for each of five elements.
        for at in 0..parts.arrays.len() {
            if parts.arrays[at].bytes.len() != 5 || !parts.arrays[at].name.starts_with("array") {
                continue;
            }
            let (fs, mut parts) = (moment.fork(), parts.clone());
            parts.arrays[at].bytes = vec![77; 5];
            assert!(parts.write(&fs, &file));
            let error = problem.launch(&fs).unwrap_err().to_string();
            assert!(error.contains("`bool`"), "{error}");
            refused += 1;
        }
    }
    assert!(refused > 3, "{refused}");
}
