"""A step and its adjoint, both written with NumPy: reversed with ten states for ten thousand steps.

    python examples/python/lorenz_reverse.py
"""

import ebbtide as eb
import numpy as np

DT = 0.001


def flow(x):
    return np.array([10.0 * (x[1] - x[0]), x[0] * (28.0 - x[2]) - x[1], x[0] * x[1] - 8.0 / 3.0 * x[2]])


def step(k, x):
    return x + DT * flow(x)


def adjoint(k, x, bar):
    a, b, c = bar
    turned = np.array([-10.0 * a + (28.0 - x[2]) * b + x[1] * c, 10.0 * a - b + x[0] * c, -x[0] * b - 8.0 / 3.0 * c])
    return bar + DT * turned


def main() -> float:
    start, steps = np.array([1.0, 1.0, 20.0]), 10_000
    found = eb.reverse(step, adjoint, start, steps, turn=lambda x: np.array([0.0, 0.0, 1.0]), slots=10)
    print(f"the end {found.state}, its height by the start {found.adjoint}")
    print(f"{found.advanced + found.recorded} steps were run for {steps}, with 10 states kept")
    everything = eb.reverse(step, adjoint, start, steps, turn=lambda x: np.array([0.0, 0.0, 1.0]))
    return float(np.abs(found.adjoint - everything.adjoint).max())


if __name__ == "__main__":
    assert main() == 0.0
