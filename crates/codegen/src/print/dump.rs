//! What the analyses decide of each loop, for people. Input: a segment; output: a few lines for each loop.
//!
//! `EBBTIDE_DUMP=kernel` prints it to standard error, and then the body of each form of each loop after each step that makes it
//! (`transform::forms`).

use std::collections::BTreeMap;
use std::fmt::Write as _;

use ebbtide_ir::{Block, Facts, Loop, Par, Program, Stmt, ValueId, walk};

use crate::analysis::assertions::{Around, assertions};
use crate::analysis::boundary_conditions::conditions_far_from_boundaries;
use crate::analysis::bounds_proof::Prover;
use crate::analysis::interchange::interchange;
use crate::analysis::interior::{Decide, Interior, interior};
use crate::analysis::names::values_inside;
use crate::analysis::row_form::{RowForm, VectorForm, row_form};
use crate::analysis::work::rows_together;
use crate::kernel::index_expr::IndexExpr;
use crate::kernel::machine::{Family, Target};
use crate::kernel::nest::Interiors;
use crate::kernel::show;

/// Shows the decisions about segments to somebody who wants to know why a loop has the form that it has.
pub(crate) fn dump(program: &Program, facts: &Facts, segments: &[&Block], machine: (Family, Target)) {
    let family = machine.0;
    if show::is_wanted() {
        for (k, block) in segments.iter().enumerate() {
            eprintln!(
                "// {}, segment {k}, {family:?}\n{}",
                program.name,
                decisions(program, facts, block, machine)
            );
        }
    }
}

/// The decisions about the loops of a segment.
fn decisions(program: &Program, facts: &Facts, block: &Block, machine: (Family, Target)) -> String {
    let (mut text, assertions) = (String::new(), assertions(program, block));
    walk(block, &mut |stmt| match stmt {
        Stmt::Loop(l) if machine.0 == Family::Cuda => text.push_str(&time_loop(program, facts, l)),
        Stmt::Par(par) => text.push_str(&parallel_loop((program, facts), par, &assertions, machine)),
        _ => {}
    });
    text
}

fn time_loop(program: &Program, facts: &Facts, l: &Loop) -> String {
    let where_it_runs = match interchange(program, facts, l) {
        Ok(plan) => match plan.iterations_as_one(l) {
            1 => "inside its parallel loops, unless the segment yields".to_string(),
            n => format!("inside its parallel loops, {n} iterations as one, unless the segment yields"),
        },
        Err(why) => format!("outside its parallel loops: {why}"),
    };
    format!("loop {}: {where_it_runs}\n", l.id.index())
}

fn parallel_loop(
    (program, facts): (&Program, &Facts),
    par: &Par,
    assertions: &BTreeMap<ValueId, Around>,
    (family, target): (Family, Target),
) -> String {
    let line = par.site.as_ref().map_or(String::new(), |site| format!(", line {}", site.line));
    let mut text = format!("parallel loop {}{line}\n", par.id.index());
    let inside = values_inside(par);
    let proof = Prover { program, facts, inside: &inside }.proof(par);
    let _ = match &proof {
        Some(proof) => {
            let tests: Vec<String> = proof.tests.iter().map(|test| show::test(program, test)).collect();
            writeln!(text, "  no checks where {}", tests.join(", "))
        }
        None => writeln!(text, "  no proof: an access is no sum of ranges, or an element is claimed"),
    };
    if family == Family::C {
        let asserts = |v: ValueId| assertions.contains_key(&v);
        let form = row_form((program, facts), par, &inside, &asserts, target.vector_bytes);
        show_interior(&mut text, program, &form.interior);
        show_rows(&mut text, &form);
    } else if proof.is_none() {
        show_interior(&mut text, program, &interior(program, par, &inside, Decide::RowsToo));
    }
    if family == Family::Cuda {
        let decided = conditions_far_from_boundaries(program, &inside, par);
        let decided: Vec<String> =
            decided.iter().map(|(v, holds)| format!("v{} is {holds}", v.index())).collect();
        if proof.is_some() && !decided.is_empty() {
            let _ = writeln!(text, "  a text of its own where {}", decided.join(", "));
        }
        let _ = writeln!(text, "  rows at once: {}", rows_together(program, par));
    }
    text
}

fn show_interior(text: &mut String, program: &Program, interior: &Interior) {
    let narrowings = interior.interval().narrowings;
    let narrowings: Vec<String> = narrowings.iter().map(|n| show::narrowing(program, n)).collect();
    let _ = writeln!(text, "  interior: all j where {}", narrowings.join(", "));
    for (v, holds) in &interior.decided {
        let _ = writeln!(text, "    v{} is {holds}", v.index());
    }
    for index in &interior.unproved {
        let index: Vec<String> =
            index.iter().map(|v| show::index(program, &IndexExpr::value(program, *v))).collect();
        let _ = writeln!(text, "    [{}] is checked", index.join(", "));
    }
}

/// How threads of a CPU take rows.
fn show_rows(text: &mut String, form: &RowForm) {
    let _ = match &form.vectors {
        Err(why) => writeln!(text, "  no vectors: {why}"),
        Ok(VectorForm { element, least: 0 | 1, .. }) => writeln!(text, "  vectors of {element:?}"),
        Ok(VectorForm { element, least, .. }) => {
            writeln!(text, "  vectors of {element:?}, or none in rows of fewer than {least} iterations")
        }
    };
    if form.exchanged.is_some() {
        let _ = writeln!(text, "  by columns: a row is along the first range");
    }
    if let Interiors::AtCornersOrAsOne(_) = form.interiors {
        let _ = writeln!(text, "  rows are one row where they lie one behind the other");
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
mod tests {
    use ebbtide_ir::{Access, Binary, Builder, Literal, Type, parse, verify};
    use expect_test::expect;

    use super::*;
    use crate::kernel::machine::Threads;

    /// `for t in 0..steps { for i in par(0..n) { w[i] = u[(i + 1) % n] } }`.
    fn periodic() -> Program {
        let mut b = Builder::new("periodic");
        let u = b.array("u", Type::F64, 1, Access::Read);
        let w = b.array("w", Type::F64, 1, Access::Write);
        let (steps, n) = (b.scalar("steps", Type::Index), b.dim(w, 0));
        let [zero, one] = [0, 1].map(|k| b.literal(Literal::index(k)));
        b.begin_for("t", zero, steps);
        let i = b.begin_par(&[("i", zero, n)])[0];
        let right = b.binary(Binary::Add, i, one);
        let right = b.binary(Binary::Rem, right, n);
        let x = b.load(u, &[right]);
        b.store(w, &[i], x);
        b.end_par();
        b.end_loop(None);
        b.finish().unwrap()
    }

    #[test]
    fn a_dump_says_what_is_decided_of_each_loop() {
        let program = periodic();
        let facts = verify(&program).unwrap();
        let target = Target { vector_bytes: 32, threads: Threads::Several };
        let shown = |family| decisions(&program, &facts, &program.body, (family, target));
        expect![[r#"
            parallel loop 0
              no checks where first0 >= 0, (first0 + 1) >= 0, ((first0 + 1) + v1) >= 0, (v1 - 1) >= 0, ((v1 + v1) - (end0 + 1)) >= 0, v1 <= u.0, end0 <= w.0, v1 is narrow
              interior: all j where 0 <= j + w7 < v1, j + 1 >= 0, 0 <= j + w7 < u.0, 0 <= j < w.0
              vectors of F64
        "#]]
        .assert_eq(&shown(Family::C));
        expect![[r#"
            loop 0: inside its parallel loops, 8 iterations as one, unless the segment yields
            parallel loop 0
              no checks where first0 >= 0, (first0 + 1) >= 0, ((first0 + 1) + v1) >= 0, (v1 - 1) >= 0, ((v1 + v1) - (end0 + 1)) >= 0, v1 <= u.0, end0 <= w.0, v1 is narrow
              rows at once: 1
        "#]]
        .assert_eq(&shown(Family::Cuda));
    }

    #[test]
    fn a_dump_says_how_rows_are_taken() {
        let shown = |body: &str| {
            let text = format!("program p(x: &mut Array2<f64>, m: &Array1<f64>) {{ {body} }}");
            let program = parse(&text).unwrap();
            let facts = verify(&program).unwrap();
            let lines = decisions(
                &program,
                &facts,
                &program.body,
                (Family::C, Target { vector_bytes: 64, threads: Threads::Several }),
            );
            lines.lines().skip(3).map(|line| format!("{}\n", line.trim())).collect::<String>()
        };
        let rows =
            |value: &str| shown(&format!("for (i, k) in par(0..x.dim(0), 0..3) {{ x[[i, k]] = {value}; }}"));
        expect![[r#"
            vectors of F64, or none in rows of fewer than 8 iterations
            rows are one row where they lie one behind the other
        "#]]
        .assert_eq(&rows("x[[i, k]] * 2.0"));
        expect![[r#"
            no vectors: rows are short
        "#]]
        .assert_eq(&rows("x[[i, k]] * m[i]"));
        expect![[r#"
            no vectors: they take longer than iterations one by one
        "#]]
        .assert_eq(&shown("for i in par(0..x.dim(0)) { x[[i, 0]] = x[[i, 1]] * m[i]; }"));
    }
}
