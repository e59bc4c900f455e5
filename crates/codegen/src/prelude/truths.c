
/* Truth values, which are bytes, as numbers: compilers take such vectors apart, so each lane shifts its own out of a word. */
static inline $V eb_truths_$V(b8x$N v) {
    typedef $U words __attribute__((vector_size($N * sizeof($U))));
    $U w[$W] = {0};
    __builtin_memcpy(w, &v, $N);
    const words at = {$AT}, by = {$BY};
    return ($V)((0 - (at >> by & 1)) & ($U)$ONE);
}
