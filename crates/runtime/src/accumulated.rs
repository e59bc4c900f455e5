//! Outputs that a program only adds to.
//!
//! `loss[[]] += x` adds to what the array held before the launch. A value that is read after a second launch then
//! surprises. Input: the source program and the arguments of a launch. Output: the outputs whose value is asked for,
//! which the program adds to before it writes them, and which are not zero. Single elements alone are looked at: that
//! is what losses are, and a look costs nothing.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use ebbtide_autodiff::Request;
use ebbtide_ir::{ArrayId, Combine, Op, Param, Program, Stmt};

use crate::arguments::Arg;

/// The outputs of a gradient that accumulate.
#[derive(Clone, Debug, Default)]
pub(crate) struct Accumulated {
    /// Their names, and which arguments they are.
    outputs: Arc<[(String, usize)]>,
    /// Was it said in the trace?
    said: Arc<AtomicBool>,
}

impl Accumulated {
    pub fn of(source: &Program, request: &Request) -> Accumulated {
        let parameter = |name: &String| {
            let array = source.find_array(name)?;
            let at = source.params.iter().position(|p| matches!(p, Param::Array(a) if *a == array))?;
            (source.array(array).rank == 0 && is_added_to(source, array)).then(|| (name.clone(), at))
        };
        Accumulated { outputs: request.values.iter().filter_map(parameter).collect(), said: Arc::default() }
    }

    /// Those that are not zero in these arguments. It waits for launches that write them.
    pub fn not_zero(&self, args: &[Arg<'_>]) -> Vec<String> {
        let is_zero = |at: usize| match args.get(at) {
            Some(Arg::Read(array)) => array.bytes().iter().all(|byte| *byte == 0),
            Some(Arg::Write(array)) => array.bytes().iter().all(|byte| *byte == 0),
            _ => true,
        };
        self.outputs.iter().filter(|(_, at)| !is_zero(*at)).map(|(name, _)| name.clone()).collect()
    }

    /// Says it in the trace, once; looks only where somebody listens, since on a GPU a look waits for it.
    pub fn trace(&self, args: &[Arg<'_>]) {
        if self.outputs.is_empty() || !tracing::enabled!(tracing::Level::INFO) {
            return;
        }
        for name in self.not_zero(args) {
            if !self.said.swap(true, Ordering::Relaxed) {
                tracing::info!("{}", note(&name));
            }
        }
    }
}

/// What there is to say of such an output.
pub(crate) fn note(name: &str) -> String {
    format!(
        "the program adds to `{name}`, which is not zero at the start: its value will contain what it held before; \
         write `{name}.fill(0.0)?` before the launch to start at zero"
    )
}

/// Does the program add to the array before it does anything else with it?
fn is_added_to(program: &Program, array: ArrayId) -> bool {
    let mut work: Vec<&Stmt> = program.body.iter().rev().collect();
    while let Some(stmt) = work.pop() {
        match stmt {
            Stmt::Update(Combine::Add, store) if store.array == array => return true,
            Stmt::Update(_, store) | Stmt::Store(store) if store.array == array => return false,
            Stmt::Let(value) if matches!(program.op(*value), Op::Load(a, _) if *a == array) => return false,
            Stmt::Swap(a, b) if *a == array || *b == array => return false,
            Stmt::Fill(a, _) if *a == array => return false,
            Stmt::Copy { from, to } if *from == array || *to == array => return false,
            _ => {
                let inside: Vec<&Stmt> = stmt.blocks().flatten().collect();
                work.extend(inside.into_iter().rev());
            }
        }
    }
    false
}
