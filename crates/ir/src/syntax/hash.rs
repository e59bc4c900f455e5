//! The hash of a program: over what it means, not over the file and line where it stands.

use std::fmt;

use super::ids::*;
use super::numbering::Numbering;
use super::op::*;
use super::program::*;

/// The hash of a program. Equal programs have equal hashes, in every process and on every machine.
///
/// Labels count, since they are how the host speaks of places. The other names, and places in the source, do not. Values have
/// their canonical numbers ([`Program::numbering`]): neither the order in which they were made counts, nor that of
/// neighbouring `let`s that cannot fail, nor values on which nothing depends.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ProgramHash([u8; 32]);

impl fmt::Display for ProgramHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for ProgramHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ProgramHash({self})")
    }
}

impl Program {
    /// The hash of this program.
    ///
    /// ```
    /// use ebbtide_ir::{Access, Builder, Literal, Type};
    ///
    /// let program = |name: &str, x: f64| {
    ///     let mut b = Builder::new(name);
    ///     let a = b.array("a", Type::F64, 0, Access::Write);
    ///     let x = b.literal(Literal::from(x));
    ///     b.store(a, &[], x);
    ///     b.finish()
    /// };
    /// assert_eq!(program("p", 1.0)?.hash(), program("renamed", 1.0)?.hash());
    /// assert_ne!(program("p", 1.0)?.hash(), program("p", 2.0)?.hash());
    /// # Ok::<(), ebbtide_ir::Error>(())
    /// ```
    pub fn hash(&self) -> ProgramHash {
        let mut w = Writer { program: self, numbering: self.numbering(), hasher: blake3::Hasher::new() };
        w.text("ebbtide program 2");
        w.number(u64::from(crate::LAWS));
        w.declarations();
        if self.swapped == SwappedShapes::Unknown {
            w.variant(self.swapped);
        }
        for (a, b) in &self.alike {
            w.number(a.index() as u64);
            w.number(b.index() as u64);
        }
        w.block(&self.body);
        ProgramHash(*w.hasher.finalize().as_bytes())
    }
}

struct Writer<'p> {
    program: &'p Program,
    numbering: Numbering,
    hasher: blake3::Hasher,
}

impl Writer<'_> {
    fn number(&mut self, n: u64) {
        self.hasher.update(&n.to_le_bytes());
    }

    fn text(&mut self, text: &str) {
        self.number(text.len() as u64);
        self.hasher.update(text.as_bytes());
    }

    /// A variant without fields, by its name.
    fn variant(&mut self, variant: impl fmt::Debug) {
        self.text(&format!("{variant:?}"));
    }

    fn list(&mut self, ids: impl ExactSizeIterator<Item = usize>) {
        self.number(ids.len() as u64);
        ids.for_each(|id| self.number(id as u64));
    }

    /// The canonical number of a value. All that is written here has one.
    fn value(&self, value: ValueId) -> usize {
        self.numbering.number(value).unwrap_or(u32::MAX as usize)
    }

    fn values(&mut self, values: &[ValueId]) {
        let numbers: Vec<usize> = values.iter().map(|v| self.value(*v)).collect();
        self.list(numbers.into_iter());
    }

    fn option(&mut self, id: Option<usize>) {
        self.number(id.map_or(0, |id| id as u64 + 1));
    }

    fn declarations(&mut self) {
        let p = self.program;
        self.number(p.params.len() as u64);
        for param in &p.params {
            match param {
                Param::Array(a) => self.list([0, a.index()].into_iter()),
                Param::Scalar(s) => self.list([1, s.index()].into_iter()),
            }
        }
        self.number(p.arrays.len() as u64);
        for array in &p.arrays {
            self.variant(array.ty);
            self.number(array.rank as u64);
            match &array.role {
                Role::Param(access) => self.variant(access),
                Role::Temp(shape) => {
                    self.text("temp");
                    self.values(shape);
                }
                Role::Old(a) => {
                    self.text("old");
                    self.number(a.index() as u64);
                }
                Role::Tape(top) => {
                    self.text("tape");
                    self.number(top.index() as u64);
                }
            }
        }
        self.number(p.scalars.len() as u64);
        p.scalars.iter().for_each(|scalar| self.variant(scalar.ty));
        self.number(p.locals.len() as u64);
        p.locals.iter().for_each(|local| self.variant(local.ty));
        self.number(p.labels.len() as u64);
        for label in &p.labels {
            self.text(&label.family);
            self.text(&label.variant);
        }
        let values = self.numbering.values().to_vec();
        self.number(values.len() as u64);
        for v in values {
            self.variant(p.ty(v));
            self.operation(p.op(v));
        }
    }

    fn operation(&mut self, op: &Op) {
        match *op {
            Op::Literal(literal) => {
                self.text("literal");
                self.number(literal.bits());
            }
            Op::Scalar(s) => self.tagged("scalar", s.index()),
            Op::Dim(array, k) => {
                self.tagged("dim", array.index());
                self.number(u64::from(k));
            }
            Op::LoopVar => self.text("loop variable"),
            Op::Get(local) => self.tagged("get", local.index()),
            Op::Unary(op, _) => self.variant(op),
            Op::Binary(op, ..) => self.variant(op),
            Op::Compare(op, ..) => self.variant(op),
            Op::Select(..) => self.text("select"),
            Op::Fma(..) => self.text("fma"),
            Op::Cast(_) => self.text("cast"),
            Op::Math(f, ..) => self.text(f.name()),
            Op::Rand(..) => self.text("rand"),
            Op::Load(array, _) => self.tagged("load", array.index()),
        }
        let operands: Vec<ValueId> = op.operands().collect();
        self.values(&operands);
    }

    fn tagged(&mut self, tag: &str, id: usize) {
        self.text(tag);
        self.number(id as u64);
    }

    /// The depth of recursion is the depth of nesting in the source.
    fn block(&mut self, block: &Block) {
        let mut lets = Vec::new();
        for stmt in block {
            if let Stmt::Let(v) = stmt
                && !self.program.may_fail(*v)
            {
                lets.extend(self.numbering.number(*v));
                continue;
            }
            // Which of two values that can fail is computed first counts; what else is computed between them does not.
            if !matches!(stmt, Stmt::Let(_)) {
                self.lets(&mut lets);
            }
            self.statement(stmt);
            stmt.blocks().for_each(|inner| self.block(inner));
        }
        self.lets(&mut lets);
        self.text("end");
    }

    /// Values that are computed between two other statements, in whatever order.
    fn lets(&mut self, lets: &mut Vec<usize>) {
        lets.sort_unstable();
        if !lets.is_empty() {
            self.text("lets");
            self.list(lets.drain(..));
        }
    }

    /// A statement without its blocks.
    fn statement(&mut self, stmt: &Stmt) {
        match stmt {
            Stmt::Let(v) => self.tagged("let", self.value(*v)),
            Stmt::Declare(local, _) => self.tagged("declare", local.index()),
            Stmt::Set(local, _) => self.tagged("set", local.index()),
            Stmt::Store(s) => self.tagged("store", s.array.index()),
            Stmt::Update(how, s) => {
                self.tagged("update", s.array.index());
                self.variant(how);
            }
            Stmt::Claim(claim) => {
                self.tagged("claim", claim.array.index());
                self.number(claim.taken.index() as u64);
            }
            Stmt::If(branch) => {
                self.text("if");
                self.values(&self.program.printed(branch));
            }
            Stmt::Loop(l) => {
                self.tagged("loop", l.id.index());
                match &l.kind {
                    LoopKind::For { var, .. } => self.tagged("for", self.value(*var)),
                    LoopKind::While { .. } => self.text("while"),
                    LoopKind::Forever => self.text("forever"),
                }
                if !l.sums.is_empty() {
                    self.text("sums");
                    self.list(l.sums.iter().map(|local| local.index()));
                }
                self.option(l.until.map(|v| self.value(v)));
            }
            Stmt::Par(par) => {
                self.tagged("par", par.id.index());
                self.variant(par.ordering);
                let variables: Vec<ValueId> = par.ranges.iter().map(|range| range.var).collect();
                self.values(&variables);
            }
            Stmt::Region(region) => {
                self.tagged("region", region.id.index());
                self.number(region.label.index() as u64);
                self.option(region.flag.map(ArrayId::index));
                match &region.undo {
                    Undo::Nothing => self.text("keep"),
                    Undo::Everything => self.text("undo"),
                    Undo::Arrays(arrays) => {
                        self.text("undo these");
                        self.list(arrays.iter().map(|a| a.index()));
                    }
                }
            }
            // The name of a called program is not part of what it does.
            Stmt::Call(_) => self.text("call"),
            Stmt::Swap(a, b) => {
                self.tagged("swap", a.index());
                self.number(b.index() as u64);
            }
            Stmt::Fill(a, ..) => self.tagged("fill", a.index()),
            Stmt::Copy { from, to, .. } => {
                self.tagged("copy", from.index());
                self.number(to.index() as u64);
            }
            Stmt::Library(call) => {
                self.text("library");
                match self.program.operation(call) {
                    Some(operation) => self.text(&format!("operation {}", operation.name)),
                    None => self.variant(call.op),
                }
                self.list(call.reads.iter().map(|a| a.index()));
                self.list(call.writes.iter().map(|a| a.index()));
            }
            Stmt::Temp(a) if self.program.undefined.contains(a) => self.tagged("undefined", a.index()),
            Stmt::Temp(a) => self.tagged("temp", a.index()),
            Stmt::Push(push) => {
                self.tagged("push", push.array.index());
                self.option(match push.after {
                    After::Same => None,
                    After::Anything(old) => Some(old.index()),
                });
            }
            Stmt::Pop(a) => self.tagged("pop", a.index()),
            Stmt::Host(region, Again::Shapes) => self.tagged("host shapes", region.index()),
            Stmt::Host(region, Again::Change) => self.tagged("host changes", region.index()),
            Stmt::Host(region, Again::Undo) => self.tagged("host undone", region.index()),
            Stmt::Forward(f) => {
                self.tagged("forward", f.id.index());
                self.values(&[f.from, f.to]);
                self.list(f.carried.iter().map(|a| a.index()));
                self.list(f.kept.iter().map(|a| a.index()));
            }
            Stmt::Backward(b) => self.tagged("backward", b.id.index()),
        }
        self.values(&stmt.uses());
    }
}
