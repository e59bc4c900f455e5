//! Periodic neighbours that are chosen by a condition: `if i == 0 { n - 1 } else { i - 1 }`, `if i + 1 < n { i + 1 } else { 0 }`.
//!
//! - Input: a program whose parallel loops have such indices, in iterations `0..n`, with `n` an extent of an array.
//! - Output: the same with `(i + n - 1) % n` and `(i + 1) % n`.
//! - Invariant: the index is the same number in every iteration. As a remainder it is one that the analyses of loads know: what
//!   flows back through it is gathered.

use ebbtide_ir::{
    Affine, Affines, Binary, Block, Compare, Literal, Op, Par, Program, Range, Stmt, Type, ValueId,
};

/// Writes periodic neighbours as remainders.
pub(crate) fn periodic_neighbours(program: &mut Program) {
    let affines = Affines::of(program);
    let mut body = std::mem::take(&mut program.body);
    in_program(program, &affines, &mut body);
    program.body = body;
}

/// The depth of recursion is that of nesting in the source.
fn in_program(program: &mut Program, affines: &Affines, block: &mut Block) {
    for stmt in block {
        match stmt {
            Stmt::Par(par) => in_loop(program, affines, par),
            _ => stmt.blocks_mut().for_each(|inner| in_program(program, affines, inner)),
        }
    }
}

fn in_loop(program: &mut Program, affines: &Affines, par: &mut Par) {
    let zero = |v: ValueId| affines.form(v).as_constant() == Some(0);
    // The sum of an index and an extent is a number.
    let is_extent = |v: ValueId| {
        let atom = affines.form(v).as_atom();
        atom.is_some_and(|atom| matches!(program.op(atom), Op::Dim(..)))
    };
    let ranges: Vec<Range> = par.ranges.iter().filter(|r| zero(r.from) && is_extent(r.to)).copied().collect();
    if !ranges.is_empty() {
        in_iterations(program, affines, &ranges, &mut par.body);
    }
}

fn in_iterations(program: &mut Program, affines: &Affines, ranges: &[Range], block: &mut Block) {
    let mut out = Block::with_capacity(block.len());
    for mut stmt in std::mem::take(block) {
        stmt.blocks_mut().for_each(|inner| in_iterations(program, affines, ranges, inner));
        if let Stmt::Let(v) = stmt
            && let Some((range, side)) =
                ranges.iter().find_map(|r| neighbour(program, affines, r, v).map(|side| (*r, side)))
        {
            let mut value = |op: Op| {
                let v = program.add_value(op, Type::Index, None);
                out.push(Stmt::Let(v));
                v
            };
            let one = value(Op::Literal(Literal::index(1)));
            let shifted = match side {
                Side::Below => {
                    let sum = value(Op::Binary(Binary::Add, range.var, range.to));
                    value(Op::Binary(Binary::Sub, sum, one))
                }
                Side::Above => value(Op::Binary(Binary::Add, range.var, one)),
            };
            program.values[v.index()].op = Op::Binary(Binary::Rem, shifted, range.to);
        }
        out.push(stmt);
    }
    *block = out;
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Below,
    Above,
}

/// Which neighbour of the range's variable the value is.
fn neighbour(program: &Program, affines: &Affines, range: &Range, v: ValueId) -> Option<Side> {
    let Op::Select(condition, then, otherwise) = *program.op(v) else { return None };
    let Op::Compare(how, a, b) = *program.op(condition) else { return None };
    if program.ty(v) != Type::Index || program.ty(a) != Type::Index {
        return None;
    }
    let [i, n] = [range.var, range.to].map(|v| affines.form(v));
    let away = |v: ValueId, from: &Affine| {
        affines.form(v).add_scaled(from, -1).and_then(|difference| difference.as_constant())
    };
    let difference = affines.form(a).add_scaled(affines.form(b), -1)?;
    for side in [Side::Below, Side::Above] {
        // How far the variable is from the end at which the neighbour is at the other one: nowhere less than zero.
        let distance = match side {
            Side::Below => i.clone(),
            Side::Above => {
                let behind = n.add_scaled(i, -1)?;
                Affine { constant: behind.constant.checked_sub(1)?, ..behind }
            }
        };
        let at_end = at_end(how, &difference, &distance);
        let (other_end, inside) = match at_end {
            Some(true) => (then, otherwise),
            Some(false) => (otherwise, then),
            None => continue,
        };
        let found = match side {
            Side::Below => away(inside, i) == Some(-1) && away(other_end, n) == Some(-1),
            Side::Above => away(inside, i) == Some(1) && affines.form(other_end).as_constant() == Some(0),
        };
        if found {
            return Some(side);
        }
    }
    None
}

/// Does a comparison of a difference with zero say that a distance, which is not below zero, is zero, or that it is not? None where it
/// says something else.
fn at_end(how: Compare, difference: &Affine, distance: &Affine) -> Option<bool> {
    let apart = |scale: i64| difference.add_scaled(distance, -scale).and_then(|rest| rest.as_constant());
    match (how, apart(1), apart(-1)) {
        (Compare::Eq, Some(0), _) | (Compare::Eq, _, Some(0)) => Some(true),
        (Compare::Ne, Some(0), _) | (Compare::Ne, _, Some(0)) => Some(false),
        // The difference is the distance, or one less.
        (Compare::Le, Some(0), _) | (Compare::Lt, Some(-1), _) => Some(true),
        (Compare::Gt, Some(0), _) | (Compare::Ge, Some(-1), _) => Some(false),
        // It is the distance below zero, or one more.
        (Compare::Ge, _, Some(0)) | (Compare::Gt, _, Some(1)) => Some(true),
        (Compare::Lt, _, Some(0)) | (Compare::Le, _, Some(1)) => Some(false),
        _ => None,
    }
}
