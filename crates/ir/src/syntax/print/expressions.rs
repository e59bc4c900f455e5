//! Values in the printed form: operators with as few parentheses as their strengths need.

use super::Printer;
use crate::syntax::ids::{ArrayId, Indices, ValueId};
use crate::syntax::op::{Binary, Compare, Op, Unary};

/// Binding strengths of the printed operators, loosest first.
#[derive(Clone, Copy, PartialEq, PartialOrd)]
pub(super) enum Strength {
    Relation = 1,
    Bits,
    Shift,
    Sum,
    Product,
    Cast,
    Atom,
}

impl Printer<'_> {
    pub(super) fn element(&self, array: ArrayId, index: Indices) -> String {
        let name = self.names.array(array);
        let index: Vec<String> = index.as_slice().iter().map(|v| self.expr(*v)).collect();
        match index.as_slice() {
            [i] => format!("{name}[{i}]"),
            many => format!("{name}[[{}]]", many.join(", ")),
        }
    }

    pub(super) fn expr(&self, v: ValueId) -> String {
        self.within(v, Strength::Relation)
    }

    /// The text of a value inside an operator of strength `least`.
    fn within(&self, v: ValueId, least: Strength) -> String {
        if !self.inlined[v.index()] {
            return self.names.value(v).to_string();
        }
        let (text, strength) = self.op(v);
        if strength < least { format!("({text})") } else { text }
    }

    pub(super) fn op(&self, v: ValueId) -> (String, Strength) {
        use Strength::*;
        let p = self.program;
        let atom = |text: String| (text, Atom);
        match *p.op(v) {
            Op::Literal(l) => {
                let text = l.to_string();
                let strength = if text.starts_with('-') { Cast } else { Atom };
                (text, strength)
            }
            Op::Scalar(s) => atom(self.names.scalar(s).to_string()),
            Op::Dim(array, k) => match p.array(array).rank {
                1 => atom(format!("{}.len()", self.names.array(array))),
                _ => atom(format!("{}.dim({k})", self.names.array(array))),
            },
            Op::LoopVar => atom(self.names.value(v).to_string()),
            Op::Get(local) => atom(self.names.local(local).to_string()),
            Op::Load(array, index) => atom(self.element(array, index)),
            Op::Unary(op, a) => match op {
                // `-1.0` is the literal.
                Unary::Neg if p.literal(a).is_some() => (format!("-({})", self.expr(a)), Cast),
                Unary::Neg => (format!("-{}", self.within(a, Atom)), Cast),
                Unary::Not => (format!("!{}", self.within(a, Atom)), Cast),
                Unary::Abs => self.method("abs", a, &[]),
                Unary::Sqrt => self.method("sqrt", a, &[]),
                Unary::Norm => self.method("norm", a, &[]),
                Unary::Floor => self.method("floor", a, &[]),
                Unary::Ceil => self.method("ceil", a, &[]),
                Unary::Round => self.method("round", a, &[]),
                Unary::Trunc => self.method("trunc", a, &[]),
            },
            Op::Binary(op, a, b) => {
                let (sign, strength, right) = match op {
                    Binary::Add => ("+", Sum, Product),
                    Binary::Sub => ("-", Sum, Product),
                    Binary::Mul => ("*", Product, Cast),
                    Binary::Div => ("/", Product, Cast),
                    Binary::Rem => ("%", Product, Cast),
                    Binary::RemEuclid => return self.method("rem_euclid", a, &[b]),
                    Binary::And => ("&", Bits, Shift),
                    Binary::Or => ("|", Bits, Shift),
                    Binary::Xor => ("^", Bits, Shift),
                    Binary::Shl => ("<<", Shift, Sum),
                    Binary::Shr => (">>", Shift, Sum),
                    Binary::Min => return self.method("min", a, &[b]),
                    Binary::Max => return self.method("max", a, &[b]),
                };
                // Mixed bit operators read badly without parentheses.
                let left = if strength == Bits { Shift } else { strength };
                (format!("{} {sign} {}", self.within(a, left), self.within(b, right)), strength)
            }
            Op::Compare(op, a, b) => {
                let sign = match op {
                    Compare::Eq => "==",
                    Compare::Ne => "!=",
                    Compare::Lt => "<",
                    Compare::Le => "<=",
                    Compare::Gt => ">",
                    Compare::Ge => ">=",
                };
                (format!("{} {sign} {}", self.within(a, Bits), self.within(b, Bits)), Relation)
            }
            Op::Select(c, a, b) => {
                atom(format!("select({}, {}, {})", self.expr(c), self.expr(a), self.expr(b)))
            }
            Op::Fma(a, b, c) => self.method("mul_add", a, &[b, c]),
            Op::Cast(a) => (format!("{} as {}", self.within(a, Cast), p.ty(v)), Cast),
            Op::Math(f, a, b) => match f.arity() {
                2 => self.method(f.name(), a, &[b]),
                _ => self.method(f.name(), a, &[]),
            },
            Op::Rand(a, b) => atom(format!("rand::<{}>({}, {})", p.ty(v), self.expr(a), self.expr(b))),
        }
    }

    fn method(&self, name: &str, a: ValueId, rest: &[ValueId]) -> (String, Strength) {
        let rest: Vec<String> = rest.iter().map(|v| self.expr(*v)).collect();
        (format!("{}.{name}({})", self.within(a, Strength::Atom), rest.join(", ")), Strength::Atom)
    }
}
