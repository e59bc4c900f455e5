// Programs of linear algebra, as their authors write them. Included once for f32 and once for f64.

/// Explicit steps with a sparse matrix in compressed rows.
#[program]
pub fn sparse(
    x: &mut Array1<Real>,
    next: &mut Array1<Real>,
    first: &Array1<i32>,
    column: &Array1<i32>,
    value: &Array1<Real>,
    steps: usize,
    loss: &mut Array0<Real>,
) {
    let n = x.len();
    for _t in 0..steps {
        for i in par(0..n) {
            let mut sum = 0.0;
            for k in first[i] as usize..first[i + 1] as usize {
                sum += value[k] * x[column[k] as usize];
            }
            next[i] = x[i] + 0.1 * sum.tanh();
        }
        swap(x, next);
    }
    for i in par(0..n) {
        loss[[]] += x[i] * x[i];
    }
}

/// Alternating directions: tridiagonal systems by Thomas along rows, then along columns.
#[program]
pub fn adi(u: &mut Array2<Real>, r: Real, steps: usize, loss: &mut Array0<Real>) {
    let (n, m) = (u.dim(0), u.dim(1));
    let mut c = Array2::zeros([n, m]);
    let mut d = Array2::zeros([n, m]);
    for _t in 0..steps {
        for i in par(0..n) {
            c[[i, 0]] = -r / (1.0 + 2.0 * r);
            d[[i, 0]] = u[[i, 0]] / (1.0 + 2.0 * r);
            for j in 1..m {
                let w = 1.0 / (1.0 + 2.0 * r + r * c[[i, j - 1]]);
                c[[i, j]] = -r * w;
                d[[i, j]] = (u[[i, j]] + r * d[[i, j - 1]]) * w;
            }
            u[[i, m - 1]] = d[[i, m - 1]];
            for k in 1..m {
                let j = m - 1 - k;
                u[[i, j]] = d[[i, j]] - c[[i, j]] * u[[i, j + 1]];
            }
        }
        for j in par(0..m) {
            c[[0, j]] = -r / (1.0 + 2.0 * r);
            d[[0, j]] = u[[0, j]] / (1.0 + 2.0 * r);
            for i in 1..n {
                let w = 1.0 / (1.0 + 2.0 * r + r * c[[i - 1, j]]);
                c[[i, j]] = -r * w;
                d[[i, j]] = (u[[i, j]] + r * d[[i - 1, j]]) * w;
            }
            u[[n - 1, j]] = d[[n - 1, j]];
            for k in 1..n {
                let i = n - 1 - k;
                u[[i, j]] = d[[i, j]] - c[[i, j]] * u[[i + 1, j]];
            }
        }
        for (i, j) in par(0..n, 0..m) {
            u[[i, j]] += 0.01 * u[[i, j]] * (1.0 - u[[i, j]]);
        }
    }
    for (i, j) in par(0..n, 0..m) {
        loss[[]] += u[[i, j]] * u[[i, j]];
    }
}

/// Logarithm of a determinant by LU, in place, without pivots.
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
    for k in par(0..n) {
        loss[[]] += a[[k, k]].abs().ln();
    }
}

/// Poisson's equation by sweeps of Gauss and Seidel, one cell after the other.
#[program]
pub fn gauss_seidel(u: &mut Array2<Real>, f: &Array2<Real>, sweeps: usize, loss: &mut Array0<Real>) {
    let (n, m) = (u.dim(0), u.dim(1));
    for _s in 0..sweeps {
        for i in 1..n - 1 {
            for j in 1..m - 1 {
                u[[i, j]] = 0.25 * (u[[i - 1, j]] + u[[i + 1, j]] + u[[i, j - 1]] + u[[i, j + 1]] - f[[i, j]]);
            }
        }
    }
    for (i, j) in par(0..n, 0..m) {
        loss[[]] += u[[i, j]] * u[[i, j]];
    }
}

/// The nonlinear Schrödinger equation by split steps: phases in space, phases of waves.
#[program]
pub fn split_step(
    re: &mut Array1<Real>,
    im: &mut Array1<Real>,
    energy: &Array1<Real>,
    dt: Real,
    steps: usize,
    loss: &mut Array0<Real>,
) {
    let n = re.len();
    for _t in 0..steps {
        for i in par(0..n) {
            let phase = dt * (re[i] * re[i] + im[i] * im[i]);
            let (s, c) = (phase.sin(), phase.cos());
            let x = re[i];
            re[i] = c * x - s * im[i];
            im[i] = s * x + c * im[i];
        }
        fft(re, im);
        for k in par(0..n) {
            let (s, c) = ((dt * energy[k]).sin(), (dt * energy[k]).cos());
            let x = re[k];
            re[k] = c * x + s * im[k];
            im[k] = c * im[k] - s * x;
        }
        ifft(re, im);
    }
    for i in par(0..n) {
        loss[[]] += (re[i] * re[i] + im[i] * im[i]) * (re[i] * re[i] + im[i] * im[i]);
    }
}
