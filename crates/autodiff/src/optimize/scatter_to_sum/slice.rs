//! Parts of the body of a parallel loop: what one update needs, and what is left without it.

use std::collections::BTreeSet;

use ebbtide_ir::{ArrayId, Block, LocalId, Loop, LoopKind, Op, Program, Range, Stmt, ValueId, walk};

/// How many updates a statement holds.
pub(super) fn updates(stmt: &Stmt) -> usize {
    let mut count = 0;
    walk(std::slice::from_ref(stmt), &mut |s| count += usize::from(matches!(s, Stmt::Update(..))));
    count
}

/// The updates to be taken out of a statement of a parallel loop.
pub(super) struct Wanted<'b> {
    pub stmt: &'b Stmt,
    /// Which statement of the loop's body it is.
    pub at: usize,
    /// The updates, by their number in the statement.
    pub numbers: BTreeSet<usize>,
}

impl Wanted<'_> {
    /// Does a statement with this many updates before it hold one of them?
    pub fn is_in(&self, before: usize, stmt: &Stmt) -> bool {
        self.numbers.range(before..before + updates(stmt)).next().is_some()
    }
}

/// The values that come to life in a loop.
pub(super) fn defined(ranges: &[Range], body: &Block) -> BTreeSet<ValueId> {
    let mut defined: BTreeSet<ValueId> = ranges.iter().map(|r| r.var).collect();
    walk(body, &mut |stmt| match stmt {
        Stmt::Let(v) => drop(defined.insert(*v)),
        Stmt::Loop(Loop { kind: LoopKind::For { var, .. }, .. }) => drop(defined.insert(*var)),
        _ => {}
    });
    defined
}

/// Does a block declare or set the local?
pub(super) fn changes(block: &Block, local: LocalId) -> bool {
    let mut changes = false;
    walk(block, &mut |stmt| {
        changes |= matches!(stmt, Stmt::Declare(changed, _) | Stmt::Set(changed, _) if *changed == local);
    });
    changes
}

/// The statement with some of its updates, by number, and nothing else that writes an array.
pub(super) fn only(stmt: &Stmt, numbers: &BTreeSet<usize>) -> Stmt {
    let mut stmt = stmt.clone();
    let mut count = 0;
    stmt.blocks_mut().for_each(|block| {
        filter(block, &mut |stmt| match stmt {
            Stmt::Update(..) => {
                count += 1;
                numbers.contains(&(count - 1))
            }
            Stmt::Store(_) | Stmt::Claim(_) => false,
            _ => true,
        });
    });
    stmt
}

/// The statement without some of its updates; `count` is how many came before it.
pub(super) fn without(mut stmt: Stmt, taken: &BTreeSet<usize>, count: &mut usize) -> Option<Stmt> {
    let mut keep = |stmt: &Stmt| {
        let update = matches!(stmt, Stmt::Update(..));
        *count += usize::from(update);
        !(update && taken.contains(&(*count - 1)))
    };
    if !keep(&stmt) {
        return None;
    }
    stmt.blocks_mut().for_each(|block| filter(block, &mut keep));
    Some(stmt)
}

/// Keeps some statements, in the order in which [`walk`] comes to them. The depth of recursion is that of nesting.
fn filter(block: &mut Block, keep: &mut dyn FnMut(&Stmt) -> bool) {
    block.retain_mut(|stmt| {
        let kept = keep(stmt);
        stmt.blocks_mut().for_each(|inner| filter(inner, keep));
        kept
    });
}

/// The arrays of which the block loads elements.
pub(super) fn read_by(program: &Program, block: &Block) -> BTreeSet<ArrayId> {
    let mut read = BTreeSet::new();
    walk(block, &mut |stmt| {
        if let Stmt::Let(v) = stmt
            && let Op::Load(array, _) = program.op(*v)
        {
            read.insert(*array);
        }
    });
    read
}

/// What a block uses of its surroundings.
#[derive(Default)]
pub(super) struct Needs {
    pub values: BTreeSet<ValueId>,
    pub locals: BTreeSet<LocalId>,
}

/// What a block with one update uses of its surroundings; `None` where that differs between the inner iterations of the loops
/// around the update.
pub(super) fn needs(program: &Program, block: &Block) -> Option<Needs> {
    let (mut needs, mut defined) = (Needs::default(), BTreeSet::new());
    let (mut declared, mut set) = (BTreeSet::new(), BTreeSet::new());
    let mut alone = true;
    walk(block, &mut |stmt| {
        needs.values.extend(stmt.uses());
        match stmt {
            Stmt::Let(v) => {
                defined.insert(*v);
                needs.values.extend(program.op(*v).operands());
                needs.locals.extend(if let Op::Get(local) = program.op(*v) { Some(*local) } else { None });
            }
            Stmt::Declare(local, _) => drop(declared.insert(*local)),
            Stmt::Set(local, _) => drop(set.insert(*local)),
            Stmt::Loop(l) => {
                if let LoopKind::For { var, .. } = l.kind {
                    defined.insert(var);
                }
                alone &= updates(stmt) == 0 || iterations_are_alone(l);
            }
            _ => {}
        }
    });
    needs.values.retain(|v| !defined.contains(v));
    needs.locals.retain(|local| !declared.contains(local));
    (alone && set.is_subset(&declared)).then_some(needs)
}

/// Is nothing that an inner iteration sets there in the next one?
fn iterations_are_alone(l: &Loop) -> bool {
    let (mut declared, mut set) = (BTreeSet::new(), BTreeSet::new());
    walk(&l.body, &mut |stmt| match stmt {
        Stmt::Declare(local, _) => drop(declared.insert(*local)),
        Stmt::Set(local, _) => drop(set.insert(*local)),
        _ => {}
    });
    set.is_subset(&declared)
}
