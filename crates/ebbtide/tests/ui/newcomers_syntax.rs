//! Mistakes of syntax: one error each.
use ebbtide::prelude::*;

#[program]
fn no_else(u: &mut Array1<f64>) {
    u[0] = if u[1] > 0.0 { 1.0 };
}

#[program]
fn returns_a_value(u: &mut Array1<f64>) {
    return 3.0;
}

#[program]
fn pattern_of_a_vector(v: &mut Array1<Vec2<f64>>) {
    let [a, b] = v[0];
    v[1] = Vec2::new(b, a);
}

#[program]
fn a_vector_of_the_heap(u: &mut Array1<f64>) {
    let mut all = vec![0.0; 3];
    u[0] = all[0];
}

#[program]
fn a_reference(u: &mut Array1<f64>) {
    let first = &mut u[0];
    *first = 1.0;
}

#[program]
fn a_match_of_floats(u: &mut Array1<f64>) {
    match u[0] {
        1.5 => u[1] = 2.0,
        _ => {}
    }
}

#[program]
fn a_sum_without_a_range(u: &Array1<f64>, s: &mut Array0<f64>) {
    s[[]] = sum(|j| u[j]);
}

#[program]
fn a_step_of_a_range(u: &mut Array1<f64>) {
    for i in 0..10..2 {
        u[i] = 0.0;
    }
}

#[program]
fn unsafe_code(u: &mut Array1<f64>) {
    unsafe {
        u[0] = 1.0;
    }
}

#[program]
fn labelled(u: &mut Array1<f64>) {
    'outer: for i in 0..3 {
        u[i] = 0.0;
        continue 'outer;
    }
}

fn main() {}
