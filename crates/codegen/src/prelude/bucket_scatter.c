/* Ordered sums at shared elements, by all threads. A batch of iterations is dealt out in order, a run of them to each thread.
   A thread notes what it would combine, and where, in buckets by blocks of elements; then each thread takes buckets of its own
   and combines the terms that the threads have in them, those of the first thread first. So every element sees its terms in
   the order of iterations, and no two threads combine into one cache line.

   A bucket is a list of chunks; those of a thread are in its part of the staging memory. Where it has none left, in the middle
   of an iteration or not, it waits for the others; all terms of the threads before it and its own are combined, and it
   continues with empty buckets. */
enum { EB_CHUNK = $CHUNK, EB_CHUNK_HEAD = 16, EB_TABLES = $TABLES };
typedef struct { char *first, *to; } eb_bucket; /* its first chunk; where the next term goes, at the end of a chunk perhaps */
typedef struct {
    void *array;
    void (*combine)(void *array, eb_runs *runs, const char *terms, const char *end);
    eb_runs *runs;          /* what it counts, if anything, and how it adds up finished runs */
    void (*end_runs)(const eb_frame *f, eb_runs *runs, void *array, i64 buckets, i32 shift);
    eb_bucket *buckets;
    i32 shift;              /* so many bits of an offset tell the elements of a block apart */
} eb_table;
typedef struct {
    eb_frame *f;
    char *left, *end;       /* the chunks that are not taken */
    i64 tables, buckets;    /* a power of two */
    i64 share;              /* how many iterations of a batch a thread gets */
    i64 first;              /* the first thread whose terms are not combined yet */
    i32 waits, waited;      /* is it in the middle of its iterations; was any thread in this batch */
    i32 over;               /* must the launch end */
    eb_table table[EB_TABLES];
} eb_notes;

static inline eb_notes *eb_notes_of(const eb_frame *f, i64 thread) { return (eb_notes *)(f->staging + thread * f->room); }
/* More buckets than threads where threads could not have the same number of them otherwise. */
static inline i64 eb_bucket_count(i64 threads) {
    i64 count = 1;
    while (count < threads) count *= 2;
    return count == threads ? count : 4 * count;
}
static inline i64 eb_head_bytes(i64 threads, i64 tables) {
    return ((i64)(sizeof(eb_notes) + tables * eb_bucket_count(threads) * sizeof(eb_bucket)) + EB_CHUNK - 1) & -(i64)EB_CHUNK;
}
/* Do all threads together take less time for a loop than one that combines at once? Work is counted in additions. */
static inline int eb_pays_to_note(const eb_frame *f, i64 rows, i64 row, f64 work, f64 terms, i64 tables) {
    const i64 threads = f->threads;
    if (threads == 1 || f->room < eb_head_bytes(threads, tables) + 2 * tables * eb_bucket_count(threads) * EB_CHUNK) return 0;
    const f64 alone = work + $COMBINED * terms, noted = (work + $NOTED * terms) / (f64)threads;
    return (f64)rows * (f64)row * alone >= $WORTH_NOTING && noted < 0.8 * alone;
}

/* Begins a loop whose iterations note so many bytes each, as a guess. */
static __attribute__((noinline)) eb_notes *eb_begin_notes(eb_frame *f, i64 tables, f64 bytes) {
    eb_notes *const n = eb_notes_of(f, f->thread);
    const i64 head = eb_head_bytes(f->threads, tables);
    n->f = f;
    n->tables = tables;
    n->buckets = eb_bucket_count(f->threads);
    n->left = (char *)n + head;
    n->end = (char *)n + f->room;
    /* The last chunk of a bucket may be empty, and the others have heads. */
    const f64 room = (f64)(f->room - head - tables * n->buckets * EB_CHUNK) * (1.0 - (f64)EB_CHUNK_HEAD / EB_CHUNK);
    n->share = eb_max((i64)(room / bytes), 1);
    n->first = n->waits = n->waited = n->over = 0;
    return n;
}

static __attribute__((noinline)) eb_bucket *eb_begin_table(eb_notes *n, i64 number, void *array, i64 elements, void (*combine)(void *, eb_runs *, const char *, const char *),
    eb_runs *runs, void (*end_runs)(const eb_frame *, eb_runs *, void *, i64, i32)) {
    eb_table *const table = &n->table[number];
    eb_bucket *const buckets = (eb_bucket *)(n + 1) + number * n->buckets;
    i32 shift = 4;
    while (shift < 8 && elements >> shift > 16 * n->buckets) shift++;
    *table = (eb_table){array, combine, runs, end_runs, buckets, shift};
    for (i64 b = 0; b < n->buckets; b++) buckets[b] = (eb_bucket){0, 0};
    return buckets;
}

/* Combines the terms that threads first..=last have in the buckets of this one. */
static void eb_combine_notes(const eb_notes *n, i64 first, i64 last) {
    const eb_frame *const f = n->f;
    for (i64 number = 0; number < n->tables; number++) {
        const eb_table *const table = &n->table[number];
        for (i64 b = f->thread; b < n->buckets; b += f->threads) {
            for (i64 thread = first; thread <= last; thread++) {
                const eb_bucket *const bucket = &eb_notes_of(f, thread)->table[number].buckets[b];
                for (const char *chunk = bucket->first, *next; chunk; chunk = next) {
                    next = *(char *const *)chunk;
                    if (next) for (i64 k = 0; k < EB_CHUNK; k += 64) __builtin_prefetch(next + k);
                    table->combine(table->array, table->runs, chunk + EB_CHUNK_HEAD, next ? chunk + EB_CHUNK : bucket->to);
                }
            }
        }
    }
}

/* All threads combine what is noted until none waits, or until this one may continue in the middle of its iterations. Behind the
   last batch of a loop each adds up the runs of its own elements. */
static __attribute__((noinline)) i32 eb_combine_rounds(eb_notes *n, i32 waits, i32 ends) {
    eb_frame *const f = n->f;
    if (n->over) return 1;
    if (f->thread == 0) eb_stopped(f);
    for (;;) {
        n->waits = waits;
        if (eb_barrier(f)) return n->over = 1;
        const i64 first = n->first;
        i64 last = first, used = 0;
        while (last < f->threads - 1 && !eb_notes_of(f, last)->waits) last++;
        const i32 any = eb_notes_of(f, last)->waits;
        for (i64 thread = first; thread <= last; thread++) {
            const eb_notes *const other = eb_notes_of(f, thread);
            used = eb_max(used, other->left - (char *)other);
        }
        eb_combine_notes(n, first, last);
        for (i64 k = 0; k < n->tables && ends && !any; k++) {
            const eb_table *const table = &n->table[k];
            if (table->runs) table->end_runs(f, table->runs, table->array, n->buckets, table->shift);
        }
        if (eb_barrier(f)) return n->over = 1;
        if (f->thread >= first && f->thread <= last) {
            n->left = (char *)n + eb_head_bytes(f->threads, n->tables);
            for (i64 k = 0; k < n->tables; k++) {
                for (i64 b = 0; b < n->buckets; b++) n->table[k].buckets[b] = (eb_bucket){0, 0};
            }
        }
        n->first = any ? last : 0;
        n->waited |= any;
        if (!any) {
            /* The next batch fills more of the room, or less. */
            if (n->waited) n->share = (n->share + 1) / 2;
            else if (used < f->room / 2) n->share = eb_min(2 * n->share, INT64_MAX / 4);
            n->waited = 0;
            return 0;
        }
        if (f->thread == last) return 0;
    }
}

/* A chunk for the next terms of a bucket; none if the launch must end. */
static __attribute__((noinline)) char *eb_next_chunk(eb_notes *n, eb_bucket *bucket) {
    if (n->end - n->left < EB_CHUNK && eb_combine_rounds(n, 1, 0)) return 0;
    char *const chunk = n->left;
    n->left += EB_CHUNK;
    *(char **)chunk = 0;
    if (bucket->to) *(char **)(bucket->to - EB_CHUNK) = chunk;
    else bucket->first = chunk;
    return chunk + EB_CHUNK_HEAD;
}

/* Notes a term; not zero if the launch must end. A chunk begins at a multiple of its size, and so does what is behind it. */
#define EB_TERMS(t, offset) \
    typedef struct { offset at; t value; } eb_term_##t; \
    static inline i32 eb_note_##t(eb_notes *n, eb_bucket *buckets, i64 mask, i32 shift, i64 at, t value) { \
        eb_bucket *const bucket = buckets + (at >> shift & mask); \
        char *to = bucket->to; \
        if (__builtin_expect(!((u64)to & (EB_CHUNK - 1)), 0) && !(to = eb_next_chunk(n, bucket))) return 1; \
        eb_term_##t *const term = (eb_term_##t *)to; \
        term->at = (offset)at; \
        term->value = value; \
        bucket->to = to + sizeof *term; \
        return 0; \
    } \
    static __attribute__((noinline, unused)) i32 eb_note_rarely_##t(eb_notes *n, eb_bucket *buckets, i64 mask, i32 shift, i64 at, t value) { \
        return eb_note_##t(n, buckets, mask, shift, at, value); \
    }
EB_TERMS(f32, u32) EB_TERMS(i32, u32) EB_TERMS(u32, u32) EB_TERMS(f64, i64) EB_TERMS(i64, i64)
