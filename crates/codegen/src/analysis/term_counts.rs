//! How often an iteration comes to an ordered update at a shared element. Input: a parallel loop; output: the statements of its
//! body that tell, so that a grid can count terms before it notes them.
//!
//! These are the loops and branches around the updates, what their bounds and conditions are computed from, and nothing that
//! writes an array: iterations can run them ahead of the loop. So they may not read what the loop writes.

use std::collections::BTreeSet;

use ebbtide_ir::{
    ArrayId, Block, Branch, LocalId, Loop, LoopKind, Op, Par, ParFacts, Program, Sharing, Stmt, ValueId, walk,
};

/// The statements that come to an ordered update as often as the body does, or more often in branches without loops; `None`
/// where that depends on what the loop writes, or on sums.
pub(crate) fn counting(program: &Program, facts: &ParFacts, par: &Par) -> Option<Block> {
    let mut written = BTreeSet::new();
    walk(&par.body, &mut |stmt| match stmt {
        Stmt::Store(s) | Stmt::Update(_, s) => drop(written.insert(s.array)),
        Stmt::Claim(claim) => drop(written.insert(claim.taken)),
        _ => {}
    });
    let mut slice = Slice { program, facts, written, values: BTreeSet::new(), locals: BTreeSet::new() };
    loop {
        let known = (slice.values.len(), slice.locals.len());
        slice.needs(&par.body)?;
        if known == (slice.values.len(), slice.locals.len()) {
            return Some(slice.of(&par.body));
        }
    }
}

/// What the statements need.
struct Slice<'a> {
    program: &'a Program,
    facts: &'a ParFacts,
    /// What the loop writes.
    written: BTreeSet<ArrayId>,
    values: BTreeSet<ValueId>,
    locals: BTreeSet<LocalId>,
}

impl Slice<'_> {
    /// Adds what the kept statements of a block need, last ones first. The depth of recursion is that of nesting in the source.
    fn needs(&mut self, block: &Block) -> Option<()> {
        for stmt in block.iter().rev() {
            match stmt {
                Stmt::Let(v) if self.values.contains(v) => match self.program.op(*v) {
                    Op::Load(array, _) if self.written.contains(array) => return None,
                    Op::Get(local) => drop(self.locals.insert(*local)),
                    op => self.values.extend(op.operands()),
                },
                Stmt::Declare(local, v) | Stmt::Set(local, v) if self.locals.contains(local) => {
                    self.values.insert(*v);
                }
                Stmt::If(branch) if self.keeps(stmt) => {
                    if self.chooses(branch) {
                        self.values.insert(branch.condition);
                    }
                    self.needs(&branch.then)?;
                    self.needs(&branch.otherwise)?;
                }
                Stmt::Loop(l) if self.keeps(stmt) => {
                    if l.sums.iter().any(|sum| self.locals.contains(sum)) {
                        return None;
                    }
                    self.values.extend(l.until);
                    match &l.kind {
                        LoopKind::For { from, to, .. } => self.values.extend([*from, *to]),
                        LoopKind::While { condition, .. } => drop(self.values.insert(*condition)),
                        LoopKind::Forever => {}
                    }
                    self.needs(&l.body)?;
                    if let LoopKind::While { head, .. } = &l.kind {
                        self.needs(head)?;
                    }
                }
                _ => {}
            }
        }
        Some(())
    }

    /// Is a statement one of those that count?
    fn keeps(&self, stmt: &Stmt) -> bool {
        match stmt {
            Stmt::Let(v) => self.values.contains(v),
            Stmt::Declare(local, _) | Stmt::Set(local, _) => self.locals.contains(local),
            Stmt::Update(_, store) => self.facts.of(store) == Sharing::Scatter,
            Stmt::If(_) | Stmt::Loop(_) => {
                let mut counts = false;
                stmt.blocks().for_each(|block| walk(block, &mut |inner| counts |= self.counts(inner)));
                counts
            }
            _ => false,
        }
    }

    /// Is it an update, or does it decide how many there are?
    fn counts(&self, stmt: &Stmt) -> bool {
        match stmt {
            Stmt::Set(local, _) => self.locals.contains(local),
            Stmt::Update(_, store) => self.facts.of(store) == Sharing::Scatter,
            _ => false,
        }
    }

    /// Must it be known which way a branch goes? Of updates alone both ways are counted.
    fn chooses(&self, branch: &Branch) -> bool {
        let mut chooses = false;
        for block in [&branch.then, &branch.otherwise] {
            walk(block, &mut |inner| {
                chooses |= match inner {
                    Stmt::Loop(_) => self.keeps(inner),
                    Stmt::Set(local, _) => self.locals.contains(local),
                    _ => false,
                };
            });
        }
        chooses
    }

    /// The kept statements of a block.
    fn of(&self, block: &Block) -> Block {
        let mut out = Block::new();
        for stmt in block.iter().filter(|stmt| self.keeps(stmt)) {
            match stmt {
                Stmt::If(branch) if self.chooses(branch) => out.push(Stmt::If(Branch {
                    condition: branch.condition,
                    then: self.of(&branch.then),
                    otherwise: self.of(&branch.otherwise),
                })),
                Stmt::If(branch) => {
                    out.extend(self.of(&branch.then));
                    out.extend(self.of(&branch.otherwise));
                }
                Stmt::Loop(l) => {
                    let kind = match &l.kind {
                        LoopKind::While { head, condition } => {
                            LoopKind::While { head: self.of(head), condition: *condition }
                        }
                        kind => kind.clone(),
                    };
                    out.push(Stmt::Loop(Loop {
                        kind,
                        body: self.of(&l.body),
                        sums: Vec::new(),
                        ..l.clone()
                    }));
                }
                stmt => out.push(stmt.clone()),
            }
        }
        out
    }
}
