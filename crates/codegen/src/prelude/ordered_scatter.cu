/* Ordered sums at shared elements. Iterations have noted keys, which are elements, and terms, in their order; a key of -1 has
   no term. A few are found by looking at all of them. Where all of many are of different elements, there is nothing to put in order;
   others are sorted by key, digit by digit and without changing the order
   of equal keys; then the warp that has the first term of an element combines all of them.

   Sums of floats are taken run by run (law 8). Where one batch has all terms of a loop, a warp adds each run of an element
   with many, and then one adds up its runs. Where there are several batches, a warp adds all terms that a batch has for an element,
   which keeps its open run, and the number of terms in it and the sum of its finished runs beside it (`eb_runs`). */
enum {
    EB_RUN = 1024,          /* so many terms are a run */
    EB_STAGE = 2097152,     /* the words of each part of the memory for notes: keys, terms, and keys as they are sorted, twice */
    EB_ROOM = sizeof(nx) == 4 ? EB_STAGE : EB_STAGE / 2,        /* the most that is noted at one time */
    EB_TABLES = 32,         /* the most arrays into which terms are noted */
    EB_FEW = 8192,
    EB_DIGIT = 9, EB_BINS = 1 << EB_DIGIT,
    EB_SORTERS = 512,       /* the most blocks that sort */
    EB_ITEMS = 4,           /* keys that a thread ranks before the block meets */
    EB_SPAN = 128,          /* sorted terms that a warp combines at a time: at most one run begins there */
    EB_CROWD = 4096         /* groups of elements whose terms are counted where there are few */
};

/* How many iterations of a batch found room for their terms, and how many terms these have in each table; whether keys that are
   sorted came out of order. */
struct eb_noted { i64 iterations, terms[EB_TABLES]; u32 unsorted[2]; };
EB_DO eb_noted *eb_noted_by(const eb_thread *f) {
    return (eb_noted *)(f->stage + 4 * EB_STAGE + (EB_BINS * EB_SORTERS + EB_BINS) / 2);
}

/* Where runs of sorted terms are added up; behind the keys, which take half of their part of the memory at most. */
struct eb_run_sums {
    u64 sums[EB_STAGE / EB_SPAN];           /* that of the run that begins in each span */
    i32 heads[EB_STAGE / EB_RUN];           /* where the terms of elements with several runs begin, in any order */
    u32 crowd[2][EB_CROWD];                 /* zeros, while nobody counts there; they take turns */
    u32 crowded[2], longs;                  /* the number of heads; zero at first */
};
static_assert(EB_ROOM * sizeof(nx) <= 4 * EB_STAGE, "keys take half of their part");
static_assert(sizeof(eb_run_sums) <= 4 * EB_STAGE, "this takes no more than the other half");
EB_DO eb_run_sums *eb_run_sums_by(const eb_thread *f) { return (eb_run_sums *)(f->stage + EB_STAGE / 2); }

/* May some element have more terms than a run, among a few? 2 if the launch must end. */
static __device__ __noinline__ i32 eb_are_crowded(eb_thread *f, const nx *keys, i64 count) {
    eb_run_sums *const by = eb_run_sums_by(f);
    const u32 sign = f->epoch;
    u32 *const crowd = by->crowd[sign & 1], *const crowded = by->crowded + (sign & 1);
    for (i64 at = f->thread; at < count; at += f->threads) {
        if (keys[at] >= 0 && atomicAdd(crowd + ((u32)keys[at] * 2654435761u) / (UINT32_MAX / EB_CROWD + 1), 1u) >= EB_RUN) *(volatile u32 *)crowded = sign;
    }
    if (eb_barrier(f)) return 2;
    /* The next ones count elsewhere, and behind another barrier. */
    for (i64 at = f->thread; at < EB_CROWD; at += f->threads) crowd[at] = 0;
    return *(volatile u32 *)crowded == sign;
}

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

/* A key, and where its term stands. */
struct eb_key { nx key; u32 place; };

/* Keys in the order of their digits so far: at first as they were noted. */
struct eb_keys {
    const nx *noted;
    const eb_key *sorted;
    EB_IN nx key(i64 at) const { return sorted ? sorted[at].key : noted[at]; }
    EB_IN eb_key operator[](i64 at) const { return sorted ? sorted[at] : eb_key{noted[at], (u32)at}; }
};

/* One digit of the keys that are sorted: block b of `blocks` has the keys b * each..(b + 1) * each. */
struct eb_digit {
    eb_keys from; eb_key *to;
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
    for (i32 at = begin + threadIdx.x; at < end; at += blockDim.x) atomicAdd(&bins[d.of(d.from.key(at))], 1u);
    __syncthreads();
    for (u32 b = threadIdx.x; b <= d.mask; b += blockDim.x) d.counts[b * d.blocks + blockIdx.x] = bins[b];
}

/* Does this thread see a key of its block that is greater than the next one? Where nothing was noted they are the greatest. */
EB_DO b8 eb_are_unsorted(const eb_digit &d) {
    const i32 begin = blockIdx.x * d.each, end = min(begin + d.each, d.count - 1);
    b8 unsorted = 0;
    for (i32 at = begin + threadIdx.x; at < end; at += blockDim.x) unsorted |= (u64)d.from.key(at) > (u64)d.from.key(at + 1);
    return unsorted;
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

/* What the threads of a block have up to this one, after what was there before; that of all of them is added to it. */
EB_DO i64 eb_block_up_to(i64 value, i64 *before) {
    __shared__ i64 sums[EB_THREADS / 32];
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
#pragma unroll
    for (int way = 1; way < 32; way *= 2) {
        const i64 other = __shfl_up_sync(~0u, value, way);
        if (lane >= way) value += other;
    }
    if (lane == 31) sums[warp] = value;
    __syncthreads();
    i64 warps = lane < (blockDim.x >> 5) ? sums[lane] : 0;
#pragma unroll
    for (int way = 1; way < 32; way *= 2) {
        const i64 other = __shfl_up_sync(~0u, warps, way);
        if (lane >= way) warps += other;
    }
    __syncthreads();
    const i64 earlier = *before + (warp > 0 ? __shfl_sync(~0u, warps, warp - 1) : 0);
    *before += __shfl_sync(~0u, warps, 31);
    return earlier + value;
}

/* Moves keys to where their digit wants them; those of equal digits keep their order. */
static __device__ __noinline__ void eb_move_by_digit(const eb_digit d) {
    __shared__ u32 start[EB_BINS];
    __shared__ unsigned short all[EB_BINS];
    typedef unsigned short eb_bins[EB_BINS];
    eb_bins *const own = (eb_bins *)eb_block_memory();
    if (blockIdx.x >= d.blocks) return;
    const i32 lane = threadIdx.x & 31, warp = threadIdx.x >> 5, warps = blockDim.x >> 5;
    const u32 lower = (1u << lane) - 1;
    i64 before = 0;
    for (u32 first = 0; first <= d.mask; first += blockDim.x) {
        const u32 b = first + threadIdx.x;
        const u32 total = b <= d.mask ? d.totals[b] : 0, earlier = b <= d.mask ? d.counts[b * d.blocks + blockIdx.x] : 0;
        const i64 up_to = eb_block_up_to(total, &before);
        if (b <= d.mask) start[b] = (u32)up_to - total + earlier;
    }
    const i32 begin = blockIdx.x * d.each, end = min(begin + d.each, d.count);
    for (i32 tile = begin; tile < end; tile += EB_ITEMS * blockDim.x) {
        for (u32 b = lane; b <= d.mask; b += 32) own[warp][b] = 0;
        __syncthreads();
        eb_key key[EB_ITEMS];
        u32 rank[EB_ITEMS];
        const i32 first = tile + 32 * EB_ITEMS * warp + lane;
#pragma unroll
        for (int k = 0; k < EB_ITEMS; k++) key[k] = first + 32 * k < end ? d.from[first + 32 * k] : eb_key{0, 0};
#pragma unroll
        for (int k = 0; k < EB_ITEMS; k++) {
            const b8 here = first + 32 * k < end;
            const u32 digit = d.of(key[k].key);
            u32 same = __ballot_sync(~0u, here);
#pragma unroll
            for (int bit = 0; bit < EB_DIGIT; bit++) {
                const b8 set = digit >> bit & 1;
                const u32 others = __ballot_sync(~0u, set);
                same &= set ? others : ~others;
            }
            const u32 before = own[warp][digit];
            rank[k] = before + __popc(same & lower);
            __syncwarp();
            if (here && (same & lower) == 0) own[warp][digit] = before + __popc(same);
            __syncwarp();
        }
        __syncthreads();
        for (u32 b = threadIdx.x; b <= d.mask; b += blockDim.x) {
            u32 sum = 0;
            /* Eight loads at a time, which need not wait for each other. */
            for (i32 w = 0; w < warps; w += 8) {
                u32 more[8];
#pragma unroll
                for (i32 k = 0; k < 8; k++) more[k] = w + k < warps ? own[w + k][b] : 0;
#pragma unroll
                for (i32 k = 0; k < 8; k++) { if (w + k < warps) own[w + k][b] = sum; sum += more[k]; }
            }
            all[b] = sum;
        }
        __syncthreads();
#pragma unroll
        for (int k = 0; k < EB_ITEMS; k++) {
            if (first + 32 * k >= end) continue;
            const u32 digit = d.of(key[k].key);
            d.to[start[digit] + own[warp][digit] + rank[k]] = key[k];
        }
        __syncthreads();
        for (u32 b = threadIdx.x; b <= d.mask; b += blockDim.x) start[b] += all[b];
    }
}

/* How terms are combined with the elements of an array: all in one chain, or what one batch has of them. */
template <typename T, typename C>
struct eb_chain {
    typedef T sum;
    T *a;
    C combine;
    EB_IN T begin(nx element) const { return a[element]; }
    EB_IN T add(T sum, T term) const { return combine(sum, term); }
    EB_IN void end(nx element, T sum) const { a[element] = sum; }
    EB_IN static T lane(T sum, int lane) { return __shfl_sync(~0u, sum, lane); }
};

/* What one element has: the number of terms in its open run, with EB_LATER where that is not its first one, and the sum of the
   finished ones. The element itself has the sum of the open run. */
enum : u32 { EB_LATER = 1u << 31 };
template <typename T>
struct eb_open_run { T sum, finished; u32 terms; };
template <typename T>
EB_DO eb_open_run<T> eb_add(eb_open_run<T> open, T term) {
    if ((open.terms & ~EB_LATER) == EB_RUN) {
        open.finished = open.terms & EB_LATER ? open.finished + open.sum : open.sum;
        open.sum = (T)-0.0;
        open.terms = EB_LATER;
    }
    open.sum = open.sum + term;
    open.terms++;
    return open;
}

/* The elements of an array whose terms come in several batches, or one by one: counts, and sums of finished runs. */
template <typename T>
struct eb_runs {
    typedef eb_open_run<T> sum;
    T *a;
    u32 *terms;
    T *finished;
    i64 length;
    EB_IN eb_open_run<T> begin(nx element) const {
        const u32 count = terms[element];
        return {a[element], count & EB_LATER ? finished[element] : (T)0, count};
    }
    EB_IN eb_open_run<T> add(eb_open_run<T> open, T term) const { return eb_add(open, term); }
    EB_IN void end(nx element, eb_open_run<T> open) const {
        a[element] = open.sum;
        terms[element] = open.terms;
        if (open.terms & EB_LATER) finished[element] = open.finished;
    }
    EB_IN static eb_open_run<T> lane(eb_open_run<T> open, int lane) {
        return {__shfl_sync(~0u, open.sum, lane), __shfl_sync(~0u, open.finished, lane), __shfl_sync(~0u, open.terms, lane)};
    }
};

/* The next such array of a loop, in words of its own behind those of the others; none where nothing is counted. */
template <typename T>
EB_DO eb_runs<T> eb_runs_of(const eb_thread *f, T *a, i64 length, i64 *words) {
    u64 *const at = f->runs + *words;
    const i64 counts = (length + 1) / 2;
    *words += counts + (length * (i64)sizeof(T) + 7) / 8;
    return {a, (u32 *)at, (T *)(at + counts), length};
}

/* Nothing is counted yet: all threads see that behind the next barrier. */
template <typename T>
static __device__ __noinline__ void eb_begin_runs(const eb_thread *f, const eb_runs<T> runs) {
    for (i64 at = f->thread; at < runs.length; at += f->threads) runs.terms[at] = 0;
}

/* Adds the open runs to the finished ones, behind a barrier. */
template <typename T>
static __device__ __noinline__ void eb_end_runs(const eb_thread *f, const eb_runs<T> runs) {
    for (i64 at = f->thread; at < runs.length; at += f->threads) {
        if (runs.terms[at] & EB_LATER) runs.a[at] = runs.finished[at] + runs.a[at];
    }
}

/* Adds one term, by the one thread that adds any; it is counted where an element may get more than a run. */
template <typename T>
static __device__ __noinline__ void eb_add_counted(const eb_runs<T> runs, b8 counts, i64 at, T term) {
    if (counts) runs.end((nx)at, eb_add(runs.begin((nx)at), term));
    else runs.a[at] = runs.a[at] + term;
}

/* Combines the sorted terms of one element from `at` on with what it has, by a warp. It finds four times 32 of them while it combines
   those before them, which it reads from the memory of the block: finding a term takes two loads, and combining it a few cycles. */
template <typename T, typename E>
static __device__ __noinline__ typename E::sum eb_combine_rest(
    const eb_keys keys, const T *terms, i64 at, i64 count, nx element, typename E::sum whole, const E elements
) {
    enum { AT_ONCE = 4, WORDS = EB_BLOCK_WORDS / 32 };
    static_assert(AT_ONCE * 32 <= WORDS, "each warp has words for its terms");
    const int lane = threadIdx.x & 31;
    T *const own = (T *)(eb_block_memory() + (threadIdx.x >> 5) * WORDS);
    T next[AT_ONCE];
    const auto look = [&]() {
        eb_key key[AT_ONCE];
        int there = 0;
#pragma unroll
        for (int k = 0; k < AT_ONCE; k++) key[k] = at + 32 * k + lane < count ? keys[at + 32 * k + lane] : eb_key{-1, 0};
#pragma unroll
        for (int k = 0; k < AT_ONCE; k++) {
            next[k] = key[k].key == element ? terms[key[k].place] : (T)0;
            there += __popc(__ballot_sync(~0u, key[k].key == element));
        }
        at += 32 * AT_ONCE;
        return there;
    };
    for (int there = look(); there > 0;) {
        __syncwarp();
#pragma unroll
        for (int k = 0; k < AT_ONCE; k++) own[32 * k + lane] = next[k];
        __syncwarp();
        const int now = there;
        there = now == 32 * AT_ONCE ? look() : 0;
        EB_AT_ONCE(16)
        for (int k = 0; k < now; k++) whole = elements.add(whole, own[k]);
    }
    return whole;
}

/* Where the terms of this element begin, of which one stands at `last`: a warp looks at 32 places at once. */
static __device__ __noinline__ i64 eb_first_of(const eb_keys keys, nx element, i64 last) {
    const int lane = threadIdx.x & 31;
    i64 first = 0;
    while (first < last) {
        const i64 step = (last - first + 31) / 32, at = first + lane * step;
        const u32 inside = __ballot_sync(~0u, at < last), same = __ballot_sync(~0u, at < last && keys.key(at) == element);
        const int before = same ? __ffs(same) - 1 : __popc(inside);      /* so many places have smaller keys */
        if (same) last = first + before * step;
        if (before > 0) first += (before - 1) * step + 1;
    }
    return last;
}

/* Adds the run that begins in a span of the sorted terms, if one does that is not the first of its element. */
template <typename T, typename E>
EB_DO void eb_add_run_of_span(eb_run_sums *by, const eb_keys keys, const T *terms, i64 start, i64 count, const E elements) {
    /* The last place in the span where a run can begin, and where that of the same element before it would. */
    const i64 probe = start + EB_SPAN - 1 - EB_RUN;
    if (probe < 0) return;
    const nx element = keys.key(start);
    if (element < 0 || keys.key(probe) != element) return;
    const i64 begin = start + (EB_RUN - (start - eb_first_of(keys, element, probe)) % EB_RUN) % EB_RUN;
    if (begin >= start + EB_SPAN || begin >= count || keys.key(begin) != element) return;
    const T sum = eb_combine_rest(keys, terms, begin, eb_min(begin + EB_RUN, count), element, (T)-0.0, elements);
    if ((threadIdx.x & 31) == 0) ((T *)by->sums)[start / EB_SPAN] = sum;
}

/* Adds the later runs of elements to their first ones, which these have; a warp takes an element. Not zero if the launch must end. */
template <typename T>
static __device__ __noinline__ i32 eb_add_up_runs(eb_thread *f, T *a, const eb_keys keys, i64 count) {
    eb_run_sums *const by = eb_run_sums_by(f);
    if (eb_barrier(f)) return 1;
    const i64 longs = *(volatile u32 *)&by->longs;
    if (longs == 0) return 0;
    const int lane = threadIdx.x & 31;
    for (i64 k = f->thread >> 5; k < longs; k += f->threads >> 5) {
        const i64 head = by->heads[k];
        const nx element = keys.key(head);
        T whole = a[element];
        for (i64 begin = head + EB_RUN;; begin += 32 * EB_RUN) {
            const i64 at = begin + lane * EB_RUN;
            const b8 mine = at < count && keys.key(at) == element;
            const T sum = mine ? ((const T *)by->sums)[at / EB_SPAN] : (T)0;
            const int runs = __popc(__ballot_sync(~0u, mine));
            for (int run = 0; run < runs; run++) whole = whole + __shfl_sync(~0u, sum, run);
            if (runs < 32) break;
        }
        if (lane == 0) a[element] = whole;
    }
    if (eb_barrier(f)) return 1;
    if (f->thread == 0) by->longs = 0;
    return 0;
}

/* Combines sorted terms into the elements of an array: a warp takes several times 32 of them at once, and the elements whose first
   terms are among these. It looks at 32 more: most elements end there. Of an element with several runs it takes the first one, where
   runs are added by themselves. */
template <bool RUNS, typename T, typename E>
static __device__ __noinline__ void eb_combine_sorted(
    const eb_thread *f, const eb_keys keys, const T *terms, i64 count, const E elements
) {
    typedef typename E::sum S;
    enum { OWN = 4, ALL = OWN + 1 };
    static_assert(32 * OWN == EB_SPAN, "a warp takes a span");
    const int lane = threadIdx.x & 31;
    for (i64 start = OWN * (f->thread - lane); start < count; start += OWN * f->threads) {
        nx key[ALL], before = start > 0 ? keys.key(start - 1) : -1;
        T term[ALL];
        S sum[OWN];
        int length[OWN], longest = 0;           /* of an element's terms among the 32, from the thread on that has the first one */
        eb_key own[ALL];
#pragma unroll
        for (int k = 0; k < ALL; k++) own[k] = start + 32 * k + lane < count ? keys[start + 32 * k + lane] : eb_key{-1, 0};
#pragma unroll
        for (int k = 0; k < ALL; k++) {
            key[k] = own[k].key;
            term[k] = key[k] >= 0 ? terms[own[k].place] : (T)0;
        }
#pragma unroll
        for (int k = 0; k < OWN; k++) {
            const nx left = __shfl_up_sync(~0u, key[k], 1);
            const b8 changes = key[k] != (lane > 0 ? left : before);
            const u32 next = __ballot_sync(~0u, changes) & ~((2u << lane) - 1);
            length[k] = changes && key[k] >= 0 ? (next ? __ffs(next) - 1 : 32) - lane : 0;
            longest = max(longest, length[k]);
            before = __shfl_sync(~0u, key[k], 31);
            sum[k] = length[k] > 0 ? elements.begin(key[k]) : S{};
        }
#pragma unroll 1
        for (int way = 0; __any_sync(~0u, way < longest); way++) {
#pragma unroll
            for (int k = 0; k < OWN; k++) {
                const T next = __shfl_sync(~0u, term[k], lane + way);
                if (way < length[k]) sum[k] = elements.add(sum[k], next);
            }
        }
        /* The last element of 32 terms may go on with the next ones: all threads add these alike. */
        nx open = -1;
        i64 begun = 0;
        S whole = {};
#pragma unroll
        for (int k = 0; k < ALL; k++) {
            if (open >= 0) {
                const u32 others = __ballot_sync(~0u, key[k] != open);
                const int more = others ? __ffs(others) - 1 : 32;
                for (int other = 0; other < more; other++) whole = elements.add(whole, __shfl_sync(~0u, term[k], other));
                if (more < 32) {
                    if (lane == 0) elements.end(open, whole);
                    open = -1;
                }
            }
            if (k == OWN) continue;
            const b8 last = length[k % OWN] > 0 && lane + length[k % OWN] == 32;
            const u32 head = __ballot_sync(~0u, last);
            if (length[k % OWN] > 0 && !last) elements.end(key[k], sum[k % OWN]);
            if (head) {
                open = __shfl_sync(~0u, key[k], 31);
                begun = start + 32 * k + __ffs(head) - 1;
                whole = E::lane(sum[k % OWN], __ffs(head) - 1);
            }
        }
        if (open >= 0) {
            const i64 end = RUNS ? eb_min(begun + EB_RUN, count) : count;
            whole = eb_combine_rest(keys, terms, start + 32 * ALL, end, open, whole, elements);
            if (lane == 0) {
                elements.end(open, whole);
                if (RUNS && end < count && keys.key(end) == open) {
                    eb_run_sums *const by = eb_run_sums_by(f);
                    by->heads[atomicAdd(&by->longs, 1u)] = (i32)begun;
                }
            }
        }
        if constexpr (RUNS) eb_add_run_of_span(eb_run_sums_by(f), keys, terms, start, count, elements);
    }
}

/* Sorts keys into `order`; not zero if the launch must end. */
static __device__ __noinline__ i32 eb_sort(eb_thread *f, i64 length, const nx *keys, i64 count, eb_keys *order) {
    eb_key *const sorted[2] = {(eb_key *)(f->stage + 2 * EB_STAGE), (eb_key *)(f->stage + 3 * EB_STAGE)};
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
    d.from = eb_keys{keys, 0};
    for (i32 pass = 0; pass < passes; pass++) {
        d.to = sorted[pass & 1];
        d.shift = pass * width;
        /* Keys that came in order stay where they are. Two words take turns, and the number of the meeting is the sign: none is
           reset while somebody may look at it. */
        const u32 sign = f->epoch;
        u32 *const unsorted = eb_noted_by(f)->unsorted + (sign & 1);
        if (pass == 0 && eb_are_unsorted(d)) *unsorted = sign;
        eb_count_digits(d);
        if (eb_barrier(f)) return 1;
        if (pass == 0 && *(volatile u32 *)unsorted != sign) break;
        eb_add_up_digits(d);
        if (eb_barrier(f)) return 1;
        eb_move_by_digit(d);
        if (eb_barrier(f)) return 1;
        d.from.sorted = d.to;
    }
    *order = d.from;
    return 0;
}

/* Do several of many terms fall on one element? It is asked where that is cheap, until the answer was yes. First warps look at
   neighbours, then each element is marked. 2 if the launch must end. */
static __device__ __noinline__ i32 eb_meet_at_elements(eb_thread *f, i64 length, const nx *keys, i64 count, b8 *meet) {
    /* They are where keys are sorted. */
    enum { MARKS = 4 * EB_STAGE };
    u32 *const marks = (u32 *)(f->stage + 2 * EB_STAGE);
    if (*meet || length > MARKS || length / 4 > count) return 1;
    const auto answer = [&](b8 found) {
        /* As where keys are sorted: two words take turns, and none is written before all have looked at it. */
        const u32 sign = f->epoch;
        u32 *const word = eb_noted_by(f)->unsorted + (sign & 1);
        if (found) *word = sign;
        if (eb_barrier(f)) return 2;
        return *(volatile u32 *)word == sign ? 1 : 0;
    };
    b8 found = 0;
    const int lane = threadIdx.x & 31;
    for (i64 at = f->thread; at - lane < count; at += f->threads) {
        const nx key = at < count ? keys[at] : -1;
        const u32 same = __match_any_sync(~0u, key);
        found |= key >= 0 && same != 1u << lane;
    }
    i32 met = answer(found);
    if (met == 0) {
        /* Nobody reads sorted keys of other terms any more. */
        for (i64 at = f->thread; at < length; at += f->threads) marks[at] = 0;
        if (eb_barrier(f)) return 2;
        found = 0;
        for (i64 at = f->thread; at < count; at += f->threads) found |= keys[at] >= 0 && atomicExch(marks + keys[at], 1u);
        met = answer(found);
    }
    *meet = met != 0;
    return met;
}

/* Combines terms for different elements, in any order. */
template <typename T, typename E>
EB_DO void eb_combine_each(const eb_thread *f, const nx *keys, const T *terms, i64 count, const E elements) {
    for (i64 at = f->thread; at < count; at += f->threads) {
        if (keys[at] >= 0) elements.end(keys[at], elements.add(elements.begin(keys[at]), terms[at]));
    }
}

/* Combines what was noted into the elements of an array, in one chain each; not zero if the launch must end. */
template <typename T, typename C>
static __device__ __noinline__ i32 eb_combine_noted(
    eb_thread *f, T *a, i64 length, const nx *keys, const T *terms, i64 count, C combine, b8 *meet
) {
    if (count <= EB_FEW) {
        eb_combine_few(f, a, keys, terms, count, combine);
        return 0;
    }
    const i32 met = eb_meet_at_elements(f, length, keys, count, meet);
    if (met > 1) return 1;
    if (met == 0) {
        eb_combine_each(f, keys, terms, count, eb_chain<T, C>{a, combine});
        return 0;
    }
    eb_keys order;
    if (eb_sort(f, length, keys, count, &order)) return 1;
    eb_combine_sorted<false>(f, order, terms, count, eb_chain<T, C>{a, combine});
    return 0;
}

/* Adds what was noted to the elements of an array, run by run: all terms of a loop, or those of a batch. Not zero if the launch must
   end. */
template <typename T, typename C>
static __device__ __noinline__ i32 eb_add_noted(
    eb_thread *f, const eb_runs<T> runs, b8 carries, const nx *keys, const T *terms, i64 count, C combine, b8 *meet
) {
    if (!carries && count <= EB_FEW) {
        const i32 crowded = count <= EB_RUN ? 0 : eb_are_crowded(f, keys, count);
        if (crowded > 1) return 1;
        if (!crowded) {
            eb_combine_few(f, runs.a, keys, terms, count, combine);
            return 0;
        }
    }
    const i32 met = count <= EB_FEW ? 1 : eb_meet_at_elements(f, runs.length, keys, count, meet);
    if (met > 1) return 1;
    if (met == 0) {
        if (carries) eb_combine_each(f, keys, terms, count, runs);
        else eb_combine_each(f, keys, terms, count, eb_chain<T, C>{runs.a, combine});
        return 0;
    }
    eb_keys order;
    if (eb_sort(f, runs.length, keys, count, &order)) return 1;
    if (carries) {
        eb_combine_sorted<false>(f, order, terms, count, runs);
        return 0;
    }
    eb_combine_sorted<true>(f, order, terms, count, eb_chain<T, C>{runs.a, combine});
    return eb_add_up_runs(f, runs.a, order, count);
}

/* The iterations of a batch of so many that a block takes: neighbours. */
struct eb_part { i64 begin, end, all; };
EB_DO eb_part eb_part_of_batch(i64 all) {
    const i64 each = (all + gridDim.x - 1) / gridDim.x, begin = eb_min(blockIdx.x * each, all);
    const eb_part part = {begin, eb_min(begin + each, all), all};
    return part;
}

/* The sum of what the blocks before this one counted. */
static __device__ __noinline__ i64 eb_of_earlier_blocks(const i64 *totals) {
    i64 own = 0, all = 0;
    for (int block = threadIdx.x; block < blockIdx.x; block += blockDim.x) own += totals[block];
    eb_block_up_to(own, &all);
    return all;
}
