//! Room on the tapes, made before iterations push.

use std::collections::HashMap;

use ebbtide_autodiff::Pushes;
use ebbtide_ir::{ArrayId, Role};

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
        if let Role::Tape(top) = self.variant.program.array(array).role {
            return self.reserve_elements(array, top, count);
        }
        self.with_room(|run| run.frame.reserve_tape(array, count, run.spare, run.device.meter()))
    }

    /// Makes room for `count` more elements on a tape that holds as many as `top` says.
    fn reserve_elements(&mut self, tape: ArrayId, top: ArrayId, count: usize) -> Result<()> {
        let room = self.frame.arrays[tape.index()].shape[0] as usize;
        let mut held = 0;
        // A tape without room holds nothing, and nobody may have said so yet.
        if room > 0 {
            self.settle()?;
            let said = self.contents(top)?;
            held = said.first_chunk().map_or(0, |bytes| i64::from_ne_bytes(*bytes)).max(0) as usize;
        }
        if held + count <= room {
            return Ok(());
        }
        let lengths = (held.min(room), held + count);
        let size = self.variant.program.array(tape).ty.size();
        self.with_room(|run| run.frame.lengthen_tape(tape, lengths, size, run.spare, run.device.meter()))
    }
}
