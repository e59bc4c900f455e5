//! Vectors and matrices as elements of arrays: how they lie in memory.
//!
//! The one place of this crate with `unsafe` in it: the promises of `ebbtide_runtime::Item` can only be given where the types
//! are defined.
#![allow(unsafe_code)]

use ebbtide_runtime::Element;

use super::{Mat2, Mat3, Mat4, Vec2, Vec3, Vec4};

macro_rules! items {
    ($($name:ident, $count:literal, $extents:expr;)*) => {$(
        // SAFETY (*Layout*): a struct with `repr(C)` of nothing but scalars of type `T`, or of vectors of them, row after row.
        // (*Validity*): its fields may be any scalars.
        unsafe impl<T: Element> ebbtide_runtime::Item for $name<T> {
            type Scalar = T;
            const EXTENTS: &'static [usize] = &$extents;
        }

        const _: () = assert!(size_of::<$name<f64>>() == $count * size_of::<f64>());
        const _: () = assert!(align_of::<$name<f64>>() == align_of::<f64>());
    )*};
}

items! {
    Vec2, 2, [2];
    Vec3, 3, [3];
    Vec4, 4, [4];
    Mat2, 4, [2, 2];
    Mat3, 9, [3, 3];
    Mat4, 16, [4, 4];
}
