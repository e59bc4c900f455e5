use std::fmt;
use std::str::FromStr;

use crate::{Action, Error, MAX_STEPS};

/// A stream of actions that can be suspended, written down and resumed.
///
/// The contract between a schedule and its driver:
///
/// - The driver starts with the state before step 0 at hand and carries out the actions in order.
/// - The initial state is stored like any other: if it is needed again, the first action is its `Store`, and it
///   takes one of the slots. A loop of at most one block that is recorded on the way needs no slot at all.
/// - `Advance` and `Record` start where the state at hand stands. After `Turn` and after `Reverse` there is
///   no state at hand; the next action that needs one comes after a `Load`.
/// - A `Store` goes to a slot that is empty. A slot that will not be loaded again is dropped as soon as
///   the steps that it served are reversed, and every slot is dropped in the end.
/// - `Reverse` follows the reversed steps downwards without a gap: last step first, each exactly once.
/// - `Turn` comes exactly once. With [`Shape::RecordLast`] it stands between the `Record` of the last block
///   and its `Reverse`; with [`Shape::PrimalFirst`] no tape of the last block is live when it comes.
///
/// [`Machine`](crate::Machine) checks this contract.
///
/// The number of steps may be unknown ([`Online`](crate::Online)): see [`Schedule::end`].
pub trait Schedule: Iterator<Item = Action> + Send {
    /// The number of steps, where it is known.
    fn steps(&self) -> Option<u64>;

    /// Tells an online schedule that the loop ended before step `steps`.
    ///
    /// Any other schedule, and an online one that has been told, accepts the number that it knows and
    /// answers [`Error::WrongEnd`] to any other.
    fn end(&mut self, steps: u64) -> Result<(), Error>;
}

/// How a schedule was planned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Method {
    /// Optimal, by formula or by dynamic programming.
    Exact,
    /// By a rule that stays close to the optimum.
    Approximate,
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Method::Exact => "exact",
            Method::Approximate => "approximate",
        })
    }
}

impl FromStr for Method {
    type Err = Error;

    fn from_str(text: &str) -> Result<Method, Error> {
        match text {
            "exact" => Ok(Method::Exact),
            "approximate" => Ok(Method::Approximate),
            _ => Err(Error::BadText { why: "the method is unknown".into() }),
        }
    }
}

/// When the result of the run is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Shape {
    /// The last block is recorded on the way forward, and `Turn` stands between its `Record` and its
    /// `Reverse`.
    #[default]
    RecordLast,
    /// The whole forward sweep is plain and `Turn` follows it: for programs that return their result
    /// before reversal starts. It costs a few more steps.
    PrimalFirst,
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Shape::RecordLast => "record-last",
            Shape::PrimalFirst => "primal-first",
        })
    }
}

impl FromStr for Shape {
    type Err = Error;

    fn from_str(text: &str) -> Result<Shape, Error> {
        match text {
            "record-last" => Ok(Shape::RecordLast),
            "primal-first" => Ok(Shape::PrimalFirst),
            _ => Err(Error::BadText { why: "the shape is unknown".into() }),
        }
    }
}

/// What every schedule lets its user choose: the block and the shape.
///
/// ```
/// use ebbtide_schedule::{Options, Revolve};
///
/// let schedule = Revolve::with(1000, 10, Options::new().block(4).primal_first())?;
/// # Ok::<(), ebbtide_schedule::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Options {
    pub(crate) block: u64,
    pub(crate) shape: Shape,
}

impl Options {
    /// Blocks of one step, the last one recorded on the way forward.
    pub fn new() -> Options {
        Options { block: 1, shape: Shape::RecordLast }
    }

    /// Up to `steps` steps are recorded and reversed at once, from one state.
    pub fn block(self, steps: u64) -> Options {
        Options { block: steps, ..self }
    }

    /// The forward sweep is plain: [`Shape::PrimalFirst`].
    pub fn primal_first(self) -> Options {
        self.shape(Shape::PrimalFirst)
    }

    /// Sets the shape.
    pub fn shape(self, shape: Shape) -> Options {
        Options { shape, ..self }
    }

    /// Checks the block, and that `steps` and one block more can be counted.
    pub(crate) fn check(self, steps: u64) -> Result<Options, Error> {
        if steps > MAX_STEPS {
            return Err(Error::TooManySteps { steps });
        }
        if self.block == 0 {
            return Err(Error::ZeroLength { what: "block" });
        }
        // A block longer than the loop means the loop.
        Ok(Options { block: self.block.min(steps.max(1)), ..self })
    }

    /// The steps of the problem without a turn that costs the same. The plain forward sweep ends where a
    /// recorded last block would start, so it is as if one more block followed.
    pub(crate) fn virtual_steps(self, steps: u64) -> u64 {
        match self.shape {
            Shape::RecordLast => steps,
            Shape::PrimalFirst if steps == 0 => 0,
            Shape::PrimalFirst => steps + self.block,
        }
    }
}

impl Default for Options {
    fn default() -> Options {
        Options::new()
    }
}

/// Accepts the number of steps that a schedule knows, and no other.
pub(crate) fn same_end(known: u64, announced: u64) -> Result<(), Error> {
    if known == announced { Ok(()) } else { Err(Error::WrongEnd { announced, first: known, last: known }) }
}
