//! Tiles of rows. Input: a body in vectors; output: the same, in which a loop that goes along a row of its own in each lane knows
//! it, so that it can load as many rows as there are lanes in vectors and turn them round, instead of gathering element by element.
//!
//! Legal for an element that the loop touches in all iterations, whose index grows or falls by one with each of them and depends on
//! nothing else that the loop computes, and which no other statement of the loop can touch where one of them writes, but for one that
//! loads elements before the other one stores them: iterations of the parallel loop, which are the lanes and the sides, never share
//! what one of them writes.

use std::collections::BTreeSet;

use ebbtide_ir::{Affines, ArrayId, Indices, ValueId};

use crate::analysis::motion::Motion;
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
            let tiles = RowTiles { ty, motion: Motion { affines, variable, inside: defined(&mut l.body) } };
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
    ty: Ty,
    motion: Motion<'a>,
}

impl RowTiles<'_> {
    fn mark(&self, body: &mut Body, fresh: &mut Fresh) {
        let touched = touched(body);
        let tiles: Vec<Option<Way>> = (0..body.len()).map(|at| self.way(body, at, &touched)).collect();
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

    /// The way that a loop goes through the elements of the statement at a place of its body, where they can be tiles.
    fn way(&self, body: &Body, at: usize, touched: &[Touched]) -> Option<Way> {
        let (element, ty) = match &body[at] {
            Stmt::Load { element, ty, when: None, .. } => (element, *ty),
            Stmt::Store { element, ty, when: None, manner: Manner::Plain, .. } => (element, *ty),
            _ => return None,
        };
        let in_rows =
            matches!(&element.place, Place::Lanes { stride: Stride::Rows(_), part: Part::Whole, .. });
        if !in_rows || ty != self.ty || element.check != Check::Proved {
            return None;
        }
        let own = side(element);
        let others: Vec<&Touched> = touched
            .iter()
            .filter(|t| {
                t.array == element.array && (t.side == own || t.side.is_none()) && t.place != Some(at)
            })
            .collect();
        let here = touched.iter().find(|t| t.place == Some(at))?;
        let alone = match others[..] {
            [other] if other.writes && !here.writes => self.is_loaded_first(here, other),
            [other] if here.writes && !other.writes => self.is_loaded_first(other, here),
            _ => others.iter().all(|other| !here.writes && !other.writes),
        };
        let way = alone.then(|| self.goes(element.source)).flatten()?;
        index_statements(body, element).map(|_| way)
    }

    /// Does every element come to a statement that loads it before it comes to one that stores it, or to both in one iteration in
    /// this order?
    fn is_loaded_first(&self, loads: &Touched, stores: &Touched) -> bool {
        let ahead = self.motion.iterations_until(stores.source, loads.source);
        let in_order = || stores.replaces && loads.place.is_some() && loads.place < stores.place;
        ahead.is_some_and(|ahead| ahead > 0 && stores.replaces || ahead == 0 && in_order())
    }

    /// The way in which an index goes with the loop: along the last dimension, by one.
    fn goes(&self, source: Indices) -> Option<Way> {
        let moves = self.motion.of(source)?;
        match moves.split_last()? {
            (1, others) if others.iter().all(|by| *by == 0) => Some(Way::Behind),
            (-1, others) if others.iter().all(|by| *by == 0) => Some(Way::Before),
            _ => None,
        }
    }
}

/// That a statement touches an element of an array.
struct Touched {
    array: ArrayId,
    side: Option<usize>,
    source: Indices,
    /// Its place in the body of the loop, where no branch and no other loop is around it.
    place: Option<usize>,
    writes: bool,
    /// Does it store in every iteration, and ask for nothing that was there?
    replaces: bool,
}

fn touched(body: &mut Body) -> Vec<Touched> {
    let mut touched = Vec::new();
    for (place, stmt) in body.iter_mut().enumerate() {
        let mut inside = false;
        visit_mut(std::slice::from_mut(stmt), &mut |stmt| {
            let writes = !matches!(stmt, Stmt::Load { .. });
            let always = matches!(stmt, Stmt::Store { how: None, when: None, manner: Manner::Plain, .. });
            let place = Some(place).filter(|_| !std::mem::replace(&mut inside, true));
            if let Some(element) = stmt.element_mut() {
                let (array, side, source) = (element.array, side(element), element.source);
                let replaces = always && place.is_some();
                touched.push(Touched { array, side, source, place, writes, replaces });
            }
        });
    }
    touched
}

/// Which of the iterations side by side touches an element.
pub(crate) fn side(element: &Element) -> Option<usize> {
    element.index().iter().find_map(|e| match e {
        Expr::Linear { variable, .. } | Expr::Variable(variable) => variable.side,
        _ => None,
    })
}

/// The values that a body computes.
pub(crate) fn defined(body: &mut Body) -> BTreeSet<ValueId> {
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
