"""The first program and its gradient: the page `docs/src/python.md` explains it."""

import numpy as np
import ebbtide as eb
from ebbtide import par, swap


@eb.program
def burgers(u, next, nu: float, dt: float, steps: int):
    """Viscous Burgers on a periodic line, `steps` explicit steps, in place."""
    n = len(u)
    for t in range(steps):
        for i in par(n):
            l = u[(i - 1) % n]
            r = u[(i + 1) % n]
            next[i] = u[i] + dt * (nu * (l - 2.0 * u[i] + r) - 0.5 * u[i] * (r - l))
        swap(u, next)


@eb.program
def objective(u, next, nu: float, dt: float, steps: int, target, loss):
    burgers(u, next, nu, dt, steps)             # programs call programs
    for i in par(len(u)):
        d = u[i] - target[i]
        loss[()] += 0.5 * d * d                 # a reduction: recognised, ordered, never racy


u, next, target, loss = np.array([0.0, 1.0, 0.5, 0.0]), np.zeros(4), np.array([0.2, 0.4, 0.4, 0.3]), np.zeros(())

g = objective.grad("loss", wrt=["u", "nu"], memory="64KiB")
print(g.plan(u, next, 0.1, 0.01, 1000, target, loss))
value, (du, dnu) = g(u, next, 0.1, 0.01, 1000, target, loss)
print(value, du, dnu)
