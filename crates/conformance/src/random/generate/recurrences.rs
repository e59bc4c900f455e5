//! Elements that data names beside an iteration's own, and recurrences at program level.
//!
//! Input: the scope of the program. Output: parallel loops in which an iteration reads and adds to its own element and to one that
//! data names, by themselves or in time steps; and sequential loops that carry numbers in variables and arrays from one pass to the
//! next, with branches, as the algorithms of Thomas and of Gauss and Seidel do. Invariant: the seeds of before have none of them,
//! see [`is_recurrent`](super::is_recurrent).

use ebbtide_ir::{Access, Binary, Combine, Compare, Type};

use super::{ArrayOf, Extent, Line, Maker, Term, Variable, WILD, declared};

/// The most passes of a recurrence: the oracle keeps every one.
const PASSES: i64 = 7;

fn plus(a: Term, b: Term) -> Term {
    Term::binary(Binary::Add, a, b)
}

fn scaled(factor: f64, a: Term) -> Term {
    Term::binary(Binary::Mul, Term::number(Type::F64, factor), a)
}

impl Maker {
    /// A statement of the program itself.
    pub(super) fn recurrent_step(&mut self, depth: usize) -> Vec<Line> {
        match self.dice.below(if depth == 0 { 1 } else { 3 }) {
            0 => vec![self.own_and_named()],
            1 => vec![self.named_in_time()],
            _ => self.recurrence(),
        }
    }

    /// A list of numbers that may be written.
    fn column(&mut self) -> ArrayOf {
        let fits = |a: &&ArrayOf| a.extents == [Extent::N] && a.ty == Type::F64 && a.access == Access::Write;
        let usual = |a: &&ArrayOf| !self.banned.contains(&a.name) && !WILD.contains(&a.name.as_str());
        let columns: Vec<ArrayOf> = self.scope.arrays.iter().filter(fits).filter(usual).cloned().collect();
        match columns.is_empty() {
            true => declared("a", Type::F64, &[Extent::N], Access::Write),
            false => self.dice.pick(&columns),
        }
    }

    /// The array that sums by element go to.
    fn sums(&mut self) -> String {
        let sums = declared("acc", Type::F64, &[Extent::N], Access::Write);
        if !self.scope.arrays.contains(&sums) {
            self.scope.arrays.push(sums.clone());
        }
        sums.name
    }

    /// Iterations read their own element and one that data names, and add to both.
    fn own_and_named(&mut self) -> Line {
        let (read, sums, i) = (self.column().name, self.sums(), self.fresh("i"));
        let own = Term::name(&i);
        let data = match self.scope.arrays.iter().any(|a| a.name == "k") && self.dice.one_in(2) {
            true => "k",
            false => "perm",
        };
        let data = Term::Load(data.to_string(), vec![own.clone()]).cast(Type::Index);
        let at = self.fresh("v");
        let named = Term::binary(Binary::RemEuclid, data, Term::Extent(Extent::N));
        let mut body = vec![Line::Let(at.clone(), named)];
        let named = Term::name(&at);
        let load = |index: &Term| Term::Load(read.clone(), vec![index.clone()]);
        let product = Term::binary(Binary::Mul, load(&own), load(&named));
        let (force, value) = (self.fresh("v"), self.bounded(plus(product, scaled(0.5, load(&own)))));
        body.push(Line::Let(force.clone(), value));
        let add =
            |index: &Term, value: Term| Line::Update(Combine::Add, sums.clone(), vec![index.clone()], value);
        let force = Term::name(&force);
        let opposite = scaled(-0.75, force.clone());
        let mut updates = vec![add(&own, force.clone()), add(&named, opposite)];
        if self.dice.one_in(2) {
            updates.reverse();
        }
        if self.dice.one_in(4) {
            updates.push(add(&own, scaled(0.25, load(&named))));
        }
        if self.dice.one_in(3) {
            let apart = Term::compare(Compare::Ne, own, named);
            updates = vec![Line::If(apart, updates, Vec::new())];
        }
        body.extend(updates);
        let (from, to) = match self.dice.one_in(4) {
            true => (Term::index(1), Term::Extent(Extent::N)),
            false => (Term::index(0), Term::Extent(Extent::N)),
        };
        Line::Par { ranges: vec![(i, from, to)], body }
    }

    /// The same in time steps, in which the sums change what is read.
    fn named_in_time(&mut self) -> Line {
        let (name, changed, sums) = (self.fresh("l"), self.column().name, self.sums());
        let mut body = Vec::new();
        if !self.dice.one_in(3) {
            body.push(Line::Fill(sums.clone(), Term::number(Type::F64, 0.0)));
        }
        body.push(self.own_and_named());
        let i = self.fresh("i");
        let load = |array: &String| Term::Load(array.clone(), vec![Term::name(&i)]);
        let next = self.bounded(plus(load(&changed), scaled(0.3, load(&sums))));
        let moved = Line::Store(changed.clone(), vec![Term::name(&i)], next);
        body.push(Line::Par {
            ranges: vec![(i.clone(), Term::index(0), Term::Extent(Extent::N))],
            body: vec![moved],
        });
        let (from, to) = (Term::index(0), Term::name("steps"));
        Line::For { name, from, to, hint: None, body, until: None }
    }

    /// Numbers that passes hand on, in variables and in an array.
    fn recurrence(&mut self) -> Vec<Line> {
        let (carried, name) = (self.fresh("t"), self.fresh("l"));
        let start = Line::Mut(carried.clone(), self.value(Type::F64, 1));
        self.scope.locals.push((carried.clone(), Type::F64));
        let (first, second) = (self.column().name, self.column().name);
        let to = Term::binary(Binary::Min, Term::Extent(Extent::N), Term::index(PASSES));
        let variable = Variable { name: name.clone(), low: 1, within: Some((Extent::N, 0)) };
        let repeated = self.scoped(|m| {
            m.scope.variables.push(variable);
            // There are passes where there are two elements at least.
            m.nonempty = true;
            let here = vec![Term::name(&name)];
            let before = vec![Term::binary(Binary::Sub, Term::name(&name), Term::index(1))];
            let mut body = Vec::new();
            for _ in 0..2 + m.dice.below(3) {
                let load = |array: &String, index: &Vec<Term>| Term::Load(array.clone(), index.clone());
                let old = load(&first, &before);
                let line = match m.dice.below(5) {
                    0 => {
                        let (name, value) = (m.fresh("v"), m.value(Type::F64, 2));
                        m.scope.values.push((name.clone(), Type::F64));
                        Line::Let(name, value)
                    }
                    1 => {
                        let product = Term::binary(Binary::Mul, Term::name(&carried), load(&second, &here));
                        Line::Set(carried.clone(), m.bounded(plus(product, old)))
                    }
                    2 => {
                        let pivot = plus(Term::number(Type::F64, 2.5), scaled(0.25, m.bounded(old)));
                        let value = plus(load(&second, &here), scaled(0.5, Term::name(&carried)));
                        let value = m.bounded(Term::binary(Binary::Div, value, pivot));
                        Line::Store(first.clone(), here.clone(), value)
                    }
                    3 => {
                        let new = m.bounded(plus(scaled(0.75, old), Term::name(&carried)));
                        let less = Term::compare(Compare::Lt, new.clone(), load(&first, &here));
                        Line::If(less, vec![Line::Store(first.clone(), here.clone(), new)], Vec::new())
                    }
                    _ => {
                        let other = load(&second, &before);
                        let most = Term::binary(Binary::Max, other, scaled(0.5, Term::name(&carried)));
                        Line::Store(second.clone(), here.clone(), m.bounded(most))
                    }
                };
                body.push(line);
            }
            let until = m.dice.one_in(6).then(|| m.condition(1));
            Line::For { name: name.clone(), from: Term::index(1), to, hint: None, body, until }
        });
        match self.dice.one_in(2) {
            true => {
                let (time, to) = (self.fresh("l"), Term::name("steps"));
                let body = vec![repeated];
                vec![start, Line::For { name: time, from: Term::index(0), to, hint: None, body, until: None }]
            }
            false => vec![start, repeated],
        }
    }
}
