use ebbtide::prelude::*;

fn main() -> ebbtide::Result<()> {
    let device = Device::best()?;
    let mut x = device.zeros::<f64, 1>([3])?;
    let mut y = device.zeros::<bool, 2>([1, 1])?;
    std::mem::swap(x.any_mut(), y.any_mut());
    x.any_mut().bytes_mut()[0] = 77;
    *x.any_mut() = y.into_any();
    Ok(())
}
