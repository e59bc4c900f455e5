//! The derivatives of every program are those of the oracle.

use ebbtide::ir::Type;
use ebbtide_conformance::judge::Question;

use super::{NAMES, Size, problem};

#[test]
fn derivatives_of_every_program_are_those_of_the_oracle() {
    for name in NAMES {
        for ty in [Type::F64, Type::F32] {
            let problem =
                problem(name, ty, Size::Tiny).unwrap_or_else(|error| panic!("{name} {ty}: {error}"));
            let question = Question::new(&problem.program, &problem.inputs, "loss", problem.wrt);
            question.check().unwrap_or_else(|wrong| panic!("{name} {ty}: {wrong}"));
        }
    }
}
