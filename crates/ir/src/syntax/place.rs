//! Where a program stands: a region and the iterations of the loops around it.

use super::ids::*;
use super::program::*;

/// A region and, for each sequential loop around it, outermost first, how many iterations were finished before
/// this one. Together with the program this is a full path.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    /// The region.
    pub region: RegionId,
    /// Finished iterations of each enclosing loop, outermost first.
    pub iterations: Vec<u64>,
}

/// What a region puts back when it yields.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Undone {
    /// Arrays.
    pub arrays: Vec<ArrayId>,
    /// Local variables.
    pub locals: Vec<LocalId>,
}

impl Undone {
    /// What this region puts back: what it writes and did not make itself, but for its flag.
    pub fn by(region: &Region) -> Undone {
        if region.flag.is_none() || region.undo == Undo::Nothing {
            return Undone::default();
        }
        let (mut made, mut undone) = (Vec::new(), Undone::default());
        walk(&region.body, &mut |stmt| match stmt {
            Stmt::Temp(a) => made.push(*a),
            Stmt::Set(local, _) => undone.locals.push(*local),
            _ => {}
        });
        walk(&region.body, &mut |stmt| {
            if let Stmt::Declare(local, _) = stmt {
                undone.locals.retain(|l| l != local);
            }
        });
        undone.locals.sort_unstable();
        undone.locals.dedup();
        undone.arrays = written(&region.body);
        if let Undo::Arrays(arrays) = &region.undo {
            undone.locals.clear();
            undone.arrays.retain(|a| arrays.contains(a));
        }
        undone.arrays.retain(|a| Some(*a) != region.flag && !made.contains(a));
        undone
    }
}

/// One step of the way down to a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turn {
    /// Which statement of the block.
    pub child: usize,
    /// Which of the statement's blocks comes next.
    pub block: usize,
}

/// The way from the program's body down to a region; the last turn stops at the region itself.
pub fn path_to(program: &Program, region: RegionId) -> Option<Vec<Turn>> {
    path_in(&program.body, region)
}

/// The way from a block down to a region; the last turn stops at the region itself.
pub(crate) fn path_in(block: &Block, region: RegionId) -> Option<Vec<Turn>> {
    // Depth-first over (block, next child), with the turns taken so far.
    let mut path: Vec<Turn> = Vec::new();
    let mut stack: Vec<(&Block, usize)> = vec![(block, 0)];
    while let Some((block, child)) = stack.last_mut() {
        let Some(stmt) = block.get(*child) else {
            stack.pop();
            // Back in the parent: try the statement's next block, or go on behind it.
            if let (Some(turn), Some((parent, next))) = (path.last_mut(), stack.last_mut()) {
                turn.block += 1;
                match parent[*next].blocks().nth(turn.block) {
                    Some(inner) => stack.push((inner, 0)),
                    None => {
                        path.pop();
                        *next += 1;
                    }
                }
            }
            continue;
        };
        if let Stmt::Region(found) = stmt
            && found.id == region
        {
            path.push(Turn { child: *child, block: 0 });
            return Some(path);
        }
        match stmt.blocks().next() {
            Some(inner) => {
                path.push(Turn { child: *child, block: 0 });
                stack.push((inner, 0));
            }
            None => *child += 1,
        }
    }
    None
}

/// The statements on the way down to a region, outermost first, the region included.
pub fn enclosing(program: &Program, region: RegionId) -> Vec<&Stmt> {
    let mut statements = Vec::new();
    let mut block = &program.body;
    for turn in path_to(program, region).unwrap_or_default() {
        let stmt = &block[turn.child];
        statements.push(stmt);
        match stmt.blocks().nth(turn.block) {
            Some(inner) => block = inner,
            None => break,
        }
    }
    statements
}
