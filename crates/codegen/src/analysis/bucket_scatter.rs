//! Ordered sums at shared elements, by the threads of a CPU. Input: a parallel loop; output: the tables in which threads note
//! what its iterations combine, and how much.
//!
//! Iterations run side by side and note terms in buckets, by elements; then each thread combines the terms of its own elements in
//! the order of iterations (`bucket_scatter.c`). That is legal where iterations do nothing with these arrays but combine: what a
//! thread has noted is not in the array yet.

use std::collections::{BTreeMap, BTreeSet};

use ebbtide_ir::{
    ArrayId, Block, Combine, Facts, Indices, Op, Par, Program, Sharing, Stmt, Store, Type, ValueId, walk,
};

use crate::analysis::names::values_inside;
use crate::analysis::shared_updates::{Tables, tables};
use crate::analysis::work::{trip_count, work};
use crate::kernel::machine::{COMBINED, WORTH_NOTING};
use crate::kernel::work::Work;

/// The most arrays into which the iterations of a loop may combine; `EB_TABLES` of the prelude.
pub(crate) const TABLES: usize = 8;

/// The bytes of a piece of a bucket; `EB_CHUNK` of the prelude.
pub(crate) const CHUNK: usize = 2048;

/// A thread notes terms in so many bytes at most.
const ROOM: u64 = 512 << 10;

/// The bytes of a bucket without its pieces, and of what else a thread knows of a loop, rounded up to pieces.
const BUCKET: u64 = 16;
const HEAD: u64 = 2 * CHUNK as u64;

/// What iterations note.
#[derive(Clone, Debug)]
pub(crate) struct BucketScatter {
    /// The arrays, and how terms are combined with their elements.
    pub tables: Vec<(ArrayId, Combine)>,
    /// The table in which each update is noted.
    pub updates: BTreeMap<(ArrayId, Indices), usize>,
    /// How many terms an iteration notes.
    pub terms: Work,
    /// The bytes of the largest term.
    pub bytes: usize,
}

/// What the iterations of a loop note; `None` where one thread runs it as the program says.
pub(crate) fn bucket_scatter(program: &Program, facts: &Facts, par: &Par) -> Option<BucketScatter> {
    let sharing = facts.pars.get(&par.id)?;
    let noted = tables(sharing, par);
    let mut legal = noted.are_apart();
    walk(&par.body, &mut |stmt| {
        legal &= match stmt {
            Stmt::Let(v) => !matches!(program.op(*v), Op::Load(array, _) if noted.of(*array) > 0),
            Stmt::Store(s) => noted.of(s.array) == 0,
            Stmt::Update(_, s) => match sharing.of(s) {
                Sharing::Own => noted.of(s.array) == 0,
                Sharing::Reduce => false,
                Sharing::Scatter => program.array(s.array).ty != Type::Bool,
            },
            Stmt::Claim(claim) => noted.of(claim.array) + noted.of(claim.taken) == 0,
            _ => true,
        };
    });
    let Tables { tables, updates } = noted;
    let size = |table: &(ArrayId, Combine)| 2 * program.array(table.0).ty.size();
    let bytes = tables.iter().map(size).max()?;
    let terms = terms(program, &values_inside(par), &updates, &par.body);
    (legal && tables.len() <= TABLES).then_some(BucketScatter { tables, updates, terms, bytes })
}

/// How many terms a block notes. The depth of recursion is that of nesting in the source.
fn terms(
    program: &Program,
    inside: &BTreeSet<ValueId>,
    updates: &BTreeMap<(ArrayId, Indices), usize>,
    block: &Block,
) -> Work {
    let is_one = |s: &Store| updates.contains_key(&(s.array, s.index));
    let mut total = Work { own: 0, blocks: Vec::new() };
    for stmt in block {
        total.own += u64::from(matches!(stmt, Stmt::Update(_, s) if is_one(s)));
        for block in stmt.blocks() {
            let work = terms(program, inside, updates, block);
            if work != (Work { own: 0, blocks: Vec::new() }) {
                total.blocks.push((trip_count(program, inside, stmt), work));
            }
        }
    }
    total
}

/// The bytes in which so many threads together note terms while they run these segments; `value` gives what is known of a value.
pub fn room_for_notes<'p>(
    program: &'p Program,
    facts: &Facts,
    segments: impl IntoIterator<Item = &'p Block>,
    threads: usize,
    value: &dyn Fn(ValueId) -> Option<i64>,
) -> u64 {
    let mut room = 0;
    for block in segments.into_iter().filter(|_| threads > 1) {
        walk(block, &mut |stmt| {
            if let Stmt::Par(par) = stmt
                && let Some(scatter) = bucket_scatter(program, facts, par)
            {
                let work = work(program, &values_inside(par), &par.body);
                room = room.max(room_of(&scatter, &work, par, threads as u64, value));
            }
        });
    }
    room * threads as u64
}

/// The bytes in which each thread notes the terms of one loop; none where one thread runs it all the same.
fn room_of(
    scatter: &BucketScatter,
    work: &Work,
    par: &Par,
    threads: u64,
    value: &dyn Fn(ValueId) -> Option<i64>,
) -> u64 {
    let extent = |from, to| Some(value(to)?.saturating_sub(value(from)?).max(0) as f64);
    let iterations: Option<f64> = par.ranges.iter().map(|r| extent(r.from, r.to)).product();
    let fixed = HEAD + scatter.tables.len() as u64 * buckets(threads) * (BUCKET + 2 * CHUNK as u64);
    let Some(iterations) = iterations else { return fixed + ROOM };
    let terms = scatter.terms.total(&extent);
    if iterations * (work.total(&extent) + COMBINED * terms) < WORTH_NOTING {
        return 0;
    }
    let share = (iterations * terms * scatter.bytes as f64 / threads as f64) as u64;
    (fixed + share.saturating_add(share / 4).min(ROOM)).next_multiple_of(4096)
}

/// How many buckets a table has for so many threads; `eb_bucket_count` of the prelude.
fn buckets(threads: u64) -> u64 {
    match threads.next_power_of_two() {
        all if all == threads => all,
        more => 4 * more,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
mod tests {
    use ebbtide_ir::{parse, verify};

    use super::{HEAD, ROOM, room_for_notes};

    /// The bytes of so many threads for `for i in par(0..n) { body }`.
    fn room(body: &str, threads: usize, n: i64) -> u64 {
        let text = format!(
            "program p(k: &Array1<i32>, x: &Array1<f64>, y: &mut Array1<f64>, s: &mut Array0<f64>) {{
                for i in par(0..x.len()) {{ {body} }}
            }}"
        );
        let program = parse(&text).unwrap();
        let facts = verify(&program).unwrap();
        let value = |v| Some(program.literal(v).map_or(n, |literal| literal.to_i64().unwrap()));
        room_for_notes(&program, &facts, [&program.body], threads, &value)
    }

    #[test]
    fn terms_have_room_where_threads_note_them() {
        let scatter = "y[k[i] as usize] += x[i];";
        assert_eq!(room(scatter, 1, 100_000), 0);
        assert_eq!(room(scatter, 4, 100), 0);
        assert!(room(scatter, 4, 100_000) >= 16 * 100_000);
        assert!(room(scatter, 4, 100_000_000) < 4 * (ROOM + 64 * HEAD));
    }

    #[test]
    fn what_one_thread_runs_has_no_room() {
        assert_eq!(room("y[i] += x[i];", 4, 100_000), 0);
        assert_eq!(room("y[k[i] as usize] += x[i]; s[[]] += x[i];", 4, 100_000), 0);
    }
}
