//! What the host did where a differentiated program yielded.

use std::collections::BTreeMap;

use ebbtide_ir::{ArrayId, RegionId};

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

    /// Does it speak of elements that there are? `size` gives the bytes of an array and of one of its elements.
    pub fn fits(&self, size: impl Fn(ArrayId) -> Option<(usize, usize)>) -> bool {
        self.done.values().flatten().all(|change| {
            let Some((bytes, element)) = size(change.array) else { return false };
            let inside = |at: &usize| at.checked_add(element).is_some_and(|end| end <= bytes);
            let length = change.elements.len().checked_mul(element);
            change.elements.iter().all(inside) && length == Some(change.old.len())
        })
    }

    /// What [`Log::to_bytes`] made; `None` for anything else.
    pub fn from_bytes(bytes: &[u8]) -> Option<Log> {
        let (words, []) = bytes.as_chunks::<8>() else { return None };
        let mut words = words.iter().map(|word| u64::from_le_bytes(*word));
        let mut log = Log::default();
        while let Some(region) = words.next() {
            let key = (RegionId::from_index(region as usize), words.next()? as i64);
            let mut changes = Vec::new();
            for _ in 0..words.next()? {
                let array = ArrayId::from_index(words.next()? as usize);
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
        assert!(log.fits(|_| Some((16, 4))));
        assert!(!log.fits(|_| Some((12, 4))) && !log.fits(|_| Some((16, 8))) && !log.fits(|_| None));
    }
}
