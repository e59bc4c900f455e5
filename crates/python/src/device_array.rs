//! Arrays in the memory of a GPU, for callers: results of derivatives, and what `to_device` makes.
//!
//! They leave by DLPack, in place. Invariant: what was handed out stays until the last user of it is gone, and is given back
//! when all that anybody asked of the device has ended, since nobody says on which streams it was used.

use std::ffi::{CStr, c_void};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use ebbtide_ir::{Indices, Type};
use ebbtide_runtime::{AnyArray, Device, Shared};
use pyo3::exceptions::{PyBufferError, PyTypeError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::arguments::{Elements, Leaf, Leaves, Where, lend};
use crate::dlpack::{DataType, PLAIN, Place, Tensor, VERSIONED, Versioned};
use crate::outputs::copied;
use crate::{device, dlpack, errors};

/// The memory of an array on a device.
struct Held {
    array: AnyArray,
    shared: Shared,
    handed_out: AtomicBool,
}

impl Drop for Held {
    fn drop(&mut self) {
        let memory = self.array.device().backend().memory();
        if let Some(memory) = memory.filter(|_| *self.handed_out.get_mut())
            && let Err(error) = memory.finish_of_all()
        {
            ebbtide_runtime::warn(&error.to_string());
        }
    }
}

/// An array in the memory of a GPU. `torch.from_dlpack`, `jax.dlpack.from_dlpack` and `cupy.from_dlpack` use it in place;
/// `numpy()` copies it to the host.
#[pyclass(frozen, module = "ebbtide", name = "DeviceArray")]
pub struct DeviceArray {
    held: Arc<Held>,
}

impl DeviceArray {
    /// Of an array whose elements are there: what was asked for before is waited for.
    pub fn new(py: Python<'_>, array: AnyArray) -> PyResult<DeviceArray> {
        let memory = array.device().backend().memory();
        let Some((memory, shared)) = memory.and_then(|memory| Some((memory.clone(), memory.shared()?)))
        else {
            return Err(errors::raise(
                py,
                "DeviceError",
                "this device has no memory that others can use",
                Vec::new(),
            ));
        };
        errors::detached(py, || memory.finish())?.map_err(|error| errors::exception(py, &error))?;
        Ok(DeviceArray { held: Arc::new(Held { array, shared, handed_out: AtomicBool::new(false) }) })
    }

    fn array(&self) -> &AnyArray {
        &self.held.array
    }

    /// Its elements as an argument of a program on a device, in place; `Err` says why that device cannot use them. Every
    /// launch that used them has ended, so others alone are waited for.
    pub fn elements_for(&self, py: Python<'_>, device: &Device) -> PyResult<Result<Elements, String>> {
        let Shared { kind, ordinal: id, .. } = self.held.shared;
        if let Err(why) = dlpack::stream(device, Place { kind, id }) {
            return Ok(Err(format!("is a `DeviceArray` that {why}")));
        }
        self.wait_for_others(py)?;
        Ok(Ok(self.elements()))
    }

    /// Waits for whoever may use the elements by DLPack.
    fn wait_for_others(&self, py: Python<'_>) -> PyResult<()> {
        let memory = self.array().device().backend().memory();
        let Some(memory) = memory.filter(|_| self.held.handed_out.load(Ordering::Relaxed)) else {
            return Ok(());
        };
        errors::detached(py, || memory.finish_of_all())?.map_err(|error| errors::exception(py, &error))
    }

    fn elements(&self) -> Elements {
        let array = self.array();
        let mut shape = [0; Indices::MAX_RANK];
        shape.iter_mut().zip(array.shape()).for_each(|(extent, given)| *extent = *given);
        Elements {
            ty: array.ty(),
            start: array.address(),
            shape,
            rank: array.shape().len(),
            place: Where::Device,
            contiguous: true,
            writeable: true,
        }
    }
}

fn numpy_name(ty: Type) -> &'static str {
    match ty {
        Type::F32 => "float32",
        Type::F64 => "float64",
        Type::I32 => "int32",
        Type::I64 | Type::Index => "int64",
        Type::U32 => "uint32",
        Type::Bool => "bool",
    }
}

#[pymethods]
impl DeviceArray {
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.array().shape())
    }

    #[getter]
    fn ndim(&self) -> usize {
        self.array().shape().len()
    }

    /// The type of its elements, as NumPy's.
    #[getter]
    fn dtype<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        py.import("numpy")?.call_method1("dtype", (numpy_name(self.array().ty()),))
    }

    /// The name of its device.
    #[getter]
    fn device(&self) -> &str {
        self.array().device().name()
    }

    /// A copy in host memory.
    fn numpy<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        // Others may have written it since: a view of its own looks at what the device has now.
        let array = self.array();
        self.wait_for_others(py)?;
        let view = lend(array.device(), &self.elements()).map_err(|error| errors::exception(py, &error))?;
        copied(py, &view)
    }

    fn __dlpack_device__(&self) -> (i32, i32) {
        (self.held.shared.kind, self.held.shared.ordinal)
    }

    /// The array in place, by DLPack. Its elements were waited for when it was made, so every stream may use them.
    #[pyo3(signature = (*, stream=None, max_version=None, dl_device=None, copy=None))]
    fn __dlpack__<'py>(
        &self,
        py: Python<'py>,
        stream: Option<Bound<'py, PyAny>>,
        max_version: Option<(u32, u32)>,
        dl_device: Option<(i32, i32)>,
        copy: Option<bool>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let _ = stream;
        if dl_device.is_some_and(|asked| asked != self.__dlpack_device__()) || copy == Some(true) {
            return Err(PyBufferError::new_err(
                "this array is handed out in place, where it is: `numpy()` copies it to the host",
            ));
        }
        self.held.handed_out.store(true, Ordering::Relaxed);
        match max_version.is_some_and(|(major, _)| major >= 1) {
            true => capsule::<Versioned>(py, &self.held),
            false => capsule::<Plain>(py, &self.held),
        }
    }

    fn __repr__(&self) -> String {
        let array = self.array();
        let shape = array.shape().iter().map(usize::to_string).collect::<Vec<_>>().join(", ");
        format!("<DeviceArray of {} of shape ({shape}) on {}>", numpy_name(array.ty()), self.device())
    }
}

/// A copy of an array of the host in the memory of a device; without a name, of the default one.
#[pyfunction]
#[pyo3(signature = (array, device=None))]
pub fn to_device(py: Python<'_>, array: &Bound<'_, PyAny>, device: Option<&str>) -> PyResult<DeviceArray> {
    let device = device::get(py, device)?;
    if device.backend().memory().and_then(|memory| memory.shared()).is_none() {
        let text = format!("`{}` computes in host memory: pass arrays of NumPy as they are", device.name());
        return Err(errors::raise(py, "DeviceError", &text, Vec::new()));
    }
    let mut given = Leaves::with_room(1, Some("cpu"));
    given.push("to_device", "array", array)?;
    let [Leaf::Array(elements)] = given.leaves[..] else {
        return Err(PyTypeError::new_err("`to_device` takes an array"));
    };
    if !elements.contiguous {
        return Err(errors::launch(py, "to_device", "`array` is not contiguous in C order"));
    }
    let made = upload(&device, &elements).map_err(|error| errors::exception(py, &error))?;
    DeviceArray::new(py, made)
}

fn upload(device: &Device, elements: &Elements) -> ebbtide_runtime::Result<AnyArray> {
    let host = lend(&ebbtide_runtime::interpreter(), elements)?;
    let mut staged = AnyArray::zeros(device, elements.ty, elements.shape())?;
    staged.copy_from_bytes(host.bytes())?;
    // A copy on the device: that brings what the host wrote there.
    staged.try_clone()
}

/// The first form of DLPack's managed tensors.
#[repr(C)]
struct Plain {
    tensor: Tensor,
    manager: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut Plain)>,
}

/// A form of managed tensor.
trait Form: Sized {
    const NAME: &CStr;

    fn of(tensor: Tensor) -> Self;

    /// Gives back what it keeps.
    ///
    /// # Safety
    ///
    /// *Liveness*: `this` came from [`capsule`] and is given back once.
    unsafe extern "C" fn give_back(this: *mut Self) {
        if !this.is_null() {
            // SAFETY (*Liveness*): by the caller's promise; the tensor is the first field of what was boxed.
            drop(unsafe { Box::from_raw(this.cast::<Handed<Self>>()) });
        }
    }
}

impl Form for Versioned {
    const NAME: &CStr = VERSIONED;

    fn of(tensor: Tensor) -> Versioned {
        let (manager, deleter) = (std::ptr::null_mut(), Some(Self::give_back as unsafe extern "C" fn(_)));
        Versioned { major: 1, minor: 0, manager, deleter, flags: 0, tensor }
    }
}

impl Form for Plain {
    const NAME: &CStr = PLAIN;

    fn of(tensor: Tensor) -> Plain {
        let (manager, deleter) = (std::ptr::null_mut(), Some(Self::give_back as unsafe extern "C" fn(_)));
        Plain { tensor, manager, deleter }
    }
}

/// What a capsule points to: a managed tensor, and what that needs.
#[repr(C)]
struct Handed<F> {
    managed: F,
    extents: Vec<i64>,
    _held: Arc<Held>,
}

fn capsule<'py, F: Form>(py: Python<'py>, held: &Arc<Held>) -> PyResult<Bound<'py, PyAny>> {
    let (array, shared) = (&held.array, held.shared);
    let shape = array.shape();
    // The shape, then the strides.
    let mut extents: Vec<i64> = shape.iter().map(|extent| *extent as i64).collect();
    extents.extend((0..shape.len()).map(|k| shape[k + 1..].iter().product::<usize>() as i64));
    let (code, bits) = match array.ty() {
        Type::F32 => (2, 32),
        Type::F64 => (2, 64),
        Type::I32 => (0, 32),
        Type::I64 | Type::Index => (0, 64),
        Type::U32 => (1, 32),
        Type::Bool => (6, 8),
    };
    let tensor = Tensor {
        data: array.address().cast(),
        device: Place { kind: shared.kind, id: shared.ordinal },
        ndim: shape.len() as i32,
        dtype: DataType { code, bits, lanes: 1 },
        shape: extents.as_ptr(),
        strides: extents[shape.len()..].as_ptr(),
        byte_offset: 0,
    };
    let handed = Box::new(Handed { managed: F::of(tensor), extents, _held: held.clone() });
    let start = Box::into_raw(handed);
    // SAFETY: the pointer is not null, the name lives as long as the process, and the destructor knows both.
    let made = unsafe {
        let capsule = ffi::PyCapsule_New(start.cast(), F::NAME.as_ptr(), Some(discard::<F>));
        Bound::from_owned_ptr_or_err(py, capsule)
    };
    if made.is_err() {
        // SAFETY: nobody else has it.
        drop(unsafe { Box::from_raw(start) });
    }
    made
}

/// The destructor of a capsule: whoever consumed it gave it another name, and gives the tensor back himself.
unsafe extern "C" fn discard<F: Form>(capsule: *mut ffi::PyObject) {
    // SAFETY: the interpreter calls it with the capsule that it was made for, once.
    unsafe {
        if ffi::PyCapsule_IsValid(capsule, F::NAME.as_ptr()) == 1 {
            F::give_back(ffi::PyCapsule_GetPointer(capsule, F::NAME.as_ptr()).cast());
        }
    }
}
