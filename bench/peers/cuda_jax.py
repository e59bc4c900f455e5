"""The workloads of `bench/src/bin/cuda.rs` in JAX, on the GPU: microseconds per step, best of several runs."""

import time

import jax
import jax.numpy as jnp


def best(run, *args):
    jax.block_until_ready(run(*args))
    times = []
    for _ in range(5):
        start = time.perf_counter()
        jax.block_until_ready(run(*args))
        times.append(time.perf_counter() - start)
    return min(times)


def loop(step, state, steps, checkpoint):
    """`steps` steps; with `checkpoint` as a loop of loops whose inner ones are run again on the way back."""
    body = lambda s, _: (step(s), None)
    if not checkpoint:
        return jax.lax.scan(body, state, None, length=steps)[0]
    inner = round(steps**0.5)
    block = jax.checkpoint(lambda s, _: (jax.lax.scan(body, s, None, length=inner)[0], None))
    return jax.lax.scan(block, state, None, length=steps // inner)[0]


def report(name, run, steps, *args):
    print(f"  {name:<46} {best(run, *args) / steps * 1e6:8.3f} us", flush=True)


def pointwise():
    p, s = jnp.ones(100, jnp.float32), jnp.linspace(0.1, 1.0, 100, dtype=jnp.float32)
    steps = 1024
    end = lambda s, checkpoint: loop(lambda s: s + 0.1 * jnp.tanh(s) * p, s, steps, checkpoint)
    report("pointwise 100 primal", jax.jit(lambda s: end(s, False)), steps, s)
    for name, checkpoint in [("plain", False), ("checkpoint", True)]:
        gradient = jax.jit(jax.grad(lambda s: jnp.sum(end(s, checkpoint) ** 2)))
        report(f"pointwise 100 gradient, {name}", gradient, steps, s)


def wave(n):
    c = jnp.full((n, n), 0.1, jnp.float32)
    u = jnp.zeros((n, n), jnp.float32).at[n // 2, n // 2].set(1.0)
    steps = 1024

    def end(c, checkpoint):
        def step(state):
            u, prev = state
            lap = u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:] - 4.0 * u[1:-1, 1:-1]
            inner = 2.0 * u[1:-1, 1:-1] - prev[1:-1, 1:-1] + c[1:-1, 1:-1] * lap
            return prev.at[1:-1, 1:-1].set(inner), u

        return loop(step, (u, jnp.zeros_like(u)), steps, checkpoint)[0]

    report(f"wave {n} primal", jax.jit(lambda c: end(c, False)), steps, c)
    gradient = jax.jit(jax.grad(lambda c: jnp.sum(end(c, True) ** 2)))
    report(f"wave {n} gradient, checkpoint", gradient, steps, c)


print("JAX", jax.__version__, jax.devices()[0].device_kind)
pointwise()
wave(512)
wave(2048)
