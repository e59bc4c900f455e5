// Programs of machine learning and estimation, as their authors write them. Included once for f32 and once for f64.

/// Dense tanh layers in time: `h = tanh(h w + x)` for a batch of rows.
#[program]
pub fn dense(h: &mut Array2<Real>, w: &Array2<Real>, x: &Array1<Real>, steps: usize, loss: &mut Array0<Real>) {
    let (batch, n) = (h.dim(0), h.dim(1));
    let mut z = Array2::zeros([batch, n]);
    for _t in 0..steps {
        matmul(h, w, z);
        for (i, j) in par(0..batch, 0..n) {
            h[[i, j]] = (z[[i, j]] + x[j]).tanh();
        }
    }
    for (i, j) in par(0..batch, 0..n) {
        loss[[]] += h[[i, j]] * h[[i, j]];
    }
}

#[func]
fn sigmoid(x: Real) -> Real {
    1.0 / (1.0 + (-x).exp())
}

/// A gated recurrent unit over a sequence of inputs.
#[program]
pub fn gru(
    h: &mut Array2<Real>,
    x: &Array3<Real>,
    wz: &Array2<Real>,
    wr: &Array2<Real>,
    wh: &Array2<Real>,
    loss: &mut Array0<Real>,
) {
    let (steps, batch, n) = (x.dim(0), h.dim(0), h.dim(1));
    let mut z = Array2::zeros([batch, n]);
    let mut r = Array2::zeros([batch, n]);
    let mut g = Array2::zeros([batch, n]);
    let mut rh = Array2::zeros([batch, n]);
    for t in 0..steps {
        matmul(h, wz, z);
        matmul(h, wr, r);
        for (i, j) in par(0..batch, 0..n) {
            rh[[i, j]] = sigmoid(r[[i, j]] + x[[t, i, j]]) * h[[i, j]];
        }
        matmul(rh, wh, g);
        for (i, j) in par(0..batch, 0..n) {
            let gate = sigmoid(z[[i, j]] + x[[t, i, j]]);
            h[[i, j]] = (1.0 - gate) * h[[i, j]] + gate * (g[[i, j]] + x[[t, i, j]]).tanh();
        }
    }
    for (i, j) in par(0..batch, 0..n) {
        loss[[]] += h[[i, j]] * h[[i, j]];
    }
}

/// A neural ODE: `x' = tanh(x a) b`, by the midpoint rule.
#[program]
pub fn neural_ode(
    x: &mut Array2<Real>,
    a: &Array2<Real>,
    b: &Array2<Real>,
    dt: Real,
    steps: usize,
    loss: &mut Array0<Real>,
) {
    let (batch, n, hidden) = (x.dim(0), x.dim(1), a.dim(1));
    let mut inner = Array2::zeros([batch, hidden]);
    let mut slope = Array2::zeros([batch, n]);
    let mut half = Array2::zeros([batch, n]);
    for _t in 0..steps {
        matmul(x, a, inner);
        for (i, j) in par(0..batch, 0..hidden) {
            inner[[i, j]] = inner[[i, j]].tanh();
        }
        matmul(inner, b, slope);
        for (i, j) in par(0..batch, 0..n) {
            half[[i, j]] = x[[i, j]] + 0.5 * dt * slope[[i, j]];
        }
        matmul(half, a, inner);
        for (i, j) in par(0..batch, 0..hidden) {
            inner[[i, j]] = inner[[i, j]].tanh();
        }
        matmul(inner, b, slope);
        for (i, j) in par(0..batch, 0..n) {
            x[[i, j]] += dt * slope[[i, j]];
        }
    }
    for (i, j) in par(0..batch, 0..n) {
        loss[[]] += x[[i, j]] * x[[i, j]];
    }
}

/// The log-likelihood of a Gaussian mixture with diagonal covariances (ADBench).
#[program]
pub fn mixture(
    points: &Array2<Real>,
    means: &Array2<Real>,
    scales: &Array2<Real>,
    weights: &Array1<Real>,
    loss: &mut Array0<Real>,
) {
    let (n, d, k) = (points.dim(0), points.dim(1), means.dim(0));
    for i in par(0..n) {
        let mut most = -1.0e30;
        for c in 0..k {
            let mut term = weights[c];
            for j in 0..d {
                let z = (points[[i, j]] - means[[c, j]]) * scales[[c, j]].exp();
                term += scales[[c, j]] - 0.5 * z * z;
            }
            most = most.max(term);
        }
        let mut sum = 0.0;
        for c in 0..k {
            let mut term = weights[c];
            for j in 0..d {
                let z = (points[[i, j]] - means[[c, j]]) * scales[[c, j]].exp();
                term += scales[[c, j]] - 0.5 * z * z;
            }
            sum += (term - most).exp();
        }
        loss[[]] += most + sum.ln();
    }
}

/// Bundle adjustment: residuals of points that cameras see, chosen by data.
#[program]
pub fn bundle(
    cameras: &Array2<Real>,
    points: &Array2<Real>,
    camera_of: &Array1<i32>,
    point_of: &Array1<i32>,
    seen: &Array2<Real>,
    loss: &mut Array0<Real>,
) {
    for k in par(0..camera_of.len()) {
        let (c, p) = (camera_of[k] as usize, point_of[k] as usize);
        let (s, co) = (cameras[[c, 0]].sin(), cameras[[c, 0]].cos());
        let x = co * points[[p, 0]] - s * points[[p, 1]] + cameras[[c, 1]];
        let y = s * points[[p, 0]] + co * points[[p, 1]] + cameras[[c, 2]];
        let z = points[[p, 2]] + cameras[[c, 3]];
        let f = cameras[[c, 4]];
        let u = f * x / z - seen[[k, 0]];
        let v = f * y / z - seen[[k, 1]];
        loss[[]] += u * u + v * v;
    }
}

/// A long short-term memory over a sequence of inputs, its four gates in one product.
#[program]
pub fn lstm(
    h: &mut Array2<Real>,
    c: &mut Array2<Real>,
    x: &Array3<Real>,
    w: &Array2<Real>,
    loss: &mut Array0<Real>,
) {
    let (steps, batch, n) = (x.dim(0), h.dim(0), h.dim(1));
    let mut g = Array2::zeros([batch, 4 * n]);
    for t in 0..steps {
        matmul(h, w, g);
        for (i, j) in par(0..batch, 0..n) {
            let input = sigmoid(g[[i, j]] + x[[t, i, j]]);
            let forget = sigmoid(g[[i, n + j]] + x[[t, i, n + j]]);
            let cell = (g[[i, 2 * n + j]] + x[[t, i, 2 * n + j]]).tanh();
            let output = sigmoid(g[[i, 3 * n + j]] + x[[t, i, 3 * n + j]]);
            c[[i, j]] = forget * c[[i, j]] + input * cell;
            h[[i, j]] = output * c[[i, j]].tanh();
        }
    }
    for (i, j) in par(0..batch, 0..n) {
        loss[[]] += h[[i, j]] * h[[i, j]];
    }
}
