/* Hand-derived adjoints of the workloads, with a state kept every `period` steps (or the whole history). */

#define STEP_BLOCKS(steps, period) (((steps) + (period) - 1) / (period))
static inline i64 least(i64 a, i64 b) { return a < b ? a : b; }

/* lines: pointwise */
/* a: start, p, ds, dp, history of a block (period + 1 states), states. Loss: the sum of squares of the end. */
void pointwise_gradient(f64 **a, const i64 *n, i64 steps, int thread, int threads, barrier *b) {
    if (thread > 0) return;
    const i64 m = n[0], period = n[1], blocks = STEP_BLOCKS(steps, period);
    const f64 *p = a[1];
    f64 *ds = a[2], *dp = a[3], *history = a[4], *states = a[5];
    memcpy(states, a[0], 8 * m);
#define FORWARD(to, from) \
    for (i64 i = 0; i < m; i += ND) { D x = LOADD((from) + i); *(DU *)((to) + i) = x + 0.1 * TANH(x) * LOADD(p + i); }
    for (i64 k = 0; k + 1 < blocks; k++) {
        f64 *s = states + (k + 1) * m;
        FORWARD(s, states + k * m);
        for (i64 t = 1; t < period; t++) FORWARD(s, s);
    }
    memset(dp, 0, 8 * m);
    for (i64 k = blocks - 1; k >= 0; k--) {
        const i64 count = least(period, steps - k * period);
        memcpy(history, states + k * m, 8 * m);
        for (i64 t = 0; t < count; t++) FORWARD(history + (t + 1) * m, history + t * m);
        if (k == blocks - 1) for (i64 i = 0; i < m; i++) ds[i] = 2 * history[count * m + i];
        for (i64 t = count - 1; t >= 0; t--) {
            const f64 *s = history + t * m;
            for (i64 i = 0; i < m; i += ND) {
                D y = TANH(LOADD(s + i)), l = LOADD(ds + i), q = LOADD(p + i);
                *(DU *)(dp + i) = LOADD(dp + i) + 0.1 * y * l;
                *(DU *)(ds + i) = l + l * (0.1 * q) * (1.0 - y * y);
            }
        }
    }
}
/* end */

/* lines: burgers */
static void burgers_step(f64 *next, const f64 *u, i64 m, i64 from, i64 to) {
    const f64 nu = 0.1, dt = 0.01;
    i64 i = from, end = to;
    if (i == 0) next[0] = POINT(u[m - 1], u[0], u[1]), i = 1;
    if (end == m) next[m - 1] = POINT(u[m - 2], u[m - 1], u[0]), end = m - 1;
    for (; i + ND <= end; i += ND) *(DU *)(next + i) = POINT(LOADD(u + i - 1), LOADD(u + i), LOADD(u + i + 1));
    for (; i < end; i++) next[i] = POINT(u[i - 1], u[i], u[i + 1]);
}

/* a: start, du, spare adjoint, history of a block, states. */
void burgers_gradient(f64 **a, const i64 *n, i64 steps, int thread, int threads, barrier *b) {
    const f64 nu = 0.1, dt = 0.01;
    const i64 m = n[0], period = n[1], blocks = STEP_BLOCKS(steps, period);
    const i64 from = m * thread / threads & -8, to = thread + 1 == threads ? m : m * (thread + 1) / threads & -8;
    f64 *l = a[1], *next = a[2], *history = a[3], *states = a[4], *work[2] = {a[5], a[6]};
    memcpy(states + from, a[0] + from, 8 * (to - from));
    meet(b, threads);
    for (i64 k = 0; k + 1 < blocks; k++) {
        const f64 *u = states + k * m;
        for (i64 t = 0; t < period; t++) {
            f64 *out = t + 1 == period ? states + (k + 1) * m : work[t & 1];
            burgers_step(out, u, m, from, to);
            meet(b, threads);
            u = out;
        }
    }
    for (i64 k = blocks - 1; k >= 0; k--) {
        const i64 count = least(period, steps - k * period);
        memcpy(history + from, states + k * m + from, 8 * (to - from));
        meet(b, threads);
        for (i64 t = 0; t < count; t++) {
            burgers_step(history + (t + 1) * m, history + t * m, m, from, to);
            meet(b, threads);
        }
        if (k == blocks - 1) {
            for (i64 i = from; i < to; i++) l[i] = 2 * history[count * m + i];
            meet(b, threads);
        }
        for (i64 t = count - 1; t >= 0; t--) {
            const f64 *u = history + t * m;
#define BACK(ul, uc, ur, ll, lc, lr) \
    ((lc) * (1.0 + dt * (-2.0 * nu - 0.5 * ((ur) - (ul)))) + (lr) * dt * (nu + 0.5 * (ur)) + (ll) * dt * (nu - 0.5 * (ul)))
            i64 i = from, end = to;
            if (i == 0) next[0] = BACK(u[m - 1], u[0], u[1], l[m - 1], l[0], l[1]), i = 1;
            if (end == m) next[m - 1] = BACK(u[m - 2], u[m - 1], u[0], l[m - 2], l[m - 1], l[0]), end = m - 1;
            for (; i + ND <= end; i += ND)
                *(DU *)(next + i) = BACK(LOADD(u + i - 1), LOADD(u + i), LOADD(u + i + 1), LOADD(l + i - 1), LOADD(l + i), LOADD(l + i + 1));
            for (; i < end; i++) next[i] = BACK(u[i - 1], u[i], u[i + 1], l[i - 1], l[i], l[i + 1]);
            meet(b, threads);
            f64 *x = l; l = next; next = x;
        }
    }
    if (steps & 1) memcpy(a[1] + from, a[2] + from, 8 * (to - from));
}
/* end */

/* lines: wave */
/* One step from (prev, u) to next; may be in place of prev. */
static void wave_step(f32 *next, const f32 *prev, const f32 *u, const f32 *c, i64 m, i64 from, i64 to) {
    for (i64 i = from; i < to; i++) {
        const f32 *here = u + i * m, *speed = c + i * m, *old = prev + i * m;
        f32 *out = next + i * m;
        i64 j = 1;
        for (; j + NS <= m - 1; j += NS) {
            S x = LOADS(here + j);
            S lap = LOADS(here + j - m) + LOADS(here + j + m) + LOADS(here + j - 1) + LOADS(here + j + 1) - 4.0f * x;
            *(SU *)(out + j) = 2.0f * x - LOADS(old + j) + LOADS(speed + j) * lap;
        }
        for (; j < m - 1; j++) {
            f32 lap = here[j - m] + here[j + m] + here[j - 1] + here[j + 1] - 4.0f * here[j];
            out[j] = 2.0f * here[j] - old[j] + speed[j] * lap;
        }
    }
}

/* a: u, prev, c, source, dc, l, l_old, history (period + 2 planes), states (two planes each), work (two planes), seen.
   Loss: the sum of squares of row 2 after every step. Boundaries are zero. */
void wave_gradient(f32 **a, const i64 *n, i64 steps, int thread, int threads, barrier *b) {
    const i64 m = n[0], size = m * m, period = n[1], blocks = STEP_BLOCKS(steps, period);
    const i64 from = 1 + (m - 2) * thread / threads, to = 1 + (m - 2) * (thread + 1) / threads;
    const f32 *c = a[2], *source = a[3];
    f32 *dc = a[4], *l = a[5], *old = a[6], *history = a[7], *states = a[8], *work = a[9], *seen = a[10];
    const i64 at = 8 * m + m / 2;
    if (thread == 0) {
        memcpy(states, a[1], 4 * size);
        memcpy(states + size, a[0], 4 * size);
        memset(dc, 0, 4 * size);
        memset(l, 0, 4 * size);
        memset(old, 0, 4 * size);
        memset(history, 0, 4 * size * (period + 2));
        memset(work, 0, 8 * size);
    }
    meet(b, threads);
    for (i64 k = 0; k + 1 < blocks; k++) {
        f32 *prev = work, *u = work + size;
        if (thread == 0) memcpy(work, states + 2 * k * size, 8 * size);
        meet(b, threads);
        for (i64 t = 0; t < period; t++) {
            wave_step(prev, prev, u, c, m, from, to);
            meet(b, threads);
            f32 *x = u; u = prev; prev = x;
            if (thread == 0) { u[at] += source[k * period + t]; memcpy(seen + (k * period + t) * m, u + 2 * m, 4 * m); }
            meet(b, threads);
        }
        if (thread == 0) {
            memcpy(states + 2 * (k + 1) * size, prev, 4 * size);
            memcpy(states + 2 * (k + 1) * size + size, u, 4 * size);
        }
        meet(b, threads);
    }
    for (i64 k = blocks - 1; k >= 0; k--) {
        const i64 count = least(period, steps - k * period);
        if (thread == 0) memcpy(history, states + 2 * k * size, 8 * size);
        meet(b, threads);
        for (i64 t = 0; t < count; t++) {
            f32 *out = history + (t + 2) * size;
            wave_step(out, history + t * size, history + (t + 1) * size, c, m, from, to);
            meet(b, threads);
            if (thread == 0) { out[at] += source[k * period + t]; memcpy(seen + (k * period + t) * m, out + 2 * m, 4 * m); }
            meet(b, threads);
        }
        for (i64 t = count - 1; t >= 0; t--) {
            const f32 *u = history + (t + 1) * size;
            if (thread == 0) for (i64 j = 1; j < m - 1; j++) l[2 * m + j] += 2 * seen[(k * period + t) * m + j];
            meet(b, threads);
            for (i64 i = from; i < to; i++) {
                const f32 *x = u + i * m, *s = c + i * m, *g = l + i * m;
                f32 *o = old + i * m, *d = dc + i * m;
                i64 j = 1;
                for (; j + NS <= m - 1; j += NS) {
                    S lap = LOADS(x + j - m) + LOADS(x + j + m) + LOADS(x + j - 1) + LOADS(x + j + 1) - 4.0f * LOADS(x + j);
                    S h = LOADS(g + j);
                    *(SU *)(d + j) = LOADS(d + j) + lap * h;
                    S around = LOADS(s + j - m) * LOADS(g + j - m) + LOADS(s + j + m) * LOADS(g + j + m)
                             + LOADS(s + j - 1) * LOADS(g + j - 1) + LOADS(s + j + 1) * LOADS(g + j + 1);
                    *(SU *)(o + j) = 2.0f * h - LOADS(o + j) + around - 4.0f * LOADS(s + j) * h;
                }
                for (; j < m - 1; j++) {
                    f32 lap = x[j - m] + x[j + m] + x[j - 1] + x[j + 1] - 4.0f * x[j], h = g[j];
                    d[j] += lap * h;
                    o[j] = 2.0f * h - o[j] + s[j - m] * g[j - m] + s[j + m] * g[j + m] + s[j - 1] * g[j - 1]
                         + s[j + 1] * g[j + 1] - 4.0f * s[j] * h;
                }
            }
            meet(b, threads);
            f32 *x = l; l = old; old = x;
        }
    }
}
/* end */

/* lines: rnn */
/* a: start, w, x, dw, dx, history of a block, states, deltas (GROUP rows), adjoint of h. Sums over steps are grouped:
   the weights' derivative is updated every GROUP steps. */
enum { GROUP = 8, ROWS = 8 };
void rnn_gradient(f64 **a, const i64 *n, i64 steps, int thread, int threads, barrier *b) {
    const i64 m = n[0], period = n[1], blocks = STEP_BLOCKS(steps, period);
    const i64 from = m * thread / threads & -32, to = thread + 1 == threads ? m : m * (thread + 1) / threads & -32;
    const f64 *w = a[1], *x = a[2];
    f64 *dw = a[3], *dx = a[4], *history = a[5], *states = a[6], *deltas = a[7], *l = a[8], *work[2] = {a[9], a[10]};
    memcpy(states + from, a[0] + from, 8 * (to - from));
    memset(dw + from * m, 0, 8 * m * (to - from));
    memset(dx + from, 0, 8 * (to - from));
    meet(b, threads);
    for (i64 k = 0; k + 1 < blocks; k++) {
        const f64 *h = states + k * m;
        for (i64 t = 0; t < period; t++) {
            f64 *out = t + 1 == period ? states + (k + 1) * m : work[t & 1];
            rnn_step(out, h, w, x, m, from, to);
            meet(b, threads);
            h = out;
        }
    }
    for (i64 k = blocks - 1; k >= 0; k--) {
        const i64 count = least(period, steps - k * period);
        memcpy(history + from, states + k * m + from, 8 * (to - from));
        meet(b, threads);
        for (i64 t = 0; t < count; t++) {
            rnn_step(history + (t + 1) * m, history + t * m, w, x, m, from, to);
            meet(b, threads);
        }
        if (k == blocks - 1) {
            for (i64 i = from; i < to; i++) l[i] = 2 * history[count * m + i];
            meet(b, threads);
        }
        for (i64 t = count - 1, waiting = 0; t >= 0; t--) {
            f64 *delta = deltas + waiting * m;
            for (i64 i = from; i < to; i += ND) {
                D y = LOADD(history + (t + 1) * m + i), d = LOADD(l + i) * (1.0 - y * y);
                *(DU *)(delta + i) = d;
                *(DU *)(dx + i) = LOADD(dx + i) + d;
            }
            meet(b, threads);
            for (i64 r = from; r < to; r += ROWS) {
                D sum[ROWS] = {0};
                for (i64 i = 0; i < m; i += ND) {
                    D d = LOADD(delta + i);
                    for (int j = 0; j < ROWS; j++) sum[j] += LOADD(w + (r + j) * m + i) * d;
                }
                for (int j = 0; j < ROWS; j++) {
                    f64 total = 0;
                    for (int lane = 0; lane < ND; lane++) total += sum[j][lane];
                    l[r + j] = total;
                }
            }
            if (++waiting == GROUP || t == 0) {
                const f64 *h = history + t * m;
                for (i64 r = from; r < to; r++)
                    for (i64 i = 0; i < m; i += 2 * ND) {
                        f64 *out = dw + r * m + i;
                        D sum = LOADD(out), more = LOADD(out + ND);
                        for (i64 g = 0; g < waiting; g++) {
                            const f64 v = h[(waiting - 1 - g) * m + r];
                            sum += LOADD(deltas + g * m + i) * v;
                            more += LOADD(deltas + g * m + i + ND) * v;
                        }
                        *(DU *)out = sum;
                        *(DU *)(out + ND) = more;
                    }
                waiting = 0;
                meet(b, threads);
            }
        }
    }
}
/* end */

/* lines: seedloop */
/* a: start, p, ds, dp, history of a block, states. */
void seedloop_gradient(f64 **a, const i64 *n, i64 steps, int thread, int threads, barrier *b) {
    if (thread > 0) return;
    const i64 m = n[0], period = n[1], blocks = STEP_BLOCKS(steps, period);
    const f64 *p = a[1];
    f64 *ds = a[2], *dp = a[3], *history = a[4], *states = a[5];
    memcpy(states, a[0], 8 * m);
#define SEED(to, from) \
    for (i64 i = 0; i < m; i += ND) *(DU *)((to) + i) = seed_point(LOADD((from) + i), LOADD(p + i));
    for (i64 k = 0; k + 1 < blocks; k++) {
        f64 *s = states + (k + 1) * m;
        SEED(s, states + k * m);
        for (i64 t = 1; t < period; t++) SEED(s, s);
    }
    memset(dp, 0, 8 * m);
    for (i64 k = blocks - 1; k >= 0; k--) {
        const i64 count = least(period, steps - k * period);
        memcpy(history, states + k * m, 8 * m);
        for (i64 t = 0; t < count; t++) SEED(history + (t + 1) * m, history + t * m);
        if (k == blocks - 1) for (i64 i = 0; i < m; i++) ds[i] = 2 * history[count * m + i];
        for (i64 t = count - 1; t >= 0; t--) {
            const f64 *state = history + t * m;
            for (i64 i = 0; i < m; i += ND) {
                D s = LOADD(state + i), q = LOADD(p + i), l = LOADD(ds + i);
                D y = TANH(s), u = y * q, c = u + 0.5 * s, d = SIN(c);
                D de = 0.1 * l, dc = de * u * COS(c), du = de * d + dc, dy = du * q;
                *(DU *)(dp + i) = LOADD(dp + i) + du * y;
                *(DU *)(ds + i) = l + 0.5 * dc + dy * (1.0 - y * y);
            }
        }
    }
}
/* end */
