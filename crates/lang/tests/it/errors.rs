//! What the typed layer lets through and the laws refuse, in the words of the program.

use ebbtide_lang::emit::*;
use ebbtide_lang::{Arg, ArrayHandle, ByMut, ByRef, Cx, Field, Handle, Rules};
use ebbtide_runtime::{Array1, interpreter};
use expect_test::expect;

use crate::{at, flaws, launch, source};

type Row<B> = ArrayHandle<f64, 1, B>;

fn row<B: ebbtide_lang::Borrow>(cx: &Cx, name: &str) -> Row<B> {
    <Array1<f64> as Field>::declare(cx, name)
}

source!(NoDimension, "no_dimension", |cx| {
    let x: Row<ByRef> = row(cx, "x");
    dim(cx, x, 1);
});

source!(Race, "race", |cx| {
    let x: Row<ByMut> = row(cx, "x");
    let (zero, one, n) = (at(cx, 0), at(cx, 1), len(cx, x));
    let [i] = begin_par(cx, ["i"], [(zero, n)]);
    let next = add(cx, i, one);
    let value = load(cx, [next], x);
    store(cx, [i], writable(x), value);
    end_par(cx);
});

source!(SetInParallel, "set_in_parallel", |cx| {
    let x: Row<ByRef> = row(cx, "x");
    let (zero, n) = (at(cx, 0), len(cx, x));
    let total = local(cx, "total", lit(cx, 0.0));
    let [i] = begin_par(cx, ["i"], [(zero, n)]);
    let value = load(cx, [i], x);
    change(cx, &total, |old| add(cx, old, value));
    end_par(cx);
});

fn again(cx: &Cx) {
    let callee = Callee { path: "again", name: "again", rules: Rules::none(), saved: &[] };
    call_program(cx, callee, &[], || again(cx));
}

source!(Endless, "endless", |cx| {
    again(cx);
});

source!(Twice, "twice", |cx| {
    let x: Row<ByMut> = row(cx, "x");
    let mut behind = Vec::new();
    x.bound(&mut |b| behind.push(b));
    let callee = Callee { path: "both", name: "both", rules: Rules::none(), saved: &[] };
    call_program(cx, callee, &[("a", behind.clone()), ("b", behind)], || {});
});

#[test]
fn what_the_laws_refuse_is_said_in_the_words_of_the_program() {
    expect![[r#"
        `x` has rank 1: there is no dimension 1 (law 2)
    "#]]
    .assert_eq(&flaws::<NoDimension>());
    // It names both places in this file.
    let race = flaws::<Race>();
    let what =
        "a race: iterations [0] and [1] of the parallel loop touch element [1] of `x` where `x.len()` is 2";
    assert!(race.starts_with(what) && race.matches("tests/it/errors.rs:").count() == 2, "{race}");
    expect![[r#"
        `total` belongs to the code around the parallel loop, and its iterations would race to set it: declare it inside, or combine into an array element with `+=` (law 7)
    "#]].assert_eq(&flaws::<SetInParallel>());
    expect![[r#"
        recursion: `again` calls `again`: a program has no stack, write a loop instead (law 1)
    "#]]
    .assert_eq(&flaws::<Endless>());
    expect![[r#"
        `x` is bound to the parameters `a` and `b` of `both`, and one of them is written: `copy` it to another array first (law 2)
    "#]].assert_eq(&flaws::<Twice>());
}

source!(OutOfBounds, "out_of_bounds", |cx| {
    let x: Row<ByMut> = row(cx, "x");
    let (zero, one, n) = (at(cx, 0), at(cx, 1), len(cx, x));
    let end = add(cx, n, one);
    let [i] = begin_par(cx, ["i"], [(zero, end)]);
    store(cx, [i], writable(x), lit(cx, 1.0));
    end_par(cx);
});

source!(Asserted, "asserted", |cx| {
    let x: Row<ByMut> = row(cx, "x");
    let (two, n) = (at(cx, 2), len(cx, x));
    let enough = ge(cx, n, two);
    assert(cx, enough, "there are two");
    let one = at(cx, 1);
    store(cx, [one], writable(x), lit(cx, 1.0));
});

#[test]
fn faults_name_the_place_of_the_caller() {
    let device = interpreter();
    let mut x = device.array(&[0.0, 0.0]).unwrap();
    let fault = launch::<OutOfBounds>(&device, vec![Arg::Write(x.any_mut())]).unwrap_err().to_string();
    assert!(fault.contains("index 2") && fault.contains("errors.rs"), "{fault}");
    launch::<Asserted>(&device, vec![Arg::Write(x.any_mut())]).unwrap();
    assert_eq!(x.to_vec()[1], 1.0);
    let mut short = device.array(&[0.0]).unwrap();
    let fault = launch::<Asserted>(&device, vec![Arg::Write(short.any_mut())]).unwrap_err().to_string();
    assert!(fault.contains("there are two"), "{fault}");
    assert_eq!(short.to_vec(), [0.0]);
}
