//! Which operations keep their values and which are replayed: a mode set for a scope of the program, against
//! a hint given by each operation.

use std::cell::Cell;

/// How eagerly the operations of a scope give up their values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Mode {
    /// Retain everything.
    #[default]
    Off,
    /// Replay what is cheap to replay.
    Conservative,
    /// Replay everything that does not have to be retained.
    Aggressive,
}

/// What an operation says of its own replay.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Hint {
    /// Cheap to compute again.
    #[default]
    Cheap,
    /// Expensive to compute again.
    Expensive,
    /// Not to be computed again: impure, or not repeatable.
    MustRetain,
}

/// What happens to the value of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Decision {
    /// The tape keeps the value and the rule.
    Retain,
    /// The tape keeps a recipe only.
    Checkpoint,
}

impl Mode {
    /// What this mode decides for an operation with this hint.
    pub fn decide(self, hint: Hint) -> Decision {
        match (self, hint) {
            (Mode::Off, _) | (_, Hint::MustRetain) | (Mode::Conservative, Hint::Expensive) => {
                Decision::Retain
            }
            (Mode::Conservative, Hint::Cheap) | (Mode::Aggressive, _) => Decision::Checkpoint,
        }
    }
}

thread_local! {
    static MODE: Cell<Mode> = const { Cell::new(Mode::Off) };
}

/// The mode that is in force on this thread.
pub fn current_mode() -> Mode {
    MODE.get()
}

/// Runs `body` with `mode` in force on this thread; the previous mode comes back afterwards, even by a panic.
///
/// ```
/// use ebbtide_tape::{Mode, current_mode, with_mode};
/// let inside = with_mode(Mode::Aggressive, current_mode);
/// assert_eq!((inside, current_mode()), (Mode::Aggressive, Mode::Off));
/// ```
pub fn with_mode<R>(mode: Mode, body: impl FnOnce() -> R) -> R {
    struct Restore(Mode);
    impl Drop for Restore {
        fn drop(&mut self) {
            MODE.set(self.0);
        }
    }
    let _restore = Restore(MODE.replace(mode));
    body()
}
