//! No file of a run leads out of its directory.
#![cfg(unix)]

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use ebbtide_snapshot::fs::Disks;
use ebbtide_snapshot::{Error, Place, RunDir, Survey};

use crate::runs::{fs, manifest, some_run};

/// A run and, beside it, a directory with the same files that a link could lead to.
fn run_and_bait() -> (tempfile::TempDir, PathBuf, PathBuf) {
    let temporary = tempfile::tempdir().unwrap();
    let (dir, bait) = (temporary.path().join("run"), temporary.path().join("bait"));
    some_run(&dir);
    std::fs::create_dir(&bait).unwrap();
    for entry in std::fs::read_dir(&dir).unwrap() {
        let entry = entry.unwrap();
        std::fs::copy(entry.path(), bait.join(entry.file_name())).unwrap();
    }
    (temporary, dir, bait)
}

fn replace_by_link(dir: &Path, bait: &Path, name: &str) {
    std::fs::remove_file(dir.join(name)).unwrap();
    symlink(bait.join(name), dir.join(name)).unwrap();
}

#[test]
fn a_snapshot_behind_a_link_is_not_read() {
    let (_guard, dir, bait) = run_and_bait();
    replace_by_link(&dir, &bait, "00000001.safetensors");
    let (recovered, _) = RunDir::open(fs(), &dir, &manifest().identity).unwrap().take_recovered();
    assert_eq!(recovered.states, [(0, 0), (1, 60)]);
    assert!(bait.join("00000001.safetensors").exists(), "what the link led to was removed");
}

#[test]
fn a_manifest_a_journal_or_a_lock_behind_a_link_is_refused() {
    for name in ["manifest.json", "journal.txt", "lock"] {
        let (_guard, dir, bait) = run_and_bait();
        replace_by_link(&dir, &bait, name);
        let before = std::fs::read(bait.join(name)).unwrap();
        let error = RunDir::open(fs(), &dir, &manifest().identity).err().unwrap();
        assert!(matches!(error, Error::Io { .. }) && error.to_string().contains(name), "{error}");
        assert_eq!(std::fs::read(bait.join(name)).unwrap(), before);
    }
}

#[test]
fn links_under_names_to_come_are_not_written_through() {
    let (_guard, dir, bait) = run_and_bait();
    let target = bait.join("victim");
    std::fs::write(&target, "precious").unwrap();
    for number in 5..40 {
        for suffix in ["", ".tmp"] {
            let link = dir.join(format!("{number:08}.safetensors{suffix}"));
            if !link.exists() {
                symlink(&target, link).unwrap();
            }
        }
    }
    let mut run = RunDir::open(fs(), &dir, &manifest().identity).unwrap();
    let (_, mut disk) = run.take_recovered();
    for step in 0..10 {
        disk.begin(9).unwrap().put("u", &[1.0]).unwrap();
        disk.commit(9, step).unwrap();
    }
    run.flush().unwrap();
    assert_eq!(std::fs::read_to_string(&target).unwrap(), "precious");
    assert_eq!(Survey::read(&Disks, &dir).unwrap().verify(&fs()), Vec::<String>::new());
}

#[test]
fn a_pipe_or_a_directory_in_the_place_of_a_file_does_not_hang_or_confuse() {
    let (_guard, dir, _) = run_and_bait();
    let file = dir.join("00000001.safetensors");
    std::fs::remove_file(&file).unwrap();
    let status = std::process::Command::new("mkfifo").arg(&file).status();
    assert!(status.is_ok_and(|status| status.success()), "mkfifo is missing");
    std::fs::remove_file(dir.join("00000000.safetensors")).unwrap();
    std::fs::create_dir(dir.join("00000000.safetensors")).unwrap();
    let (recovered, _) = RunDir::open(fs(), &dir, &manifest().identity).unwrap().take_recovered();
    assert_eq!((recovered.states, recovered.damage.len()), (vec![(0, 60)], 2));
}

#[test]
fn names_of_inputs_and_arrays_never_become_paths() {
    let temporary = tempfile::tempdir().unwrap();
    let dir = temporary.path().join("run");
    let mut run = RunDir::create(fs(), &dir, manifest()).unwrap();
    let (_, mut disk) = run.take_recovered();
    disk.begin(0).unwrap().put("../../escaped", &[1.0]).unwrap();
    disk.commit(0, 0).unwrap();
    run.flush().unwrap();
    drop((run, disk));
    assert_eq!(std::fs::read_dir(temporary.path()).unwrap().count(), 1);
    let (recovered, mut disk) = RunDir::open(fs(), &dir, &manifest().identity).unwrap().take_recovered();
    assert_eq!(recovered.states, [(0, 0)]);
    assert_eq!(disk.load(0).unwrap().get_vec::<f64>("../../escaped").unwrap(), [1.0]);
}
