//! The arguments of custom operations through which derivatives flow.

use std::collections::BTreeSet;

use ebbtide_ir::{Access, ArrayId, Bound, LibraryCall, Program};

/// The float arrays among the arguments through which derivatives flow, in order, and what is done with them.
pub(crate) fn flowing(source: &Program, call: &LibraryCall) -> Vec<(ArrayId, Access)> {
    let saved = source.operation(call).map(|operation| operation.rules.saved).unwrap_or_default();
    let array = |(at, bound): (usize, &Bound)| match *bound {
        Bound::Array(a, access) if source.array(a).ty.is_float() && !saved.contains(at) => Some((a, access)),
        _ => None,
    };
    call.arguments.iter().enumerate().filter_map(array).collect()
}

/// The float arrays among the arguments through which derivatives flow, in order.
pub(crate) fn float_arrays(source: &Program, call: &LibraryCall) -> Vec<ArrayId> {
    flowing(source, call).into_iter().map(|(array, _)| array).collect()
}

/// The arrays that an operation writes for its derivatives alone.
pub(crate) fn saved_arrays(source: &Program, call: &LibraryCall) -> BTreeSet<ArrayId> {
    let Some(operation) = source.operation(call) else { return BTreeSet::new() };
    let saved = call.arguments.iter().enumerate().filter(|(at, _)| operation.rules.saved.contains(*at));
    saved.filter_map(|(_, bound)| bound.array()).collect()
}
