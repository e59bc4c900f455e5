//! Gradients: against differences, and bit for bit over schedules, devices and threads.

use ebbtide_autodiff::{Inner, Request, gradient};
use ebbtide_conformance::element;
use ebbtide_ir::*;
use ebbtide_runtime::{
    AnyArray, Arg, Budget, CompiledGradient, Device, Plan, Ran, Rate, Rates, Tiers, interpreter,
};

use crate::devices::{cpu, on_cuda};
use crate::programs;

/// Adds `loss += Σ x²·weight` after a program's body.
pub fn with_misfit(program: Program, array: &str) -> Program {
    let target = program.find_array(array).unwrap();
    let mut program = program;
    let ty = program.array(target).ty;
    let rank = program.array(target).rank;
    program.arrays.push(ArrayDecl { name: "loss".into(), ty, rank: 0, role: Role::Param(Access::Write) });
    let loss = ArrayId::from_index(program.arrays.len() - 1);
    program.params.push(Param::Array(loss));
    let value = |p: &mut Program, block: &mut Block, op, ty| {
        let v = p.add_value(op, ty, None);
        block.push(Stmt::Let(v));
        v
    };
    let mut tail = Block::new();
    let zero = value(&mut program, &mut tail, Op::Literal(Literal::index(0)), Type::Index);
    let mut ranges = Vec::new();
    for d in 0..rank {
        let to = value(&mut program, &mut tail, Op::Dim(target, d as u8), Type::Index);
        let var = program.add_value(Op::LoopVar, Type::Index, None);
        ranges.push(Range { var, from: zero, to });
    }
    let index = Indices::new(&ranges.iter().map(|r| r.var).collect::<Vec<_>>()).unwrap();
    let mut body = Block::new();
    let x = value(&mut program, &mut body, Op::Load(target, index), ty);
    let square = value(&mut program, &mut body, Op::Binary(Binary::Mul, x, x), ty);
    let (index, id) = (Indices::new(&[]).unwrap(), WriteId::UNNUMBERED);
    body.push(Stmt::Update(Combine::Add, Store { array: loss, index, value: square, site: None, id }));
    program.pars += 1;
    let id = ParId::from_index(program.pars as usize - 1);
    tail.push(Stmt::Par(Par::over(id, ranges, body)));
    program.body.extend(tail);
    program.number_writes();
    verify(&program).unwrap();
    program
}

/// The arguments of a program: shapes of arrays and scalars in parameter order.
#[derive(Clone)]
pub enum Given {
    Shape(Vec<usize>),
    Scalar(Literal),
}

pub struct Case {
    pub program: Program,
    pub wrt: Vec<&'static str>,
    pub given: Vec<Given>,
}

/// The bits of some results.
pub fn bits(results: &[Vec<f64>]) -> Vec<Vec<u64>> {
    results.iter().map(|a| a.iter().map(|x| x.to_bits()).collect()).collect()
}

impl Case {
    fn arrays(&self, device: &Device) -> Vec<AnyArray> {
        let mut arrays = Vec::new();
        for (k, (param, given)) in self.program.params.iter().zip(&self.given).enumerate() {
            if let (Param::Array(id), Given::Shape(shape)) = (param, given) {
                let ty = self.program.array(*id).ty;
                let mut array = AnyArray::zeros(device, ty, shape).unwrap();
                let name = &self.program.array(*id).name;
                for e in 0..array.len() {
                    let x = if name == "loss" {
                        Literal::zero(ty)
                    } else {
                        Literal::of(ty, 0.3 * element(ty, k as u64, e as u64).to_f64())
                    };
                    ebbtide_conformance::set(&mut array, e, x);
                }
                arrays.push(array);
            }
        }
        arrays
    }

    pub fn request(&self) -> Request {
        Request {
            of: "loss".into(),
            wrt: self.wrt.iter().map(|s| s.to_string()).collect(),
            values: vec!["loss".into()],
            seeded: false,
            ..Default::default()
        }
    }

    pub fn compile(&self, device: &Device) -> CompiledGradient {
        CompiledGradient::new(&self.program, &self.request(), device, Budget::StoreAll).unwrap()
    }

    /// The value and all derivatives, as numbers, and what the run did.
    pub fn run(&self, compiled: &CompiledGradient) -> (Vec<Vec<f64>>, Ran) {
        self.with_arguments(compiled, |args| compiled.launch(args).unwrap())
    }

    fn plan(&self, compiled: &CompiledGradient) -> Plan {
        self.with_arguments(compiled, |args| compiled.plan(args).unwrap()).1
    }

    pub fn with_arguments<T>(
        &self,
        compiled: &CompiledGradient,
        what: impl FnOnce(&mut [Arg<'_>]) -> T,
    ) -> (Vec<Vec<f64>>, T) {
        let device = compiled.device();
        let inputs = self.arrays(device);
        let shape_of = |name: &str| {
            let k = self
                .program
                .params
                .iter()
                .position(|p| matches!(p, Param::Array(a) if self.program.array(*a).name == name));
            match k.map(|k| &self.given[k]) {
                Some(Given::Shape(shape)) => {
                    (shape.clone(), self.program.array(self.program.find_array(name).unwrap()).ty)
                }
                _ => (vec![], self.program.scalars[self.program.find_scalar(name).unwrap().index()].ty),
            }
        };
        let mut outputs: Vec<AnyArray> = std::iter::once("loss")
            .chain(self.wrt.iter().copied())
            .map(|name| {
                let (shape, ty) = shape_of(name);
                AnyArray::zeros(device, ty, &shape).unwrap()
            })
            .collect();
        let mut rest = inputs.iter();
        let mut args: Vec<Arg> = self
            .given
            .iter()
            .map(|g| match g {
                Given::Shape(_) => Arg::Read(rest.next().unwrap()),
                Given::Scalar(l) => Arg::Scalar(*l),
            })
            .collect();
        args.extend(outputs.iter_mut().map(|array| Arg::Write(array.any_mut())));
        let answer = what(&mut args);
        drop(args);
        let numbers = |a: &AnyArray| {
            ebbtide_conformance::literals(a.ty(), a.bytes()).iter().map(|l| l.to_f64()).collect()
        };
        (outputs.iter().map(numbers).collect(), answer)
    }

    /// The loss at the given point, moved by `step` along `direction` in the inputs that are asked for.
    fn loss(&self, step: f64) -> f64 {
        let device = interpreter();
        let mut arrays = self.arrays(&device);
        let compiled = ebbtide_runtime::Compiled::new(&self.program, &device).unwrap();
        let mut k = 0;
        let mut given = self.given.clone();
        for (param, given) in self.program.params.iter().zip(&mut given) {
            match param {
                Param::Array(id) => {
                    let decl = self.program.array(*id);
                    if self.wrt.contains(&decl.name.as_str()) {
                        let old = ebbtide_conformance::literals(decl.ty, arrays[k].bytes());
                        for (e, x) in old.iter().enumerate() {
                            let moved = Literal::of(decl.ty, x.to_f64() + step * direction(&decl.name, e));
                            ebbtide_conformance::set(&mut arrays[k], e, moved);
                        }
                    }
                    k += 1;
                }
                Param::Scalar(id) => {
                    let decl = &self.program.scalars[id.index()];
                    if let (true, Given::Scalar(l)) = (self.wrt.contains(&decl.name.as_str()), given) {
                        *l = Literal::of(decl.ty, l.to_f64() + step * direction(&decl.name, 0));
                    }
                }
            }
        }
        let mut rest = arrays.iter_mut();
        let args = self
            .program
            .params
            .iter()
            .zip(&given)
            .map(|(p, g)| match (p, g) {
                (Param::Array(id), _) => match self.program.array(*id).role {
                    Role::Param(Access::Write) => Arg::Write(rest.next().unwrap().any_mut()),
                    _ => Arg::Read(rest.next().unwrap()),
                },
                (_, Given::Scalar(l)) => Arg::Scalar(*l),
                _ => unreachable!("every scalar has a value"),
            })
            .collect();
        let _done = compiled.launch(args).unwrap();
        let at = self
            .program
            .params
            .iter()
            .filter(|p| matches!(p, Param::Array(_)))
            .position(|p| matches!(p, Param::Array(a) if self.program.array(*a).name == "loss"))
            .unwrap();
        ebbtide_conformance::literals(arrays[at].ty(), arrays[at].bytes())[0].to_f64()
    }

    /// The derivative along the direction equals a difference of losses.
    pub fn check_difference(&self, step: f64, tolerance: f64) {
        let (results, _) = self.run(&self.compile(&interpreter()));
        let slope: f64 = self
            .wrt
            .iter()
            .zip(&results[1..])
            .map(|(name, d)| d.iter().enumerate().map(|(e, d)| d * direction(name, e)).sum::<f64>())
            .sum();
        let difference = (self.loss(step) - self.loss(-step)) / (2.0 * step);
        let size = slope.abs().max(difference.abs()).max(1e-30);
        assert!(
            (slope - difference).abs() <= tolerance * size,
            "{}: {slope} is not {difference}",
            self.program.name
        );
    }

    /// The same bits under every budget, on every device; the body runs as often as the schedule says.
    pub fn check_bits(&self, steps: u64) {
        let (_, ran) = self.run(&self.compile(&interpreter()));
        assert_eq!((ran.recorded, ran.reversed), (steps, steps));
        self.check_bits_of_nest(steps, |ran| assert_eq!(ran.reversed, steps));
    }

    /// The same bits under every budget, on every device, for a nest whose outer loop has so many passes.
    pub fn check_bits_of_nest(&self, steps: u64, counted: impl Fn(Ran)) {
        let reference = self.compile(&interpreter());
        let (expected, _) = self.run(&reference);
        let mut compiled = vec![reference];
        compiled.extend([1, 2, 5].map(|threads| self.compile(&cpu(threads))));
        for compiled in &compiled {
            let mut budgets = vec![Budget::StoreAll];
            for slots in 1..=(steps as usize + 1).min(4) {
                budgets.extend([1, 2, 3].map(|block| Budget::Revolve { slots, block }));
            }
            budgets.extend((1..4).map(|period| Budget::Periodic { period }));
            for budget in budgets {
                let (found, ran) = self.run(&compiled.with_budget(budget));
                assert_eq!(
                    bits(&found),
                    bits(&expected),
                    "{} on {} with {budget:?}",
                    self.program.name,
                    compiled.device().name()
                );
                counted(ran);
            }
        }
    }

    /// The same bits wherever states are kept, and as much traffic as was planned; how many states were in host memory and
    /// on disk.
    fn check_tiers(&self) -> [u64; 2] {
        let (expected, _) = self.run(&self.compile(&interpreter()));
        let dir = tempfile::tempdir().unwrap();
        let rate = Rate { latency: 1e-9, bandwidth: 1e10 };
        let rates = Rates { memory: rate, host: rate, disk_write: rate, disk_read: rate };
        let mut seen = [0, 0];
        for threads in [1, 2] {
            let device = cpu(threads);
            let compiled = self.compile(&device);
            let least = self.plan(&compiled);
            let (state, tape) = (least.loops[0].state_bytes, least.loops[0].tape_bytes);
            // The least memory that works, that and a passage, some states more.
            for (states, tapes) in [(1, 1), (2, 1), (3, 2), (6, 3), (9, 4)] {
                let room = states * (state + (16 << 10)) + tapes * tape;
                for (host, disk) in [(0, 0), (3, 0), (1000, 0), (0, 1000), (7, 1000)] {
                    let mut tiers = Tiers::new().rates(rates);
                    if host > 0 && device.backend().memory().is_some() {
                        tiers = tiers.host_memory(host * (state + (8 << 10)));
                    }
                    if disk > 0 {
                        tiers = tiers.disk(dir.path(), disk * state);
                    }
                    let g = compiled.with_budget(Budget::Bytes(least.fixed_bytes + room)).with_tiers(tiers);
                    let plan = self.plan(&g);
                    let (found, ran) = self.run(&g);
                    let (name, on) = (&self.program.name, device.name());
                    assert!(bits(&found) == bits(&expected), "{name} on {on}:\n{}", plan.explain());
                    let away = plan.loops[0].away;
                    let [in_host, on_disk] = [away.host_slots * state, away.disk_slots * state];
                    let moved = [ran.to_host, ran.from_host, ran.to_disk, ran.from_disk];
                    assert_eq!(moved, [in_host, in_host, on_disk, on_disk], "{}", plan.explain());
                    assert!(plan.peak_bytes() <= least.fixed_bytes + room, "{}", plan.explain());
                    seen[0] += away.host_slots;
                    seen[1] += away.disk_slots;
                    let left = std::fs::read_dir(dir.path()).unwrap().count();
                    assert_eq!(left, 0, "slot files are gone");
                }
            }
        }
        seen
    }
}

fn direction(name: &str, e: usize) -> f64 {
    let seed = name.bytes().map(u64::from).sum::<u64>();
    element(Type::F64, seed + 77, e as u64).to_f64()
}

pub fn burgers(n: usize, steps: usize) -> Case {
    Case {
        program: with_misfit(programs::burgers(), "u"),
        wrt: vec!["u", "nu", "dt"],
        given: vec![
            Given::Shape(vec![n]),
            Given::Shape(vec![n]),
            Given::Scalar(Literal::from(0.1)),
            Given::Scalar(Literal::from(0.05)),
            Given::Scalar(Literal::from(steps)),
            Given::Shape(vec![]),
        ],
    }
}

/// Arrays that are overwritten whole before anything flows back to them, in every way that there is.
pub fn overwritten(n: usize, steps: usize) -> Case {
    Case {
        program: with_misfit(programs::overwritten(), "b"),
        wrt: vec!["x", "b"],
        given: vec![
            Given::Shape(vec![n]),
            Given::Shape(vec![n]),
            Given::Shape(vec![n]),
            Given::Scalar(Literal::from(steps)),
            Given::Shape(vec![]),
        ],
    }
}

pub fn pointwise(n: usize, steps: usize) -> Case {
    Case {
        program: with_misfit(programs::pointwise(), "s"),
        wrt: vec!["s", "p"],
        given: vec![
            Given::Shape(vec![n]),
            Given::Shape(vec![n]),
            Given::Scalar(Literal::from(steps)),
            Given::Shape(vec![]),
        ],
    }
}

pub fn wave(n: usize, m: usize, steps: usize) -> Case {
    Case {
        program: with_misfit(programs::wave(), "seen"),
        wrt: vec!["c", "source", "u"],
        given: vec![
            Given::Shape(vec![n, m]),
            Given::Shape(vec![n, m]),
            Given::Shape(vec![n, m]),
            Given::Shape(vec![steps]),
            Given::Shape(vec![steps, m]),
            Given::Scalar(Literal::from(steps)),
            Given::Shape(vec![]),
        ],
    }
}

#[test]
pub fn gradients_are_differences() {
    pointwise(5, 4).check_difference(1e-6, 1e-7);
    burgers(7, 3).check_difference(1e-6, 1e-7);
    for n in 1..4 {
        burgers(n, 2).check_difference(1e-6, 1e-7);
    }
    wave(8, 9, 4).check_difference(3e-3, 2e-3);
}

#[test]
pub fn gradients_have_the_same_bits_under_every_budget_on_every_device() {
    for steps in 0..6 {
        pointwise(19, steps).check_bits(steps as u64);
        burgers(37, steps).check_bits(steps as u64);
        wave(9, 21, steps).check_bits(steps as u64);
    }
}

#[test]
pub fn gradients_have_the_same_bits_wherever_states_are_kept() {
    let cases = [pointwise(700, 40), burgers(600, 41), wave(20, 30, 25)];
    let [in_host, on_disk] =
        cases.iter().map(Case::check_tiers).fold([0, 0], |a, b| [a[0] + b[0], a[1] + b[1]]);
    assert!(on_disk > 50, "{on_disk} states were on disk");
    assert!(in_host > 50 || !on_cuda(), "{in_host} states were in host memory");
}

#[test]
pub fn a_step_keeps_one_array_and_a_linear_one_none() {
    let keeps = |case: &Case| {
        let request = Request {
            of: "loss".into(),
            wrt: case.wrt.iter().map(|s| s.to_string()).collect(),
            ..Request::default()
        };
        let g = gradient(&case.program, &request, Inner::Recorded).unwrap();
        g.pushes
            .values()
            .map(|p| p.iter().map(|p| g.program.array(p.array).name.clone()).collect::<Vec<_>>())
            .collect::<Vec<_>>()
    };
    assert_eq!(keeps(&pointwise(3, 2)), [["s'"]]);
    assert_eq!(keeps(&burgers(3, 2)), [["next'"]]);
    let mut linear = wave(4, 4, 2);
    linear.wrt = vec!["u"];
    assert_eq!(keeps(&linear), [[""; 0]]);
}
