//! Loaded code of a GPU, its kernels and their launches.

use std::ffi::{CStr, c_int, c_void};
use std::ptr::null_mut;
use std::sync::Arc;

use ebbtide_runtime::Result;

use super::Gpu;
use crate::sys::{CLUSTER, Handle, LaunchAttribute, LaunchConfig};

/// The attribute of a kernel that allows clusters of more than eight blocks.
const LARGE_CLUSTERS: c_int = 14;

/// The attribute of a kernel that says how much of the memory of a block its text asks for.
const OWN_MEMORY: c_int = 1;
/// The attribute of a kernel that says how much more a launch may give its blocks.
const ADDED_MEMORY: c_int = 8;

/// The most bytes that a launch adds: what products of large matrices need for two stages of factors and the sums of a block. The
/// rest caches, also what functions keep of the registers of those that call them.
const MOST_ADDED: u32 = 112 << 10;

/// The most blocks of a cluster, where its kernel and the GPU allow them.
pub const LARGEST_CLUSTER: u32 = 16;

impl Gpu {
    /// Loads machine code.
    pub fn load(self: &Arc<Gpu>, image: &[u8]) -> Result<Module> {
        self.enter()?;
        let mut handle = null_mut();
        // SAFETY (*Trusted code*): the image is machine code that the compiler made, whole.
        let code = unsafe { (self.driver.cuModuleLoadData)(&mut handle, image.as_ptr().cast()) };
        self.check(code, "the compiled program could not be loaded")?;
        Ok(Module { handle, gpu: Arc::clone(self) })
    }

    /// A kernel of loaded code, with the number of blocks that can run at one time. Blocks that have `room` get memory beside what
    /// their text asks for.
    pub fn kernel(&self, module: &Module, name: &CStr, threads: u32, room: bool) -> Result<Kernel> {
        self.enter()?;
        let (mut function, mut blocks) = (null_mut(), 0);
        // SAFETY (*Liveness*): the module is loaded; the driver writes a handle.
        let code = unsafe { (self.driver.cuModuleGetFunction)(&mut function, module.handle, name.as_ptr()) };
        self.check(code, "a kernel is missing from the compiled program")?;
        let added = if room { self.add_memory(function)? } else { 0 };
        // SAFETY (*Liveness*): the function is that of a loaded module; the driver writes a number.
        let code = unsafe {
            (self.driver.cuOccupancyMaxActiveBlocksPerMultiprocessor)(
                &mut blocks,
                function,
                threads as c_int,
                added as usize,
            )
        };
        self.check(code, "a kernel does not say how many of its blocks fit")?;
        let most = (blocks.max(0) as u32) * self.multiprocessors;
        Ok(Kernel { function, added, most, cluster: self.largest_cluster(function, threads, added) })
    }

    /// Lets launches of a kernel give its blocks as much memory as there is, and says how much.
    fn add_memory(&self, function: Handle) -> Result<u32> {
        let mut own = 0;
        // SAFETY (*Liveness*): the function is that of a loaded module; the driver writes a number.
        let code = unsafe { (self.driver.cuFuncGetAttribute)(&mut own, OWN_MEMORY, function) };
        self.check(code, "a kernel does not say how much memory its blocks share")?;
        let left = self.block_memory.saturating_sub(own.max(0) as u32);
        // Vectors are brought to multiples of their size.
        let added = left.min(MOST_ADDED) / 16 * 16;
        // SAFETY (*Liveness*): as above.
        let code = unsafe { (self.driver.cuFuncSetAttribute)(function, ADDED_MEMORY, added as c_int) };
        self.check(code, "a kernel cannot be given more memory for its blocks")?;
        Ok(added)
    }

    /// Can blocks be one cluster?
    pub fn has_clusters(&self) -> bool {
        self.capability.0 >= 9
    }

    /// The most blocks of this kernel that fit into one cluster: a power of two, one where there are no clusters.
    fn largest_cluster(&self, function: Handle, threads: u32, added: u32) -> u32 {
        if !self.has_clusters() {
            return 1;
        }
        // SAFETY (*Liveness*): the function is that of a loaded module. Where larger clusters are not allowed, none is found below.
        unsafe { (self.driver.cuFuncSetAttribute)(function, LARGE_CLUSTERS, 1) };
        let fits = |blocks: u32| {
            let attribute = cluster(blocks);
            let mut clusters = 0;
            // SAFETY (*Driver's contract*): the driver reads a description that lives until then, and writes a number.
            let code = unsafe {
                let config = self.config(Grid::of(blocks, threads), added, &attribute);
                (self.driver.cuOccupancyMaxActiveClusters)(&mut clusters, function, &config)
            };
            code == 0 && clusters > 0
        };
        std::iter::successors(Some(LARGEST_CLUSTER), |blocks| Some(blocks / 2))
            .take_while(|blocks| *blocks > 1)
            .find(|blocks| fits(*blocks))
            .unwrap_or(1)
    }

    /// How the driver is told of a launch.
    fn config(&self, grid: Grid, added: u32, attribute: &LaunchAttribute) -> LaunchConfig {
        LaunchConfig {
            blocks: [grid.blocks, grid.rows, 1],
            threads: [grid.threads, 1, 1],
            shared: added,
            stream: self.stream,
            attributes: attribute,
            count: 1,
        }
    }

    /// Launches a kernel with the parameters at these addresses.
    ///
    /// # Safety
    ///
    /// The kernel takes parameters of their layout, and what they point to is there and not in use elsewhere.
    pub unsafe fn launch(&self, kernel: &Kernel, grid: Grid, parameters: &[*const c_void]) -> Result<()> {
        self.enter()?;
        let mut parameters: Vec<*mut c_void> = parameters.iter().map(|p| p.cast_mut()).collect();
        let parameters = parameters.as_mut_ptr();
        let Kernel { function, added, .. } = *kernel;
        let Grid { blocks, rows, threads, meeting } = grid;
        // SAFETY (*Bounds*, *Liveness*): by the caller's promise.
        let code = unsafe {
            match meeting {
                Meeting::Cluster if blocks > 1 => {
                    let attribute = cluster(blocks);
                    let config = self.config(grid, added, &attribute);
                    (self.driver.cuLaunchKernelEx)(&config, function, parameters, null_mut())
                }
                Meeting::Grid if blocks > 1 => (self.driver.cuLaunchCooperativeKernel)(
                    function,
                    blocks,
                    1,
                    1,
                    threads,
                    1,
                    1,
                    added,
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
                    added,
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
    /// They do, and all are one cluster: they meet faster.
    Cluster,
    /// They do not.
    Nowhere,
}

/// Loaded machine code. It is unloaded after all that was asked for.
pub struct Module {
    handle: Handle,
    gpu: Arc<Gpu>,
}

impl Drop for Module {
    fn drop(&mut self) {
        if self.gpu.wait().is_ok() {
            // SAFETY (*Liveness*): nothing of the module runs any more, and it is unloaded once.
            unsafe { (self.gpu.driver.cuModuleUnload)(self.handle) };
        }
    }
}

/// A kernel of loaded code.
#[derive(Clone, Copy)]
pub struct Kernel {
    function: Handle,
    /// The bytes that a launch adds to the memory of each block.
    added: u32,
    /// The most blocks that can run at one time.
    pub most: u32,
    /// The most blocks that can be one cluster; a power of two.
    pub cluster: u32,
}

/// So many blocks are one cluster.
fn cluster(blocks: u32) -> LaunchAttribute {
    let mut value = [0; 16];
    value[..3].copy_from_slice(&[blocks, 1, 1]);
    LaunchAttribute { id: CLUSTER, value }
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
    /// Where its blocks wait for each other.
    pub meeting: Meeting,
}

impl Grid {
    /// One row of blocks that wait for each other.
    pub fn of(blocks: u32, threads: u32) -> Grid {
        Grid { blocks, rows: 1, threads, meeting: Meeting::Grid }
    }

    /// The same with blocks that are one cluster.
    pub fn cluster(blocks: u32, threads: u32) -> Grid {
        Grid { meeting: Meeting::Cluster, ..Grid::of(blocks, threads) }
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
