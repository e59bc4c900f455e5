//! The tables of a frame as the kernels of a launch see them, in the GPU's memory.
//!
//! They are sent once, when the first segment is asked for, or taken from the host by it; from then on the GPU's are the
//! true ones. The host says with each launch what it changed since, and fetches them when it must know.

use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use ebbtide_ir::Program;
use ebbtide_runtime::{Frame, Result};

use crate::batched_launch::{BatchedLaunch, Step};
use crate::doorbell::{Watch, Words};
use crate::gpu::Gpu;
use crate::parameters::{Launch, PATCHES, Shared};
use crate::sys::Address;

/// The words of [`Shared`], and of what the host and a running kernel say to each other.
const SHARED: usize = size_of::<Shared>() / 8;
const SAID: usize = size_of::<Words>() / 8;
/// Two counters for this launch, two for the next.
const MEET: usize = 4;

/// Where each table begins, in words. Those up to `tape` are fetched, the others only sent.
#[derive(Clone, Copy, Debug)]
pub struct Layout {
    shared: usize,
    data: usize,
    depth: usize,
    values: usize,
    locals: usize,
    passes: usize,
    bounds: usize,
    tape: usize,
    capacity: usize,
    kept: usize,
    scalars: usize,
    words: usize,
}

impl Layout {
    /// The layout for the frames of a program.
    pub fn of(program: &Program) -> Layout {
        let (arrays, loops) = (program.arrays.len(), program.loops as usize);
        let mut words = MEET;
        let mut table = |length: usize| {
            words += length;
            words - length
        };
        Layout {
            shared: table(SHARED),
            data: table(arrays),
            depth: table(arrays),
            values: table(program.values.len()),
            locals: table(program.locals.len()),
            passes: table(loops),
            bounds: table(2 * loops),
            tape: table(arrays),
            capacity: table(arrays),
            kept: table(arrays),
            scalars: table(program.scalars.len()),
            // Whole pairs.
            words: words.next_multiple_of(2),
        }
    }
}

/// The table of one array's tape.
#[derive(Clone, Debug, Default)]
struct Places {
    address: Address,
    /// How many addresses it has room for.
    room: usize,
    /// How many of the frame's it holds.
    count: usize,
    /// What it holds, as far as is known: most frames have the places of the one before.
    held: Vec<*mut u8>,
}

/// The tables of one frame.
pub struct Tables {
    gpu: Arc<Gpu>,
    layout: Layout,
    /// On the GPU.
    address: Address,
    /// What is sent, behind it as much room for what comes back, and what is said while a kernel runs.
    staging: NonNull<u64>,
    tapes: Vec<Places>,
    /// What the host knows of the GPU's values, locals and depths of tapes.
    known: [Vec<u64>; 3],
    /// The extents of all arrays, as many for each: a parameter of every launch.
    pub extents: Vec<i64>,
    /// How many launches there were: they take turns at the counters.
    launches: u64,
    /// Does the staging hold what the GPU has not got yet?
    staged: bool,
    /// May the GPU be at work with them?
    pub busy: bool,
    /// Does the last launch report what changed?
    reports: bool,
    /// Who looks whether the launches are to end, where somebody may want that.
    watch: Option<Watch>,
}

/// What the host changed.
pub struct Changes {
    /// Values, and what they are now.
    pub values: Vec<(usize, u64)>,
    /// Other words, by their place in the tables.
    pub words: Vec<(usize, u64)>,
}

/// What the host wants of a launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// To know how it ended, and what it left in the tables: it will wait.
    Report,
    /// Nothing yet.
    Nothing,
}

// SAFETY (*Exclusive access*): the pinned memory is owned, and used through `&mut self` alone.
unsafe impl Send for Tables {}

impl Tables {
    /// Tables for frames of this layout, holding nothing yet.
    pub fn new(gpu: &Arc<Gpu>, layout: Layout, arrays: usize) -> Result<Tables> {
        let staging = gpu.pinned(2 * layout.words + SAID)?;
        // SAFETY (*Bounds*): there is room for them behind the rest.
        unsafe { staging.add(2 * layout.words).cast::<Words>().write(Words::default()) };
        let address = match gpu.reserve(8 * layout.words) {
            Ok(address) => address,
            Err(error) => {
                gpu.unpin(staging);
                return Err(error);
            }
        };
        let tapes = vec![Places::default(); arrays];
        let known = [Vec::new(), Vec::new(), Vec::new()];
        Ok(Tables {
            gpu: gpu.clone(),
            layout,
            address,
            staging,
            tapes,
            known,
            extents: Vec::new(),
            launches: 0,
            staged: false,
            busy: false,
            reports: false,
            watch: None,
        })
    }

    /// The staged words.
    fn words(&mut self) -> &mut [u64] {
        // SAFETY (*Bounds*, *Exclusive access*): so many words were pinned; what was sent from there has arrived, as the
        // callers see to: they send once per stay of the host.
        unsafe { std::slice::from_raw_parts_mut(self.staging.as_ptr(), self.layout.words) }
    }

    fn put(&mut self, at: usize, words: impl IntoIterator<Item = u64>) {
        self.words()[at..].iter_mut().zip(words).for_each(|(place, word)| *place = word);
    }

    /// Stages all that a frame says, for the next launch. The GPU is not at work with the tables.
    pub fn stage(&mut self, program: &Program, frame: &Frame, passes: &[i64]) -> Result<()> {
        let at = self.layout;
        self.launches = 0;
        self.extents = frame.extents(program);
        self.put(0, [0; MEET + SHARED]);
        self.put(at.data, frame.arrays.iter().map(|view| view.address as u64));
        self.put(at.depth, frame.tapes.iter().map(|tape| tape.depth as u64));
        self.put(at.values, frame.scalars.values.iter().copied());
        self.put(at.locals, frame.scalars.locals.iter().copied());
        self.put(at.passes, passes.iter().map(|pass| *pass as u64));
        self.put(at.bounds, frame.scalars.bounds.iter().flatten().map(|bound| *bound as u64));
        self.put(at.kept, frame.kept.iter().map(|address| *address as u64));
        self.put(at.scalars, frame.arguments.iter().map(|argument| argument.bits()));
        self.known = [frame.scalars.values.clone(), frame.scalars.locals.clone(), depths(frame)];
        for array in 0..self.tapes.len() {
            self.grow(frame, array)?;
            self.put(at.tape + array, [self.tapes[array].address]);
            self.put(at.capacity + array, [self.tapes[array].count as u64]);
        }
        // SAFETY (*Liveness*): they are there as long as the tables.
        unsafe { self.said().as_ref() }.done.store(0, Ordering::Relaxed);
        self.busy = true;
        self.staged = true;
        // What the last launch reported is of another frame, or of this one before the host changed it.
        self.reports = false;
        Ok(())
    }

    /// Sends what is staged.
    pub fn send(&mut self) -> Result<()> {
        if std::mem::take(&mut self.staged) {
            // SAFETY (*Bounds*, *Liveness*): both sides have so many words; the staging is not touched before a wait.
            unsafe { self.gpu.send(self.staging.as_ptr().cast(), self.address, 8 * self.layout.words)? };
        }
        Ok(())
    }

    /// Makes the GPU's table of a tape as long as the frame's; says whether it changed.
    fn grow(&mut self, frame: &Frame, array: usize) -> Result<bool> {
        let Some(tape) = frame.tapes.get(array) else { return Ok(false) };
        let table = &mut self.tapes[array];
        let wanted = tape.places.len();
        if wanted <= table.count {
            return Ok(false);
        }
        if wanted > table.room {
            let room = wanted.max(2 * table.room).next_multiple_of(64);
            let address = self.gpu.reserve(8 * room)?;
            // SAFETY (*Bounds*): the new table is longer than the old one.
            unsafe { self.gpu.copy_within(table.address, address, 8 * table.count)? };
            if table.room > 0 {
                self.gpu.release(table.address);
            }
            table.held.truncate(table.count);
            (table.address, table.room) = (address, room);
        }
        let new = &tape.places[table.count..];
        if table.held.get(table.count..wanted) != Some(new) {
            let to = table.address + 8 * table.count as u64;
            // SAFETY (*Bounds*): there is room for them; pageable memory has been copied when the driver returns.
            unsafe { self.gpu.send(new.as_ptr().cast(), to, 8 * new.len())? };
            table.held.truncate(table.count);
            table.held.extend_from_slice(new);
        }
        table.count = wanted;
        Ok(true)
    }

    /// Makes the GPU's tables of tapes as long as the frame's.
    fn grow_tapes(&mut self, frame: &Frame) -> Result<()> {
        let at = self.layout;
        for array in 0..self.tapes.len() {
            if self.grow(frame, array)? {
                self.set(at.tape + array, self.tapes[array].address)?;
                self.set(at.capacity + array, self.tapes[array].count as u64)?;
            }
        }
        Ok(())
    }

    /// Sets one word, with what is staged or by itself.
    fn set(&mut self, at: usize, word: u64) -> Result<()> {
        if self.staged {
            self.put(at, [word]);
            return Ok(());
        }
        // SAFETY (*Bounds*): the word is one of the tables'; pageable memory has been copied when the driver returns.
        unsafe { self.gpu.send((&raw const word).cast(), self.address + 8 * at as u64, 8) }
    }

    /// Where what comes back is put.
    fn reported(&self) -> *mut u64 {
        // SAFETY (*Bounds*): twice as many words were pinned.
        unsafe { self.staging.as_ptr().add(self.layout.words) }
    }

    /// What the host and a running kernel say to each other.
    fn said(&self) -> NonNull<Words> {
        // SAFETY (*Bounds*): they are behind the rest.
        unsafe { self.staging.add(2 * self.layout.words).cast() }
    }

    /// Lets somebody look whether the frame's launches are to end.
    fn look_after(&mut self, frame: &Frame) -> Result<()> {
        if let (Some(cancel), None) = (&frame.cancel, &self.watch) {
            // SAFETY (*Liveness*): the watch ends before the words go.
            self.watch = Some(unsafe { Watch::begin(cancel, &frame.done, self.said())? });
        }
        Ok(())
    }

    /// What the host changed since the last step: values, and other words by their place in the tables.
    pub fn changes(&mut self, frame: &Frame) -> Changes {
        let at = self.layout;
        let [values, locals, tapes] = &mut self.known;
        let mut words = changed(locals, &frame.scalars.locals, at.locals);
        words.extend(changed(tapes, &depths(frame), at.depth));
        Changes { values: changed(values, &frame.scalars.values, 0), words }
    }

    /// Lets the next step find these words in the tables. No step that was asked for before is still to be launched.
    pub fn set_words(&mut self, words: &[(usize, u64)]) -> Result<()> {
        words.iter().try_for_each(|(at, word)| self.set(*at, *word))
    }

    /// The parameter of a launch.
    fn parameter(&mut self, [partials, stage, runs]: [Address; 3]) -> Launch {
        let at = self.layout;
        let table = |words: usize| self.address + 8 * words as u64;
        let turn = (self.launches % 2) as usize;
        let launch = Launch {
            data: table(at.data),
            tape: table(at.tape),
            depth: table(at.depth),
            capacity: table(at.capacity),
            values: table(at.values),
            locals: table(at.locals),
            passes: table(at.passes),
            bounds: table(at.bounds),
            kept: table(at.kept),
            scalars: table(at.scalars),
            partials,
            stage,
            runs,
            shared: table(at.shared),
            said: self.said().as_ptr() as Address,
            meet: table(2 * turn),
            next: table(2 - 2 * turn),
            tables: self.address,
            words: at.tape as i64,
            resume: -1,
            staged: if std::mem::take(&mut self.staged) { self.staging.as_ptr() as Address } else { 0 },
            received: self.address,
            pairs: (at.words / 2) as i64,
            ..Launch::default()
        };
        self.launches += 1;
        self.busy = true;
        launch
    }

    /// Where a launch reports what it left, if the host wants to know.
    fn report(&mut self, wanted: Wanted) -> Address {
        self.reports = wanted == Wanted::Report;
        if self.reports { self.reported() as Address } else { 0 }
    }

    /// Tells the GPU what the host changed since the last launch; gives the parameter of the next one, which runs a
    /// segment with so many blocks.
    pub fn launch(
        &mut self,
        frame: &Frame,
        scratch: [Address; 3],
        resume: i64,
        wanted: Wanted,
        blocks: u32,
    ) -> Result<Launch> {
        self.grow_tapes(frame)?;
        let Changes { values, words } = self.changes(frame);
        self.set_words(&words)?;
        let (few, rest) = values.split_at(values.len().min(PATCHES));
        for (v, bits) in rest {
            self.set(self.layout.values + v, *bits)?;
        }
        if blocks > 1 {
            self.send()?;
        }
        self.look_after(frame)?;
        let report = self.report(wanted);
        let mut launch = Launch { report, resume, ..self.parameter(scratch) };
        launch.patches = few.len() as i32;
        for (k, (v, bits)) in few.iter().enumerate() {
            (launch.patched[k], launch.patch[k]) = (*v as i32, *bits);
        }
        Ok(launch)
    }

    /// The parameter of a launch that takes these steps.
    pub fn batch(
        &mut self,
        frame: &Frame,
        scratch: [Address; 3],
        steps: &[Step],
        wanted: Wanted,
    ) -> Result<Box<BatchedLaunch>> {
        self.grow_tapes(frame)?;
        self.look_after(frame)?;
        let report = self.report(wanted);
        let launch = Launch { report, ..self.parameter(scratch) };
        Ok(Box::new(BatchedLaunch::new(launch, steps)))
    }

    /// Where the addresses of the arrays are.
    pub fn data(&self) -> Address {
        self.address + 8 * self.layout.data as u64
    }

    /// Waits for the GPU and brings the frame up to date; gives what the threads shared, and the passes of the loops.
    pub fn fetch(&mut self, frame: &mut Frame) -> Result<(Shared, Vec<i64>)> {
        let at = self.layout;
        self.send()?;
        if !self.reports {
            // SAFETY (*Bounds*, *Liveness*): both sides have so many words; the wait follows.
            unsafe { self.gpu.fetch(self.address, self.reported().cast(), 8 * at.tape)? };
        }
        self.gpu.wait()?;
        // Its last look is at what the launch said last.
        self.watch = None;
        // SAFETY (*Bounds*, *Validity*): `Shared` is plain numbers, in as many words.
        let shared = unsafe { self.reported().add(at.shared).cast::<Shared>().read() };
        if shared.exchanged != 0 {
            for (places, tape) in self.tapes.iter_mut().zip(&mut frame.tapes) {
                places.held.clear();
                let count = places.count.min(tape.places.len());
                // SAFETY (*Bounds*, *Liveness*): the frame has as many places as were sent; the wait follows.
                unsafe { self.gpu.fetch(places.address, tape.places.as_mut_ptr().cast(), 8 * count)? };
            }
            self.gpu.wait()?;
            for (places, tape) in self.tapes.iter_mut().zip(&frame.tapes) {
                places.held.extend_from_slice(&tape.places[..places.count.min(tape.places.len())]);
            }
        }
        self.busy = false;
        // SAFETY (*Bounds*, *Exclusive access*): so many words came back, and the GPU has ended.
        let words = unsafe { std::slice::from_raw_parts(self.reported(), at.tape) };
        let table = |at: usize, length: usize| words[at..at + length].iter();
        for (view, address) in frame.arrays.iter_mut().zip(table(at.data, at.depth - at.data)) {
            view.address = *address as *mut u8;
        }
        for (tape, depth) in frame.tapes.iter_mut().zip(table(at.depth, at.values - at.depth)) {
            tape.depth = *depth as usize;
        }
        let [values, locals, _] = &mut self.known;
        merge(values, &mut frame.scalars.values, &words[at.values..at.locals]);
        merge(locals, &mut frame.scalars.locals, &words[at.locals..at.passes]);
        for (pair, words) in frame.scalars.bounds.iter_mut().zip(words[at.bounds..at.tape].chunks_exact(2)) {
            *pair = [words[0] as i64, words[1] as i64];
        }
        self.known[2] = depths(frame);
        Ok((shared, table(at.passes, at.bounds - at.passes).map(|pass| *pass as i64).collect()))
    }

    /// The tables for another frame: their tapes are empty.
    pub fn emptied(mut self) -> Tables {
        self.tapes.iter_mut().for_each(|places| places.count = 0);
        self
    }
}

/// Brings what the host has up to date, but for what it changed and has not sent yet.
fn merge(known: &mut [u64], host: &mut [u64], gpu: &[u64]) {
    for ((known, host), gpu) in known.iter_mut().zip(host).zip(gpu) {
        if host == known {
            *host = *gpu;
        }
        *known = *gpu;
    }
}

/// What changed, by its number from `at` on; it is known from now on.
fn changed(known: &mut [u64], now: &[u64], at: usize) -> Vec<(usize, u64)> {
    let mut changes = Vec::new();
    for (k, (known, now)) in known.iter_mut().zip(now).enumerate() {
        if std::mem::replace(known, *now) != *now {
            changes.push((at + k, *now));
        }
    }
    changes
}

/// How many places of each tape hold something.
fn depths(frame: &Frame) -> Vec<u64> {
    frame.tapes.iter().map(|tape| tape.depth as u64).collect()
}

impl Drop for Tables {
    fn drop(&mut self) {
        if self.busy {
            // What was sent from the staging has left it then; the error was told to who asked.
            let _ = self.gpu.wait();
        }
        self.watch = None;
        self.tapes
            .iter()
            .filter(|places| places.room > 0)
            .for_each(|places| self.gpu.release(places.address));
        self.gpu.release(self.address);
        self.gpu.unpin(self.staging);
    }
}

#[cfg(test)]
mod tests {
    use super::merge;

    #[test]
    fn what_the_host_changed_and_has_not_sent_is_kept() {
        let (mut known, mut host) = ([1, 2, 3], [1, 7, 3]);
        merge(&mut known, &mut host, &[4, 5, 3]);
        assert_eq!((known, host), ([4, 5, 3], [4, 7, 3]));
    }
}
