#![deny(unused_must_use)]
use ebbtide::prelude::*;

#[derive(Label)]
enum Stage {
    Grow,
}

#[program]
fn plain(x: &mut Array1<f64>) {
    #[checkpoint(Stage::Grow)]
    {
        fill(x, 1.0);
    }
}

#[program]
fn stops(x: &mut Array1<f64>, full: &mut Array0<i32>) {
    #[checkpoint(Stage::Grow, yield_on = full)]
    {
        fill(x, 1.0);
    }
}

#[program]
fn calls(x: &mut Array1<f64>, full: &mut Array0<i32>) {
    stops(x, full);
}

#[program]
fn calls_plain(x: &mut Array1<f64>) {
    plain(x);
}

fn launch(device: &Device, x: &mut Array1<f64>, full: &mut Array0<i32>) -> ebbtide::Result<()> {
    plain().compile(device)?.launch(x)?;
    calls_plain().compile(device)?.launch(x)?;
    stops().compile(device)?.launch((x, full))?;
    calls().compile(device)?.launch((x, full))?;
    Ok(())
}

fn main() {}
