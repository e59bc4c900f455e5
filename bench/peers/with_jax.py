"""JAX: a plain scan, and nested scans with `jax.checkpoint`."""

from common import main
from jax_workloads import PROGRAMS, gradient, nested_scan, primal, scan

CASES = {}
for workload in PROGRAMS:
    CASES[workload, "primal", ""] = primal(workload, scan)
    CASES[workload, "gradient", "plain"] = gradient(workload, scan)
    CASES[workload, "gradient", "checkpoint"] = gradient(workload, nested_scan)

if __name__ == "__main__":
    import jax_workloads

    main(jax_workloads.__file__, CASES)
