"""PyTorch: eager autograd, plain and with `torch.utils.checkpoint` every √n steps."""

import numpy as np
import torch
from torch.utils.checkpoint import checkpoint

from common import divisor_near_root, main, norm, numbers

torch.set_num_threads(1)


# lines: pointwise
def pointwise(state, s_p, _):
    _, p = s_p
    return state + 0.1 * torch.tanh(state) * p
# end


# lines: burgers
def burgers(u, _, __):
    l, r = torch.roll(u, 1), torch.roll(u, -1)
    return u + 0.01 * (0.1 * (l - 2 * u + r) - 0.5 * u * (r - l))
# end


# lines: wave
def wave(state, c_source, t):
    u, prev, *seen = state
    c, source = c_source
    x = u[1:-1, 1:-1]
    lap = u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:] - 4 * x
    inner = 2 * x - prev[1:-1, 1:-1] + c[1:-1, 1:-1] * lap
    inner[7, u.shape[1] // 2 - 1] += source[t]
    next = torch.nn.functional.pad(inner, (1, 1, 1, 1))
    return next, u, *seen, next[2].clone()
# end


# lines: rnn
def rnn(state, h_w_x, _):
    _, w, x = h_w_x
    return torch.tanh(x + state @ w)
# end


# lines: seedloop
def seedloop(state, s_p, _):
    _, p = s_p
    a = torch.tanh(state)
    b = a * p
    c = b + 0.5 * state
    d = torch.sin(c)
    e = d * b
    return state + 0.1 * e
# end


# lines: all
def loop(step, state, args, first, last):
    for t in range(first, last):
        state = step(state, args, t)
    return state
# end


def checkpointed_loop(step, state, args, first, last):
    block = divisor_near_root(last)
    for t in range(first, last, block):
        state = checkpoint(loop, step, state, args, t, t + block, use_reentrant=False)
    return state


STEPS = {"pointwise": pointwise, "burgers": burgers, "wave": wave, "rnn": rnn, "seedloop": seedloop}
WRT = {"pointwise": (0, 1), "burgers": (0,), "wave": (0,), "rnn": (1, 2), "seedloop": (0, 1)}


def arguments(workload, cells, steps):
    if workload == "wave":
        speeds = numbers(cells * cells, np.float32, 0.1).reshape(cells, cells)
        found = [speeds, numbers(steps, np.float32)]
    elif workload == "rnn":
        found = [numbers(cells), numbers(cells * cells).reshape(cells, cells), numbers(cells)]
    else:
        found = [numbers(cells), numbers(cells)]
    return [torch.from_numpy(a) for a in found]


def start(workload, args):
    return (torch.zeros_like(args[0]), torch.zeros_like(args[0])) if workload == "wave" else args[0]


def primal(workload):
    def make(cells, steps):
        args, found = arguments(workload, cells, steps), []

        @torch.no_grad()
        def run():
            found[:] = [loop(STEPS[workload], start(workload, args), args, 0, steps)]

        return run, lambda: (None, norm(found[0][0] if workload == "wave" else found[0]))

    return make


def gradient(workload, loop):
    def make(cells, steps):
        args, found = arguments(workload, cells, steps), []
        for k in WRT[workload]:
            args[k].requires_grad_()

        def run():
            for a in args:
                a.grad = None
            end = loop(STEPS[workload], start(workload, args), args, 0, steps)
            loss = sum((row * row).sum() for row in end[2:]) if workload == "wave" else (end * end).sum()
            loss.backward()
            found[:] = [loss.item()]

        return run, lambda: (found[0], norm(*(args[k].grad for k in WRT[workload])))

    return make


CASES = {}
for workload in STEPS:
    CASES[workload, "primal", ""] = primal(workload)
    CASES[workload, "gradient", "plain"] = gradient(workload, loop)
    CASES[workload, "gradient", "checkpoint"] = gradient(workload, checkpointed_loop)

if __name__ == "__main__":
    main(__file__, CASES)
