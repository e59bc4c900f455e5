//! A gradient program, and what its driver must know of it.

use std::collections::BTreeMap;

use ebbtide_ir::{ArrayId, Block, LoopId, LoopKind, Program, RegionId, Role, Stmt, ValueId, walk};

use crate::analysis::regions::Hosted;

/// A gradient program and what its parameters mean. Its parameters are those of the source, in order (arrays are
/// only read), then the seed where there is one, then the values, then the derivatives, each in the order asked
/// for.
#[derive(Clone, Debug)]
pub struct Gradient {
    /// The program.
    pub program: Program,
    /// The parameter for the cotangent of the output, if it is an argument.
    pub seed: Option<ArrayId>,
    /// The parameters that receive values.
    pub values: Vec<ArrayId>,
    /// The parameters that receive derivatives.
    pub derivatives: Vec<ArrayId>,
    /// For each loop under a schedule, how often an iteration pushes each array.
    pub pushes: BTreeMap<LoopId, Vec<Pushes>>,
    /// How often arrays are pushed outside these loops.
    pub pushes_outside: Vec<Pushes>,
    /// The regions of the source that yield.
    pub hosted: BTreeMap<RegionId, Hosted>,
    /// Which region of the source each region of the program is a copy of.
    pub copies: BTreeMap<RegionId, RegionId>,
    /// The shadow of each active array.
    pub shadows: BTreeMap<ArrayId, ArrayId>,
}

/// How often one iteration of a loop pushes an array: once for each iteration of the loops around the push. An array that is a tape of
/// elements is pushed by each parallel loop that writes to it, and only the run knows how many of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pushes {
    /// The array.
    pub array: ArrayId,
    /// The variable of the loop whose iterations are counted, where it has one.
    pub counted: Option<ValueId>,
    /// The loops between that loop and the push, outermost first.
    pub within: Vec<InnerLoop>,
}

/// A loop around a push.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InnerLoop {
    /// Its bounds may depend on the variables of loops around it.
    Counted(CountedLoop),
    /// It runs until something that it computes says that it is done.
    Uncounted,
}

/// A loop that counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CountedLoop {
    /// Its variable.
    pub var: ValueId,
    /// The first value of the variable.
    pub from: ValueId,
    /// The value at which the loop ends.
    pub to: ValueId,
}

/// What becomes of a loop inside a loop (or a branch) that is reversed; and of any loop that nobody can count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Inner {
    /// Its whole tape is part of the tape of the iteration around it, or of the program: nothing is run again, and the host is not
    /// asked.
    Recorded,
    /// The iteration around it records what it needs to be run again; when that iteration is reversed, it is swept under a
    /// schedule of its own.
    Swept,
}

/// The pushes of a block, sweeps left out, with the inner loops around each. `counted` is the variable of the loop that has
/// the block for its body.
pub fn pushes(program: &Program, block: &Block, counted: Option<ValueId>) -> Vec<Pushes> {
    fn collect(program: &Program, block: &Block, around: &mut Pushes, out: &mut Vec<Pushes>) {
        for stmt in block {
            match stmt {
                Stmt::Push(push) => out.push(Pushes { array: push.array, ..around.clone() }),
                Stmt::Par(par) => walk(&par.body, &mut |stmt| {
                    if let Stmt::Store(s) = stmt
                        && let Role::Tape(_) = program.array(s.array).role
                    {
                        out.push(Pushes { array: s.array, ..around.clone() });
                    }
                }),
                Stmt::Loop(l) => {
                    around.within.push(match l.kind {
                        LoopKind::For { var, from, to } if l.until.is_none() => {
                            InnerLoop::Counted(CountedLoop { var, from, to })
                        }
                        _ => InnerLoop::Uncounted,
                    });
                    collect(program, &l.body, around, out);
                    around.within.pop();
                }
                // What a sweep pushes is counted with it.
                Stmt::Forward(_) | Stmt::Backward(_) => {}
                _ => stmt.blocks().for_each(|b| collect(program, b, around, out)),
            }
        }
    }
    let mut out = Vec::new();
    let mut around = Pushes { array: ArrayId::from_index(0), counted, within: Vec::new() };
    collect(program, block, &mut around, &mut out);
    out
}
