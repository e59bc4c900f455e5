//! Called programs and functions: they are expanded where they are called, on parts of arrays too.

use ebbtide_lang::emit::*;
use ebbtide_lang::{Arg, ArrayHandle, ByMut, Cx, Expr, Field, Handle, Rules};
use ebbtide_runtime::{Array1, Array2, interpreter};
use expect_test::expect;

use crate::{at, launch, source, text};

type Row = ArrayHandle<f64, 1, ByMut>;

fn callee(name: &'static str) -> Callee {
    Callee { path: name, name, rules: Rules::none(), saved: &[] }
}

/// `for i in par(0..row.len()) { row[i] = row[i] * by; }`, as a program that is called.
fn scale(cx: &Cx, row: Row, by: Expr<f64>) {
    let mut behind = Vec::new();
    row.bound(&mut |b| behind.push(b));
    call_program(cx, callee("scale"), &[("row", behind)], || {
        let (zero, n) = (at(cx, 0), len(cx, row));
        let [i] = begin_par(cx, ["i"], [(zero, n)]);
        let value = load(cx, [i], row);
        let value = mul(cx, value, by);
        store(cx, [i], writable(row), value);
        end_par(cx);
    });
}

source!(Whole, "whole", |cx| {
    call_program(cx, callee("whole"), &[], || {
        let x: Row = <Array1<f64> as Field>::declare(cx, "x");
        let two = lit(cx, 2.0);
        scale(cx, x, two);
        let half = lit(cx, 0.5);
        scale(cx, x, half);
    });
});

source!(Parts, "parts", |cx| {
    let x: ArrayHandle<f64, 2, ByMut> = <Array2<f64> as Field>::declare(cx, "x");
    let (one, two) = (at(cx, 1), lit(cx, 10.0));
    let row = part(cx, [one], [()], x);
    let some = ranged(cx, Some(one), None, row);
    call_program(cx, callee("parts"), &[], || scale(cx, some, two));
});

#[test]
fn a_called_program_stands_where_it_is_called() {
    expect![[r#"
        program whole(x: &mut Array1<f64>) {
            /* scale */ {
                for i in par(0..x.len()) {
                    x[i] = x[i] * 2.0;
                }
            }
            /* scale */ {
                for i_2 in par(0..x.len()) {
                    x[i_2] = x[i_2] * 0.5;
                }
            }
        }
    "#]]
    .assert_eq(&text::<Whole>());
    let device = interpreter();
    let mut x = device.array(&[1.0, 3.0]).unwrap();
    launch::<Whole>(&device, vec![Arg::Write(x.any_mut())]).unwrap();
    assert_eq!(x.to_vec(), [1.0, 3.0]);
}

#[test]
fn a_part_of_an_array_is_leading_indices_and_a_range() {
    expect![[r#"
        program parts(x: &mut Array2<f64>) {
            let v2 = x.dim(1);
            assert!(((1 >= 0) & (1 <= v2)) & (v2 <= v2), "a range of an array that is passed is outside the array");
            /* scale */ {
                for i in par(0..v2 - 1) {
                    x[[1, 1 + i]] = x[[1, 1 + i]] * 10.0;
                }
            }
        }
    "#]].assert_eq(&text::<Parts>());
    let device = interpreter();
    let mut x = device.array_with_shape([2, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]).unwrap();
    launch::<Parts>(&device, vec![Arg::Write(x.any_mut())]).unwrap();
    assert_eq!(x.to_vec(), [1.0, 2.0, 3.0, 4.0, 50.0, 60.0]);
}
