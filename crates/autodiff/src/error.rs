//! Why a program could not be differentiated.

use ebbtide_ir::{Facts, Program, verify};

/// An error of differentiation: a *build error*.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The program itself breaks the law.
    #[error(transparent)]
    Program(#[from] ebbtide_ir::Error),
    /// The program that was made breaks the law, though the one that it was made from does not: a flaw of Ebbtide.
    #[error("internal error: please report it, with this text: {flaws}\n{program}")]
    Internal {
        /// What is wrong with it.
        flaws: Box<ebbtide_ir::Error>,
        /// The program that was made, as text.
        program: Box<str>,
    },
    /// No parameter has this name.
    #[error("build error: program `{program}` has no parameter `{name}`; it has {known}")]
    UnknownName {
        /// The program.
        program: String,
        /// The name asked for.
        name: String,
        /// The names there are.
        known: String,
    },
    /// A parameter that has no derivative.
    #[error("build error: `{name}` is of type `{ty}`, which has no derivative: only f32 and f64 do")]
    NotDifferentiable {
        /// The parameter.
        name: String,
        /// Its type.
        ty: ebbtide_ir::Type,
    },
    /// The request has no `wrt`.
    #[error(
        "build error: a derivative of program `{program}` with respect to nothing: say `.wrt(..)` with one of {known}"
    )]
    NothingAsked {
        /// The program.
        program: String,
        /// The names there are.
        known: String,
    },
    /// One parameter named twice.
    #[error("build error: the derivative of program `{program}` with respect to `{name}` is asked for twice")]
    AskedTwice {
        /// The program.
        program: String,
        /// The parameter.
        name: String,
    },
    /// The result of a gradient must be one number.
    #[error(
        "build error: the gradient of `{name}`, an array of rank {rank}, needs a cotangent: use `vjp`, or a rank-0 result"
    )]
    NotScalar {
        /// The array.
        name: String,
        /// Its rank.
        rank: usize,
    },
    /// The output does not depend on the input.
    #[error(
        "build error: `{of}` does not depend on `{wrt}` in program `{program}`: its gradient would be zero everywhere"
    )]
    Independent {
        /// The program.
        program: String,
        /// The output.
        of: String,
        /// The input.
        wrt: String,
    },
    /// A derivative flows through something that brings none of its own.
    #[error(
        "build error: `{operation}` brings no {rule} of its own, and none can be made from what it does: write \
         `{rule} = …` where it is declared"
    )]
    NoRule {
        /// The program or operation.
        operation: String,
        /// What is missing: `adjoint` or `tangent`.
        rule: &'static str,
    },
    /// A rule that does not take what it will be given.
    #[error(
        "build error: `{rule}`, the {kind} of `{operation}`, must take its parameters, to be read, and one array for \
         each of its float arrays: ({expected}), not ({found})"
    )]
    WrongRule {
        /// The program or operation.
        operation: String,
        /// The rule.
        rule: String,
        /// What it is: `adjoint` or `tangent`.
        kind: &'static str,
        /// What it must take.
        expected: Box<str>,
        /// What it takes.
        found: Box<str>,
    },
    /// A scalar that carries a derivative into an operation whose rules know arrays alone.
    #[error(
        "build error: a derivative flows into `{operation}` through the scalar `{scalar}`, and its rules know arrays \
         alone: pass it as an Array0"
    )]
    ActiveScalar {
        /// The program or operation.
        operation: String,
        /// The scalar.
        scalar: String,
    },
    /// Something whose derivative Ebbtide does not have yet.
    #[error("build error: program `{program}`: {what} cannot be differentiated yet")]
    Unsupported {
        /// The program.
        program: String,
        /// What it is, and where.
        what: String,
    },
}

/// Holds a program that was made from a lawful one against the laws: if it breaks one, that is our mistake.
pub fn verify_generated(program: &Program) -> Result<Facts, Error> {
    let internal = |flaws| Error::Internal { flaws: Box::new(flaws), program: program.to_string().into() };
    verify(program).map_err(internal)
}
