"""The corpus in JAX, as its users write it: rolls, gathers, scans and `.at[].add`.

`bench/run --corpus --arguments` writes the arguments of every program and what Ebbtide computes from them; this script reads
both, times program and gradient, and writes `bench/out/corpus-jax.json`, which `bench/run --corpus` shows beside our times.
A program whose loss or gradient differs from ours is named and left out.

    python bench/peers/corpus_jax.py [--threads N] [--only PROGRAM[/TYPE[/SIZE]]] [--seconds S]

JAX takes the GPU where it has one; `JAX_PLATFORMS=cpu` keeps it from that. On one thread times are those on the processor.
"""

import argparse
import json
import os
import pathlib
import sys
import time

words = argparse.ArgumentParser()
words.add_argument("--threads", type=int, default=1)
words.add_argument("--only", default="")
words.add_argument("--seconds", type=float, default=1.0)
WISH = words.parse_args()
# Whatever the library starts shares these cores.
os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[-WISH.threads :])

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

jax.config.update("jax_enable_x64", True)
jax.config.update("jax_default_matmul_precision", "highest")
OUT = pathlib.Path(__file__).parent.parent / "out"


def loop(step, state, steps):
    return lax.scan(lambda state, _: (step(state), None), state, None, length=steps)[0]


def square(a):
    return jnp.sum(a * a)


# Learning.


def dense(h, w, x, steps):
    return square(loop(lambda h: jnp.tanh(h @ w + x), h, steps))


def gru(h, x, wz, wr, wh):
    def step(h, x):
        rh = jax.nn.sigmoid(h @ wr + x) * h
        gate = jax.nn.sigmoid(h @ wz + x)
        return (1 - gate) * h + gate * jnp.tanh(rh @ wh + x), None

    return square(lax.scan(step, h, x)[0])


def lstm(h, c, x, w):
    def step(state, x):
        h, c = state
        i, f, g, o = jnp.split(h @ w + x, 4, axis=1)
        c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
        return (jax.nn.sigmoid(o) * jnp.tanh(c), c), None

    return square(lax.scan(step, (h, c), x)[0][0])


def neural_ode(x, a, b, dt, steps):
    def slope(x):
        return jnp.tanh(x @ a) @ b

    return square(loop(lambda x: x + dt * slope(x + 0.5 * dt * slope(x)), x, steps))


def mixture(points, means, scales, weights):
    z = (points[:, None, :] - means) * jnp.exp(scales)
    terms = weights + jnp.sum(scales, 1) - 0.5 * jnp.sum(z * z, -1)
    return jnp.sum(jax.nn.logsumexp(terms, axis=1))


def bundle(cameras, points, camera_of, point_of, seen):
    c, p = cameras[camera_of], points[point_of]
    s, co = jnp.sin(c[:, 0]), jnp.cos(c[:, 0])
    x = co * p[:, 0] - s * p[:, 1] + c[:, 1]
    y = s * p[:, 0] + co * p[:, 1] + c[:, 2]
    z = p[:, 2] + c[:, 3]
    return square(c[:, 4] * x / z - seen[:, 0]) + square(c[:, 4] * y / z - seen[:, 1])


# Particles and meshes.


def all_pairs(x, v, m, steps):
    def step(state):
        x, v = state
        d = x[None] - x[:, None]
        r = jnp.sum(d * d, -1) + 0.01
        v = v + 0.001 * jnp.sum((m / (r * jnp.sqrt(r)))[..., None] * d, 1)
        return x + 0.001 * v, v

    return square(loop(step, (x, v), steps)[0])


def neighbours(x, v, near, steps):
    def step(state):
        x, v = state
        d = x[near] - x[:, None]
        inverse = 1 / (jnp.sum(d * d, -1) + 0.1) ** 3
        v = v + 0.001 * jnp.sum((0.5 * inverse - inverse * inverse)[..., None] * d, 1)
        return x + 0.01 * v, v

    return square(loop(step, (x, v), steps)[0])


def particles(x, v, rho, steps):
    cells = rho.shape[0]

    def step(state):
        x, v = state
        at = jnp.floor(x)
        w, i = x - at, at.astype(jnp.int32) % cells
        rho = jnp.zeros(cells, x.dtype).at[i].add(1 - w).at[(i + 1) % cells].add(w)
        slope = jnp.roll(rho, 1) - jnp.roll(rho, -1)
        v = v + 0.01 * ((1 - w) * slope[i] + w * slope[(i + 1) % cells])
        return x + 0.1 * v, v

    return square(loop(step, (x, v), steps)[0])


def mpm(x, v, c, f, grid_v, grid_m, steps):
    dt, cells = 0.01, grid_m.shape[0]
    offsets = jnp.stack(jnp.meshgrid(jnp.arange(3), jnp.arange(3), indexing="ij"), -1).reshape(9, 2)
    j_of = jnp.arange(cells)[None, :]

    def step(state):
        x, v, c, f = state
        corner = (x - 0.5).astype(jnp.int32)
        d = x - corner.astype(x.dtype)
        w = jnp.stack([0.5 * (1.5 - d) ** 2, 0.75 - (d - 1) ** 2, 0.5 * (d - 0.5) ** 2], 1)
        weight = w[:, offsets[:, 0], 0] * w[:, offsets[:, 1], 1]
        to = offsets.astype(x.dtype) - d[:, None]
        cell = corner[:, None] + offsets
        i, j = cell[..., 0], cell[..., 1]
        f = (jnp.eye(2, dtype=x.dtype) + dt * c) @ f
        one = jnp.eye(2, dtype=x.dtype)
        volume = (f[:, 0, 0] * f[:, 1, 1] - f[:, 0, 1] * f[:, 1, 0])[:, None, None]
        affine = c - 4 * dt * (f @ jnp.swapaxes(f, 1, 2) - one + 1.5 * (volume - 1) * one)
        momentum = weight[..., None] * (v[:, None] + jnp.einsum("pij,pkj->pki", affine, to))
        grid_v = jnp.zeros((cells, cells, 2), x.dtype).at[i, j].add(momentum)
        grid_m = jnp.zeros((cells, cells), x.dtype).at[i, j].add(weight)
        full = grid_m > 0
        here = grid_v / jnp.where(full, grid_m, 1)[..., None] - jnp.array([0, 0.1 * dt], x.dtype)
        floor = (j_of < 3) & (here[..., 1] < 0)
        here = here.at[..., 1].set(jnp.where(floor, 0, here[..., 1]))
        grid_v = jnp.where(full[..., None], here, grid_v)
        seen = weight[..., None] * grid_v[i, j]
        v = jnp.sum(seen, 1)
        c = 4 * jnp.einsum("pki,pkj->pij", seen, to)
        return x + dt * v, v, c, f

    return square(loop(step, (x, v, c, f), steps)[0][:, 1])


def elements(x, v, corners, rest, stiffness, steps):
    i, j, k = corners[:, 0], corners[:, 1], corners[:, 2]

    def step(state):
        x, v = state
        f = jnp.stack([x[j] - x[i], x[k] - x[i]], -1) @ rest
        det = f[:, 0, 0] * f[:, 1, 1] - f[:, 0, 1] * f[:, 1, 0]
        cofactor = jnp.stack([f[:, 1, 1], -f[:, 1, 0], -f[:, 0, 1], f[:, 0, 0]], -1).reshape(-1, 2, 2)
        back = cofactor / det[:, None, None]
        s = stiffness[:, None, None]
        stress = s * (f - back) + s * jnp.log(jnp.abs(det))[:, None, None] * back
        pulls = stress @ jnp.swapaxes(rest, 1, 2)
        force = jnp.zeros_like(x).at[j].add(-pulls[..., 0]).at[k].add(-pulls[..., 1])
        force = force.at[i].add(pulls[..., 0] + pulls[..., 1])
        v = 0.99 * v + 0.01 * (force + jnp.array([0, -0.1], x.dtype))
        return x + 0.01 * v, v

    return square(loop(step, (x, v), steps)[0])


def cloth(x, v, w, edges, length, steps):
    dt, soft = 0.02, 0.1
    a, b = edges[:, 0], edges[:, 1]

    def relax(state):
        next, multiplier = state
        d = next[a] - next[b]
        norm = jnp.sqrt(jnp.sum(d * d, -1))
        gain = (length - norm - soft * multiplier) / (w[a] + w[b] + soft)
        along = d / norm[:, None]
        moved = jnp.zeros_like(next).at[a].add((w[a] * gain)[:, None] * along)
        moved = moved.at[b].add(-(w[b] * gain)[:, None] * along)
        return next + 0.3 * moved, multiplier + gain

    def step(state):
        x, v = state
        next = x + dt * (v + dt * w[:, None] * jnp.array([0, -1, 0.2], x.dtype))
        next, _ = loop(relax, (next, jnp.zeros_like(length)), 4)
        return next, (next - x) / dt

    return square(loop(step, (x, v), steps)[0])


# Grids.


def boltzmann(f, g, omega, steps):
    cx = jnp.array([0, 1, 0, -1, 0, 1, -1, -1, 1], f.dtype)[:, None, None]
    cy = jnp.array([0, 0, 1, 0, -1, 1, 1, -1, -1], f.dtype)[:, None, None]
    w = jnp.array([4 / 9] + [1 / 9] * 4 + [1 / 36] * 4, f.dtype)[:, None, None]
    moves = [(0, 0), (1, 0), (0, 1), (-1, 0), (0, -1), (1, 1), (-1, 1), (-1, -1), (1, -1)]

    def step(f):
        q = jnp.stack([jnp.roll(f[k], move, (0, 1)) for k, move in enumerate(moves)])
        rho = jnp.sum(q, 0)
        ux, uy = jnp.sum(cx * q, 0) / rho, jnp.sum(cy * q, 0) / rho
        c = cx * ux + cy * uy
        equal = w * rho * (1 + 3 * c + 4.5 * c * c - 1.5 * (ux * ux + uy * uy))
        return q + omega * (equal - q)

    return square(loop(step, f, steps))


def sides(a):
    return jnp.roll(a, 1, 0), jnp.roll(a, -1, 0), jnp.roll(a, 1, 1), jnp.roll(a, -1, 1)


def shallow_water(h, u, v, h2, u2, v2, dt, steps):
    def step(state):
        h, u, v = state
        (ha, hb, hc, hd), (ua, ub, uc, ud), (va, vb, vc, vd) = map(sides, state)
        flux = hb * ub - ha * ua + hd * vd - hc * vc
        return (
            0.25 * (ha + hb + hc + hd) - 0.5 * dt * flux,
            0.25 * (ua + ub + uc + ud) - 0.5 * dt * (u * (ub - ua) + v * (ud - uc) + 9.81 * (hb - ha)),
            0.25 * (va + vb + vc + vd) - 0.5 * dt * (u * (vb - va) + v * (vd - vc) + 9.81 * (hd - hc)),
        )

    return square(loop(step, (h, u, v), steps)[0] - 1)


def heat(u, next, kappa, steps):
    def step(state):
        u, next = state
        c, k = u[1:-1, 1:-1, 1:-1], kappa[1:-1, 1:-1, 1:-1]
        lap = (
            u[:-2, 1:-1, 1:-1] + u[2:, 1:-1, 1:-1] + u[1:-1, :-2, 1:-1] + u[1:-1, 2:, 1:-1]
            + u[1:-1, 1:-1, :-2] + u[1:-1, 1:-1, 2:] - 6 * c
        )
        return next.at[1:-1, 1:-1, 1:-1].set(c + 0.1 * k * (1 + c * c) * lap), u

    return square(loop(step, (u, next), steps)[0])


def gray_scott(u, v, feed, kill):
    def step(state):
        x, y = state
        du, dv = sum(sides(x)) - 4 * x, sum(sides(y)) - 4 * y
        rate = x * y * y
        return x + 0.16 * du - rate + feed * (1 - x), y + 0.08 * dv + rate - (feed + kill) * y

    return square(loop(step, (u[0], v[0]), u.shape[0] - 1)[1])


def lorenz96(x, seen, steps):
    def slope(x):
        return (jnp.roll(x, -1) - jnp.roll(x, 2)) * jnp.roll(x, 1) - x + 8

    def step(state, seen):
        x, loss = state
        k1 = slope(x)
        k2 = slope(x + 0.005 * k1)
        k3 = slope(x + 0.005 * k2)
        k4 = slope(x + 0.01 * k3)
        x = x + 0.01 / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        return (x, loss + square(x[::2] - seen)), None

    return lax.scan(step, (x, jnp.zeros((), x.dtype)), seen)[0][1]


def elastic(vx, vz, sxx, szz, sxz, sponge, source, **lame):
    n, m = vx.shape
    core = (slice(1, -1), slice(1, -1))
    lam, mu, damp = lame["lambda"][core], lame["mu"][core], sponge[core]
    stiff = lam + 2 * mu

    def step(state, pulse):
        (vx, vz, sxx, szz, sxz), loss = state
        ax = sxx[2:, 1:-1] - sxx[core] + sxz[core] - sxz[1:-1, :-2]
        az = sxz[core] - sxz[:-2, 1:-1] + szz[1:-1, 2:] - szz[core]
        vx = vx.at[core].set(damp * (vx[core] + 0.3 * ax))
        vz = vz.at[core].set(damp * (vz[core] + 0.3 * az))
        dx, dz = vx[core] - vx[:-2, 1:-1], vz[core] - vz[1:-1, :-2]
        shear = vx[1:-1, 2:] - vx[core] + vz[2:, 1:-1] - vz[core]
        sxx = sxx.at[core].set(damp * (sxx[core] + 0.3 * (stiff * dx + lam * dz)))
        szz = szz.at[core].set(damp * (szz[core] + 0.3 * (lam * dx + stiff * dz)))
        sxz = sxz.at[core].set(damp * (sxz[core] + 0.3 * mu * shear))
        sxx, szz = sxx.at[n // 2, m // 2].add(pulse), szz.at[n // 2, m // 2].add(pulse)
        return ((vx, vz, sxx, szz, sxz), loss + square(vz[n // 2 - 1, 1:-1])), None

    return lax.scan(step, ((vx, vz, sxx, szz, sxz), jnp.zeros((), vx.dtype)), source)[0][1]


def smoke(u, v, d, steps, iterations):
    n, m = u.shape
    i, j = jnp.arange(n, dtype=u.dtype)[:, None], jnp.arange(m, dtype=u.dtype)[None, :]

    def step(state):
        u, v, d = state
        x, y = i - 0.5 * u, j - 0.5 * v
        fx, fy = jnp.floor(x), jnp.floor(y)
        (s, t), (a, b) = (x - fx, y - fy), (fx.astype(jnp.int32) % n, fy.astype(jnp.int32) % m)
        a1, b1 = (a + 1) % n, (b + 1) % m

        def between(f):
            return (1 - s) * ((1 - t) * f[a, b] + t * f[a, b1]) + s * ((1 - t) * f[a1, b] + t * f[a1, b1])

        u, v, d = between(u), between(v), between(d)
        r = -(jnp.roll(u, -1, 0) - u + jnp.roll(v, -1, 1) - v)

        def conjugate(state):
            p, r, s, rr = state
            q = 4 * s - sum(sides(s))
            alpha = rr / (jnp.sum(s * q) + 1e-20)
            p, r = p + alpha * s, r - alpha * q
            next = square(r)
            return p, r, r + next / (rr + 1e-20) * s, next

        p = loop(conjugate, (jnp.zeros_like(r), r, r, square(r)), iterations)[0]
        return u - (p - jnp.roll(p, 1, 0)), v - (p - jnp.roll(p, 1, 1)), d

    return square(loop(step, (u, v, d), steps)[2])


# Linear algebra.


def sparse(x, next, first, column, value, steps):
    n = x.shape[0]
    row = jnp.repeat(jnp.arange(n), jnp.diff(first), total_repeat_length=value.shape[0])

    def step(x):
        terms = jax.ops.segment_sum(value * x[column], row, n, indices_are_sorted=True)
        return x + 0.1 * jnp.tanh(terms)

    return square(loop(step, x, steps))


def adi(u, r, steps):
    def thomas(u):
        """Systems along the first dimension."""

        def forward(state, u):
            c, d = state
            w = 1 / (1 + 2 * r + r * c)
            c, d = -r * w * jnp.ones_like(u), (u + r * d) * w
            return (c, d), (c, d)

        zero = jnp.zeros_like(u[0])
        _, (c, d) = lax.scan(forward, (zero, zero), u)

        def backward(x, cd):
            c, d = cd
            x = d - c * x
            return x, x

        return lax.scan(backward, zero, (c, d), reverse=True)[1]

    def step(u):
        u = thomas(thomas(u.T).T)
        return u + 0.01 * u * (1 - u)

    return square(loop(step, u, steps))


def gauss_seidel(u, f, sweeps):
    def sweep(u):
        def row(above, rows):
            old, below, f = rows

            def cell(left, around):
                up, down, right, f = around
                new = 0.25 * (up + down + left + right - f)
                return new, new

            inner = lax.scan(cell, old[0], (above[1:-1], below[1:-1], old[2:], f[1:-1]))[1]
            new = old.at[1:-1].set(inner)
            return new, new

        rows = lax.scan(row, u[0], (u[1:-1], u[2:], f[1:-1]))[1]
        return u.at[1:-1].set(rows)

    return square(loop(sweep, u, sweeps))


def lu(a):
    # The vendor's factors, with pivots: the determinant is the same.
    return jnp.linalg.slogdet(a)[1]


def split_step(re, im, energy, dt, steps):
    def step(z):
        z = z * jnp.exp(1j * dt * (z.real**2 + z.imag**2)).astype(z.dtype)
        return jnp.fft.ifft(jnp.fft.fft(z) * jnp.exp(-1j * dt * energy).astype(z.dtype))

    z = loop(step, re + 1j * im, steps)
    return square(z.real**2 + z.imag**2)


def read(problem):
    """The arguments by name: whole numbers as they are, all else as arrays."""
    data, arguments = (OUT / "corpus" / problem["file"]).read_bytes(), {}
    for name, dtype, shape, offset in problem["arguments"]:
        array = np.frombuffer(data, dtype, int(np.prod(shape)), offset).reshape(shape)
        whole = shape == [] and np.issubdtype(array.dtype, np.integer)
        arguments[name] = int(array) if whole else array
    arguments.pop("loss")
    return arguments


def median(run):
    clock = time.process_time if WISH.threads == 1 and jax.default_backend() == "cpu" else time.perf_counter
    jax.block_until_ready(run())
    times, begun = [], time.perf_counter()
    while len(times) < 5 or time.perf_counter() - begun < WISH.seconds:
        start = clock()
        jax.block_until_ready(run())
        times.append(clock() - start)
    return sorted(times)[len(times) // 2]


def measure(name, problem):
    arguments = read(problem)
    moving = {name: jnp.asarray(arguments.pop(name)) for name in problem["wrt"]}
    fixed = {name: jnp.asarray(a) for name, a in arguments.items() if not isinstance(a, int)}
    static = {name: a for name, a in arguments.items() if isinstance(a, int)}
    of = lambda moving, fixed: globals()[name](**moving, **fixed, **static)
    program, gradient = jax.jit(of), jax.jit(jax.value_and_grad(of))
    loss, slopes = gradient(moving, fixed)
    norm = np.sqrt(sum(np.sum(np.asarray(s, np.float64) ** 2) for s in slopes.values()))
    near = 1e-3 if problem["type"] == "f32" else 1e-9
    for what, theirs, ours in [("loss", float(loss), problem["loss"]), ("gradient", norm, problem["norm"])]:
        if not abs(theirs - ours) <= near * abs(ours):
            raise ValueError(f"{what} {theirs}, where ours is {ours}")
    return median(lambda: program(moving, fixed)), median(lambda: gradient(moving, fixed))


def main():
    found, problems = {}, json.loads((OUT / "corpus" / "index.json").read_text())
    for problem in problems:
        name, parts = problem["name"], problem["name"].lower().split()
        if all(wanted == part for wanted, part in zip(WISH.only.split("/"), parts) if wanted):
            try:
                found[name] = measure(parts[0], problem)
                print(f"{name}: {found[name][0] * 1e6:.0f} {found[name][1] * 1e6:.0f} µs", file=sys.stderr)
            except Exception as error:  # One program that JAX cannot run is no reason to lose the others.
                print(f"{name}: {str(error)[:300]}", file=sys.stderr)
            (OUT / "corpus-jax.json").write_text(json.dumps(found, indent=1))


main()
