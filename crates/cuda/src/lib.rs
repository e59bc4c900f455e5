//! The CUDA device: programs as CUDA C, compiled by NVIDIA's run-time compiler, run on a GPU.
//!
//! A segment of a program, time loops included, is one cooperative kernel. All its threads run program-level statements; they
//! divide the iterations of parallel loops among them, and have barriers where the threads of a CPU have them. Branches are
//! decided on the device. So an iteration of a time loop costs one barrier per dependent parallel loop: about a microsecond, or
//! some tens of nanoseconds where one block is enough, or nothing where iterations touch only their own elements. There are no
//! graphs and no conditional nodes. The host waits once, at the end of a launch or of a gradient run; loops around an operation
//! of the host are driven by the host.
//!
//! Building needs no CUDA. The driver and the run-time compiler are searched for when a device is made.

mod batched_launch;
pub mod compiler;
mod doorbell;
mod gpu;
mod hosted;
mod native;
mod ordinal;
mod parameters;
mod sys;
mod tables;
mod text;

use std::sync::Arc;

use ebbtide_runtime::Device;
use ebbtide_runtime::cache::Cache;

use crate::compiler::Architecture;
pub use ebbtide_runtime::Counters;
pub use text::{text, text_device};

/// How to make a CUDA device.
#[derive(Clone, Debug, Default)]
pub struct Options {
    cache: Option<Cache>,
    blocks: Option<u32>,
    threads: Option<u32>,
    crowd: Option<u32>,
}

impl Options {
    /// The defaults: the user's cache, as many blocks as the loops of a segment are worth.
    pub fn new() -> Options {
        Options::default()
    }

    /// Compiled code is kept here.
    pub fn cache(mut self, cache: Cache) -> Options {
        self.cache = Some(cache);
        self
    }

    /// Every segment runs on this number of blocks, or on as many as fit: for tests, since the result does not depend on it.
    pub fn blocks(mut self, blocks: u32) -> Options {
        self.blocks = Some(blocks.max(1));
        self
    }

    /// The number of threads per block: 128, 256, 512 or 1024.
    pub fn threads(mut self, threads: u32) -> Options {
        self.threads = Some(threads.clamp(128, 1024).next_power_of_two());
        self
    }

    /// The greatest number of blocks per multiprocessor.
    pub fn crowd(mut self, crowd: u32) -> Options {
        self.crowd = Some(crowd.max(1));
        self
    }

    /// The device and its counters: the first GPU, that of the process's place among the ranks on its machine
    /// (`OMPI_COMM_WORLD_LOCAL_RANK`, `MPI_LOCALRANKID`, `PMI_LOCAL_RANK`, `SLURM_LOCALID`), or the one that `EBBTIDE_GPU` numbers; why not, where there is no GPU, no driver or no run-time compiler.
    pub fn build(self) -> Result<(Device, Arc<Counters>), String> {
        let gpu = gpu::Gpu::of_process()?;
        compiler::version()?;
        let counters = Arc::<Counters>::default();
        let (major, minor) = gpu.capability;
        let mut target = Architecture::of(major, minor);
        target.threads = self.threads.unwrap_or(target.threads);
        target.blocks = self.crowd.unwrap_or(target.blocks);
        let cuda = native::Cuda {
            cache: self.cache.unwrap_or_else(Cache::of_user),
            target,
            counters: counters.clone(),
            blocks: self.blocks,
            gpu: Arc::new(gpu),
        };
        Ok((Device::new(Arc::new(cuda)), counters))
    }
}

/// What the GPU of this machine is called, its compute capability and its bytes; why not, where there is none.
pub fn describe() -> Result<String, String> {
    let gpu = gpu::Gpu::of_process()?;
    let (major, minor) = compiler::version()?;
    let (a, b) = gpu.capability;
    Ok(format!("{}, compute capability {a}.{b}, {} GiB, NVRTC {major}.{minor}", gpu.name, gpu.bytes >> 30))
}

/// The GPU of this process, as [`Options::build`] chooses it; why not, where there is none that can be used.
pub fn cuda() -> Result<Device, String> {
    Options::new().build().map(|(device, _)| device)
}
