//! Exchanges of halos: boxes of arrays travel through pinned memory, the arrays stay on the GPU.

use std::ptr::NonNull;
use std::sync::{Arc, Mutex, PoisonError};

use ebbtide_ir::parts::{Collective, is_part};
use ebbtide_ir::{HostArg, LibraryCall, Program};
use ebbtide_runtime::{Frame, Resident, Result, StridedBox, View, lend};

use crate::gpu::{Gpu, failure};
use crate::sys::Address;

/// Is this operation an exchange between parts?
pub(super) fn is_exchange(program: &Program, call: &LibraryCall) -> bool {
    let name = program.operation(call).and_then(|operation| Collective::named(&operation.name));
    matches!(name, Some(Collective::Exchange | Collective::ExchangeAdd)) && is_part()
}

/// Pinned memory that exchanges leave for the next ones.
#[derive(Clone, Default)]
pub(super) struct Spare(Arc<Mutex<Vec<Staging>>>);

/// Runs an exchange on arrays that stay on the GPU. Everything that was asked of the GPU before has ended.
pub(super) fn exchange(
    gpu: &Arc<Gpu>,
    spare: &Spare,
    program: &Program,
    call: &LibraryCall,
    frame: &Frame,
) -> std::result::Result<(), String> {
    let ids: Vec<_> = call.arguments.iter().filter_map(|bound| bound.array()).collect();
    let views: Vec<View> = ids.iter().map(|array| frame.arrays[array.index()]).collect();
    let left = spare.0.lock().unwrap_or_else(PoisonError::into_inner).pop();
    let staging = Some(left.unwrap_or_else(|| Staging { gpu: gpu.clone(), pinned: None, busy: false }));
    let arrays = OnGpu { gpu: gpu.clone(), views: views.clone(), staging, home: spare.clone() };
    // What the operation needs to know of them: all but their elements.
    let mut args: Vec<HostArg<'_>> = Vec::with_capacity(ids.len());
    for (array, view) in ids.iter().zip(&views) {
        let decl = program.array(*array);
        args.push(HostArg::Write { ty: decl.ty, shape: &view.shape[..decl.rank], bytes: &mut [] });
    }
    lend(Box::new(arrays), || ebbtide_ir::parts::call_operation(program, call, &mut args))
}

/// The arrays of an exchange.
struct OnGpu {
    gpu: Arc<Gpu>,
    views: Vec<View>,
    /// There until it is given back.
    staging: Option<Staging>,
    home: Spare,
}

impl OnGpu {
    /// The pinned memory, free, and the address of each box on the GPU; an error for a box that lies outside of its array.
    fn place(&mut self, boxes: &[StridedBox]) -> Result<(NonNull<u8>, Vec<Address>)> {
        let inside = |piece: &StridedBox| {
            let view = self.views.get(piece.array)?;
            let end = piece.rows().last().map_or(0, |row| row + piece.row);
            (end <= view.bytes).then_some(view.address as Address + piece.start as Address)
        };
        let addresses = boxes.iter().map(inside).collect::<Option<Vec<Address>>>();
        let outside = || failure("a box of an exchange lies outside of its array".to_string());
        let addresses = addresses.ok_or_else(outside)?;
        let staging = self.staging.as_mut().ok_or_else(outside)?;
        let bytes = boxes.iter().map(StridedBox::bytes).sum();
        Ok((staging.room(bytes)?, addresses))
    }
}

impl Resident for OnGpu {
    fn read(&mut self, boxes: &[StridedBox]) -> std::result::Result<Vec<u8>, String> {
        let (pinned, addresses) = self.place(boxes).map_err(|error| error.to_string())?;
        let mut at = 0;
        for (piece, address) in boxes.iter().zip(addresses) {
            // SAFETY (*Bounds*): `place` has looked at both sides; (*Liveness*): the wait follows.
            let asked = unsafe { self.gpu.fetch_box(address, pinned.as_ptr().add(at), piece) };
            asked.map_err(|error| error.to_string())?;
            at += piece.bytes();
        }
        self.gpu.wait().map_err(|error| error.to_string())?;
        // SAFETY (*Bounds*, *Exclusive access*): there is room for `at` bytes, and no copy is under way.
        Ok(unsafe { std::slice::from_raw_parts(pinned.as_ptr(), at) }.to_vec())
    }

    fn write(&mut self, boxes: &[StridedBox], bytes: &[u8]) -> std::result::Result<(), String> {
        if boxes.iter().map(StridedBox::bytes).sum::<usize>() != bytes.len() {
            return Err("the boxes of an exchange have other sizes".to_string());
        }
        let (pinned, addresses) = self.place(boxes).map_err(|error| error.to_string())?;
        // SAFETY (*Bounds*, *Exclusive access*): there is room for as many bytes, and no copy is under way.
        unsafe { pinned.as_ptr().copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
        if let Some(staging) = &mut self.staging {
            staging.busy = true;
        }
        let mut at = 0;
        for (piece, address) in boxes.iter().zip(addresses) {
            // SAFETY (*Bounds*): `place` has looked at both sides; (*Liveness*): the memory is busy until it is waited for.
            let asked = unsafe { self.gpu.send_box(pinned.as_ptr().add(at), address, piece) };
            asked.map_err(|error| error.to_string())?;
            at += piece.bytes();
        }
        Ok(())
    }
}

impl Drop for OnGpu {
    fn drop(&mut self) {
        self.home.0.lock().unwrap_or_else(PoisonError::into_inner).extend(self.staging.take());
    }
}

/// Pinned memory through which boxes travel.
struct Staging {
    gpu: Arc<Gpu>,
    /// Where it is, and how many words it has.
    pinned: Option<(NonNull<u64>, usize)>,
    /// May copies from it be under way?
    busy: bool,
}

// SAFETY (*Exclusive access*): it owns its memory alone.
unsafe impl Send for Staging {}

impl Staging {
    /// Room for so many bytes that no copy uses.
    fn room(&mut self, bytes: usize) -> Result<NonNull<u8>> {
        if self.busy {
            self.gpu.wait()?;
            self.busy = false;
        }
        let words = bytes.div_ceil(8).max(1);
        match self.pinned {
            Some((place, size)) if size >= words => Ok(place.cast()),
            _ => {
                self.free();
                let place = self.gpu.pinned(words)?;
                self.pinned = Some((place, words));
                Ok(place.cast())
            }
        }
    }

    fn free(&mut self) {
        if let Some((place, _)) = self.pinned.take() {
            self.gpu.unpin(place);
        }
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        // Where the wait fails, the GPU is lost, and nothing is copied any more.
        if self.busy && self.gpu.wait().is_err() {
            tracing::warn!("a GPU was lost with halos on their way");
        }
        self.free();
    }
}
