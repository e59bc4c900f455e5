"""An elastic block in the material point method (MLS-MPM), thrown so that it lands where it should.

Particles carry positions, velocities, velocity gradients and deformations; the momentum of a step goes to a grid and comes
back. The gradient of where the block ends, by the velocity that it is thrown with, goes back through all steps.

    python examples/python/mpm.py [--plot]
"""

import sys
from dataclasses import dataclass

import ebbtide as eb
import numpy as np
from ebbtide import Array0, Array1, Array2, Array3, f64, fill, par

SIDE, CELLS, STEPS = 8, 24, 150
DT, DX = 1e-3, 1.0 / CELLS
VOLUME = 0.25 * DX * DX          # of a particle; its mass is the same, since the density is one
MU, LAMBDA = 20.0, 30.0


@dataclass
class Block:
    x: Array2[f64]
    v: Array2[f64]
    c: Array3[f64]               # the gradient of the velocity around a particle
    f: Array3[f64]               # the deformation of a particle
    grid_v: Array3[f64]
    grid_m: Array2[f64]


@eb.func
def weight(k, d):
    """The weight of cell `k` of three in a row, for a particle at `d` cells from the first."""
    near = 0.75 - (d - 1.0) * (d - 1.0)
    far = 0.5 * (1.5 - d) * (1.5 - d) if k == 0 else 0.5 * (d - 0.5) * (d - 0.5)
    return near if k == 1 else far


@eb.program
def to_grid(b: Block):
    for p in par(b.x.shape[0]):
        i, j = int(b.x[p, 0] / DX - 0.5), int(b.x[p, 1] / DX - 0.5)
        dx, dy = b.x[p, 0] / DX - i, b.x[p, 1] / DX - j
        a00, a01 = 1.0 + DT * b.c[p, 0, 0], DT * b.c[p, 0, 1]
        a10, a11 = DT * b.c[p, 1, 0], 1.0 + DT * b.c[p, 1, 1]
        f00, f01 = a00 * b.f[p, 0, 0] + a01 * b.f[p, 1, 0], a00 * b.f[p, 0, 1] + a01 * b.f[p, 1, 1]
        f10, f11 = a10 * b.f[p, 0, 0] + a11 * b.f[p, 1, 0], a10 * b.f[p, 0, 1] + a11 * b.f[p, 1, 1]
        b.f[p, 0, 0] = f00
        b.f[p, 0, 1] = f01
        b.f[p, 1, 0] = f10
        b.f[p, 1, 1] = f11
        pressure = LAMBDA * np.log(f00 * f11 - f01 * f10)
        scale = 4.0 * DT * VOLUME / (DX * DX)
        s00 = VOLUME * b.c[p, 0, 0] - scale * (MU * (f00 * f00 + f01 * f01 - 1.0) + pressure)
        s01 = VOLUME * b.c[p, 0, 1] - scale * MU * (f00 * f10 + f01 * f11)
        s10 = VOLUME * b.c[p, 1, 0] - scale * MU * (f00 * f10 + f01 * f11)
        s11 = VOLUME * b.c[p, 1, 1] - scale * (MU * (f10 * f10 + f11 * f11 - 1.0) + pressure)
        for k in range(3):
            for l in range(3):
                tx, ty = DX * (k - dx), DX * (l - dy)
                w = weight(k, dx) * weight(l, dy)
                b.grid_v[i + k, j + l, 0] += w * (VOLUME * b.v[p, 0] + s00 * tx + s01 * ty)
                b.grid_v[i + k, j + l, 1] += w * (VOLUME * b.v[p, 1] + s10 * tx + s11 * ty)
                b.grid_m[i + k, j + l] += w * VOLUME


@eb.program
def on_grid(b: Block):
    for i, j in par(CELLS, CELLS):
        mass = b.grid_m[i, j]
        if mass > 0.0:
            vx, vy = b.grid_v[i, j, 0] / mass, b.grid_v[i, j, 1] / mass - 9.8 * DT
            held = j < 3 and vy < 0.0                     # the floor holds what comes down
            wall = (i < 3 and vx < 0.0) or (i + 3 > CELLS and vx > 0.0)
            b.grid_v[i, j, 0] = 0.0 if held or wall else vx
            b.grid_v[i, j, 1] = 0.0 if held else vy


@eb.program
def to_particles(b: Block):
    for p in par(b.x.shape[0]):
        i, j = int(b.x[p, 0] / DX - 0.5), int(b.x[p, 1] / DX - 0.5)
        dx, dy = b.x[p, 0] / DX - i, b.x[p, 1] / DX - j
        vx, vy, c00, c01, c10, c11 = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
        for k in range(3):
            for l in range(3):
                w = weight(k, dx) * weight(l, dy)
                hx, hy = w * b.grid_v[i + k, j + l, 0], w * b.grid_v[i + k, j + l, 1]
                vx += hx
                vy += hy
                c00 += 4.0 / DX * hx * (k - dx)
                c01 += 4.0 / DX * hx * (l - dy)
                c10 += 4.0 / DX * hy * (k - dx)
                c11 += 4.0 / DX * hy * (l - dy)
        b.v[p, 0] = vx
        b.v[p, 1] = vy
        b.c[p, 0, 0] = c00
        b.c[p, 0, 1] = c01
        b.c[p, 1, 0] = c10
        b.c[p, 1, 1] = c11
        b.x[p, 0] += DT * vx
        b.x[p, 1] += DT * vy


@eb.program
def throw(b: Block, velocity: Array1[f64], goal: Array1[f64], centre: Array1[f64], loss: Array0[f64]):
    for p in par(b.x.shape[0]):
        b.v[p, 0] = velocity[0]
        b.v[p, 1] = velocity[1]
    for t in range(STEPS):
        fill(b.grid_v, 0.0)
        fill(b.grid_m, 0.0)
        to_grid(b)
        on_grid(b)
        to_particles(b)
    for p in par(b.x.shape[0]):
        centre[0] += b.x[p, 0] / (SIDE * SIDE)
        centre[1] += b.x[p, 1] / (SIDE * SIDE)
    loss[()] = (centre[0] - goal[0]) ** 2 + (centre[1] - goal[1]) ** 2


def block() -> Block:
    n = SIDE * SIDE
    p = np.arange(n)
    x = np.stack([0.2 + 0.5 * DX * (p // SIDE), 0.35 + 0.5 * DX * (p % SIDE)], axis=1)
    return Block(x, np.zeros((n, 2)), np.zeros((n, 2, 2)), np.tile(np.eye(2), (n, 1, 1)),
                 np.zeros((CELLS, CELLS, 2)), np.zeros((CELLS, CELLS)))  # fmt: skip


def main() -> float:
    goal = np.array([0.45, 0.35])
    g = throw.grad("loss", wrt="velocity", memory="16MiB")
    velocity = np.array([0.5, 1.0])

    def at(velocity):
        loss = np.zeros(())
        throw(block(), velocity, goal, np.zeros(2), loss)
        return float(loss)

    history = []
    for throws in range(5):
        loss, slope = g(block(), velocity, goal, np.zeros(2), np.zeros(()))
        history.append(loss**0.5)
        print(f"throw {throws} with velocity {velocity}: {loss**0.5:.5f} from the goal")
        if throws == 0:
            along = np.array([0.6, -0.8])
            difference = (at(velocity + 1e-5 * along) - at(velocity - 1e-5 * along)) / 2e-5
            print(f"slope {slope @ along:.8f}, by differences {difference:.8f}")
            assert abs(slope @ along - difference) < 1e-5 * abs(difference)
        velocity = velocity - 16.0 * slope

    if "--plot" in sys.argv:
        import matplotlib.pyplot as plt

        plt.semilogy(history)
        plt.xlabel("throw")
        plt.ylabel("distance from the goal")
        plt.savefig("mpm.png")
    return history[-1] / history[0]


if __name__ == "__main__":
    assert main() < 0.2
