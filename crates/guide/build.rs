//! Makes doc tests of the pages of the guide.
//!
//! - Input: the pages in `docs/src`. Lines that a code block needs to run, and that readers need not see, stand in comments beside it,
//!   which no viewer of the pages shows: `<!-- before` a block, and `<!-- after` it.
//! - Output: the same pages in `OUT_DIR`, with these lines inside the blocks, hidden as rustdoc hides lines.

use std::error::Error;
use std::path::{Path, PathBuf};

fn main() -> Result<(), Box<dyn Error>> {
    let pages = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/src");
    let out = PathBuf::from(std::env::var("OUT_DIR")?);
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed={}", pages.display());
    for entry in std::fs::read_dir(&pages)? {
        let path = entry?.path();
        let Some(name) = path.file_name().filter(|_| path.extension().is_some_and(|end| end == "md")) else {
            continue;
        };
        println!("cargo::rerun-if-changed={}", path.display());
        let page = std::fs::read_to_string(&path)?;
        let tested = with_hidden_lines(&page).map_err(|error| format!("{}: {error}", path.display()))?;
        std::fs::write(out.join(name), tested)?;
    }
    Ok(())
}

/// The page with the lines of comments inside the blocks beside them.
fn with_hidden_lines(page: &str) -> Result<String, String> {
    let mut lines = page.lines().peekable();
    let (mut out, mut before): (Vec<String>, Vec<String>) = (Vec::new(), Vec::new());
    while let Some(line) = lines.next() {
        if line == "<!-- before" {
            before = comment(&mut lines)?;
        } else if line.starts_with("```rust") {
            out.push(line.to_owned());
            out.append(&mut before);
            out.extend(lines.by_ref().take_while(|line| *line != "```").map(str::to_owned));
            while lines.next_if(|line| line.is_empty()).is_some() {}
            if lines.next_if(|line| *line == "<!-- after").is_some() {
                out.extend(comment(&mut lines)?);
            }
            out.extend(["```".to_owned(), String::new()]);
        } else if !before.is_empty() && !line.is_empty() {
            return Err(format!("`<!-- before` stands before no block of code but before `{line}`"));
        } else {
            out.push(line.to_owned());
        }
    }
    Ok(out.join("\n"))
}

/// The lines up to the end of a comment, hidden.
fn comment<'a>(lines: &mut impl Iterator<Item = &'a str>) -> Result<Vec<String>, String> {
    let mut hidden = Vec::new();
    for line in lines {
        if line == "-->" {
            return Ok(hidden);
        }
        hidden.push(format!("# {line}").trim_end().to_owned());
    }
    Err("a comment has no end".to_owned())
}
