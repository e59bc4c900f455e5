//! Loads that come first.
//!
//! In a body without checks and without loops, what is loaded depends on indices and on conditions over indices alone. All of
//! these are printed first, then what is computed of them: all loads of an iteration are on their way before anything
//! waits for one of them.

use std::collections::{BTreeMap, BTreeSet};

use ebbtide_ir::{ArrayId, Branch, Op, Stmt, Type, ValueId, walk};

use crate::unit::Text;

/// Which statements of a body are printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Phase {
    /// All of them, in order.
    #[default]
    Whole,
    /// Indices, conditions over them, and loads.
    Loads,
    /// The others.
    Rest,
}

/// What the first phase printed.
#[derive(Debug, Default)]
pub(crate) struct Early {
    values: BTreeSet<ValueId>,
    /// The names of the conditions of arms, by iteration and by the arm's first and second number.
    masks: BTreeMap<(usize, usize, usize), String>,
    /// What was stored before, in the order of the program: loads behind that read it.
    stored: BTreeSet<ArrayId>,
}

impl Text<'_> {
    /// A phase begins for one of the iterations side by side.
    pub fn begin_phase(&mut self, phase: Phase) {
        self.phase = phase;
        self.early.stored.clear();
    }

    /// Is the statement printed in this phase?
    pub fn in_phase(&mut self, stmt: &Stmt) -> bool {
        match (self.phase, stmt) {
            (Phase::Whole, _) => true,
            (Phase::Loads, Stmt::Let(v)) => {
                let early = self.is_early(*v);
                if early {
                    self.early.values.insert(*v);
                }
                early
            }
            (Phase::Loads, Stmt::If(branch)) => {
                let early = self.known_early(branch.condition) && self.straight(branch);
                if !early {
                    self.note_stores(stmt);
                }
                early
            }
            (Phase::Loads, _) => {
                self.note_stores(stmt);
                false
            }
            (Phase::Rest, Stmt::Let(v)) => !self.early.values.contains(v),
            (Phase::Rest, _) => true,
        }
    }

    fn note_stores(&mut self, stmt: &Stmt) {
        walk(std::slice::from_ref(stmt), &mut |stmt| {
            if let Stmt::Store(s) | Stmt::Update(_, s) = stmt {
                self.early.stored.insert(s.array);
            }
        });
    }

    fn known_early(&self, v: ValueId) -> bool {
        !self.inside.contains(&v) || self.program.literal(v).is_some() || self.early.values.contains(&v)
    }

    /// Is the value an index, a condition over indices, or an element, and known before anything is computed of elements?
    fn is_early(&self, v: ValueId) -> bool {
        let over_indices = |v: ValueId| matches!(self.program.ty(v), Type::Index | Type::Bool);
        let op = self.program.op(v);
        let kind = match op {
            Op::Load(array, _) => !self.early.stored.contains(array),
            Op::Literal(_) => true,
            _ => op.is_pure() && over_indices(v) && op.operands().all(over_indices),
        };
        // Loops inside the body are not printed in this phase: a variable is one of the parallel loop itself.
        let parallel = |v: ValueId| *self.program.op(v) == Op::LoopVar;
        kind && op.operands().all(|o| parallel(o) || self.known_early(o))
    }

    /// The name of the condition of an arm, and whether it is a new one.
    pub fn mask_name(&mut self, branch: &Branch, arm: usize) -> (String, bool) {
        let key = (self.side(), std::ptr::from_ref(branch).addr(), arm);
        match (self.phase, self.early.masks.get(&key)) {
            (Phase::Rest, Some(name)) => (name.clone(), false),
            (phase, _) => {
                let name = format!("m{}", self.fresh());
                if phase == Phase::Loads {
                    self.early.masks.insert(key, name.clone());
                }
                (name, true)
            }
        }
    }
}
