//! What can be wrong with a program.

use std::fmt;

use super::ids::Site;
use super::op::Combine;
use super::types::OVERFLOW;

/// The page that says what each law means for the author of a program; messages that cite a law name it.
pub const LAWS: &str = concat!(env!("CARGO_PKG_REPOSITORY"), "/blob/main/docs/src/laws.md");

/// One thing that is wrong with a program: a *build error*.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flaw {
    /// Which law it breaks, as numbered in the documentation of this crate.
    pub law: &'static str,
    /// What is wrong and what to write instead.
    pub message: String,
    /// Where it stands in the source.
    pub site: Option<Site>,
}

impl fmt::Display for Flaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(site) = &self.site {
            write!(f, "{site}: ")?;
        }
        write!(f, "{} (law {})", self.message, self.law)
    }
}

/// Why a program could not be built, or a run could not continue.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The program breaks the law.
    #[error("build error: program `{program}` is not valid:{}", list(.flaws))]
    Invalid {
        /// The program.
        program: String,
        /// All that is wrong with it.
        flaws: Vec<Flaw>,
    },
    /// The arguments do not fit the program.
    #[error("launch error: program `{program}`: {message}")]
    Launch {
        /// The program.
        program: String,
        /// What does not fit.
        message: String,
    },
    /// The data led the program where it may not go.
    #[error("run error: program `{program}`: {fault}")]
    Run {
        /// The program.
        program: String,
        /// What happened.
        fault: Fault,
    },
}

fn list(flaws: &[Flaw]) -> String {
    let list: String = flaws.iter().map(|flaw| format!("\n  {flaw}")).collect();
    format!("{list}\n  the laws: {LAWS}")
}

/// What the data of a run can do wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// An index outside an array.
    OutOfBounds {
        /// The array.
        array: String,
        /// The dimension in which the index is out of bounds.
        dimension: usize,
        /// The index.
        index: i64,
        /// The extent in that dimension.
        extent: i64,
        /// Where it stands in the source.
        site: Option<Site>,
    },
    /// An integer division or remainder by zero.
    DivisionByZero {
        /// Where it stands in the source.
        site: Option<Site>,
    },
    /// A bound of a loop that is not a number, because index arithmetic did not fit 64 bits.
    IndexOverflow {
        /// Where it stands in the source.
        site: Option<Site>,
    },
    /// An assertion that does not hold.
    Assertion {
        /// What it says.
        text: String,
        /// Where the run was.
        position: Box<str>,
        /// Where it stands in the source.
        site: Option<Site>,
    },
    /// An element that two iterations of a parallel loop, or one of them twice, wrote with `scatter_unique`.
    WrittenTwice {
        /// The array.
        array: String,
        /// The element.
        index: Vec<i64>,
        /// Where it stands in the source.
        site: Option<Site>,
    },
    /// Two iterations of a parallel loop touched one element, in ways that do not go together.
    Race(Box<Race>),
    /// A parallel loop began under a condition in which two of its iterations may touch one element.
    MayMeet {
        /// The array.
        array: String,
        /// The two accesses: how they touch it, and where they stand in the source.
        accesses: Box<[(Touched, Option<Site>); 2]>,
        /// Where the loop stands in the source.
        site: Option<Site>,
    },
    /// A checked run wrote something that is not a number.
    NotANumber {
        /// The array.
        array: String,
        /// The element.
        index: Box<[i64]>,
        /// Where the run was.
        position: Box<str>,
        /// Where it stands in the source.
        site: Option<Site>,
    },
    /// Two swapped, or copied, arrays have different shapes.
    ShapesDiffer {
        /// One array and its shape.
        left: String,
        /// The other array and its shape.
        right: String,
    },
    /// Arrays of a library operation have shapes that do not fit together.
    Misfit {
        /// The operation.
        operation: String,
        /// The arrays and their shapes.
        arrays: String,
        /// What their shapes must be.
        rule: &'static str,
        /// Where it stands in the source.
        site: Option<Site>,
    },
    /// A custom operation could not do its work.
    Operation {
        /// The operation.
        operation: String,
        /// What it said.
        message: String,
        /// Where it stands in the source.
        site: Option<Site>,
    },
    /// The host asked the run to stop.
    Stopped,
    /// A tape has no place for another push, or nothing to pop: a flaw of the engine.
    Tape,
    /// A sweep was run without its driver: a flaw of the engine.
    Sweep,
}

/// Two iterations of a parallel loop that touch one element, in ways that do not go together (law 7).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Race {
    /// The array.
    pub array: String,
    /// The element.
    pub element: Vec<i64>,
    /// The access that was made first, in the order in which the iterations ran.
    pub first: Touch,
    /// The access that conflicts with it.
    pub second: Touch,
}

/// What an iteration of a parallel loop did to an element.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Touch {
    /// The way.
    pub how: Touched,
    /// The iteration: the values of the loop's variables.
    pub iteration: Vec<i64>,
    /// Where it stands in the source.
    pub site: Option<Site>,
}

/// A way to touch an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Touched {
    /// It was read.
    Read,
    /// It was written.
    Written,
    /// It was combined with a value.
    Combined(Combine),
    /// It says which element is taken, and it was asked and set in one step.
    Claimed,
}

impl fmt::Display for Touched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Touched::Read => "read",
            Touched::Written => "written",
            Touched::Combined(Combine::Add) => "added to",
            Touched::Combined(Combine::Min) => "combined into (`min`)",
            Touched::Combined(Combine::Max) => "combined into (`max`)",
            Touched::Claimed => "claimed",
        })
    }
}

impl fmt::Display for Touch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let how = self.how;
        write!(f, "{how} by iteration {:?}", self.iteration)?;
        match &self.site {
            Some(site) => write!(f, ", at {site}"),
            None => Ok(()),
        }
    }
}

impl fmt::Display for Race {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Race { array, element, first, second } = self;
        write!(f, "a race: element {element:?} of `{array}` is {first}, and {second} (law 7, {LAWS})")
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let site = match self {
            Fault::OutOfBounds { array, dimension, index: OVERFLOW, extent, site } => {
                write!(
                    f,
                    "an index is out of bounds for dimension {dimension} of `{array}`, whose extent is {extent}: the \
                     arithmetic that computes it overflows 64 bits"
                )?;
                site
            }
            Fault::OutOfBounds { array, dimension, index, extent, site } => {
                write!(
                    f,
                    "index {index} is out of bounds for dimension {dimension} of `{array}`, whose extent is {extent}"
                )?;
                site
            }
            Fault::DivisionByZero { site } => {
                write!(f, "integer division by zero")?;
                site
            }
            Fault::IndexOverflow { site } => {
                write!(
                    f,
                    "a bound of a loop is not a number: the index arithmetic that computes it overflows 64 bits"
                )?;
                site
            }
            Fault::Assertion { text, position, site } => {
                write!(f, "{text}, in {position}")?;
                site
            }
            Fault::WrittenTwice { array, index, site } => {
                write!(
                    f,
                    "element {index:?} of `{array}` is written twice in one parallel loop: `scatter_unique` needs \
                     indices that differ"
                )?;
                site
            }
            Fault::Race(race) => return write!(f, "{race}"),
            Fault::MayMeet { array, accesses, site } => {
                let [(first, here), (second, there)] = &**accesses;
                let at =
                    |site: &Option<Site>| site.as_ref().map_or(String::new(), |site| format!(" at {site}"));
                write!(
                    f,
                    "with these scalars and shapes two iterations of a parallel loop may touch one element of `{array}`, \
                     {first}{} and {second}{} (law 7, {LAWS}): the loop",
                    at(here),
                    at(there)
                )?;
                site
            }
            Fault::NotANumber { array, index, position, site } => {
                write!(f, "the first NaN was written to element {index:?} of `{array}`, in {position}")?;
                site
            }
            Fault::ShapesDiffer { left, right } => {
                write!(f, "{left} and {right} must have equal shapes: they are swapped or copied")?;
                &None
            }
            Fault::Misfit { operation, arrays, rule, site } => {
                write!(f, "`{operation}` needs shapes {rule}, but {arrays}")?;
                site
            }
            Fault::Operation { operation, message, site } => {
                write!(f, "operation `{operation}`: {message}")?;
                site
            }
            Fault::Stopped => return write!(f, "stopped by the host"),
            Fault::Tape => return write!(f, "a tape is too short: this is a flaw of Ebbtide"),
            Fault::Sweep => {
                return write!(f, "a sweep was run without its driver: this is a flaw of Ebbtide");
            }
        };
        match site {
            Some(site) => write!(f, ", at {site}"),
            None => Ok(()),
        }
    }
}
