// Waves and flows, as their authors write them. Included once for f32 and once for f64.

/// Elastic waves, velocities and stresses on a staggered grid, with an absorbing sponge, a source and a line of receivers.
#[program]
pub fn elastic(
    vx: &mut Array2<Real>,
    vz: &mut Array2<Real>,
    sxx: &mut Array2<Real>,
    szz: &mut Array2<Real>,
    sxz: &mut Array2<Real>,
    lambda: &Array2<Real>,
    mu: &Array2<Real>,
    sponge: &Array2<Real>,
    source: &Array1<Real>,
    loss: &mut Array0<Real>,
) {
    let (n, m) = (vx.dim(0), vx.dim(1));
    for t in 0..source.len() {
        for (i, j) in par(1..n - 1, 1..m - 1) {
            let ax = sxx[[i + 1, j]] - sxx[[i, j]] + sxz[[i, j]] - sxz[[i, j - 1]];
            let az = sxz[[i, j]] - sxz[[i - 1, j]] + szz[[i, j + 1]] - szz[[i, j]];
            vx[[i, j]] = sponge[[i, j]] * (vx[[i, j]] + 0.3 * ax);
            vz[[i, j]] = sponge[[i, j]] * (vz[[i, j]] + 0.3 * az);
        }
        for (i, j) in par(1..n - 1, 1..m - 1) {
            let (dx, dz) = (vx[[i, j]] - vx[[i - 1, j]], vz[[i, j]] - vz[[i, j - 1]]);
            let shear = vx[[i, j + 1]] - vx[[i, j]] + vz[[i + 1, j]] - vz[[i, j]];
            let stiff = lambda[[i, j]] + 2.0 * mu[[i, j]];
            sxx[[i, j]] = sponge[[i, j]] * (sxx[[i, j]] + 0.3 * (stiff * dx + lambda[[i, j]] * dz));
            szz[[i, j]] = sponge[[i, j]] * (szz[[i, j]] + 0.3 * (lambda[[i, j]] * dx + stiff * dz));
            sxz[[i, j]] = sponge[[i, j]] * (sxz[[i, j]] + 0.3 * mu[[i, j]] * shear);
        }
        sxx[[n / 2, m / 2]] += source[t];
        szz[[n / 2, m / 2]] += source[t];
        for j in par(1..m - 1) {
            loss[[]] += vz[[n / 2 - 1, j]] * vz[[n / 2 - 1, j]];
        }
    }
}

/// The four cells around a place in a periodic square, and where the place is between them.
#[func]
fn around(x: Real, n: usize) -> (usize, usize, Real) {
    let floor = x.floor();
    let i = (floor as i64).rem_euclid(n as i64) as usize;
    (i, (i + 1) % n, x - floor)
}

#[func]
fn between(a: &Array2<Real>, (i, i1, s): (usize, usize, Real), (j, j1, t): (usize, usize, Real)) -> Real {
    (1.0 - s) * ((1.0 - t) * a[[i, j]] + t * a[[i, j1]]) + s * ((1.0 - t) * a[[i1, j]] + t * a[[i1, j1]])
}

/// Smoke in a periodic box: advection backwards, then a projection by conjugate gradients in every step.
#[program]
pub fn smoke(
    u: &mut Array2<Real>,
    v: &mut Array2<Real>,
    d: &mut Array2<Real>,
    steps: usize,
    iterations: usize,
    loss: &mut Array0<Real>,
) {
    let (n, m) = (u.dim(0), u.dim(1));
    let mut u2 = Array2::zeros([n, m]);
    let mut v2 = Array2::zeros([n, m]);
    let mut d2 = Array2::zeros([n, m]);
    let mut p = Array2::zeros([n, m]);
    let mut r = Array2::zeros([n, m]);
    let mut s = Array2::zeros([n, m]);
    let mut q = Array2::zeros([n, m]);
    for _t in 0..steps {
        for (i, j) in par(0..n, 0..m) {
            let x = around(i as Real - 0.5 * u[[i, j]], n);
            let y = around(j as Real - 0.5 * v[[i, j]], m);
            u2[[i, j]] = between(u, x, y);
            v2[[i, j]] = between(v, x, y);
            d2[[i, j]] = between(d, x, y);
        }
        swap(u, u2);
        swap(v, v2);
        swap(d, d2);
        fill(p, 0.0);
        for (i, j) in par(0..n, 0..m) {
            let divergence = u[[(i + 1) % n, j]] - u[[i, j]] + v[[i, (j + 1) % m]] - v[[i, j]];
            r[[i, j]] = -divergence;
            s[[i, j]] = -divergence;
        }
        let mut rr = dot(r, r);
        for _k in 0..iterations {
            for (i, j) in par(0..n, 0..m) {
                let sides = s[[(i + n - 1) % n, j]] + s[[(i + 1) % n, j]] + s[[i, (j + m - 1) % m]] + s[[i, (j + 1) % m]];
                q[[i, j]] = 4.0 * s[[i, j]] - sides;
            }
            let alpha = rr / (dot(s, q) + 1.0e-20);
            for (i, j) in par(0..n, 0..m) {
                p[[i, j]] += alpha * s[[i, j]];
                r[[i, j]] -= alpha * q[[i, j]];
            }
            let next = dot(r, r);
            let beta = next / (rr + 1.0e-20);
            rr = next;
            for (i, j) in par(0..n, 0..m) {
                s[[i, j]] = r[[i, j]] + beta * s[[i, j]];
            }
        }
        for (i, j) in par(0..n, 0..m) {
            u[[i, j]] -= p[[i, j]] - p[[(i + n - 1) % n, j]];
            v[[i, j]] -= p[[i, j]] - p[[i, (j + m - 1) % m]];
        }
    }
    for (i, j) in par(0..n, 0..m) {
        loss[[]] += d[[i, j]] * d[[i, j]];
    }
}
