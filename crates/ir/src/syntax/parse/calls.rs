//! Statements that are written as calls: library and custom operations, and programs that are called.

use super::lexer::Token;
use super::{Parser, Result};
use crate::syntax::ids::{ArrayId, OperationId, WriteId};
use crate::syntax::program::*;

impl Parser<'_> {
    /// `name(…);`
    pub(super) fn called(&mut self) -> Result<()> {
        let (at, site) = (self.at(), self.site(self.at()));
        let name = match self.take() {
            Token::Name(name) => name,
            Token::Quoted(name) => {
                self.next += 1;
                return self.operation(&name);
            }
            other => return self.error(at, format!("expected a name, found {other}")),
        };
        self.expect("(")?;
        let into = if name.starts_with("add_") { Assign::Add } else { Assign::Replace };
        let (op, reads) = match name.as_str() {
            "swap" => {
                let (a, b) = self.pair()?;
                return self.end_call(Stmt::Swap(a, b));
            }
            "copy" => {
                let (from, to) = self.pair()?;
                return self.end_call(Stmt::Copy { from, to, id: WriteId::UNNUMBERED });
            }
            "fill" => {
                let array = self.array()?;
                self.expect(",")?;
                let value = self.expr()?;
                return self.end_call(Stmt::Fill(array, value, WriteId::UNNUMBERED));
            }
            "push" => {
                let array = self.array()?;
                return self.end_call(Stmt::Push(Push { array, after: After::Same }));
            }
            "pop" => {
                let array = self.array()?;
                return self.end_call(Stmt::Pop(array));
            }
            "claim" => {
                let array = self.array()?;
                let index = self.index(array)?;
                self.expect(",")?;
                let taken = self.array()?;
                return self.end_call(Stmt::Claim(Claim { array, taken, index, site }));
            }
            "matmul" | "add_matmul" => {
                let (left, a) = self.factor()?;
                self.expect(",")?;
                let (right, b) = self.factor()?;
                self.expect(",")?;
                (LibraryOp::Matmul { left, right, into }, vec![a, b])
            }
            "scan" | "add_scan" | "scan_back" | "add_scan_back" => {
                let way = if name.ends_with("_back") { Way::Back } else { Way::Forth };
                let x = self.array()?;
                self.expect(",")?;
                (LibraryOp::Scan { way, into }, vec![x])
            }
            "compact" => {
                let flags = self.array()?;
                self.expect(",")?;
                (LibraryOp::Compact, vec![flags])
            }
            _ => return self.operation(&name),
        };
        let mut writes = vec![self.array()?];
        while self.take_if(",") {
            writes.push(self.array()?);
        }
        self.end_call(Stmt::Library(LibraryCall { op, reads, writes, arguments: Vec::new(), site }))
    }

    fn end_call(&mut self, stmt: Stmt) -> Result<()> {
        self.expect(")")?;
        self.push(stmt);
        self.expect(";")
    }

    fn pair(&mut self) -> Result<(ArrayId, ArrayId)> {
        let first = self.array()?;
        self.expect(",")?;
        Ok((first, self.array()?))
    }

    /// `a` or `transposed(a)`.
    fn factor(&mut self) -> Result<(Layout, ArrayId)> {
        if self.is_word("transposed") && *self.ahead(1) == Token::Symbol("(") {
            self.next += 2;
            let array = self.array()?;
            self.expect(")")?;
            return Ok((Layout::Transposed, array));
        }
        Ok((Layout::Plain, self.array()?))
    }

    /// A custom operation, whose parenthesis is open.
    fn operation(&mut self, name: &str) -> Result<()> {
        let at = self.at();
        let Some(operation) = self.outside.operations.get(name).cloned() else {
            return self
                .error(at, format!("there is no operation `{name}` of the host: give it to `parse_with`"));
        };
        let site = self.site(at);
        let arguments = self.bound()?;
        let arrays = |wanted: Access| {
            let of = |bound: &Bound| match *bound {
                Bound::Array(array, access) if access == wanted => Some(array),
                _ => None,
            };
            arguments.iter().filter_map(of).collect()
        };
        let (reads, writes) = (arrays(Access::Read), arrays(Access::Write));
        let known = self.program.operations.iter().position(|o| o.name == name);
        let id = known.unwrap_or_else(|| {
            self.program.operations.push(operation);
            self.program.operations.len() - 1
        });
        let op = LibraryOp::Custom(OperationId::from_index(id));
        self.push(Stmt::Library(LibraryCall { op, reads, writes, arguments, site }));
        self.expect(";")
    }

    /// Arguments up to the closing parenthesis: `&mut` arrays are written, others are read.
    fn bound(&mut self) -> Result<Vec<Bound>> {
        self.list(")", |p| {
            if p.take_if("&") {
                p.expect_word("mut")?;
                return Ok(Bound::Array(p.array()?, Access::Write));
            }
            let start = p.next;
            if let Ok(array) = p.array()
                && (p.is(",") || p.is(")"))
            {
                return Ok(Bound::Array(array, Access::Read));
            }
            p.next = start;
            Ok(Bound::Scalar(p.expr()?))
        })
    }

    /// `/* name(a, &mut b), adjoint = rule */ { … }`.
    pub(super) fn call(&mut self) -> Result<()> {
        self.expect("/*")?;
        let name = self.path("the called program")?;
        let mut ruled = None;
        if self.take_if("(") {
            let arguments = self.bound()?;
            ruled = Some(Ruled { arguments, rules: self.rules()? });
        }
        self.expect("*/")?;
        let body = self.plain_braces()?;
        self.push(Stmt::Call(Call { name, body, ruled }));
        Ok(())
    }

    fn rules(&mut self) -> Result<Rules> {
        let mut rules = Rules::none();
        while self.take_if(",") {
            if self.take_word_if("saved") {
                self.expect("=")?;
                self.expect("[")?;
                let positions = self.list("]", |p| p.count("the position of an argument"))?;
                rules.saved = Saved::at(positions.into_iter().filter_map(|k| usize::try_from(k).ok()));
                continue;
            }
            let adjoint = self.take_word_if("adjoint");
            if !adjoint {
                self.expect_word("tangent")?;
            }
            self.expect("=")?;
            let at = self.at();
            let name = self.path("a program")?;
            let Some(rule) = self.outside.rules.get(name.as_str()).copied() else {
                return self.error(at, format!("there is no derivative `{name}`: give it to `parse_with`"));
            };
            match adjoint {
                true => rules.adjoint = Some(rule),
                false => rules.tangent = Some(rule),
            }
        }
        Ok(rules)
    }
}
