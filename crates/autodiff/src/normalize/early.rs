//! Values that are computed before the program starts.

use ebbtide_ir::{Binary, Block, Compare, Literal, Op, Program, Role, Stmt, Type, ValueId};

use crate::writer::Writer;

/// A value that depends on arguments alone, computed before everything else.
pub(crate) fn early(source: &Program, w: &mut Writer, v: ValueId) -> ValueId {
    // The shape of a working copy is the caller's.
    if let Op::Dim(a, k) = *source.op(v)
        && let Role::Temp(shape) = &w.program.array(a).role
        && let Some(extent) = shape.get(k as usize)
    {
        return *extent;
    }
    let op = source.op(v).map(|o| early(source, w, o));
    let (op, divisor) = without_fault(&mut w.program, op);
    divisor.into_iter().for_each(|v| w.push(Stmt::Let(v)));
    w.value(op, source.ty(v))
}

/// An operation that is computed before the guards around it are asked: it divides by one where it would divide by zero,
/// and then nothing uses its result. The second part is what must be computed for it.
pub(crate) fn without_fault(program: &mut Program, op: Op) -> (Op, Vec<ValueId>) {
    let Op::Binary(how @ (Binary::Div | Binary::Rem | Binary::RemEuclid), a, b) = op else {
        return (op, Vec::new());
    };
    let ty = program.ty(b);
    if ty.is_float() || program.literal(b).and_then(Literal::to_i64).is_some_and(|divisor| divisor != 0) {
        return (op, Vec::new());
    }
    let zero = program.add_value(Op::Literal(Literal::of(ty, 0.0)), ty, None);
    let one = program.add_value(Op::Literal(Literal::of(ty, 1.0)), ty, None);
    let is_zero = program.add_value(Op::Compare(Compare::Eq, b, zero), Type::Bool, None);
    let divisor = program.add_value(Op::Select(is_zero, one, b), ty, None);
    (Op::Binary(how, a, divisor), vec![zero, one, is_zero, divisor])
}

/// A value that depends on arguments alone, computed once more at the end of a block. The depth of recursion is that of an
/// expression in the source.
pub(crate) fn computed_again(program: &mut Program, block: &mut Block, v: ValueId) -> ValueId {
    let decl = program.value(v).clone();
    let operands: Vec<ValueId> = decl.op.operands().collect();
    let early: Vec<ValueId> = operands.iter().map(|o| computed_again(program, block, *o)).collect();
    let op = decl.op.map(|o| operands.iter().position(|x| *x == o).map_or(o, |at| early[at]));
    let (op, divisor) = without_fault(program, op);
    block.extend(divisor.into_iter().map(Stmt::Let));
    let new = program.add_value(op, decl.ty, decl.site);
    block.push(Stmt::Let(new));
    new
}
