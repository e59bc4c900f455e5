//! How many registers the numbers of an iteration need. Input: the body of a parallel loop; output: the most words of 32 bits
//! that floats take at any moment, in the order of the source.
//!
//! It is an estimate: compilers have an order of their own. Indices are left out, since few of them live for long.

use std::collections::BTreeMap;

use ebbtide_ir::{Block, LocalId, Op, Program, Stmt, Type, ValueId};

/// The most words that floats of an iteration take at a time.
pub(crate) fn words(program: &Program, body: &Block) -> usize {
    let mut spans = Spans { program, now: 0, of: BTreeMap::new() };
    spans.block(body);
    let mut change: BTreeMap<usize, isize> = BTreeMap::new();
    for (number, (first, last)) in &spans.of {
        let words = (number.ty(program).size() / 4) as isize;
        *change.entry(*first).or_default() += words;
        *change.entry(*last).or_default() -= words;
    }
    let (mut most, mut live) = (0, 0);
    for words in change.values() {
        live += words;
        most = most.max(live);
    }
    most as usize
}

/// What may be held in a register.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Number {
    Value(ValueId),
    Local(LocalId),
}

impl Number {
    fn ty(self, program: &Program) -> Type {
        match self {
            Number::Value(v) => program.ty(v),
            Number::Local(l) => program.locals[l.index()].ty,
        }
    }
}

/// From where to where each number is needed, in statements.
struct Spans<'p> {
    program: &'p Program,
    now: usize,
    of: BTreeMap<Number, (usize, usize)>,
}

impl Spans<'_> {
    fn block(&mut self, block: &Block) {
        for stmt in block {
            self.now += 1;
            for v in stmt.uses() {
                self.used(Number::Value(v));
            }
            match stmt {
                Stmt::Let(v) => self.computed(*v),
                Stmt::Declare(local, _) => self.begins(Number::Local(*local)),
                Stmt::Set(local, _) => self.used(Number::Local(*local)),
                _ => {}
            }
            let start = self.now;
            for inner in stmt.blocks() {
                self.block(inner);
            }
            if let Stmt::Loop(_) = stmt {
                // The next iteration needs again what this one found.
                let end = self.now;
                for (first, last) in self.of.values_mut() {
                    if *first < start && *last >= start {
                        *last = end;
                    }
                }
            }
        }
    }

    fn computed(&mut self, v: ValueId) {
        let op = self.program.op(v);
        for operand in op.operands() {
            self.used(Number::Value(operand));
        }
        match op {
            // A constant is part of the operation that uses it.
            Op::Literal(_) => return,
            Op::Get(local) => self.used(Number::Local(*local)),
            _ => {}
        }
        self.begins(Number::Value(v));
    }

    fn begins(&mut self, number: Number) {
        if number.ty(self.program).is_float() {
            self.of.insert(number, (self.now, self.now));
        }
    }

    fn used(&mut self, number: Number) {
        if let Some((_, last)) = self.of.get_mut(&number) {
            *last = self.now;
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
mod tests {
    use ebbtide_ir::{Access, Binary, Builder, Literal, walk};

    use super::*;

    /// `y[i] = x[i] + x[i] + …` of so many loads: all before the first sum, or each before its own.
    fn sums(ty: Type, loads: usize, at_once: bool) -> usize {
        let mut b = Builder::new("sums");
        let x = b.array("x", ty, 1, Access::Read);
        let y = b.array("y", ty, 1, Access::Write);
        let (zero, n) = (b.literal(Literal::index(0)), b.dim(y, 0));
        let i = b.begin_par(&[("i", zero, n)])[0];
        let mut terms: Vec<ValueId> = Vec::new();
        if at_once {
            terms.extend((0..loads).map(|_| b.load(x, &[i])));
        }
        let term = |b: &mut Builder, k: usize| terms.get(k).copied().unwrap_or_else(|| b.load(x, &[i]));
        let mut sum = term(&mut b, 0);
        for k in 1..loads {
            let next = term(&mut b, k);
            sum = b.binary(Binary::Add, sum, next);
        }
        b.store(y, &[i], sum);
        b.end_par();
        let program = b.finish().unwrap();
        let mut found = None;
        walk(&program.body, &mut |stmt| {
            if let Stmt::Par(par) = stmt {
                found = Some(words(&program, &par.body));
            }
        });
        found.unwrap()
    }

    #[test]
    fn numbers_that_live_at_a_time_are_counted() {
        assert_eq!(sums(Type::F32, 20, true), 20);
        assert_eq!(sums(Type::F64, 20, true), 40);
        assert!(sums(Type::F64, 20, false) <= 6);
    }
}
