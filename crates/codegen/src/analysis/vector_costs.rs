//! Whether vectors pay. Input: a parallel loop that has a vector form; output: whether it takes less time than iterations one by
//! one, and from how many iterations of a row on a part of a vector does.
//!
//! It decides speed, never what is computed.

use std::collections::BTreeSet;

use ebbtide_ir::{
    Affines, ArrayId, Binary, Block, Indices, Literal, Loop, LoopKind, Op, Par, Program, Stmt, Unary, ValueId,
};

use crate::analysis::along_rows::along_rows;
use crate::analysis::gathers::Gathers;
use crate::analysis::interior::Interior;
use crate::analysis::vectors::{Stride, stride};

/// What a part of a vector costs before it computes anything: the next row reads what lies beside what this one writes, and
/// waits for it. Costs are counted in additions of single numbers, of which a processor makes four or five at a time.
const PART: usize = 200;
/// How often loops are taken to run, at most.
const TRIPS: usize = 10;
/// The least that an iteration costs that adds to what the one before it left: the next waits for it.
const CHAIN: usize = 20;
/// What it costs to bring an element to its lane, where neighbouring lanes are not neighbours in memory.
const LANE: usize = 8;
/// The same, where a loop goes along the rows that lanes have, and squares of them are turned round: of a vector.
const TURNED: usize = 8;
/// What it costs to test an index from data and to load the element, of one iteration and for each lane of a vector.
const GATHER: (usize, usize) = (3, 2);
/// What quotients and roots cost, of one number and of eight bytes of a vector, and elementary functions, of one number and of
/// a vector.
const QUOTIENT: (usize, usize) = (20, 8);
const ROOT: (usize, usize) = (30, 12);
const FUNCTION: (usize, usize) = (80, 150);

/// What a loop costs, of one iteration and of a vector of them.
pub(crate) struct VectorCosts<'a> {
    program: &'a Program,
    affines: &'a Affines,
    interior: &'a Interior,
    lanes: usize,
    /// Loads at indices from data.
    gathers: &'a Gathers,
    /// What differs between iterations of loops inside an iteration: all else is computed once.
    passing: BTreeSet<ValueId>,
    /// The arrays that the innermost loop goes through along their rows.
    along: BTreeSet<ArrayId>,
    one: usize,
    vector: usize,
}

impl<'a> VectorCosts<'a> {
    /// The costs of a loop with this interior, in vectors of so many lanes that combine with these arrays one after the other.
    pub fn of(
        (program, affines): (&'a Program, &'a Affines),
        par: &Par,
        interior: &'a Interior,
        (lanes, gathers): (usize, &'a Gathers),
        by_lanes: &BTreeSet<ArrayId>,
    ) -> VectorCosts<'a> {
        let (passing, along) = (BTreeSet::new(), BTreeSet::new());
        let mut costs =
            VectorCosts { program, affines, interior, lanes, gathers, passing, along, one: 0, vector: 0 };
        costs.block(&par.body, 1, by_lanes);
        costs
    }

    /// Do vectors take less time than iterations one by one?
    pub fn pay(&self) -> bool {
        self.vector < self.lanes * self.one
    }

    /// Rows with fewer iterations are taken one iteration at a time.
    pub fn short_row(&self) -> usize {
        (PART + self.vector).div_ceil(self.one.max(1)).min(self.lanes)
    }

    /// Do vectors along columns, with these costs, take less than two thirds of the time of rows of so many iterations, however
    /// rows are taken?
    pub fn more_than(&self, columns: &VectorCosts, row: usize) -> bool {
        3 * row * columns.vector < 2 * self.lanes * (row * self.one).min(PART + self.vector)
    }

    /// Adds statements that run so often. The depth of recursion is that of nesting in the source.
    fn block(&mut self, block: &Block, runs: usize, by_lanes: &BTreeSet<ArrayId>) {
        for stmt in block {
            let mut often = runs;
            let (one, vector) = match stmt {
                Stmt::Let(v) => {
                    let op = self.program.op(*v);
                    if matches!(op, Op::Get(_)) || op.operands().any(|o| self.passing.contains(&o)) {
                        self.passing.insert(*v);
                    } else {
                        often = 1;
                    }
                    self.value(*v)
                }
                Stmt::Update(_, s) if by_lanes.contains(&s.array) => (1, self.lanes),
                Stmt::Store(s) | Stmt::Update(_, s) => self.element(s.array, s.index),
                _ => (1, 1),
            };
            self.one += often * one;
            self.vector += often * vector;
            let (mut runs, before, mut recurs) = (runs, self.one, false);
            let outer = self.along.clone();
            if let Stmt::Loop(l) = stmt {
                let rows = along_rows(self.program, self.affines, l);
                recurs = rows.recurs;
                self.along = if self.interior.loop_differs(l) { BTreeSet::new() } else { rows.arrays };
                runs = runs.saturating_mul(self.trips(l)).min(TRIPS * TRIPS);
                if let LoopKind::For { var, .. } = l.kind {
                    self.passing.insert(var);
                }
            }
            let vector = self.vector;
            stmt.blocks().for_each(|block| self.block(block, runs, by_lanes));
            self.along = outer;
            if let Stmt::Loop(l) = stmt
                && self.interior.loop_differs(l)
            {
                // Vectors have iterations that some lanes alone have.
                self.vector += (self.vector - vector) / 2;
            }
            if let Stmt::Loop(l) = stmt
                && l.sums.is_empty()
                && (recurs || l.body.iter().any(|stmt| matches!(stmt, Stmt::Set(..))))
            {
                self.one = self.one.max(before + CHAIN * runs);
            }
        }
    }

    fn value(&self, v: ValueId) -> (usize, usize) {
        let words = self.lanes * self.program.ty(v).size() / 8;
        let (one, vector) = match *self.program.op(v) {
            Op::Literal(_) | Op::Scalar(_) | Op::Dim(..) => (0, 0),
            Op::Load(_, index) if self.gathers.accesses.contains(index.as_slice()) => {
                (GATHER.0, GATHER.1 * self.lanes)
            }
            Op::Load(array, index) => self.element(array, index),
            Op::Unary(Unary::Sqrt | Unary::Norm, _) => (ROOT.0, ROOT.1 * words),
            Op::Math(..) | Op::Rand(..) => FUNCTION,
            Op::Binary(Binary::Div, ..) => (QUOTIENT.0, QUOTIENT.1 * words),
            _ => (1, 1),
        };
        // What is the same in all lanes is computed once.
        if self.interior.varying.uniform(v) { (one, one) } else { (one, vector) }
    }

    fn trips(&self, l: &Loop) -> usize {
        let LoopKind::For { from, to, .. } = l.kind else { return TRIPS };
        let number = |v: ValueId| self.program.literal(v).and_then(Literal::to_i64);
        let trips = number(from).zip(number(to)).and_then(|(from, to)| to.checked_sub(from));
        trips.map_or(TRIPS, |trips| trips.clamp(0, TRIPS as i64) as usize)
    }

    fn element(&self, array: ArrayId, index: Indices) -> (usize, usize) {
        match stride(self.program, self.interior, index) {
            Stride::Same | Stride::Next => (1, 1),
            Stride::Unknown if self.along.contains(&array) => (1, TURNED),
            Stride::Apart(_) | Stride::Unknown => (1, LANE * self.lanes),
        }
    }
}
