
typedef $T $V __attribute__((vector_size($N * sizeof($T))));
typedef $V $V_unaligned __attribute__((aligned(sizeof($T)), may_alias));
static inline $V eb_load_$V(const $T *p) { return *(const $V_unaligned *)p; }
static inline $V eb_load_part_$V(const $T *p, i64 n) { $V v = {0}; for (i64 k = 0; k < n; k++) v[k] = p[k]; return v; }
static inline $V eb_gather_$V(const $T *p, i64 stride, i64 n) {
    $V v = {0};
    for (i64 k = 0; k < $N; k++) if (k < n) v[k] = p[k * stride];
    return v;
}
