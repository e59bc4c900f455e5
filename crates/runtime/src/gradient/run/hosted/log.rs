//! What the host did where a differentiated program yielded.
//!
//! Shapes are numbered: 0 are those of the launch, and each [`Reshape`] leads to the next number.

use std::collections::BTreeMap;

use ebbtide_ir::{ArrayId, Indices, RegionId, Type};

/// The execution of a region: the region of the source, and how often it had been executed before.
pub(crate) type Visit = (RegionId, i64);

/// Elements of an array and their values; an element is changed as a whole.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Patch {
    /// The place of each element, in bytes.
    pub elements: Vec<usize>,
    pub bytes: Vec<u8>,
}

/// What the host changed of one array.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Change {
    pub array: ArrayId,
    /// The numbers of the shapes before and after.
    pub shapes: (usize, usize),
    /// The elements that are not what they were, in the shape before the change.
    pub before: Patch,
    /// The same in the shape after it: what neither the shape nor zeros explain.
    pub after: Patch,
}

/// Shapes that the host gave to arrays where a region yielded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Reshape {
    pub at: Visit,
    pub shapes: BTreeMap<ArrayId, Vec<usize>>,
}

/// What the host did.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Log {
    pub done: BTreeMap<Visit, Vec<Change>>,
    /// In the order of the program.
    pub reshapes: Vec<Reshape>,
}

impl Log {
    /// The changes as bytes, for a durable run; what [`Log::reshape_words`] gives belongs to them.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut put = |word: u64| bytes.extend(word.to_le_bytes());
        for ((region, visit), changes) in &self.done {
            put(region.index() as u64);
            put(*visit as u64);
            put(changes.len() as u64);
            for change in changes {
                put(change.array.index() as u64);
                put(change.shapes.0 as u64);
                put(change.shapes.1 as u64);
                for patch in [&change.before, &change.after] {
                    put(patch.elements.len() as u64);
                    put(patch.bytes.len() as u64);
                    patch.elements.iter().for_each(|at| put(*at as u64));
                    // Padded, so that words stay words.
                    for chunk in patch.bytes.chunks(8) {
                        let mut word = [0; 8];
                        word[..chunk.len()].copy_from_slice(chunk);
                        put(u64::from_le_bytes(word));
                    }
                }
            }
        }
        bytes
    }

    /// Does it speak of elements that there are, and of values that they can have? `size` gives the bytes of an array in
    /// the shapes of a number, and the type of its elements.
    pub fn fits(&self, size: impl Fn(ArrayId, usize) -> Option<(usize, Type)>) -> bool {
        let fits = |array: ArrayId, number: usize, patch: &Patch| {
            let Some((bytes, ty)) = size(array, number) else { return false };
            let element = ty.size();
            if ty == Type::Bool && patch.bytes.iter().any(|byte| *byte > 1) {
                return false;
            }
            let inside = |at: &usize| at.checked_add(element).is_some_and(|end| end <= bytes);
            let aligned = |at: &usize| at.is_multiple_of(element);
            let length = patch.elements.len().checked_mul(element);
            patch.elements.iter().all(|at| inside(at) && aligned(at)) && length == Some(patch.bytes.len())
        };
        self.done.values().flatten().all(|change| {
            let (from, to) = change.shapes;
            fits(change.array, from, &change.before) && fits(change.array, to, &change.after)
        })
    }

    /// What [`Log::to_bytes`] made; `None` for anything else.
    pub fn from_bytes(bytes: &[u8]) -> Option<Log> {
        let (words, []) = bytes.as_chunks::<8>() else { return None };
        let mut words = words.iter().map(|word| u64::from_le_bytes(*word));
        let mut log = Log::default();
        let index = |word: u64| u32::try_from(word).ok().map(|index| index as usize);
        while let Some(region) = words.next() {
            let key = (RegionId::from_index(index(region)?), words.next()? as i64);
            let mut changes = Vec::new();
            for _ in 0..words.next()? {
                let array = ArrayId::from_index(index(words.next()?)?);
                let shapes = (index(words.next()?)?, index(words.next()?)?);
                let mut patch = || {
                    let (count, length) = (words.next()?, words.next()? as usize);
                    let elements: Vec<usize> =
                        (0..count).map(|_| Some(words.next()? as usize)).collect::<Option<_>>()?;
                    let mut bytes: Vec<u8> = Vec::new();
                    for _ in 0..length.div_ceil(8) {
                        bytes.extend(words.next()?.to_le_bytes());
                    }
                    bytes.truncate(length);
                    Some(Patch { elements, bytes })
                };
                let (before, after) = (patch()?, patch()?);
                changes.push(Change { array, shapes, before, after });
            }
            log.done.insert(key, changes);
        }
        Some(log)
    }

    /// The reshapes as numbers, for a durable run.
    pub fn reshape_words(&self) -> Vec<u64> {
        let mut words = Vec::new();
        for reshape in &self.reshapes {
            let ((region, visit), shapes) = (reshape.at, &reshape.shapes);
            words.extend([region.index() as u64, visit as u64, shapes.len() as u64]);
            for (array, shape) in shapes {
                words.extend([array.index() as u64, shape.len() as u64]);
                words.extend(shape.iter().map(|extent| *extent as u64));
            }
        }
        words
    }

    /// What [`Log::reshape_words`] made; `None` for anything else.
    pub fn reshapes_of(words: &[u64]) -> Option<Vec<Reshape>> {
        let mut words = words.iter().copied();
        let mut reshapes = Vec::new();
        let index = |word: u64| u32::try_from(word).ok().map(|index| index as usize);
        while let Some(region) = words.next() {
            let at = (RegionId::from_index(index(region)?), words.next()? as i64);
            let mut shapes = BTreeMap::new();
            for _ in 0..words.next()? {
                let array = ArrayId::from_index(index(words.next()?)?);
                let rank = words.next().filter(|rank| *rank <= Indices::MAX_RANK as u64)?;
                let extent = |word: u64| usize::try_from(word).ok().filter(|n| i64::try_from(*n).is_ok());
                let shape = (0..rank).map(|_| extent(words.next()?)).collect::<Option<_>>()?;
                shapes.insert(array, shape);
            }
            reshapes.push(Reshape { at, shapes });
        }
        Some(reshapes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(elements: Vec<usize>, bytes: &[u8]) -> Change {
        let patch =
            |by: u8| Patch { elements: elements.clone(), bytes: bytes.iter().map(|b| b + by).collect() };
        Change { array: ArrayId::from_index(3), shapes: (0, 0), before: patch(0), after: patch(1) }
    }

    #[test]
    fn a_log_comes_back_as_it_was_and_half_of_one_does_not() {
        let mut log = Log::default();
        log.done.insert(
            (RegionId::from_index(0), 7),
            vec![change(vec![0, 4, 12], &[1; 12]), change(vec![], &[])],
        );
        log.done.insert((RegionId::from_index(2), -1), vec![]);
        let bytes = log.to_bytes();
        assert_eq!(Log::from_bytes(&bytes), Some(log));
        assert_eq!(Log::from_bytes(&[]), Some(Log::default()));
        assert_eq!(Log::from_bytes(&bytes[..bytes.len() - 8]), None);
        assert_eq!(Log::from_bytes(&bytes[1..]), None);
        let log = Log::from_bytes(&bytes).unwrap();
        assert!(log.fits(|_, _| Some((16, Type::F32))));
        assert!(!log.fits(|_, _| Some((12, Type::F32))) && !log.fits(|_, _| Some((16, Type::F64))));
        assert!(!log.fits(|_, _| None));
        // A `bool` is 0 or 1.
        let mut log = Log::default();
        log.done.insert((RegionId::from_index(0), 0), vec![change(vec![3], &[1])]);
        assert!(!log.fits(|_, _| Some((16, Type::Bool))));
    }

    #[test]
    fn elements_are_held_against_the_shapes_that_a_change_led_to() {
        let mut log = Log::default();
        let grown = Change { shapes: (0, 1), ..change(vec![12], &[1; 4]) };
        log.done.insert((RegionId::from_index(0), 0), vec![Change { before: Patch::default(), ..grown }]);
        assert!(log.fits(|_, number| Some((if number == 1 { 16 } else { 8 }, Type::F32))));
        assert!(!log.fits(|_, _| Some((8, Type::F32))));
        assert!(!log.fits(|_, number| (number == 0).then_some((16, Type::F32))));
    }

    #[test]
    fn reshapes_come_back_as_they_were_and_half_of_one_does_not() {
        let shapes = BTreeMap::from([(ArrayId::from_index(2), vec![7, 2]), (ArrayId::from_index(5), vec![])]);
        let reshapes = vec![
            Reshape { at: (RegionId::from_index(1), 4), shapes },
            Reshape { at: (RegionId::from_index(0), 9), shapes: BTreeMap::new() },
        ];
        let log = Log { reshapes, ..Log::default() };
        let words = log.reshape_words();
        assert_eq!(Log::reshapes_of(&words), Some(log.reshapes));
        assert_eq!(Log::reshapes_of(&words[..words.len() - 1]), None);
        assert_eq!(Log::reshapes_of(&[0, 0, 1, 2, 7, 1, 1, 1, 1, 1, 1, 1]), None);
        assert_eq!(Log::reshapes_of(&[0, 0, 1, 2, 1, u64::MAX]), None);
    }
}
