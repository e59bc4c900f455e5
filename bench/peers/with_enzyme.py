"""Enzyme-JAX: the program as StableHLO, differentiated by Enzyme, which stores what it needs.

Its attribute for checkpointed loops can be set in StableHLO but not from Python, so only store-all is here.
"""

from enzyme_ad.jax import enzyme_jax_ir

from common import main
from jax_workloads import PROGRAMS, gradient, primal, scan

CASES = {}
for workload in PROGRAMS:
    CASES[workload, "primal", ""] = primal(workload, scan, enzyme_jax_ir())
    CASES[workload, "gradient", "plain"] = gradient(workload, scan, enzyme_jax_ir())

if __name__ == "__main__":
    import jax_workloads

    main(jax_workloads.__file__, CASES)
