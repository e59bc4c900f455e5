//! What is a lawful body. Input: a body; output: the first rule that it breaks.
//!
//! 1. A name is defined once. Where a body defines it, it is used behind that definition, in the same block or inside.
//! 2. Operands have the types that operations say; a narrow index is an index.
//! 3. An element has an index for each dimension of its array, and is loaded and stored in the array's type.
//! 4. Variables alone are given other values.
//! 5. Faults wait only between `defer faults` and `raise deferred faults`.
//! 6. A team stores together: not where its threads run different iterations of a loop.
//! 7. One element is stored once by a statement; with what else a statement or its lanes have for it, it is combined.
//! 8. Where the lanes of a mask alone touch elements, which lie side by side, the statement has the mask.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use ebbtide_ir::{Function, Program, Type};

use super::expr::Expr;
use super::name::{Name, Ty, Variable};
use super::stmt::{Body, Check, Element, Loop, LoopKind, Manner, Part, Place, Stmt, Stride};

/// Why a body is not lawful.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Error {
    /// Rule 1.
    DefinedTwice(Name),
    /// Rule 1.
    OutOfScope(Name),
    /// Rule 2: what was expected, what was found, and where.
    Type(Ty, Ty, String),
    /// Rule 3.
    Rank(String),
    /// Rule 4.
    Constant(Name),
    /// Rule 5.
    NotDeferred,
    /// Rule 6.
    Divergent(String),
    /// Rule 7.
    Overwritten(String),
    /// Rule 8.
    NoMask(String),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::DefinedTwice(name) => write!(f, "rule 1: {name} is defined twice"),
            Error::OutOfScope(name) => {
                write!(f, "rule 1: {name} is used where its definition is not in scope")
            }
            Error::Type(expected, found, at) => write!(f, "rule 2: {expected} expected, {found} found: {at}"),
            Error::Rank(array) => write!(f, "rule 3: {array} has another rank"),
            Error::Constant(name) => write!(f, "rule 4: {name} does not change"),
            Error::NotDeferred => f.write_str("rule 5: a fault waits that is never raised"),
            Error::Divergent(array) => write!(f, "rule 6: some threads of a team alone store into {array}"),
            Error::Overwritten(array) => write!(f, "rule 7: an element of {array} is stored twice at once"),
            Error::NoMask(array) => write!(f, "rule 8: no mask says which lanes touch {array}"),
        }
    }
}

/// Is the body lawful? Names that it does not define come from outside.
pub(crate) fn verify(program: &Program, body: &Body) -> Result<(), Error> {
    let mut defined = BTreeSet::new();
    definitions(body, &mut defined)?;
    let mut verifier = Verifier {
        program,
        defined,
        scope: BTreeMap::new(),
        order: Vec::new(),
        deferred: false,
        divergent: false,
    };
    verifier.block(body)?;
    if verifier.deferred { Err(Error::NotDeferred) } else { Ok(()) }
}

/// The names that statements define. The depth of recursion is that of nesting in the source.
fn definitions(body: &Body, defined: &mut BTreeSet<Name>) -> Result<(), Error> {
    let mut define = |name: Name| if defined.insert(name) { Ok(()) } else { Err(Error::DefinedTwice(name)) };
    for stmt in body {
        match stmt {
            Stmt::Let { name, .. } | Stmt::Declare { name, .. } | Stmt::Address { name, .. } => {
                define(*name)?
            }
            Stmt::Load { name, element, .. } => {
                define(*name)?;
                if let Check::Deferred(ok) = element.check {
                    define(ok)?;
                }
            }
            Stmt::Store { element: Element { check: Check::Deferred(ok), .. }, .. } => define(*ok)?,
            Stmt::Loop(Loop { kind: LoopKind::Counted { variable, .. }, .. }) => define(*variable)?,
            _ => {}
        }
    }
    // What some lanes do, or what is done at its ends, has the names of what all iterations do.
    body.iter().try_for_each(|stmt| match stmt {
        Stmt::Loop(Loop { kind: LoopKind::Counted { .. }, body, .. }) => definitions(body, defined),
        stmt => stmt.blocks().into_iter().try_for_each(|block| definitions(block, defined)),
    })
}

struct Verifier<'p> {
    program: &'p Program,
    defined: BTreeSet<Name>,
    scope: BTreeMap<Name, Ty>,
    /// The names in scope, in the order in which they were defined.
    order: Vec<Name>,
    /// Do faults wait here?
    deferred: bool,
    /// Do the threads of a team run different iterations here?
    divergent: bool,
}

const INDEX: Ty = Ty::One(Type::Index);
const TRUTH: Ty = Ty::One(Type::Bool);

impl Verifier<'_> {
    /// The depth of recursion is that of nesting in the source.
    fn block(&mut self, body: &Body) -> Result<(), Error> {
        let outer = self.order.len();
        body.iter().try_for_each(|stmt| self.statement(stmt))?;
        self.leave(outer);
        Ok(())
    }

    fn enter(&mut self, name: Name, ty: Ty) {
        self.scope.insert(name, ty);
        self.order.push(name);
    }

    /// Leaves a block that was entered with so many names in scope. No name is defined twice.
    fn leave(&mut self, outer: usize) {
        for name in self.order.drain(outer..) {
            self.scope.remove(&name);
        }
    }

    fn statement(&mut self, stmt: &Stmt) -> Result<(), Error> {
        match stmt {
            Stmt::Let { name, ty, value } | Stmt::Declare { name, ty, value } => {
                self.expect(value, *ty)?;
                self.enter(*name, *ty);
            }
            Stmt::Assign { name, ty, value } => {
                let changes = matches!(
                    name.variable,
                    Variable::Local(_) | Variable::Held(_) | Variable::Terms(_) | Variable::Handed(_)
                );
                if !changes {
                    return Err(Error::Constant(*name));
                }
                self.expect(&Expr::Variable(*name), *ty)?;
                self.expect(value, *ty)?;
            }
            Stmt::Load { name, ty, element, when } => {
                self.element(element, Some(*ty))?;
                self.condition(when.as_ref(), *ty)?;
                self.masked(element, when.as_ref())?;
                self.enter(*name, *ty);
            }
            Stmt::Store { element, ty, how, value, more, when, manner } => {
                self.element(element, Some(*ty))?;
                self.expect(value, *ty)?;
                more.iter().try_for_each(|value| self.expect(value, *ty))?;
                let together = matches!(element.place, Place::Lanes { stride: Stride::Same, .. });
                if how.is_none() && (together || !more.is_empty()) {
                    return Err(Error::Overwritten(self.program.array(element.array).name.clone()));
                }
                self.condition(when.as_ref(), *ty)?;
                self.masked(element, when.as_ref())?;
                if *manner == Manner::Leader && self.divergent {
                    return Err(Error::Divergent(self.program.array(element.array).name.clone()));
                }
            }
            Stmt::Address { name, ty, element } => {
                self.element(element, None)?;
                self.enter(*name, Ty::Address(*ty));
            }
            Stmt::Reduce { ty, value, when, .. } => {
                self.expect(value, *ty)?;
                self.condition(when.as_ref(), *ty)?;
            }
            Stmt::Claim { element, .. } => self.element(element, None)?,
            Stmt::Fault { operand, counters, .. } => {
                self.ty(operand)?;
                counters.iter().try_for_each(|counter| self.expect(counter, INDEX))?;
            }
            Stmt::DeferFaults => self.deferred = true,
            Stmt::RaiseDeferred => self.deferred = false,
            Stmt::FallBack { unless, .. } => self.expect(unless, TRUTH)?,
            Stmt::Strides(_) | Stmt::Poll => {}
            Stmt::Push { array, value, .. } => self.expect(value, Ty::One(self.program.array(*array).ty))?,
            Stmt::Pop { array, name, ty, .. } => {
                if !matches!(name.variable, Variable::Held(_)) {
                    return Err(Error::Constant(*name));
                }
                self.expect(&Expr::Variable(*name), *ty)?;
                same(Ty::One(self.program.array(*array).ty), *ty, &name.to_string())?;
            }
            Stmt::If { condition, then, otherwise } => {
                self.expect(condition, TRUTH)?;
                self.block(then)?;
                self.block(otherwise)?;
            }
            Stmt::Loop(l) => self.inner_loop(l)?,
        }
        Ok(())
    }

    fn inner_loop(&mut self, l: &Loop) -> Result<(), Error> {
        let (outer, divergent) = (self.order.len(), self.divergent);
        self.divergent |= !l.sums.is_empty();
        l.sums.iter().try_for_each(|(name, ty)| self.expect(&Expr::Variable(*name), *ty))?;
        match &l.kind {
            LoopKind::Counted { variable, from, to } => {
                self.expect(from, INDEX)?;
                self.expect(to, INDEX)?;
                self.enter(*variable, INDEX);
            }
            LoopKind::While { head, condition } => {
                // What the head computes is known in its condition alone.
                let scope = self.order.len();
                head.iter().try_for_each(|stmt| self.statement(stmt))?;
                self.expect(condition, TRUTH)?;
                self.leave(scope);
            }
            LoopKind::Forever => {}
        }
        let inside = self.order.len();
        if let Some(ends) = &l.ends {
            self.block(&ends.first)?;
            self.block(&ends.last)?;
        }
        if let Some(ahead) = &l.ahead {
            ahead.body.iter().try_for_each(|stmt| self.statement(stmt))?;
            ahead.values.iter().try_for_each(|name| self.expect(&Expr::Variable(*name), ahead.ty))?;
            self.leave(inside);
        }
        l.body.iter().try_for_each(|stmt| self.statement(stmt))?;
        self.condition(l.until.as_ref(), INDEX)?;
        if let Some(partly) = &l.partly {
            self.leave(inside);
            self.expect(&partly.from, INDEX)?;
            self.expect(&partly.to, INDEX)?;
            self.block(&partly.body)?;
        }
        if let Some(wide) = &l.wide {
            self.leave(inside);
            for (name, ty) in &l.sums {
                let Ty::One(ty) = *ty else { return Err(Error::Type(INDEX, *ty, name.to_string())) };
                self.scope.insert(*name, Ty::Vector(ty, wide.lanes));
            }
            self.block(&wide.whole)?;
            self.block(&wide.tail)?;
            self.scope.extend(l.sums.iter().copied());
        }
        self.leave(outer);
        self.divergent = divergent;
        Ok(())
    }

    /// A condition on something of this type.
    fn condition(&self, when: Option<&Expr>, ty: Ty) -> Result<(), Error> {
        when.map_or(Ok(()), |when| self.expect(when, ty.truth()))
    }

    fn masked(&self, element: &Element, when: Option<&Expr>) -> Result<(), Error> {
        match &element.place {
            Place::Lanes { stride, part: Part::Mask, .. } if when.is_none() || *stride != Stride::Next => {
                Err(Error::NoMask(self.program.array(element.array).name.clone()))
            }
            _ => Ok(()),
        }
    }

    fn element(&mut self, element: &Element, ty: Option<Ty>) -> Result<(), Error> {
        let array = self.program.array(element.array);
        if let Some(ty) = ty {
            let expected = match (&element.place, ty) {
                (Place::Lanes { .. } | Place::Gathered(_), Ty::Vector(_, lanes)) => {
                    Ty::Vector(array.ty, lanes)
                }
                _ => Ty::One(array.ty),
            };
            same(expected, ty, &array.name)?;
        }
        match &element.place {
            Place::From(name, _) => self.expect(&Expr::Variable(*name), Ty::Address(array.ty))?,
            Place::Gathered(_) => {}
            Place::At(index) | Place::Lanes { first: index, .. } => {
                if index.len() != array.rank {
                    return Err(Error::Rank(array.name.clone()));
                }
                index.iter().try_for_each(|e| self.expect(e, INDEX))?;
            }
        }
        if let Place::Gathered(index) = &element.place {
            if index.len() != array.rank {
                return Err(Error::Rank(array.name.clone()));
            }
            let lanes = |e: &Expr| match self.ty(e)? {
                Ty::Vector(Type::I32 | Type::I64, _) => Ok(()),
                found => Err(Error::Type(INDEX, found, format!("{e:?}"))),
            };
            index.iter().try_for_each(lanes)?;
        }
        if let Check::Deferred(ok) = element.check {
            if !self.deferred {
                return Err(Error::NotDeferred);
            }
            self.enter(ok, TRUTH);
        }
        Ok(())
    }

    fn expect(&self, e: &Expr, ty: Ty) -> Result<(), Error> {
        same(ty, self.ty(e)?, &format!("{e:?}"))
    }

    /// The type of an expression, whose operands have theirs. The depth of recursion is that of the expression.
    fn ty(&self, e: &Expr) -> Result<Ty, Error> {
        let all = |ty: Ty| e.operands().iter().try_for_each(|operand| self.expect(operand, ty));
        Ok(match e {
            Expr::Literal(literal) => Ty::One(literal.ty()),
            Expr::Variable(name) => self.name(*name)?,
            Expr::Scalar(_, ty) => Ty::One(*ty),
            Expr::Extent(..) | Expr::Index(_) => INDEX,
            Expr::Linear { variable, .. } => {
                self.expect(&Expr::Variable(*variable), INDEX)?;
                INDEX
            }
            Expr::Ramp { ty, variable, .. } => {
                self.expect(&Expr::Variable(*variable), INDEX)?;
                *ty
            }
            Expr::Multiples { ty, .. } => *ty,
            Expr::Unary(_, ty, ..) | Expr::Binary(_, ty, ..) | Expr::Fma(ty, _) => {
                all(*ty)?;
                *ty
            }
            Expr::Compare(_, ty, _) => {
                all(*ty)?;
                ty.truth()
            }
            Expr::Select(ty, three) => {
                let [condition, a, b] = &**three;
                self.expect(condition, ty.truth())?;
                self.expect(a, *ty)?;
                self.expect(b, *ty)?;
                *ty
            }
            Expr::Cast { from, to, .. } => {
                all(*from)?;
                *to
            }
            Expr::Math(function, ty, arguments) => {
                // The exponent of an integer power is an integer.
                let same = if *function == Function::Powi { &arguments[..1] } else { &arguments[..] };
                same.iter().try_for_each(|e| self.expect(e, *ty))?;
                *ty
            }
            Expr::Random(ty, _) => {
                all(Ty::One(Type::I64))?;
                Ty::One(*ty)
            }
            Expr::All(_) => {
                all(TRUTH)?;
                TRUTH
            }
            Expr::Within(ty, three) => {
                let [of, from, to] = &**three;
                self.expect(of, *ty)?;
                self.expect(from, INDEX)?;
                self.expect(to, INDEX)?;
                TRUTH
            }
            Expr::OneStep(ty, _) => {
                all(*ty)?;
                *ty
            }
            Expr::Nearest(_) => {
                all(INDEX)?;
                Ty::Narrow
            }
            Expr::Splat(ty, _) => {
                all(match ty {
                    Ty::Vector(ty, _) => Ty::One(*ty),
                    _ => TRUTH,
                })?;
                *ty
            }
        })
    }

    fn name(&self, name: Name) -> Result<Ty, Error> {
        if let Some(ty) = self.scope.get(&name) {
            return Ok(*ty);
        }
        let outside = match name.variable {
            Variable::Value(v) => Some(Ty::One(self.program.ty(v))),
            Variable::Local(local) => Some(Ty::One(self.program.locals[local.index()].ty)),
            Variable::Held(array) => Some(Ty::One(self.program.array(array).ty)),
            Variable::Bound(_) => Some(Ty::Narrow),
            Variable::Finished(_) | Variable::Terms(_) | Variable::Tail => Some(INDEX),
            Variable::Mask(_)
            | Variable::Exists(_)
            | Variable::Address(_)
            | Variable::Old(_)
            | Variable::Handed(_)
            | Variable::Loaded(_) => None,
        };
        outside.filter(|_| !self.defined.contains(&name)).ok_or(Error::OutOfScope(name))
    }
}

fn same(expected: Ty, found: Ty, at: &str) -> Result<(), Error> {
    let plain = |ty| if ty == Ty::Narrow { INDEX } else { ty };
    match plain(expected) == plain(found) {
        true => Ok(()),
        false => Err(Error::Type(expected, found, at.to_string())),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
mod tests {
    use ebbtide_ir::{ArrayId, Combine, Indices, Literal, LocalId, LoopId, ValueId, parse};

    use super::*;

    const F64: Ty = Ty::One(Type::F64);

    /// The program whose names the bodies below use: arrays `x` and `y`, a local.
    fn program() -> Program {
        let text = "program p(x: &Array1<f64>, y: &mut Array2<f64>) {\n    for i in par(0..x.len()) {\n        let mut s = x[i];\n        s = s + 1.0;\n        y[[i, i]] = s;\n    }\n}\n";
        parse(text).unwrap()
    }

    fn value(v: usize) -> Name {
        Name::value(ValueId::from_index(v))
    }

    fn number(x: f64) -> Expr {
        Expr::Literal(Literal::of(Type::F64, x))
    }

    fn at(array: usize, index: &[i64]) -> Element {
        Element {
            array: ArrayId::from_index(array),
            source: Indices::new(&[]).unwrap(),
            place: Place::At(index.iter().map(|k| Expr::Literal(Literal::index(*k))).collect()),
            check: Check::AtOnce,
            site: None,
        }
    }

    fn store(element: Element, manner: Manner) -> Stmt {
        Stmt::Store { element, ty: F64, how: None, value: number(1.0), more: Vec::new(), when: None, manner }
    }

    fn define(name: Name) -> Stmt {
        Stmt::Let { name, ty: F64, value: number(1.0) }
    }

    fn check(body: Body) -> Result<(), Error> {
        verify(&program(), &body)
    }

    #[test]
    fn what_is_lowered_is_lawful() {
        let load = Stmt::Load { name: value(90), ty: F64, element: at(0, &[3]), when: None };
        assert_eq!(check(vec![load, store(at(1, &[0, 1]), Manner::Plain)]), Ok(()));
    }

    #[test]
    fn a_name_is_defined_once_and_used_where_it_is_in_scope() {
        let name = Variable::Mask(1).into();
        let truth = |name| Stmt::Let { name, ty: TRUTH, value: Expr::truth(true) };
        assert_eq!(check(vec![truth(name), truth(name)]), Err(Error::DefinedTwice(name)));
        let inside =
            Stmt::If { condition: Expr::truth(true), then: vec![truth(name)], otherwise: Vec::new() };
        let used = Stmt::If { condition: Expr::Variable(name), then: Vec::new(), otherwise: Vec::new() };
        assert_eq!(check(vec![inside, used.clone()]), Err(Error::OutOfScope(name)));
        assert_eq!(check(vec![used, truth(name)]), Err(Error::OutOfScope(name)));
    }

    #[test]
    fn operands_have_the_types_that_operations_say() {
        let wrong = Stmt::Let { name: value(90), ty: F64, value: Expr::truth(true) };
        assert!(matches!(check(vec![wrong]), Err(Error::Type(F64, TRUTH, _))));
        let sum = Expr::Binary(
            ebbtide_ir::Binary::Add,
            F64,
            crate::kernel::expr::Overflow::Wraps,
            Box::new([number(1.0), Expr::Literal(Literal::index(1))]),
        );
        let wrong = Stmt::Let { name: value(90), ty: F64, value: sum };
        assert!(matches!(check(vec![wrong]), Err(Error::Type(F64, INDEX, _))));
        let wrong = Stmt::Load { name: value(90), ty: TRUTH, element: at(0, &[0]), when: None };
        assert!(matches!(check(vec![wrong]), Err(Error::Type(F64, TRUTH, _))));
    }

    #[test]
    fn an_element_has_an_index_for_each_dimension() {
        assert_eq!(check(vec![store(at(1, &[0]), Manner::Plain)]), Err(Error::Rank("y".into())));
    }

    #[test]
    fn variables_alone_are_given_other_values() {
        let assign = |name| Stmt::Assign { name, ty: F64, value: number(2.0) };
        let local = Name::local(LocalId::from_index(0));
        let declare = Stmt::Declare { name: local, ty: F64, value: number(1.0) };
        assert_eq!(check(vec![declare, assign(local)]), Ok(()));
        assert_eq!(check(vec![define(value(90)), assign(value(90))]), Err(Error::Constant(value(90))));
    }

    #[test]
    fn faults_wait_for_where_they_are_raised() {
        let deferred = |ok| Element { check: Check::Deferred(Variable::Exists(ok).into()), ..at(1, &[0, 0]) };
        let (first, second) = (store(deferred(1), Manner::Plain), store(deferred(2), Manner::Plain));
        let body = vec![Stmt::DeferFaults, first.clone(), Stmt::RaiseDeferred];
        assert_eq!(check(body.clone()), Ok(()));
        assert_eq!(check([body, vec![second]].concat()), Err(Error::NotDeferred));
        assert_eq!(check(vec![Stmt::DeferFaults, first]), Err(Error::NotDeferred));
    }

    #[test]
    fn what_is_there_for_one_element_is_combined_with_it() {
        let mut twice = store(at(1, &[0, 0]), Manner::Plain);
        let Stmt::Store { how, more, .. } = &mut twice else { unreachable!("it is a store") };
        *more = vec![number(2.0)];
        *how = Some(Combine::Add);
        assert_eq!(check(vec![twice.clone()]), Ok(()));
        let Stmt::Store { how, .. } = &mut twice else { unreachable!("it is a store") };
        *how = None;
        assert_eq!(check(vec![twice]), Err(Error::Overwritten("y".into())));
    }

    #[test]
    fn a_team_stores_together() {
        let local = Name::local(LocalId::from_index(0));
        let by_leader = store(at(1, &[0, 0]), Manner::Leader);
        let looped = |sums| {
            let [from, to] = [0, 3].map(|k| Expr::Literal(Literal::index(k)));
            let kind = LoopKind::Counted { variable: value(90), from, to };
            let body = vec![by_leader.clone()];
            Stmt::Loop(Loop {
                id: LoopId::from_index(0),
                number: 1,
                kind,
                polls: false,
                until: None,
                sums,
                chained: false,
                body,
                partly: None,
                ends: None,
                ahead: None,
                wide: None,
            })
        };
        assert_eq!(check(vec![looped(Vec::new())]), Ok(()));
        assert_eq!(check(vec![looped(vec![(local, F64)])]), Err(Error::Divergent("y".into())));
    }
}
