//! The reference interpreter of expressions and intervals: what a target computes, in numbers. Tests of analyses run on it.

use std::collections::BTreeMap;

use ebbtide_ir::{ArrayId, ValueId};

use super::bounds_test::Test;
use super::index_expr::{Arithmetic, IndexExpr};
use super::interval::{Before, Corner, Interval, Narrowing, Scope, Way};
use super::machine::SMALL;

/// What the names in expressions are.
#[derive(Clone, Copy)]
pub(crate) struct World<'a> {
    pub value: &'a dyn Fn(ValueId) -> i64,
    pub extent: &'a dyn Fn(ArrayId, usize) -> i64,
    pub wrapped: &'a dyn Fn(ValueId) -> i64,
    /// First value and end of each range of the parallel loop.
    pub ranges: &'a [(i64, i64)],
}

impl World<'_> {
    /// Does a condition of a proof hold?
    pub fn holds(&self, test: &Test) -> bool {
        match test {
            Test::NotNegative(e) => evaluate(e, self).is_some_and(|e| e >= 0),
            Test::AtMost(e, array, k) => evaluate(e, self).is_some_and(|e| e <= (self.extent)(*array, *k)),
            Test::Narrow(e) => evaluate(e, self).is_some_and(|e| e <= SMALL),
            Test::Tame(a, b) => [a, b].into_iter().all(|e| evaluate(e, self).is_some()),
        }
    }
}

/// What is tame is nearer to zero.
const TAME: i64 = 1 << 60;

/// The value of an expression; `None` where it sets `wild`.
pub(crate) fn evaluate(e: &IndexExpr, world: &World) -> Option<i64> {
    let both = |a: &IndexExpr, b: &IndexExpr| Some((evaluate(a, world)?, evaluate(b, world)?));
    Some(match e {
        IndexExpr::Value(v) => (world.value)(*v),
        IndexExpr::Constant(c) | IndexExpr::Number(c) | IndexExpr::Factor(c) => *c,
        IndexExpr::Scalar(s) => unreachable!("no test has scalar {}", s.index()),
        IndexExpr::First(d) => world.ranges[*d].0,
        IndexExpr::End(d) => world.ranges[*d].1.max(world.ranges[*d].0),
        IndexExpr::Extent(array, k) => (world.extent)(*array, *k),
        IndexExpr::Wrapped(v) => (world.wrapped)(*v),
        IndexExpr::Wrapping(op, a, b) => {
            let (a, b) = both(a, b)?;
            match op {
                Arithmetic::Add => a.wrapping_add(b),
                Arithmetic::Sub => a.wrapping_sub(b),
                Arithmetic::Mul => a.wrapping_mul(b),
                Arithmetic::Div => a.wrapping_div(b),
            }
        }
        IndexExpr::Checked(op, a, b) => {
            let (a, b) = both(a, b)?;
            exact(*op, a, b)?
        }
        IndexExpr::Marked(op, a, b) => match both(a, b)? {
            (i64::MIN, _) | (_, i64::MIN) => i64::MIN,
            (a, b) => exact(*op, a, b).unwrap_or(i64::MIN),
        },
        IndexExpr::Min(a, b) => evaluate(a, world)?.min(evaluate(b, world)?),
        IndexExpr::Max(a, b) => evaluate(a, world)?.max(evaluate(b, world)?),
        IndexExpr::Tame(a) => evaluate(a, world).filter(|a| (-TAME..TAME).contains(a))?,
        IndexExpr::Negative(a) => evaluate(a, world)?.wrapping_neg(),
        IndexExpr::Room(extent, index) => {
            let (extent, index) = both(extent, index)?;
            extent.wrapping_sub(1).wrapping_sub(index)
        }
    })
}

fn exact(op: Arithmetic, a: i64, b: i64) -> Option<i64> {
    match op {
        Arithmetic::Add => a.checked_add(b),
        Arithmetic::Sub => a.checked_sub(b),
        Arithmetic::Mul => a.checked_mul(b),
        Arithmetic::Div => a.checked_div(b),
    }
}

/// The bases of the remainders of an interval in a row; `None` where something is wild. Other values are those of the world.
pub(crate) fn remainders(
    interval: &Interval,
    world: &World,
    (from, to): (i64, i64),
) -> Option<BTreeMap<ValueId, i64>> {
    let mut wrapped: BTreeMap<ValueId, i64> = BTreeMap::new();
    for before in &interval.before {
        let Before::Wrapped { v, base, modulus, way } = before else { continue };
        let world = World { wrapped: &|v| wrapped[&v], ..*world };
        let (base, m) = (evaluate(base, &world)?, evaluate(modulus, &world)?);
        let middle = if *way == Way::Up { (from + to) / 2 } else { -((from + to) / 2) };
        wrapped.insert(*v, if m > 0 { base - (base + middle).div_euclid(m) * m } else { -1 });
    }
    Some(wrapped)
}

/// The part of a row that an interval leaves; `None` where something is wild.
pub(crate) fn narrowed(interval: &Interval, world: &World, (from, to): (i64, i64)) -> Option<(i64, i64)> {
    let at = |scope: &Scope, e: &IndexExpr| {
        let corner = |corner: &Corner| match corner {
            Corner::First(e) => evaluate(e, world),
            Corner::Last(e) => evaluate(e, world).map(|end| end - 1),
        };
        let corners: Option<BTreeMap<ValueId, i64>> =
            scope.iter().map(|(v, c)| Some((*v, corner(c)?))).collect();
        let corners = corners?;
        let value = |v: ValueId| corners.get(&v).copied().unwrap_or_else(|| (world.value)(v));
        evaluate(e, &World { value: &value, ..*world })
    };
    let tame = |x: i64| evaluate(&IndexExpr::Number(x).tamed(), world);
    let (mut lo, mut hi) = (tame(from)?, tame(to)?);
    for narrowing in &interval.narrowings {
        // Narrows to where `c · j + base >= 0`.
        let mut not_negative = |c: i64, base: i64| match c {
            0 if base < 0 => hi = lo,
            0 => {}
            c if c > 0 => lo = lo.max(-base.div_euclid(c)),
            c => hi = hi.min(base.div_euclid(-c) + 1),
        };
        match narrowing {
            Narrowing::NotZero(v) if (world.value)(*v) == 0 => return None,
            Narrowing::NotZero(_) => {}
            Narrowing::TameMultiple(c) => {
                tame(c.checked_mul(from)?)?;
                tame(c.checked_mul(to)?)?;
            }
            Narrowing::NotNegative((c, base)) => not_negative(*c, at(&Scope::new(), base)?),
            Narrowing::Within(scope, (c, base), extent, ranges) => {
                let ends =
                    ranges.iter().flatten().map(|e| evaluate(e, world)).collect::<Option<Vec<i64>>>()?;
                if ends.chunks(2).any(|range| range[0] >= range[1]) {
                    continue;
                }
                let room = IndexExpr::room(extent.clone(), base.clone());
                not_negative(*c, at(scope, base)?);
                not_negative(-c, at(scope, &room)?);
            }
            Narrowing::Away(e) => {
                let x = at(&Scope::new(), e)?;
                if (lo..hi).contains(&x) {
                    if x - lo > hi - 1 - x { hi = x } else { lo = x + 1 }
                }
            }
            Narrowing::Empty => hi = lo,
            Narrowing::Tame(scope, e) => drop(at(scope, e)?),
        }
    }
    let lo = lo.clamp(from, to);
    Some((lo, hi.min(to).max(lo)))
}

#[test]
fn the_three_kinds_of_arithmetic_differ_where_a_result_does_not_fit() {
    let none = |_: ValueId| 0;
    let world = World { value: &none, extent: &|_, _| 0, wrapped: &none, ranges: &[(3, 7)] };
    let most = IndexExpr::Constant(i64::MAX);
    let one = IndexExpr::Number(1);
    let [wraps, sets_wild, is_no_number] = [IndexExpr::wrapping, IndexExpr::checked, IndexExpr::marked]
        .map(|make| make(Arithmetic::Add, most.clone(), one.clone()));
    assert_eq!(evaluate(&wraps, &world), Some(i64::MIN));
    assert_eq!(evaluate(&sets_wild, &world), None);
    assert_eq!(evaluate(&is_no_number, &world), Some(i64::MIN));
    let again = IndexExpr::marked(Arithmetic::Sub, is_no_number, one);
    assert_eq!(evaluate(&again, &world), Some(i64::MIN));
    assert_eq!(evaluate(&most.tamed(), &world), None);
    assert_eq!(evaluate(&IndexExpr::room(IndexExpr::End(0), IndexExpr::First(0)), &world), Some(3));
}
