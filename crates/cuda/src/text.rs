//! The text of a program for a GPU.

use std::sync::Arc;

use ebbtide_codegen::{Unit, cuda_unit};
use ebbtide_ir::passes::simplify_segments;
use ebbtide_ir::{Block, Facts, Program};
use ebbtide_runtime::{Backend, Device, Error, Executable, Result, interpreter};

/// The CUDA C text of the segments of a program, after the same passes as on every compiled device; and the program whose
/// values it speaks of.
pub fn text(
    program: &Arc<Program>,
    facts: &Facts,
    segments: &[&Block],
) -> std::result::Result<(Unit, Arc<Program>, Vec<Block>), String> {
    let (program, unit, segments) = match simplify_segments(program, segments) {
        Ok(simple) => {
            let blocks: Vec<&Block> = simple.segments.iter().collect();
            let unit = cuda_unit(&simple.program, &simple.facts, &blocks);
            (Arc::new(simple.program), unit, simple.segments)
        }
        Err(flaw) => {
            tracing::warn!(program = program.name, reason = flaw.message, "compiled without simplifying it");
            let unit = cuda_unit(program, facts, segments);
            (program.clone(), unit, segments.iter().map(|block| (*block).clone()).collect())
        }
    };
    Ok((unit.map_err(|e| e.to_string())?, program, segments))
}

/// A device that shows what a GPU would be given, and interprets: it takes no GPU. What `look` says of a text is why its program does
/// not compile.
pub fn text_device(
    look: impl Fn(&Unit) -> std::result::Result<(), String> + Send + Sync + 'static,
) -> Device {
    Device::new(Arc::new(Texts { look: Box::new(look), interpreter: interpreter() }))
}

type Look = dyn Fn(&Unit) -> std::result::Result<(), String> + Send + Sync;

struct Texts {
    look: Box<Look>,
    interpreter: Device,
}

// SAFETY (*Faithful code*): the interpreter's, of what is given; (*One memory*): the host's.
unsafe impl Backend for Texts {
    fn name(&self) -> &str {
        "cuda"
    }

    fn compile(
        &self,
        program: &Arc<Program>,
        facts: &Arc<Facts>,
        segments: &[&Block],
    ) -> Result<Arc<dyn Executable>> {
        let looked = text(program, facts, segments).and_then(|(unit, ..)| (self.look)(&unit));
        looked.map_err(|reason| Error::Compile {
            device: "cuda".to_string(),
            program: program.name.clone(),
            reason,
        })?;
        self.interpreter.backend().compile(program, facts, segments)
    }
}
