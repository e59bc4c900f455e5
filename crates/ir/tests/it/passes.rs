//! What each pass makes of a program, before and after.

use ebbtide_ir::passes::*;
use ebbtide_ir::*;
use expect_test::{Expect, expect};

/// The text of the program after the pass, which must leave a lawful program.
fn check(program: &Program, pass: Pass, before: Expect, after: Expect) {
    before.assert_eq(&program.to_string());
    let changed = pass(program);
    verify(&changed).unwrap();
    after.assert_eq(&changed.to_string());
}

struct Loop1 {
    b: Builder,
    x: ArrayId,
    y: ArrayId,
    a: ValueId,
    n: ValueId,
    zero: ValueId,
}

impl Loop1 {
    fn new(name: &str) -> Loop1 {
        let mut b = Builder::new(name);
        let x = b.array("x", Type::F64, 1, Access::Read);
        let y = b.array("y", Type::F64, 1, Access::Write);
        let a = b.scalar("a", Type::F64);
        let (zero, n) = (b.literal(Literal::index(0)), b.dim(x, 0));
        b.name(n, "n");
        Loop1 { b, x, y, a, n, zero }
    }
    fn par(&mut self) -> ValueId {
        self.b.begin_par(&[("i", self.zero, self.n)])[0]
    }
    fn real(&mut self, x: f64) -> ValueId {
        self.b.literal(Literal::from(x))
    }
    fn op(&mut self, op: Binary, a: ValueId, b: ValueId) -> ValueId {
        self.b.binary(op, a, b)
    }
}

#[test]
fn constants_are_folded_and_decided_branches_taken() {
    let mut l = Loop1::new("fold");
    let i = l.par();
    let (two, three) = (l.real(2.0), l.real(3.0));
    let six = l.op(Binary::Mul, two, three);
    let zero = l.b.literal(Literal::index(0));
    let same = l.op(Binary::Add, i, zero);
    let v = l.b.load(l.x, &[same]);
    let w = l.op(Binary::Mul, v, six);
    let less = l.b.compare(Compare::Lt, two, three);
    l.b.begin_if(less);
    l.b.store(l.y, &[i], w);
    l.b.begin_else();
    l.b.store(l.y, &[i], v);
    l.b.end_if();
    // A division by zero is an error of the run, and stays one.
    let one = l.b.literal(Literal::index(1));
    let error = l.op(Binary::Div, one, zero);
    let v = l.b.cast(error, Type::F64);
    l.b.update(Combine::Add, l.y, &[i], v);
    l.b.end_par();
    check(
        &l.b.finish().unwrap(),
        fold_constants,
        expect![[r#"
            program fold(x: &Array1<f64>, y: &mut Array1<f64>, a: f64) {
                let n = x.len();
                for i in par(0..n) {
                    let v9 = x[i + 0];
                    if 2.0 < 3.0 {
                        y[i] = v9 * (2.0 * 3.0);
                    } else {
                        y[i] = v9;
                    }
                    y[i] += (1 / 0) as f64;
                }
            }
        "#]],
        expect![[r#"
            program fold(x: &Array1<f64>, y: &mut Array1<f64>, a: f64) {
                let n = x.len();
                for i in par(0..n) {
                    let v8 = i + 0;
                    y[i] = x[i] * 6.0;
                    y[i] += (1 / 0) as f64;
                }
            }
        "#]],
    );
}

#[test]
fn common_values_are_computed_once() {
    let mut l = Loop1::new("common");
    let outside = l.op(Binary::Mul, l.a, l.a);
    let i = l.par();
    let [v, again] = [0; 2].map(|_| l.b.load(l.x, &[i]));
    let square = l.op(Binary::Mul, l.a, l.a);
    let sum = l.op(Binary::Add, v, again);
    let positive = l.b.compare(Compare::Gt, v, square);
    l.b.begin_if(positive);
    let sum_again = l.op(Binary::Add, again, v);
    let same_sum = l.op(Binary::Add, v, again);
    let product = l.op(Binary::Mul, sum_again, same_sum);
    l.b.store(l.y, &[i], product);
    // What the loop writes is not the same before and after.
    let mine = l.b.load(l.y, &[i]);
    let more = l.op(Binary::Add, mine, sum);
    l.b.store(l.y, &[i], more);
    let mine = l.b.load(l.y, &[i]);
    let more = l.op(Binary::Add, mine, outside);
    l.b.store(l.y, &[i], more);
    l.b.end_if();
    l.b.end_par();
    check(
        &l.b.finish().unwrap(),
        share_common_values,
        expect![[r#"
            program common(x: &Array1<f64>, y: &mut Array1<f64>, a: f64) {
                let n = x.len();
                for i in par(0..n) {
                    let v5 = x[i];
                    let v6 = x[i];
                    if v5 > a * a {
                        y[i] = (v6 + v5) * (v5 + v6);
                        y[i] = y[i] + (v5 + v6);
                        y[i] = y[i] + a * a;
                    }
                }
            }
        "#]],
        expect![[r#"
            program common(x: &Array1<f64>, y: &mut Array1<f64>, a: f64) {
                let n = x.len();
                let v3 = a * a;
                for i in par(0..n) {
                    let v5 = x[i];
                    let v8 = v5 + v5;
                    if v5 > v3 {
                        y[i] = v8 * v8;
                        y[i] = y[i] + v8;
                        y[i] = y[i] + v3;
                    }
                }
            }
        "#]],
    );
}

#[test]
fn dead_code_goes_but_what_can_fail_stays() {
    let mut l = Loop1::new("dead");
    let i = l.par();
    let v = l.b.load(l.x, &[i]);
    let unused = l.op(Binary::Mul, v, l.a);
    let _unused = l.op(Binary::Add, unused, v);
    let local = l.b.local("unread", unused);
    l.b.set(local, v);
    let one = l.b.literal(Literal::index(1));
    let next = l.op(Binary::Add, i, one);
    // It may lie outside.
    let _neighbour = l.b.load(l.x, &[next]);
    let positive = l.b.compare(Compare::Gt, v, l.a);
    l.b.begin_if(positive);
    let _nothing = l.op(Binary::Mul, v, v);
    l.b.end_if();
    l.b.store(l.y, &[i], v);
    l.b.end_par();
    check(
        &l.b.finish().unwrap(),
        drop_dead_code,
        expect![[r#"
            program dead(x: &Array1<f64>, y: &mut Array1<f64>, a: f64) {
                let n = x.len();
                for i in par(0..n) {
                    let v4 = x[i];
                    let v5 = v4 * a;
                    let v6 = v5 + v4;
                    let mut unread = v5;
                    unread = v4;
                    let v9 = x[i + 1];
                    if v4 > a {
                        let v11 = v4 * v4;
                    }
                    y[i] = v4;
                }
            }
        "#]],
        expect![[r#"
            program dead(x: &Array1<f64>, y: &mut Array1<f64>, a: f64) {
                let n = x.len();
                for i in par(0..n) {
                    let v9 = x[i + 1];
                    y[i] = x[i];
                }
            }
        "#]],
    );
}

#[test]
fn invariant_values_are_computed_before_the_loop() {
    let mut l = Loop1::new("hoist");
    let i = l.par();
    let v = l.b.load(l.x, &[i]);
    let big = l.b.compare(Compare::Gt, v, l.a);
    l.b.begin_if(big);
    let factor = l.b.math(Function::Tanh, &[l.a]);
    l.b.name(factor, "factor");
    let w = l.op(Binary::Mul, v, factor);
    l.b.store(l.y, &[i], w);
    // It fails where the array is empty, and only if an iteration comes here.
    let first = l.op(Binary::Rem, l.zero, l.n);
    let w = l.b.load(l.x, &[first]);
    l.b.store(l.y, &[i], w);
    l.b.end_if();
    l.b.end_par();
    check(
        &l.b.finish().unwrap(),
        hoist_invariant_values,
        expect![[r#"
            program hoist(x: &Array1<f64>, y: &mut Array1<f64>, a: f64) {
                let n = x.len();
                for i in par(0..n) {
                    let v4 = x[i];
                    if v4 > a {
                        let factor = a.tanh();
                        y[i] = v4 * factor;
                        y[i] = x[0 % n];
                    }
                }
            }
        "#]],
        expect![[r#"
            program hoist(x: &Array1<f64>, y: &mut Array1<f64>, a: f64) {
                let n = x.len();
                let factor = a.tanh();
                for i in par(0..n) {
                    let v4 = x[i];
                    if v4 > a {
                        y[i] = v4 * factor;
                        y[i] = x[0 % n];
                    }
                }
            }
        "#]],
    );
}

#[test]
fn neighbouring_loops_over_one_domain_become_one() {
    let mut l = Loop1::new("fuse");
    let i = l.par();
    let v = l.b.load(l.x, &[i]);
    l.b.store(l.y, &[i], v);
    l.b.end_par();
    let square = l.op(Binary::Mul, l.a, l.a);
    let i = l.par();
    let v = l.b.load(l.y, &[i]);
    let v = l.op(Binary::Add, v, square);
    l.b.store(l.y, &[i], v);
    l.b.end_par();
    check(
        &l.b.finish().unwrap(),
        fuse_parallel_loops,
        expect![[r#"
            program fuse(x: &Array1<f64>, y: &mut Array1<f64>, a: f64) {
                let n = x.len();
                for i in par(0..n) {
                    y[i] = x[i];
                }
                for i_2 in par(0..n) {
                    y[i_2] = y[i_2] + a * a;
                }
            }
        "#]],
        expect![[r#"
            program fuse(x: &Array1<f64>, y: &mut Array1<f64>, a: f64) {
                let n = x.len();
                for i in par(0..n) {
                    y[i] = x[i];
                    y[i] = y[i] + a * a;
                }
            }
        "#]],
    );
}

#[test]
fn a_loop_that_reads_its_neighbours_is_not_fused() {
    let mut l = Loop1::new("stencil");
    let i = l.par();
    let v = l.b.load(l.x, &[i]);
    l.b.store(l.y, &[i], v);
    l.b.end_par();
    let sum = l.b.temp("sum", Type::F64, &[l.n]);
    let i = l.par();
    let one = l.b.literal(Literal::index(1));
    let next = l.op(Binary::Add, i, one);
    let next = l.op(Binary::Rem, next, l.n);
    let v = l.b.load(l.y, &[next]);
    l.b.store(sum, &[i], v);
    l.b.end_par();
    let program = l.b.finish().unwrap();
    assert_eq!(fuse_parallel_loops(&program).to_string(), program.to_string());
}

#[test]
fn loops_over_different_domains_are_not_fused() {
    let mut l = Loop1::new("domains");
    let i = l.par();
    let v = l.b.load(l.x, &[i]);
    l.b.store(l.y, &[i], v);
    l.b.end_par();
    let one = l.b.literal(Literal::index(1));
    let i = l.b.begin_par(&[("i", one, l.n)])[0];
    l.b.store(l.y, &[i], l.a);
    l.b.end_par();
    let program = l.b.finish().unwrap();
    assert_eq!(fuse_parallel_loops(&program).to_string(), program.to_string());
}

#[test]
fn products_that_are_added_become_multiply_adds() {
    let mut l = Loop1::new("fma");
    let i = l.par();
    let v = l.b.load(l.x, &[i]);
    let w = l.b.load(l.y, &[i]);
    let product = l.op(Binary::Mul, v, l.a);
    let sum = l.op(Binary::Add, product, w);
    let product = l.op(Binary::Mul, sum, v);
    let less = l.op(Binary::Sub, w, product);
    let product = l.op(Binary::Mul, less, l.a);
    let less = l.op(Binary::Sub, product, v);
    // Used twice: it is computed anyway.
    let square = l.op(Binary::Mul, less, less);
    let twice = l.op(Binary::Add, square, square);
    l.b.store(l.y, &[i], twice);
    l.b.end_par();
    check(
        &l.b.finish().unwrap(),
        fuse_multiply_add,
        expect![[r#"
            program fma(x: &Array1<f64>, y: &mut Array1<f64>, a: f64) {
                let n = x.len();
                for i in par(0..n) {
                    let v4 = x[i];
                    let v5 = y[i];
                    let v11 = (v5 - (v4 * a + v5) * v4) * a - v4;
                    let v12 = v11 * v11;
                    y[i] = v12 + v12;
                }
            }
        "#]],
        expect![[r#"
            program fma(x: &Array1<f64>, y: &mut Array1<f64>, a: f64) {
                let n = x.len();
                for i in par(0..n) {
                    let v4 = x[i];
                    let v5 = y[i];
                    let v11 = (-v4.mul_add(a, v5)).mul_add(v4, v5).mul_add(a, -v4);
                    let v12 = v11 * v11;
                    y[i] = v12 + v12;
                }
            }
        "#]],
    );
}
