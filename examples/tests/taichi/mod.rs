//! Five examples beside the same physics in Taichi (`bench/peers/physics`): their length, and where Taichi is installed also
//! their numbers.

use std::process::Command;

use ebbtide::prelude::*;

use crate::{bodies, cloth, elements, mpm, smoke};

/// The lines that count: neither empty nor a comment.
fn counts(line: &str, comment: &str) -> bool {
    !line.trim().is_empty() && !line.trim().starts_with(comment)
}

/// The lines of the structs, functions and programs of an example.
fn lines_of_programs(source: &str) -> usize {
    let mut inside = false;
    let mut count = 0;
    for line in source.lines() {
        inside |= ["#[derive", "#[func", "#[program"].iter().any(|start| line.starts_with(start));
        count += usize::from(inside && counts(line, "//"));
        inside &= line != "}";
    }
    count
}

/// The lines between the marks of a text in Taichi.
fn lines_of_kernels(source: &str) -> usize {
    let (_, from) = source.split_once("\n# lines\n").expect("a text has a mark where its lines begin");
    let (lines, _) = from.split_once("\n# end\n").expect("a text has a mark where its lines end");
    lines.lines().filter(|line| counts(line, "#")).count()
}

macro_rules! lengths {
    ($($name:literal),*) => {
        [$((
            $name,
            lines_of_programs(include_str!(concat!("../../", $name, ".rs"))),
            lines_of_kernels(include_str!(concat!("../../../bench/peers/physics/", $name, ".py"))),
        )),*]
    };
}

#[test]
fn physics_takes_at_most_a_fifth_more_lines_than_in_taichi() {
    for (name, ours, theirs) in lengths!("mpm", "bodies", "cloth", "smoke", "elements") {
        assert!(ours * 10 <= theirs * 12, "{name}: {ours} lines here, {theirs} in Taichi");
    }
}

/// The loss and then its gradient, as Taichi computes them.
fn of_taichi(python: &str, name: &str) -> Vec<f64> {
    let script = format!("{}/../bench/peers/physics/{name}.py", env!("CARGO_MANIFEST_DIR"));
    let run = Command::new(python).arg(script).output().expect("Python runs");
    let text = String::from_utf8_lossy(&run.stdout).into_owned();
    assert!(run.status.success(), "{name}: {text}\n{}", String::from_utf8_lossy(&run.stderr));
    text.lines().filter_map(|line| line.parse().ok()).collect()
}

fn of_mpm(device: &Device) -> ebbtide::Result<Vec<f64>> {
    let g = mpm::throw().value_and_grad(mpm::throw::loss).wrt(mpm::throw::velocity).compile(device)?;
    let (block, velocity) = (mpm::block(device)?, device.scalar(Vec2::new(0.5, 1.0))?);
    let out = g.launch((&block, &velocity, Vec2::new(0.6, 0.3), &device.scalar(0.0)?))?;
    let slope = out.get(mpm::throw::velocity)?.value();
    Ok(vec![out.value(mpm::throw::loss)?.value(), slope.x, slope.y])
}

fn of_bodies(device: &Device) -> ebbtide::Result<Vec<f64>> {
    let g = bodies::shot().value_and_grad(bodies::shot::loss).wrt(bodies::shot::strike).compile(device)?;
    let (table, strike) = (bodies::table(device)?, device.scalar(Vec2::new(2.0, 0.0))?);
    let out = g.launch((&table, &strike, 2.0, &device.scalar(0.0)?))?;
    let slope = out.get(bodies::shot::strike)?.value();
    Ok(vec![out.value(bodies::shot::loss)?.value(), slope.x, slope.y])
}

fn of_cloth(device: &Device) -> ebbtide::Result<Vec<f64>> {
    let g = cloth::hang().value_and_grad(cloth::hang::loss).wrt(cloth::hang::wind).compile(device)?;
    let (start, wind) = (cloth::cloth(device)?, device.scalar(Vec3::new(0.0, 0.0, 1.0))?);
    let out = g.launch((&start, &wind, Vec3::new(0.5, -0.5, 0.5), &device.scalar(0.0)?))?;
    let slope = out.get(cloth::hang::wind)?.value();
    Ok(vec![out.value(cloth::hang::loss)?.value(), slope.x, slope.y, slope.z])
}

fn of_smoke(device: &Device) -> ebbtide::Result<Vec<f64>> {
    let g =
        smoke::simulate().value_and_grad(smoke::simulate::loss).wrt(smoke::simulate::a.u).compile(device)?;
    let (wind, goal) = (device.from_fn([24, 24], |_| Vec2::new(0.3, 0.2))?, smoke::puff(device, 15.0, 13.0)?);
    let out = g.launch((&smoke::air(device, &wind)?, &goal, &device.scalar(0.0)?))?;
    let mut numbers = vec![out.value(smoke::simulate::loss)?.value()];
    numbers.extend(out.get(smoke::simulate::a.u)?.iter().flat_map(|u| u.to_array()));
    Ok(numbers)
}

fn of_elements(device: &Device) -> ebbtide::Result<Vec<f64>> {
    let g = elements::hang()
        .value_and_grad(elements::hang::loss)
        .wrt(elements::hang::stiffness)
        .compile(device)?;
    let beam = elements::beam(device)?;
    let stiffness = device.array(&vec![40.0; beam.rest.len()])?;
    let out = g.launch((&beam, &stiffness, 0.1, &device.scalar(0.0)?))?;
    let mut numbers = vec![out.value(elements::hang::loss)?.value()];
    numbers.extend(out.get(elements::hang::stiffness)?.to_vec());
    Ok(numbers)
}

/// `EBBTIDE_TAICHI` names a Python that has Taichi and NumPy.
#[test]
#[ignore = "needs Taichi: EBBTIDE_TAICHI=PYTHON"]
fn physics_has_the_numbers_of_taichi() {
    let python = std::env::var("EBBTIDE_TAICHI").expect("EBBTIDE_TAICHI names a Python with Taichi");
    let device = Device::cpu();
    for (name, ours) in [
        ("mpm", of_mpm(&device)),
        ("bodies", of_bodies(&device)),
        ("cloth", of_cloth(&device)),
        ("smoke", of_smoke(&device)),
        ("elements", of_elements(&device)),
    ] {
        let (ours, theirs) = (ours.expect("the example runs"), of_taichi(&python, name));
        assert_eq!(ours.len(), theirs.len(), "{name}");
        let size = ours[1..].iter().fold(0.0f64, |most, slope| most.max(slope.abs()));
        let far = ours.iter().zip(&theirs).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        println!("{name}: loss {} and {}, {:.1e} apart, gradients up to {size:.3e}", ours[0], theirs[0], far);
        // Taichi adds in another order and rounds products together with sums; chains of contacts make that larger.
        assert!((ours[0] - theirs[0]).abs() < 1e-9 * ours[0].abs() && far < 1e-9 * size, "{name}: {far}");
    }
}
