//! Values: what operators and loads give.

use super::Builder;
use crate::syntax::*;

impl Builder {
    pub(super) fn value(&mut self, op: Op, ty: Type) -> ValueId {
        let id = self.program.add_value(op, ty, self.site.clone());
        self.push(Stmt::Let(id));
        id
    }

    pub(super) fn loop_var(&mut self, name: &str) -> ValueId {
        let id = self.program.add_value(Op::LoopVar, Type::Index, self.site.clone());
        self.name(id, name);
        id
    }

    /// The type of a value.
    pub fn ty(&self, value: ValueId) -> Type {
        self.program.ty(value)
    }

    /// A constant.
    pub fn literal(&mut self, literal: Literal) -> ValueId {
        self.value(Op::Literal(literal), literal.ty())
    }

    /// The extent of an array in dimension `k`.
    pub fn dim(&mut self, array: ArrayId, k: usize) -> ValueId {
        let decl = self.program.array(array);
        if k >= decl.rank {
            let message = format!("`{}` has rank {}: there is no dimension {k}", decl.name, decl.rank);
            self.flaw("2", message);
            return self.literal(Literal::index(0));
        }
        self.value(Op::Dim(array, k as u8), Type::Index)
    }

    /// An operation on one value.
    pub fn unary(&mut self, op: Unary, a: ValueId) -> ValueId {
        let ty = self.ty(a);
        self.value(Op::Unary(op, a), ty)
    }

    /// An operation on two values of one type.
    pub fn binary(&mut self, op: Binary, a: ValueId, b: ValueId) -> ValueId {
        let ty = self.ty(a);
        self.value(Op::Binary(op, a, b), ty)
    }

    /// A comparison.
    pub fn compare(&mut self, op: Compare, a: ValueId, b: ValueId) -> ValueId {
        self.value(Op::Compare(op, a, b), Type::Bool)
    }

    /// `if c { a } else { b }`, both computed.
    pub fn select(&mut self, c: ValueId, a: ValueId, b: ValueId) -> ValueId {
        let ty = self.ty(a);
        self.value(Op::Select(c, a, b), ty)
    }

    /// `a * b + c`, rounded once.
    pub fn fma(&mut self, a: ValueId, b: ValueId, c: ValueId) -> ValueId {
        let ty = self.ty(a);
        self.value(Op::Fma(a, b, c), ty)
    }

    /// Rust's `as`.
    pub fn cast(&mut self, a: ValueId, ty: Type) -> ValueId {
        self.value(Op::Cast(a), ty)
    }

    /// An elementary function of one argument, or of two.
    pub fn math(&mut self, function: Function, args: &[ValueId]) -> ValueId {
        match *args {
            [a] | [a, _] if function.arity() != args.len() => {
                self.flaw("3", format!("`{}` takes {} arguments", function.name(), function.arity()));
                a
            }
            [a] => {
                let ty = self.ty(a);
                self.value(Op::Math(function, a, a), ty)
            }
            [a, b] => {
                let ty = self.ty(a);
                self.value(Op::Math(function, a, b), ty)
            }
            _ => {
                self.flaw("3", format!("`{}` takes {} arguments", function.name(), function.arity()));
                self.literal(Literal::from(0.0))
            }
        }
    }

    /// `assert!(condition, "text")`: a run error that has this text where the condition does not hold.
    ///
    /// It is the integer division of one by the condition, as a number, so that everything that knows how to keep, order and
    /// report a division by zero knows assertions too.
    pub fn assert(&mut self, condition: ValueId, text: impl Into<String>) {
        let one = self.literal(Literal::index(1));
        let number = self.cast(condition, Type::Index);
        let value = self.binary(Binary::Div, one, number);
        self.program.assertions.push(Assertion { value, text: text.into(), site: self.site.clone() });
    }

    /// A uniform random number of float type `ty` in [0, 1) from a seed and a counter, both `i64`.
    pub fn rand(&mut self, ty: Type, seed: ValueId, counter: ValueId) -> ValueId {
        self.value(Op::Rand(seed, counter), ty)
    }

    /// What a local variable holds now.
    pub fn get(&mut self, local: LocalId) -> ValueId {
        let ty = self.program.locals[local.index()].ty;
        self.value(Op::Get(local), ty)
    }

    /// An element of an array, as it is now.
    pub fn load(&mut self, array: ArrayId, index: &[ValueId]) -> ValueId {
        let ty = self.program.array(array).ty;
        match self.indices(array, index) {
            Some(index) => self.value(Op::Load(array, index), ty),
            None => self.literal(Literal::zero(ty)),
        }
    }

    pub(super) fn indices(&mut self, array: ArrayId, index: &[ValueId]) -> Option<Indices> {
        let decl = self.program.array(array);
        if decl.rank != index.len() {
            let message = format!(
                "`{}` has rank {}, but is indexed with {} indices",
                decl.name,
                decl.rank,
                index.len()
            );
            self.flaw("2", message);
            return None;
        }
        Indices::new(index)
    }
}
