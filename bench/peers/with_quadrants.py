"""Quadrants on the CPU: kernels on a `qd.ad.Tape`, time as the first index of a field; yields of graph kernels.

    python with_quadrants.py costs
"""

import json
import sys
import time
from enum import IntEnum

import numpy as np
import quadrants as qd

from common import main, norm, numbers

qd.init(arch=qd.cpu, cpu_max_num_threads=1, log_level=qd.ERROR, default_fp=qd.f64)


def tracked(kind, shape):
    return qd.field(kind, shape=shape, needs_grad=True)


# lines: pointwise
def pointwise(cells, steps, s, p):
    @qd.kernel
    def step(t: qd.i32):
        for i in range(cells):
            s[t + 1, i] = s[t, i] + 0.1 * qd.tanh(s[t, i]) * p[i]

    return step
# end


# lines: burgers
@qd.kernel
def burgers(u: qd.types.ndarray(qd.f64, ndim=1), next: qd.types.ndarray(qd.f64, ndim=1)):
    for i in range(u.shape[0]):
        l = u[(i + u.shape[0] - 1) % u.shape[0]]
        c = u[i]
        r = u[(i + 1) % u.shape[0]]
        next[i] = c + 0.01 * (0.1 * (l - 2.0 * c + r) - 0.5 * c * (r - l))


@qd.kernel
def burgers_loss(u: qd.types.ndarray(qd.f64, ndim=1), loss: qd.types.ndarray(qd.f64, ndim=0)):
    for i in range(u.shape[0]):
        loss[()] += u[i] * u[i]
# end


# lines: wave
def wave(cells, steps, u, c, source):
    @qd.kernel
    def step(t: qd.i32):
        for i, j in qd.ndrange((1, cells - 1), (1, cells - 1)):
            x = u[t + 1, i, j]
            lap = u[t + 1, i - 1, j] + u[t + 1, i + 1, j] + u[t + 1, i, j - 1] + u[t + 1, i, j + 1] - 4.0 * x
            value = 2.0 * x - u[t, i, j] + c[i, j] * lap
            if i == 8 and j == cells // 2:
                value += source[t]
            u[t + 2, i, j] = value

    return step


def wave_loss(cells, steps, u, loss):
    @qd.kernel
    def add():
        for t, j in qd.ndrange(steps, cells):
            loss[None] += u[t + 2, 2, j] * u[t + 2, 2, j]

    return add
# end


# lines: pointwise
def square(cells, steps, u, loss):
    @qd.kernel
    def add():
        for i in range(cells):
            loss[None] += u[steps, i] * u[steps, i]

    return add
# end


def taped(step, add, loss, steps, wrt):
    found = []

    def run():
        loss[None] = 0
        with qd.ad.Tape(loss=loss):
            for t in range(steps):
                step(t)
            add()
        found[:] = [float(loss[None]), norm(*(part() for part in wrt))]

    run.allocates_ahead = True
    return run, lambda: tuple(found)


def pointwise_gradient(cells, steps):
    s, p, loss = tracked(qd.f64, (steps + 1, cells)), tracked(qd.f64, cells), tracked(qd.f64, ())
    start = np.zeros((steps + 1, cells))
    start[0] = numbers(cells)
    s.from_numpy(start)
    p.from_numpy(numbers(cells))
    wrt = [lambda: s.grad.to_numpy()[0], lambda: p.grad.to_numpy()]
    return taped(pointwise(cells, steps, s, p), square(cells, steps, s, loss), loss, steps, wrt)


def burgers_gradient(cells, steps):
    """Reading one time of a field and writing another is refused, so each step has an array of its own."""
    states = [qd.ndarray(qd.f64, shape=cells, needs_grad=True) for _ in range(steps + 1)]
    loss = qd.ndarray(qd.f64, shape=(), needs_grad=True)
    states[0].from_numpy(numbers(cells))
    found = []

    def run():
        loss.fill(0)
        with qd.ad.Tape(loss=loss):
            for t in range(steps):
                burgers(states[t], states[t + 1])
            burgers_loss(states[steps], loss)
        found[:] = [float(loss.to_numpy()), norm(states[0].grad.to_numpy())]
        for state in states:
            state.grad.fill(0)

    run.allocates_ahead = True
    return run, lambda: tuple(found)


def wave_gradient(cells, steps):
    u, c = tracked(qd.f32, (steps + 2, cells, cells)), tracked(qd.f32, (cells, cells))
    source, loss = qd.field(qd.f32, shape=steps), tracked(qd.f32, ())
    c.from_numpy(numbers(cells * cells, np.float32, 0.1).reshape(cells, cells))
    source.from_numpy(numbers(steps, np.float32))
    step, add = wave(cells, steps, u, c, source), wave_loss(cells, steps, u, loss)
    return taped(step, add, loss, steps, [lambda: c.grad.to_numpy()])


CASES = {
    ("pointwise", "gradient", "plain"): pointwise_gradient,
    ("burgers", "gradient", "plain"): burgers_gradient,
    ("wave", "gradient", "plain"): wave_gradient,
}


class Stage(IntEnum):
    COUNT = 0


def costs():
    """Microseconds of a launch, a pass of a gated loop with two small parallel tasks, and a yield."""
    vector, scalar = qd.types.ndarray(qd.f64, ndim=1), qd.types.ndarray(qd.i32, ndim=0)

    @qd.kernel(graph=True, checkpoints=True)
    def counting(count: scalar, flag: scalar):
        with qd.checkpoint(Stage.COUNT, yield_on=flag):
            for _ in range(1):
                count[()] += 1

    @qd.kernel(graph=True, checkpoints=True)
    def passes(x: vector, y: vector, left: scalar, flag: scalar):
        while qd.graph.do_while(left):
            with qd.checkpoint(Stage.COUNT, yield_on=flag):
                for i in range(x.shape[0]):
                    x[i] = y[i]
                for i in range(y.shape[0]):
                    y[i] = x[i] + 1.0
            for _ in range(1):
                left[()] -= 1

    count, flag, left = (qd.ndarray(qd.i32, shape=()) for _ in range(3))
    x, y = (qd.ndarray(qd.f64, shape=4) for _ in range(2))
    for a in (count, flag, left, x, y):
        a.fill(0)

    def launch():
        counting(count, flag)

    def yield_round():
        flag[()] = 1
        status = counting(count, flag)
        while status.yielded:
            flag[()] = 0
            status = counting.resume(count, flag, from_checkpoint=status.checkpoint)

    def many_passes():
        left[()] = 1000
        passes(x, y, left, flag)
        qd.sync()

    def microseconds(run, repeats):
        run()
        least = 1e9
        for _ in range(10):
            start = time.perf_counter()
            for _ in range(repeats):
                run()
            qd.sync()
            least = min(least, (time.perf_counter() - start) * 1e6 / repeats)
        return least

    print(
        json.dumps(
            {
                "launch": microseconds(launch, 200),
                "gated_pass": microseconds(many_passes, 1) / 1000,
                "yield_round": microseconds(yield_round, 200),
            }
        )
    )


if __name__ == "__main__":
    costs() if sys.argv[1] == "costs" else main(__file__, CASES)
