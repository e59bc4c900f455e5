//! Peeling. Input: the loops over the interval of a row, in vectors; output: the same behind one that takes the first iterations, so
//! that the vectors after them are stored where a line of memory begins.
//!
//! A vector as long as a line touches two where it does not begin with one, and so does each one behind it: where rows begin inside of
//! lines, loops that do little else than load and store take up to a third longer. Legal for all loops that take what is left of
//! a row in a part of a vector: any iterations that follow each other may be one.

use crate::kernel::name::Ty;
use crate::kernel::nest::{For, Kind, Node, Over};
use crate::kernel::stmt::{Body, Check, Element, Manner, Place, Stmt, Stride};
use crate::kernel::tiles::index_statements;

/// The bytes of a line of memory.
const LINE: usize = 64;

/// Rows of fewer vectors are not worth it.
const VECTORS: usize = 4;

/// The loops with the first iterations peeled off, where they store vectors that are lines.
pub(crate) fn peel(mut loops: Vec<For>) -> Vec<For> {
    if let [For { kind: Kind::Lanes(lanes), .. }, rest @ For { over: Over::Tail, body, .. }] = &loops[..]
        && let [Node::Iterations(part)] = &body[..]
        && let Some(stored) = stored(&part.body, *lanes)
    {
        let over = Over::Peeled { stored: stored.clone(), least: VECTORS * lanes };
        let peeled = For { over, ..rest.clone() };
        loops.insert(0, peeled);
    }
    loops
}

/// The first element that a body stores in each lane, right behind that of the lane before, if its index is known before the body.
fn stored(body: &Body, lanes: usize) -> Option<&Element> {
    body.iter().find_map(|stmt| match stmt {
        Stmt::Store { element, ty: Ty::Vector(one, n), manner: Manner::Plain, .. }
            if matches!(&element.place, Place::Lanes { stride: Stride::Next, .. })
                && element.check == Check::Proved
                && *n == lanes
                && one.size() * lanes == LINE
                && index_statements(body, element).is_some_and(|before| before.is_empty()) =>
        {
            Some(element)
        }
        _ => None,
    })
}
