
typedef $V $V_unaligned __attribute__((aligned(sizeof($T)), may_alias));
static inline $V eb_load_$V(const $T *p) { return *(const $V_unaligned *)p; }
static inline void eb_store_$V($T *p, $V v) { *($V_unaligned *)p = v; }
#ifdef EB_AVX512
static inline $V eb_load_part_$V(const $T *p, i64 n) { return ($V)$P_maskz_loadu_p$L((__mmask$K)((1u << n) - 1), p); }
static inline void eb_store_part_$V($T *p, i64 n, $V v) { $P_mask_storeu_p$L(p, (__mmask$K)((1u << n) - 1), v); }
#else
static inline $V eb_load_part_$V(const $T *p, i64 n) { $V v = {0}; for (i64 k = 0; k < n; k++) v[k] = p[k]; return v; }
static inline void eb_store_part_$V($T *p, i64 n, $V v) { for (i64 k = 0; k < n; k++) p[k] = v[k]; }
#endif
/* The lanes in a tree: each half to the other. */
static inline $T eb_tree_$V($V v) { $TREE return v[0]; }
static inline $V eb_gather_$V(const $T *p, i64 stride, i64 n) {
    $V v = {0};
    for (i64 k = 0; k < $N; k++) if (k < n) v[k] = p[k * stride];
    return v;
}
static inline void eb_put_$V($T *p, i64 stride, i64 n, $V v) {
    for (i64 k = 0; k < $N; k++) if (k < n) p[k * stride] = v[k];
}
#if defined(EB_AVX512) && $B
static inline $M eb_splat_$M(int b) { return ($M)-(i32)(b != 0); }
static inline $M eb_first_$M(i64 n) { return ($M)((1u << n) - 1); }
#else
static inline $M eb_first_$M(i64 n) { return ($M)(($M){$COUNT} < ($M){0} + ($I)n); }
static inline $M eb_splat_$M(int b) { return ($M)(($M){0} - ($I)(b != 0)); }
#endif
/* Indices of lanes, which are near zero, and elements that each lane finds for itself. */
static inline $Ix$N eb_one_step_$Ix$N($Ix$N x, $Ix$N m) { return x - ((x >= m) & m) + ((x < 0) & m); }
#if defined(EB_AVX512) && $B
static inline int eb_all_within_$Ix$N($Ix$N x, i64 from, i64 to) {
    const $I end = ($I)eb_min(to, INT32_MAX);
    return from < end && $P_cmplt_epu$S_mask((__m512i)(x - ($I)from), (__m512i)(($Ix$N){0} + (end - ($I)from))) == (__mmask$K)-1;
}
static inline $V eb_gather_at_$V(const $T *p, $Ix$N at) { return ($V)$P_i$Sgather_p$L((__m512i)at, p, sizeof($T)); }
#else
static inline int eb_all_within_$Ix$N($Ix$N x, i64 from, i64 to) {
    int all = 1;
    for (i64 k = 0; k < $N; k++) all &= x[k] >= from && x[k] < to;
    return all;
}
static inline $V eb_gather_at_$V(const $T *p, $Ix$N at) {
    $V v;
    for (i64 k = 0; k < $N; k++) v[k] = p[at[k]];
    return v;
}
#endif
/* Touches the elements of the lanes of a mask alone. */
#if defined(EB_AVX512) && $B
static inline $V eb_load_where_$V(const $T *p, $M m) { return ($V)$P_maskz_loadu_p$L(m, p); }
static inline void eb_store_where_$V($T *p, $M m, $V v) { $P_mask_storeu_p$L(p, m, v); }
#else
static inline $V eb_load_where_$V(const $T *p, $M m) {
    const $V here = op_select_$V(m, ($V){0} + 1, ($V){0});
    $V v = {0};
    for (i64 k = 0; k < $N; k++) if (here[k] != 0) v[k] = p[k];
    return v;
}
static inline void eb_store_where_$V($T *p, $M m, $V v) {
    const $V here = op_select_$V(m, ($V){0} + 1, ($V){0});
    for (i64 k = 0; k < $N; k++) if (here[k] != 0) p[k] = v[k];
}
#endif
/* Adds in the first n lanes. */
static inline $V eb_add_part_$V($V sum, $V term, i64 n) { return op_select_$V(eb_first_$M(n), sum + term, sum); }
