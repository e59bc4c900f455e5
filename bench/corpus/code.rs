//! The code that is generated for a GPU, to read: input programs of the corpus, output a file for each text that they and their
//! gradients are compiled from. It takes no GPU.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use ebbtide::ir::{Block, Facts, Program};
use ebbtide::prelude::Budget;
use ebbtide_autodiff::Request;
use ebbtide_runtime::{Backend, Compiled, CompiledGradient, Device, Error, Executable, interpreter};

use super::measure::{Wish, wished};
use crate::Result;

/// Writes what a GPU would be given, and interprets.
struct Written {
    interpreter: Device,
    /// The files' name, but for what follows the point.
    stem: PathBuf,
    count: AtomicUsize,
}

// SAFETY (*Faithful code*): the interpreter's, of what is given; (*One memory*): the host's.
unsafe impl Backend for Written {
    fn name(&self) -> &str {
        "cuda"
    }

    fn compile(
        &self,
        program: &Arc<Program>,
        facts: &Arc<Facts>,
        segments: &[&Block],
    ) -> ebbtide_runtime::Result<Arc<dyn Executable>> {
        let fail = |reason: String| Error::Compile {
            device: "cuda".to_string(),
            program: program.name.clone(),
            reason,
        };
        let (unit, ..) = ebbtide_cuda::text(program, facts, segments).map_err(fail)?;
        let file = self.stem.with_extension(format!("{}.cu", self.count.fetch_add(1, Ordering::Relaxed)));
        fs::write(&file, &unit.source).map_err(|error| fail(format!("{}: {error}", file.display())))?;
        println!("{}", file.display());
        self.interpreter.backend().compile(program, facts, segments)
    }
}

/// Writes the code of all programs that are wanted: first the program's, then its gradient's variants'.
pub fn write(wish: &Wish) -> Result<()> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("out/code");
    fs::create_dir_all(&folder)?;
    for (name, ty, size) in wish.all() {
        let problem = wished(name, ty, size, wish)?;
        let stem = folder.join(format!("{name}-{ty}-{size:?}").to_lowercase());
        let device =
            Device::new(Arc::new(Written { interpreter: interpreter(), stem, count: AtomicUsize::new(0) }));
        Compiled::new(&problem.program, &device)?;
        let request = Request { of: "loss".to_string(), wrt: problem.wrt(), ..Request::default() };
        CompiledGradient::new(&problem.program, &request, &device, Budget::StoreAll)?;
    }
    Ok(())
}
