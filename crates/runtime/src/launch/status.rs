//! How a launch ended.

use ebbtide_ir::Label;

use crate::launch::yielded::Yielded;

/// How a launch ended.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "a program that can yield may not be done yet"]
pub enum Status {
    /// The program reached its end.
    Done,
    /// The program yielded to the host and can be resumed.
    Yielded(Yielded),
}

impl Status {
    /// Where the program yielded, if it did.
    pub fn yielded(self) -> Option<Yielded> {
        match self {
            Status::Done => None,
            Status::Yielded(at) => Some(at),
        }
    }

    /// Did the program reach its end?
    pub fn is_done(&self) -> bool {
        *self == Status::Done
    }
}

/// What the host wants after a yield; the answer of a callback of [`Compiled::drive`](crate::Compiled::drive).
///
/// `()` is [`Next::Resume`], so that a callback that only repairs needs no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next {
    /// Continue at the region that yielded.
    Resume,
    /// Continue at another label.
    To(Label),
    /// Leave the program where it stands.
    Leave,
}

impl Next {
    /// Continue at another label: `Next::to(Stage::Solve)`.
    pub fn to(label: impl Into<Label>) -> Next {
        Next::To(label.into())
    }
}

impl From<()> for Next {
    fn from((): ()) -> Next {
        Next::Resume
    }
}
