//! Multiply-add: `a * b + c` rounded once.

use std::collections::HashMap;

use crate::syntax::*;

/// Turns a product that is used once, by a sum or difference in the same block, into a multiply-add.
///
/// This changes roundings (each result is at least as near as before): it belongs on the source program, once,
/// before it is differentiated, and never on what another pass will compare with it.
pub fn fuse_multiply_add(program: &Program) -> Program {
    let mut after = program.clone();
    let mut uses: HashMap<ValueId, usize> = HashMap::new();
    walk(&program.body, &mut |stmt| {
        stmt.uses().into_iter().for_each(|v| *uses.entry(v).or_default() += 1);
        if let Stmt::Let(v) = stmt {
            program.op(*v).operands().for_each(|o| *uses.entry(o).or_default() += 1);
        }
    });
    let mut body = std::mem::take(&mut after.body);
    form(&mut after, &mut body, &uses);
    after.body = body;
    after
}

fn form(program: &mut Program, block: &mut Block, uses: &HashMap<ValueId, usize>) {
    // Products of this block that one other value uses.
    let mut products: Vec<ValueId> = Vec::new();
    for mut stmt in std::mem::take(block) {
        stmt.blocks_mut().for_each(|inner| form(program, inner, uses));
        if let Stmt::Let(v) = stmt
            && program.ty(v).is_float()
        {
            match *program.op(v) {
                Op::Binary(Binary::Mul, ..) if uses.get(&v) == Some(&1) => products.push(v),
                Op::Binary(kind @ (Binary::Add | Binary::Sub), x, y) => {
                    let taken = match (products.contains(&x), products.contains(&y)) {
                        (true, _) => combine(program, v, kind, x, y, Side::Left),
                        (_, true) => combine(program, v, kind, y, x, Side::Right),
                        _ => None,
                    };
                    if let Some((product, place)) = taken {
                        block.retain(|s| !matches!(s, Stmt::Let(u) if *u == product));
                        if place == Place::Taken {
                            block.push(Stmt::Let(product));
                        }
                    }
                }
                _ => {}
            }
        }
        block.push(stmt);
    }
}

/// On which side of a sum or difference the product stands.
#[derive(PartialEq)]
enum Side {
    Left,
    Right,
}

/// Is the product's place in the table free, or does it hold a negation now?
#[derive(PartialEq)]
enum Place {
    Free,
    Taken,
}

/// Makes `v` a multiply-add. Negations, which are exact, take the product's place, so that operands stay before
/// their uses in the table.
fn combine(
    program: &mut Program,
    v: ValueId,
    kind: Binary,
    product: ValueId,
    other: ValueId,
    side: Side,
) -> Option<(ValueId, Place)> {
    let Op::Binary(Binary::Mul, a, b) = *program.op(product) else { return None };
    let (fused, negated) = match (kind, side) {
        (Binary::Add, _) => (Op::Fma(a, b, other), None),
        // c - a * b is (-a) * b + c, and a * b - c is a * b + (-c).
        (_, Side::Right) => (Op::Fma(product, b, other), Some(a)),
        (_, Side::Left) if other < product => (Op::Fma(a, b, product), Some(other)),
        _ => return None,
    };
    program.values[v.index()].op = fused;
    match negated {
        Some(operand) => {
            program.values[product.index()].op = Op::Unary(Unary::Neg, operand);
            Some((product, Place::Taken))
        }
        None => Some((product, Place::Free)),
    }
}
