"""What all peers share: the inputs, the way to measure, what is printed.

A peer defines cases, `CASES[workload, kind, variant] = make`, where `make(cells, steps)` returns `(run, answer)`:
`run()` computes once and waits for the end, `answer()` gives the loss (or None) and the length of the gradient (or of
the end state). A `run` with an attribute `compile` is compiled ahead of time, apart from the first run; where it has
`allocates_ahead`, the memory is counted from before `make`.

    python with_X.py list
    python with_X.py run WORKLOAD KIND VARIANT CELLS STEPS SECONDS
"""

import json
import os
import sys
import time

# One thread: whatever a library starts shares one core.
os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})

import numpy as np


def numbers(count, dtype=np.float64, base=0.0):
    """Small positive numbers, the same for everyone."""
    k = np.arange(count, dtype=np.uint64)
    return (base + ((k * np.uint64(2654435761)) % np.uint64(1000)).astype(np.float64) / 100000.0).astype(dtype)


def norm(*arrays):
    """The length of all arrays together."""
    return float(np.sqrt(sum(np.sum(np.asarray(a, dtype=np.float64) ** 2) for a in arrays)))


def divisor_near_root(steps):
    """The divisor of `steps` that is nearest to its square root: the length of a block."""
    return min((d for d in range(1, steps + 1) if steps % d == 0), key=lambda d: abs(d * d - steps))


def resident(field):
    with open("/proc/self/status") as status:
        for line in status:
            if line.startswith(field + ":"):
                return int(line.split()[1]) * 1024
    return 0


def reset_peak():
    try:
        with open("/proc/self/clear_refs", "w") as file:
            file.write("5")
    except OSError:
        pass


def lines(script, workload):
    """The lines that are not empty between `# lines: workload`, or `# lines: all`, and `# end`."""
    count, counting = 0, False
    for line in open(script):
        line = line.strip()
        if line in (f"# lines: {workload}", "# lines: all"):
            counting = True
        elif line == "# end":
            counting = False
        elif counting and line:
            count += 1
    return count or None


def measure(make, cells, steps, seconds):
    # A tiny instance first: libraries load their parts when they are first used.
    make(cells, 2)[0]()
    reset_peak()
    before = resident("VmRSS")
    run, answer = make(cells, steps)
    begun = time.perf_counter()
    if hasattr(run, "compile"):
        run.compile()
    compile_seconds = time.perf_counter() - begun
    if not getattr(run, "allocates_ahead", False):
        reset_peak()
        before = resident("VmRSS")
    begun = time.process_time()
    run()
    first = time.process_time() - begun
    peak = resident("VmHWM") - before
    best, begun = first, time.perf_counter()
    for k in range(10**9):
        if k >= 2 and time.perf_counter() - begun > seconds:
            break
        start = time.process_time()
        run()
        best = min(best, time.process_time() - start)
    loss, length = answer()
    return {
        "seconds": best,
        "resident_bytes": max(peak, 0),
        "compile_seconds": compile_seconds if hasattr(run, "compile") else None,
        "loss": loss,
        "norm": length,
    }


def main(script, cases):
    what = sys.argv[1]
    if what == "list":
        print(json.dumps([{"workload": w, "kind": k, "variant": v} for w, k, v in cases]))
    elif what == "run":
        workload, kind, variant = sys.argv[2:5]
        cells, steps, seconds = int(sys.argv[5]), int(sys.argv[6]), float(sys.argv[7])
        found = measure(cases[workload, kind, variant], cells, steps, seconds)
        print(json.dumps(found | {"lines": lines(script, workload)}))
    else:
        sys.exit(f"{what}: list or run")
