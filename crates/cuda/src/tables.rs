//! The tables of a frame as the kernels of a launch see them, in the GPU's memory.
//!
//! They are sent once, when the first segment is asked for; from then on the GPU's are the true ones. The host says with
//! each launch what it changed since, and fetches them when it must know.

use std::mem::offset_of;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use ebbtide_ir::Program;
use ebbtide_runtime::{Frame, Result};

use crate::gpu::Gpu;
use crate::sys::Address;

/// As many values can be changed with one launch; `EB_PATCHES` of the prelude.
pub const PATCHES: usize = 6;

/// What a launch is given; `eb_launch` of the prelude.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct Launch {
    pub data: Address,
    pub tape: Address,
    pub depth: Address,
    pub capacity: Address,
    pub values: Address,
    pub locals: Address,
    pub passes: Address,
    pub bounds: Address,
    pub kept: Address,
    pub scalars: Address,
    pub partials: Address,
    pub stage: Address,
    pub shared: Address,
    pub meet: Address,
    pub next: Address,
    pub tables: Address,
    pub report: Address,
    pub words: i64,
    pub resume: i64,
    pub patches: i32,
    pub patched: [i32; PATCHES],
    pub patch: [u64; PATCHES],
}

/// What all threads of a launch share; `eb_shared` of the prelude.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Shared {
    pub fault: i32,
    pub access: i32,
    pub dimension: i64,
    pub index: i64,
    pub extent: i64,
    pub ended: i32,
    pub outcome: i32,
    pub region: i64,
    pub reason: i64,
    pub exchanged: i32,
    pub stop: i32,
    pub done: i64,
}

/// The words of [`Shared`].
const SHARED: usize = size_of::<Shared>() / 8;
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
            words: table(0),
        }
    }
}

/// The table of one array's tape.
#[derive(Clone, Copy, Debug, Default)]
struct Places {
    address: Address,
    /// How many addresses it has room for.
    room: usize,
    /// How many it holds.
    count: usize,
}

/// The tables of one frame.
pub struct Tables {
    gpu: Arc<Gpu>,
    layout: Layout,
    /// On the GPU.
    address: Address,
    /// What is sent, and behind it as much room for what comes back.
    staging: NonNull<u64>,
    tapes: Vec<Places>,
    /// What the host knows of the GPU's values, locals and depths of tapes.
    known: [Vec<u64>; 3],
    /// The extents of all arrays, four each: a parameter of every launch.
    pub extents: Vec<i64>,
    /// How many launches there were: they take turns at the counters.
    launches: u64,
    /// May the GPU be at work with them?
    pub busy: bool,
    /// Does the last launch report what changed?
    reports: bool,
}

/// What the host wants of a launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// To know how it ended, and what it left in the tables: it will wait.
    Report,
    /// Nothing yet.
    Nothing,
}

// SAFETY: the pinned memory is owned, and used through `&mut self` alone.
unsafe impl Send for Tables {}

impl Tables {
    /// Tables for frames of this layout, holding nothing yet.
    pub fn new(gpu: &Arc<Gpu>, layout: Layout, arrays: usize) -> Result<Tables> {
        let staging = gpu.pinned(2 * layout.words)?;
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
            busy: false,
            reports: false,
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

    /// Sends all that a frame says. The GPU is not at work with the tables.
    pub fn send(&mut self, frame: &Frame, passes: &[i64]) -> Result<()> {
        let at = self.layout;
        self.launches = 0;
        self.extents = frame.arrays.iter().flat_map(|view| view.shape).collect();
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
            let Places { address, count, .. } = self.tapes[array];
            self.put(at.tape + array, [address]);
            self.put(at.capacity + array, [count as u64]);
        }
        self.busy = true;
        // SAFETY (*Bounds*, *Liveness*): both sides have so many words; the staging is not touched before a wait.
        unsafe { self.gpu.send(self.staging.as_ptr().cast(), self.address, 8 * at.words) }
    }

    /// Makes the GPU's table of a tape as long as the frame's; says whether it changed.
    fn grow(&mut self, frame: &Frame, array: usize) -> Result<bool> {
        let Some(tape) = frame.tapes.get(array) else { return Ok(false) };
        let mut table = self.tapes[array];
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
            table = Places { address, room, count: table.count };
            self.tapes[array] = table;
        }
        let new = &tape.places[table.count..];
        // SAFETY (*Bounds*): there is room for them; pageable memory has been copied when the driver returns.
        unsafe { self.gpu.send(new.as_ptr().cast(), table.address + 8 * table.count as u64, 8 * new.len())? };
        self.tapes[array].count = wanted;
        Ok(true)
    }

    /// Sends one word.
    fn send_word(&self, at: usize, word: u64) -> Result<()> {
        // SAFETY (*Bounds*): the word is one of the tables'; pageable memory has been copied when the driver returns.
        unsafe { self.gpu.send((&raw const word).cast(), self.address + 8 * at as u64, 8) }
    }

    /// Where what comes back is put.
    fn reported(&self) -> *mut u64 {
        // SAFETY (*Bounds*): twice as many words were pinned.
        unsafe { self.staging.as_ptr().add(self.layout.words) }
    }

    /// Tells the GPU what the host changed since the last launch; gives the parameter of the next one.
    pub fn launch(
        &mut self,
        frame: &Frame,
        [partials, stage]: [Address; 2],
        resume: i64,
        wanted: Wanted,
    ) -> Result<Launch> {
        let at = self.layout;
        for array in 0..self.tapes.len() {
            if self.grow(frame, array)? {
                self.send_word(at.tape + array, self.tapes[array].address)?;
                self.send_word(at.capacity + array, self.tapes[array].count as u64)?;
            }
        }
        let table = |words: usize| self.address + 8 * words as u64;
        let turn = (self.launches % 2) as usize;
        let mut launch = Launch {
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
            shared: table(at.shared),
            meet: table(2 * turn),
            next: table(2 - 2 * turn),
            tables: self.address,
            report: if wanted == Wanted::Report { self.reported() as Address } else { 0 },
            words: at.tape as i64,
            resume,
            ..Launch::default()
        };
        let changed = |known: &[u64], now: &[u64]| -> Vec<usize> {
            known.iter().zip(now).enumerate().filter(|(_, (k, n))| k != n).map(|(v, _)| v).collect()
        };
        for (k, v) in changed(&self.known[0], &frame.scalars.values).into_iter().enumerate() {
            let bits = frame.scalars.values[v];
            self.known[0][v] = bits;
            if k < PATCHES {
                (launch.patched[k], launch.patch[k], launch.patches) = (v as i32, bits, k as i32 + 1);
            } else {
                self.send_word(at.values + v, bits)?;
            }
        }
        for l in changed(&self.known[1], &frame.scalars.locals) {
            self.known[1][l] = frame.scalars.locals[l];
            self.send_word(at.locals + l, frame.scalars.locals[l])?;
        }
        let now = depths(frame);
        for a in changed(&self.known[2], &now) {
            self.known[2][a] = now[a];
            self.send_word(at.depth + a, now[a])?;
        }
        self.launches += 1;
        self.busy = true;
        self.reports = wanted == Wanted::Report;
        Ok(launch)
    }

    /// Where the addresses of the arrays are.
    pub fn data(&self) -> Address {
        self.address + 8 * self.layout.data as u64
    }

    /// Waits for the GPU and brings the frame up to date; gives what the threads shared, and the passes of the loops.
    pub fn fetch(&mut self, frame: &mut Frame) -> Result<(Shared, Vec<i64>)> {
        let at = self.layout;
        if !self.reports {
            // SAFETY (*Bounds*, *Liveness*): both sides have so many words; the wait follows.
            unsafe { self.gpu.fetch(self.address, self.reported().cast(), 8 * at.tape)? };
        }
        match &frame.cancel {
            Some(cancel) => {
                let words = [offset_of!(Shared, stop), offset_of!(Shared, done)];
                let [stop, done] =
                    words.map(|word| self.address + (8 * self.layout.shared + word) as Address);
                self.gpu.watch(cancel, stop, &frame.done, done)?
            }
            None => self.gpu.wait()?,
        }
        // SAFETY: `Shared` is plain numbers, in as many words.
        let shared = unsafe { self.reported().add(at.shared).cast::<Shared>().read() };
        frame.done.store(shared.done, Ordering::Relaxed);
        if shared.exchanged != 0 {
            for (places, tape) in self.tapes.iter().zip(&mut frame.tapes) {
                let count = places.count.min(tape.places.len());
                // SAFETY (*Bounds*, *Liveness*): the frame has as many places as were sent; the wait follows.
                unsafe { self.gpu.fetch(places.address, tape.places.as_mut_ptr().cast(), 8 * count)? };
            }
            self.gpu.wait()?;
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
        self.tapes
            .iter()
            .filter(|places| places.room > 0)
            .for_each(|places| self.gpu.release(places.address));
        self.gpu.release(self.address);
        self.gpu.unpin(self.staging);
    }
}

const _: () = assert!(size_of::<Shared>() == 72, "the prelude declares as many bytes");
const _: () = assert!(size_of::<Launch>() == 232, "the prelude declares as many bytes");

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
