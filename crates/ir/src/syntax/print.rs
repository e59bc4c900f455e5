//! The readable text form of a program, used in golden tests and case files and shown to users. [`parse`](super::parse)
//! reads it.
//!
//! A value without a name that is used once is printed where it is used, unless a write in between could make
//! that a lie; every other value is a `let`.

mod blocks;
mod expressions;
mod inline;
mod names;
mod statements;

use std::fmt;

use self::names::{Names, path};
use super::program::{Access, Block, Entered, Param, Program, Role, SwappedShapes};

pub(in crate::syntax) use self::names::{RESERVED, begins_name, continues_name};

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let inlined = inline::inlined(self);
        let names = Names::of(self, &inlined);
        let mut printer = Printer { program: self, text: String::new(), depth: 1, inlined, names };
        printer.block(&self.body);
        if self.swapped == SwappedShapes::Unknown {
            writeln!(f, "#[unknown_shapes]")?;
        }
        if self.entered == Entered::AtAnyLabel {
            writeln!(f, "#[entered_at_any_label]")?;
        }
        let params: Vec<String> = self.params.iter().map(|p| printer.param(*p)).collect();
        let driven = if self.driven { "driven " } else { "" };
        writeln!(f, "{driven}program {}({}) {{", path(&self.name), params.join(", "))?;
        f.write_str(&printer.text)?;
        f.write_str("}\n")
    }
}

struct Printer<'a> {
    program: &'a Program,
    text: String,
    depth: usize,
    inlined: Vec<bool>,
    names: Names,
}

impl Printer<'_> {
    fn param(&self, param: Param) -> String {
        match param {
            Param::Scalar(id) => {
                format!("{}: {}", self.names.scalar(id), self.program.scalars[id.index()].ty)
            }
            Param::Array(id) => {
                let a = self.program.array(id);
                let borrow = if a.role == Role::Param(Access::Write) { "&mut " } else { "&" };
                format!("{}: {borrow}Array{}<{}>", self.names.array(id), a.rank, a.ty)
            }
        }
    }

    fn line(&mut self, text: &str) {
        for _ in 0..self.depth {
            self.text.push_str("    ");
        }
        self.text.push_str(text);
        self.text.push('\n');
    }

    fn nested(&mut self, block: &Block) {
        self.depth += 1;
        self.block(block);
        self.depth -= 1;
    }

    // The depth of recursion is the depth of nesting in the source, not the size of any data.
    fn block(&mut self, block: &Block) {
        for stmt in block {
            self.stmt(stmt);
        }
    }
}
