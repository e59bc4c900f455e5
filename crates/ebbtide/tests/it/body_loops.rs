//! Loops inside parallel bodies that carry values from pass to pass: reversed with a tape, or in pieces.

use ebbtide::Budget;
use ebbtide::prelude::*;
use expect_test::expect;

/// A recurrence in each element, as long for all of them.
#[program]
fn recurrence(x: &Array1<f64>, c: &Array1<f64>, y: &mut Array1<f64>, passes: usize, loss: &mut Array0<f64>) {
    for i in par(0..x.len()) {
        let mut s = x[i];
        for k in 0..passes {
            s = s * s * 0.6 + 0.3 * x[i] * c[k % c.len()] + 0.01 * (k as f64);
        }
        y[i] = s;
    }
    for i in par(0..x.len()) {
        loss[[]] += y[i] * y[i];
    }
}

#[test]
fn what_passes_find_is_kept_where_their_number_is_known() {
    let text = recurrence().grad(recurrence::loss).wrt(recurrence::x).wrt(recurrence::c).to_string();
    let reverse = text.find("d_loss'[[]] = 1.0;\n").unwrap();
    expect![[r#"
        d_loss'[[]] = 1.0;
            for i_4 in par(0..v26) {
                let v40 = d_loss'[[]];
                let v41 = v40 * y'[i_4];
                d_y'[i_4] += v40 * y'[i_4];
                d_y'[i_4] += v41;
            }
            for i_6 in par(0..v2) {
                let mut s_2 = x[i_6];
                let mut d_s = 0.0;
                for k_2 in 0..passes {
                    kept0[[k_2, i_6]] = s_2;
                    s_2 = s_2 * s_2 * 0.6 + 0.3 * x[i_6] * c[k_2 % c.len()] + 0.01 * k_2 as f64;
                }
                d_s = d_s + d_y'[i_6];
                let mut sum = 0.0;
                for k_back in 0..passes {
                    let k_3 = 0 + passes - 1 - k_back;
                    let mut s_3 = kept0[[k_3, i_6]];
                    let v82 = s_3;
                    let v83 = s_3;
                    let v89 = 0.3 * x[i_6];
                    let v91 = k_3 % c.len();
                    let v92 = c[v91];
                    s_3 = v82 * v83 * 0.6 + v89 * v92 + 0.01 * k_3 as f64;
                    let v99 = d_s;
                    d_s = 0.0;
                    let v104 = select(v99 == 0.0, 0.0, v99 * v92);
                    d_c'[v91] += select(v99 == 0.0, 0.0, v99 * v89);
                    sum = sum + select(v104 == 0.0, 0.0, v104 * 0.3);
                    let v116 = select(v99 == 0.0, 0.0, v99 * 0.6);
                    d_s = d_s + select(v116 == 0.0, 0.0, v116 * v82);
                    d_s = d_s + select(v116 == 0.0, 0.0, v116 * v83);
                }
                if 0 < passes {
                    d_x'[i_6] += sum;
                }
                let v129 = d_s;
                d_s = 0.0;
                d_x'[i_6] += v129;
            }
            copy(d_x', d_x);
            copy(d_c', d_c);
        }
    "#]]
    .assert_eq(&text[reverse..]);
}

/// As long as the data of the element say.
#[program]
fn until_small(x: &Array1<f64>, c: &Array1<f64>, y: &mut Array1<f64>, passes: usize, loss: &mut Array0<f64>) {
    for i in par(0..x.len()) {
        let mut s = x[i] * (passes as f64);
        let mut k = 0;
        while s.abs() > 0.35 {
            s = s * 0.93 + 0.02 * s.sin() * c[k % c.len()];
            k = k + 1;
        }
        y[i] = s * s;
    }
    for i in par(0..x.len()) {
        loss[[]] += y[i] * y[i];
    }
}

/// As long as the place of the element says, and left early.
#[program]
fn triangle(x: &Array1<f64>, c: &Array1<f64>, y: &mut Array1<f64>, passes: usize, loss: &mut Array0<f64>) {
    for i in par(0..x.len()) {
        let mut s = x[i];
        for k in 0..i * passes {
            s = s.sin() * 0.9 + c[k % c.len()] * s * s;
            if s > 1.5 {
                break;
            }
        }
        for k in i..passes {
            s = s * 0.8 + 0.1 * s * s * c[k % c.len()];
        }
        y[i] = s;
    }
    for i in par(0..x.len()) {
        loss[[]] += y[i] * y[i];
    }
}

/// Loops in loops and in branches, with values carried through all of them.
#[program]
fn nested(x: &Array1<f64>, c: &Array1<f64>, y: &mut Array1<f64>, passes: usize, loss: &mut Array0<f64>) {
    for i in par(0..x.len()) {
        let mut s = x[i];
        let mut all = 0.0;
        for k in 0..passes {
            let mut t = s * 0.5;
            for q in 0..passes / 3 {
                t = t * t * 0.7 + c[q % c.len()];
                all = all + t * s;
            }
            if t > 0.4 {
                let mut u = t;
                for _q in 0..k {
                    u = u.cos() * 0.9 + 0.1 * s;
                }
                t = t + 0.1 * u;
            }
            let mut v = t;
            while v > 0.3 {
                v = v * v * 0.9;
            }
            s = 0.5 * s + 0.2 * t + 0.1 * v;
        }
        y[i] = s * all;
    }
    for i in par(0..x.len()) {
        loss[[]] += y[i] * y[i];
    }
}

/// Many passes in some iterations, as many as data say: more than there are places for, and than places in all pieces.
#[program]
fn long(x: &Array1<f64>, c: &Array1<f64>, y: &mut Array1<f64>, passes: usize, loss: &mut Array0<f64>) {
    for i in par(0..x.len()) {
        let mut s = x[i];
        let count = if i % 300 == 7 { passes * 50 + i / 300 } else { i % 2 };
        for k in 0..count {
            s = s + 0.001 * (s.sin() - c[k % c.len()] * s);
        }
        y[i] = s;
    }
    for i in par(0..x.len()) {
        loss[[]] += y[i] * y[i];
    }
}

/// Checks the gradient for many numbers of passes: the same bits on the interpreter and in native code, and the slope
/// that differences show.
macro_rules! right {
    ($p:ident, $passes:expr) => {
        right!($p, $passes, 11)
    };
    ($p:ident, $passes:expr, $iterations:expr) => {{
        type P = $p;
        let (n, m) = ($iterations, 4);
        let x0: Vec<f64> = (0..n).map(|i| 0.2 + 0.6 * ((i * 7) % 10) as f64 / 10.0).collect();
        let c0: Vec<f64> = (0..m).map(|i| 0.3 + 0.1 * i as f64).collect();
        let v: Vec<f64> = (0..n).map(|i| (i as f64 * 1.7 + 0.5).sin()).collect();
        let w: Vec<f64> = (0..m).map(|i| (i as f64 * 2.3).cos()).collect();
        let native = ebbtide_cpu::Options::new().threads(3).build().unwrap().0;
        let devices = [Device::interpreter(), native];
        let all = devices.map(|device| {
            let g = $p().grad(P::loss).wrt(P::x).wrt(P::c).compile(&device).unwrap();
            let plain = $p().compile(&device).unwrap();
            (device, g, plain)
        });
        for passes in $passes {
            let found = all.each_ref().map(|(device, g, _)| {
                let (x, c) = (device.array(&x0).unwrap(), device.array(&c0).unwrap());
                let (mut y, mut loss) = (device.zeros([n]).unwrap(), device.zeros([]).unwrap());
                let out = g.launch((&x, &c, &mut y, passes, &mut loss)).unwrap();
                (out.get(P::x).unwrap().to_vec(), out.get(P::c).unwrap().to_vec())
            });
            let bits = |a: &[f64]| a.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
            assert_eq!(bits(&found[0].0), bits(&found[1].0), "{passes} passes");
            assert_eq!(bits(&found[0].1), bits(&found[1].1), "{passes} passes");
            let (device, _, plain) = &all[1];
            let loss_at = |h: f64| {
                let moved =
                    |a: &[f64], d: &[f64]| a.iter().zip(d).map(|(a, d)| a + h * d).collect::<Vec<_>>();
                let x = device.array(&moved(&x0, &v)).unwrap();
                let c = device.array(&moved(&c0, &w)).unwrap();
                let (mut y, mut loss) = (device.zeros([n]).unwrap(), device.zeros([]).unwrap());
                let _done = plain.launch((&x, &c, &mut y, passes, &mut loss)).unwrap();
                loss.value()
            };
            let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
            let (dx, dc) = &found[0];
            let slope = dot(dx, &v) + dot(dc, &w);
            let difference = (loss_at(1e-6) - loss_at(-1e-6)) / 2e-6;
            let size = dot(dx, dx).sqrt() * dot(&v, &v).sqrt() + dot(dc, dc).sqrt() * dot(&w, &w).sqrt();
            assert!(
                (slope - difference).abs() < 1e-6 * size.max(1e-3),
                "{passes} passes: {slope} is not {difference}"
            );
        }
    }};
}

#[test]
fn recurrences_of_any_length_are_reversed() {
    right!(recurrence, 0..41);
}

#[test]
fn loops_that_end_when_their_data_say_so_are_reversed() {
    right!(until_small, 0..20);
}

#[test]
fn loops_that_differ_between_iterations_are_reversed() {
    right!(triangle, 0..12);
}

#[test]
fn loops_in_loops_are_reversed() {
    right!(nested, 0..14);
}

#[test]
fn more_passes_than_there_are_places_for_are_reversed() {
    // Each of so many iterations has the least number of places, 32.
    right!(long, [0, 1, 20, 21, 30], 2100);
}

#[test]
fn the_tape_of_a_body_is_part_of_the_plan() {
    let device = crate::cpu();
    let g = recurrence().grad(recurrence::loss).wrt(recurrence::x).compile(&device).unwrap();
    let (x, c) = (device.zeros([1000]).unwrap(), device.zeros([3]).unwrap());
    let (mut y, mut loss) = (device.zeros([1000]).unwrap(), device.zeros([]).unwrap());
    let g = g.with_budget(Budget::StoreAll);
    let mut peak = |passes| g.plan((&x, &c, &mut y, passes, &mut loss)).unwrap().peak_bytes();
    assert_eq!(peak(30) - peak(10), 20 * 1000 * 8);
}
