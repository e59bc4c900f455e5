//! The modes of the interpreter as judges: no random program races, the order of iterations changes no bit, and no
//! gradient reads what it may not. What is generated obeys the laws of generated programs, in every build.

use ebbtide_autodiff::{
    DeadShadows, Error, Inner, Request, gradient, gradient_to_show, tangent, verify_generated,
};
use ebbtide_ir::{Block, Dead, IterationOrder, Modes, Program, Races, Stmt, passes, verify, walk};
use ebbtide_runtime::{
    Budget, Compiled, CompiledGradient, Error as RuntimeError, interpreter, interpreter_with,
};

use crate::gradients::{Case, bits, burgers, overwritten, pointwise, wave};
use crate::random::generate::{NESTED, unit, with_loss};
use crate::random::gradients::{Setting, request};
use crate::random::{cases, inputs, outcome};

/// All orders, with every access noted.
fn watched(seed: u64) -> [Modes; 3] {
    let modes = Modes { races: Races::Reported, ..Modes::default() };
    [IterationOrder::Ascending, IterationOrder::Descending, IterationOrder::Shuffled(seed)]
        .map(|order| Modes { order, ..modes })
}

/// Everything at once.
fn strict(seed: u64) -> Modes {
    Modes { dead: Dead::Poisoned, ..watched(seed)[2] }
}

fn budgets() -> Vec<Budget> {
    let mut budgets = vec![Budget::StoreAll, Budget::Periodic { period: 2 }];
    budgets.extend([(1, 1), (2, 1), (2, 3), (3, 1)].map(|(slots, block)| Budget::Revolve { slots, block }));
    budgets
}

#[test]
fn random_programs_have_no_races_and_the_same_bits_in_every_order() {
    const PER_UNIT: usize = 12;
    for u in 0..cases().div_ceil(PER_UNIT) {
        let seed = 1000 * u as u64;
        let program = unit(seed, PER_UNIT);
        let plain = Compiled::new(&program, &interpreter()).unwrap();
        let judged: Vec<(Modes, Compiled)> = watched(seed)
            .into_iter()
            .chain([strict(seed)])
            .map(|modes| (modes, Compiled::new(&program, &interpreter_with(modes)).unwrap()))
            .collect();
        for which in 0..PER_UNIT {
            for (n, m) in [(1, 1), (0, 3), (9, 4), (37, 21), (300, 15)] {
                let inputs = inputs(n, m, which, seed + which as u64);
                let expected = outcome(&plain, &inputs);
                for (modes, compiled) in &judged {
                    let found = outcome(compiled, &inputs);
                    let context = || format!("seed {seed}, program {which}, n = {n}, m = {m}, {modes:?}");
                    match (&expected, &found) {
                        // Which of several faults is reported is not defined; a race is none that there may be.
                        (Err(_), Err(found)) => assert!(!found.contains("a race"), "{}: {found}", context()),
                        _ => assert!(found == expected, "{}: {:?}", context(), found.err()),
                    }
                }
            }
        }
    }
}

/// What there was to check of a random program.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Checked {
    Gradient,
    /// It has no gradient, or no run that ends.
    Nothing,
    /// A program that we made is refused.
    Internal,
}

/// The gradient of a program has the same bits with all modes on.
fn check_gradient(seed: u64) -> Checked {
    let program = with_loss(seed);
    let request = match request(&program) {
        Ok(request) => request,
        Err(Error::Internal { .. }) => return Checked::Internal,
        Err(_) => return Checked::Nothing,
    };
    let compile = |modes| {
        let compiled = CompiledGradient::new(&program, &request, &interpreter_with(modes), Budget::StoreAll);
        compiled.unwrap_or_else(|error| panic!("seed {seed}: {error}\n{program}"))
    };
    let (plain, judged) = (compile(Modes::default()), compile(strict(seed)));
    let mut checked = Checked::Nothing;
    for (n, m) in [(1, 1), (6, 3)] {
        let setting = Setting { n, m, seed };
        let Ok(expected) = setting.gradient(&plain) else { continue };
        checked = Checked::Gradient;
        for budget in budgets() {
            let found = setting.gradient(&judged.with_budget(budget));
            let found = found
                .unwrap_or_else(|error| panic!("seed {seed}, {n} × {m}, {budget:?}: {error}\n{program}"));
            assert!(
                found == expected,
                "seed {seed}, {n} × {m}, {budget:?}: {:?}\n{program}",
                request.wrt.iter().zip(found.iter().zip(&expected)).find(|(_, (f, e))| f != e)
            );
        }
    }
    checked
}

fn check_gradients(first: u64, count: u64) {
    let count = std::env::var("EBBTIDE_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(count);
    let (mut checked, mut internal) = (0, Vec::new());
    for seed in first..first + count {
        match check_gradient(seed) {
            Checked::Gradient => checked += 1,
            Checked::Nothing => {}
            Checked::Internal => internal.push(seed),
        }
    }
    assert!(internal.is_empty(), "internal errors in seeds {internal:?}");
    assert!(3 * checked > count, "only {checked} of {count} programs have a gradient");
}

#[test]
fn gradients_of_random_programs_read_nothing_that_is_dead_and_do_not_race() {
    check_gradients(0, 60);
}

#[test]
fn gradients_of_random_nests_read_nothing_that_is_dead_and_do_not_race() {
    check_gradients(NESTED, 24);
}

#[test]
fn gradients_of_workloads_read_nothing_that_is_dead_and_do_not_race() {
    let check = |case: &Case| {
        let (expected, _) = case.run(&case.compile(&interpreter()));
        let poisoned = Request { dead_shadows: DeadShadows::Poisoned, ..case.request() };
        let device = interpreter_with(strict(1));
        let judged = CompiledGradient::new(&case.program, &poisoned, &device, Budget::StoreAll).unwrap();
        for budget in budgets() {
            let (found, _) = case.run(&judged.with_budget(budget));
            assert_eq!(bits(&found), bits(&expected), "{} with {budget:?}", case.program.name);
        }
    };
    for steps in [0, 1, 2, 5, 9] {
        check(&pointwise(19, steps));
        check(&overwritten(19, steps));
        check(&burgers(23, steps));
        check(&wave(9, 11, steps));
    }
    overwritten(5, 3).check_difference(1e-6, 1e-6);
}

/// The random programs and workloads whose gradients are looked at.
fn sources() -> Vec<(Program, Request)> {
    let random = (0..40).chain(NESTED..NESTED + 20).map(with_loss);
    let mut sources: Vec<(Program, Request)> =
        random.filter_map(|program| Some((program.clone(), request(&program).ok()?))).collect();
    for case in [overwritten(3, 2), pointwise(3, 2), burgers(3, 2), wave(4, 4, 2)] {
        let request = case.request();
        sources.push((case.program, request));
    }
    sources
}

/// The program after each of the passes that devices run, verified in every build.
fn check_passes(program: &Program) {
    passes::PIPELINE.iter().fold(program.clone(), |before, (name, pass)| {
        let after = pass(&before);
        verify(&after).unwrap_or_else(|error| panic!("`{name}`: {error}\n{before}"));
        after
    });
}

#[test]
fn generated_programs_are_lawful_in_every_build() {
    let sources = sources();
    assert!(sources.len() > 20);
    for (program, request) in &sources {
        check_passes(program);
        let made = tangent(program, &request.wrt).map(|made| made.program);
        if let Err(error @ Error::Internal { .. }) = &made {
            panic!("{error}");
        }
        let Ok(tangent) = made else { continue };
        verify_generated(&tangent).unwrap();
        check_passes(&tangent);
        // Second derivatives: the gradient of the tangent.
        let second =
            Request { of: "dot_loss".into(), may_be_zero: true, values: Vec::new(), ..request.clone() };
        for made in [gradient_to_show(program, request), gradient_to_show(&tangent, &second)] {
            match made {
                Ok(made) => drop(verify_generated(&made.program).unwrap()),
                Err(error @ Error::Internal { .. }) => panic!("{error}"),
                Err(_) => {}
            }
        }
    }
}

/// The program without the `which`-th push or pop, where it has as many.
fn without_one(program: &Program, which: usize) -> Option<Program> {
    fn remove(block: &mut Block, left: &mut usize) -> bool {
        for k in 0..block.len() {
            if let Stmt::Push(_) | Stmt::Pop(_) = block[k] {
                if *left == 0 {
                    block.remove(k);
                    return true;
                }
                *left -= 1;
            }
            if block[k].blocks_mut().any(|inner| remove(inner, left)) {
                return true;
            }
        }
        false
    }
    let mut program = program.clone();
    remove(&mut program.body, &mut { which }).then_some(program)
}

#[test]
fn a_gradient_program_that_lacks_one_push_or_pop_is_an_internal_error() {
    let mut refused = 0;
    for (program, request) in sources() {
        for inner in [Inner::Recorded, Inner::Swept] {
            let Ok(made) = gradient(&program, &request, inner) else { continue };
            for which in 0.. {
                let Some(broken) = without_one(&made.program, which) else { break };
                let error = verify_generated(&broken).expect_err("a tape that is not balanced");
                let Error::Internal { flaws, program } = &error else { panic!("{error}") };
                assert!(flaws.to_string().contains("(law 14)"), "{flaws}");
                assert_eq!(**program, *broken.to_string());
                assert!(error.to_string().starts_with("internal error: please report it"), "{error}");
                refused += 1;
            }
        }
    }
    assert!(refused > 100, "only {refused} programs were broken");
}

#[test]
fn an_internal_error_can_be_told_from_others() {
    let internal = |error: Error| {
        matches!(RuntimeError::from(error), RuntimeError::Differentiation(Error::Internal { .. }))
    };
    let (program, request) = sources().pop().unwrap();
    let mut made = gradient(&program, &request, Inner::Recorded).unwrap().program;
    let mut pushes = 0;
    walk(&made.body, &mut |stmt| pushes += usize::from(matches!(stmt, Stmt::Push(_))));
    assert!(pushes > 0);
    assert!(verify_generated(&made).is_ok());
    made = without_one(&made, 0).unwrap();
    assert!(internal(verify_generated(&made).expect_err("a push is missing")));
    assert!(!internal(
        gradient(&program, &Request::default(), Inner::Recorded).expect_err("nothing is asked for")
    ));
}
