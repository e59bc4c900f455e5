"""Warp on the CPU: kernels on a `wp.Tape`, one array per step, since writing in place would lose the gradient."""

import numpy as np
import warp as wp

from common import main, norm, numbers

wp.config.quiet = True
wp.init()
DEVICE = "cpu"


# lines: pointwise
@wp.kernel
def pointwise(s: wp.array(dtype=wp.float64), p: wp.array(dtype=wp.float64), next: wp.array(dtype=wp.float64)):
    i = wp.tid()
    next[i] = s[i] + wp.float64(0.1) * wp.tanh(s[i]) * p[i]
# end


# lines: burgers
@wp.kernel
def burgers(u: wp.array(dtype=wp.float64), next: wp.array(dtype=wp.float64)):
    i = wp.tid()
    n = u.shape[0]
    l = u[(i + n - 1) % n]
    c = u[i]
    r = u[(i + 1) % n]
    two, half = wp.float64(2.0), wp.float64(0.5)
    next[i] = c + wp.float64(0.01) * (wp.float64(0.1) * (l - two * c + r) - half * c * (r - l))
# end


# lines: wave
@wp.kernel
def wave(
    u: wp.array2d(dtype=wp.float32),
    prev: wp.array2d(dtype=wp.float32),
    c: wp.array2d(dtype=wp.float32),
    source: wp.array(dtype=wp.float32),
    t: int,
    next: wp.array2d(dtype=wp.float32),
):
    i, j = wp.tid()
    if i > 0 and j > 0 and i < u.shape[0] - 1 and j < u.shape[1] - 1:
        x = u[i, j]
        lap = u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1] - 4.0 * x
        value = 2.0 * x - prev[i, j] + c[i, j] * lap
        if i == 8 and j == u.shape[1] // 2:
            value += source[t]
        next[i, j] = value


@wp.kernel
def wave_loss(u: wp.array2d(dtype=wp.float32), loss: wp.array(dtype=wp.float32)):
    j = wp.tid()
    wp.atomic_add(loss, 0, u[2, j] * u[2, j])
# end


# lines: all
@wp.kernel
def square(u: wp.array(dtype=wp.float64), loss: wp.array(dtype=wp.float64)):
    i = wp.tid()
    wp.atomic_add(loss, 0, u[i] * u[i])
# end


def on_device(a, grad=True):
    return wp.array(a, dtype=wp.dtype_from_numpy(a.dtype), device=DEVICE, requires_grad=grad)


def line_gradient(workload, kernel, with_parameter):
    def make(cells, steps):
        s = on_device(numbers(cells))
        p = on_device(numbers(cells))
        found = []

        def run():
            loss = wp.zeros(1, dtype=wp.float64, device=DEVICE, requires_grad=True)
            tape = wp.Tape()
            with tape:
                state = s
                for _ in range(steps):
                    next = wp.empty_like(state)
                    inputs = [state, p] if with_parameter else [state]
                    wp.launch(kernel, cells, inputs=inputs, outputs=[next], device=DEVICE)
                    state = next
                wp.launch(square, cells, inputs=[state], outputs=[loss], device=DEVICE)
            tape.backward(loss)
            wrt = [s, p] if with_parameter else [s]
            found[:] = [float(loss.numpy()[0]), norm(*(a.grad.numpy() for a in wrt))]
            tape.zero()

        return run, lambda: tuple(found)

    return make


def wave_gradient(cells, steps):
    c = on_device(numbers(cells * cells, np.float32, 0.1).reshape(cells, cells))
    source = on_device(numbers(steps, np.float32), grad=False)
    found = []

    def run():
        loss = wp.zeros(1, dtype=wp.float32, device=DEVICE, requires_grad=True)
        tape = wp.Tape()
        with tape:
            u, prev = wp.zeros_like(c), wp.zeros_like(c)
            for t in range(steps):
                next = wp.zeros_like(c)
                wp.launch(wave, (cells, cells), inputs=[u, prev, c, source, t], outputs=[next], device=DEVICE)
                wp.launch(wave_loss, cells, inputs=[next], outputs=[loss], device=DEVICE)
                u, prev = next, u
        tape.backward(loss)
        found[:] = [float(loss.numpy()[0]), norm(c.grad.numpy())]
        tape.zero()

    return run, lambda: tuple(found)


CASES = {
    ("pointwise", "gradient", "plain"): line_gradient("pointwise", pointwise, True),
    ("burgers", "gradient", "plain"): line_gradient("burgers", burgers, False),
    ("wave", "gradient", "plain"): wave_gradient,
}

if __name__ == "__main__":
    main(__file__, CASES)
