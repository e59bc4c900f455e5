use std::path::Path;
use std::sync::Arc;

use ebbtide_snapshot::fs::{Disks, FileSystem};
use ebbtide_snapshot::{Budget, Checkpoint, Error, Identity, Manifest, Place, RunDir, State, Survey};

pub fn fs() -> Arc<dyn FileSystem> {
    Arc::new(Disks)
}

pub fn manifest() -> Manifest {
    let identity = Identity::new("heat", "f00d").input("nu", 0.1);
    Manifest::new(identity, "revolve", Some(100), Budget { slots: 4, block: 1, disk_slots: 0, disk_cost: 1 })
}

/// A run with states before steps 0, 30 and 60 and an adjoint at 80.
pub fn some_run(dir: &Path) {
    let mut run = RunDir::create(fs(), dir, manifest()).unwrap();
    let (_, mut disk) = run.take_recovered();
    for (slot, step) in [0, 30, 60, 90].into_iter().enumerate() {
        disk.begin(slot).unwrap().put("u", &[step as f64; 100]).unwrap();
        disk.commit(slot, step).unwrap();
    }
    disk.discard(3).unwrap();
    for step in [95, 90, 80] {
        run.adjoints().begin_waiting().unwrap().put("du", &[step as f64; 100]).unwrap();
        run.adjoints().commit(step, 100);
    }
    run.flush().unwrap();
}

#[test]
fn a_run_is_found_again_as_it_was_left() {
    let temporary = tempfile::tempdir().unwrap();
    let dir = temporary.path().join("run");
    some_run(&dir);
    let mut run = RunDir::open(fs(), &dir, &manifest().identity).unwrap();
    assert_eq!(run.manifest().identity, manifest().identity);
    let (recovered, mut disk) = run.take_recovered();
    assert!(recovered.damage.is_empty() && !recovered.finished);
    assert_eq!(recovered.states, [(0, 0), (1, 30), (2, 60)]);
    assert_eq!(disk.load(1).unwrap().get_vec::<f64>("u").unwrap(), [30.0; 100]);
    let adjoint = recovered.adjoint.unwrap();
    assert_eq!((adjoint.step, adjoint.steps), (80, 100));
    let mut checkpoint = Checkpoint::default();
    run.read_adjoint(&adjoint, &mut checkpoint).unwrap();
    assert_eq!(checkpoint.state.get_vec::<f64>("du").unwrap(), [80.0; 100]);
}

#[test]
fn a_survey_tells_what_is_there_and_whether_it_is_sound() {
    let temporary = tempfile::tempdir().unwrap();
    let dir = temporary.path().join("run");
    some_run(&dir);
    std::fs::write(dir.join("00000077.safetensors.tmp"), "half a snapshot").unwrap();
    std::fs::write(dir.join("notes.txt"), "mine").unwrap();
    let survey = Survey::read(&Disks, &dir).unwrap();
    assert_eq!(survey.states.iter().map(|state| state.1).collect::<Vec<_>>(), [0, 30, 60]);
    assert_eq!(survey.adjoints.iter().map(|adjoint| adjoint.step).collect::<Vec<_>>(), [90, 80]);
    assert_eq!(survey.leftovers, ["00000077.safetensors.tmp", "notes.txt"]);
    assert!(survey.bytes > 5 * 4096 && !survey.finished && !survey.in_use(&Disks).unwrap());
    assert_eq!(survey.verify(&fs()), Vec::<String>::new());

    let run = RunDir::open(fs(), &dir, &manifest().identity).unwrap();
    assert!(survey.in_use(&Disks).unwrap());
    assert!(matches!(RunDir::open(fs(), &dir, &manifest().identity), Err(Error::Busy { .. })));
    drop(run);
    // Taking a run up removes nothing.
    assert_eq!(Survey::read(&Disks, &dir).unwrap().leftovers, ["00000077.safetensors.tmp", "notes.txt"]);

    let file = dir.join("00000001.safetensors");
    let mut bytes = std::fs::read(&file).unwrap();
    bytes[4200] ^= 4;
    std::fs::write(&file, bytes).unwrap();
    std::fs::remove_file(dir.join("00000000.safetensors")).unwrap();
    let findings = Survey::read(&Disks, &dir).unwrap().verify(&fs());
    assert_eq!(findings.len(), 2, "{findings:?}");
    assert!(
        findings[0].contains("checksum of array `u`")
            && findings[1].contains("00000000.safetensors is missing")
    );
    let (recovered, _) = RunDir::open(fs(), &dir, &manifest().identity).unwrap().take_recovered();
    assert_eq!((recovered.states, recovered.damage.len()), (vec![(0, 60)], 2));
}

#[test]
fn the_latest_sound_adjoint_is_taken() {
    let temporary = tempfile::tempdir().unwrap();
    let dir = temporary.path().join("run");
    some_run(&dir);
    let latest = Survey::read(&Disks, &dir).unwrap().adjoints[1].file;
    std::fs::write(dir.join(format!("{:08}.safetensors", latest.0)), "gone").unwrap();
    let (recovered, _) = RunDir::open(fs(), &dir, &manifest().identity).unwrap().take_recovered();
    assert_eq!(recovered.adjoint.unwrap().step, 90);
}

#[test]
fn a_snapshot_of_another_run_is_not_taken_for_one_of_this() {
    let temporary = tempfile::tempdir().unwrap();
    let (dir, other) = (temporary.path().join("run"), temporary.path().join("other"));
    some_run(&dir);
    some_run(&other);
    for file in ["00000001.safetensors", "00000002.safetensors"] {
        std::fs::copy(other.join(file), dir.join(file)).unwrap();
    }
    // The right run, but the wrong step.
    std::fs::copy(dir.join("00000000.safetensors"), dir.join("00000002.safetensors")).unwrap();
    let (recovered, _) = RunDir::open(fs(), &dir, &manifest().identity).unwrap().take_recovered();
    // What the third file really holds is used; that it holds something else than it should is told.
    assert_eq!(recovered.states, [(0, 0), (1, 0)]);
    assert!(recovered.damage[0].contains("belongs to another run"), "{:?}", recovered.damage);
    assert!(
        recovered.damage[1].contains("a state of step 0, not a state of step 60"),
        "{:?}",
        recovered.damage
    );
}

#[test]
fn a_directory_that_is_no_run_is_left_alone() {
    let temporary = tempfile::tempdir().unwrap();
    let dir = temporary.path().join("home");
    std::fs::create_dir(&dir).unwrap();
    std::fs::write(dir.join("thesis.tex"), "all of it").unwrap();
    assert!(matches!(RunDir::open(fs(), &dir, &manifest().identity), Err(Error::NotARun { .. })));
    let refused = RunDir::create(fs(), &dir, manifest());
    let said = refused.as_ref().err().map(ToString::to_string).unwrap_or_default();
    assert!(
        said.ends_with("is not empty: there is `thesis.tex` in it; a new run needs an empty directory"),
        "{said}"
    );
    drop(refused);
    let left: Vec<_> = std::fs::read_dir(&dir).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["thesis.tex"]);
    assert!(matches!(
        RunDir::open(fs(), &temporary.path().join("nowhere"), &manifest().identity),
        Err(Error::NotARun { .. })
    ));
}

#[test]
fn pruning_takes_what_is_ours_and_leaves_the_rest() {
    use ebbtide_snapshot::prune;
    let temporary = tempfile::tempdir().unwrap();
    let dir = temporary.path().join("run");
    some_run(&dir);
    std::fs::write(dir.join("00000077.safetensors"), "not spoken of").unwrap();
    std::fs::write(dir.join("77.safetensors"), "not spelt as ours are").unwrap();
    let run = RunDir::open(fs(), &dir, &manifest().identity).unwrap();
    assert!(matches!(prune::remove_run(&Disks, &dir), Err(Error::Busy { .. })));
    drop(run);
    std::fs::write(dir.join("00000078.safetensors.tmp"), "half").unwrap();
    let pruned = prune::remove_leftovers(&fs(), &dir).unwrap();
    assert_eq!(pruned, ["00000077.safetensors", "00000078.safetensors.tmp"]);
    assert_eq!(Survey::read(&Disks, &dir).unwrap().verify(&fs()), Vec::<String>::new());
    prune::remove_run(&Disks, &dir).unwrap();
    let left: Vec<_> = std::fs::read_dir(&dir).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["77.safetensors"]);

    let other = temporary.path().join("other");
    some_run(&other);
    prune::remove_run(&Disks, &other).unwrap();
    assert!(!other.exists());
}

/// Changes the manifest as if it had been written so, checksum and all.
fn rewrite_manifest(dir: &Path, from: &str, to: &str) {
    let manifest = Manifest::read(&Disks, dir).unwrap();
    let text = serde_json::to_string(&manifest).unwrap().replace(from, to);
    let (head, old) = text.split_once(r#""checksum":"#).unwrap();
    let bare = format!(r#"{head}"checksum":""}}"#);
    assert!(old.len() == 11, "the checksum comes last");
    let sealed = format!(r#"{head}"checksum":"{:08x}"}}"#, crc32fast::hash(bare.as_bytes()));
    std::fs::write(dir.join("manifest.json"), sealed).unwrap();
}

/// Different values are different inputs, also where a checksum of 32 bits cannot tell them apart.
#[test]
fn inputs_with_the_same_checksum_are_told_apart() {
    let of = |x: f64| Identity::new("grow", "f00d").input_array("x", &[x]);
    let bytes = [0.07_f64, 168.707].map(|x| crc32fast::hash(&x.to_le_bytes()));
    assert_eq!(bytes[0], bytes[1], "not the pair that this test needs");
    let budget = Budget { slots: 4, block: 1, disk_slots: 0, disk_cost: 1 };
    let manifest = Manifest::new(of(0.07), "revolve", Some(100), budget);
    manifest.check(Path::new("run"), &of(0.07)).unwrap();
    let refusal = manifest.check(Path::new("run"), &of(168.707)).unwrap_err().to_string();
    assert!(refusal.contains("input `x` was `f64[1], hash "), "{refusal}");

    let first = |x: f64| {
        let mut state = State::new();
        state.put("x", &[x]).unwrap();
        Identity::new("grow", "f00d").initial_state(&state)
    };
    assert_ne!(first(0.07), first(168.707));
}

#[test]
fn a_manifest_of_another_format_is_not_called_damaged() {
    let temporary = tempfile::tempdir().unwrap();
    // The format before this one, and one to come that has another shape.
    for older in [true, false] {
        let dir = temporary.path().join(older.to_string());
        some_run(&dir);
        match older {
            true => rewrite_manifest(&dir, "ebbtide run 5", "ebbtide run 4"),
            false => {
                let text = r#"{ "format": "ebbtide run 7", "all": "new" }"#;
                std::fs::write(dir.join("manifest.json"), text).unwrap();
            }
        }
        for error in
            [Manifest::read(&Disks, &dir).err(), RunDir::open(fs(), &dir, &manifest().identity).err()]
        {
            let error = error.unwrap();
            assert!(matches!(error, Error::OtherFormat { .. }), "{error:?}");
            let said = error.to_string();
            assert!(said.contains("another version of Ebbtide") && !said.contains("damaged"), "{said}");
        }
    }
}

#[test]
fn a_run_of_another_version_or_program_is_refused_with_what_differs() {
    let temporary = tempfile::tempdir().unwrap();
    let dir = temporary.path().join("run");
    some_run(&dir);
    let manifest = Manifest::read(&Disks, &dir).unwrap();
    let me = Identity::new("heat", "f00d").input("nu", 0.1);
    manifest.check(&dir, &me).unwrap();
    let refusal = |identity: &Identity| manifest.check(&dir, identity).unwrap_err().to_string();
    let other = Identity::new("wave", "beef").input("nu", 0.1).input("dt", 2);
    for part in [
        "the program was `heat` and is now `wave`",
        "the hash of the program was `f00d` and is now `beef`",
        "input `dt` was not given and is now `2`",
    ] {
        assert!(refusal(&other).contains(part), "{}", refusal(&other));
    }

    // Under other laws, the version that continues the run is named; under the same ones, any version may continue it.
    rewrite_manifest(&dir, &manifest.engine, "9.9.9");
    let newer = Manifest::read(&Disks, &dir).unwrap();
    newer.check(&dir, &me).unwrap();
    rewrite_manifest(&dir, r#""hash":"f00d","#, r#""hash":"f00d","laws":7,"#);
    let newer = Manifest::read(&Disks, &dir).unwrap();
    let refusal = newer.check(&dir, &me.clone().laws(8)).unwrap_err().to_string();
    assert!(refusal.contains("version 7 of the laws by Ebbtide 9.9.9, and this is version 8"), "{refusal}");
    assert!(refusal.contains("continue it with Ebbtide 9.9.9"), "{refusal}");
    newer.check(&dir, &me.laws(7)).unwrap();
}

/// A process that is being started has all files of this one open for a moment.
#[cfg(unix)]
#[test]
fn a_lock_that_was_given_back_is_free_while_other_threads_start_processes() {
    let temporary = tempfile::tempdir().unwrap();
    let file = temporary.path().join("lock");
    let stop = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                    std::process::Command::new("true").status().unwrap();
                }
            });
        }
        let taken = (0..20_000).filter(|_| Disks.lock(&file).unwrap().is_none()).count();
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
        assert_eq!(taken, 0, "locks were still held after they were given back");
    });
}

/// The snapshots prove who they are: a run that has lost its journal continues from them.
#[test]
fn c61_a_run_that_lost_its_journal_continues_from_its_snapshots() {
    type Spoil = fn(&Path);
    let spoils: [Spoil; 3] = [
        |journal| std::fs::remove_file(journal).unwrap(),
        |journal| std::fs::write(journal, "").unwrap(),
        |journal| std::fs::write(journal, [0; 300]).unwrap(),
    ];
    for spoil in spoils {
        let temporary = tempfile::tempdir().unwrap();
        let dir = temporary.path().join("run");
        some_run(&dir);
        let snapshots = || {
            let names = Disks.list(&dir).unwrap().into_iter().map(|entry| entry.name.into_string().unwrap());
            names.filter(|name| name.ends_with(".safetensors")).count()
        };
        assert_eq!(snapshots(), 5);
        spoil(&dir.join("journal.txt"));
        let found = Survey::read(&Disks, &dir).unwrap().examine(&fs());
        assert!(
            found.damage.iter().any(|what| what.contains("the journal says nothing")),
            "{:?}",
            found.damage
        );
        assert_eq!(found.adopted.len(), 5, "{:?}", found.adopted);
        assert!(ebbtide_snapshot::prune::remove_leftovers(&fs(), &dir).unwrap().is_empty());
        let (recovered, _) = RunDir::open(fs(), &dir, &manifest().identity).unwrap().take_recovered();
        assert_eq!(recovered.states, [(0, 0), (1, 30), (2, 60)]);
        assert_eq!(recovered.adjoint.unwrap().step, 80);
        assert_eq!(snapshots(), 5);
    }
}

#[test]
fn a_run_that_was_interrupted_before_its_first_state_has_lost_nothing() {
    let temporary = tempfile::tempdir().unwrap();
    let dir = temporary.path().join("run");
    drop(RunDir::create(fs(), &dir, manifest()).unwrap());
    // Between the manifest and the journal.
    std::fs::remove_file(dir.join("journal.txt")).unwrap();
    assert_eq!(Survey::read(&Disks, &dir).unwrap().verify(&fs()), Vec::<String>::new());
    let (recovered, _) = RunDir::open(fs(), &dir, &manifest().identity).unwrap().take_recovered();
    assert!(recovered.damage.is_empty() && recovered.states.is_empty());
    // With a journal from here on, a state that is not in it yet is no damage.
    std::fs::write(dir.join("00000000.safetensors"), "named in no line yet").unwrap();
    RunDir::open(fs(), &dir, &manifest().identity).unwrap();
}

/// The gradient of [`some_run`].
fn finish(dir: &Path) {
    let mut run = RunDir::open(fs(), dir, &manifest().identity).unwrap();
    run.adjoints().begin_waiting().unwrap().put("du", &[0.5; 100]).unwrap();
    run.adjoints().finish(100).unwrap();
}

#[test]
fn a_finished_run_is_read_where_nobody_may_write_and_while_another_has_it() {
    let temporary = tempfile::tempdir().unwrap();
    let dir = temporary.path().join("run");
    some_run(&dir);
    let disk = Arc::new(crate::disk::Gated::default());
    disk.read_only.store(true, std::sync::atomic::Ordering::Relaxed);
    let error = RunDir::open(disk.clone(), &dir, &manifest().identity).err().unwrap();
    assert!(error.to_string().starts_with("could not lock"), "to go on needs the lock: {error}");

    finish(&dir);
    let other = RunDir::open(fs(), &dir, &manifest().identity).unwrap();
    for disk in [disk.clone() as Arc<dyn FileSystem>, fs()] {
        let mut run = RunDir::open(disk, &dir, &manifest().identity).unwrap();
        let (recovered, _) = run.take_recovered();
        assert!(recovered.finished && recovered.damage.is_empty());
        let mut checkpoint = Checkpoint::default();
        run.read_adjoint(&recovered.adjoint.unwrap(), &mut checkpoint).unwrap();
        assert_eq!(checkpoint.state.get_vec::<f64>("du").unwrap(), [0.5; 100]);
        run.flush().unwrap();
    }
    drop(other);

    // A gradient that is damaged has to be computed again, and that needs the lock.
    let file = Survey::read(&Disks, &dir).unwrap().adjoints[0].file;
    std::fs::write(dir.join(format!("{:08}.safetensors", file.0)), "gone").unwrap();
    assert!(matches!(RunDir::open(disk, &dir, &manifest().identity), Err(Error::Io { doing: "lock", .. })));
}

#[test]
fn a_run_that_lost_its_manifest_is_not_called_another_run() {
    let temporary = tempfile::tempdir().unwrap();
    let dir = temporary.path().join("run");
    some_run(&dir);
    std::fs::remove_file(dir.join("manifest.json")).unwrap();
    let said = [
        RunDir::create(fs(), &dir, manifest()).map(drop),
        RunDir::open(fs(), &dir, &manifest().identity).map(drop),
        Survey::read(&Disks, &dir).map(drop),
    ];
    for said in said {
        let error = said.unwrap_err();
        assert!(matches!(error, Error::Damaged { .. }), "{error:?}");
        assert!(error.to_string().contains("manifest.json is damaged: it is missing"), "{error}");
    }
}

#[test]
fn messages_are_true_and_well_formed() {
    let temporary = tempfile::tempdir().unwrap();
    let dir = temporary.path().join("run");
    some_run(&dir);
    let run = RunDir::open(fs(), &dir, &manifest().identity).unwrap();
    let busy = RunDir::open(fs(), &dir, &manifest().identity).err().unwrap().to_string();
    assert!(busy.contains("in use by another process or another part of this one"), "{busy}");
    drop(run);
    let survey = Survey::read(&Disks, &dir).unwrap();
    let name = |file: ebbtide_snapshot::FileNumber| dir.join(format!("{:08}.safetensors", file.0));
    std::fs::copy(name(survey.adjoints[1].file), name(survey.states[1].0)).unwrap();
    let found = Survey::read(&Disks, &dir).unwrap().verify(&fs()).join("\n");
    assert!(found.contains("it holds an adjoint of step 80, not a state of step 30"), "{found}");
}
