"""PyTorch's autograd on a chain of scalar multiplications, for the eager tape to be compared with."""

import json
import time

import torch
from torch.utils.checkpoint import checkpoint

import common  # pins the process to one core

OPERATIONS = 10_000


def best(timed, runs):
    return min(timed() for _ in range(runs)) * 1e9 / OPERATIONS


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
    start = time.process_time()
    build(x)
    return time.process_time() - start


def pull_back(build):
    x = torch.tensor(0.3, dtype=torch.float64, requires_grad=True)
    y = build(x)
    start = time.process_time()
    y.backward()
    return time.process_time() - start


if __name__ == "__main__":
    torch.set_num_threads(1)
    print(
        json.dumps(
            {
                "record": best(lambda: record(chain), 7),
                "pull_back": best(lambda: pull_back(chain), 7),
                "pull_back_checkpointed": best(lambda: pull_back(checkpointed_chain), 3),
            }
        )
    )
