//! Real conflicts are refused with two iterations, the element that they share, both lines, and advice for the case.

use ebbtide::prelude::*;

/// The build error of a program, with the names of files left out.
fn refusal<P: ebbtide::__lang::Source>(program: Program<P>) -> String {
    let error = program.ir().expect_err("the program has a race").to_string();
    error.replace("crates/ebbtide/tests/accepted/refusals.rs:", "line ")
}

/// The line of this file that holds a text first.
fn line(text: &str) -> usize {
    include_str!("refusals.rs").lines().position(|line| line.contains(text)).unwrap() + 1
}

fn check(error: &str, parts: &[&str]) {
    for part in parts {
        assert!(error.contains(part), "`{part}` is not in: {error}");
    }
}

#[program]
fn smooth(u: &mut Array1<f64>) {
    for i in par(1..u.len()) {
        u[i] = 0.5 * u[i - 1];
    }
}

#[test]
fn c57_neighbours_are_refused_with_a_witness_and_swap() {
    let error = refusal(smooth());
    let at = line("u[i] = 0.5 * u[i - 1]");
    let places = format!("written at line {at}:9 and read at line {at}:22");
    check(
        &error,
        &["iterations [1] and [2]", "touch element [1] of `u`", "`u.len()` is 3", &places, "`swap`"],
    );
}

#[program]
fn one_colour(u: &mut Array1<f64>) {
    for i in par(1..u.len() - 1) {
        if i % 2 == 0 {
            u[i] = u[i - 2] + 1.0;
        }
    }
}

#[test]
fn c57_a_colour_that_reads_itself_is_advised_to_copy() {
    let error = refusal(one_colour());
    check(&error, &["iterations [2] and [4]", "element [2] of `u`", "`copy` `u` before the loop"]);
    assert!(!error.contains("swap"), "{error}");
}

#[program]
fn to_data(a: &mut Array1<f64>, k: &Array1<i32>) {
    for i in par(0..k.len()) {
        a[k[i] as usize] = 1.0;
    }
}

#[test]
fn c57_data_are_advised_to_scatter_uniquely() {
    check(&refusal(to_data()), &["may touch element", "`scatter_unique(a, k, x)`"]);
}

#[program]
fn histogram(a: &mut Array1<f64>, k: &Array1<i32>) {
    for i in par(0..k.len()) {
        a[k[i] as usize] = a[k[i] as usize] + 1.0;
    }
}

#[test]
fn c57_a_sum_is_advised_to_be_one() {
    check(&refusal(histogram()), &["may touch element", "`a[…] += …`"]);
}

#[program]
fn corners(u: &mut Array2<f64>) {
    let n = u.dim(0);
    for i in par(0..n) {
        u[[0, i]] = 1.0;
        u[[i, n - 1]] = 2.0;
    }
}

#[test]
fn c57_a_corner_that_two_sides_share_is_refused() {
    check(&refusal(corners()), &["iterations [0] and [1]", "element [0, 1] of `u`", "`u.dim(0)` is 2"]);
}

#[program]
fn read_back(u: &mut Array1<f64>, total: &mut Array0<f64>) {
    for i in par(0..u.len()) {
        total[[]] += u[i];
        u[i] = total[[]];
    }
}

#[test]
fn c57_a_sum_is_not_read_while_it_is_taken() {
    check(&refusal(read_back()), &["`total`", "may not be read"]);
}
