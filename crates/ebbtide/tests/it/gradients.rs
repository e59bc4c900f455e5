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
    let device = Device::cpu();
    let (n, steps) = (1000, 400);
    let mut s = Setting::new(&device, n);
    let g = objective().grad(objective::loss).wrt(objective::u).compile(&device).unwrap();
    let all = g.launch((&mut s.u, &mut s.next, 0.1, 0.01, steps, &s.target, &mut s.loss)).unwrap();
    let expected: Vec<u64> = all.get(objective::u).unwrap().to_vec().iter().map(|x| x.to_bits()).collect();
    let mut runs = Vec::new();
    for kib in [64, 96, 128, 256, 512, 1024, 4096] {
        let g = g.with_memory(Bytes::kib(kib));
        let plan = g.plan((&mut s.u, &mut s.next, 0.1, 0.01, steps, &s.target, &mut s.loss)).unwrap();
        assert!(plan.peak_bytes() <= kib << 10, "{}", plan.explain());
        let (before, meter) = (device.meter().live(), device.meter());
        meter.reset_peak();
        let out = g.launch((&mut s.u, &mut s.next, 0.1, 0.01, steps, &s.target, &mut s.loss)).unwrap();
        // The returned derivative is the caller's.
        let used = meter.peak() - before - 8 * n as u64;
        assert!(used <= kib << 10, "{used} bytes of {kib} KiB\n{}", plan.explain());
        assert!(used.abs_diff(plan.peak_bytes()) <= 1 << 10, "{used} measured, planned:\n{}", plan.explain());
        let found: Vec<u64> = out.get(objective::u).unwrap().to_vec().iter().map(|x| x.to_bits()).collect();
        assert_eq!(found, expected, "{kib} KiB");
        let ran = out.ran();
        assert_eq!(u128::from(ran.advanced + ran.recorded), plan.loops[0].totals.executions());
        runs.push(ran.advanced + ran.recorded);
    }
    assert!(runs.is_sorted_by(|a, b| a >= b), "more memory never costs more: {runs:?}");
    assert!(runs[0] > steps as u64 && *runs.last().unwrap() == steps as u64, "{runs:?}");
}

#[test]
fn a_budget_below_the_minimum_names_the_minimum() {
    let device = Device::cpu();
    let mut s = Setting::new(&device, 1000);
    let g =
        objective().grad(objective::loss).wrt(objective::u).memory(Bytes::kib(1)).compile(&device).unwrap();
    let error =
        g.launch((&mut s.u, &mut s.next, 0.1, 0.01, 10, &s.target, &mut s.loss)).unwrap_err().to_string();
    let minimum: u64 = error
        .split("the least that works here is ")
        .nth(1)
        .and_then(|r| r.split(' ').next())
        .unwrap()
        .parse()
        .unwrap();
    let least = g.with_memory(Bytes(minimum));
    assert!(least.launch((&mut s.u, &mut s.next, 0.1, 0.01, 10, &s.target, &mut s.loss)).is_ok());
    let less = g.with_memory(Bytes(minimum - 1));
    assert!(less.launch((&mut s.u, &mut s.next, 0.1, 0.01, 10, &s.target, &mut s.loss)).is_err());
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
