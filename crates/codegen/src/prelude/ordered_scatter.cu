/* Ordered sums at shared elements. Iterations have noted keys, which are elements, and terms, in their order; a key of -1 has
   no term. A few are found by looking at all of them. Many are sorted by key, digit by digit and without changing the order
   of equal keys; then the first thread of each key combines its terms. */
enum {
    EB_STAGE = 524288,      /* the most that is noted at one time */
    EB_TABLES = 32,         /* the most arrays into which terms are noted */
    EB_FEW = 8192,
    EB_DIGIT = 9, EB_BINS = 1 << EB_DIGIT,
    EB_SORTERS = 512,       /* the most blocks that sort */
    EB_ITEMS = 4            /* keys that a thread ranks before the block meets */
};

/* Combines, in the order of the notes, those that fall on elements of this warp. Few of 32 do, so that most of the time
   goes into reading keys, several at a time; terms for one element are combined in a register. */
template <typename T, typename C>
EB_DO void eb_combine_few(const eb_thread *f, T *a, const nx *keys, const T *terms, i64 count, C combine) {
    const int lane = threadIdx.x & 31;
    const u32 warp = (u32)(f->thread >> 5), mask = (1u << (31 - __clz((int)(f->threads >> 5)))) - 1;
    if (warp > mask) return;
    for (i64 at = lane; at - lane < count; at += 128) {
        nx key[4];
#pragma unroll
        for (int k = 0; k < 4; k++) key[k] = at + 32 * k < count ? keys[at + 32 * k] : -1;
#pragma unroll
        for (int k = 0; k < 4; k++) {
            /* Neighbours go together: eight elements to a warp. */
            u32 own = __ballot_sync(~0u, key[k] >= 0 && ((u32)(key[k] >> 3) & mask) == warp);
            while (own) {
                const nx place = __shfl_sync(~0u, key[k], __ffs(own) - 1);
                const u32 same = __ballot_sync(~0u, key[k] == place);
                const T term = key[k] == place ? terms[at + 32 * k] : (T)0;
                T sum = a[place];
                for (u32 rest = same; rest; rest &= rest - 1) sum = combine(sum, __shfl_sync(~0u, term, __ffs(rest) - 1));
                __syncwarp();
                if (lane == 0) a[place] = sum;
                __syncwarp();
                own &= ~same;
            }
        }
    }
}

/* One digit of the keys that are sorted: block b of `blocks` has the keys b * each..(b + 1) * each. */
struct eb_digit {
    const nx *from; nx *to;
    const u32 *was; u32 *is;        /* where the term of a key stands, before and after; at first where the key does */
    u32 *counts, *totals;           /* by bin and block; by bin */
    i32 count, each, blocks, shift;
    u32 mask;
    EB_IN u32 of(nx key) const { return (u32)(key >> shift) & mask; }
};

/* How many keys of each block have each digit. */
static __device__ __noinline__ void eb_count_digits(const eb_digit d) {
    __shared__ u32 bins[EB_BINS];
    if (blockIdx.x >= d.blocks) return;
    for (u32 b = threadIdx.x; b <= d.mask; b += blockDim.x) bins[b] = 0;
    __syncthreads();
    const i32 begin = blockIdx.x * d.each, end = min(begin + d.each, d.count);
    for (i32 at = begin + threadIdx.x; at < end; at += blockDim.x) atomicAdd(&bins[d.of(d.from[at])], 1u);
    __syncthreads();
    for (u32 b = threadIdx.x; b <= d.mask; b += blockDim.x) d.counts[b * d.blocks + blockIdx.x] = bins[b];
}

/* The sum over the lanes of a warp up to this one. */
EB_DO u32 eb_lanes_up_to(u32 value) {
#pragma unroll
    for (int way = 1; way < 32; way *= 2) {
        const u32 other = __shfl_up_sync(~0u, value, way);
        if ((threadIdx.x & 31) >= way) value += other;
    }
    return value;
}

/* Counts become what earlier blocks have of the same digit: a warp takes a digit. */
static __device__ __noinline__ void eb_add_up_digits(const eb_digit d) {
    const u32 warp = (blockIdx.x * blockDim.x + threadIdx.x) >> 5, warps = (gridDim.x * blockDim.x) >> 5;
    const i32 lane = threadIdx.x & 31;
    for (u32 b = warp; b <= d.mask; b += warps) {
        u32 before = 0;
        for (i32 block = lane; block - lane < d.blocks; block += 32) {
            u32 *const place = d.counts + b * d.blocks + block;
            const u32 own = block < d.blocks ? *place : 0, sum = eb_lanes_up_to(own);
            if (block < d.blocks) *place = before + sum - own;
            before += __shfl_sync(~0u, sum, 31);
        }
        if (lane == 0) d.totals[b] = before;
    }
}

/* Moves keys to where their digit wants them; those of equal digits keep their order. */
static __device__ __noinline__ void eb_move_by_digit(const eb_digit d) {
    __shared__ u32 start[EB_BINS];
    __shared__ unsigned short own[EB_THREADS / 32][EB_BINS], all[EB_BINS];
    if (blockIdx.x >= d.blocks) return;
    const i32 lane = threadIdx.x & 31, warp = threadIdx.x >> 5, warps = blockDim.x >> 5;
    const u32 lower = (1u << lane) - 1;
    if (warp == 0) {
        u32 before = 0;
        for (u32 b = lane; b - lane <= d.mask; b += 32) {
            const u32 total = b <= d.mask ? d.totals[b] : 0, sum = eb_lanes_up_to(total);
            if (b <= d.mask) start[b] = before + sum - total + d.counts[b * d.blocks + blockIdx.x];
            before += __shfl_sync(~0u, sum, 31);
        }
    }
    const i32 begin = blockIdx.x * d.each, end = min(begin + d.each, d.count);
    for (i32 tile = begin; tile < end; tile += EB_ITEMS * blockDim.x) {
        for (u32 b = threadIdx.x; b <= d.mask; b += blockDim.x)
            for (i32 w = 0; w < warps; w++) own[w][b] = 0;
        __syncthreads();
        nx key[EB_ITEMS];
        u32 rank[EB_ITEMS];
        const i32 first = tile + 32 * EB_ITEMS * warp + lane;
#pragma unroll
        for (int k = 0; k < EB_ITEMS; k++) key[k] = first + 32 * k < end ? d.from[first + 32 * k] : 0;
#pragma unroll
        for (int k = 0; k < EB_ITEMS; k++) {
            const b8 here = first + 32 * k < end;
            const u32 digit = d.of(key[k]);
            const u32 same = __match_any_sync(~0u, here ? digit : EB_BINS);
            const u32 before = own[warp][digit];
            rank[k] = before + __popc(same & lower);
            __syncwarp();
            if (here && (same & lower) == 0) own[warp][digit] = before + __popc(same);
            __syncwarp();
        }
        __syncthreads();
        for (u32 b = threadIdx.x; b <= d.mask; b += blockDim.x) {
            u32 sum = 0;
            for (i32 w = 0; w < warps; w++) { const u32 more = own[w][b]; own[w][b] = sum; sum += more; }
            all[b] = sum;
        }
        __syncthreads();
#pragma unroll
        for (int k = 0; k < EB_ITEMS; k++) {
            const i32 at = first + 32 * k;
            if (at >= end) continue;
            const u32 digit = d.of(key[k]), place = start[digit] + own[warp][digit] + rank[k];
            d.to[place] = key[k];
            d.is[place] = d.was ? d.was[at] : at;
        }
        __syncthreads();
        for (u32 b = threadIdx.x; b <= d.mask; b += blockDim.x) start[b] += all[b];
    }
}

/* Combines what was noted into the elements of an array; not zero if the launch must end. */
template <typename T, typename C>
EB_DO i32 eb_combine_noted(eb_thread *f, T *a, i64 length, nx *keys, const T *terms, i64 count, C combine) {
    if (count <= EB_FEW) {
        eb_combine_few(f, a, keys, terms, count, combine);
        return 0;
    }
    nx *const other = (nx *)(f->stage + 2 * EB_STAGE);
    u32 *const places = (u32 *)(f->stage + 3 * EB_STAGE);
    /* Where nothing was noted the digits are all ones: no element has them. */
    const i32 bits = 64 - __clzll(length), passes = (bits + EB_DIGIT - 1) / EB_DIGIT;
    eb_digit d;
    d.counts = (u32 *)(f->stage + 4 * EB_STAGE);
    d.totals = d.counts + EB_BINS * EB_SORTERS;
    d.count = (i32)count;
    d.blocks = min(gridDim.x, EB_SORTERS);
    d.each = (d.count + d.blocks - 1) / d.blocks;
    const i32 width = (bits + passes - 1) / passes;
    d.mask = (1u << width) - 1;
    for (i32 pass = 0; pass < passes; pass++) {
        d.from = pass & 1 ? other : keys;
        d.to = pass & 1 ? keys : other;
        d.was = pass == 0 ? 0 : places + (pass & 1 ? 0 : EB_STAGE);
        d.is = places + (pass & 1 ? EB_STAGE : 0);
        d.shift = pass * width;
        eb_count_digits(d);
        if (eb_barrier(f)) return 1;
        eb_add_up_digits(d);
        if (eb_barrier(f)) return 1;
        eb_move_by_digit(d);
        if (eb_barrier(f)) return 1;
    }
    const i32 lane = threadIdx.x & 31;
    for (i64 first = f->thread; first - lane < count; first += f->threads) {
        const nx element = first < count ? d.to[first] : -1;
        const b8 heads = element >= 0 && (first == 0 || d.to[first - 1] != element);
        T sum = heads ? a[element] : (T)0;
        i64 at = first;
        b8 more = heads;
        /* A thread takes the first terms of an element that it heads; */
        for (int round = 0; round < 4 && more; round++) {
            enum { AT_ONCE = 8 };
            T term[AT_ONCE];
            b8 same[AT_ONCE];
#pragma unroll
            for (int k = 0; k < AT_ONCE; k++) same[k] = at + k < count && d.to[at + k] == element;
#pragma unroll
            for (int k = 0; k < AT_ONCE; k++) term[k] = same[k] ? terms[d.is[at + k]] : (T)0;
#pragma unroll
            for (int k = 0; k < AT_ONCE; k++) if (same[k]) sum = combine(sum, term[k]);
            more = same[AT_ONCE - 1];
            at += AT_ONCE;
        }
        if (heads && !more) a[element] = sum;
        /* where there are more, its warp reads them, 32 at a time and those after them at once. */
        for (u32 rest = __ballot_sync(~0u, more); rest; rest &= rest - 1) {
            const int head = __ffs(rest) - 1;
            const nx place = __shfl_sync(~0u, element, head);
            T whole = __shfl_sync(~0u, sum, head);
            i64 next = __shfl_sync(~0u, at, head) + lane;
            b8 here = next < count && d.to[next] == place;
            T term = here ? terms[d.is[next]] : (T)0;
            u32 there;
            do {
                there = __ballot_sync(~0u, here);
                const T now = term;
                next += 32;
                here = there == ~0u && next < count && d.to[next] == place;
                term = here ? terms[d.is[next]] : (T)0;
                if (there == ~0u) {
#pragma unroll
                    for (int k = 0; k < 32; k++) whole = combine(whole, __shfl_sync(~0u, now, k));
                } else {
                    for (u32 left = there; left; left &= left - 1)
                        whole = combine(whole, __shfl_sync(~0u, now, __ffs(left) - 1));
                }
            } while (there == ~0u);
            if (lane == head) a[place] = whole;
        }
    }
    return 0;
}

/* How many iterations of a batch found room for their terms, and how many terms these have in each table. */
struct eb_noted { i64 iterations, terms[EB_TABLES]; };
EB_DO eb_noted *eb_noted_by(const eb_thread *f) {
    return (eb_noted *)(f->stage + 4 * EB_STAGE + (EB_BINS * EB_SORTERS + EB_BINS) / 2);
}

/* The iterations of a batch of so many that a block takes: neighbours. */
struct eb_part { i64 begin, end, all; };
EB_DO eb_part eb_part_of_batch(i64 all) {
    const i64 each = (all + gridDim.x - 1) / gridDim.x, begin = eb_min(blockIdx.x * each, all);
    const eb_part part = {begin, eb_min(begin + each, all), all};
    return part;
}

/* What the threads of a block have up to this one, after what was there before; that of all of them is added to it. */
static __device__ __noinline__ i64 eb_block_up_to(i64 value, i64 *before) {
    __shared__ i64 sums[EB_THREADS / 32];
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
#pragma unroll
    for (int way = 1; way < 32; way *= 2) {
        const i64 other = __shfl_up_sync(~0u, value, way);
        if (lane >= way) value += other;
    }
    if (lane == 31) sums[warp] = value;
    __syncthreads();
    i64 earlier = *before, all = *before;
    for (int w = 0; w < (blockDim.x >> 5); w++) { all += sums[w]; if (w < warp) earlier += sums[w]; }
    __syncthreads();
    *before = all;
    return earlier + value;
}

/* The sum of what the blocks before this one counted. */
static __device__ __noinline__ i64 eb_of_earlier_blocks(const i64 *totals) {
    i64 own = 0, all = 0;
    for (int block = threadIdx.x; block < blockIdx.x; block += blockDim.x) own += totals[block];
    eb_block_up_to(own, &all);
    return all;
}
