//! A file that imports nothing at all: nothing of ours is asked, and these are rustc's own words.
#[program]
fn scale(u: &mut Array1<f64>, k: f64) {
    for i in par(0..u.len()) {
        u[i] *= k;
    }
}

fn main() {}
