//! Launches that the host stops. The programs here have no end of their own.

use ebbtide_ir::*;
use ebbtide_runtime::{Arg, Array1, Budget, Cancel, Compiled, Device, Error, Status, interpreter};

use crate::devices::cpu;
use crate::gradients::{Case, Given, bits, with_misfit};
use crate::programs::B;

/// What a program does for ever.
#[derive(Clone, Copy, Debug)]
enum Endless {
    /// Passes whose iterations touch their own elements alone: nothing makes threads meet.
    OwnElements,
    /// Passes that read neighbours.
    Neighbours,
    /// Passes that sum.
    Sums,
    /// A loop that data should end.
    While,
    /// A loop inside a loop inside a loop, each of few passes but the outermost.
    Nested,
    /// The same of many passes each, whose iterations touch their own elements alone.
    NestedOwnElements,
    /// A counted loop inside iterations.
    ForInside,
    /// A loop inside iterations that data should end.
    WhileInside,
    /// One without a condition.
    LoopInside,
    /// A loop from element to element, which one thread runs alone.
    Elements,
}

impl Endless {
    fn has_passes(self) -> bool {
        !matches!(
            self,
            Endless::NestedOwnElements | Endless::ForInside | Endless::WhileInside | Endless::LoopInside
        )
    }
}

const ALL: [Endless; 9] = [
    Endless::OwnElements,
    Endless::Neighbours,
    Endless::Sums,
    Endless::While,
    Endless::Nested,
    Endless::ForInside,
    Endless::WhileInside,
    Endless::LoopInside,
    Endless::Elements,
];

/// Adds 1 to every element of `a`, as often as `passes` says, or for ever where the data does not say otherwise.
fn endless(kind: Endless) -> Program {
    let mut b = B::new("endless");
    let a = b.0.array("a", Type::F64, 1, Access::Write);
    let other = b.0.array("other", Type::F64, 1, Access::Write);
    let passes = b.0.scalar("passes", Type::Index);
    let (zero, one, n) = (b.index(0), b.index(1), b.0.dim(a, 0));
    let (unit, nought) = (b.real(1.0), b.real(0.0));
    match kind {
        Endless::OwnElements => {
            b.0.begin_for("t", zero, passes);
            let i = b.0.begin_par(&[("i", zero, n)])[0];
            b.0.update(Combine::Add, a, &[i], unit);
            b.0.end_par();
            b.0.end_loop(None);
        }
        Endless::Neighbours => {
            b.0.begin_for("t", zero, passes);
            let i = b.0.begin_par(&[("i", zero, n)])[0];
            let beside = b.add(i, one);
            let beside = b.rem(beside, n);
            let x = b.0.load(a, &[beside]);
            let x = b.add(x, unit);
            b.0.store(other, &[i], x);
            b.0.end_par();
            b.0.swap(a, other);
            b.0.end_loop(None);
        }
        Endless::Sums => {
            b.0.begin_for("t", zero, passes);
            let i = b.0.begin_par(&[("i", zero, n)])[0];
            let x = b.0.load(a, &[i]);
            b.0.update(Combine::Max, other, &[zero], x);
            b.0.end_par();
            let i = b.0.begin_par(&[("i", zero, n)])[0];
            b.0.update(Combine::Add, a, &[i], unit);
            b.0.end_par();
            b.0.end_loop(None);
        }
        Endless::While => {
            b.0.begin_while();
            let x = b.0.load(a, &[zero]);
            let limit = b.0.cast(passes, Type::F64);
            let goes_on = b.0.compare(Compare::Lt, x, limit);
            b.0.while_condition(goes_on);
            let i = b.0.begin_par(&[("i", zero, n)])[0];
            b.0.update(Combine::Add, a, &[i], unit);
            b.0.end_par();
            b.0.end_loop(None);
        }
        Endless::Nested => {
            b.0.begin_for("t", zero, passes);
            for (name, times) in [("u", 3), ("v", 2)] {
                let times = b.index(times);
                b.0.begin_for(name, zero, times);
            }
            let i = b.0.begin_par(&[("i", zero, n)])[0];
            let share = b.real(1.0 / 6.0);
            b.0.update(Combine::Add, other, &[i], share);
            b.0.end_par();
            b.0.end_loop(None);
            b.0.end_loop(None);
            let i = b.0.begin_par(&[("i", zero, n)])[0];
            b.0.update(Combine::Add, a, &[i], unit);
            b.0.end_par();
            b.0.end_loop(None);
        }
        Endless::NestedOwnElements => {
            b.0.begin_for("t", zero, passes);
            let many = b.index(1000);
            let times = b.0.binary(Binary::Min, passes, many);
            b.0.begin_for("u", zero, times);
            b.0.begin_for("v", zero, times);
            let i = b.0.begin_par(&[("i", zero, n)])[0];
            b.0.update(Combine::Add, other, &[i], unit);
            b.0.end_par();
            b.0.end_loop(None);
            b.0.end_loop(None);
            let i = b.0.begin_par(&[("i", zero, n)])[0];
            b.0.update(Combine::Add, a, &[i], unit);
            b.0.end_par();
            b.0.end_loop(None);
        }
        Endless::Elements => {
            b.0.begin_for("t", zero, passes);
            let i = b.0.begin_for("i", zero, n);
            b.0.update(Combine::Add, a, &[i], unit);
            let x = b.0.load(a, &[i]);
            b.0.store(other, &[i], x);
            b.0.end_loop(None);
            b.0.end_loop(None);
            let i = b.0.begin_par(&[("i", zero, n)])[0];
            let x = b.0.load(other, &[i]);
            let x = b.0.unary(Unary::Sqrt, x);
            b.0.store(other, &[i], x);
            b.0.end_par();
        }
        Endless::ForInside => {
            let i = b.0.begin_par(&[("i", zero, n)])[0];
            b.0.begin_for("t", zero, passes);
            let x = b.0.load(a, &[i]);
            let x = b.add(x, unit);
            b.0.store(a, &[i], x);
            b.0.end_loop(None);
            b.0.end_par();
        }
        Endless::WhileInside | Endless::LoopInside => {
            let i = b.0.begin_par(&[("i", zero, n)])[0];
            let count = b.0.local("count", nought);
            let limit = b.0.cast(passes, Type::F64);
            match kind {
                Endless::WhileInside => {
                    b.0.begin_while();
                    let x = b.0.get(count);
                    let goes_on = b.0.compare(Compare::Lt, x, limit);
                    b.0.while_condition(goes_on);
                }
                _ => b.0.begin_loop(),
            }
            let x = b.0.get(count);
            let x = b.add(x, unit);
            b.0.set(count, x);
            let enough = b.0.compare(Compare::Ge, x, limit);
            b.0.end_loop(matches!(kind, Endless::LoopInside).then_some(enough));
            let x = b.0.get(count);
            b.0.update(Combine::Add, a, &[i], x);
            b.0.end_par();
        }
    }
    b.0.finish().unwrap()
}

/// So many that no machine comes to the end.
const FOR_EVER: i64 = 1 << 60;

fn args<'a>(a: &'a mut Array1<f64>, other: &'a mut Array1<f64>, passes: i64) -> Vec<Arg<'a>> {
    vec![Arg::Write(a.any_mut()), Arg::Write(other.any_mut()), Arg::Scalar(Literal::index(passes))]
}

fn devices() -> [Device; 4] {
    [interpreter(), cpu(1), cpu(2), cpu(5)]
}

fn is_cancelled(result: ebbtide_runtime::Result<Status>) -> bool {
    match result {
        Err(Error::Cancelled { program }) => program == "endless",
        other => panic!("it was not cancelled: {other:?}"),
    }
}

#[test]
pub fn a_launch_that_never_ends_is_stopped_and_its_arrays_can_be_used_again() {
    stopped_and_used_again(&ALL);
}

/// Where nothing makes threads meet, they do so by themselves, however few passes each of the inner loops has.
#[test]
pub fn inner_loops_of_few_passes_do_not_put_an_end_off() {
    stopped_and_used_again(&[Endless::NestedOwnElements]);
}

fn stopped_and_used_again(kinds: &[Endless]) {
    for kind in kinds.iter().copied() {
        let program = endless(kind);
        for device in devices() {
            let compiled = Compiled::new(&program, &device).unwrap();
            for n in [3usize, 40_000] {
                let mut a = device.zeros([n]).unwrap();
                let mut other = device.zeros([n]).unwrap();
                let pending = compiled.launch_async(args(&mut a, &mut other, FOR_EVER)).unwrap();
                assert!(pending.poll().is_pending(), "{kind:?} on {device:?}: it ended by itself");
                // A loop around parallel ones says how far it is, when a pass of it has ended; inside iterations there is no
                // such place.
                while kind.has_passes() && pending.passes() == 0 {
                    std::thread::yield_now();
                }
                pending.cancel();
                assert!(is_cancelled(pending.wait()), "{kind:?} on {device:?}");
                // What was interrupted has left nothing behind that another launch would see.
                a.fill(0.0).unwrap();
                other.fill(0.0).unwrap();
                let status = compiled.launch(args(&mut a, &mut other, 7)).unwrap();
                assert_eq!(status, Status::Done);
                assert_eq!(a.to_vec(), vec![7.0; n], "{kind:?} on {device:?}");
            }
        }
    }
}

#[test]
pub fn one_switch_stops_all_launches_that_have_it() {
    for device in devices() {
        let plain = Compiled::new(&endless(Endless::Neighbours), &device).unwrap();
        let cancel = Cancel::new();
        let compiled = plain.cancel_with(&cancel);
        let (mut a, mut other) = (device.zeros([100]).unwrap(), device.zeros([100]).unwrap());
        // One that ends by itself is not touched by a wish that comes later.
        assert_eq!(compiled.launch(args(&mut a, &mut other, 2)).unwrap(), Status::Done);
        let pending = compiled.launch_async(args(&mut a, &mut other, FOR_EVER)).unwrap();
        while pending.passes() == 0 {
            std::thread::yield_now();
        }
        cancel.cancel();
        assert!(is_cancelled(pending.wait()));
        // The wish stands until it is taken back: nothing runs, nothing changes.
        a.fill(5.0).unwrap();
        assert!(is_cancelled(compiled.launch(args(&mut a, &mut other, 2))));
        assert_eq!(a.to_vec(), vec![5.0; 100]);
        assert_eq!(plain.launch(args(&mut a, &mut other, 2)).unwrap(), Status::Done);
        cancel.reset();
        assert_eq!(compiled.launch(args(&mut a, &mut other, 2)).unwrap(), Status::Done);
        assert_eq!(a.to_vec(), vec![9.0; 100]);
    }
}

#[test]
pub fn a_wish_that_comes_after_the_end_changes_nothing() {
    for device in devices() {
        let compiled = Compiled::new(&endless(Endless::OwnElements), &device).unwrap();
        let (mut a, mut other) = (device.zeros([100]).unwrap(), device.zeros([100]).unwrap());
        let pending = compiled.launch_async(args(&mut a, &mut other, 3)).unwrap();
        assert_eq!(a.to_vec(), vec![3.0; 100]);
        assert_eq!(pending.passes(), 3);
        pending.cancel();
        assert_eq!(pending.wait().unwrap(), Status::Done);
    }
}

/// A GPU loads no code while a kernel runs, and its driver lets everybody wait meanwhile.
#[test]
pub fn a_launch_is_stopped_while_others_are_compiled() {
    for device in devices() {
        let compiled = Compiled::new(&endless(Endless::Neighbours), &device).unwrap();
        let (mut a, mut other) = (device.zeros([3000]).unwrap(), device.zeros([3000]).unwrap());
        let pending = compiled.launch_async(args(&mut a, &mut other, FOR_EVER)).unwrap();
        let beside = device.clone();
        let (begin, begun) = std::sync::mpsc::channel();
        let compiling = std::thread::spawn(move || {
            begin.send(()).unwrap();
            for kind in ALL {
                let _compiled = Compiled::new(&endless(kind), &beside).unwrap();
            }
        });
        begun.recv().unwrap();
        pending.cancel();
        assert!(is_cancelled(pending.wait()), "{device:?}");
        compiling.join().unwrap();
    }
}

#[test]
pub fn a_gradient_that_never_ends_is_stopped_and_can_be_launched_again() {
    for kind in [Endless::OwnElements, Endless::Neighbours] {
        let case = |passes: i64| Case {
            program: with_misfit(endless(kind), "a"),
            wrt: vec!["a"],
            given: vec![
                Given::Shape(vec![3000]),
                Given::Shape(vec![3000]),
                Given::Scalar(Literal::index(passes)),
                Given::Shape(vec![]),
            ],
        };
        let (short, long) = (case(9), case(1 << 33));
        for device in devices() {
            let plain = short.compile(&device);
            let expected = bits(&short.run(&plain).0);
            // One action of very many passes, and very many actions.
            for budget in [Budget::Periodic { period: 1 << 32 }, Budget::Revolve { slots: 2, block: 1 }] {
                let cancel = Cancel::new();
                let stoppable = plain.with_budget(budget).cancel_with(&cancel);
                let switch = cancel.clone();
                // Before the launch, at its beginning or in its middle: it is stopped.
                let later = std::thread::spawn(move || {
                    (0..1000).for_each(|_| std::thread::yield_now());
                    switch.cancel();
                });
                let stopped = long.with_arguments(&stoppable, |args| stoppable.launch(args)).1;
                assert!(
                    matches!(stopped, Err(Error::Cancelled { .. })),
                    "{kind:?} on {device:?}: {stopped:?}"
                );
                later.join().unwrap();
                cancel.reset();
                assert_eq!(
                    bits(&short.run(&stoppable).0),
                    expected,
                    "{kind:?} on {device:?} under {budget:?}"
                );
            }
        }
    }
}

/// On a GPU an iteration looks only after very many passes of its own.
#[test]
fn a_parallel_loop_whose_iterations_have_short_loops_is_stopped_in_its_middle() {
    let mut b = B::new("endless");
    let a = b.0.array("a", Type::F64, 1, Access::Write);
    let _other = b.0.array("other", Type::F64, 1, Access::Write);
    let passes = b.0.scalar("passes", Type::Index);
    let (zero, n) = (b.index(0), b.0.dim(a, 0));
    // Iterations are as many as the array has elements only where passes are few.
    let many = b.mul(n, passes);
    let i = b.0.begin_par(&[("i", zero, many)])[0];
    let times = b.index(1000);
    let times = b.0.binary(Binary::Min, times, passes);
    let sum = b.real(0.0);
    let sum = b.0.local("sum", sum);
    b.0.begin_for("k", zero, times);
    let (x, unit) = (b.0.get(sum), b.real(1.0));
    let x = b.add(x, unit);
    b.0.set(sum, x);
    b.0.end_loop(None);
    let inside = b.0.compare(Compare::Lt, i, n);
    b.0.begin_if(inside);
    let x = b.0.get(sum);
    b.0.store(a, &[i], x);
    b.0.end_if();
    b.0.end_par();
    let program = b.0.finish().unwrap();
    for device in devices() {
        let compiled = Compiled::new(&program, &device).unwrap();
        let (mut a, mut other) = (device.zeros([9000]).unwrap(), device.zeros([1]).unwrap());
        let pending = compiled.launch_async(args(&mut a, &mut other, 1 << 40)).unwrap();
        (0..1000).for_each(|_| std::thread::yield_now());
        pending.cancel();
        assert!(is_cancelled(pending.wait()), "{device:?}");
        assert_eq!(compiled.launch(args(&mut a, &mut other, 1)).unwrap(), Status::Done);
        assert_eq!(a.to_vec(), [1.0; 9000], "{device:?}");
    }
}
