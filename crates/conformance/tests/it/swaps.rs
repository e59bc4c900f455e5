//! Parameters and temporaries that exchange their names: the caller finds its elements where its memory is.

use ebbtide_ir::{Access, Combine, Label, Literal, Program, Type, Undo};
use ebbtide_runtime::{Arg, Array0, Array1, Compiled, Device, Status};

use crate::devices::all;
use crate::programs::B;

/// `next = u / 2 + i` and `swap(u, next)`, `steps` times, and `swap(u, v)` behind it where they go in a circle; in a region that yields
/// where `fire` says. At the end `v` gets what `next` has.
fn program(circle: bool) -> Program {
    let mut b = B::new("swaps");
    let [u, v] = ["u", "v"].map(|name| b.0.array(name, Type::F64, 1, Access::Write));
    let flag = b.0.array("flag", Type::I32, 0, Access::Write);
    let fire = b.0.array("fire", Type::I32, 1, Access::Read);
    let steps = b.0.scalar("steps", Type::Index);
    let (zero, n, half, seven) = (b.index(0), b.0.dim(u, 0), b.real(0.5), b.real(7.0));
    let next = b.0.temp("next", Type::F64, &[n]);
    b.0.fill(next, seven);
    let t = b.0.begin_for("t", zero, steps);
    b.0.begin_region(label(), Some(flag), Undo::Nothing);
    let fires = b.0.load(fire, &[t]);
    b.0.store(flag, &[], fires);
    b.0.end_region();
    let i = b.0.begin_par(&[("i", zero, n)])[0];
    let old = b.0.load(u, &[i]);
    let old = b.mul(old, half);
    let place = b.0.cast(i, Type::F64);
    let new = b.add(old, place);
    b.0.store(next, &[i], new);
    b.0.end_par();
    b.0.swap(u, next);
    if circle {
        b.0.swap(u, v);
    }
    b.0.end_loop(None);
    let i = b.0.begin_par(&[("i", zero, n)])[0];
    let last = b.0.load(next, &[i]);
    b.0.update(Combine::Add, v, &[i], last);
    b.0.end_par();
    b.0.finish().unwrap()
}

fn label() -> Label {
    Label { family: "At".to_string(), variant: "Step".to_string() }
}

/// What `u`, `v` and `next` are after so many steps.
fn expected(circle: bool, steps: usize, [u, v]: [&[f64]; 2]) -> [Vec<f64>; 3] {
    let (mut u, mut v, mut next) = (u.to_vec(), v.to_vec(), vec![7.0; u.len()]);
    for _ in 0..steps {
        next = u.iter().enumerate().map(|(i, u)| u * 0.5 + i as f64).collect();
        std::mem::swap(&mut u, &mut next);
        if circle {
            std::mem::swap(&mut u, &mut v);
        }
    }
    [u, v, next]
}

struct World {
    u: Array1<f64>,
    v: Array1<f64>,
    flag: Array0<i32>,
    fire: Array1<i32>,
}

const STEPS: usize = 5;

impl World {
    fn new(device: &Device, n: usize, fire: i32) -> World {
        let ramp = |from: f64| (0..n).map(|i| from + i as f64).collect::<Vec<f64>>();
        World {
            u: device.array(&ramp(1.0)).unwrap(),
            v: device.array(&ramp(-3.5)).unwrap(),
            flag: device.scalar(0).unwrap(),
            fire: device.array(&[fire; STEPS]).unwrap(),
        }
    }

    fn args(&mut self, steps: usize) -> Vec<Arg<'_>> {
        vec![
            Arg::Write(self.u.any_mut()),
            Arg::Write(self.v.any_mut()),
            Arg::Write(self.flag.any_mut()),
            Arg::Read(self.fire.any()),
            Arg::Scalar(Literal::index(steps as i64)),
        ]
    }

    /// Where the elements of the parameters are.
    fn homes(&self) -> [*const f64; 2] {
        [self.u.as_slice().as_ptr(), self.v.as_slice().as_ptr()]
    }

    /// After so many steps, and what stands behind them where the program is over.
    fn check(&self, circle: bool, steps: usize, start: &World, over: bool) {
        let [u, mut v, next] = expected(circle, steps, [start.u.as_slice(), start.v.as_slice()]);
        if over {
            v.iter_mut().zip(next).for_each(|(v, next)| *v += next);
        }
        assert_eq!((self.u.to_vec(), self.v.to_vec()), (u, v), "{steps} steps, circle {circle}, over {over}");
    }
}

/// Every device, way of exchanging, length and number of steps.
fn everywhere(check: impl Fn(&Device, &Compiled, bool, usize, usize)) {
    for device in all() {
        for circle in [false, true] {
            let compiled = Compiled::new(&program(circle), &device).unwrap();
            for n in [0, 1, 5, 3000] {
                for steps in 0..=STEPS {
                    check(&device, &compiled, circle, n, steps);
                }
            }
        }
    }
}

#[test]
pub fn a_parameter_that_is_swapped_with_a_temporary_keeps_its_memory() {
    everywhere(|device, compiled, circle, n, steps| {
        let (mut world, start) = (World::new(device, n, 0), World::new(device, n, 0));
        let mut homes = world.homes();
        homes.sort_unstable();
        assert_eq!(compiled.launch(world.args(steps)).unwrap(), Status::Done);
        world.check(circle, steps, &start, true);
        let mut after = world.homes();
        after.sort_unstable();
        assert!(n == 0 || after == homes, "{n} elements, {steps} steps");
    });
}

#[test]
pub fn a_launch_that_is_not_waited_for_brings_them_back_too() {
    everywhere(|device, compiled, circle, n, steps| {
        let (mut world, start) = (World::new(device, n, 0), World::new(device, n, 0));
        let pending = compiled.launch_async(world.args(steps)).unwrap();
        assert_eq!(pending.wait().unwrap(), Status::Done);
        world.check(circle, steps, &start, true);
    });
}

#[test]
pub fn where_the_program_yields_parameters_are_at_home_and_temporaries_kept() {
    everywhere(|device, compiled, circle, n, steps| {
        let (mut world, start) = (World::new(device, n, 1), World::new(device, n, 1));
        let mut status = compiled.launch(world.args(steps)).unwrap();
        for step in 0..steps {
            let at = status.yielded().expect("every step fires once");
            world.check(circle, step, &start, false);
            world.fire.as_mut_slice()[step] = 0;
            status = compiled.resume(&at, world.args(steps)).unwrap();
        }
        assert_eq!(status, Status::Done);
        world.check(circle, steps, &start, true);
    });
}

#[test]
pub fn a_launch_that_fails_leaves_arrays_that_can_be_used_again() {
    everywhere(|device, compiled, circle, n, steps| {
        let (mut world, start) = (World::new(device, n, 0), World::new(device, n, 0));
        // There is no `fire` for the last step.
        if n > 0 {
            assert!(compiled.launch(world.args(STEPS + 1)).is_err());
            assert_eq!([world.u.len(), world.v.len()], [n; 2]);
            world.u.copy_from(&start.u).unwrap();
            world.v.copy_from(&start.v).unwrap();
        }
        assert_eq!(compiled.launch(world.args(steps)).unwrap(), Status::Done);
        world.check(circle, steps, &start, true);
    });
}

/// One that is declared behind the label is not missing there.
#[test]
fn who_enters_at_a_label_needs_no_temporary_that_is_declared_later() {
    let mut b = B::new("later");
    let u = b.0.array("u", Type::F64, 1, Access::Write);
    let (zero, two, one, n) = (b.index(0), b.index(2), b.real(1.0), b.0.dim(u, 0));
    b.0.begin_for("t", zero, two);
    b.0.begin_region(label(), None, Undo::Nothing);
    let i = b.0.begin_par(&[("i", zero, n)])[0];
    b.0.update(Combine::Add, u, &[i], one);
    b.0.end_par();
    b.0.end_region();
    let next = b.0.temp("next", Type::F64, &[n]);
    let i = b.0.begin_par(&[("i", zero, n)])[0];
    let old = b.0.load(u, &[i]);
    let new = b.add(old, old);
    b.0.store(next, &[i], new);
    b.0.end_par();
    b.0.swap(u, next);
    b.0.end_loop(None);
    let program = b.0.finish().unwrap();
    for device in all() {
        let mut u = device.array(&[1.0, 2.0]).unwrap();
        let compiled = Compiled::new(&program, &device).unwrap();
        assert_eq!(compiled.resume_at(label(), vec![Arg::Write(u.any_mut())]).unwrap(), Status::Done);
        assert_eq!(u.to_vec(), [10.0, 14.0]);
    }
}

#[test]
fn who_enters_at_a_label_is_told_that_a_temporary_is_missing() {
    let device = &all()[0];
    let compiled = Compiled::new(&program(false), device).unwrap();
    let mut world = World::new(device, 5, 0);
    let error = compiled.resume_at(label(), world.args(2)).unwrap_err().to_string();
    assert!(
        error.contains("it needs temporary `next`, which only the code before that label makes"),
        "{error}"
    );
}
