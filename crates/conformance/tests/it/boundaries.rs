//! Loops with conditions over their indices: what they say of boundaries, and of anything else.

use ebbtide_conformance::Input;
use ebbtide_ir::*;

use crate::devices::check;
use crate::programs::B;

/// `from <= i < to`.
fn within(b: &mut B, i: ValueId, from: ValueId, to: ValueId) -> ValueId {
    let (above, below) = (b.0.compare(Compare::Ge, i, from), b.0.compare(Compare::Lt, i, to));
    b.0.binary(Binary::And, above, below)
}

/// Sums of neighbours where they are there, one by one; an update far from boundaries, a copy near to them; something at
/// one row; something that splits the domain.
pub fn guarded(reach: i64, ty: Type) -> Program {
    let mut b = B::new("guarded");
    let [u, v, w] = ["u", "v", "w"].map(|name| b.0.array(name, ty, 2, Access::Write));
    let c = b.0.array("c", ty, 2, Access::Read);
    let steps = b.0.scalar("steps", Type::Index);
    let (zero, near, n, m) = (b.index(0), b.index(reach), b.0.dim(u, 0), b.0.dim(u, 1));
    let (bottom, right) = (b.sub(n, near), b.sub(m, near));
    let half = b.real(0.5);
    let half = b.0.cast(half, ty);
    b.0.begin_for("t", zero, steps);
    let ij = b.0.begin_par(&[("i", zero, n), ("j", zero, m)]);
    let (i, j) = (ij[0], ij[1]);
    let nothing = b.real(0.0);
    let nothing = b.0.cast(nothing, ty);
    let sum = b.0.local("sum", nothing);
    for [down, along] in [[0, 0], [reach, 0], [-reach, 0], [0, reach], [0, -reach], [1, -1]] {
        let (down, along) = (b.index(down), b.index(along));
        let (k, l) = (b.add(i, down), b.add(j, along));
        let (rows, columns) = (within(&mut b, k, near, bottom), within(&mut b, l, near, right));
        let there = b.0.binary(Binary::And, rows, columns);
        b.0.begin_if(there);
        let (x, y) = (b.0.load(v, &[k, l]), b.0.load(c, &[k, l]));
        let (x, so_far) = (b.mul(x, y), b.0.get(sum));
        let so_far = b.add(so_far, x);
        b.0.set(sum, so_far);
        b.0.end_if();
    }
    let all = b.0.get(sum);
    b.0.update(Combine::Add, u, &[i, j], all);
    let (rows, columns) = (within(&mut b, i, near, bottom), within(&mut b, j, near, right));
    let inside = b.0.binary(Binary::And, rows, columns);
    b.0.begin_if(inside);
    let above = b.sub(i, near);
    let x = b.0.load(v, &[above, j]);
    let x = b.mul(x, half);
    b.0.store(w, &[i, j], x);
    let third = b.index(3);
    let at_third = b.0.compare(Compare::Eq, i, third);
    b.0.begin_if(at_third);
    b.0.update(Combine::Add, w, &[i, j], half);
    b.0.end_if();
    b.0.begin_else();
    let x = b.0.load(v, &[i, j]);
    b.0.store(w, &[i, j], x);
    b.0.end_if();
    let seven = b.index(7);
    let early = b.0.compare(Compare::Lt, j, seven);
    b.0.begin_if(early);
    b.0.update(Combine::Max, w, &[i, j], half);
    b.0.end_if();
    b.0.end_par();
    b.0.swap(v, w);
    b.0.end_loop(None);
    b.0.finish().unwrap()
}

#[test]
pub fn conditions_over_indices_are_the_same_everywhere() {
    for (reach, ty) in [(1, Type::F32), (2, Type::F32), (1, Type::F64)] {
        let program = guarded(reach, ty);
        for [n, m] in [[1, 1], [2, 5], [3, 70], [40, 3], [33, 34], [70, 129], [5, 3000], [300, 31]] {
            let inputs: Vec<Input> = (1..=4)
                .map(|seed| Input::Array(vec![n, m], seed))
                .chain([Input::Scalar(Literal::index(3))])
                .collect();
            check(&program, &inputs).unwrap();
        }
    }
}

/// Neighbours along three dimensions, one of them turned, and a plane by a number from outside.
fn cube() -> Program {
    let mut b = B::new("cube");
    let [u, v] = ["u", "v"].map(|name| b.0.array(name, Type::F32, 3, Access::Write));
    let plane = b.0.scalar("plane", Type::Index);
    let (zero, one) = (b.index(0), b.index(1));
    let extents = [0, 1, 2].map(|k| b.0.dim(u, k));
    let ends = extents.map(|n| b.sub(n, one));
    let ijk = b.0.begin_par(&[("i", zero, extents[0]), ("j", zero, extents[1]), ("k", zero, extents[2])]);
    let (i, j, k) = (ijk[0], ijk[1], ijk[2]);
    let inside = [i, j, k].iter().zip(ends).map(|(x, end)| within(&mut b, *x, one, end)).collect::<Vec<_>>();
    let inside = inside.into_iter().reduce(|x, y| b.0.binary(Binary::And, x, y)).unwrap();
    b.0.begin_if(inside);
    let (up, down, left) = (b.sub(i, one), b.add(j, one), b.sub(k, one));
    let sides = [[up, j, k], [i, down, k], [i, j, left], [i, j, k], [plane, j, k], [up, down, left]];
    let sides = sides.map(|at| b.0.load(v, &at));
    let sum = sides.into_iter().reduce(|x, y| b.add(x, y)).unwrap();
    b.0.store(u, &[i, j, k], sum);
    b.0.end_if();
    b.0.end_par();
    b.0.finish().unwrap()
}

#[test]
pub fn neighbours_in_three_dimensions_are_the_same_everywhere() {
    let program = cube();
    for shape in [[1, 1, 1], [3, 3, 3], [4, 5, 70], [9, 40, 33], [70, 3, 3]] {
        for plane in [0, shape[0] - 1] {
            let mut inputs: Vec<Input> = [1, 2].map(|seed| Input::Array(shape.to_vec(), seed)).into();
            inputs.push(Input::Scalar(Literal::from(plane)));
            check(&program, &inputs).unwrap();
        }
    }
    let outside = [1, 2].map(|seed| Input::Array(vec![4, 5, 70], seed)).into_iter();
    let outside: Vec<Input> = outside.chain([Input::Scalar(Literal::index(4))]).collect();
    assert!(check(&program, &outside).unwrap_err().contains("index 4 is out of bounds"));
}
