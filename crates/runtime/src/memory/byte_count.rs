//! How many bytes an array has.

use ebbtide_ir::Type;

use crate::error::{Error, Result};

/// The bytes of an array. Extents are indices of programs, so they fit 63 bits, also beside an extent of zero.
pub(crate) fn byte_count(shape: &[usize], ty: Type) -> Result<usize> {
    shape
        .iter()
        .try_fold(ty.size(), |bytes, extent| bytes.checked_mul(*extent))
        .filter(|bytes| *bytes <= isize::MAX as usize / 2)
        .filter(|_| shape.iter().all(|extent| i64::try_from(*extent).is_ok()))
        .ok_or_else(|| Error::TooLarge { shape: shape.to_vec() })
}
