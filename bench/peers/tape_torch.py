"""PyTorch's autograd on the chain of scalar multiplications of `crates/tape/examples/bench.rs`, for scale.

Needs a CPU build of PyTorch: python bench/peers/tape_torch.py
"""

import time

import torch
from torch.utils.checkpoint import checkpoint

OPERATIONS = 10_000
RUNS = 7


def best(timed):
    return min(timed() for _ in range(RUNS)) * 1e9 / OPERATIONS


def chain(x):
    y = x
    for _ in range(OPERATIONS):
        y = y * x
    return y


def checkpointed_chain(x):
    y = x
    for _ in range(OPERATIONS):
        y = checkpoint(torch.mul, y, x, use_reentrant=False)
    return y


def record(build):
    x = torch.tensor(0.3, dtype=torch.float64, requires_grad=True)
    start = time.perf_counter()
    build(x)
    return time.perf_counter() - start


def pull_back(build):
    x = torch.tensor(0.3, dtype=torch.float64, requires_grad=True)
    y = build(x)
    start = time.perf_counter()
    y.backward()
    return time.perf_counter() - start


if __name__ == "__main__":
    torch.set_num_threads(1)
    print(f"PyTorch {torch.__version__}: chain of {OPERATIONS} multiplications, ns per operation, best of {RUNS}")
    print(f"{'record':<38} {best(lambda: record(chain)):8.1f}")
    print(f"{'pull back':<38} {best(lambda: pull_back(chain)):8.1f}")
    print(f"{'record, checkpointed':<38} {best(lambda: record(checkpointed_chain)):8.1f}")
    print(f"{'pull back, checkpointed':<38} {best(lambda: pull_back(checkpointed_chain)):8.1f}")
