//! The programs that introduce the language, as text.

use ebbtide::prelude::*;
use expect_test::expect;

use crate::check;

/// Viscous Burgers on a periodic line, `steps` explicit steps, in place.
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

#[derive(Label)]
enum Stage {
    Detect,
    Solve,
}

#[derive(Arrays)]
struct World {
    pos: Array2<f32>,
    pairs: Array2<i32>,
    overflow: Array0<i32>,
    residual: Array0<f32>,
}

#[program]
fn detect_pairs(w: &mut World) {
    let most = w.pairs.dim(0);
    for i in par(0..w.pos.dim(0)) {
        if w.pos[[i, 0]] > 1.0 && w.pos[[i, 1]] > 1.0 {
            w.overflow[[]] += 1;
        }
        if i < most {
            w.pairs[[i, 0]] = i as i32;
        }
    }
}

#[program]
fn relax(w: &mut World) {
    w.residual[[]] *= 0.5;
}

#[program]
fn step(w: &mut World) {
    #[checkpoint(Stage::Detect, yield_on = w.overflow)]
    {
        detect_pairs(w);
    }
    loop {
        #[checkpoint(Stage::Solve)]
        {
            relax(w);
        }
        if w.residual[[]] < 1e-6 {
            break;
        }
    }
}

#[test]
fn burgers_reads_as_it_was_written() {
    check(
        burgers(),
        expect![[r#"
        program burgers(u: &mut Array1<f64>, next: &mut Array1<f64>, nu: f64, dt: f64, steps: usize) {
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
    "#]],
    );
}

#[test]
fn burgers_runs_on_the_cpu_as_it_is_interpreted() {
    let run = |device: Device| {
        let start: Vec<f64> = (0..100).map(|i| (i as f64 * 0.1).sin()).collect();
        let (mut u, mut next) = (device.array(&start).unwrap(), device.zeros([100]).unwrap());
        let target = device.zeros([100]).unwrap();
        let mut loss = device.scalar(0.0).unwrap();
        let compiled = objective().compile(&device).unwrap();
        let status = compiled.launch((&mut u, &mut next, 0.1, 0.05, 7, &target, &mut loss)).unwrap();
        assert_eq!(status, Status::Done);
        (u.to_vec(), loss.value(), compiled.source().is_some())
    };
    let (interpreted, compiled) = (run(Device::interpreter()), run(crate::cpu()));
    assert_eq!((&interpreted.0, interpreted.1), (&compiled.0, compiled.1));
    assert!(compiled.2 && interpreted.1 > 0.0);
}

#[test]
fn a_sum_over_a_parallel_loop_is_an_update() {
    check(
        misfit(),
        expect![[r#"
        program misfit(u: &Array1<f64>, target: &Array1<f64>, loss: &mut Array0<f64>) {
            for i in par(0..u.len()) {
                let d = u[i] - target[i];
                loss[[]] += 0.5 * d * d;
            }
        }
    "#]],
    );
}

#[test]
fn called_programs_stand_where_they_are_called() {
    check(
        objective(),
        expect![[r#"
        program objective(u: &mut Array1<f64>, next: &mut Array1<f64>, nu: f64, dt: f64, steps: usize, target: &Array1<f64>, loss: &mut Array0<f64>) {
            /* burgers */ {
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
            /* misfit */ {
                for i_2 in par(0..u.len()) {
                    let d = u[i_2] - target[i_2];
                    loss[[]] += 0.5 * d * d;
                }
            }
        }
    "#]],
    );
}

#[test]
fn regions_carry_label_and_flag() {
    check(
        step(),
        expect![[r#"
        program step(w.pos: &mut Array2<f32>, w.pairs: &mut Array2<i32>, w.overflow: &mut Array0<i32>, w.residual: &mut Array0<f32>) {
            #[checkpoint(Stage::Detect, yield_on = w.overflow)] {
                /* detect_pairs */ {
                    let most = w.pairs.dim(0);
                    for i in par(0..w.pos.dim(0)) {
                        let v7 = w.pos[[i, 0]] > 1.0f32;
                        let mut and_0 = v7;
                        if v7 {
                            and_0 = w.pos[[i, 1]] > 1.0f32;
                        }
                        if and_0 {
                            w.overflow[[]] += 1i32;
                        }
                        if i < most {
                            w.pairs[[i, 0]] = i as i32;
                        }
                    }
                }
            }
            loop {
                #[checkpoint(Stage::Solve)] {
                    /* relax */ {
                        w.residual[[]] = w.residual[[]] * 0.5f32;
                    }
                }
                if w.residual[[]] < 1e-6f32 { break; }
            }
        }
    "#]],
    );
}

#[test]
fn parameters_have_typed_names() {
    let loss: Name<Array0<f64>> = objective::loss;
    let nu: Name<f64> = objective::nu;
    assert_eq!((loss.as_str(), nu.as_str(), step::w.as_str()), ("loss", "nu", "w"));
}
