"""The smoke of `examples/smoke.rs` in Taichi."""

import numpy as np
import taichi as ti

ti.init(arch=ti.cpu, default_fp=ti.f64, cpu_max_num_threads=1, offline_cache=False)
real = ti.f64
N, STEPS, ITERATIONS, DT = 24, 16, 12, 0.6

# lines
u = ti.Vector.field(2, real, (STEPS + 1, N, N), needs_grad=True)
carried = ti.Vector.field(2, real, (STEPS, N, N), needs_grad=True)
smoke = ti.field(real, (STEPS + 1, N, N), needs_grad=True)
p = ti.field(real, (STEPS, ITERATIONS + 1, N, N), needs_grad=True)
loss = ti.field(real, (), needs_grad=True)


@ti.func
def sample(field: ti.template(), t, i0, j0, i1, j1, a):
    b = 1.0 - a
    return b[0] * (b[1] * field[t, i0, j0] + a[1] * field[t, i0, j1]) + a[0] * (
        b[1] * field[t, i1, j0] + a[1] * field[t, i1, j1]
    )


@ti.kernel
def advect(t: int):
    for i, j in ti.ndrange(N, N):
        at = ti.Vector([i, j]) - DT * u[t, i, j]
        base = ti.floor(at, ti.i32)
        i0, j0 = base[0] % N, base[1] % N
        i1, j1 = (i0 + 1) % N, (j0 + 1) % N
        carried[t, i, j] = sample(u, t, i0, j0, i1, j1, at - base)
        smoke[t + 1, i, j] = sample(smoke, t, i0, j0, i1, j1, at - base)


@ti.kernel
def pressure(t: int, k: int):
    for i, j in ti.ndrange(N, N):
        left, right, down, up = (i + N - 1) % N, (i + 1) % N, (j + N - 1) % N, (j + 1) % N
        divergence = 0.5 * (carried[t, right, j][0] - carried[t, left, j][0] + carried[t, i, up][1] - carried[t, i, down][1])
        around = p[t, k, left, j] + p[t, k, right, j] + p[t, k, i, down] + p[t, k, i, up]
        p[t, k + 1, i, j] = 0.25 * (around - divergence)


@ti.kernel
def project(t: int):
    for i, j in ti.ndrange(N, N):
        left, right, down, up = (i + N - 1) % N, (i + 1) % N, (j + N - 1) % N, (j + 1) % N
        k = ITERATIONS
        slope = ti.Vector([p[t, k, right, j] - p[t, k, left, j], p[t, k, i, up] - p[t, k, i, down]])
        u[t + 1, i, j] = carried[t, i, j] - 0.5 * slope


@ti.kernel
def miss(goal: ti.types.ndarray()):
    for i, j in ti.ndrange(N, N):
        loss[None] += (smoke[STEPS, i, j] - goal[i, j]) ** 2


def simulate(goal):
    for t in range(STEPS):
        advect(t)
        for k in range(ITERATIONS):
            pressure(t, k)
        project(t)
    miss(goal)
# end

row, column = np.meshgrid(np.arange(N), np.arange(N), indexing="ij")
for i in range(N):
    for j in range(N):
        u[0, i, j] = [0.3, 0.2]
        smoke[0, i, j] = np.exp(-((i - 8.0) ** 2 + (j - 9.0) ** 2) / 12.0)
goal = np.exp(-((row - 15.0) ** 2 + (column - 13.0) ** 2) / 12.0)
with ti.ad.Tape(loss):
    simulate(goal)
for number in [loss[None], *u.grad.to_numpy()[0].flatten()]:
    print(number)
