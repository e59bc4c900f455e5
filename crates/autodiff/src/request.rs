//! What a gradient is asked for, and the parameters that it names.

use std::collections::{BTreeMap, BTreeSet};

use ebbtide_ir::{Param, Program};

use crate::error::Error;

/// What is to be computed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// Derivatives of one output, in reverse.
    #[default]
    Adjoint,
    /// The values asked for and nothing else, on copies of the caller's arrays: how tangent programs are run.
    Values,
}

/// Something that makes an adjoint cheaper than the plain one, statement by statement, with everything recorded.
///
/// Each can be switched off by itself, to find out what it does. Those of which [`Optimisation::changes_order`] says so define
/// another order for sums of cotangents, and so other last bits; the others move or drop work and change no bit. None is chosen
/// by shapes, budgets, devices or threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Optimisation {
    /// Loads of stencils are turned round: each element of a shadow collects what flows to it.
    GatherStencils,
    /// Loads of stencils in a part of an array are turned round too: the elements of that row, or half, of the shadow collect what
    /// flows to them, also where the loop writes another part of the array.
    GatherRows,
    /// Rows of an array that iterations read side by side, as the components of a vector, gather in one loop.
    GatherSideBySide,
    /// What many iterations add to one element of a shadow is summed over them, instead of scattered.
    SumOverPreimages,
    /// What a long loop inside an iteration adds up of cotangents has the order of lanes (law 8), which a device can take side
    /// by side.
    SumInLanes,
    /// The loop over a step's own iterations joins the loop that gathers.
    JoinGather,
    /// The memory of an array that is overwritten goes on the tape itself, instead of a copy.
    TapeByExchange,
    /// Slots do not hold what an iteration of their loop replaces before anything reads it.
    TrimSlots,
    /// Shadows that are zero in meaning are not filled before something reads them.
    LazyShadows,
    /// Neither is the box of a shadow whose array a loop overwrote there, the interior of a grid.
    LazyBoxes,
    /// Only those arrays are recorded whose old contents the adjoint reads.
    RecordWhatIsRead,
    /// An array in which a loop writes another row in each iteration and keeps the earlier ones is its own tape.
    KeepTrajectories,
    /// The cotangent of such an array is the result itself, where it is asked for, and not copied to it.
    ResultsInPlace,
    /// The working copy of such an array is given what is read before the loop writes it, and no more; its cotangent is filled with
    /// zeros where something adds to it before the loop that gathers its rows.
    InitialiseWhatIsRead,
    /// Where a loop overwrites a part of an array (a row, a slab, a side), that part is recorded.
    RecordSections,
    /// What a loop reads and does not overwrite afterwards is read again in its place.
    ReadAgain,
    /// A result whose slope is found from itself (`tanh`, `exp`) is read in the array in which the loop left it, instead of being
    /// computed again.
    ReadResults,
    /// Outer products that a loop adds to the shadow of a matrix in every iteration wait until several can be added at once.
    DeferOuterProducts,
}

impl Optimisation {
    /// All of them, in the order in which an adjoint is made.
    pub const ALL: [Optimisation; 18] = [
        Optimisation::RecordWhatIsRead,
        Optimisation::KeepTrajectories,
        Optimisation::ResultsInPlace,
        Optimisation::InitialiseWhatIsRead,
        Optimisation::RecordSections,
        Optimisation::ReadAgain,
        Optimisation::ReadResults,
        Optimisation::TapeByExchange,
        Optimisation::TrimSlots,
        Optimisation::LazyShadows,
        Optimisation::LazyBoxes,
        Optimisation::GatherStencils,
        Optimisation::GatherRows,
        Optimisation::GatherSideBySide,
        Optimisation::SumOverPreimages,
        Optimisation::JoinGather,
        Optimisation::SumInLanes,
        Optimisation::DeferOuterProducts,
    ];

    /// Does it define another order for sums of cotangents?
    pub fn changes_order(self) -> bool {
        matches!(
            self,
            Optimisation::GatherStencils
                | Optimisation::GatherRows
                | Optimisation::SumOverPreimages
                | Optimisation::SumInLanes
        )
    }
}

/// What is asked for.
#[derive(Clone, Debug, Default)]
pub struct Request {
    /// What the adjoint does without.
    pub without: BTreeSet<Optimisation>,
    /// What is to be computed.
    pub mode: Mode,
    /// The output: a rank-0 array, or any array where a cotangent is given.
    pub of: String,
    /// The inputs: arrays or scalar parameters.
    pub wrt: Vec<String>,
    /// The paths of structs that were asked for as a whole, all of whose float members are among the inputs. The output must
    /// depend on one of these members; the derivatives with respect to the others may be zero.
    pub structs: Vec<String>,
    /// Outputs whose values are wanted too.
    pub values: Vec<String>,
    /// Where the source is a tangent program: the names of arrays that have a tangent, and of these. Where the host writes
    /// to the former, the latter become zero; it does not see them.
    pub tangents: BTreeMap<String, String>,
    /// Is the cotangent of the output an argument (`seed`), instead of one?
    pub seeded: bool,
    /// May the output not depend on an input? Its derivative is zero then. Of a gradient that is a mistake; of a second
    /// derivative it is a matter of course, where an input enters linearly.
    pub may_be_zero: bool,
    /// What memory holds where a cotangent is zero in meaning alone.
    pub dead_shadows: DeadShadows,
}

/// What memory holds where a cotangent is zero in meaning alone. The program fills it with zeros before it reads it: so
/// this makes no difference, and tests hold that.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DeadShadows {
    /// Numbers that were cotangents before.
    #[default]
    Kept,
    /// NaN.
    Poisoned,
}

/// The names of all parameters, for error messages.
pub(crate) fn parameter_names(source: &Program) -> String {
    names(source, source.params.iter())
}

fn names<'p>(source: &Program, params: impl Iterator<Item = &'p Param>) -> String {
    let names = params.map(|p| match p {
        Param::Array(a) => format!("`{}`", source.array(*a).name),
        Param::Scalar(s) => format!("`{}`", source.scalars[s.index()].name),
    });
    names.collect::<Vec<_>>().join(", ")
}

/// What a derivative is asked for with respect to: something, and nothing twice.
pub(crate) fn check_inputs(source: &Program, wrt: &[String]) -> Result<(), Error> {
    let program = || source.name.clone();
    if wrt.is_empty() {
        let float = |p: &&Param| match p {
            Param::Array(a) => source.array(*a).ty.is_float(),
            Param::Scalar(s) => source.scalars[s.index()].ty.is_float(),
        };
        let known = names(source, source.params.iter().filter(float));
        return Err(Error::NothingAsked { program: program(), known });
    }
    match wrt.iter().enumerate().find(|(k, name)| wrt[..*k].contains(name)) {
        Some((_, name)) => Err(Error::AskedTwice { program: program(), name: name.clone() }),
        None => Ok(()),
    }
}
