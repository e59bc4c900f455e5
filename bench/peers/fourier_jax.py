"""Times jnp.fft.fft, which is cuFFT on a GPU: the peer of `fourier -- cuda` of the bench.

    python bench/peers/fourier_jax.py

Microseconds of one call, and of one transform of a loop inside a jitted function; the best of many.
"""

import time

import jax
import jax.numpy as jnp

jax.config.update("jax_enable_x64", True)


def best(run, at_least=1.0):
    """The least seconds of many calls."""
    least, begun, rounds = float("inf"), time.perf_counter(), 0
    while rounds < 5 or time.perf_counter() - begun < at_least:
        start = time.perf_counter()
        run()
        least = min(least, time.perf_counter() - start)
        rounds += 1
    return least


@jax.jit
def transforms(z, times):
    return jax.lax.fori_loop(0, times, lambda _, z: jnp.fft.fft(z), z)


def main():
    print(jax.devices()[0].device_kind)
    inside = 20
    for shape in [(1 << 10,), (1 << 16,), (1 << 20,), (64, 1 << 12)]:
        for name, dtype in [("f64", jnp.complex128), ("f32", jnp.complex64)]:
            # Zeros stay zeros however often they are transformed.
            z = jax.device_put(jnp.zeros(shape, dtype))

            def run(times):
                transforms(z, times).block_until_ready()

            run(1)
            one, some, twice = (best(lambda: run(times)) for times in (1, inside, 2 * inside))
            each = (twice - some) / inside
            print(f"{name} {list(shape)}: a call {one * 1e6:9.1f} us, in a loop {each * 1e6:9.1f} us")


if __name__ == "__main__":
    main()
