//! What std does not have, computed on the host exactly as programs compute it.

use ebbtide_ir::{Function, Literal, Op, Program, Type, evaluate};

use crate::scalar::{Float, Scalar};

/// The random number of a seed and a counter.
pub(crate) fn rand<T: Float>(seed: Literal, counter: Literal) -> T {
    let as_i64 = |literal: Literal| Literal::from(literal.to_i64().unwrap_or(0));
    compute(&[as_i64(seed), as_i64(counter)], |args| Op::Rand(args[0], args[1]))
}

/// The error function.
pub(crate) fn erf<T: Float>(x: T) -> T {
    compute(&[x.literal()], |args| Op::Math(Function::Erf, args[0], args[0]))
}

/// The value of one operation on constants.
fn compute<T: Float>(args: &[Literal], op: impl FnOnce(&[ebbtide_ir::ValueId]) -> Op) -> T {
    let mut program = Program::default();
    let ids: Vec<_> = args.iter().map(|arg| program.add_value(Op::Literal(*arg), arg.ty(), None)).collect();
    let ty: Type = <T as Scalar>::TYPE;
    let result = program.add_value(op(&ids), ty, None);
    let bits = evaluate::evaluate(&program, result, |id| program.literal(id).map_or(0, Literal::bits));
    // Operations on constants depend on no machine and these do not divide.
    let bits = bits.and_then(Result::ok).unwrap_or(0);
    ebbtide_runtime::Element::from_literal(Literal::from_bits(ty, bits))
}
