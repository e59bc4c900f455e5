"""equinox: its checkpointed while loop with 32 checkpoints."""

import equinox.internal as eqxi
import jax
import jax.numpy as jnp

from common import main
from jax_workloads import PROGRAMS, gradient


def checkpointed(step, carry, xs, steps):
    def body(state):
        t, carry, ys = state
        x = None if xs is None else xs[t]
        carry, y = step(carry, x)
        return t + 1, carry, None if y is None else ys.at[t].set(y)

    y = jax.eval_shape(lambda: step(carry, None if xs is None else xs[0])[1])
    ys = None if y is None else jnp.zeros((steps, *y.shape), y.dtype)
    state = (0, carry, ys)
    buffers = (lambda state: state[2]) if ys is not None else None
    _, carry, ys = eqxi.while_loop(
        lambda state: state[0] < steps, body, state, max_steps=steps, kind="checkpointed", checkpoints=32, buffers=buffers
    )
    return carry, ys


CASES = {(workload, "gradient", "checkpoint"): gradient(workload, checkpointed) for workload in PROGRAMS}

if __name__ == "__main__":
    import jax_workloads

    main(jax_workloads.__file__, CASES)
