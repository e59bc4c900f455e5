//! Loops, branches and variables.

use ebbtide_lang::emit::*;
use ebbtide_lang::{Arg, ArrayHandle, ByMut, ByRef, Expr, Field, Literal};
use ebbtide_runtime::{Array1, interpreter};
use expect_test::expect;

use crate::{at, launch, source, text};

type Row<B> = ArrayHandle<f64, 1, B>;

source!(Smooth, "smooth", |cx| {
    let x: Row<ByRef> = <Array1<f64> as Field>::declare(cx, "x");
    let y: Row<ByMut> = <Array1<f64> as Field>::declare(cx, "y");
    let weight: Expr<f64> = scalar(cx, "weight");
    let (one, n) = (at(cx, 1), len(cx, x));
    let end = sub(cx, n, one);
    let [i] = begin_par(cx, ["i"], [(one, end)]);
    let (left, right) = (sub(cx, i, one), add(cx, i, one));
    let [a, b] = [left, right].map(|k| load(cx, [k], x));
    let sides = add(cx, a, b);
    let scaled = mul(cx, weight, sides);
    store(cx, [i], writable(y), scaled);
    end_par(cx);
});

#[test]
fn a_stencil_is_a_parallel_loop() {
    expect![[r#"
        program smooth(x: &Array1<f64>, y: &mut Array1<f64>, weight: f64) {
            for i in par(1..x.len() - 1) {
                y[i] = weight * (x[i - 1] + x[i + 1]);
            }
        }
    "#]]
    .assert_eq(&text::<Smooth>());
    let device = interpreter();
    let x = device.array(&[1.0, 2.0, 4.0, 8.0]).unwrap();
    let mut y = device.zeros::<f64, 1>([4]).unwrap();
    launch::<Smooth>(
        &device,
        vec![Arg::Read(x.any()), Arg::Write(y.any_mut()), Arg::Scalar(Literal::from(0.5))],
    )
    .unwrap();
    assert_eq!(y.to_vec(), [0.0, 2.5, 5.0, 0.0]);
}

source!(Collatz, "collatz", |cx| {
    let n: ArrayHandle<i64, 1, ByMut> = <Array1<i64> as Field>::declare(cx, "n");
    let (zero, count) = (at(cx, 0), len(cx, n));
    let [i] = begin_par(cx, ["i"], [(zero, count)]);
    let first = load(cx, [i], n);
    let value = local(cx, "value", first);
    let none = lit(cx, 0i64);
    let steps = local(cx, "steps", none);
    begin_while(cx);
    let (now, one) = (read(cx, &value), lit(cx, 1i64));
    let more = gt(cx, now, one);
    while_condition(cx, more);
    let (now, two) = (read(cx, &value), lit(cx, 2i64));
    let half = rem(cx, now, two);
    let none = lit(cx, 0i64);
    let even = eq(cx, half, none);
    let next = fresh(cx);
    begin_if(cx, even);
    let half = div(cx, now, two);
    set(cx, &next, half);
    begin_else(cx);
    let (three, one) = (lit(cx, 3i64), lit(cx, 1i64));
    let tripled = mul(cx, three, now);
    let odd = add(cx, tripled, one);
    set(cx, &next, odd);
    let next = end_value_if(cx, &next);
    set(cx, &value, next);
    change(cx, &steps, |old| {
        let one = lit(cx, 1i64);
        add(cx, old, one)
    });
    end_loop(cx);
    let steps = read(cx, &steps);
    store(cx, [i], writable(n), steps);
    end_par(cx);
});

#[test]
fn a_branch_that_is_a_value_and_a_loop_that_data_end() {
    expect![[r#"
        program collatz(n: &mut Array1<i64>) {
            for i in par(0..n.len()) {
                let mut value = n[i];
                let mut steps = 0i64;
                while value > 1i64 {
                    let v8 = value;
                    value = select(v8 % 2i64 == 0i64, v8 / 2i64, 3i64 * v8 + 1i64);
                    steps = steps + 1i64;
                }
                n[i] = steps;
            }
        }
    "#]]
    .assert_eq(&text::<Collatz>());
    let device = interpreter();
    let mut n = device.array(&[1i64, 2, 3, 6, 7, 27]).unwrap();
    launch::<Collatz>(&device, vec![Arg::Write(n.any_mut())]).unwrap();
    assert_eq!(n.to_vec(), [0, 1, 7, 8, 16, 111]);
}

source!(Backwards, "backwards", |cx| {
    let x: Row<ByMut> = <Array1<f64> as Field>::declare(cx, "x");
    let (zero, two, n) = (at(cx, 0), at(cx, 2), len(cx, x));
    let range = plain_range(cx, zero, n);
    let range = reversed_range(cx, range);
    let range = stepped_range(cx, range, two);
    let total = local(cx, "total", lit(cx, 0.0));
    for_range(cx, "k", zero, range.count(), |k| {
        let i = strided_value(cx, range, k);
        let value = load(cx, [i], x);
        change(cx, &total, |old| add(cx, old, value));
        let total = read(cx, &total);
        store(cx, [i], writable(x), total);
    });
});

#[test]
fn ranges_run_backwards_and_in_steps() {
    let device = interpreter();
    let mut x = device.array(&[1.0, 2.0, 3.0, 4.0, 5.0]).unwrap();
    launch::<Backwards>(&device, vec![Arg::Write(x.any_mut())]).unwrap();
    assert_eq!(x.to_vec(), [9.0, 2.0, 8.0, 4.0, 5.0]);
    let mut even = device.array(&[1.0, 2.0, 3.0, 4.0]).unwrap();
    launch::<Backwards>(&device, vec![Arg::Write(even.any_mut())]).unwrap();
    assert_eq!(even.to_vec(), [1.0, 6.0, 3.0, 4.0]);
}

source!(Scratch, "scratch", |cx| {
    let x: Row<ByMut> = <Array1<f64> as Field>::declare(cx, "x");
    let (zero, n) = (at(cx, 0), len(cx, x));
    let next: Row<ByMut> = temp(cx, "next", [n]);
    let [i] = begin_par(cx, ["i"], [(zero, n)]);
    let value = load(cx, [i], x);
    let total = sum_over(cx, "j", zero, n, |j| load(cx, [j], x));
    let share = div(cx, value, total);
    store(cx, [i], writable(next), share);
    end_par(cx);
    let [i] = begin_par(cx, ["i"], [(zero, n)]);
    let share = load(cx, [i], next);
    store(cx, [i], writable(x), share);
    end_par(cx);
});

#[test]
fn temporaries_and_sums() {
    expect![[r#"
        program scratch(x: &mut Array1<f64>) {
            let v1 = x.len();
            let mut next = Array1::<f64>::zeros([v1]);
            for i in par(0..v1) {
                let v3 = x[i];
                let mut total = 0.0;
                #[sum(total)]
                for j in 0..v1 {
                    total = total + x[j];
                }
                next[i] = v3 / total;
            }
            for i_2 in par(0..v1) {
                x[i_2] = next[i_2];
            }
        }
    "#]]
    .assert_eq(&text::<Scratch>());
    let device = interpreter();
    let mut x = device.array(&[1.0, 2.0, 5.0]).unwrap();
    launch::<Scratch>(&device, vec![Arg::Write(x.any_mut())]).unwrap();
    assert_eq!(x.to_vec(), [0.125, 0.25, 0.625]);
}
