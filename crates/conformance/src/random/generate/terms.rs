//! Random terms. Floats stay within a few units, so that derivatives do not grow beyond measure.

use ebbtide_ir::{Binary, Compare, Function, Type, Unary};

use super::parallel::Use;
use super::{ArrayOf, Extent, Maker, Term, Variable, WILD};

fn math(f: Function, args: Vec<Term>) -> Term {
    Term::Math(f, args)
}

fn sin(x: Term) -> Term {
    math(Function::Sin, vec![x])
}

impl Maker {
    /// A float of this type.
    pub(super) fn float(&mut self, ty: Type, depth: usize) -> Term {
        if depth == 0 || self.dice.one_in(5) {
            return self.float_leaf(ty);
        }
        let depth = depth - 1;
        let a = self.float(ty, depth);
        let number = |x: f64| Term::number(ty, x);
        let plus = |x: f64, t: Term| Term::binary(Binary::Add, Term::number(ty, x), t);
        let times = |x: f64, t: Term| Term::binary(Binary::Mul, Term::number(ty, x), t);
        match self.dice.below(34) {
            0..=2 => {
                let op = self.dice.pick(&[Binary::Add, Binary::Sub]);
                let b = self.float(ty, depth);
                times(0.6, Term::binary(op, a, b))
            }
            3..=6 => Term::binary(Binary::Mul, a, self.float(ty, depth)),
            7 => {
                let op = self.dice.pick(&[Binary::Add, Binary::Sub]);
                Term::binary(op, a, self.float_leaf(ty))
            }
            8..=11 => {
                let bounded = [Function::Sin, Function::Cos, Function::Tanh, Function::Atan, Function::Erf];
                math(self.dice.pick(&bounded), vec![a])
            }
            12 => {
                let f = self.dice.pick(&[Function::Exp, Function::Exp2, Function::ExpM1, Function::Ln1p]);
                math(f, vec![times(0.5, sin(a))])
            }
            13 => {
                let f = self.dice.pick(&[Function::Ln, Function::Log2, Function::Log10, Function::Cbrt]);
                math(f, vec![plus(1.75, sin(a))])
            }
            14 => {
                let f = self.dice.pick(&[Function::Asin, Function::Acos, Function::Tan]);
                math(f, vec![times(0.7, sin(a))])
            }
            15 => math(self.dice.pick(&[Function::Sinh, Function::Cosh]), vec![sin(a)]),
            16 => Term::unary(Unary::Sqrt, plus(1.0, Term::binary(Binary::Mul, a.clone(), a))),
            17 => {
                let exponent = plus(1.25, times(0.5, sin(self.float(ty, depth))));
                math(Function::Powf, vec![plus(1.75, sin(a)), exponent])
            }
            18 => {
                let n = self.dice.pick(&[2.0, 3.0, 0.0, 1.0]);
                math(Function::Powi, vec![sin(a), Term::number(Type::I32, n)])
            }
            19 => math(Function::Hypot, vec![plus(1.75, sin(a)), self.float_leaf(ty)]),
            20 => {
                let b = self.float_leaf(ty);
                math(Function::Atan2, vec![a, plus(1.5, Term::binary(Binary::Mul, b.clone(), b))])
            }
            21 | 22 => {
                let b = self.float(ty, depth);
                Term::binary(Binary::Div, a, plus(1.5, Term::binary(Binary::Mul, b.clone(), b)))
            }
            23 => Term::binary(Binary::Rem, a, number(0.75)),
            24 => {
                let rounded =
                    self.dice.pick(&[Unary::Floor, Unary::Ceil, Unary::Round, Unary::Trunc, Unary::Neg]);
                Term::unary(rounded, a)
            }
            25 => Term::unary(Unary::Abs, a),
            26 | 27 => Term::binary(self.dice.pick(&[Binary::Min, Binary::Max]), a, self.float(ty, depth)),
            28 | 29 => {
                let c = self.condition(1);
                Term::Select(Box::new(c), Box::new(a), Box::new(self.float(ty, depth)))
            }
            30 => {
                let (b, c) = (self.float_leaf(ty), self.float_leaf(ty));
                Term::Fma(Box::new(a), Box::new(b), Box::new(c))
            }
            31 => {
                let other = if ty == Type::F64 { Type::F32 } else { Type::F64 };
                self.float(other, depth).cast(ty)
            }
            32 => times(0.125, self.integer(Type::I32, 1).cast(ty)),
            _ => Term::Rand(ty, Box::new(Term::number(Type::I64, 7.0)), Box::new(self.integer(Type::I64, 0))),
        }
    }

    fn float_leaf(&mut self, ty: Type) -> Term {
        for _ in 0..4 {
            match self.dice.below(12) {
                0 => {
                    let x = self.dice.below(31) as f64 / 16.0 - 0.9375;
                    return Term::number(ty, x);
                }
                1 | 2 => {
                    if let Some(name) = self.named(ty) {
                        return name;
                    }
                }
                3 => {
                    if let Some(v) = self.variable() {
                        let scaled =
                            Term::binary(Binary::Mul, Term::number(ty, 0.5), Term::name(&v.name).cast(ty));
                        return sin(scaled);
                    }
                }
                4 => {
                    let other = if ty == Type::F64 { Type::F32 } else { Type::F64 };
                    if let Some(load) = self.load(other) {
                        return load.cast(ty);
                    }
                }
                _ => {
                    if let Some(load) = self.load(ty) {
                        return load;
                    }
                }
            }
        }
        Term::number(ty, 0.375)
    }

    /// A value or local variable of this type.
    pub(super) fn named(&mut self, ty: Type) -> Option<Term> {
        let fitting: Vec<String> = self
            .scope
            .values
            .iter()
            .chain(&self.scope.locals)
            .filter(|(_, t)| *t == ty)
            .map(|(name, _)| name.clone())
            .collect();
        (!fitting.is_empty()).then(|| Term::Name(self.dice.pick(&fitting)))
    }

    pub(super) fn variable(&mut self) -> Option<Variable> {
        let variables = self.scope.variables.clone();
        (!variables.is_empty()).then(|| self.dice.pick(&variables))
    }

    /// An element of this type that may be read here.
    pub(super) fn load(&mut self, ty: Type) -> Option<Term> {
        let readable: Vec<ArrayOf> =
            self.scope.arrays.iter().filter(|a| a.ty == ty && self.may_read(a)).cloned().collect();
        if readable.is_empty() {
            return None;
        }
        let array = self.dice.pick(&readable);
        let index = match self.use_of(&array.name) {
            Some(used) => self.own_index(&array, &used, true)?,
            None => self.anywhere(&array),
        };
        let load = Term::Load(array.name.clone(), index);
        let wild = WILD.contains(&array.name.as_str());
        Some(if wild && ty.is_float() { self.bounded(load) } else { load })
    }

    pub(super) fn may_read(&self, array: &ArrayOf) -> bool {
        if self.banned.contains(&array.name) || array.name == "o" {
            return false;
        }
        let empty = |e: &Extent| matches!(e, Extent::N | Extent::M);
        if self.uses.is_none() && !self.nonempty && array.extents.iter().any(empty) {
            return false;
        }
        !matches!(self.use_of(&array.name), Some(Use::Combine(_) | Use::Unique))
    }

    pub(super) fn use_of(&self, name: &str) -> Option<Use> {
        let uses = self.uses.as_ref()?;
        uses.iter().find(|(n, _)| n == name).map(|(_, used)| used.clone())
    }

    /// A float within one unit of zero.
    pub(super) fn bounded(&mut self, x: Term) -> Term {
        math(self.dice.pick(&[Function::Tanh, Function::Sin, Function::Atan]), vec![x])
    }

    /// A float to be kept in an array: it must not grow from pass to pass.
    pub(super) fn kept(&mut self, ty: Type, depth: usize) -> Term {
        let x = self.float(ty, depth);
        if self.dice.one_in(2) {
            return self.bounded(x);
        }
        let y = self.float_leaf(ty);
        let half = Term::binary(Binary::Mul, Term::number(ty, 0.5), x);
        let quarter = Term::binary(Binary::Mul, Term::number(ty, 0.25), y);
        Term::binary(Binary::Add, half, quarter)
    }

    /// A value of any element type to be kept in an array.
    pub(super) fn value(&mut self, ty: Type, depth: usize) -> Term {
        match ty {
            Type::F32 | Type::F64 => self.kept(ty, depth),
            Type::Bool => self.condition(depth.min(1)),
            _ => Term::binary(Binary::Rem, self.integer(ty, 1), Term::number(ty, 17.0)),
        }
    }

    /// An index of an array that is inside its extents where these are not empty.
    pub(super) fn anywhere(&mut self, array: &ArrayOf) -> Vec<Term> {
        array.extents.clone().iter().map(|extent| self.inside(*extent)).collect()
    }

    /// An index inside an extent.
    pub(super) fn inside(&mut self, extent: Extent) -> Term {
        let fitting: Vec<Variable> = self
            .scope
            .variables
            .iter()
            .filter(|v| v.within.is_some_and(|(e, _)| e == extent))
            .cloned()
            .collect();
        if !fitting.is_empty() && !self.dice.one_in(3) {
            let v = self.dice.pick(&fitting);
            let name = Term::name(&v.name);
            let room = v.within.map_or(0, |(_, room)| room);
            return match self.dice.below(6) {
                0 if v.low > 0 => Term::binary(Binary::Sub, name, Term::index(1)),
                1 if room > 0 => Term::binary(Binary::Add, name, Term::index(1)),
                2 => {
                    let last = Term::binary(Binary::Sub, Term::Extent(extent), Term::index(1));
                    Term::binary(Binary::Sub, last, name)
                }
                _ => name,
            };
        }
        let thirds: Vec<Term> = self
            .scope
            .variables
            .iter()
            .filter(|v| v.within.is_some_and(|(e, _)| e == Extent::Fixed(3)))
            .map(|v| Term::name(&v.name))
            .collect();
        if extent == Extent::Fixed(5) && thirds.len() >= 2 {
            let (i, j) = (self.dice.pick(&thirds), self.dice.pick(&thirds));
            return match self.dice.one_in(2) {
                true => {
                    let sum = Term::binary(Binary::Add, j, Term::index(2));
                    Term::binary(Binary::Sub, sum, i)
                }
                false => {
                    let rest = Term::binary(Binary::Sub, Term::index(4), i);
                    Term::binary(Binary::Sub, rest, j)
                }
            };
        }
        let shift = Term::index(self.dice.below(4) as i64);
        match (self.dice.below(4), self.variable()) {
            (0 | 1, Some(v)) => {
                let sum = Term::binary(Binary::Add, Term::name(&v.name), shift);
                Term::binary(Binary::Rem, sum, Term::Extent(extent))
            }
            (2, _) => {
                let data = self.integer(Type::I32, 0).cast(Type::Index);
                Term::binary(Binary::RemEuclid, data, Term::Extent(extent))
            }
            _ => match extent {
                Extent::Fixed(n) => Term::index(self.dice.below(n) as i64),
                _ => Term::binary(Binary::Rem, shift, Term::Extent(extent)),
            },
        }
    }

    /// An integer of this type, `usize` aside.
    pub(super) fn integer(&mut self, ty: Type, depth: usize) -> Term {
        if depth == 0 || self.dice.one_in(3) {
            for _ in 0..3 {
                match self.dice.below(5) {
                    0 => return Term::number(ty, self.dice.below(7) as f64),
                    1 => {
                        if let Some(v) = self.variable() {
                            return Term::name(&v.name).cast(ty);
                        }
                    }
                    2 => {
                        if let Some(name) = self.named(ty) {
                            return name;
                        }
                    }
                    _ => {
                        if let Some(load) = self.load(ty) {
                            return load;
                        }
                    }
                }
            }
            return Term::number(ty, 3.0);
        }
        let a = self.integer(ty, depth - 1);
        match self.dice.below(6) {
            0 | 1 => {
                let op = self.dice.pick(&[Binary::Add, Binary::Sub, Binary::Mul, Binary::Min, Binary::Max]);
                Term::binary(op, a, self.integer(ty, depth - 1))
            }
            2 => Term::binary(self.dice.pick(&[Binary::And, Binary::Xor]), a, Term::number(ty, 5.0)),
            3 => Term::binary(Binary::Div, a, Term::number(ty, 3.0)),
            4 => {
                let from = self.dice.pick(&[Type::I32, Type::I64, Type::U32]);
                self.integer(from, depth - 1).cast(ty)
            }
            _ => {
                let eighths =
                    Term::binary(Binary::Mul, Term::number(Type::F64, 8.0), self.float_leaf(Type::F64));
                eighths.cast(ty)
            }
        }
    }

    /// A condition on data, indices or both.
    pub(super) fn condition(&mut self, depth: usize) -> Term {
        let how = [Compare::Lt, Compare::Le, Compare::Gt, Compare::Ge, Compare::Ne, Compare::Eq];
        match self.dice.below(8) {
            0 | 1 => {
                if let Some(v) = self.variable() {
                    let how = self.dice.pick(&how);
                    return Term::compare(how, Term::name(&v.name), Term::index(self.dice.below(4) as i64));
                }
            }
            2 => {
                if let Some(load) = self.load(Type::Bool) {
                    return load;
                }
            }
            3 => {
                let rest =
                    Term::binary(Binary::Rem, self.integer(Type::I32, 0), Term::number(Type::I32, 3.0));
                return Term::compare(self.dice.pick(&how), rest, Term::number(Type::I32, 1.0));
            }
            4 if depth > 0 => {
                let op = self.dice.pick(&[Binary::And, Binary::Or, Binary::Xor]);
                let (a, b) = (self.condition(depth - 1), self.condition(depth - 1));
                return Term::binary(op, a, b);
            }
            5 if depth > 0 => return Term::unary(Unary::Not, self.condition(depth - 1)),
            _ => {}
        }
        let ty = self.dice.pick(&[Type::F64, Type::F64, Type::F32]);
        let (a, b) = (self.float(ty, 1), self.float_leaf(ty));
        Term::compare(self.dice.pick(&how[..4]), a, b)
    }
}
