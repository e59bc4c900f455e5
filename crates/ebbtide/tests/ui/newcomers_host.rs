//! What newcomers write on the host to make arrays and devices: one error each, which says what to write.
use ebbtide::prelude::*;

fn main() -> ebbtide::Result<()> {
    let device = Device::gpu()?;
    let u = Array1::zeros([4]);
    let v = Array1::<f64>::zeros([4]);
    let mut w: Array2<f64> = Array2::zeros([2, 2]);
    let x = Array1::from_vec(vec![1.0, 2.0]);
    w[[0, 0]] = u[0] + v[0] + x[0];
    Ok(())
}
