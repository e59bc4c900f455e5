//! What the host did where a differentiated program yielded.

use std::collections::BTreeMap;

use ebbtide_ir::{ArrayId, RegionId, Type};

/// The elements of an array that the host changed.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Change {
    pub array: ArrayId,
    /// Which bytes, and what they were and became; an element is changed as a whole.
    pub elements: Vec<usize>,
    pub old: Vec<u8>,
    pub new: Vec<u8>,
}

/// What the host did, by region of the source and number of its execution.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Log {
    pub done: BTreeMap<(RegionId, i64), Vec<Change>>,
}

impl Log {
    /// All of it as bytes, for a durable run.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut put = |word: u64| bytes.extend(word.to_le_bytes());
        for ((region, visit), changes) in &self.done {
            put(region.index() as u64);
            put(*visit as u64);
            put(changes.len() as u64);
            for change in changes {
                put(change.array.index() as u64);
                put(change.elements.len() as u64);
                put(change.old.len() as u64);
                change.elements.iter().for_each(|at| put(*at as u64));
                // Padded, so that words stay words.
                for values in [&change.old, &change.new] {
                    for chunk in values.chunks(8) {
                        let mut word = [0; 8];
                        word[..chunk.len()].copy_from_slice(chunk);
                        put(u64::from_le_bytes(word));
                    }
                }
            }
        }
        bytes
    }

    /// Does it speak of elements that there are, and of values that they can have? `size` gives the bytes of an array and
    /// the type of its elements.
    pub fn fits(&self, size: impl Fn(ArrayId) -> Option<(usize, Type)>) -> bool {
        self.done.values().flatten().all(|change| {
            let Some((bytes, ty)) = size(change.array) else { return false };
            let element = ty.size();
            if ty == Type::Bool && change.old.iter().chain(&change.new).any(|byte| *byte > 1) {
                return false;
            }
            let inside = |at: &usize| at.checked_add(element).is_some_and(|end| end <= bytes);
            let length = change.elements.len().checked_mul(element);
            let aligned = |at: &usize| at.is_multiple_of(element);
            change.elements.iter().all(inside)
                && change.elements.iter().all(aligned)
                && length == Some(change.old.len())
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
                let (count, length) = (words.next()?, words.next()? as usize);
                let elements: Vec<usize> =
                    (0..count).map(|_| Some(words.next()? as usize)).collect::<Option<_>>()?;
                let mut values = || {
                    let mut values: Vec<u8> = Vec::new();
                    for _ in 0..length.div_ceil(8) {
                        values.extend(words.next()?.to_le_bytes());
                    }
                    values.truncate(length);
                    Some(values)
                };
                let (old, new) = (values()?, values()?);
                changes.push(Change { array, elements, old, new });
            }
            log.done.insert(key, changes);
        }
        Some(log)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_comes_back_as_it_was_and_half_of_one_does_not() {
        let change = |elements: Vec<usize>, old: &[u8]| Change {
            array: ArrayId::from_index(3),
            elements,
            old: old.to_vec(),
            new: old.iter().map(|b| b + 1).collect(),
        };
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
        assert!(log.fits(|_| Some((16, Type::F32))));
        assert!(!log.fits(|_| Some((12, Type::F32))) && !log.fits(|_| Some((16, Type::F64))));
        assert!(!log.fits(|_| None));
        // A `bool` is 0 or 1.
        let mut log = Log::default();
        log.done.insert((RegionId::from_index(0), 0), vec![change(vec![3], &[1])]);
        assert!(!log.fits(|_| Some((16, Type::Bool))));
    }
}
