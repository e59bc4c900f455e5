//! Which sums over a parallel loop are taken in two goes. Input: a parallel loop; output: yes or no, and the memory for it.
//!
//! Sixteen threads take a leaf of thousands of iterations (law 8): for iterations that take long these are few threads. There all
//! threads take iterations and keep their terms, and then sixteen threads add the terms of a leaf, in the same order. That needs
//! one term of each iteration.

use std::collections::BTreeSet;

use ebbtide_ir::{Block, Facts, Op, Par, Program, Range, Sharing, Stmt, ValueId, walk};

use crate::analysis::names::{reductions, values_inside};
use crate::analysis::work::work;

/// How many iterations keep their terms at a time; `EB_WINDOW` of the prelude.
pub(crate) const WINDOW: usize = 131_072;

/// The most sums of a loop whose terms are kept.
pub(crate) const SUMS: usize = 8;

/// The words of memory for one sum: the terms, and the lanes of a leaf that has some of them, twice.
pub const TERM_WORDS: usize = WINDOW + 32;

/// Does each iteration have one term at most of each sum?
pub(crate) fn adds_once(facts: &Facts, par: &Par) -> bool {
    let Some(facts) = facts.pars.get(&par.id) else { return true };
    let mut once = true;
    walk(&par.body, &mut |stmt| {
        if let Stmt::Loop(_) = stmt {
            let mut adds = |inner: &Stmt| {
                once &= !matches!(inner, Stmt::Update(_, s) if facts.of(s) == Sharing::Reduce);
            };
            stmt.blocks().for_each(|block| walk(block, &mut adds));
        }
    });
    once
}

/// Do iterations have one term each of a sum, and take long?
pub(crate) fn keeps_terms(program: &Program, facts: &Facts, par: &Par) -> bool {
    (1..=SUMS).contains(&reductions(facts, par).len()) && adds_once(facts, par) && takes_long(program, par)
}

/// Has an iteration loops or elementary functions, or loads where loaded values say?
fn takes_long(program: &Program, par: &Par) -> bool {
    let (mut long, mut loaded) = (false, BTreeSet::<ValueId>::new());
    walk(&par.body, &mut |stmt| match stmt {
        Stmt::Loop(_) => long = true,
        Stmt::Let(v) => {
            let op = program.op(*v);
            let from_loaded = op.operands().any(|operand| loaded.contains(&operand));
            match op {
                Op::Math(..) | Op::Rand(..) => long = true,
                Op::Load(..) => {
                    long |= from_loaded;
                    loaded.insert(*v);
                }
                _ if from_loaded => drop(loaded.insert(*v)),
                _ => {}
            }
        }
        _ => {}
    });
    long
}

/// How many iterations of a loop keep their terms at a time on a CPU; `EB_KEPT` of the prelude.
pub(crate) const KEPT: usize = 16_384;

/// The bytes of the lanes of leaves that have terms in two windows.
const OPEN: u64 = 2 * 16 * 8;

/// Do the iterations of a loop keep their terms for the threads of a CPU? One thread takes a leaf of thousands of iterations
/// otherwise, so that few threads have something to do; but to keep a term takes as long as a few additions in vectors.
pub(crate) fn threads_keep_terms(program: &Program, facts: &Facts, par: &Par) -> bool {
    /// An iteration of so much work does not notice.
    const HEAVY: f64 = 512.0;
    let inside = values_inside(par);
    let mut loops = false;
    walk(&par.body, &mut |stmt| loops |= matches!(stmt, Stmt::Loop(_)));
    let extent =
        |from, to| Some((program.literal(to)?.to_i64()? - program.literal(from)?.to_i64()?).max(0) as f64);
    loops && keeps_terms(program, facts, par) && work(program, &inside, &par.body).total(&extent) >= HEAVY
}

/// The bytes in which threads keep terms of so many sums while they run these segments.
pub fn room_for_terms<'p>(
    sums: usize,
    segments: impl IntoIterator<Item = &'p Block>,
    value: &dyn Fn(ValueId) -> Option<i64>,
) -> u64 {
    let mut longest = 0;
    for block in segments.into_iter().filter(|_| sums > 0) {
        walk(block, &mut |stmt| {
            if let Stmt::Par(par) = stmt {
                let extent = |r: &Range| Some(value(r.to)?.saturating_sub(value(r.from)?).max(0));
                let iterations =
                    par.ranges.iter().map(extent).try_fold(1_i64, |n, extent| n.checked_mul(extent?));
                longest = longest.max(iterations.map_or(KEPT as u64, |n| (n as u64).min(KEPT as u64)));
            }
        });
    }
    sums as u64 * (8 * longest.next_multiple_of(16) + OPEN)
}

/// The most sums of a loop of the program whose terms threads of a CPU keep.
pub fn sums_of_kept_terms(program: &Program, facts: &Facts) -> usize {
    let mut most = 0;
    walk(&program.body, &mut |stmt| {
        if let Stmt::Par(par) = stmt
            && threads_keep_terms(program, facts, par)
        {
            most = most.max(reductions(facts, par).len());
        }
    });
    most
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
mod tests {
    use ebbtide_ir::{Stmt, parse, verify};

    use super::{WINDOW, keeps_terms};

    #[test]
    fn the_prelude_knows_as_many_iterations() {
        assert!(include_str!("../prelude/prelude.cu").contains(&format!("EB_WINDOW = {WINDOW} ")));
    }

    /// Are the terms of `for i in par(..) { … }` kept?
    fn kept(body: &str) -> bool {
        let program = parse(&format!(
            "program p(k: &Array1<i32>, x: &Array1<f64>, loss: &mut Array0<f64>) {{
                for i in par(0..k.len()) {{ {body} }}
            }}"
        ))
        .unwrap();
        let facts = verify(&program).unwrap();
        let Some(Stmt::Par(par)) = program.body.iter().find(|stmt| matches!(stmt, Stmt::Par(_))) else {
            panic!("there is a loop");
        };
        keeps_terms(&program, &facts, par)
    }

    #[test]
    fn terms_of_long_iterations_are_kept_where_each_has_one() {
        assert!(kept("loss[[]] += x[i].sin();"));
        assert!(kept("loss[[]] += x[k[i] as usize];"));
        assert!(kept(
            "let mut sum = 0.0; for j in 0..x.len() { sum = sum + x[j]; } if sum > 0.0 { loss[[]] += sum; }"
        ));
        assert!(!kept("loss[[]] += x[i] * x[i];"));
        assert!(!kept("for j in 0..x.len() { loss[[]] += x[j]; }"));
    }
}
