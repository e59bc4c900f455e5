//! Copies of boxes between a GPU and the host.

use std::ptr::null_mut;

use ebbtide_runtime::{Result, StridedBox};

use super::Gpu;
use crate::sys::{Address, BoxCopy, BoxSide, DEVICE, HOST};

impl Gpu {
    /// Copies a box from the device to bytes without gaps; they are there when the stream was waited for.
    ///
    /// # Safety
    ///
    /// *Bounds*: the box lies in memory of the device, `from` is its first byte, and `to` has room for its bytes; *Liveness* as
    /// for [`Gpu::send`].
    pub unsafe fn fetch_box(&self, from: Address, to: *mut u8, piece: &StridedBox) -> Result<()> {
        // SAFETY (*Bounds*, *Liveness*): by the caller's promise.
        unsafe { self.copy_box(piece, strided(from, piece), packed(to, piece)) }
    }

    /// Copies bytes without gaps to a box on the device.
    ///
    /// # Safety
    ///
    /// As for [`Gpu::fetch_box`].
    pub unsafe fn send_box(&self, from: *mut u8, to: Address, piece: &StridedBox) -> Result<()> {
        // SAFETY (*Bounds*, *Liveness*): by the caller's promise.
        unsafe { self.copy_box(piece, packed(from, piece), strided(to, piece)) }
    }

    unsafe fn copy_box(&self, piece: &StridedBox, from: BoxSide, to: BoxSide) -> Result<()> {
        if piece.bytes() == 0 {
            return Ok(());
        }
        self.enter()?;
        let copy = BoxCopy { from, to, extents: [piece.row, piece.counts[0], piece.counts[1]] };
        // SAFETY (*Bounds*, *Liveness*): by the caller's promise; the driver reads the description before it returns.
        let code = unsafe { (self.driver.cuMemcpy3DAsync_v2)(&copy, self.stream) };
        self.check(code, "a halo could not be copied between the GPU and the host")
    }
}

/// A box in memory of the device.
fn strided(start: Address, piece: &StridedBox) -> BoxSide {
    let nothing = null_mut();
    let [row, plane] = piece.strides;
    BoxSide {
        first: [0; 4],
        kind: DEVICE,
        host: nothing,
        device: start,
        array: nothing,
        reserved: nothing,
        strides: [row, plane],
    }
}

/// The same box without gaps, in memory of the host.
fn packed(start: *mut u8, piece: &StridedBox) -> BoxSide {
    let nothing = null_mut();
    let (host, strides) = (start.cast(), [piece.row, piece.counts[0]]);
    BoxSide { first: [0; 4], kind: HOST, host, device: 0, array: nothing, reserved: nothing, strides }
}
