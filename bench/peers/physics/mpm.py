"""The block of `examples/mpm.rs` in Taichi: positions, velocities and deformations with one more dimension for the steps."""

import taichi as ti

ti.init(arch=ti.cpu, default_fp=ti.f64, cpu_max_num_threads=1, offline_cache=False)
real = ti.f64
SIDE, CELLS, STEPS, DT, MU, LAMBDA = 12, 32, 400, 5e-4, 20.0, 30.0
PARTICLES, DX = SIDE * SIDE, 1 / CELLS
VOLUME = 0.25 * DX * DX

# lines
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

for particle in range(PARTICLES):
    x[0, particle] = [0.2 + 0.5 * DX * (particle // SIDE), 0.35 + 0.5 * DX * (particle % SIDE)]
    f[0, particle] = [[1.0, 0.0], [0.0, 1.0]]
velocity[None] = [0.5, 1.0]
with ti.ad.Tape(loss):
    simulate(ti.Vector([0.6, 0.3], real))
for number in [loss[None], *velocity.grad[None]]:
    print(number)
