//! The memory of a GPU, as the runtime uses it.

use std::ptr::NonNull;
use std::sync::Arc;

use ebbtide_runtime::{Carried, Error, Memory, Piece, Result, Shared};

use super::{DLPACK_CUDA, Gpu, RESERVED, USED};
use crate::sys::Address;

// SAFETY (*Allocation*): the driver's allocations, at least as large as asked for, zeroed on the stream before anything else
// uses them; (*Copies*, *Ends*): on one stream, in the order in which they are asked for,
// or on that of copies; both are waited for.
unsafe impl Memory for Gpu {
    fn free_bytes(&self) -> Option<u64> {
        self.enter().ok()?;
        let (mut free, mut total) = (0, 0);
        let (mut reserved, mut used) = (0u64, 0u64);
        // SAFETY (*Driver's contract*): every pointer is to a variable of the type that the documentation names.
        let codes = unsafe {
            [
                (self.driver.cuMemGetInfo_v2)(&mut free, &mut total),
                (self.driver.cuMemPoolGetAttribute)(self.pool, RESERVED, (&raw mut reserved).cast()),
                (self.driver.cuMemPoolGetAttribute)(self.pool, USED, (&raw mut used).cast()),
            ]
        };
        // What the pool keeps for the process can be had too.
        (codes == [0; 3]).then_some(free as u64 + reserved.saturating_sub(used))
    }

    fn shared(&self) -> Option<Shared> {
        Some(Shared { kind: DLPACK_CUDA, ordinal: self.ordinal, stream: self.stream as u64 })
    }

    fn finish(&self) -> Result<()> {
        self.wait()?;
        // SAFETY (*Liveness*): the stream lives as long as the process.
        self.check(unsafe { (self.driver.cuStreamSynchronize)(self.copies) }, "a copy failed")
    }

    fn finish_of_all(&self) -> Result<()> {
        self.enter()?;
        // SAFETY (*Liveness*): the context is retained as long as the process lives.
        self.check(unsafe { (self.driver.cuCtxSynchronize)() }, "a kernel or a copy failed")
    }

    fn allocate(&self, bytes: usize) -> Result<NonNull<u8>> {
        let address = self.reserve(bytes)?;
        // SAFETY (*Bounds*): as many bytes were reserved.
        unsafe { self.zero(address, bytes) }.inspect_err(|_| self.release(address))?;
        NonNull::new(address as *mut u8).ok_or(Error::OutOfMemory { bytes })
    }

    unsafe fn free(&self, address: NonNull<u8>, _bytes: usize) {
        self.release(address.as_ptr() as Address);
    }

    unsafe fn copy(&self, from: *const u8, to: *mut u8, bytes: usize) -> Result<()> {
        // SAFETY (*Bounds*, *Liveness*): by the caller's promise.
        unsafe { self.copy_within(from as Address, to as Address, bytes) }
    }

    unsafe fn upload(&self, from: &[u8], to: *mut u8) -> Result<()> {
        // SAFETY (*Bounds*, *Liveness*): by the caller's promise; the driver has copied pageable memory when it returns, and
        // memory that it reads later is waited for.
        unsafe { self.send(from.as_ptr(), to as Address, from.len())? };
        if self.knows(from.as_ptr()) { self.wait() } else { Ok(()) }
    }

    unsafe fn download(&self, from: *const u8, to: &mut [u8]) -> Result<()> {
        // SAFETY (*Bounds*, *Liveness*): by the caller's promise; the bytes are borrowed until they were waited for.
        unsafe { self.fetch(from as Address, to.as_mut_ptr(), to.len())? };
        self.wait()
    }

    fn pin(&self, bytes: usize) -> Result<NonNull<u8>> {
        self.pinned(bytes.div_ceil(8)).map(NonNull::cast)
    }

    unsafe fn unpin(&self, address: NonNull<u8>, _bytes: usize) {
        Gpu::unpin(self, address.cast());
    }

    unsafe fn carry_out(&self, pieces: &[Piece]) -> Result<Arc<dyn Carried>> {
        self.carry(pieces, |(from, to, bytes)| {
            // SAFETY (*Bounds*, *Liveness*): by the caller's promise.
            unsafe { (self.driver.cuMemcpyDtoHAsync_v2)(to.cast(), *from as Address, *bytes, self.copies) }
        })
    }

    unsafe fn carry_in(&self, pieces: &[Piece]) -> Result<Arc<dyn Carried>> {
        self.carry(pieces, |(from, to, bytes)| {
            // SAFETY (*Bounds*, *Liveness*): by the caller's promise.
            unsafe { (self.driver.cuMemcpyHtoDAsync_v2)(*to as Address, from.cast(), *bytes, self.copies) }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[ignore = "needs CUDA"]
    fn what_is_uploaded_from_pinned_memory_may_change_at_once_on_cuda() {
        let gpu = Gpu::of_process().expect("there is a GPU");
        let words = 8 << 20;
        let pinned = gpu.pinned(words).expect("there is memory");
        let to = gpu.allocate(8 * words).expect("there is memory");
        // SAFETY (*Bounds*, *Exclusive access*): so many words were pinned for this test alone.
        let host = unsafe { std::slice::from_raw_parts_mut(pinned.as_ptr().cast::<u8>(), 8 * words) };
        let mut back = vec![0u8; 8 * words];
        for byte in 1..20 {
            host.fill(byte);
            // SAFETY (*Bounds*): both sides have so many bytes.
            unsafe { gpu.upload(host, to.as_ptr()) }.expect("it is sent");
            host.fill(0xff);
            // SAFETY (*Bounds*): as above.
            unsafe { gpu.download(to.as_ptr(), &mut back) }.expect("it is fetched");
            assert!(back.iter().all(|found| *found == byte), "{byte}");
        }
        // SAFETY (*Liveness*): the address came from `allocate`.
        unsafe { gpu.free(to, 8 * words) };
        gpu.unpin(pinned);
    }
}
