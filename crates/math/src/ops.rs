//! The operations that every function of this crate is made of.

use crate::kernel::Kernel;

/// A floating-point format, and the integer of the same width beside it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Format {
    /// IEEE 754 binary32 and 32-bit integers.
    F32,
    /// IEEE 754 binary64 and 64-bit integers.
    F64,
}

/// A constant table that a slow path reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Table {
    /// The binary fraction of 2/pi, most significant word first.
    TwoOverPi,
}

impl Table {
    /// The table's words.
    pub fn words(self) -> &'static [u64] {
        match self {
            Table::TwoOverPi => &crate::huge::TWO_OVER_PI,
        }
    }
}

/// One way to run, or to print, the operations.
///
/// `F` is a float of [`Ops::FORMAT`], `I` a signed two's-complement integer of the same width, `B` a truth
/// value. An implementor that computes uses numbers for them; one that prints uses names of registers; one
/// that prints vector code lets each name stand for many lanes. So nothing here branches on a value.
///
/// Laws every implementor keeps, or bits differ between devices:
/// - `add sub mul div fma fnma scale sqrt` round once, to nearest, ties to even; nothing is contracted or reordered;
///   subnormal numbers are kept.
/// - Comparisons with NaN are false.
/// - `neg`, `abs`, `select`, `bits` and `of_bits` move bits and never look at the value.
/// - Integer arithmetic wraps around.
/// - Which NaN an operation returns is not specified; that it is a NaN is.
pub trait Ops: Sized {
    /// The format of `F`, and the width of `I`.
    const FORMAT: Format;
    /// A float.
    type F: Copy;
    /// A signed integer as wide as the float.
    type I: Copy;
    /// A truth value.
    type B: Copy;

    /// A constant; `value` is representable in the format (an implementor may round it to the format).
    fn float(&mut self, value: f64) -> Self::F;
    /// A constant; `value` fits the integer's width.
    fn int(&mut self, value: i64) -> Self::I;

    /// `a + b`
    fn add(&mut self, a: Self::F, b: Self::F) -> Self::F;
    /// `a - b`
    fn sub(&mut self, a: Self::F, b: Self::F) -> Self::F;
    /// `a * b`
    fn mul(&mut self, a: Self::F, b: Self::F) -> Self::F;
    /// `a / b`
    fn div(&mut self, a: Self::F, b: Self::F) -> Self::F;
    /// `a * b + c`, rounded once.
    fn fma(&mut self, a: Self::F, b: Self::F, c: Self::F) -> Self::F;
    /// `c - a * b`, rounded once.
    fn fnma(&mut self, a: Self::F, b: Self::F, c: Self::F) -> Self::F {
        let a = self.neg(a);
        self.fma(a, b, c)
    }
    /// `a` times two to the power of `n`, rounded once, for `a` between 1/4 and 4 and an integral `n` of magnitude
    /// at most 1100 (`F64`) or 200 (`F32`). Where `n` is NaN the result is anything if `a` is not NaN too.
    fn scale(&mut self, a: Self::F, n: Self::F) -> Self::F {
        crate::arith::load_exponent(self, a, n)
    }
    /// The square root.
    fn sqrt(&mut self, a: Self::F) -> Self::F;
    /// The number with its sign bit inverted.
    fn neg(&mut self, a: Self::F) -> Self::F;
    /// The number with its sign bit cleared.
    fn abs(&mut self, a: Self::F) -> Self::F;
    /// The largest integral number not above `a`.
    fn floor(&mut self, a: Self::F) -> Self::F;
    /// The smallest integral number not below `a`.
    fn ceil(&mut self, a: Self::F) -> Self::F;
    /// The integral part of `a`.
    fn trunc(&mut self, a: Self::F) -> Self::F;

    /// `a < b`
    fn lt(&mut self, a: Self::F, b: Self::F) -> Self::B;
    /// `a <= b`
    fn le(&mut self, a: Self::F, b: Self::F) -> Self::B;
    /// `a == b`
    fn eq(&mut self, a: Self::F, b: Self::F) -> Self::B;
    /// Both.
    fn and(&mut self, a: Self::B, b: Self::B) -> Self::B;
    /// One or both.
    fn or(&mut self, a: Self::B, b: Self::B) -> Self::B;
    /// The contrary.
    fn not(&mut self, a: Self::B) -> Self::B;
    /// `yes` where the condition holds, `no` elsewhere.
    fn select(&mut self, condition: Self::B, yes: Self::F, no: Self::F) -> Self::F;

    /// `a` where `a < b`, else `b`: so `b` where one is NaN or both are zeros.
    fn lesser(&mut self, a: Self::F, b: Self::F) -> Self::F {
        let less = self.lt(a, b);
        self.select(less, a, b)
    }
    /// `a` where `b < a`, else `b`: so `b` where one is NaN or both are zeros.
    fn greater(&mut self, a: Self::F, b: Self::F) -> Self::F {
        let greater = self.lt(b, a);
        self.select(greater, a, b)
    }

    /// The float's bits.
    fn bits(&mut self, a: Self::F) -> Self::I;
    /// The float with these bits.
    fn of_bits(&mut self, a: Self::I) -> Self::F;
    /// `a + b`
    fn int_add(&mut self, a: Self::I, b: Self::I) -> Self::I;
    /// `a - b`
    fn int_sub(&mut self, a: Self::I, b: Self::I) -> Self::I;
    /// The low word of `a * b`.
    fn int_mul(&mut self, a: Self::I, b: Self::I) -> Self::I;
    /// Bitwise and.
    fn int_and(&mut self, a: Self::I, b: Self::I) -> Self::I;
    /// Bitwise or.
    fn int_or(&mut self, a: Self::I, b: Self::I) -> Self::I;
    /// Bitwise exclusive or.
    fn int_xor(&mut self, a: Self::I, b: Self::I) -> Self::I;
    /// `a << places`, with `places` below the width.
    fn shl(&mut self, a: Self::I, places: u32) -> Self::I;
    /// `a >> places` with zeros from the left, `places` below the width.
    fn shr(&mut self, a: Self::I, places: u32) -> Self::I;
    /// `a >> places` with copies of the sign from the left, `places` below the width.
    fn sar(&mut self, a: Self::I, places: u32) -> Self::I;
    /// `a << places`, with `0 <= places <` width in every lane.
    fn shl_by(&mut self, a: Self::I, places: Self::I) -> Self::I;
    /// `a >> places` with zeros from the left, `0 <= places <` width in every lane.
    fn shr_by(&mut self, a: Self::I, places: Self::I) -> Self::I;
    /// `a == b`
    fn int_eq(&mut self, a: Self::I, b: Self::I) -> Self::B;
    /// `a < b`, unsigned.
    fn int_below(&mut self, a: Self::I, b: Self::I) -> Self::B;
    /// The product of the low halves of `a` and `b`, both taken as unsigned (32 x 32 -> 64 bits in `F64`).
    fn mul_halves(&mut self, a: Self::I, b: Self::I) -> Self::I;
    /// The high word of the unsigned product of two whole words.
    fn mul_high(&mut self, a: Self::I, b: Self::I) -> Self::I;
    /// The word of `table` at `index`, cut to the integer's width; zero beyond its end.
    fn table(&mut self, table: Table, index: Self::I) -> Self::I;

    /// `usual`, but where `mask` holds `kernel(x)`, computed in `f64` lane by lane (an `f32` argument is
    /// widened and the result rounded).
    ///
    /// For what happens almost never: a printer emits a test for any such lane and a call out of line.
    fn rare(&mut self, mask: Self::B, usual: Self::F, x: Self::F, kernel: Kernel) -> Self::F;

    /// `kernel` computed in `f64`: the arguments widened, the result rounded to this format.
    ///
    /// In the format `F64` this is the kernel itself.
    fn widened(&mut self, kernel: Kernel, args: &[Self::F]) -> Self::F;
}
