//! Conditions over indices that tell what happens at boundaries. Input: a parallel loop; output: what they are far from there.

use std::collections::{BTreeMap, BTreeSet};

use ebbtide_ir::{Block, Op, Par, Program, Stmt, Type, ValueId, evaluate, walk};

/// What conditions are far from boundaries.
pub(crate) type FarFromBoundaries = BTreeMap<ValueId, bool>;

/// What the conditions of branches are in most iterations of a loop whose values are `inside`, where that depends on indices
/// alone.
pub(crate) fn conditions_far_from_boundaries(
    program: &Program,
    inside: &BTreeSet<ValueId>,
    par: &Par,
) -> FarFromBoundaries {
    let of_indices = of_indices(program, inside, par);
    let mut decided = FarFromBoundaries::new();
    let mut blocks: Vec<&Block> = vec![&par.body];
    while let Some(block) = blocks.pop() {
        for stmt in block {
            let Stmt::If(branch) = stmt else {
                blocks.extend(stmt.blocks());
                continue;
            };
            let at = |at| far_from_boundaries(program, branch.condition, at);
            let [left, holds, right] = [at(100), at(500), at(900)];
            if of_indices.contains(&branch.condition) && left == holds && holds == right {
                decided.insert(branch.condition, holds);
                blocks.push(if holds { &branch.then } else { &branch.otherwise });
            } else {
                blocks.extend([&branch.then, &branch.otherwise]);
            }
        }
    }
    decided
}

/// The indices and conditions of a loop's body that are computed of its variables alone.
fn of_indices(program: &Program, inside: &BTreeSet<ValueId>, par: &Par) -> BTreeSet<ValueId> {
    let mut known: BTreeSet<ValueId> = par.ranges.iter().map(|r| r.var).collect();
    walk(&par.body, &mut |stmt| {
        let Stmt::Let(v) = stmt else { return };
        let op = program.op(*v);
        let plain = op.is_pure() && matches!(program.ty(*v), Type::Index | Type::Bool);
        if plain && op.operands().all(|o| known.contains(&o) || !inside.contains(&o)) {
            known.insert(*v);
        }
    });
    known
}

/// The statements of a loop that compute these conditions.
pub(crate) fn statements_of(
    program: &Program,
    inside: &BTreeSet<ValueId>,
    par: &Par,
    decided: &FarFromBoundaries,
) -> Block {
    let mut needed: Vec<ValueId> = decided.keys().copied().collect();
    let mut at = 0;
    while at < needed.len() {
        needed.extend(program.op(needed[at]).operands().filter(|o| inside.contains(o)));
        at += 1;
    }
    let needed: BTreeSet<ValueId> = needed.into_iter().collect();
    let mut lets = Block::new();
    walk(&par.body, &mut |stmt| {
        if let Stmt::Let(v) = stmt
            && needed.contains(v)
        {
            lets.push(stmt.clone());
        }
    });
    lets
}

/// What conditions are tried with in place of sizes. It is a little more than twice the index in the middle: of an index and a length
/// that shrinks with a loop around it (`i < n - t`), the length is greater.
const SIZE: u64 = 1010;

/// Tries a condition with sizes of [`SIZE`] and indices of `at`: where it leads in the middle is where most iterations go.
pub(crate) fn far_from_boundaries(program: &Program, v: ValueId, at: u64) -> bool {
    let index = at;
    let mut known: BTreeMap<ValueId, u64> = BTreeMap::new();
    let mut needed = vec![v];
    let mut at = 0;
    while at < needed.len() {
        needed.extend(program.op(needed[at]).operands());
        at += 1;
    }
    needed.sort_unstable();
    needed.dedup();
    for v in needed {
        let bits = match program.op(v) {
            Op::LoopVar => index,
            Op::Scalar(_) | Op::Dim(..) | Op::Get(_) | Op::Load(..) => SIZE,
            _ => match evaluate::evaluate(program, v, |o| known.get(&o).copied().unwrap_or(0)) {
                Some(Ok(bits)) => bits,
                _ => SIZE,
            },
        };
        known.insert(v, bits);
    }
    known.get(&v).is_some_and(|bits| *bits != 0)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
mod tests {
    use ebbtide_ir::{parse, verify_source};

    use super::*;

    /// What is the condition of the only branch of a parallel loop in a loop over `t`, in the middle?
    fn in_the_middle(condition: &str) -> bool {
        let text = format!(
            "program p(x: &mut Array1<f64>) {{ let n = x.len(); for t in 0..n {{ for i in par(0..n) {{ if {condition} {{ x[i] = 0.0; }} }} }} }}"
        );
        let program = verify_source(&parse(&text).unwrap()).unwrap();
        let mut found = None;
        walk(&program.body, &mut |stmt| {
            if let Stmt::If(branch) = stmt {
                found = Some(far_from_boundaries(&program, branch.condition, 500));
            }
        });
        found.unwrap()
    }

    #[test]
    fn an_index_is_less_than_a_length_that_shrinks_with_the_loop_around() {
        assert!(in_the_middle("i < n - t"));
        assert!(in_the_middle("i < n - 1 - t"));
        assert!(in_the_middle("i + t < n"));
        assert!(in_the_middle("i < t + 1"));
        assert!(!in_the_middle("i >= n - t"));
    }
}
