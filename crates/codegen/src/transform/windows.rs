//! Windows. Input: a body in vectors; output: the same, in which a loop hands elements on from one iteration to the next that it
//! touches in several of them, `x[i - 1]` and `x[i]`, or `d[i]` and `d[i - 1]` on the way back: each is loaded when the loop comes
//! to it and stored when it leaves it. So a recurrence does not wait for memory, and what is left goes through rows in order
//! (`transform::row_tiles`).
//!
//! Legal for an array of which the loop touches elements that move with it, all in the same way, in every iteration and with no other
//! statement inside: then the window is known, and its elements exist. Iterations of the parallel loop, which are the lanes and the
//! sides, never share what one of them writes.

use std::collections::{BTreeMap, BTreeSet};

use ebbtide_ir::{Affines, ArrayId, Literal};

use crate::analysis::along_rows::is_window;
use crate::analysis::motion::Motion;
use crate::kernel::expr::Expr;
use crate::kernel::name::{Fresh, Name, Ty, Variable};
use crate::kernel::stmt::{
    Body, Check, Element, Ends, Loop, LoopKind, Manner, Part, Place, Stmt, Stride, visit_mut,
};
use crate::kernel::tiles::index_statements;
use crate::transform::row_tiles::{defined, side};

/// The body whose loops hand on elements in vectors of this type. The depth of recursion is that of nesting in the source.
pub(crate) fn windows(body: Body, affines: &Affines, ty: Ty, fresh: &mut Fresh) -> Body {
    let mut out = Body::new();
    for mut stmt in body {
        for block in stmt.blocks_mut() {
            *block = windows(std::mem::take(block), affines, ty, fresh);
        }
        if let Stmt::Loop(l) = &mut stmt
            && let LoopKind::Counted { variable: Name { variable: Variable::Value(variable), .. }, .. } =
                l.kind
            && l.until.is_none()
            && l.sums.is_empty()
            && l.partly.is_none()
        {
            let motion = Motion { affines, variable, inside: defined(&mut l.body) };
            let found = found(&mut l.body, &motion, ty, fresh);
            if !found.is_empty() {
                out.extend(found.iter().flat_map(|window| window.declared(ty)));
                hand_on(l, &found, ty, fresh);
            }
        }
        out.push(stmt);
    }
    out
}

/// A statement of a loop that touches an element of a window.
struct Touch {
    /// Its place in the body of the loop.
    at: usize,
    /// How many iterations later than one that is touched first of all in the body.
    ahead: i64,
    /// Does it write?
    writes: bool,
}

/// The elements of an array that a loop hands on.
struct Window {
    touches: Vec<Touch>,
    /// The variables that hold them, those first that the loop leaves first.
    names: Vec<Name>,
    /// The element that the loop is about to leave, and the one that it has come to.
    last: i64,
    first: i64,
    /// The one that is written last of all, and the one that is written first of all.
    stored: i64,
    written: i64,
}

impl Window {
    fn name(&self, ahead: i64) -> Name {
        self.names[(ahead - self.last) as usize]
    }

    fn declared(&self, ty: Ty) -> Vec<Stmt> {
        let Ty::Vector(one, _) = ty else { return Vec::new() };
        let zero = Expr::Splat(ty, Box::new(Expr::Literal(Literal::zero(one))));
        self.names.iter().map(|name| Stmt::Declare { name: *name, ty, value: zero.clone() }).collect()
    }

    fn touch(&self, at: usize) -> Option<&Touch> {
        self.touches.iter().find(|touch| touch.at == at)
    }

    /// Is this the first statement that touches the element that the loop has come to?
    fn comes_to(&self, at: usize) -> bool {
        self.touches.iter().find(|touch| touch.ahead == self.first).is_some_and(|touch| touch.at == at)
    }

    /// Is this the last statement that writes an element of the window?
    fn leaves(&self, at: usize) -> bool {
        let last = self.touches.iter().rev().find(|touch| touch.writes && touch.ahead == self.stored);
        last.is_some_and(|touch| touch.at == at)
    }
}

/// The windows of a loop.
fn found(body: &mut Body, motion: &Motion, ty: Ty, fresh: &mut Fresh) -> Vec<Window> {
    let mut inside = BTreeSet::new();
    for block in body.iter_mut().flat_map(Stmt::blocks_mut) {
        visit_mut(block, &mut |stmt| inside.extend(stmt.element_mut().map(|element| element.array)));
    }
    let mut groups: BTreeMap<(ArrayId, Option<usize>), Vec<usize>> = BTreeMap::new();
    for (at, stmt) in body.iter_mut().enumerate() {
        if let Some(element) = stmt.element_mut() {
            groups.entry((element.array, side(element))).or_default().push(at);
        }
    }
    let alone = |(array, side): &(ArrayId, Option<usize>)| {
        !inside.contains(array) && (side.is_none() || !groups.contains_key(&(*array, None)))
    };
    let of = |key: &(ArrayId, Option<usize>)| {
        let others = groups.keys().filter(|(array, side)| *array == key.0 && side.is_some());
        alone(key) && (key.1.is_some() || others.count() == 0)
    };
    let chosen = groups.iter().filter(|(key, _)| of(key));
    chosen.filter_map(|(_, at)| window(body, at, motion, ty, fresh)).collect()
}

/// The window of the statements at these places, which are all that touch the array.
fn window(body: &Body, places: &[usize], motion: &Motion, ty: Ty, fresh: &mut Fresh) -> Option<Window> {
    let (start, stride) = plain(&body[*places.first()?], ty)?;
    let mut touches = Vec::new();
    for at in places {
        let (element, own) = plain(&body[*at], ty)?;
        let writes = matches!(body[*at], Stmt::Store { .. });
        index_statements(body, element)?;
        let ahead = motion.iterations_until(start.source, element.source).filter(|_| own == stride)?;
        touches.push(Touch { at: *at, ahead, writes });
    }
    let writes = || touches.iter().filter(|touch| touch.writes).map(|touch| touch.ahead);
    let (stored, written) = (writes().min()?, writes().max()?);
    let all: BTreeSet<i64> = touches.iter().map(|touch| touch.ahead).collect();
    let (last, first) = (*all.first()?, *all.last()?);
    // Each of them exists, since it is touched.
    (last < first && is_window(&all)).then(|| {
        let names = all.iter().map(|_| Variable::Handed(fresh.next()).into()).collect();
        Window { touches, names, last, first, stored, written }
    })
}

/// The elements of all lanes that a statement touches whatever data are, and how they lie.
fn plain(stmt: &Stmt, wanted: Ty) -> Option<(&Element, &Stride)> {
    let (element, ty) = match stmt {
        Stmt::Load { element, ty, when: None, .. } => (element, *ty),
        Stmt::Store { element, ty, when: None, manner: Manner::Plain, .. } => (element, *ty),
        _ => return None,
    };
    match &element.place {
        Place::Lanes { stride, part: Part::Whole, .. }
            if ty == wanted && element.check == Check::Proved && *stride != Stride::Same =>
        {
            Some((element, stride))
        }
        _ => None,
    }
}

/// The loop that hands the elements of these windows on.
fn hand_on(l: &mut Loop, windows: &[Window], ty: Ty, fresh: &mut Fresh) {
    l.ends = Some(Box::new(ends(&l.body, windows, ty, fresh)));
    let mut body = Body::new();
    for (at, stmt) in std::mem::take(&mut l.body).into_iter().enumerate() {
        let window = windows.iter().find_map(|window| Some((window, window.touch(at)?)));
        match window {
            Some((window, touch)) => handed(stmt, window, touch, fresh, &mut body),
            None => body.push(stmt),
        }
    }
    for window in windows {
        for next in window.last + 1..=window.first {
            let value = Expr::Variable(window.name(next));
            body.push(Stmt::Assign { name: window.name(next - 1), ty, value });
        }
    }
    l.body = body;
}

/// A statement that touches an element of a window, as one that finds it there.
fn handed(stmt: Stmt, window: &Window, touch: &Touch, fresh: &mut Fresh, body: &mut Body) {
    let own = window.name(touch.ahead);
    match stmt {
        Stmt::Load { name, ty, .. } if window.comes_to(touch.at) => {
            body.push(stmt);
            body.push(Stmt::Assign { name: own, ty, value: Expr::Variable(name) });
        }
        Stmt::Load { name, ty, .. } => body.push(Stmt::Let { name, ty, value: Expr::Variable(own) }),
        Stmt::Store { element, ty, how, value, more, manner, .. } => {
            if window.comes_to(touch.at) && how.is_some() {
                let name = Variable::Loaded(fresh.next()).into();
                body.push(Stmt::Load { name, ty, element: element.clone(), when: None });
                body.push(Stmt::Assign { name: own, ty, value: Expr::Variable(name) });
            }
            let value = match how {
                Some(how) => [value]
                    .into_iter()
                    .chain(more)
                    .fold(Expr::Variable(own), |sum, term| Expr::combine(how, ty, sum, term)),
                None => value,
            };
            body.push(Stmt::Assign { name: own, ty, value });
            if window.leaves(touch.at) {
                let (value, more) = (Expr::Variable(own), Vec::new());
                body.push(Stmt::Store { element, ty, how: None, value, more, when: None, manner });
            }
        }
        other => body.push(other),
    }
}

/// What windows hold before the first iteration, and what of them is stored behind the last one.
fn ends(body: &Body, windows: &[Window], ty: Ty, fresh: &mut Fresh) -> Ends {
    let mut ends = Ends::default();
    for window in windows {
        let element = |ahead: i64| {
            let touch = window.touches.iter().find(|touch| touch.ahead == ahead);
            touch.and_then(|touch| plain(&body[touch.at], ty)).map(|(element, _)| element)
        };
        for ahead in window.last..window.first {
            if let Some(element) = element(ahead) {
                computed(body, element, &mut ends.first);
                let name = Variable::Loaded(fresh.next()).into();
                ends.first.push(Stmt::Load { name, ty, element: element.clone(), when: None });
                ends.first.push(Stmt::Assign { name: window.name(ahead), ty, value: Expr::Variable(name) });
            }
        }
        for ahead in window.stored + 1..=window.written {
            if let Some(element) = element(ahead) {
                computed(body, element, &mut ends.last);
                // The loop has handed it on.
                let value = Expr::Variable(window.name(ahead - 1));
                let (element, more, manner) = (element.clone(), Vec::new(), Manner::Plain);
                ends.last.push(Stmt::Store { element, ty, how: None, value, more, when: None, manner });
            }
        }
    }
    ends
}

/// Computes the index of an element, as far as it is not computed yet.
fn computed(body: &Body, element: &Element, out: &mut Body) {
    for stmt in index_statements(body, element).unwrap_or_default() {
        if !out.contains(stmt) {
            out.push(stmt.clone());
        }
    }
}
