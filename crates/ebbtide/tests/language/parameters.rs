//! Small values as parameters, as members of structs of arrays, and in derivatives.

use ebbtide::prelude::*;
use ebbtide_conformance::Input;

use crate::{differentiates, shaped, zero};

fn seeded(shape: &[usize], seed: u64) -> Input {
    Input::Array(shape.to_vec(), seed)
}

#[program]
fn deep(m: &Array4<Mat3<f64>>, y: &mut Array4<Mat3<f64>>, out: &mut Array0<f64>) {
    for (a, b, c, d) in par(0..m.dim(0), 0..m.dim(1), 0..m.dim(2), 0..m.dim(3)) {
        y[[a, b, c, d]] = m[[a, b, c, d]].inverse() * m[[a, b, c, d]].transpose();
        out[[]] += y[[a, b, c, d]].trace();
    }
}

#[test]
fn matrices_of_rank_four() {
    let inputs = [seeded(&[1, 2, 1, 2, 3, 3], 1), shaped(&[1, 2, 1, 2, 3, 3], &[0.0; 36]), zero()];
    differentiates(&deep(), &inputs, "out", &["m"]);
}

#[program]
fn thrown(pull: Vec2<f64>, turn: Mat2<f64>, c: [f64; 3], x: &mut Array1<Vec2<f64>>, loss: &mut Array0<f64>) {
    for i in par(0..x.len()) {
        x[i] = turn * x[i] + pull * c[i % 3];
        loss[[]] += x[i].dot(pull);
    }
}

#[test]
fn small_parameters_have_gradients() -> ebbtide::Result<()> {
    let device = crate::cpu();
    let gradient = thrown()
        .grad(thrown::loss)
        .wrt(thrown::pull)
        .wrt(thrown::turn)
        .wrt(thrown::c)
        .wrt(thrown::x)
        .compile(&device)?;
    let mut x = device.array(&[Vec2::new(1.0, 2.0), Vec2::new(3.0, 4.0)])?;
    let mut loss = device.scalar(0.0)?;
    let (pull, turn) = (Vec2::new(0.5, -1.0), Mat2::new(1.0, 2.0, 3.0, 4.0));
    let out = gradient.launch((pull, turn, [1.0, 2.0, 3.0], &mut x, &mut loss))?;
    let d: Vec2<f64> = out.get(thrown::pull)?;
    let t: Mat2<f64> = out.get(thrown::turn)?;
    let c: [f64; 3] = out.get(thrown::c)?;
    let dx: &Array1<Vec2<f64>> = out.get(thrown::x)?;
    // loss = Σ (turn · x + c pull) · pull
    assert_eq!(d, turn * Vec2::new(4.0, 6.0) + pull * 6.0);
    assert_eq!(t, pull.outer(Vec2::new(4.0, 6.0)));
    assert_eq!((c, dx[0]), ([1.25, 1.25, 0.0], turn.transpose() * pull));
    let along = Direction::new().scalar(thrown::pull, Vec2::new(1.0, 0.0)).scalar(thrown::c, [0.0, 1.0, 5.0]);
    let hvp = thrown().hvp(thrown::loss).wrt(thrown::pull).wrt(thrown::c).compile(&device)?;
    let out = hvp.launch((pull, turn, [1.0, 2.0, 3.0], &mut x, &mut loss), &along)?;
    assert_eq!(out.get(thrown::pull)?, Vec2::new(6.0, 0.0) + pull * 2.0);
    assert_eq!(out.get(thrown::c)?, [1.0, 1.0, 0.0]);
    Ok(())
}

#[derive(Clone, Copy, Value)]
struct Material {
    mu: f64,
    lambda: f64,
    kind: i32,
}

#[derive(Arrays)]
struct World {
    x: Array1<Vec2<f64>>,
    gravity: Vec2<f64>,
    steel: Material,
    frame: Mat2<f64>,
}

#[program]
fn settle(w: &mut World, wind: (f64, f64), loss: &mut Array0<f64>) {
    for i in par(0..w.x.len()) {
        w.x[i] = w.frame * w.x[i] + w.gravity * w.steel.mu + Vec2::new(wind.0, wind.1);
        loss[[]] += w.x[i].norm_squared() * w.steel.lambda;
    }
}

#[test]
fn structs_of_arrays_hold_small_values() -> ebbtide::Result<()> {
    let device = crate::cpu();
    let steel = Material { mu: 2.0, lambda: 0.5, kind: 3 };
    let world = |device: &Device| -> ebbtide::Result<World> {
        let x = device.array(&[Vec2::new(1.0, 2.0), Vec2::new(-1.0, 0.5)])?;
        Ok(World { x, gravity: Vec2::new(0.0, -1.0), steel, frame: Mat2::new(1.0, 0.5, 0.0, 1.0) })
    };
    let gradient = settle()
        .grad(settle::loss)
        .wrt(settle::w.gravity)
        .wrt(settle::w.steel)
        .wrt(settle::w.frame)
        .wrt(settle::wind)
        .compile(&device)?;
    let mut loss = device.scalar(0.0)?;
    let out = gradient.launch((&mut world(&device)?, (0.1, 0.2), &mut loss))?;
    let (gravity, steel) = (out.get(settle::w.gravity)?, out.get(settle::w.steel)?);
    let (frame, wind) = (out.get(settle::w.frame)?, out.get(settle::wind)?);
    type Change<'a> = &'a dyn Fn(&mut World, &mut (f64, f64), f64);
    let value = |change: Change<'_>, h: f64| -> ebbtide::Result<f64> {
        let (mut w, mut wind, mut loss) = (world(&device)?, (0.1, 0.2), device.scalar(0.0)?);
        change(&mut w, &mut wind, h);
        settle().compile(&device)?.launch((&mut w, wind, &mut loss))?;
        Ok(loss.value())
    };
    let slope = |change: Change<'_>| -> ebbtide::Result<f64> {
        Ok((value(change, 1e-5)? - value(change, -1e-5)?) / 2e-5)
    };
    let close = |found: f64, expected: f64| {
        assert!((found - expected).abs() < 1e-8 * expected.abs().max(1.0), "{found} instead of {expected}");
    };
    close(gravity.y, slope(&|w, _, h| w.gravity.y += h)?);
    close(steel.mu, slope(&|w, _, h| w.steel.mu += h)?);
    close(steel.lambda, slope(&|w, _, h| w.steel.lambda += h)?);
    close(frame[[0, 1]], slope(&|w, _, h| w.frame[[0, 1]] += h)?);
    close(wind.1, slope(&|_, wind, h| wind.1 += h)?);
    assert_eq!(steel.kind, 0);
    // All of the struct at once, and its leaves.
    let all = settle().grad(settle::loss).wrt(settle::w).compile(&device)?;
    let out = all.launch((&mut world(&device)?, (0.1, 0.2), &mut loss))?;
    let mut of_world = out.get(settle::w)?;
    assert_eq!((of_world.gravity, of_world.frame), (gravity, frame));
    of_world.map_leaves(|x| 2.0 * x);
    assert_eq!((of_world.gravity, of_world.steel.mu), (2.0 * gravity, 2.0 * steel.mu));
    // A direction of small values: first and second order.
    let along = Direction::new().scalar(settle::wind, (1.0, 0.0)).scalar(settle::w.frame, Mat2::identity());
    let jvp = settle().jvp(settle::loss).wrt(settle::wind).wrt(settle::w.frame).compile(&device)?;
    let moved = jvp.launch((&mut world(&device)?, (0.1, 0.2), &mut loss), &along)?;
    close(moved.get(settle::loss)?.value(), wind.0 + frame.trace());
    Ok(())
}

#[func]
fn between((a, b): (f64, f64), (k, (s, _)): (usize, (f64, f64))) -> f64 {
    (1.0 - s) * a + s * b * k as f64
}

#[program]
fn mixed(x: &mut Array1<f64>, loss: &mut Array0<f64>) {
    for i in par(0..x.len()) {
        x[i] = between((x[i], x[i] * x[i]), (i, (0.25, 0.0)));
        loss[[]] += x[i] * x[i];
    }
}

#[test]
fn functions_take_tuples_apart() {
    assert_eq!(between((1.0, 2.0), (3, (0.25, 0.0))), 2.25);
    differentiates(&mixed(), &[seeded(&[5], 3), zero()], "loss", &["x"]);
}
