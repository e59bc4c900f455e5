//! Memory plans of gradients.

use ebbtide_runtime::Plan as Made;
use pyo3::prelude::*;

/// What a gradient run will do. Making it runs nothing.
#[pyclass(module = "ebbtide._native", frozen)]
pub struct Plan {
    pub plan: Made,
}

/// A loop: depth, passes, bytes of a state and of a tape, schedule, states, peak, executions of its body.
type LoopInfo = (usize, Option<u64>, u64, u64, &'static str, u64, u64, f64);

#[pymethods]
impl Plan {
    /// The plan in words.
    fn explain(&self) -> String {
        self.plan.explain()
    }

    /// The most bytes that the run will hold beyond the caller's arrays.
    #[getter]
    fn peak_bytes(&self) -> u64 {
        self.plan.peak_bytes()
    }

    /// Bytes that every plan needs.
    #[getter]
    fn fixed_bytes(&self) -> u64 {
        self.plan.fixed_bytes
    }

    /// The budget, where there is one.
    #[getter]
    fn budget(&self) -> Option<u64> {
        self.plan.budget
    }

    /// What keeping every tape would take.
    #[getter]
    fn store_all_bytes(&self) -> u64 {
        self.plan.store_all_bytes
    }

    /// Forward work per work of the program itself: 1 means that nothing is recomputed.
    #[getter]
    fn recompute_factor(&self) -> f64 {
        self.plan.recompute_factor()
    }

    #[getter]
    fn _loops(&self) -> Vec<LoopInfo> {
        let info = |l: &ebbtide_runtime::LoopPlan| {
            let executions = l.totals.executions() as f64;
            (
                l.depth,
                l.steps,
                l.state_bytes,
                l.tape_bytes,
                l.schedule,
                l.totals.memory.peak_slots,
                l.peak_bytes,
                executions,
            )
        };
        self.plan.loops.iter().map(info).collect()
    }
}
