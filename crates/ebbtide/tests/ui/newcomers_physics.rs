//! Mistakes with small values, jumps, reductions and parts: one error each.
use ebbtide::prelude::*;

#[program]
fn vector_as_a_call(x: &mut Array1<Vec3<f64>>) {
    x[0] = Vec3(1.0, 2.0, 3.0);
}

#[program]
fn component_as_a_method(x: &mut Array1<Vec3<f64>>) {
    x[0].x = x[1].x();
}

#[program]
fn sizes_of_matrices(m: &Array1<Mat2<f64>>, v: &mut Array1<Vec3<f64>>) {
    v[0] = m[0] * v[0];
}

#[program]
fn vector_times_vector(v: &mut Array1<Vec3<f64>>) {
    v[0] = v[0] * v[1];
}

#[program]
fn subtracting_a_number(v: &mut Array1<Vec3<f64>>) {
    v[0] -= 1.0;
}

#[program]
fn subtracting_integers(u: &mut Array1<f64>) {
    u[0] -= 1;
}

#[program]
fn a_sum_of_an_element(u: &Array1<f64>, s: &mut Array0<f64>) {
    s[[]] = sum(u[0]);
}

#[program]
fn a_product_of_two(a: &Array2<f64>, b: &mut Array2<f64>) {
    matmul(a, b);
}

#[program]
fn a_column(a: &mut Array2<f64>, b: &Array2<f64>) {
    matmul(b, b, a[[0, ..]]);
}

#[program]
fn a_swap_of_elements(u: &mut Array1<f64>) {
    swap(u[0], u[1]);
}

#[program]
fn writing_a_part_that_is_read(a: &Array2<f64>, b: &Array1<f64>) {
    scan(b, a[[0, ..]]);
}

fn main() {}
