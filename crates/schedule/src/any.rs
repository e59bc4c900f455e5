use std::fmt;
use std::str::FromStr;

use crate::text::{Fields, Writer, bad};
use crate::{Action, Error, Mixed, Multistage, Online, Periodic, Rest, Revolve, Schedule, StoreAll, Totals};

/// Any schedule, and the text form of a suspended one.
///
/// Its `Display` writes the schedule down between two actions, on one line; `FromStr` reads it back, in
/// another process if need be, and the rest of the stream is the same. A text that was not written so
/// gives an [`Error::BadText`].
///
/// ```
/// use ebbtide_schedule::{AnySchedule, Revolve};
///
/// let mut schedule = AnySchedule::from(Revolve::new(1000, 10)?);
/// let done: Vec<_> = schedule.by_ref().take(40).collect();
/// let resumed: AnySchedule = schedule.to_string().parse()?;
/// assert!(resumed.eq(schedule));
/// # Ok::<(), ebbtide_schedule::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
#[allow(missing_docs, reason = "each variant is named after the schedule that it holds")]
pub enum AnySchedule {
    StoreAll(StoreAll),
    Periodic(Periodic),
    Revolve(Revolve),
    Online(Online),
    Multistage(Multistage),
    Mixed(Mixed),
    Rest(Rest),
}

/// One line per kind of schedule: its variant and its name in the text form.
macro_rules! kinds {
    ($($kind:ident = $name:literal),* $(,)?) => {
        $(impl From<$kind> for AnySchedule {
            fn from(schedule: $kind) -> AnySchedule {
                AnySchedule::$kind(schedule)
            }
        })*

        impl AnySchedule {
            /// The name of the kind of schedule, as the command line spells it.
            pub fn kind(&self) -> &'static str {
                match self { $(AnySchedule::$kind(_) => $name),* }
            }

            fn inner(&self) -> &dyn Schedule {
                match self { $(AnySchedule::$kind(schedule) => schedule),* }
            }

            fn inner_mut(&mut self) -> &mut dyn Schedule {
                match self { $(AnySchedule::$kind(schedule) => schedule),* }
            }
        }

        impl fmt::Display for AnySchedule {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let mut out = Writer::start(f, self.kind())?;
                match self { $(AnySchedule::$kind(schedule) => schedule.write(&mut out)),* }
            }
        }

        impl FromStr for AnySchedule {
            type Err = Error;

            fn from_str(text: &str) -> Result<AnySchedule, Error> {
                let (kind, mut fields) = Fields::start(text)?;
                let schedule = match kind {
                    $($name => AnySchedule::$kind($kind::read(&mut fields)?),)*
                    _ => return Err(bad("it names an unknown kind of schedule")),
                };
                fields.finish()?;
                Ok(schedule)
            }
        }
    };
}

kinds! {
    StoreAll = "store-all",
    Periodic = "periodic",
    Revolve = "revolve",
    Online = "online",
    Multistage = "multistage",
    Mixed = "mixed",
    Rest = "rest",
}

impl AnySchedule {
    /// What the whole schedule costs, where there is a formula: not for [`Online`] and [`Rest`].
    pub fn totals(&self) -> Option<Totals> {
        match self {
            AnySchedule::StoreAll(schedule) => Some(schedule.totals()),
            AnySchedule::Periodic(schedule) => Some(schedule.totals()),
            AnySchedule::Revolve(schedule) => Some(schedule.totals()),
            AnySchedule::Multistage(schedule) => Some(schedule.totals()),
            AnySchedule::Mixed(schedule) => Some(schedule.totals()),
            AnySchedule::Online(_) | AnySchedule::Rest(_) => None,
        }
    }
}

impl Iterator for AnySchedule {
    type Item = Action;

    fn next(&mut self) -> Option<Action> {
        self.inner_mut().next()
    }
}

impl Schedule for AnySchedule {
    fn steps(&self) -> Option<u64> {
        self.inner().steps()
    }

    fn end(&mut self, steps: u64) -> Result<(), Error> {
        self.inner_mut().end(steps)
    }
}
