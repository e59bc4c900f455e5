//! Gradients under every schedule: whatever is kept and whatever is run again, not one bit changes.

use ebbtide::Budget;
use ebbtide::prelude::*;

/// A coefficient that passes read is overwritten behind the loop: running passes again must see the old one.
#[program]
fn coefficient_is_overwritten(
    s: &mut Array1<f64>,
    c: &mut Array1<f64>,
    steps: usize,
    loss: &mut Array0<f64>,
) {
    let n = s.len();
    for _t in 0..steps {
        for i in par(0..n) {
            s[i] = s[i] * s[i] * 0.3 + c[i];
        }
    }
    for i in par(0..n) {
        c[i] = 0.0;
    }
    for i in par(0..n) {
        loss[[]] += s[i] * s[i] + c[i];
    }
}

/// An array that a statement before the loop needs is overwritten, but never read, in the loop.
#[program]
fn scratch_is_overwritten(
    s: &mut Array1<f64>,
    scratch: &mut Array1<f64>,
    steps: usize,
    loss: &mut Array0<f64>,
) {
    let n = s.len();
    for i in par(0..n) {
        s[i] = s[i] * scratch[i] * scratch[i];
    }
    for t in 0..steps {
        for i in par(0..n) {
            s[i] = s[i] * s[i] * 0.3 + 0.1;
        }
        for i in par(0..n) {
            scratch[i] = s[i] * (t as f64);
        }
    }
    for i in par(0..n) {
        loss[[]] += s[i] * s[i];
    }
}

fn bits(a: &Array1<f64>) -> Vec<u64> {
    a.as_slice().iter().map(|x| x.to_bits()).collect()
}

#[test]
fn what_is_overwritten_behind_a_loop_is_put_back_before_passes_run_again() {
    let device = crate::cpu();
    let mut s = device.array(&[0.1, 0.5, 0.9, 1.3]).unwrap();
    let mut c = device.array(&[0.4, 0.3, 0.2, 0.1]).unwrap();
    let mut loss = device.scalar(0.0).unwrap();
    type P = coefficient_is_overwritten;
    let g = coefficient_is_overwritten().grad(P::loss).wrt(P::s).wrt(P::c).compile(&device).unwrap();
    let all = g.launch((&mut s, &mut c, 7, &mut loss)).unwrap();
    for slots in 1..5 {
        let g = g.with_budget(Budget::Revolve { slots, block: 1 });
        let out = g.launch((&mut s, &mut c, 7, &mut loss)).unwrap();
        assert_eq!(bits(out.get(P::s).unwrap()), bits(all.get(P::s).unwrap()), "{slots} slots");
        assert_eq!(bits(out.get(P::c).unwrap()), bits(all.get(P::c).unwrap()), "{slots} slots");
    }
}

#[test]
fn what_a_statement_before_the_loop_needs_is_carried_by_the_loop_that_overwrites_it() {
    let device = crate::cpu();
    let mut s = device.array(&[0.1, 0.5, 0.9, 1.3]).unwrap();
    let mut scratch = device.array(&[0.4, 0.3, 0.2, 0.1]).unwrap();
    let mut loss = device.scalar(0.0).unwrap();
    type P = scratch_is_overwritten;
    let g = scratch_is_overwritten().grad(P::loss).wrt(P::s).wrt(P::scratch).compile(&device).unwrap();
    let all = g.launch((&mut s, &mut scratch, 7, &mut loss)).unwrap();
    for slots in 1..5 {
        let g = g.with_budget(Budget::Revolve { slots, block: 1 });
        let out = g.launch((&mut s, &mut scratch, 7, &mut loss)).unwrap();
        assert_eq!(bits(out.get(P::s).unwrap()), bits(all.get(P::s).unwrap()), "{slots} slots");
        assert_eq!(bits(out.get(P::scratch).unwrap()), bits(all.get(P::scratch).unwrap()), "{slots} slots");
    }
}

/// Loops in loops, one of them as long as the pass around it says, one that ends when its data say so.
#[program]
fn nest(u: &mut Array1<f64>, c: &mut Array1<f64>, outer: usize, inner: usize, loss: &mut Array0<f64>) {
    let n = u.len();
    for t in 0..outer {
        for i in par(0..n) {
            c[i] = u[i].sin() * (1.0 + 0.1 * (t as f64));
        }
        for k in 0..inner {
            for i in par(0..n) {
                u[i] = u[i] * 0.9 + 0.05 * u[i] * u[i] + 0.1 * c[i] * ((k + t) as f64).cos();
            }
        }
        for k in 0..t {
            for i in par(0..n) {
                u[i] = (u[i] + 0.01 * (k as f64)).tanh() * 1.3;
            }
        }
        for i in par(0..n) {
            c[i] = c[i] * u[i];
        }
        for i in par(0..n) {
            u[i] += 0.01 * c[i] * c[i];
        }
    }
    for i in par(0..n) {
        loss[[]] += u[i] * u[i];
    }
}

#[test]
fn loops_in_loops_have_the_same_bits_under_every_schedule() {
    let device = crate::cpu();
    let start: Vec<f64> = (0..5).map(|i| 0.3 + 0.2 * i as f64).collect();
    let mut u = device.array(&start).unwrap();
    let mut c = device.array(&[0.4, 0.3, 0.2, 0.1, 0.5]).unwrap();
    let mut loss = device.scalar(0.0).unwrap();
    let g = nest().grad(nest::loss).wrt(nest::u).compile(&device).unwrap();
    let plain = nest().compile(&device).unwrap();
    for (outer, inner) in [(0, 3), (1, 0), (1, 1), (2, 3), (3, 1), (5, 4), (6, 7)] {
        let all = g.with_budget(Budget::StoreAll).launch((&mut u, &mut c, outer, inner, &mut loss)).unwrap();
        let expected = bits(all.get(nest::u).unwrap());
        for slots in 1..5 {
            for block in 1..4 {
                let g = g.with_budget(Budget::Revolve { slots, block });
                let out = g.launch((&mut u, &mut c, outer, inner, &mut loss)).unwrap();
                assert_eq!(bits(out.get(nest::u).unwrap()), expected, "{outer} {inner} {slots} {block}");
            }
        }
        // Against differences.
        let mut at = |h: f64| {
            let mut x = start.clone();
            x[2] += h;
            u.copy_from_slice(&x).unwrap();
            loss.fill(0.0).unwrap();
            let _done = plain.launch((&mut u, &mut c, outer, inner, &mut loss)).unwrap();
            u.copy_from_slice(&start).unwrap();
            loss.value()
        };
        let difference = (at(1e-6) - at(-1e-6)) / 2e-6;
        let found = all.get(nest::u).unwrap().as_slice()[2];
        assert!((found - difference).abs() < 1e-7 * difference.abs().max(1.0), "{found} {difference}");
        loss.fill(0.0).unwrap();
    }
}

/// A body that reads the loop index, draws random numbers, counts, branches and changes two arrays in place.
#[program]
fn walk(
    s: &mut Array1<f64>,
    v: &mut Array1<f64>,
    p: &Array1<f64>,
    first: usize,
    last: usize,
    loss: &mut Array0<f64>,
) {
    let n = s.len();
    let mut count = 0;
    let mut turns: usize = 0;
    for t in first..last {
        count += 3;
        if count % 2 == 0 {
            turns += 1;
            for i in par(0..n) {
                v[i] = v[i] * 0.9 + 0.1 * (s[i] * p[i]).sin();
            }
        }
        for i in par(0..n) {
            let kick = rand::<f64>(17, t * 64 + i);
            s[i] += 0.1 * v[i] * (t as f64).cos() + 0.05 * (kick - 0.5) * s[i] * (turns as f64);
        }
        swap(s, v);
    }
    for i in par(0..n) {
        loss[[]] += s[i] * s[i] + 0.5 * v[i] * (turns as f64);
    }
}

/// The same, ending when its data say so.
#[program]
fn walk_until(
    s: &mut Array1<f64>,
    v: &mut Array1<f64>,
    p: &Array1<f64>,
    most: usize,
    loss: &mut Array0<f64>,
) {
    let n = s.len();
    let mut t: usize = 0;
    while t < most {
        for i in par(0..n) {
            v[i] = v[i] * 0.9 + 0.1 * (s[i] * p[i]).sin();
        }
        for i in par(0..n) {
            s[i] += 0.1 * v[i] * (t as f64).cos();
        }
        swap(s, v);
        t += 1;
    }
    for i in par(0..n) {
        loss[[]] += s[i] * s[i];
    }
}

#[test]
fn gradients_have_the_same_bits_for_every_length_and_every_number_of_slots() {
    let device = crate::cpu();
    let mut s = device.array(&[0.3, 0.7, -0.4]).unwrap();
    let mut v = device.array(&[0.1, -0.2, 0.5]).unwrap();
    let p = device.array(&[1.1, 0.9, 1.3]).unwrap();
    let mut loss = device.scalar(0.0).unwrap();
    let counted = walk().grad(walk::loss).wrt(walk::s).wrt(walk::p).compile(&device).unwrap();
    let ended =
        walk_until().grad(walk_until::loss).wrt(walk_until::s).wrt(walk_until::p).compile(&device).unwrap();
    for n in 0..40 {
        let mut budgets: Vec<Budget> = (1..n + 2).map(|slots| Budget::Revolve { slots, block: 1 }).collect();
        budgets.extend([2, 3, 5].map(|block| Budget::Revolve { slots: 1 + n / 7, block }));
        budgets.extend([1, 2, 3, 7].map(|period| Budget::Periodic { period }));
        let all =
            counted.with_budget(Budget::StoreAll).launch((&mut s, &mut v, &p, 5, 5 + n, &mut loss)).unwrap();
        let expected = [bits(all.get(walk::s).unwrap()), bits(all.get(walk::p).unwrap())];
        for budget in &budgets {
            let out = counted.with_budget(*budget).launch((&mut s, &mut v, &p, 5, 5 + n, &mut loss)).unwrap();
            let found = [bits(out.get(walk::s).unwrap()), bits(out.get(walk::p).unwrap())];
            assert_eq!(found, expected, "{n} passes, {budget:?}");
        }
        let all = ended
            .with_budget(Budget::Revolve { slots: 64, block: 1 })
            .launch((&mut s, &mut v, &p, n, &mut loss))
            .unwrap();
        let expected = [bits(all.get(walk_until::s).unwrap()), bits(all.get(walk_until::p).unwrap())];
        for budget in &budgets {
            let out = ended.with_budget(*budget).launch((&mut s, &mut v, &p, n, &mut loss)).unwrap();
            let found = [bits(out.get(walk_until::s).unwrap()), bits(out.get(walk_until::p).unwrap())];
            assert_eq!(found, expected, "{n} passes, {budget:?}");
        }
    }
    let plain = walk().compile(&device).unwrap();
    let out = counted.launch((&mut s, &mut v, &p, 5, 30, &mut loss)).unwrap();
    let mut at = |h: f64| {
        let mut s = device.array(&[0.3, 0.7 + h, -0.4]).unwrap();
        let mut v = device.array(&[0.1, -0.2, 0.5]).unwrap();
        loss.fill(0.0).unwrap();
        let _done = plain.launch((&mut s, &mut v, &p, 5, 30, &mut loss)).unwrap();
        loss.value()
    };
    let (found, difference) = (out.get(walk::s).unwrap().as_slice()[1], (at(1e-6) - at(-1e-6)) / 2e-6);
    assert!((found - difference).abs() < 1e-7 * difference.abs().max(1.0), "{found} {difference}");
}

/// Loops of unknown length inside a loop and a branch, with a loop that is left in its middle.
#[program]
fn relaxations(u: &mut Array1<f64>, b: &Array1<f64>, outer: usize, tolerance: f64, loss: &mut Array0<f64>) {
    let n = u.len();
    let mut residual = Array0::<f64>::zeros([]);
    for t in 0..outer {
        if t % 2 == 0 {
            let mut k = 0;
            loop {
                for i in par(0..n) {
                    u[i] = u[i] - 0.3 * (u[i] * u[i] * u[i] - b[i] + 0.1 * (t as f64));
                }
                residual[[]] = 0.0;
                for i in par(0..n) {
                    let r = u[i] * u[i] * u[i] - b[i] + 0.1 * (t as f64);
                    residual[[]].max_assign(r.abs());
                }
                k += 1;
                if residual[[]] < tolerance || k > 50 {
                    break;
                }
            }
        }
        while residual[[]] < 1.0 {
            for i in par(0..n) {
                u[i] = u[i] * 1.02 + 0.01;
            }
            residual[[]] = residual[[]] * 1.5 + 0.2;
        }
    }
    for i in par(0..n) {
        loss[[]] += u[i] * u[i];
    }
}

#[test]
fn loops_that_end_when_their_data_say_so_are_reversed_inside_loops_and_branches() {
    let device = crate::cpu();
    let start = [0.3, 0.7, 0.9];
    let mut u = device.array(&start).unwrap();
    let b = device.array(&[1.1, 0.9, 1.3]).unwrap();
    let mut loss = device.scalar(0.0).unwrap();
    type P = relaxations;
    let g = relaxations().grad(P::loss).wrt(P::u).wrt(P::b).compile(&device).unwrap();
    let all = g.launch((&mut u, &b, 5, 0.3, &mut loss)).unwrap();
    let expected = [bits(all.get(P::u).unwrap()), bits(all.get(P::b).unwrap())];
    for slots in 1..6 {
        for block in 1..4 {
            let g = g.with_budget(Budget::Revolve { slots, block });
            let out = g.launch((&mut u, &b, 5, 0.3, &mut loss)).unwrap();
            assert_eq!([bits(out.get(P::u).unwrap()), bits(out.get(P::b).unwrap())], expected);
        }
    }
    let plain = relaxations().compile(&device).unwrap();
    let mut at = |h: f64| {
        let (mut u, b) = (device.array(&start).unwrap(), device.array(&[1.1, 0.9 + h, 1.3]).unwrap());
        loss.fill(0.0).unwrap();
        let _done = plain.launch((&mut u, &b, 5, 0.3, &mut loss)).unwrap();
        loss.value()
    };
    let (found, difference) = (all.get(P::b).unwrap().as_slice()[1], (at(1e-6) - at(-1e-6)) / 2e-6);
    assert!((found - difference).abs() < 1e-7 * difference.abs().max(1.0), "{found} {difference}");
}

/// Three loops, one in another.
#[program]
fn cube(s: &mut Array1<f64>, p: &Array1<f64>, n: usize, loss: &mut Array0<f64>) {
    for a in 0..n {
        for b in 0..n {
            for c in 0..n {
                for i in par(0..s.len()) {
                    s[i] += 1e-4 * (s[i] * p[i]).tanh() * ((a + 2 * b + 3 * c) as f64);
                }
            }
            for i in par(0..s.len()) {
                s[i] = s[i] * 0.999;
            }
        }
    }
    for i in par(0..s.len()) {
        loss[[]] += s[i] * s[i];
    }
}

#[test]
fn a_nest_of_three_loops_is_reversed_within_a_budget() {
    let device = crate::cpu();
    let start: Vec<f64> = (0..64).map(|i| 0.1 + 0.01 * i as f64).collect();
    let mut s = device.array(&start).unwrap();
    let p = device.array(&vec![1.2; 64]).unwrap();
    let mut loss = device.scalar(0.0).unwrap();
    let g = cube().grad(cube::loss).wrt(cube::s).wrt(cube::p).compile(&device).unwrap();
    // All tapes of 20³ passes of 512 bytes, about 4 MiB; then less and less of it.
    let all = g.launch((&mut s, &p, 20, &mut loss)).unwrap();
    let expected = [bits(all.get(cube::s).unwrap()), bits(all.get(cube::p).unwrap())];
    let (mut factors, meter) = (Vec::new(), device.meter());
    // The partial sum of its reduction, which has one leaf, is in the plan; no array holds it.
    let partial_sums = 8 * 2;
    for kib in [9, 13, 17, 33, 65, 129, 513, 8192] {
        let g = g.with_memory(Bytes::kib(kib));
        let plan = g.plan((&mut s, &p, 20, &mut loss)).unwrap();
        let before = meter.live();
        meter.reset_peak();
        let out = g.launch((&mut s, &p, 20, &mut loss)).unwrap();
        let used = meter.peak() - before - 2 * 8 * 64 + partial_sums;
        assert!(used <= kib << 10, "{used} bytes of {kib} KiB\n{}", plan.explain());
        assert!(used.abs_diff(plan.peak_bytes()) <= 1 << 10, "{used}\n{}", plan.explain());
        assert_eq!([bits(out.get(cube::s).unwrap()), bits(out.get(cube::p).unwrap())], expected, "{kib} KiB");
        factors.push(plan.recompute_factor());
    }
    assert!(factors.is_sorted_by(|a, b| a >= b), "more memory never costs more: {factors:?}");
    assert_eq!(factors.last(), Some(&1.0));
}

#[test]
fn a_hundred_to_the_third_passes_are_reversed_within_64_kib() {
    let device = crate::cpu();
    let mut s = device.array(&[0.1, 0.2, 0.3, 0.4]).unwrap();
    let p = device.array(&[1.2, 1.1, 1.0, 0.9]).unwrap();
    let mut loss = device.scalar(0.0).unwrap();
    let g = cube().grad(cube::loss).wrt(cube::s).wrt(cube::p).compile(&device).unwrap();
    let [wide, narrow] = [Bytes::mib(2), Bytes::kib(64)].map(|bytes| {
        let g = g.with_memory(bytes);
        let out = g.launch((&mut s, &p, 100, &mut loss)).unwrap();
        // With 2 MiB the tapes of inner loops are part of a pass of the outermost; with 64 KiB each has its sweep.
        let passes = if bytes == Bytes::mib(2) { 100 } else { 100 + 10_000 + 1_000_000 };
        assert_eq!(out.ran().reversed, passes, "{:?}", out.ran());
        [bits(out.get(cube::s).unwrap()), bits(out.get(cube::p).unwrap())]
    });
    assert_eq!(narrow, wide);
}

#[program]
fn long(s: &mut Array1<f64>, p: &Array1<f64>, steps: usize, loss: &mut Array0<f64>) {
    for t in 0..steps {
        for i in par(0..s.len()) {
            s[i] += 1e-6 * (s[i] * p[i]).tanh() * ((t % 7) as f64);
        }
    }
    for i in par(0..s.len()) {
        loss[[]] += s[i] * s[i];
    }
}

#[test]
fn a_million_passes_are_reversed_within_one_mib() {
    let device = crate::cpu();
    let start: Vec<f64> = (0..32).map(|i| 0.1 + 0.01 * i as f64).collect();
    let mut s = device.array(&start).unwrap();
    let p = device.array(&[1.2; 32]).unwrap();
    let mut loss = device.scalar(0.0).unwrap();
    let g = long().grad(long::loss).wrt(long::s).wrt(long::p).compile(&device).unwrap();
    let store_all = g.plan((&mut s, &p, 1_000_000, &mut loss)).unwrap().store_all_bytes;
    assert!(store_all > 240 << 20, "{store_all}");
    let meter = device.meter();
    let [wide, narrow] = [Bytes::mib(64), Bytes::mib(1)].map(|bytes| {
        let g = g.with_memory(bytes);
        let before = meter.live();
        meter.reset_peak();
        let out = g.launch((&mut s, &p, 1_000_000, &mut loss)).unwrap();
        assert!(meter.peak() - before <= bytes.0 + 2 * 8 * 32);
        assert_eq!(out.ran().reversed, 1_000_000);
        [bits(out.get(long::s).unwrap()), bits(out.get(long::p).unwrap())]
    });
    assert_eq!(narrow, wide);
}

#[program]
fn hinted(s: &mut Array1<f64>, outer: usize, inner: usize, loss: &mut Array0<f64>) {
    for _t in 0..outer {
        #[reverse(revolve(slots = 3))]
        for _k in 0..inner {
            for i in par(0..s.len()) {
                s[i] += 0.01 * s[i] * s[i];
            }
        }
    }
    for i in par(0..s.len()) {
        loss[[]] += s[i];
    }
}

#[program]
fn mixed(s: &mut Array1<f64>, steps: usize, loss: &mut Array0<f64>) {
    #[reverse(mixed(slots = 3))]
    for _k in 0..steps {
        for i in par(0..s.len()) {
            s[i] += 0.01 * s[i] * s[i];
        }
    }
    for i in par(0..s.len()) {
        loss[[]] += s[i];
    }
}

#[test]
fn a_hint_on_an_inner_loop_is_followed_and_counts_against_the_budget() {
    let device = crate::cpu();
    let mut s = device.array(&vec![0.1; 100]).unwrap();
    let mut loss = device.scalar(0.0).unwrap();
    let g = hinted().grad(hinted::loss).wrt(hinted::s).compile(&device).unwrap();
    let plan = g.plan((&mut s, 4, 10, &mut loss)).unwrap();
    let inner = &plan.loops[1];
    assert_eq!((inner.schedule, inner.totals.memory.peak_slots, inner.entries), ("revolve", 3, 4));
    let expected = bits(g.launch((&mut s, 4, 10, &mut loss)).unwrap().get(hinted::s).unwrap());
    let tight = g.with_memory(Bytes(plan.fixed_bytes + 6 * 800));
    let out = tight.launch((&mut s, 4, 10, &mut loss)).unwrap();
    assert_eq!(bits(out.get(hinted::s).unwrap()), expected);
    let error =
        g.with_memory(Bytes(plan.fixed_bytes + 3 * 800)).launch((&mut s, 4, 10, &mut loss)).unwrap_err();
    assert!(error.to_string().contains("the least that works"), "{error}");
}

#[test]
fn states_and_tapes_share_the_slots_of_a_mixed_schedule() {
    let device = crate::cpu();
    let mut s = device.array(&vec![0.1; 100]).unwrap();
    let mut loss = device.scalar(0.0).unwrap();
    let g = mixed().grad(mixed::loss).wrt(mixed::s).compile(&device).unwrap();
    let in_place = hinted().grad(hinted::loss).wrt(hinted::s).compile(&device).unwrap();
    for steps in [0, 1, 2, 3, 10, 100] {
        let plan = g.plan((&mut s, steps, &mut loss)).unwrap();
        assert_eq!(plan.loops[0].schedule, "mixed");
        let out = g.launch((&mut s, steps, &mut loss)).unwrap();
        // The same passes without a choice of a schedule.
        let every = in_place.launch((&mut s, 1, steps, &mut loss)).unwrap();
        assert_eq!(bits(out.get(mixed::s).unwrap()), bits(every.get(hinted::s).unwrap()), "{steps} steps");
        let (states, tapes) = (plan.loops[0].totals.memory.peak_slots, plan.loops[0].totals.peak_tape);
        assert!(states <= 3 && tapes <= 4, "{states} states and {tapes} tapes of {steps} steps");
    }
    // Less is run again than with states alone.
    let ran = |plan: Plan| plan.loops.last().map(|l| l.totals.executions()).unwrap();
    let mixed = ran(g.plan((&mut s, 100, &mut loss)).unwrap());
    let revolve = ran(in_place.plan((&mut s, 1, 100, &mut loss)).unwrap());
    assert!(mixed < revolve, "{mixed} and {revolve}");
}

/// One array is recorded in a loop, and again behind it.
#[program]
fn pushed_behind(s: &mut Array1<f64>, steps: usize, loss: &mut Array0<f64>) {
    for _t in 0..steps {
        for i in par(0..s.len()) {
            s[i] += 0.1 * s[i] * s[i];
        }
    }
    for i in par(0..s.len()) {
        s[i] = s[i] * s[i];
    }
    for i in par(0..s.len()) {
        s[i] = s[i].sin();
    }
    for i in par(0..s.len()) {
        loss[[]] += s[i] * s[i];
    }
}

#[test]
fn an_array_is_recorded_in_a_loop_and_behind_it() {
    let device = crate::cpu();
    let mut s = device.array(&[0.1, 0.2, 0.3]).unwrap();
    let mut loss = device.scalar(0.0).unwrap();
    type P = pushed_behind;
    let g = pushed_behind().grad(P::loss).wrt(P::s).compile(&device).unwrap();
    let mut s0 = [0.1f64, 0.2, 0.3];
    let mut slope = [1.0f64; 3];
    for i in 0..3 {
        for _ in 0..6 {
            slope[i] *= 1.0 + 0.2 * s0[i];
            s0[i] += 0.1 * s0[i] * s0[i];
        }
        let q = s0[i] * s0[i];
        slope[i] *= 2.0 * s0[i] * q.cos() * 2.0 * q.sin();
    }
    for budget in [Budget::StoreAll, Budget::Revolve { slots: 2, block: 1 }] {
        let out = g.with_budget(budget).launch((&mut s, 6, &mut loss)).unwrap();
        for (found, expected) in out.get(P::s).unwrap().as_slice().iter().zip(&slope) {
            assert!((found - expected).abs() < 1e-14, "{found} {expected}");
        }
    }
}

/// Counts how often it ran, which a pure function does not do.
#[operation]
fn impure(noise: &mut Array1<f64>) {
    static RUNS: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);
    noise.as_mut_slice()[0] = RUNS.fetch_add(1, std::sync::atomic::Ordering::Relaxed) as f64;
}

#[program]
fn unrepeatable(s: &mut Array1<f64>, noise: &mut Array1<f64>, steps: usize, loss: &mut Array0<f64>) {
    for _t in 0..steps {
        impure(noise);
        for i in par(0..s.len()) {
            s[i] = s[i] * s[i] * 0.3 + 0.01 * noise[i];
        }
    }
    for i in par(0..s.len()) {
        loss[[]] += s[i] * s[i];
    }
}

#[test]
fn a_checked_gradient_refuses_a_step_that_does_not_repeat_itself() {
    let device = crate::cpu();
    let mut s = device.array(&[0.1]).unwrap();
    let mut noise = device.zeros([1]).unwrap();
    let mut loss = device.scalar(0.0).unwrap();
    type P = unrepeatable;
    let g = unrepeatable()
        .grad(P::loss)
        .wrt(P::s)
        .budget(Budget::Revolve { slots: 2, block: 1 })
        .checked()
        .compile(&device)
        .unwrap();
    let error = g.launch((&mut s, &mut noise, 9, &mut loss)).unwrap_err().to_string();
    assert!(error.contains("before iteration") && error.contains("custom operation"), "{error}");
    // What repeats itself passes, loops of unknown length too.
    let mut v = device.array(&[0.2]).unwrap();
    let p = device.array(&[1.1]).unwrap();
    type Q = walk_until;
    let of = || walk_until().grad(Q::loss).wrt(Q::s).budget(Budget::Revolve { slots: 3, block: 2 });
    for n in [0, 1, 7, 23] {
        let out = of().compile(&device).unwrap().launch((&mut s, &mut v, &p, n, &mut loss)).unwrap();
        let checked = of().checked().compile(&device).unwrap();
        let found = checked.launch((&mut s, &mut v, &p, n, &mut loss)).unwrap();
        assert_eq!(bits(found.get(Q::s).unwrap()), bits(out.get(Q::s).unwrap()), "{n}");
        assert_eq!(found.ran().reversed, n as u64);
    }
    // Nothing is run again, nothing can differ.
    g.with_budget(Budget::StoreAll).launch((&mut s, &mut noise, 9, &mut loss)).unwrap();
}
