//! The code that is generated for a GPU, to read: input programs of the corpus, output a file for each text that they and their
//! gradients are compiled from. It takes no GPU.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use ebbtide::prelude::Budget;
use ebbtide_autodiff::Request;
use ebbtide_cuda::text_device;
use ebbtide_runtime::{Compiled, CompiledGradient};

use super::measure::{Wish, wished};
use crate::Result;

/// Writes the code of all programs that are wanted: first the program's, then its gradient's variants'.
pub fn write(wish: &Wish) -> Result<()> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("out/code");
    fs::create_dir_all(&folder)?;
    for (name, ty, size) in wish.all() {
        let problem = wished(name, ty, size, wish)?;
        let stem = folder.join(format!("{name}-{ty}-{size:?}").to_lowercase());
        let count = AtomicUsize::new(0);
        let device = text_device(move |unit| {
            let file = stem.with_extension(format!("{}.cu", count.fetch_add(1, Ordering::Relaxed)));
            println!("{}", file.display());
            fs::write(&file, &unit.source).map_err(|error| format!("{}: {error}", file.display()))
        });
        Compiled::new(&problem.program, &device)?;
        let request = Request { of: "loss".to_string(), wrt: problem.wrt(), ..Request::default() };
        CompiledGradient::new(&problem.program, &request, &device, Budget::StoreAll)?;
    }
    Ok(())
}
