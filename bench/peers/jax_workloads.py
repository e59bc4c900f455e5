"""The workloads in JAX. The loop is given: a scan, nested scans with checkpoints, or a peer's own."""

import jax

jax.config.update("jax_enable_x64", True)

import jax.numpy as jnp
import numpy as np
from jax import lax

from common import divisor_near_root, norm, numbers


# lines: all
def scan(step, carry, xs, steps):
    return lax.scan(step, carry, xs, length=steps)
# end


def nested_scan(step, carry, xs, steps):
    """Blocks of √n steps, of which only the first state is kept."""
    block = divisor_near_root(steps)
    blocks = steps // block
    cut = jax.tree.map(lambda x: x.reshape(blocks, block, *x.shape[1:]), xs)

    @jax.checkpoint
    def one_block(carry, xs):
        return lax.scan(step, carry, xs, length=block)

    carry, ys = lax.scan(one_block, carry, cut, length=blocks)
    return carry, jax.tree.map(lambda y: y.reshape(steps, *y.shape[2:]), ys)


# lines: pointwise
def pointwise(loop, steps, s, p):
    def step(s, _):
        return s + 0.1 * jnp.tanh(s) * p, None

    return loop(step, s, None, steps)[0]
# end


# lines: burgers
def burgers(loop, steps, u):
    def step(u, _):
        l, r = jnp.roll(u, 1), jnp.roll(u, -1)
        return u + 0.01 * (0.1 * (l - 2 * u + r) - 0.5 * u * (r - l)), None

    return loop(step, u, None, steps)[0]
# end


# lines: wave
def wave(loop, steps, c, source):
    def step(carry, pulse):
        u, prev = carry
        x = u[1:-1, 1:-1]
        lap = u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:] - 4 * x
        next = prev.at[1:-1, 1:-1].set(2 * x - prev[1:-1, 1:-1] + c[1:-1, 1:-1] * lap)
        next = next.at[8, u.shape[1] // 2].add(pulse)
        return (next, u), next[2]

    zero = jnp.zeros_like(c)
    (u, _), seen = loop(step, (zero, zero), source, steps)
    return u, seen
# end


# lines: rnn
def rnn(loop, steps, h, w, x):
    def step(h, _):
        return jnp.tanh(x + h @ w), None

    return loop(step, h, None, steps)[0]
# end


# lines: seedloop
def seedloop(loop, steps, s, p):
    def step(s, _):
        a = jnp.tanh(s)
        b = a * p
        c = b + 0.5 * s
        d = jnp.sin(c)
        e = d * b
        return s + 0.1 * e, None

    return loop(step, s, None, steps)[0]
# end


# lines: all
def square(x):
    return jnp.sum(x * x)
# end


def arguments(workload, cells, steps):
    if workload == "burgers":
        return (numbers(cells),)
    if workload == "wave":
        return (numbers(cells * cells, np.float32, 0.1).reshape(cells, cells), numbers(steps, np.float32))
    if workload == "rnn":
        return numbers(cells), numbers(cells * cells).reshape(cells, cells), numbers(cells)
    return numbers(cells), numbers(cells)


PROGRAMS = {"pointwise": pointwise, "burgers": burgers, "wave": wave, "rnn": rnn, "seedloop": seedloop}
WRT = {"pointwise": (0, 1), "burgers": (0,), "wave": (0,), "rnn": (1, 2), "seedloop": (0, 1)}


def primal_of(workload, loop, steps):
    def program(*args):
        end = PROGRAMS[workload](loop, steps, *args)
        return end[0] if workload == "wave" else end

    return program


def loss_of(workload, loop, steps):
    def program(*args):
        end = PROGRAMS[workload](loop, steps, *args)
        return square(end[1] if workload == "wave" else end)

    return program


class Compiled:
    """A jitted function and its arguments; compiled ahead of time."""

    def __init__(self, function, args):
        self.function, self.args = jax.jit(function), [jnp.asarray(a) for a in args]
        self.compiled = self.found = None

    def compile(self):
        self.compiled = self.function.lower(*self.args).compile()

    def __call__(self):
        if self.compiled is None:
            self.compile()
        self.found = jax.block_until_ready(self.compiled(*self.args))


def primal(workload, loop, wrap=lambda f: f):
    def make(cells, steps):
        run = Compiled(wrap(primal_of(workload, loop, steps)), arguments(workload, cells, steps))
        return run, lambda: (None, norm(run.found))

    return make


def gradient(workload, loop, wrap=lambda f: f):
    def make(cells, steps):
        function = jax.value_and_grad(wrap(loss_of(workload, loop, steps)), argnums=WRT[workload])
        run = Compiled(function, arguments(workload, cells, steps))
        return run, lambda: (float(run.found[0]), norm(*run.found[1]))

    return make
