//! Random values.

use ebbtide_ir::*;

use super::{ARRAYS, Generator, TYPES, Use};

impl Generator {
    /// A type; in a loop of one float type that one, mostly.
    pub(super) fn any_type(&mut self) -> Type {
        match self.only {
            Some(only) => self.dice.pick(&[only, only, only, only, Type::Bool]),
            None => self.dice.pick(&TYPES),
        }
    }

    pub(super) fn settable(&mut self, ty: Type) -> Option<LocalId> {
        let fitting: Vec<LocalId> =
            self.locals.iter().copied().filter(|l| self.b.program().locals[l.index()].ty == ty).collect();
        (!fitting.is_empty()).then(|| self.dice.pick(&fitting))
    }

    /// An index of any kind that lies inside extent `d`.
    pub(super) fn somewhere(&mut self, d: usize, kind: usize) -> ValueId {
        let n = if d == 2 { self.index(3) } else { self.extents[d] };
        let one = self.index(1);
        match kind {
            // The same everywhere.
            0 => {
                let k = self.dice.below(3) as i64;
                let k = self.index(k);
                self.b.binary(Binary::Rem, k, n)
            }
            // Periodic: (v + c) % n with v not negative.
            1 => {
                let v = self.variable(n);
                let c = self.dice.below(4) as i64;
                let c = self.index(c);
                let sum = self.b.binary(Binary::Add, v, c);
                self.b.binary(Binary::Rem, sum, n)
            }
            // Periodic, to the left.
            2 => {
                let v = self.variable(n);
                let c = self.index(1);
                let sum = self.b.binary(Binary::Sub, v, c);
                self.b.binary(Binary::RemEuclid, sum, n)
            }
            // Clamped.
            3 => {
                let v = self.variable(n);
                let c = self.dice.below(5) as i64 - 2;
                let c = self.index(c);
                let sum = self.b.binary(Binary::Add, v, c);
                let zero = self.index(0);
                let last = self.b.binary(Binary::Sub, n, one);
                let low = self.b.binary(Binary::Max, sum, zero);
                self.b.binary(Binary::Min, low, last)
            }
            // Data.
            4 => {
                let v = self.expression(Type::I32, 1);
                let v = self.b.cast(v, Type::Index);
                self.b.binary(Binary::RemEuclid, v, n)
            }
            // Scaled.
            5 => {
                let v = self.variable(n);
                let c = self.dice.below(3) as i64 + 2;
                let c = self.index(c);
                let scaled = self.b.binary(Binary::Mul, v, c);
                self.b.binary(Binary::RemEuclid, scaled, n)
            }
            // The variable itself: out of bounds if it is another extent's.
            _ => self.variable(n),
        }
    }

    /// A loop variable, or any index.
    fn variable(&mut self, n: ValueId) -> ValueId {
        match &self.par {
            Some(vars) if !self.dice.one_in(8) => {
                let vars = vars.clone();
                self.dice.pick(&vars)
            }
            _ => {
                let two = self.index(2);
                self.b.binary(Binary::Div, n, two)
            }
        }
    }

    pub(super) fn anywhere(&mut self, at: usize) -> Vec<ValueId> {
        ARRAYS[at]
            .2
            .iter()
            .map(|d| {
                let kind = match self.only {
                    Some(_) => self.dice.pick(&[0, 1, 1, 1, 2, 2, 2, 3, 3, 3]),
                    None => self.dice.pick(&[0, 1, 1, 1, 2, 2, 3, 3, 4, 5]),
                };
                self.somewhere(*d, kind)
            })
            .collect()
    }

    pub(super) fn condition(&mut self, depth: usize) -> ValueId {
        match (&self.par, self.dice.below(3)) {
            // A boundary.
            (Some(vars), 0 | 1) => {
                let vars = vars.clone();
                let var = self.dice.pick(&vars);
                let how = self.dice.pick(&[
                    Compare::Lt,
                    Compare::Le,
                    Compare::Gt,
                    Compare::Ge,
                    Compare::Eq,
                    Compare::Ne,
                ]);
                let c = self.dice.below(4) as i64;
                let c = self.index(c);
                let far = self.dice.one_in(2);
                let n = self.extents[self.dice.below(2)];
                let edge = if far { self.b.binary(Binary::Sub, n, c) } else { c };
                let first = self.b.compare(how, var, edge);
                if self.dice.one_in(4) {
                    let second = self.condition(0);
                    let op = self.dice.pick(&[Binary::And, Binary::Or, Binary::Xor]);
                    return self.b.binary(op, first, second);
                }
                first
            }
            _ => self.expression(Type::Bool, depth),
        }
    }

    fn literal(&mut self, ty: Type) -> ValueId {
        let special = self.dice.one_in(6);
        let literal = match ty {
            Type::F32 | Type::F64 if special => Literal::of(
                ty,
                self.dice.pick(&[
                    0.0,
                    -0.0,
                    f64::NAN,
                    f64::INFINITY,
                    f64::NEG_INFINITY,
                    1e300,
                    -1e30,
                    1e-310,
                    3e9,
                ]),
            ),
            Type::F32 | Type::F64 => Literal::of(ty, (self.dice.below(64) as f64 - 32.0) / 8.0),
            Type::I32 if special => Literal::from(self.dice.pick(&[i32::MIN, i32::MAX, -1, 0])),
            Type::I32 => Literal::from(self.dice.below(20) as i32 - 10),
            Type::I64 if special => Literal::from(self.dice.pick(&[i64::MIN, i64::MAX, -1, 1 << 40])),
            Type::I64 => Literal::from(self.dice.below(20) as i64 - 10),
            Type::U32 if special => Literal::from(self.dice.pick(&[u32::MAX, 1 << 31, 0])),
            Type::U32 => Literal::from(self.dice.below(20) as u32),
            Type::Bool => Literal::from(self.dice.one_in(2)),
            Type::Index => Literal::index(self.dice.below(9) as i64 - 2),
        };
        self.b.literal(literal)
    }

    /// A value of this type.
    pub(super) fn expression(&mut self, ty: Type, depth: usize) -> ValueId {
        if depth == 0 || self.dice.one_in(5) {
            return self.simple(ty);
        }
        let depth = depth - 1;
        match ty {
            Type::F32 | Type::F64 => self.float(ty, depth),
            Type::Bool => match self.dice.below(6) {
                0..=2 => {
                    let of = match self.any_type() {
                        Type::Bool => self.only.unwrap_or(Type::I64),
                        Type::Index => self.only.unwrap_or(Type::Index),
                        other => other,
                    };
                    let how = self.dice.pick(&[
                        Compare::Lt,
                        Compare::Le,
                        Compare::Gt,
                        Compare::Ge,
                        Compare::Eq,
                        Compare::Ne,
                    ]);
                    let (a, b) = (self.expression(of, depth), self.expression(of, depth));
                    self.b.compare(how, a, b)
                }
                3 => {
                    let op = self.dice.pick(&[Binary::And, Binary::Or, Binary::Xor]);
                    let (a, b) = (self.expression(ty, depth), self.expression(ty, depth));
                    self.b.binary(op, a, b)
                }
                4 => {
                    let a = self.expression(ty, depth);
                    self.b.unary(Unary::Not, a)
                }
                _ => self.select_or_cast(ty, depth),
            },
            _ => self.integer(ty, depth),
        }
    }

    fn float(&mut self, ty: Type, depth: usize) -> ValueId {
        match self.dice.below(14) {
            0..=6 => {
                let op = self.dice.pick(&[
                    Binary::Add,
                    Binary::Sub,
                    Binary::Mul,
                    Binary::Add,
                    Binary::Mul,
                    Binary::Div,
                    Binary::Min,
                    Binary::Max,
                    if self.only.is_some() { Binary::Sub } else { Binary::Rem },
                ]);
                let (a, b) = (self.expression(ty, depth), self.expression(ty, depth));
                self.b.binary(op, a, b)
            }
            7 | 8 => {
                let op = self.dice.pick(&[
                    Unary::Neg,
                    Unary::Abs,
                    Unary::Sqrt,
                    Unary::Floor,
                    Unary::Ceil,
                    Unary::Round,
                    Unary::Trunc,
                ]);
                let a = self.expression(ty, depth);
                self.b.unary(op, a)
            }
            9 => {
                let [a, b, c] = [0; 3].map(|_| self.expression(ty, depth));
                self.b.fma(a, b, c)
            }
            10 if self.dice.one_in(3) => {
                let f = self.dice.pick(&[
                    Function::Tanh,
                    Function::Exp,
                    Function::Sin,
                    Function::Hypot,
                    if self.only.is_some() { Function::Exp } else { Function::Powi },
                ]);
                let a = self.expression(ty, depth);
                match f {
                    Function::Powi => {
                        let n = self.expression(Type::I32, depth);
                        self.b.math(f, &[a, n])
                    }
                    Function::Hypot => {
                        let c = self.expression(ty, depth);
                        self.b.math(f, &[a, c])
                    }
                    _ => self.b.math(f, &[a]),
                }
            }
            10 if self.only.is_none() => {
                let (seed, count) = (self.expression(Type::I64, depth), self.expression(Type::I64, depth));
                self.b.rand(ty, seed, count)
            }
            _ => self.select_or_cast(ty, depth),
        }
    }

    fn integer(&mut self, ty: Type, depth: usize) -> ValueId {
        let signed = matches!(ty, Type::I32 | Type::I64);
        match self.dice.below(10) {
            0..=3 => {
                let op = self.dice.pick(&[Binary::Add, Binary::Sub, Binary::Mul, Binary::Min, Binary::Max]);
                let (a, b) = (self.expression(ty, depth), self.expression(ty, depth));
                self.b.binary(op, a, b)
            }
            4 | 5 => {
                let op = self.dice.pick(&[Binary::And, Binary::Or, Binary::Xor, Binary::Shl, Binary::Shr]);
                let (a, b) = (self.expression(ty, depth), self.expression(ty, depth));
                self.b.binary(op, a, b)
            }
            6 => {
                // A divisor that is odd is not zero.
                let op = self.dice.pick(&[Binary::Div, Binary::Rem, Binary::RemEuclid]);
                let (a, b) = (self.expression(ty, depth), self.expression(ty, depth));
                let one = self.b.literal(Literal::of(ty, 1.0));
                let odd = self.b.binary(Binary::Or, b, one);
                self.b.binary(op, a, odd)
            }
            7 => {
                let op =
                    if signed { self.dice.pick(&[Unary::Neg, Unary::Abs, Unary::Not]) } else { Unary::Not };
                let a = self.expression(ty, depth);
                self.b.unary(op, a)
            }
            _ => self.select_or_cast(ty, depth),
        }
    }

    fn select_or_cast(&mut self, ty: Type, depth: usize) -> ValueId {
        if self.dice.one_in(2) {
            let c = self.condition(depth);
            let (a, b) = (self.expression(ty, depth), self.expression(ty, depth));
            return self.b.select(c, a, b);
        }
        let from = if ty == Type::F64 && self.dice.one_in(2) { Type::Index } else { self.any_type() };
        if let Some(vars) = &self.par
            && self.only == Some(ty)
            && from == Type::Index
        {
            let vars = vars.clone();
            let var = self.dice.pick(&vars);
            return self.b.cast(var, ty);
        }
        let a = self.expression(from, depth);
        self.b.cast(a, ty)
    }

    /// A literal, a variable or an element.
    fn simple(&mut self, ty: Type) -> ValueId {
        let arrays: Vec<usize> = (0..ARRAYS.len())
            .filter(|at| ARRAYS[*at].1 == ty)
            .filter(|at| self.par.is_none() || !matches!(self.uses[*at], Use::Combine(_)))
            .collect();
        match self.dice.below(8) {
            0 => self.literal(ty),
            1 | 2 => {
                let fitting: Vec<ValueId> =
                    self.values.iter().copied().filter(|v| self.b.ty(*v) == ty).collect();
                if fitting.is_empty() { self.literal(ty) } else { self.dice.pick(&fitting) }
            }
            3 => match self.settable(ty) {
                Some(local) => self.b.get(local),
                None => self.literal(ty),
            },
            _ if arrays.is_empty() => {
                if ty == Type::Index && self.dice.one_in(2) {
                    return self.extents[self.dice.below(2)];
                }
                self.literal(ty)
            }
            _ => {
                let at = self.dice.pick(&arrays);
                let index = match (&self.par, self.uses.get(at)) {
                    (Some(_), Some(Use::Own)) => self.own[at].clone(),
                    (Some(vars), _) if self.dice.one_in(2) => {
                        // The plain element, where a variable runs over each extent.
                        let vars = vars.clone();
                        ARRAYS[at]
                            .2
                            .iter()
                            .map(|d| match vars.iter().find(|v| self.named(**v, *d)) {
                                Some(v) => *v,
                                None => self.somewhere(*d, 1),
                            })
                            .collect()
                    }
                    _ => self.anywhere(at),
                };
                self.b.load(self.arrays[at], &index)
            }
        }
    }

    /// Does this variable run over extent `d`?
    fn named(&self, v: ValueId, d: usize) -> bool {
        self.b.program().value(v).name.as_deref() == Some(["i", "j", "c"][d])
    }
}
