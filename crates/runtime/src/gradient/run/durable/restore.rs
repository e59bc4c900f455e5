//! Reads what a run was from its directory, after holding it against the program.
//!
//! Input: a checkpoint whose checksums are right, made by anybody. Output: a run that can continue, or an error. Count, name, type
//! and shape of every piece follow from the program, the arguments and numbers that have been checked before, in the
//! order of `layout`; nothing is allocated for a piece, or copied, that does not fit. Numbers of the right shape are taken.

use std::collections::BTreeMap;

use ebbtide_ir::{Access, ArrayId, Length, LoopId, Role, Type};
use ebbtide_schedule::{AnySchedule, Schedule as _};
use ebbtide_snapshot::{Dtype, SnapshotReader, free_memory};
use ebbtide_sweep::{Driver, Standing};

use super::layout::{LOOP_WORDS, action, number, ran, slot, words_of};
use super::position::{path, without_iterations};
use super::{kept_arrays, results};
use crate::device::frame::extents::from_arguments;
use crate::error::{Error, Result};
use crate::gradient::run::hosted::{Log, Reshape};
use crate::gradient::run::shapes::Follow;
use crate::gradient::run::{Driven, Run, StoredState};
use crate::gradient::steps::{Step, Sweep};
use crate::launch::stored::plain;
use crate::memory::byte_count::byte_count;
use crate::size::bytes as size;

/// No run has done this many iterations, or moved this many bytes.
const MOST: u64 = 1 << 60;
/// The text of a schedule is not longer than this.
const LONGEST_SCHEDULE: usize = 64 << 20;

/// A loop of which the file speaks, and what of its data is still to come.
struct Pending {
    id: LoopId,
    slots: Vec<ebbtide_schedule::Slot>,
    offload: Vec<(usize, u64)>,
    /// The numbers of the shapes of the former, then of the latter.
    shapes: Vec<usize>,
}

/// The shapes that a host gave to arrays, and the numbers of those that arrays and cotangents have.
type Reshaped = (Vec<Reshape>, (usize, usize));

impl<'a> Run<'a> {
    /// Reads the results of a run that is complete.
    pub(crate) fn read_results(&mut self, reader: &mut SnapshotReader) -> Result<()> {
        if *reader.position() != self.whole() {
            return Err(wrong_position(reader));
        }
        self.ran = ran(self.ran_words(reader)?);
        if let Some((reshapes, _)) = self.read_shapes(reader)? {
            self.take_log(Log { reshapes, ..Log::default() })?;
        }
        for array in results(&self.variant.program) {
            self.read_array(reader, array)?;
        }
        expect_end(reader)
    }

    /// Reads what a run was between two actions.
    pub(crate) fn read_state(&mut self, reader: &mut SnapshotReader) -> Result<()> {
        if let Some(free) = free_memory().filter(|free| *free < reader.bytes()) {
            let what = format!("it holds {}, and {} of memory are free", size(reader.bytes()), size(free));
            return Err(reader.damaged(what).into());
        }
        self.at = path(reader.position());
        self.ran = ran(self.ran_words(reader)?);
        self.read_scalars(reader)?;
        self.read_log(reader)?;
        let open = self.open_loops(reader)?;
        // No loop is driven yet: which iterations are meant is compared when that is known.
        if self.position() != Some(without_iterations(reader.position())) {
            return Err(wrong_position(reader));
        }
        let mut pending = Vec::new();
        for (id, sweep) in open {
            let (driven, rest) = self.read_loop(reader, sweep)?;
            self.sweeps.insert(id, driven);
            pending.push(rest);
        }
        if self.position().as_ref() != Some(reader.position()) {
            return Err(wrong_position(reader));
        }
        for array in kept_arrays(&self.variant.program) {
            self.read_array(reader, array)?;
            self.read_tape(reader, array)?;
        }
        for rest in pending {
            self.read_slots(reader, rest)?;
        }
        expect_end(reader)?;
        self.plan_restored()
    }

    fn ran_words(&self, reader: &mut SnapshotReader) -> Result<[u64; 9]> {
        expect(reader, "ran", Dtype::U64, |shape| shape == [9])?;
        let counts = words(reader, 9)?;
        let counts = <[u64; 9]>::try_from(counts).ok().filter(|c| c.iter().all(|count| *count < MOST));
        counts.ok_or_else(|| reader.damaged("its counts are out of range").into())
    }

    fn read_scalars(&mut self, reader: &mut SnapshotReader) -> Result<()> {
        let program = &self.variant.program;
        let numbering = program.numbering();
        let count = numbering.values().len();
        expect(reader, "values", Dtype::U64, |shape| shape == [count])?;
        for (v, bits) in numbering.values().iter().zip(words(reader, count)?) {
            self.frame.scalars.values[v.index()] = plain(program.ty(*v), bits);
        }
        let count = program.locals.len();
        expect(reader, "locals", Dtype::U64, |shape| shape == [count])?;
        let locals = words(reader, count)?;
        let types = program.locals.iter().map(|local| local.ty);
        self.frame.scalars.locals = locals.into_iter().zip(types).map(|(v, ty)| plain(ty, v)).collect();
        Ok(())
    }

    fn read_log(&mut self, reader: &mut SnapshotReader) -> Result<()> {
        if self.variant.hosted.is_empty() {
            return Ok(());
        }
        let length = expect(reader, "host", Dtype::U8, |shape| shape.len() == 1)?[0];
        let bytes = reader.read_vec(length)?;
        let shapes = self.read_shapes(reader)?;
        let (reshapes, now) = shapes.unwrap_or_default();
        self.take_log(Log { reshapes, ..Log::default() })?;
        let (arrays, source) = (&self.frame.arrays, &self.variant.source);
        let size = |array: ArrayId, number: usize| {
            let decl = source.arrays.get(array.index())?;
            let launch = (self.shapes.count() == 1 && number == 0).then(|| arrays[array.index()].bytes);
            let bytes = self.shapes.bytes(array, number).or(launch)?;
            (decl.role == Role::Param(Access::Write)).then_some((bytes, decl.ty))
        };
        let known = |log: &Log| log.done.keys().all(|(region, _)| self.variant.hosted.contains_key(region));
        let log = Log::from_bytes(&bytes).filter(|log| known(log) && log.fits(size));
        let log = log.ok_or_else(|| reader.damaged("what the host did is not of this program"))?;
        self.log.done = log.done;
        let (now, of_cotangents) = now;
        self.enter_shapes(of_cotangents, Follow::Reversed)?;
        self.enter_shapes(now, Follow::RunAgain)?;
        Ok(())
    }

    /// The shapes that the host gave to arrays, and the numbers of those that arrays and cotangents have, if there are any.
    fn read_shapes(&self, reader: &mut SnapshotReader) -> Result<Option<Reshaped>> {
        if self.variant.hosted.is_empty() || reader.next_array().is_none_or(|next| next.name != "shapes") {
            return Ok(None);
        }
        let count = expect(reader, "shapes", Dtype::U64, |shape| matches!(shape, [n] if *n >= 2))?[0];
        let words = words(reader, count)?;
        let damaged = || reader.damaged("the shapes in it are not of this program");
        let reshapes = Log::reshapes_of(&words[2..]).ok_or_else(damaged)?;
        let lent = &self.variant.lent.arrays;
        let mut bytes = 0u64;
        for (array, shape) in reshapes.iter().flat_map(|reshape| &reshape.shapes) {
            let decl = self.variant.source.arrays.get(array.index()).ok_or_else(damaged)?;
            if !lent.contains_key(array) || shape.len() != decl.rank {
                return Err(damaged().into());
            }
            bytes = bytes.saturating_add(byte_count(shape, decl.ty).map_err(|_| damaged())? as u64);
        }
        if !reshapes.iter().all(|reshape| self.variant.hosted.contains_key(&reshape.at.0))
            || free_memory().is_some_and(|free| free < bytes)
        {
            return Err(damaged().into());
        }
        let number = |word: u64| usize::try_from(word).ok().filter(|n| *n <= reshapes.len());
        let (Some(now), Some(of_cotangents)) = (number(words[0]), number(words[1])) else {
            return Err(damaged().into());
        };
        Ok(Some((reshapes, (now, of_cotangents))))
    }

    /// The loops that are being driven where the run stands, in order, which the position and the branches taken tell.
    fn open_loops(&self, reader: &SnapshotReader) -> Result<BTreeMap<LoopId, &'a Sweep>> {
        let mut open = BTreeMap::new();
        let mut steps = &self.variant.steps.steps[..];
        let mut path = self.at.iter();
        let wrong = || wrong_position(reader);
        loop {
            let at = *path.next().ok_or_else(wrong)?;
            let step = steps.get(at).ok_or_else(wrong)?;
            for before in &steps[..at] {
                self.close(before, &mut open);
            }
            match step {
                Step::If { condition, then, otherwise } => {
                    let taken = self.frame.scalars.locals[condition.index()] != 0;
                    steps = if taken { then } else { otherwise };
                }
                Step::Forward(sweep) if path.len() == 0 => {
                    open.insert(sweep.id, sweep);
                    return Ok(open);
                }
                Step::Backward(id, _) if path.len() == 0 && open.contains_key(id) => return Ok(open),
                _ => return Err(wrong()),
            }
        }
    }

    /// What a step that is over has opened or closed. The depth of recursion is that of nesting in the source.
    fn close(&self, step: &'a Step, open: &mut BTreeMap<LoopId, &'a Sweep>) {
        match step {
            Step::Forward(sweep) => drop(open.insert(sweep.id, sweep)),
            Step::Backward(id, _) => drop(open.remove(id)),
            Step::If { condition, then, otherwise } => {
                let taken = self.frame.scalars.locals[condition.index()] != 0;
                (if taken { then } else { otherwise }).iter().for_each(|step| self.close(step, open));
            }
            Step::Run(_) | Step::Host(..) | Step::For { .. } => {}
        }
    }

    fn read_loop(&self, reader: &mut SnapshotReader, sweep: &'a Sweep) -> Result<(Driven<'a>, Pending)> {
        let n = sweep.id.index();
        expect(reader, &format!("loop {n}"), Dtype::U64, |shape| shape == [LOOP_WORDS])?;
        let numbers = words(reader, LOOP_WORDS)?;
        let short = |shape: &[usize]| matches!(shape, [length] if *length <= LONGEST_SCHEDULE);
        let length = expect(reader, &format!("schedule {n}"), Dtype::U8, short)?[0];
        let text = reader.read_vec(length)?;
        let text = String::from_utf8(text).map_err(|_| reader.damaged("a schedule in it is not text"))?;
        let schedule: AnySchedule = text
            .parse()
            .map_err(|error: ebbtide_schedule::Error| reader.damaged(format!("a schedule in it: {error}")))?;
        let first = match sweep.length {
            Length::Unknown { .. } => 0,
            // The loop was entered in one of the shapes that arrays have had.
            Length::Known(from, to) => {
                let bounds = |number: usize| {
                    let views = self.shapes.views(&self.frame.arrays, number);
                    let value = |v| from_arguments(&self.variant.program, v, &views, &self.frame.arguments);
                    Some((value(from)? as i64, value(to)? as i64))
                };
                let bounds: Option<Vec<_>> = (0..self.shapes.count()).map(bounds).collect();
                let Some(bounds) = bounds else {
                    return Err(self.variant.internal("the bounds of a loop could not be computed"));
                };
                let iterations = |(from, to): &(i64, i64)| Some(to.saturating_sub(*from).max(0) as u64);
                let Some((first, _)) = bounds.iter().find(|b| iterations(b) == schedule.steps()) else {
                    return Err(reader
                        .damaged("a schedule in it has another number of iterations than its loop")
                        .into());
                };
                *first
            }
        };
        let ranges = |shape: &[usize]| matches!(shape, [count, 2] if *count <= LONGEST_SCHEDULE);
        let count = expect(reader, &format!("taped {n}"), Dtype::U64, ranges)?[0];
        let pairs = words(reader, 2 * count)?;
        let taped = pairs.as_chunks::<2>().0.iter().map(|[from, to]| (*from, *to)).collect();
        let standing = Standing { live: number(numbers[4]), reversed: number(numbers[5]), taped };
        if !standing.is_possible(schedule.steps()) {
            return Err(reader.damaged("a loop in it stands where it cannot").into());
        }
        // Every state in a slot stands before another iteration; the last iteration has none after it.
        let most = schedule.steps().and_then(|steps| usize::try_from(steps).ok()).unwrap_or(usize::MAX);
        let counted = |shape: &[usize]| matches!(shape, [count, 2] if *count <= most.saturating_add(1));
        let count = expect(reader, &format!("slots {n}"), Dtype::U64, counted)?[0];
        let pairs = words(reader, 2 * count)?;
        let slots: Option<Vec<_>> = pairs.as_chunks::<2>().0.iter().map(|pair| slot(*pair)).collect();
        let slots = slots
            .filter(|slots| slots.is_sorted_by_key(|s| (s.tier == ebbtide_schedule::Tier::Disk, s.index)));
        let slots = slots.ok_or_else(|| reader.damaged("its slots are out of range"))?;
        let count = expect(reader, &format!("far {n}"), Dtype::U64, counted)?[0];
        let pairs = words(reader, 2 * count)?;
        let offload: Vec<(usize, u64)> = pairs
            .as_chunks::<2>()
            .0
            .iter()
            .map(|[index, step]| (usize::try_from(*index).unwrap_or(usize::MAX), *step))
            .collect();
        let on_disk = usize::try_from(numbers[0]).unwrap_or(usize::MAX);
        let needs_disk = |(index, _): &(usize, u64)| self.is_in_host_memory() || *index < on_disk;
        if self.tiers.disk.is_none() && offload.iter().any(needs_disk) {
            return Err(self.variant.lost("it kept states on disk: launch it with `.disk(..)`, as before"));
        }
        let count = slots.len() + offload.len();
        let mut shapes = vec![0; count];
        if self.shapes.count() > 1 {
            expect(reader, &format!("slot shapes {n}"), Dtype::U64, |shape| shape == [count])?;
            let given = words(reader, count)?;
            let number = |word: &u64| usize::try_from(*word).ok().filter(|n| *n < self.shapes.count());
            let known: Option<Vec<usize>> = given.iter().map(number).collect();
            shapes =
                known.ok_or_else(|| reader.damaged("its states have shapes that this run does not know"))?;
        }
        let driver = Driver::resumed(schedule, standing, action([numbers[1], numbers[2], numbers[3]]));
        let driven = Driven::new(sweep, driver, on_disk, first);
        Ok((driven, Pending { id: sweep.id, slots, offload, shapes }))
    }

    fn read_array(&mut self, reader: &mut SnapshotReader, array: ArrayId) -> Result<()> {
        let bytes = self.frame.arrays[array.index()].bytes;
        expect(reader, &format!("array {}", array.index()), Dtype::U8, |shape| shape == [bytes])?;
        let ty = self.variant.program.array(array).ty;
        if self.is_in_host_memory() {
            let place = self.frame.bytes_mut(array);
            reader.read(place)?;
            return check_elements(reader, ty, place);
        }
        let held = reader.read_vec(bytes)?;
        check_elements(reader, ty, &held)?;
        self.set_contents(array, &held)
    }

    /// Puts on the tape of an array what was on it.
    fn read_tape(&mut self, reader: &mut SnapshotReader, array: ArrayId) -> Result<()> {
        let name = format!("tape {}", array.index());
        if reader.next_array().is_none_or(|next| next.name != name) {
            return Ok(());
        }
        let (bytes, most) = (self.place_bytes(array), self.deepest(array)?);
        let fits = |shape: &[usize]| matches!(shape, [d, width] if *width == bytes && *d as u64 <= most);
        let depth = expect(reader, &name, Dtype::U8, fits)?[0];
        let ty = self.variant.program.array(array).ty;
        self.frame.reserve_tape_of(array, depth, bytes, self.spare, self.device.meter())?;
        for place in 0..depth {
            let address = self.tape_place(array, place)?;
            if self.is_in_host_memory() {
                // SAFETY (*Liveness*, *Bounds*, *Exclusive access*): a place that was reserved owns so much memory for as long
                // as the frame lives, and nothing runs.
                let held = unsafe { std::slice::from_raw_parts_mut(address, bytes) };
                reader.read(held)?;
                check_elements(reader, ty, held)?;
                self.frame.tapes[array.index()].depth = place + 1;
            } else {
                let mut buffer = self.spare.take(bytes, self.device.meter())?;
                let read = reader.read(buffer.bytes_to_overwrite());
                read.map_err(Error::from).and_then(|()| check_elements(reader, ty, buffer.bytes()))?;
                // SAFETY: as many places hold something.
                unsafe { self.frame.push_from(array, address, &buffer)? };
                self.spare.give([buffer]);
            }
        }
        Ok(())
    }

    /// How much the tape of an array can hold where the run stands.
    fn deepest(&self, array: ArrayId) -> Result<u64> {
        let variant = self.variant;
        let (views, scalars) = (&self.frame.arrays, &self.frame.arguments);
        // It may have held more in other shapes.
        let mut most = if self.shapes.count() > 1 { u64::MAX } else { 0 };
        let outside = variant.pushes_outside.iter().chain(variant.steps.pushes.iter().flatten());
        for pushes in outside.filter(|pushes| pushes.array == array) {
            // Segments that are pieces of loops push as often as these say; where that is data, nothing is known.
            most = most.saturating_add(variant.times(pushes, views, scalars).unwrap_or(u64::MAX));
        }
        for (id, driven) in &self.sweeps {
            for pushes in variant.pushes.get(id).into_iter().flatten().filter(|p| p.array == array) {
                let times = match driven.driver.steps() {
                    Some(steps) => variant.times_in(pushes, driven.counted(0, steps), views, scalars),
                    None => variant.times(pushes, views, scalars).map(|times| times.saturating_mul(u64::MAX)),
                };
                most = most.saturating_add(times.unwrap_or(u64::MAX));
            }
        }
        Ok(most)
    }

    /// Fills the slots of a loop.
    fn read_slots(&mut self, reader: &mut SnapshotReader, rest: Pending) -> Result<()> {
        let Pending { id, slots, offload, shapes } = rest;
        let Some(mut driven) = self.sweeps.remove(&id) else { return Ok(()) };
        let sweep = driven.sweep;
        let types: Vec<Type> = sweep.carried.iter().map(|a| self.variant.program.array(*a).ty).collect();
        let parts = |run: &Self, number: usize| -> Vec<(usize, Type)> {
            run.state_bytes(sweep, number).into_iter().zip(types.iter().copied()).collect()
        };
        let (near, away) = shapes.split_at(slots.len());
        let n = id.index();
        let wanted = self.state_shape(sweep, near);
        if !wanted.contains(&0) {
            expect(reader, &format!("slot data {n}"), Dtype::U8, |shape| shape == wanted)?;
        }
        for (slot, shapes) in slots.into_iter().zip(near.iter().copied()) {
            let mut buffers = Vec::with_capacity(types.len());
            for (bytes, ty) in &parts(self, shapes) {
                let mut buffer = self.spare.take(*bytes, self.device.meter())?;
                reader.read(buffer.bytes_to_overwrite())?;
                check_elements(reader, *ty, buffer.bytes())?;
                buffers.push(buffer);
            }
            driven.slots.insert(slot, StoredState { buffers, shapes });
        }
        let wanted = self.state_shape(sweep, away);
        if !wanted.contains(&0) {
            expect(reader, &format!("far data {n}"), Dtype::U8, |shape| shape == wanted)?;
        }
        let spare = self.spare;
        for ((index, step), shapes) in offload.iter().zip(away) {
            driven.offloaded_shapes.insert(*index, *shapes);
            let parts = parts(self, *shapes);
            let (offload, _) = self.offload(&mut driven);
            let mut types = parts.iter();
            let sizes = parts.iter().map(|(bytes, _)| *bytes).collect::<Vec<_>>();
            offload.restore(*index, *step, &sizes, spare, &mut |place| {
                reader.read(place)?;
                let ty = types.next().map_or(Type::F64, |(_, ty)| *ty);
                check_elements(reader, ty, place)
            })?;
        }
        self.sweeps.insert(id, driven);
        Ok(())
    }
}

fn wrong_position(reader: &SnapshotReader) -> Error {
    reader.damaged(format!("this program cannot be at its position, `{}`", reader.position())).into()
}

/// A `bool` is 0 or 1 and nothing else.
fn check_elements(reader: &SnapshotReader, ty: Type, bytes: &[u8]) -> Result<()> {
    match ty {
        Type::Bool if bytes.iter().any(|byte| *byte > 1) => {
            Err(reader.damaged("an array of `bool` in it holds something else").into())
        }
        _ => Ok(()),
    }
}

/// The shape of the array that comes next, which must have this name and type, and a shape that fits. Where it may be
/// without bytes it may be left out.
pub(super) fn expect(
    reader: &SnapshotReader,
    name: &str,
    dtype: Dtype,
    fits: impl Fn(&[usize]) -> bool,
) -> Result<Vec<usize>> {
    let empty = [&[0][..], &[0, 2]].into_iter().find(|shape| fits(shape));
    match (reader.next_array(), empty) {
        (Some(next), _)
            if next.name == name && next.dtype == dtype && next.bytes > 0 && fits(&next.shape) =>
        {
            Ok(next.shape.clone())
        }
        (Some(next), Some(empty)) if next.name != name => Ok(empty.to_vec()),
        (Some(next), _) => {
            let what = format!(
                "where this run has `{name}` it has `{}`, {} of shape {:?}: it is not a state of this run",
                next.name, next.dtype, next.shape
            );
            Err(reader.damaged(what).into())
        }
        (None, Some(empty)) => Ok(empty.to_vec()),
        (None, None) => Err(reader.damaged(format!("it has no `{name}`")).into()),
    }
}

fn expect_end(reader: &SnapshotReader) -> Result<()> {
    match reader.next_array() {
        None => Ok(()),
        Some(next) => Err(reader.damaged(format!("`{}` in it is of no use here", next.name)).into()),
    }
}

pub(super) fn words(reader: &mut SnapshotReader, count: usize) -> Result<Vec<u64>> {
    let bytes = count.checked_mul(8).ok_or_else(|| reader.damaged("it has too many numbers"))?;
    Ok(words_of(&reader.read_vec(bytes)?))
}
