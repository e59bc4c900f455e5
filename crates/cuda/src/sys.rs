//! The functions of NVIDIA's driver and run-time compiler that are used here, found when they are first wanted: building
//! needs no CUDA, and a machine without it says so.

#![allow(non_snake_case, reason = "the names are those of the libraries")]

use std::ffi::{c_char, c_int, c_uint, c_void};
use std::path::PathBuf;
use std::sync::OnceLock;

use libloading::Library;

/// An opaque handle of the driver or of the compiler.
pub type Handle = *mut c_void;
/// An address on the device.
pub type Address = u64;

/// One side of a copy of a box, as the driver's `CUDA_MEMCPY3D` has it.
#[repr(C)]
pub struct BoxSide {
    /// Of the first byte, row, plane, and level of detail.
    pub first: [usize; 4],
    /// [`HOST`] or [`DEVICE`].
    pub kind: c_uint,
    pub host: *mut c_void,
    pub device: Address,
    pub array: Handle,
    pub reserved: *mut c_void,
    /// Bytes from row to row, rows from plane to plane.
    pub strides: [usize; 2],
}

/// The kinds of memory of a [`BoxSide`].
pub const HOST: c_uint = 1;
pub const DEVICE: c_uint = 2;

/// A copy of a box: the driver's `CUDA_MEMCPY3D`.
#[repr(C)]
pub struct BoxCopy {
    pub from: BoxSide,
    pub to: BoxSide,
    /// Bytes of a row, rows, planes.
    pub extents: [usize; 3],
}

/// The threads of a launch and how they are dealt out: the driver's `CUlaunchConfig`.
#[repr(C)]
pub struct LaunchConfig {
    pub blocks: [c_uint; 3],
    pub threads: [c_uint; 3],
    pub shared: c_uint,
    pub stream: Handle,
    pub attributes: *const LaunchAttribute,
    pub count: c_uint,
}

/// The driver's `CUlaunchAttribute`: which one, and a value in a space that is large enough for all.
#[repr(C)]
pub struct LaunchAttribute {
    /// [`CLUSTER`].
    pub id: u64,
    pub value: [c_uint; 16],
}

/// The attribute that says how many blocks a cluster has, in three dimensions.
pub const CLUSTER: u64 = 4;

/// Declares a table of C functions and how to find it.
macro_rules! functions {
    ($(#[$doc:meta])* $table:ident: $($name:ident($($arg:ident: $ty:ty),*);)*) => {
        $(#[$doc])*
        pub struct $table {
            $(pub $name: unsafe extern "C" fn($($arg: $ty),*) -> c_int,)*
            /// The functions live in it.
            _library: Library,
        }

        impl $table {
            fn of(library: Library) -> Result<$table, String> {
                $(
                    // SAFETY (*Driver's contract*): the signature is that of the documentation.
                    let $name = *unsafe { library.get(concat!(stringify!($name), "\0").as_bytes()) }
                        .map_err(|e| e.to_string())?;
                )*
                Ok($table { $($name,)* _library: library })
            }
        }
    };
}

functions! {
    /// The driver.
    Driver:
    cuInit(flags: c_uint);
    cuGetErrorString(error: c_int, text: *mut *const c_char);
    cuDeviceGetCount(count: *mut c_int);
    cuDeviceGet(device: *mut c_int, ordinal: c_int);
    cuDeviceGetName(name: *mut c_char, length: c_int, device: c_int);
    cuDeviceGetAttribute(value: *mut c_int, attribute: c_int, device: c_int);
    cuDeviceTotalMem_v2(bytes: *mut usize, device: c_int);
    cuDevicePrimaryCtxRetain(context: *mut Handle, device: c_int);
    cuCtxSetCurrent(context: Handle);
    cuCtxSynchronize();
    cuStreamCreate(stream: *mut Handle, flags: c_uint);
    cuStreamSynchronize(stream: Handle);
    cuStreamWaitEvent(stream: Handle, event: Handle, flags: c_uint);
    cuEventCreate(event: *mut Handle, flags: c_uint);
    cuEventRecord(event: Handle, stream: Handle);
    cuEventQuery(event: Handle);
    cuEventSynchronize(event: Handle);
    cuEventDestroy_v2(event: Handle);
    cuDeviceGetDefaultMemPool(pool: *mut Handle, device: c_int);
    cuMemPoolSetAttribute(pool: Handle, attribute: c_int, value: *mut c_void);
    cuMemPoolGetAttribute(pool: Handle, attribute: c_int, value: *mut c_void);
    cuMemGetInfo_v2(free: *mut usize, total: *mut usize);
    cuMemAllocAsync(address: *mut Address, bytes: usize, stream: Handle);
    cuMemFreeAsync(address: Address, stream: Handle);
    cuMemAllocHost_v2(address: *mut *mut c_void, bytes: usize);
    cuMemFreeHost(address: *mut c_void);
    cuPointerGetAttribute(value: *mut c_void, attribute: c_int, address: Address);
    cuMemcpyHtoDAsync_v2(to: Address, from: *const c_void, bytes: usize, stream: Handle);
    cuMemcpyDtoHAsync_v2(to: *mut c_void, from: Address, bytes: usize, stream: Handle);
    cuMemcpy3DAsync_v2(copy: *const BoxCopy, stream: Handle);
    cuMemcpyDtoDAsync_v2(to: Address, from: Address, bytes: usize, stream: Handle);
    cuMemsetD8Async(to: Address, value: u8, bytes: usize, stream: Handle);
    cuModuleLoadData(module: *mut Handle, image: *const c_void);
    cuModuleUnload(module: Handle);
    cuModuleGetFunction(function: *mut Handle, module: Handle, name: *const c_char);
    cuOccupancyMaxActiveBlocksPerMultiprocessor(blocks: *mut c_int, function: Handle, threads: c_int, shared: usize);
    cuFuncGetAttribute(value: *mut c_int, attribute: c_int, function: Handle);
    cuFuncSetAttribute(function: Handle, attribute: c_int, value: c_int);
    cuOccupancyMaxActiveClusters(clusters: *mut c_int, function: Handle, config: *const LaunchConfig);
    cuLaunchKernelEx(config: *const LaunchConfig, function: Handle, parameters: *mut *mut c_void, extra: *mut *mut c_void);
    cuLaunchKernel(function: Handle, gx: c_uint, gy: c_uint, gz: c_uint, bx: c_uint, by: c_uint, bz: c_uint, shared: c_uint, stream: Handle, parameters: *mut *mut c_void, extra: *mut *mut c_void);
    cuLaunchCooperativeKernel(function: Handle, gx: c_uint, gy: c_uint, gz: c_uint, bx: c_uint, by: c_uint, bz: c_uint, shared: c_uint, stream: Handle, parameters: *mut *mut c_void);
}

functions! {
    /// The run-time compiler.
    Nvrtc:
    nvrtcVersion(major: *mut c_int, minor: *mut c_int);
    nvrtcCreateProgram(program: *mut Handle, source: *const c_char, name: *const c_char, headers: c_int, texts: *const *const c_char, names: *const *const c_char);
    nvrtcCompileProgram(program: Handle, count: c_int, options: *const *const c_char);
    nvrtcGetProgramLogSize(program: Handle, bytes: *mut usize);
    nvrtcGetProgramLog(program: Handle, log: *mut c_char);
    nvrtcGetCUBINSize(program: Handle, bytes: *mut usize);
    nvrtcGetCUBIN(program: Handle, cubin: *mut c_char);
    nvrtcDestroyProgram(program: *mut Handle);
}

/// The first of these libraries that is there.
fn open(names: impl Iterator<Item = PathBuf>) -> Option<Library> {
    names.into_iter().find_map(|name| {
        // SAFETY (*Trusted code*): the initialisers of NVIDIA's libraries are trusted as the system's own are.
        unsafe { Library::new(name) }.ok()
    })
}

/// The driver; why not, where there is none.
pub fn driver() -> Result<&'static Driver, String> {
    static FOUND: OnceLock<Result<Driver, String>> = OnceLock::new();
    let found = FOUND.get_or_init(|| {
        let names = ["libcuda.so.1", "libcuda.so", "/usr/local/nvidia/lib64/libcuda.so.1"];
        let library = open(names.iter().map(PathBuf::from));
        let library = library.ok_or("there is no NVIDIA driver (libcuda.so.1 was not found)")?;
        Driver::of(library).map_err(|e| format!("the NVIDIA driver is too old: {e}"))
    });
    found.as_ref().map_err(Clone::clone)
}

/// The run-time compiler; why not, where there is none. `EBBTIDE_NVRTC` names the library.
pub fn nvrtc() -> Result<&'static Nvrtc, String> {
    static FOUND: OnceLock<Result<Nvrtc, String>> = OnceLock::new();
    let found = FOUND.get_or_init(|| {
        let library = match std::env::var_os("EBBTIDE_NVRTC").filter(|name| !name.is_empty()) {
            Some(named) => open(std::iter::once(PathBuf::from(named))),
            None => {
                let names = ["libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"];
                let homes = ["CUDA_HOME", "CUDA_PATH"].into_iter().filter_map(std::env::var_os);
                let homes = homes.map(PathBuf::from).chain([PathBuf::from("/usr/local/cuda")]);
                let folders: Vec<PathBuf> = homes.map(|home| home.join("lib64")).collect();
                let far = names.iter().flat_map(|name| folders.iter().map(move |folder| folder.join(name)));
                open(names.iter().map(PathBuf::from).chain(far))
            }
        };
        let library = library.ok_or(
            "NVIDIA's run-time compiler (libnvrtc.so, part of the CUDA toolkit) was not found: \
             EBBTIDE_NVRTC can name it",
        )?;
        Nvrtc::of(library).map_err(|e| format!("NVIDIA's run-time compiler is too old: {e}"))
    });
    found.as_ref().map_err(Clone::clone)
}
