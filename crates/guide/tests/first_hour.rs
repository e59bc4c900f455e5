//! The commands of the first hour, followed on paper.

use std::path::{Path, PathBuf};

const PAGE: &str = include_str!("../../../docs/src/first.md");

/// The commands of the page's shell blocks, in order.
fn commands() -> Vec<&'static str> {
    let blocks = PAGE.split("```sh\n").skip(1).filter_map(|rest| rest.split("```").next());
    let lines = blocks.flat_map(str::lines).map(|line| line.split(" #").next().unwrap_or(line));
    lines.flat_map(|line| line.split("&&")).map(str::trim).filter(|command| !command.is_empty()).collect()
}

/// A folder after `cd`.
fn enter(folder: &Path, to: &str) -> PathBuf {
    Path::new(to).components().fold(folder.to_path_buf(), |folder, part| match part.as_os_str().to_str() {
        Some("..") => folder.parent().expect("the page leaves the folder of the clone").to_path_buf(),
        _ => folder.join(part),
    })
}

#[test]
fn the_first_hour_makes_its_crate_beside_the_clone_and_finds_ebbtide_from_there() {
    let clone = Path::new("work/ebbtide");
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let (mut here, mut made, mut added) = (clone.to_path_buf(), None, false);
    for command in commands() {
        let words: Vec<&str> = command.split_whitespace().collect();
        match words[..] {
            ["cd", to] => here = enter(&here, to),
            ["cargo", "new", name] => {
                assert!(!here.starts_with(clone), "`{command}` inside the clone breaks its workspace");
                made = Some(here.join(name));
            }
            ["cargo", "add", "ebbtide", "--path", path] => {
                assert_eq!(made.as_ref(), Some(&here), "`{command}` belongs in the new crate");
                let target = enter(&here, path);
                let inside = target.strip_prefix(clone).expect("the path leads into the clone");
                let manifest = std::fs::read_to_string(repository.join(inside).join("Cargo.toml")).unwrap();
                assert!(manifest.contains("name = \"ebbtide\"\n"), "{}", inside.display());
                added = true;
            }
            ["cargo", "run", ..] => assert_eq!(here, clone, "`{command}` belongs in the clone"),
            _ => panic!("`{command}` is not followed by this test: teach it"),
        }
    }
    assert!(added, "the page adds ebbtide to the new crate");
}
