//! Iterations in vectors. Input: the interior form of a body; output: the body of as many iterations as a vector has lanes.
//!
//! Legal where `analysis::vectors` has nothing against it; `None` where an operation has no vector form after all.

mod gathers;
mod partly;

use ebbtide_ir::{ArrayId, Binary, Compare, Function, Literal, Program, Type, Unary, ValueId};

use crate::analysis::gathers::Gathers;
use crate::analysis::interior::Interior;
use crate::analysis::vectors::{self, stride};
use crate::kernel::expr::{Expr, Overflow};
use crate::kernel::index_expr::{Arithmetic, IndexExpr};
use crate::kernel::name::{Fresh, Name, Ty, Variable};
use crate::kernel::stmt::{Body, Element, Manner, Part, Place, Stmt, Stride, visit_mut};

/// What lanes are: what differs between them, and how their elements lie.
pub(crate) trait Along {
    /// Does the variable differ between lanes?
    fn varies(&self, name: Name) -> bool;
    /// How the elements of neighbouring lanes lie; none where data tells them.
    fn stride(&self, element: &Element) -> Option<Stride>;
    /// An index as a float of this type, lane by lane.
    fn ramp(&self, v: ValueId, ty: Ty) -> Option<Expr>;
    /// How far the second of two indices is behind the first one in the first lane, and by how much less in each lane behind it.
    fn distance(&self, _two: &[Expr; 2]) -> Option<(Expr, i64)> {
        None
    }
}

/// Lanes are neighbouring iterations of a parallel loop.
#[derive(Clone, Copy)]
pub(crate) struct Iterations<'a> {
    pub program: &'a Program,
    pub interior: &'a Interior,
    pub innermost: Name,
}

/// What vectors are made of.
#[derive(Clone, Copy)]
pub(crate) struct Vectors<'a> {
    pub along: &'a dyn Along,
    /// The one float type of the data.
    pub element: Type,
    pub lanes: usize,
    pub part: Part,
    /// Which of the vectors that make up the 16 lanes of a leaf this is.
    pub vector: usize,
    /// How many iterations run at once, in this vector and those that are to stand beside it.
    pub at_once: usize,
    /// What lanes are that take no part in a branch.
    pub idle: Idle,
    /// Loads at indices from data.
    pub gathers: &'a Gathers,
}

/// What lanes are that take no part in a branch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Idle {
    /// The elements that others load there exist for them too.
    Present,
    /// They touch nothing. This mask has the lanes that are iterations.
    Absent(Name),
}

/// The body in vectors.
pub(crate) fn vectorise(body: &Body, vectors: Vectors, fresh: &mut Fresh) -> Option<Body> {
    let mut out = Body::new();
    if let Idle::Absent(name) = vectors.idle {
        out.push(vectors.first_lanes(name));
    }
    vectors.block(body, None, fresh, &mut out)?;
    gathers::delay_stores(&mut out);
    meet_once(&mut out).then_some(out)
}

impl Along for Iterations<'_> {
    fn varies(&self, name: Name) -> bool {
        match name.variable {
            Variable::Value(v) => !self.interior.varying.uniform(v),
            Variable::Local(local) => self.interior.varying.locals.contains(&local),
            _ => false,
        }
    }

    fn stride(&self, element: &Element) -> Option<Stride> {
        Some(match stride(self.program, self.interior, element.source) {
            vectors::Stride::Same => Stride::Same,
            vectors::Stride::Next => Stride::Next,
            vectors::Stride::Apart(stride) => Stride::Apart(stride),
            // More than the last dimension varies.
            vectors::Stride::Unknown => {
                let coefficient = |v: &ValueId| match self.interior.linear_here(self.program, *v) {
                    Some(sum) => Some(sum.coefficient),
                    None => self.interior.varying.uniform(*v).then_some(0),
                };
                Stride::Rows(element.source.as_slice().iter().map(coefficient).collect::<Option<_>>()?)
            }
        })
    }

    fn ramp(&self, v: ValueId, ty: Ty) -> Option<Expr> {
        let sum = self.interior.linear_here(self.program, v)?;
        Some(Expr::Ramp { ty, coefficient: sum.coefficient, variable: self.innermost, base: sum.base })
    }

    fn distance(&self, two: &[Expr; 2]) -> Option<(Expr, i64)> {
        let sum = |e: &Expr| match e {
            Expr::Variable(Name { variable: Variable::Value(v), .. }) => {
                self.interior.linear_here(self.program, *v).map(|sum| (sum.coefficient, sum.base))
            }
            Expr::Literal(literal) => Some((0, IndexExpr::Constant(literal.to_i64()?))),
            Expr::Index(base) => Some((0, base.clone())),
            Expr::Linear { coefficient, base, .. } => Some((*coefficient, base.clone())),
            _ => None,
        };
        let ((a, from), (b, to)) = (sum(&two[0])?, sum(&two[1])?);
        let coefficient = b.checked_sub(a)?;
        let base = IndexExpr::wrapping(Arithmetic::Sub, to, from);
        Some((Expr::Linear { coefficient, variable: self.innermost, base }, -coefficient))
    }
}

impl Vectors<'_> {
    /// Statements of which the lanes of a mask take part, or all. The depth of recursion is that of nesting in the source.
    fn block(&self, body: &Body, mask: Option<&Expr>, fresh: &mut Fresh, out: &mut Body) -> Option<()> {
        for stmt in body {
            self.statement(stmt, mask, fresh, out)?;
        }
        Some(())
    }

    /// One statement, of which the lanes of a mask take part, or all.
    pub fn statement(
        &self,
        stmt: &Stmt,
        mask: Option<&Expr>,
        fresh: &mut Fresh,
        out: &mut Body,
    ) -> Option<()> {
        match stmt {
            // Sums of the innermost variable are computed where they are used.
            Stmt::Let { value: Expr::Linear { .. }, .. } => {}
            Stmt::Let { name, value, .. } if self.is_lane_index(*name) => {
                self.lane_index(*name, value, out)?
            }
            Stmt::Let { name, ty, value } if self.varies(*name) => {
                let value = self.operation(value)?;
                out.push(Stmt::Let { name: *name, ty: self.widened(*ty), value });
            }
            Stmt::Declare { name, ty, value } if self.varies(*name) => {
                out.push(Stmt::Declare {
                    name: *name,
                    ty: self.widened(*ty),
                    value: self.operand(value, *ty),
                });
            }
            Stmt::Assign { name, ty, value } if self.varies(*name) => {
                let (ty, value) = (self.widened(*ty), self.operand(value, *ty));
                let value = match mask {
                    Some(mask) => Expr::select(ty, mask.clone(), value, Expr::Variable(*name)),
                    None => value,
                };
                out.push(Stmt::Assign { name: *name, ty, value });
            }
            Stmt::Load { name, ty: Ty::One(ty), element, .. }
                if self.gathers.accesses.contains(element.source.as_slice()) =>
            {
                self.gather((*name, *ty), element, out)?;
            }
            Stmt::Load { name, ty: Ty::One(ty), element, .. } if self.varies(*name) => {
                self.load((*name, *ty), element, mask, fresh, out)?;
            }
            Stmt::Store { element, ty, how, value, more, manner, .. } => {
                // Where lanes meet in one element, one after the other combines with it.
                let stride = self.along.stride(element).filter(|s| *s != Stride::Same || how.is_some())?;
                // Lanes of a mask touch elements side by side, and no others have them.
                let fits = stride == Stride::Next && *manner == Manner::Plain;
                if self.is_absent(mask) && !fits {
                    return None;
                }
                out.push(Stmt::Store {
                    element: self.lanes_of(element, stride, mask),
                    ty: self.widened(*ty),
                    how: *how,
                    value: self.operand(value, *ty),
                    more: more.iter().map(|value| self.operand(value, *ty)).collect(),
                    when: mask.cloned(),
                    manner: manner.clone(),
                });
            }
            // Where lanes touch nothing, all else that they share is left to iterations one by one.
            Stmt::Reduce { .. } | Stmt::Loop(_) if self.idle != Idle::Present => return None,
            Stmt::Reduce { number, ty, how, value, .. } => out.push(Stmt::Reduce {
                number: *number,
                ty: self.widened(*ty),
                how: *how,
                value: self.operand(value, *ty),
                when: mask.cloned(),
                vector: self.vector,
            }),
            Stmt::If { condition: Expr::Variable(name), then, otherwise } if self.varies(*name) => {
                let masks = Ty::Mask(self.element, self.lanes);
                let condition = Expr::Variable(*name);
                for (condition, arm) in [(condition.clone(), then), (condition.not(masks), otherwise)] {
                    if arm.is_empty() {
                        continue;
                    }
                    let value = match (mask, self.idle) {
                        (Some(mask), _) => both(masks, mask.clone(), condition),
                        (None, Idle::Absent(first)) => both(masks, Expr::Variable(first), condition),
                        (None, Idle::Present) => condition,
                    };
                    let name = Variable::Mask(fresh.next()).into();
                    out.push(Stmt::Let { name, ty: masks, value });
                    self.block(arm, Some(&Expr::Variable(name)), fresh, out)?;
                }
            }
            Stmt::If { condition, then, otherwise } => {
                let [mut widened, mut other] = [Body::new(), Body::new()];
                self.block(then, mask, fresh, &mut widened)?;
                self.block(otherwise, mask, fresh, &mut other)?;
                out.push(Stmt::If { condition: condition.clone(), then: widened, otherwise: other });
            }
            Stmt::Loop(l) => {
                let mut l = l.clone();
                let body = std::mem::take(&mut l.body);
                self.block(&body, mask, fresh, &mut l.body)?;
                for (name, ty) in &mut l.sums {
                    if self.varies(*name) {
                        *ty = self.widened(*ty);
                    }
                }
                if self.differs(&l) {
                    mask.is_none().then(|| self.partly(&mut l, &body, fresh))??;
                }
                out.push(Stmt::Loop(l));
            }
            Stmt::Claim { .. } => return None,
            // Lanes that are not here may have a zero divisor, or no number as a bound.
            Stmt::Fault { .. } if mask.is_some() => return None,
            // What is the same in all lanes.
            other => out.push(other.clone()),
        }
        Some(())
    }

    /// Loads the elements of all lanes, or of those of a mask.
    fn load(
        &self,
        (name, ty): (Name, Type),
        element: &Element,
        mask: Option<&Expr>,
        fresh: &mut Fresh,
        out: &mut Body,
    ) -> Option<()> {
        let stride = self.along.stride(element)?;
        if self.is_absent(mask) {
            let fits = stride == Stride::Next && ty == self.element;
            let element = fits.then(|| self.lanes_of(element, stride, mask))?;
            let ty = Ty::Vector(ty, self.lanes);
            out.push(Stmt::Load { name, ty, element, when: mask.cloned() });
            return Some(());
        }
        if stride == Stride::Same && ty == self.element {
            // One for all of them.
            let loaded = Variable::Loaded(fresh.next()).into();
            out.push(Stmt::Load { name: loaded, ty: Ty::One(ty), element: element.clone(), when: None });
            let value = Expr::Splat(Ty::Vector(ty, self.lanes), Box::new(Expr::Variable(loaded)));
            out.push(Stmt::Let { name, ty: Ty::Vector(ty, self.lanes), value });
            return Some(());
        }
        let (element, wide) = (self.lanes_of(element, stride, None), Ty::Vector(ty, self.lanes));
        if ty != Type::Bool {
            out.push(Stmt::Load { name, ty: wide, element, when: None });
            return Some(());
        }
        // Truth values are bytes in memory.
        let loaded = Variable::Loaded(fresh.next()).into();
        out.push(Stmt::Load { name: loaded, ty: wide, element, when: None });
        let (own, masks) = (Ty::Vector(self.element, self.lanes), Ty::Mask(self.element, self.lanes));
        let zero = Expr::Splat(own, Box::new(Expr::Literal(Literal::zero(self.element))));
        let value =
            Expr::Compare(Compare::Ne, own, Box::new([converted(wide, own, Expr::Variable(loaded)), zero]));
        out.push(Stmt::Let { name, ty: masks, value });
        Some(())
    }

    /// Does the variable differ between lanes?
    fn varies(&self, name: Name) -> bool {
        self.along.varies(name)
    }

    fn widened(&self, ty: Ty) -> Ty {
        match ty {
            Ty::One(Type::Bool) => Ty::Mask(self.element, self.lanes),
            Ty::One(ty) => Ty::Vector(ty, self.lanes),
            other => other,
        }
    }

    /// An operand of this type, for all lanes.
    fn operand(&self, e: &Expr, ty: Ty) -> Expr {
        match e {
            Expr::Variable(name) if self.varies(*name) => e.clone(),
            _ => Expr::Splat(self.widened(ty), Box::new(e.clone())),
        }
    }

    /// An operation on vectors of the one float type, or on masks.
    fn operation(&self, e: &Expr) -> Option<Expr> {
        let float = Ty::One(self.element);
        let truth = Ty::One(Type::Bool);
        let at = |e: &Expr, ty: Ty| self.operand(e, ty);
        let wide = |ty: Ty| self.widened(ty);
        Some(match e {
            Expr::Variable(name) => self.varies(*name).then(|| e.clone())?,
            Expr::Unary(Unary::Not, ty, o, a) if *ty == truth => {
                Expr::Unary(Unary::Not, wide(*ty), *o, Box::new(at(a, *ty)))
            }
            Expr::Unary(op, ty, o, a) if *ty == float && *op != Unary::Not => {
                Expr::Unary(*op, wide(*ty), *o, Box::new(at(a, *ty)))
            }
            Expr::Binary(op, ty, o, two) => {
                let fits = match op {
                    Binary::Add | Binary::Sub | Binary::Mul | Binary::Div | Binary::Min | Binary::Max => {
                        *ty == float
                    }
                    Binary::And | Binary::Or | Binary::Xor => *ty == truth,
                    _ => false,
                };
                let two = fits.then(|| two.each_ref().map(|e| at(e, *ty)))?;
                Expr::Binary(*op, wide(*ty), *o, Box::new(two))
            }
            Expr::Compare(op, ty, two) if *ty == float => {
                Expr::Compare(*op, wide(*ty), Box::new(two.each_ref().map(|e| at(e, *ty))))
            }
            // How far two indices are apart is compared with how far lanes are from the first one, which are small numbers:
            // rounding the other changes nothing.
            Expr::Compare(op, Ty::One(Type::Index), two) if self.idle != Idle::Present => {
                let (far, coefficient) = self.along.distance(two)?;
                let own = Ty::Vector(self.element, self.lanes);
                let far = self.own(&far, Ty::One(Type::Index));
                Expr::Compare(*op, own, Box::new([Expr::Multiples { ty: own, coefficient }, far]))
            }
            // Numbers of another type are compared as numbers of this one.
            Expr::Compare(op, ty @ Ty::One(_), two) => {
                let own = two.each_ref().map(|e| self.own(e, *ty));
                Expr::Compare(*op, wide(float), Box::new(own))
            }
            Expr::Select(ty, three) if *ty == float || *ty == truth => {
                let [c, a, b] = &**three;
                Expr::select(wide(*ty), at(c, truth), at(a, *ty), at(b, *ty))
            }
            Expr::Fma(ty, three) => Expr::Fma(wide(*ty), Box::new(three.each_ref().map(|e| at(e, *ty)))),
            Expr::Cast { from, to, value, .. } if *to == float => match (&**value, from) {
                (value, Ty::One(Type::Bool)) => Expr::Cast {
                    from: wide(*from),
                    to: wide(*to),
                    overflow: Overflow::Wraps,
                    value: Box::new(at(value, *from)),
                },
                (Expr::Variable(Name { variable: Variable::Value(v), .. }), Ty::One(Type::Index)) => {
                    self.along.ramp(*v, wide(*to))?
                }
                (Expr::Linear { coefficient, variable, base }, Ty::One(Type::Index)) => Expr::Ramp {
                    ty: wide(*to),
                    coefficient: *coefficient,
                    variable: *variable,
                    base: base.clone(),
                },
                (value, from) => self.own(value, *from),
            },
            Expr::Math(Function::Powi, ..) => return None,
            Expr::Math(function, ty, arguments) => {
                Expr::Math(*function, wide(*ty), arguments.iter().map(|e| at(e, *ty)).collect())
            }
            _ => return None,
        })
    }

    /// A number of another type as one of the loop's own, for all lanes.
    fn own(&self, e: &Expr, from: Ty) -> Expr {
        let own = Ty::Vector(self.element, self.lanes);
        match e {
            Expr::Variable(name) if self.varies(*name) => converted(self.widened(from), own, e.clone()),
            _ => Expr::Splat(own, Box::new(converted(from, Ty::One(self.element), e.clone()))),
        }
    }

    /// The elements of all lanes; of those of a mask, where others touch nothing.
    fn lanes_of(&self, element: &Element, stride: Stride, mask: Option<&Expr>) -> Element {
        let first = element.index().to_vec();
        let part = if self.is_absent(mask) { Part::Mask } else { self.part };
        Element { place: Place::Lanes { first, stride, part }, ..element.clone() }
    }

    /// Do the lanes that are not in this mask touch nothing?
    fn is_absent(&self, mask: Option<&Expr>) -> bool {
        mask.is_some() && self.idle != Idle::Present
    }

    /// The mask of the lanes that are iterations.
    fn first_lanes(&self, name: Name) -> Stmt {
        let own = Ty::Vector(self.element, self.lanes);
        let tail =
            converted(Ty::One(Type::Index), Ty::One(self.element), Expr::Variable(Variable::Tail.into()));
        let two = [Expr::Multiples { ty: own, coefficient: 1 }, Expr::Splat(own, Box::new(tail))];
        let value = Expr::Compare(Compare::Lt, own, Box::new(two));
        Stmt::Let { name, ty: Ty::Mask(self.element, self.lanes), value }
    }
}

/// Do lanes that share an element combine with it in one statement? Two would change places with lanes between them. Statements
/// for one array have different constants in some dimension.
fn meet_once(body: &mut [Stmt]) -> bool {
    let mut seen: Vec<(ArrayId, Vec<Option<i64>>)> = Vec::new();
    let mut once = true;
    visit_mut(body, &mut |stmt| {
        if let Some(element) = stmt.element_mut()
            && let Place::Lanes { first, stride: Stride::Same, .. } = &element.place
        {
            let index: Vec<Option<i64>> = first.iter().map(constant).collect();
            let differ = |(a, b): (&Option<i64>, &Option<i64>)| a.is_some() && b.is_some() && a != b;
            let apart = |other: &Vec<Option<i64>>| index.iter().zip(other).any(differ);
            once &= seen.iter().all(|(array, other)| *array != element.array || apart(other));
            seen.push((element.array, index));
        }
    });
    once
}

/// The number that an index is, where it is a constant.
fn constant(index: &Expr) -> Option<i64> {
    match index {
        Expr::Literal(literal) => literal.to_i64(),
        Expr::Index(IndexExpr::Constant(n) | IndexExpr::Number(n)) => Some(*n),
        _ => None,
    }
}

fn converted(from: Ty, to: Ty, value: Expr) -> Expr {
    Expr::Cast { from, to, overflow: Overflow::Wraps, value: Box::new(value) }
}

fn both(ty: Ty, a: Expr, b: Expr) -> Expr {
    Expr::Binary(Binary::And, ty, Overflow::Wraps, Box::new([a, b]))
}
