//! Bodies for people. Input: a body; output: a line for each statement, with arrays by their names.

use std::fmt::Write as _;

use ebbtide_ir::{Binary, Combine, Compare, Literal, Program, Type, Unary};

use super::bounds_test::Test;
use super::expr::{Expr, Overflow};
use super::index_expr::{Arithmetic, IndexExpr};
use super::interval::{Corner, Narrowing, Scope};
use super::stmt::{Body, Check, Element, Fault, Loop, LoopKind, Manner, Part, Place, Stmt, Stride};

/// Does somebody want to see kernels?
pub(crate) fn is_wanted() -> bool {
    std::env::var_os("EBBTIDE_DUMP").is_some_and(|what| what == "kernel")
}

/// The text of a body.
pub(crate) fn show(program: &Program, body: &Body) -> String {
    let mut text = String::new();
    block(program, body, 1, &mut text);
    text
}

/// Writes statements, so deep inside others. The depth of recursion is that of nesting in the source.
pub(super) fn block(program: &Program, body: &Body, depth: usize, out: &mut String) {
    for stmt in body {
        let indent = "  ".repeat(depth);
        match stmt {
            Stmt::If { condition, then, otherwise } => {
                let _ = writeln!(out, "{indent}if {}", expr(program, condition));
                block(program, then, depth + 1, out);
                if !otherwise.is_empty() {
                    let _ = writeln!(out, "{indent}else");
                    block(program, otherwise, depth + 1, out);
                }
            }
            Stmt::Loop(l) => inner_loop(program, l, depth, out),
            _ => {
                let _ = writeln!(out, "{indent}{}", statement(program, stmt));
            }
        }
    }
}

fn inner_loop(program: &Program, l: &Loop, depth: usize, out: &mut String) {
    let indent = "  ".repeat(depth);
    let at = |e: &Expr| expr(program, e);
    let mut head = match &l.kind {
        LoopKind::Counted { variable, from, to } => format!("for {variable} in {}..{}", at(from), at(to)),
        LoopKind::While { .. } => "while".to_string(),
        LoopKind::Forever => "loop".to_string(),
    };
    if !l.sums.is_empty() {
        let sums: Vec<String> = l.sums.iter().map(|(name, ty)| format!("{name}: {ty}")).collect();
        let how = if l.chained { "in order " } else { "" };
        head += &format!(", summing {how}{}", sums.join(", "));
    }
    if l.polls {
        head += ", polling";
    }
    let _ = writeln!(out, "{indent}{head}");
    if let LoopKind::While { head, condition } = &l.kind {
        block(program, head, depth + 1, out);
        let _ = writeln!(out, "{indent}  leave unless {}", at(condition));
    }
    block(program, &l.body, depth + 1, out);
    if let Some(until) = &l.until {
        let _ = writeln!(out, "{indent}  leave if {}", at(until));
    }
    if let Some(partly) = &l.partly {
        let _ = writeln!(out, "{indent}before and behind, in {}..{}", at(&partly.from), at(&partly.to));
        block(program, &partly.body, depth + 1, out);
    }
    if let Some(ahead) = &l.ahead {
        let values: Vec<String> = ahead.values.iter().map(ToString::to_string).collect();
        let _ = writeln!(out, "{indent}ahead: {} as {}", values.join(", "), ahead.ty);
        block(program, &ahead.body, depth + 1, out);
    }
    if let Some(ends) = &l.ends {
        for (body, which) in [(&ends.first, "before the first one"), (&ends.last, "behind the last one")] {
            if !body.is_empty() {
                let _ = writeln!(out, "{indent}{which}");
                block(program, body, depth + 1, out);
            }
        }
    }
    if let Some(wide) = &l.wide {
        for (body, which) in [(&wide.whole, ""), (&wide.tail, ", a part of one")] {
            let _ = writeln!(out, "{indent}in vectors of {}{which}", wide.lanes);
            block(program, body, depth + 1, out);
        }
    }
}

fn statement(program: &Program, stmt: &Stmt) -> String {
    let at = |e: &Expr| expr(program, e);
    let only = |when: &Option<Expr>| when.as_ref().map_or(String::new(), |e| format!(" if {}", at(e)));
    match stmt {
        Stmt::Let { name, ty, value } => format!("let {name}: {ty} = {}", at(value)),
        Stmt::Declare { name, ty, value } => format!("let mut {name}: {ty} = {}", at(value)),
        Stmt::Assign { name, value, .. } => format!("{name} = {}", at(value)),
        Stmt::Load { name, ty, element: e, when } => {
            format!("let {name}: {ty} = {}{}", element(program, e), only(when))
        }
        Stmt::Store { element: e, how, value, more, when, manner, .. } => {
            let manner = match manner {
                Manner::Plain => "",
                Manner::LaneByLane => "lane by lane ",
                Manner::Atomic => "atomically ",
                Manner::Leader => "by the leader ",
                Manner::Noted(_) => "noted ",
                Manner::Bucket(_) => "in a bucket ",
                Manner::Counted => "counted ",
                Manner::CountedFor(_) => "counted for all ",
                Manner::CountedElsewhere => "counted elsewhere ",
            };
            let how = match how {
                None => "=",
                Some(Combine::Add) => "+=",
                Some(Combine::Min) => "min=",
                Some(Combine::Max) => "max=",
            };
            let values: Vec<String> = [value].into_iter().chain(more).map(at).collect();
            format!("{manner}{} {how} {}{}", element(program, e), values.join(", then "), only(when))
        }
        Stmt::Strides(array) => format!("strides of {}", program.array(*array).name),
        Stmt::Address { name, element: e, .. } => format!("let {name} = &{}", element(program, e)),
        Stmt::Reduce { number, value, when, .. } => {
            format!("term of reduction {number}: {}{}", at(value), only(when))
        }
        Stmt::Claim { element: e, .. } => format!("claim {}", element(program, e)),
        Stmt::Fault { operand, kind, .. } => match kind {
            Fault::Division(_) => format!("fault if {} == 0", at(operand)),
            Fault::DivisionAfterDeferred(_) => format!("fault if {} == 0, deferred ones first", at(operand)),
            Fault::Overflow => format!("fault if {} is no number", at(operand)),
        },
        Stmt::DeferFaults => "defer faults".to_string(),
        Stmt::RaiseDeferred => "raise deferred faults".to_string(),
        Stmt::FallBack { unless, .. } => format!("one by one unless {}", at(unless)),
        Stmt::Poll => "poll".to_string(),
        Stmt::Push { array, place, of, value } => {
            format!("push {} to place {place} of {of} of {}", at(value), program.array(*array).name)
        }
        Stmt::Pop { array, place, of, name, .. } => {
            format!("{name} = pop of place {place} of {of} of {}", program.array(*array).name)
        }
        // They have blocks, and lines of their own.
        Stmt::If { .. } | Stmt::Loop(_) => String::new(),
    }
}

fn element(program: &Program, e: &Element) -> String {
    let name = &program.array(e.array).name;
    let index: Vec<String> = e.index().iter().map(|e| expr(program, e)).collect();
    let check = match e.check {
        Check::Proved => String::new(),
        Check::AtOnce => " (checked)".to_string(),
        Check::Deferred(ok) => format!(" (checked as {ok})"),
        Check::Aside => " (checked aside)".to_string(),
    };
    let place = match &e.place {
        Place::At(_) => format!("{name}[{}]", index.join(", ")),
        Place::Gathered(_) => format!("{name}[{}; each lane its own]", index.join(", ")),
        Place::From(address, away) => format!("{address}[{away:?}]"),
        Place::Lanes { stride, part, .. } => {
            let stride = match stride {
                Stride::Same => " together".to_string(),
                Stride::Next => String::new(),
                Stride::Apart(stride) => format!(" by {stride}"),
                Stride::Rows(rows) => format!(" by {rows:?}"),
                Stride::Tile { rows, .. } => format!(" by {rows:?} in tiles"),
            };
            let lanes = match part {
                Part::Whole => "lanes",
                Part::Tail => "first lanes",
                Part::Mask => "lanes of the mask",
            };
            format!("{name}[{}; {lanes}{stride}]", index.join(", "))
        }
    };
    place + &check
}

/// A literal as numbers are written.
pub(super) fn literal(literal: Literal) -> String {
    match literal.ty() {
        Type::Bool => (literal.bits() != 0).to_string(),
        ty if ty.is_float() => format!("{:?}", literal.to_f64()),
        _ => literal.to_i64().map_or_else(|| literal.bits().to_string(), |number| number.to_string()),
    }
}

/// An expression. The depth of recursion is its own.
pub(crate) fn expr(program: &Program, e: &Expr) -> String {
    let at: Vec<String> = e.operands().iter().map(|e| expr(program, e)).collect();
    let sum = |coefficient: &i64, variable: &dyn std::fmt::Display, base: &IndexExpr| match coefficient {
        1 => format!("({variable} + {})", index(program, base)),
        c => format!("({c} {variable} + {})", index(program, base)),
    };
    match e {
        Expr::Literal(l) => literal(*l),
        Expr::Variable(name) => name.to_string(),
        Expr::Scalar(s, _) => format!("scalar {}", s.index()),
        Expr::Extent(array, k) => format!("{}.{k}", program.array(*array).name),
        Expr::Index(i) => index(program, i),
        Expr::Linear { coefficient, variable, base } => sum(coefficient, variable, base),
        Expr::Unary(op, ..) => match op {
            Unary::Neg => format!("-{}", at[0]),
            Unary::Not => format!("!{}", at[0]),
            op => format!("{}({})", format!("{op:?}").to_lowercase(), at[0]),
        },
        Expr::Binary(op, _, overflow, _) => {
            let sign = match op {
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
                Binary::RemEuclid => "rem_euclid",
                Binary::Min => "min",
                Binary::Max => "max",
            };
            let marked = if *overflow == Overflow::Marked { "?" } else { "" };
            format!("({} {sign}{marked} {})", at[0], at[1])
        }
        Expr::Compare(op, ..) => {
            let sign = match op {
                Compare::Eq => "==",
                Compare::Ne => "!=",
                Compare::Lt => "<",
                Compare::Le => "<=",
                Compare::Gt => ">",
                Compare::Ge => ">=",
            };
            format!("({} {sign} {})", at[0], at[1])
        }
        Expr::Select(..) => format!("({} ? {} : {})", at[0], at[1], at[2]),
        Expr::Fma(..) => format!("fma({})", at.join(", ")),
        Expr::Cast { to, .. } => format!("({} as {to})", at[0]),
        Expr::Math(function, ..) => format!("{}({})", function.name(), at.join(", ")),
        Expr::Random(..) => format!("random({})", at.join(", ")),
        Expr::All(_) => format!("({})", at.join(" && ")),
        Expr::Within(..) => format!("all({} <= {} < {})", at[1], at[0], at[2]),
        Expr::OneStep(..) => format!("({} one step % {})", at[0], at[1]),
        Expr::Nearest(_) => format!("narrow({})", at[0]),
        Expr::Splat(..) => format!("all({})", at[0]),
        Expr::Multiples { coefficient, .. } => format!("({coefficient} lane)"),
        Expr::Ramp { coefficient, variable, base, .. } => {
            sum(coefficient, &format!("({variable} + lane)"), base)
        }
    }
}

/// An index in the words of the program; what must be tame is as it is.
pub(crate) fn index(program: &Program, e: &IndexExpr) -> String {
    let sign = |op: &Arithmetic| match op {
        Arithmetic::Add => '+',
        Arithmetic::Sub => '-',
        Arithmetic::Mul => '*',
        Arithmetic::Div => '/',
    };
    let at = |e: &IndexExpr| index(program, e);
    match e {
        IndexExpr::Value(v) => format!("v{}", v.index()),
        IndexExpr::Constant(c) | IndexExpr::Number(c) | IndexExpr::Factor(c) => c.to_string(),
        IndexExpr::Scalar(s) => format!("scalar {}", s.index()),
        IndexExpr::First(d) => format!("first{d}"),
        IndexExpr::End(d) => format!("end{d}"),
        IndexExpr::Extent(array, k) => format!("{}.{k}", program.array(*array).name),
        IndexExpr::Wrapped(v) => format!("w{}", v.index()),
        IndexExpr::Wrapping(op, a, b) | IndexExpr::Checked(op, a, b) | IndexExpr::Marked(op, a, b) => {
            format!("({} {} {})", at(a), sign(op), at(b))
        }
        IndexExpr::Min(a, b) => format!("min({}, {})", at(a), at(b)),
        IndexExpr::Max(a, b) => format!("max({}, {})", at(a), at(b)),
        IndexExpr::Tame(a) => at(a),
        IndexExpr::Negative(a) => format!("-{}", at(a)),
        IndexExpr::Room(extent, index) => format!("({} - 1 - {})", at(extent), at(index)),
    }
}

/// What narrows an interval.
pub(crate) fn narrowing(program: &Program, narrowing: &Narrowing) -> String {
    let at = |e: &IndexExpr| index(program, e);
    let sum = |(coefficient, base): &(i64, IndexExpr)| match (coefficient, base) {
        (0, base) => at(base),
        (1, IndexExpr::Number(0)) => "j".to_string(),
        (1, base) => format!("j + {}", at(base)),
        (c, base) => format!("{c} j + {}", at(base)),
    };
    let corner = |scope: &Scope| {
        let each = scope.iter().map(|(v, corner)| match corner {
            Corner::First(e) => format!(" at v{} = {}", v.index(), at(e)),
            Corner::Last(e) => format!(" at v{} = {} - 1", v.index(), at(e)),
        });
        each.collect::<String>()
    };
    match narrowing {
        Narrowing::NotZero(v) => format!("{} != 0", at(&IndexExpr::value(program, *v))),
        Narrowing::NotNegative(s) => format!("{} >= 0", sum(s)),
        Narrowing::Within(scope, s, extent, ranges) => {
            let unless = ranges.iter().map(|[from, to]| format!(" unless {}..{} is empty", at(from), at(to)));
            format!("0 <= {} < {}{}{}", sum(s), at(extent), corner(scope), unless.collect::<String>())
        }
        Narrowing::Away(e) => format!("j is on the longer side of {}", at(e)),
        Narrowing::Empty => "nothing holds".to_string(),
        Narrowing::TameMultiple(c) => format!("{c} j fits"),
        Narrowing::Tame(scope, e) => format!("{} fits{}", at(e), corner(scope)),
    }
}

/// A condition of a proof.
pub(crate) fn test(program: &Program, test: &Test) -> String {
    match test {
        Test::NotNegative(e) => format!("{} >= 0", index(program, e)),
        Test::AtMost(e, array, k) => {
            format!("{} <= {}", index(program, e), index(program, &IndexExpr::Extent(*array, *k)))
        }
        Test::Narrow(e) => format!("{} is narrow", index(program, e)),
        Test::Tame(first, end) => {
            format!("{} and {} fit", index(program, first), index(program, end))
        }
    }
}
