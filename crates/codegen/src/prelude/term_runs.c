/* Sums of floats at elements that iterations share, run by run (law 8). A loop counts the terms of each element. One that has
   EB_RUN of them is a finished run: it is added to those before, beside the element, and the element continues with a
   chain of its own. When the loop ends the open run of such an element is added to the finished ones.

   Where a loop has many terms, counts are set to -EB_RUN before it: to count is to add one and to look for zero. Where it has few for
   so many elements, counts are not set: they begin at the number of the execution, the epoch, in their upper bits. */
enum { EB_LAST_EPOCH = 65536 / EB_RUN - 1, EB_ELEMENTS_PER_TERM = 4 };

/* Begins the number-th array of a loop that adds at most so many terms to all of its elements, and likely so many; all threads do. */
static __attribute__((noinline)) void eb_begin_runs(eb_frame *f, i64 number, i64 elements, i64 size, i64 most, i64 likely) {
    eb_runs *const r = f->runs + number;
    const i64 before = number ? f->counted : 0, bytes_before = number ? f->summed : 0, bytes = (elements * size + 7) & -8;
    const i64 whole = (elements + 63) & -64;
    const i32 fits = before + whole <= f->countable && bytes_before + bytes <= f->summable;
    r->ended = r->kind = r->epoch = 0;
    r->counts = f->counts;
    if (most > EB_RUN && !fits) eb_fault(f, EB_TAPE, 0, 0, 0, 0);
    if (most <= EB_RUN || !fits) return;
    r->counts = f->counts + before;
    r->later = f->later + before / 64;
    r->finished = f->finished + bytes_before;
    r->elements = elements;
    f->counted = before + whole;
    f->summed = bytes_before + bytes;
    /* All tables of a loop are of one kind: their first one decides. */
    if (number == 0) f->fills = elements / EB_ELEMENTS_PER_TERM <= likely;
    if (f->fills) {
        r->kind = EB_FILLED;
        /* No other thread counts now: they did so before a barrier, and will behind one. */
        const u64 four = (u64)(uint16_t)-EB_RUN * 0x0001000100010001u;
        if (f->thread == 0) for (i64 at = 0; at < whole; at += 4) memcpy(r->counts + at, &four, 8);
        f->epoch = EB_LAST_EPOCH;
        return;
    }
    if (number == 0 && ++f->epoch > EB_LAST_EPOCH) {
        if (f->thread == 0) memset(f->counts, 0, 2 * f->countable);
        f->epoch = 1;
    }
    r->kind = EB_BY_EPOCH;
    r->epoch = (u32)f->epoch * EB_RUN;
}

/* Counts a term of an element, which has it already: has it finished a run? */
static __attribute__((noinline)) i32 eb_counted_by_epoch(eb_runs *r, i64 at) {
    uint16_t *const count = r->counts + at;
    const u32 now = (*count > r->epoch ? *count : r->epoch) + 1;
    *count = (uint16_t)now;
    return !(now & (EB_RUN - 1));
}
/* The same for the number-th of these runs. A loop reads their kind and their counts once. */
static inline __attribute__((always_inline)) i32 eb_counted(eb_runs *const *runs, i64 number, i32 kind, uint16_t *counts, i64 at) {
    if (__builtin_expect(kind == EB_FILLED, 1)) return __builtin_expect(++counts[at] == 0, 0);
    return kind && eb_counted_by_epoch(*runs + number, at);
}

/* Counts so many terms of an element, if none of them finishes a run. */
static inline i32 eb_count_all(const eb_frame *f, i64 number, i64 at, i64 terms) {
    eb_runs *const r = f->runs + number;
    if (!r->kind) return 1;
    uint16_t *const count = r->counts + at;
    const u32 now = *count > r->epoch ? *count : r->epoch;
    if (__builtin_expect((now & (EB_RUN - 1)) + terms >= EB_RUN, 0)) return 0;
    *count = (uint16_t)(now + terms);
    return 1;
}

/* Is it an element that this thread combines with, where they have buckets? */
static inline i32 eb_is_own(const eb_frame *f, i64 at, i64 buckets, i32 shift) {
    return buckets == 0 || (at >> shift & (buckets - 1)) % f->threads == f->thread;
}

#define EB_RUNS(t) \
    /* An element has finished a run. Threads may have elements in one word of bits. */ \
    static __attribute__((noinline, cold, unused)) void eb_finish_run_##t(eb_runs *r, t *a, i64 at) { \
        t *const finished = (t *)r->finished + at; \
        const u64 bit = (u64)1 << (at & 63); \
        if (__atomic_fetch_or(r->later + at / 64, bit, __ATOMIC_RELAXED) & bit) *finished = *finished + a[at]; \
        else { \
            *finished = a[at]; \
            if (r->ended < EB_ENDED) r->at[r->ended] = at; \
            r->ended++; \
        } \
        r->counts[at] = (uint16_t)(r->kind == EB_FILLED ? -EB_RUN : (i32)r->epoch); \
        a[at] = -0.0; \
    } \
    static __attribute__((noinline, cold, unused)) void eb_end_run_##t(const eb_frame *f, i64 number, t *a, i64 at) { \
        eb_finish_run_##t(f->runs + number, a, at); \
    } \
    /* Adds and counts a term. */ \
    static __attribute__((noinline, unused)) void eb_add_counted_##t(const eb_frame *f, i64 number, t *a, i64 at, t term) { \
        a[at] = a[at] + term; \
        if (eb_counted(&f->runs, number, f->runs[number].kind, f->runs[number].counts, at)) eb_end_run_##t(f, number, a, at); \
    } \
    static inline __attribute__((unused)) void eb_add_up_##t(const eb_runs *r, t *a, i64 at) { \
        a[at] = ((t *)r->finished)[at] + a[at]; \
        __atomic_fetch_and(r->later + at / 64, ~((u64)1 << (at & 63)), __ATOMIC_RELAXED); \
    } \
    /* Adds the open runs of elements to the finished ones; where threads have buckets, those of this thread. */ \
    static __attribute__((noinline, unused)) void eb_end_runs_##t(const eb_frame *f, eb_runs *r, void *array, i64 buckets, i32 shift) { \
        t *const a = array; \
        if (r->ended <= EB_ENDED) { \
            for (i64 k = 0; k < r->ended; k++) eb_add_up_##t(r, a, r->at[k]); \
        } else { \
            for (i64 word = 0; word <= (r->elements - 1) / 64; word++) { \
                for (u64 bits = __atomic_load_n(r->later + word, __ATOMIC_RELAXED); bits; bits &= bits - 1) { \
                    const i64 at = 64 * word + __builtin_ctzll(bits); \
                    if (eb_is_own(f, at, buckets, shift)) eb_add_up_##t(r, a, at); \
                } \
            } \
        } \
        r->ended = 0; \
    }
EB_RUNS(f32) EB_RUNS(f64)
