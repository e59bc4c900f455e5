//! Why a program could not be differentiated.

/// An error of differentiation: a *build error*.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The program itself, or the one made from it, breaks the law.
    #[error(transparent)]
    Program(#[from] ebbtide_ir::Error),
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
    /// Nobody said with respect to what.
    #[error(
        "build error: a derivative of program `{program}` with respect to nothing: say `.wrt(..)` with one of {known}"
    )]
    NothingAsked {
        /// The program.
        program: String,
        /// The names there are.
        known: String,
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
    /// Something whose derivative Ebbtide does not have yet.
    #[error("build error: program `{program}`: {what} cannot be differentiated yet")]
    Unsupported {
        /// The program.
        program: String,
        /// What it is, and where.
        what: String,
    },
}
