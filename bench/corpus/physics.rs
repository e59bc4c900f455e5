// Programs of physics, as their authors write them. Included once for f32 and once for f64.

/// Forces between all pairs of bodies, leapfrog.
#[program]
pub fn all_pairs(x: &mut Array2<Real>, v: &mut Array2<Real>, m: &Array1<Real>, steps: usize, loss: &mut Array0<Real>) {
    let n = m.len();
    for _t in 0..steps {
        for i in par(0..n) {
            let (mut fx, mut fy, mut fz) = (0.0, 0.0, 0.0);
            for j in 0..n {
                let (dx, dy, dz) = (x[[j, 0]] - x[[i, 0]], x[[j, 1]] - x[[i, 1]], x[[j, 2]] - x[[i, 2]]);
                let d = dx * dx + dy * dy + dz * dz + 0.01;
                let w = m[j] / (d * d.sqrt());
                fx += w * dx;
                fy += w * dy;
                fz += w * dz;
            }
            v[[i, 0]] += 0.001 * fx;
            v[[i, 1]] += 0.001 * fy;
            v[[i, 2]] += 0.001 * fz;
        }
        for (i, k) in par(0..n, 0..3) {
            x[[i, k]] += 0.001 * v[[i, k]];
        }
    }
    for (i, k) in par(0..n, 0..3) {
        loss[[]] += x[[i, k]] * x[[i, k]];
    }
}

/// Lattice Boltzmann, D2Q9, BGK collisions, periodic.
#[program]
pub fn boltzmann(f: &mut Array3<Real>, g: &mut Array3<Real>, omega: Real, steps: usize, loss: &mut Array0<Real>) {
    const CX: [Real; 9] = [0.0, 1.0, 0.0, -1.0, 0.0, 1.0, -1.0, -1.0, 1.0];
    const CY: [Real; 9] = [0.0, 0.0, 1.0, 0.0, -1.0, 1.0, 1.0, -1.0, -1.0];
    const W: [Real; 9] = [
        4.0 / 9.0, 1.0 / 9.0, 1.0 / 9.0, 1.0 / 9.0, 1.0 / 9.0, 1.0 / 36.0, 1.0 / 36.0, 1.0 / 36.0, 1.0 / 36.0,
    ];
    let (n, m) = (f.dim(1), f.dim(2));
    for _t in 0..steps {
        for (i, j) in par(0..n, 0..m) {
            let (l, r) = ((i + n - 1) % n, (i + 1) % n);
            let (d, u) = ((j + m - 1) % m, (j + 1) % m);
            let q = [
                f[[0, i, j]], f[[1, l, j]], f[[2, i, d]], f[[3, r, j]], f[[4, i, u]],
                f[[5, l, d]], f[[6, r, d]], f[[7, r, u]], f[[8, l, u]],
            ];
            let mut rho = 0.0;
            let (mut ux, mut uy) = (0.0, 0.0);
            for k in 0..9 {
                rho += q[k];
                ux += CX[k] * q[k];
                uy += CY[k] * q[k];
            }
            ux /= rho;
            uy /= rho;
            let square = 1.5 * (ux * ux + uy * uy);
            for k in 0..9 {
                let c = CX[k] * ux + CY[k] * uy;
                let equal = W[k] * rho * (1.0 + 3.0 * c + 4.5 * c * c - square);
                g[[k, i, j]] = q[k] + omega * (equal - q[k]);
            }
        }
        swap(f, g);
    }
    for (k, i, j) in par(0..9, 0..n, 0..m) {
        loss[[]] += f[[k, i, j]] * f[[k, i, j]];
    }
}

/// Shallow water, Lax-Friedrichs, periodic.
#[program]
pub fn shallow_water(
    h: &mut Array2<Real>,
    u: &mut Array2<Real>,
    v: &mut Array2<Real>,
    h2: &mut Array2<Real>,
    u2: &mut Array2<Real>,
    v2: &mut Array2<Real>,
    dt: Real,
    steps: usize,
    loss: &mut Array0<Real>,
) {
    let (n, m) = (h.dim(0), h.dim(1));
    for _t in 0..steps {
        for (i, j) in par(0..n, 0..m) {
            let (a, b) = ((i + n - 1) % n, (i + 1) % n);
            let (c, d) = ((j + m - 1) % m, (j + 1) % m);
            let mean_h = 0.25 * (h[[a, j]] + h[[b, j]] + h[[i, c]] + h[[i, d]]);
            let mean_u = 0.25 * (u[[a, j]] + u[[b, j]] + u[[i, c]] + u[[i, d]]);
            let mean_v = 0.25 * (v[[a, j]] + v[[b, j]] + v[[i, c]] + v[[i, d]]);
            let flux = h[[b, j]] * u[[b, j]] - h[[a, j]] * u[[a, j]] + h[[i, d]] * v[[i, d]] - h[[i, c]] * v[[i, c]];
            h2[[i, j]] = mean_h - 0.5 * dt * flux;
            let (ux, uy) = (u[[b, j]] - u[[a, j]], u[[i, d]] - u[[i, c]]);
            let (vx, vy) = (v[[b, j]] - v[[a, j]], v[[i, d]] - v[[i, c]]);
            let (hx, hy) = (h[[b, j]] - h[[a, j]], h[[i, d]] - h[[i, c]]);
            u2[[i, j]] = mean_u - 0.5 * dt * (u[[i, j]] * ux + v[[i, j]] * uy + 9.81 * hx);
            v2[[i, j]] = mean_v - 0.5 * dt * (u[[i, j]] * vx + v[[i, j]] * vy + 9.81 * hy);
        }
        swap(h, h2);
        swap(u, u2);
        swap(v, v2);
    }
    for (i, j) in par(0..n, 0..m) {
        loss[[]] += (h[[i, j]] - 1.0) * (h[[i, j]] - 1.0);
    }
}

/// Nonlinear heat in three dimensions.
#[program]
pub fn heat(u: &mut Array3<Real>, next: &mut Array3<Real>, kappa: &Array3<Real>, steps: usize, loss: &mut Array0<Real>) {
    let (n, m, l) = (u.dim(0), u.dim(1), u.dim(2));
    for _t in 0..steps {
        for (i, j, k) in par(1..n - 1, 1..m - 1, 1..l - 1) {
            let c = u[[i, j, k]];
            let lap = u[[i - 1, j, k]] + u[[i + 1, j, k]] + u[[i, j - 1, k]] + u[[i, j + 1, k]]
                + u[[i, j, k - 1]] + u[[i, j, k + 1]] - 6.0 * c;
            next[[i, j, k]] = c + 0.1 * kappa[[i, j, k]] * (1.0 + c * c) * lap;
        }
        swap(u, next);
    }
    for (i, j, k) in par(0..n, 0..m, 0..l) {
        loss[[]] += u[[i, j, k]] * u[[i, j, k]];
    }
}

/// Reaction and diffusion (Gray-Scott) that keeps all its states.
#[program]
pub fn gray_scott(u: &mut Array3<Real>, v: &mut Array3<Real>, feed: Real, kill: Real, loss: &mut Array0<Real>) {
    let (steps, n, m) = (u.dim(0) - 1, u.dim(1), u.dim(2));
    for t in 0..steps {
        for (i, j) in par(0..n, 0..m) {
            let (a, b) = ((i + n - 1) % n, (i + 1) % n);
            let (c, d) = ((j + m - 1) % m, (j + 1) % m);
            let x = u[[t, i, j]];
            let y = v[[t, i, j]];
            let du = u[[t, a, j]] + u[[t, b, j]] + u[[t, i, c]] + u[[t, i, d]] - 4.0 * x;
            let dv = v[[t, a, j]] + v[[t, b, j]] + v[[t, i, c]] + v[[t, i, d]] - 4.0 * y;
            let rate = x * y * y;
            u[[t + 1, i, j]] = x + 0.16 * du - rate + feed * (1.0 - x);
            v[[t + 1, i, j]] = y + 0.08 * dv + rate - (feed + kill) * y;
        }
    }
    for (i, j) in par(0..n, 0..m) {
        loss[[]] += v[[steps, i, j]] * v[[steps, i, j]];
    }
}

#[func]
fn lorenz96_slope(x: &Array1<Real>, i: usize) -> Real {
    let n = x.len();
    (x[(i + 1) % n] - x[(i + n - 2) % n]) * x[(i + n - 1) % n] - x[i] + 8.0
}

/// Lorenz-96 by Runge and Kutta, compared with observations of every second variable.
#[program]
pub fn lorenz96(x: &mut Array1<Real>, seen: &Array2<Real>, steps: usize, loss: &mut Array0<Real>) {
    let n = x.len();
    let mut k = Array1::zeros([n]);
    let mut sum = Array1::zeros([n]);
    let mut y = Array1::zeros([n]);
    for t in 0..steps {
        for i in par(0..n) {
            let s = lorenz96_slope(x, i);
            sum[i] = s;
            y[i] = x[i] + 0.005 * s;
        }
        for i in par(0..n) {
            k[i] = lorenz96_slope(y, i);
        }
        for i in par(0..n) {
            sum[i] += 2.0 * k[i];
            y[i] = x[i] + 0.005 * k[i];
        }
        for i in par(0..n) {
            k[i] = lorenz96_slope(y, i);
        }
        for i in par(0..n) {
            sum[i] += 2.0 * k[i];
            y[i] = x[i] + 0.01 * k[i];
        }
        for i in par(0..n) {
            k[i] = lorenz96_slope(y, i);
        }
        for i in par(0..n) {
            x[i] += 0.01 / 6.0 * (sum[i] + k[i]);
        }
        for j in par(0..n / 2) {
            let d = x[2 * j] - seen[[t, j]];
            loss[[]] += d * d;
        }
    }
}

/// Charges to a periodic grid and the field back to them (particle in cell, one dimension).
#[program]
pub fn particles(x: &mut Array1<Real>, v: &mut Array1<Real>, rho: &mut Array1<Real>, steps: usize, loss: &mut Array0<Real>) {
    let (n, cells) = (x.len(), rho.len());
    for _t in 0..steps {
        fill(rho, 0.0);
        for p in par(0..n) {
            let at = x[p].floor();
            let w = x[p] - at;
            let i = at as usize % cells;
            rho[i] += 1.0 - w;
            rho[(i + 1) % cells] += w;
        }
        for p in par(0..n) {
            let at = x[p].floor();
            let w = x[p] - at;
            let i = at as usize % cells;
            let here = rho[(i + cells - 1) % cells] - rho[(i + 1) % cells];
            let next = rho[i] - rho[(i + 2) % cells];
            v[p] += 0.01 * ((1.0 - w) * here + w * next);
        }
        for p in par(0..n) {
            x[p] += 0.1 * v[p];
        }
    }
    for p in par(0..n) {
        loss[[]] += x[p] * x[p];
    }
}
