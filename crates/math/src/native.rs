//! The operations on Rust's own numbers.

use crate::kernel::Kernel;
use crate::ops::{Format, Ops, Table};

/// Computes in `f64`, one number at a time.
#[derive(Debug, Clone, Copy, Default)]
pub struct Native64;

/// Computes in `f32`, one number at a time.
#[derive(Debug, Clone, Copy, Default)]
pub struct Native32;

macro_rules! native {
    ($name:ident, $format:expr, $float:ty, $int:ty, $unsigned:ty, $double:ty) => {
        impl Ops for $name {
            const FORMAT: Format = $format;
            type F = $float;
            type I = $int;
            type B = bool;

            fn float(&mut self, value: f64) -> $float {
                value as $float
            }
            fn int(&mut self, value: i64) -> $int {
                value as $int
            }
            fn add(&mut self, a: $float, b: $float) -> $float {
                a + b
            }
            fn sub(&mut self, a: $float, b: $float) -> $float {
                a - b
            }
            fn mul(&mut self, a: $float, b: $float) -> $float {
                a * b
            }
            fn div(&mut self, a: $float, b: $float) -> $float {
                a / b
            }
            fn fma(&mut self, a: $float, b: $float, c: $float) -> $float {
                a.mul_add(b, c)
            }
            fn sqrt(&mut self, a: $float) -> $float {
                a.sqrt()
            }
            fn neg(&mut self, a: $float) -> $float {
                -a
            }
            fn abs(&mut self, a: $float) -> $float {
                a.abs()
            }
            fn floor(&mut self, a: $float) -> $float {
                a.floor()
            }
            fn ceil(&mut self, a: $float) -> $float {
                a.ceil()
            }
            fn trunc(&mut self, a: $float) -> $float {
                a.trunc()
            }
            fn lt(&mut self, a: $float, b: $float) -> bool {
                a < b
            }
            fn le(&mut self, a: $float, b: $float) -> bool {
                a <= b
            }
            fn eq(&mut self, a: $float, b: $float) -> bool {
                a == b
            }
            fn and(&mut self, a: bool, b: bool) -> bool {
                a & b
            }
            fn or(&mut self, a: bool, b: bool) -> bool {
                a | b
            }
            fn not(&mut self, a: bool) -> bool {
                !a
            }
            fn select(&mut self, condition: bool, yes: $float, no: $float) -> $float {
                if condition { yes } else { no }
            }
            fn bits(&mut self, a: $float) -> $int {
                a.to_bits() as $int
            }
            fn of_bits(&mut self, a: $int) -> $float {
                <$float>::from_bits(a as $unsigned)
            }
            fn int_add(&mut self, a: $int, b: $int) -> $int {
                a.wrapping_add(b)
            }
            fn int_sub(&mut self, a: $int, b: $int) -> $int {
                a.wrapping_sub(b)
            }
            fn int_mul(&mut self, a: $int, b: $int) -> $int {
                a.wrapping_mul(b)
            }
            fn int_and(&mut self, a: $int, b: $int) -> $int {
                a & b
            }
            fn int_or(&mut self, a: $int, b: $int) -> $int {
                a | b
            }
            fn int_xor(&mut self, a: $int, b: $int) -> $int {
                a ^ b
            }
            fn shl(&mut self, a: $int, places: u32) -> $int {
                a.wrapping_shl(places)
            }
            fn shr(&mut self, a: $int, places: u32) -> $int {
                (a as $unsigned).wrapping_shr(places) as $int
            }
            fn sar(&mut self, a: $int, places: u32) -> $int {
                a.wrapping_shr(places)
            }
            fn shl_by(&mut self, a: $int, places: $int) -> $int {
                a.wrapping_shl(places as u32)
            }
            fn shr_by(&mut self, a: $int, places: $int) -> $int {
                (a as $unsigned).wrapping_shr(places as u32) as $int
            }
            fn int_eq(&mut self, a: $int, b: $int) -> bool {
                a == b
            }
            fn int_below(&mut self, a: $int, b: $int) -> bool {
                (a as $unsigned) < (b as $unsigned)
            }
            fn mul_halves(&mut self, a: $int, b: $int) -> $int {
                let low = <$unsigned>::MAX >> (<$unsigned>::BITS / 2);
                ((a as $unsigned & low) * (b as $unsigned & low)) as $int
            }
            fn mul_high(&mut self, a: $int, b: $int) -> $int {
                let product = <$double>::from(a as $unsigned) * <$double>::from(b as $unsigned);
                (product >> <$unsigned>::BITS) as $int
            }
            fn table(&mut self, table: Table, index: $int) -> $int {
                let word = usize::try_from(index).ok().and_then(|i| table.words().get(i));
                word.map_or(0, |&word| word as $int)
            }
            fn rare(&mut self, mask: bool, usual: $float, x: $float, kernel: Kernel) -> $float {
                if mask { self.widened(kernel, &[x]) } else { usual }
            }
            fn widened(&mut self, kernel: Kernel, args: &[$float]) -> $float {
                let mut wide = [0.0; Kernel::MAX_FLOATS];
                for (to, &from) in wide.iter_mut().zip(args) {
                    *to = f64::from(from);
                }
                kernel.emit(&mut Native64, &wide[..args.len().min(wide.len())], &[]).unwrap_or(f64::NAN)
                    as $float
            }
        }
    };
}

native!(Native64, Format::F64, f64, i64, u64, u128);
native!(Native32, Format::F32, f32, i32, u32, u64);
