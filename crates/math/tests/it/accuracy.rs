//! Every function is within its bound of the correctly rounded value, over the whole range.

use ebbtide_math::{Function, powi_f32, powi_f64};

use crate::reference::{self, allowed_ulps, distance_f32, distance_f64};
use crate::samples::{self, MOST_SPECIAL, Random, cases};

fn check_f64(function: Function, x: f64, y: f64) {
    let value = function.eval_f64(&[x, y][..function.arity()]).unwrap();
    let nearest = reference::f64(function, x, y);
    let ulps = distance_f64(value, nearest);
    assert!(
        ulps <= allowed_ulps(function),
        "{function}({x:e}, {y:e}) = {value:e}, nearest {nearest:e}: {ulps} ulp"
    );
}

fn check_f32(function: Function, x: f32, y: f32) {
    let value = function.eval_f32(&[x, y][..function.arity()]).unwrap();
    let nearest = reference::f32(function, x, y);
    let ulps = distance_f32(value, nearest);
    assert!(
        ulps <= allowed_ulps(function),
        "{function}({x:e}, {y:e}) = {value:e}, nearest {nearest:e}: {ulps} ulp"
    );
}

fn functions_of(arity: usize) -> impl Iterator<Item = Function> {
    Function::ALL.into_iter().filter(move |function| function.arity() == arity)
}

#[test]
fn f64_functions_of_one_argument_are_within_their_bounds() {
    let mut xs = samples::any_f64(&mut Random(11), cases(20_000));
    xs.extend(samples::special_f64());
    for function in functions_of(1) {
        xs.iter().for_each(|&x| check_f64(function, x, 0.0));
    }
}

#[test]
fn f64_functions_of_two_arguments_are_within_their_bounds() {
    let specials = samples::special_f64();
    let pairs = samples::pairs_f64(&mut Random(12), cases(20_000));
    for function in functions_of(2) {
        pairs.iter().for_each(|&(x, y)| check_f64(function, x, y));
        for &x in specials.iter().step_by(5) {
            specials.iter().step_by(3).for_each(|&y| check_f64(function, x, y));
        }
        for &x in &specials[..MOST_SPECIAL] {
            specials[..MOST_SPECIAL].iter().flat_map(|&y| [(x, y), (-x, y), (x, -y), (-x, -y)]).for_each(
                |(x, y)| {
                    check_f64(function, x, y);
                },
            );
        }
    }
}

#[test]
fn f32_functions_of_one_argument_are_within_their_bounds() {
    // All 2^32 of them, in strides that are odd so that every exponent and last bit comes up.
    let stride = ((1u64 << 32) / cases(30_000) as u64).max(1) as usize | 1;
    for function in functions_of(1) {
        (0..1u64 << 32)
            .step_by(stride)
            .for_each(|bits| check_f32(function, f32::from_bits(bits as u32), 0.0));
        samples::any_f32(&mut Random(13), cases(20_000)).iter().for_each(|&x| check_f32(function, x, 0.0));
        samples::special_f32().iter().for_each(|&x| check_f32(function, x, 0.0));
    }
}

#[test]
fn f32_functions_of_two_arguments_are_within_their_bounds() {
    let specials = samples::special_f32();
    let pairs = samples::pairs_f32(&mut Random(14), cases(20_000));
    for function in functions_of(2) {
        pairs.iter().for_each(|&(x, y)| check_f32(function, x, y));
        for &x in &specials[..MOST_SPECIAL] {
            specials[..MOST_SPECIAL].iter().flat_map(|&y| [(x, y), (-x, y), (x, -y), (-x, -y)]).for_each(
                |(x, y)| {
                    check_f32(function, x, y);
                },
            );
        }
    }
}

#[test]
fn integer_powers_are_within_4_ulp() {
    let mut random = Random(15);
    let mut xs = samples::any_f64(&mut random, cases(20_000));
    xs.extend(samples::special_f64());
    for (i, x) in xs.into_iter().enumerate() {
        let random_power = random.bits() as i32 >> (i % 32);
        for n in [random_power, i as i32 % 17 - 8] {
            let (value, nearest) = (powi_f64(x, n), reference::powi_f64(x, n));
            assert!(distance_f64(value, nearest) <= 4, "{x:e}^{n} = {value:e}, nearest {nearest:e}");
            let x = x as f32;
            let (value, nearest) = (powi_f32(x, n), reference::powi_f32(x, n));
            assert!(distance_f32(value, nearest) <= 4, "{x:e}^{n} = {value:e}, nearest {nearest:e}");
        }
    }
}

#[test]
fn the_number_nearest_to_a_multiple_of_half_pi_is_reduced_well() {
    // Of all f64 these are among the closest to multiples of pi/2, for their size.
    let near =
        [6381956970095103.0 * 2f64.powi(797), 6411027962775774.0 * 2f64.powi(-48), 5.319372648326541e255];
    for x in near {
        for x in [x, -x, x.next_up(), x.next_down()] {
            [Function::Sin, Function::Cos, Function::Tan]
                .iter()
                .for_each(|&function| check_f64(function, x, 0.0));
        }
    }
    // And every power of two, where the slow path's window moves by one bit.
    for k in 0..1024 {
        for x in [2f64.powi(k), -1.999 * 2f64.powi(k)] {
            [Function::Sin, Function::Cos, Function::Tan]
                .iter()
                .for_each(|&function| check_f64(function, x, 0.0));
        }
    }
}
