/* Products of small matrices. They are cut into tiles and into chunks of terms; a warp takes a tile over a chunk, a lane of its 4 × 8 lanes
   some rows and columns of it. Each chunk of an element is one chain of fused steps over ascending terms, and the chunks are
   added in order. The warps of a block take tiles that lie side by side, and several chunks at a time: whole chunks come into the memory of
   the block at once, and are waited for once.

   A line is a row of the left factor or a column of the right one. A factor is deep where the terms of a line lie side by side, else
   the lines of a term do; it lies the same way in the memory of the block, so that 16 bytes go there at once, and come from there. */
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
/* Begins to bring 16 bytes to an address in the memory of the block; both begin at a multiple of 16. */
EB_DO void eb_fetch_16(u32 to, const void *from) {
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" :: "r"(to), "l"(from) : "memory");
#else
    *(int4 *)__cvta_shared_to_generic(to) = *(const int4 *)from;
#endif
}
/* Begins to bring one element there. */
template <typename T> EB_DO void eb_fetch_element(u32 to, const T *from) {
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" :: "r"(to), "l"(from), "n"(sizeof(T)) : "memory");
#else
    *(T *)__cvta_shared_to_generic(to) = *from;
#endif
}
/* A stage of what is on its way ends here. */
EB_DO void eb_end_stage() {
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}
/* Waits for all stages but the last one, or for all. */
EB_DO void eb_wait_for_all_but_one() {
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_group 1;" ::: "memory");
#endif
}
EB_DO void eb_wait_for_all() {
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_group 0;" ::: "memory");
#endif
}
/* So many warps bring what a product needs as fast as more would. */
enum { EB_ENOUGH_WARPS = 8 };
/* The first warps of a block wait for each other. */
EB_DO void eb_meet_warps(int warps) { asm volatile("bar.sync 1, %0;" :: "r"(32 * warps) : "memory"); }
/* The least power of two that is not less, and the greatest that is not more, as logarithms. */
EB_DO int eb_log_above(u32 n) { return n <= 1 ? 0 : 32 - __clz(n - 1); }
EB_DO int eb_log_below(u32 n) { return 31 - __clz(n); }
/* N elements that lie side by side. */
template <typename T, int N> struct alignas(N * sizeof(T)) eb_group { T is[N]; };
/* Reads elements that lie side by side in the memory of the block, here and not where they are needed. */
EB_DO void eb_read_ahead(f32 (&to)[4], u32 from) {
    asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];" : "=f"(to[0]), "=f"(to[1]), "=f"(to[2]), "=f"(to[3]) : "r"(from));
}
EB_DO void eb_read_ahead(f32 (&to)[2], u32 from) { asm volatile("ld.shared.v2.f32 {%0, %1}, [%2];" : "=f"(to[0]), "=f"(to[1]) : "r"(from)); }
EB_DO void eb_read_ahead(f32 (&to)[1], u32 from) { asm volatile("ld.shared.f32 %0, [%1];" : "=f"(to[0]) : "r"(from)); }
EB_DO void eb_read_ahead(f64 (&to)[2], u32 from) { asm volatile("ld.shared.v2.f64 {%0, %1}, [%2];" : "=d"(to[0]), "=d"(to[1]) : "r"(from)); }
EB_DO void eb_read_ahead(f64 (&to)[1], u32 from) { asm volatile("ld.shared.f64 %0, [%1];" : "=d"(to[0]) : "r"(from)); }
/* The form of a tile: what a lane has of it, and the panels, each a chunk of the lines of a tile: term by term, or line by line where the
   factor is deep. Lines are a little apart then: eight of them are read at once, from all banks. */
template <typename T> struct eb_tile {
    enum {
        ROWS = 2, COLUMNS = 2, TALL = 4 * ROWS, WIDE = 8 * COLUMNS, ALL = TALL * WIDE,
        VECTOR = 16 / sizeof(T), LINE = $CHUNK + VECTOR, LEFT = TALL * LINE, RIGHT = WIDE * LINE
    };
};
/* How a product is computed, as it is known on entry to a segment: a block takes 2^down × 2^across tiles over 2^chunks chunks at a
   time, a group of so many rows and columns. */
struct eb_product_plan {
    nx rows, columns, terms;
    u32 groups, wide;       /* all, and those that lie side by side */
    u64 inverse;            /* 2^64 / wide, rounded up; zero where that is one */
    i32 down, across, chunks;
    i32 tall, broad;
    b8 is_large;
};
/* The groups of a product whose tiles have so many rows and columns. Of a product without elements there is one. */
EB_DO void eb_lay_groups(eb_product_plan &p, int rows, int columns) {
    p.tall = rows << p.down;
    p.broad = columns << p.across;
    p.wide = (u32)((p.columns - 1) / p.broad) + 1;
    p.inverse = p.wide == 1 ? 0 : ~(u64)0 / p.wide + 1;
    p.groups = ((u32)((p.rows - 1) / p.tall) + 1) * p.wide;
}
/* In which line of groups a group is, counted from the top. */
EB_DO u32 eb_line_of_group(const eb_product_plan &p, u32 group) { return p.inverse ? (u32)__umul64hi(group, p.inverse) : group; }
/* Small products that do not wait for one another are computed side by side: one begins with the block that comes behind those of another. */
EB_DO u32 eb_turn_behind(u32 turn, const eb_product_plan &p) { return (turn + p.groups) % gridDim.x; }
/* The first group that this block takes, of those from the block `turn` on. */
EB_DO u32 eb_first_group(u32 turn) { return blockIdx.x >= turn ? blockIdx.x - turn : blockIdx.x + gridDim.x - turn; }
/* The iterations of a loop over elements that belong to a group, by the first ones and how many; those outside of the product belong to
   the nearest group. */
struct eb_region { i64 row, rows, column, columns; };
EB_DO eb_region eb_region_of(const eb_product_plan &p, u32 group, i64 f0, i64 e0, i64 f1, i64 e1) {
    const u32 line = eb_line_of_group(p, group), nth = group - line * p.wide;
    const i64 i = (i64)line * p.tall, j = (i64)nth * p.broad;
    const i64 top = line == 0 ? f0 : eb_max(f0, i), left = nth == 0 ? f1 : eb_max(f1, j);
    const i64 bottom = group + p.wide >= p.groups ? f0 + e0 : eb_min(f0 + e0, i + p.tall), right = nth + 1 == p.wide ? f1 + e1 : eb_min(f1 + e1, j + p.broad);
    return {top, eb_max(bottom - top, 0), left, eb_max(right - left, 0)};
}
/* The memory of the block for products, the one that the launch adds where it is more, and its bytes. */
EB_DO bool eb_product_is_added() { return eb_product_room() > EB_BLOCK_WORDS * 8; }
EB_DO char *eb_small_product_memory() { return eb_product_is_added() ? eb_product_memory() : (char *)eb_block_memory(); }
EB_DO int eb_small_product_room() { return eb_product_is_added() ? eb_product_room() : EB_BLOCK_WORDS * 8; }
/* Cuts a product so that the warps of a block have four tiles and chunks, one for each scheduler, and so that there is something for
   nearly every block, if there can be. Two chunks at a time come before larger groups of tiles. */
template <typename T> EB_DO void eb_cut_product(eb_product_plan &p) {
    typedef eb_tile<T> F;
    const u32 tall = (u32)((p.rows - 1) / F::TALL) + 1, broad = (u32)((p.columns - 1) / F::WIDE) + 1;
    const int most = min(eb_log_below(blockDim.x >> 5), 4), all = eb_log_above((u32)eb_min((p.terms + $CHUNK - 1) / $CHUNK, 16));
    const int some = most - min(all, 1), least = min(2 - min(all, 2), some);
    const u64 tiles = (u64)tall * broad * 4;
    int group = least;
    while (group < some && tiles >= (u64)(3 * gridDim.x) << (group + 1)) group++;
    p.across = min(group - min((group + 1) / 2, eb_log_above(tall)), eb_log_above(broad));
    p.down = min(group - p.across, eb_log_above(tall));
    p.chunks = min(all, most - p.down - p.across);
    const auto fits = [&] {
        return ((((int)F::LEFT << p.down) + ((int)F::RIGHT << p.across)) << p.chunks) * (int)sizeof(T) <= eb_small_product_room();
    };
    while (p.chunks > 0 && !fits()) p.chunks--;
    while (p.down + p.across > 0 && !fits()) {
        if (p.down > p.across) p.down--; else p.across--;
    }
    eb_lay_groups(p, F::TALL, F::WIDE);
}
#endif
struct eb_matrix_$T { $T *at; i64 row, column; };

/* A factor. */
struct eb_lines_$T {
    const $T *at;
    nx lines;
    eb_spacing stride;      /* from line to line where it is deep, else from term to term */
    bool deep, vectors;     /* do groups of what lies side by side begin at multiples of 16 bytes? */

    EB_IN eb_lines_$T(const $T *at, nx lines, eb_spacing stride, bool deep) : at(at), lines(lines), stride(stride), deep(deep) {
        vectors = (((u64)at | stride * sizeof($T)) & 15) == 0;
    }
    /* Begins to bring panels to an address: of 2^log tiles from a line on, and of 2^chunks chunks of all terms from k on. So many warps do
       it, and this is the nth. */
    template <int SIDE> EB_IN void bring(nx first, nx k, nx terms, int log, int chunks, u32 to, int nth, int warps) const {
        typedef eb_tile<$T> F;
        enum { SIZE = sizeof($T), VECTOR = F::VECTOR, LINE = F::LINE, ONCE = 32 * VECTOR, SOME = ONCE / SIDE, PARTS = $CHUNK / ONCE };
        u32 lane = threadIdx.x & 31;
        /* What follows is computed here, and takes no registers elsewhere. */
        asm volatile("" : "+r"(lane));
        /* A warp brings a line, or all lines of some terms, in so many parts; then it goes on by so many lines, or terms. */
        const nx line = deep ? nth : lane % (SIDE / VECTOR) * VECTOR, term = deep ? lane * VECTOR : nth * (SOME * PARTS) + lane / (SIDE / VECTOR);
        const nx step = deep ? warps : warps * (SOME * PARTS);
        const nx more_lines = lines - first, more_terms = terms - k;
        const bool whole = vectors && more_lines >= (nx)SIDE << log && more_terms >= (nx)$CHUNK << chunks;
        const eb_spacing from_step = step * stride, from_part = deep ? ONCE : SOME * stride;
        const eb_spacing from_tile = deep ? SIDE * stride : SIDE, from_chunk = deep ? $CHUNK : $CHUNK * stride;
        const u32 place_step = (u32)step * (deep ? LINE * SIZE : SIDE * SIZE), place_part = deep ? ONCE * SIZE : SOME * SIDE * SIZE;
        const eb_spacing own = deep ? (eb_spacing)(first + line) * stride + (eb_spacing)(k + term)
                                    : (eb_spacing)(k + term) * stride + (eb_spacing)(first + line);
        const u32 slot = to + (u32)(deep ? line * LINE + term : term * SIDE + line) * SIZE;
#pragma unroll 1
        for (u32 panel = 0; panel < 1u << (log + chunks); panel++) {
            const u32 tile = panel & ((1 << log) - 1), chunk = panel >> log;
            u32 place = slot + panel * (SIDE * LINE * SIZE);
            const $T *from = at + own + (tile * from_tile + chunk * from_chunk);
            if (whole) {
#pragma unroll 2
                for (int unit = nth; unit < SIDE; unit += warps, place += place_step, from += from_step)
#pragma unroll
                    for (int part = 0; part < PARTS; part++) eb_fetch_16(place + part * place_part, from + part * from_part);
                continue;
            }
            nx i = more_lines - (nx)tile * SIDE - line, q = more_terms - (nx)chunk * $CHUNK - term;
#pragma unroll 1
            for (int unit = nth; unit < SIDE; unit += warps, place += place_step, from += from_step) {
#pragma unroll
                for (int part = 0; part < PARTS; part++) {
                    const nx more = q - part * (deep ? ONCE : SOME), there = i <= 0 || more <= 0 ? 0 : deep ? more : i;
                    if (vectors && there >= VECTOR) eb_fetch_16(place + part * place_part, from + part * from_part);
                    else {
#pragma unroll
                        for (int e = 0; e < VECTOR; e++)
                            if (e < there) eb_fetch_element(place + part * place_part + e * SIZE, from + part * from_part + e);
                    }
                }
                if (deep) i -= step; else q -= step;
            }
        }
    }
};
/* Reads what a lane needs of a factor for the terms that lie side by side where it is deep: N lines, and so many other lanes have
   others. */
template <int N, int LANES, bool DEEP> EB_DO void eb_read_terms_$T($T (&to)[eb_tile<$T>::VECTOR][N], u32 from) {
    typedef eb_tile<$T> F;
    enum { VECTOR = F::VECTOR, ONCE = DEEP || N > VECTOR ? VECTOR : N, OUTER = DEEP ? N : VECTOR, INNER = DEEP ? 1 : N / ONCE };
#pragma unroll
    for (int o = 0; o < OUTER; o++)
#pragma unroll
        for (int i = 0; i < INNER; i++) {
            $T got[ONCE];
            eb_read_ahead(got, from + (u32)sizeof($T) * (DEEP ? o * LANES * F::LINE : o * LANES * N + i * ONCE));
#pragma unroll
            for (int e = 0; e < ONCE; e++) to[DEEP ? e : o][DEEP ? o : i * ONCE + e] = got[e];
        }
}
/* The steps of a chunk. What some terms need is read before the steps of those before: the way from the memory of the block is long.
   At the end the last terms are read again, in vain. */
template <bool DEEP_LEFT, bool DEEP_RIGHT>
EB_DO void eb_steps_$T($T (&sum)[eb_tile<$T>::ROWS][eb_tile<$T>::COLUMNS], const $T *left, const $T *right, int terms) {
    typedef eb_tile<$T> F;
    enum { ROWS = F::ROWS, COLUMNS = F::COLUMNS, VECTOR = F::VECTOR, GROUPS = 4, ALL = GROUPS * VECTOR };
    enum { LEFT = DEEP_LEFT ? 1 : F::TALL, RIGHT = DEEP_RIGHT ? 1 : F::WIDE, LEFT_GROUP = VECTOR * LEFT * sizeof($T), RIGHT_GROUP = VECTOR * RIGHT * sizeof($T) };
    if (terms >= ALL) {
        $T a[2][VECTOR][ROWS], b[2][VECTOR][COLUMNS];
        u32 from_left = (u32)__cvta_generic_to_shared(left), from_right = (u32)__cvta_generic_to_shared(right);
        eb_read_terms_$T<ROWS, 4, DEEP_LEFT>(a[0], from_left);
        eb_read_terms_$T<COLUMNS, 8, DEEP_RIGHT>(b[0], from_right);
#pragma unroll 1
        for (; terms >= ALL; terms -= ALL) {
            left += ALL * LEFT;
            right += ALL * RIGHT;
            const bool more = terms >= 2 * ALL;
#pragma unroll
            for (int g = 0; g < GROUPS; g++) {
                const int next = g + 1 < GROUPS || more ? g + 1 : g;
                eb_read_terms_$T<ROWS, 4, DEEP_LEFT>(a[(g + 1) & 1], from_left + next * LEFT_GROUP);
                eb_read_terms_$T<COLUMNS, 8, DEEP_RIGHT>(b[(g + 1) & 1], from_right + next * RIGHT_GROUP);
#pragma unroll
                for (int k = 0; k < VECTOR; k++)
#pragma unroll
                    for (int r = 0; r < ROWS; r++)
#pragma unroll
                        for (int n = 0; n < COLUMNS; n++) sum[r][n] = op_fma_$T(a[g & 1][k][r], b[g & 1][k][n], sum[r][n]);
            }
            from_left += GROUPS * LEFT_GROUP;
            from_right += GROUPS * RIGHT_GROUP;
        }
    }
#pragma unroll 1
    for (; terms > 0; terms--, left += LEFT, right += RIGHT) {
#pragma unroll
        for (int r = 0; r < ROWS; r++)
#pragma unroll
            for (int n = 0; n < COLUMNS; n++)
                sum[r][n] = op_fma_$T(left[DEEP_LEFT ? r * 4 * F::LINE : r], right[DEEP_RIGHT ? n * 8 * F::LINE : n], sum[r][n]);
    }
}

/* The product begins with block `turn`. */
static __device__ __noinline__ void eb_multiply_$T(const eb_product_plan *given, const $T *a, eb_spacing left_stride, bool left_deep, const $T *b,
                                                  eb_spacing right_stride, bool right_deep, $T *c, eb_spacing stride, bool fresh, u32 turn) {
    typedef eb_tile<$T> F;
    enum { ROWS = F::ROWS, COLUMNS = F::COLUMNS, TALL = F::TALL, WIDE = F::WIDE, ALL = F::ALL };
    const eb_product_plan p = *given;
    u32 group = eb_first_group(turn);
    if (group < p.groups) {
        /* Others may have had the memory of the block. */
        __syncthreads();
        const int warp = threadIdx.x >> 5, lane = threadIdx.x & 31, log = p.down + p.across;
        /* So many warps are enough, and wait for each other alone. */
        const int warps = min(max(1 << (log + p.chunks), EB_ENOUGH_WARPS), (int)blockDim.x >> 5), each = max(warps / 2, 1);
        if (warp < warps) {
            $T *const memory = ($T *)eb_small_product_memory();
            const eb_lines_$T left(a, p.rows, left_stride, left_deep), right(b, p.columns, right_stride, right_deep);
            const int down = warp & ((1 << p.down) - 1), across = warp >> p.down & ((1 << p.across) - 1), chunk = warp >> log;
            const int rights = (int)F::LEFT << (p.chunks + p.down), size = rights + ((int)F::RIGHT << (p.chunks + p.across));
            /* Lanes that differ in bit 0 share columns, and lanes that differ in bit 1 rows: more of a warp reads at once. A lane's first row
               and column, and how far its next ones are. */
            const int of_four = (lane & 1) | (lane >> 3 & 2), of_eight = lane >> 1 & 7;
            const int row = left.deep ? of_four : ROWS * of_four, to_row = left.deep ? 4 : 1;
            const int column = right.deep ? of_eight : COLUMNS * of_eight, to_column = right.deep ? 8 : 1;
            const $T *const own_left = memory + ((chunk << p.down) + down) * F::LEFT + row * (left.deep ? F::LINE : 1);
            const $T *const own_right = memory + rights + ((chunk << p.across) + across) * F::RIGHT + column * (right.deep ? F::LINE : 1);
            const u32 address = (u32)__cvta_generic_to_shared(memory);
            const nx once = (nx)$CHUNK << p.chunks;
            /* While some chunks are computed with, the next ones come, if there is memory for both. */
            const bool ahead = 2 * size * (int)sizeof($T) <= eb_small_product_room();
            for (; group < p.groups; group += gridDim.x) {
                const u32 line = eb_line_of_group(p, group);
                const nx i0 = (nx)line * p.tall, j0 = (nx)(group - line * p.wide) * p.broad;
                $T total[ROWS][COLUMNS];
                const auto is = [&](int r, int n) {
                    return chunk == 0 && r * to_row < p.rows - (i0 + TALL * down + row) && n * to_column < p.columns - (j0 + WIDE * across + column);
                };
                const auto at = [&](int r, int n) {
                    return c + ((eb_spacing)(i0 + TALL * down + row + r * to_row) * stride + (eb_spacing)(j0 + WIDE * across + column + n * to_column));
                };
#define EB_EACH _Pragma("unroll") for (int r = 0; r < ROWS; r++) _Pragma("unroll") for (int n = 0; n < COLUMNS; n++)
                EB_EACH total[r][n] = 0;
                nx coming = 0;
                int half = 0, next = 0;
                for (nx k = 0; k < p.terms; k += once) {
                    for (; coming < p.terms && coming <= (ahead ? k + once : k); coming += once) {
                        const u32 to = address + next * (u32)sizeof($T);
                        if (warp % 2 == 0) left.bring<TALL>(i0, coming, p.terms, p.down, p.chunks, to, warp / 2, each);
                        if (warp % 2 == 1 || warps == 1) right.bring<WIDE>(j0, coming, p.terms, p.across, p.chunks, to + rights * (u32)sizeof($T), warp / 2, each);
                        eb_end_stage();
                        if (ahead) next = next == 0 ? size : 0;
                    }
                    /* The first chunk of all goes on from the element. */
                    if (k == 0 && !fresh) { EB_EACH if (is(r, n)) total[r][n] = *at(r, n); }
                    if (coming - k > once) eb_wait_for_all_but_one(); else eb_wait_for_all();
                    eb_meet_warps(warps);
                    $T sum[ROWS][COLUMNS];
                    EB_EACH sum[r][n] = k == 0 ? total[r][n] : ($T)0;
                    const int terms = chunk < 1 << p.chunks ? (int)min(p.terms - k - (nx)chunk * $CHUNK, (nx)$CHUNK) : 0;
                    if (terms > 0) {
                        if (left.deep && !right.deep) eb_steps_$T<true, false>(sum, own_left + half, own_right + half, terms);
                        else if (left.deep) eb_steps_$T<true, true>(sum, own_left + half, own_right + half, terms);
                        else if (!right.deep) eb_steps_$T<false, false>(sum, own_left + half, own_right + half, terms);
                        else eb_steps_$T<false, true>(sum, own_left + half, own_right + half, terms);
                    }
                    EB_EACH total[r][n] = k == 0 ? sum[r][n] : op_add_$T(total[r][n], sum[r][n]);
                    /* The other chunks go through the memory of the block to whoever took the first one. */
                    if (p.chunks > 0) {
                        $T *const place = memory + half + (warp & ((1 << log) - 1)) * ALL + lane;
                        eb_meet_warps(warps);
                        if (chunk > 0 && terms > 0) { EB_EACH place[((chunk - 1) << log) * ALL + (COLUMNS * r + n) * 32] = sum[r][n]; }
                        eb_meet_warps(warps);
                        if (chunk == 0)
                            for (int other = 1; other < 1 << p.chunks && k + (nx)other * $CHUNK < p.terms; other++) {
                                EB_EACH total[r][n] = op_add_$T(total[r][n], place[((other - 1) << log) * ALL + (COLUMNS * r + n) * 32]);
                            }
                    }
                    if (p.terms - k > once || group + gridDim.x < p.groups) eb_meet_warps(warps);
                    if (ahead) half = half == 0 ? size : 0;
                }
                if (fresh || p.terms > 0) { EB_EACH if (is(r, n)) *at(r, n) = total[r][n]; }
#undef EB_EACH
            }
        }
    }
}
