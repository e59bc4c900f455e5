//! The race detector and the order of iterations, on programs that the verifier would refuse.

use std::collections::BTreeMap;
use std::sync::Arc;

use ebbtide_ir::*;
use expect_test::{Expect, expect};

/// A program with its `y` replaced by `x`: two arrays that are lawful apart become one that is not.
fn merged(program: &Program) -> Program {
    let (x, y) = (program.find_array("x").unwrap(), program.find_array("y").unwrap());
    let mut program = program.clone();
    for value in &mut program.values {
        if let Op::Load(array, _) = &mut value.op
            && *array == y
        {
            *array = x;
        }
    }
    let mut body = std::mem::take(&mut program.body);
    let mut blocks: Vec<&mut Block> = vec![&mut body];
    while let Some(block) = blocks.pop() {
        for stmt in block {
            if let Stmt::Store(s) | Stmt::Update(_, s) = stmt
                && s.array == y
            {
                s.array = x;
            }
            if let Stmt::Claim(claim) = stmt
                && claim.array == y
            {
                claim.array = x;
            }
            blocks.extend(stmt.blocks_mut());
        }
    }
    program.body = body;
    program
}

/// Runs a program whose parameters are arrays of eight `f64` and says how it ended and what they hold.
fn run(program: &Program, modes: Modes) -> Result<Vec<f64>, Fault> {
    let facts =
        verify(program).unwrap_or_else(|_| Facts { affines: Affines::of(program), pars: BTreeMap::new() });
    let arrays = program.arrays.iter().map(|decl| {
        let bytes = (0..8).flat_map(|k| (f64::from(k) + 0.5).to_ne_bytes()).collect();
        match decl.role {
            Role::Param(_) => HostArray { shape: vec![8], bytes: Bytes::Own(bytes) },
            _ => HostArray { shape: vec![], bytes: Bytes::Own(Vec::new()) },
        }
    });
    let mut machine = Machine::new(program, &facts, &[], arrays.collect());
    machine.modes = modes;
    machine.run()?;
    let held = machine.arrays[0].bytes.read();
    Ok(held.as_chunks::<8>().0.iter().map(|bytes| f64::from_ne_bytes(*bytes)).collect())
}

const WATCHED: Modes = Modes {
    checks: Checks::Usual,
    order: IterationOrder::Ascending,
    races: Races::Reported,
    dead: Dead::Kept,
};

/// `for i in par(0..8)` with what `body` does to `x` and `y`, both of eight elements.
fn over_two(body: impl FnOnce(&mut Builder, [ArrayId; 2], ValueId)) -> Program {
    let mut b = Builder::new("p");
    let x = b.array("x", Type::F64, 1, Access::Write);
    let y = b.array("y", Type::F64, 1, Access::Write);
    let (zero, n) = (b.literal(Literal::index(0)), b.dim(x, 0));
    let i = b.begin_par(&[("i", zero, n)])[0];
    body(&mut b, [x, y], i);
    b.end_par();
    b.finish().unwrap()
}

/// What follows stands in this line.
fn line(b: &mut Builder, line: u32) {
    b.at(Site { file: Arc::from("p.rs"), line, column: 9 });
}

fn half_of(b: &mut Builder, i: ValueId) -> ValueId {
    let two = b.literal(Literal::index(2));
    b.binary(Binary::Div, i, two)
}

/// A program that is lawful as it stands, and not where `y` is `x`.
fn check_race(body: impl FnOnce(&mut Builder, [ArrayId; 2], ValueId), expected: Expect) {
    let program = over_two(body);
    run(&program, WATCHED).unwrap();
    let racy = merged(&program);
    assert!(verify(&racy).is_err(), "the verifier refuses it too");
    assert!(run(&racy, Modes::default()).is_ok(), "nothing is noted where nothing is asked for");
    let fault = run(&racy, WATCHED).expect_err("a race");
    assert!(matches!(fault, Fault::Race(_)), "{fault}");
    expected.assert_eq(&fault.to_string());
    for order in [IterationOrder::Descending, IterationOrder::Shuffled(1)] {
        let fault = run(&racy, Modes { order, ..WATCHED }).expect_err("a race in every order");
        assert!(matches!(fault, Fault::Race(_)), "{fault}");
    }
}

#[test]
fn a_read_of_what_another_iteration_writes_is_reported() {
    check_race(
        |b, [x, y], i| {
            let (one, n) = (b.literal(Literal::index(1)), b.dim(x, 0));
            let next = b.binary(Binary::Add, i, one);
            let next = b.binary(Binary::Rem, next, n);
            line(b, 3);
            let v = b.load(y, &[next]);
            line(b, 4);
            b.store(x, &[i], v);
        },
        expect![
            "a race: element [1] of `x` is read by iteration [0], at p.rs:3:9, and written by iteration [1], at p.rs:4:9 (law 7, https://github.com/ebbtide/ebbtide/blob/main/docs/src/laws.md)"
        ],
    );
}

#[test]
fn a_write_of_what_another_iteration_has_written_is_reported() {
    check_race(
        |b, [x, y], i| {
            let one = b.literal(Literal::from(1.0));
            let seven = b.literal(Literal::index(7));
            line(b, 3);
            b.store(x, &[i], one);
            let mirrored = b.binary(Binary::Sub, seven, i);
            line(b, 4);
            b.store(y, &[mirrored], one);
        },
        expect![
            "a race: element [4] of `x` is written by iteration [3], at p.rs:4:9, and written by iteration [4], at p.rs:3:9 (law 7, https://github.com/ebbtide/ebbtide/blob/main/docs/src/laws.md)"
        ],
    );
}

#[test]
fn a_read_of_what_another_iteration_adds_to_is_reported() {
    check_race(
        |b, [x, y], i| {
            line(b, 3);
            let v = b.load(y, &[i]);
            let half = half_of(b, i);
            line(b, 4);
            b.update(Combine::Add, x, &[half], v);
        },
        expect![
            "a race: element [0] of `x` is read by iteration [0], at p.rs:3:9, and added to by iteration [1], at p.rs:4:9 (law 7, https://github.com/ebbtide/ebbtide/blob/main/docs/src/laws.md)"
        ],
    );
}

#[test]
fn a_write_of_what_another_iteration_adds_to_is_reported() {
    check_race(
        |b, [x, y], i| {
            let (half, one) = (half_of(b, i), b.literal(Literal::from(1.0)));
            line(b, 3);
            b.update(Combine::Add, x, &[half], one);
            line(b, 4);
            b.store(y, &[i], one);
        },
        expect![
            "a race: element [0] of `x` is written by iteration [0], at p.rs:4:9, and added to by iteration [1], at p.rs:3:9 (law 7, https://github.com/ebbtide/ebbtide/blob/main/docs/src/laws.md)"
        ],
    );
}

#[test]
fn combining_by_two_operations_is_reported_and_by_one_is_not() {
    let both = |first: Combine, second: Combine| {
        move |b: &mut Builder, [x, y]: [ArrayId; 2], i: ValueId| {
            let (half, one) = (half_of(b, i), b.literal(Literal::from(1.0)));
            line(b, 3);
            b.update(first, x, &[half], one);
            line(b, 4);
            b.update(second, y, &[half], one);
        }
    };
    check_race(
        both(Combine::Add, Combine::Min),
        expect![
            "a race: element [0] of `x` is combined into (`min`) by iteration [0], at p.rs:4:9, and added to by iteration [1], at p.rs:3:9 (law 7, https://github.com/ebbtide/ebbtide/blob/main/docs/src/laws.md)"
        ],
    );
    for how in [Combine::Add, Combine::Min, Combine::Max] {
        run(&merged(&over_two(both(how, how))), WATCHED).unwrap();
    }
}

#[test]
fn reads_do_not_conflict() {
    let program = over_two(|b, [x, y], i| {
        let zero = b.literal(Literal::index(0));
        let v = b.load(y, &[zero]);
        b.store(x, &[i], v);
    });
    run(&program, WATCHED).unwrap();
}

#[test]
fn a_claimed_element_is_the_claimers() {
    // Iterations claim what they write; another one reads it without a claim.
    check_race(
        |b, [x, y], i| {
            let (seven, one) = (b.literal(Literal::index(7)), b.literal(Literal::from(1.0)));
            let mirrored = b.binary(Binary::Sub, seven, i);
            line(b, 3);
            b.store_unique(x, &[mirrored], one);
            line(b, 4);
            b.load(y, &[i]);
        },
        expect![
            "a race: element [3] of `x` is read by iteration [3], at p.rs:4:9, and written by iteration [4], at p.rs:3:9 (law 7, https://github.com/ebbtide/ebbtide/blob/main/docs/src/laws.md)"
        ],
    );
    // A second claim is a fault of its own in every order, also where what is claimed is read before.
    let twice = over_two(|b, [x, _], i| {
        let half = half_of(b, i);
        let v = b.load(x, &[half]);
        b.store_unique(x, &[half], v);
    });
    for order in [IterationOrder::Ascending, IterationOrder::Descending, IterationOrder::Shuffled(5)] {
        let fault = run(&twice, Modes { order, ..WATCHED }).expect_err("claimed twice");
        assert!(matches!(fault, Fault::WrittenTwice { .. }), "{fault}");
    }
}

#[test]
fn what_one_iteration_does_with_its_own_elements_is_no_race() {
    let program = over_two(|b, [x, _], i| {
        let v = b.load(x, &[i]);
        b.update(Combine::Add, x, &[i], v);
        b.update(Combine::Min, x, &[i], v);
        let w = b.load(x, &[i]);
        b.store(x, &[i], w);
    });
    assert_eq!(run(&program, WATCHED), run(&program, Modes::default()));
}

#[test]
fn sums_are_taken_in_iteration_order_whatever_the_order_of_execution() {
    // Elements that lose bits when they are added in another order.
    let program = over_two(|b, [x, y], i| {
        let (v, half) = (b.load(y, &[i]), half_of(b, i));
        let tiny = b.literal(Literal::from(1e-17));
        let v = b.binary(Binary::Div, v, tiny);
        let w = b.math(Function::Sin, &[v]);
        b.update(Combine::Add, x, &[half], w);
        let zero = b.literal(Literal::index(0));
        let index = b.binary(Binary::Mul, zero, i);
        b.update(Combine::Add, x, &[index], v);
    });
    let expected = run(&program, Modes::default()).unwrap();
    for seed in 0..20 {
        for order in [IterationOrder::Ascending, IterationOrder::Descending, IterationOrder::Shuffled(seed)] {
            for races in [Races::Ignored, Races::Reported] {
                let modes = Modes { order, races, ..Modes::default() };
                assert_eq!(run(&program, modes).unwrap(), expected, "{modes:?}");
            }
        }
    }
}

#[test]
fn a_loop_that_depends_on_the_order_of_its_iterations_has_other_bits_in_another_order() {
    let racy = merged(&over_two(|b, [x, y], i| {
        let (one, n) = (b.literal(Literal::index(1)), b.dim(x, 0));
        let next = b.binary(Binary::Add, i, one);
        let next = b.binary(Binary::Rem, next, n);
        let v = b.load(y, &[next]);
        b.store(x, &[i], v);
    }));
    let ascending = run(&racy, Modes::default()).unwrap();
    for order in [IterationOrder::Descending, IterationOrder::Shuffled(1)] {
        assert_ne!(run(&racy, Modes { order, ..Modes::default() }).unwrap(), ascending);
    }
}
