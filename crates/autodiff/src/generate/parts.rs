//! Gradients of programs that run on the parts of a grid (law 15).
//!
//! Every part runs the gradient program, and its derivatives are those of the value on part 0 with respect to what this part
//! holds. So the seed is one on part 0 alone, and derivatives with respect to what all parts share are summed over them.

use std::sync::Arc;

use ebbtide_ir::parts::{Collective, has_collectives};
use ebbtide_ir::{
    Access, ArrayId, Bound, LibraryCall, LibraryOp, Literal, Op, OperationId, Program, Rules, ScalarId, Stmt,
    walk,
};

use crate::writer::Writer;

/// Seeds the cotangent of an output, if the program has collectives.
pub(crate) fn seed(w: &mut Writer, source: &Program, of: ArrayId, shadow: ArrayId) -> bool {
    if !has_collectives(source) {
        return false;
    }
    push(w, Collective::Seed, &[Bound::Array(of, Access::Read), Bound::Array(shadow, Access::Write)]);
    true
}

/// Sums a derivative with respect to a scalar over all parts.
pub(crate) fn sum_scalar(w: &mut Writer, source: &Program, scalar: ScalarId, derivative: ArrayId) {
    if has_collectives(source) {
        let value = w.value(Op::Scalar(scalar), source.scalars[scalar.index()].ty);
        push(w, Collective::SumShared, &[Bound::Array(derivative, Access::Write), Bound::Scalar(value)]);
    }
}

/// Sums a derivative with respect to an array over all parts, if they share the array.
pub(crate) fn sum_array(w: &mut Writer, source: &Program, array: ArrayId, derivative: ArrayId) {
    let mut is_shared = false;
    walk(&source.body, &mut |stmt| {
        if let Stmt::Library(call) = stmt {
            let name = source.operation(call).map(|operation| operation.name.as_str());
            is_shared |= name == Some(Collective::Shared.name()) && call.reads.contains(&array);
        }
    });
    if is_shared {
        // The program itself has compared the arrays.
        let literal = Literal::index(0);
        let value = w.value(Op::Literal(literal), literal.ty());
        push(w, Collective::SumShared, &[Bound::Array(derivative, Access::Write), Bound::Scalar(value)]);
    }
}

fn push(w: &mut Writer, collective: Collective, arguments: &[Bound]) {
    let arrays = |wanted: Access| {
        let of = |bound: &Bound| match *bound {
            Bound::Array(array, access) => (access == wanted).then_some(array),
            Bound::Scalar(_) => None,
        };
        arguments.iter().filter_map(of).collect()
    };
    let (reads, writes) = (arrays(Access::Read), arrays(Access::Write));
    w.program.operations.push(Arc::new(collective.operation(Rules::none())));
    let op = LibraryOp::Custom(OperationId::from_index(w.program.operations.len() - 1));
    w.push(Stmt::Library(LibraryCall { op, reads, writes, arguments: arguments.to_vec(), site: None }));
}
