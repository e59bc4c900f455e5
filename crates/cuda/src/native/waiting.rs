//! Steps that wait for each other: segments for which one block is enough, and copies between small arrays and slots.

use std::ffi::c_void;

use ebbtide_ir::ArrayId;
use ebbtide_runtime::{Event, Frame, Result};

use super::{Aside, Native, lost};
use crate::batched_launch::{EXTENTS, SMALL_COPY, Step, Way};
use crate::compiler::{Architecture, Kernels, Places};
use crate::gpu::{Grid, Kernel, Meeting, Module};
use crate::sys::Address;
use crate::tables::Wanted;

/// Copies between arrays and slots; `eb_copies` of the prelude.
#[repr(C)]
struct Copies {
    data: Address,
    back: i64,
    array: [i64; COPIES],
    slot: [Address; COPIES],
    bytes: [i64; COPIES],
}

/// `EB_COPIES` of the prelude.
const COPIES: usize = 16;

impl Native {
    /// The kernel that runs one segment after the other; none where the compiler refuses to make one of all of them.
    fn batch(&self) -> Option<&Kernel> {
        let made = self.batch.get_or_init(|| {
            let compiled = self.compile_batch();
            if let Err(error) = &compiled {
                tracing::warn!("small segments are launched one by one: {error}");
            }
            compiled.ok()
        });
        made.as_ref().map(|(_, kernel)| kernel)
    }

    fn compile_batch(&self) -> Result<(Module, Kernel)> {
        let module = self.module(&Architecture { kernels: Kernels::Batch, ..self.target.clone() })?;
        let room = self.domains.iter().any(|segment| segment.whole_blocks);
        let kernel = self.kernel(&module, "eb_run_batch", self.batch_threads(), room)?;
        Ok((module, kernel))
    }

    /// Asks for a segment: launches it, or lets it wait where one block is enough for it.
    pub(super) fn ask(&self, segment: usize, frame: &mut Frame) -> Result<()> {
        let (frame, mut aside) = self.tables(frame, None)?;
        let asked = self.let_wait(segment, frame, &mut aside).and_then(|waits| match waits {
            true => Ok(()),
            false => self.launch(segment, frame, &mut aside, -1, Wanted::Nothing),
        });
        frame.aside = Some(aside);
        asked
    }

    /// Lets a segment wait where one block is enough for it; says whether it does.
    fn let_wait(&self, segment: usize, frame: &Frame, aside: &mut Aside) -> Result<bool> {
        let kernel = &self.loaded(aside.places)?.kernels[segment];
        let size = &aside.sizes[segment];
        let grid = *aside.grids[segment].get_or_insert_with(|| self.grid(kernel, segment, size));
        let small = grid.blocks == 1 && grid.threads <= self.batch_threads();
        if !small || !self.may_wait(aside) || self.batch().is_none() {
            return Ok(false);
        }
        let Some(tables) = &mut aside.tables else { return Err(lost()) };
        let changes = tables.changes(frame);
        if !changes.words.is_empty() {
            self.launch_waiting(frame, aside, Wanted::Nothing)?;
            aside.tables.as_mut().map_or(Ok(()), |tables| tables.set_words(&changes.words))?;
        }
        for step in Step::segment(segment, &changes.values) {
            self.wait_with(step, grid.threads, frame, aside)?;
        }
        Ok(true)
    }

    /// May steps wait to be launched together? Somebody who asks for blocks wants each segment by itself.
    fn may_wait(&self, aside: &Aside) -> bool {
        self.blocks.is_none()
            && aside.places == Places::Narrow
            && self.program.arrays.len() * self.program.extents_per_array() <= EXTENTS
    }

    /// The most threads of the block that takes steps: few, since all of its segments need registers.
    fn batch_threads(&self) -> u32 {
        self.target.threads / 4
    }

    fn wait_with(&self, step: Step, threads: u32, frame: &Frame, aside: &mut Aside) -> Result<()> {
        aside.waiting.push(step, threads);
        if aside.waiting.is_full() { self.launch_waiting(frame, aside, Wanted::Nothing) } else { Ok(()) }
    }

    /// Launches the steps that wait.
    pub(super) fn launch_waiting(&self, frame: &Frame, aside: &mut Aside, wanted: Wanted) -> Result<()> {
        let Some((steps, threads)) = aside.waiting.take() else { return Ok(()) };
        let Some(kernel) = self.batch() else { return Err(lost()) };
        let scratch = self.scratch(aside);
        let Some(tables) = &mut aside.tables else { return Err(lost()) };
        let batch = tables.batch(frame, scratch, &steps, wanted)?;
        let parameters: [*const c_void; 2] = [(&raw const *batch).cast(), tables.extents.as_ptr().cast()];
        self.counters.add(Event::Launch, 1);
        // SAFETY (*Bounds*, *Exclusive access*): as for one segment; slots have the sizes of their arrays and live until
        // what was asked for is on its way, as the runtime sees to.
        unsafe { self.gpu.launch(kernel, Grid::of(1, threads), &parameters) }
    }

    /// Copies arrays to slots, or back.
    pub(super) fn copies(
        &self,
        frame: &mut Frame,
        arrays: &[ArrayId],
        slots: &[*mut u8],
        way: Way,
    ) -> Result<()> {
        let (frame, mut aside) = self.tables(frame, None)?;
        let bytes = |array: &ArrayId| frame.arrays[array.index()].bytes;
        let small = arrays.iter().map(bytes).all(|bytes| bytes <= SMALL_COPY);
        // For copies alone nothing is compiled.
        let among_segments = self.batch.get().is_some_and(Option::is_some);
        let copied = if self.may_wait(&aside) && small && among_segments {
            arrays.iter().zip(slots).try_for_each(|(array, slot)| {
                let step = Step::copy(way, array.index(), *slot as Address, bytes(array));
                let threads = (bytes(array).div_ceil(16) as u32).next_power_of_two();
                self.wait_with(step, threads.min(self.batch_threads()), frame, &mut aside)
            })
        } else {
            self.launch_copies(frame, &mut aside, arrays, slots, way)
        };
        frame.aside = Some(aside);
        copied
    }

    /// The same by kernels of their own, after all that waits.
    fn launch_copies(
        &self,
        frame: &Frame,
        aside: &mut Aside,
        arrays: &[ArrayId],
        slots: &[*mut u8],
        way: Way,
    ) -> Result<()> {
        self.launch_waiting(frame, aside, Wanted::Nothing)?;
        let Some(tables) = &mut aside.tables else { return Err(lost()) };
        tables.send()?;
        let copier = &self.loaded(aside.places)?.copier;
        for (arrays, slots) in arrays.chunks(COPIES).zip(slots.chunks(COPIES)) {
            let mut copies = Copies {
                data: tables.data(),
                back: (way == Way::Load).into(),
                array: [0; COPIES],
                slot: [0; COPIES],
                bytes: [0; COPIES],
            };
            for (k, (array, slot)) in arrays.iter().zip(slots).enumerate() {
                copies.array[k] = array.index() as i64;
                copies.slot[k] = *slot as Address;
                copies.bytes[k] = frame.arrays[array.index()].bytes as i64;
            }
            let largest = copies.bytes.iter().copied().max().unwrap_or(0) as u64;
            let threads = self.target.threads;
            let wanted = largest.div_ceil(16 * u64::from(threads)).max(1);
            let blocks = u32::try_from(wanted).map_or(copier.most, |wanted| wanted.min(copier.most)).max(1);
            self.counters.add(Event::Launch, 1);
            let parameters = [(&raw const copies).cast()];
            // SAFETY (*Bounds*): slots have the sizes of their arrays; the addresses are the tables'.
            unsafe {
                self.gpu.launch(
                    copier,
                    Grid { blocks, rows: arrays.len() as u32, threads, meeting: Meeting::Nowhere },
                    &parameters,
                )?
            };
        }
        Ok(())
    }
}
