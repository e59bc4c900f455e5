"""The programs of five examples as one writes them in Taichi, for a comparison of their length alone.

Between the marks stands what the example has in its structs, functions and programs: declarations of fields, functions,
kernels, and what calls them in order, up to the loss. As DiffTaichi does it, the fields that a gradient needs have one more
dimension for the steps. Constants, initial values and the host's part are left out on both sides. `examples/tests/it.rs` counts
the lines.
"""

import taichi as ti

real = ti.f64
SIDE, CELLS, STEPS, ITERATIONS, DT, DX, VOLUME, MU, LAMBDA = 12, 32, 400, 8, 5e-4, 1 / 32, 2.4e-4, 20.0, 30.0
PARTICLES, NODES, EDGES, DISCS, ELEMENTS, N, WIDE = 144, 81, 208, 3, 96, 24, 3
RADIUS, MASS, INERTIA, STIFFNESS, FRICTION, COMPLIANCE = 0.1, 1.0, 5e-3, 4e3, 0.4, 1e-4

# lines: mpm
x = ti.Vector.field(2, real, (STEPS + 1, PARTICLES), needs_grad=True)
v = ti.Vector.field(2, real, (STEPS + 1, PARTICLES), needs_grad=True)
c = ti.Matrix.field(2, 2, real, (STEPS + 1, PARTICLES), needs_grad=True)
f = ti.Matrix.field(2, 2, real, (STEPS + 1, PARTICLES), needs_grad=True)
grid_v_in = ti.Vector.field(2, real, (STEPS, CELLS, CELLS), needs_grad=True)
grid_v_out = ti.Vector.field(2, real, (STEPS, CELLS, CELLS), needs_grad=True)
grid_m = ti.field(real, (STEPS, CELLS, CELLS), needs_grad=True)
velocity = ti.Vector.field(2, real, (), needs_grad=True)
centre = ti.Vector.field(2, real, (), needs_grad=True)
loss = ti.field(real, (), needs_grad=True)


@ti.func
def weights(d):
    return [0.5 * (1.5 - d) ** 2, 0.75 - (d - 1.0) ** 2, 0.5 * (d - 0.5) ** 2]


@ti.kernel
def throw():
    for p in range(PARTICLES):
        v[0, p] = velocity[None]


@ti.kernel
def to_grid(t: int):
    for p in range(PARTICLES):
        base = ti.cast(x[t, p] / DX - 0.5, ti.i32)
        d = x[t, p] / DX - ti.cast(base, real)
        w = weights(d)
        new = (ti.Matrix.identity(real, 2) + DT * c[t, p]) @ f[t, p]
        f[t + 1, p] = new
        assert new.determinant() > 0.0, "a particle is turned inside out"
        stress = MU * (new @ new.transpose() - ti.Matrix.identity(real, 2))
        stress += LAMBDA * ti.log(new.determinant()) * ti.Matrix.identity(real, 2)
        affine = VOLUME * c[t, p] - (4.0 * DT * VOLUME / DX**2) * stress
        for i, j in ti.static(ti.ndrange(3, 3)):
            to = DX * (ti.Vector([i, j]) - d)
            weight = w[i][0] * w[j][1]
            grid_v_in[t, base + ti.Vector([i, j])] += weight * (VOLUME * v[t, p] + affine @ to)
            grid_m[t, base + ti.Vector([i, j])] += weight * VOLUME


@ti.kernel
def on_grid(t: int):
    for i, j in ti.ndrange(CELLS, CELLS):
        if grid_m[t, i, j] > 0.0:
            new = grid_v_in[t, i, j] / grid_m[t, i, j]
            new[1] -= 9.8 * DT
            if j < 3 and new[1] < 0.0:
                new = ti.Vector([0.0, 0.0])
            if (i < 3 and new[0] < 0.0) or (i + 3 > CELLS and new[0] > 0.0):
                new[0] = 0.0
            grid_v_out[t, i, j] = new


@ti.kernel
def to_particles(t: int):
    for p in range(PARTICLES):
        base = ti.cast(x[t, p] / DX - 0.5, ti.i32)
        d = x[t, p] / DX - ti.cast(base, real)
        w = weights(d)
        new_v = ti.Vector.zero(real, 2)
        new_c = ti.Matrix.zero(real, 2, 2)
        for i, j in ti.static(ti.ndrange(3, 3)):
            here = w[i][0] * w[j][1] * grid_v_out[t, base + ti.Vector([i, j])]
            new_v += here
            new_c += (4.0 / DX) * here.outer_product(ti.Vector([i, j]) - d)
        v[t + 1, p] = new_v
        c[t + 1, p] = new_c
        x[t + 1, p] = x[t, p] + DT * new_v


@ti.kernel
def mean():
    for p in range(PARTICLES):
        centre[None] += x[STEPS, p] / PARTICLES


@ti.kernel
def miss(goal: ti.types.vector(2, real)):
    loss[None] = (centre[None] - goal).norm_sqr()


def simulate(goal):
    throw()
    for t in range(STEPS):
        to_grid(t)
        on_grid(t)
        to_particles(t)
    mean()
    miss(goal)
# end


# lines: bodies
x = ti.Vector.field(2, real, (STEPS + 1, DISCS), needs_grad=True)
v = ti.Vector.field(2, real, (STEPS + 1, DISCS), needs_grad=True)
spin = ti.field(real, (STEPS + 1, DISCS), needs_grad=True)
strike = ti.Vector.field(2, real, (), needs_grad=True)
loss = ti.field(real, (), needs_grad=True)


@ti.func
def contact(depth, normal, slip):
    tangent = ti.Vector([-normal[1], normal[0]])
    press = STIFFNESS * ti.max(depth, 0.0) * (1.0 - 0.05 * slip.dot(normal))
    rub = -FRICTION * press * ti.tanh(10.0 * slip.dot(tangent))
    return press * normal + rub * tangent, -RADIUS * rub


@ti.func
def surface(v, spin, normal):
    return v + spin * RADIUS * ti.Vector([normal[1], -normal[0]])


@ti.kernel
def step(t: int):
    for i in range(DISCS):
        force, torque = ti.Vector([0.0, -9.8 * MASS]), 0.0
        for j in range(DISCS):
            if j != i:
                d = x[t, i] - x[t, j]
                normal = d.normalized()
                slip = surface(v[t, i], spin[t, i], normal) - surface(v[t, j], spin[t, j], -normal)
                push, turn = contact(2.0 * RADIUS - d.norm(), normal, slip)
                force += push
                torque += turn
        up = ti.Vector([0.0, 1.0])
        push, turn = contact(RADIUS - x[t, i][1], up, surface(v[t, i], spin[t, i], up))
        v[t + 1, i] = v[t, i] + (DT / MASS) * (force + push)
        spin[t + 1, i] = spin[t, i] + DT / INERTIA * (torque + turn)
        x[t + 1, i] = x[t, i] + DT * v[t + 1, i]


@ti.kernel
def begin():
    v[0, 0] = ti.Vector([strike[None][0], 0.0])
    spin[0, 0] = strike[None][1]


@ti.kernel
def miss(goal: real):
    loss[None] = (x[STEPS, DISCS - 1][0] - goal) ** 2


def shot(goal):
    begin()
    for t in range(STEPS):
        step(t)
    miss(goal)
# end


# lines: cloth
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


# lines: smoke
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


# lines: elements
x = ti.Vector.field(2, real, (STEPS + 1, NODES), needs_grad=True)
v = ti.Vector.field(2, real, (STEPS + 1, NODES), needs_grad=True)
force = ti.Vector.field(2, real, (STEPS, NODES), needs_grad=True)
corners = ti.Vector.field(3, ti.i32, ELEMENTS)
rest = ti.Matrix.field(2, 2, real, ELEMENTS)
stiffness = ti.field(real, ELEMENTS, needs_grad=True)
end = ti.field(real, (), needs_grad=True)
loss = ti.field(real, (), needs_grad=True)


@ti.func
def stress(f, mu, la):
    back = f.inverse().transpose()
    return mu * (f - back) + la * ti.log(f.determinant()) * back


@ti.kernel
def forces(t: int):
    for e in range(ELEMENTS):
        i, j, k = corners[e][0], corners[e][1], corners[e][2]
        sides = ti.Matrix.cols([x[t, j] - x[t, i], x[t, k] - x[t, i]])
        f = sides @ rest[e]
        assert f.determinant() > 0.0, "an element is turned inside out"
        area = 0.5 / abs(rest[e].determinant())
        pulls = -area * stress(f, stiffness[e], 2.0 * stiffness[e]) @ rest[e].transpose()
        first, second = ti.Vector([pulls[0, 0], pulls[1, 0]]), ti.Vector([pulls[0, 1], pulls[1, 1]])
        force[t, j] += first
        force[t, k] += second
        force[t, i] -= first + second


@ti.kernel
def advance(t: int):
    for i in range(NODES):
        if i > WIDE:
            v[t + 1, i] = (v[t, i] + DT * (force[t, i] / MASS + ti.Vector([0.0, -1.0]))) * 0.995
        x[t + 1, i] = x[t, i] + DT * v[t + 1, i]


@ti.kernel
def average():
    for k in range(WIDE + 1):
        end[None] += x[STEPS, NODES - 1 - k][1] / (WIDE + 1)


@ti.kernel
def miss(goal: real):
    loss[None] = (end[None] - goal) ** 2


def hang(goal):
    for t in range(STEPS):
        forces(t)
        advance(t)
    average()
    miss(goal)
# end
