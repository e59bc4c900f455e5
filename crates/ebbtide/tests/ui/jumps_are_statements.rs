use ebbtide::prelude::*;

#[program]
fn p(x: &mut Array1<f64>, n: usize) {
    for i in 0..n {
        let y = 1.0 + if x[i] > 1.0 { 2.0 } else { break };
        x[i] += y;
    }
    continue;
    for i in par(0..n) {
        if x[i] > 1.0 {
            return;
        }
    }
    loop {
        x[0] += 1.0;
        if x[0] > 3.0 {
            break;
            x[0] = 0.0;
        }
    }
    return 1.0;
}

#[func]
fn f(x: f64) -> f64 {
    if x > 1.0 {
        return;
    }
    x
}

fn main() {}
