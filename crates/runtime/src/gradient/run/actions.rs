//! What the actions of a schedule do.

use ebbtide_ir::Length;
use ebbtide_schedule::{Action, Slot, Tier};
use ebbtide_sweep::steps_of;

use super::hosted::Piece;
use super::{Driven, Run};
use crate::error::{Error, Result};
use crate::gradient::ran::Replay;
use crate::gradient::steps::Step;

impl<'a> Run<'a> {
    /// Carries an action out and returns what was done of it: less than all where the loop ended by itself.
    pub(super) fn carry_out(
        &mut self,
        driven: &mut Driven<'a>,
        action: Action,
        reverse: &'a [Step],
    ) -> Result<Action> {
        self.frame.go_on(&self.variant.source)?;
        let sweep = driven.sweep;
        let _span = crate::trace::action(&action, driven.on_disk);
        match action {
            // Where replays are checked, the state after every iteration is compared.
            Action::Advance { from, to } if self.replay == Replay::Checked && to > from + 1 => {
                let mut at = from;
                while at < to {
                    let one = Action::Advance { from: at, to: at + 1 };
                    let done = steps_of(self.carry_out(driven, one, reverse)?);
                    at += done;
                    if done == 0 || driven.driver.steps().is_some_and(|steps| steps <= at) {
                        break;
                    }
                }
                return Ok(Action::Advance { from, to: at });
            }
            Action::Advance { from, to } => {
                self.piece(driven, from, to);
                let piece = Piece { first: from, pushes: &[], counted: driven.counted(from, to) };
                self.segment(sweep.advance, Some(piece))?;
                let mut to = to;
                if let Length::Unknown { reached, ended } = sweep.length
                    && driven.driver.steps().is_none()
                {
                    self.settle()?;
                    let locals = &self.frame.scalars.locals;
                    to = locals[reached.index()];
                    if locals[ended.index()] != 0 {
                        let wrong = |e: ebbtide_schedule::Error| self.variant.lost(&e.to_string());
                        driven.driver.end(to).map_err(wrong)?;
                    }
                }
                self.ran.advanced += to - from;
                self.meet(driven, to)?;
                return Ok(Action::Advance { from, to });
            }
            Action::Record { from, to } => {
                self.meet(driven, from)?;
                self.ran.recorded += to - from;
                let pushes = self.variant.pushes.get(&sweep.id).map_or(&[][..], Vec::as_slice);
                let counted = driven.counted(from, to);
                self.reserve(pushes, counted)?;
                self.piece(driven, from, to);
                self.segment(sweep.record, Some(Piece { first: from, pushes, counted }))?;
            }
            Action::Reverse { from, to } => {
                self.ran.reversed += to - from;
                self.piece(driven, from, to);
                self.steps(reverse)?;
                if let [Step::Run(_)] = reverse {
                    let pushes = self.variant.pushes.get(&sweep.id).map_or(&[][..], Vec::as_slice);
                    let room = self.room(pushes, driven.counted(from, to))?;
                    room.into_iter()
                        .for_each(|(array, count)| self.frame.release_tape(array, count as usize));
                } else {
                    self.settle()?;
                }
            }
            Action::Store { slot: Slot { tier: Tier::Disk, index }, step } => {
                self.store_away(driven, index, step)?;
            }
            Action::Load { slot: Slot { tier: Tier::Disk, index }, step } => {
                self.load_away(driven, index, step)?;
            }
            Action::Drop { slot: Slot { tier: Tier::Disk, index } } => {
                self.offload(driven).0.discard(index)?
            }
            Action::Store { slot, .. } => self.store(driven, slot)?,
            Action::Load { slot, .. } => self.load(driven, slot)?,
            Action::Drop { slot } => {
                driven.spare.extend(driven.slots.remove(&slot).map(|state| state.buffers));
            }
            Action::Turn => {}
        }
        Ok(action)
    }

    /// Where replays are checked, compares the state before an iteration with what it was when that iteration was met before.
    fn meet(&mut self, driven: &mut Driven<'a>, step: u64) -> Result<()> {
        if self.replay == Replay::Trusted {
            return Ok(());
        }
        let mut sum = crc32fast::Hasher::new();
        for array in &driven.sweep.carried {
            sum.update(&self.contents(*array)?);
        }
        let sum = sum.finalize();
        if *driven.met.entry(step).or_insert(sum) == sum {
            return Ok(());
        }
        Err(Error::NotReproduced {
            program: self.variant.source.name.clone(),
            place: format!("loop {}, before iteration {step}", driven.sweep.id.index()),
        })
    }

    /// Tells the segments which iterations to run.
    fn piece(&mut self, driven: &Driven<'_>, from: u64, to: u64) {
        let (sweep, first) = (driven.sweep, driven.first);
        self.frame.scalars.values[sweep.piece.0.index()] = first.wrapping_add(from as i64) as u64;
        self.frame.scalars.values[sweep.piece.1.index()] = first.wrapping_add(to as i64) as u64;
    }
}
