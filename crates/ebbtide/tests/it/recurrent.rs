//! A recurrent network written as loops: products wait for one another on the way back, and `tanh` is read where the loop left it,
//! on every device with the same bits.

use ebbtide::Budget;
use ebbtide::prelude::*;

#[program]
fn recurrent(
    h: &mut Array1<f64>,
    next: &mut Array1<f64>,
    w: &Array2<f64>,
    x: &Array1<f64>,
    steps: usize,
    loss: &mut Array0<f64>,
) {
    let n = h.len();
    for _t in 0..steps {
        for i in par(0..n) {
            let mut sum = x[i];
            for k in 0..n {
                sum += w[[k, i]] * h[k];
            }
            next[i] = sum.tanh();
        }
        swap(h, next);
    }
    for i in par(0..n) {
        loss[[]] += h[i] * h[i];
    }
}

/// The bits of what flows back to the matrix and the input.
fn gradient(device: &Device, budget: Budget) -> [Vec<u64>; 2] {
    let n = 37;
    let numbers = |count: usize, by: f64| (0..count).map(|k| (by * k as f64).sin()).collect::<Vec<_>>();
    let (mut h, mut next) = (device.array(&numbers(n, 0.3)).unwrap(), device.zeros([n]).unwrap());
    let w = device.array_with_shape([n, n], &numbers(n * n, 0.7)).unwrap();
    let x = device.array(&numbers(n, 1.1)).unwrap();
    let mut loss = device.scalar(0.0).unwrap();
    type P = recurrent;
    let g = recurrent().grad(P::loss).wrt(P::w).wrt(P::x).budget(budget).compile(device).unwrap();
    let out = g.launch((&mut h, &mut next, &w, &x, 19, &mut loss)).unwrap();
    let bits = |elements: &[f64]| elements.iter().map(|x| x.to_bits()).collect();
    [bits(out.get(P::w).unwrap().as_slice()), bits(out.get(P::x).unwrap().as_slice())]
}

fn has_these_bits(device: &Device) {
    let expected = gradient(&Device::interpreter(), Budget::StoreAll);
    for budget in [Budget::StoreAll, Budget::Revolve { slots: 3, block: 2 }] {
        assert_eq!(gradient(device, budget), expected, "{budget:?}");
    }
}

#[test]
fn a_recurrent_network_in_loops_has_the_gradient_of_the_interpreter() {
    has_these_bits(&crate::cpu());
}

#[test]
#[ignore = "needs CUDA"]
fn a_recurrent_network_in_loops_has_the_gradient_of_the_interpreter_on_cuda() {
    has_these_bits(&Device::cuda().unwrap());
}
