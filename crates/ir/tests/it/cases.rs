//! Case files: `tests/cases/*.eb`. `UPDATE_EXPECT=1` writes what they should have.

use std::path::Path;

use ebbtide_cases::check_all;
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
    let found = check_all(&folder, step).unwrap_or_else(|wrong| panic!("{wrong}"));
    assert!(found >= 25, "where are the cases?");
}
