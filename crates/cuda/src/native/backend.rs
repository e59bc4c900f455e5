//! The GPU as a device that compiles programs.

use std::sync::{Arc, OnceLock};

use ebbtide_codegen::{
    STAGING_WORDS, TERM_WORDS, bytes_of_open_runs, cuda_unit, loops_on_one_thread, staging_bytes,
};
use ebbtide_ir::{ArrayId, Block, Entry, Facts, Par, Program, RegionId, Stmt, ValueId, walk};
use ebbtide_runtime::cache::Cache;
use ebbtide_runtime::{
    Backend, Counters, Error, Event, Executable, Memory, Result, partial_sums, warn, yielding_regions,
};

use super::domains::Domains;
use super::{Native, halos, leaves};
use crate::compiler::{Architecture, Places};
use crate::gpu::Gpu;
use crate::hosted::{Cut, Part, calls_the_host};
use crate::tables::Layout;
use crate::text::text;

/// A GPU with a compiler.
pub(crate) struct Cuda {
    pub gpu: Arc<Gpu>,
    pub cache: Cache,
    pub target: Architecture,
    pub counters: Arc<Counters>,
    /// So many blocks run every segment, if somebody said so.
    pub blocks: Option<u32>,
}

// SAFETY (*Faithful code*): the code is made from the text of what is given, and found again by the hash of that text;
// (*One memory*): the GPU's.
unsafe impl Backend for Cuda {
    fn name(&self) -> &str {
        "cuda"
    }

    fn counters(&self) -> Option<&Counters> {
        Some(&self.counters)
    }

    fn memory(&self) -> Option<Arc<dyn Memory>> {
        Some(self.gpu.clone())
    }

    fn scratch_bytes(
        &self,
        program: &Program,
        facts: &Facts,
        value: &dyn Fn(ValueId) -> Option<i64>,
        elements: &dyn Fn(ArrayId) -> u64,
    ) -> u64 {
        // There is room for as many leaves as a loop can have.
        let runs = bytes_of_open_runs((program, facts), value, elements);
        runs + partial_sums(program, facts, &|_| None) + staging_bytes(program, facts)
    }

    fn compile(
        &self,
        program: &Arc<Program>,
        facts: &Arc<Facts>,
        segments: &[&Block],
    ) -> Result<Arc<dyn Executable>> {
        let _span = tracing::debug_span!("nvrtc").entered();
        let fail = |reason: String| Error::Compile {
            device: "cuda".to_string(),
            program: program.name.clone(),
            reason,
        };
        let hosted = segments.iter().any(|block| calls_the_host(block));
        if hosted && yielding_regions(segments) > 0 {
            return Err(fail(
                "it yields and calls operations of the host: one of the two is to be had on the GPU, both on the CPU"
                    .to_string(),
            ));
        }
        for par in loops_on_one_thread(program, facts) {
            warn(&on_one_thread(program, par));
        }
        self.counters.add(Event::Region, yielding_regions(segments));
        let mut cut = Cut::default();
        let (unit, simple, segments, parts) = if hosted {
            let parts: Vec<Vec<Part>> = segments.iter().map(|block| cut.segment(block)).collect();
            let witness = cut.witness();
            let blocks: Vec<&Block> = cut.kernels.iter().chain([&witness]).collect();
            // What the host drives knows values by their names in the program as it is.
            let unit = cuda_unit(program, facts, &blocks).map_err(|e| fail(e.to_string()))?;
            (unit, program.clone(), cut.kernels, parts)
        } else {
            let (unit, simple, segments) = text(program, facts, segments).map_err(fail)?;
            let parts = (0..segments.len()).map(|k| vec![Part::Kernel(k)]).collect();
            (unit, simple, segments, parts)
        };
        let mut counted = Vec::new();
        for segment in &segments {
            walk(segment, &mut |stmt| {
                if let Stmt::Par(par) = stmt
                    && let Some(runs) = unit.counted.get(&par.id)
                {
                    counted.push((Par { body: Block::new(), ..par.clone() }, runs.clone()));
                }
            });
        }
        let staging = if unit.noted.is_empty() { 0 } else { STAGING_WORDS } + unit.kept_terms * TERM_WORDS;
        let partials = 8 * (leaves(&unit) + staging);
        let loops = (0..program.regions as usize).map(|region| {
            Entry::of(program, RegionId::from_index(region)).map_or_else(Vec::new, |entry| entry.loops)
        });
        let native = Native {
            program: program.clone(),
            loops: loops.collect(),
            domains: segments.iter().map(|segment| Domains::of(segment, &unit)).collect(),
            parts,
            layout: Layout::of(program),
            counted,
            simple,
            unit,
            loaded: [const { OnceLock::new() }; 2],
            batch: OnceLock::new(),
            target: self.target.clone(),
            cache: self.cache.clone(),
            partials: (self.gpu.reserve(partials)?, partials),
            spare: Arc::default(),
            staging: halos::Spare::default(),
            gpu: self.gpu.clone(),
            counters: self.counters.clone(),
            blocks: self.blocks,
        };
        native.loaded(Places::Narrow)?;
        native.clear_partials()?;
        Ok(Arc::new(native))
    }
}

/// What to say of a loop that takes long.
fn on_one_thread(program: &Program, par: &Par) -> String {
    let at = par.site.as_ref().map_or(String::new(), |site| format!(" at {site}"));
    format!(
        "program `{}`: one thread of the GPU runs the parallel loop{at}: it combines into elements that its iterations share, in \
         order, and the bounds of its inner loops depend on what it writes itself, or an inner loop also adds to one element for all \
         iterations; write `#[relaxed]` before it, or do that part in a loop of its own",
        program.name
    )
}
