/* Sums of floats at elements that iterations share, run by run (law 8). A loop counts the terms of each element. One that has
   EB_RUN of them is a finished run: it is added to those before, beside the element, and the element continues with a
   chain of its own. When the loop ends the open run of such an element is added to the finished ones.

   Counts need not be cleared before each execution of a loop: they begin at its number, the epoch, in their upper bits. */
enum { EB_LAST_EPOCH = 65536 / (2 * EB_RUN) - 1 };

/* Begins the number-th array of a loop that adds at most so many terms to one; all threads do. */
static __attribute__((noinline)) void eb_begin_runs(eb_frame *f, i64 number, i64 elements, i64 size, i64 most) {
    eb_runs *const r = f->runs + number;
    r->ended = r->none = 0;
    const i64 before = number ? f->counted : 0, bytes_before = number ? f->summed : 0, bytes = (elements * size + 7) & -8;
    const i32 fits = before + elements <= f->countable && bytes_before + bytes <= f->summable;
    if (most > EB_RUN && !fits) eb_fault(f, EB_TAPE, 0, 0, 0, 0);
    if (most <= EB_RUN || !fits) {
        /* None ends a run: whatever is counted is counted in one place. */
        r->counts = &r->none;
        r->mask = r->epoch = r->elements = 0;
        return;
    }
    if (number == 0) {
        if (++f->epoch > EB_LAST_EPOCH) {
            /* No other thread counts now: they did so before a barrier, and will behind one. */
            if (f->thread == 0) memset(f->counts, 0, 2 * f->most_counted);
            f->epoch = 1;
            f->most_counted = 0;
        }
    }
    r->counts = f->counts + before;
    r->finished = f->finished + bytes_before;
    r->mask = -1;
    r->epoch = (u32)f->epoch * (2 * EB_RUN);
    r->elements = elements;
    f->counted = before + elements;
    f->summed = bytes_before + bytes;
    f->most_counted = eb_max(f->most_counted, f->counted);
}

/* Counts a term of an element, which has it already: has it finished a run? */
static inline i32 eb_counted(eb_runs *r, i64 at) {
    uint16_t *const count = r->counts + (at & r->mask);
    const u32 now = (*count > r->epoch ? *count : r->epoch) + 1;
    *count = (uint16_t)now;
    return __builtin_expect(!(now & (EB_RUN - 1)), 0);
}
static inline i32 eb_count_term(const eb_frame *f, i64 number, i64 at) { return eb_counted(f->runs + number, at); }

/* Counts so many terms of an element, if none of them finishes a run. */
static inline i32 eb_count_all(const eb_frame *f, i64 number, i64 at, i64 terms) {
    eb_runs *const r = f->runs + number;
    uint16_t *const count = r->counts + (at & r->mask);
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
    /* An element has finished a run. */ \
    static __attribute__((noinline, cold, unused)) void eb_finish_run_##t(eb_runs *r, t *a, i64 at) { \
        if (!r->mask) return; \
        t *const finished = (t *)r->finished + at; \
        if ((r->counts[at] & (2 * EB_RUN - 1)) == EB_RUN) { \
            *finished = a[at]; \
            if (r->ended < EB_ENDED) r->at[r->ended] = at; \
            r->ended++; \
        } else *finished = *finished + a[at]; \
        r->counts[at] = (uint16_t)(r->epoch + EB_RUN); \
        a[at] = -0.0; \
    } \
    static __attribute__((noinline, cold, unused)) void eb_end_run_##t(const eb_frame *f, i64 number, t *a, i64 at) { \
        eb_finish_run_##t(f->runs + number, a, at); \
    } \
    /* Adds and counts a term. */ \
    static __attribute__((noinline, unused)) void eb_add_counted_##t(const eb_frame *f, i64 number, t *a, i64 at, t term) { \
        a[at] = a[at] + term; \
        if (eb_count_term(f, number, at)) eb_end_run_##t(f, number, a, at); \
    } \
    /* Adds the open runs of elements to the finished ones; where threads have buckets, those of this thread. */ \
    static __attribute__((noinline, unused)) void eb_end_runs_##t(const eb_frame *f, eb_runs *r, void *array, i64 buckets, i32 shift) { \
        t *const a = array, *const finished = (t *)r->finished; \
        if (r->ended <= EB_ENDED) { \
            for (i64 k = 0; k < r->ended; k++) a[r->at[k]] = finished[r->at[k]] + a[r->at[k]]; \
        } else { \
            for (i64 at = 0; at < r->elements; at++) { \
                if (r->counts[at] >= r->epoch + EB_RUN && eb_is_own(f, at, buckets, shift)) a[at] = finished[at] + a[at]; \
            } \
        } \
        r->ended = 0; \
    }
EB_RUNS(f32) EB_RUNS(f64)
