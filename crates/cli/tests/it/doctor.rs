//! `ebbtide doctor` and `ebbtide cache`.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

fn ebbtide(args: &[&str], cache: &Path, settings: &[(&str, &str)]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ebbtide"));
    command.args(args).env("EBBTIDE_CACHE", cache).envs(settings.iter().copied()).output().unwrap()
}

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn doctor_finds_compiler_cache_and_devices() {
    let cache = tempfile::tempdir().unwrap();
    let output = ebbtide(&["doctor", "--json"], cache.path(), &[("EBBTIDE_THREADS", "3")]);
    assert!(output.status.success(), "{output:?}");
    let report = json(&output);
    assert_eq!(report["processor"]["threads"], 3);
    assert!(report["processor"]["vector_bits"].as_u64().unwrap() >= 128);
    assert!(report["compiler"]["version"].as_str().is_some_and(|v| !v.is_empty()));
    assert_eq!(report["cache"]["folder"].as_str(), cache.path().to_str());
    assert!(report["devices"][0]["name"] == "cpu" && report["devices"][0]["milliseconds"].is_number());
    assert_eq!(report["devices"][2]["name"], "cuda");
    assert_eq!(report["problems"].as_array().map(Vec::len), Some(0));
}

#[test]
fn doctor_says_what_is_wrong_and_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    std::fs::write(&file, "").unwrap();
    let output = ebbtide(&["doctor"], &file, &[("EBBTIDE_CC", "no-such-compiler")]);
    let text = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(1));
    assert!(text.contains("problem    no C compiler: `no-such-compiler` was not found"), "{text}");
    assert!(text.contains("install a C compiler or name one in EBBTIDE_CC"), "{text}");
    assert!(text.contains("EBBTIDE_CACHE can name another"), "{text}");
    assert!(text.contains("device     interpreter: works"), "{text}");
}

#[test]
fn cache_is_shown_and_cleared() {
    let cache = tempfile::tempdir().unwrap();
    let one = cache.path().join("0123456789abcdef0123456789abcdef01234567.so");
    std::fs::write(&one, "12345").unwrap();
    std::fs::write(one.with_extension("seal"), "seal").unwrap();
    let other = cache.path().join("other.so");
    std::fs::write(&other, "123").unwrap();
    let shown = json(&ebbtide(&["cache", "show", "--json"], cache.path(), &[]));
    assert!(shown["entries"] == 1 && shown["bytes"] == 5, "{shown}");
    let text = ebbtide(&["cache", "show"], cache.path(), &[]).stdout;
    assert!(String::from_utf8_lossy(&text).contains("1 programs, 5 "), "{text:?}");
    let cleared = json(&ebbtide(&["cache", "clear", "--json"], cache.path(), &[]));
    assert_eq!(cleared["removed"], 1);
    assert!(std::fs::read_dir(cache.path()).unwrap().all(|left| left.unwrap().path() == other));
    assert_eq!(std::fs::read(&other).unwrap(), b"123");
    let shown = json(&ebbtide(&["cache", "show", "--json"], cache.path(), &[]));
    assert_eq!(shown["entries"], 0);
}

#[test]
fn a_setting_that_makes_no_sense_is_told_and_ignored() {
    let cache = tempfile::tempdir().unwrap();
    let senseless = [
        [("EBBTIDE_THREADS", "many"), ("EBBTIDE_VECTOR_BYTES", "7")],
        [("EBBTIDE_THREADS", "20000"), ("EBBTIDE_VECTOR_BYTES", "sixteen")],
    ];
    for settings in senseless {
        let output = ebbtide(&["doctor"], cache.path(), &settings);
        let told = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success(), "{:?}: {told}", output.status);
        for (name, value) in settings {
            assert_eq!(told.matches(&format!("{name}={value} is ignored")).count(), 1, "{told}");
        }
    }
}

#[test]
fn an_empty_setting_is_none() {
    let cache = tempfile::tempdir().unwrap();
    let empty = ["THREADS", "CC", "CFLAGS", "CHECK", "DEVICE", "TRACE", "VECTOR_BYTES"]
        .map(|name| format!("EBBTIDE_{name}"));
    let settings: Vec<(&str, &str)> = empty.iter().map(|name| (name.as_str(), "")).collect();
    let output = ebbtide(&["doctor", "--json"], cache.path(), &settings);
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    assert_eq!(json(&output)["settings"], serde_json::json!([["EBBTIDE_CACHE", cache.path()]]));
    let out = cache.path().join("demo");
    let demo = ["demo", "--steps", "4", "--out", out.to_str().unwrap()];
    let output = ebbtide(&demo, cache.path(), &settings);
    assert!(output.status.success(), "{output:?}");
    // The user's cache, and not the current folder.
    let mut command = Command::new(env!("CARGO_BIN_EXE_ebbtide"));
    command.args(["cache", "show", "--json"]).env("EBBTIDE_CACHE", "").env("XDG_CACHE_HOME", cache.path());
    let shown = json(&command.output().unwrap());
    assert_eq!(shown["folder"].as_str(), cache.path().join("ebbtide").to_str());
}

#[test]
fn doctor_knows_that_there_is_no_such_device() {
    let cache = tempfile::tempdir().unwrap();
    let output = ebbtide(&["doctor"], cache.path(), &[("EBBTIDE_DEVICE", "abacus")]);
    let text = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains("problem    there is no device `abacus`: EBBTIDE_DEVICE can be"), "{text}");
}

#[test]
fn doctor_finds_what_keeps_programs_from_running() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("cc");
    let bad = |text: &str, settings: &[(&str, &str)], said: &[&str]| {
        std::fs::write(&script, format!("#!/bin/sh\n{text}\n")).unwrap();
        std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
        let cache = tempfile::tempdir().unwrap();
        let settings = [&[("EBBTIDE_CC", script.to_str().unwrap())], settings].concat();
        let output = ebbtide(&["doctor"], cache.path(), &settings);
        let found = String::from_utf8_lossy(&output.stdout);
        assert_eq!(output.status.code(), Some(1), "{text}: {found}");
        said.iter().for_each(|said| assert!(found.contains(said), "{text}: {said}: {found}"));
        assert!(!found.contains("flaw of Ebbtide"), "{text}: {found}");
        assert_eq!(std::fs::read_dir(cache.path()).unwrap().count(), 0, "{text}");
    };
    bad("exec cc \"$@\"", &[("EBBTIDE_CFLAGS", "-fno-such-flag")], &["EBBTIDE_CFLAGS, `-fno-such-flag`"]);
    bad("[ \"$1\" = --version ] && echo 1.0; exit 0", &[], &["says that it compiled"]);
    let garbage = "[ \"$1\" = --version ] && exec echo 1.0; while [ $# -gt 0 ]; do [ \"$1\" = -o ] && echo no > \"$2\"; shift; done";
    bad(garbage, &[], &["could not be loaded", "EBBTIDE_CC can name another"]);
    bad("exec tail -f /dev/null", &[("EBBTIDE_CC_SECONDS", "1")], &["did not come to an end in 1 seconds"]);
}
