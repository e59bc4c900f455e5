//! One GPU: its context, its streams, its memory.

mod async_copies;
mod boxes;
mod kernels;
mod memory;

use std::ffi::{CStr, c_int, c_uint, c_void};
use std::ptr::{NonNull, null_mut};

use ebbtide_runtime::{Error, Result};

use crate::ordinal::ordinal;
use crate::sys::{Address, Driver, Handle, driver};

pub use kernels::{Grid, Kernel, LARGEST_CLUSTER, Meeting, Module};

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
    /// The most bytes that the threads of a block can share.
    block_memory: u32,
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
/// The most bytes that the threads of a block can share, where the kernel is set up for it.
const BLOCK_MEMORY: c_int = 97;
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
                block_memory: attribute(BLOCK_MEMORY)?.max(0) as u32,
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
}

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

/// An error of this device.
pub fn failure(reason: String) -> Error {
    Error::Device { device: "cuda".to_string(), reason }
}
