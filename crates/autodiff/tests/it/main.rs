//! Case files of derivatives and of the steps to them: `tests/cases/*.eb`. `UPDATE_EXPECT=1` writes what they should have.
//!
//! A step is one of `STEPS`; `adjoint of loss by u, s`, perhaps with `without tape by exchange, trim slots`; or `tangent by u`.

mod nests;

use std::path::Path;

use ebbtide_autodiff::{Optimisation, Request, STEPS, gradient_to_show, tangent};
use ebbtide_cases::check_all;
use ebbtide_ir::{Program, verify, verify_source};

fn step(name: &str, source: &Program) -> Result<Program, String> {
    let mut program = verify_source(source).map_err(|why| why.to_string())?;
    if let Some((_, pass)) = STEPS.iter().find(|(known, _)| *known == name) {
        pass(&mut program);
        verify(&program).map_err(|why| format!("`{name}` broke a law: {why}"))?;
        return Ok(program);
    }
    if let Some(wrt) = name.strip_prefix("tangent by ") {
        return tangent(&program, &list(wrt)).map(|tangent| tangent.program).map_err(|why| why.to_string());
    }
    let asked = name.strip_prefix("adjoint of ").ok_or(format!("there is no step `{name}`"))?;
    let (asked, without) = asked.split_once(" without ").unwrap_or((asked, ""));
    let (of, wrt) = asked.split_once(" by ").ok_or("an adjoint is `of` one array `by` others")?;
    let without = list(without).iter().map(|name| optimisation(name)).collect::<Result<_, _>>()?;
    let request = Request { of: of.to_string(), wrt: list(wrt), without, ..Request::default() };
    gradient_to_show(&program, &request).map(|gradient| gradient.program).map_err(|why| why.to_string())
}

fn list(text: &str) -> Vec<String> {
    text.split(", ").filter(|name| !name.is_empty()).map(str::to_string).collect()
}

/// `tape by exchange` is `TapeByExchange`.
fn optimisation(name: &str) -> Result<Optimisation, String> {
    let joined = name.replace(' ', "");
    let found = Optimisation::ALL.into_iter().find(|o| format!("{o:?}").eq_ignore_ascii_case(&joined));
    found.ok_or(format!("there is no optimisation `{name}`"))
}

#[test]
fn every_case_is_as_its_file_says() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases");
    let found = check_all(&folder, step).unwrap_or_else(|wrong| panic!("{wrong}"));
    assert!(found >= 12, "where are the cases?");
}
