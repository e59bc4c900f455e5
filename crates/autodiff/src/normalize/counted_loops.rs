//! `while` loops that count: `while k < n && … { …; k = k + 1 }`.
//!
//! - Input: the body of a parallel loop.
//! - Output: the same with such a loop as `for _ in 0..n - k + 1 { if … { … } else { break } }`.
//! - Invariant: the same statements run, and the condition is asked as often. The number of iterations has a bound that is
//!   known before the program starts, so that what they find can be kept.

use ebbtide_ir::{
    Binary, Block, Branch, Compare, Literal, LocalId, Loop, LoopKind, Op, Program, Stmt, Type, Unary,
    ValueId, depends_on_arguments_alone, walk,
};

use crate::normalize::early::computed_again;

/// Gives the counting loops of a parallel body a bound.
pub(crate) fn bound_counting_loops(program: &mut Program, body: &mut Block) {
    let whole = body.clone();
    in_block(program, &whole, body);
}

/// The depth of recursion is that of nesting in the source.
fn in_block(program: &mut Program, whole: &Block, block: &mut Block) {
    let mut out = Block::with_capacity(block.len());
    for mut stmt in std::mem::take(block) {
        let counter = match &stmt {
            Stmt::Loop(l) => counter(program, whole, l),
            _ => None,
        };
        stmt.blocks_mut().for_each(|inner| in_block(program, whole, inner));
        match (stmt, counter) {
            (Stmt::Loop(l), Some(counter)) => counted(program, l, counter, &mut out),
            (stmt, _) => out.push(stmt),
        }
    }
    *block = out;
}

/// What a loop counts from, and the number that it stays below.
struct Counter {
    start: ValueId,
    limit: ValueId,
}

fn counter(program: &Program, whole: &Block, l: &Loop) -> Option<Counter> {
    let LoopKind::While { head, condition } = &l.kind else { return None };
    if l.until.is_some() {
        return None;
    }
    let mut conditions = vec![*condition];
    while let Some(v) = conditions.pop() {
        let (counted, limit) = match *program.op(v) {
            Op::Binary(Binary::And, a, b) => {
                conditions.extend([a, b]);
                continue;
            }
            Op::Get(local) => {
                conditions.extend(both(head, local).into_iter().flatten());
                continue;
            }
            Op::Compare(Compare::Lt, a, b) => (a, b),
            Op::Compare(Compare::Gt, a, b) => (b, a),
            _ => continue,
        };
        let mut read = false;
        walk(head, &mut |stmt| read |= matches!(stmt, Stmt::Let(v) if *v == counted));
        if let Op::Get(local) = *program.op(counted)
            && read
            && is_known_integer(program, limit)
            && let Some(start) = counted_from(program, whole, l, local)
        {
            return Some(Counter { start, limit });
        }
    }
    None
}

/// The two parts of `a && b`, which is `let mut both = a; if a { both = b }`.
fn both(head: &Block, local: LocalId) -> Option<[ValueId; 2]> {
    let first = head.iter().find_map(|stmt| match stmt {
        Stmt::Declare(declared, v) if *declared == local => Some(*v),
        _ => None,
    })?;
    let mut sets = 0;
    walk(head, &mut |stmt| sets += usize::from(matches!(stmt, Stmt::Set(set, _) if *set == local)));
    let second = head.iter().find_map(|stmt| match stmt {
        Stmt::If(branch) if branch.condition == first => branch.then.iter().find_map(|stmt| match stmt {
            Stmt::Set(set, v) if *set == local => Some(*v),
            _ => None,
        }),
        _ => None,
    })?;
    (sets == 1).then_some([first, second])
}

fn is_known_integer(program: &Program, v: ValueId) -> bool {
    let ty = program.ty(v);
    (ty == Type::Index || ty.is_integer()) && depends_on_arguments_alone(program, v)
}

/// Where a variable starts that a loop increases by one in each iteration, and that nothing else sets.
fn counted_from(program: &Program, whole: &Block, l: &Loop, local: LocalId) -> Option<ValueId> {
    let (mut starts, mut sets) = (Vec::new(), 0);
    walk(whole, &mut |stmt| match stmt {
        Stmt::Declare(declared, v) if *declared == local => starts.push(*v),
        Stmt::Set(set, _) if *set == local => sets += 1,
        _ => {}
    });
    let one = |v: ValueId| program.literal(v).and_then(Literal::to_i64) == Some(1);
    let own = |v: ValueId| matches!(program.op(v), Op::Get(read) if *read == local);
    let counts = |v: ValueId| match *program.op(v) {
        Op::Binary(Binary::Add, a, b) => (own(a) && one(b)) || (own(b) && one(a)),
        _ => false,
    };
    let counted = l.body.iter().any(|stmt| matches!(stmt, Stmt::Set(set, v) if *set == local && counts(*v)));
    match starts.as_slice() {
        [start] if sets == 1 && counted && is_known_integer(program, *start) => Some(*start),
        _ => None,
    }
}

fn counted(program: &mut Program, l: Loop, counter: Counter, out: &mut Block) {
    let LoopKind::While { head, condition } = l.kind else { return };
    // The limit may be computed in the condition alone.
    let [limit, start] = [counter.limit, counter.start].map(|v| computed_again(program, out, v));
    let mut value = |op: Op, ty: Type| program.add_value(op, ty, None);
    let (limit, start) = (value(Op::Cast(limit), Type::Index), value(Op::Cast(start), Type::Index));
    let (zero, one) = (
        value(Op::Literal(Literal::index(0)), Type::Index),
        value(Op::Literal(Literal::index(1)), Type::Index),
    );
    let most = value(Op::Binary(Binary::Sub, limit, start), Type::Index);
    let most = [most, value(Op::Binary(Binary::Max, most, zero), Type::Index)];
    // The condition is asked once more than the loop runs.
    let to = value(Op::Binary(Binary::Add, most[1], one), Type::Index);
    let var = value(Op::LoopVar, Type::Index);
    let over = value(Op::Unary(Unary::Not, condition), Type::Bool);
    out.extend([limit, start, zero, one, most[0], most[1], to].map(Stmt::Let));
    let mut body = head;
    body.push(Stmt::Let(over));
    body.push(Stmt::If(Branch { condition, then: l.body, otherwise: Block::new() }));
    let kind = LoopKind::For { var, from: zero, to };
    out.push(Stmt::Loop(Loop {
        id: l.id,
        kind,
        body,
        sums: Vec::new(),
        until: Some(over),
        schedule: l.schedule,
    }));
}
