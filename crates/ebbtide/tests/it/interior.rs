//! The interior of a parallel loop: where indices are away from all boundaries, its code has no division, no check and no
//! branch, and runs in vectors.

use ebbtide::prelude::*;
use expect_test::{Expect, expect};

/// Compares the vector loop of a program that has one, whatever the width of this machine's vectors.
fn check(source: Result<String, ebbtide::Error>, expected: Expect) {
    let source = source.unwrap();
    let head = "for (const i64 whole = j + ((hi - j) & -";
    let begin = source.find(head).expect("a loop in vectors");
    let end = begin + source[begin..].find("if (j < hi").expect("its last, shorter vector");
    let width: String = source[begin + head.len()..].chars().take_while(char::is_ascii_digit).collect();
    let text = source[begin..end].replace(&format!("x{width}"), "xN");
    let text = text.replace(&format!("& -{width}"), "& -N").replace(&format!("j += {width}"), "j += N");
    for word in ["%", "eb_rem", "if (", "?", "eb_fault", "eb_min", "eb_max", "op_select"] {
        assert!(!text.contains(word), "`{word}` in the interior:\n{text}");
    }
    expected.assert_eq(&text);
}

fn source<P: ebbtide::__lang::Source>(program: Program<P>) -> Result<String, ebbtide::Error> {
    Ok(program.compile(&crate::cpu())?.source().unwrap_or_default().to_string())
}

#[program]
fn periodic(u: &Array1<f64>, out: &mut Array1<f64>) {
    let n = u.len();
    for i in par(0..n) {
        out[i] = u[(i + n - 1) % n] + u[(i + 1) % n];
    }
}

#[test]
fn indices_that_wrap_around_are_sums() {
    check(
        source(periodic()),
        expect![[r#"
        for (const i64 whole = j + ((hi - j) & -N); j < whole; j += N) {
        { const i64 v2 = j + 0;
        const f64xN v7 = eb_load_f64xN(a0 + (INT64_C(1) * v2 + w6));
        const f64xN v11 = eb_load_f64xN(a0 + (INT64_C(1) * v2 + w10));
        const f64xN v12 = (v7 + v11);
        eb_store_f64xN(a1 + (INT64_C(1) * v2 + 0), v12);
        }
        }
    "#]],
    );
}

#[program]
fn clamped(u: &Array1<f64>, out: &mut Array1<f64>) {
    let n = u.len();
    for i in par(0..n) {
        out[i] = u[(i - 1).max(0)] + u[(i + 2).min(n - 1)];
    }
}

#[test]
fn clamped_indices_are_sums() {
    check(
        source(clamped()),
        expect![[r#"
        for (const i64 whole = j + ((hi - j) & -N); j < whole; j += N) {
        { const i64 v2 = j + 0;
        const f64xN v7 = eb_load_f64xN(a0 + (INT64_C(1) * v2 + (0 - INT64_C(1))));
        const f64xN v13 = eb_load_f64xN(a0 + (INT64_C(1) * v2 + INT64_C(2)));
        const f64xN v14 = (v7 + v13);
        eb_store_f64xN(a1 + (INT64_C(1) * v2 + 0), v14);
        }
        }
    "#]],
    );
}

#[program]
fn bounded(u: &Array2<f64>, out: &mut Array2<f64>) {
    for (i, j) in par(0..u.dim(0), 0..u.dim(1)) {
        if j > 0 && j + 1 < u.dim(1) {
            out[[i, j]] = u[[i, j - 1]] + u[[i, j + 1]];
        } else {
            out[[i, j]] = 0.0;
        }
    }
}

#[test]
fn conditions_at_boundaries_are_decided() {
    check(
        source(bounded()),
        expect![[r#"
            for (const i64 whole = j + ((hi - j) & -N); j < whole; j += N) {
            { const i64 v5 = j + 0;
            const f64xN v15 = eb_load_f64xN(a0 + (v4 * d0_1 + (INT64_C(1) * v5 + (0 - INT64_C(1)))));
            const f64xN v18 = eb_load_f64xN(a0 + (v4 * d0_1 + (INT64_C(1) * v5 + INT64_C(1))));
            const f64xN v19 = (v15 + v18);
            eb_store_f64xN(a1 + (v4 * d1_1 + (INT64_C(1) * v5 + 0)), v19);
            }
            }
        "#]],
    );
}
