//! What random programs, or reading them, brought to light; each by the name of what was wrong.

use ebbtide_conformance::Input;
use ebbtide_ir::*;

use crate::devices::check;
use crate::programs::B;

/// `par` over `x` and `y` of rank 1, with what the body does.
fn line(name: &str, ty: Type, body: impl FnOnce(&mut B, ArrayId, ArrayId, ValueId, ValueId)) -> Program {
    let mut b = B::new(name);
    let x = b.0.array("x", ty, 1, Access::Read);
    let y = b.0.array("y", ty, 1, Access::Write);
    let (zero, n) = (b.index(0), b.0.dim(x, 0));
    let i = b.0.begin_par(&[("i", zero, n)])[0];
    body(&mut b, x, y, i, n);
    b.0.end_par();
    b.0.finish().unwrap()
}

fn check_line(program: &Program) {
    for n in [1, 8, 100, 4000] {
        check(program, &[Input::Array(vec![n], 1), Input::Array(vec![n], 2)]).unwrap();
    }
}

#[test]
pub fn a_negative_literal_can_be_negated() {
    // At program level, where nothing is folded.
    let mut b = B::new("negated");
    let y = b.0.array("y", Type::I32, 1, Access::Write);
    let three = b.0.literal(Literal::from(-3i32));
    let (negated, absolute) = (b.0.unary(Unary::Neg, three), b.0.unary(Unary::Abs, three));
    let product = b.mul(negated, absolute);
    b.0.fill(y, product);
    let found = check(&b.0.finish().unwrap(), &[Input::Array(vec![10], 1)]).unwrap();
    assert_eq!(found[0], vec![Literal::from(9i32); 10]);
}

#[test]
pub fn two_sums_into_shared_elements_are_taken_in_the_order_of_iterations() {
    check_line(&line("ordered", Type::F64, |b, x, y, i, n| {
        let v = b.0.load(x, &[i]);
        b.0.update(Combine::Add, y, &[i], v);
        let one = b.index(1);
        let next = b.add(i, one);
        let next = b.rem(next, n);
        let w = b.mul(v, v);
        b.0.update(Combine::Add, y, &[next], w);
    }));
}

#[test]
pub fn one_sum_into_shared_elements_in_a_loop_is_taken_in_the_order_of_iterations() {
    check_line(&line("ordered_loop", Type::F64, |b, x, y, i, n| {
        let v = b.0.load(x, &[i]);
        let (zero, three) = (b.index(0), b.index(3));
        let c = b.0.begin_for("c", zero, three);
        let at = b.add(i, c);
        let at = b.rem(at, n);
        b.0.update(Combine::Add, y, &[at], v);
        b.0.end_loop(None);
    }));
}

#[test]
pub fn an_index_can_be_cast_to_bool_in_a_loop_of_floats() {
    check_line(&line("index_to_bool", Type::F64, |b, x, y, i, _| {
        let v = b.0.load(x, &[i]);
        let flag = b.0.cast(i, Type::Bool);
        let zero = b.real(0.0);
        let value = b.0.select(flag, v, zero);
        b.0.store(y, &[i], value);
    }));
}

#[test]
pub fn locals_that_differ_between_lanes_run_in_vectors() {
    let program = line("locals", Type::F64, |b, x, y, i, _| {
        let v = b.0.load(x, &[i]);
        let sum = b.0.local("sum", v);
        let (zero, five) = (b.index(0), b.index(5));
        let c = b.0.begin_for("c", zero, five);
        let w = b.0.load(x, &[c]);
        let so_far = b.0.get(sum);
        let product = b.mul(so_far, w);
        let more = b.add(product, v);
        b.0.set(sum, more);
        b.0.end_loop(None);
        let total = b.0.get(sum);
        b.0.store(y, &[i], total);
    });
    for n in [5, 8, 31, 32, 33, 100, 4000] {
        check(&program, &[Input::Array(vec![n], 1), Input::Array(vec![n], 2)]).unwrap();
    }
}

#[test]
pub fn a_plane_runs_in_vectors() {
    let mut b = B::new("plane");
    let x = b.0.array("x", Type::F32, 2, Access::Read);
    let y = b.0.array("y", Type::F32, 2, Access::Write);
    let (zero, n, m) = (b.index(0), b.0.dim(x, 0), b.0.dim(x, 1));
    let ij = b.0.begin_par(&[("i", zero, n), ("j", zero, m)]);
    let v = b.0.load(x, &ij);
    let w = b.mul(v, v);
    b.0.store(y, &ij, w);
    b.0.end_par();
    let program = b.0.finish().unwrap();
    let compiled = ebbtide_runtime::Compiled::new(&program, &crate::devices::cpu(1)).unwrap();
    assert!(compiled.source().unwrap().contains("; j < whole; j += "));
    for (n, m) in [(1, 1), (3, 7), (5, 100), (70, 64)] {
        check(&program, &[Input::Array(vec![n, m], 1), Input::Array(vec![n, m], 2)]).unwrap();
    }
}

#[test]
pub fn equal_values_of_a_loop_condition_are_not_lost() {
    check_line(&line("condition", Type::F64, |b, x, y, i, _| {
        let v = b.0.load(x, &[i]);
        let (limit, half) = (b.real(0.25), b.real(0.5));
        let above = b.0.compare(Compare::Gt, v, limit);
        let start = b.0.select(above, v, limit);
        let now = b.0.local("now", start);
        b.0.begin_while();
        let value = b.0.get(now);
        let goes_on = b.0.compare(Compare::Gt, value, limit);
        let both = b.0.compare(Compare::Gt, v, limit);
        let goes_on = b.0.binary(Binary::And, goes_on, both);
        b.0.while_condition(goes_on);
        let value = b.0.get(now);
        let value = b.mul(value, half);
        b.0.set(now, value);
        b.0.end_loop(None);
        b.0.begin_loop();
        let value = b.0.get(now);
        let value = b.mul(value, half);
        b.0.set(now, value);
        // The same as before the loop: it need not be computed again, but the loop must know it.
        let above = b.0.compare(Compare::Gt, v, limit);
        let done = b.0.compare(Compare::Lt, value, limit);
        let done = b.0.binary(Binary::Or, above, done);
        b.0.end_loop(Some(done));
        let value = b.0.get(now);
        b.0.store(y, &[i], value);
    }));
}

#[test]
pub fn fused_loops_give_what_they_gave_apart() {
    let mut b = B::new("fused");
    let x = b.0.array("x", Type::F64, 1, Access::Read);
    let y = b.0.array("y", Type::F64, 1, Access::Write);
    let sum = b.0.array("sum", Type::F64, 0, Access::Write);
    let (zero, n) = (b.index(0), b.0.dim(x, 0));
    for _ in 0..2 {
        let i = b.0.begin_par(&[("i", zero, n)])[0];
        let (v, w) = (b.0.load(x, &[i]), b.0.load(y, &[i]));
        let product = b.mul(v, w);
        b.0.update(Combine::Add, sum, &[], product);
        b.0.store(y, &[i], product);
        b.0.end_par();
    }
    let program = b.0.finish().unwrap();
    let fused = passes::simplify(&program).to_string();
    assert_eq!(fused.matches("par(").count(), 1, "{fused}");
    for n in [0, 1, 100, 9000] {
        let inputs = [Input::Array(vec![n], 1), Input::Array(vec![n], 2), Input::Array(vec![], 3)];
        check(&program, &inputs).unwrap();
    }
}
