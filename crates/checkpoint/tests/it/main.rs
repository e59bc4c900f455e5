//! Positions and states.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod headers;
mod positions;
mod states;

/// The number of cases of a property test: `EBBTIDE_CASES`, or else the number given.
fn cases(usual: u32) -> u32 {
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

    fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }
}
