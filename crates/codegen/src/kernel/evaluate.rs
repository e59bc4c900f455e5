//! The reference interpreter of expressions: what a target computes, in numbers. Tests of analyses run on it.

use ebbtide_ir::{ArrayId, ValueId};

use super::index_expr::{Arithmetic, IndexExpr};

/// What the names in expressions are.
pub(crate) struct World<'a> {
    pub value: &'a dyn Fn(ValueId) -> i64,
    pub extent: &'a dyn Fn(ArrayId, usize) -> i64,
    pub wrapped: &'a dyn Fn(ValueId) -> i64,
    /// First value and end of each range of the parallel loop.
    pub ranges: &'a [(i64, i64)],
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
