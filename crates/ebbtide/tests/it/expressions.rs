//! Operators, literals, methods, casts, locals.

use ebbtide::prelude::*;
use expect_test::expect;

use crate::check;

#[program]
fn arithmetic(x: &mut Array1<f64>, k: i64, m: u32) {
    for i in par(0..x.len()) {
        let a = x[i];
        let minus = -a;
        let b = -1.5;
        let c = (a + b) * a - minus / 2.0 % 3.0;
        let n = (k << 2) + (k >> 1) & 7 | k ^ -1;
        let u = !m + 1;
        x[i] = c + n as f64 + u as f64;
    }
}

#[test]
fn operators_bind_as_in_rust() {
    check(
        arithmetic(),
        expect![[r#"
        program arithmetic(x: &mut Array1<f64>, k: i64, m: u32) {
            for i in par(0..x.len()) {
                let a = x[i];
                let minus = -a;
                let c = (a + -1.5) * a - minus / 2.0 % 3.0;
                let n = ((k << 2i64) + (k >> 1i64) & 7i64) | (k ^ -1i64);
                let u = !m + 1u32;
                x[i] = c + n as f64 + u as f64;
            }
        }
    "#]],
    );
}

#[program]
fn casts(x: &mut Array1<f64>, idx: &Array1<i32>, flag: bool) {
    for i in par(0..idx.len()) {
        let j = idx[i] as usize;
        x[i] = (i as f64 + j as f32 as f64) * (flag as i32) as f64;
    }
}

#[test]
fn casts_are_written_with_as() {
    check(
        casts(),
        expect![[r#"
        program casts(x: &mut Array1<f64>, idx: &Array1<i32>, flag: bool) {
            for i in par(0..idx.len()) {
                let j = idx[i] as usize;
                x[i] = (i as f64 + j as f32 as f64) * flag as i32 as f64;
            }
        }
    "#]],
    );
}

#[program]
fn every_method(x: &mut Array1<f64>, n: &mut Array1<i32>) {
    for i in par(0..x.len()) {
        let a = x[i];
        let b = a.sin() + a.cos() + a.tan() + a.asin() + a.acos() + a.atan() + a.atan2(2.0);
        let c = a.sinh() + a.cosh() + a.tanh() + a.exp() + a.exp2() + a.exp_m1() + a.ln() + a.ln_1p();
        let d = a.log2() + a.log10() + a.powf(0.5) + a.powi(3) + a.sqrt() + a.cbrt() + a.abs() + a.min(b);
        let e = a.max(c) + a.floor() + a.ceil() + a.round() + a.trunc() + a.signum() + a.clamp(0.0, 1.0);
        x[i] = d + e.hypot(1.0) + a.mul_add(b, c) + a.erf();
        n[i] = n[i].abs().min(7).max(-2).rem_euclid(5);
    }
}

#[test]
fn methods_have_the_names_of_std() {
    check(
        every_method(),
        expect![[r#"
        program every_method(x: &mut Array1<f64>, n: &mut Array1<i32>) {
            for i in par(0..x.len()) {
                let a = x[i];
                let b = a.sin() + a.cos() + a.tan() + a.asin() + a.acos() + a.atan() + a.atan2(2.0);
                let c = a.sinh() + a.cosh() + a.tanh() + a.exp() + a.exp2() + a.exp_m1() + a.ln() + a.ln_1p();
                let d = a.log2() + a.log10() + a.powf(0.5) + a.powi(3i32) + a.sqrt() + a.cbrt() + a.abs() + a.min(b);
                let v73 = select(a < 0.0, 0.0, a);
                let e = a.max(c) + a.floor() + a.ceil() + a.round() + a.trunc() + select(a == a, select((a > 0.0) | (1.0 / a > 0.0), 1.0, -1.0), a) + select(v73 > 1.0, 1.0, v73);
                x[i] = d + e.hypot(1.0) + a.mul_add(b, c) + a.erf();
                n[i] = n[i].abs().min(7i32).max(-2i32).rem_euclid(5i32);
            }
        }
    "#]],
    );
}

#[program]
fn locals(x: &mut Array1<f64>, start: f64) {
    for i in par(0..x.len()) {
        let mut sum = start;
        let mut count: i32 = 0;
        for k in 0..4 {
            sum += x[i] * k as f64;
            sum *= 0.5;
            count -= 1;
            sum.max_assign(0.0);
        }
        let once = sum;
        sum = 0.0;
        x[i] = once + sum + count as f64;
    }
}

#[test]
fn locals_change_and_values_do_not() {
    check(
        locals(),
        expect![[r#"
        program locals(x: &mut Array1<f64>, start: f64) {
            for i in par(0..x.len()) {
                let mut sum = start;
                let mut count = 0i32;
                for k in 0..4 {
                    sum = sum + x[i] * k as f64;
                    sum = sum * 0.5;
                    count = count - 1i32;
                    sum = sum.max(0.0);
                }
                let once = sum;
                sum = 0.0;
                x[i] = once + sum + count as f64;
            }
        }
    "#]],
    );
}

#[program]
fn elements(a: &mut Array2<f32>, low: &mut Array0<f32>, count: &mut Array1<i32>, bin: &Array1<i32>) {
    for (i, j) in par(0..a.dim(0), 0..a.dim(1)) {
        a[[i, j]] -= 1.0;
        a[[i, j]] /= 2.0;
        low[[]].min_assign(a[[i, j]]);
    }
    for i in par(0..bin.len()) {
        count[bin[i] as usize] += 1;
    }
    low[[]] *= 2.0;
}

#[test]
fn elements_are_updated_in_place() {
    check(
        elements(),
        expect![[r#"
            program elements(a: &mut Array2<f32>, low: &mut Array0<f32>, count: &mut Array1<i32>, bin: &Array1<i32>) {
                for (i, j) in par(0..a.dim(0), 0..a.dim(1)) {
                    a[[i, j]] += -(1.0f32);
                    a[[i, j]] = a[[i, j]] / 2.0f32;
                    low[[]].min_assign(a[[i, j]]);
                }
                for i_2 in par(0..bin.len()) {
                    count[bin[i_2] as usize] += 1i32;
                }
                low[[]] = low[[]] * 2.0f32;
            }
        "#]],
    );
}

#[program]
fn short_circuits(x: &mut Array1<f64>, a: bool, b: bool) {
    let n = x.len();
    for i in par(0..n) {
        if a && !b || i == 0 {
            x[i] = 0.0;
        }
        // The right side would be out of bounds where the left one decides.
        if i + 1 < n && x[i] > 0.0 {
            x[i] = 1.0;
        }
        if i + 1 >= n || 10 % i == 1 {
            x[i] = 2.0;
        }
        if a && i.rem_euclid(n) == 0 {
            x[i] = 3.0;
        }
    }
}

#[test]
fn a_right_side_that_can_fail_is_computed_only_if_it_is_asked_for() {
    check(
        short_circuits(),
        expect![[r#"
            program short_circuits(x: &mut Array1<f64>, a: bool, b: bool) {
                let n = x.len();
                for i in par(0..n) {
                    if (a & !b) | (i == 0) {
                        x[i] = 0.0;
                    }
                    let v13 = i + 1 < n;
                    let mut and_0 = v13;
                    if v13 {
                        and_0 = x[i] > 0.0;
                    }
                    if and_0 {
                        x[i] = 1.0;
                    }
                    let v21 = i + 1 >= n;
                    let mut or_1 = v21;
                    if !v21 {
                        or_1 = 10 % i == 1;
                    }
                    if or_1 {
                        x[i] = 2.0;
                    }
                    let mut and_2 = a;
                    if a {
                        and_2 = i.rem_euclid(n) == 0;
                    }
                    if and_2 {
                        x[i] = 3.0;
                    }
                }
            }
        "#]],
    );
}

#[program]
fn choices(x: &mut Array1<f64>, upwind: bool) {
    for i in par(0..x.len()) {
        let speed = if upwind {
            let twice = 2.0 * x[i];
            twice + 1.0
        } else if x[i] < 0.0 {
            -1.0
        } else {
            0.0
        };
        let square = {
            let y = speed;
            y * y
        };
        x[i] = select(square > 4.0, square, speed);
    }
}

#[test]
fn branches_and_blocks_have_values() {
    check(
        choices(),
        expect![[r#"
            program choices(x: &mut Array1<f64>, upwind: bool) {
                for i in par(0..x.len()) {
                    let mut if_0 = 0.0;
                    if upwind {
                        let twice = 2.0 * x[i];
                        if_0 = twice + 1.0;
                    } else {
                        if_0 = select(x[i] < 0.0, -1.0, 0.0);
                    }
                    let speed = if_0;
                    let square = speed * speed;
                    x[i] = select(square > 4.0, square, speed);
                }
            }
        "#]],
    );
}

const GRAVITY: f64 = 9.81;

#[program]
fn constants(x: &mut Array1<f64>, y: &mut Array1<i64>) {
    const HALF: f64 = 0.5;
    for i in par(0..x.len()) {
        x[i] = GRAVITY * HALF * std::f64::consts::PI;
        y[i] = i64::MAX - 3;
    }
}

#[test]
fn constants_of_rust_are_literals() {
    check(
        constants(),
        expect![[r#"
        program constants(x: &mut Array1<f64>, y: &mut Array1<i64>) {
            for i in par(0..x.len()) {
                x[i] = 9.81 * 0.5 * 3.141592653589793;
                y[i] = 9223372036854775807i64 - 3i64;
            }
        }
    "#]],
    );
}

#[program]
fn noise(x: &mut Array1<f32>, seed: i64) {
    for i in par(0..x.len()) {
        x[i] = rand(seed, i) + rand::<f64>(7, i + 1) as f32;
    }
}

#[test]
fn random_numbers_come_from_a_seed_and_a_counter() {
    check(
        noise(),
        expect![[r#"
        program noise(x: &mut Array1<f32>, seed: i64) {
            for i in par(0..x.len()) {
                x[i] = rand::<f32>(seed, i as i64) + rand::<f64>(7i32 as i64, (i + 1) as i64) as f32;
            }
        }
    "#]],
    );
}

#[func]
fn draw(seed: i64, index: usize) -> f64 {
    rand(seed, index)
}

#[program]
fn draws(x: &mut Array1<f32>, y: &mut Array1<f64>, seed: i64) {
    for i in par(0..x.len()) {
        let u: f32 = rand(seed, i);
        x[i] += 0.5 * rand(seed, i + 1) - u;
        if rand(seed, i + 2) < 0.5 {
            y[i] = rand(seed, i + 3) * draw(seed, i);
        }
    }
}

#[test]
fn random_numbers_take_their_type_from_where_they_are_used() {
    check(
        draws(),
        expect![[r#"
        program draws(x: &mut Array1<f32>, y: &mut Array1<f64>, seed: i64) {
            for i in par(0..x.len()) {
                let u = rand::<f32>(seed, i as i64);
                x[i] += 0.5f32 * rand::<f32>(seed, (i + 1) as i64) - u;
                if rand::<f64>(seed, (i + 2) as i64) < 0.5 {
                    y[i] = rand::<f64>(seed, (i + 3) as i64) * rand::<f64>(seed, i as i64);
                }
            }
        }
    "#]],
    );
}

#[test]
fn random_numbers_are_the_same_on_the_host() {
    let device = Device::interpreter();
    let mut x = device.zeros([100]).unwrap();
    let status = noise().compile(&device).unwrap().launch((&mut x, 42)).unwrap();
    let on_host: Vec<f32> = (0..100).map(|i| rand::<f32>(42, i) + rand::<f64>(7, i + 1) as f32).collect();
    assert_eq!((status, x.to_vec()), (Done, on_host));
    let draws: Vec<f64> = (0..1000usize).map(|i| rand(3i64, i)).collect();
    let mean = draws.iter().sum::<f64>() / 1000.0;
    assert!(draws.iter().all(|x| (0.0..1.0).contains(x)) && (mean - 0.5).abs() < 0.05, "{mean}");
}

#[func]
fn bell(x: f64) -> f64 {
    0.5 * (1.0 + (x / std::f64::consts::SQRT_2).erf())
}

#[test]
fn erf_is_there_on_the_host_too() {
    assert!((bell(1.0) - 0.8413447460685429).abs() < 1e-15);
}

#[program]
fn shapes(x: &mut Array3<f32>, n: &mut Array1<i32>) {
    n[0] = x.len() as i32;
    n[1] = x.dim(2) as i32;
    n[2] = n.len() as i32;
}

#[test]
fn len_counts_elements_and_dim_gives_extents() {
    check(
        shapes(),
        expect![[r#"
        program shapes(x: &mut Array3<f32>, n: &mut Array1<i32>) {
            n[0] = (x.dim(0) * x.dim(1) * x.dim(2)) as i32;
            n[1] = x.dim(2) as i32;
            n[2] = n.len() as i32;
        }
    "#]],
    );
    let device = Device::interpreter();
    let mut x = device.zeros([2, 3, 4]).unwrap();
    let mut n = device.zeros([3]).unwrap();
    let status = shapes().compile(&device).unwrap().launch((&mut x, &mut n)).unwrap();
    assert_eq!((status, n.to_vec()), (Done, vec![24, 4, 3]));
}

#[program]
fn rank_four(a: &mut Array4<f64>, s: &mut Array0<f64>) {
    for (i, j, k, l) in par(0..a.dim(0), 0..a.dim(1), 0..a.dim(2), 0..a.dim(3)) {
        a[[i, j, k, l]] = 1.0;
    }
    for i in par(0..a.dim(0)) {
        s[[]] += a[[i, 0, 0, 0]];
    }
}

#[test]
fn arrays_have_up_to_four_dimensions() {
    check(
        rank_four(),
        expect![[r#"
        program rank_four(a: &mut Array4<f64>, s: &mut Array0<f64>) {
            for (i, j, k, l) in par(0..a.dim(0), 0..a.dim(1), 0..a.dim(2), 0..a.dim(3)) {
                a[[i, j, k, l]] = 1.0;
            }
            for i_2 in par(0..a.dim(0)) {
                s[[]] += a[[i_2, 0, 0, 0]];
            }
        }
    "#]],
    );
}

#[program]
fn signs(x: &mut Array1<f64>) {
    for i in par(0..x.len()) {
        x[i] = x[i].signum() + 10.0 * x[i].clamp(-0.5, 2.0);
    }
}

#[test]
fn signum_and_clamp_mean_what_std_means() {
    let values = [0.0, -0.0, 3.0, -3.0, f64::INFINITY, f64::NEG_INFINITY, f64::NAN, 5e-324];
    let device = Device::interpreter();
    let mut x = device.array(&values).unwrap();
    let status = signs().compile(&device).unwrap().launch(&mut x).unwrap();
    assert_eq!(status, Status::Done);
    for (value, found) in values.iter().zip(x.to_vec()) {
        let expected = value.signum() + 10.0 * value.clamp(-0.5, 2.0);
        assert!(expected == found || expected.is_nan() && found.is_nan(), "{value}: {found}");
    }
}

#[program]
fn edges(u: &Array1<f64>, out: &mut Array1<f64>) {
    let n = u.len();
    for i in par(0..n) {
        let left = if i > 0 { i - 1 } else { 0 };
        let right = if i + 1 < n { i + 1 } else { n - 1 };
        let slope = u[right] - u[left];
        out[i] = if slope > 1.0 { 2.0 * slope } else { slope };
    }
}

#[test]
fn an_if_whose_arms_cannot_fail_is_a_select() {
    check(
        edges(),
        expect![[r#"
        program edges(u: &Array1<f64>, out: &mut Array1<f64>) {
            let n = u.len();
            for i in par(0..n) {
                let left = select(i > 0, i - 1, 0);
                let right = select(i + 1 < n, i + 1, n - 1);
                let slope = u[right] - u[left];
                out[i] = select(slope > 1.0, 2.0 * slope, slope);
            }
        }
    "#]],
    );
    let device = crate::cpu();
    let compiled = edges().compile(&device).unwrap();
    // Indices that a boundary condition chooses are no data: the interior runs in vectors.
    let source = compiled.source().unwrap();
    let segment = &source[source.find("i64 segment_0").unwrap()..];
    assert!(segment.contains("eb_load_"), "{segment}");
    for n in [1, 2, 3, 17, 100] {
        let u: Vec<f64> = (0..n).map(|i| f64::from(i * i % 7)).collect();
        let run = |device: &Device| {
            let (u, mut out) = (device.array(&u).unwrap(), device.zeros([n as usize]).unwrap());
            let _ = edges().compile(device).unwrap().launch((&u, &mut out)).unwrap();
            out.to_vec()
        };
        assert_eq!(run(&device), run(&Device::interpreter()));
        let at = |i: i32| u[i.clamp(0, n - 1) as usize];
        let slopes = (0..n).map(|i| at(i + 1) - at(i - 1));
        assert_eq!(run(&device), slopes.map(|s| if s > 1.0 { 2.0 * s } else { s }).collect::<Vec<f64>>());
    }
}

#[program]
fn guarded(u: &Array1<f64>, out: &mut Array1<f64>) {
    for i in par(0..out.len()) {
        out[i] = if i < u.len() { u[i] } else { -1.0 };
    }
}

#[test]
fn an_if_whose_arm_can_fail_stays_a_branch() {
    assert!(guarded().to_string().contains("} else {"));
    let device = crate::cpu();
    let (u, mut out) = (device.array(&[1.0, 2.0]).unwrap(), device.zeros([3]).unwrap());
    let _ = guarded().compile(&device).unwrap().launch((&u, &mut out)).unwrap();
    assert_eq!(out.to_vec(), [1.0, 2.0, -1.0]);
}

#[program]
fn damped(x: &mut Array1<f64>, v: &mut Array1<f64>, k: f64, steps: usize, loss: &mut Array0<f64>) {
    for _t in 0..steps {
        for i in par(0..x.len()) {
            v[i] = v[i] - 0.1 * (k * x[i] + 0.3 * v[i]);
            x[i] = x[i] + 0.1 * v[i];
        }
    }
    for i in par(0..x.len()) {
        loss[[]] += x[i] * x[i];
    }
}

#[test]
fn multiply_adds_are_formed_where_they_are_asked_for() {
    let start = [0.3, 1.7, -2.9, 0.001];
    let plain = |x: f64, v: f64, k: f64| {
        let v = v - 0.1 * (k * x + 0.3 * v);
        (x + 0.1 * v, v)
    };
    let fused = |x: f64, v: f64, k: f64| {
        let v = (-0.1f64).mul_add(k.mul_add(x, 0.3 * v), v);
        (0.1f64.mul_add(v, x), v)
    };
    let device = crate::cpu();
    let run = |program: &Program<damped>| {
        let mut x = device.array(&start).unwrap();
        let mut v = device.array(&start).unwrap();
        let mut loss = device.scalar(0.0).unwrap();
        let compiled = program.compile(&device).unwrap();
        assert_eq!(compiled.launch((&mut x, &mut v, 0.7, 100, &mut loss)).unwrap(), Status::Done);
        x.to_vec()
    };
    let by_hand = |step: &dyn Fn(f64, f64, f64) -> (f64, f64)| -> Vec<f64> {
        start.iter().map(|x| (0..100).fold((*x, *x), |(x, v), _| step(x, v, 0.7)).0).collect()
    };
    assert_eq!(run(&damped()), by_hand(&plain));
    assert_eq!(run(&damped().with_fma()), by_hand(&fused));
    assert_ne!(by_hand(&plain), by_hand(&fused));

    // The recorded and the repeated steps of its gradient round like the plain ones.
    let g = damped().with_fma().grad(damped::loss).wrt(damped::x).compile(&device).unwrap();
    let mut x = device.array(&start).unwrap();
    let mut v = device.array(&start).unwrap();
    let mut loss = device.scalar(0.0).unwrap();
    let all = g.launch((&mut x, &mut v, 0.7, 100, &mut loss)).unwrap();
    let few = g.with_budget(Budget::Revolve { slots: 3, block: 1 });
    let few = few.launch((&mut x, &mut v, 0.7, 100, &mut loss)).unwrap();
    assert_eq!(all.get(damped::x).unwrap().to_vec(), few.get(damped::x).unwrap().to_vec());
}

#[program]
fn there_and_back(x: &Array1<f64>, whole: &mut Array1<i32>, y: &mut Array1<f64>, z: &mut Array1<f64>) {
    for i in par(0..x.len()) {
        y[i] = 1.0 / ((x[i] as i32) as f64);
    }
    for i in par(0..x.len()) {
        whole[i] = x[i].floor() as i32;
    }
    for i in par(0..x.len()) {
        z[i] = 1.0 / (whole[i] as f64);
    }
}

/// An integer has no signed zero, also where it comes from a float and becomes one again.
#[test]
fn floats_that_were_integers_have_no_negative_zero() {
    let numbers: Vec<f64> = [-0.5, 0.5, -0.0, 0.0, -1.5].repeat(20);
    for device in [Device::interpreter(), crate::cpu()] {
        let (x, mut whole) = (device.array(&numbers).unwrap(), device.zeros([100]).unwrap());
        let (mut y, mut z) = (device.zeros([100]).unwrap(), device.zeros([100]).unwrap());
        let compiled = there_and_back().compile(&device).unwrap();
        let _done = compiled.launch((&x, &mut whole, &mut y, &mut z)).unwrap();
        let expected: Vec<f64> = numbers.iter().map(|x| 1.0 / f64::from(*x as i32)).collect();
        assert_eq!(y.to_vec(), expected, "{device:?}");
        let expected: Vec<f64> = numbers.iter().map(|x| 1.0 / f64::from(x.floor() as i32)).collect();
        assert_eq!(z.to_vec(), expected, "{device:?}");
    }
}
