//! Removes what nothing uses: values, locals, branches and loops without effect.

use std::collections::{BTreeMap, BTreeSet};

use ebbtide_ir::{ArrayId, Block, LocalId, Loop, LoopId, LoopKind, Op, Program, Stmt, ValueId, walk};

/// What is known to be used.
#[derive(Default)]
struct Used {
    values: BTreeSet<ValueId>,
    /// Locals that something reads or sets that is used.
    locals: BTreeSet<LocalId>,
    /// By loop: what an iteration of it may read before it sets it.
    on_entry: BTreeMap<LoopId, BTreeSet<LocalId>>,
}

impl Used {
    fn size(&self) -> usize {
        self.values.len() + self.locals.len() + self.on_entry.values().map(BTreeSet::len).sum::<usize>()
    }

    fn stmt(&mut self, program: &Program, stmt: &Stmt) {
        self.values.extend(stmt.uses());
        match stmt {
            Stmt::Let(v) => self.values.extend(program.op(*v).operands()),
            Stmt::Declare(local, _) | Stmt::Set(local, _) => drop(self.locals.insert(*local)),
            _ => {}
        }
    }
}

/// The block without what has no effect on arrays. Loops are kept where their bodies have effects.
pub(crate) fn prune(program: &Program, block: Block) -> Block {
    // What a local holds is used where a value that is used reads it before it is set again, maybe in the next iteration of a
    // loop: look until nothing new is found. What only feeds itself is never found.
    let mut used = Used::default();
    loop {
        let before = used.size();
        let kept = backwards(program, block.clone(), &mut used, &mut BTreeSet::new());
        if before == used.size() {
            return kept;
        }
    }
}

/// The program-level block without values that nothing in it uses. What the reverse half computes again cannot fail: it
/// did not fail in the forward half.
pub(crate) fn drop_unused_values(program: &Program, mut block: Block) -> Block {
    loop {
        let mut used = BTreeSet::new();
        walk(&block, &mut |stmt| {
            used.extend(stmt.uses());
            if let Stmt::Let(v) = stmt {
                used.extend(program.op(*v).operands());
            }
        });
        let before = block.len();
        block.retain(|stmt| !matches!(stmt, Stmt::Let(v) if !used.contains(v)));
        if block.len() == before {
            return block;
        }
    }
}

/// The block without writes of those of the arrays that it does not read.
pub(crate) fn without_unread(program: &Program, mut block: Block, arrays: &BTreeSet<ArrayId>) -> Block {
    loop {
        let mut unread = arrays.clone();
        walk(&block, &mut |stmt| {
            if let Stmt::Let(v) = stmt
                && let Op::Load(array, _) = program.op(*v)
            {
                unread.remove(array);
            }
        });
        if !forget_writes(&mut block, &unread) {
            return block;
        }
        block = prune(program, block);
    }
}

/// Takes writes of these arrays out of a block; says whether there were any.
fn forget_writes(block: &mut Block, arrays: &BTreeSet<ArrayId>) -> bool {
    let before = block.len();
    block.retain(|stmt| !matches!(stmt, Stmt::Store(s) | Stmt::Update(_, s) if arrays.contains(&s.array)));
    let mut found = block.len() < before;
    for stmt in block {
        stmt.blocks_mut().for_each(|inner| found |= forget_writes(inner, arrays));
    }
    found
}

/// Goes through a block backwards; `live` are the locals whose contents are read behind it, and then before it.
fn backwards(program: &Program, block: Block, used: &mut Used, live: &mut BTreeSet<LocalId>) -> Block {
    let mut kept = Block::new();
    for mut stmt in block.into_iter().rev() {
        let keep = match &mut stmt {
            Stmt::Let(v) => used.values.contains(v),
            Stmt::Set(local, _) => live.remove(local),
            Stmt::Declare(local, _) => live.remove(local) || used.locals.contains(local),
            Stmt::If(branch) => {
                let mut otherwise = live.clone();
                branch.then = backwards(program, std::mem::take(&mut branch.then), used, live);
                branch.otherwise =
                    backwards(program, std::mem::take(&mut branch.otherwise), used, &mut otherwise);
                live.append(&mut otherwise);
                !(branch.then.is_empty() && branch.otherwise.is_empty())
            }
            Stmt::Loop(l) => iterations(program, l, used, live),
            Stmt::Par(par) => {
                let mut inside = live.clone();
                par.body = backwards(program, std::mem::take(&mut par.body), used, &mut inside);
                live.append(&mut inside);
                !par.body.is_empty()
            }
            _ => true,
        };
        if keep {
            used.stmt(program, &stmt);
            if let Stmt::Let(v) = &stmt
                && let Op::Get(local) = program.op(*v)
            {
                live.insert(*local);
            }
            kept.push(stmt);
        }
    }
    kept.reverse();
    kept
}

/// The same for the iterations of a loop; says whether there is something in them.
fn iterations(program: &Program, l: &mut Loop, used: &mut Used, live: &mut BTreeSet<LocalId>) -> bool {
    let mut inside = live.clone();
    inside.extend(used.on_entry.get(&l.id).into_iter().flatten());
    l.body = backwards(program, std::mem::take(&mut l.body), used, &mut inside);
    if let LoopKind::While { head, .. } = &mut l.kind {
        // It is left behind its head.
        inside.extend(live.iter());
        *head = backwards(program, std::mem::take(head), used, &mut inside);
    }
    l.sums.retain(|local| used.locals.contains(local));
    let keep = match &l.kind {
        LoopKind::While { head, condition } => {
            let keep = !l.body.is_empty() || !head.is_empty();
            used.values.extend(keep.then_some(*condition));
            keep
        }
        _ => !l.body.is_empty(),
    };
    if keep {
        used.values.extend(l.until);
    }
    live.extend(inside.iter());
    used.on_entry.entry(l.id).or_default().extend(inside);
    keep
}
