use crate::{Error, State};

/// A value that a slot can hold: what a stepper saves and restores.
///
/// [`State`] is the one that every place can keep, on disk too. A stepper that lives in memory alone may
/// choose something plainer: `[f64; 3]`, `Vec<f64>`, or a type of its own.
pub trait Saved: Default + Send + 'static {
    /// The size of what it holds, in bytes: what a memory budget counts.
    fn bytes(&self) -> u64;

    /// Makes the value ready to be saved into again. Storage that can be used again should stay.
    fn clear(&mut self) {}
}

impl Saved for State {
    fn bytes(&self) -> u64 {
        State::bytes(self)
    }

    fn clear(&mut self) {
        State::clear(self);
    }
}

impl<T: Copy + Send + 'static> Saved for Vec<T> {
    fn bytes(&self) -> u64 {
        size_of_val(self.as_slice()) as u64
    }

    fn clear(&mut self) {
        Vec::clear(self);
    }
}

impl<T: Copy + Send + 'static, const N: usize> Saved for [T; N]
where
    [T; N]: Default,
{
    fn bytes(&self) -> u64 {
        size_of::<Self>() as u64
    }
}

/// A place where states live: memory, a disk, and later the memory of a device or an object store.
///
/// A state is kept in two moves, so that it is written straight into the storage of the place: `begin` gives
/// the value to save into, `commit` keeps it. What the slot held before is gone by then, if not before.
///
/// Nothing here waits by name: a place that works in the background takes its own time and blocks only
/// where it must.
pub trait Place<V>: Send {
    /// Gives a value to save the next state of `slot` into.
    fn begin(&mut self, slot: usize) -> Result<&mut V, Error>;

    /// Keeps what was saved since `begin`, as the state before `step`.
    fn commit(&mut self, slot: usize, step: u64) -> Result<(), Error>;

    /// The state in `slot`, which keeps it.
    fn load(&mut self, slot: usize) -> Result<&V, Error>;

    /// Empties `slot`. Emptying an empty slot is fine.
    fn discard(&mut self, slot: usize) -> Result<(), Error>;

    /// The step of the state in `slot`; `None` if it is empty or does not exist.
    fn step(&self, slot: usize) -> Option<u64>;

    /// All slots that hold a state, with the step of each.
    fn held(&self) -> Vec<(usize, u64)>;

    /// The bytes of all states that are held.
    fn bytes(&self) -> u64;

    /// Says that `slot` will be loaded soon. A hint: doing nothing is right.
    fn prefetch(&mut self, _slot: usize) {}

    /// Returns when everything kept so far is as safe as this place can make it.
    fn flush(&mut self) -> Result<(), Error> {
        Ok(())
    }
}
