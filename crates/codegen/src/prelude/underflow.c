
/* Products whose sums are subnormal. Many processors need a hundred cycles and more for a step with a subnormal operand or
   result. Here a factor is raised by a power of two, so that no step meets one, and every step still rounds as the law says:
   to the precision of the type, or, where the result is below the least normal number, to a multiple of the least positive
   number, raised too. */
#ifndef EB_UNDERFLOW
#define EB_UNDERFLOW
enum { EB_REMEMBERED = 16 };
/* Did steps meet subnormal numbers since the last look? The first of the flags says so of operands, the second of results. */
static inline i32 eb_underflowed(void) {
#if defined(__x86_64__)
    const u32 flags = __builtin_ia32_stmxcsr();
    if (__builtin_expect(flags & 0x12, 0)) { __builtin_ia32_ldmxcsr(flags & ~0x12u); return 1; }
#endif
    return 0;
}
#endif
enum { EB_DIGITS_$T = sizeof($T) == 8 ? 52 : 23, EB_LEAST_$T = sizeof($T) == 8 ? -1022 : -126, EB_RAISED_$T = sizeof($T) == 8 ? 512 : 64 };
#define EB_SIGN_$T (($S)((u64)1 << (8 * sizeof($T) - 1)))
#define EB_EXPONENT_$T (($S)(((u64)1 << (8 * sizeof($T) - 1)) - ((u64)1 << EB_DIGITS_$T)))
static inline $T eb_power_$T(i64 n) { const $S bits = ($S)((u64)(n + 1 - EB_LEAST_$T) << EB_DIGITS_$T); $T x; memcpy(&x, &bits, sizeof x); return x; }
static inline $S eb_pattern_$T($T x) { $S bits; memcpy(&bits, &x, sizeof x); return bits; }

/* How many products of this thread are still looked at: some product before them met subnormal numbers. */
static _Thread_local i32 eb_careful_$T;
static _Thread_local __attribute__((aligned(64))) $T eb_raised_rows_$T[2][$CHUNK], eb_raised_right_$T[$WIDE * $CHUNK];

/* x · 2^EB_RAISED, without a step on subnormal numbers; `count` is a multiple of the lanes. */
static void eb_raise_$T($T *to, const $T *from, i64 count) {
    const $T by = eb_power_$T(EB_RAISED_$T), least = eb_power_$T(EB_LEAST_$T - EB_DIGITS_$T + EB_RAISED_$T);
    for (i64 k = 0; k < count; k += $N) {
        const $I bits = ($I)eb_load_$V(from + k), sign = bits & EB_SIGN_$T, small = (bits & EB_EXPONENT_$T) == 0;
        const $V whole = __builtin_convertvector((bits ^ sign) & small, $V) * op_float_$V(least);
        const $V usual = ($V)(bits & ~small) * op_float_$V(by);
        eb_store_$V(to + k, ($V)(($I)usual & ~small | ($I)whole & small | sign));
    }
}

/* x · 2^-raised, likewise; what is below the least normal number is a whole number of steps. */
static inline $V eb_lower_$V($V x, i64 raised) {
    const $T by = eb_power_$T(-raised / 2), steps = eb_power_$T(EB_DIGITS_$T - EB_LEAST_$T - raised);
    const $I bits = ($I)x, sign = bits & EB_SIGN_$T, small = (bits ^ sign) < eb_pattern_$T(eb_power_$T(EB_LEAST_$T + raised));
    const $I whole = __builtin_convertvector(($V)((bits ^ sign) & small) * op_float_$V(steps), $I);
    const $V usual = ($V)(bits & ~small) * op_float_$V(by) * op_float_$V(by);
    return ($V)(($I)usual & ~small | whole & small | sign);
}

/* One step of a chain that is raised. Where the sum is small, a number of the binade whose digits end at the least positive
   number is added and taken away again. It has the other sign than `c`, so that the first of these additions is exact. */
static inline __attribute__((always_inline)) $V eb_step_$V($V a, $V b, $V c, $S least, $S top) {
    const $V sum = op_fma_$V(a, b, c);
#if defined(EB_AVX512) && $B == 64
    const __m512i sign = _mm512_set1_$E($W EB_SIGN_$T), bits = (__m512i)sum, before = (__m512i)c;
    const __mmask$M differ = _mm512_mov$E_mask(_mm512_xor_si512(bits, before));
    const __m512i usual = _mm512_set1_$E($W top), half = _mm512_set1_$E($W(top - (($S)1 << EB_DIGITS_$T)));
    /* a | (~b & c), then b | (a & c). */
    const $V shift = ($V)_mm512_ternarylogic_$E(_mm512_mask_blend_$E(differ, usual, half), before, sign, 0xf2);
    const $V fixed = op_fma_$V(a, b, c + shift) - shift;
    const __mmask$M small = _mm512_cmplt_$E_mask(_mm512_andnot_si512(sign, bits), _mm512_set1_$E($W least));
    return ($V)_mm512_mask_ternarylogic_$E(bits, small, (__m512i)fixed, sign, 0xec);
#else
    const $I bits = ($I)sum, before = ($I)c, differ = (bits ^ before) & EB_SIGN_$T;
    const $V shift = ($V)((top - ($I)(($U)differ >> (8 * sizeof($T) - 1 - EB_DIGITS_$T))) | (~before & EB_SIGN_$T));
    const $V fixed = op_fma_$V(a, b, c + shift) - shift;
    const $I small = (bits & ~EB_SIGN_$T) < least;
    return ($V)((($I)fixed | bits & EB_SIGN_$T) & small | bits & ~small);
#endif
}
$GRADUAL
/* How large numbers are: the sum of their exponents, how many there are that are not zero, and how many are subnormal. */
typedef struct { i64 exponents, numbers, subnormals; } eb_sizes_$T;
static eb_sizes_$T eb_measure_$T(const $T *from, i64 count) {
    $I exponents = {0}, numbers = {0}, subnormals = {0};
    for (i64 k = 0; k < count; k += $N) {
        const $I bits = ($I)eb_load_$V(from + k) & ~EB_SIGN_$T, exponent = ($I)(($U)bits >> EB_DIGITS_$T);
        exponents += exponent;
        numbers -= bits != 0;
        subnormals -= (bits != 0) & (exponent == 0);
    }
    eb_sizes_$T s = {0, 0, 0};
    for (int k = 0; k < $N; k++) s.exponents += exponents[k], s.numbers += numbers[k], s.subnormals += subnormals[k];
    return s;
}

/* Which factors to raise: 1 the left one, 2 the right one. None where few steps meet subnormal numbers: an element of the left
   factor makes one step of it, one of the right factor a step of all its lanes. */
static i32 eb_to_raise_$T(eb_sizes_$T a, eb_sizes_$T b) {
    if (a.numbers == 0 || b.numbers == 0) return 0;
    const i32 left = a.subnormals * 16 > a.numbers, right = b.subnormals * 16 * $N > b.numbers;
    if (left || right) return left | right << 1;
    /* Sums are somewhat larger than products. */
    const i64 x = a.exponents / a.numbers, y = b.exponents / b.numbers;
    return x + y + EB_LEAST_$T > 7 ? 0 : x <= y ? 1 : 2;
}
