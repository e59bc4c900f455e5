//! Statements without blocks in the printed form, and branches.

use super::Printer;
use super::names::{quoted, spelled};
use crate::syntax::ids::ValueId;
use crate::syntax::op::{Binary, Combine, Op};
use crate::syntax::program::*;
use crate::syntax::types::{Literal, Type};

impl Printer<'_> {
    pub(super) fn stmt(&mut self, stmt: &Stmt) {
        match stmt {
            Stmt::Let(v) => self.value(*v),
            Stmt::If(branch) => self.branch(branch),
            Stmt::Loop(l) => self.sequential(l),
            Stmt::Par(par) => self.parallel(par),
            Stmt::Region(region) => self.region(region),
            Stmt::Call(call) => self.call(call),
            Stmt::Forward(f) => self.forward(f),
            Stmt::Backward(b) => {
                self.line(&format!("backward loop {} {{", b.id.0));
                self.nested(&b.reverse);
                self.line("}");
            }
            simple => {
                let text = self.simple(simple);
                self.line(&format!("{text};"));
            }
        }
    }

    fn value(&mut self, v: ValueId) {
        if self.inlined[v.index()] || matches!(self.program.op(v), Op::Scalar(_)) {
            return;
        }
        let text = match self.assertion(v) {
            Some(assertion) => assertion,
            None => format!("let {} = {};", self.names.value(v), self.op(v).0),
        };
        self.line(&text);
    }

    /// The assertion that a division is, where it is nothing else.
    fn assertion(&self, v: ValueId) -> Option<String> {
        let p = self.program;
        let texts = p.assertion_texts(&p.value(v).site);
        let Op::Binary(Binary::Div, one, number) = *p.op(v) else { return None };
        let Op::Cast(condition) = *p.op(number) else { return None };
        let is_assertion = !texts.is_empty()
            && p.value(v).name.is_none()
            && p.literal(one) == Some(Literal::index(1))
            && p.ty(condition) == Type::Bool
            && self.inlined[number.index()];
        let texts: Vec<String> = texts.into_iter().map(|text| format!(", {text:?}")).collect();
        is_assertion.then(|| format!("assert!({}{});", self.expr(condition), texts.concat()))
    }

    /// A statement without blocks, without its semicolon.
    fn simple(&self, stmt: &Stmt) -> String {
        let names = &self.names;
        match stmt {
            Stmt::Declare(local, v) => format!("let mut {} = {}", names.local(*local), self.expr(*v)),
            Stmt::Set(local, v) => format!("{} = {}", names.local(*local), self.expr(*v)),
            Stmt::Store(s) => format!("{} = {}", self.element(s.array, s.index), self.expr(s.value)),
            Stmt::Update(combine, s) => {
                let (element, value) = (self.element(s.array, s.index), self.expr(s.value));
                match combine {
                    Combine::Add => format!("{element} += {value}"),
                    Combine::Min => format!("{element}.min_assign({value})"),
                    Combine::Max => format!("{element}.max_assign({value})"),
                }
            }
            Stmt::Claim(claim) => {
                format!("claim({}, {})", self.element(claim.array, claim.index), names.array(claim.taken))
            }
            Stmt::Swap(a, b) => format!("swap({}, {})", names.array(*a), names.array(*b)),
            Stmt::Fill(a, v, _) => format!("fill({}, {})", names.array(*a), self.expr(*v)),
            Stmt::Copy { from, to, .. } => format!("copy({}, {})", names.array(*from), names.array(*to)),
            Stmt::Library(call) => self.library(call),
            Stmt::Push(push) => match push.after {
                After::Same => format!("push({})", names.array(push.array)),
                After::Anything(old) => {
                    format!("let {} = push({})", names.array(old), names.array(push.array))
                }
            },
            Stmt::Pop(a) => format!("pop({})", names.array(*a)),
            Stmt::Host(region, again) => {
                let what = match again {
                    Again::Shapes => "take back the shapes that the host changed",
                    Again::Change => "change what the host changed",
                    Again::Undo => "undo what the host changed",
                };
                format!("{what} at region {}", region.0)
            }
            Stmt::Temp(id) => {
                let a = self.program.array(*id);
                let holding = if self.program.undefined.contains(id) { "undefined" } else { "zeros" };
                let made = match &a.role {
                    Role::Temp(shape) => {
                        let shape: Vec<String> = shape.iter().map(|v| self.expr(*v)).collect();
                        format!("{holding}([{}])", shape.join(", "))
                    }
                    Role::Tape(top) => format!("tape({})", names.array(*top)),
                    Role::Param(_) | Role::Old(_) => String::new(),
                };
                let (name, rank, ty) = (names.array(*id), a.rank, a.ty);
                format!("let mut {name} = Array{rank}::<{ty}>::{made}")
            }
            Stmt::Let(_)
            | Stmt::If(_)
            | Stmt::Loop(_)
            | Stmt::Par(_)
            | Stmt::Region(_)
            | Stmt::Call(_)
            | Stmt::Forward(_)
            | Stmt::Backward(_) => String::new(),
        }
    }

    /// `matmul(a, b, c)`, `add_matmul(d, transposed(b), e)`, `blur(x, &mut y, 3)`.
    fn library(&self, call: &LibraryCall) -> String {
        if let Some(operation) = self.program.operation(call) {
            let name = &operation.name;
            let name = if LIBRARY.contains(&name.as_str()) { quoted(name) } else { spelled(name) };
            return format!("{name}({})", self.bound(&call.arguments).join(", "));
        }
        let mut names: Vec<String> = call.arrays().map(|a| self.names.array(a).to_string()).collect();
        if let LibraryOp::Matmul { left, right, .. } = call.op {
            for (name, layout) in names.iter_mut().zip([left, right]) {
                if layout == Layout::Transposed {
                    *name = format!("transposed({name})");
                }
            }
        }
        format!("{}({})", call.op.spelled(), names.join(", "))
    }

    /// Arguments of a call, those that it writes as `&mut`.
    pub(super) fn bound(&self, arguments: &[Bound]) -> Vec<String> {
        let one = |bound: &Bound| match *bound {
            Bound::Array(a, Access::Read) => self.names.array(a).to_string(),
            Bound::Array(a, Access::Write) => format!("&mut {}", self.names.array(a)),
            Bound::Scalar(v) => self.expr(v),
        };
        arguments.iter().map(one).collect()
    }

    fn branch(&mut self, branch: &Branch) {
        self.line(&format!("if {} {{", self.expr(branch.condition)));
        self.nested(&branch.then);
        if let Some(print) = self.program.print(branch) {
            let text = format!("    {}", self.print(print));
            self.line(&text);
        }
        let before = self.text.len();
        self.line("} else {");
        let nothing = self.text.len();
        self.nested(&branch.otherwise);
        // Values that stand where they are used leave no line.
        if self.text.len() == nothing {
            self.text.truncate(before);
        }
        self.line("}");
    }

    /// `println!("residual {:8.3e}", r);`
    fn print(&self, print: &Print) -> String {
        let (mut format, mut values) = (String::new(), String::new());
        for piece in &print.pieces {
            match piece {
                Piece::Text(text) => format += &text.replace('{', "{{").replace('}', "}}"),
                Piece::Value(components, how) => {
                    format += &how.to_string();
                    let components: Vec<String> = components.iter().map(|v| self.expr(*v)).collect();
                    match components.as_slice() {
                        [one] => values += &format!(", {one}"),
                        several => values += &format!(", ({})", several.join(", ")),
                    }
                }
            }
        }
        let name = match print.stream {
            Stream::Out => "println",
            Stream::Error => "eprintln",
        };
        format!("{name}!({format:?}{values});")
    }
}

/// Statements that are written as calls: a custom operation with such a name stands between backquotes.
const LIBRARY: [&str; 13] = [
    "swap",
    "fill",
    "copy",
    "push",
    "pop",
    "claim",
    "matmul",
    "add_matmul",
    "scan",
    "add_scan",
    "scan_back",
    "add_scan_back",
    "compact",
];
