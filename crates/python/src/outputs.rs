//! Arrays of NumPy that receive results: the engine writes them in place.

use ebbtide_ir::{Indices, Type};
use ebbtide_runtime::{AnyArray, Device};
use numpy::{PyArrayDyn, PyUntypedArrayMethods};
use pyo3::prelude::*;

use crate::arguments::{Elements, lend};
use crate::errors;

/// A new array of zeros, and the engine's view of it.
pub struct Output<'py> {
    pub object: Bound<'py, PyAny>,
    pub array: AnyArray,
}

impl<'py> Output<'py> {
    pub fn zeros(py: Python<'py>, device: &Device, ty: Type, shape: &[usize]) -> PyResult<Output<'py>> {
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
        let rank = shape.len();
        let elements = Elements { ty, start, shape: extents, rank, contiguous: true, writeable: true };
        let array = lend(device, &elements).map_err(|error| errors::exception(py, &error))?;
        Ok(Output { object, array })
    }

    /// The array; of rank 0 its one element, as a number of Python or NumPy.
    pub fn finish(self) -> PyResult<Bound<'py, PyAny>> {
        drop(self.array);
        self.object.call_method1("__getitem__", (pyo3::types::PyTuple::empty(self.object.py()),))
    }
}

fn new<'py, T: numpy::Element>(py: Python<'py>, shape: &[usize]) -> (Bound<'py, PyAny>, *mut u8) {
    let array = PyArrayDyn::<T>::zeros(py, shape.to_vec(), false);
    // SAFETY: the array was just made; its `data` is plain data.
    let start = unsafe { (*array.as_array_ptr()).fields.data.cast::<u8>() };
    (array.into_any(), start)
}

/// A copy of the elements of an array of the engine.
pub fn copied<'py>(py: Python<'py>, device: &Device, from: &AnyArray) -> PyResult<Bound<'py, PyAny>> {
    let mut output = Output::zeros(py, device, from.ty(), from.shape())?;
    output.array.copy_from_bytes(from.bytes()).map_err(|error| crate::errors::exception(py, &error))?;
    drop(output.array);
    Ok(output.object)
}
