//! Custom operations, and programs and operations that bring their own derivatives.

use ebbtide::prelude::*;
use expect_test::expect;

use crate::check;

/// The devices that must agree.
fn devices() -> [Device; 3] {
    let threads = |n| ebbtide_cpu::Options::new().threads(n).build().unwrap().0;
    [Device::interpreter(), threads(1), threads(3)]
}

/// Smooths with a weight, as someone else's library might.
#[operation(adjoint = smooth_adjoint, tangent = smooth_tangent)]
fn smooth(x: &Array1<f64>, y: &mut Array1<f64>, weight: f64) -> Result<(), String> {
    if x.len() != y.len() {
        return Err(format!("{} elements do not fit into {}", x.len(), y.len()));
    }
    let n = x.len();
    for i in 0..n {
        y[i] = weight * x[i] * x[i] + (1.0 - weight) * x[(i + 1) % n];
    }
    Ok(())
}

#[operation]
fn smooth_adjoint(
    x: &Array1<f64>,
    _y: &Array1<f64>,
    weight: f64,
    dx: &mut Array1<f64>,
    dy: &mut Array1<f64>,
) {
    let n = x.len();
    for i in 0..n {
        dx[i] += 2.0 * weight * x[i] * dy[i];
        dx[(i + 1) % n] += (1.0 - weight) * dy[i];
    }
    // What was in `y` before does not matter.
    dy.fill(0.0);
}

/// A tangent may as well be a program.
#[program]
fn smooth_tangent(
    x: &Array1<f64>,
    _y: &Array1<f64>,
    weight: f64,
    dot_x: &Array1<f64>,
    dot_y: &mut Array1<f64>,
) {
    let n = x.len();
    for i in par(0..n) {
        dot_y[i] = 2.0 * weight * x[i] * dot_x[i] + (1.0 - weight) * dot_x[(i + 1) % n];
    }
}

#[program]
fn smoothed(u: &mut Array1<f64>, v: &mut Array1<f64>, steps: usize, loss: &mut Array0<f64>) {
    for t in 0..steps {
        smooth(u, v, 0.25 + 0.125 * (t as f64));
        for i in par(0..u.len()) {
            u[i] = v[i] + 0.1 * u[i];
        }
    }
    for i in par(0..u.len()) {
        loss[[]] += u[i] * u[i] * (1.0 + 0.1 * (i as f64));
    }
}

#[test]
fn an_operation_is_one_statement() {
    check(
        smoothed(),
        expect![[r#"
            program smoothed(u: &mut Array1<f64>, v: &mut Array1<f64>, steps: usize, loss: &mut Array0<f64>) {
                for t in 0..steps {
                    smooth(u, &mut v, 0.25 + 0.125 * t as f64);
                    for i in par(0..u.len()) {
                        u[i] = v[i] + 0.1 * u[i];
                    }
                }
                for i_2 in par(0..u.len()) {
                    loss[[]] += u[i_2] * u[i_2] * (1.0 + 0.1 * i_2 as f64);
                }
            }
        "#]],
    );
}

#[test]
fn an_operation_is_a_program_too() {
    for device in devices() {
        let (x, mut y) = (device.array(&[1.0, 2.0, 4.0]).unwrap(), device.zeros([3]).unwrap());
        let _ = smooth().compile(&device).unwrap().launch((&x, &mut y, 0.5)).unwrap();
        assert_eq!(y.to_vec(), [1.5, 4.0, 8.5]);
    }
}

#[test]
fn what_an_operation_says_and_its_panics_are_run_errors() {
    #[operation]
    fn careless(x: &Array1<f64>, y: &mut Array1<f64>) {
        y[x.len()] = 1.0;
    }
    for device in devices() {
        let (x, mut y) = (device.array(&[1.0, 2.0]).unwrap(), device.zeros([1]).unwrap());
        let error = smooth().compile(&device).unwrap().launch((&x, &mut y, 0.5)).unwrap_err().to_string();
        assert!(
            error.contains("run error: program `smooth`: operation `smooth`: 2 elements do not fit into 1"),
            "{error}"
        );
        assert!(error.contains("rules.rs:"), "{error}");
        let error = careless().compile(&device).unwrap().launch((&x, &mut y)).unwrap_err().to_string();
        assert!(error.contains("operation `careless`: it panicked: index out of bounds"), "{error}");
    }
}

#[test]
fn operations_take_all_types_ranks_and_sizes() {
    #[operation]
    fn count(
        flags: &Array2<bool>,
        of: &Array1<i64>,
        empty: &Array1<f32>,
        out: &mut Array0<i32>,
        none: &mut Array2<f64>,
        from: usize,
        negative: bool,
        shift: i32,
    ) {
        assert_eq!((flags.shape(), empty.len(), none.shape()), ([2, 3], 0, [0, 4]));
        none.fill(1.0);
        let chosen = of.as_slice()[from..].iter().filter(|x| (**x < 0) == negative).count();
        out[[]] = (flags.as_slice().iter().filter(|f| **f).count() + chosen) as i32
            + shift
            + i32::from(flags[[1, 2]]);
    }
    for device in devices() {
        let flags = device.array_with_shape([2, 3], &[true, false, true, false, false, true]).unwrap();
        let (of, empty) = (device.array(&[-1i64, 2, -3, 4]).unwrap(), device.zeros([0]).unwrap());
        let (mut out, mut none) = (device.scalar(0).unwrap(), device.zeros([0, 4]).unwrap());
        let args = (&flags, &of, &empty, &mut out, &mut none, 1, true, -20);
        let _ = count().compile(&device).unwrap().launch(args).unwrap();
        assert_eq!(out[[]], 3 + 1 - 20 + 1);
    }
}

fn start(n: usize) -> Vec<f64> {
    (0..n).map(|i| 0.4 + 0.3 * (1.7 * i as f64).sin()).collect()
}

#[test]
fn derivatives_flow_through_operations_under_every_schedule() {
    let n = 7;
    let mut bits: Option<Vec<u64>> = None;
    for device in devices() {
        let args =
            |u: &[f64]| (device.array(u).unwrap(), device.zeros([n]).unwrap(), device.scalar(0.0).unwrap());
        let plain = smoothed().compile(&device).unwrap();
        let value = |u: &[f64]| {
            let (mut u, mut v, mut loss) = args(u);
            let _ = plain.launch((&mut u, &mut v, 6, &mut loss)).unwrap();
            loss[[]]
        };
        let start = start(n);
        let along: Vec<f64> = (0..n).map(|i| (2.3 * i as f64).cos()).collect();
        let moved = |h: f64| start.iter().zip(&along).map(|(u, d)| u + h * d).collect::<Vec<f64>>();
        let difference = (value(&moved(1e-6)) - value(&moved(-1e-6))) / 2e-6;
        let g = smoothed().grad(smoothed::loss).wrt(smoothed::u).compile(&device).unwrap();
        for budget in
            [Budget::StoreAll, Budget::Revolve { slots: 2, block: 1 }, Budget::Periodic { period: 3 }]
        {
            let (mut u, mut v, mut loss) = args(&start);
            let out = g.with_budget(budget).launch((&mut u, &mut v, 6, &mut loss)).unwrap();
            let du = out.get(smoothed::u).unwrap().to_vec();
            let slope: f64 = du.iter().zip(&along).map(|(a, b)| a * b).sum();
            assert!((slope - difference).abs() < 1e-7 * difference.abs(), "{slope} is not {difference}");
            let these: Vec<u64> = du.iter().map(|d| d.to_bits()).collect();
            assert_eq!(*bits.get_or_insert(these.clone()), these);
        }
        let (mut u, mut v, mut loss) = args(&start);
        let direction = device.array(&along).unwrap();
        let direction = Direction::new().array(smoothed::u, &direction);
        let jvp = smoothed().jvp(smoothed::loss).wrt(smoothed::u).compile(&device).unwrap();
        let dot = jvp.launch((&mut u, &mut v, 6, &mut loss), &direction).unwrap();
        let dot = dot.get(smoothed::loss).unwrap().value();
        assert!((dot - difference).abs() < 1e-7 * difference.abs(), "{dot} is not {difference}");
        // Second order: the tangent is a program, which is differentiated like any other.
        let hvp = smoothed().hvp(smoothed::loss).wrt(smoothed::u).compile(&device).unwrap();
        let second = hvp.launch((&mut u, &mut v, 6, &mut loss), &direction).unwrap();
        let second = second.get(smoothed::u).unwrap().to_vec();
        let gradient = |h: f64| {
            let (mut u, mut v, mut loss) = args(&moved(h));
            g.launch((&mut u, &mut v, 6, &mut loss)).unwrap().get(smoothed::u).unwrap().to_vec()
        };
        let (up, down) = (gradient(1e-5), gradient(-1e-5));
        for i in 0..n {
            let difference = (up[i] - down[i]) / 2e-5;
            assert!(
                (second[i] - difference).abs() < 1e-6 * (1.0 + difference.abs()),
                "{} {difference}",
                second[i]
            );
        }
    }
}

/// One step of the iteration `x = p + 0.3 sin(x[i - 1] + x[i + 1])`, which converges.
#[program]
fn relax(x: &Array1<f64>, p: &Array1<f64>, next: &mut Array1<f64>) {
    let n = x.len();
    for i in par(0..n) {
        next[i] = p[i] + 0.3 * (x[(i + n - 1) % n] + x[(i + 1) % n]).sin();
    }
}

#[program(adjoint = solve_adjoint)]
fn solve(x: &mut Array1<f64>, p: &Array1<f64>, tolerance: f64) {
    let n = x.len();
    let mut next = Array1::<f64>::zeros([n]);
    loop {
        relax(x, p, next);
        let mut change = 0.0;
        for i in 0..n {
            change.max_assign((next[i] - x[i]).abs());
        }
        copy(next, x);
        if change < tolerance {
            break;
        }
    }
}

/// At the solution, what flows to `x` satisfies `l = dx + J'l`: another convergence loop.
#[program]
fn solve_adjoint(
    x: &Array1<f64>,
    _p: &Array1<f64>,
    tolerance: f64,
    dx: &mut Array1<f64>,
    dp: &mut Array1<f64>,
) {
    let n = x.len();
    let mut l = Array1::<f64>::zeros([n]);
    let mut next = Array1::<f64>::zeros([n]);
    copy(dx, l);
    let mut change = 1.0;
    while change > tolerance {
        for j in par(0..n) {
            let before = (j + n - 1) % n;
            let after = (j + 1) % n;
            let left = (x[(before + n - 1) % n] + x[j]).cos() * l[before];
            let right = (x[j] + x[(after + 1) % n]).cos() * l[after];
            next[j] = dx[j] + 0.3 * (left + right);
        }
        change = 0.0;
        for j in 0..n {
            change.max_assign((next[j] - l[j]).abs());
        }
        copy(next, l);
    }
    for i in par(0..n) {
        dp[i] += l[i];
    }
    // Where the iteration began does not matter.
    fill(dx, 0.0);
}

#[program]
fn through_the_loop(x: &mut Array1<f64>, p: &Array1<f64>, steps: usize) {
    let mut next = Array1::<f64>::zeros([x.len()]);
    for _k in 0..steps {
        relax(x, p, next);
        copy(next, x);
    }
}

#[program]
fn misfit(x: &Array1<f64>, loss: &mut Array0<f64>) {
    for i in par(0..x.len()) {
        loss[[]] += (x[i] - 0.1 * (i as f64)).powi(2);
    }
}

/// A few solutions, each with what came out before.
#[program]
fn with_rule(x: &mut Array1<f64>, p: &Array1<f64>, steps: usize, loss: &mut Array0<f64>) {
    let mut q = Array1::<f64>::zeros([x.len()]);
    for t in 0..steps {
        for i in par(0..x.len()) {
            q[i] = p[i] * p[i] + 0.2 * x[i] * (t as f64);
        }
        solve(x, q, 1e-14);
    }
    misfit(x, loss);
}

#[program]
fn without_rule(x: &mut Array1<f64>, p: &Array1<f64>, loss: &mut Array0<f64>) {
    let mut q = Array1::<f64>::zeros([x.len()]);
    for i in par(0..x.len()) {
        q[i] = p[i] * p[i];
    }
    through_the_loop(x, q, 120);
    misfit(x, loss);
}

#[test]
fn a_call_with_a_rule_says_so() {
    let text = with_rule().to_string();
    let call = text.lines().find(|line| line.trim_start().starts_with("/* solve(")).unwrap_or_default();
    assert!(call.ends_with("), adjoint = solve_adjoint */ {"), "{text}");
    let text = with_rule().grad(with_rule::loss).wrt(with_rule::p).to_string();
    assert!(text.contains("/* solve_adjoint */ {"), "{text}");
}

#[test]
fn the_rule_of_a_convergence_loop_agrees_with_differences_and_with_the_loop_itself() {
    let n = 6;
    for device in devices() {
        let p = start(n);
        let args =
            |p: &[f64]| (device.zeros([n]).unwrap(), device.array(p).unwrap(), device.scalar(0.0).unwrap());
        let plain = with_rule().compile(&device).unwrap();
        let value = |p: &[f64], steps: usize| {
            let (mut x, p, mut loss) = args(p);
            let _ = plain.launch((&mut x, &p, steps, &mut loss)).unwrap();
            loss[[]]
        };
        let g = with_rule().grad(with_rule::loss).wrt(with_rule::p).compile(&device).unwrap();
        for steps in [1, 3] {
            let mut bits: Option<Vec<u64>> = None;
            for budget in [Budget::StoreAll, Budget::Revolve { slots: 1, block: 1 }] {
                let (mut x, given, mut loss) = args(&p);
                let out = g.with_budget(budget).launch((&mut x, &given, steps, &mut loss)).unwrap();
                let dp = out.get(with_rule::p).unwrap().to_vec();
                for k in 0..n {
                    let moved = |h: f64| {
                        let mut p = p.clone();
                        p[k] += h;
                        value(&p, steps)
                    };
                    let difference = (moved(1e-5) - moved(-1e-5)) / 2e-5;
                    assert!(
                        (dp[k] - difference).abs() < 1e-8 * (1.0 + difference.abs()),
                        "{} {difference}",
                        dp[k]
                    );
                }
                let these: Vec<u64> = dp.iter().map(|d| d.to_bits()).collect();
                assert_eq!(*bits.get_or_insert(these.clone()), these);
            }
        }
        let (mut x, given, mut loss) = args(&p);
        let rule = g.launch((&mut x, &given, 1, &mut loss)).unwrap().get(with_rule::p).unwrap().to_vec();
        let g = without_rule().grad(without_rule::loss).wrt(without_rule::p).compile(&device).unwrap();
        let looped = g.launch((&mut x, &given, &mut loss)).unwrap().get(without_rule::p).unwrap().to_vec();
        for (rule, looped) in rule.iter().zip(&looped) {
            assert!((rule - looped).abs() < 1e-12 * (1.0 + looped.abs()), "{rule} {looped}");
        }
    }
}

#[test]
fn a_rule_holds_also_where_the_program_is_differentiated_by_itself() {
    let device = crate::cpu();
    let (mut x, p) = (device.zeros([5]).unwrap(), device.array(&start(5)).unwrap());
    let seed = device.array(&[1.0, 0.0, 0.0, 0.0, 0.0]).unwrap();
    let vjp = solve().vjp(solve::x).wrt(solve::p).wrt(solve::x).compile(&device).unwrap();
    let out = vjp.launch_with(&seed, (&mut x, &p, 1e-14)).unwrap();
    let first = |h: f64| {
        let (mut p, mut x) = (start(5), device.zeros([5]).unwrap());
        p[2] += h;
        let _ =
            solve().compile(&device).unwrap().launch((&mut x, &device.array(&p).unwrap(), 1e-14)).unwrap();
        x[0]
    };
    let difference = (first(1e-5) - first(-1e-5)) / 2e-5;
    let found = out.get(solve::p).unwrap()[2];
    assert!((found - difference).abs() < 1e-9 && difference.abs() > 1e-3, "{found} {difference}");
    assert_eq!(out.get(solve::x).unwrap().to_vec(), [0.0; 5]);
}

#[test]
fn a_missing_rule_is_named() {
    let error = with_rule().hvp(with_rule::loss).wrt(with_rule::p).ir().unwrap_err().to_string();
    assert!(error.contains("build error: `solve` brings no tangent of its own"), "{error}");

    #[operation]
    fn opaque(x: &Array1<f64>, y: &mut Array1<f64>) {
        y[0] = x[0];
    }
    let error = opaque().vjp(opaque::y).wrt(opaque::x).ir().unwrap_err().to_string();
    assert!(error.contains("build error: `opaque` brings no adjoint of its own"), "{error}");
    assert!(error.contains("write `adjoint = …` where it is declared"), "{error}");
}

#[test]
fn a_rule_that_takes_something_else_says_what_it_must_take() {
    #[program(adjoint = misfit)]
    fn square(x: &Array1<f64>, y: &mut Array1<f64>, k: usize) {
        y[k] = x[k] * x[k];
    }
    let error = square().vjp(square::y).wrt(square::x).ir().unwrap_err().to_string();
    assert!(
        error.contains(
            "`misfit`, the adjoint of `square`, must take its parameters, to be read, and one array for each of its \
             float arrays: (&Array1<f64>, &Array1<f64>, usize, &mut Array1<f64>, &mut Array1<f64>), not \
             (&Array1<f64>, &mut Array0<f64>)"
        ),
        "{error}"
    );

    #[program]
    fn scaled(x: &mut Array1<f64>, p: &Array1<f64>, tolerance: f64, loss: &mut Array0<f64>) {
        solve(x, p, tolerance * 1e-10);
        misfit(x, loss);
    }
    let error = scaled().grad(scaled::loss).wrt(scaled::tolerance).ir().unwrap_err().to_string();
    assert!(error.contains("a derivative flows into `solve` through the scalar"), "{error}");
}

#[test]
fn arrays_that_carry_no_derivative_get_one_of_zeros() {
    #[program]
    fn fixed_start(p: &Array1<f64>, x0: &Array1<f64>, loss: &mut Array0<f64>) {
        let mut x = Array1::<f64>::zeros([p.len()]);
        copy(x0, x);
        smooth(p, x, 0.5);
        misfit(x, loss);
        // `x0` is given to a rule, and nothing is asked of it.
        smooth(x0, x, 0.25);
        misfit(x, loss);
    }
    let device = crate::cpu();
    let (p, x0) = (device.array(&[1.0, 2.0, 3.0]).unwrap(), device.array(&[3.0, 1.0, 2.0]).unwrap());
    let mut loss = device.scalar(0.0).unwrap();
    let g = fixed_start().grad(fixed_start::loss).wrt(fixed_start::p).compile(&device).unwrap();
    let dp = g.launch((&p, &x0, &mut loss)).unwrap().get(fixed_start::p).unwrap().to_vec();
    // x = [1.5, 3.5, 5], dx = 2 (x - 0.1 i).
    let dx = [3.0, 6.8, 9.6];
    let expected = [1.0 * dx[0] + 0.5 * dx[2], 2.0 * dx[1] + 0.5 * dx[0], 3.0 * dx[2] + 0.5 * dx[1]];
    assert!(dp.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-12), "{dp:?} {expected:?}");
}

/// Rules inside loops inside loops, one of them of unknown length.
#[program]
fn nested(x: &mut Array1<f64>, p: &Array1<f64>, steps: usize, loss: &mut Array0<f64>) {
    let mut q = Array1::<f64>::zeros([x.len()]);
    for t in 0..steps {
        for s in 0..2 {
            for i in par(0..x.len()) {
                q[i] = p[i] * p[i] + 0.2 * x[i] * ((t + s) as f64);
            }
            solve(x, q, 1e-14);
            smooth(x, q, 0.3);
        }
        for i in par(0..x.len()) {
            x[i] = 0.5 * x[i] + 0.1 * q[i];
        }
    }
    let mut size = 1.0;
    while size > 0.3 {
        smooth(x, q, 0.4);
        copy(q, x);
        size = size * 0.5 + 0.01 * x[0];
    }
    misfit(x, loss);
}

#[test]
fn rules_hold_inside_nested_loops_and_loops_of_unknown_length() {
    let n = 5;
    let mut bits: Option<Vec<u64>> = None;
    for device in [Device::interpreter(), crate::cpu()] {
        let p = start(n);
        let args =
            |p: &[f64]| (device.zeros([n]).unwrap(), device.array(p).unwrap(), device.scalar(0.0).unwrap());
        let value = |p: &[f64]| {
            let (mut x, p, mut loss) = args(p);
            let _ = nested().compile(&device).unwrap().launch((&mut x, &p, 3, &mut loss)).unwrap();
            loss[[]]
        };
        let g = nested().grad(nested::loss).wrt(nested::p).compile(&device).unwrap();
        for budget in
            [Budget::StoreAll, Budget::Periodic { period: 2 }, Budget::Revolve { slots: 1, block: 1 }]
        {
            let (mut x, given, mut loss) = args(&p);
            let out = g.with_budget(budget).launch((&mut x, &given, 3, &mut loss)).unwrap();
            let dp = out.get(nested::p).unwrap().to_vec();
            for k in 0..n {
                let moved = |h: f64| {
                    let mut p = p.clone();
                    p[k] += h;
                    value(&p)
                };
                let difference = (moved(1e-5) - moved(-1e-5)) / 2e-5;
                assert!(
                    (dp[k] - difference).abs() < 1e-8 * (1.0 + difference.abs()),
                    "{} {difference}",
                    dp[k]
                );
            }
            let these: Vec<u64> = dp.iter().map(|d| d.to_bits()).collect();
            assert_eq!(*bits.get_or_insert(these.clone()), these);
        }
    }
}

/// `y = x^(3/2)`, with the root saved for the derivatives.
#[operation(adjoint = power_adjoint, tangent = power_tangent, saved = [root])]
fn power(x: &Array1<f64>, y: &mut Array1<f64>, root: &mut Array1<f64>) {
    for i in 0..x.len() {
        root[i] = x[i].sqrt();
        y[i] = x[i] * root[i];
    }
}

#[program]
fn power_adjoint(
    _x: &Array1<f64>,
    _y: &Array1<f64>,
    root: &Array1<f64>,
    dx: &mut Array1<f64>,
    dy: &mut Array1<f64>,
) {
    for i in par(0..dx.len()) {
        dx[i] += 1.5 * root[i] * dy[i];
        dy[i] = 0.0;
    }
}

#[program]
fn power_tangent(
    _x: &Array1<f64>,
    _y: &Array1<f64>,
    root: &Array1<f64>,
    dot_x: &Array1<f64>,
    dot_y: &mut Array1<f64>,
) {
    for i in par(0..dot_x.len()) {
        dot_y[i] = 1.5 * root[i] * dot_x[i];
    }
}

/// The same as a program.
#[program(adjoint = power_adjoint, saved = [root])]
fn power_by_loop(x: &Array1<f64>, y: &mut Array1<f64>, root: &mut Array1<f64>) {
    for i in par(0..x.len()) {
        root[i] = x[i].sqrt();
        y[i] = x[i] * root[i];
    }
}

#[program]
fn powers(
    u: &mut Array1<f64>,
    v: &mut Array1<f64>,
    root: &mut Array1<f64>,
    steps: usize,
    loss: &mut Array0<f64>,
) {
    for t in 0..steps {
        if t % 2 == 0 {
            power(u, v, root);
        } else {
            power_by_loop(u, v, root);
        }
        for i in par(0..u.len()) {
            // What is saved is a constant here.
            u[i] = 0.5 * v[i] + 0.3 * u[i] + 0.1;
        }
    }
    for i in par(0..u.len()) {
        loss[[]] += u[i] * u[i];
    }
}

#[test]
fn what_an_operation_saves_is_on_the_tape_and_carries_no_derivative() {
    type P = powers;
    let text = powers().grad(P::loss).wrt(P::u).to_string();
    assert!(text.contains("push(root')") && !text.contains("d_root"), "{text}");
    let (u0, steps) = ([0.4, 0.9, 1.3], 5);
    let mut expected = None;
    for device in devices() {
        let g = powers().grad(P::loss).wrt(P::u).compile(&device).unwrap();
        for slots in 1..4 {
            let g = g.with_budget(Budget::Revolve { slots, block: 1 });
            let mut u = device.array(&u0).unwrap();
            let (mut v, mut root) = (device.zeros([3]).unwrap(), device.zeros([3]).unwrap());
            let mut loss = device.zeros([]).unwrap();
            let out = g.launch((&mut u, &mut v, &mut root, steps, &mut loss)).unwrap();
            let found = out.get(P::u).unwrap().to_vec();
            assert_eq!(*expected.get_or_insert(found.clone()), found, "{slots} slots");
        }
    }
    for (k, found) in expected.unwrap().into_iter().enumerate() {
        let loss_at = |h: f64| {
            let mut u = u0[k] + h;
            for _t in 0..steps {
                u = 0.5 * u * u.sqrt() + 0.3 * u + 0.1;
            }
            u * u
        };
        let difference = (loss_at(1e-6) - loss_at(-1e-6)) / 2e-6;
        assert!((found - difference).abs() < 1e-8, "{k}: {found} is not {difference}");
    }
}
