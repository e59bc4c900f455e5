//! The devices of this process. They live until it ends, so that no thread pool is ever joined by an interpreter that
//! is going down, or by a child of `fork` in which its threads do not exist.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use ebbtide::Devices;
use ebbtide_runtime::Device;
use pyo3::prelude::*;

use crate::errors;

/// What was compiled in an earlier epoch is compiled again: the default device changed, or the process was forked.
static EPOCH: AtomicU64 = AtomicU64::new(1);

static DEVICES: Mutex<Option<Registry>> = Mutex::new(None);

#[derive(Default)]
struct Registry {
    default: Option<String>,
    made: HashMap<String, Device>,
}

fn registry() -> MutexGuard<'static, Option<Registry>> {
    DEVICES.lock().unwrap_or_else(PoisonError::into_inner)
}

pub fn epoch() -> u64 {
    EPOCH.load(Ordering::Relaxed)
}

/// The device of this name; the default one for `None`.
pub fn get(py: Python<'_>, name: Option<&str>) -> PyResult<Device> {
    // Exceptions are made when the lock is free: making them runs Python, which may wait for a thread that wants the lock.
    find(name).map_err(|error| match error {
        Refused::Unknown(name) => {
            let text = format!(
                "there is no device `{name}`: there are `cpu`, `cuda`, `interpreter` and `checked` (the interpreter, which \
                 stops at the first NaN)"
            );
            errors::raise(py, "DeviceError", &text, Vec::new())
        }
        Refused::Failed(error) => errors::exception(py, &error),
    })
}

enum Refused {
    Unknown(String),
    Failed(Box<ebbtide_runtime::Error>),
}

fn find(name: Option<&str>) -> Result<Device, Refused> {
    let mut guard = registry();
    let registry = guard.get_or_insert_default();
    let name = name.map(str::to_string).or_else(|| registry.default.clone()).unwrap_or_default();
    if let Some(device) = registry.made.get(&name) {
        return Ok(device.clone());
    }
    let made = match name.as_str() {
        // Arrays are the caller's, in host memory: the CPU unless somebody says otherwise.
        "" => match std::env::var_os("EBBTIDE_DEVICE").is_some_and(|said| !said.is_empty()) {
            true => Device::best(),
            false => Ok(Device::cpu()),
        },
        "cpu" => Ok(Device::cpu()),
        "interpreter" => Ok(Device::interpreter()),
        "checked" => Ok(Device::checked()),
        "cuda" => Device::cuda(),
        "_own_memory" => Ok(crate::test_devices::own_memory()),
        "_panicking" => Ok(crate::test_devices::panicking()),
        _ => return Err(Refused::Unknown(name)),
    };
    let device = made.map_err(|error| Refused::Failed(Box::new(error)))?;
    registry.made.insert(name, device.clone());
    Ok(device)
}

/// Makes a device the default one, and gives its name.
#[pyfunction]
pub fn set_device(py: Python<'_>, name: &str) -> PyResult<String> {
    let found = get(py, Some(name))?.name().to_string();
    registry().get_or_insert_default().default = Some(name.to_string());
    EPOCH.fetch_add(1, Ordering::Relaxed);
    Ok(found)
}

/// The name of the default device.
#[pyfunction]
pub fn device_name(py: Python<'_>) -> PyResult<String> {
    Ok(get(py, None)?.name().to_string())
}

/// Does the device of this name compute in host memory? Without a name, the default one.
#[pyfunction]
#[pyo3(signature = (name=None))]
pub fn in_host_memory(py: Python<'_>, name: Option<&str>) -> PyResult<bool> {
    Ok(get(py, name)?.backend().memory().is_none())
}

/// In a child of `fork` the threads of the parent's devices do not exist: devices are made anew when they are wanted.
#[pyfunction]
pub fn after_fork() {
    EPOCH.fetch_add(1, Ordering::Relaxed);
    // Another thread of the parent may have held the lock: then nothing here may wait for it.
    if let Ok(mut guard) = DEVICES.try_lock()
        && let Some(registry) = guard.as_mut()
    {
        std::mem::forget(std::mem::take(&mut registry.made));
    }
    crate::interrupt::after_fork();
}
