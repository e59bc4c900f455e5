//! Statements at program level: loops, branches, whole arrays, calls, regions.

use ebbtide_ir::{Access, Binary, Combine, Compare, ReverseHint, Type};

use super::{ArrayOf, Dice, Extent, Line, Maker, ScalarOf, Scope, Sketch, Term, Variable};

impl Maker {
    /// One statement, or a few that belong together.
    pub(super) fn statement(&mut self, depth: usize) -> Vec<Line> {
        if self.fuel == 0 {
            return vec![self.parallel()];
        }
        self.fuel -= 1;
        if self.recurrent && self.dice.one_in(3) {
            return self.recurrent_step(depth);
        }
        if self.physical && self.dice.one_in(4) {
            return self.physical_step(depth);
        }
        match self.dice.below(if depth == 0 { 19 } else { 30 }) {
            0..=8 => vec![self.parallel()],
            9 => self.swaps(),
            10 => self.whole_array().into_iter().collect(),
            11 | 12 => self.element(),
            13 => {
                let ty = self.dice.pick(&[Type::F64, Type::F32, Type::I32]);
                let (name, value) = (self.fresh("t"), self.value(ty, 1));
                self.scope.locals.push((name.clone(), ty));
                vec![Line::Mut(name, value)]
            }
            14 => self.set(1).into_iter().collect(),
            15 => self.temporary(),
            16 => self.library().into_iter().collect(),
            17 => self.call(),
            18 if self.regions > 0 => self.region(),
            18 => vec![self.parallel()],
            19..=23 => vec![self.time_loop(depth)],
            24 | 25 => {
                let condition = self.condition(1);
                let then = self.scoped(|m| m.several(depth - 1));
                let otherwise = match self.dice.one_in(2) {
                    true => self.scoped(|m| m.several(depth - 1)),
                    false => Vec::new(),
                };
                vec![Line::If(condition, then, otherwise)]
            }
            26 => self.dead_exchange().into_iter().collect(),
            27 => vec![self.guarded_loop(depth)],
            _ => self.data_loop(depth),
        }
    }

    /// Time steps that change the inside of an array in place and sum it up: beyond a leaf, the order of the sum shows.
    pub(super) fn inner_sum(&mut self) -> Vec<Line> {
        let sum =
            ArrayOf { name: "s".to_string(), ty: Type::F64, extents: Vec::new(), access: Access::Write };
        if !self.scope.arrays.contains(&sum) {
            self.scope.arrays.push(sum.clone());
        }
        let (time, i) = (self.fresh("l"), self.fresh("i"));
        let here = || Term::Load("a".to_string(), vec![Term::name(&i)]);
        let number = |x: f64| Term::number(Type::F64, x);
        let slope = Term::binary(Binary::Sub, number(1.1), Term::binary(Binary::Mul, number(0.1), here()));
        let step =
            Line::Store("a".to_string(), vec![Term::name(&i)], Term::binary(Binary::Mul, here(), slope));
        let add = Line::Update(Combine::Add, sum.name.clone(), Vec::new(), here());
        let last = Term::binary(Binary::Sub, Term::Extent(Extent::N), Term::index(1));
        let inside = Line::Par { ranges: vec![(i.clone(), Term::index(1), last)], body: vec![step, add] };
        let mut body = vec![inside];
        if self.dice.one_in(2) {
            // Control flow that hangs on the last bits of the sum.
            let whole =
                Term::binary(Binary::Mul, number(1e12), Term::Load(sum.name, Vec::new())).cast(Type::I64);
            let odd = Term::binary(Binary::And, whole, Term::number(Type::I64, 1.0));
            let odd = Term::compare(Compare::Eq, odd, Term::number(Type::I64, 1.0));
            body.push(Line::If(odd, self.scoped(|m| m.several(0)), Vec::new()));
        }
        let steps = Term::name("steps");
        vec![Line::For { name: time, from: Term::index(0), to: steps, hint: None, body, until: None }]
    }

    /// Exchanges arrays of different shapes, where that never happens: it proves nothing about them.
    fn dead_exchange(&mut self) -> Option<Line> {
        let candidates: Vec<ArrayOf> = self
            .scope
            .arrays
            .iter()
            .filter(|a| a.access == Access::Write && a.ty.is_float() && !a.name.starts_with("temp"))
            .filter(|a| !self.banned.contains(&a.name))
            .cloned()
            .collect();
        let one = (!candidates.is_empty()).then(|| self.dice.pick(&candidates))?;
        let other = candidates
            .iter()
            .find(|a| a.ty == one.ty && a.extents.len() == one.extents.len() && a.extents != one.extents)?;
        let name = self.fresh("l");
        let body = vec![Line::Swap(one.name, other.name.clone())];
        Some(Line::For { name, from: Term::index(0), to: Term::index(0), hint: None, body, until: None })
    }

    /// A loop whose bound divides by what a condition around it has looked at.
    fn guarded_loop(&mut self, depth: usize) -> Line {
        let few = Term::name("few");
        let name = self.fresh("l");
        let to = Term::binary(Binary::Div, Term::index(6), few.clone());
        let variable = Variable { name: name.clone(), low: 0, within: None };
        let repeated = self.scoped(|m| {
            m.scope.variables.push(variable);
            Line::For { name, from: Term::index(0), to, hint: None, body: m.several(depth - 1), until: None }
        });
        Line::If(Term::compare(Compare::Gt, few, Term::index(1)), vec![repeated], Vec::new())
    }

    fn several(&mut self, depth: usize) -> Vec<Line> {
        let mut lines = self.statement(depth);
        if !self.dice.one_in(3) {
            lines.extend(self.statement(depth));
        }
        lines
    }

    /// A `for`: over the time steps, a few, or as many as another loop has come to.
    fn time_loop(&mut self, depth: usize) -> Line {
        let name = self.fresh("l");
        let outer: Vec<Variable> =
            self.scope.variables.iter().filter(|v| v.name.starts_with('l')).cloned().collect();
        let steps = Term::name("steps");
        let (from, to, low, within) = match self.dice.below(8) {
            0 => (Term::index(0), Term::index(self.dice.below(4) as i64), 0, None),
            1 if !outer.is_empty() => {
                let v = self.dice.pick(&outer);
                (Term::index(0), Term::name(&v.name), 0, v.within)
            }
            2 if !outer.is_empty() => {
                let v = self.dice.pick(&outer);
                let low = v.low;
                let within = v.within.is_some().then_some((Extent::Times, 1));
                (Term::name(&v.name), steps, low, within)
            }
            3 => {
                let data = self.integer(Type::I32, 0).cast(Type::Index);
                (Term::index(0), Term::binary(Binary::RemEuclid, data, Term::index(3)), 0, None)
            }
            4 => (Term::index(1), steps, 1, Some((Extent::Times, 1))),
            _ => (Term::index(0), steps, 0, Some((Extent::Times, 1))),
        };
        let hint = self.dice.one_in(6).then(|| {
            let few = 1 + self.dice.below(3) as u64;
            self.dice.pick(&[
                ReverseHint::StoreAll,
                ReverseHint::Periodic(few),
                ReverseHint::Revolve(few),
                ReverseHint::Online(few),
            ])
        });
        let variable = Variable { name: name.clone(), low, within };
        self.scoped(|m| {
            m.scope.variables.push(variable);
            let body = m.several(depth - 1);
            let until = m.dice.one_in(5).then(|| m.condition(1));
            Line::For { name, from, to, hint, body, until }
        })
    }

    /// A `while` or `loop` whose end is data, with a counter that ends it in any case.
    fn data_loop(&mut self, depth: usize) -> Vec<Line> {
        let counter = self.fresh("n");
        let start = Line::Mut(counter.clone(), Term::number(Type::I32, 0.0));
        let most = Term::number(Type::I32, 1.0 + self.dice.below(4) as f64);
        let next = Term::binary(Binary::Add, Term::name(&counter), Term::number(Type::I32, 1.0));
        let step = Line::Set(counter.clone(), next);
        let endless = self.dice.one_in(2);
        let repeated = self.scoped(|m| {
            let count = Term::name(&counter);
            if endless {
                let mut body = m.several(depth - 1);
                body.push(step);
                let data = m.condition(1);
                let enough = Term::compare(Compare::Ge, count, most);
                return Line::Loop { body, until: Term::binary(Binary::Or, enough, data) };
            }
            let data = m.condition(1);
            let condition = Term::binary(Binary::And, Term::compare(Compare::Lt, count, most), data);
            let mut body = m.several(depth - 1);
            body.push(step);
            Line::While { condition, body }
        });
        vec![start, repeated]
    }

    /// Arrays of one type and shape that can be written.
    fn alike(&mut self, least: usize) -> Vec<ArrayOf> {
        let writable: Vec<ArrayOf> = self
            .scope
            .arrays
            .iter()
            .filter(|a| a.access == Access::Write && a.ty.is_float() && !["g"].contains(&a.name.as_str()))
            .filter(|a| !self.banned.contains(&a.name) && !super::WILD.contains(&a.name.as_str()))
            .cloned()
            .collect();
        for _ in 0..4 {
            if writable.is_empty() {
                break;
            }
            let one = self.dice.pick(&writable);
            let kind = |a: &ArrayOf| (a.extents.clone(), a.ty);
            let same: Vec<ArrayOf> = writable.iter().filter(|a| kind(a) == kind(&one)).cloned().collect();
            if same.len() >= least {
                return same;
            }
        }
        Vec::new()
    }

    /// Exchanges two arrays, or three in a circle.
    fn swaps(&mut self) -> Vec<Line> {
        let same = self.alike(2);
        if same.len() < 2 {
            return vec![self.parallel()];
        }
        let first = self.dice.below(same.len());
        let second = (first + 1 + self.dice.below(same.len() - 1)) % same.len();
        let swap = |a: usize, b: usize| Line::Swap(same[a].name.clone(), same[b].name.clone());
        let mut lines = vec![swap(first, second)];
        if let Some(third) = (0..same.len()).find(|k| *k != first && *k != second)
            && self.dice.one_in(2)
        {
            lines.push(swap(second, third));
        }
        lines
    }

    fn whole_array(&mut self) -> Option<Line> {
        let same = self.alike(2);
        if same.len() >= 2 && self.dice.one_in(2) {
            return Some(Line::Copy(same[0].name.clone(), same[1].name.clone()));
        }
        let one = self.alike(1);
        let array = (!one.is_empty()).then(|| self.dice.pick(&one))?;
        let value = self.kept(array.ty, 1);
        Some(Line::Fill(array.name, value))
    }

    /// Writes a single element, where there is one.
    fn element(&mut self) -> Vec<Line> {
        let writable: Vec<ArrayOf> = self
            .scope
            .arrays
            .iter()
            .filter(|a| a.access == Access::Write && !["o", "g", "count", "list"].contains(&a.name.as_str()))
            .filter(|a| !self.banned.contains(&a.name))
            .cloned()
            .collect();
        let array = self.dice.pick(&writable);
        let lines = self.scoped(|m| {
            m.nonempty = true;
            let (index, value) = (m.anywhere(&array), m.value(array.ty, 2));
            vec![match (m.dice.below(3), array.ty) {
                (0, Type::Bool) | (1 | 2, _) => Line::Store(array.name.clone(), index, value),
                _ => {
                    let how = m.dice.pick(&[Combine::Add, Combine::Min, Combine::Max]);
                    Line::Update(how, array.name.clone(), index, value)
                }
            }]
        });
        let positive = |e: Extent| Term::compare(Compare::Gt, Term::Extent(e), Term::index(0));
        let guard = Term::binary(Binary::And, positive(Extent::N), positive(Extent::M));
        vec![Line::If(guard, lines, Vec::new())]
    }

    /// A temporary, and a loop that fills it.
    fn temporary(&mut self) -> Vec<Line> {
        let name = self.fresh("temp");
        let extents: &[Extent] =
            self.dice.pick(&[&[Extent::N][..], &[Extent::N], &[Extent::N, Extent::M], &[Extent::M]]);
        let ty = self.dice.pick(&[Type::F64, Type::F64, Type::F32]);
        let temp = ArrayOf { name, ty, extents: extents.to_vec(), access: Access::Write };
        self.scope.arrays.push(temp.clone());
        let filled = self.parallel_writing(Some(&temp));
        vec![Line::Temp(temp), filled]
    }

    fn library(&mut self) -> Option<Line> {
        let has = |m: &Maker, name: &str| m.scope.arrays.iter().any(|a| a.name == name);
        let name = |text: &str| text.to_string();
        if has(self, "flags") && has(self, "list") && has(self, "count") && self.dice.one_in(2) {
            return Some(Line::Compact(name("flags"), name("list"), name("count")));
        }
        let square: Vec<String> = self
            .scope
            .arrays
            .iter()
            .filter(|a| a.extents == [Extent::M, Extent::M])
            .map(|a| a.name.clone())
            .collect();
        if square.len() >= 2 && self.dice.one_in(2) {
            let out = self.dice.pick(&square);
            let factors: Vec<String> = square.iter().filter(|n| **n != out).cloned().collect();
            return Some(Line::Matmul(self.dice.pick(&factors), self.dice.pick(&factors), out));
        }
        let same: Vec<ArrayOf> = self.alike(2).into_iter().filter(|a| a.extents.len() == 1).collect();
        (same.len() >= 2).then(|| Line::Scan(same[0].name.clone(), same[1].name.clone()))
    }

    /// Calls another program with some of the arrays.
    fn call(&mut self) -> Vec<Line> {
        if !self.may_call {
            return vec![self.parallel()];
        }
        if !self.callees.is_empty() && self.dice.one_in(3) {
            // The same program again, with the same arrays if these are in scope.
            let which = self.dice.below(self.callees.len());
            if let Some(arguments) = self.arguments(which) {
                return vec![Line::Call(which, arguments, self.scalar_arguments())];
            }
        }
        let mut given: Vec<ArrayOf> = Vec::new();
        let candidates: Vec<ArrayOf> = self
            .scope
            .arrays
            .iter()
            .filter(|a| a.access == Access::Write && !["o", "g", "list", "count"].contains(&a.name.as_str()))
            .filter(|a| !self.banned.contains(&a.name) && !a.name.starts_with("temp"))
            .cloned()
            .collect();
        for _ in 0..2 + self.dice.below(3) {
            let array = self.dice.pick(&candidates);
            if !given.iter().any(|a| a.name == array.name) {
                given.push(array);
            }
        }
        for extent in [Extent::N, Extent::M] {
            // A program knows the extents of its arrays alone.
            if !given.iter().any(|a| a.extents.contains(&extent)) {
                let Some(array) = candidates.iter().find(|a| a.extents.contains(&extent)) else {
                    return vec![self.parallel()];
                };
                given.push(array.clone());
            }
        }
        let which = self.callees.len();
        let callee = self.callee(which, &given);
        self.callees.push(callee);
        let names = given.iter().map(|a| a.name.clone()).collect();
        vec![Line::Call(which, names, self.scalar_arguments())]
    }

    fn scalar_arguments(&mut self) -> Vec<Term> {
        let real = self.named(Type::F64).unwrap_or(Term::number(Type::F64, 0.5));
        vec![real, Term::name("steps"), Term::name("few")]
    }

    /// Arrays in scope that fit the parameters of a callee, none of them twice.
    fn arguments(&mut self, which: usize) -> Option<Vec<String>> {
        let mut names: Vec<String> = Vec::new();
        for param in self.callees[which].arrays.clone() {
            let wild = super::WILD.contains(&param.name.as_str());
            let fits = |a: &&ArrayOf| {
                (a.ty, &a.extents, a.access) == (param.ty, &param.extents, param.access)
                    && !names.contains(&a.name)
                    && !["o", "g", "list", "count"].contains(&a.name.as_str())
                    && !self.banned.contains(&a.name)
                    && !a.name.starts_with("temp")
                    && super::WILD.contains(&a.name.as_str()) == wild
            };
            let fitting: Vec<String> =
                self.scope.arrays.iter().filter(fits).map(|a| a.name.clone()).collect();
            if fitting.is_empty() {
                return None;
            }
            names.push(self.dice.pick(&fitting));
        }
        Some(names)
    }

    fn callee(&mut self, which: usize, arrays: &[ArrayOf]) -> Sketch {
        let scalars: Vec<ScalarOf> = [("scale", Type::F64), ("steps", Type::Index), ("few", Type::Index)]
            .map(|(name, ty)| ScalarOf { name: name.to_string(), ty })
            .to_vec();
        let mut inner = Maker {
            dice: Dice::new(self.dice.roll()),
            scope: Scope {
                arrays: arrays.to_vec(),
                values: scalars.iter().map(|s| (s.name.clone(), s.ty)).collect(),
                ..Scope::default()
            },
            uses: None,
            outer_locals: 0,
            banned: Default::default(),
            nonempty: false,
            callees: Vec::new(),
            may_call: false,
            regions: 0,
            names: 100 * (which + 1),
            physical: self.physical,
            // What it names may not be among the arrays that the callee gets.
            recurrent: false,
            fuel: 6,
        };
        let mut body = Vec::new();
        for _ in 0..1 + inner.dice.below(2) {
            let depth = inner.dice.below(2);
            body.extend(inner.statement(depth));
        }
        Sketch { name: format!("part_{which}"), arrays: arrays.to_vec(), scalars, body, callees: Vec::new() }
    }

    /// A region that yields while `g` is above a limit; the host makes it smaller.
    pub(super) fn region(&mut self) -> Vec<Line> {
        self.regions = 0;
        let undo = !self.dice.one_in(3);
        let candidates: Vec<ArrayOf> = self.alike(1);
        let may_call = std::mem::replace(&mut self.may_call, false);
        let mut body = match (undo, candidates.first()) {
            (false, Some(array)) => {
                // Idempotent: it does not read what it writes.
                self.banned.insert(array.name.clone());
                let written = self.scoped(|m| m.parallel_writing(Some(array)));
                self.banned.remove(&array.name);
                vec![written]
            }
            _ => self.scoped(|m| m.several(0)),
        };
        self.may_call = may_call;
        let limit =
            Term::compare(Compare::Gt, Term::Load("g".to_string(), Vec::new()), Term::number(Type::F64, 0.2));
        let raise = Line::Store("o".to_string(), Vec::new(), Term::number(Type::I32, 1.0));
        body.push(Line::If(limit, vec![raise], Vec::new()));
        let undo = undo || candidates.is_empty();
        vec![Line::Region { label: "A".to_string(), flag: "o".to_string(), undo, body }]
    }
}
