//! Disks that fail and files that are flipped, cut, exchanged, removed and rolled back: the gradient is right or there is an
//! error, and no valid file is lost.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::PathBuf;
use std::sync::Arc;

use ebbtide_snapshot::fs::FileSystem;
use ebbtide_snapshot::{SnapshotReader, Survey};

use crate::faulty::{Fault, Faulty, Unsynced};
use crate::problems::{Problem, all, dir};
use crate::{Random, cases, shard};

/// One run as it was before every so many of its file operations, from the moment that it had a manifest, and in the end.
pub fn moments(problem: &mut Problem, stride: u64) -> Vec<Faulty> {
    let fs = Faulty::new();
    fs.record_every(stride);
    problem.launch(&fs).unwrap();
    let mut moments = fs.take_recording();
    moments.retain(|moment| moment.exists(&dir().join("manifest.json")));
    moments.push(fs.fork());
    moments
}

/// The snapshots that are sound, by name.
fn sound(fs: &Faulty) -> BTreeMap<PathBuf, Vec<u8>> {
    let files = fs.files().into_iter().map(|(path, _)| path);
    let snapshots = files.filter(|path| path.extension().is_some_and(|end| end == "safetensors"));
    let whole =
        snapshots.filter(|path| SnapshotReader::open(fs, path).is_ok_and(|file| file.verify().is_ok()));
    whole.map(|path| (path.clone(), fs.content(&path))).collect()
}

/// What a launch after an accident may do; the error, where it ended in one.
fn check_launch(problem: &mut Problem, fs: &Faulty, what: &dyn Fn() -> String) -> Result<(), String> {
    let (before, all_before) = (sound(fs), fs.everything());
    match problem.launch(fs) {
        Ok(gradient) => {
            assert_eq!(gradient, problem.expected, "{}: {}", problem.name, what());
            Ok(())
        }
        Err(error) => {
            let text = error.to_string();
            assert!(text.contains("run") || text.contains("manifest"), "{}: {text}", what());
            // A launch that failed has lost nothing that was valid; one that was refused has changed nothing.
            let after = sound(fs);
            assert!(before.iter().all(|(path, bytes)| after.get(path) == Some(bytes)), "{}: {text}", what());
            if text.contains("manifest") {
                assert_eq!(fs.everything(), all_before, "{}: {text}", what());
            }
            Err(text)
        }
    }
}

#[test]
fn c61_every_fault_of_the_disk_ends_in_the_right_gradient_or_an_error() {
    let faults = [
        (Fault::Error(ErrorKind::StorageFull), Unsynced::Kept),
        (Fault::Short, Unsynced::Kept),
        (Fault::PowerCut, Unsynced::Lost),
        (Fault::PowerCut, Unsynced::Torn),
        (Fault::PowerCut, Unsynced::Kept),
    ];
    let stride = if cases(0) > 0 { 1 } else { 17 };
    let (mut count, mut errors) = (0, 0);
    for mut problem in all() {
        for (fault, unsynced) in faults {
            for operation in (0..).step_by(stride) {
                let fs = Faulty::new();
                fs.fail_at(operation, fault);
                let what = format!("{}: {fault:?} at {operation}", problem.name);
                match problem.launch(&fs) {
                    Ok(gradient) => assert_eq!(gradient, problem.expected, "{fault:?} at {operation}"),
                    Err(error) => {
                        errors += 1;
                        assert!(fs.fired(), "{what}: {error}");
                    }
                }
                let fired = fs.fired();
                fs.reboot(unsynced);
                let known = sound(&fs).len();
                let again = problem.launch(&fs);
                assert_eq!(again.unwrap(), problem.expected, "{fault:?} at {operation}: {known} sound files");
                count += 1;
                if !fired {
                    break;
                }
            }
        }
    }
    println!("{count} faults, {errors} errors");
    assert!(count > 100 && errors > 50, "{count}, {errors}");
}

#[test]
fn c61_every_flipped_byte_ends_in_the_right_gradient_or_an_error() {
    let (mut number, mut count, mut refused) = (0, 0, 0);
    let (dense, (which, shards)) = (cases(0) > 0, shard());
    for mut problem in all() {
        let moments = moments(&mut problem, if dense { 31 } else { 199 });
        let last = moments.len() - 1;
        let mut known = 0;
        for (k, moment) in moments.iter().enumerate() {
            for (file, size) in moment.files() {
                let name = file.file_name().unwrap().to_string_lossy().into_owned();
                let stride = match name.as_str() {
                    "manifest.json" if k > 0 => continue,
                    name if name.ends_with("safetensors") => {
                        if dense {
                            61
                        } else {
                            997
                        }
                    }
                    // Every byte of the last line of a finished run.
                    "journal.txt" if k == last || dense => 1,
                    _ if dense => 1,
                    _ => 13,
                };
                // Every byte of the journal in the middle of the run and at its end; between them what is new.
                let from = match name.as_str() {
                    "journal.txt" if !dense => size.saturating_sub(120),
                    "journal.txt" if k != last && k != last / 2 => known,
                    _ => 0,
                };
                if name == "journal.txt" {
                    known = size;
                }
                for byte in (from..size).step_by(stride) {
                    number += 1;
                    if number % shards != which % shards {
                        continue;
                    }
                    let fs = moment.fork();
                    fs.flip(&file, byte, 1 << (byte % 8));
                    let what = || format!("byte {byte} of {name}");
                    let done = check_launch(&mut problem, &fs, &what);
                    refused += u64::from(done.is_err());
                    // Damage of the manifest is refused, damage of anything else never is.
                    if name != "manifest.json" {
                        assert_eq!(done, Ok(()), "{}: moment {k}, {}", problem.name, what());
                    }
                    count += 1;
                }
            }
        }
    }
    println!("{count} flipped bytes, {refused} refused");
    assert!(shards * count > 300 && shards * refused > 50, "{count}, {refused}");
}

/// A run whose result is there never computes it again, whatever happens to its journal.
#[test]
fn c61_a_journal_that_is_flipped_or_cut_costs_no_result() {
    for mut problem in all() {
        let fs = Faulty::new();
        problem.launch(&fs).unwrap();
        let journal = dir().join("journal.txt");
        let text = fs.content(&journal);
        let result = sound(&fs);
        assert_eq!(result.len(), 1);
        let cuts = (0..=text.len()).filter(|at| *at == 0 || text[at - 1] == b'\n');
        let mut spoilt: Vec<Vec<u8>> = cuts.map(|at| text[..at].to_vec()).collect();
        let start = text.len() - text[..text.len() - 1].iter().rev().position(|b| *b == b'\n').unwrap() - 1;
        spoilt.extend((start..text.len()).map(|at| {
            let mut text = text.clone();
            text[at] ^= 4;
            text
        }));
        for text in spoilt {
            let fs = fs.fork();
            fs.set_content(&journal, text.clone());
            let shared: Arc<dyn FileSystem> = Arc::new(fs.clone());
            let found = Survey::read(&fs, dir()).unwrap().examine(&shared);
            assert!(found.finished, "{}", String::from_utf8_lossy(&text));
            assert_eq!(problem.launch(&fs).unwrap(), problem.expected);
            let after = sound(&fs);
            assert!(result.iter().all(|(path, bytes)| after.get(path) == Some(bytes)));
            assert_eq!(after.len(), 1, "nothing was computed again");
        }
    }
}

#[test]
fn c61_files_that_are_exchanged_removed_cut_or_rolled_back_give_the_right_gradient_or_an_error() {
    let mut random = Random::new(18);
    let (mut count, mut done) = (0, 0);
    for mut problem in all() {
        let moments = moments(&mut problem, 41);
        for _ in 0..cases(300) / 5 {
            let now = &moments[random.below(moments.len())];
            let other = &moments[random.below(moments.len())];
            let fs = now.fork();
            let files: Vec<PathBuf> = fs.files().into_iter().map(|(path, _)| path).collect();
            let mut did = Vec::new();
            for _ in 0..1 + random.below(3) {
                let (file, second) = (&files[random.below(files.len())], &files[random.below(files.len())]);
                let what = random.below(5);
                match what {
                    0 => fs.set_content(file, fs.content(second)),
                    1 => fs.forget(file),
                    2 => {
                        let mut bytes = fs.content(file);
                        bytes.truncate(random.below(bytes.len() + 1));
                        fs.set_content(file, bytes);
                    }
                    // As it was at another moment of the run.
                    3 if other.exists(file) => fs.set_content(file, other.content(file)),
                    _ => {
                        let (a, b) = (fs.content(file), fs.content(second));
                        fs.set_content(file, b);
                        fs.set_content(second, a);
                    }
                }
                did.push((what, file.clone(), second.clone()));
            }
            done += u64::from(check_launch(&mut problem, &fs, &|| format!("{did:?}")).is_ok());
            count += 1;
        }
    }
    println!("{count} accidents, {done} runs went on");
    assert!(done * 3 > count, "{done} of {count}");
}

/// A directory that is copied while the run goes on: some files are of an earlier moment, some of a later one.
#[test]
fn c61_a_copy_of_a_live_run_continues() {
    for mut problem in all() {
        let moments = moments(&mut problem, if cases(0) > 0 { 11 } else { 29 });
        let kept = |fs: &Faulty| {
            let fs: Arc<dyn FileSystem> = Arc::new(fs.clone());
            Survey::read(&*fs, dir()).unwrap().examine(&fs).adjoint.is_some()
        };
        for pair in moments.windows(2) {
            let [early, late] = pair else { continue };
            if !kept(early) {
                continue;
            }
            // The journal was copied first, the snapshots later; and the other way round.
            for (journal, snapshots) in [(early, late), (late, early)] {
                let copy = snapshots.fork();
                copy.set_content(&dir().join("journal.txt"), journal.content(&dir().join("journal.txt")));
                copy.forget(&dir().join("lock"));
                assert!(kept(&copy), "the copy would start from zero");
                assert_eq!(problem.launch(&copy).unwrap(), problem.expected);
            }
        }
    }
}
