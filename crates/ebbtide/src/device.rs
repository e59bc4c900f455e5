//! Which device runs programs.

use ebbtide_runtime::{Device, Error, Result};

/// The devices of this machine, as functions of [`Device`].
pub trait Devices: Sized {
    /// The best device that this machine has: the GPU, else the CPU; `EBBTIDE_DEVICE` (`cuda`, `cpu` or `interpreter`)
    /// overrides.
    ///
    /// ```
    /// use ebbtide::prelude::*;
    ///
    /// let device = Device::best()?;
    /// let u = device.array(&[1.0, 2.0, 3.0])?;
    /// assert_eq!(u.len(), 3);
    /// # Ok::<(), ebbtide::Error>(())
    /// ```
    fn best() -> Result<Self>;

    /// The first NVIDIA GPU; an error that says what is missing, where there is none.
    ///
    /// ```
    /// use ebbtide::prelude::*;
    ///
    /// match Device::cuda() {
    ///     Ok(device) => println!("{}", device.name()),
    ///     Err(error) => println!("{error}"),
    /// }
    /// ```
    fn cuda() -> Result<Self>;

    /// Refused: the name is [`cuda`](Devices::cuda).
    #[doc(hidden)]
    fn gpu() -> Result<Self>
    where
        Self: NamedCuda,
    {
        Self::cuda()
    }

    /// The CPU: C through the system's compiler; the interpreter, with a warning, where there is none.
    fn cpu() -> Self;

    /// The interpreter: slow, obvious, always there.
    fn interpreter() -> Self;

    /// The interpreter, which stops at the first NaN that a program writes: the run error says to which element of
    /// which array, at which line and in which iterations.
    ///
    /// With `EBBTIDE_CHECK=1` in the environment all the others are this one.
    fn checked() -> Self;
}

/// Nothing is: the error says which function there is.
#[diagnostic::on_unimplemented(
    message = "the GPU is `Device::cuda()?`; `Device::best()?` takes it where there is one",
    label = "there is no `gpu`"
)]
#[doc(hidden)]
pub trait NamedCuda {}

impl Devices for Device {
    fn best() -> Result<Device> {
        if check_is_on() {
            return Ok(Device::checked());
        }
        match std::env::var_os("EBBTIDE_DEVICE").filter(|name| !name.is_empty()) {
            Some(name) => by_name(&name.to_string_lossy()),
            None => Ok(Device::cuda().unwrap_or_else(|_| Device::cpu())),
        }
    }

    #[cfg(feature = "cuda")]
    fn cuda() -> Result<Device> {
        if check_is_on() {
            return Ok(Device::checked());
        }
        ebbtide_cuda::cuda().map_err(|reason| Error::NoDevice { device: "cuda", reason })
    }

    #[cfg(not(feature = "cuda"))]
    fn cuda() -> Result<Device> {
        if check_is_on() {
            return Ok(Device::checked());
        }
        let reason = "Ebbtide was built without its feature `cuda`".to_string();
        Err(Error::NoDevice { device: "cuda", reason })
    }

    fn cpu() -> Device {
        if check_is_on() { Device::checked() } else { ebbtide_cpu::cpu() }
    }

    fn interpreter() -> Device {
        if check_is_on() { Device::checked() } else { ebbtide_runtime::interpreter() }
    }

    fn checked() -> Device {
        ebbtide_runtime::checked()
    }
}

/// Does `EBBTIDE_CHECK` ask for checked runs?
fn check_is_on() -> bool {
    std::env::var("EBBTIDE_CHECK").is_ok_and(|value| !value.is_empty() && value != "0")
}

fn by_name(name: &str) -> Result<Device> {
    match name {
        "cuda" => Device::cuda(),
        "cpu" => Ok(Device::cpu()),
        "interpreter" => Ok(Device::interpreter()),
        _ => Err(Error::UnknownDevice { name: name.to_string() }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_are_found_by_name() {
        assert_eq!(by_name("interpreter").unwrap().name(), "interpreter");
        if let Err(error) = by_name("cuda") {
            assert!(error.to_string().starts_with("there is no cuda device here: "), "{error}");
        }
        let error = by_name("abacus").expect_err("there is no such device");
        assert_eq!(
            error.to_string(),
            "there is no device `abacus`: EBBTIDE_DEVICE can be `cuda`, `cpu` or `interpreter`"
        );
    }
}
