//! NumPy's `.npy`: one array in a file.

use std::fs::File;
use std::io::{BufReader, BufWriter, Read, Write};
use std::path::Path;

use ebbtide_runtime::{Array, Device, Element};
use ndarray::{ArrayD, ArrayViewD};
use ndarray_npy::{ReadNpyExt as _, ReadableElement, WritableElement, WriteNpyExt as _};

use crate::error::{Error, Result, io, misfit};

/// A type of elements that NumPy has too.
pub trait NpyElement: Element + ReadableElement + WritableElement {}

impl<T: Element + ReadableElement + WritableElement> NpyElement for T {}

/// Writes an array to a file that `numpy.load` reads, last dimension fastest.
///
/// ```
/// # let dir = tempfile::tempdir().unwrap();
/// # let path = dir.path().join("u.npy");
/// use ebbtide_fields::{read_npy, write_npy};
/// # let device = ebbtide_runtime::interpreter();
/// let u = device.from_fn([2, 3], |[i, j]| i as f64 + 0.1 * j as f64)?;
/// write_npy(&path, &u)?;
/// let again = read_npy::<f64, 2>(&device, &path)?;
/// assert_eq!(again.to_vec(), u.to_vec());
/// # Ok::<(), ebbtide_fields::Error>(())
/// ```
pub fn write_npy<T: NpyElement, const R: usize>(path: impl AsRef<Path>, array: &Array<T, R>) -> Result<()> {
    let path = path.as_ref();
    let mut file = BufWriter::new(File::create(path).map_err(io(path))?);
    view(path, array)?.write_npy(&mut file).map_err(|error| misfit(path, error))?;
    file.flush().map_err(io(path))
}

/// Reads the array of a file that `numpy.save` wrote, in either order of dimensions. The type of its elements and its rank
/// are those that the caller asks for, or it is an error.
pub fn read_npy<T: NpyElement, const R: usize>(
    device: &Device,
    path: impl AsRef<Path>,
) -> Result<Array<T, R>> {
    let path = path.as_ref();
    let mut file = BufReader::new(File::open(path).map_err(io(path))?);
    let elements = ArrayD::<T>::read_npy(&mut file).map_err(|error| misfit(path, error))?;
    if file.read(&mut [0]).map_err(io(path))? != 0 {
        return Err(misfit(path, "there is more in it than one array"));
    }
    array(device, path, "the array", &elements)
}

/// The elements of an array as `ndarray` has them.
pub(crate) fn view<'a, T: Element, const R: usize>(
    path: &Path,
    array: &'a Array<T, R>,
) -> Result<ArrayViewD<'a, T>> {
    ArrayViewD::from_shape(array.shape().to_vec(), array.as_slice()).map_err(|error| misfit(path, error))
}

/// An array of the rank that was asked for.
pub(crate) fn array<T: Element, const R: usize>(
    device: &Device,
    path: &Path,
    name: &str,
    elements: &ArrayD<T>,
) -> Result<Array<T, R>> {
    let Ok(shape) = <[usize; R]>::try_from(elements.shape()) else {
        let (found, shape) = (elements.ndim(), elements.shape());
        return Err(misfit(path, format!("{name} has rank {found} (shape {shape:?}), not rank {R}")));
    };
    match elements.as_slice() {
        Some(elements) => device.array_with_shape(shape, elements),
        // It was written with the first dimension fastest.
        None => device.array_with_shape(shape, &elements.iter().copied().collect::<Vec<T>>()),
    }
    .map_err(Error::Array)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ebbtide_runtime::interpreter;

    #[test]
    fn arrays_of_all_types_and_ranks_come_back() {
        fn comes_back<T: NpyElement, const R: usize>(array: &Array<T, R>) {
            let dir = tempfile::tempdir().unwrap();
            let path = dir.path().join("a.npy");
            write_npy(&path, array).unwrap();
            let again = read_npy::<T, R>(&interpreter(), &path).unwrap();
            assert_eq!((again.shape(), again.to_vec()), (array.shape(), array.to_vec()));
        }
        let device = interpreter();
        comes_back(&device.scalar(2.5_f64).unwrap());
        comes_back(&device.array(&[1.5_f32, -2.0]).unwrap());
        comes_back(&device.from_fn([2, 3], |[i, j]| (i * 3 + j) as i32).unwrap());
        comes_back(&device.from_fn([2, 3, 4], |[i, j, k]| (i + j + k) as i64).unwrap());
        comes_back(&device.from_fn([1, 2, 1, 2], |[_, j, _, l]| (j + l) as u32).unwrap());
        comes_back(&device.array(&[true, false, true]).unwrap());
        comes_back(&device.zeros::<f64, 2>([3, 0]).unwrap());
    }

    #[test]
    fn the_file_is_the_one_that_numpy_writes() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.npy");
        write_npy(&path, &interpreter().array_with_shape([1, 2], &[1.0_f64, 2.0]).unwrap()).unwrap();
        let bytes = std::fs::read(&path).unwrap();
        assert_eq!(&bytes[..8], b"\x93NUMPY\x01\x00");
        let header = String::from_utf8_lossy(&bytes[10..bytes.len() - 16]);
        assert!(header.contains("'descr': '<f8', 'fortran_order': False, 'shape': (1, 2)"), "{header}");
        assert_eq!(bytes[bytes.len() - 8..], 2.0_f64.to_le_bytes());
    }

    #[test]
    fn another_rank_or_type_is_an_error_that_names_both() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.npy");
        let device = interpreter();
        write_npy(&path, &device.zeros::<f64, 2>([2, 3]).unwrap()).unwrap();
        let error = read_npy::<f64, 1>(&device, &path).unwrap_err().to_string();
        assert!(error.ends_with("a.npy: the array has rank 2 (shape [2, 3]), not rank 1"), "{error}");
        assert!(read_npy::<f32, 2>(&device, &path).is_err());
        assert!(read_npy::<f32, 2>(&device, dir.path().join("none.npy")).is_err());
    }
}
