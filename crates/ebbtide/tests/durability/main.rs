//! Durable gradients in hostile hands: killed at every point, on disks that fail, in directories that were damaged by
//! accident or made to mislead. `EBBTIDE_CASES` makes long runs of the tests that have a number of cases.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod accidents;
mod crafted;
mod kills;
mod problems;
mod refusals;
mod yields;

#[path = "../../../sweep/tests/it/faulty.rs"]
#[allow(dead_code, reason = "the tests of `sweep` use more of it")]
mod faulty;
#[path = "../../../snapshot/tests/support/folder.rs"]
mod folder;
#[path = "../../../snapshot/tests/support/kill.rs"]
mod kill;

/// The CPU. Its code is compiled quickly: these programs are small, and there are many of them.
fn cpu() -> ebbtide::Device {
    ebbtide_cpu::Options::new()
        .optimize(ebbtide_cpu::Optimize::Never)
        .build()
        .expect("tests need a C compiler")
        .0
}

/// Which cases this process takes, of those that are numbered: `EBBTIDE_SHARD=3/16` is the third of sixteen processes.
fn shard() -> (u64, u64) {
    let said = std::env::var("EBBTIDE_SHARD").ok();
    let shard = said.as_deref().and_then(|said| said.split_once('/'));
    shard.map_or((0, 1), |(which, of)| (which.parse().unwrap(), of.parse().unwrap()))
}

/// The number of cases of a property test: `EBBTIDE_CASES`, or else the number given.
fn cases(usual: u64) -> u64 {
    std::env::var("EBBTIDE_CASES").ok().and_then(|text| text.parse().ok()).unwrap_or(usual)
}

/// Pseudo-random numbers with a fixed seed (xorshift).
struct Random(u64);

impl Random {
    fn new(seed: u64) -> Self {
        Self(seed ^ 0x9e37_79b9_7f4a_7c15)
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit.max(1) as u64) as usize
    }
}
