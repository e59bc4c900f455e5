//! Case files: `tests/cases/*.eb`. `UPDATE_EXPECT=1` writes what they should have.

use std::path::Path;

use ebbtide_ir::cases::Case;
use ebbtide_ir::{Program, passes, verify, verify_source};

/// A transformation by its name, or the verifier.
fn step(name: &str, source: &Program) -> Result<Program, String> {
    let lawful = verify_source(source).map_err(|why| why.to_string())?;
    if name == "verify" {
        return Ok(lawful);
    }
    let pass = passes::by_name(name).ok_or(format!("there is no pass `{name}`"))?;
    let after = pass(&lawful);
    verify(&after).map_err(|why| format!("`{name}` broke a law: {why}"))?;
    Ok(after)
}

#[test]
fn every_case_is_as_its_file_says() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases");
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let mut wrong = Vec::new();
    for file in &files {
        let text = std::fs::read_to_string(file).unwrap();
        let name = file.file_name().unwrap().to_string_lossy();
        match Case::read(&text).and_then(|case| case.now(step)) {
            Ok(now) if now == text => {}
            Ok(now) if std::env::var_os("UPDATE_EXPECT").is_some() => std::fs::write(file, now).unwrap(),
            Ok(now) => wrong.push(format!("{name} is now\n{now}")),
            Err(why) => wrong.push(format!("{name}: {why}")),
        }
    }
    assert!(
        wrong.is_empty(),
        "{}\n`UPDATE_EXPECT=1 cargo test` writes what cases should have",
        wrong.join("\n")
    );
    assert!(files.len() >= 25, "where are the cases?");
}
