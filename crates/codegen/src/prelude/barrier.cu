/* Was it the first fault? */
static __device__ __noinline__ i32 eb_report(eb_shared *s, i32 kind, i32 access, i64 dimension, i64 index, i64 extent) {
    if (atomicCAS(&s->fault, 0, kind) != 0) return 0;
    s->access = access;
    s->dimension = dimension;
    s->index = index;
    s->extent = extent;
    return 1;
}
#define eb_fault(f, kind, access, dimension, index, extent) \
    ((f)->bad = 1, eb_report((f)->shared, kind, access, dimension, index, extent))

#define eb_out_of_bounds(f, oops, index, extent) eb_fault(f, EB_BOUNDS, ((oops) - 1) >> 3, ((oops) - 1) & 7, index, extent)

/* Is this the thread that speaks for all? */
EB_DO b8 eb_first() { return (threadIdx.x | blockIdx.x) == 0; }

/* Does the host want the launch to end? The way to its memory is long. */
EB_DO i32 eb_wants_end(const eb_words *said) { return *(volatile const i32 *)&said->stop; }
EB_DO i32 eb_stopped(eb_thread *f) {
    if (!eb_wants_end(f->said)) return 0;
    eb_fault(f, EB_STOPPED, 0, 0, 0, 0);
    return 1;
}

/* Tells the host how many passes of an outermost loop are finished. */
EB_DO void eb_tell(eb_words *said, i64 pass) { *(volatile i64 *)&said->done = pass; }
EB_DO void eb_tell(eb_thread *f) { eb_tell(f->said, f->pass); }

/* What of a thread its blocks need to meet. */
struct eb_meeting { u64 *meet; eb_shared *shared; eb_words *said; i64 pass; };

/* What threads learn where they meet. */
enum { EB_ENDS = 1, EB_IS_BAD = 2, EB_COMBINES = 4, EB_IS_LAST = 8 };

/* All threads wait for each other; not zero if the launch must end. */
#ifdef EB_BATCH
#define EB_NEAR 1
EB_DO void eb_begin_to_meet() {}
EB_DO i32 eb_barrier(eb_thread *f) {
    f->epoch++;
    return __syncthreads_or(f->bad);
}
EB_DO i32 eb_arrive(eb_thread *) { return 0; }
EB_DO i32 eb_depart(eb_thread *, i32) { return 0; }
#else
/* Blocks that are one cluster: the hardware has a barrier for them, and each can write into the others' own memory. One that met
   a fault says so there before it arrives. Two verdicts take turns, so that a block that is ahead does not change what another
   one is about to read. */
#if __CUDA_ARCH__ >= 900
EB_DO b8 eb_is_cluster() {
    u32 is;
    asm("{ .reg .pred p; mov.pred p, %%is_explicit_cluster; selp.u32 %0, 1, 0, p; }" : "=r"(is));
    return is;
}
EB_DO i32 *eb_verdicts() { static __shared__ i32 verdicts[2]; return verdicts; }
EB_DO void eb_cluster_barrier() {
    asm volatile("barrier.cluster.arrive.release;" ::: "memory");
    asm volatile("barrier.cluster.wait.acquire;" ::: "memory");
}
EB_DO void eb_condemn(i32 *verdict) {
    const u32 mine = (u32)__cvta_generic_to_shared(verdict);
    for (u32 block = 0; block < gridDim.x; block++)
        asm volatile("{ .reg .u32 theirs; mapa.shared::cluster.u32 theirs, %0, %1; st.shared::cluster.u32 [theirs], 1; }"
                     :: "r"(mine), "r"(block) : "memory");
}
EB_DO i32 eb_meet_in_cluster(u32 epoch, i32 bad) {
    i32 *const verdict = eb_verdicts() + (epoch & 1);
    if (bad) eb_condemn(verdict);
    eb_cluster_barrier();
    return *(volatile i32 *)verdict;
}
/* A block may write into another one's memory only when that one runs, and has forgotten what was there before. */
EB_DO void eb_begin_to_meet() {
    if (!eb_is_cluster()) return;
    if (threadIdx.x < 2) eb_verdicts()[threadIdx.x] = 0;
    eb_cluster_barrier();
}
#else
EB_DO b8 eb_is_cluster() { return 0; }
EB_DO i32 eb_meet_in_cluster(u32, i32) { return 1; }
EB_DO void eb_begin_to_meet() {}
#endif
#define EB_NEAR (gridDim.x == 1 || eb_is_cluster())

/* Other blocks meet in memory. Two counters take turns: a block that is ahead counts on the other one, so that all read the same
   verdict. Of arrivals no more than 31 bits are compared: they are as many as wanted, or fewer by at most one of each block. Now
   and then, while it waits for others, the first thread tells the host how far it is, and looks whether the host wants an end; all
   learn it when they meet again. */
#define EB_ARRIVALS ((1ull << 48) - 1)
enum { EB_MEETINGS = 64 };
EB_DO i32 eb_look(const eb_meeting &m) {
    eb_tell(m.said, m.pass);
    if (!eb_wants_end(m.said)) return 0;
    eb_report(m.shared, EB_STOPPED, 0, 0, 0, 0);
    return EB_IS_BAD;
}
EB_DO i32 eb_meet_in_memory(const eb_meeting &m, u32 epoch, i32 bad) {
    bad = __syncthreads_or(bad);
    i32 stopped = 0;
    if (threadIdx.x == 0) {
        u64 *const counter = m.meet + (epoch & 1);
        const u64 arrival = bad ? (1ull << 48) + 1 : 1;
        const u32 wanted = (epoch / 2 - EB_BEGIN / 2 + 1) * gridDim.x;
        u64 seen;
        asm volatile("red.release.gpu.global.add.u64 [%0], %1;" :: "l"(counter), "l"(arrival) : "memory");
        if (blockIdx.x == 0 && epoch % EB_MEETINGS == 0) stopped = eb_look(m);
        do asm volatile("ld.acquire.gpu.global.u64 %0, [%1];" : "=l"(seen) : "l"(counter) : "memory");
        while (((u32)seen - wanted) & (1u << 30));
        bad = seen > EB_ARRIVALS;
    }
    return (__syncthreads_or(bad) ? EB_ENDS : 0) | stopped;
}

/* One function for all places where blocks meet, which takes few values: both ways in each place would take registers. */
static __device__ __noinline__ i32 eb_meet(eb_meeting m, u32 epoch, i32 bad) {
    return eb_is_cluster() ? eb_meet_in_cluster(epoch, bad) : eb_meet_in_memory(m, epoch, bad);
}
EB_DO i32 eb_barrier(eb_thread *f) {
    const u32 epoch = f->epoch++;
    if (gridDim.x == 1) return __syncthreads_or(f->bad);
    const i32 met = eb_meet({f->meet, f->shared, f->said, f->pass}, epoch, f->bad);
    if (met & EB_IS_BAD) f->bad = 1;
    return met & EB_ENDS;
}

/* The two meetings around what one warp does for all, as one: the block that comes last to the first one does it, while the others wait
   for the second, at which that block arrives for all. */
static __device__ __noinline__ i32 eb_arrive_in_memory(const eb_meeting m, u32 epoch, i32 bad) {
    bad = __syncthreads_or(bad);
    if (threadIdx.x >= 32) return 0;
    i32 way = 0;
    if (threadIdx.x == 0) {
        const u64 arrival = bad ? (1ull << 48) + 1 : 1;
        u64 seen;
        asm volatile("atom.acq_rel.gpu.global.add.u64 %0, [%1], %2;" : "=l"(seen) : "l"(m.meet + (epoch & 1)), "l"(arrival) : "memory");
        seen += arrival;
        if ((u32)seen == (epoch / 2 - EB_BEGIN / 2 + 1) * gridDim.x) way = EB_IS_LAST | (seen > EB_ARRIVALS ? EB_ENDS : EB_COMBINES);
    }
    way = __shfl_sync(~0u, way, 0);
    __syncwarp();
    return way;
}
static __device__ __noinline__ i32 eb_depart_in_memory(const eb_meeting m, u32 epoch, i32 way, i32 bad) {
    i32 stopped = 0;
    if (threadIdx.x == 0) {
        u64 *const counter = m.meet + (epoch & 1);
        const u32 wanted = (epoch / 2 - EB_BEGIN / 2 + 1) * gridDim.x;
        u64 seen;
        if (way & EB_IS_LAST) {
            const u64 arrivals = bad || (way & EB_ENDS) ? (1ull << 48) + gridDim.x : gridDim.x;
            asm volatile("red.release.gpu.global.add.u64 [%0], %1;" :: "l"(counter), "l"(arrivals) : "memory");
        }
        /* This one, or the one before, is one at which the first thread looks. */
        if (blockIdx.x == 0 && epoch % EB_MEETINGS <= 1) stopped = eb_look(m);
        do asm volatile("ld.acquire.gpu.global.u64 %0, [%1];" : "=l"(seen) : "l"(counter) : "memory");
        while (((u32)seen - wanted) & (1u << 30));
        bad = seen > EB_ARRIVALS;
    }
    return (__syncthreads_or(bad) ? EB_ENDS : 0) | stopped;
}
EB_DO i32 eb_arrive(eb_thread *f) {
    return eb_arrive_in_memory({f->meet, f->shared, f->said, f->pass}, f->epoch++, f->bad);
}
EB_DO i32 eb_depart(eb_thread *f, i32 way) {
    const i32 met = eb_depart_in_memory({f->meet, f->shared, f->said, f->pass}, f->epoch++, way, f->bad);
    if (met & EB_IS_BAD) f->bad = 1;
    return met & EB_ENDS;
}
#endif
/* The threads of the warp that does it are told so. */
EB_DO i32 eb_begin_to_combine(eb_thread *f) {
    if (!EB_NEAR) return eb_arrive(f);
    if (eb_barrier(f)) return EB_ENDS;
    return f->thread < 32 ? EB_COMBINES : 0;
}
/* All threads wait until it is done; not zero if the launch must end. */
EB_DO i32 eb_end_combining(eb_thread *f, i32 way) {
    if (!EB_NEAR) return eb_depart(f, way);
    return eb_barrier(f) | (way & EB_ENDS);
}

/* What a pass of a loop begins with. Threads that need not meet meet now and then all the same, and look whether the host
   wants an end: all count passes alike, those of inner loops and of outer ones together. */
enum { EB_PASSES = 1024 };
EB_DO i32 eb_pause_after(eb_thread *f, u32 passes) {
    if (passes % EB_PASSES != 0) return 0;
    if (eb_first()) { eb_tell(f); eb_stopped(f); }
    return eb_barrier(f);
}
/* The same for a thread that runs a loop alone. */
EB_DO i32 eb_look_alone(eb_thread *f, u32 *looked) {
    if (++*looked % EB_PASSES != 0) return 0;
    eb_tell(f);
    return eb_stopped(f);
}
EB_DO i32 eb_pause(eb_thread *f) { return eb_pause_after(f, ++f->passed); }

/* The last thing that a thread does: it tells the host what there is now, if the host wants to know. */
EB_DO void eb_leave(const eb_tables *f) {
    if (blockIdx.x != 0 || !f->report) return;
    __syncthreads();
    for (i64 k = threadIdx.x; k < f->words; k += blockDim.x) f->report[k] = f->tables[k];
}

/* The first thing that a thread does. */
EB_DO eb_thread eb_enter(const eb_launch &launch) {
#ifndef EB_BATCH
    eb_receive(launch);
    eb_begin_to_meet();
#endif
    eb_thread me;
    (eb_tables &)me = launch;
    me.thread = (i64)blockIdx.x * blockDim.x + threadIdx.x;
    me.threads = (i64)gridDim.x * blockDim.x;
    me.epoch = EB_BEGIN;
    me.bad = 0;
    me.passed = 0;
    me.turn = 0;
    me.pass = 0;
    if (me.thread == 0) { launch.next[0] = 0; launch.next[1] = 0; }
    return me;
}

