//! The memory of an array, which launches borrow.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};

use crate::error::Result;
use crate::memory::buffer::Buffer;
use crate::memory::device_memory::Handed;

/// What a running launch owes to the arrays that it took memory from.
#[derive(Debug, Default)]
pub(crate) struct Loan {
    state: Mutex<State>,
    pub end: Condvar,
}

#[derive(Debug, Default)]
pub(crate) struct State {
    pub ended: bool,
    pub forgotten: bool,
    /// By parameter: the memory of the arrays that were written.
    pub buffers: Vec<Option<Arc<Buffer>>>,
}

impl Loan {
    pub fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing that runs under the lock can panic half-way.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn until_ended(&self) -> MutexGuard<'_, State> {
        let mut state = self.lock();
        let _span = (!state.ended).then(|| tracing::trace_span!("wait").entered());
        while !state.ended {
            state = self.end.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state
    }
}

/// The memory of an array: at hand, or with a launch that brings it back.
#[derive(Debug)]
pub(crate) struct LentMemory {
    at_hand: OnceLock<Arc<Buffer>>,
    /// Who has it, and for which parameter.
    lent: Option<(Arc<Loan>, usize)>,
    /// Launches that may be reading it.
    readers: Mutex<Vec<Arc<Loan>>>,
}

impl LentMemory {
    pub fn new(buffer: Buffer) -> LentMemory {
        LentMemory { at_hand: OnceLock::from(Arc::new(buffer)), lent: None, readers: Mutex::default() }
    }

    /// The buffer; waits for a launch that writes it.
    fn shared(&self) -> &Arc<Buffer> {
        self.at_hand.get_or_init(|| {
            let (loan, param) = self.lent.as_ref().expect("memory is at hand or lent");
            let buffer = loan.until_ended().buffers[*param].take();
            buffer.expect("a launch brings back what it was lent, once")
        })
    }

    /// Waits for launches that write or read it.
    pub fn settle(&self) {
        self.shared();
        let mut readers = self.readers.lock().unwrap_or_else(PoisonError::into_inner);
        readers.drain(..).for_each(|loan| drop(loan.until_ended()));
    }

    /// The buffer, for this caller alone; waits for launches that write or read it.
    fn exclusive(&mut self) -> &mut Buffer {
        self.settle();
        self.lent = None;
        let buffer = self.at_hand.get_mut().and_then(Arc::get_mut);
        buffer.expect("launches give up what they read before they end")
    }

    /// The bytes; waits for a launch that writes them.
    pub fn bytes(&self) -> &[u8] {
        self.shared().bytes()
    }

    /// The bytes, to be written; waits for launches that write or read them.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        self.exclusive().bytes_mut()
    }

    /// The bytes, all of which will be written; waits for launches that write or read them.
    pub fn bytes_to_overwrite(&mut self) -> &mut [u8] {
        self.exclusive().bytes_to_overwrite()
    }

    /// The address of the first byte, for compiled code; waits for a launch that writes there.
    pub fn address(&self) -> *mut u8 {
        self.shared().address()
    }

    /// Makes what the host wrote known to the device; gives the address and the number of bytes.
    pub fn hand_over(&self, access: Handed) -> Result<(*mut u8, usize)> {
        let buffer = self.shared();
        buffer.hand_over(access)?;
        Ok((buffer.address(), buffer.len()))
    }

    /// Replaces the bytes by those of an array of the same device and size.
    pub fn copy_from(&mut self, other: &LentMemory) -> Result<()> {
        self.exclusive().copy_from(other.shared())
    }

    /// Exchanges the bytes with those of an array of the same device and size: the memory stays where it is.
    pub fn exchange(&mut self, other: &mut LentMemory) -> Result<()> {
        self.exclusive().exchange(other.exclusive())
    }

    /// Lends the memory to a launch that will write it.
    pub fn lend(&mut self, loan: &Arc<Loan>, param: usize) -> Option<Arc<Buffer>> {
        self.exclusive();
        self.lent = Some((loan.clone(), param));
        self.at_hand.take()
    }

    /// Shares the memory with a launch that will read it.
    pub fn share(&self, loan: &Arc<Loan>) -> Arc<Buffer> {
        let mut readers = self.readers.lock().unwrap_or_else(PoisonError::into_inner);
        readers.retain(|reader| !reader.lock().ended);
        readers.push(loan.clone());
        self.shared().clone()
    }
}
