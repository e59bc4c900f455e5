"""Full-waveform inversion in miniature: the speed of sound in the ground, from what receivers at the surface hear.

    python examples/python/waveform.py [--plot]
"""

import sys

import ebbtide as eb
import numpy as np
from ebbtide import par, swap
from scipy.optimize import minimize


@eb.program
def shot(speed, source, heard, seen, loss):
    """One shot: a wave from the surface, heard by a line of receivers; the misfit to what was seen."""
    n, m = speed.shape
    steps, receivers = seen.shape
    past = np.zeros((n, m), dtype=np.float32)
    now = np.zeros((n, m), dtype=np.float32)
    next = np.zeros((n, m), dtype=np.float32)
    for t in range(steps):
        for i, j in par(range(1, n - 1), range(1, m - 1)):
            spread = now[i - 1, j] + now[i + 1, j] + now[i, j - 1] + now[i, j + 1] - 4.0 * now[i, j]
            next[i, j] = 0.998 * (2.0 * now[i, j] - past[i, j]) + speed[i, j] * speed[i, j] * spread
        next[2, m // 2] += source[t]
        for r in par(receivers):
            heard[t, r] = next[2, 2 + 3 * r]
        swap(past, now)
        swap(now, next)
    for t, r in par(steps, receivers):
        d = heard[t, r] - seen[t, r]
        loss[()] += 0.5 * d * d


def main() -> float:
    n, m, steps, receivers = 32, 48, 160, 15
    time = np.arange(steps, dtype=np.float32)
    pulse = (1.0 - 0.02 * (time - 25.0) ** 2) * np.exp(-0.01 * (time - 25.0) ** 2)
    source = pulse.astype(np.float32)
    background = np.full((n, m), 0.4, np.float32)
    truth = background.copy()
    truth[12:20, 18:30] = 0.46
    heard, seen = np.zeros((steps, receivers), np.float32), np.zeros((steps, receivers), np.float32)
    shot(truth, source, heard, seen, np.zeros((), np.float32))
    seen = heard.copy()

    g = shot.grad("loss", wrt="speed", memory="4MiB")
    silent = np.zeros_like(heard)
    print(g.plan(background, source, silent, seen, np.zeros((), np.float32)))
    bound = g.bind("speed", speed=background, source=source, heard=silent, seen=seen, loss=np.zeros((), np.float32))
    first, _ = bound.fun(background.ravel())
    bounds = [(0.35, 0.55)] * background.size
    found = minimize(bound.fun, background.ravel().astype(float), jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": 15})
    print(f"misfit {first:.3f} -> {found.fun:.4f} in {found.nfev} gradients")
    if "--plot" in sys.argv:
        import matplotlib.pyplot as plt

        for k, (field, title) in enumerate([(truth, "truth"), (found.x.reshape(n, m), "found")]):
            plt.subplot(1, 2, k + 1)
            plt.imshow(field, vmin=0.38, vmax=0.48)
            plt.title(title)
        plt.savefig("waveform.png")
    return float(found.fun / first)


if __name__ == "__main__":
    assert main() < 0.2
