"""The discs of `examples/bodies.rs` in Taichi."""

import taichi as ti

ti.init(arch=ti.cpu, default_fp=ti.f64, cpu_max_num_threads=1, offline_cache=False)
real = ti.f64
DISCS, STEPS, DT, RADIUS, MASS, STIFFNESS, FRICTION = 3, 1500, 1e-3, 0.1, 1.0, 4e3, 0.4
INERTIA = 0.5 * MASS * RADIUS * RADIUS

# lines
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
        # Where the loop is not unrolled, Taichi 1.7.4 gives a wrong gradient of the sums in it.
        for j in ti.static(range(DISCS)):
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

for disc in range(DISCS):
    x[0, disc] = [0.3 * disc, RADIUS - MASS * 9.8 / STIFFNESS]
strike[None] = [2.0, 0.0]
with ti.ad.Tape(loss):
    shot(2.0)
for number in [loss[None], *strike.grad[None]]:
    print(number)
