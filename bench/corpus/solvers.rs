// Solvers and mechanics, as their authors write them. Included once for f32 and once for f64.

/// Waves in two dimensions with an absorbing layer around the domain.
#[program]
pub fn waves(
    p: &mut Array2<Real>,
    old: &mut Array2<Real>,
    speed: &Array2<Real>,
    damping: &Array2<Real>,
    steps: usize,
    loss: &mut Array0<Real>,
) {
    let (n, m) = (p.dim(0), p.dim(1));
    for _t in 0..steps {
        for (i, j) in par(1..n - 1, 1..m - 1) {
            let lap = p[[i - 1, j]] + p[[i + 1, j]] + p[[i, j - 1]] + p[[i, j + 1]] - 4.0 * p[[i, j]];
            let c = speed[[i, j]];
            let d = damping[[i, j]];
            old[[i, j]] = (2.0 * p[[i, j]] - (1.0 - d) * old[[i, j]] + 0.2 * c * c * lap) / (1.0 + d);
        }
        swap(p, old);
    }
    for (i, j) in par(0..n, 0..m) {
        loss[[]] += p[[i, j]] * p[[i, j]];
    }
}

/// Implicit diffusion: conjugate gradients inside the time loop.
#[program]
pub fn implicit(u: &mut Array2<Real>, k: &Array2<Real>, rounds: usize, steps: usize, loss: &mut Array0<Real>) {
    let (n, m) = (u.dim(0), u.dim(1));
    let mut r = Array2::zeros([n, m]);
    let mut p = Array2::zeros([n, m]);
    let mut q = Array2::zeros([n, m]);
    let mut x = Array2::zeros([n, m]);
    let mut rr = Array0::zeros([]);
    let mut pq = Array0::zeros([]);
    let mut new = Array0::zeros([]);
    for _t in 0..steps {
        fill(rr, 0.0);
        for (i, j) in par(0..n, 0..m) {
            x[[i, j]] = 0.0;
            r[[i, j]] = u[[i, j]];
            p[[i, j]] = u[[i, j]];
            rr[[]] += u[[i, j]] * u[[i, j]];
        }
        for _k in 0..rounds {
            fill(pq, 0.0);
            for (i, j) in par(0..n, 0..m) {
                let (a, b) = ((i + n - 1) % n, (i + 1) % n);
                let (c, d) = ((j + m - 1) % m, (j + 1) % m);
                let lap = p[[a, j]] + p[[b, j]] + p[[i, c]] + p[[i, d]] - 4.0 * p[[i, j]];
                q[[i, j]] = p[[i, j]] - 0.2 * k[[i, j]] * lap;
            }
            for (i, j) in par(0..n, 0..m) {
                pq[[]] += p[[i, j]] * q[[i, j]];
            }
            fill(new, 0.0);
            for (i, j) in par(0..n, 0..m) {
                let alpha = rr[[]] / pq[[]];
                x[[i, j]] += alpha * p[[i, j]];
                r[[i, j]] -= alpha * q[[i, j]];
            }
            for (i, j) in par(0..n, 0..m) {
                new[[]] += r[[i, j]] * r[[i, j]];
            }
            for (i, j) in par(0..n, 0..m) {
                p[[i, j]] = r[[i, j]] + new[[]] / rr[[]] * p[[i, j]];
            }
            copy(new, rr);
        }
        for (i, j) in par(0..n, 0..m) {
            u[[i, j]] = x[[i, j]] + 0.05 * x[[i, j]] * (1.0 - x[[i, j]]);
        }
    }
    for (i, j) in par(0..n, 0..m) {
        loss[[]] += u[[i, j]] * u[[i, j]];
    }
}

/// Red-black relaxation of a nonlinear equation, in place.
#[program]
pub fn relaxation(u: &mut Array2<Real>, f: &Array2<Real>, sweeps: usize, loss: &mut Array0<Real>) {
    let (n, m) = (u.dim(0), u.dim(1));
    for _s in 0..sweeps {
        for colour in 0..2 {
            for (i, j) in par(1..n - 1, 1..m - 1) {
                if (i + j) % 2 == colour {
                    let sum = u[[i - 1, j]] + u[[i + 1, j]] + u[[i, j - 1]] + u[[i, j + 1]];
                    u[[i, j]] = 0.25 * (sum - f[[i, j]] * u[[i, j]] * u[[i, j]]);
                }
            }
        }
    }
    for (i, j) in par(0..n, 0..m) {
        loss[[]] += u[[i, j]] * u[[i, j]];
    }
}

/// Triangles of a mesh pull at their nodes (finite elements, forces by scatter).
#[program]
pub fn elements(
    x: &mut Array2<Real>,
    v: &mut Array2<Real>,
    nodes: &Array2<i32>,
    rest: &Array1<Real>,
    steps: usize,
    loss: &mut Array0<Real>,
) {
    let (n, count) = (x.dim(0), nodes.dim(0));
    let mut force = Array2::zeros([n, 2]);
    for _t in 0..steps {
        fill(force, 0.0);
        for e in par(0..count) {
            let (a, b, c) = (nodes[[e, 0]] as usize, nodes[[e, 1]] as usize, nodes[[e, 2]] as usize);
            let (ux, uy) = (x[[b, 0]] - x[[a, 0]], x[[b, 1]] - x[[a, 1]]);
            let (wx, wy) = (x[[c, 0]] - x[[a, 0]], x[[c, 1]] - x[[a, 1]]);
            let area = 0.5 * (ux * wy - uy * wx);
            let push = rest[e] - area;
            let (bx, by) = (0.5 * push * wy, -0.5 * push * wx);
            let (cx, cy) = (-0.5 * push * uy, 0.5 * push * ux);
            force[[b, 0]] += bx;
            force[[b, 1]] += by;
            force[[c, 0]] += cx;
            force[[c, 1]] += cy;
            force[[a, 0]] += -bx - cx;
            force[[a, 1]] += -by - cy;
        }
        for (i, k) in par(0..n, 0..2) {
            v[[i, k]] = 0.99 * v[[i, k]] + 0.01 * force[[i, k]];
            x[[i, k]] += 0.01 * v[[i, k]];
        }
    }
    for (i, k) in par(0..n, 0..2) {
        loss[[]] += x[[i, k]] * x[[i, k]];
    }
}

/// Forces between neighbours, which are given by a list of fixed length for each particle.
#[program]
pub fn neighbours(
    x: &mut Array2<Real>,
    v: &mut Array2<Real>,
    list: &Array2<i32>,
    steps: usize,
    loss: &mut Array0<Real>,
) {
    let (n, most) = (x.dim(0), list.dim(1));
    for _t in 0..steps {
        for i in par(0..n) {
            let (mut fx, mut fy, mut fz) = (0.0, 0.0, 0.0);
            for k in 0..most {
                let j = list[[i, k]] as usize;
                let (dx, dy, dz) = (x[[j, 0]] - x[[i, 0]], x[[j, 1]] - x[[i, 1]], x[[j, 2]] - x[[i, 2]]);
                let d = dx * dx + dy * dy + dz * dz + 0.1;
                let w = 1.0 / (d * d) - 0.1 / d;
                fx += w * dx;
                fy += w * dy;
                fz += w * dz;
            }
            v[[i, 0]] -= 0.001 * fx;
            v[[i, 1]] -= 0.001 * fy;
            v[[i, 2]] -= 0.001 * fz;
        }
        for (i, k) in par(0..n, 0..3) {
            x[[i, k]] += 0.001 * v[[i, k]];
        }
    }
    for (i, k) in par(0..n, 0..3) {
        loss[[]] += x[[i, k]] * x[[i, k]];
    }
}

/// LU decomposition without pivots, in place, and the logarithm of the determinant.
#[program]
pub fn lu(a: &mut Array2<Real>, loss: &mut Array0<Real>) {
    let n = a.dim(0);
    for k in 0..n {
        for i in par(k + 1..n) {
            a[[i, k]] /= a[[k, k]];
        }
        for (i, j) in par(k + 1..n, k + 1..n) {
            a[[i, j]] -= a[[i, k]] * a[[k, j]];
        }
    }
    for i in par(0..n) {
        loss[[]] += a[[i, i]].abs().ln();
    }
}
