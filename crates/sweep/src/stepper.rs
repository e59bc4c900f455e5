use std::ops::Range;

use ebbtide_snapshot::Saved;

/// Something that steps forward, and whose steps can be reversed.
///
/// A stepper owns three things: its *working state*, on which the steps act; the *tape* of the steps that
/// have been recorded and not yet reversed; and its *adjoint*, which the reversal accumulates. It begins with
/// the working state before step 0, an empty tape and no adjoint.
///
/// Three promises make every schedule give the same gradient, bit for bit:
/// - a step is a function of its number and the working state: run again from a restored state, it does the
///   same, whether it is advanced or recorded, and however a range of steps is split into calls;
/// - the tape behaves like a stack: a range is recorded once, on top of what is there, and the range last
///   recorded is the first to be reversed (a part of it at its end may be reversed first);
/// - a call that fails leaves tape and adjoint as they were before the call. The working state may be left
///   in any condition: it is restored before it is used again.
pub trait Stepper {
    /// What [`save`](Self::save) saves: everything of the working state that a later step reads.
    ///
    /// `[f64; 3]` or `Vec<f64>` will do for a sweep in memory; a disk needs an
    /// [`ebbtide_snapshot::State`].
    type State: Saved;

    /// What can go wrong in a step. [`std::convert::Infallible`] if nothing can.
    type Error;

    /// Runs the steps forward and keeps nothing.
    fn advance(&mut self, steps: Range<u64>) -> Result<(), Self::Error>;

    /// Runs the steps forward and keeps on the tape what their reversal needs.
    fn record(&mut self, steps: Range<u64>) -> Result<(), Self::Error>;

    /// The forward sweep is over, the working state is the last one: starts the adjoint from it.
    ///
    /// Called once in a run. Results of the forward sweep that the caller wants are copied here: afterwards
    /// the working state wanders.
    fn turn(&mut self) -> Result<(), Self::Error>;

    /// Consumes the tape of these steps, last step first, and updates the adjoint.
    fn reverse(&mut self, steps: Range<u64>) -> Result<(), Self::Error>;

    /// Saves the working state into `state`, which is empty or holds an older one.
    fn save(&self, state: &mut Self::State) -> Result<(), Self::Error>;

    /// Replaces the working state by a saved one.
    fn restore(&mut self, state: &Self::State) -> Result<(), Self::Error>;

    /// As [`advance`](Self::advance), while it is not known how many steps there are: runs until `steps.end`
    /// or until the loop ends by itself, and returns the step it then stands before.
    ///
    /// Less than `steps.end` says that the loop has ended there, so a loop that turns out to end at
    /// `steps.end` says so in the next call, by not moving. A stepper of known length leaves this alone.
    fn advance_online(&mut self, steps: Range<u64>) -> Result<u64, Self::Error> {
        let end = steps.end;
        self.advance(steps)?;
        Ok(end)
    }

    /// The bytes that the tape takes now. Only the counters use it; 0 if you do not need them.
    fn tape_bytes(&self) -> u64 {
        0
    }
}
