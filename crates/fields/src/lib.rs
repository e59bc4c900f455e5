//! Arrays in files that other programs read: NumPy's `.npy` and `.npz` (feature `npy`), and VTK's image data, which
//! ParaView and VisIt show.
//!
//! Checkpoints have a format of their own, with checksums: see `Arrays::save` and `load`.
#![forbid(unsafe_code)]

mod error;
#[cfg(feature = "npy")]
mod npy;
#[cfg(feature = "npy")]
mod npz;
mod vtk;

pub use error::{Error, Result};
#[cfg(feature = "npy")]
pub use npy::{NpyElement, read_npy, write_npy};
#[cfg(feature = "npy")]
pub use npz::{NpzReader, NpzWriter};
pub use vtk::{Image, VtkElement, write_series};
