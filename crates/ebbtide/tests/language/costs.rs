//! What small values cost: programs over arrays of vectors and matrices, and the same ones by components that load and compute
//! in the same order, have the same C, and so have their gradients.

use ebbtide::prelude::*;

/// The line with the values in it, `v17`, numbered in the order in which they come.
fn renumbered(line: &str, numbers: &mut Vec<String>) -> String {
    let words = line.split_inclusive(|c: char| !c.is_alphanumeric() && c != '_');
    let renumber = |word: &str| {
        let name = word.trim_end_matches(|c: char| !c.is_alphanumeric() && c != '_');
        let is_value =
            name.starts_with(['v', 'w']) && name.len() > 1 && name[1..].bytes().all(|b| b.is_ascii_digit());
        if !is_value {
            return word.to_string();
        }
        let at = numbers.iter().position(|n| n == name).unwrap_or_else(|| {
            numbers.push(name.to_string());
            numbers.len() - 1
        });
        word.replacen(name, &format!("{}{at}", &name[..1]), 1)
    };
    words.map(renumber).collect()
}

/// The text of the segments, but for what names lines of the source, for the numbers of values and for where frames keep them. What stands before the segments
/// has values of its own.
fn text(source: Option<&str>) -> Vec<String> {
    let mut numbers = Vec::new();
    let segments = source.unwrap().lines().skip_while(|line| !line.contains(" segment_"));
    let lines = segments.filter(|line| !line.contains("/* line") && !line.contains("eb_fault"));
    let lines = lines.filter(|line| !line.contains("f->values["));
    lines.map(|line| renumbered(line, &mut numbers)).collect()
}

fn assert_same(name: &str, small: Option<&str>, plain: Option<&str>) {
    let (small, plain) = (text(small), text(plain));
    let differs = small.iter().zip(&plain).position(|(a, b)| a != b);
    if let Some(at) = differs {
        panic!("{name}, line {at}:\n{}\n{}", small[at], plain[at]);
    }
    assert_eq!(small.len(), plain.len(), "{name}");
}

#[program]
fn by_elements(x: &Array1<Vec3<f64>>, y: &mut Array1<Vec3<f64>>, k: f64) {
    for i in par(0..x.len()) {
        let a = x[i];
        let b = x[(i + 1) % x.len()];
        y[i] = k * a + b;
    }
}

#[program]
fn by_components(x: &Array2<f64>, y: &mut Array2<f64>, k: f64) {
    for i in par(0..x.dim(0)) {
        let (ax, ay, az) = (x[[i, 0]], x[[i, 1]], x[[i, 2]]);
        let j = (i + 1) % x.dim(0);
        let (bx, by, bz) = (x[[j, 0]], x[[j, 1]], x[[j, 2]]);
        let (px, py, pz) = (k * ax, k * ay, k * az);
        let (sx, sy, sz) = (px + bx, py + by, pz + bz);
        y[[i, 0]] = sx;
        y[[i, 1]] = sy;
        y[[i, 2]] = sz;
    }
}

const DT: f64 = 1e-3;

/// Bodies that a field pulls to the origin: a length, a scaled vector, two elements that change.
#[program]
fn orbits(x: &mut Array1<Vec3<f64>>, v: &mut Array1<Vec3<f64>>, steps: usize, loss: &mut Array0<f64>) {
    for _t in 0..steps {
        for i in par(0..x.len()) {
            let at = x[i];
            let r = at.norm();
            let speed = v[i] - DT / (r * r * r) * at;
            v[i] = speed;
            x[i] = at + DT * speed;
        }
    }
    for i in par(0..x.len()) {
        loss[[]] += x[i].norm_squared();
    }
}

#[program]
fn orbits_by_components(x: &mut Array2<f64>, v: &mut Array2<f64>, steps: usize, loss: &mut Array0<f64>) {
    for _t in 0..steps {
        for i in par(0..x.dim(0)) {
            let (a, b, c) = (x[[i, 0]], x[[i, 1]], x[[i, 2]]);
            let r = Vec3::new(a, b, c).norm();
            let (p, q, s) = (v[[i, 0]], v[[i, 1]], v[[i, 2]]);
            let pull = DT / (r * r * r);
            let (d, e, f) = (pull * a, pull * b, pull * c);
            let (p, q, s) = (p - d, q - e, s - f);
            v[[i, 0]] = p;
            v[[i, 1]] = q;
            v[[i, 2]] = s;
            let (d, e, f) = (DT * p, DT * q, DT * s);
            let (a, b, c) = (a + d, b + e, c + f);
            x[[i, 0]] = a;
            x[[i, 1]] = b;
            x[[i, 2]] = c;
        }
    }
    for i in par(0..x.dim(0)) {
        let (a, b, c) = (x[[i, 0]], x[[i, 1]], x[[i, 2]]);
        let (d, e, f) = (a * a, b * b, c * c);
        loss[[]] += d + e + f;
    }
}

/// Deformations: a matrix times a matrix, and times a vector.
#[program]
fn flow(f: &mut Array1<Mat2<f64>>, x: &Array1<Vec2<f64>>, loss: &mut Array0<f64>) {
    for i in par(0..f.len()) {
        let (m, u) = (f[i], x[i]);
        let square = m * m;
        f[i] = square;
        loss[[]] += (square * u).y;
    }
}

#[program]
fn flow_by_components(f: &mut Array3<f64>, x: &Array2<f64>, loss: &mut Array0<f64>) {
    for i in par(0..f.dim(0)) {
        let (a, b, c, d) = (f[[i, 0, 0]], f[[i, 0, 1]], f[[i, 1, 0]], f[[i, 1, 1]]);
        let (p, q) = (x[[i, 0]], x[[i, 1]]);
        let (k, l) = (a * a + b * c, a * b + b * d);
        let (m, n) = (c * a + d * c, c * b + d * d);
        f[[i, 0, 0]] = k;
        f[[i, 0, 1]] = l;
        f[[i, 1, 0]] = m;
        f[[i, 1, 1]] = n;
        let (_upper, lower) = (k * p + l * q, m * p + n * q);
        loss[[]] += lower;
    }
}

#[test]
fn an_array_of_vectors_costs_what_an_array_of_components_costs() {
    let device = crate::cpu();
    let (small, plain) = (by_elements().compile(&device).unwrap(), by_components().compile(&device).unwrap());
    assert_same("elements", small.source(), plain.source());
    let small = by_elements().vjp(by_elements::y).wrt(by_elements::x).compile(&device).unwrap();
    let plain = by_components().vjp(by_components::y).wrt(by_components::x).compile(&device).unwrap();
    assert_same("elements, adjoint", small.source(), plain.source());
}

#[test]
fn lengths_and_scaled_vectors_cost_what_their_components_cost() {
    let device = crate::cpu();
    let (small, plain) =
        (orbits().compile(&device).unwrap(), orbits_by_components().compile(&device).unwrap());
    assert_same("orbits", small.source(), plain.source());
    let small = orbits().grad(orbits::loss).wrt(orbits::x).compile(&device).unwrap();
    let plain = orbits_by_components().grad(orbits_by_components::loss).wrt(orbits_by_components::x);
    assert_same("orbits, gradient", small.source(), plain.compile(&device).unwrap().source());
}

#[test]
fn products_of_matrices_cost_what_their_components_cost() {
    let device = crate::cpu();
    let (small, plain) = (flow().compile(&device).unwrap(), flow_by_components().compile(&device).unwrap());
    assert_same("flow", small.source(), plain.source());
    let small = flow().grad(flow::loss).wrt(flow::x).compile(&device).unwrap();
    let plain = flow_by_components().grad(flow_by_components::loss).wrt(flow_by_components::x);
    assert_same("flow, gradient", small.source(), plain.compile(&device).unwrap().source());
}
