//! What a segment names. Input: a block of the program; output: its values, locals, arrays, tapes and regions.

use std::collections::BTreeSet;

use ebbtide_ir::{
    After, ArrayId, Block, Combine, Facts, LocalId, Loop, LoopKind, Op, Par, ParFacts, Program, Push, Region,
    Sharing, Stmt, Store, ValueId, walk, walk_program_level,
};

/// What a piece of program uses and makes, outside the bodies of parallel loops.
#[derive(Default)]
pub(crate) struct Names {
    pub defined: BTreeSet<ValueId>,
    pub used: BTreeSet<ValueId>,
    pub locals: BTreeSet<LocalId>,
    pub arrays: BTreeSet<ArrayId>,
}

impl Names {
    pub fn of(program: &Program, block: &Block) -> Names {
        let mut names = Names::default();
        walk_program_level(block, &mut |stmt| match stmt {
            Stmt::Let(v) => drop(names.defined.insert(*v)),
            Stmt::Loop(Loop { kind: LoopKind::For { var, .. }, .. }) => drop(names.defined.insert(*var)),
            _ => {}
        });
        let mut outer_locals = BTreeSet::new();
        walk_program_level(block, &mut |stmt| match stmt {
            Stmt::Declare(local, _) | Stmt::Set(local, _) => drop(outer_locals.insert(*local)),
            Stmt::Let(v) => {
                if let Op::Get(local) = program.op(*v) {
                    outer_locals.insert(*local);
                }
            }
            _ => {}
        });
        names.locals = outer_locals;
        let mut inside = BTreeSet::new();
        let mut declared_inside = BTreeSet::new();
        walk(block, &mut |stmt| {
            names.used.extend(stmt.uses());
            names.arrays.extend(arrays_of(program, stmt));
            match stmt {
                Stmt::Let(v) => {
                    inside.insert(*v);
                    let op = program.op(*v);
                    names.used.extend(op.operands());
                    if let Op::Get(local) = op {
                        names.locals.insert(*local);
                    }
                }
                Stmt::Declare(local, _) => drop(declared_inside.insert(*local)),
                Stmt::Loop(Loop { kind: LoopKind::For { var, .. }, .. }) => drop(inside.insert(*var)),
                Stmt::Par(par) => inside.extend(par.ranges.iter().map(|r| r.var)),
                _ => {}
            }
        });
        // Locals of parallel bodies are variables of those bodies.
        walk(block, &mut |stmt| {
            if let Stmt::Par(par) = stmt {
                walk(&par.body, &mut |inner| {
                    if let Stmt::Declare(local, _) = inner {
                        names.locals.remove(local);
                    }
                });
            }
        });
        names.used.retain(|v| !inside.contains(v) && !matches!(program.op(*v), Op::Literal(_)));
        names
    }
}

/// The arrays that a statement names itself, without its blocks.
pub(crate) fn arrays_of(program: &Program, stmt: &Stmt) -> Vec<ArrayId> {
    match stmt {
        Stmt::Let(v) => match program.op(*v) {
            Op::Load(a, _) | Op::Dim(a, _) => vec![*a],
            _ => Vec::new(),
        },
        Stmt::Store(s) | Stmt::Update(_, s) => vec![s.array],
        Stmt::Swap(a, b) | Stmt::Copy { from: a, to: b, .. } => vec![*a, *b],
        Stmt::Fill(a, ..) | Stmt::Temp(a) | Stmt::Pop(a) => vec![*a],
        Stmt::Push(Push { array, after: After::Anything(old) }) => vec![*array, *old],
        Stmt::Push(push) => vec![push.array],
        Stmt::Claim(claim) => vec![claim.array, claim.taken],
        Stmt::Library(call) => call.arrays().collect(),
        Stmt::Region(region) => region.flag.into_iter().collect(),
        _ => Vec::new(),
    }
}

/// The regions of a block.
pub(crate) fn regions(block: &Block) -> Vec<&Region> {
    let mut regions = Vec::new();
    walk_program_level(block, &mut |stmt| {
        if let Stmt::Region(region) = stmt {
            regions.push(region);
        }
    });
    regions
}

/// The arrays whose tapes a block uses.
pub(crate) fn taped(block: &Block) -> BTreeSet<ArrayId> {
    let mut taped = BTreeSet::new();
    walk_program_level(block, &mut |stmt| match stmt {
        Stmt::Push(push) => drop(taped.insert(push.array)),
        Stmt::Pop(array) => drop(taped.insert(*array)),
        _ => {}
    });
    taped
}

/// The arrays that a block writes, or whose memory it exchanges.
pub(crate) fn written(block: &Block) -> BTreeSet<ArrayId> {
    let mut written = BTreeSet::new();
    walk(block, &mut |stmt| match stmt {
        Stmt::Store(s) | Stmt::Update(_, s) => drop(written.insert(s.array)),
        Stmt::Swap(a, b) => written.extend([*a, *b]),
        Stmt::Fill(a, ..) | Stmt::Temp(a) | Stmt::Pop(a) | Stmt::Copy { to: a, .. } => {
            written.insert(*a);
        }
        Stmt::Push(push) => {
            written.insert(push.array);
            if let After::Anything(old) = push.after {
                written.insert(old);
            }
        }
        Stmt::Library(call) => written.extend(call.writes.iter().copied()),
        Stmt::Claim(claim) => drop(written.insert(claim.taken)),
        _ => {}
    });
    written
}

/// The values of a parallel loop, its variables included.
pub(crate) fn values_inside(par: &Par) -> BTreeSet<ValueId> {
    let mut inside: BTreeSet<ValueId> = par.ranges.iter().map(|r| r.var).collect();
    walk(&par.body, &mut |stmt| match stmt {
        Stmt::Let(v) => drop(inside.insert(*v)),
        Stmt::Loop(Loop { kind: LoopKind::For { var, .. }, .. }) => drop(inside.insert(*var)),
        _ => {}
    });
    inside
}

/// How the iterations of a parallel loop share what they write.
pub(crate) fn sharing(facts: &Facts, par: &Par) -> ParFacts {
    facts.pars.get(&par.id).cloned().unwrap_or_default()
}

/// Does every iteration combine here, whatever the data?
pub(crate) fn always_combines(par: &Par, store: &Store) -> bool {
    par.body.iter().any(|stmt| matches!(stmt, Stmt::Update(_, s) if std::ptr::eq(s, store)))
}

/// The updates of a parallel loop that are sums, or minima or maxima, over its iterations, in source order: their places in it are
/// their numbers.
pub(crate) fn reductions<'s>(facts: &Facts, par: &'s Par) -> Vec<(Combine, &'s Store)> {
    let facts = sharing(facts, par);
    let mut reductions = Vec::new();
    walk(&par.body, &mut |stmt| match stmt {
        Stmt::Update(how, s) if facts.of(s) == Sharing::Reduce => reductions.push((*how, s)),
        _ => {}
    });
    reductions
}

/// Do iterations of a parallel loop combine into elements that others combine into, wherever data tells them?
pub(crate) fn scatters(facts: &Facts, par: &Par) -> bool {
    let facts = sharing(facts, par);
    let mut scatters = false;
    walk(&par.body, &mut |stmt| {
        scatters |= matches!(stmt, Stmt::Update(_, s) if facts.of(s) == Sharing::Scatter);
    });
    scatters
}
