"""Full-waveform inversion on the data of `ebbtide demo`: the ground under the sea, from echoes heard at its surface.

    python examples/python/waveform.py [--plot] [--grid 160x240] [--sources 8] [--iterations 20]

The programs are those of the demo in Rust, line by line: they have the same hashes and compute the same bits.
"""

import argparse

import ebbtide as eb
import numpy as np
from ebbtide import Array0, Array1, Array2, f32, f64, func, par, swap
from scipy.optimize import minimize

#: The slowest and the fastest rock that the inversion may find, and water, in km/s.
SLOWEST, FASTEST, WATER = 1.4, 4.8, 1.5
#: The depths of the ground and of the sea in km, the frequency of the shots in Hz, and how long is listened, in s.
DEPTH, SEA, FREQUENCY, LISTEN = 2.0, 0.16, 4.0, 2.7


@func
def speed(x, rock):
    """The speed of sound in a cell: an unknown of any size becomes a speed between the bounds."""
    found = f32(SLOWEST) + (f32(FASTEST) - f32(SLOWEST)) / (1.0 + np.exp(-x))
    return WATER + rock * (found - WATER)


@eb.program
def answer(x: Array2[f32], rock: Array2[f32], keep: Array2[f32], ratio: f32, strength: Array2[f32]):
    """How strongly a cell answers to the curvature of the field: (speed · dt / dx)²."""
    for i, j in par(x.shape[0], x.shape[1]):
        courant = speed(x[i, j], rock[i, j]) * ratio
        strength[i, j] = keep[i, j] * courant * courant


@func
def curvature(u, i, j):
    return u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1] - 4.0 * u[i, j]


@eb.program
def advance(u: Array2[f32], past: Array2[f32], strength: Array2[f32], keep: Array2[f32]):
    """One time step: `past` becomes the future. `keep` is one inside and fades towards the edges."""
    for i, j in par(range(1, u.shape[0] - 1), range(1, u.shape[1] - 1)):
        k = keep[i, j]
        past[i, j] = k * (2.0 * u[i, j] - k * past[i, j]) + strength[i, j] * curvature(u, i, j)


@eb.program
def shot(
    x: Array2[f32], rock: Array2[f32], keep: Array2[f32], ratio: f32, wavelet: Array1[f32], row: int, column: int, heard: Array2[f32]
):
    """What the receivers hear of one shot."""
    strength = np.zeros((x.shape[0], x.shape[1]), dtype=np.float32)
    u = np.zeros((x.shape[0], x.shape[1]), dtype=np.float32)
    past = np.zeros((x.shape[0], x.shape[1]), dtype=np.float32)
    answer(x, rock, keep, ratio, strength)
    for t in range(len(wavelet)):
        advance(u, past, strength, keep)
        swap(u, past)
        u[row, column] += wavelet[t]
        for j in par(x.shape[1]):
            heard[t, j] = u[row, j]


@eb.program
def misfit(
    x: Array2[f32], rock: Array2[f32], keep: Array2[f32], ratio: f32, wavelet: Array1[f32], row: int, column: int,
    heard: Array2[f32], loss: Array0[f64],
):  # fmt: skip
    """How far what the receivers would hear is from what they heard: half the sum of squares."""
    strength = np.zeros((x.shape[0], x.shape[1]), dtype=np.float32)
    u = np.zeros((x.shape[0], x.shape[1]), dtype=np.float32)
    past = np.zeros((x.shape[0], x.shape[1]), dtype=np.float32)
    answer(x, rock, keep, ratio, strength)
    for t in range(len(wavelet)):
        advance(u, past, strength, keep)
        swap(u, past)
        u[row, column] += wavelet[t]
        for j in par(x.shape[1]):
            error = f64(u[row, j] - heard[t, j])
            loss[()] += 0.5 * error * error


class Earth:
    """The ground of the demo on a grid: what is there, what is assumed at first, where it is fired and heard."""

    def __init__(self, rows, columns, sources):
        self.edge = edge = min(max(rows // 10, 3), 40)
        cell = DEPTH / (rows - 2 * edge)
        time_step = 0.65 * cell / FASTEST
        z = ((np.arange(rows) + 0.5 - edge) * cell)[:, None] + np.zeros(columns)
        x = ((np.arange(columns) + 0.5 - edge) / (columns - 2 * edge)) + np.zeros((rows, 1))
        self.truth = unknown(true_speed(z, x))
        self.start = unknown(1.6 + 0.85 * np.clip(z - SEA, 0.0, DEPTH))
        self.reach = np.clip(0.25 + z, 0.25, 1.4)
        self.rock = np.clip((z - SEA) / (1.5 * cell), 0.0, 1.0).astype(np.float32)
        inside = np.minimum(np.minimum.outer(np.arange(rows), np.arange(columns)), np.minimum.outer(np.arange(rows)[::-1], np.arange(columns)[::-1]))
        self.keep = np.exp(-2.8 / edge * (np.maximum(edge - inside, 0) / edge) ** 2).astype(np.float32)
        a = (np.pi * FREQUENCY * (np.arange(int(np.ceil(LISTEN / time_step))) * time_step - 1.2 / FREQUENCY)) ** 2
        self.wavelet = ((1.0 - 2.0 * a) * np.exp(-a)).astype(np.float32)
        self.ratio = float(np.float32(time_step / cell))
        self.row = edge + rows // 64
        self.columns = [edge + (columns - 2 * edge) * (2 * k + 1) // (2 * sources) for k in range(sources)]

    def fixed(self, column):
        """The arguments of a shot but for the unknown and what is heard."""
        return self.rock, self.keep, self.ratio, self.wavelet, self.row, column


def unknown(speed):
    """The unknown that gives a speed."""
    part = np.clip((np.maximum(speed, WATER) - SLOWEST) / (FASTEST - SLOWEST), 0.01, 0.99)
    return np.log(part / (1.0 - part)).astype(np.float32)


def true_speed(z, x):
    """Layers with gentle folds, a lens of salt, and a pocket of gas."""

    def wave(n, phase):
        return np.sin(2.0 * np.pi * (n * x + phase))

    def inside(cx, cz, rx, rz):
        return ((x - cx) / rx) ** 2 + ((z - cz - 0.10 * wave(1.0, 0.1)) / rz) ** 2 < 1.0

    found = np.full(z.shape, 3.30)
    for bottom, kms in [(1.58 + 0.06 * wave(0.8, 0.2), 2.85), (1.18 + 0.08 * wave(1.1, 0.6), 2.40), (0.78 + 0.06 * wave(0.9, 0.35), 2.05), (0.42 + 0.04 * wave(1.3, 0.0), 1.75)]:  # fmt: skip
        found = np.where(z < bottom, kms, found)
    found = np.where(inside(0.82, 0.66, 0.07, 0.10), 1.65, found)
    return np.where(inside(0.47, 0.98, 0.21, 0.24), 3.6, found)


def main(arguments=()) -> float:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--plot", action="store_true")
    parser.add_argument("--grid", default="64x96")
    parser.add_argument("--sources", type=int, default=4)
    parser.add_argument("--iterations", type=int, default=12)
    parser.add_argument("--memory", default="4MiB")
    given = parser.parse_args(arguments)
    rows, columns = (int(n) for n in given.grid.split("x"))
    earth = Earth(rows, columns, given.sources)
    steps = len(earth.wavelet)

    heard = []
    for column in earth.columns:
        heard.append(np.zeros((steps, columns), np.float32))
        shot(earth.truth, *earth.fixed(column), heard[-1])

    g = misfit.grad("loss", wrt="x", memory=given.memory)
    print(g.plan(earth.start, *earth.fixed(earth.columns[0]), heard[0], np.zeros(())))

    def fun(step):
        """The misfit over all shots and its gradient; the optimiser moves deep cells further than shallow ones."""
        x = (earth.start + earth.reach * step.reshape(rows, columns)).astype(np.float32)
        value, slope = 0.0, np.zeros((rows, columns))
        for column, records in zip(earth.columns, heard):
            found, dx = g(x, *earth.fixed(column), records, np.zeros(()))
            value += float(found)
            slope += dx
        return value, (slope * earth.reach).ravel()

    first, _ = fun(np.zeros(rows * columns))
    found = minimize(fun, np.zeros(rows * columns), jac=True, method="L-BFGS-B", options={"maxiter": given.iterations})
    print(f"misfit {first:.4g} -> {found.fun:.4g} in {found.nfev} gradients of {given.sources} shots, {steps} time steps each")
    if given.plot:
        import matplotlib.pyplot as plt

        result = earth.start + earth.reach * found.x.reshape(rows, columns)
        for k, (field, title) in enumerate([(earth.truth, "truth"), (earth.start, "start"), (result, "found")]):
            plt.subplot(1, 3, k + 1)
            kms = WATER + earth.rock * (SLOWEST + (FASTEST - SLOWEST) / (1.0 + np.exp(-field)) - WATER)
            plt.imshow(kms, vmin=1.5, vmax=3.6)
            plt.title(title)
        plt.savefig("waveform.png")
    return float(found.fun / first)


if __name__ == "__main__":
    import sys

    assert main(sys.argv[1:]) < 0.3
