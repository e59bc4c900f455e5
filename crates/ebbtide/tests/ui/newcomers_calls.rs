//! Calls that are not as they should be: one error each, which says what to write.
use ebbtide::prelude::*;

#[program]
fn scale(u: &mut Array1<f64>, k: f64) {
    for i in par(0..u.len()) {
        u[i] *= k;
    }
}

#[func]
fn bump(x: &mut f64) {
    *x += 1.0;
}

#[program]
fn step(u: &mut Array1<f64>, v: &Array1<f64>) {
    scale(u);
    scale(u, 2.0, 3.0);
    scale(v, 2.0);
    for i in par(0..u.len()) {
        let d = Vec3::new(u[i], 0.0);
        bump(u[i]);
        u[i] = d.x;
    }
}

#[program]
fn loss(u: &Array1<f64>, loss: &mut Array0<f64>) {
    for i in par(0..u.len()) {
        loss[[]] += u[i];
    }
}

fn main() -> ebbtide::Result<()> {
    let device = Device::best()?;
    let mut u = device.zeros([4])?;
    let total = device.scalar(0.0)?;
    scale().launch((&mut u, 2.0))?;
    scale(&mut u, 2.0);
    scale.compile(&device)?;
    loss().grad(loss::loss).wrt(loss::u).launch((&u, &total))?;
    Ok(())
}
