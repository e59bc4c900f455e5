"""Swinging a pendulum up: the torque of every step, found by gradient descent through the simulation.

    python examples/python/control.py [--plot]
"""

import math
import sys

import ebbtide as eb
import numpy as np


@eb.program
def swing(state, torque, dt: float, cost):
    steps = len(torque)
    for t in range(steps):
        # The angle is measured from below: pi is up.
        acceleration = -9.81 * math.sin(state[0]) - 0.1 * state[1] + torque[t]
        state[1] = state[1] + dt * acceleration
        state[0] = state[0] + dt * state[1]
        cost[()] += 1e-4 * torque[t] * torque[t]
    miss = state[0] - math.pi
    cost[()] += 10.0 * miss * miss + state[1] * state[1]


def main() -> float:
    steps, dt = 300, 0.01
    g = swing.grad("cost", wrt="torque", memory="64KiB")
    torque = 0.1 * np.sin(np.arange(steps) * dt * 3.0)
    first = moment = square = 0.0
    for k in range(400):
        cost, slope = g(np.zeros(2), torque, dt, np.zeros(()))
        first = first or cost
        # Adam.
        moment = 0.9 * moment + 0.1 * slope
        square = 0.999 * square + 0.001 * slope**2
        torque -= 0.3 * (moment / (1 - 0.9 ** (k + 1))) / (np.sqrt(square / (1 - 0.999 ** (k + 1))) + 1e-8)
    state = np.zeros(2)
    swing(state, torque, dt, np.zeros(()))
    print(f"cost {first:.2f} -> {cost:.3f}; the pendulum ends at {math.degrees(state[0]):.1f} degrees")
    if "--plot" in sys.argv:
        import matplotlib.pyplot as plt

        plt.plot(np.arange(steps) * dt, torque)
        plt.xlabel("time")
        plt.ylabel("torque")
        plt.savefig("control.png")
    return cost / first


if __name__ == "__main__":
    assert main() < 0.2
