//! Checked runs: the first NaN is found.

use ebbtide::prelude::*;

#[program]
fn roots(u: &mut Array2<f64>, least: &mut Array0<f64>, steps: usize) {
    for t in 0..steps {
        if t > 0 {
            for (i, j) in par(0..u.dim(0), 0..u.dim(1)) {
                u[[i, j]] = (u[[i, j]] - 1.0).sqrt();
            }
        }
    }
    for (i, j) in par(0..u.dim(0), 0..u.dim(1)) {
        least[[]] += u[[i, j]].ln();
    }
}

fn error_of(device: &Device, u: [f64; 4], steps: usize) -> Option<String> {
    let mut u = device.array_with_shape([2, 2], &u).unwrap();
    let mut least = device.scalar(0.0).unwrap();
    let launched = roots().compile(device).unwrap().launch((&mut u, &mut least, steps));
    launched.err().map(|error| error.to_string())
}

#[test]
fn the_first_nan_is_found_where_it_is_written() {
    let device = Device::checked();
    let error = error_of(&device, [9.0, 9.0, 1.5, 9.0], 4).unwrap();
    assert!(
        error.contains(
            "run error: program `roots`: the first NaN was written to element [1, 0] of `u`, in \
             roots/for t=2/if/then/par i=1 j=0, at "
        ),
        "{error}"
    );
    assert!(error.contains("checked.rs:10:"), "{error}");
    // A sum is NaN when it is complete.
    let error = error_of(&device, [1.0, 2.0, -1.0, 3.0], 1).unwrap();
    assert!(error.contains("element [] of `least`, in roots/par i=1 j=1, at "), "{error}");
    assert_eq!(error_of(&device, [1.0, 2.0, 1.0, 3.0], 1), None);
}

#[test]
fn gradients_are_checked_too() {
    #[program]
    fn distance(x: &Array1<f64>, loss: &mut Array0<f64>) {
        loss[[]] = (x[0] * x[0] + x[1] * x[1]).sqrt();
    }
    let device = Device::checked();
    let (x, mut loss) = (device.zeros([2]).unwrap(), device.scalar(0.0).unwrap());
    let g = distance().grad(distance::loss).wrt(distance::x).compile(&device).unwrap();
    let error = g.launch((&x, &mut loss)).unwrap_err().to_string();
    assert!(error.contains("program `distance_gradient`: the first NaN was written to"), "{error}");
}

#[test]
fn the_environment_asks_for_checked_runs() {
    let run = |check: &str| {
        std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "checked::names_the_device_that_the_environment_asks_for", "--nocapture"])
            .env("EBBTIDE_CHECK", check)
            .output()
            .unwrap()
    };
    for (check, device) in [("1", "devices: checked checked checked checked"), ("0", " cpu interpreter ")] {
        let output = String::from_utf8(run(check).stdout).unwrap();
        assert!(output.contains(device), "{check}: {output}");
    }
}

#[test]
fn names_the_device_that_the_environment_asks_for() {
    let devices = [Device::best().unwrap(), Device::cpu(), Device::interpreter()];
    let cuda = Device::cuda().map_or("none".to_string(), |device| device.name().to_string());
    println!("devices: {} {cuda}", devices.each_ref().map(Device::name).join(" "));
    assert_eq!(Device::checked().name(), "checked");
}
