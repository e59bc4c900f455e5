//! Loops of which lanes have different iterations. Input: a loop whose bounds are sums of the innermost variable, in vectors; output:
//! the same, with the iterations that all lanes have apart from those that some of them have.
//!
//! Legal where one lane has all iterations that others have: the first or the last, since bounds are sums. What its iterations touch
//! exists, and what depends on the lane alone exists for each; `analysis::vectors` has reasons against all else.

use ebbtide_ir::{Binary, Compare, Literal, Type, ValueId};

use super::Vectors;
use crate::kernel::expr::{Expr, Overflow};
use crate::kernel::index_expr::{Arithmetic, IndexExpr};
use crate::kernel::name::{Fresh, Name, Ty, Variable};
use crate::kernel::stmt::{Body, Loop, LoopKind, Manner, Part, Partly, Stmt, visit_mut};

/// Multiples of the numbers of lanes are exact in every float type, where coefficients are smaller.
const LARGE: u64 = 1 << 20;

/// A lane at one end of those that run at once.
#[derive(Clone, Copy)]
enum Lane {
    First,
    Last,
}

impl Vectors<'_> {
    /// Do lanes have different iterations of a loop?
    pub(super) fn differs(&self, l: &Loop) -> bool {
        let LoopKind::Counted { from, to, .. } = &l.kind else { return false };
        [from, to].into_iter().any(|e| match e {
            Expr::Linear { variable, .. } | Expr::Variable(variable) => self.varies(*variable),
            _ => false,
        })
    }

    /// Gives a loop in vectors, whose body is this one, what some lanes do alone.
    pub(super) fn partly(&self, l: &mut Loop, body: &Body, fresh: &mut Fresh) -> Option<()> {
        let LoopKind::Counted { variable, from, to } = &mut l.kind else { return None };
        let Variable::Value(counter) = variable.variable else { return None };
        let [grows, shrinks] = [self.coefficient(from)?, self.coefficient(to)?];
        let (widest, narrowest) = match (grows.signum(), shrinks.signum()) {
            (0 | 1, 0 | -1) => (Lane::First, Lane::Last),
            (0 | -1, 0 | 1) => (Lane::Last, Lane::First),
            _ => return None,
        };
        let masks = Ty::Mask(self.element, self.lanes);
        let begun = self.distance(counter, from).map(|(far, lanes)| self.compare(Compare::Ge, far, lanes));
        let going = self.distance(counter, to).map(|(far, lanes)| self.compare(Compare::Lt, far, lanes));
        let value = begun.into_iter().chain(going).reduce(|a, b| super::both(masks, a, b))?;
        let mask: Name = Variable::Mask(fresh.next()).into();
        let mut partly = vec![Stmt::Let { name: mask, ty: masks, value }];
        self.block(body, Some(&Expr::Variable(mask)), fresh, &mut partly)?;
        // Lanes that do not have an iteration have no claim to its elements.
        visit_mut(&mut partly, &mut |stmt| {
            if let Stmt::Store { manner: manner @ Manner::Plain, when: Some(_), .. } = stmt {
                *manner = Manner::LaneByLane;
            }
        });
        let [all, any] = [narrowest, widest].map(|lane| [self.of_lane(from, lane), self.of_lane(to, lane)]);
        [*from, *to] = all;
        let [from, to] = any;
        l.partly = Some(Box::new(Partly { from, to, body: partly }));
        Some(())
    }

    /// By how much a bound grows from lane to lane.
    fn coefficient(&self, bound: &Expr) -> Option<i64> {
        match bound {
            Expr::Linear { coefficient, .. } => Some(*coefficient).filter(|c| c.unsigned_abs() < LARGE),
            Expr::Variable(name) if self.varies(*name) => None,
            _ => Some(0),
        }
    }

    /// How far a loop's variable is behind a bound in the first lane, and how far that bound is behind it in each lane.
    fn distance(&self, counter: ValueId, bound: &Expr) -> Option<(Expr, Expr)> {
        let Expr::Linear { coefficient, variable, base } = bound else { return None };
        let base = IndexExpr::wrapping(Arithmetic::Sub, IndexExpr::Value(counter), base.clone());
        let far = Expr::Linear { coefficient: -coefficient, variable: *variable, base };
        let own = Ty::Vector(self.element, self.lanes);
        Some((far, Expr::Multiples { ty: own, coefficient: *coefficient }))
    }

    /// Compares an index with the numbers of lanes, which are small: rounding it changes nothing.
    fn compare(&self, op: Compare, index: Expr, lanes: Expr) -> Expr {
        let own = Ty::Vector(self.element, self.lanes);
        let number = super::converted(Ty::One(Type::Index), Ty::One(self.element), index);
        Expr::Compare(op, own, Box::new([Expr::Splat(own, Box::new(number)), lanes]))
    }

    /// A bound in a lane.
    fn of_lane(&self, bound: &Expr, lane: Lane) -> Expr {
        let (Expr::Linear { coefficient, variable, base }, Lane::Last) = (bound, lane) else {
            return bound.clone();
        };
        let behind = |number: i64| Expr::Linear {
            coefficient: *coefficient,
            variable: *variable,
            base: IndexExpr::wrapping(
                Arithmetic::Add,
                base.clone(),
                IndexExpr::Constant(coefficient * number),
            ),
        };
        let index = Ty::One(Type::Index);
        let arithmetic = |op, a, b| Expr::Binary(op, index, Overflow::Wraps, Box::new([a, b]));
        match self.part {
            Part::Whole => behind(self.at_once as i64 - 1),
            Part::Tail | Part::Mask => {
                let times = Expr::Literal(Literal::index(*coefficient));
                let tail = arithmetic(Binary::Mul, times, Expr::Variable(Variable::Tail.into()));
                arithmetic(Binary::Add, behind(-1), tail)
            }
        }
    }
}
