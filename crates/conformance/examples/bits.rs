//! Prints the bits of results, to be compared between machines: `.ci/aarch64` does. One line for each program and device.

use ebbtide::Result;
use ebbtide::prelude::*;

/// Every elementary function, on numbers of many sizes.
#[program]
fn functions(x: &Array1<f64>, y: &mut Array1<f64>) {
    for i in par(0..x.len()) {
        let v = x[i];
        let a = v.abs() + 0.25;
        y[i] = v.sin()
            + v.cos() * v.tan()
            + (0.01 * v).exp()
            + (0.01 * v).exp2()
            + (0.01 * v).exp_m1()
            + a.ln()
            + a.log2()
            + a.log10()
            + a.ln_1p()
            + a.sqrt()
            + v.cbrt()
            + v.atan()
            + (0.001 * v).asin()
            + (0.001 * v).acos()
            + (0.01 * v).sinh()
            + (0.01 * v).cosh()
            + v.tanh()
            + v.erf()
            + v.hypot(a)
            + v.atan2(a)
            + a.powf(0.3)
            + v.floor()
            + v.round()
            + v.mul_add(a, 0.5)
            + rand::<f64>(7, i);
    }
}

/// Viscous Burgers, and a sum over more elements than one leaf of a reduction has.
#[program]
fn burgers<T: Float>(
    u: &mut Array1<T>,
    next: &mut Array1<T>,
    nu: T,
    dt: T,
    steps: usize,
    target: &Array1<T>,
    loss: &mut Array0<T>,
) {
    let n = u.len();
    for _t in 0..steps {
        for i in par(0..n) {
            let l = u[(i + n - 1) % n];
            let r = u[(i + 1) % n];
            next[i] = u[i] + dt * (nu * (l - T::of(2.0) * u[i] + r) - T::of(0.5) * u[i] * (r - l));
        }
        swap(u, next);
    }
    for i in par(0..n) {
        let d = u[i] - target[i];
        loss[[]] += T::of(0.5) * d * d;
    }
}

/// A recurrent network: products of matrices.
#[program]
fn network(w: &Array2<f64>, h: &mut Array2<f64>, steps: usize, loss: &mut Array0<f64>) {
    let mut z = Array2::<f64>::zeros([h.dim(0), h.dim(1)]);
    for _t in 0..steps {
        matmul(w, h, z);
        for (i, j) in par(0..h.dim(0), 0..h.dim(1)) {
            h[[i, j]] = z[[i, j]].tanh();
        }
    }
    for (i, j) in par(0..h.dim(0), 0..h.dim(1)) {
        loss[[]] += h[[i, j]] * h[[i, j]];
    }
}

/// FNV-1a over the bits of the results.
#[derive(Default)]
struct Bits(Vec<u8>);

impl Bits {
    fn f64(mut self, values: &[f64]) -> Bits {
        self.0.extend(values.iter().flat_map(|v| v.to_bits().to_le_bytes()));
        self
    }

    fn f32(mut self, values: &[f32]) -> Bits {
        self.0.extend(values.iter().flat_map(|v| v.to_bits().to_le_bytes()));
        self
    }

    fn print(&self, device: &Device, name: &str) {
        let hash = self
            .0
            .iter()
            .fold(0xcbf2_9ce4_8422_2325_u64, |h, b| (h ^ u64::from(*b)).wrapping_mul(0x0100_0000_01b3));
        println!("{name:<22} {:<12} {hash:016x}", device.name());
    }
}

fn main() -> Result<()> {
    // `bits cpu` looks at one device.
    let wanted: Vec<String> = std::env::args().skip(1).collect();
    let devices = [Device::interpreter(), Device::cpu()];
    for device in
        devices.iter().filter(|device| wanted.is_empty() || wanted.iter().any(|w| w == device.name()))
    {
        let x = device.from_fn([500], |[i]| (i as f64 - 250.0) * 0.37)?;
        let mut y = device.zeros([500])?;
        functions().compile(device)?.launch((&x, &mut y))?;
        Bits::default().f64(y.as_slice()).print(device, "functions");

        let n = 5000;
        let u = device.from_fn([n], |[i]| (i as f64 * 0.01).sin())?;
        let (next, target, loss) = (device.zeros([n])?, device.zeros([n])?, device.zeros([])?);
        let asked = burgers::<f64>().value_and_grad(burgers::<f64>::loss);
        let g = asked.wrt(burgers::<f64>::u).wrt(burgers::<f64>::nu).compile(device)?;
        for (name, memory) in
            [("burgers f64, 4 MiB", Bytes::mib(4)), ("burgers f64, 512 KiB", Bytes::kib(512))]
        {
            let out = g.with_memory(memory).launch((&u, &next, 0.1, 0.01, 8, &target, &loss))?;
            let (du, dnu) = (out.get(burgers::<f64>::u)?, out.get(burgers::<f64>::nu)?);
            let value = out.value(burgers::<f64>::loss)?.value();
            Bits::default().f64(du.as_slice()).f64(&[dnu, value]).print(device, name);
        }

        let u = device.from_fn([n], |[i]| (i as f32 * 0.01).sin())?;
        let (next, target, loss) = (device.zeros([n])?, device.zeros([n])?, device.zeros([])?);
        let asked = burgers::<f32>().value_and_grad(burgers::<f32>::loss).wrt(burgers::<f32>::u);
        let out = asked.compile(device)?.launch((&u, &next, 0.1, 0.01, 8, &target, &loss))?;
        Bits::default().f32(out.get(burgers::<f32>::u)?.as_slice()).print(device, "burgers f32");

        let w = device.from_fn([16, 16], |[i, j]| ((3 * i + 5 * j) % 7) as f64 * 0.05 - 0.1)?;
        let h = device.from_fn([16, 8], |[i, j]| (i as f64 - j as f64) * 0.1)?;
        let loss = device.zeros([])?;
        let g = network().value_and_grad(network::loss).wrt(network::w).wrt(network::h).compile(device)?;
        let out = g.launch((&w, &h, 12, &loss))?;
        let (dw, dh) = (out.get(network::w)?, out.get(network::h)?);
        Bits::default().f64(dw.as_slice()).f64(dh.as_slice()).print(device, "network");
    }
    Ok(())
}
