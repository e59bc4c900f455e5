//! Arrays that receive results, in the memory of the device: those of NumPy, which the engine writes in place, or those on a
//! GPU, which leave by DLPack.

use ebbtide_ir::{Indices, Type};
use ebbtide_runtime::{AnyArray, Device};
use numpy::{PyArrayDyn, PyUntypedArrayMethods};
use pyo3::prelude::*;

use crate::arguments::{Elements, Where, lend};
use crate::device_array::DeviceArray;
use crate::errors;

/// A new array of zeros, and the engine's view of it.
pub struct Output<'py> {
    py: Python<'py>,
    /// The array of NumPy; none on a device with memory of its own.
    object: Option<Bound<'py, PyAny>>,
    pub array: AnyArray,
}

impl<'py> Output<'py> {
    pub fn zeros(py: Python<'py>, device: &Device, ty: Type, shape: &[usize]) -> PyResult<Output<'py>> {
        let failed = |error: ebbtide_runtime::Error| errors::exception(py, &error);
        if device.backend().memory().is_some() {
            let array = AnyArray::zeros(device, ty, shape).map_err(failed)?;
            return Ok(Output { py, object: None, array });
        }
        let (object, array) = of_numpy(py, device, ty, shape).map_err(failed)?;
        Ok(Output { py, object: Some(object), array })
    }

    /// The array; of rank 0 its one element, as a number of Python or NumPy.
    pub fn finish(self) -> PyResult<Bound<'py, PyAny>> {
        let Output { py, object, array } = self;
        let object = match object {
            Some(object) => object,
            None if array.shape().is_empty() => copied(py, &array)?,
            None => return Ok(Bound::new(py, DeviceArray::new(py, array)?)?.into_any()),
        };
        object.call_method1("__getitem__", (pyo3::types::PyTuple::empty(py),))
    }
}

fn of_numpy<'py>(
    py: Python<'py>,
    device: &Device,
    ty: Type,
    shape: &[usize],
) -> ebbtide_runtime::Result<(Bound<'py, PyAny>, AnyArray)> {
    let (object, start) = match ty {
        Type::F32 => new::<f32>(py, shape),
        Type::F64 => new::<f64>(py, shape),
        Type::I32 => new::<i32>(py, shape),
        Type::I64 | Type::Index => new::<i64>(py, shape),
        Type::U32 => new::<u32>(py, shape),
        Type::Bool => new::<bool>(py, shape),
    };
    let mut extents = [0; Indices::MAX_RANK];
    extents.iter_mut().zip(shape).for_each(|(extent, given)| *extent = *given);
    let (rank, place) = (shape.len(), Where::Host);
    let elements = Elements { ty, start, shape: extents, rank, place, contiguous: true, writeable: true };
    Ok((object, lend(device, &elements)?))
}

fn new<'py, T: numpy::Element>(py: Python<'py>, shape: &[usize]) -> (Bound<'py, PyAny>, *mut u8) {
    let array = PyArrayDyn::<T>::zeros(py, shape.to_vec(), false);
    // SAFETY: the array was just made; its `data` is plain data.
    let start = unsafe { (*array.as_array_ptr()).fields.data.cast::<u8>() };
    (array.into_any(), start)
}

/// A copy of the elements of an array of the engine, as an array of NumPy.
pub fn copied<'py>(py: Python<'py>, from: &AnyArray) -> PyResult<Bound<'py, PyAny>> {
    let failed = |error: ebbtide_runtime::Error| errors::exception(py, &error);
    let host = ebbtide_runtime::interpreter();
    let (object, mut array) = of_numpy(py, &host, from.ty(), from.shape()).map_err(failed)?;
    array.copy_from_bytes(from.bytes()).map_err(failed)?;
    Ok(object)
}
