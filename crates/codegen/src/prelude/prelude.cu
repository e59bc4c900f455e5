EB_DO eb_tape eb_open(const eb_thread *f, i32 array) {
    eb_tape t = {f->tape[array], 0, (i32)f->depth[array], (i32)f->capacity[array], -1, 0};
    return t;
}
/* Thread 0 writes what waits into the table: all have read what was there. */
EB_DO void eb_write(eb_thread *f, eb_tape *t) {
    if (t->epoch == f->epoch) eb_barrier(f);
    if (eb_first()) t->places[t->pending] = t->value;
}
EB_DO void *eb_place(eb_thread *f, eb_tape *t, i32 place) {
    if (t->pending >= 0) {
        eb_write(f, t);
        if (place == t->pending) return t->value;
    }
    return t->places[place];
}
EB_DO void *eb_exchange(eb_thread *f, eb_tape *t, i32 place, void *mine) {
    void *const theirs = eb_place(f, t, place);
    t->pending = place;
    t->value = mine;
    t->epoch = f->epoch;
    return theirs;
}
EB_DO void eb_close(eb_thread *f, eb_tape *t, i32 array) {
    if (t->pending >= 0) {
        eb_write(f, t);
        if (eb_first()) f->shared->exchanged = 1;
    }
    if (eb_first()) f->depth[array] = t->depth;
}

/* Before each thread takes elements from the places of a tape, or puts them there, on its own: all know the table. */
EB_DO void eb_settle(eb_thread *f, eb_tape *t) {
    if (t->pending < 0) return;
    eb_barrier(f);
    if (eb_first()) { t->places[t->pending] = t->value; f->shared->exchanged = 1; }
    t->pending = -1;
    eb_barrier(f);
}
/* The places of a tape that a loop uses, one after the other in this direction, N at a time. */
template <typename T, int N, int STEP> struct eb_places {
    T *row[N];
    void **first;
    i32 asked, last;
    nx at;
    EB_IN void begin(void **places, i64 count, nx element) {
        first = places; asked = 0; last = (i32)count - 1; at = element;
    }
    /* Asks for the next ones; where there are no more, for the last one again. A branch here would make all wait. */
    EB_IN void ask() {
#pragma unroll
        for (int k = 0; k < N; k++) {
            void **const place = first + STEP * asked;
            __builtin_assume(__isGlobal(place));
            asked = asked < last ? asked + 1 : last;
            row[k] = (T *)*place;
        }
    }
    /* The thread's element of one of them. */
    EB_IN T *element(int k) {
        T *const element = row[k] + at;
        __builtin_assume(__isGlobal(element));
        return element;
    }
};
/* What some passes push and pop. Before them `ahead` asks for what the passes after them need; it is there when they are
   over, and `turn` takes it. */
template <typename T, int N> struct eb_pushes {
    eb_places<T, N, 1> up;
    T *place[N];
    EB_IN void begin(const eb_tape &t, nx at, i64 count) { up.begin(t.places + t.depth, count, at); ahead(); turn(); }
    EB_IN void ahead() { up.ask(); }
    EB_IN void push(int k, T pushed) { *place[k] = pushed; }
    EB_IN void turn() {
#pragma unroll
        for (int k = 0; k < N; k++) place[k] = up.element(k);
    }
};
template <typename T, int N> struct eb_pops {
    eb_places<T, N, -1> down;
    T here[N], coming[N];
    EB_IN void begin(const eb_tape &t, nx at, i64 count) {
        down.begin(t.places + t.depth - 1, count, at); down.ask(); ahead(); turn();
    }
    EB_IN void ahead() {
#pragma unroll
        for (int k = 0; k < N; k++) coming[k] = *down.element(k);
        down.ask();
    }
    EB_IN T pop(int k) { return here[k]; }
    EB_IN void turn() {
#pragma unroll
        for (int k = 0; k < N; k++) here[k] = coming[k];
    }
};

/* An address in global memory. The compiler must not see where it comes from: it would keep addresses that are exchanged in
   a loop twice, once of each kind. */
template <typename T> EB_DO T *eb_global(T *address) {
    u64 global;
    asm("cvta.to.global.u64 %0, %1;" : "=l"(global) : "l"(address));
    return (T *)__cvta_global_to_generic(global);
}

/* What is computed on entry to a segment, and kept: the compiler must not compute it again in every pass. */
EB_DO i32 eb_kept(i32 known) {
    asm("" : "+r"(known));
    return known;
}

/* An extent in the type of places. The compiler must not see that it was a wider number: it would compute with that one. */
EB_DO nx eb_stride(i64 extent) {
    nx stride = (nx)extent;
#ifndef EB_WIDE
    asm("" : "+r"(stride));
#endif
    return stride;
}

EB_DO i64 eb_min(i64 a, i64 b) { return a < b ? a : b; }
/* How far a loop inside an iteration goes from `pass` on before the thread looks whether the host wants an end. */
enum { EB_ITERATIONS = 65536 };
EB_DO i64 eb_until(i64 pass, i64 end) { return (u64)end - (u64)pass > EB_ITERATIONS ? pass + EB_ITERATIONS : end; }
EB_DO i64 eb_max(i64 a, i64 b) { return a > b ? a : b; }
/* Narrows lo..hi to the larger of the parts beside x. */
EB_DO void eb_avoid(i64 *lo, i64 *hi, i64 x) {
    if (x < *lo || x >= *hi) return;
    if (x - *lo > *hi - 1 - x) *hi = x;
    else *lo = x + 1;
}
/* Index arithmetic for the interior: what leaves the range of honest indices makes the interior empty. */
EB_DO i64 eb_sum(i64 *wild, i64 a, i64 b) { i64 r = (i64)((u64)a + (u64)b); *wild |= (u64)((a ^ r) & (b ^ r)) >> 63; return r; }
EB_DO i64 eb_difference(i64 *wild, i64 a, i64 b) { i64 r = (i64)((u64)a - (u64)b); *wild |= (u64)((a ^ b) & (a ^ r)) >> 63; return r; }
EB_DO i64 eb_product(i64 *wild, i64 a, i64 b) { i64 r = (i64)((u64)a * (u64)b); *wild |= __mul64hi(a, b) != r >> 63; return r; }
EB_DO i64 eb_tame(i64 *wild, i64 a) { *wild |= (i64)(((u64)a + (1ull << 60)) >> 61); return a; }
/* The number of iterations of from..to, and of nested ones; too many to count is a great many. */
EB_DO i64 eb_extent(i64 from, i64 to) { i64 over = 0, r = eb_difference(&over, to, from); return to <= from ? 0 : over ? INT64_MAX : r; }
EB_DO i64 eb_times(i64 a, i64 b) { i64 over = 0, r = eb_product(&over, a, b); return over ? INT64_MAX : r; }
/* Not zero; what is not tame is wild. */
EB_DO b8 eb_exact(i64 *wild, i64 first, i64 end) { eb_tame(wild, first); eb_tame(wild, end); return 1; }
/* Index arithmetic: what does not fit is INT64_MIN, and so is what is computed from it. */
EB_DO i64 eb_index_add(i64 a, i64 b) { i64 over = 0, r = eb_sum(&over, a, b); return (a == INT64_MIN) | (b == INT64_MIN) | (over != 0) ? INT64_MIN : r; }
EB_DO i64 eb_index_sub(i64 a, i64 b) { i64 over = 0, r = eb_difference(&over, a, b); return (a == INT64_MIN) | (b == INT64_MIN) | (over != 0) ? INT64_MIN : r; }
EB_DO i64 eb_index_mul(i64 a, i64 b) { i64 over = 0, r = eb_product(&over, a, b); return (a == INT64_MIN) | (b == INT64_MIN) | (over != 0) ? INT64_MIN : r; }
EB_DO i64 eb_index_shl(i64 a, i64 b) { return (a == INT64_MIN) | (b == INT64_MIN) ? INT64_MIN : ((i64)((u64)a << (b & 63)) >> (b & 63) == a ? (i64)((u64)a << (b & 63)) : INT64_MIN); }
EB_DO i64 eb_index_div(i64 a, i64 b) { return (a == INT64_MIN) | (b == INT64_MIN) ? INT64_MIN : a / b; }
/* Remainders keep a place in a periodic grid: it is inside, or one period away, nearly always, and a division takes long. */
static __device__ __noinline__ i64 eb_divided(i64 a, i64 b) { return b == -1 ? 0 : a % b; }
EB_DO i64 eb_rem_i64(i64 a, i64 b) { return a >= 0 && a < b ? a : b > 0 && a >= b && a - b < b ? a - b : eb_divided(a, b); }
EB_DO i64 eb_index_rem(i64 a, i64 b) { return (a == INT64_MIN) | (b == INT64_MIN) ? INT64_MIN : eb_rem_i64(a, b); }
EB_DO i64 eb_index_min(i64 a, i64 b) { return (a == INT64_MIN) | (b == INT64_MIN) ? INT64_MIN : (a < b ? a : b); }
EB_DO i64 eb_index_max(i64 a, i64 b) { return (a == INT64_MIN) | (b == INT64_MIN) ? INT64_MIN : (a > b ? a : b); }
EB_DO i64 eb_index_and(i64 a, i64 b) { return (a == INT64_MIN) | (b == INT64_MIN) ? INT64_MIN : a & b; }
EB_DO i64 eb_index_or(i64 a, i64 b) { return (a == INT64_MIN) | (b == INT64_MIN) ? INT64_MIN : a | b; }
EB_DO i64 eb_index_xor(i64 a, i64 b) { return (a == INT64_MIN) | (b == INT64_MIN) ? INT64_MIN : a ^ b; }
EB_DO i64 eb_index_shr(i64 a, i64 b) { return (a == INT64_MIN) | (b == INT64_MIN) ? INT64_MIN : a >> (b & 63); }
EB_DO i64 eb_floor_div(i64 a, i64 b) { i64 q = a / b; return (q * b > a) == (b > 0) && q * b != a ? q - 1 : q; }
/* The same or nearly so, without branches, so that the compiler can compute it before a loop. */
EB_DO i64 eb_near_div(i64 a, i64 b) { return (i64)floor((f64)a / (f64)b); }
EB_DO i64 eb_rem_euclid(i64 a, i64 b) { i64 r = b > 0 && a < 0 && a >= -b ? a : eb_rem_i64(a, b); return r < 0 ? r + (b < 0 ? -b : b) : r; }
EB_DO i64 eb_index_rem_euclid(i64 a, i64 b) { return (a == INT64_MIN) | (b == INT64_MIN) ? INT64_MIN : eb_rem_euclid(a, b); }
EB_DO u64 eb_bits_f64(f64 x) { return (u64)__double_as_longlong(x); }
EB_DO f64 eb_f64_bits(u64 b) { return __longlong_as_double((i64)b); }
EB_DO u64 eb_bits_f32(f32 x) { return (u32)__float_as_int(x); }
EB_DO f32 eb_f32_bits(u64 b) { return __int_as_float((i32)(u32)b); }

/* Conversions of Rust's `as`: saturating, NaN to zero. */
#define EB_TO_INT(name, from, to, least, above, most) \
    EB_DO to name(from x) { return x != x ? 0 : x <= (from)(least) ? (to)(least) : x >= (from)(above) ? (to)(most) : (to)x; }
EB_TO_INT(eb_i32_f64, f64, i32, INT32_MIN, 2147483648.0, INT32_MAX)
EB_TO_INT(eb_i32_f32, f32, i32, INT32_MIN, 2147483648.0, INT32_MAX)
EB_TO_INT(eb_u32_f64, f64, u32, 0, 4294967296.0, UINT32_MAX)
EB_TO_INT(eb_u32_f32, f32, u32, 0, 4294967296.0, UINT32_MAX)
EB_TO_INT(eb_i64_f64, f64, i64, INT64_MIN, 9223372036854775808.0, INT64_MAX)
EB_TO_INT(eb_i64_f32, f32, i64, INT64_MIN, 9223372036854775808.0, INT64_MAX)

EB_DO i64 eb_div_i64(i64 a, i64 b) { return b == -1 ? (i64)(0ull - (u64)a) : a / b; }
EB_DO i32 eb_div_i32(i32 a, i32 b) { return b == -1 ? (i32)(0u - (u32)a) : a / b; }
EB_DO i32 eb_rem_i32(i32 a, i32 b) { return b == -1 ? 0 : a % b; }
EB_DO u32 eb_div_u32(u32 a, u32 b) { return a / b; }
EB_DO u32 eb_rem_u32(u32 a, u32 b) { return a % b; }

/* Combining into shared elements where the order does not matter. */
EB_DO void eb_atomic_add(i32 *a, i32 x) { atomicAdd(a, x); }
EB_DO void eb_atomic_add(u32 *a, u32 x) { atomicAdd(a, x); }
EB_DO void eb_atomic_add(i64 *a, i64 x) { atomicAdd((u64 *)a, (u64)x); }
EB_DO void eb_atomic_add(f32 *a, f32 x) { atomicAdd(a, x); }
EB_DO void eb_atomic_add(f64 *a, f64 x) { atomicAdd(a, x); }
EB_DO void eb_atomic_min(i32 *a, i32 x) { atomicMin(a, x); }
EB_DO void eb_atomic_min(u32 *a, u32 x) { atomicMin(a, x); }
EB_DO void eb_atomic_min(i64 *a, i64 x) { atomicMin(a, x); }
EB_DO void eb_atomic_max(i32 *a, i32 x) { atomicMax(a, x); }
EB_DO void eb_atomic_max(u32 *a, u32 x) { atomicMax(a, x); }
EB_DO void eb_atomic_max(i64 *a, i64 x) { atomicMax(a, x); }

/* Takes an element; not zero if somebody has it. Bytes are taken through the word that they are in. */
EB_DO i32 eb_take(b8 *a) {
    const int shift = 8 * (int)((u64)a & 3);
    return atomicOr((u32 *)((u64)a & ~3ull), 1u << shift) >> shift & 255;
}

/* The order of sums: the most leaves, the least iterations of one, and the iterations in a leaf of one row. */
enum { EB_LEAVES = $LEAVES, EB_LEAF = $LEAF };
EB_DO i64 eb_leaf_size(i64 row) { return (eb_max(row / (EB_LEAVES / 2) + 1, EB_LEAF) + 15) / 16 * 16; }

/* The cut of an iteration space into leaves: the order of reductions. */
/* Of each sum there are the results of its leaves, whether any iteration combined, and what its element held; and that twice: the next
   loop may leave results while blocks still read those of the last one. The one after it has met all of them. */
enum { EB_SEEN = EB_LEAVES, EB_ELEMENT = EB_LEAVES + 1, EB_PARTIALS = EB_LEAVES + 2, EB_RESULTS = 2 * EB_PARTIALS };
EB_DO u64 *eb_partials(eb_thread *f) { f->turn ^= 1; return f->partials + f->turn * EB_PARTIALS; }
struct eb_leaves { i64 count, rows_per_leaf, pieces, size; };
static __device__ __noinline__ eb_leaves eb_cut(i64 rows, i64 row) {
    i64 size = (eb_max(eb_times(rows, row) / (EB_LEAVES / 2) + 1, EB_LEAF) + 15) / 16 * 16;
    eb_leaves c = {0, 1, 1, size};
    if (row <= size) c.rows_per_leaf = eb_max(size / eb_max(row, 1), 1);
    else c.pieces = (row - 1) / size + 1;
    /* More iterations than 64 bits count, in rows of more than one leaf or in too many rows: no more leaves than places. */
    if (c.pieces > 1 && rows > EB_LEAVES / c.pieces) { c.pieces = 1; c.size = row; }
    i64 groups = rows / c.rows_per_leaf;
    if (groups >= EB_LEAVES) { c.rows_per_leaf = rows / (EB_LEAVES / 2) + 1; groups = rows / c.rows_per_leaf; }
    c.count = (groups + (groups * c.rows_per_leaf != rows)) * c.pieces;
    return c;
}

/* Memory that the threads of a block have in common, for one thing at a time: they meet before they use it for another. Of the 48 KiB
   that a block can have without being asked for, programs of many loops need the rest. */
enum { EB_BLOCK_WORDS = 4608 };
EB_DO u64 *eb_block_memory() {
    __shared__ __align__(16) u64 words[EB_BLOCK_WORDS];
    return words;
}

/* Adds every `step`th term up to an end, in order, so many that are loaded at once: the compiler would wait for each. More would take
   registers of loops that are run more often. */
template <typename T, typename C>
EB_DO T eb_add_every(const T *terms, i32 at, i32 end, i32 step, T sum, C combine) {
    enum { AT_ONCE = 32 / sizeof(T) };
    T some[AT_ONCE];
#pragma unroll 1
    for (; at + (AT_ONCE - 1) * step < end; at += AT_ONCE * step) {
#pragma unroll
        for (int k = 0; k < AT_ONCE; k++) some[k] = terms[at + k * step];
#pragma unroll
        for (int k = 0; k < AT_ONCE; k++) sum = combine(sum, some[k]);
    }
    if (at >= end) return sum;
#pragma unroll
    for (int k = 0; k < AT_ONCE - 1; k++) if (at + k * step < end) some[k] = terms[at + k * step];
#pragma unroll
    for (int k = 0; k < AT_ONCE - 1; k++) if (at + k * step < end) sum = combine(sum, some[k]);
    return sum;
}

/* Adds the terms of one lane to its sum: those of the iterations `begin..end` of a leaf whose rows have so many columns. The terms of
   the leaf would begin at `terms`. They are no more than 32 bits count. */
template <typename T, typename C>
EB_DO T eb_add_lane(const T *terms, i64 begin, i64 end, i64 width, T sum, C combine) {
    const int lane = threadIdx.x & 15;
    const i32 count = (i32)(end - begin);
    const i64 left = begin == 0 ? 0 : begin % width;
    const T *const own = terms + begin;
    if (width <= 16) {
        /* The lane has one column, or none. */
        if (lane >= width) return sum;
        const i32 step = (i32)width;
        return eb_add_every(own, lane - (i32)left + (lane < left ? step : 0), count, step, sum, combine);
    }
    /* Lines that end where their lanes do are one. */
    const i64 line = width % 16 == 0 ? count : width;
    i32 to = (i32)eb_min(width % 16 == 0 ? count : width - left, count);
    i32 first = (lane - (i32)(left & 15)) & 15;
    for (i32 from = 0; from < count; first = lane) {
        sum = eb_add_every(own, from + first, to, 16, sum, combine);
        from = to;
        to = (i32)eb_min(to + line, count);
    }
    return sum;
}

/* The sum of a leaf, from those of its lanes; the thread of the first lane has it. */
template <typename T, typename C>
EB_DO T eb_add_lanes(T sum, C combine) {
    const u32 sixteen = 0xffffu << (threadIdx.x & 16);
    for (int way = 8; way > 0; way /= 2) sum = combine(sum, __shfl_down_sync(sixteen, sum, way, 16));
    return sum;
}

/* The number of a thread where warps are counted across blocks: those of the first warps of all blocks come first. */
EB_DO i64 eb_spread() { return ((i64)(threadIdx.x >> 5) * gridDim.x + blockIdx.x) * 32 + (threadIdx.x & 31); }

/* Teams: threads of a block that take an iteration together, alike but for sums. Of a sum, sixteen take a leaf, each a lane of it; where
   there are fewer iterations than threads could take, 2^team times sixteen take as many leaves. The number is all that a thread
   keeps of its team: registers are few. Here, where teams take so many iterations, with so many sums at a time at most. */
static __device__ __noinline__ int eb_team_for(const eb_thread *f, i64 iterations, int sums) {
    int team = 0;
    if (sums * (blockDim.x >> 4) <= EB_BLOCK_WORDS)
        while (32 << team <= blockDim.x && eb_times(iterations, 32 << team) <= f->threads) team++;
    /* There are fifteen barriers beside that of the block. */
    if (team > 1 && blockDim.x > 15 * (16 << team)) team = 1;
    /* Others may have had the memory in which sums are handed over. */
    if (team > 0) __syncthreads();
    return team;
}
/* The first iteration of a team, where neighbouring ones are in different blocks, and how many teams there are. */
EB_DO i64 eb_first_of_team(int team) {
    if (team <= 1) return eb_spread() >> (4 + team);
    return (i64)(threadIdx.x >> (4 + team)) * gridDim.x + blockIdx.x;
}
EB_DO i64 eb_teams(const eb_thread *f, int team) { return f->threads >> (4 + team); }
/* Which of the leaves that a team takes at a time is this thread's. */
EB_DO int eb_leaf_of_team(int team) { return (threadIdx.x >> 4) & ((1 << team) - 1); }
EB_DO b8 eb_leads(int team) { return (threadIdx.x & ((16 << team) - 1)) == 0; }
/* The threads of the warp that are in a team of one warp or of half of one. */
EB_DO u32 eb_of_warp(int team) { return team == 0 ? 0xffffu << (threadIdx.x & 16) : ~0u; }
/* All threads of a team meet; does any of them say yes? A barrier of their own is used where they are in several warps. */
EB_DO int eb_any_of_team(int team, int own) {
    if (team <= 1) return __any_sync(eb_of_warp(team), own);
    int any;
    asm volatile("{ .reg .pred p, q; setp.ne.s32 p, %1, 0; barrier.red.or.pred q, %2, %3, p; selp.s32 %0, 1, 0, q; }"
                 : "=r"(any) : "r"(own), "r"(1 + (threadIdx.x >> (4 + team))), "r"(16 << team) : "memory");
    return any;
}
EB_DO void eb_meet_in_team(int team) {
    if (team <= 1) __syncwarp(eb_of_warp(team));
    else asm volatile("barrier.sync %0, %1;" :: "r"(1 + (threadIdx.x >> (4 + team))), "r"(16 << team) : "memory");
}
/* A quotient and a square root, rounded as they should be where numbers are not near the ends of their type; `odd` says that one was.
   The remainder of a quotient that is right to a bit or two is exact, and so is that of a root. */
EB_DO u32 eb_is_near_an_end(f32 a) { return 2 * __float_as_uint(a) - (67u << 24) > 120u << 24; }
EB_DO f32 eb_quick_quotient(f32 a, f32 b, b8 &odd) {
    odd |= eb_is_near_an_end(a) | eb_is_near_an_end(b);
    f32 r;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(b));
    r = __fmaf_rn(r, __fmaf_rn(-b, r, 1.0f), r);
    const f32 q = __fmul_rn(a, r);
    return __fmaf_rn(r, __fmaf_rn(-b, q, a), q);
}
EB_DO f32 eb_quick_sqrt(f32 a, b8 &odd) {
    odd |= __float_as_uint(a) - 0x0d000000u > 0x727fffffu;
    f32 r;
    asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(a));
    const f32 s = __fmul_rn(a, r);
    return __fmaf_rn(__fmaf_rn(-s, s, a), __fmul_rn(r, 0.5f), s);
}
/* Adds the sums of the leaves that a team takes at a time, in order, of which so many are left: this thread has that of a lane of one. It
   is sum `number` of so many at most. The team has met since it handed over sums of this number. */
template <typename T> EB_DO T eb_add_leaves(int team, int sums, int number, i64 left, T lane, T total) {
    const u32 sixteen = eb_of_warp(0);
    for (int way = 8; way; way /= 2) lane = lane + __shfl_down_sync(sixteen, lane, way, 16);
    if (team == 0) return total + __shfl_sync(sixteen, lane, 0, 16);
    T *const slots = (T *)(eb_block_memory() + (((threadIdx.x >> (4 + team)) * sums + number) << team));
    if ((threadIdx.x & 15) == 0) slots[eb_leaf_of_team(team)] = lane;
    eb_meet_in_team(team);
    for (int leaf = 0; leaf < 1 << team && leaf < left; leaf++) total = total + slots[leaf];
    return total;
}

/* A team that computes the terms of chains is a warp, or half of one where there are more iterations than warps could take. */
EB_DO int eb_team_for_chains(const eb_thread *f, i64 iterations) {
    /* Others may have had the memory in which terms are handed over. */
    __syncthreads();
    return eb_times(iterations, 32) <= f->threads;
}
/* Adds the terms that the threads of a team have to chains, in order: each thread has as many of each chain, one in each group of as many
   terms as threads. The first threads have a chain each. Those that are no terms are -0.0, which adds nothing. */
template <typename T, int chains, int groups> EB_DO void eb_add_to_chains(int team, const T (&terms)[chains][groups], T &chain) {
    /* As much of them as one load brings. */
    struct __align__(16) eb_piece { T of[16 / sizeof(T)]; };
    enum { PIECE = 16 / sizeof(T), AHEAD = 16 / PIECE, OF_THREAD = EB_BLOCK_WORDS * sizeof(u64) / (EB_THREADS / 2) };
    static_assert(chains * (groups * sizeof(T) + 1) <= OF_THREAD, "a block has memory for its terms");
    const int width = 16 << team, lane = threadIdx.x & (width - 1), length = groups * width, next = length + PIECE;
    /* A team has the same place however many groups it has just now: others of its block may have more or fewer. */
    T *const slots = (T *)((char *)eb_block_memory() + (threadIdx.x - lane) * OF_THREAD);
#pragma unroll
    for (int k = 0; k < chains; k++)
#pragma unroll
        for (int group = 0; group < groups; group++) slots[k * next + group * width + lane] = terms[k][group];
    __syncwarp(eb_of_warp(team));
    if (lane < chains) {
        const eb_piece *const own = (const eb_piece *)(slots + lane * next);
        for (int at = 0; at < length; at += 16) {
            eb_piece pieces[AHEAD];
#pragma unroll
            for (int p = 0; p < AHEAD; p++) pieces[p] = own[at / PIECE + p];
#pragma unroll
            for (int p = 0; p < AHEAD; p++)
#pragma unroll
                for (int k = 0; k < PIECE; k++) chain = chain + pieces[p].of[k];
        }
    }
    __syncwarp(eb_of_warp(team));
}

/* The row of a leaf in which its iteration with this number is. */
EB_DO i64 eb_line(i64 at, i64 width) {
    if (at < width) return 0;
    return at <= 0xffffffffu ? (u32)at / (u32)width : at / width;
}

/* The terms that iterations keep of a sum: those of a window, and the lanes of a leaf that has some of them, twice: while those
   of one leaf are read, those of another may be written. */
enum { EB_WINDOW = 131072 };
EB_DO u64 *eb_terms(const eb_thread *f, int k);

/* Adds kept terms to the sums of their leaves: of so many iterations from `batch` on. Sixteen threads take a leaf, each a lane of
   it; of a leaf that goes on in the next window they keep the lanes. */
template <typename T, typename B, typename C>
EB_DO void eb_add_terms(
    const eb_thread *f, int k, u64 *results, i64 rows, i64 row, i64 batch, i64 count, int turn, const T *terms, T neutral, B to_bits,
    C combine
) {
    const eb_leaves cut = eb_cut(rows, row);
    const T *const before = (const T *)(eb_terms(f, k) + EB_WINDOW + 16 * turn);
    T *const after = (T *)(eb_terms(f, k) + EB_WINDOW + 16 * (turn ^ 1));
    const int lane = threadIdx.x & 15;
    /* A leaf has whole rows, or a piece of one. */
    const i64 whole = cut.pieces > 1 ? row : cut.rows_per_leaf * row;
    const i64 from = batch / whole * cut.pieces + batch % whole / cut.size * (cut.pieces > 1);
    for (i64 leaf = from + (threadIdx.x >> 4) * gridDim.x + blockIdx.x; leaf < cut.count; leaf += f->threads >> 4) {
        const i64 group = leaf / cut.pieces, piece = leaf % cut.pieces;
        const i64 first = group * whole + piece * cut.size - batch;
        if (first >= count) break;
        const i64 width = cut.pieces > 1 ? eb_min(cut.size, row - piece * cut.size) : row;
        const i64 all = cut.pieces > 1 ? width : eb_min(cut.rows_per_leaf, rows - group * cut.rows_per_leaf) * row;
        const i64 begin = eb_max(-first, 0), end = eb_min(all, count - first);
        T sum = eb_add_lane(terms + first, begin, end, width, begin > 0 ? before[lane] : neutral, combine);
        if (end < all) {
            after[lane] = sum;
        } else {
            sum = eb_add_lanes(sum, combine);
            if (lane == 0) results[leaf] = to_bits(sum);
        }
    }
}

/* The results of leaves, one after the other, by a warp: its threads fetch them together, and all compute the same. The first ones are
   there, and the next ones on their way while some are added. */
EB_DO u64 eb_result_of_leaf(const u64 *partials, i64 leaf, i64 count) {
    const i64 own = leaf + (threadIdx.x & 31);
    return own < count ? partials[own] : 0;
}
template <typename T, typename B, typename C>
EB_DO T eb_in_order(const u64 *partials, u64 first, i64 count, T total, B from_bits, C combine) {
    for (i64 leaf = 0; leaf < count; leaf += 32) {
        const int here = (int)eb_min(count - leaf, 32);
        const T own = from_bits(first);
        first = eb_result_of_leaf(partials, leaf + 32, count);
        enum { AT_ONCE = 16 };
#pragma unroll
        for (int from = 0; from < 32; from += AT_ONCE) {
            T some[AT_ONCE];
#pragma unroll
            for (int k = 0; k < AT_ONCE; k++) some[k] = __shfl_sync(~0u, own, from + k);
#pragma unroll
            for (int k = 0; k < AT_ONCE; k++) if (from + k < here) total = combine(total, some[k]);
        }
    }
    __syncwarp();
    return total;
}

/* Which iterations a thread takes: neighbouring threads take neighbouring columns, from a line of memory on, `width` of
   them at a time; a block takes several rows at once where they are short. A thread goes through a band of rows one after
   the other: what it loads of the next row is near by the time that it comes there. Its block has the rows `base..end`, of which the
   thread takes the band `nth`, and the columns before `last`. */
struct eb_deal { i32 column, columns, nth; i64 band, base, end, last; };
/* What all threads of a block know of a loop that is dealt out on entry to a segment. */
struct eb_plan { i64 band, base, end, last; i32 columns, proved; };
enum { EB_LINE = 32, EB_NOTHING = 1 << 30 };
/* The nearest value that narrow ones can be compared with. */
EB_DO nx eb_narrow(i64 x) { return (nx)eb_max(eb_min(x, 2 * EB_SMALL - 1), 1 - 2 * EB_SMALL); }
/* a / b, without a division that the compiler could not move out of a loop. */
EB_DO u32 eb_ratio(u32 a, u32 b) {
    u32 q = (u32)__fdividef((f32)a, (f32)b);
    q -= q * b > a;
    q += (q + 1) * b <= a;
    return q;
}
/* How many rows a band has where each of so many workers takes one: whole pairs, where two rows are taken together. */
EB_DO i64 eb_band(i64 rows, i64 together, u32 workers) {
    const i64 groups = together == 1 ? rows : rows / 2 + rows % 2;
    const int shift = groups >> 31 ? 33 - __clzll(groups) : 0;
    const u32 most = (u32)(groups >> shift), each = most / workers;
    if (shift) return eb_times((i64)each + 1 > INT64_MAX >> shift ? INT64_MAX : (i64)(each + 1) << shift, together);
    return (i64)(each + (each * workers < most)) * together;
}
EB_DO eb_deal eb_share(i64 rows, i64 row, i64 from, i64 together) {
    const i64 threads = (i64)gridDim.x * blockDim.x;
    eb_deal d = {EB_NOTHING, EB_NOTHING, 0, rows, 0, rows, row};
    if (rows <= 0 || row <= 0) return d;
    /* Few iterations are spread over all blocks, a few warps of each, and neighbouring lanes still have neighbouring columns. */
    const i64 iterations = eb_times(rows, row);
    const b8 few = iterations <= threads / 2;
    const int most = few ? eb_max(32, (int)((u32)iterations / gridDim.x) + 1) : blockDim.x;
    const int shift = row <= 1 ? 0 : 32 - __clz((int)eb_min(row, eb_min(most, blockDim.x)) - 1);
    const i64 width = 1ll << shift, workers = threads >> shift;
    const i64 pieces = ((row - 1) >> shift) + 1;
    i64 worker = ((i64)blockIdx.x * blockDim.x + threadIdx.x) >> shift;
    if (few && shift >= 5) worker = (i64)(threadIdx.x >> shift) * gridDim.x + blockIdx.x;
    else if (few) worker = eb_spread() >> shift;
    /* Small loops are for the last threads: large ones leave them idle, if any. */
    if (eb_times(rows, pieces) <= workers / 2) worker = workers - 1 - worker;
    /* Columns are counted from the line of memory that the first one is on, where that takes no more threads. */
    const i64 off = from & (EB_LINE - 1), lead = (u64)off <= ((u64)pieces << shift) - (u64)row ? off : 0;
    const i64 column = (threadIdx.x & (width - 1)) - lead;
    if (pieces >= workers) {
        d.column = worker * width + column; d.columns = workers * width;
        if (d.column < 0) d.column += d.columns;
    } else {
        const u32 each = eb_ratio((u32)workers, (u32)pieces), at = eb_ratio((u32)worker, (u32)pieces);
        const i64 begin = ((u32)worker - at * (u32)pieces) * width + column;
        d.band = eb_band(rows, together, each);
        if (at < each && begin >= 0) { d.column = begin; d.nth = at; }
    }
    return d;
}
/* What a thread takes of some rows and columns, of which its block has all. */
EB_DO eb_deal eb_share_region(i64 base, i64 end, i64 left, i64 right, i64 together) {
    eb_deal d = {EB_NOTHING, EB_NOTHING, 0, end - base, base, end, right};
    if (end <= base || right <= left) return d;
    const int shift = 32 - __clz((int)eb_min(right - left, blockDim.x) - 1), workers = max(blockDim.x >> shift, 1);
    d.columns = 1 << shift;
    d.band = eb_band(end - base, together, workers);
    if (threadIdx.x >> shift < workers) { d.column = (i32)left + (threadIdx.x & (d.columns - 1)); d.nth = threadIdx.x >> shift; }
    return d;
}
/* Where there are no more leaves than blocks, loops beside sums over the same domain are dealt out as these: a block takes the
   iterations of its leaf, and need not wait for others. */
EB_DO b8 eb_is_by_leaves(i64 rows, i64 row) {
    return rows > 0 && row > 0 && eb_times(rows, row) <= EB_LEAF * (i64)gridDim.x && eb_cut(rows, row).count <= gridDim.x;
}
EB_DO eb_deal eb_share_beside_sums(i64 rows, i64 row, i64 from, i64 together) {
    if (!eb_is_by_leaves(rows, row)) return eb_share(rows, row, from, together);
    const eb_leaves cut = eb_cut(rows, row);
    if (blockIdx.x >= cut.count) return eb_share_region(0, 0, 0, 0, together);
    const i64 group = blockIdx.x / cut.pieces, piece = blockIdx.x % cut.pieces;
    const i64 base = group * cut.rows_per_leaf, left = piece * cut.size;
    return eb_share_region(base, eb_min(base + cut.rows_per_leaf, rows), left, eb_min(left + cut.size, row), together);
}
/* The rows of a thread: a band, or what there is of it. */
EB_DO i64 eb_first_row(eb_deal d) { return d.base + eb_times(d.nth, d.band); }
EB_DO i64 eb_end_row(eb_deal d, i64 first) { return d.end - first > d.band ? first + d.band : d.end; }
/* The column that a thread takes after this one, or the end of the row. */
EB_DO i64 eb_next(i64 column, eb_deal d) { return d.last - column > d.columns ? column + d.columns : d.last; }
/* The same, computed where it is called and nowhere else: on entry to a segment. */
static __device__ __noinline__ eb_deal eb_share_once(i64 rows, i64 row, i64 from, i64 together, b8 sums, b8 proved, eb_plan *plan) {
    const eb_deal d = sums ? eb_share_beside_sums(rows, row, from, together) : eb_share(rows, row, from, together);
    if (threadIdx.x == 0) *plan = {d.band, d.base, d.end, d.last, d.columns, proved};
    return d;
}
/* How far into from..from + extent the nearest value is. */
EB_DO i64 eb_nearest(i64 at, i64 from, i64 extent) { return eb_max(eb_min(eb_extent(from, at), extent - 1), 0); }
/* Does this thread take the iteration at this row and column? Of an empty domain the first thread has all. */
EB_DO b8 eb_owns(const eb_thread *f, eb_deal d, i64 rows, i64 row, i64 r, i64 c) {
    if (rows <= 0 || row <= 0) return f->thread == 0;
    const i64 first = eb_first_row(d);
    return c >= d.column && c < d.last && (c - d.column) % d.columns == 0 && r >= first && r < eb_end_row(d, first);
}

#if !defined(EB_PART) || EB_PART == 0
/* Copies arrays to slots or back, wherever the arrays are by now: a row of blocks takes an array. */
enum { EB_COPIES = 16 };
struct eb_copies { void **data; i64 back; i64 array[EB_COPIES]; char *slot[EB_COPIES]; i64 bytes[EB_COPIES]; };
extern "C" __global__ void __launch_bounds__(EB_THREADS) eb_copy_arrays(const __grid_constant__ eb_copies copies) {
    const u32 k = blockIdx.y;
    char *const own = (char *)copies.data[copies.array[k]], *const slot = copies.slot[k];
    char *const to = copies.back ? own : slot;
    const char *const from = copies.back ? slot : own;
    const i64 thread = (i64)blockIdx.x * EB_THREADS + threadIdx.x, threads = (i64)gridDim.x * EB_THREADS;
    const i64 wide = copies.bytes[k] / 16;
    for (i64 i = thread; i < wide; i += threads) ((int4 *)to)[i] = ((const int4 *)from)[i];
    for (i64 i = 16 * wide + thread; i < copies.bytes[k]; i += threads) to[i] = from[i];
}
#endif

#ifdef EB_BATCH
/* A step of a batch: a segment, after some values were changed, or a copy between an array and a slot. */
enum { EB_STEPS = 64, EB_CHANGES = 2, EB_STORE = -1, EB_LOAD = -2, EB_CHANGE = -3 };
struct eb_step {
    i32 what;                   /* a segment, or one of the above */
    i32 changes;                /* how many values change, or which array is copied */
    i32 changed[EB_CHANGES];
    u64 change[EB_CHANGES];     /* a slot and its bytes, where an array is copied */
};
/* What a launch of the kernel that runs batches is given. A single block runs it. */
struct eb_batch {
    eb_launch launch;
    i64 steps;
    eb_step step[EB_STEPS];
};

EB_DO void eb_begin_batch(const eb_batch &batch) {
    eb_receive(batch.launch);
    if (threadIdx.x == 0) { batch.launch.next[0] = 0; batch.launch.next[1] = 0; }
}

/* What is to be done before the segment of a step, if it has one. Thread 0 has written what the last one left. */
EB_DO i32 eb_begin_step(const eb_batch &batch, i64 k) {
    const eb_step &step = batch.step[k];
    const eb_launch &launch = batch.launch;
    if (step.what == EB_STORE || step.what == EB_LOAD) {
        __syncthreads();
        char *const own = (char *)launch.data[step.changes], *const slot = (char *)step.change[0];
        char *const to = step.what == EB_LOAD ? own : slot;
        const char *const from = step.what == EB_LOAD ? slot : own;
        const i64 bytes = (i64)step.change[1], wide = bytes / 16;
        for (i64 i = threadIdx.x; i < wide; i += blockDim.x) ((int4 *)to)[i] = ((const int4 *)from)[i];
        for (i64 i = 16 * wide + threadIdx.x; i < bytes; i += blockDim.x) to[i] = from[i];
    } else if (threadIdx.x == 0) {
        for (int c = 0; c < step.changes; c++) launch.values[step.changed[c]] = step.change[c];
    }
    __syncthreads();
    return step.what;
}
#endif
