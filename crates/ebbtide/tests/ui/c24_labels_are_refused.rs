use ebbtide::prelude::*;

#[program]
fn p(x: &mut Array1<f64>, n: usize) {
    'outer: for i in 0..n {
        for _k in 0..n {
            if x[i] > 1.0 {
                continue;
            }
            x[i] += 1.0;
            if x[i] > 3.0 {
                break 'outer;
            }
        }
    }
}

fn main() {}
