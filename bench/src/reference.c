/* The workloads by hand: explicit vectors, all threads in one function. The elementary functions stand before. */
#include <sched.h>
#include <stddef.h>
#include <time.h>

#ifdef EB_AVX512
typedef f64x8 D;
typedef f32x16 S;
#define TANH eb_tanh_f64x8
#define SIN eb_sin_f64x8
#define COS eb_cos_f64x8
#else
typedef f64x4 D;
typedef f32x8 S;
#define TANH eb_tanh_f64x4
#define SIN eb_sin_f64x4
#define COS eb_cos_f64x4
#endif
typedef D DU __attribute__((aligned(8), may_alias));
typedef S SU __attribute__((aligned(4), may_alias));
enum { ND = sizeof(D) / 8, NS = sizeof(S) / 4 };
#define LOADD(p) (*(const DU *)(p))
#define LOADS(p) (*(const SU *)(p))

/* The time that this process has spent on processors, in nanoseconds. */
i64 processor_time(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

typedef struct { int arrived, generation; } barrier;
static inline void meet(barrier *b, int threads) {
    if (threads == 1) return;
    int seen = __atomic_load_n(&b->generation, __ATOMIC_RELAXED);
    if (__atomic_add_fetch(&b->arrived, 1, __ATOMIC_ACQ_REL) == threads) {
        b->arrived = 0;
        __atomic_store_n(&b->generation, seen + 1, __ATOMIC_RELEASE);
    } else {
        /* On a busy machine the others may have to be let in. */
        for (int spins = 0; __atomic_load_n(&b->generation, __ATOMIC_ACQUIRE) == seen; spins++)
            if (spins < 10000) __builtin_ia32_pause();
            else sched_yield();
    }
}

/* lines: pointwise */
/* s += 0.1 tanh(s) p; n need not be a multiple of the vectors. */
void pointwise(f64 **a, const i64 *n, i64 steps, int thread, int threads, barrier *b) {
    if (thread > 0) return;
    f64 *restrict s = a[0];
    const f64 *restrict p = a[1];
    for (i64 t = 0; t < steps; t++) {
        i64 i = 0;
        for (; i + ND <= n[0]; i += ND) {
            D x = LOADD(s + i);
            *(DU *)(s + i) = x + 0.1 * TANH(x) * LOADD(p + i);
        }
        if (i < n[0]) {
            D x = {0}, y = {0};
            memcpy(&x, s + i, 8 * (n[0] - i));
            memcpy(&y, p + i, 8 * (n[0] - i));
            x += 0.1 * TANH(x) * y;
            memcpy(s + i, &x, 8 * (n[0] - i));
        }
    }
}
/* end */

/* lines: burgers */
void burgers(f64 **a, const i64 *n, i64 steps, int thread, int threads, barrier *b) {
    const f64 nu = 0.1, dt = 0.01;
    f64 *u = a[0], *next = a[1];
    const i64 m = n[0], from = m * thread / threads & -8, to = thread + 1 == threads ? m : m * (thread + 1) / threads & -8;
    for (i64 t = 0; t < steps; t++) {
#define POINT(l, c, r) ((c) + dt * (nu * ((l) - 2.0 * (c) + (r)) - 0.5 * (c) * ((r) - (l))))
        i64 i = from, end = to;
        if (i == 0) next[0] = POINT(u[m - 1], u[0], u[1]), i = 1;
        if (end == m) next[m - 1] = POINT(u[m - 2], u[m - 1], u[0]), end = m - 1;
        for (; i + 2 * ND <= end; i += 2 * ND) {
            D l = LOADD(u + i - 1), c = LOADD(u + i), r = LOADD(u + i + 1);
            D l2 = LOADD(u + i + ND - 1), c2 = LOADD(u + i + ND), r2 = LOADD(u + i + ND + 1);
            *(DU *)(next + i) = POINT(l, c, r);
            *(DU *)(next + i + ND) = POINT(l2, c2, r2);
        }
        for (; i < end; i++) next[i] = POINT(u[i - 1], u[i], u[i + 1]);
        meet(b, threads);
        f64 *x = u; u = next; next = x;
    }
}
/* end */

/* lines: wave */
void wave(f32 **a, const i64 *n, i64 steps, int thread, int threads, barrier *b) {
    f32 *u = a[0], *prev = a[1], *seen = a[4];
    const f32 *c = a[2], *source = a[3];
    const i64 rows = n[0], m = n[1];
    const i64 from = 1 + (rows - 2) * thread / threads, to = 1 + (rows - 2) * (thread + 1) / threads;
    for (i64 t = 0; t < steps; t++) {
        for (i64 i = from; i < to; i++) {
            const f32 *restrict here = u + i * m, *restrict speed = c + i * m;
            f32 *restrict old = prev + i * m;
            i64 j = 1;
            for (; j + NS <= m - 1; j += NS) {
                S x = LOADS(here + j);
                S lap = LOADS(here + j - m) + LOADS(here + j + m) + LOADS(here + j - 1) + LOADS(here + j + 1) - 4.0f * x;
                *(SU *)(old + j) = 2.0f * x - LOADS(old + j) + LOADS(speed + j) * lap;
            }
            for (; j < m - 1; j++) {
                f32 lap = here[j - m] + here[j + m] + here[j - 1] + here[j + 1] - 4.0f * here[j];
                old[j] = 2.0f * here[j] - old[j] + speed[j] * lap;
            }
        }
        meet(b, threads);
        f32 *x = u; u = prev; prev = x;
        if (thread == 0) {
            u[8 * m + m / 2] += source[t];
            memcpy(seen + t * m, u + 2 * m, 4 * m);
        }
        meet(b, threads);
    }
}
/* end */

/* lines: rnn */
/* next = tanh(input + h w), n a multiple of four vectors. */
static void rnn_step(f64 *next, const f64 *h, const f64 *w, const f64 *x, i64 m, i64 from, i64 to) {
    for (i64 i = from; i < to; i += 4 * ND) {
        D s0 = LOADD(x + i), s1 = LOADD(x + i + ND), s2 = LOADD(x + i + 2 * ND), s3 = LOADD(x + i + 3 * ND);
        for (i64 k = 0; k < m; k++) {
            const f64 *row = w + k * m + i;
            f64 v = h[k];
            s0 += LOADD(row) * v;
            s1 += LOADD(row + ND) * v;
            s2 += LOADD(row + 2 * ND) * v;
            s3 += LOADD(row + 3 * ND) * v;
        }
        *(DU *)(next + i) = TANH(s0);
        *(DU *)(next + i + ND) = TANH(s1);
        *(DU *)(next + i + 2 * ND) = TANH(s2);
        *(DU *)(next + i + 3 * ND) = TANH(s3);
    }
}

void rnn(f64 **a, const i64 *n, i64 steps, int thread, int threads, barrier *b) {
    f64 *h = a[0], *next = a[1];
    const i64 m = n[0], from = m * thread / threads & -32, to = thread + 1 == threads ? m : m * (thread + 1) / threads & -32;
    for (i64 t = 0; t < steps; t++) {
        rnn_step(next, h, a[2], a[3], m, from, to);
        meet(b, threads);
        f64 *y = h; h = next; next = y;
    }
}
/* end */

/* lines: seedloop */
/* A body with several variables, element by element. */
static inline D seed_point(D s, D p) {
    D a = TANH(s), b = a * p, c = b + 0.5 * s, d = SIN(c), e = d * b;
    return s + 0.1 * e;
}

void seedloop(f64 **a, const i64 *n, i64 steps, int thread, int threads, barrier *b) {
    if (thread > 0) return;
    f64 *s = a[0];
    const f64 *p = a[1];
    for (i64 t = 0; t < steps; t++)
        for (i64 i = 0; i < n[0]; i += ND) *(DU *)(s + i) = seed_point(LOADD(s + i), LOADD(p + i));
}
/* end */
