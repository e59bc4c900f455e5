//! What newcomers write to make an array on the host, without a device: one error, which says what to write.

use crate::array::Array;

/// No array is made without a device.
#[diagnostic::on_unimplemented(
    message = "an array is in the memory of a device, which makes it: `device.zeros([n, m])?`, `device.array(&[1.0, 2.0])?`",
    label = "made without a device",
    note = "`let device = Device::best()?;` is the device; `Array2::<f64>::zeros([n, m])` is for temporaries inside programs"
)]
pub trait WithoutDevice: Sized {
    #[doc(hidden)]
    fn made() -> Self;
}

/// Names that other libraries have.
#[doc(hidden)]
impl<T, const R: usize> Array<T, R> {
    pub fn zeros<S>(_shape: S) -> Array<T, R>
    where
        Array<T, R>: WithoutDevice,
    {
        WithoutDevice::made()
    }

    pub fn from_vec<S>(_elements: S) -> Array<T, R>
    where
        Array<T, R>: WithoutDevice,
    {
        WithoutDevice::made()
    }
}
