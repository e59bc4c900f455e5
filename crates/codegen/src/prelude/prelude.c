typedef uint8_t b8;


enum { EB_COUNTERS = 8 };

/* A count that threads arrive at, alone on its line of memory: whoever waits for another word does not read it anew each time. */
typedef struct { _Alignas(64) i32 count; } eb_count;
enum { EB_GROUPS = 16 };

/* What all threads of a launch share. */
typedef struct {
    i32 fault;       /* 0: none; else the kind of the first fault */
    i32 access;      /* which access of the table, or which division */
    i64 dimension, index, extent;
    i64 at[EB_COUNTERS];     /* the counters of the loops around an assertion that does not hold */
    const volatile b8 *stop; /* the host's wish that the launch ends */
    volatile i64 *done;      /* finished passes of the outermost loop, for the host to look at */
    i64 apart[2], met;       /* how long threads go on without a look, in passes, by turns; when they last met for one */
    i64 (*now)(void);        /* in nanoseconds */
    i32 spins;       /* how often a waiting thread looks before it sleeps */
    i32 group;       /* the logarithm of how many threads arrive at one count */
    i64 slept;       /* nanoseconds that threads slept */
    void (*sleep)(void *shared, i32 seen);
    void (*wake)(void *shared);
    i32 outcome;     /* 0: done; 1: yielded */
    i32 region;
    i64 reason;
    const void *context;    /* of the host, for custom operations */
    i32 (*call)(const void *context, i64 number, void **data, const i64 *shapes, const u64 *scalars);
    _Alignas(64) i32 generation;    /* what threads wait for: how often all have met */
    i32 verdict;     /* the fault that the last barrier saw */
    i32 sleepers;    /* how many threads sleep */
    eb_count arrived[EB_GROUPS], groups;
} eb_shared;

/* The terms that a loop adds to the elements of an array (`term_runs.c`). */
enum { EB_RUN = $RUN, EB_ENDED = 250, EB_FILLED = 1, EB_BY_EPOCH = 2 };
typedef struct {
    i32 kind;               /* how they are counted; 0 where they are not */
    u32 epoch;
    uint16_t *counts;       /* by element: how many its open run has, from -EB_RUN or from the epoch on */
    u64 *later;             /* by element, a bit: has it finished runs */
    char *finished;         /* by element: the sum of these */
    i64 elements;
    i64 ended;              /* how many elements have finished runs, and the first of them */
    i64 at[EB_ENDED];
} eb_runs;

/* What one thread of a launch works on. */
typedef struct {
    void **data;            /* by array; private to the thread, since swap exchanges them */
    const i64 *shape;       /* a row per array, padded with ones */
    void ***tape;           /* by array: the places of its tape, private to the thread, or an `eb_packed` */
    i64 *depth;             /* by array: how many places hold something; private to the thread */
    const i64 *capacity;    /* by array: how many places there are */
    u64 *values, *locals;   /* what pieces of the program hand to each other */
    i64 *passes;            /* by loop: finished passes, for yields */
    i64 *bounds;            /* two per loop: its bounds on entry, for yields */
    void **kept;            /* by array: copies of what a region may undo */
    const u64 *scalars;
    u64 *partials;          /* by reduction: results of its leaves, then whether any iteration combined */
    i64 places;             /* how many leaves there is room for */
    char *staging;          /* where threads note terms of ordered sums, one behind the other */
    i64 room, staged;       /* the bytes that each of them has there, and all of them together */
    eb_shared *shared;
    i64 thread, threads;
    i64 resume;             /* the region to go on at, or -1 */
    i64 passed, apart;      /* passes, of whatever loops, since it met the others for a look; with how many it will again */
    i64 looks;              /* how often it did */
    eb_runs *runs;          /* the arrays of a loop whose terms are counted; in the loop */
    uint16_t *counts;       /* of all such arrays, one behind the other, their bits, and the sums of their finished runs */
    u64 *later;
    char *finished;
    i64 countable, summable;        /* how many elements, and how many bytes, there is memory for */
    i64 counted, summed;    /* the elements that the loop counts so far, and the bytes of their sums */
    i64 epoch;              /* the number of the last loop that counted, alike in all threads */
    i64 fills;              /* does the loop that counts now set its counts before */
} eb_frame;

enum { EB_BOUNDS = 1, EB_DIVISION = 2, EB_SHAPES = 3, EB_TAPE = 4, EB_STOPPED = 5, EB_MISFIT = 6, EB_TAKEN = 7, EB_OPERATION = 8, EB_OVERFLOW = 9, EB_MEET = 10 };

/* Was it the first fault? */
static __attribute__((noinline, cold)) i32 eb_fault(eb_frame *f, i32 kind, i32 access, i64 dimension, i64 index, i64 extent) {
    i32 none = 0;
    if (!__atomic_compare_exchange_n(&f->shared->fault, &none, kind, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) return 0;
    f->shared->access = access;
    f->shared->dimension = dimension;
    f->shared->index = index;
    f->shared->extent = extent;
    return 1;
}

/* A packed tape: pieces of memory in which places lie side by side. `f->tape` has its address. */
typedef struct {
    const struct { char *at; i64 until; } *pieces; /* each with how many places there are up to its end */
    i64 count;
} eb_packed;

/* A group of packed tapes that have the same number of places in use. */
typedef struct {
    i32 array;
    i32 size;               /* of an element */
} eb_member;

/* The places around which a thread is on them: from which on, how many, and how many places are before them. */
typedef struct {
    i64 count, before;
} eb_strip;

/* Finds memory with the next place of all tapes, or with the last one in use: the place there, or -1 and a fault if there is none. */
static __attribute__((noinline)) i64 eb_piece(eb_frame *f, const eb_member *members, i64 count, eb_strip *strip, char **at, i64 depth, i64 back) {
    const i64 place = depth - back;
    i64 from = 0, until = INT64_MAX;
    for (int pass = 0; pass < 2; pass++) {
        for (i64 k = 0; k < count; k++) {
            const i32 array = members[k].array;
            if (place < 0 || place >= f->capacity[array]) {
                eb_fault(f, EB_TAPE, 0, 0, 0, 0);
                return -1;
            }
            const eb_packed *const tape = (const eb_packed *)f->tape[array];
            i64 low = 0, high = tape->count - 1;
            while (low < high) {
                const i64 middle = (low + high) / 2;
                if (tape->pieces[middle].until <= place) low = middle + 1;
                else high = middle;
            }
            const i64 before = low ? tape->pieces[low - 1].until : 0;
            if (before > from) from = before;
            if (tape->pieces[low].until < until) until = tape->pieces[low].until;
            at[k] = tape->pieces[low].at + (from - before) * members[k].size;
        }
    }
    *strip = (eb_strip){until - from, from};
    return depth - from;
}

/* Does the host want the launch to end? */
static inline i32 eb_stopped(eb_frame *f) {
    if (__builtin_expect(!*f->shared->stop, 1)) return 0;
    eb_fault(f, EB_STOPPED, 0, 0, 0, 0);
    return 1;
}

/* Has this thread arrived as the last one of all? A line of memory takes as long from core to core as a few threads need to
   arrive: groups of them have a count each, and the last one of a group arrives for all of it. */
static inline b8 eb_arrive(eb_count *at, i64 wanted) {
    if (__atomic_add_fetch(&at->count, 1, __ATOMIC_ACQ_REL) != wanted) return 0;
    at->count = 0;
    return 1;
}
static inline b8 eb_is_last(const eb_frame *f) {
    eb_shared *const s = f->shared;
    const i64 each = 1ll << s->group, group = f->thread >> s->group, groups = (f->threads + each - 1) >> s->group;
    const i64 rest = f->threads - (group << s->group);
    if (!eb_arrive(&s->arrived[group], rest < each ? rest : each)) return 0;
    return groups == 1 || eb_arrive(&s->groups, groups);
}

static __attribute__((noinline)) i32 eb_meet(const eb_frame *f) {
    eb_shared *const s = f->shared;
    const i32 seen = __atomic_load_n(&s->generation, __ATOMIC_RELAXED);
    if (eb_is_last(f)) {
        s->verdict = s->fault;
        /* Whoever falls asleep counts itself before it looks once more. */
        __atomic_store_n(&s->generation, seen + 1, __ATOMIC_SEQ_CST);
        if (__builtin_expect(__atomic_load_n(&s->sleepers, __ATOMIC_SEQ_CST) > 0, 0)) s->wake(s);
    } else {
        const i32 most = s->spins;
        for (i32 spins = 0; __atomic_load_n(&s->generation, __ATOMIC_ACQUIRE) == seen; spins++) {
            if (spins > most) s->sleep(s, seen);
#if defined(__x86_64__)
            else __builtin_ia32_pause();
#endif
        }
    }
    return s->verdict;
}

/* All threads wait for each other; not zero if the launch must end. The verdict changes only when all have
   arrived, so that all threads leave at the same barrier. */
static inline i32 eb_barrier(eb_frame *f) {
    if (__builtin_expect(f->threads == 1, 1)) return f->shared->fault;
    return eb_meet(f);
}

/* Tells the host how many passes of an outermost loop are finished. */
static inline void eb_tell(eb_frame *f, i64 passes) { *f->shared->done = passes; }

/* Threads that need not meet meet all the same, to look whether the launch must end, some dozen times a second: the first
   one says when they do so next. It says so where nobody reads any more: all have read it when they met last. */
enum { EB_SOON = 10000000, EB_MOST_APART = 1 << 20 };
static __attribute__((noinline)) i32 eb_look(eb_frame *f) {
    eb_shared *const s = f->shared;
    i64 *const next = &s->apart[f->looks++ & 1];
    if (f->thread == 0) {
        const i64 now = s->now(), took = now - s->met;
        *next = took > 2 * EB_SOON ? (f->apart + 1) / 2 : took < EB_SOON && f->apart < EB_MOST_APART ? 2 * f->apart : f->apart;
        s->met = now;
    }
    const i32 bad = eb_meet(f);
    f->apart = *next;
    f->passed = 0;
    return bad;
}

/* What a pass of a loop begins with: the first thread looks whether the host wants an end. The others learn it where
   they meet. All count passes alike, those of inner loops and of outer ones together. */
static inline i32 eb_pause(eb_frame *f) {
    if (f->thread == 0) eb_stopped(f);
    if (f->threads == 1) return f->shared->fault;
    return __builtin_expect(++f->passed < f->apart, 1) ? 0 : eb_look(f);
}

/* The same for a thread that runs a loop alone. */
static inline i32 eb_look_alone(eb_frame *f, u32 *looked) {
    (void)looked;
    return eb_stopped(f);
}

static inline i64 eb_min(i64 a, i64 b) { return a < b ? a : b; }
/* How far a loop inside an iteration goes from `pass` on before the thread looks whether the host wants an end. */
enum { EB_ITERATIONS = 65536 };
static inline i64 eb_until(i64 pass, i64 end) { return (u64)end - (u64)pass > EB_ITERATIONS ? pass + EB_ITERATIONS : end; }
static inline i64 eb_max(i64 a, i64 b) { return a > b ? a : b; }
/* The order of sums: the most leaves, the least iterations of one, and the iterations in a leaf of one row. */
enum { EB_LEAVES = $LEAVES, EB_LEAF = $LEAF };
static inline i64 eb_leaf_size(i64 row) { return (eb_max(row / (EB_LEAVES / 2) + 1, EB_LEAF) + 15) / 16 * 16; }
/* Narrows lo..hi to the larger of the parts beside x. */
static inline void eb_avoid(i64 *lo, i64 *hi, i64 x) {
    if (x < *lo || x >= *hi) return;
    if (x - *lo > *hi - 1 - x) *hi = x;
    else *lo = x + 1;
}
/* An extent of an array is not negative. The compiler is told so: an index that is less has a next one. */
static inline i64 eb_of_array(i64 extent) { if (extent < 0) __builtin_unreachable(); return extent; }
/* The number of iterations of from..to, and of nested ones; too many to count is a great many. */
static inline i64 eb_extent(i64 from, i64 to) { i64 r; return to <= from ? 0 : __builtin_sub_overflow(to, from, &r) ? INT64_MAX : r; }
static inline i64 eb_times(i64 a, i64 b) { i64 r; return __builtin_mul_overflow(a, b, &r) ? INT64_MAX : r; }
/* Where part `part` of `parts` of `n` iterations begins. */
static inline i64 eb_share(i64 n, i64 part, i64 parts) { return n / parts * part + eb_min(n % parts, part); }
/* Is a loop worth a hand-off to other threads? Work is counted in additions: these take some 200 ns in vectors. */
static inline int eb_split(const eb_frame *f, i64 rows, i64 row, f64 work) { return f->threads > 1 && (f64)rows * (f64)row * work >= $WORTH_SHARING; }
/* Where the columns of the one row of part `part` of `parts` begin. */
static inline i64 eb_column(i64 row, i64 part, i64 parts) { return part == parts ? row : eb_share(row, part, parts) & -64; }
/* How far into from..from + extent the nearest value is. */
static inline i64 eb_nearest(i64 at, i64 from, i64 extent) { return at < from ? 0 : eb_max(eb_min(at - from, extent - 1), 0); }
/* Does this thread take the iterations in this row, or in this column of the one row? */
static inline int eb_owns_rows(const eb_frame *f, i64 rows, i64 row, f64 work, i64 r) {
    if (!eb_split(f, rows, row, work)) return f->thread == 0;
    return r >= eb_share(rows, f->thread, f->threads) && r < eb_share(rows, f->thread + 1, f->threads);
}
static inline int eb_owns_columns(const eb_frame *f, i64 rows, i64 row, f64 work, i64 c) {
    if (!eb_split(f, rows, row, work)) return f->thread == 0;
    return c >= eb_column(row, f->thread, f->threads) && c < eb_column(row, f->thread + 1, f->threads);
}
/* What is narrow on a GPU; here nothing is too wide. */
#define EB_SMALL (1ll << 60)
/* Index arithmetic for the interior: what leaves the range of honest indices makes the interior empty. */
static inline i64 eb_sum(i64 *wild, i64 a, i64 b) { i64 r; *wild |= __builtin_add_overflow(a, b, &r); return r; }
static inline i64 eb_difference(i64 *wild, i64 a, i64 b) { i64 r; *wild |= __builtin_sub_overflow(a, b, &r); return r; }
static inline i64 eb_product(i64 *wild, i64 a, i64 b) { i64 r; *wild |= __builtin_mul_overflow(a, b, &r); return r; }
static inline i64 eb_tame(i64 *wild, i64 a) { *wild |= (u64)a + (1ull << 60) >> 61; return a; }
/* Not zero; what is not tame is wild. */
static inline int eb_exact(i64 *wild, i64 first, i64 end) { eb_tame(wild, first); eb_tame(wild, end); return 1; }
/* Index arithmetic: what does not fit is INT64_MIN, and so is what is computed from it. */
static inline i64 eb_index_add(i64 a, i64 b) { i64 r; return (a == INT64_MIN) | (b == INT64_MIN) | __builtin_add_overflow(a, b, &r) ? INT64_MIN : r; }
static inline i64 eb_index_sub(i64 a, i64 b) { i64 r; return (a == INT64_MIN) | (b == INT64_MIN) | __builtin_sub_overflow(a, b, &r) ? INT64_MIN : r; }
static inline i64 eb_index_mul(i64 a, i64 b) { i64 r; return (a == INT64_MIN) | (b == INT64_MIN) | __builtin_mul_overflow(a, b, &r) ? INT64_MIN : r; }
static inline i64 eb_index_shl(i64 a, i64 b) { return (a == INT64_MIN) | (b == INT64_MIN) ? INT64_MIN : ((i64)((u64)a << (b & 63)) >> (b & 63) == a ? (i64)((u64)a << (b & 63)) : INT64_MIN); }
static inline i64 eb_index_div(i64 a, i64 b) { return (a == INT64_MIN) | (b == INT64_MIN) ? INT64_MIN : a / b; }
/* Remainders keep a place in a periodic grid: it is inside, or one period away, nearly always, and a division takes long. */
static inline i64 eb_divided(i64 a, i64 b) { return b == -1 ? 0 : a % b; }
static inline i64 eb_rem_i64(i64 a, i64 b) { return __builtin_constant_p(b) ? eb_divided(a, b) : a >= 0 && a < b ? a : b > 0 && a >= b && a - b < b ? a - b : eb_divided(a, b); }
static inline i64 eb_index_rem(i64 a, i64 b) {
    /* What is inside, or one period away, is a number. */
    if (!__builtin_constant_p(b)) {
        if (__builtin_expect(b > 0 && (u64)a < (u64)b, 1)) return a;
        if (b > 0 && a >= b && a - b < b) return a - b;
    }
    return (a == INT64_MIN) | (b == INT64_MIN) ? INT64_MIN : eb_divided(a, b);
}
static inline i64 eb_index_min(i64 a, i64 b) { return (a == INT64_MIN) | (b == INT64_MIN) ? INT64_MIN : (a < b ? a : b); }
static inline i64 eb_index_max(i64 a, i64 b) { return (a == INT64_MIN) | (b == INT64_MIN) ? INT64_MIN : (a > b ? a : b); }
static inline i64 eb_index_and(i64 a, i64 b) { return (a == INT64_MIN) | (b == INT64_MIN) ? INT64_MIN : a & b; }
static inline i64 eb_index_or(i64 a, i64 b) { return (a == INT64_MIN) | (b == INT64_MIN) ? INT64_MIN : a | b; }
static inline i64 eb_index_xor(i64 a, i64 b) { return (a == INT64_MIN) | (b == INT64_MIN) ? INT64_MIN : a ^ b; }
static inline i64 eb_index_shr(i64 a, i64 b) { return (a == INT64_MIN) | (b == INT64_MIN) ? INT64_MIN : a >> (b & 63); }
static inline i64 eb_floor_div(i64 a, i64 b) { i64 q = a / b; return q * b > a == b > 0 && q * b != a ? q - 1 : q; }
static inline i64 eb_rem_euclid(i64 a, i64 b) { i64 r = b > 0 && a < 0 && a >= -b ? a : eb_rem_i64(a, b); return r < 0 ? r + (b < 0 ? -b : b) : r; }
static inline i64 eb_index_rem_euclid(i64 a, i64 b) { return (a == INT64_MIN) | (b == INT64_MIN) ? INT64_MIN : eb_rem_euclid(a, b); }
static inline u64 eb_bits_f64(f64 x) { u64 b; memcpy(&b, &x, 8); return b; }
static inline f64 eb_f64_bits(u64 b) { f64 x; memcpy(&x, &b, 8); return x; }
static inline u64 eb_bits_f32(f32 x) { u32 b; memcpy(&b, &x, 4); return b; }
static inline f32 eb_f32_bits(u64 b) { u32 c = (u32)b; f32 x; memcpy(&x, &c, 4); return x; }

/* a[k] = x for all k < n, a cache line at a time: the compiler is told to make no vectors of its own. */
#define EB_FILL(t) \
    static __attribute__((noinline, unused)) void eb_fill_##t(t *a, t x, i64 n) { \
        const i64 line = 64 / sizeof(t); \
        t all[64 / sizeof(t)]; \
        for (i64 k = 0; k < line; k++) all[k] = x; \
        i64 k = 0; \
        for (; k + line <= n; k += line) memcpy(a + k, all, 64); \
        for (; k < n; k++) a[k] = x; \
    }
EB_FILL(f64) EB_FILL(f32) EB_FILL(i64) EB_FILL(i32) EB_FILL(u32) EB_FILL(b8)

/* Conversions of Rust's `as`: saturating, NaN to zero. The compiler must not see that an integer comes from a float: where it
   becomes one again, it would round instead, and keep the sign of a zero. */
#if defined(__x86_64__)
/* The processor says INT64_MIN of what does not fit: one question instead of two. */
#ifdef __AVX__
#define EB_TRUNCATED(t, x, r) __asm__("vcvtts" t "2siq %1, %0" : "=r"(r) : "x"(x))
#else
#define EB_TRUNCATED(t, x, r) __asm__("cvtts" t "2siq %1, %0" : "=r"(r) : "x"(x))
#endif
#define EB_TO_INT(name, from, t, to, least, above, most) \
    static inline to name(from x) { \
        i64 r; \
        EB_TRUNCATED(t, x, r); \
        if (__builtin_expect(r != INT64_MIN && r == (to)r, 1)) return (to)r; \
        return x != x ? 0 : x <= (from)(least) ? (to)(least) : (to)(most); \
    }
#else
#define EB_TO_INT(name, from, t, to, least, above, most) \
    static inline to name(from x) { \
        to r; \
        if (__builtin_expect(x > (from)(least) && x < (from)(above), 1)) r = (to)x; \
        else r = x != x ? 0 : x <= (from)(least) ? (to)(least) : (to)(most); \
        __asm__("" : "+r"(r)); \
        return r; \
    }
#endif
EB_TO_INT(eb_i32_f64, f64, "d", i32, INT32_MIN, 2147483648.0, INT32_MAX)
EB_TO_INT(eb_i32_f32, f32, "s", i32, INT32_MIN, 2147483648.0, INT32_MAX)
EB_TO_INT(eb_u32_f64, f64, "d", u32, 0, 4294967296.0, UINT32_MAX)
EB_TO_INT(eb_u32_f32, f32, "s", u32, 0, 4294967296.0, UINT32_MAX)
EB_TO_INT(eb_i64_f64, f64, "d", i64, INT64_MIN, 9223372036854775808.0, INT64_MAX)
EB_TO_INT(eb_i64_f32, f32, "s", i64, INT64_MIN, 9223372036854775808.0, INT64_MAX)

static inline i64 eb_div_i64(i64 a, i64 b) { return b == -1 ? -a : a / b; }
static inline i32 eb_div_i32(i32 a, i32 b) { return b == -1 ? -a : a / b; }
static inline i32 eb_rem_i32(i32 a, i32 b) { return b == -1 ? 0 : a % b; }
static inline u32 eb_div_u32(u32 a, u32 b) { return a / b; }
static inline u32 eb_rem_u32(u32 a, u32 b) { return a % b; }

/* Where the chain of a chunk of a product begins; a later chunk begins at zero and is added to those before it. */
enum { EB_AT_ZERO, EB_AT_ELEMENT, EB_LATER };

/* The cut of an iteration space into leaves: the order of reductions. */
#define EB_SEEN f->places
#define EB_PARTIALS (f->places + 1)
typedef struct { i64 count, rows_per_leaf, pieces, size; } eb_leaves;
/* The terms of so many iterations are kept at a time, and the lanes of leaves that are not complete. */
enum { EB_KEPT = $KEPT, EB_OPEN = 2 * 16 * 8 };
static inline i64 eb_window(const eb_frame *f, i64 sums) { return eb_min((f->staged / sums - EB_OPEN) / 8 & -16, EB_KEPT); }
/* The leaf of an iteration. */
static inline i64 eb_leaf_of(const eb_leaves *c, i64 row, i64 at) { return at / row / c->rows_per_leaf * c->pieces + (c->pieces > 1 ? at % row / c->size : 0); }
static inline eb_leaves eb_cut(i64 rows, i64 row) {
    i64 size = (eb_max(eb_times(rows, row) / (EB_LEAVES / 2) + 1, EB_LEAF) + 15) / 16 * 16;
    eb_leaves c = {0, 1, 1, size};
    if (row <= size) c.rows_per_leaf = eb_max(size / eb_max(row, 1), 1);
    else c.pieces = row / size + (row % size != 0);
    /* More iterations than 64 bits count, in rows of more than one leaf or in too many rows: no more leaves than places. */
    if (c.pieces > 1 && rows > EB_LEAVES / c.pieces) { c.pieces = 1; c.size = row; }
    if (rows / c.rows_per_leaf >= EB_LEAVES) c.rows_per_leaf = rows / (EB_LEAVES / 2) + 1;
    c.count = (rows / c.rows_per_leaf + (rows % c.rows_per_leaf != 0)) * c.pieces;
    return c;
}
