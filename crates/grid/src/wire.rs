//! What connects the processes of a run.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, PoisonError};

/// What connects the processes (*ranks*) of a run. Every function that takes `&mut self` is called by all ranks in the same order.
///
/// A call may block for as long as the others take. One thread of a rank calls at a time, not always the same.
pub trait Wire: Send {
    /// The number of this rank.
    fn rank(&self) -> usize;

    /// The number of ranks.
    fn ranks(&self) -> usize;

    /// The number of ranks on the machine of this one, itself included: they share its memory.
    fn ranks_here(&self) -> usize;

    /// Replaces every word by its maximum over all ranks.
    fn all_max(&mut self, words: &mut [u64]) -> Result<(), String>;

    /// The bytes of every rank, in order.
    fn all_gather(&mut self, own: &[u8]) -> Result<Vec<Vec<u8>>, String>;

    /// Sends messages to other ranks, and receives one from each of `sources`. No rank is named twice in either list, and a
    /// rank receives from exactly those that send to it.
    fn swap(
        &mut self,
        messages: Vec<(usize, Vec<u8>)>,
        sources: &[usize],
    ) -> Result<Vec<(usize, Vec<u8>)>, String>;
}

/// One rank: all parts are in this process.
#[derive(Clone, Copy, Debug, Default)]
pub struct Alone;

impl Wire for Alone {
    fn rank(&self) -> usize {
        0
    }

    fn ranks(&self) -> usize {
        1
    }

    fn ranks_here(&self) -> usize {
        1
    }

    fn all_max(&mut self, _: &mut [u64]) -> Result<(), String> {
        Ok(())
    }

    fn all_gather(&mut self, own: &[u8]) -> Result<Vec<Vec<u8>>, String> {
        Ok(vec![own.to_vec()])
    }

    fn swap(
        &mut self,
        messages: Vec<(usize, Vec<u8>)>,
        _: &[usize],
    ) -> Result<Vec<(usize, Vec<u8>)>, String> {
        Ok(messages)
    }
}

/// Several ranks in one process, for tests: each is given to a [`Team`](crate::Team) on a thread of its own.
pub struct Channels {
    rank: usize,
    boxes: Arc<Vec<Mailbox>>,
}

#[derive(Default)]
struct Mailbox {
    /// By sender.
    letters: Mutex<Vec<VecDeque<Vec<u8>>>>,
    arrived: Condvar,
}

impl Channels {
    /// So many ranks, in order.
    pub fn ranks(ranks: usize) -> Vec<Channels> {
        let mailbox =
            || Mailbox { letters: Mutex::new(vec![VecDeque::new(); ranks]), arrived: Condvar::new() };
        let boxes = Arc::new((0..ranks).map(|_| mailbox()).collect::<Vec<_>>());
        (0..ranks).map(|rank| Channels { rank, boxes: boxes.clone() }).collect()
    }

    fn send(&self, to: usize, bytes: Vec<u8>) {
        let mailbox = &self.boxes[to];
        mailbox.letters.lock().unwrap_or_else(PoisonError::into_inner)[self.rank].push_back(bytes);
        mailbox.arrived.notify_all();
    }

    fn receive(&self, from: usize) -> Vec<u8> {
        let mailbox = &self.boxes[self.rank];
        let mut letters = mailbox.letters.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if let Some(bytes) = letters[from].pop_front() {
                return bytes;
            }
            letters = mailbox.arrived.wait(letters).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl Wire for Channels {
    fn rank(&self) -> usize {
        self.rank
    }

    fn ranks(&self) -> usize {
        self.boxes.len()
    }

    fn ranks_here(&self) -> usize {
        self.boxes.len()
    }

    fn all_max(&mut self, words: &mut [u64]) -> Result<(), String> {
        let own: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
        for bytes in self.all_gather(&own)? {
            for (word, other) in words.iter_mut().zip(bytes.as_chunks::<8>().0) {
                *word = (*word).max(u64::from_ne_bytes(*other));
            }
        }
        Ok(())
    }

    fn all_gather(&mut self, own: &[u8]) -> Result<Vec<Vec<u8>>, String> {
        (0..self.boxes.len()).for_each(|to| self.send(to, own.to_vec()));
        Ok((0..self.boxes.len()).map(|from| self.receive(from)).collect())
    }

    fn swap(
        &mut self,
        messages: Vec<(usize, Vec<u8>)>,
        sources: &[usize],
    ) -> Result<Vec<(usize, Vec<u8>)>, String> {
        messages.into_iter().for_each(|(to, bytes)| self.send(to, bytes));
        Ok(sources.iter().map(|from| (*from, self.receive(*from))).collect())
    }
}
