//! NumPy's `.npz`: several arrays in a file, by name.

use std::fs::File;
use std::path::{Path, PathBuf};

use ebbtide_runtime::{Array, Device};
use ndarray::IxDyn;

use crate::error::{Result, io, misfit};
use crate::npy::{NpyElement, array, view};

/// Writes arrays to a file that `numpy.load` reads. Nothing is compressed.
///
/// ```
/// # let dir = tempfile::tempdir().unwrap();
/// # let path = dir.path().join("state.npz");
/// use ebbtide_fields::{NpzReader, NpzWriter};
/// # let device = ebbtide_runtime::interpreter();
/// let (u, steps) = (device.array(&[1.0, 2.0])?, device.scalar(7_i64)?);
/// NpzWriter::create(&path)?.add("u", &u)?.add("steps", &steps)?.finish()?;
///
/// let mut file = NpzReader::open(&path)?;
/// assert_eq!(file.names()?, ["u", "steps"]);
/// assert_eq!(file.read::<f64, 1>(&device, "u")?.to_vec(), [1.0, 2.0]);
/// # Ok::<(), ebbtide_fields::Error>(())
/// ```
pub struct NpzWriter {
    path: PathBuf,
    file: ndarray_npy::NpzWriter<File>,
}

impl NpzWriter {
    /// A new file; one that has this name already is overwritten.
    pub fn create(path: impl AsRef<Path>) -> Result<NpzWriter> {
        let path = path.as_ref().to_path_buf();
        let file = File::create(&path).map_err(io(&path))?;
        Ok(NpzWriter { path, file: ndarray_npy::NpzWriter::new(file) })
    }

    /// Adds an array under this name.
    pub fn add<T: NpyElement, const R: usize>(
        mut self,
        name: &str,
        array: &Array<T, R>,
    ) -> Result<NpzWriter> {
        let view = view(&self.path, array)?;
        let added = self.file.add_array(format!("{name}.npy"), &view);
        added.map_err(|error| misfit(&self.path, format!("`{name}`: {error}")))?;
        Ok(self)
    }

    /// Ends the file. Without this it cannot be read.
    pub fn finish(self) -> Result<()> {
        let path = self.path;
        self.file.finish().map_err(|error| misfit(&path, error))?;
        Ok(())
    }
}

/// Reads arrays of a file that `numpy.savez`, `numpy.savez_compressed` or [`NpzWriter`] wrote.
pub struct NpzReader {
    path: PathBuf,
    file: ndarray_npy::NpzReader<File>,
}

impl NpzReader {
    /// Opens a file.
    pub fn open(path: impl AsRef<Path>) -> Result<NpzReader> {
        let path = path.as_ref().to_path_buf();
        let file = File::open(&path).map_err(io(&path))?;
        let file = ndarray_npy::NpzReader::new(file).map_err(|error| misfit(&path, error))?;
        Ok(NpzReader { path, file })
    }

    /// The names of the arrays in it, in order.
    pub fn names(&mut self) -> Result<Vec<String>> {
        let names = self.file.names().map_err(|error| misfit(&self.path, error))?;
        Ok(names.into_iter().map(|name| name.trim_end_matches(".npy").to_string()).collect())
    }

    /// The array of this name.
    pub fn read<T: NpyElement, const R: usize>(
        &mut self,
        device: &Device,
        name: &str,
    ) -> Result<Array<T, R>> {
        let found = self.file.by_name::<ndarray::OwnedRepr<T>, IxDyn>(&format!("{name}.npy"));
        let elements = match found {
            Ok(elements) => elements,
            Err(error) => {
                let names = self.names()?.join(", ");
                return Err(misfit(&self.path, format!("`{name}`: {error}; it holds {names}")));
            }
        };
        array(device, &self.path, &format!("`{name}`"), &elements)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ebbtide_runtime::interpreter;

    #[test]
    fn a_missing_name_lists_those_that_are_there() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.npz");
        let device = interpreter();
        let u = device.array(&[1.0, 2.0]).unwrap();
        NpzWriter::create(&path).unwrap().add("u", &u).unwrap().add("v", &u).unwrap().finish().unwrap();
        let mut file = NpzReader::open(&path).unwrap();
        let error = file.read::<f64, 1>(&device, "w").unwrap_err().to_string();
        assert!(error.contains("`w`") && error.contains("it holds u, v"), "{error}");
        let error = file.read::<f64, 2>(&device, "v").unwrap_err().to_string();
        assert!(error.contains("`v` has rank 1 (shape [2]), not rank 2"), "{error}");
    }
}
