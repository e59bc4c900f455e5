use ebbtide::prelude::*;

#[program]
fn p(x: &mut Array1<f64>, dt: f64, loss: &mut Array0<f64>) {
    loss[[]] = x[0] * dt;
}

fn launch(device: &Device, x: &Array1<f32>, y: &Array1<f64>, loss: &Array0<f64>) -> ebbtide::Result<()> {
    let g = p().grad(p::loss).wrt(p::x).compile(device)?;
    g.launch((y, 0.1, loss))?;
    g.launch((x, 0.1, loss))?;
    g.launch((y, 1, loss))?;
    g.launch(y)?;
    Ok(())
}

fn main() {}
