"""The beam of `examples/elements.rs` in Taichi."""

import taichi as ti

ti.init(arch=ti.cpu, default_fp=ti.f64, cpu_max_num_threads=1, offline_cache=False)
real = ti.f64
LONG, WIDE, STEPS, DT, SIZE, MASS = 16, 3, 600, 2e-3, 0.1, 0.01
NODES, ELEMENTS = (LONG + 1) * (WIDE + 1), 2 * LONG * WIDE

# lines
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

for k in range(NODES):
    x[0, k] = [SIZE * (k // (WIDE + 1)), SIZE * (k % (WIDE + 1))]
for e in range(LONG * WIDE):
    one = e // WIDE * (WIDE + 1) + e % WIDE
    along, above = one + WIDE + 1, one + 1
    corners[2 * e], corners[2 * e + 1] = [one, along, above], [along + 1, above, along]
    rest[2 * e] = [[1 / SIZE, 0.0], [0.0, 1 / SIZE]]
    rest[2 * e + 1] = [[-1 / SIZE, 0.0], [0.0, -1 / SIZE]]
for e in range(ELEMENTS):
    stiffness[e] = 40.0
with ti.ad.Tape(loss):
    hang(0.1)
for number in [loss[None], *stiffness.grad.to_numpy()]:
    print(number)
