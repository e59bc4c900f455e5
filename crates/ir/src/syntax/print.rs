//! The readable text form of a program, used in golden tests and shown to users.
//!
//! A value without a name that is used once is printed where it is used, unless a write in between could make
//! that a lie; every other value is a `let`.

use std::fmt::{self, Write as _};

use super::ids::*;
use super::op::*;
use super::program::*;

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut printer = Printer {
            program: self,
            text: String::new(),
            depth: 1,
            inlined: inlined(self),
            names: names(self),
        };
        printer.block(&self.body);
        let params: Vec<String> = self.params.iter().map(|p| printer.param(*p)).collect();
        writeln!(f, "program {}({}) {{", self.name, params.join(", "))?;
        f.write_str(&printer.text)?;
        f.write_str("}\n")
    }
}

struct Printer<'a> {
    program: &'a Program,
    text: String,
    depth: usize,
    inlined: Vec<bool>,
    names: Vec<String>,
}

/// Binding strengths of the printed operators, loosest first.
#[derive(Clone, Copy, PartialEq, PartialOrd)]
enum Strength {
    Relation = 1,
    Bits,
    Shift,
    Sum,
    Product,
    Cast,
    Atom,
}

impl Printer<'_> {
    fn param(&self, param: Param) -> String {
        match param {
            Param::Scalar(id) => {
                let s = &self.program.scalars[id.index()];
                format!("{}: {}", s.name, s.ty)
            }
            Param::Array(id) => {
                let a = self.program.array(id);
                let borrow = if a.role == Role::Param(Access::Write) { "&mut " } else { "&" };
                format!("{}: {borrow}Array{}<{}>", a.name, a.rank, a.ty)
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

    fn stmt(&mut self, stmt: &Stmt) {
        let p = self.program;
        match stmt {
            Stmt::Let(v) => {
                if !self.inlined[v.index()] && !matches!(p.op(*v), Op::Scalar(_)) {
                    let text = format!("let {} = {};", self.names[v.index()], self.op(*v).0);
                    self.line(&text);
                }
            }
            Stmt::Declare(local, v) => {
                let text = format!("let mut {} = {};", self.local(*local), self.expr(*v));
                self.line(&text);
            }
            Stmt::Set(local, v) => {
                let text = format!("{} = {};", self.local(*local), self.expr(*v));
                self.line(&text);
            }
            Stmt::Store(s) => {
                let text = format!("{} = {};", self.element(s.array, s.index), self.expr(s.value));
                self.line(&text);
            }
            Stmt::Update(combine, s) => {
                let (element, value) = (self.element(s.array, s.index), self.expr(s.value));
                let text = match combine {
                    Combine::Add => format!("{element} += {value};"),
                    Combine::Min => format!("{element}.min_assign({value});"),
                    Combine::Max => format!("{element}.max_assign({value});"),
                };
                self.line(&text);
            }
            Stmt::Claim(claim) => {
                let text = format!(
                    "claim({}, {});",
                    self.element(claim.array, claim.index),
                    self.program.array(claim.taken).name
                );
                self.line(&text);
            }
            Stmt::If(branch) => {
                let text = format!("if {} {{", self.expr(branch.condition));
                self.line(&text);
                self.nested(&branch.then);
                if !branch.otherwise.is_empty() {
                    self.line("} else {");
                    self.nested(&branch.otherwise);
                }
                self.line("}");
            }
            Stmt::Loop(l) => self.sequential(l),
            Stmt::Par(par) => {
                let vars: Vec<&str> = par.ranges.iter().map(|r| self.names[r.var.index()].as_str()).collect();
                let ranges: Vec<String> = par
                    .ranges
                    .iter()
                    .map(|r| format!("{}..{}", self.expr(r.from), self.expr(r.to)))
                    .collect();
                let vars = if vars.len() == 1 { vars.concat() } else { format!("({})", vars.join(", ")) };
                let relaxed = if par.ordering == Ordering::Relaxed { "#[relaxed] " } else { "" };
                let text = format!("{relaxed}for {vars} in par({}) {{", ranges.join(", "));
                for requirement in par.requires.iter().filter(|r| r.asked == Asked::OnEntry) {
                    self.line(&format!("#[requires({})]", self.expr(requirement.condition)));
                }
                self.line(&text);
                self.nested(&par.body);
                self.line("}");
            }
            Stmt::Region(region) => {
                let label = &p.labels[region.label.index()];
                let mut text = format!("#[checkpoint({label}");
                if let Some(flag) = region.flag {
                    let _ = write!(text, ", yield_on = {}", p.array(flag).name);
                }
                match &region.undo {
                    Undo::Nothing => {}
                    Undo::Everything => text.push_str(", undo"),
                    Undo::Arrays(arrays) => {
                        let names: Vec<&str> = arrays.iter().map(|a| p.array(*a).name.as_str()).collect();
                        let _ = write!(text, ", undo = [{}]", names.join(", "));
                    }
                }
                text.push_str(")] {");
                self.line(&text);
                self.nested(&region.body);
                self.line("}");
            }
            Stmt::Call(call) => {
                let rule = |what: &str, rule: Option<Rule>| {
                    rule.map_or(String::new(), |rule| format!(", {what} = {}", rule.name))
                };
                let rules = call.ruled.as_ref().map_or(String::new(), |ruled| {
                    rule("adjoint", ruled.rules.adjoint) + &rule("tangent", ruled.rules.tangent)
                });
                let text = format!("/* {}{rules} */ {{", call.name);
                self.line(&text);
                self.nested(&call.body);
                self.line("}");
            }
            Stmt::Swap(a, b) => {
                let text = format!("swap({}, {});", p.array(*a).name, p.array(*b).name);
                self.line(&text);
            }
            Stmt::Fill(a, v) => {
                let text = format!("fill({}, {});", p.array(*a).name, self.expr(*v));
                self.line(&text);
            }
            Stmt::Copy { from, to } => {
                let text = format!("copy({}, {});", p.array(*from).name, p.array(*to).name);
                self.line(&text);
            }
            Stmt::Library(call) => {
                let text = format!("{};", call.text(p, |v| self.expr(v)));
                self.line(&text);
            }
            Stmt::Push(push) => {
                let name = &p.array(push.array).name;
                let text = match push.after {
                    After::Same => format!("push({name});"),
                    After::Anything(old) => format!("let {} = push({name});", p.array(old).name),
                };
                self.line(&text);
            }
            Stmt::Host(region, again) => {
                let what = match again {
                    Again::Shapes => "take back the shapes that the host changed",
                    Again::Change => "change what the host changed",
                    Again::Undo => "undo what the host changed",
                };
                self.line(&format!("{what} at region {};", region.0));
            }
            Stmt::Pop(a) => {
                let text = format!("pop({});", p.array(*a).name);
                self.line(&text);
            }
            Stmt::Forward(f) => self.forward(f),
            Stmt::Backward(b) => {
                let text = format!("backward loop {} {{", b.id.0);
                self.line(&text);
                self.nested(&b.reverse);
                self.line("}");
            }
            Stmt::Temp(id) => {
                let a = p.array(*id);
                let Role::Temp(shape) = &a.role else { return };
                let shape: Vec<String> = shape.iter().map(|v| self.expr(*v)).collect();
                let text = format!(
                    "let mut {} = Array{}::<{}>::zeros([{}]);",
                    a.name,
                    a.rank,
                    a.ty,
                    shape.join(", ")
                );
                self.line(&text);
            }
        }
    }

    fn forward(&mut self, f: &Forward) {
        let range = match f.length {
            Length::Known(from, to) => format!("{}..{}", self.expr(from), self.expr(to)),
            Length::Unknown { .. } => "unknown".to_string(),
        };
        let names = |arrays: &[ArrayId]| {
            arrays.iter().map(|a| self.program.array(*a).name.as_str()).collect::<Vec<_>>().join(", ")
        };
        let kept = if f.kept.is_empty() { String::new() } else { format!(" keeping [{}]", names(&f.kept)) };
        let carried = names(&f.carried);
        let text = format!("forward loop {} over {range} carrying [{carried}]{kept} {{", f.id.0);
        self.line(&text);
        for (name, block) in [("advance", &f.advance), ("record", &f.record)] {
            self.line(&format!("  {name}:"));
            self.nested(block);
        }
        self.line("}");
    }

    fn sequential(&mut self, l: &Loop) {
        if let Some(schedule) = l.schedule {
            self.line(&schedule.to_string());
        }
        match &l.kind {
            LoopKind::For { var, from, to } => {
                let text =
                    format!("for {} in {}..{} {{", self.names[var.index()], self.expr(*from), self.expr(*to));
                self.line(&text);
            }
            LoopKind::While { head, condition } => {
                // Only what cannot be printed in the condition itself remains of the head.
                let start = self.text.len();
                self.nested(head);
                let head_text = self.text.split_off(start);
                if head_text.is_empty() {
                    let text = format!("while {} {{", self.expr(*condition));
                    self.line(&text);
                } else {
                    self.line("while {");
                    self.text.push_str(&head_text);
                    let text = format!("    {}", self.expr(*condition));
                    self.line(&text);
                    self.line("} {");
                }
            }
            LoopKind::Forever => self.line("loop {"),
        }
        self.nested(&l.body);
        if let Some(until) = l.until {
            let text = format!("    if {} {{ break; }}", self.expr(until));
            self.line(&text);
        }
        self.line("}");
    }

    fn local(&self, local: LocalId) -> String {
        self.program.locals[local.index()].name.clone()
    }

    fn element(&self, array: ArrayId, index: Indices) -> String {
        let name = &self.program.array(array).name;
        let index: Vec<String> = index.as_slice().iter().map(|v| self.expr(*v)).collect();
        match index.as_slice() {
            [i] => format!("{name}[{i}]"),
            many => format!("{name}[[{}]]", many.join(", ")),
        }
    }

    fn expr(&self, v: ValueId) -> String {
        self.within(v, Strength::Relation)
    }

    /// The text of a value inside an operator of strength `least`.
    fn within(&self, v: ValueId, least: Strength) -> String {
        if !self.inlined[v.index()] {
            return self.names[v.index()].clone();
        }
        let (text, strength) = self.op(v);
        if strength < least { format!("({text})") } else { text }
    }

    fn op(&self, v: ValueId) -> (String, Strength) {
        use Strength::*;
        let p = self.program;
        let atom = |text: String| (text, Atom);
        match *p.op(v) {
            Op::Literal(l) => atom(l.to_string()),
            Op::Scalar(s) => atom(p.scalars[s.index()].name.clone()),
            Op::Dim(array, k) => match p.array(array).rank {
                1 => atom(format!("{}.len()", p.array(array).name)),
                _ => atom(format!("{}.dim({k})", p.array(array).name)),
            },
            Op::LoopVar => atom(self.names[v.index()].clone()),
            Op::Get(local) => atom(self.local(local)),
            Op::Load(array, index) => atom(self.element(array, index)),
            Op::Unary(op, a) => match op {
                Unary::Neg => (format!("-{}", self.within(a, Atom)), Cast),
                Unary::Not => (format!("!{}", self.within(a, Atom)), Cast),
                Unary::Abs => self.method("abs", a, &[]),
                Unary::Sqrt => self.method("sqrt", a, &[]),
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

/// Which values are printed where they are used.
fn inlined(program: &Program) -> Vec<bool> {
    let mut uses = vec![0u32; program.values.len()];
    let mut count = |v: ValueId| uses[v.index()] += 1;
    for array in &program.arrays {
        if let Role::Temp(shape) = &array.role {
            shape.iter().for_each(|v| count(*v));
        }
    }
    walk(&program.body, &mut |stmt| {
        stmt.uses().into_iter().for_each(&mut count);
        if let Stmt::Let(v) = stmt {
            program.op(*v).operands().for_each(&mut count);
        }
    });
    let mut inlined: Vec<bool> = program
        .values
        .iter()
        .zip(&uses)
        .map(|(value, uses)| match value.op {
            Op::Literal(_) | Op::Scalar(_) => true,
            Op::LoopVar => false,
            // Named or shared values are shown once, by name.
            _ => value.name.is_none() && *uses == 1,
        })
        .collect();
    demote_moved_reads(program, &program.body, &mut inlined);
    inlined
}

/// A read may not be printed after a write that it came before, nor inside another block.
fn demote_moved_reads(program: &Program, block: &Block, inlined: &mut [bool]) {
    // Reads printed so far that no statement has shown yet: (read, the value that carries it).
    let mut pending: Vec<ValueId> = Vec::new();
    for stmt in block {
        match stmt {
            Stmt::Let(v) if inlined[v.index()] => {
                let carries =
                    !program.op(*v).is_pure() || program.op(*v).operands().any(|o| pending.contains(&o));
                pending.retain(|p| !program.op(*v).operands().any(|o| o == *p));
                if carries {
                    pending.push(*v);
                }
            }
            _ => {
                let mut used = stmt.uses();
                if let Stmt::Let(v) = stmt {
                    used.extend(program.op(*v).operands());
                    pending.retain(|p| !used.contains(p));
                    continue;
                }
                // What this statement itself shows is read before it writes.
                let has_blocks = stmt.blocks().next().is_some();
                let shown_late = matches!(stmt, Stmt::Loop(_)) && has_blocks;
                pending.retain(|p| shown_late || !used.contains(p));
                for p in pending.drain(..) {
                    inlined[p.index()] = false;
                }
            }
        }
        for inner in stmt.blocks() {
            demote_moved_reads(program, inner, inlined);
        }
    }
    // A value that the block's owner uses (`until`, a `while` condition) may stay; others were shown already.
}

/// A distinct readable name for every value.
fn names(program: &Program) -> Vec<String> {
    let mut taken: std::collections::HashMap<String, u32> = std::collections::HashMap::new();
    for array in &program.arrays {
        taken.insert(array.name.clone(), 1);
    }
    for local in &program.locals {
        taken.insert(local.name.clone(), 1);
    }
    let name_of = |(i, value): (usize, &ValueDecl)| match (&value.op, &value.name) {
        (Op::Scalar(s), _) => program.scalars[s.index()].name.clone(),
        (_, Some(name)) => {
            let count = taken.entry(name.clone()).or_insert(0);
            *count += 1;
            if *count == 1 { name.clone() } else { format!("{name}_{count}") }
        }
        _ => format!("v{i}"),
    };
    program.values.iter().enumerate().map(name_of).collect()
}
