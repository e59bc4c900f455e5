//! Programs written with the builder.

use ebbtide_ir::*;

/// Short names for the operators, so that formulas read as such.
pub struct B(pub Builder);

impl B {
    pub fn new(name: &str) -> B {
        B(Builder::new(name))
    }
    pub fn add(&mut self, a: ValueId, b: ValueId) -> ValueId {
        self.0.binary(Binary::Add, a, b)
    }
    pub fn sub(&mut self, a: ValueId, b: ValueId) -> ValueId {
        self.0.binary(Binary::Sub, a, b)
    }
    pub fn mul(&mut self, a: ValueId, b: ValueId) -> ValueId {
        self.0.binary(Binary::Mul, a, b)
    }
    pub fn rem(&mut self, a: ValueId, b: ValueId) -> ValueId {
        self.0.binary(Binary::Rem, a, b)
    }
    pub fn index(&mut self, i: i64) -> ValueId {
        self.0.literal(Literal::index(i))
    }
    pub fn real(&mut self, x: f64) -> ValueId {
        self.0.literal(Literal::from(x))
    }
}

/// `s += 0.1 * tanh(s) * p`, `steps` times.
pub fn pointwise() -> Program {
    let mut b = B::new("pointwise");
    let s = b.0.array("s", Type::F64, 1, Access::Write);
    let p = b.0.array("p", Type::F64, 1, Access::Read);
    let steps = b.0.scalar("steps", Type::Index);
    let (zero, n) = (b.index(0), b.0.dim(s, 0));
    b.0.begin_for("t", zero, steps);
    let i = b.0.begin_par(&[("i", zero, n)])[0];
    let x = b.0.load(s, &[i]);
    let y = b.0.load(p, &[i]);
    let tenth = b.real(0.1);
    let t = b.0.math(Function::Tanh, &[x]);
    let d = b.mul(tenth, t);
    let d = b.mul(d, y);
    b.0.update(Combine::Add, s, &[i], d);
    b.0.end_par();
    b.0.end_loop(None);
    b.0.finish().unwrap()
}

/// Viscous Burgers on a periodic line.
pub fn burgers() -> Program {
    let mut b = B::new("burgers");
    let u = b.0.array("u", Type::F64, 1, Access::Write);
    let next = b.0.array("next", Type::F64, 1, Access::Write);
    let nu = b.0.scalar("nu", Type::F64);
    let dt = b.0.scalar("dt", Type::F64);
    let steps = b.0.scalar("steps", Type::Index);
    let (zero, one, n) = (b.index(0), b.index(1), b.0.dim(u, 0));
    b.0.begin_for("t", zero, steps);
    let i = b.0.begin_par(&[("i", zero, n)])[0];
    let left = b.add(i, n);
    let left = b.sub(left, one);
    let left = b.rem(left, n);
    let l = b.0.load(u, &[left]);
    let right = b.add(i, one);
    let right = b.rem(right, n);
    let r = b.0.load(u, &[right]);
    let c = b.0.load(u, &[i]);
    let (two, half) = (b.real(2.0), b.real(0.5));
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
    b.0.finish().unwrap()
}

/// Whole arrays overwritten by loops, `fill` and `copy` between reads.
pub fn overwritten() -> Program {
    let mut b = B::new("overwritten");
    let a = b.0.array("a", Type::F64, 1, Access::Write);
    let c = b.0.array("b", Type::F64, 1, Access::Write);
    let x = b.0.array("x", Type::F64, 1, Access::Read);
    let steps = b.0.scalar("steps", Type::Index);
    let (zero, n) = (b.index(0), b.0.dim(a, 0));
    b.0.begin_for("t", zero, steps);
    let i = b.0.begin_par(&[("i", zero, n)])[0];
    let (u, v) = (b.0.load(x, &[i]), b.0.load(c, &[i]));
    let (square, product) = (b.mul(u, u), b.mul(u, v));
    let sine = b.0.math(Function::Sin, &[product]);
    b.0.store(a, &[i], square);
    b.0.store(c, &[i], sine);
    b.0.end_par();
    let i = b.0.begin_par(&[("i", zero, n)])[0];
    let (u, v) = (b.0.load(x, &[i]), b.0.load(c, &[i]));
    let product = b.mul(u, v);
    b.0.store(a, &[i], product);
    b.0.end_par();
    let half = b.real(0.5);
    b.0.fill(c, half);
    let i = b.0.begin_par(&[("i", zero, n)])[0];
    let v = b.0.load(a, &[i]);
    b.0.update(Combine::Add, c, &[i], v);
    b.0.end_par();
    b.0.copy(c, a);
    let i = b.0.begin_par(&[("i", zero, n)])[0];
    let (u, v) = (b.0.load(x, &[i]), b.0.load(a, &[i]));
    let product = b.mul(u, v);
    b.0.update(Combine::Add, c, &[i], product);
    b.0.end_par();
    b.0.end_loop(None);
    b.0.finish().unwrap()
}

/// The acoustic wave equation on a plane with a source and a row of receivers, in `f32`.
pub fn wave() -> Program {
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
    let four = b.0.literal(Literal::from(4.0f32));
    let two_f = b.0.literal(Literal::from(2.0f32));
    let fourfold = b.mul(four, here);
    let lap = b.sub(sum, fourfold);
    let speed = b.0.load(c, &[i, j]);
    let force = b.mul(speed, lap);
    let old = b.0.load(prev, &[i, j]);
    let twice = b.mul(two_f, here);
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
    b.0.finish().unwrap()
}

/// Sums, minima and maxima over a plane.
pub fn reductions() -> Program {
    let mut b = B::new("reductions");
    let x = b.0.array("x", Type::F64, 2, Access::Read);
    let sum = b.0.array("sum", Type::F64, 0, Access::Write);
    let least = b.0.array("least", Type::F64, 0, Access::Write);
    let positive = b.0.array("positive", Type::F64, 1, Access::Write);
    let count = b.0.array("count", Type::I32, 0, Access::Write);
    let (zero, n, m) = (b.index(0), b.0.dim(x, 0), b.0.dim(x, 1));
    let zero_f = b.real(0.0);
    let ij = b.0.begin_par(&[("i", zero, n), ("j", zero, m)]);
    let v = b.0.load(x, &[ij[0], ij[1]]);
    b.0.update(Combine::Add, sum, &[], v);
    b.0.update(Combine::Min, least, &[], v);
    let above = b.0.compare(Compare::Gt, v, zero_f);
    b.0.begin_if(above);
    let one = b.index(1);
    b.0.update(Combine::Add, positive, &[one], v);
    b.0.end_if();
    b.0.end_par();
    let ij = b.0.begin_par(&[("i", zero, n), ("j", zero, m)]);
    let v = b.0.load(x, &[ij[0], ij[1]]);
    let above = b.0.compare(Compare::Gt, v, zero_f);
    let one = b.0.cast(above, Type::I32);
    b.0.update(Combine::Add, count, &[], one);
    b.0.end_par();
    b.0.finish().unwrap()
}

/// Sums and maxima at elements that data choose: twice into one array, once under a condition, and in two types.
pub fn deposits() -> Program {
    let mut b = B::new("deposits");
    let x = b.0.array("x", Type::F64, 2, Access::Read);
    let sums = b.0.array("sums", Type::F64, 1, Access::Write);
    let short = b.0.array("short", Type::F32, 1, Access::Write);
    let most = b.0.array("most", Type::F64, 1, Access::Write);
    let own = b.0.array("own", Type::F64, 2, Access::Write);
    let (zero, n, m) = (b.index(0), b.0.dim(x, 0), b.0.dim(x, 1));
    let (zero_f, thousand, seven, cells) = (b.real(0.0), b.real(1000.0), b.index(7), b.0.dim(sums, 0));
    let ij = b.0.begin_par(&[("i", zero, n), ("j", zero, m)]);
    let v = b.0.load(x, &[ij[0], ij[1]]);
    let far = b.0.binary(Binary::Mul, v, thousand);
    let far = b.0.cast(far, Type::I64);
    let far = b.0.cast(far, Type::Index);
    let cell = b.0.binary(Binary::RemEuclid, far, cells);
    b.0.update(Combine::Add, sums, &[cell], v);
    let above = b.0.compare(Compare::Gt, v, zero_f);
    b.0.begin_if(above);
    let other = b.0.binary(Binary::Mul, cell, seven);
    let other = b.0.binary(Binary::RemEuclid, other, cells);
    let square = b.0.binary(Binary::Mul, v, v);
    b.0.update(Combine::Add, sums, &[other], square);
    let narrow = b.0.cast(v, Type::F32);
    b.0.update(Combine::Add, short, &[cell], narrow);
    b.0.end_if();
    b.0.update(Combine::Max, most, &[cell], v);
    b.0.store(own, &[ij[0], ij[1]], v);
    b.0.end_par();
    b.0.finish().unwrap()
}

/// `y[..] += …` and `z[..] += …` in loops whose lengths are data.
pub fn counted_deposits() -> Program {
    parse(
        "program p(x: &Array2<f64>, y: &mut Array1<f64>, z: &mut Array2<f32>, most: usize) {
            let cells = y.len();
            for (i, j) in par(0..x.dim(0), 0..x.dim(1)) {
                let v = x[[i, j]];
                let own = (v.abs() * (most as f64)) as usize;
                for k in 0..own {
                    y[(i * 5 + j + k * k) % cells] += v * (k as f64);
                    if v > 0.0 {
                        z[[k % 3, j % z.dim(1)]] += v as f32;
                    }
                }
                if own % 3 == 1 {
                    let mut left = own;
                    while left > 0 {
                        for k in 0..left % 4 {
                            y[(left + k) % cells] += 0.25 * v;
                        }
                        left = left / 2;
                    }
                }
                y[(7 * j) % cells] += 1.0;
            }
            for (i, j) in par(0..x.dim(0), 0..x.dim(1)) {
                let right = x[[i, (j + 1) % x.dim(1)]];
                let below = x[[(i + 1) % x.dim(0), j]];
                let left = x[[i, (j + x.dim(1) - 1) % x.dim(1)]];
                for k in 0..(x[[i, j]].abs() * 5.0) as usize {
                    y[(k + i) % cells] += right - left;
                    y[2 % cells] += below;
                }
            }
        }",
    )
    .unwrap()
}

/// A sum, a maximum and a sum of few terms over iterations with loops and elementary functions.
pub fn long_sums() -> Program {
    parse(
        "program p(x: &Array2<f64>, loss: &mut Array0<f64>, most: &mut Array0<f32>, some: &mut Array1<f64>) {
            for (i, j) in par(0..x.dim(0), 0..x.dim(1)) {
                let v = x[[i, j]];
                let mut product = v.sin();
                for k in 0..3 {
                    product = product * (v + k as f64);
                }
                loss[[]] += product;
                most[[]].max_assign(product as f32);
                if v > 0.75 {
                    some[1] += v;
                }
            }
        }",
    )
    .unwrap()
}

/// Products of both types, sums at elements that data choose, and a sum: each takes memory that the threads of a block share.
pub fn products_and_sums() -> Program {
    parse(
        "program p(a: &mut Array2<f64>, b: &mut Array2<f32>, y: &mut Array1<f64>, loss: &mut Array0<f64>) {
            let mut c = Array2::<f64>::zeros([a.dim(0), a.dim(1)]);
            let mut d = Array2::<f32>::zeros([b.dim(0), b.dim(1)]);
            for _t in 0..3 {
                matmul(a, a, c);
                matmul(b, b, d);
                for (i, j) in par(0..a.dim(0), 0..a.dim(1)) {
                    a[[i, j]] = c[[i, j]].sin();
                    b[[i, j]] = d[[i, j]] * 0.01f32;
                }
                for (i, j) in par(0..a.dim(0), 0..a.dim(1)) {
                    y[(i * 5 + 3 * j) % y.len()] += a[[i, j]];
                }
                for (i, j) in par(0..a.dim(0), 0..a.dim(1)) {
                    loss[[]] += a[[i, j]] * (b[[i, j]] as f64);
                }
            }
        }",
    )
    .unwrap()
}
