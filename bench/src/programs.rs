//! The workloads as programs.

use ebbtide_ir::*;

struct B(Builder);

impl B {
    fn new(name: &str) -> B {
        B(Builder::new(name))
    }
    fn add(&mut self, a: ValueId, b: ValueId) -> ValueId {
        self.0.binary(Binary::Add, a, b)
    }
    fn sub(&mut self, a: ValueId, b: ValueId) -> ValueId {
        self.0.binary(Binary::Sub, a, b)
    }
    fn mul(&mut self, a: ValueId, b: ValueId) -> ValueId {
        self.0.binary(Binary::Mul, a, b)
    }
    fn rem(&mut self, a: ValueId, b: ValueId) -> ValueId {
        self.0.binary(Binary::Rem, a, b)
    }
    fn index(&mut self, i: i64) -> ValueId {
        self.0.literal(Literal::index(i))
    }
    fn real(&mut self, ty: Type, x: f64) -> ValueId {
        self.0.literal(Literal::of(ty, x))
    }
}

/// `s += 0.1 * tanh(s) * p`, `steps` times.
pub fn pointwise() -> Result<Program, Error> {
    let mut b = B::new("pointwise");
    let s = b.0.array("s", Type::F64, 1, Access::Write);
    let p = b.0.array("p", Type::F64, 1, Access::Read);
    let steps = b.0.scalar("steps", Type::Index);
    let (zero, n) = (b.index(0), b.0.dim(s, 0));
    b.0.begin_for("t", zero, steps);
    let i = b.0.begin_par(&[("i", zero, n)])[0];
    let (x, y) = (b.0.load(s, &[i]), b.0.load(p, &[i]));
    let tenth = b.real(Type::F64, 0.1);
    let t = b.0.math(Function::Tanh, &[x]);
    let d = b.mul(tenth, t);
    let d = b.mul(d, y);
    b.0.update(Combine::Add, s, &[i], d);
    b.0.end_par();
    b.0.end_loop(None);
    b.0.finish()
}

/// Viscous Burgers on a periodic line.
pub fn burgers() -> Result<Program, Error> {
    let mut b = B::new("burgers");
    let u = b.0.array("u", Type::F64, 1, Access::Write);
    let next = b.0.array("next", Type::F64, 1, Access::Write);
    let steps = b.0.scalar("steps", Type::Index);
    let (nu, dt) = (b.real(Type::F64, 0.1), b.real(Type::F64, 0.01));
    let (zero, one, n) = (b.index(0), b.index(1), b.0.dim(u, 0));
    b.0.begin_for("t", zero, steps);
    let i = b.0.begin_par(&[("i", zero, n)])[0];
    let left = b.add(i, n);
    let left = b.sub(left, one);
    let left = b.rem(left, n);
    let right = b.add(i, one);
    let right = b.rem(right, n);
    let [l, r, c] = [left, right, i].map(|at| b.0.load(u, &[at]));
    let (two, half) = (b.real(Type::F64, 2.0), b.real(Type::F64, 0.5));
    let twice = b.mul(two, c);
    let lap = b.sub(l, twice);
    let lap = b.add(lap, r);
    let diffusion = b.mul(nu, lap);
    let slope = b.sub(r, l);
    let advection = b.mul(half, c);
    let advection = b.mul(advection, slope);
    let rate = b.sub(diffusion, advection);
    let change = b.mul(dt, rate);
    let value = b.add(c, change);
    b.0.store(next, &[i], value);
    b.0.end_par();
    b.0.swap(u, next);
    b.0.end_loop(None);
    b.0.finish()
}

/// The acoustic wave equation with a source and a row of receivers.
pub fn wave() -> Result<Program, Error> {
    let mut b = B::new("wave");
    let u = b.0.array("u", Type::F32, 2, Access::Write);
    let prev = b.0.array("prev", Type::F32, 2, Access::Write);
    let c = b.0.array("c", Type::F32, 2, Access::Read);
    let source = b.0.array("source", Type::F32, 1, Access::Read);
    let seen = b.0.array("seen", Type::F32, 2, Access::Write);
    let steps = b.0.scalar("steps", Type::Index);
    let (zero, one, two) = (b.index(0), b.index(1), b.index(2));
    let (n, m) = (b.0.dim(u, 0), b.0.dim(u, 1));
    let (n1, m1) = (b.sub(n, one), b.sub(m, one));
    let t = b.0.begin_for("t", zero, steps);
    let ij = b.0.begin_par(&[("i", one, n1), ("j", one, m1)]);
    let (i, j) = (ij[0], ij[1]);
    let (up, down) = (b.sub(i, one), b.add(i, one));
    let (left, right) = (b.sub(j, one), b.add(j, one));
    let here = b.0.load(u, &[i, j]);
    let around = [[up, j], [down, j], [i, left], [i, right]].map(|at| b.0.load(u, &at));
    let sum = b.add(around[0], around[1]);
    let sum = b.add(sum, around[2]);
    let sum = b.add(sum, around[3]);
    let (four, double) = (b.real(Type::F32, 4.0), b.real(Type::F32, 2.0));
    let fourfold = b.mul(four, here);
    let lap = b.sub(sum, fourfold);
    let speed = b.0.load(c, &[i, j]);
    let force = b.mul(speed, lap);
    let old = b.0.load(prev, &[i, j]);
    let twice = b.mul(double, here);
    let value = b.sub(twice, old);
    let value = b.add(value, force);
    b.0.store(prev, &[i, j], value);
    b.0.end_par();
    b.0.swap(u, prev);
    let pulse = b.0.load(source, &[t]);
    let (si, sj) = (b.0.binary(Binary::Div, n, two), b.0.binary(Binary::Div, m, two));
    b.0.update(Combine::Add, u, &[si, sj], pulse);
    let j = b.0.begin_par(&[("j", zero, m)])[0];
    let v = b.0.load(u, &[two, j]);
    b.0.store(seen, &[t, j], v);
    b.0.end_par();
    b.0.end_loop(None);
    b.0.finish()
}

/// `next = tanh(input + w h)`, the weights stored by columns.
pub fn rnn() -> Result<Program, Error> {
    let mut b = B::new("rnn");
    let h = b.0.array("h", Type::F64, 1, Access::Write);
    let next = b.0.array("next", Type::F64, 1, Access::Write);
    let w = b.0.array("w", Type::F64, 2, Access::Read);
    let x = b.0.array("input", Type::F64, 1, Access::Read);
    let steps = b.0.scalar("steps", Type::Index);
    let (zero, n) = (b.index(0), b.0.dim(h, 0));
    b.0.begin_for("t", zero, steps);
    let i = b.0.begin_par(&[("i", zero, n)])[0];
    let start = b.0.load(x, &[i]);
    let sum = b.0.local("sum", start);
    let k = b.0.begin_for("k", zero, n);
    let (weight, value) = (b.0.load(w, &[k, i]), b.0.load(h, &[k]));
    let product = b.mul(weight, value);
    let so_far = b.0.get(sum);
    let more = b.add(so_far, product);
    b.0.set(sum, more);
    b.0.end_loop(None);
    let total = b.0.get(sum);
    let value = b.0.math(Function::Tanh, &[total]);
    b.0.store(next, &[i], value);
    b.0.end_par();
    b.0.swap(h, next);
    b.0.end_loop(None);
    b.0.finish()
}

/// One element, one addition: what a launch costs.
pub fn trivial() -> Result<Program, Error> {
    let mut b = B::new("trivial");
    let x = b.0.array("x", Type::F64, 0, Access::Write);
    let one = b.real(Type::F64, 1.0);
    b.0.update(Combine::Add, x, &[], one);
    b.0.finish()
}

/// A device loop with two tiny tasks: what a pass costs.
pub fn passes() -> Result<Program, Error> {
    let mut b = B::new("passes");
    let x = b.0.array("x", Type::F64, 1, Access::Write);
    let y = b.0.array("y", Type::F64, 1, Access::Write);
    let count = b.0.array("count", Type::I64, 0, Access::Write);
    let steps = b.0.scalar("steps", Type::I64);
    let (zero, n) = (b.index(0), b.0.dim(x, 0));
    b.0.begin_loop();
    let i = b.0.begin_par(&[("i", zero, n)])[0];
    let v = b.0.load(y, &[i]);
    b.0.store(x, &[i], v);
    b.0.end_par();
    let i = b.0.begin_par(&[("i", zero, n)])[0];
    let (v, one) = (b.0.load(x, &[i]), b.real(Type::F64, 1.0));
    let v = b.add(v, one);
    b.0.store(y, &[i], v);
    b.0.end_par();
    let one = b.0.literal(Literal::from(1i64));
    b.0.update(Combine::Add, count, &[], one);
    let now = b.0.load(count, &[]);
    let done = b.0.compare(Compare::Ge, now, steps);
    b.0.end_loop(Some(done));
    b.0.finish()
}
