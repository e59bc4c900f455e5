//! Calls of the derivatives that custom operations bring.

use ebbtide_ir::{Access, ArrayId, Bound, Call, LibraryCall, Program, Role, Ruled, Rules, Stmt, ValueId};

use crate::analysis::operation_arguments::flowing;
use crate::analysis::operation_rules::Wanted;
use crate::writer::Writer;

/// Calls the derivative of an operation: with its own arguments, then with one array for each of its float arrays.
pub(crate) fn call_rule(
    w: &mut Writer,
    source: &Program,
    call: &LibraryCall,
    (rule, wanted): (&Program, Wanted),
    known: impl Fn(ValueId) -> ValueId,
    beside: impl Fn(ArrayId) -> Option<ArrayId>,
) {
    let mut bound: Vec<Bound> = call
        .arguments
        .iter()
        .map(|argument| match *argument {
            Bound::Array(a, _) => Bound::Array(a, Access::Read),
            Bound::Scalar(v) => Bound::Scalar(known(v)),
        })
        .collect();
    for (a, access) in flowing(source, call) {
        if let Some(beside) = beside(a) {
            let access = if wanted == Wanted::Adjoint { Access::Write } else { access };
            bound.push(Bound::Array(beside, access));
        }
    }
    let Some(body) = w.program.instance(rule, &bound) else { return };
    let rules = source.operation(call).and_then(|operation| wanted.rule(&operation.rules));
    let rules = rules.map_or(Rules::none(), |rule| (rule.rules)());
    let ruled = rules.any().then_some(Ruled { arguments: bound, rules });
    w.push(Stmt::Call(Call { name: rule.name.clone(), body, ruled }));
}

/// An array of zeros beside one that carries no derivative, for rules that want one.
pub(crate) fn declare_scratch(
    w: &mut Writer,
    source: &Program,
    array: ArrayId,
    shape: Vec<ValueId>,
) -> ArrayId {
    let decl = source.array(array);
    let id = w.array(format!("no_d_{}", decl.name), decl.ty, decl.rank, Role::Temp(shape));
    w.push(Stmt::Temp(id));
    id
}
