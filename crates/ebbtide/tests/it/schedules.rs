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
    let device = Device::cpu();
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
    let device = Device::cpu();
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
