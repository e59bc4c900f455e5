#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use ebbtide_ir::{
    Access, ArrayDecl, Builder, Combine, Compare, Label, Literal, Push, Stmt, Type, Undo, verify,
    walk_program_level,
};
use expect_test::{Expect, expect};

use super::*;

/// What the analysis says of the first sequential loop of a program.
fn check(program: &Program, expected: Expect) {
    let facts = verify(&without_tapes(program)).unwrap();
    let mut first = None;
    walk_program_level(&program.body, &mut |stmt| {
        if let Stmt::Loop(l) = stmt {
            first = first.or(Some(l));
        }
    });
    let text = match interchange(program, &facts, first.unwrap()) {
        Err(refusal) => format!("outside: {refusal}"),
        Ok(found) => {
            let name = |array: &ArrayId| program.array(*array).name.clone();
            let mut text = format!("inside: {} parallel loops;", found.pars.len());
            for (array, held) in &found.held {
                let mut words = vec![name(array)];
                words.extend(held.old.then(|| "old".to_string()));
                words.extend(held.written.then(|| "written".to_string()));
                words.extend(held.whole.then(|| "whole".to_string()));
                text += &format!(" {};", words.join(" "));
            }
            for array in found.arrays.iter().filter(|a| !found.held.contains_key(a)) {
                text += &format!(" {} in memory;", name(array));
            }
            for (array, tape) in &found.tapes {
                text += &format!(" {tape:?} of {};", name(array));
            }
            text
        }
    };
    expected.assert_eq(&text);
}

/// The program without its pushes and pops: one half of a gradient by itself is no lawful program.
fn without_tapes(program: &Program) -> Program {
    let mut program = program.clone();
    for stmt in &mut program.body {
        if let Stmt::Loop(l) = stmt {
            l.body.retain(|stmt| !matches!(stmt, Stmt::Push(_) | Stmt::Pop(_)));
        }
    }
    program
}

/// A program with a loop over `t` in `0..steps`, arrays `u` and `v` of `n` elements, `rows` of `[steps, n]`, a row
/// `source` of `steps`, and a cell `sum`.
struct Timed {
    b: Builder,
    u: ArrayId,
    v: ArrayId,
    rows: ArrayId,
    source: ArrayId,
    sum: ArrayId,
    zero: ValueId,
    one: ValueId,
    n: ValueId,
    t: ValueId,
}

impl Timed {
    fn new() -> Timed {
        let mut b = Builder::new("timed");
        let [u, v] = ["u", "v"].map(|name| b.array(name, Type::F64, 1, Access::Write));
        let rows = b.array("rows", Type::F64, 2, Access::Write);
        let source = b.array("source", Type::F64, 1, Access::Read);
        let sum = b.array("sum", Type::F64, 0, Access::Write);
        let steps = b.scalar("steps", Type::Index);
        let [zero, one] = [0, 1].map(|k| b.literal(Literal::index(k)));
        let n = b.dim(u, 0);
        let t = b.begin_for("t", zero, steps);
        Timed { b, u, v, rows, source, sum, zero, one, n, t }
    }

    fn par(&mut self) -> ValueId {
        self.b.begin_par(&[("i", self.zero, self.n)])[0]
    }

    /// `u[i] += v[i]` in a loop of its own.
    fn add(&mut self) {
        let i = self.par();
        let x = self.b.load(self.v, &[i]);
        self.b.update(Combine::Add, self.u, &[i], x);
        self.b.end_par();
    }

    fn check(mut self, expected: Expect) {
        self.b.end_loop(None);
        check(&self.b.finish().unwrap(), expected);
    }
}

#[test]
fn a_pointwise_step_is_held_in_variables() {
    let mut l = Timed::new();
    l.add();
    l.check(expect!["inside: 1 parallel loops; u written; v;"]);
}

#[test]
fn swaps_fills_and_copies_want_the_whole_array() {
    let mut l = Timed::new();
    l.add();
    l.b.swap(l.u, l.v);
    l.check(expect!["inside: 1 parallel loops; u written whole; v written whole;"]);
    let mut l = Timed::new();
    let x = l.b.literal(Literal::from(1.0));
    l.b.fill(l.u, x);
    l.add();
    l.b.copy(l.v, l.u);
    l.check(expect!["inside: 1 parallel loops; u written whole; v whole;"]);
}

#[test]
fn rows_of_outputs_stay_in_memory() {
    let mut l = Timed::new();
    l.add();
    let i = l.par();
    let x = l.b.load(l.u, &[i]);
    l.b.store(l.rows, &[l.t, i], x);
    l.b.end_par();
    l.check(expect!["inside: 2 parallel loops; u written; v; rows in memory;"]);
}

#[test]
fn what_nobody_writes_is_read_anywhere() {
    let mut l = Timed::new();
    let x = l.b.load(l.source, &[l.t]);
    let i = l.par();
    let next = l.b.binary(Binary::Add, i, l.one);
    let next = l.b.binary(Binary::Rem, next, l.n);
    let y = l.b.load(l.v, &[next]);
    let x = l.b.binary(Binary::Mul, x, y);
    l.b.update(Combine::Add, l.u, &[i], x);
    l.b.end_par();
    l.check(expect!["inside: 1 parallel loops; u written; v in memory; source in memory;"]);
}

#[test]
fn branches_and_locals_of_an_iteration_are_its_own() {
    let mut l = Timed::new();
    let first = l.b.compare(Compare::Eq, l.t, l.zero);
    let local = l.b.local("x", first);
    l.b.begin_if(first);
    l.add();
    l.b.set(local, first);
    l.b.begin_else();
    l.b.swap(l.u, l.v);
    l.b.end_if();
    l.check(expect!["inside: 1 parallel loops; u written whole; v written whole;"]);
}

#[test]
fn a_domain_may_be_computed_in_the_loop_from_what_is_known_before() {
    let mut l = Timed::new();
    let last = l.b.binary(Binary::Sub, l.n, l.one);
    let i = l.b.begin_par(&[("i", l.one, last)])[0];
    let x = l.b.load(l.v, &[i]);
    l.b.store(l.u, &[i], x);
    l.b.end_par();
    l.check(expect!["inside: 1 parallel loops; u written; v;"]);
}

#[test]
fn own_rows_are_told_apart_by_their_dimension() {
    let mut l = Timed::new();
    let i = l.par();
    let k = l.b.begin_for("k", l.zero, l.n);
    let x = l.b.load(l.rows, &[i, k]);
    l.b.store(l.rows, &[i, l.zero], x);
    l.b.end_loop(None);
    l.b.end_par();
    l.check(expect!["inside: 1 parallel loops; rows in memory;"]);
    // A row in one place and a column in another are not the same iteration's.
    let mut l = Timed::new();
    let i = l.par();
    let x = l.b.load(l.v, &[i]);
    l.b.store(l.rows, &[i, l.zero], x);
    l.b.end_par();
    let i = l.par();
    let x = l.b.load(l.rows, &[l.zero, i]);
    l.b.store(l.u, &[i], x);
    l.b.end_par();
    l.check(expect!["outside: `rows` is written, and touched at elements that are not an iteration's own"]);
}

#[test]
fn neighbours_are_a_reason_to_meet() {
    let mut l = Timed::new();
    let i = l.par();
    let next = l.b.binary(Binary::Add, i, l.one);
    let next = l.b.binary(Binary::Rem, next, l.n);
    let x = l.b.load(l.v, &[next]);
    l.b.store(l.u, &[i], x);
    l.b.end_par();
    l.b.swap(l.u, l.v);
    l.check(expect!["outside: `v` is written, and touched at elements that are not an iteration's own"]);
}

#[test]
fn shared_elements_are_a_reason_to_meet() {
    let mut l = Timed::new();
    let i = l.par();
    let x = l.b.load(l.u, &[i]);
    l.b.update(Combine::Add, l.sum, &[], x);
    l.b.end_par();
    l.check(expect!["outside: iterations combine into shared elements of `sum`"]);
    let mut l = Timed::new();
    l.add();
    let x = l.b.load(l.u, &[l.zero]);
    let i = l.par();
    l.b.store(l.v, &[i], x);
    l.b.end_par();
    l.check(expect!["outside: `u` is written, and touched at elements that are not an iteration's own"]);
}

#[test]
fn other_domains_are_a_reason_to_meet() {
    let mut l = Timed::new();
    l.add();
    let i = l.b.begin_par(&[("i", l.one, l.n)])[0];
    let x = l.b.load(l.v, &[i]);
    l.b.store(l.u, &[i], x);
    l.b.end_par();
    l.check(expect!["outside: not all parallel loops have one domain that stays the same"]);
    let mut l = Timed::new();
    let i = l.b.begin_par(&[("i", l.zero, l.t)])[0];
    let x = l.b.load(l.v, &[i]);
    l.b.store(l.u, &[i], x);
    l.b.end_par();
    l.check(expect!["outside: not all parallel loops have one domain that stays the same"]);
}

#[test]
fn what_is_not_a_parallel_loop_stays_outside() {
    let mut l = Timed::new();
    l.b.swap(l.u, l.v);
    l.check(expect!["outside: there is no parallel loop in it"]);
    let mut l = Timed::new();
    l.add();
    let x = l.b.literal(Literal::from(1.0));
    l.b.store(l.sum, &[], x);
    l.check(expect!["outside: there is the write of a single element in it"]);
    let mut l = Timed::new();
    l.b.begin_region(Label { family: "Stage".into(), variant: "Step".into() }, None, Undo::Nothing);
    l.add();
    l.b.end_region();
    l.check(expect!["outside: there is a region in it"]);
    let mut l = Timed::new();
    l.add();
    l.b.scan(l.u, l.v);
    l.check(expect!["outside: there is a library operation in it"]);
    let mut l = Timed::new();
    l.b.begin_for("k", l.zero, l.one);
    l.add();
    l.b.end_loop(None);
    l.check(expect!["outside: there is another sequential loop in it"]);
}

#[test]
fn iterations_that_are_not_counted_stay_outside() {
    let mut l = Timed::new();
    l.add();
    let done = l.b.compare(Compare::Gt, l.t, l.one);
    l.b.end_loop(Some(done));
    check(&l.b.finish().unwrap(), expect!["outside: the number of iterations is not known on entry"]);
}

#[test]
fn scalars_that_outlive_an_iteration_stay_outside() {
    let mut b = Builder::new("timed");
    let u = b.array("u", Type::F64, 1, Access::Write);
    let [zero, one] = [0, 1].map(|k| b.literal(Literal::index(k)));
    let (n, x) = (b.dim(u, 0), b.literal(Literal::from(0.5)));
    let dt = b.local("dt", x);
    b.begin_for("t", zero, one);
    let now = b.get(dt);
    let next = b.binary(Binary::Mul, now, x);
    b.set(dt, next);
    let i = b.begin_par(&[("i", zero, n)])[0];
    b.update(Combine::Add, u, &[i], now);
    b.end_par();
    b.end_loop(None);
    check(&b.finish().unwrap(), expect!["outside: `dt` outlives an iteration that sets it"]);
}

/// The program of [`Timed::add`] with these statements before the first of its loop.
fn taped(statements: &[Stmt]) -> Program {
    let mut l = Timed::new();
    l.add();
    l.b.end_loop(None);
    let mut program = l.b.finish().unwrap();
    program.arrays.push(ArrayDecl {
        name: "u_old".into(),
        role: Role::Old(l.u),
        ..program.array(l.u).clone()
    });
    for stmt in &mut program.body {
        if let Stmt::Loop(l) = stmt {
            l.body.splice(0..0, statements.iter().cloned());
        }
    }
    program
}

#[test]
fn tapes_are_used_an_element_at_a_time() {
    let u = ArrayId::from_index(0);
    let old = ArrayId::from_index(5);
    let push = Stmt::Push(Push { array: u, after: After::Anything(old) });
    check(
        &taped(std::slice::from_ref(&push)),
        expect!["inside: 1 parallel loops; u written whole; v; u_old old whole; Pushes(1) of u;"],
    );
    let copy = Stmt::Push(Push { array: u, after: After::Same });
    check(
        &taped(&[copy.clone(), copy]),
        expect!["inside: 1 parallel loops; u written whole; v; Pushes(2) of u;"],
    );
    check(&taped(&[Stmt::Pop(u)]), expect!["inside: 1 parallel loops; u written whole; v; Pops(1) of u;"]);
    check(&taped(&[push, Stmt::Pop(u)]), expect!["outside: the tape of `u` is used both ways"]);
}
