use ebbtide::prelude::*;

#[program]
fn fit(u: &mut Array1<f64>, k: f64, steps: usize, loss: &mut Array0<f64>, count: &mut Array0<i32>) {
    for _t in 0..steps {
        for i in par(0..u.len()) {
            u[i] += k * u[i];
        }
    }
    for i in par(0..u.len()) {
        loss[[]] += u[i];
        count[[]] += 1;
    }
}

#[program]
fn typing(u: &mut Array1<f64>, k: f64) {
    for i in par(0..u.len()) {
        u[i] += rate * k;
    }
}

#[program]
fn reading(u: &Array1<f64>) {
    u[0] = 1.0;
}

fn main() -> ebbtide::Result<()> {
    let device = Device::best()?;
    let mut u = device.array(&[1.0, 2.0])?;
    let _ = fit().grad(fit::loss).wrt(fit::rate).compile(&device)?;
    let _ = fit().grad(fit::loss).wrt(fit::steps).compile(&device)?;
    let _ = fit().grad(fit::count).wrt(fit::k).compile(&device)?;
    let _ = fit().grad(fit::u).wrt(fit::k).compile(&device)?;
    let _ = fit().compile(&device)?.launch((&mut u, 0.1))?;
    Ok(())
}
