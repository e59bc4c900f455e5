//! How often a push is made in a range of iterations of a loop.
//!
//! - Input: the loops around the push, whose bounds are sums of numbers, of the variables of loops around them, and of what is
//!   read from data that the launch is given.
//! - Output: the number of pushes in all iterations of a range, and a bound for one iteration; or how often the loop begins whose
//!   iterations nobody can count.
//! - Invariant: what is counted is never less than what is pushed. Where counting would take long, it is more, or, with data,
//!   there is no count.

use std::rc::Rc;

use ebbtide_autodiff::{InnerLoop, Pushes};
use ebbtide_ir::{Affines, ValueId};

use crate::error::Result;
use crate::gradient::given_data::Formula;

/// Terms that are added up before a bound is taken instead.
const MOST_TERMS: u64 = 1 << 22;

/// `Σ coefficient · variable + Σ coefficient · formula + constant`; variables by level, level 0 is the loop whose iterations are
/// counted.
#[derive(Clone, Debug, Default)]
struct Linear<'a> {
    terms: Vec<(usize, i128)>,
    data: Vec<(Rc<Formula<'a>>, i128)>,
    constant: i128,
}

impl Linear<'_> {
    /// The sum for these variables; `None` where data have no value there.
    fn at(&self, variables: &[i128]) -> Option<i128> {
        let sum = (self.terms.iter())
            .fold(self.constant, |sum, (level, c)| sum.saturating_add(c.saturating_mul(variables[*level])));
        self.data.iter().try_fold(sum, |sum, (formula, c)| {
            Some(sum.saturating_add(c.saturating_mul(formula.at(variables)?)))
        })
    }

    /// The least and the largest value where each variable is in its range, both ends included.
    fn extremes(&self, ranges: &[(i128, i128)]) -> (i128, i128) {
        self.terms.iter().fold((self.constant, self.constant), |(low, high), (level, c)| {
            let (first, last) = ranges[*level];
            let (a, b) = (c.saturating_mul(first), c.saturating_mul(last));
            (low.saturating_add(a.min(b)), high.saturating_add(a.max(b)))
        })
    }

    fn uses(&self, level: usize) -> bool {
        self.terms.iter().any(|term| term.0 == level)
            || self.data.iter().any(|(formula, _)| formula.uses(level))
    }

    fn coefficient(&self, level: usize) -> i128 {
        self.terms.iter().find(|term| term.0 == level).map_or(0, |term| term.1)
    }
}

/// What is known of a value before a launch.
pub(crate) enum Known<'a> {
    Number(i64),
    /// It is read from data.
    Data(Formula<'a>),
    /// It cannot be computed, and is not: the loop that it bounds is not reached.
    Never,
    No,
}

/// What a value is before a launch, given the variables of the loops around it, by level.
pub(crate) type Look<'f, 'a> = &'f dyn Fn(ValueId, &[Option<ValueId>]) -> Result<Known<'a>>;

/// The loops around a push.
#[derive(Clone, Debug)]
pub(crate) struct Nest<'a> {
    /// The first and the last bound of each loop, outermost first. Level `k + 1` is the loop `k`.
    bounds: Vec<(Linear<'a>, Linear<'a>)>,
    /// Is there another loop inside these whose iterations the run counts?
    pub is_open: bool,
}

impl<'a> Nest<'a> {
    /// The loops around a push, up to one whose bounds are computed by the run.
    pub fn of(pushes: &Pushes, affines: &Affines, look: Look<'_, 'a>) -> Result<Nest<'a>> {
        // A loop that counts nothing by a variable of its own still has a level.
        let mut variables = vec![pushes.counted];
        let mut bounds = Vec::new();
        for l in &pushes.within {
            let InnerLoop::Counted(l) = l else { return Ok(Nest { bounds, is_open: true }) };
            let (Some(from), Some(to)) =
                (linear(l.from, &variables, affines, look)?, linear(l.to, &variables, affines, look)?)
            else {
                return Ok(Nest { bounds, is_open: true });
            };
            bounds.push((from, to));
            variables.push(Some(l.var));
        }
        Ok(Nest { bounds, is_open: false })
    }

    /// The pushes of all iterations from `from` to `to`; `None` where data would have to be asked too often.
    pub fn all(&self, from: i64, to: i64) -> Option<u64> {
        let iterations = to.saturating_sub(from).max(0) as u64;
        let mut terms = MOST_TERMS;
        let mut variables = vec![0; self.bounds.len() + 1];
        let exact = self.sum(0, (from.into(), to.into()), &mut variables, &mut terms);
        match exact {
            Some(sum) => Some(u64::try_from(sum).unwrap_or(u64::MAX)),
            None if self.has_data() => None,
            None => Some(iterations.saturating_mul(self.most(from, to)?)),
        }
    }

    /// No iteration from `from` to `to` makes more pushes than this; `None` as above.
    pub fn most(&self, from: i64, to: i64) -> Option<u64> {
        let last = to.max(from.saturating_add(1));
        if self.has_data() {
            return self.most_by_data(from, last);
        }
        let mut ranges = vec![(i128::from(from), i128::from(last) - 1)];
        let mut most: u64 = 1;
        for (first, end) in &self.bounds {
            let ((low, _), (_, high)) = (first.extremes(&ranges), end.extremes(&ranges));
            let iterations = self.longest(first, end, &ranges).min(high.saturating_sub(low)).max(0);
            most = most.saturating_mul(u64::try_from(iterations).unwrap_or(u64::MAX));
            ranges.push((low, high.saturating_sub(1).max(low)));
        }
        Some(most)
    }

    fn has_data(&self) -> bool {
        self.bounds.iter().any(|(first, end)| !first.data.is_empty() || !end.data.is_empty())
    }

    fn most_by_data(&self, from: i64, to: i64) -> Option<u64> {
        let mut variables = vec![0; self.bounds.len() + 1];
        let depends = self.bounds.iter().any(|(a, b)| a.uses(0) || b.uses(0));
        let (mut most, mut terms) = (0, MOST_TERMS);
        for at in from..if depends { to } else { from.saturating_add(1) } {
            terms = terms.checked_sub(1)?;
            let at = i128::from(at);
            most = most.max(self.sum(0, (at, at + 1), &mut variables, &mut terms)?);
        }
        Some(u64::try_from(most).unwrap_or(u64::MAX))
    }

    /// The largest difference of two bounds.
    fn longest(&self, first: &Linear<'_>, end: &Linear<'_>, ranges: &[(i128, i128)]) -> i128 {
        let mut difference = end.clone();
        difference.constant = difference.constant.saturating_sub(first.constant);
        for (level, c) in &first.terms {
            match difference.terms.iter_mut().find(|term| term.0 == *level) {
                Some(term) => term.1 -= c,
                None => difference.terms.push((*level, -c)),
            }
        }
        difference.extremes(ranges).1
    }

    /// Adds up the iterations of the loops from a level on; `None` where there are too many terms. The depth of recursion is that
    /// of nesting in the source.
    fn sum(
        &self,
        level: usize,
        (from, to): (i128, i128),
        variables: &mut Vec<i128>,
        terms: &mut u64,
    ) -> Option<i128> {
        if to <= from {
            return Some(0);
        }
        let inner = &self.bounds[level..];
        let Some((first, end)) = inner.first() else { return Some(to - from) };
        // A bound without a value is that of a loop that is not reached.
        let bounds = |variables: &[i128]| first.at(variables).zip(end.at(variables)).unwrap_or((0, 0));
        let depends = inner.iter().any(|(a, b)| a.uses(level) || b.uses(level));
        if !depends {
            variables[level] = from;
            return self.sum(level + 1, bounds(variables), variables, terms)?.checked_mul(to - from);
        }
        if inner.len() == 1 && first.data.is_empty() && end.data.is_empty() {
            variables[level] = 0;
            let (at_first, at_end) = bounds(variables);
            return series(at_end - at_first, end.coefficient(level) - first.coefficient(level), (from, to));
        }
        let mut all: i128 = 0;
        for at in from..to {
            *terms = terms.checked_sub(1)?;
            variables[level] = at;
            all = all.checked_add(self.sum(level + 1, bounds(variables), variables, terms)?)?;
        }
        Some(all)
    }
}

/// A bound as a sum; `None` where the run computes it.
fn linear<'a>(
    v: ValueId,
    variables: &[Option<ValueId>],
    affines: &Affines,
    look: Look<'_, 'a>,
) -> Result<Option<Linear<'a>>> {
    let form = affines.form(v);
    let mut sum = Linear { constant: i128::from(form.constant), ..Linear::default() };
    for (atom, c) in &form.terms {
        let c = i128::from(*c);
        if let Some(level) = variables.iter().position(|var| *var == Some(*atom)) {
            sum.terms.push((level, c));
            continue;
        }
        match look(*atom, variables)? {
            Known::Number(n) => match c.checked_mul(n.into()).and_then(|n| sum.constant.checked_add(n)) {
                Some(constant) => sum.constant = constant,
                None => return Ok(None),
            },
            Known::Data(formula) => sum.data.push((Rc::new(formula), c)),
            // As many iterations as a loop has that is not reached.
            Known::Never => return Ok(Some(Linear::default())),
            Known::No => return Ok(None),
        }
    }
    Ok(Some(sum))
}

/// `Σ max(0, constant + slope · v)` for `v` from `from` to `to`.
fn series(constant: i128, slope: i128, (mut from, mut to): (i128, i128)) -> Option<i128> {
    let value = |v: i128| slope.checked_mul(v)?.checked_add(constant);
    match slope.signum() {
        // The first value that is not negative is at the root, rounded up.
        1 => from = from.max((-constant).div_euclid(slope) + i128::from((-constant).rem_euclid(slope) != 0)),
        -1 => to = to.min(constant.div_euclid(-slope) + 1),
        _ => {}
    }
    if to <= from {
        return Some(0);
    }
    let (first, last) = (value(from)?, value(to - 1)?);
    Some(first.max(0).checked_add(last.max(0))?.checked_mul(to - from)? / 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn linear(terms: &[(usize, i128)], constant: i128) -> Linear<'static> {
        Linear { terms: terms.to_vec(), data: Vec::new(), constant }
    }

    /// The pushes of each iteration, counted one by one.
    fn counted(nest: &Nest<'_>, level: usize, variables: &mut Vec<i128>) -> u64 {
        let Some((first, end)) = nest.bounds.get(level) else { return 1 };
        let (from, to) = (first.at(variables).unwrap(), end.at(variables).unwrap());
        let mut all = 0;
        for at in from..to {
            variables[level + 1] = at;
            all += counted(nest, level + 1, variables);
        }
        all
    }

    #[test]
    fn pushes_of_triangular_nests_are_counted_exactly() {
        let bounds = [
            vec![(linear(&[], 0), linear(&[(0, 1)], 0))],
            vec![(linear(&[(0, 1)], 1), linear(&[], 7)), (linear(&[(0, 1)], 1), linear(&[], 7))],
            vec![(linear(&[], 0), linear(&[(0, 1)], -2)), (linear(&[(1, 2)], -3), linear(&[(0, 1)], 4))],
            vec![(linear(&[], 2), linear(&[(0, -3)], 9)), (linear(&[], 0), linear(&[], 3))],
            vec![
                (linear(&[], 0), linear(&[(0, 1)], 0)),
                (linear(&[], 0), linear(&[(1, 1)], 0)),
                (linear(&[(2, 1)], 0), linear(&[(0, 1), (1, -1)], 1)),
            ],
        ];
        for bounds in bounds {
            let nest = Nest { bounds, is_open: false };
            for (from, to) in [(0, 0), (0, 1), (0, 9), (3, 8), (5, 2)] {
                let each: Vec<u64> = (from..to)
                    .map(|iteration| {
                        let mut variables = vec![0; nest.bounds.len() + 1];
                        variables[0] = i128::from(iteration);
                        counted(&nest, 0, &mut variables)
                    })
                    .collect();
                assert_eq!(
                    nest.all(from, to),
                    Some(each.iter().sum::<u64>()),
                    "{nest:?} from {from} to {to}"
                );
                let most = nest.most(from, to).unwrap();
                assert!(each.iter().all(|n| *n <= most), "{nest:?} from {from} to {to}");
            }
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "it counts a million terms, none of which touches memory")]
    fn nests_with_very_many_terms_have_a_bound_at_once() {
        let by_outer = |level| (linear(&[], 0), linear(&[(level, 1)], 0));
        let nest = Nest { bounds: vec![by_outer(0), by_outer(1), by_outer(2)], is_open: false };
        assert!(nest.all(0, 1 << 40) >= nest.all(0, 1 << 8));
    }
}
