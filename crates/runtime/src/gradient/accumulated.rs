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

use crate::array::arguments::Arg;

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

    /// Says it in the trace, once; looks only where something listens, since on a GPU a look waits for it.
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
            Stmt::Fill(a, ..) if *a == array => return false,
            Stmt::Copy { from, to, .. } if *from == array || *to == array => return false,
            _ => {
                let inside: Vec<&Stmt> = stmt.blocks().flatten().collect();
                work.extend(inside.into_iter().rev());
            }
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use ebbtide_ir::{Access, Builder, Literal, Type};
    use tracing::span::{Attributes, Id, Record};
    use tracing::{Event, Metadata, Subscriber};

    use super::*;
    use crate::interpreter;

    /// Counts events of level `INFO`.
    struct Count(Arc<AtomicUsize>);

    impl Subscriber for Count {
        fn enabled(&self, _: &Metadata<'_>) -> bool {
            true
        }
        fn new_span(&self, _: &Attributes<'_>) -> Id {
            Id::from_u64(1)
        }
        fn record(&self, _: &Id, _: &Record<'_>) {}
        fn record_follows_from(&self, _: &Id, _: &Id) {}
        fn event(&self, event: &Event<'_>) {
            if *event.metadata().level() == tracing::Level::INFO {
                self.0.fetch_add(1, Ordering::Relaxed);
            }
        }
        fn enter(&self, _: &Id) {}
        fn exit(&self, _: &Id) {}
    }

    fn program(overwrites: bool) -> Program {
        let mut b = Builder::new("adds");
        let loss = b.array("loss", Type::F64, 0, Access::Write);
        let one = b.literal(Literal::from(1.0_f64));
        if overwrites {
            b.fill(loss, one);
        }
        b.update(Combine::Add, loss, &[], one);
        b.finish().unwrap()
    }

    #[test]
    fn the_trace_says_once_that_an_accumulated_output_is_not_zero() {
        let request = Request { values: vec!["loss".to_string()], ..Request::default() };
        let device = interpreter();
        let (zero, two) = (device.scalar(0.0_f64).unwrap(), device.scalar(2.0_f64).unwrap());
        let said = |overwrites: bool, launches: &[&crate::AnyArray]| {
            let count = Arc::new(AtomicUsize::new(0));
            let accumulated = Accumulated::of(&program(overwrites), &request);
            tracing::subscriber::with_default(Count(count.clone()), || {
                launches.iter().for_each(|loss| accumulated.trace(&[Arg::Read(loss)]));
            });
            count.load(Ordering::Relaxed)
        };
        assert_eq!(said(false, &[zero.any(), zero.any()]), 0);
        assert_eq!(said(false, &[zero.any(), two.any(), two.any()]), 1);
        assert_eq!(said(true, &[two.any()]), 0);
    }
}
