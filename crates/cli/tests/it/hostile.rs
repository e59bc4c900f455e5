//! Whatever stands in files and names, and wherever output leads: no panic, and an object where one was asked for.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::Arc;

use ebbtide_snapshot::fs::Disks;
use ebbtide_snapshot::{Budget, Identity, Manifest, RunDir};
use serde_json::Value;

fn ebbtide(args: &[&OsStr]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ebbtide"));
    command.args(args).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn run(args: &[&OsStr]) -> Output {
    let output = ebbtide(args).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.code().is_some_and(|code| code < 3) && !said.contains("panicked"),
        "{args:?}: {said}"
    );
    output
}

fn object(output: &Output) -> Value {
    let text = String::from_utf8(output.stdout.clone()).unwrap();
    assert_eq!(text.trim_end().lines().count().min(1), 1, "{text:?}");
    serde_json::from_str(&text).unwrap_or_else(|e| panic!("{e}: {text:?}"))
}

fn make_run(dir: &Path, program: &str) {
    let budget = Budget { slots: 4, block: 1, disk_slots: 0, disk_cost: 1 };
    let manifest = Manifest::new(
        Identity::new(program, "f00d").input("in\u{1b}put", "\r\n"),
        "revolve",
        Some(9),
        budget,
    );
    RunDir::create(Arc::new(Disks), dir, manifest).unwrap().flush().unwrap();
}

fn words(args: &'static str) -> Vec<&'static OsStr> {
    args.split(' ').map(OsStr::new).collect()
}

#[test]
fn a_reader_that_goes_away_is_no_panic() {
    let dir = tempfile::tempdir().unwrap();
    make_run(&dir.path().join("run"), "heat");
    let place = dir.path().as_os_str();
    let [list, show, verify, prune] = ["list", "show", "verify", "prune"].map(OsStr::new);
    let runs = OsStr::new("runs");
    let commands = [
        words("--help"),
        words("--version"),
        words("cache show"),
        words("cache show --json"),
        words("plan --steps 1000 --slots 10 --schedule revolve"),
        words("plan --steps 1000 --slots 10 --schedule revolve --json"),
        words("doctor"),
        vec![runs, list, place],
        vec![runs, show, place],
        vec![runs, verify, place],
        vec![runs, prune, place],
    ];
    for args in commands {
        let mut command = ebbtide(&args);
        command.env("EBBTIDE_CACHE", dir.path().join("cache"));
        let mut child = command.spawn().unwrap();
        // Nobody reads.
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(
            output.status.success() && !said.contains("panicked"),
            "{args:?}: {:?}: {said}",
            output.status
        );
    }
}

#[test]
fn an_output_that_cannot_be_written_is_an_error() {
    let Ok(full) = std::fs::File::options().write(true).open("/dev/full") else { return };
    for args in ["cache show", "cache show --json", "plan --steps 1000 --slots 10 --schedule revolve"] {
        let output = ebbtide(&words(args)).stdout(full.try_clone().unwrap()).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{args}: {said}");
        assert!(said.contains("standard output could not be written"), "{args}: {said}");
    }
}

#[test]
fn names_that_are_no_text_are_shown() {
    let dir = tempfile::tempdir().unwrap();
    let odd = dir.path().join(OsStr::from_bytes(b"r\xffn"));
    make_run(&odd, "heat");
    let runs = OsStr::new("runs");
    for command in ["list", "show", "verify", "prune"] {
        for place in [dir.path(), &odd] {
            let plain = run(&[runs, OsStr::new(command), place.as_os_str()]);
            assert!(plain.status.success(), "{command}: {plain:?}");
            let output = run(&[runs, OsStr::new(command), place.as_os_str(), OsStr::new("--json")]);
            let found = object(&output);
            if command != "prune" {
                assert!(found["runs"][0]["dir"].as_str().unwrap().contains("r\u{fffd}n"), "{found}");
            }
        }
    }
    // An option that is no text.
    let output = run(&[OsStr::from_bytes(b"\xff"), OsStr::new("--json")]);
    assert_eq!((output.status.code(), object(&output)["kind"].as_str()), (Some(2), Some("usage")));
    let output = run(&words("plan --steps 1000 --slots 10 --schedule nonsense --json"));
    assert_eq!((output.status.code(), object(&output)["kind"].as_str()), (Some(2), Some("usage")));
}

#[test]
fn an_error_is_an_object_too_where_one_was_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let nowhere = folder.path().join("nowhere");
    let [runs, json] = ["runs", "--json"].map(OsStr::new);
    for command in ["list", "show", "verify", "prune"] {
        let output = run(&[runs, OsStr::new(command), nowhere.as_os_str(), json]);
        assert_eq!(output.status.code(), Some(1));
        let found = object(&output);
        assert_eq!(found["kind"], "failure");
        assert!(found["error"].as_str().unwrap().contains("could not list"), "{found}");
        assert!(String::from_utf8_lossy(&output.stderr).starts_with("error: could not list"));
    }
    for wrong in
        ["plan --json", "runs list --json", "doctor --nonsense --json", "plan --steps 10 --slots x --json"]
    {
        let output = run(&words(wrong));
        assert_eq!(output.status.code(), Some(2), "{wrong}");
        assert_eq!(object(&output)["kind"], "usage", "{wrong}");
    }
    // One that tells what is wrong in its object says no more.
    let file = folder.path().join("file");
    std::fs::write(&file, "").unwrap();
    let output = ebbtide(&words("doctor --json")).env("EBBTIDE_CACHE", &file).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(!object(&output)["problems"].as_array().unwrap().is_empty());
}

#[test]
fn what_commands_a_terminal_is_shown_as_an_escape() {
    let dir = tempfile::tempdir().unwrap();
    make_run(&dir.path().join("ru\u{1b}[31mn"), "he\u{1b}]0;evil\u{7}at\nsecond line");
    for command in ["list", "show", "verify"] {
        let output = run(&[OsStr::new("runs"), OsStr::new(command), dir.path().as_os_str()]);
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(!text.chars().any(|c| c.is_control() && c != '\n'), "{text:?}");
        assert!(text.contains("\\u{1b}[31m"), "{text:?}");
        if command != "verify" {
            assert!(text.contains("\\u{1b}]0;evil\\u{7}at\\nsecond line"), "{text:?}");
        }
    }
    let odd = dir.path().join("no\u{1b}where");
    let output = run(&[OsStr::new("runs"), OsStr::new("list"), odd.as_os_str()]);
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("no\\u{1b}where") && !said.contains('\u{1b}'), "{said:?}");
}

#[test]
fn one_broken_run_does_not_hide_the_others() {
    let dir = tempfile::tempdir().unwrap();
    for name in ["a", "b", "c", "d"] {
        make_run(&dir.path().join(name), "heat");
    }
    std::fs::write(dir.path().join("b/manifest.json"), "{ no manifest").unwrap();
    // What is no file.
    std::fs::remove_file(dir.path().join("c/journal.txt")).unwrap();
    std::fs::create_dir(dir.path().join("c/journal.txt")).unwrap();
    std::os::unix::fs::symlink("nowhere", dir.path().join("dangling")).unwrap();
    for command in ["list", "show", "verify", "prune"] {
        let args = [OsStr::new("runs"), OsStr::new(command), dir.path().as_os_str()];
        let output = run(&args);
        let text = String::from_utf8(output.stdout).unwrap();
        let broken = dir.path().join("b");
        assert!(
            text.contains(if command == "list" { "damaged" } else { broken.to_str().unwrap() }),
            "{command}: {text}"
        );
        if command != "prune" {
            assert!(
                ["a", "d"]
                    .iter()
                    .all(|name| text.lines().any(|line| line.split(['/', ' ', ':']).any(|w| w == *name))),
                "{text}"
            );
        }
        let found = object(&run(&[args[0], args[1], args[2], OsStr::new("--json")]));
        let told = if command == "prune" { &found["not_touched"] } else { &found["runs"] };
        assert!(told.as_array().unwrap().len() >= 2, "{command}: {found}");
    }
}

#[test]
fn demo_looks_at_its_folder_before_it_computes() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    std::fs::write(&file, "").unwrap();
    // So much would take days.
    let mut args = words("demo --iterations 100000 --steps 1000000 --json --out");
    let out = file.join("out");
    args.push(out.as_os_str());
    let output = run(&args);
    assert_eq!(output.status.code(), Some(1));
    let found = object(&output);
    assert!(found["error"].as_str().unwrap().contains("--out names another directory"), "{found}");
}
