//! What the tests share.

use ebbtide_schedule::*;

/// Both shapes with a block.
pub fn options(block: u64) -> [Options; 2] {
    [Options::new().block(block), Options::new().block(block).primal_first()]
}

/// All actions of an online schedule for a loop that turns out to have `steps` steps.
pub fn online_actions(schedule: &mut dyn Schedule, steps: u64) -> Vec<Action> {
    let mut actions = Vec::new();
    if steps == 0 {
        schedule.end(0).unwrap();
    }
    while let Some(mut action) = schedule.next() {
        let ended = match &mut action {
            Action::Advance { to, .. } if schedule.steps().is_none() && *to >= steps => {
                *to = steps;
                true
            }
            _ => false,
        };
        actions.push(action);
        if ended {
            schedule.end(steps).unwrap();
        }
    }
    actions
}

/// A small generator of random numbers with a fixed seed (splitmix64).
pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % bound
    }
}

/// The number of cases of a property test: `EBBTIDE_CASES`, or `default`.
pub fn cases(default: u64) -> u64 {
    std::env::var("EBBTIDE_CASES").ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}
