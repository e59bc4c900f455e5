//! Products that a loop adds to a matrix may wait for each other, and nobody can tell.

use ebbtide_conformance::{Input, element};
use ebbtide_ir::*;
use ebbtide_runtime::{Arg, Array, Array0, Array2, Compiled, Device, interpreter};

use crate::devices::{check, cpu};
use crate::stages::label;

/// What else the loop does, besides `a = 0.5 - a; c += aᵀ · b; b = 0.5 - b`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Also {
    Nothing,
    /// Reads an element of the matrix, so that nothing can wait.
    Reads,
    /// Adds the product once more, in every second pass.
    AddsAgain,
    /// Reads element `t` of a line that may be too short.
    ReadsLine,
    /// Stands in a region that yields in every pass.
    Yields,
    /// That region undoes what it wrote, the matrix included.
    Undoes,
}

fn program(ty: Type, also: Also) -> Program {
    let mut b = Builder::new("rows");
    let [left, right, c] = ["a", "b", "c"].map(|name| b.array(name, ty, 2, Access::Write));
    let line = b.array("line", ty, 1, Access::Write);
    let flag = b.array("flag", Type::I32, 0, Access::Write);
    let steps = b.scalar("steps", Type::Index);
    let [zero, two] = [0, 2].map(|k| b.literal(Literal::index(k)));
    let half = b.literal(Literal::of(ty, 0.5));
    let op = LibraryOp::Matmul { left: Layout::Transposed, right: Layout::Plain, into: Assign::Add };
    let t = b.begin_for("t", zero, steps);
    match also {
        Also::Yields => b.begin_region(label(0), Some(flag), Undo::Nothing),
        Also::Undoes => b.begin_region(label(0), Some(flag), Undo::Everything),
        _ => {}
    }
    let change = |b: &mut Builder, array: ArrayId| {
        let (n, m) = (b.dim(array, 0), b.dim(array, 1));
        let at = b.begin_par(&[("i", zero, n), ("j", zero, m)]);
        let v = b.load(array, &at);
        let v = b.binary(Binary::Sub, half, v);
        b.store(array, &at, v);
        b.end_par();
    };
    change(&mut b, left);
    b.library(op, &[left, right], &[c]);
    change(&mut b, right);
    match also {
        Also::Nothing => {}
        Also::Reads => {
            let v = b.load(c, &[zero, zero]);
            b.store(line, &[zero], v);
        }
        Also::AddsAgain => {
            let rest = b.binary(Binary::Rem, t, two);
            let even = b.compare(Compare::Eq, rest, zero);
            b.begin_if(even);
            b.library(op, &[left, right], &[c]);
            b.end_if();
        }
        Also::ReadsLine => {
            let v = b.load(line, &[t]);
            b.store(line, &[zero], v);
        }
        Also::Yields | Also::Undoes => {
            let one = b.literal(Literal::from(1));
            b.store(flag, &[], one);
            b.end_region();
        }
    }
    b.end_loop(None);
    b.finish().unwrap()
}

fn inputs([terms, rows, columns]: [usize; 3], steps: usize) -> [Input; 6] {
    [
        Input::Array(vec![terms, rows], 1),
        Input::Array(vec![terms, columns], 2),
        Input::Array(vec![rows, columns], 3),
        Input::Array(vec![40], 4),
        Input::Array(vec![], 5),
        Input::Scalar(Literal::from(steps)),
    ]
}

/// The statements that make products wait in the text of a program.
fn waits(program: &Program) -> bool {
    Compiled::new(program, &cpu(1)).unwrap().source().unwrap().contains("eb_defer_f64(f,")
}

#[test]
fn what_waits_is_what_nobody_looks_at() {
    for (also, expected) in [
        (Also::Nothing, true),
        (Also::Reads, false),
        (Also::AddsAgain, true),
        (Also::ReadsLine, true),
        (Also::Yields, true),
        (Also::Undoes, false),
    ] {
        assert_eq!(waits(&program(Type::F64, also)), expected, "{also:?}");
    }
}

#[test]
fn products_that_wait_have_the_same_bits_after_any_number_of_passes() {
    for ty in [Type::F64, Type::F32] {
        for also in [Also::Nothing, Also::Reads, Also::AddsAgain] {
            let program = program(ty, also);
            for steps in [0, 1, 7, 8, 9, 15, 16, 17, 33] {
                check(&program, &inputs([1, 61, 83], steps)).unwrap();
            }
            // Several rows at a time, so many that none wait, none at all; more than there is room for.
            for shape in
                [[2, 70, 66], [3, 70, 66], [9, 70, 66], [0, 70, 66], [1, 3, 5000], [1, 5000, 3], [1, 0, 5000]]
            {
                if also != Also::Reads || shape[1] > 0 {
                    check(&program, &inputs(shape, 19)).unwrap();
                }
            }
        }
    }
}

#[test]
fn zeros_and_infinities_wait_as_they_are() {
    let special = [0.0, -0.0, 1.0, f64::INFINITY, f64::NEG_INFINITY, f64::NAN, f64::MIN_POSITIVE, 1e300];
    for ty in [Type::F64, Type::F32] {
        let program = program(ty, Also::Nothing);
        for seed in 0..3 {
            let of = |count: usize, salt: usize| -> Vec<Literal> {
                (0..count)
                    .map(|k| {
                        let chosen = element(Type::U32, (seed + salt) as u64, k as u64).bits() as usize;
                        Literal::of(ty, special[(chosen * 3 + k) % special.len()])
                    })
                    .collect()
            };
            let mut inputs = inputs([1, 64, 72], 11);
            inputs[0] = Input::Elements(vec![1, 64], of(64, 1));
            inputs[1] = Input::Elements(vec![1, 72], of(72, 2));
            inputs[2] = Input::Elements(vec![64, 72], vec![Literal::of(ty, -0.0); 64 * 72]);
            check(&program, &inputs).unwrap();
        }
    }
}

/// The arrays of a launch.
struct World {
    a: Array2<f64>,
    b: Array2<f64>,
    c: Array2<f64>,
    line: Array<f64, 1>,
    flag: Array0<i32>,
}

impl World {
    fn new(device: &Device, line: usize) -> World {
        let of = |seed: u64, count: u64| -> Vec<f64> {
            (0..count).map(|k| element(Type::F64, seed, k).to_f64()).collect()
        };
        World {
            a: device.array_with_shape([1, 64], &of(1, 64)).unwrap(),
            b: device.array_with_shape([1, 80], &of(2, 80)).unwrap(),
            c: device.array_with_shape([64, 80], &of(3, 64 * 80)).unwrap(),
            line: device.zeros([line]).unwrap(),
            flag: device.scalar(0).unwrap(),
        }
    }

    fn args(&mut self, steps: usize) -> Vec<Arg<'_>> {
        vec![
            Arg::Write(self.a.any_mut()),
            Arg::Write(self.b.any_mut()),
            Arg::Write(self.c.any_mut()),
            Arg::Write(self.line.any_mut()),
            Arg::Write(self.flag.any_mut()),
            Arg::Scalar(Literal::from(steps)),
        ]
    }

    fn bits(&self) -> Vec<u64> {
        self.c.to_vec().into_iter().map(f64::to_bits).collect()
    }
}

#[test]
fn a_run_error_finds_what_was_added_before_it() {
    let program = program(Type::F64, Also::ReadsLine);
    let after = |device: &Device| {
        let mut world = World::new(device, 5);
        let compiled = Compiled::new(&program, device).unwrap();
        let message = compiled.launch(world.args(9)).unwrap_err().to_string();
        assert!(message.contains("`line`"), "{message}");
        world.bits()
    };
    let expected = after(&interpreter());
    for threads in [1, 2, 5] {
        assert_eq!(after(&cpu(threads)), expected, "{threads} threads");
    }
}

#[test]
fn the_host_sees_and_changes_the_matrix_at_every_yield() {
    for also in [Also::Yields, Also::Undoes] {
        let program = program(Type::F64, also);
        let seen = |device: &Device| {
            let mut world = World::new(device, 1);
            let compiled = Compiled::new(&program, device).unwrap();
            let mut seen = Vec::new();
            let mut status = compiled.launch(world.args(6)).unwrap();
            while let Some(at) = status.yielded() {
                seen.push(world.bits());
                world.c.as_mut_slice().iter_mut().for_each(|x| *x *= 1.25);
                world.flag.fill(0).unwrap();
                if seen.len() == 9 {
                    break;
                }
                status = compiled.resume(&at, world.args(6)).unwrap();
            }
            seen.push(world.bits());
            seen
        };
        let expected = seen(&interpreter());
        for threads in [1, 2, 5] {
            assert!(seen(&cpu(threads)) == expected, "{also:?}, {threads} threads");
        }
    }
}
