/* Products of small matrices. They are cut into tiles and into chunks of terms; a warp takes a tile over a chunk, a lane of its 4 × 8 lanes
   some rows and columns of it. Each chunk of an element is one chain of fused steps over ascending terms, and the chunks are
   added in order. The warps of a block take tiles that lie side by side, and several chunks at a time. */
#ifndef EB_PRODUCTS
#define EB_PRODUCTS
/* Memory of the block that a launch adds to what the text asks for, and how much there is. */
EB_DO char *eb_product_memory() {
    extern __shared__ __align__(16) char eb_product_bytes[];
    return eb_product_bytes;
}
EB_DO int eb_product_room() {
    int bytes;
    asm("mov.u32 %0, %%dynamic_smem_size;" : "=r"(bytes));
    return bytes;
}
/* From line to line, or from term to term. */
#ifdef EB_WIDE
typedef u64 eb_spacing;
#else
typedef u32 eb_spacing;
#endif
/* An address in the memory of the block, computed once. */
EB_DO u32 eb_block_address(const char *memory) {
    u32 address;
    asm volatile("mov.u32 %0, %1;" : "=r"(address) : "r"((u32)__cvta_generic_to_shared(memory)));
    return address;
}
/* Begins to bring N elements to an address there; both begin at a multiple of their size. */
template <int N, typename T> EB_DO void eb_fetch(u32 to, const T *from) {
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" :: "r"(to), "l"(from), "n"(N * sizeof(T)) : "memory");
#else
#pragma unroll
    for (int n = 0; n < N; n++) ((T *)__cvta_shared_to_generic(to))[n] = from[n];
#endif
}
/* A stage ends here. */
EB_DO void eb_end_stage() {
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}
/* Waits for the first of the stages that are on their way: one less than there is memory for. */
EB_DO void eb_wait_for_stage(int stages) {
#if __CUDA_ARCH__ >= 800
    if (stages == 2) asm volatile("cp.async.wait_group 0;" ::: "memory");
    else if (stages >= 7) asm volatile("cp.async.wait_group 5;" ::: "memory");
    else if (stages >= 5) asm volatile("cp.async.wait_group 3;" ::: "memory");
    else asm volatile("cp.async.wait_group 1;" ::: "memory");
#endif
}
/* The first of the tiles of a product that this block takes, where the product before ended with the block before `turn`: small products
   that do not wait for one another are computed side by side. */
EB_DO u32 eb_first_tile(u32 turn) { return blockIdx.x >= turn ? blockIdx.x - turn : blockIdx.x + gridDim.x - turn; }
/* N values that lie side by side, from an address on that is a multiple of their size. */
template <int N, typename T> EB_DO void eb_read(T *to, const T *from) {
    if constexpr (N * sizeof(T) >= 16) {
#pragma unroll
        for (int n = 0; n < N * (int)sizeof(T) / 16; n++) ((int4 *)to)[n] = ((const int4 *)from)[n];
    } else {
        *(int2 *)to = *(const int2 *)from;
    }
}
/* The form of a tile: what a lane has of it, and of how many terms factors are brought into the memory of the block at a time, a
   stage. A panel has those of the rows of the left factor, or of the columns of the right one, of a tile, term by term; warps bring
   it in pieces of 128 elements. */
template <typename T, int ROWS, int COLUMNS, int TERMS> struct eb_tile {
    enum {
        TALL = 4 * ROWS, WIDE = 8 * COLUMNS,
        LEFT_LINE = TALL + 4, RIGHT_LINE = WIDE + 4,
        LEFT = TERMS * LEFT_LINE, RIGHT = TERMS * RIGHT_LINE,
        LEFT_PIECES = TALL * TERMS / 128, RIGHT_PIECES = WIDE * TERMS / 128
    };
};
/* The logarithm of a power of two. */
EB_DO constexpr int eb_log(int n) { return n <= 1 ? 0 : 1 + eb_log(n / 2); }
/* What a block does at a time: 2^down × 2^across tiles over 2^chunks chunks, with memory for so many stages. */
struct eb_cutting {
    int down, across, chunks, stages;
    /* The elements of a stage, and the pieces. */
    template <typename F> EB_IN int size() const { return ((int)F::LEFT << (chunks + down)) + ((int)F::RIGHT << (chunks + across)); }
    template <typename F> EB_IN int pieces() const {
        return ((int)F::LEFT_PIECES << (chunks + down)) + ((int)F::RIGHT_PIECES << (chunks + across));
    }
    /* Is there room for two stages, and does a warp bring at most two pieces? */
    template <typename F> EB_IN bool fits(int room) const { return 2 * size<F>() <= room && pieces<F>() <= 2 * (blockDim.x >> 5); }
};
/* The least power of two that is not less. */
EB_DO int eb_log_above(u32 n) { return n <= 1 ? 0 : 32 - __clz(n - 1); }
/* Cuts a product into so many tiles and chunks so that there is something for nearly every block, if there can be. Two chunks at a
   time come before larger groups of tiles: elements are read and written again for every group of chunks. The block has memory for
   so many elements; a chunk has so many stages, and memory for one more is of use. */
template <typename F> EB_DO eb_cutting eb_cut_product(u32 down, u32 across, u32 chunks, int room, int stages) {
    const int most = 31 - __clz(blockDim.x >> 5), all = eb_log_above(chunks);
    const f32 blocks = (f32)down * (f32)across / (f32)(gridDim.x - gridDim.x / 4);
    const int group = min(blocks < 2 ? 0 : 31 - __clz((u32)fminf(blocks, 65536.f)), most - min(all, 1));
    eb_cutting c;
    c.across = min(group - min((group + 1) / 2, eb_log_above(down)), eb_log_above(across));
    c.down = min(group - c.across, eb_log_above(down));
    c.chunks = min(all, most - c.down - c.across);
    while (c.chunks > 0 && !c.fits<F>(room)) c.chunks--;
    while (c.down + c.across > 0 && !c.fits<F>(room)) {
        if (c.down > c.across) c.down--; else c.across--;
    }
    c.stages = min((int)((f32)room / (f32)c.size<F>()), stages + 1);
    return c;
}
#endif
struct eb_matrix_$T { $T *at; i64 row, column; };
struct eb_product_$T { eb_matrix_$T a, b; i64 rows, columns, terms; };

/* What a lane brings of every stage, of the piece that its warp brings: four elements. Neighbouring lanes take what lies side by
   side. */
struct eb_piece_$T {
    const $T *from;
    eb_spacing next, step;  /* from element to element, from stage to stage */
    u32 to, line;           /* in the memory of the stage, and from element to element: bytes */
    int count, left;        /* how many of the four there are, -1 if they lie side by side, and of how many terms */
    int term, apart;        /* the term of the first one, and how far apart theirs are */
};
/* The piece with this number, for tiles from row i and column j on. */
template <typename F, int TERMS> EB_DO eb_piece_$T eb_piece_of_$T(const eb_product_$T &p, eb_cutting c, int number, i64 i, i64 j, i64 k0) {
    eb_piece_$T r = {};
    if (number >= c.pieces<F>()) return r;
    /* What follows takes long, and stays here: warps that bring nothing are not to compute it. */
    asm volatile("" : "+r"(number));
    const int lane = threadIdx.x & 31, lefts = (int)F::LEFT_PIECES << (c.chunks + c.down);
    const bool left = number < lefts;
    const int pieces = left ? eb_log(F::LEFT_PIECES) : eb_log(F::RIGHT_PIECES), sides = left ? eb_log(F::TALL) : eb_log(F::WIDE);
    const int log = left ? c.down : c.across;
    const int nth = left ? number : number - lefts, panel = nth >> pieces, piece = nth & ((1 << pieces) - 1);
    const i64 first = (left ? i : j) + ((panel & ((1 << log) - 1)) << sides), lines = left ? p.rows : p.columns;
    const eb_spacing along = (eb_spacing)(left ? p.a.row : p.b.column), deep = (eb_spacing)(left ? p.a.column : p.b.row);
    const $T *const at = left ? p.a.at : p.b.at;
    const i64 k = k0 + (panel >> log) * $CHUNK;
    const int width = left ? F::LEFT_LINE : F::RIGHT_LINE;
    /* Four that lie side by side in both memories go at once. */
    const bool vectors = deep != 1 && sizeof($T) == 4 && ((u64)at & 15) == 0 && (deep & 3) == 0;
    int line;
    if (deep == 1) {
        r.apart = 0;
        r.term = lane & (TERMS - 1);
        line = piece * (128 / TERMS) + lane / TERMS;
    } else {
        /* So many lines at once, as logarithms are all of these; vectors: lines / 4 lanes to a term. */
        const int once = min(sides, vectors ? 7 : 5), columns = sides - once, lanes = vectors ? once - 2 : once;
        r.apart = vectors ? 0 : 32 >> once;
        r.term = ((piece >> columns) << (7 - once)) + (lane >> lanes);
        line = ((piece & ((1 << columns) - 1)) << once) + (lane & ((1 << lanes) - 1)) * (vectors ? 4 : 1);
    }
    const int wanted = (int)eb_max(eb_min(lines - first - line, 1 << 16), 0);
    /* Of elements that there are, places fit into this type. */
    r.from = at + ((eb_spacing)(first + line) * along + (eb_spacing)(k + r.term) * deep);
    r.next = deep == 1 ? 32 / TERMS * along : vectors ? 1 : r.apart * deep;
    r.step = TERMS * deep;
    const int place = left ? panel * F::LEFT : ((int)F::LEFT << (c.chunks + c.down)) + panel * F::RIGHT;
    r.to = (place + r.term * width + line) * sizeof($T);
    r.line = (deep == 1 ? 32 / TERMS : vectors ? 1 : r.apart * width) * sizeof($T);
    const int there = deep == 1 ? min((wanted + 32 / TERMS - 1) / (32 / TERMS), 4) : vectors ? min(wanted, 4) : 4;
    r.count = wanted == 0 ? 0 : vectors && there == 4 ? -1 : there;
    r.left = (int)eb_max(eb_min(p.terms - k, $CHUNK), 0);
    return r;
}
/* Begins to bring the next stage of a piece to an address in the memory of the block. */
template <int TERMS> EB_DO void eb_fetch_piece_$T(eb_piece_$T &piece, u32 slot) {
    const $T *from = piece.from;
    u32 to = slot + piece.to;
    if (piece.left >= TERMS && piece.count == -1) {
        eb_fetch<sizeof($T) == 4 ? 4 : 1>(to, from);
    } else if (piece.left >= TERMS && piece.count == 4) {
#pragma unroll
        for (int n = 0; n < 4; n++, from += piece.next, to += piece.line) eb_fetch<1>(to, from);
    } else {
        const int count = piece.count < 0 ? 4 : piece.count;
#pragma unroll 1
        for (int n = 0; n < count && piece.term + n * piece.apart < piece.left; n++, from += piece.next, to += piece.line)
            eb_fetch<1>(to, from);
    }
    piece.left -= TERMS;
    piece.from += piece.step;
}

/* What a lane needs of one term. */
template <int ROWS, int COLUMNS> struct eb_factors_$T {
    alignas(16) $T a[ROWS], b[COLUMNS];
    EB_IN void read(const $T *left, const $T *right) {
#pragma unroll
        for (int r = 0; r < ROWS; r += 4) eb_read<4>(a + r, left + 4 * r);
#pragma unroll
        for (int n = 0; n < COLUMNS; n += 4) eb_read<COLUMNS < 4 ? COLUMNS : 4>(b + n, right + 8 * n);
    }
    /* The steps of the term. */
    EB_IN void add_to($T (&sum)[ROWS][COLUMNS]) const {
#pragma unroll
        for (int r = 0; r < ROWS; r++)
#pragma unroll
            for (int n = 0; n < COLUMNS; n++) sum[r][n] = op_fma_$T(a[r], b[n], sum[r][n]);
    }
};
/* The steps of a stage, of so many terms at most. Factors come some terms ahead: the way from the memory of the block is long. */
template <typename F, int ROWS, int COLUMNS, int TERMS> EB_DO void eb_steps_$T($T (&sum)[ROWS][COLUMNS], const $T *left, const $T *right, int terms) {
    if (terms >= TERMS) {
        enum { AHEAD = 16 / sizeof($T) };
        eb_factors_$T<ROWS, COLUMNS> factors[AHEAD];
#pragma unroll
        for (int k = 0; k < AHEAD - 1; k++) factors[k].read(left + k * F::LEFT_LINE, right + k * F::RIGHT_LINE);
#pragma unroll
        for (int k = 0; k < TERMS; k++) {
            const int next = k + AHEAD - 1;
            if (next < TERMS) factors[next % AHEAD].read(left + next * F::LEFT_LINE, right + next * F::RIGHT_LINE);
            factors[k % AHEAD].add_to(sum);
        }
    } else {
#pragma unroll 1
        for (int k = 0; k < terms; k++) {
            eb_factors_$T<ROWS, COLUMNS> factors;
            factors.read(left + k * F::LEFT_LINE, right + k * F::RIGHT_LINE);
            factors.add_to(sum);
        }
    }
}

/* The product begins with block `turn`; the one with which the next product may begin is returned. */
template <int ROWS, int COLUMNS, int TERMS>
static __device__ __noinline__ u32 eb_multiply_$T(const eb_product_$T &given, eb_matrix_$T c, i32 fresh, u32 turn) {
    typedef eb_tile<$T, ROWS, COLUMNS, TERMS> F;
    enum { TALL = F::TALL, WIDE = F::WIDE, GROUP = COLUMNS < 4 ? COLUMNS : 4, ALL = TALL * WIDE };
    const eb_product_$T p = given;
    /* Others may have had the memory of the block. */
    __syncthreads();
    const u32 tall = (u32)((p.rows + TALL - 1) / TALL), broad = (u32)((p.columns + WIDE - 1) / WIDE);
    /* The memory that the launch adds, where it is more. */
    const bool added = eb_product_room() > EB_BLOCK_WORDS * 8;
    const int room = (added ? eb_product_room() : EB_BLOCK_WORDS * 8) / (int)sizeof($T);
    const eb_cutting cut = eb_cut_product<F>(tall, broad, (u32)eb_min((p.terms + $CHUNK - 1) / $CHUNK, 16), room, $CHUNK / TERMS);
    const int warp = threadIdx.x >> 5, warps = blockDim.x >> 5, lane = threadIdx.x & 31, log = cut.down + cut.across;
    const int down = warp & ((1 << cut.down) - 1), across = warp >> cut.down & ((1 << cut.across) - 1), chunk = warp >> log;
    const bool takes = chunk < 1 << cut.chunks, first = chunk == 0;
    const u32 size = cut.size<F>() * (u32)sizeof($T), last = (cut.stages - 1) * size;
    const bool two = cut.pieces<F>() > warps;
    $T *const memory = ($T *)(added ? eb_product_memory() : (char *)eb_block_memory());
    const u32 address = eb_block_address((const char *)memory);
    const $T *const own_left = memory + ((chunk << cut.down) + down) * F::LEFT + 4 * (lane >> 3);
    const $T *const own_right =
        memory + ((int)F::LEFT << (cut.chunks + cut.down)) + ((chunk << cut.across) + across) * F::RIGHT + GROUP * (lane & 7);
    const u32 wide = ((broad - 1) >> cut.across) + 1, count = (((tall - 1) >> cut.down) + 1) * wide;
    for (u32 tile = eb_first_tile(turn); tile < count; tile += gridDim.x) {
        const u32 line = tile / wide;
        const i64 i0 = (i64)line * (TALL << cut.down), j0 = (i64)(tile - line * wide) * (WIDE << cut.across);
        const i64 i = i0 + TALL * down + 4 * (lane >> 3), j = j0 + WIDE * across + GROUP * (lane & 7);
        $T *const out = c.at + ((eb_spacing)i * (eb_spacing)c.row + (eb_spacing)j);
        const eb_spacing stride = (eb_spacing)c.row;
        const int rows = (int)eb_max(eb_min(p.rows - i, TALL), 0), columns = (int)eb_max(eb_min(p.columns - j, WIDE), 0);
        /* The rows of a lane are four from i on, and four from i + 16 on; the columns four from j on, and four from j + 32 on. */
#define EB_EACH(statement) _Pragma("unroll") for (int r = 0; r < ROWS; r++) _Pragma("unroll") for (int n = 0; n < COLUMNS; n++) { \
            const int row = r + r / 4 * 12, column = n + n / 4 * 28; const bool is = row < rows && column < columns; statement }
        for (i64 k0 = 0;; k0 += (i64)$CHUNK << cut.chunks) {
            $T sum[ROWS][COLUMNS];
            EB_EACH(sum[r][n] = is && first && k0 == 0 && !fresh ? out[row * stride + column] : ($T)0;)
            const int stages = ((int)eb_min(p.terms - k0, $CHUNK) + TERMS - 1) / TERMS;
            int left = takes ? (int)eb_max(eb_min(p.terms - k0 - (i64)chunk * $CHUNK, $CHUNK), 0) : 0;
            /* Warps that compute nothing fetch first. */
            eb_piece_$T pieces[2];
#pragma unroll
            for (int n = 0; n < 2; n++)
                if (n == 0 || two) pieces[n] = eb_piece_of_$T<F, TERMS>(p, cut, warps - 1 - warp + n * warps, i0, j0, k0);
            u32 slot = 0, next = 0;
#pragma unroll 1
            for (int stage = 0; stage < min(cut.stages - 1, stages); stage++, next += size) {
                eb_fetch_piece_$T<TERMS>(pieces[0], address + next);
                if (two) eb_fetch_piece_$T<TERMS>(pieces[1], address + next);
                eb_end_stage();
            }
            if (cut.stages > stages) {
                /* All stages are on their way: they are waited for once. */
                eb_wait_for_stage(2);
                __syncthreads();
#pragma unroll 1
                for (; left > 0; left -= TERMS, slot += size)
                    eb_steps_$T<F, ROWS, COLUMNS, TERMS>(sum, (const $T *)((const char *)own_left + slot), (const $T *)((const char *)own_right + slot), left);
            } else {
#pragma unroll 1
                for (int stage = 0; stage < stages; stage++, left -= TERMS) {
                    eb_wait_for_stage(cut.stages);
                    __syncthreads();
                    eb_fetch_piece_$T<TERMS>(pieces[0], address + next);
                    if (two) eb_fetch_piece_$T<TERMS>(pieces[1], address + next);
                    eb_end_stage();
                    next = next == last ? 0 : next + size;
                    eb_steps_$T<F, ROWS, COLUMNS, TERMS>(sum, (const $T *)((const char *)own_left + slot), (const $T *)((const char *)own_right + slot), left);
                    slot = slot == last ? 0 : slot + size;
                }
            }
            __syncthreads();
            if (first && k0 > 0) EB_EACH(if (is) sum[r][n] = op_add_$T(out[row * stride + column], sum[r][n]);)
            /* The other chunks go through the memory of the block to whoever took the first one, as many at a time as there is room for. */
            const int each = room >> (eb_log(ALL) + log);
            $T *const place = memory + (warp & ((1 << log) - 1)) * ALL + lane;
            for (int from = 1; from < 1 << cut.chunks; from += each) {
                const int end = (int)eb_min(from + each, 1 << cut.chunks);
                if (chunk >= from && chunk < end) {
                    $T *const to = place + (chunk - from) * (ALL << log);
                    EB_EACH(to[(COLUMNS * r + n) * 32] = sum[r][n];)
                }
                __syncthreads();
                for (int other = from; first && other < end && k0 + (i64)other * $CHUNK < p.terms; other++) {
                    const $T *const more = place + (other - from) * (ALL << log);
                    EB_EACH(sum[r][n] = op_add_$T(sum[r][n], more[(COLUMNS * r + n) * 32]);)
                }
                __syncthreads();
            }
            if (first) EB_EACH(if (is) out[row * stride + column] = sum[r][n];)
            if (p.terms - k0 <= (i64)$CHUNK << cut.chunks) break;
        }
#undef EB_EACH
    }
    return (turn + count) % gridDim.x;
}
