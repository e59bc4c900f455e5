//! The ranges of loops inside an iteration: which corners of them prove what is a sum of their variables.
//!
//! A range may begin and end at sums of the innermost parallel variable `j`. At its first or last value a sum of the loop's variable
//! is then a sum of `j` with another coefficient, whose base is known before the innermost loop.

use ebbtide_ir::{Binary, Literal, Loop, LoopKind, Op, Program, ValueId};

use super::linear::Linear;
use super::{Decide, Interior, LARGE, Search};
use crate::analysis::direction::{Direction, direction};
use crate::kernel::index_expr::IndexExpr;
use crate::kernel::interval::{Corner, Ranges, Rows, Scope};

/// A loop around what is looked at: its variable and its bounds.
pub(super) type Around = (ValueId, ValueId, ValueId);

/// One end of the range of a loop's variable: its value without the multiple of `j` in it, and that multiple.
#[derive(Clone)]
pub(super) struct End {
    corner: Corner,
    coefficient: i64,
}

/// A sum at corners of the ranges of loops: the variables of these, and its coefficient of `j` there.
pub(super) struct At {
    pub scope: Scope,
    pub coefficient: i64,
}

impl Search<'_> {
    /// Lanes go through a loop together where its bounds are sums that are numbers: which of them have an iteration is known
    /// then. Where both bounds have the same multiple of `j` in them, all lanes have as many, each from its own first one on; a
    /// wide machine has no lanes.
    pub(super) fn share(&self, interior: &mut Interior, (var, from, to): Around) {
        let sum = |v: ValueId| {
            interior.linear(self.program, v, &[]).filter(|_| interior.linear_here(self.program, v).is_some())
        };
        let (Some(from), Some(to)) = (sum(from), sum(to)) else { return };
        if from.coefficient == 0 {
            return;
        }
        if self.decide == Decide::Columns && from.coefficient == to.coefficient {
            interior.shifted.insert(var);
            interior.wraps.insert(var, Linear::new(from.coefficient, IndexExpr::Value(var)));
        } else {
            interior.shared.insert(var);
        }
    }

    /// The ends of the ranges of loops, where they are sums of `j`.
    pub(super) fn ends(&self, interior: &mut Interior, loops: &[Around]) -> Option<Vec<[End; 2]>> {
        let mut ends = Vec::with_capacity(loops.len());
        for (variable, from, to) in loops {
            let (from, to) =
                (interior.linear(self.program, *from, &[])?, interior.linear(self.program, *to, &[])?);
            // A variable that runs up to an outer one, times an outer one, is not a sum.
            if interior.mentions_outer(&from.base) || interior.mentions_outer(&to.base) {
                interior.rows = Rows::Each;
            }
            let own = |coefficient| if interior.shifted.contains(variable) { 0 } else { coefficient };
            let first = End { corner: Corner::First(from.tame()), coefficient: own(from.coefficient) };
            ends.push([first, End { corner: Corner::Last(to.tame()), coefficient: own(to.coefficient) }]);
        }
        Some(ends)
    }

    /// A sum at the corners of the ranges of these loops where it, or a part of it, may be least or greatest; none where it is not
    /// monotone in each of their variables. Variables with which it is known to grow, or to shrink, go together, and each other one
    /// doubles the corners. A sum of too many variables has none: the conditions would be longer than the loop. An iteration in which
    /// a range is empty has corners too, and may be narrowed away.
    pub(super) fn corners(&self, interior: &mut Interior, loops: &[Around], sum: &Linear) -> Option<Vec<At>> {
        const MOST_VARIABLES: usize = 6;
        let used: Vec<Around> = loops.iter().filter(|l| sum.base.mentions(l.0)).copied().collect();
        let ends = self.ends(interior, &used)?;
        if used.len() > MOST_VARIABLES || used.iter().any(|(variable, ..)| !sum.base.is_monotone(*variable)) {
            return None;
        }
        let directions: Vec<_> = used.iter().map(|l| direction(&sum.base, l.0)).collect();
        let together = directions.iter().flatten().find(|d| **d != Direction::Stays).copied();
        let mut bits = usize::from(directions.iter().any(Option::is_some));
        let mut bit_of = |known: &Option<Direction>| {
            let bit = if known.is_some() { 0 } else { bits };
            bits += usize::from(known.is_none());
            (bit, together.is_some_and(|together| *known == Some(-together)))
        };
        let bit_of: Vec<(usize, bool)> = directions.iter().map(&mut bit_of).collect();
        let at = |corner: usize| {
            let mut at = At { scope: Scope::new(), coefficient: sum.coefficient };
            for (((variable, ..), ends), (bit, opposite)) in used.iter().zip(&ends).zip(&bit_of) {
                let last = (corner >> bit & 1 == 1) != *opposite;
                let End { corner, coefficient } = ends[usize::from(last)].clone();
                if coefficient != 0 {
                    let multiple = sum.base.growth(*variable)?.checked_mul(coefficient)?;
                    at.coefficient = at.coefficient.checked_add(multiple)?;
                }
                at.scope.push((*variable, corner));
            }
            (at.coefficient.unsigned_abs() < LARGE as u64).then_some(at)
        };
        (0..1usize << bits).map(at).collect()
    }

    /// The ranges, the same for all iterations, of loops whose variable is in an index. Where one is empty, the access is never
    /// reached, and its corners may be out of bounds. One that begins at zero is asked for nonetheless, unless it ends at a quotient:
    /// a loop over all of an array is hardly ever empty, and one over whole groups of iterations is wherever there are few. An access
    /// without the variable may be hoisted out of the loop, and is reached even so.
    pub(super) fn fixed_ranges(
        &self,
        interior: &Interior,
        loops: &[Around],
        sums: &[(Vec<At>, Linear)],
    ) -> Ranges {
        let zero = |v: ValueId| self.program.literal(v).and_then(Literal::to_i64) == Some(0);
        let fixed = |v: ValueId| self.program.literal(v).is_some() || !interior.inside.contains(&v);
        let used = |v: ValueId| sums.iter().any(|(_, sum)| sum.base.mentions(v));
        let quotient = |v: ValueId| matches!(self.program.op(v), Op::Binary(Binary::Div, ..));
        let may_be_empty = |from: ValueId, to: ValueId| !zero(from) || quotient(to);
        let ends = loops
            .iter()
            .filter(|(v, from, to)| used(*v) && fixed(*from) && fixed(*to) && may_be_empty(*from, *to));
        ends.map(|(_, from, to)| [*from, *to].map(|v| IndexExpr::value(self.program, v))).collect()
    }
}

impl Interior {
    /// Is this the variable of a loop that is as long in each iteration, but begins elsewhere?
    pub fn is_shifted(&self, v: ValueId) -> bool {
        self.shifted.contains(&v)
    }

    /// Do lanes have different iterations of a loop, or leave it after different ones?
    pub fn loop_differs(&self, l: &Loop) -> bool {
        let shifted = matches!(l.kind, LoopKind::For { var, .. } if self.is_shifted(var));
        let left = l.until.is_some_and(|until| !self.varying.uniform(until));
        self.varying.loop_diverges(l) && (!shifted || left)
    }

    /// Do lanes go through a loop together, although they have different iterations of it? Bounds are sums then, and the first or
    /// the last of neighbouring lanes has all iterations that others have.
    pub fn goes_together(&self, program: &Program, l: &Loop) -> bool {
        let LoopKind::For { var, from, to } = l.kind else { return false };
        let way = |v: ValueId| self.linear_here(program, v).map(|sum| sum.coefficient.signum());
        let one_has_all =
            matches!((way(from), way(to)), (Some(0 | 1), Some(0 | -1)) | (Some(0 | -1), Some(0 | 1)));
        l.until.is_none() && l.sums.is_empty() && self.varying.uniform(var) && one_has_all
    }

    /// Notes an access that depends on a loop with a range for each iteration and on the iteration itself, in one dimension: it is
    /// proved where an iteration has it, and not for the iterations of others.
    pub(super) fn note_own(&mut self, ends: &[[End; 2]], loops: &[Around], index: &[ValueId], sum: &Linear) {
        let differs = |ends: &[End; 2]| ends.iter().any(|end| end.coefficient != 0);
        let used = |(variable, ..): &Around| sum.base.mentions(*variable);
        if sum.coefficient != 0 && loops.iter().zip(ends).any(|(l, ends)| differs(ends) && used(l)) {
            self.own.insert(index.to_vec());
        }
    }
}
