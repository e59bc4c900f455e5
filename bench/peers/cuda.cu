/* By hand what bench/src/bin/cuda.rs asks Ebbtide for: nvcc -O3 -arch=sm_90 -o cuda bench/peers/cuda.cu && ./cuda */
#include <cooperative_groups.h>
#include <cstdio>
#include <chrono>
#include <vector>
namespace cg = cooperative_groups;

static void check(cudaError_t e, int line) {
    if (e != cudaSuccess) { printf("line %d: %s\n", line, cudaGetErrorString(e)); exit(1); }
}
#define CHECK(x) check(x, __LINE__)

template <typename F> static void say(const char *name, int steps, F work) {
    double best = 1e30;
    for (int round = 0; round < 8; round++) {
        CHECK(cudaDeviceSynchronize());
        auto start = std::chrono::steady_clock::now();
        work();
        CHECK(cudaDeviceSynchronize());
        best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
    }
    printf("  %-44s %9.3f us\n", name, best * 1e6 / steps);
}

/* Pointwise, store-all: the loop inside the kernel. */
__global__ void pointwise(const float *s0, const float *p, float *tape, float *ds, float *dp, int n, int steps) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float s = s0[i], q = p[i];
    for (int t = 0; t < steps; t++) {
        tape[(size_t)t * n + i] = s;
        s += 0.1f * tanhf(s) * q;
    }
    float l = 2 * s, d = 0;
    for (int t = steps - 1; t >= 0; t--) {
        float h = tanhf(tape[(size_t)t * n + i]);
        d += l * 0.1f * h;
        l += l * 0.1f * q * (1 - h * h);
    }
    ds[i] = l;
    dp[i] = d;
}

__device__ void step(float *next, const float *prev, const float *u, const float *c, int n) {
    for (int i = 1 + blockIdx.y * blockDim.y + threadIdx.y; i < n - 1; i += gridDim.y * blockDim.y)
        for (int j = blockIdx.x * blockDim.x + threadIdx.x; j < n - 1; j += gridDim.x * blockDim.x) {
            if (j == 0) continue;
            int k = i * n + j;
            float x = u[k], lap = u[k - n] + u[k + n] + u[k - 1] + u[k + 1] - 4.0f * x;
            next[k] = 2.0f * x - prev[k] + c[k] * lap;
        }
}

__global__ void wave(float *u, float *prev, const float *c, int n, int steps) {
    auto grid = cg::this_grid();
    for (int t = 0; t < steps; t++) {
        step(prev, prev, u, c, n);
        grid.sync();
        float *x = u; u = prev; prev = x;
    }
}

__device__ void copy(float *to, const float *from, int n) {
    int threads = gridDim.x * gridDim.y * blockDim.x * blockDim.y;
    int thread = ((blockIdx.y * gridDim.x + blockIdx.x) * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
    for (int k = thread; k < n * n / 4; k += threads) ((float4 *)to)[k] = ((const float4 *)from)[k];
}

/* States every `period` steps, then each block recorded and reversed. */
__global__ void wave_gradient(const float *u0, const float *prev0, const float *c, float *dc, float *l, float *old,
                              float *history, float *states, float *work, int n, int steps, int period) {
    auto grid = cg::this_grid();
    size_t size = (size_t)n * n;
    int blocks = (steps + period - 1) / period;
    float *prev = work, *u = work + size;
    copy(prev, prev0, n);
    copy(u, u0, n);
    grid.sync();
    for (int k = 0; k < blocks; k++) {
        copy(states + 2 * k * size, prev, n);
        copy(states + (2 * k + 1) * size, u, n);
        if (k + 1 == blocks) break;
        for (int t = 0; t < period; t++) {
            step(prev, prev, u, c, n);
            grid.sync();
            float *x = u; u = prev; prev = x;
        }
    }
    grid.sync();
    for (int k = blocks - 1; k >= 0; k--) {
        int count = min(period, steps - k * period);
        copy(history, states + 2 * k * size, n);
        copy(history + size, states + (2 * k + 1) * size, n);
        grid.sync();
        for (int t = 0; t < count; t++) {
            step(history + (t + 2) * size, history + t * size, history + (t + 1) * size, c, n);
            grid.sync();
        }
        if (k + 1 == blocks)
            for (int i = blockIdx.y * blockDim.y + threadIdx.y; i < n; i += gridDim.y * blockDim.y)
                for (int j = blockIdx.x * blockDim.x + threadIdx.x; j < n; j += gridDim.x * blockDim.x)
                    l[i * n + j] = 2 * history[(count + 1) * size + i * n + j], old[i * n + j] = 0, dc[i * n + j] = 0;
        grid.sync();
        for (int t = count - 1; t >= 0; t--) {
            const float *x = history + (t + 1) * size;
            for (int i = 1 + blockIdx.y * blockDim.y + threadIdx.y; i < n - 1; i += gridDim.y * blockDim.y)
                for (int j = blockIdx.x * blockDim.x + threadIdx.x; j < n - 1; j += gridDim.x * blockDim.x) {
                    if (j == 0) continue;
                    int q = i * n + j;
                    float lap = x[q - n] + x[q + n] + x[q - 1] + x[q + 1] - 4.0f * x[q], h = l[q];
                    dc[q] += lap * h;
                    old[q] = 2.0f * h - old[q] + c[q - n] * l[q - n] + c[q + n] * l[q + n] + c[q - 1] * l[q - 1] +
                             c[q + 1] * l[q + 1] - 4.0f * c[q] * h;
                }
            grid.sync();
            float *y = l; l = old; old = y;
        }
    }
}

__global__ void nothing(int passes) {
    auto grid = cg::this_grid();
    for (int k = 0; k < passes; k++) grid.sync();
}

int main() {
    const int steps = 1000, period = 32;
    {
        const int n = 100;
        float *a[5];
        for (int k = 0; k < 5; k++) CHECK(cudaMalloc(a + k, 4 * n * (k == 2 ? steps : 1)));
        CHECK(cudaMemset(a[0], 0, 4 * n));
        CHECK(cudaMemset(a[1], 0, 4 * n));
        say("pointwise 100 gradient, store-all", steps, [&] { pointwise<<<1, 128>>>(a[0], a[1], a[2], a[3], a[4], n, steps); });
    }
    for (int blocks : {132, 264, 1056})
    for (int threads : {128, 512}) {
        if (blocks * threads > 264 * 1024) continue;
        int passes = 1000;
        void *args[] = {&passes};
        char name[64];
        snprintf(name, 64, "grid.sync, %d blocks of %d", blocks, threads);
        say(name, passes, [&] { CHECK(cudaLaunchCooperativeKernel((void *)nothing, dim3(blocks), dim3(threads), args, 0, 0)); });
    }
    for (int n : {512, 2048}) {
        size_t size = (size_t)n * n;
        float *u, *prev, *c, *dc, *l, *old, *history, *states, *work;
        for (float **p : {&u, &prev, &c, &dc, &l, &old}) { CHECK(cudaMalloc(p, 4 * size)); CHECK(cudaMemset(*p, 0, 4 * size)); }
        CHECK(cudaMalloc(&history, 4 * size * (period + 2)));
        CHECK(cudaMalloc(&states, 8 * size * (steps / period + 1)));
        CHECK(cudaMalloc(&work, 8 * size));
        CHECK(cudaMemset(history, 0, 4 * size * (period + 2)));
        for (auto &shape : std::vector<std::vector<int>>{{1, 132, 32, 16}, {4, 66, 128, 4}, {2, 132, 128, 4}, {4, 33, 128, 8}, {1, 132, 512, 2}}) {
            dim3 grid(shape[0], shape[1]), block(shape[2], shape[3]);
            int s = steps, m = n, p = period;
            char name[64];
            snprintf(name, 64, "wave %d primal, %dx%d of %dx%d", n, shape[0], shape[1], shape[2], shape[3]);
            void *args[] = {&u, &prev, &c, &m, &s};
            say(name, steps, [&] { CHECK(cudaLaunchCooperativeKernel((void *)wave, grid, block, args, 0, 0)); });
            snprintf(name, 64, "wave %d gradient, %dx%d of %dx%d", n, shape[0], shape[1], shape[2], shape[3]);
            void *more[] = {&u, &prev, &c, &dc, &l, &old, &history, &states, &work, &m, &s, &p};
            say(name, steps, [&] { CHECK(cudaLaunchCooperativeKernel((void *)wave_gradient, grid, block, more, 0, 0)); });
        }
    }
}
