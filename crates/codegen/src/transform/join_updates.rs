//! Updates of one element as one statement. Input: the body of an iteration; output: the same with later updates of an element
//! joined to the earlier ones, in the place of the last.
//!
//! A compiler cannot know that arrays do not overlap, so an element that is updated again and again goes to memory and back each
//! time. Joined, it is loaded once and stored once, and combines with the same values in the same order.
//!
//! Legal where nothing between two updates can see the element: another touch of its array must be at an element that is known
//! to be another one, and neither a branch, a loop nor something that may end the iteration stands between them.

use ebbtide_ir::{Affines, Indices};

use crate::kernel::expr::Expr;
use crate::kernel::name::Name;
use crate::kernel::stmt::{Body, Check, Element, Manner, Place, Stmt};

/// The body with its updates joined. The depth of recursion is that of nesting in the source.
pub(crate) fn join_updates(body: Body, affines: &Affines) -> Body {
    let mut joined = Joined { affines, out: Vec::new(), open: Vec::new() };
    for mut stmt in body {
        for block in stmt.blocks_mut() {
            *block = join_updates(std::mem::take(block), affines);
        }
        joined.statement(stmt);
    }
    joined.out.into_iter().flatten().collect()
}

struct Joined<'a> {
    affines: &'a Affines,
    /// The statements so far; nothing is left of those that were joined to later ones.
    out: Vec<Option<Stmt>>,
    /// Where updates stand that others can be joined to.
    open: Vec<usize>,
}

/// How two elements of one array lie.
#[derive(PartialEq, Eq)]
enum Lie {
    Same,
    Apart,
    Unknown,
}

impl Joined<'_> {
    fn statement(&mut self, stmt: Stmt) {
        match &stmt {
            Stmt::Store { element, how: Some(how), manner, when: None, .. }
                if is_sure(element)
                    && matches!(manner, Manner::Plain | Manner::Bucket(_) | Manner::Counted) =>
            {
                let same = self.open.iter().copied().find(|at| match &self.out[*at] {
                    Some(Stmt::Store { element: other, how: Some(by), manner: like, .. }) => {
                        (by, like) == (how, manner)
                            && other.array == element.array
                            && self.lie(other, element) == Lie::Same
                    }
                    _ => false,
                });
                match same {
                    Some(at) => self.join(at, stmt),
                    None => {
                        self.touch(&element.clone());
                        self.open.push(self.out.len());
                        self.out.push(Some(stmt));
                    }
                }
                return;
            }
            Stmt::Load { element, .. }
            | Stmt::Store {
                element,
                manner: Manner::Plain | Manner::CountedFor(_) | Manner::CountedElsewhere,
                ..
            } if is_sure(element) => {
                self.touch(&element.clone());
            }
            Stmt::Assign { name, .. } => self.change(*name),
            Stmt::Let { .. } | Stmt::Declare { .. } | Stmt::Reduce { .. } | Stmt::Strides(_) => {}
            _ => self.open.clear(),
        }
        self.out.push(Some(stmt));
    }

    /// Joins an earlier update to one of the same element.
    fn join(&mut self, at: usize, mut stmt: Stmt) {
        let earlier = self.out[at].take();
        if let (Some(Stmt::Store { value: first, more: mut terms, .. }), Stmt::Store { value, more, .. }) =
            (earlier, &mut stmt)
        {
            terms.push(std::mem::replace(value, first));
            terms.append(more);
            *more = terms;
        }
        self.open.retain(|other| *other != at);
        self.open.push(self.out.len());
        self.out.push(Some(stmt));
    }

    /// An element is touched: nothing is joined any more to updates of what may be the same one.
    fn touch(&mut self, element: &Element) {
        let mut open = std::mem::take(&mut self.open);
        open.retain(|at| match &self.out[*at] {
            Some(Stmt::Store { element: other, .. }) => {
                other.array != element.array || self.lie(other, element) == Lie::Apart
            }
            _ => false,
        });
        self.open = open;
    }

    /// A variable changes: what reads it stays before that.
    fn change(&mut self, name: Name) {
        let (open, out) = (&mut self.open, &mut self.out);
        open.retain(|at| {
            let mut reads = false;
            let mut look = |e: &mut Expr| reads |= matches!(e, Expr::Variable(other) if *other == name);
            if let Some(stmt) = &mut out[*at] {
                stmt.exprs_mut().into_iter().for_each(|e| e.visit_mut(&mut look));
            }
            !reads
        });
    }

    fn lie(&self, a: &Element, b: &Element) -> Lie {
        lie(self.affines, a.source, b.source)
    }
}

/// Is it one element, which exists?
fn is_sure(element: &Element) -> bool {
    element.check == Check::Proved && matches!(element.place, Place::At(_))
}

/// How elements at these indices of one array lie. Indices that exist are numbers, so their sums do not wrap.
fn lie(affines: &Affines, a: Indices, b: Indices) -> Lie {
    let pairs = || a.as_slice().iter().zip(b.as_slice());
    let distance = |(a, b): (&_, &_)| affines.form(*a).add_scaled(affines.form(*b), -1)?.as_constant();
    if pairs().all(|pair| distance(pair) == Some(0)) {
        Lie::Same
    } else if pairs().any(|pair| distance(pair).is_some_and(|d| d != 0)) {
        Lie::Apart
    } else {
        Lie::Unknown
    }
}
