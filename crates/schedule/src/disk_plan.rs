//! Where to put states on disk, by dynamic programming.
//!
//! Aupy, Herrmann, Hovland & Robert, *Optimal multistage algorithm for adjoint computation* (SIAM J. Sci.
//! Comput. 38, 2016). With M(l) the advances of Revolve in memory alone, w and r the costs of a write and a
//! read (in advances):
//!
//! - R(l) = min(M(l), min over m of m + M(l−m) + r + R(m)): the first state is on disk and at hand;
//! - F(l) = min(M(l), min over m of w + m + F(l−m) + r + R(m)): it is at hand alone.
//!
//! Disk states are written on the first sweep only. With enough slots on disk that is no restriction (their
//! theorem); for fewer see `scarce_table` and `scarce_tree`.
//!
//! Departures: blocks (M counts them), and the scan for F, which is cut short where a lower bound shows that nothing
//! better can follow. The gaps between disk states are nearly
//! periodic, so longer loops repeat the period with the least cost per step until the rest is within reach of
//! the table.

use crate::binomial::beta;
use crate::placement::Room;
use crate::{Method, revolve};

/// Loops up to this length (plus a block for a plain forward sweep) are planned exactly.
pub(crate) const REACH: u64 = 1 << 14;

/// The cost of moving one state to and from disk, in plain advances of one step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Prices {
    pub write: f64,
    pub read: f64,
}

/// A first advance; 0 means that memory alone is better.
type Split = u32;

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct DiskPlan {
    memory_slots: usize,
    block: u64,
    prices: Prices,
    /// min over all plans of a gap whose first state is on disk, by length.
    reread: Vec<Split>,
    reread_cost: Vec<f64>,
    /// First sweep with any number of disk slots, by length, and how many it uses.
    free: Vec<Split>,
    used: Vec<u32>,
    /// The gap between disk states with the least cost per step.
    period: u64,
    /// The longest rest that is better done in memory than with more gaps of a period.
    tail: u64,
    /// Whether the period was given: then there are no tables, and what is longer than the tail has a state per
    /// period as long as there are slots.
    given: bool,
}

impl DiskPlan {
    /// A plan for a room, but for its slots on disk.
    pub fn new(room: &Room, method: Method) -> DiskPlan {
        let &Room { length, memory_slots, block, prices, .. } = room;
        let mut plan = DiskPlan { prices, given: false, ..DiskPlan::spaced(1, 0, memory_slots, block) };
        if method == Method::Exact {
            plan.extend(length as usize);
        } else {
            let mut size = (4 * block).max(256);
            loop {
                plan.extend(size.min(REACH) as usize);
                if size >= REACH || plan.period <= size / 4 {
                    break;
                }
                size *= 2;
            }
            plan.look_beyond();
        }
        plan
    }

    /// The slots on disk that an exact plan for a length uses.
    pub fn slots_used(&self, length: u64) -> u64 {
        self.used.get(length as usize).copied().unwrap_or(0).into()
    }

    /// A state on disk every `period` steps of what is longer than `tail`, and the gaps reversed in memory.
    pub fn spaced(period: u64, tail: u64, memory_slots: usize, block: u64) -> DiskPlan {
        DiskPlan {
            memory_slots,
            block,
            prices: Prices { write: 0.0, read: 0.0 },
            reread: Vec::new(),
            reread_cost: Vec::new(),
            free: Vec::new(),
            used: Vec::new(),
            period,
            tail,
            given: true,
        }
    }

    /// The cost of a gap in memory alone.
    fn memory_cost(&self, length: u64) -> f64 {
        revolve::advances_in_blocks(length, self.memory_slots, self.block).map_or(f64::INFINITY, |t| t as f64)
    }

    /// The cost of a gap of `length` that starts with a state to be written to disk and read again.
    fn gap_cost(&self, length: usize) -> f64 {
        self.prices.write + self.prices.read + length as f64 + self.reread_cost[length]
    }

    /// Extends the tables to gaps of `length`.
    fn extend(&mut self, length: usize) {
        let memory: Vec<f64> = (0..=length as u64).map(|l| self.memory_cost(l)).collect();
        for l in self.reread.len()..=length {
            let (mut best, mut split) = (memory[l], 0);
            if l as u64 > self.block {
                // In memory all steps but a block are advanced over at least once.
                let advanced = (l as u64 - self.block) as f64;
                for m in 1..l {
                    if self.prices.read + self.reread_cost[m] + advanced > best {
                        break;
                    }
                    let cost = m as f64 + memory[l - m] + self.prices.read + self.reread_cost[m];
                    if cost < best {
                        (best, split) = (cost, m as Split);
                    }
                }
            }
            self.reread.push(split);
            self.reread_cost.push(best);
        }
        let rate = |plan: &DiskPlan, m: usize| plan.gap_cost(m) / m as f64;
        let shortest = (self.block as usize).min(length).max(1);
        self.period = (shortest..=length)
            .min_by(|&a, &b| rate(self, a).total_cmp(&rate(self, b)))
            .map_or(1, |m| m as u64);
        let (cost, split) = self.first_sweep(&memory);
        self.free = split;
        self.used = vec![0; cost.len()];
        for l in 0..cost.len() {
            if self.free[l] > 0 {
                self.used[l] = 1 + self.used[l - self.free[l] as usize];
            }
        }
    }

    /// F for all lengths.
    fn first_sweep(&self, memory: &[f64]) -> (Vec<f64>, Vec<Split>) {
        let gap: Vec<f64> = (0..memory.len()).map(|m| self.gap_cost(m)).collect();
        // Any rate gives a bound: F(x) ≥ rate·x − slack. The cheapest one cuts the scan shortest.
        let rate = gap.get(self.period as usize).map_or(1.0, |cost| cost / self.period as f64);
        let mut least_excess: Vec<f64> = gap.iter().enumerate().map(|(m, c)| c - rate * m as f64).collect();
        for m in (1..least_excess.len()).rev() {
            least_excess[m - 1] = least_excess[m - 1].min(least_excess[m]);
        }
        let (mut cost, mut split): (Vec<f64>, Vec<Split>) = (Vec::new(), Vec::new());
        let mut slack: f64 = 0.0;
        for (l, &in_memory) in memory.iter().enumerate() {
            let (mut best, mut first) = (in_memory, 0);
            if l as u64 > self.block {
                for m in 1..l {
                    if least_excess[m] - slack > best - rate * l as f64 {
                        break;
                    }
                    let candidate = gap[m] + cost[l - m];
                    if candidate < best {
                        (best, first) = (candidate, m as Split);
                    }
                }
            }
            cost.push(best);
            split.push(first);
            slack = slack.max(rate * l as f64 - cost[l]);
        }
        (cost, split)
    }

    /// A period that is longer than the table, if memory alone makes one worth while; and the tail.
    fn look_beyond(&mut self) {
        let size = self.reread.len() as u64;
        let rate = |m: u64| 1.0 + (self.prices.write + self.prices.read + self.memory_cost(m)) / m as f64;
        let mut best = self.gap_cost(self.period as usize) / self.period as f64;
        let (mut m, mut period) = (size, self.period);
        while self.period >= size / 2 && m < 1 << 60 {
            if rate(m) < best {
                (best, period) = (rate(m), m);
            }
            m += (m / 32).max(1);
        }
        // In memory the r-th repetition costs r per step, so it pays as long as r is below the rate.
        let units = if self.memory_slots == 0 { 1 } else { beta(self.memory_slots as u64, best as u64) };
        let tail = units.saturating_mul(self.block.into());
        (self.period, self.tail) = (period, u64::try_from(tail).unwrap_or(u64::MAX));
    }

    /// What no plan for a length undercuts, however large the disk is; `None` if the best period lies beyond the table.
    ///
    /// A plan consists of gaps, none with a lower cost per step than a period, and a rest in memory.
    pub fn bound(&self, length: u64) -> Option<f64> {
        let period = usize::try_from(self.period).ok().filter(|&period| 2 * period < self.reread.len())?;
        let rate = self.gap_cost(period) / self.period as f64;
        let rests = (0..self.reread.len() as u64).chain([self.tail]).map(|rest| rest.min(length));
        let rest = rests.map(|rest| rate * rest as f64 - self.memory_cost(rest));
        Some(rate * length as f64 - rest.fold(0.0, f64::max))
    }

    /// How far to advance from a state that goes to disk on the first sweep; `None` if the rest is better
    /// done in memory.
    pub fn first_advance(&self, length: u64, free_slots: usize) -> Option<u64> {
        if free_slots == 0 || length <= self.block {
            return None;
        }
        if let Some(&split) = self.free.get(length as usize)
            && self.used[length as usize] as usize <= free_slots
        {
            return (split > 0).then(|| split.into());
        }
        if length <= self.tail {
            return None;
        }
        if self.given {
            return Some(self.period);
        }
        // Spread the slots over the length, but not more densely than pays.
        let even = length.div_ceil((free_slots as u64).saturating_add(1));
        Some(self.period.max(even).clamp(1, length - self.block))
    }

    /// The same, and how many gaps of that length follow each other.
    pub fn first_advances(&self, length: u64, free_slots: usize) -> Option<(u64, u64)> {
        let distance = self.first_advance(length, free_slots)?;
        if self.given {
            let times = ((length - self.tail).div_ceil(self.period)).min(free_slots as u64);
            return Some((distance, times));
        }
        let periodic_above = self.tail.max(self.free.len() as u64);
        let times = match length.checked_sub(periodic_above) {
            // A period is at least as long as an even share, so the shares stay below it.
            Some(above) if distance == self.period => (above / distance).clamp(1, free_slots as u64),
            _ => 1,
        };
        Some((distance, times))
    }

    /// How far to advance from a state that was read from disk; `None` if it is better copied to memory.
    pub fn next_advance(&self, length: u64) -> Option<u64> {
        match self.reread.get(length as usize) {
            Some(&split) => (split > 0).then(|| split.into()),
            None if self.given => None,
            None => self.next_advance_beyond(length),
        }
    }

    /// Beyond the table: as many equal pieces as are cheapest, each reached from the state on disk and then
    /// reversed in memory.
    fn next_advance_beyond(&self, length: u64) -> Option<u64> {
        let cost = |pieces: u64| {
            let count = pieces as f64;
            let advances = length as f64 * (count - 1.0) / 2.0;
            advances + count * (self.prices.read + self.memory_cost(length.div_ceil(pieces)))
        };
        let candidates = (1..=64).filter(|&pieces| length / pieces >= self.block);
        let pieces = candidates.min_by(|&a, &b| cost(a).total_cmp(&cost(b)))?;
        let last = length.div_ceil(pieces);
        (pieces > 1 && last < length).then_some(length - last)
    }
}
