//! Elements in memory and elements as numbers: the one place that knows the order of bytes in memory.
//!
//! Files are little-endian on every machine: states encode numbers, not memory.

use ebbtide_ir::Literal;

use crate::memory::element::Element;

/// The order of the bytes of an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ByteOrder {
    /// The lowest byte first.
    Little,
    /// The highest byte first.
    Big,
}

impl ByteOrder {
    /// That of this machine's memory.
    pub const MEMORY: ByteOrder =
        if cfg!(target_endian = "little") { ByteOrder::Little } else { ByteOrder::Big };
}

/// The elements that memory holds.
pub(crate) fn elements<T: Element>(bytes: &[u8], order: ByteOrder) -> Vec<T> {
    let element = |bytes: &[u8]| {
        let mut word = [0; 8];
        let bits = match order {
            ByteOrder::Little => {
                word[..bytes.len()].copy_from_slice(bytes);
                u64::from_le_bytes(word)
            }
            ByteOrder::Big => {
                word[8 - bytes.len()..].copy_from_slice(bytes);
                u64::from_be_bytes(word)
            }
        };
        T::from_literal(Literal::from_bits(T::TYPE, bits))
    };
    bytes.chunks_exact(size_of::<T>()).map(element).collect()
}

/// Puts elements into memory that has room for them.
pub(crate) fn put_elements<T: Element>(bytes: &mut [u8], elements: &[T], order: ByteOrder) {
    let size = size_of::<T>();
    for (place, element) in bytes.chunks_exact_mut(size).zip(elements) {
        let bits = element.to_literal().bits();
        match order {
            ByteOrder::Little => place.copy_from_slice(&bits.to_le_bytes()[..size]),
            ByteOrder::Big => place.copy_from_slice(&bits.to_be_bytes()[8 - size..]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The bytes of two elements in both orders.
    fn check<T: Element>(values: [T; 2], little: &[u8]) {
        let size = size_of::<T>();
        let big: Vec<u8> = little.chunks(size).flat_map(|c| c.iter().rev().copied()).collect();
        for (order, expected) in [(ByteOrder::Little, little), (ByteOrder::Big, &big)] {
            let mut bytes = vec![0xaa; 2 * size];
            put_elements(&mut bytes, &values, order);
            assert_eq!(bytes, expected, "{order:?}");
            assert_eq!(elements::<T>(expected, order), values, "{order:?}");
        }
    }

    #[test]
    fn elements_have_these_bytes() {
        check([1.0f32, -2.5], &[0, 0, 0x80, 0x3f, 0, 0, 0x20, 0xc0]);
        check([1.0f64, -2.5], &[0, 0, 0, 0, 0, 0, 0xf0, 0x3f, 0, 0, 0, 0, 0, 0, 0x04, 0xc0]);
        check([0x0102_0304i32, -2], &[4, 3, 2, 1, 0xfe, 0xff, 0xff, 0xff]);
        check([0x0102_0304u32, 7], &[4, 3, 2, 1, 7, 0, 0, 0]);
        check(
            [0x0102_0304_0506_0708i64, -1],
            &[8, 7, 6, 5, 4, 3, 2, 1, 255, 255, 255, 255, 255, 255, 255, 255],
        );
        check([true, false], &[1, 0]);
    }

    #[test]
    fn a_file_has_the_lowest_byte_first() {
        let device = crate::interpreter();
        let array = device.array(&[0x0102_0304_0506_0708i64, 0x1112_1314_1516_1718]).unwrap().into_any();
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("saved");
        crate::save(&path, &[("x".to_string(), crate::Arg::Read(&array))]).unwrap();
        let expected = [8, 7, 6, 5, 4, 3, 2, 1, 0x18, 0x17, 0x16, 0x15, 0x14, 0x13, 0x12, 0x11];
        let file = std::fs::read(&path).unwrap();
        assert_eq!(file.windows(16).filter(|bytes| *bytes == expected).count(), 1);
    }

    #[test]
    fn memory_has_the_order_of_the_machine() {
        assert_eq!(elements::<u32>(&0x0102_0304u32.to_ne_bytes(), ByteOrder::MEMORY), [0x0102_0304]);
    }
}
