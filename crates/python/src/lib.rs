//! The native half of the Python package `ebbtide`.
//!
//! It knows arguments, launches and exceptions. It does not know Python's syntax (that is `python/ebbtide/_front`), nor
//! what a program means (that is `ir`).

mod arguments;
mod build;
mod device;
mod device_array;
mod dlpack;
mod errors;
mod gradient;
mod interrupt;
mod outputs;
mod plan;
mod product;
mod program;
mod schedule;
mod sweep;
mod test_devices;
mod yielded;

use pyo3::prelude::*;

/// Locks guard what threads share, so the interpreter's own lock is not needed.
#[pymodule(gil_used = false)]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    interrupt::begin(module.py())?;
    module.add_class::<build::Builder>()?;
    module.add_class::<build::Ir>()?;
    module.add_class::<device_array::DeviceArray>()?;
    module.add_class::<program::ProgramBase>()?;
    module.add_class::<gradient::DerivativeBase>()?;
    module.add_class::<plan::Plan>()?;
    module.add_class::<yielded::Yielded>()?;
    module.add_class::<schedule::Schedule>()?;
    module.add_class::<schedule::Action>()?;
    module.add_function(wrap_pyfunction!(device::set_device, module)?)?;
    module.add_function(wrap_pyfunction!(device::device_name, module)?)?;
    module.add_function(wrap_pyfunction!(device::in_host_memory, module)?)?;
    module.add_function(wrap_pyfunction!(device_array::to_device, module)?)?;
    module.add_function(wrap_pyfunction!(device::after_fork, module)?)?;
    module.add_function(wrap_pyfunction!(sweep::run_durable, module)?)?;
    Ok(())
}
