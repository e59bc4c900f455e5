//! Remainders are those of Rust, near a period, far from it, and where they overflow.

use ebbtide::prelude::*;

#[program]
fn remainders(
    a: &Array1<i64>,
    b: &Array1<i64>,
    rem: &mut Array1<i64>,
    euclid: &mut Array1<i64>,
    fixed: &mut Array1<i64>,
) {
    for i in par(0..a.len()) {
        rem[i] = a[i] % b[i];
        euclid[i] = a[i].rem_euclid(b[i]);
        fixed[i] = a[i] % 7 + a[i].rem_euclid(7);
    }
}

#[program]
fn places(at: &Array1<i64>, n: usize, inside: &mut Array1<i64>, next: &mut Array1<i64>) {
    for i in par(0..at.len()) {
        inside[i] = (at[i] as usize % n) as i64;
        next[i] = (at[i] as usize % n + n - 1).rem_euclid(n) as i64;
    }
}

#[test]
fn remainders_are_those_of_rust() {
    let numbers = [0, 1, 2, 3, 6, 7, 8, 13, 14, 15, i64::MAX - 1, i64::MAX];
    let numbers: Vec<i64> = numbers.iter().flat_map(|x| [*x, -x]).chain([i64::MIN, i64::MIN + 1]).collect();
    let pairs: Vec<(i64, i64)> =
        numbers.iter().flat_map(|a| numbers.iter().filter(|b| **b != 0).map(|b| (*a, *b))).collect();
    let of = |f: &dyn Fn(i64, i64) -> i64| pairs.iter().map(|(a, b)| f(*a, *b)).collect::<Vec<i64>>();
    let places_of = [0, 1, 4, 5, 6, 9, 10, 11, 1 << 40];
    for device in [Device::interpreter(), crate::cpu()] {
        let [a, b] = [of(&|a, _| a), of(&|_, b| b)].map(|all| device.array(&all).unwrap());
        let [mut rem, mut euclid, mut fixed] = [(); 3].map(|()| device.zeros([pairs.len()]).unwrap());
        let compiled = remainders().compile(&device).unwrap();
        let _ = compiled.launch((&a, &b, &mut rem, &mut euclid, &mut fixed)).unwrap();
        assert_eq!(rem.to_vec(), of(&i64::wrapping_rem));
        assert_eq!(euclid.to_vec(), of(&i64::wrapping_rem_euclid));
        assert_eq!(fixed.to_vec(), of(&|a, _| a % 7 + a.rem_euclid(7)));

        let at = device.array(&places_of).unwrap();
        let [mut inside, mut next] = [(); 2].map(|()| device.zeros([places_of.len()]).unwrap());
        let _ = places().compile(&device).unwrap().launch((&at, 5, &mut inside, &mut next)).unwrap();
        assert_eq!(inside.to_vec(), places_of.map(|at| at % 5));
        assert_eq!(next.to_vec(), places_of.map(|at| (at % 5 + 4) % 5));
    }
}
