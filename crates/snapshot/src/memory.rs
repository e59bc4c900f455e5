use crate::{Error, Place, Saved};

/// Slots in memory.
///
/// Values that are not in use wait in a pool: once every slot of a schedule has been filled for the first
/// time, storing and loading allocate nothing.
///
/// ```
/// use ebbtide_snapshot::{Memory, Place};
///
/// let mut memory = Memory::<Vec<f64>>::new();
/// memory.begin(0)?.extend([1.0, 2.0]);
/// memory.commit(0, 7)?;
/// assert_eq!(memory.load(0)?, &[1.0, 2.0]);
/// assert_eq!((memory.step(0), memory.bytes()), (Some(7), 16));
/// # Ok::<(), ebbtide_snapshot::Error>(())
/// ```
#[derive(Debug)]
pub struct Memory<V> {
    slots: Vec<Slot<V>>,
    pool: Vec<V>,
    bytes: u64,
}

#[derive(Debug)]
enum Slot<V> {
    Empty,
    Begun(V),
    Full { value: V, step: u64, bytes: u64 },
}

/// More slots than any memory has states for: an index beyond it is a mistake.
const MOST_SLOTS: usize = 1 << 28;

impl<V: Saved> Memory<V> {
    /// A place with no states; slots come into being when they are first used.
    pub fn new() -> Self {
        Self { slots: Vec::new(), pool: Vec::new(), bytes: 0 }
    }

    fn take(&mut self, slot: usize) -> Option<V> {
        match std::mem::replace(self.slots.get_mut(slot)?, Slot::Empty) {
            Slot::Empty => None,
            Slot::Begun(value) => Some(value),
            Slot::Full { value, bytes, .. } => {
                self.bytes -= bytes;
                Some(value)
            }
        }
    }
}

impl<V: Saved> Default for Memory<V> {
    fn default() -> Self {
        Self::new()
    }
}

impl<V: Saved> Place<V> for Memory<V> {
    fn begin(&mut self, slot: usize) -> Result<&mut V, Error> {
        if slot >= MOST_SLOTS {
            return Err(Error::NoSuchSlot { slot, slots: MOST_SLOTS });
        }
        if slot >= self.slots.len() {
            self.slots.resize_with(slot + 1, || Slot::Empty);
        }
        let mut value = self.take(slot).or_else(|| self.pool.pop()).unwrap_or_default();
        value.clear();
        self.slots[slot] = Slot::Begun(value);
        match &mut self.slots[slot] {
            Slot::Begun(value) => Ok(value),
            _ => Err(Error::EmptySlot { slot }),
        }
    }

    fn commit(&mut self, slot: usize, step: u64) -> Result<(), Error> {
        let value = self.take(slot).ok_or(Error::EmptySlot { slot })?;
        let bytes = value.bytes();
        self.bytes += bytes;
        self.slots[slot] = Slot::Full { value, step, bytes };
        Ok(())
    }

    fn load(&mut self, slot: usize) -> Result<&V, Error> {
        match self.slots.get(slot) {
            Some(Slot::Full { value, .. }) => Ok(value),
            _ => Err(Error::EmptySlot { slot }),
        }
    }

    fn discard(&mut self, slot: usize) -> Result<(), Error> {
        let value = self.take(slot);
        self.pool.extend(value);
        Ok(())
    }

    fn step(&self, slot: usize) -> Option<u64> {
        match self.slots.get(slot) {
            Some(&Slot::Full { step, .. }) => Some(step),
            _ => None,
        }
    }

    fn held(&self) -> Vec<(usize, u64)> {
        (0..self.slots.len()).filter_map(|slot| self.step(slot).map(|step| (slot, step))).collect()
    }

    fn bytes(&self) -> u64 {
        self.bytes
    }
}
