//! Tiles: what a loop in vectors finds row by row, as many iterations at a time as a vector has lanes.
//!
//! Each lane has a row of its own, and the elements of the next iteration are right behind those of this one, or right before. So
//! as many iterations as there are lanes touch a square of elements, whose rows can be loaded as vectors and turned round.

use super::expr::Expr;
use super::index_expr::IndexExpr;
use super::name::{Name, Ty, Variable};
use super::stmt::{Body, Element, Loop, Place, Stmt, Stride, Way};

/// A tile of a loop.
pub(crate) struct Tile<'a> {
    pub number: usize,
    pub element: &'a Element,
    pub ty: Ty,
    pub rows: &'a [i64],
    pub way: Way,
    /// Is it loaded before the iterations?
    pub loaded: bool,
    /// Is it stored behind them?
    pub stored: bool,
}

/// The vectors of which a loop takes as many iterations at a time as they have lanes, where it does.
pub(crate) fn at_a_time(l: &Loop) -> Option<Ty> {
    tiles(l).first().map(|tile| tile.ty).or(l.ahead.as_ref().map(|ahead| ahead.ty))
}

/// The tiles of a loop, in the order of its statements.
pub(crate) fn tiles(l: &Loop) -> Vec<Tile<'_>> {
    l.body.iter().filter_map(tile).collect()
}

fn tile(stmt: &Stmt) -> Option<Tile<'_>> {
    let (element, ty, loaded, stored) = match stmt {
        Stmt::Load { element, ty, .. } => (element, *ty, true, false),
        Stmt::Store { element, ty, how, .. } => (element, *ty, how.is_some(), true),
        _ => return None,
    };
    match &element.place {
        Place::Lanes { stride: Stride::Tile { number, rows, way }, .. } => {
            Some(Tile { number: *number, element, ty, rows, way: *way, loaded, stored })
        }
        _ => None,
    }
}

/// The statements of a body that compute the index of an element, in order; `None` where more than arithmetic does.
pub(crate) fn index_statements<'b>(body: &'b Body, element: &Element) -> Option<Vec<&'b Stmt>> {
    let mut wanted: Vec<Name> = Vec::new();
    element.index().iter().for_each(|e| names(e, &mut wanted));
    let mut found = Vec::new();
    // What an index is computed from comes before it.
    for stmt in body.iter().rev() {
        match stmt {
            Stmt::Let { name, value, .. } if wanted.contains(name) => {
                names(value, &mut wanted);
                found.push(stmt);
            }
            Stmt::Load { name, .. } | Stmt::Declare { name, .. } if wanted.contains(name) => return None,
            Stmt::Assign { name, .. } | Stmt::Pop { name, .. } if wanted.contains(name) => return None,
            // A variable may be given its value in there.
            Stmt::If { .. } | Stmt::Loop(_) if wanted.iter().any(|name| is_local(*name)) => return None,
            _ => {}
        }
    }
    found.reverse();
    Some(found)
}

fn is_local(name: Name) -> bool {
    matches!(name.variable, Variable::Local(_))
}

/// Adds the names in an expression. The depth of recursion is that of the expression.
pub(crate) fn names(e: &Expr, found: &mut Vec<Name>) {
    match e {
        Expr::Variable(name) => found.push(*name),
        Expr::Linear { variable, base, .. } | Expr::Ramp { variable, base, .. } => {
            found.push(*variable);
            values(base, found);
        }
        Expr::Index(base) => values(base, found),
        _ => {}
    }
    e.operands().iter().for_each(|operand| names(operand, found));
}

fn values(base: &IndexExpr, found: &mut Vec<Name>) {
    let all = std::cell::RefCell::new(Vec::new());
    base.any(&|part| {
        if let IndexExpr::Value(v) = part {
            all.borrow_mut().push(Name::value(*v));
        }
        false
    });
    found.extend(all.into_inner());
}
