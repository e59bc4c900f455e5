//! The head of a program: its attributes, its name and its parameters.

use super::lexer::Token;
use super::{Meaning, Parser, Result};
use crate::syntax::ids::{ArrayId, ScalarId};
use crate::syntax::op::Op;
use crate::syntax::program::{Access, ArrayDecl, Block, Entered, Param, Role, ScalarDecl, SwappedShapes};
use crate::syntax::types::Type;

impl Parser<'_> {
    /// The whole text.
    pub(super) fn program(&mut self) -> Result<()> {
        while self.take_if("#[") {
            if self.take_word_if("unknown_shapes") {
                self.program.swapped = SwappedShapes::Unknown;
            } else {
                self.expect_word("entered_at_any_label")?;
                self.program.entered = Entered::AtAnyLabel;
            }
            self.expect("]")?;
        }
        self.program.driven = self.take_word_if("driven");
        self.expect_word("program")?;
        self.program.name = self.path("the program")?;
        self.expect("(")?;
        self.blocks.push(Block::new());
        self.list(")", |p| p.parameter())?;
        self.expect("{")?;
        if let Some((_, at)) = self.statements()? {
            return self.error(at, "a `break` stands at the end of a loop, not here");
        }
        let line = self.prints.take();
        self.not_printed(line)?;
        self.expect("}")?;
        self.program.body = self.blocks.pop().unwrap_or_default();
        if *self.token() != Token::End {
            return self.expected("the end of the text");
        }
        Ok(())
    }

    /// `u: &mut Array1<f64>` or `n: usize`.
    fn parameter(&mut self) -> Result<()> {
        let at = self.at();
        let name = self.new_name("a parameter")?;
        if self.names.contains_key(&name) {
            return self.error(at, format!("two parameters are called `{name}`"));
        }
        self.expect(":")?;
        if !self.take_if("&") {
            let ty = self.ty()?;
            let id = ScalarId::from_index(self.program.scalars.len());
            self.program.scalars.push(ScalarDecl { name: name.clone(), ty });
            self.program.params.push(Param::Scalar(id));
            let value = self.value(Op::Scalar(id), ty, at);
            self.program.values[value.index()].name = Some(name.clone());
            self.names.insert(name, Meaning::Value(value));
            return Ok(());
        }
        let access = if self.take_word_if("mut") { Access::Write } else { Access::Read };
        let rank = self.array_type()?;
        self.expect("<")?;
        let ty = self.element_type()?;
        self.expect(">")?;
        let id = self.declare_array(ArrayDecl { name, ty, rank, role: Role::Param(access) });
        self.program.params.push(Param::Array(id));
        Ok(())
    }

    /// `Array2`: the rank.
    pub(super) fn array_type(&mut self) -> Result<usize> {
        let rank = match self.token() {
            Token::Name(name) => name.strip_prefix("Array").and_then(|rank| match rank {
                "0" | "1" | "2" | "3" | "4" | "5" | "6" => rank.parse().ok(),
                _ => None,
            }),
            _ => None,
        };
        match rank {
            Some(rank) => {
                self.next += 1;
                Ok(rank)
            }
            None => self.expected("`Array0` to `Array6`"),
        }
    }

    /// A type that arrays can hold.
    pub(super) fn element_type(&mut self) -> Result<Type> {
        let at = self.at();
        match self.ty()? {
            ty if ty.is_element() => Ok(ty),
            ty => self.error(at, format!("no array has elements of type `{ty}`")),
        }
    }

    pub(super) fn declare_array(&mut self, decl: ArrayDecl) -> ArrayId {
        let id = ArrayId::from_index(self.program.arrays.len());
        self.names.insert(decl.name.clone(), Meaning::Array(id));
        self.program.arrays.push(decl);
        id
    }
}
