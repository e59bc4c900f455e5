use crate::Error;

/// The alignment that unbuffered writes ask for, and that the data of a snapshot file starts at.
pub const ALIGNMENT: usize = 4096;

/// So many zeros, or an error where there is no room for them.
pub fn zeroed(bytes: usize) -> Result<Vec<u8>, Error> {
    let mut room = Vec::new();
    room.try_reserve_exact(bytes).map_err(|_| Error::NoMemory { bytes: bytes as u64 })?;
    room.resize(bytes, 0);
    Ok(room)
}

/// A growable run of bytes that starts at a multiple of [`ALIGNMENT`] in memory.
///
/// The bytes after `len` up to the next multiple belong to the buffer too, so that a whole number of
/// blocks can be handed to the disk.
#[derive(Debug, Default)]
pub struct Buffer {
    raw: Vec<u8>,
    start: usize,
    len: usize,
}

impl Buffer {
    /// The number of bytes.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Is there no byte in it?
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Forgets the bytes; storage stays.
    pub fn clear(&mut self) {
        self.len = 0;
    }

    /// The bytes.
    pub fn as_slice(&self) -> &[u8] {
        &self.raw[self.start..self.start + self.len]
    }

    /// The bytes, to be changed.
    pub fn as_mut_slice(&mut self) -> &mut [u8] {
        &mut self.raw[self.start..self.start + self.len]
    }

    /// The bytes, followed by as many more as fill the last block.
    pub fn whole_blocks(&self) -> &[u8] {
        &self.raw[self.start..self.start + self.len.next_multiple_of(ALIGNMENT)]
    }

    /// Makes room for `len` bytes in all, at once and no more than that.
    pub fn reserve(&mut self, len: usize) -> Result<(), Error> {
        let needed = whole(len)?;
        if needed > self.capacity() { self.grow(needed) } else { Ok(()) }
    }

    /// How many bytes there is room for.
    pub fn capacity(&self) -> usize {
        self.raw.len().saturating_sub(self.start)
    }

    /// Makes the buffer `more` bytes longer and returns the new part, whose content is unspecified.
    pub fn extend(&mut self, more: usize) -> Result<&mut [u8], Error> {
        let old = self.len;
        self.resize(old.checked_add(more).ok_or(Error::NoMemory { bytes: u64::MAX })?)?;
        Ok(&mut self.as_mut_slice()[old..])
    }

    /// Sets the length; what is new is unspecified.
    pub fn resize(&mut self, len: usize) -> Result<(), Error> {
        let needed = whole(len)?;
        if needed > self.capacity() {
            // Doubling keeps a state that is put together from many arrays linear.
            self.grow(needed.max(2 * self.len).next_multiple_of(ALIGNMENT))?;
        }
        self.len = len;
        Ok(())
    }

    fn grow(&mut self, capacity: usize) -> Result<(), Error> {
        if self.len == 0 {
            // Nothing to keep: the old storage need not live beside the new.
            self.raw = Vec::new();
            self.start = 0;
        }
        let mut raw = zeroed(capacity + ALIGNMENT)?;
        let start = raw.as_ptr().addr().next_multiple_of(ALIGNMENT) - raw.as_ptr().addr();
        raw[start..start + self.len].copy_from_slice(self.as_slice());
        (self.raw, self.start) = (raw, start);
        Ok(())
    }
}

/// So many bytes and as many more as fill the last block.
fn whole(len: usize) -> Result<usize, Error> {
    let most = isize::MAX as usize / 4;
    if len > most { Err(Error::NoMemory { bytes: len as u64 }) } else { Ok(len.next_multiple_of(ALIGNMENT)) }
}

impl Clone for Buffer {
    fn clone(&self) -> Self {
        let mut raw = vec![0; whole(self.len).unwrap_or(self.len) + ALIGNMENT];
        let start = raw.as_ptr().addr().next_multiple_of(ALIGNMENT) - raw.as_ptr().addr();
        raw[start..start + self.len].copy_from_slice(self.as_slice());
        Self { raw, start, len: self.len }
    }
}
