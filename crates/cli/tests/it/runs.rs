use std::path::Path;
use std::process::{Command, Output};
use std::sync::Arc;

use ebbtide_snapshot::fs::Disks;
use ebbtide_snapshot::{Budget, Identity, Manifest, Place, RunDir};
use serde_json::Value;

/// How far a run is taken before it is left.
#[derive(PartialEq, PartialOrd)]
enum Reach {
    Forward,
    Backward,
    Finished,
}

fn identity() -> Identity {
    Identity::new("heat", "f00d").input("nu", 0.1)
}

fn make_run(dir: &Path, reach: Reach) {
    let manifest = Manifest::new(
        identity(),
        "revolve",
        Some(100),
        Budget { slots: 4, block: 1, disk_slots: 0, disk_cost: 1 },
    );
    let mut run = RunDir::create(Arc::new(Disks), dir, manifest).unwrap();
    let (_, mut disk) = run.take_recovered();
    for (slot, step) in [0, 40].into_iter().enumerate() {
        disk.begin(slot).unwrap().put("u", &[step as f64; 100]).unwrap();
        disk.commit(slot, step).unwrap();
    }
    if reach >= Reach::Backward {
        run.adjoints().begin_waiting().unwrap().put("du", &[1.0; 100]).unwrap();
        run.adjoints().commit(70, 100);
    }
    if reach == Reach::Finished {
        run.adjoints().begin_waiting().unwrap().put("du", &[2.0; 100]).unwrap();
        run.adjoints().finish(100).unwrap();
    }
    run.flush().unwrap();
}

fn three_runs() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    make_run(&dir.path().join("a"), Reach::Forward);
    make_run(&dir.path().join("b"), Reach::Backward);
    make_run(&dir.path().join("c"), Reach::Finished);
    std::fs::create_dir(dir.path().join("not-a-run")).unwrap();
    dir
}

fn runs(command: &str, dir: &Path, more: &[&str]) -> Output {
    let ebbtide = env!("CARGO_BIN_EXE_ebbtide");
    Command::new(ebbtide).args(["runs", command]).arg(dir).args(more).output().unwrap()
}

fn text(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn json(command: &str, dir: &Path, more: &[&str]) -> Value {
    let output = runs(command, dir, &[more, &["--json"]].concat());
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn a_list_says_how_far_each_run_is() {
    let dir = three_runs();
    let list = text(&runs("list", dir.path(), &[]));
    let lines: Vec<&str> = list.lines().collect();
    assert_eq!(lines.len(), 4, "{list}");
    for (line, name, condition, progress) in [
        (lines[1], "a ", "interrupted", "40 of 100 steps forward"),
        (lines[2], "b ", "interrupted", "30 of 100 steps reversed"),
        (lines[3], "c ", "finished", "all 100 steps reversed"),
    ] {
        assert!(line.starts_with(name) && line.contains(condition) && line.contains(progress), "{list}");
        assert!(line.contains("KiB") && line.ends_with("seconds ago"), "{list}");
    }
    let json = json("list", dir.path(), &[]);
    assert_eq!(json["runs"][1]["progress"]["phase"], "backward");
    assert_eq!(json["runs"][1]["progress"]["step"], 70);
    assert_eq!(json["runs"][2]["condition"], "finished");
}

#[test]
fn a_run_is_shown_with_its_inputs_and_the_command_that_goes_on() {
    let dir = three_runs();
    let shown = text(&runs("show", &dir.path().join("b"), &[]));
    for part in ["heat (f00d)", "nu = 0.1", "before step", "0, 40", "continue with", "1 adjoint"] {
        assert!(shown.contains(part), "{part} is missing:\n{shown}");
    }
    let json = json("show", &dir.path().join("b"), &[]);
    assert_eq!(json["runs"][0]["states"], serde_json::json!([0, 40]));
    assert!(json["runs"][0]["command"].as_str().unwrap().starts_with("cd "));
}

#[test]
fn a_run_in_use_is_running_and_not_touched() {
    let dir = three_runs();
    let run = RunDir::open(Arc::new(Disks), &dir.path().join("c"), &identity()).unwrap();
    assert_eq!(json("list", dir.path(), &[])["runs"][2]["condition"], "running");
    let pruned = json("prune", dir.path(), &["--finished"]);
    assert_eq!(pruned["not_touched"][0]["why"], "in use");
    drop(run);
    assert!(dir.path().join("c").exists());
}

#[test]
fn verification_finds_what_is_damaged_and_fails() {
    let dir = three_runs();
    assert_eq!(text(&runs("verify", dir.path(), &[])).matches(": sound").count(), 3);
    let file = dir.path().join("b").join("00000001.safetensors");
    let mut bytes = std::fs::read(&file).unwrap();
    bytes[4100] ^= 1;
    std::fs::write(&file, bytes).unwrap();
    std::fs::write(dir.path().join("a").join("manifest.json"), "{").unwrap();
    let output = runs("verify", dir.path(), &[]);
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(said.contains("the checksum of array `u` does not match"), "{said}");
    assert!(said.contains("manifest.json is damaged: it does not parse"), "{said}");
    let json = json("verify", dir.path(), &[]);
    let sound: Vec<&Value> = (0..3).map(|run| &json["runs"][run]["sound"]).collect();
    assert_eq!(sound, [false, false, true]);
    assert!(text(&runs("list", dir.path(), &[])).contains("damaged"));
    // One that has lost its manifest is a run still.
    std::fs::remove_file(dir.path().join("c").join("manifest.json")).unwrap();
    let output = runs("verify", &dir.path().join("c"), &[]);
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("cannot continue") && !said.contains("continues from what is sound"), "{said}");
}

#[test]
fn pruning_removes_what_it_says() {
    let dir = three_runs();
    let leftover = dir.path().join("a").join("00000099.safetensors.tmp");
    std::fs::write(&leftover, "half").unwrap();
    let told = text(&runs("prune", dir.path(), &["--finished", "--dry-run"]));
    assert!(told.contains("would remove") && leftover.exists() && dir.path().join("c").exists(), "{told}");
    text(&runs("prune", dir.path(), &[]));
    assert!(!leftover.exists() && dir.path().join("c").exists());
    text(&runs("prune", dir.path(), &["--finished"]));
    assert!(!dir.path().join("c").exists() && dir.path().join("b").exists());
    assert_eq!(text(&runs("prune", dir.path(), &["--finished"])), "nothing to remove\n");
}

#[test]
fn a_directory_that_is_not_there_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    assert_eq!(text(&runs("list", dir.path(), &[])), "no runs here\n");
    let output = runs("list", &dir.path().join("nowhere"), &[]);
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8(output.stderr).unwrap().contains("could not list"));
}

/// A part of a run on the parts of a grid, with these frontiers.
fn make_part(dir: &Path, part: usize, frontiers: &[u64]) {
    let budget = Budget { slots: 0, block: 1, disk_slots: 0, disk_cost: 0 };
    let manifest = Manifest::new(identity().input("part", part), "of a compiled program", None, budget);
    let mut run = RunDir::create(Arc::new(Disks), &dir.join(format!("part-{part}")), manifest).unwrap();
    for number in frontiers {
        run.adjoints().begin_waiting().unwrap().put("frontier", &[*number]).unwrap();
        run.adjoints().commit(70, 100);
    }
    run.flush().unwrap();
}

#[test]
fn c66_a_run_on_parts_is_verified_from_one_machine() {
    let dir = tempfile::tempdir().unwrap();
    let run = dir.path().join("survey");
    for (part, frontiers) in [[3, 4], [2, 3], [3, 4]].iter().enumerate() {
        make_part(&run, part, frontiers);
    }
    std::fs::write(run.join("parts.json"), "{\"version\": 1, \"program\": \"heat\", \"parts\": 3}").unwrap();
    for place in [dir.path(), &run] {
        let said = text(&runs("verify", place, &[]));
        assert_eq!(said.matches("continues from frontier 3 of all parts").count(), 3, "{said}");
        let said = text(&runs("list", place, &[]));
        assert!(said.contains("survey/part-0") && said.contains("survey/part-2"), "{said}");
    }
    // Nothing of a run that others go on with is cleared away.
    let said = text(&runs("prune", &run, &["--finished"]));
    assert!(said.contains("not all parts"), "{said}");
    std::fs::remove_dir_all(run.join("part-1")).unwrap();
    let output = runs("verify", &run, &[]);
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(!output.status.success() && said.contains("part 1 of 3 is missing"), "{said}");
}
