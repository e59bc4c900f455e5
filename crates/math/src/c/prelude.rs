//! What the printed text relies on: types, and one inline function per operation and shape.

use std::collections::BTreeSet;

use super::vector::{halves, vector, vector_types};
use super::{Dialect, Shape};
use crate::MathError;
use crate::ops::{Format, Table};

/// The types and operations of these shapes, and of what they need themselves; plain numbers are always there.
///
/// # Errors
///
/// [`MathError::WrongShape`] for vectors in a dialect that has none.
pub fn prelude(dialect: Dialect, shapes: &[Shape]) -> Result<String, MathError> {
    let vectors: BTreeSet<Shape> = shapes.iter().copied().filter(|shape| shape.lanes() > 1).collect();
    if let (Dialect::Cuda, Some(shape)) = (dialect, vectors.first()) {
        return Err(MathError::WrongShape { lanes: shape.lanes() });
    }
    let mut text = match dialect {
        Dialect::C => C_START,
        Dialect::Cuda => CUDA_START,
    }
    .to_owned();
    for format in [Format::F32, Format::F64] {
        text.push_str(&scalar(dialect, format));
    }
    let words: Vec<String> =
        Table::TwoOverPi.words().iter().map(|word| format!("  0x{word:016x}ull,\n")).collect();
    text.push_str(&format!("EB_TABLE u64 eb_two_over_pi[{}] = {{\n{}}};\n", words.len(), words.concat()));
    text.push_str(&format!(
        "EB_OP i64 op_two_over_pi_i64(i64 a) {{ return (u64)a < {} ? (i64)eb_two_over_pi[a] : 0; }}\n",
        words.len()
    ));
    if !vectors.is_empty() {
        text.push_str(INTRINSICS);
    }
    // The halves of an f32 vector are f64 vectors.
    let mut all = vectors.clone();
    all.extend(vectors.iter().filter(|shape| shape.format() == Format::F32).map(|shape| shape.widened()));
    for shape in &all {
        text.push_str(&vector_types(*shape));
        text.push_str(&vector(*shape));
    }
    for shape in vectors.iter().filter(|shape| shape.format() == Format::F32) {
        text.push_str(&halves(*shape));
    }
    text.push('\n');
    Ok(text)
}

const C_START: &str = r#"#include <stdint.h>
#include <string.h>
#if defined(__AVX512F__) && defined(__AVX512DQ__) && defined(__AVX512BW__) && defined(__AVX512VL__)
#define EB_AVX512 1
#endif
#if defined(__AVX2__) && defined(__FMA__)
#define EB_AVX2 1
#endif
#define EB_OP static inline __attribute__((always_inline, unused))
#ifndef EB_FUNCTION
#define EB_FUNCTION static inline __attribute__((always_inline, unused))
#endif
#define EB_COLD static __attribute__((noinline, cold, unused))
#define EB_TABLE static const __attribute__((unused))
#define EB_UNLIKELY(a) __builtin_expect(!!(a), 0)
#define EB_INFINITY __builtin_inff()
#define EB_NAN __builtin_nanf("")
typedef int32_t i32;
typedef int64_t i64;
typedef uint32_t u32;
typedef uint64_t u64;
typedef float f32;
typedef double f64;
typedef int m32;
typedef int m64;
"#;

/// Only where there are vectors.
const INTRINSICS: &str = include_str!("intrinsics.h");

const CUDA_START: &str = r#"#define EB_OP static __device__ __forceinline__
#ifndef EB_FUNCTION
#define EB_FUNCTION static __device__ __forceinline__
#endif
#define EB_COLD static __device__ __noinline__
#define EB_TABLE static __device__ const
#define EB_UNLIKELY(a) __builtin_expect(!!(a), 0)
#define EB_INFINITY __int_as_float(0x7f800000)
#define EB_NAN __int_as_float(0x7fc00000)
typedef int i32;
typedef long long i64;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef float f32;
typedef double f64;
typedef int m32;
typedef int m64;
"#;

/// Replaces `$F`, `$I`, `$U`, `$M` by the types of a shape, `$W` by the bits of a lane, `$N` by the lanes, `$H`
/// by half the bits, and `$f $i $u` by the types of one lane.
pub(super) fn fill(template: &str, shape: Shape) -> String {
    let (suffix, bits) = (shape.suffix(), shape.bits());
    template
        .replace("$F", &format!("f{suffix}"))
        .replace("$I", &format!("i{suffix}"))
        .replace("$U", &format!("u{suffix}"))
        .replace("$M", &format!("m{suffix}"))
        .replace("$W", &bits.to_string())
        .replace("$N", &shape.lanes().to_string())
        .replace("$H", &(bits / 2).to_string())
        .replace("$f", &format!("f{bits}"))
        .replace("$i", &format!("i{bits}"))
        .replace("$u", &format!("u{bits}"))
}

fn scalar(dialect: Dialect, format: Format) -> String {
    let (fused, root, bits, from_bits, high) = match (dialect, format) {
        (Dialect::C, Format::F32) => (
            "__builtin_fmaf(a, b, c)",
            "__builtin_sqrtf(a)",
            "i32 b; memcpy(&b, &a, sizeof b); return b;",
            "f32 b; memcpy(&b, &a, sizeof b); return b;",
            "(i32)(((u64)(u32)a * (u32)b) >> 32)",
        ),
        (Dialect::C, Format::F64) => (
            "__builtin_fma(a, b, c)",
            "__builtin_sqrt(a)",
            "i64 b; memcpy(&b, &a, sizeof b); return b;",
            "f64 b; memcpy(&b, &a, sizeof b); return b;",
            "(i64)(((unsigned __int128)(u64)a * (u64)b) >> 64)",
        ),
        (Dialect::Cuda, Format::F32) => (
            "__fmaf_rn(a, b, c)",
            "__fsqrt_rn(a)",
            "return __float_as_int(a);",
            "return __int_as_float(a);",
            "(i32)__umulhi((u32)a, (u32)b)",
        ),
        (Dialect::Cuda, Format::F64) => (
            "__fma_rn(a, b, c)",
            "__dsqrt_rn(a)",
            "return __double_as_longlong(a);",
            "return __longlong_as_double(a);",
            "(i64)__umul64hi((u64)a, (u64)b)",
        ),
    };
    let (builtin, end) = match (dialect, format) {
        (Dialect::C, Format::F32) => ("__builtin_", "f"),
        (Dialect::C, Format::F64) => ("__builtin_", ""),
        (Dialect::Cuda, Format::F32) => ("", "f"),
        (Dialect::Cuda, Format::F64) => ("", ""),
    };
    let text = SCALAR
        .replace("$FUSED", fused)
        .replace("$ROOT", root)
        .replace("$TO_BITS", bits)
        .replace("$OF_BITS", from_bits)
        .replace("$HIGH", high)
        .replace("$FLOOR", &format!("{builtin}floor{end}"))
        .replace("$CEIL", &format!("{builtin}ceil{end}"))
        .replace("$TRUNC", &format!("{builtin}trunc{end}"))
        .replace("$FABS", &format!("{builtin}fabs{end}"));
    let scale = format!("EB_OP $F op_scale_$F($F a, $F n) {{\n{}}}\n", scale_by_factors(format));
    fill(&(text + &scale), Shape::scalar(format))
}

/// The body of the operation `scale`, by other operations.
pub(super) fn scale_by_factors(format: Format) -> String {
    let (magic, bias, fraction) = match format {
        Format::F32 => ("0x1.8p23f", "127", "23"),
        Format::F64 => ("0x1.8p52", "1023", "52"),
    };
    SCALE.replace("$MAGIC", magic).replace("$BIAS", bias).replace("$FRACTION", fraction)
}

const SCALAR: &str = r#"
EB_OP $F op_float_$F($F a) { return a; }
EB_OP $I op_int_$I($I a) { return a; }
EB_OP $F op_add_$F($F a, $F b) { return a + b; }
EB_OP $F op_sub_$F($F a, $F b) { return a - b; }
EB_OP $F op_mul_$F($F a, $F b) { return a * b; }
EB_OP $F op_div_$F($F a, $F b) { return a / b; }
EB_OP $F op_fma_$F($F a, $F b, $F c) { return $FUSED; }
EB_OP $F op_fnma_$F($F a, $F b, $F c) { a = -a; return $FUSED; }
EB_OP $F op_sqrt_$F($F a) { return $ROOT; }
EB_OP $F op_neg_$F($F a) { return -a; }
EB_OP $F op_abs_$F($F a) { return $FABS(a); }
EB_OP $F op_floor_$F($F a) { return $FLOOR(a); }
EB_OP $F op_ceil_$F($F a) { return $CEIL(a); }
EB_OP $F op_trunc_$F($F a) { return $TRUNC(a); }
EB_OP $M op_lt_$M($F a, $F b) { return a < b; }
EB_OP $M op_le_$M($F a, $F b) { return a <= b; }
EB_OP $M op_eq_$M($F a, $F b) { return a == b; }
EB_OP $M op_and_$M($M a, $M b) { return a & b; }
EB_OP $M op_or_$M($M a, $M b) { return a | b; }
EB_OP $M op_not_$M($M a) { return !a; }
EB_OP int op_any_$M($M a) { return a; }
EB_OP $F op_select_$F($M m, $F a, $F b) { return m ? a : b; }
EB_OP $F op_lesser_$F($F a, $F b) { return a < b ? a : b; }
EB_OP $F op_greater_$F($F a, $F b) { return b < a ? a : b; }
EB_OP $I op_bits_$I($F a) { $TO_BITS }
EB_OP $F op_of_bits_$F($I a) { $OF_BITS }
EB_OP $I op_int_add_$I($I a, $I b) { return ($I)(($U)a + ($U)b); }
EB_OP $I op_int_sub_$I($I a, $I b) { return ($I)(($U)a - ($U)b); }
EB_OP $I op_int_mul_$I($I a, $I b) { return ($I)(($U)a * ($U)b); }
EB_OP $I op_int_and_$I($I a, $I b) { return a & b; }
EB_OP $I op_int_or_$I($I a, $I b) { return a | b; }
EB_OP $I op_int_xor_$I($I a, $I b) { return a ^ b; }
EB_OP $I op_shl_$I($I a, int n) { return ($I)(($U)a << n); }
EB_OP $I op_shr_$I($I a, int n) { return ($I)(($U)a >> n); }
EB_OP $I op_sar_$I($I a, int n) { return a >> n; }
EB_OP $I op_shl_by_$I($I a, $I n) { return ($I)(($U)a << n); }
EB_OP $I op_shr_by_$I($I a, $I n) { return ($I)(($U)a >> n); }
EB_OP $M op_int_eq_$M($I a, $I b) { return a == b; }
EB_OP $M op_int_below_$M($I a, $I b) { return ($U)a < ($U)b; }
EB_OP $I op_mul_halves_$I($I a, $I b) {
  $U low = ($U)-1 >> $H;
  return ($I)((($U)a & low) * (($U)b & low));
}
EB_OP $I op_mul_high_$I($I a, $I b) { return $HIGH; }
"#;

/// Two factors, because one may not be a normal number.
const SCALE: &str = r#"  $I k = op_int_sub_$I(op_bits_$I(n + op_float_$F($MAGIC)), op_bits_$I(op_float_$F($MAGIC)));
  $I first = k >> 1, second = k - first, bias = op_int_$I($BIAS);
  return a * op_of_bits_$F(op_shl_$I(first + bias, $FRACTION)) * op_of_bits_$F(op_shl_$I(second + bias, $FRACTION));
"#;
