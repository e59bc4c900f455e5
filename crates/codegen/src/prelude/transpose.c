
/* Lanes of two vectors, the second one's counted on. */
#ifdef __clang__
#define EB_CHOOSE_$V(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define EB_CHOOSE_$V(a, b, ...) __builtin_shuffle(a, b, ($I){__VA_ARGS__})
#endif
/* Half a vector from each of two places. */
static inline $V eb_halves_$V(const $T *low, const $T *high) {
#if defined(EB_AVX512) && $B == 64
    const __m512d v = _mm512_castpd256_pd512(_mm256_loadu_pd((const double *)low));
    return ($V)_mm512_insertf64x4(v, _mm256_loadu_pd((const double *)high), 1);
#elif defined(EB_AVX2) && $B == 32
    const __m256d v = _mm256_castpd128_pd256(_mm_loadu_pd((const double *)low));
    return ($V)_mm256_insertf128_pd(v, _mm_loadu_pd((const double *)high), 1);
#else
    $V v;
    for (int k = 0; k < $H; k++) v[k] = low[k], v[k + $H] = high[k];
    return v;
#endif
}
/* The halves of a vector to two places. */
typedef $T eb_half_$V __attribute__((vector_size($B / 2), aligned(sizeof($T)), may_alias));
static inline void eb_put_halves_$V($T *low, $T *high, $V v) {
#if defined(EB_AVX512) && $B == 64
    *(eb_half_$V *)low = (eb_half_$V)_mm512_extractf32x8_ps((__m512)v, 0);
    *(eb_half_$V *)high = (eb_half_$V)_mm512_extractf32x8_ps((__m512)v, 1);
#elif defined(EB_AVX2) && $B == 32
    *(eb_half_$V *)low = (eb_half_$V)_mm256_extractf128_ps((__m256)v, 0);
    *(eb_half_$V *)high = (eb_half_$V)_mm256_extractf128_ps((__m256)v, 1);
#else
    for (int k = 0; k < $H; k++) low[k] = v[k], high[k] = v[k + $H];
#endif
}
