//! Stores that come last. Input: the bodies of iterations side by side, without checks; output: one body in which stores wait
//! for the end of the iterations.
//!
//! A compiler cannot know that arrays do not overlap, so a load behind a store waits for it. In a body without checks
//! nothing keeps a store from waiting for the end of its iteration instead, and then all loads of the iteration are on
//! their way at once. What combines with an element loads it before the first store as well.
//!
//! Legal in a body without checks: each iteration has elements of its own, so what it stores is seen by none but itself, and a
//! touch of the same array makes all waiting stores come first. So does a loop or a branch, inside which no store waits.

use ebbtide_ir::ArrayId;

use crate::kernel::expr::Expr;
use crate::kernel::name::{Fresh, Name, Variable};
use crate::kernel::stmt::{Body, Manner, Stmt};

/// The statements of all iterations, one after the other, with their plain stores as late as can be.
pub(crate) fn sink_stores(sides: Vec<Body>, fresh: &mut Fresh) -> Body {
    let mut sunk = Sunk { out: Body::new(), waiting: Vec::new(), fresh };
    for (side, body) in sides.into_iter().enumerate() {
        for stmt in body {
            sunk.statement(side, stmt);
        }
    }
    sunk.store_all();
    sunk.out
}

struct Sunk<'f> {
    out: Body,
    /// The stores that wait, in program order, and which iteration each belongs to.
    waiting: Vec<(usize, Stmt)>,
    fresh: &'f mut Fresh,
}

impl Sunk<'_> {
    fn statement(&mut self, side: usize, stmt: Stmt) {
        match &stmt {
            Stmt::Load { element, .. } => {
                self.before_touch(element.array, side);
                self.out.push(stmt);
            }
            Stmt::Store { element, how, manner: Manner::Plain, .. } => {
                if how.is_some() {
                    // It loads the element before anything is stored.
                    self.before_touch(element.array, side);
                }
                self.waiting.push((side, stmt));
            }
            Stmt::If { .. } | Stmt::Loop(_) => {
                self.store_all();
                self.out.push(stmt);
            }
            _ => self.out.push(stmt),
        }
    }

    /// Before an iteration touches an element of this array: what waits to be stored into it by the same iteration is stored.
    fn before_touch(&mut self, array: ArrayId, side: usize) {
        let stores = |stmt: &Stmt| matches!(stmt, Stmt::Store { element, .. } if element.array == array);
        if self.waiting.iter().any(|(of, stmt)| *of == side && stores(stmt)) {
            self.store_all();
        }
    }

    /// Stores what waits, in program order, after all that it combines with is loaded.
    fn store_all(&mut self) {
        let mut waiting = std::mem::take(&mut self.waiting);
        for (_, stmt) in &mut waiting {
            let old: Name = Variable::Old(self.fresh.next()).into();
            let Stmt::Store { element, ty, how, value, more, when, .. } = stmt else { continue };
            if let Some(how) = how.take() {
                let term = std::mem::replace(value, Expr::Variable(old));
                *value = Expr::combine(how, *ty, Expr::Variable(old), term);
                for term in more.drain(..) {
                    let sum = std::mem::replace(value, Expr::truth(true));
                    *value = Expr::combine(how, *ty, sum, term);
                }
                self.out.push(Stmt::Load {
                    name: old,
                    ty: *ty,
                    element: element.clone(),
                    when: when.clone(),
                });
            }
        }
        self.out.extend(waiting.into_iter().map(|(_, stmt)| stmt));
    }
}
