//! Arrays of rank 3 and 4 whose elements are vectors and matrices: of rank 5 and 6 to everybody else.

use ebbtide::prelude::*;
use ebbtide_conformance::Input;

use crate::{differentiates, shaped, values};

/// Stresses of a grid of cells in layers of time: whole elements, components, sums, scatters, temporaries.
#[program]
fn layers(
    f: &Array4<Mat3<f64>>,
    g: &mut Array3<Mat3<f64>>,
    v: &mut Array4<Vec3<f32>>,
    at: &Array1<i32>,
    total: &mut Array0<f64>,
) {
    let n = f.dim(1);
    let mut sums = Array3::<Mat3<f64>>::zeros([n, f.dim(2), f.dim(3)]);
    for t in 0..f.dim(0) {
        for (i, j, k) in par(0..n, 0..f.dim(2), 0..f.dim(3)) {
            sums[[i, j, k]] += f[[t, i, j, k]] * g[[i, j, k]];
            v[[t, i, j, k]] = Vec3::new(sums[[i, j, k]][[0, 1]] as f32, v[[t, i, j, k]].z, 0.5);
            v[[t, i, j, k]].y *= v[[t, i, j, k]].x;
            g[[i, j, k]] = f[[t, (i + 1) % n, j, k]].transpose() + 0.5 * sums[[i, j, k]];
        }
    }
    for (i, j, k) in par(0..n, 0..f.dim(2), 0..f.dim(3)) {
        g[[at[i] as usize, 0, k]][[2, 1]] += sums[[i, j, k]].determinant();
        total[[]] -= sums[[i, j, k]].trace() * (v[[0, i, j, k]].norm() as f64);
    }
}

fn of_layers() -> [Input; 5] {
    let at = Input::Elements(vec![2], [1i32, 1].map(ebbtide::ir::Literal::from).to_vec());
    [
        Input::Array(vec![2, 2, 1, 3, 3, 3], 1),
        Input::Array(vec![2, 1, 3, 3, 3], 2),
        Input::Array(vec![2, 2, 1, 3, 3], 3),
        at,
        shaped(&[], &[0.25]),
    ]
}

#[test]
fn arrays_of_rank_four_have_matrices_as_elements() {
    let program = layers().to_string();
    assert!(program.contains("f: &Array6<f64>, g: &mut Array5<f64>, v: &mut Array5<f32>"), "{program}");
    for of in ["total", "g"] {
        differentiates(&layers(), &of_layers(), of, &["f", "g"]);
    }
    differentiates(&layers(), &of_layers(), "v", &["f", "g", "v"]);
    assert_eq!(values(&layers(), &of_layers(), "g").len(), 54);
}

#[derive(Arrays)]
struct Cells {
    stress: Array4<Mat3<f64>>,
    flow: Array4<Vec3<f32>>,
    mass: f64,
}

#[test]
fn arrays_of_rank_six_are_saved_and_loaded() -> ebbtide::Result<()> {
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("rank-six");
    std::fs::create_dir_all(&folder).unwrap();
    for device in [Device::interpreter(), crate::cpu()] {
        let stress = device.from_fn([1, 2, 3, 2], |[a, b, c, d]| {
            (1 + a + 10 * b + 100 * c + 1000 * d) as f64 * Mat3::identity()
        })?;
        let flow = device.from_fn([2, 1, 1, 3], |[a, _, _, d]| Vec3::new(a as f32, 0.5, d as f32))?;
        let cells = Cells { stress, flow, mass: 2.5 };
        let file = folder.join(format!("{}.safetensors", device.name()));
        cells.save(&file)?;
        let mut read =
            Cells { stress: device.zeros([1, 2, 3, 2])?, flow: device.zeros([2, 1, 1, 3])?, mass: 0.0 };
        read.load(&file)?;
        assert_eq!(read.stress.to_vec(), cells.stress.to_vec());
        assert_eq!((read.flow.to_vec(), read.mass), (cells.flow.to_vec(), 2.5));
        assert_eq!(read.stress[[0, 1, 2, 1]][[2, 2]], 1211.0);
        let mut other =
            Cells { stress: device.zeros([1, 2, 3, 1])?, flow: device.zeros([2, 1, 1, 3])?, mass: 0.0 };
        let error = other.load(&file).unwrap_err().to_string();
        assert!(error.contains("[1, 2, 3, 2, 3, 3]"), "{error}");
    }
    Ok(())
}
