//! The iterations of a nest of counted loops, numbered without gaps.
//!
//! - Input: loops, outermost first, whose bounds are sums of values that are known before the program starts and of the
//!   variables of loops around them.
//! - Output: how many iterations there are, and the number of an iteration among them, as polynomials.
//! - Invariant: two iterations have different numbers, and all are less than the count. So an array of that many elements has
//!   a place for each iteration: `n (n - 1) / 2` of them for `for i in 0..n { for j in 0..i { .. } }`.

use ebbtide_ir::{
    Affine, Affines, Binary, Literal, Loop, LoopKind, Op, Program, Stmt, Type, ValueId,
    depends_on_arguments_alone, walk_program_level,
};

use crate::analysis::polynomial::{Atom, Polynomial};

/// A loop that counts, by values of the source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Level {
    pub var: ValueId,
    pub from: ValueId,
    pub to: ValueId,
}

impl Level {
    /// A loop as one that counts, where it is.
    pub fn of(l: &Loop) -> Option<Level> {
        match l.kind {
            LoopKind::For { var, from, to } => Some(Level { var, from, to }),
            _ => None,
        }
    }
}

/// Loops with at most this many iterations cost little when they are run again.
const FEW: i64 = 8;

/// Has the loop so few iterations, whatever the arguments, that running them again costs little?
pub(crate) fn has_few_iterations(program: &Program, l: &Loop) -> bool {
    let literal = |v: ValueId| program.literal(v).and_then(Literal::to_i64);
    Level::of(l).is_some_and(|level| match (literal(level.from), literal(level.to)) {
        (Some(from), Some(to)) => to.saturating_sub(from) <= FEW,
        _ => false,
    })
}

/// The iterations of a nest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Numbered {
    /// How many there are, in values that are known before the program starts.
    pub count: Polynomial,
    /// The number of an iteration, in these and in the variables of the loops.
    pub number: Polynomial,
}

/// A variable between two sums: it is at least the first and less than the second.
type Ranged = (ValueId, Affine, Affine);

/// What is known about ranges of variables.
pub(crate) struct Ranges<'a> {
    source: &'a Program,
    affines: &'a Affines,
    /// Variables of loops around the nest, and of loops between its levels; their bounds may hold those of loops around them.
    /// Iterations are not numbered by them.
    around: Vec<Ranged>,
    /// Variables of the nest, outermost first; their bounds may hold those of loops around them.
    nest: Vec<Ranged>,
}

impl<'a> Ranges<'a> {
    pub fn new(source: &'a Program, affines: &'a Affines) -> Ranges<'a> {
        let mut this = Ranges { source, affines, around: Vec::new(), nest: Vec::new() };
        let mut loops = Vec::new();
        walk_program_level(&source.body, &mut |stmt| {
            if let Stmt::Loop(l) = stmt {
                loops.extend(Level::of(l));
            }
        });
        // Outer loops come first.
        for l in loops {
            this.enter(&l);
        }
        this
    }

    /// Goes into a loop by which iterations are not numbered.
    pub fn enter(&mut self, level: &Level) {
        if let Some((from, to)) = self.bounds(level) {
            self.around.push((level.var, from, to));
        }
    }

    fn is_known(&self, v: ValueId) -> bool {
        depends_on_arguments_alone(self.source, v)
    }

    /// A sum that is never more than this one, without variables of loops; `None` where it holds data.
    pub fn least(&self, sum: &Affine) -> Option<Affine> {
        let sum = self.extreme(sum, &self.around, -1)?;
        self.extreme(&sum, &self.nest, -1).filter(|sum| self.all_known(sum))
    }

    /// A sum that is never less than this one, without variables of loops; `None` where it holds data.
    pub fn most(&self, sum: &Affine) -> Option<Affine> {
        let sum = self.extreme(sum, &self.around, 1)?;
        self.extreme(&sum, &self.nest, 1).filter(|sum| self.all_known(sum))
    }

    /// The largest (`side` 1) or least (-1) value of a sum over these variables: innermost first, since its bounds may hold the
    /// others.
    fn extreme(&self, sum: &Affine, over: &[Ranged], side: i64) -> Option<Affine> {
        let mut sum = sum.clone();
        for (var, from, to) in over.iter().rev() {
            let c = sum.coefficient(*var);
            if c == 0 {
                continue;
            }
            sum = sum.without(*var);
            let at_end = c.signum() == side;
            sum = sum.add_scaled(if at_end { to } else { from }, c)?;
            if at_end {
                sum.constant = sum.constant.checked_sub(c)?;
            }
        }
        Some(sum)
    }

    fn all_known(&self, sum: &Affine) -> bool {
        sum.terms.iter().all(|(atom, _)| self.is_known(*atom))
    }

    /// Is a sum of known values certain not to be negative? Extents are not.
    fn is_natural(&self, sum: &Affine) -> bool {
        let natural = |v: ValueId| matches!(self.source.op(v), Op::Dim(..));
        sum.constant >= 0 && sum.terms.iter().all(|(atom, c)| *c > 0 && natural(*atom))
    }

    /// An end that is known before the program starts where the end itself is data: `min(known, data)`, `data % known`.
    fn above(&self, v: ValueId) -> Option<Affine> {
        let positive = |v: ValueId| self.source.literal(v).and_then(Literal::to_i64).is_some_and(|c| c > 0);
        let known = |v: &ValueId| self.is_known(*v);
        let bound = match *self.source.op(v) {
            _ if self.source.ty(v) != Type::Index => None,
            Op::Binary(Binary::Rem | Binary::RemEuclid, _, b)
                if known(&b) && (positive(b) || matches!(self.source.op(b), Op::Dim(..))) =>
            {
                Some(b)
            }
            Op::Binary(Binary::Min, a, b) => [a, b].into_iter().find(known),
            _ => None,
        };
        bound.map(|v| self.affines.form(v).clone())
    }

    /// Bounds of a level in variables of the nest and known values.
    fn bounds(&self, level: &Level) -> Option<(Affine, Affine)> {
        let numbered = |v: ValueId, side| {
            let sum = self.extreme(self.affines.form(v), &self.around, side)?;
            let in_nest = |atom: &ValueId| self.nest.iter().any(|(var, ..)| var == atom);
            sum.terms.iter().all(|(atom, _)| in_nest(atom) || self.is_known(*atom)).then_some(sum)
        };
        let from = numbered(level.from, -1)?;
        let to = numbered(level.to, 1).or_else(|| self.above(level.to))?;
        Some((from, to))
    }

    /// Adds a level to the nest. Where it cannot be proved that its end is never before its beginning, it is widened until
    /// both are the same for all iterations.
    fn push(&mut self, level: &Level) -> Option<(Polynomial, Polynomial)> {
        let (mut from, mut to) = self.bounds(level)?;
        let length = to.add_scaled(&from, -1)?;
        let varies = |sum: &Affine| self.nest.iter().any(|(var, ..)| sum.coefficient(*var) != 0);
        let triangular = varies(&from) || varies(&to);
        if triangular && self.least(&length).is_some_and(|least| self.is_natural(&least)) {
            let polynomials = (Polynomial::affine(&from)?, Polynomial::affine(&to)?);
            self.nest.push((level.var, from, to));
            return Some(polynomials);
        }
        if triangular {
            (from, to) = (self.least(&from)?, self.most(&to)?);
        }
        let extent = self.extent(&to.add_scaled(&from, -1)?)?;
        let first = Polynomial::affine(&from)?;
        let end = first.add_scaled(&extent, 1)?;
        self.nest.push((level.var, from, to));
        Some((first, end))
    }

    /// A known length, or zero where it is negative.
    fn extent(&self, length: &Affine) -> Option<Polynomial> {
        match length.as_constant() {
            Some(length) => Some(Polynomial::constant(length.max(0).into())),
            None if self.is_natural(length) => Polynomial::affine(length),
            None => Some(Polynomial::atom(Atom::Extent(length.terms.clone(), length.constant))),
        }
    }

    /// The most iterations that a loop has; `None` where a bound is data.
    pub fn longest(&self, level: &Level) -> Option<Polynomial> {
        let length = self.affines.form(level.to).add_scaled(self.affines.form(level.from), -1)?;
        self.extent(&self.most(&length)?)
    }

    /// Numbers the iterations of a nest, one place for each iteration of these loops; `None` where a bound is data.
    pub fn number(mut self, levels: &[Step]) -> Option<Numbered> {
        let mut bounds = Vec::new();
        for step in levels {
            match step {
                Step::Numbered(level) => bounds.push((*level, self.push(level)?)),
                Step::Around(level) => self.enter(level),
            }
        }
        let mut count = Polynomial::constant(1);
        let mut number = Polynomial::constant(0);
        for (level, (from, to)) in bounds.iter().rev() {
            let here = Polynomial::atom(Atom::Value(level.var));
            let before = count.sum_over(level.var, from, &here)?;
            number = number.add_scaled(&before, 1)?;
            count = count.sum_over(level.var, from, to)?;
        }
        Some(Numbered { count, number })
    }
}

/// A loop of a nest.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Step {
    /// Its iterations are told apart.
    Numbered(Level),
    /// They are not.
    Around(Level),
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use ebbtide_ir::{Access, Binary, Builder, Literal};

    use super::*;

    fn at(polynomial: &Polynomial, value: &dyn Fn(ValueId) -> i128) -> i128 {
        let atom = |atom: &Atom| match atom {
            Atom::Value(v) => value(*v),
            Atom::Extent(terms, constant) => {
                let sum = terms.iter().map(|(v, c)| value(*v) * i128::from(*c)).sum::<i128>();
                (sum + i128::from(*constant)).max(0)
            }
        };
        let terms = polynomial.terms.iter().map(|(m, c)| c * m.iter().map(atom).product::<i128>());
        let sum: i128 = terms.sum();
        assert_eq!(sum % polynomial.divisor, 0);
        sum / polynomial.divisor
    }

    /// Each level is from `first.0 · outer + first.1` to `end.0 · outer + end.1`, plus `n` where that is said, where `outer` is
    /// the variable of the level before it.
    type Bounds = ((i64, i64, i64), (i64, i64, i64));

    /// Numbers all iterations of a nest for `n` elements; gives the count, and the numbers.
    fn numbers(levels: &[Bounds], n: i128) -> (i128, Vec<i128>) {
        let mut b = Builder::new("nest");
        let x = b.array("x", Type::F64, 1, Access::Write);
        let (dim, zero) = (b.dim(x, 0), b.literal(Literal::index(0)));
        let (mut steps, mut outer) = (Vec::new(), zero);
        for (k, (first, end)) in levels.iter().enumerate() {
            let mut bound = |(outer_times, constant, n_times): (i64, i64, i64)| {
                let [a, c, m] = [outer_times, constant, n_times].map(|v| b.literal(Literal::index(v)));
                let (scaled, whole) = (b.binary(Binary::Mul, outer, a), b.binary(Binary::Mul, dim, m));
                let sum = b.binary(Binary::Add, scaled, whole);
                b.binary(Binary::Add, sum, c)
            };
            let (from, to) = (bound(*first), bound(*end));
            let var = b.begin_for(&format!("i{k}"), from, to);
            steps.push(Step::Numbered(Level { var, from, to }));
            outer = var;
        }
        levels.iter().for_each(|_| b.end_loop(None));
        let mut program = b.finish().expect("the program is valid");
        // The loops are those of the nest alone.
        program.body.retain(|stmt| !matches!(stmt, Stmt::Loop(_)));
        let affines = Affines::of(&program);
        let numbered = Ranges::new(&program, &affines).number(&steps).expect("bounds are sums");
        let mut all = Vec::new();
        let mut work: Vec<Vec<i128>> = vec![Vec::new()];
        while let Some(chosen) = work.pop() {
            if chosen.len() == levels.len() {
                let value = |v: ValueId| {
                    let var = |s: &Step| matches!(s, Step::Numbered(level) if level.var == v);
                    steps.iter().position(var).map_or(n, |k| chosen[k])
                };
                all.push(at(&numbered.number, &value));
                continue;
            }
            let (first, end) = levels[chosen.len()];
            let outer = chosen.last().copied().unwrap_or(0);
            let bound =
                |(a, c, m): (i64, i64, i64)| i128::from(a) * outer + i128::from(c) + i128::from(m) * n;
            work.extend((bound(first)..bound(end)).map(|v| [chosen.as_slice(), &[v]].concat()));
        }
        (at(&numbered.count, &|_| n), all)
    }

    #[test]
    fn the_iterations_of_triangles_are_numbered_without_gaps() {
        let (zero, n) = ((0, 0, 0), (0, 0, 1));
        let (outer, after, before) = ((1, 0, 0), (1, 1, 0), (-1, 0, 1));
        let nests: [&[Bounds]; 6] = [
            &[(zero, n), (zero, outer)],
            &[(zero, n), (after, n)],
            &[(zero, n), (zero, outer), (zero, outer)],
            &[(zero, n), (outer, n), (after, n)],
            &[(zero, n), (zero, before), (zero, n)],
            &[(zero, n), (zero, outer), (outer, n), (zero, outer)],
        ];
        for nest in nests {
            for elements in [0, 1, 2, 5] {
                let (count, numbers) = numbers(nest, elements);
                let different: BTreeSet<i128> = numbers.iter().copied().collect();
                assert_eq!((different.len(), numbers.len() as i128), (numbers.len(), count), "{nest:?}");
                assert!(numbers.iter().all(|k| (0..count).contains(k)), "{nest:?}");
            }
        }
    }

    #[test]
    fn iterations_that_cannot_be_counted_without_gaps_have_different_numbers() {
        let (zero, n) = ((0, 0, 0), (0, 0, 1));
        let nests: [&[Bounds]; 3] = [
            &[(zero, n), (zero, (1, -2, 0))],
            &[(zero, (0, -3, 1)), (zero, n)],
            &[((0, 2, 0), n), ((2, 0, 0), n), (zero, (1, 0, 0))],
        ];
        for nest in nests {
            for elements in [0, 1, 2, 6] {
                let (count, numbers) = numbers(nest, elements);
                let different: BTreeSet<i128> = numbers.iter().copied().collect();
                assert_eq!(different.len(), numbers.len(), "{nest:?}");
                assert!(numbers.iter().all(|k| (0..count).contains(k)), "{nest:?} of {elements}");
            }
        }
    }
}
