//! What is found when a program is first used.

use ebbtide::prelude::*;
use expect_test::{Expect, expect};

/// Compares a build error, with the names of files left out and places relative to nothing.
fn check_error<P: ebbtide::__lang::Source>(program: Program<P>, expected: Expect) {
    let error = program.ir().expect_err("the program is not valid").to_string();
    let lines = error.lines().map(|line| match line.split_once(": ") {
        Some((place, rest)) if place.contains(".rs:") => format!("  {rest}"),
        _ => line.to_string(),
    });
    let text = lines.collect::<Vec<_>>().join("\n");
    let mut parts = text.split("crates/ebbtide/tests/it/build_errors.rs:");
    let first = parts.next().unwrap_or_default().to_string();
    let rest = |part: &str| {
        let place = |c: char| c.is_ascii_digit() || c == ':';
        format!("…{}", part.trim_start_matches(place))
    };
    expected.assert_eq(&parts.fold(first, |all, part| all + &rest(part)));
}

#[program]
fn neighbours(u: &mut Array1<f64>) {
    for i in par(1..u.len()) {
        u[i] = u[i - 1];
    }
}

#[test]
fn a_race_is_a_build_error() {
    check_error(
        neighbours(),
        expect![[r#"
        build error: program `neighbours` is not valid:
          a race: iterations [1] and [2] of the parallel loop touch element [1] of `u` where `u.len()` is 3: it is written at … and read at …; read `u` and write another array, and `swap` the two after the loop (law 7)
          the laws: https://github.com/ebbtide/ebbtide/blob/main/docs/src/laws.md"#]],
    );
}

#[test]
fn a_build_error_names_line_and_column_of_the_users_own_code() {
    let error = neighbours().ir().expect_err("the program is not valid").to_string();
    let source = include_str!("build_errors.rs");
    let (line, text) = source.lines().enumerate().find(|(_, l)| l.contains("u[i] = u[i - 1]")).unwrap();
    let column = text.find("u[i] =").unwrap() + 1;
    assert!(error.contains(&format!("build_errors.rs:{}:{column}: a race", line + 1)), "{error}");
}

#[program]
fn ping(x: &mut Array0<f64>) {
    x[[]] += 1.0;
    pong(x);
}

#[program]
fn pong(x: &mut Array0<f64>) {
    ping(x);
}

#[program]
fn calls_a_cycle(x: &mut Array0<f64>) {
    ping(x);
}

#[test]
fn recursion_is_a_build_error_that_names_the_cycle() {
    check_error(
        ping(),
        expect![[r#"
        build error: program `ping` is not valid:
          recursion: `ping` calls `pong` calls `ping`: a program has no stack, write a loop instead (law 1)
          the laws: https://github.com/ebbtide/ebbtide/blob/main/docs/src/laws.md"#]],
    );
    check_error(
        calls_a_cycle(),
        expect![[r#"
        build error: program `calls_a_cycle` is not valid:
          recursion: `ping` calls `pong` calls `ping`: a program has no stack, write a loop instead (law 1)
          the laws: https://github.com/ebbtide/ebbtide/blob/main/docs/src/laws.md"#]],
    );
}

#[func]
fn factorial(n: i64) -> i64 {
    if n < 2 { 1 } else { n * factorial(n - 1) }
}

#[program]
fn recursive_function(x: &mut Array0<i64>) {
    x[[]] = factorial(x[[]]);
}

#[test]
fn recursion_of_functions_too() {
    assert_eq!(factorial(5), 120);
    check_error(
        recursive_function(),
        expect![[r#"
        build error: program `recursive_function` is not valid:
          recursion: `factorial` calls `factorial`: a program has no stack, write a loop instead (law 1)
          the laws: https://github.com/ebbtide/ebbtide/blob/main/docs/src/laws.md"#]],
    );
}

mod other {
    use ebbtide::prelude::*;

    #[program]
    pub fn same_name(x: &mut Array0<f64>) {
        x[[]] *= 2.0;
    }
}

#[program]
fn same_name(x: &mut Array0<f64>) {
    other::same_name(x);
}

#[test]
fn two_programs_of_one_name_are_no_recursion() {
    assert!(same_name().ir().is_ok());
}

#[program]
fn add(a: &mut Array1<f64>, b: &Array1<f64>) {
    for i in par(0..a.len()) {
        a[i] += b[i];
    }
}

#[program]
fn doubled(x: &mut Array1<f64>) {
    add(x, x);
}

#[test]
fn one_array_bound_to_two_parameters_of_which_one_is_written() {
    check_error(
        doubled(),
        expect![[r#"
        build error: program `doubled` is not valid:
          `x` is bound to the parameters `a` and `b` of `add`, and one of them is written: `copy` it to another array first (law 2)
          the laws: https://github.com/ebbtide/ebbtide/blob/main/docs/src/laws.md"#]],
    );
}

#[derive(Label)]
enum Stage {
    One,
}

#[program]
fn same_label_twice(x: &mut Array0<f64>) {
    #[checkpoint(Stage::One)]
    {
        x[[]] += 1.0;
    }
    #[checkpoint(Stage::One)]
    {
        #[checkpoint(Stage::One)]
        {
            x[[]] += 1.0;
        }
    }
}

#[test]
fn c35_labels_are_unique_and_regions_do_not_nest() {
    check_error(
        same_label_twice(),
        expect![[r#"
        build error: program `same_label_twice` is not valid:
          label `Stage::One` is used twice in one program (law 9)
          region `Stage::One` stands inside region `Stage::One`: regions do not nest (law 9)
          label `Stage::One` is used twice in one program (law 9)
          the laws: https://github.com/ebbtide/ebbtide/blob/main/docs/src/laws.md"#]],
    );
}

#[program]
fn shape_of_data(x: &mut Array1<i32>) {
    let mut t = Array1::<f64>::zeros([x[0] as usize]);
    t[0] = 1.0;
    x[0] = t[0] as i32;
}

#[test]
fn a_temporary_shaped_by_data_is_refused() {
    check_error(
        shape_of_data(),
        expect![[r#"
        build error: program `shape_of_data` is not valid:
          the shape of `t` may depend on shapes and scalar arguments alone (law 2)
          the laws: https://github.com/ebbtide/ebbtide/blob/main/docs/src/laws.md"#]],
    );
}

#[program]
fn outer_local(x: &mut Array1<f64>) {
    let mut s = 0.0;
    for i in par(0..x.len()) {
        s += x[i];
    }
    x[0] = s;
}

#[test]
fn a_local_of_the_code_around_cannot_be_set_in_parallel() {
    check_error(
        outer_local(),
        expect![[r#"
        build error: program `outer_local` is not valid:
          `s` belongs to the code around the parallel loop, and its iterations would race to set it: declare it inside, or combine into an array element with `+=` (law 7)
          the laws: https://github.com/ebbtide/ebbtide/blob/main/docs/src/laws.md"#]],
    );
}

#[program]
fn program_in_parallel(x: &mut Array1<f64>, y: &mut Array0<f64>) {
    for _i in par(0..x.len()) {
        same_name(y);
    }
}

#[test]
fn a_program_is_not_called_inside_a_parallel_loop() {
    check_error(
        program_in_parallel(),
        expect![[r#"
        build error: program `program_in_parallel` is not valid:
          a call of a program cannot stand inside a parallel loop (law 6)
          a call of a program cannot stand inside a parallel loop (law 6)
          the laws: https://github.com/ebbtide/ebbtide/blob/main/docs/src/laws.md"#]],
    );
}

#[test]
fn a_program_that_cannot_be_built_prints_why() {
    assert!(doubled().to_string().starts_with("build error: program `doubled` is not valid"));
}
