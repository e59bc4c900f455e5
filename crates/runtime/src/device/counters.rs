//! What a test, or a curious user, can read about a device.

use std::sync::atomic::{AtomicU64, Ordering};

/// Something that a device counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The compiler ran.
    Build,
    /// Compiled code was found on disk.
    CacheHit,
    /// A piece of program was run: one segment, or on a GPU the copy of a state. There are no other nodes.
    Launch,
    /// The host waited for the end of what it had launched.
    Wait,
    /// A region was compiled that can yield.
    Region,
    /// A gradient run took a state back, to run iterations again.
    Replay,
    /// The iterations that every device runs before it prints code were left out: one of them made a loop unlawful.
    Unsimplified,
    /// Several threads ran a piece of program together.
    Shared,
}

/// Counts what a device did since it was made.
#[derive(Debug, Default)]
pub struct Counters {
    events: [AtomicU64; 8],
}

impl Counters {
    /// Counts some more.
    pub fn add(&self, event: Event, times: u64) {
        self.events[event as usize].fetch_add(times, Ordering::Relaxed);
    }

    fn of(&self, event: Event) -> u64 {
        self.events[event as usize].load(Ordering::Relaxed)
    }

    /// How often the compiler ran.
    pub fn builds(&self) -> u64 {
        self.of(Event::Build)
    }

    /// How often compiled code was found on disk.
    pub fn cache_hits(&self) -> u64 {
        self.of(Event::CacheHit)
    }

    /// How many pieces of program were run: segments, and on a GPU copies of states. There are no other nodes.
    pub fn launches(&self) -> u64 {
        self.of(Event::Launch)
    }

    /// How often the host waited for the end of what it had launched.
    pub fn waits(&self) -> u64 {
        self.of(Event::Wait)
    }

    /// How many regions that can yield were compiled.
    pub fn regions(&self) -> u64 {
        self.of(Event::Region)
    }

    /// How often gradient runs took a state back, to run iterations again.
    pub fn replays(&self) -> u64 {
        self.of(Event::Replay)
    }

    /// How many programs were compiled as they stand, because a simplifying iteration made one of their loops unlawful. That is
    /// a flaw of Ebbtide; it costs speed alone.
    pub fn unsimplified(&self) -> u64 {
        self.of(Event::Unsimplified)
    }

    /// How many pieces of program several threads ran together.
    pub fn shared(&self) -> u64 {
        self.of(Event::Shared)
    }
}

/// The regions of these blocks that can yield.
pub fn yielding_regions(segments: &[&ebbtide_ir::Block]) -> u64 {
    let mut regions = 0;
    for block in segments {
        ebbtide_ir::walk(block, &mut |stmt| {
            let yields = matches!(stmt, ebbtide_ir::Stmt::Region(region) if region.flag.is_some());
            regions += u64::from(yields);
        });
    }
    regions
}
