use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use ebbtide_snapshot::{Error, Memory, Place, State};

/// Counts the allocations of each thread.
struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

// SAFETY: every call goes to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let _ = ALLOCATIONS.try_with(|count| count.set(count.get() + 1));
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps the contract of `dealloc`.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[test]
fn the_steady_state_allocates_nothing() {
    let mut memory = Memory::<State>::new();
    let (field, mut back) = (vec![1.5; 1000], vec![0.0; 1000]);
    let mut round = |memory: &mut Memory<State>, step: u64| {
        for slot in 0..4 {
            let state = memory.begin(slot).unwrap();
            state.put("u", &field).unwrap();
            state.put_scalar("t", step as f64).unwrap();
            memory.commit(slot, step + slot as u64).unwrap();
        }
        for slot in [2, 0, 3, 1] {
            memory.load(slot).unwrap().get("u", &mut back).unwrap();
            memory.discard(slot).unwrap();
        }
    };
    round(&mut memory, 0);
    let before = ALLOCATIONS.get();
    for step in 0..100 {
        round(&mut memory, step);
    }
    assert_eq!(ALLOCATIONS.get(), before);
    assert!(before > 0, "the counter does not count");
}

#[test]
fn slots_hold_what_was_committed_and_nothing_else() {
    let mut memory = Memory::<Vec<f64>>::new();
    assert!(matches!(memory.load(0), Err(Error::EmptySlot { slot: 0 })));
    assert!(matches!(memory.commit(0, 1), Err(Error::EmptySlot { slot: 0 })));
    memory.begin(3).unwrap().push(1.0);
    assert_eq!(memory.step(3), None, "it is not committed yet");
    memory.commit(3, 9).unwrap();
    assert_eq!((memory.step(3), memory.held(), memory.bytes()), (Some(9), vec![(3, 9)], 8));
    memory.begin(3).unwrap();
    assert!(memory.load(3).is_err(), "begin has taken the old state");
    memory.discard(3).unwrap();
    memory.discard(77).unwrap();
    assert_eq!((memory.held(), memory.bytes()), (vec![], 0));
    assert!(matches!(memory.begin(usize::MAX), Err(Error::NoSuchSlot { .. })));
}
