//! Room on the tapes, made before iterations push.

use std::collections::HashMap;

use ebbtide_autodiff::Pushes;
use ebbtide_ir::ArrayId;

use super::Run;
use crate::error::Result;

impl Run<'_> {
    /// What these iterations push.
    pub(super) fn room(&self, pushes: &[Pushes], counted: (i64, i64)) -> Result<HashMap<ArrayId, u64>> {
        let mut room: HashMap<ArrayId, u64> = HashMap::new();
        let (views, scalars) = (&self.frame.arrays, &self.frame.arguments);
        for (array, count) in self.variant.counts(pushes, counted, views, scalars)? {
            *room.entry(array).or_default() += count.all;
        }
        Ok(room)
    }

    /// Makes room on the tapes for these iterations.
    pub(super) fn reserve(&mut self, pushes: &[Pushes], counted: (i64, i64)) -> Result<()> {
        // Segments that may yield are waited for, and only then is it known how much of the tapes is used.
        if !self.variant.hosted.is_empty() {
            self.settle()?;
        }
        for (array, count) in self.room(pushes, counted)? {
            self.reserve_places(array, count as usize)?;
        }
        Ok(())
    }

    /// Makes room on the tapes for what these iterations push beyond what the tapes held when they began.
    pub(crate) fn reserve_beside(
        &mut self,
        held: &[usize],
        pushes: &[Pushes],
        counted: (i64, i64),
    ) -> Result<()> {
        self.settle()?;
        for (array, count) in self.room(pushes, counted)? {
            let (held, depth) = (held[array.index()], self.frame.tapes[array.index()].depth);
            self.reserve_places(array, (held + count as usize).saturating_sub(depth))?;
        }
        Ok(())
    }

    fn reserve_places(&mut self, array: ArrayId, count: usize) -> Result<()> {
        self.with_room(|run| run.frame.reserve_tape(array, count, run.spare, run.device.meter()))
    }
}
