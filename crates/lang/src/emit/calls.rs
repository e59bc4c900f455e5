//! Calls of programs and functions: their bodies are expanded where they are called.

use std::sync::Arc;

use ebbtide_ir::{Access, ArrayId, Bound, HostArg, Operation, Rules, Saved, Work};

use crate::cx::Cx;
use crate::handle::Behind;
use crate::value::Returned;
use crate::view::{View, all_whole};

/// What a called program or operation is.
#[derive(Clone, Copy, Debug)]
pub struct Callee {
    /// Its full path with type arguments: two programs in different modules may have one name.
    pub path: &'static str,
    /// Its name.
    pub name: &'static str,
    /// The derivatives that it brings itself.
    pub rules: Rules,
    /// The parameters that it writes for these alone, by name.
    pub saved: &'static [&'static str],
}

impl Callee {
    /// The derivatives, with what is saved for them by its place among the arguments.
    fn rules(&self, params: &[(&str, Vec<Behind>)]) -> Rules {
        let names = params.iter().flat_map(|(name, bound)| bound.iter().map(move |_| name));
        let saved = names.enumerate().filter(|(_, name)| self.saved.contains(name)).map(|(at, _)| at);
        Rules { saved: Saved::at(saved), ..self.rules }
    }
}

/// Expands a program where it is called. `params` are its parameters: their names and what is behind them.
#[track_caller]
pub fn call_program(cx: &Cx, callee: Callee, params: &[(&str, Vec<Behind>)], body: impl FnOnce()) {
    let rules = callee.rules(params);
    let Callee { path, name, .. } = callee;
    check_aliases(cx, name, params);
    if !cx.enter(path, name) {
        return;
    }
    match (cx.at_root(), rules.any()) {
        (true, false) => body(),
        (false, false) => {
            cx.emit(|b| b.begin_call(name));
            body();
            cx.emit(|b| b.end_call());
        }
        // Its rules hold also where it is launched by itself.
        (_, true) => {
            let arguments = arguments(cx, name, params);
            cx.emit(|b| b.begin_ruled_call(name, arguments, rules));
            body();
            cx.emit(|b| b.end_call());
        }
    }
    cx.leave();
}

/// Calls a custom operation.
#[track_caller]
pub fn call_operation(
    cx: &Cx,
    callee: Callee,
    params: &[(&str, Vec<Behind>)],
    work: fn(&mut [HostArg<'_>]) -> Result<(), String>,
) {
    let rules = callee.rules(params);
    let Callee { name, .. } = callee;
    check_aliases(cx, name, params);
    let arguments = arguments(cx, name, params);
    let operation = Operation { name: name.to_string(), work: Work::Host(Arc::new(work)), rules };
    cx.emit(|b| b.operation(operation, &arguments));
}

/// The arguments of something that works on whole arrays.
#[track_caller]
fn arguments(cx: &Cx, name: &str, params: &[(&str, Vec<Behind>)]) -> Vec<Bound> {
    let all = params.iter().flat_map(|(_, behind)| behind);
    let views: Vec<View> = all.clone().map(|behind| behind.view).collect();
    all_whole(cx, name, &views);
    all.map(|behind| behind.bound).collect()
}

/// One array may be bound to two parameters only if neither is written, or if they are parts of it with different indices: where
/// these meet is then seen from the accesses themselves.
#[track_caller]
fn check_aliases(cx: &Cx, name: &str, params: &[(&str, Vec<Behind>)]) {
    let mut arrays: Vec<(&str, ArrayId, Access, View)> = Vec::new();
    for (param, behind) in params {
        arrays.extend(behind.iter().filter_map(|behind| match behind.bound {
            Bound::Array(id, access) => Some((*param, id, access, behind.view)),
            Bound::Scalar(_) => None,
        }));
    }
    for (k, (param, id, access, view)) in arrays.iter().enumerate() {
        let clash = arrays[..k].iter().find(|(_, other, first, seen)| {
            let same = cx.emit(|b| view.is_same(seen, b.program()));
            let apart = !view.is_whole() && !seen.is_whole() && !same;
            id == other && !apart && (*first == Access::Write || *access == Access::Write)
        });
        if let Some((first, ..)) = clash {
            cx.emit(|b| {
                let array = b.program().array(*id).name.clone();
                b.flaw(
                    "2",
                    format!(
                        "`{array}` is bound to the parameters `{first}` and `{param}` of `{name}`, and one of them is \
                         written: `copy` it to another array first"
                    ),
                );
            });
        }
    }
}

/// Expands a function where it is called.
#[track_caller]
pub fn call_func<R: Returned>(
    cx: &Cx,
    path: &'static str,
    name: &'static str,
    body: impl FnOnce() -> R,
) -> R {
    if !cx.enter(path, name) {
        return R::placeholder(cx);
    }
    let value = body();
    cx.leave();
    value
}
