/* Products of large matrices. They are cut into tiles and into chunks of terms; a warp takes a tile over a chunk, a lane of its 4 × 8 lanes
   some rows and columns of it. Each chunk of an element is one chain of fused steps over ascending terms, and the chunks are
   added in order. The warps of a block take tiles that lie side by side, and chunks that follow each other. Factors come into the
   memory of the block some terms at a time, a stage, while the stages before are computed with.

   A line is a row of the left factor or a column of the right one. In the memory of the block the lines of a term lie side by side;
   where they do in the factor too, 16 bytes come at once, and single elements where its terms do. */
#ifndef EB_LARGE_PRODUCTS
#define EB_LARGE_PRODUCTS
/* Waits for the first of the stages that are on their way: one less than there is memory for. */
EB_DO void eb_large_wait_for_stage(int stages) {
#if __CUDA_ARCH__ >= 800
    if (stages == 2) asm volatile("cp.async.wait_group 0;" ::: "memory");
    else if (stages >= 8) asm volatile("cp.async.wait_group 6;" ::: "memory");
    else if (stages >= 5) asm volatile("cp.async.wait_group 3;" ::: "memory");
    else asm volatile("cp.async.wait_group 1;" ::: "memory");
#endif
}
/* Goes on by so many strides of so many bytes to the element; the product would take registers from loop to loop. */
template <typename T> EB_DO void eb_go_on(const T *&at, eb_spacing stride, u32 bytes) {
#ifdef EB_WIDE
    at = (const T *)((const char *)at + stride * bytes);
#else
    asm volatile("mad.wide.u32 %0, %1, %2, %0;" : "+l"(at) : "r"(stride), "r"(bytes));
#endif
}
/* The form of a tile: what a lane has of it, and of how many terms a stage is. A panel has a stage of the lines of a tile; terms lie a
   little apart, so that elements of a line that come one by one meet in few banks. */
template <typename T> struct eb_large_tile {
    enum {
        SIZE = sizeof(T), VECTOR = 16 / SIZE, TERMS = 4 * VECTOR,
        ROWS = 8, COLUMNS = 4, TALL = 4 * ROWS, WIDE = 8 * COLUMNS, ALL = TALL * WIDE,
        LEFT_LINE = TALL + VECTOR, RIGHT_LINE = WIDE + VECTOR,
        LEFT = TERMS * LEFT_LINE * SIZE, RIGHT = TERMS * RIGHT_LINE * SIZE, STAGE = LEFT + RIGHT,     /* bytes of panels */
        HIGH = VECTOR, BROAD = VECTOR       /* so many rows, and columns, of a lane lie side by side */
    };
};
/* What a block does at a time: 2^down × 2^across tiles over 2^chunks chunks. */
struct eb_large_cutting {
    int down, across, chunks;
    /* The bytes of a stage. */
    template <typename F> EB_IN u32 stage() const { return (((u32)F::LEFT << down) + ((u32)F::RIGHT << across)) << chunks; }
};
/* Cuts a product into so many tiles and chunks: every lane of a warp prices another way, in clock cycles of a multiprocessor, and the cheapest
   is taken. All terms of a round are computed by warps that share four schedulers, or wait for what the round has to fetch; it begins
   with a wait, and ends with the addition of its chunks. */
template <typename F> EB_DO eb_large_cutting eb_large_cut_product(u32 tall, u32 broad, u32 chunks, u32 room) {
    const int lane = threadIdx.x & 31, most = 31 - __clz(blockDim.x >> 5);
    eb_large_cutting c;
    c.down = lane / 5;
    c.across = lane % 5;
    c.chunks = min(min(eb_log_above(chunks), most - c.down - c.across), 3);
    while (c.chunks > 0 && 2 * c.stage<F>() > room) c.chunks--;
    f32 price = 3e38f;
    if (c.chunks >= 0 && 2 * c.stage<F>() <= room && c.down <= eb_log_above(tall) && c.across <= eb_log_above(broad)) {
        const u32 blocks = (((tall - 1) >> c.down) + 1) * (((broad - 1) >> c.across) + 1);
        const u32 turns = (blocks - 1) / gridDim.x + 1, rounds = ((chunks - 1) >> c.chunks) + 1;
        const f32 warps = (f32)(1 << (c.down + c.across + c.chunks)), bytes = (f32)c.stage<F>();
        const f32 round = fmaxf(40.f * (f32)(F::ROWS * F::COLUMNS) * warps, 0.2f * bytes) + 5000.f + 1000.f * (f32)(1 << c.chunks);
        price = (f32)turns * (f32)rounds * round + 0.05f * bytes;
    }
    u32 best = (__float_as_uint(price) & ~31u) | (u32)lane;
#pragma unroll
    for (int apart = 16; apart > 0; apart /= 2) best = min(best, __shfl_xor_sync(~0u, best, apart));
    c.down = __shfl_sync(~0u, c.down, (int)best & 31);
    c.across = __shfl_sync(~0u, c.across, (int)best & 31);
    c.chunks = __shfl_sync(~0u, c.chunks, (int)best & 31);
    return c;
}
struct eb_factor {
    const void *at;
    i64 lines, stride;      /* from line to line where it is deep, else from term to term */
    int deep;
};
/* What threads know of the product that they compute; it would take too many registers of each. */
struct eb_multiplication {
    eb_factor left, right;
    void *out;
    i64 stride, terms;
    i64 i, j, k;            /* where the tiles of the block, and its chunks, begin */
    eb_large_cutting cut;
    u32 groups, wide;       /* all groups of tiles, and those side by side */
    int fresh;
    u32 turn;               /* the first block */
};
EB_DO volatile eb_multiplication *eb_current_product() {
    __shared__ eb_multiplication product;
    return &product;
}
#endif
/* What a thread brings of a factor, of so many lines to a panel. */
template <int SIDE> struct eb_feed_$T {
    enum { SIZE = sizeof($T), VECTOR = 16 / SIZE, TERMS = 4 * VECTOR, LINE = SIDE + VECTOR };
    const $T *from;
    eb_spacing stride;
    u32 to;
    int apart, count;       /* so many pieces of whole stages, 2^apart lines from each other where it is deep, else terms */
    int term, mode;         /* the first one is of this term; 0: elements of lines, 1: 16 bytes, less than 0: so many neighbours, one by one */

    /* Begins with the term k, for panels from a line on, 2^log, whose memory is at `place`. */
    EB_IN void begin(volatile eb_factor &f, i64 first, i64 k, int chunks, int log, u32 place) {
        const int threads = blockDim.x >> chunks, t = threadIdx.x & (threads - 1);
        const $T *const at = (const $T *)f.at;
        const i64 lines = f.lines - first, long_stride = f.stride;
        stride = (eb_spacing)long_stride;
        int line;
        if (f.deep) {
            term = t % TERMS;
            line = t / TERMS;
            apart = 31 - __clz(threads / TERMS);
            count = (int)eb_max((eb_min(lines, SIDE << log) - line + (1 << apart) - 1) >> apart, 0);
            mode = 0;
            from = at + (first + line) * long_stride + k + term;
        } else {
            const int vectors = (SIDE / VECTOR) << log;
            term = t / vectors;
            line = t % vectors * VECTOR;
            apart = 31 - __clz(threads / vectors);
            count = line >= lines ? 0 : max((TERMS - term + (1 << apart) - 1) >> apart, 0);
            mode = ((u64)at & 15) == 0 && long_stride % VECTOR == 0 && lines - line >= VECTOR ? 1 : -(int)eb_min(lines - line, VECTOR);
            from = at + first + line + (k + term) * long_stride;
        }
        to = place + (line / SIDE * (TERMS * LINE) + term * LINE + line % SIDE) * SIZE;
    }
    /* Begins to bring the next stage, which has so many terms or more, to an address. */
    EB_IN void fetch(u32 stage, int terms) {
        const $T *at = from;
        u32 place = stage + to;
        int n = count;
        if (mode == 0) {
            if (term >= terms) n = 0;
            /* The next panel begins where this one ends. */
            const u32 turn = max(SIDE >> apart, 1) - 1, hop = 1 << apart < SIDE ? (u32)SIZE << apart : (u32)(TERMS * LINE * SIZE / SIDE) << apart;
            const u32 beyond = 1 << apart < SIDE ? (TERMS * LINE - SIDE) * SIZE : 0;
#pragma unroll 2
            for (u32 piece = 0; piece < n; piece++) {
                eb_fetch_element(place, at);
                eb_go_on(at, stride, SIZE << apart);
                place += hop + ((piece & turn) == turn ? beyond : 0);
            }
            from += TERMS;
            return;
        }
        if (terms < TERMS) n = min(n, max((terms - term + (1 << apart) - 1) >> apart, 0));
        if (mode > 0) {
#pragma unroll 2
            for (; n > 0; n--, place += (u32)(LINE * SIZE) << apart) {
                eb_fetch_16(place, at);
                eb_go_on(at, stride, SIZE << apart);
            }
        } else {
#pragma unroll 1
            for (; n > 0; n--, place += (u32)(LINE * SIZE) << apart) {
#pragma unroll
                for (int e = 0; e < VECTOR; e++) if (e < -mode) eb_fetch_element(place + e * SIZE, at + e);
                eb_go_on(at, stride, SIZE << apart);
            }
        }
        eb_go_on(from, stride, TERMS * SIZE);
    }
};
/* The factors of a term for a lane: so many side by side, and others so far apart. */
template <int N, int GROUP, int APART> EB_DO void eb_read_$T($T (&to)[N], const $T *from) {
#pragma unroll
    for (int n = 0; n < N; n += GROUP) {
        const eb_group<$T, GROUP> some = *(const eb_group<$T, GROUP> *)(from + n * APART);
#pragma unroll
        for (int e = 0; e < GROUP; e++) to[n + e] = some.is[e];
    }
}
/* The fused steps of a term. */
template <typename F> EB_DO void eb_large_step_$T($T (&sum)[F::ROWS][F::COLUMNS], const $T *left, const $T *right) {
    $T a[F::ROWS], b[F::COLUMNS];
    eb_read_$T<F::ROWS, F::HIGH, 4>(a, left);
    eb_read_$T<F::COLUMNS, F::BROAD, 8>(b, right);
#pragma unroll
    for (int r = 0; r < F::ROWS; r++)
#pragma unroll
        for (int n = 0; n < F::COLUMNS; n++) sum[r][n] = op_fma_$T(a[r], b[n], sum[r][n]);
}
/* The elements of a lane in the result. */
template <typename F> struct eb_own_$T {
    $T *at;
    i64 stride;
    int rows, columns;
    bool vectors;           /* Do groups of columns lie at multiples of their size, and are all there? */

    EB_IN eb_own_$T(volatile eb_multiplication &p) {
        const int warp = threadIdx.x >> 5, row = (threadIdx.x & 1) | (threadIdx.x >> 3 & 2), column = threadIdx.x >> 1 & 7;
        const int down = warp & ((1 << p.cut.down) - 1), across = warp >> p.cut.down & ((1 << p.cut.across) - 1);
        const i64 i = p.i + F::TALL * down + row * F::HIGH, j = p.j + F::WIDE * across + column * F::BROAD;
        stride = p.stride;
        at = ($T *)p.out + i * stride + j;
        rows = (int)eb_min(p.left.lines - i, F::TALL);
        columns = (int)eb_min(p.right.lines - j, F::WIDE);
        vectors = ((u64)at & (F::BROAD * F::SIZE - 1)) == 0 && stride % F::BROAD == 0 && columns > (F::COLUMNS / F::BROAD - 1) * 8 * F::BROAD + F::BROAD - 1;
    }
    /* Where the row r, and the group of columns g, of a lane are in its tile. */
    static EB_IN int row(int r) { return r % F::HIGH + r / F::HIGH * 4 * F::HIGH; }
    static EB_IN int group(int g) { return g * 8 * F::BROAD; }
    /* Loads a row. */
    EB_IN void load(int r, $T (&to)[F::COLUMNS]) const {
        const $T *const from = at + row(r) * stride;
#pragma unroll
        for (int g = 0; g < F::COLUMNS / F::BROAD; g++) {
            eb_group<$T, F::BROAD> some;
            if (vectors) some = *(const eb_group<$T, F::BROAD> *)(from + group(g));
            else {
#pragma unroll
                for (int e = 0; e < F::BROAD; e++) some.is[e] = group(g) + e < columns ? from[group(g) + e] : ($T)0;
            }
#pragma unroll
            for (int e = 0; e < F::BROAD; e++) to[g * F::BROAD + e] = some.is[e];
        }
    }
    EB_IN void store(int r, const $T (&from)[F::COLUMNS]) const {
        $T *const to = at + row(r) * stride;
#pragma unroll
        for (int g = 0; g < F::COLUMNS / F::BROAD; g++) {
            eb_group<$T, F::BROAD> some;
#pragma unroll
            for (int e = 0; e < F::BROAD; e++) some.is[e] = from[g * F::BROAD + e];
            if (vectors) *(eb_group<$T, F::BROAD> *)(to + group(g)) = some;
            else {
#pragma unroll
                for (int e = 0; e < F::BROAD; e++) if (group(g) + e < columns) to[group(g) + e] = some.is[e];
            }
        }
    }
};

static __device__ __noinline__ void eb_large_multiply_$T() {
    typedef eb_large_tile<$T> F;
    enum { ROWS = F::ROWS, COLUMNS = F::COLUMNS, TALL = F::TALL, WIDE = F::WIDE, TERMS = F::TERMS, ALL = F::ALL };
    volatile eb_multiplication &p = *eb_current_product();
    /* Others may have had the memory of the block, and not have read what the product before was. */
    __syncthreads();
    char *const memory = eb_product_memory();
    const int warp = threadIdx.x >> 5;
#define EB_EACH for (int r = 0; r < ROWS; r++) _Pragma("unroll") for (int n = 0; n < COLUMNS; n++)
    for (u32 group = eb_first_group(p.turn); group < p.groups; group += gridDim.x) {
        __syncthreads();
        if (threadIdx.x == 0) {
            const u32 wide = p.wide, line = group / wide;
            p.i = (i64)line * (TALL << p.cut.down);
            p.j = (i64)(group - line * wide) * (WIDE << p.cut.across);
            p.k = 0;
        }
        __syncthreads();
        const int chunk = warp >> (p.cut.down + p.cut.across), chunks = p.cut.chunks;
        u32 size, own_left, own_right;
        {
            /* Lanes that differ in bit 0 share columns, and lanes that differ in bit 1 rows: half of a warp reads 16 bytes each at once. */
            const int row = (threadIdx.x & 1) | (threadIdx.x >> 3 & 2), column = threadIdx.x >> 1 & 7;
            const int down = warp & ((1 << p.cut.down) - 1), across = warp >> p.cut.down & ((1 << p.cut.across) - 1);
            const u32 each = ((u32)F::LEFT << p.cut.down) + ((u32)F::RIGHT << p.cut.across);
            size = each << chunks;
            own_left = chunk * each + down * F::LEFT + row * F::HIGH * F::SIZE;
            own_right = chunk * each + ((u32)F::LEFT << p.cut.down) + across * F::RIGHT + column * F::BROAD * F::SIZE;
        }
        /* Chunks that are taken one by one are added up in the memory of the block, where there is room for it beside two stages. */
        const int left_over = eb_product_room() - ((ALL * F::SIZE) << (p.cut.down + p.cut.across));
        const bool kept = chunks == 0 && p.terms > $CHUNK && (int)(2 * size) <= left_over;
        const int stages = min($CHUNK / TERMS + 1, (kept ? left_over : eb_product_room()) / (int)size);
        const u32 last = (stages - 1) * size;
        eb_feed_$T<TALL> left;
        eb_feed_$T<WIDE> right;
        u32 next = 0, slot = 0;         /* where the next stage comes to, and which one is computed with */
        for (;;) {
            $T sum[ROWS][COLUMNS];
#pragma unroll
            EB_EACH sum[r][n] = 0;
            if (chunk == 0 && p.k == 0 && !p.fresh) {
                const eb_own_$T<F> own(p);
#pragma unroll
                for (int r = 0; r < ROWS; r++) if (own.row(r) < own.rows) own.load(r, sum[r]);
            }
            /* The terms that are still to be fetched, of the chunk that this thread fetches for. */
            int coming;
            {
                const int mine = threadIdx.x / (blockDim.x >> chunks);
                const i64 k = p.k + (i64)mine * $CHUNK;
                coming = (int)eb_min(p.terms - k, chunks > 0 ? (i64)$CHUNK : (i64)1 << 30);
                /* Of chunks that are taken one by one, the next one is on its way while the last one is computed. */
                if (chunks > 0 || p.k == 0) {
                    const u32 address = (u32)__cvta_generic_to_shared(memory) + mine * (size >> chunks);
                    left.begin(p.left, p.i, k, chunks, p.cut.down, address);
                    right.begin(p.right, p.j, k, chunks, p.cut.across, address + ((u32)F::LEFT << p.cut.down));
                    slot = 0;
#pragma unroll 1
                    for (next = 0; next < last; next += size, coming -= TERMS) {
                        if (coming > 0) { left.fetch(next, coming); right.fetch(next, coming); }
                        eb_end_stage();
                    }
                } else {
                    coming -= (stages - 1) * TERMS;
                }
            }
            int to_come = chunk < 1 << chunks ? (int)eb_max(eb_min(p.terms - p.k - (i64)chunk * $CHUNK, $CHUNK), 0) : 0;
            int steps = (int)(eb_min(p.terms - p.k, $CHUNK) + TERMS - 1) / TERMS;
            bool first = true;
#pragma unroll 1
            for (; steps > 0; steps--, to_come -= TERMS, coming -= TERMS) {
                /* Where all stages of a chunk are on their way at a time, it is waited for once. */
                if (chunks == 0 || stages <= $CHUNK / TERMS || first) {
                    eb_large_wait_for_stage(chunks > 0 && stages > $CHUNK / TERMS ? 2 : stages);
                    __syncthreads();
                }
                first = false;
                if (coming > 0) { left.fetch(next, coming); right.fetch(next, coming); }
                eb_end_stage();
                next = next == last ? 0 : next + size;
                const $T *const a = (const $T *)(memory + slot + own_left), *const b = (const $T *)(memory + slot + own_right);
                slot = slot == last ? 0 : slot + size;
                if (to_come >= TERMS) {
#pragma unroll 8
                    for (int k = 0; k < TERMS; k++) eb_large_step_$T<F>(sum, a + k * F::LEFT_LINE, b + k * F::RIGHT_LINE);
                } else {
#pragma unroll 1
                    for (int k = 0; k < to_come; k++) eb_large_step_$T<F>(sum, a + k * F::LEFT_LINE, b + k * F::RIGHT_LINE);
                }
            }
            if (chunk == 0 && kept && p.k > 0) {
                $T *const total = ($T *)(memory + eb_product_room() - ((ALL * F::SIZE) << (p.cut.down + p.cut.across))) + warp * ALL + (threadIdx.x & 31);
#pragma unroll
                EB_EACH sum[r][n] = op_add_$T(total[(COLUMNS * r + n) * 32], sum[r][n]);
            } else if (chunk == 0 && p.k > 0) {
                const eb_own_$T<F> own(p);
#pragma unroll
                for (int r = 0; r < ROWS; r++) {
                    $T old[COLUMNS];
                    if (own.row(r) < own.rows) {
                        own.load(r, old);
#pragma unroll
                        for (int n = 0; n < COLUMNS; n++) sum[r][n] = op_add_$T(old[n], sum[r][n]);
                    }
                }
            }
            /* The other chunks go through the memory of the block to whoever took the first one, as many at a time as there is room for. */
            if (chunks > 0) {
                const int log = p.cut.down + p.cut.across, some = eb_product_room() / F::SIZE / (ALL << log);
                $T *const place = ($T *)memory + (warp & ((1 << log) - 1)) * ALL + (threadIdx.x & 31);
                for (int from = 1; from < 1 << chunks; from += some) {
                    const int end = min(from + some, 1 << chunks);
                    __syncthreads();
                    if (chunk >= from && chunk < end) {
#pragma unroll
                        EB_EACH place[(chunk - from) * (ALL << log) + (COLUMNS * r + n) * 32] = sum[r][n];
                    }
                    __syncthreads();
                    for (int other = from; chunk == 0 && other < end && p.k + (i64)other * $CHUNK < p.terms; other++) {
#pragma unroll
                        EB_EACH sum[r][n] = op_add_$T(sum[r][n], place[(other - from) * (ALL << log) + (COLUMNS * r + n) * 32]);
                    }
                }
            }
            const i64 behind = p.k + ((i64)$CHUNK << chunks);
            if (chunk == 0 && kept && behind < p.terms) {
                $T *const total = ($T *)(memory + eb_product_room() - ((ALL * F::SIZE) << (p.cut.down + p.cut.across))) + warp * ALL + (threadIdx.x & 31);
#pragma unroll
                EB_EACH total[(COLUMNS * r + n) * 32] = sum[r][n];
            } else if (chunk == 0) {
                const eb_own_$T<F> own(p);
#pragma unroll
                for (int r = 0; r < ROWS; r++) if (own.row(r) < own.rows) own.store(r, sum[r]);
            }
            if (behind >= p.terms) break;
            __syncthreads();
            if (threadIdx.x == 0) p.k = behind;
            __syncthreads();
        }
    }
#undef EB_EACH
}


/* Has every block at least three pieces of such work, and memory for two stages? */
EB_DO bool eb_is_large_$T(i64 rows, i64 columns, i64 terms) {
    const i64 tiles = eb_times((rows + 31) / 32, (columns + 31) / 32), chunks = eb_min((terms + $CHUNK - 1) / $CHUNK, 4);
    return eb_times(tiles, chunks) >= 3 * (i64)gridDim.x && eb_product_room() >= 2 * (int)eb_large_tile<$T>::STAGE;
}
EB_DO void eb_multiply_large_$T(const eb_product_plan &plan, eb_matrix_$T a, eb_matrix_$T b, eb_matrix_$T c, i32 fresh, u32 turn) {
    volatile eb_multiplication &p = *eb_current_product();
    __syncthreads();
    if (threadIdx.x == 0) {
        p.left.at = a.at; p.left.lines = plan.rows; p.left.deep = a.column == 1; p.left.stride = a.column == 1 ? a.row : a.column;
        p.right.at = b.at; p.right.lines = plan.columns; p.right.deep = b.column != 1; p.right.stride = b.column != 1 ? b.column : b.row;
        p.out = c.at; p.stride = c.row; p.terms = plan.terms; p.fresh = fresh; p.turn = turn;
        p.cut.down = plan.down; p.cut.across = plan.across; p.cut.chunks = plan.chunks; p.groups = plan.groups; p.wide = plan.wide;
    }
    eb_large_multiply_$T();
}
