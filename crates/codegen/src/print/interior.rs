//! The interior of a parallel loop, as C: what is computed before it, and what narrows its interval.

use std::fmt::Write as _;

use ebbtide_ir::{Binary, Op, Program, ValueId};

use crate::kernel::index_expr::IndexExpr;
use crate::kernel::interval::{Before, Corner, Interval, Narrowing, Scope, Way};
use crate::kernel::machine::Family;
use crate::print::emitter::Emitter;

impl Emitter<'_> {
    /// What is computed before the innermost loop, the last of so many.
    pub fn before_interior(&mut self, ranges: usize, interval: &Interval) -> String {
        let mut text = "i64 wild = 0; eb_tame(&wild, jf); eb_tame(&wild, jt);\n".to_string();
        if self.family == Family::C {
            // Lanes are counted from where the whole row begins; a GPU has no other beginning.
            let _ = writeln!(text, "eb_tame(&wild, f{});", ranges - 1);
        }
        text.push_str(&self.names_before(&interval.before));
        text
    }

    /// The names that are computed before the innermost loop.
    pub fn names_before(&mut self, names: &[Before]) -> String {
        let mut text = String::new();
        for before in names {
            let line = match before {
                Before::Value(v) => self.early_value(*v),
                Before::Wrapped { v, base, modulus: m, way } => {
                    let middle = match way {
                        Way::Up => "(jf + jt) / 2",
                        Way::Down => "-((jf + jt) / 2)",
                    };
                    let quotient = match self.family {
                        Family::C => "eb_floor_div",
                        Family::Cuda => "eb_near_div",
                    };
                    format!(
                        "const i64 w{0} = {m} > 0 ? {base} - {quotient}({base} + {middle}, {m}) * {m} : -1;",
                        v.index()
                    )
                }
            };
            let _ = writeln!(text, "{line}");
        }
        text
    }

    fn early_value(&mut self, v: ValueId) -> String {
        let text = self.operation(v);
        let text = match *self.program.op(v) {
            Op::Binary(Binary::Div | Binary::Rem | Binary::RemEuclid, _, b) => {
                format!("({} ? {text} : 0)", self.value(b))
            }
            _ => text,
        };
        format!("const i64 v{} = {text};", v.index())
    }
}

/// The statements that narrow `lo` and `hi`.
pub(crate) fn narrowing(program: &Program, narrowings: &[Narrowing]) -> String {
    let mut text = String::new();
    for narrowing in narrowings {
        let line = match narrowing {
            Narrowing::NotZero(v) => format!("wild |= !{};", IndexExpr::value(program, *v)),
            Narrowing::NotNegative(sum) => not_negative(sum),
            Narrowing::Within(at, sum, extent, ranges) => {
                let room = IndexExpr::room(extent.clone(), sum.1.clone()).tamed();
                let text = in_scope(at, &format!("{} {}", not_negative(sum), not_negative(&(-sum.0, room))));
                let reached: Vec<String> = ranges.iter().map(|[from, to]| format!("{from} < {to}")).collect();
                if reached.is_empty() { text } else { format!("if ({}) {{ {text} }}", reached.join(" && ")) }
            }
            Narrowing::Away(IndexExpr::Negative(e)) => format!("eb_avoid(&lo, &hi, -{e});"),
            Narrowing::Away(e) => format!("eb_avoid(&lo, &hi, {e});"),
            Narrowing::Empty => "hi = lo;".to_string(),
            Narrowing::TameMultiple(c) => {
                let each =
                    ["jf", "jt"].map(|j| format!("eb_tame(&wild, eb_product(&wild, INT64_C({c}), {j}));"));
                each.join(" ")
            }
            Narrowing::Tame(at, e) => in_scope(at, &format!("{e};")),
        };
        let _ = writeln!(text, "{line}");
    }
    text.push_str("if (__builtin_expect(wild, 0)) hi = lo;\n");
    text
}

/// The statement that narrows to where a sum is not negative.
fn not_negative((coefficient, base): &(i64, IndexExpr)) -> String {
    match *coefficient {
        0 => format!("if ({base} < 0) hi = lo;"),
        1 => format!("lo = eb_max(lo, -{base});"),
        -1 => format!("hi = eb_min(hi, {base} + 1);"),
        c if c > 0 => format!("lo = eb_max(lo, -eb_floor_div({base}, {c}));"),
        c => format!("hi = eb_min(hi, eb_floor_div({base}, {}) + 1);", -c),
    }
}

/// Statements in the scope of loop variables at a corner of their ranges.
fn in_scope(at: &Scope, statements: &str) -> String {
    if at.is_empty() { statements.to_string() } else { format!("{{ {}{statements} }}", scope(at)) }
}

fn scope(at: &Scope) -> String {
    let each = at.iter().map(|(v, corner)| match corner {
        Corner::First(e) => format!("const i64 v{} = {e}; ", v.index()),
        Corner::Last(e) => format!("const i64 v{} = {e} - 1; ", v.index()),
    });
    each.collect()
}
