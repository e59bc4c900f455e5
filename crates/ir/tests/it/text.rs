//! The text of a program: all that is printed can be read, and what cannot be read is an error that says where.

use std::sync::Arc;

use ebbtide_ir::*;
use expect_test::{Expect, expect};

/// A text that prints as it was read, by itself and in programs that are read again.
#[track_caller]
fn round_trip(text: &str, outside: &Outside) -> Program {
    let program = parse_with(text, outside).unwrap_or_else(|why| panic!("{why}\n{text}"));
    for (printed, read) in program.to_string().lines().zip(text.lines()) {
        assert_eq!(printed, read);
    }
    assert_eq!(program.to_string(), text);
    let again = parse_with(&program.to_string(), &Outside::of(&program)).unwrap();
    assert_eq!(again.hash(), program.hash());
    program
}

/// A program with every statement that sources have.
const SOURCE: &str = r#"program shop::all(u: &mut Array1<f64>, w.pos: &mut Array2<f32>, flags: &Array1<bool>, out: &mut Array1<i32>, count: &mut Array0<i32>, n: usize, seed: i64, pair.0: f64) {
    let mut t = Array2::<f32>::zeros([n, w.pos.dim(1)]);
    #[requires(n < 7, u, written, read)]
    for i in par(0..n) {
        u[i] = u[i + 1] * -1.0 + (-pair.0).abs() - -(1.5);
        u[0].min_assign(u[i].mul_add(2.0, inf));
    }
    #[proved]
    #[relaxed] for (i_2, j) in par(0..n, 1..w.pos.dim(1)) {
        let x = w.pos[[i_2, j]];
        let v9 = select(x < 0.5f32, x, x.sqrt());
        w.pos[[i_2, j]] = (v9 + v9) as f64 as f32;
        u[i_2] += rand::<f64>(seed, (i_2 * 3 + j) as i64).powf(2.0);
        let mut acc = 0u32;
        for k in 0..j {
            acc = ((acc << 1u32 ^ 3u32) & !acc) | 5u32;
            if acc % 7u32 == 0u32 { break; }
        }
        t[[i_2, j]].max_assign(acc as f32);
    }
    assert!(n > 0, "n is \"positive\"", "or not");
    let mut r = 1.0;
    #[reverse(revolve = 3)]
    while {
        r = r * 0.5;
        r > 1e-7
    } {
        if flags[0] {
            fill(u, r);
        } else {
            copy(u, u);
        }
        if false {
            println!("r = {:8.3e}, {{u}} = {} {}", r, u[0], (u[1], u[2] + 1.0));
        }
    }
    loop {
        #[checkpoint(Stage::Solve, yield_on = count, undo = [u, w.pos])] {
            compact(flags, out, count);
        }
        #[checkpoint(-3, undo)] {
        }
        if count[[]] >= 3 as i32 { break; }
    }
    /* inner */ {
        let mut spare = Array1::<f64>::zeros([u.len()]);
        scan(u, spare);
        add_scan_back(u, spare);
        swap(u, spare);
    }
    matmul(t, transposed(w.pos), w.pos);
}
"#;

/// A program with every statement that autodiff alone makes.
const DRIVEN: &str = r#"#[unknown_shapes]
#[entered_at_any_label]
driven program all(u: &Array1<f64>, steps: usize, d_u: &mut Array1<f64>) {
    let mut kept = Array1::<f64>::undefined([u.len()]);
    let mut u' = Array1::<f64>::zeros([u.len()]);
    copy(u, u');
    #[reverse(online = 4)]
    forward loop 3 over unknown carrying [u'] keeping [d_u] in pieces from..to until reached, ended {
      advance:
        let mut reached = from;
        let mut ended = false;
        while reached < to {
            reached = reached + 1;
        }
      record:
        let mut reached = from;
        let mut ended = false;
        let u_old = push(u');
        #[holds(steps > 1, u', written, added)]
        for i in par(0..u'.len()) {
            u'[i] = u_old[i] * 2.0;
        }
        push(u');
    }
    forward loop 1 over 0..steps carrying [] in pieces from_2..to_2 {
      advance:
      record:
    }
    #[checkpoint(Stage::`so lve`, yield_on = d_u, region = 2)] {
    }
    change what the host changed at region 2;
    undo what the host changed at region 2;
    take back the shapes that the host changed at region 2;
    backward loop 1 {
    }
    backward loop 3 {
        for t in from..to {
            pop(u');
            #[unproved]
            for i_2 in par(0..u'.len()) {
                claim(u'[i_2], u');
                d_u[i_2] += NaN;
            }
        }
    }
}
"#;

#[test]
fn every_statement_of_sources_is_read_as_it_is_printed() {
    round_trip(SOURCE, &Outside::default());
}

#[test]
fn every_statement_of_generated_programs_is_read_as_it_is_printed() {
    let program = round_trip(DRIVEN, &Outside::default());
    assert!(program.driven && program.swapped == SwappedShapes::Unknown);
    assert_eq!((program.loops, program.regions), (4, 3), "loops that are swept keep their numbers");
}

#[test]
fn operations_and_rules_are_known_by_name() {
    let text = "program p(x: &Array1<f64>, y: &mut Array1<f64>, k: usize) {
    blur(x, &mut y, k + 1);
    `swap`(&mut y);
    /* relax(&mut y, k * 2), adjoint = relax_adjoint, saved = [0] */ {
        fill(y, 1.0);
    }
}
";
    let error = parse(text).unwrap_err();
    assert_eq!(
        error.to_string(),
        "line 2, column 10: there is no operation `blur` of the host: give it to `parse_with`"
    );
    let mut outside = Outside::default();
    for name in ["blur", "swap"] {
        let work = Work::Host(Arc::new(|_| Ok(())));
        outside.operation(Arc::new(Operation { name: name.to_string(), work, rules: Rules::none() }));
    }
    outside.rule(Rule {
        name: "relax_adjoint",
        build: || parse("program r() {}").map_err(|e| panic!("{e}")),
        rules: Rules::none,
    });
    let program = round_trip(text, &outside);
    let Some(Stmt::Library(call)) = program.body.iter().find(|s| matches!(s, Stmt::Library(_))) else {
        panic!()
    };
    assert_eq!((call.reads.len(), call.writes.len(), call.arguments.len()), (1, 1, 3));
}

#[test]
fn literals_keep_their_bits() {
    let odd = [
        Literal::from(-0.0),
        Literal::from(f64::MIN_POSITIVE / 3.0),
        Literal::from(f64::NAN),
        Literal::from(-f64::NAN),
        Literal::from_bits(Type::F64, 0x7ff0_0000_0000_0001),
        Literal::from(f64::NEG_INFINITY),
        Literal::from(1e300),
        Literal::from(f32::MAX),
        Literal::from(-f32::NAN),
        Literal::from(f32::INFINITY),
        Literal::from(i32::MIN),
        Literal::from(i64::MIN),
        Literal::from(u32::MAX),
        Literal::from(true),
        Literal::index(i64::MIN),
        Literal::index(i64::MAX),
        Literal::from(0.1f32),
    ];
    for literal in odd {
        let text = format!("program p() {{\n    let mut x = {literal};\n}}\n");
        let program = parse(&text).unwrap_or_else(|why| panic!("{why}\n{text}"));
        let Some(Stmt::Declare(_, v)) = program.body.last() else { panic!("{text}") };
        assert_eq!(program.literal(*v), Some(literal), "{text}");
        assert_eq!(program.to_string(), text);
    }
}

/// The negation of a literal is not the literal of the negated number, and `-x.abs()` is not `(-x).abs()`.
#[test]
fn signs_belong_to_what_they_stand_before() {
    let mut b = Builder::new("signs");
    let x = b.array("x", Type::F64, 1, Access::Write);
    let (plus, minus) = (b.literal(Literal::from(1.0)), b.literal(Literal::from(-1.0)));
    let values = [
        b.unary(Unary::Neg, plus),
        b.unary(Unary::Neg, minus),
        b.unary(Unary::Abs, minus),
        b.binary(Binary::Sub, minus, minus),
        b.cast(minus, Type::F64),
    ];
    let abs = b.unary(Unary::Abs, plus);
    let all = values.into_iter().chain([b.unary(Unary::Neg, abs)]);
    for (k, v) in all.enumerate() {
        let k = b.literal(Literal::index(k as i64));
        b.store(x, &[k], v);
    }
    let program = b.finish().unwrap();
    expect![[r#"
        program signs(x: &mut Array1<f64>) {
            x[0] = -(1.0);
            x[1] = -(-1.0);
            x[2] = (-1.0).abs();
            x[3] = -1.0 - -1.0;
            x[4] = -1.0 as f64;
            x[5] = -1.0.abs();
        }
    "#]]
    .assert_eq(&program.to_string());
    round_trip(&program.to_string(), &Outside::default());
}

/// Two things with one name are printed with two, a name that would be read as something else between backquotes.
#[test]
fn every_name_is_printed_so_that_it_is_read_as_itself() {
    let mut b = Builder::new("a name");
    let x = b.array("loop", Type::F64, 0, Access::Write);
    let y = b.array("x y", Type::F64, 0, Access::Write);
    let s = b.scalar("v4", Type::F64);
    let first = b.load(x, &[]);
    b.name(first, "v4");
    let local = b.local("x y", first);
    let other = b.local("x y", first);
    let (got, shared) = (b.get(local), b.binary(Binary::Add, s, s));
    b.store(y, &[], shared);
    b.store(y, &[], shared);
    b.set(other, got);
    b.set(other, first);
    let text = b.finish().unwrap().to_string();
    expect![[r#"
        program `a name`(`loop`: &mut Array0<f64>, `x y`: &mut Array0<f64>, v4: f64) {
            let v4_2 = `loop`[[]];
            let mut `x y_2` = v4_2;
            let mut `x y_3` = v4_2;
            let v2 = `x y_2`;
            let v3 = v4 + v4;
            `x y`[[]] = v3;
            `x y`[[]] = v3;
            `x y_3` = v2;
            `x y_3` = v4_2;
        }
    "#]]
    .assert_eq(&text);
    round_trip(&text, &Outside::default());
}

#[test]
fn an_expression_is_printed_in_pieces_before_it_is_too_deep_to_read() {
    let mut b = Builder::new("deep");
    let x = b.array("x", Type::F64, 0, Access::Write);
    let s = b.scalar("s", Type::F64);
    let mut v = s;
    for _ in 0..20_000 {
        v = b.binary(Binary::Mul, s, v);
    }
    b.store(x, &[], v);
    round_trip(&b.finish().unwrap().to_string(), &Outside::default());
}

/// An arm that computes a literal alone shows nothing, and is read as no arm.
#[test]
fn an_arm_without_text_is_not_printed() {
    let mut b = Builder::new("arm");
    let x = b.array("x", Type::F64, 0, Access::Write);
    let c = b.scalar("c", Type::Bool);
    let one = b.literal(Literal::from(1.0));
    b.begin_if(c);
    b.store(x, &[], one);
    b.begin_else();
    b.literal(Literal::from(2.0));
    b.end_if();
    let text = b.finish().unwrap().to_string();
    assert!(!text.contains("else"), "{text}");
    round_trip(&text, &Outside::default());
}

fn refused(body: &str, expected: Expect) {
    let text = format!("program p(u: &mut Array1<f64>, n: usize) {{\n{body}\n}}\n");
    expected.assert_eq(&parse(&text).unwrap_err().to_string());
}

#[test]
fn errors_say_where_and_what_was_expected() {
    refused("u[0] = 1.0", expect!["line 3, column 1: expected `;`, found `}`"]);
    refused("u[0 = 1.0;", expect!["line 2, column 5: expected `]`, found `=`"]);
    refused("u[[0, 1]] = 1.0;", expect!["line 2, column 2: an array of rank 1 has 1 indices, not 2"]);
    refused("u[0] = w;", expect!["line 2, column 8: there is no `w` here"]);
    refused("u[0] = n.wobble();", expect!["line 2, column 10: there is no method `wobble` of 0 arguments"]);
    refused("n = 3;", expect!["line 2, column 1: expected a statement: a value is not assigned to"]);
    refused(
        "let mut a = 1;\nlet mut a = 2;",
        expect!["line 3, column 5: there is a variable `a` here already: take another name"],
    );
    refused(
        "if n < 3 { break; }",
        expect!["line 2, column 1: a `break` stands at the end of a loop, not here"],
    );
    refused(
        "#[proved] loop { if n < 3 { break; } }",
        expect!["line 2, column 11: expected a parallel loop after this attribute"],
    );
    refused("#[fast] loop { }", expect!["line 2, column 3: there is no attribute `fast`"]);
    refused(
        "u[0] = 1.5u32;",
        expect!["line 2, column 8: `1.5u32` is no number of a type that programs have"],
    );
    refused(
        "println!(\"{}\");",
        expect!["line 2, column 10: expected a `{…}` for each value, like `{}` or `{:8.3e}`"],
    );
    refused(
        "println!(\"x\");",
        expect!["line 2, column 1: a line is printed at the end of `if false { … }`"],
    );
    refused(
        "blur(u);",
        expect!["line 2, column 6: there is no operation `blur` of the host: give it to `parse_with`"],
    );
    refused("u[0] = \"", expect!["line 4, column 1: expected `\"`, found the end of the text"]);
    refused(
        "backward loop 4000000000 { }",
        expect!["line 2, column 15: expected the number of a loop that is less than 24"],
    );
    let many = |open: &str| format!("u[0] = {}", open.repeat(100_000));
    refused(&many("("), expect!["line 2, column 208: this is nested more than 200 levels deep"]);
    refused(&many("-"), expect!["line 2, column 208: this is nested more than 200 levels deep"]);
    refused(
        &many("u[").replace("u[0] = ", "u[0] = 0.0; u[0] = "),
        expect!["line 2, column 420: this is nested more than 200 levels deep"],
    );
    refused(
        &"loop {".repeat(100_000),
        expect!["line 2, column 1207: this is nested more than 200 levels deep"],
    );
}

/// Cut off, with tokens exchanged, dropped and doubled, with any character in any place: an error or a program, and what
/// can be read prints as something that can be read.
#[test]
fn a_changed_text_is_read_or_refused() {
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    let mut below = |n: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % n.max(1)
    };
    let words = [
        "{",
        "}",
        "(",
        ")",
        "[",
        "]",
        ";",
        "..",
        "as",
        "let",
        "mut",
        "if",
        "for",
        "loop",
        "n",
        "u",
        "-",
        "999999999999",
        "\"",
        "`",
        "/*",
        "#[",
        "é",
        "0",
        "forward loop 7",
        "region = 9",
    ];
    let (mut read, mut refused) = (0, 0);
    for round in 0..4000 {
        let text = [SOURCE, DRIVEN][round % 2];
        let mut pieces: Vec<&str> = text.split_inclusive([' ', '(', ')', '[', ']', ',']).collect();
        for _ in 0..below(3) + 1 {
            let (at, other) = (below(pieces.len()), below(pieces.len()));
            match below(5) {
                0 => pieces.truncate(at),
                1 => pieces.swap(at, other),
                2 => pieces.insert(at, words[below(words.len())]),
                3 if !pieces.is_empty() => drop(pieces.remove(at)),
                _ if !pieces.is_empty() => pieces[at] = words[below(words.len())],
                _ => {}
            }
        }
        match parse(&pieces.concat()) {
            Ok(program) => {
                read += 1;
                let text = program.to_string();
                let again = parse(&text).unwrap_or_else(|why| panic!("{why}\n{text}"));
                assert_eq!(again.to_string(), text);
                let _ = verify(&program);
            }
            Err(_) => refused += 1,
        }
    }
    assert!(read > 100 && refused > 1000, "{read} read, {refused} refused: what is tested?");
}
