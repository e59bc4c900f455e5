use std::sync::Arc;

use ebbtide_checkpoint::Checkpoint;

use crate::journal::FileNumber;

/// A fixed number of checkpoints in memory, on their way to disk or from it.
///
/// A buffer is free when nobody else holds it: the writer has dropped its share, the reader has given it back.
/// A free buffer still remembers which file it holds, until it is used for another.
pub(crate) struct Staging {
    buffers: Vec<Buffer>,
    clock: u64,
}

#[derive(Default)]
struct Buffer {
    checkpoint: Arc<Checkpoint>,
    holds: Option<FileNumber>,
    lent: bool,
    used: u64,
}

impl Staging {
    pub(crate) fn new(count: usize) -> Self {
        Self { buffers: (0..count).map(|_| Buffer::default()).collect(), clock: 0 }
    }

    /// One more buffer.
    pub(crate) fn add(&mut self) -> usize {
        self.buffers.push(Buffer::default());
        self.buffers.len() - 1
    }

    /// The free buffer that was used the longest time ago; empty ones first.
    pub(crate) fn free(&mut self) -> Option<usize> {
        let (index, _) = self
            .buffers
            .iter_mut()
            .enumerate()
            .filter_map(|(index, buffer)| buffer.is_free().then_some((index, (buffer.holds, buffer.used))))
            .min_by_key(|&(_, (holds, used))| (holds.is_some(), used))?;
        Some(index)
    }

    pub(crate) fn free_count(&mut self) -> usize {
        self.buffers.iter_mut().filter_map(|buffer| buffer.is_free().then_some(())).count()
    }

    /// The content of a free buffer, to be replaced.
    pub(crate) fn get_mut(&mut self, index: usize) -> Option<&mut Checkpoint> {
        let buffer = self.buffers.get_mut(index)?;
        buffer.holds = None;
        Arc::get_mut(&mut buffer.checkpoint)
    }

    pub(crate) fn get(&self, index: usize) -> &Checkpoint {
        &self.buffers[index].checkpoint
    }

    /// Shares a buffer whose content is that of `file`.
    pub(crate) fn share(&mut self, index: usize, file: FileNumber) -> Arc<Checkpoint> {
        self.set_holds(index, file);
        Arc::clone(&self.buffers[index].checkpoint)
    }

    pub(crate) fn set_holds(&mut self, index: usize, file: FileNumber) {
        self.buffers[index].holds = Some(file);
        self.touch(index);
    }

    pub(crate) fn find(&mut self, file: FileNumber) -> Option<usize> {
        let index = self.buffers.iter().position(|buffer| buffer.holds == Some(file))?;
        self.touch(index);
        Some(index)
    }

    pub(crate) fn forget(&mut self, file: FileNumber) {
        for buffer in &mut self.buffers {
            if buffer.holds == Some(file) {
                buffer.holds = None;
            }
        }
    }

    /// Takes a free buffer away until it is given back.
    pub(crate) fn lend(&mut self) -> Option<Checkpoint> {
        let index = self.free()?;
        let checkpoint = std::mem::take(self.get_mut(index)?);
        self.buffers[index].lent = true;
        Some(checkpoint)
    }

    pub(crate) fn give_back(&mut self, checkpoint: Checkpoint, holds: Option<FileNumber>) {
        if let Some(index) = self.buffers.iter().position(|buffer| buffer.lent) {
            let buffer = &mut self.buffers[index];
            buffer.lent = false;
            buffer.checkpoint = Arc::new(checkpoint);
            buffer.holds = holds;
            self.touch(index);
        }
    }

    fn touch(&mut self, index: usize) {
        self.clock += 1;
        self.buffers[index].used = self.clock;
    }
}

impl Buffer {
    fn is_free(&mut self) -> bool {
        !self.lent && Arc::get_mut(&mut self.checkpoint).is_some()
    }
}
