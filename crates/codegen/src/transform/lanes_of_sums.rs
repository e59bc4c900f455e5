//! Loops with sums in vectors along their lanes. Input: the interior form of a body; output: the same body, in which the iterations
//! of loops with sums are also there as vectors, each for as many of the 16 lanes of a leaf as a vector has.
//!
//! Legal where a term is computed from the loop's variable, from elements at sums of it that are proved to exist, and from what does
//! not change in the loop, without branches, loops, stores or faults. The order of the sum is that of law 8, which has lanes.

use std::collections::{BTreeMap, BTreeSet};

use ebbtide_ir::{Binary, Literal, Type, ValueId};

use crate::analysis::gathers::Gathers;
use crate::kernel::expr::Expr;
use crate::kernel::index_expr::{Arithmetic, IndexExpr};
use crate::kernel::name::{Fresh, Name, Ty, Variable};
use crate::kernel::stmt::{Body, Check, Element, Loop, LoopKind, Part, Place, Stmt, Stride, Wide, visit_mut};
use crate::transform::vectorise::{Along, Idle, Vectors};

/// What it costs to bring an element to its lane, where neighbouring lanes are not neighbours in memory, in operations on single
/// numbers.
const LANE: usize = 3;

/// The body, whose loops with sums have vectors of so many bytes where these take less time.
pub(crate) fn lanes_of_sums(mut body: Body, vector_bytes: usize, fresh: &mut Fresh) -> Body {
    visit_mut(&mut body, &mut |stmt| {
        if let Stmt::Loop(l) = stmt {
            l.wide = wide(l, vector_bytes, fresh);
        }
    });
    body
}

fn wide(l: &Loop, vector_bytes: usize, fresh: &mut Fresh) -> Option<Wide> {
    let LoopKind::Counted { variable, .. } = l.kind else { return None };
    let Ty::One(element) = l.sums.first()?.1 else { return None };
    let own = |(_, ty): &(Name, Ty)| *ty == Ty::One(element);
    if !element.is_float() || l.until.is_some() || !l.sums.iter().all(own) {
        return None;
    }
    let lanes = vector_bytes / element.size();
    let mut passes = Passes::of(variable, element);
    passes.varying.extend(l.sums.iter().map(|(name, _)| *name));
    l.body.iter().try_for_each(|stmt| passes.statement(stmt))?;
    let one = l.body.len() + 2 * l.sums.len();
    if l.body.len() + LANE * lanes * passes.gathers >= lanes * one {
        return None;
    }
    let mut form = |part| passes.in_vectors(l.body.iter(), lanes, part, fresh);
    Some(Wide { lanes, whole: form(Part::Whole)?, tail: form(Part::Tail)? })
}

/// Lanes are neighbouring iterations of a loop: what its body says of them.
pub(crate) struct Passes {
    variable: Name,
    element: Type,
    /// By how much indices grow from one iteration to the next, where they do.
    coefficients: BTreeMap<Name, i64>,
    /// What else differs between iterations.
    varying: BTreeSet<Name>,
    pub gathers: usize,
}

impl Passes {
    /// Those of a loop with this variable that compute with floats of this type.
    pub fn of(variable: Name, element: Type) -> Passes {
        let coefficients = BTreeMap::from([(variable, 1)]);
        Passes { variable, element, coefficients, varying: BTreeSet::new(), gathers: 0 }
    }

    /// Statements that were taken note of, for so many iterations at once.
    pub fn in_vectors<'s>(
        &self,
        statements: impl Iterator<Item = &'s Stmt>,
        lanes: usize,
        part: Part,
        fresh: &mut Fresh,
    ) -> Option<Body> {
        let element = self.element;
        let (idle, gathers) = (Idle::Present, &Gathers::default());
        let vectors = Vectors { along: self, element, lanes, part, vector: 0, at_once: lanes, idle, gathers };
        let mut out = Body::new();
        for stmt in statements {
            match stmt {
                // Indices are those of the first lane.
                Stmt::Let { ty: Ty::One(Type::Index), .. } => out.push(stmt.clone()),
                _ => vectors.statement(stmt, None, fresh, &mut out)?,
            }
        }
        Some(out)
    }

    /// Takes note of a statement; none where lanes cannot run it side by side.
    pub fn statement(&mut self, stmt: &Stmt) -> Option<()> {
        match stmt {
            Stmt::Let { name, ty: Ty::One(Type::Index), value } => {
                let coefficient = self.growth(value)?;
                if coefficient != 0 {
                    self.coefficients.insert(*name, coefficient);
                }
            }
            Stmt::Let { name, ty, value } | Stmt::Declare { name, ty, value } => {
                // A variable may be given what differs later.
                if self.operands(value)? || matches!(stmt, Stmt::Declare { .. }) {
                    self.own(*ty)?;
                    self.varying.insert(*name);
                }
            }
            // What a variable from outside the loop is given, the next iteration would see.
            Stmt::Assign { name, ty, value } if self.varying.contains(name) => {
                self.operands(value)?;
                self.own(*ty)?;
            }
            Stmt::Load { name, ty, element, when: None } if element.check == Check::Proved => {
                match self.stride(element)? {
                    Stride::Same => {}
                    Stride::Next if *ty == Ty::One(self.element) => {
                        self.varying.insert(*name);
                    }
                    _ if *ty == Ty::One(self.element) => {
                        self.varying.insert(*name);
                        self.gathers += 1;
                    }
                    _ => return None,
                }
            }
            _ => return None,
        }
        Some(())
    }

    /// What differs between lanes has the type of the sums, or is a truth value.
    fn own(&self, ty: Ty) -> Option<()> {
        (ty == Ty::One(self.element) || ty == Ty::One(Type::Bool)).then_some(())
    }

    /// Do the operands of an operation differ between lanes? None where an operand has no form for all lanes.
    fn operands(&self, e: &Expr) -> Option<bool> {
        let atoms = if let Expr::Variable(_) = e { std::slice::from_ref(e) } else { e.operands() };
        let mut differ = false;
        for atom in atoms {
            match atom {
                Expr::Variable(name) if self.coefficients.contains_key(name) => {
                    // The loop's variable as a number is one for each lane; other indices have none.
                    let counts = matches!(e, Expr::Cast { .. }) && *name == self.variable;
                    differ |= counts.then_some(true)?;
                }
                Expr::Variable(name) => differ |= self.varying.contains(name),
                Expr::Literal(_) | Expr::Scalar(..) | Expr::Extent(..) => {}
                Expr::Index(index) if self.growth_of_index(index)? == 0 => {}
                _ => return None,
            }
        }
        Some(differ)
    }

    /// By how much an index grows from one iteration to the next; none where it is no sum.
    fn growth(&self, e: &Expr) -> Option<i64> {
        match e {
            Expr::Variable(name) if self.varying.contains(name) => None,
            Expr::Variable(name) => Some(self.coefficients.get(name).copied().unwrap_or(0)),
            Expr::Literal(_) | Expr::Scalar(..) | Expr::Extent(..) => Some(0),
            Expr::Index(index) => self.growth_of_index(index),
            Expr::Linear { variable, base, .. } => {
                (!self.coefficients.contains_key(variable)).then(|| self.growth_of_index(base))?
            }
            Expr::Binary(op, _, _, two) => {
                let [a, b] = [self.growth(&two[0])?, self.growth(&two[1])?];
                let number = |e: &Expr| if let Expr::Literal(l) = e { Literal::to_i64(*l) } else { None };
                match op {
                    _ if (a, b) == (0, 0) => Some(0),
                    Binary::Add => a.checked_add(b),
                    Binary::Sub => a.checked_sub(b),
                    Binary::Mul if b == 0 => number(&two[1])?.checked_mul(a),
                    Binary::Mul if a == 0 => number(&two[0])?.checked_mul(b),
                    _ => None,
                }
            }
            other => {
                let fixed = other.operands().iter().all(|e| self.growth(e) == Some(0));
                (fixed && !other.operands().is_empty()).then_some(0)
            }
        }
    }

    /// The same, of an index as analyses write it. The depth of recursion is that of the expression.
    fn growth_of_index(&self, e: &IndexExpr) -> Option<i64> {
        let name = |v: &ValueId| Name::value(*v);
        match e {
            IndexExpr::Value(v) => {
                let fixed = !self.varying.contains(&name(v));
                fixed.then(|| self.coefficients.get(&name(v)).copied().unwrap_or(0))
            }
            IndexExpr::Wrapping(op, a, b) | IndexExpr::Marked(op, a, b) => {
                let [x, y] = [self.growth_of_index(a)?, self.growth_of_index(b)?];
                match op {
                    _ if (x, y) == (0, 0) => Some(0),
                    Arithmetic::Add => x.checked_add(y),
                    Arithmetic::Sub => x.checked_sub(y),
                    Arithmetic::Mul if y == 0 => number(b)?.checked_mul(x),
                    Arithmetic::Mul if x == 0 => number(a)?.checked_mul(y),
                    Arithmetic::Mul | Arithmetic::Div => None,
                }
            }
            IndexExpr::Negative(a) => self.growth_of_index(a)?.checked_neg(),
            IndexExpr::Constant(_) | IndexExpr::Number(_) | IndexExpr::Factor(_) => Some(0),
            IndexExpr::Scalar(_) | IndexExpr::First(_) | IndexExpr::End(_) | IndexExpr::Extent(..) => Some(0),
            _ => None,
        }
    }
}

fn number(e: &IndexExpr) -> Option<i64> {
    match e {
        IndexExpr::Constant(n) | IndexExpr::Number(n) | IndexExpr::Factor(n) => Some(*n),
        _ => None,
    }
}

impl Along for Passes {
    fn varies(&self, name: Name) -> bool {
        self.varying.contains(&name) || self.coefficients.contains_key(&name)
    }

    fn stride(&self, element: &Element) -> Option<Stride> {
        let Place::At(index) = &element.place else { return None };
        let growth: Vec<i64> = index.iter().map(|e| self.growth(e)).collect::<Option<_>>()?;
        Some(match growth.split_last() {
            Some((last, rest)) if rest.iter().all(|c| *c == 0) => match last {
                0 => Stride::Same,
                1 => Stride::Next,
                c => Stride::Apart(*c),
            },
            Some(_) => Stride::Rows(growth),
            None => Stride::Same,
        })
    }

    fn ramp(&self, v: ValueId, ty: Ty) -> Option<Expr> {
        let variable = self.variable;
        let base = IndexExpr::Number(0);
        (variable.variable == Variable::Value(v)).then_some(Expr::Ramp { ty, coefficient: 1, variable, base })
    }
}
