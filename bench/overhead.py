"""What a call from Python costs: of a program of one statement, of a small loop, and of an action of a reversal.

    python bench/overhead.py

Speed is measured, never tested: the best of several rounds is the figure, the median says how busy the machine was.
"""

import time

import numpy as np

import ebbtide as eb
from ebbtide import par


@eb.program
def one(x):
    x[()] = x[()] + 1.0


@eb.program
def saxpy(x, y, a: float):
    for i in par(len(x)):
        y[i] = y[i] + a * x[i]


def microseconds(work, count=20_000, rounds=15):
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        for _ in range(count):
            work()
        times.append((time.perf_counter() - start) / count * 1e6)
    return f"{min(times):.2f} µs (median {sorted(times)[rounds // 2]:.2f})"


def per_action(steps=20_000, slots=10):
    """The time of a reversal beyond the calls of its functions, for each action of its schedule."""
    schedule, actions = eb.schedules.revolve(steps, slots), 0
    while schedule._next() is not None:
        actions += 1
    step, adjoint = (lambda k, x: x), (lambda k, x, bar: bar)
    whole, calls = [], []
    for _ in range(5):
        start = time.perf_counter()
        found = eb.reverse(step, adjoint, 1.0, steps, turn=lambda x: 1.0, slots=slots)
        whole.append(time.perf_counter() - start)
        start = time.perf_counter()
        for k in range(found.advanced + found.recorded):
            step(k, 1.0)
        for k in range(steps):
            adjoint(k, 1.0, 1.0)
        calls.append(time.perf_counter() - start)
    return f"{(min(whole) - min(calls)) / actions * 1e6:.2f} µs, {actions} actions"


if __name__ == "__main__":
    x, u, v = np.zeros(()), np.ones(8), np.ones(8)
    one(x)
    saxpy(u, v, 0.5)
    print("a program of one statement  ", microseconds(lambda: one(x)))
    print("a loop over 8 elements      ", microseconds(lambda: saxpy(u, v, 0.5)))
    print("np.add of 8 elements        ", microseconds(lambda: np.add(u, v, out=v)))
    print("an action of a reversal     ", per_action())
