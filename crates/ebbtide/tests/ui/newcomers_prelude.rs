//! Programs in a file that does not import the prelude: one error for each, and the host finds them.
use ebbtide::func;

#[ebbtide::program]
fn scale(u: &mut Array1<f64>, k: f64) {
    for i in par(0..u.len()) {
        u[i] *= k;
    }
    fill(u, 0.0);
}

#[func]
fn length<T: Float>(v: Vec3<T>) -> T {
    v.norm()
}

fn main() {
    println!("{}", scale());
}
