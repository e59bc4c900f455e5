//! Statements without blocks, and the order of statements.

use super::lexer::{At, Token};
use super::lines::Line;
use super::{Meaning, Parser, Result};
use crate::syntax::ids::{ArrayId, LocalId, ValueId, WriteId};
use crate::syntax::op::{Binary, Combine, Op};
use crate::syntax::program::*;
use crate::syntax::types::{Literal, Type};

/// What was read between two braces.
pub(super) struct Inner {
    pub block: Block,
    /// The condition of `if … { break; }`, which closes it.
    pub until: Option<(ValueId, At)>,
    /// The line that it prints.
    pub line: Option<Line>,
}

impl Parser<'_> {
    /// Statements up to a brace, the end of the text, or the name of a part (`record:`); gives the condition of a last `break`.
    pub(super) fn statements(&mut self) -> Result<Option<(ValueId, At)>> {
        while !self.is("}") && *self.token() != Token::End {
            if matches!(self.token(), Token::Name(_)) && *self.ahead(1) == Token::Symbol(":") {
                break;
            }
            if let Some(until) = self.statement()? {
                if !self.is("}") {
                    return self.expected("`}`: a `break` is the last statement of a loop");
                }
                return Ok(Some(until));
            }
        }
        Ok(None)
    }

    /// Runs `read` in a block of its own, which ends with what it declares.
    pub(super) fn in_block<T>(&mut self, read: impl FnOnce(&mut Self) -> Result<T>) -> Result<(Block, T)> {
        self.blocks.push(Block::new());
        self.alive.push(Default::default());
        let result = self.nested(read);
        self.alive.pop();
        let block = self.blocks.pop().unwrap_or_default();
        Ok((block, result?))
    }

    /// `{ … }`.
    pub(super) fn braces(&mut self) -> Result<Inner> {
        self.expect("{")?;
        let outer = self.prints.take();
        let (block, until) = self.in_block(|p| p.statements())?;
        let line = std::mem::replace(&mut self.prints, outer);
        self.expect("}")?;
        Ok(Inner { block, until, line })
    }

    /// `{ … }`, where it is no loop and prints nothing.
    pub(super) fn plain_braces(&mut self) -> Result<Block> {
        let inner = self.braces()?;
        self.not_printed(inner.line)?;
        match inner.until {
            Some((_, at)) => self.error(at, "a `break` stands at the end of a loop, not here"),
            None => Ok(inner.block),
        }
    }

    /// One statement; if it is `if … { break; }`, only its condition is computed.
    pub(super) fn statement(&mut self) -> Result<Option<(ValueId, At)>> {
        let word = match self.token() {
            Token::Name(word) => word.clone(),
            Token::Quoted(_) => String::new(),
            Token::Symbol("#[") => return self.attributed().map(|()| None),
            Token::Symbol("/*") => return self.call().map(|()| None),
            _ => return self.expected("a statement"),
        };
        match (word.as_str(), self.ahead(1)) {
            ("if", _) => return self.branch(),
            ("for" | "while" | "loop", _) => self.looped(Default::default())?,
            ("forward", Token::Name(_)) => self.forward(None)?,
            ("backward", Token::Name(_)) => self.backward()?,
            ("let", _) => self.declaration()?,
            ("take" | "change" | "undo", Token::Name(_)) => self.host()?,
            ("assert", Token::Symbol("!")) => self.assertion()?,
            ("println" | "eprintln", Token::Symbol("!")) => self.print_line()?,
            (_, Token::Symbol("(")) => self.called()?,
            _ => self.assignment()?,
        }
        Ok(None)
    }

    fn declaration(&mut self) -> Result<()> {
        self.expect_word("let")?;
        let at = self.at();
        if self.take_word_if("mut") {
            let name = self.new_name("a variable")?;
            self.expect("=")?;
            let array = matches!(self.token(), Token::Name(n) if n.starts_with("Array"));
            return match array && *self.ahead(1) == Token::Symbol("::") {
                true => self.temporary(name),
                false => self.local(name, at),
            };
        }
        let name = self.new_name("a value")?;
        self.expect("=")?;
        if self.is_word("push") && *self.ahead(1) == Token::Symbol("(") {
            self.next += 2;
            let array = self.array()?;
            self.expect(")")?;
            let old = self.old(name, array);
            self.push(Stmt::Push(Push { array, after: After::Anything(old) }));
            return self.expect(";");
        }
        let before = self.program.values.len();
        let v = self.expr()?;
        if v.index() >= before {
            self.program.values[v.index()].name = Some(name.clone());
        }
        self.names.insert(name, Meaning::Value(v));
        self.expect(";")
    }

    /// `Array1::<f64>::zeros([n])`. A temporary that is declared again in the same words is the same.
    fn temporary(&mut self, name: String) -> Result<()> {
        let start = self.next;
        let rank = self.array_type()?;
        self.expect("::")?;
        self.expect("<")?;
        let ty = self.element_type()?;
        self.expect(">")?;
        self.expect("::")?;
        if rank == 1 && self.take_word_if("tape") {
            self.expect("(")?;
            let top = self.array()?;
            self.expect(")")?;
            let id = self.declare_array(ArrayDecl { name, ty, rank, role: Role::Tape(top) });
            self.program.undefined.insert(id);
            self.push(Stmt::Temp(id));
            return self.expect(";");
        }
        let undefined = self.take_word_if("undefined");
        if !undefined {
            self.expect_word("zeros")?;
        }
        self.expect("(")?;
        self.expect("[")?;
        let at = self.at();
        let (values, statements) = (self.program.values.len(), self.blocks.last().map_or(0, Vec::len));
        let shape = self.list("]", |p| p.expr())?;
        if shape.len() != rank {
            return self
                .error(at, format!("an array of rank {rank} has {rank} extents, not {}", shape.len()));
        }
        self.expect(")")?;
        let words: Vec<Token> =
            self.tokens[start..self.next].iter().map(|(token, _)| token.clone()).collect();
        let known = match self.names.get(&name) {
            Some(Meaning::Array(known)) if self.shapes.get(known) == Some(&words) => Some(*known),
            _ => None,
        };
        let id = match known {
            Some(known) => {
                self.program.values.truncate(values);
                if let Some(block) = self.blocks.last_mut() {
                    block.truncate(statements);
                }
                known
            }
            None => self.declare_array(ArrayDecl { name, ty, rank, role: Role::Temp(shape) }),
        };
        self.shapes.insert(id, words);
        self.program.undefined.extend(undefined.then_some(id));
        self.push(Stmt::Temp(id));
        self.expect(";")
    }

    /// The name of what an array held before it was pushed.
    fn old(&mut self, name: String, array: ArrayId) -> ArrayId {
        if let Some(Meaning::Array(known)) = self.names.get(&name)
            && self.program.array(*known).role == Role::Old(array)
        {
            return *known;
        }
        let (ty, rank) = (self.program.array(array).ty, self.program.array(array).rank);
        self.declare_array(ArrayDecl { name, ty, rank, role: Role::Old(array) })
    }

    fn local(&mut self, name: String, at: At) -> Result<()> {
        let v = self.expr()?;
        let local = self.declare_local(name, self.program.ty(v), at)?;
        if let Some(alive) = self.alive.last_mut() {
            alive.insert(local);
        }
        self.push(Stmt::Declare(local, v));
        self.expect(";")
    }

    /// The name of a variable that is declared.
    pub(super) fn known_local(&mut self) -> Result<LocalId> {
        let at = self.at();
        match self.meaning()? {
            Meaning::Local(local) => Ok(local),
            _ => self.error(at, "expected a variable"),
        }
    }

    /// A local variable. One of another block with its name and type, which has ended, is the same.
    pub(super) fn declare_local(&mut self, name: String, ty: Type, at: At) -> Result<LocalId> {
        if let Some(Meaning::Local(known)) = self.names.get(&name) {
            if self.alive.iter().any(|alive| alive.contains(known)) {
                return self
                    .error(at, format!("there is a variable `{name}` here already: take another name"));
            }
            if self.program.locals[known.index()].ty == ty {
                return Ok(*known);
            }
        }
        let local = LocalId::from_index(self.program.locals.len());
        self.program.locals.push(LocalDecl { name: name.clone(), ty });
        self.names.insert(name, Meaning::Local(local));
        Ok(local)
    }

    /// `x = …;`, `a[i] = …;`, `a[i] += …;`, `a[i].min_assign(…);`
    fn assignment(&mut self) -> Result<()> {
        let at = self.at();
        let array = match self.meaning()? {
            Meaning::Local(local) => {
                self.expect("=")?;
                let v = self.expr()?;
                self.push(Stmt::Set(local, v));
                return self.expect(";");
            }
            Meaning::Value(_) => return self.error(at, "expected a statement: a value is not assigned to"),
            Meaning::Array(array) => array,
        };
        let (index, site) = (self.index(array)?, self.site(at));
        let combine = if self.take_if("=") {
            None
        } else if self.take_if("+=") {
            Some(Combine::Add)
        } else if self.take_if(".") {
            let combine = if self.take_word_if("min_assign") {
                Combine::Min
            } else {
                self.expect_word("max_assign")?;
                Combine::Max
            };
            self.expect("(")?;
            Some(combine)
        } else {
            return self.expected("`=`, `+=`, `.min_assign` or `.max_assign`");
        };
        let value = self.expr()?;
        if matches!(combine, Some(Combine::Min | Combine::Max)) {
            self.expect(")")?;
        }
        let store = Store { array, index, value, site, id: WriteId::UNNUMBERED };
        self.push(match combine {
            Some(combine) => Stmt::Update(combine, store),
            None => Stmt::Store(store),
        });
        self.expect(";")
    }

    /// `assert!(condition, "text");`: the division that fails where the condition does not hold.
    fn assertion(&mut self) -> Result<()> {
        let at = self.at();
        self.next += 2;
        self.expect("(")?;
        let condition = self.expr()?;
        let one = self.value(Op::Literal(Literal::index(1)), Type::Index, at);
        let number = self.value(Op::Cast(condition), Type::Index, at);
        let value = self.value(Op::Binary(Binary::Div, one, number), Type::Index, at);
        while !self.take_if(")") {
            self.expect(",")?;
            let Token::Text(text) = self.token().clone() else {
                return self.expected("a text in quotation marks");
            };
            self.next += 1;
            let site = self.site(at);
            self.program.assertions.push(Assertion { value, text, site });
        }
        self.expect(";")
    }
}
