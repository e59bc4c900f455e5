//! WGSL, as a sketch of a third target: a list of steps and a printer of the same trees.
//!
//! A parallel loop is an entry point whose threads take an iteration each. WGSL has neither 64-bit numbers nor jumps out of the
//! middle of an expression, so indices are narrow and bodies have no checks. What a whole target would need besides, a test does
//! not have: segments, barriers, reductions, a runtime.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fmt::Write as _;

use ebbtide_ir::{
    Binary, Combine, Literal, Op, Par, Program, Stmt as Source, Type, Unary, ValueId, parse, verify,
};
use expect_test::{Expect, expect};

use crate::analysis::boundary_conditions::FarFromBoundaries;
use crate::analysis::bounds_proof::Prover;
use crate::analysis::names::values_inside;
use crate::kernel::expr::Expr;
use crate::kernel::name::{Name, Ty};
use crate::kernel::stmt::{Body, Element, Loop, LoopKind, Stmt};
use crate::print::operation::sign;
use crate::transform::forms::{Forms, Iterations, Proved};
use crate::transform::lower::{Shared, Team, operation};
use crate::transform::sides::PerSide;
use crate::transform::step::Step;

/// Threads of a workgroup.
const THREADS: usize = 64;

/// The text of the first parallel loop of a program whose data is `f32`.
fn wgsl(program: &Program) -> String {
    let par = program.body.iter().find_map(|stmt| if let Source::Par(par) = stmt { Some(par) } else { None });
    let par = par.unwrap();
    let mut text = String::new();
    for (k, array) in program.arrays.iter().enumerate() {
        let _ = writeln!(
            text,
            "@group(0) @binding({k}) var<storage, read_write> a{k}: array<{}>;",
            wgsl_type(Ty::One(array.ty))
        );
    }
    let (extents, scalars) = (program.arrays.len(), program.arrays.len() + 1);
    let _ = writeln!(text, "@group(0) @binding({extents}) var<storage, read> extents: array<i32>;");
    let _ = writeln!(text, "@group(0) @binding({scalars}) var<storage, read> scalars: array<f32>;");
    let _ = writeln!(text, "@compute @workgroup_size({THREADS})");
    let _ = writeln!(text, "fn main(@builtin(global_invocation_id) id: vec3<u32>) {{");
    for stmt in &program.body {
        if let Source::Let(v) = stmt
            && !matches!(program.op(*v), Op::Literal(_))
        {
            let value = expr(program, &operation(program, &Default::default(), *v));
            let _ = writeln!(text, "let {} = {value};", Name::value(*v));
        }
    }
    domain(program, par, &mut text);
    block(program, &iteration(program, par), &mut text);
    text.push_str("}\n");
    text
}

/// The steps of the target, in order.
const WGSL: &[Step] =
    &[Step::Lower, Step::WithoutChecks, Step::Remainders, Step::Predicate, Step::SinkStores];

/// An iteration, in the form that these steps make of it.
fn iteration(program: &Program, par: &Par) -> Body {
    let (inside, shared) = (values_inside(par), Shared::default());
    let facts = verify(program).unwrap();
    let proof =
        Prover { program, facts: &facts, inside: &inside }.proof(par).expect("the sketch has no checks");
    let it = Iterations { par, shared: &shared, team: Team::Alone };
    let mut forms = Forms::of(program, &facts, WGSL);
    forms.proved_form(&it, Proved::wide(&proof), (&PerSide::default(), 1), &FarFromBoundaries::new())
}

/// The variables of the iteration that a thread takes, if there is one for it.
fn domain(program: &Program, par: &Par, out: &mut String) {
    let at = |v: ValueId| expr(program, &crate::transform::lower::operand(program, v));
    let _ = writeln!(out, "var rest = i32(id.x);");
    for range in par.ranges.iter().rev() {
        let (from, to, v) = (at(range.from), at(range.to), Name::value(range.var));
        let _ = writeln!(out, "let e_{v} = max({to} - {from}, 1);");
        let _ = writeln!(out, "let {v} = {from} + rest % e_{v};");
        let _ = writeln!(out, "rest = rest / e_{v};");
        let _ = writeln!(out, "if {v} >= {to} {{ return; }}");
    }
    let _ = writeln!(out, "if rest > 0 {{ return; }}");
}

/// The depth of recursion is that of nesting in the source.
fn block(program: &Program, body: &Body, out: &mut String) {
    let at = |e: &Expr| expr(program, e);
    for stmt in body {
        let _ = match stmt {
            Stmt::Let { name, ty, value } => writeln!(out, "let {name}: {} = {};", wgsl_type(*ty), at(value)),
            Stmt::Declare { name, ty, value } => {
                writeln!(out, "var {name}: {} = {};", wgsl_type(*ty), at(value))
            }
            Stmt::Assign { name, value, .. } => writeln!(out, "{name} = {};", at(value)),
            Stmt::Load { name, ty, element: e, when: Some(when) } => {
                let t = wgsl_type(*ty);
                let _ = writeln!(out, "var {name} = {t}(1);");
                writeln!(out, "if {} {{ {name} = {}; }}", at(when), element(program, e))
            }
            Stmt::Load { name, ty, element: e, when: None } => {
                writeln!(out, "let {name}: {} = {};", wgsl_type(*ty), element(program, e))
            }
            Stmt::Store { element: e, ty, how, value, more, when, .. } => {
                let place = element(program, e);
                let value = match how {
                    Some(how) => [value]
                        .into_iter()
                        .chain(more)
                        .fold(place.clone(), |sum, term| combined(*how, *ty, &sum, &at(term))),
                    None => at(value),
                };
                match when {
                    Some(when) => writeln!(out, "if {} {{ {place} = {value}; }}", at(when)),
                    None => writeln!(out, "{place} = {value};"),
                }
            }
            Stmt::If { condition, then, otherwise } => {
                let _ = writeln!(out, "if {} {{", at(condition));
                block(program, then, out);
                let _ = writeln!(out, "}} else {{");
                block(program, otherwise, out);
                writeln!(out, "}}")
            }
            Stmt::Loop(Loop { kind: LoopKind::Counted { variable: v, from, to }, body, .. }) => {
                let _ = writeln!(out, "for (var {v} = {}; {v} < {}; {v}++) {{", at(from), at(to));
                block(program, body, out);
                writeln!(out, "}}")
            }
            Stmt::Poll => Ok(()),
            other => panic!("the sketch has no {other:?}"),
        };
    }
}

fn combined(how: Combine, ty: Ty, element: &str, value: &str) -> String {
    assert_eq!((how, ty), (Combine::Add, Ty::One(Type::F32)), "the sketch adds");
    format!("({element} + {value})")
}

fn wgsl_type(ty: Ty) -> &'static str {
    match ty {
        Ty::One(Type::F32) => "f32",
        Ty::One(Type::I32 | Type::Index) | Ty::Narrow => "i32",
        Ty::One(Type::U32) => "u32",
        Ty::One(Type::Bool) => "bool",
        other => panic!("WGSL has no {other}"),
    }
}

fn element(program: &Program, e: &Element) -> String {
    let a = e.array.index();
    let flat = e.index().iter().enumerate().fold(String::new(), |at, (k, index)| match k {
        0 => expr(program, index),
        _ => format!("({at} * {} + {})", extent(program, a, k), expr(program, index)),
    });
    format!("a{a}[{flat}]")
}

fn extent(program: &Program, array: usize, k: usize) -> String {
    format!("extents[{}]", program.extents_per_array() * array + k)
}

/// The depth of recursion is that of the expression.
fn expr(program: &Program, e: &Expr) -> String {
    let at: Vec<String> = e.operands().iter().map(|e| expr(program, e)).collect();
    match e {
        Expr::Literal(literal) => number(*literal),
        Expr::Variable(name) => name.to_string(),
        Expr::Scalar(s, _) => format!("scalars[{}]", s.index()),
        Expr::Extent(array, k) => extent(program, array.index(), *k),
        Expr::Unary(Unary::Neg, ..) => format!("(-{})", at[0]),
        Expr::Unary(Unary::Not, ..) => format!("(!{})", at[0]),
        Expr::Unary(Unary::Norm, ..) => format!("sqrt({})", at[0]),
        Expr::Unary(op, ..) => format!("{}({})", format!("{op:?}").to_lowercase(), at[0]),
        Expr::Binary(op, ..) => {
            let sign = match op {
                Binary::Add => '+',
                Binary::Sub => '-',
                Binary::Mul => '*',
                Binary::Div => '/',
                Binary::Rem => '%',
                Binary::And => '&',
                Binary::Or => '|',
                Binary::Xor => '^',
                other => return format!("{}({}, {})", format!("{other:?}").to_lowercase(), at[0], at[1]),
            };
            format!("({} {sign} {})", at[0], at[1])
        }
        Expr::Compare(op, ..) => format!("({} {} {})", at[0], sign(*op), at[1]),
        Expr::Select(..) => format!("select({}, {}, {})", at[2], at[1], at[0]),
        Expr::Fma(..) => format!("fma({})", at.join(", ")),
        Expr::Cast { to, .. } => format!("{}({})", wgsl_type(*to), at[0]),
        Expr::Math(function, ..) => format!("{}({})", function.name(), at.join(", ")),
        Expr::All(_) => format!("({})", at.join(" && ")),
        other => panic!("the sketch has no {other:?}"),
    }
}

fn number(literal: Literal) -> String {
    match literal.ty() {
        Type::F32 => format!("{:?}f", literal.to_f64()),
        Type::Bool => (literal.bits() != 0).to_string(),
        _ => literal.to_i64().unwrap().to_string(),
    }
}

/// Compares the text of a loop, and has it parsed and validated.
fn check(text: &str, expected: Expect) {
    let program = parse(text).unwrap();
    verify(&program).unwrap();
    let text = wgsl(&program);
    expected.assert_eq(&text);
    let module =
        naga::front::wgsl::parse_str(&text).unwrap_or_else(|why| panic!("{}", why.emit_to_string(&text)));
    let everything = naga::valid::ValidationFlags::all();
    let mut validator = naga::valid::Validator::new(everything, naga::valid::Capabilities::empty());
    validator.validate(&module).unwrap_or_else(|why| panic!("{}", why.emit_to_string(&text)));
    assert_eq!(module.entry_points.len(), 1);
}

#[test]
fn a_pointwise_loop_is_wgsl() {
    check(
        "program p(x: &Array1<f32>, y: &mut Array1<f32>, a: f32) {
    for i in par(0..x.len()) {
        y[i] += a * x[i].tanh();
    }
}
",
        expect![[r#"
            @group(0) @binding(0) var<storage, read_write> a0: array<f32>;
            @group(0) @binding(1) var<storage, read_write> a1: array<f32>;
            @group(0) @binding(2) var<storage, read> extents: array<i32>;
            @group(0) @binding(3) var<storage, read> scalars: array<f32>;
            @compute @workgroup_size(64)
            fn main(@builtin(global_invocation_id) id: vec3<u32>) {
            let v0 = scalars[0];
            let v2 = extents[0];
            var rest = i32(id.x);
            let e_v3 = max(v2 - 0, 1);
            let v3 = 0 + rest % e_v3;
            rest = rest / e_v3;
            if v3 >= v2 { return; }
            if rest > 0 { return; }
            let v4: f32 = a0[v3];
            let v5: f32 = tanh(v4);
            let v6: f32 = (v0 * v5);
            let old1: f32 = a1[v3];
            a1[v3] = (old1 + v6);
            }
        "#]],
    );
}

#[test]
fn a_stencil_with_a_boundary_is_wgsl() {
    check(
        "program p(x: &Array2<f32>, y: &mut Array2<f32>) {
    for (i, j) in par(0..x.dim(0), 0..x.dim(1)) {
        let mut s = x[[i, j]] * -4.0f32;
        if i > 0 {
            s = s + x[[i - 1, j]];
        }
        for k in 0..3 {
            s = s * 0.5f32;
        }
        y[[i, j]] = s;
    }
}
",
        expect![[r#"
            @group(0) @binding(0) var<storage, read_write> a0: array<f32>;
            @group(0) @binding(1) var<storage, read_write> a1: array<f32>;
            @group(0) @binding(2) var<storage, read> extents: array<i32>;
            @group(0) @binding(3) var<storage, read> scalars: array<f32>;
            @compute @workgroup_size(64)
            fn main(@builtin(global_invocation_id) id: vec3<u32>) {
            let v1 = extents[0];
            let v3 = extents[1];
            var rest = i32(id.x);
            let e_v5 = max(v3 - 0, 1);
            let v5 = 0 + rest % e_v5;
            rest = rest / e_v5;
            if v5 >= v3 { return; }
            let e_v4 = max(v1 - 0, 1);
            let v4 = 0 + rest % e_v4;
            rest = rest / e_v4;
            if v4 >= v1 { return; }
            if rest > 0 { return; }
            let v6: f32 = a0[(v4 * extents[1] + v5)];
            let v8: f32 = (v6 * -4.0f);
            var l0: f32 = v8;
            let v10: bool = (v4 > 0);
            let m2: bool = v10;
            let v11: f32 = l0;
            let v13: i32 = (v4 - 1);
            var v14 = f32(1);
            if m2 { v14 = a0[(v13 * extents[1] + v5)]; }
            let v15: f32 = (v11 + v14);
            l0 = select(l0, v15, m2);
            for (var v18 = 0; v18 < 3; v18++) {
            let v19: f32 = l0;
            let v21: f32 = (v19 * 0.5f);
            l0 = v21;
            }
            let v22: f32 = l0;
            a1[(v4 * extents[5] + v5)] = v22;
            }
        "#]],
    );
}
