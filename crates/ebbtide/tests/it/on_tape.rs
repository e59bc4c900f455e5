//! Compiled programs on an eager tape.

use ebbtide::OnTape;
use ebbtide::prelude::*;
use ebbtide_tape::{Mode, Tape, with_mode};
use ndarray::{ArrayD, arr1};

#[program]
fn step(u: &mut Array1<f64>, c: &Array1<f64>, scratch: &mut Array1<f64>, gain: f64, steps: usize) {
    let n = u.len();
    for _t in 0..steps {
        for i in par(0..n) {
            scratch[i] = u[(i + 1) % n] * c[i];
        }
        for i in par(0..n) {
            u[i] += gain * scratch[i].tanh() * u[i];
        }
    }
}

#[test]
fn a_compiled_program_is_an_operation_that_a_tape_records_keeps_or_replays() {
    let device = crate::cpu();
    let scratch = device.zeros([4]).unwrap();
    let operation = step()
        .on_tape(step::u)
        .input(step::u)
        .input(step::c)
        .array(step::scratch, &scratch)
        .scalar("gain", 0.1)
        .scalar("steps", 5usize)
        .memory(Bytes::kib(1))
        .compile(&device)
        .unwrap();
    let run = |c0: f64, mode: Mode| {
        let tape = Tape::<ArrayD<f64>>::new();
        let u = tape.leaf(arr1(&[0.3, 0.5, 0.7, 0.9]).into_dyn());
        let c = tape.leaf(arr1(&[c0, 0.8, 1.1, 0.6]).into_dyn());
        let end = with_mode(mode, || {
            let mut state = u.sin();
            for _ in 0..3 {
                // Between two calls of the program something that only the tape knows.
                state = (tape.apply(operation.clone(), &[&state, &c]).unwrap() * 1.1).sin();
            }
            state
        });
        let loss = (&end * &end).sum();
        let value = loss.value().sum();
        let gradients = loss.pullback().unwrap();
        (value, gradients.wrt(&u).unwrap(), gradients.wrt(&c).unwrap())
    };
    let (_, du, dc) = run(1.2, Mode::Off);
    let (_, du_replayed, dc_replayed) = run(1.2, Mode::Aggressive);
    assert_eq!((du, &dc), (du_replayed, &dc_replayed));
    let h = 1e-6;
    let difference = (run(1.2 + h, Mode::Off).0 - run(1.2 - h, Mode::Off).0) / (2.0 * h);
    assert!((dc[0] - difference).abs() < 1e-8, "{} {difference}", dc[0]);
}

#[test]
fn what_an_operation_does_not_take_is_refused() {
    let device = Device::interpreter();
    let scratch = device.zeros([3]).unwrap();
    let whole = || {
        let step = step().on_tape(step::u).input(step::u).input(step::c);
        step.array(step::scratch, &scratch).scalar("gain", 0.1).scalar("steps", 2usize)
    };
    let refused = |program: ebbtide::TapeProgram<step>| program.compile(&device).err().unwrap().to_string();
    let error = refused(whole().scalar("setps", 2usize));
    assert!(error.contains("there is no parameter `setps`; its parameters are `u`, "), "{error}");
    let error = refused(whole().scalar("steps", 1usize << 63));
    assert!(error.contains("`steps` is 9223372036854775808"), "{error}");
    let tape = Tape::<ArrayD<f64>>::new();
    let x = tape.leaf(ArrayD::zeros(vec![3]));
    let error = tape.apply(whole().compile(&device).unwrap(), &[&x, &x, &x]).err().unwrap().to_string();
    assert!(error.contains("3 inputs for an operation on `u`, `c`"), "{error}");
}

#[test]
fn a_parameter_that_is_given_nothing_is_named() {
    let error = step().on_tape(step::u).input(step::u).compile(&crate::cpu()).map(|_| ()).unwrap_err();
    assert!(error.to_string().contains("`c`"), "{error}");
}
