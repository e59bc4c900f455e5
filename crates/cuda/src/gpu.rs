//! One GPU: its context, its streams, its memory.

mod async_copies;

use std::ffi::{CStr, c_int, c_uint, c_void};
use std::ptr::{NonNull, null_mut};
use std::sync::Arc;

use ebbtide_runtime::{Carried, Error, Memory, Piece, Result, Shared, StridedBox};

use crate::ordinal::ordinal;
use crate::sys::{Address, BoxCopy, BoxSide, DEVICE, Driver, HOST, Handle, driver};

/// A GPU. All that is asked of it goes to one stream, so that it happens in order; but copies that travel to and from the
/// host beside the computation have a stream of their own.
pub struct Gpu {
    driver: &'static Driver,
    context: Handle,
    stream: Handle,
    /// For copies beside the computation.
    copies: Handle,
    pool: Handle,
    /// Its number among those that the process sees.
    ordinal: c_int,
    /// What it calls itself.
    pub name: String,
    /// Major and minor compute capability.
    pub capability: (i32, i32),
    /// The number of its multiprocessors.
    pub multiprocessors: u32,
    /// The bytes of its memory.
    pub bytes: u64,
}

// SAFETY (*Driver's contract*): the driver's functions may be called from any thread that has set the context, which `enter` does.
unsafe impl Send for Gpu {}
// SAFETY (*Driver's contract*): as above.
unsafe impl Sync for Gpu {}

impl std::fmt::Debug for Gpu {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Gpu({})", self.name)
    }
}

/// The attributes of a device that are asked for, by their number in the driver's interface.
const MULTIPROCESSORS: c_int = 16;
const CAPABILITY_MAJOR: c_int = 75;
const CAPABILITY_MINOR: c_int = 76;
const COOPERATIVE_LAUNCH: c_int = 95;
const MEMORY_POOLS: c_int = 115;
/// Freed memory up to so many bytes stays with the process.
const RELEASE_THRESHOLD: c_int = 4;
/// What stays with the process, and what of it is in use.
const RESERVED: c_int = 5;
const USED: c_int = 7;
/// The attribute of an address that says which memory it is in.
const MEMORY_TYPE: c_int = 2;
/// A stream that does not wait for the legacy default stream.
const NON_BLOCKING: u32 = 1;

/// What DLPack calls memory of an NVIDIA GPU.
const DLPACK_CUDA: i32 = 2;

/// The driver's codes for memory that could not be had, and for what has not ended yet.
const OUT_OF_MEMORY: c_int = 2;
const NOT_READY: c_int = 600;

impl Gpu {
    /// The GPU of this process: the first one, or that of its rank; why not, where there is none that can be used.
    pub fn of_process() -> std::result::Result<Gpu, String> {
        let driver = driver()?;
        let fine = |code: c_int, what: &str| match code {
            0 => Ok(()),
            code => Err(format!("{what}: {}", describe(driver, code))),
        };
        // SAFETY (*Driver's contract*): every pointer is to a variable of the type that the documentation names.
        unsafe {
            fine((driver.cuInit)(0), "the NVIDIA driver could not be started")?;
            let mut count = 0;
            fine((driver.cuDeviceGetCount)(&mut count), "the GPUs could not be counted")?;
            if count == 0 {
                return Err("there is an NVIDIA driver, but no GPU".to_string());
            }
            let (mut device, mut context) = (0, null_mut());
            let (mut stream, mut copies) = (null_mut(), null_mut());
            let number = ordinal(|name| std::env::var(name).ok(), count)?;
            fine((driver.cuDeviceGet)(&mut device, number), "the GPU could not be asked for")?;
            let attribute = |attribute| {
                let mut value = 0;
                fine(
                    (driver.cuDeviceGetAttribute)(&mut value, attribute, device),
                    "the GPU does not say what it is",
                )?;
                Ok::<c_int, String>(value)
            };
            if attribute(COOPERATIVE_LAUNCH)? == 0 || attribute(MEMORY_POOLS)? == 0 {
                return Err(
                    "the GPU is too old: it has no cooperative launches or no memory pools".to_string()
                );
            }
            let mut name = [0; 128];
            fine((driver.cuDeviceGetName)(name.as_mut_ptr(), 127, device), "the GPU does not say its name")?;
            let mut bytes = 0;
            fine((driver.cuDeviceTotalMem_v2)(&mut bytes, device), "the GPU does not say its memory")?;
            fine((driver.cuDevicePrimaryCtxRetain)(&mut context, device), "the GPU could not be taken")?;
            fine((driver.cuCtxSetCurrent)(context), "the GPU could not be taken")?;
            fine((driver.cuStreamCreate)(&mut stream, NON_BLOCKING), "no stream could be made")?;
            fine((driver.cuStreamCreate)(&mut copies, NON_BLOCKING), "no stream could be made")?;
            let (mut pool, mut all) = (null_mut(), u64::MAX);
            fine((driver.cuDeviceGetDefaultMemPool)(&mut pool, device), "the GPU has no memory pool")?;
            let all: *mut c_void = (&raw mut all).cast();
            fine(
                (driver.cuMemPoolSetAttribute)(pool, RELEASE_THRESHOLD, all),
                "the memory pool could not be set up",
            )?;
            Ok(Gpu {
                driver,
                context,
                stream,
                copies,
                pool,
                ordinal: number,
                name: CStr::from_ptr(name.as_ptr()).to_string_lossy().to_string(),
                capability: (attribute(CAPABILITY_MAJOR)?, attribute(CAPABILITY_MINOR)?),
                multiprocessors: attribute(MULTIPROCESSORS)?.max(1) as u32,
                bytes: bytes as u64,
            })
        }
    }

    /// Turns a code of the driver into an error.
    fn check(&self, code: c_int, what: &str) -> Result<()> {
        match code {
            0 => Ok(()),
            code => Err(failure(format!("{what}: {}", describe(self.driver, code)))),
        }
    }

    /// Makes the context that of this thread.
    fn enter(&self) -> Result<()> {
        // SAFETY (*Liveness*): the context is retained as long as the process lives.
        self.check(unsafe { (self.driver.cuCtxSetCurrent)(self.context) }, "the GPU could not be taken")
    }

    /// Waits for all that was asked for.
    pub fn wait(&self) -> Result<()> {
        self.enter()?;
        // SAFETY (*Liveness*): the stream lives as long as the process.
        let code = unsafe { (self.driver.cuStreamSynchronize)(self.stream) };
        self.check(code, "a kernel or a copy failed")
    }

    /// Memory with anything in it.
    pub fn reserve(&self, bytes: usize) -> Result<Address> {
        self.enter()?;
        let mut address = 0;
        // Whole words: single bytes are taken through the word that they are in.
        let whole = bytes.max(1).checked_next_multiple_of(16).unwrap_or(bytes);
        // SAFETY (*Driver's contract*): the driver writes the address.
        let code = unsafe { (self.driver.cuMemAllocAsync)(&mut address, whole, self.stream) };
        if code == OUT_OF_MEMORY {
            return Err(Error::OutOfMemory { bytes });
        }
        self.check(code, "memory could not be had")?;
        Ok(address)
    }

    /// Gives memory back that [`Gpu::reserve`] gave, after all that was asked for.
    pub fn release(&self, address: Address) {
        let freed = self.enter().and_then(|()| {
            // SAFETY (*Liveness*): the address came from `reserve` and is given back once.
            self.check(
                unsafe { (self.driver.cuMemFreeAsync)(address, self.stream) },
                "memory could not be given back",
            )
        });
        if let Err(error) = freed {
            tracing::warn!("{error}");
        }
    }

    /// Zeroes memory.
    ///
    /// # Safety
    ///
    /// *Bounds*: there are so many bytes.
    pub unsafe fn zero(&self, to: Address, bytes: usize) -> Result<()> {
        self.enter()?;
        // SAFETY (*Bounds*, *Liveness*): by the caller's promise.
        self.check(
            unsafe { (self.driver.cuMemsetD8Async)(to, 0, bytes, self.stream) },
            "memory could not be zeroed",
        )
    }

    /// Does the driver know this memory of the host? Somebody has pinned it then, or it is managed: a copy from there may be
    /// under way when the driver returns.
    fn knows(&self, address: *const u8) -> bool {
        let mut kind: c_uint = 0;
        // SAFETY (*Driver's contract*): the driver writes the kind of the memory, a number of this size; the address is not
        // followed.
        let code = unsafe {
            (self.driver.cuPointerGetAttribute)((&raw mut kind).cast(), MEMORY_TYPE, address as Address)
        };
        code == 0
    }

    /// Copies to the device.
    ///
    /// # Safety
    ///
    /// *Bounds*, and *Liveness* where `from` is pinned: it stays as it is until the stream was waited for.
    pub unsafe fn send(&self, from: *const u8, to: Address, bytes: usize) -> Result<()> {
        if bytes == 0 {
            return Ok(());
        }
        self.enter()?;
        // SAFETY (*Bounds*, *Liveness*): by the caller's promise.
        let code = unsafe { (self.driver.cuMemcpyHtoDAsync_v2)(to, from.cast(), bytes, self.stream) };
        self.check(code, "data could not be sent to the GPU")
    }

    /// Copies from the device; the bytes are there when the stream was waited for.
    ///
    /// # Safety
    ///
    /// *Bounds*, *Liveness* as for [`Gpu::send`].
    pub unsafe fn fetch(&self, from: Address, to: *mut u8, bytes: usize) -> Result<()> {
        if bytes == 0 {
            return Ok(());
        }
        self.enter()?;
        // SAFETY (*Bounds*, *Liveness*): by the caller's promise.
        let code = unsafe { (self.driver.cuMemcpyDtoHAsync_v2)(to.cast(), from, bytes, self.stream) };
        self.check(code, "data could not be fetched from the GPU")
    }

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

    /// Copies within the device.
    ///
    /// # Safety
    ///
    /// *Bounds*.
    pub unsafe fn copy_within(&self, from: Address, to: Address, bytes: usize) -> Result<()> {
        if bytes == 0 {
            return Ok(());
        }
        self.enter()?;
        // SAFETY (*Bounds*, *Liveness*): by the caller's promise.
        let code = unsafe { (self.driver.cuMemcpyDtoDAsync_v2)(to, from, bytes, self.stream) };
        self.check(code, "data could not be copied on the GPU")
    }

    /// Words of the host that the GPU can copy while the host continues.
    pub fn pinned(&self, words: usize) -> Result<NonNull<u64>> {
        self.enter()?;
        let mut address = null_mut();
        // SAFETY (*Driver's contract*): the driver writes the address.
        let code = unsafe { (self.driver.cuMemAllocHost_v2)(&mut address, 8 * words.max(1)) };
        self.check(code, "pinned memory could not be had")?;
        NonNull::new(address.cast()).ok_or(Error::OutOfMemory { bytes: 8 * words })
    }

    /// Gives back what [`Gpu::pinned`] gave.
    pub fn unpin(&self, address: NonNull<u64>) {
        if self.enter().is_ok() {
            // SAFETY (*Liveness*): the address came from `pinned` and is given back once.
            unsafe { (self.driver.cuMemFreeHost)(address.as_ptr().cast()) };
        }
    }

    /// Loads machine code.
    pub fn load(&self, image: &[u8]) -> Result<Module> {
        self.enter()?;
        let mut module = null_mut();
        // SAFETY (*Trusted code*): the image is machine code that the compiler made, whole.
        let code = unsafe { (self.driver.cuModuleLoadData)(&mut module, image.as_ptr().cast()) };
        self.check(code, "the compiled program could not be loaded")?;
        Ok(Module(module))
    }

    /// Unloads machine code, after all that was asked for.
    pub fn unload(&self, module: &Module) {
        if self.wait().is_ok() {
            // SAFETY (*Liveness*): nothing of the module runs any more, and it is unloaded once.
            unsafe { (self.driver.cuModuleUnload)(module.0) };
        }
    }

    /// A kernel of loaded code, with the number of blocks that can run at one time.
    pub fn kernel(&self, module: &Module, name: &CStr, threads: u32) -> Result<Kernel> {
        self.enter()?;
        let (mut function, mut blocks) = (null_mut(), 0);
        // SAFETY (*Liveness*): the module is loaded; the driver writes a handle and a number.
        unsafe {
            let code = (self.driver.cuModuleGetFunction)(&mut function, module.0, name.as_ptr());
            self.check(code, "a kernel is missing from the compiled program")?;
            let code = (self.driver.cuOccupancyMaxActiveBlocksPerMultiprocessor)(
                &mut blocks,
                function,
                threads as c_int,
                0,
            );
            self.check(code, "a kernel does not say how many of its blocks fit")?;
        }
        Ok(Kernel { function, most: (blocks.max(0) as u32) * self.multiprocessors })
    }

    /// Launches a kernel with the parameters at these addresses.
    ///
    /// # Safety
    ///
    /// The kernel takes parameters of their layout, and what they point to is there and not in use elsewhere.
    pub unsafe fn launch(
        &self,
        kernel: &Kernel,
        grid: Grid,
        meeting: Meeting,
        parameters: &[*const c_void],
    ) -> Result<()> {
        self.enter()?;
        let mut parameters: Vec<*mut c_void> = parameters.iter().map(|p| p.cast_mut()).collect();
        let parameters = parameters.as_mut_ptr();
        let function = kernel.function;
        let Grid { blocks, rows, threads } = grid;
        // SAFETY (*Bounds*, *Liveness*): by the caller's promise.
        let code = unsafe {
            match meeting {
                Meeting::Grid if blocks > 1 => (self.driver.cuLaunchCooperativeKernel)(
                    function,
                    blocks,
                    1,
                    1,
                    threads,
                    1,
                    1,
                    0,
                    self.stream,
                    parameters,
                ),
                _ => (self.driver.cuLaunchKernel)(
                    function,
                    blocks,
                    rows,
                    1,
                    threads,
                    1,
                    1,
                    0,
                    self.stream,
                    parameters,
                    null_mut(),
                ),
            }
        };
        self.check(code, "a kernel could not be launched")
    }
}

/// Do the blocks of a kernel wait for each other?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meeting {
    /// They do: all run at one time.
    Grid,
    /// They do not.
    Nowhere,
}

/// Loaded machine code.
pub struct Module(Handle);

/// A kernel of loaded code.
#[derive(Clone, Copy)]
pub struct Kernel {
    function: Handle,
    /// The most blocks that can run at one time.
    pub most: u32,
}

/// The threads of a launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grid {
    /// How many blocks.
    pub blocks: u32,
    /// How many rows of so many blocks.
    pub rows: u32,
    /// How many threads each has.
    pub threads: u32,
}

impl Grid {
    /// One row of blocks.
    pub fn of(blocks: u32, threads: u32) -> Grid {
        Grid { blocks, rows: 1, threads }
    }
}

// SAFETY (*Driver's contract*): handles of the driver may be used from any thread.
unsafe impl Send for Module {}
// SAFETY (*Driver's contract*): as above.
unsafe impl Sync for Module {}
// SAFETY (*Driver's contract*): as above.
unsafe impl Send for Kernel {}
// SAFETY (*Driver's contract*): as above.
unsafe impl Sync for Kernel {}

fn describe(driver: &Driver, code: c_int) -> String {
    let mut text = std::ptr::null();
    // SAFETY (*Driver's contract*): the driver writes a pointer to a text of its own, or null.
    unsafe {
        (driver.cuGetErrorString)(code, &mut text);
        if text.is_null() {
            return format!("error {code}");
        }
        format!("{} (error {code})", CStr::from_ptr(text).to_string_lossy())
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

/// An error of this device.
pub fn failure(reason: String) -> Error {
    Error::Device { device: "cuda".to_string(), reason }
}

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
