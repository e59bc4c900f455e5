//! The guide: its links lead somewhere, its code runs, and it says what the command says.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn pages() -> Vec<PathBuf> {
    let entries = fs::read_dir(root().join("docs/src")).unwrap();
    let mut pages: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    pages.retain(|path| path.extension().is_some_and(|extension| extension == "md"));
    pages.sort();
    assert!(pages.len() > 10);
    pages
}

/// The text without blocks of code, each line of which is left empty.
fn prose(text: &str) -> String {
    let mut inside = false;
    let line = |line: &str| {
        let fence = line.trim_start().starts_with("```");
        inside ^= fence;
        if fence || inside { String::new() } else { line.to_string() }
    };
    text.lines().map(line).collect::<Vec<_>>().join("\n")
}

/// Where `[text](target)` and `![text](target)` lead to.
fn links(text: &str) -> Vec<String> {
    let text = prose(text);
    let targets = text.split("](").skip(1).filter_map(|rest| rest.split_once(')'));
    targets.map(|(target, _)| target.to_string()).collect()
}

/// The anchors of a page, made from its headings as GitHub and mdBook make them.
fn anchors(text: &str) -> BTreeSet<String> {
    let text = prose(text);
    let headings = text.lines().filter(|line| line.starts_with('#'));
    headings
        .map(|line| {
            let words = line.trim_start_matches('#').trim().to_lowercase();
            let kept = words.chars().filter(|c| c.is_alphanumeric() || *c == ' ' || *c == '-' || *c == '_');
            kept.map(|c| if c == ' ' { '-' } else { c }).collect()
        })
        .collect()
}

#[test]
fn links_and_anchors_are_found() {
    let text = "# One `two`, three\n[a](b.md#c) ![d](e.svg)\n```\n[not](this)\n# nor this\n```\n";
    assert_eq!(links(text), ["b.md#c", "e.svg"]);
    assert_eq!(anchors(text).into_iter().collect::<Vec<_>>(), ["one-two-three"]);
}

#[test]
fn every_link_leads_somewhere() {
    let more = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "examples/README.md"];
    let mut checked = 0;
    for page in pages().into_iter().chain(more.map(|name| root().join(name))) {
        for link in links(&read(&page)) {
            if link.starts_with("https://") {
                continue;
            }
            let (file, anchor) = link.split_once('#').unwrap_or((&link, ""));
            let target = match file {
                "" => page.clone(),
                file => page.parent().unwrap().join(file),
            };
            assert!(target.exists(), "{}: there is no {link}", page.display());
            if !anchor.is_empty() {
                assert!(
                    anchors(&read(&target)).contains(anchor),
                    "{}: no heading for {link}",
                    page.display()
                );
            }
            checked += 1;
        }
    }
    assert!(checked > 60, "only {checked} links were found");
}

#[test]
fn the_summary_lists_every_page_and_picture_files_are_shown() {
    let summary = read(&root().join("docs/src/SUMMARY.md"));
    let listed: BTreeSet<String> = links(&summary).into_iter().collect();
    let shown: BTreeSet<String> = pages().iter().flat_map(|page| links(&read(page))).collect();
    for page in pages() {
        let name = page.file_name().unwrap().to_str().unwrap();
        assert!(name == "SUMMARY.md" || listed.contains(name), "SUMMARY.md does not list {name}");
    }
    for picture in fs::read_dir(root().join("docs/src/pictures")).unwrap() {
        let name = format!("pictures/{}", picture.unwrap().file_name().to_str().unwrap());
        assert!(shown.contains(&name), "no page shows {name}");
    }
}

/// Rust blocks run as doc tests of `crates/guide`; those of the core are put together below.
#[test]
fn the_code_of_every_page_is_run() {
    let run = read(&root().join("crates/guide/src/lib.rs"));
    for page in pages() {
        let name = page.file_name().unwrap().to_str().unwrap();
        let text = read(&page);
        let ignored = text.lines().any(|line| line.starts_with("```rust,"));
        assert!(!ignored || name == "core.md", "{name} has Rust that is not run");
        if text.lines().any(|line| line == "```rust") {
            assert!(
                run.contains(&format!("= \"{name}\",")),
                "`crates/guide` does not run the code of {name}"
            );
        }
    }
}

#[test]
fn the_core_in_one_page_is_a_program_that_passes_its_own_checks() {
    let page = read(&root().join("docs/src/core.md"));
    let blocks = page.split("```rust,ignore\n").skip(1).filter_map(|rest| rest.split_once("\n```"));
    let program: String = blocks.map(|(code, _)| format!("{code}\n\n")).collect();
    let dir = tempfile::tempdir().unwrap();
    let (source, binary) = (dir.path().join("core.rs"), dir.path().join("core"));
    fs::write(&source, &program).unwrap();
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let built = Command::new(rustc)
        .args(["--edition", "2024", "-O", "-D", "warnings", "-o"])
        .arg(&binary)
        .arg(&source)
        .output()
        .unwrap();
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    let run = Command::new(&binary).output().unwrap();
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    assert_eq!(String::from_utf8(run.stdout).unwrap(), "every gradient has the same bits\n");
}

#[test]
fn the_page_on_the_command_has_a_section_for_each_subcommand() {
    let output = Command::new(env!("CARGO_BIN_EXE_ebbtide")).arg("--help").output().unwrap();
    let help = String::from_utf8(output.stdout).unwrap();
    let (_, commands) = help.split_once("Commands:\n").unwrap();
    let names: Vec<&str> = commands
        .lines()
        .take_while(|line| !line.is_empty())
        .filter_map(|line| line.split_whitespace().next())
        .collect();
    assert!(names.contains(&"demo") && names.contains(&"help"), "{names:?}");
    let page = read(&root().join("docs/src/cli.md"));
    for name in names {
        assert!(page.contains(&format!("\n## {name}\n")), "docs/src/cli.md has no section on `{name}`");
    }
}

/// Every long option of `demo`, and every variable of the environment, is on the page.
#[test]
fn the_page_on_the_command_has_the_options_of_the_demo_and_the_variables() {
    let output = Command::new(env!("CARGO_BIN_EXE_ebbtide")).args(["demo", "--help"]).output().unwrap();
    let help = String::from_utf8(output.stdout).unwrap();
    let page = read(&root().join("docs/src/cli.md"));
    let options: Vec<&str> = help
        .lines()
        .filter_map(|line| line.trim_start().strip_prefix("--"))
        .filter_map(|line| line.split([' ', '<']).next())
        .collect();
    assert!(options.len() >= 9, "{options:?}");
    for option in options {
        assert!(page.contains(&format!("`--{option}")), "docs/src/cli.md does not mention --{option}");
    }
    for variable in ["DEVICE", "THREADS", "CC", "CFLAGS", "CACHE", "VECTOR_BYTES", "CHECK", "TRACE"] {
        assert!(page.contains(&format!("`EBBTIDE_{variable}`")), "docs/src/cli.md: EBBTIDE_{variable}");
    }
}

#[test]
fn the_picture_of_a_schedule_is_what_the_command_draws() {
    let dir = tempfile::tempdir().unwrap();
    let drawn = dir.path().join("revolve.svg");
    let mut command = Command::new(env!("CARGO_BIN_EXE_ebbtide"));
    command.args(["plan", "--steps", "24", "--slots", "4", "--picture"]).arg(&drawn);
    assert!(command.output().unwrap().status.success());
    assert_eq!(read(&drawn), read(&root().join("docs/src/pictures/revolve.svg")));
}

/// What the guide says about machines without a compiler, and with the wrong one.
#[test]
fn the_page_on_errors_shows_what_a_missing_compiler_says() {
    let page = read(&root().join("docs/src/errors.md"));
    let dir = tempfile::tempdir().unwrap();
    let demo = |compiler: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ebbtide"));
        command.args([
            "demo",
            "--grid",
            "24x32",
            "--steps",
            "20",
            "--sources",
            "1",
            "--iterations",
            "0",
            "--out",
        ]);
        let output = command.arg(dir.path()).env("EBBTIDE_CC", compiler).output().unwrap();
        String::from_utf8(output.stderr).unwrap()
    };
    for (compiler, message) in [
        ("nonsense", "ebbtide: warning: programs are interpreted, which is slow: "),
        ("/bin/false", "`/bin/false` failed without a word"),
    ] {
        let said = demo(compiler);
        let line = said.lines().find(|line| line.contains(message)).unwrap_or_else(|| panic!("{said}"));
        let line = line.strip_prefix("error: ").unwrap_or(line);
        let line = line.split_once("program `misfit_gradient`: ").map_or(line, |(_, reason)| reason);
        assert!(page.contains(line), "docs/src/errors.md does not show: {line}");
    }
}
