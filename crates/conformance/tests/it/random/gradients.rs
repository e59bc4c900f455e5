//! Gradients of random programs: the same bits under every schedule and on every device, and the slope that tangents
//! give.

use ebbtide_autodiff::{Error, Request, tangent};
use ebbtide_conformance::{element, literals};
use ebbtide_ir::{Literal, Param, Program, Role, Type};
use ebbtide_runtime::{
    AnyArray, Arg, Budget, Compiled, CompiledGradient, Device, Error as RuntimeError, interpreter,
};

use super::generate::{ARRAYS, Dice, NESTED, with_loss};
use crate::devices::cpu;

/// The floats that gradients are taken with respect to.
const WRT: [&str; 6] = ["a", "p", "q", "x", "z", "real"];

/// The names of `WRT` that the loss depends on, and why there is no gradient where there is none.
pub fn request(program: &Program) -> Result<Request, Error> {
    let mut wrt: Vec<String> = WRT.iter().map(|name| name.to_string()).collect();
    loop {
        let request = Request { of: "loss".into(), wrt: wrt.clone(), ..Request::default() };
        match ebbtide_autodiff::gradient_to_show(program, &request) {
            Err(Error::Independent { wrt: name, .. }) => wrt.retain(|n| *n != name),
            Err(error) => return Err(error),
            Ok(_) => return Ok(request),
        }
    }
}

pub struct Setting {
    pub n: usize,
    pub m: usize,
    pub seed: u64,
}

impl Setting {
    fn shape(&self, dims: &[usize]) -> Vec<usize> {
        dims.iter().map(|d| [self.n, self.m][*d]).collect()
    }

    fn filled(&self, device: &Device, ty: Type, shape: &[usize], seed: u64) -> AnyArray {
        let mut array = AnyArray::zeros(device, ty, shape).unwrap();
        for k in 0..array.len() {
            let e = element(ty, seed, k as u64);
            let e = if ty.is_float() { Literal::of(ty, 0.5 * e.to_f64()) } else { e };
            ebbtide_conformance::set(&mut array, k, e);
        }
        array
    }

    /// The arrays of all parameters of a program that is made from a random one, by name.
    fn arrays(&self, device: &Device, program: &Program) -> Vec<Option<AnyArray>> {
        let param = |param: &Param| {
            let Param::Array(id) = param else { return None };
            let decl = program.array(*id);
            let bare = decl.name.trim_start_matches("d_").trim_start_matches("dot_");
            let (dims, at): (&[usize], usize) =
                ARRAYS.iter().position(|a| a.0 == bare).map_or((&[], 99), |k| (ARRAYS[k].2, k));
            let shape = self.shape(dims);
            let zero = decl.name.starts_with("d_") || bare == "loss";
            Some(if zero {
                AnyArray::zeros(device, decl.ty, &shape).unwrap()
            } else {
                let moved = if decl.name.starts_with("dot_") { 500 } else { 0 };
                self.filled(device, decl.ty, &shape, self.seed + at as u64 + moved)
            })
        };
        program.params.iter().map(param).collect()
    }

    fn scalar(&self, name: &str, ty: Type) -> Literal {
        let mut dice = Dice::new(self.seed);
        let real = dice.below(100) as f64 / 64.0 - 0.7;
        match name {
            "which" => Literal::index(0),
            "real" | "single" => Literal::of(ty, real),
            "dot_real" => Literal::of(ty, 0.37),
            "whole" => Literal::from(dice.below(9) as i64),
            _ => Literal::index(dice.below(7) as i64),
        }
    }

    fn args<'a>(&self, program: &Program, arrays: &'a mut [Option<AnyArray>]) -> Vec<Arg<'a>> {
        program
            .params
            .iter()
            .zip(arrays)
            .map(|(param, array)| match (param, array) {
                (Param::Scalar(s), _) => {
                    let decl = &program.scalars[s.index()];
                    Arg::Scalar(self.scalar(&decl.name, decl.ty))
                }
                (Param::Array(id), Some(array)) => match program.array(*id).role {
                    Role::Param(ebbtide_ir::Access::Write) => Arg::Write(array.any_mut()),
                    _ => Arg::Read(array),
                },
                _ => unreachable!("every array has elements"),
            })
            .collect()
    }

    /// The derivatives, or the fault.
    pub fn gradient(&self, g: &CompiledGradient) -> Result<Vec<Vec<Literal>>, RuntimeError> {
        let program = g.program();
        let mut arrays = self.arrays(g.device(), program);
        g.launch(&mut self.args(program, &mut arrays))?;
        let given = program.params.iter().zip(&arrays).filter_map(|(param, array)| match (param, array) {
            (Param::Array(id), Some(array)) if program.array(*id).name.starts_with("d_") => {
                Some(literals(array.ty(), array.bytes()))
            }
            _ => None,
        });
        Ok(given.collect())
    }
}

/// Checks one program and says whether there was something to check.
fn check(seed: u64) -> bool {
    let program = with_loss(seed);
    let request = match request(&program) {
        Ok(request) => request,
        Err(error @ Error::Internal { .. }) => panic!("seed {seed}: {error}"),
        Err(_) => return false,
    };
    let oracle = CompiledGradient::new(&program, &request, &interpreter(), Budget::StoreAll)
        .unwrap_or_else(|e| panic!("seed {seed}: {e}\n{program}"));
    let native = seed.is_multiple_of(4).then(|| {
        CompiledGradient::new(&program, &request, &cpu(2), Budget::StoreAll)
            .unwrap_or_else(|e| panic!("seed {seed}: {e}\n{program}"))
    });
    let mut checked = false;
    for (n, m) in [(1, 1), (6, 3)] {
        let setting = Setting { n, m, seed };
        let Ok(expected) = setting.gradient(&oracle) else { continue };
        checked = true;
        let mut budgets = vec![Budget::StoreAll, Budget::Periodic { period: 2 }];
        budgets.extend([(1, 1), (2, 1), (2, 3)].map(|(slots, block)| Budget::Revolve { slots, block }));
        for compiled in [Some(&oracle), native.as_ref()].into_iter().flatten() {
            for budget in &budgets {
                let found = setting
                    .gradient(&compiled.with_budget(*budget))
                    .unwrap_or_else(|e| panic!("seed {seed}, {n} × {m}, {budget:?}: {e}\n{program}"));
                assert!(
                    found == expected,
                    "seed {seed}, {n} × {m}, {budget:?} on {}: {:?}\n{program}",
                    compiled.device().name(),
                    request.wrt.iter().zip(found.iter().zip(&expected)).find(|(_, (f, e))| f != e)
                );
            }
        }
        slope(&setting, &program, &request, &expected);
    }
    checked
}

/// The tangent along a direction is the gradient times that direction.
fn slope(setting: &Setting, program: &Program, request: &Request, gradient: &[Vec<Literal>]) {
    let Ok(tangent) = tangent(program, &request.wrt) else { return };
    let device = interpreter();
    let compiled = Compiled::new(&tangent.program, &device)
        .unwrap_or_else(|e| panic!("seed {}: {e}\n{program}", setting.seed));
    let mut arrays = setting.arrays(&device, &tangent.program);
    // Along which direction, and in the end what comes of it.
    let named = |arrays: &[Option<AnyArray>], name: &str| {
        let at = tangent
            .program
            .params
            .iter()
            .position(|p| matches!(p, Param::Array(id) if tangent.program.array(*id).name == name));
        at.and_then(|k| arrays[k].as_ref().map(|a| literals(a.ty(), a.bytes())))
    };
    let directions: Vec<Vec<Literal>> = request
        .wrt
        .iter()
        .map(|name| {
            let found = named(&arrays, &format!("dot_{name}"));
            found.unwrap_or_else(|| vec![setting.scalar("dot_real", Type::F64)])
        })
        .collect();
    // Tangents of arrays that do not move are zero.
    for (param, array) in tangent.program.params.iter().zip(&mut arrays) {
        let Param::Array(id) = param else { continue };
        let name = &tangent.program.array(*id).name;
        let moves = request.wrt.iter().any(|w| *name == format!("dot_{w}"));
        if let (true, false, Some(array)) = (name.starts_with("dot_"), moves, array) {
            *array = AnyArray::zeros(array.device(), array.ty(), array.shape()).unwrap();
        }
    }
    if compiled.launch(setting.args(&tangent.program, &mut arrays)).is_err() {
        return;
    }
    let Some(dot) = named(&arrays, "dot_loss").map(|d| d[0].to_f64()) else { return };
    let (mut sum, mut size) = (0.0, 0.0);
    for (g, v) in gradient.iter().zip(&directions) {
        for (g, v) in g.iter().zip(v) {
            let part = g.to_f64() * v.to_f64();
            sum += part;
            size += part.abs();
        }
    }
    if !(dot.is_finite() && size.is_finite()) || size > 1e6 {
        return;
    }
    assert!(
        (sum - dot).abs() <= 2e-4 * size.max(1e-3),
        "seed {}, {} × {}: {sum} is not {dot}, of {:?}\n{program}",
        setting.seed,
        setting.n,
        setting.m,
        request.wrt
    );
}

/// Checks so many programs, unless `EBBTIDE_CASES` says otherwise.
fn check_from(first: u64, cases: u64) {
    let cases = std::env::var("EBBTIDE_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(cases);
    let checked = (first..first + cases).filter(|seed| check(*seed)).count();
    assert!(3 * checked > cases as usize, "only {checked} of {cases} programs have a gradient");
}

#[test]
pub fn gradients_of_random_programs_are_the_same_under_every_schedule() {
    check_from(0, 60);
}

#[test]
pub fn gradients_of_random_nests_are_the_same_under_every_schedule() {
    check_from(NESTED, 24);
}

#[test]
fn gradients_that_were_wrong_once_are_right() {
    for seed in [49, 79, 229, 241] {
        assert!(check(seed), "seed {seed} has no gradient any more: find another program for what it showed");
    }
}
