//! Tiles of rows. Input: a body in vectors; output: the same, in which a loop that goes along a row of its own in each lane knows
//! it, so that it can load as many rows as there are lanes in vectors and turn them round, instead of gathering element by element.
//!
//! Legal for an element that the loop touches in all iterations, whose index grows or falls by one with each of them and depends on
//! nothing else that the loop computes, and which no other statement of the loop can touch where one of them writes: iterations of
//! the parallel loop, which are the lanes and the sides, never share what one of them writes.

use std::collections::BTreeSet;

use ebbtide_ir::{Affines, ArrayId, Indices, ValueId};

use crate::kernel::expr::Expr;
use crate::kernel::name::{Fresh, Name, Ty, Variable};
use crate::kernel::stmt::{
    Body, Check, Element, Loop, LoopKind, Manner, Part, Place, Stmt, Stride, Way, visit_mut,
};
use crate::kernel::tiles::index_statements;

/// The body whose loops know their tiles of this type of vectors. The depth of recursion is that of nesting in the source.
pub(crate) fn row_tiles(mut body: Body, affines: &Affines, ty: Ty, fresh: &mut Fresh) -> Body {
    for stmt in &mut body {
        for block in stmt.blocks_mut() {
            *block = row_tiles(std::mem::take(block), affines, ty, fresh);
        }
        if let Stmt::Loop(l) = stmt
            && let LoopKind::Counted { variable: Name { variable: Variable::Value(variable), .. }, .. } =
                l.kind
            && l.until.is_none()
        {
            let tiles = RowTiles { affines, ty, variable, inside: defined(&mut l.body) };
            tiles.mark(&mut l.body, fresh);
            if let Some(partly) = &mut l.partly {
                tiles.mark(&mut partly.body, fresh);
            }
        }
    }
    body
}

/// A loop whose tiles are looked for.
struct RowTiles<'a> {
    affines: &'a Affines,
    ty: Ty,
    variable: ValueId,
    /// The values that it computes.
    inside: BTreeSet<ValueId>,
}

impl RowTiles<'_> {
    fn mark(&self, body: &mut Body, fresh: &mut Fresh) {
        let touched = touched(body);
        let tiles: Vec<Option<Way>> = body.iter().map(|stmt| self.way(body, stmt, &touched)).collect();
        for (stmt, way) in body.iter_mut().zip(tiles) {
            if let Some(way) = way
                && let Some(element) = stmt.element_mut()
                && let Place::Lanes { stride, .. } = &mut element.place
                && let Stride::Rows(rows) = stride
            {
                *stride = Stride::Tile { number: fresh.next(), rows: std::mem::take(rows), way };
            }
        }
    }

    /// The way that a loop goes through the elements of a statement, where they can be tiles.
    fn way(&self, body: &Body, stmt: &Stmt, touched: &[Touched]) -> Option<Way> {
        let (element, ty, writes) = match stmt {
            Stmt::Load { element, ty, when: None, .. } => (element, *ty, false),
            Stmt::Store { element, ty, when: None, manner: Manner::Plain, .. } => (element, *ty, true),
            _ => return None,
        };
        let in_rows =
            matches!(&element.place, Place::Lanes { stride: Stride::Rows(_), part: Part::Whole, .. });
        if !in_rows || ty != self.ty || element.check != Check::Proved {
            return None;
        }
        let own = side(element);
        let others =
            touched.iter().filter(|t| t.array == element.array && (t.side == own || t.side.is_none()));
        let alone = if writes { others.count() == 1 } else { others.filter(|t| t.writes).count() == 0 };
        let way = alone.then(|| self.goes(element.source)).flatten()?;
        index_statements(body, element).map(|_| way)
    }

    /// The way in which an index goes with the loop: along the last dimension, by one.
    fn goes(&self, source: Indices) -> Option<Way> {
        let (last, others) = source.as_slice().split_last()?;
        let form = |v: &ValueId| &self.affines.form(*v).terms;
        let moves = |(atom, _): &(ValueId, i64)| *atom == self.variable || self.inside.contains(atom);
        if others.iter().any(|v| form(v).iter().any(moves)) {
            return None;
        }
        let mut moving = form(last).iter().filter(|term| moves(term));
        match (moving.next(), moving.next()) {
            (Some((atom, 1)), None) if *atom == self.variable => Some(Way::Behind),
            (Some((atom, -1)), None) if *atom == self.variable => Some(Way::Before),
            _ => None,
        }
    }
}

/// That a statement touches an element of an array.
struct Touched {
    array: ArrayId,
    side: Option<usize>,
    writes: bool,
}

fn touched(body: &mut Body) -> Vec<Touched> {
    let mut touched = Vec::new();
    visit_mut(body, &mut |stmt| {
        let writes = !matches!(stmt, Stmt::Load { .. });
        if let Some(element) = stmt.element_mut() {
            touched.push(Touched { array: element.array, side: side(element), writes });
        }
    });
    touched
}

/// Which of the iterations side by side touches an element.
fn side(element: &Element) -> Option<usize> {
    element.index().iter().find_map(|e| match e {
        Expr::Linear { variable, .. } | Expr::Variable(variable) => variable.side,
        _ => None,
    })
}

/// The values that a body computes.
fn defined(body: &mut Body) -> BTreeSet<ValueId> {
    let mut values = BTreeSet::new();
    visit_mut(body, &mut |stmt| match stmt {
        Stmt::Let { name, .. } | Stmt::Load { name, .. } => values.extend(value(*name)),
        Stmt::Loop(Loop { kind: LoopKind::Counted { variable, .. }, .. }) => values.extend(value(*variable)),
        _ => {}
    });
    values
}

fn value(name: Name) -> Option<ValueId> {
    match name.variable {
        Variable::Value(v) => Some(v),
        _ => None,
    }
}
