//! The commands of the first hour, followed on paper.

use std::path::{Path, PathBuf};

use ebbtide::prelude::*;

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

#[program]
fn spread(u: &mut Array1<f64>, next: &mut Array1<f64>, k: f64, steps: usize) {
    let n = u.len();
    for _t in 0..steps {
        for i in par(0..n) {
            let left = if i > 0 { u[i - 1] } else { u[i] };
            let right = if i + 1 < n { u[i + 1] } else { u[i] };
            next[i] = u[i] + k * (left - 2.0 * u[i] + right);
        }
        swap(u, next);
    }
}

#[program]
fn misfit(
    u: &mut Array1<f64>,
    next: &mut Array1<f64>,
    k: f64,
    steps: usize,
    seen: &Array1<f64>,
    loss: &mut Array0<f64>,
) {
    spread(u, next, k, steps);
    for i in par(0..u.len()) {
        let d = u[i] - seen[i];
        loss[[]] += 0.5 * d * d;
    }
}

/// The figures of the page are those of a CPU.
#[test]
fn the_page_shows_the_message_of_a_budget_that_is_too_small() {
    let device = Device::cpu();
    let array = || device.zeros::<f64, 1>([10_000]).unwrap();
    let (u, next, seen, loss) = (array(), array(), array(), device.zeros([]).unwrap());
    let gradient =
        misfit().grad(misfit::loss).wrt(misfit::k).memory(Bytes::kib(10)).compile(&device).unwrap();
    let error = gradient.plan((&u, &next, 0.25, 5_000, &seen, &loss)).unwrap_err().to_string();
    assert!(device.name() != "cpu" || PAGE.contains(&format!("Error: {error}\n")), "{error}");
}

/// Forges show all lines of a block, also those that rustdoc and mdBook hide: these stand in comments.
#[test]
fn no_page_has_hidden_lines_in_its_code() {
    let pages = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/src");
    for entry in std::fs::read_dir(pages).unwrap() {
        let path = entry.unwrap().path();
        let Ok(page) = std::fs::read_to_string(&path) else { continue };
        let blocks = page.split("```rust").skip(1).filter_map(|rest| rest.split("```").next());
        let hidden = blocks.flat_map(str::lines).find(|line| *line == "#" || line.starts_with("# "));
        assert_eq!(hidden, None, "{}", path.display());
    }
}
