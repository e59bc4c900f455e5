//! The shapes that the language of physics has in programs.
//!
//! Input: the scope of a parallel loop or of the program. Output: the statements that the macros and the typed layer make of
//! vectors and matrices (their components, one by one), of `continue`, `break`, `return` and `match` (branches and flags), of
//! `.rev()` and `.step_by()` (counters), of `assert!`, of local arrays with computed indices (chains of `select`), of `sum`,
//! `max` and `min` over a range, and of parts of arrays as arguments (leading indices and a range). Invariant: the seeds of
//! before have none of them, see [`is_physical`](super::is_physical).

use ebbtide_ir::{Access, Binary, Combine, Compare, Literal, Type, Unary};

use super::parallel::Use;
use super::{ArrayOf, Extent, Line, Maker, Term, Variable, declared};

/// The arrays of small values, and one of the highest rank.
pub(super) fn small_arrays() -> Vec<ArrayOf> {
    use Extent::{Fixed, M, N};
    let small: [(&str, Type, &[Extent]); 6] = [
        ("arrow", Type::F64, &[N, Fixed(3)]),
        ("w3", Type::F64, &[N, Fixed(3)]),
        ("arrows", Type::F64, &[N, M, Fixed(2)]),
        ("x3", Type::F32, &[M, Fixed(3)]),
        ("mm", Type::F64, &[N, Fixed(2), Fixed(2)]),
        ("u6", Type::F64, &[M, Fixed(2), N, Fixed(1), Fixed(2), Fixed(2)]),
    ];
    small.iter().map(|(name, ty, extents)| declared(name, *ty, extents, Access::Write)).collect()
}

fn times(a: Term, b: Term) -> Term {
    Term::binary(Binary::Mul, a, b)
}

fn plus(a: Term, b: Term) -> Term {
    Term::binary(Binary::Add, a, b)
}

fn minus(a: Term, b: Term) -> Term {
    Term::binary(Binary::Sub, a, b)
}

fn chosen(c: Term, a: Term, b: Term) -> Term {
    Term::Select(Box::new(c), Box::new(a), Box::new(b))
}

/// The sum of the products of components, added in order.
fn dot(a: &[Term], b: &[Term]) -> Term {
    let mut products = a.iter().zip(b).map(|(a, b)| times(a.clone(), b.clone()));
    let first = products.next().unwrap_or(Term::number(Type::F64, 0.0));
    products.fold(first, plus)
}

/// The statement of an assertion: a division by its condition.
fn assertion(name: String, condition: Term) -> Line {
    Line::Let(name, Term::binary(Binary::Div, Term::index(1), condition.cast(Type::Index)))
}

impl Maker {
    /// A statement inside a parallel loop.
    pub(super) fn physical_statement(&mut self, depth: usize) -> Vec<Line> {
        match self.dice.below(if depth == 0 { 6 } else { 11 }) {
            0..=2 => self.vectors(),
            3 => self.local_array(),
            4 => self.reduction(),
            5 => vec![self.tame_assertion()],
            6 => self.continued(depth),
            7 => self.matched(depth),
            8 => self.returned(depth),
            _ => self.strided(depth),
        }
    }

    /// A statement of the program itself.
    pub(super) fn physical_step(&mut self, depth: usize) -> Vec<Line> {
        match self.dice.below(if depth == 0 { 2 } else { 5 }) {
            0 => self.part(),
            1 => vec![self.tame_assertion()],
            2 => {
                let condition = self.condition(1);
                let rest = self.scoped(|m| m.statement(depth - 1));
                vec![Line::If(condition, Vec::new(), rest)]
            }
            _ => self.strided_steps(depth),
        }
    }

    fn bind(&mut self, ty: Type, value: Term, lines: &mut Vec<Line>) -> Term {
        let name = self.fresh("v");
        lines.push(Line::Let(name.clone(), value));
        self.scope.values.push((name.clone(), ty));
        Term::Name(name)
    }

    /// The indices of the components of an element, in order, where the loop may read or write all of them.
    fn components(&mut self, array: &ArrayOf, parts: &[usize], reads: bool) -> Option<Vec<Vec<Term>>> {
        let first = array.extents.len().checked_sub(parts.len())?;
        if array.extents[first..].iter().zip(parts).any(|(e, n)| *e != Extent::Fixed(*n)) {
            return None;
        }
        let used = self.use_of(&array.name);
        let place = match &used {
            Some(Use::Own(own)) if own[first..].iter().any(Option::is_some) => return None,
            Some(Use::Combine(_)) if !reads => self.anywhere(array),
            Some(used) => self.own_index(array, used, reads)?,
            None => self.anywhere(array),
        };
        let mut all = vec![place[..first].to_vec()];
        for n in parts {
            let longer = |at: &Vec<Term>| {
                (0..*n).map(|k| [&at[..], &[Term::index(k as i64)]].concat()).collect::<Vec<_>>()
            };
            all = all.iter().flat_map(longer).collect();
        }
        Some(all)
    }

    /// A vector or matrix: an element of an array, or made of numbers.
    fn small(&mut self, ty: Type, parts: &[usize], lines: &mut Vec<Line>) -> Vec<Term> {
        let arrays: Vec<ArrayOf> = self.scope.arrays.iter().filter(|a| a.ty == ty).cloned().collect();
        let mut values = None;
        if !arrays.is_empty() && !self.dice.one_in(4) {
            for _ in 0..4 {
                let array = self.dice.pick(&arrays);
                if self.may_read(&array)
                    && let Some(places) = self.components(&array, parts, true)
                {
                    values = Some(places.into_iter().map(|at| Term::Load(array.name.clone(), at)).collect());
                    break;
                }
            }
        }
        let count = parts.iter().product();
        let values: Vec<Term> = values.unwrap_or_else(|| (0..count).map(|_| self.float(ty, 1)).collect());
        values.into_iter().map(|value| self.bind(ty, value, lines)).collect()
    }

    /// Vectors and matrices as values, and as elements that are replaced or combined.
    fn vectors(&mut self) -> Vec<Line> {
        let mut lines = Vec::new();
        let n = self.dice.pick(&[3, 3, 3, 2, 2]);
        let ty = if n == 3 { self.dice.pick(&[Type::F64, Type::F64, Type::F32]) } else { Type::F64 };
        let number = |x: f64| Term::number(ty, x);
        let (a, b) = (self.small(ty, &[n], &mut lines), self.small(ty, &[n], &mut lines));
        let pairs = || a.iter().cloned().zip(b.iter().cloned());
        let result: Vec<Term> = match self.dice.below(6) {
            0 => pairs().map(|(a, b)| times(number(0.5), minus(a, b))).collect(),
            1 if n == 3 => [(1, 2), (2, 0), (0, 1)]
                .map(|(i, j)| {
                    let (one, other) = (times(a[i].clone(), b[j].clone()), times(a[j].clone(), b[i].clone()));
                    times(number(0.5), minus(one, other))
                })
                .to_vec(),
            2 => {
                // As `normalize` does, but far from zero.
                let length = Term::unary(Unary::Sqrt, plus(number(1.0), dot(&a, &a)));
                let length = self.bind(ty, length, &mut lines);
                a.iter().map(|x| Term::binary(Binary::Div, x.clone(), length.clone())).collect()
            }
            3 | 4 if n == 2 => {
                let m = self.small(ty, &[2, 2], &mut lines);
                let product = [dot(&m[..2], &a), dot(&m[2..], &a)];
                let determinant = minus(times(m[0].clone(), m[3].clone()), times(m[1].clone(), m[2].clone()));
                let tame = plus(number(3.0), determinant);
                let tame = self.bind(ty, tame, &mut lines);
                product.map(|x| Term::binary(Binary::Div, x, tame.clone())).to_vec()
            }
            _ => {
                let scale = self.bind(ty, dot(&a, &b), &mut lines);
                let scale = times(number(0.25), scale);
                a.iter().map(|x| times(scale.clone(), x.clone())).collect()
            }
        };
        let result: Vec<Term> = result.into_iter().map(|x| self.bind(ty, x, &mut lines)).collect();
        let uses = self.uses.clone().unwrap_or_default();
        for (name, used) in uses {
            let Some(array) = self.scope.arrays.iter().find(|a| a.name == name).cloned() else { continue };
            if array.ty != ty || matches!(used, Use::Unique | Use::Combine(Combine::Min | Combine::Max)) {
                continue;
            }
            let Some(places) = self.components(&array, &[n], false) else { continue };
            let adds = matches!(used, Use::Combine(_));
            let way = if adds { 1 + self.dice.below(2) } else { self.dice.below(3) };
            if way > 0 && !adds && (self.banned.contains(&name) || matches!(used, Use::Rows { .. })) {
                continue;
            }
            for (at, x) in places.into_iter().zip(&result) {
                let small = times(number(0.25), x.clone());
                lines.push(match way {
                    0 => Line::Store(name.clone(), at, times(number(0.5), x.clone())),
                    1 => Line::Update(Combine::Add, name.clone(), at, small),
                    // `-=` combines too.
                    _ => Line::Update(Combine::Add, name.clone(), at, Term::unary(Unary::Neg, small)),
                });
            }
            break;
        }
        lines
    }

    /// A local array that is read and written at a computed index.
    fn local_array(&mut self) -> Vec<Line> {
        let mut lines = Vec::new();
        let ty = self.dice.pick(&[Type::F64, Type::F64, Type::F32]);
        let count = 2 + self.dice.below(3);
        let names: Vec<String> = (0..count).map(|_| self.fresh("t")).collect();
        for name in &names {
            let value = self.kept(ty, 1);
            lines.push(Line::Mut(name.clone(), value));
        }
        let index = |m: &mut Maker, lines: &mut Vec<Line>| {
            let name = m.fresh("k");
            let place = m.inside(Extent::Fixed(count));
            lines.push(Line::Let(name.clone(), place));
            let at = Term::Name(name);
            let low = Term::compare(Compare::Ge, at.clone(), Term::index(0));
            let high = Term::compare(Compare::Lt, at.clone(), Term::index(count as i64));
            lines.push(assertion(m.fresh("k"), Term::binary(Binary::And, low, high)));
            at
        };
        let at = index(self, &mut lines);
        let value = self.kept(ty, 1);
        let value = self.bind(ty, value, &mut lines);
        for (k, name) in names.iter().enumerate() {
            let here = Term::compare(Compare::Eq, at.clone(), Term::index(k as i64));
            lines.push(Line::Set(name.clone(), chosen(here, value.clone(), Term::name(name))));
        }
        let at = index(self, &mut lines);
        let mut read = Term::name(&names[count - 1]);
        for (k, name) in names[..count - 1].iter().enumerate().rev() {
            let here = Term::compare(Compare::Eq, at.clone(), Term::index(k as i64));
            read = chosen(here, Term::name(name), read);
        }
        self.bind(ty, read, &mut lines);
        self.scope.locals.extend(names.into_iter().map(|name| (name, ty)));
        lines
    }

    /// `sum`, `max` or `min` over a range that is not empty.
    fn reduction(&mut self) -> Vec<Line> {
        let mut lines = Vec::new();
        let ty = self.dice.pick(&[Type::F64, Type::F64, Type::F32]);
        if self.dice.one_in(4) {
            // A few terms: a tree over lanes, no loop.
            let mut lanes: Vec<Term> = (0..2 + self.dice.below(3)).map(|_| self.float(ty, 1)).collect();
            while lanes.len() > 1 {
                let half = lanes.len().div_ceil(2);
                let rest = lanes.split_off(half);
                lanes = lanes
                    .into_iter()
                    .enumerate()
                    .map(|(k, lane)| match rest.get(k) {
                        Some(other) => plus(lane, other.clone()),
                        None => lane,
                    })
                    .collect();
            }
            let whole = lanes.remove(0);
            let sum = plus(Term::number(ty, 0.0), whole);
            let sum = self.bounded(sum);
            self.bind(ty, sum, &mut lines);
            return lines;
        }
        let (to, within) = match self.dice.below(3) {
            0 => (Term::Extent(Extent::M), Some((Extent::M, 0))),
            1 => (Term::index(3), Some((Extent::Fixed(3), 0))),
            _ => (Term::index(1 + self.dice.below(5) as i64), None),
        };
        match self.dice.below(3) {
            0 => self.summed(ty, to, within, &mut lines),
            how => {
                let op = if how == 1 { Binary::Max } else { Binary::Min };
                let (best, j) = (self.fresh("t"), self.fresh("c"));
                lines.push(Line::Mut(best.clone(), Term::Literal(Literal::of(ty, f64::NAN))));
                let body = self.scoped(|m| {
                    m.scope.variables.push(Variable { name: j.clone(), low: 0, within });
                    let value = m.float(ty, 2);
                    vec![Line::Set(best.clone(), Term::binary(op, Term::name(&best), value))]
                });
                lines.push(counted(j, to, body));
                let best = self.bounded(Term::name(&best));
                self.bind(ty, best, &mut lines);
            }
        }
        lines
    }

    /// A sum in the order of law 8: over an extent as the language has it, else with loops and lanes by hand.
    fn summed(&mut self, ty: Type, to: Term, within: Option<(Extent, i64)>, lines: &mut Vec<Line>) {
        if let Term::Extent(_) = to {
            // Of numbers, or of vectors: one total for each component.
            let count = self.dice.pick(&[1, 1, 2, 3]);
            let name = self.fresh("c");
            let totals: Vec<String> = (0..count).map(|_| self.fresh("t")).collect();
            let from = Term::index(self.dice.below(2) as i64);
            let (body, values) = self.summand(ty, count, Variable { name: name.clone(), low: 0, within });
            lines.push(Line::Sum { totals: totals.clone(), ty, name, from, to, body, values });
            for total in totals {
                let sum = self.bounded(Term::Name(total));
                self.bind(ty, sum, lines);
            }
            return;
        }
        const LANES: usize = 4;
        let zero = || Term::number(ty, -0.0);
        let lanes: Vec<String> = (0..LANES).map(|_| self.fresh("t")).collect();
        lines.extend(lanes.iter().map(|lane| Line::Mut(lane.clone(), zero())));
        let (lane, chain, k, j) = (self.fresh("c"), self.fresh("t"), self.fresh("c"), self.fresh("k"));
        let last = Term::index(LANES as i64 - 1);
        let left = plus(minus(to, Term::name(&lane)), last);
        let count = Term::binary(Binary::Div, left, Term::index(LANES as i64));
        let place = plus(Term::name(&lane), times(Term::name(&k), Term::index(LANES as i64)));
        let terms = self.scoped(|m| {
            m.scope.variables.push(Variable { name: j.clone(), low: 0, within });
            let value = m.float(ty, 2);
            let longer = plus(Term::name(&chain), value);
            vec![Line::Let(j.clone(), place), Line::Set(chain.clone(), longer)]
        });
        let mut body = vec![Line::Mut(chain.clone(), zero()), counted(k, count, terms)];
        for (at, name) in lanes.iter().enumerate() {
            let here = Term::compare(Compare::Eq, Term::name(&lane), Term::index(at as i64));
            body.push(Line::Set(name.clone(), chosen(here, Term::name(&chain), Term::name(name))));
        }
        lines.push(counted(lane, Term::index(LANES as i64), body));
        let pairs = [(0, 2), (1, 3)].map(|(a, b)| plus(Term::name(&lanes[a]), Term::name(&lanes[b])));
        let [even, odd] = pairs;
        let sum = self.bounded(plus(even, odd));
        self.bind(ty, sum, lines);
    }

    /// The numbers of a term of a sum, with a sum or an extreme inside it now and then.
    fn summand(&mut self, ty: Type, count: usize, variable: Variable) -> (Vec<Line>, Vec<Term>) {
        self.scoped(|m| {
            m.scope.variables.push(variable);
            let body = match m.dice.below(6) {
                0 => m.reduction(),
                1 => m.local_array(),
                _ => Vec::new(),
            };
            (body, (0..count).map(|_| m.float(ty, 2)).collect())
        })
    }

    /// An assertion that holds.
    fn tame_assertion(&mut self) -> Line {
        let x = self.float(Type::F64, 1);
        let square = plus(Term::number(Type::F64, 1.0), times(x.clone(), x));
        assertion(self.fresh("k"), Term::compare(Compare::Gt, square, Term::number(Type::F64, 0.0)))
    }

    /// `if c { continue; }` in a parallel loop: the rest of the iteration is the other branch.
    fn continued(&mut self, depth: usize) -> Vec<Line> {
        let condition = self.condition(1);
        let rest = self.scoped(|m| m.two_statements(depth - 1));
        vec![Line::If(condition, Vec::new(), rest)]
    }

    /// `match` on an integer.
    fn matched(&mut self, depth: usize) -> Vec<Line> {
        let mut lines = Vec::new();
        let selector =
            Term::binary(Binary::RemEuclid, self.integer(Type::I32, 1), Term::number(Type::I32, 3.0));
        let selector = self.bind(Type::I32, selector, &mut lines);
        let mut otherwise = self.scoped(|m| m.two_statements(depth - 1));
        for arm in [1.0, 0.0] {
            let is = Term::compare(Compare::Eq, selector.clone(), Term::number(Type::I32, arm));
            let then = self.scoped(|m| m.two_statements(depth - 1));
            otherwise = vec![Line::If(is, then, otherwise)];
        }
        lines.extend(otherwise);
        lines
    }

    /// A function with early returns: a result, and a flag where branches alone do not decide.
    fn returned(&mut self, depth: usize) -> Vec<Line> {
        let ty = self.dice.pick(&[Type::F64, Type::F64, Type::F32]);
        let (result, flag) = (self.fresh("t"), self.fresh("flag"));
        let done = Term::Literal(Literal::from(true));
        let mut lines = vec![
            Line::Mut(flag.clone(), Term::Literal(Literal::from(false))),
            Line::Mut(result.clone(), Term::number(ty, 0.0)),
        ];
        let inside = self.scoped(|m| {
            let (outer, inner) = (m.condition(1), m.condition(1));
            let early = vec![Line::Set(result.clone(), m.kept(ty, 1)), Line::Set(flag.clone(), done)];
            let mut then = m.body_statement(depth - 1);
            then.push(Line::If(inner, early, Vec::new()));
            vec![Line::If(outer, then, Vec::new())]
        });
        lines.extend(inside);
        let going = Term::unary(Unary::Not, Term::name(&flag));
        let rest = self.scoped(|m| {
            let mut rest = m.body_statement(depth - 1);
            rest.push(Line::Set(result.clone(), m.kept(ty, 2)));
            rest
        });
        lines.push(Line::If(going, rest, Vec::new()));
        self.scope.values.push((result, ty));
        lines
    }

    /// A loop that counts down or by twos, with a `break` in its middle now and then.
    fn strided(&mut self, depth: usize) -> Vec<Line> {
        let (to, within) = match self.dice.below(3) {
            0 => (Term::Extent(Extent::M), Some((Extent::M, 0))),
            1 => (Term::index(self.dice.below(5) as i64), None),
            _ => match self.variable() {
                Some(v) => (Term::name(&v.name), v.within.map(|(e, _)| (e, 1))),
                None => (Term::index(3), None),
            },
        };
        self.strided_loop(to, within, |m| m.two_statements(depth - 1))
    }

    /// The same over time steps.
    fn strided_steps(&mut self, depth: usize) -> Vec<Line> {
        self.strided_loop(Term::name("steps"), Some((Extent::Times, 1)), |m| m.statement(depth - 1))
    }

    fn strided_loop(
        &mut self,
        to: Term,
        within: Option<(Extent, i64)>,
        inside: impl Fn(&mut Maker) -> Vec<Line>,
    ) -> Vec<Line> {
        let (counter, name) = (self.fresh("c"), self.fresh("l"));
        let c = Term::name(&counter);
        let (count, value) = match self.dice.below(3) {
            0 => (to.clone(), minus(minus(to, Term::index(1)), c)),
            1 => {
                let raised = minus(plus(to, Term::index(2)), Term::index(1));
                let count = Term::binary(Binary::Div, raised, Term::index(2));
                (count, plus(Term::index(0), times(Term::index(2), c)))
            }
            _ => (to, c),
        };
        let breaks = self.dice.one_in(2);
        let flag = self.fresh("flag");
        let stop = Term::name(&flag);
        let body = self.scoped(|m| {
            m.scope.variables.push(Variable { name: name.clone(), low: 0, within });
            let mut body = vec![Line::Let(name, value)];
            body.extend(inside(m));
            if breaks {
                let condition = m.condition(1);
                let set = Line::Set(flag.clone(), Term::Literal(Literal::from(true)));
                body.push(Line::If(condition, vec![set], Vec::new()));
                let rest = m.scoped(|m| inside(m));
                body.push(Line::If(Term::unary(Unary::Not, stop.clone()), rest, Vec::new()));
            }
            body
        });
        let until = breaks.then_some(stop);
        let flagged = breaks.then(|| Line::Mut(flag, Term::Literal(Literal::from(false))));
        let repeated = Line::For { name: counter, from: Term::index(0), to: count, hint: None, body, until };
        flagged.into_iter().chain([repeated]).collect()
    }

    /// A called program that works on a range of an array: `smooth(a[from..to])`.
    fn part(&mut self) -> Vec<Line> {
        let whole = |a: &&ArrayOf| a.access == Access::Write && a.extents == [Extent::N] && a.ty.is_float();
        let fitting: Vec<ArrayOf> = self
            .scope
            .arrays
            .iter()
            .filter(whole)
            .filter(|a| !self.banned.contains(&a.name) && !super::WILD.contains(&a.name.as_str()))
            .cloned()
            .collect();
        if fitting.is_empty() {
            return vec![self.parallel()];
        }
        let array = self.dice.pick(&fitting);
        let (from, len, i) = (self.fresh("k"), self.fresh("k"), self.fresh("i"));
        let extent = Term::Extent(Extent::N);
        let start = Term::binary(Binary::Min, Term::name("few"), extent.clone());
        let inside = Term::compare(Compare::Le, Term::name(&from), extent.clone());
        let mut lines = vec![
            Line::Let(from.clone(), start),
            assertion(self.fresh("k"), inside),
            Line::Let(len.clone(), minus(extent, Term::name(&from))),
        ];
        let place = plus(Term::name(&from), Term::name(&i));
        let own = Use::Own(vec![Some(place)]);
        let body = self.scoped(|m| {
            m.scope.variables.push(Variable { name: i.clone(), low: 0, within: Some((Extent::N, 0)) });
            m.uses = Some(vec![(array.name.clone(), own)]);
            m.outer_locals = m.scope.locals.len();
            let mut body = m.two_statements(1);
            body.extend(m.write(&array.name));
            m.uses = None;
            m.outer_locals = 0;
            body
        });
        lines.push(Line::Par { ranges: vec![(i, Term::index(0), Term::Name(len))], body });
        lines
    }
}

fn counted(name: String, to: Term, body: Vec<Line>) -> Line {
    Line::For { name, from: Term::index(0), to, hint: None, body, until: None }
}
