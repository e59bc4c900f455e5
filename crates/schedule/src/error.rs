use std::fmt;

/// The largest number of steps that a schedule can have (about 4.6 · 10¹⁸).
///
/// It leaves room for exact totals: no count of a legal schedule overflows `u128`.
pub const MAX_STEPS: u64 = 1 << 62;

/// What can be wrong with a request for a schedule.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// There are more steps than [`MAX_STEPS`].
    TooManySteps {
        /// The number of steps asked for.
        steps: u64,
    },
    /// A block or a period of zero steps.
    ZeroLength {
        /// What is zero: `"block"` or `"period"`.
        what: &'static str,
    },
    /// The steps cannot be reversed with so few slots.
    TooFewSlots {
        /// The slots that were offered.
        slots: usize,
        /// The least number of slots that works.
        minimum: usize,
    },
    /// A cost that is negative, not a number, or 10^18 or more.
    BadCost {
        /// The name of the cost.
        what: &'static str,
    },
    /// The budget is smaller than every plan.
    BudgetTooSmall {
        /// The budget that was offered, in bytes.
        budget: u64,
        /// The least number of bytes that works.
        minimum: u128,
    },
    /// The end of the loop was announced at a step where it cannot be.
    WrongEnd {
        /// The step that was announced.
        announced: u64,
        /// The first step at which the loop can end now.
        first: u64,
        /// The last step at which the loop can end now.
        last: u64,
    },
    /// The surviving states do not allow the rest to be reversed.
    CannotReplan {
        /// What is missing or contradictory.
        why: &'static str,
    },
    /// The text is not a suspended schedule.
    BadText {
        /// What is wrong with it.
        why: String,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::TooManySteps { steps } => {
                write!(f, "{steps} steps are too many for a schedule: the most is {MAX_STEPS}")
            }
            Error::ZeroLength { what } => write!(f, "the {what} is 0 steps long: it must be at least 1"),
            Error::TooFewSlots { slots, minimum } => write!(
                f,
                "{slots} slots are too few: at least {minimum} are needed (the initial state takes one)"
            ),
            Error::BadCost { what } => write!(f, "the {what} cost must be a number from 0 to 10^18"),
            Error::BudgetTooSmall { budget, minimum } => {
                write!(
                    f,
                    "a budget of {} is too small: the least that works is {} ({minimum} bytes)",
                    size(u128::from(*budget)),
                    size(*minimum)
                )
            }
            Error::WrongEnd { announced, first, last } if first == last => {
                write!(f, "the loop cannot end before step {announced}: its length is {first}")
            }
            Error::WrongEnd { announced, first, last } => write!(
                f,
                "the loop cannot end before step {announced}: the schedule has come to a place \
                 where it can end between {first} and {last}"
            ),
            Error::CannotReplan { why } => write!(f, "the rest cannot be planned: {why}"),
            Error::BadText { why } => write!(f, "not a suspended schedule: {why}"),
        }
    }
}

impl std::error::Error for Error {}

/// A number of bytes for people.
fn size(bytes: u128) -> String {
    let units = ["B", "KiB", "MiB", "GiB", "TiB"];
    let (mut value, mut unit) = (bytes as f64, 0);
    while value >= 1024.0 && unit + 1 < units.len() {
        value /= 1024.0;
        unit += 1;
    }
    if unit == 0 { format!("{bytes} B") } else { format!("{value:.2} {}", units[unit]) }
}
