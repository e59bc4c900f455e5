//! Operations of the host: between parallel loops, in loops and branches, under every schedule.

use std::sync::Arc;

use ebbtide_conformance::Input;
use ebbtide_ir::*;

use crate::devices::{check, cpu, results};
use crate::gradients::{Case, Given, with_misfit};

/// `x[i] = 0.5 x[i]`, on the host.
fn halve() -> Operation {
    fn adjoint() -> Result<Program, Error> {
        let mut b = Builder::new("halve_adjoint");
        b.array("x", Type::F64, 1, Access::Read);
        let bar = b.array("bar", Type::F64, 1, Access::Write);
        let (zero, half, n) = (b.literal(Literal::index(0)), b.literal(Literal::from(0.5)), b.dim(bar, 0));
        let i = b.begin_par(&[("i", zero, n)]);
        let old = b.load(bar, &i);
        let new = b.binary(Binary::Mul, half, old);
        b.store(bar, &i, new);
        b.end_par();
        b.finish()
    }
    let adjoint = Rule { name: "halve_adjoint", build: adjoint, rules: Rules::none };
    let work = Work::Host(Arc::new(|args| {
        for arg in args {
            let HostArg::Write { bytes, .. } = arg else { return Err("it writes its array".to_string()) };
            for x in bytes.chunks_exact_mut(8) {
                let value = f64::from_le_bytes(x.try_into().unwrap());
                x.copy_from_slice(&(0.5 * value).to_le_bytes());
            }
        }
        Ok(())
    }));
    Operation { name: "halve".into(), work, rules: Rules { adjoint: Some(adjoint), ..Rules::none() } }
}

/// `y[i] = y[i] + s x[i]`, on the host; an error where `s` is beyond a limit.
fn add_scaled() -> Operation {
    let work = Work::Host(Arc::new(|args| {
        let [HostArg::Read { bytes: x, .. }, HostArg::Scalar(s), HostArg::Write { bytes: y, .. }] = args
        else {
            return Err("it takes an array to read, a scalar and an array to write".to_string());
        };
        let scale = s.to_f64();
        if scale > 1e12 {
            return Err(format!("{scale} is too much"));
        }
        for (x, y) in x.chunks_exact(8).zip(y.chunks_exact_mut(8)) {
            let [x, old] = [x, &*y].map(|bytes| f64::from_le_bytes(bytes.try_into().unwrap()));
            y.copy_from_slice(&(old + scale * x).to_le_bytes());
        }
        Ok(())
    }));
    Operation { name: "add_scaled".into(), work, rules: Rules::none() }
}

/// Operations in a loop, in a branch of it, and in a loop that data ends; values of kernels are their scalars.
fn driven() -> Program {
    let mut b = Builder::new("driven");
    let [x, y] = ["x", "y"].map(|name| b.array(name, Type::F64, 1, Access::Write));
    let count = b.array("count", Type::I32, 0, Access::Write);
    let steps = b.scalar("steps", Type::Index);
    let (zero, one, two) =
        (b.literal(Literal::index(0)), b.literal(Literal::index(1)), b.literal(Literal::index(2)));
    let n = b.dim(x, 0);
    let shrink = b.literal(Literal::from(0.9));
    let t = b.begin_for("t", zero, steps);
    let i = b.begin_par(&[("i", zero, n)]);
    let (old_x, old_y) = (b.load(x, &i), b.load(y, &i));
    let small = b.binary(Binary::Mul, shrink, old_x);
    let new = b.binary(Binary::Add, small, old_y);
    b.store(x, &i, new);
    b.end_par();
    let scale = b.load(x, &[zero]);
    b.operation(
        add_scaled(),
        &[Bound::Array(x, Access::Read), Bound::Scalar(scale), Bound::Array(y, Access::Write)],
    );
    b.swap(x, y);
    let odd = b.binary(Binary::Rem, t, two);
    let is_odd = b.compare(Compare::Eq, odd, one);
    b.begin_if(is_odd);
    b.operation(halve(), &[Bound::Array(y, Access::Write)]);
    b.begin_else();
    let i = b.begin_par(&[("i", zero, n)]);
    let old = b.load(y, &i);
    let less = b.binary(Binary::Mul, shrink, old);
    b.store(y, &i, less);
    b.end_par();
    b.end_if();
    b.end_loop(None);
    b.begin_loop();
    b.operation(halve(), &[Bound::Array(x, Access::Write)]);
    let (four, step) = (b.literal(Literal::from(4i32)), b.literal(Literal::from(1i32)));
    let so_far = b.load(count, &[]);
    let more = b.binary(Binary::Add, so_far, step);
    b.store(count, &[], more);
    let ended = b.compare(Compare::Ge, more, four);
    b.end_loop(Some(ended));
    b.finish().unwrap()
}

fn inputs(n: usize, steps: i64) -> [Input; 4] {
    [
        Input::Array(vec![n], 3),
        Input::Array(vec![n], 5),
        Input::Elements(vec![], vec![Literal::from(0i32)]),
        Input::Scalar(Literal::index(steps)),
    ]
}

#[test]
pub fn operations_of_the_host_stand_between_loops_in_loops_and_in_branches() {
    for (n, steps) in [(1, 3), (7, 0), (50, 1), (50, 6), (5000, 5)] {
        check(&driven(), &inputs(n, steps)).unwrap();
    }
}

#[test]
pub fn an_operation_that_fails_is_an_error_that_names_it() {
    let mut inputs = inputs(5, 4);
    inputs[0] = Input::Elements(vec![5], vec![Literal::from(1e15); 5]);
    for threads in [1, 2] {
        let error = results(&driven(), &cpu(threads), &inputs).unwrap_err();
        assert!(error.contains("add_scaled") && error.contains("is too much"), "{error}");
    }
}

#[test]
pub fn gradients_through_operations_of_the_host_have_the_same_bits_under_every_budget() {
    let mut b = Builder::new("swing");
    let x = b.array("x", Type::F64, 1, Access::Write);
    let steps = b.scalar("steps", Type::Index);
    let (zero, n) = (b.literal(Literal::index(0)), b.dim(x, 0));
    let [scale, shift] = [0.3, 0.1].map(|c| b.literal(Literal::from(c)));
    b.begin_for("t", zero, steps);
    let i = b.begin_par(&[("i", zero, n)]);
    let old = b.load(x, &i);
    let square = b.binary(Binary::Mul, old, old);
    let scaled = b.binary(Binary::Mul, scale, square);
    let new = b.binary(Binary::Add, scaled, shift);
    b.store(x, &i, new);
    b.end_par();
    b.operation(halve(), &[Bound::Array(x, Access::Write)]);
    b.end_loop(None);
    let program = with_misfit(b.finish().unwrap(), "x");
    for steps in [0, 1, 5] {
        let given = vec![Given::Shape(vec![33]), Given::Scalar(Literal::index(steps)), Given::Shape(vec![])];
        Case { program: program.clone(), wrt: vec!["x"], given }.check_bits(steps as u64);
    }
}
