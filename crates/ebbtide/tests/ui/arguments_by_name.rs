use ebbtide::prelude::*;

#[program(args = StepArgs)]
fn step(u: &mut Array1<f64>, rate: f64, steps: usize) {
    for _t in 0..steps {
        for i in par(0..u.len()) {
            u[i] = u[i] * rate;
        }
    }
}

#[program(args)]
fn unnamed(u: &mut Array1<f64>) {
    fill(u, 1.0);
}

fn launch(device: &Device, u: &mut Array1<f64>) -> ebbtide::Result<()> {
    let step = step().compile(device)?;
    step.launch(StepArgs { u, rate: 0.5 }.into())?;
    step.launch(StepArgs { u, rate: 0.5, stepps: 3 }.into())?;
    Ok(())
}

fn main() {}
