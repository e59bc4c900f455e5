//! Which parallel loops are flat: rows that lie one behind the other in memory can be taken as one long row. Input: a loop;
//! output: the arrays whose rows it goes through.
//!
//! The address of an element at the loop's own index is the number of the iteration, where the dimensions but the first are as
//! long as the loop's. So a loop is flat if it uses its variables for nothing but such elements, and elements some rows away.

use std::collections::{BTreeMap, BTreeSet};

use ebbtide_ir::{ArrayId, Binary, Block, Indices, LoopKind, Op, Par, Program, Stmt, ValueId};

/// The arrays that a loop touches at its own index, where it is flat if their rows are as long as its own.
pub(crate) fn flat_rows(
    program: &Program,
    par: &Par,
    inside: &BTreeSet<ValueId>,
) -> Option<BTreeSet<ArrayId>> {
    let variables: Vec<ValueId> = par.ranges.iter().map(|range| range.var).collect();
    let counted = variables.iter().enumerate().map(|(d, v)| (*v, (d, Shifted::No))).collect();
    let mut search = Search { program, inside, variables: variables.len(), counted, arrays: BTreeSet::new() };
    (variables.len() > 1 && search.block(&par.body)).then_some(search.arrays)
}

/// Is something added to a variable?
#[derive(Clone, Copy, PartialEq, Eq)]
enum Shifted {
    No,
    Yes,
}

struct Search<'p> {
    program: &'p Program,
    /// The values of the loop.
    inside: &'p BTreeSet<ValueId>,
    variables: usize,
    /// The values that are a variable of the loop, by its number, and perhaps something that is the same in all iterations.
    counted: BTreeMap<ValueId, (usize, Shifted)>,
    arrays: BTreeSet<ArrayId>,
}

impl Search<'_> {
    /// The depth of recursion is that of nesting in the source.
    fn block(&mut self, block: &Block) -> bool {
        block.iter().all(|stmt| match stmt {
            Stmt::Let(v) => self.value(*v),
            Stmt::Declare(_, v) | Stmt::Set(_, v) => !self.counted.contains_key(v),
            Stmt::Store(s) | Stmt::Update(_, s) => {
                !self.counted.contains_key(&s.value) && self.element(s.array, s.index)
            }
            Stmt::If(branch) => self.block(&branch.then) && self.block(&branch.otherwise),
            Stmt::Loop(l) => {
                let bounds = match l.kind {
                    LoopKind::For { from, to, .. } => vec![from, to],
                    _ => Vec::new(),
                };
                !bounds.iter().any(|v| self.counted.contains_key(v))
                    && stmt.blocks().all(|block| self.block(block))
            }
            _ => false,
        })
    }

    fn value(&mut self, v: ValueId) -> bool {
        let op = *self.program.op(v);
        if let Op::Load(array, index) = op {
            return self.element(array, index);
        }
        let counted = |v: ValueId| self.counted.get(&v).map(|(d, _)| *d);
        let sum = match op {
            Op::Binary(Binary::Add, a, b) => match (counted(a), counted(b)) {
                (Some(d), None) | (None, Some(d)) => Some(d),
                _ => None,
            },
            Op::Binary(Binary::Sub, a, b) if counted(b).is_none() => counted(a),
            _ => None,
        };
        match sum {
            Some(d) => {
                // What is added must be the same in all iterations.
                let fixed = |o: ValueId| !self.inside.contains(&o) || self.program.literal(o).is_some();
                let fixed = op.operands().all(|o| counted(o).is_some() || fixed(o));
                self.counted.insert(v, (d, Shifted::Yes));
                fixed
            }
            None => op.operands().all(|o| counted(o).is_none()),
        }
    }

    fn element(&mut self, array: ArrayId, index: Indices) -> bool {
        let index: Vec<_> = index.as_slice().iter().map(|v| self.counted.get(v).copied()).collect();
        if index.iter().all(Option::is_none) {
            return true;
        }
        self.arrays.insert(array);
        index.len() == self.variables
            && index.iter().enumerate().all(|(k, at)| {
                at.is_some_and(|(d, shifted)| d == k && (shifted == Shifted::No || k + 1 < self.variables))
            })
    }
}
