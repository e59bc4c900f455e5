"""Programs that `crates/ebbtide/tests/python.rs` writes in Rust: the golden file has the hashes and bits that
Rust gives, and these must be the same (CONFORMANCE 63)."""

import dataclasses
import enum
import pathlib

import ebbtide as eb
import numpy as np
import pytest
from ebbtide import (
    Array0,
    Array1,
    Array2,
    Vec2,
    checkpoint,
    compact,
    copy,
    f32,
    f64,
    fill,
    i32,
    i64,
    matmul,
    max_assign,
    min_assign,
    par,
    rand,
    scan,
    scatter_unique,
    select,
    swap,
)  # fmt: skip

GOLDEN = pathlib.Path(__file__).parent / "golden" / "same_programs.txt"


@eb.program
def burgers(u: Array1[f64], next: Array1[f64], nu: float, dt: float, steps: int):
    n = len(u)
    for _t in range(steps):
        for i in par(n):
            l = u[(i + n - 1) % n]
            r = u[(i + 1) % n]
            next[i] = u[i] + dt * (nu * (l - 2.0 * u[i] + r) - 0.5 * u[i] * (r - l))
        swap(u, next)


@eb.program
def objective(u: Array1[f64], next: Array1[f64], nu: float, dt: float, steps: int, target: Array1[f64], loss: Array0[f64]):
    burgers(u, next, nu, dt, steps)
    for i in par(len(u)):
        d = u[i] - target[i]
        loss[()] += 0.5 * d * d


@eb.func
def laplacian(u, i, j):
    return u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1] - 4.0 * u[i, j]


@eb.program
def heat(u: Array2[f32], next: Array2[f32], steps: int):
    copy(u, next)
    for _t in range(steps):
        for i, j in par(range(1, u.shape[0] - 1), range(1, u.shape[1] - 1)):
            next[i, j] = u[i, j] + 0.1 * laplacian(u, i, j)
        swap(u, next)


@eb.program
def histogram(x: Array1[f64], bins: Array1[i32], sum: Array0[f64]):
    most = len(bins) - 1
    for i in par(len(x)):
        sum[()] += x[i]
        k = min(int(np.floor(x[i])), most)
        bins[k] += 1


@eb.program
def walk(x: Array1[f64], seed: i64, steps: int):
    n = len(x)
    for i in par(n):
        here = x[i]
        for t in range(steps):
            up = rand(seed, t * n + i) < 0.5
            here += select(up, 1.0, -1.0)
            here = 0.5 * here if abs(here) > 3.0 else here
        x[i] = here


@eb.program
def rnn(h: Array2[f64], w: Array2[f64], x: Array2[f64], steps: int):
    z = np.zeros((h.shape[0], h.shape[1]))
    for t in range(steps):
        matmul(h, w, z)
        for i, j in par(h.shape[0], h.shape[1]):
            h[i, j] = np.tanh(z[i, j] + x[t, j])


@eb.program
def positive(x: Array1[f64], list: Array1[i32], count: Array0[i32], overflow: Array0[i32]):
    flags = np.zeros(len(x), dtype=bool)
    for i in par(len(x)):
        flags[i] = x[i] > 0.0
    compact(flags, list, count)
    overflow[()] = select(int(count[()]) > len(list), 1, 0)


@eb.program
def solve(x: Array1[f64], p: Array1[f64], tolerance: float):
    n = len(x)
    next = np.zeros(n)
    change = np.zeros(())
    while True:
        for i in par(n):
            next[i] = p[i] + 0.3 * np.sin(x[(i + n - 1) % n] + x[(i + 1) % n])
        fill(change, 0.0)
        for i in par(n):
            max_assign(change, (), abs(next[i] - x[i]))
        copy(next, x)
        if change[()] < tolerance:
            break


class Stage(enum.Enum):
    Detect = 0
    Solve = 1


@eb.program
def step(pairs: Array1[i32], overflow: Array0[i32], residual: Array0[f32]):
    with checkpoint(Stage.Detect, yield_on=overflow, undo=[pairs]):
        fill(pairs, 1)
        overflow[()] = 0
    while True:
        with checkpoint(Stage.Solve):
            residual[()] *= 0.5
        if residual[()] < 1e-6:
            break


@dataclasses.dataclass
class Grid:
    u: Array1[f64]
    dx: float


@eb.program
def measure(grid: Grid, energy: Array0[f64]):
    energy[()] = 0.0
    for i in par(len(grid.u)):
        energy[()] += grid.u[i] * grid.u[i] * grid.dx


@eb.program
def collatz(start: Array1[i64], place: Array1[i32], length: Array1[i32], total: Array1[i32]):
    for i in par(len(start)):
        n = start[i]
        count = i32(0)
        while n > 1 and count < 1000:
            if n & 1 == 0:
                n = n >> 1
            else:
                n = 3 * n + 1
            count += 1
        scatter_unique(length, place[i], count)
    scan(length, total)


@eb.func
def root(x, most: int):
    if x <= 0.0:
        return 0.0
    r = x
    for _k in range(most):
        next = 0.5 * (r + x / r)
        if abs(next - r) < 1e-12:
            break
        r = next
    return r


@eb.program
def roots(x: Array1[f64]):
    for i in par(len(x)):
        if x[i] > 4.0:
            continue
        x[i] = root(x[i], 50)
    for i in reversed(range(1, len(x))):
        x[i] -= x[i - 1]
    for i in range(0, len(x), 3):
        if x[i] > 3.0:
            break
        x[i] += 1.0


@eb.func
def orbit(pos, vel, dt):
    r = np.linalg.norm(pos)
    new = vel - pos * (dt / (r * r * r))
    return pos + new * dt, new, r


@eb.program
def orbits(x: Array1[Vec2[f64]], v: Array1[Vec2[f64]], nearest: Array1[f64], dt: float, steps: int):
    for i in par(len(x)):
        for _t in range(steps):
            pos, vel, r = orbit(x[i], v[i], dt)
            min_assign(nearest, i, r)
            x[i] = pos
            v[i] = vel


def ramp(*shape):
    n = int(np.prod(shape))
    return np.array([((i * 37 + 11) % 64) / 8.0 - 3.0 for i in range(n)]).reshape(shape)


def run_burgers():
    u, next = ramp(40), np.zeros(40)
    burgers(u, next, 0.1, 0.01, 25)
    return [u, next]


def run_objective():
    g = objective.grad("loss", wrt=["u", "nu"], memory="24KiB")
    value, (du, dnu) = g(ramp(40), np.zeros(40), 0.1, 0.01, 100, np.zeros(40), np.zeros(()))
    return [np.array([value, dnu]), du]


def run_heat():
    u = ramp(9, 7).astype(np.float32)
    heat(u, np.zeros_like(u), 7)
    return [u]


def run_histogram():
    bins, sum = np.zeros(5, np.int32), np.zeros(())
    histogram(ramp(100) + 3.0, bins, sum)
    return [bins, sum]


def run_walk():
    x = ramp(6)
    walk(x, 7, 20)
    return [x]


def run_rnn():
    h = ramp(3, 4)
    rnn(h, ramp(4, 4), ramp(5, 4), 5)
    return [h]


def run_positive():
    list, count, overflow = np.zeros(10, np.int32), np.zeros((), np.int32), np.zeros((), np.int32)
    positive(ramp(30), list, count, overflow)
    return [list, np.array([count[()], overflow[()]], np.int32)]


def run_solve():
    x = np.zeros(12)
    solve(x, ramp(12), 1e-12)
    return [x]


def run_step():
    pairs, overflow, residual = np.zeros(3, np.int32), np.zeros((), np.int32), np.ones((), np.float32)
    assert step(pairs, overflow, residual) is None
    return [pairs, residual]


def run_measure():
    energy = np.ones(())
    measure(Grid(ramp(33), 0.1), energy)
    return [energy]


def run_collatz():
    length, total = np.zeros(5, np.int32), np.zeros(5, np.int32)
    collatz(np.array([27, 1, 97, 6, 1 << 40]), np.array([4, 2, 0, 1, 3], np.int32), length, total)
    return [length, total]


def run_roots():
    x = ramp(20)
    roots(x)
    return [x]


def run_orbits():
    x, v, nearest = ramp(3, 2) + 4.0, ramp(3, 2), np.full(3, 9.0)
    orbits(x, v, nearest, 0.125, 20)
    return [x, v, nearest]


PROGRAMS = [burgers, objective, heat, histogram, walk, rnn, positive, solve, step, measure, collatz, roots, orbits]


def golden():
    entries, name = {}, None
    for line in GOLDEN.read_text().splitlines():
        if line.startswith("  "):
            entries[name][1].append(line.split())
        else:
            name, hash = line.split()
            entries[name] = (hash, [])
    return entries


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.name)
def test_a_program_has_the_hash_that_rust_gives_it(program):
    assert program.ir().hash == golden()[program.name][0], str(program)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.name)
def test_a_program_computes_the_bits_that_rust_computes(program):
    results = globals()["run_" + program.name]()
    for found, expected in zip(results, golden()[program.name][1], strict=True):
        bits = found.ravel().view(np.uint64 if found.itemsize == 8 else np.uint32)
        assert [f"{b:x}" for b in bits.tolist()] == expected
