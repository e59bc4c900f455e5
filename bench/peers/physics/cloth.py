"""The cloth of `examples/cloth.rs` in Taichi."""

import taichi as ti

ti.init(arch=ti.cpu, default_fp=ti.f64, cpu_max_num_threads=1, offline_cache=False)
real = ti.f64
SIDE, STEPS, ITERATIONS, DT, COMPLIANCE = 9, 60, 8, 1 / 60, 1e-4
NODES, EDGES = SIDE * SIDE, 2 * SIDE * (SIDE - 1) + (SIDE - 1) ** 2

# lines
x = ti.Vector.field(3, real, (STEPS + 1, NODES), needs_grad=True)
v = ti.Vector.field(3, real, (STEPS + 1, NODES), needs_grad=True)
next = ti.Vector.field(3, real, (STEPS, ITERATIONS + 1, NODES), needs_grad=True)
moved = ti.Vector.field(3, real, (STEPS, ITERATIONS, NODES), needs_grad=True)
w = ti.field(real, NODES)
edges = ti.Vector.field(2, ti.i32, EDGES)
rest = ti.field(real, EDGES)
multiplier = ti.field(real, (STEPS, ITERATIONS + 1, EDGES), needs_grad=True)
wind = ti.Vector.field(3, real, (), needs_grad=True)
loss = ti.field(real, (), needs_grad=True)


@ti.kernel
def predict(t: int):
    for i in range(NODES):
        push = ti.Vector([0.0, 0.0, 0.0])
        if w[i] > 0.0:
            push = wind[None] + ti.Vector([0.0, -9.8, 0.0])
        next[t, 0, i] = x[t, i] + DT * (v[t, i] + DT * push)


@ti.kernel
def relax(t: int, k: int):
    for e in range(EDGES):
        a, b = edges[e][0], edges[e][1]
        d = next[t, k, a] - next[t, k, b]
        soft = COMPLIANCE / DT**2
        gain = (rest[e] - d.norm() - soft * multiplier[t, k, e]) / (w[a] + w[b] + soft)
        multiplier[t, k + 1, e] = multiplier[t, k, e] + gain
        moved[t, k, a] += w[a] * gain * d.normalized()
        moved[t, k, b] -= w[b] * gain * d.normalized()


@ti.kernel
def move(t: int, k: int):
    for i in range(NODES):
        next[t, k + 1, i] = next[t, k, i] + 0.3 * moved[t, k, i]


@ti.kernel
def advance(t: int):
    for i in range(NODES):
        v[t + 1, i] = 0.98 * (next[t, ITERATIONS, i] - x[t, i]) / DT
        x[t + 1, i] = next[t, ITERATIONS, i]


@ti.kernel
def miss(goal: ti.types.vector(3, real)):
    loss[None] = (x[STEPS, NODES // 2] - goal).norm_sqr()


def hang(goal):
    for t in range(STEPS):
        predict(t)
        for k in range(ITERATIONS):
            relax(t, k)
            move(t, k)
        advance(t)
    miss(goal)
# end

ends = []
for row in range(SIDE):
    for column in range(SIDE):
        node = row * SIDE + column
        ends += [[node, node + 1]] if column + 1 < SIDE else []
        ends += [[node, node + SIDE]] if row + 1 < SIDE else []
        ends += [[node, node + SIDE + 1]] if row + 1 < SIDE and column + 1 < SIDE else []
place = [ti.Vector([(k % SIDE) / SIDE, 0.0, (k // SIDE) / SIDE], real) for k in range(NODES)]
for k in range(NODES):
    x[0, k], w[k] = place[k], 0.0 if k in (0, SIDE - 1) else 1.0
for k, (one, other) in enumerate(ends):
    edges[k], rest[k] = [one, other], (place[one] - place[other]).norm()
wind[None] = [0.0, 0.0, 1.0]
with ti.ad.Tape(loss):
    hang(ti.Vector([0.5, -0.5, 0.5], real))
for number in [loss[None], *wind.grad[None]]:
    print(number)
