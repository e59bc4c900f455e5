use ebbtide::prelude::*;

#[program]
fn p(x: &mut Array1<f64>, dt: f64) {
    x[0] = dt;
}

fn launch(device: &Device, x: &mut Array1<f32>, y: &Array1<f64>) -> ebbtide::Result<()> {
    let p = p().compile(device)?;
    p.launch((x, 0.1))?;
    p.launch((y, 0.1))?;
    p.launch(y)?;
    Ok(())
}

fn main() {}
