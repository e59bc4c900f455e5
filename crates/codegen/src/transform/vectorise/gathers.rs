//! Loads at indices from data, in vectors. Input: the statements that compute such indices, and the loads; output: integers for all
//! lanes, tests that they are near zero and in bounds, and loads in which each lane has an element of its own.
//!
//! Legal for what `analysis::gathers` finds. Each test stands before what needs it.

use ebbtide_ir::{Binary, Literal, Type};

use super::{Vectors, converted};
use crate::analysis::gathers::NEAR;
use crate::kernel::expr::{Expr, Overflow};
use crate::kernel::name::{Name, Ty, Variable, as_wide};
use crate::kernel::stmt::{Body, Check, Element, Place, Stmt};

const INDEX: Ty = Ty::One(Type::Index);

impl Vectors<'_> {
    /// Does each lane compute this index for itself?
    pub(super) fn is_lane_index(&self, name: Name) -> bool {
        matches!(name.variable, Variable::Value(v) if self.gathers.indices.contains(&v))
    }

    /// The type of an index for each lane.
    fn indices(&self) -> Ty {
        Ty::Vector(as_wide(self.element), self.lanes)
    }

    /// An index for all lanes, from what it is for one.
    pub(super) fn lane_index(&self, name: Name, value: &Expr, out: &mut Body) -> Option<()> {
        let ty = self.indices();
        let (value, is_data) = match value {
            Expr::Cast { from: from @ Ty::One(one), value, .. } if *one == self.element => {
                (converted(self.widened(*from), ty, self.operand(value, *from)), true)
            }
            // An integer of another type, which is near zero already.
            Expr::Cast { value, .. } if matches!(&**value, Expr::Variable(name) if self.is_lane_index(*name)) => {
                ((**value).clone(), false)
            }
            Expr::Cast { from: from @ Ty::One(Type::I32), value, .. } => {
                let (from, value) = (self.widened(*from), self.operand(value, *from));
                (if from == ty { value } else { converted(from, ty, value) }, true)
            }
            Expr::Binary(op @ (Binary::Add | Binary::Sub | Binary::Mul), of, _, two) => {
                let two = two.each_ref().map(|e| self.lanes_of_index(&self.as_index(e, *of), out));
                let two = Box::new(two);
                (Expr::Binary(*op, ty, Overflow::Wraps, two), false)
            }
            Expr::Binary(op @ (Binary::Rem | Binary::RemEuclid), of, _, two) => {
                let [x, divisor] = two.each_ref().map(|e| self.as_index(e, *of));
                let divided = self.lanes_of_index(&x, out);
                self.unless_within(INDEX, divisor.clone(), [number(1), number(NEAR)], out);
                let arithmetic = |op, a, b| Expr::Binary(op, INDEX, Overflow::Wraps, Box::new([a, b]));
                let least = match op {
                    Binary::Rem => number(0),
                    _ => arithmetic(Binary::Sub, number(0), divisor.clone()),
                };
                let end = arithmetic(Binary::Add, divisor.clone(), divisor.clone());
                self.unless_within(ty, divided.clone(), [least, end], out);
                (Expr::OneStep(ty, Box::new([divided, self.splat(&divisor)])), false)
            }
            _ => return None,
        };
        out.push(Stmt::Let { name, ty, value });
        if is_data {
            self.unless_within(ty, Expr::Variable(name), [number(-NEAR), number(NEAR)], out);
        }
        Some(())
    }

    /// Loads an element for each lane.
    pub(super) fn gather(&self, (name, one): (Name, Type), element: &Element, out: &mut Body) -> Option<()> {
        let Place::At(index) = &element.place else { return None };
        let extent = |k: usize| Expr::Extent(element.array, k);
        let mut lanes = Vec::new();
        for (k, e) in index.iter().enumerate() {
            let bounds = [number(0), extent(k)];
            match e {
                Expr::Variable(name) if self.is_lane_index(*name) => {
                    self.unless_within(self.indices(), e.clone(), bounds, out);
                }
                _ => self.unless_within(INDEX, e.clone(), bounds, out),
            }
            lanes.push(self.lanes_of_index(e, out));
        }
        if lanes.len() > 1 {
            // What lanes compute of rows fits too.
            let most = || number(i64::from(i32::MAX));
            (0..lanes.len()).for_each(|k| self.unless_within(INDEX, extent(k), [number(0), most()], out));
            let all = (1..lanes.len()).fold(extent(0), |all, k| {
                Expr::Binary(Binary::Mul, INDEX, Overflow::Wraps, Box::new([all, extent(k)]))
            });
            self.unless_within(INDEX, all, [number(0), most()], out);
        }
        let element = Element { place: Place::Gathered(lanes), check: Check::Proved, ..element.clone() };
        out.push(Stmt::Load { name, ty: Ty::Vector(one, self.lanes), element, when: None });
        Some(())
    }

    /// An index for all lanes; one that is the same for all of them is tested to be near zero.
    fn lanes_of_index(&self, e: &Expr, out: &mut Body) -> Expr {
        match e {
            Expr::Variable(name) if self.is_lane_index(*name) => e.clone(),
            Expr::Literal(_) => self.splat(e),
            _ => {
                self.unless_within(INDEX, e.clone(), [number(-NEAR), number(NEAR)], out);
                self.splat(e)
            }
        }
    }

    /// An integer of this type that is the same for all lanes, as an index.
    fn as_index(&self, e: &Expr, of: Ty) -> Expr {
        match e {
            Expr::Variable(name) if self.is_lane_index(*name) => e.clone(),
            _ if of == INDEX => e.clone(),
            _ => converted(of, INDEX, e.clone()),
        }
    }

    fn splat(&self, e: &Expr) -> Expr {
        let one = Ty::One(as_wide(self.element));
        Expr::Splat(self.indices(), Box::new(converted(INDEX, one, e.clone())))
    }

    /// Runs the iterations one by one where an index of this type is out of a range.
    fn unless_within(&self, ty: Ty, e: Expr, [from, to]: [Expr; 2], out: &mut Body) {
        let test = Stmt::FallBack { unless: Expr::Within(ty, Box::new([e, from, to])), lanes: self.lanes };
        if !out.contains(&test) {
            out.push(test);
        }
    }
}

/// Stores of straight code behind its last test, in their order.
pub(super) fn delay_stores(body: &mut Body) {
    let Some(last) = body.iter().rposition(|stmt| matches!(stmt, Stmt::FallBack { .. })) else { return };
    let is_store = |stmt: &Stmt| matches!(stmt, Stmt::Store { .. });
    let (stores, rest): (Body, Body) = body.drain(..=last).partition(is_store);
    body.splice(0..0, rest.into_iter().chain(stores));
}

fn number(n: i64) -> Expr {
    Expr::Literal(Literal::index(n))
}
