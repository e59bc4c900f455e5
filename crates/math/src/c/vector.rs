//! The operations on vectors: GCC's extensions, and intrinsics where the target has them.

use super::Shape;
use super::prelude::{fill, scale_by_factors};
use crate::ops::Format;

/// The macro that is defined where this vector has instructions of its own, with the letters that
/// intrinsics use for its size and format.
struct Target {
    condition: &'static str,
    prefix: &'static str,
    letter: &'static str,
}

fn target(shape: Shape) -> Target {
    let letter = match shape.format() {
        Format::F32 => "s",
        Format::F64 => "d",
    };
    match shape.bytes() {
        64 => Target { condition: "EB_AVX512", prefix: "_mm512", letter },
        32 => Target { condition: "EB_AVX2", prefix: "_mm256", letter },
        _ => Target { condition: "__SSE4_1__", prefix: "_mm", letter },
    }
}

/// The types of a vector shape.
pub(super) fn vector_types(shape: Shape) -> String {
    let types = format!(
        "\ntypedef $f $F __attribute__((vector_size({bytes})));\ntypedef $i $I __attribute__((vector_size({bytes})));\n\
         typedef $u $U __attribute__((vector_size({bytes})));\n",
        bytes = shape.bytes()
    );
    let mask = if shape.bytes() == 64 {
        "#ifdef EB_AVX512\ntypedef __mmask$B $M;\n#else\ntypedef $I $M;\n#endif\n"
    } else {
        "typedef $I $M;\n"
    };
    fill(&(types + &mask.replace("$B", &shape.lanes().to_string())), shape)
}

/// The operations of a vector shape.
pub(super) fn vector(shape: Shape) -> String {
    let Target { condition, prefix, letter } = target(shape);
    let repeated = vec!["a"; shape.lanes()].join(", ");
    let register = format!("__m{}{}", shape.bytes() * 8, if letter == "d" { "d" } else { "" });
    let integers = format!("__m{}i", shape.bytes() * 8);
    let special = match shape.bytes() {
        64 => AVX512,
        32 => AVX2,
        _ => SSE4,
    };
    let neon = if shape.bytes() == 16 { NEON } else { "" };
    let products = match shape.format() {
        Format::F64 => PRODUCT_OF_HALVES,
        Format::F32 => GENERIC_PRODUCT_OF_HALVES,
    };
    let neon_kind = match shape.format() {
        Format::F64 => "64",
        Format::F32 => "32",
    };
    let scale = SCALE.replace("$FACTORS", &scale_by_factors(shape.format()));
    let text = [VECTOR, special, neon, LOOPS, products, LANES, &scale]
        .concat()
        .replace("$REPEAT", &repeated)
        .replace("$CONDITION", condition)
        .replace("$P", prefix)
        .replace("$L", letter)
        .replace("$REG", &register)
        .replace("$INTS", &integers)
        .replace("$NEON", neon_kind);
    fill(&text, shape)
}

const VECTOR: &str = r#"
EB_OP $F op_float_$F($f a) { return ($F){$REPEAT}; }
EB_OP $I op_int_$I($i a) { return ($I){$REPEAT}; }
EB_OP $F op_add_$F($F a, $F b) { return a + b; }
EB_OP $F op_sub_$F($F a, $F b) { return a - b; }
EB_OP $F op_mul_$F($F a, $F b) { return a * b; }
EB_OP $F op_div_$F($F a, $F b) { return a / b; }
EB_OP $F op_neg_$F($F a) { return -a; }
EB_OP $I op_bits_$I($F a) { return ($I)a; }
EB_OP $F op_of_bits_$F($I a) { return ($F)a; }
EB_OP $F op_abs_$F($F a) { return ($F)(($U)a & ((($U){0} - 1) >> 1)); }
EB_OP $I op_int_add_$I($I a, $I b) { return ($I)(($U)a + ($U)b); }
EB_OP $I op_int_sub_$I($I a, $I b) { return ($I)(($U)a - ($U)b); }
EB_OP $I op_int_mul_$I($I a, $I b) { return ($I)(($U)a * ($U)b); }
EB_OP $I op_int_and_$I($I a, $I b) { return a & b; }
EB_OP $I op_int_or_$I($I a, $I b) { return a | b; }
EB_OP $I op_int_xor_$I($I a, $I b) { return a ^ b; }
EB_OP $I op_shl_$I($I a, int n) { return ($I)(($U)a << ($u)n); }
EB_OP $I op_shr_$I($I a, int n) { return ($I)(($U)a >> ($u)n); }
EB_OP $I op_sar_$I($I a, int n) { return a >> ($i)n; }
EB_OP $I op_shl_by_$I($I a, $I n) { return ($I)(($U)a << ($U)n); }
EB_OP $I op_shr_by_$I($I a, $I n) { return ($I)(($U)a >> ($U)n); }
"#;

const AVX512: &str = r#"#ifdef $CONDITION
EB_OP $F op_lesser_$F($F a, $F b) { return ($F)$P_min_p$L(($REG)a, ($REG)b); }
EB_OP $F op_greater_$F($F a, $F b) { return ($F)$P_max_p$L(($REG)a, ($REG)b); }
#define EB_MINMAX_$F 1
EB_OP $F op_fma_$F($F a, $F b, $F c) { return ($F)$P_fmadd_p$L(($REG)a, ($REG)b, ($REG)c); }
EB_OP $F op_fnma_$F($F a, $F b, $F c) { return ($F)$P_fnmadd_p$L(($REG)a, ($REG)b, ($REG)c); }
EB_OP $F op_sqrt_$F($F a) { return ($F)$P_sqrt_p$L(($REG)a); }
EB_OP $F op_floor_$F($F a) { return ($F)$P_roundscale_p$L(($REG)a, 9); }
EB_OP $F op_ceil_$F($F a) { return ($F)$P_roundscale_p$L(($REG)a, 10); }
EB_OP $F op_trunc_$F($F a) { return ($F)$P_roundscale_p$L(($REG)a, 11); }
EB_OP $M op_lt_$M($F a, $F b) { return $P_cmp_p$L_mask(($REG)a, ($REG)b, _CMP_LT_OQ); }
EB_OP $M op_le_$M($F a, $F b) { return $P_cmp_p$L_mask(($REG)a, ($REG)b, _CMP_LE_OQ); }
EB_OP $M op_eq_$M($F a, $F b) { return $P_cmp_p$L_mask(($REG)a, ($REG)b, _CMP_EQ_OQ); }
EB_OP $M op_int_eq_$M($I a, $I b) { return $P_cmpeq_epi$W_mask(($INTS)a, ($INTS)b); }
EB_OP $M op_int_below_$M($I a, $I b) { return $P_cmplt_epu$W_mask(($INTS)a, ($INTS)b); }
EB_OP $M op_and_$M($M a, $M b) { return ($M)(a & b); }
EB_OP $M op_or_$M($M a, $M b) { return ($M)(a | b); }
EB_OP $M op_not_$M($M a) { return ($M)~a; }
EB_OP int op_any_$M($M a) { return a != 0; }
EB_OP int op_lane_$M($M a, int i) { return a >> i & 1; }
EB_OP $F op_select_$F($M m, $F a, $F b) { return ($F)$P_mask_blend_p$L(m, ($REG)b, ($REG)a); }
"#;

const AVX2: &str = r#"#ifdef $CONDITION
EB_OP $F op_lesser_$F($F a, $F b) { return ($F)$P_min_p$L(($REG)a, ($REG)b); }
EB_OP $F op_greater_$F($F a, $F b) { return ($F)$P_max_p$L(($REG)a, ($REG)b); }
#define EB_MINMAX_$F 1
EB_OP $F op_fma_$F($F a, $F b, $F c) { return ($F)$P_fmadd_p$L(($REG)a, ($REG)b, ($REG)c); }
EB_OP $F op_fnma_$F($F a, $F b, $F c) { return ($F)$P_fnmadd_p$L(($REG)a, ($REG)b, ($REG)c); }
EB_OP $F op_sqrt_$F($F a) { return ($F)$P_sqrt_p$L(($REG)a); }
EB_OP $F op_floor_$F($F a) { return ($F)$P_round_p$L(($REG)a, 9); }
EB_OP $F op_ceil_$F($F a) { return ($F)$P_round_p$L(($REG)a, 10); }
EB_OP $F op_trunc_$F($F a) { return ($F)$P_round_p$L(($REG)a, 11); }
EB_OP int op_any_$M($M a) { return $P_movemask_p$L(($REG)a) != 0; }
EB_OP $F op_select_$F($M m, $F a, $F b) { return ($F)$P_blendv_p$L(($REG)b, ($REG)a, ($REG)m); }
#define EB_MASKS_$M 1
"#;

const SSE4: &str = r#"#ifdef $CONDITION
EB_OP $F op_lesser_$F($F a, $F b) { return ($F)$P_min_p$L(($REG)a, ($REG)b); }
EB_OP $F op_greater_$F($F a, $F b) { return ($F)$P_max_p$L(($REG)a, ($REG)b); }
#define EB_MINMAX_$F 1
EB_OP $F op_fma_$F($F a, $F b, $F c) {
#ifdef __FMA__
  return ($F)$P_fmadd_p$L(($REG)a, ($REG)b, ($REG)c);
#else
  for (int i = 0; i < $N; i++) a[i] = op_fma_$f(a[i], b[i], c[i]);
  return a;
#endif
}
EB_OP $F op_fnma_$F($F a, $F b, $F c) { return op_fma_$F(-a, b, c); }
EB_OP $F op_sqrt_$F($F a) { return ($F)$P_sqrt_p$L(($REG)a); }
EB_OP $F op_floor_$F($F a) { return ($F)$P_round_p$L(($REG)a, 9); }
EB_OP $F op_ceil_$F($F a) { return ($F)$P_round_p$L(($REG)a, 10); }
EB_OP $F op_trunc_$F($F a) { return ($F)$P_round_p$L(($REG)a, 11); }
EB_OP int op_any_$M($M a) { return $P_movemask_p$L(($REG)a) != 0; }
EB_OP $F op_select_$F($M m, $F a, $F b) { return ($F)$P_blendv_p$L(($REG)b, ($REG)a, ($REG)m); }
#define EB_MASKS_$M 1
"#;

const NEON: &str = r#"#elif defined(__aarch64__)
EB_OP $F op_fma_$F($F a, $F b, $F c) { return ($F)vfmaq_f$NEON((float$NEONx$N_t)c, (float$NEONx$N_t)a, (float$NEONx$N_t)b); }
EB_OP $F op_fnma_$F($F a, $F b, $F c) { return op_fma_$F(-a, b, c); }
EB_OP $F op_sqrt_$F($F a) { return ($F)vsqrtq_f$NEON((float$NEONx$N_t)a); }
EB_OP $F op_floor_$F($F a) { return ($F)vrndmq_f$NEON((float$NEONx$N_t)a); }
EB_OP $F op_ceil_$F($F a) { return ($F)vrndpq_f$NEON((float$NEONx$N_t)a); }
EB_OP $F op_trunc_$F($F a) { return ($F)vrndq_f$NEON((float$NEONx$N_t)a); }
EB_OP int op_any_$M($M a) { return vmaxvq_u32((uint32x4_t)a) != 0; }
EB_OP $F op_select_$F($M m, $F a, $F b) { return ($F)vbslq_f$NEON((uint$NEONx$N_t)m, (float$NEONx$N_t)a, (float$NEONx$N_t)b); }
#define EB_MASKS_$M 1
"#;

const LOOPS: &str = r#"#else
EB_OP $F op_fma_$F($F a, $F b, $F c) {
  for (int i = 0; i < $N; i++) a[i] = op_fma_$f(a[i], b[i], c[i]);
  return a;
}
EB_OP $F op_fnma_$F($F a, $F b, $F c) { return op_fma_$F(-a, b, c); }
EB_OP $F op_sqrt_$F($F a) {
  for (int i = 0; i < $N; i++) a[i] = op_sqrt_$f(a[i]);
  return a;
}
EB_OP $F op_floor_$F($F a) {
  for (int i = 0; i < $N; i++) a[i] = op_floor_$f(a[i]);
  return a;
}
EB_OP $F op_ceil_$F($F a) {
  for (int i = 0; i < $N; i++) a[i] = op_ceil_$f(a[i]);
  return a;
}
EB_OP $F op_trunc_$F($F a) {
  for (int i = 0; i < $N; i++) a[i] = op_trunc_$f(a[i]);
  return a;
}
EB_OP int op_any_$M($M a) {
  $i any = 0;
  for (int i = 0; i < $N; i++) any |= a[i];
  return any != 0;
}
EB_OP $F op_select_$F($M m, $F a, $F b) { return ($F)((m & ($I)a) | (~m & ($I)b)); }
#define EB_MASKS_$M 1
#endif
#ifdef EB_MASKS_$M
EB_OP $M op_lt_$M($F a, $F b) { return ($M)(a < b); }
EB_OP $M op_le_$M($F a, $F b) { return ($M)(a <= b); }
EB_OP $M op_eq_$M($F a, $F b) { return ($M)(a == b); }
EB_OP $M op_int_eq_$M($I a, $I b) { return ($M)(a == b); }
EB_OP $M op_int_below_$M($I a, $I b) { return ($M)(($U)a < ($U)b); }
EB_OP $M op_and_$M($M a, $M b) { return a & b; }
EB_OP $M op_or_$M($M a, $M b) { return a | b; }
EB_OP $M op_not_$M($M a) { return ~a; }
EB_OP int op_lane_$M($M a, int i) { return a[i] != 0; }
#endif
#ifndef EB_MINMAX_$F
EB_OP $F op_lesser_$F($F a, $F b) { return op_select_$F(op_lt_$M(a, b), a, b); }
EB_OP $F op_greater_$F($F a, $F b) { return op_select_$F(op_lt_$M(b, a), a, b); }
#endif
"#;

const GENERIC_PRODUCT_OF_HALVES: &str = r#"EB_OP $I op_mul_halves_$I($I a, $I b) {
  $U low = (($U){0} - 1) >> $H;
  return ($I)((($U)a & low) * (($U)b & low));
}
"#;

const PRODUCT_OF_HALVES: &str = r#"EB_OP $I op_mul_halves_$I($I a, $I b) {
#ifdef $CONDITION
  return ($I)$P_mul_epu32(($INTS)a, ($INTS)b);
#else
  $U low = (($U){0} - 1) >> $H;
  return ($I)((($U)a & low) * (($U)b & low));
#endif
}
EB_OP $I op_two_over_pi_$I($I a) {
  for (int i = 0; i < $N; i++) a[i] = op_two_over_pi_$i(a[i]);
  return a;
}
"#;

const LANES: &str = r#"EB_OP $I op_mul_high_$I($I a, $I b) {
  for (int i = 0; i < $N; i++) a[i] = op_mul_high_$i(a[i], b[i]);
  return a;
}
"#;

const SCALE: &str = r#"EB_OP $F op_scale_$F($F a, $F n) {
#ifdef EB_AVX512
  return ($F)$P_scalef_p$L(($REG)a, ($REG)n);
#else
$FACTORS#endif
}
"#;

/// Widening the lower and the upper half of an `f32` vector, and rounding two `f64` vectors into one.
pub(super) fn halves(shape: Shape) -> String {
    let special = match shape.bytes() {
        64 => AVX512_HALVES,
        32 => AVX2_HALVES,
        _ => "#if 0\n",
    };
    let wide = shape.widened().to_string();
    let lanes = (shape.lanes() / 2).to_string();
    let text = [special, HALVES].concat();
    fill(&text.replace("$D", &wide).replace("$K", &lanes), shape)
}

const AVX512_HALVES: &str = r#"#ifdef EB_AVX512
EB_OP $D op_low_$F($F a) { return ($D)_mm512_cvtps_pd(_mm512_castps512_ps256((__m512)a)); }
EB_OP $D op_high_$F($F a) { return ($D)_mm512_cvtps_pd(_mm512_extractf32x8_ps((__m512)a, 1)); }
EB_OP $F op_join_$F($D a, $D b) {
  return ($F)_mm512_insertf32x8(
      _mm512_castps256_ps512(_mm512_cvtpd_ps((__m512d)a)), _mm512_cvtpd_ps((__m512d)b), 1);
}
"#;

const AVX2_HALVES: &str = r#"#ifdef EB_AVX2
EB_OP $D op_low_$F($F a) { return ($D)_mm256_cvtps_pd(_mm256_castps256_ps128((__m256)a)); }
EB_OP $D op_high_$F($F a) { return ($D)_mm256_cvtps_pd(_mm256_extractf128_ps((__m256)a, 1)); }
EB_OP $F op_join_$F($D a, $D b) {
  return ($F)_mm256_insertf128_ps(
      _mm256_castps128_ps256(_mm256_cvtpd_ps((__m256d)a)), _mm256_cvtpd_ps((__m256d)b), 1);
}
"#;

const HALVES: &str = r#"#else
EB_OP $D op_low_$F($F a) {
  $D r;
  for (int i = 0; i < $K; i++) r[i] = (f64)a[i];
  return r;
}
EB_OP $D op_high_$F($F a) {
  $D r;
  for (int i = 0; i < $K; i++) r[i] = (f64)a[i + $K];
  return r;
}
EB_OP $F op_join_$F($D a, $D b) {
  $F r;
  for (int i = 0; i < $K; i++) {
    r[i] = (f32)a[i];
    r[i + $K] = (f32)b[i];
  }
  return r;
}
#endif
"#;
