// Particles and meshes with vectors and matrices, as their authors write them. Included once for f32 and once for f64.

/// Particles that see those in their lists of neighbours.
#[program]
pub fn neighbours(
    x: &mut Array1<Vec3<Real>>,
    v: &mut Array1<Vec3<Real>>,
    near: &Array2<i32>,
    steps: usize,
    loss: &mut Array0<Real>,
) {
    let (n, most) = (x.len(), near.dim(1));
    for _t in 0..steps {
        for i in par(0..n) {
            let mut force = Vec3::zero();
            for k in 0..most {
                let d = x[near[[i, k]] as usize] - x[i];
                let square = d.norm_squared() + 0.1;
                let inverse = 1.0 / (square * square * square);
                force += (0.5 * inverse - inverse * inverse) * d;
            }
            v[i] += 0.001 * force;
        }
        for i in par(0..n) {
            x[i] += 0.01 * v[i];
        }
    }
    for i in par(0..n) {
        loss[[]] += x[i].norm_squared();
    }
}

#[func]
fn spline(d: Real) -> [Real; 3] {
    [0.5 * (1.5 - d) * (1.5 - d), 0.75 - (d - 1.0) * (d - 1.0), 0.5 * (d - 0.5) * (d - 0.5)]
}

/// The cell at the corner of those that a particle touches, and where the particle is from there, in cells.
#[func]
fn corner(x: Vec2<Real>) -> (usize, usize, Vec2<Real>) {
    let (i, j) = ((x.x - 0.5) as usize, (x.y - 0.5) as usize);
    (i, j, x - Vec2::new(i as Real, j as Real))
}

/// An elastic body in the material point method (MLS-MPM), lengths in cells.
#[program]
pub fn mpm(
    x: &mut Array1<Vec2<Real>>,
    v: &mut Array1<Vec2<Real>>,
    c: &mut Array1<Mat2<Real>>,
    f: &mut Array1<Mat2<Real>>,
    grid_v: &mut Array2<Vec2<Real>>,
    grid_m: &mut Array2<Real>,
    steps: usize,
    loss: &mut Array0<Real>,
) {
    const DT: Real = 0.01;
    let (n, cells) = (x.len(), grid_m.dim(0));
    for _t in 0..steps {
        fill(grid_v, Vec2::zero());
        fill(grid_m, 0.0);
        for p in par(0..n) {
            let (i, j, d) = corner(x[p]);
            let (wx, wy) = (spline(d.x), spline(d.y));
            let moved = (Mat2::identity() + DT * c[p]) * f[p];
            f[p] = moved;
            let volume = moved.determinant();
            let stress = moved * moved.transpose() - Mat2::identity() + 1.5 * (volume - 1.0) * Mat2::identity();
            let affine = c[p] - 4.0 * DT * stress;
            for k in 0..3 {
                for l in 0..3 {
                    let to = Vec2::new(k as Real, l as Real) - d;
                    let weight = wx[k] * wy[l];
                    grid_v[[i + k, j + l]] += weight * (v[p] + affine * to);
                    grid_m[[i + k, j + l]] += weight;
                }
            }
        }
        for (i, j) in par(0..cells, 0..cells) {
            if grid_m[[i, j]] > 0.0 {
                let mut here = grid_v[[i, j]] / grid_m[[i, j]] - Vec2::new(0.0, 0.1 * DT);
                if j < 3 && here.y < 0.0 {
                    here.y = 0.0;
                }
                grid_v[[i, j]] = here;
            }
        }
        for p in par(0..n) {
            let (i, j, d) = corner(x[p]);
            let (wx, wy) = (spline(d.x), spline(d.y));
            let (mut mean, mut slope) = (Vec2::zero(), Mat2::zero());
            for k in 0..3 {
                for l in 0..3 {
                    let here = wx[k] * wy[l] * grid_v[[i + k, j + l]];
                    mean += here;
                    slope += 4.0 * here.outer(Vec2::new(k as Real, l as Real) - d);
                }
            }
            v[p] = mean;
            c[p] = slope;
            x[p] += DT * mean;
        }
    }
    for p in par(0..n) {
        loss[[]] += x[p].y * x[p].y;
    }
}

/// Neo-Hookean triangles that add forces to their corners, explicit steps.
#[program]
pub fn elements(
    x: &mut Array1<Vec2<Real>>,
    v: &mut Array1<Vec2<Real>>,
    corners: &Array1<[i32; 3]>,
    rest: &Array1<Mat2<Real>>,
    stiffness: &Array1<Real>,
    steps: usize,
    loss: &mut Array0<Real>,
) {
    let n = x.len();
    let mut force = Array1::zeros([n]);
    for _t in 0..steps {
        fill(force, Vec2::zero());
        for e in par(0..stiffness.len()) {
            let (i, j, k) = (corners[e][0] as usize, corners[e][1] as usize, corners[e][2] as usize);
            let f = Mat2::from_rows([x[j] - x[i], x[k] - x[i]]).transpose() * rest[e];
            let back = f.inverse().transpose();
            let stress = stiffness[e] * (f - back) + stiffness[e] * f.determinant().abs().ln() * back;
            let pulls = (stress * rest[e].transpose()).transpose();
            force[j] -= pulls[0];
            force[k] -= pulls[1];
            force[i] += pulls[0] + pulls[1];
        }
        for i in par(0..n) {
            v[i] = 0.99 * v[i] + 0.01 * (force[i] + Vec2::new(0.0, -0.1));
            x[i] += 0.01 * v[i];
        }
    }
    for i in par(0..n) {
        loss[[]] += x[i].norm_squared();
    }
}

/// A cloth by position-based dynamics (XPBD): edges pull their ends together, all at once, a few times in each step.
#[program]
pub fn cloth(
    x: &mut Array1<Vec3<Real>>,
    v: &mut Array1<Vec3<Real>>,
    w: &Array1<Real>,
    edges: &Array1<[i32; 2]>,
    length: &Array1<Real>,
    steps: usize,
    loss: &mut Array0<Real>,
) {
    const DT: Real = 0.02;
    const SOFT: Real = 0.1;
    let n = x.len();
    let mut next = Array1::zeros([n]);
    let mut moved = Array1::zeros([n]);
    let mut lambda = Array1::zeros([length.len()]);
    for _t in 0..steps {
        for i in par(0..n) {
            next[i] = x[i] + DT * (v[i] + DT * w[i] * Vec3::new(0.0, -1.0, 0.2));
        }
        fill(lambda, 0.0);
        for _k in 0..4 {
            fill(moved, Vec3::zero());
            for e in par(0..length.len()) {
                let (a, b) = (edges[e][0] as usize, edges[e][1] as usize);
                let d = next[a] - next[b];
                let gain = (length[e] - d.norm() - SOFT * lambda[e]) / (w[a] + w[b] + SOFT);
                lambda[e] += gain;
                moved[a] += w[a] * gain * d.normalize();
                moved[b] -= w[b] * gain * d.normalize();
            }
            for i in par(0..n) {
                next[i] += 0.3 * moved[i];
            }
        }
        for i in par(0..n) {
            v[i] = (next[i] - x[i]) / DT;
            x[i] = next[i];
        }
    }
    for i in par(0..n) {
        loss[[]] += x[i].norm_squared();
    }
}
