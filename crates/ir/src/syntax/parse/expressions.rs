//! Values: what operators, methods, elements and literals give.
//!
//! Each value is computed in the block that is being read, operands first.

use super::lexer::{At, Token};
use super::{Meaning, Parser, Result};
use crate::syntax::function::Function;
use crate::syntax::ids::{ArrayId, Indices, ValueId};
use crate::syntax::op::{Binary, Compare, Op, Unary};
use crate::syntax::print::RESERVED;
use crate::syntax::types::{Literal, Type};

/// An operator between two values.
#[derive(Clone, Copy)]
enum Infix {
    Binary(Binary),
    Compare(Compare),
}

/// The operators and how strongly they bind.
const INFIX: [(&str, u32, Infix); 16] = [
    ("==", 1, Infix::Compare(Compare::Eq)),
    ("!=", 1, Infix::Compare(Compare::Ne)),
    ("<=", 1, Infix::Compare(Compare::Le)),
    (">=", 1, Infix::Compare(Compare::Ge)),
    ("<", 1, Infix::Compare(Compare::Lt)),
    (">", 1, Infix::Compare(Compare::Gt)),
    ("&", 2, Infix::Binary(Binary::And)),
    ("|", 2, Infix::Binary(Binary::Or)),
    ("^", 2, Infix::Binary(Binary::Xor)),
    ("<<", 3, Infix::Binary(Binary::Shl)),
    (">>", 3, Infix::Binary(Binary::Shr)),
    ("+", 4, Infix::Binary(Binary::Add)),
    ("-", 4, Infix::Binary(Binary::Sub)),
    ("*", 5, Infix::Binary(Binary::Mul)),
    ("/", 5, Infix::Binary(Binary::Div)),
    ("%", 5, Infix::Binary(Binary::Rem)),
];

/// Methods of one value, and of two.
const UNARY: [(&str, Unary); 7] = [
    ("abs", Unary::Abs),
    ("sqrt", Unary::Sqrt),
    ("norm", Unary::Norm),
    ("floor", Unary::Floor),
    ("ceil", Unary::Ceil),
    ("round", Unary::Round),
    ("trunc", Unary::Trunc),
];
const BINARY: [(&str, Binary); 3] =
    [("min", Binary::Min), ("max", Binary::Max), ("rem_euclid", Binary::RemEuclid)];

impl Parser<'_> {
    /// A value.
    pub(super) fn expr(&mut self) -> Result<ValueId> {
        self.nested(|p| p.infix(1))
    }

    /// Operators that bind at least this strongly.
    fn infix(&mut self, least: u32) -> Result<ValueId> {
        let mut left = self.cast()?;
        loop {
            let Token::Symbol(symbol) = *self.token() else { return Ok(left) };
            let Some((_, strength, infix)) =
                INFIX.iter().find(|(s, strength, _)| *s == symbol && *strength >= least)
            else {
                return Ok(left);
            };
            let at = self.at();
            self.next += 1;
            let right = self.nested(|p| p.infix(strength + 1))?;
            let ty = self.program.ty(left);
            left = match infix {
                Infix::Binary(op) => self.value(Op::Binary(*op, left, right), ty, at),
                Infix::Compare(op) => self.value(Op::Compare(*op, left, right), Type::Bool, at),
            };
        }
    }

    /// `x as f32`.
    fn cast(&mut self) -> Result<ValueId> {
        let mut v = self.prefix()?;
        while self.is_word("as") {
            let at = self.at();
            self.next += 1;
            let ty = self.ty()?;
            v = self.value(Op::Cast(v), ty, at);
        }
        Ok(v)
    }

    fn prefix(&mut self) -> Result<ValueId> {
        let at = self.at();
        let op = match self.token() {
            Token::Symbol("-") => Unary::Neg,
            Token::Symbol("!") => Unary::Not,
            _ => return self.postfix(),
        };
        self.next += 1;
        // The sign of `-1.0.abs()` belongs to what the method gives.
        if op == Unary::Neg
            && *self.ahead(1) != Token::Symbol(".")
            && let Some(literal) = self.literal(true)?
        {
            return Ok(self.value(Op::Literal(literal), literal.ty(), at));
        }
        let operand = self.nested(|p| p.prefix())?;
        let ty = self.program.ty(operand);
        Ok(self.value(Op::Unary(op, operand), ty, at))
    }

    /// A value and the methods called on it.
    fn postfix(&mut self) -> Result<ValueId> {
        let mut v = self.primary()?;
        while self.take_if(".") {
            let at = self.at();
            let Token::Name(name) = self.take() else {
                return self.error(at, "expected the name of a method");
            };
            self.expect("(")?;
            let arguments = self.list(")", |p| p.expr())?;
            v = self.method(&name, v, &arguments, at)?;
        }
        Ok(v)
    }

    fn method(&mut self, name: &str, v: ValueId, arguments: &[ValueId], at: At) -> Result<ValueId> {
        let unary = UNARY.iter().find(|(n, _)| *n == name);
        let binary = BINARY.iter().find(|(n, _)| *n == name);
        let function = Function::ALL.iter().find(|f| f.name() == name);
        let op = match (unary, binary, function, arguments) {
            (Some((_, op)), _, _, []) => Op::Unary(*op, v),
            (_, Some((_, op)), _, [b]) => Op::Binary(*op, v, *b),
            (_, _, Some(f), []) if f.arity() == 1 => Op::Math(*f, v, v),
            (_, _, Some(f), [b]) if f.arity() == 2 => Op::Math(*f, v, *b),
            (None, None, None, [b, c]) if name == "mul_add" => Op::Fma(v, *b, *c),
            _ => {
                let count = arguments.len();
                return self.error(at, format!("there is no method `{name}` of {count} arguments"));
            }
        };
        let ty = self.program.ty(v);
        Ok(self.value(op, ty, at))
    }

    fn primary(&mut self) -> Result<ValueId> {
        let at = self.at();
        if let Some(literal) = self.literal(false)? {
            return Ok(self.value(Op::Literal(literal), literal.ty(), at));
        }
        if self.take_if("(") {
            let v = self.expr()?;
            self.expect(")")?;
            return Ok(v);
        }
        match (self.token(), self.ahead(1)) {
            (Token::Name(name), Token::Symbol("(")) if name == "select" => {
                self.next += 2;
                let [c, a, b] = self.arguments("three", at)?;
                let ty = self.program.ty(a);
                Ok(self.value(Op::Select(c, a, b), ty, at))
            }
            (Token::Name(name), Token::Symbol("::")) if name == "rand" => {
                self.next += 2;
                self.expect("<")?;
                let ty = self.ty()?;
                self.expect(">")?;
                self.expect("(")?;
                let [a, b] = self.arguments("two", at)?;
                Ok(self.value(Op::Rand(a, b), ty, at))
            }
            (Token::Name(name), _) if RESERVED.contains(&name.as_str()) => self.expected("a value"),
            (Token::Name(_) | Token::Quoted(_), _) => self.named(),
            _ => self.expected("a value"),
        }
    }

    /// The arguments of a function that takes this number of them.
    fn arguments<const N: usize>(&mut self, number: &str, at: At) -> Result<[ValueId; N]> {
        let arguments = self.list(")", |p| p.expr())?;
        match <[ValueId; N]>::try_from(arguments) {
            Ok(arguments) => Ok(arguments),
            Err(found) => self.error(at, format!("expected {number} arguments, found {}", found.len())),
        }
    }

    /// What a name stands for: a value, a local variable, an element or extent of an array.
    fn named(&mut self) -> Result<ValueId> {
        let at = self.at();
        match self.meaning()? {
            Meaning::Value(v) => Ok(v),
            Meaning::Local(local) => {
                let ty = self.program.locals[local.index()].ty;
                Ok(self.value(Op::Get(local), ty, at))
            }
            Meaning::Array(array) if self.is("[") => {
                let index = self.index(array)?;
                let ty = self.program.array(array).ty;
                Ok(self.value(Op::Load(array, index), ty, at))
            }
            Meaning::Array(array) => {
                let k = self.extent(array)?;
                Ok(self.value(Op::Dim(array, k), Type::Index, at))
            }
        }
    }

    /// `.len()` or `.dim(k)`.
    fn extent(&mut self, array: ArrayId) -> Result<u8> {
        let rank = self.program.array(array).rank;
        if !self.take_if(".") {
            return self.expected("an index, `.len()` or `.dim(…)`");
        }
        let at = self.at();
        let k = if self.take_word_if("len") {
            self.expect("(")?;
            0
        } else {
            self.expect_word("dim")?;
            self.expect("(")?;
            self.count("the number of a dimension")?
        };
        self.expect(")")?;
        match u8::try_from(k) {
            Ok(k) if usize::from(k) < rank => Ok(k),
            _ => self.error(at, format!("an array of rank {rank} has no dimension {k}")),
        }
    }

    /// What the longest name that comes next means. A method that is called is no part of it.
    pub(super) fn meaning(&mut self) -> Result<Meaning> {
        let at = self.at();
        let (mut name, quoted) = match self.take() {
            Token::Name(name) => (name, false),
            Token::Quoted(name) => (name, true),
            other => return self.error(at, format!("expected a name, found {other}")),
        };
        let mut found = self.names.get(&name).map(|meaning| (*meaning, self.next));
        while !quoted && let Some((part, tokens)) = self.field() {
            if *self.ahead(tokens) == Token::Symbol("(") {
                break;
            }
            name = format!("{name}.{part}");
            self.next += tokens;
            found = self.names.get(&name).map(|meaning| (*meaning, self.next)).or(found);
        }
        match found {
            Some((meaning, next)) => {
                self.next = next;
                Ok(meaning)
            }
            None => self.error(at, format!("there is no `{name}` here")),
        }
    }

    /// `[i]`, `[[i, j]]` or `[[]]`.
    pub(super) fn index(&mut self, array: ArrayId) -> Result<Indices> {
        let (at, rank) = (self.at(), self.program.array(array).rank);
        self.expect("[")?;
        let values = if self.take_if("[") { self.list("]", |p| p.expr())? } else { vec![self.expr()?] };
        self.expect("]")?;
        match Indices::new(&values).filter(|_| values.len() == rank) {
            Some(index) => Ok(index),
            None => {
                self.error(at, format!("an array of rank {rank} has {rank} indices, not {}", values.len()))
            }
        }
    }

    pub(super) fn ty(&mut self) -> Result<Type> {
        let all = Type::ELEMENTS.into_iter().chain([Type::Index]);
        let named = |ty: &Type| self.is_word(ty.name());
        match all.into_iter().find(named) {
            Some(ty) => {
                self.next += 1;
                Ok(ty)
            }
            None => self.expected("a type"),
        }
    }

    /// A literal, where one comes next.
    fn literal(&mut self, negative: bool) -> Result<Option<Literal>> {
        let at = self.at();
        let literal = match self.token() {
            Token::Number(text) => match number(text, negative) {
                Some(literal) => literal,
                None => return self.error(at, format!("`{text}` is no number of a type that programs have")),
            },
            Token::Name(name) => {
                let sign = if negative { -1.0 } else { 1.0 };
                match (name.as_str(), self.ahead(1)) {
                    ("true", _) if !negative => Literal::from(true),
                    ("false", _) if !negative => Literal::from(false),
                    ("inf", _) => Literal::from(sign * f64::INFINITY),
                    ("inff32", _) => Literal::of(Type::F32, sign * f64::INFINITY),
                    ("NaN", _) if !negative => Literal::from(f64::NAN),
                    ("NaNf32", _) if !negative => Literal::from(f32::NAN),
                    ("f32" | "f64", Token::Symbol("::")) if !negative => return self.bits().map(Some),
                    _ => return Ok(None),
                }
            }
            _ => return Ok(None),
        };
        self.next += 1;
        Ok(Some(literal))
    }

    /// `f64::from_bits(9221120237041090561)`.
    fn bits(&mut self) -> Result<Literal> {
        let ty = self.ty()?;
        self.expect("::")?;
        self.expect_word("from_bits")?;
        self.expect("(")?;
        let bits = self.count("the bits of a number")?;
        self.expect(")")?;
        Ok(Literal::from_bits(ty, bits))
    }
}

/// The literal that a number is: its type follows from its suffix, or from whether it has a point or an exponent.
fn number(text: &str, negative: bool) -> Option<Literal> {
    let sign = if negative { "-" } else { "" };
    let suffixed = |suffix: &str| text.strip_suffix(suffix).map(|digits| format!("{sign}{digits}"));
    if let Some(digits) = suffixed("f32") {
        return digits.parse::<f32>().ok().map(Literal::from);
    }
    if let Some(digits) = suffixed("i32") {
        return digits.parse::<i32>().ok().map(Literal::from);
    }
    if let Some(digits) = suffixed("i64") {
        return digits.parse::<i64>().ok().map(Literal::from);
    }
    if let Some(digits) = suffixed("u32") {
        return digits.parse::<u32>().ok().map(Literal::from);
    }
    let digits = format!("{sign}{text}");
    match text.contains(['.', 'e']) {
        true => digits.parse::<f64>().ok().map(Literal::from),
        false => digits.parse::<i64>().ok().map(Literal::index),
    }
}
