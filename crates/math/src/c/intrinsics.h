/* The intrinsics that the text uses. GCC takes a fifth of a second to read its header of all of them, as long as it takes to
   compile a short program: the few that are needed are named here by what they are made of, where GCC has that. */
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && __GNUC__ >= 10 && !defined(EB_HEADERS)
#if defined(EB_AVX512)
#if !__has_builtin(__builtin_ia32_minpd512_mask) || !__has_builtin(__builtin_ia32_vfmaddpd512_mask) \
    || !__has_builtin(__builtin_ia32_sqrtpd512_mask) || !__has_builtin(__builtin_ia32_rndscalepd_mask) \
    || !__has_builtin(__builtin_ia32_cmppd512_mask) || !__has_builtin(__builtin_ia32_ucmpq512_mask) \
    || !__has_builtin(__builtin_ia32_blendmpd_512_mask) || !__has_builtin(__builtin_ia32_scalefpd512_mask) \
    || !__has_builtin(__builtin_ia32_pmuludq512_mask) || !__has_builtin(__builtin_ia32_cvtps2pd512_mask) \
    || !__has_builtin(__builtin_ia32_pternlogq512_mask) || !__has_builtin(__builtin_ia32_cvtq2mask512) \
    || !__has_builtin(__builtin_ia32_loadupd512_mask) || !__has_builtin(__builtin_ia32_storeupd256_mask) \
    || !__has_builtin(__builtin_ia32_scalefpd128_mask) || !__has_builtin(__builtin_ia32_insertf32x8_mask) \
    || !__has_builtin(__builtin_ia32_gathersiv16sf) || !__has_builtin(__builtin_ia32_gatherdiv8df)
#define EB_HEADERS 1
#endif
#endif
#if !__has_builtin(__builtin_ia32_minpd) || !__has_builtin(__builtin_ia32_sqrtpd) || !__has_builtin(__builtin_ia32_pmuludq128)
#define EB_HEADERS 1
#endif
#if defined(EB_AVX2) && (!__has_builtin(__builtin_ia32_vfmaddpd256) || !__has_builtin(__builtin_ia32_roundpd256) \
    || !__has_builtin(__builtin_ia32_blendvpd256) || !__has_builtin(__builtin_ia32_vinsertf128_pd256) \
    || !__has_builtin(__builtin_ia32_pmuludq256) || !__has_builtin(__builtin_ia32_cvtps2pd256))
#define EB_HEADERS 1
#endif
#elif defined(__x86_64__) || defined(__i386__)
#define EB_HEADERS 1
#endif
#ifdef EB_HEADERS
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#elif defined(__x86_64__)
typedef float __m128 __attribute__((vector_size(16), may_alias));
typedef double __m128d __attribute__((vector_size(16), may_alias));
typedef long long __m128i __attribute__((vector_size(16), may_alias));
typedef float eb_v4sf __attribute__((vector_size(16)));
typedef double eb_v2df __attribute__((vector_size(16)));
typedef int eb_v4si __attribute__((vector_size(16)));
typedef __m128d eb_loose_m128d __attribute__((aligned(1)));
EB_OP __m128d _mm_loadu_pd(const double *p) { return *(const eb_loose_m128d *)p; }
#define EB_SAME_128(R, C, L) \
    EB_OP R _mm_min_p##L(R a, R b) { return (R)__builtin_ia32_minp##L((C)a, (C)b); } \
    EB_OP R _mm_max_p##L(R a, R b) { return (R)__builtin_ia32_maxp##L((C)a, (C)b); } \
    EB_OP R _mm_sqrt_p##L(R a) { return (R)__builtin_ia32_sqrtp##L((C)a); } \
    EB_OP int _mm_movemask_p##L(R a) { return __builtin_ia32_movmskp##L((C)a); }
EB_SAME_128(__m128, eb_v4sf, s)
EB_SAME_128(__m128d, eb_v2df, d)
EB_OP __m128i _mm_mul_epu32(__m128i a, __m128i b) { return (__m128i)__builtin_ia32_pmuludq128((eb_v4si)a, (eb_v4si)b); }
#ifdef __SSE4_1__
#define _mm_round_ps(a, how) ((__m128)__builtin_ia32_roundps((eb_v4sf)(a), how))
#define _mm_round_pd(a, how) ((__m128d)__builtin_ia32_roundpd((eb_v2df)(a), how))
EB_OP __m128 _mm_blendv_ps(__m128 a, __m128 b, __m128 m) { return (__m128)__builtin_ia32_blendvps((eb_v4sf)a, (eb_v4sf)b, (eb_v4sf)m); }
EB_OP __m128d _mm_blendv_pd(__m128d a, __m128d b, __m128d m) { return (__m128d)__builtin_ia32_blendvpd((eb_v2df)a, (eb_v2df)b, (eb_v2df)m); }
#endif
#ifdef __FMA__
EB_OP __m128 _mm_fmadd_ps(__m128 a, __m128 b, __m128 c) { return (__m128)__builtin_ia32_vfmaddps((eb_v4sf)a, (eb_v4sf)b, (eb_v4sf)c); }
EB_OP __m128d _mm_fmadd_pd(__m128d a, __m128d b, __m128d c) { return (__m128d)__builtin_ia32_vfmaddpd((eb_v2df)a, (eb_v2df)b, (eb_v2df)c); }
#endif
#ifdef EB_AVX2
typedef float __m256 __attribute__((vector_size(32), may_alias));
typedef double __m256d __attribute__((vector_size(32), may_alias));
typedef long long __m256i __attribute__((vector_size(32), may_alias));
typedef float eb_v8sf __attribute__((vector_size(32)));
typedef double eb_v4df __attribute__((vector_size(32)));
typedef int eb_v8si __attribute__((vector_size(32)));
typedef __m256d eb_loose_m256d __attribute__((aligned(1)));
EB_OP __m256d _mm256_loadu_pd(const double *p) { return *(const eb_loose_m256d *)p; }
#define EB_SAME_256(R, C, L) \
    EB_OP R _mm256_min_p##L(R a, R b) { return (R)__builtin_ia32_minp##L##256((C)a, (C)b); } \
    EB_OP R _mm256_max_p##L(R a, R b) { return (R)__builtin_ia32_maxp##L##256((C)a, (C)b); } \
    EB_OP R _mm256_sqrt_p##L(R a) { return (R)__builtin_ia32_sqrtp##L##256((C)a); } \
    EB_OP int _mm256_movemask_p##L(R a) { return __builtin_ia32_movmskp##L##256((C)a); } \
    EB_OP R _mm256_blendv_p##L(R a, R b, R m) { return (R)__builtin_ia32_blendvp##L##256((C)a, (C)b, (C)m); } \
    EB_OP R _mm256_fmadd_p##L(R a, R b, R c) { return (R)__builtin_ia32_vfmaddp##L##256((C)a, (C)b, (C)c); } \
    EB_OP R _mm256_fnmadd_p##L(R a, R b, R c) { return (R)__builtin_ia32_vfmaddp##L##256(-(C)a, (C)b, (C)c); }
EB_SAME_256(__m256, eb_v8sf, s)
EB_SAME_256(__m256d, eb_v4df, d)
#define _mm256_round_ps(a, how) ((__m256)__builtin_ia32_roundps256((eb_v8sf)(a), how))
#define _mm256_round_pd(a, how) ((__m256d)__builtin_ia32_roundpd256((eb_v4df)(a), how))
EB_OP __m256i _mm256_mul_epu32(__m256i a, __m256i b) { return (__m256i)__builtin_ia32_pmuludq256((eb_v8si)a, (eb_v8si)b); }
EB_OP __m256d _mm256_castpd128_pd256(__m128d a) { return (__m256d)__builtin_ia32_pd256_pd((eb_v2df)a); }
EB_OP __m256 _mm256_castps128_ps256(__m128 a) { return (__m256)__builtin_ia32_ps256_ps((eb_v4sf)a); }
EB_OP __m128 _mm256_castps256_ps128(__m256 a) { return (__m128)__builtin_ia32_ps_ps256((eb_v8sf)a); }
EB_OP __m128 _mm256_cvtpd_ps(__m256d a) { return (__m128)__builtin_ia32_cvtpd2ps256((eb_v4df)a); }
EB_OP __m256d _mm256_cvtps_pd(__m128 a) { return (__m256d)__builtin_ia32_cvtps2pd256((eb_v4sf)a); }
#define _mm256_extractf128_ps(a, k) ((__m128)__builtin_ia32_vextractf128_ps256((eb_v8sf)(a), k))
#define _mm256_insertf128_ps(a, b, k) ((__m256)__builtin_ia32_vinsertf128_ps256((eb_v8sf)(a), (eb_v4sf)(b), k))
#define _mm256_insertf128_pd(a, b, k) ((__m256d)__builtin_ia32_vinsertf128_pd256((eb_v4df)(a), (eb_v2df)(b), k))
#endif
#ifdef EB_AVX512
typedef float __m512 __attribute__((vector_size(64), may_alias));
typedef double __m512d __attribute__((vector_size(64), may_alias));
typedef long long __m512i __attribute__((vector_size(64), may_alias));
typedef float eb_v16sf __attribute__((vector_size(64)));
typedef double eb_v8df __attribute__((vector_size(64)));
typedef int eb_v16si __attribute__((vector_size(64)));
typedef long long eb_v8di __attribute__((vector_size(64)));
typedef unsigned char __mmask8;
typedef unsigned short __mmask16;
enum { _CMP_EQ_OQ = 0, _CMP_LT_OQ = 17, _CMP_LE_OQ = 18, EB_CURRENT = 4 };
#define EB_SAME_512(R, C, L, K) \
    EB_OP R _mm512_min_p##L(R a, R b) { return (R)__builtin_ia32_minp##L##512_mask((C)a, (C)b, (C)a, (K)-1, EB_CURRENT); } \
    EB_OP R _mm512_max_p##L(R a, R b) { return (R)__builtin_ia32_maxp##L##512_mask((C)a, (C)b, (C)a, (K)-1, EB_CURRENT); } \
    EB_OP R _mm512_sqrt_p##L(R a) { return (R)__builtin_ia32_sqrtp##L##512_mask((C)a, (C)a, (K)-1, EB_CURRENT); } \
    EB_OP R _mm512_fmadd_p##L(R a, R b, R c) { return (R)__builtin_ia32_vfmaddp##L##512_mask((C)a, (C)b, (C)c, (K)-1, EB_CURRENT); } \
    EB_OP R _mm512_fnmadd_p##L(R a, R b, R c) { return (R)__builtin_ia32_vfmaddp##L##512_mask(-(C)a, (C)b, (C)c, (K)-1, EB_CURRENT); } \
    EB_OP R _mm512_mask_blend_p##L(K m, R a, R b) { return (R)__builtin_ia32_blendmp##L##_512_mask((C)a, (C)b, m); } \
    EB_OP R _mm512_scalef_p##L(R a, R b) { return (R)__builtin_ia32_scalefp##L##512_mask((C)a, (C)b, (C)a, (K)-1, EB_CURRENT); }
EB_SAME_512(__m512, eb_v16sf, s, __mmask16)
EB_SAME_512(__m512d, eb_v8df, d, __mmask8)
#define _mm512_roundscale_ps(a, how) \
    ((__m512)__builtin_ia32_rndscaleps_mask((eb_v16sf)(a), how, (eb_v16sf)(a), (__mmask16)-1, EB_CURRENT))
#define _mm512_roundscale_pd(a, how) \
    ((__m512d)__builtin_ia32_rndscalepd_mask((eb_v8df)(a), how, (eb_v8df)(a), (__mmask8)-1, EB_CURRENT))
#define _mm512_cmp_ps_mask(a, b, how) \
    ((__mmask16)__builtin_ia32_cmpps512_mask((eb_v16sf)(a), (eb_v16sf)(b), how, (__mmask16)-1, EB_CURRENT))
#define _mm512_cmp_pd_mask(a, b, how) \
    ((__mmask8)__builtin_ia32_cmppd512_mask((eb_v8df)(a), (eb_v8df)(b), how, (__mmask8)-1, EB_CURRENT))
#define EB_INTEGERS_512(W, C, Q, K, E) \
    EB_OP K _mm512_cmpeq_epi##W##_mask(__m512i a, __m512i b) { return (K)__builtin_ia32_cmp##Q##512_mask((C)a, (C)b, 0, (K)-1); } \
    EB_OP K _mm512_cmplt_epi##W##_mask(__m512i a, __m512i b) { return (K)__builtin_ia32_cmp##Q##512_mask((C)a, (C)b, 1, (K)-1); } \
    EB_OP K _mm512_cmplt_epu##W##_mask(__m512i a, __m512i b) { return (K)__builtin_ia32_ucmp##Q##512_mask((C)a, (C)b, 1, (K)-1); } \
    EB_OP __m512i _mm512_mask_blend_epi##W(K m, __m512i a, __m512i b) { return (__m512i)__builtin_ia32_blendm##Q##_512_mask((C)a, (C)b, m); } \
    EB_OP K _mm512_movepi##W##_mask(__m512i a) { return (K)__builtin_ia32_cvt##Q##2mask512((C)a); } \
    EB_OP __m512i _mm512_set1_epi##W(E a) { return (__m512i)((C){0} + a); }
EB_INTEGERS_512(32, eb_v16si, d, __mmask16, int)
EB_INTEGERS_512(64, eb_v8di, q, __mmask8, long long)
#define _mm512_mask_ternarylogic_epi32(a, m, b, c, f) \
    ((__m512i)__builtin_ia32_pternlogd512_mask((eb_v16si)(a), (eb_v16si)(b), (eb_v16si)(c), f, m))
#define _mm512_mask_ternarylogic_epi64(a, m, b, c, f) \
    ((__m512i)__builtin_ia32_pternlogq512_mask((eb_v8di)(a), (eb_v8di)(b), (eb_v8di)(c), f, m))
#define _mm512_ternarylogic_epi32(a, b, c, f) _mm512_mask_ternarylogic_epi32(a, (__mmask16)-1, b, c, f)
#define _mm512_ternarylogic_epi64(a, b, c, f) _mm512_mask_ternarylogic_epi64(a, (__mmask8)-1, b, c, f)
EB_OP __m512i _mm512_xor_si512(__m512i a, __m512i b) { return a ^ b; }
EB_OP __m512i _mm512_andnot_si512(__m512i a, __m512i b) { return ~a & b; }
EB_OP __m512i _mm512_mul_epu32(__m512i a, __m512i b) {
  return (__m512i)__builtin_ia32_pmuludq512_mask((eb_v16si)a, (eb_v16si)b, (eb_v8di)a, (__mmask8)-1);
}
EB_OP __m512d _mm512_castpd256_pd512(__m256d a) { return (__m512d)__builtin_ia32_pd512_256pd((eb_v4df)a); }
EB_OP __m512 _mm512_castps256_ps512(__m256 a) { return (__m512)__builtin_ia32_ps512_256ps((eb_v8sf)a); }
#define _mm512_castps512_ps256(a) _mm512_extractf32x8_ps(a, 0)
EB_OP __m256 _mm512_cvtpd_ps(__m512d a) {
  return (__m256)__builtin_ia32_cvtpd2ps512_mask((eb_v8df)a, (eb_v8sf){0}, (__mmask8)-1, EB_CURRENT);
}
EB_OP __m512d _mm512_cvtps_pd(__m256 a) {
  return (__m512d)__builtin_ia32_cvtps2pd512_mask((eb_v8sf)a, (eb_v8df){0}, (__mmask8)-1, EB_CURRENT);
}
#define _mm512_extractf32x8_ps(a, k) \
    ((__m256)__builtin_ia32_extractf32x8_mask((eb_v16sf)(a), k, (eb_v8sf){0}, (__mmask8)-1))
#define _mm512_insertf32x8(a, b, k) \
    ((__m512)__builtin_ia32_insertf32x8_mask((eb_v16sf)(a), (eb_v8sf)(b), k, (eb_v16sf){0}, (__mmask16)-1))
#define _mm512_insertf64x4(a, b, k) \
    ((__m512d)__builtin_ia32_insertf64x4_mask((eb_v8df)(a), (eb_v4df)(b), k, (eb_v8df){0}, (__mmask8)-1))
#define EB_PARTS(P, R, C, L, B, S, K) \
    EB_OP R P##_maskz_loadu_p##L(K m, const void *p) { return (R)__builtin_ia32_loadup##L##B##_mask((const S *)p, (C){0}, m); } \
    EB_OP void P##_mask_storeu_p##L(void *p, K m, R a) { __builtin_ia32_storeup##L##B##_mask((S *)p, (C)a, m); }
EB_PARTS(_mm512, __m512, eb_v16sf, s, 512, float, __mmask16)
EB_PARTS(_mm512, __m512d, eb_v8df, d, 512, double, __mmask8)
EB_PARTS(_mm256, __m256, eb_v8sf, s, 256, float, __mmask8)
EB_PARTS(_mm256, __m256d, eb_v4df, d, 256, double, __mmask8)
EB_PARTS(_mm, __m128, eb_v4sf, s, 128, float, __mmask8)
EB_PARTS(_mm, __m128d, eb_v2df, d, 128, double, __mmask8)
#define _mm512_i32gather_ps(at, p, bytes) \
    ((__m512)__builtin_ia32_gathersiv16sf((eb_v16sf){0}, p, (eb_v16si)(at), (__mmask16)-1, bytes))
#define _mm512_i64gather_pd(at, p, bytes) \
    ((__m512d)__builtin_ia32_gatherdiv8df((eb_v8df){0}, p, (eb_v8di)(at), (__mmask8)-1, bytes))
EB_OP __m128 _mm_scalef_ps(__m128 a, __m128 b) { return (__m128)__builtin_ia32_scalefps128_mask((eb_v4sf)a, (eb_v4sf)b, (eb_v4sf)a, (__mmask8)-1); }
EB_OP __m128d _mm_scalef_pd(__m128d a, __m128d b) { return (__m128d)__builtin_ia32_scalefpd128_mask((eb_v2df)a, (eb_v2df)b, (eb_v2df)a, (__mmask8)-1); }
EB_OP __m256 _mm256_scalef_ps(__m256 a, __m256 b) { return (__m256)__builtin_ia32_scalefps256_mask((eb_v8sf)a, (eb_v8sf)b, (eb_v8sf)a, (__mmask8)-1); }
EB_OP __m256d _mm256_scalef_pd(__m256d a, __m256d b) { return (__m256d)__builtin_ia32_scalefpd256_mask((eb_v4df)a, (eb_v4df)b, (eb_v4df)a, (__mmask8)-1); }
#endif
#endif
