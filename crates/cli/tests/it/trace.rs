use std::collections::{BTreeSet, HashMap};
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::kill::{self, Life};

fn demo(trace: &Path, out: &Path, more: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ebbtide"));
    command.args(["demo", "--grid", "24x32", "--steps", "60", "--sources", "1", "--out"]).arg(out).args(more);
    command.env("EBBTIDE_TRACE", trace).env("EBBTIDE_DEVICE", "interpreter");
    command.stdout(Stdio::null()).stderr(Stdio::null());
    command
}

fn events(trace: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(trace).unwrap();
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error} in:\n{text}"))
}

/// Walks through the spans of each thread; gives those that were not left.
fn open_spans(events: &[Value]) -> HashMap<u64, Vec<&str>> {
    let mut open: HashMap<u64, Vec<&str>> = HashMap::new();
    let mut last = 0.0;
    for event in events {
        let (name, thread) = (event["name"].as_str().unwrap(), event["tid"].as_u64().unwrap());
        let time = event["ts"].as_f64().unwrap();
        match event["ph"].as_str().unwrap() {
            "B" => open.entry(thread).or_default().push(name),
            "E" => assert_eq!(open.get_mut(&thread).and_then(Vec::pop), Some(name), "spans nest"),
            "i" | "M" => {}
            other => panic!("an event of kind {other}"),
        }
        last = f64::max(last, time);
    }
    assert!(last > 0.0);
    open
}

#[test]
fn a_trace_shows_the_actions_of_the_schedule() {
    let dir = tempfile::tempdir().unwrap();
    let trace = dir.path().join("trace.json");
    let small = ["--iterations", "1", "--memory", "64KiB"];
    assert!(demo(&trace, &dir.path().join("out"), &small).status().unwrap().success());
    let events = events(&trace);
    assert!(open_spans(&events).values().all(Vec::is_empty), "every span is left");
    let names: BTreeSet<&str> = events.iter().map(|event| event["name"].as_str().unwrap()).collect();
    for name in
        ["thread_name", "compile", "plan", "gradient", "advance", "record", "reverse", "store", "load"]
    {
        assert!(names.contains(name), "{name} is missing: {names:?}");
    }
    // Each gradient records and reverses every step once.
    let steps = |name: &str| -> u64 {
        let begun = events.iter().filter(|event| event["name"] == name && event["ph"] == "B");
        begun
            .map(|event| event["args"]["to"].as_u64().unwrap() - event["args"]["from"].as_u64().unwrap())
            .sum()
    };
    let gradients =
        events.iter().filter(|event| event["name"] == "gradient" && event["ph"] == "B").count() as u64;
    assert!(gradients > 0);
    assert_eq!((steps("record"), steps("reverse")), (60 * gradients, 60 * gradients));
    assert!(steps("advance") > 60 * gradients, "the memory is too small to keep every step");
}

#[test]
fn a_trace_is_whole_when_the_process_is_killed() {
    let dir = tempfile::tempdir().unwrap();
    let trace = dir.path().join("trace.json");
    let run = dir.path().join("run");
    let durable = ["--iterations", "1000", "--durable", run.to_str().unwrap()];
    // The first evaluation has been traced when it has become durable.
    let life = kill::run_until(demo(&trace, &dir.path().join("out"), &durable), "after:rename:1");
    assert_eq!(life, Life::Killed);
    let events = events(&trace);
    assert!(events.len() > 10);
    open_spans(&events);
}

#[test]
fn a_trace_that_cannot_be_written_does_not_stop_the_run() {
    let dir = tempfile::tempdir().unwrap();
    let mut command =
        demo(&dir.path().join("no/such/folder"), &dir.path().join("out"), &["--iterations", "0"]);
    let output = command.stderr(Stdio::piped()).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success() && said.contains("EBBTIDE_TRACE"), "{said}");
}
