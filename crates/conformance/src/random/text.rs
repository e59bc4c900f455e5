//! Sketches in the surface language.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use ebbtide_ir::{Access, Binary, Combine, Compare, Literal, Type, Unary};

use super::sketch::{Extent, Line, Sketch, Term};

/// The Rust text of a sketch and of all programs that it calls.
pub fn text(sketch: &Sketch) -> String {
    let mut out = String::new();
    for callee in &sketch.callees {
        out += &text(callee);
        out.push('\n');
    }
    let mut params: Vec<String> = Vec::new();
    for array in &sketch.arrays {
        let lent = if array.access == Access::Write { "&mut " } else { "&" };
        params.push(format!("{}: {lent}Array{}<{}>", array.name, array.extents.len(), array.ty));
    }
    for scalar in &sketch.scalars {
        params.push(format!("{}: {}", scalar.name, scalar.ty));
    }
    let _ = writeln!(out, "#[program]\nfn {}({}) {{", sketch.name, params.join(", "));
    let printer = Printer { sketch, extents: extents(sketch) };
    for (extent, value) in &printer.extents {
        let _ = writeln!(out, "    let {} = {value};", extent_name(*extent));
    }
    printer.block(&sketch.body, 1, &mut out);
    out.push_str("}\n");
    out
}

fn extents(sketch: &Sketch) -> BTreeMap<Extent, String> {
    let mut found = BTreeMap::new();
    for array in &sketch.arrays {
        for (k, extent) in array.extents.iter().enumerate() {
            if !matches!(extent, Extent::Fixed(_)) {
                found.entry(*extent).or_insert_with(|| format!("{}.dim({k})", array.name));
            }
        }
    }
    found
}

fn extent_name(extent: Extent) -> String {
    match extent {
        Extent::N => "n".to_string(),
        Extent::M => "m".to_string(),
        Extent::Times => "times".to_string(),
        Extent::Fixed(n) => n.to_string(),
    }
}

struct Printer<'s> {
    sketch: &'s Sketch,
    extents: BTreeMap<Extent, String>,
}

fn literal(l: Literal) -> String {
    match l.ty() {
        Type::F32 => format!("{:?}f32", l.to_f64() as f32),
        Type::F64 => format!("{:?}", l.to_f64()),
        _ => l.to_string(),
    }
}

fn element(array: &str, index: &[String]) -> String {
    match index {
        [one] => format!("{array}[{one}]"),
        _ => format!("{array}[[{}]]", index.join(", ")),
    }
}

fn operator(op: Binary) -> Option<&'static str> {
    Some(match op {
        Binary::Add => "+",
        Binary::Sub => "-",
        Binary::Mul => "*",
        Binary::Div => "/",
        Binary::Rem => "%",
        Binary::And => "&",
        Binary::Or => "|",
        Binary::Xor => "^",
        Binary::Shl => "<<",
        Binary::Shr => ">>",
        Binary::RemEuclid | Binary::Min | Binary::Max => return None,
    })
}

fn method(op: Unary) -> &'static str {
    match op {
        Unary::Abs => "abs",
        Unary::Sqrt => "sqrt",
        Unary::Norm => "norm",
        Unary::Floor => "floor",
        Unary::Ceil => "ceil",
        Unary::Round => "round",
        Unary::Trunc => "trunc",
        Unary::Neg | Unary::Not => "",
    }
}

impl Printer<'_> {
    fn term(&self, term: &Term) -> String {
        match term {
            Term::Literal(l) => literal(*l),
            Term::Name(name) => name.clone(),
            Term::Extent(extent) => extent_name(*extent),
            Term::Load(array, index) => element(array, &self.terms(index)),
            Term::Unary(Unary::Neg, a) => format!("(-{})", self.term(a)),
            Term::Unary(Unary::Not, a) => format!("(!{})", self.term(a)),
            Term::Unary(op, a) => format!("({}).{}()", self.term(a), method(*op)),
            Term::Binary(op, a, b) => {
                let (a, b) = (self.term(a), self.term(b));
                match (operator(*op), op) {
                    (Some(operator), _) => format!("({a} {operator} {b})"),
                    (None, Binary::Min) => format!("({a}).min({b})"),
                    (None, Binary::Max) => format!("({a}).max({b})"),
                    _ => format!("({a}).rem_euclid({b})"),
                }
            }
            Term::Compare(op, a, b) => {
                let sign = match op {
                    Compare::Eq => "==",
                    Compare::Ne => "!=",
                    Compare::Lt => "<",
                    Compare::Le => "<=",
                    Compare::Gt => ">",
                    Compare::Ge => ">=",
                };
                format!("({} {sign} {})", self.term(a), self.term(b))
            }
            Term::Select(c, a, b) => {
                format!("select({}, {}, {})", self.term(c), self.term(a), self.term(b))
            }
            Term::Fma(a, b, c) => format!("({}).mul_add({}, {})", self.term(a), self.term(b), self.term(c)),
            Term::Cast(ty, a) => format!("({} as {ty})", self.term(a)),
            Term::Math(f, args) => {
                let args = self.terms(args);
                format!("({}).{}({})", args[0], f.name(), args[1..].join(", "))
            }
            Term::Rand(ty, seed, index) => {
                format!("rand::<{ty}>({}, {})", self.term(seed), self.term(index))
            }
        }
    }

    fn terms(&self, terms: &[Term]) -> Vec<String> {
        terms.iter().map(|t| self.term(t)).collect()
    }

    fn block(&self, block: &[Line], depth: usize, out: &mut String) {
        for line in block {
            self.line(line, depth, out);
        }
    }

    fn line(&self, line: &Line, depth: usize, out: &mut String) {
        let pad = "    ".repeat(depth);
        let mut say = |text: String| {
            let _ = writeln!(out, "{pad}{text}");
        };
        match line {
            Line::Let(name, t) => say(format!("let {name} = {};", self.term(t))),
            Line::Mut(name, t) => say(format!("let mut {name} = {};", self.term(t))),
            Line::Set(name, t) => say(format!("{name} = {};", self.term(t))),
            Line::Store(a, index, t) => {
                say(format!("{} = {};", element(a, &self.terms(index)), self.term(t)));
            }
            Line::Update(how, a, index, t) => {
                let (place, t) = (element(a, &self.terms(index)), self.term(t));
                say(match how {
                    Combine::Add => format!("{place} += {t};"),
                    Combine::Min => format!("{place}.min_assign({t});"),
                    Combine::Max => format!("{place}.max_assign({t});"),
                });
            }
            Line::Unique(a, index, t) => {
                let index = match self.terms(index).as_slice() {
                    [one] => one.clone(),
                    several => format!("[{}]", several.join(", ")),
                };
                say(format!("scatter_unique({a}, {index}, {});", self.term(t)));
            }
            Line::If(c, then, otherwise) => {
                say(format!("if {} {{", self.term(c)));
                self.block(then, depth + 1, out);
                if !otherwise.is_empty() {
                    let _ = writeln!(out, "{pad}}} else {{");
                    self.block(otherwise, depth + 1, out);
                }
                let _ = writeln!(out, "{pad}}}");
            }
            Line::For { name, from, to, hint, body, until } => {
                if let Some(hint) = hint {
                    say(hint.to_string());
                }
                say(format!("for {name} in {}..{} {{", self.term(from), self.term(to)));
                self.looped(body, until.as_ref(), depth, out);
            }
            Line::Sum { totals, name, from, to, body, values, .. } => {
                let tuple = |list: Vec<String>| match &list[..] {
                    [one] => one.clone(),
                    several => format!("({})", several.join(", ")),
                };
                let (from, to) = (self.term(from), self.term(to));
                say(format!("let {} = sum({from}..{to}, |{name}| {{", tuple(totals.clone())));
                self.block(body, depth + 1, out);
                let values = tuple(values.iter().map(|value| self.term(value)).collect());
                let _ = writeln!(out, "{pad}    {values}");
                let _ = writeln!(out, "{pad}}});");
            }
            Line::While { condition, body } => {
                say(format!("while {} {{", self.term(condition)));
                self.looped(body, None, depth, out);
            }
            Line::Loop { body, until } => {
                say("loop {".to_string());
                self.looped(body, Some(until), depth, out);
            }
            Line::Par { ranges, body } => {
                let names: Vec<&str> = ranges.iter().map(|(name, ..)| name.as_str()).collect();
                let names =
                    if names.len() == 1 { names[0].to_string() } else { format!("({})", names.join(", ")) };
                let bounds: Vec<String> =
                    ranges.iter().map(|(_, a, b)| format!("{}..{}", self.term(a), self.term(b))).collect();
                say(format!("for {names} in par({}) {{", bounds.join(", ")));
                self.looped(body, None, depth, out);
            }
            Line::Region { label, flag, undo, body } => {
                let undo = if *undo { ", undo" } else { "" };
                say(format!("#[checkpoint(At::{label}, yield_on = {flag}{undo})]"));
                say("{".to_string());
                self.looped(body, None, depth, out);
            }
            Line::Call(which, arrays, scalars) => {
                let name = self.sketch.callees.get(*which).map_or("?", |callee| &callee.name);
                let args: Vec<String> = arrays.iter().cloned().chain(self.terms(scalars)).collect();
                say(format!("{name}({});", args.join(", ")));
            }
            Line::Swap(a, b) => say(format!("swap({a}, {b});")),
            Line::Fill(a, t) => say(format!("fill({a}, {});", self.term(t))),
            Line::Copy(a, b) => say(format!("copy({a}, {b});")),
            Line::Matmul(a, b, c) => say(format!("matmul({a}, {b}, {c});")),
            Line::Scan(a, b) => say(format!("scan({a}, {b});")),
            Line::Compact(a, b, c) => say(format!("compact({a}, {b}, {c});")),
            Line::Temp(temp) => {
                let shape: Vec<String> = temp.extents.iter().map(|e| extent_name(*e)).collect();
                let (rank, ty) = (temp.extents.len(), temp.ty);
                say(format!("let mut {} = Array{rank}::<{ty}>::zeros([{}]);", temp.name, shape.join(", ")));
            }
        }
    }

    fn looped(&self, body: &[Line], until: Option<&Term>, depth: usize, out: &mut String) {
        self.block(body, depth + 1, out);
        let pad = "    ".repeat(depth);
        if let Some(until) = until {
            let _ = writeln!(out, "{pad}    if {} {{\n{pad}        break;\n{pad}    }}", self.term(until));
        }
        let _ = writeln!(out, "{pad}}}");
    }
}
