//! Gradients of programs written in the language.

use ebbtide::prelude::*;

#[program]
fn burgers(u: &mut Array1<f64>, next: &mut Array1<f64>, nu: f64, dt: f64, steps: usize) {
    let n = u.len();
    for _t in 0..steps {
        for i in par(0..n) {
            let l = u[(i + n - 1) % n];
            let r = u[(i + 1) % n];
            next[i] = u[i] + dt * (nu * (l - 2.0 * u[i] + r) - 0.5 * u[i] * (r - l));
        }
        swap(u, next);
    }
}

#[program]
fn misfit(u: &Array1<f64>, target: &Array1<f64>, loss: &mut Array0<f64>) {
    for i in par(0..u.len()) {
        let d = u[i] - target[i];
        loss[[]] += 0.5 * d * d;
    }
}

#[program]
fn objective(
    u: &mut Array1<f64>,
    next: &mut Array1<f64>,
    nu: f64,
    dt: f64,
    steps: usize,
    target: &Array1<f64>,
    loss: &mut Array0<f64>,
) {
    burgers(u, next, nu, dt, steps);
    misfit(u, target, loss);
}

struct Setting {
    u: Array1<f64>,
    next: Array1<f64>,
    target: Array1<f64>,
    loss: Array0<f64>,
}

impl Setting {
    fn new(device: &Device, n: usize) -> Setting {
        let wave = |shift: f64| -> Vec<f64> { (0..n).map(|i| (i as f64 * 0.7 + shift).sin()).collect() };
        Setting {
            u: device.array(&wave(0.0)).unwrap(),
            next: device.zeros([n]).unwrap(),
            target: device.array(&wave(0.4)).unwrap(),
            loss: device.zeros([]).unwrap(),
        }
    }
}

#[test]
fn a_gradient_through_called_programs_leaves_the_arguments_as_they_were() {
    let device = Device::best().unwrap();
    let mut s = Setting::new(&device, 40);
    let before = s.u.to_vec();
    let g = objective()
        .value_and_grad(objective::loss)
        .wrt(objective::u)
        .wrt(objective::nu)
        .compile(&device)
        .unwrap();
    let out = g.launch((&mut s.u, &mut s.next, 0.1, 0.01, 25, &s.target, &mut s.loss)).unwrap();
    assert_eq!(s.u.to_vec(), before);
    assert_eq!(s.loss.value(), 0.0);
    let (value, du, dnu) = (
        out.value(objective::loss).unwrap().value(),
        out.get(objective::u).unwrap(),
        out.get(objective::nu).unwrap(),
    );

    let plain = objective().compile(&device).unwrap();
    let loss_at = |nu: f64, bump: f64| {
        let mut s = Setting::new(&device, 40);
        s.u.as_mut_slice()[3] += bump;
        let _done = plain.launch((&mut s.u, &mut s.next, nu, 0.01, 25, &s.target, &mut s.loss)).unwrap();
        s.loss.value()
    };
    assert_eq!(value.to_bits(), loss_at(0.1, 0.0).to_bits());
    let h = 1e-6;
    let difference = (loss_at(0.1 + h, 0.0) - loss_at(0.1 - h, 0.0)) / (2.0 * h);
    assert!((dnu - difference).abs() < 1e-7 * difference.abs().max(1.0), "{dnu} {difference}");
    let difference = (loss_at(0.1, h) - loss_at(0.1, -h)) / (2.0 * h);
    assert!((du.as_slice()[3] - difference).abs() < 1e-7, "{} {difference}", du.as_slice()[3]);
}

#[test]
fn a_budget_is_obeyed_and_changes_no_bit() {
    let device = crate::cpu();
    let (n, steps) = (1000, 400);
    let mut s = Setting::new(&device, n);
    let g = objective().grad(objective::loss).wrt(objective::u).compile(&device).unwrap();
    let all = g.launch((&mut s.u, &mut s.next, 0.1, 0.01, steps, &s.target, &mut s.loss)).unwrap();
    let expected: Vec<u64> = all.get(objective::u).unwrap().to_vec().iter().map(|x| x.to_bits()).collect();
    let mut runs = Vec::new();
    for kib in [80, 112, 144, 272, 528, 1040, 4096] {
        let g = g.with_memory(Bytes::kib(kib));
        let plan = g.plan((&mut s.u, &mut s.next, 0.1, 0.01, steps, &s.target, &mut s.loss)).unwrap();
        assert!(plan.peak_bytes() <= kib << 10, "{}", plan.explain());
        let (before, meter) = (device.meter().live(), device.meter());
        meter.reset_peak();
        let out = g.launch((&mut s.u, &mut s.next, 0.1, 0.01, steps, &s.target, &mut s.loss)).unwrap();
        // The returned derivative is the caller's.
        let used = meter.peak() - before - 8 * n as u64;
        // The partial sum of its reduction, which has one leaf, is in the plan; no array holds it.
        let with_sums = used + 8 * 2;
        assert!(with_sums <= kib << 10, "{used} bytes of {kib} KiB\n{}", plan.explain());
        assert!(
            with_sums.abs_diff(plan.peak_bytes()) <= 1 << 10,
            "{used} measured, planned:\n{}",
            plan.explain()
        );
        let found: Vec<u64> = out.get(objective::u).unwrap().to_vec().iter().map(|x| x.to_bits()).collect();
        assert_eq!(found, expected, "{kib} KiB");
        // The next launch finds its memory and allocates nothing but what it returns.
        assert_eq!(g.held_bytes(), used);
        meter.reset_peak();
        let before = meter.live();
        let mut again = g.launch((&mut s.u, &mut s.next, 0.1, 0.01, steps, &s.target, &mut s.loss)).unwrap();
        assert_eq!(meter.peak() - before, 8 * n as u64);
        meter.reset_peak();
        g.launch_into(&mut again, (&mut s.u, &mut s.next, 0.1, 0.01, steps, &s.target, &mut s.loss)).unwrap();
        assert_eq!(meter.peak(), meter.live(), "launch_into allocates nothing");
        let ran = out.ran();
        assert_eq!(u128::from(ran.advanced + ran.recorded), plan.loops[0].totals.executions());
        runs.push(ran.advanced + ran.recorded);
    }
    assert!(runs.is_sorted_by(|a, b| a >= b), "more memory never costs more: {runs:?}");
    assert!(runs[0] > steps as u64 && *runs.last().unwrap() == steps as u64, "{runs:?}");
}

#[test]
fn a_budget_below_the_minimum_names_the_minimum() {
    let device = crate::cpu();
    let mut s = Setting::new(&device, 1000);
    let g =
        objective().grad(objective::loss).wrt(objective::u).memory(Bytes::kib(1)).compile(&device).unwrap();
    let error =
        g.launch((&mut s.u, &mut s.next, 0.1, 0.01, 10, &s.target, &mut s.loss)).unwrap_err().to_string();
    let minimum: u64 = error
        .split("the least that works here is ")
        .nth(1)
        .and_then(|r| r.split(['(', ' ']).nth(3))
        .unwrap()
        .parse()
        .unwrap();
    let least = g.with_memory(Bytes(minimum));
    assert!(least.launch((&mut s.u, &mut s.next, 0.1, 0.01, 10, &s.target, &mut s.loss)).is_ok());
    let less = g.with_memory(Bytes(minimum - 1));
    assert!(less.launch((&mut s.u, &mut s.next, 0.1, 0.01, 10, &s.target, &mut s.loss)).is_err());
}

#[test]
fn a_gradient_without_a_budget_takes_what_it_must_where_half_of_what_is_free_is_too_little() {
    let gradient =
        |device: &Device| objective().grad(objective::loss).wrt(objective::u).compile(device).unwrap();
    let value = |device: &Device, s: &mut Setting| {
        let g = gradient(device);
        let out = g.launch((&mut s.u, &mut s.next, 0.1, 0.01, 50, &s.target, &mut s.loss));
        out.map(|out| out.get(objective::u).unwrap().to_vec())
    };
    let roomy = crate::cpu();
    let mut s = Setting::new(&roomy, 1000);
    let expected = value(&roomy, &mut s).unwrap();
    let least = {
        let g = gradient(&roomy).with_memory(Bytes(1));
        match g.launch((&mut s.u, &mut s.next, 0.1, 0.01, 50, &s.target, &mut s.loss)) {
            Err(ebbtide::Error::BudgetTooSmall { minimum, .. }) => minimum,
            other => panic!("a byte is enough: {:?}", other.err()),
        }
    };
    let narrow = crate::cpu();
    let mut s = Setting::new(&narrow, 1000);
    let limited = |bytes: u64, s: &mut Setting| {
        narrow.meter().set_limit(narrow.meter().live() + bytes);
        value(&narrow, s)
    };
    assert_eq!(limited(least + least / 2, &mut s).unwrap(), expected);
    let error = limited(least / 2, &mut s).unwrap_err();
    assert!(matches!(error, ebbtide::Error::BudgetTooSmall { .. }), "{error}");
}

#[test]
fn errors_of_differentiation_say_what_to_do() {
    let of_type = objective()
        .grad(objective::loss)
        .wrt_named::<f64>("nnu")
        .compile(&Device::interpreter())
        .unwrap_err();
    assert!(
        of_type
            .to_string()
            .contains("has no parameter `nnu`; it has `u`, `next`, `nu`, `dt`, `steps`, `target`, `loss`"),
        "{of_type}"
    );
}

#[test]
fn a_vector_jacobian_product_takes_its_cotangent() {
    let device = Device::best().unwrap();
    let mut s = Setting::new(&device, 12);
    let g = burgers().vjp(burgers::u).wrt(burgers::u).compile(&device).unwrap();
    let mut rows = Vec::new();
    for k in 0..12 {
        let mut seed = device.zeros::<f64, 1>([12]).unwrap();
        seed.as_mut_slice()[k] = 1.0;
        let out = g.launch_with(&seed, (&mut s.u, &mut s.next, 0.1, 0.01, 3)).unwrap();
        rows.push(out.get(burgers::u).unwrap().to_vec());
    }
    // Row k of the Jacobian along a direction equals the difference of output k.
    let plain = burgers().compile(&device).unwrap();
    let run = |bump: f64| {
        let mut s = Setting::new(&device, 12);
        s.u.as_mut_slice()[5] += bump;
        let _done = plain.launch((&mut s.u, &mut s.next, 0.1, 0.01, 3)).unwrap();
        s.u.to_vec()
    };
    let (plus, minus) = (run(1e-6), run(-1e-6));
    for k in 0..12 {
        let difference = (plus[k] - minus[k]) / 2e-6;
        assert!((rows[k][5] - difference).abs() < 1e-8, "{k}");
    }
}

/// `Σ d · v`.
fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

#[test]
fn tangents_and_adjoints_agree_and_hessians_are_differences_of_gradients() {
    let device = crate::cpu();
    let n = 30;
    let mut s = Setting::new(&device, n);
    let v: Vec<f64> = (0..n).map(|i| (i as f64 * 1.3).cos()).collect();
    let along = device.array(&v).unwrap();
    let direction = Direction::new().array(objective::u, &along).scalar(objective::nu, 0.7);

    let g = objective().grad(objective::loss).wrt(objective::u).wrt(objective::nu).compile(&device).unwrap();
    let out = g.launch((&mut s.u, &mut s.next, 0.1, 0.01, 9, &s.target, &mut s.loss)).unwrap();
    let slope = dot(out.get(objective::u).unwrap().as_slice(), &v) + 0.7 * out.get(objective::nu).unwrap();
    let jvp = objective().jvp(objective::loss).wrt(objective::u).wrt(objective::nu).compile(&device).unwrap();
    let before = s.u.to_vec();
    let forward =
        jvp.launch((&mut s.u, &mut s.next, 0.1, 0.01, 9, &s.target, &mut s.loss), &direction).unwrap();
    assert_eq!(s.u.to_vec(), before);
    let forward = forward.get(objective::loss).unwrap().value();
    assert!((forward - slope).abs() <= 1e-12 * slope.abs(), "{forward} {slope}");

    let hvp = objective().hvp(objective::loss).wrt(objective::u).wrt(objective::nu).compile(&device).unwrap();
    let h = hvp.launch((&mut s.u, &mut s.next, 0.1, 0.01, 9, &s.target, &mut s.loss), &direction).unwrap();
    let gradient_at = |step: f64| {
        let mut s = Setting::new(&device, n);
        s.u.as_mut_slice().iter_mut().zip(&v).for_each(|(u, v)| *u += step * v);
        let out =
            g.launch((&mut s.u, &mut s.next, 0.1 + 0.7 * step, 0.01, 9, &s.target, &mut s.loss)).unwrap();
        (out.get(objective::u).unwrap().to_vec(), out.get(objective::nu).unwrap())
    };
    let step = 1e-5;
    let (plus, minus) = (gradient_at(step), gradient_at(-step));
    for k in 0..n {
        let difference = (plus.0[k] - minus.0[k]) / (2.0 * step);
        let found = h.get(objective::u).unwrap().as_slice()[k];
        assert!((found - difference).abs() < 1e-7, "{k}: {found} {difference}");
    }
    let difference = (plus.1 - minus.1) / (2.0 * step);
    assert!((h.get(objective::nu).unwrap() - difference).abs() < 1e-6);
}

/// A scalar that is carried through the loop outside any parallel loop, and a stage that depends on data.
#[program]
fn decay(x: &mut Array1<f64>, rate: f64, steps: usize, loss: &mut Array0<f64>) {
    let n = x.len();
    let mut scale = 1.0;
    for t in 0..steps {
        scale = scale * (1.0 - rate * x[0] * x[0]);
        for i in par(0..n) {
            x[i] = x[i] * scale + 0.01 * (t as f64) * rate;
        }
        if x[n - 1] > 0.2 {
            for i in par(0..n) {
                x[i] = x[i] - 0.1 * x[i] * x[i];
            }
        }
    }
    for i in par(0..n) {
        loss[[]] += x[i] * x[i];
    }
}

#[test]
fn scalars_outside_parallel_loops_and_branches_on_data_are_differentiated() {
    for device in [Device::interpreter(), crate::cpu()] {
        let start: Vec<f64> = (0..9).map(|i| 0.3 + 0.05 * i as f64).collect();
        let g = decay().grad(decay::loss).wrt(decay::x).wrt(decay::rate).compile(&device).unwrap();
        let run = |g: &CompiledGrad<decay>| {
            let (mut x, mut loss) = (device.array(&start).unwrap(), device.zeros([]).unwrap());
            let out = g.launch((&mut x, 0.2, 7, &mut loss)).unwrap();
            (out.get(decay::x).unwrap().to_vec(), out.get(decay::rate).unwrap())
        };
        let (dx, drate) = run(&g);
        let plain = decay().compile(&device).unwrap();
        let loss_at = |rate: f64, bump: f64| {
            let mut moved = start.clone();
            moved[0] += bump;
            let (mut x, mut loss) = (device.array(&moved).unwrap(), device.zeros([]).unwrap());
            let _done = plain.launch((&mut x, rate, 7, &mut loss)).unwrap();
            loss.value()
        };
        let h = 1e-6;
        let difference = (loss_at(0.2 + h, 0.0) - loss_at(0.2 - h, 0.0)) / (2.0 * h);
        assert!((drate - difference).abs() < 1e-7, "{drate} {difference}");
        let difference = (loss_at(0.2, h) - loss_at(0.2, -h)) / (2.0 * h);
        assert!((dx[0] - difference).abs() < 1e-7, "{} {difference}", dx[0]);
        for slots in 1..5 {
            for block in 1..4 {
                assert_eq!(run(&g.with_budget(Budget::Revolve { slots, block })), (dx.clone(), drate));
            }
        }
    }
}

/// Adaptive steps: the number of passes depends on the data.
#[program]
fn adaptive(x: &mut Array1<f64>, time: &mut Array0<f64>, rate: f64, until: f64, loss: &mut Array0<f64>) {
    let n = x.len();
    while time[[]] < until {
        let h = 0.1 / (1.0 + x[0] * x[0]);
        for i in par(0..n) {
            x[i] += h * (rate * x[i] - x[i] * x[i] * x[i]);
        }
        time[[]] += h;
    }
    for i in par(0..n) {
        loss[[]] += x[i] * x[i];
    }
}

/// The same with `loop` and `break`, and a loop whose bound is data.
#[program]
fn relaxed_to(x: &mut Array1<f64>, goal: f64, count: &Array0<i32>, loss: &mut Array0<f64>) {
    let n = x.len();
    loop {
        for i in par(0..n) {
            x[i] = x[i] - 0.1 * (x[i] * x[i] - goal);
        }
        if (x[0] * x[0] - goal).abs() < 0.05 {
            break;
        }
    }
    for t in 0..count[[]] as usize {
        for i in par(0..n) {
            x[i] = x[i] * (1.0 + 0.01 * (t as f64) * x[i]);
        }
    }
    for i in par(0..n) {
        loss[[]] += x[i] * x[i];
    }
}

#[test]
fn loops_of_unknown_length_are_reversed_online() {
    for device in [Device::interpreter(), crate::cpu()] {
        let start: Vec<f64> = (0..5).map(|i| 0.3 + 0.1 * i as f64).collect();
        let g =
            adaptive().grad(adaptive::loss).wrt(adaptive::x).wrt(adaptive::rate).compile(&device).unwrap();
        let run = |g: &CompiledGrad<adaptive>, until: f64| {
            let (mut x, mut time, mut loss) =
                (device.array(&start).unwrap(), device.zeros([]).unwrap(), device.zeros([]).unwrap());
            let out = g.launch((&mut x, &mut time, 0.8, until, &mut loss)).unwrap();
            (out.get(adaptive::x).unwrap().to_vec(), out.get(adaptive::rate).unwrap(), out.ran().reversed)
        };
        let plain = adaptive().compile(&device).unwrap();
        let loss_at = |rate: f64, bump: f64, until: f64| {
            let mut moved = start.clone();
            moved[1] += bump;
            let (mut x, mut time, mut loss) =
                (device.array(&moved).unwrap(), device.zeros([]).unwrap(), device.zeros([]).unwrap());
            let _done = plain.launch((&mut x, &mut time, rate, until, &mut loss)).unwrap();
            loss.value()
        };
        for until in [-1.0, 0.05, 0.4, 1.7] {
            let (dx, drate, passes) = run(&g, until);
            assert_eq!(passes == 0, until < 0.0);
            let h = 1e-6;
            let difference = (loss_at(0.8 + h, 0.0, until) - loss_at(0.8 - h, 0.0, until)) / (2.0 * h);
            assert!((drate - difference).abs() < 1e-7, "{until}: {drate} {difference}");
            let difference = (loss_at(0.8, h, until) - loss_at(0.8, -h, until)) / (2.0 * h);
            assert!((dx[1] - difference).abs() < 1e-7, "{until}: {} {difference}", dx[1]);
            for slots in 1..5 {
                for block in 1..4 {
                    let found = run(&g.with_budget(Budget::Revolve { slots, block }), until);
                    assert_eq!(found, (dx.clone(), drate, passes), "{slots} slots, blocks of {block}");
                }
            }
        }
        let g = relaxed_to()
            .grad(relaxed_to::loss)
            .wrt(relaxed_to::x)
            .wrt(relaxed_to::goal)
            .compile(&device)
            .unwrap();
        let plain = relaxed_to().compile(&device).unwrap();
        let count = device.scalar(4).unwrap();
        let loss_at = |goal: f64| {
            let (mut x, mut loss) = (device.array(&start).unwrap(), device.zeros([]).unwrap());
            let _done = plain.launch((&mut x, goal, &count, &mut loss)).unwrap();
            loss.value()
        };
        let run = |g: &CompiledGrad<relaxed_to>| {
            let (mut x, mut loss) = (device.array(&start).unwrap(), device.zeros([]).unwrap());
            let out = g.launch((&mut x, 1.0, &count, &mut loss)).unwrap();
            (out.get(relaxed_to::x).unwrap().to_vec(), out.get(relaxed_to::goal).unwrap())
        };
        let found = run(&g);
        let difference = (loss_at(1.0 + 1e-6) - loss_at(1.0 - 1e-6)) / 2e-6;
        assert!((found.1 - difference).abs() < 1e-7, "{} {difference}", found.1);
        assert_eq!(run(&g.with_budget(Budget::Revolve { slots: 2, block: 2 })), found);
    }
}

#[program]
fn walk_until(u: &mut Array1<f64>, a: f64, steps: usize, loss: &mut Array0<f64>) {
    let mut x = a;
    let mut t: usize = 0;
    while t < steps {
        x = x * 0.9 + 0.1 * u[t] * u[t];
        u[t] = x;
        t += 1;
    }
    loss[[]] += x;
}

/// Also where the number of passes is data, and a state is much larger than the tape of a pass.
#[test]
fn the_least_that_a_message_names_works() {
    for device in [Device::interpreter(), crate::cpu()] {
        let g = walk_until()
            .grad(walk_until::loss)
            .wrt(walk_until::u)
            .wrt(walk_until::a)
            .compile(&device)
            .unwrap();
        let (mut u, mut loss) = (device.array(&[0.5; 1000]).unwrap(), device.zeros([]).unwrap());
        let all = g.launch((&mut u, 0.3, 20, &mut loss)).unwrap();
        let Err(ebbtide::Error::BudgetTooSmall { minimum: least, .. }) =
            g.with_memory(Bytes(1)).launch((&mut u, 0.3, 20, &mut loss))
        else {
            panic!("one byte is not enough");
        };
        let out = g.with_memory(Bytes(least)).launch((&mut u, 0.3, 20, &mut loss)).unwrap();
        assert_eq!(out.get(walk_until::u).unwrap().to_vec(), all.get(walk_until::u).unwrap().to_vec());
        let below = g.with_memory(Bytes(least - 1)).launch((&mut u, 0.3, 20, &mut loss));
        assert!(matches!(below, Err(ebbtide::Error::BudgetTooSmall { .. })), "{device:?}");
    }
}

#[test]
fn results_of_another_shape_or_gradient_are_refused() {
    let device = Device::interpreter();
    type W = walk_until;
    let both = walk_until().grad(W::loss).wrt(W::u).wrt(W::a).compile(&device).unwrap();
    let one = walk_until().grad(W::loss).wrt(W::a).compile(&device).unwrap();
    let (mut long, mut short) = (device.array(&[0.5; 60]).unwrap(), device.array(&[0.5; 50]).unwrap());
    let mut loss = device.zeros([]).unwrap();
    let mut out = both.launch((&mut long, 0.3, 20, &mut loss)).unwrap();
    let text = both.launch_into(&mut out, (&mut short, 0.3, 20, &mut loss)).unwrap_err().to_string();
    assert!(text.contains("shape [60] for `u`, which has shape [50] now"), "{text}");
    let text = one.launch_into(&mut out, (&mut long, 0.3, 20, &mut loss)).unwrap_err().to_string();
    assert!(text.contains("those of another gradient"), "{text}");
    both.launch_into(&mut out, (&mut long, 0.3, 20, &mut loss)).unwrap();
}

#[program]
fn grows(x: &mut Array0<f64>, steps: usize, loss: &mut Array0<f64>) {
    for _t in 0..steps {
        x[[]] = 1.5 * x[[]] * x[[]];
    }
    loss[[]] += x[[]];
}

#[test]
fn derivatives_refuse_a_usize_beyond_what_a_program_counts_to() {
    for device in [crate::cpu(), Device::interpreter()] {
        let (mut x, mut loss) = (device.scalar(1.0).unwrap(), device.scalar(0.0).unwrap());
        let grad = grows().value_and_grad(grows::loss).wrt(grows::x).compile(&device).unwrap();
        let jvp = grows().jvp(grows::loss).wrt(grows::x).compile(&device).unwrap();
        let hvp = grows().hvp(grows::loss).wrt(grows::x).compile(&device).unwrap();
        let along = device.scalar(1.0).unwrap();
        let direction = Direction::new().array(grows::x, &along);
        let dir = crate::folder::folder();
        let much = usize::MAX;
        for error in [
            grad.plan((&mut x, much, &mut loss)).err().unwrap(),
            grad.launch((&mut x, much, &mut loss)).err().unwrap(),
            grad.launch_durable(dir.path().join("run"), (&mut x, much, &mut loss)).err().unwrap(),
            jvp.launch((&mut x, much, &mut loss), &direction).err().unwrap(),
            hvp.launch((&mut x, much, &mut loss), &direction).err().unwrap(),
        ] {
            let text = error.to_string();
            assert!(text.contains("`steps` is 18446744073709551615, and a `usize`"), "{device:?}: {text}");
        }
        assert!(!dir.path().join("run").exists());
    }
}
