//! Writes what a run is into its directory, from where it lies.
//!
//! Input: a run between two actions. Output: one checkpoint in a file. Each piece is gone over twice, once for its checksum, which stands
//! before it in the file, and once to be written; what this takes in memory is one buffer of at most 1 % of the whole.

use std::time::Instant;

use ebbtide_checkpoint::Position;
use ebbtide_ir::{ArrayId, LoopId};
use ebbtide_schedule::Slot;
use ebbtide_snapshot::{ArrayInfo, Dtype, Outline, Patience, Reached, SnapshotWriter};
use ebbtide_sweep::Standing;

use super::layout::{LOOP_WORDS, action_words, bytes_of, ran_words, slot_words, word};
use super::{Frontier, kept_arrays, results};
use crate::error::{Error, Result};
use crate::gradient::run::Run;
use crate::gradient::steps::Sweep;
use crate::memory::buffer::Buffer;

/// One array of the snapshot: its name, its type and shape, and where its bytes are.
pub(super) struct Piece {
    name: String,
    dtype: Dtype,
    shape: Vec<usize>,
    from: Source,
}

enum Source {
    Here(Vec<u8>),
    Array(ArrayId),
    Tape(ArrayId),
    Slots(LoopId, Vec<Slot>),
    Offload(LoopId, Vec<usize>),
}

impl Piece {
    fn words(name: String, shape: &[usize], words: impl IntoIterator<Item = u64>) -> Piece {
        let from = Source::Here(bytes_of(words));
        Piece { name, dtype: Dtype::U64, shape: shape.to_vec(), from }
    }

    fn bytes(name: String, bytes: Vec<u8>) -> Piece {
        Piece { name, dtype: Dtype::U8, shape: vec![bytes.len()], from: Source::Here(bytes) }
    }

    /// The number of a frontier of all parts.
    pub(super) fn number(number: u64) -> Piece {
        Piece::words("frontier".to_string(), &[1], [number])
    }

    fn of(name: String, shape: &[usize], from: Source) -> Piece {
        Piece { name, dtype: Dtype::U8, shape: shape.to_vec(), from }
    }
}

/// Small beside the budget of the run, and large enough for the disk where there is much to write.
fn buffer_bytes(pieces: &[ArrayInfo]) -> usize {
    let all: usize = pieces.iter().map(|piece| piece.bytes).sum();
    (all / 128).clamp(8 << 10, 1 << 20)
}

type Visit<'v> = &'v mut dyn FnMut(&[u8]) -> Result<()>;

impl<'a> Run<'a> {
    /// Makes what the run is now durable.
    pub(crate) fn commit(&mut self) -> Result<()> {
        let Some(frontier) = self.frontier.take() else { return Ok(()) };
        // While the last one is still being synced, the run continues, unless every action is to be durable, or all parts of
        // a grid write one.
        let together = frontier.together.is_some();
        let patience = if frontier.every.is_zero() || together { Patience::Wait } else { Patience::Skip };
        if let Err(error) = frontier.agree() {
            self.frontier = Some(frontier);
            return Err(error);
        }
        let (all, reversed) = (frontier.all(self.ran.reversed), self.ran.reversed);
        let mut pieces = self.pieces();
        pieces.splice(0..0, frontier.number_piece());
        let written = match self.position() {
            Some(at) => self.write(frontier, Reached::Step(all - reversed), all, at, pieces, patience),
            None => Err(self.variant.internal("a run stands at no step")),
        };
        frontier.last = Instant::now();
        self.frontier = Some(frontier);
        written
    }

    /// Makes the results durable, and waits until they are.
    pub(crate) fn finish(&mut self) -> Result<()> {
        let Some(frontier) = self.frontier.take() else { return Ok(()) };
        // All that was recorded has been used. A state that was made by hand may have had more.
        if self.frame.tapes.iter().any(|tape| tape.depth > 0) {
            let message = "its tape is not empty at the end: the state from which it continued does not belong to this run";
            return Err(self.variant.lost(message));
        }
        let mut pieces = vec![Piece::words("ran".to_string(), &[9], ran_words(&self.ran))];
        pieces.extend(self.shapes_piece());
        for array in results(&self.variant.program) {
            pieces.push(self.array_piece(array));
        }
        frontier.agree()?;
        pieces.splice(0..0, frontier.number_piece());
        self.write(frontier, Reached::End, self.ran.reversed, self.whole(), pieces, Patience::Wait)?;
        // What it supersedes goes when the results of all parts are durable.
        frontier.agree()?;
        if frontier.together.is_some() {
            frontier.dir.adjoints().release()?;
        }
        Ok(())
    }

    fn write(
        &mut self,
        frontier: &mut Frontier,
        reached: Reached,
        steps: u64,
        position: Position,
        mut pieces: Vec<Piece>,
        patience: Patience,
    ) -> Result<()> {
        pieces.retain(|piece| !piece.shape.contains(&0));
        let mut arrays = Vec::with_capacity(pieces.len());
        for piece in &pieces {
            let mut sum = crc32fast::Hasher::new();
            self.show(&piece.from, &mut |bytes| {
                sum.update(bytes);
                Ok(())
            })?;
            let info = ArrayInfo::new(piece.name.clone(), piece.dtype, &piece.shape, sum.finalize());
            arrays.push(info.ok_or_else(|| self.variant.lost("its state is too large for one file"))?);
        }
        let buffer = buffer_bytes(&arrays);
        let fill = |writer: &mut SnapshotWriter| -> Result<()> {
            for piece in &pieces {
                self.show(&piece.from, &mut |bytes| Ok(writer.write(bytes)?))?;
            }
            Ok(())
        };
        frontier.dir.adjoints().stream(
            reached,
            steps,
            Outline { position, arrays },
            buffer,
            patience,
            fill,
        )?;
        Ok(())
    }

    fn array_piece(&self, array: ArrayId) -> Piece {
        let bytes = self.frame.arrays[array.index()].bytes;
        Piece::of(format!("array {}", array.index()), &[bytes], Source::Array(array))
    }

    /// The shapes that the host gave to arrays, if it gave any.
    fn shapes_piece(&self) -> Option<Piece> {
        if self.shapes.count() == 1 {
            return None;
        }
        let mut words = vec![self.shapes.now() as u64, self.shapes.of_cotangents() as u64];
        words.extend(self.log.reshape_words());
        Some(Piece::words("shapes".to_string(), &[words.len()], words))
    }

    /// All that the run is, in the order of `layout`.
    fn pieces(&mut self) -> Vec<Piece> {
        let scalars = &self.frame.scalars;
        let numbering = self.variant.program.numbering();
        let values: Vec<u64> = numbering.values().iter().map(|v| scalars.values[v.index()]).collect();
        let mut pieces = vec![
            Piece::words("ran".to_string(), &[9], ran_words(&self.ran)),
            Piece::words("values".to_string(), &[values.len()], values),
            Piece::words("locals".to_string(), &[scalars.locals.len()], scalars.locals.iter().copied()),
        ];
        if !self.variant.hosted.is_empty() {
            pieces.push(Piece::bytes("host".to_string(), self.log.to_bytes()));
            pieces.extend(self.shapes_piece());
        }
        let reshaped = self.shapes.count() > 1;
        let mut data = Vec::new();
        let mut loops: Vec<LoopId> = self.sweeps.keys().copied().collect();
        loops.sort_unstable();
        for id in loops {
            let Some(driven) = self.sweeps.get(&id) else { continue };
            let n = id.index();
            let Standing { live, reversed, taped } = driven.driver.standing();
            let rest = action_words(driven.driver.rest());
            let words = [driven.on_disk as u64, rest[0], rest[1], rest[2], word(*live), word(*reversed)];
            pieces.push(Piece::words(format!("loop {n}"), &[LOOP_WORDS], words));
            pieces.push(Piece::bytes(
                format!("schedule {n}"),
                driven.driver.schedule().to_string().into_bytes(),
            ));
            let words: Vec<u64> = taped.iter().flat_map(|(from, to)| [*from, *to]).collect();
            pieces.push(Piece::words(format!("taped {n}"), &[taped.len(), 2], words));
            let mut slots: Vec<Slot> = driven.slots.keys().copied().collect();
            slots.sort_unstable_by_key(|slot| slot_words(*slot));
            let words: Vec<u64> = slots.iter().flat_map(|slot| slot_words(*slot)).collect();
            pieces.push(Piece::words(format!("slots {n}"), &[slots.len(), 2], words));
            let offload = driven.offload.as_ref().map(|offload| offload.held()).unwrap_or_default();
            let words: Vec<u64> = offload.iter().flat_map(|(index, step)| [*index as u64, *step]).collect();
            pieces.push(Piece::words(format!("far {n}"), &[offload.len(), 2], words));
            let held: Vec<usize> = offload.into_iter().map(|(index, _)| index).collect();
            let near = slots.iter().map(|slot| driven.slots.get(slot).map_or(0, |state| state.shapes));
            let away = held.iter().map(|index| driven.offloaded_shapes.get(index).copied().unwrap_or(0));
            let numbers: Vec<usize> = near.chain(away).collect();
            if reshaped {
                let words = numbers.iter().map(|number| *number as u64);
                pieces.push(Piece::words(format!("slot shapes {n}"), &[numbers.len()], words));
            }
            let (near, away) = numbers.split_at(slots.len());
            let shape = self.state_shape(driven.sweep, near);
            data.push(Piece::of(format!("slot data {n}"), &shape, Source::Slots(id, slots)));
            let shape = self.state_shape(driven.sweep, away);
            data.push(Piece::of(format!("far data {n}"), &shape, Source::Offload(id, held)));
        }
        for array in kept_arrays(&self.variant.program) {
            pieces.push(self.array_piece(array));
            let (depth, bytes) = (self.frame.tapes[array.index()].depth, self.place_bytes(array));
            if depth > 0 {
                let name = format!("tape {}", array.index());
                pieces.push(Piece::of(name, &[depth, bytes], Source::Tape(array)));
            }
        }
        pieces.append(&mut data);
        pieces
    }

    /// The bytes of a place on the tape of an array in a file: those of its largest shape.
    pub(super) fn place_bytes(&self, array: ArrayId) -> usize {
        self.shapes.most_bytes(array).unwrap_or(self.frame.arrays[array.index()].bytes)
    }

    /// The bytes of the arrays that a loop carries, in the shapes of a number.
    pub(super) fn state_bytes(&self, sweep: &Sweep, number: usize) -> Vec<usize> {
        let bytes = |a: &ArrayId| self.shapes.bytes(*a, number).unwrap_or(self.frame.arrays[a.index()].bytes);
        sweep.carried.iter().map(bytes).collect()
    }

    /// The shape of the data of states in shapes of these numbers: a row for each, if they are alike.
    pub(super) fn state_shape(&self, sweep: &Sweep, numbers: &[usize]) -> Vec<usize> {
        let state = |number| self.state_bytes(sweep, number).iter().sum::<usize>();
        match self.shapes.count() {
            1 => vec![numbers.len(), state(0)],
            _ => vec![numbers.iter().map(|number| state(*number)).sum()],
        }
    }

    /// Shows all bytes of a piece, part by part.
    fn show(&mut self, from: &Source, visit: Visit<'_>) -> Result<()> {
        match from {
            Source::Here(bytes) => visit(bytes),
            Source::Array(array) if self.is_in_host_memory() => visit(self.frame.bytes(*array)),
            Source::Array(array) => visit(&self.contents(*array)?),
            Source::Tape(array) => {
                let depth = self.frame.tapes[array.index()].depth;
                for place in 0..depth {
                    self.show_tape(*array, place, visit)?;
                }
                Ok(())
            }
            Source::Slots(id, slots) => {
                let Some(driven) = self.sweeps.get(id) else { return Ok(()) };
                let states = slots.iter().filter_map(|slot| driven.slots.get(slot));
                let buffers = states.flat_map(|state| &state.buffers);
                buffers.map(Buffer::bytes).try_for_each(visit)
            }
            Source::Offload(id, held) => {
                let offload = self.sweeps.get_mut(id).and_then(|driven| driven.offload.as_mut());
                let Some(offload) = offload else { return Ok(()) };
                held.iter().try_for_each(|index| offload.visit(*index, visit))
            }
        }
    }

    pub(super) fn is_in_host_memory(&self) -> bool {
        self.device.backend().memory().is_none()
    }

    fn show_tape(&mut self, array: ArrayId, place: usize, visit: Visit<'_>) -> Result<()> {
        let (address, all) = (self.tape_place(array, place)?, self.place_bytes(array));
        let bytes = self.frame.room(address, &self.frame.arrays[array.index()]).min(all);
        if self.is_in_host_memory() {
            // SAFETY (*Liveness*, *Bounds*): a place on the tape owns memory of this many bytes for as long as the frame lives;
            // nothing runs between two actions.
            visit(unsafe { std::slice::from_raw_parts(address, bytes) })?;
        } else {
            let mut buffer = self.spare.take(bytes, self.device.meter())?;
            // SAFETY: it is a place of this tape.
            unsafe { self.frame.copy_tape_to(array, address, &mut buffer)? };
            let visited = visit(buffer.bytes());
            self.spare.give([buffer]);
            visited?;
        }
        // What was put there before the array grew is smaller than the others.
        if bytes < all { visit(&vec![0; all - bytes]) } else { Ok(()) }
    }

    /// The address of a place on the tape of an array, which has the size of the array.
    pub(super) fn tape_place(&self, array: ArrayId, place: usize) -> Result<*mut u8> {
        let place = self.frame.tape_place(array, place);
        place.ok_or_else(|| -> Error { self.variant.internal("a tape has no such place") })
    }
}
