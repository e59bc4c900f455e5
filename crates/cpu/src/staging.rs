//! Memory in which the threads of a launch note terms of ordered sums. It is not cleared: what is not noted takes no memory.

use std::mem::MaybeUninit;

/// Parts begin at multiples of this.
const PAGE: usize = 4096;

/// A piece of it.
#[repr(align(4096))]
#[derive(Clone, Copy)]
struct Page(#[allow(dead_code, reason = "compiled code writes it")] [MaybeUninit<u8>; PAGE]);

/// Such memory.
#[derive(Default)]
pub(crate) struct Staging(Vec<Page>);

impl Staging {
    /// So many bytes, or a few more.
    pub fn of(bytes: u64) -> Staging {
        Staging(Vec::with_capacity((bytes as usize).div_ceil(PAGE)))
    }

    pub fn bytes(&self) -> u64 {
        (self.0.capacity() * PAGE) as u64
    }

    pub fn address(&mut self) -> *mut u8 {
        self.0.as_mut_ptr().cast()
    }

    /// The bytes that each of so many threads has.
    pub fn part(&self, threads: usize) -> i64 {
        (self.0.capacity() / threads * PAGE) as i64
    }
}
