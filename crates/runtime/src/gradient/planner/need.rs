//! What a loop needs: how often it runs, and how large its states and tapes are.

use ebbtide_ir::{LoopId, ReverseHint};

/// States of a loop of unknown length: finding the one to give up takes time in proportion to their number.
pub(super) const MOST_SLOTS: u64 = 1 << 10;

/// Iterations of a loop of unknown length that are recorded at once.
pub(super) const MOST_BLOCK: u64 = 16;

/// What has to be planned for one loop.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Need {
    pub id: LoopId,
    /// `None` where it is known only at the end of the loop.
    pub steps: Option<u64>,
    pub state: u64,
    /// Bytes of the tape of one iteration, the longest.
    pub tape: u64,
    /// Bytes of the tapes of all iterations, where their number is known.
    pub tapes: u64,
    /// The work of an iteration; the iteration of an innermost loop is 1.
    pub work: f64,
    pub hint: Option<ReverseHint>,
    /// Bytes on the tape of the loop around it that are free again when it is swept, and that it will use.
    pub reused: u64,
    /// The loops that are swept, one after the other, when an iteration of this one is reversed.
    pub inner: Vec<Need>,
}

impl Need {
    /// Bytes of the tapes of all iterations.
    pub fn store_all(&self) -> u64 {
        let inner = self.inner.iter().map(|n| n.store_all().saturating_sub(n.reused)).max().unwrap_or(0);
        self.tapes.saturating_add(inner)
    }

    /// The least bytes that work for the loop itself.
    pub(super) fn own_least(&self) -> u64 {
        let one = self.state.saturating_add(self.tape);
        self.steps.map_or(one, |_| one.min(self.tapes))
    }

    /// The least bytes that work.
    pub(super) fn least(&self) -> u64 {
        let inner = self.inner.iter().map(|n| n.least().saturating_sub(n.reused)).max().unwrap_or(0);
        self.own_least().saturating_add(inner)
    }

    /// Bytes beyond which more memory makes nothing faster.
    pub(super) fn most(&self) -> u64 {
        let online =
            || MOST_SLOTS.saturating_mul(self.state).saturating_add(MOST_BLOCK.saturating_mul(self.tape));
        let own = self.steps.map_or_else(online, |_| self.tapes);
        own.saturating_add(self.inner.iter().map(Need::most).max().unwrap_or(0))
    }

    /// Does the source say how a loop inside this one is to be reversed?
    pub fn has_inner_hint(&self) -> bool {
        self.inner.iter().any(|n| n.hint.is_some() || n.has_inner_hint())
    }
}
