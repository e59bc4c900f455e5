//! Programs used by several tests, written with the builder.

use ebbtide_ir::*;

/// Viscous Burgers on a periodic line, in place with `swap`.
pub fn burgers() -> Program {
    let mut b = Builder::new("burgers");
    let u = b.array("u", Type::F64, 1, Access::Write);
    let next = b.array("next", Type::F64, 1, Access::Write);
    let nu = b.scalar("nu", Type::F64);
    let dt = b.scalar("dt", Type::F64);
    let steps = b.scalar("steps", Type::Index);
    let n = b.dim(u, 0);
    b.name(n, "n");
    let zero = b.literal(Literal::index(0));
    let one = b.literal(Literal::index(1));
    b.begin_for("t", zero, steps);
    let i = b.begin_par(&[("i", zero, n)])[0];
    let left = b.binary(Binary::Add, i, n);
    let left = b.binary(Binary::Sub, left, one);
    let left = b.binary(Binary::Rem, left, n);
    let l = b.load(u, &[left]);
    b.name(l, "l");
    let right = b.binary(Binary::Add, i, one);
    let right = b.binary(Binary::Rem, right, n);
    let r = b.load(u, &[right]);
    b.name(r, "r");
    let c = b.load(u, &[i]);
    b.name(c, "c");
    let two = b.literal(Literal::from(2.0));
    let half = b.literal(Literal::from(0.5));
    let twice = b.binary(Binary::Mul, two, c);
    let lap = b.binary(Binary::Sub, l, twice);
    let lap = b.binary(Binary::Add, lap, r);
    let diffusion = b.binary(Binary::Mul, nu, lap);
    let slope = b.binary(Binary::Sub, r, l);
    let advection = b.binary(Binary::Mul, half, c);
    let advection = b.binary(Binary::Mul, advection, slope);
    let rate = b.binary(Binary::Sub, diffusion, advection);
    let change = b.binary(Binary::Mul, dt, rate);
    let value = b.binary(Binary::Add, c, change);
    b.store(next, &[i], value);
    b.end_par();
    b.swap(u, next);
    b.end_loop(None);
    b.finish().unwrap()
}
