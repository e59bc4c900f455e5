/* Products of matrices. They are cut into square tiles of 32 or 16 rows and into chunks of terms; a warp takes a tile over a chunk, a
   lane 8 × 4 or 4 × 2 elements of it. Each chunk of an element is one chain of fused steps over ascending terms, and the chunks are
   added in order. The warps of a block take tiles that lie side by side, and several chunks at a time where there are few tiles. */
#ifndef EB_PRODUCTS
#define EB_PRODUCTS
/* Of so many terms factors are brought into the memory of the block at a time: a stage. */
enum { EB_TERMS = 8 };
/* Where the memory of the block is, computed once. */
EB_DO u32 eb_block_address() {
    u32 address;
    asm volatile("mov.u32 %0, %1;" : "=r"(address) : "r"((u32)__cvta_generic_to_shared(eb_block_memory())));
    return address;
}
/* Begins to bring an element to a place there, so many bytes from its beginning. */
template <typename T> EB_DO void eb_fetch(u32 address, u32 place, const T *from) {
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" :: "r"(address + place), "l"(from), "n"(sizeof(T)) : "memory");
#else
    *(T *)((char *)eb_block_memory() + place) = *from;
#endif
}
/* A stage ends here. */
EB_DO void eb_end_stage() {
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}
/* Waits until all stages but so many of the last ones are there. */
EB_DO void eb_wait_for_stage(int but) {
#if __CUDA_ARCH__ >= 800
    if (but == 0) asm volatile("cp.async.wait_group 0;" ::: "memory");
    else if (but == 1) asm volatile("cp.async.wait_group 1;" ::: "memory");
    else asm volatile("cp.async.wait_group 2;" ::: "memory");
#endif
}
/* N values that lie side by side, from an address on that is a multiple of their size. */
template <int N, typename T> EB_DO void eb_read(T *to, const T *from) {
    if constexpr (N * sizeof(T) >= 16) {
#pragma unroll
        for (int n = 0; n < N * (int)sizeof(T) / 16; n++) ((int4 *)to)[n] = ((const int4 *)from)[n];
    } else {
        *(int2 *)to = *(const int2 *)from;
    }
}
/* What a block does at a time: 2^down × 2^across tiles over 2^chunks chunks, with so many stages on their way. */
struct eb_cutting { int down, across, chunks, stages; };
/* The elements of a panel in memory, which has a stage of the rows of the left factor, or of the columns of the right one, of a tile,
   term by term. */
template <int SIDE, typename T> EB_DO constexpr int eb_line_of() { return SIDE + 16 / (int)sizeof(T); }
template <int SIDE, typename T> EB_DO constexpr int eb_panel() { return EB_TERMS * eb_line_of<SIDE, T>(); }

/* Cuts a product so that there is something for nearly every block, if there can be. */
template <int SIDE, typename T> EB_DO eb_cutting eb_cut_product(i64 rows, i64 columns, i64 terms, i64 chunk) {
    enum { ROOM = EB_BLOCK_WORDS * 8 / sizeof(T) };
    eb_cutting c = {2, 2, 0, 2};
    const int down = (int)eb_min((rows + SIDE - 1) / SIDE, 1 << 15), across = (int)eb_min((columns + SIDE - 1) / SIDE, 1 << 15);
    const int warps = blockDim.x >> 5, wanted = gridDim.x - gridDim.x / 4;
    while (c.down > 0 && 1 << (c.down - 1) >= down) c.down--;
    while (c.across > 0 && 1 << (c.across - 1) >= across) c.across--;
    while (c.down + c.across > 0 && ((((down - 1) >> c.down) + 1) * (((across - 1) >> c.across) + 1) < wanted
           || 1 << (c.down + c.across) > warps || (1 << c.down) + (1 << c.across) > warps)) {
        if (c.down >= c.across) c.down--; else c.across--;
    }
    const int log = c.down + c.across, panels = (1 << c.down) + (1 << c.across), all = (int)eb_min(terms, 1 << 20);
    while ((int)chunk << c.chunks < all && 2 << (c.chunks + log) <= warps && 2 * panels << c.chunks <= warps
           && SIDE * SIDE << log <= ROOM && 4 * (panels << c.chunks) * eb_panel<SIDE, T>() <= ROOM) c.chunks++;
    const int stages = ROOM / ((panels << c.chunks) * eb_panel<SIDE, T>());
    c.stages = stages < 4 ? stages : 4;
    return c;
}
#endif
struct eb_matrix_$T { $T *at; i64 row, column; };
struct eb_product_$T { eb_matrix_$T a, b; i64 rows, columns, terms; };

/* What a warp brings of every stage: a panel, or half of a large one. A lane takes four elements, `next` apart; neighbouring lanes take
   what lies side by side. */
struct eb_piece_$T {
    const $T *from;
    i64 next, step;         /* from element to element, from stage to stage */
    u32 to, line;           /* in the memory of the stage, and from element to element: bytes */
    int count, left;        /* how many of the four there are, and of how many terms */
    int term, apart;        /* the term of the first one, and how far apart theirs are */
};
/* The piece with this number, for tiles from row i and column j on. */
template <int SIDE> EB_DO eb_piece_$T eb_piece_of_$T(const eb_product_$T &p, eb_cutting c, int number, i64 i, i64 j, i64 k0) {
    enum { HALVES = SIDE / 16, LINE = eb_line_of<SIDE, $T>() };
    const int lane = threadIdx.x & 31, panel = number / HALVES, half = number % HALVES;
    const int lefts = 1 << (c.chunks + c.down), panels = lefts + (1 << (c.chunks + c.across));
    const bool left = panel < lefts;
    const int nth = left ? panel : panel - lefts, log = left ? c.down : c.across;
    const i64 first = (left ? i : j) + SIDE * (nth & ((1 << log) - 1)), lines = left ? p.rows : p.columns;
    const i64 along = left ? p.a.row : p.b.column, deep = left ? p.a.column : p.b.row;
    const i64 k = k0 + (i64)(nth >> log) * $CHUNK;
    const bool terms = deep == 1;
    eb_piece_$T piece;
    piece.apart = terms ? 0 : 2 / HALVES;
    piece.term = terms ? lane & 7 : HALVES == 2 ? 4 * half : lane >> 4;
    const int line = terms ? (lane >> 3) + 16 * half : lane & (SIDE - 1);
    const i64 wanted = lines - first - line;
    piece.from = (left ? p.a.at : p.b.at) + (first + line) * along + (k + piece.term) * deep;
    piece.next = terms ? 4 * along : piece.apart * deep;
    piece.step = EB_TERMS * deep;
    piece.to = (panel * eb_panel<SIDE, $T>() + piece.term * LINE + line) * sizeof($T);
    piece.line = (terms ? 4 : piece.apart * LINE) * sizeof($T);
    piece.count = panel >= panels || wanted <= 0 ? 0 : terms ? (int)eb_min((wanted + 3) / 4, 4) : 4;
    piece.left = (int)eb_max(eb_min(p.terms - k, $CHUNK), 0);
    return piece;
}
/* Begins to bring the next stage of a piece to a place in the memory of the block. */
EB_DO void eb_fetch_piece_$T(eb_piece_$T &piece, u32 address, int slot) {
    const $T *from = piece.from;
    u32 to = slot * (u32)sizeof($T) + piece.to;
    if (piece.count == 4 && piece.left >= EB_TERMS) {
#pragma unroll
        for (int n = 0; n < 4; n++, from += piece.next, to += piece.line) eb_fetch(address, to, from);
    } else {
#pragma unroll 1
        for (int n = 0; n < piece.count && piece.term + n * piece.apart < piece.left; n++, from += piece.next, to += piece.line)
            eb_fetch(address, to, from);
    }
    piece.left -= EB_TERMS;
    piece.from += piece.step;
}

/* The steps of one term. */
template <int ROWS, int COLUMNS> EB_DO void eb_step_$T($T (&sum)[ROWS][COLUMNS], const $T *left, const $T *right) {
    alignas(16) $T a[ROWS], b[COLUMNS];
#pragma unroll
    for (int r = 0; r < ROWS; r += 4) eb_read<4>(a + r, left + 4 * r);
    eb_read<COLUMNS>(b, right);
#pragma unroll
    for (int r = 0; r < ROWS; r++)
#pragma unroll
        for (int n = 0; n < COLUMNS; n++) sum[r][n] = op_fma_$T(a[r], b[n], sum[r][n]);
}

template <int SIDE> static __device__ __noinline__ void eb_multiply_$T(const eb_product_$T &given, eb_matrix_$T c, i32 fresh) {
    enum { ROWS = SIDE / 4, COLUMNS = SIDE / 8, LINE = eb_line_of<SIDE, $T>(), PANEL = eb_panel<SIDE, $T>(), ROOM = EB_BLOCK_WORDS * 8 / sizeof($T) };
    const eb_product_$T p = given;
    const eb_cutting cut = eb_cut_product<SIDE, $T>(p.rows, p.columns, p.terms, $CHUNK);
    const int warp = threadIdx.x >> 5, warps = blockDim.x >> 5, lane = threadIdx.x & 31, log = cut.down + cut.across;
    const int down = warp & ((1 << cut.down) - 1), across = warp >> cut.down & ((1 << cut.across) - 1), chunk = warp >> log;
    const int lefts = 1 << (cut.chunks + cut.down), panels = lefts + (1 << (cut.chunks + cut.across));
    const bool takes = chunk < 1 << cut.chunks, first = chunk == 0;
    const int size = panels * PANEL, last = (cut.stages - 1) * size, pieces_in_all = panels * (SIDE / 16);
    $T *const memory = ($T *)eb_block_memory();
    const u32 address = eb_block_address();
    const i64 wide = (p.columns + (SIDE << cut.across) - 1) / (SIDE << cut.across);
    const i64 count = (p.rows + (SIDE << cut.down) - 1) / (SIDE << cut.down) * wide;
    for (i64 tile = blockIdx.x; tile < count; tile += gridDim.x) {
        const i64 i0 = tile / wide * (SIDE << cut.down), j0 = tile % wide * (SIDE << cut.across);
        const i64 i = i0 + SIDE * down + 4 * (lane >> 3), j = j0 + SIDE * across + COLUMNS * (lane & 7);
        $T *const out = c.at + i * c.row + j;
        /* The rows of a lane are four from i on, and four from i + 16 on. */
#define EB_EACH(statement) _Pragma("unroll") for (int r = 0; r < ROWS; r++) _Pragma("unroll") for (int n = 0; n < COLUMNS; n++) { \
            const int row = r + r / 4 * 12; const bool is = i + row < p.rows && j + n < p.columns; statement }
        for (i64 k0 = 0;; k0 += (i64)$CHUNK << cut.chunks) {
            $T sum[ROWS][COLUMNS];
            EB_EACH(sum[r][n] = is && first && k0 == 0 && !fresh ? out[row * c.row + n] : ($T)0;)
            const int stages = ((int)eb_min(p.terms - k0, $CHUNK) + EB_TERMS - 1) / EB_TERMS;
            int left = takes ? (int)eb_max(eb_min(p.terms - k0 - (i64)chunk * $CHUNK, $CHUNK), 0) : 0;
            /* Warps that compute nothing fetch first. */
            eb_piece_$T pieces[2];
#pragma unroll
            for (int n = 0; n < 2; n++) pieces[n] = eb_piece_of_$T<SIDE>(p, cut, warps - 1 - warp + n * warps, i0, j0, k0);
            int slot = 0, next = 0;
            for (int stage = 0; stage < cut.stages - 1; stage++, next += size) {
#pragma unroll
                for (int n = 0; n < 2; n++)
                    if (n * warps < pieces_in_all) eb_fetch_piece_$T(pieces[n], address, next);
                eb_end_stage();
            }
            for (int stage = 0; stage < stages; stage++) {
                eb_wait_for_stage(cut.stages - 2);
                __syncthreads();
#pragma unroll
                for (int n = 0; n < 2; n++)
                    if (n * warps < pieces_in_all) eb_fetch_piece_$T(pieces[n], address, next);
                eb_end_stage();
                next = next == last ? 0 : next + size;
                const $T *const a = memory + slot + ((chunk << cut.down) + down) * PANEL + 4 * (lane >> 3);
                const $T *const b = memory + slot + (lefts + (chunk << cut.across) + across) * PANEL + COLUMNS * (lane & 7);
                if (left >= EB_TERMS) {
#pragma unroll
                    for (int k = 0; k < EB_TERMS; k++) eb_step_$T<ROWS, COLUMNS>(sum, a + k * LINE, b + k * LINE);
                } else {
#pragma unroll 1
                    for (int k = 0; k < left; k++) eb_step_$T<ROWS, COLUMNS>(sum, a + k * LINE, b + k * LINE);
                }
                left -= EB_TERMS;
                slot = slot == last ? 0 : slot + size;
            }
            __syncthreads();
            if (first && k0 > 0) EB_EACH(if (is) sum[r][n] = op_add_$T(out[row * c.row + n], sum[r][n]);)
            /* The other chunks go through the memory of the block to whoever took the first one, as many at a time as there is room for. */
            const int each = ROOM / (SIDE * SIDE << log);
            $T *const place = memory + (warp & ((1 << log) - 1)) * SIDE * SIDE + lane;
            for (int from = 1; from < 1 << cut.chunks; from += each) {
                const int end = (int)eb_min(from + each, 1 << cut.chunks);
                if (chunk >= from && chunk < end) {
                    $T *const to = place + (chunk - from) * (SIDE * SIDE << log);
                    EB_EACH(to[(COLUMNS * r + n) * 32] = sum[r][n];)
                }
                __syncthreads();
                for (int other = from; first && other < end && k0 + (i64)other * $CHUNK < p.terms; other++) {
                    const $T *const more = place + (other - from) * (SIDE * SIDE << log);
                    EB_EACH(sum[r][n] = op_add_$T(sum[r][n], more[(COLUMNS * r + n) * 32]);)
                }
                __syncthreads();
            }
            if (first) EB_EACH(if (is) out[row * c.row + n] = sum[r][n];)
            if (p.terms - k0 <= (i64)$CHUNK << cut.chunks) break;
        }
#undef EB_EACH
    }
}

EB_DO void eb_matmul_$T(const eb_thread *, eb_matrix_$T a, eb_matrix_$T b, eb_matrix_$T c, i64 rows, i64 columns, i64 terms, i32 fresh) {
    const eb_product_$T p = {a, b, rows, columns, terms};
    /* Large tiles have less to load for each step, small ones there are enough of for every block. */
    if (eb_times((rows + 31) / 32, (columns + 31) / 32) >= gridDim.x - gridDim.x / 4) eb_multiply_$T<32>(p, c, fresh);
    else eb_multiply_$T<16>(p, c, fresh);
}
