//! Parallel loops. What a loop does with the arrays that it writes is decided first, so that iterations do not race.

use ebbtide_ir::{Access, Binary, Combine, Type};

use super::{ArrayOf, Extent, Line, Maker, Term, Variable, WILD};

/// What a parallel loop does with an array that it writes.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Use {
    /// Reads and writes at its own index: a term for each dimension that tells iterations apart, the others are free.
    Own(Vec<Option<Term>>),
    /// Reads and writes both elements of its own pair, `2 i` and `2 i + 1`.
    Pair(String),
    /// Writes row `t + 1` at its own index, reads row `t` at indices that tell iterations apart.
    Rows { time: String, own: Term, others: Vec<Term> },
    /// Combines in one way.
    Combine(Combine),
    /// Writes elements that data names, each once.
    Unique,
}

/// A dimension of a parallel loop that is being made.
struct Dimension {
    variable: Variable,
    extent: Extent,
    from: Term,
    to: Term,
    whole: bool,
}

impl Maker {
    pub(super) fn parallel(&mut self) -> Line {
        self.parallel_writing(None)
    }

    /// A parallel loop; where `only` is given, it writes that array alone, and does not read it.
    pub(super) fn parallel_writing(&mut self, only: Option<&ArrayOf>) -> Line {
        use Extent::{Fixed, M, N};
        let spaces: [&[Extent]; 11] = [
            &[N],
            &[N],
            &[N],
            &[M],
            &[N, M],
            &[N, M],
            &[M, N],
            &[N, M, Fixed(2)],
            &[Fixed(5)],
            &[Fixed(2), N],
            &[Fixed(3), Fixed(3)],
        ];
        let space = match only {
            Some(array) => array.extents.clone(),
            None => self.dice.pick(&spaces).to_vec(),
        };
        let dimensions: Vec<Dimension> = space.iter().map(|extent| self.dimension(*extent)).collect();
        let pairs =
            only.is_none() && dimensions.len() == 1 && dimensions[0].extent == N && self.dice.one_in(10);
        let ranges: Vec<(String, Term, Term)> = dimensions
            .iter()
            .map(|d| {
                let to = match pairs {
                    true => Term::binary(Binary::Div, Term::Extent(N), Term::index(2)),
                    false => d.to.clone(),
                };
                let from = if pairs { Term::index(0) } else { d.from.clone() };
                (d.variable.name.clone(), from, to)
            })
            .collect();
        let uses = match only {
            Some(array) => vec![(array.name.clone(), self.own(array, &dimensions).unwrap_or(Use::Unique))],
            None => self.choose_uses(&dimensions, pairs),
        };
        let body = self.scoped(|maker| {
            maker.scope.variables.extend(dimensions.iter().map(|d| d.variable.clone()));
            maker.uses = Some(uses.clone());
            maker.outer_locals = maker.scope.locals.len();
            let mut body = Vec::new();
            for _ in 0..maker.dice.below(3) {
                body.extend(maker.body_statement(2));
            }
            for (name, _) in &uses {
                if only.is_some() || !maker.dice.one_in(5) {
                    body.extend(maker.write(name));
                }
            }
            if body.iter().all(|line| matches!(line, Line::Let(..) | Line::Mut(..)))
                && let Some((name, _)) = uses.first()
            {
                body.extend(maker.write(name));
            }
            maker.uses = None;
            maker.outer_locals = 0;
            body
        });
        Line::Par { ranges, body }
    }

    fn dimension(&mut self, extent: Extent) -> Dimension {
        let name = self.fresh("i");
        let length = Term::Extent(extent);
        let (low, room, from, to) = match self.dice.below(9) {
            0 => (1, 1, Term::index(1), Term::binary(Binary::Sub, length, Term::index(1))),
            1 => (0, 1, Term::index(0), Term::binary(Binary::Sub, length, Term::index(1))),
            2 => (1, 0, Term::index(1), length),
            3 => (0, 0, Term::index(0), Term::binary(Binary::Div, length, Term::index(2))),
            4 if extent == Extent::N => {
                (0, 0, Term::index(0), Term::binary(Binary::Min, Term::name("few"), length))
            }
            _ => (0, 0, Term::index(0), length),
        };
        let whole = low == 0 && to == Term::Extent(extent);
        let variable = Variable { name, low, within: Some((extent, room)) };
        Dimension { variable, extent, from, to, whole }
    }

    /// Picks one to three arrays to write.
    fn choose_uses(&mut self, dimensions: &[Dimension], pairs: bool) -> Vec<(String, Use)> {
        let mut uses: Vec<(String, Use)> = Vec::new();
        for _ in 0..8 {
            if uses.len() > self.dice.below(3) {
                break;
            }
            let writable: Vec<ArrayOf> = self
                .scope
                .arrays
                .iter()
                .filter(|a| {
                    a.access == Access::Write && !["o", "g", "count", "list"].contains(&a.name.as_str())
                })
                .filter(|a| !uses.iter().any(|(n, _)| *n == a.name) && !self.banned.contains(&a.name))
                .cloned()
                .collect();
            if writable.is_empty() {
                break;
            }
            let array = self.dice.pick(&writable);
            if let Some(used) = self.choose_use(&array, dimensions, pairs) {
                uses.push((array.name.clone(), used));
            }
        }
        uses
    }

    fn choose_use(&mut self, array: &ArrayOf, dimensions: &[Dimension], pairs: bool) -> Option<Use> {
        let wild = WILD.contains(&array.name.as_str());
        if array.extents.is_empty() || wild || self.dice.one_in(6) {
            // Sums of floats go to arrays that may grow.
            if array.ty == Type::Bool {
                return None;
            }
            let how = match wild || !array.ty.is_float() {
                true => self.dice.pick(&[Combine::Add, Combine::Add, Combine::Min, Combine::Max]),
                false => self.dice.pick(&[Combine::Min, Combine::Max]),
            };
            return Some(Use::Combine(how));
        }
        if pairs {
            let own = array.extents == [Extent::N];
            return own.then(|| Use::Pair(dimensions[0].variable.name.clone()));
        }
        let [n] = [Extent::N];
        if array.extents == [Extent::Times, n] && dimensions.len() == 1 && dimensions[0].extent == n {
            return self.rows(&dimensions[0]).or_else(|| self.own(array, dimensions));
        }
        let listed = dimensions.len() == array.extents.len()
            && dimensions.iter().zip(&array.extents).all(|(d, e)| d.extent == *e && d.whole)
            && array.extents.first() == Some(&n);
        let has_list = self.scope.arrays.iter().any(|a| a.name == "perm");
        if listed && has_list && self.dice.one_in(5) {
            return Some(Use::Unique);
        }
        self.own(array, dimensions)
    }

    /// Rows of time, where a time step is in scope.
    fn rows(&mut self, dimension: &Dimension) -> Option<Use> {
        let times: Vec<String> = self
            .scope
            .variables
            .iter()
            .filter(|v| matches!(v.within, Some((Extent::Times, room)) if room > 0))
            .map(|v| v.name.clone())
            .collect();
        if times.is_empty() {
            return None;
        }
        let time = self.dice.pick(&times);
        let i = Term::name(&dimension.variable.name);
        let mut others = vec![i.clone()];
        if dimension.whole {
            let next = Term::binary(Binary::Add, i.clone(), Term::index(1));
            others.push(Term::binary(Binary::Rem, next, Term::Extent(dimension.extent)));
        }
        if dimension.variable.low > 0 {
            others.push(Term::binary(Binary::Sub, i.clone(), Term::index(1)));
        }
        Some(Use::Rows { time, own: i, others })
    }

    /// An index that tells all iterations apart, if the array has a dimension for each variable.
    fn own(&mut self, array: &ArrayOf, dimensions: &[Dimension]) -> Option<Use> {
        let mut index: Vec<Option<Term>> = vec![None; array.extents.len()];
        for d in dimensions {
            let at = (0..index.len()).find(|k| index[*k].is_none() && array.extents[*k] == d.extent)?;
            let i = Term::name(&d.variable.name);
            let room = d.variable.within.map_or(0, |(_, room)| room);
            index[at] = Some(match self.dice.below(9) {
                0 | 1 if d.whole => {
                    let shift = Term::index(1 + self.dice.below(2) as i64);
                    let sum = Term::binary(Binary::Add, i, shift);
                    Term::binary(Binary::Rem, sum, Term::Extent(d.extent))
                }
                2 => {
                    let last = Term::binary(Binary::Sub, Term::Extent(d.extent), Term::index(1));
                    Term::binary(Binary::Sub, last, i)
                }
                3 if room > 0 => Term::binary(Binary::Add, i, Term::index(1)),
                4 if d.variable.low > 0 => Term::binary(Binary::Sub, i, Term::index(1)),
                _ => i,
            });
        }
        Some(Use::Own(index))
    }

    /// An index at which the loop may read or write an array that it writes.
    pub(super) fn own_index(&mut self, array: &ArrayOf, used: &Use, reads: bool) -> Option<Vec<Term>> {
        Some(match used {
            Use::Own(own) => {
                let pairs: Vec<_> = own.iter().cloned().zip(array.extents.clone()).collect();
                pairs.into_iter().map(|(own, extent)| own.unwrap_or_else(|| self.inside(extent))).collect()
            }
            Use::Pair(i) => {
                let twice = Term::binary(Binary::Mul, Term::index(2), Term::name(i));
                vec![Term::binary(Binary::Add, twice, Term::index(self.dice.below(2) as i64))]
            }
            Use::Rows { time, own, others } => {
                let t = Term::name(time);
                if reads {
                    vec![t, self.dice.pick(others)]
                } else {
                    vec![Term::binary(Binary::Add, t, Term::index(1)), own.clone()]
                }
            }
            Use::Combine(_) | Use::Unique => return None,
        })
    }

    /// Writes an array as the loop may.
    pub(super) fn write(&mut self, name: &str) -> Option<Line> {
        let array = self.scope.arrays.iter().find(|a| a.name == name)?.clone();
        let used = self.use_of(name)?;
        Some(match used {
            Use::Combine(how) => {
                let index = match self.dice.below(3) {
                    0 => array.extents.iter().map(|e| self.fixed(*e)).collect(),
                    _ => self.anywhere(&array),
                };
                let value = self.value(array.ty, 2);
                Line::Update(how, array.name, index, value)
            }
            Use::Unique => {
                let first = self.uses_first_variable()?;
                let place = Term::Load("perm".to_string(), vec![first]).cast(Type::Index);
                let mut index = vec![place];
                index.extend(self.rest_of_variables().into_iter().take(array.extents.len() - 1));
                let value = self.value(array.ty, 2);
                Line::Unique(array.name, index, value)
            }
            used => {
                let index = self.own_index(&array, &used, false)?;
                let stores_alone = matches!(used, Use::Rows { .. }) || self.banned.contains(name);
                let value = self.value(array.ty, 2);
                if array.ty.is_float() && !stores_alone && self.dice.one_in(4) {
                    let small = Term::binary(Binary::Mul, Term::number(array.ty, 0.25), value);
                    return Some(Line::Update(Combine::Add, array.name, index, small));
                }
                if array.ty != Type::Bool && !stores_alone && self.dice.one_in(12) {
                    return Some(Line::Update(
                        self.dice.pick(&[Combine::Min, Combine::Max]),
                        array.name,
                        index,
                        value,
                    ));
                }
                Line::Store(array.name, index, value)
            }
        })
    }

    /// The first variable of the parallel loop.
    fn uses_first_variable(&self) -> Option<Term> {
        self.parallel_variables().first().cloned()
    }

    fn rest_of_variables(&self) -> Vec<Term> {
        self.parallel_variables().into_iter().skip(1).collect()
    }

    fn parallel_variables(&self) -> Vec<Term> {
        let parallel = self.scope.variables.iter().filter(|v| v.name.starts_with('i'));
        parallel.map(|v| Term::name(&v.name)).collect()
    }

    /// An index that is the same in all iterations.
    fn fixed(&mut self, extent: Extent) -> Term {
        let k = self.dice.below(3);
        match extent {
            Extent::Fixed(n) => Term::index((k % n) as i64),
            _ => Term::binary(Binary::Rem, Term::index(k as i64), Term::Extent(extent)),
        }
    }

    /// A statement inside a parallel loop.
    pub(super) fn body_statement(&mut self, depth: usize) -> Vec<Line> {
        if self.fuel == 0 {
            return Vec::new();
        }
        self.fuel -= 1;
        if self.physical && self.dice.one_in(2) {
            return self.physical_statement(depth);
        }
        let ty = self.dice.pick(&[Type::F64, Type::F64, Type::F64, Type::F32, Type::I32, Type::Bool]);
        match self.dice.below(if depth == 0 { 6 } else { 11 }) {
            0 | 1 => {
                let (name, value) = (self.fresh("v"), self.value(ty, 2));
                self.scope.values.push((name.clone(), ty));
                vec![Line::Let(name, value)]
            }
            2 | 3 => {
                let uses = self.uses.clone().unwrap_or_default();
                // What data names is written once.
                let often: Vec<String> =
                    uses.iter().filter(|(_, u)| *u != Use::Unique).map(|(n, _)| n.clone()).collect();
                if often.is_empty() {
                    return Vec::new();
                }
                let name = self.dice.pick(&often);
                self.write(&name).into_iter().collect()
            }
            4 => {
                let ty = if ty == Type::Bool { Type::F64 } else { ty };
                let (name, value) = (self.fresh("t"), self.value(ty, 1));
                self.scope.locals.push((name.clone(), ty));
                vec![Line::Mut(name, value)]
            }
            5 => self.set(2).into_iter().collect(),
            6 | 7 => {
                let condition = self.condition(1);
                let then = self.scoped(|m| m.two_statements(depth - 1));
                let otherwise = match self.dice.one_in(2) {
                    true => self.scoped(|m| m.two_statements(depth - 1)),
                    false => Vec::new(),
                };
                vec![Line::If(condition, then, otherwise)]
            }
            8 | 9 => vec![self.inner_for(depth)],
            _ => self.inner_while(depth),
        }
    }

    pub(super) fn two_statements(&mut self, depth: usize) -> Vec<Line> {
        let mut lines = self.body_statement(depth);
        lines.extend(self.body_statement(depth));
        lines
    }

    /// Changes a local variable of numbers.
    pub(super) fn set(&mut self, depth: usize) -> Option<Line> {
        let settable: Vec<(String, Type)> =
            self.scope.locals.iter().skip(self.outer_locals).cloned().collect();
        if settable.is_empty() {
            return None;
        }
        let (name, ty) = self.dice.pick(&settable);
        Some(Line::Set(name, self.value(ty, depth)))
    }

    /// A sequential loop of constant, triangular or data-dependent length.
    fn inner_for(&mut self, depth: usize) -> Line {
        let name = self.fresh("c");
        let parallel = self.variable();
        let (to, within) = match (self.dice.below(5), parallel) {
            (0, Some(v)) => (Term::name(&v.name), v.within.map(|(e, _)| (e, 1))),
            (1, Some(v)) => (
                Term::binary(Binary::Add, Term::name(&v.name), Term::index(1)),
                v.within.map(|(e, _)| (e, 0)),
            ),
            (2, _) => {
                let data = self.integer(Type::I32, 0).cast(Type::Index);
                (Term::binary(Binary::RemEuclid, data, Term::index(3)), None)
            }
            (3, _) => (Term::Extent(Extent::M), Some((Extent::M, 0))),
            _ => (Term::index(self.dice.below(4) as i64), None),
        };
        let variable = Variable { name: name.clone(), low: 0, within };
        self.scoped(|m| {
            m.scope.variables.push(variable);
            let body = m.two_statements(depth - 1);
            let until = m.dice.one_in(5).then(|| m.condition(1));
            Line::For { name, from: Term::index(0), to, hint: None, body, until }
        })
    }

    fn inner_while(&mut self, depth: usize) -> Vec<Line> {
        let counter = self.fresh("n");
        let most = Term::number(Type::I32, self.dice.below(4) as f64);
        let step = Line::Set(
            counter.clone(),
            Term::binary(Binary::Add, Term::name(&counter), Term::number(Type::I32, 1.0)),
        );
        let start = Line::Mut(counter.clone(), Term::number(Type::I32, 0.0));
        let below = Term::compare(ebbtide_ir::Compare::Lt, Term::name(&counter), most);
        let repeated = self.scoped(|m| {
            let data = m.condition(1);
            let condition = Term::binary(Binary::And, below, data);
            let mut body = m.two_statements(depth - 1);
            body.push(step);
            Line::While { condition, body }
        });
        vec![start, repeated]
    }
}
