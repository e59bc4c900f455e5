use ebbtide_ir::*;
use expect_test::{Expect, expect};

use crate::fixtures::burgers;

fn check_flaw(build: impl FnOnce(&mut Builder), expected: Expect) {
    let mut b = Builder::new("p");
    build(&mut b);
    expected.assert_eq(&b.finish().expect_err("the program must be refused").to_string());
}

/// `for i in par(0..x.len())` over a written array `x` of rank 1.
fn over_x(b: &mut Builder, body: impl FnOnce(&mut Builder, ArrayId, ValueId)) {
    let x = b.array("x", Type::F64, 1, Access::Write);
    let n = b.dim(x, 0);
    let zero = b.literal(Literal::index(0));
    let i = b.begin_par(&[("i", zero, n)])[0];
    body(b, x, i);
    b.end_par();
}

#[test]
fn a_program_prints_as_it_was_written() {
    expect![[r#"
        program burgers(u: &mut Array1<f64>, next: &mut Array1<f64>, nu: f64, dt: f64, steps: usize) {
            let n = u.len();
            for t in 0..steps {
                for i in par(0..n) {
                    let l = u[(i + n - 1) % n];
                    let r = u[(i + 1) % n];
                    let c = u[i];
                    next[i] = c + dt * (nu * (l - 2.0 * c + r) - 0.5 * c * (r - l));
                }
                swap(u, next);
            }
        }
    "#]]
    .assert_eq(&burgers().to_string());
}

#[test]
fn a_read_is_never_printed_after_a_write_that_it_came_before() {
    let mut b = Builder::new("p");
    let x = b.array("x", Type::F64, 0, Access::Write);
    let old = b.load(x, &[]);
    let one = b.literal(Literal::from(1.0));
    b.store(x, &[], one);
    let sum = b.binary(Binary::Add, old, one);
    b.store(x, &[], sum);
    expect![[r#"
        program p(x: &mut Array0<f64>) {
            let v0 = x[[]];
            x[[]] = 1.0;
            x[[]] = v0 + 1.0;
        }
    "#]]
    .assert_eq(&b.finish().unwrap().to_string());
}

#[test]
fn reading_a_neighbour_of_what_is_written_is_a_race() {
    check_flaw(
        |b| {
            over_x(b, |b, x, i| {
                let one = b.literal(Literal::index(1));
                let next = b.binary(Binary::Add, i, one);
                let v = b.load(x, &[next]);
                b.store(x, &[i], v);
            });
        },
        expect![[r#"
            build error: program `p` is not valid:
              a race: iterations [0] and [1] of the parallel loop touch element [1] of `x` where `x.len()` is 2: it is written and read; read `x` and write another array, and `swap` the two after the loop (law 7)
              the laws: https://github.com/ebbtide/ebbtide/blob/main/docs/src/laws.md"#]],
    );
}

/// `x[i] = x[i] + x[i + 1]`: with `+=` it would be a race too.
#[test]
fn a_sum_with_a_neighbour_is_advised_to_write_another_array_and_a_sum_into_one_element_to_combine() {
    check_flaw(
        |b| {
            over_x(b, |b, x, i| {
                let one = b.literal(Literal::index(1));
                let next = b.binary(Binary::Add, i, one);
                let (own, other) = (b.load(x, &[i]), b.load(x, &[next]));
                let sum = b.binary(Binary::Add, own, other);
                b.store(x, &[i], sum);
            });
        },
        expect![[r#"
            build error: program `p` is not valid:
              a race: iterations [0] and [1] of the parallel loop touch element [1] of `x` where `x.len()` is 2: it is written and read; read `x` and write another array, and `swap` the two after the loop (law 7)
              the laws: https://github.com/ebbtide/ebbtide/blob/main/docs/src/laws.md"#]],
    );
    check_flaw(
        |b| {
            over_x(b, |b, x, _| {
                let zero = b.literal(Literal::index(0));
                let (old, one) = (b.load(x, &[zero]), b.literal(Literal::from(1.0)));
                let sum = b.binary(Binary::Add, old, one);
                b.store(x, &[zero], sum);
            });
        },
        expect![[r#"
            build error: program `p` is not valid:
              a race: iterations [0] and [1] of the parallel loop touch element [0] of `x` where `x.len()` is 2: it is written and read; write `x[…] += …`: a sum that iterations share is taken in order (law 7)
              the laws: https://github.com/ebbtide/ebbtide/blob/main/docs/src/laws.md"#]],
    );
}

#[test]
fn writing_one_element_in_all_iterations_is_a_race() {
    check_flaw(
        |b| {
            over_x(b, |b, x, _| {
                let zero = b.literal(Literal::index(0));
                let v = b.literal(Literal::from(1.0));
                b.store(x, &[zero], v);
            });
        },
        expect![[r#"
            build error: program `p` is not valid:
              a race: iterations [0] and [1] of the parallel loop touch element [0] of `x` where `x.len()` is 2: it is written by both; write the element outside the parallel loop, or combine into it with `+=` (law 7)
              the laws: https://github.com/ebbtide/ebbtide/blob/main/docs/src/laws.md"#]],
    );
}

#[test]
fn combining_into_one_element_is_a_reduction_and_into_data_dependent_ones_a_scatter() {
    let mut b = Builder::new("p");
    let sum = b.array("sum", Type::F64, 0, Access::Write);
    let bins = b.array("bins", Type::F64, 1, Access::Write);
    let of = b.array("of", Type::I32, 1, Access::Read);
    over_x(&mut b, |b, x, i| {
        let v = b.load(x, &[i]);
        b.update(Combine::Add, sum, &[], v);
        let bin = b.load(of, &[i]);
        let bin = b.cast(bin, Type::Index);
        b.update(Combine::Add, bins, &[bin], v);
        b.update(Combine::Add, x, &[i], v);
    });
    let program = b.finish().unwrap();
    let facts = verify(&program).unwrap();
    let sharing: Vec<(&str, Sharing)> = facts
        .pars
        .values()
        .flat_map(|f| &f.sharing)
        .map(|(a, s)| (program.array(*a).name.as_str(), *s))
        .collect();
    assert_eq!(sharing, [("sum", Sharing::Reduce), ("bins", Sharing::Scatter), ("x", Sharing::Own)]);
}

#[test]
fn a_periodic_shift_of_the_whole_range_tells_iterations_apart() {
    let mut b = Builder::new("p");
    over_x(&mut b, |b, x, i| {
        let n = b.dim(x, 0);
        let three = b.literal(Literal::index(3));
        let shifted = b.binary(Binary::Add, i, three);
        let shifted = b.binary(Binary::Rem, shifted, n);
        let v = b.literal(Literal::from(1.0));
        b.store(x, &[shifted], v);
    });
    assert!(b.finish().is_ok());
}

#[test]
fn operands_of_different_types_are_refused() {
    check_flaw(
        |b| {
            let x = b.literal(Literal::from(1.0f32));
            let y = b.literal(Literal::from(1.0f64));
            b.binary(Binary::Add, x, y);
        },
        expect![[r#"
            build error: program `p` is not valid:
              the operands of this operation are `f32` and `f64`: cast one of them (law 3)
              the laws: https://github.com/ebbtide/ebbtide/blob/main/docs/src/laws.md"#]],
    );
}

#[test]
fn a_value_of_an_inner_block_is_not_known_outside() {
    check_flaw(
        |b| {
            let yes = b.literal(Literal::from(true));
            b.begin_if(yes);
            let inner = b.literal(Literal::from(1.0));
            b.end_if();
            b.binary(Binary::Add, inner, inner);
        },
        expect![[r#"
            build error: program `p` is not valid:
              value 1 is used where it is not defined (law 1)
              value 1 is used where it is not defined (law 1)
              the laws: https://github.com/ebbtide/ebbtide/blob/main/docs/src/laws.md"#]],
    );
}

#[test]
fn a_loop_without_a_break_is_refused() {
    check_flaw(
        |b| {
            b.begin_loop();
            b.end_loop(None);
        },
        expect![[r#"
            build error: program `p` is not valid:
              a `loop` needs `if … { break; }` as its last statement: it would never end (law 5)
              the laws: https://github.com/ebbtide/ebbtide/blob/main/docs/src/laws.md"#]],
    );
}

#[test]
fn a_flag_of_the_wrong_type_and_nested_regions_are_refused() {
    check_flaw(
        |b| {
            let flag = b.array("flag", Type::F64, 1, Access::Write);
            let label = |variant: &str| Label { family: "Stage".into(), variant: variant.into() };
            b.begin_region(label("A"), Some(flag), Undo::Nothing);
            b.begin_region(label("B"), None, Undo::Nothing);
            b.end_region();
            b.end_region();
            b.begin_region(label("A"), None, Undo::Nothing);
            b.end_region();
        },
        expect![[r#"
            build error: program `p` is not valid:
              the flag `flag` of region `Stage::A` is an Array1<f64>: a flag is an Array0 of i32, u32 or bool (law 9)
              region `Stage::B` stands inside region `Stage::A`: regions do not nest (law 9)
              label `Stage::A` is used twice in one program (law 9)
              the laws: https://github.com/ebbtide/ebbtide/blob/main/docs/src/laws.md"#]],
    );
}

#[test]
fn setting_an_outer_local_in_a_parallel_loop_is_a_race() {
    check_flaw(
        |b| {
            let zero = b.literal(Literal::from(0.0));
            let sum = b.local("sum", zero);
            over_x(b, |b, x, i| {
                let v = b.load(x, &[i]);
                b.set(sum, v);
            });
        },
        expect![[r#"
            build error: program `p` is not valid:
              `sum` belongs to the code around the parallel loop, and its iterations would race to set it: declare it inside, or combine into an array element with `+=` (law 7)
              the laws: https://github.com/ebbtide/ebbtide/blob/main/docs/src/laws.md"#]],
    );
}

#[test]
fn a_loop_carries_the_schedule_that_stands_before_it() {
    let mut b = Builder::new("p");
    let x = b.array("x", Type::F64, 0, Access::Write);
    let y = b.array("y", Type::F64, 0, Access::Read);
    let zero = b.literal(Literal::index(0));
    let ten = b.literal(Literal::index(10));
    b.reverse(ReverseHint::Revolve(3));
    b.begin_for("t", zero, ten);
    b.begin_for("k", zero, ten);
    let v = b.load(y, &[]);
    b.store(x, &[], v);
    b.end_loop(None);
    b.end_loop(None);
    expect![[r#"
        program p(x: &mut Array0<f64>, y: &Array0<f64>) {
            #[reverse(revolve = 3)]
            for t in 0..10 {
                for k in 0..10 {
                    x[[]] = y[[]];
                }
            }
        }
    "#]]
    .assert_eq(&b.finish().unwrap().to_string());
}

#[test]
fn a_schedule_without_slots_is_refused() {
    check_flaw(
        |b| b.reverse(ReverseHint::Revolve(0)),
        expect![[r#"
            build error: program `p` is not valid:
              `#[reverse(revolve = 0)]`: a loop is reversed from at least one stored state (law 5)
              the laws: https://github.com/ebbtide/ebbtide/blob/main/docs/src/laws.md"#]],
    );
}

#[test]
fn library_operations_say_what_they_take() {
    check_flaw(
        |b| {
            let x = b.array("x", Type::F64, 2, Access::Read);
            let y = b.array("y", Type::F32, 2, Access::Write);
            let flags = b.array("flags", Type::F64, 1, Access::Read);
            let list = b.array("list", Type::I32, 1, Access::Read);
            let count = b.array("count", Type::I32, 0, Access::Write);
            b.matmul(x, x, y);
            b.scan(flags, y);
            b.compact(flags, list, count);
        },
        expect![[r#"
            build error: program `p` is not valid:
              `matmul` takes three arrays of rank 2 of one float type, not `x`: Array2<f64>, `x`: Array2<f64>, `y`: Array2<f32> (law 11)
              `scan` takes two arrays of rank 1 of one type of numbers, not `flags`: Array1<f64>, `y`: Array2<f32> (law 11)
              `list` is borrowed with `&`: declare it `&mut` to write it (law 2)
              `compact` takes an Array1 of bool, i32 or u32, an Array1<i32> for the indices and an Array0<i32> for their number, not `flags`: Array1<f64>, `list`: Array1<i32>, `count`: Array0<i32> (law 11)
              the laws: https://github.com/ebbtide/ebbtide/blob/main/docs/src/laws.md"#]],
    );
}

#[test]
fn library_operations_print_as_calls_and_count_for_the_hash() {
    let program = |layout: Layout, into: Assign| {
        let mut b = Builder::new("p");
        let x = b.array("x", Type::F64, 2, Access::Read);
        let y = b.array("y", Type::F64, 2, Access::Write);
        b.library(LibraryOp::Matmul { left: Layout::Plain, right: layout, into }, &[x, x], &[y]);
        b.finish().unwrap()
    };
    let plain = program(Layout::Plain, Assign::Replace);
    let other = program(Layout::Transposed, Assign::Add);
    expect![[r#"
        program p(x: &Array2<f64>, y: &mut Array2<f64>) {
            matmul(x, x, y);
        }
        program p(x: &Array2<f64>, y: &mut Array2<f64>) {
            add_matmul(x, transposed(x), y);
        }
    "#]]
    .assert_eq(&format!("{plain}{other}"));
    assert_ne!(plain.hash(), other.hash());
}
