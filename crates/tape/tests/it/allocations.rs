//! What an operation allocates: nothing of its own.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use ebbtide_tape::{Differentiable, Mode, Tape, Var, rule_fn, with_mode};

/// The system's allocator, with a count for each thread: tests run side by side.
struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
    static BYTES: Cell<usize> = const { Cell::new(0) };
}

fn count(bytes: usize) {
    ALLOCATIONS.set(ALLOCATIONS.get() + 1);
    BYTES.set(BYTES.get() + bytes);
}

// SAFETY: everything is handed to the system's allocator as it came.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        unsafe { System.alloc(layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size);
        unsafe { System.realloc(at, layout, size) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

fn allocations(run: impl FnOnce()) -> u64 {
    let before = ALLOCATIONS.get();
    run();
    ALLOCATIONS.get() - before
}

const OPERATIONS: usize = 100_000;

/// A mix of operations: two operands, one operand, a plain number; owned and borrowed.
fn record(x: &Var<f64>) -> Var<f64> {
    let mut y = x.clone();
    for _ in 0..OPERATIONS / 4 {
        y = (&y * x).sin() + 1.0 - x;
    }
    y
}

#[test]
fn the_count_sees_an_allocation() {
    assert_eq!(allocations(|| drop(std::hint::black_box(Box::new(1)))), 1);
}

#[test]
fn recording_allocates_by_the_chunk() {
    for mode in [Mode::Off, Mode::Aggressive] {
        let tape = Tape::<f64>::new();
        let x = tape.leaf(0.3);
        with_mode(mode, || drop(record(&x)));
        let count = with_mode(mode, || allocations(|| drop(record(&x))));
        assert!(count < OPERATIONS as u64 / 100, "{mode:?}: {count} allocations");
    }
}

#[test]
fn recording_on_a_freed_tape_allocates_nothing() {
    for mode in [Mode::Off, Mode::Aggressive] {
        let tape = Tape::<f64>::new();
        // A sweep before each `free`, as in use; the second graph settles the lists of chunks.
        for _ in 0..2 {
            let y = with_mode(mode, || record(&tape.leaf(0.3)));
            tape.pullback(&y).unwrap();
            tape.free();
        }
        let count = with_mode(mode, || allocations(|| drop(record(&tape.leaf(0.3)))));
        assert_eq!(count, 0, "{mode:?}");
    }
}

#[test]
fn a_graph_in_reused_memory_has_the_gradient_of_a_new_one() {
    let expected = {
        let x = Tape::new().leaf(0.3);
        record(&x).pullback().unwrap().wrt(&x).unwrap()
    };
    let tape = Tape::<f64>::new();
    for mode in [Mode::Off, Mode::Aggressive, Mode::Off, Mode::Conservative] {
        // Another graph of another size before, part of which the freed memory still knows.
        with_mode(mode, || drop(tape.leaf(2.0).exp() * 3.0));
        let x = tape.leaf(0.3);
        let gradients = with_mode(mode, || record(&x)).pullback().unwrap();
        assert_eq!(gradients.wrt(&x).unwrap(), expected, "{mode:?}");
        tape.free();
    }
}

#[test]
fn a_sweep_that_outlives_its_graph_reads_it_to_the_end() {
    let tape = Tape::<f64>::new();
    let x = tape.leaf(2.0);
    let own = tape.downgrade();
    // The first rule to run frees the graph and records another one, which must not take the memory of this.
    let tripled = &x * 3.0;
    let meddling = rule_fn(move |c: &f64| {
        let tape = own.upgrade().unwrap();
        tape.free();
        drop(record(&tape.leaf(7.0)));
        [*c]
    });
    let y = tape.record_op(6.0, &[&tripled], meddling).unwrap();
    let gradients = tape.pullback(&y).unwrap();
    assert_eq!(gradients.get(&x), Some(&3.0));
}

#[test]
fn a_sweep_over_retained_operations_allocates_its_tables_only() {
    let tape = Tape::<f64>::new();
    let y = record(&tape.leaf(0.3));
    tape.pullback(&y).unwrap();
    let count = allocations(|| drop(tape.pullback(&y).unwrap()));
    assert!(count < 20, "{count} allocations");
}

#[test]
fn a_replay_allocates_its_rule_only() {
    let tape = Tape::<f64>::new();
    let y = with_mode(Mode::Aggressive, || record(&tape.leaf(0.3)));
    let count = allocations(|| drop(tape.pullback(&y).unwrap()));
    let rules = OPERATIONS as u64;
    assert!((rules..rules + 100).contains(&count), "{count} allocations");
}

#[test]
fn memory_beyond_the_bound_is_given_back() {
    /// A value that fills the arena quickly.
    #[derive(Clone, Copy)]
    struct Large([u8; 4096]);
    impl Differentiable for Large {
        type Tangent = ();
        type Shared = ebbtide_tape::Inline<Large>;
        fn zero_tangent(&self) {}
        fn accumulate((): &mut (), (): ()) {}
        fn element_count(&self) -> usize {
            self.0.len()
        }
        fn unit_cotangent(&self) {}
    }
    // 8 000 values of 4 KiB are 32 MB, of which the tape keeps 16 MiB.
    let tape = Tape::<Large>::new();
    let record = || {
        let before = BYTES.get();
        for _ in 0..8000 {
            tape.leaf(Large([0; 4096]));
        }
        BYTES.get() - before
    };
    let first = record();
    tape.free();
    let second = record();
    assert!(first - second <= 16 << 20, "{second} bytes after {first}");
    assert!(second < first, "{second} bytes after {first}");
}
