//! Devices for tests on machines that have none: the host's memory, handled as a device's.
//!
//! It is public, and hidden, for the tests of the crates above, and for devices that others write.

use std::collections::VecDeque;
use std::fmt;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use ebbtide_ir::{Block, Facts, Program};

use crate::device::{Backend, Device, Executable};
use crate::error::Result;
use crate::memory::device_memory::{Carried, HostMemory, Memory, Piece};
use crate::memory::shared::Shared;

/// When copies that travel beside other work are made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Travel {
    /// When they are asked for.
    #[default]
    AtOnce,
    /// As late as the contract lets them: when they are waited for.
    WhenWaitedFor,
}

/// Memory of the host that plays a device's. It counts what is asked of it, and holds that nothing is given back which a copy
/// will still touch.
#[derive(Default)]
pub struct FakeMemory {
    me: Weak<FakeMemory>,
    travel: Travel,
    shared: Option<Shared>,
    uploads: AtomicU64,
    downloads: AtomicU64,
    waits: AtomicU64,
    asked: AtomicU64,
    waiting: Mutex<Waiting>,
}

/// Copies by number: the addresses that they go from and to, and the bytes.
type Waiting = VecDeque<(u64, Vec<(usize, usize, usize)>)>;

impl FakeMemory {
    /// Memory whose copies travel as said.
    pub fn new(travel: Travel) -> Arc<FakeMemory> {
        Arc::new_cyclic(|me| FakeMemory { me: me.clone(), travel, ..FakeMemory::default() })
    }

    /// Memory that other libraries know under this name.
    pub fn shared_as(shared: Shared) -> Arc<FakeMemory> {
        let shared = Some(shared);
        Arc::new_cyclic(|me| FakeMemory { me: me.clone(), shared, ..FakeMemory::default() })
    }

    /// How often bytes went to it.
    pub fn uploads(&self) -> u64 {
        self.uploads.load(Ordering::Relaxed)
    }

    /// How often bytes came from it.
    pub fn downloads(&self) -> u64 {
        self.downloads.load(Ordering::Relaxed)
    }

    /// How often it was waited for.
    pub fn waits(&self) -> u64 {
        self.waits.load(Ordering::Relaxed)
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn copy_up_to(&self, number: u64) {
        let mut waiting = self.waiting();
        while waiting.front().is_some_and(|(next, _)| *next <= number) {
            for (from, to, bytes) in waiting.pop_front().into_iter().flat_map(|(_, pieces)| pieces) {
                // SAFETY (*Bounds*, *Liveness*): the caller of `carry_*` promised that both are there until the copy is over.
                unsafe { std::ptr::copy_nonoverlapping(from as *const u8, to as *mut u8, bytes) };
            }
        }
    }

    fn ask(&self, pieces: &[Piece]) -> Arc<dyn Carried> {
        let number = self.asked.fetch_add(1, Ordering::Relaxed);
        let addresses = pieces.iter().map(|(from, to, bytes)| (from.addr(), to.addr(), *bytes)).collect();
        self.waiting().push_back((number, addresses));
        if self.travel == Travel::AtOnce {
            self.copy_up_to(number);
        }
        Arc::new(FakeCopy { number, memory: self.me.upgrade() })
    }

    /// Nothing may be given back that a copy will still touch.
    fn assert_unused(&self, start: NonNull<u8>, bytes: usize) {
        let (start, end) = (start.addr().get(), start.addr().get() + bytes);
        let inside = |at: usize| (start..end).contains(&at);
        let used = self.waiting().iter().any(|(_, p)| p.iter().any(|(a, b, _)| inside(*a) || inside(*b)));
        assert!(!used, "memory was given back before a copy was over");
    }
}

impl fmt::Debug for FakeMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FakeMemory({:?}, {:?})", self.travel, self.shared)
    }
}

struct FakeCopy {
    number: u64,
    memory: Option<Arc<FakeMemory>>,
}

// SAFETY (*Liveness*): it is made, whole, before it is called over.
unsafe impl Carried for FakeCopy {
    fn is_over(&self) -> Result<bool> {
        let waits =
            |memory: &Arc<FakeMemory>| memory.waiting().front().is_some_and(|(n, _)| *n <= self.number);
        Ok(!self.memory.as_ref().is_some_and(waits))
    }

    fn wait(&self) -> Result<()> {
        self.memory.iter().for_each(|memory| memory.copy_up_to(self.number));
        Ok(())
    }

    fn hold(&self) -> Result<()> {
        self.wait()
    }
}

// SAFETY (*Allocation*): host memory of the size asked for, zeroed; (*Copies*): made at once, or whole when they are waited for;
// (*Ends*): copies between places of it are made at once, others are waited for by those who asked for them.
unsafe impl Memory for FakeMemory {
    fn shared(&self) -> Option<Shared> {
        self.shared
    }

    fn finish(&self) -> Result<()> {
        self.waits.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    fn allocate(&self, bytes: usize) -> Result<NonNull<u8>> {
        self.pin(bytes)
    }

    unsafe fn free(&self, start: NonNull<u8>, bytes: usize) {
        // SAFETY (*Liveness*): by the caller's promise; `allocate` pins.
        unsafe { self.unpin(start, bytes) }
    }

    unsafe fn copy(&self, from: *const u8, to: *mut u8, bytes: usize) -> Result<()> {
        // SAFETY (*Bounds*): by the caller's promise.
        unsafe { std::ptr::copy_nonoverlapping(from, to, bytes) };
        Ok(())
    }

    unsafe fn upload(&self, from: &[u8], to: *mut u8) -> Result<()> {
        self.uploads.fetch_add(1, Ordering::Relaxed);
        // SAFETY (*Bounds*): by the caller's promise.
        unsafe { std::ptr::copy_nonoverlapping(from.as_ptr(), to, from.len()) };
        Ok(())
    }

    unsafe fn download(&self, from: *const u8, to: &mut [u8]) -> Result<()> {
        self.downloads.fetch_add(1, Ordering::Relaxed);
        // SAFETY (*Bounds*): by the caller's promise.
        unsafe { std::ptr::copy_nonoverlapping(from, to.as_mut_ptr(), to.len()) };
        Ok(())
    }

    unsafe fn unpin(&self, start: NonNull<u8>, bytes: usize) {
        self.assert_unused(start, bytes);
        // SAFETY (*Liveness*): `pin` gave it with as many bytes, by the caller's promise.
        drop(unsafe { HostMemory::from_raw(start, bytes) });
    }

    unsafe fn carry_out(&self, pieces: &[Piece]) -> Result<Arc<dyn Carried>> {
        Ok(self.ask(pieces))
    }

    unsafe fn carry_in(&self, pieces: &[Piece]) -> Result<Arc<dyn Carried>> {
        Ok(self.ask(pieces))
    }
}

/// A device that has this memory, and computes with the code of another one, which can touch the host's.
pub fn device_with_memory(name: &'static str, memory: Arc<FakeMemory>, code: &Device) -> Device {
    Device::new(Arc::new(WithMemory { name, memory, code: code.clone() }))
}

struct WithMemory {
    name: &'static str,
    memory: Arc<FakeMemory>,
    code: Device,
}

// SAFETY (*Faithful code*): the other device's, of what is given; (*One memory*): one for all calls, which that device can touch.
unsafe impl Backend for WithMemory {
    fn name(&self) -> &str {
        self.name
    }

    fn memory(&self) -> Option<Arc<dyn Memory>> {
        Some(self.memory.clone())
    }

    fn compile(
        &self,
        program: &Arc<Program>,
        facts: &Arc<Facts>,
        segments: &[&Block],
    ) -> Result<Arc<dyn Executable>> {
        self.code.backend().compile(program, facts, segments)
    }
}
