typedef unsigned char b8;
/* What places of elements are computed in: wide where some array has 2^31 elements or more. */
#ifdef EB_WIDE
typedef i64 nx;
#define EB_SMALL (1ll << 60)
#else
typedef i32 nx;
#define EB_SMALL (1ll << 30)
#endif
#define INT32_MIN (-2147483647 - 1)
#define INT32_MAX 2147483647
#define UINT32_MAX 4294967295u
#define INT64_MIN (-9223372036854775807ll - 1)
#define INT64_MAX 9223372036854775807ll
#define INT64_C(x) x##ll

enum { EB_COUNTERS = 8 };

/* What all threads of a launch share. */
struct eb_shared {
    i32 fault;       /* 0: none; else the kind of the first fault */
    i32 access;      /* which access of the table, or which division */
    i64 dimension, index, extent;
    i64 at[EB_COUNTERS];     /* the counters of the loops around an assertion that does not hold */
    i32 ended;       /* written at the end of a segment alone: what comes after it does not run */
    i32 outcome;     /* 0: done; 1: yielded */
    i64 region, reason;
    i32 exchanged;   /* did the memory of an array take the place of another? */
};

/* What the host and a running kernel say to each other, in the memory of the host. */
struct eb_words {
    i64 done;        /* finished passes of the outermost loop */
    i32 stop;        /* the host's wish that the launch ends */
};

enum { EB_PATCHES = 6 };

/* The tables that a launch works on. */
struct eb_tables {
    void **data;            /* by array */
    void ***tape;           /* by array: the places of its tape */
    i64 *depth;             /* by array: how many places hold something */
    const i64 *capacity;    /* by array: how many places there are */
    u64 *values, *locals;   /* what pieces of the program hand to each other */
    i64 *passes;            /* by loop: finished passes, for yields */
    i64 *bounds;            /* two per loop: its bounds on entry, for yields */
    void **kept;            /* by array: copies of what a region may undo */
    const u64 *scalars;
    u64 *partials;          /* by reduction: results of its leaves, then whether any iteration combined */
    u64 *stage;             /* what iterations note for ordered sums: keys, then terms */
    u64 *runs;              /* by element of the arrays of a loop: how many terms its open run has, and what the finished ones are */
    eb_shared *shared;
    eb_words *said;
    u64 *meet, *next;       /* where the blocks of this launch meet, and those of the next one */
    const u64 *tables;      /* all that changes of these, `words` of it, and where the host wants it at the end, if it does */
    u64 *report;
    i64 words;
    i64 resume;             /* the region to go on at, or -1 */
};

/* What a launch is given. */
struct eb_launch : eb_tables {
    const int4 *staged;     /* what the tables are to hold, in pairs of words, in the memory of the host, if it is not sent */
    int4 *received;
    i64 pairs;
    i32 patches;            /* values that the host changed since the last launch */
    i32 patched[EB_PATCHES];
    u64 patch[EB_PATCHES];
};

/* Long launches meet more often than 32 bits can count. They begin shortly before that, so that most of them show it. */
enum : u32 { EB_BEGIN = 0xffffff00u };

/* What one thread works on. */
struct eb_thread : eb_tables {
    i64 thread, threads;
    u32 epoch;              /* how often it met the others, from EB_BEGIN on; it wraps around */
    i32 bad;                /* did it meet a fault? */
    u32 passed;             /* passes of all loops together */
    u32 turn;               /* which of the two places of results the last loop with sums used */
    i64 pass;               /* finished passes of the outermost loop */
};

/* The tape of one array. Threads exchange an array's memory with that of a place all at once, each in variables of its
   own; the table is written when all are known to have read it, which is after the next meeting. */
struct eb_tape {
    void **places, *value;
    i32 depth, capacity, pending;
    u32 epoch;
};

enum { EB_BOUNDS = 1, EB_DIVISION = 2, EB_SHAPES = 3, EB_TAPE = 4, EB_STOPPED = 5, EB_MISFIT = 6, EB_TAKEN = 7, EB_OVERFLOW = 9, EB_MEET = 10 };

#define EB_DO static __device__ __forceinline__
#define EB_IN __device__ __forceinline__

/* A segment is a kernel of its own, or a part of the one that runs batches: there, what one segment only reads an earlier
   one may have written; and most code runs once, so that the time goes into fetching it. */
#ifdef EB_BATCH
#define EB_SEGMENT(name, threads) EB_DO void name(const eb_launch &launch, const eb_extents &extents)
#define EB_END(f)
#define EB_LOOP _Pragma("unroll 1")
#define EB_AT_ONCE(count) EB_LOOP
#define __ldg(place) (*(place))
#else
#define EB_SEGMENT(name, threads) extern "C" __global__ void __launch_bounds__(threads, EB_BLOCKS) \
    name(const __grid_constant__ eb_launch launch, const __grid_constant__ eb_extents extents)
#define EB_END(f) eb_leave(f);
#define EB_LOOP
#define EB_PRAGMA(text) _Pragma(#text)
#define EB_AT_ONCE(count) EB_PRAGMA(unroll count)
#endif

/* Where a single block runs, it can take the tables from the host itself. The way there is long: a thread asks for all that
   it takes, and waits once. */
EB_DO void eb_receive(const eb_launch &launch) {
    if (!launch.staged) return;
    enum { AT_ONCE = 4 };
    for (i32 first = threadIdx.x; first < launch.pairs; first += AT_ONCE * blockDim.x) {
        int4 pair[AT_ONCE];
#pragma unroll
        for (int k = 0; k < AT_ONCE; k++) {
            const i32 at = first + k * blockDim.x;
            if (at < launch.pairs) pair[k] = __ldcv(launch.staged + at);
        }
#pragma unroll
        for (int k = 0; k < AT_ONCE; k++) {
            const i32 at = first + k * blockDim.x;
            if (at < launch.pairs) launch.received[at] = pair[k];
        }
    }
    __syncthreads();
}

EB_DO u64 eb_value(const eb_launch &launch, i32 value) {
    u64 bits = launch.values[value];
#ifndef EB_BATCH
#pragma unroll
    for (int k = 0; k < EB_PATCHES; k++) if (k < launch.patches && launch.patched[k] == value) bits = launch.patch[k];
#endif
    return bits;
}

/* Keeps for later launches what the host changed; thread 0 does. */
EB_DO void eb_keep(const eb_launch &launch) {
#ifndef EB_BATCH
    for (int k = 0; k < launch.patches; k++) launch.values[launch.patched[k]] = launch.patch[k];
#endif
}

