#![forbid(unsafe_code)]

use std::sync::Arc;

use ebbtide_ir::{Block, Facts, Outcome, Program};
use ebbtide_runtime::{Backend, Executable, Frame, Result, Start};

struct Mine;

impl Backend for Mine {
    fn name(&self) -> &str {
        "mine"
    }

    fn compile(&self, _: &Arc<Program>, _: &Arc<Facts>, _: &[&Block]) -> Result<Arc<dyn Executable>> {
        Ok(Arc::new(Mine))
    }
}

impl Executable for Mine {
    fn source(&self) -> Option<&str> {
        None
    }

    fn run(&self, _: usize, _: &mut Frame, _: Start<'_>) -> Result<Outcome> {
        Ok(Outcome::Done)
    }
}

fn main() {}
