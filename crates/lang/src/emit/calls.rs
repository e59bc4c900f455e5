//! Calls of programs and functions: their bodies are expanded where they are called.

use ebbtide_ir::{Access, ArrayId};

use crate::cx::Cx;
use crate::handle::{Argument, Handle};
use crate::value::Returned;

/// An argument as the callee sees it.
#[track_caller]
pub fn arg<A: Argument<P>, P>(cx: &Cx, argument: &A) -> P {
    argument.pass(cx)
}

/// The arrays behind a parameter.
pub fn arrays<H: Handle>(handle: &H) -> Vec<(ArrayId, Access)> {
    let mut all = Vec::new();
    handle.arrays(&mut |id, access| all.push((id, access)));
    all
}

/// Expands a program where it is called. `params` are its array parameters: their names and the arrays behind
/// them.
#[track_caller]
pub fn call_program(
    cx: &Cx,
    path: &'static str,
    name: &'static str,
    params: &[(&str, Vec<(ArrayId, Access)>)],
    body: impl FnOnce(),
) {
    check_aliases(cx, name, params);
    if !cx.enter(path, name) {
        return;
    }
    if cx.at_root() {
        body();
    } else {
        cx.emit(|b| b.begin_call(name));
        body();
        cx.emit(|b| b.end_call());
    }
    cx.leave();
}

/// One array may be bound to two parameters only if neither is written.
#[track_caller]
fn check_aliases(cx: &Cx, name: &str, params: &[(&str, Vec<(ArrayId, Access)>)]) {
    let mut bound: Vec<(&str, ArrayId, Access)> = Vec::new();
    for (param, arrays) in params {
        bound.extend(arrays.iter().map(|(id, access)| (*param, *id, *access)));
    }
    for (k, (param, id, access)) in bound.iter().enumerate() {
        let clash = bound[..k]
            .iter()
            .find(|(_, other, first)| id == other && (*first == Access::Write || *access == Access::Write));
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
