//! A program on copies of what it writes.
//!
//! - Input: a program, and the names of arrays whose values at its end are wanted.
//! - Output: a program in the form of a gradient program that has no reverse half. The caller's arrays are only read;
//!   the values go to parameters behind the others.
//! - Invariant: it computes the bits of the program.

use std::collections::BTreeMap;

use ebbtide_ir::{Access, ArrayId, Param, Program, Role, verify};

use crate::error::Error;
use crate::generate::working_copies::working_copies;
use crate::gradient::Gradient;
use crate::normalize::custom_calls::refuse_yields;
use crate::normalize::prepare::prepare;
use crate::normalize::visits::count_visits;
use crate::request::parameter_names;
use crate::writer::Writer;

/// The program on copies of what it writes.
pub(crate) fn on_copies(source: &Program, wanted: &[String]) -> Result<Gradient, Error> {
    let mut source = prepare(source);
    let hosted = count_visits(&mut source);
    verify(&source)?;
    refuse_yields(&source)?;
    let mut w = Writer::new(Program { params: Vec::new(), body: Vec::new(), driven: true, ..source.clone() });
    working_copies(&source, &mut w, &BTreeMap::new());
    source.body.iter().for_each(|stmt| w.push(stmt.clone()));
    let mut values: Vec<ArrayId> = Vec::new();
    for name in wanted {
        let unknown = || Error::UnknownName {
            program: source.name.clone(),
            name: name.clone(),
            known: parameter_names(&source),
        };
        let array = source.find_array(name).ok_or_else(unknown)?;
        let decl = source.array(array);
        let free = w.free_name(format!("value_{name}"));
        let value = w.array(free, decl.ty, decl.rank, Role::Param(Access::Write));
        w.program.params.push(Param::Array(value));
        w.copy(array, value);
        values.push(value);
    }
    let body = w.end();
    Ok(Gradient {
        program: Program { body, ..w.program },
        seed: None,
        values,
        derivatives: Vec::new(),
        pushes: BTreeMap::new(),
        pushes_outside: Vec::new(),
        hosted,
        copies: BTreeMap::new(),
        shadows: BTreeMap::new(),
    })
}
