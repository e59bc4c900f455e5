use std::collections::HashMap;
use std::hash::{BuildHasher as _, RandomState};
use std::ops::Range;

use crate::buffer::Buffer;
use crate::{Dtype, Element, Error};

/// What the rest of a program still needs: named arrays.
///
/// A state is filled with [`put`](State::put) and read with [`get`](State::get), from and into the caller's
/// own buffers. A state that is cleared and filled again with arrays of the same sizes allocates nothing.
///
/// ```
/// use ebbtide_checkpoint::State;
///
/// let (temperature, time) = ([20.0, 21.5, 19.0], 0.25);
/// let mut state = State::new();
/// state.put("temperature", &temperature)?;
/// state.put_scalar("time", time)?;
///
/// let mut back = [0.0; 3];
/// state.get("temperature", &mut back)?;
/// assert_eq!(back, temperature);
/// assert_eq!(state.scalar::<f64>("time")?, time);
/// # Ok::<(), ebbtide_checkpoint::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct State {
    /// The first `used` are the arrays; the others keep their storage for the next filling.
    arrays: Vec<Array>,
    used: usize,
    /// By the hash of its name, an array: a state of very many is filled in linear time. Of two names with one hash the
    /// first is here.
    by_name: HashMap<u64, usize>,
    hasher: RandomState,
    data: Buffer,
}

#[derive(Clone, Debug)]
struct Array {
    name: String,
    dtype: Dtype,
    shape: Vec<usize>,
    range: Range<usize>,
}

/// One array of a [`State`], seen from outside.
#[derive(Clone, Copy, Debug)]
pub struct ArrayView<'a> {
    /// Its name.
    pub name: &'a str,
    /// The type of its elements.
    pub dtype: Dtype,
    /// Its extents, outermost first; empty for a scalar.
    pub shape: &'a [usize],
    /// Its elements, little-endian.
    pub bytes: &'a [u8],
}

impl State {
    /// A state with nothing in it.
    pub fn new() -> Self {
        Self::default()
    }

    /// Forgets all arrays; storage stays for the next filling.
    pub fn clear(&mut self) {
        self.used = 0;
        self.by_name.clear();
        self.data.clear();
    }

    /// Makes room for arrays of so many bytes together, so that putting them allocates nothing more.
    pub fn reserve(&mut self, bytes: usize) -> Result<(), Error> {
        self.data.reserve(bytes)
    }

    /// How many bytes of arrays there is room for.
    pub fn capacity(&self) -> usize {
        self.data.capacity()
    }

    /// Adds an array of rank one.
    pub fn put<T: Element>(&mut self, name: &str, values: &[T]) -> Result<(), Error> {
        self.put_shaped(name, &[values.len()], values)
    }

    /// Adds a scalar: an array of rank zero.
    pub fn put_scalar<T: Element>(&mut self, name: &str, value: T) -> Result<(), Error> {
        self.put_shaped(name, &[], &[value])
    }

    /// Adds an array of any rank; `values` are its elements in row-major order.
    pub fn put_shaped<T: Element>(&mut self, name: &str, shape: &[usize], values: &[T]) -> Result<(), Error> {
        if elements(shape) != Some(values.len()) {
            return Err(Error::WrongArray {
                name: name.to_owned(),
                found: format!("{} values", values.len()),
                expected: format!("as many as shape {shape:?} has"),
            });
        }
        T::encode(values, self.allot(name, T::DTYPE, shape)?);
        Ok(())
    }

    /// Adds an array of any rank, whose elements `fill` writes in row-major order, little-endian, all of them.
    pub fn put_with<R>(
        &mut self,
        name: &str,
        dtype: Dtype,
        shape: &[usize],
        fill: impl FnOnce(&mut [u8]) -> R,
    ) -> Result<R, Error> {
        Ok(fill(self.allot(name, dtype, shape)?))
    }

    /// Adds an array and returns its bytes, to be filled by the caller: their content is unspecified.
    pub fn allot(&mut self, name: &str, dtype: Dtype, shape: &[usize]) -> Result<&mut [u8], Error> {
        // A file keeps its own notes under this name.
        if name == "__metadata__" || self.find(name).is_some() {
            return Err(Error::DuplicateArray { name: name.to_owned() });
        }
        let bytes =
            elements(shape).and_then(|n| n.checked_mul(dtype.size())).ok_or_else(|| Error::WrongArray {
                name: name.to_owned(),
                found: format!("shape {shape:?}"),
                expected: "an array that fits into memory".to_owned(),
            })?;
        let start = self.data.len();
        self.data.extend(bytes)?;
        let range = start..start + bytes;
        match self.arrays.get_mut(self.used) {
            Some(spare) => {
                spare.name.clear();
                spare.name.push_str(name);
                spare.dtype = dtype;
                spare.shape.clear();
                spare.shape.extend_from_slice(shape);
                spare.range = range;
            }
            None => {
                self.arrays.push(Array { name: name.to_owned(), dtype, shape: shape.to_vec(), range });
            }
        }
        self.by_name.entry(self.hasher.hash_one(name)).or_insert(self.used);
        self.used += 1;
        Ok(&mut self.data.as_mut_slice()[start..])
    }

    /// Copies an array into `values`, which must have its element type and number of elements.
    pub fn get<T: Element>(&self, name: &str, values: &mut [T]) -> Result<(), Error> {
        let array = self.typed::<T>(name)?;
        let held = array.bytes.len() / T::DTYPE.size();
        if held != values.len() {
            return Err(Error::WrongArray {
                name: name.to_owned(),
                found: format!("{held} values"),
                expected: format!("room for {}", values.len()),
            });
        }
        T::decode(array.bytes, values);
        Ok(())
    }

    /// Copies an array into a new vector, whatever its length.
    pub fn get_vec<T: Element>(&self, name: &str) -> Result<Vec<T>, Error> {
        let array = self.typed::<T>(name)?;
        let count = array.bytes.len() / T::DTYPE.size();
        let mut values = Vec::new();
        values.try_reserve_exact(count).map_err(|_| Error::NoMemory { bytes: array.bytes.len() as u64 })?;
        values.resize(count, T::zero());
        T::decode(array.bytes, &mut values);
        Ok(values)
    }

    /// The value of a scalar.
    pub fn scalar<T: Element>(&self, name: &str) -> Result<T, Error> {
        let mut value = [T::zero()];
        self.get(name, &mut value)?;
        Ok(value[0])
    }

    /// The array of this name.
    pub fn array(&self, name: &str) -> Option<ArrayView<'_>> {
        self.find(name).map(|array| self.view(array))
    }

    /// All arrays, in the order in which they were added.
    pub fn arrays(&self) -> impl ExactSizeIterator<Item = ArrayView<'_>> {
        self.arrays[..self.used].iter().map(|array| self.view(array))
    }

    /// The bytes of all arrays together.
    pub fn bytes(&self) -> u64 {
        self.data.len() as u64
    }

    /// The bytes of all arrays, one after the other in the order in which they were added.
    pub fn data(&self) -> &Buffer {
        &self.data
    }

    /// These bytes, to be changed.
    pub fn data_mut(&mut self) -> &mut [u8] {
        self.data.as_mut_slice()
    }

    fn find(&self, name: &str) -> Option<&Array> {
        let first = self.arrays.get(*self.by_name.get(&self.hasher.hash_one(name))?)?;
        if first.name == name {
            return Some(first);
        }
        self.arrays[..self.used].iter().find(|array| array.name == name)
    }

    fn view<'a>(&'a self, array: &'a Array) -> ArrayView<'a> {
        ArrayView {
            name: &array.name,
            dtype: array.dtype,
            shape: &array.shape,
            bytes: &self.data.as_slice()[array.range.clone()],
        }
    }

    fn typed<T: Element>(&self, name: &str) -> Result<ArrayView<'_>, Error> {
        let Some(array) = self.array(name) else {
            let known: Vec<&str> = self.arrays().map(|array| array.name).collect();
            return Err(Error::NoArray { name: name.to_owned(), known: known.join(", ") });
        };
        if array.dtype != T::DTYPE {
            return Err(Error::WrongArray {
                name: name.to_owned(),
                found: format!("elements of type {}", array.dtype),
                expected: T::DTYPE.to_string(),
            });
        }
        Ok(array)
    }
}

/// The number of elements of a shape, if it can be counted.
fn elements(shape: &[usize]) -> Option<usize> {
    shape.iter().try_fold(1_usize, |product, &extent| product.checked_mul(extent))
}

impl PartialEq for State {
    fn eq(&self, other: &Self) -> bool {
        self.arrays().eq(other.arrays())
    }
}

impl PartialEq for ArrayView<'_> {
    fn eq(&self, other: &Self) -> bool {
        (self.name, self.dtype, self.shape) == (other.name, other.dtype, other.shape)
            && self.bytes == other.bytes
    }
}
