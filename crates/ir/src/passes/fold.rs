//! Constant folding: operations on literals, integer operations that change nothing, and powers that are products.

use super::{for_each_par, replace_inside};
use crate::interp::evaluate::evaluate;
use crate::syntax::*;

/// Computes what depends on literals alone, and takes the arm of branches that are decided then.
pub fn fold_constants(program: &Program) -> Program {
    let mut after = program.clone();
    let mut body = std::mem::take(&mut after.body);
    for_each_par(&mut body, &mut |par| {
        let mut same: Vec<ValueId> = (0..after.values.len()).map(ValueId::from_index).collect();
        let mut inside = Vec::new();
        walk(&par.body, &mut |stmt| {
            if let Stmt::Let(v) = stmt {
                inside.push(*v);
            }
        });
        // Operands come before their uses in the table.
        inside.sort_unstable();
        for v in inside {
            let op = after.op(v).map(|o| same[o.index()]);
            after.values[v.index()].op = op;
            match unchanged(&after, v) {
                Some(operand) => same[v.index()] = operand,
                None => fold(&mut after, v),
            }
        }
        replace_inside(&mut after, &mut par.body, &|v| same[v.index()]);
        take_decided(&after, &mut par.body);
    });
    after.body = body;
    after
}

fn fold(program: &mut Program, v: ValueId) {
    let op = *program.op(v);
    // What it is by definition: a loop with a product has a vector form.
    if let Op::Math(Function::Powi, x, n) = op
        && program.literal(n).and_then(Literal::to_i64) == Some(2)
    {
        program.values[v.index()].op = Op::Binary(Binary::Mul, x, x);
        return;
    }
    let pure = op.is_pure() && !matches!(op, Op::LoopVar | Op::Literal(_));
    if !pure || !op.operands().all(|o| program.literal(o).is_some()) {
        return;
    }
    let bits = |o: ValueId| program.literal(o).map_or(0, Literal::bits);
    // A division by zero stays what it is: an error of the run.
    if let Some(Ok(bits)) = evaluate(program, v, bits) {
        let literal = Literal::from_bits(program.ty(v), bits);
        program.values[v.index()].op = Op::Literal(literal);
    }
}

/// The operand that the value is equal to, bit for bit. Floats are left alone: `x + 0.0` is not `x`.
fn unchanged(program: &Program, v: ValueId) -> Option<ValueId> {
    let is = |o: ValueId, n: i64| program.literal(o).and_then(Literal::to_i64) == Some(n);
    let integer = program.ty(v).is_integer();
    match *program.op(v) {
        Op::Cast(a) if program.ty(a) == program.ty(v) => Some(a),
        Op::Math(Function::Powi, x, n) if is(n, 1) => Some(x),
        Op::Select(c, a, _) if is(c, 1) => Some(a),
        Op::Select(c, _, b) if is(c, 0) => Some(b),
        Op::Select(_, a, b) if a == b => Some(a),
        Op::Binary(
            Binary::Add | Binary::Sub | Binary::Or | Binary::Xor | Binary::Shl | Binary::Shr,
            a,
            b,
        ) if integer && is(b, 0) => Some(a),
        Op::Binary(Binary::Add | Binary::Or | Binary::Xor, a, b) if integer && is(a, 0) => Some(b),
        Op::Binary(Binary::Mul | Binary::Div, a, b) if integer && is(b, 1) => Some(a),
        Op::Binary(Binary::Mul, a, b) if integer && is(a, 1) => Some(b),
        _ => None,
    }
}

/// Puts the arm of a decided branch in the branch's place.
fn take_decided(program: &Program, block: &mut Block) {
    for mut stmt in std::mem::take(block) {
        stmt.blocks_mut().for_each(|inner| take_decided(program, inner));
        match stmt {
            Stmt::If(branch) => match program.literal(branch.condition).and_then(Literal::to_i64) {
                Some(0) => block.extend(branch.otherwise),
                Some(_) => block.extend(branch.then),
                None => block.push(Stmt::If(branch)),
            },
            other => block.push(other),
        }
    }
}
