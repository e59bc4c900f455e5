//! Arrays of other libraries, by DLPack: PyTorch, JAX, CuPy and their kin.
//!
//! Input: an object with `__dlpack__`. Output: its elements in place. The capsule is kept during the launch and is left
//! unconsumed, so that its own destructor gives the memory back. Of an array on a GPU the library is asked for the order of
//! the stream on which programs run: what it asked of the GPU before, happens before.

use std::ffi::{CStr, c_void};

use ebbtide_ir::{Indices, Type};
use ebbtide_runtime::Device;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyCapsuleMethods, PyDict};

use crate::arguments::{Elements, Where};

const CPU: i32 = 1;
const CUDA: i32 = 2;
const CUDA_HOST: i32 = 3;
const CUDA_MANAGED: i32 = 13;
const READ_ONLY: u64 = 1;

#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Place {
    pub kind: i32,
    pub id: i32,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct DataType {
    pub code: u8,
    pub bits: u8,
    pub lanes: u16,
}

#[repr(C)]
pub struct Tensor {
    pub data: *mut c_void,
    pub device: Place,
    pub ndim: i32,
    pub dtype: DataType,
    pub shape: *const i64,
    pub strides: *const i64,
    pub byte_offset: u64,
}

#[repr(C)]
pub struct Versioned {
    pub major: u32,
    pub minor: u32,
    pub manager: *mut c_void,
    pub deleter: Option<unsafe extern "C" fn(*mut Versioned)>,
    pub flags: u64,
    pub tensor: Tensor,
}

pub const PLAIN: &CStr = c"dltensor";
pub const VERSIONED: &CStr = c"dltensor_versioned";

/// The elements of a foreign array, and the capsule that keeps them; `Err` has what is wrong, in words.
pub fn elements<'py>(
    object: &Bound<'py, PyAny>,
    device: &Device,
) -> PyResult<Result<(Elements, Bound<'py, PyAny>), String>> {
    let library = object.get_type().fully_qualified_name()?.to_string();
    let (kind, id): (i32, i32) = object.call_method0("__dlpack_device__")?.extract()?;
    let options = PyDict::new(object.py());
    let place = match kind {
        CPU | CUDA_HOST => Where::Host,
        _ => match stream(device, Place { kind, id }) {
            Ok(stream) => {
                options.set_item("stream", stream)?;
                Where::Device
            }
            Err(why) => return Ok(Err(format!("this `{library}` {why}"))),
        },
    };
    options.set_item("max_version", (1, 0))?;
    let capsule = match object.call_method("__dlpack__", (), Some(&options)) {
        Ok(capsule) => capsule,
        // Libraries that know the first form of DLPack alone; the stream belongs to that form too.
        Err(error) if error.is_instance_of::<pyo3::exceptions::PyTypeError>(object.py()) => {
            options.del_item("max_version")?;
            object.call_method("__dlpack__", (), Some(&options))?
        }
        Err(error) => return Err(error),
    };
    let Ok(handle) = capsule.cast::<PyCapsule>() else {
        return Ok(Err(format!("`__dlpack__` of this `{library}` gave no capsule")));
    };
    let (tensor, flags) = if let Ok(start) = handle.pointer_checked(Some(VERSIONED)) {
        // SAFETY: DLPack says that a capsule of this name heads this structure, alive until the capsule is gone.
        let managed = unsafe { start.cast::<Versioned>().as_ref() };
        if managed.major != 1 {
            return Ok(Err(format!(
                "this `{library}` speaks DLPack {}.{}, and version 1 is known here",
                managed.major, managed.minor
            )));
        }
        (&managed.tensor, managed.flags)
    } else if let Ok(start) = handle.pointer_checked(Some(PLAIN)) {
        // SAFETY: as above; a tensor is the first field of the first form.
        (unsafe { start.cast::<Tensor>().as_ref() }, 0)
    } else {
        return Ok(Err(format!("`__dlpack__` of this `{library}` gave an unknown capsule")));
    };
    // JAX promises that its arrays never change, and its first form of DLPack cannot say so.
    let read_only = flags & READ_ONLY != 0 || library.starts_with("jax");
    if tensor.device.kind != kind {
        return Ok(Err(format!(
            "this `{library}` says that it is on DLPack device {kind}, and what it hands out is on {}",
            tensor.device.kind
        )));
    }
    Ok(read(tensor, place, read_only, &library).map(|elements| (elements, capsule)))
}

/// The stream on which a device uses memory of this place; `Err` says why it cannot use it.
pub fn stream(device: &Device, place: Place) -> Result<u64, String> {
    let shared = device.backend().memory().and_then(|memory| memory.shared());
    let gpu = if place.kind == CUDA || place.kind == CUDA_MANAGED { "a GPU" } else { "another device" };
    let Some(shared) = shared else {
        return Err(format!(
            "is in the memory of {gpu} (DLPack device {}), and this program runs on `{}`, in host memory: make the program \
             with `device=\"cuda\"`, or move the array yourself (`.cpu()`, `jax.device_get`, `cupy.asnumpy`)",
            place.kind,
            device.name()
        ));
    };
    if place.kind != shared.kind && !(place.kind == CUDA_MANAGED && shared.kind == CUDA) {
        return Err(format!(
            "is in the memory of {gpu} (DLPack device {}), which `{}` (DLPack device {}) cannot use",
            place.kind,
            device.name(),
            shared.kind
        ));
    }
    if place.kind == shared.kind && place.id != shared.ordinal {
        return Err(format!(
            "is on GPU {}, and this program runs on GPU {}: move the array, or choose the GPU with EBBTIDE_GPU",
            place.id, shared.ordinal
        ));
    }
    Ok(shared.stream)
}

fn read(tensor: &Tensor, place: Where, read_only: bool, library: &str) -> Result<Elements, String> {
    let DataType { code, bits, lanes } = tensor.dtype;
    let ty = match (code, bits, lanes) {
        (2, 32, 1) => Type::F32,
        (2, 64, 1) => Type::F64,
        (0, 32, 1) => Type::I32,
        (0, 64, 1) => Type::I64,
        (1, 32, 1) => Type::U32,
        (6, 8, 1) => Type::Bool,
        _ => {
            return Err(format!(
                "this `{library}` has elements of DLPack type {code} with {bits} bits; programs know float32, float64, \
                 int32, int64, uint32 and bool"
            ));
        }
    };
    let rank = usize::try_from(tensor.ndim).unwrap_or(usize::MAX);
    if rank > Indices::MAX_RANK {
        return Err(format!(
            "it has {rank} dimensions; arrays of programs have at most {}",
            Indices::MAX_RANK
        ));
    }
    let mut shape = [0; Indices::MAX_RANK];
    let mut expected = 1i64;
    let mut contiguous = true;
    for k in (0..rank).rev() {
        // SAFETY: DLPack says that `shape` and, where it is not null, `strides` have `ndim` numbers.
        let (extent, stride) = unsafe {
            let stride = (!tensor.strides.is_null()).then(|| *tensor.strides.add(k));
            (*tensor.shape.add(k), stride)
        };
        shape[k] = usize::try_from(extent).map_err(|_| "it has a negative extent".to_string())?;
        contiguous &= extent <= 1 || stride.is_none_or(|stride| stride == expected);
        expected = expected.saturating_mul(extent);
    }
    contiguous |= shape[..rank].contains(&0);
    let start = tensor.data.cast::<u8>().wrapping_add(usize::try_from(tensor.byte_offset).unwrap_or(0));
    Ok(Elements { ty, start, shape, rank, place, contiguous, writeable: !read_only })
}
