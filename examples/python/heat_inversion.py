"""Where was the heat? The initial temperature of a plate, found from its temperature at the end with SciPy's L-BFGS.

    python examples/python/heat_inversion.py [--plot]
"""

import sys

import ebbtide as eb
import numpy as np
from ebbtide import copy, par, swap
from scipy.optimize import minimize


@eb.func
def laplacian(u, i, j):
    return u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1] - 4.0 * u[i, j]


@eb.program
def heat(u, next, steps: int):
    n, m = u.shape
    copy(u, next)
    for t in range(steps):
        for i, j in par(range(1, n - 1), range(1, m - 1)):
            next[i, j] = u[i, j] + 0.2 * laplacian(u, i, j)
        swap(u, next)


@eb.program
def misfit(u, next, steps: int, seen, weight: float, loss):
    n, m = u.shape
    for i, j in par(n, m):
        loss[()] += weight * u[i, j] * u[i, j]          # the smallest plate that explains what was seen
    heat(u, next, steps)
    for i, j in par(n, m):
        d = u[i, j] - seen[i, j]
        loss[()] += 0.5 * d * d


def main() -> float:
    n, steps = 24, 12
    truth = np.zeros((n, n))
    truth[6:10, 5:9] = 1.0
    truth[14:19, 15:18] = 0.7
    seen, next = truth.copy(), np.zeros((n, n))
    heat(seen, next, steps)

    g = misfit.grad("loss", wrt="u", memory="1MiB")
    zeros = np.zeros((n, n))
    bound = g.bind("u", u=zeros, next=next, steps=steps, seen=seen, weight=1e-5, loss=np.zeros(()))
    print(g.plan(zeros, next, steps, seen, 1e-5, np.zeros(())))
    found = minimize(bound.fun, zeros.ravel(), jac=True, method="L-BFGS-B", options={"maxiter": 60})
    u = found.x.reshape(n, n)
    start, error = np.sqrt((truth**2).mean()), np.sqrt(((u - truth) ** 2).mean())
    print(f"misfit {bound.fun(zeros.ravel())[0]:.4f} -> {found.fun:.2e}; error {start:.3f} -> {error:.3f}")

    if "--plot" in sys.argv:
        import matplotlib.pyplot as plt

        for k, (field, title) in enumerate([(truth, "truth"), (seen, "seen"), (u, "found")]):
            plt.subplot(1, 3, k + 1)
            plt.imshow(field, vmin=0.0, vmax=1.0)
            plt.title(title)
        plt.savefig("heat_inversion.png")
    return error / start


if __name__ == "__main__":
    assert main() < 0.7
